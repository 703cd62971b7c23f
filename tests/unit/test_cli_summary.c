/* test_cli_summary.c - how a job ended: speeds over the whole job, accuracy with its data, and
 * files that are none */
#include "cli/summary.h"

#include "cli/eval_name.h"
#include "cli/metrics.h"
#include "tests/test.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static Ms__JobInfo job;
static Ms__Progress progress, eval;
static Ms__Progress *evals[] = {&eval};

static void begin(void)
{
    ms__job_info__init(&job);
    ms__progress__init(&progress);
    ms__progress__init(&eval);
    job.id = 7;
    job.name = (char *)"mnist";
    job.state = (char *)"SUCCEEDED";
    job.steps = 1000;
    job.seconds = 50;
    progress.step = 1000;
    progress.samples_per_s = 400; /* of the last, slow step: 64 samples in 160 ms */
    progress.step_ms = 160;
    eval.accuracy = 0.95;
    eval.eval_loss = 0.2;
    job.progress = &progress;
    job.evals = evals;
    job.n_evals = 1;
}

START_TEST(speed_is_an_average_over_the_job_and_not_the_last_step)
{
    struct cli_metrics none = {0};

    struct cli_speed speed = cli_summary_speed(&job, &none);

    ck_assert_double_eq_tol(speed.step_ms, 50, 1e-9);
    ck_assert_double_eq_tol(speed.samples_per_s, 64 / 0.05, 1e-6);
    ck_assert(isnan(speed.median_ms));
    ck_assert_int_eq(speed.with_evaluations, 1);
}
END_TEST

/* Nine quick steps, and one that waited for another process: the samples of ten in 100 ms. */
START_TEST(speed_of_a_short_job_is_its_samples_by_the_time_of_its_steps)
{
    const char *root = test_dir_make();
    char path[160];
    struct cli_metrics metrics;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", root);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 9; i++) { /* 16 samples each */
        fputs("{\"loss\":1,\"samples_per_s\":16000,\"step_ms\":1}\n", file);
    }
    fputs("{\"epoch\":1,\"eval_loss\":1,\"accuracy\":1}\n", file);
    fputs("{\"loss\":1,\"samples_per_s\":175.824176,\"step_ms\":91}\n", file);
    fputs("{\"loss\":1,\"samples_per_s\":null,\"step_ms\":1}\n", file);
    fclose(file);
    ck_ms_ok(cli_metrics_read(path, &metrics, err));

    struct cli_speed speed = cli_summary_speed(&job, &metrics);

    ck_assert_double_eq_tol(speed.samples_per_s, 1600, 0.01);
    ck_assert_double_eq_tol(speed.step_ms, 10, 1e-6);
    ck_assert_double_eq_tol(speed.median_ms, 1, 1e-6);
    ck_assert_int_eq(speed.with_evaluations, 0);
    cli_metrics_free(&metrics);
    test_dir_remove(root);
}
END_TEST

START_TEST(job_that_never_stepped_has_no_speed)
{
    struct cli_metrics none = {0};
    job.steps = 0;
    job.progress = NULL;

    ck_assert(isnan(cli_summary_speed(&job, &none).step_ms));
}
END_TEST

START_TEST(job_that_was_cancelled_tells_programs_how_far_it_came)
{
    job.state = (char *)"CANCELLED";
    job.steps = 0;
    job.seconds = 0;
    job.started_ms = 1000;
    job.ended_ms = 52900;
    progress.step = 755;

    json_t *object = cli_summary_json(&job, NULL, NULL);

    ck_assert_int_eq(json_integer_value(json_object_get(object, "steps")), 755);
    ck_assert_double_eq_tol(json_real_value(json_object_get(object, "seconds")), 51.9, 1e-9);
    json_decref(object);
}
END_TEST

START_TEST(accuracy_stands_with_its_data_set)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    cli_summary_print(out, 0, &job, "the test set of mnist", NULL);
    fclose(out);

    ck_assert_msg(strstr(text, "accuracy    95.00 % on the test set of mnist, loss 0.2000\n") !=
                      NULL,
                  "%s", text);
    ck_assert_msg(strstr(text, "50.0 ms a step (average of the job with its evaluations)") != NULL,
                  "%s", text);
    free(text);
}
END_TEST

START_TEST(digest_of_weights_is_not_taken_for_the_sum_of_the_file)
{
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {root, 1};
    char path[300];
    char *text = NULL;
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/weights.safetensors", root);
    FILE *file = fopen(path, "w");
    fputs("abc", file);
    fclose(file);
    job.weights_sha256 = (char *)"0123";
    FILE *out = open_memstream(&text, &size);

    cli_summary_print(out, 0, &job, NULL, &facts);
    fclose(out);

    ck_assert_msg(strstr(text, "weights     digest 0123\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "not of the file") != NULL, "%s", text);
    /* sha256sum of "abc": NIST's example */
    ck_assert_msg(strstr(text, "weights.safetensors\n              sha256 ba7816bf8f01cfea414140de5"
                               "dae2223b00361a396177a9cb410ff61f20015ad\n") != NULL,
                  "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

START_TEST(data_of_an_evaluation_is_named_from_the_job)
{
    static const char cifar[] =
        "{\"evaluate\": {\"dataset\": {\"kind\": \"cifar10\", \"usage\": \"test\"}}}";
    static const char all[] =
        "{\"evaluate\": {\"dataset\": {\"kind\": \"mnist\", \"usage\": \"all\", "
        "\"path\": \"/data/mnist/\"}}}";
    static const char drawn[] = "{\"evaluate\": {\"dataset\": {\"kind\": \"cifar10\", "
                                "\"usage\": \"test\", \"path\": \"/build/quickstart/shapes\"}}}";
    static const char variable[] = "{\"evaluate\": {\"dataset\": {\"kind\": \"mnist\", "
                                   "\"usage\": \"test\", \"path\": \"${DATA_PATH}\"}}}";
    char buf[CLI_EVAL_NAME_MAX];

    ck_assert_str_eq(cli_eval_name(buf, cifar, strlen(cifar)), "the test set of cifar10");
    ck_assert_str_eq(cli_eval_name(buf, all, strlen(all)), "all of mnist");
    ck_assert_str_eq(cli_eval_name(buf, drawn, strlen(drawn)),
                     "the test set of shapes (cifar10 files)"); /* nothing of CIFAR-10 in it */
    ck_assert_str_eq(cli_eval_name(buf, variable, strlen(variable)),
                     "the test set of ${DATA_PATH} (mnist files)");
    ck_assert_str_eq(cli_eval_name(buf, "{}", 2), "the evaluation data");
    ck_assert_str_eq(cli_eval_name(buf, NULL, 0), "the evaluation data");
    ck_assert_str_eq(cli_eval_name(buf, "\xff", 1), "the evaluation data");
}
END_TEST

START_TEST(metrics_that_are_no_plain_file_are_not_waited_for)
{
    const char *root = test_dir_make();
    char path[300];
    char link[300];
    struct cli_metrics metrics;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", root);
    ck_assert_int_eq(mkfifo(path, 0600), 0);

    ck_assert_int_lt(cli_metrics_read(path, &metrics, NULL), 0); /* at once: nobody writes there */
    snprintf(link, sizeof(link), "%s/link", root);
    ck_assert_int_eq(symlink("/etc/passwd", link), 0);
    ck_assert_int_lt(cli_metrics_read(link, &metrics, NULL), 0);
    ck_assert_int_lt(cli_metrics_read("/dev/zero", &metrics, NULL), 0);
    ck_assert_int_lt(cli_metrics_read(root, &metrics, NULL), 0);
    test_dir_remove(root);
}
END_TEST

START_TEST(lines_that_are_too_long_are_passed_over)
{
    const char *root = test_dir_make();
    char path[300];
    struct cli_metrics metrics;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", root);
    FILE *file = fopen(path, "w");
    fprintf(file, "{\"step\": 1, \"loss\": 3}\n");
    for (int i = 0; i < 100000; i++) {
        fputc('x', file);
    }
    fprintf(file, "\n{\"step\": 2, \"loss\": 2}\n{\"step\": 3, \"lo");
    fclose(file);

    ck_ms_ok(cli_metrics_read(path, &metrics, err));

    ck_assert_uint_eq(metrics.n, 2);
    ck_assert_double_eq_tol(metrics.loss[1], 2, 1e-12);
    cli_metrics_free(&metrics);
    test_dir_remove(root);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_summary");
    TCase *tc = tcase_create("summary");
    tcase_add_checked_fixture(tc, begin, NULL);
    tcase_add_test(tc, speed_is_an_average_over_the_job_and_not_the_last_step);
    tcase_add_test(tc, speed_of_a_short_job_is_its_samples_by_the_time_of_its_steps);
    tcase_add_test(tc, job_that_never_stepped_has_no_speed);
    tcase_add_test(tc, job_that_was_cancelled_tells_programs_how_far_it_came);
    tcase_add_test(tc, accuracy_stands_with_its_data_set);
    tcase_add_test(tc, digest_of_weights_is_not_taken_for_the_sum_of_the_file);
    tcase_add_test(tc, data_of_an_evaluation_is_named_from_the_job);
    tcase_add_test(tc, metrics_that_are_no_plain_file_are_not_waited_for);
    tcase_add_test(tc, lines_that_are_too_long_are_passed_over);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
