/* test_sched_twin.c - one node id, two processes */
#include "tests/unit/sched_load_case.h"

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
    ck_assert_ptr_nonnull(strstr(refusal->text, "that process lives; this one is"));
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

START_TEST(second_knock_of_a_newcomer_is_no_third_process)
{
    fix_standing();
    uint64_t old = fix_register("w0", 1);
    uint64_t conn = fix_register("w0", 2);

    uint64_t again = fix_register("w0", 2); /* before the end of its first connection is seen */

    ck_assert_int_eq(fix_closed(conn), 1);
    ck_assert_ptr_null(fix_heard(again, MS_MSG_ERROR));
    fix_close(old);
    ck_assert_ptr_nonnull(fix_heard(again, MS_MSG_REGISTERED));
}
END_TEST

/* ---- the first one has yet to come back ---------------------------------------------------------
 */

enum {
    AWAITED_MS = MS_HANDSHAKE_MS + FIX_LEASE_MS / MS_HEARTBEATS_PER_LEASE,
    ADOPT_MS = FIX_LEASE_MS + 2 * MS_ADOPT_NODE_MS
};

/* Job 1 runs on w0 and w1, whose processes live, and its scheduler has just been started again. */
static void restarted_with(enum sched_mode mode, int64_t lease_ms)
{
    struct sched_config cfg = fix_config(mode, mode == SCHED_DYNAMIC ? 2 : 0);
    cfg.has_database = 1;
    cfg.lease_ms = lease_ms;
    cfg.recovery = mode == SCHED_DYNAMIC;
    fix_create(&cfg);
    struct sched_job_row row = job_row(1, JOB_RUNNING);
    row.recovery = true;
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    load_members(1);
    loaded();
}

static void restarted(enum sched_mode mode)
{
    restarted_with(mode, FIX_LEASE_MS);
}

static uint64_t knock(uint32_t rank, uint64_t incarnation, uint64_t job)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    const char *ids[] = {"w0", "w1"};
    Ms__Register msg = fix_node(ids[rank], incarnation);
    msg.worker_num = 2;
    msg.job_json.data = (uint8_t *)"{}";
    msg.job_json.len = 2;
    msg.job = job;
    msg.generation = job > 0 ? 11 : 0;
    msg.rank = job > 0 ? rank : 0;
    msg.running = job > 0;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

/* ... after others were heard. */
static void is_refused(uint64_t conn, const char *part)
{
    const Ms__Error *refusal = fix_heard(conn, MS_MSG_ERROR);
    ck_assert_ptr_nonnull(refusal);
    ck_assert_int_eq(refusal->code, MS_E_EXISTS);
    ck_assert_msg(strstr(refusal->text, part) != NULL, "%s", refusal->text);
}

static bool is_unanswered(uint64_t conn)
{
    return fix_heard(conn, MS_MSG_REGISTERED) == NULL && fix_heard(conn, MS_MSG_ERROR) == NULL;
}

START_TEST(after_a_restart_who_is_on_his_way_keeps_his_rank)
{
    restarted(SCHED_DYNAMIC);
    uint64_t seconds[] = {knock(0, 8, 0), knock(1, 9, 0)};
    ck_assert(is_unanswered(seconds[0]) && is_unanswered(seconds[1]));
    fix_pass(600);

    ck_assert_ptr_nonnull(fix_heard(knock(0, 100, 1), MS_MSG_REGISTERED));

    is_refused(seconds[0], "pid 1100");
    is_refused(seconds[0], "lives, with rank 0 of job 1; this one is pid 1008");
    ck_assert(is_unanswered(seconds[1]));
    knock(1, 101, 1);
    is_refused(seconds[1], "registered already: by pid 1101");
    fix_job_is(1, "RUNNING", "");
    ck_assert_uint_eq(fix_show(1)->ranks_lost, 0);
}
END_TEST

START_TEST(after_a_restart_who_does_not_come_is_replaced_as_soon_as_he_would_have)
{
    restarted(SCHED_DYNAMIC);
    knock(0, 100, 1);
    fix_pass(1000);
    uint64_t second = knock(1, 9, 0);

    fix_pass(AWAITED_MS - 1001);
    ck_assert(is_unanswered(second));
    fix_job_is(1, "RUNNING", "waits for the nodes of rank 1");
    fix_pass(1);

    ck_assert_ptr_nonnull(fix_heard(second, MS_MSG_REGISTERED));
    ck_assert_ptr_nonnull(fix_heard(second, MS_MSG_ASSIGN));
    ck_assert_int_eq(fix_logged("rank 1 (node w1 on host h) was lost: its process did not come "
                                "back within 7000 ms after the scheduler's restart, and another "
                                "one has its place"),
                     1);
}
END_TEST

START_TEST(who_comes_later_need_not_wait_for_the_first)
{
    restarted(SCHED_DYNAMIC);
    fix_pass(AWAITED_MS);

    ck_assert_ptr_nonnull(fix_heard(knock(1, 9, 0), MS_MSG_REGISTERED));
}
END_TEST

START_TEST(before_a_crowded_door_the_first_has_as_long_as_anybody)
{
    restarted(SCHED_DYNAMIC);
    uint64_t second = knock(1, 9, 0);
    fix_crowd();
    fix_pass(ADOPT_MS);
    ck_assert(is_unanswered(second));
    fix_job_is(1, "RUNNING", "waits for the nodes of");

    fix_pass(MS_RECONNECT_MAX_MS + MS_HANDSHAKE_MS);

    ck_assert_ptr_nonnull(fix_heard(second, MS_MSG_REGISTERED));
}
END_TEST

/* ... and others have come since: how much longer is said when the time is looked at. */
START_TEST(a_time_that_nobody_has_looked_at_yet_is_not_over_for_the_first)
{
    enum { LEASE_MS = 2000, WAIT_MS = LEASE_MS + 2 * MS_ADOPT_NODE_MS };
    restarted_with(SCHED_DYNAMIC, LEASE_MS);
    fix_pass(WAIT_MS - 1);
    knock(0, 100, 1);
    fix.now.mono_ms += 2;

    uint64_t second = knock(1, 9, 0);
    ck_assert(is_unanswered(second));
    fix_time();
    ck_assert(is_unanswered(second));
    knock(1, 101, 1);

    is_refused(second, "lives, with rank 1 of job 1");
}
END_TEST

START_TEST(a_scheduler_that_stood_still_has_not_waited_for_the_first)
{
    restarted(SCHED_DYNAMIC);
    uint64_t second = knock(1, 9, 0);
    sched_stood_still(fix.s, 20000);

    fix_pass(20000 + AWAITED_MS - 1);
    ck_assert(is_unanswered(second));
    fix_pass(1);

    ck_assert_ptr_nonnull(fix_heard(second, MS_MSG_REGISTERED));
}
END_TEST

START_TEST(who_waits_for_the_first_may_knock_again_and_no_third_one)
{
    restarted(SCHED_DYNAMIC);
    uint64_t second = knock(1, 9, 0);

    uint64_t again = knock(1, 9, 0);
    ck_assert_int_eq(fix_closed(second), 1);
    ck_assert(is_unanswered(again));
    uint64_t third = knock(1, 10, 0);

    fix_refused(third, MS_E_EXISTS, "two more processes want this id");
    knock(1, 101, 1);
    is_refused(again, "lives, with rank 1 of job 1");
}
END_TEST

START_TEST(the_end_of_the_job_lets_in_who_waited)
{
    restarted(SCHED_DYNAMIC);
    uint64_t second = knock(1, 9, 0);
    uint64_t admin = fix_open(MS_ROLE_ADMIN, "root");

    fix_cancel(admin, 1, false);

    ck_assert_ptr_nonnull(fix_heard(second, MS_MSG_REGISTERED));
}
END_TEST

/* All were started anew with their scheduler, and somebody cancels: that the last one is there, and
 * not the one before it, ends the job. They wait for ranks, and have to hear that none comes. */
START_TEST(who_is_let_in_as_the_job_ends_is_told)
{
    uint64_t workers[2];
    restarted(SCHED_DYNAMIC);
    fix_cancel(fix_open(MS_ROLE_ADMIN, "root"), 1, 1);
    for (uint32_t rank = 0; rank < 2; rank++) {
        workers[rank] = knock(rank, 1000 + rank, 0);
    }
    for (int i = 0; i < 60 && fix_stored(1) == NULL; i++) {
        fix_pass(1000);
    }
    ck_assert_ptr_nonnull(fix_stored(1));
    ck_assert_int_eq(fix_stored(1)->state, JOB_CANCELLED);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const Ms__Stop *stop = fix_heard(workers[rank], MS_MSG_STOP);
        ck_assert_msg(stop != NULL, "worker %u hears nothing", rank);
        ck_assert_int_eq(stop->code, MS_E_CANCELLED);
    }
}
END_TEST

/* msctl and systemd start a process again once they have seen the end of the first. */
START_TEST(whose_predecessor_is_known_to_be_dead_does_not_wait)
{
    static const enum sched_mode vouching[] = {SCHED_STANDING, SCHED_RUN};
    restarted(vouching[_i]);

    ck_assert_ptr_nonnull(fix_heard(knock(1, 9, 0), MS_MSG_REGISTERED));

    ck_assert_int_eq(fix_logged("its process ended and another one registered in its place after "
                                "the scheduler's restart"),
                     1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_twin");
    TCase *tc = tcase_create("twins");
    tcase_add_checked_fixture(tc, NULL, fix_end);
    tcase_add_test(tc, same_process_on_a_new_connection_replaces_the_old_one);
    tcase_add_test(tc, duplicate_is_refused_when_the_old_process_answers);
    tcase_add_test(tc, answer_to_the_ping_counts_as_life);
    tcase_add_test(tc, duplicate_takes_over_when_the_old_process_is_silent);
    tcase_add_test(tc, duplicate_takes_over_when_the_old_connection_closes);
    tcase_add_test(tc, newcomer_with_a_rank_is_told_to_let_go_of_it);
    tcase_add_test(tc, third_process_with_the_id_is_refused_at_once);
    tcase_add_test(tc, newcomer_that_hangs_up_ends_the_probe);
    tcase_add_test(tc, another_certificate_cannot_take_a_node_id);
    tcase_add_test(tc, one_connection_waits_for_one_probe);
    tcase_add_test(tc, reconnect_of_the_old_process_refuses_the_newcomer);
    tcase_add_test(tc, second_knock_of_a_newcomer_is_no_third_process);
    suite_add_tcase(suite, tc);

    tc = tcase_create("first");
    tcase_add_checked_fixture(tc, NULL, fix_end);
    tcase_add_test(tc, after_a_restart_who_is_on_his_way_keeps_his_rank);
    tcase_add_test(tc, after_a_restart_who_does_not_come_is_replaced_as_soon_as_he_would_have);
    tcase_add_test(tc, who_comes_later_need_not_wait_for_the_first);
    tcase_add_test(tc, before_a_crowded_door_the_first_has_as_long_as_anybody);
    tcase_add_test(tc, a_time_that_nobody_has_looked_at_yet_is_not_over_for_the_first);
    tcase_add_test(tc, a_scheduler_that_stood_still_has_not_waited_for_the_first);
    tcase_add_test(tc, who_waits_for_the_first_may_knock_again_and_no_third_one);
    tcase_add_test(tc, the_end_of_the_job_lets_in_who_waited);
    tcase_add_test(tc, who_is_let_in_as_the_job_ends_is_told);
    tcase_add_loop_test(tc, whose_predecessor_is_known_to_be_dead_does_not_wait, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
