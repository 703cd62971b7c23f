/* test_cli_trained.c - what a word means to msctl eval: weights, job, plan */
#include "cli/trained.h"

#include "tests/test.h"

#include <sys/stat.h>

static const char *dir;
static struct trained trained;

#define JOB                                                                                        \
    "network: linear\ndataset: {kind: nonlinear, samples: 32}\nbatch_size: 16\nloss: mse\n"        \
    "optimizer: {kind: sgd, learning_rate: 0.1}\n"
#define EVALUATE "evaluate: {dataset: {kind: nonlinear, samples: 16}}\n"

static const char *in_dir(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(in_dir(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void put_job(const char *name, const char *text)
{
    struct job job;
    size_t size = 0;
    ck_ms_ok(job_parse(text, strlen(text), "the case", "/", NULL, 0, 0, &job, err));
    char *canonical = job_format(&job, &size);
    put(name, canonical);
    free(canonical);
}

/* Of the golden checkpoint; the bit of its byte at damage, where that is not negative, is another
 * one, and what is behind size is gone. */
static void put_golden(const char *end, long damage, size_t size)
{
    static char bytes[1 << 16];
    char path[1100];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    snprintf(path, sizeof(path), "%s/tests/golden/checkpoint/linear-13%s",
             root != NULL ? root : ".", end);
    FILE *from = fopen(path, "rb");
    snprintf(path, sizeof(path), "%s/run/checkpoints/linear-13%s", dir, end);
    FILE *to = fopen(path, "wb");
    ck_assert(from != NULL && to != NULL);
    size_t n = fread(bytes, 1, sizeof(bytes), from);
    ck_assert(n < sizeof(bytes));
    n = n < size ? n : size;
    if (damage >= 0) {
        ck_assert_uint_lt((size_t)damage, n);
        bytes[damage] ^= 1;
    }
    ck_assert_uint_eq(fwrite(bytes, 1, n, to), n);
    fclose(from);
    fclose(to);
}

/* The folder of a run, with a checkpoint; a job; weights that lie alone. */
static void setup(void)
{
    dir = test_dir_make();
    ck_assert_int_eq(mkdir(in_dir("run"), 0755) | mkdir(in_dir("run/checkpoints"), 0755) |
                         mkdir(in_dir("bare"), 0755) | mkdir(in_dir("bare/deep"), 0755),
                     0);
    put_job("run/job.json", JOB EVALUATE);
    put("run/weights.safetensors", "");
    put("run/best.safetensors", "");
    put("run/plan.txt", "");
    put_golden(".json", -1, SIZE_MAX);
    put_golden(".safetensors", -1, SIZE_MAX);
    put("job.yaml", JOB EVALUATE);
    put("no-data.yaml", JOB);
    put("bare/deep/w.safetensors", "");
}

static void teardown(void)
{
    test_dir_remove(dir);
}

enum { WORDS_MAX = 5 };

/* Up to the first "". */
static int find_with(const char *const words[WORDS_MAX], struct ms_err *err)
{
    static const struct cli_option options[] = {TRAINED_OPTIONS, {NULL, 0, NULL, NULL, NULL}};
    const struct cli_option *const tables[] = {options};
    static struct cli_args args;
    char *argv[WORDS_MAX];
    int n = 0;
    for (; n < WORDS_MAX && words[n][0] != '\0'; n++) {
        argv[n] = strdup(words[n]);
    }
    memset(&args, 0, sizeof(args));
    args.command = "msctl eval";
    ck_assert_int_eq(cli_options_parse(tables, 1, n, argv, 0, NULL, &args, NULL), MS_OK);
    int rc = trained_find(&args, &trained, err);
    for (int i = 0; i < n; i++) {
        free(argv[i]);
    }
    return rc;
}

static int find(const char *word, const char *name, const char *value, struct ms_err *err)
{
    const char *const words[WORDS_MAX] = {word, name, value, "", ""};
    return find_with(words, err);
}

static const struct {
    const char *word, *option, *value; /* value: of --weights a name in the folder, or below it */
    const char *weights, *plan;
} good[] = {
    {"run", "", "", "run/weights.safetensors", "run/plan.txt"},
    {"run", "--weights", "best.safetensors", "run/best.safetensors", "run/plan.txt"},
    {"run", "--weights", "linear-13.json", "run/checkpoints/linear-13.safetensors", "run/plan.txt"},
    {"run/best.safetensors", "", "", "run/best.safetensors", "run/plan.txt"},
    {"run/checkpoints/linear-13.json", "", "", "run/checkpoints/linear-13.safetensors",
     "run/checkpoints/../plan.txt"},
    {"job.yaml", "--weights", "/run", "run/weights.safetensors", "run/plan.txt"},
    {"job.yaml", "--weights", "/bare/deep/w.safetensors", "bare/deep/w.safetensors", ""},
    {"run/job.json", "--weights", "/run/best.safetensors", "run/best.safetensors", "run/plan.txt"},
};

START_TEST(a_word_has_weights_a_job_and_a_plan)
{
    const char *value = good[_i].value;

    ck_ms_ok(find(in_dir(good[_i].word), good[_i].option,
                  value[0] == '/' ? in_dir(value + 1) : value, err));

    ck_assert_str_eq(trained.weights, in_dir(good[_i].weights));
    ck_assert_str_eq(trained.plan, good[_i].plan[0] != '\0' ? in_dir(good[_i].plan) : "");
    ck_assert_str_eq(trained.job.network, "linear");
    ck_assert(trained.job.has_evaluate);
}
END_TEST

static const struct {
    const char *word, *option, *value;
    int code;
    const char *want;
} bad[] = {
    {"nowhere", "", "", MS_E_NOT_FOUND, "nowhere: No such file or directory"},
    {"job.yaml", "", "", MS_E_INVALID, "is a job: give its weights with --weights FILE"},
    {"run", "--weights", "x.safetensors", MS_E_NOT_FOUND,
     "--weights x.safetensors: there is no such file, neither here nor in "},
    {"bare", "", "", MS_E_NOT_FOUND, "bare/weights.safetensors is not there: a training leaves it"},
    {"bare", "--weights", "deep/w.safetensors", MS_E_NOT_FOUND, "bare has no job.json"},
    {"bare/deep/w.safetensors", "", "", MS_E_NOT_FOUND,
     "no job.json lies beside it or above, so nothing says of what network it is"},
    {"run/best.safetensors", "--weights", "x", MS_E_INVALID, "give one of them"},
    {"no-data.yaml", "--weights", "/run", MS_E_INVALID,
     "has no `evaluate`, so nothing says on what data; give --data PATH (of kind nonlinear)"},
    {"run", "--data", "/job.yaml", MS_E_INVALID, "the job's data are of kind nonlinear, which is "},
};

START_TEST(what_is_missing_is_named)
{
    const char *value = bad[_i].value;
    ck_ms_fails(find(in_dir(bad[_i].word), bad[_i].option,
                     value[0] == '/' ? in_dir(value + 1) : value, err),
                bad[_i].code, bad[_i].want);
}
END_TEST

/* However it is named. */
static const struct {
    const char *word, *option, *value;
} checkpoints[] = {
    {"run", "--weights", "linear-13"},
    {"run", "--weights", "linear-13.json"},
    {"run", "--weights", "linear-13.safetensors"},
    {"run", "--weights", "checkpoints/linear-13.safetensors"},
    {"run/checkpoints/linear-13.json", "", ""},
    {"run/checkpoints/linear-13.safetensors", "", ""},
};

static int find_checkpoint(int i, struct ms_err *err)
{
    return find(in_dir(checkpoints[i].word), checkpoints[i].option, checkpoints[i].value, err);
}

START_TEST(a_checkpoint_is_what_its_manifest_says_or_refused)
{
    ck_ms_ok(find_checkpoint(_i, err));
    put_golden(".safetensors", 420, SIZE_MAX);
    ck_ms_fails(find_checkpoint(_i, err), MS_E_REFUSED,
                "run/checkpoints/linear-13.safetensors is damaged: its bytes are not those that "
                "its manifest has the digest of; name another one");
    put_golden(".safetensors", -1, 400);
    ck_ms_fails(find_checkpoint(_i, err), MS_E_REFUSED,
                "linear-13.safetensors is damaged: 400 bytes, and its manifest says 424; name "
                "another one");
    put_golden(".safetensors", -1, SIZE_MAX);
    put_golden(".json", -1, 300);
    ck_ms_fails(find_checkpoint(_i, err), MS_E_REFUSED, "linear-13.json");
}
END_TEST

START_TEST(data_without_a_manifest_are_a_file_of_weights)
{
    ck_assert_int_eq(unlink(in_dir("run/checkpoints/linear-13.json")), 0);
    put_golden(".safetensors", 420, SIZE_MAX);
    ck_ms_ok(find(in_dir("run"), "--weights", "linear-13.safetensors", err));
}
END_TEST

START_TEST(a_job_that_no_run_left_is_not_settled)
{
    put("run/job.json", "network: linear\ndataset: {kind: program, path: /bin/true}\n"
                        "batch_size: 4\noptimizer: {kind: sgd, learning_rate: 1}\n");
    ck_ms_fails(find(in_dir("run"), "--set", "batch_size=2", err), MS_E_INVALID,
                "run/job.json is no job that msctl run left: ");
}
END_TEST

START_TEST(keys_of_the_job_may_be_set)
{
    ck_ms_ok(find(in_dir("run"), "--set", "evaluate.batch_size=3", err));
    ck_assert_int_eq(trained.job.evaluate_batch_size, 3);
}
END_TEST

#define ARRAYS                                                                                     \
    "network: [flatten, dense: {out: classes}]\nbatch_size: 4\n"                                   \
    "optimizer: {kind: sgd, learning_rate: 1}\n"                                                   \
    "dataset: {kind: numpy, path: /nowhere/a, shape: [2], classes: 2%s}\n"                         \
    "evaluate: {dataset: {kind: numpy, path: /nowhere/%s}}\n"

/* --data is another place of data like those of the evaluation. */
START_TEST(other_data_are_read_as_those_of_the_evaluation)
{
    char text[1024];
    const struct data_spec *data = &trained.job.evaluate_dataset;
    snprintf(text, sizeof(text), ARRAYS, "", "b, inputs: a, targets: b, layout: nhwc");
    put_job("run/job.json", text);
    ck_ms_ok(find(in_dir("run"), "--data", in_dir("bare"), err));
    ck_assert_str_eq(strrchr(data->path, '/'), "/bare");
    ck_assert_str_eq(data->inputs, "a");
    ck_assert_str_eq(data->targets, "b");
    ck_assert_int_eq(data->layout, DATA_LAYOUT_NHWC);

    snprintf(text, sizeof(text), ARRAYS, ", inputs: x, targets: y, split: {test: 0.5}", "a");
    put_job("run/job.json", text);
    ck_ms_ok(find(in_dir("run"), "--data", in_dir("bare"), err));
    ck_assert_str_eq(data->inputs, "x");
    ck_assert_int_eq(data->has_split, 0);
    ck_ms_ok(find(in_dir("run"), "", "", err));
    ck_assert_int_eq(data->has_split, 1);
    snprintf(text, sizeof(text), ARRAYS, "", "b, usage: train");
    put_job("run/job.json", text);
    ck_ms_ok(find(in_dir("run"), "--data", in_dir("bare"), err));
    ck_assert_int_eq(data->usage, DATA_TEST);
}
END_TEST

static const struct {
    const char *evaluate, *set;
    enum data_kind kind;
    enum data_usage usage;
} with_data[] = {
    {"", "evaluate.dataset.usage=all", DATA_CIFAR10, DATA_ALL},
    {"", "evaluate.batch_size=3", DATA_CIFAR10, DATA_TEST},
    {"evaluate: {dataset: {kind: cifar10, path: /nowhere/b}}\n", "evaluate.dataset.usage=train",
     DATA_CIFAR10, DATA_TRAIN},
};

/* Also where the job has no evaluation but that of --data. */
START_TEST(keys_of_other_data_may_be_set)
{
    char text[1024];
    const struct data_spec *data = &trained.job.evaluate_dataset;
    const char *const words[WORDS_MAX] = {in_dir("run"), "--data", in_dir("bare"), "--set",
                                          with_data[_i].set};
    snprintf(text, sizeof(text),
             "network: [flatten, dense: {out: classes}]\nbatch_size: 4\n"
             "optimizer: {kind: sgd, learning_rate: 1}\n"
             "dataset: {kind: cifar10, path: /nowhere/a}\n%s",
             with_data[_i].evaluate);
    put_job("run/job.json", text);
    ck_ms_ok(find_with(words, err));
    ck_assert_int_eq(data->kind, with_data[_i].kind);
    ck_assert_int_eq(data->usage, with_data[_i].usage);
    ck_assert_str_eq(strrchr(data->path, '/'), "/bare");
}
END_TEST

/* A job that lies there starts nothing; one that is named is trusted. */
START_TEST(a_program_is_started_for_a_job_that_is_named_alone)
{
    char script[512];
    char text[1024];
    snprintf(script, sizeof(script), "#!/bin/sh\ntouch '%s'\n", in_dir("started"));
    put("program", script);
    ck_assert_int_eq(chmod(in_dir("program"), 0755), 0);
    snprintf(text, sizeof(text),
             "network: linear\nloss: mse\nbatch_size: 4\noptimizer: {kind: sgd, learning_rate: 1}\n"
             "dataset: {kind: program, path: %s, shape: [2], target_width: 1}\n"
             "evaluate: {dataset: {kind: program, path: %s}}\n",
             in_dir("program"), in_dir("program"));
    put_job("run/job.json", text);

    ck_ms_fails(find(in_dir("run"), "", "", err), MS_E_REFUSED,
                "its data come from a program, which is not started for a job that lies there");
    ck_ms_fails(find(in_dir("run"), "--set", "dataset.shape=null", err), MS_E_REFUSED,
                "its data come from a program, which is not started for a job that lies there");
    ck_assert_int_ne(access(in_dir("started"), F_OK), 0);
    ck_ms_ok(find(in_dir("run/job.json"), "--weights", in_dir("run"), err));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_trained");
    TCase *tc = test_case_create("cli_trained");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_word_has_weights_a_job_and_a_plan, 0, MS_ARRAY_SIZE(good));
    tcase_add_loop_test(tc, what_is_missing_is_named, 0, MS_ARRAY_SIZE(bad));
    tcase_add_loop_test(tc, a_checkpoint_is_what_its_manifest_says_or_refused, 0,
                        MS_ARRAY_SIZE(checkpoints));
    tcase_add_test(tc, data_without_a_manifest_are_a_file_of_weights);
    tcase_add_test(tc, a_job_that_no_run_left_is_not_settled);
    tcase_add_test(tc, keys_of_the_job_may_be_set);
    tcase_add_test(tc, other_data_are_read_as_those_of_the_evaluation);
    tcase_add_loop_test(tc, keys_of_other_data_may_be_set, 0, MS_ARRAY_SIZE(with_data));
    tcase_add_test(tc, a_program_is_started_for_a_job_that_is_named_alone);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
