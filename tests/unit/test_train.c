/* test_train.c - one rank alone, from a job to trained weights: losses, ends, refusals */
#include "libworker/train/train.h"

#include "libworker/host/memory.h"
#include "libworker/train/model_copy.h"
#include "tests/unit/train_case.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

static const char *dir;
static struct job job;
static struct train_info info;
static struct train_result result;

static void setup(void)
{
    dir = test_dir_make();
    memset(&result, 0, sizeof(result));
}

static void teardown(void)
{
    test_dir_remove(dir);
}

/* What on_progress saw, and what it is to do. */
struct seen {
    struct train *train;
    float first, last;
    uint64_t steps;
    int evaluations, preparing_again;
    double accuracy, eval_loss, unsettled, rows;
    uint64_t stop_at, abort_at;
};

static void watch(void *arg, const struct train_progress *progress)
{
    struct seen *seen = arg;
    if (progress->phase == TRAIN_TRAINING && progress->step > 0) {
        seen->first = progress->step == 1 ? progress->loss : seen->first;
        seen->last = progress->loss;
        ck_assert_uint_eq(progress->step, seen->steps + 1);
        seen->steps = progress->step;
        /* whoever reads the two can tell the samples of a step */
        seen->rows = progress->samples_per_s * progress->step_ms / 1000;
        if (progress->step == seen->stop_at) {
            train_stop_at_step(seen->train);
        }
        if (progress->step == seen->abort_at) {
            train_abort(seen->train, "somebody said so");
        }
    }
    if (progress->phase == TRAIN_EVALUATING && progress->has_eval) {
        seen->evaluations++;
        seen->eval_loss = progress->eval_loss;
        seen->accuracy = progress->accuracy;
        seen->unsettled = progress->unsettled;
    }
}

/* Prepares and runs the job as rank 0 of 1. */
static int run(struct seen *seen, const char *run_dir, struct ms_err *err)
{
    struct train_config cfg = train_case_config(&job, run_dir);
    cfg.on_progress = watch;
    cfg.arg = seen;
    struct train *train = train_create(&cfg);
    ck_assert_ptr_nonnull(train);
    seen->train = train;
    int rc = train_prepare(train, &info, err);
    if (rc == 0) {
        rc = train_run(train, &result, err);
    }
    train_destroy(train);
    return rc;
}

static const char *slurp(const char *name)
{
    static char text[65536];
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is missing", path);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        n++;
    }
    return n;
}

START_TEST(a_job_trains_and_its_loss_falls)
{
    struct seen seen = {.train = NULL};
    train_case_job(&job, NULL, 0);

    ck_ms_ok(run(&seen, dir, err));

    ck_assert_uint_eq(result.steps, 20);
    ck_assert_uint_eq(info.steps_total, 20);
    ck_assert_double_eq_tol(seen.rows, 16, 1e-6);
    ck_assert_int_eq(info.steps_per_epoch, 10);
    ck_assert_int_eq(result.stopped, 0);
    ck_assert_msg(seen.last < seen.first / 2, "loss %g became %g", (double)seen.first,
                  (double)seen.last);
    ck_assert_uint_eq(strlen(result.weights_sha256), 64);
    ck_assert_str_eq(result.plan_sha256, info.plan_sha256);
    const char *metrics = slurp("metrics.jsonl");
    ck_assert_int_eq(count(metrics, "\"loss_hex\""), 20);
    ck_assert_int_eq(count(metrics, result.weights_sha256), 1);
}
END_TEST

/* One weight's way is not looked at: the rate is that of every step, so that a rate of 0 moves
 * nothing, and one that is constant moves all as the job's own. */
START_TEST(a_schedule_decides_the_rate_of_each_step)
{
    static const char *const sets[][1] = {
        {"optimizer.schedule=null"},
        {"optimizer.schedule={kind: constant}"},
        {"optimizer.schedule={kind: multi_step, by: step, milestones: [7], gamma: 0}"},
        {"steps=7"},
        {"optimizer.weight_decay=0.1"},
        {"optimizer.clip_norm=100000"},
        {"optimizer.clip_norm=0.01"},
        {"optimizer.clip_value=100000"},
        {"optimizer.clip_value=0.001"}};
    char digests[MS_ARRAY_SIZE(sets)][MS_SHA256_HEX];
    for (size_t i = 0; i < MS_ARRAY_SIZE(sets); i++) {
        struct seen seen = {.train = NULL};
        train_case_job(&job, sets[i], 1);
        ck_ms_ok(run(&seen, "", err));
        memcpy(digests[i], result.weights_sha256, sizeof(digests[i]));
    }
    ck_assert_str_eq(digests[1], digests[0]);
    ck_assert_str_eq(digests[2], digests[3]);
    ck_assert_str_ne(digests[2], digests[0]);
    ck_assert_str_ne(digests[4], digests[0]);
    ck_assert_str_eq(digests[5], digests[0]); /* nothing is so long */
    ck_assert_str_ne(digests[6], digests[0]);
    ck_assert_str_eq(digests[7], digests[0]);
    ck_assert_str_ne(digests[8], digests[0]);
}
END_TEST

START_TEST(metrics_have_the_rate_of_a_schedule_and_none_without)
{
    static const char *const sets[] = {
        "optimizer.schedule={kind: step, by: epoch, step_size: 1, gamma: 0.5, warmup: 0}"};
    struct seen seen = {.train = NULL};
    train_case_job(&job, sets, 1);
    ck_ms_ok(run(&seen, dir, err));
    const char *metrics = slurp("metrics.jsonl");
    ck_assert_int_eq(count(metrics, "\"learning_rate\":0.05,"), 10);
    ck_assert_int_eq(count(metrics, "\"learning_rate\":0.025,"), 10);

    test_dir_remove(dir);
    dir = test_dir_make();
    seen = (struct seen){.train = NULL};
    train_case_job(&job, NULL, 0);
    ck_ms_ok(run(&seen, dir, err));
    metrics = slurp("metrics.jsonl");
    ck_assert_int_eq(count(metrics, "\"loss_hex\""), 20);
    ck_assert_int_eq(count(metrics, "learning_rate"), 0);
}
END_TEST

START_TEST(a_warm_up_that_is_longer_than_the_job_is_refused_before_the_first_step)
{
    static const char *const sets[] = {"optimizer.schedule={kind: constant, by: step, warmup: 21}"};
    struct seen seen = {.train = NULL};
    train_case_job(&job, sets, 1);
    ck_ms_fails(run(&seen, "", err), MS_E_INVALID,
                "optimizer.schedule.warmup: 21 steps, and with this dataset the job has 20 steps");
}
END_TEST

START_TEST(the_same_seed_gives_the_same_weights_and_another_one_others)
{
    struct seen seen = {.train = NULL};
    char first[MS_SHA256_HEX];
    train_case_job(&job, NULL, 0);
    ck_ms_ok(run(&seen, "", err));
    memcpy(first, result.weights_sha256, sizeof(first));

    seen = (struct seen){.train = NULL};
    ck_ms_ok(run(&seen, "", err));
    ck_assert_str_eq(result.weights_sha256, first);
    static const char *const sets[] = {"seed=2"};
    train_case_job(&job, sets, 1);
    seen = (struct seen){.train = NULL};
    ck_ms_ok(run(&seen, "", err));

    ck_assert_str_ne(result.weights_sha256, first);
}
END_TEST

/* What the job in hand writes into its log. */
static const char *log_of_run(void)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/worker_0.log", dir);
    struct train_config cfg = train_case_config(&job, "");
    cfg.log_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_ms_ok(train_run(train, &result, err));
    train_destroy(train);
    close(cfg.log_fd);
    return slurp("worker_0.log");
}

START_TEST(loss_lines_are_those_of_MindSpore)
{
    train_case_job(&job, NULL, 0);

    const char *log = log_of_run();

    ck_assert_int_eq(strncmp(log, "epoch: 1 step: 1, loss is ", 26), 0);
    ck_assert_int_eq(count(log, "epoch: 2 step: "), 10);
}
END_TEST

START_TEST(steps_cap_the_epochs)
{
    static const char *const sets[] = {"steps=13"};
    struct seen seen = {.train = NULL};
    train_case_job(&job, sets, 1);

    ck_ms_ok(run(&seen, "", err));

    ck_assert_uint_eq(result.steps, 13);
    ck_assert_int_eq(result.stopped, 0);
}
END_TEST

START_TEST(a_last_batch_that_is_smaller_trains_too)
{
    static const char *const sets[] = {"dataset.samples=165"};
    struct seen seen = {.train = NULL};
    train_case_job(&job, sets, 1);

    ck_ms_ok(run(&seen, "", err));

    ck_assert_uint_eq(result.steps, 22);
    ck_assert(isfinite(seen.last));
}
END_TEST

START_TEST(a_stop_ends_after_the_step_and_still_saves)
{
    struct seen seen = {.stop_at = 7};
    train_case_job(&job, NULL, 0);

    ck_ms_ok(run(&seen, dir, err));

    ck_assert_int_eq(result.stopped, 1);
    ck_assert_uint_ge(result.steps, 7);
    ck_assert_uint_le(result.steps, 8); /* the step that was begun, and no more */
    ck_assert_int_eq(count(slurp("metrics.jsonl"), "\"done\":true"), 1);
    ck_assert_int_gt((int)strlen(slurp("weights.safetensors")), 0);
}
END_TEST

START_TEST(an_abort_ends_with_its_text_and_saves_nothing)
{
    struct seen seen = {.abort_at = 7};
    char path[160];
    struct stat st;
    train_case_job(&job, NULL, 0);

    ck_ms_fails(run(&seen, dir, err), MS_E_ABORTED, "somebody said so");

    ck_assert_uint_eq(seen.steps, 7);
    snprintf(path, sizeof(path), "%s/weights.safetensors", dir);
    ck_assert_int_ne(stat(path, &st), 0);
}
END_TEST

START_TEST(an_abort_before_prepare_is_heeded)
{
    train_case_job(&job, NULL, 0);
    struct train_config cfg = train_case_config(&job, "");
    struct train *train = train_create(&cfg);

    train_abort(train, "too late");

    ck_ms_fails(train_prepare(train, &info, err), MS_E_ABORTED, "too late");
    train_destroy(train);
}
END_TEST

static void *abort_soon(void *arg)
{
    struct seen *seen = arg;
    train_abort(seen->train, "from another thread");
    return NULL;
}

START_TEST(an_abort_may_come_from_another_thread_at_any_moment)
{
    static const char *const sets[] = {"epochs=100000"};
    train_case_job(&job, sets, 1);
    for (int i = 0; i < 30; i++) {
        struct train_config cfg = train_case_config(&job, "");
        struct seen seen = {.train = train_create(&cfg)};
        struct ms_err err = {0, ""};
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, abort_soon, &seen), 0);

        int rc = train_prepare(seen.train, &info, &err);
        rc = rc == 0 ? train_run(seen.train, &result, &err) : rc;
        pthread_join(thread, NULL);

        ck_assert_msg(rc == MS_E_ABORTED, "%s: %s", ms_code_name(rc), err.text);
        ck_assert_ptr_nonnull(strstr(err.text, "another thread"));
        train_destroy(seen.train);
    }
}
END_TEST

/* A table of two features and a target from 0 to 1, but of the last row, as `key={kind: csv, ...}`.
 */
static const char *table_of(const char *key, const char *name, double last, char set[512])
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 160; i++) {
        fprintf(file, "%g,%g,%g\n", i % 7 / 7.0, i % 5 / 5.0, i == 159 ? last : i % 3 / 2.0);
    }
    ck_assert_int_eq(fclose(file), 0);
    snprintf(set, 512, "%s={kind: csv, path: %s, header: false, target_kind: number}", key, path);
    return set;
}

/* With each loss the next training has another end, and a delta that none reaches is half of mse's
 * rate. */
START_TEST(a_loss_decides_what_is_learned)
{
    char table[512];
    const char *const sets[][3] = {
        {"loss=mse", "optimizer.learning_rate=0.01"},
        {"loss=huber", "optimizer.learning_rate=0.02", "huber_delta=1000000"},
        {"loss=huber", "optimizer.learning_rate=0.02", "huber_delta=1"},
        {"loss=l1", "optimizer.learning_rate=0.01"},
        {"loss=binary_cross_entropy", "optimizer.learning_rate=0.01",
         table_of("dataset", "t.csv", 1, table)}};
    char digests[MS_ARRAY_SIZE(sets)][MS_SHA256_HEX];
    for (size_t i = 0; i < MS_ARRAY_SIZE(sets); i++) {
        struct seen seen = {.train = NULL};
        train_case_job(&job, sets[i], sets[i][2] != NULL ? 3 : 2);
        ck_ms_ok(run(&seen, "", err));
        memcpy(digests[i], result.weights_sha256, sizeof(digests[i]));
    }
    ck_assert_str_eq(digests[1], digests[0]);
    for (size_t i = 2; i < MS_ARRAY_SIZE(sets); i++) {
        for (size_t j = 0; j < i; j++) {
            ck_assert_str_ne(digests[i], digests[j]);
        }
    }
}
END_TEST

/* A distance has none, and a logit the side that it is on. */
START_TEST(accuracy_is_of_what_is_right_or_wrong)
{
    char train[512];
    char test[512];
    const char *const sets[] = {table_of("dataset", "t.csv", 1, train),
                                table_of("evaluate.dataset", "e.csv", 1, test),
                                "loss=binary_cross_entropy"};
    for (size_t n = 2; n <= 3; n++) {
        struct seen seen = {.train = NULL};
        train_case_job(&job, sets, n);
        ck_ms_ok(run(&seen, "", err));
        ck_assert(n == 2 ? isnan(result.accuracy) : result.accuracy >= 0 && result.accuracy <= 1);
    }
}
END_TEST

START_TEST(names_of_a_checkpoint_s_slots_are_no_parameter_s)
{
    static const char *const sets[] = {
        "network=[flatten, sequential: {name: moments, layers: [dense: {name: fc, out: 3}]}, "
        "dense: {name: fc, out: classes}]",
        "optimizer.kind=momentum", "checkpoint={}"};
    struct seen seen = {.train = NULL};
    train_case_job(&job, sets, 2); /* nobody writes them into one file */
    ck_ms_ok(run(&seen, dir, err));
    train_case_job(&job, sets, 3);
    ck_ms_fails(run(&seen, dir, err), MS_E_INVALID,
                "its parameter moments.fc.weight is called as the moments of fc.weight");
}
END_TEST

START_TEST(a_target_that_is_no_probability_is_named)
{
    static const struct {
        double train, test;
        const char *words;
    } lasts[] = {
        {1.5, 1,
         "/t.csv:160: target 1.5 is no probability, and the loss wants 0 "
         "to 1; scale the targets, or use mse"},
        {-0.5, 1, "/t.csv:160: target -0.5 is no probability"},
        {1, 2, "/e.csv:160: target 2 is no probability"},
        {1, 0, NULL},
    };
    char train[512];
    char test[512];
    const char *const sets[] = {table_of("dataset", "t.csv", lasts[_i].train, train),
                                table_of("evaluate.dataset", "e.csv", lasts[_i].test, test),
                                "loss=binary_cross_entropy"};
    struct seen seen = {.train = NULL};
    train_case_job(&job, sets, 3);
    if (lasts[_i].words == NULL) {
        ck_ms_ok(run(&seen, "", err));
    } else {
        ck_ms_fails(run(&seen, "", err), MS_E_INVALID, lasts[_i].words);
    }
    train_case_job(&job, sets, 2); /* to others they are numbers */
    seen = (struct seen){.train = NULL};
    ck_ms_ok(run(&seen, "", err));
}
END_TEST

START_TEST(evaluation_comes_when_it_is_due)
{
    static const char *const sets[] = {
        "epochs=4", "evaluate={dataset: {kind: nonlinear, samples: 50}, every_epochs: 2}"};
    struct seen seen = {.train = NULL};
    train_case_job(&job, sets, 2);

    ck_ms_ok(run(&seen, dir, err));

    ck_assert_int_eq(seen.evaluations, 2);
    ck_assert_int_eq(result.has_eval, 1);
    ck_assert(isfinite(seen.eval_loss) && seen.eval_loss > 0);
    ck_assert(result.eval_loss == seen.eval_loss);
    ck_assert_int_eq(count(slurp("metrics.jsonl"), "\"eval_loss\""), 2);
}
END_TEST

START_TEST(what_was_trained_is_evaluated_at_the_end_wherever_that_is)
{
    static const struct {
        const char *sets[3];
        int evaluations;
    } cases[] = {
        {{"epochs=4", "steps=5", "evaluate.every_epochs=1"}, 1},  /* within the first epoch */
        {{"epochs=4", "steps=13", "evaluate.every_epochs=1"}, 2}, /* within the second */
        {{"epochs=4", "steps=20", "evaluate.every_epochs=1"}, 2}, /* at its end, once */
        {{"epochs=3", "steps=0", "evaluate.every_epochs=2"}, 2},  /* an epoch out of turn */
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        const char *const sets[] = {"evaluate.dataset={kind: nonlinear, samples: 50}",
                                    cases[i].sets[0], cases[i].sets[1], cases[i].sets[2]};
        struct seen seen = {.train = NULL};
        train_case_job(&job, sets, MS_ARRAY_SIZE(sets));

        ck_ms_ok(run(&seen, "", err));

        ck_assert_int_eq(seen.evaluations, cases[i].evaluations);
        ck_assert_int_eq(result.has_eval, 1);
        ck_assert(result.eval_loss == seen.eval_loss);
    }
}
END_TEST

/* 0.9^28 is above 0.05 and 0.9^29 below. */
START_TEST(an_evaluation_before_the_moving_statistics_have_settled_says_so)
{
    static const struct {
        const char *steps;
        double share;
        const char *says; /* NULL: nothing */
    } rows[] = {{"steps=3", 0.729, "evaluation after 3 steps: 73 % of the moving statistics"},
                {"steps=28", 0.0523347633,
                 "(momentum 0.9), and the net may look less trained than it is; from 29"},
                {"steps=29", 0, NULL},
                {"accumulate=2", 0.282429536, "than it is; from 15 steps on they tell"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const sets[] = {"network=cifar_small",
                                    "dataset={kind: shapes, samples: 120}",
                                    "loss=softmax_cross_entropy",
                                    "batch_size=4",
                                    "evaluate.dataset={kind: shapes, samples: 8}",
                                    "steps=6",
                                    rows[i].steps};
        train_case_job(&job, sets, MS_ARRAY_SIZE(sets));

        const char *log = log_of_run();

        ck_assert_msg(count(log, "evaluation after ") == (rows[i].says != NULL), "%s", log);
        ck_assert_msg(rows[i].says == NULL || strstr(log, rows[i].says) != NULL, "%s", log);
        struct seen seen = {.train = NULL};
        ck_ms_ok(run(&seen, "", err));
        ck_assert_double_eq_tol(seen.unsettled, rows[i].share, 1e-6);
    }
}
END_TEST

START_TEST(a_job_that_is_stopped_is_not_evaluated)
{
    static const char *const sets[] = {"evaluate.dataset={kind: nonlinear, samples: 50}"};
    struct seen seen = {.stop_at = 3};
    train_case_job(&job, sets, 1);

    ck_ms_ok(run(&seen, "", err));

    ck_assert_int_eq(result.stopped, 1);
    ck_assert_int_eq(seen.evaluations, 0);
}
END_TEST

/* All steps are made, and what the job was to find out is not known. */
START_TEST(a_job_that_is_stopped_in_its_last_evaluation_is_stopped)
{
    static const char *const sets[] = {"evaluate.dataset={kind: nonlinear, samples: 50}",
                                       "epochs=1"};
    struct seen seen = {.stop_at = 10};
    train_case_job(&job, sets, 2);

    ck_ms_ok(run(&seen, "", err));

    ck_assert_uint_eq(result.steps, 10);
    ck_assert_int_eq(seen.evaluations, 0);
    ck_assert_int_eq(result.stopped, 1);
}
END_TEST

START_TEST(a_loss_that_is_no_number_is_named_with_its_step)
{
    static const char *const sets[] = {"optimizer.learning_rate=1000", "epochs=100"};
    struct seen seen = {.train = NULL};
    train_case_job(&job, sets, 2);

    ck_ms_fails(run(&seen, "", err), MS_E_FAILED, "loss is NAN or INF");
}
END_TEST

START_TEST(a_missing_data_set_is_named)
{
    static const char *const sets[] = {"dataset={kind: mnist, path: /nonexistent/mnist}",
                                       "network=mnist", "loss=softmax_cross_entropy"};
    struct seen seen = {.train = NULL};
    struct ms_err err = {0, ""};
    train_case_job(&job, sets, 3);

    ck_assert_int_lt(run(&seen, "", &err), 0);

    ck_assert_ptr_nonnull(strstr(err.text, "dataset: "));
    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent/mnist"));
}
END_TEST

START_TEST(a_job_that_does_not_fit_into_memory_is_refused_with_what_would)
{
    /* ResNet-50 keeps about 1 MB of activations for an image of 32x32, whatever it makes again */
    uint64_t batch = memory_available() / 400000;
    if (batch > MS_BATCH_MAX) {
        printf("skip: this machine has room for the largest batch\n");
        return;
    }
    char size[32];
    snprintf(size, sizeof(size), "batch_size=%d", (int)batch);
    const char *const sets[] = {"network=resnet50", "loss=softmax_cross_entropy",
                                "dataset={kind: shapes, samples: 70000}", size};
    struct seen seen = {.train = NULL};
    struct ms_err err = {0, ""};
    train_case_job(&job, sets, MS_ARRAY_SIZE(sets));

    int rc = run(&seen, "", &err);

    ck_assert_msg(rc == MS_E_FULL, "%s: %s", ms_code_name(rc), err.text);
    ck_assert_ptr_nonnull(strstr(err.text, "does not fit into memory"));
    ck_assert_ptr_nonnull(strstr(err.text, "fits"));
}
END_TEST

/* A folder in its place, as good as a full disk. */
static struct train *trained_and_not_saved(const char *recovery, int *ret_rc, struct ms_err *why)
{
    const char *const sets[] = {recovery};
    train_case_job(&job, sets, 1);
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", dir, TRAIN_WEIGHTS_FILE);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    struct train_config cfg = train_case_config(&job, dir);
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    *ret_rc = train_run(train, &result, why);
    ck_assert_int_eq(rmdir(path), 0);
    return train;
}

START_TEST(weights_that_cannot_be_saved_are_no_failure_of_a_training_that_recovers)
{
    struct ms_err err = {0, ""};
    int rc = 0;
    struct train *train = trained_and_not_saved("recovery=true", &rc, &err);
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(result.unsaved, MS_E_IO);
    ck_assert_int_eq(result.stopped, 0);
    ck_assert_msg(strstr(result.kept, TRAIN_WEIGHTS_FILE) != NULL, "%s", result.kept);
    ck_assert_uint_eq(result.steps, info.steps_total);
    ck_assert_int_eq((int)strlen(result.weights_sha256), 64);
    const struct train_result first = result;

    ck_assert_int_eq(train_stop_here(train, 1, &result, &err), 0);

    ck_assert_int_eq(result.unsaved, 0);
    ck_assert_int_eq(result.stopped, 0);
    ck_assert_ptr_nonnull(strstr(result.kept, "the last, are saved: "));
    ck_assert_str_eq(result.weights_sha256, first.weights_sha256);
    ck_assert_ptr_nonnull(slurp(TRAIN_WEIGHTS_FILE));
    ck_assert_int_eq(count(slurp("metrics.jsonl"), "\"done\""), 1);
    train_destroy(train);
}
END_TEST

/* A try before had got that far, and nobody heard of it: there may be no room for them twice. */
START_TEST(weights_that_are_there_already_are_saved)
{
    char path[160];
    struct model_copy *copy = NULL;
    train_case_job(&job, NULL, 0);
    struct train_config cfg = train_case_config(&job, dir);
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_ms_ok(train_run(train, &result, err));
    snprintf(path, sizeof(path), "%s/%s", dir, TRAIN_WEIGHTS_FILE);
    ck_ms_ok(model_copy_make(train_replica(train), result.steps, &copy, err));

    ck_assert_int_eq(model_copy_is_at(copy, path), 1);
    copy->values[1][0] += 1;
    ck_assert_int_eq(model_copy_is_at(copy, path), 0);
    copy->values[1][0] -= 1;
    ck_assert_int_eq(truncate(path, 100), 0);
    ck_assert_int_eq(model_copy_is_at(copy, path), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(model_copy_is_at(copy, path), 0);
    model_copy_destroy(copy);
    train_destroy(train);
}
END_TEST

/* /dev/full opens, and takes nothing. */
START_TEST(metrics_that_cannot_be_written_cost_no_weights)
{
    char path[160];
    train_case_job(&job, NULL, 0);
    snprintf(path, sizeof(path), "%s/metrics.jsonl", dir);
    ck_assert_int_eq(symlink("/dev/full", path), 0);
    struct train_config cfg = train_case_config(&job, dir);
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_ms_ok(train_run(train, &result, err));
    ck_assert_int_eq(result.unsaved, 0);
    ck_assert_msg(strstr(result.kept, "the weights are saved; ") == result.kept &&
                      strstr(result.kept, "metrics.jsonl has no step from 1 on") != NULL,
                  "%s", result.kept);
    ck_assert_ptr_nonnull(slurp(TRAIN_WEIGHTS_FILE));
    train_destroy(train);
}
END_TEST

START_TEST(of_one_that_does_not_recover_they_are)
{
    struct ms_err err = {0, ""};
    int rc = 0;
    struct train *train = trained_and_not_saved("recovery=false", &rc, &err);
    ck_assert_int_eq(rc, MS_E_IO);
    ck_assert_msg(strstr(err.text, TRAIN_WEIGHTS_FILE) != NULL, "%s", err.text);
    train_destroy(train);
}
END_TEST

START_TEST(the_trained_network_can_be_copied_in_name_order)
{
    struct model_copy *copy = NULL;
    train_case_job(&job, NULL, 0);
    struct train_config cfg = train_case_config(&job, "");
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_ms_ok(train_run(train, &result, err));

    ck_ms_ok(model_copy_make(train_replica(train), result.steps, &copy, err));

    ck_assert_uint_eq(copy->n, 2);
    ck_assert_str_eq(copy->entries[0].name, "fc.bias");
    ck_assert_str_eq(copy->entries[1].name, "fc.weight");
    ck_assert_str_eq(copy->sha256, result.weights_sha256);
    ck_assert_int_eq(model_copy_find(copy, "fc.weight"), 1);
    ck_assert_int_eq(model_copy_find(copy, "fc.wait"), -1);
    model_copy_destroy(copy);
    train_destroy(train);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train");
    TCase *tc = tcase_create("train");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_job_trains_and_its_loss_falls);
    tcase_add_test(tc, a_schedule_decides_the_rate_of_each_step);
    tcase_add_test(tc, metrics_have_the_rate_of_a_schedule_and_none_without);
    tcase_add_test(tc, a_warm_up_that_is_longer_than_the_job_is_refused_before_the_first_step);
    tcase_add_test(tc, the_same_seed_gives_the_same_weights_and_another_one_others);
    tcase_add_test(tc, loss_lines_are_those_of_MindSpore);
    tcase_add_test(tc, steps_cap_the_epochs);
    tcase_add_test(tc, a_last_batch_that_is_smaller_trains_too);
    tcase_add_test(tc, a_stop_ends_after_the_step_and_still_saves);
    tcase_add_test(tc, an_abort_ends_with_its_text_and_saves_nothing);
    tcase_add_test(tc, an_abort_before_prepare_is_heeded);
    tcase_add_test(tc, an_abort_may_come_from_another_thread_at_any_moment);
    tcase_add_test(tc, a_loss_decides_what_is_learned);
    tcase_add_test(tc, accuracy_is_of_what_is_right_or_wrong);
    tcase_add_test(tc, names_of_a_checkpoint_s_slots_are_no_parameter_s);
    tcase_add_loop_test(tc, a_target_that_is_no_probability_is_named, 0, 4);
    tcase_add_test(tc, evaluation_comes_when_it_is_due);
    tcase_add_test(tc, what_was_trained_is_evaluated_at_the_end_wherever_that_is);
    tcase_add_test(tc, an_evaluation_before_the_moving_statistics_have_settled_says_so);
    tcase_add_test(tc, a_job_that_is_stopped_is_not_evaluated);
    tcase_add_test(tc, a_job_that_is_stopped_in_its_last_evaluation_is_stopped);
    tcase_add_test(tc, a_loss_that_is_no_number_is_named_with_its_step);
    tcase_add_test(tc, a_missing_data_set_is_named);
    tcase_add_test(tc, a_job_that_does_not_fit_into_memory_is_refused_with_what_would);
    tcase_add_test(tc, weights_that_cannot_be_saved_are_no_failure_of_a_training_that_recovers);
    tcase_add_test(tc, weights_that_are_there_already_are_saved);
    tcase_add_test(tc, metrics_that_cannot_be_written_cost_no_weights);
    tcase_add_test(tc, of_one_that_does_not_recover_they_are);
    tcase_add_test(tc, the_trained_network_can_be_copied_in_name_order);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
