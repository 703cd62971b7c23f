/* ready.c - how long the ranks of a placed job may take to load, plan and connect
 *
 * A rank's node beats whatever its trainer does. Joining a mesh and planning a large net take
 * minutes, so the bound is far above that; without one a rank that hangs kept its nodes for ever.
 */
#include "daemon/sched/state.h"

/* In a dynamic cluster the setting says how long workers may take to register, and is set to
 * seconds by who starts them together: getting ready has its built-in value at least. */
int64_t ready_bound_ms(const struct sched *s)
{
    const int64_t least = s->cfg.mode == SCHED_DYNAMIC ? MS_TOPO_TIMEOUT_S * INT64_C(1000) : 0;
    int64_t ms = s->cfg.topo_timeout_ms;
    return ms < 0 || ms > least ? ms : least;
}

void ready_expect(struct sched *s, struct run *run)
{
    if (ready_bound_ms(s) >= 0) {
        timer_arm(s, &run->ready, TIMER_READY, after_ms(s, ready_bound_ms(s)));
    }
}

bool ready_is_bounded(const struct sched *s)
{
    return ready_bound_ms(s) >= 0;
}

static void nobody_took(struct sched *s, struct job *job)
{
    uint32_t rank = 0;
    while (job->run->members[rank].hold != NULL) {
        rank++;
    }
    run_lost(s, job, rank, FAULT_UNREADY, MS_E_TIMEOUT,
             text_behind(s,
                         emit_text(s, "no node took rank %u within %lld s: it ", rank,
                                   (long long)(ready_bound_ms(s) / 1000)),
                         recover_words(s, job)));
}

static bool has_begun(const struct member *member)
{
    return member->has_plan || member->has_state;
}

/* The first one that prepares: while ranks wait for a plan it is rank 0. Of a job that recovers
 * those who hold the state wait for one that has no plan yet. job->workers: nobody. */
static uint32_t who_is_late(const struct run *run)
{
    uint32_t late = run->job->workers;
    for (uint32_t rank = run->job->workers; rank-- > 0;) {
        const struct member *member = &run->members[rank];
        const bool is_later =
            late == run->job->workers || has_begun(&run->members[late]) || !has_begun(member);
        late = member->state == RANK_PREPARING && is_later ? rank : late;
    }
    return late;
}

void ready_timeout(struct sched *s, struct run *run)
{
    struct job *job = run->job;
    const bool has_no_disk = !list_empty(&run->recovering) && !recover_has_disk(s, run);
    if (run->cancelling || has_no_disk) { /* its grace ends it; nobody could take a rank */
        timer_arm(s, &run->ready, TIMER_READY, after_ms(s, (int64_t)heartbeat_ms(s)));
        return;
    }
    if (calloff_may(run, job->workers)) {
        calloff_begin(s, job);
        return;
    }
    if (recover_n_vacant(run) > 0) {
        nobody_took(s, job);
        return;
    }
    const uint32_t rank = who_is_late(run);
    if (run->complaint.made || rank == job->workers) { /* who is missing, or to blame, has a time */
        timer_arm(s, &run->ready, TIMER_READY, after_ms(s, (int64_t)heartbeat_ms(s)));
        return;
    }
    const char *cause = emit_text(
        s,
        "%u of %u ranks are ready, and process %u there lives: look at journalctl -u 'msworker@*' "
        "on that host, or raise %s",
        run->n_in[RANK_READY], job->workers, run->members[rank].pid,
        s->cfg.mode == SCHED_DYNAMIC ? "MS_TOPO_TIMEOUT" : "topo_timeout_s");
    const char *what = run_awaits_plan(job) ? "did not choose the plan" : "did not get ready";
    run_lost(
        s, job, rank, FAULT_UNREADY, MS_E_TIMEOUT,
        rank_text(s, job, rank,
                  emit_text(s, "%s within %lld s", what, (long long)(ready_bound_ms(s) / 1000)),
                  cause));
}
