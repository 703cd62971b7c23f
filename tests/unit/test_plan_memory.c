/* test_plan_memory.c - the arena: how large, who lies where, and that nothing stale is ever read */
#include "libworker/plan/internal.h"
#include "tests/unit/plan_case.h"

static struct plan *create(struct graph *graph, enum plan_recompute recompute, uint64_t memory_max)
{
    struct case_options options = {
        .training = 1, .threads = 1, .recompute = recompute, .memory_max = memory_max};
    struct plan *plan = NULL;
    ck_ms_ok(case_create(graph, &options, &plan, err));
    return plan;
}

static size_t arena_of(struct graph *graph, enum plan_recompute recompute, uint64_t memory_max)
{
    struct plan *plan = create(graph, recompute, memory_max);
    struct plan_sizes sizes;
    plan_get_sizes(plan, &sizes);
    plan_destroy(plan);
    return sizes.arena_bytes;
}

/* 2.7 GB a worker, less 3 x 94 MB of flat buffers, two batches of 19 MB, and the libraries. */
#define ARENA_MAX 2250000000U

START_TEST(resnet50_at_224_with_batch_32_fits_eight_ranks_into_24_gb)
{
    struct graph *graph = case_model("resnet50", 32, 3, 224, 10, NETWORK_LOSS_SOFTMAX_CE);
    ck_ms_ok(graph_differentiate(graph, err));

    size_t kept = arena_of(graph, PLAN_RECOMPUTE_OFF, 0);
    size_t made_again = arena_of(graph, PLAN_RECOMPUTE_ON, 0);

    printf("arena of resnet50, batch 32, 224x224: %.3f GB kept, %.3f GB made again\n",
           (double)kept * 1e-9, (double)made_again * 1e-9);
    ck_assert_uint_le(made_again, ARENA_MAX);
    ck_assert_uint_gt(kept, ARENA_MAX);
    /* AUTO makes again only where the plan does not fit otherwise */
    ck_assert_uint_eq(arena_of(graph, PLAN_RECOMPUTE_AUTO, ARENA_MAX), made_again);
    ck_assert_uint_eq(arena_of(graph, PLAN_RECOMPUTE_AUTO, kept), kept);
    ck_assert_uint_eq(arena_of(graph, PLAN_RECOMPUTE_AUTO, 0), kept);
    graph_destroy(graph);
}
END_TEST

static int is_of_batch_norm(const struct step *step)
{
    return step->kind == STEP_BN_BACKWARD || step->kind == STEP_BN_TRAIN ||
           step->kind == STEP_BN_APPLY;
}

/* The most that the library wants for a step of its own: with eight threads a convolution's
 * gradient may take a copy a thread (of 264 MB with AVX2). */
static size_t largest_scratch(const struct plan *plan)
{
    size_t most = 0;
    for (int i = 0; i < plan->n_buffers; i++) {
        const struct buffer *buffer = &plan->buffers[i];
        const int is_scratch = buffer->dtype == MS_U8 && buffer->first == buffer->last;
        if (is_scratch && !is_of_batch_norm(&plan->steps[buffer->first])) {
            most = buffer_bytes(buffer) > most ? buffer_bytes(buffer) : most;
        }
    }
    return most;
}

/* Whoever keeps partial results keeps them for one step, and a batch norm that is made again has
 * its statistics: eight threads cost next to nothing. */
START_TEST(scratch_of_batch_norm_lives_for_its_step)
{
    struct graph *graph = case_model("resnet50", 8, 3, 64, 10, NETWORK_LOSS_SOFTMAX_CE);
    ck_ms_ok(graph_differentiate(graph, err));
    size_t one = arena_of(graph, PLAN_RECOMPUTE_ON, 0);
    struct case_options options = {.training = 1, .threads = 8, .recompute = PLAN_RECOMPUTE_ON};
    struct plan *plan = NULL;
    ck_ms_ok(case_create(graph, &options, &plan, err));
    int n = 0;

    for (int s = 0; s < plan->n_steps; s++) {
        const struct step *step = &plan->steps[s];
        int is_back = step->kind == STEP_BN_BACKWARD;
        if (is_of_batch_norm(step)) {
            struct operand scratch = step->operands[is_back ? BNB_SCRATCH : BN_SCRATCH];
            const struct buffer *buffer = &plan->buffers[scratch.index];
            ck_assert(scratch.place == PLACE_NONE || step->kind != STEP_BN_APPLY);
            ck_assert(scratch.place == PLACE_NONE || (buffer->first == s && buffer->last == s));
            n += scratch.place == PLACE_ARENA;
        }
    }

    ck_assert_int_gt(n, 0);
    ck_assert_uint_le(plan->arena_bytes, one + one / 50 + largest_scratch(plan));
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

static const struct network {
    const char *name;
    int64_t batch, channels, side;
} networks[] = {
    {"resnet50", 2, 3, 32}, {"cifar_small", 4, 3, 32}, {"lenet5", 4, 1, 32}, {"mnist", 4, 1, 28}};
enum { N_NETWORKS = sizeof(networks) / sizeof(networks[0]) };

static struct graph *network(int i)
{
    return case_model(networks[i].name, networks[i].batch, networks[i].channels, networks[i].side,
                      10, NETWORK_LOSS_SOFTMAX_CE);
}

/* Two results may share bytes only where a kernel may write over its input. */
static void check_pair(const struct plan *plan, int a, int b)
{
    const struct buffer *x = &plan->buffers[a];
    const struct buffer *y = &plan->buffers[b];
    int meet = x->first <= y->last && y->first <= x->last;
    int apart =
        x->offset + buffer_bytes(x) <= y->offset || y->offset + buffer_bytes(y) <= x->offset;
    ck_assert_msg(!meet || apart, "buffers %d and %d lie at %zu and %zu in steps %d-%d, %d-%d", a,
                  b, x->offset, y->offset, x->first, x->last, y->first, y->last);
}

START_TEST(buffers_that_live_at_one_time_never_overlap)
{
    struct graph *graph = network(_i);
    ck_ms_ok(graph_differentiate(graph, err));
    for (int mode = PLAN_RECOMPUTE_OFF; mode <= PLAN_RECOMPUTE_ON; mode++) {
        struct plan *plan = create(graph, (enum plan_recompute)mode, 0);
        for (int a = 0; a < plan->n_buffers; a++) {
            ck_assert_uint_eq(plan->buffers[a].offset % PLAN_ALIGN, 0);
            for (int b = 0; b < a; b++) {
                if (plan->buffers[a].root == a && plan->buffers[b].root == b) {
                    check_pair(plan, a, b);
                }
            }
        }
        plan_destroy(plan);
    }
    graph_destroy(graph);
}
END_TEST

START_TEST(a_step_reads_nothing_that_an_earlier_one_left)
{
    struct case_options options = {.training = 1, .threads = 1, .recompute = PLAN_RECOMPUTE_ON};
    struct plan_case c;
    case_init(&c, network(_i), &options);
    case_init_values(&c, 3);
    size_t bytes = c.sizes.exchange * sizeof(float);
    float *first = case_floats(c.sizes.exchange);
    float first_loss = case_step(&c);
    memcpy(first, c.buffers.exchange, bytes);

    case_poison(&c);
    float second_loss = case_step(&c);

    ck_assert(first_loss == second_loss);
    ck_assert_int_eq(memcmp(first, c.buffers.exchange, bytes), 0);
    free(first);
    case_fini(&c);
}
END_TEST

START_TEST(making_again_changes_no_bit)
{
    struct plan_case c[2];
    float loss[2];
    for (int i = 0; i < 2; i++) {
        struct case_options options = {.training = 1, .threads = 1};
        options.recompute = i == 0 ? PLAN_RECOMPUTE_OFF : PLAN_RECOMPUTE_ON;
        case_init(&c[i], network(_i), &options);
        case_init_values(&c[i], 3);
        loss[i] = case_step(&c[i]);
    }
    if (strcmp(networks[_i].name, "resnet50") == 0) {
        /* two a block, behind conv1 and conv2, and every second block's result */
        ck_assert_int_eq(c[1].plan->n_copies, 39);
        ck_assert_uint_lt(c[1].sizes.arena_bytes, c[0].sizes.arena_bytes);
    }
    ck_assert(loss[0] == loss[1]);
    ck_assert_uint_eq(c[0].sizes.exchange, c[1].sizes.exchange);
    ck_assert_int_eq(
        memcmp(c[0].buffers.exchange, c[1].buffers.exchange, c[0].sizes.exchange * sizeof(float)),
        0);
    case_fini(&c[0]);
    case_fini(&c[1]);
}
END_TEST

START_TEST(the_same_threads_give_the_same_bits_and_others_the_same_result)
{
    struct plan_case c[3];
    float loss[3];
    static const int threads[3] = {2, 2, 1};
    for (int i = 0; i < 3; i++) {
        struct case_options options = {.training = 1, .threads = threads[i]};
        case_init(&c[i], network(_i), &options);
        case_init_values(&c[i], 3);
        loss[i] = case_step(&c[i]);
    }
    size_t count = c[0].sizes.exchange;
    ck_assert(loss[0] == loss[1]);
    ck_assert_int_eq(memcmp(c[0].buffers.exchange, c[1].buffers.exchange, count * sizeof(float)),
                     0);
    /* oneDNN splits sums by threads: other bits, hence threads a rank are part of the plan */
    ck_assert_float_eq_tol(loss[0], loss[2], 1e-3F);
    for (int i = 0; i < graph_n_gradients(c[0].graph); i++) { /* layouts may differ too */
        const struct tensor *t = graph_tensor(c[0].graph, graph_gradient(c[0].graph, i));
        double difference = 0;
        double norm = 1e-12;
        float *two = case_gradient(&c[0], i);
        float *one = case_gradient(&c[2], i);
        for (int64_t k = 0; k < shape_count(&t->shape); k++) {
            double d = (double)two[k] - (double)one[k];
            difference += d * d;
            norm += (double)one[k] * (double)one[k];
        }
        ck_assert_msg(sqrt(difference / norm) <= 0.1, "%s: %g off", t->name,
                      sqrt(difference / norm));
        free(two);
        free(one);
    }
    for (int i = 0; i < 3; i++) {
        case_fini(&c[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_memory");
    TCase *tc = tcase_create("arena");
    tcase_add_test(tc, resnet50_at_224_with_batch_32_fits_eight_ranks_into_24_gb);
    tcase_add_test(tc, scratch_of_batch_norm_lives_for_its_step);
    tcase_add_loop_test(tc, buffers_that_live_at_one_time_never_overlap, 0, N_NETWORKS);
    tcase_add_loop_test(tc, a_step_reads_nothing_that_an_earlier_one_left, 0, N_NETWORKS);
    tcase_add_loop_test(tc, making_again_changes_no_bit, 0, N_NETWORKS);
    tcase_add_loop_test(tc, the_same_threads_give_the_same_bits_and_others_the_same_result, 0,
                        N_NETWORKS);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
