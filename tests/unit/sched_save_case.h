/* sched_save_case.h - the end of a job whose weights are not saved yet, for the tests of the
 * scheduler */
#ifndef SCHED_SAVE_CASE_H
#define SCHED_SAVE_CASE_H

#include "tests/unit/sched_recover_case.h"

enum { RANKS = 3 };

static inline Ms__RankDone end_of(uint32_t rank, int code, const char *text)
{
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = 1;
    msg.generation = 1;
    msg.rank = rank;
    msg.code = code;
    msg.steps = 120;
    msg.text = (char *)text;
    msg.weights_sha256 = (char *)"w1";
    msg.plan_sha256 = (char *)fix_digest(FIX_BITS);
    return msg;
}

static inline void ends(uint32_t rank, int code, const char *text)
{
    Ms__RankDone msg = end_of(rank, code, text);
    fix_say(conns[rank], MS_MSG_RANK_DONE, &msg.base);
}

static inline void cannot_save(uint32_t rank)
{
    ends(rank, MS_E_IO, "weights.safetensors: No space left on device");
}

static inline void beat_all(uint32_t ranks)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        fix_beat(conns[rank]);
    }
}

static inline void time_is_up(void)
{
    beat_all(RANKS);
    fix_pass(MS_SAVE_AGAIN_MS - 1);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    fix_pass(1);
}

static inline uint64_t comes_back_at(uint32_t rank, uint64_t step)
{
    char id[8];
    snprintf(id, sizeof(id), "w%u", rank);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, 1 + rank);
    msg.job = msg.generation = 1;
    msg.rank = rank;
    msg.running = 1;
    msg.step = step;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

static inline uint64_t comes_back(uint32_t rank)
{
    return comes_back_at(rank, 120);
}

/* At its own end, too, where nobody has asked it. */
static inline void all_others_end(void)
{
    running(RANKS);
    ends(2, MS_OK, "");
    ends(1, MS_OK, "");
}

static inline void restarted_as(enum sched_job_state state, uint32_t workers)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    fix_create(&cfg);
    struct sched_job_row row = job_row(1, state);
    row.recovery = true;
    row.workers = workers;
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    for (uint32_t rank = 0; rank < workers; rank++) {
        struct sched_member_row member = member_row(1, rank);
        ck_ms_ok(sched_load_member(fix.s, &member, err));
    }
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

static inline void restarted(uint32_t workers)
{
    restarted_as(JOB_RUNNING, workers);
}

static inline void is_back(uint32_t rank)
{
    conns[rank] = come_back(rank, 100 + rank, 1, 11, 1);
}

static inline void says_again(uint32_t rank, int code)
{
    Ms__RankDone msg = end_of(rank, code, code == MS_OK ? "" : "no room");
    msg.generation = 11;
    fix_say(conns[rank], MS_MSG_RANK_DONE, &msg.base);
}

static inline void is_to_save(uint32_t rank)
{
    const Ms__Stop *stop = fix_heard(conns[rank], MS_MSG_STOP);
    ck_assert_msg(stop != NULL, "rank %u hears nothing", rank);
    ck_assert_int_eq(stop->saves, 1);
}

static inline void beat_for(int ms)
{
    for (int at = 0; at < ms; at += FIX_LEASE_MS / 2) {
        beat_all(RANKS);
        fix_pass(FIX_LEASE_MS / 2);
    }
}

static inline void is_to_stand(uint32_t rank, uint64_t generation)
{
    const Ms__Stop *stop = fix_heard(conns[rank], MS_MSG_STOP);
    ck_assert_msg(stop != NULL, "rank %u hears nothing", rank);
    ck_assert_int_eq(stop->at_step, 1);
    ck_assert_int_eq(stop->stands, 1);
    ck_assert_int_eq(stop->saves, 0);
    ck_assert_int_eq(stop->code, MS_OK);
    ck_assert_uint_eq(stop->generation, generation);
}

/* Where it stands it has the weights, and their digest only once it saves them. */
static inline void ends_there(uint32_t rank, uint64_t generation, const char *text,
                              const char *digest)
{
    Ms__RankDone msg = end_of(rank, MS_OK, text);
    msg.generation = generation;
    msg.weights_sha256 = (char *)digest;
    fix_say(conns[rank], MS_MSG_RANK_DONE, &msg.base);
}

static inline void beats_at(uint32_t rank, uint64_t generation, uint64_t step)
{
    Ms__Heartbeat msg = MS__HEARTBEAT__INIT;
    msg.job = 1;
    msg.generation = generation;
    msg.step = step;
    fix_say(conns[rank], MS_MSG_HEARTBEAT, &msg.base);
}

static inline void says_stopped(uint32_t rank, uint64_t steps)
{
    Ms__RankDone msg = end_of(rank, MS_OK, "the checkpoint is saved");
    msg.stopped = 1;
    msg.steps = steps;
    msg.weights_sha256 = (char *)"";
    fix_say(conns[rank], MS_MSG_RANK_DONE, &msg.base);
}

static inline void loaded_from(const struct sched_job_row *row)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    fix_create(&cfg);
    ck_ms_ok(sched_load_job(fix.s, row, err));
    load_members(1);
    loaded();
}

/* ... and both ranks are back. */
static inline void restarted_from(const struct sched_job_row *row)
{
    loaded_from(row);
    is_back(0);
    is_back(1);
}

static inline void restarted_with(uint64_t last_step)
{
    Ms__JobResults results = MS__JOB_RESULTS__INIT;
    uint8_t bytes[64];
    results.last_step = last_step;
    struct sched_job_row row = job_row(1, JOB_RUNNING);
    row.recovery = true;
    row.results = bytes;
    row.results_bytes = ms__job_results__pack(&results, bytes);
    restarted_from(&row);
}

#endif
