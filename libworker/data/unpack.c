/* unpack.c - a gzip file from its front, beside whoever else reads it */
#include "libworker/data/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUT = 64 << 10, GZIP = 16 + MAX_WBITS };

int unpack_begin(struct unpacking *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->input = malloc(INPUT);
    if (ret->input == NULL || inflateInit2(&ret->stream, GZIP) != Z_OK) {
        free(ret->input);
        return -1;
    }
    return 0;
}

void unpack_end(struct unpacking *u)
{
    inflateEnd(&u->stream);
    free(u->input);
}

int64_t unpack_next(struct unpacking *u, int fd, void *dst, size_t size)
{
    u->stream.next_out = dst;
    u->stream.avail_out = (uInt)size;
    while (u->stream.avail_out > 0 && !u->is_ended) {
        if (u->stream.avail_in == 0) {
            const ssize_t got = pread(fd, u->input, INPUT, u->at);
            if (got < 0 && errno == EINTR) {
                continue;
            }
            if (got <= 0) {
                return -1;
            }
            u->at += got;
            u->stream.next_in = u->input;
            u->stream.avail_in = (uInt)got;
        }
        const int rc = inflate(&u->stream, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END) {
            return -1;
        }
        u->is_ended = rc == Z_STREAM_END;
    }
    return (int64_t)size - u->stream.avail_out;
}

int unpack_skip(struct unpacking *u, int fd, int64_t size)
{
    uint8_t bytes[64];
    for (int64_t rest = size; rest > 0;) {
        const size_t piece = rest < (int64_t)sizeof(bytes) ? (size_t)rest : sizeof(bytes);
        if (unpack_next(u, fd, bytes, piece) != (int64_t)piece) {
            return -1;
        }
        rest -= (int64_t)piece;
    }
    return 0;
}
