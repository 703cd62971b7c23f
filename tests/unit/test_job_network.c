/* test_job_network.c - a network of its own in a job: layers, files of them, models */
#include "libworker/job/job_schema.h"
#include "libworker/network/network.h"
#include "tests/unit/job_texts.h"

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

static void copy(const char *from, const char *to)
{
    char block[1 << 16];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    ck_assert(in != NULL && out != NULL);
    for (size_t n = 1; n > 0;) {
        n = fread(block, 1, sizeof(block), in);
        ck_assert_uint_eq(fwrite(block, 1, n, out), n);
    }
    fclose(in);
    fclose(out);
}

/* Before anything is started: the newer exporter writes two files, of which people copy one. */
START_TEST(weights_are_looked_at_with_the_job_s_inputs)
{
    static struct job job;
    const char *dir = test_dir_make();
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    char from[600];
    char to[300];
    static const char text[] =
        "network: m.onnx\ntransforms: [{resize: {size: [20, 16]}}]\n" ON_SHAPES;
    static const char misfit[] = "network: lenet5\ninitial_weights: m.onnx\n" ON_SHAPES;
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof(from), "%s/tests/golden/onnx/net-dynamo-external.onnx%s", root,
                 i == 0 ? "" : ".data");
        snprintf(to, sizeof(to), "%s/%s", dir, i == 0 ? "m.onnx" : "net-dynamo-external.onnx.data");
        copy(from, to);
    }
    ck_ms_ok(job_parse(text, strlen(text), "job.yaml", dir, NULL, 0, 0, &job, err));
    ck_ms_ok(job_check_inputs(&job, err));

    ck_assert_int_eq(unlink(to), 0);
    ck_ms_fails(job_check_inputs(&job, err), MS_E_NOT_FOUND, "net-dynamo-external.onnx.data");
    ck_ms_ok(job_parse(misfit, strlen(misfit), "job.yaml", dir, NULL, 0, 0, &job, err));

    ck_ms_fails(job_check_inputs(&job, err), MS_E_INVALID, "is not in the network lenet5");
    test_dir_remove(dir);
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

int main(void)
{
    Suite *suite = suite_create("job_network");
    TCase *tc = tcase_create("job_network");
    tcase_add_test(tc, a_list_of_layers_is_a_network);
    tcase_add_test(tc, its_document_says_what_it_is_called);
    tcase_add_test(tc, a_file_of_layers_is_as_if_it_stood_in_the_job);
    tcase_add_test(tc, a_model_is_as_if_its_layers_stood_in_the_job_and_begins_it);
    tcase_add_test(tc, weights_are_looked_at_with_the_job_s_inputs);
    tcase_add_test(tc, the_graph_of_a_job_has_the_shapes_of_its_data);
    tcase_add_loop_test(tc, a_network_that_does_not_fit_its_data_is_refused_with_its_place, 0,
                        (int)MS_ARRAY_SIZE(unfit));
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
