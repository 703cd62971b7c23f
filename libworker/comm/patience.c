/* patience.c - how long a rank of this host is waited for, where it may be waiting itself
 *
 * A rank that is waited for in one group may wait in another one for a rank that hangs: it knows
 * better whom to name. So each rank shows its host in what groups it waits, for whom, and how long
 * it ever has. comm.h says what is promised: time that the rank waits elsewhere is not counted
 * against it, but only once as long as the timeout. By then whoever it waits for has come or was
 * named; and what threads of the rank do in other groups is no excuse for ever. */
#include "libworker/comm/group.h"

#include <stdio.h>

_Static_assert((int)SHM_PLACES == (int)MESH_GROUPS_MAX, "a place for each group of a rank");

void patience_open(struct group *group)
{
    struct group *all = group->number == 0 ? group : group->mesh->groups[0];
    group->wait = &segment_counters(&all->segments[all->self])->places[group->place];
    atomic_store(&group->wait->whom, 0);
    atomic_store(&group->wait->group, group->number);
}

void patience_show(struct group *group, enum mesh_kind kind, int rank)
{
    uint64_t whom = ((uint64_t)kind << 32) | ((uint32_t)group->peers[rank].member + 1U);
    atomic_store_explicit(&group->wait->whom, whom, memory_order_relaxed);
}

void patience_show_none(struct group *group)
{
    atomic_store_explicit(&group->wait->whom, 0, memory_order_relaxed);
}

/* A rank of this host shows its waits in group 0's memory, which all of them map. */
static struct shm_wait *places_of(const struct group *group, int rank)
{
    const struct group *all = group->mesh->groups[0];
    return all->counters[all->peers[group->peers[rank].member].local]->places;
}

/* In all its life, in other groups than this one. */
static uint64_t waited_elsewhere_ns(const struct group *group, int rank)
{
    const struct shm_wait *places = places_of(group, rank);
    uint64_t sum = 0;
    for (int i = 0; i < SHM_PLACES; i++) {
        if (atomic_load(&places[i].group) != group->number) {
            sum += atomic_load(&places[i].waited_ns);
        }
    }
    return sum;
}

/* In this group, for ranks of other hosts: where it has none, nobody does, whatever a segment says.
 */
static uint64_t waits_afar(const struct group *group, int rank)
{
    return group->n_remotes > 0 ? atomic_load(&group->counters[group->peers[rank].local]->waits)
                                : 0;
}

void patience_look(struct group *group, int rank, uint64_t now_ms, struct patience *patience)
{
    uint64_t most_ms = (uint64_t)group->mesh->cfg.timeout_ms;
    uint64_t elsewhere_ns = waited_elsewhere_ns(group, rank);
    uint64_t waits = waits_afar(group, rank);
    if (rank != patience->rank || waits != patience->waits) {
        uint64_t first_ms = rank == patience->rank ? patience->first_ms : now_ms;
        *patience = (struct patience){.rank = rank,
                                      .waits = waits,
                                      .elsewhere_ns = elsewhere_ns,
                                      .start_ms = now_ms,
                                      .first_ms = first_ms};
    }
    uint64_t excused_ms = (elsewhere_ns - patience->elsewhere_ns) / 1000000U;
    excused_ms = excused_ms < most_ms ? excused_ms : most_ms;
    patience->total_ms = now_ms - patience->first_ms;
    patience->waited_ms = now_ms - patience->start_ms;
    patience->silent_ms = patience->waited_ms > excused_ms ? patience->waited_ms - excused_ms : 0;
}

const char *patience_print_elsewhere(const struct group *group, int rank, char *buf, size_t size)
{
    const struct mesh *mesh = group->mesh;
    const struct shm_wait *places = places_of(group, rank);
    buf[0] = '\0';
    for (int i = 0; i < SHM_PLACES; i++) {
        char who[MESH_WHO_MAX];
        uint64_t number = atomic_load(&places[i].group);
        uint64_t whom = atomic_load(&places[i].whom);
        uint64_t member = (whom & UINT32_MAX) - 1;
        if (number != group->number && whom != 0 && member < (uint64_t)mesh->cfg.world) {
            snprintf(buf, size, ", while it waited in %s of group %llu for %s",
                     mesh_kind_name(whom >> 32), (unsigned long long)number,
                     mesh_who(mesh, (int)member, who));
            break;
        }
    }
    return buf;
}
