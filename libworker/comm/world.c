/* world.c - the collectives of all ranks: those of group 0 */
#include "libworker/comm/group.h"
#include "libworker/comm/mesh.h"

void *mesh_exchange(struct mesh *mesh)
{
    return group_exchange(mesh->groups[0]);
}

void mesh_populate_exchange(struct mesh *mesh)
{
    const struct group *group = mesh->groups[0];
    segment_populate(&group->segments[group->self]);
}

int mesh_local_ranks(const struct mesh *mesh)
{
    return group_local_ranks(mesh->groups[0]);
}

int mesh_step_begin(struct mesh *mesh, uint64_t step, struct ms_err *err)
{
    return group_step_begin(mesh->groups[0], step, err);
}

int mesh_all_reduce_sum(struct mesh *mesh, size_t begin, size_t count, const void **ret_result,
                        struct ms_err *err)
{
    return group_all_reduce_sum(mesh->groups[0], begin, count, ret_result, err);
}

int mesh_all_reduce_max(struct mesh *mesh, double *values, size_t count, struct ms_err *err)
{
    return group_all_reduce_max(mesh->groups[0], values, count, err);
}

int mesh_all_reduce_sum_f64(struct mesh *mesh, double *values, size_t count, struct ms_err *err)
{
    return group_all_reduce_sum_f64(mesh->groups[0], values, count, err);
}

int mesh_broadcast(struct mesh *mesh, void *data, size_t bytes, int root, struct ms_err *err)
{
    return group_broadcast(mesh->groups[0], data, bytes, root, err);
}

int mesh_all_gather(struct mesh *mesh, const void *mine, size_t bytes, void *all,
                    struct ms_err *err)
{
    return group_all_gather(mesh->groups[0], mine, bytes, all, err);
}

int mesh_barrier(struct mesh *mesh, struct ms_err *err)
{
    return group_barrier(mesh->groups[0], err);
}

void mesh_counters(const struct mesh *mesh, struct mesh_counters *ret,
                   struct mesh_traffic *ret_peers)
{
    group_counters(mesh->groups[0], ret, ret_peers);
}
