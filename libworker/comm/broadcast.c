/* broadcast.c - bytes of one rank to all: once to each other host, there through shared memory
 *
 * On a host the pieces go through a ring in the sender's segment, which stays in the cache between
 * the writer and its readers. Pieces are counted over the mesh's life, by every rank alike, so that
 * no broadcast needs a sync at its end. */
#include "libworker/comm/group.h"

#include <string.h>

static int missing_reader(struct group *group, uint64_t target)
{
    for (int i = 0; i < group->n_locals; i++) {
        if (i != group->self && atomic_load(&group->counters[i]->consumed) < target) {
            return i;
        }
    }
    return -1;
}

/* A writer whose ring is full waits itself, and then its slowest reader is the one that is missing,
 * to all. Who waits for piece n has had all before it, so the writer is at n. */
static int missing_writer(struct group *group, uint64_t target)
{
    if (atomic_load(&group->counters[group->ring_writer]->published) >= target) {
        return -1;
    }
    int reader = target > SHM_RING_PIECES ? missing_reader(group, target - SHM_RING_PIECES) : -1;
    return reader >= 0 ? reader : group->ring_writer;
}

static uint8_t *ring_piece(struct group *group, uint64_t piece)
{
    return group->segments[group->ring_writer].base + SHM_SLOTS_AT +
           SHM_SLOTS * (size_t)SHM_SLOT_BYTES + (piece % SHM_RING_PIECES) * (size_t)SHM_RING_PIECE;
}

static int write_piece(struct group *group, const uint8_t *data, size_t size, struct ms_err *err)
{
    uint64_t piece = group->pieces++;
    struct shm_counters *own = group->counters[group->self];
    if (piece >= SHM_RING_PIECES) {
        int rc = shm_wait(group, missing_reader, piece - SHM_RING_PIECES + 1, err);
        if (rc < 0) {
            return rc;
        }
    }
    memcpy(ring_piece(group, piece), data, size);
    atomic_store(&own->consumed, piece + 1); /* a later root waits for this rank, too */
    atomic_store(&own->published, piece + 1);
    shm_ring(group);
    return 0;
}

static int read_piece(struct group *group, uint8_t *data, size_t size, struct ms_err *err)
{
    uint64_t piece = group->pieces++;
    int rc = shm_wait(group, missing_writer, piece + 1, err);
    if (rc < 0) {
        return rc;
    }
    memcpy(data, ring_piece(group, piece), size);
    atomic_store(&group->counters[group->self]->consumed, piece + 1);
    shm_ring(group);
    return 0;
}

/* From rank `writer` to all of this host. */
static int share(struct group *group, uint8_t *data, size_t bytes, int writer, struct ms_err *err)
{
    group->ring_writer = group->peers[writer].local;
    shm_arrive(group); /* do all agree on root and size? */
    int rc = shm_await(group, err);
    for (size_t at = 0; rc == 0 && at < bytes; at += SHM_RING_PIECE) {
        size_t size = bytes - at < SHM_RING_PIECE ? bytes - at : SHM_RING_PIECE;
        rc = writer == group->rank ? write_piece(group, data + at, size, err)
                                   : read_piece(group, data + at, size, err);
    }
    return rc;
}

/* The rank that receives for its host. */
static int leader_of(const struct group *group, int rank, int root)
{
    int host = group->peers[rank].host;
    return host == group->peers[root].host ? root : host;
}

int group_broadcast(struct group *group, void *data, size_t bytes, int root, struct ms_err *err)
{
    struct ms_err own;
    err = err != NULL ? err : &own;
    if (root < 0 || root >= group->n_ranks) {
        return ms_fail(err, MS_E_INVALID, "broadcast from rank %d of %d ranks", root,
                       group->n_ranks);
    }
    int rc = group_enter(group, MESH_BROADCAST, (uint64_t)root, bytes, err);
    if (rc < 0 || group->n_ranks == 1 || bytes == 0) {
        return group_leave(group, rc, err);
    }
    int leader = leader_of(group, group->rank, root);
    if (group->rank == root) {
        for (int i = 0; i < group->n_remotes; i++) {
            int rank = group->remotes[i];
            if (leader_of(group, rank, root) == rank) {
                stream_send(&group->peers[rank].stream, data, bytes, 0, (uint64_t)root, 0);
            }
        }
    } else if (group->rank == leader) {
        stream_receive(&group->peers[root].stream, data, bytes, 0, (uint64_t)root);
    }
    rc = streams_finish(group, err);
    if (rc == 0 && group->n_locals > 1) {
        rc = share(group, data, bytes, leader, err);
    }
    return group_leave(group, rc, err);
}
