/* sched_fixture.h - one scheduler on a table: say something to it, look at what it answers
 *
 * Each fix_say is a tick of its own, with sched_check after it. What the core sent is kept unpacked
 * until the next tick. */
#ifndef TESTS_UNIT_SCHED_FIXTURE_H
#define TESTS_UNIT_SCHED_FIXTURE_H

#include "tests/test.h"

#include "daemon/sched/sched.h"
#include "proto/digest.h"

#include <stdarg.h>
#include <stdio.h>

enum { FIX_ANSWERS = 512, FIX_LEASE_MS = 10000 };

struct fix_answer {
    uint64_t conn;
    uint16_t type;
    uint32_t id;
    ProtobufCMessage *msg;
};

static struct {
    struct sched *s;
    struct sched_time now;
    uint64_t conns;
    uint32_t frame;
    struct fix_answer answers[FIX_ANSWERS];
    size_t n_answers;
    bool names_run_dir; /* a job that is submitted */
} fix;

static inline void fix_drop_answers(void)
{
    for (size_t i = 0; i < fix.n_answers; i++) {
        ms_wire_free(fix.answers[i].msg);
    }
    fix.n_answers = 0;
}

static inline struct sched_config fix_config(enum sched_mode mode, uint32_t worker_num)
{
    struct sched_config cfg = {0};
    cfg.mode = mode;
    cfg.lease_ms = FIX_LEASE_MS;
    cfg.topo_timeout_ms = mode == SCHED_DYNAMIC ? 1800000 : -1;
    cfg.worker_num = worker_num;
    cfg.priority_users_min = -MS_PRIORITY_USERS;
    cfg.priority_users_max = MS_PRIORITY_USERS;
    cfg.software = "msschedd 0.1.0";
    cfg.database = "/var/lib/msched/state.db";
    memset(cfg.secret, 7, sizeof(cfg.secret));
    return cfg;
}

static inline void fix_create(const struct sched_config *cfg)
{
    sched_destroy(fix.s);
    fix_drop_answers();
    fix.now = (struct sched_time){1000000, 1700000000000};
    fix.conns = 0;
    fix.s = sched_create(cfg, fix.now);
    fix.names_run_dir = cfg->mode == SCHED_RUN;
    ck_assert_ptr_nonnull(fix.s);
}

static inline void fix_start(enum sched_mode mode, uint32_t worker_num)
{
    struct sched_config cfg = fix_config(mode, worker_num);
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

static inline void fix_standing(void)
{
    fix_start(SCHED_STANDING, 0);
}

static inline void fix_end(void)
{
    fix_drop_answers();
    sched_destroy(fix.s);
    fix.s = NULL;
}

/* ---- ticks --------------------------------------------------------------------------------------
 */

static inline void fix_collect(void)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind != SCHED_DO_SEND) {
            continue;
        }
        struct ms_wire_header header;
        ck_assert_uint_lt(fix.n_answers, FIX_ANSWERS);
        struct fix_answer *answer = &fix.answers[fix.n_answers];
        uint8_t *frame = malloc(effects[i].frame_bytes + effects[i].tail_bytes);
        sched_effect_join(&effects[i], frame);
        ck_ms_ok(ms_wire_parse_header(frame, &header, err));
        ck_assert_uint_eq(MS_WIRE_HEADER + header.length,
                          effects[i].frame_bytes + effects[i].tail_bytes);
        ck_ms_ok(
            ms_wire_unpack(header.type, frame + MS_WIRE_HEADER, header.length, &answer->msg, err));
        free(frame);
        answer->conn = effects[i].conn;
        answer->type = header.type;
        answer->id = header.id;
        fix.n_answers++;
    }
}

static inline void fix_apply(const struct sched_event *event)
{
    sched_begin_tick(fix.s);
    fix_drop_answers();
    sched_apply(fix.s, event, fix.now);
    fix_collect();
    ck_ms_ok(sched_check(fix.s, err));
}

static inline void fix_say(uint64_t conn, uint16_t type, const ProtobufCMessage *msg)
{
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = conn, .type = type, .id = ++fix.frame, .msg = msg};
    fix_apply(&event);
}

static inline uint64_t fix_open(enum ms_role role, const char *name)
{
    struct ms_peer peer;
    memset(&peer, 0, sizeof(peer));
    ck_assert(ms_principal_from_certificate(role, name, &peer.who) || role == MS_ROLE_NONE);
    snprintf(peer.cert_name, sizeof(peer.cert_name), "%s", name);
    struct sched_event event = {.kind = SCHED_EV_OPENED, .conn = ++fix.conns, .peer = &peer};
    fix_apply(&event);
    return fix.conns;
}

static inline void fix_close(uint64_t conn)
{
    struct sched_event event = {
        .kind = SCHED_EV_CLOSED, .conn = conn, .reason = "connection closed by peer"};
    fix_apply(&event);
}

static inline void fix_time(void)
{
    struct sched_event event = {.kind = SCHED_EV_TIME};
    fix_apply(&event);
}

static inline void fix_pass(int64_t ms)
{
    fix.now.mono_ms += ms;
    fix.now.wall_ms += ms;
    fix_time();
}

static inline void fix_crowd(void)
{
    struct sched_event event = {.kind = SCHED_EV_CROWDED};
    fix_apply(&event);
}

static inline void fix_drain(void)
{
    struct sched_event event = {.kind = SCHED_EV_DRAIN};
    fix_apply(&event);
}

/* ---- answers of the last tick -------------------------------------------------------------------
 */

static inline const struct fix_answer *fix_find(uint64_t conn, uint16_t type)
{
    for (size_t i = 0; i < fix.n_answers; i++) {
        if (fix.answers[i].conn == conn && fix.answers[i].type == type) {
            return &fix.answers[i];
        }
    }
    return NULL;
}

/* The message, or NULL. */
static inline const void *fix_heard(uint64_t conn, uint16_t type)
{
    const struct fix_answer *answer = fix_find(conn, type);
    return answer != NULL ? answer->msg : NULL;
}

static inline size_t fix_count(uint16_t type)
{
    size_t n = 0;
    for (size_t i = 0; i < fix.n_answers; i++) {
        n += fix.answers[i].type == type;
    }
    return n;
}

#define fix_refused(conn_, code_, part)                                                            \
    do {                                                                                           \
        const Ms__Error *refusal_ = fix_heard((conn_), MS_MSG_ERROR);                              \
        ck_assert_msg(refusal_ != NULL, "nothing was refused");                                    \
        ck_assert_msg(strstr(refusal_->text, (part)) != NULL, "text '%s' lacks '%s'",              \
                      refusal_->text, (part));                                                     \
        ck_assert_int_eq(refusal_->code, (code_));                                                 \
        ck_assert_uint_eq(fix_find((conn_), MS_MSG_ERROR)->id, fix.frame);                         \
    } while (0)

static inline const struct sched_effect *fix_effect(enum sched_effect_kind kind)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = n; i > 0; i--) {
        if (effects[i - 1].kind == kind) {
            return &effects[i - 1];
        }
    }
    return NULL;
}

static inline int fix_closed(uint64_t conn)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind == SCHED_DO_CLOSE && effects[i].conn == conn) {
            return 1;
        }
    }
    return 0;
}

/* Effects of the tick that are of this kind. */
static inline int fix_effects(enum sched_effect_kind kind)
{
    size_t n = 0;
    int found = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        found += effects[i].kind == kind;
    }
    return found;
}

static inline int fix_logged(const char *part)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind == SCHED_DO_LOG && strstr(effects[i].text, part) != NULL) {
            return 1;
        }
    }
    return 0;
}

/* The last row that the tick stores for the job, or NULL. */
static inline const struct sched_job_row *fix_stored(uint64_t job)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = n; i > 0; i--) {
        if (effects[i - 1].kind == SCHED_DO_PUT_JOB && effects[i - 1].job->id == job) {
            return effects[i - 1].job;
        }
    }
    return NULL;
}

/* ---- nodes --------------------------------------------------------------------------------------
 */

static uint32_t fix_level = MS_WIRE_LEVEL; /* what nodes know; 0: release 0.1 */

static inline Ms__Register fix_node(const char *id, uint64_t incarnation)
{
    static char host[8] = "h";
    Ms__Register msg = MS__REGISTER__INIT;
    msg.node_id = (char *)id;
    msg.incarnation = incarnation;
    msg.host_name = host;
    msg.host_id = host;
    msg.data_address = (char *)"10.0.0.1:8200";
    msg.cores = 4;
    msg.isa = (char *)"avx2";
    msg.onednn = (char *)"2.6.3";
    msg.pid = (uint32_t)(1000 + incarnation);
    msg.level = fix_level;
    return msg;
}

/* Opens a connection and registers an idle node over it. */
static inline uint64_t fix_register(const char *id, uint64_t incarnation)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, incarnation);
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

/* What rank 0 chooses here, and the digest of its bits as ranks tell it. */
#define FIX_BITS "msched plan 1\nsection bits\nnetwork mnist\n"
#define FIX_PLAN FIX_BITS "section memory\nend\n"

static inline const char *fix_digest(const char *text)
{
    static char hex[MS_SHA256_HEX];
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256(text, strlen(text), digest);
    ms_sha256_hex(digest, hex);
    return hex;
}

static inline void fix_plan(uint64_t conn, uint64_t job, uint64_t generation, const char *plan)
{
    Ms__RankPlan msg = MS__RANK_PLAN__INIT;
    msg.job = job;
    msg.generation = generation;
    msg.plan = (char *)plan;
    fix_say(conn, MS_MSG_RANK_PLAN, &msg.base);
}

/* Is ready with a plan of this digest. */
static inline void fix_ready_with(uint64_t conn, uint64_t job, uint64_t generation, uint32_t rank,
                                  const char *digest)
{
    static uint8_t state[MS_STATE_DIGEST_LEN] = {1, 2, 3};
    Ms__RankReady msg = MS__RANK_READY__INIT;
    char path[64];
    snprintf(path, sizeof(path), "/run/worker_%u.log", rank);
    msg.job = job;
    msg.generation = generation;
    msg.rank = rank;
    msg.log_path = path;
    msg.plan_sha256 = (char *)digest;
    msg.state_digest = (ProtobufCBinaryData){sizeof(state), state};
    fix_say(conn, MS_MSG_RANK_READY, &msg.base);
}

/* In two ticks where it is rank 0: it chooses the plan before. */
static inline void fix_ready(uint64_t conn, uint64_t job, uint64_t generation, uint32_t rank)
{
    if (rank == 0) {
        fix_plan(conn, job, generation, FIX_PLAN);
    }
    fix_ready_with(conn, job, generation, rank, fix_digest(FIX_BITS));
}

static inline void fix_done(uint64_t conn, uint64_t job, uint64_t generation, uint32_t rank,
                            int code, const char *text)
{
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = job;
    msg.generation = generation;
    msg.rank = rank;
    msg.code = code;
    msg.text = (char *)text;
    msg.steps = code == MS_OK ? 120 : 0;
    msg.seconds = 1.5;
    msg.weights_sha256 = (char *)(code == MS_OK ? "w1" : "");
    msg.plan_sha256 = (char *)fix_digest(FIX_BITS);
    fix_say(conn, MS_MSG_RANK_DONE, &msg.base);
}

static inline void fix_stopped(uint64_t conn, uint64_t job, uint64_t generation, uint32_t rank)
{
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = job;
    msg.generation = generation;
    msg.rank = rank;
    msg.stopped = 1;
    fix_say(conn, MS_MSG_RANK_DONE, &msg.base);
}

static inline void fix_beat(uint64_t conn)
{
    Ms__Heartbeat msg = MS__HEARTBEAT__INIT;
    fix_say(conn, MS_MSG_HEARTBEAT, &msg.base);
}

/* So long a process is waited for that held the state, and whose connection ended. */
static inline void fix_lease_passes(const uint64_t *beating, size_t n)
{
    for (int half = 0; half < 2; half++) {
        for (size_t i = 0; i < n; i++) {
            fix_beat(beating[i]);
        }
        fix_pass(FIX_LEASE_MS / 2);
    }
}

/* As the database gives it back. */
static inline struct sched_event_row fix_event(uint64_t seq, const char *kind, uint64_t job,
                                               const char *principal)
{
    return (struct sched_event_row){
        .seq = seq, .at_ms = fix.now.wall_ms, .kind = kind, .job = job, .principal = principal};
}

/* ---- clients ------------------------------------------------------------------------------------
 */

static const char *fix_spec = "{}"; /* what is submitted from now on */

static inline Ms__Submit fix_job(uint32_t workers)
{
    Ms__Submit msg = MS__SUBMIT__INIT;
    msg.job_json.data = (uint8_t *)fix_spec;
    msg.job_json.len = strlen(fix_spec);
    msg.name = (char *)"mnist";
    msg.run_dir = (char *)(fix.names_run_dir ? "/tmp/run" : "");
    msg.workers = workers;
    return msg;
}

/* Submits as alice over a new connection; the id, or 0 when it was refused. */
static inline uint64_t fix_submit(uint32_t workers, int32_t priority)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(workers);
    msg.priority = priority;
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    const Ms__Submitted *answer = fix_heard(conn, MS_MSG_SUBMITTED);
    return answer != NULL ? answer->job : 0;
}

static inline void fix_cancel(uint64_t conn, uint64_t job, int at_step)
{
    Ms__Cancel msg = MS__CANCEL__INIT;
    msg.job = job;
    msg.at_step = at_step;
    fix_say(conn, MS_MSG_CANCEL, &msg.base);
}

/* What `msctl show` would see; valid until the next tick. */
static inline const Ms__JobInfo *fix_show(uint64_t job)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__JobQuery msg = MS__JOB_QUERY__INIT;
    msg.job = job;
    fix_say(conn, MS_MSG_JOB_QUERY, &msg.base);
    const Ms__JobList *list = fix_heard(conn, MS_MSG_JOB_LIST);
    ck_assert_ptr_nonnull(list);
    ck_assert_uint_eq(list->n_jobs, 1);
    return list->jobs[0];
}

static inline const Ms__NodeInfo *fix_show_node(const char *node_id)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__NodeQuery msg = MS__NODE_QUERY__INIT;
    msg.node_id = (char *)node_id;
    fix_say(conn, MS_MSG_NODE_QUERY, &msg.base);
    const Ms__NodeList *list = fix_heard(conn, MS_MSG_NODE_LIST);
    return list != NULL && list->n_nodes == 1 ? list->nodes[0] : NULL;
}

/* part "": there must be no reason. */
static inline void fix_job_is(uint64_t job, const char *state, const char *part)
{
    const Ms__JobInfo *info = fix_show(job);
    ck_assert_str_eq(info->state, state);
    if (part[0] == '\0') {
        ck_assert_str_eq(info->reason, "");
    } else if (strstr(info->reason, part) == NULL) {
        ck_abort_msg("reason '%s' lacks '%s'", info->reason, part);
    }
}

/* Two nodes w0 and w1, and job 1 with two workers, placed in generation 1; ranks 0 and 1. */
static inline void fix_placed(uint64_t ret_conns[2])
{
    fix_standing();
    ret_conns[0] = fix_register("w0", 1);
    ret_conns[1] = fix_register("w1", 2);
    ck_assert_uint_eq(fix_submit(2, 0), 1);
}

static inline void fix_running(uint64_t ret_conns[2])
{
    fix_placed(ret_conns);
    fix_ready(ret_conns[0], 1, 1, 0);
    fix_ready(ret_conns[1], 1, 1, 1);
}

#endif
