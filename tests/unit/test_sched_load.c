/* test_sched_load.c - a restarted scheduler: what it takes up, goes on with, requeues and refuses
 */
#include "tests/unit/sched_load_case.h"

#include <time.h>

/* ---- tries --------------------------------------------------------------------------------------
 */

/* A job that kills its nodes while it loads must not do so for ever where the scheduler is
 * restarted in between. */
START_TEST(how_often_a_job_was_placed_in_vain_survives_a_restart)
{
    begin();
    struct sched_job_row row = job_row(3, JOB_QUEUED);
    row.generation = 0;
    row.workers = 1;
    row.n_tries = MS_PLACE_TRIES_MAX - 1;
    snprintf(row.reason, sizeof(row.reason), "rank 0 was lost");
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    loaded();
    fix_job_is(3, "QUEUED", "it was placed 2 times before: rank 0 was lost");

    uint64_t conn = fix_register("w0", 1);
    ck_assert_uint_eq(fix_stored(3)->n_tries, MS_PLACE_TRIES_MAX);
    fix_close(conn);

    fix_job_is(3, "FAILED", "it was placed 3 times and never started");
}
END_TEST

START_TEST(a_placing_that_a_restart_cut_off_is_not_the_jobs)
{
    begin();
    struct sched_job_row row = job_row(3, JOB_PLACING);
    row.n_tries = 1;
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    load_members(3);
    loaded();

    fix_pass(1);

    ck_assert_uint_eq(fix_stored(3)->n_tries, 0);
    ck_assert_ptr_null(strstr(fix_show(3)->reason, "was placed"));
}
END_TEST

/* ---- cancel at the step -------------------------------------------------------------------------
 */

static void cancelled_job(void)
{
    begin();
    struct sched_job_row row = job_row(3, JOB_RUNNING);
    row.cancel_at_step = 1;
    snprintf(row.cancel_text, sizeof(row.cancel_text), "%s", "cancelled by alice");
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    load_members(3);
    loaded();
}

START_TEST(cancel_at_step_goes_on_after_a_restart)
{
    cancelled_job();
    uint64_t first = come_back(0, 100, 3, 13, 1);
    ck_assert_ptr_null(fix_heard(first, MS_MSG_STOP)); /* who saves is not known yet */
    uint64_t second = come_back(1, 101, 3, 13, 1);
    for (int i = 0; i < 2; i++) {
        const Ms__Stop *stop = fix_heard(i == 0 ? first : second, MS_MSG_STOP);
        ck_assert_ptr_nonnull(stop);
        ck_assert_int_eq(stop->at_step, 1);
    }

    fix_stopped(first, 3, 13, 0);
    fix_stopped(second, 3, 13, 1);

    fix_job_is(3, "CANCELLED", "cancelled by alice");
}
END_TEST

START_TEST(cancelled_job_whose_node_is_not_back_is_cancelled)
{
    cancelled_job();
    uint64_t conn = come_back(0, 100, 3, 13, 1);

    fix_pass(FIX_LEASE_MS / 2);
    fix_beat(conn);
    fix_pass(FIX_LEASE_MS / 2 + 2 * MS_ADOPT_NODE_MS);

    fix_job_is(3, "CANCELLED", "cancelled by alice; meanwhile rank 1");
}
END_TEST

START_TEST(cancel_at_step_becomes_hard_after_a_restart_too)
{
    cancelled_job();
    uint64_t conns[2] = {come_back(0, 100, 3, 13, 1), come_back(1, 101, 3, 13, 1)};
    const int64_t until = MS_CANCEL_GRACE_MS; /* from when they were told */
    int64_t ms = 0;
    for (; ms + 5000 < until; ms += 5000) {
        fix_pass(5000);
        fix_beat(conns[0]);
        fix_beat(conns[1]);
    }
    fix_job_is(3, "RUNNING", "waits for 2 of 2 ranks to finish the step");

    fix_pass(until - ms);

    fix_job_is(3, "CANCELLED", "the step did not end within");
}
END_TEST

/* ---- requeue, queue, history --------------------------------------------------------------------
 */

START_TEST(placing_job_goes_back_into_the_queue)
{
    begin();
    load_job(1, JOB_QUEUED);
    load_job(3, JOB_PLACING);
    load_members(3);
    loaded();

    ck_assert_int_le(sched_deadline(fix.s), fix.now.mono_ms);
    fix_time();

    ck_assert_int_eq(fix_stored(3)->state, JOB_QUEUED);
    ck_assert_uint_eq(fix_effect(SCHED_DO_DROP_MEMBERS)->job_id, 3);
    fix_job_is(3, "QUEUED", "waits behind job 1");
    uint64_t conn = come_back(0, 100, 3, 13, 0);
    const Ms__Stop *stop = fix_heard(conn, MS_MSG_STOP);
    ck_assert_uint_eq(stop->generation, 13);
    ck_assert_ptr_nonnull(strstr(stop->text, "waits in the queue again"));
}
END_TEST

START_TEST(queue_keeps_its_order_over_a_restart)
{
    begin();
    for (uint64_t id = 1; id <= 100; id++) {
        struct sched_job_row row = job_row(id, JOB_QUEUED);
        row.workers = 1;
        row.priority = id % 2 == 0 ? 1 : 0;
        ck_ms_ok(sched_load_job(fix.s, &row, err));
    }
    loaded();
    uint64_t conn = fix_register("w0", 1);

    uint64_t want = 2;
    for (uint64_t generation = 1; generation <= 100; generation++) {
        const Ms__Assign *assign = fix_heard(conn, MS_MSG_ASSIGN);
        ck_assert_ptr_nonnull(assign);
        ck_assert_uint_eq(assign->job, want);
        want = want == 100 ? 1 : want + 2;
        fix_done(conn, assign->job, generation, 0, MS_E_INVALID, "next");
    }
}
END_TEST

START_TEST(ids_and_generations_go_on_above_what_is_stored)
{
    begin();
    ck_ms_ok(sched_load_meta(fix.s, "next_job", 50, err));
    ck_ms_ok(sched_load_meta(fix.s, "generation", 70, err));
    ck_ms_ok(sched_load_meta(fix.s, "something newer", 1, err));
    load_job(3, JOB_FAILED);
    loaded();
    uint64_t conn = fix_register("w0", 1);

    ck_assert_uint_eq(fix_submit(1, 0), 50);

    ck_assert_uint_eq(((const Ms__Assign *)fix_heard(conn, MS_MSG_ASSIGN))->generation, 71);
}
END_TEST

START_TEST(rows_alone_raise_ids_and_generations)
{
    begin();
    load_job(9, JOB_FAILED);
    loaded();
    uint64_t conn = fix_register("w0", 1);

    ck_assert_uint_eq(fix_submit(1, 0), 10);

    ck_assert_uint_eq(((const Ms__Assign *)fix_heard(conn, MS_MSG_ASSIGN))->generation, 20);
}
END_TEST

START_TEST(idempotence_keys_survive)
{
    begin();
    struct sched_job_row row = job_row(4, JOB_SUCCEEDED);
    snprintf(row.key, sizeof(row.key), "%s", "k");
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    loaded();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(2);
    msg.key = (char *)"k";

    fix_say(conn, MS_MSG_SUBMIT, &msg.base);

    ck_assert_uint_eq(((const Ms__Submitted *)fix_heard(conn, MS_MSG_SUBMITTED))->job, 4);
}
END_TEST

START_TEST(rank_of_an_ended_job_hears_its_stored_result)
{
    begin();
    load_job(4, JOB_SUCCEEDED);
    load_members(4);
    loaded();

    uint64_t conn = come_back(0, 100, 4, 14, 1);

    const Ms__Stop *stop = fix_heard(conn, MS_MSG_STOP);
    ck_assert_int_eq(stop->code, 0);
    ck_assert_str_eq(stop->text, "stored");
}
END_TEST

START_TEST(rows_may_come_in_any_order)
{
    begin();
    load_members(3);
    load_job(5, JOB_SUCCEEDED);
    load_job(3, JOB_RUNNING);
    load_job(1, JOB_QUEUED);
    loaded();

    fix_job_is(3, "RUNNING", "waits for the nodes of ranks 0 1");
    fix_job_is(5, "SUCCEEDED", "stored");
}
END_TEST

/* ---- damage -------------------------------------------------------------------------------------
 */

START_TEST(running_job_without_a_member_is_refused)
{
    begin();
    load_job(3, JOB_RUNNING);
    struct sched_member_row row = member_row(3, 0);
    ck_ms_ok(sched_load_member(fix.s, &row, err));

    ck_ms_fails(sched_load_done(fix.s, fix.now, err), MS_E_CONFIG,
                "job 3 of the database is RUNNING and its rank 1 has no node");
}
END_TEST

START_TEST(node_with_two_ranks_is_refused)
{
    begin();
    load_job(3, JOB_RUNNING);
    load_members(3);
    load_job(4, JOB_RUNNING);
    load_members(4);

    ck_ms_fails(sched_load_done(fix.s, fix.now, err), MS_E_CONFIG,
                "node w0 of the database holds rank 0 of job 4 and rank 0 of job 3");
}
END_TEST

START_TEST(member_of_no_job_is_refused)
{
    begin();
    load_members(3);

    ck_ms_fails(sched_load_done(fix.s, fix.now, err), MS_E_CONFIG, "a member of job 3");
}
END_TEST

START_TEST(member_beyond_the_workers_is_refused)
{
    begin();
    load_job(3, JOB_RUNNING);
    struct sched_member_row row = member_row(3, 2);

    ck_ms_fails(sched_load_member(fix.s, &row, err), MS_E_CONFIG,
                "job 3 of the database has 2 workers and a member of rank 2");
}
END_TEST

START_TEST(job_twice_is_refused)
{
    begin();
    load_job(3, JOB_QUEUED);
    load_job(3, JOB_QUEUED);

    ck_ms_fails(sched_load_done(fix.s, fix.now, err), MS_E_CONFIG, "holds job 3 twice");
}
END_TEST

START_TEST(states_of_another_release_are_refused)
{
    begin();
    struct sched_job_row row = job_row(3, JOB_RECOVERING);
    row.state = (enum sched_job_state)99;
    ck_ms_fails(sched_load_job(fix.s, &row, err), MS_E_UNSUPPORTED, "state 99");
    row = job_row(0, JOB_QUEUED);
    ck_ms_fails(sched_load_job(fix.s, &row, err), MS_E_CONFIG, "id 0");
    row = job_row(3, JOB_QUEUED);
    row.workers = 0;
    ck_ms_fails(sched_load_job(fix.s, &row, err), MS_E_CONFIG, "0 workers");
    ck_ms_fails(sched_load_meta(fix.s, "generation", UINT64_MAX, err), MS_E_CONFIG, "generation");
}
END_TEST

START_TEST(numbers_at_their_limit_are_refused)
{
    static const char *const keys[] = {"generation", "next_job", "ticks", "next_event"};
    static const uint64_t bad[] = {1ULL << 53, 1ULL << 63, UINT64_MAX};
    begin();
    for (size_t i = 0; i < MS_ARRAY_SIZE(keys); i++) {
        for (size_t k = 0; k < MS_ARRAY_SIZE(bad); k++) {
            ck_ms_fails(sched_load_meta(fix.s, keys[i], bad[k], err), MS_E_CONFIG, keys[i]);
        }
    }
    struct sched_job_row row = job_row((1ULL << 53) - 1, JOB_QUEUED);
    ck_ms_fails(sched_load_job(fix.s, &row, err), MS_E_CONFIG, "a job with id 9007199254740991");
}
END_TEST

START_TEST(copy_near_a_limit_is_refused_and_nothing_wraps)
{
    static const struct {
        const char *key;
        uint64_t value;
    } near[] = {{"generation", (1ULL << 53) - MS_NUMBERS_GAP},
                {"next_job", (1ULL << 53) - 1},
                {"ticks", (1ULL << 53) - MS_NUMBERS_GAP}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(near); i++) {
        struct sched_config cfg = fix_config(SCHED_STANDING, 0);
        cfg.skip_ahead = 1;
        fix_create(&cfg);
        ck_ms_ok(sched_load_meta(fix.s, near[i].key, near[i].value, err));

        ck_ms_fails(sched_load_done(fix.s, fix.now, err), MS_E_CONFIG, near[i].key);
    }
}
END_TEST

START_TEST(last_job_id_is_given_and_the_next_submit_refused_in_words)
{
    begin();
    ck_ms_ok(sched_load_meta(fix.s, "next_job", MS_JOB_ID_MAX - 2, err));
    loaded();

    ck_assert_uint_eq(fix_submit(1, 0), MS_JOB_ID_MAX - 2);
    Ms__Submit msg = fix_job(1);
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);

    fix_refused(conn, MS_E_FULL, "has given away the last, 9007199254740990");
    begin(); /* and what was written can be loaded again */
    ck_ms_ok(sched_load_meta(fix.s, "next_job", MS_JOB_ID_MAX - 1, err));
    load_job(MS_JOB_ID_MAX - 2, JOB_QUEUED);
    loaded();
}
END_TEST

START_TEST(node_cannot_claim_a_job_beyond_the_last_id)
{
    begin();
    ck_ms_ok(sched_load_meta(fix.s, "next_job", MS_JOB_ID_MAX - 3, err));
    loaded();
    static const uint64_t far[] = {MS_JOB_ID_MAX - 1, MS_JOB_ID_MAX, UINT64_MAX};
    for (size_t i = 0; i < MS_ARRAY_SIZE(far); i++) {
        uint64_t conn = come_back(0, 100, far[i], 1, 1);
        ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_ERROR));
    }

    ck_assert_uint_eq(fix_submit(1, 0), MS_JOB_ID_MAX - 3);
}
END_TEST

START_TEST(dynamic_cluster_without_numbers_is_refused_at_the_start)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 3);
    fix_create(&cfg);
    ck_ms_ok(sched_load_meta(fix.s, "next_job", MS_JOB_ID_MAX - 1, err));

    ck_ms_fails(sched_load_done(fix.s, fix.now, err), MS_E_CONFIG, "another MS_RECOVERY_PATH");
}
END_TEST

START_TEST(dynamic_cluster_refuses_another_worker_num_than_its_job_has)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 3);
    fix_create(&cfg);
    load_job(1, JOB_RUNNING);
    load_members(1);

    ck_ms_fails(sched_load_done(fix.s, fix.now, err), MS_E_CONFIG, "MS_WORKER_NUM is 3");
}
END_TEST

/* With no job: a new worker. */
static uint64_t join_two(const char *id, uint64_t incarnation, uint64_t job, uint64_t generation,
                         uint32_t rank)
{
    const uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, incarnation);
    msg.worker_num = 2;
    msg.job_json.data = (uint8_t *)"{}";
    msg.job_json.len = 2;
    msg.job = job;
    msg.generation = generation;
    msg.rank = rank;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

static uint64_t come_to_hear(uint32_t rank)
{
    char id[8];
    snprintf(id, sizeof(id), "w%u", rank);
    return join_two(id, 100 + rank, 1, 11, rank);
}

static void ck_hears_and_leaves(uint64_t conn)
{
    const Ms__Stop *stop = fix_heard(conn, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->code, 0);
    Ms__Leave leave = MS__LEAVE__INIT;
    fix_say(conn, MS_MSG_LEAVE, &leave.base);
}

/* The one before it was killed when that was stored: all ranks hear of it, one after the other. */
START_TEST(dynamic_cluster_that_is_found_ended_waits_for_all_ranks_to_hear_of_it)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 2);
    fix_create(&cfg);
    load_job(1, JOB_SUCCEEDED);
    load_members(1);
    loaded();

    ck_hears_and_leaves(come_to_hear(1));
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    fix_pass(MS_RECONNECT_LATER_MS);
    ck_hears_and_leaves(come_to_hear(0));

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
    ck_assert_int_eq(fix_effect(SCHED_DO_EXIT)->status, 0);
}
END_TEST

static void load_ended(uint32_t workers)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 2);
    struct sched_job_row row = job_row(1, JOB_SUCCEEDED);
    row.workers = workers;
    fix_create(&cfg);
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    ck_ms_ok(sched_load_meta(fix.s, "generation", 20, err));
    ck_ms_ok(sched_load_meta(fix.s, "next_job", 2, err));
    loaded();
}

/* Of an earlier start, or a process whose rank another one had at the end: it is told, and no more.
 */
START_TEST(dynamic_cluster_that_forms_anew_is_not_ended_by_an_old_worker)
{
    load_ended(2);
    const uint64_t first = _i == 0 ? join_two("0", 1, 0, 0, 0) : 0;

    const uint64_t old = join_two("old", 77, 1, _i == 0 ? 11 : 10, 0);

    ck_hears_and_leaves(old);
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    if (_i != 0) {
        join_two("0", 1, 0, 0, 0);
    } else {
        ck_assert_ptr_null(fix_heard(first, MS_MSG_STOP));
    }
    const uint64_t second = join_two("1", 2, 0, 0, 0);
    ck_assert_ptr_nonnull(fix_heard(second, MS_MSG_ASSIGN));
}
END_TEST

START_TEST(nor_is_one_whose_job_waits_for_its_workers)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 2);
    fix_create(&cfg);
    load_job(1, JOB_SUCCEEDED);
    load_job(2, JOB_QUEUED);
    loaded();

    ck_hears_and_leaves(join_two("old", 77, 1, 11, 0));
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    join_two("0", 1, 0, 0, 0);
    const uint64_t second = join_two("1", 2, 0, 0, 0);

    const Ms__Assign *assign = fix_heard(second, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(assign);
    ck_assert_uint_eq(assign->job, 2);
}
END_TEST

/* Its rank, which may be beyond those that there are, is none of the job that has ended now. */
START_TEST(rank_of_an_earlier_job_has_not_heard_for_one_of_this)
{
    load_ended(_i == 0 ? 2 : 1024);
    const uint64_t a = join_two("0", 1, 0, 0, 0), b = join_two("1", 2, 0, 0, 0);
    const Ms__Assign *assign = fix_heard(b, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(assign);
    const uint64_t generation = assign->generation;
    fix_ready(a, 2, generation, 0);
    fix_ready(b, 2, generation, 1);
    fix_done(a, 2, generation, 0, 0, "");
    fix_done(b, 2, generation, 1, 0, "");
    fix_close(a);
    Ms__Leave leave = MS__LEAVE__INIT;
    fix_say(b, MS_MSG_LEAVE, &leave.base);

    const uint64_t old = join_two("old", 77, 1, 11, _i == 0 ? 0 : 1000);
    fix_say(old, MS_MSG_LEAVE, &leave.base);

    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    fix_pass(MS_UNHEARD_MS);
    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
    ck_assert_int_eq(fix_logged("topology.unheard workers=1: "), 1);
}
END_TEST

START_TEST(dynamic_cluster_adopts_its_job)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 2);
    fix_create(&cfg);
    load_job(1, JOB_PLACING);
    load_members(1);
    loaded();
    uint64_t conns[2];

    for (uint32_t rank = 0; rank < 2; rank++) {
        char id[8];
        snprintf(id, sizeof(id), "w%u", rank);
        conns[rank] = fix_open(MS_ROLE_WORKER, "host-certificate");
        Ms__Register msg = fix_node(id, 100 + rank);
        msg.worker_num = 2;
        msg.job_json.data = (uint8_t *)"{}";
        msg.job_json.len = 2;
        msg.job = 1;
        msg.generation = 11;
        msg.rank = rank;
        fix_say(conns[rank], MS_MSG_REGISTER, &msg.base);
        fix_ready(conns[rank], 1, 11, rank);
    }

    ck_assert_uint_eq(fix_count(MS_MSG_START), 2);
    fix_job_is(1, "RUNNING", "");
}
END_TEST

/* ---- size ---------------------------------------------------------------------------------------
 */

/* The limit is generous because machines stand still; the figure is printed for people. */
START_TEST(hundred_thousand_queued_jobs_load_fast)
{
    enum { JOBS = 100000, SPEC = 2048 };
    static uint8_t spec[SPEC];
    struct timespec t0, t1;
    begin();
    struct sched_job_row row = job_row(1, JOB_QUEUED);
    row.spec = spec;
    row.spec_bytes = SPEC;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);

    for (uint64_t id = 1; id <= JOBS; id++) {
        row.id = id;
        snprintf(row.key, sizeof(row.key), "key-%u", (unsigned)id);
        ck_ms_ok(sched_load_job(fix.s, &row, err));
    }
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    double seconds = (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
    printf("%d queued jobs of %d bytes loaded in %.3f s\n", JOBS, SPEC, seconds);
    ck_assert_double_lt(seconds, 5.0);
    struct sched_counts counts;
    sched_count(fix.s, &counts);
    ck_assert_uint_eq(counts.jobs_queued, JOBS);
}
END_TEST

/* Its workers were all here once, and may not be any more. */
START_TEST(job_that_waits_for_its_workers_to_come_back_is_cancelled)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 2);
    fix_create(&cfg);
    load_job(3, JOB_QUEUED);
    loaded();

    fix_cancel(fix_open(MS_ROLE_ADMIN, "alice"), 3, 0);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
    ck_assert_int_eq(fix_effect(SCHED_DO_EXIT)->status, 1);
    fix_job_is(3, "CANCELLED", "cancelled by");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_load");
    TCase *tc = tcase_create("tries and cancels");
    tcase_add_checked_fixture(tc, NULL, fix_end);
    tcase_add_test(tc, how_often_a_job_was_placed_in_vain_survives_a_restart);
    tcase_add_test(tc, a_placing_that_a_restart_cut_off_is_not_the_jobs);
    tcase_add_test(tc, cancel_at_step_goes_on_after_a_restart);
    tcase_add_test(tc, cancelled_job_whose_node_is_not_back_is_cancelled);
    tcase_add_test(tc, cancel_at_step_becomes_hard_after_a_restart_too);
    tcase_add_test(tc, dynamic_cluster_that_is_found_ended_waits_for_all_ranks_to_hear_of_it);
    tcase_add_loop_test(tc, dynamic_cluster_that_forms_anew_is_not_ended_by_an_old_worker, 0, 2);
    tcase_add_loop_test(tc, rank_of_an_earlier_job_has_not_heard_for_one_of_this, 0, 2);
    tcase_add_test(tc, nor_is_one_whose_job_waits_for_its_workers);
    tcase_add_test(tc, dynamic_cluster_adopts_its_job);
    tcase_add_test(tc, job_that_waits_for_its_workers_to_come_back_is_cancelled);
    suite_add_tcase(suite, tc);
    tc = tcase_create("queue and history");
    tcase_add_checked_fixture(tc, NULL, fix_end);
    tcase_add_test(tc, placing_job_goes_back_into_the_queue);
    tcase_add_test(tc, queue_keeps_its_order_over_a_restart);
    tcase_add_test(tc, ids_and_generations_go_on_above_what_is_stored);
    tcase_add_test(tc, rows_alone_raise_ids_and_generations);
    tcase_add_test(tc, idempotence_keys_survive);
    tcase_add_test(tc, rank_of_an_ended_job_hears_its_stored_result);
    tcase_add_test(tc, rows_may_come_in_any_order);
    tcase_add_test(tc, hundred_thousand_queued_jobs_load_fast);
    suite_add_tcase(suite, tc);
    tc = tcase_create("damage");
    tcase_add_checked_fixture(tc, NULL, fix_end);
    tcase_add_test(tc, running_job_without_a_member_is_refused);
    tcase_add_test(tc, node_with_two_ranks_is_refused);
    tcase_add_test(tc, member_of_no_job_is_refused);
    tcase_add_test(tc, member_beyond_the_workers_is_refused);
    tcase_add_test(tc, job_twice_is_refused);
    tcase_add_test(tc, states_of_another_release_are_refused);
    tcase_add_test(tc, numbers_at_their_limit_are_refused);
    tcase_add_test(tc, copy_near_a_limit_is_refused_and_nothing_wraps);
    tcase_add_test(tc, last_job_id_is_given_and_the_next_submit_refused_in_words);
    tcase_add_test(tc, node_cannot_claim_a_job_beyond_the_last_id);
    tcase_add_test(tc, dynamic_cluster_without_numbers_is_refused_at_the_start);
    tcase_add_test(tc, dynamic_cluster_refuses_another_worker_num_than_its_job_has);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
