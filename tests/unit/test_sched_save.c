/* test_sched_save.c - all ranks have made the last step, and rank 0 could not save the weights:
 * another one does, or all try until there is room */
#include "tests/unit/sched_save_case.h"

static void all_end_and_rank_0_cannot_save(uint32_t ranks)
{
    running(ranks);
    for (uint32_t rank = 1; rank < ranks; rank++) {
        ends(rank, MS_OK, "");
    }
    cannot_save(0);
}

static void is_asked(uint32_t rank)
{
    const Ms__Stop *stop = fix_heard(conns[rank], MS_MSG_STOP);
    ck_assert_msg(stop != NULL, "rank %u hears nothing", rank);
    ck_assert_int_eq(stop->at_step, 1);
    ck_assert_int_eq(stop->saves, 1);
    ck_assert_int_eq(stop->stands, 0);
    ck_assert_uint_eq(stop->generation, 1);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 1);
}

/* None could: all that is left to do is to wait for room. */
static void nobody_can_save(void)
{
    all_end_and_rank_0_cannot_save(RANKS);
    cannot_save(1);
    cannot_save(2);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
}

START_TEST(another_rank_saves_the_weights_that_rank_0_could_not)
{
    all_end_and_rank_0_cannot_save(RANKS);

    is_asked(1);
    ck_assert_ptr_null(fix_stored(1));
    fix_job_is(1, "RUNNING",
               "waits for rank 1 (node w1 on host h) to save the weights: rank 0 (node "
               "w0) says: weights.safetensors: No space left on device");
    ends(1, MS_OK, "the weights are saved: /jobs/1/weights.safetensors");

    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps; rank 1 (node w1) says: the weights are "
                         "saved: /jobs/1/weights.safetensors; rank 0 (node w0) says: "
                         "weights.safetensors: No space left on device");
    ck_assert_uint_eq(fix_stored(1)->steps, 120);
    ck_assert_str_eq(fix_stored(1)->weights_sha256, "w1");
}
END_TEST

START_TEST(they_come_from_there)
{
    Ms__Fetch msg = MS__FETCH__INIT;
    all_end_and_rank_0_cannot_save(RANKS);
    ends(1, MS_OK, "saved");
    msg.job = 1;
    msg.what = MS_FETCH_WEIGHTS;
    fix_say(fix_open(MS_ROLE_USER, "alice"), MS_MSG_FETCH, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_FETCH_GRANT));
}
END_TEST

START_TEST(where_it_cannot_either_the_next_one_does)
{
    all_end_and_rank_0_cannot_save(RANKS);
    cannot_save(1);
    is_asked(2);
    ends(2, MS_OK, "saved here");
    ended(JOB_SUCCEEDED, "rank 2 (node w2) says: saved here; rank 0 (node w0) says: weights");
}
END_TEST

START_TEST(where_none_can_all_try_again_until_there_is_room)
{
    nobody_can_save();
    for (int round = 0; round < 20; round++) {
        fix_job_is(1, "RUNNING",
                   "no rank can save the weights (tried again every 5 s: make room or "
                   "mend it, or cancel the job): rank 0 (node w0) says: weights");
        time_is_up();
        is_asked(0);
        cannot_save(0);
        is_asked(1);
        cannot_save(1);
        is_asked(2);
        cannot_save(2);
    }
    time_is_up();
    ends(0, MS_OK, "saved at last");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps; rank 0 (node w0) says: saved at last");
    ck_assert_ptr_null(strstr(fix_stored(1)->reason, "No space"));
}
END_TEST

START_TEST(a_rank_alone_tries_again)
{
    all_end_and_rank_0_cannot_save(1);
    fix_job_is(1, "RUNNING", "rank 0 cannot save the weights");
    fix_beat(conns[0]);
    fix_pass(MS_SAVE_AGAIN_MS);
    is_asked(0);
    ends(0, MS_OK, "saved");
    ended(JOB_SUCCEEDED, "the rank finished 120 steps; rank 0 (node w0) says: saved");
}
END_TEST

/* Of a job that was there before the scheduler nothing else tells that. At a cancel it is asked: it
 * may have the step. */
START_TEST(nor_has_one_that_says_no_digest)
{
    Ms__RankDone msg = end_of(1, MS_OK, "");
    msg.weights_sha256 = (char *)"";
    running(2);
    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);
    cannot_save(0);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    cannot_save(0);
    is_to_save(1);
    ends(1, MS_OK, "step 120 is saved");
    ended(JOB_CANCELLED, "cancelled by alice; rank 1 (node w1) says: step 120 is saved");
}
END_TEST

START_TEST(what_had_no_memory_for_its_digest_has_that_of_the_others)
{
    Ms__RankDone msg = end_of(0, MS_E_NOMEM, "no memory");
    msg.weights_sha256 = (char *)"";
    running(2);
    ends(1, MS_OK, "");
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);
    is_asked(1);
    ends(1, MS_OK, "saved");
    ended(JOB_SUCCEEDED, "saved");
    ck_assert_str_eq(fix_stored(1)->weights_sha256, "w1");
}
END_TEST

/* As it does after a reconnect, and when all are asked to stop. */
START_TEST(what_it_had_said_before_is_no_answer)
{
    all_end_and_rank_0_cannot_save(RANKS);
    ends(1, MS_OK, "");
    cannot_save(0);
    ends(2, MS_OK, "");
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    ck_assert_ptr_null(fix_stored(1));
    ends(1, MS_OK, "saved");
    ended(JOB_SUCCEEDED, "saved");
}
END_TEST

START_TEST(what_it_had_said_before_does_not_spend_its_next_try)
{
    nobody_can_save();
    time_is_up();
    is_asked(0);
    cannot_save(1);
    cannot_save(0);
    is_asked(1);
}
END_TEST

/* Whoever saved them, and whenever: also where it was not known that he was at it. */
START_TEST(weights_that_are_saved_are_saved)
{
    all_end_and_rank_0_cannot_save(RANKS);
    ends(2, MS_OK, "saved by 2");
    ended(JOB_SUCCEEDED, "rank 2 (node w2) says: saved by 2");
}
END_TEST

START_TEST(who_says_so_where_rank_0_has_saved_has_nothing)
{
    Ms__Fetch msg = MS__FETCH__INIT;
    running(2);
    ends(1, MS_OK, "look at mine");
    ends(0, MS_OK, "");
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps");
    ck_assert_ptr_null(strstr(fix_stored(1)->reason, "mine"));
    msg.job = 1;
    msg.what = MS_FETCH_WEIGHTS;
    fix_say(fix_open(MS_ROLE_USER, "alice"), MS_MSG_FETCH, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_FETCH_GRANT));
}
END_TEST

static void is_nobody_asked_but(uint32_t rank)
{
    for (uint32_t other = 0; other < RANKS; other++) {
        ck_assert(other == rank || fix_heard(conns[other], MS_MSG_STOP) == NULL ||
                  ((const Ms__Stop *)fix_heard(conns[other], MS_MSG_STOP))->saves == 0);
    }
}

/* The scheduler stood still: what it sent may be lost, and the node is waited for. */
static void is_away(uint32_t rank)
{
    beat_all(RANKS);
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_close(conns[rank]);
    fix_job_is(1, "RUNNING", "to come back");
}

START_TEST(who_is_asked_and_comes_back_is_asked_again)
{
    all_end_and_rank_0_cannot_save(RANKS);
    is_away(1);
    conns[1] = comes_back(1);
    is_asked(1);
    ends(1, MS_OK, "saved");
    ended(JOB_SUCCEEDED, "saved");
}
END_TEST

START_TEST(its_answer_may_come_while_another_one_is_away)
{
    all_end_and_rank_0_cannot_save(RANKS);
    is_away(2);
    ends(1, MS_OK, "saved");
    ck_assert_ptr_null(fix_stored(1));
    conns[2] = comes_back(2);
    ends(2, MS_OK, "");
    ended(JOB_SUCCEEDED, "saved");
}
END_TEST

START_TEST(a_time_that_is_up_while_one_is_away_is_made_up_for)
{
    nobody_can_save();
    is_away(2);
    for (int i = 0; i < 4; i++) { /* longer than the pause, and no lease */
        beat_all(2);
        fix_pass(MS_SAVE_AGAIN_MS / 4);
    }
    if (fix_heard(conns[0], MS_MSG_STOP) != NULL) {
        ck_abort_msg("rank 0 is asked though rank 2 is away");
    }
    conns[2] = comes_back(2);
    ends(2, MS_OK, "");
    is_asked(0);
}
END_TEST

/* Nothing is left to train: a round might find no node, and the fourth loss would end the job. */
START_TEST(a_rank_that_is_lost_meanwhile_is_not_missed)
{
    all_end_and_rank_0_cannot_save(RANKS);
    is_asked(1);
    fix_close(conns[1]);
    is_asked(2);
    ck_assert_int_eq(n_events("job.rank_gone"), 1);
    ck_assert_int_eq(n_events("job.rank_lost"), 0);
    fix_job_is(1, "RUNNING", "waits for rank 2 (node w2 on host h) to save the weights");
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    ends(2, MS_OK, "saved by 2");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps; rank 2 (node w2) says: saved by 2");
}
END_TEST

START_TEST(rank_0_may_be_the_one)
{
    all_end_and_rank_0_cannot_save(2);
    is_asked(1);
    fix_close(conns[0]);
    fix_job_is(1, "RUNNING", "waits for rank 1 (node w1 on host h) to save the weights");
    ends(1, MS_OK, "saved by 1");
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps; rank 1 (node w1) says: saved by 1");
}
END_TEST

START_TEST(a_process_that_comes_back_then_has_its_rank_again)
{
    nobody_can_save();
    fix_close(conns[1]);
    conns[1] = comes_back(1);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    cannot_save(1);
    fix_job_is(1, "RUNNING", "no rank can save the weights");
    fix_close(conns[0]);
    fix_close(conns[2]);
    ck_assert_int_eq(n_events("job.rank_gone"), 1);
    time_is_up();
    is_asked(1);
    ends(1, MS_OK, "saved by 1");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps; rank 1 (node w1) says: saved by 1");
}
END_TEST

START_TEST(the_last_one_that_has_the_weights_is_lost_as_after_any_step)
{
    nobody_can_save();
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        fix_close(conns[rank]);
        ck_assert_int_eq(n_events(rank < 2 ? "job.rank_gone" : "job.rank_lost"), 1);
    }
    fix_job_is(1, "RECOVERING", "waits for node w0: no process holds the state any more");
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        char id[8];
        snprintf(id, sizeof(id), "w%u", rank);
        conns[rank] = fix_register(id, 10 + rank);
    }
    all_ready_at(2, RANKS, 100);
    for (uint32_t rank = RANKS; rank-- > 0;) {
        fix_done(conns[rank], 1, 2, rank, MS_OK, "");
    }
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps");
    ck_assert_ptr_null(strstr(fix_stored(1)->reason, "says"));
}
END_TEST

/* It has its rank again, and says how it ended before a round begins. */
START_TEST(who_comes_back_after_a_loss_and_could_not_save_goes_on)
{
    nobody_can_save();
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        fix_close(conns[rank]);
    }
    conns[2] = comes_back(2);
    cannot_save(2);
    fix_job_is(1, "RECOVERING", "waits for a node to take ranks 0 1");
    conns[0] = comes_back(0);
    conns[1] = comes_back(1);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), RANKS);
}
END_TEST

START_TEST(weights_that_are_saved_do_not_wait_for_who_is_lost)
{
    all_end_and_rank_0_cannot_save(RANKS);
    is_away(2);
    ends(1, MS_OK, "saved by 1");
    fix_close(conns[0]);
    fix_job_is(1, "RUNNING", "to come back");
    conns[2] = comes_back(2);
    ends(2, MS_OK, "");
    for (int i = 0; i < 8 && fix_stored(1) == NULL; i++) { /* rank 0 never is */
        fix_beat(conns[1]);
        fix_beat(conns[2]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    ended(JOB_SUCCEEDED, "rank 1 (node w1) says: saved by 1");
}
END_TEST

START_TEST(one_that_ended_before_the_round_goes_on_with_the_others)
{
    running(2);
    fix_close(conns[1]);
    cannot_save(0);
    conns[1] = fix_register("w9", 9);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
}
END_TEST

START_TEST(a_cancel_has_one_save_that_did_not_try)
{
    all_end_and_rank_0_cannot_save(RANKS);
    cannot_save(1);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(alice, 1, 1);
    cannot_save(1); /* as all say again */
    ends(2, MS_OK, "");
    cannot_save(0); /* it is asked first */
    cannot_save(1);
    ends(2, MS_OK, "saved by 2");
    ended(JOB_CANCELLED, "cancelled by alice; rank 2 (node w2) says: saved by 2");
}
END_TEST

/* There may be room by now: of who made it and cancels nothing is lost. */
static void is_cancelled_and_rank_0_asked(void)
{
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    const Ms__Stop *stop = fix_heard(conns[0], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_ptr_nonnull(fix_stored(1));
    ck_assert_int_eq(fix_stored(1)->state, JOB_RUNNING);
}

START_TEST(a_cancel_has_all_try_once_more)
{
    nobody_can_save();
    is_cancelled_and_rank_0_asked();
    fix_job_is(1, "RUNNING", "waits for rank 0 (node w0 on host h) to save its step");
    ends(0, MS_OK, "saved by 0");
    ended(JOB_CANCELLED, "cancelled by alice; rank 0 (node w0) says: saved by 0");
}
END_TEST

/* All say again how they ended, when they are asked to stop. */
START_TEST(what_was_said_before_a_cancel_is_no_answer_to_it)
{
    nobody_can_save();
    is_cancelled_and_rank_0_asked();
    cannot_save(1);
    cannot_save(2);
    cannot_save(0);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));
    ends(1, MS_OK, "saved by 1");
    ended(JOB_CANCELLED, "rank 1 (node w1) says: saved by 1");
}
END_TEST

/* It beats, and its disk does not answer. */
static void hangs(uint32_t rank)
{
    for (int ms = 0; ms < MS_CANCEL_GRACE_MS; ms += FIX_LEASE_MS / 2) {
        is_nobody_asked_but(rank);
        beat_all(RANKS);
        fix_pass(FIX_LEASE_MS / 2);
    }
}

START_TEST(one_whose_disk_hangs_is_not_waited_for)
{
    all_end_and_rank_0_cannot_save(RANKS);
    is_asked(1);
    hangs(1);
    is_asked(2);
    cannot_save(2);
    time_is_up();
    is_asked(0);
    cannot_save(0);
    is_asked(2); /* rank 1 is still at it */
    ends(1, MS_OK, "saved at last");
    ended(JOB_SUCCEEDED, "rank 1 (node w1) says: saved at last");
}
END_TEST

START_TEST(rank_0_is_not_either)
{
    all_others_end();
    hangs(0);
    is_asked(1);
    ck_assert_int_eq(n_events("job.not_saved"), 1);
    fix_job_is(1, "RUNNING", "rank 0 (node w0) says: nothing in the 30 s since others ended");
    cannot_save(1);
    is_asked(2);
    ends(2, MS_OK, "saved by 2");
    ended(JOB_SUCCEEDED,
          "all 3 ranks finished 120 steps; rank 2 (node w2) says: saved by 2; rank 0 "
          "(node w0) says: nothing in the 30 s");
    ck_assert_str_eq(fix_stored(1)->weights_sha256, "w1");
}
END_TEST

/* Nobody heard it then. */
START_TEST(while_the_scheduler_stood_still_it_was_not_silent)
{
    all_others_end();
    fix.now.mono_ms += 2 * MS_CANCEL_GRACE_MS;
    sched_stood_still(fix.s, 2 * MS_CANCEL_GRACE_MS);
    fix_time();

    ck_assert_int_eq(n_events("job.not_saved"), 0);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    ends(0, MS_OK, "");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps");
}
END_TEST

START_TEST(nor_was_the_one_that_was_asked_in_its_place)
{
    all_end_and_rank_0_cannot_save(RANKS);
    fix.now.mono_ms += 2 * MS_CANCEL_GRACE_MS;
    sched_stood_still(fix.s, 2 * MS_CANCEL_GRACE_MS);
    fix_time();

    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0); /* rank 1 has all its time */
    ends(1, MS_OK, "saved");
    ended(JOB_SUCCEEDED, "saved");
}
END_TEST

START_TEST(what_it_saves_in_the_end_is_as_usual)
{
    all_others_end();
    hangs(0);
    is_asked(1);
    ends(0, MS_OK, "");
    ended(JOB_SUCCEEDED, "all 3 ranks finished 120 steps");
    ck_assert_ptr_null(strstr(fix_stored(1)->reason, "says"));
}
END_TEST

START_TEST(that_it_cannot_is_no_news_then)
{
    all_others_end();
    hangs(0);
    is_asked(1);
    cannot_save(0);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    ck_assert_int_eq(n_events("job.not_saved"), 0);
    cannot_save(1);
    is_asked(2);
}
END_TEST

START_TEST(its_time_begins_when_one_has_ended_that_could_save)
{
    running(RANKS);
    hangs(0);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    ends(1, MS_OK, "");
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    hangs(0); /* and rank 2 */
    is_asked(1);
    cannot_save(1);
    ends(2, MS_OK, "");
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    time_is_up();
    is_asked(1);
}
END_TEST

/* The scheduler does not know any more that it had asked it. */
START_TEST(after_a_restart_a_saver_that_hangs_is_not_waited_for)
{
    restarted(RANKS);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        is_back(rank);
    }
    says_again(0, MS_E_IO);
    says_again(2, MS_OK);
    hangs(1);
    is_to_save(2);
    says_again(2, MS_E_IO);
    time_is_up();
    is_to_save(0);
}
END_TEST

/* Nobody may try just now: rank 0 has, and rank 1 hangs at it. */
START_TEST(where_all_others_hang_rank_0_tries_again)
{
    running(2);
    cannot_save(0);
    beat_for(MS_CANCEL_GRACE_MS + MS_SAVE_AGAIN_MS);
    is_asked(0);
    ends(0, MS_OK, "saved by 0");
    ended(JOB_SUCCEEDED, "all 2 ranks finished 120 steps; rank 0 (node w0) says: saved by 0");
}
END_TEST

/* One that is back while another one is at it may hang. */
START_TEST(who_comes_back_and_hangs_is_not_waited_for)
{
    all_end_and_rank_0_cannot_save(RANKS);
    is_asked(1);
    fix_close(conns[2]);
    conns[2] = comes_back(2);
    ends(1, MS_OK, "saved by 1");
    fix_job_is(1, "RUNNING", "");
    for (int i = 0; i < 40 && fix_stored(1) == NULL; i++) {
        beat_all(RANKS);
        fix_pass(FIX_LEASE_MS / 2);
    }
    ended(JOB_SUCCEEDED, "rank 1 (node w1) says: saved by 1");
}
END_TEST

/* What it says of who has ended is old: nobody needs that one any more. */
START_TEST(who_comes_back_and_complains_of_one_that_has_ended_is_not_heard)
{
    nobody_can_save();
    is_away(1);
    conns[1] = comes_back(1);
    peer_report(1, 1, 0);
    cannot_save(1);
    for (int i = 0; i < 4; i++) {
        time_is_up();
        is_asked(0);
        cannot_save(0);
        cannot_save(1);
        cannot_save(2);
    }
    fix_job_is(1, "RUNNING", "no rank can save the weights");
}
END_TEST

/* Whoever holds the weights is asked, though the others never get to their end. */
START_TEST(nor_where_a_cancel_finds_it_so)
{
    all_others_end();
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    hangs(0);
    const Ms__Stop *stop = fix_heard(conns[1], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->saves, 1);
    fix_job_is(1, "RUNNING", "cancelled by alice; waits for rank 1 (node w1 on host h) to save");
    cannot_save(1);
    ck_assert_ptr_nonnull(fix_heard(conns[2], MS_MSG_STOP));
    ends(2, MS_OK, "saved by 2");
    ended(JOB_CANCELLED, "cancelled by alice; rank 2 (node w2) says: saved by 2");
}
END_TEST

/* Whoever it passed over is lost in the moment in which the saver's time is over, too. */
START_TEST(a_cancel_in_which_another_one_is_lost_meanwhile_has_an_end)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    cfg.recovery = 1;
    cfg.lease_ms = 10 * MS_CANCEL_GRACE_MS;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    conns[0] = fix_register("w0", 1);
    conns[1] = fix_register("w1", 2);
    submit(2);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 2, 0);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    Ms__RankDone msg = end_of(1, MS_OK, "");
    msg.stopped = 1;
    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);
    fix_beat(conns[0]);
    fix_pass(MS_CANCEL_GRACE_MS);
    is_to_save(1);
    fix_beat(conns[1]); /* and rank 0 says nothing any more */
    fix_pass(MS_CANCEL_GRACE_MS);
    ck_assert_int_eq(n_events("job.rank_lost"), 1);
    ck_assert_ptr_null(fix_stored(1));
    fix_beat(conns[1]);
    fix_pass(MS_CANCEL_GRACE_MS);
    ended(JOB_CANCELLED, "cancelled by alice");
}
END_TEST

START_TEST(a_cancel_of_whom_nobody_can_save_for_ends)
{
    running(RANKS);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    hangs(0);
    ended(JOB_CANCELLED, "the step did not end within 30 s");
}
END_TEST

START_TEST(nor_at_a_cancel)
{
    all_end_and_rank_0_cannot_save(RANKS);
    cannot_save(1);
    cannot_save(2);
    is_cancelled_and_rank_0_asked();
    hangs(0);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));
    ends(1, MS_OK, "saved by 1");
    ended(JOB_CANCELLED, "rank 1 (node w1) says: saved by 1");
}
END_TEST

START_TEST(a_cancel_where_nobody_can_says_so)
{
    nobody_can_save();
    is_cancelled_and_rank_0_asked();
    cannot_save(0);
    cannot_save(1);
    cannot_save(2);
    ended(JOB_CANCELLED, "cancelled by alice; the weights are not saved: rank ");
}
END_TEST

START_TEST(a_cancel_of_one_that_is_away_is_no_success)
{
    all_end_and_rank_0_cannot_save(2);
    beat_all(2);
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_close(conns[1]);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    conns[1] = comes_back(1);
    ends(1, MS_OK, "");
    ck_assert_ptr_null(fix_stored(1));
    ends(1, MS_OK, "saved");
    ended(JOB_CANCELLED, "rank 1 (node w1) says: saved");
}
END_TEST

START_TEST(other_weights_than_the_others_are_still_an_error)
{
    Ms__RankDone msg = end_of(0, MS_E_IO, "no room");
    msg.weights_sha256 = (char *)"w2";
    running(2);
    ends(1, MS_OK, "");
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);
    ended(JOB_FAILED, "the ranks' weights differ");
}
END_TEST

START_TEST(one_that_fails_before_its_last_step_fails_the_job)
{
    running(2);
    fix_done(conns[0], 1, 1, 0, MS_E_IO, "cannot read the data");
    ended(JOB_FAILED, "cannot read the data");
}
END_TEST

START_TEST(of_a_job_that_does_not_recover_it_is_an_error)
{
    start(SCHED_STANDING, 0);
    conns[0] = fix_register("w0", 1);
    conns[1] = fix_register("w1", 2);
    Ms__Submit msg = fix_job(2);
    fix_say(fix_open(MS_ROLE_USER, "alice"), MS_MSG_SUBMIT, &msg.base);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 2, 0);
    ends(1, MS_OK, "");
    cannot_save(0);
    ended(JOB_FAILED, "No space left on device");
}
END_TEST

START_TEST(one_whose_process_leaves_is_lost)
{
    Ms__RankDone msg = end_of(0, MS_E_CANCELLED, "it leaves");
    msg.leaving = 1;
    running(2);
    ends(1, MS_OK, "");
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);
    fix_job_is(1, "RECOVERING", "waits for a node");
}
END_TEST

START_TEST(a_restart_asks_anew)
{
    restarted(2);
    is_back(0);
    is_back(1);
    says_again(1, MS_OK);
    says_again(0, MS_E_IO);
    is_to_save(1);
}
END_TEST

/* Who hangs at it says nothing after a restart, whoever had asked it. */
START_TEST(after_a_restart_who_hangs_is_not_waited_for)
{
    restarted(2);
    is_back(1);
    says_again(1, MS_OK);
    is_back(0);
    for (int ms = 0; ms < MS_CANCEL_GRACE_MS; ms += FIX_LEASE_MS / 2) {
        ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
        beat_all(2);
        fix_pass(FIX_LEASE_MS / 2);
    }
    is_to_save(1);
}
END_TEST

/* What they could not save before they heard of the cancel is no answer to it: there may be room.
 */
START_TEST(a_cancel_after_a_restart_has_all_try_once_more)
{
    restarted(2);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    is_back(0);
    is_back(1);
    says_again(0, MS_E_IO);
    says_again(1, MS_E_IO);
    is_to_save(0);
    says_again(0, MS_E_IO);
    is_to_save(1);
    says_again(1, MS_E_IO);
    ended(JOB_CANCELLED, "cancelled by alice; the weights are not saved: rank ");
    ck_assert_uint_eq(fix_stored(1)->steps, 120);
}
END_TEST

START_TEST(also_where_rank_0_never_comes_back)
{
    restarted(RANKS);
    is_back(1);
    is_back(2);
    says_again(1, MS_E_IO);
    says_again(2, MS_E_IO);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    for (int i = 0; i < 40 && fix_heard(conns[1], MS_MSG_STOP) == NULL; i++) {
        fix_beat(conns[1]);
        fix_beat(conns[2]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    is_to_save(1);
    says_again(1, MS_E_IO);
    is_to_save(2);
    Ms__RankDone msg = end_of(2, MS_OK, "saved by 2");
    msg.generation = 11;
    fix_say(conns[2], MS_MSG_RANK_DONE, &msg.base);
    ended(JOB_CANCELLED, "cancelled by alice; rank 2 (node w2) says: saved by 2");
}
END_TEST

START_TEST(so_has_one_that_was_away_at_the_cancel)
{
    all_end_and_rank_0_cannot_save(1);
    fix_beat(conns[0]);
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_close(conns[0]);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    conns[0] = comes_back(0);
    cannot_save(0);
    ck_assert_ptr_null(fix_stored(1));
    is_to_save(0);
    ends(0, MS_OK, "saved by 0");
    ended(JOB_CANCELLED, "cancelled by alice; rank 0 (node w0) says: saved by 0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_save");
    TCase *t = tcase_create("save");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, another_rank_saves_the_weights_that_rank_0_could_not);
    tcase_add_test(t, they_come_from_there);
    tcase_add_test(t, where_it_cannot_either_the_next_one_does);
    tcase_add_test(t, where_none_can_all_try_again_until_there_is_room);
    tcase_add_test(t, a_rank_alone_tries_again);
    tcase_add_test(t, nor_has_one_that_says_no_digest);
    tcase_add_test(t, what_had_no_memory_for_its_digest_has_that_of_the_others);
    tcase_add_test(t, what_it_had_said_before_is_no_answer);
    tcase_add_test(t, what_it_had_said_before_does_not_spend_its_next_try);
    tcase_add_test(t, weights_that_are_saved_are_saved);
    tcase_add_test(t, who_says_so_where_rank_0_has_saved_has_nothing);
    tcase_add_test(t, who_is_asked_and_comes_back_is_asked_again);
    tcase_add_test(t, its_answer_may_come_while_another_one_is_away);
    tcase_add_test(t, a_time_that_is_up_while_one_is_away_is_made_up_for);
    tcase_add_test(t, a_rank_that_is_lost_meanwhile_is_not_missed);
    tcase_add_test(t, rank_0_may_be_the_one);
    tcase_add_test(t, a_process_that_comes_back_then_has_its_rank_again);
    tcase_add_test(t, the_last_one_that_has_the_weights_is_lost_as_after_any_step);
    tcase_add_test(t, who_comes_back_after_a_loss_and_could_not_save_goes_on);
    tcase_add_test(t, weights_that_are_saved_do_not_wait_for_who_is_lost);
    tcase_add_test(t, one_that_ended_before_the_round_goes_on_with_the_others);
    tcase_add_test(t, a_cancel_has_one_save_that_did_not_try);
    tcase_add_test(t, a_cancel_has_all_try_once_more);
    tcase_add_test(t, what_was_said_before_a_cancel_is_no_answer_to_it);
    tcase_add_test(t, one_whose_disk_hangs_is_not_waited_for);
    tcase_add_test(t, rank_0_is_not_either);
    tcase_add_test(t, while_the_scheduler_stood_still_it_was_not_silent);
    tcase_add_test(t, nor_was_the_one_that_was_asked_in_its_place);
    tcase_add_test(t, what_it_saves_in_the_end_is_as_usual);
    tcase_add_test(t, that_it_cannot_is_no_news_then);
    tcase_add_test(t, its_time_begins_when_one_has_ended_that_could_save);
    tcase_add_test(t, nor_where_a_cancel_finds_it_so);
    tcase_add_test(t, who_comes_back_and_complains_of_one_that_has_ended_is_not_heard);
    tcase_add_test(t, after_a_restart_a_saver_that_hangs_is_not_waited_for);
    tcase_add_test(t, where_all_others_hang_rank_0_tries_again);
    tcase_add_test(t, who_comes_back_and_hangs_is_not_waited_for);
    tcase_add_test(t, a_cancel_in_which_another_one_is_lost_meanwhile_has_an_end);
    tcase_add_test(t, a_cancel_of_whom_nobody_can_save_for_ends);
    tcase_add_test(t, nor_at_a_cancel);
    tcase_add_test(t, a_cancel_where_nobody_can_says_so);
    tcase_add_test(t, a_cancel_of_one_that_is_away_is_no_success);
    tcase_add_test(t, other_weights_than_the_others_are_still_an_error);
    tcase_add_test(t, one_that_fails_before_its_last_step_fails_the_job);
    tcase_add_test(t, of_a_job_that_does_not_recover_it_is_an_error);
    tcase_add_test(t, one_whose_process_leaves_is_lost);
    tcase_add_test(t, a_restart_asks_anew);
    tcase_add_test(t, after_a_restart_who_hangs_is_not_waited_for);
    tcase_add_test(t, a_cancel_after_a_restart_has_all_try_once_more);
    tcase_add_test(t, also_where_rank_0_never_comes_back);
    tcase_add_test(t, so_has_one_that_was_away_at_the_cancel);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
