/* replica_impl.h - what replica.c and replica_step.c share */
#ifndef REPLICA_IMPL_H
#define REPLICA_IMPL_H

#include "libworker/train/pieces.h"
#include "libworker/train/replica.h"

struct use {
    struct graph *graph;
    struct plan *plan;
    int64_t batch;
};

struct replica {
    struct replica_config cfg;
    const struct job *job;
    struct plan_spec *spec; /* NULL: no plans yet */
    struct use uses[PLAN_USES];
    struct plan_sizes sizes;
    struct pieces pieces; /* of the spec */
    size_t arena_bytes;   /* the largest of the plans' */
    int n_slots;
    void *arena;
    void *weights; /* written by who asked weights_to_write */
    void *mirrors;
    int has_mirrors;                  /* they are those of the weights */
    void *slots[OPTIMIZER_SLOTS_MAX]; /* of the weights' type */
    void *exchange;                   /* bound; of comm */
    void *sums;                       /* like it, of the batches of a step before the last one */
    void *partial; /* sums of parts, of gradients for their length or of an optimizer; NULL: none */
    void *moving;
};

/* Mirrors are no longer theirs: nothing runs on them before they are made again. */
void *replica_weights_to_write(struct replica *replica);

#endif
