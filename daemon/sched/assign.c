/* assign.c - what the ranks of a placed job are told of their placement */
#include "daemon/sched/stamp.h"
#include "daemon/sched/state.h"

#include "proto/digest.h"

#include <stdlib.h>
#include <string.h>

static void put64(uint8_t *p, uint64_t value)
{
    for (int i = 7; i >= 0; i--) {
        p[i] = (uint8_t)value;
        value >>= 8;
    }
}

void run_token(const struct sched *s, const struct job *job, uint8_t ret[MS_TOKEN_LEN])
{
    uint8_t bytes[MS_TOKEN_LEN + 16];
    memcpy(bytes, s->cfg.secret, MS_TOKEN_LEN);
    put64(bytes + MS_TOKEN_LEN, job->id);
    put64(bytes + MS_TOKEN_LEN + 8, job->generation);
    ms_sha256(bytes, sizeof(bytes), ret);
}

void run_take(struct run *run, uint32_t rank, const struct node *node)
{
    struct member *member = &run->members[rank];
    if (member->incarnation != node->info.incarnation) {
        member->steps = 0; /* of the one before it; what it has it says when it is ready */
        member->step = 0;
        member->ready_in = 0;
        run->told_ms = rank == 0 ? 0 : run->told_ms;
    }
    ms_text_copy(member->node_id, sizeof(member->node_id), node->info.node_id);
    member->incarnation = node->info.incarnation;
    member->pid = node->info.pid;
    member->unheard = false;
    member->machine = node->machine;
    free(member->host_name);
    free(member->principal);
    member->host_name = dup_text(node->info.host_name);
    member->principal = dup_text(node->info.principal);
}

void run_give(struct sched *s, struct job *job, uint32_t rank, struct node *node)
{
    run_take(job->run, rank, node);
    hold_bind(hold_add(s, node, job->id, job->generation, rank), job);
}

static Ms__Offer *offer_message(struct sched *s, struct node_info *info)
{
    if (!info->has_offer) {
        return NULL;
    }
    Ms__Offer *offer = emit_alloc(s, sizeof(*offer));
    *offer = info->offer;
    offer->cpuset.data = info->cpuset;
    return offer;
}

static struct node *node_of(const struct job *job, uint32_t rank)
{
    return job->run->members[rank].hold->node;
}

static Ms__Member **members_message(struct sched *s, const struct job *job)
{
    Ms__Member *msgs = emit_alloc(s, job->workers * sizeof(*msgs));
    Ms__Member **list = emit_alloc(s, job->workers * sizeof(Ms__Member *));
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct node_info *info = &node_of(job, rank)->info;
        ms__member__init(&msgs[rank]);
        msgs[rank].rank = rank;
        msgs[rank].node_id = info->node_id;
        msgs[rank].incarnation = info->incarnation;
        msgs[rank].host_name = info->host_name;
        msgs[rank].host_id = info->host_id;
        msgs[rank].data_address = info->data_address;
        msgs[rank].data_unix = info->data_unix;
        msgs[rank].uid = info->uid;
        msgs[rank].cert_name = info->cert_name;
        msgs[rank].offer = offer_message(s, info);
        list[rank] = &msgs[rank];
    }
    return list;
}

static const char *least_isa(struct sched *s, const struct job *job)
{
    struct node **nodes = emit_alloc(s, job->workers * sizeof(struct node *));
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        nodes[rank] = node_of(job, rank);
    }
    return isa_least(nodes, job->workers);
}

/* The members are one list for all ranks: a job of 1,024 would be a third of a gigabyte otherwise.
 */
static int send_assigns(struct sched *s, struct job *job, struct ms_err *err)
{
    uint8_t token[MS_TOKEN_LEN];
    size_t tail_bytes = 0;
    run_token(s, job, token);
    Ms__Assign msg = MS__ASSIGN__INIT;
    msg.job = job->id;
    msg.generation = job->generation;
    msg.world_size = job->workers;
    msg.job_json.data = (uint8_t *)job->spec;
    msg.job_json.len = job->spec_bytes;
    msg.members = members_message(s, job);
    msg.n_members = job->workers;
    msg.token.data = token;
    msg.token.len = sizeof(token);
    msg.run_dir = (char *)job->run_dir;
    msg.isa = (char *)least_isa(s, job);
    msg.job_tag = (char *)job_tag(s, job);
    msg.plan_from = run_plan_from(job);
    const uint8_t *tail = emit_share(s, MS_MSG_ASSIGN, &msg.base, &tail_bytes, err);
    if (tail == NULL) {
        return err->code;
    }
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        Ms__Assign own = MS__ASSIGN__INIT;
        own.rank = msg.members[rank]->rank;
        emit_send_shared(s, node_of(job, rank)->conn->id, MS_MSG_ASSIGN, 0, &own.base, tail,
                         tail_bytes);
    }
    return 0;
}

bool run_assign(struct sched *s, struct job *job)
{
    struct ms_err err = {0, ""};
    if (send_assigns(s, job, &err) < 0) {
        run_lost(s, job, 0, FAULT_UNTOLD, err.code,
                 emit_text(s, "its ranks cannot be told of it: %s", err.text));
        return false;
    }
    return true;
}
