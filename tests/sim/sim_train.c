/* sim_train.c - trainers of jobs that recover: real steps, real digests, and all that recovery asks
 * of a worker
 *
 *     joins the mesh -> all agree on a step -> pulls what it lacks -> RankReady -> Start
 *     contributes to the sum of a step -> all have -> commits, each in its own time
 *     a peer is gone: holds, tells, and waits for the next generation
 *
 * The digest of a replica follows from the plan and from what each rank contributed to each step:
 * a step that was lost, repeated or taken from somebody else is seen in it. */
#include "tests/sim/model.h"

#include "proto/rng.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

enum { RESTARTS_MS = 200, SHORT = 0x5407, FULL = 0xf011, HANGS = 0x4a26 };

enum { STEPS_LEAST = 2, STEPS_MORE = 7, CHECKPOINT_STEPS = 2, POLL_MS = 400 };

bool train_recovers(const struct world *w, uint64_t job)
{
    bool recovers = false; /* also of one that is forgotten, whose Assign is still on its way */
    for (size_t i = 0; i < w->model->jobs.n; i++) { /* a number may come again after a loss */
        const struct m_job *one = &w->model->jobs.at[i];
        recovers = one->id == job ? one->recovery : recovers;
    }
    return recovers;
}

uint64_t train_steps(const struct world *w, uint64_t job)
{
    return STEPS_LEAST + ms_rng_mix(w->seed ^ job) % STEPS_MORE;
}

/* ---- digests ------------------------------------------------------------------------------------
 */

static uint64_t share_of(uint64_t job, uint32_t rank, uint64_t step)
{
    return ms_rng_mix(ms_rng_mix(job << 32 ^ rank) ^ step);
}

static uint64_t digest_next(uint64_t digest, uint64_t sum)
{
    return ms_rng_mix(digest ^ ms_rng_mix(sum));
}

static uint64_t digest_first(uint64_t job, const char *plan)
{
    uint64_t digest = ms_rng_mix(job);
    for (; *plan != '\0'; plan++) {
        digest = ms_rng_mix(digest ^ (uint8_t)*plan);
    }
    return digest;
}

/* Of the run that nothing happened to. */
static uint64_t digest_at(const struct sim_training *training, uint64_t step)
{
    uint64_t digest = training->start;
    for (uint64_t k = 1; k <= step; k++) {
        uint64_t sum = 0;
        for (uint32_t rank = 0; rank < training->workers; rank++) {
            sum += share_of(training->job, rank, k);
        }
        digest = digest_next(digest, sum);
    }
    return digest;
}

const char *train_digest(const struct sim_replica *replica, char ret[65])
{
    snprintf(ret, 65, "%016llx", (ull)replica->digest);
    return ret;
}

static struct sim_training *training_of(struct world *w, uint64_t job)
{
    for (uint32_t i = 0; i < w->n_trainings; i++) {
        if (w->trainings[i].job == job) {
            return &w->trainings[i];
        }
    }
    return NULL;
}

/* The first step that anybody commits settles by which plan. */
static struct sim_training *training_begin(struct world *w, const struct sim_node *node,
                                           uint64_t start)
{
    struct sim_training *training = training_of(w, node->job);
    if (training == NULL && w->n_trainings < MS_ARRAY_SIZE(w->trainings)) {
        training = &w->trainings[w->n_trainings++];
        *training = (struct sim_training){node->job, start, 0, node->workers};
    }
    return training;
}

/* ---- checkpoints --------------------------------------------------------------------------------
 */

static void checkpoint_write(struct world *w, struct sim_node *node)
{
    struct sim_checkpoint *to = &w->checkpoints[w->n_checkpoints % SIM_CHECKPOINTS_MAX];
    w->n_checkpoints++;
    memcpy(to->host, node->host, sizeof(to->host));
    to->replica = node->replica;
    to->torn = w->chaos > 0 && sim_chance(w, 20);
    if (!to->torn) {
        node->saved_job = node->job;
        node->saved = node->replica.step;
        node_tell_saved(w, node);
    }
}

/* The newest that is whole, of the ranks' hosts; NULL: none. */
static const struct sim_checkpoint *checkpoint_find(struct world *w,
                                                    const struct sim_generation *mesh,
                                                    uint32_t *ret_rank)
{
    const struct sim_checkpoint *best = NULL;
    for (uint32_t i = 0; i < w->n_checkpoints && i < SIM_CHECKPOINTS_MAX; i++) {
        const struct sim_checkpoint *one = &w->checkpoints[i];
        for (uint32_t rank = 0; rank < mesh->workers; rank++) {
            if (one->replica.job == mesh->job && !one->torn &&
                strcmp(one->host, w->nodes[mesh->seats[rank].node].host) == 0 &&
                (best == NULL || one->replica.step > best->replica.step)) {
                best = one;
                *ret_rank = rank;
            }
        }
    }
    return best;
}

/* ---- agreeing -----------------------------------------------------------------------------------
 */

/* Ranks that trained are at most one step apart, and those at one step have one state. */
static void check_survivors(struct world *w, const struct sim_generation *mesh, uint32_t source)
{
    const struct sim_replica *best = &w->nodes[mesh->seats[source].node].replica;
    for (uint32_t rank = 0; rank < mesh->workers; rank++) {
        const struct sim_replica *other = &w->nodes[mesh->seats[rank].node].replica;
        if (other->job == mesh->job &&
            ((other->step + 1 < best->step && !other->is_copy) ||
             (other->step == best->step && other->digest != best->digest))) {
            sim_fail(w,
                     "job %llu, generation %llu: rank %u goes on from step %llu, rank %u from %llu",
                     (ull)mesh->job, (ull)mesh->generation, rank, (ull)other->step, source,
                     (ull)best->step);
        }
    }
}

static void agree(struct world *w, struct sim_generation *mesh)
{
    bool found = false;
    for (uint32_t rank = 0; rank < mesh->workers; rank++) {
        const struct sim_replica *replica = &w->nodes[mesh->seats[rank].node].replica;
        if (replica->job == mesh->job && (!found || replica->step > mesh->agreed.step)) {
            found = true;
            mesh->source = rank;
            mesh->agreed = *replica;
        }
    }
    if (found) {
        check_survivors(w, mesh, mesh->source);
        mesh->from = MS_STATE_PULLED;
    } else {
        const struct sim_checkpoint *one = checkpoint_find(w, mesh, &mesh->source);
        mesh->from = one != NULL ? MS_STATE_CHECKPOINT : MS_STATE_KEPT;
        mesh->agreed = one != NULL ? one->replica : (struct sim_replica){mesh->job, 0, 0, true};
    }
    mesh->stands = true;
    memset(mesh->sums, 0, sizeof(mesh->sums));
    sim_trace(w, "job %llu, generation %llu: agreed on step %llu (%s)", (ull)mesh->job,
              (ull)mesh->generation, (ull)mesh->agreed.step,
              found                               ? "a rank has it"
              : mesh->from == MS_STATE_CHECKPOINT ? "a checkpoint"
                                                  : "from the beginning");
    for (uint32_t rank = 0; rank < mesh->workers; rank++) {
        struct sim_node *node = &w->nodes[mesh->seats[rank].node];
        bool pulls = node->replica.job != mesh->job || node->replica.step != mesh->agreed.step;
        node_work_at(w, node, w->now + 1 + (int64_t)sim_below(w, pulls ? 150 : 20));
    }
}

/* ---- peers that are gone ------------------------------------------------------------------------
 */

static void hold_for(struct world *w, struct sim_node *node, uint32_t peer, int code)
{
    node->phase = SIM_COMPUTES;
    node->accused = peer;
    node_tell(node, LIFE_PEER, code);
    node->work_at = SIM_FOREVER;
    if (life_duty(&node->life) == LIFE_DO_STOP) { /* nobody has to hear why */
        node->work_at = w->now + (int64_t)sim_below(w, 100);
    } else if (life_duty(&node->life) == LIFE_DO_HOLD) {
        sim_trace(w, "node %s holds at step %llu: rank %u is gone", node->id,
                  (ull)node->replica.step, peer);
        if (node->registered) {
            node_report(w, node, node->accused);
        }
    }
}

static void hold(struct world *w, struct sim_node *node, uint32_t peer)
{
    bool is_seen = sim_chance(w, 30);
    mesh_leave(w, node, is_seen);
    peer = sim_chance(w, 5) && node->recovers ? node->rank : peer; /* its own reason */
    hold_for(w, node, peer, MS_E_CLOSED);
}

/* A survivor has too little memory, or too few descriptors, for the new mesh: for a while, or for
 * good. The others see it go. */
static bool is_short(struct world *w, struct sim_node *node)
{
    const uint64_t drawn = ms_rng_mix(w->seed ^ (node->incarnation + SHORT));
    const uint32_t times = drawn % 8 == 0 ? 1 + (uint32_t)(drawn >> 8) % (2 * MS_RESTARTS_MAX) : 0;
    if (w->now >= w->faults_end || w->chaos == 0 || node->life.state != LIFE_PULLING ||
        node->n_short >= times) {
        return false;
    }
    node->n_short++;
    mesh_leave(w, node, true);
    hold_for(w, node, node->rank, MS_E_NOMEM);
    return true;
}

/* Who restarts one worker of a job restarts the next one, too, when that hears of the first; over a
 * slow link, so that its word and the next round cross. */
static bool is_restarted_next(struct world *w, struct sim_node *node)
{
    if (node->life.state != LIFE_TRAINING || !node->registered || node->job != w->restarts_job ||
        w->now >= w->restarts_until || ms_rng_mix(w->seed ^ node->incarnation) % 2 != 0) {
        return false;
    }
    struct sim_link *link = &w->links[node->link - 1];
    if (link->stalled_from > w->now) {
        link->stalled_from = w->now;
        link->stalled_until = w->now + RESTARTS_MS;
    }
    node->renews = true;
    node_done(w, node, MS_E_CANCELLED, false);
    return true;
}

void train_peer_gone(struct world *w, struct sim_node *node)
{
    const enum life_state state = node->life.state;
    node->notice_at = SIM_FOREVER;
    if (is_restarted_next(w, node)) {
        w->restarts_until = 0;
    } else if (node->mesh != 0 &&
               (state == LIFE_JOINING || state == LIFE_TRAINING || state == LIFE_PULLING)) {
        hold(w, node, node->notice);
    }
}

void train_give_up(struct world *w, struct sim_node *node)
{
    hold(w, node, (node->rank + 1) % node->workers);
}

/* Nothing came of it for too long. */
static uint32_t silent_peer(struct world *w, const struct sim_node *node)
{
    const struct sim_generation *mesh = mesh_of(w, node);
    for (uint32_t rank = 0; rank < mesh->workers; rank++) {
        const struct sim_node *peer = mesh_node(w, mesh, rank);
        if (rank != node->seat && (peer == NULL || !mesh_reaches(w, mesh, rank, node->seat) ||
                                   peer->hung || (mesh->stands && peer->phase == SIM_COMPUTES))) {
            return rank;
        }
    }
    return (node->seat + 1) % mesh->workers;
}

static bool waits_too_long(struct world *w, struct sim_node *node)
{
    if (w->now < node->peer_until || node->workers < 2) {
        return false;
    }
    hold(w, node, silent_peer(w, node));
    return true;
}

/* ---- the mesh, and the state --------------------------------------------------------------------
 */

static bool take_state(struct world *w, struct sim_node *node, struct sim_generation *mesh)
{
    const struct sim_node *source = mesh_node(w, mesh, mesh->source);
    node->state_rank = mesh->source;
    node->state_from = mesh->from;
    if (node->replica.job == mesh->job && node->replica.step == mesh->agreed.step) {
        node->state_from = MS_STATE_KEPT;
    } else if (mesh->from == MS_STATE_KEPT) {
        node->replica =
            (struct sim_replica){mesh->job, 0, digest_first(mesh->job, node->plan), true};
    } else if (mesh->source == node->seat) {
        node->replica = mesh->agreed;
        node->replica.is_copy = true;
    } else if (source == NULL || source->hung || !mesh_reaches(w, mesh, mesh->source, node->seat)) {
        return false; /* what it has stays as it is */
    } else {
        node->replica = mesh->agreed;
        node->replica.is_copy = true;
    }
    return true;
}

static void join(struct world *w, struct sim_node *node)
{
    if (node->mesh != node->generation) {
        mesh_leave(w, node, false);
        mesh_join(w, node);
    }
    struct sim_generation *mesh = mesh_of(w, node);
    if (mesh == NULL || (!mesh->stands && is_short(w, node))) {
        return;
    }
    bool is_new = !mesh->stands && mesh_stands(w, mesh);
    if (is_new) {
        agree(w, mesh);
    }
    if (is_new || waits_too_long(w, node)) {
        return;
    }
    if (!mesh->stands || !take_state(w, node, mesh)) {
        node->work_at = w->now + POLL_MS < node->peer_until ? w->now + POLL_MS : node->peer_until;
        return;
    }
    node_tell(node, LIFE_MADE, 0);
    node->peer_until = SIM_FOREVER;
    if (node->registered) {
        node_ready(w, node);
    }
}

/* ---- steps --------------------------------------------------------------------------------------
 */

static int64_t step_ms(struct world *w)
{
    return 10 + (int64_t)sim_below(w, sim_chance(w, 80) ? 300 : 900);
}

static void contribute(struct world *w, struct sim_node *node, struct sim_generation *mesh)
{
    const uint64_t step = node->replica.step + 1;
    struct sim_sum *sum = &mesh->sums[step % 2];
    if (sum->step != step) {
        if (sum->step != 0 && sum->n != mesh->workers) {
            sim_fail(w, "rank %u of job %llu begins step %llu, and step %llu is not over",
                     node->rank, (ull)node->job, (ull)step, (ull)sum->step);
        }
        *sum = (struct sim_sum){.step = step};
    }
    sum->sum += share_of(node->job, node->rank, step);
    sum->n++;
    node->phase = SIM_SUMS;
    node->peer_until = w->now + w->peer_ms + (int64_t)sim_below(w, 1000);
    node->work_at = node->peer_until;
    for (uint32_t rank = 0; sum->n == mesh->workers && rank < mesh->workers; rank++) {
        struct sim_node *peer = mesh_node(w, mesh, rank);
        bool hears = peer != NULL && peer->phase == SIM_SUMS;
        for (uint32_t from = 0; hears && from < mesh->workers; from++) {
            hears = mesh_reaches(w, mesh, rank, from);
        }
        if (hears) {
            peer->phase = SIM_COMMITS;
            node_work_at(w, peer, w->now + 1 + (int64_t)sim_below(w, 30));
        }
    }
}

static void commit(struct world *w, struct sim_node *node, struct sim_generation *mesh)
{
    struct sim_training *training = training_begin(w, node, node->replica.digest);
    const uint64_t step = node->replica.step + 1;
    const struct sim_sum *sum = &mesh->sums[step % 2];
    if (training == NULL || sum->step != step || sum->n != mesh->workers) {
        sim_fail(w, "rank %u of job %llu commits step %llu without its sum", node->rank,
                 (ull)node->job, (ull)step);
        return;
    }
    node->replica.step = step;
    node->replica.is_copy = false;
    node->replica.digest = digest_next(node->replica.digest, sum->sum);
    node->phase = SIM_COMPUTES;
    node->peer_until = SIM_FOREVER;
    node->step = step;
    training->furthest = step > training->furthest ? step : training->furthest;
    if (node->replica.digest != digest_at(training, step) || training->workers != node->workers) {
        sim_fail(w,
                 "rank %u of job %llu commits step %llu, and has another state than without "
                 "what happened",
                 node->rank, (ull)node->job, (ull)step);
    }
    if (node->rank == 0 && step % CHECKPOINT_STEPS == 0) {
        checkpoint_write(w, node);
    }
    if (node->rank == 0 && node->registered && sim_chance(w, 40)) {
        node_progress(w, node);
    }
}

/* Its disk is full, for so many tries. Drawn apart. */
static bool has_room(const struct world *w, struct sim_node *node)
{
    const uint64_t of_job = ms_rng_mix(w->seed ^ (node->job + FULL));
    const uint64_t drawn = ms_rng_mix(of_job ^ (node->rank + ((uint64_t)node->n_saves++ << 32)));
    return w->chaos == 0 || w->now >= w->faults_end || of_job % 3 != 0 || drawn % 3 == 0;
}

/* Its disk stands still before it is full, or has room; not where its digest is to be told from
 * those of the others. Drawn apart. */
static bool disk_hangs(struct world *w, struct sim_node *node)
{
    const uint64_t of_job = ms_rng_mix(w->seed ^ (node->job + HANGS));
    const struct sim_op *op = op_of_job(w, node->job);
    const bool may = w->chaos > 0 && w->now < w->faults_end && !node->has_hung &&
                     (op == NULL || !op->digests_differ);
    node->has_hung = may && of_job % 8 == 0 && ms_rng_mix(of_job ^ node->rank) % 2 == 0;
    if (node->has_hung) {
        node->work_at = w->now + (int64_t)(of_job % (3 * (uint64_t)MS_CANCEL_GRACE_MS));
    }
    return node->has_hung;
}

static void end(struct world *w, struct sim_node *node, uint32_t bad)
{
    if (bad == 3) {
        op_cancel_now(w, node->job);
    }
    node->stands = false;
    const bool saves = node->rank == 0 && (bad == 0 || bad == 2 || bad == 5);
    if (saves && disk_hangs(w, node)) {
        return; /* until it goes on: work_at */
    }
    node->unsaved = saves && !has_room(w, node) ? MS_E_IO : 0;
    node_done(w, node, bad == 3 ? MS_E_CLOSED : bad == 4 ? MS_E_FAILED : 0, bad == 6);
}

static void go_on(struct world *w, struct sim_node *node, uint32_t bad)
{
    struct sim_generation *mesh = mesh_of(w, node);
    if (mesh == NULL) {
        sim_fail(w, "node %s trains in no mesh", node->id);
    } else if (node->registered && w->mode == SCHED_STANDING && w->chaos > 0 &&
               w->now < w->faults_end && sim_chance(w, 1)) { /* TERM: its process begins anew */
        node->renews = true;
        w->restarts_job = node->job;
        w->restarts_until = w->now + RESTARTS_MS;
        node_done(w, node, MS_E_CANCELLED, false);
        node_let_go(w, node);
    } else if (node->phase == SIM_COMMITS) {
        commit(w, node, mesh);
        node->work_at = w->now + step_ms(w);
        if (node->replica.step >= train_steps(w, node->job)) {
            end(w, node, bad);
        } else if (node->life.at_step) { /* it was asked before it began */
            node_done(w, node, 0, true);
        }
    } else if (node->phase == SIM_SUMS) {
        if (!waits_too_long(w, node)) {
            node->work_at = node->peer_until;
        }
    } else if (node->replica.step >= train_steps(w, node->job)) {
        end(w, node, bad); /* it was done before, and others were not */
    } else {
        contribute(w, node, mesh);
    }
}

void train_start(struct world *w, struct sim_node *node)
{
    node->phase = SIM_COMPUTES;
    node->work_at = w->now + step_ms(w);
    mesh_split(w, node);
    if (w->lease_ms > MS_CANCEL_GRACE_MS && node->rank == 0) {
        op_cancel_now(w, node->job); /* while all of them train */
    }
}

static void comes_back(struct world *w, struct sim_node *node)
{
    struct sim_generation *mesh = mesh_of(w, node);
    if (mesh != NULL && node->phase == SIM_COMMITS && sim_chance(w, 50)) {
        commit(w, node, mesh); /* it was that far already */
    }
    mesh_leave(w, node, false);
    node->phase = SIM_COMPUTES;
    node_tell(node, LIFE_PEER, MS_E_CLOSED);
}

static void stop_here(struct world *w, struct sim_node *node)
{
    const bool has_ended = node->replica.step >= train_steps(w, node->job);
    const bool saves = node->rank == 0 || node->life.saves;
    if (has_ended && saves && disk_hangs(w, node)) {
        return;
    }
    node->unsaved = has_ended && saves && !has_room(w, node) ? MS_E_IO : 0;
    node->stands = !saves;
    node_done(w, node, 0, !has_ended);
}

void train_due(struct world *w, struct sim_node *node, uint32_t bad)
{
    switch (life_duty(&node->life)) {
    case LIFE_DO_JOIN:
    case LIFE_DO_PULL:
        join(w, node);
        break;
    case LIFE_DO_TRAIN:
        if (node->life.state == LIFE_HOLDING) {
            comes_back(w, node);
        } else if (bad == 2 && node->workers > 1) {
            op_cancel_now(w, node->job);
            hold(w, node, (node->rank + 1) % node->workers);
        } else {
            go_on(w, node, bad);
        }
        break;
    case LIFE_DO_STOP: /* where it holds, without its peers */
        stop_here(w, node);
        break;
    default:
        break;
    }
}

void train_check_end(struct world *w, const struct sched_job_row *row)
{
    const struct sim_training *training = training_of(w, row->id);
    char want[65];
    if (!row->recovery || row->state != JOB_SUCCEEDED) {
        return;
    }
    if (training == NULL) {
        sim_fail(w, "job %llu SUCCEEDED, and never made a step", (ull)row->id);
        return;
    }
    const struct sim_replica last = {.job = row->id, .step = training->furthest};
    const struct sim_replica end = {
        .job = row->id, .step = last.step, .digest = digest_at(training, last.step)};
    const struct m_job *job = m_job_find(w->model, row->id);
    const struct sim_op *op = op_of_job(w, row->id);
    const bool is_alone = /* what it says all others would deny, and they are gone */
        job != NULL && op != NULL && op->digests_differ && m_says_alone(job, 1);
    if (last.step != train_steps(w, row->id) || row->steps != last.step ||
        (!is_alone && strcmp(train_digest(&end, want), row->weights_sha256) != 0)) {
        sim_fail(
            w, "job %llu SUCCEEDED after %llu steps with weights %s, and should have %s after %llu",
            (ull)row->id, (ull)row->steps, row->weights_sha256, want, (ull)train_steps(w, row->id));
    }
}

/* ---- no step is lost ----------------------------------------------------------------------------
 */

/* It holds what it has committed, which it says, and not that it lets go of it, or that it found no
 * scheduler for too long, and has saved. */
static bool holds_state(const struct sim_node *node, uint64_t job)
{
    const bool says_so = node->started || node->step > 0; /* else its copy is known to nobody */
    const bool gives_up = node->life.state == LIFE_FINISHING && node->life.verdict.code != MS_OK;
    return node->alive && !node->hung && node->replica.job == job && says_so && !gives_up &&
           !node->stopped && node->life.state != LIFE_IDLE && node->life.state != LIFE_LEAVING;
}

/* Of a rank that trained: what it holds, whatever it told of it. */
static uint64_t step_of(const struct world *w, uint64_t job, const struct m_rank *r)
{
    uint64_t step = 0;
    for (uint32_t i = 0; r->has_state && i < w->n_nodes; i++) {
        const struct sim_node *node = &w->nodes[i];
        const bool is = node->incarnation == r->incarnation && node->replica.job == job;
        step = is && node->replica.step > step ? node->replica.step : step;
    }
    return step;
}

/* As far as its rank said, or trained: it may have died just now. Ranks that commit a step one
 * after the other are one apart. */
static bool is_held_by_another(const struct world *w, const struct m_job *job,
                               const struct sim_node *node)
{
    bool is = false;
    for (uint32_t rank = 0; rank < job->workers && !is; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        const uint64_t told = r->step > r->ready_step ? r->step : r->ready_step;
        const uint64_t held = step_of(w, job->id, r);
        const uint64_t step = told > held ? told : held;
        is = (r->ready || r->started || r->has_state || r->has_plan) && !r->vacant && !r->missing &&
             !r->lost && r->incarnation != node->incarnation && step + 1 >= node->replica.step;
    }
    return is;
}

/* That it holds the state, too. */
static bool has_lied(const struct world *w, uint64_t job)
{
    bool has = false;
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        has = has || w->nodes[i].lied_of == job;
    }
    return has;
}

void train_check_stop(struct world *w, uint64_t conn, uint64_t id, uint64_t generation)
{
    const struct sim_link *link = &w->links[conn - 1];
    const struct m_job *job = m_job_find(w->model, id);
    if (!link->is_node || job == NULL || !m_is_placed(job) || job->state == JOB_PLACING ||
        m_stops_at_step(job)) {
        return;
    }
    const bool starts = job->state == JOB_RUNNING && job->changed;
    if (generation < (starts ? job->ran_before : job->ran_in)) {
        return; /* it could not be reached when the job went on without it */
    }
    const struct sim_node *node = &w->nodes[link->actor];
    if (node->link == conn && holds_state(node, id) && !has_lied(w, id) && node->replica.step > 0 &&
        !is_held_by_another(w, job, node)) {
        sim_fail(w,
                 "node %s is told to let go of job %llu, and holds step %llu, which no rank that "
                 "is ready does",
                 node->id, (ull)id, (ull)node->replica.step);
    }
}

void train_check_goes_on(struct world *w, uint64_t id, uint64_t step)
{
    if (has_lied(w, id)) {
        return;
    }
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        const struct sim_node *node = &w->nodes[i];
        const struct m_node *known = m_node_find(w->model, node->id);
        const bool is_here = known != NULL && known->conn != 0 && known->conn == node->link &&
                             known->incarnation == node->incarnation &&
                             m_has_rank_of(w->model, known, id);
        if (is_here && holds_state(node, id) && node->replica.step > step + 1) {
            sim_fail(w, "job %llu goes on after step %llu, and node %s lives and holds step %llu",
                     (ull)id, (ull)step, node->id, (ull)node->replica.step);
        }
    }
}
