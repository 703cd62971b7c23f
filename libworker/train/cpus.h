/* cpus.h - how many threads a rank computes with, and which CPUs are its own */
#ifndef TRAIN_CPUS_H
#define TRAIN_CPUS_H

#include "libworker/host/cpuset.h"
#include "libworker/train/train.h"

struct train_cpus {
    int threads;         /* the same on all ranks of the job */
    int has_share;       /* the ranks of this host have cores enough, and: */
    struct cpuset share; /* those of this rank, on which no other one computes */
};

/* Ranks of cfg on this rank's host, itself included. */
int train_local_ranks(const struct train_config *cfg);

/* What the job says, or else what share.h makes of the offers of all ranks; where a rank's is not
 * known (an older worker), this process's CPUs divided by the ranks of the host. MS_E_NOMEM. */
int train_cpus_find(const struct train_config *cfg, struct train_cpus *ret, struct ms_err *err);

#endif
