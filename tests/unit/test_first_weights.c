/* test_first_weights.c - the file with which a training begins: what is excluded, renamed, taken */
#include "libworker/job/first_weights.h"

#include "libworker/data/ckpt.h"
#include "libworker/graph/graph.h"
#include "libworker/network/network.h"
#include "proto/rng.h"
#include "tests/test.h"

#define NET                                                                                        \
    "network: [conv2d: {name: conv1, out: 2, kernel: 1}, batch_norm: {name: bn1}, "                \
    "global_avg_pool, dense: {name: fc, out: classes}]\n"                                          \
    "dataset: {kind: shapes, samples: 32}\nbatch_size: 8\n"                                        \
    "optimizer: {kind: sgd, learning_rate: 0.1}\ninitial_weights: "

static const char *dir;
static char path[512];
static struct job job;
static struct network *network;
static struct graph *graph;

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/w.safetensors", dir);
}

static void teardown(void)
{
    graph_destroy(graph);
    network_destroy(network);
    test_dir_remove(dir);
}

/* keys: behind the file, as ", exclude: fc.*" */
static int parse(const char *keys, struct ms_err *err)
{
    static char text[8192];
    snprintf(text, sizeof(text), "%s{file: %s%s}\n", NET, path, keys);
    return job_parse(text, strlen(text), "job.yaml", "/base", NULL, 0, 0, &job, err);
}

static void build(const char *keys)
{
    graph_destroy(graph);
    network_destroy(network);
    graph = NULL;
    network = NULL;
    ck_ms_ok(parse(keys, err));
    ck_ms_ok(job_network_create(&job, &network, err));
    ck_ms_ok(job_network_build(&job, network, NULL, &graph, err));
}

static int open_with(const char *keys, struct first_weights **ret, struct ms_err *err)
{
    build(keys);
    return first_weights_open(path, &job.take, graph, ret, err);
}

static void refuse(const char *keys, const char *words)
{
    struct first_weights *weights = NULL;
    ck_ms_fails(open_with(keys, &weights, err), MS_E_INVALID, words);
    ck_assert_ptr_null(weights);
}

struct spec {
    const char *name;
    int n_dims;
    int64_t dim[4];
};
static const struct spec whole[] = {{"conv1.weight", 4, {2, 3, 1, 1}},
                                    {"bn1.gamma", 1, {2}},
                                    {"bn1.beta", 1, {2}},
                                    {"bn1.moving_mean", 1, {2}},
                                    {"bn1.moving_variance", 1, {2}},
                                    {"fc.weight", 2, {10, 2}},
                                    {"fc.bias", 1, {10}}};
enum { WHOLE = 7, MOST = 12 };

/* Every value of tensor i is i + 1. */
static void write_named(const struct spec *specs, size_t n, const char (*names)[128])
{
    static float values[4096];
    struct safetensors_entry entries[MOST];
    struct safetensors_writer *writer = NULL;
    struct ckpt_writer *theirs = NULL;
    const int is_ckpt = strstr(path, ".ckpt") != NULL;
    memset(entries, 0, sizeof(entries));
    for (size_t i = 0; i < n; i++) {
        snprintf(entries[i].name, sizeof(entries[i].name), "%s", names[i]);
        snprintf(entries[i].dtype, sizeof(entries[i].dtype), "F32");
        entries[i].n_dims = specs[i].n_dims;
        memcpy(entries[i].dim, specs[i].dim, sizeof(specs[i].dim));
    }
    if (is_ckpt) {
        ck_ms_ok(ckpt_create(path, &theirs, err));
    } else {
        ck_ms_ok(safetensors_create(path, entries, n, NULL, 0, &writer, err));
    }
    for (size_t i = 0; i < n; i++) {
        size_t count = 1;
        for (int d = 0; d < specs[i].n_dims; d++) {
            count *= (size_t)specs[i].dim[d];
        }
        for (size_t v = 0; v < count; v++) {
            values[v] = (float)(i + 1);
        }
        if (is_ckpt) {
            ck_ms_ok(ckpt_put(theirs, &entries[i], values, err));
        } else {
            ck_ms_ok(safetensors_put(writer, entries[i].name, values, count, err));
        }
    }
    ck_ms_ok(is_ckpt ? ckpt_finish(theirs, err) : safetensors_finish(writer, NULL, err));
}

static void write_specs(const struct spec *specs, size_t n)
{
    char names[MOST][128];
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof(names[i]), "%s", specs[i].name);
    }
    write_named(specs, n, (const char(*)[128])names);
}

/* The value with which the stored tensor of that name begins; 0: it is not taken. */
static float value_of(const struct first_weights *weights, const char *name)
{
    static float values[4096];
    for (int i = 0; i < graph_n_stored(graph); i++) {
        const struct tensor *tensor = graph_tensor(graph, graph_stored_at(graph, i));
        if (strcmp(tensor->name, name) == 0 && first_weights_has(weights, i)) {
            ck_ms_ok(
                first_weights_read(weights, i, values, (size_t)shape_count(&tensor->shape), err));
            return values[0];
        }
    }
    return 0;
}

static void ck_says(const struct first_weights *weights, const char *want)
{
    char text[512];
    first_weights_say(weights, text, sizeof(text));
    ck_assert_str_eq(text, want);
}

START_TEST(without_patterns_all_is_taken)
{
    struct first_weights *weights = NULL;
    write_specs(whole, WHOLE);

    ck_ms_ok(open_with("", &weights, err));

    ck_says(weights, "5 of 5 parameters, 2 of 2 moving statistics");
    for (size_t i = 0; i < WHOLE; i++) {
        ck_assert_float_eq(value_of(weights, whole[i].name), (float)(i + 1));
    }
    first_weights_close(weights);
}
END_TEST

/* Who is trained, and answers, can begin nothing by its init. */
START_TEST(of_a_trained_network_nothing_may_be_missing)
{
    struct spec specs[WHOLE];
    struct first_weights *weights = NULL;
    write_specs(whole, WHOLE);
    ck_ms_ok(open_with("", &weights, err)); /* makes the graph */
    first_weights_close(weights);
    ck_ms_ok(first_weights_open(path, NULL, graph, &weights, err));
    ck_says(weights, "5 of 5 parameters, 2 of 2 moving statistics");
    first_weights_close(weights);

    memcpy(specs, whole, sizeof(whole));
    specs[3] = whole[6];
    specs[4] = whole[5];
    write_specs(specs, 5);
    ck_ms_fails(first_weights_open(path, NULL, graph, &weights, err), MS_E_INVALID,
                "the moving statistic bn1.moving_mean of the network is missing; are these weights "
                "of another network, or job?");
    memcpy(specs, whole, sizeof(whole));
    specs[5].dim[0] = 1000;
    write_specs(specs, WHOLE);
    ck_ms_fails(first_weights_open(path, NULL, graph, &weights, err), MS_E_INVALID,
                "the network wants (10, 2); are these weights of another network, or job?");
}
END_TEST

/* A head of 1000 classes, in either format. */
START_TEST(what_is_excluded_may_have_another_shape_and_is_not_taken)
{
    static const char *const endings[] = {"w.safetensors", "w.ckpt"};
    struct spec specs[WHOLE];
    struct first_weights *weights = NULL;
    memcpy(specs, whole, sizeof(whole));
    specs[5].dim[0] = 1000;
    specs[6].dim[0] = 1000;
    snprintf(path, sizeof(path), "%s/%s", dir, endings[_i]);
    write_specs(specs, WHOLE);

    refuse(
        "",
        "tensor fc.weight has shape (1000, 2), the network wants (10, 2); initial_weights.exclude");
    ck_ms_ok(open_with(", exclude: \"fc.*\"", &weights, err));

    ck_says(weights, "3 of 5 parameters, 2 of 2 moving statistics; fc.weight, fc.bias begin by "
                     "their init");
    ck_assert_float_eq(value_of(weights, "fc.weight"), 0);
    ck_assert_float_eq(value_of(weights, "conv1.weight"), 1);
    first_weights_close(weights);
}
END_TEST

/* As DistributedDataParallel has them. */
START_TEST(names_below_another_module_are_refused_with_the_rename_that_helps)
{
    char names[MOST][128];
    struct first_weights *weights = NULL;
    for (size_t i = 0; i < WHOLE; i++) {
        snprintf(names[i], sizeof(names[i]), "module.%s", whole[i].name);
    }
    write_named(whole, WHOLE, (const char(*)[128])names);

    refuse("", "initial_weights.rename: [{from: \"module.*\", to: \"*\"}] takes those names");
    ck_ms_ok(open_with(", rename: [{from: \"module.*\", to: \"*\"}]", &weights, err));

    ck_says(weights, "5 of 5 parameters, 2 of 2 moving statistics");
    first_weights_close(weights);
}
END_TEST

START_TEST(what_the_network_has_not_may_be_excluded_and_what_the_file_has_not)
{
    const struct spec specs[] = {
        whole[0], whole[1], whole[2], whole[5], {"head.proj", 2, {3, 3}}, {"head.bias", 1, {3}}};
    struct first_weights *weights = NULL;
    write_specs(specs, 6);

    refuse("", "tensor head.bias is not in the network; is it another network's file?");
    refuse(", exclude: \"head.*\"", "parameter fc.bias of the network is missing");
    ck_ms_ok(open_with(", exclude: [\"head.*\", fc.bias]", &weights, err));

    ck_says(weights, "4 of 5 parameters, 0 of 2 moving statistics; fc.bias begins by its init");
    first_weights_close(weights);
}
END_TEST

/* A norm's weight of torch's name is the network's gamma: either name excludes it. */
START_TEST(torch_s_names_exclude_and_are_renamed_to)
{
    static const char names[][128] = {
        "net.conv1.weight",    "net.bn1.weight", "net.bn1.bias", "net.bn1.running_mean",
        "net.bn1.running_var", "net.fc.weight",  "net.fc.bias"};
    static const char *const excludes[] = {"bn1.weight", "bn1.gamma"};
    for (size_t i = 0; i < 2; i++) {
        struct first_weights *weights = NULL;
        char keys[256];
        write_named(whole, WHOLE, names);
        snprintf(keys, sizeof(keys), ", rename: [{from: \"net.*\", to: \"*\"}], exclude: %s",
                 excludes[i]);

        ck_ms_ok(open_with(keys, &weights, err));

        ck_says(weights,
                "4 of 5 parameters, 2 of 2 moving statistics; bn1.gamma begins by its init");
        ck_assert_float_eq(value_of(weights, "bn1.moving_variance"), 5);
        first_weights_close(weights);
    }
}
END_TEST

static const struct {
    const char *exclude, *words;
} of_norms[] = {
    {"\"*.gamma\"", "4 of 5 parameters, 2 of 2 moving statistics; bn1.gamma begins by its init"},
    {"\"*.beta\"", "4 of 5 parameters, 2 of 2 moving statistics; bn1.beta begins by its init"},
    {"\"*.running_*\"", "5 of 5 parameters, 0 of 2 moving statistics"},
    {"\"*.bias\"",
     "3 of 5 parameters, 2 of 2 moving statistics; bn1.beta, fc.bias begin by their init"},
};

/* Convolutions and dense layers have no gamma and no beta. */
START_TEST(names_of_norms_exclude_parts_of_norms_alone)
{
    struct first_weights *weights = NULL;
    char keys[64];
    write_specs(whole, WHOLE);
    snprintf(keys, sizeof(keys), ", exclude: [%s]", of_norms[_i].exclude);

    ck_ms_ok(open_with(keys, &weights, err));

    ck_says(weights, of_norms[_i].words);
    first_weights_close(weights);
}
END_TEST

START_TEST(a_dense_layer_takes_no_gamma_for_its_weight)
{
    struct spec specs[WHOLE];
    struct first_weights *weights = NULL;
    memcpy(specs, whole, sizeof(whole));
    specs[5].name = "fc.gamma";
    specs[6].name = "fc.beta";
    write_specs(specs, WHOLE);

    refuse("", "tensor fc.beta is not in the network");
    refuse(", exclude: fc.gamma", "tensor fc.beta is not in the network");
    refuse(", exclude: [\"fc.beta\", \"fc.gamma\"]",
           "parameter fc.weight of the network is missing");
    ck_ms_ok(open_with(", rename: [{from: fc.gamma, to: fc.weight}, {from: fc.beta, to: fc.bias}]",
                       &weights, err));
    ck_says(weights, "5 of 5 parameters, 2 of 2 moving statistics");
    first_weights_close(weights);
}
END_TEST

START_TEST(the_first_rename_that_matches_holds)
{
    static const char names[][128] = {"a.conv.weight",   "bn1.gamma",           "bn1.beta",
                                      "bn1.moving_mean", "bn1.moving_variance", "a.fc.weight",
                                      "a.fc.bias"};
    struct first_weights *weights = NULL;
    write_named(whole, WHOLE, names);

    ck_ms_ok(open_with(", rename: [{from: a.conv.weight, to: conv1.weight}, "
                       "{from: \"a.*\", to: \"*\"}]",
                       &weights, err));
    ck_says(weights, "5 of 5 parameters, 2 of 2 moving statistics");
    ck_assert_float_eq(value_of(weights, "conv1.weight"), 1);
    ck_assert_float_eq(value_of(weights, "fc.bias"), 7);
    first_weights_close(weights);
    refuse(", rename: [{from: \"a.*\", to: \"*\"}, {from: a.conv.weight, to: conv1.weight}]",
           "rename[1]: 'a.conv.weight' matches no tensor");
    refuse(", rename: [{from: \"a.*\", to: \"*\"}]",
           "tensor a.conv.weight (renamed conv.weight) is not in the network");
}
END_TEST

static const struct {
    const char *keys, *words;
} refused[] = {
    {", exclude: \"fx.*\"", "exclude: 'fx.*' matches no parameter of network network and no "
                            "tensor of "},
    {", exclude: \"fx.*\"", "nearest: fc.weight, fc.bias, "},
    {", exclude: [\"fc.*\", conv2.weight]", "exclude: 'conv2.weight' matches no parameter"},
    {", rename: [{from: \"model.*\", to: \"*\"}]", "rename[0]: 'model.*' matches no tensor of "},
    {", rename: [{from: fc.wait, to: fc.weight}]", "nearest: fc.weight, "},
    {", rename: [{from: \"fc.*\", to: \"fc.*\"}, {from: fc.bias, to: bn1.beta}]",
     "rename[1]: 'fc.bias' matches no tensor"},
    {", rename: [{from: bn1.beta, to: bn1.gamma}]",
     "bn1.gamma and bn1.beta would both be bn1.gamma; mend initial_weights.rename"},
    {", rename: [{from: fc.bias, to: bias}]", "tensor fc.bias (renamed bias) is not in the net"},
    {", exclude: \"*\"", "exclude leaves nothing that would be taken of "},
};

START_TEST(patterns_that_do_not_fit_the_file_are_refused)
{
    write_specs(whole, WHOLE);
    refuse(refused[_i].keys, refused[_i].words);
}
END_TEST

static const struct {
    const char *keys, *words;
} misspelt[] = {
    {", exclud: x", "initial_weights.exclud is no key of initial_weights; did you mean exclude?"},
    {", exclude: []", "initial_weights.exclude has 0 patterns; give 1 to 32"},
    {", exclude: [[x]]", "initial_weights.exclude: a list is no pattern; give a name of param"},
    {", exclude: \"a\\nb\"", "has a control character in it"},
    {", rename: x", "initial_weights.rename must be a list of 1 to 32 renames"},
    {", rename: [x]", "initial_weights.rename[0] must hold keys; write it as - {from: "},
    {", rename: [{from: a}]", "initial_weights.rename[0].to is missing (the network's)"},
    {", rename: [{from: \"*.*\", to: b}]", "'*.*' has more than one star, or a question mark"},
    {", rename: [{from: a, to: \"?\"}]", "rename[0].to: '?' has more than one star"},
    {", rename: [{from: a, to: b}, {from: \"a*\", to: b}]",
     "initial_weights.rename[1]: from 'a*' to 'b': what the star of one stands for takes"},
};

START_TEST(keys_that_are_misspelt_are_refused_with_their_place)
{
    ck_ms_fails(parse(misspelt[_i].keys, err), MS_E_INVALID, misspelt[_i].words);
    ck_ms_fails(parse(misspelt[_i].keys, err), MS_E_INVALID, "job.yaml:5:");
}
END_TEST

START_TEST(a_file_is_needed_but_where_the_network_is_one)
{
    static const char alone[] = NET "{exclude: fc.bias}\n";
    static const char model[] = "network: net-torchscript-train.onnx\n"
                                "transforms: [{resize: {size: [20, 16]}}]\n"
                                "dataset: {kind: shapes, samples: 32}\nbatch_size: 8\n"
                                "optimizer: {kind: sgd, learning_rate: 0.1}\n"
                                "initial_weights: {exclude: \"*.bias\"}\n";
    char folder[512];
    ck_ms_fails(job_parse(alone, strlen(alone), "job.yaml", "/base", NULL, 0, 0, &job, err),
                MS_E_INVALID, "initial_weights.file is missing");
    ck_assert_ptr_nonnull(getenv("MSCHED_SOURCE_ROOT"));
    snprintf(folder, sizeof(folder), "%s/tests/golden/onnx", getenv("MSCHED_SOURCE_ROOT"));

    ck_ms_ok(job_parse(model, strlen(model), "job.yaml", folder, NULL, 0, 0, &job, err));

    ck_assert_ptr_nonnull(strstr(job.initial_weights, "/net-torchscript-train.onnx"));
    ck_assert_int_eq(job.take.n_exclude, 1);
    struct first_weights *weights = NULL;
    char text[512];
    ck_ms_ok(job_network_create(&job, &network, err));
    ck_ms_ok(job_network_build(&job, network, NULL, &graph, err));
    ck_ms_ok(first_weights_open(job.initial_weights, &job.take, graph, &weights, err));
    first_weights_say(weights, text, sizeof(text));
    ck_assert_msg(strstr(text, ".bias") != NULL && strstr(text, "begin") != NULL, "%s", text);
    first_weights_close(weights);
}
END_TEST

START_TEST(what_was_read_is_written_and_reads_back_equal)
{
    static struct job again;
    size_t size = 0;
    ck_ms_ok(parse(", exclude: fc.*, rename: [{from: \"a.*\", to: \"*\"}]", err));
    char *text = job_format(&job, &size);
    ck_assert_ptr_nonnull(strstr(text, "\"initial_weights\":{\"exclude\":[\"fc.*\"],\"file\":\""));
    ck_assert_ptr_nonnull(strstr(text, "\"rename\":[{\"from\":\"a.*\",\"to\":\"*\"}]"));

    ck_ms_ok(job_parse(text, size, "job 7", NULL, NULL, 0, 0, &again, err));

    ck_assert_str_eq(again.initial_weights, job.initial_weights);
    ck_assert_mem_eq(&again.take, &job.take, sizeof(job.take));
    free(text);
    ck_ms_ok(parse("", err)); /* as older releases read it */
    text = job_format(&job, &size);
    ck_assert_ptr_nonnull(strstr(text, "\"initial_weights\":\"/"));
    free(text);
}
END_TEST

/* Names with a random prefix each: whatever it is, the rename that takes it away brings the tensor
 * to its parameter. */
START_TEST(random_prefixes_are_renamed_away)
{
    for (int turn = 0; turn < 40; turn++) {
        char names[WHOLE][128];
        char prefix[16] = "";
        char keys[256];
        struct first_weights *weights = NULL;
        const size_t n = 1 + ms_rng_below(41, (uint64_t)turn, 14);
        for (size_t i = 0; i < n; i++) {
            prefix[i] = "abw.f"[ms_rng_below(42, 16 * (uint64_t)turn + i, 5)];
        }
        for (size_t i = 0; i < WHOLE; i++) {
            snprintf(names[i], sizeof(names[i]), "%s%s", prefix, whole[i].name);
        }
        write_named(whole, WHOLE, (const char(*)[128])names);
        snprintf(keys, sizeof(keys), ", rename: [{from: \"%s*\", to: \"*\"}]", prefix);
        ck_ms_ok(open_with(keys, &weights, err));
        for (size_t i = 0; i < WHOLE; i++) {
            ck_assert_float_eq(value_of(weights, whole[i].name), (float)(i + 1));
        }
        first_weights_close(weights);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("first_weights");
    TCase *tc = tcase_create("first_weights");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, without_patterns_all_is_taken);
    tcase_add_test(tc, of_a_trained_network_nothing_may_be_missing);
    tcase_add_loop_test(tc, what_is_excluded_may_have_another_shape_and_is_not_taken, 0, 2);
    tcase_add_test(tc, names_below_another_module_are_refused_with_the_rename_that_helps);
    tcase_add_test(tc, what_the_network_has_not_may_be_excluded_and_what_the_file_has_not);
    tcase_add_test(tc, torch_s_names_exclude_and_are_renamed_to);
    tcase_add_loop_test(tc, names_of_norms_exclude_parts_of_norms_alone, 0,
                        (int)MS_ARRAY_SIZE(of_norms));
    tcase_add_test(tc, a_dense_layer_takes_no_gamma_for_its_weight);
    tcase_add_test(tc, the_first_rename_that_matches_holds);
    tcase_add_loop_test(tc, patterns_that_do_not_fit_the_file_are_refused, 0,
                        (int)MS_ARRAY_SIZE(refused));
    tcase_add_loop_test(tc, keys_that_are_misspelt_are_refused_with_their_place, 0,
                        (int)MS_ARRAY_SIZE(misspelt));
    tcase_add_test(tc, a_file_is_needed_but_where_the_network_is_one);
    tcase_add_test(tc, what_was_read_is_written_and_reads_back_equal);
    tcase_add_test(tc, random_prefixes_are_renamed_away);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
