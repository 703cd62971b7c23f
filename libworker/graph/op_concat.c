/* op_concat.c - values one behind the other along their channels, and their gradients */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

static int infer_concat(const struct graph *graph, const struct op *op, struct shape *ret,
                        struct ms_err *err)
{
    struct shape whole = graph->tensors[op->in[0]]->shape;
    const int axis = shape_is_sequence(&whole) ? 2 : 1;
    if (whole.n_dims < 2) {
        return graph_fail_op(graph, op, err, "only images, sequences and rows can stand in a row");
    }
    for (int i = 1; i < op->n_in; i++) {
        struct shape part = graph->tensors[op->in[i]]->shape;
        const int64_t channels = part.dim[axis];
        part.dim[axis] = whole.dim[axis];
        if (!shape_equal(&part, &whole)) {
            return graph_fail_op(graph, op, err, "the shapes differ in more than their channels");
        }
        whole.dim[axis] += channels; /* at most 2^40 each, and eight of them */
    }
    *ret = whole;
    return MS_OK;
}

static int gradient_concat(struct tape *tape, int index, const struct op *op, int dy)
{
    int back = tape_append(tape, OP_CONCAT_BWD, index, &dy);
    int rc = back;
    for (int slot = 0; slot < op->n_in && rc >= 0; slot++) {
        rc = tape_output(tape, back, slot, slot);
    }
    return rc;
}

static const struct op_row rows[] = {
    {.kind = OP_CONCAT,
     .name = "concat",
     .n_in = GRAPH_OP_TENSORS_MAX,
     .n_out = 1,
     .n_optional = GRAPH_OP_TENSORS_MAX - 2,
     .wants = "vvvvvvvv",
     .differentiable = (1U << GRAPH_OP_TENSORS_MAX) - 1,
     .infer = infer_concat,
     .gradient = gradient_concat,
     .products = graph_no_products,
     .page = "Channels of two to eight values, one value behind the other."},
    {.kind = OP_CONCAT_BWD,
     .name = "concat_bwd",
     .n_in = 1,
     .n_out = GRAPH_OP_TENSORS_MAX,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_concat = {rows, MS_ARRAY_SIZE(rows)};
