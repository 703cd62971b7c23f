/* group_create.c - all ranks of a mesh agree on new groups, and those of each connect
 *
 * Everybody tells everybody the ranks of the group that it will be in, so a list that two of them
 * do not share is named before anybody connects. That exchange is a collective of group 0: who
 * connects to a rank for group n knows that it has done with n - 1, and so no rank has to keep
 * callers for later. */
#include "libworker/comm/group.h"

#include <assert.h>
#include <string.h>

struct proposal { /* on the wire, integers in the order of the machine */
    uint64_t exchange_count;
    uint8_t has[MS_WORKERS_MAX / 8]; /* bit r: rank r is in the group */
};

static int has_rank(const struct proposal *proposal, int rank)
{
    return (proposal->has[rank / 8] >> (rank % 8)) & 1;
}

static int propose(const struct mesh *mesh, const int *ranks, int n, size_t exchange_count,
                   struct proposal *ret, struct ms_err *err)
{
    *ret = (struct proposal){.exchange_count = exchange_count};
    for (int i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= mesh->cfg.world || (i > 0 && ranks[i] <= ranks[i - 1])) {
            return ms_fail(err, MS_E_INVALID,
                           "rank %d is number %d of a group: ranks are 0 to %d, each once, in "
                           "ascending order",
                           ranks[i], i, mesh->cfg.world - 1);
        }
        ret->has[ranks[i] / 8] |= (uint8_t)(1U << (ranks[i] % 8));
    }
    if (n != 0 && (n < 0 || !has_rank(ret, mesh->cfg.rank))) {
        return ms_fail(err, MS_E_INVALID,
                       "rank %d makes a group of %d ranks that it is not in: it takes part with an "
                       "empty list",
                       mesh->cfg.rank, n);
    }
    return 0;
}

/* Whom this rank counts in, and who counts it in, must have the same list. */
static int compare(struct mesh *mesh, const struct proposal *mine, const void *const *all,
                   struct ms_err *err)
{
    char who[MESH_WHO_MAX];
    for (int r = 0; r < mesh->cfg.world; r++) {
        struct proposal theirs;
        memcpy(&theirs, all[r], sizeof(theirs));
        if (!has_rank(mine, r) && !has_rank(&theirs, mesh->cfg.rank)) {
            continue;
        }
        if (memcmp(mine->has, theirs.has, sizeof(theirs.has)) != 0) {
            return group_blame(mesh->groups[0], r, err, MS_E_PROTOCOL,
                               "%s has another list of the ranks of group %u than this one: all "
                               "ranks of a group give the same",
                               mesh_who(mesh, r, who), mesh->n_made);
        }
        if (mine->exchange_count != theirs.exchange_count) {
            return group_blame(mesh->groups[0], r, err, MS_E_PROTOCOL,
                               "%s has an exchange buffer of %llu elements for group %u, this rank "
                               "one of %llu: their plans differ",
                               mesh_who(mesh, r, who), (unsigned long long)theirs.exchange_count,
                               mesh->n_made, (unsigned long long)mine->exchange_count);
        }
    }
    return 0;
}

static int agree(struct mesh *mesh, const struct proposal *mine, struct ms_err *err)
{
    const void *all[MS_WORKERS_MAX];
    int rc = gather_small(mesh->groups[0], mine, sizeof(*mine), all, err);
    return rc == 0 ? compare(mesh, mine, all, err) : rc;
}

static int check_room(struct mesh *mesh, struct ms_err *err)
{
    if (mesh_free_place(mesh) < 0) {
        return ms_fail(err, MS_E_INVALID,
                       "a rank is in at most %d groups at a time, that of all ranks "
                       "included",
                       MESH_GROUPS_MAX);
    }
    return 0;
}

int group_create(struct mesh *mesh, const int *ranks, int n, enum ms_dtype exchange_dtype,
                 size_t exchange_count, struct group **ret, struct ms_err *err)
{
    struct group *all = mesh->groups[0];
    struct group *group = NULL;
    struct proposal mine;
    struct ms_err own;
    err = err != NULL ? err : &own;
    int rc = group_enter(all, MESH_GROUP, mesh->n_made, 0, err);
    rc = rc == 0 ? group_check_dtype(exchange_dtype, err) : rc;
    rc = rc == 0 ? propose(mesh, ranks, n, exchange_count, &mine, err) : rc;
    rc = rc == 0 && n > 0 ? check_room(mesh, err) : rc;
    rc = rc == 0 ? agree(mesh, &mine, err) : rc;
    if (rc == 0 && n > 0) {
        rc = group_open(mesh, mesh->n_made, ranks, n, exchange_dtype, exchange_count, &group, err);
    }
    if (rc == 0) {
        pthread_mutex_lock(&mesh->lock);
        mesh->n_made++;
        if (group != NULL) {
            mesh->groups[group->place] = group;
        }
        pthread_mutex_unlock(&mesh->lock);
        *ret = group;
    }
    return group_leave(all, rc, err);
}

void group_destroy(struct group *group)
{
    if (group == NULL) {
        return;
    }
    struct mesh *mesh = group->mesh;
    assert(group != mesh->groups[0]);
    pthread_mutex_lock(&mesh->lock);
    for (int i = 1; i < MESH_GROUPS_MAX; i++) {
        mesh->groups[i] = mesh->groups[i] == group ? NULL : mesh->groups[i];
    }
    pthread_mutex_unlock(&mesh->lock);
    group_close(group);
}
