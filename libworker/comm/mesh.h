/* mesh.h - inside of a mesh: its life, its members, its groups, how it ended
 *
 * comm.h is what others see. A mesh is made of groups of ranks: group 0 is all of them, others come
 * and go. What a collective needs is the group's (group.h): connections, shared memory, order of
 * the sum, counters, clock. So two threads in two groups share nothing but what is below.
 *
 * Each group has connections of its own, one for each pair of its ranks. A connection that several
 * groups share would carry frames for a group that this rank has not entered yet, before those of
 * one that it waits for; to read on it would have to keep them somewhere (how many?), or the peers
 * would have to ask before they send (a turn more for each message), and two threads would wait for
 * each other's TLS records. With connections of its own a group waits for nothing but its own ranks
 * in its own order: groups deadlock only where their ranks' programs do. */
#ifndef MESH_H
#define MESH_H

#include "libworker/comm/comm.h"
#include "proto/macros.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    MESH_TICK_MS = 50,   /* a sleeper looks for dead peers this often */
    MESH_STILL_MS = 200, /* a longer gap between two ticks: the machine stood still */
    MESH_WHO_MAX = 384,  /* "rank 3 (node w3 on host h)" */
    MESH_GROUPS_MAX = 8, /* that a rank is in at a time, group 0 included */
};

struct mesh {
    struct mesh_config cfg;                /* a copy, members included; a reference to tls */
    char *words;                           /* of the members */
    struct group *groups[MESH_GROUPS_MAX]; /* those alive; [0]: all ranks. NULL: none */
    uint32_t n_made;                       /* groups made so far: the number of the next one */
    _Atomic uint64_t wait_ns;

    /* How it ended: any thread. */
    atomic_int status;    /* 0, or the code of every later collective */
    int wake_fd;          /* eventfd: readable once status is set */
    pthread_mutex_t lock; /* text; groups, where they change */
    char text[MS_ERR_TEXT_MAX];
    _Atomic uint64_t culprit; /* rank at fault, or FRAME_NOBODY; never changes after status */
};

/* "rank 3 (node w3 on host h)" in a buffer of MESH_WHO_MAX; returns it. */
const char *mesh_who(const struct mesh *mesh, int rank, char *buf);
/* An index of groups that is free, or -1. On the thread of group 0, which alone takes them. */
int mesh_free_place(struct mesh *mesh);
/* Members share memory: same host, same user, and nobody forbade it. */
int mesh_are_local(const struct mesh *mesh, int a, int b);
/* 0, or the code and text with which the mesh ended. */
int mesh_check(struct mesh *mesh, struct ms_err *err);
/* The first end counts, with its culprit: the rank at fault, which the other ranks will hear of, or
 * -1. Wakes whoever waits in any group. Any thread. */
void mesh_end(struct mesh *mesh, int code, int culprit, const char *text);
uint64_t mesh_now_ns(void);
/* poll(2) that says why it cannot: how many are ready, 0 (also after a signal), or an error. */
int mesh_poll(struct pollfd *fds, nfds_t n, int timeout_ms, struct ms_err *err);

#endif
