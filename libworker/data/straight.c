/* straight.c - a file written from its first byte to its last, past the page cache where it can be
 */
#include "libworker/data/straight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What devices take past the cache: places, sizes and addresses of whole blocks. Pieces are so many
 * that a device has no time to rest in between. */
enum { BLOCK = 4096, PIECE = 4 << 20 };

struct straight {
    int fd;
    const char *path;
    struct sum *sum;
    char *buffer;
    size_t used;
    uint64_t written; /* a multiple of BLOCK until the end */
    int is_direct;
};

static int set_direct(int fd, int on)
{
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

int straight_create(int fd, const char *path, size_t largest, uint64_t total, struct straight **ret,
                    struct ms_err *err)
{
    struct straight *s = calloc(1, sizeof(*s));
    const size_t most = total < PIECE ? (size_t)total : largest + PIECE;
    const size_t room = (most / BLOCK + 2) * BLOCK;
    if (s != NULL) {
        *s = (struct straight){.fd = fd, .path = path, .sum = sum_create()};
        s->buffer = aligned_alloc(BLOCK, room);
    }
    if (s == NULL || s->sum == NULL || s->buffer == NULL) {
        straight_destroy(s);
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to write it", path);
    }
    s->is_direct = total >= PIECE && set_direct(fd, 1); /* a small one is quicker through it */
    *ret = s;
    return MS_OK;
}

void straight_destroy(struct straight *straight)
{
    if (straight != NULL) {
        sum_destroy(straight->sum);
        free(straight->buffer);
        free(straight);
    }
}

void *straight_room(struct straight *straight)
{
    return straight->buffer + straight->used;
}

/* Some file systems take the flag, and refuse what comes with it; and what a full disk took a part
 * of does not end with a block. */
static int goes_on_cached(struct straight *s)
{
    const int goes_on = s->is_direct && errno == EINVAL && set_direct(s->fd, 0);
    s->is_direct = s->is_direct && !goes_on;
    return goes_on;
}

static int write_first(struct straight *s, size_t size, struct ms_err *err)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = pwrite(s->fd, s->buffer + done, size - done, (off_t)(s->written + done));
        if (n < 0 && errno != EINTR && !goes_on_cached(s)) {
            return ms_fail_errno(err, MS_E_IO, "%.200s cannot be written", s->path);
        }
        done += n > 0 ? (size_t)n : 0;
    }
    s->written += size;
    s->used -= size;
    memmove(s->buffer, s->buffer + size, s->used);
    return MS_OK;
}

int straight_add(struct straight *straight, size_t size, struct ms_err *err)
{
    sum_add(straight->sum, straight_room(straight), size);
    straight->used += size;
    return straight->used < PIECE ? MS_OK
                                  : write_first(straight, straight->used / BLOCK * BLOCK, err);
}

int straight_end(struct straight *straight, struct ms_err *err)
{
    int rc = write_first(straight, straight->used / BLOCK * BLOCK, err);
    if (rc == MS_OK && straight->is_direct) { /* what is no whole block */
        straight->is_direct = !set_direct(straight->fd, 0);
    }
    return rc < 0 ? rc : write_first(straight, straight->used, err);
}

uint64_t straight_size(const struct straight *straight)
{
    return straight->written + straight->used;
}

void straight_sum(const struct straight *straight, char ret[SUM_HEX])
{
    sum_hex(straight->sum, ret);
}
