/* test_ms_env.c - the MS_* environment: defaults, ranges, and what is said about wrong values */
#include "proto/ms_env.h"
#include "tests/test.h"

static struct ms_env env;

static void clear(void)
{
    for (size_t i = 0; i < MS_ENV_COUNT; i++) {
        unsetenv(ms_env_var((enum ms_env_id)i)->name);
    }
}

static void set_needed(const char *role)
{
    clear();
    setenv("MS_ROLE", role, 1);
    setenv("MS_SCHED_HOST", "127.0.0.1", 1);
    setenv("MS_SCHED_PORT", "8118", 1);
    setenv("MS_WORKER_NUM", "8", 1);
}

static void setup(void)
{
    set_needed("MS_SCHED");
}

START_TEST(the_documented_defaults_hold)
{
    ck_ms_ok(ms_env_load(MS_ENV_SCHEDULER, &env, err));

    ck_assert_int_eq(ms_env_int(&env, MS_ENV_WORKER_NUM), 8);
    ck_assert_int_eq(ms_env_ms(&env, MS_ENV_TOPO_TIMEOUT), MS_TOPO_TIMEOUT_S * 1000);
    ck_assert_int_eq(ms_env_ms(&env, MS_ENV_NODE_TIMEOUT), MS_NODE_TIMEOUT_S * 1000);
    ck_assert_int_eq(ms_env_ms(&env, MS_ENV_RECEIVE_MSG_TIMEOUT), MS_RECV_TIMEOUT_S * 1000);
    ck_assert_int_eq(ms_env_int(&env, MS_ENV_ENABLE_RECOVERY), 0);
    ck_assert_int_eq(ms_env_int(&env, MS_ENV_DISABLE_HEARTBEAT), 0);
    ck_assert_str_eq(ms_env_text(&env, MS_ENV_NODE_ID), "");
    ck_assert(!env.value[MS_ENV_ENABLE_SSL].is_set);
}
END_TEST

START_TEST(negative_timeouts_are_without_limit)
{
    setenv("MS_TOPO_TIMEOUT", "-1", 1);
    setenv("MS_NODE_TIMEOUT", "-600", 1);

    ck_ms_ok(ms_env_load(MS_ENV_SCHEDULER, &env, err));

    ck_assert_int_eq(ms_env_ms(&env, MS_ENV_TOPO_TIMEOUT), -1);
    ck_assert_int_eq(ms_env_ms(&env, MS_ENV_NODE_TIMEOUT), -1);
}
END_TEST

START_TEST(an_empty_variable_is_an_unset_one)
{
    setenv("MS_TOPO_TIMEOUT", "", 1);
    ck_ms_ok(ms_env_load(MS_ENV_SCHEDULER, &env, err));
    ck_assert_int_eq(ms_env_int(&env, MS_ENV_TOPO_TIMEOUT), MS_TOPO_TIMEOUT_S);

    setenv("MS_WORKER_NUM", "", 1);
    ck_ms_fails(ms_env_load(MS_ENV_SCHEDULER, &env, err), MS_E_CONFIG, "MS_WORKER_NUM is not set");
}
END_TEST

START_TEST(a_failure_leaves_the_result_alone)
{
    memset(&env, 'x', sizeof(env));
    setenv("MS_WORKER_NUM", "none", 1);

    ck_ms_fails(ms_env_load(MS_ENV_SCHEDULER, &env, err), MS_E_CONFIG, "MS_WORKER_NUM");

    ck_assert_int_eq(env.value[0].text[0], 'x');
}
END_TEST

static const struct {
    const char *name, *value, *says;
} wrong[] = {
    {"MS_WORKER_NUM", "0", "1 to 1024"},
    {"MS_WORKER_NUM", "-1", "1 to 1024"},
    {"MS_WORKER_NUM", "1025", "1 to 1024"},
    {"MS_WORKER_NUM", "8 ", "1 to 1024"},
    {"MS_WORKER_NUM", "0x8", "1 to 1024"},
    {"MS_WORKER_NUM", "99999999999999999999", "1 to 1024"},
    {"MS_SCHED_PORT", "1023", "1024 to 65535"},
    {"MS_SCHED_PORT", "65536", "1024 to 65535"},
    {"MS_SCHED_HOST", "a host", "an IPv4 or IPv6 address, or a host name"},
    {"MS_SCHED_HOST", "a\nb", "\\x0a"},
    {"MS_NODE_ID", "a/b", "letters, digits"},
    {"MS_WORKER_IP", "localhost", "IPv4 or IPv6 address"},
    {"MS_WORKER_IP", "300.1.1.1", "IPv4 or IPv6 address"},
    {"MS_TOPO_TIMEOUT", "0", "or negative for ever"},
    {"MS_TOPO_TIMEOUT", "1.5", "or negative for ever"},
    {"MS_NODE_TIMEOUT", "3601", "1 to 3600"},
    {"MS_NODE_TIMEOUT", "-", "1 to 3600"},
    {"MS_RECEIVE_MSG_TIMEOUT", "0", "1 to 86400"},
    {"MS_DISABLE_HEARTBEAT", "2", "0 or 1"},
    {"MS_DISABLE_HEARTBEAT", "true", "0 or 1"},
    {"MS_ENABLE_RECOVERY", "yes", "0 or 1"},
    {"MS_RECOVERY_PATH", "relative", "an absolute path"},
    {"MS_ENABLE_SSL", "on", "0 or 1"},
    {"MS_ENABLE_SSL", "1", "MS_TLS_CONFIG="},
    {"MS_SERVER_NUM", "2", "no parameter servers"},
    {"MS_ROLE", "MS_PSERVER", "no parameter servers"},
    {"MS_ROLE", "MS_WORKER", "start msworker"},
    {"MS_ROLE", "sched", "MS_SCHED or MS_WORKER"},
    {"MS_CLUSTER_RETRY_NUM", "x", "1 to 1000000"},
    {"MS_RETRY_INTERVAL_UPPER", "-1", "0 to 3600"},
};

START_TEST(a_wrong_value_is_refused_with_variable_and_range)
{
    setenv(wrong[_i].name, wrong[_i].value, 1);
    ck_ms_fails(ms_env_load(MS_ENV_SCHEDULER, &env, err), MS_E_CONFIG, wrong[_i].says);
    ck_ms_fails(ms_env_load(MS_ENV_SCHEDULER, &env, err), MS_E_CONFIG, wrong[_i].name);
}
END_TEST

static const struct {
    const char *name, *value;
} right[] = {
    {"MS_WORKER_NUM", "1024"},         {"MS_SCHED_HOST", "::1"},
    {"MS_SCHED_HOST", "fe80::1%eth0"}, {"MS_SCHED_HOST", "head.cluster.example"},
    {"MS_SCHED_PORT", "65535"},        {"MS_NODE_ID", "7"},
    {"MS_NODE_ID", "w-1_a.b:c"},       {"MS_WORKER_IP", "10.0.0.1"},
    {"MS_WORKER_IP", "2001:db8::1"},   {"MS_NODE_TIMEOUT", "3600"},
    {"MS_RECOVERY_PATH", "/a path"},   {"MS_ENABLE_SSL", "0"},
    {"MS_HCCL_CM_INIT", "true"},       {"MS_CLUSTER_RETRY_NUM", "610"},
    {"MS_ENABLE_RECOVERY", "1"},       {"MS_ENABLE_RECOVERY", "0"},
};

START_TEST(a_documented_value_is_taken)
{
    setenv(right[_i].name, right[_i].value, 1);
    ck_ms_ok(ms_env_load(MS_ENV_SCHEDULER, &env, err));
}
END_TEST

START_TEST(a_worker_is_told_to_be_one)
{
    ck_ms_fails(ms_env_load(MS_ENV_WORKER, &env, err), MS_E_CONFIG, "MS_ROLE=MS_WORKER");
    set_needed("MS_WORKER");
    ck_ms_ok(ms_env_load(MS_ENV_WORKER, &env, err));
}
END_TEST

START_TEST(retry_intervals_in_the_wrong_order_are_refused)
{
    setenv("MS_RETRY_INTERVAL_LOWER", "5", 1);
    setenv("MS_RETRY_INTERVAL_UPPER", "3", 1);
    ck_ms_fails(ms_env_load(MS_ENV_SCHEDULER, &env, err), MS_E_CONFIG, "is above");
}
END_TEST

START_TEST(the_start_line_has_effective_values_and_quotes)
{
    char line[1024];
    char cut[48];
    setenv("MS_RECOVERY_PATH", "/a path", 1);
    setenv("MS_ENABLE_RECOVERY", "1", 1);
    ck_ms_ok(ms_env_load(MS_ENV_SCHEDULER, &env, err));

    ms_env_format(&env, line, sizeof(line));
    ms_env_format(&env, cut, sizeof(cut));

    ck_assert_ptr_nonnull(strstr(line, "MS_ROLE=MS_SCHED MS_SCHED_HOST=127.0.0.1 "));
    ck_assert_ptr_nonnull(strstr(line, " MS_NODE_TIMEOUT=600"));
    ck_assert_ptr_nonnull(strstr(line, " MS_RECOVERY_PATH=\"/a path\""));
    ck_assert_ptr_null(strstr(line, "MS_NODE_ID"));
    ck_assert_str_eq(cut, "MS_ROLE=MS_SCHED MS_SCHED_HOST=127.0.0.1");
}
END_TEST

/* A start script exports all of it to all roles. */
START_TEST(the_start_line_has_what_is_in_force_there_and_nothing_else)
{
    char scheduler[1024];
    char worker[1024];
    setenv("MS_NODE_ID", "7", 1);
    setenv("MS_CLUSTER_RETRY_NUM", "9", 1);
    setenv("MS_HCCL_CM_INIT", "true", 1);
    setenv("MS_RECOVERY_PATH", "/r", 1);
    ck_ms_ok(ms_env_load(MS_ENV_SCHEDULER, &env, err));
    ms_env_format(&env, scheduler, sizeof(scheduler));
    setenv("MS_ROLE", "MS_WORKER", 1);
    ck_ms_ok(ms_env_load(MS_ENV_WORKER, &env, err));
    ms_env_format(&env, worker, sizeof(worker));

    ck_assert_ptr_null(strstr(scheduler, "MS_NODE_ID"));
    ck_assert_ptr_null(strstr(scheduler, "MS_RECEIVE_MSG_TIMEOUT"));
    ck_assert_ptr_null(strstr(scheduler, "MS_CLUSTER_RETRY_NUM"));
    ck_assert_ptr_null(strstr(scheduler, "MS_HCCL_CM_INIT"));
    ck_assert_ptr_null(strstr(scheduler, "MS_RECOVERY_PATH")); /* recovery is off */
    ck_assert_ptr_nonnull(strstr(scheduler, " MS_ENABLE_RECOVERY=0"));
    ck_assert_ptr_nonnull(strstr(worker, " MS_NODE_ID=7"));
    ck_assert_ptr_nonnull(strstr(worker, " MS_RECEIVE_MSG_TIMEOUT=600"));
    ck_assert_ptr_nonnull(strstr(worker, " MS_CLUSTER_RETRY_NUM=9"));
}
END_TEST

START_TEST(the_less_of_tries_and_time_bounds_the_registration)
{
    set_needed("MS_WORKER");
    ck_ms_ok(ms_env_load(MS_ENV_WORKER, &env, err));
    ck_assert_int_eq(ms_env_register_ms(&env), MS_TOPO_TIMEOUT_S * 1000);
    ck_assert_str_eq(ms_env_register_by(&env), "MS_TOPO_TIMEOUT");

    setenv("MS_CLUSTER_RETRY_NUM", "2", 1);
    ck_ms_ok(ms_env_load(MS_ENV_WORKER, &env, err));
    ck_assert_int_eq(ms_env_register_ms(&env), 6000);
    ck_assert_str_eq(ms_env_register_by(&env), "MS_CLUSTER_RETRY_NUM");

    setenv("MS_TOPO_TIMEOUT", "-1", 1);
    ck_ms_ok(ms_env_load(MS_ENV_WORKER, &env, err));
    ck_assert_int_eq(ms_env_register_ms(&env), 6000);

    setenv("MS_TOPO_TIMEOUT", "5", 1);
    ck_ms_ok(ms_env_load(MS_ENV_WORKER, &env, err));
    ck_assert_int_eq(ms_env_register_ms(&env), 5000);
    ck_assert_str_eq(ms_env_register_by(&env), "MS_TOPO_TIMEOUT");
}
END_TEST

START_TEST(a_short_topology_timeout_is_none_for_a_word)
{
    set_needed("MS_WORKER");
    setenv("MS_TOPO_TIMEOUT", "5", 1);
    ck_ms_ok(ms_env_load(MS_ENV_WORKER, &env, err));
    ck_assert_int_eq(ms_env_word_ms(&env), MS_TOPO_TIMEOUT_S * 1000);

    setenv("MS_TOPO_TIMEOUT", "86400", 1);
    ck_ms_ok(ms_env_load(MS_ENV_WORKER, &env, err));
    ck_assert_int_eq(ms_env_word_ms(&env), 86400000);

    setenv("MS_TOPO_TIMEOUT", "-1", 1);
    ck_ms_ok(ms_env_load(MS_ENV_WORKER, &env, err));
    ck_assert_int_eq(ms_env_word_ms(&env), 0);
    ck_assert_str_eq(ms_env_word_by(&env), "MS_TOPO_TIMEOUT");

    setenv("MS_CLUSTER_RETRY_NUM", "2", 1);
    ck_ms_ok(ms_env_load(MS_ENV_WORKER, &env, err));
    ck_assert_int_eq(ms_env_word_ms(&env), 6000);
    ck_assert_str_eq(ms_env_word_by(&env), "MS_CLUSTER_RETRY_NUM");
}
END_TEST

START_TEST(a_recovery_path_is_one_with_recovery_only)
{
    setenv("MS_RECOVERY_PATH", "/r", 1);
    ck_ms_ok(ms_env_load(MS_ENV_SCHEDULER, &env, err));
    ck_assert_str_eq(ms_env_recovery_path(&env), "");

    setenv("MS_ENABLE_RECOVERY", "1", 1);
    ck_ms_ok(ms_env_load(MS_ENV_SCHEDULER, &env, err));
    ck_assert_str_eq(ms_env_recovery_path(&env), "/r");
}
END_TEST

static const struct {
    const char *name, *value, *says;
} vain[] = {
    {"RANK_TABLE_FILE", "/rank_table_8pcs.json",
     "RANK_TABLE_FILE (MS_SCHED_HOST, MS_SCHED_PORT and MS_NODE_ID instead)"},
    {"RANK_ID", "3", "RANK_ID (MS_NODE_ID instead)"},
    {"RANK_SIZE", "8", "RANK_SIZE (MS_WORKER_NUM instead)"},
    {"DEVICE_ID", "3", "DEVICE_ID"},
    {"GRAPH_OP_RUN", "1", "GRAPH_OP_RUN"},
    {"HCCL_WHITELIST_DISABLE", "1", "HCCL_WHITELIST_DISABLE"},
    {"GLOG_v", "1", "GLOG_v (--log-level instead)"},
    {"GLOG_log_dir", "/log", "GLOG_log_dir (standard error and --run-dir instead)"},
    {"GLOG_max_log_size", "50", "GLOG_max_log_size"},
    {"MS_HCCL_CM_INIT", "1", "MS_HCCL_CM_INIT"},
    {"MS_RETRY_INTERVAL_UPPER", "5", "MS_RETRY_INTERVAL_UPPER"},
    {"MS_RECOVERY_PATH", "/r", "MS_RECOVERY_PATH (without MS_ENABLE_RECOVERY=1)"},
};

START_TEST(what_is_set_in_vain_is_named_with_what_replaces_it)
{
    char line[512];
    ck_assert_str_eq(ms_env_unused(line, sizeof(line)), "");
    setenv(vain[_i].name, "", 1);
    ck_assert_str_eq(ms_env_unused(line, sizeof(line)), "");

    setenv(vain[_i].name, vain[_i].value, 1);

    ck_assert_str_eq(ms_env_unused(line, sizeof(line)), vain[_i].says);
    unsetenv(vain[_i].name);
}
END_TEST

START_TEST(names_of_a_standing_cluster_and_values_in_force_are_not_set_in_vain)
{
    char line[512];
    setenv("MS_RECOVERY_PATH", "/r", 1);
    setenv("MS_ENABLE_RECOVERY", "1", 1);
    setenv("MS_NODE_ID", "1", 1); /* of the workers, whose shell the scheduler has */
    ck_assert_str_eq(ms_env_unused(line, sizeof(line)), "");

    unsetenv("MS_ROLE");
    setenv("MS_HCCL_CM_INIT", "1", 1);
    setenv("RANK_SIZE", "8", 1);
    ck_assert_str_eq(ms_env_unused(line, sizeof(line)), "RANK_SIZE (MS_WORKER_NUM instead)");

    setenv("DEVICE_ID", "0", 1);
    ck_assert_str_eq(ms_env_unused(line, 12), "DEVICE_ID"); /* cut between two names */
    unsetenv("RANK_SIZE");
    unsetenv("DEVICE_ID");
}
END_TEST

START_TEST(every_row_prints_its_source_and_range)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_ms_ok(ms_env_load(MS_ENV_SCHEDULER, &env, err));

    ms_env_print(&env, out);
    fclose(out);

    for (size_t i = 0; i < MS_ENV_COUNT; i++) {
        ck_assert_ptr_nonnull(strstr(text, ms_env_var((enum ms_env_id)i)->name));
    }
    ck_assert_ptr_nonnull(
        strstr(text, "MS_WORKER_NUM = 8   # from: environment; legal: 1 to 1024"));
    ck_assert_ptr_nonnull(strstr(text, "MS_NODE_TIMEOUT = 600   # from: built-in"));
    ck_assert_ptr_nonnull(strstr(text, "MS_NODE_ID =    # from: unset"));
    ck_assert_ptr_nonnull(strstr(text, "; of workers: a worker tries to register"));
    free(text);
}
END_TEST

START_TEST(a_mistyped_variable_is_found_and_strangers_are_not)
{
    size_t next = 0;
    const char *nearest = NULL;
    setenv("MS_WORKR_NUM", "8", 1);
    setenv("MS_ABSOLUTELY_SOMETHING_ELSE", "1", 1);

    const char *name = ms_env_mistyped(0, &next, &nearest);

    ck_assert_ptr_nonnull(name);
    ck_assert_str_eq(name, "MS_WORKR_NUM");
    ck_assert_str_eq(nearest, "MS_WORKER_NUM");
    ck_assert_ptr_null(ms_env_mistyped(next, &next, &nearest));
    unsetenv("MS_WORKR_NUM");
    unsetenv("MS_ABSOLUTELY_SOMETHING_ELSE");
}
END_TEST

START_TEST(every_row_of_the_table_is_complete)
{
    for (size_t i = 0; i < MS_ENV_COUNT; i++) {
        const struct ms_env_var *var = ms_env_var((enum ms_env_id)i);
        ck_assert_ptr_nonnull(var->name);
        ck_assert_ptr_nonnull(var->legal);
        ck_assert_ptr_nonnull(var->meaning);
        ck_assert(var->type != MS_ENV_ONE_OF || var->choices != NULL);
        ck_assert((var->refused == NULL) == (var->why == NULL));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ms_env");
    TCase *tcase = tcase_create("ms_env");
    tcase_add_checked_fixture(tcase, setup, clear);
    tcase_add_test(tcase, the_documented_defaults_hold);
    tcase_add_test(tcase, negative_timeouts_are_without_limit);
    tcase_add_test(tcase, an_empty_variable_is_an_unset_one);
    tcase_add_test(tcase, a_failure_leaves_the_result_alone);
    tcase_add_loop_test(tcase, a_wrong_value_is_refused_with_variable_and_range, 0,
                        (int)MS_ARRAY_SIZE(wrong));
    tcase_add_loop_test(tcase, a_documented_value_is_taken, 0, (int)MS_ARRAY_SIZE(right));
    tcase_add_test(tcase, a_worker_is_told_to_be_one);
    tcase_add_test(tcase, retry_intervals_in_the_wrong_order_are_refused);
    tcase_add_test(tcase, the_start_line_has_effective_values_and_quotes);
    tcase_add_test(tcase, the_start_line_has_what_is_in_force_there_and_nothing_else);
    tcase_add_test(tcase, the_less_of_tries_and_time_bounds_the_registration);
    tcase_add_test(tcase, a_short_topology_timeout_is_none_for_a_word);
    tcase_add_test(tcase, a_recovery_path_is_one_with_recovery_only);
    tcase_add_loop_test(tcase, what_is_set_in_vain_is_named_with_what_replaces_it, 0,
                        (int)MS_ARRAY_SIZE(vain));
    tcase_add_test(tcase, names_of_a_standing_cluster_and_values_in_force_are_not_set_in_vain);
    tcase_add_test(tcase, every_row_prints_its_source_and_range);
    tcase_add_test(tcase, a_mistyped_variable_is_found_and_strangers_are_not);
    tcase_add_test(tcase, every_row_of_the_table_is_complete);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
