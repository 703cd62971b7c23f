/* net.h - a trained network that answers: forward alone, with weights from a file
 *
 *     net_open (graph, plan, memory, weights) -> net_run, a batch after the other -> net_close
 *
 * Where the plan of its training is given, and can be had here, it answers with the bits that the
 * training's evaluation had. One thread, and its team. */
#ifndef INFER_NET_H
#define INFER_NET_H

#include "libworker/data/data.h"
#include "libworker/job/job.h"
#include "libworker/plan/plan.h"

struct net; /* all that a forward pass needs */

struct net_config {
    const struct job *job;          /* borrowed for the net's life */
    const struct loader_info *data; /* what a record is; classes: those of the training */
    int64_t batch;
    const char *weights; /* .safetensors, .ckpt or .onnx: all that the network has */
    const char *plan;    /* text of docs/plan.md, of untrusted bytes; NULL: there is none */
    int threads;         /* without a plan: what this process may have */
    /* The plan is not taken, and why. NULL allowed. */
    void (*on_note)(void *arg, const char *text);
    void *arg;
};

/* MS_E_INVALID: network, data or weights do not fit; MS_E_FULL: there is less free memory than it
 * needs; MS_E_UNSUPPORTED: this machine cannot. Returns owned. */
int net_open(const struct net_config *cfg, struct net **ret, struct ms_err *err);
void net_close(struct net *net); /* NULL allowed */

/* By moving statistics, and without dropout. Predictions: until the next run. */
int net_run(struct net *net, const struct batch *batch, struct plan_evaluated *ret,
            struct ms_err *err);
int net_threads(const struct net *net); /* of its team */
/* That it has for itself. */
uint64_t net_bytes(const struct net *net);
/* Are its bits those of the training by the plan that was given? */
int net_is_as_planned(const struct net *net);

#endif
