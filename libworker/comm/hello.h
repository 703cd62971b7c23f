/* hello.h - the first bytes on every data-plane connection, and who is let in
 *
 * The side with the higher rank connects and sends ASK; the other answers WELCOME, or REFUSED with
 * its own numbers and closes. 96 bytes, integers big-endian (docs/protocol-data-plane.md):
 *
 *     0      4         6      8     16           24     28     32      36       40
 *     | MSH1 | version | type | job | generation | rank | peer | world | reason |
 *     40                48              56            64           96
 *     | exchange_count | segment_bytes | group, zero | token (32) |
 *
 * Ranks, and how many they are, are those of the group that the connection is for. */
#ifndef HELLO_H
#define HELLO_H

#include "proto/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <stdint.h>

enum { HELLO_BYTES = 96, HELLO_VERSION = 6 };

enum hello_type { HELLO_ASK = 1, HELLO_WELCOME = 2, HELLO_REFUSED = 3 };

/* Never renumber. */
enum hello_reason {
    HELLO_OK = 0,
    HELLO_BAD_VERSION = 1,
    HELLO_BAD_JOB = 2,
    HELLO_OLD_GENERATION = 3, /* the sender of ASK is behind */
    HELLO_NEW_GENERATION = 4, /* ... is ahead: it may come again */
    HELLO_BAD_TOKEN = 5,
    HELLO_BAD_WORLD = 6,
    HELLO_BAD_RANK = 7,
    HELLO_BAD_EXCHANGE = 8,
    HELLO_BAD_TRANSPORT =
        9,                /* the one takes the other for a rank of its host, the other does not */
    HELLO_DUPLICATE = 10, /* that rank is connected already */
    HELLO_BAD_GROUP = 11,
    HELLO_REASONS
};

struct hello {
    uint16_t version, type;
    uint64_t job, generation;
    uint32_t rank, peer, world; /* rank speaks to peer; of the group */
    uint32_t reason;            /* enum hello_reason, in REFUSED */
    uint64_t exchange_count;
    uint64_t segment_bytes; /* of the memory passed along; 0 on TCP */
    uint32_t group;         /* 0: all ranks */
    uint8_t token[MS_TOKEN_LEN];
};

void hello_encode(const struct hello *hello, uint8_t bytes[HELLO_BYTES]);
/* MS_E_PROTOCOL says what is wrong: the magic, a type that is none, bytes that must be zero. */
int hello_decode(const uint8_t bytes[HELLO_BYTES], struct hello *ret, struct ms_err *err);

/* What this rank (mine: its own numbers; rank and peer as it would write them) says to theirs. The
 * token is compared in constant time, and only after job and generation, whose tokens differ. */
enum hello_reason hello_judge(const struct hello *mine, const struct hello *theirs);
/* May the refused side try again: the other is about to catch up. */
int hello_may_retry(enum hello_reason reason);
/* Fills err with the reason in words; mine and theirs as in hello_judge, who: "rank 3 (node w3
 * ..)". Returns MS_E_REFUSED, or MS_E_ABORTED for an older generation: the other is at the next. */
int hello_fail(enum hello_reason reason, const struct hello *mine, const struct hello *theirs,
               const char *who, struct ms_err *err);

#endif
