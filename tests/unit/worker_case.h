/* worker_case.h - a worker in a thread and a desk that gives it ranks, for test_worker*.c */
#ifndef WORKER_CASE_H
#define WORKER_CASE_H

#include "libworker/node/worker.h"

#include "libworker/plan/plan.h"
#include "tests/unit/desk.h"

#include <pthread.h>

/* Linear regression, one step: `world` ranks. */
#define JOB(world)                                                                                 \
    "{\"name\": \"x\", \"workers\": " #world ", \"network\": \"linear\", \"dataset\": {\"kind\": " \
    "\"nonlinear\", \"samples\": 64}, \"batch_size\": 16, \"epochs\": 1, \"loss\": \"mse\", "      \
    "\"optimizer\": {\"kind\": \"sgd\", \"learning_rate\": 0.0001}}"

#define LONG_JOB                                                                                   \
    "{\"name\": \"x\", \"workers\": 1, \"network\": \"linear\", \"dataset\": {\"kind\": "          \
    "\"nonlinear\", \"samples\": 1600}, \"batch_size\": 16, \"epochs\": 40, \"loss\": \"mse\", "   \
    "\"optimizer\": {\"kind\": \"momentum\", \"learning_rate\": 0.0001}}"

struct life { /* of a worker, in a thread; a standing one where the case does not say another */
    struct worker_config cfg;
    pthread_t thread;
    int rc;
    struct ms_err err;
};

static char jobs_dir[64];

static inline void *live(void *arg)
{
    struct life *life = arg;
    life->rc = worker_run(&life->cfg, &life->err);
    return NULL;
}

static inline void begin(struct life *life, const struct desk *desk)
{
    life->cfg.software = "msworker test";
    life->cfg.scheduler = desk->address;
    life->cfg.node_id = "w1";
    life->cfg.run_dir = jobs_dir;
    life->cfg.log_to_file = 1;
    life->cfg.connect_timeout_ms = -1;
    life->cfg.lease_ms = 60000;
    life->cfg.peer_timeout_ms = life->cfg.peer_timeout_ms > 0 ? life->cfg.peer_timeout_ms : 60000;
    ck_assert_int_eq(pthread_create(&life->thread, NULL, live, life), 0);
}

/* As TERM ends it: with success, whatever it did. */
static inline void end(struct life *life, struct desk *desk)
{
    worker_leave(0);
    until(desk, desk->n_leaves == 1 && desk->n_closed >= 1);
    ck_assert_int_eq(pthread_join(life->thread, NULL), 0);
    ck_assert_msg(life->rc == 0, "%s", life->err.text);
    desk_shut(desk);
}

/* enum ms_plan_from of the ranks that are sent. */
static uint32_t plan_from;

static inline void setup(void)
{
    snprintf(jobs_dir, sizeof(jobs_dir), "%s", test_dir_make());
    plan_from = MS_PLAN_OWN;
}

static inline void teardown(void)
{
    test_dir_remove(jobs_dir);
}

/* NULL: what this machine has. */
static const char *least_isa;

/* Rank 0 of `world`, if a case does not say another; nobody listens where the others should be. */
static uint64_t assigned_job = 7;
static uint32_t assigned_rank;

static inline void send_rank(struct desk *desk, uint64_t generation, uint32_t world,
                             const char *json)
{
    static char id[] = "n", host[] = "h", address[] = "127.0.0.1:1";
    static char isa[32];
    static uint8_t token[MS_TOKEN_LEN] = {1, 2, 3};
    Ms__Member members[2] = {MS__MEMBER__INIT, MS__MEMBER__INIT};
    Ms__Member *list[2] = {&members[0], &members[1]};
    Ms__Assign assign = MS__ASSIGN__INIT;
    for (uint32_t i = 0; i < 2; i++) {
        members[i].rank = i;
        members[i].node_id = id;
        members[i].host_name = members[i].host_id = host;
        members[i].data_address = address;
    }
    assign.job = assigned_job;
    assign.generation = generation;
    assign.rank = assigned_rank;
    assign.world_size = world;
    assign.members = list;
    assign.n_members = world;
    snprintf(isa, sizeof(isa), "%s", least_isa != NULL ? least_isa : plan_isa());
    assign.isa = isa;
    assign.plan_from = plan_from;
    assign.token = (ProtobufCBinaryData){sizeof(token), token};
    assign.job_json = (ProtobufCBinaryData){strlen(json), (uint8_t *)(uintptr_t)json};
    ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_ASSIGN, 0, &assign.base, err));
}

static inline void send_start(struct desk *desk, uint64_t generation)
{
    Ms__Start start = MS__START__INIT;
    start.job = 7;
    start.generation = generation;
    ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_START, 0, &start.base, err));
}

/* Trains the long job, and is given the same rank so many times more meanwhile. */
static inline void train_long(int times, char ret_weights[MS_SHA256_HEX])
{
    struct desk desk;
    struct life life = {.rc = 1};
    desk_open(&desk);
    begin(&life, &desk);
    until(&desk, desk.n_registers == 1);
    for (uint64_t generation = 3; generation <= 3 + (uint64_t)times; generation++) {
        int n_ready = desk.n_ready;
        send_rank(&desk, generation, 1, LONG_JOB);
        until(&desk, desk.n_ready > n_ready);
        ck_assert_uint_eq(desk.ready_generation, generation);
        send_start(&desk, generation);
    }
    until(&desk, desk.n_done > 0 && desk.done[desk.n_done - 1].generation == 3 + (uint64_t)times);
    ck_assert_msg(desk.done[desk.n_done - 1].code == 0, "%s", desk.done[desk.n_done - 1].text);
    snprintf(ret_weights, MS_SHA256_HEX, "%s", desk.done[desk.n_done - 1].weights);
    send_stop(&desk, 3 + (uint64_t)times, 0);
    end(&life, &desk);
}

/* A desk with a worker that holds no rank. */
static inline void meet(struct desk *desk, struct life *life)
{
    desk_open(desk);
    begin(life, desk);
    until(desk, desk->n_registers == 1);
}

/* Gives rank 0 of that generation, and hears its plan. */
static inline void hear_plan_of(struct desk *desk, uint64_t generation, uint32_t world,
                                const char *json)
{
    int n = desk->n_plans;
    plan_from = MS_PLAN_RANK_0;
    send_rank(desk, generation, world, json);
    until(desk, desk->n_plans > n);
}

static inline void hear_plan(struct desk *desk, uint64_t generation, const char *json)
{
    hear_plan_of(desk, generation, 1, json);
}

static inline void stop_rank(struct desk *desk, uint64_t generation)
{
    int n = desk->n_done;
    send_stop(desk, generation, 0);
    until(desk, desk->n_done > n);
}

/* A log below jobs_dir; "" while there is none. */
/* All of it, until the next call: a rank says a line a step. */
static inline char *read_log_at(const char *name)
{
    static char *text;
    static size_t room;
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", jobs_dir, name);
    FILE *file = fopen(path, "r");
    ssize_t n = file != NULL ? getdelim(&text, &room, '\0', file) : -1;
    if (file != NULL) {
        fclose(file);
    }
    if (n > 0) {
        return text;
    }
    static char nothing[] = "";
    return nothing;
}

static inline char *read_log(void)
{
    return read_log_at("7/worker_0.log");
}

#endif
