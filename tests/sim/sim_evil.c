/* sim_evil.c - peers that say whatever bytes allow: others' names, ranks, jobs, generations
 *
 * They hold certificates like everybody, keep no promise, and go away when the faults end. Nothing
 * that they say may change what happens to others: the model judges. */
#include "tests/sim/model.h"

#include <stdio.h>
#include <string.h>

static void evil_at(struct world *w, uint32_t i, int64_t at)
{
    sim_at(w, at, SIM_EVIL, i, ++w->evils[i].stamp, 0);
}

void evil_draw(struct world *w)
{
    static const struct {
        const char *name;
        unsigned role;
    } kinds[] = {{"evil", MS_ROLE_WORKER},
                 {"mallory", MS_ROLE_USER},
                 {"anyone", MS_ROLE_WORKER | MS_ROLE_USER},
                 {"stolen", MS_ROLE_WORKER}}; /* the certificate of node 0 */
    if (w->chaos < 2 || w->mode == SCHED_DYNAMIC || w->large || !sim_chance(w, 25)) {
        return;
    }
    w->n_evils = 1 + (uint32_t)sim_below(w, SIM_EVIL_MAX);
    for (uint32_t i = 0; i < w->n_evils; i++) {
        struct sim_evil *evil = &w->evils[i];
        size_t kind = sim_below(w, MS_ARRAY_SIZE(kinds));
        char name[16];
        snprintf(name, sizeof(name), "%s-%u", kinds[kind].name, i);
        snprintf(evil->name, sizeof(evil->name), "%s", name);
        evil->is_thief = kind == 3;
        if (evil->is_thief) {
            memcpy(name, w->nodes[0].cert, sizeof(name));
        }
        for (size_t j = 0; j < MS_ARRAY_SIZE(evil->ids); j++) {
            snprintf(evil->ids[j], sizeof(evil->ids[j]), j < 2 ? "%s/%zu" : "%s%zu", name, j);
        }
        if (ms_role_name(kinds[kind].role) == NULL) {
            ms_principal_anyone(kinds[kind].role, &evil->peer.who);
            evil->who = 199; /* one somebody, all of them */
        } else {
            ms_principal_from_certificate(kinds[kind].role, name, &evil->peer.who);
            snprintf(evil->peer.cert_name, sizeof(evil->peer.cert_name), "%s", name);
            evil->who = 100 + i;
        }
        evil->peer.uid = (unsigned)-1;
        evil_at(w, i, (int64_t)sim_below(w, (uint64_t)w->faults_end));
    }
}

/* ---- things to say ------------------------------------------------------------------------------
 */

struct lie { /* as true as it can be */
    uint64_t job, generation, incarnation;
    uint32_t rank;
    const char *node;
    int32_t code;
};

static void draw_lie(struct world *w, const struct sim_evil *evil, struct lie *lie)
{
    const struct sim_node *victim = &w->nodes[sim_below(w, w->n_nodes)];
    *lie = (struct lie){victim->last_job,    victim->last_generation,
                        victim->incarnation, victim->last_rank,
                        victim->id,          MS_E_FAILED};
    switch (sim_below(w, 8)) {
    case 0:
        lie->generation += 1 + sim_below(w, 1000);
        break;
    case 1:
        lie->generation = MS_GENERATION_MAX - 1;
        break;
    case 2:
        lie->job = 1 + sim_below(w, sim_chance(w, 60) ? 20 : INT64_MAX);
        break;
    case 3:
        lie->rank = (uint32_t)sim_below(w, MS_WORKERS_MAX);
        break;
    case 4:
        lie->incarnation = sim_random(w);
        break;
    case 5:
        lie->node = evil->name;
        break;
    case 6:
        lie->code = sim_chance(w, 50) ? 0 : MS_E_CLOSED;
        break;
    default:
        break; /* nothing but the truth about somebody else */
    }
    if (evil->is_thief) { /* it is another process, and cannot know which one it would have to be */
        lie->incarnation = sim_random(w);
        lie->node = sim_chance(w, 50)   ? w->nodes[0].id
                    : sim_chance(w, 50) ? evil->ids[sim_below(w, MS_ARRAY_SIZE(evil->ids))]
                                        : lie->node;
    }
}

/* Of a tick to come, as it would end a scheduler that believed it. */
static void make_stamp_up(struct world *w, uint8_t stamp[MS_STAMP_LEN], ProtobufCBinaryData *ret)
{
    const struct sim_node *victim = &w->nodes[sim_below(w, w->n_nodes)];
    memset(stamp, 0, MS_STAMP_LEN);
    if (sim_chance(w, 50)) {
        memcpy(stamp, victim->stamp_told, MS_STAMP_LEN); /* the seal of another one */
    }
    stamp[sim_below(w, 8)] = (uint8_t)(1 + sim_below(w, 200));
    ret->data = stamp;
    ret->len = MS_STAMP_LEN;
}

static void say_register(struct world *w, const struct sim_evil *evil, uint32_t id,
                         const struct lie *lie)
{
    Ms__Register msg = MS__REGISTER__INIT;
    msg.node_id = (char *)lie->node;
    msg.incarnation = lie->incarnation;
    msg.host_name = (char *)"h0";
    msg.host_id = (char *)"h0";
    msg.data_address = (char *)"10.0.0.66:8200";
    msg.cores = 1;
    msg.isa = (char *)"sse41";
    if (sim_chance(w, 5)) {
        msg.data_address = (char *)"unix:/run/evil.sock";
    }
    uint8_t stamp[MS_STAMP_LEN];
    if (sim_chance(w, 10)) {
        make_stamp_up(w, stamp, &msg.stamp);
    }
    if (sim_chance(w, 60)) {
        msg.job = lie->job;
        msg.generation = lie->generation;
        msg.rank = lie->rank;
        msg.running = sim_chance(w, 50);
    }
    net_up(w, evil->link, MS_MSG_REGISTER, id, &msg.base);
}

static void say_as_worker(struct world *w, const struct sim_evil *evil, uint32_t id,
                          const struct lie *lie)
{
    Ms__RankReady ready = MS__RANK_READY__INIT;
    Ms__RankDone done = MS__RANK_DONE__INIT;
    Ms__PeerReport report = MS__PEER_REPORT__INIT;
    Ms__Progress progress = MS__PROGRESS__INIT;
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    Ms__Leave leave = MS__LEAVE__INIT;
    Ms__Heartbeat beat = MS__HEARTBEAT__INIT;
    Ms__FetchReady file = MS__FETCH_READY__INIT;
    Ms__RankPlan plan = MS__RANK_PLAN__INIT;
    char text[SIM_PLAN_MAX];
    uint8_t token[MS_TOKEN_LEN] = "evil";
    ready.job = done.job = report.job = progress.job = beat.job = lie->job;
    ready.generation = done.generation = report.generation = progress.generation = beat.generation =
        lie->generation;
    plan.job = lie->job;
    plan.generation = lie->generation;
    plan.rank = sim_chance(w, 50) ? 0 : lie->rank;
    plan.plan = (char *)(sim_chance(w, 80) ? plan_text(4, text) : "no plan");
    ready.rank = done.rank = report.rank = progress.rank = lie->rank;
    done.code = lie->code;
    done.text = report.text = (char *)"evil says so";
    done.weights_sha256 = (char *)"eeee";
    ready.plan_sha256 = done.plan_sha256 = (char *)"eeee";
    report.peer = (uint32_t)sim_below(w, 4);
    chunk.route = 1 + sim_below(w, 4);
    chunk.data.data = (uint8_t *)"evil";
    chunk.data.len = 4;
    file.route = 1 + sim_below(w, 4);
    file.address = (char *)"10.0.0.66:8300";
    file.token.data = token;
    file.token.len = sizeof(token);
    switch (sim_below(w, 11)) {
    case 10:
        net_up(w, evil->link, MS_MSG_RANK_PLAN, id, &plan.base);
        break;
    case 8:
        net_up(w, evil->link, MS_MSG_FETCH_READY, id, &file.base);
        break;
    case 0:
        net_up(w, evil->link, MS_MSG_RANK_READY, id, &ready.base);
        break;
    case 1:
        net_up(w, evil->link, MS_MSG_PEER_REPORT, id, &report.base);
        break;
    case 2:
        net_up(w, evil->link, MS_MSG_PROGRESS, id, &progress.base);
        break;
    case 3:
        net_up(w, evil->link, MS_MSG_LOG_CHUNK, id, &chunk.base);
        break;
    case 4:
        net_up(w, evil->link, MS_MSG_HEARTBEAT, id, &beat.base);
        break;
    case 5:
        if (sim_chance(w, 10)) {
            net_up(w, evil->link, MS_MSG_LEAVE, id, &leave.base);
        }
        break;
    case 6:
    case 7:
        say_register(w, evil, id, lie);
        break;
    default:
        net_up(w, evil->link, MS_MSG_RANK_DONE, id, &done.base);
    }
}

static void say_as_user(struct world *w, const struct sim_evil *evil, uint32_t id,
                        const struct lie *lie)
{
    Ms__Cancel cancel = MS__CANCEL__INIT;
    Ms__Watch watch = MS__WATCH__INIT;
    Ms__JobQuery jobs = MS__JOB_QUERY__INIT;
    Ms__NodeQuery nodes = MS__NODE_QUERY__INIT;
    Ms__StatusQuery status = MS__STATUS_QUERY__INIT;
    Ms__LogQuery logs = MS__LOG_QUERY__INIT;
    Ms__Submit submit = MS__SUBMIT__INIT;
    Ms__Fetch fetch = MS__FETCH__INIT;
    fetch.job = lie->job;
    fetch.rank = sim_chance(w, 70) ? 0 : lie->rank;
    fetch.what = (uint32_t)sim_below(w, 6);
    cancel.job = watch.job = jobs.job = logs.job = lie->job;
    cancel.at_step = sim_chance(w, 50);
    cancel.reason = (char *)"evil wants it";
    jobs.job = sim_chance(w, 50) ? lie->job : 0;
    jobs.all = sim_chance(w, 50);
    jobs.plan = sim_chance(w, 50);
    nodes.node_id = (char *)(sim_chance(w, 50) ? lie->node : "");
    logs.rank = lie->rank;
    logs.bytes_max = UINT32_MAX;
    submit.workers = sim_chance(w, 50) ? 0 : MS_WORKERS_MAX + 1;
    submit.name = submit.key = (char *)"evil";
    submit.job_json.data = (uint8_t *)"{}";
    submit.job_json.len = 2;
    uint8_t stamp[MS_STAMP_LEN];
    if (sim_chance(w, 20)) { /* mostly the rest is looked at, too */
        make_stamp_up(w, stamp, &submit.stamp);
    }
    switch (sim_below(w, 9)) {
    case 6:
        net_up(w, evil->link, MS_MSG_FETCH, id, &fetch.base);
        break;
    case 0:
        net_up(w, evil->link, MS_MSG_WATCH, id, &watch.base);
        break;
    case 1:
        net_up(w, evil->link, MS_MSG_JOB_QUERY, id, &jobs.base);
        break;
    case 2:
        net_up(w, evil->link, MS_MSG_NODE_QUERY, id, &nodes.base);
        break;
    case 3:
        net_up(w, evil->link, MS_MSG_STATUS_QUERY, id, &status.base);
        break;
    case 4:
        net_up(w, evil->link, MS_MSG_LOG_QUERY, id, &logs.base);
        break;
    case 5:
        net_up(w, evil->link, MS_MSG_SUBMIT, id, &submit.base);
        break;
    default:
        net_up(w, evil->link, MS_MSG_CANCEL, id, &cancel.base);
    }
}

/* A trail of nodes that have left: it is to bury those of others. */
static void come_and_go(struct world *w, struct sim_evil *evil)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(evil->ids); i++) {
        Ms__Register msg = MS__REGISTER__INIT;
        Ms__Leave leave = MS__LEAVE__INIT;
        msg.node_id = evil->ids[i];
        msg.incarnation = 1 + sim_below(w, 1000);
        msg.host_name = (char *)"h0";
        msg.data_address = (char *)"10.0.0.66:8200";
        msg.isa = (char *)"sse41";
        net_up(w, evil->link, MS_MSG_REGISTER, 10 + evil->next_id++, &msg.base);
        net_up(w, evil->link, MS_MSG_LEAVE, 10 + evil->next_id++, &leave.base);
    }
}

static void say(struct world *w, struct sim_evil *evil)
{
    if (w->lost_nodes_max > 0 && !evil->is_thief && sim_chance(w, 10)) {
        come_and_go(w, evil);
        return;
    }
    struct lie lie;
    uint32_t id = 10 + evil->next_id++;
    draw_lie(w, evil, &lie);
    bool worker = (evil->peer.who.roles & MS_ROLE_WORKER) != 0;
    if (sim_chance(w, 10)) {
        worker = !worker; /* what its role may not say at all */
    } else if (evil->peer.who.roles == (MS_ROLE_WORKER | MS_ROLE_USER)) {
        worker = sim_chance(w, 50);
    }
    if (worker) {
        say_as_worker(w, evil, id, &lie);
    } else {
        say_as_user(w, evil, id, &lie);
    }
}

/* ---- its life -----------------------------------------------------------------------------------
 */

static void hang_up(struct world *w, struct sim_evil *evil)
{
    if (evil->link != 0) {
        net_close_here(w, evil->link);
        evil->link = 0;
        evil->epoch++;
    }
}

void evil_wake(struct world *w, uint32_t i)
{
    struct sim_evil *evil = &w->evils[i];
    if (w->now >= w->faults_end) {
        hang_up(w, evil);
        return;
    }
    if (evil->link == 0) {
        evil->link = net_open(w, false, i | SIM_IS_EVIL, evil->epoch);
    }
    for (uint64_t n = sim_below(w, sim_chance(w, 5) ? 100 : 6); n > 0 && evil->link != 0; n--) {
        say(w, evil);
    }
    if (sim_chance(w, 20)) {
        hang_up(w, evil);
    }
    evil_at(w, i, w->now + 1 + (int64_t)sim_below(w, 1200));
}

void evil_frame(struct world *w, uint32_t i, uint16_t type, const ProtobufCMessage *msg)
{
    if (type == MS_MSG_ERROR && ((const Ms__Error *)msg)->text[0] == '\0') {
        sim_fail(w, "%s was refused without words", w->evils[i].name);
    }
}

void evil_hung_up(struct world *w, uint32_t i)
{
    w->evils[i].link = 0;
    w->evils[i].epoch++;
}
