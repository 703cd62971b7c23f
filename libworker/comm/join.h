/* join.h - inside of the handshake between the ranks of a new mesh */
#ifndef JOIN_H
#define JOIN_H

#include "libworker/comm/listener.h"
#include "libworker/comm/mesh.h"

enum guest_stage { GUEST_NONE, GUEST_DIAL, GUEST_TLS, GUEST_ASK, GUEST_HEAR };

struct guest { /* a connection that has not joined yet */
    enum guest_stage stage;
    struct link link;
    int rank; /* of an outgoing one; -1: came in */
    int is_unix;
    int memory; /* memfd that came along, -1: none */
    uint64_t since_ms;
    uint8_t bytes[HELLO_BYTES];
    size_t have;
};

struct caller { /* a rank that has not joined yet */
    int busy;   /* an outgoing connection is under way */
    int wait_ms;
    uint64_t next_ms;
    char note[MS_ERR_TEXT_MAX]; /* why the last attempt failed */
};

struct join {
    struct mesh *mesh;
    const struct mesh_config *cfg;
    int joined;
    int n_guests;
    struct guest *guests;
    struct caller *callers; /* world */
    struct pollfd *fds;
    uint64_t accept_ms; /* no accept before */
};

/* ---- join_socket.c ---- */

/* Begins to connect; returns the descriptor or a negative ms_code. */
int join_dial(const struct mesh_member *member, int is_unix, struct ms_err *err);
/* Does the process at the other end of a Unix socket belong to uid? */
int join_uid_is(int fd, uint32_t uid);
/* Bytes with a descriptor beside them: 1 sent, or -1. */
int join_send_memory(int fd, const void *bytes, size_t size, int memory);
/* As link_read; a descriptor that comes along replaces *memory. */
ssize_t join_receive_memory(int fd, void *bytes, size_t size, int *memory);

#endif
