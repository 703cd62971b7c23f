/* test_sched_cancel.c - who may cancel, at once and at the end of a step, and what is told of it */
#include "tests/unit/sched_fixture.h"

START_TEST(stranger_may_not_cancel)
{
    fix_standing();
    fix_submit(1, 0);
    uint64_t mallory = fix_open(MS_ROLE_USER, "mallory");

    fix_cancel(mallory, 1, 0);

    fix_refused(mallory, MS_E_REFUSED, "job 1 belongs to user:alice and you are user:mallory");
    fix_job_is(1, "QUEUED", "waits for 1 idle node: 0 registered, 0 idle");
}
END_TEST

START_TEST(admin_may_cancel)
{
    fix_standing();
    fix_submit(1, 0);
    uint64_t root = fix_open(MS_ROLE_ADMIN, "root");

    fix_cancel(root, 1, 0);

    ck_assert_str_eq(((const Ms__Ok *)fix_heard(root, MS_MSG_OK))->text, "cancelled by root");
    fix_job_is(1, "CANCELLED", "cancelled by root");
}
END_TEST

START_TEST(what_was_cancelled_before_is_told_as_that)
{
    fix_standing();
    fix_submit(1, 0);
    uint64_t root = fix_open(MS_ROLE_ADMIN, "root");
    fix_cancel(root, 1, 0);
    fix_pass(600000);

    fix_cancel(root, 1, 0);

    ck_assert_str_eq(((const Ms__Ok *)fix_heard(root, MS_MSG_OK))->text,
                     "CANCELLED already: nothing to cancel (cancelled by root)");
}
END_TEST

START_TEST(cancel_of_nothing_is_refused)
{
    fix_standing();
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");

    fix_cancel(alice, 99, 0);

    fix_refused(alice, MS_E_NOT_FOUND, "job 99 does not exist");
}
END_TEST

START_TEST(cancel_of_an_ended_job_is_refused_and_of_a_cancelled_one_is_not)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_close(conns[0]);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(alice, 1, 0);
    fix_refused(alice, MS_E_REFUSED, "job 1 is FAILED already");

    uint64_t job = fix_submit(3, 0);
    fix_cancel(alice, job, 0);
    fix_cancel(alice, job, 0);

    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_OK));
}
END_TEST

START_TEST(cancel_while_placing_stops_every_rank)
{
    uint64_t conns[2];
    fix_placed(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");

    fix_cancel(alice, 1, 1); /* there is no step to finish yet */

    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_OK));
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_STOP));
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));
    ck_assert_int_eq(fix_stored(1)->state, JOB_CANCELLED);
    fix_done(conns[0], 1, 1, 0, MS_E_CANCELLED, "");
    fix_done(conns[1], 1, 1, 1, MS_E_CANCELLED, "");
    ck_assert_str_eq(fix_show_node("w0")->activity, "idle");
    ck_assert_str_eq(fix_show_node("w1")->activity, "idle");
}
END_TEST

START_TEST(cancel_at_step_is_answered_when_the_step_is_over)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");

    fix_cancel(alice, 1, 1);
    uint32_t frame = fix.frame;
    ck_assert_ptr_null(fix_heard(alice, MS_MSG_OK));
    ck_assert_int_eq(((const Ms__Stop *)fix_heard(conns[0], MS_MSG_STOP))->at_step, 1);
    fix_stopped(conns[0], 1, 1, 0);
    fix_job_is(1, "RUNNING", "cancelled by alice; waits for 1 of 2 ranks to finish the step");
    fix_stopped(conns[1], 1, 1, 1);

    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_OK));
    ck_assert_uint_eq(fix_find(alice, MS_MSG_OK)->id, frame);
    ck_assert_int_eq(fix_stored(1)->state, JOB_CANCELLED);
    ck_assert_int_eq(fix_stored(1)->code, MS_E_CANCELLED);
}
END_TEST

START_TEST(peer_report_of_ranks_that_stop_at_their_step_is_no_complaint)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    Ms__PeerReport msg = MS__PEER_REPORT__INIT;
    msg.job = 1;
    msg.generation = 1;
    msg.peer = 1;
    msg.text = (char *)"closed its connection";

    fix_say(conns[0], MS_MSG_PEER_REPORT, &msg.base);
    fix_pass(2 * MS_BLAME_MS);

    fix_job_is(1, "RUNNING", "waits for 2 of 2 ranks to finish the step");
}
END_TEST

START_TEST(cancel_at_step_is_stored_before_anybody_hears_of_it)
{
    uint64_t conns[2];
    fix_running(conns);

    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);

    const struct sched_job_row *row = fix_stored(1);
    ck_assert_ptr_nonnull(row);
    ck_assert_int_eq(row->state, JOB_RUNNING);
    ck_assert_int_eq(row->cancel_at_step, 1);
    ck_assert_str_eq(row->cancel_text, "cancelled by alice");
}
END_TEST

START_TEST(cancel_at_step_becomes_hard_after_the_grace_time)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(alice, 1, 1);
    for (int i = 0; i < MS_CANCEL_GRACE_MS / 5000 - 1; i++) {
        fix_pass(5000);
        fix_beat(conns[0]);
        fix_beat(conns[1]);
    }
    ck_assert_ptr_null(fix_heard(alice, MS_MSG_OK));

    fix_pass(5000);

    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_OK));
    ck_assert_int_eq(((const Ms__Stop *)fix_heard(conns[0], MS_MSG_STOP))->at_step, 0);
    fix_job_is(1, "CANCELLED", "the step did not end within 30 s");
}
END_TEST

START_TEST(job_that_finished_first_is_not_cancelled)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(alice, 1, 1);

    fix_done(conns[0], 1, 1, 0, 0, "");
    fix_done(conns[1], 1, 1, 1, 0, "");

    const Ms__Error *answer = fix_heard(alice, MS_MSG_ERROR);
    ck_assert_ptr_nonnull(answer);
    ck_assert_ptr_nonnull(strstr(answer->text, "job 1 SUCCEEDED before it could be cancelled"));
}
END_TEST

START_TEST(different_weights_are_not_hidden_by_a_cancel)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(alice, 1, 1); /* too late: both were in their last step */

    fix_done(conns[0], 1, 1, 0, 0, "");
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = 1;
    msg.generation = 1;
    msg.rank = 1;
    msg.weights_sha256 = (char *)"w2";
    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);

    ck_assert_ptr_null(fix_heard(alice, MS_MSG_OK));
    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_ERROR));
    fix_job_is(1, "FAILED", "weights differ: rank 0 (node w0) has w1..., rank 1 (node w1) has w2");
}
END_TEST

START_TEST(loss_during_a_cancel_ends_in_cancelled)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(alice, 1, 1);

    fix_close(conns[1]);

    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_OK));
    fix_job_is(1, "CANCELLED", "cancelled by alice; meanwhile rank 1 (node w1 on host h) was lost");
}
END_TEST

START_TEST(cancel_overtakes_a_complaint_that_waits)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_done(conns[0], 1, 1, 0, MS_E_CLOSED, "rank 1 is gone");
    uint64_t client = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(client, 1, 1);

    fix_pass(MS_BLAME_MS);

    ck_assert_ptr_nonnull(fix_heard(client, MS_MSG_OK));
    fix_job_is(1, "CANCELLED", "cancelled by alice; meanwhile rank 0 (node w0 on host h) failed");
}
END_TEST

/* ... and ranks that did as they were asked to end it with what they saved. */
START_TEST(complaint_before_a_cancel_takes_nothing_from_what_is_saved)
{
    uint64_t conns[2];
    fix_running(conns);
    Ms__PeerReport report = MS__PEER_REPORT__INIT;
    report.job = report.generation = 1;
    report.peer = 1;
    report.text = (char *)"no bytes for 5 s";
    fix_say(conns[0], MS_MSG_PEER_REPORT, &report.base);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    fix_stopped(conns[1], 1, 1, 1);

    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = msg.generation = 1;
    msg.stopped = 1;
    msg.steps = 5;
    msg.text = (char *)"step 5 is saved: x-5.json";
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);

    fix_job_is(1, "CANCELLED", "cancelled by alice; rank 0 (node w0) says: step 5 is saved");
}
END_TEST

START_TEST(hard_cancel_overtakes_one_at_step)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    uint64_t root = fix_open(MS_ROLE_ADMIN, "root");
    fix_cancel(alice, 1, 1);

    fix_cancel(root, 1, 0);

    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_OK));
    ck_assert_ptr_nonnull(fix_heard(root, MS_MSG_OK));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sched_cancel");
    TCase *t = tcase_create("cancel");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, stranger_may_not_cancel);
    tcase_add_test(t, admin_may_cancel);
    tcase_add_test(t, what_was_cancelled_before_is_told_as_that);
    tcase_add_test(t, cancel_of_nothing_is_refused);
    tcase_add_test(t, cancel_of_an_ended_job_is_refused_and_of_a_cancelled_one_is_not);
    tcase_add_test(t, cancel_while_placing_stops_every_rank);
    tcase_add_test(t, cancel_at_step_is_answered_when_the_step_is_over);
    tcase_add_test(t, peer_report_of_ranks_that_stop_at_their_step_is_no_complaint);
    tcase_add_test(t, cancel_at_step_is_stored_before_anybody_hears_of_it);
    tcase_add_test(t, cancel_at_step_becomes_hard_after_the_grace_time);
    tcase_add_test(t, job_that_finished_first_is_not_cancelled);
    tcase_add_test(t, different_weights_are_not_hidden_by_a_cancel);
    tcase_add_test(t, loss_during_a_cancel_ends_in_cancelled);
    tcase_add_test(t, complaint_before_a_cancel_takes_nothing_from_what_is_saved);
    tcase_add_test(t, hard_cancel_overtakes_one_at_step);
    tcase_add_test(t, cancel_overtakes_a_complaint_that_waits);
    suite_add_tcase(s, t);
    return test_run(s);
}
