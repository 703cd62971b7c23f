/* rates.c - what a core of this host computes and moves a second
 *
 * Arithmetic: a matrix product of blocks that stay in registers, as those of oneDNN do; products
 * may be fused with their additions here (meson.build), for nobody looks at the bits. Memory: a
 * pass over two arrays that no cache holds together. Both are plain loops, which the compiler makes
 * vectors of: msctl links no oneDNN. */
#include "cli/rates.h"

#include "libworker/kernel/clones.h"
#include "proto/clock.h"

#include <float.h>
#include <sys/mman.h>
#include <unistd.h>

/* 6 x 32 sums: twelve registers of 512 bits; of 256 bits some more than there are, which costs a
 * quarter. */
enum { ROWS = 6, LANES = 32, DEPTH = 256, BLOCKS = 1000 };

#define LEAST_S     0.010 /* of each: enough runs to meet a quiet one, and a clock that has risen */
#define LEAST_RUNS  3
#define PASS_LEAST  ((size_t)32 << 20)
#define PASS_MOST   ((size_t)64 << 20) /* larger caches are shared by many cores */
#define PASS_CACHES 2                  /* times the largest cache */

struct product {
    float a[DEPTH][ROWS], b[DEPTH][LANES], sum[ROWS][LANES];
};

struct pass {
    float *x, *y;
    size_t count; /* of each */
};

KERNEL_CLONES_OF("avx512f", "fma", "default")
static void multiply(struct product *p)
{
    float sum[ROWS][LANES] = {{0}};
    for (int k = 0; k < DEPTH; k++) {
        for (int r = 0; r < ROWS; r++) {
            for (int l = 0; l < LANES; l++) {
                sum[r][l] += p->a[k][r] * p->b[k][l];
            }
        }
    }
    for (int r = 0; r < ROWS; r++) {
        for (int l = 0; l < LANES; l++) {
            p->sum[r][l] += sum[r][l];
        }
    }
}

static void run_product(void *arg)
{
    for (int i = 0; i < BLOCKS; i++) {
        multiply(arg);
    }
}

KERNEL_CLONES_OF("avx512f", "fma", "default")
static void add_half(float *y, const float *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        y[i] = 0.5F * y[i] + x[i];
    }
}

static void run_pass(void *arg)
{
    const struct pass *pass = arg;
    add_half(pass->y, pass->x, pass->count);
}

static double least_seconds(void (*run)(void *arg), void *arg)
{
    double least = DBL_MAX;
    const double begin = ms_mono_s();
    double end = begin;
    for (int i = 0; i < LEAST_RUNS || end - begin < LEAST_S; i++) {
        const double before = end;
        run(arg);
        end = ms_mono_s();
        least = end - before < least ? end - before : least;
    }
    return least > 0 ? least : DBL_MIN;
}

static double measure_products(void)
{
    struct product p = {.sum = {{0}}};
    for (int k = 0; k < DEPTH; k++) {
        for (int r = 0; r < ROWS; r++) {
            p.a[k][r] = 0.5F;
        }
        for (int l = 0; l < LANES; l++) {
            p.b[k][l] = 0.25F;
        }
    }
    return (double)ROWS * LANES * DEPTH * BLOCKS / least_seconds(run_product, &p);
}

static size_t pass_bytes(void)
{
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    const size_t wanted = cache > 0 ? PASS_CACHES * (size_t)cache : 0;
    const size_t more = wanted > PASS_LEAST ? wanted : PASS_LEAST;
    return more < PASS_MOST ? more : PASS_MOST;
}

static void *map(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* y is read and written, x read. */
static int measure_bytes(double *ret, struct ms_err *err)
{
    size_t size = pass_bytes();
    float *memory = map(size);
    while (memory == MAP_FAILED &&
           size > PASS_LEAST / 8) { /* within caches rather than not at all */
        size /= 2;
        memory = map(size);
    }
    if (memory == MAP_FAILED) {
        return ms_fail(err, MS_E_NOMEM, "no memory for %zu bytes, by which this host is measured",
                       size);
    }
    (void)madvise(memory, size, MADV_HUGEPAGE);
    struct pass pass = {memory, memory + size / sizeof(float) / 2, size / sizeof(float) / 2};
    for (size_t i = 0; i < 2 * pass.count; i++) { /* pages that nobody wrote are all the same one */
        memory[i] = 1;
    }
    *ret = 3.0 * (double)pass.count * sizeof(float) / least_seconds(run_pass, &pass);
    (void)munmap(memory, size);
    return MS_OK;
}

int cli_rates_measure(struct roofline *ret, struct ms_err *err)
{
    double bytes_per_s = 0;
    int rc = measure_bytes(&bytes_per_s, err);
    if (rc == MS_OK) {
        *ret = (struct roofline){measure_products(), bytes_per_s};
    }
    return rc;
}
