/* share.c - how the ranks of a job share what their hosts offer */
#include "libworker/host/share.h"

#include <string.h>

/* ---- threads ---- */

static int at_least_one(int n)
{
    return n > 0 ? n : 1;
}

static int threads_of(const struct share_rank *ranks, int n, int rank)
{
    const struct host_offer *offer = ranks[rank].offer;
    int n_cpus = 0; /* ranks with a CPU of this one's, itself included */
    int n_pool = 0; /* ... with the same quota */
    for (int i = 0; i < n; i++) {
        const struct host_offer *other = ranks[i].offer;
        if (i != rank && strcmp(ranks[i].host, ranks[rank].host) != 0) {
            continue;
        }
        n_cpus += i == rank || cpuset_meets(&other->cpus, &offer->cpus);
        n_pool += i == rank || (other->cpu_milli > 0 && other->cpu_pool == offer->cpu_pool);
    }
    const int threads = at_least_one(offer->physical / n_cpus);
    if (offer->cpu_milli == 0) {
        return threads;
    }
    const uint32_t quota = offer->cpu_milli / 1000 / (uint32_t)n_pool;
    return quota < (uint32_t)threads ? at_least_one((int)quota) : threads;
}

int share_threads(const struct share_rank *ranks, int n)
{
    int least = 0;
    for (int i = 0; i < n; i++) {
        if (ranks[i].offer == NULL) {
            return 0;
        }
    }
    for (int i = 0; i < n; i++) {
        const int threads = threads_of(ranks, n, i);
        least = least == 0 || threads < least ? threads : least;
    }
    return least;
}

/* ---- CPUs ----
 *
 * Ranks are served one after the other, those with the fewest cores first: they have the least
 * choice. A core stands in a set of cores as its lowest CPU. */

static struct cpuset cores_of(const struct host_map *map, const struct cpuset *cpus)
{
    struct cpuset cores = {{0}};
    for (int i = cpuset_next(cpus, 0); i < MS_CPUS_MAX; i = cpuset_next(cpus, i + 1)) {
        cpuset_add(&cores, map->core[i]);
    }
    return cores;
}

static struct cpuset cpus_of(const struct host_map *map, const struct cpuset *cpus,
                             const struct cpuset *cores)
{
    struct cpuset set = {{0}};
    for (int i = cpuset_next(cpus, 0); i < MS_CPUS_MAX; i = cpuset_next(cpus, i + 1)) {
        if (cpuset_has(cores, map->core[i])) {
            cpuset_add(&set, i);
        }
    }
    return set;
}

/* The one that is not served (its share is empty) and has the fewest cores; of several the first.
 */
static int next_rank(const struct host_map *map, const struct cpuset *sets, int n,
                     const struct cpuset *shares)
{
    int best = -1;
    int fewest = 0;
    for (int i = 0; i < n; i++) {
        if (!cpuset_is_empty(&shares[i])) {
            continue;
        }
        const struct cpuset cores = cores_of(map, &sets[i]);
        const int count = cpuset_count(&cores);
        if (best < 0 || count < fewest) {
            best = i;
            fewest = count;
        }
    }
    return best;
}

/* The node of which to take count cores: of those that have enough the one with the fewest, so that
 * large ones stay whole; the one with the most where none has enough. */
static int choose_node(const int *free_on, int count)
{
    int best = 0;
    for (int node = 1; node < MS_CPUS_MAX; node++) {
        const int is_enough = free_on[node] >= count;
        const int is_best_enough = free_on[best] >= count;
        if (is_enough != is_best_enough ? is_enough
            : is_enough                 ? free_on[node] < free_on[best]
                                        : free_on[node] > free_on[best]) {
            best = node;
        }
    }
    return best;
}

/* Adds count of the cores (which has as many) to chosen, node by node. */
static void choose_cores(const struct host_map *map, const struct cpuset *cores, int count,
                         struct cpuset *chosen)
{
    int free_on[MS_CPUS_MAX] = {0};
    for (int i = 0; i < MS_CPUS_MAX; i++) {
        free_on[map->node[i]] += cpuset_has(cores, i);
    }
    while (count > 0) {
        const int node = choose_node(free_on, count);
        for (int i = 0; i < MS_CPUS_MAX && count > 0; i++) {
            if (cpuset_has(cores, i) && map->node[i] == node) {
                cpuset_add(chosen, i);
                count--;
            }
        }
        free_on[node] = 0;
    }
}

/* CPUs of rest for which others wait, and in ret_n how many these are, the rank itself included. */
static struct cpuset waited_for(const struct cpuset *sets, int n, int rank,
                                const struct cpuset *rest, const struct cpuset *shares, int *ret_n)
{
    struct cpuset wanted = {{0}};
    *ret_n = 1;
    for (int i = 0; i < n; i++) {
        if (i != rank && cpuset_is_empty(&shares[i]) && cpuset_meets(&sets[i], rest)) {
            wanted = cpuset_or(&wanted, &sets[i]);
            (*ret_n)++;
        }
    }
    return cpuset_and(rest, &wanted);
}

/* Gives a rank what it alone can still take, and of what others wait for as much as makes its cores
 * an even part. Returns how many cores it has. */
static int serve(const struct host_map *map, const struct cpuset *sets, int n, int rank,
                 struct cpuset *taken, struct cpuset *shares)
{
    int n_waiting = 0;
    const struct cpuset rest = cpuset_minus(&sets[rank], taken);
    const struct cpuset lost = cpuset_and(&sets[rank], taken);
    const struct cpuset lost_cores = cores_of(map, &lost); /* with a sibling that another one has */
    const struct cpuset shared = waited_for(sets, n, rank, &rest, shares, &n_waiting);
    struct cpuset shared_cores = cores_of(map, &shared);
    struct cpuset cores = cores_of(map, &rest);
    cores = cpuset_minus(&cores, &lost_cores);
    shared_cores = cpuset_and(&shared_cores, &cores);

    struct cpuset chosen = cpuset_minus(&cores, &shared_cores);
    const int own = cpuset_count(&chosen);
    const int total = cpuset_count(&cores);
    const int even = total > 0 ? at_least_one(total / n_waiting) : 0;
    if (even > own) {
        choose_cores(map, &shared_cores, even - own, &chosen);
    }
    shares[rank] = cpus_of(map, &rest, &chosen);
    *taken = cpuset_or(taken, &shares[rank]);
    return cpuset_count(&chosen);
}

static int count_cpus(const struct cpuset *sets, int n)
{
    struct cpuset all = sets[0];
    for (int i = 1; i < n; i++) {
        all = cpuset_or(&all, &sets[i]);
    }
    return cpuset_count(&all);
}

int share_cpus(const struct host_map *map, const struct cpuset *sets, int n, int threads,
               struct cpuset *ret_shares)
{
    struct cpuset taken = {{0}};
    if (count_cpus(sets, n) / n < at_least_one(threads)) { /* soon seen, and hosts are often full */
        return 0;
    }
    memset(ret_shares, 0, (size_t)n * sizeof(*ret_shares));
    for (int i = 0; i < n; i++) {
        const int rank = next_rank(map, sets, n, ret_shares);
        if (serve(map, sets, n, rank, &taken, ret_shares) < at_least_one(threads)) {
            return 0;
        }
    }
    return 1;
}
