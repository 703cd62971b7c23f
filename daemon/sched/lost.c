/* lost.c - what becomes of a job when something befalls one of its ranks
 *
 * The one place that decides it: whoever notices a loss says which rank, what kind and in which
 * words, and nothing more. */
#include "daemon/sched/state.h"

static const struct {
    enum rank_event event; /* RANK_EVENTS: its state says it already, or nothing is known of it */
    bool places_anew;      /* no step is lost yet while ranks get ready: the job may try again */
    bool yields;           /* to a cancel under way: what was asked for came true */
} policies[FAULTS] = {
    [FAULT_LOST] = {RANK_ON_LOSS, true, true},       [FAULT_MISSING] = {RANK_ON_LOSS, true, true},
    [FAULT_FAILED] = {RANK_ON_FAILURE, false, true}, [FAULT_COMPLAINT] = {RANK_EVENTS, true, true},
    [FAULT_UNTOLD] = {RANK_EVENTS, false, true},     [FAULT_DISAGREE] = {RANK_EVENTS, false, false},
};

void run_lost(struct sched *s, struct job *job, uint32_t rank, enum fault fault, int code,
              const char *text)
{
    struct run *run = job->run;
    if (policies[fault].event != RANK_EVENTS) {
        rank_set(run, rank, policies[fault].event);
    }
    if (run->cancelling && policies[fault].yields) {
        job_end(s, job, JOB_ON_CANCEL, MS_E_CANCELLED,
                emit_text(s, "%.120s; meanwhile %s", run->cancel_text, text));
    } else if (job->state == JOB_PLACING && policies[fault].places_anew && s->mode->places_anew &&
               job->n_tries < MS_PLACE_TRIES_MAX) {
        job_requeue(s, job, text);
    } else {
        job_end(s, job, JOB_ON_FAILURE, code != MS_OK ? code : MS_E_FAILED,
                job->n_tries > 1 ? emit_text(s, "%.300s; it was placed %u times and never started",
                                             text, job->n_tries)
                                 : text);
    }
}

void run_complain(struct sched *s, struct run *run, uint32_t rank, int code, const char *text)
{
    struct complaint *complaint = &run->complaint;
    if (complaint->made) {
        return;
    }
    complaint->made = true;
    complaint->rank = rank;
    complaint->code = code;
    copy_text(complaint->text, sizeof(complaint->text), text);
    timer_arm(s, &complaint->timer, TIMER_COMPLAINT, after_ms(s, MS_BLAME_MS));
    watch_stir(s, run->job);
}

void run_complaint_timeout(struct sched *s, struct run *run)
{
    const struct complaint *complaint = &run->complaint;
    run_lost(s, run->job, complaint->rank, FAULT_COMPLAINT, complaint->code,
             emit_text(s, "%s", complaint->text));
}

static void expect(struct sched *s, struct run *run, int64_t ms)
{
    run->window_ms = ms;
    run->registers_seen = s->n_registers;
    timer_arm(s, &run->adopt, TIMER_ADOPT, after_ms(s, ms));
}

void run_expect(struct sched *s, struct run *run, int64_t ms, const char *after)
{
    if (!timer_is_armed(&run->adopt) || run->adopt.at_ms < after_ms(s, ms)) {
        run->expect_ms = ms;
        run->expected = after;
        expect(s, run, ms);
    }
}

/* While others come back one after another, the ones that we miss may stand in line behind them: at
 * least ten a second, or it is no wave but a node that comes and goes. */
static bool wave_goes_on(const struct sched *s, const struct run *run)
{
    int64_t longest = s->cfg.lease_ms + (int64_t)MS_NODES_MAX * MS_ADOPT_NODE_MS;
    int64_t came = (int64_t)(s->n_registers - run->registers_seen);
    return came * 10 * MS_ADOPT_NODE_MS >= run->window_ms && run->expect_ms < longest;
}

void run_adopt_timeout(struct sched *s, struct run *run)
{
    struct job *job = run->job;
    uint32_t first = 0;
    while (run->members[first].state != RANK_MISSING) {
        first++;
    }
    if (wave_goes_on(s, run)) {
        int64_t more_ms = (int64_t)heartbeat_ms(s);
        run->expect_ms += more_ms;
        expect(s, run, more_ms);
        return;
    }
    const char *who = rank_words(s, job, first);
    if (run->n_in[RANK_MISSING] > 1) {
        who = emit_text(s, "%s and %u more", who, run->n_in[RANK_MISSING] - 1);
    }
    run_lost(s, job, first, FAULT_MISSING, MS_E_TIMEOUT,
             emit_text(s, "%s did not come back within %lld ms after %s; %s", who,
                       (long long)run->expect_ms, run->expected, log_words(s, job, first)));
}
