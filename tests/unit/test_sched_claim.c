/* test_sched_claim.c - a node and the rank that it says it holds, or does not let go of */
#include "tests/unit/sched_fixture.h"

START_TEST(takeover_of_a_node_with_a_rank_fails_its_job)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_register("w1", 9);

    fix_pass(MS_PROBE_MS);

    fix_job_is(1, "FAILED", "rank 1 (node w1 on host h) was lost: pid 1002 did not answer");
}
END_TEST

START_TEST(process_that_reconnects_with_its_rank_keeps_it)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w1", 2);
    msg.job = 1;
    msg.generation = 1;
    msg.rank = 1;
    msg.running = 1;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    ck_assert_int_eq(fix_closed(conns[1]), 1);
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_STOP));
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_START));
    fix_job_is(1, "RUNNING", "");
}
END_TEST

START_TEST(process_that_missed_start_gets_it_again)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w1", 2);
    msg.job = 1;
    msg.generation = 1;
    msg.rank = 1;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_START));
}
END_TEST

START_TEST(process_that_reconnects_without_its_rank_fails_the_job)
{
    uint64_t conns[2];
    fix_running(conns);

    uint64_t conn = fix_register("w1", 2);

    ck_assert_ptr_null(fix_heard(conn, MS_MSG_STOP));
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_STOP));
    fix_job_is(1, "FAILED", "its process reconnected without the rank");
    ck_assert_str_eq(fix_show_node("w1")->activity, "idle");
}
END_TEST

START_TEST(rank_of_an_unknown_job_is_stopped)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_WORKER, "c");
    Ms__Register msg = fix_node("w0", 1);
    msg.job = 77;
    msg.generation = 3;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    const Ms__Stop *stop = fix_heard(conn, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_uint_eq(stop->job, 77);
    ck_assert_int_eq(stop->code, MS_E_ABORTED);
    ck_assert_ptr_nonnull(strstr(stop->text,
                                 "job 77 is not known to this scheduler, which was started "
                                 "anew and keeps no jobs across that"));
    ck_assert_str_eq(fix_show_node("w0")->activity, "stopping job 77 rank 0 since 0 s");
}
END_TEST

START_TEST(node_that_was_stopped_is_busy_until_it_answers)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_close(conns[0]);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));

    uint64_t next = fix_submit(1, 0);
    fix_job_is(next, "QUEUED", "waits for 1 idle node: 1 registered, 0 idle");
    fix_done(conns[1], 1, 1, 1, MS_E_ABORTED, "stopped");

    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
}
END_TEST

START_TEST(node_that_does_not_answer_stop_is_named_and_gets_no_work)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_close(conns[0]);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));

    for (int i = 0; i < 8; i++) {
        fix_pass(5000);
        fix_beat(conns[1]);
    }
    const Ms__NodeInfo *info = fix_show_node("w1");
    ck_assert_str_eq(info->activity, "stopping job 1 rank 1 since 40 s");
    ck_assert_str_eq(info->reason, "");
    for (int i = 0; i < 4; i++) {
        fix_pass(5000);
        fix_beat(conns[1]);
    }
    fix_pass(5000);

    ck_assert_int_eq(fix_logged("node.stuck node=\"w1\""), 1);
    info = fix_show_node("w1");
    ck_assert_ptr_nonnull(strstr(info->reason, "it does not let go of job 1 rank 1"));
    ck_assert_ptr_nonnull(strstr(info->reason, "end process 1002 on host h"));
    fix_job_is(fix_submit(1, 0), "QUEUED", "1 registered, 0 idle");
    fix_done(conns[1], 1, 1, 1, MS_E_ABORTED, "at last");
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
    ck_assert_str_eq(fix_show_node("w1")->reason, "");
}
END_TEST

START_TEST(nobody_waits_behind_a_job_that_needs_a_stuck_node)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_close(conns[0]);
    uint64_t good = fix_register("good", 9);
    uint64_t large = fix_submit(2, 0);
    uint64_t small = fix_submit(1, 0);
    for (int64_t ms = 0; ms < MS_STOP_ANSWER_MS; ms += FIX_LEASE_MS / 2) {
        fix_job_is(small, "QUEUED", "waits behind");
        fix_pass(FIX_LEASE_MS / 2);
        fix_beat(conns[1]);
        fix_beat(good);
    }
    fix_pass(FIX_LEASE_MS / 2);
    fix_beat(conns[1]);
    fix_beat(good);
    fix_pass(FIX_LEASE_MS / 2);

    fix_job_is(small, "PLACING", "waits for rank 0");
    fix_job_is(large, "QUEUED", "needs 2 nodes, the cluster has 1, 1 stuck (msctl nodes): waits");
}
END_TEST

START_TEST(rank_of_another_generation_is_stopped)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w7", 7);
    msg.job = 1;
    msg.generation = 0;
    msg.rank = 1;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    const Ms__Stop *stop = fix_heard(conn, MS_MSG_STOP);
    ck_assert_ptr_nonnull(strstr(stop->text, "job 1 runs in generation 1 without this process"));
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));
}
END_TEST

START_TEST(step_of_a_heartbeat_is_shown)
{
    uint64_t conns[2];
    fix_running(conns);
    Ms__Heartbeat msg = MS__HEARTBEAT__INIT;
    msg.job = 1;
    msg.generation = 1;
    msg.step = 17;

    fix_say(conns[1], MS_MSG_HEARTBEAT, &msg.base);

    ck_assert_uint_eq(fix_show(1)->ranks[1]->step, 17);
    ck_assert_uint_eq(fix_show(1)->ranks[0]->step, 0);
}
END_TEST

START_TEST(words_of_others_cannot_make_a_stop_unsendable)
{
    uint64_t conns[2];
    fix_running(conns);
    struct sched_event event = {
        .kind = SCHED_EV_CLOSED, .conn = conns[0], .reason = "tls: \x01 \x7f \xc3\xa4 \xe2\x82"};

    fix_apply(&event);

    const Ms__Stop *stop = fix_heard(conns[1], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_ptr_nonnull(strstr(stop->text, "tls: ? ? \xc3\xa4 ?? ("));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_claim");
    TCase *tc = tcase_create("claims");
    tcase_add_checked_fixture(tc, NULL, fix_end);
    tcase_add_test(tc, takeover_of_a_node_with_a_rank_fails_its_job);
    tcase_add_test(tc, process_that_reconnects_with_its_rank_keeps_it);
    tcase_add_test(tc, process_that_missed_start_gets_it_again);
    tcase_add_test(tc, process_that_reconnects_without_its_rank_fails_the_job);
    tcase_add_test(tc, rank_of_an_unknown_job_is_stopped);
    tcase_add_test(tc, node_that_was_stopped_is_busy_until_it_answers);
    tcase_add_test(tc, node_that_does_not_answer_stop_is_named_and_gets_no_work);
    tcase_add_test(tc, nobody_waits_behind_a_job_that_needs_a_stuck_node);
    tcase_add_test(tc, rank_of_another_generation_is_stopped);
    tcase_add_test(tc, step_of_a_heartbeat_is_shown);
    tcase_add_test(tc, words_of_others_cannot_make_a_stop_unsendable);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
