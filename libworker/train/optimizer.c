/* optimizer.c - SGD, Momentum, Adam, AdamW, RMSprop, LAMB over the flat buffers of a plan */
#include "libworker/train/optimizer.h"

#include "libworker/kernel/kernel.h"
#include "proto/exact.h"
#include "proto/macros.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

static void apply_sgd(const struct job_optimizer *o, uint64_t step, float scale,
                      const struct optimizer_range *r)
{
    const struct kernel_update update = {.scale = scale,
                                         .clip = (float)o->clip_value,
                                         .lr = (float)o->learning_rate,
                                         .decay = r->weight_decay};
    (void)step;
    kernel_sgd(r->weights, r->grads, r->count, &update);
}

static void apply_momentum(const struct job_optimizer *o, uint64_t step, float scale,
                           const struct optimizer_range *r)
{
    const struct kernel_update update = {.scale = scale,
                                         .clip = (float)o->clip_value,
                                         .lr = (float)o->learning_rate,
                                         .decay = r->weight_decay,
                                         .momentum = (float)o->momentum,
                                         .nesterov = o->nesterov};
    (void)step;
    kernel_momentum(r->weights, r->slots[0], r->grads, r->count, &update);
}

static void apply_adam(const struct job_optimizer *o, uint64_t step, float scale,
                       const struct optimizer_range *r)
{
    double rate = o->learning_rate * sqrt(1.0 - ms_exact_power(o->beta2, step)) /
                  (1.0 - ms_exact_power(o->beta1, step));
    const struct kernel_update update = {.scale = scale,
                                         .clip = (float)o->clip_value,
                                         .lr = (float)rate,
                                         .decay = r->weight_decay,
                                         .beta1 = (float)o->beta1,
                                         .beta2 = (float)o->beta2,
                                         .epsilon = (float)o->epsilon};
    kernel_adam(r->weights, r->slots[0], r->slots[1], r->grads, r->count, &update);
}

/* PyTorch's: epsilon joins the root of the corrected v, and not of v as in adam. */
static void apply_adamw(const struct job_optimizer *o, uint64_t step, float scale,
                        const struct optimizer_range *r)
{
    const double root = sqrt(1.0 - ms_exact_power(o->beta2, step));
    const double rate = o->learning_rate * root / (1.0 - ms_exact_power(o->beta1, step));
    const struct kernel_update update = {.scale = scale,
                                         .clip = (float)o->clip_value,
                                         .lr = (float)rate,
                                         .decay =
                                             (float)(o->learning_rate * (double)r->weight_decay),
                                         .beta1 = (float)o->beta1,
                                         .beta2 = (float)o->beta2,
                                         /* no denormal, which would be flushed: 0 / 0 */
                                         .epsilon = (float)fmax(o->epsilon * root, FLT_MIN)};
    kernel_adamw(r->weights, r->slots[0], r->slots[1], r->grads, r->count, &update);
}

enum { OWN_SLOTS = 3 }; /* of a kind; the average's comes behind them */

static const char average_name[] = "average";

/* Slots of rmsprop, of which a job may have the first alone. */
enum { SQUARES, MEANS, VELOCITIES };

static int has_rmsprop_slot(const struct job_optimizer *o, int slot)
{
    return slot == SQUARES || (slot == MEANS ? o->centered : o->momentum > 0);
}

static void apply_rmsprop(const struct job_optimizer *o, uint64_t step, float scale,
                          const struct optimizer_range *r)
{
    float *slots[OWN_SLOTS] = {NULL};
    const struct kernel_update update = {.scale = scale,
                                         .clip = (float)o->clip_value,
                                         .lr = (float)o->learning_rate,
                                         .decay = r->weight_decay,
                                         .alpha = (float)o->alpha,
                                         .momentum = (float)o->momentum,
                                         .epsilon = (float)fmax(o->epsilon, (double)FLT_MIN)};
    (void)step;
    for (int s = SQUARES, i = 0; s <= VELOCITIES; s++) {
        slots[s] = has_rmsprop_slot(o, s) ? r->slots[i++] : NULL;
    }
    kernel_rmsprop(r->weights, slots[SQUARES], slots[MEANS], slots[VELOCITIES], r->grads, r->count,
                   &update);
}

static void apply_lamb(const struct job_optimizer *o, uint64_t step, float scale,
                       const struct optimizer_range *r, int threads)
{
    const struct kernel_update update = {
        .scale = scale,
        .clip = (float)o->clip_value,
        .lr = (float)o->learning_rate,
        .decay = r->weight_decay,
        .beta1 = (float)o->beta1,
        .beta2 = (float)o->beta2,
        .epsilon = (float)fmax(o->epsilon, (double)FLT_MIN),
        .m_scale = (float)(1.0 / (1.0 - ms_exact_power(o->beta1, step))),
        .root_scale = (float)(1.0 / sqrt(1.0 - ms_exact_power(o->beta2, step)))};
    kernel_lamb(r->weights, r->slots[0], r->slots[1], r->grads, r->count, &update, r->scratch,
                threads);
}

static const struct {
    const char *name;
    const char *slot_names[OWN_SLOTS];
    int (*has_slot)(const struct job_optimizer *o, int slot); /* NULL: each that has a name */
} kinds[] = {
    [JOB_SGD] = {"sgd", {"", "", ""}, NULL},
    [JOB_MOMENTUM] = {"momentum", {"moments", "", ""}, NULL},
    [JOB_ADAM] = {"adam", {"moment1", "moment2", ""}, NULL},
    [JOB_ADAMW] = {"adamw", {"moment1", "moment2", ""}, NULL},
    [JOB_RMSPROP] = {"rmsprop", {"mean_square", "mean_gradient", "moments"}, has_rmsprop_slot},
    [JOB_LAMB] = {"lamb", {"moment1", "moment2", ""}, NULL},
};

/* Of one of two kinds. */
static const struct row {
    enum job_optimizer_kind kind;
    enum ms_dtype weights, grads;
    void (*apply)(const struct job_optimizer *o, uint64_t step, float scale,
                  const struct optimizer_range *range); /* to any piece of a range */
    void (*apply_whole)(const struct job_optimizer *o, uint64_t step, float scale,
                        const struct optimizer_range *range, int threads);
} rows[] = {
    {JOB_SGD, MS_F32, MS_F32, apply_sgd, NULL},
    {JOB_MOMENTUM, MS_F32, MS_F32, apply_momentum, NULL},
    {JOB_ADAM, MS_F32, MS_F32, apply_adam, NULL},
    {JOB_ADAMW, MS_F32, MS_F32, apply_adamw, NULL},
    {JOB_RMSPROP, MS_F32, MS_F32, apply_rmsprop, NULL},
    {JOB_LAMB, MS_F32, MS_F32, NULL, apply_lamb},
};

/* NULL: there is none. */
static const struct row *find_row(enum job_optimizer_kind kind, enum ms_dtype weights,
                                  enum ms_dtype grads)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        if (rows[i].kind == kind && rows[i].weights == weights && rows[i].grads == grads) {
            return &rows[i];
        }
    }
    return NULL;
}

int optimizer_check(const struct job_optimizer *optimizer, enum ms_dtype weights,
                    enum ms_dtype grads, struct ms_err *err)
{
    return find_row(optimizer->kind, weights, grads) != NULL
               ? 0
               : ms_fail(err, MS_E_UNSUPPORTED,
                         "optimizer %s has no kernel for weights of %s with gradients of %s; use "
                         "precision: fp32",
                         kinds[optimizer->kind].name, ms_dtype_name(weights), ms_dtype_name(grads));
}

/* The slot of the kind's that is the job's i-th; OWN_SLOTS: it has not so many. */
static int find_slot(const struct job_optimizer *o, int i)
{
    int s = 0;
    for (; s < OWN_SLOTS; s++) {
        const int has = kinds[o->kind].slot_names[s][0] != '\0' &&
                        (kinds[o->kind].has_slot == NULL || kinds[o->kind].has_slot(o, s));
        if (has && i-- == 0) {
            break;
        }
    }
    return s;
}

static int own_slots(const struct job_optimizer *optimizer)
{
    int n = 0;
    while (n < OWN_SLOTS && find_slot(optimizer, n) < OWN_SLOTS) {
        n++;
    }
    return n;
}

int optimizer_slots(const struct job_optimizer *optimizer)
{
    return own_slots(optimizer) + (optimizer->has_average ? 1 : 0);
}

int optimizer_average_slot(const struct job_optimizer *optimizer)
{
    return optimizer->has_average ? own_slots(optimizer) : -1;
}

const char *optimizer_slot_name(const struct job_optimizer *optimizer, int slot)
{
    if (slot >= 0 && slot == optimizer_average_slot(optimizer)) {
        return average_name;
    }
    const int s = slot >= 0 ? find_slot(optimizer, slot) : OWN_SLOTS;
    return s < OWN_SLOTS ? kinds[optimizer->kind].slot_names[s] : "";
}

int optimizer_is_single(const struct job_optimizer *optimizer)
{
    return optimizer->kind == JOB_LAMB;
}

size_t optimizer_scratch(const struct job_optimizer *optimizer, size_t count)
{
    return optimizer->kind == JOB_LAMB ? kernel_lamb_room(count) : 0;
}

/* PyTorch's clip_grad_norm_. */
float optimizer_clip(const struct job_optimizer *optimizer, float scale, double sum)
{
    const double norm = sqrt(sum) * (double)scale;
    const double share = optimizer->clip_norm / (norm + 1e-6);
    return optimizer->clip_norm > 0 && share < 1 ? (float)((double)scale * share) : scale;
}

struct pass {
    const struct row *row;
    const struct job_optimizer *optimizer;
    const struct optimizer_range *range;
    uint64_t step;
    float scale;
    int n_slots;
};

static struct optimizer_range piece_of(const struct pass *pass, size_t at, size_t count)
{
    size_t weights_at = ms_dtype_size(pass->row->weights, at);
    struct optimizer_range piece = *pass->range;
    piece.weights = (char *)piece.weights + weights_at;
    piece.grads = (const char *)piece.grads + ms_dtype_size(pass->row->grads, at);
    piece.count = count;
    for (int s = 0; s < pass->n_slots; s++) {
        piece.slots[s] = (char *)piece.slots[s] + weights_at;
    }
    return piece;
}

static void average_piece(const void *arg, size_t at, size_t count)
{
    const struct pass *pass = arg;
    const struct job_optimizer *o = pass->optimizer;
    const struct optimizer_range piece = piece_of(pass, at, count);
    if (o->has_average) {
        kernel_average(piece.slots[pass->n_slots - 1], piece.weights,
                       pass->step == 1 ? 1.0F : (float)(1.0 - o->average_decay), count);
    }
}

static void apply_piece(const void *arg, size_t at, size_t count)
{
    const struct pass *pass = arg;
    const struct optimizer_range piece = piece_of(pass, at, count);
    pass->row->apply(pass->optimizer, pass->step, pass->scale, &piece);
    average_piece(arg, at, count); /* the weights are in a cache still */
}

void optimizer_apply(const struct job_optimizer *optimizer, uint64_t step, float scale,
                     const struct optimizer_range *range, int threads)
{
    const struct row *row = find_row(optimizer->kind, range->weights_dtype, range->grads_dtype);
    assert(row != NULL);
    const struct pass pass = {row, optimizer, range, step, scale, optimizer_slots(optimizer)};
    if (row->apply_whole != NULL) {
        row->apply_whole(optimizer, step, scale, range, threads);
        kernel_in_pieces(range->count, average_piece, &pass, threads);
    } else {
        kernel_in_pieces(range->count, apply_piece, &pass, threads);
    }
}
