/* test_cli_paths.c - paths of a job: what the submitter's environment says */
#include "cli/paths.h"

#include "tests/test.h"

#include <sys/stat.h>
#include <unistd.h>

static struct job job;
static struct cli cli;
static char *said;
static size_t said_size;

static void begin(void)
{
    memset(&job, 0, sizeof(job));
    memset(&cli, 0, sizeof(cli));
    cli.err = open_memstream(&said, &said_size);
    job.dataset.kind = DATA_MNIST;
    setenv("HERE", "/data", 1);
    unsetenv("NOT_HERE");
    setenv("EMPTY", "", 1);
}

static void end(void)
{
    fclose(cli.err);
    free(said);
}

static const char *words(void)
{
    fflush(cli.err);
    return said;
}

static void set(const char *path)
{
    snprintf(job.dataset.path, sizeof(job.dataset.path), "%s", path);
}

START_TEST(what_is_set_here_is_expanded_and_said)
{
    set("${HERE}/mnist/${HERE}");

    ck_ms_ok(cli_paths_expand(&cli, &job, err));

    ck_assert_str_eq(job.dataset.path, "/data/mnist//data");
    ck_assert_str_eq(words(), "msctl: dataset.path: ${HERE}/mnist/${HERE} is /data/mnist//data, "
                              "from your environment\n");
}
END_TEST

START_TEST(what_is_not_set_is_left_to_the_nodes)
{
    static const char *const paths[] = {"${NOT_HERE}/x", "${EMPTY}/x", "/a/${", "/a/${}",
                                        "/a/$HERE"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(paths); i++) {
        set(paths[i]);
        ck_ms_ok(cli_paths_expand(&cli, &job, err));
        ck_assert_str_eq(job.dataset.path, paths[i]);
    }
    ck_assert_ptr_nonnull(
        strstr(words(), "${NOT_HERE}/x is not set here, so each node uses its own"));
    ck_assert_ptr_null(strstr(words(), "/a/"));
    set("${NOT_HERE}/${HERE}");
    ck_ms_ok(cli_paths_expand(&cli, &job, err));
    ck_assert_str_eq(job.dataset.path, "${NOT_HERE}//data");
}
END_TEST

START_TEST(every_input_path_is_expanded)
{
    job.has_evaluate = 1;
    snprintf(job.evaluate_dataset.path, sizeof(job.evaluate_dataset.path), "${HERE}/test");
    snprintf(job.initial_weights, sizeof(job.initial_weights), "${HERE}/w.safetensors");
    set("/plain");

    ck_ms_ok(cli_paths_expand(&cli, &job, err));

    ck_assert_str_eq(job.evaluate_dataset.path, "/data/test");
    ck_assert_str_eq(job.initial_weights, "/data/w.safetensors");
    ck_assert_ptr_nonnull(strstr(words(), "evaluate.dataset.path"));
}
END_TEST

START_TEST(a_vocabulary_is_expanded)
{
    set("/plain");
    snprintf(job.dataset.vocabulary, sizeof(job.dataset.vocabulary), "${HERE}/words.txt");

    ck_ms_ok(cli_paths_expand(&cli, &job, err));

    ck_assert_str_eq(job.dataset.vocabulary, "/data/words.txt");
    ck_assert_ptr_nonnull(strstr(words(), "dataset.vocabulary: ${HERE}/words.txt is "));
}
END_TEST

static void give(struct data_spec *spec, const char *arguments)
{
    spec->kind = DATA_PROGRAM;
    snprintf(spec->arguments, sizeof(spec->arguments), "%s", arguments);
}

START_TEST(arguments_are_expanded)
{
    job.has_evaluate = 1;
    give(&job.dataset, "--root\n${HERE}/x\n--level=${LEVEL}\n${NOT_HERE}");
    give(&job.evaluate_dataset, "${LEVEL}");
    setenv("LEVEL", "3", 1);

    ck_ms_ok(cli_paths_expand(&cli, &job, err));

    ck_assert_str_eq(job.dataset.arguments, "--root\n/data/x\n--level=3\n${NOT_HERE}");
    ck_assert_str_eq(job.evaluate_dataset.arguments, "3"); /* it need not be a path */
    ck_assert_ptr_nonnull(strstr(words(), "dataset.arguments: ${HERE}/x is /data/x, from your"));
    ck_assert_ptr_nonnull(strstr(words(), "dataset.arguments: ${NOT_HERE} is not set here"));
    ck_assert_ptr_null(strstr(words(), "--root"));
}
END_TEST

START_TEST(an_argument_stays_one)
{
    setenv("LEVEL", "3\n--other", 1);
    give(&job.dataset, "--level=${LEVEL}");

    ck_ms_fails(cli_paths_expand(&cli, &job, err), MS_E_INVALID,
                "dataset.arguments: --level=${LEVEL} has a line break when expanded");
}
END_TEST

START_TEST(too_long_arguments_are_refused)
{
    char value[DATA_ARGUMENTS_MAX];
    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    setenv("LEVEL", value, 1);
    give(&job.dataset, "${LEVEL}");
    ck_ms_ok(cli_paths_expand(&cli, &job, err));
    give(&job.dataset, "ab\n${LEVEL}");

    ck_ms_fails(cli_paths_expand(&cli, &job, err), MS_E_INVALID, "longer than 1023 bytes");
}
END_TEST

START_TEST(relative_value_counts_from_here)
{
    char here[1024];
    char want[1100];
    setenv("HERE", "data", 1);
    set("${HERE}/x");

    ck_ms_ok(cli_paths_expand(&cli, &job, err));

    snprintf(want, sizeof(want), "%s/data/x", getcwd(here, sizeof(here)));
    ck_assert_str_eq(job.dataset.path, want);
}
END_TEST

START_TEST(too_long_a_value_is_refused)
{
    char value[MS_PATH_MAX + 10];
    memset(value, 'x', sizeof(value) - 1);
    value[0] = '/';
    value[sizeof(value) - 1] = '\0';
    setenv("HERE", value, 1);
    set("${HERE}");

    ck_ms_fails(cli_paths_expand(&cli, &job, err), MS_E_INVALID, "longer than");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_paths");
    TCase *tc = tcase_create("paths");
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, what_is_set_here_is_expanded_and_said);
    tcase_add_test(tc, what_is_not_set_is_left_to_the_nodes);
    tcase_add_test(tc, every_input_path_is_expanded);
    tcase_add_test(tc, a_vocabulary_is_expanded);
    tcase_add_test(tc, arguments_are_expanded);
    tcase_add_test(tc, an_argument_stays_one);
    tcase_add_test(tc, too_long_arguments_are_refused);
    tcase_add_test(tc, relative_value_counts_from_here);
    tcase_add_test(tc, too_long_a_value_is_refused);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
