/* test_sched_recover_stop.c - a job that recovers is cancelled at the step: the ranks that are left
 * stop where they hold, one of them saves, and no round begins any more */
#include "tests/unit/sched_load_case.h"

enum { RANKS = 3, TOPO_MS = 9000 };
enum { LONG_LEASE_MS = 600000 }; /* of a dynamic cluster */
static uint64_t conns[RANKS];
static uint64_t alice;

static void start_with(int64_t lease_ms)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    cfg.topo_timeout_ms = TOPO_MS;
    cfg.lease_ms = lease_ms;
    fix_create(&cfg);
}

static void start(void)
{
    start_with(FIX_LEASE_MS);
}

static void ready_at(uint64_t generation, uint32_t rank, uint64_t step)
{
    static uint8_t digest[MS_STATE_DIGEST_LEN] = {1, 2, 3};
    Ms__RankReady msg = MS__RANK_READY__INIT;
    msg.state_digest = (ProtobufCBinaryData){sizeof(digest), digest};
    msg.job = 1;
    msg.generation = generation;
    msg.rank = rank;
    msg.log_path = (char *)"/run/worker.log";
    msg.plan_sha256 = (char *)fix_digest(FIX_BITS);
    msg.step = step;
    fix_say(conns[rank], MS_MSG_RANK_READY, &msg.base);
}

static void beat(uint32_t a, uint32_t b)
{
    fix_beat(conns[a]);
    fix_beat(conns[b]);
}

/* Job 1 runs in generation 1 on w0 to w2. */
static void running_with(int64_t lease_ms)
{
    start_with(lease_ms);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        char id[8];
        snprintf(id, sizeof(id), "w%u", rank);
        conns[rank] = fix_register(id, 1 + rank);
    }
    alice = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(RANKS);
    msg.recovery = 1;
    fix_say(alice, MS_MSG_SUBMIT, &msg.base);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ready_at(1, rank, 0);
    }
    fix_job_is(1, "RUNNING", "");
}

static void running(void)
{
    running_with(FIX_LEASE_MS);
}

/* Another process is in the place of that of the rank, which is dead then. */
static void is_replaced(uint32_t rank)
{
    static uint64_t n;
    char id[8];
    snprintf(id, sizeof(id), "w%u", rank);
    conns[rank] = fix_register(id, 900 + ++n);
}

static void dies(uint32_t rank)
{
    fix_close(conns[rank]);
    is_replaced(rank);
}

/* It recovers, for that rank is lost, and alice asks for its end. */
static void cancelled_without(uint32_t lost)
{
    running();
    fix_close(conns[lost]);
    fix_job_is(1, "RECOVERING", "waits for a node");
    fix_cancel(alice, 1, 1);
    is_replaced(lost);
}

static void stopped_at(uint64_t generation, uint32_t rank, uint64_t step, const char *kept)
{
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = 1;
    msg.generation = generation;
    msg.rank = rank;
    msg.stopped = 1;
    msg.steps = step;
    msg.text = (char *)kept;
    fix_say(conns[rank], MS_MSG_RANK_DONE, &msg.base);
}

static void stopped(uint64_t generation, uint32_t rank, const char *kept)
{
    stopped_at(generation, rank, 0, kept);
}

static void hears_stop(uint32_t rank, uint64_t generation, bool saves)
{
    const Ms__Stop *stop = fix_heard(conns[rank], MS_MSG_STOP);
    ck_assert_msg(stop != NULL, "rank %u hears nothing", rank);
    ck_assert_int_eq(stop->at_step, 1);
    ck_assert_int_eq(stop->saves, saves);
    ck_assert_uint_eq(stop->generation, generation);
}

static bool stands(uint32_t rank)
{
    const Ms__Stop *stop = fix_heard(conns[rank], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    return stop->stands;
}

static void ended(const char *words)
{
    const struct sched_job_row *row = fix_stored(1);
    ck_assert_ptr_nonnull(row);
    ck_assert_int_eq(row->state, JOB_CANCELLED);
    ck_assert_msg(strstr(row->reason, words) != NULL, "%s", row->reason);
}

START_TEST(the_ranks_that_are_left_stop_and_rank_0_saves)
{
    cancelled_without(1);

    hears_stop(0, 1, false);
    hears_stop(2, 1, false);
    ck_assert_ptr_null(fix_heard(alice, MS_MSG_OK)); /* it waits */
    fix_job_is(1, "RECOVERING", "cancelled by alice; waits for 2 of 3 ranks to finish the step");
    stopped(1, 2, "");
    ck_assert_ptr_null(fix_stored(1));
    stopped_at(1, 0, 110, "step 110 is saved: /jobs/1/checkpoints/x-110.json");

    ended("cancelled by alice; rank 0 (node w0) says: step 110 is saved: /jobs");
    ck_assert_uint_eq(fix_stored(1)->steps, 110);
    const Ms__Ok *ok = fix_heard(alice, MS_MSG_OK);
    ck_assert_ptr_nonnull(ok);
    ck_assert_ptr_nonnull(strstr(ok->text, "step 110 is saved"));
    ck_assert_int_eq(((const Ms__Stop *)fix_heard(conns[2], MS_MSG_STOP))->at_step, 0);
}
END_TEST

START_TEST(the_lowest_that_is_left_saves_for_rank_0)
{
    cancelled_without(0);

    hears_stop(1, 1, true);
    hears_stop(2, 1, false);

    dies(1); /* ... and the next one for that */
    hears_stop(2, 1, true);
    stopped(1, 2, "step 9 is saved: x-9.json");
    ended("rank 2 (node w2) says: step 9 is saved");
}
END_TEST

START_TEST(no_round_begins_any_more)
{
    cancelled_without(1);

    fix_register("w7", 7); /* would take it */

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(1, "RECOVERING", "cancelled by alice");
    stopped(1, 0, "");
    stopped(1, 2, "");
    ended("cancelled by alice");
}
END_TEST

START_TEST(a_round_that_is_out_goes_on_to_its_step)
{
    running();
    uint64_t spare = fix_register("w7", 7);
    fix_close(conns[1]);
    conns[1] = spare;

    fix_cancel(alice, 1, 1);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        hears_stop(rank, 2, false);
    }
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ready_at(2, rank, 110);
    }
    ck_assert_uint_eq(fix_count(MS_MSG_START), RANKS);

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        stopped(2, rank, "");
    }
    ended("cancelled by alice");
}
END_TEST

/* What was complained of before the cancel evicts nobody, and is all that its Start waits for. */
START_TEST(a_round_that_is_out_is_started_once_its_complaint_is_judged)
{
    running();
    fix_close(conns[1]);
    conns[1] = fix_register("w1", 11);
    ready_at(2, 1, 0);
    Ms__PeerReport report = MS__PEER_REPORT__INIT;
    report.job = 1;
    report.generation = 2;
    report.rank = 1;
    report.peer = 2;
    report.text = (char *)"no bytes for 5 s";
    fix_say(conns[1], MS_MSG_PEER_REPORT, &report.base);
    ready_at(2, 0, 0);
    ready_at(2, 2, 0);
    fix_cancel(alice, 1, 1);
    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_START));

    fix_pass(MS_BLAME_MS);

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ck_assert_ptr_nonnull(fix_heard(conns[rank], MS_MSG_START));
    }
    fix_job_is(1, "RUNNING", "to finish the step");
}
END_TEST

static uint64_t comes_back_at(uint64_t generation, uint32_t rank, uint64_t incarnation,
                              uint64_t step)
{
    char id[8];
    snprintf(id, sizeof(id), "w%u", rank);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, incarnation);
    msg.job = 1;
    msg.generation = generation;
    msg.rank = rank;
    msg.step = step;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

static uint64_t comes_back_in(uint64_t generation, uint32_t rank, uint64_t incarnation)
{
    return comes_back_at(generation, rank, incarnation, 0);
}

/* Nobody is gone any more: the round that was due after it would have been one more. */
START_TEST(a_round_that_all_are_back_for_is_started)
{
    running();
    fix_close(conns[1]);
    conns[1] = fix_register("w1", 13);
    const uint64_t generation = 2;
    ready_at(generation, 0, 0);
    ready_at(generation, 2, 0);
    sched_refuse_writes(fix.s, "the disk is full", 0); /* the next one has to wait */
    fix_close(conns[1]);
    conns[1] = comes_back_in(generation, 1, 13);
    ready_at(generation, 1, 0);
    fix_job_is(1, "RECOVERING", "waits for disk space");
    sched_refuse_writes(fix.s, "", 1);

    fix_cancel(alice, 1, 1);

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ck_assert(!stands(rank));
        ck_assert_ptr_nonnull(fix_heard(conns[rank], MS_MSG_START));
    }
}
END_TEST

static void cancelled_in_generation_3(void)
{
    running();
    dies(1);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ready_at(2, rank, 0);
    }
    fix_job_is(1, "RUNNING", "");
    dies(1);
    fix_cancel(alice, 1, 1);
}

/* It said that it knew an older one, and where it is to stop in that it still has its rank. */
START_TEST(who_is_to_stop_in_an_older_generation_may_know_a_newer_one)
{
    cancelled_in_generation_3();
    for (uint64_t generation = 1; generation <= 3; generation++) {
        conns[2] = comes_back_in(generation, 2, 3);

        hears_stop(2, generation, false);
        ck_assert_int_eq(fix_logged("job.rank_lost job=1 generation=3 rank=2"), 0);
    }
}
END_TEST

/* Rank 0 may be back, and until then nobody is told anything. */
START_TEST(who_knows_a_newer_generation_is_heard_in_it)
{
    cancelled_in_generation_3();
    conns[2] = comes_back_in(1, 2, 3);
    hears_stop(2, 1, false);
    fix_close(conns[0]);
    conns[2] = comes_back_in(2, 2, 3);

    stopped(2, 2, "");
    conns[0] = comes_back_at(3, 0, 1, 9);

    hears_stop(0, 3, false);
    ck_assert_ptr_null(fix_heard(conns[2], MS_MSG_STOP)); /* it has */
}
END_TEST

/* Its own Start may be lost, and the others have had theirs. */
START_TEST(who_comes_back_to_a_round_that_was_started_hears_that_no_start_comes)
{
    running();
    sched_refuse_writes(fix.s, "the disk is full", 0);
    fix_close(conns[1]);
    conns[1] = comes_back_in(1, 1, 2);
    fix_job_is(1, "RECOVERING", "waits for disk space");
    sched_refuse_writes(fix.s, "", 0);

    fix_cancel(alice, 1, 1);

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        hears_stop(rank, 1, false);
        ck_assert(stands(rank));
    }
}
END_TEST

START_TEST(who_was_done_while_the_others_stood_still_is_asked_again)
{
    running();
    fix_close(conns[1]);
    fix_done(conns[2], 1, 1, 2, MS_OK, "");
    fix_job_is(1, "RECOVERING", "waits for a node");
    fix_cancel(alice, 1, 1);
    is_replaced(1);

    hears_stop(0, 1, false);
    hears_stop(2, 1, false);
    stopped_at(1, 0, 120, "step 120 is saved: x-120.json");
    fix_done(conns[2], 1, 1, 2, MS_OK, ""); /* it says so again */

    ended("step 120 is saved");
}
END_TEST

START_TEST(who_waits_for_the_start_of_a_round_hears_that_none_comes)
{
    running();
    uint64_t spare = fix_register("w7", 7);
    fix_close(conns[1]);
    conns[1] = spare;
    ready_at(2, 0, 110);
    fix_cancel(alice, 1, 1);
    ck_assert(!stands(0) && !stands(2)); /* it may still come */

    fix_close(conns[1]);
    ck_assert(stands(0) && stands(2));
    stopped(2, 0, "step 110 is saved: x-110.json");
    stopped(2, 2, "");
    ended("step 110 is saved");
}
END_TEST

START_TEST(who_stops_in_a_round_cuts_it_off_for_all)
{
    running();
    uint64_t spare = fix_register("w7", 7);
    fix_close(conns[1]);
    conns[1] = spare;
    ready_at(2, 0, 110);
    fix_cancel(alice, 1, 1);

    stopped(2, 2, ""); /* it lost a peer that others have */
    ck_assert(stands(0) && stands(1));
    stopped(2, 1, "");
    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_STOP)); /* once is enough */
    stopped(2, 0, "");
    ended("cancelled by alice");
}
END_TEST

START_TEST(who_was_done_while_the_others_stood_still_is_free_at_the_end)
{
    running();
    fix_close(conns[1]);
    fix_done(conns[2], 1, 1, 2, MS_OK, "");
    fix_cancel(alice, 1, 0);
    ended("cancelled by alice");

    Ms__Submit msg = fix_job(1);
    fix_say(alice, MS_MSG_SUBMIT, &msg.base);

    ck_assert_ptr_nonnull(fix_heard(conns[2], MS_MSG_ASSIGN));
}
END_TEST

START_TEST(a_rank_that_is_lost_while_all_stop_is_over)
{
    running();
    fix_cancel(alice, 1, 1);
    stopped(1, 2, "");

    dies(0);
    hears_stop(1, 1, true);
    stopped(1, 1, "step 5 is saved: x-5.json");

    ended("step 5 is saved");
}
END_TEST

static bool is_ended(void)
{
    const struct sched_job_row *row = fix_stored(1);
    return row != NULL && row->state == JOB_CANCELLED;
}

/* The time of all that are lost is over. */
static void none_comes(void)
{
    for (int half = 0; half < 2; half++) {
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            fix_beat(conns[rank]);
        }
        fix_pass(MS_UNHEARD_MS / 2);
    }
}

static void all_close(void)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        fix_close(conns[rank]);
    }
}

/* With all that it held, as after a connection that was reset, or a lease that it slept through. */
static void comes_back_with(uint32_t rank, uint64_t step)
{
    conns[rank] = comes_back_at(1, rank, 1 + rank, step);
}

/* _i: it had stopped before it was lost, or not. */
START_TEST(who_comes_back_before_the_end_may_be_the_one_that_saves)
{
    running();
    fix_cancel(alice, 1, 1);
    if (_i == 1) {
        stopped_at(1, 1, 5, "");
    }
    fix_close(conns[1]);
    ck_assert_int_eq(fix_logged("job.rank_lost job=1 generation=1 rank=1"), 1);

    comes_back_with(1, 5);

    ck_assert_int_eq(fix_logged("job.rank_back job=1 rank=1"), 1);
    hears_stop(1, 1, false);
    ck_assert(stands(1));
    stopped_at(1, 1, 5, "");
    stopped_at(1, 2, 4, "");
    ck_assert_ptr_null(fix_stored(1));
    dies(0);
    hears_stop(1, 1, true);
    stopped_at(1, 1, 5, "step 5 is saved: x-5.json");
    ended("rank 1 (node w1) says: step 5 is saved");
}
END_TEST

/* Of a round that was out the others were told that no Start comes, and obey. */
START_TEST(who_comes_back_after_the_others_were_told_to_stand_is_not_waited_for)
{
    running();
    const uint64_t spare = fix_register("w7", 7);
    fix_close(conns[1]);
    conns[1] = spare;
    ready_at(2, 0, 110);
    ready_at(2, 1, 110);
    fix_cancel(alice, 1, 1);
    ck_assert(!stands(0));
    fix_close(conns[2]);
    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_STOP)); /* it may be back at once */
    none_comes();
    ck_assert(stands(0) && stands(1));

    conns[2] = comes_back_at(2, 2, 3, 110);
    ck_assert(stands(2));
    ready_at(2, 2, 110);

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ck_assert_ptr_null(fix_heard(conns[rank], MS_MSG_START));
    }
    fix_job_is(1, "RECOVERING", "cancelled by alice");
}
END_TEST

static bool is_asked_to_save(uint32_t rank)
{
    const Ms__Stop *stop = fix_heard(conns[rank], MS_MSG_STOP);
    return stop != NULL && stop->saves;
}

/* Its connection is reset again and again, and the disk of rank 0 hangs. */
START_TEST(who_is_lost_again_and_again_gives_the_others_no_new_time)
{
    enum { EACH_MS = 5000 };
    int64_t ms = 0;
    running_with(LONG_LEASE_MS);
    fix_cancel(alice, 1, 1);
    stopped_at(1, 2, 5, "");
    stopped_at(1, 1, 5, "");
    for (bool is_asked = false; !is_asked; ms += EACH_MS) {
        ck_assert_int_lt(ms, 2 * MS_CANCEL_GRACE_MS);
        beat(0, 2);
        fix_close(conns[1]);
        comes_back_with(1, 5);
        stopped_at(1, 1, 5, "");
        fix_pass(EACH_MS);
        is_asked = is_asked_to_save(1) || is_asked_to_save(2);
    }
}
END_TEST

/* One firewall that restarts. _i: before the cancel, after it, or while rank 0 saves. */
START_TEST(where_all_connections_are_reset_who_comes_back_saves)
{
    running();
    if (_i > 0) {
        fix_cancel(alice, 1, 1);
    }
    if (_i == 2) {
        stopped_at(1, 1, 5, "");
        stopped_at(1, 2, 5, "");
    }
    all_close();
    if (_i == 0) {
        fix_cancel(alice, 1, 1);
    }
    ck_assert(!is_ended());
    fix_job_is(1, "RECOVERING",
               "cancelled by alice; waits up to 12 s for rank 0 (node w0 on host h), of which a "
               "connection ended, to come back");
    fix_pass(MS_UNHEARD_MS - 1);
    comes_back_with(1, 5);
    comes_back_with(2, 5);
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));

    fix_pass(1);

    hears_stop(1, 1, true);
    hears_stop(2, 1, false);
    stopped_at(1, 2, 5, "");
    fix_beat(conns[1]);
    fix_pass(FIX_LEASE_MS - 1); /* it has all the time */
    stopped_at(1, 1, 5, "step 5 is saved: x-5.json");
    ended("rank 1 (node w1) says: step 5 is saved");
}
END_TEST

START_TEST(where_all_connections_are_reset_rank_0_may_save)
{
    running();
    fix_cancel(alice, 1, 1);
    all_close();

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        comes_back_with(rank, 5);
    }

    hears_stop(0, 1, false);
    hears_stop(1, 1, false);
    stopped_at(1, 0, 5, "step 5 is saved: x-5.json");
    stopped_at(1, 1, 5, "");
    stopped_at(1, 2, 5, "");
    ended("rank 0 (node w0) says: step 5 is saved");
}
END_TEST

/* _i: their time is over, or other processes are in their place. */
START_TEST(who_does_not_come_back_is_not_waited_for)
{
    running();
    fix_cancel(alice, 1, 1);
    stopped_at(1, 1, 5, "");
    all_close();
    ck_assert(!is_ended());
    for (uint32_t rank = 0; _i == 1 && rank < RANKS; rank++) {
        char id[8];
        snprintf(id, sizeof(id), "w%u", rank);
        ck_assert(!is_ended());
        fix_register(id, 11 + rank);
    }
    if (_i == 0) {
        fix_pass(MS_UNHEARD_MS);
    }
    ended("nothing is saved: no rank is left");
}
END_TEST

/* Who is last of them may be gone: the others have no more time than they have. */
START_TEST(who_comes_anew_leaves_the_others_what_is_left_of_their_time)
{
    running();
    fix_cancel(alice, 1, 1);
    fix_close(conns[0]);
    fix_close(conns[1]);
    fix_beat(conns[2]);
    fix_pass(FIX_LEASE_MS - 1);
    fix_close(conns[2]);
    fix_pass(1);
    fix_register("w2", 13);
    ck_assert(!is_ended());
    fix_pass(MS_UNHEARD_MS - FIX_LEASE_MS);
    ended("nothing is saved");
}
END_TEST

START_TEST(who_is_reset_again_and_again_is_not_waited_for_for_ever)
{
    enum { EACH_MS = 4000 };
    int64_t ms = 0;
    running_with(LONG_LEASE_MS);
    fix_cancel(alice, 1, 1);
    all_close();
    for (; !is_ended(); ms += EACH_MS) {
        ck_assert_int_lt(ms, 2 * MS_CANCEL_GRACE_MS);
        comes_back_with(1, 5);
        fix_beat(conns[1]);
        fix_close(conns[1]);
        fix_pass(EACH_MS);
    }
    ck_assert_int_ge(ms, MS_CANCEL_GRACE_MS);
    ended("nothing is saved: no rank is left");
}
END_TEST

/* _i: rank 0 comes with all, and another one saves in its place already. */
START_TEST(who_comes_back_with_nothing_is_let_go)
{
    const uint32_t rank = _i == 0 ? 1 : 0;
    running();
    fix_cancel(alice, 1, 1);
    fix_close(conns[rank]);
    if (_i == 1) {
        none_comes();
        hears_stop(1, 1, true);
    }

    comes_back_with(rank, _i == 0 ? 0 : 5);

    ck_assert_int_eq(fix_logged("job.rank_back"), 0);
    const Ms__Stop *stop = fix_heard(conns[rank], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->at_step, 0);
    ck_assert_int_eq(stop->code, MS_E_CANCELLED);
    ck_assert_str_eq(stop->text, "cancelled by alice; its other ranks stop without this one");
    if (_i == 0) { /* they waited for it */
        hears_stop(0, 1, false);
        hears_stop(2, 1, false);
    }
}
END_TEST

/* They trusted in rank 0, of whose death nobody knew. */
static void all_stopped_but_rank_0(uint64_t step_1, uint64_t step_2)
{
    running();
    fix_cancel(alice, 1, 1);
    stopped_at(1, 1, step_1, "");
    stopped_at(1, 2, step_2, "");
    dies(0);
}

START_TEST(where_rank_0_is_lost_after_all_have_stopped_one_is_asked_to_save)
{
    all_stopped_but_rank_0(5, 5);

    hears_stop(1, 1, true);
    ck_assert_ptr_null(fix_heard(conns[2], MS_MSG_STOP));
    fix_job_is(1, "RECOVERING", "waits for rank 1 (node w1 on host h) to save its step");
    stopped_at(1, 1, 5, ""); /* what it had said, after a reconnect */
    ck_assert_ptr_null(fix_stored(1));
    stopped_at(1, 1, 5, "step 5 is saved: x-5.json");

    ended("cancelled by alice; rank 1 (node w1) says: step 5 is saved");
}
END_TEST

START_TEST(weights_come_from_whoever_saved_them)
{
    Ms__Fetch msg = MS__FETCH__INIT;
    all_stopped_but_rank_0(5, 5);
    stopped_at(1, 1, 5, "step 5 is saved: x-5.json");
    ended("rank 1 (node w1) says: step 5 is saved");

    msg.job = 1;
    msg.what = MS_FETCH_WEIGHTS;
    fix_say(alice, MS_MSG_FETCH, &msg.base);
    const Ms__FetchGrant *grant = fix_heard(conns[1], MS_MSG_FETCH_GRANT);
    ck_assert_ptr_nonnull(grant);
    ck_assert_uint_eq(grant->rank, 1);

    fix_close(conns[0]);
    msg.what = MS_FETCH_METRICS; /* rank 0 wrote them */
    fix_say(alice, MS_MSG_FETCH, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_ERROR));
}
END_TEST

START_TEST(who_is_asked_to_save_after_its_end_has_all_the_time)
{
    running_with(2 * (int64_t)MS_CANCEL_GRACE_MS);
    fix_cancel(alice, 1, 1);
    stopped_at(1, 1, 7, "");
    stopped_at(1, 2, 7, "");
    fix_pass(MS_CANCEL_GRACE_MS - 1);
    dies(0);
    hears_stop(1, 1, true);

    beat(1, 2);
    fix_pass(MS_CANCEL_GRACE_MS - 1);

    stopped_at(1, 1, 7, "step 7 is saved: x-7.json");
    ended("rank 1 (node w1) says: step 7 is saved");
}
END_TEST

START_TEST(of_those_that_stopped_the_furthest_saves)
{
    all_stopped_but_rank_0(5, 6);
    hears_stop(2, 1, true);
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));

    dies(2); /* ... and the next one for that */
    hears_stop(1, 1, true);
    stopped_at(1, 1, 5, "step 5 is saved: x-5.json");
    ended("step 5 is saved");
}
END_TEST

START_TEST(who_saved_an_older_step_than_another_holds_is_not_enough)
{
    running();
    fix_cancel(alice, 1, 1);
    stopped_at(1, 1, 6, "");
    dies(0);
    hears_stop(2, 1, true);
    stopped_at(1, 2, 5, "step 5 is saved: x-5.json");
    hears_stop(1, 1, true);
    stopped_at(1, 1, 6, "step 6 is saved: x-6.json");
    ended("rank 1 (node w1) says: step 6 is saved");
}
END_TEST

static void fails(uint32_t rank, const char *text)
{
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = msg.generation = 1;
    msg.rank = rank;
    msg.code = MS_E_IO;
    msg.text = (char *)text;
    fix_say(conns[rank], MS_MSG_RANK_DONE, &msg.base);
}

START_TEST(who_cannot_save_after_its_end_leaves_it_to_the_next)
{
    all_stopped_but_rank_0(5, 5);
    fails(1, "No space left on device");
    hears_stop(2, 1, true);
    stopped_at(1, 2, 5, "step 5 is saved: x-5.json");
    ended("rank 2 (node w2) says: step 5 is saved");
}
END_TEST

START_TEST(where_rank_0_cannot_save_another_one_does)
{
    running();
    fix_cancel(alice, 1, 1);
    stopped_at(1, 1, 5, "");
    stopped_at(1, 2, 5, "");
    fails(0, "x-5.safetensors: No space left on device");
    hears_stop(1, 1, true);
    stopped_at(1, 1, 5, "step 5 is saved: x-5.json");
    ended("rank 1 (node w1) says: step 5 is saved");
}
END_TEST

START_TEST(where_rank_0_is_a_step_behind_another_one_saves)
{
    cancelled_without(2);
    stopped_at(1, 1, 11, "");
    stopped_at(1, 0, 10, "step 10 is saved: x-10.json");
    hears_stop(1, 1, true);
    stopped_at(1, 1, 11, "step 11 is saved: x-11.json");
    ended("rank 1 (node w1) says: step 11 is saved");
}
END_TEST

/* _i: it comes back, or does not. */
START_TEST(who_is_a_step_ahead_and_reset_as_it_saves_is_waited_for)
{
    cancelled_without(2);
    stopped_at(1, 1, 11, "");
    stopped_at(1, 0, 10, "step 10 is saved: x-10.json");
    hears_stop(1, 1, true);

    fix_close(conns[1]);
    ck_assert(!is_ended());
    fix_job_is(1, "RECOVERING", "waits up to 12 s for rank 1 (node w1 on host h), of which");
    if (_i == 1) {
        fix_beat(conns[0]);
        fix_pass(MS_UNHEARD_MS / 2);
        fix_beat(conns[0]);
        fix_pass(MS_UNHEARD_MS / 2);
        ended("rank 0 (node w0) says: step 10 is saved");
        return;
    }
    comes_back_with(1, 11);

    hears_stop(1, 1, false);
    stopped_at(1, 1, 11, "");
    hears_stop(1, 1, true);
    stopped_at(1, 1, 11, "step 11 is saved: x-11.json");
    ended("rank 1 (node w1) says: step 11 is saved");
}
END_TEST

/* _i: rank 2 is reset and back while rank 1 saves, or is asked to stop when that is done. */
START_TEST(nobody_saves_beside_one_that_was_asked)
{
    running();
    fix_cancel(alice, 1, 1);
    stopped_at(1, 1, 6, "");
    if (_i == 0) {
        stopped_at(1, 2, 5, "");
    }
    dies(0);
    hears_stop(_i == 0 ? 1 : 2, 1, true);
    if (_i == 0) {
        fix_close(conns[2]);
        comes_back_with(2, 5);
        hears_stop(2, 1, false);
        stopped_at(1, 2, 5, "");
        stopped_at(1, 1, 6, "step 6 is saved: x-6.json");
        ended("rank 1 (node w1) says: step 6 is saved");
        return;
    }
    stopped_at(1, 2, 6, "step 6 is saved: x-6.json");
    ended("rank 2 (node w2) says: step 6 is saved");
}
END_TEST

START_TEST(nobody_saves_beside_what_is_saved)
{
    running();
    fix_cancel(alice, 1, 1);
    dies(0);
    hears_stop(1, 1, true);
    stopped_at(1, 1, 6, "step 6 is saved: x-6.json");
    fix_close(conns[2]);
    comes_back_with(2, 5);
    hears_stop(2, 1, false);
    stopped_at(1, 2, 5, "");
    ended("rank 1 (node w1) says: step 6 is saved");
}
END_TEST

/* It came too late, another one saves in its place, and all are reset. */
START_TEST(who_was_stood_in_for_has_no_rank_while_that_one_may_be_back)
{
    running();
    fix_cancel(alice, 1, 1);
    fix_close(conns[0]);
    none_comes();
    hears_stop(1, 1, true);
    fix_close(conns[1]);
    fix_close(conns[2]);

    comes_back_with(0, 5);

    ck_assert_int_eq(fix_logged("job.rank_back"), 0);
    comes_back_with(2, 5);
    comes_back_with(1, 5);
    hears_stop(1, 1, true);
    stopped_at(1, 2, 5, "");
    stopped_at(1, 1, 5, "step 5 is saved: x-5.json");
    ended("rank 1 (node w1) says: step 5 is saved");
}
END_TEST

/* All but 1 s of the grace is over. */
START_TEST(one_reset_as_the_grace_ends_has_the_time_to_come_back)
{
    enum { LEFT_MS = 1000, BEAT_MS = 1000 };
    running_with(LONG_LEASE_MS);
    fix_cancel(alice, 1, 1);
    stopped_at(1, 1, 5, "");
    stopped_at(1, 2, 5, "");
    for (int64_t ms = 0; ms < MS_CANCEL_GRACE_MS - LEFT_MS; ms += BEAT_MS) {
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            fix_beat(conns[rank]);
        }
        fix_pass(BEAT_MS);
    }
    fix_close(conns[0]); /* as it saves */
    fix_pass(MS_UNHEARD_MS - LEFT_MS);
    ck_assert(!is_ended());
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));

    comes_back_with(0, 5);
    hears_stop(0, 1, false);
    stopped_at(1, 0, 5, "step 5 is saved: x-5.json");
    ended("rank 0 (node w0) says: step 5 is saved");
}
END_TEST

/* Another one was silent for all of the grace, and lost with it. */
START_TEST(one_reset_behind_a_grace_has_the_time_to_come_back)
{
    running_with(LONG_LEASE_MS);
    fix_cancel(alice, 1, 1);
    stopped_at(1, 1, 5, "");
    beat(0, 1);
    fix_pass(MS_CANCEL_GRACE_MS);
    fix_beat(conns[0]);
    fix_close(conns[0]); /* as it saves */
    fix_pass(MS_UNHEARD_MS - 1);
    ck_assert(!is_ended());

    comes_back_with(0, 5);
    hears_stop(0, 1, false);
    stopped_at(1, 0, 5, "step 5 is saved: x-5.json");
    ended("rank 0 (node w0) says: step 5 is saved");
}
END_TEST

/* It had no rank yet, for another one lacks its node, and leaves: who was lost there before it is
 * dead all the same. */
START_TEST(who_was_replaced_is_not_on_its_way_when_that_one_leaves)
{
    running();
    fix_close(conns[1]);
    fix_close(conns[2]);
    is_replaced(2);
    fix_job_is(1, "RECOVERING", "waits for a node");
    fix_cancel(alice, 1, 1);
    fix_close(conns[2]);
    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_STOP));
    is_replaced(1);
    hears_stop(0, 1, false);
    stopped_at(1, 0, 5, "step 5 is saved: x-5.json");
    ended("rank 0 (node w0) says: step 5 is saved");
}
END_TEST

/* Rank 0 is lost, the disk of who saves for it hangs, and the third one is reset, and is again as
 * their time ends. */
START_TEST(where_a_disk_hangs_and_another_is_reset_twice_it_ends)
{
    enum { EACH_MS = 5000 };
    int64_t ms = 0;
    running_with(LONG_LEASE_MS);
    fix_cancel(alice, 1, 1);
    stopped_at(1, 1, 5, "");
    stopped_at(1, 2, 5, "");
    dies(0);
    hears_stop(1, 1, true);
    fix_close(conns[2]);
    comes_back_with(2, 5);
    stopped_at(1, 2, 5, "");
    fix_beat(conns[1]);
    fix_pass(MS_CANCEL_GRACE_MS - EACH_MS);
    fix_beat(conns[1]);
    fix_close(conns[2]);
    fix_pass(EACH_MS);

    comes_back_with(2, 5);
    for (; !is_ended(); ms += EACH_MS) { /* and hangs at the same disk */
        ck_assert_int_le(ms, 2 * MS_CANCEL_GRACE_MS);
        beat(1, 2);
        fix_pass(EACH_MS);
    }
}
END_TEST

START_TEST(what_was_saved_is_said_where_another_does_not_stop)
{
    running_with(LONG_LEASE_MS);
    fix_cancel(alice, 1, 1);
    stopped_at(1, 0, 5, "step 5 is saved: x-5.json");
    beat(1, 2);
    fix_pass(MS_CANCEL_GRACE_MS);
    ended("the step did not end within 30 s; rank 0 (node w0) says: step 5 is saved");
}
END_TEST

START_TEST(what_a_finished_rank_0_saved_is_said)
{
    running();
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = msg.generation = 1;
    msg.steps = 100;
    msg.weights_sha256 = (char *)fix_digest(FIX_BITS);
    for (msg.rank = 0; msg.rank < 2; msg.rank++) {
        fix_say(conns[msg.rank], MS_MSG_RANK_DONE, &msg.base);
    }
    fix_close(conns[2]);
    fix_cancel(alice, 1, 1);
    ended("rank 0 (node w0) had made the last step, and saved it");
}
END_TEST

static void made_the_last_step(uint64_t generation)
{
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = 1;
    msg.generation = generation;
    msg.steps = 100;
    msg.weights_sha256 = (char *)fix_digest(FIX_BITS);
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);
}

START_TEST(what_rank_0_saved_is_said_where_it_was_reset_and_says_so_again)
{
    running();
    fix_close(conns[1]);
    fix_cancel(alice, 1, 1);
    made_the_last_step(1);
    fix_close(conns[0]);
    conns[0] = comes_back_at(1, 0, 1, 100);

    made_the_last_step(1);
    stopped_at(1, 2, 100, "");

    ended("cancelled by alice; rank 0 (node w0) had made the last step, and saved it");
}
END_TEST

/* It was to stop where it stood, and that is at the end. */
START_TEST(where_rank_0_stands_at_the_last_step_nobody_waits_for_another_one)
{
    running();
    dies(1);
    ready_at(2, 0, 100);
    fix_cancel(alice, 1, 1);
    fix_close(conns[1]);
    ck_assert(stands(0));
    made_the_last_step(2);

    fix_close(conns[2]);

    ended("cancelled by alice; rank 0 (node w0) had made the last step, and saved it");
}
END_TEST

/* They stand at the last step, or before it, and have not said what its weights are. */
START_TEST(who_stood_at_the_last_step_that_rank_0_cannot_save_is_asked_to)
{
    static const char *const words[] = {
        "rank 1 (node w1) says: step 99 is saved: x-99.json; the weights of step 100 are not "
        "saved: rank 0 (node w0) says: z: No space left on device",
        "rank 1 (node w1) says: step 100 is saved: x-100.json"};
    const uint64_t step = 99 + (uint64_t)_i;
    char kept[64];
    snprintf(kept, sizeof(kept), "step %llu is saved: x-%llu.json", (unsigned long long)step,
             (unsigned long long)step);
    running();
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = msg.generation = 1;
    msg.steps = 100;
    msg.code = MS_E_IO;
    msg.text = (char *)"z: No space left on device";
    msg.weights_sha256 = (char *)fix_digest(FIX_BITS);
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);
    fix_cancel(alice, 1, 1);

    stopped_at(1, 1, step, "");
    stopped_at(1, 2, step, "");

    hears_stop(0, 1, true); /* there may be room by now */
    fails(0, "z: No space left on device");

    hears_stop(1, 1, true);
    stopped_at(1, 1, step, kept);
    ended(words[_i]);
    ck_assert_int_eq(strstr(fix_stored(1)->reason, " are not saved") != NULL, step < 100);
}
END_TEST

/* The others wait for who is lost, and need not any more. */
START_TEST(where_rank_0_makes_the_last_step_the_others_hear_at_once_that_it_stops)
{
    running();
    fix_close(conns[2]);
    fix_cancel(alice, 1, 1);
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));

    made_the_last_step(1);

    hears_stop(1, 1, false);
    stopped_at(1, 1, 99, "");
    ended("rank 0 (node w0) had made the last step, and saved it");
}
END_TEST

START_TEST(where_nobody_can_save_it_is_said_why)
{
    running();
    fix_cancel(alice, 1, 1);
    fails(0, "x-5.safetensors: No space left on device");
    stopped_at(1, 1, 5, "");
    stopped_at(1, 2, 5, "");
    fails(1, "y: No space left on device");
    fails(2, "z: No space left on device");
    ended("nothing is saved: rank 2 (node w2) says: z: No space left on device");
}
END_TEST

START_TEST(who_is_asked_to_save_after_its_end_is_asked_again_when_it_comes_back)
{
    all_stopped_but_rank_0(5, 5);
    conns[1] = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w1", 2);
    msg.job = msg.generation = msg.rank = msg.running = 1;
    msg.step = 5;
    fix_say(conns[1], MS_MSG_REGISTER, &msg.base);
    hears_stop(1, 1, true);
    stopped_at(1, 1, 5, "step 5 is saved: x-5.json");
    ended("step 5 is saved");
}
END_TEST

START_TEST(what_rank_0_saved_before_it_was_lost_is_not_saved_again)
{
    running();
    fix_cancel(alice, 1, 1);
    stopped_at(1, 0, 5, "step 5 is saved: x-5.json");
    stopped_at(1, 1, 5, "");
    dies(0);
    stopped_at(1, 2, 5, "");
    ended("rank 0 (node w0) says: step 5 is saved");
}
END_TEST

START_TEST(a_complaint_evicts_nobody_any_more)
{
    running();
    Ms__PeerReport msg = MS__PEER_REPORT__INIT;
    msg.job = msg.generation = 1;
    msg.peer = 2;
    msg.text = (char *)"it does not answer";
    fix_say(conns[0], MS_MSG_PEER_REPORT, &msg.base);
    fix_cancel(alice, 1, 1);

    fix_pass(MS_BLAME_MS + 1);

    fix_job_is(1, "RUNNING", "cancelled by alice");
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        stopped(1, rank, "");
    }
    ended("cancelled by alice");
}
END_TEST

START_TEST(where_all_are_lost_and_none_comes_back_it_ends)
{
    static const char *const words[] = {
        "nothing is saved: no rank is left, and the job has no key checkpoint",
        "nothing is saved: no rank is left; what key checkpoint had saved before is on "
        "host h in /run: msctl submit --resume 1 goes on from the newest that is whole"};
    fix_spec = _i == 0 ? "{}" : "{\"checkpoint\":{\"every_steps\":5}}";
    running();
    all_close();
    fix_pass(MS_UNHEARD_MS / 2);

    fix_cancel(alice, 1, 1);
    ck_assert(!is_ended()); /* one may be on its way */
    fix_pass(MS_UNHEARD_MS / 2);

    ended(words[_i]);
    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_OK));
}
END_TEST

START_TEST(who_does_not_stop_is_ended_after_the_grace)
{
    cancelled_without(1);
    stopped(1, 2, "");
    for (int64_t ms = 0; ms < MS_CANCEL_GRACE_MS; ms += FIX_LEASE_MS / 2) {
        fix_beat(conns[0]);
        fix_beat(conns[2]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    ended("the step did not end within 30 s");
}
END_TEST

/* ---- silent over the grace, within a longer lease ------------------------------------------
 */

/* Asked to stop; who is in answers says at once that it lives. */
static void cancelled_in_a_long_lease(uint32_t answers)
{
    running_with(LONG_LEASE_MS);
    fix_cancel(alice, 1, 1);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        if ((answers >> rank & 1) != 0) {
            fix_beat(conns[rank]);
        }
    }
}

START_TEST(who_is_silent_over_the_grace_is_lost_and_another_one_saves)
{
    cancelled_in_a_long_lease(6);
    stopped_at(1, 1, 5, "");
    stopped_at(1, 2, 5, "");
    fix_pass(MS_CANCEL_GRACE_MS);

    ck_assert_int_eq(fix_effects(SCHED_DO_PUT_EVENT), 1); /* job.rank_lost */
    hears_stop(1, 1, true);
    fix_beat(conns[1]);
    fix_pass(MS_CANCEL_GRACE_MS - 1); /* a grace of its own */
    stopped_at(1, 1, 5, "step 5 is saved: x-5.json");
    ended("rank 1 (node w1) says: step 5 is saved");
}
END_TEST

START_TEST(who_waits_in_a_step_for_one_that_is_silent_hears_that_it_stands)
{
    cancelled_in_a_long_lease(6);
    fix_pass(MS_CANCEL_GRACE_MS);

    hears_stop(1, 1, true);
    ck_assert(stands(1));
    hears_stop(2, 1, false);
    ck_assert(stands(2));
    stopped_at(1, 2, 4, "");
    stopped_at(1, 1, 4, "step 4 is saved: x-4.json");
    ended("rank 1 (node w1) says: step 4 is saved");
}
END_TEST

START_TEST(who_is_silent_when_asked_to_save_leaves_it_to_the_next)
{
    cancelled_in_a_long_lease(6);
    stopped_at(1, 1, 5, "");
    stopped_at(1, 2, 5, "");
    fix_pass(MS_CANCEL_GRACE_MS);
    hears_stop(1, 1, true);

    fix_pass(MS_CANCEL_GRACE_MS);
    hears_stop(2, 1, true);
    stopped_at(1, 2, 5, "step 5 is saved: x-5.json");
    ended("rank 2 (node w2) says: step 5 is saved");
}
END_TEST

START_TEST(who_had_ended_and_was_silent_when_asked_to_save_is_free)
{
    struct sched_counts counts;
    cancelled_in_a_long_lease(6);
    stopped_at(1, 1, 5, "");
    stopped_at(1, 2, 5, "");
    fix_pass(MS_CANCEL_GRACE_MS);
    fix_pass(MS_CANCEL_GRACE_MS); /* rank 1 is lost; it has said its last word, and says no other */
    stopped_at(1, 2, 5, "step 5 is saved: x-5.json");

    sched_count(fix.s, &counts);
    ck_assert_uint_eq(counts.nodes_registered, RANKS);
    ck_assert_uint_eq(counts.nodes_idle, RANKS - 1); /* rank 0 has not said its own yet */
}
END_TEST

START_TEST(where_all_are_silent_it_ends_when_the_grace_is_over)
{
    cancelled_in_a_long_lease(0);
    fix_pass(MS_CANCEL_GRACE_MS);
    ended("nothing is saved");
}
END_TEST

START_TEST(who_answers_and_does_not_stop_is_not_lost)
{
    cancelled_in_a_long_lease(7);
    fix_pass(MS_CANCEL_GRACE_MS);
    ended("the step did not end within 30 s");
}
END_TEST

START_TEST(who_is_asked_when_the_grace_is_nearly_over_has_all_the_time)
{
    cancelled_in_a_long_lease(7);
    fix_pass(MS_CANCEL_GRACE_MS - 10);
    dies(0);
    hears_stop(1, 1, true);
    beat(1, 2);
    fix_pass(MS_CANCEL_GRACE_MS - 1);

    ck_assert_ptr_null(fix_stored(1));
    stopped_at(1, 2, 5, "");
    stopped_at(1, 1, 5, "step 5 is saved: x-5.json");
    ended("rank 1 (node w1) says: step 5 is saved");
}
END_TEST

START_TEST(who_was_to_take_a_place_and_is_not_ready_is_not_waited_for)
{
    running_with(LONG_LEASE_MS);
    uint64_t spare = fix_register("w7", 7);
    fix_close(conns[1]);
    conns[1] = spare;
    ready_at(2, 0, 110);
    ready_at(2, 2, 110);
    fix_cancel(alice, 1, 1);
    fix_beat(conns[1]);
    beat(0, 2);
    fix_pass(MS_CANCEL_GRACE_MS);

    ck_assert_int_eq(fix_effects(SCHED_DO_PUT_EVENT), 1); /* job.rank_lost */
    ck_assert(stands(0));
    ck_assert(stands(2));
    stopped_at(2, 2, 110, "");
    stopped_at(2, 0, 110, "step 110 is saved: x-110.json");
    ended("rank 0 (node w0) says: step 110 is saved");
}
END_TEST

START_TEST(now_is_at_once)
{
    running();
    fix_close(conns[1]);
    fix_cancel(alice, 1, 0);
    ended("cancelled by alice");
}
END_TEST

/* ---- a restart ----------------------------------------------------------------------------------
 */

/* A scheduler that finds job 1 in its database, in generation 11 on w0 and w1. */
static void restarted_with(enum sched_job_state state, bool is_cancelled, int64_t lease_ms)
{
    start_with(lease_ms);
    struct sched_job_row row = job_row(1, state);
    row.recovery = true;
    row.cancel_at_step = is_cancelled;
    snprintf(row.cancel_text, sizeof(row.cancel_text), "%s",
             is_cancelled ? "cancelled by alice" : "");
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    load_members(1);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

static void restarted(void)
{
    restarted_with(JOB_RECOVERING, true, FIX_LEASE_MS);
}

/* Of w0 or w1: it holds its rank of that generation. */
static void comes_back(uint32_t rank, uint64_t generation)
{
    char id[8];
    snprintf(id, sizeof(id), "w%u", rank);
    conns[rank] = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, 100 + rank);
    msg.job = 1;
    msg.generation = generation;
    msg.rank = rank;
    msg.running = 1;
    msg.step = 5;
    fix_say(conns[rank], MS_MSG_REGISTER, &msg.base);
}

START_TEST(a_restart_keeps_it)
{
    restarted();

    comes_back(0, 11);
    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_STOP)); /* who saves is not known yet */
    comes_back(1, 10); /* it has not heard of the last round, and no other one comes */

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    hears_stop(0, 11, false);
    hears_stop(1, 10, false);
    stopped(11, 0, "step 5 is saved: x-5.json");
    stopped(10, 1, "");
    ended("cancelled by alice; rank 0 (node w0) says: step 5 is saved");
}
END_TEST

START_TEST(after_a_restart_who_had_stopped_before_the_last_round_is_asked_again)
{
    restarted();
    comes_back(1, 10);
    stopped(10, 1, ""); /* it said so before, and the scheduler died with it */

    comes_back(0, 11);
    hears_stop(0, 11, false);
    hears_stop(1, 10, false);
    stopped(10, 1, "");
    stopped(11, 0, "step 5 is saved: x-5.json");

    ended("rank 0 (node w0) says: step 5 is saved");
}
END_TEST

START_TEST(after_a_restart_who_does_not_come_back_is_over)
{
    restarted();
    comes_back(1, 11);
    for (int i = 0; i < 5 && fix_heard(conns[1], MS_MSG_STOP) == NULL; i++) {
        fix_beat(conns[1]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    hears_stop(1, 11, true);
    stopped(11, 1, "step 5 is saved: x-5.json");
    ended("rank 1 (node w1) says: step 5 is saved");
}
END_TEST

START_TEST(who_is_replaced_while_others_are_missing_is_not_waited_for)
{
    restarted();
    comes_back(0, 11);
    dies(0);
    fix_close(conns[0]); /* nor is the other process of its node there any more */
    fix_pass(MS_UNHEARD_MS - 1);
    ended("nothing is saved");
}
END_TEST

/* Its ranks trained when the scheduler died, and rank 0 with it. */
START_TEST(after_a_restart_the_lowest_that_is_left_of_a_running_job_saves)
{
    restarted_with(JOB_RUNNING, false, FIX_LEASE_MS);
    alice = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(alice, 1, 1);
    comes_back(1, 11);
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));

    for (int i = 0; i < 5 && fix_heard(conns[1], MS_MSG_STOP) == NULL; i++) {
        fix_beat(conns[1]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    hears_stop(1, 11, true);
    stopped(11, 1, "step 5 is saved: x-5.json");
    ended("rank 1 (node w1) says: step 5 is saved");
}
END_TEST

/* Its rank 0 was lost while it stopped, and the node that had it has a rank of job 2. */
START_TEST(after_a_restart_nobody_is_started_beside_a_rank_that_is_lost)
{
    start();
    struct sched_job_row rows[] = {job_row(1, JOB_RUNNING), job_row(2, JOB_RUNNING)};
    rows[0].recovery = rows[0].cancel_at_step = true;
    snprintf(rows[0].cancel_text, sizeof(rows[0].cancel_text), "cancelled by alice");
    rows[1].workers = 1;
    ck_ms_ok(sched_load_job(fix.s, &rows[0], err));
    ck_ms_ok(sched_load_job(fix.s, &rows[1], err));
    load_members(1);
    struct sched_member_row member = member_row(2, 0);
    ck_ms_ok(sched_load_member(fix.s, &member, err));
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));

    conns[1] = come_back(1, 101, 1, 11, 0); /* its Start was lost with the scheduler */

    ck_assert_uint_eq(fix_count(MS_MSG_START), 0);
    hears_stop(1, 11, true);
    ck_assert(stands(1));
    stopped(11, 1, "step 0 is saved");
    ended("rank 1 (node w1) says: step 0 is saved");
}
END_TEST

/* The time that they have to stop begins when they hear of it. */
START_TEST(who_is_waited_for_after_a_restart_costs_the_others_no_grace)
{
    restarted_with(JOB_RECOVERING, false, 2 * (int64_t)MS_CANCEL_GRACE_MS);
    comes_back(1, 11);
    alice = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(alice, 1, 1);
    fix_job_is(
        1, "RECOVERING",
        "cancelled by alice; waits up to 61 s for the nodes of rank 0 to come back after the "
        "scheduler's restart");

    for (int ms = 0; ms < 4 * MS_CANCEL_GRACE_MS && fix_heard(conns[1], MS_MSG_STOP) == NULL;
         ms += MS_CANCEL_GRACE_MS / 4) {
        fix_beat(conns[1]);
        fix_pass(MS_CANCEL_GRACE_MS / 4);
    }
    hears_stop(1, 11, true);
    stopped(11, 1, "step 5 is saved: x-5.json");
    ended("rank 1 (node w1) says: step 5 is saved");
}
END_TEST

/* Nor does the wait for one that may have given up on a scheduler that stood still: who is asked to
 * save when it is lost has all the time. */
START_TEST(who_is_waited_for_after_a_standstill_costs_the_others_no_grace)
{
    enum { EARLIER = 5000, STILL = MS_CANCEL_GRACE_MS / 2 };
    running_with(MS_CANCEL_GRACE_MS);
    fix_cancel(alice, 1, 1);
    fix_pass(EARLIER);
    sched_stood_still(fix.s, STILL);
    fix_pass(STILL);
    fix_close(conns[0]);
    for (int i = 0; i < 6; i++) { /* its lease ends after the first grace would have */
        beat(1, 2);
        fix_pass(MS_CANCEL_GRACE_MS / 6);
    }
    hears_stop(1, 1, true);

    beat(1, 2);
    fix_pass(MS_CANCEL_GRACE_MS - 1);
    fix_job_is(1, "RECOVERING", "cancelled by");
    stopped(1, 2, "");
    stopped(1, 1, "step 5 is saved: x-5.json");
    ended("rank 1 (node w1) says: step 5 is saved");
}
END_TEST

/* ... and who was asked before it went away has all the time again when it is lost. */
START_TEST(who_is_at_it_has_all_the_time_after_a_standstill)
{
    enum { EARLIER = 3000, STILL = MS_CANCEL_GRACE_MS };
    running_with(2 * (int64_t)MS_CANCEL_GRACE_MS);
    fix_done(conns[1], 1, 1, 1, MS_OK, "");
    fix_done(conns[2], 1, 1, 2, MS_OK, "");
    fix_cancel(alice, 1, 1);
    dies(0);
    hears_stop(1, 1, true);
    sched_stood_still(fix.s, STILL);
    fix_pass(STILL + EARLIER);
    beat(1, 1);
    fix_close(conns[2]);
    for (int i = 0; i < 8; i++) { /* its lease ends between two graces */
        fix_pass(MS_CANCEL_GRACE_MS / 4);
        beat(1, 1);
    }
    ck_assert_uint_eq(fix_show(1)->ranks_lost, 2);

    fix_pass(MS_CANCEL_GRACE_MS - 1);

    fix_job_is(1, "RECOVERING", "waits for rank 1 (node w1 on host h) to save its step");
    stopped_at(1, 1, 120, "step 120 is saved: x-120.json");
    ended("rank 1 (node w1) says: step 120 is saved");
}
END_TEST

/* What would end the wait for a node is no second loss of the rank. */
START_TEST(its_grace_ends_it_and_nothing_else)
{
    cancelled_without(1);
    fix_pass(TOPO_MS);
    ck_assert_int_eq(fix_effects(SCHED_DO_PUT_EVENT), 0);
    fix_job_is(1, "RECOVERING", "cancelled by");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_recover_stop");
    TCase *t = tcase_create("cancel");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, the_ranks_that_are_left_stop_and_rank_0_saves);
    tcase_add_test(t, the_lowest_that_is_left_saves_for_rank_0);
    tcase_add_test(t, no_round_begins_any_more);
    tcase_add_test(t, a_round_that_is_out_goes_on_to_its_step);
    tcase_add_test(t, a_round_that_is_out_is_started_once_its_complaint_is_judged);
    tcase_add_test(t, a_round_that_all_are_back_for_is_started);
    tcase_add_test(t, who_comes_back_to_a_round_that_was_started_hears_that_no_start_comes);
    tcase_add_test(t, who_is_to_stop_in_an_older_generation_may_know_a_newer_one);
    tcase_add_test(t, who_knows_a_newer_generation_is_heard_in_it);
    tcase_add_test(t, who_was_done_while_the_others_stood_still_is_asked_again);
    tcase_add_test(t, who_waits_for_the_start_of_a_round_hears_that_none_comes);
    tcase_add_test(t, who_stops_in_a_round_cuts_it_off_for_all);
    tcase_add_test(t, who_was_done_while_the_others_stood_still_is_free_at_the_end);
    tcase_add_test(t, a_rank_that_is_lost_while_all_stop_is_over);
    tcase_add_test(t, where_rank_0_is_lost_after_all_have_stopped_one_is_asked_to_save);
    tcase_add_test(t, weights_come_from_whoever_saved_them);
    tcase_add_test(t, who_is_asked_to_save_after_its_end_has_all_the_time);
    tcase_add_test(t, of_those_that_stopped_the_furthest_saves);
    tcase_add_test(t, who_saved_an_older_step_than_another_holds_is_not_enough);
    tcase_add_test(t, who_cannot_save_after_its_end_leaves_it_to_the_next);
    tcase_add_test(t, where_rank_0_cannot_save_another_one_does);
    tcase_add_test(t, where_rank_0_makes_the_last_step_the_others_hear_at_once_that_it_stops);
    tcase_add_test(t, where_nobody_can_save_it_is_said_why);
    tcase_add_loop_test(t, who_comes_back_before_the_end_may_be_the_one_that_saves, 0, 2);
    tcase_add_test(t, who_comes_back_after_the_others_were_told_to_stand_is_not_waited_for);
    tcase_add_test(t, who_is_lost_again_and_again_gives_the_others_no_new_time);
    tcase_add_loop_test(t, who_comes_back_with_nothing_is_let_go, 0, 2);
    tcase_add_loop_test(t, where_all_connections_are_reset_who_comes_back_saves, 0, 3);
    tcase_add_test(t, where_all_connections_are_reset_rank_0_may_save);
    tcase_add_loop_test(t, who_does_not_come_back_is_not_waited_for, 0, 2);
    tcase_add_test(t, who_comes_anew_leaves_the_others_what_is_left_of_their_time);
    tcase_add_test(t, who_is_reset_again_and_again_is_not_waited_for_for_ever);
    tcase_add_test(t, where_rank_0_is_a_step_behind_another_one_saves);
    tcase_add_loop_test(t, who_is_a_step_ahead_and_reset_as_it_saves_is_waited_for, 0, 2);
    tcase_add_loop_test(t, nobody_saves_beside_one_that_was_asked, 0, 2);
    tcase_add_test(t, nobody_saves_beside_what_is_saved);
    tcase_add_test(t, who_was_stood_in_for_has_no_rank_while_that_one_may_be_back);
    tcase_add_test(t, one_reset_as_the_grace_ends_has_the_time_to_come_back);
    tcase_add_test(t, one_reset_behind_a_grace_has_the_time_to_come_back);
    tcase_add_test(t, who_was_replaced_is_not_on_its_way_when_that_one_leaves);
    tcase_add_test(t, where_a_disk_hangs_and_another_is_reset_twice_it_ends);
    tcase_add_test(t, what_was_saved_is_said_where_another_does_not_stop);
    tcase_add_test(t, what_a_finished_rank_0_saved_is_said);
    tcase_add_test(t, what_rank_0_saved_is_said_where_it_was_reset_and_says_so_again);
    tcase_add_test(t, where_rank_0_stands_at_the_last_step_nobody_waits_for_another_one);
    tcase_add_loop_test(t, who_stood_at_the_last_step_that_rank_0_cannot_save_is_asked_to, 0, 2);
    tcase_add_test(t, who_is_asked_to_save_after_its_end_is_asked_again_when_it_comes_back);
    tcase_add_test(t, what_rank_0_saved_before_it_was_lost_is_not_saved_again);
    tcase_add_test(t, a_complaint_evicts_nobody_any_more);
    tcase_add_loop_test(t, where_all_are_lost_and_none_comes_back_it_ends, 0, 2);
    tcase_add_test(t, who_does_not_stop_is_ended_after_the_grace);
    tcase_add_test(t, who_is_silent_over_the_grace_is_lost_and_another_one_saves);
    tcase_add_test(t, who_waits_in_a_step_for_one_that_is_silent_hears_that_it_stands);
    tcase_add_test(t, who_is_silent_when_asked_to_save_leaves_it_to_the_next);
    tcase_add_test(t, who_had_ended_and_was_silent_when_asked_to_save_is_free);
    tcase_add_test(t, where_all_are_silent_it_ends_when_the_grace_is_over);
    tcase_add_test(t, who_answers_and_does_not_stop_is_not_lost);
    tcase_add_test(t, who_is_asked_when_the_grace_is_nearly_over_has_all_the_time);
    tcase_add_test(t, who_was_to_take_a_place_and_is_not_ready_is_not_waited_for);
    tcase_add_test(t, now_is_at_once);
    tcase_add_test(t, its_grace_ends_it_and_nothing_else);
    tcase_add_test(t, a_restart_keeps_it);
    tcase_add_test(t, after_a_restart_who_had_stopped_before_the_last_round_is_asked_again);
    tcase_add_test(t, after_a_restart_who_does_not_come_back_is_over);
    tcase_add_test(t, who_is_replaced_while_others_are_missing_is_not_waited_for);
    tcase_add_test(t, after_a_restart_the_lowest_that_is_left_of_a_running_job_saves);
    tcase_add_test(t, after_a_restart_nobody_is_started_beside_a_rank_that_is_lost);
    tcase_add_test(t, who_is_waited_for_after_a_restart_costs_the_others_no_grace);
    tcase_add_test(t, who_is_waited_for_after_a_standstill_costs_the_others_no_grace);
    tcase_add_test(t, who_is_at_it_has_all_the_time_after_a_standstill);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
