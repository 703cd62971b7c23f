/* op_product.c - products of values, with a parameter, and with numbers
 *
 * A gradient with respect to one factor is the product with the other; that of a factor that was
 * repeated is summed up over what it was repeated for. */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

#include <math.h>

static int infer_mul(const struct graph *graph, const struct op *op, struct shape *ret,
                     struct ms_err *err)
{
    const struct shape *a = &graph->tensors[op->in[0]]->shape;
    if (!shape_equal(a, &graph->tensors[op->in[1]]->shape)) {
        return graph_fail_op(graph, op, err, "the shapes differ");
    }
    *ret = *a;
    return MS_OK;
}

static int gradient_mul(struct tape *tape, int index, const struct op *op, int dy)
{
    const int for_a[] = {dy, op->in[1]};
    const int for_b[] = {dy, op->in[0]};
    int rc = tape_simple(tape, OP_MUL_BWD, index, for_a, 0);
    return rc < 0 ? rc : tape_simple(tape, OP_MUL_BWD, index, for_b, 1);
}

static int infer_gate(const struct graph *graph, const struct op *op, struct shape *ret,
                      struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    const struct shape *gate = &graph->tensors[op->in[1]]->shape;
    const int is_gate = x->n_dims == 4 && (gate->n_dims == 2 || gate->n_dims == 4) &&
                        gate->dim[0] == x->dim[0] && gate->dim[1] == x->dim[1] &&
                        shape_count(gate) == x->dim[0] * x->dim[1];
    if (!is_gate) {
        return graph_fail_op(graph, op, err,
                             "images (n, c, h, w) have gates (n, c) or (n, c, 1, 1)");
    }
    *ret = *x;
    return MS_OK;
}

static int gradient_gate(struct tape *tape, int index, const struct op *op, int dy)
{
    const int for_x[] = {dy, op->in[1]};
    const int for_gate[] = {op->in[0], dy};
    int rc = tape_simple(tape, OP_GATE_BWD_DATA, index, for_x, 0);
    return rc < 0 ? rc : tape_simple(tape, OP_GATE_BWD, index, for_gate, 1);
}

enum scale_of graph_scale_of(const struct shape *x, const struct shape *gamma)
{
    const int n_dims = x->n_dims - 1;
    const int more = gamma->n_dims - n_dims; /* in front, of 1 */
    int is_channels = 1;
    int is_values = 1;
    int fits = 1;
    for (int i = 0; i < gamma->n_dims; i++) {
        const int64_t of_x = i < more ? 1 : x->dim[i - more + 1];
        fits &= gamma->dim[i] == 1 || gamma->dim[i] == of_x;
        is_values &= gamma->dim[i] == of_x;
        is_channels &= gamma->dim[i] == (i == (more > 0 ? more : 0) ? x->dim[1] : 1);
    }
    return !fits                      ? SCALE_NOT
           : more >= 0 && is_channels ? SCALE_CHANNELS
           : more >= 0 && is_values   ? SCALE_VALUES
           : shape_count(gamma) == 1  ? SCALE_ALL
                                      : SCALE_NOT;
}

static int infer_scale(const struct graph *graph, const struct op *op, struct shape *ret,
                       struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    const struct shape *gamma = &graph->tensors[op->in[1]]->shape;
    if (x->n_dims != 2 && x->n_dims != 4) {
        return graph_fail_op(graph, op, err,
                             "the input must be images (n, c, h, w) or rows (n, c)");
    }
    if (graph_scale_of(x, gamma) == SCALE_NOT) {
        char shape[96];
        const struct shape channels = {x->n_dims - 1, {x->dim[1], 1, 1}};
        return graph_fail_op(graph, op, err,
                             "the factor must be %s, of each value of a sample, or one number",
                             shape_format(&channels, shape, sizeof(shape)));
    }
    *ret = *x;
    return MS_OK;
}

static int gradient_scale(struct tape *tape, int index, const struct op *op, int dy)
{
    const int for_weights[] = {op->in[0], dy};
    const int for_data[] = {dy, op->in[1]};
    int rc = tape_simple(tape, OP_SCALE_BWD_WEIGHTS, index, for_weights, 1);
    return rc < 0 ? rc : tape_simple(tape, OP_SCALE_BWD_DATA, index, for_data, 0);
}

static int infer_linear(const struct graph *graph, const struct op *op, struct shape *ret,
                        struct ms_err *err)
{
    if (!isfinite(op->alpha) || !isfinite(op->beta)) {
        return graph_fail_op(graph, op, err, "a number of it is not finite");
    }
    *ret = graph->tensors[op->in[0]]->shape;
    return MS_OK;
}

static int gradient_linear(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)op;
    return tape_simple(tape, OP_LINEAR_BWD, index, &dy, 0);
}

#define BACKWARD(which, word, n)                                                                   \
    {                                                                                              \
        .kind = (which), .name = (word), .n_in = (n), .n_out = 1, .products = graph_no_products,   \
        .page = OP_NOT_FOR_USERS                                                                   \
    }
static const struct op_row rows[] = {
    {.kind = OP_MUL,
     .name = "mul",
     .n_in = 2,
     .n_out = 1,
     .wants = "vv",
     .differentiable = 3,
     .infer = infer_mul,
     .gradient = gradient_mul,
     .products = graph_no_products,
     .page = "Product of two values of one shape."},
    {.kind = OP_GATE,
     .name = "gate",
     .n_in = 2,
     .n_out = 1,
     .wants = "vv",
     .differentiable = 3,
     .infer = infer_gate,
     .gradient = gradient_gate,
     .products = graph_no_products,
     .page = "Each channel of each sample times a value of its own."},
    {.kind = OP_SCALE,
     .name = "scale",
     .n_in = 2,
     .n_out = 1,
     .wants = "vp",
     .differentiable = 3,
     .infer = infer_scale,
     .gradient = gradient_scale,
     .products = graph_no_products,
     .page = "A trained factor for each channel, each value, or all of them."},
    {.kind = OP_LINEAR,
     .name = "linear",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .alpha = "factor",
     .infer = infer_linear,
     .gradient = gradient_linear,
     .products = graph_no_products,
     .page = "Times a number, plus a number."},
    BACKWARD(OP_MUL_BWD, "mul_bwd", 2),
    BACKWARD(OP_GATE_BWD_DATA, "gate_bwd_data", 2),
    BACKWARD(OP_GATE_BWD, "gate_bwd", 2),
    BACKWARD(OP_SCALE_BWD_DATA, "scale_bwd_data", 2),
    BACKWARD(OP_SCALE_BWD_WEIGHTS, "scale_bwd_weights", 2),
    BACKWARD(OP_LINEAR_BWD, "linear_bwd", 1),
};
const struct op_family op_product = {rows, MS_ARRAY_SIZE(rows)};
