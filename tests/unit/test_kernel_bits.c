/* test_kernel_bits.c - every build and instruction set gives the same bits
 *
 * Replicas on different machines must stay bit-identical, and a recovered run must continue as it
 * began. The digests below were taken from the AVX-512 clones; the same test passes in sanitizer
 * and clang builds, which have only the baseline loops. A change here is a change of every user's
 * weights: say so in the CHANGELOG. */
#include "libworker/kernel/kernel.h"
#include "proto/rng.h"
#include "tests/test.h"

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
    struct kernel_bn forward = {layout, a, mean, variance, gamma_, beta, 1e-5, NULL, 0, c};
    struct kernel_bn_back back = {layout, a,    b, c, mean, variance, gamma_,
                                  beta,   1e-5, 0, d, NULL, dgamma,   dbeta};
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
    kernel_sgd(a, b, COUNT, 0.125F, 0.01F);
    hash = digest(hash, a, sizeof(a));
    kernel_momentum(a, c, b, COUNT, 0.125F, 0.01F, 0.9F);
    hash = digest(digest(hash, a, sizeof(a)), c, sizeof(c));
    kernel_adam(a, c, d, b, COUNT, 0.125F, 0.001F, 0.9F, 0.999F, 1e-8F);
    hash = digest(digest(digest(hash, a, sizeof(a)), c, sizeof(c)), d, sizeof(d));
    ck_digest(hash, 0x92cb5e7315dd48b0);
}
END_TEST

START_TEST(losses_have_the_same_bits_everywhere)
{
    int32_t labels[CHANNELS];
    for (uint64_t i = 0; i < CHANNELS; i++) {
        labels[i] = (int32_t)ms_rng_below(1, i, 10);
    }
    double loss[2] = {kernel_softmax_ce(a, labels, CHANNELS, 10, c), 0};
    uint64_t hash = digest(0, c, sizeof(c));
    loss[1] = kernel_mse(a, b, CHANNELS, 10, c);
    hash = digest(digest(hash, c, sizeof(c)), loss, sizeof(loss));
    ck_digest(hash, 0xa56fa29b9ecb371f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_bits");
    TCase *tc = tcase_create("bits");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, batch_norm_has_the_same_bits_everywhere);
    tcase_add_test(tc, sums_have_the_same_bits_everywhere);
    tcase_add_test(tc, optimizers_have_the_same_bits_everywhere);
    tcase_add_test(tc, losses_have_the_same_bits_everywhere);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
