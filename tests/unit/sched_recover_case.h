/* sched_recover_case.h - jobs that lose ranks and go on, for the tests of the scheduler */
#ifndef SCHED_RECOVER_CASE_H
#define SCHED_RECOVER_CASE_H

#include "tests/unit/sched_load_case.h"

enum { RANKS_MAX = MS_GATHER_RANKS };
static uint64_t conns[RANKS_MAX + 1];

static inline void start_for(enum sched_mode mode, uint32_t worker_num, int64_t topo_timeout_ms)
{
    struct sched_config cfg = fix_config(mode, worker_num);
    cfg.has_database = 1;
    cfg.recovery = 1;
    if (topo_timeout_ms > 0) {
        cfg.topo_timeout_ms = topo_timeout_ms;
    }
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

static inline void start(enum sched_mode mode, uint32_t worker_num)
{
    start_for(mode, worker_num, 0);
}

static inline void submit(uint32_t workers)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(workers);
    msg.recovery = 1;
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_SUBMITTED));
}

static inline uint64_t node_on(const char *id, uint64_t incarnation, const char *host)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, incarnation);
    msg.host_name = msg.host_id = (char *)host;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

/* Of a dynamic cluster of so many: it brings the job. */
static inline uint64_t dynamic_worker(const char *id, uint64_t incarnation, const char *host,
                                      uint32_t workers)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, incarnation);
    msg.worker_num = workers;
    msg.host_name = msg.host_id = (char *)host;
    msg.job_json.data = (uint8_t *)"{}";
    msg.job_json.len = 2;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

static inline Ms__RankReady ready_message(uint64_t generation, uint32_t rank, uint64_t step)
{
    static uint8_t digest[MS_STATE_DIGEST_LEN] = {1, 2, 3};
    Ms__RankReady msg = MS__RANK_READY__INIT;
    msg.state_digest = (ProtobufCBinaryData){sizeof(digest), digest};
    msg.job = 1;
    msg.generation = generation;
    msg.rank = rank;
    msg.log_path = (char *)"/run/worker.log";
    msg.plan_sha256 = (char *)fix_digest(FIX_BITS);
    msg.step = step;
    return msg;
}

static inline void ready_at(uint64_t generation, uint32_t rank, uint64_t step)
{
    Ms__RankReady msg = ready_message(generation, rank, step);
    fix_say(conns[rank], MS_MSG_RANK_READY, &msg.base);
}

/* One that trains for itself (parallel.mode stand_alone). */
static inline void ready_apart(uint32_t rank)
{
    Ms__RankReady msg = ready_message(1, rank, 0);
    msg.state_digest.len = 0;
    fix_say(conns[rank], MS_MSG_RANK_READY, &msg.base);
}

static inline void all_ready_at(uint64_t generation, uint32_t ranks, uint64_t step)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        ready_at(generation, rank, step);
    }
}

/* Job 1 of so many ranks is placed in generation 1, on nodes w0, w1, ..., which have its plan.
 * Nobody waits longer than that for ranks; 0: as long as always. */
static inline void placed_for(uint32_t ranks, int64_t topo_timeout_ms)
{
    start_for(SCHED_STANDING, 0, topo_timeout_ms);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        char id[8];
        snprintf(id, sizeof(id), "w%u", rank);
        conns[rank] = fix_register(id, 1 + rank);
    }
    submit(ranks);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
}

/* ... and runs. */
static inline void running_for(uint32_t ranks, int64_t topo_timeout_ms)
{
    placed_for(ranks, topo_timeout_ms);
    all_ready_at(1, ranks, 0);
    fix_job_is(1, "RUNNING", "");
}

static inline void running(uint32_t ranks)
{
    running_for(ranks, 0);
}

static inline void progress(uint64_t generation, uint64_t step)
{
    Ms__Progress msg = MS__PROGRESS__INIT;
    msg.job = 1;
    msg.generation = generation;
    msg.step = step;
    msg.phase = (char *)"training";
    fix_say(conns[0], MS_MSG_PROGRESS, &msg.base);
}

static inline void peer_report(uint64_t generation, uint32_t rank, uint32_t peer)
{
    Ms__PeerReport msg = MS__PEER_REPORT__INIT;
    msg.job = 1;
    msg.generation = generation;
    msg.rank = rank;
    msg.peer = peer;
    msg.text = (char *)"it does not answer";
    fix_say(conns[rank], MS_MSG_PEER_REPORT, &msg.base);
}

static inline const Ms__Assign *assigned(uint32_t rank, uint64_t generation)
{
    const Ms__Assign *msg = fix_heard(conns[rank], MS_MSG_ASSIGN);
    ck_assert_msg(msg != NULL, "rank %u was not assigned", rank);
    ck_assert_uint_eq(msg->generation, generation);
    ck_assert_uint_eq(msg->rank, rank);
    ck_assert_uint_eq(msg->plan_from, MS_PLAN_GIVEN);
    return msg;
}

/* This tick ended the job, in such words. */
static inline void ended(enum sched_job_state state, const char *words)
{
    const struct sched_job_row *row = fix_stored(1);
    ck_assert_ptr_nonnull(row);
    ck_assert_int_eq(row->state, state);
    ck_assert_msg(strstr(row->reason, words) != NULL, "%s", row->reason);
}

static inline int n_events(const char *kind)
{
    size_t n = 0;
    int found = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        found += effects[i].kind == SCHED_DO_PUT_EVENT && strcmp(effects[i].event->kind, kind) == 0;
    }
    return found;
}

/* The last one of the tick. */
static inline const struct sched_event_row *event_of(const char *kind)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    while (n > 0 && (effects[n - 1].kind != SCHED_DO_PUT_EVENT ||
                     strcmp(effects[n - 1].event->kind, kind) != 0)) {
        n--;
    }
    ck_assert_msg(n > 0, "there is no %s", kind);
    return effects[n - 1].event;
}

/* All but the last word of it. */
static inline void load_rows(enum sched_job_state state)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    fix_create(&cfg);
    struct sched_plan_row plan = {.text = FIX_PLAN, .bytes = strlen(FIX_PLAN)};
    snprintf(plan.sha256, sizeof(plan.sha256), "%s", fix_digest(FIX_PLAN));
    ck_ms_ok(sched_load_plan(fix.s, &plan, err));
    struct sched_job_row row = job_row(1, state);
    row.recovery = true;
    snprintf(row.plan, sizeof(row.plan), "%s", plan.sha256);
    row.plan_text = FIX_PLAN;
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    load_members(1);
}

static inline void load(enum sched_job_state state)
{
    load_rows(state);
    loaded();
}

#endif
