/* sim_sched.c - the driver: ticks, commits, replies, and crashes in between */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *sim_driver_bug;
bool sim_blind;

static struct sched_time driver_time(const struct world *w)
{
    /* monotonic time begins anew with each boot of the host: wall time does not */
    return (struct sched_time){1000 + w->now - (int64_t)(w->boot * 7), 1700000000000 + w->now};
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
    int64_t late = sim_chance(w, 10) ? (int64_t)sim_below(w, 50) : 0;
    sim_at(w, (at > w->now ? at : w->now) + late, SIM_TIMER, 0, ++w->timer_stamp, 0);
}

static void check_core(struct world *w, const char *after)
{
    struct ms_err err = {0, ""};
    if (!sim_blind && sched_check(w->sched, &err) < 0) {
        sim_fail(w, "after %s: %s", after, err.text);
    }
}

void driver_start(struct world *w)
{
    struct sched_config cfg = {0};
    struct ms_err err = {0, ""};
    cfg.mode = w->mode;
    cfg.lease_ms = w->lease_ms;
    cfg.topo_timeout_ms = w->topo_ms;
    cfg.worker_num = w->worker_num;
    cfg.priority_users_min = -MS_PRIORITY_USERS;
    cfg.priority_users_max = MS_PRIORITY_USERS;
    cfg.software = "sim";
    cfg.database = "memory";
    memcpy(cfg.secret, &w->seed, sizeof(w->seed));
    w->boot++;
    w->sched = sched_create(&cfg, driver_time(w));
    if (w->sched == NULL || disk_load(w, w->sched, &err) < 0 ||
        sched_load_done(w->sched, driver_time(w), &err) < 0) {
        sim_fail(w, "the scheduler cannot start: %s", err.text);
        return;
    }
    sim_trace(w, "scheduler starts: %zu jobs, generation %llu", w->disk.n_jobs,
              (unsigned long long)w->disk.generation);
    if (w->disk.full) {
        sched_refuse_writes(w->sched, "the disk is full");
    }
    check_core(w, "loading");
    driver_arm(w);
}

static void driver_crash(struct world *w, const char *when)
{
    sim_trace(w, "scheduler crashes %s", when);
    sched_destroy(w->sched);
    w->sched = NULL;
    w->tick_open = false;
    w->frozen_until = 0;
    net_scheduler_died(w);
    int64_t down = (int64_t)sim_below(w, sim_chance(w, 70) ? 1500 : 2 * (uint64_t)w->lease_ms);
    sim_at(w, w->now + 50 + down, SIM_RESTART, 0, 0, 0);
}

/* ---- events in ----------------------------------------------------------------------------------
 */

static void apply(struct world *w, struct sched_event *event, const char *what)
{
    if (!w->tick_open) {
        w->tick_open = true;
        sched_begin_tick(w->sched);
        sim_at(w, w->now + (sim_chance(w, 40) ? (int64_t)sim_below(w, 4) : 0), SIM_TICK_END, 0,
               w->boot, 0);
    }
    sched_apply(w->sched, event, driver_time(w));
    check_core(w, what);
}

static void on_opened(struct world *w, uint32_t number)
{
    struct sim_link *link = &w->links[number - 1];
    struct ms_peer peer;
    memset(&peer, 0, sizeof(peer));
    if (link->is_node) {
        const struct sim_node *node = &w->nodes[link->actor];
        ms_principal_from_certificate(MS_ROLE_WORKER, node->host, &peer.who);
        memcpy(peer.cert_name, node->host, sizeof(node->host));
    } else {
        const struct sim_op *op = &w->ops[link->actor];
        bool admin = op->kind == OP_CANCEL && op->submit % 3 == 0;
        ms_principal_from_certificate(admin ? MS_ROLE_ADMIN : MS_ROLE_USER,
                                      op->kind == OP_STRANGER ? "mallory" : "alice", &peer.who);
    }
    link->known = true;
    struct sched_event event = {.kind = SCHED_EV_OPENED, .conn = number, .peer = &peer};
    apply(w, &event, "a new connection");
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
    if (w->tracing && header.type != MS_MSG_HEARTBEAT) { /* the rest shows the story */
        sim_trace(w, "link %u -> scheduler: %s", number, ms_wire_find(header.type)->name);
    }
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = number, .type = header.type, .id = header.id, .msg = msg};
    apply(w, &event, ms_wire_find(header.type)->name);
    ms_wire_free(msg);
}

static bool freeze(struct world *w, struct sim_event *event)
{
    if (w->frozen_until > w->now) { /* the driver stands still: its events wait in the kernel */
        struct sim_event *later =
            sim_at(w, w->frozen_until, event->kind, event->target, event->stamp, event->size);
        memcpy(sim_event_bytes(later), sim_event_bytes(event), event->size);
        return true;
    }
    if (w->chaos > 1 && w->now < w->faults_end && !w->tick_open && sim_chance(w, 1) &&
        sim_chance(w, 15)) {
        int64_t ms = (int64_t)sim_below(w, 2 * (uint64_t)w->lease_ms);
        w->frozen_until = w->now + ms;
        w->freezes++;
        sim_trace(w, "scheduler stands still for %lld ms", (long long)ms);
        sched_stood_still(w->sched, ms); /* told when it wakes; nothing is applied before that */
        return freeze(w, event);
    }
    return false;
}

void driver_on(struct world *w, struct sim_event *event)
{
    if (w->sched == NULL ||
        (event->kind == SIM_TIMER ? event->stamp != w->timer_stamp : event->stamp != w->boot)) {
        return;
    }
    if (freeze(w, event)) {
        return;
    }
    struct sim_link *link = event->target > 0 ? &w->links[event->target - 1] : NULL;
    struct sched_event closed = {
        .kind = SCHED_EV_CLOSED, .conn = event->target, .reason = "connection closed by peer"};
    struct sched_event time = {.kind = SCHED_EV_TIME};
    switch (event->kind) {
    case SIM_OPENED:
        on_opened(w, event->target);
        break;
    case SIM_TO_SCHED:
        if (link->open_there) {
            on_frame(w, event->target, sim_event_bytes(event), event->size);
        }
        break;
    case SIM_CLOSED:
        if (link->open_there) {
            link->open_there = false;
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

/* ---- effects out --------------------------------------------------------------------------------
 */

static void close_link(struct world *w, const struct sched_effect *effect)
{
    uint32_t number = (uint32_t)effect->conn;
    const struct sim_link *link = &w->links[number - 1];
    if (link->is_node && link->open_there) {
        const struct sim_node *node = &w->nodes[link->actor];
        if (node->alive && !node->hung && node->epoch == link->epoch && node->link == number &&
            net_is_healthy(w, number, w->now - 2 * w->lease_ms)) {
            sim_fail(w, "node %s is healthy and was dropped", node->id);
        }
    }
    net_close_there(w, number);
}

static void send_frame(struct world *w, const struct sched_effect *effect)
{
    struct sched_effect whole = *effect; /* a link knows nothing of shared tails */
    whole.frame_bytes = effect->frame_bytes + effect->tail_bytes;
    uint8_t *frame = malloc(whole.frame_bytes);
    if (frame == NULL) {
        abort();
    }
    sched_effect_join(effect, frame);
    whole.frame = frame;
    whole.tail_bytes = 0;
    check_sent(w, &whole);
    if (w->links[effect->conn - 1].open_there) {
        net_down(w, (uint32_t)effect->conn, frame, whole.frame_bytes);
    }
    free(frame);
}

static void carry_out(struct world *w, const struct sched_effect *effects, size_t n)
{
    for (size_t i = 0; i < n && !w->failed; i++) {
        const struct sched_effect *effect = &effects[i];
        switch (effect->kind) {
        case SCHED_DO_SEND:
            send_frame(w, effect);
            break;
        case SCHED_DO_CLOSE:
            close_link(w, effect);
            break;
        case SCHED_DO_LOG:
            sim_trace(w, "  %s", effect->text);
            break;
        case SCHED_DO_EXIT:
            sim_trace(w, "scheduler exits with status %d: %s", effect->status, effect->text);
            w->over = true;
            w->exit_status = effect->status;
            break;
        case SCHED_DO_PUT_JOB:
        case SCHED_DO_PUT_MEMBER:
        case SCHED_DO_DROP_MEMBERS:
        case SCHED_DO_DROP_JOB:
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

/* The reserve is used up by this commit, or the disk is so full that even that fails. */
static bool disk_fills_up(struct world *w)
{
    if (w->refusals_left == 0 || w->disk.full || !sim_chance(w, 5)) {
        return false;
    }
    w->refusals_left--;
    w->disk.full = true;
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
        if (sim_driver_bug != NULL) { /* planted: replies go out first */
            carry_out(w, effects, n);
        }
        if (sim_chance(w, 40)) {
            driver_crash(w, "before a commit");
            return;
        }
        sent = sim_chance(w, 50) ? 0 : sim_below(w, n + 1);
    }
    disk_write(w, effects, n);
    carry_out(w, effects, sent);
    if (crash) {
        driver_crash(w, "between commit and replies");
        return;
    }
    if (durable && !w->failed) {
        check_disk(w);
    }
    if (durable && disk_fills_up(w)) {
        sim_trace(w, "the disk is full");
        sched_refuse_writes(w->sched, "the disk is full: free space under the database");
    }
    driver_arm(w);
}
