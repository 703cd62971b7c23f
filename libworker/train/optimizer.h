/* optimizer.h - SGD, Momentum, Adam, AdamW, RMSprop, LAMB over the flat buffers of a plan
 *
 * One pass over ranges of weights, slots and summed gradients; communicates nothing and cannot fail
 * half-way. Formulas: kernel/kernel.h. */
#ifndef OPTIMIZER_H
#define OPTIMIZER_H

#include "libworker/job/job.h"
#include "proto/dtype.h"

#include <stddef.h>
#include <stdint.h>

enum { OPTIMIZER_SLOTS_MAX = 4 };

/* Buffers as large as the weights that the optimizer keeps between steps. */
int optimizer_slots(const struct job_optimizer *optimizer);
/* Name of slot i as files show it ("moments", "moment1"); "" beyond. */
const char *optimizer_slot_name(const struct job_optimizer *optimizer, int slot);

/* The slot with the moving average of the weights, which optimizer_apply makes last: in step 1 the
 * weights, then average += (1 - decay) (weights - average), PyTorch's
 * torch.optim.swa_utils.get_ema_avg_fn. -1: the job has none. */
int optimizer_average_slot(const struct job_optimizer *optimizer);

/* Does each parameter have to be a range of its own? */
int optimizer_is_single(const struct job_optimizer *optimizer);
/* Doubles of scratch that a range of so many elements needs; 0: none. */
size_t optimizer_scratch(const struct job_optimizer *optimizer, size_t count);

/* MS_E_UNSUPPORTED: no kernel updates weights (and slots) of this dtype by gradients of that one.
 */
int optimizer_check(const struct job_optimizer *optimizer, enum ms_dtype weights,
                    enum ms_dtype grads, struct ms_err *err);

struct optimizer_range {
    enum ms_dtype weights_dtype, grads_dtype; /* optimizer_check knows them */
    void *weights;
    void *slots[OPTIMIZER_SLOTS_MAX]; /* of weights_dtype */
    const void *grads;                /* sums over ranks */
    size_t count;
    /* times the weight, added to its gradient (adamw and lamb: to its step, times the learning
     * rate); 0: none, to the bit */
    float weight_decay;
    double *scratch; /* as much as optimizer_scratch says; overwritten */
};

/* The scale with which the gradients of all ranges together are no longer than clip_norm allows;
 * sum: of the squares of what is scaled. A sum that is no number leaves the scale as it is. */
float optimizer_clip(const struct job_optimizer *optimizer, float scale, double sum);

/* step: 1 for the first, whose learning rate the optimizer has (schedule.h); scale: what turns a
 * sum over ranks into the gradient. The team of threads shares the range, whose bits do not depend
 * on how many there are. Denormals are flushed to zero: a velocity that decays would stay one for
 * ever. */
void optimizer_apply(const struct job_optimizer *optimizer, uint64_t step, float scale,
                     const struct optimizer_range *range, int threads);

#endif
