/* place.c - placement: all ranks of the first job in the queue, or none */
#include "daemon/sched/stamp.h"
#include "daemon/sched/state.h"

#include "proto/digest.h"

#include <assert.h>
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

static void members_fill(struct job *job, struct node **nodes)
{
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct node *node = nodes[rank];
        struct member *member = &job->run->members[rank];
        ms_text_copy(member->node_id, sizeof(member->node_id), node->info.node_id);
        member->incarnation = node->info.incarnation;
        member->pid = node->info.pid;
        free(member->host_name);
        free(member->principal);
        member->host_name = dup_text(node->info.host_name);
        member->principal = dup_text(node->info.principal);
        rank_begin(job->run, rank, RANK_PREPARING);
    }
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

static Ms__Member **members_message(struct sched *s, const struct job *job, struct node **nodes)
{
    Ms__Member *msgs = emit_alloc(s, job->workers * sizeof(*msgs));
    Ms__Member **list = emit_alloc(s, job->workers * sizeof(Ms__Member *));
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct node_info *info = &nodes[rank]->info;
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

/* The members are one list for all ranks: a job of 1,024 would be a third of a gigabyte otherwise.
 */
static int send_assigns(struct sched *s, struct job *job, struct node **nodes, struct ms_err *err)
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
    msg.members = members_message(s, job, nodes);
    msg.n_members = job->workers;
    msg.token.data = token;
    msg.token.len = sizeof(token);
    msg.run_dir = (char *)job->run_dir;
    msg.isa = (char *)isa_least(nodes, job->workers);
    msg.job_tag = (char *)job_tag(s, job);
    msg.plan_from = run_plan_from(job);
    const uint8_t *tail = emit_share(s, MS_MSG_ASSIGN, &msg.base, &tail_bytes, err);
    if (tail == NULL) {
        return err->code;
    }
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        Ms__Assign own = MS__ASSIGN__INIT;
        own.rank = msg.members[rank]->rank;
        emit_send_shared(s, nodes[rank]->conn->id, MS_MSG_ASSIGN, 0, &own.base, tail, tail_bytes);
    }
    return 0;
}

/* False: one of its ranks would never hear of it, and the job was lost. */
static bool plan_is_known(struct sched *s, struct job *job)
{
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct node *node = job->run->members[rank].hold->node;
        if (!node_knows_plans(node)) {
            run_lost(s, job, rank, FAULT_UNTOLD, MS_E_UNSUPPORTED,
                     emit_text(s,
                               "%s is of a release (0.1) that knows no plan of others, and there "
                               "are not %u nodes that do: update msworker there, or submit the job "
                               "without --plan",
                               rank_words(s, job, rank), job->workers));
            return false;
        }
    }
    return true;
}

void place_job(struct sched *s, struct job *job, struct node **nodes)
{
    queue_remove(s, job);
    job->generation = ++s->generation;
    run_create(job);
    job->n_tries++;
    job->n_met = s->n_registered > job->n_met ? s->n_registered : job->n_met;
    job_set(s, job, JOB_ON_PLACE,
            emit_text(s, "on %u node%s, generation %llu", job->workers,
                      job->workers == 1 ? "" : "s", (unsigned long long)job->generation));
    members_fill(job, nodes);
    emit_put_meta(s, "generation", s->generation);
    emit_put_job(s, job, false);
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        emit_put_member(s, job, rank);
        hold_bind(hold_add(s, nodes[rank], job->id, job->generation, rank), job);
    }
    emit_log(s, MS_LOG_NOTICE, "job.placed job=%llu generation=%llu workers=%u name=%s",
             (unsigned long long)job->id, (unsigned long long)job->generation, job->workers,
             emit_quote(s, job->name));
    ready_expect(s, job->run);
    struct ms_err err = {0, ""};
    if (send_assigns(s, job, nodes, &err) < 0) {
        run_lost(s, job, 0, FAULT_UNTOLD, err.code,
                 emit_text(s, "its ranks cannot be told of it: %s", err.text));
        return;
    }
    if (job->plan_given && (!plan_is_known(s, job) || !run_tell_plan(s, job))) {
        return;
    }
    watch_stir(s, job);
    watch_news(s);
}

/* Sorting all of 16k idle nodes for each small job would cost 10 ms a job: a thousand more than it
 * wants are choice enough. */
enum { SPARE_CANDIDATES = 1000 };

/* Nodes that know a given plan, idle ones; those that will be are waited for. */
static uint32_t n_that_know_plans(const struct sched *s)
{
    uint32_t n = 0;
    for (const struct list *at = s->beating.next; at != &s->beating; at = at->next) {
        const struct node *node = list_item(at, const struct node, beating);
        n += node_is_usable(node) && node_knows_plans(node);
    }
    return n;
}

static size_t take_idle(struct sched *s, struct node **nodes, size_t room, bool all)
{
    size_t n = 0;
    for (struct list *at = s->idle.next; at != &s->idle && n < room; at = at->next) {
        struct node *node = list_item(at, struct node, idle);
        if (all || node_knows_plans(node)) {
            nodes[n++] = node;
        }
    }
    return n;
}

static bool place_first(struct sched *s)
{
    struct job *job = queue_next(s);
    if (job == NULL || s->draining || s->refusal[0] != '\0' || !generations_left(s)) {
        return false;
    }
    if (job->workers > s->n_idle) {
        return false; /* nobody overtakes: a large job would never start */
    }
    size_t room = job->workers + SPARE_CANDIDATES;
    struct node **nodes = emit_alloc(s, room * sizeof(struct node *));
    size_t n = take_idle(s, nodes, room, !job->plan_given);
    if (n < job->workers && (n_that_know_plans(s) >= job->workers || queue_may_grow(s))) {
        return false; /* some are busy, or on their way */
    }
    if (n < job->workers) { /* it ends, in words that name one */
        n = take_idle(s, nodes, room, true);
    }
    assert(n >= job->workers);
    rank_choose(s, nodes, n, job->workers);
    place_job(s, job, nodes);
    return true;
}

void place_settle(struct sched *s)
{
    /* nodes that are as silent as those just lost would be next in line, and cost the job a try */
    while ((s->due & DUE_PLACE) != 0 && !s->leases_behind && !sched_tick_is_full(s)) {
        s->due &= ~(unsigned)DUE_PLACE;
        s->due |= place_first(s) ? DUE_PLACE : 0;
    }
}
