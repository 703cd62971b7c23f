/* broadcast.c - bytes of one rank to all: once to each other host, there through shared memory
 *
 * On a host the pieces go through a ring in the sender's segment, which stays in the cache between
 * the writer and its readers. Pieces are counted over the mesh's life, by every rank alike, so that
 * no broadcast needs a sync at its end. */
#include "libworker/comm/mesh.h"

#include <string.h>

static int missing_reader(struct mesh *mesh, uint64_t target)
{
    for (int i = 0; i < mesh->n_locals; i++) {
        if (i != mesh->self && atomic_load(&mesh->counters[i]->consumed) < target) {
            return i;
        }
    }
    return -1;
}

static int missing_writer(struct mesh *mesh, uint64_t target)
{
    return atomic_load(&mesh->counters[mesh->ring_writer]->published) < target ? mesh->ring_writer
                                                                               : -1;
}

static uint8_t *ring_piece(struct mesh *mesh, uint64_t piece)
{
    return mesh->segments[mesh->ring_writer].base + SHM_SLOTS_AT +
           SHM_SLOTS * (size_t)SHM_SLOT_BYTES + (piece % SHM_RING_PIECES) * (size_t)SHM_RING_PIECE;
}

static int write_piece(struct mesh *mesh, const uint8_t *data, size_t size, struct ms_err *err)
{
    uint64_t piece = mesh->pieces++;
    struct shm_counters *own = mesh->counters[mesh->self];
    if (piece >= SHM_RING_PIECES) {
        int rc = shm_wait(mesh, missing_reader, piece - SHM_RING_PIECES + 1, err);
        if (rc < 0) {
            return rc;
        }
    }
    memcpy(ring_piece(mesh, piece), data, size);
    atomic_store(&own->consumed, piece + 1); /* a later root waits for this rank, too */
    atomic_store(&own->published, piece + 1);
    shm_ring(mesh);
    return 0;
}

static int read_piece(struct mesh *mesh, uint8_t *data, size_t size, struct ms_err *err)
{
    uint64_t piece = mesh->pieces++;
    int rc = shm_wait(mesh, missing_writer, piece + 1, err);
    if (rc < 0) {
        return rc;
    }
    memcpy(data, ring_piece(mesh, piece), size);
    atomic_store(&mesh->counters[mesh->self]->consumed, piece + 1);
    shm_ring(mesh);
    return 0;
}

/* From rank `writer` to all of this host. */
static int share(struct mesh *mesh, uint8_t *data, size_t bytes, int writer, struct ms_err *err)
{
    mesh->ring_writer = mesh->peers[writer].local;
    shm_arrive(mesh); /* do all agree on root and size? */
    int rc = shm_await(mesh, err);
    for (size_t at = 0; rc == 0 && at < bytes; at += SHM_RING_PIECE) {
        size_t size = bytes - at < SHM_RING_PIECE ? bytes - at : SHM_RING_PIECE;
        rc = writer == mesh->rank ? write_piece(mesh, data + at, size, err)
                                  : read_piece(mesh, data + at, size, err);
    }
    return rc;
}

/* The rank that receives for its host. */
static int leader_of(const struct mesh *mesh, int rank, int root)
{
    int host = mesh->peers[rank].host;
    return host == mesh->peers[root].host ? root : host;
}

int mesh_broadcast(struct mesh *mesh, void *data, size_t bytes, int root, struct ms_err *err)
{
    struct ms_err own;
    err = err != NULL ? err : &own;
    if (root < 0 || root >= mesh->world) {
        return ms_fail(err, MS_E_INVALID, "broadcast from rank %d of %d ranks", root, mesh->world);
    }
    int rc = mesh_enter(mesh, MESH_BROADCAST, (uint64_t)root, bytes, err);
    if (rc < 0 || mesh->world == 1 || bytes == 0) {
        return mesh_leave(mesh, rc, err);
    }
    int leader = leader_of(mesh, mesh->rank, root);
    if (mesh->rank == root) {
        for (int i = 0; i < mesh->n_remotes; i++) {
            int rank = mesh->remotes[i];
            if (leader_of(mesh, rank, root) == rank) {
                stream_send(&mesh->peers[rank].stream, data, bytes, 0, (uint64_t)root, 0);
            }
        }
    } else if (mesh->rank == leader) {
        stream_receive(&mesh->peers[root].stream, data, bytes, 0, (uint64_t)root);
    }
    rc = streams_finish(mesh, err);
    if (rc == 0 && mesh->n_locals > 1) {
        rc = share(mesh, data, bytes, leader, err);
    }
    return mesh_leave(mesh, rc, err);
}
