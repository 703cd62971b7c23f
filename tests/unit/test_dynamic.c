/* test_dynamic.c - a worker's place in the dynamic cluster, from the MS_* environment */
#include "libworker/node/dynamic.h"

#include "tests/test.h"

static struct dynamic dynamic;

static void setup(void)
{
    for (size_t i = 0; i < MS_ENV_COUNT; i++) {
        unsetenv(ms_env_var((enum ms_env_id)i)->name);
    }
    setenv("MS_ROLE", "MS_WORKER", 1);
    setenv("MS_SCHED_HOST", "127.0.0.1", 1);
    setenv("MS_SCHED_PORT", "8118", 1);
    setenv("MS_WORKER_NUM", "4", 1);
}

static void teardown(void)
{
    dynamic_fini(&dynamic);
}

START_TEST(everything_that_the_environment_decides_arrives)
{
    struct worker_config worker = {.run_dir = "kept"};
    setenv("MS_NODE_ID", "3", 1);
    setenv("MS_TOPO_TIMEOUT", "30", 1);
    setenv("MS_NODE_TIMEOUT", "20", 1);
    setenv("MS_RECEIVE_MSG_TIMEOUT", "10", 1);
    setenv("MS_WORKER_IP", "127.0.0.1", 1);

    ck_ms_ok(dynamic_load(&dynamic, err));
    dynamic_fill(&dynamic, NULL, &worker);

    ck_assert_int_eq(worker.mode, WORKER_DYNAMIC);
    ck_assert_str_eq(worker.scheduler, "127.0.0.1:8118");
    ck_assert_str_eq(worker.node_id, "3");
    ck_assert_uint_eq(worker.worker_num, 4);
    ck_assert_int_eq(worker.connect_timeout_ms, 30000);
    ck_assert_int_eq(worker.lease_ms, 20000);
    ck_assert_int_eq(worker.patience_ms, 0);
    ck_assert_int_eq(worker.peer_timeout_ms, 10000);
    ck_assert_str_eq(worker.worker_ip, "127.0.0.1");
    ck_assert_ptr_null(worker.tls);
    ck_assert_str_eq(worker.run_dir, "kept");
}
END_TEST

START_TEST(documented_defaults_hold)
{
    struct worker_config worker = {.run_dir = ""};

    ck_ms_ok(dynamic_load(&dynamic, err));
    dynamic_fill(&dynamic, NULL, &worker);

    ck_assert_str_eq(worker.node_id, "");
    ck_assert_int_eq(worker.connect_timeout_ms, MS_TOPO_TIMEOUT_S * 1000);
    ck_assert_int_eq(worker.lease_ms, MS_NODE_TIMEOUT_S * 1000);
    ck_assert_int_eq(worker.peer_timeout_ms, MS_RECV_TIMEOUT_S * 1000);
}
END_TEST

START_TEST(tries_to_register_are_three_seconds_each)
{
    struct worker_config worker = {.run_dir = ""};
    setenv("MS_CLUSTER_RETRY_NUM", "2", 1);

    ck_ms_ok(dynamic_load(&dynamic, err));
    dynamic_fill(&dynamic, NULL, &worker);

    ck_assert_int_eq(worker.connect_timeout_ms, 6000);
    ck_assert_str_eq(worker.connect_by, "MS_CLUSTER_RETRY_NUM");
    ck_assert_str_eq(worker.word_by, "MS_CLUSTER_RETRY_NUM");
}
END_TEST

/* A debugger may hold the scheduler as well. */
START_TEST(without_heartbeats_a_silent_scheduler_is_borne)
{
    static const struct {
        const char *name, *value;
    } words[] = {{"MS_DISABLE_HEARTBEAT", "1"}, {"MS_NODE_TIMEOUT", "-1"}};
    struct worker_config worker = {.run_dir = ""};
    setenv(words[_i].name, words[_i].value, 1);

    ck_ms_ok(dynamic_load(&dynamic, err));
    dynamic_fill(&dynamic, NULL, &worker);

    ck_assert_int_eq(worker.patience_ms, INT32_MAX);
}
END_TEST

START_TEST(the_environment_decides_on_recovery_whatever_the_job_says)
{
    for (int said = 0; said < 2; said++) {
        struct job job = {.workers = 1, .recovery = said};
        unsetenv("MS_ENABLE_RECOVERY");
        ck_ms_ok(dynamic_load(&dynamic, err));
        ck_ms_ok(dynamic_take_job(&dynamic, &job, err));
        ck_assert_int_eq(job.recovery, 0);
        ck_assert_int_eq(job.workers, 4);

        setenv("MS_ENABLE_RECOVERY", "1", 1);
        ck_ms_ok(dynamic_load(&dynamic, err));
        ck_ms_ok(dynamic_take_job(&dynamic, &job, err));
        ck_assert_int_eq(job.recovery, 1);
    }
}
END_TEST

/* The file may say one worker, where that is one training of which all is allowed. */
START_TEST(trainings_that_are_independent_have_nothing_that_needs_one_state)
{
    struct job alone = {.workers = 1, .mode = JOB_STAND_ALONE};
    struct job job = alone;
    ck_ms_ok(dynamic_load(&dynamic, err));
    ck_ms_ok(dynamic_take_job(&dynamic, &job, err));

    job.has_checkpoint = 1;
    ck_ms_fails(dynamic_take_job(&dynamic, &job, err), MS_E_INVALID,
                "key checkpoint: in mode stand_alone each of the 4 workers has a training");

    setenv("MS_ENABLE_RECOVERY", "1", 1);
    job = alone;
    ck_ms_ok(dynamic_load(&dynamic, err));
    ck_ms_fails(dynamic_take_job(&dynamic, &job, err), MS_E_INVALID,
                "MS_ENABLE_RECOVERY=1: in mode stand_alone each of the 4 workers has a training "
                "of its own, and no other one holds what a lost one had; set it to 0");
}
END_TEST

START_TEST(a_scheduler_on_another_host_wants_certificates_and_both_ways_out_are_named)
{
    setenv("MS_SCHED_HOST", "192.0.2.1", 1);

    ck_ms_fails(dynamic_load(&dynamic, err), MS_E_CONFIG, "MS_TLS_CONFIG");
    ck_ms_fails(dynamic_load(&dynamic, err), MS_E_CONFIG, "MS_ENABLE_SSL=0");
}
END_TEST

START_TEST(switched_off_in_so_many_words_it_is_plain)
{
    struct worker_config worker = {.run_dir = ""};
    setenv("MS_SCHED_HOST", "192.0.2.1", 1);
    setenv("MS_ENABLE_SSL", "0", 1);

    ck_ms_ok(dynamic_load(&dynamic, err));
    dynamic_fill(&dynamic, NULL, &worker);

    ck_assert_ptr_null(worker.tls);
    ck_assert_str_eq(worker.scheduler, "192.0.2.1:8118");
}
END_TEST

START_TEST(an_IPv6_address_gets_its_brackets)
{
    setenv("MS_SCHED_HOST", "::1", 1);

    ck_ms_ok(dynamic_load(&dynamic, err));

    ck_assert_str_eq(dynamic.server, "[::1]:8118");
}
END_TEST

START_TEST(a_TLS_file_that_is_missing_is_named)
{
    struct ms_err err = {0, ""};
    setenv("MS_TLS_CONFIG", "/nonexistent/tls.json", 1);

    ck_assert_int_lt(dynamic_load(&dynamic, &err), 0);

    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent/tls.json"));
}
END_TEST

START_TEST(another_role_and_a_wrong_number_are_refused_by_name)
{
    setenv("MS_WORKER_NUM", "0", 1);
    ck_ms_fails(dynamic_load(&dynamic, err), MS_E_CONFIG, "MS_WORKER_NUM");
    setenv("MS_WORKER_NUM", "4", 1);
    setenv("MS_ROLE", "MS_SCHED", 1);

    ck_ms_fails(dynamic_load(&dynamic, err), MS_E_CONFIG, "MS_ROLE");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dynamic");
    TCase *tc = tcase_create("dynamic");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, everything_that_the_environment_decides_arrives);
    tcase_add_test(tc, documented_defaults_hold);
    tcase_add_test(tc, tries_to_register_are_three_seconds_each);
    tcase_add_loop_test(tc, without_heartbeats_a_silent_scheduler_is_borne, 0, 2);
    tcase_add_test(tc, the_environment_decides_on_recovery_whatever_the_job_says);
    tcase_add_test(tc, trainings_that_are_independent_have_nothing_that_needs_one_state);
    tcase_add_test(tc, a_scheduler_on_another_host_wants_certificates_and_both_ways_out_are_named);
    tcase_add_test(tc, switched_off_in_so_many_words_it_is_plain);
    tcase_add_test(tc, an_IPv6_address_gets_its_brackets);
    tcase_add_test(tc, a_TLS_file_that_is_missing_is_named);
    tcase_add_test(tc, another_role_and_a_wrong_number_are_refused_by_name);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
