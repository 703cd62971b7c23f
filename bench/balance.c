/* balance.c - how evenly a team shares a batch norm, one layout and team a line
 *
 * The busiest thread's part of the CPU time that statistics and backward take: 100 / threads is
 * ideal, and what is above it is waited for. CPU time, of the least uneven of some rounds: so the
 * figures hold on a machine that has fewer cores than threads, or other work. Run with
 * GOMP_SPINCOUNT=0, or waiting counts as work. Usage: balance [--quick]. */
#include "libworker/kernel/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TEAM_MAX = 8, PIECE = 16384 /* of kernel_in_pieces */, CHANNELS_MAX = 256 };

static const struct bench {
    const char *name;
    struct kernel_layout layout;
} benches[] = {
    {"nChw16c, 64 channels", {8, 4, 3136, 16, 64}},
    {"nChw16c, 128 channels", {8, 8, 784, 16, 128}},
    {"nChw16c, 192 channels", {8, 12, 784, 16, 192}},
    {"nChw8c, 40 channels", {8, 5, 3136, 8, 40}},
    {"nhwc, 64 channels", {8, 1, 3136, 64, 64}},
    {"nhwc, 256 channels", {8, 1, 3136, 256, 256}},
};

struct tensors {
    float *x, *dy, *dx;
    float vectors[6][CHANNELS_MAX];
    void *scratch;
};

static void *room(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes / 64 + 1) * 64);
    if (p == NULL) {
        fprintf(stderr, "balance: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return p;
}

static void tensors_init(struct tensors *t, const struct kernel_layout *l)
{
    size_t count = (size_t)(l->n * l->n_blocks * l->spatial * l->block);
    t->x = room(count * sizeof(float));
    t->dy = room(count * sizeof(float));
    t->dx = room(count * sizeof(float));
    t->scratch = room(kernel_bn_scratch(l, TEAM_MAX));
    for (size_t i = 0; i < count; i++) {
        t->x[i] = (float)(i % 97) * 0.1F;
        t->dy[i] = (float)(i % 31) * 0.1F - 1.5F;
    }
    for (size_t i = 0; i < 6 * (size_t)CHANNELS_MAX; i++) {
        t->vectors[i / CHANNELS_MAX][i % CHANNELS_MAX] = 1.0F;
    }
}

static void tensors_done(struct tensors *t)
{
    free(t->x);
    free(t->dy);
    free(t->dx);
    free(t->scratch);
}

static void run(struct tensors *t, const struct kernel_layout *l, int is_backward, int threads)
{
    const struct kernel_bn forward = {.layout = *l,
                                      .x = t->x,
                                      .mean = t->vectors[0],
                                      .variance = t->vectors[1],
                                      .scratch = t->scratch};
    const struct kernel_bn_back back = {.layout = *l,
                                        .x = t->x,
                                        .dy = t->dy,
                                        .mean = t->vectors[0],
                                        .variance = t->vectors[1],
                                        .gamma = t->vectors[2],
                                        .beta = t->vectors[3],
                                        .epsilon = 1e-5,
                                        .mask = KERNEL_MASK_X,
                                        .dx = t->dx,
                                        .dgamma = t->vectors[4],
                                        .dbeta = t->vectors[5],
                                        .scratch = t->scratch};
    if (is_backward) {
        kernel_bn_backward(&back, threads);
    } else {
        kernel_bn_stats(&forward, threads);
    }
}

/* Run by each thread of the team, before and after: what is between stays. */
static void take_time(const void *arg, size_t at, size_t n)
{
    struct timespec now;
    double *seconds = *(double *const *)arg;
    (void)n;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    seconds[at / PIECE] = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - seconds[at / PIECE];
}

/* The busiest thread's part, in percent. */
static double busiest(struct tensors *t, const struct kernel_layout *l, int is_backward,
                      int threads, int rounds)
{
    double least = 100;
    for (int i = 0; i < rounds; i++) {
        double seconds[TEAM_MAX] = {0};
        double *all = seconds;
        kernel_in_pieces((size_t)threads * PIECE, take_time, &all, threads);
        run(t, l, is_backward, threads);
        kernel_in_pieces((size_t)threads * PIECE, take_time, &all, threads);
        double sum = 0;
        double most = 0;
        for (int p = 0; p < threads; p++) {
            sum += seconds[p];
            most = seconds[p] > most ? seconds[p] : most;
        }
        least = 100 * most / sum < least ? 100 * most / sum : least;
    }
    return least;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 && strcmp(argv[1], "--quick") == 0 ? 2 : 50;
    if (argc > 2 || (argc == 2 && rounds != 2)) {
        fprintf(stderr, "usage: balance [--quick]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++) {
        const struct kernel_layout *l = &benches[i].layout;
        struct tensors t;
        tensors_init(&t, l);
        for (int threads = 2; threads <= TEAM_MAX; threads *= 2) {
            double stats = busiest(&t, l, 0, threads, rounds);
            double backward = busiest(&t, l, 1, threads, rounds);
            printf("%-24s %d threads  statistics %5.1f %%  backward %5.1f %%\n", benches[i].name,
                   threads, stats, backward);
        }
        tensors_done(&t);
    }
    return 0;
}
