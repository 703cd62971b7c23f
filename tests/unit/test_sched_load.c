/* test_sched_load.c - a restarted scheduler: what it takes up, adopts, requeues and refuses */
#include "tests/unit/sched_fixture.h"

#include <time.h>

static struct sched_job_row job_row(uint64_t id, enum sched_job_state state)
{
    struct sched_job_row row;
    memset(&row, 0, sizeof(row));
    row.id = id;
    row.state = state;
    snprintf(row.name, sizeof(row.name), "%s", "mnist");
    snprintf(row.owner, sizeof(row.owner), "%s", "user:alice");
    row.workers = 2;
    row.spec = (const uint8_t *)"{}";
    row.spec_bytes = 2;
    if (state != JOB_QUEUED) {
        row.generation = id + 10;
        snprintf(row.reason, sizeof(row.reason), "%s", state > JOB_RECOVERING ? "stored" : "");
    }
    if (state > JOB_RECOVERING) {
        row.ended_ms = (int64_t)(1000 - id);
        row.code = state == JOB_FAILED ? MS_E_FAILED : 0;
    }
    return row;
}

static struct sched_member_row member_row(uint64_t job, uint32_t rank)
{
    struct sched_member_row row;
    memset(&row, 0, sizeof(row));
    row.job = job;
    row.rank = rank;
    row.incarnation = 100 + rank;
    snprintf(row.node_id, sizeof(row.node_id), "w%u", rank);
    snprintf(row.host_name, sizeof(row.host_name), "%s", "h");
    snprintf(row.log_path, sizeof(row.log_path), "/run/worker_%u.log", rank);
    return row;
}

static void begin(void)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    fix_create(&cfg);
}

static void load_job(uint64_t id, enum sched_job_state state)
{
    struct sched_job_row row = job_row(id, state);
    ck_ms_ok(sched_load_job(fix.s, &row, err));
}

static void load_members(uint64_t job)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct sched_member_row row = member_row(job, rank);
        ck_ms_ok(sched_load_member(fix.s, &row, err));
    }
}

static void loaded(void)
{
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    ck_ms_ok(sched_check(fix.s, err));
}

static uint64_t come_back(uint32_t rank, uint64_t incarnation, uint64_t job, uint64_t generation,
                          int running)
{
    char id[8];
    snprintf(id, sizeof(id), "w%u", rank);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, incarnation);
    msg.job = job;
    msg.generation = generation;
    msg.rank = rank;
    msg.running = running;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

/* ---- adoption -----------------------------------------------------------------------------------
 */

static void running_job(void)
{
    begin();
    load_job(3, JOB_RUNNING);
    load_members(3);
    loaded();
}

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
    sched_stood_still(fix.s, 5000);
    fix_pass(5000);
    fix_beat(conn);
    fix_pass(FIX_LEASE_MS / MS_HEARTBEATS_PER_LEASE - 1);
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
    const Ms__Stop *stop = fix_heard(first, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->at_step, 1);
    uint64_t second = come_back(1, 101, 3, 13, 1);

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
    const int64_t until = FIX_LEASE_MS + 2 * MS_ADOPT_NODE_MS + MS_CANCEL_GRACE_MS;
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
    ck_ms_fails(sched_load_job(fix.s, &row, err), MS_E_CONFIG, "job 3 of the database is in state");
    row.state = (enum sched_job_state)99;
    ck_ms_fails(sched_load_job(fix.s, &row, err), MS_E_CONFIG, "state 99");
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

static TCase *adopt_cases(void)
{
    TCase *t = tcase_create("adoption");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, running_job_waits_for_its_nodes);
    tcase_add_test(t, running_job_is_adopted_when_all_are_back);
    tcase_add_test(t, rank_that_missed_start_gets_it_from_the_new_scheduler);
    tcase_add_test(t, nodes_that_do_not_come_back_fail_the_job_by_name);
    tcase_add_test(t, node_that_comes_back_as_another_process_fails_the_job);
    tcase_add_loop_test(t, claim_of_another_process_generation_or_rank_is_not_adopted, 0, 3);
    tcase_add_test(t, node_that_comes_back_without_its_rank_fails_the_job);
    tcase_add_test(t, adoption_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(t, adoption_waits_longer_for_many_nodes);
    tcase_add_test(t, adoption_goes_on_while_a_wave_of_nodes_comes_back);
    tcase_add_test(t, standstill_amid_an_adoption_shortens_it_for_nobody);
    tcase_add_test(t, wave_of_nodes_stretches_an_adoption_only_so_far);
    tcase_add_test(t, last_node_of_a_crowd_is_waited_for_between_two_of_its_tries);
    tcase_add_test(t, adoption_goes_on_while_nodes_cannot_get_in);
    tcase_add_test(t, crowd_of_an_hour_ago_stretches_no_adoption);
    tcase_add_test(t, crowd_stretches_an_adoption_only_so_far);
    tcase_add_test(t, standstill_is_no_pause_of_a_crowd);
    tcase_add_test(t, small_job_waits_no_longer_than_it_had_to);
    tcase_add_test(t, pause_of_a_crowd_leaves_out_that_the_scheduler_stood_still);
    tcase_add_test(t, node_that_comes_and_goes_does_not_stretch_an_adoption);
    tcase_add_test(t, a_job_whose_node_was_refused_says_so_and_names_the_way_back);
    tcase_add_test(t, a_stranger_who_claims_a_node_is_not_why_its_rank_is_missing);
    tcase_add_test(t, how_often_a_job_was_placed_in_vain_survives_a_restart);
    tcase_add_test(t, a_placing_that_a_restart_cut_off_is_not_the_jobs);
    tcase_add_test(t, cancel_at_step_goes_on_after_a_restart);
    tcase_add_test(t, cancelled_job_whose_node_is_not_back_is_cancelled);
    tcase_add_test(t, cancel_at_step_becomes_hard_after_a_restart_too);
    tcase_add_test(t, dynamic_cluster_adopts_its_job);
    return t;
}

static TCase *queue_cases(void)
{
    TCase *t = tcase_create("queue and history");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, placing_job_goes_back_into_the_queue);
    tcase_add_test(t, queue_keeps_its_order_over_a_restart);
    tcase_add_test(t, ids_and_generations_go_on_above_what_is_stored);
    tcase_add_test(t, rows_alone_raise_ids_and_generations);
    tcase_add_test(t, idempotence_keys_survive);
    tcase_add_test(t, rank_of_an_ended_job_hears_its_stored_result);
    tcase_add_test(t, rows_may_come_in_any_order);
    tcase_add_test(t, hundred_thousand_queued_jobs_load_fast);
    return t;
}

static TCase *damage_cases(void)
{
    TCase *t = tcase_create("damage");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, running_job_without_a_member_is_refused);
    tcase_add_test(t, node_with_two_ranks_is_refused);
    tcase_add_test(t, member_of_no_job_is_refused);
    tcase_add_test(t, member_beyond_the_workers_is_refused);
    tcase_add_test(t, job_twice_is_refused);
    tcase_add_test(t, states_of_another_release_are_refused);
    tcase_add_test(t, numbers_at_their_limit_are_refused);
    tcase_add_test(t, copy_near_a_limit_is_refused_and_nothing_wraps);
    tcase_add_test(t, last_job_id_is_given_and_the_next_submit_refused_in_words);
    tcase_add_test(t, node_cannot_claim_a_job_beyond_the_last_id);
    tcase_add_test(t, dynamic_cluster_without_numbers_is_refused_at_the_start);
    tcase_add_test(t, dynamic_cluster_refuses_another_worker_num_than_its_job_has);
    return t;
}

int main(void)
{
    Suite *s = suite_create("sched_load");
    suite_add_tcase(s, adopt_cases());
    suite_add_tcase(s, queue_cases());
    suite_add_tcase(s, damage_cases());
    return test_run(s);
}
