/* test_options.c - the three modes, where values come from, and when TLS may be left out */
#include "daemon/options_private.h"
#include "daemon/socket_group.h"
#include "tests/test.h"

#include <grp.h>

static const char *dir;
static char conf[128];
static struct options *options;

static void clear(void)
{
    static const char *const others[] = {"MSCHED_LISTEN",   "MSCHED_SOCKET",   "MSCHED_DATABASE",
                                         "MSCHED_LEASE_MS", "MSCHED_TLS_CA",   "MSCHED_TLS_CERT",
                                         "MSCHED_TLS_CRL",  "MSCHED_LOG_LEVEL"};
    for (size_t i = 0; i < MS_ENV_COUNT; i++) {
        unsetenv(ms_env_var((enum ms_env_id)i)->name);
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(others); i++) {
        unsetenv(others[i]);
    }
}

static void setup(void)
{
    clear();
    dir = test_dir_make();
    snprintf(conf, sizeof(conf), "%s/msschedd.conf", dir);
    FILE *file = fopen(conf, "w");
    fputs("lease_ms = 2000\n", file);
    fclose(file);
}

static void teardown(void)
{
    options_destroy(options);
    options = NULL;
    clear();
    test_dir_remove(dir);
}

enum { WORDS_MAX = 32 };

/* Loads with `--config FILE` in front of words ("a b c"), split at blanks. */
static int load_words(const char *words, int with_config, struct ms_err *err)
{
    static char copy[512];
    static char program[] = "msschedd";
    static char flag[] = "--config";
    char *argv[WORDS_MAX] = {program};
    int argc = 1;
    char *state = NULL;
    if (with_config) {
        argv[argc++] = flag;
        argv[argc++] = conf;
    }
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *word = strtok_r(copy, " ", &state); word != NULL;
         word = strtok_r(NULL, " ", &state)) {
        ck_assert_int_lt(argc, WORDS_MAX - 1);
        argv[argc++] = word;
    }
    options_destroy(options);
    options = NULL;
    return options_load(argc, argv, &options, err);
}

#define load(words)         ck_ms_ok(load_words(words, 1, err))
#define fails(words, says)  ck_ms_fails(load_words(words, 1, err), MS_E_INVALID, says)
#define fails2(words, says) ck_ms_fails(load_words(words, 1, err), MS_E_CONFIG, says)

START_TEST(who_may_what_is_the_operators)
{
    ck_ms_ok(load_words("", 1, err));
    ck_assert_uint_eq(options->anyone_roles, MS_ROLE_WORKER | MS_ROLE_USER | MS_ROLE_ADMIN);
    ck_assert_int_eq(options->sched.priority_users_min, -100);
    ck_assert_int_eq(options->sched.priority_users_max, 100);
    ck_assert_int_eq(options->sched.certificate_ids, 1);
    ck_assert_uint_eq(options->sched.nodes_per_certificate, MS_NODES_PER_CERT);
    ck_assert_uint_eq(options->sched.specs_mib, MS_SPECS_MIB);
    ck_assert_uint_eq(options->sched.specs_owner_mib, MS_SPECS_OWNER_MIB);
    options_destroy(options);
    options = NULL;

    ck_ms_ok(load_words("--anyone user --user-map alice=1000 --priority-users 0..5 --node-ids free "
                        "--nodes-per-certificate 9 --specs-mib 5 --specs-owner-mib 4",
                        1, err));
    ck_assert_uint_eq(options->anyone_roles, MS_ROLE_USER);
    ck_assert_str_eq(who_map_find(&options->user_map, 1000), "alice");
    ck_assert_int_eq(options->sched.priority_users_max, 5);
    ck_assert_int_eq(options->sched.certificate_ids, 0);
    ck_assert_uint_eq(options->sched.nodes_per_certificate, 9);
    ck_assert_uint_eq(options->sched.specs_mib, 5);
    ck_assert_uint_eq(options->sched.specs_owner_mib, 4);
}
END_TEST

START_TEST(a_standing_cluster_has_the_documented_defaults)
{
    load("");
    ck_assert_int_eq(options->sched.mode, SCHED_STANDING);
    ck_assert_str_eq(options->listen, "[::]:8118");
    ck_assert_str_eq(options->socket, "/run/msched/msschedd.sock");
    ck_assert_str_eq(ms_settings_string(options->settings, "socket_group"), "msched-users");
    ck_assert_str_eq(options->database, "/var/lib/msched/state.db");
    ck_assert_int_eq(options->sched.lease_ms, 2000); /* the file */
    ck_assert_int_eq(options->sched.topo_timeout_ms, 1800000);
    ck_assert_int_eq(options->tls, OPTIONS_TLS_AUTO);
    ck_assert_int_eq(options->log_level, MS_LOG_INFO);
    ck_assert_int_eq(options->action, OPTIONS_RUN);
}
END_TEST

START_TEST(only_the_group_that_is_named_may_use_the_socket)
{
    const struct group *mine = getgrgid(getegid());
    char words[128];
    ck_assert_ptr_nonnull(mine);
    snprintf(words, sizeof(words), "--socket-group %s", mine->gr_name);
    load(words);
    ck_assert_uint_eq(options->socket_gid, getegid());
    ck_assert_uint_eq(options->socket_mode, 0660);

    load("--socket-group none");
    ck_assert_uint_eq(options->socket_gid, SOCKET_GROUP_NONE);
    ck_assert_uint_eq(options->socket_mode, 0600);

    fails2("--socket-group no-such-group", "there is no group 'no-such-group'");
    ck_ms_fails(load_words("--run-dir x --socket-group no-such-group", 0, err), MS_E_CONFIG,
                "no group");
}
END_TEST

START_TEST(without_the_built_in_group_the_socket_is_the_daemons_alone)
{
    load("");
    if (getgrnam("msched-users") == NULL) { /* a host where msched is not installed */
        ck_assert_uint_eq(options->socket_gid, SOCKET_GROUP_NONE);
        ck_assert_uint_eq(options->socket_mode, 0600);
    } else if (geteuid() == 0) {
        ck_assert_uint_eq(options->socket_gid, getgrnam("msched-users")->gr_gid);
        ck_assert_uint_eq(options->socket_mode, 0660);
    }
}
END_TEST

START_TEST(a_flag_beats_the_environment_and_that_the_file)
{
    setenv("MSCHED_LEASE_MS", "3000", 1);
    load("");
    ck_assert_int_eq(options->sched.lease_ms, 3000);
    load("--lease-ms 4000");
    ck_assert_int_eq(options->sched.lease_ms, 4000);
    load("--lease-ms=5000 --topo-timeout-s=-1");
    ck_assert_int_eq(options->sched.lease_ms, 5000);
    ck_assert_int_eq(options->sched.topo_timeout_ms, -1);
}
END_TEST

START_TEST(wrong_words_are_usage)
{
    fails("--listne x", "did you mean '--listen'");
    fails("stray", "unexpected word 'stray'");
    fails("--lease-ms 1", "1000 to 3600000");
    fails("--config", "--config needs a value");
    fails("--run-dir", "--run-dir needs a value");
    fails("--run-dir /tmp", "exclude each other");
    fails("--listen nowhere:port", "port");
    fails2("--topo-timeout-s 0", "or -1 for ever");
    fails2("--listen none --socket none", "nobody could connect");
    fails2("--socket run/s", "socket = run/s: write an absolute path, which begins with /");
    fails2("--socket unix:/run/s", "write an absolute path");
    fails2("--database none", "write the path of the file");
}
END_TEST

/* `tls_crl =` is a line that somebody did not finish: it must not let the revoked in. */
START_TEST(nothing_is_said_in_so_many_words)
{
    fails2("--tls-cert /x --tls-crl=", "tls_crl is empty: write the path of the list of revoked");
    fails2("--tls-cert /x --tls-crl=", "or none: then who was revoked gets in");
    fails2("--tls-cert=", "tls_cert is empty: write the path of certificate and key");
    fails2("--tls-cert /x --tls-ca=", "tls_ca is empty: write the path of the CA's");
    fails2("--listen=", "listen is empty: write host:port");
    fails2("--socket=", "socket is empty: write an absolute path");
    fails2("--database=", "database is empty: write the path of the file");
    FILE *file = fopen(conf, "w");
    fputs("tls_cert = /some/node.p12\ntls_crl =\n", file);
    fclose(file);
    fails2("", "tls_crl is empty");

    load("--tls-crl none");
    ck_assert_str_eq(options->files.crl_path, "");
    load("--tls off --tls-crl="); /* of no meaning there */
    setenv("MSCHED_TLS_CRL", "", 1);
    load("--tls-cert /x --tls-crl /some/list"); /* how scripts unset */
}
END_TEST

START_TEST(every_word_of_tls_has_its_meaning)
{
    load("--tls off");
    ck_assert_int_eq(options->tls, OPTIONS_TLS_OFF);
    load("--tls 0");
    ck_assert_int_eq(options->tls, OPTIONS_TLS_OFF);
    setenv("MS_ENABLE_SSL", "0", 1);
    load("");
    ck_assert_int_eq(options->tls, OPTIONS_TLS_OFF);
    setenv("MS_ENABLE_SSL", "1", 1);
    load("");
    ck_assert_int_eq(options->tls, OPTIONS_TLS_ON);
}
END_TEST

START_TEST(plain_is_for_loopback_or_said_in_so_many_words)
{
    load("--tls-cert none");
    ck_assert_int_eq(options_use_tls(options, "127.0.0.1:1", 1, NULL), 0);
    /* a service has no environment that somebody could change */
    ck_ms_fails(options_use_tls(options, "0.0.0.0:1", 0, err), MS_E_CONFIG, "msctl certs init");
    ck_ms_fails(options_use_tls(options, "0.0.0.0:1", 0, err), MS_E_CONFIG, "tls = off in /");
    ck_ms_fails(options_use_tls(options, "0.0.0.0:1", 0, err), MS_E_CONFIG, "0.0.0.0:1");

    load("--tls off");
    ck_assert_int_eq(options_use_tls(options, "0.0.0.0:1", 0, NULL), 0);

    load("--tls on"); /* then the certificate must be there */
    ck_assert_int_eq(options_use_tls(options, "127.0.0.1:1", 1, NULL), 1);

    load("--tls-cert /some/node.p12"); /* named: used, found or not */
    ck_assert_int_eq(options_use_tls(options, "127.0.0.1:1", 1, NULL), 1);
    ck_assert_str_eq(options->files.p12_path, "/some/node.p12");
}
END_TEST

START_TEST(a_private_scheduler_lives_below_its_folder)
{
    char words[256];
    char want[256];
    setenv("MS_ROLE", "MS_WORKER", 1); /* msctl run inside a job's script */
    snprintf(words, sizeof(words), "--run-dir %s", dir);

    ck_ms_ok(load_words(words, 0, err));

    ck_assert_int_eq(options->sched.mode, SCHED_RUN);
    ck_assert_str_eq(options->listen, "127.0.0.1:0");
    snprintf(want, sizeof(want), "%s/scheduler.sock", dir);
    ck_assert_str_eq(options->socket, want);
    ck_assert_uint_eq(options->socket_mode, 0600);
    snprintf(want, sizeof(want), "%s/scheduler.db", dir);
    ck_assert_str_eq(options->database, want);
    ck_assert_int_eq(options->tls, OPTIONS_TLS_ON);
    snprintf(want, sizeof(want), "%s/tls/scheduler.p12", dir);
    ck_assert_str_eq(options->files.p12_path, want);
    ck_assert_ptr_nonnull(strstr(options->files.crl_path, "/tls/crl.pem"));
    ck_assert_int_eq(options->files.crl_may_miss, 1); /* a place to look at */
}
END_TEST

START_TEST(a_dynamic_cluster_is_what_its_environment_says)
{
    setenv("MS_ROLE", "MS_SCHED", 1);
    setenv("MS_SCHED_HOST", "::1", 1);
    setenv("MS_SCHED_PORT", "18118", 1);
    setenv("MS_WORKER_NUM", "8", 1);
    setenv("MS_TOPO_TIMEOUT", "-1", 1);

    ck_ms_ok(load_words("", 0, err));

    ck_assert_int_eq(options->sched.mode, SCHED_DYNAMIC);
    ck_assert_str_eq(options->listen, "[::1]:18118");
    ck_assert_str_eq(options->socket, "");
    ck_assert_str_eq(options->database, ""); /* nothing to recover, nothing to keep */
    ck_assert_uint_eq(options->sched.worker_num, 8);
    ck_assert_int_eq(options->sched.topo_timeout_ms, -1);
    ck_assert_int_eq(options->sched.lease_ms, 600000);
    ck_assert_int_eq(options->sched.disable_heartbeat, 0);
    ck_assert_int_eq(options->tls, OPTIONS_TLS_AUTO);

    setenv("MS_NODE_TIMEOUT", "7", 1);
    setenv("MS_TOPO_TIMEOUT", "5", 1);
    setenv("MS_DISABLE_HEARTBEAT", "1", 1);
    ck_ms_ok(load_words("", 0, err));
    ck_assert_int_eq(options->sched.lease_ms, 7000);
    ck_assert_int_eq(options->sched.topo_timeout_ms, 5000);
    ck_assert_int_eq(options->sched.disable_heartbeat, 1);
    unsetenv("MS_DISABLE_HEARTBEAT");

    setenv("MS_NODE_TIMEOUT", "-1", 1); /* for ever: heartbeats go on, nobody is judged */
    ck_ms_ok(load_words("", 0, err));
    ck_assert_int_eq(options->sched.disable_heartbeat, 1);
    ck_assert_int_eq(options->sched.lease_ms, MS_LEASE_MAX_MS);

    ck_ms_fails(load_words("", 1, err), MS_E_INVALID, "unset MS_ROLE");
    ck_ms_fails(load_words("--lease-ms 2000", 0, err), MS_E_INVALID, "unknown option");
    ck_ms_fails(load_words("./none.yaml", 0, err), MS_E_INVALID, "unexpected word");
    ck_ms_fails(load_words("/etc/passwd /etc/passwd", 0, err), MS_E_INVALID, "unexpected word");
    ck_ms_ok(load_words("/etc/passwd", 0, err)); /* `msschedd ./net.yaml` of the start scripts */
    ck_ms_ok(load_words("--log-level debug", 0, err));
    ck_assert_int_eq(options->log_level, MS_LOG_DEBUG);
}
END_TEST

START_TEST(a_scheduler_that_recovers_keeps_its_database_where_the_environment_says)
{
    char path[MS_PATH_MAX + 1];
    char want[256];
    setenv("MS_ROLE", "MS_SCHED", 1);
    setenv("MS_SCHED_HOST", "127.0.0.1", 1);
    setenv("MS_SCHED_PORT", "18118", 1);
    setenv("MS_WORKER_NUM", "8", 1);
    snprintf(path, sizeof(path), "%s/r", dir);
    setenv("MS_RECOVERY_PATH", path, 1);
    ck_ms_ok(load_words("", 0, err)); /* recovery is off: nothing to keep */
    ck_assert_int_eq(options->sched.recovery, 0);
    ck_assert_str_eq(options->database, "");

    setenv("MS_ENABLE_RECOVERY", "1", 1);
    ck_ms_ok(load_words("", 0, err));
    ck_assert_int_eq(options->sched.recovery, 1);
    snprintf(want, sizeof(want), "%s/state.db", path);
    ck_assert_str_eq(options->database, want);
    ck_assert_str_eq(options->sched.database, want);

    memset(path, 'a', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    setenv("MS_RECOVERY_PATH", path, 1);
    ck_ms_fails(load_words("", 0, err), MS_E_CONFIG, "MS_RECOVERY_PATH is longer than");

    unsetenv("MS_RECOVERY_PATH");
    ck_ms_ok(load_words("", 0, err));
    ck_assert_int_eq(options->sched.recovery, 1);
    ck_assert_str_eq(options->database, "");
}
END_TEST

START_TEST(a_private_scheduler_is_not_set_up_by_the_environment_of_a_standing_one)
{
    char words[256];
    snprintf(words, sizeof(words), "--run-dir %s", dir);
    for (const struct ms_setting *row = options_rows; row->key != NULL; row++) {
        if (row->env != NULL && strcmp(row->key, "log_level") != 0) {
            setenv(row->env, "no such value", 1);
        }
    }

    int rc = load_words(words, 0, NULL);

    for (const struct ms_setting *row = options_rows; row->key != NULL; row++) {
        if (row->env != NULL) {
            unsetenv(row->env);
        }
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_str_eq(options->listen, "127.0.0.1:0");
}
END_TEST

START_TEST(the_json_says_how_often_certificates_are_looked_at)
{
    char json[128];
    snprintf(json, sizeof(json), "%s/tls.json", dir);
    FILE *file = fopen(json, "w");
    fputs("{\"server_cert_path\": \"s.p12\", \"client_cert_path\": \"c.p12\", "
          "\"ca_cert_path\": \"ca.crt\", \"cert_check_interval_in_hour\": 2}",
          file);
    fclose(file);
    ck_ms_ok(load_words("", 1, err));
    ck_assert_int_eq(options_check_s(options), 86400);

    setenv("MS_TLS_CONFIG", json, 1);
    ck_ms_ok(load_words("", 1, err));

    ck_assert_int_eq(options_check_s(options), 7200);
}
END_TEST

START_TEST(the_token_secret_is_random)
{
    uint8_t first[MS_TOKEN_LEN];
    load("");
    memcpy(first, options->sched.secret, sizeof(first));
    load("");
    ck_assert_mem_ne(first, options->sched.secret, sizeof(first));
}
END_TEST

START_TEST(help_and_version_need_no_legal_settings)
{
    setenv("MSCHED_LEASE_MS", "nonsense", 1);
    load("--help");
    ck_assert_int_eq(options->action, OPTIONS_HELP);
    load("--version");
    ck_assert_int_eq(options->action, OPTIONS_VERSION);
    fails2("--check-config", "MSCHED_LEASE_MS");
}
END_TEST

START_TEST(a_reload_knows_what_it_cannot_change)
{
    char names[128];
    struct options *before = NULL;
    load("");
    before = options;
    options = NULL;
    load("--log-level debug --tls-crl /x --lease-ms 9000");
    ck_assert_int_eq(options_keep_fixed(before, options, names, sizeof(names), NULL), 0);
    ck_assert_str_eq(names, "");
    load("--listen none --topo-timeout-s 9");
    ck_assert_int_eq(options_keep_fixed(before, options, names, sizeof(names), NULL), 0);
    ck_assert_str_eq(names, "listen topo_timeout_s");
    options_destroy(before);
}
END_TEST

START_TEST(after_a_reload_the_options_say_what_runs)
{
    char names[128];
    load("--listen 127.0.0.1:0 --database /d/a.db --tls off");
    struct options *runs = options;
    options = NULL;
    for (int i = 0; i < 2; i++) { /* they still differ the second time */
        load("--listen [::]:9000 --database /d/b.db --socket none --tls auto --lease-ms 9000");
        ck_assert_int_eq(options_keep_fixed(runs, options, names, sizeof(names), NULL), 0);
        ck_assert_str_eq(names, "listen socket database tls");
        ck_assert_str_eq(options->listen, "127.0.0.1:0");
        ck_assert_str_eq(options->database, "/d/a.db");
        ck_assert_str_eq(options->socket, runs->socket);
        ck_assert_int_eq(options->tls, OPTIONS_TLS_OFF);
        ck_assert_int_eq(options->sched.lease_ms, 9000);
        ck_assert_str_eq(ms_settings_string(options->settings, "listen"), "127.0.0.1:0");
        options_destroy(runs);
        runs = options;
        options = NULL;
    }
    load("--listen 127.0.0.1:0 --database /d/a.db --tls off --lease-ms 9000"); /* taken back */
    ck_assert_int_eq(options_keep_fixed(runs, options, names, sizeof(names), NULL), 0);
    ck_assert_str_eq(names, "");
    options_destroy(runs);
}
END_TEST

START_TEST(the_start_line_holds_what_decides)
{
    char line[1024];
    load("--listen 127.0.0.1:0");
    options_format(options, line, sizeof(line));
    ck_assert_ptr_nonnull(strstr(line, "mode=standing listen=\"127.0.0.1:0\""));
    ck_assert_ptr_nonnull(strstr(line, "lease_ms=2000"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *tcase = tcase_create("options");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, who_may_what_is_the_operators);
    tcase_add_test(tcase, a_standing_cluster_has_the_documented_defaults);
    tcase_add_test(tcase, only_the_group_that_is_named_may_use_the_socket);
    tcase_add_test(tcase, without_the_built_in_group_the_socket_is_the_daemons_alone);
    tcase_add_test(tcase, a_flag_beats_the_environment_and_that_the_file);
    tcase_add_test(tcase, wrong_words_are_usage);
    tcase_add_test(tcase, nothing_is_said_in_so_many_words);
    tcase_add_test(tcase, every_word_of_tls_has_its_meaning);
    tcase_add_test(tcase, plain_is_for_loopback_or_said_in_so_many_words);
    tcase_add_test(tcase, a_private_scheduler_lives_below_its_folder);
    tcase_add_test(tcase, a_private_scheduler_is_not_set_up_by_the_environment_of_a_standing_one);
    tcase_add_test(tcase, the_json_says_how_often_certificates_are_looked_at);
    tcase_add_test(tcase, a_dynamic_cluster_is_what_its_environment_says);
    tcase_add_test(tcase, a_scheduler_that_recovers_keeps_its_database_where_the_environment_says);
    tcase_add_test(tcase, the_token_secret_is_random);
    tcase_add_test(tcase, help_and_version_need_no_legal_settings);
    tcase_add_test(tcase, a_reload_knows_what_it_cannot_change);
    tcase_add_test(tcase, after_a_reload_the_options_say_what_runs);
    tcase_add_test(tcase, the_start_line_holds_what_decides);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
