/* unpack.h - a packed file from its front, beside whoever else reads it: nothing of the descriptor
 * moves */
#ifndef DATA_UNPACK_H
#define DATA_UNPACK_H

#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

/* What zip archives hold: deflated bytes with neither gzip's head nor its checksum. */
struct unpack_member {
    int64_t at, packed; /* bytes of the file */
    uint32_t crc;       /* of what they unpack to */
};

struct unpacking {
    z_stream stream;
    uint8_t *input;
    int64_t at, end; /* of the file: what was read into input; where there is no more */
    int is_ended;
    int is_member;
    uint32_t crc, crc_wanted; /* of a member, so far */
};

/* A gzip file. -1: no memory, and there is nothing to end. */
int unpack_begin(struct unpacking *ret);
int unpack_begin_member(struct unpacking *ret, const struct unpack_member *member);
void unpack_end(struct unpacking *u);
/* Up to size bytes of what is packed; fewer at its end, which has the right CRC; -1: damaged. */
int64_t unpack_next(struct unpacking *u, int fd, void *dst, size_t size);
/* Passes over so many; -1: they are not there. */
int unpack_skip(struct unpacking *u, int fd, int64_t size);
/* Does nothing follow what was unpacked, packed or not? What follows a member is the archive's. */
int unpack_is_at_end(struct unpacking *u, int fd);

#endif
