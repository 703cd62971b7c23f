/* test_metrics.c - metrics.jsonl and how losses are printed */
#include "libworker/train/metrics.h"
#include "tests/test.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

static const char *dir;
static char path[128];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/metrics.jsonl", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static const char *slurp(void)
{
    static char text[8192];
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(losses_print_as_numpy_prints_float32)
{
    static const struct {
        float loss;
        const char *text;
    } cases[] = {{2.4686084F, "2.4686084"},
                 {1.0F, "1.0"},
                 {100.0F, "100.0"},
                 {0.1F, "0.1"},
                 {1e-5F, "1e-05"},
                 {35.527402925F, "35.527405"},
                 {0.0F, "0.0"},
                 {120000.0F, "120000.0"},
                 {-0.5F, "-0.5"}};
    char buf[32];

    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        metrics_format_loss(cases[i].loss, buf, sizeof(buf));
        ck_assert_msg(strtof(buf, NULL) == cases[i].loss, "%s does not read back", buf);
        if (i != 5) { /* the decimal of the reference is no float32 */
            ck_assert_str_eq(buf, cases[i].text);
        }
    }
    ck_assert_str_eq(metrics_format_loss((float)NAN, buf, sizeof(buf)), "nan");
    ck_assert_str_eq(metrics_format_loss(-(float)INFINITY, buf, sizeof(buf)), "-inf");
}
END_TEST

START_TEST(a_step_an_evaluation_and_the_end_are_one_line_each)
{
    struct metrics *metrics = NULL;
    struct metrics_step step = {.generation = 3,
                                .epoch = 1,
                                .step = 7,
                                .loss = 0.5F,
                                .samples_per_s = 10,
                                .step_ms = 2,
                                .comm_wait_ms = 0.25};
    struct metrics_done done = {
        .steps = 7, .weights_sha256 = "aa", .plan_sha256 = "bb", .seconds = 1.5};

    ck_ms_ok(metrics_open(path, &metrics, err));
    ck_ms_ok(metrics_put_step(metrics, &step, err));
    ck_ms_ok(metrics_put_eval(metrics, 1, 0.25, 0.875, err));
    ck_ms_ok(metrics_put_done(metrics, &done, err));
    metrics_close(metrics);

    const char *text = slurp();
    ck_assert_ptr_nonnull(strstr(text, "\"generation\":3,\"epoch\":1,\"step\":7,\"loss\":0.5,"
                                       "\"loss_hex\":\"0x1p-1\",\"samples_per_s\":10.00,"
                                       "\"step_ms\":2.000,\"comm_wait_ms\":0.250}\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n{\"epoch\":1,\"eval_loss\":0.25,\"accuracy\":0.875}\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n{\"done\":true,\"steps\":7,\"weights_sha256\":\"aa\","
                                       "\"plan_sha256\":\"bb\",\"seconds\":1.500}\n"));
}
END_TEST

START_TEST(what_is_not_finite_is_null_for_json_has_no_word_for_it)
{
    struct metrics *metrics = NULL;
    struct metrics_step step = {.generation = 1, .epoch = 1, .step = 1, .loss = (float)NAN};

    ck_ms_ok(metrics_open(path, &metrics, err));
    ck_ms_ok(metrics_put_step(metrics, &step, err));
    ck_ms_ok(metrics_put_eval(metrics, 1, (double)INFINITY, (double)NAN, err));
    metrics_close(metrics);

    const char *text = slurp();
    ck_assert_ptr_nonnull(strstr(text, "\"loss\":null,\"loss_hex\":\"nan\","));
    ck_assert_ptr_nonnull(strstr(text, "\n{\"epoch\":1,\"eval_loss\":null,\"accuracy\":null}\n"));
}
END_TEST

START_TEST(a_torn_last_line_is_cut_off)
{
    struct metrics *metrics = NULL;
    write_file("{\"step\":1}\n{\"step\":2}\n{\"ste");

    ck_ms_ok(metrics_open(path, &metrics, err));
    metrics_close(metrics);

    ck_assert_str_eq(slurp(), "{\"step\":1}\n{\"step\":2}\n");
}
END_TEST

START_TEST(a_file_that_is_one_torn_line_becomes_empty)
{
    struct metrics *metrics = NULL;
    char big[6000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    write_file(big);

    ck_ms_ok(metrics_open(path, &metrics, err));
    metrics_close(metrics);

    ck_assert_str_eq(slurp(), "");
}
END_TEST

START_TEST(a_disk_that_fills_up_within_a_line_is_named_and_not_an_older_error)
{
    struct metrics *metrics = NULL;
    struct metrics_step step = {.generation = 1, .epoch = 1, .step = 1, .loss = 1};
    struct ms_err why = {0, ""};
    const struct rlimit small = {50, RLIM_INFINITY}; /* less than a line, as a last free block is */
    ck_ms_ok(metrics_open(path, &metrics, err));
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    errno = EAGAIN;

    int rc = metrics_put_step(metrics, &step, &why);

    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &all), 0);
    ck_assert_int_eq(rc, MS_E_IO);
    ck_assert_msg(strstr(why.text, "File too large") != NULL, "%s", why.text);
    metrics_close(metrics);
}
END_TEST

START_TEST(a_folder_that_is_missing_is_named)
{
    struct metrics *metrics = NULL;

    ck_ms_fails(metrics_open("/nonexistent/metrics.jsonl", &metrics, err), MS_E_IO,
                "/nonexistent/metrics.jsonl");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics");
    TCase *tc = tcase_create("metrics");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, losses_print_as_numpy_prints_float32);
    tcase_add_test(tc, a_step_an_evaluation_and_the_end_are_one_line_each);
    tcase_add_test(tc, what_is_not_finite_is_null_for_json_has_no_word_for_it);
    tcase_add_test(tc, a_torn_last_line_is_cut_off);
    tcase_add_test(tc, a_file_that_is_one_torn_line_becomes_empty);
    tcase_add_test(tc, a_disk_that_fills_up_within_a_line_is_named_and_not_an_older_error);
    tcase_add_test(tc, a_folder_that_is_missing_is_named);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
