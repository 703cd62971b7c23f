/* fetch_file.h - one file on its way to a client: pieces, and the digest of the whole */
#ifndef FETCH_FILE_H
#define FETCH_FILE_H

#include "proto/digest.h"
#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

/* The size is what the file had when it was opened: a log may grow meanwhile, and what is promised
 * is that much of it. */
struct fetch_file {
    int fd; /* owned; -1: none */
    uint64_t size;
    struct ms_sha256 *sha; /* of the bytes before hashed; NULL once finished */
    uint64_t hashed;
    char sha256[MS_SHA256_HEX]; /* "" until finished */
};

/* Takes fd, also on failure. */
int fetch_file_init(struct fetch_file *file, int fd, struct ms_err *err);
void fetch_file_fini(struct fetch_file *file);

/* Reads up to max bytes at offset into buf; with the last byte of the file its digest is made,
 * which reads what was not asked for. MS_E_IO where the file is shorter than it was. */
int fetch_file_read(struct fetch_file *file, uint64_t offset, uint8_t *buf, size_t max,
                    size_t *ret_n, struct ms_err *err);

#endif
