/* test_sched_plan.c - the plan of a job: who says it, that it is stored first, who hears of it */
#include "tests/unit/sched_fixture.h"

#define OTHER_PLAN "msched plan 1\nsection bits\nnetwork other\nsection memory\nend\n"
/* Other bytes, and the same bits. */
#define LONGER_PLAN FIX_BITS "section memory\nagain train 1\nend\n"

static uint64_t conns[2];

static void with_database(void)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

/* Two nodes, and job 1 of both that is placed; as fix_placed, with a database. */
static void placed(void)
{
    with_database();
    conns[0] = fix_register("w0", 1);
    conns[1] = fix_register("w1", 2);
    ck_assert_uint_eq(fix_submit(2, 0), 1);
}

static uint64_t submit_with(const char *plan, const char *key)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(2);
    msg.plan = (char *)plan;
    msg.key = (char *)key;
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    const Ms__Submitted *answer = fix_heard(conn, MS_MSG_SUBMITTED);
    return answer != NULL ? answer->job : 0;
}

static void hears_plan(uint64_t conn, uint64_t generation, const char *text)
{
    const Ms__Plan *msg = fix_heard(conn, MS_MSG_PLAN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->job, 1);
    ck_assert_uint_eq(msg->generation, generation);
    ck_assert_str_eq(msg->plan, text);
}

static uint32_t plan_from(uint64_t conn)
{
    const Ms__Assign *msg = fix_heard(conn, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    return msg->plan_from;
}

/* This tick ended job 1, in these words. */
static void failed(const char *words)
{
    const struct sched_job_row *row = fix_stored(1);
    ck_assert_ptr_nonnull(row);
    ck_assert_int_eq(row->state, JOB_FAILED);
    ck_assert_msg(strstr(row->reason, words) != NULL, "%s", row->reason);
}

/* The process of w0 has lost its connection, and is back. */
static void come_back(void)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w0", 1);
    msg.job = msg.generation = 1;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    conns[0] = conn;
}

/* ---- rank 0 chooses -----------------------------------------------------------------------------
 */

START_TEST(what_rank_0_says_is_stored_and_told_to_all)
{
    placed();
    ck_assert_uint_eq(plan_from(conns[0]), MS_PLAN_RANK_0);
    ck_assert_uint_eq(plan_from(conns[1]), MS_PLAN_RANK_0);

    fix_plan(conns[0], 1, 1, FIX_PLAN);

    const struct sched_effect *put = fix_effect(SCHED_DO_PUT_PLAN);
    ck_assert_ptr_nonnull(put);
    ck_assert_str_eq(put->plan->text, FIX_PLAN);
    ck_assert_str_eq(put->plan->sha256, fix_digest(FIX_PLAN));
    ck_assert_str_eq(fix_stored(1)->plan, fix_digest(FIX_PLAN));
    ck_assert(!fix_stored(1)->plan_given);
    hears_plan(conns[0], 1, FIX_PLAN);
    hears_plan(conns[1], 1, FIX_PLAN);
    fix_job_is(1, "PLACING", "waits for ranks 0 1 to load data and connect");
}
END_TEST

START_TEST(the_same_again_is_answered_to_who_said_it)
{
    placed();
    fix_plan(conns[0], 1, 1, FIX_PLAN);

    fix_plan(conns[0], 1, 1, FIX_PLAN);

    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 1);
    hears_plan(conns[0], 1, FIX_PLAN);
    ck_assert_ptr_null(fix_effect(SCHED_DO_PUT_PLAN));
    ck_assert_ptr_null(fix_stored(1));
}
END_TEST

START_TEST(two_plans_for_one_start_end_the_job)
{
    placed();
    fix_plan(conns[0], 1, 1, FIX_PLAN);

    fix_plan(conns[0], 1, 1, LONGER_PLAN);

    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 0);
    failed("rank 0 (node w0 on host h) chose two plans for one start");
}
END_TEST

START_TEST(nobody_but_rank_0_and_nothing_but_a_plan_is_heard)
{
    static const struct {
        uint32_t conn, rank;
        const char *plan, *words;
    } cases[] = {{1, 1, FIX_PLAN, "rank 1 says a plan, and rank 0 chooses"},
                 {0, 0, "", "the plan is empty"},
                 {0, 0, "hello", "has no line \"section memory\""},
                 {0, 0, "section memory\n", "has no line \"section memory\""}};
    placed();
    Ms__RankPlan msg = MS__RANK_PLAN__INIT;
    msg.job = msg.generation = 1;
    msg.rank = cases[_i].rank;
    msg.plan = (char *)cases[_i].plan;

    fix_say(conns[cases[_i].conn], MS_MSG_RANK_PLAN, &msg.base);

    fix_refused(conns[cases[_i].conn], MS_E_INVALID, cases[_i].words);
    ck_assert_ptr_null(fix_effect(SCHED_DO_PUT_PLAN));
    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 0);
}
END_TEST

START_TEST(a_plan_of_another_rank_job_or_generation_is_nothing)
{
    static const struct {
        uint64_t job, generation;
        uint32_t conn;
    } cases[] = {{1, 1, 1}, {1, 2, 0}, {2, 1, 0}}; /* the first: rank 0 is not its to speak for */
    placed();

    fix_plan(conns[cases[_i].conn], cases[_i].job, cases[_i].generation, FIX_PLAN);

    ck_assert_uint_eq(fix.n_answers, 0);
    ck_assert_ptr_null(fix_effect(SCHED_DO_PUT_PLAN));
}
END_TEST

START_TEST(a_plan_after_the_start_is_nothing)
{
    placed();
    fix_ready(conns[0], 1, 1, 0);
    fix_ready(conns[1], 1, 1, 1);

    fix_plan(conns[0], 1, 1, OTHER_PLAN);

    ck_assert_uint_eq(fix.n_answers, 0);
    fix_job_is(1, "RUNNING", "");
}
END_TEST

START_TEST(a_rank_that_comes_back_hears_the_plan_again)
{
    placed();
    come_back();
    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 0); /* there is none yet */
    fix_plan(conns[0], 1, 1, FIX_PLAN);

    come_back();

    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 1);
    hears_plan(conns[0], 1, FIX_PLAN);
}
END_TEST

START_TEST(ranks_without_the_plan_do_not_start)
{
    static const char *const words[] = {"never said which one", "differs from"};
    placed();
    if (_i == 1) {
        fix_plan(conns[0], 1, 1, OTHER_PLAN);
    }

    fix_ready_with(conns[0], 1, 1, 0, fix_digest(FIX_BITS));
    fix_ready_with(conns[1], 1, 1, 1, fix_digest(FIX_BITS));

    ck_assert_uint_eq(fix_count(MS_MSG_START), 0);
    failed(words[_i]);
}
END_TEST

START_TEST(independent_trainings_start_without_one)
{
    placed();

    fix_ready_with(conns[0], 1, 1, 0, "");
    fix_ready_with(conns[1], 1, 1, 1, "");

    ck_assert_uint_eq(fix_count(MS_MSG_START), 2);
}
END_TEST

START_TEST(ranks_that_end_with_another_plan_fail_the_job)
{
    placed();
    fix_ready(conns[0], 1, 1, 0);
    fix_ready(conns[1], 1, 1, 1);
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = msg.generation = 1;
    msg.plan_sha256 = (char *)"another";
    fix_say(conns[0], MS_MSG_RANK_DONE, &msg.base);
    msg.rank = 1;

    fix_say(conns[1], MS_MSG_RANK_DONE, &msg.base);

    failed("the ranks' plan another... differs from");
}
END_TEST

/* ---- who is lost, or late -----------------------------------------------------------------------
 */

START_TEST(a_requeue_drops_what_rank_0_chose)
{
    placed();
    fix_plan(conns[0], 1, 1, FIX_PLAN);

    fix_close(conns[1]);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_DROP_PLAN));
    ck_assert_str_eq(fix_effect(SCHED_DO_DROP_PLAN)->plan->sha256, fix_digest(FIX_PLAN));
    ck_assert_str_eq(fix_stored(1)->plan, "");
    fix_stopped(conns[0], 1, 1, 0);
    fix_pass(5000); /* its host is no longer paused */
    fix_beat(conns[0]);
    fix_pass(5000);
    conns[1] = fix_register("w1", 3);
    ck_assert_uint_eq(plan_from(conns[1]), MS_PLAN_RANK_0);
    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 0);
}
END_TEST

START_TEST(rank_0_is_named_where_it_does_not_choose)
{
    struct sched_config cfg = fix_config(SCHED_RUN, 0);
    cfg.topo_timeout_ms = 60000;
    cfg.disable_heartbeat = 1;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    fix_register("w0", 1);
    fix_register("w1", 2);
    ck_assert_uint_eq(fix_submit(2, 0), 1);
    fix_job_is(1, "PLACING", "waits for rank 0 (node w0 on host h) to choose the plan");

    fix_pass(60000);

    fix_job_is(1, "FAILED", "rank 0 (node w0 on host h) did not choose the plan within 60 s");
}
END_TEST

START_TEST(a_full_disk_keeps_no_plan_and_the_job_waits)
{
    with_database();
    conns[0] = fix_register("w0", 1);
    conns[1] = fix_register("w1", 2);
    ck_assert_uint_eq(fix_submit(2, 0), 1);
    sched_refuse_writes(fix.s, "the disk of the database is full", 1);

    fix_plan(conns[0], 1, 1, FIX_PLAN);

    ck_assert_ptr_null(fix_effect(SCHED_DO_PUT_PLAN));
    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 0);
    fix_job_is(1, "QUEUED", "its plan cannot be kept: the disk of the database is full");
}
END_TEST

/* ---- releases -----------------------------------------------------------------------------------
 */

START_TEST(where_one_knows_no_plan_each_makes_its_own)
{
    with_database();
    conns[0] = fix_register("w0", 1);
    fix_level = 0;
    conns[1] = fix_register("w1", 2);
    fix_level = MS_WIRE_LEVEL;
    ck_assert_uint_eq(fix_submit(2, 0), 1);
    ck_assert_uint_eq(plan_from(conns[0]), MS_PLAN_OWN);

    fix_plan(conns[0], 1, 1, FIX_PLAN);

    fix_refused(conns[0], MS_E_INVALID, "each rank makes its own plan here");
    fix_ready_with(conns[0], 1, 1, 0, "p1");
    fix_ready_with(conns[1], 1, 1, 1, "p1");
    fix_job_is(1, "RUNNING", "");
}
END_TEST

/* Nodes: n of release 0.1, then as many of this one as are asked for. */
static void nodes(uint32_t n_old, uint32_t n_new)
{
    char id[8];
    with_database();
    for (uint32_t i = 0; i < n_old + n_new; i++) {
        snprintf(id, sizeof(id), "w%u", i);
        fix_level = i < n_old ? 0 : MS_WIRE_LEVEL;
        fix_register(id, 1 + i);
    }
    fix_level = MS_WIRE_LEVEL;
}

START_TEST(a_given_plan_goes_to_nodes_that_know_it)
{
    nodes(2, 2);

    ck_assert_uint_eq(submit_with(FIX_PLAN, ""), 1);

    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 2);
    ck_assert_uint_eq(plan_from(3), MS_PLAN_GIVEN);
    hears_plan(3, 1, FIX_PLAN);
    hears_plan(4, 1, FIX_PLAN);
}
END_TEST

START_TEST(a_given_plan_waits_for_busy_nodes_that_know_it)
{
    nodes(2, 2);
    ck_assert_uint_eq(submit_with(FIX_PLAN, ""), 1);

    uint64_t job = submit_with(FIX_PLAN, "");

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(job, "QUEUED",
               "waits for 2 idle nodes that know its plan: node w0 on host h is of ");
}
END_TEST

/* Nothing more comes for as long as a node may take to come back. */
static void beat_on(void)
{
    for (int i = 0; i < 3; i++) {
        fix_beat(1);
        fix_beat(2);
        fix_pass(FIX_LEASE_MS / 3 + 1);
    }
}

/* After a restart those of the release before may come first. */
START_TEST(a_given_plan_waits_for_nodes_that_come_back_later)
{
    nodes(2, 1);
    uint64_t job = submit_with(FIX_PLAN, "");
    fix_job_is(job, "QUEUED", "waits for 2 idle nodes that know its plan");

    uint64_t conn = fix_register("w3", 4);

    hears_plan(conn, 1, FIX_PLAN);
}
END_TEST

START_TEST(a_given_plan_that_nobody_knows_ends_the_job_in_words)
{
    nodes(1, 1);

    ck_assert_uint_eq(submit_with(FIX_PLAN, ""), 1);
    fix_job_is(1, "QUEUED", "waits for 2 idle nodes that know its plan");
    beat_on();

    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), 0);
    failed("rank 0 (node w0 on host h) is of a release (0.1) that knows no plan");
    ck_assert_int_eq(fix_stored(1)->code, MS_E_UNSUPPORTED);
}
END_TEST

/* ---- given --------------------------------------------------------------------------------------
 */

START_TEST(a_given_plan_is_told_at_once_and_stays)
{
    with_database();
    conns[0] = fix_register("w0", 1);
    conns[1] = fix_register("w1", 2);

    ck_assert_uint_eq(submit_with(FIX_PLAN, ""), 1);

    ck_assert(fix_stored(1)->plan_given);
    hears_plan(conns[0], 1, FIX_PLAN);
    hears_plan(conns[1], 1, FIX_PLAN);
    fix_plan(conns[0], 1, 1, OTHER_PLAN);
    fix_refused(conns[0], MS_E_INVALID, "its plan came with the job");
    fix_close(conns[1]);
    ck_assert_ptr_null(fix_effect(SCHED_DO_DROP_PLAN));
    ck_assert_str_eq(fix_stored(1)->plan, fix_digest(FIX_PLAN));
    ck_assert(fix_stored(1)->plan_given);
}
END_TEST

START_TEST(what_is_no_plan_is_refused)
{
    ck_assert_uint_eq((with_database(), submit_with("workers: 2\n", "")), 0);

    fix_refused(fix.conns, MS_E_INVALID, "this is no plan: a text of 11 bytes");
}
END_TEST

START_TEST(the_same_key_with_another_plan_is_another_job)
{
    with_database();
    ck_assert_uint_eq(submit_with(FIX_PLAN, "k"), 1);
    ck_assert_uint_eq(submit_with(FIX_PLAN, "k"), 1);

    ck_assert_uint_eq(submit_with(OTHER_PLAN, "k"), 0);
    fix_refused(fix.conns, MS_E_EXISTS, "which is another job");
    ck_assert_uint_eq(submit_with("", "k"), 0);
    fix_refused(fix.conns, MS_E_EXISTS, "which is another job");
}
END_TEST

START_TEST(the_same_key_is_the_same_job_when_rank_0_has_chosen)
{
    with_database();
    conns[0] = fix_register("w0", 1);
    conns[1] = fix_register("w1", 2);
    ck_assert_uint_eq(submit_with("", "k"), 1);
    fix_plan(conns[0], 1, 1, FIX_PLAN);

    ck_assert_uint_eq(submit_with("", "k"), 1);
}
END_TEST

/* ---- stored once, held while it is needed -------------------------------------------------------
 */

START_TEST(a_text_is_stored_once_and_dropped_with_the_last_job)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    cfg.jobs_kept_max = 1;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    ck_assert_uint_eq(submit_with(FIX_PLAN, ""), 1);
    ck_assert_uint_eq(fix_effects(SCHED_DO_PUT_PLAN), 1);
    ck_assert_uint_eq(submit_with(FIX_PLAN, ""), 2);
    ck_assert_uint_eq(fix_effects(SCHED_DO_PUT_PLAN), 0);
    ck_assert_uint_eq(submit_with(OTHER_PLAN, ""), 3);
    ck_assert_uint_eq(fix_effects(SCHED_DO_PUT_PLAN), 1);
    uint64_t admin = fix_open(MS_ROLE_ADMIN, "root");

    fix_cancel(admin, 1, 0);
    fix_cancel(admin, 2, 0); /* job 1 is forgotten, 2 has its plan still */
    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_DROP_JOB));
    ck_assert_ptr_null(fix_effect(SCHED_DO_DROP_PLAN));
    fix_cancel(admin, 3, 0);

    ck_assert_uint_eq(fix_effects(SCHED_DO_DROP_PLAN), 1);
    ck_assert_str_eq(fix_effect(SCHED_DO_DROP_PLAN)->plan->sha256, fix_digest(FIX_PLAN));
}
END_TEST

static const Ms__JobInfo *ask_plan(uint64_t job)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__JobQuery msg = MS__JOB_QUERY__INIT;
    msg.job = job;
    msg.plan = 1;
    fix_say(conn, MS_MSG_JOB_QUERY, &msg.base);
    const Ms__JobList *list = fix_heard(conn, MS_MSG_JOB_LIST);
    return list != NULL ? list->jobs[0] : NULL;
}

START_TEST(who_asks_is_told_from_memory_or_from_the_database)
{
    placed();
    ck_assert_str_eq(ask_plan(1)->plan, "");
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    ck_assert_str_eq(ask_plan(1)->plan, FIX_PLAN);
    ck_assert_uint_eq(ask_plan(1)->job_json.len, 0);
    ck_assert_str_eq(fix_show(1)->plan, "");
    fix_ready_with(conns[0], 1, 1, 0, fix_digest(FIX_BITS));
    fix_ready(conns[1], 1, 1, 1);

    ck_assert_ptr_null(ask_plan(1)); /* it runs: the driver completes the answer */

    const struct sched_effect *read = fix_effect(SCHED_DO_READ);
    ck_assert_ptr_nonnull(read);
    ck_assert_int_eq(read->read->kind, SCHED_READ_PLAN);
    ck_assert_uint_eq(read->read->job, 1);
    ck_assert_str_eq(read->read->list->jobs[0]->plan, "");
}
END_TEST

START_TEST(without_a_database_the_text_stays_in_memory)
{
    fix_running(conns);

    ck_assert_str_eq(ask_plan(1)->plan, FIX_PLAN);
}
END_TEST

START_TEST(a_plan_counts_in_its_owners_purse_until_the_job_runs)
{
    static char text[MS_PLAN_MAX];
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    cfg.specs_owner_mib = 1;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    memset(text, ' ', sizeof(text) - 1);
    memcpy(text, FIX_PLAN, strlen(FIX_PLAN));
    for (uint64_t id = 1; id <= 3; id++) { /* identical: each counts all the same */
        ck_assert_uint_eq(submit_with(text, ""), id);
    }
    ck_assert_uint_eq(fix_submit(2, 0), 4); /* small ones go on */
    ck_assert_uint_eq(submit_with(text, ""), 0);
    fix_refused(fix.conns, MS_E_FULL, "specs_owner_mib");
    conns[0] = fix_register("w0", 1);
    conns[1] = fix_register("w1", 2);
    fix_ready_with(conns[0], 1, 1, 0, fix_digest(FIX_BITS));

    fix_ready(conns[1], 1, 1, 1);

    fix_job_is(1, "RUNNING", "");
    ck_assert_uint_eq(submit_with(text, ""), 5);
}
END_TEST

/* ---- a restart ----------------------------------------------------------------------------------
 */

static void load_plan(const char *text)
{
    struct sched_plan_row row = {.text = text, .bytes = strlen(text)};
    snprintf(row.sha256, sizeof(row.sha256), "%s", fix_digest(text));
    ck_ms_ok(sched_load_plan(fix.s, &row, err));
}

static struct sched_job_row job_row(enum sched_job_state state, const char *plan, bool given)
{
    struct sched_job_row row = {.id = 1,
                                .state = state,
                                .name = "mnist",
                                .owner = "user:alice",
                                .workers = 1,
                                .generation = state == JOB_QUEUED ? 0 : 5,
                                .spec = (const uint8_t *)"{}",
                                .spec_bytes = 2,
                                .plan_given = given,
                                .plan_text = plan};
    snprintf(row.plan, sizeof(row.plan), "%s", plan != NULL ? fix_digest(plan) : "");
    return row;
}

static void load_begin(enum sched_mode mode)
{
    struct sched_config cfg = fix_config(mode, 1);
    cfg.has_database = 1;
    fix_create(&cfg);
}

START_TEST(a_restart_drops_what_was_chosen_and_keeps_what_was_given)
{
    load_begin(SCHED_STANDING);
    load_plan(FIX_PLAN);
    struct sched_job_row row = job_row(JOB_PLACING, FIX_PLAN, _i == 1);
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    ck_ms_ok(sched_check(fix.s, err));

    fix_time();

    ck_assert_str_eq(fix_stored(1)->plan, _i == 1 ? fix_digest(FIX_PLAN) : "");
    ck_assert_int_eq(fix_effect(SCHED_DO_DROP_PLAN) != NULL, _i == 0);
    uint64_t conn = fix_register("w0", 1);
    ck_assert_uint_eq(plan_from(conn), _i == 1 ? MS_PLAN_GIVEN : MS_PLAN_RANK_0);
    ck_assert_uint_eq(fix_count(MS_MSG_PLAN), _i == 1 ? 1 : 0);
}
END_TEST

/* The ranks of a dynamic cluster go on getting ready: they hear what is stored. */
START_TEST(a_dynamic_cluster_goes_on_with_what_was_stored)
{
    load_begin(SCHED_DYNAMIC);
    load_plan(FIX_PLAN);
    struct sched_job_row row = job_row(JOB_PLACING, FIX_PLAN, false);
    struct sched_member_row member = {.job = 1,
                                      .node_id = "0",
                                      .incarnation = 1,
                                      .host_name = "h",
                                      .principal = "worker:host-certificate",
                                      .generation = 5};
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    ck_ms_ok(sched_load_member(fix.s, &member, err));
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("0", 1);
    msg.worker_num = 1;
    msg.job_json.data = (uint8_t *)"{}";
    msg.job_json.len = 2;
    msg.job = 1;
    msg.generation = 5;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    hears_plan(conn, 5, FIX_PLAN);
}
END_TEST

START_TEST(plans_and_jobs_that_do_not_belong_together_are_refused)
{
    struct sched_job_row row = job_row(JOB_QUEUED, FIX_PLAN, true);
    load_begin(SCHED_STANDING);
    ck_ms_fails(sched_load_job(fix.s, &row, err), MS_E_CONFIG, "which it does not hold");
    load_begin(SCHED_STANDING);
    load_plan(OTHER_PLAN);
    ck_ms_fails(sched_load_done(fix.s, fix.now, err), MS_E_CONFIG, "which is no job's; put ");
    load_begin(SCHED_STANDING);
    struct sched_plan_row no_plan = {.text = "hello", .bytes = 5};
    ck_ms_fails(sched_load_plan(fix.s, &no_plan, err), MS_E_CONFIG, "is no plan");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_plan");
    TCase *tcase = tcase_create("plans");
    tcase_add_checked_fixture(tcase, NULL, fix_end);
    tcase_add_test(tcase, what_rank_0_says_is_stored_and_told_to_all);
    tcase_add_test(tcase, the_same_again_is_answered_to_who_said_it);
    tcase_add_test(tcase, two_plans_for_one_start_end_the_job);
    tcase_add_loop_test(tcase, nobody_but_rank_0_and_nothing_but_a_plan_is_heard, 0, 4);
    tcase_add_loop_test(tcase, a_plan_of_another_rank_job_or_generation_is_nothing, 0, 3);
    tcase_add_test(tcase, a_plan_after_the_start_is_nothing);
    tcase_add_test(tcase, a_rank_that_comes_back_hears_the_plan_again);
    tcase_add_loop_test(tcase, ranks_without_the_plan_do_not_start, 0, 2);
    tcase_add_test(tcase, independent_trainings_start_without_one);
    tcase_add_test(tcase, ranks_that_end_with_another_plan_fail_the_job);
    tcase_add_test(tcase, a_requeue_drops_what_rank_0_chose);
    tcase_add_test(tcase, rank_0_is_named_where_it_does_not_choose);
    tcase_add_test(tcase, where_one_knows_no_plan_each_makes_its_own);
    tcase_add_test(tcase, a_given_plan_goes_to_nodes_that_know_it);
    tcase_add_test(tcase, a_given_plan_waits_for_busy_nodes_that_know_it);
    tcase_add_test(tcase, a_full_disk_keeps_no_plan_and_the_job_waits);
    tcase_add_test(tcase, a_given_plan_waits_for_nodes_that_come_back_later);
    tcase_add_test(tcase, a_given_plan_that_nobody_knows_ends_the_job_in_words);
    tcase_add_test(tcase, a_given_plan_is_told_at_once_and_stays);
    tcase_add_test(tcase, what_is_no_plan_is_refused);
    tcase_add_test(tcase, the_same_key_with_another_plan_is_another_job);
    tcase_add_test(tcase, the_same_key_is_the_same_job_when_rank_0_has_chosen);
    tcase_add_test(tcase, a_text_is_stored_once_and_dropped_with_the_last_job);
    tcase_add_test(tcase, who_asks_is_told_from_memory_or_from_the_database);
    tcase_add_test(tcase, without_a_database_the_text_stays_in_memory);
    tcase_add_test(tcase, a_plan_counts_in_its_owners_purse_until_the_job_runs);
    tcase_add_loop_test(tcase, a_restart_drops_what_was_chosen_and_keeps_what_was_given, 0, 2);
    tcase_add_test(tcase, a_dynamic_cluster_goes_on_with_what_was_stored);
    tcase_add_test(tcase, plans_and_jobs_that_do_not_belong_together_are_refused);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
