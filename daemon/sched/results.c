/* results.c - what a job showed, as its row keeps it: a JobResults of cluster.proto
 *
 * Of a job that goes on, too, but for its progress, which its ranks tell again. */
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

static Ms__Progress *progress_of(struct sched *s, const struct progress *progress)
{
    Ms__Progress *msg = emit_alloc(s, sizeof(*msg));
    *msg = progress->msg;
    msg->phase = (char *)progress->phase;
    return msg;
}

void results_pack(struct sched *s, const struct run *run, struct sched_job_row *row)
{
    Ms__JobResults msg = MS__JOB_RESULTS__INIT;
    if (job_is_ended(run->job) && run->has_progress) {
        msg.progress = progress_of(s, &run->progress);
    }
    msg.evals = emit_alloc(s, (run->n_evals + 1) * sizeof(Ms__Progress *));
    for (size_t i = 0; i < run->n_evals; i++) {
        msg.evals[msg.n_evals++] = progress_of(s, &run->evals[i]);
    }
    msg.recoveries = run->n_recoveries;
    msg.ranks_lost = run->n_ranks_lost;
    msg.recovering_ms = run->recovering_ms;
    msg.recovering_least = run->recovering_least;
    msg.again_from = run->again_from;
    msg.again_to = run->again_to;
    msg.saver = run->saver;
    msg.last_step = run->last_step;
    Ms__Home home = MS__HOME__INIT;
    home.node_id = (char *)run->home.node_id;
    home.principal = (char *)run->home.principal;
    home.folder = run->home.folder;
    home.step = run->home.step;
    const bool has_home = run->home.step > 0 && !run->home.is_guess;
    msg.home = has_home ? &home : NULL;
    formers_pack(s, run, &msg);
    row->results_bytes = ms__job_results__get_packed_size(&msg);
    uint8_t *bytes = emit_alloc(s, row->results_bytes + 1);
    ms__job_results__pack(&msg, bytes);
    row->results = bytes;
}

/* ---- evaluations --------------------------------------------------------------------------------
 */

/* By epoch; of too many the oldest goes. False: it is there, or older than all of them. */
static bool eval_insert(struct run *run, const struct progress *progress)
{
    size_t at = run->n_evals;
    while (at > 0 && run->evals[at - 1].msg.epoch > progress->msg.epoch) {
        at--;
    }
    const bool is_there = at > 0 && run->evals[at - 1].msg.epoch == progress->msg.epoch;
    if (is_there || (at == 0 && run->n_evals == MS_EVALS_MAX)) {
        return false;
    }
    if (run->evals == NULL) {
        run->evals = memory_take(MS_EVALS_MAX * sizeof(*run->evals));
    }
    if (run->n_evals == MS_EVALS_MAX) {
        memmove(run->evals, run->evals + 1, (MS_EVALS_MAX - 1) * sizeof(*run->evals));
        run->n_evals--;
        at--;
    }
    memmove(run->evals + at + 1, run->evals + at, (run->n_evals - at) * sizeof(*run->evals));
    run->evals[at] = *progress;
    run->n_evals++;
    return true;
}

/* An epoch that is trained again is evaluated again, and so are those behind it. */
static void evals_go_back(struct run *run, uint32_t epoch)
{
    while (run->n_evals > 0 && run->evals[run->n_evals - 1].msg.epoch >= epoch) {
        run->n_evals--;
    }
}

/* A write that follows another at once waits for those that come meanwhile. */
void results_changed(struct sched *s, struct run *run)
{
    if (!timer_is_armed(&run->evals_due)) {
        const int64_t next_ms = run->evals_stored_ms + MS_EVALS_STORE_MS;
        timer_arm(s, &run->evals_due, TIMER_EVALS,
                  next_ms > s->now.mono_ms ? next_ms : s->now.mono_ms);
    }
}

void results_note_eval(struct sched *s, struct run *run, const struct progress *progress,
                       bool is_again)
{
    if (!is_again) {
        evals_go_back(run, progress->msg.epoch);
    }
    if (eval_insert(run, progress)) {
        results_changed(s, run);
    }
}

void results_store(struct sched *s, struct run *run)
{
    if (s->refuses_ends) { /* its end will store them */
        timer_arm(s, &run->evals_due, TIMER_EVALS, after_ms(s, MS_ROOM_LOOK_MS));
        return;
    }
    run->evals_stored_ms = s->now.mono_ms;
    emit_put_job(s, run->job, false);
}

/* ---- read back ----------------------------------------------------------------------------------
 */

void progress_take(struct progress *progress, const Ms__Progress *msg)
{
    progress->msg = *msg;
    progress->msg.base.n_unknown_fields = 0;
    progress->msg.base.unknown_fields = NULL;
    progress->msg.phase = NULL;
    ms_text_copy(progress->phase, sizeof(progress->phase), msg->phase);
}

int results_unpack(struct job *job, const struct sched_job_row *row, struct ms_err *err)
{
    Ms__JobResults *msg = ms__job_results__unpack(NULL, row->results_bytes, row->results);
    if (msg == NULL || msg->n_evals > MS_EVALS_MAX) {
        ms__job_results__free_unpacked(msg, NULL);
        return ms_fail(err, MS_E_CONFIG, "the results of job %llu of the database cannot be read",
                       (unsigned long long)row->id);
    }
    struct run *run = job->run != NULL ? job->run : run_create(job);
    int rc = run == NULL ? MS_E_NOMEM : 0;
    if (rc == 0 && msg->n_evals > 0) {
        run->evals = calloc(MS_EVALS_MAX, sizeof(*run->evals));
        rc = run->evals == NULL ? MS_E_NOMEM : 0;
    }
    if (rc == 0) {
        run->n_recoveries = msg->recoveries;
        run->n_ranks_lost = msg->ranks_lost;
        run->recovering_ms = msg->recovering_ms;
        run->recovering_least = msg->recovering_least;
        run->again_from = msg->again_from;
        run->again_to = msg->again_to;
        run->saver = msg->saver < job->workers ? msg->saver : 0;
        run->last_step = msg->last_step;
        if (msg->home != NULL) {
            ms_text_copy(run->home.node_id, sizeof(run->home.node_id), msg->home->node_id);
            ms_text_copy(run->home.principal, sizeof(run->home.principal), msg->home->principal);
            run->home.folder = msg->home->folder;
            run->home.step = msg->home->step;
        }
        formers_unpack(run, msg);
    }
    for (size_t i = 0; rc == 0 && i < msg->n_evals; i++) {
        progress_take(&run->evals[run->n_evals++], msg->evals[i]);
    }
    if (rc == 0 && msg->progress != NULL) {
        run->has_progress = true;
        progress_take(&run->progress, msg->progress);
    }
    ms__job_results__free_unpacked(msg, NULL);
    return rc == 0 ? 0
                   : ms_fail(err, MS_E_NOMEM, "no memory for the results of job %llu",
                             (unsigned long long)row->id);
}
