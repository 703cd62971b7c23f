/* test_cli_option.c - msctl's options: what parses, what is refused and how */
#include "cli/cli.h"
#include "cli/option.h"
#include "tests/test.h"

static const struct cli_option options[] = {
    {"workers", 'n', "N", "workers", NULL},
    {"set", 0, "K=V", "override", NULL},
    {"follow", 'f', NULL, "go on", NULL},
    {"timeout", 0, "TIME", "give up", NULL},
    {"someday", 0, NULL, "", "it is not built yet"},
    {NULL, 0, NULL, NULL, NULL},
};

static struct cli_args args;

/* Parses words, a NULL-terminated list. */
static int parse(const char *const *words, struct ms_err *err)
{
    const struct cli_option *const tables[] = {options, cli_common_options};
    int n = 0;
    while (words[n] != NULL) {
        n++;
    }
    memset(&args, 0, sizeof(args));
    args.command = "msctl test";
    return cli_options_parse(tables, 2, n, (char *const *)words, 0, NULL, &args, err);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

START_TEST(every_spelling_of_a_value_is_the_same)
{
    const char *const *const spellings[] = {
        WORDS("-n", "8", "job.yaml"), WORDS("-n8", "job.yaml"), WORDS("--workers", "8", "job.yaml"),
        WORDS("--workers=8", "job.yaml"), WORDS("job.yaml", "-n", "8")};
    for (size_t i = 0; i < MS_ARRAY_SIZE(spellings); i++) {
        int64_t n = 0;

        ck_ms_ok(parse(spellings[i], err));
        ck_ms_ok(cli_number(&args, "workers", 1, 10, 0, &n, err));

        ck_assert_int_eq(n, 8);
        ck_assert_uint_eq(args.n_words, 1);
        ck_assert_str_eq(args.words[0], "job.yaml");
    }
}
END_TEST

START_TEST(the_last_value_counts_and_all_can_be_had_in_order)
{
    const char *values[4];

    ck_ms_ok(parse(WORDS("--set", "a=1", "--set=b=2", "--set", "a=3"), err));

    ck_assert_str_eq(cli_value(&args, "set"), "a=3");
    ck_assert_uint_eq(cli_values(&args, "set", values, 4), 3);
    ck_assert_str_eq(values[1], "b=2");
    ck_assert_ptr_null(cli_value(&args, "timeout"));
}
END_TEST

START_TEST(two_dashes_end_the_options)
{
    ck_ms_ok(parse(WORDS("-f", "--", "--workers", "-"), err));

    ck_assert_int_eq(cli_has(&args, "follow"), 1);
    ck_assert_int_eq(cli_has(&args, "workers"), 0);
    ck_assert_uint_eq(args.n_words, 2);
    ck_assert_str_eq(args.words[0], "--workers");
}
END_TEST

START_TEST(options_before_the_command_stop_at_it)
{
    const struct cli_option *const tables[] = {cli_common_options};
    int next = -1;
    memset(&args, 0, sizeof(args));
    args.command = "msctl";

    ck_ms_ok(cli_options_parse(tables, 1, 4,
                               (char *const *)WORDS("--server", "h:1", "run", "--set"), 1, &next,
                               &args, err));

    ck_assert_int_eq(next, 2);
    ck_assert_str_eq(cli_value(&args, "server"), "h:1");
}
END_TEST

START_TEST(an_unknown_option_comes_with_the_nearest)
{
    ck_ms_fails(parse(WORDS("--worksers", "8"), err), MS_E_INVALID, "did you mean --workers?");
    ck_ms_fails(parse(WORDS("--jsno"), err), MS_E_INVALID, "--json");
    ck_ms_fails(parse(WORDS("-x"), err), MS_E_INVALID, "unknown option -x");
    ck_ms_fails(parse(WORDS("--zzzzzzzz=1"), err), MS_E_INVALID, "--help");
}
END_TEST

START_TEST(values_that_are_missing_or_too_much_are_refused)
{
    ck_ms_fails(parse(WORDS("--workers"), err), MS_E_INVALID, "--workers N");
    ck_ms_fails(parse(WORDS("--follow=yes"), err), MS_E_INVALID, "takes no value");
    ck_ms_fails(parse(WORDS("-fx"), err), MS_E_INVALID, "takes no value");
}
END_TEST

START_TEST(what_comes_later_is_refused_by_name)
{
    ck_ms_fails(parse(WORDS("--someday"), err), MS_E_UNSUPPORTED, "--someday comes later");
    ck_assert_ptr_nonnull(strstr(cli_command_find("resume")->later, "msctl submit --resume JOB"));
}
END_TEST

START_TEST(numbers_have_a_range_and_no_tail)
{
    int64_t n = 77;
    const char *const bad[] = {"",    "x", "8x", " 8", "0x8",
                               "1e3", "0", "11", "-1", "99999999999999999999"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(bad); i++) {
        ck_ms_fails(cli_parse_number("thing", bad[i], 1, 10, &n, err), MS_E_INVALID, "1 to 10");
    }
    ck_assert_int_eq(n, 77);
    ck_ms_ok(cli_parse_number("thing", "10", 1, 10, &n, err));
    ck_assert_int_eq(n, 10);
    ck_ms_ok(cli_parse_number("thing", "-3", -5, 10, &n, err));
    ck_assert_int_eq(n, -3);
}
END_TEST

START_TEST(times_have_units)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"30", 30000},   {"30s", 30000},  {"0", 0},         {"0.25", 250},
                {"1.5m", 90000}, {"2h", 7200000}, {"1d", 86400000}, {"20ms", 20}};
    const char *const bad[] = {"", "s", "-1", "1e3", "0x10", "inf", "nan", "5 m", "1w", "400d"};
    int64_t ms = -7;
    for (size_t i = 0; i < MS_ARRAY_SIZE(good); i++) {
        ck_ms_ok(cli_parse_duration_ms("time", good[i].text, &ms, err));
        ck_assert_int_eq(ms, good[i].ms);
    }
    ms = -7;
    for (size_t i = 0; i < MS_ARRAY_SIZE(bad); i++) {
        ck_ms_fails(cli_parse_duration_ms("time", bad[i], &ms, err), MS_E_INVALID, "no time");
    }
    ck_assert_int_eq(ms, -7);
}
END_TEST

START_TEST(the_number_of_words_is_checked)
{
    ck_ms_ok(parse(WORDS("a", "b"), err));

    ck_ms_ok(cli_need_words(&args, 1, 2, "JOB", err));
    ck_ms_fails(cli_need_words(&args, 3, 9, "JOB", err), MS_E_INVALID, "JOB is missing");
    ck_ms_fails(cli_need_words(&args, 0, 1, "JOB", err), MS_E_INVALID, "'b' is one word too many");
}
END_TEST

START_TEST(every_command_has_a_summary_or_says_what_it_waits_for)
{
    for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
        ck_assert_ptr_eq(cli_command_find(c->name), c);
        ck_assert_msg((c->later == NULL) == (c->run != NULL), "%s", c->name);
        ck_assert_msg((c->later == NULL) == (c->summary != NULL), "%s", c->name);
        for (const struct cli_option *o = c->options; o != NULL && o->name != NULL; o++) {
            for (const struct cli_option *k = cli_common_options; k->name != NULL; k++) {
                ck_assert_str_ne(o->name, k->name);
                ck_assert_msg(o->letter == 0 || o->letter != k->letter, "%s -%c", c->name,
                              o->letter);
            }
        }
    }
}
END_TEST

START_TEST(job_states_decide_the_exit_status)
{
    static const struct {
        const char *state;
        int status;
    } rows[] = {{"SUCCEEDED", 0}, {"FAILED", 1}, {"CANCELLED", 5}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        Ms__JobInfo job = MS__JOB_INFO__INIT;
        job.state = (char *)rows[i].state;
        ck_assert_int_eq(cli_job_status(&job), rows[i].status);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_option");
    TCase *tc = tcase_create("option");
    tcase_add_test(tc, every_spelling_of_a_value_is_the_same);
    tcase_add_test(tc, the_last_value_counts_and_all_can_be_had_in_order);
    tcase_add_test(tc, two_dashes_end_the_options);
    tcase_add_test(tc, options_before_the_command_stop_at_it);
    tcase_add_test(tc, an_unknown_option_comes_with_the_nearest);
    tcase_add_test(tc, values_that_are_missing_or_too_much_are_refused);
    tcase_add_test(tc, what_comes_later_is_refused_by_name);
    tcase_add_test(tc, numbers_have_a_range_and_no_tail);
    tcase_add_test(tc, times_have_units);
    tcase_add_test(tc, the_number_of_words_is_checked);
    tcase_add_test(tc, every_command_has_a_summary_or_says_what_it_waits_for);
    tcase_add_test(tc, job_states_decide_the_exit_status);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
