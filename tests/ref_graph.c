/* ref_graph.c - runs a whole graph in double with the reference kernels */
#include "tests/ref_graph.h"

#include "libworker/kernel/ref.h"
#include "proto/rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ref_graph {
    const struct graph *graph;
    double **values; /* a tensor */
    int32_t *labels;
};

struct call { /* an op with everything its kernel may want */
    const struct graph *graph;
    int index;
    const struct op *op;
    const struct op *forward; /* of a backward op; NULL: it is none, or of none */
    double *in[GRAPH_OP_TENSORS_MAX];
    double *out[GRAPH_OP_TENSORS_MAX]; /* a scratch buffer where nobody wants the output */
    const struct tensor *t_in[GRAPH_OP_TENSORS_MAX];
    const struct tensor *t_out[GRAPH_OP_TENSORS_MAX];
    struct ref_window window;
    const int32_t *labels;
    int moving;
};

struct ref_graph *ref_graph_create(const struct graph *graph)
{
    struct ref_graph *run = calloc(1, sizeof(*run));
    if (run == NULL) {
        return NULL;
    }
    run->graph = graph;
    int n = graph_n_tensors(graph);
    run->values = calloc((size_t)n, sizeof(*run->values));
    for (int i = 0; run->values != NULL && i < n; i++) {
        size_t count = (size_t)shape_count(&graph_tensor(graph, i)->shape);
        run->values[i] = calloc(count, sizeof(double));
        if (run->values[i] == NULL) {
            ref_graph_destroy(run);
            return NULL;
        }
    }
    int label = graph_label_index(graph);
    size_t rows = label >= 0 ? (size_t)shape_count(&graph_tensor(graph, label)->shape) : 1;
    run->labels = calloc(rows, sizeof(*run->labels));
    if (run->values == NULL || run->labels == NULL) {
        ref_graph_destroy(run);
        return NULL;
    }
    return run;
}

void ref_graph_destroy(struct ref_graph *run)
{
    if (run == NULL) {
        return;
    }
    for (int i = 0; run->values != NULL && i < graph_n_tensors(run->graph); i++) {
        free(run->values[i]);
    }
    free(run->values);
    free(run->labels);
    free(run);
}

void ref_graph_set(struct ref_graph *run, int tensor, const float *values)
{
    int64_t count = shape_count(&graph_tensor(run->graph, tensor)->shape);
    for (int64_t i = 0; i < count; i++) {
        run->values[tensor][i] = (double)values[i];
    }
}

void ref_graph_set_labels(struct ref_graph *run, const int32_t *labels)
{
    const struct tensor *label = graph_tensor(run->graph, graph_label_index(run->graph));
    memcpy(run->labels, labels, (size_t)shape_count(&label->shape) * sizeof(*labels));
}

int ref_graph_init(struct ref_graph *run, uint64_t seed)
{
    for (int i = 0; i < graph_n_tensors(run->graph); i++) {
        const struct tensor *tensor = graph_tensor(run->graph, i);
        if (tensor->role != TENSOR_PARAM && tensor->role != TENSOR_STATE) {
            continue;
        }
        float *values = malloc((size_t)shape_count(&tensor->shape) * sizeof(*values));
        if (values == NULL) {
            return MS_E_NOMEM;
        }
        graph_init_values(tensor, seed, values);
        ref_graph_set(run, i, values);
        free(values);
    }
    return MS_OK;
}

double *ref_graph_values(struct ref_graph *run, int tensor)
{
    assert(tensor >= 0 && tensor < graph_n_tensors(run->graph));
    return run->values[tensor];
}

double ref_graph_loss(struct ref_graph *run)
{
    return run->values[graph_loss(run->graph)][0];
}

int64_t ref_graph_words(const struct graph *graph)
{
    for (int i = 0; i < graph_n_ops(graph); i++) {
        const struct op *op = graph_op(graph, i);
        if (op->kind == OP_EMBEDDING) {
            return graph_tensor(graph, op->in[1])->shape.dim[0];
        }
    }
    return 0;
}

/* ---- one op ---------------------------------------------------------------------------------- */

static struct ref_image image(const struct tensor *tensor)
{
    const int64_t *d = tensor->shape.dim;
    return (struct ref_image){d[0], d[1], d[2], d[3]};
}

static int64_t count_out(const struct call *c)
{
    return shape_count(&c->t_out[0]->shape);
}

static void relu(const struct call *c)
{
    for (int64_t i = 0; i < count_out(c); i++) {
        c->out[0][i] = c->in[0][i] > 0 ? c->in[0][i] : 0;
    }
}

/* Flatten and back: the same elements in the same order. */
static void same(const struct call *c)
{
    memcpy(c->out[0], c->in[0], (size_t)count_out(c) * sizeof(double));
}

static void relu_bwd(const struct call *c)
{
    for (int64_t i = 0; i < count_out(c); i++) {
        c->out[0][i] = c->in[0][i] > 0 ? c->in[1][i] : 0;
    }
}

/* Of the draw 0, 0, 0, and both ways. */
static void dropout(const struct call *c)
{
    const struct shape *shape = &c->t_in[0]->shape;
    const int64_t size = shape_count(shape) / shape->dim[0];
    const int which = c->forward != NULL ? c->op->forward : c->index;
    const uint64_t step = ms_rng_stream(0, 0, 0x64726f70);
    const uint64_t draw = ms_rng_stream(step, (uint64_t)which, 0);
    for (int64_t i = 0; i < count_out(c); i++) {
        const uint64_t row = ms_rng_stream(draw, (uint64_t)(i / size), 0);
        const int64_t place = c->op->of == DROP_VALUES     ? i % size
                              : c->op->of == DROP_CHANNELS ? i % size / (size / shape->dim[1])
                                                           : 0;
        const int is_kept = ms_rng_unit(row, (uint64_t)place) >= c->op->rate;
        c->out[0][i] = is_kept ? c->in[0][i] / (1 - c->op->rate) : 0;
    }
}

/* In evaluation it does nothing. */
static void dropout_forward(const struct call *c)
{
    if (c->moving) {
        same(c);
    } else {
        dropout(c);
    }
}

/* ---- activations: y and dy/dx, without a difference of numbers that are nearly the same ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

double ref_activation(enum op_kind kind, double x, double alpha)
{
    switch (kind) {
    case OP_RELU6:
        return fmin(fmax(x, 0), 6);
    case OP_LEAKY_RELU:
        return x > 0 ? x : alpha * x;
    case OP_ELU:
        return x > 0 ? x : alpha * expm1(x);
    case OP_GELU:
        return x * erfc(-x / sqrt(2)) / 2;
    case OP_GELU_TANH: /* (1 + tanh u) / 2 = sigmoid(2 u) */
        return x * sigmoid(2 * sqrt(M_2_PI) * (x + 0.044715 * x * x * x));
    case OP_SILU:
        return x * sigmoid(x);
    case OP_HARD_SWISH:
        return x * fmin(fmax(x + 3, 0), 6) / 6;
    case OP_SIGMOID:
        return sigmoid(x);
    default:
        return tanh(x);
    }
}

double ref_activation_slope(enum op_kind kind, double x, double alpha)
{
    double u = 2 * sqrt(M_2_PI) * (x + 0.044715 * x * x * x);
    switch (kind) {
    case OP_RELU6:
        return x > 0 && x < 6;
    case OP_LEAKY_RELU:
        return x > 0 ? 1 : alpha;
    case OP_ELU:
        return x > 0 ? 1 : alpha * exp(x);
    case OP_GELU:
        return erfc(-x / sqrt(2)) / 2 + x * exp(-x * x / 2) / sqrt(2 * M_PI);
    case OP_GELU_TANH:
        return sigmoid(u) +
               x * sigmoid(u) * sigmoid(-u) * 2 * sqrt(M_2_PI) * (1 + 3 * 0.044715 * x * x);
    case OP_SILU:
        return sigmoid(x) * (1 + x * sigmoid(-x));
    case OP_HARD_SWISH:
        return x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6;
    case OP_SIGMOID:
        return sigmoid(x) * sigmoid(-x);
    default:
        return 4 * sigmoid(2 * x) * sigmoid(-2 * x);
    }
}

static void activation(const struct call *c)
{
    for (int64_t i = 0; i < count_out(c); i++) {
        c->out[0][i] = ref_activation(c->op->kind, c->in[0][i], c->op->alpha);
    }
}

static void activation_bwd(const struct call *c)
{
    for (int64_t i = 0; i < count_out(c); i++) {
        c->out[0][i] =
            c->in[1][i] * ref_activation_slope(c->forward->kind, c->in[0][i], c->op->alpha);
    }
}

/* A sequence as rows, one a token; other shapes as they are. */
static struct shape rows_of(const struct shape *x)
{
    const struct shape rows = {2, {x->dim[0] * x->dim[1], x->dim[2]}};
    return shape_is_sequence(x) ? rows : *x;
}

/* Over the values of a row, the channels of a pixel: value i of it is `step` further each. */
static void softmax_each(const struct call *c, void (*fn)(const struct call *, int64_t, int64_t))
{
    const struct shape x = rows_of(&c->t_in[0]->shape);
    const int64_t size = shape_count(&x) / x.dim[0] / x.dim[1];
    for (int64_t i = 0; i < x.dim[0] * size; i++) {
        fn(c, i / size * x.dim[1] * size + i % size, size);
    }
}

static void softmax_one(const struct call *c, int64_t at, int64_t step)
{
    const int64_t k = rows_of(&c->t_in[0]->shape).dim[1];
    double max = c->in[0][at], sum = 0;
    for (int64_t i = 0; i < k; i++) {
        max = fmax(max, c->in[0][at + i * step]);
    }
    for (int64_t i = 0; i < k; i++) {
        sum += exp(c->in[0][at + i * step] - max);
    }
    for (int64_t i = 0; i < k; i++) {
        c->out[0][at + i * step] = exp(c->in[0][at + i * step] - max) / sum;
    }
}

static void softmax_bwd_one(const struct call *c, int64_t at, int64_t step)
{
    const int64_t k = rows_of(&c->t_in[0]->shape).dim[1];
    double sum = 0;
    for (int64_t i = 0; i < k; i++) {
        sum += c->in[0][at + i * step] * c->in[1][at + i * step];
    }
    for (int64_t i = 0; i < k; i++) {
        c->out[0][at + i * step] = c->in[0][at + i * step] * (c->in[1][at + i * step] - sum);
    }
}

static void softmax(const struct call *c)
{
    softmax_each(c, softmax_one);
}

static void softmax_bwd(const struct call *c)
{
    softmax_each(c, softmax_bwd_one);
}

static void add(const struct call *c)
{
    for (int64_t i = 0; i < count_out(c); i++) {
        c->out[0][i] = c->in[0][i] + c->in[1][i];
    }
}

/* Where in a tensor lies what value i of another one is multiplied by: dimensions of 1, and those
 * that are not there, are repeated; a gate's first dimension is the batch, a factor's last one the
 * last. */
static int64_t place_in(const struct tensor *in, const struct tensor *of, int64_t i)
{
    const int skip = in->role == TENSOR_PARAM ? of->shape.n_dims - in->shape.n_dims : 0;
    int64_t place = 0, step = 1;
    for (int d = of->shape.n_dims - 1; d >= 0; d--) {
        const int64_t at = i % of->shape.dim[d];
        const int own = d - skip;
        i /= of->shape.dim[d];
        if (own >= 0 && own < in->shape.n_dims) {
            place += in->shape.dim[own] > 1 ? at * step : 0;
            step *= in->shape.dim[own];
        }
    }
    return place;
}

static void product(const struct call *c)
{
    for (int64_t i = 0; i < count_out(c); i++) {
        c->out[0][i] = c->in[0][i] * c->in[1][place_in(c->t_in[1], c->t_in[0], i)];
    }
}

/* Of what was repeated. */
static void product_bwd(const struct call *c)
{
    memset(c->out[0], 0, (size_t)count_out(c) * sizeof(double));
    for (int64_t i = 0; i < shape_count(&c->t_in[0]->shape); i++) {
        c->out[0][place_in(graph_tensor(c->graph, c->forward->in[1]), c->t_in[0], i)] +=
            c->in[0][i] * c->in[1][i];
    }
}

static void linear(const struct call *c)
{
    for (int64_t i = 0; i < count_out(c); i++) {
        c->out[0][i] = c->op->alpha * c->in[0][i] + (c->forward == NULL ? c->op->beta : 0);
    }
}

static void batch_norm(const struct call *c)
{
    if (c->moving) {
        ref_batch_norm_moving(c->in[0], image(c->t_in[0]), c->in[1], c->in[2], c->in[3], c->in[4],
                              c->op->epsilon, c->out[0]);
        return;
    }
    ref_batch_norm(c->in[0], image(c->t_in[0]), c->in[1], c->in[2], c->op->epsilon, c->out[0],
                   c->out[1], c->out[2]);
}

/* Its outputs may be unwanted: those go to scratch. */
static void batch_norm_bwd(const struct call *c)
{
    size_t count = (size_t)shape_count(&c->t_in[0]->shape);
    size_t channels = (size_t)c->t_in[2]->shape.dim[0];
    double *scratch = calloc(count + 2 * channels, sizeof(*scratch));
    if (scratch == NULL) {
        abort(); /* a test helper: nobody could go on */
    }
    double *dx = c->out[0] != NULL ? c->out[0] : scratch;
    double *dgamma = c->out[1] != NULL ? c->out[1] : scratch + count;
    double *dbeta = c->out[2] != NULL ? c->out[2] : scratch + count + channels;
    ref_batch_norm_bwd(c->in[0], image(c->t_in[0]), c->in[1], c->in[2], c->in[3], c->in[4],
                       c->op->epsilon, dx, dgamma, dbeta);
    free(scratch);
}

/* A pixel is a sample of one value a channel, where layer norm is of pixels. */
static struct ref_norm norm_of(const struct op *op, const struct shape *x)
{
    const int64_t size = shape_count(x) / x->dim[0] / x->dim[1];
    struct ref_norm norm = {.n = x->dim[0],
                            .c = x->dim[1],
                            .s = size,
                            .groups = op->groups > 0 ? op->groups : 1,
                            .is_per_value = op->kind == OP_LAYER_NORM,
                            .epsilon = op->epsilon};
    if (op->of_pixels) {
        norm.n *= size;
        norm.s = 1;
    }
    return norm;
}

/* (n, c, s) as (n s, c), and back. */
static double *turned(const double *from, const struct shape *x, int back)
{
    const int64_t c = x->dim[1], s = shape_count(x) / x->dim[0] / c;
    double *to = calloc((size_t)shape_count(x), sizeof(*to));
    if (to == NULL) {
        abort(); /* a test helper: nobody could go on */
    }
    for (int64_t i = 0; from != NULL && i < shape_count(x); i++) {
        const int64_t k = (i / (c * s) * s + i % s) * c + i / s % c;
        *(back ? &to[i] : &to[k]) = *(back ? &from[k] : &from[i]);
    }
    return to;
}

/* Tokens by themselves are rows already. */
static struct shape norm_shape(const struct op *op, const struct shape *x)
{
    return op->of_pixels ? rows_of(x) : *x;
}

static void sample_norm(const struct call *c)
{
    const struct shape as = norm_shape(c->op, &c->t_in[0]->shape);
    const struct shape *shape = &as;
    const struct ref_norm norm = norm_of(c->op, shape);
    if (!c->op->of_pixels) {
        ref_norm(&norm, c->in[0], c->in[1], c->in[2], c->out[0]);
        return;
    }
    double *x = turned(c->in[0], shape, 0);
    double *y = turned(NULL, shape, 0);
    ref_norm(&norm, x, c->in[1], c->in[2], y);
    double *logical = turned(y, shape, 1);
    memcpy(c->out[0], logical, (size_t)shape_count(shape) * sizeof(*logical));
    free(x);
    free(y);
    free(logical);
}

static void sample_norm_bwd(const struct call *c)
{
    const struct shape as = norm_shape(c->forward, &c->t_in[0]->shape);
    const struct shape *shape = &as;
    const struct ref_norm norm = norm_of(c->forward, shape);
    const int of_pixels = c->forward->of_pixels;
    double *x = of_pixels ? turned(c->in[0], shape, 0) : c->in[0];
    double *dy = of_pixels ? turned(c->in[1], shape, 0) : c->in[1];
    double *dx = turned(NULL, shape, 0);
    ref_norm_bwd(&norm, x, dy, c->in[2], dx, c->out[1], c->out[2]);
    double *logical = of_pixels ? turned(dx, shape, 1) : dx;
    if (c->out[0] != NULL) {
        memcpy(c->out[0], logical, (size_t)shape_count(shape) * sizeof(*logical));
    }
    if (of_pixels) {
        free(x);
        free(dy);
        free(logical);
    }
    free(dx);
}

static void conv2d(const struct call *c)
{
    ref_conv2d(c->in[0], image(c->t_in[0]), c->in[1], c->t_in[1]->shape.dim[0], &c->window,
               c->out[0], image(c->t_out[0]));
    if (c->in[2] != NULL) {
        ref_add_bias(c->in[2], c->out[0], image(c->t_out[0]));
    }
}

static void conv2d_bwd_data(const struct call *c)
{
    ref_conv2d_bwd_data(c->in[0], image(c->t_in[0]), c->in[1], &c->window, c->out[0],
                        image(c->t_out[0]));
}

static void conv2d_bwd_weights(const struct call *c)
{
    ref_conv2d_bwd_weights(c->in[0], image(c->t_in[0]), c->in[1], image(c->t_in[1]), &c->window,
                           c->out[0]);
    if (c->out[1] != NULL) {
        ref_bias_bwd(c->in[1], image(c->t_in[1]), c->out[1]);
    }
}

/* The convolution of y by the weight, whose result is x. */
static void transposed(const struct call *c)
{
    ref_conv2d_bwd_data(c->in[0], image(c->t_in[0]), c->in[1], &c->window, c->out[0],
                        image(c->t_out[0]));
}

static void transposed_bwd_data(const struct call *c)
{
    ref_conv2d(c->in[0], image(c->t_in[0]), c->in[1], c->t_in[1]->shape.dim[0], &c->window,
               c->out[0], image(c->t_out[0]));
}

static void transposed_bwd_weights(const struct call *c)
{
    ref_conv2d_bwd_weights(c->in[1], image(c->t_in[1]), c->in[0], image(c->t_in[0]), &c->window,
                           c->out[0]);
}

/* Which value of the bias an element gets. */
static int64_t bias_index(const struct shape *x, int64_t i)
{
    const int64_t size = shape_count(x) / x->dim[0];
    return shape_is_sequence(x) ? i % size : i / (size / x->dim[1]) % x->dim[1];
}

static void bias(const struct call *c)
{
    for (int64_t i = 0; i < count_out(c); i++) {
        c->out[0][i] = c->in[0][i] + c->in[1][bias_index(&c->t_in[0]->shape, i)];
    }
}

static void bias_bwd(const struct call *c)
{
    memset(c->out[0], 0, (size_t)count_out(c) * sizeof(double));
    for (int64_t i = 0; i < shape_count(&c->t_in[0]->shape); i++) {
        c->out[0][bias_index(&c->t_in[0]->shape, i)] += c->in[0][i];
    }
}

static void embedding(const struct call *c)
{
    const int64_t k = c->t_in[1]->shape.dim[1];
    for (int64_t i = 0; i < count_out(c); i++) {
        c->out[0][i] = c->in[1][(int64_t)c->in[0][i / k] * k + i % k];
    }
}

static void embedding_bwd(const struct call *c)
{
    const int64_t k = c->t_out[0]->shape.dim[1];
    memset(c->out[0], 0, (size_t)count_out(c) * sizeof(double));
    for (int64_t i = 0; i < shape_count(&c->t_in[1]->shape); i++) {
        c->out[0][(int64_t)c->in[0][i / k] * k + i % k] += c->in[1][i];
    }
}

/* (n, c, s) as (n, s, c), and back. */
static void turn(const struct call *c, const struct shape *image, int back)
{
    const int64_t k = image->dim[1], s = image->dim[2] * image->dim[3];
    for (int64_t i = 0; i < count_out(c); i++) {
        const int64_t at =
            (i / (k * s) * k + i % k) * s + i / k % s; /* of element i of a sequence */
        c->out[0][back ? at : i] = c->in[0][back ? i : at];
    }
}

static void tokens(const struct call *c)
{
    turn(c, &c->t_in[0]->shape, 0);
}

static void tokens_bwd(const struct call *c)
{
    turn(c, &c->t_out[0]->shape, 1);
}

/* What a query pays attention to: p of key k, and with what is dropped, of the draw 0, 0, 0. */
struct attention {
    int64_t n, tokens, heads, width;
    const double *x;
    const struct op *op;
    uint64_t draw;
    int is_dropped;
};

static struct attention attention_of(const struct call *c)
{
    const int64_t *d = c->t_in[0]->shape.dim;
    const struct op *op = c->forward != NULL ? c->forward : c->op;
    const int64_t heads = op->groups > 0 ? op->groups : 1;
    const uint64_t which = (uint64_t)(c->forward != NULL ? c->op->forward : c->index);
    return (struct attention){.n = d[0],
                              .tokens = d[1],
                              .heads = heads,
                              .width = d[2] / 3 / heads,
                              .x = c->in[0],
                              .op = op,
                              .draw = ms_rng_stream(ms_rng_stream(0, 0, 0x64726f70), which, 0),
                              .is_dropped = !c->moving && op->rate > 0};
}

/* Where channel 0 of part 0 (query), 1 (key) or 2 (value) of a token's head begins. */
static int64_t part_at(const struct attention *a, int64_t pair, int64_t token, int part)
{
    const int64_t c = a->heads * a->width;
    return (pair / a->heads * a->tokens + token) * 3 * c + part * c + pair % a->heads * a->width;
}

static double dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

/* p of all keys. */
static void attend(const struct attention *a, int64_t pair, int64_t query, double *p)
{
    const double *q = a->x + part_at(a, pair, query, 0);
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < a->tokens; k++) {
        const double score = dot(q, a->x + part_at(a, pair, k, 1), a->width);
        p[k] = a->op->is_causal && k > query ? -INFINITY : score / sqrt((double)a->width);
        max = fmax(max, p[k]);
    }
    for (int64_t k = 0; k < a->tokens; k++) {
        p[k] = exp(p[k] - max);
        sum += p[k];
    }
    for (int64_t k = 0; k < a->tokens; k++) {
        p[k] /= sum;
    }
}

/* What p of a key is multiplied by. */
static double kept(const struct attention *a, int64_t pair, int64_t query, int64_t key)
{
    const uint64_t row = ms_rng_stream(a->draw, (uint64_t)(pair * a->tokens + query), 0);
    return !a->is_dropped                                   ? 1
           : ms_rng_unit(row, (uint64_t)key) >= a->op->rate ? 1 / (1 - a->op->rate)
                                                            : 0;
}

static double *keys(const struct attention *a)
{
    double *p = calloc((size_t)a->tokens, sizeof(*p));
    if (p == NULL) {
        abort(); /* a test helper: nobody could go on */
    }
    return p;
}

static void attention(const struct call *c)
{
    const struct attention a = attention_of(c);
    double *p = keys(&a);
    memset(c->out[0], 0, (size_t)count_out(c) * sizeof(double));
    for (int64_t i = 0; i < a.n * a.heads * a.tokens; i++) {
        const int64_t pair = i / a.tokens, query = i % a.tokens;
        const int64_t row = pair / a.heads * a.tokens + query;
        double *y = c->out[0] + (row * a.heads + pair % a.heads) * a.width;
        attend(&a, pair, query, p);
        for (int64_t k = 0; k < a.tokens; k++) {
            for (int64_t j = 0; j < a.width; j++) {
                y[j] += p[k] * kept(&a, pair, query, k) * a.x[part_at(&a, pair, k, 2) + j];
            }
        }
    }
    free(p);
}

/* What one query adds to the gradients of itself, its keys and its values. */
static void attention_bwd_of(const struct attention *a, int64_t pair, int64_t query,
                             const double *p, const double *dy, double *dx)
{
    const double scale = 1 / sqrt((double)a->width);
    double sum = 0;
    for (int64_t k = 0; k < a->tokens; k++) {
        const double *v = a->x + part_at(a, pair, k, 2);
        sum += p[k] * kept(a, pair, query, k) * dot(dy, v, a->width);
    }
    for (int64_t k = 0; k < a->tokens; k++) {
        const int64_t at[] = {part_at(a, pair, query, 0), part_at(a, pair, k, 1),
                              part_at(a, pair, k, 2)};
        const double m = kept(a, pair, query, k);
        const double ds = p[k] * (m * dot(dy, a->x + at[2], a->width) - sum) * scale;
        for (int64_t j = 0; j < a->width; j++) {
            dx[at[0] + j] += ds * a->x[at[1] + j];
            dx[at[1] + j] += ds * a->x[at[0] + j];
            dx[at[2] + j] += m * p[k] * dy[j];
        }
    }
}

static void attention_bwd(const struct call *c)
{
    const struct attention a = attention_of(c);
    double *p = keys(&a);
    memset(c->out[0], 0, (size_t)count_out(c) * sizeof(double));
    for (int64_t i = 0; i < a.n * a.heads * a.tokens; i++) {
        const int64_t pair = i / a.tokens, query = i % a.tokens;
        const int64_t row = pair / a.heads * a.tokens + query;
        const double *dy = c->in[1] + (row * a.heads + pair % a.heads) * a.width;
        attend(&a, pair, query, p);
        attention_bwd_of(&a, pair, query, p, dy, c->out[0]);
    }
    free(p);
}

/* ---- recurrent cells ---- */

static struct ref_recurrent recurrent_of(const struct call *c, const struct op *op, int weight)
{
    const int64_t *d = c->t_in[0]->shape.dim;
    static const struct {
        enum op_kind op;
        enum kernel_cell cell;
        int64_t gates;
    } cells[] = {{OP_LSTM, CELL_LSTM, 4},
                 {OP_GRU, CELL_GRU, 3},
                 {OP_RNN_TANH, CELL_TANH, 1},
                 {OP_RNN_RELU, CELL_RELU, 1}};
    size_t i = 0;
    while (cells[i].op != op->kind) {
        i++;
    }
    return (struct ref_recurrent){.n = d[0],
                                  .tokens = d[1],
                                  .width = d[2] / cells[i].gates,
                                  .cell = cells[i].cell,
                                  .is_reversed = op->is_reversed,
                                  .x = c->in[0],
                                  .w = c->in[weight],
                                  .b = op->n_in > 2 ? c->in[weight + 1] : NULL};
}

static void recurrent(const struct call *c)
{
    const struct ref_recurrent r = recurrent_of(c, c->op, 1);
    if (ref_recurrent(&r, c->out[0]) < 0) {
        abort(); /* a test helper: nobody could go on */
    }
}

static void recurrent_bwd(const struct call *c)
{
    const struct ref_recurrent r = recurrent_of(c, c->forward, 3);
    if (ref_recurrent_bwd(&r, c->in[2], c->out[0], c->out[1], c->out[2]) < 0) {
        abort(); /* a test helper: nobody could go on */
    }
}

static void max_pool(const struct call *c)
{
    ref_max_pool(c->in[0], image(c->t_in[0]), &c->window, c->out[0], image(c->t_out[0]));
}

static void max_pool_bwd(const struct call *c)
{
    ref_max_pool_bwd(c->in[0], image(c->t_in[0]), c->in[2], image(c->t_in[2]), &c->window,
                     c->out[0]);
}

static void avg_pool(const struct call *c)
{
    ref_avg_pool(c->in[0], image(c->t_in[0]), &c->window, c->out[0], image(c->t_out[0]));
}

static void avg_pool_bwd(const struct call *c)
{
    ref_avg_pool_bwd(c->in[0], image(c->t_in[0]), &c->window, c->out[0], image(c->t_out[0]));
}

/* How much of row or column k of n is in row or column i of n_out. */
static double part_in(const struct op *op, int64_t i, int64_t n, int64_t n_out, int64_t before,
                      int64_t k)
{
    if (op->kind == OP_PAD) {
        return i - before == k;
    }
    if (op->mode == UPSAMPLE_NEAREST) {
        return i * n / n_out == k;
    }
    const double scale = (double)n / (double)n_out;
    const double by_corners = n_out > 1 ? (double)((n - 1) * i) / (double)(n_out - 1) : 0;
    const double place = op->mode == UPSAMPLE_LINEAR ? ((double)i + 0.5) * scale - 0.5 : by_corners;
    return fmax(0, 1 - fabs(fmin(fmax(place, 0), (double)(n - 1)) - (double)k));
}

/* The larger image y of x, or backward x as the gradient of y. */
static void resample(const struct op *op, double *x, const struct shape *of, double *y,
                     const struct shape *of_y, int is_backward)
{
    const int64_t h = of->dim[2], w = of->dim[3], y_h = of_y->dim[2], y_w = of_y->dim[3];
    memset(is_backward ? x : y, 0, (size_t)shape_count(is_backward ? of : of_y) * sizeof(double));
    for (int64_t at = 0; at < shape_count(of_y); at++) {
        const int64_t plane = at / (y_h * y_w), i = at / y_w % y_h, j = at % y_w;
        for (int64_t k = 0; k < h * w; k++) {
            const double part = part_in(op, i, h, y_h, op->window.pad_top, k / w) *
                                part_in(op, j, w, y_w, op->window.pad_left, k % w);
            double *of_x = &x[plane * h * w + k];
            *(is_backward ? of_x : &y[at]) += part * (is_backward ? y[at] : *of_x);
        }
    }
}

static void resample_forward(const struct call *c)
{
    resample(c->op, c->in[0], &c->t_in[0]->shape, c->out[0], &c->t_out[0]->shape, 0);
}

static void resample_bwd(const struct call *c)
{
    resample(c->forward, c->out[0], &c->t_out[0]->shape, c->in[0], &c->t_in[0]->shape, 1);
}

/* Values of a sample in one channel. */
static int64_t channel_size(const struct shape *shape)
{
    return shape_count(shape) / (shape->dim[0] * shape->dim[1]);
}

/* Copies between the whole and part i of it, which begins at channel `begin`. */
static void copy_part(double *whole, const struct shape *of, double *part,
                      const struct shape *part_of, int64_t begin, int to_whole)
{
    const int64_t size = channel_size(of);
    for (int64_t k = 0; k < shape_count(part_of); k++) {
        const int64_t row = k / (size * part_of->dim[1]);
        const int64_t in_row = k % (size * part_of->dim[1]);
        double *at = &whole[row * of->dim[1] * size + begin * size + in_row];
        *(to_whole ? at : &part[k]) = to_whole ? part[k] : *at;
    }
}

static void concat(const struct call *c)
{
    const struct shape whole = rows_of(&c->t_out[0]->shape);
    int64_t begin = 0;
    for (int i = 0; i < c->op->n_in; i++) {
        const struct shape part = rows_of(&c->t_in[i]->shape);
        copy_part(c->out[0], &whole, c->in[i], &part, begin, 1);
        begin += part.dim[1];
    }
}

static void concat_bwd(const struct call *c)
{
    const struct shape whole = rows_of(&c->t_in[0]->shape);
    int64_t begin = 0;
    for (int i = 0; i < c->forward->n_in; i++) {
        const struct shape part = rows_of(&graph_tensor(c->graph, c->forward->in[i])->shape);
        if (c->out[i] != NULL) {
            copy_part(c->in[0], &whole, c->out[i], &part, begin, 0);
        }
        begin += part.dim[1];
    }
}

static void slice(const struct call *c)
{
    const struct shape whole = rows_of(&c->t_in[0]->shape);
    const struct shape part = rows_of(&c->t_out[0]->shape);
    copy_part(c->in[0], &whole, c->out[0], &part, c->op->first, 0);
}

static void slice_bwd(const struct call *c)
{
    const struct shape whole = rows_of(&c->t_out[0]->shape);
    const struct shape part = rows_of(&c->t_in[0]->shape);
    memset(c->out[0], 0, (size_t)count_out(c) * sizeof(double));
    copy_part(c->out[0], &whole, c->in[0], &part, c->forward->first, 1);
}

/* Channel q of group p becomes channel p of group q. */
static void shuffle_channels(const struct call *c, int64_t groups)
{
    const struct shape x = rows_of(&c->t_in[0]->shape);
    const int64_t size = channel_size(&x);
    const int64_t wide = x.dim[1] / groups;
    for (int64_t i = 0; i < count_out(c); i++) {
        const int64_t channel = i / size % x.dim[1];
        const int64_t to = channel % wide * groups + channel / wide;
        c->out[0][i + (to - channel) * size] = c->in[0][i];
    }
}

static void shuffle(const struct call *c)
{
    shuffle_channels(c, c->op->groups > 0 ? c->op->groups : 1);
}

static void shuffle_bwd(const struct call *c)
{
    const int64_t groups = c->forward->groups > 0 ? c->forward->groups : 1;
    shuffle_channels(c, rows_of(&c->t_in[0]->shape).dim[1] / groups);
}

static void class_token(const struct call *c)
{
    const int64_t *d = c->t_out[0]->shape.dim;
    for (int64_t i = 0; i < count_out(c); i++) {
        const int64_t n = i / (d[1] * d[2]), at = i % (d[1] * d[2]);
        c->out[0][i] = at < d[2] ? c->in[1][at] : c->in[0][n * (d[1] - 1) * d[2] + at - d[2]];
    }
}

static void class_token_bwd_data(const struct call *c)
{
    const int64_t *d = c->t_in[0]->shape.dim;
    for (int64_t i = 0; i < count_out(c); i++) {
        const int64_t size = (d[1] - 1) * d[2];
        c->out[0][i] = c->in[0][i / size * d[1] * d[2] + d[2] + i % size];
    }
}

static void class_token_bwd_weights(const struct call *c)
{
    const int64_t *d = c->t_in[0]->shape.dim;
    for (int64_t j = 0; j < d[2]; j++) {
        c->out[0][j] = 0;
        for (int64_t n = 0; n < d[0]; n++) {
            c->out[0][j] += c->in[0][n * d[1] * d[2] + j];
        }
    }
}

static void dense(const struct call *c)
{
    const struct shape x = rows_of(&c->t_in[0]->shape);
    ref_dense(c->in[0], c->in[1], c->in[2], x.dim[0], x.dim[1], c->t_in[1]->shape.dim[0],
              c->out[0]);
}

static void dense_bwd_data(const struct call *c)
{
    const int64_t *w = c->t_in[1]->shape.dim;
    ref_dense_bwd_data(c->in[0], c->in[1], rows_of(&c->t_in[0]->shape).dim[0], w[1], w[0],
                       c->out[0]);
}

static void dense_bwd_weights(const struct call *c)
{
    const struct shape x = rows_of(&c->t_in[0]->shape);
    ref_dense_bwd_weights(c->in[0], c->in[1], x.dim[0], x.dim[1],
                          rows_of(&c->t_in[1]->shape).dim[1], c->out[0], c->out[1]);
}

static void softmax_ce(const struct call *c)
{
    const struct shape x = rows_of(&c->t_in[0]->shape);
    c->out[0][0] = ref_softmax_ce(c->in[0], c->labels, x.dim[0], x.dim[1],
                                  c->moving ? 0 : c->op->smoothing, NULL);
}

static void softmax_ce_bwd(const struct call *c)
{
    const struct shape x = rows_of(&c->t_in[0]->shape);
    (void)ref_softmax_ce(c->in[0], c->labels, x.dim[0], x.dim[1], c->op->smoothing, c->out[0]);
}

/* dy NULL: not wanted. */
static double loss_of_target(const struct call *c, enum op_kind kind, double *dy)
{
    const int64_t *d = c->t_in[0]->shape.dim;
    return kind == OP_L1      ? ref_l1(c->in[0], c->in[1], d[0], d[1], dy)
           : kind == OP_HUBER ? ref_huber(c->in[0], c->in[1], d[0], d[1], c->op->alpha, dy)
           : kind == OP_BCE   ? ref_bce(c->in[0], c->in[1], d[0], d[1], dy)
                              : ref_mse(c->in[0], c->in[1], d[0], d[1], dy);
}

static void target_loss(const struct call *c)
{
    c->out[0][0] = loss_of_target(c, c->op->kind, NULL);
}

static void target_bwd(const struct call *c)
{
    (void)loss_of_target(c, c->forward->kind, c->out[0]);
}

typedef void call_fn(const struct call *call);

/* A row an op. */
static call_fn *const references[OP_KINDS] = {
    [OP_CONV2D] = conv2d,
    [OP_BATCH_NORM] = batch_norm,
    [OP_CONV_TRANSPOSE2D] = transposed,
    [OP_CONV_TRANSPOSE2D_BWD_DATA] = transposed_bwd_data,
    [OP_CONV_TRANSPOSE2D_BWD_WEIGHTS] = transposed_bwd_weights,
    [OP_BIAS] = bias,
    [OP_BIAS_BWD] = bias_bwd,
    [OP_EMBEDDING] = embedding,
    [OP_EMBEDDING_BWD] = embedding_bwd,
    [OP_TOKENS] = tokens,
    [OP_TOKENS_BWD] = tokens_bwd,
    [OP_ATTENTION] = attention,
    [OP_ATTENTION_BWD] = attention_bwd,
    [OP_LSTM] = recurrent,
    [OP_GRU] = recurrent,
    [OP_RNN_TANH] = recurrent,
    [OP_RNN_RELU] = recurrent,
    [OP_RECURRENT_BWD] = recurrent_bwd,
    [OP_LAYER_NORM] = sample_norm,
    [OP_GROUP_NORM] = sample_norm,
    [OP_NORM_BWD] = sample_norm_bwd,
    [OP_RELU] = relu,
    [OP_SOFTMAX] = softmax,
    [OP_SOFTMAX_BWD] = softmax_bwd,
    [OP_DROPOUT] = dropout_forward,
    [OP_DROPOUT_BWD] = dropout,
    [OP_RELU6] = activation,
    [OP_LEAKY_RELU] = activation,
    [OP_ELU] = activation,
    [OP_GELU] = activation,
    [OP_GELU_TANH] = activation,
    [OP_SILU] = activation,
    [OP_HARD_SWISH] = activation,
    [OP_SIGMOID] = activation,
    [OP_TANH] = activation,
    [OP_ADD] = add,
    [OP_MUL] = product,
    [OP_GATE] = product,
    [OP_GATE_BWD_DATA] = product,
    [OP_SCALE] = product,
    [OP_LINEAR] = linear,
    [OP_MUL_BWD] = product,
    [OP_GATE_BWD] = product_bwd,
    [OP_SCALE_BWD_DATA] = product,
    [OP_SCALE_BWD_WEIGHTS] = product_bwd,
    [OP_LINEAR_BWD] = linear,
    [OP_MAX_POOL] = max_pool,
    [OP_AVG_POOL] = avg_pool,
    [OP_PAD] = resample_forward,
    [OP_UPSAMPLE] = resample_forward,
    [OP_PAD_BWD] = resample_bwd,
    [OP_UPSAMPLE_BWD] = resample_bwd,
    [OP_CONCAT] = concat,
    [OP_SLICE] = slice,
    [OP_SLICE_BWD] = slice_bwd,
    [OP_SHUFFLE] = shuffle,
    [OP_SHUFFLE_BWD] = shuffle_bwd,
    [OP_CLASS_TOKEN] = class_token,
    [OP_CLASS_TOKEN_BWD_DATA] = class_token_bwd_data,
    [OP_CLASS_TOKEN_BWD_WEIGHTS] = class_token_bwd_weights,
    [OP_FLATTEN] = same,
    [OP_DENSE] = dense,
    [OP_SOFTMAX_CE] = softmax_ce,
    [OP_MSE] = target_loss,
    [OP_L1] = target_loss,
    [OP_HUBER] = target_loss,
    [OP_BCE] = target_loss,
    [OP_CONV2D_BWD_DATA] = conv2d_bwd_data,
    [OP_CONV2D_BWD_WEIGHTS] = conv2d_bwd_weights,
    [OP_BATCH_NORM_BWD] = batch_norm_bwd,
    [OP_RELU_BWD] = relu_bwd,
    [OP_ACTIVATION_BWD] = activation_bwd,
    [OP_MAX_POOL_BWD] = max_pool_bwd,
    [OP_AVG_POOL_BWD] = avg_pool_bwd,
    [OP_CONCAT_BWD] = concat_bwd,
    [OP_FLATTEN_BWD] = same,
    [OP_DENSE_BWD_DATA] = dense_bwd_data,
    [OP_DENSE_BWD_WEIGHTS] = dense_bwd_weights,
    [OP_SOFTMAX_CE_BWD] = softmax_ce_bwd,
    [OP_TARGET_BWD] = target_bwd,
    [OP_SUM] = add,
};

int ref_graph_knows(enum op_kind kind)
{
    return references[kind] != NULL;
}

static void run_op(struct ref_graph *run, int index, int moving)
{
    const struct op *op = graph_op(run->graph, index);
    struct call call = {.graph = run->graph,
                        .index = index,
                        .op = op,
                        .forward = op->forward >= 0 ? graph_op(run->graph, op->forward) : NULL,
                        .labels = run->labels,
                        .moving = moving};
    const struct op_window *w = &op->window;
    call.window = (struct ref_window){w->kernel_h, w->kernel_w, w->stride_h,   w->stride_w,
                                      w->pad_top,  w->pad_left, w->pad_bottom, w->pad_right,
                                      w->gap_h,    w->gap_w,    op->groups};
    for (int i = 0; i < op->n_in; i++) {
        call.t_in[i] = graph_tensor(run->graph, op->in[i]);
        call.in[i] = run->values[op->in[i]];
    }
    for (int i = 0; i < op->n_out; i++) {
        if (op->out[i] >= 0) {
            call.t_out[i] = graph_tensor(run->graph, op->out[i]);
            call.out[i] = run->values[op->out[i]];
        }
    }
    references[op->kind](&call);
}

static void run_ops(struct ref_graph *run, int n, int moving)
{
    for (int i = 0; i < n; i++) {
        run_op(run, i, moving);
    }
}

void ref_graph_run(struct ref_graph *run)
{
    run_ops(run, graph_n_ops(run->graph), 0);
}

void ref_graph_run_forward(struct ref_graph *run)
{
    run_ops(run, graph_n_forward_ops(run->graph), 0);
}

void ref_graph_evaluate(struct ref_graph *run)
{
    run_ops(run, graph_n_forward_ops(run->graph), 1);
}

void ref_graph_commit_stats(struct ref_graph *run)
{
    for (int t = 0; t < graph_n_tensors(run->graph); t++) {
        const struct tensor *stat = graph_tensor(run->graph, t);
        if (stat->role != TENSOR_STAT) {
            continue;
        }
        double n = (double)stat->stat_count;
        double unbiased = stat->is_variance && n > 1 ? n / (n - 1) : 1;
        double momentum = graph_tensor(run->graph, stat->of)->momentum;
        double *moving = run->values[stat->of];
        for (int64_t i = 0; i < shape_count(&stat->shape); i++) {
            moving[i] = momentum * moving[i] + (1 - momentum) * run->values[t][i] * unbiased;
        }
    }
}
