/* test_init.c - first values: bounds, fans, distribution, and that nothing but (seed, name) counts
 */
#include "libworker/graph/graph.h"
#include "tests/test.h"

#include <math.h>

enum { N = 100000 };

static struct tensor tensor_of(const char *name, enum init_kind kind, double a, struct shape shape)
{
    struct tensor tensor = {.role = TENSOR_PARAM, .shape = shape, .init = {kind, a}};
    snprintf(tensor.name, sizeof(tensor.name), "%s", name);
    return tensor;
}

static struct shape vector(int64_t count)
{
    return (struct shape){1, {count}};
}

static float values[N];

static double largest(int64_t count)
{
    double max = 0;
    for (int64_t i = 0; i < count; i++) {
        max = fmax(max, fabs((double)values[i]));
    }
    return max;
}

START_TEST(constants_are_constant)
{
    struct tensor t = tensor_of("bn.moving_variance", INIT_CONSTANT, 1, vector(100));
    graph_init_values(&t, 7, values);
    for (int i = 0; i < 100; i++) {
        ck_assert_float_eq(values[i], 1.0F);
    }
}
END_TEST

START_TEST(uniform_fills_its_range_and_no_more)
{
    struct tensor t = tensor_of("bn.gamma", INIT_UNIFORM, 0.07, vector(N));

    graph_init_values(&t, 1, values);

    double sum = 0;
    for (int i = 0; i < N; i++) {
        sum += (double)values[i];
    }
    ck_assert_double_le(largest(N), (double)0.07F);
    ck_assert_double_ge(largest(N), 0.0699);
    ck_assert_double_lt(fabs(sum / N), 5 * 0.07 / sqrt(3.0 * N));
}
END_TEST

static double normal_cdf(double z)
{
    return 0.5 * erfc(-z / sqrt(2.0));
}

/* Kolmogorov and Smirnov's distance below its 0.1 % point, moments within five standard errors. */
START_TEST(normal_is_normal)
{
    static int counts[2000];
    struct tensor t = tensor_of("fc.weight", INIT_NORMAL, 0.02, vector(N));
    double sum = 0, squares = 0, distance = 0;
    memset(counts, 0, sizeof(counts));

    graph_init_values(&t, 3, values);

    for (int i = 0; i < N; i++) {
        double z = (double)values[i] / 0.02;
        sum += z;
        squares += z * z;
        counts[(int)(normal_cdf(z) * 2000)]++;
    }
    double below = 0;
    for (int i = 0; i < 2000; i++) {
        below += counts[i];
        distance = fmax(distance, fabs(below / N - (i + 1) / 2000.0));
    }
    ck_assert_double_lt(distance, 1.95 / sqrt(N));
    ck_assert_double_lt(fabs(sum / N), 5 / sqrt(N));
    ck_assert_double_lt(fabs(squares / N - 1), 5 * sqrt(2.0 / N));
    ck_assert_double_gt(largest(N) / 0.02, 3.8); /* the tails are there */
    ck_assert_double_lt(largest(N) / 0.02, 6.5);
}
END_TEST

START_TEST(values_depend_on_seed_and_name_alone)
{
    static float again[1000];
    struct tensor a = tensor_of("a", INIT_NORMAL, 1, vector(1000));
    struct tensor b = tensor_of("b", INIT_NORMAL, 1, vector(1000));

    graph_init_values(&a, 1, values);
    graph_init_values(&b, 1, again);
    ck_assert(memcmp(values, again, sizeof(again)) != 0); /* another name */
    graph_init_values(&a, 2, again);
    ck_assert(memcmp(values, again, sizeof(again)) != 0); /* another seed */
    graph_init_values(&a, 1, again);
    ck_assert(memcmp(values, again, sizeof(again)) == 0); /* whatever came in between */
}
END_TEST

/* Frozen: a job must start from the same weights on every machine and in every release.
 * The normal ones are those of Python's statistics.NormalDist().inv_cdf. */
START_TEST(first_values_are_frozen)
{
    struct tensor u = tensor_of("fc.weight", INIT_UNIFORM, 1, vector(3));
    struct tensor n = tensor_of("fc.weight", INIT_NORMAL, 1, vector(3));

    graph_init_values(&u, 1, values);
    graph_init_values(&n, 1, values + 3);

    static const float want[] = {0x1.68be36p-2F, 0x1.b19f50p-3F, 0x1.40b29cp-2F,
                                 0x1.d3e8e8p-2F, 0x1.1300b2p-2F, 0x1.9cda34p-2F};
    for (int i = 0; i < 6; i++) {
        ck_assert_msg(memcmp(&values[i], &want[i], sizeof(float)) == 0, "%d: %a", i,
                      (double)values[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("init");
    TCase *tc = tcase_create("init");
    tcase_add_test(tc, constants_are_constant);
    tcase_add_test(tc, uniform_fills_its_range_and_no_more);
    tcase_add_test(tc, normal_is_normal);
    tcase_add_test(tc, values_depend_on_seed_and_name_alone);
    tcase_add_test(tc, first_values_are_frozen);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
