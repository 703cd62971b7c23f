/* test_kernel_batch_norm.c - batch norm on every layout against the reference in double
 *
 * Each case packs logical tensors into a layout, runs the kernel, unpacks and compares; padding
 * must hold zeros before and after. */
#include "libworker/kernel/kernel.h"
#include "libworker/kernel/ref.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

static const double epsilon = 1e-5;

struct bn_case {
    int64_t n, channels, spatial, block; /* block 0: nhwc */
};

static const struct bn_case cases[] = {
    {2, 16, 49, 16},  {3, 32, 4, 16}, {1, 40, 300, 16}, {2, 3, 25, 16}, {1, 64, 1, 16},
    {2, 8, 49, 8},    {3, 12, 7, 8},  {1, 24, 600, 8},  {2, 5, 49, 1},  {3, 2, 16, 1},
    {1, 3, 15, 1},    {4, 1, 1, 1},   {1, 2, 5000, 1},  {2, 10, 49, 0}, {1, 16, 300, 0},
    {2, 300, 9, 0},   {1, 520, 5, 0}, {2, 3, 1000, 0},  {5, 17, 3, 0},  {1, 16, 777, 4},
    {3, 16, 600, 16}, {5, 70, 90, 0}, {3, 1, 7001, 1}, /* teams share slices of these */
};

static struct kernel_layout layout_of(const struct bn_case *c)
{
    int64_t block = c->block > 0 ? c->block : c->channels;
    return (struct kernel_layout){c->n, (c->channels + block - 1) / block, c->spatial, block,
                                  c->channels};
}

static int64_t packed_size(const struct kernel_layout *l)
{
    return l->n * l->n_blocks * l->spatial * l->block;
}

static int64_t packed_at(const struct kernel_layout *l, int64_t n, int64_t c, int64_t s)
{
    return ((n * l->n_blocks + c / l->block) * l->spatial + s) * l->block + c % l->block;
}

/* Everything that one case needs: logical in double, packed in float. */
enum tensor { X, DY, RESIDUAL, Y, DX, DZ, TENSORS };

struct bench {
    struct kernel_layout layout;
    struct ref_image image;
    int64_t size; /* packed */
    float *packed[TENSORS];
    double *logical[TENSORS];
    double *mean, *variance, *gamma, *beta, *dgamma, *dbeta; /* the reference's */
    float *f_mean, *f_variance, *f_gamma, *f_beta, *f_dgamma, *f_dbeta;
};

static void *zeroed(int64_t count, size_t size)
{
    void *p = calloc((size_t)count, size);
    ck_assert_ptr_nonnull(p);
    return p;
}

static void pack(const struct bench *b, enum tensor t)
{
    for (int64_t n = 0; n < b->layout.n; n++) {
        for (int64_t c = 0; c < b->layout.channels; c++) {
            for (int64_t s = 0; s < b->layout.spatial; s++) {
                int64_t at = (n * b->layout.channels + c) * b->layout.spatial + s;
                b->packed[t][packed_at(&b->layout, n, c, s)] = (float)b->logical[t][at];
            }
        }
    }
}

static void bench_init(struct bench *b, const struct bn_case *c, double offset)
{
    b->layout = layout_of(c);
    b->image = (struct ref_image){c->n, c->channels, 1, c->spatial};
    b->size = packed_size(&b->layout);
    int64_t logical = c->n * c->channels * c->spatial;
    int64_t padded = b->layout.n_blocks * b->layout.block;
    for (int t = 0; t < TENSORS; t++) {
        b->packed[t] = zeroed(b->size, sizeof(float));
        b->logical[t] = zeroed(logical, sizeof(double));
    }
    for (int t = X; t <= RESIDUAL; t++) {
        for (int64_t i = 0; i < logical; i++) {
            double value = 2 * ms_rng_unit((uint64_t)t, (uint64_t)i) - 1 + (t == X ? offset : 0);
            b->logical[t][i] = (double)(float)value;
        }
        pack(b, (enum tensor)t);
    }
    double **vectors[] = {&b->mean, &b->variance, &b->gamma, &b->beta, &b->dgamma, &b->dbeta};
    float **floats[] = {&b->f_mean, &b->f_variance, &b->f_gamma,
                        &b->f_beta, &b->f_dgamma,   &b->f_dbeta};
    for (int i = 0; i < 6; i++) {
        *vectors[i] = zeroed(c->channels, sizeof(double));
        /* gamma and beta have no padding to read, their gradients none to write */
        *floats[i] = zeroed(i < 2 ? padded : c->channels, sizeof(float));
    }
    for (int64_t i = 0; i < c->channels; i++) {
        b->f_gamma[i] = (float)(2 * ms_rng_unit(8, (uint64_t)i) - 1);
        b->f_beta[i] = (float)(ms_rng_unit(9, (uint64_t)i) - 0.5);
        b->gamma[i] = (double)b->f_gamma[i];
        b->beta[i] = (double)b->f_beta[i];
    }
}

static void bench_done(struct bench *b)
{
    for (int t = 0; t < TENSORS; t++) {
        free(b->packed[t]);
        free(b->logical[t]);
    }
    double *vectors[] = {b->mean, b->variance, b->gamma, b->beta, b->dgamma, b->dbeta};
    float *floats[] = {b->f_mean, b->f_variance, b->f_gamma, b->f_beta, b->f_dgamma, b->f_dbeta};
    for (int i = 0; i < 6; i++) {
        free(vectors[i]);
        free(floats[i]);
    }
}

/* Packed tensor against logical; padding must be zero. */
static void ck_tensor(const struct bench *b, enum tensor t, double tolerance, const char *what)
{
    const struct kernel_layout *l = &b->layout;
    for (int64_t n = 0; n < l->n; n++) {
        for (int64_t c = 0; c < l->n_blocks * l->block; c++) {
            for (int64_t s = 0; s < l->spatial; s++) {
                double got = (double)b->packed[t][packed_at(l, n, c, s)];
                double want =
                    c < l->channels ? b->logical[t][(n * l->channels + c) * l->spatial + s] : 0;
                ck_assert_msg(fabs(got - want) <=
                                  (c < l->channels ? tolerance * (1 + fabs(want)) : 0),
                              "%s (%lld, %lld, %lld) of %lld channels, block %lld: %.9g, want %.9g",
                              what, (long long)n, (long long)c, (long long)s,
                              (long long)l->channels, (long long)l->block, got, want);
            }
        }
    }
}

static void ck_vector(const struct bench *b, const float *got, const double *want, double tolerance,
                      const char *what)
{
    for (int64_t c = 0; c < b->layout.channels; c++) {
        ck_assert_msg(fabs((double)got[c] - want[c]) <= tolerance * (1 + fabs(want[c])),
                      "%s [%lld] of %lld channels, block %lld: %.9g, want %.9g", what, (long long)c,
                      (long long)b->layout.channels, (long long)b->layout.block, (double)got[c],
                      want[c]);
    }
}

/* The kernel's view of a case. */
static struct kernel_bn forward_of(const struct bench *b)
{
    return (struct kernel_bn){.layout = b->layout,
                              .x = b->packed[X],
                              .mean = b->f_mean,
                              .variance = b->f_variance,
                              .gamma = b->f_gamma,
                              .beta = b->f_beta,
                              .epsilon = epsilon,
                              .y = b->packed[Y]};
}

static void *scratch_of(const struct bench *b, int threads)
{
    void *scratch = aligned_alloc(64, (kernel_bn_scratch(&b->layout, threads) / 64 + 1) * 64);
    ck_assert_ptr_nonnull(scratch);
    return scratch;
}

static void stats(const struct bench *b, int threads)
{
    struct kernel_bn bn = forward_of(b);
    bn.scratch = scratch_of(b, threads);
    kernel_bn_stats(&bn, threads);
    free(bn.scratch);
}

static void apply(const struct bench *b, const float *residual, int relu, float *y, int threads)
{
    struct kernel_bn bn = forward_of(b);
    bn.residual = residual;
    bn.relu = relu;
    bn.y = y;
    kernel_bn_apply(&bn, threads);
}

static void reference_forward(struct bench *b)
{
    ref_batch_norm(b->logical[X], b->image, b->gamma, b->beta, epsilon, b->logical[Y], b->mean,
                   b->variance);
}

START_TEST(statistics_agree_on_every_layout)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        struct bench b;
        bench_init(&b, &cases[i], 0);
        reference_forward(&b);
        int64_t padded = b.layout.n_blocks * b.layout.block;
        for (int64_t c = 0; c < padded; c++) {
            b.f_mean[c] = b.f_variance[c] = 42;
        }

        stats(&b, 1);

        ck_vector(&b, b.f_mean, b.mean, 1e-7, "mean");
        ck_vector(&b, b.f_variance, b.variance, 2e-7, "variance");
        for (int64_t c = b.layout.channels; c < padded; c++) {
            ck_assert(b.f_mean[c] == 0.0F && b.f_variance[c] == 0.0F);
        }
        bench_done(&b);
    }
}
END_TEST

/* The one-pass formula E[x^2] - E[x]^2 would lose every digit here. */
START_TEST(a_mean_far_from_zero_does_not_spoil_the_variance)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        struct bench b;
        bench_init(&b, &cases[i], 1000);
        reference_forward(&b);

        stats(&b, 1);

        ck_vector(&b, b.f_mean, b.mean, 1e-7, "mean");
        ck_vector(&b, b.f_variance, b.variance, 1e-6, "variance");
        bench_done(&b);
    }
}
END_TEST

START_TEST(constant_input_has_no_variance)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        struct bench b;
        bench_init(&b, &cases[i], 0);
        for (int64_t k = 0; k < cases[i].n * cases[i].channels * cases[i].spatial; k++) {
            b.logical[X][k] = (double)0.1F;
        }
        pack(&b, X);

        stats(&b, 1);

        for (int64_t c = 0; c < b.layout.channels; c++) {
            ck_assert_float_eq_tol(b.f_mean[c], 0.1F, 1e-8F);
            ck_assert(b.f_variance[c] >= 0.0F && b.f_variance[c] < 1e-14F);
        }
        bench_done(&b);
    }
}
END_TEST

static void floats_of_reference(struct bench *b)
{
    for (int64_t c = 0; c < b->layout.channels; c++) {
        b->f_mean[c] = (float)b->mean[c];
        b->f_variance[c] = (float)b->variance[c];
    }
}

START_TEST(forward_agrees_with_and_without_residual_and_relu)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases) * 4; i++) {
        struct bench b;
        int relu = (int)(i & 1);
        int residual = (int)(i >> 1 & 1);
        const struct bn_case *c = &cases[i / 4];
        bench_init(&b, c, 0.5);
        reference_forward(&b);
        floats_of_reference(&b);
        for (int64_t k = 0; k < c->n * c->channels * c->spatial; k++) {
            b.logical[Y][k] += residual ? b.logical[RESIDUAL][k] : 0;
            b.logical[Y][k] = relu ? fmax(b.logical[Y][k], 0) : b.logical[Y][k];
        }

        apply(&b, residual ? b.packed[RESIDUAL] : NULL, relu, b.packed[Y], 1);
        /* variances near zero (one element a channel) stretch x's rounding */
        double tolerance = c->n * c->spatial < 8 ? 1e-4 : 5e-6;
        ck_tensor(&b, Y, tolerance, "y");

        float *in_place = b.packed[residual ? RESIDUAL : X];
        apply(&b, residual ? b.packed[RESIDUAL] : NULL, relu, in_place, 1);
        ck_assert_mem_eq(in_place, b.packed[Y], (size_t)b.size * sizeof(float));
        bench_done(&b);
    }
}
END_TEST

/* dz as the reference sees it: dy masked by the float forward's sign, which decides at zero. */
static void reference_backward(struct bench *b, int relu)
{
    const struct kernel_layout *l = &b->layout;
    for (int64_t n = 0; n < l->n; n++) {
        for (int64_t c = 0; c < l->channels; c++) {
            for (int64_t s = 0; s < l->spatial; s++) {
                int64_t at = (n * l->channels + c) * l->spatial + s;
                int on = relu == 0 || b->packed[Y][packed_at(l, n, c, s)] > 0.0F;
                b->logical[DZ][at] = on ? b->logical[DY][at] : 0;
            }
        }
    }
    ref_batch_norm_bwd(b->logical[X], b->image, b->logical[DZ], b->gamma, b->mean, b->variance,
                       epsilon, b->logical[DX], b->dgamma, b->dbeta);
}

static void backward(const struct bench *b, int relu, const float *dy, float *dx, float *dz,
                     int threads)
{
    const struct kernel_bn_back bn = {.layout = b->layout,
                                      .x = b->packed[X],
                                      .dy = dy,
                                      .y = relu == 2 ? b->packed[Y] : NULL,
                                      .mean = b->f_mean,
                                      .variance = b->f_variance,
                                      .gamma = b->f_gamma,
                                      .beta = b->f_beta,
                                      .epsilon = epsilon,
                                      .mask = (enum kernel_mask)relu,
                                      .dx = dx,
                                      .dz = dz,
                                      .dgamma = b->f_dgamma,
                                      .dbeta = b->f_dbeta,
                                      .scratch = scratch_of(b, threads)};
    kernel_bn_backward(&bn, threads);
    free(bn.scratch);
}

static void bench_backward(struct bench *b, const struct bn_case *c, int relu)
{
    bench_init(b, c, 0.25);
    reference_forward(b);
    floats_of_reference(b);
    apply(b, relu == 2 ? b->packed[RESIDUAL] : NULL, relu > 0, b->packed[Y], 1);
    reference_backward(b, relu);
}

START_TEST(backward_agrees_for_every_mask)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases) * 3; i++) {
        struct bench b;
        int relu = (int)(i % 3);
        const struct bn_case *c = &cases[i / 3];
        if (c->n * c->spatial < 8) {
            continue; /* with hardly any variance the gradient is rounding times a thousand */
        }
        bench_backward(&b, c, relu);

        backward(&b, relu, b.packed[DY], b.packed[DX], b.packed[DZ], 1);

        ck_tensor(&b, DX, 1e-5, "dx");
        ck_tensor(&b, DZ, 0, "dz");
        double rounding = 2e-8 * (double)(c->n * c->spatial); /* of a sum of that many */
        ck_vector(&b, b.f_dgamma, b.dgamma, 1e-6 + 2 * rounding, "dgamma");
        ck_vector(&b, b.f_dbeta, b.dbeta, 1e-6 + rounding, "dbeta");
        bench_done(&b);
    }
}
END_TEST

START_TEST(backward_in_place_and_without_dz_gives_the_same_bits)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases) * 3; i++) {
        struct bench b;
        int relu = (int)(i % 3);
        bench_backward(&b, &cases[i / 3], relu);
        size_t bytes = (size_t)b.size * sizeof(float);
        float *dx = zeroed(b.size, sizeof(float));
        float *dz = zeroed(b.size, sizeof(float));

        backward(&b, relu, b.packed[DY], dx, dz, 1);
        backward(&b, relu, b.packed[DY], b.packed[DX], NULL, 1);
        ck_assert_mem_eq(b.packed[DX], dx, bytes);
        memcpy(b.packed[DX], b.packed[DY], bytes);
        backward(&b, relu, b.packed[DX], b.packed[DX], NULL, 1); /* dx over dy */
        ck_assert_mem_eq(b.packed[DX], dx, bytes);
        memcpy(b.packed[DZ], b.packed[DY], bytes);
        backward(&b, relu, b.packed[DZ], b.packed[DX], b.packed[DZ], 1); /* dz over dy */
        ck_assert_mem_eq(b.packed[DX], dx, bytes);
        ck_assert_mem_eq(b.packed[DZ], dz, bytes);
        memcpy(b.packed[DX], b.packed[DY], bytes);
        backward(&b, relu, b.packed[DX], b.packed[DX], b.packed[DZ], 1); /* dx over dy, and dz */
        ck_assert_mem_eq(b.packed[DX], dx, bytes);
        ck_assert_mem_eq(b.packed[DZ], dz, bytes);

        free(dx);
        free(dz);
        bench_done(&b);
    }
}
END_TEST

START_TEST(the_number_of_threads_changes_no_bit)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        struct bench b, c;
        bench_backward(&b, &cases[i], 1);
        bench_backward(&c, &cases[i], 1);
        size_t bytes = (size_t)b.size * sizeof(float);
        size_t channels = (size_t)b.layout.channels * sizeof(float);

        stats(&b, 1);
        stats(&c, 3);
        apply(&c, NULL, 1, c.packed[Y], 3);
        apply(&b, NULL, 1, b.packed[Y], 1);
        backward(&b, 1, b.packed[DY], b.packed[DX], NULL, 1);
        backward(&c, 1, c.packed[DY], c.packed[DX], NULL, 3);

        ck_assert_mem_eq(b.f_mean, c.f_mean, channels);
        ck_assert_mem_eq(b.f_variance, c.f_variance, channels);
        ck_assert_mem_eq(b.packed[Y], c.packed[Y], bytes);
        ck_assert_mem_eq(b.packed[DX], c.packed[DX], bytes);
        ck_assert_mem_eq(b.f_dgamma, c.f_dgamma, channels);
        bench_done(&b);
        bench_done(&c);
    }
}
END_TEST

START_TEST(a_nan_stays_visible)
{
    struct bench b;
    bench_init(&b, &cases[0], 0);
    b.packed[X][5] = NAN;

    stats(&b, 1);
    apply(&b, NULL, 1, b.packed[Y], 1);

    ck_assert(isnan(b.f_mean[5]) && isnan(b.f_variance[5]) && isnan(b.packed[Y][5]));
    ck_assert(!isnan(b.packed[Y][4]));
    bench_done(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_batch_norm");
    TCase *tc = tcase_create("batch_norm");
    tcase_add_test(tc, statistics_agree_on_every_layout);
    tcase_add_test(tc, a_mean_far_from_zero_does_not_spoil_the_variance);
    tcase_add_test(tc, constant_input_has_no_variance);
    tcase_add_test(tc, forward_agrees_with_and_without_residual_and_relu);
    tcase_add_test(tc, backward_agrees_for_every_mask);
    tcase_add_test(tc, backward_in_place_and_without_dz_gives_the_same_bits);
    tcase_add_test(tc, the_number_of_threads_changes_no_bit);
    tcase_add_test(tc, a_nan_stays_visible);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
