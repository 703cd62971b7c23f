/* cpus.c - how many threads a rank computes with, and which CPUs are its own */
#include "libworker/train/cpus.h"

#include "libworker/host/offer.h"
#include "libworker/host/share.h"
#include "libworker/kernel/kernel.h"
#include "proto/macros.h"

#include <stdlib.h>
#include <string.h>

static const char *host_of(const struct train_config *cfg, int rank)
{
    return cfg->members != NULL ? cfg->members[rank].host_id : "";
}

int train_is_local(const struct train_config *cfg, int rank)
{
    return strcmp(host_of(cfg, rank), host_of(cfg, cfg->rank)) == 0;
}

int train_local_ranks(const struct train_config *cfg)
{
    int n = 0;
    for (int i = 0; i < cfg->world; i++) {
        n += train_is_local(cfg, i);
    }
    return n;
}

/* NULL: not known. */
static const struct host_offer *offer_of(const struct train_config *cfg, int rank)
{
    if (cfg->offers != NULL) {
        return cfg->offers[rank].cores > 0 ? &cfg->offers[rank] : NULL;
    }
    return cfg->world == 1 && cfg->cores == 0 ? &host_get()->offer : NULL;
}

/* As releases without offers did; they may be among the ranks. */
static void divide_cpus(const struct train_config *cfg, struct train_cpus *ret)
{
    const int cores = cfg->cores > 0 ? cfg->cores : host_get()->offer.cores;
    const int locals = train_local_ranks(cfg);
    if (ret->threads == 0) {
        ret->threads = cores >= locals ? cores / locals : 1;
    }
    ret->fits = locals * ret->threads <= cores;
    ret->has_share = 0;
}

static void find_share(const struct train_config *cfg, const struct share_rank *ranks,
                       struct cpuset *sets, struct cpuset *shares, struct train_cpus *ret)
{
    int n = 0;
    int own = 0;
    for (int i = 0; i < cfg->world; i++) {
        if (train_is_local(cfg, i)) {
            own = i == cfg->rank ? n : own;
            sets[n++] = ranks[i].offer->cpus;
        }
    }
    ret->has_share = share_cpus(&host_get()->map, sets, n, ret->threads, shares);
    ret->fits = ret->has_share;
    ret->share = shares[own];
}

/* threads: 0: by default. */
static int find(const struct train_config *cfg, int threads, struct train_cpus *ret,
                struct ms_err *err)
{
    const size_t world = (size_t)cfg->world;
    struct share_rank *ranks = calloc(world, sizeof(*ranks));
    struct cpuset *sets = calloc(2 * world, sizeof(*sets));
    if (ranks == NULL || sets == NULL) {
        free(ranks);
        free(sets);
        return ms_fail(err, MS_E_NOMEM, "no memory for the CPUs of %d ranks", cfg->world);
    }
    for (int i = 0; i < cfg->world; i++) {
        ranks[i] = (struct share_rank){host_of(cfg, i), offer_of(cfg, i)};
    }
    const int shared = share_threads(ranks, cfg->world);
    ret->threads = threads > 0 ? threads : shared;
    ret->stays_unbound = cfg->stays_unbound;
    ret->is_bound = 0;
    if (shared > 0) {
        find_share(cfg, ranks, sets, sets + world, ret);
    } else {
        divide_cpus(cfg, ret);
    }
    free(ranks);
    free(sets);
    return 0;
}

int train_cpus_find(const struct train_config *cfg, struct train_cpus *ret, struct ms_err *err)
{
    return find(cfg, cfg->job->threads, ret, err);
}

int train_cpus_for(const struct train_config *cfg, int threads, struct train_cpus *ret,
                   struct ms_err *err)
{
    return find(cfg, threads, ret, err);
}

/* ---- binding ---- */

static int user_places_threads(void)
{
    static const char *const variables[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(variables); i++) {
        if (getenv(variables[i]) != NULL) {
            return 1;
        }
    }
    return 0;
}

static void bind_one(const void *arg)
{
    (void)cpuset_bind_thread((const struct cpuset *)arg); /* slower without, not wrong */
}

void train_cpus_bind(struct train_cpus *cpus)
{
    const struct cpuset whole = cpuset_of_thread();
    if (!cpus->has_share || cpus->stays_unbound || user_places_threads() ||
        cpuset_is_empty(&whole) || memcmp(&whole, &cpus->share, sizeof(whole)) == 0 ||
        cpuset_bind_thread(&cpus->share) != 0) {
        return;
    }
    cpus->whole = whole;
    cpus->is_bound = 1;
    kernel_team_each(cpus->threads, bind_one, &cpus->share);
}

void train_cpus_unbind(struct train_cpus *cpus)
{
    if (cpus->is_bound) {
        kernel_team_each(cpus->threads, bind_one, &cpus->whole);
        cpus->is_bound = 0;
    }
}

void train_cpus_step_out(const struct train_cpus *cpus, struct cpuset *ret_here)
{
    const struct cpuset all = cpus->is_bound ? cpus->whole : cpuset_of_team();
    *ret_here = cpuset_of_thread();
    (void)cpuset_bind_thread(&all);
}

void train_cpus_step_back(const struct cpuset *here)
{
    (void)cpuset_bind_thread(here);
}
