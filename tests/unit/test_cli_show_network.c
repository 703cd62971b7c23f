/* test_cli_show_network.c - a job's network as a table and as JSON: figures, sums, widths */
#include "cli/format.h"
#include "cli/show_network.h"
#include "tests/test.h"

#include <jansson.h>
#include <math.h>

static struct job job;
static const struct roofline rates = {1e11, 4e10}; /* of a host that tests know */

#define REST "optimizer: {kind: sgd, learning_rate: 0.1}\n"
#define ON_MNIST                                                                                   \
    "dataset: {kind: mnist, path: /nowhere}\ntransforms: [{resize: {size: [32, 32]}}]\n" REST
#define ON_IMAGES                                                                                  \
    "dataset: {kind: cifar10, path: /nowhere}\ntransforms: [{resize: {size: [224, 224]}}]\n" REST
#define ON_SHAPES "dataset: {kind: shapes}\n" REST

/* Two turns of the same, a residual with a shortcut, and layers without a name. */
static const char mine[] = "network:\n"
                           "  name: mine\n"
                           "  summary: of my own\n"
                           "  layers:\n"
                           "    - conv2d: {out: 8, kernel: 3, stride: 2, padding: 1}\n"
                           "    - repeat:\n"
                           "        name: block\n"
                           "        times: 2\n"
                           "        layers:\n"
                           "          - residual:\n"
                           "              body: [conv2d: {out: 8, kernel: 3, padding: 1}, "
                           "batch_norm]\n"
                           "              shortcut: [conv2d: {out: 8, kernel: 1, name: short}]\n"
                           "          - relu\n"
                           "    - flatten\n"
                           "    - dense: {name: fc, out: classes}\n"
                           "batch_size: 4\n" ON_SHAPES;

static void load(const char *text)
{
    ck_ms_ok(job_parse(text, strlen(text), "job.yaml", NULL, NULL, 0, 0, &job, err));
}

/* What is printed on a terminal of that width (0: no terminal); owned. */
static char *print_at(size_t width, int json, const struct roofline *of)
{
    char *text = NULL;
    size_t size = 0;
    struct cli cli = {
        .out = open_memstream(&text, &size), .err = stderr, .json = json, .width = width};
    ck_ms_ok(show_network(&cli, &job, of, err));
    fclose(cli.out);
    return text;
}

static char *print(size_t width, int json)
{
    return print_at(width, json, &rates);
}

static json_t *print_json(void)
{
    char *text = print(0, 1);
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_msg(json != NULL, "%s", text);
    free(text);
    return json;
}

static json_int_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "%s", key);
    return json_integer_value(value);
}

static void drop_times(json_t *json)
{
    json_t *layers = json_object_get(json, "layers");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        ck_assert_int_eq(json_object_del(json_array_get(layers, i), "time_share"), 0);
    }
}

static const char *const lenet5_lines[] = {
    "network      lenet5: two 5x5 convolutions and three dense layers",
    "input        1x32x32, batches of 32",
    "",
    "LAYER      KIND      OUTPUT    PARAMETERS     MACS  ACTIVATIONS   SHARE    TIME",
    "conv1      conv2d    6x28x28          150  117,600     18.4 KiB  32.2 %  14.5 %",
    "relu1      relu      6x28x28            0        0     18.4 KiB  32.2 %   8.7 %",
    "max_pool1  max_pool  6x14x14            0        0      4.6 KiB   8.1 %  10.9 %",
    "conv2      conv2d    16x10x10       2,400  240,000      6.2 KiB  11.0 %  44.5 %",
    "relu2      relu      16x10x10           0        0      6.2 KiB  11.0 %   3.0 %",
    "max_pool2  max_pool  16x5x5             0        0      1.6 KiB   2.7 %   3.7 %",
    "flatten1   flatten   400                0        0          0 B   0.0 %   0.0 %",
    "fc1        dense     120           48,120   48,000        480 B   0.8 %  11.7 %",
    "relu3      relu      120                0        0        480 B   0.8 %   0.2 %",
    "fc2        dense     84            10,164   10,080        336 B   0.6 %   2.5 %",
    "relu4      relu      84                 0        0        336 B   0.6 %   0.2 %",
    "fc3        dense     10               850      840         40 B   0.1 %   0.3 %",
    "",
    "layers       12",
    "parameters   61,684, 241.0 KiB as fp32",
    "macs         416,520 a sample",
    "activations  57.0 KiB a sample, 1.8 MiB a batch",
    "time         about 0.52 ms a step of a rank on one core of this host",
    "             estimated for 100 billion macs and 37.3 GiB of memory a second",
};

START_TEST(a_table_has_a_line_a_layer_and_the_sums)
{
    size_t n = 0;
    load("network: lenet5\n" ON_MNIST);

    char *text = print(0, 0);
    char *rest = text;

    for (char *line = strsep(&rest, "\n"); rest != NULL; line = strsep(&rest, "\n")) {
        ck_assert_uint_lt(n, MS_ARRAY_SIZE(lenet5_lines));
        ck_assert_str_eq(line, lenet5_lines[n]);
        n++;
    }
    ck_assert_uint_eq(n, MS_ARRAY_SIZE(lenet5_lines));
    free(text);
}
END_TEST

/* By hand: 16 x 16 images of 8 channels behind the first convolution. */
START_TEST(a_list_of_ones_own_has_the_figures_of_its_formulas)
{
    enum { VALUES = 8 * 16 * 16 };
    static const struct {
        const char *name, *kind, *output;
        int parameters, statistics, macs, values;
    } want[] = {
        {"conv2d1", "conv2d", "[8,16,16]", 8 * 3 * 9, 0, VALUES * 3 * 9, VALUES},
        {"block.0.conv2d1", "conv2d", "[8,16,16]", 8 * 8 * 9, 0, VALUES * 8 * 9, VALUES},
        {"block.0.batch_norm1", "batch_norm", "[8,16,16]", 16, 16, 0, VALUES},
        {"block.0.short", "conv2d", "[8,16,16]", 64, 0, VALUES * 8, VALUES},
        {"block.0.residual1", "residual", "[8,16,16]", 0, 0, 0, VALUES},
        {"block.0.relu1", "relu", "[8,16,16]", 0, 0, 0, VALUES},
        {"block.1.conv2d1", "conv2d", "[8,16,16]", 8 * 8 * 9, 0, VALUES * 8 * 9, VALUES},
        {"block.1.batch_norm1", "batch_norm", "[8,16,16]", 16, 16, 0, VALUES},
        {"block.1.short", "conv2d", "[8,16,16]", 64, 0, VALUES * 8, VALUES},
        {"block.1.residual1", "residual", "[8,16,16]", 0, 0, 0, VALUES},
        {"block.1.relu1", "relu", "[8,16,16]", 0, 0, 0, VALUES},
        {"flatten1", "flatten", "[2048]", 0, 0, 0, 0},
        {"fc", "dense", "[10]", 2048 * 10 + 10, 0, 20480, 10},
    };
    load(mine);
    json_t *json = print_json();
    const json_t *layers = json_object_get(json, "layers");
    char *input = json_dumps(json_object_get(json, "input"), JSON_COMPACT);

    ck_assert_str_eq(json_string_value(json_object_get(json, "network")), "mine");
    ck_assert_str_eq(json_string_value(json_object_get(json, "summary")), "of my own");
    ck_assert_str_eq(input, "[3,32,32]");
    ck_assert_int_eq(number(json, "batch_size"), 4);
    ck_assert_uint_eq(json_array_size(layers), MS_ARRAY_SIZE(want));
    for (size_t i = 0; i < MS_ARRAY_SIZE(want); i++) {
        const json_t *layer = json_array_get(layers, i);
        char *output = json_dumps(json_object_get(layer, "output"), JSON_COMPACT);
        ck_assert_str_eq(json_string_value(json_object_get(layer, "name")), want[i].name);
        ck_assert_str_eq(json_string_value(json_object_get(layer, "kind")), want[i].kind);
        ck_assert_str_eq(output, want[i].output);
        ck_assert_int_eq(number(layer, "parameters"), want[i].parameters);
        ck_assert_int_eq(number(layer, "moving_statistics"), want[i].statistics);
        ck_assert_int_eq(number(layer, "macs"), want[i].macs);
        ck_assert_int_eq(number(layer, "activation_bytes"), 4 * want[i].values);
        free(output);
    }
    free(input);
    json_decref(json);
}
END_TEST

static const char *const jobs[] = {
    "network: resnet50\n" ON_IMAGES,
    "network: cifar_small\nbatch_size: 7\n" ON_SHAPES,
    "network: linear\ndataset: {kind: nonlinear}\n" REST,
    mine,
};

START_TEST(lines_add_up_to_the_totals)
{
    static const char *const keys[] = {"parameters", "moving_statistics", "macs",
                                       "activation_bytes"};
    load(jobs[_i]);
    json_t *json = print_json();
    const json_t *layers = json_object_get(json, "layers");
    double share = 0;
    double time = 0;
    for (size_t k = 0; k < MS_ARRAY_SIZE(keys); k++) {
        json_int_t sum = 0;
        for (size_t i = 0; i < json_array_size(layers); i++) {
            sum += number(json_array_get(layers, i), keys[k]);
        }
        ck_assert_int_eq(number(json, keys[k]), sum);
    }
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        share += json_real_value(json_object_get(layer, "activation_share"));
        time += json_real_value(json_object_get(layer, "time_share"));
    }
    ck_assert_double_eq_tol(share, 1, 1e-12);
    ck_assert_double_eq_tol(time, 1, 1e-12);
    ck_assert_int_eq(number(json, "parameter_bytes"), 4 * number(json, "parameters"));
    json_decref(json);
}
END_TEST

START_TEST(resnet50_has_the_totals_that_are_known)
{
    load("network: resnet50\n" ON_IMAGES);
    char *text = print(0, 0);
    ck_assert_ptr_nonnull(strstr(text, "\ninput        3x224x224, batches of 32\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nparameters   23,528,522, 89.8 MiB as fp32\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nstatistics   53,120 moving means and variances\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nmacs         3,855,945,728 a sample\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nlayer1.c.conv2 "));
    free(text);
}
END_TEST

/* The batch is the job's affair: figures of a sample do not know it; the time is a step's. */
START_TEST(figures_of_a_sample_are_the_same_in_any_batch)
{
    load("network: cifar_small\nbatch_size: 1\n" ON_SHAPES);
    json_t *one = print_json();
    load("network: cifar_small\nbatch_size: 384\n" ON_SHAPES);
    json_t *many = print_json();
    ck_assert_double_lt(json_real_value(json_object_get(one, "expected_step_seconds")),
                        json_real_value(json_object_get(many, "expected_step_seconds")));
    drop_times(one);
    drop_times(many);
    ck_assert(json_equal(json_object_get(one, "layers"), json_object_get(many, "layers")));
    ck_assert_int_eq(number(one, "macs"), number(many, "macs"));
    json_decref(one);
    json_decref(many);
}
END_TEST

/* Whatever the terminal has, names and parameters are there. */
START_TEST(a_table_fits_the_terminal)
{
    load("network: resnet50\n" ON_IMAGES);
    const size_t width = (size_t)_i;
    char *text = print(width, 0);
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        ck_assert_msg(cli_text_columns(line) <= width, "%zu: %s", width, line);
        if (strncmp(line, "LAYER", 5) == 0) {
            ck_assert_ptr_nonnull(strstr(line, "PARAMETERS"));
            ck_assert_msg(width < 60 || strstr(line, "OUTPUT") != NULL, "%s", line);
            ck_assert_msg(width < 60 || strstr(line, "TIME") != NULL, "%s", line);
            ck_assert_msg(width < 80 || strstr(line, "MACS") != NULL, "%s", line);
            ck_assert_msg(width < 80 || strstr(line, "SHARE") != NULL, "%s", line);
            ck_assert_msg(width < 110 || strstr(line, "ACTIVATIONS") != NULL, "%s", line);
        }
    }
    free(text);
}
END_TEST

/* 4097 x 4097 places of a window of 64 channels, 4096 x 4096 each: more than 2^53. */
START_TEST(more_macs_than_a_double_counts_are_told_as_a_real)
{
    load("network: [conv2d: {out: 64, kernel: 1}, conv2d: {out: 1, kernel: 4096, padding: 2048}, "
         "global_avg_pool, dense: {out: classes}]\nbatch_size: 2\n"
         "dataset: {kind: shapes}\ntransforms: [{resize: {size: [4096, 4096]}}]\n" REST);
    const double want = 4097.0 * 4097 * 64 * 4096 * 4096 + 4096.0 * 4096 * 64 * 3 + 10;
    json_t *json = print_json();
    char *text = print(0, 0);
    const json_t *macs = json_object_get(json, "macs");
    ck_assert(json_is_real(macs));
    ck_assert_double_eq_tol(json_real_value(macs), want, 1e-12 * want);
    ck_assert_msg(strstr(text, "\nmacs         1.8e+16 a sample\n") != NULL, "%s", text);
    free(text);
    json_decref(json);
}
END_TEST

/* ---- time ---- */

static double time_share(const json_t *json, size_t layer)
{
    return json_real_value(
        json_object_get(json_array_get(json_object_get(json, "layers"), layer), "time_share"));
}

/* Two convolutions of the same images, the second one of so many channels. */
static json_t *of_channels(int channels)
{
    char text[512];
    snprintf(text, sizeof(text),
             "network: [conv2d: {out: 8, kernel: 3}, conv2d: {out: %d, kernel: 3}, flatten, "
             "dense: {out: classes}]\nbatch_size: 4\n" ON_SHAPES,
             channels);
    load(text);
    return print_json();
}

START_TEST(four_times_the_channels_take_a_larger_share)
{
    json_t *few = of_channels(8);
    json_t *many = of_channels(32);

    ck_assert_double_gt(time_share(many, 1), time_share(few, 1));
    ck_assert_double_gt(time_share(many, 1), time_share(many, 0));
    ck_assert_double_gt(json_real_value(json_object_get(many, "expected_step_seconds")),
                        json_real_value(json_object_get(few, "expected_step_seconds")));
    json_decref(few);
    json_decref(many);
}
END_TEST

START_TEST(a_view_takes_no_time_and_all_else_does)
{
    load(mine);
    json_t *json = print_json();
    const json_t *layers = json_object_get(json, "layers");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const char *kind = json_string_value(json_object_get(json_array_get(layers, i), "kind"));
        const int is_free = strcmp(kind, "flatten") == 0;
        ck_assert_msg(is_free ? time_share(json, i) == 0 : time_share(json, i) > 0, "%zu: %s", i,
                      kind);
    }
    ck_assert_double_eq(json_real_value(json_object_get(json, "macs_per_second")), 1e11);
    ck_assert_double_eq(json_real_value(json_object_get(json, "memory_bytes_per_second")), 4e10);
    json_decref(json);
}
END_TEST

/* The same network on hosts that differ a billion times. */
START_TEST(the_time_of_a_step_is_told_in_two_digits)
{
    static const struct {
        double factor;
        const char *words;
    } rows[] = {{1, "about 0.5"}, {1e3, " s a step"}, {1e-3, " ms a step"}, {1e9, " a step of a"}};
    load("network: lenet5\n" ON_MNIST);
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        const struct roofline slower = {rates.products_per_s / rows[i].factor,
                                        rates.bytes_per_s / rows[i].factor};
        char *text = print_at(0, 0, &slower);
        const char *line = strstr(text, "\ntime         about ");
        ck_assert_msg(line != NULL && strstr(line, rows[i].words) != NULL, "%s", text);
        ck_assert_ptr_nonnull(strstr(line, " of a rank on one core of this host\n"));
        free(text);
    }
}
END_TEST

/* ---- with what it begins ---- */

START_TEST(what_is_taken_of_initial_weights_is_said)
{
    static const char text[] = "network: linear\nloss: mse\ndataset: {kind: nonlinear}\n"
                               "optimizer: {kind: sgd, learning_rate: 0.1}\n"
                               "initial_weights: {file: weights-gemm.onnx, exclude: fc.bias}\n";
    char folder[512];
    ck_assert_ptr_nonnull(getenv("MSCHED_SOURCE_ROOT"));
    snprintf(folder, sizeof(folder), "%s/tests/golden/onnx", getenv("MSCHED_SOURCE_ROOT"));
    ck_ms_ok(job_parse(text, strlen(text), "job.yaml", folder, NULL, 0, 0, &job, err));
    char *shown = print(0, 0);
    json_t *json = print_json();
    ck_assert_msg(strstr(shown, "weights-gemm.onnx: 1 of 2 parameters; fc.bias begins by its init"),
                  "%s", shown);
    ck_assert_str_eq(
        json_string_value(json_object_get(json_object_get(json, "initial_weights"), "taken")),
        "1 of 2 parameters; fc.bias begins by its init");
    json_decref(json);
    free(shown);

    snprintf(job.take.exclude[0], sizeof(job.take.exclude[0]), "fd.bias");
    struct cli cli = {.out = stdout, .err = stderr};
    ck_ms_fails(show_network(&cli, &job, &rates, err), MS_E_INVALID,
                "initial_weights: exclude: 'fd.bias' matches no parameter");

    snprintf(job.initial_weights, sizeof(job.initial_weights), "${NOT_SET_HERE}/w.safetensors");
    shown = print(0, 0);
    ck_assert_msg(strstr(shown, "w.safetensors: not on this host; the workers look at it"), "%s",
                  shown);
    free(shown);
}
END_TEST

/* ---- of the scheduler ---- */

START_TEST(a_job_of_the_scheduler_shows_what_its_file_did)
{
    Ms__JobInfo info = MS__JOB_INFO__INIT;
    load(mine);
    char *want = print(0, 0);
    info.id = 7;
    info.job_json.data = (uint8_t *)job_format(&job, &info.job_json.len);
    memset(&job, 0, sizeof(job));

    ck_ms_ok(show_network_job(&info, &job, err));
    char *text = print(0, 0);

    ck_assert_str_eq(text, want);
    free(info.job_json.data);
    free(text);
    free(want);
}
END_TEST

START_TEST(a_job_that_this_release_cannot_read_is_named)
{
    static char newer[] = "{\"network\": \"linear\", \"of_tomorrow\": 1}";
    static const struct {
        char *json;
        const char *words;
    } jobs_sent[] = {
        {newer, "job 7:1:23: of_tomorrow is no key of a job"},
        {NULL, "job 7: "},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(jobs_sent); i++) {
        Ms__JobInfo info = MS__JOB_INFO__INIT;
        info.id = 7;
        info.job_json.data = (uint8_t *)jobs_sent[i].json;
        info.job_json.len = jobs_sent[i].json != NULL ? strlen(jobs_sent[i].json) : 0;
        ck_ms_fails(show_network_job(&info, &job, err), MS_E_INVALID, jobs_sent[i].words);
        ck_ms_fails(show_network_job(&info, &job, err), MS_E_INVALID, "another release");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_show_network");
    TCase *tc = tcase_create("show");
    tcase_add_test(tc, a_table_has_a_line_a_layer_and_the_sums);
    tcase_add_test(tc, a_list_of_ones_own_has_the_figures_of_its_formulas);
    tcase_add_loop_test(tc, lines_add_up_to_the_totals, 0, (int)MS_ARRAY_SIZE(jobs));
    tcase_add_test(tc, resnet50_has_the_totals_that_are_known);
    tcase_add_test(tc, figures_of_a_sample_are_the_same_in_any_batch);
    tcase_add_loop_test(tc, a_table_fits_the_terminal, 36, 130);
    tcase_add_test(tc, more_macs_than_a_double_counts_are_told_as_a_real);
    tcase_add_test(tc, four_times_the_channels_take_a_larger_share);
    tcase_add_test(tc, a_view_takes_no_time_and_all_else_does);
    tcase_add_test(tc, the_time_of_a_step_is_told_in_two_digits);
    tcase_add_test(tc, what_is_taken_of_initial_weights_is_said);
    tcase_add_test(tc, a_job_of_the_scheduler_shows_what_its_file_did);
    tcase_add_test(tc, a_job_that_this_release_cannot_read_is_named);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
