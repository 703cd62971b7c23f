/* test_job.c - job files: defaults, every refusal with its place, overrides, canonical JSON */
#include "libworker/job/job.h"
#include "libworker/job/job_schema.h"
#include "libworker/network/network.h"
#include "tests/test.h"

static const char minimal[] = "network: mnist\n"
                              "dataset: {kind: mnist, path: /data/mnist}\n"
                              "optimizer: {kind: sgd, learning_rate: 0.01}\n";
static const char with_images[] = "network: resnet50\n"
                                  "dataset: {kind: cifar10, path: /data/cifar}\n"
                                  "optimizer: {kind: momentum, learning_rate: 0.01}\n";

static int parse(const char *text, struct job *ret, struct ms_err *err)
{
    return job_parse(text, strlen(text), "job.yaml", "/base", NULL, 0, 0, ret, err);
}

static int parse_set(const char *text, const char *key_value, struct job *ret, struct ms_err *err)
{
    struct job_override override = {key_value};
    return job_parse(text, strlen(text), "job.yaml", "/base", &override, 1, 0, ret, err);
}

/* minimal plus lines of one's own. */
static int parse_more(const char *more, struct job *ret, struct ms_err *err)
{
    char text[4096];
    snprintf(text, sizeof(text), "%s%s", minimal, more);
    return parse(text, ret, err);
}

/* ---- good files ---- */

START_TEST(defaults_are_those_of_the_manual)
{
    struct job job;

    ck_ms_ok(parse(minimal, &job, err));

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

    ck_ms_ok(parse_set(minimal, "optimizer.kind=adamw", &job, err));
    ck_assert_int_eq(job.optimizer.kind, JOB_ADAMW);
    ck_assert_double_eq(job.optimizer.beta2, 0.999);
    ck_assert_double_eq(job.optimizer.weight_decay, 0);
    ck_assert_int_eq(job.optimizer.has_schedule, 0);
    ck_ms_ok(parse_set(minimal, "optimizer.kind=rmsprop", &job, err));
    ck_assert_double_eq(job.optimizer.alpha, 0.99);
    ck_assert_double_eq(job.optimizer.epsilon, 1e-8);
    ck_assert_double_eq(job.optimizer.momentum, 0); /* another default than that of momentum */
    ck_assert_int_eq(job.optimizer.centered, 0);
    ck_ms_ok(parse_set(minimal, "optimizer={kind: rmsprop, learning_rate: 1, momentum: 0.5}", &job,
                       err));
    ck_assert_double_eq(job.optimizer.momentum, 0.5);
    ck_ms_ok(parse_set(minimal, "optimizer.kind=lamb", &job, err));
    ck_assert_double_eq(job.optimizer.epsilon, 1e-6);
    ck_assert_double_eq(job.optimizer.beta1, 0.9);
    ck_ms_ok(parse_set(with_images, "optimizer.schedule={kind: cosine}", &job, err));
    ck_assert_int_eq(job.optimizer.nesterov, 0);
    ck_assert_double_eq(job.optimizer.momentum, 0.9);
    ck_assert_int_eq(job.optimizer.has_schedule, 1);
    const struct job_schedule *schedule = &job.optimizer.schedule;
    ck_assert_int_eq(schedule->kind, JOB_COSINE);
    ck_assert_int_eq(schedule->by, JOB_BY_STEP);
    ck_assert_int_eq(schedule->warmup, 0);
    ck_assert_int_eq(schedule->length, 0);
    ck_assert_double_eq(schedule->min_learning_rate, 0);
    ck_ms_ok(parse_set(minimal, "optimizer.schedule={kind: polynomial}", &job, err));
    ck_assert_double_eq(schedule->power, 1);
    ck_ms_ok(parse_set(minimal, "optimizer.schedule={kind: one_cycle, max_learning_rate: 1}", &job,
                       err));
    ck_assert_double_eq(schedule->pct_start, 0.3);
    ck_ms_ok(parse_set(minimal,
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
        ck_ms_ok(parse_set(minimal, set, &job, err));
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

    ck_ms_ok(parse_set(with_images,
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

    ck_ms_ok(parse_set(minimal, "dataset.path=./mnist", &job, err));
    ck_assert_str_eq(job.dataset.path, "/base/mnist");
    ck_ms_ok(parse_set(minimal, "dataset.path=${DATA_PATH}/mnist", &job, err));
    ck_assert_str_eq(job.dataset.path, "${DATA_PATH}/mnist");
    ck_ms_ok(parse_set(minimal, "dataset.path=sub/${DATA_PATH}", &job, err));
    ck_assert_str_eq(job.dataset.path, "/base/sub/${DATA_PATH}");
    ck_ms_ok(parse_set(minimal, "initial_weights=w.safetensors", &job, err));
    ck_assert_str_eq(job.initial_weights, "/base/w.safetensors");
}
END_TEST

START_TEST(workers_of_the_command_line_beat_the_file)
{
    struct job job;

    ck_ms_ok(job_parse(minimal, strlen(minimal), "job.yaml", "/base", NULL, 0, 5, &job, err));
    ck_assert_int_eq(job.workers, 5);
    ck_ms_fails(job_parse(minimal, strlen(minimal), "job.yaml", "/base", NULL, 0, 2000, &job, err),
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

static void check_round_trip(const struct job *job)
{
    struct job again;
    size_t size = 0;
    char *text = job_format(job, &size);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(size, strlen(text));
    ck_assert_ptr_null(strchr(text, '\n'));

    ck_ms_ok(job_parse(text, size, "canonical", NULL, NULL, 0, 0, &again, err));

    ck_assert_mem_eq(job, &again, sizeof(again));
    char *second = job_format(&again, NULL);
    ck_assert_str_eq(text, second);
    free(text);
    free(second);
}

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
        snprintf(text, sizeof(text), "%s%s", minimal, jobs[i].text);
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
    ck_ms_ok(parse_set(minimal, set, &job, err));
    check_round_trip(&job);
}
END_TEST

START_TEST(a_number_that_was_added_is_written_where_it_is_not_its_default)
{
    struct job job;
    ck_ms_ok(parse_set(minimal, "accumulate=1", &job, err));
    char *text = job_format(&job, NULL);
    ck_assert_ptr_null(strstr(text, "accumulate"));
    free(text);
    ck_assert_int_eq(job.optimizer.has_average, 0);
    ck_ms_ok(parse_set(minimal, "average={decay: 0.5}", &job, err));
    ck_assert_int_eq(job.optimizer.has_average, 1);
    text = job_format(&job, NULL);
    ck_assert_ptr_nonnull(strstr(text, "{\"average\":{\"decay\":0.5},"));
    free(text);
    check_round_trip(&job);
    ck_ms_ok(parse_set(minimal, "accumulate=8", &job, err));
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
    ck_ms_ok(parse_set(minimal,
                       "optimizer={kind: momentum, learning_rate: 0.5, momentum: 0.5, nesterov: "
                       "false, weight_decay: 0, schedule: null}",
                       &job, err));
    char *text = job_format(&job, NULL);
    ck_assert_ptr_null(strstr(text, "accumulate"));
    ck_assert_ptr_nonnull(strstr(
        text, "\"optimizer\":{\"kind\":\"momentum\",\"learning_rate\":0.5,\"momentum\":0.5},"));
    free(text);
    ck_ms_ok(parse_set(minimal,
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
    ck_ms_ok(parse(minimal, &job, err));

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

    ck_ms_ok(parse_set(minimal, "optimizer.learning_rate=0.5", &job, err));
    ck_assert_double_eq(job.optimizer.learning_rate, 0.5);
    ck_ms_ok(parse_set(minimal, "parallel.gradients_mean=false", &job, err));
    ck_assert_int_eq(job.gradients_mean, 0);
    ck_ms_ok(parse_set(minimal, "evaluate.dataset={kind: mnist, path: /t}", &job, err));
    ck_assert_int_eq(job.has_evaluate, 1);
    ck_assert_uint_eq(job.evaluate_metrics, 0);
    text = job_format(&job, NULL);
    ck_assert_ptr_null(strstr(text, "\"metrics\"")); /* older releases know no such key */
    free(text);
    ck_ms_ok(parse_set(minimal,
                       "evaluate={dataset: {kind: mnist, path: /t}, metrics: [confusion, top5]}",
                       &job, err));
    ck_assert_uint_eq(job.evaluate_metrics, 1U << JOB_METRIC_TOP5 | 1U << JOB_METRIC_CONFUSION);
    text = job_format(&job, NULL);
    ck_assert_ptr_nonnull(strstr(text, "\"metrics\":[\"top5\",\"confusion\"]"));
    free(text);
    ck_ms_ok(parse_set(minimal, "evaluate=null", &job, err));
    ck_assert_int_eq(job.has_evaluate, 0);
    ck_ms_ok(parse_set(minimal, "checkpoint={}", &job, err));
    ck_assert_int_eq(job.has_checkpoint, 1);
    ck_ms_ok(parse_set(minimal, "checkpoint=~", &job, err));
    ck_assert_int_eq(job.has_checkpoint, 0);
}
END_TEST

START_TEST(later_overrides_win)
{
    const struct job_override list[] = {{"epochs=3"}, {"epochs=4"}};
    struct job job;

    ck_ms_ok(job_parse(minimal, strlen(minimal), "job.yaml", "/base", list, 2, 0, &job, err));

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
                           : minimal;
    ck_ms_fails(parse_set(base, bad_sets[_i].set, &job, err), MS_E_INVALID, bad_sets[_i].part);
}
END_TEST

/* ---- refusals: lines added to the minimal job, which has three ---- */

static const struct {
    const char *more, *part;
} refused[] = {
    {"workers: 0\n",
     "job.yaml:4:10: workers: '0' is out of range; give a whole number from 1 to 1024"},
    {"workers: 1000000\n", "'1000000' is out of range"},
    {"workers: -1\n", "'-1' is out of range"},
    {"workers: 99999999999999999999\n", "is out of range"},
    {"workers: two\n", "workers: 'two' is no whole number"},
    {"workers: 2.0\n", "'2.0' is no whole number"},
    {"workers: \"2\"\n", "'2' is no whole number"},
    {"workers: [2]\n", "workers: a list is no whole number"},
    {"workers:\n", "workers has no value"},
    {"workers: {}\n", "workers: a section is no whole number"},
    {"wrokers: 2\n", "job.yaml:4:1: wrokers is no key of a job; did you mean workers?"},
    {"learning_rate: 2\n", "did you mean optimizer.learning_rate?"},
    {"qqqqqqqqqqqq: 2\n", "known here: name workers"},
    {"name: a/b\n", "has a character that names of files here may not have"},
    {"name: .hidden\n", "begins with a dot or a dash"},
    {"name: -x\n", "begins with a dot or a dash"},
    {"initial_weights: ${X}\nparallel: {mode: ${X}}\n", "put \"${...}\" into quotes"},
    {"name: \"\"\n", "is no name"},
    {"name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "is too long"},
    {"drop_remainder: yes\n", "'yes' is neither true nor false; give true or false"},
    {"drop_remainder: 1\n", "neither true nor false"},
    {"batch_size: 65537\n", "from 1 to 65536"},
    {"epochs: 0\n", "from 1 to 1000000"},
    {"seed: -1\n", "is out of range"},
    {"seed: 9007199254740993000\n", "is out of range"},
    {"loss: softmax\n", "'softmax' is not known"},
    {"loss: mse\n", "loss: mse wants numbers as targets, and dataset kind mnist has classes"},
    {"classes: 3\n", "classes: 3, but dataset kind mnist has labels 0 to 9"},
    {"precision: bf16\n", "precision: bf16 comes later; this version has fp32"},
    {"checkpoint: {directory: ../ckpt}\n", "checkpoint.directory: '../ckpt' goes up by .., which"},
    {"checkpoint: {directory: a/../b}\n", "goes up by .., which is not taken where a job writes"},
    {"checkpoint: {directory: a/..}\n", "goes up by .."},
    {"checkpoint: {directory: \"${HOME}/x\"}\n", "has a variable in it, which is not taken"},
    {"checkpoint: {directory: ~/x}\n", "begins with ~, which is not taken where a job writes"},
    {"checkpoint: {directory: weights.safetensors}\n",
     "job.yaml:4:25: checkpoint.directory: 'weights.safetensors' is the name of a file that the "
     "run "
     "directory has itself; give a folder below"},
    {"checkpoint: {directory: ./plan.txt/}\n", "'./plan.txt/' is the name of a file"},
    {"checkpoint: {directory: .//metrics.jsonl/x}\n", "is the name of a file"},
    {"checkpoint: {directory: worker_1.log}\n", "is the name of a file"},
    {"checkpoint: {directory: scheduler.log}\n", "is the name of a file"},
    {"checkpoint: {directory: scheduler.db-wal}\n", "is the name of a file"},
    {"checkpoint: {directory: scheduler.sock}\n", "is the name of a file"},
    {"checkpoint: {directory: tls}\n", "is the name of a file"},
    {"checkpoint: {directory: run.lock}\n", "is the name of a file"},
    {"checkpoint: {directory: ./., prefix: scheduler.db}\n",
     "job.yaml:4:38: checkpoint.prefix: 'scheduler.db' in a run directory itself would be taken"},
    {"checkpoint: {directory: /c, prefix: scheduler.db}\n",
     "job.yaml:4:37: checkpoint.prefix: 'scheduler.db' in a run directory itself would be taken"},
    {"checkpoint: {directory: best-12.safetensors}\n", "is the name of a file"},
    {"evaluate: {dataset: {kind: cifar10, path: /x}}\nbest: {keep: 2}\n"
     "checkpoint: {prefix: best}\n",
     "checkpoint.prefix: with best.keep: 2 the best weights are called best-STEP"},
    {"evaluate: {dataset: {kind: cifar10, path: /x}}\nbest: {keep: 0}\n",
     "best.keep: '0' is out of range"},
    {"checkpoint: {directory: [x]}\n", "checkpoint.directory: a list is no folder"},
    {"checkpoint: {directory: \"a\\nb\"}\n", "has a control character in it"},
    {"checkpoint: {prefix: a/b}\n", "checkpoint.prefix: 'a/b' has a character that names"},
    {"checkpoint: {keep_max: 0}\n", "checkpoint.keep_max: '0' is out of range"},
    {"checkpoint: {every_steps: -1}\n", "checkpoint.every_steps: '-1' is out of range"},
    {"checkpoint: {every_step: 1}\n", "did you mean checkpoint.every_steps?"},
    {"checkpoint: 100\n", "checkpoint must be a section of keys"},
    {"workers: 2\nparallel: {mode: stand_alone}\ncheckpoint: {}\n",
     "job.yaml:6:13: checkpoint: in mode stand_alone each of the 2 workers"},
    {"workers: 2\nparallel: {mode: stand_alone}\nresume: /x\n",
     "job.yaml:6:9: resume: in mode stand_alone each of the 2 workers"},
    {"workers: 2\nparallel: {mode: stand_alone}\nrecovery: true\n",
     "job.yaml:6:11: recovery: in mode stand_alone each of the 2 workers has a training of its "
     "own, and no other one holds what a lost one had; use one worker, or data_parallel"},
    {"recovery: 1\n", "job.yaml:4:11: recovery: '1' is neither true nor false"},
    {"profile: true\n", "profile comes with a later version"},
    {"gradient_accumulation: 4\n",
     "job.yaml:4:1: gradient_accumulation is called accumulate here; give that key"},
    {"accumulate: 0\n", "accumulate: '0' is out of range; give a whole number from 1 to 1024"},
    {"accumulate: 1025\n", "accumulate: '1025' is out of range"},
    {"average: {}\n",
     "average.decay is missing (what stays of it in a step); give a number from 0"},
    {"average: 0.9\n", "average must be a section of keys: a moving average of the weights"},
    {"average: {decay: 1}\n", "average.decay: '1' is out of range"},
    {"accumulat: 2\n", "did you mean accumulate?"},
    {"parallel: {mode: auto_parallel}\n", "parallel.mode: auto_parallel comes later"},
    {"parallel: {mode: semi_auto_parallel}\n", "comes later"},
    {"parallel: {grad_accumulation_step: 4}\n",
     "parallel.grad_accumulation_step is called accumulate here; give that key"},
    {"parallel: 3\n", "parallel must be a section"},
    {"parallel:\n", "job.yaml:4:10: parallel has no value; give {} for the defaults, or its keys "
                    "(how the workers share it)"},
    {"parallel: null\n", "parallel has no value; give {} for the defaults, or its keys"},
    {"checkpoint:\n#  every_steps: 10\n",
     "checkpoint has no value; give {} for the defaults, or its keys (what a training is resumed "
     "from), or null for none"},
    {"evaluate:\n", "evaluate has no value; give its keys (loss and accuracy on other data), or "
                    "null for none"},
    {"evaluate: {dataset: }\n", "evaluate.dataset has no value; give its keys (what it is tested "
                                "on)"},
    {"evaluate: {dataset: {kind: mnist, path: m}, metrics: top5}\n",
     "evaluate.metrics must be a list, as [top5, per_class]"},
    {"evaluate: {dataset: {kind: mnist, path: m}, metrics: [top1]}\n",
     "job.yaml:4:55: evaluate.metrics: 'top1' is not known, did you mean top5?; legal: top5 | "
     "per_class | confusion | perplexity | mae"},
    {"evaluate: {dataset: {kind: mnist, path: m}, metrics: [top5, top5]}\n",
     "job.yaml:4:61: evaluate.metrics has top5 twice"},
    {"loss: l1\n", "loss: l1 wants numbers as targets, and dataset kind mnist has classes"},
    {"huber_delta: 2\n", "huber_delta has no meaning with loss: softmax_cross_entropy"},
    {"evaluate: {dataset: {kind: mnist, path: m}, metrics: [mae]}\n",
     "evaluate.metrics: mae is the distance to targets that are numbers, and loss: "
     "softmax_cross_entropy has classes; leave it out"},
    {"resume:\n", "resume has no value; give a path, or null for none"},
    {"initial_weights:\n", "initial_weights has no value; give a path, or {file: PATH, exclude: "
                           "[PATTERN, ...], rename: "},
    {"parallel: {mode: pipeline_parallel}\n",
     "job.yaml:4:18: parallel.mode: pipeline_parallel comes later; this version has data_parallel"},
    {"parallel: {pipeline_stages: 2}\n", "job.yaml:4:12: parallel.pipeline_stages comes with a "
                                         "later version (model parallelism); leave the key out"},
    {"pipeline_parallel: 2\n",
     "job.yaml:4:1: pipeline_parallel comes with a later version (model parallelism); leave"},
    {"tensor_parallel: 2\n", "tensor_parallel comes with a later version (model parallelism)"},
    {"model_parallel: 2\n", "model_parallel comes with a later version (model parallelism)"},
    {"graph: net.onnx\n",
     "job.yaml:4:1: graph comes with a later version (graphs of MindSpore; a "
     "model of PyTorch's exporters is network: model.onnx); leave the key out"},
    {"mixed_precision: true\n", "mixed_precision comes with a later version (bf16)"},
    {"precision: bfloat16\n", "precision: bfloat16 comes later; this version has fp32"},
    {"checkpoints: {every: 5}\n", "checkpoints is no key of a job; did you mean checkpoint?"},
    {"initial_weights: \"~/x\"\n", "write ${HOME}"},
    {"initial_weights: \"${X\"\n", "has a ${ that no name and } follow"},
    {"initial_weights: \"${}\"\n", "has a ${ that no name and } follow"},
    {"initial_weights: \"a\\nb\"\n", "has a control character in it"},
    {"initial_weights: [x]\n", "initial_weights: a list is no path"},
    {"early_stop: {patience: 2}\n", "early_stop: evaluations decide, and the job has none"},
    {"best: {}\n", "best: evaluations decide, and the job has none; give evaluate"},
    {"evaluate: {dataset: {kind: mnist, path: x}}\nearly_stop: {}\n",
     "early_stop.patience is missing"},
    {"evaluate: {dataset: {kind: mnist, path: x}}\nbest: {metric: top5}\n",
     "best.metric: top5 is not counted; add it to evaluate.metrics"},
    {"evaluate: {dataset: {kind: mnist, path: x}}\nbest: {metric: f1}\n", "'f1' is not known"},
    {"evaluate: {dataset: {kind: mnist, path: x}}\nearly_stop: {patience: 1}\nworkers: 2\n"
     "parallel: {mode: stand_alone}\n",
     "early_stop: in mode stand_alone each of the 2 workers has a training of its own"},
    {"evaluate: {every_epochs: 2}\n", "evaluate.dataset is missing"},
    {"evaluate: {dataset: {kind: mnist}}\n", "evaluate.dataset.path is missing"},
    {"evaluate: {dataset: {kind: cifar10, path: x}}\n", "does not fit training on kind mnist"},
    {"evaluate: {dataset: {kind: mnist, path: x, shuffle: true}}\n", "is no key of a job"},
    {"evaluate: {dataset: {kind: mnist, path: x}}\ntransforms: [{random_crop: {size: 24}}]\n",
     "images are 28x28, but training has 24x24"},
    {"transforms: {resize: {size: [1, 1]}}\n", "transforms must be a list"},
    {"transforms: [resize]\n", "transforms[0] must have exactly one name"},
    {"transforms: [{resize: {size: [1, 1]}, rescale: {scale: 1}}]\n", "exactly one name"},
    {"transforms: [{mixup: {}}, {rescale: {scale: 2}}]\n",
     "mixup: samples are mixed when they are ready; put it last"},
    {"transforms: [{mixup: {alpha: 0}}]\n", "transforms[0].mixup.alpha: '0' is out of range"},
    {"transforms: [{mixup: {alpha: 101}}]\n", "above 0 and at most 100"},
    {"transforms: [{resze: {size: [1, 1]}}]\n", "resze is no transform; did you mean resize?"},
    {"transforms: [{resize: 3}]\n", "transforms[0].resize must hold keys"},
    {"transforms: [{resize: }]\n", "transforms[0].resize.size is missing"},
    {"transforms: [{resize: {size: 32}}]\n", "'32' does not fit; give [height, width], each"},
    {"transforms: [{resize: {size: [0, 5]}}]\n", "'0' is out of range"},
    {"transforms: [{resize: {size: [5, 5000]}}]\n", "'5000' is out of range"},
    {"transforms: [{resize: {size: [5, 5], interpolation: cubic}}]\n", "'cubic' is not known"},
    {"transforms: [{resize: {size: [5, 5], iterpolation: nearest}}]\n",
     "did you mean interpolation?"},
    {"transforms: [{normalize: {mean: [1, 2], std: [1]}}]\n",
     "transforms[0].normalize.std has 1 numbers where the list before it has 2"},
    {"transforms: [{normalize: {mean: [0], std: [0]}}]\n", "'0' is out of range"},
    {"transforms: [{normalize: {mean: [.inf], std: [1]}}]\n", "'.inf' is not finite"},
    {"transforms: [{normalize: {mean: [], std: []}}]\n", "is no list of numbers"},
    {"transforms: [{normalize: {mean: [1, 2, 3], std: [1, 2, 3]}}]\n",
     "normalize: mean and std have 3 numbers, the images have 1 channels"},
    {"transforms: [{random_crop: {size: 99, padding: 4}}]\n",
     "random_crop: size [99, 99] is larger than the padded image, 36x36"},
    {"transforms: [{random_crop: {size: 9, padding: [1, 2, 3]}}]\n", "a list does not fit"},
    {"transforms: [{random_crop: {size: 9, padding: 85}}]\n", "more than three times the image"},
    {"transforms: [{random_horizontal_flip: {prob: 1.5}}]\n", "from 0 to 1"},
    {"a: &x 1\n", "job.yaml:4:4: anchors (&x)"},
    {"a: *x\n", "job.yaml:4:4: aliases (*x)"},
    {"a: !!int 3\n", "tags (tag:yaml.org,2002:int)"},
    {"? [a]\n: 3\n", "a key must be a word"},
    {"network: mnist\n", "job.yaml:4:1: network stands twice: first on line 1"},
    {"---\nnetwork: mnist\n", "a second document begins"},
    {"\tworkers: 2\n", "job.yaml:4:1: a tab cannot indent YAML"},
    {"name: \"\\0\"\n", "a NUL byte"},
    {"name: [unclosed\n", "no valid YAML"},
    {"workers 2\n", "job.yaml:4:1: no valid YAML: while scanning a simple key, could not find"},
    {"name: a\x01z\n", "a control character (0x01)"},
    {"name: \xff\xfe\n", "not UTF-8"},
    {"a: "
     "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
     "]]]]]]]]\n",
     "nested deeper than 48 levels"},
};

START_TEST(what_is_wrong_is_refused_with_its_place)
{
    struct job job;
    ck_ms_fails(parse_more(refused[_i].more, &job, err), MS_E_INVALID, refused[_i].part);
    ck_ms_fails(parse_more(refused[_i].more, &job, err), MS_E_INVALID, "job.yaml:");
}
END_TEST

/* Schedules of a job of 4 epochs and at most 50 steps with a rate of 0.1. */
static const struct {
    const char *optimizer, *part;
} refused_optimizers[] = {
    {"weight_decay: -1", "optimizer.weight_decay: '-1' is out of range; give a number from 0 to"},
    {"clip_norm: 1, clip_value: 1",
     "optimizer.clip_value has no meaning with optimizer.clip_norm: gradients are clipped in one"},
    {"clip_norm: -1", "optimizer.clip_norm: '-1' is out of range; give a number from 0 to 100000"},
    {"alpha: 0.9", "optimizer.alpha has no meaning with optimizer.kind: momentum; leave it out"},
    {"momentum: 0.9, kind: sgd", "optimizer.momentum has no meaning with optimizer.kind: sgd"},
    {"epsilon: 1, kind: sgd", "optimizer.epsilon has no meaning with optimizer.kind: sgd"},
    {"nesterov: true, kind: sgd", "optimizer.nesterov has no meaning with optimizer.kind: sgd"},
    {"nesterov: true, momentum: 0",
     "job.yaml:6:59: optimizer.nesterov: true wants a momentum above 0; give optimizer.momentum"},
    {"schedule: cosine", "optimizer.schedule must be a section of keys: how the learning rate"},
    {"schedule: ", "optimizer.schedule has no value; give its keys"},
    {"schedule: {}", "optimizer.schedule.kind is missing"},
    {"schedule: {kind: cosin}", "optimizer.schedule.kind: 'cosin' is not known"},
    {"schedule: {kind: cosine, gama: 1}", "did you mean optimizer.schedule.gamma?"},
    {"schedule: {kind: cosine, gamma: 1}",
     "optimizer.schedule.gamma has no meaning with optimizer.schedule.kind: cosine; leave it out"},
    {"schedule: {kind: constant, length: 5}", "optimizer.schedule.length has no meaning with"},
    {"schedule: {kind: constant, by: day}", "optimizer.schedule.by: 'day' is not known"},
    {"schedule: {kind: step, by: step}", "optimizer.schedule.step_size is missing"},
    {"schedule: {kind: step, by: step, step_size: 0}", "step_size: '0' is out of range"},
    {"schedule: {kind: step, step_size: 3}",
     "optimizer.schedule.by is missing (what the schedule counts); give step | epoch"},
    {"schedule: {kind: cosine, warmup: 3}",
     "optimizer.schedule.by is missing (what warmup and length count); give step | epoch"},
    {"schedule: {kind: cosine, length: 3}", "optimizer.schedule.by is missing"},
    {"schedule: {kind: exponential, by: step}", "optimizer.schedule.gamma is missing"},
    {"schedule: {kind: exponential, by: step, gamma: 1.5}", "'1.5' is out of range; give a number"},
    {"schedule: {kind: multi_step, by: step}", "optimizer.schedule.milestones is missing"},
    {"schedule: {kind: multi_step, by: step, milestones: 3}",
     "optimizer.schedule.milestones must be a list of whole numbers"},
    {"schedule: {kind: multi_step, by: step, milestones: []}", "must be a list of whole numbers"},
    {"schedule: {kind: multi_step, by: step, milestones: [3, x]}", "'x' is no whole number"},
    {"schedule: {kind: multi_step, by: step, milestones: [0]}",
     "'0' is out of range; give a list of whole numbers that rise, each from 1 to 1000000000000"},
    {"schedule: {kind: multi_step, by: step, milestones: [9, 9]}",
     "optimizer.schedule.milestones: 9 follows 9, and each must be larger"},
    {"schedule: {kind: multi_step, by: step, milestones: [5, 9], warmup: 5}",
     "optimizer.schedule.milestones: 5 lies within the warm-up, and they count from the job's "
     "beginning; give 6 or more"},
    {"schedule: {kind: constant, by: step, warmup: 51}",
     "optimizer.schedule.warmup: 51 steps, and the job has 50; give 0 to 50"},
    {"schedule: {kind: constant, by: epoch, warmup: 5}",
     "optimizer.schedule.warmup: 5 epochs, and the job has 4; give 0 to 4"},
    {"schedule: {kind: constant, by: epoch, warmup: -1}", "warmup: '-1' is out of range"},
    {"schedule: {kind: constant, warmup_from: 1.1}", "warmup_from: '1.1' is out of range"},
    {"schedule: {kind: cosine, by: step, warmup: 9, length: 9}",
     "optimizer.schedule.length: 9, and the warm-up is a part of it; give 10 or more, or less"},
    {"schedule: {kind: cosine, min_learning_rate: 0.2}",
     "optimizer.schedule.min_learning_rate: 0.2 is more than optimizer.learning_rate; give 0 to "
     "0.1"},
    {"schedule: {kind: polynomial, power: 0}", "power: '0' is out of range"},
    {"schedule: {kind: one_cycle}", "optimizer.schedule.max_learning_rate is missing"},
    {"schedule: {kind: one_cycle, max_learning_rate: 0.05}",
     "max_learning_rate: 0.05 is less than optimizer.learning_rate, from which it rises; give 0.1"},
    {"schedule: {kind: one_cycle, max_learning_rate: 1, pct_start: 2}", "pct_start: '2' is out of"},
};

START_TEST(what_is_wrong_with_an_optimizer_is_refused_with_its_place)
{
    struct job job;
    char text[1024];
    const char *kind =
        strstr(refused_optimizers[_i].optimizer, "kind: sgd") == NULL ? "kind: momentum, " : "";
    snprintf(text, sizeof(text),
             "network: mnist\ndataset: {kind: mnist, path: /data/mnist}\nepochs: 4\nsteps: 50\n"
             "loss: softmax_cross_entropy\noptimizer: {%slearning_rate: 0.1, %s}\n",
             kind, refused_optimizers[_i].optimizer);
    ck_ms_fails(parse(text, &job, err), MS_E_INVALID, refused_optimizers[_i].part);
    ck_ms_fails(parse(text, &job, err), MS_E_INVALID, "job.yaml:6:");
}
END_TEST

START_TEST(sixty_five_milestones_are_one_too_many)
{
    struct job job;
    char set[1024] = "optimizer.schedule={kind: multi_step, by: step, milestones: [1";
    for (int i = 2; i <= MS_MILESTONES_MAX; i++) {
        snprintf(set + strlen(set), sizeof(set) - strlen(set), ", %d", i);
    }
    const size_t n = strlen(set);
    snprintf(set + n, sizeof(set) - n, "]}");
    ck_ms_ok(parse_set(minimal, set, &job, err));
    ck_assert_int_eq(job.optimizer.schedule.milestones[63], 64);
    check_round_trip(&job);
    snprintf(set + n, sizeof(set) - n, ", 65]}");
    ck_ms_fails(parse_set(minimal, set, &job, err), MS_E_INVALID,
                "optimizer.schedule.milestones has 65 entries; at most 64");
}
END_TEST

START_TEST(no_bytes_at_all_are_an_empty_file)
{
    struct job job; /* an empty field of a message has no place either */
    ck_ms_fails(job_parse(NULL, 0, "the job", NULL, NULL, 0, 0, &job, err), MS_E_INVALID,
                "the file is empty");
}
END_TEST

static const struct {
    const char *text, *part;
} refused_whole[] = {
    {"", "the file is empty"},
    {"# a comment\n", "the file is empty"},
    {"---\n...\n", "the file is empty"},
    {"mnist\n", "this is a single value"},
    {"- mnist\n", "this is a list of values"},
    {"dataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1}\n",
     "job.yaml:1:1: network is missing"},
    {"network: mnist\noptimizer: {kind: sgd, learning_rate: 1}\n", "dataset is missing"},
    {"network: mnist\ndataset: {}\noptimizer: {kind: sgd, learning_rate: 1}\n",
     "job.yaml:2:10: dataset.kind is missing"},
    {"network: mnist\ndataset: {kind: mnist}\noptimizer: {kind: sgd, learning_rate: 1}\n",
     "dataset.path is missing"},
    {"network: linear\ndataset: {kind: nonlinear, path: x}\noptimizer: {kind: sgd, learning_rate: "
     "1}\n",
     "dataset.path has no meaning with dataset.kind: nonlinear"},
    {"network: linear\ndataset: {kind: nonlinear, usage: all}\noptimizer: {kind: sgd, "
     "learning_rate: 1}\n",
     "all has no meaning with kind: nonlinear"},
    {"network: linear\ndataset: {kind: nonlinear}\nloss: softmax_cross_entropy\noptimizer: {kind: "
     "sgd, learning_rate: 1}\n",
     "job.yaml:3:7: loss: softmax_cross_entropy wants classes"},
    {"network: linear\nclasses: 2\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, "
     "learning_rate: 1}\n",
     "has no classes; leave it out"},
    {"network: linear\ndataset: {kind: nonlinear}\ntransforms: [{resize: {size: [2, 2]}}]\n"
     "optimizer: {kind: sgd, learning_rate: 1}\n",
     "has no images; leave them out"},
    {"network: net.onnx\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1}\n",
     "job.yaml:1:10: network: /base/net.onnx cannot be opened"},
    {"network: resnet\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1}\n",
     "'resnet' is no network that has a name, did you mean resnet50?; give a list of layers, a "
     "file"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd}\n",
     "job.yaml:3:12: optimizer.learning_rate is missing"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: -0.1}\n",
     "optimizer.learning_rate: '-0.1' is out of range; give a number from 0 to 1000"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: .nan}\n",
     "'.nan' is not finite"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: NaN}\n",
     "'NaN' is not finite"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1e999}\n",
     "'1e999' is out of range"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 0x1p3}\n",
     "'0x1p3' is no number"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1, "
     "momentum: 0.9}\n",
     "optimizer.momentum has no meaning with optimizer.kind: sgd"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1, beta1: "
     "0.9}\n",
     "optimizer.beta1 has no meaning"},
};

START_TEST(a_file_that_is_no_job_is_refused)
{
    struct job job;
    ck_ms_fails(parse(refused_whole[_i].text, &job, err), MS_E_INVALID, refused_whole[_i].part);
}
END_TEST

START_TEST(a_failure_writes_nothing)
{
    struct job job;
    struct job before;
    memset(&job, 0x5A, sizeof(job));
    memcpy(&before, &job, sizeof(job));

    ck_ms_fails(parse_more("loss: mse\n", &job, err), MS_E_INVALID, "loss");

    ck_assert_mem_eq(&job, &before, sizeof(job));
}
END_TEST

START_TEST(a_bomb_of_many_values_is_refused)
{
    size_t size = 200000;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    memset(text, ',', size);
    for (size_t i = 0; i < size; i += 2) {
        text[i] = '1';
    }
    memcpy(text, "a: [", 4);
    struct job job;

    ck_ms_fails(job_parse(text, size, "job.yaml", NULL, NULL, 0, 0, &job, err), MS_E_INVALID,
                "more than 16384 values");
    free(text);
}
END_TEST

START_TEST(a_file_that_is_too_long_is_refused)
{
    size_t size = MS_JOB_FILE_MAX + 1;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    memset(text, '#', size);
    struct job job;

    ck_ms_fails(job_parse(text, size, "job.yaml", NULL, NULL, 0, 0, &job, err), MS_E_INVALID,
                "a job has at most 1048576");
    free(text);
}
END_TEST

START_TEST(seventeen_transforms_are_one_too_many)
{
    char text[1024] = "transforms=[{rescale: {scale: 1}}";
    for (int i = 0; i < MS_TRANSFORMS_MAX; i++) {
        strncat(text, ", {rescale: {scale: 1}}", sizeof(text) - strlen(text) - 1);
    }
    strncat(text, "]", sizeof(text) - strlen(text) - 1);
    struct job job;

    ck_ms_fails(parse_set(minimal, text, &job, err), MS_E_INVALID, "17 entries; at most 16");
}
END_TEST

START_TEST(a_path_without_a_folder_must_be_absolute)
{
    static const char text[] = "network: mnist\ndataset: {kind: mnist, path: mnist}\n"
                               "optimizer: {kind: sgd, learning_rate: 1}\n";
    struct job job;
    ck_ms_fails(job_parse(text, strlen(text), "submit", NULL, NULL, 0, 0, &job, err), MS_E_INVALID,
                "is relative");
}
END_TEST

START_TEST(a_path_that_is_too_long_is_refused)
{
    char text[2048];
    char path[MS_PATH_MAX + 2];
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    snprintf(text, sizeof(text), "dataset.path=%s", path);
    struct job job;

    ck_ms_fails(parse_set(minimal, text, &job, err), MS_E_INVALID, "is too long a path");
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

/* ---- a network of one's own ---- */

#define LISTED                                                                                     \
    "network:\n"                                                                                   \
    "  - conv2d: {out: 4, kernel: 5}\n"                                                            \
    "  - global_avg_pool\n"                                                                        \
    "  - dense: {out: classes}\n"
#define ON_SHAPES "dataset: {kind: shapes}\noptimizer: {kind: sgd, learning_rate: 0.1}\n"

static const char canonical_layers[] =
    "{\"layers\":[{\"conv2d\":{\"bias\":\"none\",\"dilation\":[1,1],\"groups\":1,\"kernel\":[5,5],"
    "\"out\":4,\"padding\":[0,0],\"stride\":[1,1],"
    "\"weight\":\"fan_in\"}},{\"global_avg_pool\":{}},{\"dense\":{\"bias\":\"fan_in\",\"out\":"
    "\"classes\",\"weight\":\"fan_in\"}}],\"name\":\"network\",\"summary\":\"\"}";

START_TEST(a_list_of_layers_is_a_network)
{
    static struct job job;
    static struct job again;
    size_t size = 0;
    ck_ms_ok(parse(LISTED ON_SHAPES, &job, err));
    ck_assert_str_eq(job.network, "network");
    ck_assert_str_eq(job.name, "network");
    ck_assert_str_eq(job.layers, canonical_layers);

    char *text = job_format(&job, &size);
    ck_assert_ptr_nonnull(strstr(text, canonical_layers));
    ck_ms_ok(job_parse(text, size, "again", NULL, NULL, 0, 0, &again, err));

    ck_assert_int_eq(memcmp(&job, &again, sizeof(job)), 0);
    free(text);
    struct network *network = NULL;
    ck_ms_ok(job_network_create(&again, &network, err));
    ck_assert_str_eq(network_name(network), "network");
    network_destroy(network);
}
END_TEST

START_TEST(its_document_says_what_it_is_called)
{
    static struct job job;
    ck_ms_ok(parse("network: {name: mine, layers: [flatten, dense: {out: classes}]}\n" ON_SHAPES,
                   &job, err));
    ck_assert_str_eq(job.network, "mine");
    ck_assert_str_eq(job.name, "mine");
    ck_ms_ok(parse_set("network: lenet5\n" ON_SHAPES, "network=[flatten, dense: {out: classes}]",
                       &job, err));
    ck_assert_str_eq(job.network, "network");
}
END_TEST

/* Relative to the job's folder; workers hear of the layers, and of no file. */
START_TEST(a_file_of_layers_is_as_if_it_stood_in_the_job)
{
    static struct job job;
    const char *dir = test_dir_make();
    char path[256];
    snprintf(path, sizeof(path), "%s/my net.yaml", dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("layers:\n  - flatten\n  - dense: {out: classes, name: fc}\n", file);
    fclose(file);
    static const char text[] = "network: my net.yaml\n" ON_SHAPES;
    ck_ms_ok(job_parse(text, strlen(text), "job.yaml", dir, NULL, 0, 0, &job, err));
    ck_assert_str_eq(job.network, "network");
    ck_assert_str_eq(job.name, "my_net");
    ck_assert_ptr_nonnull(strstr(job.layers, "\"name\":\"fc\""));

    ck_ms_fails(parse(text, &job, err), MS_E_INVALID,
                "network file /base/my net.yaml cannot be opened");
    setenv("OF_MINE", dir, 1);
    static const char by_variable[] = "network: ${OF_MINE}/my net.yaml\n" ON_SHAPES;
    ck_ms_ok(parse(by_variable, &job, err));
    ck_assert_str_eq(job.name, "my_net");
    /* nor does a worker open one for somebody else */
    char sent[512];
    snprintf(sent, sizeof(sent), "network: '%s'\n" ON_SHAPES, path);
    ck_ms_fails(job_parse(sent, strlen(sent), "job 7", NULL, NULL, 0, 0, &job, err), MS_E_INVALID,
                "network: a job that is sent has a list of layers or a name, no file");
    file = fopen(path, "w");
    fputs("- flatten\n- dense: {out: 3, name: fc}\n", file);
    fclose(file);
    ck_ms_fails(
        job_parse(text, strlen(text), "job.yaml", dir, NULL, 0, 0, &job, err), MS_E_INVALID,
        "my net.yaml:1:1: layers: the last one makes (32, 3), and 10 classes want (32, 10)");
    test_dir_remove(dir);
}
END_TEST

/* Its layers are in the job, its weights stay where they are. */
START_TEST(a_model_is_as_if_its_layers_stood_in_the_job_and_begins_it)
{
    static struct job job;
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    char dir[512];
    char want[600];
#define MODEL "network: net-torchscript-train.onnx\ntransforms: [{resize: {size: [20, 16]}}]\n"
    static const char text[] = MODEL ON_SHAPES;
    static const char random[] = MODEL "initial_weights: null\n" ON_SHAPES;
    static const char other[] = MODEL "initial_weights: w.safetensors\n" ON_SHAPES;
    ck_assert_ptr_nonnull(root);
    snprintf(dir, sizeof(dir), "%s/tests/golden/onnx", root);
    ck_ms_ok(job_parse(text, strlen(text), "job.yaml", dir, NULL, 0, 0, &job, err));
    snprintf(want, sizeof(want), "%s/net-torchscript-train.onnx", dir);
    ck_assert_str_eq(job.initial_weights, want);
    ck_assert_str_eq(job.name, "net-torchscript-train");
    ck_assert_ptr_nonnull(strstr(job.layers, "\"name\":\"stem.0\""));
    ck_ms_ok(job_check_inputs(&job, err));

    size_t size = 0;
    char *sent = job_format(&job, &size);
    static struct job again;
    ck_ms_ok(job_parse(sent, size, "job 7", NULL, NULL, 0, 0, &again, err));
    ck_assert_str_eq(again.layers, job.layers);
    ck_assert_str_eq(again.initial_weights, want);
    free(sent);

    ck_ms_ok(job_parse(random, strlen(random), "job.yaml", dir, NULL, 0, 0, &job, err));
    ck_assert_str_eq(job.initial_weights, "");
    ck_ms_ok(job_parse(other, strlen(other), "job.yaml", dir, NULL, 0, 0, &job, err));
    snprintf(want, sizeof(want), "%s/w.safetensors", dir);
    ck_assert_str_eq(job.initial_weights, want);
}
END_TEST

/* Without its data: what transforms leave of a record, and as many classes as the job says. */
START_TEST(the_graph_of_a_job_has_the_shapes_of_its_data)
{
    static const struct {
        const char *text, *data, *output, *label;
    } jobs[] = {
        {"network: lenet5\nbatch_size: 5\nclasses: 12\ntransforms: [{resize: {size: [40, 36]}}, "
         "{random_crop: {size: [32, 32]}}]\ndataset: {kind: mnist, path: /nowhere}\n",
         "(5, 1, 32, 32)", "(5, 12)", "(5)"},
        {"network: cifar_small\ndataset: {kind: cifar10, path: /nowhere}\n", "(32, 3, 32, 32)",
         "(32, 10)", "(32)"},
        {"network: linear\ndataset: {kind: nonlinear}\n", "(32, 2, 1, 1)", "(32, 1)", "(32, 1)"},
    };
    static struct job job;
    char text[512];
    char buf[96];
    for (size_t i = 0; i < MS_ARRAY_SIZE(jobs); i++) {
        struct network *network = NULL;
        struct network_layers *layers = NULL;
        struct graph *plain = NULL;
        struct graph *graph = NULL;
        snprintf(text, sizeof(text), "%soptimizer: {kind: sgd, learning_rate: 1}\n", jobs[i].text);
        ck_ms_ok(parse(text, &job, err));
        ck_ms_ok(job_network_create(&job, &network, err));
        ck_ms_ok(job_network_build(&job, network, NULL, &plain, err));
        ck_ms_ok(job_network_build(&job, network, &layers, &graph, err));
        const struct shape *data = &graph_tensor(graph, graph_data_index(graph))->shape;
        const struct shape *output = &graph_tensor(graph, graph_output(graph))->shape;
        const struct shape *label = &graph_tensor(graph, graph_label_index(graph))->shape;
        ck_assert_str_eq(shape_format(data, buf, sizeof(buf)), jobs[i].data);
        ck_assert_str_eq(shape_format(output, buf, sizeof(buf)), jobs[i].output);
        ck_assert_str_eq(shape_format(label, buf, sizeof(buf)), jobs[i].label);
        ck_assert_int_eq(graph_n_ops(plain), graph_n_ops(graph));
        ck_assert_uint_gt(layers->n, 1);
        graph_destroy(plain);
        graph_destroy(graph);
        network_layers_destroy(layers);
        network_destroy(network);
    }
}
END_TEST

/* What the data make of it is known when it is submitted. */
static const struct {
    const char *text, *words;
} unfit[] = {
    {"network: [flatten, dense: {out: 5}]\n" ON_SHAPES,
     "job.yaml:1:10: layers: the last one makes (32, 5), and 10 classes want (32, 10)"},
    {"network:\n  - relu\n  - dense: {out: classes}\n" ON_SHAPES,
     "job.yaml:3:5: layer dense1 (dense): it reads rows (n, values), and gets (32, 3, 32, 32)"},
    {"network:\n  - max_pool: {kernel: 40}\n" ON_SHAPES,
     "job.yaml:2:5: layer max_pool: max_pool: "},
    {"network: {layers: [nothing]}\n" ON_SHAPES, "layers[0]: nothing is no layer"},
    {"network: mnist\n" ON_SHAPES, "job.yaml:1:10: network mnist wants CxHxW of 784 features and "
                                   "gets 3x32x32"},
    {"network: lenet5\ntransforms: [{resize: {size: [28, 28]}}]\n" ON_SHAPES,
     "job.yaml:1:10: network lenet5 wants Cx32x32 and gets 3x28x28; add a resize transform"},
    {"network: []\n" ON_SHAPES, "a network is a list of layers"},
    {"network: [global_avg_pool]\nclasses: 10\ntransforms: []\n" ON_SHAPES,
     "layers: the last one makes (32, 3)"},
    {"network: [avg_pool: {kernel: [14, 5]}, flatten]\ndataset: {kind: mnist, path: "
     "/x}\noptimizer: {kind: sgd, learning_rate: 0.1}\n",
     "job.yaml:1:10: layers: none of them has parameters, so there is nothing to train"},
    {"network: none.yaml\n" ON_SHAPES,
     "job.yaml:1:10: network: network file /base/none.yaml cannot be opened"},
    {"network: squeeze.txt\n" ON_SHAPES,
     "'squeeze.txt' is no network that has a name; give a list of layers, a file with one, an "
     "ONNX model, or a name: "},
    {"network: true.yaml\n" ON_SHAPES, "network file /base/true.yaml cannot be opened"},
    {"network: net.mindir\n" ON_SHAPES, "of graph files those of ONNX are read (.onnx); give one"},
};

START_TEST(a_network_that_does_not_fit_its_data_is_refused_with_its_place)
{
    static struct job job;
    ck_ms_fails(parse(unfit[_i].text, &job, err), MS_E_INVALID, unfit[_i].words);
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
    tcase_add_loop_test(tc, what_is_wrong_with_an_optimizer_is_refused_with_its_place, 0,
                        (int)MS_ARRAY_SIZE(refused_optimizers));
    tcase_add_test(tc, sixty_five_milestones_are_one_too_many);
    tcase_add_test(tc, no_bytes_at_all_are_an_empty_file);
    tcase_add_loop_test(tc, what_is_wrong_is_refused_with_its_place, 0,
                        (int)MS_ARRAY_SIZE(refused));
    tcase_add_loop_test(tc, a_file_that_is_no_job_is_refused, 0, (int)MS_ARRAY_SIZE(refused_whole));
    tcase_add_test(tc, a_failure_writes_nothing);
    tcase_add_test(tc, a_bomb_of_many_values_is_refused);
    tcase_add_test(tc, a_file_that_is_too_long_is_refused);
    tcase_add_test(tc, seventeen_transforms_are_one_too_many);
    tcase_add_test(tc, a_path_without_a_folder_must_be_absolute);
    tcase_add_test(tc, a_path_that_is_too_long_is_refused);
    tcase_add_test(tc, a_file_is_loaded_with_paths_against_its_folder);
    tcase_add_test(tc, what_cannot_be_read_is_named);
    tcase_add_test(tc, variables_expand_where_the_worker_runs);
    tcase_add_test(tc, every_row_has_help_and_stands_below_its_section);
    tcase_add_test(tc, networks_are_those_that_the_models_have);
    tcase_add_test(tc, a_list_of_layers_is_a_network);
    tcase_add_test(tc, its_document_says_what_it_is_called);
    tcase_add_test(tc, a_file_of_layers_is_as_if_it_stood_in_the_job);
    tcase_add_test(tc, a_model_is_as_if_its_layers_stood_in_the_job_and_begins_it);
    tcase_add_test(tc, the_graph_of_a_job_has_the_shapes_of_its_data);
    tcase_add_loop_test(tc, a_network_that_does_not_fit_its_data_is_refused_with_its_place, 0,
                        (int)MS_ARRAY_SIZE(unfit));
    tcase_add_test(tc, every_key_stands_in_the_manual);
    tcase_add_test(tc, the_example_of_the_manual_is_valid);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
