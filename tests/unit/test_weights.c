/* test_weights.c - initial weights from a file, checked name by name and shape by shape */
#include "libworker/data/safetensors.h"
#include "libworker/train/model_copy.h"
#include "tests/unit/train_case.h"

static const char *dir;
static char path[512];
static struct job job;

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/w.safetensors", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

struct tensor_spec {
    const char *name;
    int n_dims;
    int64_t dim[4];
};

static void write_file(const struct tensor_spec *specs, size_t n)
{
    static const float values[8] = {0.5F, -0.25F, 3, 4, 5, 6, 7, 8};
    struct safetensors_entry entries[4];
    struct safetensors_writer *writer = NULL;
    memset(entries, 0, sizeof(entries));
    for (size_t i = 0; i < n; i++) {
        snprintf(entries[i].name, sizeof(entries[i].name), "%s", specs[i].name);
        snprintf(entries[i].dtype, sizeof(entries[i].dtype), "%s", "F32");
        entries[i].n_dims = specs[i].n_dims;
        memcpy(entries[i].dim, specs[i].dim, sizeof(specs[i].dim));
    }
    ck_ms_ok(safetensors_create(path, entries, n, NULL, 0, &writer, err));
    for (size_t i = 0; i < n; i++) {
        size_t count = 1;
        for (int d = 0; d < specs[i].n_dims; d++) {
            count *= (size_t)specs[i].dim[d];
        }
        ck_ms_ok(safetensors_put(writer, specs[i].name, values, count, err));
    }
    ck_ms_ok(safetensors_finish(writer, NULL, err));
}

/* Prepares a rank with the file as its initial weights. */
static int prepare(struct train **ret, struct ms_err *err)
{
    char set[640];
    snprintf(set, sizeof(set), "initial_weights=%s", path);
    const char *sets[] = {set};
    struct train_info info;
    train_case_job(&job, sets, 1);
    struct train_config cfg = train_case_config(&job, "");
    struct train *train = train_create(&cfg);
    int rc = train_prepare(train, &info, err);
    if (rc < 0 || ret == NULL) {
        train_destroy(train);
        return rc;
    }
    *ret = train;
    return 0;
}

static const struct tensor_spec right[] = {{"fc.weight", 2, {1, 2, 0, 0}},
                                           {"fc.bias", 1, {1, 0, 0, 0}}};

START_TEST(every_value_arrives_where_its_name_says)
{
    struct train *train = NULL;
    struct model_copy *copy = NULL;
    write_file(right, 2);

    ck_ms_ok(prepare(&train, err));

    ck_ms_ok(model_copy_make(train_replica(train), 0, &copy, err));
    ck_assert(copy->values[0][0] == 0.5F);
    ck_assert(copy->values[1][0] == 0.5F && copy->values[1][1] == -0.25F);
    model_copy_destroy(copy);
    train_destroy(train);
}
END_TEST

START_TEST(what_was_saved_reads_back_bit_by_bit)
{
    struct train *train = NULL;
    struct model_copy *copy = NULL;
    char digest[MS_SHA256_HEX];
    write_file(right, 2);
    ck_ms_ok(prepare(&train, err));
    ck_ms_ok(model_copy_make(train_replica(train), 0, &copy, err));
    memcpy(digest, copy->sha256, sizeof(digest));
    ck_ms_ok(model_copy_save(copy, path, err));
    model_copy_destroy(copy);
    train_destroy(train);

    ck_ms_ok(prepare(&train, err));

    ck_ms_ok(model_copy_make(train_replica(train), 0, &copy, err));
    ck_assert_str_eq(copy->sha256, digest);
    model_copy_destroy(copy);
    train_destroy(train);
}
END_TEST

/* Each value is by its own formula, so that one in another's place is seen. */
static void write_net(int is_torch, int has_rest)
{
    static const struct {
        const char *name, *torch;
        int n_dims;
        int64_t dim[4];
    } tensors[] = {{"conv1.weight", "conv1.weight", 4, {2, 3, 1, 1}},
                   {"bn1.gamma", "bn1.weight", 1, {2}},
                   {"bn1.beta", "bn1.bias", 1, {2}},
                   {"bn1.moving_mean", "bn1.running_mean", 1, {2}},
                   {"bn1.moving_variance", "bn1.running_var", 1, {2}},
                   {"fc.weight", "fc.weight", 2, {10, 2}},
                   {"fc.bias", "fc.bias", 1, {10}},
                   {"bn1.num_batches_tracked", "bn1.num_batches_tracked", 0, {0}},
                   {"moments.fc.bias", "moment1.bn1.weight", 1, {3}}};
    const size_t n = has_rest ? 9 : 7;
    struct safetensors_entry entries[9];
    struct safetensors_writer *writer = NULL;
    memset(entries, 0, sizeof(entries));
    for (size_t i = 0; i < n; i++) {
        snprintf(entries[i].name, sizeof(entries[i].name), "%s",
                 is_torch ? tensors[i].torch : tensors[i].name);
        entries[i].n_dims = tensors[i].n_dims;
        memcpy(entries[i].dim, tensors[i].dim, sizeof(tensors[i].dim));
    }
    ck_ms_ok(safetensors_create(path, entries, n, NULL, 0, &writer, err));
    for (size_t i = 0; i < n; i++) {
        float values[32];
        size_t count = 1;
        for (int d = 0; d < entries[i].n_dims; d++) {
            count *= (size_t)entries[i].dim[d];
        }
        for (size_t v = 0; v < count; v++) {
            values[v] = (float)(10 * i + v + 1);
        }
        ck_ms_ok(safetensors_put(writer, entries[i].name, values, count, err));
    }
    ck_ms_ok(safetensors_finish(writer, NULL, err));
}

START_TEST(names_of_torch_and_what_optimizers_leave_come_to_the_same)
{
    static const char text[] =
        "network: [conv2d: {name: conv1, out: 2, kernel: 1}, batch_norm: {name: bn1}, "
        "global_avg_pool, dense: {name: fc, out: classes}]\n"
        "dataset: {kind: shapes, samples: 32}\nbatch_size: 8\n"
        "optimizer: {kind: sgd, learning_rate: 0.1}\n";
    char digests[4][MS_SHA256_HEX];
    for (int i = 0; i < 4; i++) {
        struct model_copy *copy = NULL;
        write_net(i % 2, i / 2);
        ck_ms_ok(job_parse(text, strlen(text), "the case", "/", NULL, 0, 0, &job, err));
        snprintf(job.initial_weights, sizeof(job.initial_weights), "%s", path);
        struct train_config cfg = train_case_config(&job, "");
        struct train_info info;
        struct train *train = train_create(&cfg);
        ck_assert_ptr_nonnull(train);
        ck_ms_ok(train_prepare(train, &info, err));
        ck_ms_ok(model_copy_make(train_replica(train), 0, &copy, err));
        memcpy(digests[i], copy->sha256, sizeof(digests[i]));
        model_copy_destroy(copy);
        train_destroy(train);
        ck_assert_str_eq(digests[i], digests[0]);
    }
}
END_TEST

/* Of a checkpoint those that were evaluated; of any other file a tensor of that name is none. */
START_TEST(moving_averages_of_a_checkpoint_are_its_weights)
{
    static const struct safetensors_entry entries[] = {
        {.name = "fc.weight", .n_dims = 2, .dim = {1, 2}},
        {.name = "fc.bias", .n_dims = 1, .dim = {1}},
        {.name = "average.fc.weight", .n_dims = 2, .dim = {1, 2}},
        {.name = "average.fc.bias", .n_dims = 1, .dim = {1}},
        {.name = "mean_gradient.fc.bias", .n_dims = 1, .dim = {1}}};
    static const float values[][2] = {{1, 2}, {3, 0}, {10, 20}, {30, 0}, {5, 0}};
    static const char *const metadata[] = {"format", "msched checkpoint"};
    for (size_t n_meta = 0; n_meta < 2; n_meta++) {
        struct safetensors_writer *writer = NULL;
        struct model_copy *copy = NULL;
        struct train *train = NULL;
        ck_ms_ok(safetensors_create(path, entries, 5, metadata, n_meta, &writer, err));
        for (size_t i = 0; i < 5; i++) {
            ck_ms_ok(safetensors_put(writer, entries[i].name, values[i],
                                     i % 2 == 0 && i < 4 ? 2 : 1, err));
        }
        ck_ms_ok(safetensors_finish(writer, NULL, err));
        ck_ms_ok(prepare(&train, err));
        ck_ms_ok(model_copy_make(train_replica(train), 0, &copy, err));
        ck_assert_float_eq(copy->values[0][0], n_meta == 0 ? 3 : 30);
        ck_assert_float_eq(copy->values[1][1], n_meta == 0 ? 2 : 20);
        model_copy_destroy(copy);
        train_destroy(train);
    }
}
END_TEST

START_TEST(a_missing_parameter_is_named)
{
    write_file(right, 1);

    ck_ms_fails(prepare(NULL, err), MS_E_INVALID, "parameter fc.bias of the network is missing");
}
END_TEST

START_TEST(a_parameter_that_the_network_does_not_have_is_named)
{
    const struct tensor_spec specs[] = {right[0], right[1], {"fc2.bias", 1, {1, 0, 0, 0}}};
    write_file(specs, 3);

    ck_ms_fails(prepare(NULL, err), MS_E_INVALID, "tensor fc2.bias is not in the network linear");
}
END_TEST

START_TEST(a_wrong_shape_is_told_with_the_right_one)
{
    const struct tensor_spec specs[] = {{"fc.weight", 2, {2, 1, 0, 0}}, right[1]};
    write_file(specs, 2);

    ck_ms_fails(prepare(NULL, err), MS_E_INVALID, "has shape (2, 1), the network wants (1, 2)");
}
END_TEST

static void choose_model(const char *name)
{
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    snprintf(path, sizeof(path), "%s/tests/golden/onnx/weights-%s.onnx", root != NULL ? root : ".",
             name);
}

START_TEST(a_model_has_weights_too)
{
    static const char *const names[] = {"gemm", "matmul"};
    struct train *train = NULL;
    choose_model(names[_i]);
    ck_ms_ok(prepare(&train, err));
    train_destroy(train);
}
END_TEST

/* What its layers have and the network has not, and what lies there the other way round. */
START_TEST(a_model_of_other_layers_is_refused)
{
    static const struct {
        const char *name, *words;
    } of[] = {
        {"more", "weights-more.onnx: tensor more.weight is not in the network"},
        {"shift", "weights-shift.onnx: tensor shift is not in the network"},
        {"factor", "weights-factor.onnx: tensor factor is not in the network"},
        {"in-out-gemm", "weights-in-out-gemm.onnx: node y (Gemm) reads its weight fc.weight as "
                        "(in, out), and a dense layer has (out, in)"},
        {"in-out-matmul", "node h (MatMul) reads its weight fc.weight as (in, out)"},
        {"in-out-twice", "node y (Gemm) reads its weight fc.weight as (in, out)"},
    };
    choose_model(of[_i].name);
    ck_ms_fails(prepare(NULL, err), MS_E_INVALID, of[_i].words);
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    struct ms_err err = {0, ""};

    ck_assert_int_lt(prepare(NULL, &err), 0);

    ck_assert_ptr_nonnull(strstr(err.text, path));
}
END_TEST

START_TEST(a_file_that_is_none_is_refused)
{
    struct ms_err err = {0, ""};
    FILE *file = fopen(path, "w");
    fputs("no tensors in here", file);
    fclose(file);

    ck_assert_int_lt(prepare(NULL, &err), 0);

    ck_assert_ptr_nonnull(strstr(err.text, path));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("weights");
    TCase *tc = tcase_create("weights");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_value_arrives_where_its_name_says);
    tcase_add_test(tc, what_was_saved_reads_back_bit_by_bit);
    tcase_add_test(tc, names_of_torch_and_what_optimizers_leave_come_to_the_same);
    tcase_add_test(tc, moving_averages_of_a_checkpoint_are_its_weights);
    tcase_add_test(tc, a_missing_parameter_is_named);
    tcase_add_test(tc, a_parameter_that_the_network_does_not_have_is_named);
    tcase_add_test(tc, a_wrong_shape_is_told_with_the_right_one);
    tcase_add_loop_test(tc, a_model_has_weights_too, 0, 2);
    tcase_add_loop_test(tc, a_model_of_other_layers_is_refused, 0, 6);
    tcase_add_test(tc, a_missing_file_is_named);
    tcase_add_test(tc, a_file_that_is_none_is_refused);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
