/* op_activation.c - smooth and bounded activations, as torch.nn has them; ReLU is in
 * op_elementwise.c, where ops fuse with it
 *
 * Their one gradient op reads x, not y: y has rounded away what the derivative needs where the
 * function is flat, and does not say on which side of their minimum gelu, silu and hard_swish are.
 */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

#include <math.h>

static int infer_activation(const struct graph *graph, const struct op *op, struct shape *ret,
                            struct ms_err *err)
{
    const char *alpha = op_row(op->kind)->alpha;
    if (alpha != NULL && !isfinite(op->alpha)) {
        return graph_fail_op(graph, op, err, "%s is no finite number", alpha);
    }
    *ret = graph->tensors[op->in[0]]->shape;
    return MS_OK;
}

static int gradient_activation(struct tape *tape, int index, const struct op *op, int dy)
{
    const int in[] = {op->in[0], dy};
    return tape_simple(tape, OP_ACTIVATION_BWD, index, in, 0);
}

#define ACTIVATION(which, word, factor, says)                                                      \
    {                                                                                              \
        .kind = (which), .name = (word), .n_in = 1, .n_out = 1, .wants = "v", .differentiable = 1, \
        .alpha = (factor), .infer = infer_activation, .gradient = gradient_activation,             \
        .products = graph_no_products, .page = (says)                                              \
    }
static int infer_softmax(const struct graph *graph, const struct op *op, struct shape *ret,
                         struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    if (x->n_dims < 2 || x->n_dims > 4) {
        return graph_fail_op(graph, op, err,
                             "the input must be images (n, c, h, w), sequences (n, tokens, k) or "
                             "rows (n, k)");
    }
    if (x->dim[shape_is_sequence(x) ? 2 : 1] == 1) {
        return graph_fail_op(graph, op, err, "the softmax of one value is 1, whatever it is");
    }
    *ret = *x;
    return MS_OK;
}

static int gradient_softmax(struct tape *tape, int index, const struct op *op, int dy)
{
    const int in[] = {op->out[0], dy};
    return tape_simple(tape, OP_SOFTMAX_BWD, index, in, 0);
}

static const struct op_row rows[] = {
    {.kind = OP_SOFTMAX,
     .name = "softmax",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .infer = infer_softmax,
     .gradient = gradient_softmax,
     .products = graph_no_products,
     .page = "Softmax over the values of a row, or the channels of each pixel or token."},
    {.kind = OP_SOFTMAX_BWD,
     .name = "softmax_bwd",
     .n_in = 2,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    ACTIVATION(OP_RELU6, "relu6", NULL, "Values below 0 become 0, those above 6 become 6."),
    ACTIVATION(OP_LEAKY_RELU, "leaky_relu", "slope", "Negative values are multiplied by a slope."),
    ACTIVATION(OP_ELU, "elu", "alpha", "Negative values x become alpha (exp(x) - 1)."),
    ACTIVATION(OP_GELU, "gelu", NULL, "x times the normal distribution function of x."),
    ACTIVATION(OP_GELU_TANH, "gelu_tanh", NULL, "The same, approximated by a hyperbolic tangent."),
    ACTIVATION(OP_SILU, "silu", NULL, "x times the sigmoid of x."),
    ACTIVATION(OP_HARD_SWISH, "hard_swish", NULL, "x times relu6(x + 3) / 6."),
    ACTIVATION(OP_SIGMOID, "sigmoid", NULL, "1 / (1 + exp(-x))."),
    ACTIVATION(OP_TANH, "tanh", NULL, "Hyperbolic tangent."),
    {.kind = OP_ACTIVATION_BWD,
     .name = "activation_bwd",
     .n_in = 2,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_activation = {rows, MS_ARRAY_SIZE(rows)};

int graph_activation(struct graph *graph, enum op_kind kind, int x, double alpha,
                     struct ms_err *err)
{
    const struct op op = {.kind = kind, .in = {x}, .alpha = alpha};
    return graph_apply(graph, &op, err);
}
