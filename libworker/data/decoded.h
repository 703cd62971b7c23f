/* decoded.h - records of one size that were decoded, in memory, once a host for all ranks of one
 * user
 *
 *     rank that decoded one -> memory: bytes, then the mark that they are there
 *     rank that wants it    <- memory, where its mark says the same file; else it decodes it
 *
 * The first process that asks makes the memory, a sealed memfd, and hands it to whoever connects to
 * its abstract Unix socket. All write into it. When it ends another one that has the memory serves
 * it on, and when the last one ends it is gone: nothing is left behind, however they end.
 *
 * Nobody waits for a record: what is being written, or was when its writer was killed, is decoded
 * by whoever wants it, as if there were no such memory. A mark says of which file the record is
 * (device, inode, size, times); the reader has opened that file and judged it before. What is there
 * is never written again.
 *
 * Whom it trusts: processes of the same user (SO_PEERCRED on both ends), who could change what they
 * share; memory that cannot shrink or grow, of the right size and of the same set. Every fault
 * means: no such memory. So nothing here reports errors. docs/host-copy.md has the bytes. */
#ifndef DATA_DECODED_H
#define DATA_DECODED_H

#include <stdint.h>

struct stat;

struct decoded_set {
    int64_t device, inode;           /* of its folder */
    uint64_t names;                  /* a digest of its list of files */
    int64_t channels, height, width; /* of a record, of bytes */
    int64_t rows;
    int64_t bytes_max; /* of memory; of more records the first ones are kept */
};

struct decoded;

/* Joins this host's, or makes it; who made it decides how much of it there is. Returns owned; NULL:
 * none is to be had. */
struct decoded *decoded_open(const struct decoded_set *set);
void decoded_close(struct decoded *decoded); /* NULL allowed */

/* Any thread, as all below: the record of that row, where it was made of this file; borrowed until
 * the close. NULL: it is not there. */
const uint8_t *decoded_find(const struct decoded *decoded, int64_t row, const struct stat *file);
/* It was made of this file, as that was before it was read. */
void decoded_keep(struct decoded *decoded, int64_t row, const struct stat *file,
                  const uint8_t *record);
/* How many records are there, whoever decoded them. */
int64_t decoded_count(const struct decoded *decoded);

#endif
