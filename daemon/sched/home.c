/* home.c - the node with the checkpoints of a job of which no process holds the state
 *
 * Rank 0 writes them on its own node, into the run directory there, unless their folder has an
 * absolute path, which is taken for that of one folder of all nodes. While a process holds the
 * state they are of no account. Where none does, the job goes on from the newest one that a rank
 * can read: so one of its ranks is for the node with the newest that is known of, or for one with
 * the same folder, as long as that may come back. Only then is it for another one, and the training
 * may begin anew; what is on the node that never came is forgotten when they train. Where it is
 * back, and the job lacks other nodes, it is no other job's: neither of the queue, nor one that
 * lost ranks itself.
 *
 *     rank 0 tells of one (Progress) of no older step than is known       its node is home
 *     ... is told to leave, and holds the state                           likewise: it saves that,
 *                                                                         and nobody reads before
 *                                                                         its process has left
 *     ... does not come back after a restart or a stand-still,            its node may be: it saved
 *     and none is known                                                   if it was told to leave
 *
 * Dynamic clusters have no nodes to spare, and those of a run are on one host. */
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

/* In canonical JSON, where the folder is the section's first key. */
bool home_is_named(const uint8_t *spec, size_t size)
{
    static const char words[] = "\"checkpoint\":{\"directory\":\"";
    const uint8_t *at = size > 0 ? memmem(spec, size, words, sizeof(words) - 1) : NULL;
    const uint8_t *path = at != NULL ? at + sizeof(words) - 1 : NULL;
    return path != NULL && path < spec + size && *path != '/';
}

static void note_log(struct run *run, const char *path)
{
    free(run->home.log_path);
    run->home.log_path = path[0] != '\0' ? dup_text(path) : NULL;
}

void home_note(struct sched *s, struct run *run, const struct node *at, uint64_t step)
{
    const struct node_info *node = &at->info;
    if (!run->job->has_home || !s->mode->places_anew || step == 0) {
        return;
    }
    const bool is_same = !run->home.is_guess && strcmp(run->home.node_id, node->node_id) == 0 &&
                         run->home.folder == node->jobs_folder &&
                         strcmp(run->home.principal, node->principal) == 0;
    const struct member *first = &run->members[0];
    const bool has_log = first->hold != NULL && first->hold->node == at;
    if (is_same && has_log && run->home.log_path == NULL) {
        note_log(run, first->log_path);
    }
    if (!run->home.is_guess && (step < run->home.step || (is_same && step == run->home.step))) {
        return; /* of two nodes with the same step who tells of it is there */
    }
    if (!is_same) { /* of one node it is enough that it is */
        results_changed(s, run);
        note_log(run, has_log ? first->log_path : "");
    }
    ms_text_copy(run->home.node_id, sizeof(run->home.node_id), node->node_id);
    ms_text_copy(run->home.principal, sizeof(run->home.principal), node->principal);
    run->home.folder = node->jobs_folder;
    run->home.step = step;
    run->home.is_guess = false;
}

/* Of a rank 0 that trained. What it said since we stood still says where a checkpoint is; but what
 * we read at once lay there before. */
static bool may_have_saved(const struct sched *s, const struct run *run)
{
    const struct member *first = &run->members[0];
    const int64_t stood_until_ms = s->stood_still_until_ms > 0 /* ever */
                                       ? s->stood_still_until_ms - s->cfg.lease_ms
                                       : 0;
    return first->unheard || (first->state == RANK_MISSING && first->has_state &&
                              run->told_ms < stood_until_ms + (int64_t)heartbeat_ms(s));
}

void home_loses(struct sched *s, struct run *run, uint32_t rank)
{
    const struct member *member = &run->members[rank];
    const bool is_first = rank == 0 && may_have_saved(s, run);
    if (is_first && run->job->has_home && s->mode->places_anew && run->home.step == 0) {
        ms_text_copy(run->home.node_id, sizeof(run->home.node_id), member->node_id);
        ms_text_copy(run->home.principal, sizeof(run->home.principal), member->principal);
        run->home.folder = 0;
        run->home.step = member->step > 0 ? member->step : 1;
        run->home.is_guess = true;
        note_log(run, "");
    }
}

int64_t home_until_ms(const struct sched *s, const struct run *run)
{
    const int64_t bound_ms = ready_bound_ms(s);
    const int64_t most_ms = bound_ms >= 0 ? bound_ms : MS_TOPO_TIMEOUT_S * INT64_C(1000);
    return run->home_ms + most_ms / 2;
}

/* By the folder, where both are known: under the node's name may be another one by now. */
bool home_is(const struct run *run, const struct node *node)
{
    const uint64_t folder = node->info.jobs_folder;
    const bool is_there = run->home.folder != 0 && folder != 0
                              ? folder == run->home.folder
                              : strcmp(node->info.node_id, run->home.node_id) == 0;
    return is_there && !principal_is_anothers(run->home.principal, node->info.principal);
}

bool home_is_elsewhere(const struct sched *s, const struct run *run)
{
    const char *first = run->members[0].node_id;
    const struct node *node = node_find(s, first);
    return run->home.step > 0 && !run->home.is_guess && strcmp(first, run->home.node_id) != 0 &&
           (node == NULL || !home_is(run, node));
}

/* A process holds the state, or one is at home, and reads it there. */
static bool is_held(const struct run *run)
{
    bool is = formers_here(run) > 0;
    for (uint32_t rank = 0; !is && rank < run->job->workers; rank++) {
        const struct hold *hold = run->members[rank].hold;
        is = run_holds_state(run, rank) || (hold != NULL && home_is(run, hold->node));
    }
    return is;
}

/* No process holds the state, and that node may still come back. */
static bool is_awaited(const struct sched *s, const struct run *run)
{
    return run->home.step > 0 && s->mode->places_anew && s->now.mono_ms < home_until_ms(s, run) &&
           !is_held(run);
}

/* Later than it was waited for: once, and where it is nobody else's. */
static bool is_late(const struct sched *s, const struct run *run)
{
    struct node *node = run->home.step > 0 && s->mode->places_anew && !is_held(run)
                            ? home_next(s, run, NULL)
                            : NULL;
    while (node != NULL && (!vacant_can_serve(run, node) || home_is_kept(s, node, run) ||
                            vacant_has_stumbled(s, run, node))) {
        node = home_next(s, run, node);
    }
    return node != NULL;
}

uint32_t home_rank(const struct sched *s, const struct run *run)
{
    uint32_t rank = 0;
    if (!is_awaited(s, run) && !is_late(s, run)) {
        return MS_WORKERS_MAX;
    }
    while (rank < run->job->workers && run->members[rank].hold != NULL) {
        rank++;
    }
    return rank < run->job->workers ? rank : MS_WORKERS_MAX;
}

bool home_is_tried(struct sched *s, const struct run *run, uint32_t rank, bool is_link)
{
    const struct node *node = node_find(s, run->members[rank].node_id);
    bool is_there = node != NULL && home_is(run, node);
    for (uint32_t other = 0; !is_there && other < run->job->workers; other++) {
        const struct hold *hold = run->members[other].hold;
        is_there = (is_link && hold != NULL && home_is(run, hold->node));
    }
    return is_there && run->home.step > 0 && s->mode->places_anew &&
           s->now.mono_ms < home_until_ms(s, run) && !run_is_held_beside(run, rank);
}

void home_start(struct sched *s, struct run *run, uint64_t step)
{
    if (run->home.step > 0 && step == 0 && !run->home.is_guess) {
        emit_log(s, MS_LOG_WARNING,
                 "job.checkpoints_given_up job=%llu node=%s step=%llu: no rank could read them",
                 (unsigned long long)run->job->id, emit_quote(s, run->home.node_id),
                 (unsigned long long)run->home.step);
    }
    run->home.step = run->home.is_guess ? 0 : run->home.step;
    run->home.is_guess = false;
    run->home.step = step < run->home.step ? step : run->home.step; /* no rank could read it */
}

/* As it is now: another one may have its name. */
static struct node *node_of(const struct sched *s, const struct run *run)
{
    struct node *node = run->home.step > 0 ? node_find(s, run->home.node_id) : NULL;
    return node != NULL && home_is(run, node) ? node : NULL;
}

struct node *home_next(const struct sched *s, const struct run *run, const struct node *last)
{
    struct node *own = node_of(s, run);
    if (last == NULL && own != NULL) {
        return own;
    }
    const struct table_link *link = last == NULL || last == own
                                        ? table_first(&s->folders, table_hash_u64(run->home.folder))
                                        : table_next(&last->by_folder);
    struct node *next = NULL;
    for (; link != NULL && next == NULL; link = table_next(link)) {
        struct node *node = list_item(link, struct node, by_folder);
        next = node != own && home_is(run, node) ? node : NULL;
    }
    return next;
}

struct node *home_find(const struct sched *s, const struct run *run)
{
    struct node *node = home_next(s, run, NULL);
    while (node != NULL && !vacant_can_serve(run, node)) {
        node = home_next(s, run, node);
    }
    return node;
}

bool home_is_saving(const struct sched *s, const struct run *run)
{
    const struct node *node = node_of(s, run);
    return node != NULL && node->leaving && node->conn != NULL && is_awaited(s, run);
}

uint32_t home_mark(struct sched *s)
{
    uint32_t n = 0;
    s->kept_in++; /* what was marked before is not any more */
    for (struct list *at = s->recovering.next; at != &s->recovering; at = at->next) {
        const struct run *run = list_item(at, struct run, recovering);
        struct node *node = is_awaited(s, run) ? home_next(s, run, NULL) : NULL;
        while (node != NULL && (node->kept_in == s->kept_in || !vacant_can_serve(run, node))) {
            node = home_next(s, run, node);
        }
        if (node != NULL) {
            node->kept_in = s->kept_in;
            node->kept_for = run->job->id;
            n++;
        }
    }
    return n;
}

bool home_is_kept(const struct sched *s, const struct node *node, const struct run *run)
{
    return node->kept_in == s->kept_in && (run == NULL || node->kept_for != run->job->id);
}

static const char *what_is_there(struct sched *s, const struct run *run)
{
    const struct node *node = node_find(s, run->home.node_id);
    const unsigned long long step = run->home.step;
    if (run->home.is_guess) {
        return "where rank 0 was while there was no scheduler, and may have saved";
    }
    if (home_is_saving(s, run)) {
        return emit_text(s, "which saves step %llu before it leaves", step);
    }
    const bool is_elsewhere = node != NULL && node->conn != NULL && node->info.jobs_folder != 0 &&
                              run->home.folder != 0 && node->info.jobs_folder != run->home.folder;
    return emit_text(s, "which has the checkpoint of step %llu%s", step,
                     is_elsewhere ? " in another folder of jobs (jobs_dir) than it has now" : "");
}

const char *home_place(struct sched *s, const struct run *run)
{
    const struct node *node = node_find(s, run->home.node_id);
    return node != NULL && home_is(run, node)
               ? emit_text(s, "node %s on host %.40s", run->home.node_id, node->info.host_name)
               : emit_text(s, "node %s", run->home.node_id);
}

const char *home_words(struct sched *s, const struct run *run)
{
    const int64_t left_ms = home_until_ms(s, run) - s->now.mono_ms;
    return emit_text(s,
                     "waits for node %s, %s: no process holds the state any more. In %lld s "
                     "another node takes its place, and may begin anew. ",
                     run->home.node_id, what_is_there(s, run), (long long)((left_ms + 999) / 1000));
}
