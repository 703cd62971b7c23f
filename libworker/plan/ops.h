/* ops.h - what a plan does with the graph's ops: a row a kind (ops.c)
 *
 * What the graph itself knows of an op is in graph/op.h. */
#ifndef PLAN_OPS_H
#define PLAN_OPS_H

#include "libworker/plan/lowering.h"

struct plan_op {
    enum op_kind kind;
    /* Lets op run inside another op's step, or others inside its own; NULL: always by itself. */
    void (*fuse)(struct lowering *lo, const struct readers *readers, int op);
    /* The op's steps, with the choice of code and layouts where there is no row to obey; NULL: fuse
     * leaves nothing over. MS_E_UNSUPPORTED: oneDNN has nothing for it. */
    int (*lower)(struct lowering *lo, int op, struct ms_err *err);
};

const struct plan_op *plan_op(enum op_kind kind);

#endif
