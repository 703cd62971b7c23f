/* agree.c - by which plan the ranks of a placed job run, and who is told of it
 *
 *     Assign{plan_from} -> rank 0 says RankPlan -> job and plan are stored -> Plan to all ranks
 *                       -> the plan came with the job ------------------------^
 *
 * No rank hears of a plan that a power cut could undo, and all hear of the same one. */
#include "daemon/sched/state.h"

#include <string.h>

bool node_knows_plans(const struct node *node)
{
    return node->info.level >= ms_wire_since(MS_MSG_PLAN);
}

/* Which obeys no plan of others, and refuses a job that recovers. */
bool job_is_for_all(const struct job *job)
{
    return !job->plan_given && !job->recovery;
}

enum ms_plan_from run_plan_from(const struct job *job)
{
    if (job->plan != NULL) { /* it came with the job, or its ranks have agreed on it before */
        return MS_PLAN_GIVEN;
    }
    if (job->state == JOB_RECOVERING) { /* each rank chose its own: one of them knew no other */
        return MS_PLAN_OWN;
    }
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct hold *hold = job->run->members[rank].hold;
        if (hold != NULL && hold->node->conn != NULL && !node_knows_plans(hold->node)) {
            return MS_PLAN_OWN;
        }
    }
    return MS_PLAN_RANK_0;
}

bool run_awaits_plan(const struct job *job)
{
    return job->state == JOB_PLACING && job->plan == NULL &&
           job->run->members[0].state == RANK_PREPARING && run_plan_from(job) == MS_PLAN_RANK_0;
}

/* ---- telling ------------------------------------------------------------------------------------
 */

static Ms__Plan plan_message(const struct job *job)
{
    Ms__Plan msg = MS__PLAN__INIT;
    msg.job = job->id;
    msg.generation = job->generation;
    msg.plan = job->plan->text;
    return msg;
}

/* Else it hears when it is back. */
static bool is_told(const struct member *member)
{
    const struct hold *hold = member->hold;
    return hold != NULL && hold->node->conn != NULL && (!member->has_plan || member->may_lack_plan);
}

/* One body for all ranks, as of Assign. */
bool run_tell_plan(struct sched *s, struct job *job)
{
    struct ms_err err = {0, ""};
    size_t tail_bytes = 0;
    const Ms__Plan msg = plan_message(job);
    const uint8_t *tail = emit_share(s, MS_MSG_PLAN, &msg.base, &tail_bytes, &err);
    if (tail == NULL) {
        run_lost(s, job, 0, FAULT_UNTOLD, err.code,
                 emit_text(s, "its ranks cannot be told of their plan: %s", err.text));
        return false;
    }
    const Ms__Plan own = MS__PLAN__INIT;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct member *member = &job->run->members[rank];
        if (is_told(member)) {
            emit_send_shared(s, member->hold->node->conn->id, MS_MSG_PLAN, 0, &own.base, tail,
                             tail_bytes);
        }
    }
    return true;
}

void run_tell_plan_again(struct sched *s, const struct hold *hold)
{
    if (hold->job->plan != NULL) {
        const Ms__Plan msg = plan_message(hold->job);
        emit_send(s, hold->node->conn->id, MS_MSG_PLAN, 0, &msg.base);
    }
}

/* ---- choosing -----------------------------------------------------------------------------------
 */

/* NULL, or why this rank has no plan to choose. */
static const char *choice_refusal(struct sched *s, const struct job *job, const Ms__RankPlan *msg)
{
    if (msg->rank != 0) {
        return emit_text(s, "rank %u says a plan, and rank 0 chooses", msg->rank);
    }
    if (job->plan_given) {
        return "its plan came with the job";
    }
    if (run_plan_from(job) == MS_PLAN_OWN) {
        return "each rank makes its own plan here, for one of them knows no other";
    }
    return plan_refusal(s, msg->plan);
}

static void choose(struct sched *s, struct job *job, const char *text)
{
    if (s->refusal[0] != '\0') { /* a plan may be larger than all that has to be written still */
        run_lost(s, job, 0, FAULT_UNREADY, MS_E_FULL,
                 emit_text(s, "its plan cannot be kept: %s", s->refusal));
        return;
    }
    plan_attach(s, job, text, false);
    emit_put_job(s, job, false);
    emit_log(s, MS_LOG_INFO, "job.planned job=%llu generation=%llu plan=%.16s bytes=%zu",
             (unsigned long long)job->id, (unsigned long long)job->generation,
             job->plan->bits_sha256, job->plan->bytes);
    if (run_tell_plan(s, job)) {
        watch_news(s);
    }
}

void on_rank_plan(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__RankPlan *msg = (const Ms__RankPlan *)event->msg;
    const struct hold *hold = rank_speaker(conn, msg->job, msg->generation, msg->rank);
    if (hold == NULL || hold->job->state != JOB_PLACING) {
        return; /* it ended meanwhile, or began */
    }
    struct job *job = hold->job;
    const char *text = choice_refusal(s, job, msg);
    if (text != NULL) {
        emit_error(s, conn->id, event->id, MS_E_INVALID, "RankPlan of job %llu: %.300s",
                   (unsigned long long)job->id, text);
    } else if (job->plan == NULL) {
        choose(s, job, msg->plan);
    } else if (plan_is(job, msg->plan)) { /* said again after a reconnect */
        run_tell_plan_again(s, hold);
    } else {
        run_lost(
            s, job, 0, FAULT_DISAGREE, MS_E_FAILED,
            rank_text(s, job, 0, "chose two plans for one start",
                      emit_text(s, "the ranks were told of %.16s...", job->plan->bits_sha256)));
    }
}

const char *run_plan_differs(struct sched *s, const struct job *job, const char *digest)
{
    if (digest[0] == '\0') { /* an independent training */
        return NULL;
    }
    if (job->plan != NULL) {
        return strcmp(digest, job->plan->bits_sha256) == 0
                   ? NULL
                   : emit_text(s,
                               "the ranks' plan %.16s... differs from %.16s..., of which they "
                               "were told",
                               digest, job->plan->bits_sha256);
    }
    return job->state == JOB_PLACING && run_plan_from(job) == MS_PLAN_RANK_0
               ? emit_text(s, "the ranks have plan %.16s..., and %s never said which one", digest,
                           rank_words(s, job, 0))
               : NULL;
}
