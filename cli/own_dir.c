/* own_dir.c - a folder that nobody else can write to: what is put there stays what it was */
#include "cli/own_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_owner(int fd, const char *path, const char *what, const char *danger,
                       struct ms_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot look at %s %.200s", what, path);
    }
    if (st.st_uid != geteuid()) {
        return ms_fail(err, MS_E_REFUSED,
                       "%s %.200s belongs to uid %u, and %s: name a folder of your own", what, path,
                       (unsigned)st.st_uid, danger);
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return ms_fail(err, MS_E_REFUSED,
                       "others may write to %s %.140s (mode %04o), and %s: chmod go-w %.100s", what,
                       path, (unsigned)st.st_mode & 07777U, danger, path);
    }
    return MS_OK;
}

int own_dir_open(const char *path, int flags, const char *what, const char *danger, int *ret_fd,
                 struct ms_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
        return ms_fail(err, MS_E_REFUSED,
                       "%s %.200s is a link or no folder: name the folder itself", what, path);
    }
    if (fd < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot open %s %.200s", what, path);
    }
    int rc = check_owner(fd, path, what, danger, err);
    if (rc != MS_OK) {
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return MS_OK;
}
