/* line_out.c - lines into a file that may have no room for them for a while */
#include "proto/line_out.h"

#include "proto/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- one file, several threads ---- */

enum { LOCKS = 16 };

static pthread_once_t locks_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t locks[LOCKS];

static void make_locks(void)
{
    for (size_t i = 0; i < LOCKS; i++) {
        pthread_mutex_init(&locks[i], NULL);
    }
}

/* By the file, however many descriptors lead there. Not one for all of them: a file on a disk that
 * hangs holds up nobody else. */
static pthread_mutex_t *lock_of(int fd)
{
    struct stat st;
    pthread_once(&locks_once, make_locks);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? &locks[st.st_ino % LOCKS] : NULL;
}

static void lock(const struct ms_line_out *out)
{
    if (out->lock != NULL) {
        pthread_mutex_lock(out->lock);
    }
}

static void unlock(const struct ms_line_out *out)
{
    if (out->lock != NULL) {
        pthread_mutex_unlock(out->lock);
    }
}

/* ---- writing ---- */

static size_t torn_of(const char *bytes, size_t n)
{
    size_t torn = 0;
    while (torn < n && bytes[n - torn - 1] != '\n') {
        torn++;
    }
    return torn;
}

/* n bytes are in the file, and the next ones are not. Returns those of which that is true still. */
static size_t take_back(int fd, const char *bytes, size_t n)
{
    struct stat st;
    const size_t torn = torn_of(bytes, n);
    const off_t end = lseek(fd, 0, SEEK_CUR);
    if (torn == 0 || end < (off_t)torn || fstat(fd, &st) != 0) {
        return n;
    }
    if (st.st_size != end) { /* another process has written behind it: the line comes anew */
        return n - torn;
    }
    if (ftruncate(fd, end - (off_t)torn) != 0) {
        return n;
    }
    (void)lseek(fd, end - (off_t)torn, SEEK_SET); /* one that was not opened to append */
    return n - torn;
}

/* *ret: how many bytes need not be written again. */
static int write_lines(const struct ms_line_out *out, const char *name, const char *bytes, size_t n,
                       size_t *ret, struct ms_err *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t put = write(out->fd, bytes + done, n - done);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            int rc = ms_fail_errno(err, MS_E_IO, "cannot write %s", name);
            *ret = out->lock != NULL ? take_back(out->fd, bytes, done) : done;
            return rc;
        }
        done += (size_t)put;
    }
    *ret = n;
    return MS_OK;
}

/* ---- waiting ---- */

static void keep(struct ms_line_out *out, const char *bytes, size_t n)
{
    out->waiting = out->waiting != NULL ? out->waiting : malloc(out->max);
    if (out->waiting == NULL || n > out->max - out->n_waiting) {
        out->lost++;
        return;
    }
    memcpy(out->waiting + out->n_waiting, bytes, n);
    out->n_waiting += n;
}

static int flush(struct ms_line_out *out, const char *name, struct ms_err *err)
{
    size_t done = 0;
    int rc = out->n_waiting > 0 ? write_lines(out, name, out->waiting, out->n_waiting, &done, err)
                                : MS_OK;
    if (done > 0) {
        out->n_waiting -= done;
        memmove(out->waiting, out->waiting + done, out->n_waiting);
    }
    return rc;
}

/* All that waited is written: another time begins. */
static void begin(struct ms_line_out *out)
{
    out->lost = out->n_waiting == 0 ? 0 : out->lost;
}

void ms_line_out_init(struct ms_line_out *out, int fd, size_t max)
{
    *out = (struct ms_line_out){.fd = fd, .lock = lock_of(fd), .max = max};
}

void ms_line_out_move(struct ms_line_out *out, int fd)
{
    out->fd = fd;
    out->lock = lock_of(fd);
}

void ms_line_out_fini(struct ms_line_out *out)
{
    free(out->waiting);
    out->waiting = NULL;
    out->n_waiting = 0;
}

int ms_line_out_put(struct ms_line_out *out, const char *name, const char *line, size_t n,
                    struct ms_err *err)
{
    size_t done = 0;
    if (out->fd < 0) {
        return MS_OK;
    }
    lock(out);
    begin(out);
    int rc = flush(out, name, err);
    rc = rc == MS_OK ? write_lines(out, name, line, n, &done, err) : rc;
    if (done < n) {
        keep(out, line + done, n - done);
    }
    unlock(out);
    return rc;
}

void ms_line_out_keep(struct ms_line_out *out, const char *line, size_t n)
{
    lock(out);
    begin(out);
    keep(out, line, n);
    unlock(out);
}

int ms_line_out_flush(struct ms_line_out *out, const char *name, struct ms_err *err)
{
    lock(out);
    int rc = flush(out, name, err);
    unlock(out);
    return rc;
}

uint64_t ms_line_out_lost(struct ms_line_out *out)
{
    lock(out);
    const uint64_t lost = out->n_waiting == 0 ? out->lost : 0;
    out->lost -= lost;
    unlock(out);
    return lost;
}

/* Where the last line of the first size bytes begins; -1: that cannot be read. */
static off_t find_torn(int fd, off_t size)
{
    char bytes[512];
    while (size > 0) {
        const size_t want = size < (off_t)sizeof(bytes) ? (size_t)size : sizeof(bytes);
        if (pread(fd, bytes, want, size - (off_t)want) != (ssize_t)want) {
            return -1;
        }
        const size_t torn = torn_of(bytes, want);
        size -= (off_t)torn;
        if (torn < want) {
            break;
        }
    }
    return size;
}

void ms_line_drop_torn(int fd)
{
    char path[40];
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* it may be open for writing only */
    const int read_fd = open(path, O_RDONLY | O_CLOEXEC);
    const off_t whole = read_fd >= 0 ? find_torn(read_fd, st.st_size) : -1;
    if (whole >= 0 && whole < st.st_size && ftruncate(fd, whole) != 0) {
        ms_line_say(fd, "\n"); /* a file that only grows: what comes stands by itself */
    }
    if (read_fd >= 0) {
        close(read_fd);
    }
}

void ms_line_say(int fd, const char *fmt, ...)
{
    struct ms_line_out out;
    char line[2 * MS_TEXT_MAX];
    size_t done = 0;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (n <= 0) {
        return;
    }
    size_t size = (size_t)n;
    if (size >= sizeof(line)) {
        size = sizeof(line) - 1;
        line[size - 1] = '\n';
    }
    ms_line_out_init(&out, fd, 0);
    lock(&out);
    (void)write_lines(&out, "a line", line, size, &done, NULL);
    unlock(&out);
}
