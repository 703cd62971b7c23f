/* sim_check.c - what must hold in the world, whatever the core believes */
#include "tests/sim/sim.h"

#include "daemon/sched/state.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

/* Generations only grow, and each belongs to one job: judged where frames leave the scheduler. */
void check_sent(struct world *w, const struct sched_effect *effect)
{
    struct ms_wire_header header;
    ProtobufCMessage *msg = NULL;
    struct ms_err err = {0, ""};
    if (ms_wire_parse_header(effect->frame, &header, &err) < 0) {
        sim_fail(w, "the scheduler sends a bad frame: %s", err.text);
        return;
    }
    if (effect->conn == 0 || effect->conn > w->n_links) {
        sim_fail(w, "the scheduler sends to connection %llu", (ull)effect->conn);
        return;
    }
    if (header.type != MS_MSG_ASSIGN) {
        return;
    }
    if (ms_wire_unpack(header.type, effect->frame + MS_WIRE_HEADER, header.length, &msg, &err) <
        0) {
        sim_fail(w, "the scheduler sends a bad Assign: %s", err.text);
        return;
    }
    const Ms__Assign *assign = (const Ms__Assign *)msg;
    if (assign->generation < w->generation_sent ||
        (assign->generation == w->generation_sent && assign->job != w->generation_sent_job)) {
        sim_fail(w, "job %llu is placed in generation %llu, after generation %llu (job %llu)",
                 (ull)assign->job, (ull)assign->generation, (ull)w->generation_sent,
                 (ull)w->generation_sent_job);
    }
    const struct sched_job_row *row = disk_job(w, assign->job);
    if (row == NULL || w->disk.generation < assign->generation ||
        (row->generation < assign->generation && row->state != JOB_QUEUED)) { /* queued again */
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
    memcpy(new_one->token, msg->token.data, MS_TOKEN_LEN);
    return new_one;
}

static void check_members(struct world *w, const struct sim_node *node, const Ms__Assign *msg)
{
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
            if (strcmp(member->host_name, msg->members[j]->host_name) == 0 &&
                strcmp(member->host_name, msg->members[i - 1]->host_name) != 0 &&
                w->mode == SCHED_STANDING) {
                sim_fail(w, "job %llu: the ranks of host %s are not side by side", (ull)msg->job,
                         member->host_name);
            }
        }
        unsigned long id = strtoul(member->node_id, NULL, 10);
        numeric = numeric && member->node_id[0] >= '0' && member->node_id[0] <= '9' &&
                  id < msg->n_members;
        in_place = in_place && id == i;
    }
    if (w->mode != SCHED_STANDING && numeric && !in_place) {
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
    if (node->job != 0) {
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

/* Rows and the core agree after each commit, so a crash now would lose nothing. */
void check_disk(struct world *w)
{
    const struct sched *s = w->sched;
    if ((s->due & DUE_REQUEUES) != 0) {
        return; /* what loading decided is not written yet */
    }
    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job *job = s->jobs[i].job;
        const struct sched_job_row *row = disk_job(w, s->jobs[i].id);
        if (row == NULL || row->state != job->state || row->generation != job->generation) {
            sim_fail(w, "job %llu is %s in generation %llu, and %s is stored", (ull)job->id,
                     sched_job_state_name(job->state), (ull)job->generation,
                     row != NULL ? sched_job_state_name(row->state) : "nothing");
        }
        uint32_t members = 0;
        for (size_t j = 0; j < w->disk.n_members; j++) {
            members += w->disk.members[j].job == job->id;
        }
        if (job_is_placed(job) && members != job->workers) {
            sim_fail(w, "job %llu is placed with %u stored members of %u", (ull)job->id, members,
                     job->workers);
        }
    }
    if (w->disk.n_jobs != s->n_jobs) {
        sim_fail(w, "%zu jobs are stored and %zu are known", w->disk.n_jobs, s->n_jobs);
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
        if (node->job != 0) {
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

/* A job may wait for ever only for nodes that are not there, and must say so. */
static void check_waiting(struct world *w, struct job *job)
{
    struct sched *s = w->sched;
    const struct job *head = job->aside ? job : queue_first(s);
    char want[MS_TEXT_MAX + 1];
    unsigned registered = 0;
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        registered += w->nodes[i].alive && w->nodes[i].registered;
    }
    if (job->aside) {
        snprintf(want, sizeof(want), "needs %u nodes, the cluster has %u: waits", job->workers,
                 registered);
    } else {
        snprintf(want, sizeof(want), "waits for %u idle node%s: %u registered, %u idle",
                 head->workers, head->workers == 1 ? "" : "s", registered, registered);
    }
    const char *reason = job_reason(s, job);
    if (head->workers <= registered || strstr(reason, want) == NULL) {
        sim_fail(w, "job %llu waits with reason '%s', and the truth is '%s'", (ull)job->id, reason,
                 want);
    }
}

static void check_standing_end(struct world *w)
{
    struct sched *s = w->sched;
    if (s == NULL) {
        sim_fail(w, "the scheduler is down at the end");
        return;
    }
    if (s->n_placed > 0) {
        const struct job *job = list_item(s->placed.next, struct job, lane);
        sim_fail(w, "job %llu never ends: %s, %s", (ull)job->id, sched_job_state_name(job->state),
                 job_reason(s, job));
    }
    check_nodes_free(w);
    for (uint32_t i = 0; i < w->n_ops && !w->failed; i++) {
        const struct sim_op *op = &w->ops[i];
        struct job *job = job_find(s, w->ops[op->submit].job);
        if (op->kind == OP_SUBMIT && op->job != 0 && job == NULL) {
            sim_fail(w, "job %llu was acknowledged and is lost", (ull)op->job);
        }
        bool waits = job != NULL && job->state == JOB_QUEUED;
        if (waits) {
            check_waiting(w, job);
        }
        if (!op->done && !(op->kind == OP_WATCH && waits)) {
            sim_fail(w, "op %u (kind %d) never got its answer", i, (int)op->kind);
        } else if (!op->done && (strcmp(op->last_state, "QUEUED") != 0 ||
                                 strcmp(op->last_reason, job_reason(s, job)) != 0)) {
            sim_fail(w, "a watcher of job %llu last heard %s, '%s'", (ull)job->id, op->last_state,
                     op->last_reason);
        }
        if (op->digests_differ && job != NULL && job->state == JOB_SUCCEEDED && job->workers > 1) {
            sim_fail(w, "job %llu SUCCEEDED with two different weights", (ull)job->id);
        }
    }
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
        if (state != JOB_SUCCEEDED && state != JOB_FAILED) {
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

void check_end(struct world *w)
{
    if (w->mode == SCHED_DYNAMIC) {
        check_dynamic_end(w);
    } else {
        check_standing_end(w);
    }
}
