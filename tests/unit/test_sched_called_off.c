/* test_sched_called_off.c - all steps are made, and no round brings back who is lost: the job ends
 * with those that hold the weights */
#include "tests/unit/sched_save_case.h"

/* Nobody takes rank 0, which had saved nothing: the others end without it. */
START_TEST(where_no_node_comes_for_who_was_lost_before_it_saved_the_others_do)
{
    all_others_end();
    fix_close(conns[0]);
    ck_assert_int_eq(n_events("job.rank_lost"), 1);
    fix_job_is(1, "RECOVERING",
               "all steps are made; 30 s after the loss the job ends without it. It waits for a "
               "node to take rank 0");
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_save(1);
    fix_job_is(1, "RECOVERING", "waits for rank 1 (node w1 on host h) to save the weights: rank 0");
    fix_close(conns[2]);
    ck_assert_int_eq(n_events("job.rank_gone"), 1);
    ends(1, MS_OK, "saved by 1");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps; rank 1 (node w1) says: saved by 1");
}
END_TEST

/* The time for getting ready may be shorter than that. */
START_TEST(so_do_they_where_that_would_fail_the_job_first)
{
    running_for(2, 5000);
    ends(0, MS_OK, "");
    fix_close(conns[1]);
    beat_for(5000);
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
}
END_TEST

/* Rank 0 hangs at its disk meanwhile: both have had their time. Rank 1 had ended, and is gone. */
START_TEST(where_rank_0_hangs_and_no_node_comes_for_another_one_the_last_one_saves)
{
    all_others_end();
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_save(2);
    ends(2, MS_OK, "saved by 2");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps; rank 2 (node w2) says: saved by 2");
}
END_TEST

/* Its row says that it recovers: so the next scheduler finds it, and its ranks say again how they
 * ended. */
START_TEST(after_a_restart_in_the_middle_of_that_they_end_without_as_well)
{
    restarted_as(JOB_RECOVERING, RANKS);
    is_back(1);
    is_back(2);
    says_again(1, MS_OK);
    says_again(2, MS_OK);
    for (int i = 0; i < 60 && fix_heard(conns[1], MS_MSG_STOP) == NULL; i++) {
        fix_beat(conns[1]);
        fix_beat(conns[2]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    is_to_save(1);
}
END_TEST

START_TEST(where_rank_0_had_saved_the_job_has_succeeded)
{
    running(RANKS);
    ends(0, MS_OK, "");
    ends(1, MS_OK, "");
    fix_close(conns[2]);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 2");
    beat_for(MS_CANCEL_GRACE_MS);
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps");
}
END_TEST

/* Its ranks had said that it has more steps: the last word counts. */
START_TEST(a_job_that_ended_early_ends_without_who_is_lost_too)
{
    running(RANKS);
    for (uint32_t rank = 0; rank < 2; rank++) {
        Ms__RankDone msg = end_of(rank, MS_OK, rank == 0 ? "it ended early: so it is" : "");
        msg.steps = 30;
        fix_say(conns[rank], MS_MSG_RANK_DONE, &msg.base);
    }
    fix_close(conns[2]);
    fix_job_is(1, "RECOVERING", "all steps are made; 30 s after the loss the job ends without it");
    beat_for(MS_CANCEL_GRACE_MS);
    ended(JOB_SUCCEEDED, "all 3 ranks finished 30 steps; rank 0 (node w0) says: it ended early");
}
END_TEST

START_TEST(who_ends_later_than_that_ends_the_job)
{
    running(2);
    fix_close(conns[1]);
    for (int at = 0; at < MS_CANCEL_GRACE_MS + FIX_LEASE_MS; at += FIX_LEASE_MS / 2) {
        fix_beat(conns[0]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
    ends(0, MS_OK, "");
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
}
END_TEST

/* It was away, and says once more how it ended. */
START_TEST(who_comes_back_meanwhile_and_has_ended_counts)
{
    running(RANKS);
    ends(0, MS_OK, "");
    ends(1, MS_OK, "");
    fix_close(conns[2]);
    fix_close(conns[1]);
    conns[1] = comes_back(1);
    ends(1, MS_OK, "");
    beat_for(MS_CANCEL_GRACE_MS);
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps");
}
END_TEST

/* Rank 0 is back, and does not end, while rank 1 is at it. */
START_TEST(who_comes_back_after_that_and_hangs_is_not_waited_for)
{
    running(2);
    ends(1, MS_OK, "");
    fix_close(conns[0]);
    for (int at = 0; at < MS_CANCEL_GRACE_MS; at += FIX_LEASE_MS / 2) {
        fix_beat(conns[1]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    is_to_save(1);
    conns[0] = comes_back(0);
    ends(1, MS_OK, "saved by 1");
    for (int i = 0; i < 20 && fix_stored(1) == NULL; i++) {
        beat_all(2);
        fix_pass(FIX_LEASE_MS / 2);
    }
    ended(JOB_SUCCEEDED, "rank 1 (node w1) says: saved by 1");
}
END_TEST

START_TEST(a_node_that_comes_in_time_has_the_rank)
{
    all_others_end();
    fix_close(conns[0]);
    beat_for(MS_CANCEL_GRACE_MS - FIX_LEASE_MS);
    conns[0] = fix_register("w9", 9);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), RANKS);
}
END_TEST

/* It says in the middle of it how it ended, and that counts. */
START_TEST(who_ends_while_a_node_is_looked_for_can_save)
{
    running(2);
    fix_close(conns[1]);
    cannot_save(0);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
    beat_for(MS_CANCEL_GRACE_MS);
    fix_job_is(1, "RECOVERING", "no rank can save the weights");
    time_is_up();
    is_to_save(0);
    ends(0, MS_OK, "saved by 0");
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps; rank 0 (node w0) says: saved by 0");
}
END_TEST

START_TEST(a_cancel_then_has_all_try_once_more)
{
    all_others_end();
    fix_close(conns[0]);
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_save(1);
    cannot_save(1);
    cannot_save(2);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    is_to_save(1);
    ends(1, MS_OK, "saved by 1");
    ended(JOB_CANCELLED, "cancelled by alice; rank 1 (node w1) says: saved by 1");
}
END_TEST

/* ---- a round had begun already ----------------------------------------------------------------
 */

/* All had made the last step, rank 2 is lost, and a node has taken it: rank 2 of generation 2. */
static void rank_2_is_taken(void)
{
    running(RANKS);
    ends(0, MS_OK, "");
    ends(1, MS_OK, "");
    fix_close(conns[2]);
    conns[2] = fix_register("w9", 9);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), RANKS);
    fix_job_is(1, "RECOVERING", "generation 2: waits for");
}

START_TEST(who_was_to_take_the_rank_is_lost_before_all_are_ready)
{
    rank_2_is_taken();
    fix_close(conns[2]);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 2");
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(0, 2);
    is_to_stand(1, 2);
    ends_there(1, 2, "", "");
    ends_there(0, 2, "the weights of step 120, the last, are saved", "w1");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps");
    ck_assert_str_eq(fix_stored(1)->weights_sha256, "w1");
}
END_TEST

START_TEST(so_is_rank_0_and_another_one_that_stands_there_saves)
{
    rank_2_is_taken();
    fix_close(conns[2]);
    fix_close(conns[0]);
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(1, 2);
    ends_there(1, 2, "", "");
    is_to_save(1);
    ends_there(1, 2, "saved by 1", "w1");
    ended(JOB_SUCCEEDED, "rank 1 (node w1) says: saved by 1; rank 0 (node w0) says: nothing, for");
    ck_assert_str_eq(fix_stored(1)->weights_sha256, "w1");
}
END_TEST

static void all_are_ready_for(uint64_t generation, uint64_t step, uint64_t steps_total)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        Ms__RankReady msg = ready_message(generation, rank, step);
        msg.steps_total = steps_total;
        fix_say(conns[rank], MS_MSG_RANK_READY, &msg.base);
    }
    fix_job_is(1, "RUNNING", "");
}

/* They evaluate: the step is made, and no rank is done. */
static void all_have_made_step(uint64_t step)
{
    placed_for(RANKS, 0);
    all_are_ready_for(1, 0, 120);
    progress(1, step);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        beats_at(rank, 1, step);
    }
}

/* Of who holds less nobody needs anything; that is known once it says so. */
START_TEST(who_holds_less_than_the_last_step_is_let_go)
{
    rank_2_is_taken();
    fix_close(conns[2]);
    fix_close(conns[0]);
    conns[0] = fix_register("w8", 8); /* and rank 2 is still nobody's */
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(1, 2);
    Ms__RankDone msg = end_of(1, MS_OK, "");
    msg.generation = 2;
    msg.stopped = 1;
    msg.steps = 119;
    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);
    ck_assert_int_eq(n_events("job.rank_lost"), 1);
    fix_job_is(1, "RECOVERING", "waits for a node to take ranks 0 1 2");
}
END_TEST

/* They were cut off, and trained on beside the one that is lost to us alone: the word of one of
 * them comes first, and the job ends well. */
START_TEST(who_is_let_go_then_has_not_failed)
{
    all_have_made_step(119);
    fix_close(conns[0]);
    for (uint32_t rank = 1; rank < RANKS; rank++) {
        fix_close(conns[rank]);
        conns[rank] = comes_back_at(rank, 119);
    }
    beat_for(MS_CANCEL_GRACE_MS);
    ck_assert_ptr_null(fix_heard(conns[2], MS_MSG_STOP));
    ends(1, MS_OK, "");

    const Ms__Stop *stop = fix_heard(conns[2], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert(!stop->at_step);
    ck_assert_int_eq(stop->code, MS_OK);
    ck_assert_str_eq(stop->text, "all steps of job 1 are made, and it ends without this rank");
}
END_TEST

/* It hears of no newer generation, and stands in the one that it knows. */
START_TEST(who_comes_back_to_that_stands_there_too)
{
    rank_2_is_taken();
    fix_close(conns[2]);
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(1, 2);
    beat_all(2);
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_close(conns[1]);
    conns[1] = comes_back(1); /* its claim is of generation 1 */
    is_to_stand(1, 1);
    ends_there(0, 2, "the weights of step 120, the last, are saved", "w1");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps"); /* whatever rank 1 does */
}
END_TEST

/* What it was told may not have reached it. */
START_TEST(who_comes_back_to_its_rank_then_is_told_to_stand)
{
    rank_2_is_taken();
    fix_close(conns[2]);
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(1, 2);
    fix_close(conns[1]);
    ck_assert_int_eq(n_events("job.rank_gone"), 1);
    conns[1] = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w1", 2);
    msg.job = 1;
    msg.generation = 2;
    msg.rank = 1;
    msg.running = 1;
    msg.step = 120;
    fix_say(conns[1], MS_MSG_REGISTER, &msg.base);
    is_to_stand(1, 2);
}
END_TEST

/* Rank 0 was away, hangs at its disk, and gets never ready. */
START_TEST(who_hangs_in_a_round_is_not_waited_for)
{
    running(RANKS);
    ends(1, MS_OK, "");
    ends(2, MS_OK, "");
    fix_close(conns[0]);
    conns[0] = comes_back(0);
    fix_job_is(1, "RECOVERING", "generation 2: waits for");
    ready_at(2, 1, 120);
    ready_at(2, 2, 120);
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(1, 2);
    ends_there(1, 2, "", "");
    ends_there(2, 2, "", "");
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_save(1);
    ends_there(1, 2, "saved by 1", "w1");
    ended(JOB_SUCCEEDED, "rank 1 (node w1) says: saved by 1; rank 0 (node w0) says: nothing in");
}
END_TEST

/* Nor is it silent while the scheduler stands still. */
START_TEST(who_stood_still_in_a_round_with_us_has_its_time_behind_it)
{
    running(RANKS);
    ends(1, MS_OK, "");
    ends(2, MS_OK, "");
    fix_close(conns[0]);
    conns[0] = comes_back(0);
    ready_at(2, 1, 120);
    ready_at(2, 2, 120);
    fix.now.mono_ms += 2 * MS_CANCEL_GRACE_MS;
    sched_stood_still(fix.s, 2 * MS_CANCEL_GRACE_MS);
    fix_time();

    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    ready_at(2, 0, 120);
    fix_job_is(1, "RUNNING", "");
}
END_TEST

/* That no step is left is known only once they are ready: the beat that tells it came too late. */
START_TEST(nor_where_the_last_step_is_known_only_in_it)
{
    all_have_made_step(119);
    conns[RANKS] = fix_register("w9", 9);
    fix_close(conns[2]);
    conns[2] = conns[RANKS];
    fix_job_is(1, "RECOVERING", "generation 2: waits for");
    beat_for(MS_CANCEL_GRACE_MS - FIX_LEASE_MS);
    ready_at(2, 1, 120);
    ready_at(2, 2, 120);
    beats_at(0, 2, 120);
    beat_for(MS_CANCEL_GRACE_MS - FIX_LEASE_MS); /* from when the last one got ready */
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));
    beat_for(FIX_LEASE_MS);
    is_to_stand(1, 2);
    is_to_stand(2, 2);
}
END_TEST

/* One that has to load and plan may take longer than that; not longer than any may. */
START_TEST(a_newcomer_has_its_time_to_get_ready)
{
    running_for(2, 100000);
    ends(0, MS_OK, "");
    fix_close(conns[1]);
    conns[1] = fix_register("w9", 9);
    beat_for(3 * MS_CANCEL_GRACE_MS);
    fix_job_is(1, "RECOVERING", "generation 2: waits for");
    for (int i = 0; i < 40 && fix_heard(conns[0], MS_MSG_STOP) == NULL; i++) {
        beat_all(2);
        fix_pass(FIX_LEASE_MS / 2);
    }
    is_to_stand(0, 2);
    ends_there(0, 2, "the weights of step 120, the last, are saved", "w1");
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
}
END_TEST

/* Its weights are on its disk, if it says so: else another one has to save them. */
START_TEST(rank_0_may_be_lost_where_it_stands)
{
    rank_2_is_taken();
    fix_close(conns[2]);
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(0, 2);
    ends_there(1, 2, "", "");
    fix_close(conns[0]);
    ck_assert_int_eq(n_events("job.rank_gone"), 1);
    ck_assert_int_eq(n_events("job.not_saved"), 1);
    is_to_save(1);
    ends_there(1, 2, "saved by 1", "w1");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps; rank 1 (node w1) says: saved by 1");
}
END_TEST

/* One that has taken the state in that round holds what the others do. */
START_TEST(a_newcomer_that_is_ready_stands_there_like_the_others)
{
    rank_2_is_taken();
    ready_at(2, 2, 120);
    fix_close(conns[0]);
    fix_close(conns[1]);
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(2, 2);
    ends_there(2, 2, "", "");
    is_to_save(2);
    ends_there(2, 2, "saved by 2", "w1");
    ended(JOB_SUCCEEDED, "rank 2 (node w9) says: saved by 2");
}
END_TEST

/* Who was to take a rank, and cannot, was none that ends: the 30 s go on. */
START_TEST(who_cannot_serve_begins_no_new_wait)
{
    running(2);
    ends(0, MS_OK, "");
    fix_close(conns[1]);
    beat_for(MS_CANCEL_GRACE_MS / 2);
    conns[1] = fix_register("w9", 9);
    fix_done(conns[1], 1, 2, 1, MS_E_IO, "data set /data/mnist cannot be opened");
    beat_for(MS_CANCEL_GRACE_MS / 2);
    is_to_stand(0, 2);
    ends_there(0, 2, "the weights of step 120, the last, are saved", "w1");
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
}
END_TEST

/* ---- behind the last step, and nobody has ended -----------------------------------------------
 */

/* Rank 1 got through the last evaluation, and rank 0 waits in it for rank 2, which is lost: nobody
 * told it anything yet. */
static void one_ended_and_another_is_lost(void)
{
    all_have_made_step(120);
    ends(1, MS_OK, "");
    fix_close(conns[2]);
    beat_for(MS_CANCEL_GRACE_MS);
}

START_TEST(who_holds_the_last_step_beside_one_that_ended_ends_there)
{
    one_ended_and_another_is_lost();
    is_to_stand(0, 1);
    ends_there(0, 1, "the weights of step 120, the last, are saved", "w1");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps");
}
END_TEST

START_TEST(it_has_its_time_from_when_it_was_told)
{
    one_ended_and_another_is_lost();
    is_to_stand(0, 1);
    beat_for(MS_CANCEL_GRACE_MS - FIX_LEASE_MS);
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));
    beat_for(FIX_LEASE_MS);
    is_to_save(1);
    cannot_save(1);
    ends_there(0, 1, "the weights of step 120, the last, are saved", "w1"); /* however late */
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps");
}
END_TEST

START_TEST(where_it_was_passed_over_before_it_is_told_as_well)
{
    all_have_made_step(120);
    ends(1, MS_OK, "");
    beat_for(MS_CANCEL_GRACE_MS); /* ranks 0 and 2 hang, and rank 1 is to save */
    is_to_save(1);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(0, 1);
    is_to_stand(2, 1);
}
END_TEST

/* Rank 0 is a step behind, and stops there, as it was asked to. */
START_TEST(a_cancel_then_has_who_holds_it_save_whoever_is_behind)
{
    all_have_made_step(119);
    beats_at(1, 1, 120);
    ends(1, MS_OK, "");
    fix_close(conns[2]);
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_save(1);
    cannot_save(1);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    says_stopped(0, 119);
    ck_assert_ptr_null(fix_stored(1));
    is_to_save(1);
    ends(1, MS_OK, "saved by 1");
    ended(JOB_CANCELLED, "rank 1 (node w1) says: saved by 1");
}
END_TEST

/* Its process lives, has the rank again, and has yet to take the state from the others. */
START_TEST(who_let_go_of_the_last_step_does_not_hold_it)
{
    all_have_made_step(120);
    Ms__RankDone msg = end_of(1, MS_E_CLOSED, "no bytes for 5 s");
    msg.steps = 0;
    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);
    fix_job_is(1, "RECOVERING", "generation 2: waits for");
    fix_close(conns[0]);
    fix_close(conns[2]);
    beat_for(4 * MS_CANCEL_GRACE_MS);
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));
    fix_job_is(1, "RECOVERING", "waits for a node to take ranks 0 2");
}
END_TEST

START_TEST(a_rank_that_is_lost_in_the_last_evaluation_fails_no_job)
{
    all_have_made_step(120);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "all steps are made; 30 s after the loss the job ends without it");
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(0, 1);
    is_to_stand(2, 1);
    ends_there(2, 1, "", "");
    ends_there(0, 1, "the weights of step 120, the last, are saved", "w1");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps");
}
END_TEST

START_TEST(nor_does_one_that_is_lost_there_again_and_again)
{
    all_have_made_step(120);
    for (uint64_t generation = 1; generation <= 1 + MS_RESTARTS_MAX; generation++) {
        Ms__RankDone msg = end_of(1, MS_E_CLOSED, "no bytes for 5 s");
        msg.generation = generation;
        msg.steps = 0;
        fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);
        if (generation <= MS_RESTARTS_MAX) {
            all_are_ready_for(generation + 1, 120, 120);
        }
    }
    ck_assert_int_eq(n_events("job.rank_gone"), 1);
    is_to_stand(0, 1 + MS_RESTARTS_MAX);
    is_to_stand(2, 1 + MS_RESTARTS_MAX);
    ends_there(0, 1 + MS_RESTARTS_MAX, "the weights of step 120, the last, are saved", "w1");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps");
}
END_TEST

/* In the middle nothing of that is so. */
START_TEST(before_the_last_step_a_lost_rank_is_waited_for)
{
    all_have_made_step(119);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
    ck_assert(strncmp(fix_show(1)->reason, "all steps", 9) != 0);
    beat_for(4 * MS_CANCEL_GRACE_MS);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
}
END_TEST

/* ---- a program without a run directory ---------------------------------------------------------
 */

/* It saves what it likes itself: who is asked says that it has no place. */
START_TEST(who_has_no_place_for_weights_owes_none)
{
    running(RANKS);
    ends(1, MS_OK, "");
    ends(2, MS_OK, "");
    fix_close(conns[0]);
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_save(1);
    ends(1, MS_E_UNSUPPORTED, "the weights have no place");
    is_to_save(2);
    ends(2, MS_E_UNSUPPORTED, "the weights have no place");
    ended(JOB_SUCCEEDED,
          "all 3 ranks finished 120 steps; no rank that is left has a run directory");
    ck_assert_str_eq(fix_stored(1)->weights_sha256, "w1");
}
END_TEST

/* Rank 0 may be long at what it does with them. */
START_TEST(a_program_whose_rank_0_takes_long_is_waited_for)
{
    running(2);
    ends(1, MS_OK, "");
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_save(1);
    ends(1, MS_E_UNSUPPORTED, "the weights have no place");
    beat_for(MS_CANCEL_GRACE_MS);
    fix_job_is(1, "RUNNING", "no rank can save the weights");
    ends(0, MS_OK, "");
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
}
END_TEST

/* Another one may have a place, and no room in it. */
START_TEST(where_one_has_a_place_it_is_waited_for)
{
    running(RANKS);
    ends(1, MS_OK, "");
    ends(2, MS_OK, "");
    fix_close(conns[0]);
    beat_for(MS_CANCEL_GRACE_MS);
    ends(1, MS_E_UNSUPPORTED, "the weights have no place");
    cannot_save(2);
    fix_job_is(1, "RECOVERING", "no rank can save the weights");
}
END_TEST

/* Why rank 0 could not save it has said: before another one was lost, or since. */
START_TEST(why_rank_0_could_not_save_is_told_then_as_well)
{
    all_have_made_step(120);
    if (_i == 0) {
        cannot_save(0);
    }
    fix_close(conns[2]);
    if (_i == 1) {
        cannot_save(0);
    }
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_stand(1, 1);
    ends_there(1, 1, "", "");
    is_to_save(1);
    ends_there(1, 1, "saved by 1", "w1");
    ended(JOB_SUCCEEDED, "rank 1 (node w1) says: saved by 1; rank 0 (node w0) says: weights");
}
END_TEST

/* ---- a rank that is lost once too often -------------------------------------------------------
 */

/* So often as it may, at the last step, by processes that say that they cannot go on. */
static void rank_1_is_lost_as_often_as_it_may(uint64_t *generation)
{
    running(RANKS);
    progress(1, 120);
    for (*generation = 1; *generation <= MS_RESTARTS_MAX; ++*generation) {
        Ms__RankDone msg = end_of(1, MS_E_CLOSED, "no bytes for 5 s");
        msg.generation = *generation;
        msg.steps = 0;
        fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);
        all_ready_at(*generation + 1, RANKS, 120);
        fix_job_is(1, "RUNNING", "");
    }
}

START_TEST(a_rank_that_is_lost_once_too_often_is_not_missed)
{
    uint64_t generation = 0;
    rank_1_is_lost_as_often_as_it_may(&generation);
    ends_there(2, generation, "", "w1");
    Ms__RankDone msg = end_of(1, MS_E_CLOSED, "no bytes for 5 s");
    msg.generation = generation;
    msg.steps = 0;
    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);
    ck_assert_int_eq(n_events("job.rank_gone"), 1);
    ck_assert_ptr_null(fix_stored(1)); /* rank 0 may be at it */
    ends_there(0, generation, "", "w1");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps");
}
END_TEST

START_TEST(where_nobody_else_has_made_the_last_step_it_fails_the_job)
{
    uint64_t generation = 0;
    rank_1_is_lost_as_often_as_it_may(&generation);
    Ms__RankDone msg = end_of(1, MS_E_CLOSED, "no bytes for 5 s");
    msg.generation = generation;
    msg.steps = 0;
    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);
    ended(JOB_FAILED, "rank 1 was lost 4 times");
}
END_TEST

/* ---- after a restart --------------------------------------------------------------------------
 */

/* It knows from before that the ranks hold one state, and which step is the last. */
START_TEST(what_was_known_of_the_ranks_is_known_after_a_restart)
{
    restarted_with(0);
    says_again(0, MS_OK);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
    beat_for(MS_CANCEL_GRACE_MS);
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
}
END_TEST

static void results_say(uint64_t last_step)
{
    const struct sched_job_row *row = fix_stored(1);
    Ms__JobResults *msg = ms__job_results__unpack(NULL, row->results_bytes, row->results);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->last_step, last_step);
    ms__job_results__free_unpacked(msg, NULL);
}

START_TEST(a_start_and_a_round_say_it_to_the_next_scheduler)
{
    placed_for(2, 0);
    all_ready_at(1, 2, 0);
    results_say(0);
    ends(0, MS_OK, "");
    fix_close(conns[1]);
    conns[1] = fix_register("w9", 9);
    results_say(120);
}
END_TEST

/* ---- asked, lost, and back --------------------------------------------------------------------
 */

/* What it was asked before it was lost, nobody waits for. */
START_TEST(who_was_asked_to_save_and_is_lost_is_asked_anew)
{
    running(2);
    cannot_save(0);
    ends(1, MS_OK, "");
    is_to_save(1);
    fix_close(conns[0]);
    fix_close(conns[1]);
    conns[1] = comes_back(1);
    ends(1, MS_OK, "");
    beat_for(MS_CANCEL_GRACE_MS);
    is_to_save(1);
    ends(1, MS_OK, "saved by 1");
    ended(JOB_SUCCEEDED, "rank 1 (node w1) says: saved by 1");
}
END_TEST

/* ---- in a dynamic cluster ---------------------------------------------------------------------
 */

/* All its ranks are somebody's, but for the one that is lost, and its process may come back. */
START_TEST(in_a_dynamic_cluster_the_process_of_a_lost_rank_is_not_extra)
{
    start(SCHED_DYNAMIC, 2);
    conns[0] = dynamic_worker("a", 1, "h", 2);
    conns[1] = dynamic_worker("b", 2, "h", 2);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 2, 0);
    ends(1, MS_OK, "");
    cannot_save(0);
    is_to_save(1);
    fix_close(conns[0]);
    ck_assert_int_eq(n_events("job.rank_gone"), 1);
    fix_refused(dynamic_worker("c", 3, "h", 2), MS_E_REFUSED, "worker c is extra");
    conns[0] = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("a", 1);
    msg.worker_num = 2;
    msg.job_json.data = (uint8_t *)"{}";
    msg.job_json.len = 2;
    msg.job = msg.generation = 1;
    msg.running = 1;
    msg.step = 120;
    fix_say(conns[0], MS_MSG_REGISTER, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_REGISTERED));
    cannot_save(0);
    cannot_save(1);
    fix_job_is(1, "RUNNING", "no rank can save the weights");
}
END_TEST

/* A process that waits for a rank has to hear that none comes any more: it would take it in
 * whatever begins here next. */
START_TEST(who_has_no_rank_when_the_job_ends_is_told)
{
    static const char *const ids[] = {"a", "b", "c"};
    start(SCHED_DYNAMIC, RANKS);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        conns[rank] = dynamic_worker(ids[rank], 1 + rank, "h", RANKS);
    }
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, RANKS, 0);
    fix_close(conns[1]);
    fix_close(conns[2]);
    conns[1] = dynamic_worker("b", 12, "h", RANKS); /* it waits for c */
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_REGISTERED));
    fix_cancel(fix_open(MS_ROLE_ADMIN, "root"), 1, 1);
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));
    says_stopped(0, 7);
    for (int half = 0; half < 2; half++) { /* what ended of c may be its connection alone */
        ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));
        fix_beat(conns[0]);
        fix_beat(conns[1]);
        fix_pass(MS_UNHEARD_MS / 2);
    }
    const Ms__Stop *stop = fix_heard(conns[1], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_uint_eq(stop->job, 0);
    ck_assert_int_eq(stop->code, MS_E_CANCELLED);
    ck_assert_ptr_nonnull(strstr(stop->text, "cancelled by root"));
    fix_beat(conns[1]);
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP)); /* once */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_called_off");
    TCase *t = tcase_create("called_off");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, where_no_node_comes_for_who_was_lost_before_it_saved_the_others_do);
    tcase_add_test(t, so_do_they_where_that_would_fail_the_job_first);
    tcase_add_test(t, where_rank_0_hangs_and_no_node_comes_for_another_one_the_last_one_saves);
    tcase_add_test(t, after_a_restart_in_the_middle_of_that_they_end_without_as_well);
    tcase_add_test(t, where_rank_0_had_saved_the_job_has_succeeded);
    tcase_add_test(t, who_ends_later_than_that_ends_the_job);
    tcase_add_test(t, who_comes_back_meanwhile_and_has_ended_counts);
    tcase_add_test(t, who_comes_back_after_that_and_hangs_is_not_waited_for);
    tcase_add_test(t, a_node_that_comes_in_time_has_the_rank);
    tcase_add_test(t, who_ends_while_a_node_is_looked_for_can_save);
    tcase_add_test(t, a_cancel_then_has_all_try_once_more);
    tcase_add_test(t, who_was_to_take_the_rank_is_lost_before_all_are_ready);
    tcase_add_test(t, so_is_rank_0_and_another_one_that_stands_there_saves);
    tcase_add_test(t, who_holds_less_than_the_last_step_is_let_go);
    tcase_add_test(t, who_is_let_go_then_has_not_failed);
    tcase_add_test(t, who_comes_back_to_that_stands_there_too);
    tcase_add_test(t, who_hangs_in_a_round_is_not_waited_for);
    tcase_add_test(t, who_stood_still_in_a_round_with_us_has_its_time_behind_it);
    tcase_add_test(t, a_newcomer_has_its_time_to_get_ready);
    tcase_add_test(t, a_rank_that_is_lost_once_too_often_is_not_missed);
    tcase_add_test(t, where_nobody_else_has_made_the_last_step_it_fails_the_job);
    tcase_add_test(t, what_was_known_of_the_ranks_is_known_after_a_restart);
    tcase_add_test(t, nor_where_the_last_step_is_known_only_in_it);
    tcase_add_loop_test(t, why_rank_0_could_not_save_is_told_then_as_well, 0, 2);
    tcase_add_test(t, who_holds_the_last_step_beside_one_that_ended_ends_there);
    tcase_add_test(t, it_has_its_time_from_when_it_was_told);
    tcase_add_test(t, who_let_go_of_the_last_step_does_not_hold_it);
    tcase_add_test(t, where_it_was_passed_over_before_it_is_told_as_well);
    tcase_add_test(t, a_cancel_then_has_who_holds_it_save_whoever_is_behind);
    tcase_add_test(t, a_start_and_a_round_say_it_to_the_next_scheduler);
    tcase_add_test(t, who_was_asked_to_save_and_is_lost_is_asked_anew);
    tcase_add_test(t, in_a_dynamic_cluster_the_process_of_a_lost_rank_is_not_extra);
    tcase_add_test(t, who_has_no_rank_when_the_job_ends_is_told);
    tcase_add_test(t, rank_0_may_be_lost_where_it_stands);
    tcase_add_test(t, a_newcomer_that_is_ready_stands_there_like_the_others);
    tcase_add_test(t, who_cannot_serve_begins_no_new_wait);
    tcase_add_test(t, a_rank_that_is_lost_in_the_last_evaluation_fails_no_job);
    tcase_add_test(t, nor_does_one_that_is_lost_there_again_and_again);
    tcase_add_test(t, before_the_last_step_a_lost_rank_is_waited_for);
    tcase_add_test(t, who_has_no_place_for_weights_owes_none);
    tcase_add_test(t, a_program_whose_rank_0_takes_long_is_waited_for);
    tcase_add_test(t, a_job_that_ended_early_ends_without_who_is_lost_too);
    tcase_add_test(t, where_one_has_a_place_it_is_waited_for);
    tcase_add_test(t, who_comes_back_to_its_rank_then_is_told_to_stand);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
