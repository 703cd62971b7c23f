/* wal_keep.c - copies of logs of writes that could not be taken whole: evidence */
#include "daemon/store/files.h"
#include "daemon/store/wal.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, KEPT_PATH_MAX = MS_PATH_MAX + 32 };

/* One place for a copy, and what lies there. */
struct kept {
    bool is_taken;
    struct timespec written;
    char path[KEPT_PATH_MAX];
};

static bool is_older(const struct kept *a, const struct kept *b)
{
    return a->written.tv_sec != b->written.tv_sec ? a->written.tv_sec < b->written.tv_sec
                                                  : a->written.tv_nsec < b->written.tv_nsec;
}

static bool same_bytes(int wal_fd, const char *path, uint8_t *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd >= 0 ? 1 : -1;
    for (off_t at = 0; n > 0; at += n) {
        n = pread(wal_fd, bytes, CHUNK, at);
        ssize_t other = pread(fd, bytes + CHUNK, CHUNK, at);
        if (n >= 0 && (n != other || memcmp(bytes, bytes + CHUNK, (size_t)n) != 0)) {
            n = -1;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return n == 0;
}

static bool copy_bytes(int wal_fd, const char *database, const char *path, uint8_t *bytes)
{
    unlink(path); /* of a start that did not finish it */
    int fd = store_open_beside(path, database, O_WRONLY | O_CREAT | O_EXCL);
    ssize_t n = fd >= 0 ? 1 : -1;
    for (off_t at = 0; n > 0; at += n) {
        n = pread(wal_fd, bytes, CHUNK, at);
        if (n > 0 && write(fd, bytes, (size_t)n) != n) {
            n = -1;
        }
    }
    bool good = n == 0 && fsync(fd) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return good;
}

/* A free place, else that of the oldest but one. */
static const struct kept *choose(const struct kept kept[MS_STORE_LOST_MAX])
{
    size_t first = 0;
    const struct kept *chosen = NULL;
    for (size_t i = 0; i < MS_STORE_LOST_MAX; i++) {
        if (!kept[i].is_taken) {
            return &kept[i];
        }
        first = is_older(&kept[i], &kept[first]) ? i : first;
    }
    for (size_t i = 0; i < MS_STORE_LOST_MAX; i++) {
        if (i != first && (chosen == NULL || is_older(&kept[i], chosen))) {
            chosen = &kept[i];
        }
    }
    return chosen;
}

void wal_keep(int wal_fd, const char *database, char *path, size_t size)
{
    struct kept kept[MS_STORE_LOST_MAX];
    const struct kept *place = NULL;
    char unfinished[KEPT_PATH_MAX];
    uint8_t *bytes = malloc((size_t)2 * CHUNK);
    bool is_kept = false;
    memset(kept, 0, sizeof(kept));
    for (size_t i = 0; i < MS_STORE_LOST_MAX && bytes != NULL && !is_kept; i++) {
        struct stat st;
        snprintf(kept[i].path, sizeof(kept[i].path), "%s.wal-lost.%zu", database, i + 1);
        kept[i].is_taken = lstat(kept[i].path, &st) == 0;
        kept[i].written = kept[i].is_taken ? st.st_mtim : kept[i].written;
        is_kept =
            kept[i].is_taken && S_ISREG(st.st_mode) && same_bytes(wal_fd, kept[i].path, bytes);
        place = &kept[i];
    }
    if (bytes != NULL && !is_kept) {
        place = choose(kept);
        snprintf(unfinished, sizeof(unfinished), "%s.wal-lost.new", database);
        is_kept =
            copy_bytes(wal_fd, database, unfinished, bytes) && rename(unfinished, place->path) == 0;
        if (!is_kept) {
            unlink(unfinished);
        }
    }
    snprintf(path, size, "%s", is_kept ? place->path : "");
    free(bytes);
}
