/* regular.c - files of configuration, opened at once, whatever stands in their place */
#include "proto/regular.h"

#include "proto/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int takes_pipes;

void ms_regular_take_pipes(void)
{
    takes_pipes = 1;
}

/* A FIFO that was opened without waiting ends at once while nobody has it open for writing: the
 * first byte, or the writer's end, is waited for, then reading waits as it does for everybody. */
static int wait_for_writer(int fd)
{
    struct pollfd pipe = {.fd = fd, .events = POLLIN};
    int n;
    do {
        n = poll(&pipe, 1, -1);
    } while (n < 0 && errno == EINTR);
    int flags = fcntl(fd, F_GETFL);
    return n > 0 && flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

/* A descriptor that we were started with has a writer; a FIFO in a folder may never get one. */
static int is_descriptor(const char *path)
{
    static const char *const names[] = {"/dev/stdin", "/dev/fd/", "/proc/self/fd/"};
    size_t i = 0;
    while (i < MS_ARRAY_SIZE(names) && strncmp(path, names[i], strlen(names[i])) != 0) {
        i++;
    }
    return i < MS_ARRAY_SIZE(names);
}

static int is_as_a_file(const char *path, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return 0;
    }
    return S_ISREG(st.st_mode) || (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) ||
           (takes_pipes && S_ISFIFO(st.st_mode) && is_descriptor(path) && wait_for_writer(fd));
}

int ms_regular_open(const char *path, const char *what, FILE **ret, struct ms_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno != ENXIO) { /* ENXIO: a socket lies there */
        return ms_fail_errno(err, errno == ENOENT ? MS_E_NOT_FOUND : MS_E_IO, "cannot read %s%s",
                             what, path);
    }
    struct stat st;
    int is_folder = fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    FILE *file = fd >= 0 && is_as_a_file(path, fd) ? fdopen(fd, "r") : NULL;
    if (file == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return is_folder ? ms_fail(err, MS_E_INVALID,
                                   "%s%s is a folder and no file: name the file itself, or put it "
                                   "there in place of the folder",
                                   what, path)
                         : ms_fail(err, MS_E_INVALID, "%s%s is no regular file", what, path);
    }
    *ret = file;
    return MS_OK;
}
