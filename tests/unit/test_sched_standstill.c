/* test_sched_standstill.c - a scheduler that stood still blames nobody for it */
#include "tests/unit/sched_fixture.h"

static uint64_t reconnect(const char *node_id, uint64_t incarnation, uint32_t rank)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(node_id, incarnation);
    msg.job = 1;
    msg.generation = 1;
    msg.rank = rank;
    msg.running = 1;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

static void pass_with_beats(int64_t ms, const uint64_t conns[2])
{
    for (; ms > 0; ms -= 1000) {
        fix_pass(ms < 1000 ? ms : 1000);
        fix_beat(conns[0]);
        fix_beat(conns[1]);
    }
}

/* Whoever is waited for may have stood still with us: 3 s more for everybody. */
enum { STILL_MS = 3000 };

START_TEST(probe_waits_longer_when_the_scheduler_stood_still)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    fix_register("w0", 2);

    sched_stood_still(fix.s, STILL_MS);
    fix_pass(MS_PROBE_MS + STILL_MS - 1);
    ck_assert_int_eq(fix_closed(old), 0);
    fix_pass(1);

    ck_assert_int_eq(fix_closed(old), 1);
}
END_TEST

/* Those who come back after it are arrivals too, though they had registered before. */
START_TEST(wave_after_a_standstill_is_waited_for)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_pass(FIX_LEASE_MS);
    fix_close(conns[0]);
    fix_close(conns[1]);
    fix_pass(FIX_LEASE_MS - 1);
    Ms__Register msg = fix_node("w0", 1);
    msg.job = 1;
    msg.generation = 1;
    msg.running = 1;
    fix_say(fix_open(MS_ROLE_WORKER, "host-certificate"), MS_MSG_REGISTER, &msg.base);

    fix_pass(FIX_LEASE_MS / MS_HEARTBEATS_PER_LEASE - 1);
    fix_job_is(1, "RUNNING", "waits for the nodes of rank 1 to come back");
    fix_pass(1);

    fix_job_is(1, "FAILED", "did not come back within 11999 ms after the scheduler stood still");
}
END_TEST

START_TEST(grace_waits_longer_when_the_scheduler_stood_still)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);

    sched_stood_still(fix.s, STILL_MS);
    pass_with_beats(MS_CANCEL_GRACE_MS + STILL_MS - 1, conns);
    fix_job_is(1, "RUNNING", "to finish the step");
    fix_pass(1);

    fix_job_is(1, "CANCELLED", "the step did not end");
}
END_TEST

START_TEST(complaint_waits_longer_when_the_scheduler_stood_still)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_done(conns[0], 1, 1, 0, MS_E_CLOSED, "rank 1 is gone");

    sched_stood_still(fix.s, STILL_MS);
    fix_pass(MS_BLAME_MS + STILL_MS - 1);
    fix_job_is(1, "RUNNING", "for a first-hand report");
    fix_pass(1);

    fix_job_is(1, "FAILED", "rank 1 is gone");
}
END_TEST

START_TEST(doubt_waits_longer_when_the_scheduler_stood_still)
{
    fix_standing();
    uint64_t conns[2] = {fix_register("w0", 1), fix_register("w1", 2)};
    uint64_t large = fix_submit(3, 0);

    sched_stood_still(fix.s, STILL_MS);
    pass_with_beats(FIX_LEASE_MS + STILL_MS - 1, conns);
    fix_job_is(large, "QUEUED", "waits for 3 idle nodes");
    fix_pass(1);

    fix_job_is(large, "QUEUED", "needs 3 nodes, the cluster has 2");
}
END_TEST

START_TEST(stop_waits_longer_when_the_scheduler_stood_still)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 0);

    sched_stood_still(fix.s, STILL_MS);
    pass_with_beats(MS_STOP_ANSWER_MS + STILL_MS - 1, conns);
    ck_assert_str_eq(fix_show_node("w0")->reason, "");
    fix_pass(1);

    ck_assert_ptr_nonnull(strstr(fix_show_node("w0")->reason, "does not let go"));
}
END_TEST

START_TEST(worker_that_gave_its_connection_up_meanwhile_keeps_its_rank)
{
    uint64_t conns[2];
    fix_running(conns);

    sched_stood_still(fix.s, 15000);
    fix.now.mono_ms += 15000;
    fix_close(conns[1]);
    fix_close(conns[0]);
    fix_job_is(1, "RUNNING",
               "waits for the nodes of ranks 0 1 to come back after the scheduler stood still");
    ck_assert_str_eq(fix_show_node("w1")->reason, "not heard of since the scheduler stood still");
    uint64_t again = reconnect("w1", 2, 1);
    ck_assert_ptr_null(fix_heard(again, MS_MSG_STOP));
    reconnect("w0", 1, 0);

    fix_job_is(1, "RUNNING", "");
}
END_TEST

START_TEST(each_worker_has_a_whole_lease_to_come_back)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, 15000);
    fix.now.mono_ms += 15000;
    fix_close(conns[1]);
    fix_beat(conns[0]);
    fix_pass(FIX_LEASE_MS - 1);
    fix_close(conns[0]);

    reconnect("w1", 2, 1);
    fix_pass(FIX_LEASE_MS - 1);

    fix_job_is(1, "RUNNING", "waits for the nodes of rank 0 to come back");
}
END_TEST

START_TEST(worker_that_does_not_come_back_after_a_standstill_fails_the_job)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, 15000);
    fix.now.mono_ms += 15000;
    fix_close(conns[1]);

    fix_pass(FIX_LEASE_MS - 1);
    fix_beat(conns[0]);
    fix_pass(1);

    fix_job_is(1, "FAILED", "did not come back within 10000 ms after the scheduler stood still");
    ck_assert_str_eq(fix_show_node("w1")->state, "LOST");
}
END_TEST

START_TEST(worker_that_does_not_come_back_while_ranks_get_ready_puts_the_job_back)
{
    uint64_t conns[2];
    fix_placed(conns);
    sched_stood_still(fix.s, 15000);
    fix.now.mono_ms += 15000;
    fix_close(conns[1]);

    fix_pass(FIX_LEASE_MS - 1);
    fix_beat(conns[0]);
    fix_pass(1);

    fix_job_is(1, "QUEUED", "did not come back within 10000 ms after the scheduler stood still");
}
END_TEST

/* The bound on getting ready ends while a rank's node is away: it holds again once that is back. */
START_TEST(rank_that_was_away_when_its_time_was_over_does_not_keep_its_job_either)
{
    enum { READY_MS = 20000 };
    uint64_t conns[2];
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.topo_timeout_ms = READY_MS;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    conns[0] = fix_register("w0", 1);
    conns[1] = fix_register("w1", 2);
    fix_submit(2, 0);
    fix_ready(conns[0], 1, 1, 0);
    pass_with_beats(READY_MS - 1000, conns);
    sched_stood_still(fix.s, 9000);
    fix.now.mono_ms += 9000;
    fix_close(conns[1]);
    for (int i = 0; i < 9; i++) { /* the stretched bound ends, and nobody can be blamed */
        fix_pass(1000);
        fix_beat(conns[0]);
    }
    fix_job_is(1, "PLACING", "waits for the nodes of rank 1 to come back");
    Ms__Register msg = fix_node("w1", 2);
    msg.job = 1;
    msg.generation = 1;
    msg.rank = 1;
    conns[1] = fix_open(MS_ROLE_WORKER, "host-certificate");
    fix_say(conns[1], MS_MSG_REGISTER, &msg.base);

    pass_with_beats(4000, conns);

    fix_job_is(1, "QUEUED", "rank 1 (node w1 on host h) did not get ready");
}
END_TEST

START_TEST(another_process_after_a_standstill_fails_the_job)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, 15000);
    fix.now.mono_ms += 15000;
    fix_close(conns[1]);

    fix_register("w1", 9);

    fix_job_is(1, "FAILED", "another one registered in its place after the scheduler stood still");
}
END_TEST

START_TEST(newcomer_takes_over_after_a_standstill_too)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, 15000);
    fix.now.mono_ms += 15000;
    uint64_t newcomer = fix_register("w1", 9);
    ck_assert_ptr_null(fix_heard(newcomer, MS_MSG_REGISTERED));

    fix_close(conns[1]);

    ck_assert_ptr_nonnull(fix_heard(newcomer, MS_MSG_REGISTERED));
    fix_job_is(1, "FAILED", "rank 1 (node w1 on host h) was lost");
}
END_TEST

START_TEST(connection_that_closes_later_is_a_loss_again)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, 15000);
    fix_pass(15000);
    fix_beat(conns[0]);
    fix_beat(conns[1]);
    fix_pass(FIX_LEASE_MS - 1);
    fix_beat(conns[0]);
    fix_beat(conns[1]);
    fix_pass(1);

    fix_close(conns[1]);

    fix_job_is(1, "FAILED", "was lost: connection closed by peer");
}
END_TEST

START_TEST(ranks_that_gave_up_blame_the_scheduler)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, 45000);
    fix_pass(45000);

    fix_done(conns[1], 1, 1, 1, MS_E_UNREACHABLE, "the scheduler has been gone for 30000 ms");
    fix_pass(MS_BLAME_MS);

    fix_job_is(1, "FAILED", "the scheduler stood still for 45000 ms, and ranks gave up on it: ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_standstill");
    TCase *tc = tcase_create("standstill");
    tcase_add_checked_fixture(tc, NULL, fix_end);
    tcase_add_test(tc, probe_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(tc, wave_after_a_standstill_is_waited_for);
    tcase_add_test(tc, grace_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(tc, complaint_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(tc, doubt_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(tc, stop_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(tc, worker_that_gave_its_connection_up_meanwhile_keeps_its_rank);
    tcase_add_test(tc, each_worker_has_a_whole_lease_to_come_back);
    tcase_add_test(tc, worker_that_does_not_come_back_after_a_standstill_fails_the_job);
    tcase_add_test(tc, worker_that_does_not_come_back_while_ranks_get_ready_puts_the_job_back);
    tcase_add_test(tc, rank_that_was_away_when_its_time_was_over_does_not_keep_its_job_either);
    tcase_add_test(tc, another_process_after_a_standstill_fails_the_job);
    tcase_add_test(tc, newcomer_takes_over_after_a_standstill_too);
    tcase_add_test(tc, connection_that_closes_later_is_a_loss_again);
    tcase_add_test(tc, ranks_that_gave_up_blame_the_scheduler);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
