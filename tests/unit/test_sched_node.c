/* test_sched_node.c - registration, heartbeats, leases, nodes that are lost and remembered */
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

int main(void)
{
    Suite *suite = suite_create("sched_node");
    TCase *tc = tcase_create("nodes");
    tcase_add_checked_fixture(tc, NULL, fix_end);
    tcase_add_test(tc, register_is_answered_with_lease_and_heartbeat);
    tcase_add_test(tc, register_without_a_node_id_is_refused);
    tcase_add_test(tc, register_without_an_incarnation_is_refused);
    tcase_add_test(tc, absurd_generation_is_refused);
    tcase_add_test(tc, generation_above_ours_raises_ours_durably);
    tcase_add_test(tc, one_connection_registers_one_node);
    tcase_add_test(tc, heartbeat_before_register_is_refused);
    tcase_add_test(tc, heartbeat_is_answered_and_never_stored);
    tcase_add_test(tc, silent_node_is_lost_when_its_lease_is_over);
    tcase_add_test(tc, leases_of_a_whole_network_are_judged_in_bounded_ticks);
    tcase_add_test(tc, heartbeat_renews_the_lease);
    tcase_add_test(tc, standing_still_stretches_leases);
    tcase_add_test(tc, a_shorter_lease_judges_nobody_before_the_old_one);
    tcase_add_test(tc, what_a_node_says_after_a_shorter_lease_does_not_shorten_its_own);
    tcase_add_test(tc, a_longer_lease_holds_at_once);
    tcase_add_test(tc, disabled_heartbeat_judges_nobody);
    tcase_add_test(tc, closed_connection_loses_an_idle_node_at_once);
    tcase_add_test(tc, leave_says_why);
    tcase_add_test(tc, lost_nodes_are_forgotten_after_an_hour);
    tcase_add_test(tc, lost_nodes_are_bounded);
    tcase_add_test(tc, who_has_most_lost_nodes_loses_his_oldest);
    tcase_add_test(tc, a_job_may_lose_more_nodes_than_are_remembered);
    tcase_add_test(tc, lost_node_may_register_again);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
