/* lines.c - a file of lines that grows, and is one process's at a time */
#include "libworker/train/lines.h"

#include "proto/file_write.h"
#include "proto/folder.h"
#include "proto/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is longer than any line of ours comes in parts, of which none looks like one. */
off_t lines_read(FILE *file, void (*on_line)(void *arg, const char *line), void *arg)
{
    char *line = malloc(LINES_LINE_MAX);
    off_t whole = 0;
    int begins = 1;
    if (line == NULL) {
        return MS_E_NOMEM;
    }
    while (fgets(line, LINES_LINE_MAX, file) != NULL) {
        const int ends = strchr(line, '\n') != NULL;
        if (begins && ends) {
            on_line(arg, line);
        }
        whole = ends ? ftello(file) : whole;
        begins = ends;
    }
    free(line);
    return ferror(file) ? MS_E_IO : whole;
}

/* ---- made anew ---- */

/* A disk without room says so at once, and not behind each line after most of a long file. */
static int reserve(int to, const char *path, off_t whole, struct ms_err *err)
{
    if (whole > 0 && fallocate(to, FALLOC_FL_KEEP_SIZE, 0, whole) < 0 &&
        (errno == ENOSPC || errno == EDQUOT)) {
        return ms_fail_errno(err, MS_E_IO, "cannot write %s", path);
    }
    return 0;
}

/* A disk that fills up takes a part of the bytes first, which is no error yet: the rest is. */
static int write_all(int fd, const char *path, const char *bytes, size_t n, struct ms_err *err)
{
    while (n > 0) {
        ssize_t put = write(fd, bytes, n);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return ms_fail_errno(err, MS_E_IO, "cannot write %s", path);
        }
        bytes += put;
        n -= (size_t)put;
    }
    return 0;
}

static int copy(int from, int to, const char *path, off_t whole, struct ms_err *err)
{
    char bytes[1 << 16];
    int rc = 0;
    for (off_t at = 0; rc == 0 && at < whole;) {
        const size_t want =
            whole - at < (off_t)sizeof(bytes) ? (size_t)(whole - at) : sizeof(bytes);
        ssize_t n = pread(from, bytes, want, at);
        if (n == 0) { /* it was cut meanwhile */
            return ms_fail(err, MS_E_IO, "cannot read %s: it became shorter", path);
        }
        if (n < 0) {
            return ms_fail_errno(err, MS_E_IO, "cannot read %s", path);
        }
        rc = write_all(to, path, bytes, (size_t)n, err);
        at += n;
    }
    return rc;
}

/* Else a power cut may leave the name of a file without its bytes, and the old one is gone. */
static int sync_lines(int fd, const char *path, struct ms_err *err)
{
    return fsync(fd) == 0 || errno == EINVAL /* it has no such thing */
               ? 0
               : ms_fail_errno(err, MS_E_IO, "cannot write %s", path);
}

static int is_taken(int fd, const char *path)
{
    return access(path, F_OK) == 0 && !ms_name_leads_to(AT_FDCWD, path, 0, fd);
}

int lines_make_anew(int fd, const char *path, off_t whole, struct ms_err *err)
{
    char anew[MS_PATH_MAX + 8];
    if (is_taken(fd, path)) {
        return 0;
    }
    snprintf(anew, sizeof(anew), "%s.new", path);
    (void)unlink(anew); /* of one that was killed here */
    int new_fd = open(anew, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (new_fd < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot make %s", anew);
    }
    int rc = reserve(new_fd, path, whole, err);
    rc = rc == 0 ? copy(fd, new_fd, path, whole, err) : rc;
    rc = rc == 0 ? sync_lines(new_fd, path, err) : rc;
    if (rc == 0 && rename(anew, path) != 0) {
        rc = ms_fail_errno(err, MS_E_IO, "cannot replace %s", path);
    }
    if (rc < 0) {
        close(new_fd);
        (void)unlink(anew);
        return rc;
    }
    (void)ms_folder_sync(path, NULL); /* the old name, with all lines, comes back at worst */
    return new_fd;
}
