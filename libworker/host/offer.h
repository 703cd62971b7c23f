/* offer.h - what this host has, and what it offers this process of it */
#ifndef OFFER_H
#define OFFER_H

#include "libworker/host/cgroup.h"
#include "libworker/host/cpuset.h"

#include <stdint.h>

enum { OFFER_CACHES = 3 };

struct host_offer {
    struct cpuset cpus;                 /* that this process may use */
    int cores;                          /* how many these are */
    int physical;                       /* ... of how many cores: siblings of one core share it */
    int numa;                           /* ... on how many NUMA nodes */
    uint32_t cpu_milli;                 /* CPU time of its cgroups, thousandths; 0: no limit */
    uint64_t cpu_pool;                  /* ... equal for processes that share that limit */
    uint64_t cache_bytes[OFFER_CACHES]; /* L1d, L2, L3 of the first of its cores; 0: not known */
    uint64_t memory_bytes;              /* that are free; 0: not known */
};

/* Where each CPU of the host stands, whether this process may use it or not. */
struct host_map {
    uint16_t core[MS_CPUS_MAX]; /* lowest CPU of its core */
    uint16_t node[MS_CPUS_MAX]; /* NUMA node */
};

struct host {
    struct host_offer offer;
    struct host_map map;
    int is_mapped; /* 0: the topology could not be read, each CPU counts as a core */
};

struct host_sources {
    const char *synthetic; /* a topology in hwloc's words; NULL: that of this machine */
    struct cpuset cpus;    /* that the process may use */
    struct cgroup_files cgroups;
};

/* Never fails: what cannot be read is left as not known. Any thread. */
void host_load(const struct host_sources *from, struct host *ret);

/* This host, loaded by the first caller, who has the affinity that the process was given, or that
 * OpenMP's variables made of it: call it before any thread is bound by us. Borrowed for ever. Any
 * thread. */
const struct host *host_get(void);

#endif
