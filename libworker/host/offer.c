/* offer.c - what this host has, and what it offers this process of it; the only file that knows
 * hwloc */
#include "libworker/host/offer.h"

#include "libworker/host/memory.h"
#include "proto/macros.h"

#include <hwloc.h>
#include <pthread.h>
#include <string.h>

/* Neither devices nor distances: they cost ten times the rest, and nobody asks for them. */
static int read_topology(const char *synthetic, hwloc_topology_t *ret)
{
    static const hwloc_obj_type_t wanted[] = {HWLOC_OBJ_CORE, HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,
                                              HWLOC_OBJ_L3CACHE};
    hwloc_topology_t topology = NULL;
    if (hwloc_topology_init(&topology) != 0) {
        return -1;
    }
    (void)hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    for (size_t i = 0; i < MS_ARRAY_SIZE(wanted); i++) {
        (void)hwloc_topology_set_type_filter(topology, wanted[i], HWLOC_TYPE_FILTER_KEEP_ALL);
    }
    /* the whole host: of other ranks' CPUs, too, it has to be known where they stand */
    const unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                                HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                                HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
    if (hwloc_topology_set_flags(topology, flags) != 0 ||
        (synthetic != NULL && hwloc_topology_set_synthetic(topology, synthetic) != 0) ||
        hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        return -1;
    }
    *ret = topology;
    return 0;
}

/* Each CPU a core of its own, all on one node. */
static void map_plainly(struct host_map *map)
{
    memset(map, 0, sizeof(*map));
    for (int i = 0; i < MS_CPUS_MAX; i++) {
        map->core[i] = (uint16_t)i;
    }
}

static void map_topology(hwloc_topology_t topology, struct host_map *map)
{
    hwloc_obj_t pu = NULL;
    while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != NULL) {
        if (pu->os_index >= MS_CPUS_MAX) {
            continue;
        }
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
        int node = hwloc_bitmap_first(pu->nodeset);
        map->core[pu->os_index] =
            (uint16_t)(core != NULL ? hwloc_bitmap_first(core->cpuset) : (int)pu->os_index);
        map->node[pu->os_index] = (uint16_t)(node >= 0 && node < MS_CPUS_MAX ? node : 0);
    }
}

/* Of one CPU: it has a cache of each level, or none. */
static void note_caches(hwloc_topology_t topology, int cpu, uint64_t ret[OFFER_CACHES])
{
    static const hwloc_obj_type_t levels[OFFER_CACHES] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,
                                                          HWLOC_OBJ_L3CACHE};
    hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(topology, (unsigned)cpu);
    for (int i = 0; pu != NULL && i < OFFER_CACHES; i++) {
        hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(topology, levels[i], pu);
        ret[i] = cache != NULL ? cache->attr->cache.size : 0;
    }
}

static void count_places(const struct host_map *map, struct host_offer *offer)
{
    struct cpuset cores = {{0}};
    struct cpuset nodes = {{0}};
    for (int i = cpuset_next(&offer->cpus, 0); i < MS_CPUS_MAX;
         i = cpuset_next(&offer->cpus, i + 1)) {
        cpuset_add(&cores, map->core[i]);
        cpuset_add(&nodes, map->node[i]);
    }
    offer->cores = cpuset_count(&offer->cpus);
    offer->physical = cpuset_count(&cores);
    offer->numa = cpuset_count(&nodes);
}

void host_load(const struct host_sources *from, struct host *ret)
{
    hwloc_topology_t topology = NULL;
    const struct cgroup_cpu limit = cgroup_cpu_limit(&from->cgroups);
    const uint64_t bytes = memory_available();
    memset(ret, 0, sizeof(*ret));
    ret->offer = (struct host_offer){.cpus = from->cpus,
                                     .cpu_milli = limit.milli,
                                     .cpu_pool = limit.pool,
                                     .memory_bytes = bytes == MEMORY_UNKNOWN ? 0 : bytes};
    if (cpuset_is_empty(&ret->offer.cpus)) { /* the kernel did not say */
        cpuset_add(&ret->offer.cpus, 0);
    }
    map_plainly(&ret->map);
    if (read_topology(from->synthetic, &topology) == 0) {
        map_topology(topology, &ret->map);
        note_caches(topology, cpuset_next(&ret->offer.cpus, 0), ret->offer.cache_bytes);
        hwloc_topology_destroy(topology);
        ret->is_mapped = 1;
    }
    count_places(&ret->map, &ret->offer);
}

static struct host this_host;

static void load_this_host(void)
{
    const struct host_sources from = {
        .synthetic = NULL, .cpus = cpuset_of_team(), .cgroups = cgroup_files_of_host};
    host_load(&from, &this_host);
}

const struct host *host_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load_this_host);
    return &this_host;
}
