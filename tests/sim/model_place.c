/* model_place.c - the model's queue: whose turn it is, who gets which rank, what is told and kept
 */
#include "tests/sim/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

/* ---- rows ---------------------------------------------------------------------------------------
 */

static bool may_become(enum sched_job_state from, enum sched_job_state to)
{
    switch (from) {
    case JOB_QUEUED:
        return to == JOB_PLACING || to == JOB_CANCELLED;
    case JOB_PLACING:
        return to == JOB_RUNNING || to == JOB_QUEUED || to == JOB_FAILED || to == JOB_CANCELLED;
    case JOB_RUNNING:
        return to == JOB_SUCCEEDED || to == JOB_FAILED || to == JOB_CANCELLED;
    case JOB_RECOVERING:
        return to == JOB_RUNNING || to == JOB_SUCCEEDED || to == JOB_FAILED || to == JOB_CANCELLED;
    default:
        return false;
    }
}

static const char *state_name(enum sched_job_state state)
{
    return sched_job_state_name(state);
}

bool m_has_no_place(const struct model *m, const struct m_conn *conn, size_t bytes)
{
    const struct world *w = m->w;
    uint32_t queued = 0;
    uint32_t own = 0;
    size_t all_bytes = bytes;
    size_t own_bytes = bytes;
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *job = &m->jobs.at[i];
        if (!job->dropped && !m_is_ended(job)) {
            bool is_own = strcmp(job->owner, conn->peer.who.id) == 0;
            queued += job->state == JOB_QUEUED;
            own += is_own;
            all_bytes += job->spec_bytes;
            own_bytes += is_own ? job->spec_bytes : 0;
            size_t plan = job->state != JOB_RUNNING || job->recovery ? strlen(job->plan) : 0;
            all_bytes += plan;
            own_bytes += is_own ? plan : 0;
        }
    }
    uint32_t places = w->jobs_queued_max - (conn->is_admin ? 0 : w->jobs_admin);
    size_t most = (size_t)w->specs_mib << 20;
    size_t admin_more = conn->is_admin ? (size_t)MS_SPECS_ADMIN_MIB << 20 : 0;
    return (w->jobs_queued_max > 0 && (queued >= places || own >= w->jobs_owner_max)) ||
           (most > 0 && (own_bytes > most || all_bytes > most + admin_more));
}

/* A new job: exactly what was submitted, under the name of who submitted it. */
static void judge_new(struct model *m, const struct sched_job_row *row)
{
    const struct m_conn *conn = m_conn_find(m, m->event->conn);
    const Ms__Submit *msg = (const Ms__Submit *)m->event->msg;
    bool submitted = m->event->kind == SCHED_EV_MESSAGE && m->event->type == MS_MSG_SUBMIT;
    size_t plan_bytes = submitted ? strlen(msg->plan) : 0;
    bool no_place = conn != NULL && m_has_no_place(m, conn, row->spec_bytes + plan_bytes);
    struct m_job *job = M_MORE(m->jobs, struct m_job);
    job->unstored_at = SIM_NEVER;
    if (row->state != JOB_QUEUED || row->id <= m->last_job || row->spec == NULL ||
        (!submitted && m->w->mode != SCHED_DYNAMIC) || row->generation != 0) {
        sim_fail(m->w, "model: job %llu comes out of nowhere, %s, after job %llu", (ull)row->id,
                 state_name(row->state), (ull)m->last_job);
        return;
    }
    if (submitted && (row->workers != msg->workers || row->priority != msg->priority ||
                      row->recovery != (msg->recovery != 0) || strcmp(row->name, msg->name) != 0 ||
                      strcmp(row->key, msg->key) != 0 || strcmp(row->run_dir, msg->run_dir) != 0 ||
                      row->spec_bytes != msg->job_json.len ||
                      memcmp(row->spec, msg->job_json.data, row->spec_bytes) != 0)) {
        sim_fail(m->w, "model: job %llu is not what was submitted", (ull)row->id);
    }
    if (submitted && person_is_refused(conn->is_admin, row->priority)) {
        sim_fail(m->w, "model: job %llu of %s has priority %d", (ull)row->id, row->owner,
                 row->priority);
    }
    if (no_place) {
        sim_fail(m->w, "model: job %llu of %s is taken, and there is no place for it", (ull)row->id,
                 row->owner);
    }
    if (m->draining || m->refusing) {
        sim_fail(m->w, "model: job %llu is taken while the scheduler %s", (ull)row->id,
                 m->draining ? "shuts down" : "cannot write");
    }
    job->id = m->last_job = row->id;
    m_judge_plan_row(m, job, row, true);
    job->changed = true;
    job->who = conn != NULL ? conn->who : 0;
    job->workers = row->workers;
    job->priority = row->priority;
    job->recovery = row->recovery;
    job->blame_at = job->save_again_at = job->tardy_at = SIM_NEVER;
    job->missing_since = SIM_NEVER;
    memcpy(job->name, row->name, sizeof(job->name));
    memcpy(job->owner, row->owner, sizeof(job->owner));
    memcpy(job->key, row->key, sizeof(job->key));
    memcpy(job->run_dir, row->run_dir, sizeof(job->run_dir));
    job->spec = malloc(row->spec_bytes + 1);
    memcpy(job->spec, row->spec, row->spec_bytes);
    job->spec_bytes = row->spec_bytes;
    static const char here[] = "\"checkpoint\":{\"directory\":\"c\"";
    job->has_home =
        job->recovery && memmem(job->spec, job->spec_bytes, here, sizeof(here) - 1) != NULL;
    for (size_t i = 0; submitted && i + 1 < m->jobs.n; i++) {
        const struct m_job *other = &m->jobs.at[i];
        if ((other->who == job->who) != (strcmp(other->owner, job->owner) == 0)) {
            sim_fail(m->w, "model: jobs %llu and %llu: their owners are %s and %s, of %s",
                     (ull)other->id, (ull)job->id, other->owner, job->owner,
                     other->who == job->who ? "one person" : "two persons");
        }
    }
}

void m_judge_row(struct model *m, const struct sched_job_row *row)
{
    struct m_job *job = m_job_find(m, row->id);
    if (job == NULL) {
        judge_new(m, row);
        return;
    }
    m_judge_plan_row(m, job, row, false);
    if (row->state != job->state && !may_become(job->state, row->state)) {
        sim_fail(m->w, "model: job %llu is %s and becomes %s", (ull)job->id, state_name(job->state),
                 state_name(row->state));
    }
    if (m_is_ended(job) || strcmp(row->owner, job->owner) != 0 || strcmp(row->key, job->key) != 0 ||
        row->workers != job->workers || row->priority != job->priority ||
        row->recovery != job->recovery) {
        sim_fail(m->w, "model: job %llu is rewritten, %s", (ull)job->id, state_name(job->state));
    }
    if (row->state == JOB_QUEUED && job->state == JOB_PLACING) {
        struct m_stop stop = {
            .job = job->id, .generation = job->generation, .code = MS_E_ABORTED, .any_text = true};
        m_host_blame(m, job, row);
        m_leaving_excuse(m, job, row);
        if (!m_may_requeue(m, job)) {
            sim_fail(m->w, "model: job %llu goes back into the queue", (ull)job->id);
        }
        m_ranks_stop(m, job, &stop);
        job->tries -= job->cut_off;
        job->cut_off = false;
        job->n_ranks = 0;
        job->has_members = true;
        job->missing_since = SIM_NEVER;
        job->blame_at = SIM_NEVER;
    }
    if (row->state == JOB_PLACING && job->state == JOB_QUEUED) {
        if (row->generation <= m->generation) {
            sim_fail(m->w, "model: job %llu is placed in generation %llu, after %llu", (ull)job->id,
                     (ull)row->generation, (ull)m->generation);
        }
        m->placing = job->id;
        job->tries++;
        m_leaving_meet(m, job);
        job->placed_at = m->mono;
        job->placed_stretch = m->stretch;
        m->generation = row->generation;
    }
    const bool is_round = m_is_placed(job) && row->generation != job->generation &&
                          (row->state == JOB_PLACING || row->state == JOB_RECOVERING);
    if (is_round) {
        m_begin_round(m, job, row);
    }
    bool ends =
        row->state != job->state &&
        (row->state == JOB_SUCCEEDED || row->state == JOB_FAILED || row->state == JOB_CANCELLED);
    if (ends && job->state == JOB_PLACING && row->state == JOB_FAILED) {
        m_host_blame(m, job, row);
        m_leaving_excuse(m, job, row);
    }
    if (ends) {
        m_judge_end(m, job, row);
        m_judge_results(m, job, row);
        job->ended_now = true;
        m->is_over = m->w->mode == SCHED_DYNAMIC;
        job->ended_ms = row->ended_ms;
        if (row->ended_ms <= 0 || row->reason[0] == '\0') {
            sim_fail(m->w, "model: job %llu ends without a reason or a time", (ull)job->id);
        }
    }
    if (m_is_placed(job) && row->state != JOB_QUEUED) {
        m_judge_evals(m, job, row);
        m_judge_end_known(m, job, row);
    }
    if (m_is_placed(job) && row->state == JOB_RECOVERING) {
        m_judge_formers(m, job, row);
    }
    if (row->state == JOB_RUNNING && job->state != JOB_RUNNING && job->recovery) {
        m_goes_on(m, job);
    } else if (row->state == JOB_RUNNING && job->state != JOB_RUNNING) {
        m_note_way_back(job);
    }
    if (row->state == JOB_RUNNING && job->state != JOB_RUNNING) {
        const uint64_t from = job->ranks[0].ready_step;
        const bool is_none = job->home_guess || from == 0;
        job->home_step = is_none ? 0 : from < job->home_step ? from : job->home_step;
        job->home_guess = false;
        job->told = job->ranks[0].ready_step;
        job->ran_before = job->ran_in;
        job->ran_in = row->generation;
        job->tries = job->leaves = job->met_least = job->met_most = 0;
        m_hosts_work(m, job);
        const bool is_judged = m_stops_at_step(job) && m_blame_is_due(m, job); /* and is nothing */
        if (job->blame_at != SIM_NEVER && !is_judged) {
            sim_fail(m->w, "model: job %llu is started, and a rank complained", (ull)job->id);
        }
    }
    if (row->n_tries != job->tries) {
        sim_fail(m->w, "model: job %llu was placed %u times in vain, and %u are written",
                 (ull)job->id, job->tries, row->n_tries);
    }
    if (row->state == JOB_RUNNING && job->state == JOB_PLACING && row->started_ms <= 0) {
        sim_fail(m->w, "model: job %llu runs since never", (ull)job->id);
    }
    job->cancel_stored = row->cancel_text[0] != '\0';
    job->changed = job->changed || row->state != job->state;
    job->state = row->state;
    job->generation = row->generation;
    job->code = row->code;
    snprintf(job->reason, sizeof(job->reason), "%s", row->reason);
}

/* ---- whose turn ---------------------------------------------------------------------------------
 */

bool m_queue_before(const struct m_job *a, const struct m_job *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->id < b->id;
}

/* Nobody overtakes, except one that needs more nodes than the cluster has. */
static void judge_turn(struct model *m, const struct m_job *job)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *other = &m->jobs.at[i];
        bool due = m->doubt_began != SIM_NEVER && m->mono >= m->doubt_began + m->lease_least_ms;
        bool too_large =
            other->workers > m->believed_low || (due && other->workers > m_count_usable(m, false));
        if (!other->dropped && other->state == JOB_QUEUED && m_queue_before(other, job) &&
            !too_large) {
            sim_fail(m->w, "model: job %llu (priority %d) overtakes job %llu (priority %d)",
                     (ull)job->id, job->priority, (ull)other->id, other->priority);
        }
    }
    if (m_recovery_wants_nodes(m, false)) {
        sim_fail(m->w, "model: job %llu is placed, and another one waits for ranks that it lost",
                 (ull)job->id);
    }
    if (m->draining || m->refusing) {
        sim_fail(m->w, "model: job %llu is placed while the scheduler %s", (ull)job->id,
                 m->draining ? "shuts down" : "cannot write");
    }
}

static const struct m_job *queue_first(const struct model *m)
{
    const struct m_job *first = NULL;
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *job = &m->jobs.at[i];
        if (!job->dropped && job->state == JOB_QUEUED && job->workers <= m->believed &&
            (first == NULL || m_queue_before(job, first))) {
            first = job;
        }
    }
    return first;
}

/* Those of a host that lost a rank a moment ago counted until then, with one that came just now. */
static uint32_t count_usable_before(const struct model *m)
{
    uint32_t n = m_count_usable(m, true);
    for (size_t i = 0; i < m->nodes.n; i++) {
        const struct m_node *node = &m->nodes.at[i];
        n += node->conn != 0 && !node->leaving && !m_is_usable(m, node, true) &&
             m_is_paused_now(m, node);
    }
    return n;
}

static void count_nodes(struct model *m)
{
    uint32_t least = m_count_usable(m, false);
    uint32_t most = count_usable_before(m);
    bool doubt = m->doubt_began != SIM_NEVER;
    bool fewer = least < m->counted_low || most < m->counted;
    m->doubt_renewed = fewer ? m->mono : m->doubt_renewed; /* a new one began */
    m->counted_low = least;
    m->counted = most;
    m->doubt_most = doubt && m->doubt_most > most ? m->doubt_most : most;
    if (doubt && m->mono >= m->doubt_began + m->lease_least_ms) {
        m->believed_low = least;
    }
    /* one doubt may follow the other: of who is first then, and of those behind him */
    if (doubt && m->event->kind == SCHED_EV_TIME &&
        m->mono >= m->doubt_renewed + 3 * m->lease_most_ms) {
        m->believed = m->doubt_most; /* it may have been over when there were as many */
        m->doubt_most = most;
        m->doubt_renewed = m->mono;
    }
    m->believed_low = least > m->believed_low ? least : m->believed_low;
    m->believed = most > m->believed ? most : m->believed;
}

static bool all_know_plans(const struct model *m)
{
    for (size_t i = 0; i < m->nodes.n; i++) {
        if (m->nodes.at[i].conn != 0 && !m_knows_plans(&m->nodes.at[i])) {
            return false;
        }
    }
    return true;
}

/* Whoever is first and fits is placed. */
void m_judge_queue(struct model *m)
{
    bool moved = false;
    count_nodes(m);
    for (size_t i = 0; i < m->jobs.n; i++) {
        if (m->jobs.at[i].has_members) {
            sim_fail(m->w, "model: job %llu is queued again, and its ranks stay stored",
                     (ull)m->jobs.at[i].id);
            m->jobs.at[i].has_members = false;
        }
    }
    for (size_t i = 0; i < m->jobs.n; i++) {
        moved = moved || m->jobs.at[i].changed;
    }
    const struct m_job *first = queue_first(m);
    if (first == NULL || first->workers <= m_count_usable(m, false)) {
        m->doubt_began = SIM_NEVER;
    } else if (m->doubt_began == SIM_NEVER || moved ||
               first->workers <= m_count_usable(m, true)) { /* perhaps there is none yet */
        m->doubt_began = m->doubt_began == SIM_NEVER ? m->mono : m->doubt_began;
        m->doubt_renewed = m->mono;
    }
    if (m->draining || m->refusing || m->w->mode == SCHED_DYNAMIC) {
        return;
    }
    if (m->turn_is_full) {
        return; /* who is idle may be as silent as those just lost */
    }
    if (m_recovery_wants_nodes(m, true)) {
        return;
    }
    if (first != NULL && !m_is_for_all(first) && !all_know_plans(m)) {
        return; /* it waits for those that do, or ends */
    }
    if (first != NULL && first->workers + m_count_kept(m) <= m_count_idle(m, false)) {
        sim_fail(m->w, "model: job %llu waits for %u nodes, and %u are idle", (ull)first->id,
                 first->workers, m_count_idle(m, false));
    }
}

/* ---- Assign -------------------------------------------------------------------------------------
 */

/* Names of instruction sets from the least to the most, each with what it needs beside the one that
 * it builds upon. The least of several is the largest that all of them have. */
static const struct {
    const char *name;
    unsigned has;
} isas[] = {{"sse41", 0x1},
            {"avx", 0x3},
            {"avx2", 0x7},
            {"avx2_vnni", 0xf},
            {"avx512_core", 0x17},
            {"avx512_core_vnni", 0x37},
            {"avx512_core_bf16", 0x77}};

static unsigned isa_has(const char *name)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(isas); i++) {
        if (strcmp(isas[i].name, name) == 0) {
            return isas[i].has;
        }
    }
    return 0x1;
}

static const char *isa_of_all(struct model *m, const Ms__Assign *msg)
{
    unsigned common = ~0U;
    const char *least = isas[0].name;
    for (size_t i = 0; i < msg->n_members; i++) {
        const struct m_node *node = m_node_find(m, msg->members[i]->node_id);
        common &= node != NULL ? isa_has(node->isa) : 0;
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(isas); i++) {
        if ((isas[i].has & ~common) == 0) {
            least = isas[i].name;
        }
    }
    return least;
}

/* Of a generation that nobody has seen: not one of its bytes may follow from an older one. */
static void judge_token(struct model *m, const Ms__Assign *msg)
{
    static const uint8_t zero[MS_TOKEN_LEN];
    for (size_t i = 0; i < m->tokens.n; i++) {
        const struct m_token *old = &m->tokens.at[i];
        size_t same = 0;
        for (size_t j = 0; j < MS_TOKEN_LEN; j++) {
            same += old->bytes[j] == msg->token.data[j];
        }
        if (same > MS_TOKEN_LEN / 2) {
            sim_fail(m->w, "model: the token of generation %llu is that of generation %llu",
                     (ull)msg->generation, (ull)old->generation);
        }
    }
    if (memcmp(msg->token.data, zero, MS_TOKEN_LEN) == 0 ||
        !world_token_is_new(msg->token.data, m->w->seed)) {
        sim_fail(m->w, "model: the token of generation %llu can be guessed", (ull)msg->generation);
    }
    struct m_token *token = M_MORE(m->tokens, struct m_token);
    token->generation = msg->generation;
    memcpy(token->bytes, msg->token.data, MS_TOKEN_LEN);
    memcpy(m->token, msg->token.data, MS_TOKEN_LEN);
}

/* Of the job, whoever runs it whenever: what it left behind on a host is known by it. */
static void judge_tag(struct model *m, struct m_job *job, const Ms__Assign *msg)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *other = &m->jobs.at[i];
        bool alike = strcmp(other->tag, msg->job_tag) == 0;
        if (other == job ? job->tag[0] != '\0' && !alike : alike) {
            sim_fail(m->w, "model: job %llu is tagged %s, and job %llu is %s", (ull)job->id,
                     msg->job_tag, (ull)other->id, other->tag);
        }
    }
    snprintf(job->tag, sizeof(job->tag), "%s", msg->job_tag);
}

static void judge_member(struct model *m, const struct m_job *job, const Ms__Member *member,
                         uint32_t rank)
{
    const struct m_node *node = m_node_find(m, member->node_id);
    if (node == NULL || !m_is_idle(node)) {
        sim_fail(m->w, "model: rank %u of job %llu goes to node %s, which is not idle", rank,
                 (ull)job->id, member->node_id);
        return;
    }
    if (m->event->kind == SCHED_EV_TIME && m_is_silent(m, node)) {
        sim_fail(m->w, "model: rank %u of job %llu goes to node %s, whose lease is over", rank,
                 (ull)job->id, member->node_id);
    }
    if (m->w->mode == SCHED_STANDING && m_pause_of(m, node) == M_PAUSED) {
        sim_fail(m->w, "model: rank %u of job %llu goes to node %s, whose host just lost another",
                 rank, (ull)job->id, member->node_id);
    }
    m_judge_member_told(m, job, member, rank);
}

void m_judge_member_told(struct model *m, const struct m_job *job, const Ms__Member *member,
                         uint32_t rank)
{
    const struct m_node *node = m_node_find(m, member->node_id);
    if (member->rank != rank || member->incarnation != node->incarnation ||
        member->uid != node->uid || strcmp(member->host_name, node->host_name) != 0 ||
        strcmp(member->host_id, node->host_id) != 0 ||
        strcmp(member->data_address, node->data_address) != 0 ||
        strcmp(member->data_unix, node->data_unix) != 0 ||
        strcmp(member->cert_name, node->cert_name) != 0 ||
        (member->offer != NULL ? member->offer->physical : 0) != node->physical) {
        sim_fail(m->w, "model: rank %u of job %llu: node %s is told wrongly", rank, (ull)job->id,
                 member->node_id);
    }
}

static uint32_t idle_on(struct model *m, const char *host, const Ms__Assign *msg, bool members)
{
    uint32_t n = 0;
    for (size_t i = 0; i < m->nodes.n; i++) {
        const struct m_node *node = &m->nodes.at[i];
        n += !members && m_is_idle(node) && m_pause_of(m, node) == M_NOT_PAUSED &&
             strcmp(node->host_id, host) == 0;
    }
    for (size_t i = 0; members && i < msg->n_members; i++) {
        n += strcmp(msg->members[i]->host_id, host) == 0;
    }
    return n;
}

/* The smallest host that holds it all; else the fullest ones. */
static void judge_hosts(struct model *m, const struct m_job *job, const Ms__Assign *msg)
{
    uint32_t best = UINT32_MAX;
    uint32_t least_used = UINT32_MAX;
    uint32_t most_unused = 0;
    if (m_count_kept(m) > 0) {
        return; /* nobody knows which ones it had the choice of */
    }
    for (size_t i = 0; i < m->nodes.n; i++) {
        const struct m_node *node = &m->nodes.at[i];
        enum m_pause pause = m_pause_of(m, node);
        if (m_is_idle(node) && (pause == M_PERHAPS || m_is_aside(m, node, false))) {
            return; /* nobody knows which ones it had the choice of */
        }
        if (m_is_idle(node) && pause == M_NOT_PAUSED) {
            uint32_t idle = idle_on(m, node->host_id, msg, false);
            bool used = idle_on(m, node->host_id, msg, true) > 0;
            best = idle >= job->workers && idle < best ? idle : best;
            least_used = used && idle < least_used ? idle : least_used;
            most_unused = !used && idle > most_unused ? idle : most_unused;
        }
    }
    uint32_t first = idle_on(m, msg->members[0]->host_id, msg, false);
    if (best != UINT32_MAX
            ? first != best || idle_on(m, msg->members[0]->host_id, msg, true) != job->workers
            : most_unused > least_used) {
        sim_fail(m->w,
                 "model: job %llu does not get the smallest host that holds it, or the "
                 "fullest ones",
                 (ull)job->id);
    }
}

/* Hosts that are set aside get no rank while others can take it. */
static void judge_asides(struct model *m, const struct m_job *job, const Ms__Assign *msg)
{
    uint32_t good = 0;
    for (size_t i = 0; i < m->nodes.n; i++) {
        const struct m_node *node = &m->nodes.at[i];
        good += m_is_idle(node) && m_pause_of(m, node) == M_NOT_PAUSED &&
                !m_is_aside(m, node, false) && (m_is_for_all(job) || m_knows_plans(node));
    }
    const uint32_t kept = m_count_kept(m); /* perhaps of those */
    for (size_t i = 0; i < msg->n_members && good >= job->workers + kept; i++) {
        const struct m_node *node = m_node_find(m, msg->members[i]->node_id);
        if (node != NULL && m_is_aside(m, node, true)) {
            sim_fail(m->w, "model: rank %zu of job %llu goes to node %s, whose host is set aside",
                     i, (ull)job->id, node->id);
        }
    }
}

static void judge_first_assign(struct model *m, struct m_job *job, const Ms__Assign *msg)
{
    const bool is_round = job->round_now;
    if (!is_round) {
        judge_turn(m, job);
    }
    judge_token(m, msg);
    judge_tag(m, job, msg);
    if (msg->world_size != job->workers || msg->n_members != job->workers ||
        msg->job_json.len != job->spec_bytes ||
        memcmp(msg->job_json.data, job->spec, job->spec_bytes) != 0) {
        sim_fail(m->w, "model: job %llu is not handed out as it was submitted", (ull)job->id);
        return;
    }
    if (is_round) {
        m_judge_round(m, job, msg);
        return;
    }
    judge_asides(m, job, msg);
    bool chooses = m_is_for_all(job) || all_know_plans(m); /* else fewer than are idle */
    if (m->w->mode != SCHED_DYNAMIC && msg->n_members <= 64 && chooses) {
        judge_hosts(m, job, msg);
    }
    job->round_due = job->stands = job->met_unfit = false;
    job->n_unfit = job->n_stumbled = job->n_formers = job->n_pairs = 0;
    job->not_back = job->again_at = 0;
    job->not_before = job->stood_at = job->wants_until = 0;
    job->rounds = 0;
    job->furthest = job->told = 0;
    job->told_at = SIM_NEVER;
    job->n_ranks = job->workers;
    job->members_dropped = false;
    free(job->ranks);
    free(job->formers);
    job->ranks = calloc(job->workers, sizeof(*job->ranks));
    job->formers = calloc(job->workers + MS_FORMERS_MORE, sizeof(*job->formers));
    m_forget_savers(job);
    job->blame_at = SIM_NEVER;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        judge_member(m, job, msg->members[rank], rank);
        snprintf(job->ranks[rank].node, sizeof(job->ranks[rank].node), "%s",
                 msg->members[rank]->node_id);
        job->ranks[rank].incarnation = msg->members[rank]->incarnation;
        snprintf(job->ranks[rank].machine, sizeof(job->ranks[rank].machine), "%s",
                 m_machine(m_node_find(m, msg->members[rank]->node_id)));
        struct m_node *node = m_node_find(m, msg->members[rank]->node_id);
        if (node != NULL && m_is_kept_for_another(m, job, node, false)) {
            sim_fail(m->w, "model: job %llu is placed on node %s, which another one waits for",
                     (ull)job->id, node->id);
        }
        if (node != NULL) {
            memcpy(job->ranks[rank].owner, node->owner, sizeof(node->owner));
            memcpy(job->ranks[rank].host, node->host_name, sizeof(node->host_name));
            job->ranks[rank].pid = node->pid;
            node->hold = (struct m_hold){job->id, job->generation, rank};
        }
    }
}

void m_judge_assign(struct model *m, struct m_conn *conn, const Ms__Assign *msg)
{
    struct m_job *job = m_job_find(m, msg->job);
    const struct m_node *node = m_node_of(m, conn);
    if (job == NULL || m->placing != msg->job || (job->state != JOB_PLACING && !job->round_now) ||
        msg->generation != job->generation || msg->token.len != MS_TOKEN_LEN ||
        msg->rank >= job->workers) {
        sim_fail(m->w, "model: Assign of job %llu, generation %llu, and it is not being placed",
                 (ull)msg->job, (ull)msg->generation);
        return;
    }
    if (job->assigned_now == 0) {
        judge_first_assign(m, job, msg);
    }
    if (m->w->failed) {
        return;
    }
    job->assigned_now++;
    bool alike = msg->n_members == job->workers && msg->world_size == job->workers &&
                 msg->job_json.len == job->spec_bytes &&
                 memcmp(msg->job_json.data, job->spec, job->spec_bytes) == 0 &&
                 strcmp(msg->run_dir, job->run_dir) == 0 && strcmp(msg->job_tag, job->tag) == 0 &&
                 memcmp(msg->token.data, m->token, MS_TOKEN_LEN) == 0;
    for (uint32_t rank = 0; alike && rank < job->workers; rank++) {
        alike = strcmp(msg->members[rank]->node_id, job->ranks[rank].node) == 0 &&
                msg->members[rank]->rank == rank;
    }
    if (!alike || node == NULL || strcmp(job->ranks[msg->rank].node, node->id) != 0 ||
        node->hold.rank != msg->rank) {
        sim_fail(m->w, "model: rank %u of job %llu is told something else", msg->rank,
                 (ull)job->id);
    }
    m_judge_plan_from(m, job, msg->plan_from);
    if (strcmp(msg->isa, isa_of_all(m, msg)) != 0) {
        sim_fail(m->w, "model: job %llu may use %s, and %s is what all members have", (ull)job->id,
                 msg->isa, isa_of_all(m, msg));
    }
}

void m_judge_placed(struct model *m)
{
    const struct m_job *job = m_job_find(m, m->placing);
    if (job == NULL || job->assigned_now == 0) {
        return; /* its rows come first */
    }
    if (job->assigned_now != job->workers) {
        sim_fail(m->w, "model: job %llu is placed, and %u of %u ranks hear of it", (ull)job->id,
                 job->assigned_now, job->workers);
    }
    m->placing = 0;
}
