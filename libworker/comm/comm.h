/* comm.h - the mesh of a job's ranks and its collectives
 *
 * Same host (boot id and network namespace agree, SO_PEERCRED shows the same uid, the token of
 * the generation is presented on the Unix socket): the exchange buffer lives in a sealed memfd that
 * all of them map; data is reduced in place, counters stamped (generation, step, bucket) say what
 * is ready; no mutex, no copy. Other hosts: TLS 1.3 (plain only where TLS is off), frames of at
 * most MS_DATA_FRAME_MAX bytes with the generation in each; an older one is refused.
 *
 * Every element is summed by the same bracketed tree over ranks (kernel_sum_tree), whatever the
 * transport and the timing: the result is the same to the bit.
 *
 * Collectives are those of a group of ranks; group 0 is all of them. Several groups may be in
 * flight at the same time, each on a thread of its own.
 *
 * A collective ends with success or with an error that names the rank. mesh_abort wakes every
 * waiter. */
#ifndef COMM_H
#define COMM_H

#include "proto/dtype.h"
#include "proto/err.h"
#include "proto/limits.h"

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the listener of a worker process: one for its life ---- */

struct comm_listener;

struct comm_listener_config {
    const char *bind_ip;    /* "127.0.0.1", "0.0.0.0", "::" ... */
    int port_min, port_max; /* first free one; 0, 0: any */
    SSL_CTX *tls;           /* NULL: plain (loopback, or TLS is off); a reference is taken */
};
/* MS_E_INVALID where the two are no range of ports: what opening would say, before it. */
int comm_listener_check_ports(int port_min, int port_max, struct ms_err *err);
/* MS_E_CONFIG where no interface of this host has the address, MS_E_INVALID for an interface's
 * name; takes no port. */
int comm_listener_check_ip(const char *ip, struct ms_err *err);
/* Opens a TCP listener and an abstract Unix socket. Returns owned. */
int comm_listener_create(const struct comm_listener_config *cfg, struct comm_listener **ret,
                         struct ms_err *err);
void comm_listener_destroy(struct comm_listener *listener);
/* Other certificates for the meshes that follow; none may be in the making. */
void comm_listener_set_tls(struct comm_listener *listener, SSL_CTX *tls);
int comm_listener_port(const struct comm_listener *listener);
const char *comm_listener_unix(const struct comm_listener *listener); /* name without leading NUL */

/* boot id + network namespace of this process, MS_NAME_MAX + 1 bytes. */
int comm_host_id(char *ret, size_t size, struct ms_err *err);

/* ---- mesh ---- */

struct mesh;

struct mesh_member { /* strings borrowed during mesh_create */
    const char *node_id;
    const char *host_name;
    const char *host_id;
    const char *data_address;
    const char *data_unix;
    const char *cert_name; /* expected SAN name of its certificate; "" without TLS */
    uint32_t uid;
};

struct mesh_config {
    uint64_t job, generation;
    int rank, world;
    const struct mesh_member *members; /* world of them */
    uint8_t token[MS_TOKEN_LEN];
    struct comm_listener *listener; /* borrowed for the mesh's life */
    SSL_CTX *tls;                   /* NULL: plain; a reference is taken */
    enum ms_dtype exchange_dtype;   /* of the exchange buffer: MS_F32, others are refused by name */
    size_t exchange_count;          /* elements of it; equal on all ranks (checked) */
    int timeout_ms;                 /* to connect, and to wait in a collective: see "patience" */
    int force_remote;               /* tests and bench: treat same-host peers as remote */
    int spin;                       /* ranks of this host <= cores: short spins before sleeping */
    /* For the mesh's life. A rank has not come, or a collective has waited for one for warn_ms (0:
     * 10 s), and at most once a minute in each group: which, where it is looked for or what it is
     * to do, and when the wait ends. On the thread that waits, within mesh_create, group_create or
     * a collective, of several groups at the same time; it does not call the mesh. NULL allowed. */
    void (*on_wait)(void *arg, const char *text);
    int warn_ms;
    void *arg;
    /* NULL, or for the rank that a mesh_create which failed blames, -1: none. Not read afterwards.
     */
    int *ret_culprit;
};

/* Connects to every peer, exchanges memfds. Blocks until all are there, timeout, or mesh_cancel of
 * the listener (comm_listener_abort). Peers that have not come are named. Returns owned. */
int mesh_create(const struct mesh_config *cfg, struct mesh **ret, struct ms_err *err);
/* Tells the peers (at once, or in a quarter of a second for each group where they do not read),
 * closes and unmaps all groups. NULL allowed; no thread may be inside. */
void mesh_destroy(struct mesh *mesh);
/* Wakes a mesh_create that waits; any thread; stays set until comm_listener_resume. */
void comm_listener_abort(struct comm_listener *listener);
void comm_listener_resume(struct comm_listener *listener);

int mesh_rank(const struct mesh *mesh);
int mesh_world(const struct mesh *mesh);

/* The rank that is to blame for the mesh's end, -1: none, or the mesh has not ended. Any thread. */
int mesh_culprit(const struct mesh *mesh);
/* The code of its end, 0: it has not ended. Any thread. */
int mesh_status(const struct mesh *mesh);

/* Every collective from now on, in any group, ends with MS_E_ABORTED and text. Any thread, at once,
 * for good. */
void mesh_abort(struct mesh *mesh, const char *text);
/* Likewise with code, where this rank cannot go on for want of something of its own: the others
 * hear that it is to blame, as where a collective failed for that. Any thread, at once, for good.
 */
void mesh_give_up(struct mesh *mesh, int code, const char *text);

/* ---- groups of ranks ---- */

/* Some ranks of the mesh, numbered anew in the same order, with an exchange buffer and connections
 * of their own, and a tree of their own over which they sum. The first collective that fails, in
 * any group, ends the mesh. */
struct group;

/* All ranks: group 0, with the mesh's exchange buffer. Borrowed until mesh_destroy. */
struct group *mesh_all(struct mesh *mesh);

/* A collective of group 0: every rank gives the ranks of the group that it will be in (n of them,
 * ascending, itself among them; n 0: it will be in none, and *ret is NULL) and the same
 * exchange buffer for one group. The lists of two ranks are equal or have nothing in common, so one
 * call makes one group of a few ranks, or cuts all ranks into several. A rank is in at most 8
 * groups at a time, group 0 included. On the thread of group 0; others may be in flight. Blocks as
 * mesh_create, on the same listener; lists that do not fit end the mesh, as any failure here does.
 * The mesh owns the group: it lives until group_destroy, or mesh_destroy. */
int group_create(struct mesh *mesh, const int *ranks, int n, enum ms_dtype exchange_dtype,
                 size_t exchange_count, struct group **ret, struct ms_err *err);
/* Tells the group's ranks, who fail if they still want this one; no collective. No thread may be
 * inside the group. NULL allowed; never group 0. */
void group_destroy(struct group *group);

struct mesh *group_mesh(const struct group *group); /* borrowed */
/* This rank's exchange buffer: exchange_count elements of its type, 64-byte aligned, zeroed, shared
 * with local peers. */
void *group_exchange(struct group *group);
int group_rank(const struct group *group);        /* this one's, within the group */
int group_ranks(const struct group *group);       /* how many */
int group_local_ranks(const struct group *group); /* on this host, itself included */

/* ---- patience: what timeout_ms promises
 *
 * A wait for a rank fails with MS_E_TIMEOUT, and blames the rank, once it has been silent for
 * timeout_ms: in that time it neither came to the collective nor moved a byte of it. A rank that
 * computes is silent, so timeout_ms is longer than any rank computes between two collectives.
 *
 * A rank of this host that waits itself is not silent. In this group it waits for ranks of other
 * hosts, where the group has any: within timeout_ms one of them moves, or is named by it. That it
 * waits is its own word, and is believed as long as it is given: data may move for hours. on_wait
 * tells of it after warn_ms. The root of a broadcast may wait for a rank of this host that does not
 * read: then all of the host wait for that one instead. In other groups it may wait for timeout_ms
 * in all, in which the rank that it waits for comes or is named; more is no excuse, whatever goes
 * on there.
 *
 * So no wait for one rank is longer than 2 timeout_ms after its last sign in the group. Ranks that
 * wait for each other in several groups end so, too; the error says for whom the other waited.
 *
 * What a rank of another host does in other groups is not known here: timeout_ms is all that it has
 * (and a fifth of a second, where it shares memory with others, who know better whom to name). It
 * may be blamed although it only waits elsewhere. Time in which this machine stood still is not
 * counted. ---- */

/* ---- collectives: all ranks of a group call the same ones in the same order, from one thread at a
 * time. Each group may have a thread of its own: they are in flight at the same time. ---- */

/* Sums exchange[begin, begin + count) over ranks. The result is at *ret_result (count elements):
 * inside the exchange buffer or beside it, borrowed until the same range is reduced again. After
 * the call, and until this rank itself writes the range again, the result stays; writing the range
 * again is allowed only after group_step_begin. */
int group_all_reduce_sum(struct group *group, size_t begin, size_t count, const void **ret_result,
                         struct ms_err *err);
struct slice {
    size_t begin, count; /* elements */
};
/* The part of [begin, begin + count) that is rank's: whole cache lines, or pages where that is
 * little. Together the slices of all ranks are the range, in rank order; some may be empty. */
struct slice slice_of(size_t begin, size_t count, int rank, int ranks);
/* The first half of an all-reduce: this rank's slice of exchange[begin, begin + count) becomes the
 * sum. What the range has beside it is undefined afterwards, and may be written after
 * group_step_begin. */
int group_reduce_scatter_sum(struct group *group, size_t begin, size_t count, struct ms_err *err);
/* The second half: each rank has its slice of exchange[begin, begin + count); afterwards all have
 * all of it. */
int group_all_gather_slices(struct group *group, size_t begin, size_t count, struct ms_err *err);
/* Begins a step: call before the first write into the exchange buffer, which no peer reads any more
 * then. Never waits (small ranges are read from slots, large ones end with a sync); fails where the
 * mesh has ended. step is for errors and stamps. */
int group_step_begin(struct group *group, uint64_t step, struct ms_err *err);

/* Elementwise maximum of count doubles (small: metrics, digests); in place. count <= 1024. */
int group_all_reduce_max(struct group *group, double *values, size_t count, struct ms_err *err);
/* Sum of count doubles in rank order by the same tree; in place. More than 1024 take several turns,
 * and should be few: scores of an evaluation. */
int group_all_reduce_sum_f64(struct group *group, double *values, size_t count, struct ms_err *err);
/* bytes of root to all; data is in or out. Any size; goes through in pieces. */
int group_broadcast(struct group *group, void *data, size_t bytes, int root, struct ms_err *err);
/* bytes of each rank, in rank order into all (ranks * bytes), in which mine may lie in its place.
 * Any size. */
int group_all_gather(struct group *group, const void *mine, size_t bytes, void *all,
                     struct ms_err *err);
/* Block r of send (ranks * bytes) to rank r, whose block for this rank becomes block r of recv. The
 * two do not overlap. Any size. */
int group_all_to_all(struct group *group, const void *send, void *recv, size_t bytes,
                     struct ms_err *err);
int group_barrier(struct group *group, struct ms_err *err);

/* The same of group 0. */
void *mesh_exchange(struct mesh *mesh);
/* Makes all of its memory at once, in large pages where there are any: before the first touch, for
 * whoever will touch all of it. It comes from the node of the calling thread's CPUs. */
void mesh_populate_exchange(struct mesh *mesh);
int mesh_local_ranks(const struct mesh *mesh);
int mesh_step_begin(struct mesh *mesh, uint64_t step, struct ms_err *err);
int mesh_all_reduce_sum(struct mesh *mesh, size_t begin, size_t count, const void **ret_result,
                        struct ms_err *err);
int mesh_all_reduce_max(struct mesh *mesh, double *values, size_t count, struct ms_err *err);
int mesh_all_reduce_sum_f64(struct mesh *mesh, double *values, size_t count, struct ms_err *err);
int mesh_broadcast(struct mesh *mesh, void *data, size_t bytes, int root, struct ms_err *err);
int mesh_all_gather(struct mesh *mesh, const void *mine, size_t bytes, void *all,
                    struct ms_err *err);
int mesh_barrier(struct mesh *mesh, struct ms_err *err);

/* Nanoseconds that this rank spent waiting for peers since the last call, in all groups. */
uint64_t mesh_take_wait_ns(struct mesh *mesh);

/* Bytes that this rank sent and received on its connections. Ranks of one host read most of what
 * they want in each other's memory: that is not among them. */
struct mesh_traffic {
    uint64_t payload_out, payload_in; /* what the collectives moved */
    uint64_t wire_out, wire_in; /* all bytes: frames' headers, what TLS adds, on TCP the hello */
};
struct mesh_counters {
    struct mesh_traffic all;
    struct mesh_traffic remote; /* of all: with ranks that share no memory with this one */
};
/* Between two collectives; on their thread. ret_peers: NULL, or as many as there are ranks in the
 * group, by rank. */
void group_counters(const struct group *group, struct mesh_counters *ret,
                    struct mesh_traffic *ret_peers);
void mesh_counters(const struct mesh *mesh, struct mesh_counters *ret, /* of group 0 */
                   struct mesh_traffic *ret_peers);

/* ---- reducer: all-reduce of buckets on a communication thread while backward goes on ---- */

struct reducer;

struct reducer_bucket {
    size_t begin, count; /* elements of the exchange buffer; none: it has no result */
};
/* With one bucket or one rank no thread is made: the work is done in reducer_wait. Borrows group.
 * Returns owned. */
int reducer_create(struct group *group, const struct reducer_bucket *buckets, int n,
                   struct reducer **ret, struct ms_err *err);
/* Within a step that nobody waits for any more it aborts the mesh. NULL allowed. */
void reducer_destroy(struct reducer *reducer);
/* Begins a step: group_step_begin included. */
int reducer_begin(struct reducer *reducer, uint64_t step, struct ms_err *err);
/* Bucket is complete on this rank; in index order. Never blocks. */
void reducer_post(struct reducer *reducer, int bucket);
/* Until all buckets are summed. ret_results[n]: where each bucket's sum lies. */
int reducer_wait(struct reducer *reducer, const void **ret_results, struct ms_err *err);

#endif
