/* exact.h - exp and log whose bits depend on no C library and no instruction set
 *
 * libm picks variants by CPU (with and without fused multiply-add) that may differ in the last bit,
 * and replicas on different machines must stay bit-identical. Only + - * / and exact scaling here,
 * compiled with -ffp-contract=off. Accurate to about 1e-15 relative. Any thread. */
#ifndef MS_EXACT_H
#define MS_EXACT_H

#include <math.h>

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

#endif
