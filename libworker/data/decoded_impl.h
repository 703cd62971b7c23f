/* decoded_impl.h - between the files of decoded: what lies in the memory, who serves it */
#ifndef DATA_DECODED_IMPL_H
#define DATA_DECODED_IMPL_H

#include "libworker/data/decoded.h"
#include "libworker/data/host_copy_impl.h"

#define DECODED_MAGIC "MSIMAG1" /* another layout, another number */

enum decoded_state { DECODED_EMPTY, DECODED_BUSY, DECODED_THERE };

struct decoded_mark { /* of a record; docs/host-copy.md */
    _Atomic uint32_t state;
    uint32_t none;
    int64_t device, inode, size;
    int64_t modified_s, modified_ns, changed_s, changed_ns;
};

struct decoded_head {
    char magic[8];
    struct host_copy_id id;
    int64_t rows;          /* that have room here: the first ones */
    _Atomic int64_t count; /* records that are there */
};

_Static_assert(sizeof(struct decoded_mark) == 64 && sizeof(struct host_copy_id) == 88 &&
                   offsetof(struct decoded_head, rows) == 96 &&
                   offsetof(struct decoded_head, count) == 104,
               "the layout is documented");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "marks work between processes");

struct decoded_keeper;

struct decoded {
    struct host_copy_id id;
    int64_t record; /* bytes of one */
    int64_t rows;   /* that have room */
    int memory;
    size_t mapped;
    struct decoded_head *head; /* the mapping */
    struct decoded_mark *marks;
    uint8_t *records;
    atomic_int is_full; /* there was no memory for one more */
    struct decoded_keeper *keeper;
};

/* ---- decoded_keep.c: a thread that serves the memory, or notices that its server ended ---- */

/* Takes the socket: one that listens (is_server), or a connection to who does. NULL: no thread; the
 * socket is closed. */
struct decoded_keeper *decoded_keeper_start(const struct host_copy_id *id, int memory, int socket,
                                            int is_server);
void decoded_keeper_stop(struct decoded_keeper *keeper); /* NULL allowed */

#endif
