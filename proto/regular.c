/* regular.c - files of configuration, opened at once, whatever stands in their place */
#include "proto/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int is_as_a_file(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 &&
           (S_ISREG(st.st_mode) || (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)));
}

int ms_regular_open(const char *path, const char *what, FILE **ret, struct ms_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno != ENXIO) { /* ENXIO: a socket lies there */
        return ms_fail_errno(err, errno == ENOENT ? MS_E_NOT_FOUND : MS_E_IO, "cannot read %s%s",
                             what, path);
    }
    FILE *file = fd >= 0 && is_as_a_file(fd) ? fdopen(fd, "r") : NULL;
    if (file == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return ms_fail(err, MS_E_INVALID, "%s%s is no regular file", what, path);
    }
    *ret = file;
    return MS_OK;
}
