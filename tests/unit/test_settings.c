/* test_settings.c - where a setting comes from, and what is said when it is wrong */
#include "proto/settings.h"
#include "tests/test.h"

static const struct ms_setting table[] = {
    {"lease_ms", "--lease-ms", "TEST_LEASE", MS_SET_INT, 1000, 3600000, NULL, "10000", 1,
     "a silent node is lost after this"},
    {"server", "--server", "TEST_SERVER", MS_SET_STRING, 0, 0, NULL, NULL, 0, "host:port"},
    {"plain", "--plain", "TEST_PLAIN", MS_SET_BOOL, 0, 0, NULL, "false", 0, "no TLS"},
    {"log_level", "--log-level", NULL, MS_SET_ENUM, 0, 0, "error|info|debug", "info", 1,
     "what is logged"},
    {"secret_depth", NULL, NULL, MS_SET_INT, -5, 5, NULL, NULL, 0, "only in the file"},
    {NULL, NULL, NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, NULL},
};

enum { ARGS_MAX = 16 };

struct args {
    int argc;
    char *argv[ARGS_MAX + 1];
};

/* "a b c" as a command line; the words live in a static buffer. */
static struct args split(const char *line)
{
    static char buf[512];
    struct args args = {0, {NULL}};
    snprintf(buf, sizeof(buf), "prog %s", line);
    for (char *word = buf; *word != '\0';) {
        size_t n = strcspn(word, " ");
        ck_assert_int_lt(args.argc, ARGS_MAX);
        args.argv[args.argc++] = word;
        word += n;
        if (*word == ' ') {
            *word++ = '\0';
        }
    }
    return args;
}

static const char *file_of(const char *dir, const char *text)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/test.conf", dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    return path;
}

/* Loads and destroys: for cases that only look at the error. */
static int try_load(const char *file, const char *line, struct ms_err *err)
{
    struct args args = split(line);
    struct ms_settings *s = NULL;
    int rc = ms_settings_load(table, file, 1, &args.argc, args.argv, &s, err);
    ms_settings_destroy(s);
    return rc;
}

static void clear_environment(void)
{
    unsetenv("TEST_LEASE");
    unsetenv("TEST_SERVER");
    unsetenv("TEST_PLAIN");
}

START_TEST(flag_beats_environment_beats_file_beats_built_in)
{
    const char *dir = test_dir_make();
    const char *file = file_of(dir, "lease_ms = 2000\n");
    struct ms_settings *s = NULL;
    struct args args = split("");
    clear_environment();

    ck_ms_ok(ms_settings_load(table, NULL, 0, &args.argc, args.argv, &s, err));
    ck_assert_int_eq(ms_settings_int(s, "lease_ms"), 10000);
    ck_assert_int_eq(ms_settings_source(s, "lease_ms"), MS_FROM_BUILTIN);
    ms_settings_destroy(s);

    ck_ms_ok(ms_settings_load(table, file, 0, &args.argc, args.argv, &s, err));
    ck_assert_int_eq(ms_settings_int(s, "lease_ms"), 2000);
    ck_assert_int_eq(ms_settings_source(s, "lease_ms"), MS_FROM_FILE);
    ms_settings_destroy(s);

    setenv("TEST_LEASE", "3000", 1);
    ck_ms_ok(ms_settings_load(table, file, 0, &args.argc, args.argv, &s, err));
    ck_assert_int_eq(ms_settings_int(s, "lease_ms"), 3000);
    ck_assert_int_eq(ms_settings_source(s, "lease_ms"), MS_FROM_ENV);
    ms_settings_destroy(s);

    args = split("--lease-ms 4000");
    ck_ms_ok(ms_settings_load(table, file, 0, &args.argc, args.argv, &s, err));
    ck_assert_int_eq(ms_settings_int(s, "lease_ms"), 4000);
    ck_assert_int_eq(ms_settings_source(s, "lease_ms"), MS_FROM_FLAG);
    ms_settings_destroy(s);
    test_dir_remove(dir);
}
END_TEST

START_TEST(words_that_are_no_flags_stay_in_argv)
{
    struct ms_settings *s = NULL;
    struct args args = split("submit --plain job.yaml --lease-ms=5000 - -- --server x");
    clear_environment();

    ck_ms_ok(ms_settings_load(table, NULL, 0, &args.argc, args.argv, &s, err));

    ck_assert_int_eq(args.argc, 6);
    ck_assert_str_eq(args.argv[1], "submit");
    ck_assert_str_eq(args.argv[2], "job.yaml");
    ck_assert_str_eq(args.argv[3], "-");
    ck_assert_str_eq(args.argv[4], "--server");
    ck_assert_str_eq(args.argv[5], "x");
    ck_assert_ptr_null(args.argv[6]);
    ck_assert_int_eq(ms_settings_bool(s, "plain"), 1);
    ck_assert_int_eq(ms_settings_int(s, "lease_ms"), 5000);
    ck_assert_ptr_null(ms_settings_string(s, "server"));
    ms_settings_destroy(s);
}
END_TEST

START_TEST(a_file_may_have_comments_quotes_and_blank_lines)
{
    const char *dir = test_dir_make();
    const char *file = file_of(dir, "# head\n\n  server\t=  head:1  # behind\nlog_level=debug\n"
                                    "plain = \"yes\"\nsecret_depth = -5\n");
    struct ms_settings *s = NULL;
    struct args args = split("");
    clear_environment();

    ck_ms_ok(ms_settings_load(table, file, 1, &args.argc, args.argv, &s, err));

    ck_assert_str_eq(ms_settings_string(s, "server"), "head:1");
    ck_assert_str_eq(ms_settings_string(s, "log_level"), "debug");
    ck_assert_int_eq(ms_settings_int(s, "log_level"), 2);
    ck_assert_int_eq(ms_settings_bool(s, "plain"), 1);
    ck_assert_int_eq(ms_settings_int(s, "secret_depth"), -5);
    ms_settings_destroy(s);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_wrong_value_is_named_with_its_range_and_source)
{
    const char *dir = test_dir_make();
    clear_environment();

    ck_ms_fails(try_load(NULL, "--lease-ms 999", err), MS_E_INVALID,
                "lease_ms = 999 (from flag --lease-ms): must be a whole number of 1000 to 3600000");
    ck_ms_fails(try_load(NULL, "--lease-ms 10s", err), MS_E_INVALID, "10s");
    ck_ms_fails(try_load(NULL, "--lease-ms=", err), MS_E_INVALID, "must be a whole number");
    ck_ms_fails(try_load(NULL, "--lease-ms=99999999999999999999", err), MS_E_INVALID, "must be");
    ck_ms_fails(try_load(NULL, "--plain=maybe", err), MS_E_INVALID, "must be true or false");
    ck_ms_fails(try_load(NULL, "--log-level loud", err), MS_E_INVALID, "one of error|info|debug");
    ck_ms_fails(try_load(NULL, "--log-level inf", err), MS_E_INVALID, "one of error|info|debug");
    setenv("TEST_LEASE", "0", 1);
    ck_ms_fails(try_load(NULL, "", err), MS_E_CONFIG, "(from environment TEST_LEASE)");
    ck_ms_fails(try_load(NULL, "--lease-ms 2000", err), MS_E_CONFIG, "environment TEST_LEASE");
    clear_environment();
    ck_ms_fails(try_load(file_of(dir, "\nsecret_depth = 6\n"), "", err), MS_E_CONFIG,
                "line 2): must be a whole number of -5 to 5");
    test_dir_remove(dir);
}
END_TEST

START_TEST(an_unknown_name_is_refused_with_the_nearest_known_one)
{
    const char *dir = test_dir_make();
    clear_environment();

    ck_ms_fails(try_load(NULL, "--laese-ms 2000", err), MS_E_INVALID,
                "unknown option '--laese-ms'; did you mean '--lease-ms'?");
    ck_ms_fails(try_load(NULL, "--lease_ms=2000", err), MS_E_INVALID, "'--lease-ms'?");
    ck_ms_fails(try_load(NULL, "-x", err), MS_E_INVALID, "unknown option '-x'; see --help");
    ck_ms_fails(try_load(NULL, "--server", err), MS_E_INVALID, "--server needs a value");
    ck_ms_fails(try_load(file_of(dir, "lease-ms = 2000\n"), "", err), MS_E_CONFIG,
                "line 1: unknown setting 'lease-ms'; did you mean 'lease_ms'?");
    ck_ms_fails(try_load(file_of(dir, "zebra = 1\n"), "", err), MS_E_CONFIG, "'zebra'");
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_broken_file_is_named_with_its_line)
{
    const char *dir = test_dir_make();
    char text[6000];
    clear_environment();

    ck_ms_fails(try_load(file_of(dir, "lease_ms 2000\n"), "", err), MS_E_CONFIG,
                "line 1: 'lease_ms 2000' is no 'key = value'");
    ck_ms_fails(try_load(file_of(dir, "plain = no\nplain = yes\n"), "", err), MS_E_CONFIG,
                "line 2: plain stands on line 1 already");
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    ck_ms_fails(try_load(file_of(dir, text), "", err), MS_E_CONFIG, "line 1 is longer than");
    ck_ms_fails(try_load("/nonexistent/x.conf", "", err), MS_E_CONFIG, "/nonexistent/x.conf");
    ck_ms_fails(try_load(dir, "", err), MS_E_CONFIG, dir); /* a directory */
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_file_that_need_not_exist_may_be_missing)
{
    struct ms_settings *s = NULL;
    struct args args = split("");
    clear_environment();
    ck_ms_ok(ms_settings_load(table, "/nonexistent/x.conf", 0, &args.argc, args.argv, &s, err));
    ck_assert_int_eq(ms_settings_int(s, "lease_ms"), 10000);
    ms_settings_destroy(s);
    ms_settings_destroy(NULL);
}
END_TEST

START_TEST(an_empty_variable_counts_as_unset)
{
    struct ms_settings *s = NULL;
    struct args args = split("");
    clear_environment();
    setenv("TEST_LEASE", "", 1);
    ck_ms_ok(ms_settings_load(table, NULL, 0, &args.argc, args.argv, &s, err));
    ck_assert_int_eq(ms_settings_source(s, "lease_ms"), MS_FROM_BUILTIN);
    ms_settings_destroy(s);
}
END_TEST

static void read_back(FILE *file, char *buf, size_t size)
{
    rewind(file);
    buf[fread(buf, 1, size - 1, file)] = '\0';
    fclose(file);
}

START_TEST(every_value_is_printed_with_its_source)
{
    const char *dir = test_dir_make();
    struct ms_settings *s = NULL;
    struct args args = split("--plain");
    char buf[2048];
    char want[256];
    clear_environment();
    setenv("TEST_SERVER", "h:1", 1);
    const char *path = file_of(dir, "#\nlog_level = error\n");
    ck_ms_ok(ms_settings_load(table, path, 1, &args.argc, args.argv, &s, err));

    FILE *out = tmpfile();
    ms_settings_print(s, out);
    read_back(out, buf, sizeof(buf));

    ck_assert_ptr_nonnull(strstr(buf, "lease_ms = 10000   # from: built-in\n"));
    ck_assert_ptr_nonnull(strstr(buf, "server = h:1   # from: environment TEST_SERVER\n"));
    ck_assert_ptr_nonnull(strstr(buf, "plain = true   # from: flag --plain\n"));
    snprintf(want, sizeof(want), "log_level = error   # from: file %s, line 2\n", path);
    ck_assert_ptr_nonnull(strstr(buf, want));
    ck_assert_ptr_nonnull(strstr(buf, "# secret_depth is not set\n"));

    /* what was printed can be used as a file again */
    clear_environment();
    args = split("");
    ms_settings_destroy(s);
    ck_ms_ok(ms_settings_load(table, file_of(dir, buf), 1, &args.argc, args.argv, &s, err));
    ck_assert_str_eq(ms_settings_string(s, "server"), "h:1");
    ms_settings_destroy(s);
    test_dir_remove(dir);
}
END_TEST

START_TEST(help_names_flag_range_default_and_variable)
{
    char buf[2048];
    FILE *out = tmpfile();
    ms_settings_usage(table, out);
    read_back(out, buf, sizeof(buf));

    ck_assert_ptr_nonnull(strstr(buf, "--lease-ms N"));
    ck_assert_ptr_nonnull(strstr(buf, "(1000 to 3600000) [10000] $TEST_LEASE"));
    ck_assert_ptr_nonnull(strstr(buf, "(error|info|debug) [info]"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("settings");
    TCase *tc = tcase_create("settings");
    tcase_add_test(tc, flag_beats_environment_beats_file_beats_built_in);
    tcase_add_test(tc, words_that_are_no_flags_stay_in_argv);
    tcase_add_test(tc, a_file_may_have_comments_quotes_and_blank_lines);
    tcase_add_test(tc, a_wrong_value_is_named_with_its_range_and_source);
    tcase_add_test(tc, an_unknown_name_is_refused_with_the_nearest_known_one);
    tcase_add_test(tc, a_broken_file_is_named_with_its_line);
    tcase_add_test(tc, a_file_that_need_not_exist_may_be_missing);
    tcase_add_test(tc, an_empty_variable_counts_as_unset);
    tcase_add_test(tc, every_value_is_printed_with_its_source);
    tcase_add_test(tc, help_names_flag_range_default_and_variable);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
