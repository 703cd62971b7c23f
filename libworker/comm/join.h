/* join.h - inside of the handshake between the ranks of a new group */
#ifndef JOIN_H
#define JOIN_H

#include "libworker/comm/group.h"
#include "libworker/comm/listener.h"

enum { JOIN_NO_DESCRIPTOR = -2 };

enum guest_stage { GUEST_NONE, GUEST_DIAL, GUEST_TLS, GUEST_ASK, GUEST_HEAR };

struct origin { /* an address, or a network of them: zeros behind its prefix */
    uint8_t family;
    uint8_t at[16];
};

struct party { /* connections that came in from one place, and count as one */
    struct origin from;
    int is_known; /* a rank that has not come is expected from there */
    int seats;    /* 0: unused */
    int begun;    /* of them within TLS */
};

struct guest { /* a connection that has not joined yet */
    enum guest_stage stage;
    struct link link;
    int rank;            /* of an outgoing one; -1: came in */
    struct party *party; /* NULL: an outgoing one */
    int has_begun;       /* TLS: its first bytes have been answered */
    int is_ready;        /* something has come since its last turn */
    int is_unix;
    int memory; /* memfd that came along, -1: none, JOIN_NO_DESCRIPTOR: it could not be taken */
    uint64_t since_ms;
    uint64_t again_ms; /* it is not looked at before */
    uint8_t bytes[HELLO_BYTES];
    size_t have;
};

struct caller { /* a rank that has not joined yet */
    int busy;   /* an outgoing connection is under way ... */
    int out;    /* ... and the other host has answered */
    int wait_ms;
    uint64_t next_ms;
    char note[MS_ERR_TEXT_MAX]; /* why the last attempt failed */
    int note_code;
};

struct join {
    struct group *group;
    const struct mesh_config *cfg; /* of the group's mesh */
    int joined;
    int n_guests;
    struct guest *guests;
    struct caller *callers;   /* world */
    struct origin *addresses; /* world: from where ranks are expected; family 0: not known */
    struct party parties[MS_HALF_OPEN_MAX];
    int next[2][2]; /* the guest after the last who had a turn, by is_known and has_begun */
    struct pollfd *fds;
    struct guest **waiting;     /* of fds, behind the listeners */
    uint64_t accept_ms;         /* no accept before */
    char lack[MS_ERR_TEXT_MAX]; /* what this process had too little of last ... */
    uint64_t lack_ms;           /* ... and when ... */
    uint64_t short_ms;          /* ... and since when, again and again */
};

/* The member that is a rank of the group. */
static inline const struct mesh_member *join_member(const struct join *join, int rank)
{
    return &join->cfg->members[join->group->peers[rank].member];
}

/* ---- join.c ---- */

uint64_t join_now_ms(const struct join *join);
/* An outgoing attempt has failed, and may be made again. */
void join_redial(struct join *join, struct guest *guest);
/* Keeps the reason for the error of the timeout: the last one, but no bare end of a connection in
 * the place of a reason. MS_E_NOMEM is nothing of the rank's: join_note_lack. */
void join_note(struct join *join, int rank, const struct ms_err *err);
/* A connection could not be had, for this process or its system has too little of something. That
 * is not the other's fault: if it does not pass soon, it is the end of the wait. */
void join_note_lack(struct join *join, const struct ms_err *err);
/* Finds peers that joined and went again while others are awaited: they may come back. */
void join_look_for_leavers(struct join *join);

/* ---- join_door.c ---- */

/* Notes from where the ranks are expected that connect to this one. */
int join_door_open(struct join *join, struct ms_err *err);
void join_drop(struct guest *guest);
/* A place for one more; NULL: none. Those that come in leave one for each rank to dial. */
struct guest *join_free_guest(struct join *join);
/* Somebody came in a while ago, and has not joined: what he takes may be what others lack. */
int join_door_is_held(const struct join *join);
/* Seats those who have connected since, in the place of others where there is no room. */
void join_accept_tcp(struct join *join);
void join_accept_unix(struct join *join);
/* The first bytes of a connection that came in are there. */
int join_begin_tls(struct join *join, struct guest *guest, struct ms_err *err);

/* ---- join_words.c ---- */

/* The first of the ranks that have not come; somebody is missing. */
int join_first_missing(const struct join *join);
/* MS_E_TIMEOUT with the ranks that have not come, and why; the first of them is to blame. Where
 * this rank could let nobody in, MS_E_NOMEM with what it lacks, and itself. Somebody is missing.
 * Returns the code. */
int join_blame_the_missing(const struct join *join, uint64_t waited_ms, struct ms_err *err);
/* What this rank lacks will not pass by itself: nothing is gained by waiting on. */
int join_is_short(const struct join *join);
/* Who waits should learn for what while it can be mended, not when it is over. */
void join_tell_who_waits(struct join *join, uint64_t waited_ms);

/* ---- join_hello.c ---- */

/* Sends ASK: 0, or < 0 where the connection is useless; MS_E_NOMEM, with the reason, for this
 * process's sake. */
int join_ask(struct join *join, struct guest *guest, struct ms_err *err);
/* 1: all 96 bytes are there; 0: not yet; < 0: over, likewise. Reads no byte more. */
int join_hear(struct guest *guest, struct ms_err *err);
/* Somebody came in: may he be one of the ranks that connect to this one? Else he hears nothing.
 * A certificate that is nobody's goes into the notes of the ranks that are missing. */
int join_knows_uid(const struct join *join, int fd);
int join_knows_certificate(struct join *join, const struct guest *guest);
/* With TLS: is the peer's certificate the one that was registered for the rank? */
int join_check_certificate(struct join *join, struct guest *guest, int rank, struct ms_err *err);
/* ASK came in on an accepted connection. Fails where the whole group can never be, or this rank has
 * no memory for it: then it is to blame itself. */
int join_answer(struct join *join, struct guest *guest, struct ms_err *err);
/* WELCOME or REFUSED came in on a connection that this rank made. Fails likewise. */
int join_take_answer(struct join *join, struct guest *guest, struct ms_err *err);
/* A welcome came, and this rank has no means to take what is in it. Whoever sent it has us among
 * those that have come, and takes no other connection of ours: the end, and he hears why. */
int join_fail_welcomed(struct join *join, struct guest *guest, const struct ms_err *why,
                       struct ms_err *err);

/* ---- join_socket.c ---- */

/* Begins to connect; returns the descriptor or a negative ms_code: MS_E_NOMEM for this process's
 * sake. */
int join_dial(const struct mesh_member *member, int is_unix, struct ms_err *err);
/* Uid of the process at the other end of a Unix socket: 0, or -1 where the kernel does not say. */
int join_uid(int fd, uint32_t *ret);
int join_uid_is(int fd, uint32_t uid);
/* Bytes with a descriptor beside them: 1 sent, or -1. */
int join_send_memory(int fd, const void *bytes, size_t size, int memory);
/* As link_read; the descriptor that comes along goes into *memory. More than one, or a second time:
 * LINK_BROKEN; so is one that this process has no room for (JOIN_NO_DESCRIPTOR, EMFILE). */
ssize_t join_receive_memory(int fd, void *bytes, size_t size, int *memory);

#endif
