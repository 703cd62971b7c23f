/* test_msw_net.c - networks of functions, and data of the program's: the same bits as of a job
 * file, step by step, too */
#include "libworker/data/data.h"
#include "libworker/msworker.h"
#include "proto/macros.h"

#include "tests/test.h"

#include <pthread.h>

enum { ROWS = 96, TEST_ROWS = 40, PIXELS = 3 * 32 * 32 };

/* ---- the drawn shapes, as a program's own data ---- */

static struct data_source *sources[2]; /* train, test */
static struct msw_job *job;
static struct msw_net *net;
static struct msw_error error;

static int copy_record(void *arg, struct msw_record *record)
{
    struct data_record from;
    if (data_read(arg, record->row, &from, NULL) < 0) {
        return -1;
    }
    memcpy(record->bytes, from.values, PIXELS);
    record->label = from.label;
    return 0;
}

static struct msw_data data_of(int is_test)
{
    return (struct msw_data){.rows = is_test ? TEST_ROWS : ROWS,
                             .shape = {3, 32, 32},
                             .classes = 10,
                             .is_bytes = 1,
                             .read = copy_record,
                             .arg = sources[is_test]};
}

static void setup(void)
{
    for (int i = 0; i < 2; i++) {
        const struct data_spec spec = {.kind = DATA_SHAPES,
                                       .usage = i == 0 ? DATA_TRAIN : DATA_TEST,
                                       .samples = i == 0 ? ROWS : TEST_ROWS,
                                       .seed = 1};
        ck_ms_ok(data_open(&spec, &sources[i], err));
    }
    net = msw_net_create();
    job = NULL;
    error = (struct msw_error){0, ""};
}

static void teardown(void)
{
    msw_job_destroy(job);
    msw_net_destroy(net);
    data_close(sources[0]);
    data_close(sources[1]);
}

static const char rest[] = "transforms: [rescale: {scale: 0.0039215686274509803, shift: 0}]\n"
                           "batch_size: 20\nepochs: 2\nseed: 3\nthreads: 1\n"
                           "optimizer: {kind: momentum, learning_rate: 0.05, momentum: 0.9}\n";

static void make_net(void)
{
    int x = msw_conv2d(net, MSW_INPUT, 8, 3, "name: stem, padding: same, bias: zeros");
    const int y = msw_relu(net, msw_batch_norm(net, x, "name: bn"), NULL);
    x = msw_conv2d(net, y, 8, 3, "padding: same");
    x = msw_add(net, (const int[]){x, y}, 2, NULL);
    const int side = msw_conv2d(net, MSW_INPUT, 4, 1, "name: side, stride: 1");
    x = msw_concat(net, (const int[]){x, side}, 2, NULL);
    x = msw_dropout(net, msw_max_pool(net, x, 4, NULL), "rate: 0.25");
    x = msw_flatten(net, x, NULL);
    ck_assert_int_gt(msw_dense(net, x, MSW_CLASSES, "name: fc"), 0);
}

static void make_job(void)
{
    const struct msw_data train = data_of(0);
    const struct msw_data test = data_of(1);
    make_net();
    int rc = msw_job_make(net, &train, &test, rest, &job, &error);
    ck_assert_msg(rc == MSW_OK, "%s", error.text);
}

static void digest_of_file(char ret[65])
{
    static const char head[] =
        "network:\n"
        "  - conv2d: {name: stem, out: 8, kernel: 3, padding: same, bias: zeros}\n"
        "  - batch_norm: {name: bn}\n"
        "  - relu\n"
        "  - conv2d: {out: 8, kernel: 3, padding: same}\n"
        "  - add: {from: [conv2d1, relu1]}\n"
        "  - conv2d: {name: side, from: input, out: 4, kernel: 1, stride: 1}\n"
        "  - concat: {from: [add1, side]}\n"
        "  - max_pool: {kernel: 4}\n"
        "  - dropout: {rate: 0.25}\n"
        "  - flatten\n"
        "  - dense: {name: fc, out: classes}\n"
        "dataset: {kind: shapes, samples: 96}\n"
        "evaluate: {dataset: {kind: shapes, samples: 40}}\n";
    char text[2048];
    struct msw_job *file = NULL;
    struct msw_model *model = NULL;
    snprintf(text, sizeof(text), "%s%s", head, rest);
    ck_assert_msg(msw_job_parse(text, "/", &file, &error) == MSW_OK, "%s", error.text);
    ck_assert_msg(msw_train(file, NULL, &model, &error) == MSW_OK, "%s", error.text);
    snprintf(ret, 65, "%s", msw_model_sha256(model));
    msw_model_destroy(model);
    msw_job_destroy(file);
}

START_TEST(functions_give_the_bits_of_a_job_file)
{
    char file[65];
    struct msw_model *model = NULL;
    digest_of_file(file);
    make_job();

    ck_assert_msg(msw_train(job, NULL, &model, &error) == MSW_OK, "%s", error.text);

    ck_assert_str_eq(msw_model_sha256(model), file);
    ck_assert_ptr_nonnull(msw_model_values(model, "conv2d1.weight", NULL));
    msw_model_destroy(model);
}
END_TEST

START_TEST(step_by_step_gives_them_too_and_evaluations_between)
{
    char file[65];
    struct msw_training *training = NULL;
    struct msw_progress progress;
    struct msw_model *copy = NULL;
    struct msw_model *model = NULL;
    uint64_t steps = 0;
    int evaluations = 0;
    int rc = 0;
    digest_of_file(file);
    make_job();
    unsetenv("MS_ROLE");

    ck_assert_int_eq(msw_begin(job, NULL, &training, &error), MSW_OK);
    while ((rc = msw_step(training, &progress, &error)) > 0) {
        steps += !progress.has_eval;
        evaluations += progress.has_eval;
        ck_assert_uint_eq(progress.step, steps);
        ck_assert_int_eq(progress.rank, 0);
        ck_assert_int_eq(progress.ranks, 1);
        ck_assert(progress.loss > 0);
        if (progress.step == progress.steps_total && progress.has_eval) {
            ck_assert(progress.accuracy >= 0 && progress.accuracy <= 1);
            ck_assert_int_eq(msw_copy(training, &copy, &error), MSW_OK);
        }
    }
    ck_assert_msg(rc == 0, "%s", error.text);
    ck_assert_int_eq(msw_step(training, NULL, NULL), 0);
    ck_assert_int_eq(msw_end(training, &model, &error), MSW_OK);

    ck_assert_uint_eq(steps, 10);
    ck_assert_int_eq(evaluations, 2);
    ck_assert_str_eq(msw_model_sha256(model), file);
    ck_assert_str_eq(msw_model_sha256(copy), file);
    msw_model_destroy(copy);
    msw_model_destroy(model);
}
END_TEST

START_TEST(a_copy_is_of_the_step_and_the_training_goes_on)
{
    char file[65];
    struct msw_training *training = NULL;
    struct msw_model *copy = NULL;
    struct msw_model *model = NULL;
    digest_of_file(file);
    make_job();
    ck_assert_int_eq(msw_begin(job, NULL, &training, &error), MSW_OK);
    ck_assert_int_eq(msw_copy(training, &copy, &error), MSW_INVALID);
    ck_assert_ptr_nonnull(strstr(error.text, "has not begun"));

    ck_assert_int_eq(msw_step(training, NULL, &error), 1);
    ck_assert_int_eq(msw_copy(training, &copy, &error), MSW_OK);
    while (msw_step(training, NULL, &error) > 0) {
    }
    struct msw_model *late = NULL;
    ck_assert_int_eq(msw_copy(training, &late, &error), MSW_INVALID);
    ck_assert_int_eq(msw_end(training, &model, &error), MSW_OK);

    ck_assert_str_ne(msw_model_sha256(copy), file);
    ck_assert_str_eq(msw_model_sha256(model), file);
    msw_model_destroy(copy);
    msw_model_destroy(model);
}
END_TEST

START_TEST(a_training_may_end_early_or_before_it_begins)
{
    struct msw_training *training = NULL;
    struct msw_model *model = NULL;
    const char *dir = test_dir_make();
    char path[128];
    const struct msw_options options = {.run_dir = dir};
    make_job();
    ck_assert_int_eq(msw_begin(job, &options, &training, &error), MSW_OK);
    ck_assert_int_eq(msw_step(training, NULL, &error), 1);
    ck_assert_int_eq(msw_step(training, NULL, &error), 1);
    ck_assert_msg(msw_end(training, &model, &error) == MSW_OK, "%s", error.text);
    snprintf(path, sizeof(path), "%s/weights.safetensors", dir);
    ck_assert_int_eq(access(path, R_OK), 0);
    msw_model_destroy(model);

    ck_assert_int_eq(msw_begin(job, NULL, &training, &error), MSW_OK);
    ck_assert_int_eq(msw_end(training, NULL, &error), MSW_OK);
    ck_assert_int_eq(msw_begin(job, NULL, &training, &error), MSW_OK);
    ck_assert_int_eq(msw_end(training, &model, &error), MSW_INVALID);
    ck_assert_ptr_nonnull(strstr(error.text, "msw_step makes one"));
    ck_assert_int_eq(msw_end(NULL, &model, &error), MSW_OK);
    test_dir_remove(dir);
}
END_TEST

/* A stack that no address space has room for. */
START_TEST(a_training_that_could_not_begin_says_so_to_its_end)
{
    struct msw_training *training = NULL;
    struct msw_model *model = NULL;
    pthread_attr_t attr;
    make_job();
    pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, (size_t)1 << 62), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&attr), 0);
    pthread_attr_destroy(&attr);
    ck_assert_int_eq(msw_begin(job, NULL, &training, &error), MSW_OK);

    for (int i = 0; i < 2; i++) {
        ck_assert_int_lt(msw_step(training, NULL, &error), 0);
        ck_assert_msg(strstr(error.text, "thread cannot be started") != NULL, "%s", error.text);
        error.text[0] = '\0';
    }
    ck_assert_int_lt(msw_end(training, &model, &error), 0);
    ck_assert_msg(strstr(error.text, "thread cannot be started") != NULL, "%s", error.text);
}
END_TEST

START_TEST(a_role_makes_a_worker_of_it)
{
    struct msw_training *training = NULL;
    make_job();
    setenv("MS_ROLE", "MS_WORKER", 1);
    unsetenv("MS_SCHED_HOST");
    ck_assert_int_eq(msw_begin(job, NULL, &training, &error), MSW_OK);
    const int rc = msw_step(training, NULL, &error);
    ck_assert_int_lt(rc, 0);
    ck_assert_msg(strstr(error.text, "MS_SCHED_HOST") != NULL, "%s", error.text);
    ck_assert_int_eq(msw_step(training, NULL, &error), rc);
    ck_assert_int_eq(msw_end(training, NULL, &error), rc);
    unsetenv("MS_ROLE");
}
END_TEST

/* ---- a callback that fails ---- */

struct counter {
    int64_t fails_at, calls;
};

static int count(void *arg, struct msw_record *record)
{
    struct counter *counter = arg;
    counter->calls++;
    record->values[0] = (float)record->row;
    record->targets[0] = 2 * (float)record->row + (float)record->epoch;
    return counter->calls > counter->fails_at ? 5 : 0;
}

START_TEST(a_record_that_fails_ends_the_training_with_its_number)
{
    struct counter counter = {.fails_at = 24};
    const struct msw_data data = {
        .rows = 16, .shape = {1}, .targets = 1, .read = count, .arg = &counter};
    struct msw_training *training = NULL;
    msw_dense(net, msw_flatten(net, MSW_INPUT, NULL), MSW_CLASSES, NULL);
    ck_assert_msg(msw_job_make(net, &data, NULL,
                               "dataset: {shuffle: false}\nbatch_size: 8\nepochs: 9\n"
                               "optimizer: {kind: sgd, learning_rate: 0.0001}",
                               &job, &error) == MSW_OK,
                  "%s", error.text);
    int rc = msw_begin(job, NULL, &training, &error);
    while ((rc = msw_step(training, NULL, &error)) > 0) {
    }
    ck_assert_int_eq(rc, MSW_FAILED);
    ck_assert_msg(strstr(error.text, "record 8: the function that makes it returned 5") != NULL,
                  "%s", error.text);
    ck_assert_int_eq(msw_end(training, NULL, NULL), MSW_FAILED);
}
END_TEST

/* ---- errors of networks and jobs ---- */

static void wrong_key(void)
{
    msw_dense(net, msw_flatten(net, MSW_INPUT, NULL), MSW_CLASSES, "name: fc, bais: none");
}

static void wrong_shape(void)
{
    msw_dense(net, MSW_INPUT, MSW_CLASSES, "name: fc");
}

static void wrong_kind(void)
{
    msw_layer(net, "densse", (const int[]){MSW_INPUT}, 1, NULL);
}

static void wrong_number(void)
{
    const int x = msw_relu(net, 3, NULL);
    ck_assert_int_eq(x, MSW_INVALID);
    ck_assert_int_eq(msw_dense(net, x, MSW_CLASSES, NULL), MSW_INVALID);
    ck_assert_int_eq(msw_dense(net, MSW_INPUT, MSW_CLASSES, NULL), MSW_INVALID);
}

static void no_keys(void)
{
    msw_relu(net, MSW_INPUT, "}}, {relu: {}}, {relu: {");
}

static void torn_keys(void)
{
    msw_relu(net, MSW_INPUT, "name: [");
}

static void nobody_reads(void)
{
    const int x = msw_flatten(net, MSW_INPUT, NULL);
    msw_dense(net, x, 5, "name: lost");
    msw_dense(net, x, MSW_CLASSES, NULL);
}

static void another_input(void)
{
    const int x = msw_conv2d(net, MSW_INPUT, 5, 1, "name: input");
    const int y = msw_conv2d(net, MSW_INPUT, 5, 1, "name: side");
    msw_add(net, (const int[]){x, y}, 2, NULL);
}

static void another_from(void)
{
    const int x = msw_flatten(net, MSW_INPUT, NULL);
    msw_dense(net, msw_relu(net, x, "from: input"), MSW_CLASSES, NULL);
}

static void told_twice(void)
{
    msw_dense(net, msw_flatten(net, MSW_INPUT, NULL), 3, "bias: none, out: 4");
}

static void nothing(void)
{
}

static const struct {
    void (*make)(void);
    const char *text, *keys;
} networks[] = {
    {wrong_key, "fc: layers[1].dense.bais is no key of dense", NULL},
    {wrong_key, "did you mean bias?", NULL},
    {wrong_shape, "fc: layer fc (dense): it reads rows (n, values), and gets (32, 3, 32, 32); put",
     NULL},
    {wrong_kind, "densse1: layers[0]: densse is no layer; did you mean dense?", NULL},
    {wrong_number, "relu: it reads layer 3, and there are 0 before it", NULL},
    {no_keys, "relu: '}}, {relu: {}}, {relu: {' are no keys of a layer", NULL},
    {torn_keys, "relu: ", NULL},
    {nobody_reads, "lost: ", NULL},
    {another_input, "conv2d: it reads MSW_INPUT, and a layer before it is called input", NULL},
    {another_from, "relu: from: what it reads is an argument of its function", NULL},
    {told_twice, "dense: out: it is an argument of its function; leave the key out", NULL},
    {nothing, "the network has no layer", NULL},
    {make_net, "job:2:10: network: the program says it by a function; leave the key out",
     "optimizer: {kind: sgd, learning_rate: 1}\nnetwork: linear"},
    {make_net, "dataset.kind: the program says it",
     "dataset: {kind: mnist}\noptimizer: {kind: sgd, learning_rate: 1}"},
    {make_net, "test: none is given, and the keys have evaluate.dataset",
     "evaluate: {dataset: {kind: callback, samples: 9}}\n"
     "transforms: [rescale: {scale: 0.5, shift: 0}]\noptimizer: {kind: sgd, learning_rate: 1}"},
    {make_net, "job:1:1: bach_size", "bach_size: 3"},
    {make_net, "optimizer", "batch_size: 3"},
    {make_net, "optimizer is missing (how it learns); give a section", NULL},
};

START_TEST(what_is_wrong_is_named)
{
    const struct msw_data data = data_of(0);
    const char *keys = networks[_i].keys;
    const int is_empty = _i == (int)MS_ARRAY_SIZE(networks) - 1;
    networks[_i].make();
    int rc = msw_job_make(
        net, &data, NULL,
        keys != NULL || is_empty ? keys : "optimizer: {kind: sgd, learning_rate: 1}", &job, &error);
    ck_assert_int_eq(rc, MSW_INVALID);
    ck_assert_msg(strstr(error.text, networks[_i].text) != NULL, "'%s' lacks '%s'", error.text,
                  networks[_i].text);
    ck_assert_ptr_null(job);
}
END_TEST

static const struct {
    struct msw_data data;
    const char *text;
} wrong_data[] = {
    {{.rows = 3, .shape = {2}, .classes = 2}, "train: no function makes its records"},
    {{.shape = {2}, .classes = 2, .read = count}, "train: rows is 0"},
    {{.rows = 3, .classes = 2, .read = count}, "train: shape[0] is 0"},
    {{.rows = 3, .shape = {2}, .read = count}, "train: 0 classes and 0 targets"},
    {{.rows = 3, .shape = {2}, .classes = 2, .targets = 1, .read = count},
     "train: 2 classes and 1 targets"},
    {{.rows = 3, .shape = {2, 1 << 20, 1}, .classes = 2, .read = count}, "height and width"},
};

START_TEST(data_that_are_none_are_named)
{
    make_net();
    int rc = msw_job_make(net, &wrong_data[_i].data, NULL,
                          "optimizer: {kind: sgd, learning_rate: 1}", &job, &error);
    ck_assert_int_eq(rc, MSW_INVALID);
    ck_assert_msg(strstr(error.text, wrong_data[_i].text) != NULL, "%s", error.text);
}
END_TEST

START_TEST(a_test_is_of_the_same_records)
{
    const struct msw_data train = data_of(0);
    struct msw_data test = data_of(1);
    test.classes = 9;
    make_net();
    ck_assert_int_eq(msw_job_make(net, &train, &test, rest, &job, &error), MSW_INVALID);
    ck_assert_ptr_nonnull(strstr(error.text, "test: its records are others than those of train"));
}
END_TEST

/* ---- each function is its layer ---- */

static int all_of_images(void)
{
    int x = msw_conv2d(net, MSW_INPUT, 8, 3, "padding: same");
    x = msw_batch_norm(net, x, NULL);
    x = msw_group_norm(net, msw_relu(net, x, NULL), 2, NULL);
    x = msw_instance_norm(net, msw_relu6(net, x, NULL), NULL);
    x = msw_layer_norm(net, msw_leaky_relu(net, x, "slope: 0.1"), "over: channels");
    x = msw_silu(net, msw_gelu(net, msw_elu(net, x, NULL), NULL), NULL);
    const int y = msw_hard_sigmoid(net, msw_hard_swish(net, x, NULL), NULL);
    const int z = msw_sub(net, (const int[]){msw_tanh(net, y, NULL), x}, 2, NULL);
    x = msw_mul(net, (const int[]){msw_sigmoid(net, z, NULL), y}, 2, NULL);
    x = msw_linear(net, msw_scale(net, x, NULL), "factor: 2");
    x = msw_avg_pool(net, msw_softmax(net, x, NULL), 2, NULL);
    x = msw_upsample(net, msw_pad(net, x, "left: 1"), 2, "mode: linear");
    x = msw_conv_transpose2d(net, x, 4, 2, "stride: 2");
    x = msw_layer(net, "residual", &x, 1, "body: [{conv2d: {out: 4, kernel: 1}}]");
    return msw_dense(net, msw_global_avg_pool(net, x, NULL), MSW_CLASSES, NULL);
}

static int all_of_patches(void)
{
    int x = msw_tokens(net, msw_conv2d(net, MSW_INPUT, 8, 8, "stride: 8"), NULL);
    x = msw_positional_embedding(net, msw_class_token(net, x, NULL), NULL);
    x = msw_attention(net, x, 2, "causal: true");
    x = msw_gru(net, msw_lstm(net, x, 5, "bidirectional: true"), 8, "layers: 2");
    x = msw_rnn(net, x, 8, "nonlinearity: relu");
    x = msw_dot_product_attention(net, msw_dense(net, x, 24, NULL), 2, NULL);
    x = msw_channel_shuffle(net, msw_slice(net, x, 0, 6, NULL), 3, NULL);
    const int y = msw_token(net, x, "at: 1"), z = msw_flatten(net, x, NULL);
    return msw_dense(net, msw_concat(net, (const int[]){y, z}, 2, NULL), MSW_CLASSES, NULL);
}

START_TEST(each_function_is_its_layer)
{
    const struct msw_data data = data_of(0);
    ck_assert_int_gt(_i == 0 ? all_of_images() : all_of_patches(), 0);
    int rc =
        msw_job_make(net, &data, NULL, "optimizer: {kind: sgd, learning_rate: 1}", &job, &error);
    ck_assert_msg(rc == MSW_OK, "%s", error.text);
}
END_TEST

START_TEST(an_embedding_says_what_it_reads)
{
    const struct msw_data data = data_of(0);
    msw_embedding(net, MSW_INPUT, MSW_CLASSES, 4, NULL);
    ck_assert_int_eq(
        msw_job_make(net, &data, NULL, "optimizer: {kind: sgd, learning_rate: 1}", &job, &error),
        MSW_INVALID);
    ck_assert_msg(strstr(error.text, "embedding1: layer embedding1 (embedding): ") != NULL, "%s",
                  error.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("msw_net");
    TCase *tc = tcase_create("msw_net");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, functions_give_the_bits_of_a_job_file);
    tcase_add_test(tc, step_by_step_gives_them_too_and_evaluations_between);
    tcase_add_test(tc, a_copy_is_of_the_step_and_the_training_goes_on);
    tcase_add_test(tc, a_training_may_end_early_or_before_it_begins);
    tcase_add_test(tc, a_training_that_could_not_begin_says_so_to_its_end);
    tcase_add_test(tc, a_role_makes_a_worker_of_it);
    tcase_add_test(tc, a_record_that_fails_ends_the_training_with_its_number);
    tcase_add_loop_test(tc, what_is_wrong_is_named, 0, (int)MS_ARRAY_SIZE(networks));
    tcase_add_loop_test(tc, data_that_are_none_are_named, 0, (int)MS_ARRAY_SIZE(wrong_data));
    tcase_add_test(tc, a_test_is_of_the_same_records);
    tcase_add_loop_test(tc, each_function_is_its_layer, 0, 2);
    tcase_add_test(tc, an_embedding_says_what_it_reads);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
