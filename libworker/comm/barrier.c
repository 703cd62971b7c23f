/* barrier.c - nobody goes on before everybody has come */
#include "libworker/comm/mesh.h"

#include <string.h>

static void nothing(void *a, const void *b, size_t count)
{
    (void)a;
    (void)b;
    (void)count;
}

int mesh_barrier(struct mesh *mesh, struct ms_err *err)
{
    const void *all[MS_WORKERS_MAX];
    struct ms_err own;
    err = err != NULL ? err : &own;
    int rc = mesh_enter(mesh, MESH_BARRIER, 0, 0, err);
    uint64_t here = mesh->op.sequence;
    if (rc < 0 || mesh->world == 1) {
        return mesh_leave(mesh, rc, err);
    }
    if (mesh->n_remotes == 0) {
        shm_arrive(mesh);
        rc = shm_await(mesh, err);
    } else if (allreduce_tree_is_better(mesh)) {
        rc = allreduce_tree(mesh, &here, 1, sizeof(here), nothing, err);
    } else {
        rc = gather_small(mesh, &here, sizeof(here), all, err);
    }
    return mesh_leave(mesh, rc, err);
}
