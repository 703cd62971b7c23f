/* sim_sched.c - the driver: ticks, commits, replies, and crashes in between */
#include "daemon/store/store.h"

#include "proto/rng.h"
#include "tests/sim/model.h"
#include "tests/sim/sim_vfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sim_blind;

/* A host that was suspended, once: its monotonic clock did not count that time. */
static int64_t clock_lag(const struct world *w, int64_t now)
{
    return now < w->clock_stuck_at || w->clock_stuck_until == 0 ? 0
           : now < w->clock_stuck_until                         ? now - w->clock_stuck_at
                                        : w->clock_stuck_until - w->clock_stuck_at;
}

static struct sched_time driver_time(const struct world *w)
{
    /* monotonic time begins anew with each boot of the host: wall time does not */
    int64_t mono = w->now - clock_lag(w, w->now);
    return (struct sched_time){1000 + mono - (int64_t)(w->boot * 7),
                               1700000000000 + w->now + w->wall_offset};
}

void driver_arm(struct world *w)
{
    if (w->sched == NULL) {
        return;
    }
    int64_t at = sched_deadline(w->sched);
    if (at == INT64_MAX) {
        w->timer_stamp++;
        return;
    }
    at = at - 1000 + (int64_t)(w->boot * 7);
    if (w->clock_stuck_until > 0 && at >= w->clock_stuck_at) {
        at += w->clock_stuck_until - w->clock_stuck_at;
    }
    int64_t late = sim_chance(w, 10) ? (int64_t)sim_below(w, 50) : 0;
    int64_t fires_at = (at > w->now ? at : w->now) + late;
    if (at <= w->timer_for && w->timer_at >= w->now && w->timer_at < fires_at) {
        fires_at = w->timer_at; /* late once, however often it is looked at */
    }
    w->timer_for = at;
    w->timer_at = fires_at;
    sim_at(w, fires_at, SIM_TIMER, 0, ++w->timer_stamp, 0);
}

static void check_core(struct world *w, const char *after)
{
    struct ms_err err = {0, ""};
    if (w->large && w->n_events % 64 != 0) {
        return; /* it looks at every node */
    }
    if (!sim_blind && sched_check(w->sched, &err) < 0) {
        sim_fail(w, "after %s: %s", after, err.text);
    }
}

void driver_config(const struct world *w, struct sched_config *ret)
{
    struct sched_config cfg = {0};
    cfg.mode = w->mode;
    cfg.lease_ms = w->lease_ms;
    cfg.topo_timeout_ms = w->topo_ms;
    cfg.worker_num = w->worker_num;
    cfg.recovery = w->recovery;
    cfg.certificate_ids = w->certificate_ids;
    cfg.nodes_per_certificate = w->nodes_per_certificate;
    cfg.priority_users_min = -MS_PRIORITY_USERS;
    cfg.priority_users_max = MS_PRIORITY_USERS;
    cfg.has_database = 1;
    cfg.software = "sim";
    cfg.database = "memory";
    cfg.jobs_kept_max = w->jobs_kept_max;
    cfg.members_kept_max = w->members_kept_max;
    cfg.lost_nodes_max = w->lost_nodes_max;
    cfg.events_kept_max = w->events_kept_max;
    cfg.jobs_queued_max = w->jobs_queued_max;
    cfg.jobs_owner_max = w->jobs_owner_max;
    cfg.jobs_admin = w->jobs_admin;
    cfg.specs_mib = cfg.specs_owner_mib = w->specs_mib;
    memcpy(cfg.secret, &w->seed, sizeof(w->seed));
    memcpy(cfg.secret + sizeof(w->seed), &w->boot, sizeof(w->boot)); /* each process has its own */
    memcpy(cfg.stamp_secret + 1, &w->seed, sizeof(w->seed));
    *ret = cfg;
}

/* One of the first processes stands before a crowded door, for longer than it would be waited for
 * where nobody else does. Drawn apart. */
static void turn_first_away(struct world *w)
{
    const uint64_t drawn = ms_rng_mix(~w->seed ^ w->boot);
    const int64_t away_ms =
        MS_HANDSHAKE_MS + MS_RECONNECT_LATER_MS + 100 + (int64_t)(drawn / 2 % 3000);
    if (drawn % 2 != 0) {
        return;
    }
    sim_at(w, w->now + (int64_t)(drawn / 2 % 500), SIM_ADMIN, ADMIN_CROWD, w->boot, 0);
    for (uint32_t n = 0; n < w->n_nodes; n++) {
        const uint32_t i = (uint32_t)((drawn / 2 + n) % w->n_nodes);
        const struct sim_node *node = &w->nodes[i];
        if (node->alive && !node->hung && !node->twin && node->recovers) {
            node_breaks_off(w, i, away_ms);
            return;
        }
    }
}

/* Somebody finds the scheduler gone, and starts it with all its workers, whoever of them lives. */
static void start_seconds(struct world *w)
{
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        struct sim_node *node = &w->nodes[i];
        if (node->twin && !node->alive && node->die_at == SIM_FOREVER) {
            node->gone_for_good = false;
            node->start_at = w->now + (int64_t)sim_below(w, 1000);
            node_schedule(w, i, node->start_at);
        }
    }
    turn_first_away(w);
}

void driver_start(struct world *w)
{
    struct sched_config cfg;
    struct ms_err err = {0, ""};
    if (w->boot > 0 && w->shares && w->now < w->faults_end && sim_chance(w, 60)) {
        w->nodes_per_certificate = 1; /* somebody thought that to be enough */
    }
    driver_config(w, &cfg);
    if (w->boot > 0 && sim_chance(w, 30)) {
        loss_rehearse(w, driver_time(w));
    }
    if (w->boot > 0 && sim_chance(w, 50)) {
        copy_rehearse(w, driver_time(w));
    }
    w->boot++;
    w->sched = sched_create(&cfg, driver_time(w));
    int loaded = w->sched == NULL ? MS_E_NOMEM
                 : w->real        ? real_load(w, &err)
                                  : disk_load(w, w->sched, &err);
    if (loaded == 1) {
        sched_destroy(w->sched);
        w->sched = NULL;
        sim_at(w, w->now + 100, SIM_RESTART, 0, 0, 0);
        return;
    }
    if (loaded < 0 || sched_load_done(w->sched, driver_time(w), &err) < 0) {
        sim_fail(w, "the scheduler cannot start: %s", err.text);
        return;
    }
    sim_trace(w, "scheduler starts: %zu jobs, generation %llu", w->disk.n_jobs,
              (unsigned long long)w->disk.generation);
    if (w->disk.full) {
        sched_refuse_writes(w->sched, "the disk is full", !w->disk.spent);
    }
    if (w->chaos > 0 && w->now < w->faults_end && sim_chance(w, 10)) { /* all want to come back */
        sim_at(w, w->now + (int64_t)sim_below(w, (uint64_t)w->lease_ms), SIM_ADMIN, ADMIN_CROWD, 0,
               0);
    }
    model_starts(w->model, driver_time(w).mono_ms);
    check_core(w, "loading");
    if (w->recovery && w->boot > 1 && sim_chance(w, 70)) {
        start_seconds(w);
    }
    driver_arm(w);
}

/* A lease, of the usual ones: it is down no longer than that, twice, where nodes may be. */
static uint64_t down_ms(const struct world *w)
{
    enum { LEASE_USUAL_MS = 10000 };
    return w->lease_ms < LEASE_USUAL_MS ? (uint64_t)w->lease_ms : LEASE_USUAL_MS;
}

static void driver_crash(struct world *w, const char *when)
{
    sim_trace(w, "scheduler crashes %s", when);
    sched_destroy(w->sched);
    w->sched = NULL;
    w->tick_open = false;
    w->frozen_until = 0;
    w->timer_stamp++;
    real_crash(w);
    net_scheduler_died(w);
    int64_t down = (int64_t)sim_below(w, sim_chance(w, 70) ? 1500 : 2 * down_ms(w));
    sim_at(w, w->now + 50 + down, SIM_RESTART, 0, 0, 0);
}

/* ---- events in ----------------------------------------------------------------------------------
 */

static void apply(struct world *w, struct sched_event *event, const char *what)
{
    if (!w->tick_open) {
        w->tick_open = true;
        sched_begin_tick(w->sched);
        model_ticks(w->model);
        w->effects_seen = 0;
        sim_at(w, w->now + (sim_chance(w, 40) ? (int64_t)sim_below(w, 4) : 0), SIM_TICK_END, 0,
               w->boot, 0);
    }
    model_hears(w->model, event, driver_time(w).mono_ms);
    sched_apply(w->sched, event, driver_time(w));
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(w->sched, &n);
    model_judges(w->model, effects + w->effects_seen, n - w->effects_seen);
    for (size_t i = w->effects_seen; i < n && w->failed; i++) {
        if (effects[i].kind == SCHED_DO_LOG) {
            sim_trace(w, "  after %s: %s", what, effects[i].text);
        }
    }
    w->effects_seen = n;
    check_core(w, what);
}

static void on_opened(struct world *w, uint32_t number)
{
    struct sim_link *link = &w->links[number - 1];
    struct ms_peer peer;
    memset(&peer, 0, sizeof(peer));
    if (link->is_node) {
        const struct sim_node *node = &w->nodes[link->actor];
        node_peer(node, &peer);
    } else if (link->is_evil) {
        peer = w->evils[link->actor].peer;
    } else {
        person_peer(w->ops[link->actor].person, &peer);
    }
    link->known = true;
    struct sched_event event = {.kind = SCHED_EV_OPENED, .conn = number, .peer = &peer};
    apply(w, &event, "a new connection");
}

/* What a worker says of its rank tells most of the story. */
static void trace_message(struct world *w, uint32_t number, uint16_t type,
                          const ProtobufCMessage *msg)
{
    if (!w->tracing || type == MS_MSG_HEARTBEAT) {
        return;
    }
    sim_trace(w, "link %u -> scheduler: %s", number, ms_wire_find(type)->name);
    if (type == MS_MSG_REGISTER) {
        const Ms__Register *reg = (const Ms__Register *)msg;
        sim_trace(w, "  as %s (%llx), holds rank %u of job %llu in generation %llu", reg->node_id,
                  (unsigned long long)(reg->incarnation & 0xffff), reg->rank,
                  (unsigned long long)reg->job, (unsigned long long)reg->generation);
    } else if (type == MS_MSG_RANK_READY) {
        const Ms__RankReady *ready = (const Ms__RankReady *)msg;
        sim_trace(w, "  rank %u of job %llu in generation %llu, at step %llu", ready->rank,
                  (unsigned long long)ready->job, (unsigned long long)ready->generation,
                  (unsigned long long)ready->step);
    } else if (type == MS_MSG_RANK_DONE) {
        const Ms__RankDone *done = (const Ms__RankDone *)msg;
        sim_trace(w, "  rank %u of job %llu in generation %llu: code %d%s%s", done->rank,
                  (unsigned long long)done->job, (unsigned long long)done->generation, done->code,
                  done->stopped ? ", stopped" : "", done->leaving ? ", leaving" : "");
    }
}

static void on_frame(struct world *w, uint32_t number, const uint8_t *bytes, size_t size)
{
    struct ms_wire_header header;
    struct ms_err err = {0, ""};
    ProtobufCMessage *msg = NULL;
    if (ms_wire_parse_header(bytes, &header, &err) < 0 ||
        ms_wire_unpack(header.type, bytes + MS_WIRE_HEADER, size - MS_WIRE_HEADER, &msg, &err) <
            0) {
        sim_fail(w, "a frame does not arrive: %s", err.text);
        return;
    }
    trace_message(w, number, header.type, msg);
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = number, .type = header.type, .id = header.id, .msg = msg};
    apply(w, &event, ms_wire_find(header.type)->name);
    ms_wire_free(msg);
}

/* A deadline runs: a good moment to stand still. */
static bool somebody_waits(const struct world *w)
{
    if (w->mode == SCHED_DYNAMIC && w->end_boot == w->boot) {
        return true;
    }
    for (size_t i = 0; i < w->model->jobs.n; i++) {
        const struct m_job *job = &w->model->jobs.at[i];
        if (m_is_placed(job) && (job->missing_since != SIM_NEVER || job->blame_at != SIM_NEVER ||
                                 job->cancel_at_step)) {
            return true;
        }
    }
    return false;
}

static void stand_still(struct world *w, int64_t ms)
{
    w->frozen_until = w->now + ms;
    w->freezes++;
    w->known_ended_at += ms; /* nobody could come meanwhile */
    sim_trace(w, "scheduler stands still for %lld ms", (long long)ms);
    model_stood_still(w->model, ms);
    sched_stood_still(w->sched, ms); /* told when it wakes; nothing is applied before that */
}

/* What stops us stops somebody else as well: a host dies with a rank that gets ready, and its node
 * is not back in time. */
static void freeze_takes_node(struct world *w, int64_t ms)
{
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        struct sim_node *node = &w->nodes[i];
        if (node->alive && !node->hung && node->registered && !node->twin && node->job != 0 &&
            !node->started && sim_chance(w, 40)) {
            node_kill(w, i, false);
            node->start_at = w->now + ms + 2 * w->lease_ms;
            node_schedule(w, i, node->start_at);
            return;
        }
    }
}

static bool freeze(struct world *w, struct sim_event *event)
{
    if (w->frozen_until > w->now) { /* the driver stands still: its events wait in the kernel */
        uint64_t order = w->order;
        w->order = event->order; /* it stays before what came behind it */
        struct sim_event *later =
            sim_at(w, w->frozen_until, event->kind, event->target, event->stamp, event->size);
        w->order = order;
        memcpy(sim_event_bytes(later), sim_event_bytes(event), event->size);
        return true;
    }
    if (w->chaos > 1 && w->now < w->faults_end && !w->tick_open &&
        sim_chance(w, somebody_waits(w) ? 20 : 2) && sim_chance(w, 15)) {
        int64_t ms = (int64_t)sim_below(w, 2 * down_ms(w));
        if (w->mode == SCHED_STANDING && !w->large && sim_chance(w, 50)) {
            freeze_takes_node(w, ms);
        }
        stand_still(w, ms);
        return freeze(w, event);
    }
    return false;
}

void driver_on(struct world *w, struct sim_event *event)
{
    if (w->sched != NULL && w->tick_open && sched_tick_is_full(w->sched)) {
        driver_tick_end(w); /* nothing more belongs into it */
    }
    if (w->sched == NULL ||
        (event->kind == SIM_TIMER ? event->stamp != w->timer_stamp : event->stamp != w->boot)) {
        return;
    }
    if (freeze(w, event)) {
        return;
    }
    struct sim_link *link = event->target > 0 ? &w->links[event->target - 1] : NULL;
    char why[64];
    snprintf(why, sizeof(why), "worker at 10.0.0.1:%u closed the connection",
             1024 + (unsigned)event->target); /* another port each time */
    struct sched_event closed = {.kind = SCHED_EV_CLOSED, .conn = event->target, .reason = why};
    struct sched_event time = {.kind = SCHED_EV_TIME};
    struct sched_event clogged = {.kind = event->kind == SIM_CLOGGED ? SCHED_EV_CLOGGED
                                                                     : SCHED_EV_CLEARED,
                                  .conn = event->target};
    switch (event->kind) {
    case SIM_OPENED:
        on_opened(w, event->target);
        break;
    case SIM_TO_SCHED:
        if (link->open_there) {
            link->seen_at = w->now;
            on_frame(w, event->target, sim_event_bytes(event), event->size);
        }
        break;
    case SIM_CLOGGED:
    case SIM_CLEARED:
        if (link->open_there && link->known) {
            apply(w, &clogged, "a queue of frames");
        }
        break;
    case SIM_CLOSED:
        if (link->open_there) {
            link->open_there = false;
            link->seen_at = w->now;
            sim_trace(w, "link %u closed by its actor", event->target);
            apply(w, &closed, "a closed connection");
        }
        break;
    case SIM_TIMER:
        apply(w, &time, "a deadline");
        break;
    default:
        break;
    }
}

/* ---- the operator, and the clock ----------------------------------------------------------------
 */

/* What waits for a node waits for so much more, and who asked for it. */
static void be_patient(struct world *w, int64_t ms)
{
    for (uint32_t i = 0; i < w->n_ops && ms > 0; i++) {
        struct sim_op *op = &w->ops[i];
        op->deadline += op->sent && op->deadline < SIM_FOREVER ? ms : 0;
    }
}

static void driver_reload(struct world *w)
{
    static const int64_t leases[] = {2000, 5000, 10000};
    const int64_t before_ms = w->lease_ms;
    w->lease_ms = leases[sim_below(w, MS_ARRAY_SIZE(leases))];
    w->freezes++; /* nobody is judged by the old lease */
    be_patient(w, before_ms - w->lease_ms);
    sim_trace(w, "reload: the lease is %lld ms", (long long)w->lease_ms);
    if (w->sched != NULL) {
        model_sets_lease(w->model, w->lease_ms);
        sched_set_lease(w->sched, w->lease_ms);
        driver_arm(w);
    }
}

static void driver_stop(struct world *w)
{
    sim_trace(w, "scheduler ends in order");
    sched_destroy(w->sched);
    w->sched = NULL;
    w->frozen_until = 0;
    w->timer_stamp++;
    real_stop(w);
    net_scheduler_died(w);
    sim_at(w, w->now + 20 + (int64_t)sim_below(w, 1000), SIM_RESTART, 0, 0, 0);
}

/* A node that never gets ready is away when that is over, and comes back. */
static void driver_away(struct world *w)
{
    uint32_t i = 0;
    while (i < w->n_nodes &&
           (w->nodes[i].away_job == 0 || w->nodes[i].away_job != w->nodes[i].job ||
            !w->nodes[i].registered || !w->nodes[i].alive || w->nodes[i].hung)) {
        i++;
    }
    if (w->sched == NULL || w->frozen_until > w->now || i == w->n_nodes) {
        return;
    }
    if (w->tick_open) {
        sim_at(w, w->now + 5, SIM_ADMIN, ADMIN_AWAY, w->boot, 0);
        return;
    }
    int64_t ms = w->lease_ms / 2 + (int64_t)sim_below(w, 200);
    w->nodes[i].away_job = 0;
    stand_still(w, ms);
    node_breaks_off(w, i, ms + 800);
}

static void driver_dark(struct world *w)
{
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        struct sim_link *link = w->nodes[i].link != 0 ? &w->links[w->nodes[i].link - 1] : NULL;
        if (link != NULL && (link->stalled_from > w->now || link->stalled_until <= w->now)) {
            link->stalled_from = w->now;
            link->stalled_until = w->now + 2 * w->lease_ms;
        }
    }
    sim_trace(w, "no node can be heard");
    sim_at(w, w->now + 2 * w->lease_ms / 3 - 200, SIM_ADMIN, ADMIN_BUSY, w->boot, 0);
}

/* A slow disk, say: too short for it to say that it stood still. */
static void driver_busy(struct world *w)
{
    if (w->sched != NULL && w->frozen_until <= w->now) {
        w->frozen_until = w->now + w->lease_ms / 3 + 400;
        w->freezes++;
        sim_trace(w, "scheduler is busy for %lld ms", (long long)(w->frozen_until - w->now));
        model_was_busy(w->model, w->frozen_until - w->now);
    }
}

static void driver_massacre(struct world *w)
{
    sim_trace(w, "all nodes die at once");
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        if (w->nodes[i].alive && !w->nodes[i].twin) {
            node_kill(w, i, false);
            node_schedule(w, i, w->nodes[i].start_at);
        }
    }
    if (w->sched != NULL && sim_chance(w, 50)) {
        driver_crash(w, "with all nodes");
    }
}

/* A job waits for ranks that it lost: who is gone is started again, and who cannot serve it, too.
 */
static void driver_rescue(struct world *w)
{
    const struct m_job *waits = NULL;
    for (size_t i = 0; i < w->model->jobs.n; i++) {
        const struct m_job *job = &w->model->jobs.at[i];
        waits = !job->dropped && m_is_placed(job) && m_has_vacant(job) ? job : waits;
    }
    for (uint32_t i = 0; i < w->n_nodes && waits != NULL; i++) {
        struct sim_node *node = &w->nodes[i];
        bool is_useless = node->alive && node->job == 0 && node->no_good;
        node_mend(w, node, waits->spec, waits->spec_bytes);
        if (is_useless || (!node->alive && node->gone_for_good && !node->twin)) {
            if (is_useless) {
                node_kill(w, i, false);
            }
            node->gone_for_good = false;
            node->start_at = w->now + 1 + (int64_t)sim_below(w, 1000);
            node_schedule(w, i, node->start_at);
        }
    }
    sim_at(w, w->now + 2 * w->lease_ms, SIM_ADMIN, ADMIN_RESCUE, 0, 0);
}

void driver_admin(struct world *w, enum sim_admin what)
{
    struct sched_event drain = {.kind = SCHED_EV_DRAIN};
    struct sched_event crowded = {.kind = SCHED_EV_CROWDED};
    struct sched_config cfg;
    switch (what) {
    case ADMIN_RELOAD:
        driver_reload(w);
        break;
    case ADMIN_DRAIN:
        if (w->sched != NULL && w->frozen_until <= w->now) {
            sim_trace(w, "scheduler drains");
            apply(w, &drain, "a drain");
            sim_at(w, w->now + (int64_t)sim_below(w, 1500), SIM_ADMIN, ADMIN_STOP, w->boot, 0);
        }
        break;
    case ADMIN_STOP:
        if (w->sched != NULL && w->tick_open) {
            sim_at(w, w->now + 5, SIM_ADMIN, ADMIN_STOP, w->boot, 0);
        } else if (w->sched != NULL) {
            driver_stop(w);
        }
        break;
    case ADMIN_WALL_JUMP:
        w->wall_offset = (int64_t)sim_below(w, 7200000) - 3600000;
        sim_trace(w, "the wall clock is %lld ms off", (long long)w->wall_offset);
        break;
    case ADMIN_CRASH:
        if (w->sched != NULL) {
            driver_crash(w, "soon after its start");
        }
        break;
    case ADMIN_CROWD:
        if (w->sched != NULL && w->frozen_until <= w->now) {
            sim_trace(w, "the door is crowded");
            apply(w, &crowded, "a crowd");
            driver_arm(w);
        }
        break;
    case ADMIN_AWAY:
        driver_away(w);
        break;
    case ADMIN_DARK:
        driver_dark(w);
        break;
    case ADMIN_BUSY:
        driver_busy(w);
        break;
    case ADMIN_MASSACRE:
        driver_massacre(w);
        break;
    case ADMIN_RESCUE:
        driver_rescue(w);
        break;
    case ADMIN_ALLOW:
        w->nodes_per_certificate = SIM_NODES_PER_CERTIFICATE;
        driver_config(w, &cfg);
        if (w->sched != NULL) {
            sched_set_policy(w->sched, &cfg);
        }
        break;
    case ADMIN_CLOCK_STUCK:
        w->clock_stuck_at = w->now;
        w->clock_stuck_until = w->now + (int64_t)sim_below(w, 3000);
        w->freezes++;
        sim_trace(w, "the monotonic clock stands still");
        break;
    default:
        break;
    }
}

/* A link knows nothing of shared tails. */
const uint8_t *driver_frame(struct world *w, const struct sched_effect *effect, size_t *ret_size)
{
    *ret_size = effect->frame_bytes + effect->tail_bytes;
    if (effect->tail_bytes == 0) {
        return effect->frame;
    }
    if (*ret_size > w->frame_room) {
        w->frame_room = 2 * *ret_size;
        w->frame = realloc(w->frame, w->frame_room);
    }
    sched_effect_join(effect, w->frame);
    return w->frame;
}

/* ---- effects out --------------------------------------------------------------------------------
 */

/* What its process said over an older connection, which it has closed since, arrives only now. */
static bool has_older(const struct world *w, uint32_t number)
{
    const struct sim_link *link = &w->links[number - 1];
    bool found = false;
    for (uint32_t i = 0; i + 1 < number && !found; i++) {
        const struct sim_link *older = &w->links[i];
        found = older->is_node && older->actor == link->actor && older->epoch == link->epoch &&
                !older->open_here && (older->open_there || older->seen_at >= w->now - 5);
    }
    return found;
}

static void close_link(struct world *w, const struct sched_effect *effect)
{
    uint32_t number = (uint32_t)effect->conn;
    const struct sim_link *link = &w->links[number - 1];
    if (link->is_node && link->open_there) {
        const struct sim_node *node = &w->nodes[link->actor];
        if (node->alive && !node->hung && node->epoch == link->epoch && node->link == number &&
            (node->woke_at == 0 || node->woke_at < w->now - w->lease_ms) &&
            net_is_healthy(w, number, w->now - 2 * w->lease_ms) && !has_older(w, number)) {
            sim_fail(w, "node %s is healthy and was dropped", node->id);
        }
    }
    net_close_there(w, number);
}

static void send_frame(struct world *w, const struct sched_effect *effect)
{
    check_sent(w, effect);
    if (w->links[effect->conn - 1].open_there) {
        size_t size = 0;
        const uint8_t *frame = driver_frame(w, effect, &size);
        net_down(w, (uint32_t)effect->conn, frame, size);
    }
}

static bool is_dropped_now(const struct world *w, uint64_t job)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(w->sched, &n);
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind == SCHED_DO_DROP_JOB && effects[i].job_id == job) {
            return true;
        }
    }
    return false;
}

/* As the daemon's store says it of a job that the tick let go. */
static void send_gone(struct world *w, const struct sched_effect *effect)
{
    uint8_t frame[256];
    Ms__Error msg = MS__ERROR__INIT;
    msg.code = MS_E_NOT_FOUND;
    msg.text = (char *)"it does not exist any more";
    size_t size = ms_wire_size(&msg.base);
    if (size > sizeof(frame) ||
        ms_wire_pack(MS_MSG_ERROR, effect->read->frame_id, &msg.base, frame, size, NULL) < 0) {
        sim_fail(w, "a refusal cannot be packed");
    } else if (w->links[effect->conn - 1].open_there) {
        net_down(w, (uint32_t)effect->conn, frame, size);
    }
}

/* Events come from the real store where there is one: what it says is what happened. */
static void send_events(struct world *w, const struct sched_effect *effect)
{
    struct ms_err err = {0, ""};
    struct ms_wire_header header;
    ProtobufCMessage *msg = NULL;
    Ms__EventList *list = m_events_page(w->model, effect->read);
    size_t size = ms_wire_size(&list->base);
    uint8_t *frame = w->store != NULL ? store_answer(w->store, effect->read, &size) : malloc(size);
    if (frame == NULL) {
        abort();
    }
    int rc = w->store == NULL ? ms_wire_pack(MS_MSG_EVENT_LIST, effect->read->frame_id, &list->base,
                                             frame, size, &err)
                              : 0;
    rc = rc == 0 ? ms_wire_parse_header(frame, &header, &err) : rc;
    rc = rc == 0 ? ms_wire_unpack(header.type, frame + MS_WIRE_HEADER, header.length, &msg, &err)
                 : rc;
    if (rc == 0 && header.type == MS_MSG_ERROR && w->store != NULL && vfs_is_dead()) {
        sim_trace(w, "it dies while it reads events"); /* nobody hears more of it */
    } else if (rc < 0 || header.type != MS_MSG_EVENT_LIST || header.id != effect->read->frame_id) {
        sim_fail(w, "events cannot be told: %s", rc < 0 ? err.text : ((Ms__Error *)msg)->text);
    } else {
        struct sched_effect sent = {
            .kind = SCHED_DO_SEND, .conn = effect->conn, .frame = frame, .frame_bytes = size};
        m_judge_events(w->model, effect->read, (const Ms__EventList *)msg);
        send_frame(w, &sent);
    }
    ms_wire_free(msg);
    free(frame);
    free(list);
}

/* What the daemon's store does: the description, or the plan, comes from the disk. */
static void send_answer(struct world *w, const struct sched_effect *effect)
{
    const struct sched_job_row *row = disk_job(w, effect->read->job);
    struct ms_err err = {0, ""};
    Ms__JobList *list = effect->read->list;
    if (row == NULL && is_dropped_now(w, effect->read->job)) {
        send_gone(w, effect);
        return;
    }
    if (row == NULL) {
        sim_fail(w, "the description of job %llu is asked for and not stored",
                 (unsigned long long)effect->read->job);
        return;
    }
    if (effect->read->kind == SCHED_READ_PLAN) {
        list->jobs[0]->plan = (char *)disk_plan(&w->disk, row->plan);
    } else {
        list->jobs[0]->job_json = (ProtobufCBinaryData){row->spec_bytes, (uint8_t *)row->spec};
    }
    if (list->jobs[0]->plan == NULL) {
        sim_fail(w, "the plan of job %llu is asked for and not stored",
                 (unsigned long long)row->id);
        return;
    }
    size_t size = ms_wire_size(&list->base);
    uint8_t *frame = malloc(size);
    if (frame == NULL) {
        abort();
    }
    if (ms_wire_pack(MS_MSG_JOB_LIST, effect->read->frame_id, &list->base, frame, size, &err) < 0) {
        sim_fail(w, "an answer cannot be packed: %s", err.text);
    } else {
        struct sched_effect sent = {
            .kind = SCHED_DO_SEND, .conn = effect->conn, .frame = frame, .frame_bytes = size};
        send_frame(w, &sent);
    }
    free(frame);
}

/* The job of a dynamic cluster, and what it came to, is on the disk, and it talks to nodes. */
static void note_job(struct world *w)
{
    if (w->mode != SCHED_DYNAMIC || w->disk.n_jobs == 0) {
        return;
    }
    if (w->n_ops > 0 && w->ops[0].kind == OP_SUBMIT && w->ops[0].job == 0) {
        w->ops[0].job = w->disk.jobs[0].id;
        w->ops[0].done = true;
    }
    if (w->end_boot != w->boot && w->disk.n_jobs == 1 && w->disk.jobs[0].state >= JOB_SUCCEEDED) {
        w->end_boot = w->boot;
        w->known_ended_at = w->now;
    }
}

static void carry_out(struct world *w, const struct sched_effect *effects, size_t n)
{
    for (size_t i = 0; i < n && !w->failed; i++) {
        const struct sched_effect *effect = &effects[i];
        switch (effect->kind) {
        case SCHED_DO_SEND:
            note_job(w);
            send_frame(w, effect);
            break;
        case SCHED_DO_CLOSE:
            close_link(w, effect);
            break;
        case SCHED_DO_LOG:
            sim_trace(w, "  %s", effect->text);
            break;
        case SCHED_DO_READ:
            if (effect->read->kind == SCHED_READ_EVENTS) {
                send_events(w, effect);
            } else {
                send_answer(w, effect);
            }
            break;
        case SCHED_DO_EXIT:
            sim_trace(w, "scheduler exits with status %d: %s", effect->status, effect->text);
            if (w->mode != SCHED_DYNAMIC || effect->status == 78) {
                sim_fail(w, "the scheduler ends by itself, with status %d: %s", effect->status,
                         effect->text);
            }
            w->over = true;
            w->exit_status = effect->status;
            check_heard(w, effect->text);
            break;
        case SCHED_DO_PUT_JOB:
        case SCHED_DO_PUT_MEMBER:
        case SCHED_DO_DROP_MEMBERS:
        case SCHED_DO_DROP_JOB:
        case SCHED_DO_PUT_PLAN:
        case SCHED_DO_DROP_PLAN:
        case SCHED_DO_PUT_ASIDE:
        case SCHED_DO_DROP_ASIDE:
        case SCHED_DO_PUT_EVENT:
        case SCHED_DO_DROP_EVENT:
        case SCHED_DO_PUT_META:
        default:
            break;
        }
    }
}

static bool any_durable(const struct sched_effect *effects, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (sched_effect_is_durable(effects[i].kind)) {
            return true;
        }
    }
    return false;
}

/* This commit took of the reserve, or all that was left of it. */
static bool disk_fills_up(struct world *w)
{
    if (w->refusals_left == 0 || w->disk.full || !sim_chance(w, 5)) {
        return false;
    }
    w->refusals_left--;
    w->disk.full = true;
    w->disk.spent = sim_chance(w, 40);
    sim_at(w, w->now + 200 + (int64_t)sim_below(w, 4000), SIM_DISK_FREED, 0, 0, 0);
    return true;
}

void driver_tick_end(struct world *w)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(w->sched, &n);
    bool durable = any_durable(effects, n);
    bool crash = w->crashes_left > 0 && w->now < w->faults_end && sim_chance(w, durable ? 12 : 1);
    size_t sent = n;
    w->tick_open = false;
    if (crash) {
        w->crashes_left--;
        if (sim_chance(w, 40)) {
            driver_crash(w, "before a commit");
            return;
        }
        sent = sim_chance(w, 50) ? 0 : sim_below(w, n + 1);
    }
    if (w->real && durable && !real_commit(w, effects, n, crash)) {
        driver_crash(w, "in a commit");
        return;
    }
    disk_write(w, effects, n);
    copy_take(w);
    carry_out(w, effects, sent);
    if (crash) {
        driver_crash(w, "between commit and replies");
        return;
    }
    if (durable && disk_fills_up(w)) {
        sim_trace(w, "the disk is full");
        sched_refuse_writes(w->sched, "the disk is full: free space under the database",
                            !w->disk.spent);
    }
    driver_arm(w);
}
