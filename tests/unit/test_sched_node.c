/* test_sched_node.c - registration, leases, losses, two processes with one id */
#include "tests/unit/sched_fixture.h"

START_TEST(register_is_answered_with_lease_and_heartbeat)
{
    fix_standing();

    uint64_t conn = fix_register("w0", 1);

    const Ms__Registered *answer = fix_heard(conn, MS_MSG_REGISTERED);
    ck_assert_ptr_nonnull(answer);
    ck_assert_str_eq(answer->node_id, "w0");
    ck_assert_uint_eq(answer->lease_ms, FIX_LEASE_MS);
    ck_assert_uint_eq(answer->heartbeat_ms, FIX_LEASE_MS / 5);
    ck_assert_uint_eq(fix_find(conn, MS_MSG_REGISTERED)->id, fix.frame);
}
END_TEST

START_TEST(register_without_a_node_id_is_refused)
{
    fix_standing();

    uint64_t conn = fix_register("", 1);

    fix_refused(conn, MS_E_INVALID, "set MS_NODE_ID");
}
END_TEST

START_TEST(register_without_an_incarnation_is_refused)
{
    fix_standing();

    uint64_t conn = fix_register("w0", 0);

    fix_refused(conn, MS_E_INVALID, "incarnation");
}
END_TEST

START_TEST(absurd_generation_is_refused)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_WORKER, "c");
    Ms__Register msg = fix_node("w0", 1);
    msg.generation = UINT64_MAX;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    fix_refused(conn, MS_E_INVALID, "it is of another cluster, or lies");
}
END_TEST

START_TEST(generation_above_ours_raises_ours_durably)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_WORKER, "c");
    Ms__Register msg = fix_node("w0", 1);
    msg.job = 5;
    msg.generation = 41;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    const struct sched_effect *meta = fix_effect(SCHED_DO_PUT_META);
    ck_assert_ptr_nonnull(meta);
    ck_assert_str_eq(meta->meta_key, "generation");
    ck_assert_uint_eq(meta->meta_value, 41);
    fix_register("w1", 2);
    fix_submit(1, 0);
    const struct sched_effect *placed = fix_effect(SCHED_DO_PUT_JOB);
    ck_assert_uint_eq(placed->job->generation, 42);
}
END_TEST

START_TEST(one_connection_registers_one_node)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);
    Ms__Register msg = fix_node("w1", 2);

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    fix_refused(conn, MS_E_INVALID, "belongs to node w0 already");
}
END_TEST

START_TEST(heartbeat_before_register_is_refused)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_WORKER, "c");

    fix_beat(conn);

    fix_refused(conn, MS_E_NOT_FOUND, "send Register first");
}
END_TEST

START_TEST(heartbeat_is_answered_and_never_stored)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);

    fix_beat(conn);

    const Ms__HeartbeatAck *ack = fix_heard(conn, MS_MSG_HEARTBEAT_ACK);
    ck_assert_ptr_nonnull(ack);
    ck_assert_uint_eq(ack->lease_ms, FIX_LEASE_MS);
    ck_assert_uint_eq(ack->heartbeat_ms, FIX_LEASE_MS / 5);
    size_t n = 0;
    sched_effects(fix.s, &n);
    ck_assert_uint_eq(n, 1);
}
END_TEST

START_TEST(silent_node_is_lost_when_its_lease_is_over)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);

    ck_assert_int_eq(sched_deadline(fix.s), fix.now.mono_ms + FIX_LEASE_MS);
    fix_pass(FIX_LEASE_MS - 1);
    ck_assert_str_eq(fix_show_node("w0")->state, "REGISTERED");
    fix_pass(1);

    ck_assert_int_eq(fix_closed(conn), 1);
    ck_assert_int_eq(fix_logged("node.lost node=\"w0\""), 1);
    const Ms__NodeInfo *info = fix_show_node("w0");
    ck_assert_str_eq(info->state, "LOST");
    ck_assert_ptr_nonnull(strstr(info->reason, "silent for 10000 ms"));
}
END_TEST

/* ... and a job that lost its rank with the first ones is not placed on those that are next. */
START_TEST(leases_of_a_whole_network_are_judged_in_bounded_ticks)
{
    enum { NODES = 2000 };
    size_t most = 0;
    fix_standing();
    for (int i = 0; i < NODES; i++) {
        char id[16];
        snprintf(id, sizeof(id), "w%d", i);
        fix_register(id, (uint64_t)i + 1);
    }
    fix_submit(1, 0);
    struct sched_event time = {.kind = SCHED_EV_TIME};
    fix.now.mono_ms += 2 * FIX_LEASE_MS;
    int ticks = 0;
    for (; sched_deadline(fix.s) <= fix.now.mono_ms; ticks++) {
        size_t n = 0;
        sched_begin_tick(fix.s);
        sched_apply(fix.s, &time, fix.now);
        sched_effects(fix.s, &n);
        most = n > most ? n : most;
        ck_ms_ok(sched_check(fix.s, err));
    }

    struct sched_counts counts;
    sched_count(fix.s, &counts);
    ck_assert_uint_eq(counts.nodes_registered, 0);
    ck_assert_int_gt(ticks, 2);
    ck_assert_uint_lt(most, 2 * MS_TURN_LOSSES);
    fix_job_is(1, "QUEUED", "it was placed 1 time before");
}
END_TEST

START_TEST(heartbeat_renews_the_lease)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);
    fix_pass(FIX_LEASE_MS - 1);

    fix_beat(conn);
    fix_pass(FIX_LEASE_MS - 1);

    ck_assert_str_eq(fix_show_node("w0")->state, "REGISTERED");
}
END_TEST

START_TEST(standing_still_stretches_leases)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);

    sched_stood_still(fix.s, 5000);
    fix_pass(FIX_LEASE_MS + 4999);
    ck_assert_int_eq(fix_closed(conn), 0);
    fix_pass(1);

    ck_assert_int_eq(fix_closed(conn), 1);
}
END_TEST

START_TEST(a_shorter_lease_judges_nobody_before_the_old_one)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);

    sched_set_lease(fix.s, FIX_LEASE_MS / 2);
    fix_pass(FIX_LEASE_MS - 1);
    ck_assert_int_eq(fix_closed(conn), 0);

    Ms__Heartbeat beat = MS__HEARTBEAT__INIT;
    fix_say(conn, MS_MSG_HEARTBEAT, &beat.base);
    const Ms__HeartbeatAck *ack = fix_heard(conn, MS_MSG_HEARTBEAT_ACK);
    ck_assert_ptr_nonnull(ack);
    ck_assert_uint_eq(ack->lease_ms, FIX_LEASE_MS / 2);
    fix_pass(FIX_LEASE_MS / 2 - 1);
    ck_assert_int_eq(fix_closed(conn), 0);
    fix_pass(1);
    ck_assert_int_eq(fix_closed(conn), 1);
}
END_TEST

/* Until its next heartbeat is answered a node knows the old lease, whatever else it says meanwhile.
 */
START_TEST(what_a_node_says_after_a_shorter_lease_does_not_shorten_its_own)
{
    Ms__Progress progress = MS__PROGRESS__INIT;
    fix_standing();
    uint64_t conn = fix_register("w0", 1);

    sched_set_lease(fix.s, FIX_LEASE_MS / 4);
    fix_pass(10);
    fix_say(conn, MS_MSG_PROGRESS, &progress.base);
    fix_pass(FIX_LEASE_MS / 2); /* it beats three times in the old lease, but one may be lost */

    ck_assert_int_eq(fix_closed(conn), 0);
}
END_TEST

START_TEST(a_longer_lease_holds_at_once)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);

    sched_set_lease(fix.s, FIX_LEASE_MS * 2);
    fix_pass(FIX_LEASE_MS * 2 - 1);
    ck_assert_int_eq(fix_closed(conn), 0);
    fix_pass(1);

    ck_assert_int_eq(fix_closed(conn), 1);
}
END_TEST

START_TEST(disabled_heartbeat_judges_nobody)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.disable_heartbeat = 1;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    fix_register("w0", 1);

    ck_assert_int_eq(sched_deadline(fix.s), INT64_MAX);
    fix_pass(100 * FIX_LEASE_MS);

    ck_assert_str_eq(fix_show_node("w0")->state, "REGISTERED");
}
END_TEST

START_TEST(closed_connection_loses_an_idle_node_at_once)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);

    fix_close(conn);

    const Ms__NodeInfo *info = fix_show_node("w0");
    ck_assert_str_eq(info->state, "LOST");
    ck_assert_str_eq(info->reason, "connection closed by peer");
}
END_TEST

START_TEST(leave_says_why)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);
    Ms__Leave msg = MS__LEAVE__INIT;
    msg.reason = (char *)"SIGTERM";

    fix_say(conn, MS_MSG_LEAVE, &msg.base);

    const Ms__NodeInfo *info = fix_show_node("w0");
    ck_assert_str_eq(info->state, "LEFT");
    ck_assert_str_eq(info->reason, "it left: SIGTERM");
}
END_TEST

START_TEST(lost_nodes_are_forgotten_after_an_hour)
{
    fix_standing();
    fix_close(fix_register("w0", 1));

    fix_pass(MS_LOST_KEEP_MS - 1);
    ck_assert_ptr_nonnull(fix_show_node("w0"));
    fix_pass(1);

    ck_assert_ptr_null(fix_show_node("w0"));
}
END_TEST

START_TEST(lost_nodes_are_bounded)
{
    fix_standing();

    for (int i = 0; i <= MS_LOST_NODES_MAX; i++) {
        char id[16];
        snprintf(id, sizeof(id), "w%d", i);
        fix_close(fix_register(id, 1));
    }

    ck_assert_ptr_null(fix_show_node("w0"));
    ck_assert_ptr_nonnull(fix_show_node("w1"));
}
END_TEST

START_TEST(who_has_most_lost_nodes_loses_his_oldest)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.lost_nodes_max = 3;
    fix_create(&cfg);
    static const struct {
        const char *certificate, *node;
    } rows[] = {{"good", "good-0"}, {"bad", "bad-0"}, {"bad", "bad-1"}, {"bad", "bad-2"}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        uint64_t conn = fix_open(MS_ROLE_WORKER, rows[i].certificate);
        Ms__Register msg = fix_node(rows[i].node, i + 1);
        fix_say(conn, MS_MSG_REGISTER, &msg.base);
        ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
        fix_close(conn);
    }

    ck_assert_ptr_null(fix_show_node("bad-0")); /* and not the oldest of all */
    ck_assert_ptr_nonnull(fix_show_node("good-0"));

    uint64_t conn = fix_open(MS_ROLE_WORKER, "good"); /* who comes back makes room */
    Ms__Register msg = fix_node("good-0", 9);
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    uint64_t other = fix_open(MS_ROLE_WORKER, "bad");
    Ms__Register again = fix_node("bad-3", 10);
    fix_say(other, MS_MSG_REGISTER, &again.base);
    fix_close(other);
    ck_assert_ptr_nonnull(fix_show_node("bad-1"));
    fix_close(conn);
    ck_assert_ptr_null(fix_show_node("bad-1"));
}
END_TEST

/* Its end loses the nodes that had not come back yet, in the middle of the loss of the first. */
START_TEST(a_job_may_lose_more_nodes_than_are_remembered)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.lost_nodes_max = 2;
    fix_create(&cfg);
    struct sched_job_row row = {.id = 1, .state = JOB_RUNNING, .workers = 4, .generation = 3};
    snprintf(row.name, sizeof(row.name), "mnist");
    snprintf(row.owner, sizeof(row.owner), "user:alice");
    row.spec = (const uint8_t *)"{}";
    row.spec_bytes = 2;
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    for (uint32_t rank = 0; rank < row.workers; rank++) {
        struct sched_member_row member = {
            .job = 1, .rank = rank, .incarnation = rank + 1, .generation = 3};
        snprintf(member.node_id, sizeof(member.node_id), "w%u", rank);
        snprintf(member.host_name, sizeof(member.host_name), "h");
        snprintf(member.principal, sizeof(member.principal), "worker:host-certificate");
        ck_ms_ok(sched_load_member(fix.s, &member, err));
    }
    ck_ms_ok(sched_load_meta(fix.s, "generation", 3, err));
    ck_ms_ok(sched_load_meta(fix.s, "next_job", 2, err));
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w0", 1);
    msg.job = 1;
    msg.generation = 3;
    msg.running = 1;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));

    fix_close(conn);

    fix_job_is(1, "FAILED", "rank 0 (node w0 on host h) was lost");
    ck_assert_str_eq(fix_show_node("w0")->state, "LOST");
    ck_assert_str_eq(fix_show_node("w3")->state, "LOST");
    ck_assert_ptr_null(fix_show_node("w1"));
    ck_assert_ptr_null(fix_show_node("w2"));
}
END_TEST

START_TEST(lost_node_may_register_again)
{
    fix_standing();
    fix_close(fix_register("w0", 1));

    uint64_t conn = fix_register("w0", 2);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
    ck_assert_str_eq(fix_show_node("w0")->activity, "idle");
}
END_TEST

/* ---- one id, two processes ----------------------------------------------------------------------
 */

START_TEST(same_process_on_a_new_connection_replaces_the_old_one)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);

    uint64_t conn = fix_register("w0", 1);

    ck_assert_int_eq(fix_closed(old), 1);
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
}
END_TEST

START_TEST(duplicate_is_refused_when_the_old_process_answers)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);

    uint64_t conn = fix_register("w0", 2);
    uint32_t frame = fix.frame;
    ck_assert_ptr_nonnull(fix_heard(old, MS_MSG_HEARTBEAT_ACK));
    ck_assert_ptr_nonnull(fix_heard(old, MS_MSG_LOG_READ));
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_REGISTERED));
    fix_beat(old);

    const Ms__Error *refusal = fix_heard(conn, MS_MSG_ERROR);
    ck_assert_ptr_nonnull(refusal);
    ck_assert_int_eq(refusal->code, MS_E_EXISTS);
    ck_assert_uint_eq(fix_find(conn, MS_MSG_ERROR)->id, frame);
    ck_assert_ptr_nonnull(strstr(refusal->text, "node w0"));
    ck_assert_ptr_nonnull(strstr(refusal->text, "pid 1001"));
    ck_assert_ptr_nonnull(strstr(refusal->text, "pid 1002"));
    ck_assert_ptr_nonnull(strstr(refusal->text, "another MS_NODE_ID"));
}
END_TEST

START_TEST(answer_to_the_ping_counts_as_life)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    uint64_t conn = fix_register("w0", 2);
    const Ms__LogRead *ping = fix_heard(old, MS_MSG_LOG_READ);
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    chunk.route = ping->route;
    chunk.code = MS_E_NOT_FOUND;

    fix_say(old, MS_MSG_LOG_CHUNK, &chunk.base);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_ERROR));
}
END_TEST

START_TEST(duplicate_takes_over_when_the_old_process_is_silent)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    uint64_t conn = fix_register("w0", 2);

    fix_pass(MS_PROBE_MS - 1);
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_REGISTERED));
    fix_pass(1);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
    ck_assert_int_eq(fix_closed(old), 1);
}
END_TEST

START_TEST(duplicate_takes_over_when_the_old_connection_closes)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    uint64_t conn = fix_register("w0", 2);

    fix_close(old);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
}
END_TEST

START_TEST(newcomer_with_a_rank_is_told_to_let_go_of_it)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w0", 2);
    msg.job = 8;
    msg.generation = 3;
    msg.rank = 5;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    fix_close(old);

    const Ms__Stop *stop = fix_heard(conn, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_uint_eq(stop->job, 8);
    ck_assert_uint_eq(stop->generation, 3);
}
END_TEST

START_TEST(third_process_with_the_id_is_refused_at_once)
{
    fix_standing();
    fix_register("w0", 1);
    fix_register("w0", 2);

    uint64_t conn = fix_register("w0", 3);

    fix_refused(conn, MS_E_EXISTS, "two more processes want this id");
}
END_TEST

START_TEST(newcomer_that_hangs_up_ends_the_probe)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    uint64_t conn = fix_register("w0", 2);

    fix_close(conn);
    fix_pass(MS_PROBE_MS);

    ck_assert_int_eq(fix_closed(old), 0);
    ck_assert_str_eq(fix_show_node("w0")->state, "REGISTERED");
}
END_TEST

START_TEST(another_certificate_cannot_take_a_node_id)
{
    fix_standing();
    fix_register("w0", 1);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "another-certificate");
    Ms__Register msg = fix_node("w0", 1);

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    fix_refused(conn, MS_E_EXISTS, "registered already by worker:host-certificate");
}
END_TEST

START_TEST(takeover_of_a_node_with_a_rank_fails_its_job)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_register("w1", 9);

    fix_pass(MS_PROBE_MS);

    fix_job_is(1, "FAILED", "rank 1 (node w1 on host h) was lost: pid 1002 did not answer");
}
END_TEST

START_TEST(process_that_reconnects_with_its_rank_keeps_it)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w1", 2);
    msg.job = 1;
    msg.generation = 1;
    msg.rank = 1;
    msg.running = 1;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    ck_assert_int_eq(fix_closed(conns[1]), 1);
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_STOP));
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_START));
    fix_job_is(1, "RUNNING", "");
}
END_TEST

START_TEST(process_that_missed_start_gets_it_again)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w1", 2);
    msg.job = 1;
    msg.generation = 1;
    msg.rank = 1;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_START));
}
END_TEST

START_TEST(process_that_reconnects_without_its_rank_fails_the_job)
{
    uint64_t conns[2];
    fix_running(conns);

    uint64_t conn = fix_register("w1", 2);

    ck_assert_ptr_null(fix_heard(conn, MS_MSG_STOP));
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_STOP));
    fix_job_is(1, "FAILED", "its process reconnected without the rank");
    ck_assert_str_eq(fix_show_node("w1")->activity, "idle");
}
END_TEST

START_TEST(rank_of_an_unknown_job_is_stopped)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_WORKER, "c");
    Ms__Register msg = fix_node("w0", 1);
    msg.job = 77;
    msg.generation = 3;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    const Ms__Stop *stop = fix_heard(conn, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_uint_eq(stop->job, 77);
    ck_assert_int_eq(stop->code, MS_E_ABORTED);
    ck_assert_ptr_nonnull(strstr(stop->text,
                                 "job 77 is not known to this scheduler, which was started "
                                 "anew and keeps no jobs across that"));
    ck_assert_str_eq(fix_show_node("w0")->activity, "stopping job 77 rank 0 since 0 s");
}
END_TEST

START_TEST(node_that_was_stopped_is_busy_until_it_answers)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_close(conns[0]);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));

    uint64_t next = fix_submit(1, 0);
    fix_job_is(next, "QUEUED", "waits for 1 idle node: 1 registered, 0 idle");
    fix_done(conns[1], 1, 1, 1, MS_E_ABORTED, "stopped");

    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
}
END_TEST

START_TEST(node_that_does_not_answer_stop_is_named_and_gets_no_work)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_close(conns[0]);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));

    for (int i = 0; i < 8; i++) {
        fix_pass(5000);
        fix_beat(conns[1]);
    }
    const Ms__NodeInfo *info = fix_show_node("w1");
    ck_assert_str_eq(info->activity, "stopping job 1 rank 1 since 40 s");
    ck_assert_str_eq(info->reason, "");
    for (int i = 0; i < 4; i++) {
        fix_pass(5000);
        fix_beat(conns[1]);
    }
    fix_pass(5000);

    ck_assert_int_eq(fix_logged("node.stuck node=\"w1\""), 1);
    info = fix_show_node("w1");
    ck_assert_ptr_nonnull(strstr(info->reason, "it does not let go of job 1 rank 1"));
    ck_assert_ptr_nonnull(strstr(info->reason, "end process 1002 on host h"));
    fix_job_is(fix_submit(1, 0), "QUEUED", "1 registered, 0 idle");
    fix_done(conns[1], 1, 1, 1, MS_E_ABORTED, "at last");
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
    ck_assert_str_eq(fix_show_node("w1")->reason, "");
}
END_TEST

START_TEST(nobody_waits_behind_a_job_that_needs_a_stuck_node)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_close(conns[0]);
    uint64_t good = fix_register("good", 9);
    uint64_t large = fix_submit(2, 0);
    uint64_t small = fix_submit(1, 0);
    for (int64_t ms = 0; ms < MS_STOP_ANSWER_MS; ms += FIX_LEASE_MS / 2) {
        fix_job_is(small, "QUEUED", "waits behind");
        fix_pass(FIX_LEASE_MS / 2);
        fix_beat(conns[1]);
        fix_beat(good);
    }
    fix_pass(FIX_LEASE_MS / 2);
    fix_beat(conns[1]);
    fix_beat(good);
    fix_pass(FIX_LEASE_MS / 2);

    fix_job_is(small, "PLACING", "waits for rank 0");
    fix_job_is(large, "QUEUED", "needs 2 nodes, the cluster has 1, 1 stuck (msctl nodes): waits");
}
END_TEST

/* ---- a scheduler that stood still ---------------------------------------------------------------
 */

static uint64_t reconnect(const char *node_id, uint64_t incarnation, uint32_t rank)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(node_id, incarnation);
    msg.job = 1;
    msg.generation = 1;
    msg.rank = rank;
    msg.running = 1;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

static void pass_with_beats(int64_t ms, const uint64_t conns[2])
{
    for (; ms > 0; ms -= 1000) {
        fix_pass(ms < 1000 ? ms : 1000);
        fix_beat(conns[0]);
        fix_beat(conns[1]);
    }
}

/* Whoever is waited for may have stood still with us: 3 s more for everybody. */
enum { STILL_MS = 3000 };

START_TEST(probe_waits_longer_when_the_scheduler_stood_still)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    fix_register("w0", 2);

    sched_stood_still(fix.s, STILL_MS);
    fix_pass(MS_PROBE_MS + STILL_MS - 1);
    ck_assert_int_eq(fix_closed(old), 0);
    fix_pass(1);

    ck_assert_int_eq(fix_closed(old), 1);
}
END_TEST

/* Those who come back after it are arrivals too, though they had registered before. */
START_TEST(wave_after_a_standstill_is_waited_for)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_pass(FIX_LEASE_MS);
    fix_close(conns[0]);
    fix_close(conns[1]);
    fix_pass(FIX_LEASE_MS - 1);
    Ms__Register msg = fix_node("w0", 1);
    msg.job = 1;
    msg.generation = 1;
    msg.running = 1;
    fix_say(fix_open(MS_ROLE_WORKER, "host-certificate"), MS_MSG_REGISTER, &msg.base);

    fix_pass(FIX_LEASE_MS / MS_HEARTBEATS_PER_LEASE - 1);
    fix_job_is(1, "RUNNING", "waits for the nodes of rank 1 to come back");
    fix_pass(1);

    fix_job_is(1, "FAILED", "did not come back within 11999 ms after the scheduler stood still");
}
END_TEST

START_TEST(grace_waits_longer_when_the_scheduler_stood_still)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);

    sched_stood_still(fix.s, STILL_MS);
    pass_with_beats(MS_CANCEL_GRACE_MS + STILL_MS - 1, conns);
    fix_job_is(1, "RUNNING", "to finish the step");
    fix_pass(1);

    fix_job_is(1, "CANCELLED", "the step did not end");
}
END_TEST

START_TEST(complaint_waits_longer_when_the_scheduler_stood_still)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_done(conns[0], 1, 1, 0, MS_E_CLOSED, "rank 1 is gone");

    sched_stood_still(fix.s, STILL_MS);
    fix_pass(MS_BLAME_MS + STILL_MS - 1);
    fix_job_is(1, "RUNNING", "for a first-hand report");
    fix_pass(1);

    fix_job_is(1, "FAILED", "rank 1 is gone");
}
END_TEST

START_TEST(doubt_waits_longer_when_the_scheduler_stood_still)
{
    fix_standing();
    uint64_t conns[2] = {fix_register("w0", 1), fix_register("w1", 2)};
    uint64_t large = fix_submit(3, 0);

    sched_stood_still(fix.s, STILL_MS);
    pass_with_beats(FIX_LEASE_MS + STILL_MS - 1, conns);
    fix_job_is(large, "QUEUED", "waits for 3 idle nodes");
    fix_pass(1);

    fix_job_is(large, "QUEUED", "needs 3 nodes, the cluster has 2");
}
END_TEST

START_TEST(stop_waits_longer_when_the_scheduler_stood_still)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 0);

    sched_stood_still(fix.s, STILL_MS);
    pass_with_beats(MS_STOP_ANSWER_MS + STILL_MS - 1, conns);
    ck_assert_str_eq(fix_show_node("w0")->reason, "");
    fix_pass(1);

    ck_assert_ptr_nonnull(strstr(fix_show_node("w0")->reason, "does not let go"));
}
END_TEST

START_TEST(worker_that_gave_its_connection_up_meanwhile_keeps_its_rank)
{
    uint64_t conns[2];
    fix_running(conns);

    sched_stood_still(fix.s, 15000);
    fix.now.mono_ms += 15000;
    fix_close(conns[1]);
    fix_close(conns[0]);
    fix_job_is(1, "RUNNING",
               "waits for the nodes of ranks 0 1 to come back after the scheduler stood still");
    ck_assert_str_eq(fix_show_node("w1")->reason, "not heard of since the scheduler stood still");
    uint64_t again = reconnect("w1", 2, 1);
    ck_assert_ptr_null(fix_heard(again, MS_MSG_STOP));
    reconnect("w0", 1, 0);

    fix_job_is(1, "RUNNING", "");
}
END_TEST

START_TEST(each_worker_has_a_whole_lease_to_come_back)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, 15000);
    fix.now.mono_ms += 15000;
    fix_close(conns[1]);
    fix_beat(conns[0]);
    fix_pass(FIX_LEASE_MS - 1);
    fix_close(conns[0]);

    reconnect("w1", 2, 1);
    fix_pass(FIX_LEASE_MS - 1);

    fix_job_is(1, "RUNNING", "waits for the nodes of rank 0 to come back");
}
END_TEST

START_TEST(worker_that_does_not_come_back_after_a_standstill_fails_the_job)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, 15000);
    fix.now.mono_ms += 15000;
    fix_close(conns[1]);

    fix_pass(FIX_LEASE_MS - 1);
    fix_beat(conns[0]);
    fix_pass(1);

    fix_job_is(1, "FAILED", "did not come back within 10000 ms after the scheduler stood still");
    ck_assert_str_eq(fix_show_node("w1")->state, "LOST");
}
END_TEST

START_TEST(worker_that_does_not_come_back_while_ranks_get_ready_puts_the_job_back)
{
    uint64_t conns[2];
    fix_placed(conns);
    sched_stood_still(fix.s, 15000);
    fix.now.mono_ms += 15000;
    fix_close(conns[1]);

    fix_pass(FIX_LEASE_MS - 1);
    fix_beat(conns[0]);
    fix_pass(1);

    fix_job_is(1, "QUEUED", "did not come back within 10000 ms after the scheduler stood still");
}
END_TEST

/* The bound on getting ready ends while a rank's node is away: it holds again once that is back. */
START_TEST(rank_that_was_away_when_its_time_was_over_does_not_keep_its_job_either)
{
    enum { READY_MS = 20000 };
    uint64_t conns[2];
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.topo_timeout_ms = READY_MS;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    conns[0] = fix_register("w0", 1);
    conns[1] = fix_register("w1", 2);
    fix_submit(2, 0);
    fix_ready(conns[0], 1, 1, 0);
    pass_with_beats(READY_MS - 1000, conns);
    sched_stood_still(fix.s, 9000);
    fix.now.mono_ms += 9000;
    fix_close(conns[1]);
    for (int i = 0; i < 9; i++) { /* the stretched bound ends, and nobody can be blamed */
        fix_pass(1000);
        fix_beat(conns[0]);
    }
    fix_job_is(1, "PLACING", "waits for the nodes of rank 1 to come back");
    Ms__Register msg = fix_node("w1", 2);
    msg.job = 1;
    msg.generation = 1;
    msg.rank = 1;
    conns[1] = fix_open(MS_ROLE_WORKER, "host-certificate");
    fix_say(conns[1], MS_MSG_REGISTER, &msg.base);

    pass_with_beats(4000, conns);

    fix_job_is(1, "QUEUED", "rank 1 (node w1 on host h) did not get ready");
}
END_TEST

START_TEST(another_process_after_a_standstill_fails_the_job)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, 15000);
    fix.now.mono_ms += 15000;
    fix_close(conns[1]);

    fix_register("w1", 9);

    fix_job_is(1, "FAILED", "another one registered in its place after the scheduler stood still");
}
END_TEST

START_TEST(newcomer_takes_over_after_a_standstill_too)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, 15000);
    fix.now.mono_ms += 15000;
    uint64_t newcomer = fix_register("w1", 9);
    ck_assert_ptr_null(fix_heard(newcomer, MS_MSG_REGISTERED));

    fix_close(conns[1]);

    ck_assert_ptr_nonnull(fix_heard(newcomer, MS_MSG_REGISTERED));
    fix_job_is(1, "FAILED", "rank 1 (node w1 on host h) was lost");
}
END_TEST

START_TEST(connection_that_closes_later_is_a_loss_again)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, 15000);
    fix_pass(15000);
    fix_beat(conns[0]);
    fix_beat(conns[1]);
    fix_pass(FIX_LEASE_MS - 1);
    fix_beat(conns[0]);
    fix_beat(conns[1]);
    fix_pass(1);

    fix_close(conns[1]);

    fix_job_is(1, "FAILED", "was lost: connection closed by peer");
}
END_TEST

START_TEST(ranks_that_gave_up_blame_the_scheduler)
{
    uint64_t conns[2];
    fix_running(conns);
    sched_stood_still(fix.s, 45000);
    fix_pass(45000);

    fix_done(conns[1], 1, 1, 1, MS_E_UNREACHABLE, "the scheduler has been gone for 30000 ms");
    fix_pass(MS_BLAME_MS);

    fix_job_is(1, "FAILED", "the scheduler stood still for 45000 ms, and ranks gave up on it: ");
}
END_TEST

START_TEST(rank_of_another_generation_is_stopped)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w7", 7);
    msg.job = 1;
    msg.generation = 0;
    msg.rank = 1;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    const Ms__Stop *stop = fix_heard(conn, MS_MSG_STOP);
    ck_assert_ptr_nonnull(strstr(stop->text, "job 1 runs in generation 1 without this process"));
    ck_assert_ptr_null(fix_heard(conns[1], MS_MSG_STOP));
}
END_TEST

START_TEST(step_of_a_heartbeat_is_shown)
{
    uint64_t conns[2];
    fix_running(conns);
    Ms__Heartbeat msg = MS__HEARTBEAT__INIT;
    msg.job = 1;
    msg.generation = 1;
    msg.step = 17;

    fix_say(conns[1], MS_MSG_HEARTBEAT, &msg.base);

    ck_assert_uint_eq(fix_show(1)->ranks[1]->step, 17);
    ck_assert_uint_eq(fix_show(1)->ranks[0]->step, 0);
}
END_TEST

START_TEST(one_connection_waits_for_one_probe)
{
    fix_standing();
    fix_register("w0", 1);
    fix_register("w1", 2);
    uint64_t conn = fix_register("w0", 3);
    Ms__Register msg = fix_node("w1", 4);

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    fix_refused(conn, MS_E_EXISTS, "has a Register under way already");
}
END_TEST

START_TEST(reconnect_of_the_old_process_refuses_the_newcomer)
{
    fix_standing();
    fix_register("w0", 1);
    uint64_t newcomer = fix_register("w0", 2);

    uint64_t again = fix_register("w0", 1);

    ck_assert_ptr_nonnull(fix_heard(newcomer, MS_MSG_ERROR));
    ck_assert_ptr_nonnull(fix_heard(again, MS_MSG_REGISTERED));
}
END_TEST

START_TEST(words_of_others_cannot_make_a_stop_unsendable)
{
    uint64_t conns[2];
    fix_running(conns);
    struct sched_event event = {
        .kind = SCHED_EV_CLOSED, .conn = conns[0], .reason = "tls: \x01 \x7f \xc3\xa4 \xe2\x82"};

    fix_apply(&event);

    const Ms__Stop *stop = fix_heard(conns[1], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_ptr_nonnull(strstr(stop->text, "tls: ? ? \xc3\xa4 ?? ("));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("sched_node");
    TCase *t = tcase_create("nodes");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, register_is_answered_with_lease_and_heartbeat);
    tcase_add_test(t, register_without_a_node_id_is_refused);
    tcase_add_test(t, register_without_an_incarnation_is_refused);
    tcase_add_test(t, absurd_generation_is_refused);
    tcase_add_test(t, generation_above_ours_raises_ours_durably);
    tcase_add_test(t, one_connection_registers_one_node);
    tcase_add_test(t, heartbeat_before_register_is_refused);
    tcase_add_test(t, heartbeat_is_answered_and_never_stored);
    tcase_add_test(t, silent_node_is_lost_when_its_lease_is_over);
    tcase_add_test(t, leases_of_a_whole_network_are_judged_in_bounded_ticks);
    tcase_add_test(t, heartbeat_renews_the_lease);
    tcase_add_test(t, standing_still_stretches_leases);
    tcase_add_test(t, a_shorter_lease_judges_nobody_before_the_old_one);
    tcase_add_test(t, what_a_node_says_after_a_shorter_lease_does_not_shorten_its_own);
    tcase_add_test(t, a_longer_lease_holds_at_once);
    tcase_add_test(t, disabled_heartbeat_judges_nobody);
    tcase_add_test(t, closed_connection_loses_an_idle_node_at_once);
    tcase_add_test(t, leave_says_why);
    tcase_add_test(t, lost_nodes_are_forgotten_after_an_hour);
    tcase_add_test(t, lost_nodes_are_bounded);
    tcase_add_test(t, who_has_most_lost_nodes_loses_his_oldest);
    tcase_add_test(t, a_job_may_lose_more_nodes_than_are_remembered);
    tcase_add_test(t, lost_node_may_register_again);
    tcase_add_test(t, same_process_on_a_new_connection_replaces_the_old_one);
    tcase_add_test(t, duplicate_is_refused_when_the_old_process_answers);
    tcase_add_test(t, answer_to_the_ping_counts_as_life);
    tcase_add_test(t, duplicate_takes_over_when_the_old_process_is_silent);
    tcase_add_test(t, duplicate_takes_over_when_the_old_connection_closes);
    tcase_add_test(t, newcomer_with_a_rank_is_told_to_let_go_of_it);
    tcase_add_test(t, third_process_with_the_id_is_refused_at_once);
    tcase_add_test(t, newcomer_that_hangs_up_ends_the_probe);
    tcase_add_test(t, another_certificate_cannot_take_a_node_id);
    tcase_add_test(t, takeover_of_a_node_with_a_rank_fails_its_job);
    tcase_add_test(t, process_that_reconnects_with_its_rank_keeps_it);
    tcase_add_test(t, process_that_missed_start_gets_it_again);
    tcase_add_test(t, process_that_reconnects_without_its_rank_fails_the_job);
    tcase_add_test(t, rank_of_an_unknown_job_is_stopped);
    tcase_add_test(t, node_that_was_stopped_is_busy_until_it_answers);
    tcase_add_test(t, node_that_does_not_answer_stop_is_named_and_gets_no_work);
    tcase_add_test(t, nobody_waits_behind_a_job_that_needs_a_stuck_node);
    tcase_add_test(t, probe_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(t, wave_after_a_standstill_is_waited_for);
    tcase_add_test(t, grace_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(t, complaint_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(t, doubt_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(t, stop_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(t, worker_that_gave_its_connection_up_meanwhile_keeps_its_rank);
    tcase_add_test(t, each_worker_has_a_whole_lease_to_come_back);
    tcase_add_test(t, worker_that_does_not_come_back_after_a_standstill_fails_the_job);
    tcase_add_test(t, worker_that_does_not_come_back_while_ranks_get_ready_puts_the_job_back);
    tcase_add_test(t, rank_that_was_away_when_its_time_was_over_does_not_keep_its_job_either);
    tcase_add_test(t, another_process_after_a_standstill_fails_the_job);
    tcase_add_test(t, newcomer_takes_over_after_a_standstill_too);
    tcase_add_test(t, connection_that_closes_later_is_a_loss_again);
    tcase_add_test(t, ranks_that_gave_up_blame_the_scheduler);
    tcase_add_test(t, rank_of_another_generation_is_stopped);
    tcase_add_test(t, step_of_a_heartbeat_is_shown);
    tcase_add_test(t, one_connection_waits_for_one_probe);
    tcase_add_test(t, reconnect_of_the_old_process_refuses_the_newcomer);
    tcase_add_test(t, words_of_others_cannot_make_a_stop_unsendable);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return test_run(suite());
}
