/* memory.c - lifetimes of all buffers, and one arena for them
 *
 * A buffer lives from the first step that touches it to the last. Elementwise steps write over an
 * input that dies with them. The rest is a packing problem: the largest buffer first, each at the
 * lowest place that is free for its whole life (greedy by size; Pisarchyk and Lee, Efficient Memory
 * Management for Deep Neural Net Inference, 2020).
 *
 * Recomputation: y = relu(bn(x)) that backward reads once, for the gradient of the next
 * convolution's weights, is made again from x right before that. x is kept anyway. */
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

/* The one step of backward that reads the step's result, if that is all backward does with it. */
static int copy_reader(const struct plan *plan, const struct step *step)
{
    if (step->kind != STEP_BN_TRAIN || !step->relu ||
        step->operands[BN_RESIDUAL].place != PLACE_NONE) {
        return -1;
    }
    int reader = -1;
    int n = 0;
    for (int s = plan->n_forward_steps; s < plan->n_steps; s++) {
        if (has_buffer(&plan->steps[s], step->operands[BN_Y].index) > 0) {
            reader = s;
            n++;
        }
    }
    return n == 1 && plan->steps[reader].kind == STEP_PRIMITIVE &&
                   plan->steps[reader].prim_kind == DN_CONV_BWD_WEIGHTS
               ? reader
               : -1;
}

static void insert_copy(struct plan *plan, const struct step *from, struct step *reader, int buffer,
                        struct step *copy)
{
    int old = from->operands[BN_Y].index;
    *copy = *from;
    copy->kind = STEP_BN_APPLY;
    copy->is_copy = 1;
    copy->operands[BN_Y].index = buffer;
    for (int k = 0; k < reader->n_operands; k++) {
        if (reader->operands[k].place == PLACE_ARENA && reader->operands[k].index == old) {
            reader->operands[k].index = buffer;
        }
    }
    plan->n_copies++;
}

static int insert_copies(struct plan *plan, struct ms_err *err)
{
    int *source = malloc(((size_t)plan->n_steps + 1) * sizeof(int)); /* of the copy before a step */
    struct step *steps = malloc((size_t)plan->n_steps * 2 * sizeof(*steps));
    int rc = source == NULL || steps == NULL ? ms_fail(err, MS_E_NOMEM, "plan: no memory") : 0;
    for (int s = 0; s < plan->n_steps && rc == 0; s++) {
        source[s] = -1;
    }
    for (int s = 0; s < plan->n_forward_steps && rc == 0; s++) {
        int reader = copy_reader(plan, &plan->steps[s]);
        if (reader >= 0) {
            source[reader] = s;
        }
    }
    int n = 0;
    for (int s = 0; s < plan->n_steps && rc >= 0; s++) {
        if (source[s] >= 0) {
            const struct step *from = &plan->steps[source[s]];
            size_t bytes = plan->buffers[from->operands[BN_Y].index].bytes;
            rc = emit_buffer(plan, bytes, err);
            if (rc >= 0) {
                insert_copy(plan, from, &plan->steps[s], rc, &steps[n++]);
            }
        }
        steps[n++] = plan->steps[s];
    }
    if (rc >= 0) {
        free(plan->steps);
        plan->steps = steps;
        plan->cap_steps = plan->n_steps * 2;
        plan->n_steps = n;
        steps = NULL;
    }
    free(source);
    free(steps);
    return rc < 0 ? rc : 0;
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
            if (step->operands[k].place == PLACE_ARENA) {
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
    {STEP_BN_TRAIN, BN_Y, BN_RESIDUAL}, {STEP_BN_APPLY, BN_Y, BN_RESIDUAL},
    {STEP_BN_APPLY, BN_Y, BN_X},        {STEP_BN_BACKWARD, BNB_DZ, BNB_DY},
    {STEP_BN_BACKWARD, BNB_DX, BNB_DY}, {STEP_RELU, ELT_Y, ELT_A},
    {STEP_RELU_BACKWARD, ELT_Y, ELT_B}, {STEP_ADD, ELT_Y, ELT_A},
    {STEP_ADD, ELT_Y, ELT_B},
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
    if (to->first != s || to->root != out.index || from->last != s || from->bytes != to->bytes ||
        uses != 1) {
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
        if (other->offset >= at + aligned(buffer->bytes)) {
            break;
        }
        size_t end = other->offset + aligned(other->bytes);
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
            items[n_items++] = (struct item){plan->buffers[b].bytes, b};
        }
    }
    qsort(items, (size_t)n_items, sizeof(*items), larger_first);
    plan->arena_bytes = 0;
    for (int n = 0; n < n_items; n++) {
        struct buffer *buffer = &plan->buffers[items[n].buffer];
        int index = find_gap(plan, placed, n, buffer);
        memmove(&placed[index + 1], &placed[index], (size_t)(n - index) * sizeof(*placed));
        placed[index] = items[n].buffer;
        size_t end = buffer->offset + aligned(buffer->bytes);
        plan->arena_bytes = end > plan->arena_bytes ? end : plan->arena_bytes;
    }
    for (int b = 0; b < plan->n_buffers; b++) {
        plan->buffers[b].offset = plan->buffers[root_of(plan, b)].offset;
    }
    free(items);
    free(placed);
    return 0;
}

int memory_plan(struct plan *plan, int recompute, struct ms_err *err)
{
    int rc = recompute ? insert_copies(plan, err) : 0;
    if (rc < 0) {
        return rc;
    }
    find_lifetimes(plan);
    share_buffers(plan);
    return pack(plan, err);
}
