/* alltoall.c - a block of each rank for each rank
 *
 * To ranks elsewhere a block goes in one stream, straight into its place. On this host each rank
 * lays out a piece for every other one in its slot, a slot at a time. */
#include "libworker/comm/group.h"

#include <string.h>

enum { LINE = 64 };

_Static_assert((int)SHM_SLOT_BYTES / (int)MS_WORKERS_MAX >= (int)LINE, "a slot has a line for all");

static const uint8_t *block_for(const uint8_t *blocks, int rank, size_t bytes)
{
    return blocks + (size_t)rank * bytes;
}

/* [at, at + size) of each block. */
static int trade_piece(struct group *group, const uint8_t *send, uint8_t *recv, size_t bytes,
                       size_t at, size_t size, size_t stride, struct ms_err *err)
{
    for (int i = 0; i < group->n_locals; i++) {
        if (i != group->self) {
            memcpy(shm_slot(group, group->self) + (size_t)i * stride,
                   block_for(send, group->locals[i], bytes) + at, size);
        }
    }
    shm_arrive(group);
    int rc = streams_progress(group, err);
    rc = rc < 0 ? rc : shm_await(group, err);
    for (int i = 0; rc == 0 && i < group->n_locals; i++) {
        if (i != group->self) {
            memcpy(recv + (size_t)group->locals[i] * bytes + at,
                   shm_slot(group, i) + (size_t)group->self * stride, size);
        }
    }
    group->slots++;
    return rc;
}

static int trade_on_host(struct group *group, const uint8_t *send, uint8_t *recv, size_t bytes,
                         struct ms_err *err)
{
    size_t stride = SHM_SLOT_BYTES / (size_t)group->n_locals / LINE * LINE;
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < bytes; at += stride) {
        size_t size = bytes - at < stride ? bytes - at : stride;
        rc = trade_piece(group, send, recv, bytes, at, size, stride, err);
    }
    return rc;
}

static int trade(struct group *group, const uint8_t *send, uint8_t *recv, size_t bytes,
                 struct ms_err *err)
{
    int rc = 0;
    for (int i = 0; i < group->n_remotes; i++) {
        int rank = group->remotes[i];
        struct stream *stream = &group->peers[rank].stream;
        stream_send(stream, block_for(send, rank, bytes), bytes, 0, 0, 0);
        stream_receive(stream, recv + (size_t)rank * bytes, bytes, 0, 0);
    }
    memcpy(recv + (size_t)group->rank * bytes, block_for(send, group->rank, bytes), bytes);
    if (group->n_locals > 1) {
        rc = trade_on_host(group, send, recv, bytes, err);
    }
    return rc == 0 ? streams_finish(group, err) : rc;
}

int group_all_to_all(struct group *group, const void *send, void *recv, size_t bytes,
                     struct ms_err *err)
{
    struct ms_err own;
    err = err != NULL ? err : &own;
    int rc = group_enter(group, MESH_ALL_TO_ALL, 0, bytes, err);
    rc = rc == 0 && bytes > 0 ? trade(group, send, recv, bytes, err) : rc;
    return group_leave(group, rc, err);
}
