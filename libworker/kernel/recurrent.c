/* recurrent.c - recurrent cells over sequences, around somebody's matrix products
 *
 * A block of samples goes through all its tokens on one thread: nobody waits for anybody between
 * two tokens, and how many samples a block has follows from how many there are, so that no bit
 * depends on the team. */
#include "libworker/kernel/kernel.h"
#include "libworker/kernel/recurrent_units.h"

#include <string.h>

enum {
    BLOCKS = 8,       /* of a batch, ... */
    ROWS_LEAST = 8,   /* ... each of so many samples: a product of fewer waits for its weights */
    ROWS_MOST = 32,   /* ... and of no more: those come out of the cache as fast */
    WEIGHT_ROWS = 64, /* of the gradient of a weight: a piece that one thread makes */
    LINE = 16,        /* floats of a cache line */
};

struct block { /* of samples, on one thread */
    const struct kernel_recurrent *r;
    int64_t first, n; /* samples */
    /* scratch: a row a sample */
    float *gates; /* forward: of what was made before */
    float *cells; /* LSTM: c; backward: its gradient */
    float *carry; /* backward: gradient of y from the token behind */
    float *kept;  /* of one token, where nobody wants them */
    float *zeros; /* before the first token */
};

static int64_t gates_of(const struct kernel_recurrent *r)
{
    static const int gates[] = {[CELL_LSTM] = 4, [CELL_GRU] = 3, [CELL_TANH] = 1, [CELL_RELU] = 1};
    return gates[r->cell];
}

int64_t kernel_recurrent_kept(const struct kernel_recurrent *r)
{
    return gates_of(r) > 1 ? (gates_of(r) + 1) * r->width : 0;
}

static int is_gru(const struct kernel_recurrent *r)
{
    return r->cell == CELL_GRU;
}

static int64_t rows_of(const struct kernel_recurrent *r)
{
    const int64_t rows = (r->n + BLOCKS - 1) / BLOCKS;
    return rows < ROWS_LEAST ? ROWS_LEAST : rows > ROWS_MOST ? ROWS_MOST : rows;
}

/* ---- scratch ---- */

static int64_t lines(int64_t floats)
{
    return (floats + LINE - 1) / LINE * LINE;
}

/* Forward: the weight turned; backward, GRU: the gradient of what the last gate gets of the token
 * before, which is not that of what it gets of x. */
static int64_t common_floats(const struct kernel_recurrent *r, int is_backward)
{
    return !is_backward ? lines(gates_of(r) * r->width * r->width)
           : is_gru(r)  ? lines(r->n * r->tokens * r->width)
                        : 0;
}

static int64_t thread_floats(const struct kernel_recurrent *r, int is_backward)
{
    const int64_t row = is_backward ? 2 * r->width : (gates_of(r) + 1) * r->width;
    return lines(rows_of(r) * row) + lines(kernel_recurrent_kept(r)) + lines(r->width);
}

size_t kernel_recurrent_scratch(const struct kernel_recurrent *r, int is_backward, int threads)
{
    const int64_t floats = common_floats(r, is_backward) + thread_floats(r, is_backward) * threads;
    return (size_t)floats * sizeof(float);
}

static struct block block_of(const struct kernel_recurrent *r, int64_t i, int is_backward,
                             int thread)
{
    const int64_t rows = rows_of(r), left = r->n - i * rows;
    float *at = (float *)r->scratch + common_floats(r, is_backward) +
                thread * thread_floats(r, is_backward);
    struct block b = {.r = r, .first = i * rows, .n = left < rows ? left : rows, .cells = at};
    b.gates = b.carry = at + rows * r->width;
    b.kept = at + lines(rows * (is_backward ? 2 : gates_of(r) + 1) * r->width);
    b.zeros = b.kept + lines(kernel_recurrent_kept(r));
    memset(b.cells, 0, (size_t)(b.n * r->width) * sizeof(float));
    memset(b.zeros, 0, (size_t)r->width * sizeof(float));
    return b;
}

/* The token that comes after so many others. */
static int64_t place(const struct kernel_recurrent *r, int64_t step)
{
    return r->is_reversed ? r->tokens - 1 - step : step;
}

/* Where values of a token begin, of so many each. */
static int64_t at(const struct block *b, int64_t row, int64_t token, int64_t width)
{
    return ((b->first + row) * b->r->tokens + token) * width;
}

/* ---- blocks ---- */

static void forward_row(const struct block *b, int64_t row, int64_t step)
{
    const struct kernel_recurrent *r = b->r;
    const int64_t w = r->width, gates = gates_of(r), t = place(r, step);
    const int64_t kept = kernel_recurrent_kept(r);
    const struct recurrent_cell c = {
        .width = w,
        .x = r->x + at(b, row, t, gates * w),
        .h = b->gates + row * gates * w,
        .last = step > 0 ? r->y + at(b, row, place(r, step - 1), w) : b->zeros,
        .cells = b->cells + row * w,
        .kept = r->kept != NULL ? r->kept + at(b, row, t, kept) : b->kept,
        .y = r->y + at(b, row, t, w)};
    recurrent_units(&c, r->cell);
}

/* Of each sample: the bias, and y of the token before times the weight. */
static int make_gates(const struct block *b, int64_t step)
{
    const struct kernel_recurrent *r = b->r;
    const int64_t w = r->width, width = gates_of(r) * w;
    for (int64_t row = 0; row < b->n; row++) {
        const size_t bytes = (size_t)width * sizeof(float);
        if (r->bias != NULL) {
            memcpy(b->gates + row * width, r->bias, bytes);
        } else {
            memset(b->gates + row * width, 0, bytes);
        }
    }
    if (step == 0) {
        return 0;
    }
    const struct kernel_product p = {.m = b->n,
                                     .n = width,
                                     .k = w,
                                     .alpha = 1.0F,
                                     .beta = 1.0F,
                                     .a = r->y + at(b, 0, place(r, step - 1), w),
                                     .lda = r->tokens * w,
                                     .b = r->scratch, /* the weight turned */
                                     .ldb = width,
                                     .c = b->gates,
                                     .ldc = width};
    return r->product(&p);
}

static int forward(const struct block *b)
{
    int rc = 0;
    for (int64_t step = 0; step < b->r->tokens && rc == 0; step++) {
        rc = make_gates(b, step);
        for (int64_t row = 0; row < b->n && rc == 0; row++) {
            forward_row(b, row, step);
        }
    }
    return rc;
}

static void backward_row(const struct block *b, int64_t row, int64_t step)
{
    const struct kernel_recurrent *r = b->r;
    const int64_t w = r->width, t = place(r, step), kept = kernel_recurrent_kept(r);
    const int64_t before = step > 0 ? place(r, step - 1) : 0;
    const float *last = b->zeros;
    if (step > 0) {
        last = r->cell == CELL_LSTM ? r->kept + at(b, row, before, kept) + 4 * w
                                    : r->y + at(b, row, before, w);
    }
    const struct recurrent_cell c = {.width = w,
                                     .last = last,
                                     .dy = r->dy + at(b, row, t, w),
                                     .carry = b->carry + row * w,
                                     .cells = b->cells + row * w,
                                     .kept = kept > 0 ? r->kept + at(b, row, t, kept) : b->kept,
                                     .y = r->y + at(b, row, t, w),
                                     .dx = r->dx + at(b, row, t, gates_of(r) * w),
                                     .dh =
                                         (float *)r->scratch + (is_gru(r) ? at(b, row, t, w) : 0)};
    recurrent_units_backward(&c, r->cell);
}

/* carry = dgates times rows of the weight, + beta carry. */
static int carry_gates(const struct block *b, const float *dgates, int64_t width, int64_t stride,
                       const float *weight, float beta)
{
    const int64_t w = b->r->width;
    const struct kernel_product p = {.m = b->n,
                                     .n = w,
                                     .k = width,
                                     .alpha = 1.0F,
                                     .beta = beta,
                                     .a = dgates,
                                     .lda = b->r->tokens * stride,
                                     .b = weight,
                                     .ldb = w,
                                     .c = b->carry,
                                     .ldc = w};
    return b->r->product(&p);
}

static int carry_back(const struct block *b, int64_t token)
{
    const struct kernel_recurrent *r = b->r;
    const int64_t w = r->width, gates = gates_of(r);
    const float *dx = r->dx + at(b, 0, token, gates * w);
    if (!is_gru(r)) {
        return carry_gates(b, dx, gates * w, gates * w, r->weight, 0);
    }
    int rc = carry_gates(b, dx, 2 * w, gates * w, r->weight, 1);
    const float *dh = (const float *)r->scratch + at(b, 0, token, w);
    return rc < 0 ? rc : carry_gates(b, dh, w, w, r->weight + 2 * w * w, 1);
}

static int backward(const struct block *b)
{
    const struct kernel_recurrent *r = b->r;
    int rc = 0;
    memset(b->carry, 0, (size_t)(b->n * r->width) * sizeof(float));
    for (int64_t step = r->tokens - 1; step >= 0 && rc == 0; step--) {
        for (int64_t row = 0; row < b->n; row++) {
            backward_row(b, row, step);
        }
        rc = step > 0 ? carry_back(b, place(r, step)) : 0;
    }
    return rc;
}

static int run_blocks(const struct kernel_recurrent *r, int is_backward, int threads)
{
    const int64_t blocks = (r->n + rows_of(r) - 1) / rows_of(r);
    int worst = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(min : worst)
    for (int t = 0; t < threads; t++) {
        for (int64_t i = blocks * t / threads; i < blocks * (t + 1) / threads; i++) {
            const struct block b = block_of(r, i, is_backward, t);
            const int rc = is_backward ? backward(&b) : forward(&b);
            worst = rc < worst ? rc : worst;
        }
    }
    return worst;
}

/* ---- gradients of weight and bias ---- */

/* Gradients of what a gate gets of the token before, from one of its rows on: a row a token. */
struct gate_rows {
    const float *from;
    int64_t stride;
    int64_t n;
};

/* Piece i of a gate's rows. */
static struct gate_rows rows_of_gate(const struct kernel_recurrent *r, int64_t gate, int64_t i)
{
    const int64_t first = i * WEIGHT_ROWS, left = r->width - first;
    struct gate_rows rows = {.stride = gates_of(r) * r->width,
                             .n = left < WEIGHT_ROWS ? left : WEIGHT_ROWS};
    rows.from = r->dx + gate * r->width + first;
    if (is_gru(r) && gate == 2) {
        rows.stride = r->width;
        rows.from = (const float *)r->scratch + first;
    }
    return rows;
}

/* Sample by sample: the gradients of all tokens but the first, times y of those before them. */
static int sum_weight(const struct kernel_recurrent *r, const struct gate_rows *rows, float *dw)
{
    const int64_t w = r->width, more = r->tokens - 1;
    int rc = 0;
    if (more == 0) {
        memset(dw, 0, (size_t)(rows->n * w) * sizeof(float));
    }
    for (int64_t i = 0; i < r->n && more > 0 && rc == 0; i++) {
        const int64_t first = i * r->tokens;
        const struct kernel_product p = {.is_a_turned = 1,
                                         .m = rows->n,
                                         .n = w,
                                         .k = more,
                                         .alpha = 1.0F,
                                         .beta = i > 0 ? 1.0F : 0.0F,
                                         .a = rows->from +
                                              (first + (r->is_reversed ? 0 : 1)) * rows->stride,
                                         .lda = rows->stride,
                                         .b = r->y + (first + (r->is_reversed ? 1 : 0)) * w,
                                         .ldb = w,
                                         .c = dw,
                                         .ldc = w};
        rc = r->product(&p);
    }
    return rc;
}

/* Of all tokens, in their order. */
KERNEL_CLONES
static void sum_bias(const struct gate_rows *rows, int64_t tokens, float *db)
{
    double sums[WEIGHT_ROWS] = {0};
    for (int64_t t = 0; t < tokens; t++) {
        const float *row = rows->from + t * rows->stride;
#pragma omp simd
        for (int64_t i = 0; i < rows->n; i++) {
            sums[i] += (double)row[i];
        }
    }
    for (int64_t i = 0; i < rows->n; i++) {
        db[i] = (float)sums[i];
    }
}

static int sum_gradients(const struct kernel_recurrent *r, int threads)
{
    (void)threads; /* where OpenMP is left out */
    const int64_t pieces = (r->width + WEIGHT_ROWS - 1) / WEIGHT_ROWS;
    int worst = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(min : worst)
    for (int64_t i = 0; i < gates_of(r) * pieces; i++) {
        const struct gate_rows rows = rows_of_gate(r, i / pieces, i % pieces);
        const int64_t row = i / pieces * r->width + i % pieces * WEIGHT_ROWS;
        const int rc = sum_weight(r, &rows, r->dweight + row * r->width);
        worst = rc < worst ? rc : worst;
        if (r->dbias != NULL) {
            sum_bias(&rows, r->n * r->tokens, r->dbias + row);
        }
    }
    return worst;
}

/* ---- calls ---- */

/* Rows of the product's other side, as it reads them fastest. */
static void turn_weight(const struct kernel_recurrent *r, float *turned, int threads)
{
    (void)threads; /* where OpenMP is left out */
    const int64_t w = r->width, width = gates_of(r) * w;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t first = 0; first < w; first += LINE) {
        const int64_t end = first + LINE < w ? first + LINE : w;
        for (int64_t g = 0; g < width; g++) {
            for (int64_t k = first; k < end; k++) {
                turned[k * width + g] = r->weight[g * w + k];
            }
        }
    }
}

int kernel_recurrent_forward(const struct kernel_recurrent *recurrent, int threads)
{
    turn_weight(recurrent, recurrent->scratch, threads);
    return run_blocks(recurrent, 0, threads);
}

int kernel_recurrent_backward(const struct kernel_recurrent *recurrent, int threads)
{
    int rc = run_blocks(recurrent, 1, threads);
    return rc < 0 ? rc : sum_gradients(recurrent, threads);
}
