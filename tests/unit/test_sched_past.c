/* test_sched_past.c - ended jobs and their ranks: who has the most loses his oldest */
#include "tests/unit/sched_fixture.h"

static void begin(uint32_t jobs, uint32_t ranks)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.jobs_kept_max = jobs;
    cfg.members_kept_max = ranks;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

static uint64_t submit(uint64_t conn, uint32_t workers)
{
    Ms__Submit msg = fix_job(workers);
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    const Ms__Submitted *answer = fix_heard(conn, MS_MSG_SUBMITTED);
    ck_assert_ptr_nonnull(answer);
    return answer->job;
}

/* A job that waits, and is cancelled. */
static uint64_t submit_cancel(uint64_t conn)
{
    uint64_t job = submit(conn, 1000);
    fix_cancel(conn, job, 0);
    return job;
}

static int is_known(uint64_t job)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "carol");
    Ms__JobQuery msg = MS__JOB_QUERY__INIT;
    msg.job = job;
    fix_say(conn, MS_MSG_JOB_QUERY, &msg.base);
    return fix_heard(conn, MS_MSG_JOB_LIST) != NULL;
}

START_TEST(nobody_submits_and_cancels_the_ended_jobs_of_others_out_of_the_history)
{
    enum { KEPT = 10, BOBS = 3, ALICES = 50 };
    uint64_t alices[ALICES];
    begin(KEPT, 0);
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    uint64_t first = submit_cancel(bob);
    for (int i = 1; i < BOBS; i++) {
        submit_cancel(bob);
    }

    for (int i = 0; i < ALICES; i++) {
        alices[i] = submit_cancel(alice);
    }

    for (uint64_t job = first; job < first + BOBS; job++) {
        ck_assert_msg(is_known(job), "job %llu of bob is gone", (unsigned long long)job);
    }
    for (int i = 0; i < ALICES; i++) { /* of hers the newest stay */
        ck_assert_int_eq(is_known(alices[i]), i >= ALICES - (KEPT - BOBS));
    }
    struct sched_counts counts;
    sched_count(fix.s, &counts);
    ck_assert_uint_eq(counts.jobs_ended, KEPT);
}
END_TEST

START_TEST(of_owners_with_as_many_jobs_the_oldest_goes_first)
{
    begin(4, 0);
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    uint64_t dave = fix_open(MS_ROLE_USER, "dave");
    uint64_t jobs[5] = {submit_cancel(alice), submit_cancel(bob), submit_cancel(bob),
                        submit_cancel(alice), 0};

    jobs[4] = submit_cancel(dave);

    ck_assert(!is_known(jobs[0]));
    for (int i = 1; i < 5; i++) {
        ck_assert(is_known(jobs[i]));
    }
}
END_TEST

/* One rank, which w0 says is over. */
static uint64_t run_one(uint64_t owner, uint64_t w0, uint64_t generation)
{
    uint64_t job = submit(owner, 1);
    fix_done(w0, job, generation, 0, MS_E_INVALID, "no data");
    return job;
}

START_TEST(nobody_runs_the_ranks_of_others_out_of_the_history)
{
    begin(0, 4);
    uint64_t w0 = fix_register("w0", 1);
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    uint64_t jobs[12];
    for (uint64_t i = 0; i < 12; i++) {
        jobs[i] = run_one(i == 0 ? bob : alice, w0, i + 1);
    }

    for (int i = 0; i < 12; i++) {
        ck_assert_uint_eq(fix_show(jobs[i])->n_ranks, i == 0 || i >= 9);
    }
    fix_job_is(jobs[1], "FAILED", "no data"); /* the job itself is known still */
}
END_TEST

/* Loaded in any order, and from one of many jobs of one owner to one of few. */
START_TEST(a_restart_knows_whose_history_it_is)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    struct sched_job_row row;
    cfg.jobs_kept_max = 6;
    memset(&row, 0, sizeof(row));
    row.state = JOB_CANCELLED;
    row.workers = 1;
    row.spec = (const uint8_t *)"{}";
    row.spec_bytes = 2;
    row.reason[0] = '.';
    fix_create(&cfg);
    for (row.id = 1; row.id <= 6; row.id++) {
        snprintf(row.owner, sizeof(row.owner), "%s", row.id <= 2 ? "user:bob" : "user:alice");
        row.ended_ms = (int64_t)row.id;
        ck_ms_ok(sched_load_job(fix.s, &row, err));
    }
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    ck_ms_ok(sched_check(fix.s, err));

    submit_cancel(fix_open(MS_ROLE_USER, "bob"));

    ck_assert(is_known(1));
    ck_assert(!is_known(3)); /* alice had four, and bob three */
    ck_assert(is_known(4));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sched_past");
    TCase *t = tcase_create("past");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, nobody_submits_and_cancels_the_ended_jobs_of_others_out_of_the_history);
    tcase_add_test(t, of_owners_with_as_many_jobs_the_oldest_goes_first);
    tcase_add_test(t, nobody_runs_the_ranks_of_others_out_of_the_history);
    tcase_add_test(t, a_restart_knows_whose_history_it_is);
    suite_add_tcase(s, t);
    return test_run(s);
}
