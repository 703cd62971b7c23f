/* shm.h - memory that the ranks of one host share: segments, counters, waiting
 *
 * A segment is the sealed memfd of one rank:
 *
 *     0        shm_head      who it belongs to, written once
 *     4096     counters      a cache line each, written by the owner alone
 *     8192     slots         2 x 64 KiB: small contributions
 *     +128 K   ring          16 x 256 KiB: pieces of a broadcast
 *     6 MiB    exchange      gradient buckets (on the next page where it is smaller than 2 MiB)
 *
 * Pages that nobody touches cost nothing. The only words with several writers are the bell and the
 * number of sleepers, in the segment of the host's first rank: a hint whom to wake, never data. */
#ifndef SHM_H
#define SHM_H

#include "proto/dtype.h"
#include "proto/err.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SHM_COUNTERS_AT = 4096,
    SHM_SLOTS_AT = 8192,
    SHM_SLOT_BYTES = 64 << 10,  /* all_gather's limit, and the longest range worth the flat way */
    SHM_SLOTS = 2,              /* a rank is never more than one collective ahead of another */
    SHM_RING_PIECE = 256 << 10, /* stays in the second-level cache between writer and reader */
    /* Writer and reader each have a turn of their core's scheduler for so much: with 4 pieces a
     * state of 188 MB took 0.9 to 1.2 s beside two busy processes on two cores, with 16 or 32 0.3
     * to 0.4 s. */
    SHM_RING_PIECES = 16,
    SHM_PLACES = 8, /* for the groups of a rank */
    SHM_HUGE = 2 << 20,
};

struct shm_head {
    char magic[8]; /* "MSSHM1\0\0" */
    uint64_t job, generation;
    uint64_t rank, world;
    uint64_t exchange_count, segment_bytes;
    uint64_t group;
};

/* What a rank does, so that ranks which disagree are told and not hung. */
struct shm_stamp {
    _Atomic uint64_t step;
    _Atomic uint64_t what; /* enum mesh_kind << 32 | lower half of begin */
    _Atomic uint64_t size;
};

/* What the owner waits for in one of its groups: in the segment of group 0, for all its host. */
struct shm_wait {
    _Alignas(64) _Atomic uint64_t waited_ns; /* ever, in whatever group had the place */
    _Atomic uint64_t group;                  /* the number of the one that has it, or had it last */
    _Atomic uint64_t whom; /* enum mesh_kind << 32 | rank of the mesh + 1; 0: it does not wait */
};

struct shm_counters {
    /* Syncs at which the owner has arrived; stamps[sequence & 1] says for what. A stamp is stable
     * until every rank has read it, as the owner is at most one sync ahead. */
    _Alignas(64) _Atomic uint64_t sequence;
    uint64_t generation;
    struct shm_stamp stamps[2];
    /* Broadcast pieces, counted over the mesh's life: of all roots, and taken by the owner. */
    _Alignas(64) _Atomic uint64_t published;
    _Alignas(64) _Atomic uint64_t consumed;
    /* Waits in this group for ranks of other hosts, a tick at most each: who waits for others of
     * the group does not keep them waiting. */
    _Alignas(64) _Atomic uint64_t waits;
    /* Used in the first rank's segment only. bell: futex word, changes when sleepers should look.
     */
    _Alignas(64) _Atomic uint32_t bell;
    _Alignas(64) _Atomic uint32_t sleepers;
    /* Used in the segment of group 0 only. */
    struct shm_wait places[SHM_PLACES];
};
_Static_assert(sizeof(struct shm_counters) <= SHM_SLOTS_AT - SHM_COUNTERS_AT, "counters fit");
_Static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint32_t) == 4, "no hidden locks");

struct segment {
    int fd;        /* -1: not shared, or passed on already */
    uint8_t *base; /* NULL: none */
    size_t size;
    size_t exchange_at;
};

/* Of a segment whose exchange buffer has so many elements. */
size_t segment_bytes(enum ms_dtype dtype, size_t exchange_count);
/* New, zeroed. shared: a sealed memfd; else plain memory of the same layout. */
int segment_create(struct segment *ret, const struct shm_head *head, enum ms_dtype dtype,
                   int shared, struct ms_err *err);
/* Maps a peer's after checking seals and size, then its head against want. Takes fd. who: for
 * errors. */
int segment_map(struct segment *ret, int fd, const struct shm_head *want, enum ms_dtype dtype,
                const char *who, struct ms_err *err);
/* Makes the pages of its exchange buffer, as large ones where the kernel has them. Changes no byte,
 * and where it can do nothing, neither does it fail. */
void segment_populate(const struct segment *segment);
void segment_fini(struct segment *segment);

static inline struct shm_counters *segment_counters(const struct segment *segment)
{
    return (struct shm_counters *)(void *)(segment->base + SHM_COUNTERS_AT);
}

static inline void *segment_exchange(const struct segment *segment)
{
    return segment->base + segment->exchange_at;
}

#endif
