/* cpuset.c - sets of CPUs, by the numbers that the kernel gives them */
#include "libworker/host/cpuset.h"

#include <sched.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

_Static_assert(MS_CPUS_MAX <= CPU_SETSIZE, "a cpu_set_t holds ours");

void cpuset_add(struct cpuset *set, int cpu)
{
    set->bits[cpu / 8] |= (uint8_t)(1U << cpu % 8);
}

int cpuset_has(const struct cpuset *set, int cpu)
{
    return set->bits[cpu / 8] >> cpu % 8 & 1;
}

int cpuset_next(const struct cpuset *set, int from)
{
    int cpu = from;
    while (cpu < MS_CPUS_MAX && !cpuset_has(set, cpu)) {
        cpu = set->bits[cpu / 8] >> cpu % 8 == 0 ? cpu / 8 * 8 + 8 : cpu + 1;
    }
    return cpu;
}

int cpuset_count(const struct cpuset *set)
{
    int n = 0;
    for (int i = 0; i < MS_CPUSET_BYTES; i++) {
        for (unsigned bits = set->bits[i]; bits != 0; bits &= bits - 1) {
            n++;
        }
    }
    return n;
}

int cpuset_is_empty(const struct cpuset *set)
{
    unsigned any = 0; /* no early end: the loop is a few vector instructions */
    for (int i = 0; i < MS_CPUSET_BYTES; i++) {
        any |= set->bits[i];
    }
    return any == 0;
}

int cpuset_meets(const struct cpuset *a, const struct cpuset *b)
{
    unsigned any = 0;
    for (int i = 0; i < MS_CPUSET_BYTES; i++) {
        any |= (unsigned)(a->bits[i] & b->bits[i]);
    }
    return any != 0;
}

struct cpuset cpuset_and(const struct cpuset *a, const struct cpuset *b)
{
    struct cpuset set;
    for (int i = 0; i < MS_CPUSET_BYTES; i++) {
        set.bits[i] = a->bits[i] & b->bits[i];
    }
    return set;
}

struct cpuset cpuset_or(const struct cpuset *a, const struct cpuset *b)
{
    struct cpuset set;
    for (int i = 0; i < MS_CPUSET_BYTES; i++) {
        set.bits[i] = a->bits[i] | b->bits[i];
    }
    return set;
}

struct cpuset cpuset_minus(const struct cpuset *a, const struct cpuset *b)
{
    struct cpuset set;
    for (int i = 0; i < MS_CPUSET_BYTES; i++) {
        set.bits[i] = a->bits[i] & (uint8_t)~b->bits[i];
    }
    return set;
}

struct cpuset cpuset_of_bytes(const uint8_t *bytes, size_t n)
{
    struct cpuset set = {{0}};
    if (n > 0) {
        memcpy(set.bits, bytes, n < MS_CPUSET_BYTES ? n : MS_CPUSET_BYTES);
    }
    return set;
}

size_t cpuset_bytes(const struct cpuset *set)
{
    size_t n = MS_CPUSET_BYTES;
    while (n > 0 && set->bits[n - 1] == 0) {
        n--;
    }
    return n;
}

struct cpuset cpuset_of_thread(void)
{
    struct cpuset set = {{0}};
    cpu_set_t kernel;
    if (sched_getaffinity(0, sizeof(kernel), &kernel) != 0) {
        return set;
    }
    for (int i = 0; i < MS_CPUS_MAX; i++) {
        if (CPU_ISSET(i, &kernel)) {
            cpuset_add(&set, i);
        }
    }
    return set;
}

#ifdef _OPENMP
static void add_place(int place, struct cpuset *set)
{
    int cpus[MS_CPUS_MAX];
    const int n = omp_get_place_num_procs(place);
    if (n > MS_CPUS_MAX) {
        return;
    }
    omp_get_place_proc_ids(place, cpus);
    for (int i = 0; i < n; i++) {
        if (cpus[i] >= 0 && cpus[i] < MS_CPUS_MAX) {
            cpuset_add(set, cpus[i]);
        }
    }
}

struct cpuset cpuset_of_team(void)
{
    struct cpuset set = {{0}};
    const int n = omp_get_proc_bind() != omp_proc_bind_false ? omp_get_num_places() : 0;
    for (int i = 0; i < n; i++) {
        add_place(i, &set);
    }
    return cpuset_is_empty(&set) ? cpuset_of_thread() : set;
}
#else
struct cpuset cpuset_of_team(void)
{
    return cpuset_of_thread();
}
#endif

int cpuset_bind_thread(const struct cpuset *set)
{
    cpu_set_t kernel;
    CPU_ZERO(&kernel);
    for (int i = 0; i < MS_CPUS_MAX; i++) {
        if (cpuset_has(set, i)) {
            CPU_SET(i, &kernel);
        }
    }
    return sched_setaffinity(0, sizeof(kernel), &kernel);
}
