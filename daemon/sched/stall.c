/* stall.c - since when a job stands still, where that began before this process
 *
 *     job.rank_lost              it stands, since then ...
 *     job.recovering             ... or since then, and no rank goes on before job.recovered
 *     job.adopted                in the next process: it did not stand, where no round was begun
 *                                and this process, too, lost nobody: who was away is back
 *     any other of a job         it stands no more
 *
 * Nothing is stored for it beside these. What nobody lived to write down is not known: then it
 * counts from when the scheduler was back, and whoever is told hears that. */
#include "daemon/sched/state.h"

#include "proto/grow.h"

#include <stdlib.h>
#include <string.h>

struct stall {
    uint64_t job;
    int64_t at_ms;     /* wall clock: the first loss */
    uint64_t last_seq; /* event of the last one */
    bool is_round;
};

/* Few are open at a time. */
static struct stall *find(struct sched *s, uint64_t job)
{
    size_t i = 0;
    while (i < s->n_stalls && s->stalls[i].job != job) {
        i++;
    }
    return i < s->n_stalls ? &s->stalls[i] : NULL;
}

static int begin(struct sched *s, const struct sched_event_row *row, struct ms_err *err)
{
    struct stall *stalls = ms_grow(s->stalls, s->n_stalls, 1, sizeof(*stalls), &s->stalls_room);
    if (stalls == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the events of job %llu",
                       (unsigned long long)row->job);
    }
    s->stalls = stalls;
    s->stalls[s->n_stalls++] = (struct stall){.job = row->job, .at_ms = row->at_ms};
    return 0;
}

int stall_load(struct sched *s, const struct sched_event_row *row, struct ms_err *err)
{
    if (strcmp(row->kind, "scheduler.started") == 0) {
        s->stalls_start = row->seq;
        return 0;
    }
    struct stall *stall = row->job != 0 ? find(s, row->job) : NULL;
    const bool is_loss = row->job != 0 && strcmp(row->kind, "job.rank_lost") == 0;
    const bool is_round = row->job != 0 && strcmp(row->kind, "job.recovering") == 0;
    if (is_loss || is_round) {
        const int rc = stall == NULL ? begin(s, row, err) : 0;
        if (rc == 0) {
            stall = find(s, row->job);
            stall->last_seq = is_loss ? row->seq : stall->last_seq;
            stall->is_round |= is_round;
        }
        return rc;
    }
    if (stall == NULL || strcmp(row->kind, "job.cancel_asked") == 0) {
        return 0;
    }
    if (strcmp(row->kind, "job.adopted") != 0 ||
        (!stall->is_round && stall->last_seq < s->stalls_start)) {
        *stall = s->stalls[--s->n_stalls];
    }
    return 0;
}

void stalls_loaded(struct sched *s)
{
    for (struct list *at = s->placed.next; at != &s->placed; at = at->next) {
        struct run *run = list_item(at, struct job, lane)->run;
        const struct stall *stall = find(s, run->job->id);
        const bool went_on = /* and the disk was too full for an event */
            stall != NULL && stall->is_round && run->job->state == JOB_RUNNING;
        run->stall.is_resumed = true;
        run->stall.lost_ms = stall != NULL && !went_on ? stall->at_ms : 0;
    }
    free(s->stalls);
    s->stalls = NULL;
    s->n_stalls = s->stalls_room = 0;
}

void stall_is_over(struct run *run)
{
    run->stall.is_resumed = run->stall.is_least = false;
    run->stall.lost_ms = 0;
}

/* The wall clock may have jumped meanwhile: not less than since this process is there, for it was
 * before that, and no longer than anybody leaves a job alone. */
int64_t stall_since_ms(const struct sched *s, struct run *run, bool was_there)
{
    const int64_t here_ms = s->now.mono_ms - s->started.mono_ms;
    const bool is_known = run->stall.lost_ms > 0;
    if (!run->stall.is_resumed || (was_there && !is_known)) {
        return s->now.mono_ms;
    }
    if (!is_known) {
        run->stall.is_least = true;
        return s->started.mono_ms;
    }
    int64_t ms = s->now.wall_ms - run->stall.lost_ms;
    ms = ms < MS_STALL_MAX_MS ? ms : MS_STALL_MAX_MS;
    return s->now.mono_ms - (ms > here_ms ? ms : here_ms);
}
