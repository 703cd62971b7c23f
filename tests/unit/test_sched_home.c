/* test_sched_home.c - the node with the checkpoints of a job that lost all its ranks */
#include "tests/unit/sched_recover_case.h"

enum { TOPO_MS = 100000, WAIT_MS = TOPO_MS / 2 };

static const char here[] = "{\"checkpoint\":{\"directory\":\"checkpoints\",\"every_steps\":100}}";

static void submit_with(const char *spec, uint32_t ranks)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(ranks);
    msg.recovery = 1;
    msg.job_json.data = (uint8_t *)spec;
    msg.job_json.len = strlen(spec);
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_SUBMITTED));
}

/* Rank 0 has a checkpoint of that step, when it is at another one. */
static void saves(uint64_t generation, uint64_t step, uint64_t saved)
{
    Ms__Progress msg = MS__PROGRESS__INIT;
    msg.job = 1;
    msg.generation = generation;
    msg.step = step;
    msg.saved = saved;
    msg.phase = (char *)"training";
    fix_say(conns[0], MS_MSG_PROGRESS, &msg.base);
}

static uint64_t node_in(const char *id, uint64_t incarnation, uint64_t folder)
{
    const uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, incarnation);
    msg.jobs_folder = folder;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

/* On nodes w0, w1, ... with that folder of jobs; rank 0 is at that step, and has saved one. */
static void runs_in(uint64_t folder, const char *spec, uint32_t ranks, uint64_t step,
                    uint64_t saved)
{
    start_for(SCHED_STANDING, 0, TOPO_MS);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        char id[8];
        snprintf(id, sizeof(id), "w%u", rank);
        conns[rank] = node_in(id, 1 + rank, folder);
    }
    submit_with(spec, ranks);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, ranks, 0);
    saves(1, step, saved);
    fix_job_is(1, "RUNNING", "");
}

/* ... and one more is idle. */
static uint64_t running_with(const char *spec, uint32_t ranks)
{
    runs_in(0, spec, ranks, 250, 200);
    return fix_register("spare", 90);
}

/* Rank 0 is told to. */
static void leaves(void)
{
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = msg.generation = 1;
    msg.code = MS_E_CANCELLED;
    msg.leaving = 1;
    msg.text = msg.weights_sha256 = msg.plan_sha256 = msg.log_path = (char *)"";
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);
}

static void beat_spare_for(uint64_t spare, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += FIX_LEASE_MS / 2) {
        fix_beat(spare);
        fix_pass(FIX_LEASE_MS / 2);
    }
}

static void lose_all(const uint64_t *of, uint32_t ranks)
{
    for (uint32_t rank = ranks; rank > 0; rank--) {
        fix_close(of[rank - 1]);
    }
}

static const char awaits[] = "waits for node w0, which has the checkpoint of step 200: no process "
                             "holds the state any more. In ";

START_TEST(a_job_whose_last_rank_is_lost_waits_for_the_node_with_its_checkpoints)
{
    const uint64_t spare = running_with(here, 1);
    fix_close(conns[0]);
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
    fix_job_is(1, "RECOVERING", awaits);
    beat_spare_for(spare, WAIT_MS / 2);
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
    conns[0] = fix_register("w0", 2);
    (void)assigned(0, 2);
}
END_TEST

START_TEST(as_long_as_it_may_come_back)
{
    const uint64_t spare = running_with(here, 1);
    fix_close(conns[0]);
    fix_job_is(1, "RECOVERING",
               "no process holds the state any more. In 50 s another node takes its place");
    beat_spare_for(spare, WAIT_MS - FIX_LEASE_MS / 2);
    fix_beat(spare);
    fix_pass(FIX_LEASE_MS / 2 - 1);
    fix_job_is(1, "RECOVERING", "In 1 s another node");
    fix_pass(1);
    conns[0] = spare;
    (void)assigned(0, 2);
}
END_TEST

/* A folder of all nodes, and none: whoever takes it reads the same. */
START_TEST(where_any_node_has_them_any_node_is_as_good)
{
    static const char *const specs[] = {
        "{\"checkpoint\":{\"directory\":\"/shared/c\",\"every_steps\":100}}",
        "{\"checkpoint\":null}", "{}",
        "{\"name\":\"\\\"checkpoint\\\":{\\\"directory\\\":\\\"c\\\"}\"}"};
    const uint64_t spare = running_with(specs[_i], 1);
    fix_close(conns[0]);
    fix_lease_passes(&spare, 1);
    conns[0] = spare;
    (void)assigned(0, 2);
}
END_TEST

/* ... nor another job that lost ranks of its own. */
START_TEST(no_other_job_that_lacks_a_node_has_it_either)
{
    const uint64_t spare = running_with(here, 2); /* job 1: w0, w1 */
    const uint64_t third = fix_register("third", 91);
    submit_with("{}", 2);
    fix_plan(spare, 2, 2, FIX_PLAN);
    fix_ready_with(spare, 2, 2, 0, fix_digest(FIX_BITS));
    fix_ready_with(third, 2, 2, 1, fix_digest(FIX_BITS));
    fix_job_is(2, "RUNNING", "");
    fix_close(conns[1]);
    fix_close(conns[0]);
    fix_close(third);
    fix_job_is(2, "RECOVERING", "waits for a node to take rank 1");
    conns[0] = fix_register("w0", 11);
    fix_beat(spare);
    beat_spare_for(conns[0], FIX_LEASE_MS / 2);
    fix_job_is(2, "RECOVERING", "waits for a node to take rank 1");
    conns[1] = fix_register("w1", 12);
    (void)assigned(0, 3);
}
END_TEST

/* Rank 0 left before the others, so that another node had its rank, and nothing of it yet. */
START_TEST(they_are_on_the_node_whose_rank_0_wrote_them)
{
    const uint64_t spare = running_with(here, 2);
    fix_close(conns[0]);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN)); /* rank 0 is its */
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", awaits);
    conns[1] = fix_register("w1", 12);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    conns[1] = fix_register("w0", 11);
    (void)assigned(1, 3);
    conns[0] = spare;
    (void)assigned(0, 3);
}
END_TEST

/* It was given the place of another one, for it reads them for all, and is lost with that. */
START_TEST(a_rank_that_it_had_since_is_not_waited_for_twice)
{
    const uint64_t spare = running_with(here, 2);
    fix_close(conns[0]);
    fix_close(conns[1]); /* rank 0 is the spare's */
    conns[1] = fix_register("w0", 11);
    fix_lease_passes((uint64_t[]){spare, conns[1]}, 2); /* for who had rank 1 */
    (void)assigned(1, 3);
    fix_close(conns[1]);
    fix_close(spare);
    fix_job_is(1, "RECOVERING", awaits);
    conns[0] = fix_register("spare", 91);
    conns[1] = fix_register("w0", 12);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
}
END_TEST

/* ... and is there before the other ranks' nodes: nobody else takes it meanwhile. */
START_TEST(it_is_kept_for_its_job_while_that_lacks_other_nodes)
{
    runs_in(0, here, 2, 250, 200);
    ck_assert_uint_eq(fix_submit(1, 0), 2);
    fix_close(conns[1]);
    fix_close(conns[0]);
    conns[0] = fix_register("w0", 11);
    beat_spare_for(conns[0], 4 * FIX_LEASE_MS);
    fix_job_is(2, "QUEUED", "1 idle, 1 kept for a job that lost its ranks");
    conns[1] = fix_register("w1", 12);
    (void)assigned(0, 2);

    fix_close(conns[1]);
    fix_close(conns[0]);
    conns[0] = fix_register("w0", 21);
    beat_spare_for(conns[0], WAIT_MS);
    fix_job_is(2, "PLACING", "waits for rank 0"); /* but only as long as it is waited for */
}
END_TEST

/* One of release 0.1 is idle, too: the queue's job may have that one. */
START_TEST(it_is_kept_for_its_job_beside_one_that_it_cannot_take)
{
    runs_in(0, here, 2, 250, 200);
    fix_close(conns[1]);
    fix_close(conns[0]);
    fix_level = 0;
    const uint64_t old = fix_register("w9", 90);
    fix_level = MS_WIRE_LEVEL;
    const uint64_t home = fix_register("w0", 11);
    ck_assert_uint_eq(fix_submit(1, 0), 2);
    bool is_placed = false;
    for (int i = 0; i < 8 && !is_placed; i++) { /* ours goes first for a while */
        is_placed = fix_heard(old, MS_MSG_ASSIGN) != NULL;
        ck_assert_ptr_null(fix_heard(home, MS_MSG_ASSIGN));
        fix_beat(home);
        fix_beat(old);
        fix_pass(FIX_LEASE_MS / 2);
    }
    ck_assert(is_placed || fix_heard(old, MS_MSG_ASSIGN) != NULL);
}
END_TEST

/* ... and a rank 0 elsewhere has none before it has written one. */
START_TEST(they_move_with_the_next_one_that_is_written)
{
    const uint64_t spare = running_with(here, 2);
    fix_close(conns[0]);
    conns[0] = spare;
    (void)assigned(0, 2);
    all_ready_at(2, 2, 250);
    if (_i == 1) {
        saves(2, 300, 150); /* an older one than that: no rank 0 writes it */
    } else if (_i == 2) {
        saves(2, 300, 300);
    }
    fix_close(conns[0]);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING",
               _i == 2 ? "waits for node spare, which has the checkpoint of step 300" : awaits);
}
END_TEST

/* It saves what it holds before its process ends. */
START_TEST(a_rank_0_that_is_told_to_leave_has_one)
{
    runs_in(0, here, 1, 250, 0);
    const uint64_t spare = fix_register("spare", 90);
    leaves();
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
    fix_job_is(1, "RECOVERING", "waits for node w0, which saves step 250 before it leaves");
    fix_close(conns[0]);
    fix_job_is(1, "RECOVERING", "waits for node w0, which has the checkpoint of step 250");
}
END_TEST

/* ... and the next one writes the step from which it goes on at once. */
START_TEST(of_two_with_the_same_step_the_one_that_is_told_of_last_is_there)
{
    const uint64_t spare = running_with(here, 2);
    const uint64_t left = conns[0];
    leaves();
    conns[0] = spare;
    (void)assigned(0, 2);
    fix_close(left);
    all_ready_at(2, 2, 250);
    saves(2, 0, 250); /* before its first step has ended */
    fix_close(conns[0]);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "waits for node spare, which has the checkpoint of step 250");
}
END_TEST

/* Steps may be long. */
/* What was made while the scheduler was away comes in its next round. */
START_TEST(it_is_told_of_with_a_step_while_others_are_waited_for)
{
    runs_in(0, here, 2, 250, 0);
    fix_close(conns[1]);
    saves(1, 251, 250);
    fix_close(conns[0]);
    const uint64_t a = fix_register("a", 81);
    const uint64_t b = fix_register("b", 82);
    ck_assert_ptr_null(fix_heard(a, MS_MSG_ASSIGN));
    ck_assert_ptr_null(fix_heard(b, MS_MSG_ASSIGN));
    fix_job_is(1, "RECOVERING", "waits for node w0, which has the checkpoint of step 250");
}
END_TEST

START_TEST(it_is_told_of_between_two_steps)
{
    runs_in(0, here, 1, 250, 0);
    const uint64_t spare = fix_register("spare", 90);
    saves(1, 0, 250);
    ck_assert_uint_eq(fix_show(1)->progress->step, 250);
    fix_close(conns[0]);
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
    fix_job_is(1, "RECOVERING", "waits for node w0, which has the checkpoint of step 250");
}
END_TEST

/* The scheduler may die before anything else befalls the job. */
START_TEST(what_is_known_of_it_is_stored_by_itself)
{
    (void)running_with(here, 1);
    fix_pass(1000); /* as evaluations are */
    const struct sched_job_row *row = fix_stored(1);
    ck_assert_ptr_nonnull(row);
    Ms__JobResults *msg = ms__job_results__unpack(NULL, row->results_bytes, row->results);
    ck_assert_ptr_nonnull(msg);
    ck_assert_ptr_nonnull(msg->home);
    ck_assert_str_eq(msg->home->node_id, "w0");
    ck_assert_uint_eq(msg->home->step, 200);
    ms__job_results__free_unpacked(msg, NULL);
}
END_TEST

/* Nothing is lost by it that another node could have. */
START_TEST(a_job_without_one_goes_to_any_node)
{
    runs_in(0, here, 1, 50, 0);
    const uint64_t spare = fix_register("spare", 90);
    fix_close(conns[0]);
    fix_lease_passes(&spare, 1);
    conns[0] = spare;
    (void)assigned(0, 2);
}
END_TEST

/* Both had the folder, and rank 1 has its own node again. */
START_TEST(who_has_the_same_folder_and_another_rank_reads_for_all)
{
    runs_in(7, here, 2, 250, 200);
    leaves(); /* which counts against nobody */
    fix_close(conns[0]);
    fix_close(conns[1]);
    conns[0] = node_in("spare", 90, 8);
    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_ASSIGN));
    conns[1] = node_in("w1", 12, 7);
    (void)assigned(0, 2);
    (void)assigned(1, 2);
}
END_TEST

/* Slots of one host, say. */
START_TEST(a_node_with_the_same_folder_is_as_good)
{
    runs_in(7, here, 1, 250, 200);
    const uint64_t idle[] = {node_in("other", 2, 8), node_in("slot", 3, 7)};
    fix_close(conns[0]);
    fix_job_is(
        1, "RECOVERING",
        "waits for node w0: no process holds the state any more, but its own may, for its end "
        "was not seen. In 10 s others take its place. ");
    fix_lease_passes(idle, 2);
    conns[0] = idle[1];
    (void)assigned(0, 2);
}
END_TEST

/* What it saves would be read before it is complete. */
START_TEST(nobody_reads_there_before_a_process_that_saves_has_left)
{
    runs_in(7, here, 1, 250, 0);
    const uint64_t slot = node_in("slot", 2, 7);
    leaves();
    ck_assert_ptr_null(fix_heard(slot, MS_MSG_ASSIGN));
    for (int i = 0; i < 8; i++) {
        fix_beat(conns[0]);
        fix_beat(slot);
        fix_pass(FIX_LEASE_MS / 2);
        ck_assert_ptr_null(fix_heard(slot, MS_MSG_ASSIGN));
    }
    Ms__Leave leave = MS__LEAVE__INIT;
    leave.reason = (char *)"";
    fix_say(conns[0], MS_MSG_LEAVE, &leave.base);
    conns[0] = slot;
    (void)assigned(0, 2);
}
END_TEST

/* It never came, and what is trained without it has its checkpoints elsewhere. */
START_TEST(one_that_was_given_up_is_not_waited_for_again)
{
    const uint64_t spare = running_with(here, 1);
    fix_close(conns[0]);
    beat_spare_for(spare, WAIT_MS);
    conns[0] = spare;
    (void)assigned(0, 2);
    all_ready_at(2, 1, 0);
    ck_assert(fix_logged("job.checkpoints_given_up job=1 node=\"w0\" step=200"));
    saves(2, 50, 0);
    fix_close(spare);
    conns[0] = fix_register("third", 91);
    fix_lease_passes(conns, 1);
    (void)assigned(0, 3);
}
END_TEST

/* ... but before that nothing is trained, and it may come all the same. */
START_TEST(it_is_given_up_when_another_one_begins_and_not_before)
{
    const uint64_t spare = running_with(here, 1);
    fix_close(conns[0]);
    beat_spare_for(spare, WAIT_MS);
    const uint64_t third = fix_register("third", 91);
    const uint64_t home = fix_register("w0", 2);
    fix_close(spare);
    ck_assert_ptr_null(fix_heard(third, MS_MSG_ASSIGN));
    conns[0] = home;
    (void)assigned(0, 3);
}
END_TEST

/* As if it stayed away: the job outlives that, and is another node's in the end. */
START_TEST(one_that_ends_before_it_is_ready_again_and_again_fails_no_job)
{
    const uint64_t spare = running_with(here, 1);
    const int64_t end = fix.now.mono_ms + WAIT_MS;
    fix_close(conns[0]);
    int n = 0;
    while (fix.now.mono_ms < end) {
        const uint64_t home = fix_register("w0", 100 + (uint64_t)n);
        const Ms__Assign *assign = fix_heard(home, MS_MSG_ASSIGN);
        if (n == 4) {
            fix_job_is(1, "RECOVERING", "which has the checkpoint of step 200: no process holds");
            fix_job_is(1, "RECOVERING",
                       "Node w0, which can read it, is asked again in 2 s. rank 0 (node");
        }
        for (int i = 0; i < 6 && assign == NULL && fix.now.mono_ms < end; i++) {
            fix_beat(home);
            fix_beat(spare);
            fix_pass(1000);
            assign = fix_heard(home, MS_MSG_ASSIGN);
        }
        ck_assert(assign != NULL || fix.now.mono_ms >= end);
        fix_close(home);
        n++;
    }
    ck_assert_int_gt(n, 9);
    fix_beat(spare);
    fix_pass(FIX_LEASE_MS / 2);
    conns[0] = spare;
    const Ms__JobInfo *job = fix_show(1);
    ck_assert_str_eq(job->state, "RECOVERING");
    for (uint64_t rank = 0; rank < job->n_ranks; rank++) {
        ck_assert_str_eq(job->ranks[rank]->node_id, "spare");
    }
}
END_TEST

/* ... though it is there again, and will be asked in some seconds: no more. */
START_TEST(one_that_ended_just_now_is_not_late)
{
    const uint64_t spare = running_with(here, 1);
    const int64_t end = fix.now.mono_ms + WAIT_MS;
    uint64_t home = 0;
    fix_close(conns[0]);
    for (uint64_t n = 0; fix.now.mono_ms < end - 4000; n++) {
        home = fix_register("w0", 100 + n);
        while (fix_heard(home, MS_MSG_ASSIGN) == NULL && fix.now.mono_ms < end - 500) {
            fix_beat(home);
            fix_beat(spare);
            fix_pass(500);
        }
        if (fix_heard(home, MS_MSG_ASSIGN) != NULL) {
            fix_close(home);
        }
    }
    if (fix_heard(home, MS_MSG_ASSIGN) == NULL) {
        home = fix_register("w0", 200);
    }
    ck_assert_int_lt(fix.now.mono_ms, end);
    fix_beat(home);
    fix_beat(spare);
    fix_pass(end - fix.now.mono_ms);
    ck_assert_ptr_null(fix_heard(home, MS_MSG_ASSIGN));
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
}
END_TEST

/* Likewise; whichever of both says so. */
START_TEST(one_that_the_others_do_not_reach_fails_no_job)
{
    runs_in(0, here, 2, 250, 200);
    lose_all(conns, 2);
    const int64_t end = fix.now.mono_ms + WAIT_MS;
    uint64_t generation = 1;
    int n = 0;
    conns[0] = node_on("w0", 50, "h0");
    conns[1] = node_on("w1", 51, "h1");
    while (fix.now.mono_ms < end) {
        const Ms__Assign *assign = fix_heard(conns[0], MS_MSG_ASSIGN);
        if (assign != NULL && assign->generation > generation) {
            generation = assign->generation;
            peer_report(generation, (uint32_t)_i, (uint32_t)(1 - _i));
            n++;
        }
        for (uint32_t rank = 0; rank < 2; rank++) {
            const Ms__Stop *stop = fix_heard(conns[rank], MS_MSG_STOP);
            if (stop != NULL) {
                fix_stopped(conns[rank], 1, stop->generation, rank);
            }
        }
        if (fix_heard(conns[0], MS_MSG_ASSIGN) == NULL) {
            fix_beat(conns[0]);
            fix_beat(conns[1]);
            fix_pass(MS_BLAME_MS);
        }
    }
    ck_assert_int_gt(n, MS_STUMBLES_MAX);
    ck_assert_str_eq(fix_show(1)->state, "RECOVERING");
}
END_TEST

/* It does not outlive the wait: the queue has its turn. */
START_TEST(nobody_else_waits_for_one_that_is_not_waited_for_any_more)
{
    runs_in(0, here, 2, 250, 200);
    ck_assert_uint_eq(fix_submit(1, 0), 2);
    fix_close(conns[1]);
    fix_close(conns[0]);
    const uint64_t home = fix_register("w0", 11);
    for (int i = 0; i < 2 * WAIT_MS / (FIX_LEASE_MS / 2); i++) {
        if (fix_heard(home, MS_MSG_ASSIGN) != NULL) {
            return;
        }
        fix_beat(home);
        fix_pass(FIX_LEASE_MS / 2);
    }
    ck_abort_msg("job 2 was never placed");
}
END_TEST

/* In a round, too, and before the first one that is ready in it. */
START_TEST(it_is_told_of_while_others_are_waited_for)
{
    runs_in(0, here, 2, 250, 0);
    fix_close(conns[1]);
    saves(_i == 0 ? 1 : 0, 0, 250);
    fix_close(conns[0]);
    (void)fix_register("spare", 90);
    (void)fix_register("third", 91);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(1, "RECOVERING", "waits for node w0, which has the checkpoint of step 250");
}
END_TEST

/* A rank that another one has since, or another job's, says nothing of it. */
START_TEST(others_tell_of_none)
{
    (void)running_with(here, 2);
    Ms__Progress msg = MS__PROGRESS__INIT;
    msg.job = _i == 0 ? 1 : 2;
    msg.generation = 1;
    msg.saved = 240;
    msg.phase = (char *)"";
    fix_say(conns[_i == 0 ? 1 : 0], MS_MSG_PROGRESS, &msg.base);
    fix_close(conns[1]);
    fix_close(conns[0]);
    fix_job_is(1, "RECOVERING", awaits);
}
END_TEST

static uint64_t others[RANKS_MAX];

/* Job 1, and job 2 on a, b, ...: with one folder. */
static void two_jobs(uint32_t first, uint32_t second)
{
    runs_in(7, here, first, 250, 200);
    submit_with(here, second);
    for (uint32_t rank = 0; rank < second; rank++) {
        const char id[] = {(char)('a' + rank), '\0'};
        others[rank] = node_in(id, 21 + rank, 7);
    }
    fix_plan(others[0], 2, 2, FIX_PLAN);
    Ms__Progress msg = MS__PROGRESS__INIT;
    msg.job = 2;
    msg.generation = 2;
    msg.saved = 50;
    msg.phase = (char *)"";
    for (uint32_t rank = 0; rank < second; rank++) {
        fix_ready_with(others[rank], 2, 2, rank, fix_digest(FIX_BITS));
    }
    fix_say(others[0], MS_MSG_PROGRESS, &msg.base);
    fix_job_is(2, "RUNNING", "");
}

/* ... or both would wait for what the other one keeps. */
START_TEST(of_two_jobs_with_one_folder_the_first_has_all_of_its_nodes)
{
    two_jobs(2, 2);
    lose_all(conns, 2);
    lose_all(others, 2);
    conns[0] = node_in("s1", 31, 7);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);

    conns[1] = node_in("s2", 32, 7);

    fix_lease_passes(conns, 2);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_ASSIGN));
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
    fix_close(conns[1]); /* before it was ready: it may have it again */
    conns[1] = node_in("s2", 33, 7);
    for (int i = 0; i < 4 && fix_heard(conns[1], MS_MSG_ASSIGN) == NULL; i++) {
        fix_beat(conns[0]);
        fix_beat(conns[1]);
        fix_pass(500);
    }
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
}
END_TEST

/* ... but leaves the second one its own where there is another, with the checkpoints or for a rank
 * that needs none; and while its own state is held it takes none of them. */
START_TEST(of_two_jobs_with_one_folder_the_first_takes_other_nodes_before)
{
    two_jobs(2, 5);
    lose_all(others, 5);
    const uint64_t s1 = node_in("s1", 31, 7);
    fix_close(conns[1]);
    ck_assert_ptr_null(fix_heard(s1, MS_MSG_ASSIGN));
    const uint64_t s2 = node_in("s2", 32, 7);
    const bool is_s1 = fix_heard(s1, MS_MSG_ASSIGN) != NULL;
    const uint64_t kept = is_s1 ? s2 : s1;
    conns[1] = is_s1 ? s1 : s2;
    (void)assigned(1, 3);
    all_ready_at(3, 2, 250);
    const uint64_t home = node_in("s3", 33, 7);
    const uint64_t other = node_in("s4", 34, 9);
    const uint64_t both[] = {conns[0], conns[1]};
    sched_stood_still(fix.s, FIX_LEASE_MS); /* both losses are seen before anybody is chosen */
    lose_all(both, 2);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    for (int i = 0; i < 4 && fix_count(MS_MSG_ASSIGN) == 0; i++) {
        fix_beat(kept);
        fix_beat(home);
        fix_beat(other);
        fix_pass(FIX_LEASE_MS / 2);
    }

    ck_assert_ptr_nonnull(fix_heard(other, MS_MSG_ASSIGN));
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
}
END_TEST

/* Each of two has a slot with the folder. */
START_TEST(two_jobs_with_one_folder_keep_two_of_its_nodes)
{
    two_jobs(3, 3);
    lose_all(conns, 3);
    lose_all(others, 3);
    const uint64_t s1 = node_in("s1", 31, 7);
    const uint64_t s2 = node_in("s2", 32, 7);
    ck_assert_uint_eq(fix_submit(1, 0), 3);
    for (int i = 0; i < 6; i++) {
        fix_beat(s1);
        fix_beat(s2);
        fix_pass(FIX_LEASE_MS / 2);
    }
    fix_job_is(3, "QUEUED", "2 idle, 2 kept for");
    fix_level = 0; /* one that neither of them can take */
    const uint64_t old = fix_register("z", 90);
    fix_level = MS_WIRE_LEVEL;
    ck_assert_ptr_nonnull(fix_heard(old, MS_MSG_ASSIGN));
}
END_TEST

/* The last one that holds the state may be one whose rank another one has. */
START_TEST(its_time_begins_when_the_last_one_that_keeps_the_state_is_lost)
{
    const uint64_t spare = running_with(here, 2);
    for (int i = 0; i < 9 && fix_heard(spare, MS_MSG_ASSIGN) == NULL; i++) { /* w1 is silent */
        fix_beat(conns[0]);
        fix_beat(spare);
        fix_pass(FIX_LEASE_MS / 2);
    }
    conns[1] = come_back(1, 2, 1, 1, 1);
    fix_close(conns[0]);
    fix_close(spare);
    beat_spare_for(conns[1], WAIT_MS / 2);
    fix_close(conns[1]);
    fix_job_is(1, "RECOVERING", "In 50 s another node");
}
END_TEST

/* Nobody could read it: what is written next is newer. */
START_TEST(one_that_no_rank_could_read_counts_for_what_they_went_on_from)
{
    const uint64_t spare = running_with(here, 1);
    fix_close(conns[0]);
    conns[0] = fix_register("w0", 2);
    (void)assigned(0, 2);
    all_ready_at(2, 1, 100);
    saves(2, 160, 150);
    fix_close(conns[0]);
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
    fix_job_is(1, "RECOVERING", "waits for node w0, which has the checkpoint of step 150");
}
END_TEST

START_TEST(while_another_rank_holds_the_state_nobody_waits)
{
    const uint64_t spare = running_with(here, 2);
    fix_close(conns[0]);
    conns[0] = spare;
    (void)assigned(0, 2);
}
END_TEST

START_TEST(nor_does_it_wait_beside_who_keeps_it_for_a_rank_that_another_one_has)
{
    const uint64_t spare = running_with(here, 2);
    for (int i = 0; i < 9 && fix_heard(spare, MS_MSG_ASSIGN) == NULL; i++) { /* w1 is silent */
        fix_beat(conns[0]);
        fix_beat(spare);
        fix_pass(FIX_LEASE_MS / 2);
    }
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    const uint64_t third = fix_register("third", 91);
    conns[1] = come_back(1, 2, 1, 1, 1);
    fix_close(conns[0]);
    conns[0] = third;
    (void)assigned(0, 3);
    (void)assigned(1, 3);
}
END_TEST

START_TEST(when_all_are_lost_the_others_are_filled_with_it)
{
    const uint64_t spare = running_with(here, 2);
    fix_close(conns[1]);
    fix_close(conns[0]); /* the spare had rank 1, and nothing yet */
    fix_job_is(1, "RECOVERING", awaits);
    conns[0] = fix_register("w0", 3);
    fix_lease_passes((uint64_t[]){conns[0], spare}, 2); /* rank 1's may live */
    (void)assigned(0, 3);
    conns[1] = spare;
    (void)assigned(1, 3);
}
END_TEST

static void goes(uint64_t conn)
{
    Ms__Leave leave = MS__LEAVE__INIT;
    fix_say(conn, MS_MSG_LEAVE, &leave.base);
    fix_close(conn);
}

/* It was lost behind what it had read for all: who is ready then holds that. */
START_TEST(nobody_waits_once_another_one_is_ready_with_what_was_there)
{
    const uint64_t spare = running_with(here, 2);
    goes(conns[1]); /* none of them lives on, and could come back */
    goes(conns[0]);
    conns[0] = fix_register("w0", 3);
    (void)assigned(0, 3);
    conns[1] = spare;
    (void)assigned(1, 3);
    const uint64_t third = fix_register("third", 91);
    goes(conns[0]);
    fix_job_is(1, "RECOVERING", awaits);
    ck_assert_ptr_null(fix_heard(third, MS_MSG_ASSIGN));
    ready_at(3, 1, 200);
    conns[0] = third;
    (void)assigned(0, 4);
}
END_TEST

/* It was lost with two processes in an hour; where else are they? */
START_TEST(a_host_that_is_set_aside_is_home_all_the_same)
{
    const uint64_t spare = running_with(here, 1);
    for (uint64_t generation = 2; generation <= 4; generation++) {
        fix_close(conns[0]);
        ck_assert(generation != 3 || fix_logged("host.set_aside"));
        ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
        conns[0] = fix_register("w0", 10 + generation);
        (void)assigned(0, generation);
        all_ready_at(generation, 1, 200 + generation);
        saves(generation, 300 + 10 * generation, 300);
    }
}
END_TEST

/* Its name alone is anybody's. */
START_TEST(another_ones_node_of_that_name_is_not_it)
{
    (void)running_with(here, 1);
    fix_close(conns[0]);
    const uint64_t other = fix_open(MS_ROLE_WORKER, "another-certificate");
    Ms__Register msg = fix_node("w0", 7);
    fix_say(other, MS_MSG_REGISTER, &msg.base);
    ck_assert_ptr_null(fix_heard(other, MS_MSG_ASSIGN));
    fix_job_is(1, "RECOVERING", awaits);
}
END_TEST

/* A newcomer at home that ends before it is ready buys no time. */
START_TEST(its_time_begins_with_the_loss_of_who_held_the_state)
{
    const uint64_t spare = running_with(here, 1);
    fix_close(conns[0]);
    beat_spare_for(spare, WAIT_MS / 2);
    conns[0] = fix_register("w0", 2);
    (void)assigned(0, 2);
    fix_close(conns[0]);
    fix_job_is(1, "RECOVERING", "In 25 s another node");
    beat_spare_for(spare, WAIT_MS / 2);
    conns[0] = spare;
    (void)assigned(0, 3);
}
END_TEST

/* A scheduler starts, with a job of one rank that trained on w0, and has a checkpoint there. */
static uint64_t restarts(uint64_t home_step, enum sched_job_state state)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    cfg.topo_timeout_ms = TOPO_MS;
    fix_create(&cfg);
    struct sched_plan_row plan = {.text = FIX_PLAN, .bytes = strlen(FIX_PLAN)};
    snprintf(plan.sha256, sizeof(plan.sha256), "%s", fix_digest(FIX_PLAN));
    ck_ms_ok(sched_load_plan(fix.s, &plan, err));
    struct sched_job_row row = job_row(1, state);
    row.recovery = true;
    row.workers = 1;
    row.spec = (const uint8_t *)here;
    row.spec_bytes = strlen(here);
    Ms__JobResults results = MS__JOB_RESULTS__INIT;
    Ms__Home home = MS__HOME__INIT;
    uint8_t bytes[64];
    home.node_id = (char *)"w0";
    home.step = home_step;
    results.home = home_step > 0 ? &home : NULL;
    row.results = bytes;
    row.results_bytes = ms__job_results__pack(&results, bytes);
    snprintf(row.plan, sizeof(row.plan), "%s", plan.sha256);
    row.plan_text = FIX_PLAN;
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    struct sched_member_row member = member_row(1, 0);
    ck_ms_ok(sched_load_member(fix.s, &member, err));
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    return fix_register("spare", 90);
}

START_TEST(a_restart_of_the_scheduler_knows_where_they_are)
{
    const uint64_t spare = restarts(200, JOB_RUNNING);
    beat_spare_for(spare, WAIT_MS / 2);
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
    fix_job_is(1, "RECOVERING", "waits for node w0, which has the checkpoint of step 200");
    conns[0] = fix_register("w0", 77);
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_ASSIGN));
}
END_TEST

/* It was stopped, and then its workers, which save. */
START_TEST(or_where_they_may_be)
{
    const enum sched_job_state state = _i == 0 ? JOB_RUNNING : JOB_RECOVERING;
    const uint64_t spare = restarts(0, state);
    beat_spare_for(spare, WAIT_MS / 2);
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
    fix_job_is(1, "RECOVERING",
               "waits for node w0, where rank 0 was while there was no scheduler, and may have "
               "saved: no process");
    int64_t ms = WAIT_MS / 2;
    while (ms < 2 * WAIT_MS && fix_heard(spare, MS_MSG_ASSIGN) == NULL) {
        fix_beat(spare);
        fix_pass(FIX_LEASE_MS / 2);
        ms += FIX_LEASE_MS / 2;
    }
    ck_assert_int_ge(ms, WAIT_MS);
    ck_assert_int_le(ms, WAIT_MS + 2 * FIX_LEASE_MS);
    const Ms__Assign *assign = fix_heard(spare, MS_MSG_ASSIGN);
    conns[0] = spare;
    all_ready_at(assign->generation, 1, 0);
    ck_assert(!fix_logged("job.checkpoints_given_up")); /* none was known of */
}
END_TEST

/* It stood still; but rank 0 has told since that it has none, or never trained. */
START_TEST(who_said_since_that_there_is_none_is_not_guessed)
{
    runs_in(0, here, 1, 50, 0);
    const uint64_t spare = fix_register("spare", 90);
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_pass(FIX_LEASE_MS);
    fix_beat(conns[0]);
    fix_beat(spare);
    if (_i == 1) { /* what lay there before says nothing */
        saves(1, 60, 0);
    }
    fix_pass(FIX_LEASE_MS / 2);
    fix_beat(conns[0]);
    if (_i == 0) {
        saves(1, 70, 0);
    }
    fix_close(conns[0]);
    fix_lease_passes(&spare, 1);
    fix_beat(spare);
    fix_pass(1000);
    const Ms__JobInfo *job = fix_show(1);
    ck_assert_int_eq(strstr(job->reason, "may have saved") != NULL, _i == 1);
}
END_TEST

/* ... by the process that has the rank now. */
START_TEST(what_the_process_before_it_said_is_not_its_word)
{
    runs_in(0, here, 2, 50, 0);
    const uint64_t spare = fix_register("spare", 90);
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_pass(FIX_LEASE_MS);
    fix_beat(conns[1]);
    fix_beat(spare);
    fix_pass(FIX_LEASE_MS / 4);
    saves(1, 60, 0);
    fix_close(conns[0]);
    conns[0] = fix_register("w0", 31);
    const Ms__Assign *assign = fix_heard(conns[0], MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(assign);
    all_ready_at(assign->generation, 2, 60);
    fix_job_is(1, "RUNNING", "");
    fix_close(conns[0]);
    fix_close(conns[1]);
    for (int i = 0; i < 3; i++) {
        fix_lease_passes(&spare, 1);
    }
    fix_job_is(1, "RECOVERING", "waits for node w0, where rank 0 was");
}
END_TEST

START_TEST(one_that_never_trained_is_not_guessed)
{
    runs_in(0, here, 1, 50, 0);
    uint64_t spares[] = {fix_register("s1", 90), fix_register("s2", 91)};
    fix_close(conns[0]);
    fix_lease_passes(spares, 2);
    const bool is_first = fix_heard(spares[0], MS_MSG_ASSIGN) != NULL;
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_pass(FIX_LEASE_MS);
    fix_close(spares[!is_first]); /* it is away */
    fix_beat(spares[is_first]);
    fix_pass(FIX_LEASE_MS / 2);
    fix_beat(spares[is_first]);
    fix_pass(FIX_LEASE_MS / 2);
    ck_assert_ptr_nonnull(fix_heard(spares[is_first], MS_MSG_ASSIGN));
}
END_TEST

/* A scheduler that stood still was not there either. */
START_TEST(nor_does_it_know_what_was_saved_while_it_stood_still)
{
    runs_in(0, here, 2, 250, 0);
    const uint64_t spare = fix_register("spare", 90);
    const uint64_t other = fix_register("other", 91);
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_pass(FIX_LEASE_MS);
    lose_all(conns, 2);
    for (int i = 0; i < 3; i++) {
        fix_beat(spare);
        fix_beat(other);
        fix_pass(FIX_LEASE_MS / 2);
        ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
        ck_assert_ptr_null(fix_heard(other, MS_MSG_ASSIGN));
    }
    fix_job_is(1, "RECOVERING", "waits for node w0, where rank 0 was while there was no scheduler");
    if (_i == 0) {
        conns[0] = fix_register("w0", 11);
        ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_ASSIGN));
    }
}
END_TEST

/* ... and another process registers in its place before the lease is over. */
START_TEST(nor_who_is_there_instead)
{
    runs_in(0, here, 1, 250, 0);
    const uint64_t spare = fix_register("spare", 90);
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_pass(FIX_LEASE_MS);
    fix_close(conns[0]);
    conns[0] = fix_register("w0", 11);
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_ASSIGN));
    for (int i = 0; i < 3; i++) {
        fix_beat(spare);
        fix_beat(conns[0]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    fix_close(conns[0]);
    fix_beat(spare);
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
    fix_job_is(1, "RECOVERING", "waits for node w0, where rank 0 was while there was no scheduler");
}
END_TEST

static uint64_t back_as_rank_0(uint64_t step)
{
    const uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w0", 1);
    msg.job = msg.generation = 1;
    msg.running = 1;
    msg.step = step;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

/* It was cut off as it wrote one, and another process has the rank. */
START_TEST(who_keeps_the_state_of_rank_0_tells_of_its_own)
{
    runs_in(0, here, 2, 250, 0);
    const uint64_t spare = fix_register("spare", 90);
    fix_close(conns[0]);
    conns[0] = back_as_rank_0(250);
    saves(1, 0, 250);
    conns[0] = spare;
    all_ready_at(2, 2, 250);
    fix_job_is(1, "RUNNING", "");
    const uint64_t c = fix_register("c", 401);
    const uint64_t d = fix_register("d", 402);
    lose_all(conns, 2);
    ck_assert_ptr_null(fix_heard(c, MS_MSG_ASSIGN));
    ck_assert_ptr_null(fix_heard(d, MS_MSG_ASSIGN));
    fix_beat(c);
    fix_beat(d);
    fix_pass(3000);
    const Ms__JobInfo *job = fix_show(1);
    bool is_there = false;
    for (size_t rank = 0; rank < job->n_ranks; rank++) {
        is_there = is_there || strcmp(job->ranks[rank]->node_id, "w0") == 0;
    }
    ck_assert(is_there || strstr(job->reason, "waits for node w0") != NULL);
}
END_TEST

/* Then nothing is left to guess. */
START_TEST(a_guess_is_over_when_they_train)
{
    const uint64_t spare = restarts(0, JOB_RECOVERING);
    conns[0] = fix_register("w0", 77);
    const Ms__Assign *assign = fix_heard(conns[0], MS_MSG_ASSIGN);
    for (int i = 0; i < 8 && assign == NULL; i++) { /* its last process is waited for */
        fix_beat(conns[0]);
        fix_beat(spare);
        fix_pass(FIX_LEASE_MS / 2);
        assign = fix_heard(conns[0], MS_MSG_ASSIGN);
    }
    ck_assert_ptr_nonnull(assign);
    all_ready_at(assign->generation, 1, _i == 0 ? 0 : 120);
    fix_close(conns[0]);
    fix_lease_passes(&spare, 1);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
}
END_TEST

/* Its disk was lost, say, or it was started with another jobs_dir; a slot has the old one. */
START_TEST(a_node_with_another_folder_under_its_name_is_not_it)
{
    runs_in(7, here, 1, 250, 200);
    fix_close(conns[0]);
    const uint64_t other = node_in("w0", 2, 8);
    ck_assert_ptr_null(fix_heard(other, MS_MSG_ASSIGN));
    fix_job_is(1, "RECOVERING",
               "which has the checkpoint of step 200 in another folder of jobs (jobs_dir) than it "
               "has now: ");
    conns[0] = node_in("slot", 3, 7);
    (void)assigned(0, 2);
}
END_TEST

/* Of a release that tells of no folder, or from a disk that could not be read. */
START_TEST(where_a_folder_is_not_known_the_name_is_enough)
{
    runs_in(_i == 0 ? 7 : 0, here, 1, 250, 200);
    (void)fix_register("spare", 90);
    fix_close(conns[0]);
    conns[0] = node_in("w0", 2, _i == 0 ? 0 : 8);
    (void)assigned(0, 2);
}
END_TEST

/* As the node itself is, where it stays away. */
START_TEST(a_node_with_the_same_folder_is_kept_for_its_job)
{
    runs_in(7, here, 2, 250, 200);
    fix_close(conns[1]);
    fix_close(conns[0]);
    const uint64_t slot = node_in("slot", 3, 7);
    submit_with("{}", 1);
    beat_spare_for(slot, 4 * FIX_LEASE_MS);
    fix_job_is(2, "QUEUED",
               "waits for 1 idle node: 1 registered, 1 idle, 1 kept for a job that lost its ranks");
    conns[0] = slot;
    conns[1] = node_in("w1", 4, 9);
    (void)assigned(0, 2);
    (void)assigned(1, 2);
}
END_TEST

/* The first of them goes on. */
START_TEST(two_jobs_with_one_node_do_not_keep_it_from_each_other)
{
    runs_in(0, here, 1, 250, 200);
    fix_close(conns[0]);
    conns[0] = fix_register("w0", 2);
    (void)assigned(0, 2);
    all_ready_at(2, 1, 200);
    const uint64_t second = fix_register("w1", 3);
    submit_with(here, 1);
    fix_plan(second, 2, 3, FIX_PLAN);
    fix_ready_with(second, 2, 3, 0, fix_digest(FIX_BITS));
    Ms__Progress msg = MS__PROGRESS__INIT;
    msg.job = 2;
    msg.generation = 3;
    msg.saved = 10;
    msg.phase = (char *)"training";
    fix_say(second, MS_MSG_PROGRESS, &msg.base);
    fix_close(second);
    fix_close(conns[0]);
    conns[0] = fix_register("w0", 5);
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_ASSIGN));
}
END_TEST

/* ---- a cancel while whoever has rank 0 holds nothing ------------------------------------------
 */

/* w0 had rank 0 and saved; the spare node takes that, and the last one that held the state is lost.
 * alice's connection. */
static uint64_t cancelled_at_a_spare(uint64_t *ret_spare)
{
    *ret_spare = running_with(here, 2);
    fix_close(conns[0]);
    fix_close(conns[1]);
    conns[0] = *ret_spare;
    const uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_beat(*ret_spare);
    return alice;
}

/* Of its end it says what it was told, or a word of its own. */
static void stops(uint64_t alice, uint64_t conn, const char *text)
{
    fix_cancel(alice, 1, 1);
    for (int64_t at = 0; fix_heard(conn, MS_MSG_STOP) == NULL; at += FIX_LEASE_MS / 4) {
        ck_assert_int_lt(at, 2 * MS_UNHEARD_MS);
        fix_beat(conn);
        fix_pass(FIX_LEASE_MS / 4);
    }
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = 1;
    msg.generation = 2;
    msg.code = MS_E_CANCELLED;
    msg.text = (char *)text;
    msg.weights_sha256 = msg.plan_sha256 = msg.log_path = (char *)"";
    fix_say(conn, MS_MSG_RANK_DONE, &msg.base);
}

static const char is_on_w0[] =
    "cancelled by alice; nothing is saved: no rank that is left held the state; the checkpoint of "
    "step 200, or a later one, is on node w0 on host h in /run: msctl submit --resume 1 goes on "
    "from it";

/* _i: into the folder of the job on the node, or one of all nodes: none is where the spare is. */
START_TEST(a_cancel_names_no_place_where_none_is_known)
{
    static const char shared[] =
        "{\"checkpoint\":{\"directory\":\"/shared/c\",\"every_steps\":100}}";
    runs_in(0, _i == 0 ? here : shared, 2, 50, 0);
    const uint64_t spare = fix_register("spare", 90);
    fix_close(conns[0]);
    fix_close(conns[1]);
    const uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_beat(spare);
    stops(alice, spare, "cancelled by alice");

    ended(JOB_CANCELLED,
          _i == 0 ? "no rank that is left held the state, and no checkpoint from before is known"
                  : "nothing is saved: no rank that is left held the state");
    ck_assert_ptr_null(strstr(fix_stored(1)->reason, "on host"));
}
END_TEST

/* Its next process is there, and has read nothing yet. */
START_TEST(a_cancel_names_the_place_where_rank_0_is_back_at_it)
{
    runs_in(0, here, 2, 250, 200);
    fix_close(conns[0]);
    fix_close(conns[1]);
    const uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    conns[0] = fix_register("w0", 7);
    fix_beat(conns[0]);
    conns[1] = fix_register("w1", 8);
    fix_close(conns[1]);
    stops(alice, conns[0], "cancelled by alice");

    ended(JOB_CANCELLED, "no rank that is left held the state; what key checkpoint had saved "
                         "before is on host h in /run: msctl submit --resume 1 goes on from");
}
END_TEST

START_TEST(a_cancel_names_the_node_that_has_them)
{
    uint64_t spare = 0;
    const uint64_t alice = cancelled_at_a_spare(&spare);

    stops(alice, spare, "cancelled by alice");

    ended(JOB_CANCELLED, is_on_w0);
}
END_TEST

/* It was told to stop, and has a word of its own. */
START_TEST(what_it_says_itself_is_said_on)
{
    uint64_t spare = 0;
    const uint64_t alice = cancelled_at_a_spare(&spare);

    stops(alice, spare, "cannot read the data");

    ended(JOB_CANCELLED, "nothing is saved: rank 0 (node spare) says: cannot read the data");
}
END_TEST

static void asks_for_saved(uint64_t alice)
{
    Ms__Fetch msg = MS__FETCH__INIT;
    msg.job = 1;
    msg.what = MS_FETCH_SAVED;
    fix_say(alice, MS_MSG_FETCH, &msg.base);
}

static void is_refused(uint64_t alice, int code, const char *words)
{
    const Ms__Error *error = fix_heard(alice, MS_MSG_ERROR);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, code);
    ck_assert_msg(strstr(error->text, words) != NULL, "%s", error->text);
}

static const Ms__FetchGrant *granted_to(uint64_t conn)
{
    const Ms__FetchGrant *grant = fix_heard(conn, MS_MSG_FETCH_GRANT);
    ck_assert_ptr_nonnull(grant);
    ck_assert_uint_eq(grant->what, MS_FETCH_LOG); /* which any node knows */
    ck_assert_uint_eq(grant->rank, 0);
    return grant;
}

/* Beside the log of the rank 0 that wrote them. */
START_TEST(they_are_fetched_from_there)
{
    uint64_t spare = 0;
    const uint64_t alice = cancelled_at_a_spare(&spare);
    stops(alice, spare, "cancelled by alice");

    asks_for_saved(alice);
    is_refused(alice, MS_E_UNREACHABLE,
               "checkpoints of job 1: node w0 on host h, which has that of step 200 or a later "
               "one, is not "
               "connected; they lie beside its log: /run/worker.log");
    const uint64_t back = fix_register("w0", 5);
    asks_for_saved(alice);

    Ms__FetchReady ready = MS__FETCH_READY__INIT;
    uint8_t token[MS_TOKEN_LEN] = {1};
    ready.route = granted_to(back)->route;
    ready.token.data = token;
    ready.token.len = sizeof(token);
    ready.address = (char *)"10.0.0.7:8201";
    fix_say(back, MS_MSG_FETCH_READY, &ready.base);
    const Ms__FetchTicket *ticket = fix_heard(alice, MS_MSG_FETCH_TICKET);
    ck_assert_ptr_nonnull(ticket);
    ck_assert_str_eq(ticket->node_id, "w0");
    ck_assert_str_eq(ticket->log_path, "/run/worker.log");
}
END_TEST

/* Its row has it, and the scheduler's next process has the row. */
START_TEST(they_are_fetched_from_there_after_a_restart)
{
    uint64_t spare = 0;
    const uint64_t alice = cancelled_at_a_spare(&spare);
    stops(alice, spare, "cancelled by alice");
    const struct sched_job_row *stored = fix_stored(1);
    uint8_t bytes[512];
    struct sched_job_row row = job_row(1, JOB_CANCELLED);
    ck_assert_uint_le(stored->results_bytes, sizeof(bytes));
    memcpy(bytes, stored->results, stored->results_bytes);
    row.results = bytes;
    row.results_bytes = stored->results_bytes;
    fix_end();

    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    fix_create(&cfg);
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct sched_member_row member = member_row(1, rank);
        snprintf(member.node_id, sizeof(member.node_id), "%s", rank == 0 ? "spare" : "w1");
        ck_ms_ok(sched_load_member(fix.s, &member, err));
    }
    loaded();
    const uint64_t back = fix_register("w0", 5);
    asks_for_saved(fix_open(MS_ROLE_USER, "alice"));
    (void)granted_to(back);
}
END_TEST

/* Whose node that of rank 0 is, or has its folder, is asked by its rank. */
START_TEST(nobody_else_is_asked_where_rank_0_is_at_home)
{
    runs_in(7, here, 2, 250, 200);
    const uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    asks_for_saved(alice);
    is_refused(alice, MS_E_NOT_FOUND, "no other node than that of rank 0 has a newer checkpoint");
    const uint64_t slot = node_in("slot", 90, 7);
    fix_close(conns[0]);
    ck_assert_ptr_nonnull(fix_heard(slot, MS_MSG_ASSIGN));
    asks_for_saved(alice);
    is_refused(alice, MS_E_NOT_FOUND, "no other node than that of rank 0");
}
END_TEST

/* It may have its name, and not what lay there. */
START_TEST(a_node_with_another_folder_is_not_asked)
{
    runs_in(7, here, 2, 250, 200);
    const uint64_t spare = node_in("spare", 90, 8);
    const uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_close(conns[0]);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    (void)node_in("w0", 91, 9);
    asks_for_saved(alice);
    is_refused(alice, MS_E_UNREACHABLE,
               "node w0, which has that of step 200 or a later one, is another one's now, or has "
               "another folder");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_home");
    TCase *t = tcase_create("home");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, a_job_whose_last_rank_is_lost_waits_for_the_node_with_its_checkpoints);
    tcase_add_test(t, as_long_as_it_may_come_back);
    tcase_add_loop_test(t, where_any_node_has_them_any_node_is_as_good, 0, 4);
    tcase_add_test(t, no_other_job_that_lacks_a_node_has_it_either);
    tcase_add_test(t, they_are_on_the_node_whose_rank_0_wrote_them);
    tcase_add_test(t, a_rank_that_it_had_since_is_not_waited_for_twice);
    tcase_add_test(t, it_is_kept_for_its_job_while_that_lacks_other_nodes);
    tcase_add_test(t, it_is_kept_for_its_job_beside_one_that_it_cannot_take);
    tcase_add_loop_test(t, they_move_with_the_next_one_that_is_written, 0, 3);
    tcase_add_test(t, a_rank_0_that_is_told_to_leave_has_one);
    tcase_add_test(t, what_is_known_of_it_is_stored_by_itself);
    tcase_add_test(t, a_job_without_one_goes_to_any_node);
    tcase_add_test(t, who_has_the_same_folder_and_another_rank_reads_for_all);
    tcase_add_test(t, a_node_with_the_same_folder_is_as_good);
    tcase_add_test(t, nobody_reads_there_before_a_process_that_saves_has_left);
    tcase_add_test(t, one_that_was_given_up_is_not_waited_for_again);
    tcase_add_test(t, one_that_no_rank_could_read_counts_for_what_they_went_on_from);
    tcase_add_test(t, while_another_rank_holds_the_state_nobody_waits);
    tcase_add_test(t, nor_does_it_wait_beside_who_keeps_it_for_a_rank_that_another_one_has);
    tcase_add_test(t, when_all_are_lost_the_others_are_filled_with_it);
    tcase_add_test(t, nobody_waits_once_another_one_is_ready_with_what_was_there);
    tcase_add_test(t, a_host_that_is_set_aside_is_home_all_the_same);
    tcase_add_test(t, another_ones_node_of_that_name_is_not_it);
    tcase_add_test(t, its_time_begins_with_the_loss_of_who_held_the_state);
    tcase_add_test(t, a_restart_of_the_scheduler_knows_where_they_are);
    tcase_add_test(t, it_is_given_up_when_another_one_begins_and_not_before);
    tcase_add_test(t, one_that_ends_before_it_is_ready_again_and_again_fails_no_job);
    tcase_add_test(t, one_that_ended_just_now_is_not_late);
    tcase_add_loop_test(t, one_that_the_others_do_not_reach_fails_no_job, 0, 2);
    tcase_add_test(t, nobody_else_waits_for_one_that_is_not_waited_for_any_more);
    tcase_add_loop_test(t, it_is_told_of_while_others_are_waited_for, 0, 2);
    tcase_add_loop_test(t, others_tell_of_none, 0, 2);
    tcase_add_test(t, of_two_jobs_with_one_folder_the_first_has_all_of_its_nodes);
    tcase_add_test(t, of_two_jobs_with_one_folder_the_first_takes_other_nodes_before);
    tcase_add_test(t, two_jobs_with_one_folder_keep_two_of_its_nodes);
    tcase_add_test(t, its_time_begins_when_the_last_one_that_keeps_the_state_is_lost);
    tcase_add_loop_test(t, or_where_they_may_be, 0, 2);
    tcase_add_loop_test(t, nor_does_it_know_what_was_saved_while_it_stood_still, 0, 2);
    tcase_add_test(t, nor_who_is_there_instead);
    tcase_add_test(t, who_keeps_the_state_of_rank_0_tells_of_its_own);
    tcase_add_loop_test(t, a_guess_is_over_when_they_train, 0, 2);
    tcase_add_loop_test(t, who_said_since_that_there_is_none_is_not_guessed, 0, 2);
    tcase_add_test(t, what_the_process_before_it_said_is_not_its_word);
    tcase_add_test(t, one_that_never_trained_is_not_guessed);
    tcase_add_test(t, of_two_with_the_same_step_the_one_that_is_told_of_last_is_there);
    tcase_add_test(t, it_is_told_of_between_two_steps);
    tcase_add_test(t, it_is_told_of_with_a_step_while_others_are_waited_for);
    tcase_add_test(t, a_node_with_another_folder_under_its_name_is_not_it);
    tcase_add_loop_test(t, where_a_folder_is_not_known_the_name_is_enough, 0, 2);
    tcase_add_test(t, a_node_with_the_same_folder_is_kept_for_its_job);
    tcase_add_test(t, two_jobs_with_one_node_do_not_keep_it_from_each_other);
    tcase_add_loop_test(t, a_cancel_names_no_place_where_none_is_known, 0, 2);
    tcase_add_test(t, a_cancel_names_the_place_where_rank_0_is_back_at_it);
    tcase_add_test(t, a_cancel_names_the_node_that_has_them);
    tcase_add_test(t, what_it_says_itself_is_said_on);
    tcase_add_test(t, they_are_fetched_from_there);
    tcase_add_test(t, they_are_fetched_from_there_after_a_restart);
    tcase_add_test(t, nobody_else_is_asked_where_rank_0_is_at_home);
    tcase_add_test(t, a_node_with_another_folder_is_not_asked);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
