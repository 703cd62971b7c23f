/* store_disk.h - the disk of a test of the store: it can be full, fail at a call, and lose power
 *
 * The system calls that write are replaced by ones that can run out of space (the executable's
 * symbols come before those of libc for libsqlite3 too). */
#ifndef TESTS_UNIT_STORE_DISK_H
#define TESTS_UNIT_STORE_DISK_H

#include "proto/rng.h"
#include "tests/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int64_t disk_left = INT64_MAX;  /* bytes by which files may still grow */
static int full_errno = ENOSPC;        /* what says so: the disk, or a quota */
static int64_t calls_left = INT64_MAX; /* write, sync and truncate calls until one fails */
static int calls_seen;
static int call_failed;

MS_API ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at);
MS_API int fdatasync(int fd);
MS_API int fsync(int fd);
MS_API int unlink(const char *name);
MS_API int ftruncate64(int fd, off64_t size);
MS_API int posix_fallocate(int fd, off_t at, off_t size);

static inline void *real(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    if (symbol == NULL) {
        abort();
    }
    return symbol;
}

/* What a power cut takes back: writes since the last sync of their file, newest first. */
struct undo {
    struct undo *next;
    char path[256];
    off_t at, size, old_size; /* bytes [at, at + size) were `old`, the file had old_size bytes */
    uint8_t old[];
};

static struct undo *undos;
static int keeps_undos;

static inline int path_of(int fd, char buf[256])
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, buf, 255);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Before bytes [at, at + size) of a file change. */
static inline void keep_undo(int fd, off_t at, off_t size)
{
    struct stat st;
    struct undo *undo = keeps_undos ? calloc(1, sizeof(*undo) + (size_t)size) : NULL;
    if (undo == NULL || fstat(fd, &st) != 0 || !path_of(fd, undo->path)) {
        free(undo);
        return;
    }
    int again = open(undo->path, O_RDONLY | O_CLOEXEC); /* theirs may be write-only */
    ssize_t n = pread(again, undo->old, (size_t)size, at);
    close(again);
    undo->at = at;
    undo->size = n > 0 ? n : 0;
    undo->old_size = st.st_size;
    undo->next = undos;
    undos = undo;
}

static inline void forget_undos(int fd)
{
    char synced[256];
    path_of(fd, synced);
    for (struct undo **at = &undos; *at != NULL;) {
        struct undo *undo = *at;
        if (fd < 0 || strcmp(undo->path, synced) == 0) {
            *at = undo->next;
            free(undo);
        } else {
            at = &undo->next;
        }
    }
}

/* Each unsynced write is lost (chance 100 of 100) or happens to have reached the disk. */
static inline void cut_power(unsigned seed, unsigned chance)
{
    for (struct undo *undo = undos; undo != NULL; undo = undo->next) {
        int fd = open(undo->path, O_RDWR | O_CLOEXEC);
        if (fd >= 0 && ms_rng_mix(seed++) % 100 < chance) {
            struct stat st;
            ck_assert_int_eq(pwrite(fd, undo->old, (size_t)undo->size, undo->at), undo->size);
            ck_assert_int_eq(fstat(fd, &st), 0);
            if (st.st_size > undo->old_size) {
                ck_assert_int_eq(ftruncate(fd, undo->old_size), 0);
            }
        }
        close(fd);
    }
    forget_undos(-1);
}

static inline int take_call(void)
{
    calls_seen++;
    if (calls_left-- > 0) {
        return 1;
    }
    call_failed = 1;
    errno = EIO;
    return 0;
}

static inline int take_space(int fd, off_t end)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && end > st.st_size) {
        if (end - st.st_size > disk_left) {
            errno = full_errno;
            return 0;
        }
        disk_left -= disk_left == INT64_MAX ? 0 : end - st.st_size;
    }
    return 1;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    ssize_t (*next)(int, const void *, size_t, off64_t);
    *(void **)&next = real("pwrite64");
    if (!take_call() || !take_space(fd, at + (off_t)size)) {
        return -1;
    }
    keep_undo(fd, at, (off_t)size);
    return next(fd, data, size, at);
}

/* The disk of this machine is not waited for: what a sync is for is tested by cut_power. */
int fdatasync(int fd)
{
    if (!take_call()) {
        return -1;
    }
    forget_undos(fd);
    return 0;
}

int fsync(int fd)
{
    return fdatasync(fd);
}

static char swapped[160]; /* goes with the reserve, and a folder comes in its place; "": nothing */

static inline void swap(void)
{
    int (*next)(const char *);
    *(void **)&next = real("unlink");
    if (swapped[0] != '\0') {
        (void)next(swapped);
        ck_assert_int_eq(mkdir(swapped, 0700), 0);
    }
}

static inline int is_reserve(int fd)
{
    char link[64];
    char name[512];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof(name) - 1);
    name[n > 0 ? n : 0] = '\0';
    return strstr(name, ".reserve") != NULL;
}

int ftruncate64(int fd, off64_t size)
{
    int (*next)(int, off64_t);
    *(void **)&next = real("ftruncate64");
    struct stat st;
    if (!take_call()) {
        return -1;
    }
    if (fstat(fd, &st) == 0 && st.st_size > size) {
        keep_undo(fd, size, st.st_size - size);
        if (is_reserve(fd)) {
            disk_left += disk_left != INT64_MAX ? st.st_size - size : 0;
            swap();
        }
    }
    return next(fd, size);
}

int posix_fallocate(int fd, off_t at, off_t size)
{
    int (*next)(int, off_t, off_t);
    *(void **)&next = real("posix_fallocate");
    return take_space(fd, at + size) ? next(fd, at, size) : full_errno;
}

int unlink(const char *name)
{
    int (*next)(const char *);
    *(void **)&next = real("unlink");
    struct stat st;
    off_t size = stat(name, &st) == 0 ? st.st_size : 0;
    int rc = next(name);
    disk_left += rc == 0 && disk_left != INT64_MAX ? size : 0;
    if (strstr(name, ".reserve") != NULL) {
        swap();
    }
    return rc;
}

#endif
