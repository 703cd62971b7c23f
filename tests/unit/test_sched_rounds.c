/* test_sched_rounds.c - rounds of a job that recovers, where something else happens at the same
 * time: the job ends, the disk is full, the scheduler restarts, a worker is of an old release */
#include "tests/unit/sched_load_case.h"

static uint64_t conns[2];

static void submit_with(uint32_t workers, int recovery)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(workers);
    msg.recovery = recovery;
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_SUBMITTED));
}

static void start(void)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    cfg.topo_timeout_ms = 60000;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

static void ready_in(uint64_t generation)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        fix_ready_with(conns[rank], 1, generation, rank, fix_digest(FIX_BITS));
    }
}

static uint64_t node_on(const char *id, uint64_t incarnation, const char *host)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, incarnation);
    msg.host_name = msg.host_id = (char *)host;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

/* Job 1 runs in generation 1 on w0 and w1. */
static void running_on(const char *first, const char *second)
{
    start();
    conns[0] = node_on("w0", 1, first);
    conns[1] = node_on("w1", 2, second);
    submit_with(2, 1);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    ready_in(1);
    fix_job_is(1, "RUNNING", "");
}

static void running(void)
{
    running_on("h", "h");
}

static void peer_report(uint64_t generation)
{
    Ms__PeerReport msg = MS__PEER_REPORT__INIT;
    msg.job = 1;
    msg.generation = generation;
    msg.peer = 1;
    msg.text = (char *)"it does not answer";
    fix_say(conns[0], MS_MSG_PEER_REPORT, &msg.base);
}

/* The same in generation 11, and the scheduler has restarted. */
static void load(enum sched_job_state state)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    fix_create(&cfg);
    struct sched_plan_row plan = {.text = FIX_PLAN, .bytes = strlen(FIX_PLAN)};
    snprintf(plan.sha256, sizeof(plan.sha256), "%s", fix_digest(FIX_PLAN));
    ck_ms_ok(sched_load_plan(fix.s, &plan, err));
    struct sched_job_row row = job_row(1, state);
    row.recovery = true;
    snprintf(row.plan, sizeof(row.plan), "%s", plan.sha256);
    row.plan_text = FIX_PLAN;
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    load_members(1);
    loaded();
}

START_TEST(the_end_of_a_job_that_lost_ranks_lets_the_queue_go_on)
{
    running();
    fix_close(conns[0]);
    fix_close(conns[1]);
    conns[0] = fix_register("w8", 8); /* one is not enough for both ranks */
    submit_with(1, 0);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);

    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 0);

    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_ASSIGN));
}
END_TEST

START_TEST(ranks_that_stand_still_are_not_started)
{
    running();
    peer_report(1);
    fix_pass(MS_BLAME_MS);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2); /* generation 2 */
    fix_ready_with(conns[0], 1, 2, 0, fix_digest(FIX_BITS));
    peer_report(2);
    sched_refuse_writes(fix.s, "state.db cannot grow", 0);
    uint64_t spare = fix_register("w2", 3);
    (void)spare;
    fix_close(conns[1]);
    conns[1] = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w1", 2);
    msg.job = 1;
    msg.generation = 2;
    msg.rank = 1;
    fix_say(conns[1], MS_MSG_REGISTER, &msg.base); /* it has its rank back */

    fix_ready_with(conns[1], 1, 2, 1, fix_digest(FIX_BITS));

    ck_assert_uint_eq(fix_count(MS_MSG_START), 0);
    sched_refuse_writes(fix.s, "", 1);
    fix_time();
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2); /* generation 3 */
}
END_TEST

START_TEST(a_process_is_stopped_in_the_generation_that_it_knows)
{
    load(JOB_RECOVERING);
    conns[0] = come_back(0, 100, 1, 8, 1);

    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 0);

    const Ms__Stop *stop = fix_heard(conns[0], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_uint_eq(stop->generation, 8);
    fix_stopped(conns[0], 1, 8, 0);
    ck_assert_str_eq(fix_show_node("w0")->activity, "idle");
}
END_TEST

START_TEST(a_rank_that_was_done_before_the_restart_goes_on_with_the_others)
{
    load(JOB_RUNNING);
    conns[1] = fix_register("w1", 12); /* another process: its rank is lost, and it is the next */
    fix_job_is(1, "RECOVERING", "waits for the nodes of rank 0");
    conns[0] = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w0", 100);
    msg.job = 1;
    msg.generation = 11;
    msg.running = 1;
    sched_refuse_writes(fix.s, "state.db cannot grow", 0); /* the round waits */
    fix_say(conns[0], MS_MSG_REGISTER, &msg.base);

    fix_done(conns[0], 1, 11, 0, 0, "");

    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_STOP));
    sched_refuse_writes(fix.s, "", 1);
    fix_time();
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_ASSIGN));
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
}
END_TEST

START_TEST(a_complaint_may_be_about_a_rank_that_is_missing)
{
    running();
    peer_report(1);
    fix_pass(MS_BLAME_MS);
    ready_in(2);
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix.now.mono_ms += FIX_LEASE_MS;
    fix_close(conns[1]); /* it is away, for we stood still */
    peer_report(2);

    fix_pass(MS_BLAME_MS);

    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
}
END_TEST

static uint64_t old_node(const char *id, uint64_t incarnation)
{
    fix_level = 0;
    uint64_t conn = fix_register(id, incarnation);
    fix_level = MS_WIRE_LEVEL;
    return conn;
}

START_TEST(a_node_of_an_old_release_takes_no_rank)
{
    running();
    uint64_t old = old_node("w0.1", 9);

    fix_close(conns[1]);

    ck_assert_ptr_null(fix_heard(old, MS_MSG_ASSIGN));
    conns[1] = fix_register("w7", 7);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
}
END_TEST

START_TEST(a_job_that_recovers_is_placed_on_nodes_that_can)
{
    start();
    uint64_t old = old_node("w0", 1);
    conns[0] = fix_register("w1", 2);
    conns[1] = fix_register("w2", 3);

    submit_with(2, 1);

    ck_assert_ptr_null(fix_heard(old, MS_MSG_ASSIGN));
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_ASSIGN));
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
}
END_TEST

START_TEST(a_job_that_does_not_recover_is_placed_on_old_nodes_too)
{
    start();
    uint64_t old = old_node("w0", 1);
    conns[0] = fix_register("w1", 2);

    submit_with(2, 0);

    ck_assert_ptr_nonnull(fix_heard(old, MS_MSG_ASSIGN));
}
END_TEST

START_TEST(a_job_that_recovers_waits_for_nodes_that_can)
{
    start();
    uint64_t old = old_node("w0", 1);
    conns[0] = fix_register("w1", 2);

    submit_with(2, 1);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(1, "QUEUED",
               "waits for 2 idle nodes that can go on after a loss: node w0 on host h is of "
               "release 0.1");
    fix_close(old);
    conns[1] = fix_register("w0", 3); /* updated */
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
}
END_TEST

static void pass_a_lease(uint64_t old, uint64_t other)
{
    for (int i = 0; i < 3; i++) {
        fix_beat(old);
        fix_beat(other);
        fix_pass(FIX_LEASE_MS / 3 + 1);
    }
}

/* A node of this release that begins anew is back in a moment, whenever that is. */
START_TEST(a_job_that_recovers_waits_a_lease_for_nodes_that_can)
{
    start();
    uint64_t old = old_node("w0", 1);
    conns[0] = fix_register("w1", 2);
    pass_a_lease(old, conns[0]);

    submit_with(2, 1);
    fix_pass(FIX_LEASE_MS / 3);

    fix_job_is(1, "QUEUED", "waits for 2 idle nodes that can go on after a loss");
    conns[1] = fix_register("w2", 3);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
}
END_TEST

START_TEST(a_job_that_recovers_and_finds_old_nodes_alone_ends_in_words)
{
    start();
    uint64_t old = old_node("w0", 1);
    conns[0] = fix_register("w1", 2);
    submit_with(2, 1);

    pass_a_lease(old, conns[0]);

    const struct sched_job_row *row = fix_stored(1);
    ck_assert_ptr_nonnull(row);
    ck_assert_int_eq(row->state, JOB_FAILED);
    ck_assert_int_eq(row->code, MS_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(
        row->reason, "rank 0 (node w0 on host h) is of a release (0.1) that cannot go on after a "
                     "loss, and there are not 2 nodes that can: update msworker there, or submit "
                     "the job with `recovery: false`"));
}
END_TEST

START_TEST(a_process_that_others_do_not_reach_is_the_last_choice)
{
    running();
    peer_report(1);
    fix_pass(MS_BLAME_MS); /* tried again in generation 2 */
    peer_report(2);
    sched_refuse_writes(fix.s, "state.db cannot grow", 0);
    fix_pass(MS_BLAME_MS);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    uint64_t spare = fix_register("w7", 7);
    sched_refuse_writes(fix.s, "", 1);

    fix_time();

    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_ASSIGN));
}
END_TEST

START_TEST(each_node_gets_its_own_rank_back)
{
    running_on("h0", "h1");
    sched_refuse_writes(fix.s, "state.db cannot grow", 0);
    fix_close(conns[0]);
    fix_close(conns[1]);
    conns[1] = node_on("w1", 12, "h1");
    uint64_t spare = node_on("w7", 7, "h2");
    uint64_t near = node_on("w8", 8, "h1"); /* to rank 1, which needs nobody */
    fix_lease_passes((uint64_t[]){conns[1], spare, near}, 3);
    sched_refuse_writes(fix.s, "", 1);

    fix_time();

    const Ms__Assign *msg = fix_heard(spare, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 0);
}
END_TEST

/* The rank goes to whoever takes it, who cannot serve it. */
static void cannot_serve(const char *id, uint64_t incarnation, uint64_t generation)
{
    uint64_t conn = node_on(id, incarnation, "h");
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_ASSIGN));
    fix_done(conn, 1, generation, 1, MS_E_IO, "data set /data/mnist cannot be opened");
    fix_close(conn);
}

START_TEST(who_cannot_serve_does_not_end_a_job_whose_tries_are_spent)
{
    running();
    for (uint64_t lost = 0; lost < MS_RESTARTS_MAX; lost++) {
        fix_close(conns[1]);
        conns[1] = node_on("w1", 20 + lost, "h");
        ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
        if (lost + 1 < MS_RESTARTS_MAX) { /* the last one never trains */
            ready_in(2 + lost);
        }
    }

    fix_done(conns[1], 1, 1 + MS_RESTARTS_MAX, 1, MS_E_IO, "data set /data/mnist cannot be opened");

    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1");
}
END_TEST

START_TEST(what_a_rank_says_of_itself_is_not_called_a_loss)
{
    running();
    for (uint64_t lost = 0; lost < MS_RESTARTS_MAX; lost++) {
        fix_close(conns[1]);
        conns[1] = node_on("w1", 20 + lost, "h");
        ready_in(2 + lost);
    }

    fix_done(conns[1], 1, 1 + MS_RESTARTS_MAX, 1, MS_E_FAILED, "the loss is not finite");

    const Ms__Stop *stop = fix_heard(conns[0], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_ptr_nonnull(strstr(stop->text, "rank 1 (node w1 on host h) failed: the loss is"));
    ck_assert_ptr_null(strstr(stop->text, "times"));
}
END_TEST

START_TEST(a_rank_is_given_back_to_who_had_it_only)
{
    running();
    sched_refuse_writes(fix.s, "state.db cannot grow", 0);
    fix_close(conns[1]);
    conns[1] = fix_open(MS_ROLE_WORKER, "another-certificate");
    Ms__Register msg = fix_node("w1", 2);
    msg.job = msg.generation = msg.rank = 1;

    fix_say(conns[1], MS_MSG_REGISTER, &msg.base);

    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));
    fix_job_is(1, "RECOVERING", "waits for");
}
END_TEST

START_TEST(who_cannot_serve_buys_no_time_when_asked_again)
{
    running();
    fix_close(conns[1]);
    const Ms__Stop *stop = NULL;
    for (uint64_t generation = 2; stop == NULL && generation < 100; generation++) {
        char id[8];
        snprintf(id, sizeof(id), "b%llu", (unsigned long long)generation);
        cannot_serve(id, 100 + generation, generation);
        fix_beat(conns[0]);
        fix_pass(FIX_LEASE_MS / 2);
        stop = fix_heard(conns[0], MS_MSG_STOP);
    }

    ck_assert_ptr_nonnull(stop);
    ck_assert_ptr_nonnull(strstr(stop->text, "no node took rank 1 within 60 s"));
}
END_TEST

/* Whoever took all the time there was leaves the next one his own. */
START_TEST(who_comes_after_one_that_never_got_ready_has_his_time)
{
    running();
    fix_close(conns[1]);
    cannot_serve("b2", 102, 2);
    conns[1] = node_on("b3", 103, "h");
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
    for (int i = 0; i < 100 && fix_heard(conns[1], MS_MSG_STOP) == NULL; i++) {
        fix_beat(conns[0]);
        fix_beat(conns[1]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));
    const int64_t half_ms = MS_UNFIT_MS;
    for (int64_t at = 0; at < half_ms; at += FIX_LEASE_MS / 2) {
        fix_beat(conns[0]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    const uint64_t next = node_on("b4", 104, "h");
    ck_assert_ptr_nonnull(fix_heard(next, MS_MSG_ASSIGN));
    for (int64_t at = 0; at < half_ms + FIX_LEASE_MS; at += FIX_LEASE_MS / 2) {
        fix_beat(conns[0]);
        fix_beat(next);
        fix_pass(FIX_LEASE_MS / 2);
    }
    ck_assert_ptr_null(fix_heard(next, MS_MSG_STOP));
    fix_job_is(1, "RECOVERING", "generation 4: waits for");
}
END_TEST

START_TEST(a_link_that_was_good_for_a_step_is_tried_again)
{
    running_on("h0", "h1");
    peer_report(1);
    fix_pass(MS_BLAME_MS); /* generation 2: tried again */
    peer_report(2);
    uint64_t spare = node_on("w7", 7, "h2");
    fix_pass(MS_BLAME_MS); /* generation 3: the rank has moved */
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    conns[1] = spare;
    ready_in(3);
    fix_job_is(1, "RUNNING", "");
    Ms__Progress msg = MS__PROGRESS__INIT;
    msg.job = 1;
    msg.generation = 3;
    msg.step = 1000;
    fix_say(conns[0], MS_MSG_PROGRESS, &msg.base);

    peer_report(3);
    fix_pass(MS_BLAME_MS);

    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_STOP));
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2); /* the same nodes try again */
}
END_TEST

/* Over a new connection, while the old one is open still. */
static void reconnects(uint32_t rank, uint64_t generation)
{
    conns[rank] = come_back(rank, 1 + rank, 1, generation, 1);
}

START_TEST(who_missed_a_round_has_its_plan)
{
    running();
    peer_report(1);
    fix_pass(MS_BLAME_MS);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2); /* generation 2 */

    reconnects(1, 1);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2); /* generation 3 */
    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 0);
}
END_TEST

START_TEST(who_goes_back_behind_its_own_word_is_told_the_plan_again)
{
    running();
    peer_report(1);
    fix_pass(MS_BLAME_MS);
    ready_in(2);
    fix_job_is(1, "RUNNING", "");

    reconnects(1, 1); /* it may begin anew, whatever it made */

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
    const Ms__Plan *plan = fix_heard(conns[1], MS_MSG_PLAN);
    ck_assert_ptr_nonnull(plan);
    ck_assert_uint_eq(plan->generation, 3);
    ck_assert_str_eq(plan->plan, FIX_PLAN);
    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_rounds");
    TCase *t = tcase_create("rounds");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, the_end_of_a_job_that_lost_ranks_lets_the_queue_go_on);
    tcase_add_test(t, ranks_that_stand_still_are_not_started);
    tcase_add_test(t, a_process_is_stopped_in_the_generation_that_it_knows);
    tcase_add_test(t, a_rank_that_was_done_before_the_restart_goes_on_with_the_others);
    tcase_add_test(t, a_complaint_may_be_about_a_rank_that_is_missing);
    tcase_add_test(t, a_node_of_an_old_release_takes_no_rank);
    tcase_add_test(t, a_job_that_recovers_is_placed_on_nodes_that_can);
    tcase_add_test(t, a_job_that_does_not_recover_is_placed_on_old_nodes_too);
    tcase_add_test(t, a_job_that_recovers_waits_for_nodes_that_can);
    tcase_add_test(t, a_job_that_recovers_waits_a_lease_for_nodes_that_can);
    tcase_add_test(t, a_job_that_recovers_and_finds_old_nodes_alone_ends_in_words);
    tcase_add_test(t, a_process_that_others_do_not_reach_is_the_last_choice);
    tcase_add_test(t, each_node_gets_its_own_rank_back);
    tcase_add_test(t, who_cannot_serve_does_not_end_a_job_whose_tries_are_spent);
    tcase_add_test(t, what_a_rank_says_of_itself_is_not_called_a_loss);
    tcase_add_test(t, a_rank_is_given_back_to_who_had_it_only);
    tcase_add_test(t, who_cannot_serve_buys_no_time_when_asked_again);
    tcase_add_test(t, who_comes_after_one_that_never_got_ready_has_his_time);
    tcase_add_test(t, a_link_that_was_good_for_a_step_is_tried_again);
    tcase_add_test(t, who_missed_a_round_has_its_plan);
    tcase_add_test(t, who_goes_back_behind_its_own_word_is_told_the_plan_again);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
