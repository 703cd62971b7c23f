/* sim_nodes.c - fake workers: they speak the real messages, and live badly */
#include "tests/sim/sim.h"

#include "proto/rng.h"

#include <stdio.h>
#include <string.h>

enum { REGISTER_ID = 1, BEAT_ID = 2 };

static const char *const job_text = "{\"network\":\"linear\"}";
static const char *const other_text = "{\"network\":\"mnist\"}";

void node_schedule(struct world *w, uint32_t i, int64_t at)
{
    if (at != SIM_FOREVER) {
        sim_at(w, at > w->now ? at : w->now, SIM_NODE, i, ++w->nodes[i].stamp, 0);
    }
}

void node_peer(const struct sim_node *node, struct ms_peer *ret)
{
    ms_principal_from_certificate(MS_ROLE_WORKER, node->cert, &ret->who);
    memcpy(ret->cert_name, node->cert, sizeof(node->cert));
}

/* What becomes of the trainer's work, or an order about the rank in hand. */
int node_tell(struct sim_node *node, enum life_event event, int code)
{
    struct life_input input = {.event = event,
                               .job = node->job,
                               .generation = node->generation,
                               .rank = node->rank,
                               .code = code,
                               .text = "it went wrong"};
    return life_apply(&node->life, &input);
}

/* The rank in hand, as it was told. */
static void take_order(struct sim_node *node, const struct sim_order *order)
{
    node->job = order->job;
    node->generation = order->generation;
    node->rank = order->rank;
    node->workers = order->workers;
    node->plan_from = order->plan_from;
    node->recovers = order->recovers;
    snprintf(node->plan, sizeof(node->plan), "%s", order->plan);
    node->has_chosen = node->started = node->stopped = node->is_wrong = false;
    node->step = 0;
    node->n_evals = 0;
    node->replica = (struct sim_replica){0};
    node->saved_job = node->saved = 0;
}

/* Nothing of the rank is left: let go in its time, or with the process. */
static void rank_drop(struct world *w, struct sim_node *node)
{
    mesh_leave(w, node, true);
    node->life = (struct life){.one_job = w->mode == SCHED_DYNAMIC}; /* or died, or was believed */
    node->next.generation = 0;
    node->recovers = false;
    node->n_evals = 0;
    node->replica = (struct sim_replica){0};
    node->saved_job = node->saved = 0;
    node->phase = SIM_COMPUTES;
    node->work_at = SIM_FOREVER;
    node->job = 0;
    node->generation = 0;
    node->started = false;
    node->stopped = false;
    node->is_wrong = false;
    node->is_recalled = false;
    node->unsaved = 0;
    node->stands = false;
}

static void link_drop(struct world *w, struct sim_node *node)
{
    if (node->link != 0) {
        net_close_here(w, node->link);
        node->link = 0;
    }
    node->registered = false;
    int64_t most = node->slow ? 3 * w->lease_ms / 2 : w->lease_ms / 8;
    node->retry_at = w->now + 50 + (int64_t)sim_below(w, (uint64_t)most);
}

/* A process that hangs says nothing: the scheduler must have dropped it when the lease was over. */
static void check_lost(struct world *w, const struct sim_node *node)
{
    if (!node->hung || !node->registered) {
        return;
    }
    const struct sim_link *link = &w->links[node->link - 1];
    const bool is_late = link->stalled_until > node->hung_at && link->stalled_until <= w->now;
    const int64_t said_at = is_late ? link->stalled_until : node->hung_at; /* as it is heard */
    if (w->sched != NULL && w->boot + w->freezes == node->hung_boot &&
        w->now - said_at > w->lease_ms + 1000 + (w->freezes > 0 ? 20000 : 0) && link->open_there) {
        sim_fail(w, "node %s was silent for %lld ms and is not lost", node->id,
                 (long long)(w->now - node->hung_at));
    }
}

void node_mend(const struct world *w, struct sim_node *node, const uint8_t *spec, size_t bytes)
{
    node->worker_num = w->worker_num;
    node->other_job = bytes == strlen(other_text) && memcmp(spec, other_text, bytes) == 0;
}

void node_kill(struct world *w, uint32_t i, bool for_good)
{
    struct sim_node *node = &w->nodes[i];
    check_lost(w, node);
    sim_trace(w, "node %s %s%s", node->id, for_good ? "ends" : "dies", node->twin ? " (twin)" : "");
    node->alive = false;
    node->hung = false;
    node->gone_for_good = for_good || node->twin; /* or the two would fight for ever */
    link_drop(w, node);
    rank_drop(w, node);
    node->epoch++;
    node->start_at = w->now + 100 + (int64_t)sim_below(w, (uint64_t)w->lease_ms);
}

static void believe(struct world *w, struct sim_node *node, uint64_t job, uint64_t generation,
                    uint32_t rank)
{
    rank_drop(w, node);
    node->job = job;
    node->generation = generation;
    node->rank = rank;
    node->life =
        (struct life){.state = LIFE_TRAINING, .job = job, .generation = generation, .rank = rank};
    node->started = true;
    node->work_at = SIM_FOREVER; /* it waits to be told that it is wrong */
    node->is_wrong = true;
    node->lied_of = job;
    sim_trace(w, "node %s believes in rank %u of job %llu, generation %llu", node->id, rank,
              (unsigned long long)job, (unsigned long long)generation);
}

/* Wrong in exactly one point. */
static void lie(struct world *w, struct sim_node *node)
{
    uint64_t job = node->job;
    uint64_t generation = node->generation;
    uint32_t rank = node->rank;
    if (node->lies_left == 0 || job == 0 || node->is_wrong || !sim_chance(w, 30)) {
        return; /* a second one might be the truth, and nobody would tell it */
    }
    node->lies_left--;
    switch (sim_below(w, 4)) {
    case 0:
        generation += 1000 + sim_below(w, 3); /* the next ones may come true, and it would wait */
        break;
    case 1:
        generation -= generation > 1 && node->life.state != LIFE_FINISHING; /* it said its end */
        break;
    case 2:
        rank = rank > 0 ? rank - 1 : rank + 1;
        break;
    default:
        job = job > 1 ? job - 1 : job + 1;
    }
    if (job != node->job || generation != node->generation || rank != node->rank) {
        believe(w, node, job, generation, rank);
    }
}

static void node_start(struct world *w, struct sim_node *node)
{
    node->alive = true;
    node->incarnation = sim_random(w) | 1;
    node->n_short = 0;
    node->epoch++;
    node->generation_max = 0;
    node->lease_ms = w->lease_ms;
    node->owed_job = 0;
    node->stamp_bytes = 0;
    node->retry_at = w->now;
    node->start_at = SIM_FOREVER;
    node->leaving = false;
    node->renews = false;
    node->no_good = false;
    rank_drop(w, node);
    if (node->lies_left > 0 && node->last_job != 0 && sim_chance(w, 50)) {
        node->lies_left--; /* it read its rank from the process before */
        believe(w, node, node->last_job, node->last_generation, node->last_rank);
    }
    sim_trace(w, "node %s starts%s", node->id, node->twin ? " (twin)" : "");
}

/* ---- to the scheduler ---------------------------------------------------------------------------
 */

static void send_register(struct world *w, struct sim_node *node, uint32_t i)
{
    Ms__Register msg = MS__REGISTER__INIT;
    Ms__Offer offer = MS__OFFER__INIT;
    uint8_t cpus[1] = {(uint8_t)(3U << i % 6)};
    char address[32];
    char name[sizeof(node->host) + 1]; /* some of a host call it by another name */
    snprintf(address, sizeof(address), "10.0.0.%c:8200", node->host[1]);
    snprintf(name, sizeof(name), "%s%s", w->seed % 4 == 1 && i % 2 == 1 ? "x" : "", node->host);
    msg.node_id = node->id;
    msg.incarnation = node->incarnation;
    msg.host_name = name;
    msg.host_id = node->host;
    /* nodes of a host have one folder of jobs, where they say so */
    msg.jobs_folder = w->seed % 3 == 0 ? 0 : 7 + (uint64_t)node->host[1];
    msg.uid = 1000 + i;
    msg.data_unix = (char *)(i % 2 == 0 ? "ms-data" : "");
    msg.data_address = address;
    msg.cores = 2;
    msg.isa = (char *)node->isa;
    msg.pid = (uint32_t)(node->incarnation >> 40);
    /* some are of an older release, which takes no lost ranks; who starts a run starts its own */
    msg.level = i % 7 == 6 && !w->recovery && w->mode != SCHED_RUN ? 0 : MS_WIRE_LEVEL;
    offer.physical = 1 + i;
    offer.cpuset.data = cpus;
    offer.cpuset.len = sizeof(cpus);
    msg.offer = msg.level > 0 ? &offer : NULL;
    if (w->mode == SCHED_DYNAMIC) {
        msg.worker_num = node->worker_num;
        msg.job_json.data = (uint8_t *)(node->other_job ? other_text : job_text);
        msg.job_json.len = strlen((char *)msg.job_json.data);
    }
    msg.job = node->job;
    msg.generation = node->generation;
    msg.rank = node->rank;
    msg.running = node->started;
    msg.step = node->job != 0 ? node->step : 0;
    msg.stamp.data = node->stamp_told;
    msg.stamp.len = node->stamp_bytes;
    node->register_at = w->now;
    if (node->job != 0) {
        node->last_job = node->job;
        node->last_generation = node->generation;
        node->last_rank = node->rank;
    }
    net_up(w, node->link, MS_MSG_REGISTER, REGISTER_ID, &msg.base);
}

/* Two leases more: what a restart began is still under way. */
static bool flaps_now(const struct world *w, const struct sim_node *node)
{
    return node->flaps && node->job == 0 && w->now < w->faults_end + 2 * w->lease_ms;
}

static void send_beat(struct world *w, struct sim_node *node)
{
    Ms__Heartbeat msg = MS__HEARTBEAT__INIT;
    msg.job = node->job;
    msg.generation = node->generation;
    node->step += node->life.state == LIFE_TRAINING && !node->recovers ? sim_below(w, 20) : 0;
    msg.step = node->step;
    node->beat_at = w->now + node->lease_ms / 3;
    net_up(w, node->link, MS_MSG_HEARTBEAT, BEAT_ID, &msg.base);
}

const char *plan_text(uint64_t n, char buf[SIM_PLAN_MAX])
{
    snprintf(buf, SIM_PLAN_MAX,
             "msched plan 1\nsection bits\nthreads %llu\nsection memory\nagain train %llu\nend\n",
             (unsigned long long)n % 3, (unsigned long long)n);
    return buf;
}

static const char *plan_of(struct world *w, const struct sim_node *node)
{
    const struct sim_op *op = op_of_job(w, node->job);
    return op != NULL && op->plans_differ && node->rank == 1 ? "fedcba9876543210"
           : node->plan[0] != '\0'                           ? plan_bits(node->plan)
                                                             : "0123456789abcdef";
}

/* Processes choose differently, and each of them always the same. */
static void send_plan(struct world *w, const struct sim_node *node, uint64_t other)
{
    char text[SIM_PLAN_MAX];
    Ms__RankPlan msg = MS__RANK_PLAN__INIT;
    msg.job = node->job;
    msg.generation = node->generation;
    msg.rank = node->rank;
    msg.plan = (char *)plan_text(4 + (node->incarnation + other) % 4, text);
    net_up(w, node->link, MS_MSG_RANK_PLAN, 0, &msg.base);
}

static void send_ready(struct world *w, struct sim_node *node)
{
    Ms__RankReady msg = MS__RANK_READY__INIT;
    uint8_t digest[MS_STATE_DIGEST_LEN] = {0};
    char path[64];
    snprintf(path, sizeof(path), "/run/%llu.%llu/worker_%u.log", (unsigned long long)node->job,
             (unsigned long long)node->generation, node->rank);
    msg.job = node->job;
    msg.generation = node->generation;
    msg.rank = node->rank;
    msg.log_path = path;
    msg.plan_sha256 = (char *)plan_of(w, node);
    if (node->recovers) {
        msg.step = node->replica.step;
        msg.steps_total = train_steps(w, node->job);
        msg.state_from = node->state_from;
        msg.state_rank = node->state_rank;
        msg.state_bytes = 1000;
        msg.state_digest.data = digest;
        msg.state_digest.len = sizeof(digest);
        memcpy(digest, &node->replica.digest, sizeof(node->replica.digest));
    }
    while (node->n_evals > 0 && node->evals[node->n_evals - 1].step > msg.step) {
        node->n_evals--; /* it makes them again */
    }
    net_up(w, node->link, MS_MSG_RANK_READY, 0, &msg.base);
}

static void send_done(struct world *w, struct sim_node *node)
{
    static const char *const digests[] = {"aaaa", "bbbb"};
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    char weights[65];
    msg.job = node->job;
    msg.generation = node->generation;
    msg.rank = node->rank;
    msg.code = node->life.verdict.code != 0 ? node->life.verdict.code : node->unsaved;
    char text[64];
    snprintf(text, sizeof(text), "it went wrong on %s", node->id);
    const bool saves = (node->stopped && node->rank == 0) || node->life.has_saved;
    if (msg.code == 0 && saves) { /* what it saved, in words */
        snprintf(text, sizeof(text), "saved step %llu", (unsigned long long)node->replica.step);
    }
    msg.text = msg.code != 0 || saves ? text : (char *)"";
    msg.steps = 10 + node->rank;
    msg.stopped = node->stopped;
    msg.leaving = node->renews || node->leaving;
    node->life.anew |= node->renews; /* it takes no other rank any more */
    msg.plan_sha256 = (char *)plan_of(w, node);
    const struct sim_op *op = op_of_job(w, node->job);
    const bool lies = op != NULL && op->digests_differ && node->rank == 1;
    msg.weights_sha256 = (char *)digests[lies];
    if (node->recovers) {
        msg.steps = node->life.verdict.code == 0 ? node->replica.step : 0;
        msg.weights_sha256 = (char *)(node->stands ? ""
                                      : lies       ? digests[1]
                                                   : train_digest(&node->replica, weights));
    }
    net_up(w, node->link, MS_MSG_RANK_DONE, 0, &msg.base);
}

/* What the scheduler may have been told and not have heard, as the agent does. */
static void tell_evals(struct world *w, const struct sim_node *node)
{
    for (uint32_t i = 0; i < node->n_evals; i++) {
        const struct sim_eval *eval = &node->evals[i];
        Ms__Progress msg = MS__PROGRESS__INIT;
        msg.job = node->job;
        msg.generation = node->generation;
        msg.rank = node->rank;
        msg.steps_total = 10;
        msg.step = eval->step;
        msg.epoch = eval->epoch;
        msg.loss = eval->loss;
        msg.accuracy = eval->accuracy;
        msg.has_eval = true;
        msg.phase = (char *)"evaluating";
        net_up(w, node->link, MS_MSG_PROGRESS, 0, &msg.base);
    }
}

static void note_eval(struct sim_node *node, const Ms__Progress *msg)
{
    if (node->n_evals == MS_EVALS_MAX) {
        node->n_evals--;
        memmove(node->evals, node->evals + 1, node->n_evals * sizeof(node->evals[0]));
    }
    node->evals[node->n_evals++] =
        (struct sim_eval){msg->step, msg->epoch, msg->loss, msg->accuracy};
}

void node_tell_saved(struct world *w, const struct sim_node *node)
{
    Ms__Progress msg = MS__PROGRESS__INIT;
    if (node->rank == 0 && node->link != 0 && node->registered && sim_chance(w, 50)) {
        msg.job = node->job;
        msg.generation = node->generation;
        msg.saved = node->saved;
        net_up(w, node->link, MS_MSG_PROGRESS, 0, &msg.base);
    }
}

static void send_progress(struct world *w, struct sim_node *node)
{
    Ms__Progress msg = MS__PROGRESS__INIT;
    msg.job = node->job;
    msg.generation = node->generation;
    msg.rank = node->rank;
    msg.steps_total = 10;
    msg.saved = node->saved_job == node->job ? node->saved : 0;
    const struct sim_op *op = op_of_job(w, node->job);
    const uint32_t epochs = op != NULL ? op->epochs : 0;
    uint32_t epoch = 0;
    /* several of an epoch: the last counts */
    for (uint64_t n = 1 + epochs + sim_below(w, 4); n > 0; n--) {
        node->step += node->recovers ? 0 : epochs > 0 ? 3 : 1;
        msg.step = node->step;
        msg.epoch = 1 + (uint32_t)node->step / 3 + (node->recovers ? epoch++ : 0);
        msg.has_eval = epochs > 0 || sim_chance(w, 50);
        msg.loss = (double)sim_below(w, 1000);
        msg.accuracy = msg.has_eval ? (double)sim_below(w, 100) / 100 : 0;
        /* 64 bytes, all that the wire lets in, of letters of three bytes */
        msg.phase = (char *)(sim_chance(w, 10) ? "\u8bad\u7ec3\u8bad\u7ec3\u8bad\u7ec3\u8bad\u7ec3"
                                                 "\u8bad\u7ec3\u8bad\u7ec3\u8bad\u7ec3\u8bad\u7ec3"
                                                 "\u8bad\u7ec3\u8bad\u7ec3\u8bad."
                                               : "training");
        net_up(w, node->link, MS_MSG_PROGRESS, 0, &msg.base);
        if (msg.has_eval) {
            note_eval(node, &msg);
        }
    }
}

static void send_peer_report(struct world *w, struct sim_node *node, uint32_t peer)
{
    Ms__PeerReport msg = MS__PEER_REPORT__INIT;
    msg.job = node->job;
    msg.generation = node->generation;
    msg.rank = node->rank;
    msg.peer = peer;
    msg.text = (char *)"no bytes for 5 s";
    net_up(w, node->link, MS_MSG_PEER_REPORT, 0, &msg.base);
}

static void send_leave(struct world *w, struct sim_node *node)
{
    Ms__Leave msg = MS__LEAVE__INIT;
    msg.reason = (char *)"the job is over";
    msg.returns = !node->leaving;
    net_up(w, node->link, MS_MSG_LEAVE, 0, &msg.base);
}

void node_report(struct world *w, struct sim_node *node, uint32_t peer)
{
    send_peer_report(w, node, peer);
}

void node_ready(struct world *w, struct sim_node *node)
{
    send_ready(w, node);
}

void node_progress(struct world *w, struct sim_node *node)
{
    send_progress(w, node);
}

/* ---- a rank's life ------------------------------------------------------------------------------
 */

static bool is_ready(const struct sim_node *node)
{
    return node->life.state == LIFE_JOINING && node->life.is_ready;
}

/* It has said its last word, and waits for the scheduler's. */
static bool is_done(const struct sim_node *node)
{
    return node->life.state == LIFE_FINISHING && node->life.is_said;
}

static void say_done(struct world *w, struct sim_node *node)
{
    node->work_at = SIM_FOREVER;
    if (node->registered) {
        send_done(w, node);
    }
    node_tell(node, LIFE_SAID, 0);
}

/* By itself. */
void node_done(struct world *w, struct sim_node *node, int32_t code, bool stopped)
{
    node->stopped = stopped;
    struct life_input input = {.event = code == 0 ? LIFE_DONE : LIFE_FAILED,
                               .generation = node->generation,
                               .saves = (node->rank == 0 || node->life.saves) &&
                                        node->unsaved == 0 &&
                                        life_duty(&node->life) == LIFE_DO_STOP,
                               .code = code,
                               .text = "it went wrong"};
    if (life_apply(&node->life, &input) != LIFE_TAKEN) {
        sim_fail(w, "node %s ends rank %u in state %s", node->id, node->rank,
                 life_machine.states[node->life.state]);
    }
    say_done(w, node);
}

void node_let_go(struct world *w, struct sim_node *node)
{
    node->owed_job = node->job;
    node->owed_generation = node->generation;
    node->owed_rank = node->rank;
    rank_drop(w, node);
}

static bool awaits_plan(const struct sim_node *node)
{
    return node->life.state == LIFE_PLANNING && !node->life.has_plan;
}

/* Rank 0 says what it chose; then all wait to be told. */
static void choose_plan(struct world *w, struct sim_node *node)
{
    const struct sim_op *op = op_of_job(w, node->job);
    bool chooses = node->rank == 0 && node->plan_from == MS_PLAN_RANK_0;
    node->has_chosen = true;
    if (node->registered && (chooses || (w->chaos > 0 && sim_chance(w, 2)))) {
        send_plan(w, node, 0);
    }
    if (node->registered && chooses && op != NULL && op->two_plans) {
        send_plan(w, node, 1);
    }
}

static void plan_and_join(struct world *w, struct sim_node *node, uint32_t bad)
{
    if (node->unfit) {
        node_done(w, node, sim_chance(w, 50) ? MS_E_REFUSED : MS_E_CLOSED, false);
        return;
    }
    if (node->no_good) {
        node_done(w, node, MS_E_UNSUPPORTED, false);
        return;
    }
    if (bad == 1) {
        node_done(w, node, MS_E_INVALID, false);
        return;
    }
    if (awaits_plan(node)) {
        choose_plan(w, node);
        return;
    }
    if (bad == 5 && node->workers > 1 && node->registered) {
        send_peer_report(w, node, (node->rank + 1) % node->workers); /* and is ready all the same */
    }
    node_tell(node, LIFE_MADE, 0);
    if (node->recovers) {
        node_tell(node, LIFE_OBEYED, 0);
        node->work_at = w->now + (int64_t)sim_below(w, 100);
        return; /* it joins its peers */
    }
    node_tell(node, LIFE_MADE, 0);
    if (node->registered && w->chaos > 0 && sim_chance(w, 5)) {
        send_progress(w, node); /* of what it does before it may */
    }
    if (node->registered) {
        send_ready(w, node);
    }
}

static void train(struct world *w, struct sim_node *node, uint32_t bad)
{
    bool holds = node->life.state == LIFE_HOLDING;
    if (holds || (bad == 2 && node->workers > 1 && node->registered)) {
        if (node->registered) {
            send_peer_report(w, node, (node->rank + 1) % node->workers);
        }
        op_cancel_now(w, node->job);
        node_tell(node, LIFE_PEER, MS_E_CLOSED);
        node->work_at = w->now + 150; /* again and again */
        return;                       /* it waits for its peer: the reports must end the job */
    }
    if (bad == 3) {
        op_cancel_now(w, node->job);
    }
    node_done(w, node,
              bad == 3   ? MS_E_CLOSED
              : bad == 4 ? MS_E_FAILED
                         : 0,
              bad == 6 || node->life.at_step);
}

static void begin_order(struct world *w, struct sim_node *node, const struct sim_order *order)
{
    const struct sim_order taken = *order;
    take_order(node, &taken);
    node->is_recalled = false;
    node->unsaved = 0;
    node->stands = false;
    node->next.generation = 0;
    node->owed_job = 0;
    node->work_at = w->now + 10 + (int64_t)sim_below(w, 400);
    const bool is_newcomer = w->chaos > 0 && node->recovers && taken.plan_from == MS_PLAN_GIVEN;
    node->renews =
        w->mode == SCHED_STANDING && w->chaos > 0 && w->now < w->faults_end && sim_chance(w, 6);
    node->unfit = node->renews && sim_chance(w, 50);
    node->renews = node->renews && (node->unfit || !node->recovers);
    node->no_good = is_newcomer && w->now < w->faults_end &&
                    sim_chance(w, w->seed % 3 == 1 ? 50 : 6) && /* or none has the data */
                    disk_job(w, taken.job) != NULL &&
                    disk_job(w, taken.job)->state == JOB_RECOVERING;
}

/* By itself. */
static bool has_failed(const struct sim_node *node)
{
    return node->life.verdict.code != 0 && !node->life.verdict.from_outside &&
           !node->life.is_released;
}

/* Somebody ended it, and it has let go of what it did. */
static void acknowledge(struct world *w, struct sim_node *node)
{
    node->stopped = false; /* not behind a step, as it was asked */
    node->owed_job = node->job;
    node->owed_generation = node->generation;
    node->owed_rank = node->rank;
    say_done(w, node);
    mesh_leave(w, node, true);
    node_tell(node, LIFE_OUT, 0);
    if (node->life.generation != 0) { /* the Assign that was kept, from the beginning */
        begin_order(w, node, &node->next);
        return;
    }
    rank_drop(w, node);
    if (w->mode == SCHED_DYNAMIC) {
        node->leaving = true;
    }
}

/* It went on as the rank of an Assign that was kept. */
static void take_generation(struct world *w, struct sim_node *node)
{
    if (node->life.generation != 0 && node->next.generation == node->life.generation &&
        node->life.generation != node->generation) {
        node->generation = node->life.generation;
        node->workers = node->next.workers;
        node->next.generation = 0;
        node->started = false;
        node->stopped = false;
        node->is_wrong = false;
        node->unsaved = 0;
        node->stands = false;
        node->work_at = w->now + (int64_t)sim_below(w, 100);
    }
}

static void work_due(struct world *w, struct sim_node *node)
{
    const struct sim_op *op = op_of_job(w, node->job);
    uint32_t bad = op != NULL && node->rank == 0 ? op->bad_rank_code : 0;
    node->work_at = SIM_FOREVER;
    if (life_duty(&node->life) == LIFE_DO_SAY) {
        if (has_failed(node)) { /* of the generation before, which was not heard */
            say_done(w, node);
        } else {
            acknowledge(w, node);
        }
        return;
    }
    if (node->recovers && node->life.state != LIFE_PLANNING) {
        train_due(w, node, bad);
        take_generation(w, node);
        return;
    }
    switch (life_duty(&node->life)) {
    case LIFE_DO_PLAN:
        plan_and_join(w, node, bad);
        break;
    case LIFE_DO_TRAIN:
    case LIFE_DO_HOLD:
        train(w, node, bad);
        break;
    default:
        break;
    }
}

/* The rank in hand is over for both sides: the one that is kept begins. */
static void acknowledge_next(struct world *w, struct sim_node *node)
{
    mesh_leave(w, node, true);
    node_tell(node, LIFE_OUT, 0);
    if (node->life.generation != 0) {
        begin_order(w, node, &node->next);
    }
}

/* As the agent does; that of a release before this one does not say that it leaves. */
static void decline(struct world *w, const struct sim_node *node, const Ms__Assign *msg)
{
    Ms__RankDone done = MS__RANK_DONE__INIT;
    done.job = msg->job;
    done.generation = msg->generation;
    done.rank = msg->rank;
    done.leaving = (node->renews || node->leaving) && w->seed % 3 != 0;
    done.code = done.leaving ? MS_E_CANCELLED : MS_E_FULL;
    done.text = (char *)"it takes no rank now";
    done.weights_sha256 = done.plan_sha256 = done.log_path = (char *)"";
    net_up(w, node->link, MS_MSG_RANK_DONE, 0, &done.base);
}

static void on_assign(struct world *w, struct sim_node *node, const Ms__Assign *msg)
{
    const bool is_free = node->job == 0;
    struct life_input input = {.event = LIFE_ASSIGN,
                               .job = msg->job,
                               .generation = msg->generation,
                               .rank = msg->rank,
                               .plan_from = msg->plan_from,
                               .recovers = train_recovers(w, msg->job)};
    check_assign(w, node, msg);
    node->generation_max = msg->generation;
    node->last_job = msg->job;
    node->last_generation = msg->generation;
    node->last_rank = msg->rank;
    const int answer = life_apply(&node->life, &input);
    if ((answer & LIFE_DECLINED) != 0 && node->life.anew) {
        decline(w, node, msg); /* that it leaves is on its way */
        node_let_go(w, node);
        return;
    }
    if ((answer & (LIFE_STALE | LIFE_DECLINED)) != 0) {
        sim_fail(w, "node %s cannot take rank %u of job %llu (%s)", node->id, msg->rank,
                 (unsigned long long)msg->job, life_machine.states[node->life.state]);
        return;
    }
    node->next = (struct sim_order){.job = msg->job,
                                    .generation = msg->generation,
                                    .rank = msg->rank,
                                    .workers = msg->world_size,
                                    .plan_from = (enum ms_plan_from)msg->plan_from,
                                    .recovers = input.recovers != 0};
    if (!is_free) { /* it goes on at once, or what it does is given up first */
        const bool waits = node->life.state == LIFE_FINISHING && node->life.is_said;
        node->work_at = w->now + (int64_t)sim_below(w, 60);
        take_generation(w, node);
        if (waits) { /* all is said of the rank in hand */
            acknowledge_next(w, node);
        }
        return;
    }
    begin_order(w, node, &node->next);
    if (node->stuck > 0 && w->topo_ms >= 0) {
        node->stuck--;
        node->work_at = SIM_FOREVER;
        if (w->mode == SCHED_STANDING && sim_chance(w, 50)) {
            node->away_job = node->job;
            sim_at(w, w->now + w->topo_ms - 300, SIM_ADMIN, ADMIN_AWAY, w->boot, 0);
        }
    }
}

static void on_plan(struct world *w, struct sim_node *node, const Ms__Plan *msg)
{
    struct life_input input = {.event = LIFE_PLAN, .job = msg->job, .generation = msg->generation};
    const bool is_next = node->next.generation != 0 && msg->generation == node->next.generation;
    if (!is_next && (msg->job != node->job || msg->generation != node->generation)) {
        return;
    }
    check_plan(w, node, msg);
    char *plan = is_next ? node->next.plan : node->plan;
    if (plan[0] != '\0' && strcmp(plan, msg->plan) != 0) {
        sim_fail(w, "node %s hears two plans of generation %llu", node->id,
                 (unsigned long long)msg->generation);
    }
    snprintf(plan, SIM_PLAN_MAX, "%s", msg->plan);
    life_apply(&node->life, &input);
    if (node->has_chosen && node->life.state == LIFE_PLANNING) {
        node->work_at = w->now + 10 + (int64_t)sim_below(w, 200);
    }
}

static void on_start(struct world *w, struct sim_node *node, const Ms__Start *msg)
{
    if (msg->generation != node->generation) {
        return;
    }
    if (node->life.next.generation != 0) {
        return; /* of a generation that is given up already */
    }
    const bool said_so = node->recovers && node->life.at_step; /* and its word is on its way */
    const bool is_stopping = node->life.state == LIFE_FINISHING && (!node->life.is_said || said_so);
    if (node->recovers && node->life.state == LIFE_HOLDING) {
        return; /* it lost a peer meanwhile */
    }
    if (!is_ready(node) && !is_stopping) {
        sim_fail(w, "node %s: Start of job %llu, and it is not ready for it (%s)", node->id,
                 (unsigned long long)msg->job, life_machine.states[node->life.state]);
        return;
    }
    if (node_tell(node, LIFE_START, 0) == LIFE_TAKEN) {
        node->started = true;
        node->work_at = w->now + 50 + (int64_t)sim_below(w, 3000);
        if (node->recovers) {
            train_start(w, node);
        }
        if (node->rank == 0 && node->registered) {
            tell_evals(w, node);
            send_progress(w, node);
        }
    }
}

/* Its host is cut off when it is asked to stop, for longer than the grace. Drawn apart,
 * once more when it is asked to save after its end. */
static bool is_cut_off(struct world *w, struct sim_node *node)
{
    const uint64_t drawn = ms_rng_mix(~w->seed ^ ~(node->incarnation + is_done(node)));
    struct sim_link *link = &w->links[node->link - 1];
    if (w->chaos == 0 || w->lease_ms <= MS_CANCEL_GRACE_MS || !node->recovers || drawn % 2 != 0 ||
        link->stalled_from <= w->now) {
        return false;
    }
    link->stalled_from = w->now;
    link->stalled_until = w->now + MS_CANCEL_GRACE_MS + (int64_t)(drawn / 2 % MS_CANCEL_GRACE_MS);
    sim_trace(w, "node %s is cut off", node->id);
    return true;
}

/* As the agent does, whatever the trainer makes of it: who gives none counts as lost when the grace
 * ends. */
static void answer_stop(struct world *w, struct sim_node *node)
{
    if (node->registered) {
        send_beat(w, node);
    }
}

/* Rank 0 is asked to stop, and dies before it has saved anything: the others have stopped by then.
 * Drawn apart. */
static bool dies_unsaved(const struct world *w, struct sim_node *node)
{
    const uint64_t drawn = ms_rng_mix(~w->seed ^ node->incarnation);
    const bool dies = w->chaos > 0 && w->now < w->faults_end && node->recovers && node->rank == 0 &&
                      node->workers > 1 && !is_done(node) && drawn % 2 == 0;
    const int64_t at = w->now + (int64_t)(drawn / 2 % 300);
    node->die_at = dies && at < node->die_at ? at : node->die_at;
    return dies;
}

/* Something on the way resets its connection, whose other end learns that late: what it was asked,
 * to save after its end, is lost with it. Drawn apart, once for each generation. */
static bool loses_recall(struct world *w, struct sim_node *node, const Ms__Stop *msg)
{
    if (!is_done(node) || msg->saves == 0 || node->recall_lost == msg->generation ||
        w->chaos == 0 || ms_rng_mix(w->seed ^ node->incarnation) % 4 == 0) {
        return false;
    }
    struct sim_link *link = &w->links[node->link - 1];
    node->recall_lost = msg->generation;
    link->stalled_from = w->now;
    link->stalled_until = w->now + w->lease_ms;
    sim_trace(w, "node %s does not hear what it was asked", node->id);
    link_drop(w, node);
    return true;
}

static void on_stop(struct world *w, struct sim_node *node, const Ms__Stop *msg)
{
    const bool is_next = node->next.generation != 0 && msg->generation == node->next.generation;
    bool about_us =
        node->job != 0 && (msg->generation == 0 || msg->generation == node->generation || is_next);
    if (w->mode == SCHED_DYNAMIC && (about_us || msg->job == 0) && !msg->at_step) {
        node->leaving = true;
    }
    if (!about_us) {
        return;
    }
    if (msg->at_step) {
        if (dies_unsaved(w, node) || (msg->code != MS_OK && is_cut_off(w, node))) {
            return;
        }
        answer_stop(w, node);
        const struct sim_op *op = op_of_job(w, node->job);
        const bool is_cancel =
            strstr(msg->text, "cancelled by ") != NULL; /* else it tries once more */
        if ((node->deaf && is_cancel) || (op != NULL && op->last_step && msg->code != MS_OK &&
                                          node->life.state == LIFE_TRAINING)) {
            if (node->workers > 1 && sim_chance(w, 50)) {
                send_peer_report(w, node,
                                 (node->rank + 1) % node->workers); /* of one that stopped sooner */
            }
            return; /* in a step without end: the grace must end it */
        }
        if (loses_recall(w, node, msg)) {
            return;
        }
        const bool was_done = is_done(node) && msg->generation == node->generation;
        node->is_recalled = was_done ? msg->saves != 0 : node->is_recalled;
        struct life_input input = {.event = LIFE_AT_STEP,
                                   .job = msg->job,
                                   .generation = msg->generation,
                                   .code = msg->code,
                                   .saves = msg->saves != 0,
                                   .stands = msg->stands != 0,
                                   .text = msg->text};
        const int answer = life_apply(&node->life, &input);
        if (was_done && answer == LIFE_STALE) { /* as the agent does */
            send_done(w, node);
        } else if ((answer & LIFE_HOLD) != 0) {
            train_give_up(w, node);
        } else if ((answer & LIFE_INTERRUPT) != 0) {
            node->work_at = w->now + (int64_t)sim_below(w, 300);
        } else if (answer == LIFE_STEP && node->life.state == LIFE_TRAINING) {
            node_done(w, node, 0, true);
        } else if (life_duty(&node->life) ==
                   LIFE_DO_STOP) { /* it holds the step that is the last */
            node->work_at = w->now + (int64_t)sim_below(w, 100);
        } /* else there is no step yet, or it cannot end without its peer */
        return;
    }
    if (is_next) { /* it is answered when what is in hand is let go */
        struct life_input input = {
            .event = LIFE_STOP, .job = msg->job, .generation = msg->generation, .code = msg->code};
        life_apply(&node->life, &input);
        return;
    }
    int answer = node_tell(node, LIFE_STOP, msg->code);
    if (is_done(node) || node->leaving) { /* nobody waits for an answer */
        rank_drop(w, node);
    } else if (answer & LIFE_INTERRUPT) {
        node->work_at = w->now + (int64_t)sim_below(w, 300);
        if (w->chaos > 0 && w->mode == SCHED_STANDING && sim_chance(w, 2)) {
            node->work_at += MS_STOP_ANSWER_MS + 1000; /* a trainer that does not end */
        }
    }
}

static void on_log_read(struct world *w, struct sim_node *node, const Ms__LogRead *msg)
{
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    char text[96];
    int n = snprintf(text, sizeof(text), "job %llu rank %u from %llu", (unsigned long long)msg->job,
                     msg->rank, (unsigned long long)msg->offset);
    chunk.route = msg->route;
    chunk.offset = msg->offset;
    chunk.data.data = (uint8_t *)text;
    chunk.data.len = (size_t)n < msg->bytes_max ? (size_t)n : msg->bytes_max;
    chunk.at_end = true;
    net_up(w, node->link, MS_MSG_LOG_CHUNK, 0, &chunk.base);
}

static void on_fetch_grant(struct world *w, const struct sim_node *node, const Ms__FetchGrant *msg)
{
    Ms__FetchReady ready = MS__FETCH_READY__INIT;
    char token[MS_TOKEN_LEN + 1];
    snprintf(token, sizeof(token), "%08llx%04x%02x%018llx", (unsigned long long)msg->job, msg->rank,
             msg->what, (unsigned long long)(sim_random(w) >> 8));
    ready.route = msg->route;
    ready.address = (char *)"10.0.0.9:8300";
    ready.cert_sha256 = (char *)node->id;
    ready.size = 1 + sim_below(w, 100000);
    ready.token.data = (uint8_t *)token;
    ready.token.len = MS_TOKEN_LEN;
    if (sim_chance(w, 10)) {
        ready.code = MS_E_NOT_FOUND;
        ready.text = (char *)"there is no such file";
    } else if (w->chaos > 0 && sim_chance(w, 5)) {
        return; /* it has more important things to do */
    }
    if (w->chaos > 0 && sim_chance(w, 15)) { /* and somebody else takes it for his */
        const struct sim_node *other = &w->nodes[sim_below(w, w->n_nodes)];
        if (other != node && other->alive && !other->hung && other->registered) {
            ready.size++;
            net_up(w, other->link, MS_MSG_FETCH_READY, 0, &ready.base);
            ready.size--;
        }
    }
    net_up(w, node->link, MS_MSG_FETCH_READY, 0, &ready.base);
}

static void take_stamp(struct sim_node *node, const ProtobufCBinaryData *stamp)
{
    if (stamp->len == MS_STAMP_LEN) {
        memcpy(node->stamp_told, stamp->data, MS_STAMP_LEN);
        node->stamp_bytes = MS_STAMP_LEN;
    }
}

static void on_registered(struct world *w, struct sim_node *node)
{
    node->registered = true;
    node->beat_at = w->now + node->lease_ms / (flaps_now(w, node) ? 16 : 3);
    const bool holds = node->recovers && node->life.state == LIFE_HOLDING && !node->life.is_held;
    tell_evals(w, node);
    if (node->saved > 0 && node->saved_job == node->job) { /* again */
        node_tell_saved(w, node);
    }
    if (holds) {
        send_peer_report(w, node, node->accused);
    } else if (is_ready(node)) { /* what had no answer yet is said again */
        send_ready(w, node);
    } else if (awaits_plan(node) && node->has_chosen) {
        choose_plan(w, node);
    } else if (node->life.state == LIFE_TRAINING && node->rank == 0) {
        send_progress(w, node);
    } else if (is_done(node)) {
        send_done(w, node);
    } else if (node->owed_job != 0) {
        struct sim_node owed = *node;
        owed.job = node->owed_job;
        owed.generation = node->owed_generation;
        owed.rank = node->owed_rank;
        owed.stopped = false;
        owed.life.verdict.code = MS_E_ABORTED;
        send_done(w, &owed);
    }
}

static void on_error(struct world *w, struct sim_node *node, uint32_t i, uint32_t id,
                     const Ms__Error *msg)
{
    sim_trace(w, "node %s hears: %s", node->id, msg->text);
    if (msg->text[0] == '\0') {
        sim_fail(w, "node %s was refused without words", node->id);
    }
    if (id == REGISTER_ID && msg->code != MS_E_FULL) {
        node_kill(w, i, w->mode == SCHED_DYNAMIC || node->twin);
    }
}

void node_frame(struct world *w, uint32_t i, uint16_t type, uint32_t id,
                const ProtobufCMessage *msg)
{
    struct sim_node *node = &w->nodes[i];
    if (!node->alive || node->hung) {
        return;
    }
    node->heard_at = w->now;
    if (type == MS_MSG_ASSIGN || type == MS_MSG_STOP) {
        node->owed_job = 0;
    }
    switch (type) {
    case MS_MSG_REGISTERED:
        node->lease_ms = (int64_t)((const Ms__Registered *)msg)->lease_ms;
        take_stamp(node, &((const Ms__Registered *)msg)->stamp);
        on_registered(w, node);
        break;
    case MS_MSG_HEARTBEAT_ACK:
        node->lease_ms = (int64_t)((const Ms__HeartbeatAck *)msg)->lease_ms;
        take_stamp(node, &((const Ms__HeartbeatAck *)msg)->stamp);
        if (node->beat_at > w->now + node->lease_ms / 3) {
            node->beat_at = w->now + node->lease_ms / 3;
        }
        break;
    case MS_MSG_ASSIGN:
        on_assign(w, node, (const Ms__Assign *)msg);
        break;
    case MS_MSG_PLAN:
        on_plan(w, node, (const Ms__Plan *)msg);
        break;
    case MS_MSG_START:
        on_start(w, node, (const Ms__Start *)msg);
        break;
    case MS_MSG_STOP:
        on_stop(w, node, (const Ms__Stop *)msg);
        break;
    case MS_MSG_LOG_READ:
        on_log_read(w, node, (const Ms__LogRead *)msg);
        break;
    case MS_MSG_FETCH_GRANT:
        on_fetch_grant(w, node, (const Ms__FetchGrant *)msg);
        break;
    case MS_MSG_ERROR:
        on_error(w, node, i, id, (const Ms__Error *)msg);
        break;
    default:
        break;
    }
    node_wake(w, i);
}

void node_hung_up(struct world *w, uint32_t i)
{
    if (w->nodes[i].alive && !w->nodes[i].hung) {
        link_drop(w, &w->nodes[i]);
        node_wake(w, i);
    }
}

/* ---- time passes --------------------------------------------------------------------------------
 */

static void script_due(struct world *w, struct sim_node *node, uint32_t i)
{
    if (!node->alive && !node->gone_for_good && w->now >= node->start_at) {
        node_start(w, node);
    }
    if (node->alive && w->now >= node->die_at) {
        node->die_at = SIM_FOREVER;
        node_kill(w, i, sim_chance(w, w->mode == SCHED_DYNAMIC && !w->recovery ? 50 : 20));
        if (node->deaths_left > 0) {
            node->deaths_left--;
            node->die_at = w->now + (int64_t)sim_below(w, 10000);
        }
        if (node->die_at > w->faults_end) {
            node->die_at = SIM_FOREVER;
        }
    }
    if (node->alive && node->link != 0 && w->now >= node->stall_at) {
        struct sim_link *link = &w->links[node->link - 1];
        const int64_t until = node->stall_ms == SIM_FOREVER ? SIM_FOREVER : w->now + node->stall_ms;
        const bool is_longer = link->stalled_from > w->now || link->stalled_until < until;
        link->stalled_from = is_longer ? w->now : link->stalled_from;
        link->stalled_until = is_longer ? until : link->stalled_until;
        sim_trace(w, "node %s falls silent for %lld ms", node->id, (long long)node->stall_ms);
        node->stall_at = SIM_FOREVER;
    }
    if (node->alive && w->now >= node->hang_at) {
        node->hang_at = SIM_FOREVER;
        node->hung = true;
        node->wake_at = SIM_FOREVER;
        node->hung_at = w->frozen_until > w->now ? w->frozen_until : w->now;
        node->hung_boot = w->boot + w->freezes;
        const int64_t until = w->now + (int64_t)sim_below(w, 3 * (uint64_t)w->lease_ms);
        if (sim_chance(w, 50)) {
            node->wake_at = until;
        } else {
            node->die_at = until;
        }
        sim_trace(w, "node %s hangs", node->id);
    }
    if (node->alive && node->hung && w->now >= node->wake_at) {
        check_lost(w, node);
        node->hung = false;
        node->wake_at = SIM_FOREVER;
        node->woke_at = w->now;
        sim_trace(w, "node %s wakes up", node->id);
    }
}

/* Something on the way resets the connection of a process that is well. */
static bool is_cut_now(const struct world *w, struct sim_node *node)
{
    node->cuts_left = w->now < w->faults_end ? node->cuts_left : 0;
    if (node->cuts_left == 0 || node->job == 0 || !node->registered) {
        return false;
    }
    if (node->cut_at <= node->register_at) { /* it has just come back: again, in a moment */
        node->cut_at = w->now + 20 + (int64_t)(node->incarnation % 300);
    }
    const bool is_now = w->now >= node->cut_at;
    node->cuts_left -= is_now;
    return is_now;
}

static void line_due(struct world *w, struct sim_node *node, uint32_t i)
{
    if (node->link != 0 && w->now - node->heard_at > node->lease_ms) {
        link_drop(w, node); /* open, and nobody answers */
    }
    int64_t patience = node->slow ? MS_PATIENCE_LEASES * node->lease_ms : node->lease_ms;
    if (node->link == 0 && node->job != 0 && !node->recovers &&
        w->now - node->heard_at > patience) {
        sim_trace(w, "node %s gives up its rank: no scheduler", node->id);
        if (w->mode == SCHED_DYNAMIC || sim_chance(w, 50)) {
            node_kill(w, i, w->mode == SCHED_DYNAMIC);
            return;
        }
        rank_drop(w, node);
    }
    if (node->link == 0 && w->now >= node->retry_at) {
        node->link = net_open(w, true, i, node->epoch);
        node->retry_at = w->now + 100 + (int64_t)sim_below(w, 400);
        if (node->link != 0) {
            node->heard_at = node->job != 0 ? node->heard_at : w->now;
            lie(w, node);
            send_register(w, node, i);
        }
    }
    if (node->link != 0 && !node->registered && w->now - node->register_at > node->lease_ms / 2) {
        link_drop(w, node);
    }
    if (is_cut_now(w, node)) {
        link_drop(w, node);
        return;
    }
    if (node->registered && w->now >= node->beat_at) {
        if (flaps_now(w, node)) {
            link_drop(w, node);
            return;
        }
        send_beat(w, node);
    }
}

void node_breaks_off(struct world *w, uint32_t i, int64_t ms)
{
    struct sim_node *node = &w->nodes[i];
    sim_trace(w, "node %s breaks off for %lld ms", node->id, (long long)ms);
    link_drop(w, node);
    node->retry_at = w->now + ms;
    node_wake(w, i);
}

static int64_t next_due(const struct sim_node *node)
{
    int64_t at = SIM_FOREVER;
    int64_t times[] = {node->alive || node->gone_for_good ? SIM_FOREVER : node->start_at,
                       node->alive ? node->die_at : SIM_FOREVER,
                       node->alive && node->link != 0 ? node->stall_at : SIM_FOREVER,
                       node->alive ? node->hang_at : SIM_FOREVER,
                       node->alive && !node->hung ? node->work_at : SIM_FOREVER,
                       node->alive && !node->hung ? node->notice_at : SIM_FOREVER,
                       node->alive && node->hung ? node->wake_at : SIM_FOREVER,
                       node->alive && !node->hung && node->link == 0 ? node->retry_at : SIM_FOREVER,
                       node->alive && !node->hung && node->registered ? node->beat_at : SIM_FOREVER,
                       node->alive && !node->hung && node->registered && node->cuts_left > 0 &&
                               node->job != 0 && node->cut_at > node->register_at
                           ? node->cut_at
                           : SIM_FOREVER,
                       node->alive && !node->hung && node->link != 0 && !node->registered
                           ? node->register_at + node->lease_ms / 2 + 1
                           : SIM_FOREVER};
    for (size_t i = 0; i < MS_ARRAY_SIZE(times); i++) {
        at = times[i] < at ? times[i] : at;
    }
    return at;
}

void node_work_at(struct world *w, struct sim_node *node, int64_t at)
{
    node->work_at = at;
    node_schedule(w, (uint32_t)(node - w->nodes), next_due(node));
}

void node_wake(struct world *w, uint32_t i)
{
    struct sim_node *node = &w->nodes[i];
    script_due(w, node, i);
    if (node->alive && !node->hung && w->now >= node->notice_at) {
        train_peer_gone(w, node);
        take_generation(w, node);
    }
    if (node->alive && !node->hung && w->now >= node->work_at) {
        work_due(w, node);
    }
    bool renews =
        node->renews && (node->life.state == LIFE_IDLE || node->life.state == LIFE_LEAVING);
    if (node->alive && !node->hung && (node->leaving || renews)) {
        if (node->registered) {
            send_leave(w, node);
        }
        node_kill(w, i, node->leaving && !(w->recovery && sim_chance(w, 70)));
    }
    if (node->alive && !node->hung) {
        line_due(w, node, i);
    }
    int64_t at = next_due(node);
    node_schedule(w, i, at > w->now ? at : w->now + 1);
    if (at == SIM_FOREVER) {
        node->stamp++;
    }
}
