/* wal.c - judges the log of writes before SQLite recovers it (sqlite.org/fileformat2.html, 4) */
#include "daemon/store/wal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WAL_HEADER = 32,
    FRAME_HEADER = 24,
    PAGE_MIN = 512,
    PAGE_MAX = 65536,
    PAGE_OURS = 4096,
};

struct wal {
    int fd;
    off_t size;
    bool big_endian; /* of the words that checksums are made of */
    uint32_t page, salt[2], sum[2];
    uint8_t *frame; /* FRAME_HEADER + page bytes */
};

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t word(const struct wal *wal, const uint8_t *p)
{
    return wal->big_endian
               ? be32(p)
               : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static void checksum(struct wal *wal, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i + 8 <= size; i += 8) {
        wal->sum[0] += word(wal, bytes + i) + wal->sum[1];
        wal->sum[1] += word(wal, bytes + i + 4) + wal->sum[0];
    }
}

/* False: the header is damaged, and SQLite takes nothing of this log. */
static bool take_header(struct wal *wal, const uint8_t header[WAL_HEADER])
{
    uint32_t magic = be32(header);
    wal->big_endian = (magic & 1) != 0;
    wal->page = be32(header + 8);
    checksum(wal, header, FRAME_HEADER);
    bool good = (magic & ~1U) == 0x377f0682 && be32(header + 4) == 3007000 &&
                wal->page >= PAGE_MIN && wal->page <= PAGE_MAX &&
                (wal->page & (wal->page - 1)) == 0 && be32(header + 24) == wal->sum[0] &&
                be32(header + 28) == wal->sum[1];
    wal->salt[0] = be32(header + 16);
    wal->salt[1] = be32(header + 20);
    wal->page = good ? wal->page : PAGE_OURS;
    return good;
}

static bool frame_read(const struct wal *wal, uint64_t index)
{
    size_t size = FRAME_HEADER + wal->page;
    off_t at = WAL_HEADER + (off_t)(index * size);
    return pread(wal->fd, wal->frame, size, at) == (ssize_t)size;
}

static bool frame_is_of(const struct wal *wal)
{
    return be32(wal->frame + 8) == wal->salt[0] && be32(wal->frame + 12) == wal->salt[1];
}

/* One of the two survives a damaged byte; those of an earlier log differ in both. */
static bool frame_may_be_of(const struct wal *wal)
{
    return be32(wal->frame + 8) == wal->salt[0] || be32(wal->frame + 12) == wal->salt[1];
}

static bool frame_holds(struct wal *wal)
{
    checksum(wal, wal->frame, 8);
    checksum(wal, wal->frame + FRAME_HEADER, wal->page);
    return frame_is_of(wal) && be32(wal->frame) != 0 && be32(wal->frame + 16) == wal->sum[0] &&
           be32(wal->frame + 20) == wal->sum[1];
}

static bool frame_is_empty(const struct wal *wal)
{
    for (size_t i = 0; i < FRAME_HEADER; i++) {
        if (wal->frame[i] != 0) {
            return false;
        }
    }
    return true; /* the file had grown, its bytes had not come yet */
}

/* Frames from `from` on that were written into this log: its salts tell them from what an earlier
 * log left behind. */
static void count_rest(struct wal *wal, uint64_t from, uint64_t n, struct wal_loss *loss)
{
    for (uint64_t i = from; i < n && frame_read(wal, i); i++) {
        if (loss->header && i == from) {
            wal->salt[0] = be32(wal->frame + 8);
            wal->salt[1] = be32(wal->frame + 12);
        }
        if (!frame_is_empty(wal) && (frame_is_of(wal) || (i == from && frame_may_be_of(wal)))) {
            loss->frames++;
            loss->commits += be32(wal->frame + 4) != 0;
        }
    }
}

static void judge(struct wal *wal, const uint8_t header[WAL_HEADER], struct wal_loss *loss)
{
    loss->header = !take_header(wal, header);
    uint64_t n = (uint64_t)(wal->size - WAL_HEADER) / (FRAME_HEADER + wal->page);
    uint64_t good = 0;
    while (!loss->header && !loss->absent && good < n && frame_read(wal, good) &&
           frame_holds(wal)) {
        good++;
    }
    count_rest(wal, good, n, loss);
}

int wal_is_there(const char *database, int *ret_holds_something)
{
    char path[MS_PATH_MAX + 8];
    struct stat st = {.st_size = 0};
    snprintf(path, sizeof(path), "%s-wal", database);
    int there = stat(path, &st) == 0;
    *ret_holds_something = there && st.st_size > WAL_HEADER;
    return there;
}

int wal_judge(const char *database, int absent, struct wal_loss *ret, struct ms_err *err)
{
    char path[MS_PATH_MAX + 8];
    uint8_t header[WAL_HEADER];
    struct stat st;
    struct wal_loss loss = {.absent = absent};
    snprintf(path, sizeof(path), "%s-wal", database);
    struct wal wal = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    int rc = 0;
    if (wal.fd < 0 && errno != ENOENT) {
        return ms_fail_errno(err, MS_E_CONFIG, "log of writes %s", path);
    }
    if (wal.fd >= 0 && fstat(wal.fd, &st) == 0 && st.st_size > WAL_HEADER) {
        wal.size = st.st_size;
        wal.frame = malloc(FRAME_HEADER + PAGE_MAX);
        if (wal.frame == NULL) {
            rc = ms_fail(err, MS_E_NOMEM, "no memory for the log of writes %s", path);
        } else if (pread(wal.fd, header, sizeof(header), 0) != (ssize_t)sizeof(header)) {
            rc = ms_fail_errno(err, MS_E_IO, "log of writes %s", path);
        } else {
            judge(&wal, header, &loss);
        }
        if (loss.frames > 0) {
            wal_keep(wal.fd, database, loss.copy, sizeof(loss.copy));
        }
        free(wal.frame);
    }
    if (wal.fd >= 0) {
        close(wal.fd);
    }
    if (rc == 0) {
        *ret = loss;
    }
    return rc;
}
