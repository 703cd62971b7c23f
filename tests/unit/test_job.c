/* test_job.c - job files: defaults, overrides, canonical JSON, files, the table of keys */
#include "libworker/job/job_schema.h"
#include "libworker/network/network.h"
#include "tests/unit/job_texts.h"

#include <sys/stat.h>

/* ---- good files ---- */

START_TEST(defaults_are_those_of_the_manual)
{
    struct job job;

    ck_ms_ok(parse(MINIMAL, &job, err));

    ck_assert_str_eq(job.name, "mnist");
    ck_assert_int_eq(job.workers, 1);
    ck_assert_int_eq(job.priority, 0);
    ck_assert_int_eq(job.classes, 0);
    ck_assert_int_eq(job.dataset.kind, DATA_MNIST);
    ck_assert_int_eq(job.dataset.usage, DATA_TRAIN);
    ck_assert_int_eq(job.dataset.shuffle, 1);
    ck_assert_int_eq(job.n_transforms, 0);
    ck_assert_int_eq(job.batch_size, 32);
    ck_assert_int_eq(job.accumulate, 1);
    ck_assert_int_eq(job.drop_remainder, 0);
    ck_assert_int_eq(job.epochs, 1);
    ck_assert_int_eq(job.steps, 0);
    ck_assert_int_eq(job.loss, JOB_LOSS_SOFTMAX_CE);
    ck_assert_int_eq(job.mode, JOB_DATA_PARALLEL);
    ck_assert_int_eq(job.gradients_mean, 1);
    ck_assert_int_eq(job.parameter_broadcast, 1);
    ck_assert_int_eq(job.precision, JOB_FP32);
    ck_assert_int_eq(job.seed, 1);
    ck_assert_int_eq(job.threads, 0);
    ck_assert_str_eq(job.initial_weights, "");
    ck_assert_int_eq(job.recovery, 1);
    ck_assert_int_eq(job.has_evaluate, 0);
    ck_assert_int_eq(job.has_checkpoint, 0);
    ck_assert_str_eq(job.resume, "");
}
END_TEST

START_TEST(defaults_of_checkpoints_are_filled_in_where_there_are_any)
{
    struct job job;

    ck_ms_ok(parse_more("name: mine\ncheckpoint: {}\nresume: before\n", &job, err));

    ck_assert_int_eq(job.has_checkpoint, 1);
    ck_assert_str_eq(job.checkpoint_directory, "checkpoints");
    ck_assert_str_eq(job.checkpoint_prefix, "mine");
    ck_assert_int_eq(job.checkpoint_every_steps, 100);
    ck_assert_int_eq(job.checkpoint_every_seconds, 0);
    ck_assert_int_eq(job.checkpoint_keep_max, 5);
    ck_assert_str_eq(job.resume, "/base/before");
    ck_ms_ok(parse_more("checkpoint: null\n", &job, err));
    ck_assert_int_eq(job.has_checkpoint, 0);
    ck_assert_str_eq(job.checkpoint_directory, "");
}
END_TEST

START_TEST(mark_of_byte_order_is_no_part_of_a_job)
{
    struct job job;
    ck_ms_ok(parse("\xEF\xBB\xBF"
                   "name: marked\nnetwork: linear\nloss: mse\n"
                   "dataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 0.01}\n",
                   &job, err));
    ck_assert_str_eq(job.name, "marked");
    ck_ms_fails(parse("\xEF\xBB\xBF", &job, err), MS_E_INVALID, "");
}
END_TEST

START_TEST(inputs_that_are_not_there_are_named_with_their_key)
{
    struct job job;
    char text[512];
    static const char base[] = "network: linear\nloss: mse\ndataset: {kind: nonlinear}\n"
                               "optimizer: {kind: sgd, learning_rate: 0.01}\n";
    ck_ms_ok(parse(base, &job, err));
    ck_ms_ok(job_check_inputs(&job, err)); /* needs none */

    ck_ms_ok(parse("network: mnist\ndataset: {kind: mnist, path: /no/where}\n"
                   "optimizer: {kind: sgd, learning_rate: 0.01}\n",
                   &job, err));
    ck_ms_fails(job_check_inputs(&job, err), MS_E_NOT_FOUND, "dataset: data set /no/where");

    ck_ms_ok(parse("network: resnet50\ndataset: {kind: shapes}\n"
                   "evaluate: {dataset: {kind: cifar10, path: /no/where}}\n"
                   "optimizer: {kind: sgd, learning_rate: 0.01}\n",
                   &job, err));
    ck_ms_fails(job_check_inputs(&job, err), MS_E_NOT_FOUND, "evaluate: data set /no/where");

    snprintf(text, sizeof(text), "%sinitial_weights: /no/where.safetensors\n", base);
    ck_ms_ok(parse(text, &job, err));
    ck_ms_fails(job_check_inputs(&job, err), MS_E_NOT_FOUND,
                "initial_weights: /no/where.safetensors");
}
END_TEST

START_TEST(where_a_job_is_submitted_only_what_is_not_there_counts)
{
    struct job job;
    ck_ms_ok(parse("network: mnist\ndataset: {kind: mnist, path: '${NOT_HERE}/mnist'}\n"
                   "optimizer: {kind: sgd, learning_rate: 0.01}\n",
                   &job, err));
    unsetenv("NOT_HERE");
    ck_ms_fails(job_check_inputs(&job, err), MS_E_INVALID, "NOT_HERE");
    ck_ms_ok(job_find_inputs(&job, err)); /* the nodes may have the variable */

    snprintf(job.initial_weights, sizeof(job.initial_weights), "/nonexistent/w");
    ck_ms_fails(job_find_inputs(&job, err), MS_E_NOT_FOUND, "initial_weights: /nonexistent/w");
    snprintf(job.initial_weights, sizeof(job.initial_weights), "/proc/self/exe");
    ck_ms_ok(job_find_inputs(&job, err)); /* it is there: what it is worth the ranks say */

    job.has_evaluate = 1;
    job.evaluate_dataset = job.dataset;
    snprintf(job.evaluate_dataset.path, sizeof(job.evaluate_dataset.path), "/nonexistent/mnist");
    ck_ms_fails(job_find_inputs(&job, err), MS_E_NOT_FOUND,
                "evaluate: data set /nonexistent/mnist");
}
END_TEST

START_TEST(where_a_job_is_submitted_its_program_is_not_started)
{
    static const char script[] = "#!/bin/sh\n: >started\n";
    const char *dir = test_dir_make();
    char path[300];
    struct job job;
    snprintf(path, sizeof(path), "%s/make.sh", dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(script, file);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0700), 0);
    static const char text[] = "network: [flatten, {dense: {out: classes}}]\n"
                               "dataset: {kind: program, path: make.sh, shape: [2], classes: 3}\n"
                               "optimizer: {kind: sgd, learning_rate: 0.01}\n";
    ck_ms_ok(job_parse(text, strlen(text), "job.yaml", dir, NULL, 0, 0, &job, err));

    ck_ms_ok(job_find_inputs(&job, err));
    ck_assert_int_eq(unlink(path), 0);
    ck_ms_fails(job_find_inputs(&job, err), MS_E_NOT_FOUND, "make.sh: there is none");

    snprintf(path, sizeof(path), "%s/started", dir);
    ck_assert_int_ne(access(path, F_OK), 0);
    test_dir_remove(dir);
}
END_TEST

START_TEST(evaluation_follows_the_job_where_it_says_nothing)
{
    struct job job;

    ck_ms_ok(parse_more("batch_size: 7\nevaluate: {dataset: {kind: mnist, path: m}}\n", &job, err));

    ck_assert_int_eq(job.has_evaluate, 1);
    ck_assert_int_eq(job.evaluate_dataset.usage, DATA_TEST);
    ck_assert_int_eq(job.evaluate_batch_size, 7);
    ck_assert_int_eq(job.evaluate_every_epochs, 1);
    ck_assert_str_eq(job.evaluate_dataset.path, "/base/m");
}
END_TEST

START_TEST(numbers_as_targets_mean_mse)
{
    struct job job;

    ck_ms_ok(parse("network: linear\ndataset: {kind: nonlinear}\n"
                   "optimizer: {kind: adam, learning_rate: 1e-3}\n",
                   &job, err));

    ck_assert_int_eq(job.loss, JOB_LOSS_MSE);
    ck_assert_int_eq(job.optimizer.kind, JOB_ADAM);
    ck_assert_double_eq(job.optimizer.beta1, 0.9);
    ck_assert_double_eq(job.optimizer.beta2, 0.999);
    ck_assert_double_eq(job.optimizer.epsilon, 1e-8);
}
END_TEST

START_TEST(losses_of_numbers_have_what_fits_them)
{
#define NUMBERS                                                                                    \
    "network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1e-3}\n"
#define COUNTS(what) "evaluate: {dataset: {kind: nonlinear}, metrics: [" what "]}\n"
    struct job job;

    ck_ms_ok(parse(NUMBERS "loss: l1\n" COUNTS("mae"), &job, err));
    ck_assert_int_eq(job.loss, JOB_LOSS_L1);
    ck_ms_ok(parse(NUMBERS "loss: huber\n" COUNTS("mae"), &job, err));
    ck_assert_double_eq(job.huber_delta, 1);
    ck_ms_ok(parse(NUMBERS "loss: huber\nhuber_delta: 0.25\n", &job, err));
    ck_assert_int_eq(job.loss, JOB_LOSS_HUBER);
    ck_assert_double_eq(job.huber_delta, 0.25);
    char *text = job_format(&job, NULL);
    ck_assert_ptr_nonnull(strstr(text, "\"huber_delta\":0.25,"));
    free(text);
    ck_ms_ok(parse(NUMBERS "loss: binary_cross_entropy\n", &job, err));
    ck_assert_int_eq(job.loss, JOB_LOSS_BCE);
    ck_ms_fails(parse(NUMBERS "loss: binary_cross_entropy\n" COUNTS("mae"), &job, err),
                MS_E_INVALID, "and loss: binary_cross_entropy has logits; leave it out");
    ck_ms_fails(parse(NUMBERS COUNTS("top5"), &job, err), MS_E_INVALID,
                "evaluate.metrics: with loss: mse targets are numbers, no classes; leave top5,");
    ck_ms_fails(parse(NUMBERS "loss: huber\nhuber_delta: 0\n", &job, err), MS_E_INVALID,
                "huber_delta: ");
    ck_ms_fails(parse(NUMBERS "loss: huber\nlabel_smoothing: 0.1\n", &job, err), MS_E_INVALID,
                "label_smoothing has no meaning with loss: huber");
}
END_TEST

#define PARSED(text)                                                                               \
    "network: mnist\ndataset: {kind: mnist, path: /data}\n" text                                   \
    "optimizer: {kind: sgd, learning_rate: 0.1}\n"
#define TEN "[1, 0.5, 0, 4, 1, 1, 1, 1, 1, 2.5]"

static const struct {
    const char *text, *part;
} refused_labels[] = {
    {"class_weights: [1, 2]\n",
     "job.yaml:3:16: class_weights: 2 numbers, and the data set has 10 classes; give one a class"},
    {"classes: 12\nclass_weights: " TEN "\n", "10 numbers, and the network has 12 classes"},
    {"class_weights: 2\n", "class_weights must be a list, a number a class"},
    {"class_weights: []\n", "class_weights must be a list"},
    {"class_weights: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n", "class_weights are all 0"},
    {"class_weights: [1, -0.5]\n", "job.yaml:3:20: class_weights: '-0.5' is out of range"},
    {"class_weights: [1, 1e-50]\n", "class_weights: 1e-50 leaves nothing of a gradient; give 0, "},
    {"class_weights: [1, .nan]\n", "class_weights: '.nan' is not finite"},
    {"class_weights: [1, 1e7]\n", "numbers from 0 to 1000000, one a class"},
    {"ignored_label: none\n", "ignored_label: 'none' is no whole number; give a whole number from"},
    {"ignored_label: 2147483648\n", "ignored_label: '2147483648' is out of range"},
};

START_TEST(what_labels_cannot_count_is_refused)
{
    char text[512];
    struct job job;
    snprintf(text, sizeof(text), PARSED("%s"), refused_labels[_i].text);
    ck_ms_fails(parse(text, &job, err), MS_E_INVALID, refused_labels[_i].part);
}
END_TEST

#define SOFT                                                                                       \
    "network: [flatten, dense: {out: classes}]\n"                                                  \
    "dataset: {kind: numpy, path: /d, shape: [3], target_width: 4}\n"                              \
    "optimizer: {kind: sgd, learning_rate: 0.1}\n"

START_TEST(targets_that_are_numbers_may_be_shares_of_classes)
{
    struct job job;
    ck_ms_ok(parse(SOFT "loss: softmax_cross_entropy\nclass_weights: [1, 2, 3, 4]\n"
                        "label_smoothing: 0.1\n",
                   &job, err));
    ck_ms_ok(parse(SOFT, &job, err));
    ck_assert_int_eq(job.loss, JOB_LOSS_MSE);
    ck_ms_fails(parse(SOFT "loss: softmax_cross_entropy\nclass_weights: [1, 2, 3]\n", &job, err),
                MS_E_INVALID, "class_weights: 3 numbers, and the data set has 4 classes");
    ck_ms_fails(parse(SOFT "loss: softmax_cross_entropy\nignored_label: 0\n", &job, err),
                MS_E_INVALID, "give a sample that does not count 0 of each class");
}
END_TEST

START_TEST(labels_count_by_the_weights_of_their_classes)
{
    struct job job;
    ck_ms_ok(parse(PARSED("class_weights: " TEN "\nignored_label: 0\n"), &job, err));
    ck_assert_int_eq(job.n_class_weights, 10);
    ck_assert_double_eq(job.class_weights[3], 4);
    ck_assert(job.dataset.ignored.is_there && job.dataset.ignored.label == 0);
    ck_assert(data_is_ignored(&job.evaluate_dataset.ignored, 0));
    ck_ms_ok(parse(PARSED("ignored_label: null\n"), &job, err));
    ck_assert(!job.dataset.ignored.is_there && job.n_class_weights == 0);
    ck_ms_fails(parse(NUMBERS "class_weights: [1]\n", &job, err), MS_E_INVALID,
                "class_weights has no meaning with loss: mse; leave it out");
    ck_ms_fails(parse(NUMBERS "ignored_label: 0\n", &job, err), MS_E_INVALID,
                "ignored_label has no meaning with loss: mse");
}
END_TEST

START_TEST(defaults_of_an_optimizer_and_its_schedule_are_filled_in)
{
    struct job job;

    ck_ms_ok(parse_set(MINIMAL, "optimizer.kind=adamw", &job, err));
    ck_assert_int_eq(job.optimizer.kind, JOB_ADAMW);
    ck_assert_double_eq(job.optimizer.beta2, 0.999);
    ck_assert_double_eq(job.optimizer.weight_decay, 0);
    ck_assert_int_eq(job.optimizer.has_schedule, 0);
    ck_ms_ok(parse_set(MINIMAL, "optimizer.kind=rmsprop", &job, err));
    ck_assert_double_eq(job.optimizer.alpha, 0.99);
    ck_assert_double_eq(job.optimizer.epsilon, 1e-8);
    ck_assert_double_eq(job.optimizer.momentum, 0); /* another default than that of momentum */
    ck_assert_int_eq(job.optimizer.centered, 0);
    ck_ms_ok(parse_set(MINIMAL, "optimizer={kind: rmsprop, learning_rate: 1, momentum: 0.5}", &job,
                       err));
    ck_assert_double_eq(job.optimizer.momentum, 0.5);
    ck_ms_ok(parse_set(MINIMAL, "optimizer.kind=lamb", &job, err));
    ck_assert_double_eq(job.optimizer.epsilon, 1e-6);
    ck_assert_double_eq(job.optimizer.beta1, 0.9);
    ck_ms_ok(parse_set(WITH_IMAGES, "optimizer.schedule={kind: cosine}", &job, err));
    ck_assert_int_eq(job.optimizer.nesterov, 0);
    ck_assert_double_eq(job.optimizer.momentum, 0.9);
    ck_assert_int_eq(job.optimizer.has_schedule, 1);
    const struct job_schedule *schedule = &job.optimizer.schedule;
    ck_assert_int_eq(schedule->kind, JOB_COSINE);
    ck_assert_int_eq(schedule->by, JOB_BY_STEP);
    ck_assert_int_eq(schedule->warmup, 0);
    ck_assert_int_eq(schedule->length, 0);
    ck_assert_double_eq(schedule->min_learning_rate, 0);
    ck_ms_ok(parse_set(MINIMAL, "optimizer.schedule={kind: polynomial}", &job, err));
    ck_assert_double_eq(schedule->power, 1);
    ck_ms_ok(parse_set(MINIMAL, "optimizer.schedule={kind: one_cycle, max_learning_rate: 1}", &job,
                       err));
    ck_assert_double_eq(schedule->pct_start, 0.3);
    ck_ms_ok(parse_set(MINIMAL,
                       "optimizer.schedule={kind: multi_step, by: epoch, milestones: [3, "
                       "9]}",
                       &job, err));
    ck_assert_double_eq(schedule->gamma, 0.1);
    ck_assert_int_eq(schedule->by, JOB_BY_EPOCH);
    ck_assert_int_eq(schedule->n_milestones, 2);
    ck_assert_int_eq(schedule->milestones[1], 9);
}
END_TEST

START_TEST(which_schedules_are_as_long_as_the_job)
{
    static const struct {
        const char *schedule;
        int is;
    } schedules[] = {{"null", 0},
                     {"{kind: constant}", 0},
                     {"{kind: step, by: step, step_size: 3}", 0},
                     {"{kind: cosine}", 1},
                     {"{kind: cosine, by: epoch, length: 9}", 0},
                     {"{kind: polynomial}", 1},
                     {"{kind: one_cycle, max_learning_rate: 1}", 1}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(schedules); i++) {
        struct job job;
        char set[128];
        snprintf(set, sizeof(set), "optimizer.schedule=%s", schedules[i].schedule);
        ck_ms_ok(parse_set(MINIMAL, set, &job, err));
        ck_assert_int_eq(job_schedule_is_as_long(&job), schedules[i].is);
    }
}
END_TEST

START_TEST(steps_of_a_job_are_capped)
{
    struct job job;
    ck_ms_ok(parse_more("epochs: 3\n", &job, err));
    ck_assert_uint_eq(job_total_steps(&job, 7), 21);
    ck_ms_ok(parse_more("epochs: 3\nsteps: 20\n", &job, err));
    ck_assert_uint_eq(job_total_steps(&job, 7), 20);
    ck_assert_uint_eq(job_total_steps(&job, 2), 6);
}
END_TEST

START_TEST(transforms_are_read_in_order_with_mindspore_s_short_forms)
{
    struct job job;

    ck_ms_ok(parse_set(WITH_IMAGES,
                       "transforms=[{random_crop: {size: 28, padding: [1, 2]}}, "
                       "{random_horizontal_flip: }, {resize: {size: [64, 48], interpolation: "
                       "nearest}}, {rescale: {scale: 0.5}}, {normalize: {mean: [1, 2, 3], std: "
                       "[4, 5, 6]}}]",
                       &job, err));

    ck_assert_int_eq(job.n_transforms, 5);
    ck_assert_int_eq(job.transforms[0].height, 28);
    ck_assert_int_eq(job.transforms[0].width, 28);
    ck_assert_int_eq(job.transforms[0].pad_left, 1);
    ck_assert_int_eq(job.transforms[0].pad_top, 2);
    ck_assert_int_eq(job.transforms[0].pad_right, 1);
    ck_assert_int_eq(job.transforms[0].pad_bottom, 2);
    ck_assert_double_eq(job.transforms[1].probability, 0.5);
    ck_assert_int_eq(job.transforms[2].height, 64);
    ck_assert_int_eq(job.transforms[2].width, 48);
    ck_assert_int_eq(job.transforms[2].interpolation, INTERPOLATION_NEAREST);
    ck_assert_double_eq(job.transforms[3].shift, 0);
    ck_assert_int_eq(job.transforms[4].n_channels, 3);
    ck_assert_double_eq(job.transforms[4].std[2], 6);
}
END_TEST

START_TEST(relative_paths_start_at_the_job_s_folder)
{
    struct job job;

    ck_ms_ok(parse_set(MINIMAL, "dataset.path=./mnist", &job, err));
    ck_assert_str_eq(job.dataset.path, "/base/mnist");
    ck_ms_ok(parse_set(MINIMAL, "dataset.path=${DATA_PATH}/mnist", &job, err));
    ck_assert_str_eq(job.dataset.path, "${DATA_PATH}/mnist");
    ck_ms_ok(parse_set(MINIMAL, "dataset.path=sub/${DATA_PATH}", &job, err));
    ck_assert_str_eq(job.dataset.path, "/base/sub/${DATA_PATH}");
    ck_ms_ok(parse_set(MINIMAL, "initial_weights=w.safetensors", &job, err));
    ck_assert_str_eq(job.initial_weights, "/base/w.safetensors");
}
END_TEST

START_TEST(workers_of_the_command_line_beat_the_file)
{
    struct job job;

    ck_ms_ok(job_parse(MINIMAL, strlen(MINIMAL), "job.yaml", "/base", NULL, 0, 5, &job, err));
    ck_assert_int_eq(job.workers, 5);
    ck_ms_fails(job_parse(MINIMAL, strlen(MINIMAL), "job.yaml", "/base", NULL, 0, 2000, &job, err),
                MS_E_INVALID, "-n 2000: give a whole number from 1 to 1024");
}
END_TEST

START_TEST(every_example_is_valid)
{
    static const struct {
        const char *file;
        int workers;
    } examples[] = {{"mnist.yaml", 8},        {"nonlinear.yaml", 1},   {"resnet50-cifar10.yaml", 8},
                    {"lenet5-mnist.yaml", 1}, {"own-network.yaml", 2}, {"shapes.yaml", 4}};
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    ck_assert_ptr_nonnull(root);
    char path[1024];
    struct job job;

    snprintf(path, sizeof(path), "%s/examples/%s", root, examples[_i].file);

    ck_ms_ok(job_load(path, NULL, 0, 0, &job, err));
    ck_assert_int_eq(job.workers, examples[_i].workers);
}
END_TEST

/* ---- canonical JSON ---- */

static const char *const round_trips[] = {
    "",
    "label_smoothing: 0.1\n",
    "class_weights: " TEN "\nignored_label: -100\n",
    "transforms: [{rescale: {scale: 0.5}}, {mixup: {alpha: 0.2}}]\n",
    "ignored_label: 0\nevaluate: {dataset: {kind: mnist, path: x}}\n",
    "name: a.b-c_9\nworkers: 1024\npriority: -5\nclasses: 12\nsteps: 7\nthreads: 3\nseed: "
    "9007199254740992\n",
    "initial_weights: w.safetensors\nevaluate: {dataset: {kind: mnist, path: x}, every_epochs: 4, "
    "batch_size: 100}\n",
    "transforms:\n  - random_crop: {size: [20, 22], padding: [1, 2, 3, 4]}\n  - "
    "random_horizontal_flip: {prob: 0.1}\n  - resize: {size: [14, 56]}\n  - rescale: {scale: "
    "0.00392156862745098, shift: -0.1}\n  - normalize: {mean: [0.1307], std: [0.3081]}\n",
    "parallel: {mode: stand_alone, gradients_mean: false, parameter_broadcast: false}\n"
    "drop_remainder: true\n",
    "parallel: {mode: stand_alone}\nworkers: 2\n",
    "checkpoint: {directory: /mnt/c, prefix: a.b, every_steps: 7, every_seconds: 60, keep_max: 2}\n"
    "resume: /runs/before\n",
    "checkpoint: {directory: a/plan.txt, prefix: scheduler.db}\n",
    "checkpoint: {directory: /c/tls}\n",
    "checkpoint: {directory: worker_1.logs}\n",
    "checkpoint: {}\n",
};

/* Where nobody holds what a lost rank had; -n may make one of several, and several of one. */
START_TEST(independent_trainings_are_not_recovered_where_nobody_says_so)
{
    static const struct {
        const char *text;
        int workers, recovery;
    } jobs[] = {{"workers: 2\nparallel: {mode: stand_alone}\n", 0, 0},
                {"workers: 2\nparallel: {mode: stand_alone}\n", 1, 1},
                {"parallel: {mode: stand_alone}\n", 0, 1},
                {"parallel: {mode: stand_alone}\n", 3, 0},
                {"parallel: {mode: stand_alone}\nrecovery: true\n", 0, 1},
                {"workers: 2\nparallel: {mode: stand_alone}\nrecovery: false\n", 0, 0},
                {"workers: 2\n", 0, 1}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(jobs); i++) {
        char text[512];
        struct job job;
        snprintf(text, sizeof(text), "%s%s", MINIMAL, jobs[i].text);
        ck_ms_ok(job_parse(text, strlen(text), "job.yaml", "/base", NULL, 0, jobs[i].workers, &job,
                           err));
        ck_assert_msg(job.recovery == jobs[i].recovery, "%zu: %d", i, job.recovery);
    }
}
END_TEST

START_TEST(what_was_formatted_reads_back_equal)
{
    struct job job;
    ck_ms_ok(parse_more(round_trips[_i], &job, err));
    check_round_trip(&job);
}
END_TEST

START_TEST(generators_and_adam_read_back_equal)
{
    struct job job;

    ck_ms_ok(parse("network: cifar_small\ndataset: {kind: shapes, samples: 123, seed: 77}\n"
                   "optimizer: {kind: adam, learning_rate: 3.3e-4, beta1: 0.85, epsilon: 1e-7}\n",
                   &job, err));

    check_round_trip(&job);
}
END_TEST

static const char *const optimizers[] = {
    "{kind: momentum, learning_rate: 0.1, nesterov: true, weight_decay: 1e-4}",
    "{kind: sgd, learning_rate: 0.1, weight_decay: -0.0}",
    "{kind: rmsprop, learning_rate: 0.1}",
    "{kind: rmsprop, learning_rate: 0.1, alpha: 0, momentum: 0.5, centered: true, epsilon: 1}",
    "{kind: lamb, learning_rate: 0.1, beta1: 0.8, weight_decay: 0.01}",
    "{kind: adamw, learning_rate: 0.1, weight_decay: 0.01, schedule: {kind: constant}}",
    "{kind: sgd, learning_rate: 0.1, schedule: {kind: step, by: epoch, step_size: 30}}",
    "{kind: sgd, learning_rate: 0.1, schedule: {kind: multi_step, by: step, milestones: [5]}}",
    "{kind: sgd, learning_rate: 0.1, schedule: {kind: exponential, by: step, gamma: 0.97}}",
    "{kind: sgd, learning_rate: 0.1, schedule: {kind: cosine, by: epoch, warmup: 1, length: 9}}",
    "{kind: sgd, learning_rate: 0.1, schedule: {kind: polynomial, power: 0.9, by: step}}",
    "{kind: sgd, learning_rate: 0.1, schedule: {kind: one_cycle, max_learning_rate: 0.5}}",
};

START_TEST(optimizers_read_back_equal)
{
    struct job job;
    char set[256];
    snprintf(set, sizeof(set), "optimizer=%s", optimizers[_i]);
    ck_ms_ok(parse_set(MINIMAL, set, &job, err));
    check_round_trip(&job);
}
END_TEST

START_TEST(a_number_that_was_added_is_written_where_it_is_not_its_default)
{
    struct job job;
    ck_ms_ok(parse_set(MINIMAL, "accumulate=1", &job, err));
    char *text = job_format(&job, NULL);
    ck_assert_ptr_null(strstr(text, "accumulate"));
    free(text);
    ck_assert_int_eq(job.optimizer.has_average, 0);
    ck_ms_ok(parse_set(MINIMAL, "average={decay: 0.5}", &job, err));
    ck_assert_int_eq(job.optimizer.has_average, 1);
    text = job_format(&job, NULL);
    ck_assert_ptr_nonnull(strstr(text, "{\"average\":{\"decay\":0.5},"));
    free(text);
    check_round_trip(&job);
    ck_ms_ok(parse_set(MINIMAL, "accumulate=8", &job, err));
    text = job_format(&job, NULL);
    ck_assert_ptr_nonnull(strstr(text, "{\"accumulate\":8,"));
    free(text);
    check_round_trip(&job);
}
END_TEST

/* Checkpoints and older releases know no key that was added since. */
START_TEST(keys_that_were_added_are_written_where_they_are_given)
{
    struct job job;
    ck_ms_ok(parse_set(MINIMAL,
                       "optimizer={kind: momentum, learning_rate: 0.5, momentum: 0.5, nesterov: "
                       "false, weight_decay: 0, schedule: null}",
                       &job, err));
    char *text = job_format(&job, NULL);
    ck_assert_ptr_null(strstr(text, "accumulate"));
    ck_assert_ptr_nonnull(strstr(
        text, "\"optimizer\":{\"kind\":\"momentum\",\"learning_rate\":0.5,\"momentum\":0.5},"));
    free(text);
    ck_ms_ok(parse_set(MINIMAL,
                       "optimizer={kind: momentum, learning_rate: 0.5, momentum: 0.5, nesterov: "
                       "true, weight_decay: 0.25, schedule: {kind: multi_step, by: step, "
                       "milestones: [2, 3], gamma: 0.5}}",
                       &job, err));
    text = job_format(&job, NULL);
    ck_assert_ptr_nonnull(strstr(
        text, "\"momentum\":0.5,\"nesterov\":true,\"schedule\":{\"by\":\"step\",\"gamma\":0.5,"
              "\"kind\":\"multi_step\",\"milestones\":[2,3],\"warmup\":0,\"warmup_from\":0.0},"
              "\"weight_decay\":0.25},"));
    free(text);
}
END_TEST

START_TEST(canonical_json_is_sorted_and_whole)
{
    struct job job;
    ck_ms_ok(parse(MINIMAL, &job, err));

    char *text = job_format(&job, NULL);

    ck_assert_str_eq(
        text,
        "{\"batch_size\":32,\"classes\":0,\"dataset\":{\"kind\":\"mnist\",\"path\":\"/data/mnist\","
        "\"shuffle\":true,\"usage\":\"train\"},\"drop_remainder\":false,\"epochs\":1,\"evaluate\":"
        "null,\"initial_weights\":null,\"loss\":\"softmax_cross_entropy\",\"name\":\"mnist\","
        "\"network\":\"mnist\",\"optimizer\":{\"kind\":\"sgd\",\"learning_rate\":0.01},"
        "\"parallel\":"
        "{\"gradients_mean\":true,\"mode\":\"data_parallel\",\"parameter_broadcast\":true},"
        "\"precision\":\"fp32\",\"priority\":0,\"recovery\":true,\"seed\":1,\"steps\":0,"
        "\"threads\":0,\"transforms\":[],\"workers\":1}");
    free(text);
}
END_TEST

/* ---- overrides ---- */

START_TEST(an_override_replaces_a_value_or_makes_its_section)
{
    struct job job;
    char *text = NULL;

    ck_ms_ok(parse_set(MINIMAL, "optimizer.learning_rate=0.5", &job, err));
    ck_assert_double_eq(job.optimizer.learning_rate, 0.5);
    ck_ms_ok(parse_set(MINIMAL, "parallel.gradients_mean=false", &job, err));
    ck_assert_int_eq(job.gradients_mean, 0);
    ck_ms_ok(parse_set(MINIMAL, "evaluate.dataset={kind: mnist, path: /t}", &job, err));
    ck_assert_int_eq(job.has_evaluate, 1);
    ck_assert_uint_eq(job.evaluate_metrics, 0);
    text = job_format(&job, NULL);
    ck_assert_ptr_null(strstr(text, "\"metrics\"")); /* older releases know no such key */
    free(text);
    ck_ms_ok(parse_set(MINIMAL,
                       "evaluate={dataset: {kind: mnist, path: /t}, metrics: [confusion, top5]}",
                       &job, err));
    ck_assert_uint_eq(job.evaluate_metrics, 1U << JOB_METRIC_TOP5 | 1U << JOB_METRIC_CONFUSION);
    text = job_format(&job, NULL);
    ck_assert_ptr_nonnull(strstr(text, "\"metrics\":[\"top5\",\"confusion\"]"));
    free(text);
    ck_ms_ok(parse_set(MINIMAL, "evaluate=null", &job, err));
    ck_assert_int_eq(job.has_evaluate, 0);
    ck_ms_ok(parse_set(MINIMAL, "checkpoint={}", &job, err));
    ck_assert_int_eq(job.has_checkpoint, 1);
    ck_ms_ok(parse_set(MINIMAL, "checkpoint=~", &job, err));
    ck_assert_int_eq(job.has_checkpoint, 0);
}
END_TEST

START_TEST(later_overrides_win)
{
    const struct job_override list[] = {{"epochs=3"}, {"epochs=4"}};
    struct job job;

    ck_ms_ok(job_parse(MINIMAL, strlen(MINIMAL), "job.yaml", "/base", list, 2, 0, &job, err));

    ck_assert_int_eq(job.epochs, 4);
}
END_TEST

static const struct {
    const char *set, *part;
} bad_sets[] = {
    {"epochs", "write --set KEY=VALUE"},
    {"=3", "write --set KEY=VALUE"},
    {"epochs=", "--set epochs: no value after the ="},
    {"epochs=many", "--set epochs: epochs: 'many' is no whole number"},
    {"optimizer.learning_rate=-1", "--set optimizer.learning_rate: optimizer.learning_rate: '-1' "},
    {"optimizer.lr=1", "--set optimizer.lr: optimizer.lr is no key of a job"},
    {"optmizer.kind=sgd", "did you mean optimizer?"},
    {"optimizer.seed=2", "optimizer.seed is no key of a job; did you mean seed?"},
    {"checkpoint.keep=3", "did you mean checkpoint.keep_max?"}, /* best.keep is another section's */
    {"checkpoint.every=3", "known here: directory prefix every_steps every_seconds "},
    {"optimizer.qqqqqqqqqqqq=2", "known here: kind learning_rate momentum beta1 "}, /* each once */
    {"optimizer.learning_rat=1", "did you mean optimizer.learning_rate?"},
    {"network.more=1", "--set network.more: network is a value"},
    {"transforms.0=1", "nothing can be set below it"},
    {"epochs..x=1", "no dotted path"},
    {".epochs=1", "no dotted path"},
    {"epochs.=1", "no dotted path"},
    {"transforms=[{resize: {size: [1, 2}}]", "--set transforms: no valid YAML"},
    {"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t."
     "u.v.w=1",
     "no dotted path"},
};

START_TEST(a_bad_override_is_named)
{
    struct job job;
    const char *base = strncmp(bad_sets[_i].set, "transforms.0", 12) == 0
                           ? "network: mnist\ntransforms: [1]\n"
                           : MINIMAL;
    ck_ms_fails(parse_set(base, bad_sets[_i].set, &job, err), MS_E_INVALID, bad_sets[_i].part);
}
END_TEST

/* ---- files and the environment ---- */

START_TEST(a_file_is_loaded_with_paths_against_its_folder)
{
    const char *dir = test_dir_make();
    char path[128];
    char want[256];
    snprintf(path, sizeof(path), "%s/job.yaml", dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("network: mnist\ndataset: {kind: mnist, path: m}\n"
          "optimizer: {kind: sgd, learning_rate: 1}\n",
          file);
    fclose(file);
    struct job job;

    ck_ms_ok(job_load(path, NULL, 0, 0, &job, err));

    snprintf(want, sizeof(want), "%s/m", dir);
    ck_assert_str_eq(job.dataset.path, want);
    test_dir_remove(dir);
}
END_TEST

START_TEST(what_cannot_be_read_is_named)
{
    struct job job;
    ck_ms_fails(job_load("/nowhere/job.yaml", NULL, 0, 0, &job, err), MS_E_INVALID,
                "job file /nowhere/job.yaml cannot be opened: No such file");
    ck_ms_fails(job_load("/tmp", NULL, 0, 0, &job, err), MS_E_INVALID, "is no regular file");
    ck_ms_fails(job_load("/dev/zero", NULL, 0, 0, &job, err), MS_E_INVALID, "is no regular file");
}
END_TEST

START_TEST(variables_expand_where_the_worker_runs)
{
    char path[64];
    setenv("MSCHED_TEST_DATA", "/d", 1);
    unsetenv("MSCHED_TEST_NONE");

    ck_ms_ok(job_expand_path("${MSCHED_TEST_DATA}/x/${MSCHED_TEST_DATA}", path, sizeof(path), err));
    ck_assert_str_eq(path, "/d/x//d");
    ck_ms_ok(job_expand_path("/a/$b", path, sizeof(path), err));
    ck_assert_str_eq(path, "/a/$b");
    ck_ms_fails(job_expand_path("${MSCHED_TEST_NONE}/x", path, sizeof(path), err), MS_E_INVALID,
                "the environment has no MSCHED_TEST_NONE here");
    ck_ms_fails(job_expand_path("${MSCHED_TEST_DATA", path, sizeof(path), err), MS_E_INVALID,
                "no name and } follow");
    ck_ms_fails(job_expand_path("/01234567890123456789", path, 10, err), MS_E_INVALID,
                "more than 9 bytes");
}
END_TEST

/* ---- the table itself ---- */

START_TEST(every_row_has_help_and_stands_below_its_section)
{
    for (size_t i = 0; i < job_table.n; i++) {
        const struct field *row = &job_table.rows[i];
        ck_assert_msg(row->help != NULL && *row->help != '\0', "%s has no help", row->key);
        int has_choices =
            row->type == FIELD_ENUM || row->own == &job_network || row->own == &job_metrics;
        ck_assert_int_eq(row->choices != NULL, has_choices);
        ck_assert_msg(row->when_mask == 0 || row->when_key != NULL, "%s", row->key);
        const char *dot = strrchr(row->key, '.');
        int found = dot == NULL;
        for (size_t s = 0; s < i; s++) {
            const char *section = job_table.rows[s].key;
            found |= dot != NULL && strlen(section) == (size_t)(dot - row->key) &&
                     strncmp(section, row->key, strlen(section)) == 0 &&
                     job_table.rows[s].type == FIELD_SECTION;
        }
        ck_assert_msg(found, "%s has no section before it", row->key);
    }
}
END_TEST

/* The schema has names of its own, so that msctl need not link the models. */
START_TEST(networks_are_those_that_the_models_have)
{
    size_t n = 0;
    for (size_t i = 0; i < job_table.n; i++) {
        const struct field *row = &job_table.rows[i];
        for (size_t k = 0; row->own == &job_network && row->choices[k] != NULL; k++) {
            int found = 0;
            for (size_t m = 0; network_known(m) != NULL; m++) {
                found |= strcmp(network_known(m), row->choices[k]) == 0;
            }
            ck_assert_msg(found, "no model %s", row->choices[k]);
            n++;
        }
    }
    ck_assert_ptr_nonnull(network_known(n - 1));
    ck_assert_ptr_null(network_known(n));
}
END_TEST

/* ".Sy key" in mdoc; keys inside a transform stand there by their own name. */
static void check_manual(const char *manual, const struct field_table *table)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct field *row = &table->rows[i];
        char want[128];
        snprintf(want, sizeof(want), "Sy %s", row->key);
        if (row->type == FIELD_SECTION || row->own == &job_transforms) {
            snprintf(want, sizeof(want), "%s",
                     strcmp(row->key, "evaluate.dataset") == 0 ? "Sy evaluate.dataset.kind"
                                                               : row->key);
        }
        int is_there = strstr(manual, want) != NULL;
        ck_assert_msg(is_there == field_is_key(row), "%s: in the manual: %d", row->key, is_there);
    }
}

START_TEST(every_key_stands_in_the_manual)
{
    static char manual[65536];
    char path[1024];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    ck_assert_ptr_nonnull(root);
    snprintf(path, sizeof(path), "%s/docs/man/msched-job.5", root);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_lt(fread(manual, 1, sizeof(manual) - 1, file), sizeof(manual) - 1);
    fclose(file);

    check_manual(manual, &job_table);
    for (size_t k = 0; k < job_n_transform_kinds; k++) {
        ck_assert_ptr_nonnull(strstr(manual, job_transform_kinds[k].name));
        check_manual(manual, &job_transform_kinds[k].table);
    }
}
END_TEST

/* The example is that of the manual; it must not rot. */
START_TEST(the_example_of_the_manual_is_valid)
{
    static char manual[65536];
    char path[1024];
    struct job job;
    snprintf(path, sizeof(path), "%s/docs/man/msched-job.5", getenv("MSCHED_SOURCE_ROOT"));
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(manual, 1, sizeof(manual) - 1, file), 0);
    fclose(file);
    char *begin = strstr(manual, "network: lenet5");
    ck_assert_ptr_nonnull(begin);
    char *end = strstr(begin, ".Ed");
    ck_assert_ptr_nonnull(end);

    ck_ms_ok(job_parse(begin, (size_t)(end - begin), "manual", NULL, NULL, 0, 0, &job, err));
    ck_assert_int_eq(job.n_transforms, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job");
    TCase *tc = tcase_create("job");
    tcase_add_test(tc, defaults_are_those_of_the_manual);
    tcase_add_test(tc, where_a_job_is_submitted_its_program_is_not_started);
    tcase_add_test(tc, where_a_job_is_submitted_only_what_is_not_there_counts);
    tcase_add_test(tc, defaults_of_checkpoints_are_filled_in_where_there_are_any);
    tcase_add_test(tc, mark_of_byte_order_is_no_part_of_a_job);
    tcase_add_test(tc, inputs_that_are_not_there_are_named_with_their_key);
    tcase_add_test(tc, evaluation_follows_the_job_where_it_says_nothing);
    tcase_add_test(tc, numbers_as_targets_mean_mse);
    tcase_add_test(tc, losses_of_numbers_have_what_fits_them);
    tcase_add_loop_test(tc, what_labels_cannot_count_is_refused, 0, MS_ARRAY_SIZE(refused_labels));
    tcase_add_test(tc, labels_count_by_the_weights_of_their_classes);
    tcase_add_test(tc, targets_that_are_numbers_may_be_shares_of_classes);
    tcase_add_test(tc, defaults_of_an_optimizer_and_its_schedule_are_filled_in);
    tcase_add_test(tc, which_schedules_are_as_long_as_the_job);
    tcase_add_test(tc, steps_of_a_job_are_capped);
    tcase_add_test(tc, transforms_are_read_in_order_with_mindspore_s_short_forms);
    tcase_add_test(tc, relative_paths_start_at_the_job_s_folder);
    tcase_add_test(tc, workers_of_the_command_line_beat_the_file);
    tcase_add_loop_test(tc, every_example_is_valid, 0, 6);
    tcase_add_test(tc, independent_trainings_are_not_recovered_where_nobody_says_so);
    tcase_add_loop_test(tc, what_was_formatted_reads_back_equal, 0,
                        (int)MS_ARRAY_SIZE(round_trips));
    tcase_add_test(tc, generators_and_adam_read_back_equal);
    tcase_add_loop_test(tc, optimizers_read_back_equal, 0, (int)MS_ARRAY_SIZE(optimizers));
    tcase_add_test(tc, a_number_that_was_added_is_written_where_it_is_not_its_default);
    tcase_add_test(tc, keys_that_were_added_are_written_where_they_are_given);
    tcase_add_test(tc, canonical_json_is_sorted_and_whole);
    tcase_add_test(tc, an_override_replaces_a_value_or_makes_its_section);
    tcase_add_test(tc, later_overrides_win);
    tcase_add_loop_test(tc, a_bad_override_is_named, 0, (int)MS_ARRAY_SIZE(bad_sets));
    tcase_add_test(tc, a_file_is_loaded_with_paths_against_its_folder);
    tcase_add_test(tc, what_cannot_be_read_is_named);
    tcase_add_test(tc, variables_expand_where_the_worker_runs);
    tcase_add_test(tc, every_row_has_help_and_stands_below_its_section);
    tcase_add_test(tc, networks_are_those_that_the_models_have);
    tcase_add_test(tc, every_key_stands_in_the_manual);
    tcase_add_test(tc, the_example_of_the_manual_is_valid);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
