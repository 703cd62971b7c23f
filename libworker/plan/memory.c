/* memory.c - lifetimes of all buffers, and one arena for them
 *
 * A buffer lives from the first step that touches it to the last. Elementwise steps write over an
 * input that dies with them. The rest is a packing problem: the largest buffer first, each at the
 * lowest place that is free for its whole life (greedy by size; Pisarchyk and Lee, Efficient Memory
 * Management for Deep Neural Net Inference, 2020).
 *
 * Recomputation: y = relu(bn(x)) that backward reads is made again from x, which is kept anyway,
 * right before its first reader there. y = relu(bn(x) + z) is made again where z is kept: in a
 * chain of residual blocks every second one. */
#include "libworker/plan/internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- recomputation ------------------------------------------------------------------------------
 */

static int has_buffer(const struct step *step, int buffer)
{
    int n = 0;
    for (int k = 0; k < step->n_operands; k++) {
        n += step->operands[k].place == PLACE_ARENA && step->operands[k].index == buffer;
    }
    return n;
}

/* The first step of backward that reads the buffer, -1: none. */
static int first_reader(const struct plan *plan, int buffer)
{
    int s = plan->n_forward_steps;
    while (s < plan->n_steps && !has_buffer(&plan->steps[s], buffer)) {
        s++;
    }
    return s < plan->n_steps ? s : -1;
}

static int is_read_later(const struct plan *plan, int buffer, int step)
{
    int s = step;
    while (s < plan->n_steps && !has_buffer(&plan->steps[s], buffer)) {
        s++;
    }
    return s < plan->n_steps;
}

struct copies {
    unsigned char *is_copied; /* per buffer: the result of forward is not kept for backward */
    int *source;              /* per step: the forward step that is made again before it, -1 */
    int *target;              /* ... into this buffer */
};

/* The step of backward before which the result is made again; -1: it is kept. */
static int copy_reader(const struct plan *plan, const struct copies *copies,
                       const struct step *step)
{
    if (step->kind != STEP_BN_TRAIN || !step->relu) {
        return -1;
    }
    int reader = first_reader(plan, step->operands[BN_Y].index);
    struct operand residual = step->operands[BN_RESIDUAL];
    if (reader < 0 || copies->source[reader] >= 0) {
        return -1;
    }
    if (residual.place == PLACE_ARENA &&
        (copies->is_copied[residual.index] || !is_read_later(plan, residual.index, reader))) {
        return -1; /* it would have to be kept, or made again, for this alone */
    }
    return reader;
}

/* Lets backward read `to` instead of `from`. */
static void redirect(struct plan *plan, int from, int to)
{
    for (int s = plan->n_forward_steps; s < plan->n_steps; s++) {
        struct step *step = &plan->steps[s];
        for (int k = 0; k < step->n_operands; k++) {
            if (step->operands[k].place == PLACE_ARENA && step->operands[k].index == from) {
                step->operands[k].index = to;
            }
        }
    }
}

static int find_copies(struct plan *plan, const unsigned char *again, struct copies *copies,
                       struct ms_err *err)
{
    for (int s = 0; s < plan->n_steps; s++) {
        copies->source[s] = -1;
    }
    for (int s = 0; s < plan->n_forward_steps; s++) {
        int op = plan->steps[s].op;
        int reader = op < 0 || !again[op] ? -1 : copy_reader(plan, copies, &plan->steps[s]);
        if (reader < 0) {
            continue;
        }
        int kept = plan->steps[s].operands[BN_Y].index;
        int buffer = emit_buffer(plan, plan->buffers[kept].dtype, plan->buffers[kept].count, err);
        if (buffer < 0) {
            return buffer;
        }
        copies->is_copied[kept] = 1;
        copies->source[reader] = s;
        copies->target[reader] = buffer;
        redirect(plan, kept, buffer);
        plan->n_copies++;
    }
    return 0;
}

/* Writes the steps with the copies in between into a larger array. */
static int interleave(struct plan *plan, const struct copies *copies, struct ms_err *err)
{
    struct step *steps = malloc(((size_t)plan->n_steps * 2 + 1) * sizeof(*steps));
    if (steps == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for %d steps", 2 * plan->n_steps);
    }
    int n = 0;
    for (int s = 0; s < plan->n_steps; s++) {
        if (copies->source[s] >= 0) {
            struct step *copy = &steps[n++];
            *copy = plan->steps[copies->source[s]];
            copy->kind = STEP_BN_APPLY;
            copy->is_copy = 1;
            copy->operands[BN_Y].index = copies->target[s];
            copy->operands[BN_SCRATCH] = (struct operand){PLACE_NONE, 0}; /* has its statistics */
        }
        steps[n++] = plan->steps[s];
    }
    free(plan->steps);
    plan->cap_steps = plan->n_steps * 2 + 1;
    plan->steps = steps;
    plan->n_steps = n;
    return 0;
}

static int insert_copies(struct plan *plan, const unsigned char *again, struct ms_err *err)
{
    size_t n_steps = (size_t)plan->n_steps + 1;
    struct copies copies = {.is_copied = calloc((size_t)plan->n_buffers * 2 + 1, 1),
                            .source = malloc(n_steps * sizeof(int)),
                            .target = malloc(n_steps * sizeof(int))};
    int rc = 0;
    if (copies.is_copied == NULL || copies.source == NULL || copies.target == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "plan: no memory for %d steps", plan->n_steps);
    }
    rc = rc < 0 ? rc : find_copies(plan, again, &copies, err);
    rc = rc < 0 ? rc : interleave(plan, &copies, err);
    free(copies.is_copied);
    free(copies.source);
    free(copies.target);
    return rc;
}

/* ---- lifetimes ----------------------------------------------------------------------------------
 */

static void find_lifetimes(struct plan *plan)
{
    for (int b = 0; b < plan->n_buffers; b++) {
        plan->buffers[b].root = b;
        plan->buffers[b].first = INT_MAX;
        plan->buffers[b].last = -1;
    }
    for (int s = 0; s < plan->n_steps; s++) {
        const struct step *step = &plan->steps[s];
        for (int k = 0; k < step->n_operands; k++) {
            if (step->operands[k].place == PLACE_ARENA &&
                !plan->buffers[step->operands[k].index].is_mirror) {
                struct buffer *buffer = &plan->buffers[step->operands[k].index];
                buffer->first = s < buffer->first ? s : buffer->first;
                buffer->last = s;
            }
        }
    }
    if (plan->stats_buffer >= 0) {
        plan->buffers[plan->stats_buffer].first = 0;
        plan->buffers[plan->stats_buffer].last = plan->n_steps - 1;
    }
}

/* Which result may be written over which input (kernel.h), in the order of preference. */
static const struct inplace {
    enum step_kind kind;
    int out, in;
} inplaces[] = {
    {STEP_BN_TRAIN, BN_Y, BN_RESIDUAL},
    {STEP_BN_APPLY, BN_Y, BN_RESIDUAL},
    {STEP_BN_APPLY, BN_Y, BN_X},
    {STEP_BN_BACKWARD, BNB_DZ, BNB_DY},
    {STEP_BN_BACKWARD, BNB_DX, BNB_DY},
    {STEP_NORM, NORM_Y, NORM_X},
    {STEP_NORM_BACKWARD, NORMB_DX, NORMB_DY},
    {STEP_RELU, ELT_Y, ELT_A},
    {STEP_RELU_BACKWARD, ELT_Y, ELT_B},
    {STEP_RELU6, ELT_Y, ELT_A},
    {STEP_RELU6_BACKWARD, ELT_Y, ELT_B},
    {STEP_ADD, ELT_Y, ELT_A},
    {STEP_ADD, ELT_Y, ELT_B},
    {STEP_BIAS, ELT_Y, ELT_A},
    {STEP_SCALE, ELT_Y, ELT_A},
    {STEP_MUL, ELT_Y, ELT_A},
    {STEP_MUL, ELT_Y, ELT_B},
    {STEP_LINEAR, ELT_Y, ELT_A},
    {STEP_SOFTMAX, ELT_Y, ELT_A},
    {STEP_SOFTMAX_BACKWARD, ELT_Y, ELT_B},
    {STEP_DROPOUT, ELT_Y, ELT_A},
};

static int root_of(const struct plan *plan, int buffer)
{
    while (plan->buffers[buffer].root != buffer) {
        buffer = plan->buffers[buffer].root;
    }
    return buffer;
}

static int share(struct plan *plan, int s, const struct inplace *row)
{
    const struct step *step = &plan->steps[s];
    struct operand out = step->operands[row->out];
    struct operand in = step->operands[row->in];
    if (out.place != PLACE_ARENA || in.place != PLACE_ARENA) {
        return 0;
    }
    int root = root_of(plan, in.index);
    struct buffer *from = &plan->buffers[root];
    struct buffer *to = &plan->buffers[out.index];
    int uses = 0; /* the input must not be a second operand too */
    for (int k = 0; k < step->n_operands; k++) {
        uses += step->operands[k].place == PLACE_ARENA &&
                root_of(plan, step->operands[k].index) == root;
    }
    if (to->first != s || to->root != out.index || from->last != s || from->dtype != to->dtype ||
        from->count != to->count || uses != 1) {
        return 0;
    }
    to->root = root;
    from->last = to->last;
    return 1;
}

static void share_buffers(struct plan *plan)
{
    for (int s = 0; s < plan->n_steps; s++) {
        for (size_t i = 0; i < sizeof(inplaces) / sizeof(inplaces[0]); i++) {
            if (inplaces[i].kind == plan->steps[s].kind && share(plan, s, &inplaces[i])) {
                break;
            }
        }
    }
}

/* ---- packing ------------------------------------------------------------------------------------
 */

struct item {
    size_t bytes;
    int buffer;
};

static int larger_first(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x->buffer < y->buffer ? -1 : 1;
}

static size_t aligned(size_t bytes)
{
    return (bytes + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN;
}

/* placed[] is in the order of offsets. Returns where the new one belongs in it. */
static int find_gap(const struct plan *plan, const int *placed, int n, struct buffer *buffer)
{
    size_t at = 0;
    int index = 0;
    for (int i = 0; i < n; i++) {
        const struct buffer *other = &plan->buffers[placed[i]];
        if (other->first > buffer->last || other->last < buffer->first) {
            continue;
        }
        if (other->offset >= at + aligned(buffer_bytes(buffer))) {
            break;
        }
        size_t end = other->offset + aligned(buffer_bytes(other));
        at = end > at ? end : at;
    }
    buffer->offset = at;
    while (index < n && plan->buffers[placed[index]].offset <= at) {
        index++;
    }
    return index;
}

static int pack(struct plan *plan, struct ms_err *err)
{
    size_t cap = (size_t)plan->n_buffers + 1;
    struct item *items = malloc(cap * sizeof(*items));
    int *placed = malloc(cap * sizeof(*placed));
    if (items == NULL || placed == NULL) {
        free(items);
        free(placed);
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for %d buffers", plan->n_buffers);
    }
    int n_items = 0;
    for (int b = 0; b < plan->n_buffers; b++) {
        if (plan->buffers[b].root == b && plan->buffers[b].last >= 0) {
            items[n_items++] = (struct item){buffer_bytes(&plan->buffers[b]), b};
        }
    }
    qsort(items, (size_t)n_items, sizeof(*items), larger_first);
    plan->arena_bytes = 0;
    for (int n = 0; n < n_items; n++) {
        struct buffer *buffer = &plan->buffers[items[n].buffer];
        int index = find_gap(plan, placed, n, buffer);
        memmove(&placed[index + 1], &placed[index], (size_t)(n - index) * sizeof(*placed));
        placed[index] = items[n].buffer;
        size_t end = buffer->offset + aligned(buffer_bytes(buffer));
        plan->arena_bytes = end > plan->arena_bytes ? end : plan->arena_bytes;
    }
    for (int b = 0; b < plan->n_buffers; b++) {
        plan->buffers[b].offset = plan->buffers[root_of(plan, b)].offset;
    }
    free(items);
    free(placed);
    return 0;
}

int memory_plan(struct plan *plan, const unsigned char *again, struct ms_err *err)
{
    int rc = again != NULL ? insert_copies(plan, again, err) : 0;
    if (rc < 0) {
        return rc;
    }
    find_lifetimes(plan);
    share_buffers(plan);
    return pack(plan, err);
}
