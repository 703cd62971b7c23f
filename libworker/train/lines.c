/* lines.c - a file of lines that grows, and is one process's at a time */
#include "libworker/train/lines.h"

#include "proto/file_write.h"
#include "proto/folder.h"
#include "proto/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
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

static int copy(int from, int to, const char *path, off_t begin, off_t end, struct ms_err *err)
{
    char bytes[1 << 16];
    int rc = 0;
    for (off_t at = begin; rc == 0 && at < end;) {
        const size_t want = end - at < (off_t)sizeof(bytes) ? (size_t)(end - at) : sizeof(bytes);
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

enum { ANEW_MAX = MS_PATH_MAX + 64, LOT_DIGITS = 16 };

/* By lot: whoever sleeps here finds, when it wakes, no file of another under the name of its own.
 */
static int draw_name(const char *path, char ret[ANEW_MAX], struct ms_err *err)
{
    uint64_t lot = 0;
    if (getrandom(&lot, sizeof(lot), 0) != (ssize_t)sizeof(lot)) {
        return ms_fail_errno(err, MS_E_IO, "cannot draw a name for %s", path);
    }
    snprintf(ret, ANEW_MAX, "%s.new-%016" PRIx64, path, lot);
    return MS_OK;
}

/* Of those that were killed, or sleep, on the way to the same path: none of them gets there. */
static void clear_others(const char *path, const char *own)
{
    char folder[MS_PATH_MAX + 33];
    const char *name = ms_name_of(own);
    const size_t n_head = strlen(name) - LOT_DIGITS;
    DIR *dir = opendir(ms_folder_of(path, folder, sizeof(folder)));
    if (dir == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        const char *lot = entry->d_name + n_head; /* only where the head is the same */
        if (strncmp(entry->d_name, name, n_head) == 0 && strcmp(entry->d_name, name) != 0 &&
            strspn(lot, "0123456789abcdef") == LOT_DIGITS && lot[LOT_DIGITS] == '\0') {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    closedir(dir);
}

static int fill(int from, int to, const char *path, off_t whole, const struct lines_gap *gap,
                struct ms_err *err)
{
    int rc = reserve(to, path, whole, err);
    rc = rc == 0 ? copy(from, to, path, 0, gap->begin, err) : rc;
    rc = rc == 0 ? copy(from, to, path, gap->end, whole, err) : rc;
    return rc == 0 ? sync_lines(to, path, err) : rc;
}

/* 1: it has; 0: it may not, or its name has gone. The others' names go before the last look: who
 * looked before this one finds none of its own, and who did more than look is seen. Who comes too
 * late takes nobody's. */
static int take_place(const char *anew, const char *path, int fd, struct ms_err *err)
{
    if (is_taken(fd, path)) {
        return 0;
    }
    clear_others(path, anew);
    if (is_taken(fd, path)) {
        return 0;
    }
    if (rename(anew, path) == 0) {
        return 1;
    }
    return errno == ENOENT ? 0 : ms_fail_errno(err, MS_E_IO, "cannot replace %s", path);
}

/* As lines_make_anew; 0: also where another one took the name away, and not the place. What one
 * that was killed left goes first: it may have the room that this one needs. */
static int make_once(int fd, const char *path, off_t whole, const struct lines_gap *gap,
                     struct ms_err *err)
{
    char anew[ANEW_MAX];
    int rc = draw_name(path, anew, err);
    if (rc < 0) {
        return rc;
    }
    clear_others(path, anew);
    int new_fd = open(anew, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (new_fd < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot make %s", anew);
    }
    rc = fill(fd, new_fd, path, whole, gap, err);
    rc = rc == 0 ? take_place(anew, path, fd, err) : rc;
    if (rc <= 0) {
        close(new_fd);
        (void)unlink(anew);
        return rc;
    }
    (void)ms_folder_sync(path, NULL); /* the old name, with all lines, comes back at worst */
    return new_fd;
}

enum { TRIES_MAX = 16 };

int lines_make_anew(int fd, const char *path, off_t whole, struct ms_err *err)
{
    const struct lines_gap none = {whole, whole};
    return lines_make_anew_without(fd, path, whole, &none, err);
}

int lines_make_anew_without(int fd, const char *path, off_t whole, const struct lines_gap *gap,
                            struct ms_err *err)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        if (is_taken(fd, path)) {
            return 0;
        }
        const int rc = make_once(fd, path, whole, gap, err);
        if (rc != 0) {
            return rc;
        }
    }
    return ms_fail(err, MS_E_IO,
                   "cannot replace %s: another process takes away what is to replace it, as often "
                   "as it is made",
                   path);
}
