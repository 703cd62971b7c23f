/* recurrent_units.c - what a token's gates make of it, unit by unit
 *
 * In double inside, from the exponential of proto/exact.h: the same bits on every instruction set.
 */
#include "libworker/kernel/recurrent_units.h"

#include "libworker/kernel/exact_lanes.h"
#include "libworker/kernel/inline.h"

enum { UNITS = 64 }; /* of which exponentials are on a thread's stack together */

/* ---- functions of gates ---- */

/* From e = e^-|x|. A NaN stays one. */
INLINE double sigmoid_of(double x, double e)
{
    return (x >= 0 ? 1.0 : e) / (1.0 + e);
}

/* From e = e^-2|x|. */
INLINE double tanh_of(double x, double e)
{
    const double y = (1.0 - e) / (1.0 + e);
    return x < 0 ? -y : y;
}

INLINE double below(double x)
{
    return x < 0 ? x : -x;
}

/* ---- LSTM, gates i, f, g, o ---- */

/* Units [0, n). */
KERNEL_CLONES
static void lstm_units(const struct recurrent_cell *c, int64_t n)
{
    double v[4 * UNITS], e[4 * UNITS];
    const int64_t w = c->width;
    for (int64_t gate = 0; gate < 4; gate++) {
        const double factor = gate == 2 ? 2.0 : 1.0;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            v[gate * n + i] = (double)c->x[gate * w + i] + (double)c->h[gate * w + i];
            e[gate * n + i] = below(factor * v[gate * n + i]);
        }
    }
    exact_lanes_exp(e, 4 * n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const float in = (float)sigmoid_of(v[i], e[i]);
        const float forget = (float)sigmoid_of(v[n + i], e[n + i]);
        const float g = (float)tanh_of(v[2 * n + i], e[2 * n + i]);
        c->kept[i] = in;
        c->kept[w + i] = forget;
        c->kept[2 * w + i] = g;
        c->kept[3 * w + i] = (float)sigmoid_of(v[3 * n + i], e[3 * n + i]);
        c->cells[i] = (float)((double)forget * (double)c->cells[i] + (double)in * (double)g);
        c->kept[4 * w + i] = c->cells[i];
        e[i] = below(2.0 * (double)c->cells[i]);
    }
    exact_lanes_exp(e, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        c->y[i] = (float)((double)c->kept[3 * w + i] * tanh_of((double)c->cells[i], e[i]));
    }
}

KERNEL_CLONES
static void lstm_units_backward(const struct recurrent_cell *c, int64_t n)
{
    double e[UNITS];
    const int64_t w = c->width;
    const float *kept = c->kept;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        e[i] = below(2.0 * (double)kept[4 * w + i]);
    }
    exact_lanes_exp(e, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const double in = (double)kept[i], forget = (double)kept[w + i];
        const double g = (double)kept[2 * w + i], o = (double)kept[3 * w + i];
        const double t = tanh_of((double)kept[4 * w + i], e[i]);
        const double dh = (double)c->dy[i] + (double)c->carry[i];
        const double dc = (double)c->cells[i] + dh * o * (1.0 - t * t);
        c->dx[i] = (float)(dc * g * in * (1.0 - in));
        c->dx[w + i] = (float)(dc * (double)c->last[i] * forget * (1.0 - forget));
        c->dx[2 * w + i] = (float)(dc * in * (1.0 - g * g));
        c->dx[3 * w + i] = (float)(dh * t * o * (1.0 - o));
        c->cells[i] = (float)(dc * forget);
    }
}

/* ---- GRU, gates r, z, n; what n gets of the token before is multiplied by r ---- */

KERNEL_CLONES
static void gru_units(const struct recurrent_cell *c, int64_t n)
{
    double v[2 * UNITS], e[2 * UNITS];
    const int64_t w = c->width;
    for (int64_t gate = 0; gate < 2; gate++) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            v[gate * n + i] = (double)c->x[gate * w + i] + (double)c->h[gate * w + i];
            e[gate * n + i] = below(v[gate * n + i]);
        }
    }
    exact_lanes_exp(e, 2 * n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const float hidden = c->h[2 * w + i];
        c->kept[i] = (float)sigmoid_of(v[i], e[i]);
        c->kept[w + i] = (float)sigmoid_of(v[n + i], e[n + i]);
        c->kept[3 * w + i] = hidden;
        v[i] = (double)c->x[2 * w + i] + (double)c->kept[i] * (double)hidden;
        e[i] = below(2.0 * v[i]);
    }
    exact_lanes_exp(e, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const float fresh = (float)tanh_of(v[i], e[i]);
        const double more = (double)c->kept[w + i] * ((double)c->last[i] - (double)fresh);
        c->kept[2 * w + i] = fresh;
        c->y[i] = (float)((double)fresh + more);
    }
}

/* What reaches y of the token before without a weight stays in carry. */
KERNEL_CLONES
static void gru_units_backward(const struct recurrent_cell *c, int64_t n)
{
    const int64_t w = c->width;
    const float *kept = c->kept;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const double r = (double)kept[i], z = (double)kept[w + i];
        const double fresh = (double)kept[2 * w + i];
        const double dh = (double)c->dy[i] + (double)c->carry[i];
        const double dn = dh * (1.0 - z) * (1.0 - fresh * fresh);
        c->dx[i] = (float)(dn * (double)kept[3 * w + i] * r * (1.0 - r));
        c->dx[w + i] = (float)(dh * ((double)c->last[i] - fresh) * z * (1.0 - z));
        c->dx[2 * w + i] = (float)dn;
        c->dh[i] = (float)(dn * r);
        c->carry[i] = (float)(dh * z);
    }
}

/* ---- one gate: tanh, or what is above 0; its derivative follows from what it made ---- */

KERNEL_CLONES
static void tanh_units(const struct recurrent_cell *c, int64_t n)
{
    double v[UNITS], e[UNITS];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        v[i] = (double)c->x[i] + (double)c->h[i];
        e[i] = below(2.0 * v[i]);
    }
    exact_lanes_exp(e, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        c->y[i] = (float)tanh_of(v[i], e[i]);
    }
}

KERNEL_CLONES
static void tanh_units_backward(const struct recurrent_cell *c, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const double y = (double)c->y[i];
        c->dx[i] = (float)(((double)c->dy[i] + (double)c->carry[i]) * (1.0 - y * y));
    }
}

/* A NaN stays one. */
KERNEL_CLONES
static void relu_units(const struct recurrent_cell *c, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const double v = (double)c->x[i] + (double)c->h[i];
        c->y[i] = (float)(v <= 0 ? 0.0 : v);
    }
}

KERNEL_CLONES
static void relu_units_backward(const struct recurrent_cell *c, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const double dh = (double)c->dy[i] + (double)c->carry[i];
        c->dx[i] = (float)(c->y[i] > 0 ? dh : 0.0);
    }
}

/* ---- calls ---- */

typedef void units_fn(const struct recurrent_cell *cell, int64_t n);
static const struct {
    units_fn *forward, *backward;
} cells[] = {
    [CELL_LSTM] = {lstm_units, lstm_units_backward},
    [CELL_GRU] = {gru_units, gru_units_backward},
    [CELL_TANH] = {tanh_units, tanh_units_backward},
    [CELL_RELU] = {relu_units, relu_units_backward},
};

static struct recurrent_cell forward_from(const struct recurrent_cell *c, int64_t u)
{
    struct recurrent_cell from = *c;
    from.x = c->x + u;
    from.h = c->h + u;
    from.last = c->last + u;
    from.cells = c->cells + u;
    from.kept = c->kept + u;
    from.y = c->y + u;
    return from;
}

void recurrent_units(const struct recurrent_cell *c, enum kernel_cell kind)
{
    for (int64_t u = 0; u < c->width; u += UNITS) {
        const struct recurrent_cell units = forward_from(c, u);
        const int64_t n = c->width - u < UNITS ? c->width - u : UNITS;
        cells[kind].forward(&units, n);
    }
}

static struct recurrent_cell backward_from(const struct recurrent_cell *c, int64_t u)
{
    struct recurrent_cell from = *c;
    from.last = c->last + u;
    from.dy = c->dy + u;
    from.carry = c->carry + u;
    from.cells = c->cells + u;
    from.kept = c->kept + u;
    from.y = c->y + u;
    from.dx = c->dx + u;
    from.dh = c->dh + u;
    return from;
}

void recurrent_units_backward(const struct recurrent_cell *c, enum kernel_cell kind)
{
    for (int64_t u = 0; u < c->width; u += UNITS) {
        const struct recurrent_cell units = backward_from(c, u);
        const int64_t n = c->width - u < UNITS ? c->width - u : UNITS;
        cells[kind].backward(&units, n);
    }
}
