/* test_agent.c - the agent against a scheduler's end of a real connection on loopback */
#include "libworker/agent/agent.h"
#include "tests/unit/desk.h"

#include "proto/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/un.h>
#include <time.h>

static atomic_int stops, hangs, supersedes;
static char hang_text[MS_TEXT_MAX + 1];

/* The trainer's end: what the agent told, until the case looks. */
enum { INBOX_MAX = 1024, ASSIGNS_MAX = 2 };
static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct agent_order orders[INBOX_MAX];
    unsigned first, count, assigns;
} inbox = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

/* Two Assigns wait at the most, and ranks wait for the plan of generation 3, as on a node. */
static int on_order(void *arg, const struct agent_order *order)
{
    (void)arg;
    pthread_mutex_lock(&inbox.lock);
    int has_room = (order->assign == NULL || inbox.assigns < ASSIGNS_MAX) &&
                   (order->plan == NULL || order->generation == 3);
    if (has_room && inbox.count < INBOX_MAX) {
        inbox.orders[(inbox.first + inbox.count++) % INBOX_MAX] = *order;
        inbox.assigns += order->assign != NULL;
        pthread_cond_signal(&inbox.more);
    }
    pthread_mutex_unlock(&inbox.lock);
    atomic_fetch_add(&stops, order->kind != AGENT_ASSIGN && order->kind != AGENT_START &&
                                 order->kind != AGENT_PLAN);
    return !has_room ? MS_E_FULL : order->assign != NULL ? atomic_load(&supersedes) : 0;
}

/* The oldest order. 0: there is none; waits: until there is one. */
static int take_order(struct agent_order *ret, int waits)
{
    pthread_mutex_lock(&inbox.lock);
    while (waits && inbox.count == 0) {
        pthread_cond_wait(&inbox.more, &inbox.lock);
    }
    int found = inbox.count > 0;
    if (found) {
        *ret = inbox.orders[inbox.first];
        inbox.first = (inbox.first + 1) % INBOX_MAX;
        inbox.count--;
        inbox.assigns -= ret->assign != NULL;
    }
    pthread_mutex_unlock(&inbox.lock);
    return found;
}

static void on_hang(void *arg, const char *text)
{
    (void)arg;
    snprintf(hang_text, sizeof(hang_text), "%s", text);
    atomic_fetch_add(&hangs, 1);
}

static char log_file[128];

static int find_log(void *arg, const Ms__LogRead *request, char *buf, size_t size)
{
    (void)arg;
    snprintf(buf, size, "%s", log_file);
    return request->job == 7 && request->rank == 0;
}

/* What most cases want; the case changes the rest. */
static struct agent_config config_for(const char *address)
{
    return (struct agent_config){.address = address,
                                 .software = "msworker test",
                                 .connect_timeout_ms = -1,
                                 .lease_ms = 500,
                                 .register_ms = 200,
                                 .on_order = on_order,
                                 .on_hang = on_hang,
                                 .log_path = find_log};
}

static struct agent *start_with(const struct agent_config *cfg)
{
    static char id[] = "w1";
    Ms__Register node = MS__REGISTER__INIT;
    struct agent_config with = *cfg;
    struct agent *agent = NULL;
    node.node_id = id;
    node.incarnation = 5;
    with.node = &node;
    atomic_store(&stops, 0);
    atomic_store(&hangs, 0);
    atomic_store(&supersedes, 0);
    ck_ms_ok(agent_create(&with, &agent, err));
    return agent;
}

static struct agent *start_tls(const char *address, int64_t connect_timeout_ms, SSL_CTX *tls)
{
    struct agent_config cfg = config_for(address);
    cfg.connect_timeout_ms = connect_timeout_ms;
    cfg.tls = tls;
    return start_with(&cfg);
}

static struct agent *start(const char *address, int64_t connect_timeout_ms)
{
    return start_tls(address, connect_timeout_ms, NULL);
}

static void send_assign_of(struct desk *desk, uint64_t generation)
{
    static uint8_t token[MS_TOKEN_LEN] = {1}, json[] = "{}";
    Ms__Member member = MS__MEMBER__INIT;
    Ms__Member *list[] = {&member};
    Ms__Assign assign = MS__ASSIGN__INIT;
    assign.job = 7;
    assign.generation = generation;
    assign.world_size = 1;
    assign.members = list;
    assign.n_members = 1;
    assign.token = (ProtobufCBinaryData){sizeof(token), token};
    assign.job_json = (ProtobufCBinaryData){2, json};
    ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_ASSIGN, 0, &assign.base, err));
}

static void send_assign(struct desk *desk)
{
    send_assign_of(desk, 3);
}

/* Runs the desk's loop until the agent has an order. */
static struct agent_order next(struct desk *desk)
{
    struct agent_order order;
    until(desk, take_order(&order, 0));
    return order;
}

/* A desk with an agent that holds rank 0 of generation 3. */
static struct agent *hold(struct desk *desk, struct agent_config *cfg)
{
    desk_open(desk);
    cfg->address = desk->address;
    struct agent *agent = start_with(cfg);
    until(desk, desk->n_registers == 1);
    send_assign(desk);
    struct agent_order order = next(desk);
    ck_assert_int_eq(order.kind, AGENT_ASSIGN);
    ms_wire_free(&order.assign->base);
    return agent;
}

static void let_go(struct desk *desk, struct agent *agent)
{
    ms_conn_destroy(desk->conn);
    desk->conn = NULL;
    agent_destroy(agent);
    desk_shut(desk);
}

START_TEST(registers_beats_and_leaves)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_beats >= 3);
    ck_assert_int_eq(desk.n_registers, 1);

    pthread_t thread;
    ck_assert_int_eq(
        pthread_create(&thread, NULL, (void *(*)(void *))(void (*)(void))agent_destroy, agent), 0);
    until(&desk, desk.n_closed == 1);
    pthread_join(thread, NULL);

    ck_assert_int_eq(desk.n_leaves, 1);
    desk_shut(&desk);
}
END_TEST

START_TEST(an_assign_becomes_an_order_and_heartbeats_carry_the_step)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);

    send_assign(&desk);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_ASSIGN);
    ck_assert_uint_eq(order.assign->job, 7);
    ms_wire_free(&order.assign->base);
    agent_set_phase(agent, 3, AGENT_TRAINING, 41);

    until(&desk, desk.last_step == 41);
    ck_assert_uint_eq(desk.last_job, 7);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

static sigset_t agents_mask;

static int on_order_that_looks(void *arg, const struct agent_order *order)
{
    pthread_sigmask(SIG_SETMASK, NULL, &agents_mask);
    return on_order(arg, order);
}

START_TEST(signals_of_a_program_are_not_for_its_agent)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.on_order = on_order_that_looks;
    sigemptyset(&agents_mask);

    struct agent *agent = hold(&desk, &cfg);

    ck_assert_int_eq(sigismember(&agents_mask, SIGINT), 1);
    ck_assert_int_eq(sigismember(&agents_mask, SIGTERM), 1);
    let_go(&desk, agent);
}
END_TEST

START_TEST(what_is_late_about_a_rank_says_nothing_about_the_next_one)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    Ms__Start start = MS__START__INIT;
    struct agent *agent = hold(&desk, &cfg); /* generation 3 */
    send_assign_of(&desk, 4);
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);
    start.job = 7;
    start.generation = 3;

    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_START, 0, &start.base, err));
    order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_START);
    agent_set_phase(agent, 3, AGENT_TRAINING, 41); /* the trainer is not done with it yet */
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    int beats = desk.n_beats;
    until(&desk, desk.n_registers == 2 && desk.n_beats >= beats + 2);

    ck_assert_uint_eq(desk.last_generation, 4);
    ck_assert_int_eq(desk.last_running, 0);
    ck_assert_uint_eq(desk.last_step, 0);
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_stop_of_whatever_is_held_is_one_of_that_rank)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    struct agent *agent = hold(&desk, &cfg); /* generation 3 */

    send_stop(&desk, 0, 0);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_STOP);
    ck_assert_uint_eq(order.generation, 3);

    agent_release(agent, 3);
    send_stop(&desk, 0, 0);
    order = next(&desk);
    ck_assert_uint_eq(order.generation, 0); /* nobody's */
    let_go(&desk, agent);
}
END_TEST

START_TEST(the_end_of_a_rank_goes_out_before_the_first_word_of_the_next)
{
    struct desk desk;
    desk_open(&desk);
    event_del(desk.listen_event); /* it is away when a rank ends and the next one begins */
    struct agent *agent = start(desk.address, -1);
    Ms__RankDone done = MS__RANK_DONE__INIT;
    Ms__RankReady ready = MS__RANK_READY__INIT;
    done.job = ready.job = 7;
    done.generation = 3;
    ready.generation = 4;
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_DONE, &done.base, err));
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_READY, &ready.base, err));

    event_add(desk.listen_event, NULL);
    until(&desk, desk.n_ready == 1);

    ck_assert_int_eq(desk.n_done, 1);
    ck_assert_uint_eq(desk.done[0].generation, 3);
    let_go(&desk, agent);
}
END_TEST

/* Whatever was said before has been heard. */
static void round_trip(struct desk *desk)
{
    Ms__LogRead request = MS__LOG_READ__INIT;
    desk->chunk[0] = '\0';
    ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_LOG_READ, 0, &request.base, err));
    until(desk, desk->chunk[0] != '\0');
}

/* It registers anew, with the stamp that begins so. */
static void expect_stamp(struct desk *desk, uint8_t first, int n_registers)
{
    round_trip(desk);
    ms_conn_destroy(desk->conn);
    desk->conn = NULL;
    until(desk, desk->n_registers == n_registers);
    ck_assert_uint_eq(desk->last_stamp_bytes, MS_STAMP_LEN);
    ck_assert_uint_eq(desk->last_stamp[0], first);
    ck_assert_uint_eq(desk->last_stamp[MS_STAMP_LEN - 1], first);
}

START_TEST(the_stamp_that_it_was_told_is_brought_back)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    ck_assert_uint_eq(desk.last_stamp_bytes, 0); /* nothing was told to this process yet */

    desk.tells_stamp = 1;
    memset(desk.stamp, 'a', sizeof(desk.stamp));
    send_ack(&desk);
    round_trip(&desk);
    desk.silent = 1;
    memset(desk.stamp, 'b', sizeof(desk.stamp)); /* Registered will say that one */
    expect_stamp(&desk, 'a', 2);
    desk.tells_stamp = 0; /* who tells none takes none away */
    send_ack(&desk);
    expect_stamp(&desk, 'b', 3);
    let_go(&desk, agent);
}
END_TEST

/* The scheduler has told a stamp, and is started again with another database. */
static void change_database(struct desk *desk)
{
    desk->tells_stamp = 1;
    send_ack(desk);
    round_trip(desk);
    desk->refuses_stamps = 1;
    ms_conn_destroy(desk->conn);
    desk->conn = NULL;
}

START_TEST(a_node_without_a_rank_forgets_the_stamp_of_another_database)
{
    struct desk desk;
    struct agent_order order;
    desk_open(&desk);
    struct agent_config cfg = config_for(desk.address);
    cfg.is_standing = 1;
    struct agent *agent = start_with(&cfg);
    until(&desk, desk.n_registers == 1);
    memset(desk.stamp, 'a', sizeof(desk.stamp));
    change_database(&desk);
    memset(desk.stamp, 'b', sizeof(desk.stamp)); /* what the new one tells */

    until(&desk, desk.n_registers == 2); /* refused with the stamp, and welcome without it */

    ck_assert_int_eq(desk.n_foreign, 1);
    ck_assert_uint_eq(desk.last_stamp_bytes, 0);
    ck_assert_int_eq(take_order(&order, 0), 0);
    desk.refuses_stamps = 0;
    expect_stamp(&desk, 'b', 3);
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_rank_of_another_database_is_given_up)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    cfg.is_standing = 1;
    struct agent *agent = hold(&desk, &cfg);
    change_database(&desk);

    struct agent_order order = next(&desk);

    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_int_eq(order.code, MS_E_FOREIGN);
    ck_assert_int_eq(desk.n_foreign, 1);
    let_go(&desk, agent);
}
END_TEST

START_TEST(after_a_cut_it_registers_again_with_the_rank_it_holds_and_repeats_ready)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    send_assign(&desk);
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);
    Ms__RankReady ready = MS__RANK_READY__INIT;
    ready.job = 7;
    ready.generation = 3;
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_READY, &ready.base, err));
    until(&desk, desk.n_ready == 1);

    ms_conn_destroy(desk.conn);
    desk.conn = NULL;

    until(&desk, desk.n_ready == 2);
    ck_assert_int_eq(desk.n_registers, 2);
    ck_assert_uint_eq(desk.last_generation, 3);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

static void cut(struct desk *desk)
{
    int n = desk->n_registers;
    ms_conn_destroy(desk->conn);
    desk->conn = NULL;
    until(desk, desk->n_registers == n + 1);
}

START_TEST(the_plan_that_a_rank_chose_is_said_again_until_it_is_heard_by_all)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    struct agent *agent = hold(&desk, &cfg);
    char text[] = "msched plan 1\n";
    Ms__RankPlan plan = MS__RANK_PLAN__INIT;
    plan.job = 7;
    plan.generation = 3;
    plan.plan = text;
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_PLAN, &plan.base, err));
    until(&desk, desk.n_plans == 1);
    ck_assert_str_eq(desk.plan, text);
    cut(&desk);
    until(&desk, desk.n_plans == 2);
    send_plan(&desk, 2, "another one"); /* of a generation before: it is no answer */
    cut(&desk);
    until(&desk, desk.n_plans == 3);

    send_plan(&desk, 3, text);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_PLAN);
    ck_assert_uint_eq(order.generation, 3);
    ck_assert_str_eq(order.plan->plan, text);
    ms_wire_free(&order.plan->base);
    cut(&desk);
    int beats = desk.n_beats;
    until(&desk, desk.n_beats > beats);

    ck_assert_int_eq(desk.n_plans, 3);
    let_go(&desk, agent);
}
END_TEST

START_TEST(the_end_of_a_rank_that_crosses_its_start_is_said_again_after_a_cut)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    struct agent *agent = hold(&desk, &cfg);
    Ms__RankReady ready = MS__RANK_READY__INIT;
    Ms__RankDone done = MS__RANK_DONE__INIT;
    Ms__Start begin = MS__START__INIT;
    ready.job = done.job = begin.job = 7;
    ready.generation = done.generation = begin.generation = 3;
    done.code = MS_E_NOMEM;
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_READY, &ready.base, err));
    until(&desk, desk.n_ready == 1);
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_DONE, &done.base, err));
    until(&desk, desk.n_done == 1);

    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_START, 0, &begin.base, err)); /* for RankReady */
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_START);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;

    until(&desk, desk.n_done == 2);
    ck_assert_int_eq(desk.done[1].code, MS_E_NOMEM);
    let_go(&desk, agent);
}
END_TEST

START_TEST(the_end_of_a_job_does_not_release_the_rank_of_the_next_one)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    send_assign(&desk); /* generation 3, while the trainer still cleans up after generation 2 */
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);

    agent_release(agent, 2);
    until(&desk, desk.n_beats >= 3);
    ck_assert_uint_eq(desk.last_job, 7);
    agent_release(agent, 3);

    until(&desk, desk.last_job == 0);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(a_scheduler_that_does_not_answer_register_is_tried_again)
{
    struct desk desk;
    desk_open(&desk);
    desk.mute = 1;
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);

    until(&desk, desk.n_closed == 1);
    desk.mute = 0;

    until(&desk, desk.n_beats >= 1);
    ck_assert_int_ge(desk.n_registers, 2);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(a_scheduler_that_dies_in_the_handshake_is_tried_again)
{
    struct desk desk;
    desk_open(&desk);
    event_del(desk.listen_event);
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    struct agent *agent = start_tls(desk.address, -1, tls);
    for (int i = 0; i < 3; i++) { /* each attempt meets a process that ends at once */
        int peer = -1;
        while ((peer = accept4(desk.listen_fd, NULL, NULL, SOCK_CLOEXEC)) < 0) {
            ck_assert_int_eq(errno, EAGAIN);
            struct pollfd wait = {.fd = desk.listen_fd, .events = POLLIN};
            ck_assert_int_ge(poll(&wait, 1, -1), 0);
        }
        close(peer);
    }
    struct agent_order order;

    ck_assert_int_eq(take_order(&order, 0), 0);

    agent_destroy(agent);
    SSL_CTX_free(tls);
    desk_shut(&desk);
}
END_TEST

START_TEST(a_refusal_is_final_and_its_text_arrives)
{
    struct desk desk;
    desk_open(&desk);
    desk.refuse = 1;
    struct agent *agent = start(desk.address, -1);

    struct agent_order order = next(&desk);

    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_int_eq(order.code, MS_E_EXISTS);
    ck_assert_ptr_nonnull(strstr(order.text, "registered already"));
    ck_assert_int_eq(atomic_load(&stops), 1);
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(what_a_scheduler_says_forges_nothing_in_the_log)
{
    char line[4096] = "";
    size_t have = 0;
    struct desk desk;
    int log[2];
    ck_assert_int_eq(pipe2(log, O_CLOEXEC), 0);
    ms_log_init(log[1], MS_LOG_INFO, 1);
    desk_open(&desk);
    desk.refuse_with = "no\" node=w9\n<3>agent.registered node=w9";
    struct agent *agent = start(desk.address, -1);

    until(&desk, desk.n_registers >= 1);
    /* a machine that stood still has more to say */
    while (strstr(line, "agent.not_registered") == NULL || line[have - 1] != '\n') {
        ssize_t n = read(log[0], line + have, sizeof(line) - 1 - have);
        ck_assert_int_gt(n, 0);
        have += (size_t)n;
    }
    ms_log_init(STDERR_FILENO, MS_LOG_INFO, 0);

    ck_assert_msg(strstr(line, "agent.not_registered reason=\"no\\\" node=w9\\x0a<3>agent."
                               "registered node=w9\", retrying\n") != NULL,
                  "%s", line);
    let_go(&desk, agent);
    close(log[0]);
    close(log[1]);
}
END_TEST

START_TEST(a_scheduler_that_never_comes_is_named)
{
    struct desk desk;
    desk_open(&desk);
    event_del(desk.listen_event);
    close(desk.listen_fd);
    desk.listen_fd = -1;
    struct agent *agent = start(desk.address, 0);
    struct agent_order order;

    ck_assert_int_eq(take_order(&order, 1), 1);

    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_int_eq(order.code, MS_E_UNREACHABLE);
    ck_assert_ptr_nonnull(strstr(order.text, desk.address));
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(a_scheduler_gone_longer_than_the_lease_ends_the_job)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    send_assign(&desk);
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);

    event_del(desk.listen_event);
    close(desk.listen_fd);
    desk.listen_fd = -1;
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;

    ck_assert_int_eq(take_order(&order, 1), 1);
    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_ptr_nonnull(strstr(order.text, "lease"));
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(leave_is_an_order_too)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);

    agent_leave(agent);

    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_LEAVE);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

static void *leave_as_a_trainer(void *arg)
{
    struct agent *agent = arg;
    struct agent_order order;
    do {
        (void)take_order(&order, 1);
    } while (order.kind != AGENT_LEAVE);
    agent_destroy(agent);
    return NULL;
}

START_TEST(who_is_asked_to_leave_says_so_before_the_line_ends)
{
    for (int i = 1; i <= 60; i++) { /* the order and the end meet in one turn of the loop */
        struct desk desk;
        pthread_t thread;
        desk_open(&desk);
        struct agent *agent = start(desk.address, -1);
        until(&desk, desk.n_beats >= 1);
        ck_assert_int_eq(pthread_create(&thread, NULL, leave_as_a_trainer, agent), 0);

        agent_leave(agent);
        until(&desk, desk.n_closed == 1);
        pthread_join(thread, NULL);

        ck_assert_msg(desk.n_leaves == 1, "round %d: %d Leaves", i, desk.n_leaves);
        desk_shut(&desk);
    }
}
END_TEST

START_TEST(who_leaves_while_it_registers_waits_for_the_answer)
{
    struct desk desk;
    pthread_t thread;
    desk_open(&desk);
    desk.mute = 1;
    struct agent_config cfg = config_for(desk.address);
    cfg.register_ms = 60000;
    struct agent *agent = start_with(&cfg);
    until(&desk, desk.n_registers == 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, leave_as_a_trainer, agent), 0);
    agent_leave(agent);
    until(&desk, atomic_load(&stops) == 1);

    send_registered(&desk, 1);
    until(&desk, desk.n_closed == 1);
    pthread_join(thread, NULL);

    ck_assert_int_eq(desk.n_leaves, 1);
    desk_shut(&desk);
}
END_TEST

START_TEST(a_trainer_that_hangs_after_stop_is_reported_once)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);

    send_stop(&desk, 3, 0);
    until(&desk, atomic_load(&hangs) == 1);

    ck_assert_ptr_nonnull(strstr(hang_text, "rank 0 of job 7 hangs"));
    ck_assert_ptr_nonnull(strstr(hang_text, "alice cancelled it"));
    let_go(&desk, agent);
    ck_assert_int_eq(atomic_load(&hangs), 1);
}
END_TEST

static pthread_mutex_t trainers_lock = PTHREAD_MUTEX_INITIALIZER;

static int on_order_that_waits(void *arg, const struct agent_order *order)
{
    pthread_mutex_lock(&trainers_lock);
    pthread_mutex_unlock(&trainers_lock);
    return on_order(arg, order);
}

START_TEST(a_trainer_that_hangs_with_a_lock_in_its_hands_is_reported_too)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    cfg.on_order = on_order_that_waits;
    struct agent *agent = hold(&desk, &cfg);
    pthread_mutex_lock(&trainers_lock); /* the agent's thread hangs with it */

    send_stop(&desk, 3, 0);
    until(&desk, atomic_load(&hangs) == 1);

    pthread_mutex_unlock(&trainers_lock);
    let_go(&desk, agent);
}
END_TEST

static struct {
    struct agent *agent;
    atomic_int is_held, ends;
} trainer;

static void hold_here(int sig)
{
    (void)sig;
    int before = errno;
    atomic_store(&trainer.is_held, 1);
    while (atomic_load(&trainer.is_held)) {
        (void)poll(NULL, 0, 1);
    }
    errno = before;
}

static void *train_fast(void *arg)
{
    (void)arg;
    for (uint64_t step = 1; !atomic_load(&trainer.ends); step++) {
        agent_set_phase(trainer.agent, 3, AGENT_TRAINING, step);
    }
    return NULL;
}

START_TEST(a_trainer_that_is_stopped_in_any_line_of_its_report_keeps_nobody_from_his_work)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct sigaction held = {.sa_handler = hold_here};
    sigaction(SIGUSR1, &held, NULL);
    trainer.agent = hold(&desk, &cfg);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, train_fast, NULL), 0);

    until(&desk, desk.last_step > 0);
    enum { TIMES = 100 }; /* where a lock was taken, three were enough */
    uint64_t last_step = 0;
    for (int i = 0; i < TIMES; i++) {
        pthread_kill(thread, SIGUSR1);
        until(&desk, atomic_load(&trainer.is_held));
        int beats = desk.n_beats;
        until(&desk, desk.n_beats >= beats + 2);
        ck_assert_uint_eq(desk.last_job, 7);
        ck_assert_uint_ge(desk.last_step, last_step);
        last_step = desk.last_step;
        if (i < TIMES - 1) {
            atomic_store(&trainer.is_held, 0);
        }
    }
    send_stop(&desk, 3, 0);
    until(&desk, atomic_load(&hangs) == 1);

    atomic_store(&trainer.ends, 1);
    atomic_store(&trainer.is_held, 0);
    pthread_join(thread, NULL);
    let_go(&desk, trainer.agent);
}
END_TEST

START_TEST(a_stop_after_the_step_becomes_a_hard_one_and_then_the_end)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);

    send_stop(&desk, 3, 1);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.at_step, 1);
    order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_STOP);
    ck_assert_int_eq(order.at_step, 0);
    ck_assert_ptr_nonnull(strstr(order.text, "did not end within"));
    ck_assert_int_eq(atomic_load(&hangs), 0);

    until(&desk, atomic_load(&hangs) == 1);
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_rank_that_is_released_in_time_ends_nobody)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);

    send_stop(&desk, 3, 0);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_STOP);
    agent_release(agent, 3);
    int beats = desk.n_beats;
    until(&desk, desk.n_beats >= beats + 30); /* twice the grace */

    ck_assert_int_eq(atomic_load(&hangs), 0);
    send_stop(&desk, 2, 0); /* of another generation: concerns nobody */
    send_assign_of(&desk, 4);
    order = next(&desk);
    while (order.kind != AGENT_ASSIGN) {
        order = next(&desk);
    }
    ms_wire_free(&order.assign->base);
    beats = desk.n_beats;
    until(&desk, desk.n_beats >= beats + 30);
    ck_assert_int_eq(atomic_load(&hangs), 0);
    let_go(&desk, agent);
}
END_TEST

static void give_next(struct desk *desk, uint64_t generation)
{
    send_assign_of(desk, generation);
    struct agent_order order = next(desk);
    while (order.kind != AGENT_ASSIGN) {
        order = next(desk);
    }
    ms_wire_free(&order.assign->base);
}

START_TEST(the_next_assign_does_not_end_the_grace_of_a_trainer_that_hangs)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);

    send_stop(&desk, 3, 0);
    give_next(&desk, 4); /* our RankDone was out: what hangs is the end of its memory, say */
    until(&desk, atomic_load(&hangs) == 1);

    ck_assert_ptr_nonnull(strstr(hang_text, "alice cancelled it"));
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_trainer_whom_an_assign_interrupts_has_the_same_grace)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);

    atomic_store(&supersedes, AGENT_SUPERSEDES);
    give_next(&desk, 4);
    until(&desk, atomic_load(&hangs) == 1);

    ck_assert_ptr_nonnull(strstr(hang_text, "gave this node another rank"));
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_database_that_counts_anew_gives_a_rank_its_grace)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);
    send_stop(&desk, 3, 0);
    agent_release(agent, 3);

    give_next(&desk, 1); /* at once: the time of generation 3 may run still */
    int beats = desk.n_beats;
    until(&desk, desk.n_beats >= beats + 30);
    ck_assert_int_eq(atomic_load(&hangs), 0);
    send_stop(&desk, 1, 0);
    until(&desk, atomic_load(&hangs) == 1);

    let_go(&desk, agent);
}
END_TEST

START_TEST(with_a_rank_in_hand_a_silent_scheduler_keeps_its_connection)
{
    struct desk desk;
    struct agent_order order;
    struct agent_config cfg = config_for("");
    cfg.patience_ms = 60000;
    struct agent *agent = hold(&desk, &cfg);
    desk.silent = 1;

    /* the desk answers no heartbeat: a scheduler that stands still looks like this. Its lease is
     * 500 ms, a heartbeat comes every 20. */
    until(&desk, desk.n_beats >= 60);

    ck_assert_int_eq(desk.n_closed, 0);
    ck_assert_int_eq(desk.n_registers, 1);
    ck_assert_int_eq(take_order(&order, 0), 0);
    let_go(&desk, agent);
}
END_TEST

START_TEST(an_idle_node_begins_anew_with_a_silent_scheduler)
{
    struct desk desk;
    desk_open(&desk);
    struct agent_config cfg = config_for(desk.address);
    cfg.patience_ms = 60000;
    desk.silent = 1;
    struct agent *agent = start_with(&cfg);

    until(&desk, desk.n_registers == 2);

    ck_assert_int_eq(desk.n_closed, 1);
    let_go(&desk, agent);
}
END_TEST

START_TEST(an_assign_that_contradicts_itself_is_declined_before_anything_is_taken)
{
    struct desk desk;
    Ms__Assign wrong = MS__ASSIGN__INIT; /* no token, no job file, no members */
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);

    wrong.job = 7;
    wrong.generation = 3;
    wrong.world_size = 4;
    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_ASSIGN, 0, &wrong.base, err));
    until(&desk, desk.n_done == 1);

    ck_assert_int_eq(desk.done[0].code, MS_E_PROTOCOL);
    ck_assert_uint_eq(desk.done[0].generation, 3);
    ck_assert_ptr_nonnull(strstr(desk.done[0].text, "the scheduler sent a rank of job 7"));
    int beats = desk.n_beats;
    until(&desk, desk.n_beats > beats + 1);
    ck_assert_uint_eq(desk.last_job, 0); /* it holds nothing */
    send_assign_of(&desk, 4);            /* and takes the next one */
    struct agent_order order = next(&desk);
    ck_assert_uint_eq(order.generation, 4);
    ms_wire_free(&order.assign->base);
    let_go(&desk, agent);
}
END_TEST

/* Turns the desk's loop until the service manager has heard the part. */
static void until_told(struct desk *desk, int fd, const char *part)
{
    char said[2048] = "";
    for (;;) {
        ssize_t n = recv(fd, said, sizeof(said) - 1, MSG_DONTWAIT);
        said[n > 0 ? n : 0] = '\0';
        if (strstr(said, part) != NULL) {
            return;
        }
        struct timeval turn = {.tv_usec = 5000};
        event_base_loopexit(desk->base, &turn);
        event_base_loop(desk->base, EVLOOP_NO_EXIT_ON_EMPTY);
    }
}

START_TEST(the_service_manager_hears_what_the_node_does_now)
{
    struct desk desk;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    const char *dir = test_dir_make();
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(un.sun_path, sizeof(un.sun_path), "%s/notify", dir);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    setenv("NOTIFY_SOCKET", un.sun_path, 1);
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);

    until_told(&desk, fd, "STATUS=idle; registered as");
    send_assign(&desk);
    until_told(&desk, fd, "STATUS=rank 0 of job 7; registered as");
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);
    agent_release(agent, order.generation);
    until_told(&desk, fd, "STATUS=idle; registered as");
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    until_told(&desk, fd, "STATUS=waits for the scheduler at 127.0.0.1:");
    until_told(&desk, fd, "STATUS=idle; registered as"); /* and back again */

    unsetenv("NOTIFY_SOCKET");
    let_go(&desk, agent);
    close(fd);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_third_assign_is_declined_in_words)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);

    for (uint64_t generation = 3; generation <= 5; generation++) {
        send_assign_of(&desk, generation);
    }
    until(&desk, desk.n_done == 1);

    ck_assert_int_eq(desk.done[0].code, MS_E_FULL);
    ck_assert_ptr_nonnull(strstr(desk.done[0].text, "declined"));
    for (uint64_t generation = 3; generation <= 4; generation++) {
        struct agent_order order = next(&desk);
        ck_assert_uint_eq(order.generation, generation);
        ms_wire_free(&order.assign->base);
    }
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_flood_of_orders_and_absurd_times_costs_nothing)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 60000;
    struct agent *agent = hold(&desk, &cfg);
    Ms__HeartbeatAck ack =
        MS__HEARTBEAT_ACK__INIT; /* a lease of nothing: a timer that never rests */
    for (int i = 0; i < 2000; i++) {
        send_stop(&desk, 1000 + (uint64_t)i, 0);
        ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_HEARTBEAT_ACK, 0, &ack.base, err));
        until(&desk, ms_conn_unsent(desk.conn) < 4096);
    }
    struct agent_order order;
    int beats = desk.n_beats;
    until(&desk, desk.n_beats > beats + 1); /* all has arrived */
    while (take_order(&order, 0)) {
        ck_assert_int_eq(order.kind, AGENT_STOP);
    }
    int64_t begun = (int64_t)time(NULL);
    beats = desk.n_beats;
    until(&desk, desk.n_beats >= beats + 60);
    ck_assert_int_ge((int64_t)time(NULL) - begun, 1); /* 60 beats of 20 ms */
    let_go(&desk, agent);
}
END_TEST

START_TEST(garbage_from_a_scheduler_ends_the_line_and_the_node_comes_again)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    for (int i = 0; i < 4; i++) {
        uint8_t bytes[64] = {'M', 'S', 'C', '1', 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32};
        until(&desk, desk.n_registers == i + 1 && desk.conn != NULL);
        switch (i) {
        case 0: /* an Assign that is none */
            memset(bytes + 16, 0xff, 32);
            break;
        case 1: /* a type that nobody knows */
            bytes[4] = 0x7f;
            break;
        case 2: /* more than an Assign may have */
            memset(bytes + 12, 0x7f, 4);
            break;
        default: /* no frame at all */
            memset(bytes, 0xaa, sizeof(bytes));
            break;
        }
        ck_ms_ok(ms_conn_send_bytes(desk.conn, bytes, 48, err));
        if (i == 0) { /* a whole frame: ignored, and the line stays */
            int beats = desk.n_beats;
            until(&desk, desk.n_beats > beats);
            ck_assert_int_eq(desk.n_closed, 0);
            ms_conn_destroy(desk.conn);
            desk.conn = NULL;
        } else {
            until(&desk, desk.n_closed == i);
        }
    }
    until(&desk, desk.n_registers == 5);
    let_go(&desk, agent);
}
END_TEST

/* Ready at once for whatever comes, until it is asked to leave. */
static void *fast_trainer(void *arg)
{
    struct agent *agent = arg;
    struct agent_order order;
    for (;;) {
        (void)take_order(&order, 1);
        if (order.kind == AGENT_LEAVE) {
            return NULL;
        }
        if (order.kind == AGENT_ASSIGN) {
            Ms__RankReady ready = MS__RANK_READY__INIT;
            ready.job = order.job;
            ready.generation = order.generation;
            ck_ms_ok(agent_send(agent, MS_MSG_RANK_READY, &ready.base, err));
            ms_wire_free(&order.assign->base);
        }
    }
}

START_TEST(the_first_word_of_a_rank_is_heard_however_fast_it_comes)
{
    struct desk desk;
    pthread_t thread;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, fast_trainer, agent), 0);
    for (int i = 1; i <= 500; i++) {
        send_assign_of(&desk, (uint64_t)i);
        until(&desk, desk.n_ready >= i);
    }
    agent_leave(agent);
    pthread_join(thread, NULL);
    let_go(&desk, agent);
}
END_TEST

static struct agent *crossing;

/* In the agent's thread, between two frames: the trainer is done just now. */
static void end_of_the_rank(void *arg, const Ms__FetchGrant *grant)
{
    Ms__RankDone done = MS__RANK_DONE__INIT;
    (void)arg;
    (void)grant;
    done.job = 7;
    done.generation = 3;
    ck_assert_int_eq(agent_send(crossing, MS_MSG_RANK_DONE, &done.base, NULL), 0);
}

START_TEST(the_end_of_a_rank_that_crosses_its_stop_is_heard)
{
    struct desk desk;
    Ms__FetchGrant grant = MS__FETCH_GRANT__INIT;
    desk_open(&desk);
    struct agent_config cfg = config_for(desk.address);
    cfg.on_fetch = end_of_the_rank;
    struct agent *agent = crossing = start_with(&cfg);
    until(&desk, desk.n_registers == 1);
    send_assign(&desk);
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);

    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_FETCH_GRANT, 0, &grant.base, err));
    send_stop(&desk, 3, 0); /* in one piece with it */

    until(&desk, desk.n_done == 1);
    agent_release(agent, 3);
    let_go(&desk, agent);
}
END_TEST

START_TEST(what_is_said_to_an_absent_scheduler_is_bounded_and_the_end_is_kept)
{
    struct desk desk;
    desk_open(&desk);
    event_del(desk.listen_event);
    struct agent *agent = start(desk.address, -1);
    Ms__Progress progress = MS__PROGRESS__INIT;
    Ms__RankDone done = MS__RANK_DONE__INIT;
    progress.job = done.job = 7;
    for (int i = 0; i < 5000; i++) {
        ck_ms_ok(agent_send(agent, MS_MSG_PROGRESS, &progress.base, err));
    }
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_DONE, &done.base, err));

    event_add(desk.listen_event, NULL);
    until(&desk, desk.n_done == 1);

    ck_assert_int_gt(desk.n_progress, 0);
    ck_assert_int_le(desk.n_progress, 150);
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_service_waits_for_certificates_that_fit_and_takes_new_ones)
{
    struct desk desk;
    struct ms_ca *ours = NULL;
    struct ms_ca *foreign = NULL;
    struct agent_order order;
    const char *dir = test_dir_make();
    desk_open(&desk);
    ck_ms_ok(ms_ca_create("ours", 1, &ours, err));
    ck_ms_ok(ms_ca_create("foreign", 1, &foreign, err));
    desk.tls = desk_issue(ours, dir, MS_ROLE_SCHEDULER, "head");
    SSL_CTX *bad = desk_issue(foreign, dir, MS_ROLE_WORKER, "w1");
    SSL_CTX *good = desk_issue(ours, dir, MS_ROLE_WORKER, "w1");
    struct agent_config cfg = config_for(desk.address);
    cfg.tls = bad;
    cfg.is_standing = 1;
    struct agent *agent = start_with(&cfg);

    until(&desk, desk.n_closed >= 2); /* it refuses us, and comes again */
    ck_assert_int_eq(take_order(&order, 0), 0);
    agent_set_tls(agent, good);
    until(&desk, desk.n_beats >= 1);
    let_go(&desk, agent);

    desk_open(&desk); /* of one job: nobody mends it, and nobody should wait */
    desk.tls = desk_issue(ours, dir, MS_ROLE_SCHEDULER, "second");
    cfg.address = desk.address;
    cfg.is_standing = 0;
    agent = start_with(&cfg);
    order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_int_eq(order.code, MS_E_REFUSED);
    agent_destroy(agent);
    desk_shut(&desk);
    SSL_CTX_free(bad);
    SSL_CTX_free(good);
    ms_ca_destroy(ours);
    ms_ca_destroy(foreign);
    test_dir_remove(dir);
}
END_TEST

START_TEST(the_time_for_the_first_registration_is_kept_to_the_second)
{
    struct desk desk;
    struct agent_order order;
    desk_open(&desk);
    event_del(desk.listen_event); /* the kernel accepts, nobody answers: a handshake has 5 s */
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    int64_t begun = (int64_t)time(NULL);
    struct agent *agent = start_tls(desk.address, 300, tls);

    ck_assert_int_eq(take_order(&order, 1), 1);

    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_int_eq(order.code, MS_E_UNREACHABLE);
    ck_assert_int_lt((int64_t)time(NULL) - begun, 4);
    agent_destroy(agent);
    SSL_CTX_free(tls);
    desk_shut(&desk);
}
END_TEST

START_TEST(a_piece_of_a_log_is_read_and_a_missing_log_is_said)
{
    struct desk desk;
    const char *dir = test_dir_make();
    snprintf(log_file, sizeof(log_file), "%s/worker_0.log", dir);
    FILE *file = fopen(log_file, "w");
    fputs("hello world", file);
    fclose(file);
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    Ms__LogRead request = MS__LOG_READ__INIT;
    request.job = 7;
    request.offset = 6;

    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_LOG_READ, 0, &request.base, err));
    until(&desk, desk.chunk[0] != '\0');
    ck_assert_str_eq(desk.chunk, "0:world");
    desk.chunk[0] = '\0';
    request.job = 8;
    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_LOG_READ, 0, &request.base, err));
    until(&desk, desk.chunk[0] != '\0');

    ck_assert_str_eq(desk.chunk, "-2:");
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
    test_dir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agent");
    TCase *tc = tcase_create("agent");
    tcase_add_test(tc, registers_beats_and_leaves);
    tcase_add_test(tc, an_assign_becomes_an_order_and_heartbeats_carry_the_step);
    tcase_add_test(tc, signals_of_a_program_are_not_for_its_agent);
    tcase_add_test(tc, what_is_late_about_a_rank_says_nothing_about_the_next_one);
    tcase_add_test(tc, a_stop_of_whatever_is_held_is_one_of_that_rank);
    tcase_add_test(tc, the_end_of_a_rank_goes_out_before_the_first_word_of_the_next);
    tcase_add_test(tc, the_stamp_that_it_was_told_is_brought_back);
    tcase_add_test(tc, a_node_without_a_rank_forgets_the_stamp_of_another_database);
    tcase_add_test(tc, a_rank_of_another_database_is_given_up);
    tcase_add_test(tc, after_a_cut_it_registers_again_with_the_rank_it_holds_and_repeats_ready);
    tcase_add_test(tc, the_plan_that_a_rank_chose_is_said_again_until_it_is_heard_by_all);
    tcase_add_test(tc, the_end_of_a_rank_that_crosses_its_start_is_said_again_after_a_cut);
    tcase_add_test(tc, the_end_of_a_job_does_not_release_the_rank_of_the_next_one);
    tcase_add_test(tc, a_scheduler_that_does_not_answer_register_is_tried_again);
    tcase_add_test(tc, a_scheduler_that_dies_in_the_handshake_is_tried_again);
    tcase_add_test(tc, a_refusal_is_final_and_its_text_arrives);
    tcase_add_test(tc, what_a_scheduler_says_forges_nothing_in_the_log);
    tcase_add_test(tc, a_scheduler_that_never_comes_is_named);
    tcase_add_test(tc, a_scheduler_gone_longer_than_the_lease_ends_the_job);
    tcase_add_test(tc, leave_is_an_order_too);
    tcase_add_test(tc, who_is_asked_to_leave_says_so_before_the_line_ends);
    tcase_add_test(tc, who_leaves_while_it_registers_waits_for_the_answer);
    tcase_add_test(tc, a_trainer_that_hangs_after_stop_is_reported_once);
    tcase_add_test(tc, a_trainer_that_hangs_with_a_lock_in_its_hands_is_reported_too);
    tcase_add_test(tc,
                   a_trainer_that_is_stopped_in_any_line_of_its_report_keeps_nobody_from_his_work);
    tcase_add_test(tc, a_stop_after_the_step_becomes_a_hard_one_and_then_the_end);
    tcase_add_test(tc, a_rank_that_is_released_in_time_ends_nobody);
    tcase_add_test(tc, the_next_assign_does_not_end_the_grace_of_a_trainer_that_hangs);
    tcase_add_test(tc, a_trainer_whom_an_assign_interrupts_has_the_same_grace);
    tcase_add_test(tc, a_database_that_counts_anew_gives_a_rank_its_grace);
    tcase_add_test(tc, with_a_rank_in_hand_a_silent_scheduler_keeps_its_connection);
    tcase_add_test(tc, an_idle_node_begins_anew_with_a_silent_scheduler);
    tcase_add_test(tc, an_assign_that_contradicts_itself_is_declined_before_anything_is_taken);
    tcase_add_test(tc, the_service_manager_hears_what_the_node_does_now);
    tcase_add_test(tc, a_third_assign_is_declined_in_words);
    tcase_add_test(tc, a_flood_of_orders_and_absurd_times_costs_nothing);
    tcase_add_test(tc, garbage_from_a_scheduler_ends_the_line_and_the_node_comes_again);
    tcase_add_test(tc, the_first_word_of_a_rank_is_heard_however_fast_it_comes);
    tcase_add_test(tc, the_end_of_a_rank_that_crosses_its_stop_is_heard);
    tcase_add_test(tc, what_is_said_to_an_absent_scheduler_is_bounded_and_the_end_is_kept);
    tcase_add_test(tc, a_service_waits_for_certificates_that_fit_and_takes_new_ones);
    tcase_add_test(tc, the_time_for_the_first_registration_is_kept_to_the_second);
    tcase_add_test(tc, a_piece_of_a_log_is_read_and_a_missing_log_is_said);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
