/* sim_check.c - what must hold in the world, whatever the core believes */
#include "tests/sim/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

/* Nobody hears of a plan that a crash could undo; of a placement that the same tick ended there is
 * nothing to undo. */
static void check_stored(struct world *w, const Ms__Plan *msg)
{
    const struct sched_job_row *row = disk_job(w, msg->job);
    if (row == NULL || row->state != JOB_PLACING || row->generation != msg->generation) {
        return;
    }
    const char *text = disk_plan(&w->disk, row->plan);
    if (text == NULL || strcmp(text, msg->plan) != 0) {
        sim_fail(w, "job %llu: a plan was told before it was stored", (ull)msg->job);
    }
}

/* Generations only grow, and each belongs to one job: judged where frames leave the scheduler. */
void check_sent(struct world *w, const struct sched_effect *effect)
{
    struct ms_wire_header header;
    ProtobufCMessage *msg = NULL;
    struct ms_err err = {0, ""};
    size_t size = 0;
    const uint8_t *frame = driver_frame(w, effect, &size);
    if (ms_wire_parse_header(frame, &header, &err) < 0) {
        sim_fail(w, "the scheduler sends a bad frame: %s", err.text);
        return;
    }
    if (effect->conn == 0 || effect->conn > w->n_links) {
        sim_fail(w, "the scheduler sends to connection %llu", (ull)effect->conn);
        return;
    }
    if (header.type != MS_MSG_ASSIGN && header.type != MS_MSG_PLAN) {
        return;
    }
    if (ms_wire_unpack(header.type, frame + MS_WIRE_HEADER, header.length, &msg, &err) < 0) {
        sim_fail(w, "the scheduler sends a bad %s: %s", ms_wire_find(header.type)->name, err.text);
        return;
    }
    if (header.type == MS_MSG_PLAN) {
        check_stored(w, (const Ms__Plan *)msg);
        ms_wire_free(msg);
        return;
    }
    const Ms__Assign *assign = (const Ms__Assign *)msg;
    if (assign->generation < w->generation_sent ||
        (assign->generation == w->generation_sent && assign->job != w->generation_sent_job)) {
        sim_fail(w, "job %llu is placed in generation %llu, after generation %llu (job %llu)",
                 (ull)assign->job, (ull)assign->generation, (ull)w->generation_sent,
                 (ull)w->generation_sent_job);
    }
    if (w->disk.generation < assign->generation) {
        sim_fail(w, "job %llu: generation %llu was told before it was stored", (ull)assign->job,
                 (ull)assign->generation);
    }
    w->generation_sent = assign->generation;
    w->generation_sent_job = assign->job;
    ms_wire_free(msg);
}

static struct sim_generation *generation_find(struct world *w, const Ms__Assign *msg)
{
    for (uint32_t i = 0; i < w->n_generations; i++) {
        if (w->generations[i].generation == msg->generation) {
            return &w->generations[i];
        }
    }
    if (w->n_generations == SIM_GENERATIONS_MAX) {
        sim_fail(w, "jobs are placed again and again");
        return &w->generations[0];
    }
    struct sim_generation *new_one = &w->generations[w->n_generations++];
    memset(new_one, 0, sizeof(*new_one));
    new_one->generation = msg->generation;
    new_one->job = msg->job;
    new_one->workers = msg->world_size;
    new_one->holders = calloc(msg->world_size, sizeof(uint64_t));
    new_one->seats = calloc(msg->world_size, sizeof(*new_one->seats));
    memcpy(new_one->token, msg->token.data, MS_TOKEN_LEN);
    return new_one;
}

static void check_members(struct world *w, const struct sim_node *node, const Ms__Assign *msg)
{
    const struct m_job *job = m_job_find(w->model, msg->job);
    /* spares are where they are; and one that comes late may have been of a round */
    const bool is_round = job == NULL || job->rounds > 0 || job->generation != msg->generation;
    bool numeric = true;
    bool in_place = true;
    for (size_t i = 0; i < msg->n_members; i++) {
        const Ms__Member *member = msg->members[i];
        if (member->rank != i) {
            sim_fail(w, "job %llu: member %zu has rank %u", (ull)msg->job, i, member->rank);
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(member->node_id, msg->members[j]->node_id) == 0) {
                sim_fail(w, "job %llu: node %s has ranks %zu and %zu", (ull)msg->job,
                         member->node_id, j, i);
            }
            if (strcmp(member->host_id, msg->members[j]->host_id) == 0 &&
                strcmp(member->host_id, msg->members[i - 1]->host_id) != 0 && /* whatever name */
                w->mode == SCHED_STANDING && !is_round) {
                sim_fail(w, "job %llu: the ranks of host %s are not side by side", (ull)msg->job,
                         member->host_name);
            }
        }
        unsigned long id = strtoul(member->node_id, NULL, 10);
        bool is_name = member->node_id[0] == '0' && member->node_id[1] != '\0'; /* "01" is one */
        numeric = numeric && !is_name &&
                  strspn(member->node_id, "0123456789") == strlen(member->node_id) &&
                  id < msg->n_members;
        in_place = in_place && id == i;
    }
    if (w->mode != SCHED_STANDING && numeric && !in_place && !is_round) {
        sim_fail(w, "job %llu: numeric node ids are not the ranks", (ull)msg->job);
    }
    if (msg->rank < msg->n_members && (strcmp(msg->members[msg->rank]->node_id, node->id) != 0 ||
                                       msg->members[msg->rank]->incarnation != node->incarnation)) {
        sim_fail(w, "node %s got rank %u, which the members give to %s", node->id, msg->rank,
                 msg->members[msg->rank]->node_id);
    }
}

void check_assign(struct world *w, const struct sim_node *node, const Ms__Assign *msg)
{
    if (msg->world_size != msg->n_members || msg->rank >= msg->world_size ||
        msg->world_size > SIM_NODES_MAX || msg->token.len != MS_TOKEN_LEN) {
        sim_fail(w, "node %s got rank %u of %u with %zu members", node->id, msg->rank,
                 msg->world_size, msg->n_members);
        return;
    }
    const bool goes_on = node->job == msg->job && train_recovers(w, msg->job);
    const bool is_free = node->is_recalled && node->life.state == LIFE_FINISHING; /* and heard it */
    if (node->job != 0 && !goes_on && !is_free) {
        sim_fail(w, "node %s got rank %u of job %llu while it holds rank %u of job %llu", node->id,
                 msg->rank, (ull)msg->job, node->rank, (ull)node->job);
    }
    if (msg->generation <= node->generation_max) {
        sim_fail(w, "node %s has seen generation %llu and gets %llu", node->id,
                 (ull)node->generation_max, (ull)msg->generation);
    }
    struct sim_generation *generation = generation_find(w, msg);
    if (generation->job != msg->job || generation->workers != msg->world_size ||
        memcmp(generation->token, msg->token.data, MS_TOKEN_LEN) != 0) {
        sim_fail(w, "generation %llu is told in two ways", (ull)msg->generation);
    }
    if (generation->holders[msg->rank] != 0) {
        sim_fail(w, "rank %u of job %llu was given twice in generation %llu", msg->rank,
                 (ull)msg->job, (ull)msg->generation);
    }
    generation->holders[msg->rank] = node->incarnation;
    check_members(w, node, msg);
}

/* One text for all ranks of a placement, whatever crashed meanwhile. */
void check_plan(struct world *w, const struct sim_node *node, const Ms__Plan *msg)
{
    for (uint32_t i = 0; i < w->n_generations; i++) {
        struct sim_generation *generation = &w->generations[i];
        if (generation->generation != msg->generation) {
            continue;
        }
        if (generation->plan[0] != '\0' && strcmp(generation->plan, msg->plan) != 0) {
            sim_fail(w, "job %llu, generation %llu: node %s hears of another plan", (ull)msg->job,
                     (ull)msg->generation, node->id);
        }
        snprintf(generation->plan, sizeof(generation->plan), "%s", msg->plan);
        return;
    }
    if (!train_recovers(w, msg->job)) { /* else it claimed what it had not heard yet, by chance */
        sim_fail(w, "node %s hears of a plan of generation %llu, which nobody was given", node->id,
                 (ull)msg->generation);
    }
}

/* ---- the end ------------------------------------------------------------------------------------
 */

static void check_nodes_free(struct world *w)
{
    for (uint32_t i = 0; i < w->n_nodes && !w->failed; i++) {
        const struct sim_node *node = &w->nodes[i];
        if (!node->alive || node->twin) {
            continue;
        }
        /* who was asked to save after its end is free with the job's, and may be at it */
        if (node->job != 0 && !node->is_recalled) {
            sim_fail(w, "node %s still holds rank %u of job %llu", node->id, node->rank,
                     (ull)node->job);
        } else if (!node->registered) {
            sim_fail(w, "node %s lives and is not registered", node->id);
        }
    }
    struct sched_counts counts;
    sched_count(w->sched, &counts);
    if (counts.nodes_idle != counts.nodes_registered) {
        sim_fail(w, "%u nodes are registered, and %u are idle, and no job is placed",
                 counts.nodes_registered, counts.nodes_idle);
    }
}

/* ---- who is stuck, and where --------------------------------------------------------------------
 */

static const struct sim_node *node_that_holds(const struct world *w, const struct m_rank *r)
{
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        if (strcmp(w->nodes[i].id, r->node) == 0 && w->nodes[i].incarnation == r->incarnation) {
            return &w->nodes[i];
        }
    }
    return NULL;
}

static void check_placed(struct world *w, const struct m_job *job)
{
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        const struct sim_node *node = node_that_holds(w, r);
        if (!r->done) {
            sim_fail(w,
                     "job %llu never ends: it is %s, and rank %u on node %s is %s; its process "
                     "is %s",
                     (ull)job->id, sched_job_state_name(job->state), rank, r->node,
                     r->missing   ? "missing"
                     : r->started ? "started"
                     : r->ready   ? "ready"
                                  : "not ready",
                     node == NULL || !node->alive ? "gone"
                     : node->hung                 ? "hung"
                     : !node->registered          ? "not connected"
                                                  : life_machine.states[node->life.state]);
        }
    }
    sim_fail(w, "job %llu never ends: it is %s", (ull)job->id, sched_job_state_name(job->state));
}

/* It lost a rank that a stranger had, all others are busy, and it was told to wait without end. */
static bool waits_for_nodes(struct world *w)
{
    bool waits = false;
    for (size_t i = 0; i < w->model->jobs.n; i++) {
        const struct m_job *job = &w->model->jobs.at[i];
        waits = waits || (!job->dropped && m_is_placed(job) && m_has_vacant(job));
    }
    return waits && w->topo_ms < 0 && m_count_idle(w->model, true) == 0;
}

/* A job may wait for ever only for nodes that are not there. */
static void check_jobs_over(struct world *w)
{
    struct model *m = w->model;
    for (size_t i = 0; i < m->jobs.n && !w->failed; i++) {
        const struct m_job *job = &m->jobs.at[i];
        if (job->dropped) {
            continue;
        }
        if (m_is_placed(job)) {
            check_placed(w, job);
        } else if (job->state == JOB_QUEUED && job->workers <= m_count_usable(m, true)) {
            sim_fail(w, "job %llu waits for ever for %u nodes, and %u are there", (ull)job->id,
                     job->workers, m_count(m));
        }
    }
    for (size_t i = 0; i < m->nodes.n && !w->failed; i++) {
        const struct m_node *node = &m->nodes.at[i];
        if (node->conn != 0 && node->hold.job != 0) {
            sim_fail(w, "node %s holds rank %u of job %llu for ever", node->id, node->hold.rank,
                     (ull)node->hold.job);
        }
    }
}

static void check_ops_over(struct world *w)
{
    static const char *const kinds[OP_KINDS] = {"submit",   "cancel", "watch",  "list",   "logs",
                                                "stranger", "nodes",  "status", "events", "fetch"};
    for (uint32_t i = 0; i < w->n_ops && !w->failed; i++) {
        const struct sim_op *op = &w->ops[i];
        const struct m_job *job = m_job_find(w->model, w->ops[op->submit].job);
        const struct sched_job_row *row = disk_job(w, w->ops[op->submit].job);
        if (op->kind == OP_SUBMIT && op->job != 0 && job == NULL && w->jobs_kept_max >= 1000) {
            sim_fail(w, "job %llu was acknowledged and is lost", (ull)op->job);
        }
        bool waits = job != NULL && job->state == JOB_QUEUED;
        bool follows = op->kind == OP_EVENTS && op->at_step;
        if (!op->done && !((op->kind == OP_WATCH || follows) && waits)) {
            sim_fail(w, "op %u (%s, about job %llu) never got its answer", i, kinds[op->kind],
                     (ull)w->ops[op->submit].job);
        } else if (!op->done && !follows && strcmp(op->last_state, "QUEUED") != 0) {
            sim_fail(w, "a watcher of job %llu last heard %s", (ull)job->id, op->last_state);
        }
        if (row != NULL) {
            train_check_end(w, row);
        }
        const bool is_heard = /* rank 1, whose digest differs, was there to say so */
            job == NULL || job->n_ranks < 2 ||
            (!job->ranks[1].vacant && job->ranks[1].weights[0] != '\0' && !m_says_alone(job, 1));
        if (op->digests_differ && row != NULL && row->state == JOB_SUCCEEDED && row->workers > 1 &&
            is_heard) {
            sim_fail(w, "job %llu SUCCEEDED with two different weights", (ull)row->id);
        }
    }
}

static void check_standing_end(struct world *w)
{
    if (w->sched == NULL) {
        sim_fail(w, "the scheduler is down at the end");
        return;
    }
    if (waits_for_nodes(w)) {
        return;
    }
    check_jobs_over(w);
    check_nodes_free(w);
    check_ops_over(w);
}

static void check_dynamic_end(struct world *w)
{
    if (!w->over) {
        sim_fail(w, "the dynamic cluster never ends");
        return;
    }
    size_t succeeded = 0;
    for (size_t i = 0; i < w->disk.n_jobs; i++) {
        enum sched_job_state state = w->disk.jobs[i].state;
        succeeded += state == JOB_SUCCEEDED;
        if (state != JOB_SUCCEEDED && state != JOB_FAILED && state != JOB_CANCELLED) {
            sim_fail(w, "the scheduler has ended and job %llu is %s", (ull)w->disk.jobs[i].id,
                     sched_job_state_name(state));
        }
    }
    bool crashed = w->boot > 1; /* its workers may have given up before it came back */
    if ((w->disk.n_jobs > 1 && !crashed) || (w->exit_status == 0 && succeeded == 0) ||
        (w->exit_status != 0 && succeeded > 0 && !crashed)) {
        sim_fail(w, "exit status %d with %zu jobs, %zu of them SUCCEEDED", w->exit_status,
                 w->disk.n_jobs, succeeded);
    }
}

/* The end is decided so long before it is stored and said, at most. */
enum { END_COMMIT_MS = 1000 };

/* What it is sent does not arrive, perhaps for ever, and nobody waits for it: over a connection
 * that one of the two has not given up, or both, and it has begun no other one. */
static bool is_silent(const struct world *w, uint32_t node)
{
    bool is = false;
    bool is_newest = true;
    for (uint32_t i = w->n_links; i > 0 && !is; i--) {
        const struct sim_link *link = &w->links[i - 1];
        if (link->is_node && link->actor == node) {
            is = (is_newest || link->open_here || link->open_there) &&
                 w->now >= link->stalled_from && w->now < link->stalled_until;
            is_newest = false;
        }
    }
    return is;
}

/* A rank that is there, and has no connection, hears of the job's end before its scheduler goes, or
 * has had the time to come. Of a job without recovery who trains goes with the others. */
void check_heard(struct world *w, const char *why)
{
    const bool all_succeeded = w->exit_status == 0;
    const bool is_its_end = w->disk.n_jobs == 1 && strcmp(why, w->disk.jobs[0].reason) == 0;
    if ((!all_succeeded && !w->recovery) || !is_its_end || /* another one did not come together */
        (w->end_boot == w->boot && w->now - w->known_ended_at >= MS_UNHEARD_MS - END_COMMIT_MS)) {
        return;
    }
    for (uint32_t i = 0; i < w->n_nodes && !w->failed; i++) {
        const struct sim_node *node = &w->nodes[i];
        const bool is_there = node->alive && !node->hung && !node->gone_for_good &&
                              !is_silent(w, i) && node->stall_at > w->now + MS_UNHEARD_MS;
        const bool is_rank = w->disk.n_jobs == 1 && node->job == w->disk.jobs[0].id &&
                             node->generation == w->disk.jobs[0].generation;
        const bool is_done = node->life.state == LIFE_FINISHING && node->life.is_said;
        if (is_there && is_rank && (is_done || !all_succeeded) && !node->registered &&
            !node->leaving) {
            sim_fail(w, "the scheduler goes, and node %s has not heard of the job's end", node->id);
        }
    }
}

void check_end(struct world *w)
{
    if (w->mode == SCHED_DYNAMIC) {
        check_dynamic_end(w);
    } else {
        check_standing_end(w);
    }
}
