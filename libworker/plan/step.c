/* step.c - runs one step: a oneDNN primitive or one of our kernels */
#include "libworker/plan/internal.h"

#include "proto/rng.h"

#include <omp.h>
#include <string.h>

enum {
    PART_FLOATS =
        16384, /* 64 KiB: below it a second thread costs more (about 2 us) than it saves */
    TEAM_PARTS =
        4, /* so many threads for each part are worth waking, which takes them about that */
    DRAW_FLOATS = 4,              /* a random number takes as long as so many of them */
    DROPOUT_PURPOSE = 0x64726f70, /* keeps its streams apart from others of the seed */
    EXP_FLOATS = 16, /* an exponential takes as long as so many floats of a pass over memory */
};

/* One, or all: libgomp ends the threads that a smaller team leaves over and makes them again for
 * the next larger one. */
static int threads_for(const struct plan *plan, size_t floats)
{
    size_t parts = floats / PART_FLOATS;
    int is_worth = parts >= 2 && parts * TEAM_PARTS >= (size_t)plan->threads;
    return is_worth ? plan->threads : 1;
}

static void elementwise_part(const struct step *step, size_t begin, size_t count)
{
    const float *a = (const float *)step->ptr[ELT_A] + begin;
    const float *b = step->ptr[ELT_B] != NULL ? (const float *)step->ptr[ELT_B] + begin : NULL;
    float *y = (float *)step->ptr[ELT_Y] + begin;
    switch (step->kind) {
    case STEP_RELU:
        kernel_relu(y, a, count);
        break;
    case STEP_RELU_BACKWARD:
        kernel_relu_backward(y, a, b, count);
        break;
    case STEP_RELU6:
        kernel_relu6(y, a, count);
        break;
    case STEP_RELU6_BACKWARD:
        kernel_relu6_backward(y, a, b, count);
        break;
    case STEP_ADD:
        kernel_add(y, a, b, count);
        break;
    case STEP_MUL:
        kernel_mul(y, a, b, count);
        break;
    case STEP_LINEAR:
        kernel_linear(y, a, step->factor, step->offset, count);
        break;
    default:
        kernel_add_relu(y, a, b, count);
        break;
    }
}

static void run_elementwise(const struct plan *plan, const struct step *step)
{
    int threads = threads_for(plan, step->count);
    if (threads == 1) {
        elementwise_part(step, 0, step->count);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        size_t n = (size_t)omp_get_num_threads();
        size_t i = (size_t)omp_get_thread_num();
        size_t lines = (step->count + PLAN_LANES - 1) / PLAN_LANES;
        size_t begin = lines * i / n * PLAN_LANES;
        size_t end = lines * (i + 1) / n * PLAN_LANES;
        end = end < step->count ? end : step->count;
        if (begin < end) {
            elementwise_part(step, begin, end - begin);
        }
    }
}

static int bn_threads(const struct plan *plan, const struct step *step)
{
    const struct kernel_layout *l = &step->layout;
    return threads_for(plan, (size_t)(l->n * l->n_blocks * l->spatial * l->block));
}

static void run_bn_forward(const struct plan *plan, const struct step *step)
{
    const struct kernel_bn bn = {.layout = step->layout,
                                 .x = step->ptr[BN_X],
                                 .mean = step->ptr[BN_MEAN],
                                 .variance = step->ptr[BN_VARIANCE],
                                 .gamma = step->ptr[BN_GAMMA],
                                 .beta = step->ptr[BN_BETA],
                                 .epsilon = step->epsilon,
                                 .residual = step->ptr[BN_RESIDUAL],
                                 .relu = step->relu,
                                 .y = step->ptr[BN_Y],
                                 .scratch = step->ptr[BN_SCRATCH]};
    int threads = bn_threads(plan, step);
    if (step->kind == STEP_BN_TRAIN) {
        kernel_bn_stats(&bn, threads);
    }
    kernel_bn_apply(&bn, threads);
}

static void run_bn_backward(const struct plan *plan, const struct step *step)
{
    const struct kernel_bn_back bn = {.layout = step->layout,
                                      .x = step->ptr[BN_X],
                                      .dy = step->ptr[BNB_DY],
                                      .y = step->ptr[BNB_Y],
                                      .mean = step->ptr[BN_MEAN],
                                      .variance = step->ptr[BN_VARIANCE],
                                      .gamma = step->ptr[BN_GAMMA],
                                      .beta = step->ptr[BN_BETA],
                                      .epsilon = step->epsilon,
                                      .mask = (enum kernel_mask)step->relu,
                                      .dx = step->ptr[BNB_DX],
                                      .dz = step->ptr[BNB_DZ],
                                      .dgamma = step->ptr[BNB_DGAMMA],
                                      .dbeta = step->ptr[BNB_DBETA],
                                      .scratch = step->ptr[BNB_SCRATCH]};
    kernel_bn_backward(&bn, bn_threads(plan, step));
}

static void run_norm(const struct plan *plan, const struct step *step)
{
    const int is_backward = step->kind == STEP_NORM_BACKWARD;
    const struct kernel_layout *l = &step->layout;
    const int threads = threads_for(plan, (size_t)(l->n * l->n_blocks * l->spatial * l->block));
    struct kernel_norm norm = {.layout = *l,
                               .groups = step->groups,
                               .is_per_value = step->is_per_value,
                               .epsilon = step->epsilon,
                               .x = step->ptr[NORM_X],
                               .gamma = step->ptr[NORM_GAMMA],
                               .stats = step->ptr[NORM_STATS]};
    if (is_backward) {
        norm.dy = step->ptr[NORMB_DY];
        norm.dx = step->ptr[NORMB_DX];
        norm.dgamma = step->ptr[NORMB_DGAMMA];
        norm.dbeta = step->ptr[NORMB_DBETA];
        norm.scratch = step->ptr[NORMB_SCRATCH];
        kernel_norm_backward(&norm, threads);
    } else {
        norm.beta = step->ptr[NORM_BETA];
        norm.y = step->ptr[NORM_Y];
        norm.scratch = step->ptr[NORM_SCRATCH];
        kernel_norm_forward(&norm, threads);
    }
}

/* A value of each channel. */
static void run_channels(const struct plan *plan, const struct step *step)
{
    const int threads = threads_for(plan, step->count);
    float *y = step->ptr[ELT_Y];
    const float *a = step->ptr[ELT_A];
    switch (step->kind) {
    case STEP_BIAS:
        kernel_bias(y, a, step->ptr[ELT_B], &step->layout, threads);
        break;
    case STEP_BIAS_BACKWARD:
        kernel_bias_backward(y, a, &step->layout, step->ptr[ELT_B], threads);
        break;
    case STEP_SCALE:
        kernel_scale(y, a, step->ptr[ELT_B], &step->layout, threads);
        break;
    default:
        kernel_scale_backward(y, step->ptr[ELT_C], a, &step->layout, step->ptr[ELT_B], threads);
        break;
    }
}

static void run_moved_channels(const struct plan *plan, const struct step *step)
{
    struct kernel_channels channels = step->channels;
    channels.fill = step->ptr[ELT_B];
    kernel_channels(step->ptr[ELT_Y], step->ptr[ELT_A], &channels, threads_for(plan, step->count));
}

static void run_resample(const struct plan *plan, const struct step *step)
{
    const int threads = threads_for(plan, step->count);
    if (step->kind == STEP_RESAMPLE) {
        kernel_resample(step->ptr[ELT_Y], step->ptr[ELT_A], &step->resample, threads);
    } else {
        kernel_resample_backward(step->ptr[ELT_Y], step->ptr[ELT_A], &step->resample, threads);
    }
}

static void run_softmax(const struct plan *plan, const struct step *step)
{
    if (step->kind == STEP_SOFTMAX) {
        kernel_softmax(&step->layout, step->ptr[ELT_A], step->ptr[ELT_Y],
                       threads_for(plan, step->count * EXP_FLOATS));
    } else {
        kernel_softmax_backward(&step->layout, step->ptr[ELT_A], step->ptr[ELT_B], step->ptr[ELT_Y],
                                threads_for(plan, step->count));
    }
}

static void run_pool(const struct plan *plan, const struct step *step)
{
    const struct pool_shape *s = &step->pool;
    int threads = threads_for(plan, (size_t)(s->planes * s->h * s->w * s->block));
    if (step->kind == STEP_MAX_POOL) {
        pool_max(s, step->ptr[POOL_IN], step->ptr[POOL_OUT], step->ptr[POOL_PLACES], threads);
    } else {
        pool_max_backward(s, step->ptr[POOL_PLACES], step->ptr[POOL_IN], step->ptr[POOL_OUT],
                          threads);
    }
}

/* Of which of the forward ops it is: backward drops the same values. */
static uint64_t draw_of(const struct plan *plan, const struct step *step)
{
    const struct op *op = graph_op(plan->graph, step->op);
    const uint64_t which = (uint64_t)(op->forward >= 0 ? op->forward : step->op);
    const struct plan_draw *draw = &plan->draw;
    return ms_rng_stream(ms_rng_stream(draw->seed, draw->step, DROPOUT_PURPOSE), which, 0);
}

static void run_dropout(const struct plan *plan, const struct step *step)
{
    const struct op *op = graph_op(plan->graph, step->op);
    const struct kernel_dropout dropout = {.layout = step->layout,
                                           .draw = draw_of(plan, step),
                                           .first_row = plan->draw.first_row,
                                           .rate = op->rate,
                                           .of = op->of == DROP_VALUES     ? KERNEL_DROP_VALUES
                                                 : op->of == DROP_CHANNELS ? KERNEL_DROP_CHANNELS
                                                                           : KERNEL_DROP_ROWS};
    kernel_dropout(step->ptr[ELT_Y], step->ptr[ELT_A], &dropout,
                   threads_for(plan, step->count * DRAW_FLOATS));
}

static int run_embedding(struct plan *plan, const struct step *step)
{
    const struct kernel_embedding embedding = {.rows = step->rows,
                                               .words = step->words,
                                               .channels = step->columns,
                                               .tokens = step->ptr[EMBEDDING_TOKENS]};
    const int threads = threads_for(plan, (size_t)(step->rows * step->columns));
    if (step->kind == STEP_EMBEDDING_BACKWARD) {
        kernel_embedding_backward(&embedding, step->ptr[EMBEDDING_Y], step->ptr[EMBEDDING_WEIGHT],
                                  threads);
        return 0;
    }
    const int64_t bad = kernel_embedding_check(&embedding);
    if (bad >= 0) {
        plan->bad_token = (double)embedding.tokens[bad];
        plan->words = step->words;
        return MS_E_INVALID;
    }
    kernel_embedding(&embedding, step->ptr[EMBEDDING_WEIGHT], step->ptr[EMBEDDING_Y], threads);
    return 0;
}

/* Always on all threads: products of a single one are computed inside a team. */
static int run_attention(const struct plan *plan, const struct step *step)
{
    struct kernel_attention attention = step->attention;
    attention.draw = draw_of(plan, step);
    attention.first_row = plan->draw.first_row;
    attention.product = dn_product;
    attention.qkv = step->ptr[ATTENTION_X];
    attention.stats = step->ptr[ATTENTION_STATS];
    attention.scratch = step->ptr[ATTENTION_SCRATCH];
    if (step->kind == STEP_ATTENTION) {
        attention.y = step->ptr[ATTENTION_Y];
        return kernel_attention_forward(&attention, plan->threads);
    }
    attention.dy = step->ptr[ATTENTIONB_DY];
    attention.dqkv = step->ptr[ATTENTIONB_DX];
    return kernel_attention_backward(&attention, plan->threads);
}

/* Likewise. */
static int run_recurrent(const struct plan *plan, const struct step *step)
{
    struct kernel_recurrent recurrent = step->recurrent;
    recurrent.product = dn_product;
    recurrent.weight = step->ptr[RNN_WEIGHT];
    recurrent.kept = step->ptr[RNN_KEPT];
    recurrent.y = step->ptr[RNN_Y];
    recurrent.scratch = step->ptr[RNN_SCRATCH];
    if (step->kind == STEP_RECURRENT) {
        recurrent.x = step->ptr[RNN_X];
        recurrent.bias = step->ptr[RNN_BIAS];
        return kernel_recurrent_forward(&recurrent, plan->threads);
    }
    recurrent.dy = step->ptr[RNNB_DY];
    recurrent.dx = step->ptr[RNNB_DX];
    recurrent.dweight = step->ptr[RNNB_DWEIGHT];
    recurrent.dbias = step->ptr[RNNB_DBIAS];
    return kernel_recurrent_backward(&recurrent, plan->threads);
}

static void run_target_loss(struct plan *plan, const struct step *step, int64_t rows)
{
    const float *y = step->ptr[LOSS_LOGITS];
    const float *target = step->ptr[LOSS_LABELS];
    float *dy = step->ptr[LOSS_GRADIENT];
    const int64_t k = step->columns;
    plan->correct = 0;
    switch (step->kind) {
    case STEP_L1:
        plan->loss = kernel_l1(y, target, rows, k, dy);
        break;
    case STEP_HUBER:
        plan->loss = kernel_huber(y, target, rows, k, graph_op(plan->graph, step->op)->alpha, dy);
        break;
    case STEP_BCE:
        plan->loss = kernel_bce(y, target, rows, k, dy);
        plan->correct = plan->training ? 0 : kernel_count_sides(y, target, rows, k);
        break;
    default:
        plan->loss = kernel_mse(y, target, rows, k, dy);
    }
}

static void run_loss(struct plan *plan, const struct step *step)
{
    const float *logits = step->ptr[LOSS_LOGITS];
    float *gradient = step->ptr[LOSS_GRADIENT];
    const int64_t batch = graph_tensor(plan->graph, graph_data_index(plan->graph))->shape.dim[0];
    int64_t rows = plan->training ? step->rows : plan->rows * (step->rows / batch);
    plan->predictions = logits;
    plan->columns = step->columns;
    plan->weight = 1;
    plan->counted = rows;
    if (step->kind != STEP_SOFTMAX_CE) {
        run_target_loss(plan, step, rows);
        return;
    }
    int threads = threads_for(plan, (size_t)(rows * step->columns) * EXP_FLOATS);
    const struct op *op = graph_op(plan->graph, step->op);
    const int is_soft = graph_tensor(plan->graph, op->in[1])->dtype == MS_F32;
    const struct kernel_labels labels = {.labels = is_soft ? NULL : step->ptr[LOSS_LABELS],
                                         .soft = is_soft ? step->ptr[LOSS_LABELS] : NULL,
                                         .others = plan->others,
                                         .shares = plan->shares,
                                         .weights = op->class_weights,
                                         .has_ignored = op->has_ignored,
                                         .ignored = op->ignored,
                                         .smoothing = plan->training ? op->smoothing : 0};
    plan->loss =
        kernel_softmax_ce(logits, &labels, rows, step->columns, gradient, threads, &plan->weight);
    if (!plan->training) {
        plan->correct = kernel_count_correct(logits, &labels, rows, step->columns, &plan->counted);
    }
}

/* Operand 0 of both is the first statistic, operand 1 its place in the exchange buffer. */
static void run_stats(const struct plan *plan, const struct step *step)
{
    size_t bytes = ms_dtype_size(plan->stats_dtype, plan->stats_count);
    if (step->kind == STEP_CLEAR_STATS) {
        memset(step->ptr[0], 0, bytes); /* the padding between statistics is nobody's to write */
    } else {
        memcpy(plan->bound.exchange, step->ptr[0], bytes);
    }
}

static void run_clear_padding(const struct plan *plan, const struct step *step)
{
    const struct kernel_layout *l = &step->layout;
    int threads = threads_for(plan, (size_t)(l->n * l->spatial * l->block));
    kernel_clear_padding(l, step->ptr[0], threads);
}

int step_run(struct plan *plan, struct step *step)
{
    switch (step->kind) {
    case STEP_PRIMITIVE:
        return dn_prim_run(plan->dn, step->prim);
    case STEP_CLEAR_STATS:
    case STEP_PUBLISH_STATS:
        run_stats(plan, step);
        break;
    case STEP_CLEAR_PADDING:
        run_clear_padding(plan, step);
        break;
    case STEP_BN_TRAIN:
    case STEP_BN_APPLY:
        run_bn_forward(plan, step);
        break;
    case STEP_BN_BACKWARD:
        run_bn_backward(plan, step);
        break;
    case STEP_NORM:
    case STEP_NORM_BACKWARD:
        run_norm(plan, step);
        break;
    case STEP_RELU:
    case STEP_RELU_BACKWARD:
    case STEP_RELU6:
    case STEP_RELU6_BACKWARD:
    case STEP_ADD:
    case STEP_ADD_RELU:
    case STEP_MUL:
    case STEP_LINEAR:
        run_elementwise(plan, step);
        break;
    case STEP_BIAS:
    case STEP_BIAS_BACKWARD:
    case STEP_SCALE:
    case STEP_SCALE_BACKWARD:
        run_channels(plan, step);
        break;
    case STEP_CHANNELS:
        run_moved_channels(plan, step);
        break;
    case STEP_RESAMPLE:
    case STEP_RESAMPLE_BACKWARD:
        run_resample(plan, step);
        break;
    case STEP_EMBEDDING:
    case STEP_EMBEDDING_BACKWARD:
        return run_embedding(plan, step);
    case STEP_ATTENTION:
    case STEP_ATTENTION_BACKWARD:
        return run_attention(plan, step);
    case STEP_RECURRENT:
    case STEP_RECURRENT_BACKWARD:
        return run_recurrent(plan, step);
    case STEP_SOFTMAX:
    case STEP_SOFTMAX_BACKWARD:
        run_softmax(plan, step);
        break;
    case STEP_DROPOUT:
        run_dropout(plan, step);
        break;
    case STEP_MAX_POOL:
    case STEP_MAX_POOL_BACKWARD:
        run_pool(plan, step);
        break;
    case STEP_SOFTMAX_CE:
    case STEP_MSE:
    case STEP_L1:
    case STEP_HUBER:
    case STEP_BCE:
        run_loss(plan, step);
        break;
    case STEP_KINDS:
        break;
    }
    return 0;
}
