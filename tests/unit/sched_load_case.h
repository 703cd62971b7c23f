/* sched_load_case.h - what a restarted scheduler is loaded with, and nodes that come back to it */
#ifndef SCHED_LOAD_CASE_H
#define SCHED_LOAD_CASE_H

#include "tests/unit/sched_fixture.h"

static inline struct sched_job_row job_row(uint64_t id, enum sched_job_state state)
{
    struct sched_job_row row;
    memset(&row, 0, sizeof(row));
    row.id = id;
    row.state = state;
    snprintf(row.name, sizeof(row.name), "%s", "mnist");
    snprintf(row.owner, sizeof(row.owner), "%s", "user:alice");
    row.workers = 2;
    row.spec = (const uint8_t *)"{}";
    row.spec_bytes = 2;
    if (state != JOB_QUEUED) {
        row.generation = id + 10;
        snprintf(row.reason, sizeof(row.reason), "%s", state > JOB_RECOVERING ? "stored" : "");
    }
    if (state > JOB_RECOVERING) {
        row.ended_ms = (int64_t)(1000 - id);
        row.code = state == JOB_FAILED ? MS_E_FAILED : 0;
    }
    return row;
}

static inline struct sched_member_row member_row(uint64_t job, uint32_t rank)
{
    struct sched_member_row row;
    memset(&row, 0, sizeof(row));
    row.job = job;
    row.rank = rank;
    row.incarnation = 100 + rank;
    row.pid = 1100 + rank; /* as fix_node has it */
    snprintf(row.node_id, sizeof(row.node_id), "w%u", rank);
    snprintf(row.host_name, sizeof(row.host_name), "%s", "h");
    snprintf(row.log_path, sizeof(row.log_path), "/run/worker_%u.log", rank);
    return row;
}

static inline void begin(void)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    fix_create(&cfg);
}

static inline void load_job(uint64_t id, enum sched_job_state state)
{
    struct sched_job_row row = job_row(id, state);
    ck_ms_ok(sched_load_job(fix.s, &row, err));
}

static inline void load_members(uint64_t job)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct sched_member_row row = member_row(job, rank);
        ck_ms_ok(sched_load_member(fix.s, &row, err));
    }
}

static inline void loaded(void)
{
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    ck_ms_ok(sched_check(fix.s, err));
}

static inline uint64_t come_back(uint32_t rank, uint64_t incarnation, uint64_t job,
                                 uint64_t generation, int running)
{
    char id[8];
    snprintf(id, sizeof(id), "w%u", rank);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, incarnation);
    msg.job = job;
    msg.generation = generation;
    msg.rank = rank;
    msg.running = running;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

static inline void running_job(void)
{
    begin();
    load_job(3, JOB_RUNNING);
    load_members(3);
    loaded();
}

#endif
