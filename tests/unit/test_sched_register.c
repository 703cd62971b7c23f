/* test_sched_register.c - Register that a clumsy or hostile worker sends at the wrong moment */
#include "tests/unit/sched_fixture.h"

/* ---- a second Register while the first waits for the probe --------------------------------------
 *
 * Node w0 is incarnation 1; conn asked for its id as incarnation 2 and waits for the probe. */

static uint64_t probing(uint64_t *ret_old)
{
    fix_standing();
    *ret_old = fix_register("w0", 1);
    return fix_register("w0", 2);
}

static void say_register(uint64_t conn, const char *node_id, uint64_t incarnation)
{
    Ms__Register msg = fix_node(node_id, incarnation);
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
}

static const struct {
    const char *node_id;
    uint64_t incarnation;
} seconds[] = {{"w1", 2}, {"w1", 3}, {"w0", 1}, {"w0", 2}, {"w0", 3}};

START_TEST(second_register_is_refused_and_the_first_takes_over)
{
    uint64_t old = 0;
    uint64_t conn = probing(&old);

    say_register(conn, seconds[_i].node_id, seconds[_i].incarnation);
    fix_refused(conn, MS_E_EXISTS, "a Register under way already");
    fix_pass(MS_PROBE_MS);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
    ck_assert_int_eq(fix_closed(old), 1);
    fix_close(conn);
    ck_assert_str_eq(fix_show_node("w0")->state, "LOST");
    ck_assert_ptr_null(fix_show_node("w1"));
    fix_pass(2 * FIX_LEASE_MS);
}
END_TEST

START_TEST(second_register_is_refused_and_the_old_process_answers)
{
    uint64_t old = 0;
    uint64_t conn = probing(&old);

    say_register(conn, seconds[_i].node_id, seconds[_i].incarnation);
    fix_beat(old);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_ERROR));
    fix_close(conn);
    ck_assert_str_eq(fix_show_node("w0")->state, "REGISTERED");
    fix_close(old);
    fix_pass(2 * FIX_LEASE_MS);
}
END_TEST

START_TEST(second_register_is_refused_and_the_connection_closes)
{
    uint64_t old = 0;
    uint64_t conn = probing(&old);

    say_register(conn, seconds[_i].node_id, seconds[_i].incarnation);
    fix_close(conn);
    fix_pass(MS_PROBE_MS);

    ck_assert_int_eq(fix_closed(old), 0);
    ck_assert_str_eq(fix_show_node("w0")->state, "REGISTERED");
    ck_assert_ptr_null(fix_show_node("w1"));
    fix_close(old);
}
END_TEST

START_TEST(second_register_is_refused_and_the_old_connection_closes)
{
    uint64_t old = 0;
    uint64_t conn = probing(&old);

    say_register(conn, seconds[_i].node_id, seconds[_i].incarnation);
    fix_close(old);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
    fix_beat(conn);
    fix_close(conn);
    fix_pass(2 * FIX_LEASE_MS);
}
END_TEST

START_TEST(registered_node_cannot_ask_for_another_id_meanwhile)
{
    uint64_t old = 0;
    fix_standing();
    old = fix_register("w0", 1);
    uint64_t conn = fix_register("w1", 2);

    say_register(conn, "w0", 2);

    fix_refused(conn, MS_E_INVALID, "belongs to node w1 already");
    fix_pass(MS_PROBE_MS);
    ck_assert_int_eq(fix_closed(old), 0);
}
END_TEST

START_TEST(address_that_no_other_host_reaches_is_refused)
{
    static const char *const addresses[] = {"unix:/run/x.sock", "/run/x.sock", "", "10.0.0.1"};
    fix_standing();
    for (size_t i = 0; i < MS_ARRAY_SIZE(addresses); i++) {
        uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
        Ms__Register msg = fix_node("w1", 1);
        msg.data_address = (char *)addresses[i];
        fix_say(conn, MS_MSG_REGISTER, &msg.base);
        const Ms__Error *error = fix_heard(conn, MS_MSG_ERROR);
        ck_assert_ptr_nonnull(error);
        ck_assert_int_eq(error->code, MS_E_INVALID);
        ck_assert_ptr_nonnull(strstr(error->text, "HOST:PORT"));
    }
}
END_TEST

START_TEST(connection_keeps_the_process_that_it_registered)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);

    say_register(conn, "w0", 2);

    fix_refused(conn, MS_E_INVALID, "another process");
    ck_assert_uint_eq(fix_show_node("w0")->pid, 1001);
}
END_TEST

/* ---- generations --------------------------------------------------------------------------------
 */

static uint64_t claim(const char *node_id, uint64_t incarnation, uint64_t generation)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "c");
    Ms__Register msg = fix_node(node_id, incarnation);
    msg.job = 5;
    msg.generation = generation;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

START_TEST(generation_far_above_ours_is_refused_and_logged)
{
    static const uint64_t far[] = {MS_GENERATION_STEP_MAX + 1, MS_GENERATION_MAX / 2,
                                   MS_GENERATION_MAX - 1, MS_GENERATION_MAX, UINT64_MAX};
    fix_standing();

    uint64_t conn = claim("w0", 1, far[_i]);

    fix_refused(conn, MS_E_INVALID, "restart that worker");
    ck_assert_int_eq(fix_logged("node.refused node=\"w0\""), 1);
    ck_assert_ptr_null(fix_effect(SCHED_DO_PUT_META));
    fix_register("w1", 2);
    fix_submit(1, 0);
    ck_assert_uint_eq(fix_effect(SCHED_DO_PUT_JOB)->job->generation, 1);
}
END_TEST

START_TEST(many_claims_raise_no_further_than_one)
{
    fix_standing();
    claim("w0", 1, MS_GENERATION_STEP_MAX);
    ck_assert_uint_eq(fix_effect(SCHED_DO_PUT_META)->meta_value, MS_GENERATION_STEP_MAX);

    uint64_t conn = claim("w1", 2, MS_GENERATION_STEP_MAX + 1);

    fix_refused(conn, MS_E_INVALID, "restart that worker");
    ck_assert_ptr_null(fix_effect(SCHED_DO_PUT_META));
}
END_TEST

/* The next start must be able to read what this one stores. */
START_TEST(last_generation_is_never_given_away)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    fix_create(&cfg);
    ck_ms_ok(sched_load_meta(fix.s, "generation", MS_GENERATION_MAX - 2, err));
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    fix_register("w0", 1);
    fix_register("w1", 2);

    fix_submit(1, 0);
    ck_assert_uint_eq(fix_effect(SCHED_DO_PUT_JOB)->job->generation, MS_GENERATION_MAX - 1);
    uint64_t job = fix_submit(1, 0);

    fix_job_is(job, "QUEUED", "generations have run out");
}
END_TEST

/* ---- job ids ------------------------------------------------------------------------------------
 */

static uint64_t claim_job(const char *node_id, uint64_t job)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "c");
    Ms__Register msg = fix_node(node_id, 1);
    msg.job = job;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

START_TEST(job_of_a_lost_database_is_not_given_again)
{
    fix_standing();

    uint64_t conn = claim_job("w0", 77);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_STOP));
    const struct sched_effect *meta = fix_effect(SCHED_DO_PUT_META);
    ck_assert_str_eq(meta->meta_key, "next_job");
    ck_assert_uint_eq(meta->meta_value, 78);
    ck_assert_uint_eq(fix_submit(1, 0), 78);
}
END_TEST

START_TEST(absurd_job_is_refused_and_raises_nothing)
{
    static const uint64_t absurd[] = {MS_GENERATION_STEP_MAX + 1, UINT64_MAX / 2, UINT64_MAX};
    fix_standing();

    uint64_t conn = claim_job("w0", absurd[_i]);

    fix_refused(conn, MS_E_INVALID, "the next one here is 1: it is of another cluster, or lies");
    ck_assert_uint_eq(fix_submit(1, 0), 1);
}
END_TEST

START_TEST(many_claims_raise_job_ids_no_further_than_one)
{
    fix_standing();
    claim_job("w0", MS_GENERATION_STEP_MAX);

    uint64_t conn = claim_job("w1", MS_GENERATION_STEP_MAX + 1);

    fix_refused(conn, MS_E_INVALID, "it is of another cluster, or lies");
    ck_assert_uint_eq(fix_submit(1, 0), MS_GENERATION_STEP_MAX + 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sched_register");
    TCase *t = tcase_create("second");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_loop_test(t, second_register_is_refused_and_the_first_takes_over, 0,
                        MS_ARRAY_SIZE(seconds));
    tcase_add_loop_test(t, second_register_is_refused_and_the_old_process_answers, 0,
                        MS_ARRAY_SIZE(seconds));
    tcase_add_loop_test(t, second_register_is_refused_and_the_connection_closes, 0,
                        MS_ARRAY_SIZE(seconds));
    tcase_add_loop_test(t, second_register_is_refused_and_the_old_connection_closes, 0,
                        MS_ARRAY_SIZE(seconds));
    tcase_add_test(t, registered_node_cannot_ask_for_another_id_meanwhile);
    tcase_add_test(t, address_that_no_other_host_reaches_is_refused);
    tcase_add_test(t, connection_keeps_the_process_that_it_registered);
    suite_add_tcase(s, t);
    t = tcase_create("generations");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_loop_test(t, generation_far_above_ours_is_refused_and_logged, 0, 5);
    tcase_add_test(t, many_claims_raise_no_further_than_one);
    tcase_add_test(t, last_generation_is_never_given_away);
    tcase_add_test(t, job_of_a_lost_database_is_not_given_again);
    tcase_add_loop_test(t, absurd_job_is_refused_and_raises_nothing, 0, 3);
    tcase_add_test(t, many_claims_raise_job_ids_no_further_than_one);
    suite_add_tcase(s, t);
    return test_run(s);
}
