/* test_plan_reference.c - eight steps of ResNet-50 against an independent implementation's run
 *
 * The run, its numbers and tolerances are described in reference/README.md of the shared folder. */
#include "tests/unit/plan_case.h"

#include <jansson.h>

enum { BATCH = 16, STEPS = 8, SIDE = 32, SCALE = 2, IMAGE = 1 + 3 * SIDE * SIDE };

static json_t *load_reference(const char *shared)
{
    char path[512];
    json_error_t error;
    snprintf(path, sizeof(path), "%s/reference/resnet50_64.json", shared);
    json_t *root = json_load_file(path, 0, &error);
    ck_assert_msg(root != NULL, "%s: %s", path, error.text);
    return root;
}

/* uni(stream, i, bound) of the README. */
static void fill_uniform(float *values, int64_t count, uint64_t stream, double bound)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = (float)((2.0 * ms_rng_unit(stream, (uint64_t)i) - 1.0) * bound);
    }
}

static double bound_of(const struct tensor *t)
{
    const int64_t *d = t->shape.dim;
    size_t length = strlen(t->name);
    if (t->shape.n_dims > 1) {
        double area = t->shape.n_dims == 4 ? (double)(d[2] * d[3]) : 1;
        return sqrt(6.0 / ((double)(d[0] + d[1]) * area));
    }
    return length > 6 && strcmp(t->name + length - 6, ".gamma") == 0 ? 0.07 : 0;
}

static void set_parameters(struct plan_case *c, const json_t *names)
{
    uint64_t k = 0;
    const char *name = NULL;
    json_t *norm = NULL;
    json_object_foreach((json_t *)(uintptr_t)names, name, norm)
    {
        int tensor = graph_find(c->graph, name);
        ck_assert_msg(tensor >= 0, "the network has no %s", name);
        const struct tensor *t = graph_tensor(c->graph, tensor);
        int64_t count = shape_count(&t->shape);
        float *values = case_floats((size_t)count);
        fill_uniform(values, count, 100 + k++, bound_of(t));
        ck_ms_ok(plan_set_logical(c->plan, tensor, MS_F32, values, err));
        free(values);
    }
    for (int i = 0; i < graph_n_states(c->graph); i++) {
        int tensor = graph_state_at(c->graph, i);
        const struct tensor *t = graph_tensor(c->graph, tensor);
        float *values = case_floats((size_t)shape_count(&t->shape));
        graph_init_values(t, 0, values);
        ck_ms_ok(plan_set_logical(c->plan, tensor, MS_F32, values, err));
        free(values);
    }
}

static void read_batch(struct plan_case *c, FILE *file)
{
    static const double mean[3] = {0.4914, 0.4822, 0.4465};
    static const double std[3] = {0.2470, 0.2435, 0.2616};
    unsigned char image[IMAGE];
    for (int n = 0; n < BATCH; n++) {
        ck_assert_uint_eq(fread(image, 1, sizeof(image), file), sizeof(image));
        c->classes[n] = image[0];
        for (int i = 0; i < 3 * SIDE * SCALE * SIDE * SCALE; i++) {
            int channel = i / (SIDE * SCALE * SIDE * SCALE);
            int row = i / (SIDE * SCALE) % (SIDE * SCALE) / SCALE;
            int column = i % (SIDE * SCALE) / SCALE;
            double pixel = image[1 + (channel * SIDE + row) * SIDE + column];
            double value = (pixel / 255.0 - mean[channel]) / std[channel];
            c->data[(int64_t)n * 3 * SIDE * SCALE * SIDE * SCALE + i] = (float)value;
        }
    }
}

static void check_gradients(struct plan_case *c, const json_t *norms)
{
    int checked = 0;
    for (int i = 0; i < graph_n_gradients(c->graph); i++) {
        const struct tensor *t = graph_tensor(c->graph, graph_gradient(c->graph, i));
        const char *name = graph_tensor(c->graph, t->of)->name;
        double want = json_number_value(json_object_get(norms, name));
        float *values = case_gradient(c, i);
        double sum = 0;
        for (int64_t k = 0; k < shape_count(&t->shape); k++) {
            sum += (double)values[k] * (double)values[k];
        }
        ck_assert_msg(fabs(sqrt(sum) - want) <= 0.01 * want, "gradient of %s: norm %.9g, want %.9g",
                      name, sqrt(sum), want);
        free(values);
        checked++;
    }
    ck_assert_int_eq(checked, 161);
}

static void check_moving(struct plan_case *c, const json_t *root, const char *key, const char *name)
{
    float values[64];
    ck_ms_ok(plan_get_logical(c->plan, graph_find(c->graph, name), MS_F32, values, err));
    const json_t *list = json_object_get(root, key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        double want = json_number_value(json_array_get(list, i));
        ck_assert_msg(fabs((double)values[i] - want) <= 1e-3 * fabs(want) + 1e-6,
                      "%s[%zu] is %.9g, want %.9g", name, i, (double)values[i], want);
    }
}

static void train(struct plan_case *c, const json_t *root, FILE *file)
{
    const json_t *losses = json_object_get(root, "loss");
    ck_assert_uint_eq(json_array_size(losses), STEPS);
    float *velocity = case_floats(c->sizes.weights);
    const struct kernel_update update = {.scale = 1, .lr = 1e-5F, .momentum = 0.9F};
    for (int step = 0; step < STEPS; step++) {
        read_batch(c, file);
        double loss = (double)case_step(c);
        double want = json_number_value(json_array_get(losses, (size_t)step));
        double tol = step == 0 ? 1e-5 : step == 1 ? 1e-3 : 2e-2;
        printf("resnet50_64 step %d: loss %.9f, reference %.9f\n", step, loss, want);
        ck_assert_msg(fabs(loss - want) <= tol, "step %d: loss %.9g, want %.9g", step, loss, want);
        if (step == 0) {
            check_gradients(c, json_object_get(root, "grad_l2_step0"));
        }
        kernel_momentum(c->buffers.weights, velocity, c->exchange + c->sizes.stats,
                        c->sizes.weights, &update);
        plan_commit_stats(c->plan, c->buffers.exchange, 1, c->buffers.moving);
    }
    free(velocity);
}

START_TEST(resnet50_follows_the_reference_run)
{
    const char *shared = test_shared();
    if (shared == NULL) {
        test_skip_note("resnet50_64.json");
        return;
    }
    char path[512];
    snprintf(path, sizeof(path), "%s/data/cifar-10-batches-bin/data_batch_1.bin", shared);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    json_t *root = load_reference(shared);
    struct case_options options = {.training = 1, .threads = 1, .recompute = PLAN_RECOMPUTE_ON};
    struct plan_case c;
    case_init(&c, case_model("resnet50", BATCH, 3, SIDE * SCALE, 10, NETWORK_LOSS_SOFTMAX_CE),
              &options);
    set_parameters(&c, json_object_get(root, "grad_l2_step0"));

    train(&c, root, file);

    check_moving(&c, root, "moving_mean_conv1", "head.bn1.moving_mean");
    check_moving(&c, root, "moving_variance_conv1", "head.bn1.moving_variance");
    case_fini(&c);
    json_decref(root);
    (void)fclose(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_reference");
    TCase *tc = tcase_create("runs");
    tcase_add_test(tc, resnet50_follows_the_reference_run);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
