/* comeback.c - ranks that were lost while somebody looked, and how the job went on; pure */
#include "cli/comeback.h"

#include "cli/format.h"
#include "cli/progress.h"
#include "proto/state_words.h"

#include <stdio.h>
#include <string.h>

enum { NAMED_MAX = 8 }; /* more ranks are a number */

static const char least[] = "at least "; /* of a time */

static void mark(struct cli_comeback *c, uint32_t rank)
{
    c->lost[rank / 8] |= (uint8_t)(1U << rank % 8);
}

static void note_lost(struct cli_comeback *c, const Ms__JobInfo *job)
{
    for (size_t i = 0; i < job->n_ranks; i++) {
        uint32_t rank = job->ranks[i]->rank;
        if (rank < MS_WORKERS_MAX && strcmp(job->ranks[i]->state, MS_RANK_STATE_LOST) == 0) {
            mark(c, rank);
        }
    }
}

/* 32 bits of FNV-1a over the node's id and the process's. */
static uint32_t who_has(const Ms__RankInfo *rank)
{
    uint32_t hash = (2166136261U ^ rank->pid) * 16777619U;
    for (const char *c = rank->node_id; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * 16777619U;
    }
    return rank->pid != 0 ? hash : 0;
}

static void note_who(struct cli_comeback *c, const Ms__JobInfo *job)
{
    for (size_t i = 0; i < job->n_ranks; i++) {
        if (job->ranks[i]->rank < MS_WORKERS_MAX) {
            c->who[job->ranks[i]->rank] = who_has(job->ranks[i]);
        }
    }
}

/* Several changes are one update, and of what happened while there was no scheduler there is none:
 * a rank may have been lost and taken again with nobody told. */
static void note_replaced(struct cli_comeback *c, const Ms__JobInfo *job)
{
    for (size_t i = 0; i < job->n_ranks; i++) {
        const uint32_t rank = job->ranks[i]->rank;
        const uint32_t who = who_has(job->ranks[i]);
        if (rank < MS_WORKERS_MAX && who != 0 && c->who[rank] != 0 && who != c->who[rank]) {
            mark(c, rank);
        }
    }
}

static int is_lost(const struct cli_comeback *c, uint32_t rank)
{
    return c->lost[rank / 8] >> rank % 8 & 1;
}

/* "rank 2 was lost", "ranks 1, 2 and 5 were lost", "300 ranks were lost"; "": none is known to. */
static const char *lost_words(const struct cli_comeback *c, uint32_t counted, char *dst,
                              size_t size)
{
    uint32_t named = 0;
    uint32_t put = 0;
    for (uint32_t rank = 0; rank < MS_WORKERS_MAX; rank++) {
        named += (uint32_t)is_lost(c, rank);
    }
    uint32_t n = named > 0 ? named : counted;
    dst[0] = '\0';
    if (named == 0 || named > NAMED_MAX) {
        if (n > 0) {
            snprintf(dst, size, "%u rank%s lost", n, n == 1 ? " was" : "s were");
        }
        return dst;
    }
    size_t used = (size_t)snprintf(dst, size, "rank%s ", named == 1 ? "" : "s");
    for (uint32_t rank = 0; rank < MS_WORKERS_MAX && used < size; rank++) {
        if (is_lost(c, rank)) {
            const char *before = put == 0 ? "" : put + 1 == named ? " and " : ", ";
            put++;
            used += (size_t)snprintf(dst + used, size - used, "%s%u", before, rank);
        }
    }
    if (used < size) {
        snprintf(dst + used, size - used, named == 1 ? " was lost" : " were lost");
    }
    return dst;
}

static const char *begin_line(const struct cli_comeback *c, const Ms__JobInfo *job, char *dst,
                              size_t size)
{
    char lost[160];
    lost_words(c, 0, lost, sizeof(lost));
    const char *what = job->reason[0] != '\0' ? job->reason
                       : lost[0] != '\0'      ? lost
                                              : "a rank was lost";
    snprintf(dst, size, "%s: %s", job->state, what);
    return dst;
}

/* What this scheduler says. One that was started since does not know: ranks say where they begin.
 * What was reported as progress may be of a moment before, and ahead of a checkpoint from which all
 * of them began. */
static uint64_t step_from(const Ms__JobInfo *job)
{
    uint64_t step = 0;
    if (job->went_on_from > 0) {
        return job->went_on_from;
    }
    for (size_t i = 0; i < job->n_ranks; i++) {
        step = job->ranks[i]->step > step ? job->ranks[i]->step : step;
    }
    return step > 0 || job->again_from == 1 ? step : cli_progress_step(job);
}

/* Does it say of this recovery, and not of one before, what is trained again? */
static int goes_back(const struct cli_comeback *c, const Ms__JobInfo *job)
{
    return job->again_to > 0 && (job->again_from != c->again_from || job->again_to != c->again_to ||
                                 job->again_from == step_from(job) + 1);
}

/* "step 7", "steps 101 to 137" */
static const char *span_words(char *dst, size_t size, const Ms__JobInfo *job)
{
    const int is_one = job->again_from == job->again_to;
    snprintf(dst, size, is_one ? "step %llu" : "steps %llu to %llu",
             (unsigned long long)job->again_from, (unsigned long long)job->again_to);
    return dst;
}

uint64_t cli_comeback_step(const Ms__JobInfo *job)
{
    const int is_new = job->recoveries > 0 && strcmp(job->state, MS_JOB_STATE_RUNNING) == 0 &&
                       job->progress != NULL && job->progress->generation < job->generation;
    return is_new ? step_from(job) : 0;
}

/* By the scheduler's own count of time, else by ours. Who came late, to a job that had recovered
 * before, has not seen how much of that count is of before. */
static const char *end_line(const struct cli_comeback *c, const Ms__JobInfo *job, double now_s,
                            char *dst, size_t size)
{
    char lost[160];
    char from[64] = "";
    char time[CLI_FORMAT_MAX];
    char again[96] = "";
    char span[64];
    uint32_t counted = job->ranks_lost > c->ranks_lost ? job->ranks_lost - c->ranks_lost : 0;
    double seconds = job->recovering_ms > c->recovering_ms
                         ? (double)(job->recovering_ms - c->recovering_ms) / 1000
                         : now_s - c->since_s;
    const int is_back = goes_back(c, job);
    uint64_t step = is_back ? job->again_from - 1 : step_from(job);
    lost_words(c, counted, lost, sizeof(lost));
    if (step > 0) {
        snprintf(from, sizeof(from), " from step %llu", (unsigned long long)step);
    }
    if (is_back) {
        snprintf(again, sizeof(again), ": %s %s trained again", span_words(span, sizeof(span), job),
                 job->again_from == job->again_to ? "is" : "are");
    }
    snprintf(dst, size, "%s%s%s%s after %s%s%s", lost, lost[0] != '\0' ? "; " : "",
             is_back && step == 0 ? "began anew" : "went on", from,
             c->is_late || (job->recovering_least && !c->recovering_least) ? least : "",
             cli_format_duration(time, seconds), again);
    return dst;
}

static uint64_t ms_between(double from_s, double to_s)
{
    return to_s > from_s ? (uint64_t)((to_s - from_s) * 1000) : 0;
}

static void take(struct cli_comeback *c, const Ms__JobInfo *job)
{
    memset(c, 0, sizeof(*c));
    c->seen = 1;
    c->recoveries = job->recoveries;
    c->ranks_lost = job->ranks_lost;
    c->recovering_ms = job->recovering_ms;
    c->recovering_least = job->recovering_least;
    c->again_from = job->again_from;
    c->again_to = job->again_to;
    note_who(c, job);
}

/* What is running by then is in the counts, too: it is all of them where it is the first. */
static void take_late(struct cli_comeback *c, const Ms__JobInfo *job)
{
    take(c, job);
    c->is_late = job->recoveries > 0;
    if (!c->is_late) {
        c->ranks_lost = 0;
        c->recovering_ms = 0;
        c->recovering_least = 0;
    }
}

/* A scheduler that was started again counts from there on: what passed here since is more. */
static void note_still(struct cli_comeback *c, const Ms__JobInfo *job, double now_s)
{
    const uint64_t passed_ms = c->told_ms > 0 ? ms_between(c->told_s, now_s) : 0;
    const uint64_t by_us = c->told_ms + passed_ms;
    c->told_ms = job->recovering_ms > by_us ? job->recovering_ms : by_us;
    c->told_s = now_s;
    c->still.is_least = job->recovering_least;
}

/* Its last word counts what was over before it alone: not what it said while it stood still, nor
 * what passed since. */
static struct cli_still still_at_end(const struct cli_comeback *c, const Ms__JobInfo *job,
                                     double now_s)
{
    struct cli_still still = {.is_known = 0};
    if (c->still.is_known && cli_job_is_ended(job)) { /* told again, over another connection */
        return c->still;
    }
    if (c->runs && !c->is_recovering && cli_job_is_ended(job)) {
        still.is_known = 1; /* whoever it lacked by then */
    }
    if (c->is_recovering && cli_job_is_ended(job)) {
        const uint64_t told_ms = c->told_ms > job->recovering_ms ? c->told_ms : job->recovering_ms;
        still.is_known = 1;
        still.is_least = c->still.is_least;
        still.ms = told_ms - job->recovering_ms + ms_between(c->told_s, now_s);
    }
    return still;
}

static int misses_ranks(const Ms__JobInfo *job)
{
    return cli_job_has_rank_in(job, MS_RANK_STATE_MISSING);
}

/* A restarted scheduler calls a job RUNNING until it knows who is gone. */
static int lacks_ranks(const Ms__JobInfo *job)
{
    return misses_ranks(job) || cli_job_has_rank_in(job, MS_RANK_STATE_LOST);
}

const char *cli_comeback_line(struct cli_comeback *c, const Ms__JobInfo *job, double now_s,
                              char *dst, size_t size)
{
    const char *line = NULL;
    int is_recovering = strcmp(job->state, MS_JOB_STATE_RECOVERING) == 0;
    if (!c->seen && is_recovering) {
        take_late(c, job);
    } else if (!c->seen) { /* what was before somebody looked is for `show` to tell */
        take(c, job);
    }
    const int runs = strcmp(job->state, MS_JOB_STATE_RUNNING) == 0 && !misses_ranks(job);
    if (is_recovering) {
        int begins = !c->is_recovering;
        c->since_s = begins ? now_s : c->since_s;
        c->is_recovering = 1;
        c->runs = 0;
        note_still(c, job, now_s);
        note_lost(c, job);
        return begins ? begin_line(c, job, dst, size) : NULL;
    }
    if (strcmp(job->state, MS_JOB_STATE_RUNNING) == 0 && lacks_ranks(job)) {
        note_lost(c, job);
        c->runs = runs && !c->is_recovering;
        return NULL;
    }
    if (strcmp(job->state, MS_JOB_STATE_RUNNING) == 0 &&
        (c->is_recovering || job->recoveries > c->recoveries)) {
        c->since_s = c->is_recovering ? c->since_s : now_s;
        note_replaced(c, job);
        line = end_line(c, job, now_s, dst, size);
    }
    const struct cli_still still = still_at_end(c, job, now_s);
    take(c, job);
    c->still = still;
    c->runs = runs;
    return line;
}

/* "stands still for 30.0 s": before, and how long where that is known */
static const char *still_words(char *dst, size_t size, const char *before, uint64_t ms,
                               int is_least)
{
    char time[CLI_FORMAT_MAX];
    if (ms == 0) {
        snprintf(dst, size, "%s", before);
    } else {
        snprintf(dst, size, "%s for %s%s", before, is_least ? least : "",
                 cli_format_duration(time, (double)ms / 1000));
    }
    return dst;
}

/* Of a job that never came back the time that is known is of this one stand-still. */
static const char *first_sum(char *dst, size_t size, const Ms__JobInfo *job,
                             const struct cli_still *still)
{
    char words[CLI_FORMAT_MAX + 64] = "";
    if (strcmp(job->state, MS_JOB_STATE_RECOVERING) == 0) {
        still_words(words, sizeof(words), ", stands still", job->recovering_ms,
                    job->recovering_least);
    } else if (cli_still_stood(still, job)) {
        still_words(words, sizeof(words), ", it stood still to the end", still->ms,
                    still->is_least);
    }
    snprintf(dst, size, "%u rank%s lost%s", job->ranks_lost, job->ranks_lost == 1 ? "" : "s",
             words);
    return dst;
}

/* Where it is not known how long it stood so, the number before this is of what came before. */
static const char *end_words(char *dst, size_t size, const Ms__JobInfo *job,
                             const struct cli_still *still)
{
    dst[0] = '\0';
    if (strcmp(job->state, MS_JOB_STATE_RECOVERING) == 0) {
        snprintf(dst, size, "; stands still now");
    } else if (cli_still_stood(still, job)) {
        still_words(dst, size,
                    still->ms > 0 ? "; it stood still to the end"
                                  : "; then it stood still to the end",
                    still->ms, still->is_least);
    }
    return dst;
}

const char *cli_comeback_sum(char *dst, size_t size, const Ms__JobInfo *job,
                             const struct cli_still *still)
{
    static const struct cli_still unknown = {0, 0, 0};
    char time[CLI_FORMAT_MAX];
    char end[CLI_FORMAT_MAX + 64];
    still = still != NULL ? still : &unknown;
    if (job->recoveries == 0 && job->ranks_lost == 0) {
        return NULL;
    }
    if (job->recoveries == 0) {
        return first_sum(dst, size, job, still);
    }
    snprintf(dst, size, "%u time%s (%u rank%s lost, %s%s%s)", job->recoveries,
             job->recoveries == 1 ? "" : "s", job->ranks_lost, job->ranks_lost == 1 ? "" : "s",
             job->recovering_least || still->is_least ? least : "",
             cli_format_duration(time, (double)(job->recovering_ms + still->ms) / 1000),
             end_words(end, sizeof(end), job, still));
    return dst;
}

const char *cli_comeback_again(char *dst, size_t size, const Ms__JobInfo *job)
{
    char span[64];
    const unsigned long long from = (unsigned long long)job->again_from;
    if (job->again_to == 0) {
        return NULL;
    }
    span_words(span, sizeof(span), job);
    if (from > 1) {
        snprintf(dst, size, "%s, from the checkpoint of step %llu", span, from - 1);
    } else {
        snprintf(dst, size, "%s, for no rank had a checkpoint that could be read", span);
    }
    return dst;
}
