/* model_plan.c - the model's plans: who chooses one, what is stored, and that all hear of the same
 *
 * A plan is what its text says and nothing else; the disk holds each text once. */
#include "tests/sim/model.h"

#include "proto/digest.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

static const char *sha256_of(const char *text, size_t size)
{
    static char hex[MS_SHA256_HEX];
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256(text, size, digest);
    ms_sha256_hex(digest, hex);
    return hex;
}

const char *plan_bits(const char *text)
{
    const char *end = strstr(text, "section memory\n");
    return end != NULL ? sha256_of(text, (size_t)(end - text)) : "";
}

static struct sim_plan *stored(struct model *m, const char *sha256)
{
    for (size_t i = 0; i < m->plans.n; i++) {
        if (strcmp(m->plans.at[i].sha256, sha256) == 0) {
            return &m->plans.at[i];
        }
    }
    return NULL;
}

bool m_knows_plans(const struct m_node *node)
{
    return node->level > 0;
}

bool m_is_for_all(const struct m_job *job)
{
    return !job->plan_given && !job->recovery;
}

/* ---- said ---------------------------------------------------------------------------------------
 */

static enum ms_plan_from plan_from(struct model *m, const struct m_job *job)
{
    if (job->state == JOB_RECOVERING && job->plan[0] == '\0') {
        return MS_PLAN_OWN; /* as before it lost a rank */
    }
    for (uint32_t rank = 0; rank < job->workers && job->plan[0] == '\0'; rank++) {
        const struct m_node *node = m_node_find(m, job->ranks[rank].node);
        if (node != NULL && node->conn != 0 && !job->ranks[rank].vacant && !m_knows_plans(node)) {
            return MS_PLAN_OWN;
        }
    }
    return job->plan[0] != '\0' ? MS_PLAN_GIVEN : MS_PLAN_RANK_0;
}

bool m_awaits_plan(struct model *m, const struct m_job *job)
{
    return job->state == JOB_PLACING && job->plan[0] == '\0' && !job->ranks[0].missing &&
           !job->ranks[0].vacant && plan_from(m, job) == MS_PLAN_RANK_0;
}

void m_judge_plan_from(struct model *m, const struct m_job *job, uint32_t told)
{
    if (told != (uint32_t)plan_from(m, job)) {
        sim_fail(m->w, "model: the ranks of job %llu have their plan from %u, and are told %u",
                 (ull)job->id, plan_from(m, job), told);
    }
}

void m_on_rank_plan(struct model *m, const struct m_conn *conn, const Ms__RankPlan *msg)
{
    m->plan_said = (struct m_said){.from = M_NOBODY};
    struct m_rank *r = m_rank_of(m, conn, msg->job, msg->generation, msg->rank);
    struct m_job *job = m_job_find(m, msg->job);
    if (r == NULL || job->state != JOB_PLACING) {
        return;
    }
    bool chooses = msg->rank == 0 && !job->plan_given && plan_from(m, job) != MS_PLAN_OWN &&
                   strstr(msg->plan, "\nsection memory\n") != NULL;
    m->plan_said.job = job->id;
    m->plan_said.from = !chooses                            ? M_REFUSED
                        : job->plan[0] == '\0'              ? (m->refusing ? M_FULL : M_CHOSEN)
                        : strcmp(job->plan, msg->plan) == 0 ? M_AGAIN
                                                            : M_OTHER;
    if (m->plan_said.from == M_AGAIN || m->plan_said.from == M_REFUSED) {
        m->plan_said.conn = conn->id;
    }
}

/* ---- stored -------------------------------------------------------------------------------------
 */

void m_plan_put(struct model *m, const struct sched_plan_row *row)
{
    const char *said = "";
    if (m->event->kind == SCHED_EV_MESSAGE && m->event->type == MS_MSG_RANK_PLAN) {
        said = ((const Ms__RankPlan *)m->event->msg)->plan;
    } else if (m->event->kind == SCHED_EV_MESSAGE && m->event->type == MS_MSG_SUBMIT) {
        said = ((const Ms__Submit *)m->event->msg)->plan;
    }
    if (strcmp(said, row->text) != 0 || strlen(row->text) != row->bytes ||
        strcmp(sha256_of(row->text, row->bytes), row->sha256) != 0 ||
        stored(m, row->sha256) != NULL) {
        sim_fail(m->w, "model: plan %.16s is stored, which nobody said, or a second time",
                 row->sha256);
        return;
    }
    struct sim_plan *plan = M_MORE(m->plans, struct sim_plan);
    snprintf(plan->sha256, sizeof(plan->sha256), "%s", row->sha256);
    snprintf(plan->text, sizeof(plan->text), "%s", row->text);
}

void m_plan_drop(struct model *m, const struct sched_plan_row *row)
{
    struct sim_plan *plan = stored(m, row->sha256);
    if (plan == NULL) {
        sim_fail(m->w, "model: plan %.16s is dropped, and is not stored", row->sha256);
    } else {
        *plan = m->plans.at[--m->plans.n];
    }
}

/* What a job's row says of it, before the row's state is the job's. */
void m_judge_plan_row(struct model *m, struct m_job *job, const struct sched_job_row *row,
                      bool is_new)
{
    const struct sim_plan *plan = row->plan[0] != '\0' ? stored(m, row->plan) : NULL;
    const char *text = plan != NULL ? plan->text : "";
    const char *want = job->plan;
    if (row->plan[0] != '\0' && plan == NULL) {
        sim_fail(m->w, "model: job %llu has plan %.16s, which is not stored", (ull)job->id,
                 row->plan);
    }
    if (is_new) {
        const Ms__Submit *msg = (const Ms__Submit *)m->event->msg;
        want = m->w->mode == SCHED_DYNAMIC ? "" : msg->plan;
        job->plan_given = want[0] != '\0';
    } else if (m->plan_said.from == M_CHOSEN && m->plan_said.job == job->id) {
        want = ((const Ms__RankPlan *)m->event->msg)->plan;
    } else if (row->state == JOB_QUEUED && job->state != JOB_QUEUED && !job->plan_given) {
        want = "";
    }
    if (strcmp(want, text) != 0 || row->plan_given != job->plan_given) {
        sim_fail(m->w, "model: job %llu is stored with %s plan that is not its own", (ull)job->id,
                 row->plan_given   ? "a given"
                 : text[0] != '\0' ? "a"
                                   : "no");
    }
    snprintf(job->plan, sizeof(job->plan), "%s", text);
}

/* ---- told ---------------------------------------------------------------------------------------
 */

void m_judge_plan(struct model *m, const struct m_conn *conn, const Ms__Plan *msg)
{
    const struct m_node *node = m_node_of(m, conn);
    const struct m_job *job = m_job_find(m, msg->job);
    const bool stops = job != NULL && m_stops_at_step(job); /* it may know of an older one only */
    struct m_rank *r =
        node != NULL && job != NULL && msg->generation == job->generation
            ? m_rank_of(m, conn, msg->job, stops ? node->hold.generation : msg->generation,
                        node->hold.rank)
            : NULL;
    if (r == NULL && node != NULL && node->hold.job == msg->job && job != NULL &&
        msg->generation == job->generation && m_is_bound(m, node)) {
        r = &job->ranks[node->hold.rank]; /* stale for who has not heard of its generation */
    }
    if (r == NULL && stops && node != NULL && node->hold.job == msg->job &&
        m->event->conn == conn->id && m->event->type == MS_MSG_REGISTER &&
        msg->generation == job->generation) {
        r = &job->ranks[node->hold.rank]; /* it came back, and who holds the state has it since */
    }
    if (r == NULL || job->state == JOB_RUNNING || job->plan[0] == '\0' ||
        strcmp(job->plan, msg->plan) != 0 || !m_knows_plans(node)) {
        sim_fail(m->w, "model: %s hears a plan of job %llu, which is not for it",
                 node != NULL ? node->id : "a stranger", (ull)msg->job);
        return;
    }
    r->plan_told++;
}

/* All ranks that are there, once each: when it is chosen, or the job is placed with it; one that
 * comes back, or asks again, alone. */
void m_judge_plans_after(struct model *m)
{
    const struct m_said *said = &m->plan_said;
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *job = &m->jobs.at[i];
        bool placed = !job->dropped && (job->state == JOB_PLACING || job->state == JOB_RECOVERING);
        bool all = placed && ((said->from == M_CHOSEN && said->job == job->id) ||
                              (job->plan[0] != '\0' && job->assigned_now > 0));
        for (uint32_t rank = 0; placed && rank < job->workers; rank++) {
            struct m_rank *r = &job->ranks[rank];
            const struct m_node *node = m_node_find(m, r->node);
            bool here = node != NULL && node->conn != 0 && !r->missing && !r->lost && !r->vacant &&
                        node->incarnation == r->incarnation && m_knows_plans(node);
            bool alone = job->plan[0] != '\0' && here &&
                         ((said->from == M_AGAIN && said->conn == node->conn) || r->came_now);
            uint32_t want = (all && here && (!r->has_plan || r->may_lack_plan)) || alone;
            const bool twice = said->from == M_CHOSEN && job->assigned_now > 0;
            const uint32_t most = want + (all && here && (alone || twice)); /* of two generations */
            if (r->plan_told < want || r->plan_told > most) {
                sim_fail(m->w, "model: rank %u of job %llu hears its plan %u times, not %u", rank,
                         (ull)job->id, r->plan_told, want);
            }
        }
        for (uint32_t rank = 0; rank < job->n_ranks; rank++) {
            job->ranks[rank].plan_told = 0;
            job->ranks[rank].came_now = false;
        }
        if (!job->dropped && !m_is_ended(job) && said->from == M_OTHER && said->job == job->id) {
            sim_fail(m->w, "model: job %llu goes on, and rank 0 chose two plans", (ull)job->id);
        }
    }
    for (size_t i = 0; i < m->plans.n; i++) {
        bool is_used = false;
        for (size_t j = 0; j < m->jobs.n && !is_used; j++) {
            is_used =
                !m->jobs.at[j].dropped && strcmp(m->jobs.at[j].plan, m->plans.at[i].text) == 0;
        }
        if (!is_used) {
            sim_fail(m->w, "model: plan %.16s is kept, and is no job's", m->plans.at[i].sha256);
        }
    }
    m->plan_said = (struct m_said){.from = M_NOBODY};
}

/* Said by all ranks, and not what they were told. */
bool m_plan_differs(struct model *m, const struct m_job *job)
{
    const char *bits = plan_bits(job->plan);
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const char *digest = job->ranks[rank].plan;
        if (digest[0] != '\0' &&
            (job->plan[0] != '\0' ? strcmp(digest, bits) != 0 : m_awaits_plan(m, job))) {
            return true;
        }
    }
    return false;
}

void m_plans_start(struct model *m)
{
    const struct sim_disk *disk = &m->w->disk;
    m->plans.n = 0;
    m->plan_said = (struct m_said){.from = M_NOBODY};
    for (size_t i = 0; i < disk->n_plans; i++) {
        *M_MORE(m->plans, struct sim_plan) = disk->plans[i];
    }
}
