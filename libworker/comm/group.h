/* group.h - inside of a group: its ranks, the engine that moves frames, waiting on shared memory
 *
 * Ranks are numbered within the group, in the order of the mesh's: a member is a rank of the mesh.
 * Here: group.c (life, errors), group_create.c (all agree on a new one), hosts.c (who sits where),
 * join.c (everybody connects), shm_sync.c and patience.c (waiting for ranks of this host), stream.c
 * and stream_wait.c (frames to and from the others), gather.c (everybody's small contribution, the
 * base of most collectives), and one algorithm a file. */
#ifndef GROUP_H
#define GROUP_H

#include "libworker/comm/frame.h"
#include "libworker/comm/hello.h"
#include "libworker/comm/link.h"
#include "libworker/comm/mesh.h"
#include "libworker/comm/shm.h"

enum {
    MESH_SMALL_MAX = 64 << 10, /* one contribution of gather */
    GROUP_WHAT_MAX = 160,      /* "all_reduce of 7850 floats from 0 at step 12 in group 1" */
};

enum mesh_kind { /* goes on the wire: never renumber */
                 MESH_NOTHING,
                 MESH_ALL_REDUCE,
                 MESH_ALL_REDUCE_MAX,
                 MESH_ALL_REDUCE_F64,
                 MESH_BROADCAST,
                 MESH_ALL_GATHER,
                 MESH_BARRIER,
                 MESH_GROUP,
                 MESH_REDUCE_SCATTER,
                 MESH_ALL_GATHER_SLICES,
                 MESH_ALL_TO_ALL,
                 MESH_KINDS
};

struct group_op { /* the collective in progress */
    enum mesh_kind kind;
    uint64_t sequence; /* counted from 1 */
    uint64_t begin;    /* elements; broadcast: the root */
    uint64_t size;     /* elements or bytes */
    uint64_t start_ms; /* group clock */
};

/* One piece of memory on its way to or from a peer, in frames with offset 0, ... in order. */
struct span {
    uint8_t *data;
    size_t size;
    size_t done; /* bytes moved, headers not counted */
    uint64_t begin;
    uint64_t offset; /* of data within what (phase, begin) names */
    uint8_t phase;
};

struct shortage {
    int error;         /* with which the last try failed: this process is short; 0: it did not */
    uint64_t sequence; /* of the collective in which that began ... */
    uint64_t since_ms; /* ... and the group clock then */
};

enum { STREAM_SPANS = 4, STREAM_STAGE = 16384 };

/* A connection with the frames that are under way. Spans are done in order. */
struct stream {
    struct link link;
    struct span tx[STREAM_SPANS], rx[STREAM_SPANS];
    int n_tx, n_rx;
    /* The frame that is being sent: staged bytes (header and the first of the payload, so that they
     * share a TLS record), then the rest straight from the span. */
    uint8_t *stage;
    size_t stage_size, stage_done;
    size_t tx_left; /* payload bytes of the frame behind the staged ones */
    /* The frame that is being received. */
    uint8_t head[FRAME_HEADER];
    size_t head_have;
    size_t rx_left;
    size_t skip_left; /* payload of an older generation */
    uint64_t skipped_frames, skipped_bytes, skipped_generation;
    uint64_t moved_ms; /* group clock when bytes moved last */
    struct shortage short_out, short_in;
    uint64_t heard_in; /* sequence of the last collective for which bytes came in */
    int has_left;      /* BYE came */
    struct frame bye;
    int eof;
    int said_bye;
    uint64_t payload_out, payload_in;
};

struct peer {
    int rank;
    int member;      /* rank in the mesh */
    int local;       /* index in group->locals, or -1 */
    int host;        /* the lowest rank that shares memory with it, maybe itself */
    int seat, seats; /* its number among the ranks of its host, and how many they are */
    int subtrees;    /* of its host */
    struct stream stream;
};

/* A bracket T(lo, hi) of the summation tree that lies on one host, while that around it does not.
 */
struct subtree {
    int lo, hi; /* ranks */
    int host;   /* as in struct peer */
    int nth;    /* of its host */
};

struct group {
    struct mesh *mesh;
    uint32_t number; /* in the order in which they were made */
    int place;       /* in mesh->groups */
    int rank, n_ranks;
    struct peer *peers; /* n_ranks; the own one has no connection */
    enum ms_dtype exchange_dtype;
    size_t exchange_count;

    /* ranks of this host in order, the own one included */
    int n_locals, self; /* index of the own one */
    int *locals;
    struct segment *segments; /* n_locals */
    float **exchanges;        /* n_locals: begin of each exchange buffer, MS_F32 all of them */
    struct shm_counters **counters;
    struct shm_wait *wait; /* what this rank shows of its waits; NULL: no memory for it yet */
    uint64_t syncs;        /* syncs begun */
    int scan;              /* locals below it are known to have arrived at the current sync */
    uint64_t slots;        /* uses of the slots */
    uint64_t pieces;       /* broadcast pieces begun, of all roots */
    int ring_writer;       /* local index of the rank that writes the current broadcast's */

    struct subtree *subtrees; /* n_ranks: each at index lo; all else is zero */
    int sums_by_host;         /* fewer bytes go between hosts where each sums its subtrees first */

    /* ranks elsewhere */
    int n_remotes;
    int *remotes;
    uint8_t *scratch; /* what remote ranks contribute; grows */
    size_t scratch_bytes;
    struct pollfd *polls; /* n_ranks + 1 */

    uint64_t step;
    struct group_op op;
    int blamed;        /* the rank of the mesh that op's error names as the cause; -1: none */
    uint64_t heard;    /* what arrivals of other hosts say: op.sequence, as their frames did */
    uint64_t clock_ns; /* time in waits, without the gaps of a machine that stood still */
    uint64_t looked_ns;
    uint64_t quiet_until_ms; /* group clock: a long wait was told, and is not told again before */
};

/* This rank's exchange buffer. */
static inline float *group_floats(const struct group *group)
{
    return group->exchanges[group->self];
}

/* ---- group.c ---- */

/* MS_E_UNSUPPORTED for an exchange buffer of elements that nothing here sums: all but MS_F32. */
int group_check_dtype(enum ms_dtype dtype, struct ms_err *err);
/* A group of members (n of them, ascending, this rank among them), connected. Where that fails,
 * the mesh ends before those who have joined are told. err is not NULL. Returns owned. */
int group_open(struct mesh *mesh, uint32_t number, const int *members, int n,
               enum ms_dtype exchange_dtype, size_t exchange_count, struct group **ret,
               struct ms_err *err);
/* Says goodbye, closes, unmaps. NULL allowed. */
void group_close(struct group *group);
/* What the segment of a rank begins with. */
struct shm_head group_head(const struct group *group, int rank);
/* As mesh_who, for a rank of the group. */
const char *group_who(const struct group *group, int rank, char *buf);
/* What this rank does, as above; GROUP_WHAT_MAX is enough. */
const char *group_what(const struct group *group, char *buf, size_t size);
/* "all_reduce" */
const char *mesh_kind_name(uint64_t kind);
/* Begins a collective: fails where the mesh has ended. */
int group_enter(struct group *group, enum mesh_kind kind, uint64_t begin, uint64_t size,
                struct ms_err *err);
/* Ends it: a failure ends the mesh, so that no rank goes on with half a result. MS_E_NOMEM that
 * names nobody is this rank's own. Returns rc. */
int group_leave(struct group *group, int rc, struct ms_err *err);
/* Fails, and names the rank of the mesh at fault: the mesh's culprit, should this end the mesh. */
int group_blame(struct group *group, int member, struct ms_err *err, int code, const char *fmt, ...)
    MS_PRINTF(5, 6);
/* The rank does something else than this one: MS_E_PROTOCOL with both. */
int group_disagree(struct group *group, int rank, const struct group_op *theirs, uint64_t step,
                   struct ms_err *err);
/* Milliseconds spent in waits so far; each call adds the time since the last one, cut to
 * MESH_STILL_MS. group_clock_start forgets the time since the last one. */
void group_clock_start(struct group *group);
uint64_t group_clock(struct group *group);
/* At a tick: MS_E_CLOSED where a peer has died that this collective may still need. */
int group_check_peers(struct group *group, struct ms_err *err);
/* A wait of more than so many milliseconds ought to be told ... */
uint64_t group_patience(const struct group *group);
/* ... where somebody listens, and has not heard of one within a minute ... */
int group_may_tell(const struct group *group, uint64_t now_ms);
/* ... with when it will be over, maybe on a condition. text: "waited 10.0 s for ..". */
void group_tell(struct group *group, const char *text, const char *condition);
int group_scratch(struct group *group, size_t bytes, struct ms_err *err);

/* ---- hosts.c ---- */

/* Seats and subtrees, from the peers' hosts. */
void hosts_find(struct group *group);

/* ---- join.c ---- */
int group_join(struct group *group, struct ms_err *err);

/* ---- shm_sync.c ---- */

/* Index of a local rank that is not there yet, or -1. Called again and again. */
typedef int shm_missing_fn(struct group *group, uint64_t target);
/* This rank has arrived at the next sync. */
void shm_arrive(struct group *group);
/* Until all local ranks have. Wakes the sleepers when it was the last. */
int shm_await(struct group *group, struct ms_err *err);
/* Until missing() is -1. */
int shm_wait(struct group *group, shm_missing_fn *missing, uint64_t target, struct ms_err *err);
/* After a counter has moved for which others may sleep. */
void shm_ring(struct group *group);
/* Makes all sleepers of this host look, whatever moved. Any thread. */
void shm_wake_all(struct group *group);
/* The own slot for the next small contribution; and that of a local rank in this collective. */
uint8_t *shm_slot(struct group *group, int local);

/* ---- patience.c ---- */

/* A wait for a rank of this host. */
struct patience {
    int rank;                               /* -1: none yet */
    uint64_t waits, elsewhere_ns, start_ms; /* of that rank, and the clock, when it began (anew) */
    uint64_t first_ms;                      /* the clock when it began first */
    uint64_t total_ms;                      /* since then: what somebody may have to be told of */
    uint64_t waited_ms;                     /* since it began anew */
    uint64_t silent_ms;                     /* of these, those that count against the rank */
};

/* From where its memory is there, the host sees what this rank waits for in the group. */
void patience_open(struct group *group);
/* It waits for a rank; group_clock counts how long. */
void patience_show(struct group *group, enum mesh_kind kind, int rank);
void patience_show_none(struct group *group);
/* Rank has not come yet. The wait begins anew where another one was looked for before, and where it
 * has waited itself in this group: for ranks of other hosts, whom it will name. Only for those who
 * are told of it the latter is still one wait. */
void patience_look(struct group *group, int rank, uint64_t now_ms, struct patience *patience);
/* ", while it waited in barrier of group 2 for rank 0 (..)", or "", in a buffer. Returns it. */
const char *patience_print_elsewhere(const struct group *group, int rank, char *buf, size_t size);

/* ---- stream.c ---- */

void stream_init(struct stream *stream, const struct link *link);
void stream_fini(struct stream *stream);
/* Appends to what is sent or received, size > 0. A span that goes on where the last one (same phase
 * and begin) ends makes that one longer. data stays the caller's until the span is done. */
void stream_send(struct stream *stream, const void *data, size_t size, uint8_t phase,
                 uint64_t begin, uint64_t offset);
void stream_receive(struct stream *stream, void *data, size_t size, uint8_t phase, uint64_t begin);
/* Bytes that wait to be sent, the begin of a frame included. */
size_t stream_unsent(const struct stream *stream);
struct mesh_traffic stream_traffic(const struct stream *stream);
/* Bytes that have come of a span of size bytes asked for in this collective. */
size_t stream_received(const struct stream *stream, uint8_t phase, uint64_t begin, size_t size);
/* Moves what can be moved without waiting, for all peers. 1: something moved; 0: nothing; or an
 * error, that of the mesh included. What this process is short of (lack.h) is waited for by
 * streams_wait; where it cannot be, MS_E_NOMEM, which is nobody else's fault. */
int streams_progress(struct group *group, struct ms_err *err);
int streams_are_done(const struct group *group);
int stream_is_sending(const struct stream *stream); /* a span, or a staged frame */
/* Sends what the peer takes: 1 if any, 0, or an error; MS_E_CLOSED, without a text, where the
 * connection has ended. */
int stream_push(struct group *group, struct peer *peer, struct ms_err *err);
/* MS_E_NOMEM where the error of a connection is a shortage here, else 0. */
int stream_lacks(const struct group *group, const struct peer *peer, int error, struct ms_err *err);
/* What is to move and cannot: errno, of a shortage here; 0: it can. */
int stream_cannot_send(const struct stream *stream);
int stream_cannot_hear(const struct stream *stream);
/* A frame without payload is the next to go; nothing else may be under way. */
int stream_stage(struct stream *stream, const struct frame *frame, struct ms_err *err);
/* What became of a peer whose connection has ended, as far as its bytes tell: reads those for this
 * collective, and looks at the next header. UNKNOWN: bytes for a later collective come first. Fails
 * where the bytes for this collective are wrong. */
enum stream_fate { FATE_UNKNOWN, FATE_LEFT, FATE_DEAD };
int stream_fate(struct group *group, struct peer *peer, enum stream_fate *ret, struct ms_err *err);

/* ---- stream_wait.c ---- */

/* Waits until something can move, or may be tried again. Fails with MS_E_NOMEM where this process
 * has been short for a second. */
int streams_wait(struct group *group, struct ms_err *err);
/* Until all spans are done. */
int streams_finish(struct group *group, struct ms_err *err);

/* ---- leave.c ---- */

/* Says BYE to all of the group; nothing can be sent afterwards. Takes at most a quarter of a
 * second. */
void streams_leave(struct group *group);

/* ---- gather.c ---- */

/* Everybody's contribution of bytes <= MESH_SMALL_MAX: ret[rank], world of them, borrowed until the
 * next collective. */
int gather_small(struct group *group, const void *mine, size_t bytes, const void **ret,
                 struct ms_err *err);

/* ---- algorithms ---- */

/* Sums values (count elements of size bytes) over all ranks in the tree's order, for large worlds:
 * recursive doubling. combine(a, b): a = a op b. */
typedef void tree_combine_fn(void *a, const void *b, size_t count);
int allreduce_tree(struct group *group, void *values, size_t count, size_t size,
                   tree_combine_fn *combine, struct ms_err *err);
/* Messages of everybody to everybody would be more than those of the tree. */
int allreduce_tree_is_better(const struct group *group);

/* bytes * world up to which everybody sums everything. Measured (bench/allreduce, two cores): the
 * two ways meet at 62 KiB with 2 ranks, 80 with 4, 112 with 8. */
enum { ALLREDUCE_FLAT_MAX = 80 << 10 };
/* Name of the algorithm that a sum of so many bytes takes. */
const char *allreduce_name(const struct group *group, size_t bytes);

/* A range of the exchange buffer, and which half of a sum it is for: a reduce-scatter only adds, an
 * all-gather only spreads, an all-reduce does both. */
struct sum {
    size_t begin, count; /* elements */
    int adds;            /* each rank's slice becomes the sum of all ranks' */
    int spreads;         /* each rank's slice goes to all ranks */
};

int allreduce_flat(struct group *group, const struct sum *sum, struct ms_err *err);
int allreduce_slice(struct group *group, const struct sum *sum, struct ms_err *err);
int allreduce_host(struct group *group, const struct sum *sum, struct ms_err *err);
int allreduce_direct(struct group *group, const struct sum *sum, struct ms_err *err);
int allreduce_tree_floats(struct group *group, const struct sum *sum, struct ms_err *err);

/* Across hosts a large range goes in blocks: each rank's slice is cut into as many pieces as there
 * are blocks, the first piece of all slices is the first block. */
size_t sum_blocks(const struct sum *sum);
struct slice sum_slice(const struct sum *sum, const struct group *group, size_t block, int rank);
/* count floats into exchange[at] of the other ranks of this host. */
void copy_to_locals(const struct group *group, const float *data, size_t at, size_t count);

#endif
