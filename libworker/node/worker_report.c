/* worker_report.c - what the scheduler hears of the rank: progress, ready, done */
#include "libworker/node/worker_impl.h"

#include "proto/clock.h"
#include "proto/line_out.h"
#include "proto/log.h"
#include "proto/state_words.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const phase_names[] = {
    [TRAIN_PREPARING] = MS_PHASE_PREPARING,
    [TRAIN_TRAINING] = MS_PHASE_TRAINING,
    [TRAIN_EVALUATING] = MS_PHASE_EVALUATING,
    [TRAIN_SAVING] = MS_PHASE_SAVING,
};
static const enum agent_phase agent_phases[] = {
    [TRAIN_PREPARING] = AGENT_PREPARING,
    [TRAIN_TRAINING] = AGENT_TRAINING,
    [TRAIN_EVALUATING] = AGENT_EVALUATING,
    [TRAIN_SAVING] = AGENT_SAVING,
};

static void send_progress(struct worker *worker, const struct train_progress *progress)
{
    Ms__Progress msg = MS__PROGRESS__INIT;
    char phase[16];
    snprintf(phase, sizeof(phase), "%s", phase_names[progress->phase]);
    msg.job = worker->job_id;
    msg.generation = worker->generation;
    msg.rank = worker->rank;
    msg.step = progress->step;
    msg.steps_total = progress->steps_total;
    msg.epoch = (uint32_t)progress->epoch;
    msg.epochs = (uint32_t)progress->epochs;
    msg.step_in_epoch = (uint32_t)progress->step_in_epoch;
    msg.steps_per_epoch = (uint32_t)progress->steps_per_epoch;
    msg.loss = (double)progress->loss;
    msg.samples_per_s = progress->samples_per_s;
    msg.step_ms = progress->step_ms;
    msg.comm_wait_ms = progress->comm_wait_ms;
    msg.phase = phase;
    msg.has_eval = progress->has_eval;
    msg.eval_loss = progress->eval_loss;
    msg.accuracy = progress->accuracy;
    msg.unsettled = progress->has_eval ? progress->unsettled : 0;
    msg.saved = progress->saved;
    (void)agent_send(worker->agent, MS_MSG_PROGRESS, &msg.base, NULL); /* the next one tells more */
}

void worker_on_progress(void *arg, const struct train_progress *progress)
{
    struct worker *worker = arg;
    agent_set_phase(worker->agent, worker->generation, agent_phases[progress->phase],
                    progress->step);
    if (worker->cfg->on_progress != NULL) {
        worker->cfg->on_progress(worker->cfg->arg, progress);
    }
    if (worker->rank != 0) {
        return;
    }
    int64_t now = ms_mono_ms();
    /* the first step of a round: a rank that is lost behind it is not lost in vain */
    int must = progress->step == worker->ready_step + 1 || progress->has_eval ||
               progress->phase != worker->last_phase || progress->step == progress->steps_total ||
               progress->step_in_epoch == progress->steps_per_epoch;
    if (must || now - worker->progress_ms >= MS_PROGRESS_MS) {
        worker->progress_ms = now;
        worker->last_phase = progress->phase;
        send_progress(worker, progress);
    }
}

/* At once, for the next step may be long: where it is may be all that is left. If nobody hears it,
 * the next Progress says it, too. */
void worker_on_saved(void *arg, uint64_t step)
{
    struct worker *worker = arg;
    Ms__Progress msg = MS__PROGRESS__INIT;
    msg.job = worker->job_id;
    msg.rank = worker->rank;
    msg.saved = step;
    if (msg.rank == 0) {
        (void)agent_send(worker->agent, MS_MSG_PROGRESS, &msg.base, NULL);
    }
    ms_log(MS_LOG_INFO, "rank.saved job=%" PRIu64 " rank=%u step=%" PRIu64, worker->job_id,
           worker->rank, step);
}

void worker_on_wait(void *arg, const char *text)
{
    const struct worker *worker = arg;
    char quoted[2 * MS_ERR_TEXT_MAX];
    ms_log(MS_LOG_WARNING, "rank.waits job=%" PRIu64 " rank=%u reason=%s, waiting", worker->job_id,
           worker->rank, ms_log_quote(quoted, sizeof(quoted), text));
    if (worker->log_fd != STDOUT_FILENO) {
        ms_line_say(worker->log_fd, "%s\n", text);
    }
}

void worker_on_note(void *arg, const char *text)
{
    const struct worker *worker = arg;
    char quoted[2 * MS_ERR_TEXT_MAX];
    ms_log(MS_LOG_NOTICE, "rank.note job=%" PRIu64 " rank=%u text=%s", worker->job_id, worker->rank,
           ms_log_quote(quoted, sizeof(quoted), text));
    if (worker->log_fd != STDOUT_FILENO) {
        ms_line_say(worker->log_fd, "%s\n", text);
    }
}

void worker_log_unsaved(struct worker *worker, int rc)
{
    const struct train_result *result = &worker->result;
    const char *why = result->unsaved < 0 ? result->kept : "";
    char text[MS_ERR_TEXT_MAX + 64];
    if (rc < 0 || strcmp(why, worker->unsaved) == 0) {
        return;
    }
    snprintf(worker->unsaved, sizeof(worker->unsaved), "%s", why);
    snprintf(text, sizeof(text), "%s%s",
             result->unsaved < 0 ? "all steps are made, and not all is saved: " : "", result->kept);
    worker_on_note(worker, text);
}

void worker_log_plan(struct worker *worker)
{
    const char *sha256 = train_plan_sha256(worker->train);
    ms_log(MS_LOG_INFO, "rank.plan job=%" PRIu64 " rank=%u plan=%s plan_sha256=%s", worker->job_id,
           worker->rank, MS_QUOTE(worker->plan_from), sha256);
    if (worker->log_fd != STDOUT_FILENO) {
        ms_line_say(worker->log_fd, "plan: %s, sha256 %s\n", worker->plan_from, sha256);
    }
}

int worker_send_plan(struct worker *worker, const char *text, struct ms_err *err)
{
    Ms__RankPlan msg = MS__RANK_PLAN__INIT;
    char *plan = strdup(text); /* messages have no const */
    if (plan == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a plan");
    }
    msg.job = worker->job_id;
    msg.generation = worker->generation;
    msg.rank = worker->rank;
    msg.plan = plan;
    int rc = agent_send(worker->agent, MS_MSG_RANK_PLAN, &msg.base, err);
    free(plan);
    return rc;
}

void worker_send_ready(struct worker *worker, const struct train_info *info)
{
    Ms__RankReady msg = MS__RANK_READY__INIT;
    char plan[MS_SHA256_HEX];
    uint8_t digest[MS_STATE_DIGEST_LEN]; /* messages have no const */
    memcpy(plan, info->plan_sha256, sizeof(plan));
    msg.job = worker->job_id;
    msg.generation = worker->generation;
    msg.rank = worker->rank;
    msg.plan_sha256 = plan;
    msg.log_path = worker->log_path;
    msg.steps_total = info->steps_total;
    msg.peak_bytes = info->peak_bytes;
    msg.steps_per_epoch = (uint32_t)info->steps_per_epoch;
    msg.epochs = (uint32_t)info->epochs;
    msg.step = info->step;
    msg.told = info->told;
    msg.state_from = info->state_from;
    msg.state_rank = (uint32_t)info->state_rank;
    msg.state_bytes = info->state_bytes;
    msg.state_ms = info->state_ms;
    msg.prepared_ms = info->prepared_ms;
    msg.joined_ms = info->joined_ms;
    if (info->has_digest) {
        memcpy(digest, info->state_digest, sizeof(digest));
        msg.state_digest = (ProtobufCBinaryData){sizeof(digest), digest};
    }
    struct ms_err err;
    if (agent_send(worker->agent, MS_MSG_RANK_READY, &msg.base, &err) < 0) {
        ms_log(MS_LOG_ERR, "worker.ready_not_sent reason=%s", MS_QUOTE(err.text));
    }
}

/* Ranks of a job that train for themselves may end with other weights: those of the job are rank
 * 0's, or of who was stopped and saves. */
static int has_weights_of_its_own(const struct worker *worker)
{
    return worker->result.weights_sha256[0] != '\0' && !worker->result.stopped &&
           worker->job->mode == JOB_STAND_ALONE && worker->rank > 0;
}

void worker_send_done(struct worker *worker, const struct life_verdict *verdict, int leaves)
{
    const struct train_result *result = &worker->result;
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    char reason[MS_TEXT_MAX];
    char weights[MS_SHA256_HEX];
    char plan[MS_SHA256_HEX];
    const int is_well = verdict->code == 0;
    snprintf(reason, sizeof(reason), "%s", is_well ? result->kept : verdict->text);
    snprintf(weights, sizeof(weights), "%s",
             has_weights_of_its_own(worker) ? "" : result->weights_sha256);
    memcpy(plan, result->plan_sha256, sizeof(plan));
    msg.job = worker->job_id;
    msg.generation = worker->generation;
    msg.rank = worker->rank;
    msg.code = is_well ? result->unsaved : verdict->code;
    msg.text = reason;
    msg.steps = result->steps;
    msg.weights_sha256 = weights;
    msg.plan_sha256 = plan;
    msg.seconds = result->seconds;
    msg.log_path = worker->log_path;
    msg.stopped = result->stopped;
    msg.leaving = leaves;
    struct ms_err err;
    if (agent_send(worker->agent, MS_MSG_RANK_DONE, &msg.base, &err) < 0) {
        ms_log(MS_LOG_ERR, "worker.done_not_sent reason=%s", MS_QUOTE(err.text));
    }
}
