/* adopt.c - ranks whose nodes have to come back: how long they are waited for, and who is missing
 *
 *     a lease, and 10 ms for each node that the database names
 *       -> while nodes arrive, or stand before a crowded door: until none has for a while,
 *          MS_ADOPT_MAX_MS and a lease at the most
 *
 * The core sees who got through the door; of those before it, only that there are some. */
#include "daemon/sched/state.h"

/* What was moved on because we stood still may lie ahead: an arrival takes nothing of it away. */
static int64_t no_earlier(const struct sched *s, int64_t than_ms)
{
    return s->now.mono_ms > than_ms ? s->now.mono_ms : than_ms;
}

/* One node is one arrival, however often it registers. */
void node_arrived(struct sched *s, struct node *node)
{
    if (!node->came) {
        node->came = true;
        s->came_ms = s->n_came > 0 ? no_earlier(s, s->came_ms) : s->now.mono_ms;
        s->n_came++;
    }
}

void nodes_stand_outside(struct sched *s)
{
    s->crowded_ms = s->crowded ? no_earlier(s, s->crowded_ms) : s->now.mono_ms;
    s->crowded = true;
}

void run_expect(struct sched *s, struct run *run, int64_t ms, const char *after)
{
    if (!timer_is_armed(&run->adopt) || run->adopt.at_ms < after_ms(s, ms)) {
        run->expect_ms = ms;
        run->expected = after;
        timer_arm(s, &run->adopt, TIMER_ADOPT, after_ms(s, ms));
    }
}

void runs_expect_whole_lease(struct sched *s, int64_t ms)
{
    const int64_t until_ms = after_ms(s, ms + s->cfg.lease_ms);
    for (struct list *at = s->placed.next; at != &s->placed; at = at->next) {
        struct run *run = list_item(at, struct job, lane)->run;
        const int64_t at_ms = run->adopt.at_ms;
        if (timer_is_armed(&run->adopt) && at_ms < until_ms) {
            run->expect_ms += until_ms - at_ms;
            timer_arm(s, &run->adopt, TIMER_ADOPT, until_ms);
        }
    }
}

/* Who was turned away at the door comes again within this, his longest wait. */
enum { CROWD_PAUSE_MS = MS_RECONNECT_MAX_MS + MS_HANDSHAKE_MS };

/* From then on nobody is on his way any more: a pause after the last who came, and one after the
 * last who could not get in. More nodes than the door holds at once turn each other away.
 * INT64_MIN: nobody was. */
static int64_t quiet_ms(const struct sched *s)
{
    bool crowd = s->n_expected > MS_HALF_OPEN_MAX || s->n_came > MS_HALF_OPEN_MAX;
    int64_t pause = crowd ? CROWD_PAUSE_MS : (int64_t)heartbeat_ms(s);
    int64_t quiet = s->n_came > 0 ? s->came_ms + pause : INT64_MIN;
    bool later = s->crowded && s->crowded_ms + CROWD_PAUSE_MS > quiet;
    return later ? s->crowded_ms + CROWD_PAUSE_MS : quiet;
}

/* While nodes arrive one after another, those that we miss may stand in line behind them, idle ones
 * included. One that comes and goes arrives once. 0: it was long enough, or too long. Counted from
 * the deadline that has passed, for we may look at it late. */
static int64_t more_ms(const struct sched *s, const struct run *run)
{
    int64_t quiet = quiet_ms(s);
    if (quiet == INT64_MIN) {
        return 0;
    }
    int64_t more = quiet - run->adopt.at_ms;
    int64_t room = s->cfg.lease_ms + MS_ADOPT_MAX_MS - run->expect_ms;
    more = more < room ? more : room;
    return run->adopt.at_ms + more > s->now.mono_ms ? more : 0;
}

/* It did come, and we sent it away. */
static const char *refusal_of(const struct run *run, uint32_t rank)
{
    const struct hold *hold = run->members[rank].hold;
    return hold != NULL && hold->node->state == NODE_NEW ? hold->node->reason : "";
}

static void lose_missing(struct sched *s, struct job *job, uint32_t rank)
{
    const struct run *run = job->run;
    run_lost(
        s, job, rank, FAULT_MISSING, MS_E_TIMEOUT,
        rank_text(s, job, rank, "was lost",
                  emit_text(s, "it did not come back within %lld ms after %s%s%s",
                            (long long)run->expect_ms, run->expected,
                            refusal_of(run, rank)[0] != '\0' ? ": " : "", refusal_of(run, rank))));
}

/* Its job goes on without them, if it can. */
static void lose_all_missing(struct sched *s, struct job *job)
{
    for (uint32_t rank = 0; job_is_placed(job) && rank < job->workers; rank++) {
        if (job->run->members[rank].state == RANK_MISSING) {
            lose_missing(s, job, rank);
        }
    }
}

void run_adopt_timeout(struct sched *s, struct run *run)
{
    struct job *job = run->job;
    uint32_t first = 0;
    while (run->members[first].state != RANK_MISSING) {
        first++;
    }
    int64_t more = more_ms(s, run);
    if (more > 0) {
        emit_log(s, MS_LOG_NOTICE,
                 "job.waits_for_nodes job=%llu missing=%u node=%s more_ms=%lld: %s",
                 (unsigned long long)job->id, run->n_in[RANK_MISSING],
                 emit_quote(s, run->members[first].node_id), (long long)more,
                 s->crowded && s->crowded_ms + CROWD_PAUSE_MS >= run->adopt.at_ms + more
                     ? "the door is crowded, it may stand before it"
                     : "others still come back");
        run->expect_ms += more;
        timer_arm(s, &run->adopt, TIMER_ADOPT, run->adopt.at_ms + more);
        return;
    }
    if (recover_may(s, job, first, FAULT_MISSING)) {
        lose_all_missing(s, job);
        return;
    }
    const char *who = rank_words(s, job, first);
    if (refusal_of(run, first)[0] != '\0') {
        run_lost(s, job, first, FAULT_MISSING, MS_E_REFUSED,
                 emit_text(s, "the scheduler refused %s after %s: %s", who, run->expected,
                           refusal_of(run, first)));
        return;
    }
    if (run->n_in[RANK_MISSING] > 1) {
        who = emit_text(s, "%s and %u more", who, run->n_in[RANK_MISSING] - 1);
    }
    run_lost(s, job, first, FAULT_MISSING, MS_E_TIMEOUT,
             emit_text(s, "%s did not come back within %lld ms after %s; %s", who,
                       (long long)run->expect_ms, run->expected, log_words(s, job, first)));
}

const char *awaited_words(struct sched *s)
{
    enum { SHOWN = 8 };
    const char *names = "";
    uint32_t n = 0;
    uint32_t jobs = 0;
    for (struct list *at = s->placed.next; at != &s->placed; at = at->next) {
        const struct job *job = list_item(at, struct job, lane);
        uint32_t missing = job->run->n_in[RANK_MISSING];
        for (uint32_t rank = 0; missing > 0 && rank < job->workers && n < SHOWN; rank++) {
            if (job->run->members[rank].state == RANK_MISSING) {
                names = emit_text(s, "%s %s", names, job->run->members[rank].node_id);
                missing--;
                n++;
            }
        }
        n += missing;
        jobs += job->run->n_in[RANK_MISSING] > 0;
    }
    return n == 0 ? ""
                  : emit_text(s, "%u node%s of %u job%s to come back:%s%s", n, n == 1 ? "" : "s",
                              jobs, jobs == 1 ? "" : "s", names, n > SHOWN ? " ..." : "");
}
