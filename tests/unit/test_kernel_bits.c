/* test_kernel_bits.c - every build and instruction set gives the same bits
 *
 * Replicas on different machines must stay bit-identical, and a recovered run must continue as it
 * began. The digests below were taken from the AVX-512 clones; the same test passes in sanitizer
 * and clang builds, which have only the baseline loops. A change here is a change of every user's
 * weights: say so in the CHANGELOG. */
#include "libworker/kernel/exact_lanes.h"
#include "libworker/kernel/kernel.h"
#include "proto/exact.h"
#include "proto/rng.h"
#include "tests/test.h"
#include "tests/unit/batch_norm_serial.h"

enum { COUNT = 3 * 48 * 50, CHANNELS = 48 };

static float a[COUNT], b[COUNT], c[COUNT], d[COUNT];
static float mean[CHANNELS], variance[CHANNELS], gamma_[CHANNELS], beta[CHANNELS];

static void setup(void)
{
    float *const all[] = {a, b, c, d, mean, variance, gamma_, beta};
    for (size_t t = 0; t < MS_ARRAY_SIZE(all); t++) {
        for (uint64_t i = 0; i < (t < 4 ? COUNT : CHANNELS); i++) {
            all[t][i] = (float)(2 * ms_rng_unit(t, i) - 0.9);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        d[i] = d[i] < 0 ? -d[i] : d[i]; /* Adam's second moment */
    }
}

static uint64_t digest(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3U;
    }
    return hash;
}

static void ck_digest(uint64_t got, uint64_t want)
{
    ck_assert_msg(got == want, "digest 0x%016llx, want 0x%016llx", (unsigned long long)got,
                  (unsigned long long)want);
}

/* Statistics, forward and backward of one layout; 3 * 48 * 50 elements, whatever the blocks. */
static uint64_t batch_norm(int64_t block)
{
    const struct kernel_layout layout = {3, CHANNELS / block, 50, block, CHANNELS};
    float dgamma[CHANNELS], dbeta[CHANNELS];
    struct kernel_bn forward = {.layout = layout,
                                .x = a,
                                .mean = mean,
                                .variance = variance,
                                .gamma = gamma_,
                                .beta = beta,
                                .epsilon = 1e-5,
                                .y = c};
    struct kernel_bn_back back = {.layout = layout,
                                  .x = a,
                                  .dy = b,
                                  .y = c,
                                  .mean = mean,
                                  .variance = variance,
                                  .gamma = gamma_,
                                  .beta = beta,
                                  .epsilon = 1e-5,
                                  .dx = d,
                                  .dgamma = dgamma,
                                  .dbeta = dbeta};
    uint64_t hash = 0;
    setup();
    kernel_bn_stats(&forward, 1);
    hash = digest(hash, mean, sizeof(mean));
    hash = digest(hash, variance, sizeof(variance));
    for (int mask = KERNEL_MASK_NONE; mask <= KERNEL_MASK_Y; mask++) {
        forward.residual = mask == KERNEL_MASK_Y ? b : NULL;
        forward.relu = mask != KERNEL_MASK_NONE;
        kernel_bn_apply(&forward, 1);
        hash = digest(hash, c, sizeof(c));
        back.mask = (enum kernel_mask)mask;
        back.dz = mask == KERNEL_MASK_Y ? c : NULL;
        kernel_bn_backward(&back, 1);
        hash = digest(hash, d, sizeof(d));
        hash = digest(hash, dgamma, sizeof(dgamma));
        hash = digest(hash, dbeta, sizeof(dbeta));
    }
    return hash;
}

START_TEST(batch_norm_has_the_same_bits_everywhere)
{
    ck_digest(batch_norm(16), 0xa33bdf49b2b5d50c);
    ck_digest(batch_norm(8), 0x89a11599be2efcde);
    ck_digest(batch_norm(1), 0x36ec589b73a1ac05);
    ck_digest(batch_norm(48), 0xc4f6475bbb45598d);
    ck_digest(batch_norm(4), 0xb409f0bc08e32cf5);
}
END_TEST

/* Layer and group norm: one digest for all layouts. */
static uint64_t sample_norm(int64_t block, int is_per_value)
{
    enum { SPATIAL = 50, SAMPLES = 3 };
    static float affine[4][CHANNELS * SPATIAL];
    static _Alignas(64) char scratch[1 << 18];
    float stats[SAMPLES * 6 * 2];
    const struct kernel_layout layout = {SAMPLES, CHANNELS / block, SPATIAL, block, CHANNELS};
    const struct kernel_norm norm = {.layout = layout,
                                     .groups = is_per_value ? 1 : 6,
                                     .is_per_value = is_per_value,
                                     .epsilon = 1e-5,
                                     .x = a,
                                     .gamma = affine[0],
                                     .beta = affine[1],
                                     .stats = stats,
                                     .y = c,
                                     .dy = b,
                                     .dx = d,
                                     .dgamma = affine[2],
                                     .dbeta = affine[3],
                                     .scratch = scratch};
    uint64_t hash = 0;
    for (int64_t i = 0; i < COUNT; i++) { /* the logical value at its place */
        const int64_t s = i % SPATIAL, channel = i / SPATIAL % CHANNELS;
        const int64_t n = i / SPATIAL / CHANNELS;
        const int64_t at =
            ((n * layout.n_blocks + channel / block) * SPATIAL + s) * block + channel % block;
        a[at] = (float)(2 * ms_rng_unit(21, (uint64_t)i) - 0.9);
        b[at] = (float)(2 * ms_rng_unit(22, (uint64_t)i) - 0.9);
    }
    for (uint64_t i = 0; i < CHANNELS * SPATIAL; i++) {
        affine[0][i] = (float)(2 * ms_rng_unit(23, i) - 0.9);
        affine[1][i] = (float)(2 * ms_rng_unit(24, i) - 0.9);
        affine[2][i] = affine[3][i] = 0;
    }
    ck_assert_uint_le(kernel_norm_scratch(&norm, 0, 1), sizeof(scratch));
    ck_assert_uint_le(kernel_norm_scratch(&norm, 1, 1), sizeof(scratch));
    kernel_norm_forward(&norm, 1);
    kernel_norm_backward(&norm, 1);
    for (int64_t i = 0; i < COUNT; i++) {
        const int64_t s = i % SPATIAL, channel = i / SPATIAL % CHANNELS;
        const int64_t n = i / SPATIAL / CHANNELS;
        const int64_t at =
            ((n * layout.n_blocks + channel / block) * SPATIAL + s) * block + channel % block;
        hash = digest(hash, &c[at], sizeof(c[at]));
        hash = digest(hash, &d[at], sizeof(d[at]));
    }
    hash = digest(hash, affine[2], sizeof(affine[2]));
    return digest(hash, affine[3], sizeof(affine[3]));
}

START_TEST(norms_of_samples_have_the_same_bits_everywhere)
{
    static const int64_t blocks[] = {1, 4, 8, 16, 48};
    for (size_t i = 0; i < MS_ARRAY_SIZE(blocks); i++) {
        ck_digest(sample_norm(blocks[i], 0), 0xa465deddff1d08c3);
        ck_digest(sample_norm(blocks[i], 1), 0x3f7bbd1972fccd6a);
    }
}
END_TEST

/* ---- batch norm on teams, against the serial algorithm ------------------------------------------
 */

enum { TEAM_MAX = 8 };

struct tensors { /* of one layout; the results of the kernel and of the serial algorithm */
    struct kernel_layout layout;
    size_t count, lanes;
    float *x, *dy, *y, *gamma, *beta;
    float *want, *got; /* mean, variance, dgamma, dbeta, then dx, dz */
    size_t results;
    void *scratch;
};

static float *floats(size_t n, uint64_t seed)
{
    float *p = calloc(n, sizeof(*p));
    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < n; i++) {
        p[i] = (float)(2 * ms_rng_unit(seed, i) - 0.9);
    }
    return p;
}

static int is_padding(const struct kernel_layout *l, size_t at)
{
    int64_t plane = (int64_t)at / (l->spatial * l->block);
    return plane % l->n_blocks * l->block + (int64_t)at % l->block >= l->channels;
}

static void tensors_init(struct tensors *t, const struct kernel_layout *layout)
{
    t->layout = *layout;
    t->lanes = (size_t)(layout->n_blocks * layout->block);
    t->count = t->lanes * (size_t)(layout->n * layout->spatial);
    t->x = floats(t->count, 1);
    t->dy = floats(t->count, 2);
    t->y = floats(t->count, 3);
    t->gamma = floats((size_t)layout->channels, 4);
    t->beta = floats((size_t)layout->channels, 5);
    t->results = 4 * t->lanes + 2 * t->count;
    t->want = floats(t->results, 6);
    t->got = floats(t->results, 7);
    t->scratch = NULL;
    for (size_t i = 0; i < t->count; i++) {
        if (is_padding(layout, i)) {
            t->x[i] = t->dy[i] = t->y[i] = 0.0F;
        }
    }
    memset(t->want, 0, t->results * sizeof(float));
}

static void tensors_done(struct tensors *t)
{
    float *const all[] = {t->x, t->dy, t->y, t->gamma, t->beta, t->want, t->got};
    for (size_t i = 0; i < MS_ARRAY_SIZE(all); i++) {
        free(all[i]);
    }
    free(t->scratch);
}

static struct kernel_bn_back back_of(const struct tensors *t, float *results, enum kernel_mask mask)
{
    return (struct kernel_bn_back){.layout = t->layout,
                                   .x = t->x,
                                   .dy = t->dy,
                                   .y = t->y,
                                   .mean = results,
                                   .variance = results + t->lanes,
                                   .gamma = t->gamma,
                                   .beta = t->beta,
                                   .epsilon = 1e-5,
                                   .mask = mask,
                                   .dx = results + 4 * t->lanes,
                                   .dz = results + 4 * t->lanes + t->count,
                                   .dgamma = results + 2 * t->lanes,
                                   .dbeta = results + 3 * t->lanes,
                                   .scratch = t->scratch};
}

static void run_serial(struct tensors *t, enum kernel_mask mask)
{
    const struct kernel_bn_back back = back_of(t, t->want, mask);
    for (int64_t i = 0; i < t->layout.channels; i++) {
        serial_stats(&t->layout, t->x, i, &t->want[i], &t->want[t->lanes + (size_t)i]);
        serial_backward(&back, i);
    }
}

/* Scratch of exactly the promised size, in front of memory that must not be touched. */
static void run_team(struct tensors *t, enum kernel_mask mask, int threads)
{
    size_t bytes = kernel_bn_scratch(&t->layout, threads);
    size_t rounded = (bytes + 63) / 64 * 64;
    free(t->scratch);
    t->scratch = aligned_alloc(64, rounded + 64);
    ck_assert_ptr_nonnull(t->scratch);
    unsigned char *end = (unsigned char *)t->scratch + bytes;
    memset(t->scratch, 0xff, rounded + 64);
    const struct kernel_bn_back back = back_of(t, t->got, mask);
    const struct kernel_bn stats = {.layout = t->layout,
                                    .x = t->x,
                                    .mean = t->got,
                                    .variance = t->got + t->lanes,
                                    .scratch = t->scratch};
    memset(t->got, 0, t->results * sizeof(float));

    kernel_bn_stats(&stats, threads);
    kernel_bn_backward(&back, threads);

    for (size_t i = 0; i < 64; i++) {
        ck_assert_msg(end[i] == 0xff, "byte %zu behind the scratch is written", i);
    }
}

/* Padding of dx and dz may be a zero of either sign. */
static int same_bits(const struct tensors *t, size_t i)
{
    if (i >= 4 * t->lanes && is_padding(&t->layout, (i - 4 * t->lanes) % t->count)) {
        return t->got[i] == 0.0F;
    }
    return memcmp(&t->got[i], &t->want[i], sizeof(float)) == 0;
}

static void ck_team(const struct kernel_layout *layout, enum kernel_mask mask, int from, int to)
{
    struct tensors t;
    tensors_init(&t, layout);
    run_serial(&t, mask);
    for (int threads = from; threads <= to; threads++) {
        run_team(&t, mask, threads);
        size_t i = 0;
        while (i < t.results && same_bits(&t, i)) {
            i++;
        }
        ck_assert_msg(i == t.results,
                      "result %zu (lanes %zu) of (%lld, %lld, %lld), block %lld, %d threads, "
                      "mask %d: %.9g, want %.9g",
                      i, t.lanes, (long long)layout->n, (long long)layout->channels,
                      (long long)layout->spatial, (long long)layout->block, threads, (int)mask,
                      (double)t.got[i % t.results], (double)t.want[i % t.results]);
    }
    tensors_done(&t);
}

static struct kernel_layout layout_of(int64_t n, int64_t channels, int64_t spatial, int64_t block)
{
    block = block == 0 ? channels : block;
    return (struct kernel_layout){n, (channels + block - 1) / block, spatial, block, channels};
}

static const int64_t blocks[] = {1, 0, 8, 16}; /* 0: nhwc */

/* Every channel count, odd image counts; the team and the plane change from count to count. */
START_TEST(batch_norm_has_the_bits_of_the_serial_algorithm)
{
    static const int64_t planes[] = {49, 1, 16, 200, 4, 289, 15};
    for (int64_t channels = 1; channels <= 70; channels++) {
        int64_t plane = planes[channels % 7];
        int64_t n = plane > 50 ? 3 : channels % 3 == 0 ? 7 : 5;
        struct kernel_layout layout = layout_of(n, channels, plane, blocks[_i]);
        int threads = 1 + (int)(channels % TEAM_MAX);
        ck_team(&layout, (enum kernel_mask)(channels % 3), threads, threads);
    }
}
END_TEST

/* Slices so large that a team shares them: planes of many chunks and of less than one, tensors
 * whose partial results do not fit into the scratch at once, a last slice narrower than the rest.
 */
static const struct kernel_layout shared_layouts[] = {
    {3, 1, 6001, 1, 1},    {7, 3, 2500, 1, 3},    {1, 1, 70000, 1, 1},  {301, 3, 60, 1, 3},
    {3, 4, 900, 16, 50},   {13, 7, 196, 8, 52},   {1501, 1, 1, 60, 60}, {5, 1, 1000, 24, 24},
    {9, 1, 200, 300, 300}, {257, 1, 4, 520, 520}, {513, 3, 4, 16, 40},  {1, 1, 5000, 16, 3},
};

START_TEST(teams_that_share_a_slice_have_the_bits_of_the_serial_algorithm)
{
    const struct kernel_layout *layout = &shared_layouts[_i];
    ck_assert_uint_gt(kernel_bn_scratch(layout, TEAM_MAX), 0);
    ck_team(layout, (enum kernel_mask)(_i % 3), 1, TEAM_MAX);
}
END_TEST

START_TEST(scratch_is_a_tenth_of_the_tensor_or_little)
{
    for (uint64_t i = 0; i < 20000; i++) {
        int64_t channels = 1 + (int64_t)ms_rng_below(1, i, 1100);
        struct kernel_layout l =
            layout_of(1 + (int64_t)ms_rng_below(2, i, 300), channels,
                      1 + (int64_t)ms_rng_below(3, i, i % 2 ? 60 : 4000), blocks[i % 4]);
        int threads = 1 + (int)ms_rng_below(4, i, 64);
        size_t lanes = (size_t)(l.n_blocks * l.block);
        size_t tensor = lanes * (size_t)(l.n * l.spatial) * sizeof(float);
        size_t most = tensor / 10 > 65536 ? tensor / 10 : 65536;
        size_t states = lanes * (l.block == 1 ? 512 : 64);
        size_t bytes = kernel_bn_scratch(&l, threads);
        ck_assert_msg(bytes <= most + states, "%zu bytes for %zu of (%lld, %lld, %lld), block %lld",
                      bytes, tensor, (long long)l.n, (long long)channels, (long long)l.spatial,
                      (long long)l.block);
        ck_assert_uint_eq(kernel_bn_scratch(&l, 1), 0);
        ck_assert_uint_le(kernel_bn_scratch(&l, threads), kernel_bn_scratch(&l, threads + 1));
    }
}
END_TEST

START_TEST(sums_have_the_same_bits_everywhere)
{
    const float *const srcs[] = {a, b, c, d, a, c, b, d, c};
    static float sum[COUNT];
    uint64_t hash = 0;
    for (int n = 1; n <= 9; n++) {
        kernel_sum_tree(sum, srcs, n, COUNT);
        hash = digest(hash, sum, sizeof(sum));
    }
    ck_digest(hash, 0x7fe33df261f8d9f3);
}
END_TEST

START_TEST(optimizers_have_the_same_bits_everywhere)
{
    uint64_t hash = 0;
    const struct kernel_update update = {.scale = 0.125F, .lr = 0.01F, .momentum = 0.9F};
    const struct kernel_update adam = {
        .scale = 0.125F, .lr = 0.001F, .beta1 = 0.9F, .beta2 = 0.999F, .epsilon = 1e-8F};
    kernel_sgd(a, b, COUNT, &update);
    hash = digest(hash, a, sizeof(a));
    kernel_momentum(a, c, b, COUNT, &update);
    hash = digest(digest(hash, a, sizeof(a)), c, sizeof(c));
    kernel_adam(a, c, d, b, COUNT, &adam);
    hash = digest(digest(digest(hash, a, sizeof(a)), c, sizeof(c)), d, sizeof(d));
    ck_digest(hash, 0x92cb5e7315dd48b0);
}
END_TEST

START_TEST(optimizers_with_decay_have_the_same_bits_everywhere)
{
    uint64_t hash = 0;
    const struct kernel_update nesterov = {
        .scale = 0.125F, .lr = 0.01F, .momentum = 0.9F, .nesterov = 1, .decay = 0.05F};
    const struct kernel_update adamw = {.scale = 0.125F,
                                        .lr = 0.001F,
                                        .decay = 0.02F,
                                        .beta1 = 0.9F,
                                        .beta2 = 0.999F,
                                        .epsilon = 1e-8F};
    kernel_sgd(a, b, COUNT, &nesterov);
    hash = digest(hash, a, sizeof(a));
    kernel_momentum(a, c, b, COUNT, &nesterov);
    hash = digest(digest(hash, a, sizeof(a)), c, sizeof(c));
    kernel_adamw(a, c, d, b, COUNT, &adamw);
    hash = digest(digest(digest(hash, a, sizeof(a)), c, sizeof(c)), d, sizeof(d));
    ck_digest(hash, 0x78ca1a763b45910f);
}
END_TEST

START_TEST(rmsprop_and_lamb_have_the_same_bits_everywhere)
{
    uint64_t hash = 0;
    static double partial[2 * (COUNT / KERNEL_PIECE + 1)];
    const struct kernel_update u = {.scale = 0.125F,
                                    .lr = 0.001F,
                                    .decay = 0.02F,
                                    .alpha = 0.9F,
                                    .momentum = 0.9F,
                                    .beta1 = 0.9F,
                                    .beta2 = 0.999F,
                                    .epsilon = 1e-3F,
                                    .m_scale = 10,
                                    .root_scale = 30};
    for (size_t i = 0; i < COUNT; i++) {
        d[i] = d[i] * d[i]; /* no root of what is below 0 */
    }
    kernel_rmsprop(a, d, NULL, c, b, COUNT, &u);
    hash = digest(digest(digest(hash, a, sizeof(a)), c, sizeof(c)), d, sizeof(d));
    kernel_rmsprop(a, d, c, NULL, b, COUNT, &u);
    hash = digest(digest(digest(hash, a, sizeof(a)), c, sizeof(c)), d, sizeof(d));
    kernel_lamb(a, c, d, b, COUNT, &u, partial, 1);
    hash = digest(digest(digest(hash, a, sizeof(a)), c, sizeof(c)), d, sizeof(d));
    ck_digest(hash, 0x037fb6a87226cb4b);
}
END_TEST

START_TEST(losses_have_the_same_bits_everywhere)
{
    int32_t labels[CHANNELS];
    for (uint64_t i = 0; i < CHANNELS; i++) {
        labels[i] = (int32_t)ms_rng_below(1, i, 10);
    }
    const struct kernel_labels of = {.labels = labels};
    double weight = 0;
    double loss[2] = {kernel_softmax_ce(a, &of, CHANNELS, 10, c, 1, &weight), 0};
    uint64_t hash = digest(0, c, sizeof(c));
    loss[1] = kernel_mse(a, b, CHANNELS, 10, c);
    hash = digest(digest(hash, c, sizeof(c)), loss, sizeof(loss));
    ck_digest(hash, 0xa56fa29b9ecb371f);
}
END_TEST

/* ---- losses on teams, against the serial algorithm ---------------------------------------------
 */

static double serial_softmax_ce(const float *logits, const int32_t *labels, int64_t n, int64_t k,
                                float *dlogits)
{
    double loss = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *row = logits + i * k;
        double max = (double)row[0];
        double sum = 0;
        for (int64_t j = 1; j < k; j++) {
            max = (double)row[j] > max ? (double)row[j] : max;
        }
        for (int64_t j = 0; j < k; j++) {
            sum += ms_exact_exp((double)row[j] - max);
        }
        loss += ms_exact_log(sum) - ((double)row[labels[i]] - max);
        for (int64_t j = 0; j < k; j++) {
            double p = ms_exact_exp((double)row[j] - max) / sum;
            dlogits[i * k + j] = (float)((p - (j == labels[i] ? 1.0 : 0.0)) / (double)n);
        }
    }
    return loss / (double)n;
}

/* Logits of a scale: near each other, far apart (exponentials that vanish), in between. */
static void ck_entropy(int64_t n, int64_t k, double scale, int threads)
{
    size_t count = (size_t)(n * k);
    float *logits = floats(count, (uint64_t)k);
    float *want = floats(count, 1);
    float *got = floats(count, 2);
    int32_t *targets = calloc((size_t)n, sizeof(*targets));
    ck_assert_ptr_nonnull(targets);
    for (size_t i = 0; i < count; i++) {
        logits[i] = (float)((double)logits[i] * scale);
    }
    for (int64_t i = 0; i < n; i++) {
        targets[i] = (int32_t)ms_rng_below(3, (uint64_t)i, (uint64_t)k);
    }

    double serial = serial_softmax_ce(logits, targets, n, k, want);
    const struct kernel_labels of = {.labels = targets};
    double weight = 0;
    double loss = kernel_softmax_ce(logits, &of, n, k, got, threads, &weight);

    ck_assert_mem_eq(&loss, &serial, sizeof(loss));
    ck_assert_msg(memcmp(got, want, count * sizeof(*got)) == 0,
                  "gradient of %lld rows of %lld, scale %g, %d threads", (long long)n, (long long)k,
                  scale, threads);
    loss = kernel_softmax_ce(logits, &of, n, k, NULL, threads, &weight);
    ck_assert_mem_eq(&loss, &serial, sizeof(loss));
    free(logits);
    free(want);
    free(got);
    free(targets);
}

START_TEST(cross_entropy_has_the_bits_of_the_serial_algorithm)
{
    static const double scales[] = {1, 30, 1000};
    for (int64_t k = 1; k <= 70; k++) {
        ck_entropy(1 + k * 7 % 41, k, scales[k % 3], 1 + (int)(k % TEAM_MAX));
    }
    static const int64_t wide[] = {255, 1000, 1023, 1024, 1025, 2500};
    for (size_t i = 0; i < MS_ARRAY_SIZE(wide); i++) {
        ck_entropy(5, wide[i], scales[i % 3], 1 + (int)i);
    }
    for (int threads = 1; threads <= TEAM_MAX; threads++) {
        ck_entropy(32, 10, 30, threads);
        ck_entropy(2049, 3, 30, threads); /* more rows than one round takes */
    }
}
END_TEST

/* Every exponent that a softmax can meet, and both ends. */
START_TEST(lanes_have_the_bits_of_exact_exp_and_log)
{
    static const double ends[] = {0,      -0.0,    -745.1, -745.2,    -746, -708.3, -708.4,
                                  -1e300, -1e-310, -0.5,   -INFINITY, NAN,  -744.44};
    enum { LINE = 333, LINES = 2000 };
    double x[LINE], got[LINE];
    if (_i > (int)exact_lanes_best()) {
        printf("skip: this machine has no instructions for lanes of kind %d\n", _i);
        return;
    }
    for (uint64_t line = 0; line < LINES; line++) {
        double scale = line % 4 == 0 ? 760 : line % 4 == 1 ? 1 : line % 4 == 2 ? 40 : 1e-7;
        for (size_t i = 0; i < LINE; i++) {
            x[i] = got[i] =
                line == 0 ? ends[i % MS_ARRAY_SIZE(ends)] : -scale * ms_rng_unit(line, i);
        }
        exact_lanes_exp_by((enum exact_lanes)_i, got, LINE);
        for (size_t i = 0; i < LINE; i++) {
            double want = ms_exact_exp(x[i]);
            if (memcmp(&got[i], &want, sizeof(want)) != 0) {
                ck_abort_msg("exp(%a) is %a, want %a", x[i], got[i], want);
            }
            x[i] = got[i] =
                line == 0 && i == 7 ? (double)NAN : 1 - x[i] * (double)(line * i % 9999);
            x[i] = got[i] = isinf(x[i]) ? 1e300 : x[i];
        }
        exact_lanes_log(got, LINE);
        for (size_t i = 0; i < LINE; i++) {
            double want = ms_exact_log(x[i]);
            if (memcmp(&got[i], &want, sizeof(want)) != 0) {
                ck_abort_msg("log(%a) is %a, want %a", x[i], got[i], want);
            }
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_bits");
    TCase *tc = tcase_create("bits");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, batch_norm_has_the_same_bits_everywhere);
    tcase_add_test(tc, norms_of_samples_have_the_same_bits_everywhere);
    tcase_add_loop_test(tc, batch_norm_has_the_bits_of_the_serial_algorithm, 0,
                        (int)MS_ARRAY_SIZE(blocks));
    tcase_add_loop_test(tc, teams_that_share_a_slice_have_the_bits_of_the_serial_algorithm, 0,
                        (int)MS_ARRAY_SIZE(shared_layouts));
    tcase_add_test(tc, scratch_is_a_tenth_of_the_tensor_or_little);
    tcase_add_test(tc, sums_have_the_same_bits_everywhere);
    tcase_add_test(tc, optimizers_have_the_same_bits_everywhere);
    tcase_add_test(tc, optimizers_with_decay_have_the_same_bits_everywhere);
    tcase_add_test(tc, rmsprop_and_lamb_have_the_same_bits_everywhere);
    tcase_add_test(tc, losses_have_the_same_bits_everywhere);
    tcase_add_test(tc, cross_entropy_has_the_bits_of_the_serial_algorithm);
    tcase_add_loop_test(tc, lanes_have_the_bits_of_exact_exp_and_log, 0, EXACT_LANES_FUSED_512 + 1);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
