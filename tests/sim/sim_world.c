/* sim_world.c - one cluster's script, drawn from its seed, and the run of its events */
#include "tests/sim/model.h"

#include "proto/rng.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY = 1 << 30, EVENTS_MAX = 80000, EVENTS_LARGE_MAX = 3000000, QUIET_MS = 600000 };

uint32_t world_nodes_min, world_nodes_max;

enum { NODES_SMALL = 64 };

/* One in so many clusters has one that is longer than the grace of a cancel. */
enum { LONG_LEASES = 16, LONG_LEASE_MS = 60000 };

/* One in so many has a switch that fails under a job with spares. Drawn apart. */
enum { SPLITS = 4 };

/* ---- randomness, trace, events ------------------------------------------------------------------
 */

uint64_t sim_random(struct world *w)
{
    return ms_rng_mix(w->rng++);
}

uint64_t sim_below(struct world *w, uint64_t n)
{
    return n > 0 ? sim_random(w) % n : 0;
}

bool sim_chance(struct world *w, unsigned percent)
{
    return sim_below(w, 100) < percent;
}

void sim_fail(struct world *w, const char *fmt, ...)
{
    if (!w->failed) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(w->failure, sizeof(w->failure), fmt, args);
        va_end(args);
        w->failed = true;
    }
}

void sim_trace(struct world *w, const char *fmt, ...)
{
    if (!w->tracing) {
        return;
    }
    char *line = w->trace[w->n_trace++ % SIM_TRACE];
    int used = snprintf(line, sizeof(w->trace[0]), "%8lld ms  ", (long long)w->now);
    va_list args;
    va_start(args, fmt);
    vsnprintf(line + used, sizeof(w->trace[0]) - (size_t)used, fmt, args);
    va_end(args);
}

void world_print_trace(const struct world *w)
{
    uint64_t from = w->n_trace > SIM_TRACE ? w->n_trace - SIM_TRACE : 0;
    for (uint64_t i = from; i < w->n_trace; i++) {
        printf("  %s\n", w->trace[i % SIM_TRACE]);
    }
}

static int event_before(const struct heap_link *a, const struct heap_link *b)
{
    const struct sim_event *x = (const struct sim_event *)(const void *)a;
    const struct sim_event *y = (const struct sim_event *)(const void *)b;
    return x->at != y->at ? x->at < y->at : x->order < y->order;
}

struct sim_event *sim_at(struct world *w, int64_t at, enum sim_kind kind, uint32_t target,
                         uint64_t stamp, size_t extra)
{
    size_t bytes = (sizeof(struct sim_event) + extra + 15) & ~(size_t)15;
    if (w->memory_used + bytes > w->memory_size ||
        ++w->n_events > (w->large ? EVENTS_LARGE_MAX : EVENTS_MAX)) {
        sim_fail(w, "too many events: somebody talks without end");
        w->memory_used = 0; /* the run ends before the next event */
    }
    struct sim_event *event = (struct sim_event *)(void *)(w->memory + w->memory_used);
    w->memory_used += bytes;
    *event = (struct sim_event){.at = at,
                                .order = w->order++,
                                .kind = kind,
                                .target = target,
                                .stamp = stamp,
                                .size = extra};
    if (!w->failed) {
        heap_add(&w->events, &event->heap);
    }
    return event;
}

/* ---- the script ---------------------------------------------------------------------------------
 */

static int64_t sometime(struct world *w, int64_t until)
{
    return (int64_t)sim_below(w, (uint64_t)until);
}

static void draw_node(struct world *w, uint32_t i)
{
    struct sim_node *node = &w->nodes[i];
    bool numeric = w->mode == SCHED_RUN || (w->mode == SCHED_DYNAMIC && w->seed % 3 == 0);
    snprintf(node->id, sizeof(node->id), numeric ? "%u" : "w%u", i);
    if (i == 1 && w->shares) {
        snprintf(node->id, sizeof(node->id), "%.8s-1", w->nodes[0].id);
    }
    memcpy(node->cert, i == 1 && w->shares ? w->nodes[0].id : node->id, sizeof(node->cert));
    snprintf(node->host, sizeof(node->host), "h%u",
             (unsigned)sim_below(w, w->large ? w->worker_num / 8 + 1 : 4));
    static const char *const isas[] = {"avx2",        "avx512_core",      "avx2_vnni",
                                       "avx512_core", "avx512_core_vnni", "avx512_core_bf16"};
    node->isa = isas[sim_below(w, MS_ARRAY_SIZE(isas))];
    node->deaf = w->chaos > 0 && sim_chance(w, 20);
    node->slow = w->chaos > 0 && sim_chance(w, 30);
    node->stuck = w->chaos > 0 && w->mode != SCHED_DYNAMIC && sim_chance(w, 15) ? 1 : 0;
    node->flaps = w->chaos > 1 && !node->slow && sim_chance(w, 15);
    node->lies_left = w->chaos > 1 && w->mode != SCHED_DYNAMIC ? (uint32_t)sim_below(w, 3) : 0;
    node->lease_ms = w->lease_ms;
    node->worker_num = w->worker_num;
    node->cuts_left = w->chaos > 0 && w->seed % 4 == 3 && i % 3 == 0 ? 2 * MS_RESTARTS_MAX + 2 : 0;
    node->start_at = sometime(w, sim_chance(w, 20) ? 8000 : 300);
    node->die_at = node->stall_at = node->hang_at = node->wake_at = SIM_FOREVER;
    node->notice_at = node->peer_until = SIM_FOREVER;
    node->work_at = SIM_FOREVER;
    if (w->chaos == 0 || sim_chance(w, w->large ? 95 : 50)) {
        return;
    }
    switch (sim_below(w, 8)) {
    case 0:
        node->start_at = SIM_FOREVER; /* never comes */
        node->gone_for_good = true;
        break;
    case 1:
        node->worker_num++; /* only a dynamic cluster looks at it */
        break;
    case 2:
        node->other_job = true;
        break;
    case 3:
        node->stall_at = sometime(w, w->faults_end);
        node->stall_ms = sim_chance(w, 30) ? SIM_FOREVER : sometime(w, 3 * w->lease_ms);
        break;
    case 4:
        node->hang_at = sometime(w, w->faults_end);
        break;
    default:
        node->die_at = sometime(w, w->faults_end);
        node->deaths_left = (uint32_t)sim_below(w, 3);
    }
}

/* Another process with the id of that node. */
static struct sim_node *draw_twin(struct world *w, const struct sim_node *first)
{
    struct sim_node *twin = &w->nodes[w->n_nodes];
    draw_node(w, w->n_nodes);
    memcpy(twin->id, first->id, sizeof(twin->id));
    memcpy(twin->cert, first->cert, sizeof(twin->cert));
    memcpy(twin->host, first->host, sizeof(twin->host));
    twin->start_at = sometime(w, w->faults_end);
    twin->gone_for_good = false;
    twin->twin = true;
    twin->die_at = twin->start_at + sometime(w, 10000);
    w->n_nodes++;
    return twin;
}

/* Of each: somebody starts all anew when the scheduler comes back, whoever lives. */
static void draw_second_start(struct world *w)
{
    const uint32_t n = w->n_nodes;
    for (uint32_t i = 0; i < n; i++) {
        struct sim_node *second = draw_twin(w, &w->nodes[i]);
        second->start_at = SIM_FOREVER;
        second->die_at = SIM_FOREVER;
        second->gone_for_good = true;
    }
}

static void draw_op(struct world *w, enum sim_op_kind kind, uint32_t submit, int64_t at)
{
    if (w->n_ops == SIM_OPS_MAX) {
        return;
    }
    struct sim_op *op = &w->ops[w->n_ops];
    op->kind = kind;
    op->submit = submit;
    op->at = at;
    op->at_step = sim_chance(w, 50);
    op->person = (uint32_t)sim_below(w, PEOPLE);
    op->rank = (uint32_t)sim_below(w, 3);
    op->offset = sim_below(w, 5000);
    op->deadline = SIM_FOREVER;
    op->burst = sim_chance(w, kind == OP_CANCEL ? 15 : 4)
                    ? MS_CANCEL_WAITERS_MAX + (uint32_t)sim_below(w, 5)
                    : 1;
    sim_at(w, at, SIM_OP, w->n_ops, 0, 0);
    w->n_ops++;
}

/* Who cancels may; who is a stranger may not. */
static void draw_person(struct world *w, struct sim_op *op, const struct sim_op *submit)
{
    if (op->kind == OP_CANCEL) {
        op->person =
            sim_chance(w, 70) ? submit->person : PEOPLE - 1 - (uint32_t)sim_below(w, PEOPLE_ADMINS);
    } else if (op->kind == OP_FETCH && sim_chance(w, 60)) {
        op->person = submit->person; /* else anybody */
    } else if (op->kind == OP_STRANGER) {
        op->person = (uint32_t)sim_below(w, PEOPLE - PEOPLE_ADMINS);
        while (person_who(op->person) == person_who(submit->person)) {
            op->person = (op->person + 1) % (PEOPLE - PEOPLE_ADMINS);
        }
    }
}

/* The job of that key looks much the same. */
static void key_again(const struct world *w, struct sim_op *op)
{
    op->key--;
    for (const struct sim_op *other = w->ops; other < op; other++) {
        if (other->kind == OP_SUBMIT && person_who(other->person) == person_who(op->person) &&
            other->key == op->key) {
            op->workers = other->workers;
            op->spec_bytes = other->spec_bytes;
            op->plan = other->plan;
        }
    }
}

static void draw_job(struct world *w)
{
    uint32_t submit = w->n_ops;
    int64_t at = sometime(w, w->faults_end / 2);
    draw_op(w, OP_SUBMIT, submit, at);
    struct sim_op *op = &w->ops[submit];
    op->workers = 1 + (uint32_t)sim_below(w, w->large            ? w->worker_num / 3
                                             : sim_chance(w, 90) ? w->worker_num
                                                                 : 12);
    op->priority = (int32_t)sim_below(w, 3) - 1;
    if (sim_chance(w, 5)) {
        static const int32_t odd[] = {100, 101, -101, 1000, -1000, 1001, INT32_MAX, INT32_MIN};
        op->priority = odd[sim_below(w, MS_ARRAY_SIZE(odd))];
    }
    if (w->chaos > 0 && sim_chance(w, 25)) {
        op->bad_rank_code = 1 + (uint32_t)sim_below(w, 6);
    }
    op->digests_differ = w->chaos > 0 && sim_chance(w, 8);
    op->plans_differ = w->chaos > 0 && sim_chance(w, 8);
    op->two_plans = w->chaos > 0 && sim_chance(w, 4);
    op->plan = sim_chance(w, 20) ? 1 + (uint32_t)sim_below(w, 3) : 0;
    op->last_step = w->chaos > 0 && sim_chance(w, op->digests_differ ? 60 : 10);
    op->recovery = sim_chance(w, 60);
    op->epochs = sim_chance(w, 3) ? MS_EVALS_MAX : 0;
    op->spec_bytes = 20 + (uint32_t)sim_below(w, sim_chance(w, 90) ? 400 : 4000);
    if (w->specs_mib > 0) {
        op->spec_bytes = MS_SPEC_MAX - (uint32_t)sim_below(w, MS_SPEC_MAX / 4);
    }
    for (uint32_t i = 0; i < submit; i++) {
        op->key +=
            w->ops[i].kind == OP_SUBMIT && person_who(w->ops[i].person) == person_who(op->person);
    }
    if (op->key > 0 && sim_chance(w, 15)) {
        key_again(w, op); /* used already, for another job */
    }
    if (op->last_step) {
        draw_op(w, OP_CANCEL, submit, at + sometime(w, 4000));
        w->ops[w->n_ops - 1].person = op->person;
    }
    if (op->bad_rank_code == 2 || op->bad_rank_code == 3) { /* while a rank complains */
        draw_op(w, OP_CANCEL, submit, at + 2000 + sometime(w, 6000));
        w->ops[w->n_ops - 1].person = op->person;
        w->ops[w->n_ops - 1].at_step = true;
    }
    if (w->lease_ms > MS_CANCEL_GRACE_MS && op->recovery) { /* a grace that is over first */
        op->workers += op->workers == 1;
        draw_op(w, OP_CANCEL, submit, at + 10000 + sometime(w, 3000)); /* or soon after its start */
        w->ops[w->n_ops - 1].person = op->person;
        w->ops[w->n_ops - 1].at_step = true;
    }
    for (int i = 0; i < 4; i++) {
        if (sim_chance(w, 40)) {
            static const enum sim_op_kind kinds[] = {OP_CANCEL, OP_CANCEL,   OP_WATCH,  OP_WATCH,
                                                     OP_LIST,   OP_LOGS,     OP_LOGS,   OP_STRANGER,
                                                     OP_NODES,  OP_STRANGER, OP_STATUS, OP_EVENTS,
                                                     OP_EVENTS, OP_FETCH,    OP_FETCH};
            enum sim_op_kind kind = kinds[sim_below(w, MS_ARRAY_SIZE(kinds))]; /* in this order */
            draw_op(w, kind, submit, at + sometime(w, 6000));
            draw_person(w, &w->ops[w->n_ops - 1], &w->ops[submit]);
        }
    }
}

/* Reloads, restarts in order, clocks that jump or stand still. */
static void draw_admin(struct world *w)
{
    static const struct {
        enum sim_admin what;
        unsigned percent;
    } what[] = {
        {ADMIN_RELOAD, 15}, {ADMIN_DRAIN, 12}, {ADMIN_WALL_JUMP, 15}, {ADMIN_CLOCK_STUCK, 10}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(what) && w->chaos > 0 && w->mode != SCHED_DYNAMIC; i++) {
        if (sim_chance(w, what[i].percent)) {
            sim_at(w, sometime(w, w->faults_end), SIM_ADMIN, what[i].what, 0, 0);
            w->wall_jumps = w->wall_jumps || what[i].what == ADMIN_WALL_JUMP;
        }
    }
    if (w->goes_dark) { /* nothing else happens to the scheduler meanwhile */
        w->crashes_left = 0;
        sim_at(w, 1500 + sometime(w, w->faults_end / 3), SIM_ADMIN, ADMIN_DARK, 0, 0);
    }
    if (w->chaos > 0 && !w->large && sim_chance(w, 12)) {
        sim_at(w, sometime(w, w->faults_end), SIM_ADMIN, ADMIN_MASSACRE, 0, 0);
    }
    if (w->chaos > 0 || w->recovery) { /* a rank can leave by itself, too */
        sim_at(w, w->faults_end + 3 * w->lease_ms, SIM_ADMIN, ADMIN_RESCUE, 0, 0);
    }
    if (w->shares) {
        sim_at(w, w->faults_end + 2 * w->lease_ms, SIM_ADMIN, ADMIN_ALLOW, 0, 0);
    }
}

/* Two workers that cannot reach each other, for a while. */
static void draw_cuts(struct world *w)
{
    for (uint32_t n = 0; n < SIM_CUTS_MAX && w->chaos > 0 && sim_chance(w, 15); n++) {
        struct sim_cut *cut = &w->cuts[w->n_cuts++];
        cut->a = (uint32_t)sim_below(w, w->worker_num);
        cut->b = (cut->a + 1 + (uint32_t)sim_below(w, w->worker_num - 1)) % w->worker_num;
        cut->from = sometime(w, w->faults_end);
        cut->until = cut->from + sometime(w, w->faults_end - cut->from + 1);
    }
}

/* Few places for jobs, or for their descriptions. */
static void draw_limits(struct world *w)
{
    if (w->mode == SCHED_DYNAMIC || w->large) {
        return;
    }
    if (sim_chance(w, 8)) {
        w->jobs_admin = 1 + (uint32_t)sim_below(w, 2);
        w->jobs_queued_max = w->jobs_admin + 1 + (uint32_t)sim_below(w, 2);
        w->jobs_owner_max = 1 + (uint32_t)sim_below(w, 4);
    } else if (sim_chance(w, 4)) {
        w->specs_mib = 1;
    }
}

bool world_is_tight(const struct world *w)
{
    return w->jobs_queued_max > 0 || w->specs_mib > 0;
}

/* The job that the workers bring is cancelled: nobody submits it here, and the driver says when it
 * is there. */
static void draw_cancel(struct world *w)
{
    const uint32_t brought = w->n_ops++;
    w->ops[brought] = (struct sim_op){.kind = OP_SUBMIT,
                                      .person = PEOPLE - 1,
                                      .workers = w->worker_num,
                                      .recovery = w->recovery,
                                      .deadline = SIM_FOREVER};
    draw_op(w, OP_CANCEL, brought, 2000 + sometime(w, w->faults_end));
    w->ops[w->n_ops - 1].person = PEOPLE - 1;
}

/* Who is still named of those that are lost: asked while nodes come and go. */
static void draw_lists(struct world *w)
{
    enum { LISTS = 5 };
    for (int i = 1; i <= LISTS && w->n_ops > 0 && w->n_ops < SIM_OPS_MAX; i++) {
        draw_op(w, OP_NODES, 0, 1000 + w->faults_end * i / LISTS);
        w->ops[w->n_ops - 1].at_step = false; /* all at once */
    }
}

static bool seed_is_dark(uint64_t seed)
{
    return seed % 500 == 277;
}

static bool seed_is_large(uint64_t seed)
{
    return seed % 500 == 77;
}

static void draw(struct world *w, int mode)
{
    static const int64_t leases[] = {2000, 5000, 10000};
    static const enum sched_mode modes[] = {SCHED_STANDING, SCHED_STANDING, SCHED_DYNAMIC,
                                            SCHED_RUN};
    w->mode = mode >= 0               ? (enum sched_mode)mode
              : seed_is_dark(w->seed) ? SCHED_STANDING
                                      : modes[sim_below(w, MS_ARRAY_SIZE(modes))];
    w->chaos = (int)sim_below(w, 4);
    w->lease_ms = leases[sim_below(w, MS_ARRAY_SIZE(leases))];
    w->topo_ms =
        w->mode == SCHED_DYNAMIC || sim_chance(w, 60) ? 15000 + sometime(w, 20000) : SIM_NEVER;
    w->faults_end = 4000 + sometime(w, 16000);
    w->end_at = QUIET_MS;
    w->worker_num = 2 + (uint32_t)sim_below(w, sim_chance(w, 70) ? 4 : 11);
    w->jobs_kept_max = 1000;
    w->members_kept_max = 1000;
    w->events_kept_max = w->seed % 7 == 3 ? 2 + (uint32_t)(w->seed / 7 % 40) : MS_EVENTS_KEPT;
    w->goes_dark = w->mode == SCHED_STANDING && seed_is_dark(w->seed);
    if (w->goes_dark || (w->mode == SCHED_STANDING && seed_is_large(w->seed))) {
        w->large = true;
        w->chaos = w->goes_dark ? 1 : w->chaos;
        w->worker_num =
            w->goes_dark ? 320 + (uint32_t)sim_below(w, 100) : 100 + (uint32_t)sim_below(w, 900);
        w->lease_ms = 10000;
    } else if (w->mode != SCHED_DYNAMIC && sim_chance(w, 15)) {
        w->jobs_kept_max = 1 + (uint32_t)sim_below(w, 3);
        w->members_kept_max = 1 + (uint32_t)sim_below(w, 6);
    }
    if (!w->large && sim_chance(w, 30)) {
        w->lost_nodes_max = 1 + (uint32_t)sim_below(w, 3); /* one job may lose more */
    }
    if (!w->large && ms_rng_mix(w->seed ^ 0x1ea5eU) % LONG_LEASES == 0) { /* drawn apart */
        w->lease_ms = LONG_LEASE_MS;
        w->end_at += 8 * LONG_LEASE_MS;
    }
    if (world_nodes_max > 0) {
        /* drawn apart: the same number alone makes the same cluster */
        const uint32_t n = world_nodes_max - world_nodes_min + 1;
        w->worker_num = world_nodes_min + (uint32_t)(ms_rng_mix(~w->seed) % n);
        w->large = w->worker_num > NODES_SMALL;
        w->mode = w->large ? SCHED_STANDING : w->mode;
        w->lease_ms = w->large ? 10000 : w->lease_ms;
    }
    draw_limits(w);
    w->certificate_ids = w->mode == SCHED_STANDING && w->seed % 3 != 1;
    w->nodes_per_certificate = w->mode == SCHED_STANDING ? SIM_NODES_PER_CERTIFICATE : 0;
    w->shares = w->mode == SCHED_STANDING && !w->large && w->chaos > 0 && sim_chance(w, 12);
    w->crashes_left = w->chaos > 0 ? (uint32_t)sim_below(w, 4) : 0;
    w->refusals_left = w->chaos > 1 ? (uint32_t)sim_below(w, 3) : 0;
    w->n_nodes = w->worker_num + (w->chaos > 0 && sim_chance(w, 30));
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        draw_node(w, i);
    }
    if (w->chaos > 0 && !w->large && sim_chance(w, 25)) {
        draw_twin(w, &w->nodes[0]);
    }
    w->recovery = w->mode == SCHED_DYNAMIC && sim_chance(w, 50);
    if (w->recovery && w->crashes_left > 0 && sim_chance(w, 40)) {
        draw_second_start(w);
    }
    w->peer_ms = w->lease_ms / 4 + sometime(w, w->lease_ms);
    draw_cuts(w);
    w->split.is_due = w->chaos > 0 && !w->large && ms_rng_mix(w->seed ^ 0x5b117U) % SPLITS == 0;
    draw_admin(w);
    evil_draw(w);
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        node_schedule(w, i, w->nodes[i].start_at);
    }
    uint32_t n_jobs = w->mode == SCHED_DYNAMIC
                          ? 0
                          : 1 + (uint32_t)sim_below(w, sim_chance(w, 80) ? 6 : SIM_JOBS_MAX);
    n_jobs += world_is_tight(w) || w->goes_dark ? SIM_JOBS_MAX - n_jobs : 0;
    for (uint32_t i = 0; i < n_jobs; i++) {
        draw_job(w);
    }
    if (w->mode == SCHED_DYNAMIC && sim_chance(w, 15)) {
        draw_cancel(w);
    }
    if (w->lost_nodes_max > 0) {
        draw_lists(w);
    }
}

/* ---- the run ------------------------------------------------------------------------------------
 */

static uint64_t epoch_of(const struct world *w, const struct sim_link *link)
{
    return link->is_node   ? w->nodes[link->actor].epoch
           : link->is_evil ? w->evils[link->actor].epoch
                           : w->ops[link->actor].epoch;
}

/* A process that hangs reads what came meanwhile when it wakes up, and then what comes behind it.
 */
static bool waits_in_kernel(struct world *w, struct sim_event *event)
{
    struct sim_link *link = &w->links[event->target - 1];
    const struct sim_node *node = link->is_node ? &w->nodes[link->actor] : NULL;
    if (node == NULL || node->epoch != event->stamp) {
        return false;
    }
    if (node->hung && node->wake_at != SIM_FOREVER) {
        link->waits_until = node->wake_at + 1;
    } else if (event->waited || w->now > link->waits_until) {
        return false;
    }
    struct sim_event *later =
        sim_at(w, link->waits_until, event->kind, event->target, event->stamp, event->size);
    later->waited = true;
    memcpy(sim_event_bytes(later), sim_event_bytes(event), event->size);
    return true;
}

static void to_actor(struct world *w, struct sim_event *event)
{
    struct sim_link *link = &w->links[event->target - 1];
    struct ms_wire_header header;
    struct ms_err err = {0, ""};
    ProtobufCMessage *msg = NULL;
    uint64_t epoch = epoch_of(w, link);
    if (waits_in_kernel(w, event)) {
        return;
    }
    uint32_t current = link->is_node   ? w->nodes[link->actor].link
                       : link->is_evil ? w->evils[link->actor].link
                                       : w->ops[link->actor].link;
    if (!link->open_here || epoch != event->stamp || current != event->target) {
        return;
    }
    if (ms_wire_parse_header(sim_event_bytes(event), &header, &err) < 0 ||
        ms_wire_unpack(header.type, sim_event_bytes(event) + MS_WIRE_HEADER, header.length, &msg,
                       &err) < 0) {
        sim_fail(w, "a frame of the scheduler does not arrive: %s", err.text);
        return;
    }
    if (w->tracing && header.type != MS_MSG_HEARTBEAT_ACK) {
        sim_trace(w, "%s %u <- %s",
                  link->is_node   ? "node"
                  : link->is_evil ? "evil"
                                  : "op",
                  link->actor, ms_wire_find(header.type)->name);
    }
    if (link->is_node) {
        node_frame(w, link->actor, header.type, header.id, msg);
    } else if (link->is_evil) {
        evil_frame(w, link->actor, header.type, msg);
    } else {
        op_frame(w, link->actor, header.type, header.id, msg);
    }
    ms_wire_free(msg);
}

static void hung_up(struct world *w, const struct sim_event *event)
{
    struct sim_link *link = &w->links[event->target - 1];
    if (!link->open_here || epoch_of(w, link) != event->stamp) {
        return;
    }
    link->open_here = false;
    if (link->is_node && w->nodes[link->actor].link == event->target) {
        node_hung_up(w, link->actor);
    } else if (link->is_evil) {
        evil_hung_up(w, link->actor);
    } else if (!link->is_node && w->ops[link->actor].link == event->target) {
        op_hung_up(w, link->actor);
    }
}

static void run_event(struct world *w, struct sim_event *event)
{
    switch (event->kind) {
    case SIM_OPENED:
    case SIM_TO_SCHED:
    case SIM_CLOGGED:
    case SIM_CLEARED:
    case SIM_CLOSED:
    case SIM_TIMER:
        driver_on(w, event);
        break;
    case SIM_TO_ACTOR:
        to_actor(w, event);
        break;
    case SIM_HUNG_UP:
        hung_up(w, event);
        break;
    case SIM_TICK_END:
        if (w->sched != NULL && event->stamp == w->boot && w->tick_open) {
            driver_tick_end(w);
        }
        break;
    case SIM_RESTART:
        driver_start(w);
        break;
    case SIM_NODE:
        if (event->stamp == w->nodes[event->target].stamp) {
            node_wake(w, event->target);
        }
        break;
    case SIM_OP:
        if (event->stamp == w->ops[event->target].stamp) {
            op_wake(w, event->target);
        }
        break;
    case SIM_EVIL:
        if (event->stamp == w->evils[event->target].stamp) {
            evil_wake(w, event->target);
        }
        break;
    case SIM_ADMIN:
        if (event->stamp == 0 || event->stamp == w->boot) {
            driver_admin(w, (enum sim_admin)event->target);
        }
        break;
    case SIM_DISK_FREED:
        w->disk.full = w->disk.spent = false;
        if (w->sched != NULL) {
            sched_refuse_writes(w->sched, "", 1);
            driver_arm(w);
        }
        break;
    default:
        break;
    }
}

/* Everything that can end has ended: a job is queued or over, and nobody asks for anything. */
static bool settled(const struct world *w)
{
    if (w->now < w->faults_end + 4 * w->lease_ms || w->sched == NULL || w->disk.full) {
        return false;
    }
    struct sched_counts counts;
    sched_count(w->sched, &counts);
    if (counts.jobs_placed > 0 || counts.nodes_idle != counts.nodes_registered) {
        return false;
    }
    for (size_t i = 0; i < w->model->jobs.n; i++) {
        const struct m_job *job = &w->model->jobs.at[i];
        if (!job->dropped && job->state == JOB_QUEUED &&
            job->workers <= m_count_usable(w->model, true)) {
            return false; /* it will be placed, or never: then that is the end */
        }
    }
    for (uint32_t i = 0; i < w->n_ops; i++) {
        if (!op_is_at_rest(w, &w->ops[i])) {
            return false;
        }
    }
    uint32_t n_believe = 0; /* that they are registered: with a scheduler that died, perhaps */
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        const struct sim_node *node = &w->nodes[i];
        if (node->alive ? node->hung || !node->registered : !node->gone_for_good) {
            return false;
        }
        if (node->alive && node->job != 0 && !net_is_healthy(w, node->link, w->now)) {
            return false; /* it has not heard yet that it is free */
        }
        n_believe += node->alive;
    }
    return n_believe <= counts.nodes_registered;
}

void world_run(struct world *w, uint64_t seed, int mode, bool tracing)
{
    uint8_t *memory = w->memory;
    struct heap events = w->events;
    struct sim_link *links = w->links;
    uint32_t links_room = w->links_room;
    struct sim_disk disks[] = {w->disk, w->disk_after, w->disk_found, w->copy};
    uint8_t *frame = w->frame;
    size_t frame_room = w->frame_room;
    memset(w, 0, offsetof(struct world, trace));
    w->frame = frame;
    w->frame_room = frame_room;
    w->links = links;
    w->links_room = links_room;
    struct sim_disk *all[] = {&w->disk, &w->disk_after, &w->disk_found, &w->copy};
    for (size_t i = 0; i < MS_ARRAY_SIZE(all); i++) {
        all[i]->members = disks[i].members;
        all[i]->members_room = disks[i].members_room;
        all[i]->events = disks[i].events;
        all[i]->events_room = disks[i].events_room;
    }
    w->n_trace = 0;
    w->memory = memory != NULL ? memory : malloc(MEMORY);
    w->memory_size = MEMORY;
    w->events = events;
    w->events.n = 0;
    w->events.before = event_before;
    w->seed = seed;
    w->rng = ms_rng_mix(seed ^ 0x5eedU);
    w->tracing = tracing;
    draw(w, mode);
    w->model = model_create(w);
    w->real = w->seed % 16 == 3 && !w->large;
    w->crashes_left += w->real ? 2 : 0;
    if (w->real) {
        real_start(w);
    }
    driver_start(w);
    int64_t quiet_since = SIM_FOREVER;
    while (!w->failed && !w->over && w->events.n > 0) {
        struct sim_event *event = (struct sim_event *)(void *)heap_first(&w->events);
        heap_remove(&w->events, &event->heap);
        w->now = event->at;
        if (w->now > w->end_at) {
            break;
        }
        run_event(w, event);
        bool quiet = w->mode != SCHED_DYNAMIC && settled(w);
        quiet_since = !quiet ? SIM_FOREVER : w->now < quiet_since ? w->now : quiet_since;
        if (quiet && w->now - quiet_since > SIM_WATCH_AGAIN_MS + MS_NEWS_MS) {
            break;
        }
    }
    if (!w->failed) {
        check_end(w);
    }
}

void world_fini(struct world *w)
{
    sched_destroy(w->sched);
    w->sched = NULL;
    model_destroy(w->model);
    w->model = NULL;
    for (uint32_t i = 0; i < w->n_generations; i++) {
        free(w->generations[i].holders);
        free(w->generations[i].seats);
    }
    w->n_generations = 0;
    real_end(w);
    disk_clear(&w->disk);
    disk_clear(&w->copy);
}
