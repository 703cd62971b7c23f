/* optimizer.c - SGD, Momentum, Adam over the flat buffers of a plan */
#include "libworker/train/optimizer.h"

#include "libworker/kernel/kernel.h"

#include <math.h>

static void apply_sgd(const struct job_optimizer *o, uint64_t step, float scale,
                      const struct optimizer_range *r)
{
    const struct kernel_update update = {
        .scale = scale, .lr = (float)o->learning_rate, .decay = r->weight_decay};
    (void)step;
    kernel_sgd(r->weights, r->grads, r->count, &update);
}

static void apply_momentum(const struct job_optimizer *o, uint64_t step, float scale,
                           const struct optimizer_range *r)
{
    const struct kernel_update update = {.scale = scale,
                                         .lr = (float)o->learning_rate,
                                         .decay = r->weight_decay,
                                         .momentum = (float)o->momentum};
    (void)step;
    kernel_momentum(r->weights, r->slots[0], r->grads, r->count, &update);
}

/* base^n by squaring: the C library's pow has several forms, with and without fused multiply-add,
 * which differ in the last bit from one CPU to the other. */
static double power(double base, uint64_t n)
{
    double result = 1.0;
    for (; n > 0; n >>= 1) {
        result = (n & 1) != 0 ? result * base : result;
        base *= base;
    }
    return result;
}

static void apply_adam(const struct job_optimizer *o, uint64_t step, float scale,
                       const struct optimizer_range *r)
{
    double rate =
        o->learning_rate * sqrt(1.0 - power(o->beta2, step)) / (1.0 - power(o->beta1, step));
    const struct kernel_update update = {.scale = scale,
                                         .lr = (float)rate,
                                         .decay = r->weight_decay,
                                         .beta1 = (float)o->beta1,
                                         .beta2 = (float)o->beta2,
                                         .epsilon = (float)o->epsilon};
    kernel_adam(r->weights, r->slots[0], r->slots[1], r->grads, r->count, &update);
}

static const struct {
    int n_slots;
    const char *slot_names[OPTIMIZER_SLOTS_MAX];
    void (*apply)(const struct job_optimizer *o, uint64_t step, float scale,
                  const struct optimizer_range *range);
} kinds[] = {
    [JOB_SGD] = {0, {"", ""}, apply_sgd},
    [JOB_MOMENTUM] = {1, {"moments", ""}, apply_momentum},
    [JOB_ADAM] = {2, {"moment1", "moment2"}, apply_adam},
};

int optimizer_slots(const struct job_optimizer *optimizer)
{
    return kinds[optimizer->kind].n_slots;
}

const char *optimizer_slot_name(const struct job_optimizer *optimizer, int slot)
{
    return slot >= 0 && slot < OPTIMIZER_SLOTS_MAX ? kinds[optimizer->kind].slot_names[slot] : "";
}

struct pass {
    const struct job_optimizer *optimizer;
    const struct optimizer_range *range;
    uint64_t step;
    float scale;
};

static void apply_piece(const void *arg, size_t at, size_t count)
{
    const struct pass *pass = arg;
    struct optimizer_range piece = {.weights = pass->range->weights + at,
                                    .grads = pass->range->grads + at,
                                    .count = count,
                                    .weight_decay = pass->range->weight_decay};
    for (int s = 0; s < kinds[pass->optimizer->kind].n_slots; s++) {
        piece.slots[s] = pass->range->slots[s] + at;
    }
    kinds[pass->optimizer->kind].apply(pass->optimizer, pass->step, pass->scale, &piece);
}

void optimizer_apply(const struct job_optimizer *optimizer, uint64_t step, float scale,
                     const struct optimizer_range *range, int threads)
{
    const struct pass pass = {optimizer, range, step, scale};
    kernel_in_pieces(range->count, apply_piece, &pass, threads);
}
