/* test_sched_enough.c - a rank is lost, and its job goes on: who is to blame, and when it is enough
 */
#include "tests/unit/sched_recover_case.h"

/* ---- who is to blame ----------------------------------------------------------------------------
 */

START_TEST(a_rank_that_others_cannot_reach_is_tried_again_before_it_is_given_up)
{
    running(2);
    peer_report(1, 0, 1);
    fix_pass(MS_BLAME_MS);

    assigned(0, 2);
    assigned(1, 2);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    peer_report(2, 0, 1);
    fix_pass(MS_BLAME_MS);

    assigned(0, 3); /* there is no other node: this one is good enough, with all that it holds */
    assigned(1, 3);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    fix_job_is(1, "RECOVERING", "generation 3");
}
END_TEST

START_TEST(a_rank_that_others_cannot_reach_moves_the_second_time)
{
    running(2);
    peer_report(1, 0, 1);
    fix_pass(MS_BLAME_MS);
    uint64_t spare = fix_register("w7", 7);
    peer_report(2, 0, 1);

    fix_pass(MS_BLAME_MS);

    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_ASSIGN));
    conns[1] = spare;
    assigned(0, 3);
    assigned(1, 3);
}
END_TEST

START_TEST(a_rank_whose_mesh_ended_for_its_own_reason_tries_again)
{
    running(2);
    peer_report(1, 1, 1);
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_ERROR));
    fix_pass(MS_BLAME_MS);

    assigned(0, 2);
    assigned(1, 2);
    uint64_t spare = fix_register("w7", 7);
    peer_report(2, 1, 1);
    fix_pass(MS_BLAME_MS);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_ASSIGN));
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
}
END_TEST

START_TEST(who_alone_holds_the_state_is_not_given_up_while_it_has_tries)
{
    static const int64_t pauses_ms[MS_RESTARTS_MAX] = {500, 2000, 5000};
    running(2);
    fix_close(conns[1]);
    conns[1] = fix_register("w1", 20);
    for (uint64_t i = 0; i < MS_RESTARTS_MAX; i++) {
        peer_report(2 + i, 0, 0);
        fix_pass(MS_BLAME_MS);
        fix_job_is(1, "RECOVERING", "tries again in a few seconds: rank 0 (node w0");
        for (int64_t ms = 1000; ms < pauses_ms[i]; ms += 1000) {
            fix_pass(1000);
            fix_beat(conns[0]);
            fix_beat(conns[1]);
        }
        ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
        fix_pass(pauses_ms[i] < 1000 ? pauses_ms[i] : 1000);
        assigned(0, 3 + i);
    }

    const uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__Watch watch = MS__WATCH__INIT;
    watch.job = 1;
    fix_say(conn, MS_MSG_WATCH, &watch.base);
    peer_report(2 + MS_RESTARTS_MAX, 0, 0);
    fix_pass(MS_BLAME_MS);
    const Ms__JobUpdate *last = fix_heard(conn, MS_MSG_JOB_UPDATE);
    ck_assert_ptr_nonnull(last);
    ck_assert_uint_eq(last->job->ranks_lost, 1 + MS_RESTARTS_MAX + 1); /* as the reason counts */
    ended(JOB_FAILED, "rank 0 was lost 4 times, and the job did not get beyond step 0, for its "
                      "process cannot connect to the other ranks: node w0: it does not answer (4 "
                      "times)");
}
END_TEST

/* Nobody asks sooner for a newcomer's sake. */
START_TEST(a_newcomer_that_ends_cuts_no_pause_short)
{
    running(2);
    fix_close(conns[1]);
    conns[1] = fix_register("w1", 20);
    peer_report(2, 0, 0);
    fix_pass(MS_BLAME_MS);
    fix_close(conns[1]);
    conns[1] = fix_register("w1", 21);
    fix_pass(400);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_pass(100);
    assigned(0, 3);
}
END_TEST

/* A newcomer that complains of who holds the state gives way to it, whatever became of connections
 * and of the scheduler meanwhile. */
START_TEST(who_came_back_with_its_state_is_not_given_up_for_a_newcomer)
{
    running(2);
    progress(1, 50);
    fix_close(conns[1]);
    fix_close(conns[0]);
    conns[0] = come_back(0, 1, 1, 1, 1);
    conns[1] = fix_register("w1", 20);
    assigned(0, 2);

    peer_report(2, 1, 0);
    fix_pass(MS_BLAME_MS);

    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_STOP));
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));
}
END_TEST

/* It is short of memory for the mesh; the newcomer hears that it has gone, and is the first who
 * says so. */
START_TEST(what_a_rank_says_of_its_own_mesh_comes_before_what_others_say)
{
    running(3);
    fix_close(conns[2]);
    conns[2] = fix_register("w2", 20);
    for (uint64_t generation = 2; generation < 4; generation++) {
        peer_report(generation, 2, 0);
        peer_report(generation, 0, 0);
        peer_report(generation, 1, 0);
        fix_pass(MS_BLAME_MS);
        ck_assert_ptr_null(fix_heard(conns[2], MS_MSG_STOP));
        if (generation == 2) {
            assigned(0, 3);
        }
    }
    ck_assert_ptr_nonnull(
        strstr(event_of("job.rank_lost")->text, "rank 0 (node w0) reports: it does not answer"));
    fix_pass(MS_FORMER_SPARE_MS);
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_STOP)); /* others hold the state, ... */
    fix_stopped(conns[0], 1, 3, 0);
    assigned(0, 4); /* ... and there is no other node: it begins anew */
}
END_TEST

START_TEST(the_process_that_died_is_known_before_who_complains)
{
    running(2);
    peer_report(1, 0, 1);
    fix_close(conns[1]);
    fix_pass(MS_BLAME_MS);

    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
}
END_TEST

START_TEST(what_a_rank_says_of_itself_ends_the_job)
{
    running(2);
    fix_register("w7", 7);

    fix_done(conns[1], 1, 1, 1, MS_E_FAILED, "In epoch: 1 step: 3, loss is NAN or INF");

    ended(JOB_FAILED, "loss is NAN");
}
END_TEST

START_TEST(a_process_that_leaves_loses_its_rank_only)
{
    running(2);
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = msg.generation = 1;
    msg.rank = 1;
    msg.code = MS_E_CANCELLED;
    msg.text = (char *)"its worker was asked to end";
    msg.leaving = 1;

    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);

    fix_job_is(1, "RECOVERING", "(node w1 on host h) left: its worker was asked to end");
}
END_TEST

START_TEST(a_newcomer_that_cannot_serve_is_not_taken_twice)
{
    running(2);
    uint64_t spare = fix_register("w7", 7);
    fix_close(conns[1]);

    fix_done(spare, 1, 2, 1, MS_E_UNSUPPORTED, "plan line 7: isa avx512_core is not here");

    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_STOP));
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(1, "RECOVERING", "isa avx512_core is not here");
    conns[1] = fix_register("w8", 8);
    assigned(1, 3);
}
END_TEST

static void ready_with_digest(uint32_t rank, uint64_t step, uint8_t first)
{
    uint8_t digest[MS_STATE_DIGEST_LEN] = {first};
    Ms__RankReady msg = ready_message(2, rank, step);
    msg.state_digest.data = digest;
    msg.state_digest.len = sizeof(digest);
    fix_say(conns[rank], MS_MSG_RANK_READY, &msg.base);
}

START_TEST(nobody_who_cannot_serve_costs_the_job_a_try)
{
    running(2);
    uint64_t bad[6];
    for (uint64_t i = 0; i < 6; i++) {
        char id[8];
        snprintf(id, sizeof(id), "b%llu", (unsigned long long)i);
        bad[i] = fix_register(id, 30 + i);
    }
    fix_close(conns[1]);
    for (uint64_t generation = 2; generation < 8; generation++) {
        uint64_t taker = 0;
        for (size_t i = 0; i < 6 && taker == 0; i++) {
            taker = fix_heard(bad[i], MS_MSG_ASSIGN) != NULL ? bad[i] : 0;
        }
        ck_assert_uint_ne(taker, 0);
        fix_done(taker, 1, generation, 1, MS_E_IO, "data set /data/mnist cannot be opened");
    }
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(1, "RECOVERING", "data set /data/mnist cannot be opened");

    for (int i = 0; i < 6; i++) {
        fix_pass(MS_UNFIT_MS / 6);
        for (size_t k = 0; k < 6; k++) {
            fix_beat(bad[k]);
        }
        fix_beat(conns[0]);
    }
    fix_time();

    fix_job_is(1, "RECOVERING", "generation 8"); /* one of them was asked again */
}
END_TEST

START_TEST(of_a_link_that_is_cut_the_end_moves_whose_side_has_no_node)
{
    start(SCHED_STANDING, 0);
    conns[0] = node_on("n0", 1, "a");
    conns[1] = node_on("n2", 2, "b");
    submit(2);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 2, 0);
    uint64_t spare = node_on("n1", 3, "a");
    peer_report(1, 1, 0); /* b does not reach a: once more */
    fix_pass(MS_BLAME_MS);
    peer_report(2, 1, 0);
    fix_pass(MS_BLAME_MS);

    uint64_t was = conns[1];
    conns[1] = spare;
    assigned(0, 3);
    assigned(1, 3);
    ck_assert_ptr_null(fix_heard(was, MS_MSG_STOP)); /* it keeps what it holds */
}
END_TEST

START_TEST(a_rank_that_is_waited_for_and_complained_of_is_lost_once)
{
    load(JOB_RUNNING);
    conns[0] = come_back(0, 100, 1, 11, 1);
    peer_report(11, 0, 1);
    fix_pass(MS_BLAME_MS);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");

    fix_register("w1", 12);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
    ck_assert_uint_eq(fix_show(1)->ranks_lost, 1);
}
END_TEST

START_TEST(a_step_that_is_told_late_counts)
{
    running(2);
    progress(1, 7);
    for (uint64_t i = 0; i < 2; i++) { /* twice at step 7 */
        fix_close(conns[1]);
        conns[1] = fix_register("w1", 20 + i);
        all_ready_at(2 + i, 2, 7);
    }
    fix_close(conns[1]); /* nobody knows yet that it was at step 9 */
    conns[1] = fix_register("w1", 30);
    Ms__Heartbeat beat = MS__HEARTBEAT__INIT;
    beat.job = 1;
    beat.generation = 4;
    beat.step = 9;
    fix_say(conns[0], MS_MSG_HEARTBEAT, &beat.base);

    fix_close(conns[1]);

    fix_job_is(1, "RECOVERING", "waits");
}
END_TEST

/* Nobody could take its place, and its submitter does not know. */
START_TEST(a_rank_that_says_no_digest_cannot_be_of_a_job_that_recovers)
{
    placed_for(2, 0);
    for (uint32_t rank = 0; rank < 2; rank++) {
        if (rank == (uint32_t)_i) {
            ready_apart(rank);
        } else {
            ready_at(1, rank, 0);
        }
    }
    ended(JOB_FAILED, _i == 0 ? "rank 0 says no digest of its state, and a job that goes on"
                              : "rank 1 says no digest of its state, and a job that goes on");
}
END_TEST

START_TEST(states_that_differ_end_the_job)
{
    running(2);
    uint64_t spare = fix_register("w7", 7);
    fix_close(conns[1]);
    conns[1] = spare;
    ready_with_digest(0, 41, 7);
    ready_with_digest(1, 40, 7);
    ended(JOB_FAILED, "rank 1 after step 40");

    running(2);
    fix_close(conns[1]);
    conns[1] = fix_register("w1", 12);
    ready_with_digest(0, 41, 7);
    ready_with_digest(1, 41, 8);
    ended(JOB_FAILED, "ranks 0 and 1 have different weights after step 41");
}
END_TEST

/* ---- enough -------------------------------------------------------------------------------------
 */

START_TEST(a_rank_that_dies_at_the_same_step_again_and_again_ends_the_job)
{
    running(2);
    progress(1, 7);
    for (uint64_t i = 0; i < MS_RESTARTS_MAX; i++) {
        fix_close(conns[1]);
        fix_job_is(1, "RECOVERING", "waits");
        conns[1] = fix_register("w1", 20 + i);
        all_ready_at(2 + i, 2, 7);
        fix_job_is(1, "RUNNING", "");
    }

    fix_close(conns[1]);

    ended(JOB_FAILED, "rank 1 was lost 4 times, and the job did not get beyond step 7");
}
END_TEST

/* At one step, each time for that reason. */
static void lost_because(const char *const reasons[MS_RESTARTS_MAX + 1])
{
    running(2);
    progress(1, 7);
    for (uint64_t i = 0; i <= MS_RESTARTS_MAX; i++) {
        struct sched_event event = {
            .kind = SCHED_EV_CLOSED, .conn = conns[1], .reason = reasons[i]};
        fix_apply(&event);
        if (i < MS_RESTARTS_MAX) {
            conns[1] = fix_register("w1", 20 + i);
            all_ready_at(2 + i, 2, 7);
        }
    }
}

START_TEST(the_reason_names_each_cause_however_long_they_are)
{
    static const char *const reasons[] = {
        "the first of them is that the machine had no memory left for what the process wanted, and "
        "that its kernel ended it, which is said at some length",
        "the second one has to do with a cable that somebody pulled out of the host while he "
        "looked "
        "for another one, and put in again after a while",
        "the third is a short one",
        "the fourth and last one is about a disk that was full, so that the process could not "
        "write "
        "what it was about to write, and ended because of it",
    };
    lost_because(reasons);

    ended(JOB_FAILED, "behind it may be what kills it: node w1: the first of them is that the");
    ended(JOB_FAILED, "...; the second one has to do");
    ended(JOB_FAILED, "...; the third is a short one; the fourth and last one");
    ended(JOB_FAILED, "; its log: /run/worker.log");
}
END_TEST

START_TEST(a_cause_that_comes_again_is_said_once)
{
    static const char *const reasons[] = {
        "the peer at 127.0.0.1:42316 closed the connection",
        "the connection to the peer at 127.0.0.1:42324 broke: Connection reset by peer",
        "the peer at 127.0.0.1:42350 closed the connection",
        "the peer at [::1]:42360 closed the connection",
    };
    lost_because(reasons);

    ended(JOB_FAILED, "kills it: node w1: the peer closed the connection (3 times); the connection "
                      "to the peer broke: Connection reset by peer");
}
END_TEST

static const struct {
    const char *reasons[MS_RESTARTS_MAX + 1];
    const char *words;
} alike[] = {
    {{"worker w1 at 127.0.0.1:38748 closed the connection",
      "worker w1 at 127.0.0.1:38750 closed the connection",
      "worker w1 at 127.0.0.1:40022 closed the connection",
      "worker w1 at 127.0.0.1:4 closed the connection"},
     "kills it: node w1: worker w1 closed the connection (4 times) (killed? journalctl -u "
     "'msworker@*' on h says by what); its log: /run/worker.log"},
    {{"worker at [::1]:38748 was dropped: it sent what no worker sends at 3 am",
      "worker at [::1]:38750 was dropped: it sent what no worker sends at 3 am",
      "rank 0 at 10.0.0.2:8203: refused", "rank 0 at 10.0.0.2:8207: refused"},
     "kills it: node w1: worker was dropped: it sent what no worker sends at 3 am (2 times); rank "
     "0 "
     "at 10.0.0.2: refused (2 times)"},
    {{"rank 0 at 10.0.0.2:8203", "rank 0 at 10.0.0.3:8203", "rank 0 at 10.0.0.3:8207",
      "rank 0 at port"},
     "kills it: node w1: rank 0 at 10.0.0.2; rank 0 at 10.0.0.3 (2 times); rank 0 at port "
     "(killed? "},
};

/* Processes of a node have one port after the other; and the last one says how to find more. */
START_TEST(causes_that_differ_in_a_port_are_one)
{
    lost_because(alike[_i].reasons);
    ended(JOB_FAILED, alike[_i].words);
    ended(JOB_FAILED, "; its log: /run/worker.log");
}
END_TEST

START_TEST(causes_of_earlier_steps_are_not_named)
{
    static const char *const at_9[] = {"a second cause", "a third cause", "a fourth cause"};
    running(2);
    progress(1, 7);
    struct sched_event event = {.kind = SCHED_EV_CLOSED, .reason = "a first cause"};
    event.conn = conns[1];
    fix_apply(&event);
    conns[1] = fix_register("w1", 20);
    all_ready_at(2, 2, 7);
    for (uint64_t i = 0; i < MS_RESTARTS_MAX; i++) {
        event.conn = conns[1];
        event.reason = at_9[i];
        fix_apply(&event);
        conns[1] = fix_register("w1", 21 + i);
        all_ready_at(3 + i, 2, 9); /* nobody told that before the first of these */
    }
    event.conn = conns[1];
    event.reason = "a fifth cause";
    fix_apply(&event);

    ended(JOB_FAILED, "kills it: node w1: a second cause; a third cause; a fourth cause; a fifth");
}
END_TEST

START_TEST(a_committed_step_in_between_is_as_good_as_new)
{
    running(2);
    for (uint64_t i = 0; i < 3 * MS_RESTARTS_MAX; i++) {
        fix_close(conns[1]);
        conns[1] = fix_register("w1", 20 + i);
        all_ready_at(2 + i, 2, 7 + i); /* nobody told before: it is known now */
        fix_job_is(1, "RUNNING", "");
    }
}
END_TEST

/* Steps take 10 ms: of 20 in a row nobody hears. */
static void progress_of_fast_steps(uint64_t generation, uint64_t step)
{
    Ms__Progress msg = MS__PROGRESS__INIT;
    msg.job = 1;
    msg.generation = generation;
    msg.step = step;
    msg.step_ms = 10;
    msg.phase = (char *)"training";
    fix_say(conns[0], MS_MSG_PROGRESS, &msg.base);
}

/* Both ranks are lost, and begin again after that step. */
static void go_back(uint64_t generation, uint64_t step)
{
    fix_close(conns[0]);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "waits");
    conns[0] = fix_register("w0", 20 + 2 * generation);
    conns[1] = fix_register("w1", 21 + 2 * generation);
    all_ready_at(generation, 2, step);
    fix_job_is(1, "RUNNING", "");
}

START_TEST(steps_that_are_made_anew_count)
{
    running(2);
    progress(1, 1000);
    for (uint64_t i = 0; i < 3 * MS_RESTARTS_MAX; i++) {
        go_back(2 + i, 0);
        progress_of_fast_steps(2 + i, 500 + 10 * (i % 3)); /* here or there */
    }

    for (uint64_t i = 0; i < MS_RESTARTS_MAX - 1; i++) {
        go_back(20 + i - 9, 400); /* and now none at all: since the last it made some */
    }
}
END_TEST

START_TEST(a_job_that_begins_again_and_makes_no_step_is_ended)
{
    running(2);
    progress(1, 1000);
    for (uint64_t i = 0; i < MS_RESTARTS_MAX; i++) {
        go_back(2 + i, 0);
    }

    fix_close(conns[0]);
    ended(JOB_FAILED, "rank 0 was lost 4 times, and the job did not get beyond step 0");
}
END_TEST

START_TEST(a_step_that_kills_ends_the_job_though_it_goes_back_each_time)
{
    static const uint64_t told[] = {997, 999, 981, 990};
    running(2);
    progress_of_fast_steps(1, told[0]);
    go_back(2, 400);
    progress_of_fast_steps(2, told[1]); /* further: the first says nothing any more */
    go_back(3, 400);
    progress_of_fast_steps(3, 700); /* something else killed it there */
    for (uint64_t i = 2; i < 4; i++) {
        go_back(2 + i, 400);
        progress_of_fast_steps(2 + i, told[i]);
    }
    go_back(6, 400);
    progress_of_fast_steps(6, 998);

    fix_close(conns[0]);
    ended(JOB_FAILED, "rank 0 was lost 4 times, and the job did not get beyond step 999");
}
END_TEST

START_TEST(a_host_that_loses_two_is_set_aside)
{
    start(SCHED_STANDING, 0);
    conns[0] = node_on("a0", 1, "a-good");
    conns[1] = node_on("b0", 2, "b-bad");
    submit(2);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 2, 0);
    progress(1, 1);
    fix_close(conns[1]);
    conns[1] = node_on("b0", 3, "b-bad");
    all_ready_at(2, 2, 1);
    progress(2, 2);
    fix_close(conns[1]);
    ck_assert(fix_logged("host.set_aside"));
    const struct sched_aside_row *row = fix_effect(SCHED_DO_PUT_ASIDE)->aside;
    ck_assert_str_eq(row->key, "#b-bad");
    ck_assert_int_eq(row->until_ms, fix.now.wall_ms + MS_HOST_ASIDE_MS);
    conns[2] = node_on("b1", 4, "b-bad"); /* nobody else is there: it is taken all the same */
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
    const Ms__NodeInfo *info = fix_show_node("b1");
    const time_t end = (time_t)((fix.now.wall_ms + MS_HOST_ASIDE_MS) / 1000);
    char words[96];
    struct tm tm;
    ck_assert_uint_gt(strftime(words, sizeof(words),
                               "set aside until %H:%M UTC, for 60 min: its host lost two ranks",
                               gmtime_r(&end, &tm)),
                      0);
    ck_assert_msg(strstr(info->reason, words) != NULL, "%s", info->reason);

    fix_close(conns[2]);
    conns[2] = node_on("g1", 5, "a-good");
    fix_close(conns[2]);
    conns[3] = node_on("b0", 6, "b-bad");
}
END_TEST

/* A cluster that is stopped and started again, the workers first: nobody saw how they ended. */
START_TEST(what_ended_while_the_scheduler_was_away_is_no_hosts_fault)
{
    load(JOB_RUNNING);
    conns[0] = node_on("w0", 201, "h-id");
    ck_assert(fix_logged("job.rank_lost"));
    ck_assert(!fix_logged("host.set_aside"));
    conns[1] = node_on("w1", 202, "h-id");
    ck_assert(fix_logged("job.rank_lost"));
    ck_assert(!fix_logged("host.set_aside"));
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
    fix_close(conns[1]); /* one that it sees is the first */
    ck_assert(!fix_logged("host.set_aside"));
    conns[1] = node_on("w1", 203, "h-id");
    fix_close(conns[1]);
    ck_assert(fix_logged("host.set_aside"));
}
END_TEST

/* w0 ended before it was ready, and the host of both is set aside: rank 0 finds w1 the better one.
 */
START_TEST(of_two_that_are_asked_last_each_takes_its_own_rank)
{
    start(SCHED_STANDING, 0);
    conns[0] = node_on("w0", 1, "h");
    conns[1] = node_on("w1", 2, "h");
    conns[2] = node_on("w2", 3, "w");
    submit(3);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 3, 0);
    progress(1, 1);
    for (uint64_t generation = 2; generation < 4; generation++) {
        fix_close(conns[1]);
        ck_assert_int_eq(fix_logged("host.set_aside"), generation == 3);
        conns[1] = node_on("w1", 2 + generation, "h");
        all_ready_at(generation, 3, generation - 1);
        progress(generation, generation);
    }
    fix_close(conns[0]);
    conns[0] = node_on("w0", 6, "h");
    fix_close(conns[0]);
    fix_close(conns[1]);

    conns[0] = node_on("w0", 7, "h");
    conns[1] = node_on("w1", 8, "h");

    const Ms__Assign *msg = assigned(0, 5);
    ck_assert_str_eq(msg->members[0]->node_id, "w0");
    ck_assert_str_eq(msg->members[1]->node_id, "w1");
    assigned(1, 5);
}
END_TEST

/* Told of b-bad when it is set aside for so long still, by the wall clock; for how long it is. */
static void restart_with_aside(int64_t left_ms, int64_t is_ms)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    fix_create(&cfg);
    struct sched_aside_row row = {.key = "#b-bad",
                                  .name = "b-bad",
                                  .until_ms = fix.now.wall_ms + left_ms,
                                  .why = "rank 1 was lost"};
    ck_ms_ok(sched_load_aside(fix.s, &row, err));
    ck_ms_fails(sched_load_aside(fix.s, &row, err), MS_E_CONFIG, "aside twice");
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    ck_ms_ok(sched_check(fix.s, err));

    fix_pass(is_ms - 1);
    node_on("b0", 1, "b-bad");
    ck_assert_ptr_nonnull(strstr(fix_show_node("b0")->reason, "the last: rank 1 was lost"));
    fix_pass(1);
    ck_assert_str_eq(fix_effect(SCHED_DO_DROP_ASIDE)->aside->key, "#b-bad");
    ck_assert_str_eq(fix_show_node("b0")->reason, "");
}

START_TEST(a_host_stays_aside_over_a_restart_until_its_time_is_over)
{
    restart_with_aside(600000, 600000);
    restart_with_aside(50 * MS_HOST_ASIDE_MS, MS_HOST_ASIDE_MS); /* the clock was set back */
}
END_TEST

#define KILLED                                                                                     \
    "the peer closed the connection (killed? journalctl -u 'msworker@*' on b-bad says by what)"

static const struct {
    const char *why, *end;
} why_aside[] = {
    {"rank 1 (node b0 on host b-bad) was lost: " KILLED
     "; its log: /var/lib/msched/run/job-41.7/worker_1.log",
     "the last: rank 1 (node b0 on host b-bad) was lost: " KILLED
     "; its log: /var/lib/msched/run/job-41.7/worker_1.log"},
    {"rank 1 (node b0 on host b-bad) was lost: it said that a disk was full, of which it needed "
     "more than there was when it began, and that " KILLED "; its log: /run/41.7/worker_1.log",
     "when it began, and that the peer closed the connection...; its log: /run/41.7/worker_1.log"},
    {"rank 1 was lost: " KILLED "; its log: "
     "/an/installation/has/chosen/a/folder/of/which/the/name/does/not/end/for/a/long/time/and/goes/"
     "on/and/on/until/somebody/reads/its/end/41.7/worker_1.log",
     "/somebody/reads/its/end/41.7/worker_1.log"},
};

/* Of a path in it nothing is cut that leads to the file, and no command is cut in its middle. */
START_TEST(the_words_of_a_host_that_is_aside_lead_to_the_log)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    fix_create(&cfg);
    struct sched_aside_row row = {
        .key = "#b-bad", .name = "b-bad", .until_ms = fix.now.wall_ms + 600000};
    snprintf(row.why, sizeof(row.why), "%s", why_aside[_i].why);
    ck_ms_ok(sched_load_aside(fix.s, &row, err));
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    node_on("b0", 1, "b-bad");

    const char *reason = fix_show_node("b0")->reason;
    const size_t n = strlen(reason);
    const size_t wanted = strlen(why_aside[_i].end);
    ck_assert_uint_le(n, MS_TEXT_MAX);
    ck_assert_msg(n > wanted && strcmp(reason + n - wanted, why_aside[_i].end) == 0, "%s", reason);
    ck_assert_msg(strstr(reason, "the last: rank 1 ") != NULL, "%s", reason);
}
END_TEST

START_TEST(of_idle_nodes_a_good_host_s_is_taken)
{
    start(SCHED_STANDING, 0);
    conns[0] = node_on("a0", 1, "a-good");
    conns[1] = node_on("b0", 2, "b-bad");
    submit(2);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 2, 0);
    fix_close(conns[1]);
    conns[1] = node_on("b0", 3, "b-bad");
    all_ready_at(2, 2, 1);
    node_on("b1", 4, "b-bad");
    node_on("a1", 5, "a-good");

    fix_close(conns[1]);

    ck_assert_str_eq(fix_effect(SCHED_DO_PUT_MEMBER)->member->node_id, "a1");
}
END_TEST

START_TEST(a_cancel_ends_a_job_that_recovers)
{
    running(2);
    fix_close(conns[1]);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");

    fix_cancel(alice, 1, 0);

    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_OK));
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_STOP));
    ended(JOB_CANCELLED, "");
}
END_TEST

START_TEST(a_full_disk_with_room_for_ends_holds_no_round_back)
{
    running(2);
    fix_register("w7", 7);
    sched_refuse_writes(fix.s, "state.db cannot grow", 1);

    fix_close(conns[1]);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
}
END_TEST

/* ... and that it waits for space is no node that does not come. */
START_TEST(a_full_disk_without_room_for_ends_holds_the_round_back)
{
    running_for(2, 5000);
    fix_register("w7", 7);
    sched_refuse_writes(fix.s, "state.db cannot grow", 0);
    fix_close(conns[1]);
    for (size_t i = 0; i < 10; i++) {
        fix_beat(conns[0]);
        fix_pass(1000);
    }
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(1, "RECOVERING", "waits for disk space");

    fix_register("w8", 8); /* w7 said nothing for long */
    sched_refuse_writes(fix.s, "", 1);
    fix_time();

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
}
END_TEST

/* ... and who waited for it has all the time once it is back. */
START_TEST(a_job_that_waited_for_space_waits_for_nodes_from_then_on)
{
    running_for(2, 5000);
    sched_refuse_writes(fix.s, "state.db cannot grow", 0);
    fix_close(conns[1]);
    for (size_t i = 0; i < 10; i++) {
        fix_beat(conns[0]);
        fix_pass(1000);
    }
    sched_refuse_writes(fix.s, "", 1);
    for (size_t i = 0; i < 4; i++) {
        fix_beat(conns[0]);
        fix_pass(1000);
    }

    fix_job_is(1, "RECOVERING", "waits for a node");

    fix_beat(conns[0]);
    fix_pass(1000);
    ended(JOB_FAILED, "no node took rank 1 within 5 s");
}
END_TEST

/* That there is space is known before the clock is. */
START_TEST(it_has_all_that_time_though_the_scheduler_stood_still)
{
    running_for(2, 5000);
    sched_refuse_writes(fix.s, "state.db cannot grow", 0);
    fix_close(conns[1]);
    fix_beat(conns[0]);
    sched_stood_still(fix.s, 4000);
    sched_refuse_writes(fix.s, "", 1);
    fix_pass(4000);
    for (size_t i = 0; i < 4; i++) {
        fix_beat(conns[0]);
        fix_pass(1000);
    }
    fix_job_is(1, "RECOVERING", "waits for a node");
}
END_TEST

/* Its rows would take more than is left for ends. */
START_TEST(a_full_disk_holds_a_large_round_back)
{
    enum { RANKS = 150 };
    static uint64_t ranks[RANKS];
    start(SCHED_STANDING, 0);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        char id[8];
        snprintf(id, sizeof(id), "w%u", rank);
        ranks[rank] = fix_register(id, 1 + rank);
    }
    submit(RANKS);
    fix_plan(ranks[0], 1, 1, FIX_PLAN);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        Ms__RankReady msg = ready_message(1, rank, 0);
        fix_say(ranks[rank], MS_MSG_RANK_READY, &msg.base);
    }
    sched_refuse_writes(fix.s, "state.db cannot grow", 1);
    for (uint32_t rank = 1; rank < RANKS; rank++) {
        fix_close(ranks[rank]);
    }
    for (uint32_t rank = 1; rank < RANKS; rank++) {
        char id[8];
        snprintf(id, sizeof(id), "w%u", rank);
        ranks[rank] = fix_register(id, 1000 + rank);
    }
    fix_pass(1000);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(1, "RECOVERING", "waits for disk space");

    sched_refuse_writes(fix.s, "", 1);
    fix_time();

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), RANKS);
}
END_TEST

START_TEST(nobody_takes_it_in_time)
{
    running_for(2, 5000);
    fix_close(conns[1]);

    fix_pass(5000);

    ended(JOB_FAILED, "no node took rank 1 within 5 s");
}
END_TEST

/* It was lost as often as it may be, and not once more. */
START_TEST(where_nobody_takes_it_nothing_more_is_lost)
{
    running_for(2, 5000);
    progress(1, 7);
    for (uint64_t i = 0; i < MS_RESTARTS_MAX; i++) {
        fix_close(conns[1]);
        if (i + 1 < MS_RESTARTS_MAX) {
            conns[1] = fix_register("w1", 20 + i);
            all_ready_at(2 + i, 2, 7);
            fix_job_is(1, "RUNNING", "");
        }
    }

    fix_pass(5000);

    ended(JOB_FAILED, "no node took rank 1 within 5 s");
}
END_TEST

/* ---- and nobody is -----------------------------------------------------------------------
 */

static void leave_rank(uint64_t generation, uint32_t rank)
{
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = 1;
    msg.generation = generation;
    msg.rank = rank;
    msg.code = MS_E_CANCELLED;
    msg.text = (char *)"its worker was asked to end";
    msg.leaving = 1;
    fix_say(conns[rank], MS_MSG_RANK_DONE, &msg.base);
}

START_TEST(who_is_asked_to_end_counts_against_nobody)
{
    running(2);
    progress(1, 7);
    for (uint64_t i = 0; i < 3 * MS_RESTARTS_MAX; i++) {
        leave_rank(1 + i, 1);
        fix_close(conns[1]);
        conns[1] = fix_register("w1", 20 + i);
        all_ready_at(2 + i, 2, 7);
        fix_job_is(1, "RUNNING", "");
    }
}
END_TEST

START_TEST(a_rank_that_has_spent_its_tries_and_gives_up_ends_the_job)
{
    running(2);
    progress(1, 7);
    for (uint64_t i = 0; i < MS_RESTARTS_MAX; i++) {
        fix_close(conns[1]);
        conns[1] = fix_register("w1", 20 + i);
        all_ready_at(2 + i, 2, 7);
    }
    fix_register("w9", 99);

    fix_done(conns[1], 1, 4, 1, MS_E_CLOSED, "the connection was closed");

    ended(JOB_FAILED, "rank 1 was lost 4 times");
}
END_TEST

START_TEST(a_rank_that_gives_up_is_vacant_at_once)
{
    running(2);
    uint64_t spare = fix_register("w9", 99);

    fix_done(conns[1], 1, 1, 1, MS_E_CLOSED, "the connection was closed");

    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));
    assigned(1, 2); /* its process has let go, and can begin anew */
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
}
END_TEST

START_TEST(who_holds_the_state_does_not_give_way_to_a_newcomer)
{
    running(2);
    uint64_t spare = fix_register("w7", 7);
    uint64_t other = fix_register("w8", 8);
    fix_close(conns[1]);
    conns[1] = spare;
    peer_report(2, 1, 0);
    fix_pass(MS_BLAME_MS);

    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_STOP));
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_STOP));
    const char *text = event_of("job.rank_lost")->text;
    const char *log = strstr(text, "its log: ");
    ck_assert_msg(log != NULL && strstr(log + 1, "its log: ") == NULL, "%s", text);
    conns[1] = other;
    assigned(1, 3);
    assigned(0, 3);
}
END_TEST

START_TEST(a_newcomer_that_fails_after_it_was_ready_is_no_end)
{
    running(2);
    uint64_t spare = fix_register("w7", 7);
    uint64_t other = fix_register("w8", 8);
    fix_close(conns[1]);
    conns[1] = spare;
    ready_at(2, 1, 5);

    fix_done(spare, 1, 2, 1, MS_E_FAILED, "it was not to be");

    conns[1] = other;
    assigned(1, 3);
}
END_TEST

START_TEST(a_newcomer_that_hangs_gives_way_to_another)
{
    running_for(2, 5000);
    uint64_t hangs = fix_register("w7", 7);
    uint64_t spare = fix_register("w8", 8);
    fix_close(conns[1]);
    ck_assert_ptr_nonnull(fix_heard(hangs, MS_MSG_ASSIGN));

    fix_pass(5000);

    ck_assert_ptr_nonnull(fix_heard(hangs, MS_MSG_STOP));
    conns[1] = spare;
    assigned(1, 3);
    assigned(0, 3);
}
END_TEST

START_TEST(idle_nodes_are_kept_for_it_for_a_lease)
{
    running(2);
    uint64_t spare = fix_register("w7", 7);
    fix_close(conns[1]);
    fix_done(spare, 1, 2, 1, MS_E_UNSUPPORTED, "plan line 7: isa avx512_core is not here");
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");
    Ms__Submit msg = fix_job(1);
    fix_say(bob, MS_MSG_SUBMIT, &msg.base);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);

    fix_pass(FIX_LEASE_MS / 2);
    fix_beat(conns[0]);
    fix_beat(spare);
    fix_pass(FIX_LEASE_MS / 2);

    const Ms__Assign *assign = fix_heard(spare, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(assign);
    ck_assert_uint_eq(assign->job, 2);
}
END_TEST

/* The longest pause is over; what that brings is in the last tick. */
static void wait_for_round(uint64_t conn)
{
    for (int i = 0; i < 7 && fix_heard(conn, MS_MSG_ASSIGN) == NULL; i++) {
        fix_beat(conns[0]);
        fix_beat(conn);
        fix_pass(5000);
    }
}

/* A process dies before it is ready, again and again: its node is the last that is asked, with
 * pauses, and it says nothing of the step. */
START_TEST(who_dies_before_it_is_ready_is_asked_last)
{
    running(2);
    fix_close(conns[1]);
    uint64_t bad = fix_register("b0", 30);
    for (uint64_t i = 0; i < MS_STUMBLES_MAX; i++) {
        fix_close(bad);
        fix_job_is(1, "RECOVERING", "waits for a node");
        bad = fix_register("b0", 31 + i);
        if (fix_heard(bad, MS_MSG_ASSIGN) == NULL) {
            wait_for_round(bad);
        }
        ck_assert_ptr_nonnull(fix_heard(bad, MS_MSG_ASSIGN));
        if (i == 4) { /* by now its own node is back, too, and needs no pause */
            fix_close(bad);
            bad = fix_register("b0", 60);
            conns[1] = fix_register("w1", 61);
            ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
            ck_assert_ptr_null(fix_heard(bad, MS_MSG_ASSIGN));
            return;
        }
    }
}
END_TEST

START_TEST(nobody_gets_ready_and_it_is_enough_in_the_end)
{
    running(2);
    fix_close(conns[1]);
    for (uint64_t i = 0; i <= MS_STUMBLES_MAX; i++) {
        conns[1] = fix_register("w1", 30 + i);
        if (fix_heard(conns[1], MS_MSG_ASSIGN) == NULL) {
            wait_for_round(conns[1]);
        }
        fix_close(conns[1]);
    }

    ended(JOB_FAILED, "no process got ready for rank 1, 9 were tried");
}
END_TEST

START_TEST(a_node_in_the_rows_of_two_jobs_is_the_younger_one_s)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    fix_create(&cfg);
    for (uint64_t id = 1; id <= 2; id++) {
        struct sched_job_row row = job_row(id, id == 1 ? JOB_RUNNING : JOB_RECOVERING);
        row.recovery = true;
        ck_ms_ok(sched_load_job(fix.s, &row, err));
        for (uint32_t rank = 0; rank < 2; rank++) {
            struct sched_member_row member = member_row(id, rank);
            snprintf(member.node_id, sizeof(member.node_id), "w%llu",
                     (unsigned long long)(id + rank)); /* w1, w2 and w2, w3 */
            ck_ms_ok(sched_load_member(fix.s, &member, err));
        }
    }

    loaded();

    fix_job_is(1, "RECOVERING", "to come back");
    ck_assert_str_eq(fix_show(1)->ranks[1]->state, "lost");
    ck_assert_str_eq(fix_show(2)->ranks[0]->state, "missing");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_enough");
    TCase *t = tcase_create("blame");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, a_rank_that_others_cannot_reach_is_tried_again_before_it_is_given_up);
    tcase_add_test(t, a_rank_that_others_cannot_reach_moves_the_second_time);
    tcase_add_test(t, a_rank_whose_mesh_ended_for_its_own_reason_tries_again);
    tcase_add_test(t, who_alone_holds_the_state_is_not_given_up_while_it_has_tries);
    tcase_add_test(t, a_newcomer_that_ends_cuts_no_pause_short);
    tcase_add_test(t, who_came_back_with_its_state_is_not_given_up_for_a_newcomer);
    tcase_add_test(t, what_a_rank_says_of_its_own_mesh_comes_before_what_others_say);
    tcase_add_test(t, the_process_that_died_is_known_before_who_complains);
    tcase_add_test(t, what_a_rank_says_of_itself_ends_the_job);
    tcase_add_test(t, a_process_that_leaves_loses_its_rank_only);
    tcase_add_test(t, a_newcomer_that_cannot_serve_is_not_taken_twice);
    tcase_add_test(t, nobody_who_cannot_serve_costs_the_job_a_try);
    tcase_add_test(t, of_a_link_that_is_cut_the_end_moves_whose_side_has_no_node);
    tcase_add_test(t, a_rank_that_is_waited_for_and_complained_of_is_lost_once);
    tcase_add_test(t, a_step_that_is_told_late_counts);
    tcase_add_loop_test(t, a_rank_that_says_no_digest_cannot_be_of_a_job_that_recovers, 0, 2);
    tcase_add_test(t, states_that_differ_end_the_job);
    suite_add_tcase(suite, t);

    t = tcase_create("enough");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, a_rank_that_dies_at_the_same_step_again_and_again_ends_the_job);
    tcase_add_test(t, the_reason_names_each_cause_however_long_they_are);
    tcase_add_test(t, a_cause_that_comes_again_is_said_once);
    tcase_add_loop_test(t, causes_that_differ_in_a_port_are_one, 0, (int)MS_ARRAY_SIZE(alike));
    tcase_add_test(t, causes_of_earlier_steps_are_not_named);
    tcase_add_test(t, a_committed_step_in_between_is_as_good_as_new);
    tcase_add_test(t, steps_that_are_made_anew_count);
    tcase_add_test(t, a_job_that_begins_again_and_makes_no_step_is_ended);
    tcase_add_test(t, a_step_that_kills_ends_the_job_though_it_goes_back_each_time);
    tcase_add_test(t, a_host_that_loses_two_is_set_aside);
    tcase_add_test(t, what_ended_while_the_scheduler_was_away_is_no_hosts_fault);
    tcase_add_test(t, of_two_that_are_asked_last_each_takes_its_own_rank);
    tcase_add_test(t, a_host_stays_aside_over_a_restart_until_its_time_is_over);
    tcase_add_loop_test(t, the_words_of_a_host_that_is_aside_lead_to_the_log, 0,
                        (int)MS_ARRAY_SIZE(why_aside));
    tcase_add_test(t, of_idle_nodes_a_good_host_s_is_taken);
    tcase_add_test(t, a_cancel_ends_a_job_that_recovers);
    tcase_add_test(t, a_full_disk_with_room_for_ends_holds_no_round_back);
    tcase_add_test(t, a_full_disk_without_room_for_ends_holds_the_round_back);
    tcase_add_test(t, a_job_that_waited_for_space_waits_for_nodes_from_then_on);
    tcase_add_test(t, it_has_all_that_time_though_the_scheduler_stood_still);
    tcase_add_test(t, a_full_disk_holds_a_large_round_back);
    tcase_add_test(t, nobody_takes_it_in_time);
    tcase_add_test(t, where_nobody_takes_it_nothing_more_is_lost);
    suite_add_tcase(suite, t);

    t = tcase_create("eyes");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, who_is_asked_to_end_counts_against_nobody);
    tcase_add_test(t, a_rank_that_has_spent_its_tries_and_gives_up_ends_the_job);
    tcase_add_test(t, a_rank_that_gives_up_is_vacant_at_once);
    tcase_add_test(t, who_holds_the_state_does_not_give_way_to_a_newcomer);
    tcase_add_test(t, a_newcomer_that_fails_after_it_was_ready_is_no_end);
    tcase_add_test(t, a_newcomer_that_hangs_gives_way_to_another);
    tcase_add_test(t, idle_nodes_are_kept_for_it_for_a_lease);
    tcase_add_test(t, who_dies_before_it_is_ready_is_asked_last);
    tcase_add_test(t, nobody_gets_ready_and_it_is_enough_in_the_end);
    tcase_add_test(t, a_node_in_the_rows_of_two_jobs_is_the_younger_one_s);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
