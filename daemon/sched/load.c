/* load.c - a restarted scheduler takes up what the database holds */
#include "daemon/sched/state.h"

#include "proto/grow.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

static int row_check(const struct sched_job_row *row, struct ms_err *err)
{
    if (row->id == 0 || row->id >= MS_JOB_ID_MAX - 1) {
        return ms_fail(err, MS_E_CONFIG, "the database holds a job with id %llu", (ull)row->id);
    }
    if ((unsigned)row->state >= JOB_STATES) {
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "job %llu of the database is in state %d (%s), which this release does not "
                       "know: start the release that wrote it",
                       (ull)row->id, (int)row->state, sched_job_state_name(row->state));
    }
    if (row->workers < 1 || row->workers > MS_WORKERS_MAX || row->generation >= MS_GENERATION_MAX) {
        return ms_fail(err, MS_E_CONFIG,
                       "job %llu of the database has %u workers and generation %llu: out of range",
                       (ull)row->id, row->workers, (ull)row->generation);
    }
    return 0;
}

/* A job whose ranks were getting ready goes back into the queue, where there is one. The workers of
 * a dynamic cluster end with their job: there it goes on with those that had heard of it. */
static bool is_requeued(const struct sched *s, const struct job *job)
{
    return job->state == JOB_PLACING && s->mode->requeues_on_restart;
}

int sched_load_job(struct sched *s, const struct sched_job_row *row, struct ms_err *err)
{
    int rc = row_check(row, err);
    if (rc < 0) {
        return rc;
    }
    struct job *job = job_create(s, row);
    if (job == NULL || job_index(s, job) < 0) {
        if (job != NULL) {
            job_free(job);
        }
        return ms_fail(err, MS_E_NOMEM, "no memory for job %llu", (ull)row->id);
    }
    if ((rc = plan_load(s, job, row, err)) < 0) {
        return rc;
    }
    const bool had_begun = row->state == JOB_RUNNING || row->state == JOB_RECOVERING;
    if (row->cancel_text[0] != '\0' && had_begun) { /* goes on where it was */
        if (run_create(job) == NULL) {
            return ms_fail(err, MS_E_NOMEM, "no memory for the members of job %llu", (ull)row->id);
        }
        job->run->cancelling = true;
        ms_text_copy(job->run->cancel_text, sizeof(job->run->cancel_text), row->cancel_text);
    }
    if (job->state != JOB_QUEUED && !is_requeued(s, job) && row->results_bytes > 0 &&
        (rc = results_unpack(job, row, err)) < 0) {
        return rc;
    }
    s->next_job = row->id >= s->next_job ? row->id + 1 : s->next_job;
    s->generation = row->generation > s->generation ? row->generation : s->generation;
    return 0;
}

/* ---- members ------------------------------------------------------------------------------------
 */

static int member_take(const struct sched *s, struct job *job, const struct sched_member_row *row,
                       struct ms_err *err)
{
    if (row->rank >= job->workers || row->node_id[0] == '\0') {
        return ms_fail(
            err, MS_E_CONFIG,
            "job %llu of the database has %u workers and a member of rank %u (node '%s')",
            (ull)job->id, job->workers, row->rank, row->node_id);
    }
    if (is_requeued(s, job) || job->state == JOB_QUEUED) {
        return 0; /* it will be placed anew */
    }
    if (job->run == NULL && run_create(job) == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the members of job %llu", (ull)job->id);
    }
    struct member *member = &job->run->members[row->rank];
    ms_text_copy(member->node_id, sizeof(member->node_id), row->node_id);
    member->incarnation = row->incarnation;
    member->pid = row->pid; /* who started a process that never comes back finds it by that */
    free(member->host_name);
    free(member->principal);
    free(member->log_path);
    member->host_name = dup_text(row->host_name);
    member->principal = dup_text(row->principal);
    member->log_path = dup_text(row->log_path);
    enum rank_state state = job->state == JOB_SUCCEEDED   ? RANK_DONE
                            : job->state == JOB_FAILED    ? RANK_FAILED
                            : job->state == JOB_CANCELLED ? RANK_STOPPED
                                                          : RANK_MISSING;
    if (job_is_ended(job)) {
        member->step = row->step;
        if (row->state[0] != '\0' && !rank_state_parse(row->state, &state)) {
            return ms_fail(err, MS_E_CONFIG, "rank %u of job %llu of the database is in state %s",
                           row->rank, (ull)job->id, row->state);
        }
    }
    rank_begin(job->run, row->rank, state);
    return 0;
}

int sched_load_member(struct sched *s, const struct sched_member_row *row, struct ms_err *err)
{
    if (s->n_jobs > 0 && s->jobs[s->n_jobs - 1].id >= row->job) {
        struct job *job = job_find(s, row->job); /* wrong only if jobs came out of order */
        if (job != NULL && job->id == row->job) {
            return member_take(s, job, row, err);
        }
    }
    struct sched_member_row *orphans =
        ms_grow(s->orphans, s->n_orphans, 1, sizeof(*orphans), &s->orphans_room);
    if (orphans == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the members of job %llu", (ull)row->job);
    }
    s->orphans = orphans;
    s->orphans[s->n_orphans++] = *row;
    return 0;
}

/* ---- what belongs together ----------------------------------------------------------------------
 */

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const struct job_slot *)a)->id;
    uint64_t y = ((const struct job_slot *)b)->id;
    return x < y ? -1 : x > y;
}

static int by_end(const void *a, const void *b)
{
    const struct job *x = *(struct job *const *)a;
    const struct job *y = *(struct job *const *)b;
    if (x->ended_ms != y->ended_ms) {
        return x->ended_ms < y->ended_ms ? -1 : 1;
    }
    return x->id < y->id ? -1 : 1;
}

static int index_sort(struct sched *s, struct ms_err *err)
{
    bool sorted = true;
    for (size_t i = 1; i < s->n_jobs && sorted; i++) {
        sorted = s->jobs[i - 1].id < s->jobs[i].id;
    }
    if (!sorted) {
        qsort(s->jobs, s->n_jobs, sizeof(*s->jobs), by_id);
    }
    for (size_t i = 1; i < s->n_jobs; i++) {
        if (s->jobs[i - 1].id == s->jobs[i].id) {
            return ms_fail(err, MS_E_CONFIG, "the database holds job %llu twice",
                           (ull)s->jobs[i].id);
        }
    }
    return 0;
}

/* A vacant rank is not stored: its row names the node that had it, and that another job may have
 * taken since. The younger generation has it. */
static bool may_give_up(const struct job *a, const struct job *b)
{
    return a->generation < b->generation ? a->recovery : b->recovery;
}

static void lose_row(struct sched *s, struct hold *hold)
{
    struct job *job = hold->job;
    const uint32_t rank = hold->rank;
    hold_drop(s, hold);
    rank_set(job->run, rank, RANK_ON_LOSS);
    job->run->members[rank].has_state = job->run->members[rank].unheard = false;
}

/* Its nodes are expected back with exactly these ranks. */
static int expect_members(struct sched *s, struct job *job, struct ms_err *err)
{
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        if (job->run == NULL || job->run->members[rank].node_id[0] == '\0') {
            return ms_fail(err, MS_E_CONFIG,
                           "job %llu of the database is %s and its rank %u has no node: restore "
                           "the database from a copy",
                           (ull)job->id, sched_job_state_name(job->state), rank);
        }
        struct member *member = &job->run->members[rank];
        struct node *node = node_find(s, member->node_id);
        if (node != NULL && !may_give_up(job, hold_first(node)->job)) {
            return ms_fail(err, MS_E_CONFIG,
                           "node %s of the database holds rank %u of job %llu and rank %u of job "
                           "%llu: restore the database from a copy",
                           member->node_id, rank, (ull)job->id, hold_first(node)->rank,
                           (ull)hold_first(node)->job_id);
        }
        if (node != NULL && hold_first(node)->job->generation > job->generation) {
            rank_set(job->run, rank, RANK_ON_LOSS);
            continue;
        }
        if (node != NULL) {
            lose_row(s, hold_first(node));
        }
        node = node != NULL ? node : node_add(s, member->node_id);
        node->info.incarnation = member->incarnation;
        node->info.pid = member->pid;
        ms_text_copy(node->info.host_name, sizeof(node->info.host_name), member->host_name);
        ms_text_copy(node->info.principal, sizeof(node->info.principal), member->principal);
        host_join(s, node);
        holder_add(s, node);
        node->expected = "the scheduler's restart";
        hold_bind(hold_add(s, node, job->id, job->generation, rank), job);
        member->has_state = job->state == JOB_RUNNING; /* all were ready when that was written */
        member->unheard = true;
    }
    s->n_expected += job->workers;
    list_add_tail(&s->placed, &job->lane);
    s->n_placed++;
    return 0;
}

static int job_take_up(struct sched *s, struct job *job, struct ms_err *err)
{
    if (job_is_placed(job) && !is_requeued(s, job)) {
        return expect_members(s, job, err);
    }
    if (job->state == JOB_PLACING) {
        job->state =
            (enum sched_job_state)ms_machine_next(&states_of_jobs, JOB_PLACING, JOB_ON_REQUEUE);
        job->n_tries -= job->n_tries > 0; /* it was our end that made this one vain */
        s->due |= DUE_REQUEUES;
    }
    if (job->state == JOB_QUEUED) {
        queue_add(s, job);
    }
    bool named = false;
    for (uint32_t rank = 0; job->run != NULL && rank < job->workers && !named; rank++) {
        named = job->run->members[rank].node_id[0] != '\0';
    }
    if (job->run != NULL &&
        !named) { /* its ranks were trimmed, and with them what they had shown */
        run_free(job->run);
        job->run = NULL;
    }
    for (uint32_t rank = 0; job->run != NULL && rank < job->workers; rank++) {
        if (job->run->members[rank].state == RANK_MISSING) { /* over, and has no row */
            rank_set(job->run, rank, RANK_ON_LOSS);
        }
    }
    return 0;
}

/* A node that comes back costs a handshake, and all come at once. */
static int64_t adopt_ms(const struct sched *s)
{
    return s->cfg.lease_ms + (int64_t)s->n_expected * MS_ADOPT_NODE_MS;
}

static void adoptions_begin(struct sched *s)
{
    for (struct list *at = s->placed.next; at != &s->placed; at = at->next) {
        struct run *run = list_item(at, struct job, lane)->run;
        run_expect(s, run, adopt_ms(s), "the scheduler's restart");
        formers_expect(run, after_ms(s, adopt_ms(s)));
        if (run->job->state == JOB_PLACING || run->job->state == JOB_RECOVERING) {
            ready_expect(s, run);
        }
        const bool stands = run->job->state == JOB_RECOVERING || run->n_in[RANK_LOST] > 0;
        if (stands && !run->cancelling) { /* who has heard of the last round is not known */
            recover_again(s, run);
        } else if (stands) {
            recover_stand_stopping(s, run->job, "");
        }
        if (run->cancelling) {
            timer_arm(s, &run->grace, TIMER_GRACE,
                      after_ms(s, run->expect_ms + MS_CANCEL_GRACE_MS));
        }
    }
}

static int history_build(struct sched *s, struct ms_err *err)
{
    struct job **ended = malloc((s->n_jobs + 1) * sizeof(struct job *));
    if (ended == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for %zu jobs", s->n_jobs);
    }
    size_t n = 0;
    for (size_t i = 0; i < s->n_jobs; i++) {
        if (job_is_ended(s->jobs[i].job)) {
            ended[n++] = s->jobs[i].job;
        }
    }
    qsort(ended, n, sizeof(struct job *), by_end);
    for (size_t i = 0; i < n; i++) {
        job_keep(s, ended[i]);
    }
    free(ended);
    return 0;
}

int sched_load_done(struct sched *s, struct sched_time now, struct ms_err *err)
{
    s->now = now;
    int rc = index_sort(s, err);
    for (size_t i = 0; rc == 0 && i < s->n_orphans; i++) {
        struct job *job = job_find(s, s->orphans[i].job);
        rc = job != NULL ? member_take(s, job, &s->orphans[i], err)
                         : ms_fail(err, MS_E_CONFIG,
                                   "the database holds a member of job %llu, "
                                   "which it does not hold",
                                   (ull)s->orphans[i].job);
    }
    free(s->orphans);
    s->orphans = NULL;
    s->n_orphans = 0;
    for (size_t i = 0; rc == 0 && i < s->n_jobs; i++) {
        rc = job_take_up(s, s->jobs[i].job, err);
    }
    stalls_loaded(s);
    adoptions_begin(s);
    if (rc == 0) {
        rc = plans_loaded(s, err);
    }
    if (rc == 0) {
        rc = history_build(s, err);
    }
    if (rc == 0) {
        rc = s->mode->load(s, err);
    }
    if (rc == 0 && s->cfg.skip_ahead) {
        rc = counters_skip(s, err);
        s->due |= DUE_SKIP;
    }
    s->due |= s->cfg.has_database ? DUE_STARTED : 0;
    s->loading = false;
    kept_loaded(s);
    return rc;
}

void load_requeue(struct sched *s, struct job *job)
{
    if (job->state != JOB_QUEUED || job->generation == 0) {
        return;
    }
    emit_log(s, MS_LOG_NOTICE, "job.requeued job=%llu generation=%llu", (ull)job->id,
             (ull)job->generation);
    event_of_job(s, "job.requeued", job, "the scheduler restarted before it ran",
                 event_number(s, "generation", job->generation));
    job->generation = 0;
    if (!job->plan_given) {
        plan_detach(s, job);
    }
    emit_put_job(s, job, false);
    emit_drop_members(s, job);
}

/* Requeues were decided by loading; the first events carry them out, as many as each turn has room
 * for. Nothing is placed meanwhile: the turns before the last are full. */
void load_settle(struct sched *s)
{
    size_t at = job_slot_after(s, s->requeued);
    for (; at < s->n_jobs && !sched_tick_is_full(s); at++) {
        s->requeued = s->jobs[at].id;
        if (s->jobs[at].job != NULL) {
            load_requeue(s, s->jobs[at].job);
        }
    }
    if (at == s->n_jobs) {
        s->due &= ~(unsigned)DUE_REQUEUES;
    }
    s->due |= DUE_PLACE;
}

/* The writes that are missing may have given away ids and generations: none is given a second time,
 * for fewer than a gap of each lie between a copy and its loss. The same tick stores them all. */
void load_skip(struct sched *s)
{
    s->due &= ~(unsigned)DUE_SKIP;
    emit_put_meta(s, "next_job", s->next_job);
    emit_put_meta(s, "generation", s->generation);
    emit_put_meta(s, "next_event", s->last_event + 1);
    emit_log(s, MS_LOG_WARNING,
             "scheduler.skipped_ahead next_job=%llu generation=%llu ticks=%llu text=\"the database "
             "is a copy, moved, or lacks writes: what they gave away is not given again\"",
             (ull)s->next_job, (ull)s->generation, (ull)s->ticks);
    event_of_all(
        s, "scheduler.skipped_ahead", "",
        emit_text(s,
                  "the database is a copy, or lacks writes: jobs go on at %llu, generations "
                  "above %llu",
                  (ull)s->next_job, (ull)s->generation),
        event_number(s, "generation", s->generation));
}

void load_started(struct sched *s)
{
    s->due &= ~(unsigned)DUE_STARTED;
    event_of_all(s, "scheduler.started", "", s->software, "");
    if (s->n_expected > 0) {
        emit_log(
            s, MS_LOG_NOTICE,
            "scheduler.waits_for_nodes nodes=%u jobs=%u wait_ms=%lld most_ms=%lld: longer while "
            "nodes arrive",
            s->n_expected, s->n_placed, (long long)adopt_ms(s),
            (long long)(s->cfg.lease_ms + MS_ADOPT_MAX_MS));
    }
}
