/* unpack.c - a packed file from its front, beside whoever else reads it */
#include "libworker/data/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUT = 64 << 10, GZIP = 16 + MAX_WBITS, BARE = -MAX_WBITS };

static int begin(struct unpacking *ret, int window)
{
    ret->input = malloc(INPUT);
    if (ret->input == NULL || inflateInit2(&ret->stream, window) != Z_OK) {
        free(ret->input);
        return -1;
    }
    return 0;
}

int unpack_begin(struct unpacking *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->end = INT64_MAX;
    return begin(ret, GZIP);
}

int unpack_begin_member(struct unpacking *ret, const struct unpack_member *member)
{
    memset(ret, 0, sizeof(*ret));
    ret->at = member->at;
    ret->end = member->at + member->packed;
    ret->is_member = 1;
    ret->crc_wanted = member->crc;
    return begin(ret, BARE);
}

void unpack_end(struct unpacking *u)
{
    inflateEnd(&u->stream);
    free(u->input);
}

/* The next bytes of the file; -1: there are none. */
static int refill(struct unpacking *u, int fd)
{
    const int64_t rest = u->end - u->at;
    const size_t size = rest < INPUT ? (size_t)rest : INPUT;
    ssize_t got = 0;
    do {
        got = pread(fd, u->input, size, u->at);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        return -1;
    }
    u->at += got;
    u->stream.next_in = u->input;
    u->stream.avail_in = (uInt)got;
    return 0;
}

/* zlib looks at the checksum of gzip; that of a member is ours to look at. */
static int is_sound(struct unpacking *u, const void *bytes, size_t size)
{
    if (!u->is_member) {
        return 1;
    }
    u->crc = (uint32_t)crc32_z(u->crc, bytes, size);
    return !u->is_ended || (u->crc == u->crc_wanted && u->stream.avail_in == 0 && u->at == u->end);
}

int64_t unpack_next(struct unpacking *u, int fd, void *dst, size_t size)
{
    u->stream.next_out = dst;
    u->stream.avail_out = (uInt)size;
    while (u->stream.avail_out > 0 && !u->is_ended) {
        if (u->stream.avail_in == 0 && refill(u, fd) < 0) {
            return -1;
        }
        const int rc = inflate(&u->stream, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END) {
            return -1;
        }
        u->is_ended = rc == Z_STREAM_END;
    }
    const size_t done = size - u->stream.avail_out;
    return is_sound(u, dst, done) ? (int64_t)done : -1;
}

int unpack_skip(struct unpacking *u, int fd, int64_t size)
{
    uint8_t bytes[4096];
    for (int64_t rest = size; rest > 0;) {
        const size_t piece = rest < (int64_t)sizeof(bytes) ? (size_t)rest : sizeof(bytes);
        if (unpack_next(u, fd, bytes, piece) != (int64_t)piece) {
            return -1;
        }
        rest -= (int64_t)piece;
    }
    return 0;
}

int unpack_is_at_end(struct unpacking *u, int fd)
{
    uint8_t more = 0;
    if (unpack_next(u, fd, &more, 1) != 0) {
        return 0;
    }
    return u->is_member || (u->stream.avail_in == 0 && pread(fd, &more, 1, u->at) == 0);
}
