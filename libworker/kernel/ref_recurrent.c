/* ref_recurrent.c - recurrent cells by their definition, in double: the oracle of the tests */
#include "libworker/kernel/ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct run { /* of a sample */
    const struct ref_recurrent *r;
    int64_t sample;
    double *gates; /* (tokens, 4, width): what they are; of a GRU r, z, n and what n gets of h */
    double *cells; /* (tokens + 1, width): c, and h behind so many tokens */
    double *hidden;
};

static int64_t gates_of(const struct ref_recurrent *r)
{
    return r->cell == CELL_LSTM ? 4 : r->cell == CELL_GRU ? 3 : 1;
}

static int64_t token_of(const struct ref_recurrent *r, int64_t step)
{
    return r->is_reversed ? r->tokens - 1 - step : step;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* A row of the weight times what is behind so many tokens, plus the bias. */
static double of_hidden(const struct run *run, int64_t step, int64_t row)
{
    const struct ref_recurrent *r = run->r;
    double sum = r->b != NULL ? r->b[row] : 0;
    for (int64_t k = 0; k < r->width; k++) {
        sum += r->w[row * r->width + k] * run->hidden[step * r->width + k];
    }
    return sum;
}

static void forward_unit(const struct run *run, int64_t step, int64_t j)
{
    const struct ref_recurrent *r = run->r;
    const int64_t w = r->width;
    const int64_t row = run->sample * r->tokens + token_of(r, step);
    const double *x = r->x + row * gates_of(r) * w + j;
    double *g = run->gates + step * 4 * w + j;
    double a[4];
    for (int64_t i = 0; i < gates_of(r); i++) {
        a[i] = of_hidden(run, step, i * w + j);
    }
    if (r->cell == CELL_TANH || r->cell == CELL_RELU) {
        const double v = x[0] + a[0];
        g[0] = r->cell == CELL_TANH ? tanh(v) : v > 0 ? v : 0;
        run->hidden[(step + 1) * w + j] = g[0];
        return;
    }
    if (r->cell == CELL_GRU) {
        g[0] = sigmoid(x[0] + a[0]);
        g[w] = sigmoid(x[w] + a[1]);
        g[2 * w] = tanh(x[2 * w] + g[0] * a[2]);
        g[3 * w] = a[2];
        run->hidden[(step + 1) * w + j] = (1 - g[w]) * g[2 * w] + g[w] * run->hidden[step * w + j];
        return;
    }
    for (int64_t i = 0; i < 4; i++) {
        g[i * w] = i == 2 ? tanh(x[i * w] + a[i]) : sigmoid(x[i * w] + a[i]);
    }
    double *c = run->cells + step * w + j;
    c[w] = g[w] * c[0] + g[0] * g[2 * w];
    run->hidden[(step + 1) * w + j] = g[3 * w] * tanh(c[w]);
}

static void forward(const struct run *run)
{
    for (int64_t step = 0; step < run->r->tokens; step++) {
        for (int64_t j = 0; j < run->r->width; j++) {
            forward_unit(run, step, j);
        }
    }
}

static int run_init(struct run *run, const struct ref_recurrent *r)
{
    const size_t floats = (size_t)((r->tokens + 1) * r->width);
    *run = (struct run){.r = r};
    run->gates = calloc(4 * floats, sizeof(double));
    run->cells = calloc(floats, sizeof(double));
    run->hidden = calloc(floats, sizeof(double));
    return run->gates != NULL && run->cells != NULL && run->hidden != NULL ? 0 : -1;
}

static void run_fini(struct run *run)
{
    free(run->gates);
    free(run->cells);
    free(run->hidden);
}

int ref_recurrent(const struct ref_recurrent *r, double *y)
{
    struct run run;
    int rc = run_init(&run, r);
    for (run.sample = 0; run.sample < r->n && rc == 0; run.sample++) {
        forward(&run);
        for (int64_t step = 0; step < r->tokens; step++) {
            const int64_t row = run.sample * r->tokens + token_of(r, step);
            memcpy(y + row * r->width, run.hidden + (step + 1) * r->width,
                   (size_t)r->width * sizeof(double));
        }
    }
    run_fini(&run);
    return rc;
}

/* ---- gradients ---- */

struct back {
    struct run run;
    double *dh, *dc; /* from the tokens behind */
    double *da;      /* (gates, width): of what the gates get of h */
    double *dx, *dw, *db;
};

static void lstm_unit_back(struct back *b, int64_t step, int64_t j, double dh, double *dx)
{
    const int64_t w = b->run.r->width;
    const double *g = b->run.gates + step * 4 * w + j, *c = b->run.cells + step * w + j;
    const double t = tanh(c[w]);
    const double dc = b->dc[j] + dh * g[3 * w] * (1 - t * t);
    dx[0] = dc * g[2 * w] * g[0] * (1 - g[0]);
    dx[w] = dc * c[0] * g[w] * (1 - g[w]);
    dx[2 * w] = dc * g[0] * (1 - g[2 * w] * g[2 * w]);
    dx[3 * w] = dh * t * g[3 * w] * (1 - g[3 * w]);
    for (int64_t i = 0; i < 4; i++) {
        b->da[i * w + j] = dx[i * w];
    }
    b->dc[j] = dc * g[w];
    b->dh[j] = 0;
}

static void gru_unit_back(struct back *b, int64_t step, int64_t j, double dh, double *dx)
{
    const int64_t w = b->run.r->width;
    const double *g = b->run.gates + step * 4 * w + j;
    const double dn = dh * (1 - g[w]) * (1 - g[2 * w] * g[2 * w]);
    dx[0] = dn * g[3 * w] * g[0] * (1 - g[0]);
    dx[w] = dh * (b->run.hidden[step * w + j] - g[2 * w]) * g[w] * (1 - g[w]);
    dx[2 * w] = dn;
    b->da[j] = dx[0];
    b->da[w + j] = dx[w];
    b->da[2 * w + j] = dn * g[0];
    b->dh[j] = dh * g[w];
}

static void plain_unit_back(struct back *b, int64_t step, int64_t j, double dh, double *dx)
{
    const double h = b->run.gates[step * 4 * b->run.r->width + j];
    const double slope = b->run.r->cell == CELL_TANH ? 1 - h * h : h > 0;
    dx[0] = dh * slope;
    b->da[j] = dx[0];
    b->dh[j] = 0;
}

static void step_back(struct back *b, const double *dy, int64_t step)
{
    const struct ref_recurrent *r = b->run.r;
    const int64_t w = r->width, row = b->run.sample * r->tokens + token_of(r, step);
    for (int64_t j = 0; j < w; j++) {
        const double dh = dy[row * w + j] + b->dh[j];
        double *dx = b->dx + row * gates_of(r) * w + j;
        if (r->cell == CELL_LSTM) {
            lstm_unit_back(b, step, j, dh, dx);
        } else if (r->cell == CELL_GRU) {
            gru_unit_back(b, step, j, dh, dx);
        } else {
            plain_unit_back(b, step, j, dh, dx);
        }
    }
    for (int64_t i = 0; i < gates_of(r) * w; i++) {
        for (int64_t k = 0; k < w; k++) {
            b->dw[i * w + k] += b->da[i] * b->run.hidden[step * w + k];
            b->dh[k] += b->da[i] * r->w[i * w + k];
        }
        if (r->b != NULL) {
            b->db[i] += b->da[i];
        }
    }
}

static void all_back(struct back *b, const double *dy)
{
    const struct ref_recurrent *r = b->run.r;
    const size_t rows = (size_t)(gates_of(r) * r->width), row = (size_t)r->width * sizeof(double);
    memset(b->dw, 0, rows * row);
    if (r->b != NULL) {
        memset(b->db, 0, rows * sizeof(double));
    }
    for (b->run.sample = 0; b->run.sample < r->n; b->run.sample++) {
        forward(&b->run);
        memset(b->dh, 0, row);
        memset(b->dc, 0, row);
        for (int64_t step = r->tokens - 1; step >= 0; step--) {
            step_back(b, dy, step);
        }
    }
}

int ref_recurrent_bwd(const struct ref_recurrent *r, const double *dy, double *dx, double *dw,
                      double *db)
{
    struct back b = {.dx = dx, .dw = dw, .db = db};
    int rc = run_init(&b.run, r);
    b.dh = calloc((size_t)r->width, sizeof(double));
    b.dc = calloc((size_t)r->width, sizeof(double));
    b.da = calloc((size_t)(gates_of(r) * r->width), sizeof(double));
    rc = b.dh == NULL || b.dc == NULL || b.da == NULL ? -1 : rc;
    if (rc == 0) {
        all_back(&b, dy);
    }
    run_fini(&b.run);
    free(b.dh);
    free(b.dc);
    free(b.da);
    return rc;
}
