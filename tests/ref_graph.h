/* ref_graph.h - runs a whole graph in double with the reference kernels: the oracle for plans
 *
 *     ref_graph_create(graph)            room for every tensor
 *     ref_graph_set(run, tensor, floats) data, parameters, states
 *     ref_graph_set_labels(run, ints)    class numbers (float targets: ref_graph_set)
 *     ref_graph_run(run)                 every op in order: forward, and backward if differentiated
 *     ref_graph_values(run, tensor)      what any tensor holds, logical C order
 *
 * One thread a run. */
#ifndef TESTS_REF_GRAPH_H
#define TESTS_REF_GRAPH_H

#include "libworker/graph/graph.h"

struct ref_graph;

/* Is there a reference kernel for the op? A graph with an op without one cannot run. */
int ref_graph_knows(enum op_kind kind);

/* Where the data are tokens, how many words there are, else 0: what a batch is drawn from. */
int64_t ref_graph_words(const struct graph *graph);

/* An activation (graph.h) of one number, and its derivative there; at a kink what PyTorch takes. */
double ref_activation(enum op_kind kind, double x, double alpha);
double ref_activation_slope(enum op_kind kind, double x, double alpha);

/* Borrows graph for its life; NULL without memory. Parameters and states start as zero. */
struct ref_graph *ref_graph_create(const struct graph *graph);
void ref_graph_destroy(struct ref_graph *run); /* NULL allowed */

/* Initial values of every parameter and state from graph_init_values. MS_E_NOMEM. */
int ref_graph_init(struct ref_graph *run, uint64_t seed);

void ref_graph_set(struct ref_graph *run, int tensor, const float *values);
void ref_graph_set_labels(struct ref_graph *run, const int32_t *labels);

/* Borrowed for the run's life; may be written to (finite differences). */
double *ref_graph_values(struct ref_graph *run, int tensor);

void ref_graph_run(struct ref_graph *run);         /* batch statistics */
void ref_graph_run_forward(struct ref_graph *run); /* ... forward ops only */
void ref_graph_evaluate(struct ref_graph *run);    /* forward, moving statistics */
double ref_graph_loss(struct ref_graph *run);      /* of the last run */

/* The commit of one rank: moving = momentum moving + (1 - momentum) batch, variances unbiased
 * (times n / (n - 1); as they are where n is 1). */
void ref_graph_commit_stats(struct ref_graph *run);

#endif
