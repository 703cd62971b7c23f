/* optimizer.c - SGD, Momentum, Adam, AdamW over the flat buffers of a plan */
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

static const struct {
    const char *name;
    int n_slots;
    const char *slot_names[OPTIMIZER_SLOTS_MAX];
} kinds[] = {
    [JOB_SGD] = {"sgd", 0, {"", ""}},
    [JOB_MOMENTUM] = {"momentum", 1, {"moments", ""}},
    [JOB_ADAM] = {"adam", 2, {"moment1", "moment2"}},
    [JOB_ADAMW] = {"adamw", 2, {"moment1", "moment2"}},
};

static const struct row {
    enum job_optimizer_kind kind;
    enum ms_dtype weights, grads;
    void (*apply)(const struct job_optimizer *o, uint64_t step, float scale,
                  const struct optimizer_range *range);
} rows[] = {
    {JOB_SGD, MS_F32, MS_F32, apply_sgd},
    {JOB_MOMENTUM, MS_F32, MS_F32, apply_momentum},
    {JOB_ADAM, MS_F32, MS_F32, apply_adam},
    {JOB_ADAMW, MS_F32, MS_F32, apply_adamw},
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

int optimizer_slots(const struct job_optimizer *optimizer)
{
    return kinds[optimizer->kind].n_slots;
}

const char *optimizer_slot_name(const struct job_optimizer *optimizer, int slot)
{
    return slot >= 0 && slot < OPTIMIZER_SLOTS_MAX ? kinds[optimizer->kind].slot_names[slot] : "";
}

const char *optimizer_slot_of(const char *name)
{
    const char *dot = strchr(name, '.');
    const size_t n = dot != NULL ? (size_t)(dot - name) : 0;
    for (size_t i = 0; n > 0 && i < MS_ARRAY_SIZE(kinds); i++) {
        for (int s = 0; s < kinds[i].n_slots; s++) {
            const char *slot = kinds[i].slot_names[s];
            if (strlen(slot) == n && strncmp(name, slot, n) == 0) {
                return dot + 1;
            }
        }
    }
    return NULL;
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
};

static void apply_piece(const void *arg, size_t at, size_t count)
{
    const struct pass *pass = arg;
    size_t weights_at = ms_dtype_size(pass->row->weights, at);
    struct optimizer_range piece = *pass->range;
    piece.weights = (char *)piece.weights + weights_at;
    piece.grads = (const char *)piece.grads + ms_dtype_size(pass->row->grads, at);
    piece.count = count;
    for (int s = 0; s < kinds[pass->optimizer->kind].n_slots; s++) {
        piece.slots[s] = (char *)piece.slots[s] + weights_at;
    }
    pass->row->apply(pass->optimizer, pass->step, pass->scale, &piece);
}

void optimizer_apply(const struct job_optimizer *optimizer, uint64_t step, float scale,
                     const struct optimizer_range *range, int threads)
{
    const struct row *row = find_row(optimizer->kind, range->weights_dtype, range->grads_dtype);
    assert(row != NULL);
    const struct pass pass = {row, optimizer, range, step, scale};
    kernel_in_pieces(range->count, apply_piece, &pass, threads);
}
