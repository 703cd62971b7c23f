/* test_sched_apart.c - ranks that train each for itself (parallel.mode stand_alone): how their job
 * ends, whoever of them is lost */
#include "tests/unit/sched_save_case.h"

/* They are in the middle of their training, whatever another one has made. */
START_TEST(no_rank_that_trains_for_itself_is_passed_over_or_done_without)
{
    two_that_train_for_themselves_run();
    cannot_save(0);
    beat_for(4 * MS_CANCEL_GRACE_MS);
    ck_assert_ptr_null(fix_stored(1));
    fix_job_is(1, "RUNNING", "");
    fix_close(conns[1]);
    ck_assert_int_eq(n_events("job.rank_lost"), 1);
    beat_for(4 * MS_CANCEL_GRACE_MS);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
}
END_TEST

START_TEST(nor_is_rank_0)
{
    two_that_train_for_themselves_run();
    ends(1, MS_OK, "");
    beat_for(4 * MS_CANCEL_GRACE_MS);
    ck_assert_ptr_null(fix_stored(1));
    fix_job_is(1, "RUNNING", "");
    ends(0, MS_OK, "");
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
}
END_TEST

/* Rank 0 says its digest all the same, and after a restart nothing else tells. */
START_TEST(nor_after_a_restart)
{
    restarted(2);
    is_back(0);
    is_back(1);
    says_again(0, MS_E_IO);
    beat_for(4 * MS_CANCEL_GRACE_MS);
    fix_job_is(1, "RUNNING", "");
    fix_close(conns[1]);
    beat_for(4 * MS_CANCEL_GRACE_MS);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
}
END_TEST

/* Rank 1 has all that it was to have. */
START_TEST(a_rank_that_had_ended_for_itself_is_not_missed)
{
    two_that_train_for_themselves_run();
    ends(1, MS_OK, "");
    fix_close(conns[1]);
    ck_assert_int_eq(n_events("job.rank_gone"), 1);
    fix_job_is(1, "RUNNING", "lost, and not replaced, for nothing is left for it to make: rank 1");
    ends(0, MS_OK, "");
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
}
END_TEST

/* Its weights are the job's, and lie on its disk. */
START_TEST(nor_is_rank_0_where_it_had_saved)
{
    Ms__RankDone msg = end_of(0, MS_OK, "");
    two_that_train_for_themselves_run();
    msg.weights_sha256 = (char *)"w0";
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);
    fix_close(conns[0]);
    ck_assert_int_eq(n_events("job.rank_gone"), 1);
    ends_there(1, 1, "", ""); /* it says no digest of its own */
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
    ck_assert_str_eq(fix_stored(1)->weights_sha256, "w0");
}
END_TEST

/* Nobody else has them: it has to train anew. */
START_TEST(where_it_could_not_it_is_missed)
{
    two_that_train_for_themselves_run();
    ends(1, MS_OK, "");
    cannot_save(0);
    beat_all(2);
    fix_pass(MS_SAVE_AGAIN_MS); /* all try again, and so it is asked */
    fix_close(conns[0]);
    ck_assert_int_eq(n_events("job.rank_lost"), 1);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 0");
}
END_TEST

enum { STORED_MAX = 128 };

/* Job 1 with what its row had of the ranks, for the next scheduler. */
static struct sched_job_row as_stored(uint8_t bytes[STORED_MAX])
{
    const struct sched_job_row *stored = fix_stored(1);
    struct sched_job_row row = job_row(1, JOB_RUNNING);
    ck_assert_uint_le(stored->results_bytes, STORED_MAX);
    memcpy(bytes, stored->results, stored->results_bytes);
    row.recovery = true;
    row.results = bytes;
    row.results_bytes = stored->results_bytes;
    memcpy(row.weights_sha256, stored->weights_sha256, sizeof(row.weights_sha256));
    memcpy(row.plan_sha256, stored->plan_sha256, sizeof(row.plan_sha256));
    return row;
}

static void two_for_themselves_make(uint64_t total_of_0, uint64_t total_of_1)
{
    const uint64_t totals[2] = {total_of_0, total_of_1};
    placed_for(2, 0);
    for (uint32_t rank = 0; rank < 2; rank++) {
        Ms__RankReady msg = ready_message(1, rank, 0);
        msg.state_digest.len = 0;
        msg.steps_total = totals[rank];
        fix_say(conns[rank], MS_MSG_RANK_READY, &msg.base);
    }
}

static void two_for_themselves_have_made(uint64_t step_of_0, uint64_t step_of_1)
{
    two_for_themselves_make(120, 120);
    beats_at(0, 1, step_of_0);
    beats_at(1, 1, step_of_1);
}

/* What it had nobody else has, and the job's weights are rank 0's. */
START_TEST(nor_is_one_that_is_lost_in_its_last_evaluation)
{
    two_for_themselves_have_made(120, 120);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "all steps are made; 30 s after the loss the job ends without it");
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(0, 1);
    ends_there(0, 1, "the weights of step 120, the last, are saved", "w0");
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
    ck_assert_str_eq(fix_stored(1)->weights_sha256, "w0");
}
END_TEST

START_TEST(rank_0_itself_is_then)
{
    two_for_themselves_have_made(120, 120);
    fix_close(conns[0]);
    beat_for(4 * MS_CANCEL_GRACE_MS);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 0");
}
END_TEST

START_TEST(and_so_is_one_that_has_steps_to_make)
{
    two_for_themselves_have_made(120, 119);
    fix_close(conns[1]);
    beat_for(4 * MS_CANCEL_GRACE_MS);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
}
END_TEST

/* ... nor whoever takes its place, and dies, or cannot serve: what it would make nobody wants. */
START_TEST(nor_is_who_takes_the_place_of_such_a_one)
{
    two_for_themselves_have_made(120, 120);
    if (_i == 2) { /* and saved */
        ends(0, MS_OK, "");
    }
    fix_close(conns[1]);
    beat_for(MS_CANCEL_GRACE_MS / 2);
    conns[1] = fix_register("w9", 9);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
    if (_i == 0) {
        fix_done(conns[1], 1, 2, 1, MS_E_IO, "data set /data/mnist cannot be opened");
    } else {
        fix_close(conns[1]);
    }
    fix_job_is(1, "RECOVERING", "all steps are made; 30 s after the loss the job ends without it");
    beat_for(MS_CANCEL_GRACE_MS / 2);
    is_to_stand(0, 2);
    ends_there(0, 2, "the weights of step 120, the last, are saved", "w0");
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
}
END_TEST

/* Their data may be other data, and more of it or less. */
START_TEST(each_has_its_own_last_step)
{
    static const uint64_t totals[][2] = {{120, 240}, {240, 120}};
    two_for_themselves_make(totals[_i][0], totals[_i][1]);
    beats_at(0, 1, totals[_i][0]);
    beats_at(1, 1, totals[_i][1]);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "all steps are made; 30 s after the loss the job ends without it");
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(0, 1);
    Ms__RankDone msg = end_of(0, MS_OK, "");
    msg.steps = totals[_i][0];
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);
    ended(JOB_SUCCEEDED, totals[_i][0] == 120 ? "finished 120 steps" : "finished 240 steps");
}
END_TEST

/* At a cancel nobody but rank 0 has the job's weights, however much further another one is. */
START_TEST(who_trains_for_himself_saves_nothing_at_a_cancel)
{
    two_for_themselves_have_made(50, 90);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    Ms__RankDone msg = end_of(0, MS_OK, "step 50 is saved: /jobs/1/weights.safetensors");
    msg.stopped = 1;
    msg.steps = 50;
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);
    msg = end_of(1, MS_OK, "");
    msg.stopped = 1;
    msg.steps = 90;
    msg.weights_sha256 = (char *)"";
    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);
    ended(JOB_CANCELLED, "rank 0 (node w0) says: step 50 is saved");
    ck_assert_uint_eq(fix_stored(1)->steps, 50);
}
END_TEST

/* ... and where it had saved them, and is lost, nobody else does over them. */
START_TEST(nor_where_rank_0_had_saved_and_is_gone)
{
    two_for_themselves_have_made(120, 90);
    ends(0, MS_OK, "");
    fix_close(conns[0]);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    const Ms__Stop *stop = fix_heard(conns[1], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->saves, 0);
    Ms__RankDone msg = end_of(1, MS_OK, "");
    msg.stopped = 1;
    msg.steps = 90;
    msg.weights_sha256 = (char *)"";
    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);
    ended(JOB_CANCELLED, "rank 0 (node w0) had made the last step, and saved it");
    ck_assert_str_eq(fix_stored(1)->weights_sha256, "w1");
}
END_TEST

/* ... or that each trains for itself: who had ended is not missed then, either ... */
START_TEST(so_is_that_they_train_for_themselves)
{
    restarted_with(2, 120);
    Ms__RankDone msg = end_of(1, MS_OK, "");
    msg.generation = 11;
    msg.weights_sha256 = (char *)"";
    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);
    fix_close(conns[1]);
    ck_assert_int_eq(n_events("job.rank_gone"), 1);
    fix_job_is(1, "RUNNING", "lost, and not replaced, for nothing is left for it to make: rank 1");
    says_again(0, MS_OK);
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
}
END_TEST

/* ... nor who is lost in its last evaluation. */
START_TEST(and_that_all_of_them_have_made_theirs)
{
    restarted_with(2, 120);
    beats_at(0, 11, 120);
    beats_at(1, 11, 120);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "all steps are made; 30 s after the loss the job ends without it");
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(0, 11);
    says_again(0, MS_OK);
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
}
END_TEST

/* What a scheduler stored the next one knows: how many steps each makes, and who has saved. */
START_TEST(and_how_many_steps_each_makes)
{
    uint8_t bytes[STORED_MAX];
    two_for_themselves_make(120, 240);
    const struct sched_job_row row = as_stored(bytes);
    restarted_from(&row);
    beats_at(0, 11, 120);
    beats_at(1, 11, 240);
    fix_close(conns[1]);
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(0, 11);
}
END_TEST

/* Its process was there before the restart, and is gone. */
START_TEST(and_who_had_ended_before)
{
    uint8_t bytes[STORED_MAX];
    two_for_themselves_have_made(120, 120);
    ends_there(1, 1, "", "");
    fix_pass(MS_EVALS_STORE_MS);
    const struct sched_job_row row = as_stored(bytes);
    loaded_from(&row);
    is_back(0);
    beat_for(60000);
    fix_job_is(1, "RUNNING", "lost, and not replaced, for nothing is left for it to make: rank 1");
    says_again(0, MS_OK);
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
}
END_TEST

/* A process takes the rank of one that had made its steps: that it had the next scheduler knows. */
START_TEST(and_who_had_made_his_before_another_one_took_his_place)
{
    uint8_t bytes[STORED_MAX];
    two_for_themselves_have_made(120, 120);
    fix_close(conns[1]);
    conns[1] = fix_register("w1", 9);
    const struct sched_job_row row = as_stored(bytes);
    restarted_from(&row);
    beats_at(0, 11, 120);
    fix_close(conns[1]);
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(0, 11);
}
END_TEST

/* What was known of one that is lost the row has at once. */
START_TEST(and_who_had_made_his_and_is_lost)
{
    uint8_t bytes[STORED_MAX];
    two_for_themselves_have_made(120, 120);
    fix_close(conns[1]);
    fix_time();
    const struct sched_job_row row = as_stored(bytes);
    loaded_from(&row);
    is_back(0);
    beats_at(0, 11, 120);
    for (int i = 0; i < 40 && fix_heard(conns[0], MS_MSG_STOP) == NULL; i++) {
        fix_beat(conns[0]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    is_to_stand(0, 11);
}
END_TEST

/* ... also where it is rank 0, whose weights are the job's. */
START_TEST(and_what_rank_0_had_saved)
{
    uint8_t bytes[STORED_MAX];
    two_for_themselves_have_made(120, 120);
    ends_there(0, 1, "", "w0");
    fix_pass(MS_EVALS_STORE_MS);
    const struct sched_job_row row = as_stored(bytes);
    loaded_from(&row);
    is_back(1);
    beat_for(60000);
    Ms__RankDone msg = end_of(1, MS_OK, "");
    msg.generation = 11;
    msg.weights_sha256 = (char *)"";
    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
    ck_assert_uint_eq(fix_stored(1)->steps, 120);
    ck_assert_str_eq(fix_stored(1)->weights_sha256, "w0");
    ck_assert_str_eq(fix_stored(1)->plan_sha256, fix_digest(FIX_BITS));
}
END_TEST

/* Rank 0 had saved, and is gone: so may be the others, behind their last step. */
START_TEST(where_rank_0_had_saved_nobody_is_needed)
{
    two_for_themselves_have_made(120, 120);
    ends(0, MS_OK, "");
    fix_close(conns[0]);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "all steps are made; 30 s after the loss the job ends without it");
    beat_for(MS_CANCEL_GRACE_MS);
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
    ck_assert_str_eq(fix_stored(1)->weights_sha256, "w1");
}
END_TEST

/* Its digest is not that of what it trains then. */
START_TEST(a_rank_0_that_trains_anew_has_no_digest_yet)
{
    two_for_themselves_make(120, 240);
    beats_at(0, 1, 120);
    beats_at(1, 1, 50);
    ends(0, MS_OK, "");
    fix_close(conns[0]);
    fix_close(conns[1]);
    conns[0] = fix_register("w8", 8);
    conns[1] = fix_register("w9", 9);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
    ck_assert_str_eq(fix_stored(1)->weights_sha256, "");
}
END_TEST

/* How far the others came says nothing of it, neither for it ... */
START_TEST(what_it_makes_anew_counts_however_far_the_others_are)
{
    two_for_themselves_make(120, 240);
    beats_at(0, 1, 120);
    ends(0, MS_OK, "");
    for (uint64_t generation = 1; generation <= 2 * MS_RESTARTS_MAX; generation++) {
        beats_at(1, generation, 50 + 10 * generation);
        fix_close(conns[1]);
        conns[1] = fix_register("w1", 10 + generation);
        ready_apart(generation + 1, 0, 120, 120);
        ready_apart(generation + 1, 1, 0, 0);
        fix_job_is(1, "RUNNING", "");
        Ms__RankDone msg = end_of(0, MS_OK, "");
        msg.generation = generation + 1;
        fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);
    }
}
END_TEST

/* ... nor against it. */
START_TEST(where_it_dies_at_one_step_again_and_again_the_job_fails_whatever_the_others_make)
{
    two_for_themselves_make(120, 240);
    for (uint64_t generation = 1; generation <= MS_RESTARTS_MAX + 1; generation++) {
        beats_at(0, generation, 20 * generation);
        beats_at(1, generation, 5);
        fix_close(conns[1]);
        if (generation <= MS_RESTARTS_MAX) {
            conns[1] = fix_register("w1", 10 + generation);
            ready_apart(generation + 1, 0, 20 * generation, 20 * generation);
            ready_apart(generation + 1, 1, 0, 0);
        }
    }
    ended(JOB_FAILED, "rank 1 was lost 4 times");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_apart");
    TCase *t = tcase_create("apart");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, no_rank_that_trains_for_itself_is_passed_over_or_done_without);
    tcase_add_test(t, nor_is_rank_0);
    tcase_add_test(t, nor_after_a_restart);
    tcase_add_test(t, a_rank_that_had_ended_for_itself_is_not_missed);
    tcase_add_test(t, nor_is_rank_0_where_it_had_saved);
    tcase_add_test(t, where_it_could_not_it_is_missed);
    tcase_add_test(t, nor_is_one_that_is_lost_in_its_last_evaluation);
    tcase_add_test(t, rank_0_itself_is_then);
    tcase_add_test(t, and_so_is_one_that_has_steps_to_make);
    tcase_add_loop_test(t, nor_is_who_takes_the_place_of_such_a_one, 0, 3);
    tcase_add_loop_test(t, each_has_its_own_last_step, 0, 2);
    tcase_add_test(t, who_trains_for_himself_saves_nothing_at_a_cancel);
    tcase_add_test(t, nor_where_rank_0_had_saved_and_is_gone);
    tcase_add_test(t, so_is_that_they_train_for_themselves);
    tcase_add_test(t, and_that_all_of_them_have_made_theirs);
    tcase_add_test(t, and_how_many_steps_each_makes);
    tcase_add_test(t, and_who_had_ended_before);
    tcase_add_test(t, and_who_had_made_his_before_another_one_took_his_place);
    tcase_add_test(t, and_what_rank_0_had_saved);
    tcase_add_test(t, and_who_had_made_his_and_is_lost);
    tcase_add_test(t, where_rank_0_had_saved_nobody_is_needed);
    tcase_add_test(t, a_rank_0_that_trains_anew_has_no_digest_yet);
    tcase_add_test(t, what_it_makes_anew_counts_however_far_the_others_are);
    tcase_add_test(
        t, where_it_dies_at_one_step_again_and_again_the_job_fails_whatever_the_others_make);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
