/* test_sched_twin.c - one node id, two processes */
#include "tests/unit/sched_fixture.h"

START_TEST(same_process_on_a_new_connection_replaces_the_old_one)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);

    uint64_t conn = fix_register("w0", 1);

    ck_assert_int_eq(fix_closed(old), 1);
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
}
END_TEST

START_TEST(duplicate_is_refused_when_the_old_process_answers)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);

    uint64_t conn = fix_register("w0", 2);
    uint32_t frame = fix.frame;
    ck_assert_ptr_nonnull(fix_heard(old, MS_MSG_HEARTBEAT_ACK));
    ck_assert_ptr_nonnull(fix_heard(old, MS_MSG_LOG_READ));
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_REGISTERED));
    fix_beat(old);

    const Ms__Error *refusal = fix_heard(conn, MS_MSG_ERROR);
    ck_assert_ptr_nonnull(refusal);
    ck_assert_int_eq(refusal->code, MS_E_EXISTS);
    ck_assert_uint_eq(fix_find(conn, MS_MSG_ERROR)->id, frame);
    ck_assert_ptr_nonnull(strstr(refusal->text, "node w0"));
    ck_assert_ptr_nonnull(strstr(refusal->text, "pid 1001"));
    ck_assert_ptr_nonnull(strstr(refusal->text, "pid 1002"));
    ck_assert_ptr_nonnull(strstr(refusal->text, "another MS_NODE_ID"));
}
END_TEST

START_TEST(answer_to_the_ping_counts_as_life)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    uint64_t conn = fix_register("w0", 2);
    const Ms__LogRead *ping = fix_heard(old, MS_MSG_LOG_READ);
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    chunk.route = ping->route;
    chunk.code = MS_E_NOT_FOUND;

    fix_say(old, MS_MSG_LOG_CHUNK, &chunk.base);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_ERROR));
}
END_TEST

START_TEST(duplicate_takes_over_when_the_old_process_is_silent)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    uint64_t conn = fix_register("w0", 2);

    fix_pass(MS_PROBE_MS - 1);
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_REGISTERED));
    fix_pass(1);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
    ck_assert_int_eq(fix_closed(old), 1);
}
END_TEST

START_TEST(duplicate_takes_over_when_the_old_connection_closes)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    uint64_t conn = fix_register("w0", 2);

    fix_close(old);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
}
END_TEST

START_TEST(newcomer_with_a_rank_is_told_to_let_go_of_it)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w0", 2);
    msg.job = 8;
    msg.generation = 3;
    msg.rank = 5;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    fix_close(old);

    const Ms__Stop *stop = fix_heard(conn, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_uint_eq(stop->job, 8);
    ck_assert_uint_eq(stop->generation, 3);
}
END_TEST

START_TEST(third_process_with_the_id_is_refused_at_once)
{
    fix_standing();
    fix_register("w0", 1);
    fix_register("w0", 2);

    uint64_t conn = fix_register("w0", 3);

    fix_refused(conn, MS_E_EXISTS, "two more processes want this id");
}
END_TEST

START_TEST(newcomer_that_hangs_up_ends_the_probe)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    uint64_t conn = fix_register("w0", 2);

    fix_close(conn);
    fix_pass(MS_PROBE_MS);

    ck_assert_int_eq(fix_closed(old), 0);
    ck_assert_str_eq(fix_show_node("w0")->state, "REGISTERED");
}
END_TEST

START_TEST(another_certificate_cannot_take_a_node_id)
{
    fix_standing();
    fix_register("w0", 1);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "another-certificate");
    Ms__Register msg = fix_node("w0", 1);

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    fix_refused(conn, MS_E_EXISTS, "registered already by worker:host-certificate");
}
END_TEST

START_TEST(one_connection_waits_for_one_probe)
{
    fix_standing();
    fix_register("w0", 1);
    fix_register("w1", 2);
    uint64_t conn = fix_register("w0", 3);
    Ms__Register msg = fix_node("w1", 4);

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    fix_refused(conn, MS_E_EXISTS, "has a Register under way already");
}
END_TEST

START_TEST(reconnect_of_the_old_process_refuses_the_newcomer)
{
    fix_standing();
    fix_register("w0", 1);
    uint64_t newcomer = fix_register("w0", 2);

    uint64_t again = fix_register("w0", 1);

    ck_assert_ptr_nonnull(fix_heard(newcomer, MS_MSG_ERROR));
    ck_assert_ptr_nonnull(fix_heard(again, MS_MSG_REGISTERED));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_twin");
    TCase *tc = tcase_create("twins");
    tcase_add_checked_fixture(tc, NULL, fix_end);
    tcase_add_test(tc, same_process_on_a_new_connection_replaces_the_old_one);
    tcase_add_test(tc, duplicate_is_refused_when_the_old_process_answers);
    tcase_add_test(tc, answer_to_the_ping_counts_as_life);
    tcase_add_test(tc, duplicate_takes_over_when_the_old_process_is_silent);
    tcase_add_test(tc, duplicate_takes_over_when_the_old_connection_closes);
    tcase_add_test(tc, newcomer_with_a_rank_is_told_to_let_go_of_it);
    tcase_add_test(tc, third_process_with_the_id_is_refused_at_once);
    tcase_add_test(tc, newcomer_that_hangs_up_ends_the_probe);
    tcase_add_test(tc, another_certificate_cannot_take_a_node_id);
    tcase_add_test(tc, one_connection_waits_for_one_probe);
    tcase_add_test(tc, reconnect_of_the_old_process_refuses_the_newcomer);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
