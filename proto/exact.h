/* exact.h - exp, log, powers and cos whose bits depend on no C library and no instruction set
 *
 * libm picks variants by CPU (with and without fused multiply-add) that may differ in the last bit,
 * and replicas on different machines must stay bit-identical. Only + - * / and exact scaling here,
 * compiled with -ffp-contract=off. Accurate to about 1e-15 relative. Any thread. */
#ifndef MS_EXACT_H
#define MS_EXACT_H

#include <math.h>
#include <stdint.h>

/* e^x. x = k ln 2 + r, |r| <= ln 2 / 2, Taylor's series of e^r: r^15 / 15! < 1e-19. */
static inline double ms_exact_exp(double x)
{
    if (!(x > -745.2)) { /* also NaN */
        return x != x ? x : 0.0;
    }
    if (x > 709.7) {
        return (double)INFINITY;
    }
    double k = floor(x * 1.4426950408889634074 + 0.5);
    /* ln 2 in two parts (fdlibm): k times the first is exact */
    double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    double sum = 1.0;
    for (int i = 14; i >= 1; i--) {
        sum = 1.0 + sum * r / i;
    }
    return ldexp(sum, (int)k);
}

/* Natural logarithm. x = m 2^k, sqrt(1/2) <= m < sqrt(2); ln m = 2 atanh s, s = (m - 1) / (m + 1),
 * |s| < 0.1716: the first term left out is s^23 / 23 < 2e-19. */
static inline double ms_exact_log(double x)
{
    if (!(x > 0)) {
        return x == 0 ? -(double)INFINITY : (double)NAN;
    }
    if (isinf(x)) {
        return x;
    }
    int k = 0;
    double m = frexp(x, &k);
    if (m < 0.70710678118654752440) {
        m *= 2;
        k--;
    }
    double s = (m - 1) / (m + 1);
    double s2 = s * s;
    double sum = 0;
    for (int i = 21; i >= 1; i -= 2) {
        sum = sum * s2 + 1.0 / i;
    }
    return k * 1.90821492927058770002e-10 + 2 * s * sum + k * 6.93147180369123816490e-01;
}

/* base^n, by squaring. */
static inline double ms_exact_power(double base, uint64_t n)
{
    double result = 1.0;
    for (; n > 0; n >>= 1) {
        result = (n & 1) != 0 ? result * base : result;
        base *= base;
    }
    return result;
}

/* x^y for x in [0, 1] and y > 0: whole y by squaring, others by e^(y ln x), whose error grows with
 * y |ln x|: about 1e-13 relative where that is 700. */
static inline double ms_exact_share_power(double x, double y)
{
    if (y == floor(y) && y <= 1e6) {
        return ms_exact_power(x, (uint64_t)y);
    }
    return x <= 0 ? 0 : x >= 1 ? 1 : ms_exact_exp(y * ms_exact_log(x));
}

/* cos(pi x) for x in [0, 1]; exact at 0, 1/2 and 1. By the series of the cosine near the ends, and
 * of the sine in the middle, of at most pi / 4: the first terms left out, x^20 / 20! and x^21 /
 * 21!, are less than 1e-20. */
static inline double ms_exact_cos_pi(double x)
{
    const int is_sine = x > 0.25 && x < 0.75;
    const double angle = 3.14159265358979323846 * (is_sine ? 0.5 - x : x <= 0.25 ? x : 1.0 - x);
    double sum = 1.0;
    for (int n = 18 + is_sine; n > 1; n -= 2) {
        sum = 1.0 - sum * (angle * angle) / (n * (n - 1));
    }
    return is_sine ? angle * sum : x <= 0.25 ? sum : -sum;
}

#endif
