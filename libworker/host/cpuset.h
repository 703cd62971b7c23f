/* cpuset.h - sets of CPUs, by the numbers that the kernel gives them */
#ifndef CPUSET_H
#define CPUSET_H

#include "proto/limits.h"

#include <stddef.h>
#include <stdint.h>

/* CPU i is bit i % 8 of byte i / 8: on the wire, too. */
struct cpuset {
    uint8_t bits[MS_CPUSET_BYTES];
};

/* What these are given as a CPU is 0 to MS_CPUS_MAX - 1. */
void cpuset_add(struct cpuset *set, int cpu);
int cpuset_has(const struct cpuset *set, int cpu);
int cpuset_next(const struct cpuset *set,
                int from); /* first one from there on; MS_CPUS_MAX: none */
int cpuset_count(const struct cpuset *set);
int cpuset_is_empty(const struct cpuset *set);
int cpuset_meets(const struct cpuset *a, const struct cpuset *b); /* is a CPU in both */

struct cpuset cpuset_and(const struct cpuset *a, const struct cpuset *b);
struct cpuset cpuset_or(const struct cpuset *a, const struct cpuset *b);
struct cpuset cpuset_minus(const struct cpuset *a, const struct cpuset *b);

/* Of bytes as they come from the wire; those behind MS_CPUSET_BYTES are left out. */
struct cpuset cpuset_of_bytes(const uint8_t *bytes, size_t n);
size_t cpuset_bytes(const struct cpuset *set); /* up to the last one that is not 0 */

/* The CPUs on which the calling thread may run: its affinity, within the cpusets of all its control
 * groups, as the kernel keeps it. Empty where the kernel does not say. */
struct cpuset cpuset_of_thread(void);
/* The CPUs on which a team of the calling thread runs: where OpenMP binds its threads
 * (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY) all of its places, of which libgomp has given one
 * to the first thread before main; else the thread's affinity. */
struct cpuset cpuset_of_team(void);
/* Binds the calling thread, and threads that it makes from now on. -1 where the kernel refuses: no
 * CPU of the set is there any more. */
int cpuset_bind_thread(const struct cpuset *set);

#endif
