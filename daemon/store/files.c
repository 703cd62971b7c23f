/* files.c - the files beside the database: a lock against a second daemon, a reserve of disk
 */
#include "daemon/store/files.h"

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

/* The pid in a lock file that another process holds, or 0. */
static long lock_holder(int fd)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0) {
        return 0;
    }
    text[n] = '\0';
    return strtol(text, NULL, 10);
}

int store_lock(const char *database, int *ret_fd, struct ms_err *err)
{
    char path[SIDE_PATH_MAX];
    side_path(database, "lock", path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return ms_fail_errno(err, MS_E_CONFIG, "lock file %s", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int rc;
        if (errno == EWOULDBLOCK) {
            long pid = lock_holder(fd);
            rc = ms_fail(err, MS_E_EXISTS,
                         "database %s is in use by another msschedd (pid %ld): only one may serve "
                         "it; stop that one first (systemctl stop msschedd, or kill %ld)",
                         database, pid, pid);
        } else {
            rc = ms_fail_errno(err, MS_E_IO, "lock file %s", path);
        }
        close(fd);
        return rc;
    }
    char text[32];
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    /* the pid is for people; on a full disk the lock holds without it */
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) != n) {
        errno = 0;
    }
    *ret_fd = fd;
    return 0;
}

uint64_t store_free_bytes(const char *database)
{
    char folder[SIDE_PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", database);
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
        snprintf(folder, sizeof(folder), ".");
    } else {
        slash[slash == folder ? 1 : 0] = '\0';
    }
    struct statfs fs;
    if (statfs(folder, &fs) != 0) {
        return 0;
    }
    return (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
}

int store_reserve_make(const char *database, uint64_t spare_bytes, struct ms_err *err)
{
    char path[SIDE_PATH_MAX];
    side_path(database, "reserve", path);
    struct stat st;
    if (stat(path, &st) == 0 && st.st_blocks * 512 >= (off_t)MS_STORE_RESERVE) {
        return 0;
    }
    if (spare_bytes > 0 && store_free_bytes(database) < MS_STORE_RESERVE + spare_bytes) {
        return ms_fail(err, MS_E_FULL, "no space for %s", path);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return ms_fail_errno(err, errno == ENOSPC ? MS_E_FULL : MS_E_IO, "reserve file %s", path);
    }
    int why = posix_fallocate(fd, 0, MS_STORE_RESERVE);
    if (why == 0 && fsync(fd) != 0) {
        why = errno;
    }
    close(fd);
    if (why != 0) {
        unlink(path);
        errno = why;
        int full = why == ENOSPC || why == EDQUOT || why == EFBIG;
        return ms_fail_errno(err, full ? MS_E_FULL : MS_E_IO, "reserve file %s", path);
    }
    return 0;
}

void store_reserve_drop(const char *database)
{
    char path[SIDE_PATH_MAX];
    unlink(side_path(database, "reserve", path));
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
