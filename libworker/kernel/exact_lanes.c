/* exact_lanes.c - exp and log over arrays: see proto/exact.h for the series and their bounds */
#include "libworker/kernel/exact_lanes.h"

#include "libworker/kernel/inline.h"
#include "libworker/kernel/kernel.h"

#include <math.h>
#include <string.h>

/* ---- without branches ------------------------------------------------------------------------ */

static const double round_off = 0x1.8p52; /* x + this - this: x as an integer, for |x| < 2^51 */

INLINE double floor_of(double x)
{
    double nearest = (x + round_off) - round_off;
    return nearest > x ? nearest - 1.0 : nearest;
}

INLINE uint64_t bits_of(double x)
{
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

INLINE double of_bits(uint64_t bits)
{
    double x = 0;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* 2^k for an integer k of [-1022, 1023]: the biased exponent appears in the lowest bits. */
INLINE double power_of_two(double k)
{
    return of_bits(bits_of(k + (round_off + 1023)) << 52);
}

/* ---- e^x ------------------------------------------------------------------------------------- */

/* x / i, rounded correctly. Dividers are slow; a fused multiply-add corrects the product with the
 * rounded 1 / i (Markstein 1990), if that product is one of the quotient's two neighbours. It is:
 * for i <= 14 i times the rounded 1 / i is off by at most 2^-54 from 1, so that the product before
 * its own rounding is less than half a unit away, and less than one after it. Tiny quotients, whose
 * remainder would underflow, vanish in the 1 that they are added to. */
INLINE double quotient(double x, double i, int is_fused)
{
    if (!is_fused) {
        return x / i;
    }
    double q = x * (1.0 / i);
    return __builtin_fma(__builtin_fma(-q, i, x), 1.0 / i, q);
}

/* A step of the series waits for the one before: so many lanes keep the units busy meanwhile. */
enum { LANES = 32 };

INLINE void exp_of_lanes(double *x, int is_fused)
{
    double k[LANES], r[LANES], sum[LANES];
#pragma omp simd
    for (int l = 0; l < LANES; l++) {
        double in = x[l] > -745.2 ? x[l] : 0.0;
        k[l] = floor_of(in * 1.4426950408889634074 + 0.5);
        r[l] = (in - k[l] * 6.93147180369123816490e-01) - k[l] * 1.90821492927058770002e-10;
        sum[l] = 1.0;
    }
#pragma GCC unroll 14
    for (int i = 14; i >= 1; i--) {
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            sum[l] = 1.0 + quotient(sum[l] * r[l], i, is_fused);
        }
    }
#pragma omp simd
    for (int l = 0; l < LANES; l++) {
        /* two factors, of which the second may round into the denormals as ldexp does */
        double half = floor_of(k[l] * 0.5);
        double scaled = (sum[l] * power_of_two(half)) * power_of_two(k[l] - half);
        double out = x[l] != x[l] ? x[l] : 0.0;
        x[l] = x[l] > -745.2 ? scaled : out;
    }
}

INLINE void exp_of_array(double *x, int64_t n, int is_fused)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        exp_of_lanes(x + i, is_fused);
    }
    if (i < n) {
        double rest[LANES] = {0};
        memcpy(rest, x + i, (size_t)(n - i) * sizeof(*x));
        exp_of_lanes(rest, is_fused);
        memcpy(x + i, rest, (size_t)(n - i) * sizeof(*x));
    }
}

KERNEL_CLONES
static void exp_divided(double *x, int64_t n)
{
    exp_of_array(x, n, 0);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx512f"))) static void exp_fused_512(double *x, int64_t n)
{
    exp_of_array(x, n, 1);
}

__attribute__((target("avx2,fma"))) static void exp_fused_256(double *x, int64_t n)
{
    exp_of_array(x, n, 1);
}

enum exact_lanes exact_lanes_best(void)
{
    int has_fused = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return !has_fused                          ? EXACT_LANES_DIVIDED
           : __builtin_cpu_supports("avx512f") ? EXACT_LANES_FUSED_512
                                               : EXACT_LANES_FUSED_256;
}
#else
#define exp_fused_256 exp_divided
#define exp_fused_512 exp_divided

enum exact_lanes exact_lanes_best(void)
{
    return EXACT_LANES_DIVIDED;
}
#endif

void exact_lanes_exp_by(enum exact_lanes how, double *x, int64_t n)
{
    switch (how) {
    case EXACT_LANES_FUSED_512:
        exp_fused_512(x, n);
        break;
    case EXACT_LANES_FUSED_256:
        exp_fused_256(x, n);
        break;
    case EXACT_LANES_DIVIDED:
        exp_divided(x, n);
        break;
    }
}

void exact_lanes_exp(double *x, int64_t n)
{
    exact_lanes_exp_by(exact_lanes_best(), x, n);
}

/* ---- ln x ------------------------------------------------------------------------------------ */

INLINE double log_of(double x)
{
    const uint64_t fraction = ((uint64_t)1 << 52) - 1;
    uint64_t bits = bits_of(x);
    double m = of_bits((bits & fraction) | (uint64_t)1022 << 52);
    double k = of_bits(bits >> 52 | bits_of(0x1p52)) - (0x1p52 + 1022);
    int is_low = m < 0.70710678118654752440;
    m = is_low ? m * 2 : m;
    k = is_low ? k - 1 : k;
    double s = (m - 1) / (m + 1);
    double s2 = s * s;
    double sum = 0;
#pragma GCC unroll 11
    for (int i = 21; i >= 1; i -= 2) {
        sum = sum * s2 + 1.0 / i;
    }
    double log = k * 1.90821492927058770002e-10 + 2 * s * sum + k * 6.93147180369123816490e-01;
    return x != x ? (double)NAN : log;
}

KERNEL_CLONES
void exact_lanes_log(double *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        x[i] = log_of(x[i]);
    }
}
