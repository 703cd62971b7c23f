/* kernels.c - memory speed of our own loops beside memcpy's, one figure a line
 *
 * Each kernel runs over tensors far larger than the caches. GB/s counts the bytes that the formula
 * needs (each operand once), so a kernel at memcpy's figure runs at memory speed. Usage:
 * kernels [seconds a kernel, default 0.5] [threads of norms, default 1].
 * Output: name GB/s share of memcpy. */
#include "libworker/kernel/kernel.h"

#include "proto/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 5 };

static const struct kernel_layout big = {32, 16, 3136, 16, 256};   /* ResNet-50, layer1: 103 MB */
static const struct kernel_layout small = {32, 128, 49, 16, 2048}; /* layer4: 12.8 MB */
static const struct kernel_layout plain = {32, 256, 3136, 1, 256};
static const struct kernel_layout small_plain = {32, 2048, 49, 1, 2048};
static const struct kernel_layout nhwc = {32, 1, 3136, 256, 256};
static const struct kernel_layout narrow = {32, 4, 3136, 16, 64}; /* fewer blocks than threads */
static const struct kernel_layout narrow_last = {32, 1, 3136, 64, 64};

static const struct kernel_layout rows = {8192, 1, 1, 1024, 1024}; /* of a transformer: 33.5 MB */

static float *buffer[BUFFERS];
static float mean[2048], variance[2048], gamma_[2048], beta[2048], dgamma[2048], dbeta[2048];
static float *affine[4], stats[2 * 8192]; /* of each value, and of 32 groups a sample or of a row */
static size_t count;
static int threads = 1;
static void *scratch;

static size_t size_of(const struct kernel_layout *l)
{
    return (size_t)(l->n * l->n_blocks * l->spatial * l->block);
}

static void run_memcpy(const struct kernel_layout *l)
{
    memcpy(buffer[0], buffer[1], size_of(l) * sizeof(float));
}

static void run_sum_2(const struct kernel_layout *l)
{
    kernel_sum_tree(buffer[0], (const float *const[]){buffer[0], buffer[1]}, 2, size_of(l));
}

static void run_sum_2_to_2(const struct kernel_layout *l)
{
    kernel_sum_tree_to((float *const[]){buffer[0], buffer[1]}, 2,
                       (const float *const[]){buffer[0], buffer[1]}, 2, size_of(l));
}

static void run_sum_4(const struct kernel_layout *l)
{
    kernel_sum_tree(buffer[0], (const float *const[]){buffer[0], buffer[1], buffer[2], buffer[3]},
                    4, size_of(l));
}

static void run_sum_5(const struct kernel_layout *l)
{
    kernel_sum_tree(buffer[0],
                    (const float *const[]){buffer[0], buffer[1], buffer[2], buffer[3], buffer[4]},
                    5, size_of(l));
}

static void run_momentum(const struct kernel_layout *l)
{
    const struct kernel_update update = {.scale = 1.0F, .lr = 1e-9F, .momentum = 0.9F};
    kernel_momentum(buffer[0], buffer[1], buffer[2], size_of(l), &update);
}

static void run_adam(const struct kernel_layout *l)
{
    const struct kernel_update update = {
        .scale = 1.0F, .lr = 1e-9F, .beta1 = 0.9F, .beta2 = 0.999F, .epsilon = 1e-8F};
    kernel_adam(buffer[0], buffer[1], buffer[2], buffer[3], size_of(l), &update);
}

/* In place, as in the batches of a step that are neither its first nor its last. */
static void run_add_share(const struct kernel_layout *l)
{
    kernel_add_share(buffer[0], buffer[0], buffer[1], 0.25F, size_of(l), threads);
}

static void run_add_relu(const struct kernel_layout *l)
{
    kernel_add_relu(buffer[0], buffer[1], buffer[2], size_of(l));
}

static struct kernel_bn forward(const struct kernel_layout *l)
{
    return (struct kernel_bn){.layout = *l,
                              .x = buffer[0],
                              .mean = mean,
                              .variance = variance,
                              .gamma = gamma_,
                              .beta = beta,
                              .epsilon = 1e-5,
                              .relu = 1,
                              .y = buffer[1],
                              .scratch = scratch};
}

static void run_bn_stats(const struct kernel_layout *l)
{
    struct kernel_bn bn = forward(l);
    kernel_bn_stats(&bn, threads);
}

static void run_bn_relu(const struct kernel_layout *l)
{
    struct kernel_bn bn = forward(l);
    kernel_bn_apply(&bn, threads);
}

static void run_bn_add_relu(const struct kernel_layout *l)
{
    struct kernel_bn bn = forward(l);
    bn.residual = buffer[2];
    kernel_bn_apply(&bn, threads);
}

static struct kernel_bn_back backward(const struct kernel_layout *l)
{
    return (struct kernel_bn_back){.layout = *l,
                                   .x = buffer[0],
                                   .dy = buffer[2],
                                   .mean = mean,
                                   .variance = variance,
                                   .gamma = gamma_,
                                   .beta = beta,
                                   .epsilon = 1e-5,
                                   .mask = KERNEL_MASK_X,
                                   .dx = buffer[3],
                                   .dgamma = dgamma,
                                   .dbeta = dbeta,
                                   .scratch = scratch};
}

static void run_bn_backward(const struct kernel_layout *l)
{
    struct kernel_bn_back bn = backward(l);
    kernel_bn_backward(&bn, threads);
}

static void run_bn_backward_residual(const struct kernel_layout *l)
{
    struct kernel_bn_back bn = backward(l);
    bn.y = buffer[1];
    bn.mask = KERNEL_MASK_Y;
    bn.dz = buffer[4];
    kernel_bn_backward(&bn, threads);
}

enum { GROUPS = 32 };

static struct kernel_norm norm(const struct kernel_layout *l, int64_t groups, int is_per_value)
{
    return (struct kernel_norm){.layout = *l,
                                .groups = groups,
                                .is_per_value = is_per_value,
                                .epsilon = 1e-5,
                                .x = buffer[0],
                                .gamma = is_per_value ? affine[0] : gamma_,
                                .beta = is_per_value ? affine[1] : beta,
                                .stats = stats,
                                .y = buffer[1],
                                .dy = buffer[2],
                                .dx = buffer[3],
                                .dgamma = is_per_value ? affine[2] : dgamma,
                                .dbeta = is_per_value ? affine[3] : dbeta,
                                .scratch = scratch};
}

static void run_group_norm(const struct kernel_layout *l)
{
    const struct kernel_norm m = norm(l, GROUPS, 0);
    kernel_norm_forward(&m, threads);
}

static void run_group_norm_backward(const struct kernel_layout *l)
{
    const struct kernel_norm m = norm(l, GROUPS, 0);
    kernel_norm_backward(&m, threads);
}

static void run_layer_norm(const struct kernel_layout *l)
{
    const struct kernel_norm m = norm(l, 1, 1);
    kernel_norm_forward(&m, threads);
}

static void run_layer_norm_backward(const struct kernel_layout *l)
{
    const struct kernel_norm m = norm(l, 1, 1);
    kernel_norm_backward(&m, threads);
}

static void run_softmax(const struct kernel_layout *l)
{
    kernel_softmax(l, buffer[0], buffer[1], threads);
}

static void run_softmax_backward(const struct kernel_layout *l)
{
    kernel_softmax_backward(l, buffer[1], buffer[2], buffer[3], threads);
}

static const struct bench {
    const char *name;
    const struct kernel_layout *layout;
    void (*run)(const struct kernel_layout *layout);
    int passes; /* floats read or written for an element of the tensor */
} benches[] = {
    {"memcpy", &big, run_memcpy, 2},
    {"sum_tree_2", &big, run_sum_2, 3},
    {"sum_tree_2_to_2", &big, run_sum_2_to_2, 4},
    {"sum_tree_4", &big, run_sum_4, 5},
    {"sum_tree_5", &big, run_sum_5, 6},
    {"momentum", &big, run_momentum, 5},
    {"adam", &big, run_adam, 7},
    {"add_relu", &big, run_add_relu, 3},
    {"add_share", &big, run_add_share, 3},
    {"bn_stats_nChw16c_56", &big, run_bn_stats, 1},
    {"bn_stats_nChw16c_7", &small, run_bn_stats, 1},
    {"bn_stats_nchw_56", &plain, run_bn_stats, 1},
    {"bn_stats_nhwc_56", &nhwc, run_bn_stats, 1},
    {"bn_stats_nChw16c_56_64", &narrow, run_bn_stats, 1},
    {"bn_stats_nhwc_56_64", &narrow_last, run_bn_stats, 1},
    {"bn_relu_nChw16c_56", &big, run_bn_relu, 2},
    {"bn_relu_nChw16c_7", &small, run_bn_relu, 2},
    {"bn_relu_nchw_56", &plain, run_bn_relu, 2},
    {"bn_relu_nhwc_56", &nhwc, run_bn_relu, 2},
    {"bn_add_relu_nChw16c_56", &big, run_bn_add_relu, 3},
    {"bn_backward_nChw16c_56", &big, run_bn_backward, 5},
    {"bn_backward_nChw16c_7", &small, run_bn_backward, 5},
    {"bn_backward_nchw_56", &plain, run_bn_backward, 5},
    {"bn_backward_nhwc_56", &nhwc, run_bn_backward, 5},
    {"bn_backward_nChw16c_56_64", &narrow, run_bn_backward, 5},
    {"bn_backward_nhwc_56_64", &narrow_last, run_bn_backward, 5},
    {"bn_backward_residual_nChw16c_56", &big, run_bn_backward_residual, 7},
    {"group_norm_nChw16c_56", &big, run_group_norm, 3},
    {"group_norm_nChw16c_7", &small, run_group_norm, 3},
    {"group_norm_nchw_56", &plain, run_group_norm, 3},
    {"group_norm_nhwc_56", &nhwc, run_group_norm, 3},
    {"group_norm_backward_nChw16c_56", &big, run_group_norm_backward, 5},
    {"group_norm_backward_nChw16c_7", &small, run_group_norm_backward, 5},
    {"group_norm_backward_nchw_56", &plain, run_group_norm_backward, 5},
    {"group_norm_backward_nhwc_56", &nhwc, run_group_norm_backward, 5},
    {"softmax_rows", &rows, run_softmax, 2},
    {"softmax_backward_rows", &rows, run_softmax_backward, 3},
    {"layer_norm_rows", &rows, run_layer_norm, 3},
    {"layer_norm_nChw16c_7", &small, run_layer_norm, 3},
    {"layer_norm_nchw_7", &small_plain, run_layer_norm, 3},
    {"layer_norm_backward_rows", &rows, run_layer_norm_backward, 5},
    {"layer_norm_backward_nChw16c_7", &small, run_layer_norm_backward, 5},
    {"layer_norm_backward_nchw_7", &small_plain, run_layer_norm_backward, 5},
};

/* Enough for every layout. */
static void *room_for_scratch(void)
{
    size_t bytes = 64;
    for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++) {
        size_t needed = kernel_bn_scratch(benches[i].layout, threads);
        for (int per_value = 0; per_value < 2; per_value++) {
            const struct kernel_norm m = {.layout = *benches[i].layout,
                                          .groups = per_value ? 1 : GROUPS,
                                          .is_per_value = per_value};
            const size_t forward_needs = kernel_norm_scratch(&m, 0, threads);
            const size_t backward_needs = kernel_norm_scratch(&m, 1, threads);
            needed = forward_needs > needed ? forward_needs : needed;
            needed = backward_needs > needed ? backward_needs : needed;
        }
        bytes = needed > bytes ? needed : bytes;
    }
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static double gbytes_per_s(const struct bench *bench, double seconds)
{
    double best = 0;
    double begin = ms_mono_s();
    bench->run(bench->layout); /* pages and clones */
    do {
        double t = ms_mono_s();
        bench->run(bench->layout);
        double speed = (double)bench->passes * (double)size_of(bench->layout) * sizeof(float) /
                       (ms_mono_s() - t) * 1e-9;
        best = speed > best ? speed : best;
    } while (ms_mono_s() - begin < seconds);
    return best;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.5;
    threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
    if (threads < 1 || argc > 3) {
        fprintf(stderr, "usage: kernels [seconds a kernel] [threads]\n");
        return 2;
    }
    count = size_of(&big);
    scratch = room_for_scratch();
    if (scratch == NULL) {
        fprintf(stderr, "kernels: no memory for the scratch of %d threads\n", threads);
        return 1;
    }
    for (int b = 0; b < BUFFERS; b++) {
        buffer[b] = aligned_alloc(64, count * sizeof(float));
        if (buffer[b] == NULL) {
            fprintf(stderr, "kernels: no memory for %zu floats\n", count);
            return 1;
        }
        for (size_t i = 0; i < count; i++) {
            buffer[b][i] = (float)((i * 2654435761U >> 7) % 2000U) * 1e-3F - 1.0F;
        }
    }
    for (int i = 0; i < 4; i++) {
        affine[i] = calloc(count / (size_t)big.n, sizeof(float));
        if (affine[i] == NULL) {
            fprintf(stderr, "kernels: no memory for the gamma of a sample\n");
            return 1;
        }
    }
    for (int c = 0; c < 2048; c++) {
        variance[c] = gamma_[c] = 1.0F;
    }
    double copy = 0;
    for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++) {
        double speed = gbytes_per_s(&benches[i], seconds);
        copy = i == 0 ? speed : copy;
        printf("%-34s %7.2f GB/s %5.2f\n", benches[i].name, speed, speed / copy);
    }
    for (int b = 0; b < BUFFERS; b++) {
        free(buffer[b]);
    }
    for (int i = 0; i < 4; i++) {
        free(affine[i]);
    }
    free(scratch);
    return 0;
}
