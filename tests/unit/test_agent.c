/* test_agent.c - an agent's line to its scheduler: registration, cuts, refusals, its end */
#include "proto/clock.h"
#include "tests/unit/agent_case.h"

#include "proto/log.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

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

/* Nobody said that it should come without TLS, and only a start finds certificates. */
START_TEST(who_is_plain_for_want_of_certificates_says_so_and_ends)
{
    struct desk desk;
    struct agent_order order;
    struct ms_ca *ca = NULL;
    const char *dir = test_dir_make();
    desk_open(&desk);
    ck_ms_ok(ms_ca_create("ours", 1, &ca, err));
    desk.tls = desk_issue(ca, dir, MS_ROLE_SCHEDULER, "head");
    struct agent_config cfg = config_for(desk.address);
    cfg.is_standing = 1;
    cfg.plain_by = "no certificate in /tls";
    struct agent *agent = start_with(&cfg);

    order = next(&desk);

    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_int_eq(order.code, MS_E_REFUSED);
    ck_assert_ptr_nonnull(strstr(order.text, "this port speaks TLS only"));
    ck_assert_ptr_nonnull(strstr(order.text, "; here is no certificate in /tls"));
    agent_destroy(agent);
    desk_shut(&desk);
    ms_ca_destroy(ca);
    test_dir_remove(dir);
}
END_TEST

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

/* It waits for the process that had its node id, and whoever looks at this one sees nothing. */
START_TEST(a_process_that_is_held_says_once_what_it_waits_for)
{
    struct desk desk;
    char text[4096] = "";
    FILE *log = tmpfile();
    ck_assert_ptr_nonnull(log);
    desk_open(&desk);
    desk.mute = 1;
    struct agent_config cfg = config_for(desk.address);
    cfg.register_ms = MS_HELD_SAY_MS + 100;
    ms_log_init(fileno(log), MS_LOG_INFO, 0);
    struct agent *agent = start_with(&cfg);

    until(&desk, desk.n_registers == 3);
    desk.mute = 0;
    until(&desk, desk.n_beats >= 1);
    agent_destroy(agent);
    ms_log_init(STDERR_FILENO, MS_LOG_INFO, 0);

    ck_assert_int_gt(pread(fileno(log), text, sizeof(text) - 1, 0), 0);
    const char *said = strstr(text, "agent.held node=");
    ck_assert_msg(said != NULL, "%s", text);
    ck_assert_ptr_nonnull(strstr(said, "it waits for the process that had this node id before"));
    ck_assert_ptr_null(strstr(said + 1, "agent.held"));
    fclose(log);
    desk_shut(&desk);
}
END_TEST

/* A scheduler that holds it is reached; one that never answers is not waited for again. */
START_TEST(the_time_to_reach_a_scheduler_is_not_that_of_its_answer)
{
    struct desk desk;
    struct agent_order order;
    desk_open(&desk);
    desk.mute = 1;
    struct agent_config cfg = config_for(desk.address);
    cfg.connect_timeout_ms = 100;
    cfg.register_ms = 3000;
    const int64_t begun_ms = ms_mono_ms();
    struct agent *agent = start_with(&cfg);
    until(&desk, desk.n_registers == 1);

    ck_assert_int_eq(take_order(&order, 1), 1);

    ck_assert_int_ge(ms_mono_ms() - begun_ms, 2900);
    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_ptr_nonnull(strstr(order.text, "no scheduler at 127.0.0.1:"));
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

/* ... and one that ends the connection each time is no reason to wait for one more answer. */
START_TEST(a_scheduler_that_takes_one_register_after_the_other_is_not_waited_for)
{
    struct desk desk;
    struct agent_order order;
    desk_open(&desk);
    desk.mute = 1;
    struct agent_config cfg = config_for(desk.address);
    cfg.connect_timeout_ms = 100;
    cfg.register_ms = 1500;
    struct agent *agent = start_with(&cfg);
    int is_over = 0;
    for (int i = 0; !is_over && i < 30; i++) { /* each time well before its answer is due */
        const int n = desk.n_registers;
        until(&desk, (is_over = take_order(&order, 0)) != 0 || desk.n_registers > n);
        const int64_t begun_ms = ms_mono_ms();
        until(&desk, is_over || ms_mono_ms() - begun_ms > 500);
        ms_conn_destroy(desk.conn);
        desk.conn = NULL;
    }
    ck_assert_int_eq(is_over, 1);
    ck_assert_int_eq(order.kind, AGENT_LOST);
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
    desk.refuse = MS_E_EXISTS;
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

/* Takes what the log has more; 1: that event is among it, to the end of its line. */
static int is_told(int log, char *text, size_t size, const char *event)
{
    size_t have = strlen(text);
    ssize_t n = read(log, text + have, size - 1 - have);
    ck_assert(n > 0 || (n < 0 && errno == EAGAIN));
    have += n > 0 ? (size_t)n : 0;
    text[have] = '\0';
    const char *at = strstr(text, event);
    return at != NULL && strchr(at, '\n') != NULL;
}

START_TEST(what_a_scheduler_says_forges_nothing_in_the_log)
{
    char line[4096] = "";
    struct desk desk;
    int log[2];
    ck_assert_int_eq(pipe2(log, O_CLOEXEC | O_NONBLOCK), 0);
    ms_log_init(log[1], MS_LOG_INFO, 1);
    desk_open(&desk);
    desk.refuse_with = "no\" node=w9\n<3>agent.registered node=w9";
    struct agent *agent = start(desk.address, -1);

    /* a machine that stood still has more to say, and registers again */
    until(&desk, is_told(log[0], line, sizeof(line), "agent.not_registered"));
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

int main(void)
{
    Suite *suite = suite_create("agent");
    TCase *tc = tcase_create("agent");
    tcase_add_test(tc, registers_beats_and_leaves);
    tcase_add_test(tc, signals_of_a_program_are_not_for_its_agent);
    tcase_add_test(tc, the_stamp_that_it_was_told_is_brought_back);
    tcase_add_test(tc, who_is_plain_for_want_of_certificates_says_so_and_ends);
    tcase_add_test(tc, a_node_without_a_rank_forgets_the_stamp_of_another_database);
    tcase_add_test(tc, a_rank_of_another_database_is_given_up);
    tcase_add_test(tc, a_scheduler_that_does_not_answer_register_is_tried_again);
    tcase_add_test(tc, a_process_that_is_held_says_once_what_it_waits_for);
    tcase_add_test(tc, the_time_to_reach_a_scheduler_is_not_that_of_its_answer);
    tcase_add_test(tc, a_scheduler_that_takes_one_register_after_the_other_is_not_waited_for);
    tcase_add_test(tc, a_scheduler_that_dies_in_the_handshake_is_tried_again);
    tcase_add_test(tc, a_refusal_is_final_and_its_text_arrives);
    tcase_add_test(tc, what_a_scheduler_says_forges_nothing_in_the_log);
    tcase_add_test(tc, a_scheduler_that_never_comes_is_named);
    tcase_add_test(tc, a_scheduler_gone_longer_than_the_lease_ends_the_job);
    tcase_add_test(tc, leave_is_an_order_too);
    tcase_add_test(tc, who_is_asked_to_leave_says_so_before_the_line_ends);
    tcase_add_test(tc, who_leaves_while_it_registers_waits_for_the_answer);
    tcase_add_test(tc, with_a_rank_in_hand_a_silent_scheduler_keeps_its_connection);
    tcase_add_test(tc, an_idle_node_begins_anew_with_a_silent_scheduler);
    tcase_add_test(tc, a_flood_of_orders_and_absurd_times_costs_nothing);
    tcase_add_test(tc, garbage_from_a_scheduler_ends_the_line_and_the_node_comes_again);
    tcase_add_test(tc, a_service_waits_for_certificates_that_fit_and_takes_new_ones);
    tcase_add_test(tc, the_time_for_the_first_registration_is_kept_to_the_second);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
