/* write_recurrent.c - recurrent ops, each with the dense layer before it, as a node of ONNX
 *
 * A weight is cut and put together in the node's order of gates, as PyTorch's exporters do it, so
 * that parameters keep their names, and recurrent.c knows them again. Two directions of a layer are
 * one node. */
#include "libworker/onnx/write_impl.h"

#include "libworker/graph/op.h"

#include <stdio.h>
#include <string.h>

static int is_recurrent(const struct op *op)
{
    return op_gates(op->kind) > 0;
}

int write_is_recurrent(const struct write *w, int index)
{
    const struct op *next = graph_op(w->graph, index + 1); /* behind all of these is a loss */
    return is_recurrent(next) && next->in[0] == graph_op(w->graph, index)->out[0];
}

/* Dense layers of a node by their place, of which the next op is the recurrent one. */
struct directions {
    int n;
    int at[2];
};

/* Do a and b, of which b is later, read one input in two directions? */
static int is_pair(const struct write *w, int a, int b)
{
    if (a < 0 || b >= graph_n_forward_ops(w->graph) - 1 ||
        graph_op(w->graph, a)->kind != OP_DENSE || graph_op(w->graph, b)->kind != OP_DENSE ||
        !write_is_recurrent(w, a) || !write_is_recurrent(w, b)) {
        return 0;
    }
    const struct op *of[2] = {graph_op(w->graph, a + 1), graph_op(w->graph, b + 1)};
    return graph_op(w->graph, a)->in[0] == graph_op(w->graph, b)->in[0] &&
           of[0]->kind == of[1]->kind && of[0]->n_in == of[1]->n_in && !of[0]->is_reversed &&
           of[1]->is_reversed &&
           shape_equal(&graph_tensor(w->graph, of[0]->out[0])->shape,
                       &graph_tensor(w->graph, of[1]->out[0])->shape);
}

/* The forward one of b, which is the nearest before it: another layer may read the input, too. The
 * second one comes behind the first, or behind what makes a row of its last token. -1: none. */
static int forward_of(const struct write *w, int b)
{
    return is_pair(w, b - 2, b) ? b - 2 : is_pair(w, b - 4, b) ? b - 4 : -1;
}

static struct directions directions_of(const struct write *w, int index)
{
    const int before = forward_of(w, index);
    if (before >= 0) {
        return (struct directions){2, {before, index}};
    }
    for (int apart = 2; apart <= 4; apart += 2) {
        if (forward_of(w, index + apart) == index) {
            return (struct directions){2, {index, index + apart}};
        }
    }
    return (struct directions){.n = 1, .at = {index, index}};
}

/* ---- parameters ---- */

static const char *row_of(const struct op *op, int row, char buf[WRITE_NAME_MAX])
{
    char part[16];
    snprintf(part, sizeof(part), "row_%d", row);
    return write_part_of(op, part, buf);
}

static void put_rows(struct write *w, const struct op *op, int64_t hidden)
{
    const int64_t gates = op_gates(op->kind);
    const int unused = gates == 4 ? 2 : -1; /* where no piece begins or ends */
    char name[WRITE_NAME_MAX];
    for (int row = 0; row <= (gates > 1 ? gates : 0); row++) {
        const int64_t at = row * hidden;
        if (row != unused) {
            write_constant_ints(w, row_of(op, row, name), &at, 1);
        }
    }
}

static void join(struct write *w, const char *a, const char *b, const char *makes)
{
    write_begin(w, "Concat");
    write_in(w, a);
    write_in(w, b);
    write_put_int(w, "axis", 0);
    write_end(w, makes);
}

/* The parameter with its gates in ONNX's order: i, o, f and c of i, f, g, o; z, r, h of r, z, n.
 * One gate is the parameter itself. */
static const char *turn_gates(struct write *w, const struct op *op, int tensor, const char *part,
                              char buf[WRITE_NAME_MAX])
{
    static const int cuts[2][3][2] = {{{0, 1}, {3, 4}, {1, 3}}, {{1, 2}, {0, 1}, {2, 3}}};
    const int is_gru = op->kind == OP_GRU;
    char names[3][WRITE_NAME_MAX];
    char row[WRITE_NAME_MAX];
    char piece[32];
    if (op_gates(op->kind) == 1) {
        return write_name(w, tensor, buf);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(piece, sizeof(piece), "%s_%d", part, i);
        write_begin(w, "Slice");
        write_in_tensor(w, tensor);
        write_in(w, row_of(op, cuts[is_gru][i][0], row));
        write_in(w, row_of(op, cuts[is_gru][i][1], row));
        write_in(w, row_of(op, 0, row)); /* axis 0 */
        write_end(w, write_part_of(op, piece, names[i]));
    }
    write_begin(w, "Concat");
    for (int i = 0; i < 3; i++) {
        write_in(w, names[i]);
    }
    write_put_int(w, "axis", 0);
    write_end(w, write_part_of(op, part, buf));
    return buf;
}

/* With a dimension for directions before it. */
static const char *widen(struct write *w, const struct op *op, const char *x, const char *part,
                         char buf[WRITE_NAME_MAX])
{
    char zero[WRITE_NAME_MAX];
    write_begin(w, "Unsqueeze");
    write_in(w, x);
    write_in(w, row_of(op, 0, zero));
    write_end(w, write_part_of(op, part, buf));
    return buf;
}

enum { INPUTS = 3 }; /* of a node: weights of x and of h, biases */

/* Of one direction. */
static void put_parameters(struct write *w, int dense, char ret[INPUTS][WRITE_NAME_MAX])
{
    const struct op *of_x = graph_op(w->graph, dense);
    const struct op *op = graph_op(w->graph, dense + 1);
    const int64_t hidden = graph_tensor(w->graph, op->out[0])->shape.dim[2];
    char x[WRITE_NAME_MAX];
    char h[WRITE_NAME_MAX];
    char biases[WRITE_NAME_MAX];
    put_rows(w, op, hidden);
    widen(w, op, turn_gates(w, op, of_x->in[1], "gates_ih", x), "weight_ih", ret[0]);
    widen(w, op, turn_gates(w, op, op->in[1], "gates_hh", h), "weight_hh", ret[1]);
    if (op->n_in > 2) {
        join(w, turn_gates(w, op, of_x->in[2], "shift_ih", x),
             turn_gates(w, op, op->in[2], "shift_hh", h), write_part_of(op, "biases", biases));
        widen(w, op, biases, "bias", ret[2]);
    }
}

/* ---- nodes ---- */

/* Y (tokens, directions, n, hidden), whose name goes into ret. */
static void put_node(struct write *w, const struct directions *of, char ret[WRITE_NAME_MAX])
{
    static const int64_t turned[3] = {1, 0, 2};
    static const char *const parts[INPUTS] = {"all_weight_ih", "all_weight_hh", "all_bias"};
    const struct op *op = graph_op(w->graph, of->at[0] + 1);
    const int n_inputs = op->n_in > 2 ? INPUTS : INPUTS - 1;
    char names[2][INPUTS][WRITE_NAME_MAX];
    char x[WRITE_NAME_MAX];
    char tokens[WRITE_NAME_MAX];
    for (int d = 0; d < of->n; d++) {
        put_parameters(w, of->at[d], names[d]);
    }
    for (int i = 0; i < n_inputs && of->n > 1; i++) {
        char both[WRITE_NAME_MAX];
        join(w, names[0][i], names[1][i], write_part_of(op, parts[i], both));
        memcpy(names[0][i], both, sizeof(both));
    }
    write_transpose(w, write_name(w, graph_op(w->graph, of->at[0])->in[0], x), turned, 3,
                    write_part_of(op, "tokens", tokens));
    write_begin(w, op->kind == OP_LSTM ? "LSTM" : op->kind == OP_GRU ? "GRU" : "RNN");
    write_in(w, tokens);
    for (int i = 0; i < n_inputs; i++) {
        write_in(w, names[0][i]);
    }
    write_put_int(w, "hidden_size", graph_tensor(w->graph, op->out[0])->shape.dim[2]);
    write_put_text(w, "direction",
                   of->n > 1         ? "bidirectional"
                   : op->is_reversed ? "reverse"
                                     : "forward");
    if (op->kind == OP_GRU) {
        write_put_int(w, "linear_before_reset", 1);
    }
    if (op_gates(op->kind) == 1) {
        write_put_texts(w, "activations", op->kind == OP_RNN_RELU ? "Relu" : "Tanh", of->n);
    }
    write_end(w, write_part_of(op, "y", ret));
}

/* What an op of them makes, (n, tokens, hidden). */
static void put_direction(struct write *w, const struct op *op, const char *y, int64_t direction)
{
    static const int64_t back[3] = {1, 0, 2};
    char place[WRITE_NAME_MAX];
    char one[WRITE_NAME_MAX];
    write_constant_ints(w, write_part_of(op, "direction", place), &direction, -1);
    write_begin(w, "Gather");
    write_in(w, y);
    write_in(w, place);
    write_put_int(w, "axis", 1);
    write_end(w, write_part_of(op, "one", one));
    write_transpose(w, one, back, 3, write_name(w, op->out[0], place));
}

/* Both, (n, tokens, 2 hidden). */
static void put_both(struct write *w, const struct op *op, const struct op *concat, const char *y)
{
    static const int64_t back[4] = {2, 0, 1, 3};
    const struct shape *of = &graph_tensor(w->graph, concat->out[0])->shape;
    const int64_t sizes[3] = {0, of->dim[1], of->dim[2]};
    char turned[WRITE_NAME_MAX];
    char name[WRITE_NAME_MAX];
    write_transpose(w, y, back, 4, write_part_of(op, "turned", turned));
    write_reshape(w, op, turned, "sizes", sizes, 3, write_name(w, concat->out[0], name));
}

int write_recurrent(struct write *w, int index)
{
    const struct directions of = directions_of(w, index);
    const struct op *ops[2] = {graph_op(w->graph, of.at[0] + 1), graph_op(w->graph, of.at[1] + 1)};
    char y[WRITE_NAME_MAX];
    if (index != of.at[0]) {
        return index + 2; /* the first one has written it */
    }
    const struct op *behind = graph_op(w->graph, of.at[1] + 2 * (of.n == 2));
    const int is_whole = of.n == 2 && of.at[1] == index + 2 && behind->kind == OP_CONCAT &&
                         behind->n_in == 2 && behind->in[0] == ops[0]->out[0] &&
                         behind->in[1] == ops[1]->out[0];
    put_node(w, &of, y);
    if (is_whole) {
        put_both(w, ops[0], behind, y);
        return index + 5;
    }
    for (int d = 0; d < of.n; d++) {
        put_direction(w, ops[d], y, d);
    }
    return index + 2;
}
