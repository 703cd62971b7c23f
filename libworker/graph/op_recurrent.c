/* op_recurrent.c - recurrent cells over the tokens of sequences, behind a dense layer of their
 * input */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

int64_t op_gates(enum op_kind kind)
{
    return kind == OP_LSTM                              ? 4
           : kind == OP_GRU                             ? 3
           : kind == OP_RNN_TANH || kind == OP_RNN_RELU ? 1
                                                        : 0;
}

static int infer_recurrent(const struct graph *graph, const struct op *op, struct shape *ret,
                           struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    const struct shape *w = &graph->tensors[op->in[1]]->shape;
    const int64_t gates = op_gates(op->kind);
    if (!shape_is_sequence(x) || x->dim[2] % gates != 0) {
        return gates > 1 ? graph_fail_op(graph, op, err,
                                         "the input must be %lld gates (n, tokens, %lld h)",
                                         (long long)gates, (long long)gates)
                         : graph_fail_op(graph, op, err, "the input must be (n, tokens, h)");
    }
    const struct shape want = {2, {x->dim[2], x->dim[2] / gates}};
    if (!shape_equal(w, &want)) {
        char text[96];
        return graph_fail_op(graph, op, err, "the weight must be %s",
                             shape_format(&want, text, sizeof(text)));
    }
    *ret = (struct shape){3, {x->dim[0], x->dim[1], x->dim[2] / gates}};
    return op->n_in < 3 ? MS_OK : graph_check_bias(graph, op, x->dim[2], err);
}

static int gradient_recurrent(struct tape *tape, int index, const struct op *op, int dy)
{
    const int in[] = {op->in[0], op->out[0], dy, op->in[1], op->in[2]};
    int back = tape_append_with(tape, OP_RECURRENT_BWD, index, op->n_in + 2, in);
    int rc = back;
    for (int slot = 0; slot < op->n_in && rc >= 0; slot++) {
        rc = tape_output(tape, back, slot, slot);
    }
    return rc;
}

/* Of what a token makes with all rows of the weight. */
static double products_of(const struct graph *graph, int y, int w)
{
    const double rows = (double)graph->tensors[w]->shape.dim[0];
    return (double)shape_count(&graph->tensors[y]->shape) * rows;
}

static double products_of_recurrent(const struct graph *graph, const struct op *op)
{
    return products_of(graph, op->out[0], op->in[1]);
}

/* For the token before, and for the weight. */
static double products_of_recurrent_bwd(const struct graph *graph, const struct op *op)
{
    return 2 * products_of(graph, op->in[2], op->in[3]);
}

#define CELL_ROW(kind_, name_, page_)                                                              \
    {                                                                                              \
        .kind = (kind_), .name = (name_), .n_in = 3, .n_out = 1, .n_optional = 1, .wants = "vpp",  \
        .differentiable = 7, .infer = infer_recurrent, .gradient = gradient_recurrent,             \
        .products = products_of_recurrent, .page = (page_)                                         \
    }
static const struct op_row rows[] = {
    CELL_ROW(OP_LSTM, "lstm",
             "Long short-term memory over tokens, of four gates that a dense layer made."),
    CELL_ROW(OP_GRU, "gru",
             "Gated recurrent units over tokens, of three gates that a dense layer made."),
    CELL_ROW(OP_RNN_TANH, "rnn_tanh",
             "Over tokens, tanh of what a dense layer made and of the token before."),
    CELL_ROW(OP_RNN_RELU, "rnn_relu",
             "Over tokens, what is above 0 of what a dense layer made and of the token before."),
    {.kind = OP_RECURRENT_BWD,
     .name = "recurrent_bwd",
     .n_in = 5,
     .n_out = 3,
     .n_optional = 1,
     .products = products_of_recurrent_bwd,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_recurrent = {rows, MS_ARRAY_SIZE(rows)};
