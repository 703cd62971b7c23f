/* test_sched_job.c - a job's life and its ends */
#include "tests/unit/sched_fixture.h"

START_TEST(job_starts_when_every_rank_is_ready)
{
    uint64_t conns[2];
    fix_placed(conns);

    fix_ready(conns[1], 1, 1, 1);
    ck_assert_uint_eq(fix_count(MS_MSG_START), 0);
    fix_job_is(1, "PLACING", "waits for rank 0 (node w0 on host h) to choose the plan");
    fix_ready(conns[0], 1, 1, 0);

    ck_assert_uint_eq(fix_count(MS_MSG_START), 2);
    const Ms__Start *start = fix_heard(conns[1], MS_MSG_START);
    ck_assert_uint_eq(start->job, 1);
    ck_assert_uint_eq(start->generation, 1);
    ck_assert_int_eq(fix_stored(1)->state, JOB_RUNNING);
    ck_assert_str_eq(fix_stored(1)->plan_sha256, fix_digest(FIX_BITS));
    ck_assert_str_eq(fix_effect(SCHED_DO_PUT_MEMBER)->member->log_path, "/run/worker_1.log");
    fix_job_is(1, "RUNNING", "");
}
END_TEST

START_TEST(ready_of_another_generation_or_rank_is_ignored)
{
    uint64_t conns[2];
    fix_placed(conns);
    fix_ready(conns[0], 1, 1, 0);

    fix_ready(conns[1], 1, 2, 1);
    fix_ready(conns[1], 1, 1, 0);
    fix_ready(conns[1], 2, 1, 1);
    fix_ready(conns[0], 1, 1, 0);

    fix_job_is(1, "PLACING", "waits for rank 1");
}
END_TEST

/* Two ranks with plans of their own, of nodes that have these versions of oneDNN. */
static void disagree(const char *first, const char *second)
{
    const char *ids[] = {"w0", "w1"};
    const char *versions[] = {first, second};
    uint64_t conns[2];
    fix_standing();
    for (uint64_t i = 0; i < 2; i++) {
        conns[i] = fix_open(MS_ROLE_WORKER, "host-certificate");
        Ms__Register node = fix_node(ids[i], i + 1);
        node.onednn = (char *)(uintptr_t)versions[i];
        fix_say(conns[i], MS_MSG_REGISTER, &node.base);
    }
    ck_assert_uint_eq(fix_submit(2, 0), 1);
    fix_ready(conns[0], 1, 1, 0);
    Ms__RankReady msg = MS__RANK_READY__INIT;
    msg.job = 1;
    msg.generation = 1;
    msg.rank = 1;
    msg.plan_sha256 = (char *)"other";
    fix_say(conns[1], MS_MSG_RANK_READY, &msg.base);
}

START_TEST(ranks_with_different_plans_do_not_start)
{
    disagree("2.6.3", "2.6.3");

    ck_assert_uint_eq(fix_count(MS_MSG_START), 0);
    fix_job_is(1, "FAILED", "the ranks' plans differ: rank 0 (node w0) has ");
    fix_job_is(1, "FAILED",
               "both have oneDNN 2.6.3, which chose otherwise; install the same build");
}
END_TEST

START_TEST(ranks_that_plan_with_another_onednn_are_told_so)
{
    disagree("2.6.3", "3.1.1");
    fix_job_is(1, "FAILED", "their oneDNN is 2.6.3 and 3.1.1; install one version on both nodes");
    fix_end();
    disagree("", "3.1.1");
    fix_job_is(1, "FAILED", "their oneDNN is not known and 3.1.1");
}
END_TEST

START_TEST(job_succeeds_when_all_ranks_are_done)
{
    uint64_t conns[2];
    fix_running(conns);

    fix_pass(7);
    fix_done(conns[0], 1, 1, 0, 0, "");
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    fix_done(conns[1], 1, 1, 1, 0, "");

    const Ms__Stop *stop = fix_heard(conns[0], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->code, 0);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));
    const struct sched_job_row *row = fix_stored(1);
    ck_assert_int_eq(row->state, JOB_SUCCEEDED);
    ck_assert_uint_eq(row->steps, 120);
    ck_assert_double_eq(row->seconds, 1.5);
    ck_assert_int_eq(row->started_ms, fix.now.wall_ms - 7);
    ck_assert_int_eq(row->ended_ms, fix.now.wall_ms);
    ck_assert_str_eq(row->weights_sha256, "w1");
    ck_assert_int_eq(row->code, 0);
    ck_assert_str_eq(fix_show_node("w0")->activity, "idle");
}
END_TEST

START_TEST(different_weights_fail_the_job_and_are_named)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_done(conns[0], 1, 1, 0, 0, "");
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = 1;
    msg.generation = 1;
    msg.rank = 1;
    msg.weights_sha256 = (char *)"w2";

    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);

    fix_job_is(1, "FAILED", "weights differ: rank 0 (node w0) has w1..., rank 1 (node w1) has w2");
}
END_TEST

START_TEST(failed_rank_fails_the_job_and_names_its_log)
{
    uint64_t conns[2];
    fix_running(conns);

    fix_done(conns[1], 1, 1, 1, MS_E_INVALID, "label 11 of sample 3 is out of range");

    const Ms__Stop *stop = fix_heard(conns[0], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->code, MS_E_INVALID);
    ck_assert_ptr_nonnull(strstr(stop->text, "rank 1"));
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP)); /* it waits for the last word too */
    ck_assert_int_eq(fix_logged("job.failed job=1"), 1);
    fix_job_is(1, "FAILED",
               "rank 1 (node w1 on host h) failed: label 11 of sample 3 is out of range; its log: "
               "/run/worker_1.log");
    ck_assert_str_eq(fix_show_node("w1")->activity, "idle");
    ck_assert_str_eq(fix_show_node("w0")->activity, "stopping job 1 rank 0 since 0 s");
}
END_TEST

START_TEST(lost_rank_fails_the_job_at_once)
{
    uint64_t conns[2];
    fix_running(conns);

    fix_close(conns[1]);

    const Ms__Stop *stop = fix_heard(conns[0], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->code, MS_E_CLOSED);
    fix_job_is(1, "FAILED",
               "rank 1 (node w1 on host h) was lost: connection closed by peer (killed? "
               "journalctl -u 'msworker@*' on h says by what); its log: "
               "/run/worker_1.log");
}
END_TEST

START_TEST(log_of_a_rank_is_stored_at_start_and_end)
{
    uint64_t conns[2];
    fix_running(conns);

    fix_placed(conns);
    fix_ready(conns[1], 1, 1, 1);
    ck_assert_ptr_null(fix_effect(SCHED_DO_PUT_MEMBER));
    fix_done(conns[0], 1, 1, 0, MS_E_INVALID, "no data");
    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_PUT_MEMBER));
    ck_assert_uint_eq(fix_effect(SCHED_DO_PUT_MEMBER)->member->rank, 1);
    ck_assert_str_eq(fix_effect(SCHED_DO_PUT_MEMBER)->member->log_path, "/run/worker_1.log");
}
END_TEST

START_TEST(rank_lost_while_placing_puts_the_job_back_into_the_queue)
{
    uint64_t conns[2];
    fix_placed(conns);

    fix_close(conns[1]);

    const struct sched_job_row *row = fix_stored(1);
    ck_assert_ptr_nonnull(row);
    ck_assert_int_eq(row->state, JOB_QUEUED);
    ck_assert_uint_eq(row->generation, 0);
    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_DROP_MEMBERS));
    const Ms__Stop *stop = fix_heard(conns[0], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->code, MS_E_ABORTED);
    ck_assert_ptr_nonnull(strstr(stop->text, "job 1 goes back into the queue: rank 1"));
    fix_job_is(1, "QUEUED", "it was placed 1 time before: rank 1 (node w1 on host h) was lost");
}
END_TEST

START_TEST(job_that_went_back_starts_on_other_nodes)
{
    uint64_t conns[2];
    fix_placed(conns);
    fix_close(conns[1]);
    fix_done(conns[0], 1, 1, 0, MS_E_ABORTED, "stopped");

    conns[1] = fix_register("w2", 3);
    fix_pass(MS_HOST_PAUSE_MS);

    const Ms__Assign *assign = fix_heard(conns[0], MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(assign);
    ck_assert_uint_eq(assign->job, 1);
    ck_assert_uint_eq(assign->generation, 2);
    fix_ready(conns[0], 1, 2, 0);
    fix_ready(conns[1], 1, 2, 1);
    fix_job_is(1, "RUNNING", "");
    fix_close(conns[1]);
    fix_job_is(1, "FAILED", "was lost");
    ck_assert_ptr_null(strstr(fix_show(1)->reason, "never started"));
}
END_TEST

enum { READY_MS = 60000 };

/* Two nodes and a job of both, which has READY_MS to get ready. */
static void placed_with_a_bound(uint64_t conns[2])
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.topo_timeout_ms = READY_MS;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    conns[0] = fix_register("w0", 1);
    conns[1] = fix_register("w1", 2);
    fix_submit(2, 0);
}

static void both_beat_for(const uint64_t conns[2], int64_t ms)
{
    for (; ms > 0; ms -= FIX_LEASE_MS / 2) {
        fix_pass(ms < FIX_LEASE_MS / 2 ? ms : FIX_LEASE_MS / 2);
        fix_beat(conns[0]);
        fix_beat(conns[1]);
    }
}

START_TEST(rank_that_never_gets_ready_does_not_keep_its_job)
{
    uint64_t conns[2];
    placed_with_a_bound(conns);
    fix_ready(conns[0], 1, 1, 0);
    both_beat_for(conns, READY_MS - 1);
    fix_job_is(1, "PLACING", "waits for rank 1 to load data and connect");
    fix_pass(1);

    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_STOP));
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));
    fix_job_is(1, "QUEUED",
               "rank 1 (node w1 on host h) did not get ready within 60 s: 1 of 2 ranks are ready, "
               "and process 1002 there lives: look at journalctl -u 'msworker@*' on that host, or "
               "raise topo_timeout_s");

    fix_stopped(conns[0], 1, 1, 0);
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_ASSIGN)); /* it has the rank as yet */
    fix_stopped(conns[1], 1, 1, 1);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
    fix_ready(conns[0], 1, 2, 0);
    fix_ready(conns[1], 1, 2, 1);
    both_beat_for(conns, 2 * READY_MS); /* it runs: nobody looks any more */
    fix_job_is(1, "RUNNING", "");
}
END_TEST

START_TEST(job_whose_rank_never_gets_ready_fails_the_third_time)
{
    uint64_t conns[2];
    placed_with_a_bound(conns);
    for (uint64_t generation = 1; generation < MS_PLACE_TRIES_MAX; generation++) {
        both_beat_for(conns, READY_MS);
        fix_job_is(1, "QUEUED", "rank 0 (node w0 on host h) did not choose the plan within 60 s");
        fix_stopped(conns[0], 1, generation, 0);
        fix_stopped(conns[1], 1, generation, 1);
    }
    both_beat_for(conns, READY_MS);

    fix_job_is(1, "FAILED", "it was placed 3 times and never started");
    ck_assert_int_eq(fix_show(1)->code, MS_E_TIMEOUT);
}
END_TEST

/* A job that kills its nodes while it loads must not kill the whole cluster. */
START_TEST(job_that_loses_nodes_three_times_before_it_starts_fails)
{
    fix_standing();
    fix_submit(1, 0);

    fix_close(fix_register("w0", 1));
    fix_job_is(1, "QUEUED", "it was placed 1 time before");
    fix_pass(MS_HOST_PAUSE_MS);
    fix_close(fix_register("w1", 2));
    fix_job_is(1, "QUEUED", "it was placed 2 times before");
    fix_pass(2 * MS_HOST_PAUSE_MS);
    fix_close(fix_register("w2", 3));

    fix_job_is(1, "FAILED", "it was placed 3 times and never started");
}
END_TEST

START_TEST(complaint_while_placing_puts_the_job_back_too)
{
    uint64_t conns[2];
    fix_placed(conns);
    fix_done(conns[0], 1, 1, 0, MS_E_UNREACHABLE, "rank 1 does not answer");

    fix_pass(MS_BLAME_MS);

    fix_job_is(1, "QUEUED", "rank 1 does not answer");
    fix_close(conns[1]);
    ck_assert_str_eq(fix_show_node("w0")->activity, "idle");
}
END_TEST

START_TEST(rank_that_fails_while_placing_fails_the_job)
{
    uint64_t conns[2];
    fix_placed(conns);

    fix_done(conns[0], 1, 1, 0, MS_E_NOT_FOUND, "no data set");

    fix_job_is(1, "FAILED", "no data set");
}
END_TEST

START_TEST(ranks_of_an_ended_job_are_over)
{
    uint64_t conns[2];
    fix_running(conns);

    fix_close(conns[1]);

    const Ms__JobInfo *info = fix_show(1);
    ck_assert_str_eq(info->state, "FAILED");
    ck_assert_str_eq(info->ranks[0]->state, "stopped");
    ck_assert_str_eq(info->ranks[1]->state, "lost");
}
END_TEST

START_TEST(complaint_waits_for_the_one_it_is_about)
{
    uint64_t conns[2];
    fix_running(conns);

    fix_done(conns[0], 1, 1, 0, MS_E_CLOSED, "rank 1 closed its connection");
    fix_job_is(1, "RUNNING", "waits 300 ms for a first-hand report");
    fix_done(conns[1], 1, 1, 1, MS_E_INVALID, "no such file");

    fix_job_is(1, "FAILED", "rank 1 (node w1 on host h) failed: no such file");
}
END_TEST

START_TEST(complaint_alone_fails_the_job_after_a_while)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_done(conns[0], 1, 1, 0, MS_E_TIMEOUT, "rank 1 sent nothing for 5 s");

    fix_pass(MS_BLAME_MS);

    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));
    fix_job_is(1, "FAILED", "rank 0 (node w0 on host h) failed: rank 1 sent nothing for 5 s");
}
END_TEST

START_TEST(complaints_of_all_end_the_job_at_once)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_done(conns[0], 1, 1, 0, MS_E_CLOSED, "rank 1 is gone");

    fix_done(conns[1], 1, 1, 1, MS_E_CLOSED, "rank 0 is gone");

    fix_job_is(1, "FAILED", "rank 0 (node w0 on host h) failed: rank 1 is gone");
}
END_TEST

START_TEST(peer_report_blames_the_peer)
{
    uint64_t conns[2];
    fix_running(conns);
    Ms__PeerReport msg = MS__PEER_REPORT__INIT;
    msg.job = 1;
    msg.generation = 1;
    msg.peer = 1;
    msg.text = (char *)"no bytes for 5 s";

    fix_say(conns[0], MS_MSG_PEER_REPORT, &msg.base);
    fix_pass(MS_BLAME_MS);

    fix_job_is(1, "FAILED",
               "rank 1 (node w1 on host h) was lost: rank 0 (node w0) reports: no "
               "bytes for 5 s; its log: /run/worker_1.log");
}
END_TEST

START_TEST(peer_report_about_nobody_is_refused)
{
    uint64_t conns[2];
    fix_running(conns);
    Ms__PeerReport msg = MS__PEER_REPORT__INIT;
    msg.job = 1;
    msg.generation = 1;
    msg.peer = 2;

    fix_say(conns[0], MS_MSG_PEER_REPORT, &msg.base);

    fix_refused(conns[0], MS_E_INVALID, "rank 2 of job 1, which has ranks 0 to 1");
}
END_TEST

START_TEST(done_before_start_fails_the_job)
{
    uint64_t conns[2];
    fix_placed(conns);

    fix_done(conns[0], 1, 1, 0, 0, "");

    fix_job_is(1, "FAILED", "never was started");
}
END_TEST

START_TEST(stopped_without_being_asked_fails_the_job)
{
    uint64_t conns[2];
    fix_running(conns);

    fix_stopped(conns[0], 1, 1, 0);

    fix_job_is(1, "FAILED", "nobody had asked it to");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sched_job");
    TCase *t = tcase_create("life");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, job_starts_when_every_rank_is_ready);
    tcase_add_test(t, ready_of_another_generation_or_rank_is_ignored);
    tcase_add_test(t, ranks_with_different_plans_do_not_start);
    tcase_add_test(t, ranks_that_plan_with_another_onednn_are_told_so);
    tcase_add_test(t, job_succeeds_when_all_ranks_are_done);
    tcase_add_test(t, different_weights_fail_the_job_and_are_named);
    tcase_add_test(t, failed_rank_fails_the_job_and_names_its_log);
    tcase_add_test(t, lost_rank_fails_the_job_at_once);
    tcase_add_test(t, log_of_a_rank_is_stored_at_start_and_end);
    tcase_add_test(t, rank_lost_while_placing_puts_the_job_back_into_the_queue);
    tcase_add_test(t, job_that_went_back_starts_on_other_nodes);
    tcase_add_test(t, rank_that_never_gets_ready_does_not_keep_its_job);
    tcase_add_test(t, job_whose_rank_never_gets_ready_fails_the_third_time);
    tcase_add_test(t, job_that_loses_nodes_three_times_before_it_starts_fails);
    tcase_add_test(t, complaint_while_placing_puts_the_job_back_too);
    tcase_add_test(t, rank_that_fails_while_placing_fails_the_job);
    tcase_add_test(t, ranks_of_an_ended_job_are_over);
    tcase_add_test(t, complaint_waits_for_the_one_it_is_about);
    tcase_add_test(t, complaint_alone_fails_the_job_after_a_while);
    tcase_add_test(t, complaints_of_all_end_the_job_at_once);
    tcase_add_test(t, peer_report_blames_the_peer);
    tcase_add_test(t, peer_report_about_nobody_is_refused);
    tcase_add_test(t, done_before_start_fails_the_job);
    tcase_add_test(t, stopped_without_being_asked_fails_the_job);
    suite_add_tcase(s, t);
    return test_run(s);
}
