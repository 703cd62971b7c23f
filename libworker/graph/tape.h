/* tape.h - on which gradient rules write backward ops, for the families of ops (op_*.c)
 *
 * A rule is called once for its op, when the gradient of the op's output is complete. It gives each
 * input that is wanted its share. Each function returns 0 (tape_append: the op) or fails. */
#ifndef GRAPH_TAPE_H
#define GRAPH_TAPE_H

#include "libworker/graph/op.h"

/* Does somebody want the gradient of the op's input `slot`? */
int tape_wants(const struct tape *tape, const struct op *op, int slot);
/* A backward op of graph op `forward`, told the same as that. */
int tape_append(struct tape *tape, enum op_kind kind, int forward, const int *in);
/* ... that reads the first n_in of its inputs only. */
int tape_append_with(struct tape *tape, enum op_kind kind, int forward, int n_in, const int *in);
/* Output `slot` of backward op is the share of the forward op's input x_slot, if that is wanted. */
int tape_output(struct tape *tape, int op, int slot, int x_slot);
/* One backward op with one output, for input x_slot; nothing if nobody wants it. */
int tape_simple(struct tape *tape, enum op_kind kind, int forward, const int *in, int x_slot);
/* A tensor that exists already is a share of x's gradient. */
int tape_give(struct tape *tape, int x, int share);

#endif
