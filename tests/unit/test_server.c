/* test_server.c - commit before reply, group commit, full disks and failed commits, passed sockets
 */
#include "tests/unit/server_world.h"

/* ---- cases --------------------------------------------------------------------------------------
 */

START_TEST(no_reply_leaves_before_its_commit_returned)
{
    uint8_t buf[512];
    uint32_t id = 0;
    ProtobufCMessage *msg;
    start(-1, 0);
    int fd = greet();
    stage->hold = 1;

    put(fd, buf, pack_submit(7, buf));
    await_commits(1);

    ck_assert(!is_readable(fd, 300)); /* still not durable: nothing is said */
    stage->hold = 0;
    ck_assert_uint_eq(get(fd, &id, &msg), MS_MSG_SUBMITTED);
    ck_assert_uint_eq(id, 7);
    ck_assert_int_eq(stage->jobs, 1);
    ms_wire_free(msg);
    close(fd);
}
END_TEST

START_TEST(a_failed_commit_says_nothing_and_ends_the_server)
{
    uint8_t buf[512];
    uint32_t id;
    ProtobufCMessage *msg;
    start(-1, 0);
    int fd = greet();
    stage->commit_rc = MS_E_IO;

    put(fd, buf, pack_submit(7, buf));

    ck_assert_uint_eq(get(fd, &id, &msg), 0); /* closed, without an answer */
    ck_assert_int_eq(end_of_child(), 102);
    ck_assert_int_eq(stage->exit_rc, MS_E_IO);
    close(fd);
}
END_TEST

START_TEST(a_commit_without_memory_is_repeated_with_the_reserve)
{
    start(-1, 0);
    int fd = greet();
    stage->nomem = 1;

    ck_assert_uint_eq(submit(fd, 7, NULL, 0), MS_MSG_SUBMITTED);

    ck_assert_int_eq(stage->commits, 2);
    ck_assert_int_eq(stage->jobs, 1);
    close(fd);
}
END_TEST

START_TEST(without_memory_and_reserve_a_commit_says_nothing_and_ends_the_server)
{
    start(-1, 0);
    int fd = greet();
    stage->nomem = 2;

    ck_assert_uint_eq(submit(fd, 7, NULL, 0), 0);

    ck_assert_int_eq(end_of_child(), 102); /* in order, not by abort(): the next one starts whole */
    ck_assert_int_eq(stage->exit_rc, MS_E_NOMEM);
    ck_assert_int_eq(stage->jobs, 0);
    close(fd);
}
END_TEST

START_TEST(what_arrives_together_is_committed_together)
{
    enum { N = 200 };
    static uint8_t buf[N * 128];
    size_t size = 0;
    uint32_t id;
    ProtobufCMessage *msg;
    start(-1, 0);
    int fd = greet();
    for (uint32_t i = 1; i <= N; i++) {
        size += pack_submit(i, buf + size);
    }

    put(fd, buf, size);

    for (uint32_t i = 1; i <= N; i++) {
        ck_assert_uint_eq(get(fd, &id, &msg), MS_MSG_SUBMITTED);
        ck_assert_uint_eq(id, i);
        ms_wire_free(msg);
    }
    ck_assert_int_eq(stage->jobs, N);
    ck_assert_int_lt(stage->commits, N / 4);
    close(fd);
}
END_TEST

START_TEST(a_full_disk_refuses_new_work_until_there_is_space)
{
    char text[512] = "";
    start(-1, 0);
    int fd = greet();
    stage->commit_rc = 1;
    stage->idle_rc = 1;

    ck_assert_uint_eq(submit(fd, 1, NULL, 0),
                      MS_MSG_SUBMITTED); /* this one went into the reserve */
    ck_assert_uint_eq(submit(fd, 2, text, sizeof(text)), MS_MSG_ERROR);
    ck_assert_ptr_nonnull(strstr(text, "/var/lib/msched/state.db"));
    ck_assert_ptr_nonnull(strstr(text, "KiB free"));
    ck_assert_int_eq(stage->jobs, 1);

    stage->commit_rc = 0;
    stage->idle_rc = 0;
    uint16_t type = MS_MSG_ERROR;
    for (uint32_t i = 3; i < 60000 && type == MS_MSG_ERROR; i++) {
        type = submit(fd, i, NULL, 0);
        pause_ms(1);
    }
    ck_assert_uint_eq(type, MS_MSG_SUBMITTED);
    close(fd);
}
END_TEST

START_TEST(a_cancel_is_refused_before_the_commit_that_would_find_no_room)
{
    char text[512] = "";
    start(-1, 0);
    int fd = greet();
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_SUBMITTED);
    stage->commit_rc = 1;
    stage->idle_rc = 1;
    ck_assert_uint_eq(submit(fd, 2, NULL, 0), MS_MSG_SUBMITTED);
    stage->no_room = 1; /* since that commit somebody took what was left */
    const int commits = stage->commits;

    ck_assert_uint_eq(cancel(fd, 3, 1, text, sizeof(text)), MS_MSG_ERROR);

    ck_assert_msg(strstr(text, "the end of job 1 cannot be stored") != NULL, "%s", text);
    ck_assert_int_eq(stage->commits, commits);
    stage->no_room = 0;
    ck_assert_uint_eq(cancel(fd, 4, 1, NULL, 0), MS_MSG_OK);
    close(fd);
}
END_TEST

/* Ends come more often than it looks: each of them once put that off. */
START_TEST(commits_do_not_put_off_the_look_for_free_disk)
{
    enum { JOBS = 20, GAP_NS = 400000000 };
    struct timespec now;
    start(-1, 0);
    int fd = greet();
    for (uint32_t i = 1; i <= JOBS; i++) {
        ck_assert_uint_eq(submit(fd, i, NULL, 0), MS_MSG_SUBMITTED);
    }
    ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    stage->stands = now.tv_sec * 1000000000LL + now.tv_nsec;
    stage->commit_rc = 1;
    stage->idle_rc = 1;
    ck_assert_uint_eq(cancel(fd, JOBS + 1, 1, NULL, 0), MS_MSG_OK);
    int looks = stage->looks;

    for (uint32_t i = 2; i <= JOBS; i++) {
        stage->stands += GAP_NS;
        const int commits = stage->commits;
        ck_assert_uint_eq(cancel(fd, JOBS + i, i, NULL, 0), MS_MSG_OK);
        ck_assert_int_gt(stage->commits, commits);
    }

    ck_assert_int_ge(stage->looks - looks, 4); /* in 7.6 seconds */
    stage->stands = 0;
    close(fd);
}
END_TEST

START_TEST(a_reserve_that_cannot_be_made_is_not_called_a_full_disk)
{
    char text[512] = "";
    stage->no_reserve = 1;
    stage->idle_rc = 1;
    start(-1, 0);
    int fd = greet();

    ck_assert_uint_eq(submit(fd, 1, text, sizeof(text)), MS_MSG_ERROR);

    ck_assert_ptr_nonnull(strstr(text, "state.db.reserve: a folder"));
    ck_assert_ptr_null(strstr(text, "full"));
    close(fd);
}
END_TEST

START_TEST(a_missing_reserve_at_the_start_refuses_from_the_first_submit)
{
    stage->idle_rc = 1;
    start(-1, 0);
    int fd = greet();
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_ERROR);
    close(fd);
}
END_TEST

START_TEST(term_ends_it_with_0_and_closes_connections_in_order)
{
    uint32_t id;
    ProtobufCMessage *msg;
    start(-1, 0);
    int fd = greet();
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_SUBMITTED);

    kill(child, SIGTERM);

    ck_assert_uint_eq(get(fd, &id, &msg), 0);
    ck_assert_int_eq(end_of_child(), 0);
    ck_assert_int_eq(try_dial(), -1);
    ck_assert_int_ne(access(socket_path, F_OK), 0);
    close(fd);
}
END_TEST

START_TEST(a_failed_reload_changes_nothing)
{
    start(-1, 0);
    int fd = greet();
    kill(child, SIGHUP);
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_SUBMITTED);
    close(fd);
}
END_TEST

/* Who is connected kept the name and the rights of the settings that were there when he came. */
START_TEST(a_reload_ends_whoever_would_be_somebody_else_today)
{
    char before[64];
    char after[64];
    snprintf(before, sizeof(before), "user_map = boss=%u\n", (unsigned)geteuid());
    snprintf(after, sizeof(after), "user_map = chief=%u\n", (unsigned)geteuid());
    configure(before);
    stage->may_reload = 1;
    start(-1, 0);
    int fd = greet();

    order_reload(before); /* nothing has changed */
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_SUBMITTED);
    order_reload(after);

    expect_end(fd, "who came as admin:boss is admin:chief now; connect again");
    fd = greet();
    ck_assert_uint_eq(submit(fd, 2, NULL, 0), MS_MSG_SUBMITTED);
    order_reload("");
    expect_end(fd, "who came as admin:chief is ");
}
END_TEST

START_TEST(rights_that_a_reload_takes_away_are_taken_from_who_is_connected_too)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int passed = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(passed, (struct sockaddr *)&at, size), 0);
    ck_assert_int_eq(listen(passed, 16), 0);
    ck_assert_int_eq(getsockname(passed, (struct sockaddr *)&at, &size), 0);
    configure("anyone = user worker\n");
    stage->may_reload = 1;
    start(passed, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, size), 0);
    greet_over(fd);
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_SUBMITTED);

    order_reload("anyone = user worker admin\n"); /* more rights: from the next connection on */
    ck_assert_uint_eq(submit(fd, 2, NULL, 0), MS_MSG_SUBMITTED);
    order_reload("anyone = none\n");

    expect_end(fd, "who came as anyone is anyone now and may do less");
    close(passed);
}
END_TEST

static Ms__StatusInfo ask_status(int fd)
{
    uint8_t buf[64];
    uint32_t id = 0;
    ProtobufCMessage *msg;
    Ms__StatusQuery query = MS__STATUS_QUERY__INIT;
    put(fd, buf, pack(MS_MSG_STATUS_QUERY, 5, &query.base, buf));
    ck_assert_uint_eq(get(fd, &id, &msg), MS_MSG_STATUS_INFO);
    Ms__StatusInfo info = *(Ms__StatusInfo *)msg; /* its numbers */
    ms_wire_free(msg);
    return info;
}

START_TEST(the_status_counts_the_turns_and_the_clients_until_then)
{
    start(-1, 0);
    int fd = greet();
    Ms__StatusInfo first = ask_status(fd);
    int other = greet();
    Ms__StatusInfo second = ask_status(fd);

    ck_assert_uint_gt(first.ticks, 0);
    ck_assert_uint_gt(second.ticks, first.ticks);
    ck_assert_uint_eq(first.clients, 1);
    ck_assert_uint_eq(second.clients, 2);
    close(fd);
    close(other);
}
END_TEST

START_TEST(a_passed_socket_is_served_and_its_file_left_alone)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", socket_path);
    int passed = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(passed, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(passed, 16), 0);
    int early = try_dial(); /* before anybody serves it */
    ck_assert_int_ge(early, 0);

    start(passed, 0);

    int fd = greet();
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_SUBMITTED);
    kill(child, SIGTERM);
    ck_assert_int_eq(end_of_child(), 0);
    ck_assert_int_eq(access(socket_path, F_OK), 0);
    close(fd);
    close(early);
    close(passed);
}
END_TEST

START_TEST(out_of_descriptors_it_waits_and_goes_on)
{
    enum { FDS = 40, N = 60 };
    int held[N];
    start(-1, FDS);
    int fd = greet();
    for (int i = 0; i < N; i++) {
        held[i] = dial(); /* the kernel's queue takes what the process cannot */
    }
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_SUBMITTED);
    for (int i = 0; i < N; i++) {
        close(held[i]);
    }

    int late = greet();

    ck_assert_uint_eq(submit(late, 2, NULL, 0), MS_MSG_SUBMITTED);
    close(late);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("server");
    TCase *tcase = tcase_create("server");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, no_reply_leaves_before_its_commit_returned);
    tcase_add_test(tcase, a_failed_commit_says_nothing_and_ends_the_server);
    tcase_add_test(tcase, a_commit_without_memory_is_repeated_with_the_reserve);
    tcase_add_test(tcase, without_memory_and_reserve_a_commit_says_nothing_and_ends_the_server);
    tcase_add_test(tcase, what_arrives_together_is_committed_together);
    tcase_add_test(tcase, a_full_disk_refuses_new_work_until_there_is_space);
    tcase_add_test(tcase, commits_do_not_put_off_the_look_for_free_disk);
    tcase_add_test(tcase, a_cancel_is_refused_before_the_commit_that_would_find_no_room);
    tcase_add_test(tcase, a_reserve_that_cannot_be_made_is_not_called_a_full_disk);
    tcase_add_test(tcase, a_missing_reserve_at_the_start_refuses_from_the_first_submit);
    tcase_add_test(tcase, term_ends_it_with_0_and_closes_connections_in_order);
    tcase_add_test(tcase, a_failed_reload_changes_nothing);
    tcase_add_test(tcase, a_reload_ends_whoever_would_be_somebody_else_today);
    tcase_add_test(tcase, rights_that_a_reload_takes_away_are_taken_from_who_is_connected_too);
    tcase_add_test(tcase, the_status_counts_the_turns_and_the_clients_until_then);
    tcase_add_test(tcase, a_passed_socket_is_served_and_its_file_left_alone);
    tcase_add_test(tcase, out_of_descriptors_it_waits_and_goes_on);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
