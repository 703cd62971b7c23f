/* test_cli_step_time.c - a step's time of each layer: optimizers, batches of a step, the loss */
#include "cli/step_time.h"
#include "tests/test.h"

#include <math.h>

enum { LAYERS_MAX = 8, WEIGHTS = 8 * 4 + 4, OTHERS = 4 * 2 + 2 };

#define SGD "optimizer: {kind: sgd, learning_rate: 0.1}"

static struct job job;
static double seconds[LAYERS_MAX];
static const struct roofline of_memory = {INFINITY, 4}; /* a value a second */

/* Two dense layers with parameters WEIGHTS and OTHERS; seconds of each, how many in all. */
static size_t load(const char *keys, const struct roofline *rates)
{
    char text[1024];
    struct network *network = NULL;
    struct network_layers *layers = NULL;
    struct graph *graph = NULL;
    snprintf(text, sizeof(text),
             "network: [flatten, dense: {name: a, out: 4}, dense: {name: b, out: 2}]\n"
             "dataset: {kind: csv, path: /nowhere, target: 0, shape: [8], target_width: 2}\n"
             "loss: mse\nbatch_size: 3\n%s\n",
             keys);
    ck_ms_ok(job_parse(text, strlen(text), "job.yaml", NULL, NULL, 0, 0, &job, err));
    ck_ms_ok(job_network_create(&job, &network, err));
    ck_ms_ok(job_network_build(&job, network, &layers, &graph, err));
    ck_ms_ok(graph_differentiate(graph, err));
    const size_t n = layers->n;
    ck_assert_uint_le(n, LAYERS_MAX);
    ck_ms_ok(cli_step_time(&job, layers, graph, rates, seconds, err));
    graph_destroy(graph);
    network_layers_destroy(layers);
    network_destroy(network);
    return n;
}

/* Values that each optimizer reads and writes beside the gradient and the weight twice. */
START_TEST(an_optimizer_passes_over_what_it_keeps)
{
    static const struct {
        const char *keys;
        int more;
    } rows[] = {
        {"optimizer: {kind: momentum, learning_rate: 0.1, momentum: 0.9}", 2},
        {"optimizer: {kind: adam, learning_rate: 0.1}", 4},
        {"optimizer: {kind: adamw, learning_rate: 0.1}", 4},
        {"optimizer: {kind: rmsprop, learning_rate: 0.1}", 2},
        {"optimizer: {kind: rmsprop, learning_rate: 0.1, momentum: 0.9, centered: true}", 6},
        {"optimizer: {kind: lamb, learning_rate: 0.1}", 7},
        {"optimizer: {kind: sgd, learning_rate: 0.1, clip_norm: 1}", 1},
        {"average: {decay: 0.99}\n" SGD, 3},
    };
    ck_assert_uint_eq(load(SGD, &of_memory), 3);
    const double a = seconds[1];
    const double b = seconds[2];
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        load(rows[i].keys, &of_memory);
        ck_assert_msg(seconds[0] == 0, "%s", rows[i].keys);
        ck_assert_msg(seconds[1] == a + rows[i].more * WEIGHTS, "%s: %g", rows[i].keys,
                      (seconds[1] - a) / WEIGHTS);
        ck_assert_msg(seconds[2] == b + rows[i].more * OTHERS, "%s", rows[i].keys);
    }
}
END_TEST

START_TEST(what_is_frozen_has_no_pass)
{
    load(SGD, &of_memory);
    const double a = seconds[1];
    const double b = seconds[2];
    load("optimizer: {kind: sgd, learning_rate: 0.1, groups: [{match: a.weight, frozen: true}]}",
         &of_memory);
    ck_assert_double_eq(seconds[1], a - 3 * 8 * 4);
    ck_assert_double_eq(seconds[2], b);
}
END_TEST

/* All of a step but the optimizer, so often; and sums of gradients in between. */
START_TEST(a_step_has_all_its_batches)
{
    load(SGD, &of_memory);
    const double once = seconds[1] - 3 * WEIGHTS;
    load("accumulate: 4\n" SGD, &of_memory);
    ck_assert_double_eq(seconds[1], 4 * once + (3 + 3 * 3) * WEIGHTS);
}
END_TEST

/* Read from three rows of two values: prediction, target, loss. */
START_TEST(the_last_layer_has_the_loss)
{
    load(SGD, &of_memory);
    const int dense = 3 * 4 + (4 * 2 + 2) + 3 * 2; /* forward */
    const int back_weights = 3 * 4 + 3 * 2 + OTHERS;
    const int back_data = 3 * 2 + 4 * 2 + 3 * 4;
    const int loss = 3 * 2 + 3 * 2 + 1;
    ck_assert_double_eq(seconds[2], dense + back_weights + back_data + loss + 3 * OTHERS);
}
END_TEST

START_TEST(arithmetic_has_no_optimizer)
{
    static const struct roofline of_products = {1, INFINITY};
    load("optimizer: {kind: lamb, learning_rate: 0.1}", &of_products);
    ck_assert_double_eq(seconds[1], 2 * 3 * 8 * 4); /* nobody wants the gradient of the data */
    ck_assert_double_eq(seconds[2], 3 * 3 * 4 * 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_step_time");
    TCase *tc = tcase_create("time");
    tcase_add_test(tc, an_optimizer_passes_over_what_it_keeps);
    tcase_add_test(tc, what_is_frozen_has_no_pass);
    tcase_add_test(tc, a_step_has_all_its_batches);
    tcase_add_test(tc, the_last_layer_has_the_loss);
    tcase_add_test(tc, arithmetic_has_no_optimizer);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
