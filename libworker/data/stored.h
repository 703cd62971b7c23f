/* stored.h - bytes in a file, as they stand there or deflated as a member of a zip archive
 *
 * What stands there is read where it is asked for: ranks of a host share the page cache. What is
 * deflated cannot be read from its middle: it is unpacked once a host (host_copy.h), or, where no
 * such copy is to be had, by this process from the front as far as somebody asked. One thread. */
#ifndef DATA_STORED_H
#define DATA_STORED_H

#include "libworker/data/unpack.h"
#include "proto/err.h"

struct stored_config {
    int fd;           /* borrowed for the object's life */
    const char *path; /* for errors; likewise */
    int is_deflated;
    struct unpack_member member; /* of an archive: which; else all zero */
    int64_t skip; /* bytes before the first that counts: of the file, or of what was unpacked */
    int64_t size; /* bytes that count: nothing may follow them in a member */
};

struct stored;

/* Returns owned; NULL: no memory. */
struct stored *stored_create(const struct stored_config *cfg);
void stored_destroy(struct stored *stored);            /* NULL allowed */
int64_t stored_copied(const struct stored *stored);    /* bytes of the host's copy; 0: none */
int64_t stored_in_memory(const struct stored *stored); /* of those, now there. Any thread */
int stored_read(struct stored *stored, void *dst, int64_t size, int64_t at, struct ms_err *err);
/* From the front to the back, beside stored_read and without a copy: take gets each of `n` pieces
 * of `size` bytes that begin at the rising places `at`. */
int stored_walk(const struct stored *stored, const int64_t *at, int64_t n, int64_t size, void *room,
                int (*take)(void *arg, int64_t i, const void *bytes), void *arg,
                struct ms_err *err);
/* All of it likewise, in pieces of `piece` bytes, the last one shorter: at is where one begins. */
int stored_pass(const struct stored *stored, int64_t piece, void *room,
                int (*take)(void *arg, int64_t at, const void *bytes, int64_t size), void *arg,
                struct ms_err *err);
/* As data_verify; of a member that is not deflated, too, which is read for it, once. */
int stored_verify(struct stored *stored, struct ms_err *err);

#endif
