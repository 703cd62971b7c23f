/* lent.c - a job goes on from what another job has saved in its own folder */
#include "libworker/train/lent.h"

#include "proto/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 40 };

static const char *name_of(uint64_t job, char buf[NAME_BYTES])
{
    snprintf(buf, NAME_BYTES, ".lent-%" PRIu64, job);
    return buf;
}

int lent_give(const char *folder, uint64_t job, struct ms_err *err)
{
    char name[NAME_BYTES];
    if (job == 0) {
        return ms_fail(err, MS_E_INVALID, "checkpoints are lent to no job");
    }
    const int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int fd =
        dir >= 0 ? openat(dir, name_of(job, name), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)
                 : -1;
    const int is_durable = fd >= 0 && fsync(fd) == 0 && (fsync(dir) == 0 || errno == EINVAL);
    int rc =
        is_durable ? MS_OK : ms_fail_errno(err, MS_E_IO, "cannot lend what lies in %.200s", folder);
    if (fd >= 0) {
        close(fd);
    }
    if (dir >= 0) {
        close(dir);
    }
    return rc;
}

/* "/jobs/3" of "/jobs/3/checkpoints/lin-600.json" for who has "/jobs/7"; both without links. */
static int folder_of(const char *path, const char *run_dir, char real[PATH_MAX], char ret[PATH_MAX])
{
    char above[MS_PATH_MAX + 1];
    char all[PATH_MAX];
    if (realpath(ms_folder_of(run_dir, above, sizeof(above)), all) == NULL ||
        realpath(path, real) == NULL) {
        return 0;
    }
    const size_t n = strcmp(all, "/") != 0 ? strlen(all) : 0;
    if (strncmp(real, all, n) != 0 || real[n] != '/') {
        return 0;
    }
    const size_t digits = strspn(real + n + 1, "0123456789");
    if (digits == 0 || real[n + 1 + digits] != '/') {
        return 0;
    }
    memcpy(ret, real, n + 1 + digits);
    ret[n + 1 + digits] = '\0';
    return 1;
}

/* Is the file this job's? The first one that finds it makes it so. */
static int take(int fd, const char *tag)
{
    char there[MS_JOB_TAG_LEN + 1] = "";
    const size_t size = strlen(tag);
    const ssize_t n = pread(fd, there, MS_JOB_TAG_LEN, 0);
    if (n == 0) {
        return size == 0 || (pwrite(fd, tag, size, 0) == (ssize_t)size && fsync(fd) == 0);
    }
    return n == (ssize_t)size && memcmp(there, tag, size) == 0;
}

int lent_look(const char *path, const struct lent_borrower *borrower,
              char ret_real[MS_PATH_MAX + 1], struct ms_err *err)
{
    char real[PATH_MAX];
    char folder[PATH_MAX];
    char name[PATH_MAX + NAME_BYTES];
    char last[NAME_BYTES];
    if (!folder_of(path, borrower->run_dir, real, folder)) {
        return 0;
    }
    snprintf(name, sizeof(name), "%s/%s", folder, name_of(borrower->job, last));
    const int fd = open(name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const int is_lent = fd >= 0 && take(fd, borrower->tag);
    if (fd >= 0) {
        close(fd);
    }
    if (!is_lent) {
        return ms_fail(err, MS_E_REFUSED,
                       "it lies in the folder of another job, whose owner has not lent it to "
                       "job %" PRIu64 ": msctl submit --resume does",
                       borrower->job);
    }
    const size_t size = strlen(real) + 1;
    if (size > MS_PATH_MAX + 1) {
        return ms_fail(err, MS_E_INVALID, "its path without links has more than %d bytes",
                       MS_PATH_MAX);
    }
    memcpy(ret_real, real, size);
    return 1;
}
