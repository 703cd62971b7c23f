/* host_copy.h - a file's bytes in memory, unpacked once a host for all ranks of one user
 *
 * The first process that asks makes the copy: a thread of it fills a sealed memfd from the front,
 * and hands it to whoever connects to its abstract Unix socket, whose name says which file it is
 * (device, inode, size, times). The others map it read-only and read what is there already, while
 * the rest still comes. Nothing is left behind, however the processes end.
 *
 * Whom it trusts: processes of the same user (SO_PEERCRED on both ends), and memory that cannot
 * shrink or be written to by whom it was handed to (seals), of the right size and of the same file,
 * which each has opened and judged for itself. The one that makes it has checked the CRC of a
 * packed file before the last piece is there. Everything else, and every fault, means: no copy, and
 * the caller reads the file himself as if there had never been one. So nothing here reports errors.
 *
 * What is waited for: a maker's answer (HOST_COPY_ANSWER_MS), by whoever joins and by whoever only
 * asks how much is there, and the next piece of a packed file
 * (HOST_COPY_STALL_MS without one). A maker that ends is noticed at once. One thread a copy. */
#ifndef DATA_HOST_COPY_H
#define DATA_HOST_COPY_H

#include "libworker/data/unpack.h"

#include <stdint.h>

/* A piece of 256 KiB takes a millisecond; a maker that is stopped, or starved on a machine with
 * far too much work, costs its peers this much once: whom it kept waiting does not ask it again for
 * HOST_COPY_SILENT_MS. */
enum { HOST_COPY_ANSWER_MS = 1000, HOST_COPY_STALL_MS = 2000, HOST_COPY_SILENT_MS = 60000 };

struct host_copy_file {
    int fd;        /* borrowed for the copy's life; read with pread only */
    int is_packed; /* gzip of one member; or, where it begins at a byte above 0, this one: */
    struct unpack_member member;
    int64_t skip;  /* bytes (unpacked) before the first that is copied */
    int64_t bytes; /* of the copy; nothing may follow them in a packed file */
};

struct host_copy;

/* Joins this host's copy, or begins it. Returns owned; NULL: none is to be had. */
struct host_copy *host_copy_open(const struct host_copy_file *file);
void host_copy_close(struct host_copy *copy); /* joins the thread of a maker; NULL allowed */

/* Bytes of the file that this host's copy has in memory now, whoever makes it; 0: nobody does.
 * Begins none and holds none. Any thread. */
int64_t host_copy_done(const struct host_copy_file *file);

/* size bytes from `at` on, borrowed until the copy is closed. NULL: they are not there, not yet
 * (waits: 0) or never. */
const uint8_t *host_copy_get(struct host_copy *copy, int64_t at, int64_t size, int waits);

#endif
