/* test_sched_leave.c - processes that leave after a rank, and nodes that do not let go of one */
#include "tests/unit/sched_fixture.h"

#include "daemon/sched/state.h"

static void done_leaving(uint64_t conn, uint64_t job, uint64_t generation, uint32_t rank, int code)
{
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = job;
    msg.generation = generation;
    msg.rank = rank;
    msg.code = code;
    msg.text = (char *)(code != 0 ? "this process runs with avx2 already" : "");
    msg.weights_sha256 = (char *)"w1";
    msg.plan_sha256 = (char *)fix_digest(FIX_BITS);
    msg.leaving = true;
    fix_say(conn, MS_MSG_RANK_DONE, &msg.base);
}

START_TEST(process_that_leaves_gets_no_rank_and_the_next_one_does)
{
    uint64_t conns[2];
    fix_running(conns);
    ck_assert_uint_eq(fix_submit(2, 0), 2);
    done_leaving(conns[0], 1, 1, 0, 0);
    fix_done(conns[1], 1, 1, 1, 0, "");

    fix_job_is(1, "SUCCEEDED", "all 2 ranks finished");
    fix_job_is(2, "QUEUED", "waits for 2 idle nodes: 2 registered, 1 idle");
    ck_assert_str_eq(fix_show_node("w0")->activity, "leaving: its process ends, or begins anew");

    Ms__Register again = fix_node("w0", 1); /* over a new connection, and still the same one */
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    fix_say(conn, MS_MSG_REGISTER, &again.base);
    fix_job_is(2, "QUEUED", "1 idle");
    Ms__Leave leave = MS__LEAVE__INIT;
    fix_say(conn, MS_MSG_LEAVE, &leave.base);
    fix_register("w0", 77);

    fix_job_is(2, "PLACING", "to choose the plan");
}
END_TEST

/* Its connection ended soon after we stood still, so that it was away, not gone. */
START_TEST(next_process_of_one_that_was_away_gets_ranks)
{
    uint64_t conns[2];
    fix_running(conns);
    ck_assert_uint_eq(fix_submit(2, 0), 2);
    done_leaving(conns[0], 1, 1, 0, 0);
    sched_stood_still(fix.s, 5000);
    fix_close(conns[0]);
    fix_register("w0", 77);
    fix_done(conns[1], 1, 1, 1, 0, "");
    fix_beat(conns[1]);

    ck_assert_str_ne(fix_show_node("w0")->activity, "leaving: its process ends, or begins anew");
    fix_job_is(2, "PLACING", "to choose the plan");
}
END_TEST

/* Beside the first one all have to begin anew at once; none of them is to blame, nor their host. */
START_TEST(rank_that_a_process_cannot_serve_is_placed_with_the_next_one)
{
    uint64_t conns[2];
    fix_placed(conns);
    done_leaving(conns[0], 1, 1, 0, MS_E_REFUSED);
    done_leaving(conns[1], 1, 1, 1, MS_E_ABORTED); /* the answer to Stop */

    fix_job_is(1, "QUEUED", "it was placed before: rank 0 (node w0 on host h) failed: this");
    fix_close(conns[0]);
    fix_close(conns[1]);
    fix_register("w0", 11);
    fix_register("w1", 12);

    fix_job_is(1, "PLACING", "to choose the plan");
}
END_TEST

static void is_short(uint64_t conn, uint64_t generation)
{
    fix_done(conn, 1, generation, 0, MS_E_NOMEM, "cannot make shared memory: Too many open files");
}

/* It would take job after job, and fail each: others get them meanwhile. */
START_TEST(node_that_lacks_descriptors_rests)
{
    uint64_t conns[2];
    fix_placed(conns);
    fix_register("w2", 3);
    is_short(conns[0], 1);
    fix_done(conns[1], 1, 1, 1, MS_E_ABORTED, ""); /* the answer to Stop */

    fix_job_is(1, "PLACING", "to choose the plan");
    ck_assert_str_eq(fix_show_node("w1")->activity, "job 1 rank 0");
    ck_assert_str_eq(fix_show_node("w2")->activity, "job 1 rank 1");
    ck_assert_str_eq(fix_show_node("w0")->activity,
                     "rests: it lacked memory or descriptors for a job; gets the next one soon");
    for (int at = 0; at < MS_UNFIT_MS; at += FIX_LEASE_MS / 2) {
        fix_beat(conns[0]);
        fix_pass(FIX_LEASE_MS / 2);
    }
    ck_assert_str_eq(fix_show_node("w0")->activity, "idle");
}
END_TEST

/* The next process of it may have what this one lacked. */
START_TEST(its_next_process_need_not_rest)
{
    uint64_t conns[2];
    fix_placed(conns);
    is_short(conns[0], 1);
    fix_done(conns[1], 1, 1, 1, MS_E_ABORTED, "");
    fix_job_is(1, "QUEUED",
               "it was placed 1 time before: rank 0 (node w0 on host h) failed: cannot make");
    fix_close(conns[0]);
    fix_register("w0", 11);

    fix_job_is(1, "PLACING", "to choose the plan");
}
END_TEST

/* ... and then it is the job's. */
START_TEST(job_that_all_lack_memory_for_fails)
{
    uint64_t conns[2];
    fix_placed(conns);
    for (uint64_t generation = 1; generation <= MS_PLACE_TRIES_MAX; generation++) {
        is_short(conns[0], generation);
        fix_done(conns[1], 1, generation, 1, MS_E_ABORTED, "");
        for (int at = 0; at < MS_UNFIT_MS; at += FIX_LEASE_MS / 2) {
            fix_beat(conns[0]);
            fix_beat(conns[1]);
            fix_pass(FIX_LEASE_MS / 2);
        }
    }
    fix_job_is(1, "FAILED", "it was placed 3 times and never started");
}
END_TEST

/* Of many nodes that served with another instruction set a few at a time are met. */
START_TEST(job_is_placed_on_as_many_processes_that_begin_anew_as_there_are)
{
    enum { NODES = 20 };
    uint64_t conns[NODES];
    char ids[NODES][16];
    fix_standing();
    for (int i = 0; i < NODES; i++) {
        snprintf(ids[i], sizeof(ids[i]), "w%02d", i);
        conns[i] = fix_register(ids[i], (uint64_t)i + 1);
    }
    ck_assert_uint_eq(fix_submit(2, 0), 1);
    for (int i = 0; i < NODES; i += 2) {
        fix_job_is(1, "PLACING", "to choose the plan");
        uint64_t generation = (uint64_t)i / 2 + 1;
        for (int k = 0; k < NODES; k++) { /* whoever has them, and is gone for a moment */
            const struct node *node = conns[k] != 0 ? node_find(fix.s, ids[k]) : NULL;
            const struct hold *hold = node != NULL ? hold_first(node) : NULL;
            if (hold != NULL && hold->generation == generation) {
                done_leaving(conns[k], 1, generation, hold->rank, MS_E_REFUSED);
                fix_close(conns[k]);
                conns[k] = 0;
            }
        }
    }
    fix_job_is(1, "QUEUED", "it was placed before: rank");
    for (int i = 0; i < 2; i++) {
        fix_register(ids[i], (uint64_t)i + 100);
    }
    fix_job_is(1, "PLACING", "to choose the plan");
}
END_TEST

START_TEST(process_that_leaves_again_and_again_ends_the_job)
{
    uint64_t conns[2];
    fix_placed(conns);
    for (uint64_t generation = 1; generation <= 2 + MS_PLACE_TRIES_MAX; generation++) {
        fix_job_is(1, "PLACING", "to choose the plan");
        done_leaving(conns[0], 1, generation, 0, MS_E_REFUSED);
        fix_stopped(conns[1], 1, generation, 1);
        fix_close(conns[0]);
        conns[0] = fix_register("w0", 10 + generation);
    }

    fix_job_is(1, "FAILED",
               "this process runs with avx2 already; it had opened no log yet; it was "
               "placed 5 times and never started");
}
END_TEST

START_TEST(process_that_leaves_amid_training_fails_its_job)
{
    uint64_t conns[2];
    fix_running(conns);

    done_leaving(conns[0], 1, 1, 0, MS_E_IO);

    fix_job_is(1, "FAILED", "rank 0 (node w0 on host h) failed");
}
END_TEST

/* A node claims a rank that it was never given, and keeps it. */
static uint64_t stuck_node(const char *id, uint64_t incarnation)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, incarnation);
    msg.job = 7;
    msg.generation = 1;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

static void pass(int64_t ms, uint64_t a, uint64_t b)
{
    for (; ms > 0; ms -= 1000) {
        fix_pass(1000);
        fix_beat(a);
        fix_beat(b);
    }
}

START_TEST(job_that_fits_passes_one_that_waits_for_nodes_that_never_let_go)
{
    fix_standing();
    uint64_t good = fix_register("w0", 1);
    uint64_t bad = stuck_node("w1", 2);
    uint64_t large = fix_submit(2, 0);
    uint64_t small = fix_submit(1, 0);
    fix_job_is(small, "QUEUED", "waits behind job");

    pass(MS_STOP_ANSWER_MS + 1000, good, bad);
    fix_job_is(large, "QUEUED",
               "waits for 2 idle nodes: 2 registered, 1 idle, 1 stuck (msctl nodes)");
    pass(FIX_LEASE_MS + 1000, good, bad);

    fix_job_is(large, "QUEUED", "needs 2 nodes, the cluster has 1, 1 stuck (msctl nodes)");
    fix_job_is(small, "PLACING", "waits for rank");
    ck_assert_uint_eq(fix.s->n_stuck, 1);

    fix_stopped(bad, 7, 1, 0); /* it does let go */
    ck_assert_uint_eq(fix.s->n_stuck, 0);
    fix_job_is(large, "QUEUED", "waits for 2 idle nodes: 2 registered, 1 idle");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_leave");
    TCase *t = tcase_create("leave");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, process_that_leaves_gets_no_rank_and_the_next_one_does);
    tcase_add_test(t, next_process_of_one_that_was_away_gets_ranks);
    tcase_add_test(t, rank_that_a_process_cannot_serve_is_placed_with_the_next_one);
    tcase_add_test(t, node_that_lacks_descriptors_rests);
    tcase_add_test(t, its_next_process_need_not_rest);
    tcase_add_test(t, job_that_all_lack_memory_for_fails);
    tcase_add_test(t, job_is_placed_on_as_many_processes_that_begin_anew_as_there_are);
    tcase_add_test(t, process_that_leaves_again_and_again_ends_the_job);
    tcase_add_test(t, process_that_leaves_amid_training_fails_its_job);
    tcase_add_test(t, job_that_fits_passes_one_that_waits_for_nodes_that_never_let_go);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
