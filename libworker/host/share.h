/* share.h - how the ranks of a job share what their hosts offer: pure, the same answer on each rank
 *
 * A rank's share are the CPUs that it alone computes on. Cores are given out whole, with those of
 * their hardware threads that the rank may use, and from one NUMA node where that has enough. */
#ifndef SHARE_H
#define SHARE_H

#include "libworker/host/offer.h"

struct share_rank {
    const char *host;               /* equal for ranks of one host; borrowed for the call */
    const struct host_offer *offer; /* likewise; NULL: not known */
};

/* Threads for each rank of a job, by default: one a core, as many as the rank with the fewest has,
 * because a plan with other threads has other bits. A rank has the cores of its offer, divided by
 * the ranks of its host that may use one of the same CPUs; not more than its quota of CPU time,
 * divided by those who have the same one; at least 1. n is 1 or more. 0: an offer is not known.
 *
 * Two things it does not see, because no offer says them, and all ranks have to agree on what the
 * offers say: ranks that are pinned to different hardware threads of one core each count it (each
 * has a CPU of its own, at half the speed), and a quota above those of several processes that binds
 * them together (it throttles them; the bits are the same). `threads` of the job says otherwise. */
int share_threads(const struct share_rank *ranks, int n);

/* The CPUs of n ranks of one host, of which rank i may use sets[i] (not empty). 1: each
 * ret_shares[i] is a part of its set, meets no other, and has threads cores or more; together they
 * have all cores of the sets. 0: there are not enough cores for that, ret_shares has no meaning. */
int share_cpus(const struct host_map *map, const struct cpuset *sets, int n, int threads,
               struct cpuset *ret_shares);

#endif
