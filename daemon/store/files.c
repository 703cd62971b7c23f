/* files.c - the files beside the database: a lock against a second daemon, a reserve of disk
 */
#include "daemon/store/files.h"

#include "proto/denied.h"
#include "proto/folder.h"
#include "proto/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

enum { SIDE_PATH_MAX = MS_PATH_MAX + 16 };

static const char *side_path(const char *database, const char *suffix, char buf[SIDE_PATH_MAX])
{
    snprintf(buf, SIDE_PATH_MAX, "%s.%s", database, suffix);
    return buf;
}

int store_open_beside(const char *path, const char *database, int flags)
{
    struct stat st;
    struct stat of_database;
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd >= 0 && (flags & O_CREAT) != 0 && geteuid() == 0 && fstat(fd, &st) == 0 &&
        stat(database, &of_database) == 0 && st.st_uid != of_database.st_uid &&
        fchown(fd, of_database.st_uid, of_database.st_gid) != 0) {
        errno = 0; /* root without the right to: what the file is for does not depend on it */
    }
    return fd;
}

/* ---- the lock -----------------------------------------------------------------------------------
 */

enum { LOCK_PID_LINE = 24, LOCK_TEXT_MAX = 96 };

/* Half of a number that was torn must not look like another number. */
static uint64_t witness_check(uint64_t ticks)
{
    return (ticks ^ 0x6d73636865646462U) * 0x9e3779b97f4a7c15U;
}

/* "<pid>\nticks <n> <check>\n", the first line padded so that the second has its place. */
static void lock_read(int fd, long *ret_pid, uint64_t *ret_ticks)
{
    char text[LOCK_TEXT_MAX + 1];
    unsigned long long ticks = 0;
    unsigned long long check = 0;
    ssize_t n = pread(fd, text, LOCK_TEXT_MAX, 0);
    text[n > 0 ? n : 0] = '\0';
    *ret_pid = strtol(text, NULL, 10);
    const char *line = strchr(text, '\n');
    int got = line != NULL ? sscanf(line, "\nticks %llu %llx", &ticks, &check) : 0;
    *ret_ticks = got == 2 && check == witness_check(ticks) ? ticks : 0;
}

void store_witness(int fd, uint64_t ticks)
{
    char text[LOCK_TEXT_MAX];
    int n = snprintf(text, sizeof(text), "ticks %020llu %016llx\n", (unsigned long long)ticks,
                     (unsigned long long)witness_check(ticks));
    if (pwrite(fd, text, (size_t)n, LOCK_PID_LINE) != n) {
        errno = 0; /* a witness less: the database itself does not depend on it */
    }
}

int store_lock(const char *database, int *ret_fd, uint64_t *ret_witness, struct ms_err *err)
{
    char path[SIDE_PATH_MAX];
    side_path(database, "lock", path);
    long pid = 0;
    int fd = store_open_beside(path, database, O_RDWR | O_CREAT);
    if (fd < 0) {
        return ms_denied(path, R_OK | W_OK, ms_fail_errno(err, MS_E_CONFIG, "lock file %s", path),
                         err);
    }
    lock_read(fd, &pid, ret_witness);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int rc = errno == EWOULDBLOCK
                     ? ms_fail(err, MS_E_EXISTS,
                               "database %s is in use by another msschedd (pid %ld): only one may "
                               "serve it; stop that one first (systemctl stop msschedd, or kill "
                               "%ld)",
                               database, pid, pid)
                     : ms_fail_errno(err, MS_E_IO, "lock file %s", path);
        close(fd);
        return rc;
    }
    char text[LOCK_PID_LINE + 1];
    snprintf(text, sizeof(text), "%-*ld\n", LOCK_PID_LINE - 1, (long)getpid());
    /* the pid is for people; on a full disk the lock holds without it */
    if (pwrite(fd, text, LOCK_PID_LINE, 0) != LOCK_PID_LINE) {
        errno = 0;
    }
    *ret_fd = fd;
    return 0;
}

/* ---- the disk -----------------------------------------------------------------------------------
 */

uint64_t store_free_bytes(const char *database)
{
    char folder[SIDE_PATH_MAX];
    struct statfs fs;
    if (statfs(ms_folder_of(database, folder, sizeof(folder)), &fs) != 0) {
        return 0;
    }
    return (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
}

/* Only what freeing space mends is a full disk. */
static int reserve_fail(const char *path, int why, struct ms_err *err)
{
    int code = why == ENOSPC || why == EDQUOT ? MS_E_FULL : MS_E_IO;
    if (why == EFBIG) {
        return ms_fail(err, code,
                       "reserve file %s: this process may write no file of %d KiB (ulimit -f, "
                       "LimitFSIZE= of the unit): raise that and start again",
                       path, MS_STORE_RESERVE / 1024);
    }
    errno = why;
    ms_fail_errno(err, code, "reserve file %s", path);
    errno = why;
    return code;
}

/* To size; 0: none. 0: it holds what it held. */
static int reserve_cut(const char *path, off_t size)
{
    int fd = size > 0 ? open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW) : -1;
    int is_cut = fd >= 0 && ftruncate(fd, size) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is_cut || unlink(path) == 0;
}

uint64_t store_reserve_held(const char *database)
{
    char path[SIDE_PATH_MAX];
    struct stat st;
    return lstat(side_path(database, "reserve", path), &st) == 0 && S_ISREG(st.st_mode)
               ? (uint64_t)st.st_blocks * 512
               : 0;
}

int store_reserve_make(const char *database, uint64_t spare_bytes, struct ms_err *err)
{
    char path[SIDE_PATH_MAX];
    const uint64_t held = store_reserve_held(database);
    if (held < MS_STORE_RESERVE && spare_bytes > 0 &&
        store_free_bytes(database) + held < MS_STORE_RESERVE + spare_bytes) {
        return reserve_fail(side_path(database, "reserve", path), ENOSPC, err);
    }
    return store_reserve_hold(database, MS_STORE_RESERVE, err);
}

int store_reserve_hold(const char *database, uint64_t bytes, struct ms_err *err)
{
    char path[SIDE_PATH_MAX];
    side_path(database, "reserve", path);
    const uint64_t held = store_reserve_held(database);
    if (held >= bytes) {
        return 0;
    }
    int fd = store_open_beside(path, database, O_WRONLY | O_CREAT);
    if (fd < 0 && errno == ELOOP) {
        return ms_fail(err, MS_E_IO, "reserve file %s: a symbolic link lies there", path);
    }
    if (fd < 0) {
        return reserve_fail(path, errno, err);
    }
    int why = posix_fallocate(fd, 0, (off_t)bytes);
    if (why == 0 && fsync(fd) != 0) {
        why = errno;
    }
    close(fd);
    if (why != 0) {
        reserve_cut(path, (off_t)held);
        return reserve_fail(path, why, err);
    }
    return 0;
}

int store_reserve_give(const char *database, struct ms_err *ret_why)
{
    char path[SIDE_PATH_MAX];
    const uint64_t held = store_reserve_held(database);
    const uint64_t kept = held > MS_STORE_PIECE ? held - MS_STORE_PIECE : 0;
    side_path(database, "reserve", path);
    if (held == 0 || !reserve_cut(path, (off_t)kept)) {
        return 0;
    }
    store_reserve_left(database, ret_why);
    return 1;
}

int store_reserve_left(const char *database, struct ms_err *ret)
{
    char path[SIDE_PATH_MAX];
    return ms_fail(ret, MS_E_FULL, "reserve file %s: %llu KiB are left for the last writes",
                   side_path(database, "reserve", path),
                   (unsigned long long)store_reserve_held(database) / 1024);
}

const char *store_bad_filesystem(const char *database)
{
    /* magic numbers of statfs(2); FUSE is left out, for most of them are local disks */
    static const struct {
        long type;
        const char *name;
    } bad[] = {{0x6969, "nfs"},
               {0x517B, "smb"},
               {(long)0xFF534D42, "cifs"},
               {(long)0xFE534D42, "smb2"},
               {0x5346414f, "afs"},
               {0x0BD00BD0, "lustre"}};
    struct statfs fs;
    if (statfs(database, &fs) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(bad); i++) {
        if ((long)fs.f_type == bad[i].type) {
            return bad[i].name;
        }
    }
    return NULL;
}
