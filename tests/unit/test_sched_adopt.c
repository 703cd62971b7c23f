/* test_sched_adopt.c - a restarted scheduler and the jobs that run: whom it waits for, and how long
 */
#include "tests/unit/sched_load_case.h"

START_TEST(running_job_waits_for_its_nodes)
{
    running_job();

    fix_job_is(3, "RUNNING", "waits for the nodes of ranks 0 1 to come back");
    ck_assert_int_eq(sched_deadline(fix.s), fix.now.mono_ms + FIX_LEASE_MS + 2 * MS_ADOPT_NODE_MS);
    ck_assert_str_eq(fix_show_node("w0")->state, "NEW");
}
END_TEST

START_TEST(running_job_is_adopted_when_all_are_back)
{
    running_job();
    uint64_t first = come_back(0, 100, 3, 13, 1);
    ck_assert_ptr_null(fix_heard(first, MS_MSG_STOP));
    ck_assert_ptr_null(fix_heard(first, MS_MSG_START));

    uint64_t second = come_back(1, 101, 3, 13, 1);
    ck_assert_int_eq(fix_logged("job.adopted job=3"), 1);
    fix_job_is(3, "RUNNING", "");
    fix_done(first, 3, 13, 0, 0, "");
    fix_done(second, 3, 13, 1, 0, "");

    fix_job_is(3, "SUCCEEDED", "all 2 ranks");
}
END_TEST

START_TEST(rank_that_missed_start_gets_it_from_the_new_scheduler)
{
    running_job();

    uint64_t conn = come_back(0, 100, 3, 13, 0);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_START));
}
END_TEST

START_TEST(nodes_that_do_not_come_back_fail_the_job_by_name)
{
    running_job();
    fix_pass(FIX_LEASE_MS / 2);
    uint64_t conn = come_back(0, 100, 3, 13, 1);

    fix_pass(FIX_LEASE_MS / 2 + 2 * MS_ADOPT_NODE_MS);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_STOP));
    fix_job_is(3, "FAILED",
               "rank 1 (node w1 on host h) did not come back within 10020 ms after the scheduler's "
               "restart; its log: /run/worker_1.log");
    ck_assert_str_eq(fix_show_node("w1")->state, "LOST");
}
END_TEST

START_TEST(node_that_comes_back_as_another_process_fails_the_job)
{
    running_job();

    come_back(0, 999, 0, 0, 0);

    fix_job_is(3, "FAILED", "rank 0 (node w0 on host h) was lost: its process ended and another");
}
END_TEST

/* The right node id, and one thing about its claim is not what we gave it. */
START_TEST(claim_of_another_process_generation_or_rank_is_not_adopted)
{
    static const struct {
        uint64_t incarnation, generation;
        uint32_t rank;
    } wrong[] = {{999, 13, 0}, {100, 12, 0}, {100, 13, 1}};
    running_job();
    come_back(1, 101, 3, 13, 1);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w0", wrong[_i].incarnation);
    msg.job = 3;
    msg.generation = wrong[_i].generation;
    msg.rank = wrong[_i].rank;
    msg.running = 1;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    const Ms__Stop *stop = fix_heard(conn, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_uint_eq(stop->generation, wrong[_i].generation);
    fix_job_is(3, "FAILED", "rank 0 (node w0 on host h) was lost");
}
END_TEST

START_TEST(node_that_comes_back_without_its_rank_fails_the_job)
{
    running_job();

    come_back(0, 100, 0, 0, 0);

    fix_job_is(3, "FAILED",
               "its process reconnected without the rank after the scheduler's restart");
}
END_TEST

START_TEST(adoption_waits_longer_when_the_scheduler_stood_still)
{
    running_job();

    sched_stood_still(fix.s, 3000);
    fix_pass(FIX_LEASE_MS + 2 * MS_ADOPT_NODE_MS + 2999);
    fix_job_is(3, "RUNNING", "waits for the nodes");
    fix_pass(1);

    fix_job_is(3, "FAILED", "did not come back");
}
END_TEST

/* It may have given its connection up meanwhile, and be about to try again. */
START_TEST(who_is_on_his_way_back_has_a_whole_lease_after_a_standstill)
{
    running_job();
    fix_pass(FIX_LEASE_MS);

    sched_stood_still(fix.s, FIX_LEASE_MS / 2);
    fix_pass(FIX_LEASE_MS / 2 + FIX_LEASE_MS - 1);
    fix_job_is(3, "RUNNING", "waits for the nodes");
    fix_pass(1);

    fix_job_is(3, "FAILED", "did not come back within 20000 ms after the scheduler's restart");
}
END_TEST

/* Rank r of job j is node w<100 j + r>, incarnation 100 j + r, generation 10 + j. */
static void jobs_of_a_hundred(uint64_t n)
{
    begin();
    for (uint64_t job = 1; job <= n; job++) {
        struct sched_job_row row = job_row(job, JOB_RUNNING);
        row.workers = 100;
        ck_ms_ok(sched_load_job(fix.s, &row, err));
        for (uint32_t rank = 0; rank < 100; rank++) {
            struct sched_member_row member = member_row(job, rank);
            member.incarnation = 100 * job + rank;
            snprintf(member.node_id, sizeof(member.node_id), "w%u", 100 * (unsigned)job + rank);
            ck_ms_ok(sched_load_member(fix.s, &member, err));
        }
    }
    loaded();
}

static uint64_t member_comes(uint64_t job, uint32_t rank)
{
    char id[16];
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    snprintf(id, sizeof(id), "w%u", 100 * (unsigned)job + rank);
    Ms__Register msg = fix_node(id, 100 * job + rank);
    msg.job = job;
    msg.generation = job + 10;
    msg.rank = rank;
    msg.running = 1;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

static const char *waits_for(void)
{
    Ms__StatusQuery msg = MS__STATUS_QUERY__INIT;
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    fix_say(conn, MS_MSG_STATUS_QUERY, &msg.base);
    const Ms__StatusInfo *info = fix_heard(conn, MS_MSG_STATUS_INFO);
    ck_assert_ptr_nonnull(info);
    return info->waiting_for;
}

/* Time passes, and who has come back goes on beating. */
static void beat_for(const uint64_t *conns, size_t n, int64_t ms)
{
    for (; ms > 0; ms -= FIX_LEASE_MS / 2) {
        fix_pass(ms < FIX_LEASE_MS / 2 ? ms : FIX_LEASE_MS / 2);
        for (size_t i = 0; i < n; i++) {
            fix_beat(conns[i]);
        }
    }
}

START_TEST(adoption_waits_longer_for_many_nodes)
{
    jobs_of_a_hundred(20);

    fix_pass(FIX_LEASE_MS + 2000 * MS_ADOPT_NODE_MS - 1);
    fix_job_is(20, "RUNNING", "waits for the nodes");
    fix_pass(1);

    fix_job_is(20, "FAILED", "did not come back within 30000 ms after the scheduler's restart");
}
END_TEST

/* Ten thousand idle nodes that nobody expected take the scheduler's time as well. */
START_TEST(adoption_goes_on_while_a_wave_of_nodes_comes_back)
{
    running_job();
    char id[16];
    for (int i = 0; i < 400; i++) {
        fix_pass(50);
        snprintf(id, sizeof(id), "idle%d", i);
        fix_register(id, 1);
    }

    fix_job_is(3, "RUNNING", "waits for the nodes");
    come_back(0, 100, 3, 13, 1);
    come_back(1, 101, 3, 13, 1);

    fix_job_is(3, "RUNNING", "");
}
END_TEST

/* A node that we lose by our own standstill has a lease; the others have what they had. */
START_TEST(standstill_amid_an_adoption_shortens_it_for_nobody)
{
    jobs_of_a_hundred(30);
    const int64_t ms = FIX_LEASE_MS + 3000 * MS_ADOPT_NODE_MS + FIX_LEASE_MS;
    uint64_t conn = member_comes(30, 0);
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_pass(FIX_LEASE_MS);
    fix_close(conn);
    fix_job_is(30, "RUNNING", "waits for the nodes");

    fix_pass(ms - FIX_LEASE_MS - 1);
    fix_job_is(30, "RUNNING", "waits for the nodes");
    fix_pass(1);

    fix_job_is(30, "FAILED", "did not come back");
}
END_TEST

START_TEST(wave_of_nodes_stretches_an_adoption_only_so_far)
{
    running_job();
    char id[16];
    const int64_t most = FIX_LEASE_MS + MS_ADOPT_MAX_MS;

    for (int64_t ms = 1000; ms < most; ms += 1000) {
        fix_pass(1000);
        snprintf(id, sizeof(id), "new%d", (int)(ms / 1000));
        fix_close(fix_register(id, 1));
    }
    fix_job_is(3, "RUNNING", "waits for the nodes of ranks 0 1");
    fix_pass(1000);

    fix_job_is(3, "FAILED", "did not come back within 610000 ms");
}
END_TEST

/* 300 nodes: more than a door holds. The last of them was turned away, and waits for its next try
 * as long as any does: its job goes on, and the one whose node never comes ends by name. */
START_TEST(last_node_of_a_crowd_is_waited_for_between_two_of_its_tries)
{
    static uint64_t conns[300];
    size_t n = 0;
    jobs_of_a_hundred(3);
    fix_pass(FIX_LEASE_MS);
    for (uint64_t job = 1; job <= 3; job++) {
        for (uint32_t rank = 0; rank < 100; rank++) {
            if (!(job == 1 && rank == 7) && !(job == 2 && rank == 9)) {
                conns[n++] = member_comes(job, rank);
            }
        }
    }
    const int64_t pause = MS_RECONNECT_MAX_MS + MS_HANDSHAKE_MS;
    beat_for(conns, n, pause - 1);
    fix_job_is(1, "RUNNING", "waits for the nodes of rank 7 to come back");
    fix_job_is(2, "RUNNING", "waits for the nodes of rank 9 to come back");
    ck_assert_str_eq(waits_for(), "2 nodes of 2 jobs to come back: w107 w209");
    conns[n++] = member_comes(1, 7);
    fix_job_is(1, "RUNNING", "");

    beat_for(conns, n, pause - 1);
    fix_job_is(2, "RUNNING", "waits for the nodes of rank 9 to come back");
    ck_assert_str_eq(waits_for(), "1 node of 1 job to come back: w209");
    fix_pass(1);
    fix_job_is(2, "FAILED", "rank 9 (node w209 on host h) did not come back within 79999 ms");
    ck_assert_str_eq(waits_for(), "");
}
END_TEST

/* Two nodes were turned away at a door full of strangers, and their job failed. */
START_TEST(adoption_goes_on_while_nodes_cannot_get_in)
{
    running_job();
    fix_pass(FIX_LEASE_MS / 2);
    fix_crowd();
    fix_pass(MS_RECONNECT_MAX_MS + MS_HANDSHAKE_MS - 1);
    ck_assert(fix_logged("job.waits_for_nodes job=3 missing=2"));
    fix_job_is(3, "RUNNING", "waits for the nodes of ranks 0 1");
    come_back(0, 100, 3, 13, 1);
    come_back(1, 101, 3, 13, 1);

    fix_job_is(3, "RUNNING", "");
}
END_TEST

/* Who was turned away then has come since, or never will. */
START_TEST(crowd_of_an_hour_ago_stretches_no_adoption)
{
    running_job();
    fix_crowd();
    uint64_t conn = come_back(0, 100, 3, 13, 1);
    uint64_t gone = come_back(1, 101, 3, 13, 1);
    for (int64_t ms = 0; ms < 3600000; ms += 1000) {
        fix_pass(1000);
        fix_beat(conn);
        fix_beat(gone);
    }
    sched_stood_still(fix.s, 5000);
    fix_pass(5000);
    fix_close(gone);
    fix_close(conn);
    fix_pass(FIX_LEASE_MS / 2);
    conn = come_back(0, 100, 3, 13, 1);
    fix_pass(FIX_LEASE_MS / 2 - 1);
    fix_beat(conn);
    fix_job_is(3, "RUNNING", "waits for the nodes of rank 1");
    fix_pass(1);

    fix_job_is(3, "FAILED", "rank 1 (node w1 on host h) did not come back within 10000 ms");
}
END_TEST

START_TEST(crowd_stretches_an_adoption_only_so_far)
{
    running_job();
    const int64_t most = FIX_LEASE_MS + MS_ADOPT_MAX_MS;
    for (int64_t ms = 1000; ms < most; ms += 1000) {
        fix_pass(1000);
        fix_crowd();
    }
    fix_job_is(3, "RUNNING", "waits for the nodes of ranks 0 1");
    fix_pass(1000);

    fix_job_is(3, "FAILED", "did not come back within 610000 ms");
}
END_TEST

START_TEST(standstill_is_no_pause_of_a_crowd)
{
    running_job();
    fix_pass(FIX_LEASE_MS);
    fix_crowd();
    sched_stood_still(fix.s, 5000);
    fix_pass(5000 + MS_RECONNECT_MAX_MS + MS_HANDSHAKE_MS - 1);
    fix_job_is(3, "RUNNING", "waits for the nodes of ranks 0 1");
    fix_pass(1);
    fix_job_is(3, "FAILED", "did not come back");
}
END_TEST

START_TEST(small_job_waits_no_longer_than_it_had_to)
{
    running_job();
    fix_pass(FIX_LEASE_MS / 2);
    uint64_t conn = come_back(0, 100, 3, 13, 1);
    fix_pass(FIX_LEASE_MS / 2);
    fix_beat(conn);
    fix_pass(2 * MS_ADOPT_NODE_MS);

    fix_job_is(3, "FAILED", "rank 1 (node w1 on host h) did not come back within 10020 ms");
}
END_TEST

/* A standstill of ours is no pause of theirs. */
START_TEST(pause_of_a_crowd_leaves_out_that_the_scheduler_stood_still)
{
    running_job();
    fix_pass(FIX_LEASE_MS);
    uint64_t conn = come_back(0, 100, 3, 13, 1);
    sched_stood_still(fix.s, 4000);
    fix_pass(4000);
    fix_beat(conn);
    fix_pass(FIX_LEASE_MS / MS_HEARTBEATS_PER_LEASE - 1);
    fix_job_is(3, "RUNNING", "waits for the nodes of rank 1");
    fix_pass(1);

    fix_job_is(3, "FAILED", "rank 1 (node w1 on host h) did not come back");
}
END_TEST

/* They may beat by the longer one until they hear of it. */
START_TEST(arrival_after_a_shorter_lease_takes_no_pause_away)
{
    enum { LESS = 4000, PAUSE = (FIX_LEASE_MS - LESS) / MS_HEARTBEATS_PER_LEASE };
    running_job();
    fix_pass(FIX_LEASE_MS);
    uint64_t conn = come_back(0, 100, 3, 13, 1);
    sched_set_lease(fix.s, FIX_LEASE_MS - LESS);
    fix_register("spare", 1);
    fix_pass(LESS);
    fix_beat(conn);
    fix_pass(PAUSE - 1);
    fix_job_is(3, "RUNNING", "waits for the nodes of rank 1");
    fix_pass(1);

    fix_job_is(3, "FAILED", "rank 1 (node w1 on host h) did not come back");
}
END_TEST

START_TEST(node_that_comes_and_goes_does_not_stretch_an_adoption)
{
    running_job();
    for (int i = 0; i < 13; i++) {
        fix_pass(1000);
        fix_close(fix_register("flapping", (uint64_t)i + 1));
    }

    fix_job_is(3, "FAILED", "did not come back");
}
END_TEST

/* ---- refusals -----------------------------------------------------------------------------------
 */

/* An upgrade from a release that took any node id: the node is there, and may not. */
START_TEST(a_job_whose_node_was_refused_says_so_and_names_the_way_back)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.certificate_ids = true;
    fix_create(&cfg);
    load_job(3, JOB_RUNNING);
    load_members(3);
    loaded();
    come_back(0, 7777, 3, 13, 1); /* another process says nothing about that one */
    uint64_t conn = come_back(1, 101, 3, 13, 1);
    const Ms__Error *error = fix_heard(conn, MS_MSG_ERROR);
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_nonnull(strstr(error->text, "(node_ids = free in msschedd.conf)"));
    conn = come_back(0, 100, 3, 13, 1);

    fix_pass(FIX_LEASE_MS + 2 * MS_ADOPT_NODE_MS);

    fix_job_is(3, "FAILED",
               "the scheduler refused rank 0 (node w0 on host h) after the "
               "scheduler's restart: node id w0 is for the certificate w0, and this "
               "one is host-certificate");
    fix_job_is(3, "FAILED", "(node_ids = free in msschedd.conf)");
}
END_TEST

START_TEST(a_stranger_who_claims_a_node_is_not_why_its_rank_is_missing)
{
    begin();
    load_job(3, JOB_RUNNING);
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct sched_member_row row = member_row(3, rank);
        snprintf(row.principal, sizeof(row.principal), "worker:host-certificate");
        ck_ms_ok(sched_load_member(fix.s, &row, err));
    }
    loaded();
    uint64_t conn = fix_open(MS_ROLE_WORKER, "stranger");
    Ms__Register msg = fix_node("w0", 100);
    msg.job = 3;
    msg.generation = 13;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_ERROR));

    fix_pass(FIX_LEASE_MS + 2 * MS_ADOPT_NODE_MS);

    fix_job_is(3, "FAILED", "did not come back");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_adopt");
    TCase *tc = tcase_create("adoption");
    tcase_add_checked_fixture(tc, NULL, fix_end);
    tcase_add_test(tc, running_job_waits_for_its_nodes);
    tcase_add_test(tc, running_job_is_adopted_when_all_are_back);
    tcase_add_test(tc, rank_that_missed_start_gets_it_from_the_new_scheduler);
    tcase_add_test(tc, nodes_that_do_not_come_back_fail_the_job_by_name);
    tcase_add_test(tc, node_that_comes_back_as_another_process_fails_the_job);
    tcase_add_loop_test(tc, claim_of_another_process_generation_or_rank_is_not_adopted, 0, 3);
    tcase_add_test(tc, node_that_comes_back_without_its_rank_fails_the_job);
    tcase_add_test(tc, adoption_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(tc, who_is_on_his_way_back_has_a_whole_lease_after_a_standstill);
    tcase_add_test(tc, adoption_waits_longer_for_many_nodes);
    tcase_add_test(tc, adoption_goes_on_while_a_wave_of_nodes_comes_back);
    tcase_add_test(tc, standstill_amid_an_adoption_shortens_it_for_nobody);
    tcase_add_test(tc, wave_of_nodes_stretches_an_adoption_only_so_far);
    tcase_add_test(tc, last_node_of_a_crowd_is_waited_for_between_two_of_its_tries);
    tcase_add_test(tc, adoption_goes_on_while_nodes_cannot_get_in);
    tcase_add_test(tc, crowd_of_an_hour_ago_stretches_no_adoption);
    tcase_add_test(tc, crowd_stretches_an_adoption_only_so_far);
    tcase_add_test(tc, standstill_is_no_pause_of_a_crowd);
    tcase_add_test(tc, small_job_waits_no_longer_than_it_had_to);
    tcase_add_test(tc, pause_of_a_crowd_leaves_out_that_the_scheduler_stood_still);
    tcase_add_test(tc, arrival_after_a_shorter_lease_takes_no_pause_away);
    tcase_add_test(tc, node_that_comes_and_goes_does_not_stretch_an_adoption);
    tcase_add_test(tc, a_job_whose_node_was_refused_says_so_and_names_the_way_back);
    tcase_add_test(tc, a_stranger_who_claims_a_node_is_not_why_its_rank_is_missing);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
