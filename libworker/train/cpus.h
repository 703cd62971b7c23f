/* cpus.h - how many threads a rank computes with, and which CPUs are its own */
#ifndef TRAIN_CPUS_H
#define TRAIN_CPUS_H

#include "libworker/host/cpuset.h"
#include "libworker/train/train.h"

struct train_cpus {
    int threads;         /* the same on all ranks of the job */
    int fits;            /* this host has a core for each thread of its ranks */
    int has_share;       /* it is known to, and: */
    struct cpuset share; /* those of this rank, on which no other one computes */
    int stays_unbound;   /* the share is nobody's to bind to: cfg said so */
    int is_bound;        /* by train_cpus_bind, from: */
    struct cpuset whole;
};

int train_is_local(const struct train_config *cfg, int rank); /* on this rank's host? */
/* Ranks of cfg on this rank's host, itself included. */
int train_local_ranks(const struct train_config *cfg);

/* What the job says, or else what share.h makes of the offers of all ranks; where a rank's is not
 * known (an older worker), this process's CPUs divided by the ranks of the host. MS_E_NOMEM. */
int train_cpus_find(const struct train_config *cfg, struct train_cpus *ret, struct ms_err *err);
/* The same with so many threads, >= 1: those of a plan. */
int train_cpus_for(const struct train_config *cfg, int threads, struct train_cpus *ret,
                   struct ms_err *err);

/* Binds the calling thread and its team to the share, where there is one that is less than what the
 * thread has, the rank is to be bound, and no variable of OpenMP says where threads belong. The
 * team is bound to the share as a whole, not each thread to a core: threads that join it later are
 * bound as the caller is. */
void train_cpus_bind(struct train_cpus *cpus);
/* Back to where they were; by the thread that was bound. Nothing where none was. */
void train_cpus_unbind(struct train_cpus *cpus);

/* Around the making of threads that are none of the team, which inherit where the caller is: it
 * alone goes to all CPUs of the team, where it or OpenMP's variables bound it to some, and back.
 * ret_here: where it was. */
void train_cpus_step_out(const struct train_cpus *cpus, struct cpuset *ret_here);
void train_cpus_step_back(const struct cpuset *here);

#endif
