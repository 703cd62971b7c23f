/* threads.c - one thread or the whole team of a rank, by the work of a step
 *
 * A team that is woken for microseconds costs more than it saves, and far more beside another busy
 * process, when each barrier waits for a thread that has no core. Estimated and not measured in the
 * job: equal graphs get equal threads on all ranks and in every run, and so equal bits. */
#include "libworker/graph/cost.h"
#include "libworker/graph/op.h"
#include "libworker/plan/plan.h"

/* One core of the machines that people have, roughly: what decides is a mean per op that differs by
 * two orders of magnitude between networks that want a team and those that do not (docs/design.md
 * 5, bench/dispatch). */
#define CORE_FLOPS_PER_S 50e9
#define CORE_BYTES_PER_S 10e9
#define TEAM_LEAST_S     100e-6 /* of one thread's time for an op: some barriers' worth */

int plan_threads(const struct graph *graph, int most)
{
    double seconds = 0;
    int n_ops = graph_n_ops(graph);
    for (int i = 0; i < n_ops; i++) {
        const struct op *op = graph_op(graph, i);
        /* a product and its addition */
        double compute = 2 * op_row(op->kind)->products(graph, op) / CORE_FLOPS_PER_S;
        double memory = graph_bytes(graph, op) / CORE_BYTES_PER_S;
        seconds += compute > memory ? compute : memory;
    }
    return seconds >= TEAM_LEAST_S * n_ops ? most : 1;
}
