/* unpack.h - a gzip file from its front, beside whoever else reads it: nothing of the descriptor
 * moves */
#ifndef DATA_UNPACK_H
#define DATA_UNPACK_H

#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

struct unpacking {
    z_stream stream;
    uint8_t *input;
    int64_t at; /* of the file: what was read into input */
    int is_ended;
};

/* -1: no memory, and there is nothing to end. */
int unpack_begin(struct unpacking *ret);
void unpack_end(struct unpacking *u);
/* Up to size bytes of what is packed; fewer at its end, which has the right CRC; -1: damaged. */
int64_t unpack_next(struct unpacking *u, int fd, void *dst, size_t size);
/* Passes over so many; -1: they are not there. */
int unpack_skip(struct unpacking *u, int fd, int64_t size);

#endif
