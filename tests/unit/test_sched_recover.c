/* test_sched_recover.c - a rank is lost, and its job goes on: who takes it, what is told, when it
 * is enough */
#include "tests/unit/sched_recover_case.h"

#include "daemon/sched/state.h"

/* ---- who takes it -------------------------------------------------------------------------------
 */

START_TEST(an_idle_node_takes_the_lost_rank_at_once)
{
    running(2);
    uint64_t spare = fix_register("w7", 7);

    fix_close(conns[1]);

    const struct sched_job_row *row = fix_stored(1);
    ck_assert_int_eq(row->state, JOB_RECOVERING);
    ck_assert_uint_eq(row->generation, 2);
    ck_assert_str_eq(fix_effect(SCHED_DO_PUT_MEMBER)->member->node_id, "w7");
    ck_assert_int_eq(fix_effects(SCHED_DO_PUT_MEMBER), 1);
    ck_assert_int_eq(n_events("job.rank_lost"), 1);
    ck_assert_int_eq(n_events("job.recovering"), 1);
    conns[1] = spare;
    const Ms__Assign *msg = assigned(0, 2);
    ck_assert_str_eq(msg->members[1]->node_id, "w7");
    assigned(1, 2);
    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 1); /* the other one has made it */
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_PLAN));
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    fix_job_is(1, "RECOVERING", "generation 2: waits for ranks 0 1");
}
END_TEST

static void last_heard_of(const char *words)
{
    const char *text = event_of("job.rank_lost")->text;
    ck_assert_msg(strstr(text, words) != NULL, "%s", text);
}

/* As long as its end may have been there to be seen. */
START_TEST(a_loss_tells_when_the_node_was_heard_of_before)
{
    running(4);
    fix.now.mono_ms += 84;
    fix_close(conns[1]);
    last_heard_of("started, its node was last heard of 84 ms before: rank 1 (node w1 on host h)");

    fix_register("w2", 13); /* its process lives, for all that is known, and is asked */
    ck_assert_int_eq(n_events("job.rank_lost"), 0);
    fix_beat(conns[0]);
    fix_beat(conns[3]);
    fix_pass(MS_PROBE_MS);
    last_heard_of(", its node was last heard of 1084 ms before: rank 2 ");

    fix_pass(FIX_LEASE_MS - MS_PROBE_MS);
    last_heard_of(", its node was last heard of 10000 ms before: rank 3 ");
}
END_TEST

START_TEST(a_loss_that_a_process_tells_itself_has_no_silence_before_it)
{
    running(2);
    fix.now.mono_ms += 84;
    Ms__Leave leave = MS__LEAVE__INIT;
    leave.reason = (char *)"TERM";
    fix_say(conns[1], MS_MSG_LEAVE, &leave.base);
    last_heard_of("generation 1, no step was told since the scheduler started: rank 1 ");
}
END_TEST

START_TEST(a_process_in_the_place_of_another_tells_when_that_was_heard_of)
{
    running(2);
    fix.now.mono_ms += 84;
    come_back(1, 2, 0, 0, 0); /* the same one, without its rank */
    last_heard_of(", its node was last heard of 84 ms before: rank 1 ");

    load(JOB_RUNNING);
    come_back(0, 12, 0, 0, 0); /* since the restart nobody has */
    last_heard_of("generation 11, no step was told since the scheduler started: rank 0 ");
}
END_TEST

/* Its word of the generation before says so, the one of the round that crossed it does not. */
START_TEST(a_process_that_was_asked_to_end_declines_the_round_and_the_job_goes_on)
{
    running(2);
    uint64_t spare = fix_register("w7", 7);
    fix_close(conns[1]);
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = 1;
    msg.generation = 1;
    msg.rank = 0;
    msg.code = MS_E_CANCELLED;
    msg.text = (char *)"its process ends (TERM)";
    msg.steps = 41;
    msg.leaving = true;
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);
    fix_job_is(1, "RECOVERING", "generation 2");

    msg.generation = 2;
    msg.leaving = false;
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);

    ck_assert_int_eq(n_events("job.failed"), 0);
    last_heard_of("rank 0 (node w0 on host h) left: its process ends (TERM)");
    fix_beat(spare);
    fix_job_is(1, "RECOVERING", "waits for node w1");
}
END_TEST

START_TEST(all_go_on_when_all_are_ready)
{
    running(2);
    uint64_t spare = fix_register("w7", 7);
    fix_close(conns[1]);
    conns[1] = spare;
    fix.now.mono_ms += 800;
    ready_at(2, 0, 41);
    Ms__RankReady msg = ready_message(2, 1, 41);
    msg.state_from = MS_STATE_PULLED;
    msg.state_bytes = 5000;
    msg.state_ms = 3;
    msg.prepared_ms = 70;
    ck_assert_uint_eq(fix_count(MS_MSG_START), 0);

    fix_say(spare, MS_MSG_RANK_READY, &msg.base);

    ck_assert_uint_eq(fix_count(MS_MSG_START), 2);
    ck_assert_int_eq(fix_stored(1)->state, JOB_RUNNING);
    const struct sched_event_row *event = fix_effect(SCHED_DO_PUT_EVENT)->event;
    ck_assert_str_eq(event->kind, "job.recovered");
    ck_assert_ptr_nonnull(strstr(event->text, "goes on after step 41"));
    ck_assert_ptr_nonnull(strstr(event->text,
                                 "rank 1 (node w7) took 5000 bytes from rank 0 in 3 ms, "
                                 "after 70 ms for data and plan"));
    const Ms__JobInfo *info = fix_show(1);
    ck_assert_uint_eq(info->recoveries, 1);
    ck_assert_uint_eq(info->ranks_lost, 1);
    ck_assert_uint_eq(info->recovering_ms, 800);
    for (uint32_t rank = 0; rank < 2; rank++) {
        fix_done(conns[rank], 1, 2, rank, 0, "");
    }
    ended(JOB_SUCCEEDED, "all 2 ranks finished");
}
END_TEST

static void ready_without_log(uint32_t rank)
{
    Ms__RankReady msg = ready_message(1, rank, 0);
    msg.log_path = (char *)"";
    fix_say(conns[rank], MS_MSG_RANK_READY, &msg.base);
}

/* A worker without a folder of its own has no file to name: what it prints is its log. */
START_TEST(who_named_no_log_has_opened_one_all_the_same)
{
    placed_for(2, 0);
    ready_without_log(0);
    ready_without_log(1);
    fix_job_is(1, "RUNNING", "");

    fix_close(conns[1]);

    fix_job_is(1, "RECOVERING", "says by what); its log: the standard output of its msworker");
}
END_TEST

static const char *lose_all_and_go_on(uint32_t state_from, uint64_t step, uint64_t told)
{
    fix_close(conns[0]);
    fix_close(conns[1]);
    conns[0] = fix_register("w0", 11);
    conns[1] = fix_register("w1", 12);
    Ms__RankReady msg = ready_message(2, 0, step);
    msg.state_from = state_from;
    msg.told = told;
    fix_say(conns[0], MS_MSG_RANK_READY, &msg.base);
    msg = ready_message(2, 1, step);
    msg.state_from = state_from;
    fix_say(conns[1], MS_MSG_RANK_READY, &msg.base);
    ck_assert_str_eq(fix_effect(SCHED_DO_PUT_EVENT)->event->kind, "job.recovered");
    return fix_effect(SCHED_DO_PUT_EVENT)->event->text;
}

static const struct {
    uint32_t from;
    uint64_t step, heard, told, again_from, again_to;
    const char *words;
} rollbacks[] = {
    {MS_STATE_CHECKPOINT, 40, 57, 0, 41, 57,
     "generation 2: goes on from the checkpoint of step 40: steps 41 to 57 are trained again; it"},
    {MS_STATE_CHECKPOINT, 40, 57, 60, 41, 60, "of step 40: steps 41 to 60 are trained again; it"},
    {MS_STATE_CHECKPOINT, 56, 57, 0, 57, 57, "of step 56: step 57 is trained again; it"},
    {MS_STATE_CHECKPOINT, 57, 57, 57, 0, 0, "goes on from the checkpoint of step 57; it stood"},
    {MS_STATE_KEPT, 0, 57, 0, 1, 57,
     "generation 2: begins anew, for no rank has a checkpoint that can be read: steps 1 to 57 are "
     "trained again; it"},
    {MS_STATE_KEPT, 0, 1, 0, 0, 0, /* whom it was lost with */
     "goes on after step 0, for no rank holds a later one or has a checkpoint of one; it stood"},
    {MS_STATE_KEPT, 56, 57, 0, 0, 0, "goes on after step 56; it stood"},
};

START_TEST(what_no_rank_held_any_more_is_trained_again_and_told)
{
    running(2);
    progress(1, rollbacks[_i].heard);

    const char *text =
        lose_all_and_go_on(rollbacks[_i].from, rollbacks[_i].step, rollbacks[_i].told);

    ck_assert_msg(strstr(text, rollbacks[_i].words) != NULL, "%s", text);
    const Ms__JobInfo *info = fix_show(1);
    ck_assert_uint_eq(info->went_on_from, rollbacks[_i].step);
    ck_assert_uint_eq(info->again_from, rollbacks[_i].again_from);
    ck_assert_uint_eq(info->again_to, rollbacks[_i].again_to);
}
END_TEST

START_TEST(without_a_node_nothing_is_stored_and_the_next_process_takes_it)
{
    running(2);

    fix_close(conns[1]);

    ck_assert_ptr_null(fix_stored(1));
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1: start its worker again");
    fix.now.mono_ms += 300;
    ck_assert_uint_eq(fix_show(1)->recovering_ms, 300); /* it stands still now */
    conns[1] = fix_register("w1", 12);
    ck_assert_int_eq(fix_stored(1)->state, JOB_RECOVERING);
    ck_assert_uint_eq(assigned(1, 2)->members[1]->incarnation, 12);
    assigned(0, 2);
}
END_TEST

START_TEST(a_process_that_was_given_up_takes_its_rank_back)
{
    running(2);
    fix.now.mono_ms += FIX_LEASE_MS / 2;
    fix_beat(conns[0]);
    fix_pass(FIX_LEASE_MS / 2); /* w1 is silent, and lost */
    fix_job_is(1, "RECOVERING", "waits for a node");

    conns[1] = come_back(1, 2, 1, 1, 1);

    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    assigned(0, 2);
    ck_assert_uint_eq(assigned(1, 2)->members[1]->incarnation, 2);
    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 0 + 1); /* whether it has the plan is not known */
}
END_TEST

static void says_done(uint64_t conn, uint64_t generation, uint32_t rank, int code, int leaving)
{
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = 1;
    msg.generation = generation;
    msg.rank = rank;
    msg.code = code;
    msg.leaving = leaving;
    msg.text = (char *)"it takes no rank now";
    fix_say(conn, MS_MSG_RANK_DONE, &msg.base);
}

/* What it was told is lost with its connection: it waits for that word alone. */
START_TEST(who_had_ended_the_rank_does_not_take_it_back)
{
    const bool leaves = _i / 2 != 0; /* else it cannot serve it */
    running(2);
    fix_close(conns[1]);
    conns[1] = fix_register("w1", 12);
    assigned(1, 2);
    says_done(conns[1], 2, 1, leaves ? MS_E_CANCELLED : MS_E_UNSUPPORTED, leaves);
    fix_job_is(1, "RECOVERING", "waits for a node");
    if (_i % 2 == 0) {
        fix_close(conns[1]);
    }

    conns[1] = come_back(1, 12, 1, 2, 0);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    const Ms__Stop *stop = (const Ms__Stop *)fix_heard(conns[1], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_uint_eq(stop->generation, 2);
    fix_job_is(1, "RECOVERING", "waits for a node");
}
END_TEST

START_TEST(who_comes_back_after_another_took_its_rank_is_stopped_once_that_has_the_state)
{
    running(2);
    uint64_t spare = fix_register("w7", 7);
    fix.now.mono_ms += FIX_LEASE_MS / 2;
    fix_beat(conns[0]);
    fix_beat(spare);
    fix_pass(FIX_LEASE_MS / 2);

    uint64_t late = come_back(1, 2, 1, 1, 1);

    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    fix_job_is(1, "RECOVERING", "generation 2");
    conns[1] = spare;
    all_ready_at(2, 2, 5);
    const Ms__Stop *stop = fix_heard(late, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_uint_eq(stop->generation, 1);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 1);
}
END_TEST

/* Each round tells all ranks: a rack that fails is one. */
START_TEST(losses_of_a_large_job_that_come_one_by_one_make_one_round)
{
    enum { WORLD = MS_GATHER_RANKS, LOST = 8 };
    running(WORLD);
    for (uint64_t i = 0; i < LOST; i++) {
        char id[8];
        snprintf(id, sizeof(id), "s%u", (unsigned)i);
        fix_register(id, 200 + i);
    }
    for (uint32_t rank = 0; rank < LOST; rank++) {
        fix_close(conns[10 + rank]);
        ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
        fix_pass(1);
    }

    fix_pass(WORLD / 16);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), WORLD);
    fix_job_is(1, "RECOVERING", "generation 2:");
}
END_TEST

START_TEST(several_ranks_are_filled_together_or_not_at_all)
{
    running(4);
    fix_close(conns[1]);
    fix_close(conns[2]);

    fix_register("w1", 11);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_register("w9", 12);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 4);
    ck_assert_int_eq(fix_effects(SCHED_DO_PUT_MEMBER), 2);
}
END_TEST

START_TEST(all_ranks_may_be_lost_at_once)
{
    running(2);
    fix_close(conns[0]);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "waits for node w0: no process holds the state any more, but");

    conns[0] = fix_register("w0", 11);
    conns[1] = fix_register("w1", 12);

    assigned(0, 2);
    assigned(1, 2);
    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 2);
}
END_TEST

START_TEST(a_loss_within_a_round_makes_the_next_one)
{
    running(3);
    fix_close(conns[2]);
    conns[2] = fix_register("w2", 13);
    assigned(2, 2);
    ready_at(2, 0, 5);

    fix_close(conns[1]);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    conns[1] = fix_register("w1", 14);

    for (uint32_t rank = 0; rank < 3; rank++) {
        assigned(rank, 3);
    }
    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 2); /* w2 had not said that it has made it */
    ready_at(2, 2, 5);                            /* crossed: of the round before */
    ck_assert_uint_eq(fix_count(MS_MSG_START), 0);
    all_ready_at(3, 3, 5);
    ck_assert_uint_eq(fix_count(MS_MSG_START), 3);
}
END_TEST

/* TERM, while a round is on its way to it: that it leaves was said of the generation before. */
START_TEST(who_leaves_may_decline_the_round)
{
    running(2);
    conns[2] = fix_register("w7", 7);
    fix_close(conns[1]);
    assigned(0, 2);

    says_done(conns[0], 1, 0, MS_E_CANCELLED, 1);
    says_done(conns[0], 2, 0, MS_E_FULL, 0);

    fix_job_is(1, "RECOVERING", "waits for node w1: no process holds the state any more");
    conns[3] = fix_register("w8", 8);
    fix_lease_passes(&conns[2], 2);
    const Ms__Assign *msg = (const Ms__Assign *)fix_heard(conns[3], MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_str_eq(msg->members[0]->node_id, "w8");
}
END_TEST

START_TEST(a_rank_that_was_done_takes_part_again)
{
    running(2);
    uint64_t spare = fix_register("w7", 7);
    fix_done(conns[0], 1, 1, 0, 0, "");

    fix_close(conns[1]);

    conns[1] = spare;
    assigned(0, 2);
    all_ready_at(2, 2, 120);
    ck_assert_uint_eq(fix_count(MS_MSG_START), 2);
    fix_done(conns[0], 1, 2, 0, 0, "");
    fix_done(conns[1], 1, 2, 1, 0, "");
    ended(JOB_SUCCEEDED, "");
}
END_TEST

START_TEST(jobs_that_wait_let_a_lost_rank_be_taken_first)
{
    running(2);
    fix_close(conns[0]);
    fix_close(conns[1]);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(1);
    fix_say(alice, MS_MSG_SUBMIT, &msg.base);

    conns[0] = fix_register("w8", 11);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(2, "QUEUED", "waits behind a job that lost ranks");
    conns[1] = fix_register("w9", 12);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_lease_passes(conns, 2);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
}
END_TEST

START_TEST(a_pause_longer_than_the_lease_keeps_no_node_from_the_others)
{
    running(2);
    fix_close(conns[1]);
    fix_close(fix_register("w1", 12));
    uint64_t last = fix_register("w1", 13);
    fix.s->cfg.lease_ms = 50; /* and the pause is 100 */
    fix_close(last);
    uint64_t spare = fix_register("w1", 14);
    Ms__Submit msg = fix_job(1);
    fix_say(fix_open(MS_ROLE_USER, "alice"), MS_MSG_SUBMIT, &msg.base);
    fix_job_is(2, "QUEUED", "waits behind a job that lost ranks");

    for (int i = 0; i < 2; i++) {
        fix_beat(conns[0]);
        fix_beat(spare);
        fix_pass(30);
    }

    fix_job_is(2, "PLACING", "to choose the plan");
}
END_TEST

/* ---- run, dynamic -------------------------------------------------------------------------------
 */

START_TEST(in_a_run_a_loss_before_the_start_is_no_end)
{
    start(SCHED_RUN, 0);
    conns[0] = fix_register("0", 1);
    conns[1] = fix_register("1", 2);
    submit(2);

    fix_close(conns[0]); /* which was to choose the plan */

    fix_job_is(1, "PLACING", "waits for a node to take rank 0");
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    conns[0] = fix_register("0", 3);
    const Ms__Assign *msg = fix_heard(conns[1], MS_MSG_ASSIGN);
    ck_assert_uint_eq(msg->generation, 2);
    ck_assert_uint_eq(msg->plan_from, MS_PLAN_RANK_0);
    fix_plan(conns[0], 1, 2, FIX_PLAN);
    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 2);
    all_ready_at(2, 2, 0);
    fix_job_is(1, "RUNNING", "");
}
END_TEST

static uint64_t worker(const char *id, uint64_t incarnation)
{
    return dynamic_worker(id, incarnation, "h", 2);
}

START_TEST(in_a_dynamic_cluster_only_a_vacant_rank_lets_somebody_in)
{
    start(SCHED_DYNAMIC, 2);
    conns[0] = worker("0", 1);
    conns[1] = worker("some-host-1", 2);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 2, 0);
    uint64_t extra = worker("other", 3);
    fix_refused(extra, MS_E_REFUSED, "all 2 ranks are taken");
    fix_close(conns[1]);

    extra = worker("0", 4); /* rank 0 is not the one */
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    conns[1] = worker("other", 5);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
    extra = worker("third", 6);
    fix_refused(extra, MS_E_REFUSED, "all 2 ranks are taken");
}
END_TEST

/* Of the two that had the ranks one is awaited still: in the place of the other is another one. */
START_TEST(in_a_dynamic_cluster_nobody_takes_the_place_of_who_has_to_come_back)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 2);
    cfg.has_database = 1;
    cfg.recovery = 1;
    fix_create(&cfg);
    struct sched_job_row row = job_row(1, JOB_RUNNING);
    row.recovery = true;
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    load_members(1);
    loaded();
    uint64_t conn = worker("w1", 9);                                    /* the next process */
    fix_pass(MS_HANDSHAKE_MS + FIX_LEASE_MS / MS_HEARTBEATS_PER_LEASE); /* rank 1 is lost */
    fix_job_is(1, "RECOVERING", "waits for the nodes of rank 0");
    fix_close(conn);
    ck_assert_ptr_nonnull(fix_heard(worker("spare", 3), MS_MSG_REGISTERED));

    conn = worker("w1", 9);

    fix_refused(conn, MS_E_REFUSED, "all 2 ranks are taken");
    worker("w0", 10);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
}
END_TEST

/* ---- a restart of the scheduler -----------------------------------------------------------------
 */

static int says_event(const char *kind, const char *part)
{
    size_t n = 0;
    int found = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        found |= effects[i].kind == SCHED_DO_PUT_EVENT &&
                 strcmp(effects[i].event->kind, kind) == 0 &&
                 strstr(effects[i].event->text, part) != NULL;
    }
    return found;
}

START_TEST(after_a_restart_who_is_missing_is_replaced)
{
    load(JOB_RUNNING); /* in generation 11 */
    conns[0] = come_back(0, 100, 1, 11, 1);
    fix_pass(FIX_LEASE_MS / 2);
    fix_beat(conns[0]);
    fix_pass(FIX_LEASE_MS / 2 + 3000);
    ck_assert(says_event("job.rank_lost", "11, no step was told since the scheduler started: "));
    fix_beat(conns[0]);
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");

    conns[1] = fix_register("w1", 12);

    assigned(0, 12);
    assigned(1, 12);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_PLAN));
}
END_TEST

/* A process that froze before it could come back has to be found by who started it. */
START_TEST(after_a_restart_the_process_that_is_missing_is_known)
{
    load(JOB_RUNNING);
    ck_assert_uint_eq(fix_show(1)->ranks[1]->pid, 1101);
    ck_assert_uint_eq(fix_show_node("w1")->pid, 1101);
    conns[0] = come_back(0, 100, 1, 11, 1);
    fix_pass(FIX_LEASE_MS / 2);
    fix_beat(conns[0]);
    fix_pass(FIX_LEASE_MS / 2 + 3000);

    ck_assert_str_eq(fix_show_node("w1")->state, "LOST");
    ck_assert_uint_eq(fix_show_node("w1")->pid, 1101);
    ck_assert_uint_eq(fix_show(1)->ranks[1]->pid, 1101);
}
END_TEST

START_TEST(after_a_restart_what_was_recovered_is_counted_still)
{
    running(2);
    fix_close(conns[1]);
    conns[1] = fix_register("w1", 12);
    const struct sched_job_row *row = fix_stored(1);
    uint8_t results[256];
    const size_t bytes = row->results_bytes;
    ck_assert(bytes > 0 && bytes <= sizeof(results));
    memcpy(results, row->results, bytes);

    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    fix_create(&cfg);
    struct sched_job_row again = job_row(1, JOB_RECOVERING);
    again.recovery = true;
    again.results = results;
    again.results_bytes = bytes;
    ck_ms_ok(sched_load_job(fix.s, &again, err));
    load_members(1);
    loaded();

    ck_assert_uint_eq(fix_show(1)->ranks_lost, 1);
}
END_TEST

/* What the list of events tells of the job; ms before the scheduler is back. */
struct past {
    const char *kind;
    int64_t ago_ms;
};

static const struct {
    struct past past[6];
    enum sched_job_state state;
    int64_t ms;         /* it stood still, where it goes on 700 ms after the scheduler is back */
    const char *behind; /* these words */
} stalls[] = {
    {{{"job.started", 60000}, {"job.rank_lost", 10300}}, JOB_RUNNING, 11000, " ms"},
    {{{"job.started", 60000}, {"job.rank_lost", 9000}, {"job.rank_lost", 100}},
     JOB_RUNNING,
     9700,
     " ms"},
    {{{"job.rank_lost", 10300}, {"job.recovering", 9000}}, JOB_RECOVERING, 11000, " ms"},
    {{{"job.rank_lost", 10300}, {"job.recovering", 9000}, {"job.adopted", 8000}},
     JOB_RECOVERING,
     11000,
     " ms"},
    /* a round that was out already, for nobody's loss that is known */
    {{{"scheduler.started", 12000},
      {"job.recovering", 10300},
      {"job.rank_lost", 9000},
      {"scheduler.started", 8000},
      {"job.adopted", 7000}},
     JOB_RECOVERING,
     11000,
     " ms"},
    /* of nobody's loss, or of one before, it is not known when: all died at once */
    {{{"job.started", 60000}}, JOB_RUNNING, 700, " ms since the scheduler is back"},
    {{{"job.rank_lost", 50000}, {"job.recovering", 49000}, {"job.recovered", 48000}},
     JOB_RUNNING,
     700,
     " ms since the scheduler is back"},
    /* the disk was full when it was over */
    {{{"job.rank_lost", 50000}, {"job.recovering", 49000}},
     JOB_RUNNING,
     700,
     " ms since the scheduler is back"},
    /* it was away, and came back to the next scheduler */
    {{{"job.rank_lost", 50000}, {"scheduler.started", 49000}, {"job.adopted", 48000}},
     JOB_RUNNING,
     700,
     " ms since the scheduler is back"},
    {{{"scheduler.started", 51000}, {"job.rank_lost", 50000}, {"job.adopted", 48000}},
     JOB_RUNNING,
     50700,
     " ms"},
    /* the wall clock was set back, or far ahead */
    {{{"job.rank_lost", -3600000}}, JOB_RUNNING, 700, " ms"},
    {{{"job.rank_lost", 400LL * 86400000}}, JOB_RUNNING, MS_STALL_MAX_MS, " ms"},
};

static void load_after(const struct past past[6], enum sched_job_state state)
{
    load_rows(state);
    for (uint64_t i = 0; i < 6 && past[i].kind != NULL; i++) {
        const uint64_t job = strncmp(past[i].kind, "job.", 4) == 0;
        struct sched_event_row row = fix_event(i + 1, past[i].kind, job, "user:alice");
        row.at_ms -= past[i].ago_ms;
        ck_ms_ok(sched_load_event(fix.s, &row, err));
    }
    loaded();
}

START_TEST(after_a_restart_a_job_stands_still_since_the_loss_that_is_stored)
{
    load_after(stalls[_i].past, stalls[_i].state);
    conns[0] = come_back(0, 100, 1, 11, 1);
    fix_pass(700);
    conns[1] = fix_register("w1", 12);
    all_ready_at(12, 2, 5);

    const char *text = event_of("job.recovered")->text;
    char words[120];
    snprintf(words, sizeof(words), "it stood still for %lld%s", (long long)stalls[_i].ms,
             stalls[_i].behind);
    const char *at = strstr(text, words);
    ck_assert_msg(at != NULL && at[strlen(words)] == '\0', "%s", text);
    ck_assert_uint_eq(fix_show(1)->recovering_ms, (uint64_t)stalls[_i].ms);
    ck_assert_int_eq(fix_show(1)->recovering_least, strcmp(stalls[_i].behind, " ms") != 0);
}
END_TEST

/* Who comes back tells once more what it said before, of the step that it holds. */
START_TEST(after_a_restart_what_is_told_again_is_no_sign_that_a_job_goes_on)
{
    static const struct past past[6] = {{"job.rank_lost", 50000}};
    load_after(past, JOB_RUNNING);
    conns[0] = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w0", 100);
    msg.job = 1;
    msg.generation = 11;
    msg.running = 1;
    msg.step = 4;
    fix_say(conns[0], MS_MSG_REGISTER, &msg.base);
    progress(11, 4);
    fix_pass(700);
    conns[1] = fix_register("w1", 12);
    all_ready_at(12, 2, 5);

    ck_assert_uint_eq(fix_show(1)->recovering_ms, 50700);
}
END_TEST

START_TEST(after_a_restart_what_is_told_again_takes_no_rank_back)
{
    load(JOB_RUNNING);
    conns[0] = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w0", 100);
    msg.job = 1;
    msg.generation = 11;
    msg.running = 1;
    msg.step = 40;
    fix_say(conns[0], MS_MSG_REGISTER, &msg.base);

    progress(11, 20);
    ck_assert_uint_eq(fix_show(1)->ranks[0]->step, 40);
    ck_assert_ptr_null(fix_show(1)->progress);
    progress(11, 40);

    ck_assert_uint_eq(fix_show(1)->progress->step, 40);
}
END_TEST

/* It was heard of, and is lost then: the job went on until now. */
START_TEST(after_a_restart_who_came_back_is_lost_when_it_is)
{
    load(JOB_RUNNING);
    conns[0] = come_back(0, 100, 1, 11, 1);
    conns[1] = come_back(1, 101, 1, 11, 1);
    fix_pass(5000);
    fix_close(conns[1]);
    fix_pass(300);

    ck_assert_uint_eq(fix_show(1)->recovering_ms, 300);
    ck_assert(!fix_show(1)->recovering_least);
}
END_TEST

START_TEST(after_a_restart_another_process_of_the_node_takes_the_rank)
{
    load(JOB_RUNNING);
    conns[0] = come_back(0, 100, 1, 11, 1);

    conns[1] = fix_register("w1", 12);

    assigned(0, 12);
    assigned(1, 12);
}
END_TEST

/* All on one host, which is set aside when it lost two. */
START_TEST(after_a_restart_each_node_takes_its_own_rank_whichever_comes_first)
{
    const uint32_t first = (uint32_t)_i;
    load(JOB_RUNNING);
    conns[first] = come_back(first, 12, 0, 0, 0);

    conns[1 - first] = come_back(1 - first, 13, 0, 0, 0);

    const Ms__Assign *msg = assigned(0, 12);
    ck_assert_str_eq(msg->members[0]->node_id, "w0");
    ck_assert_str_eq(msg->members[1]->node_id, "w1");
    assigned(1, 12);
}
END_TEST

START_TEST(after_a_restart_a_round_is_begun_anew)
{
    load(JOB_RECOVERING);
    conns[0] = come_back(0, 100, 1, 8, 1); /* it never heard of the last round */
    fix_job_is(1, "RECOVERING", "waits for the nodes of rank 1 to come back");

    conns[1] = come_back(1, 101, 1, 11, 0);

    assigned(0, 12);
    assigned(1, 12);
    all_ready_at(12, 2, 9);
    fix_job_is(1, "RUNNING", "");
}
END_TEST

/* Its host takes no new ranks meanwhile: that is no news to the queue, and the last that was
 * missing is back all the same. */
START_TEST(after_a_restart_the_round_waits_for_no_drained_host)
{
    load(JOB_RECOVERING);
    conns[0] = come_back(0, 100, 1, 11, 0);
    host_drain(fix.s, node_find(fix.s, "w0")->host, "admin:root", "new memory");

    conns[1] = come_back(1, 101, 1, 11, 0);

    assigned(0, 12);
    assigned(1, 12);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_recover");
    TCase *t = tcase_create("who");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, an_idle_node_takes_the_lost_rank_at_once);
    tcase_add_test(t, a_process_that_was_asked_to_end_declines_the_round_and_the_job_goes_on);
    tcase_add_test(t, a_loss_tells_when_the_node_was_heard_of_before);
    tcase_add_test(t, a_loss_that_a_process_tells_itself_has_no_silence_before_it);
    tcase_add_test(t, a_process_in_the_place_of_another_tells_when_that_was_heard_of);
    tcase_add_test(t, all_go_on_when_all_are_ready);
    tcase_add_test(t, who_named_no_log_has_opened_one_all_the_same);
    tcase_add_test(t, without_a_node_nothing_is_stored_and_the_next_process_takes_it);
    tcase_add_loop_test(t, what_no_rank_held_any_more_is_trained_again_and_told, 0,
                        (int)MS_ARRAY_SIZE(rollbacks));
    tcase_add_test(t, a_process_that_was_given_up_takes_its_rank_back);
    tcase_add_loop_test(t, who_had_ended_the_rank_does_not_take_it_back, 0, 4);
    tcase_add_test(t,
                   who_comes_back_after_another_took_its_rank_is_stopped_once_that_has_the_state);
    tcase_add_test(t, losses_of_a_large_job_that_come_one_by_one_make_one_round);
    tcase_add_test(t, several_ranks_are_filled_together_or_not_at_all);
    tcase_add_test(t, all_ranks_may_be_lost_at_once);
    tcase_add_test(t, a_loss_within_a_round_makes_the_next_one);
    tcase_add_test(t, who_leaves_may_decline_the_round);
    tcase_add_test(t, a_rank_that_was_done_takes_part_again);
    tcase_add_test(t, jobs_that_wait_let_a_lost_rank_be_taken_first);
    tcase_add_test(t, a_pause_longer_than_the_lease_keeps_no_node_from_the_others);
    suite_add_tcase(suite, t);

    t = tcase_create("modes");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, in_a_run_a_loss_before_the_start_is_no_end);
    tcase_add_test(t, in_a_dynamic_cluster_only_a_vacant_rank_lets_somebody_in);
    tcase_add_test(t, in_a_dynamic_cluster_nobody_takes_the_place_of_who_has_to_come_back);
    suite_add_tcase(suite, t);

    t = tcase_create("restart");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, after_a_restart_who_is_missing_is_replaced);
    tcase_add_test(t, after_a_restart_the_process_that_is_missing_is_known);
    tcase_add_test(t, after_a_restart_what_was_recovered_is_counted_still);
    tcase_add_loop_test(t, after_a_restart_a_job_stands_still_since_the_loss_that_is_stored, 0,
                        (int)MS_ARRAY_SIZE(stalls));
    tcase_add_test(t, after_a_restart_what_is_told_again_is_no_sign_that_a_job_goes_on);
    tcase_add_test(t, after_a_restart_what_is_told_again_takes_no_rank_back);
    tcase_add_test(t, after_a_restart_who_came_back_is_lost_when_it_is);
    tcase_add_test(t, after_a_restart_another_process_of_the_node_takes_the_rank);
    tcase_add_loop_test(t, after_a_restart_each_node_takes_its_own_rank_whichever_comes_first, 0,
                        2);
    tcase_add_test(t, after_a_restart_a_round_is_begun_anew);
    tcase_add_test(t, after_a_restart_the_round_waits_for_no_drained_host);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
