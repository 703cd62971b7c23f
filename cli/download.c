/* download.c - one file that comes in pieces: beside its place until it is whole and right */
#include "cli/download.h"

#include "proto/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the part ---- */

/* One at a time. Who had it may have finished, or thrown it away, since we opened it. */
static int lock_part(const struct download *d, struct ms_err *err)
{
    int is_taken = flock(d->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_taken) { /* a file system without locks keeps nobody out */
        is_taken = !ms_name_leads_to(d->dir_fd, d->part, AT_SYMLINK_NOFOLLOW, d->fd);
    }
    return is_taken ? ms_fail(err, MS_E_EXISTS,
                              "%s is being fetched into this folder by another msctl: wait for "
                              "that, or name another folder with -o",
                              d->name)
                    : MS_OK;
}

/* Of a link, or another's, nothing is read: whether it is what the node has is not known. */
static int fail_uncompared(const struct download *d, const char *why, struct ms_err *err)
{
    return ms_fail(err, MS_E_EXISTS,
                   "%s is there already and %s, so it was not compared: name another folder with "
                   "-o, or replace it with --force",
                   d->name, why);
}

static int check_part(struct download *d, struct stat *ret, struct ms_err *err)
{
    if (fstat(d->fd, ret) != 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot look at %s", d->part);
    }
    int is_ours = S_ISREG(ret->st_mode) && ret->st_uid == geteuid() && ret->st_nlink == 1;
    if (!is_ours && d->is_done) {
        return fail_uncompared(d, "is no file of yours alone", err);
    }
    if (!is_ours) {
        return ms_fail(err, MS_E_REFUSED,
                       "%s is not a file of yours alone: take it away, or name another folder with "
                       "-o",
                       d->part);
    }
    return MS_OK;
}

/* The digest has to go over what came earlier, too. */
static int read_part(struct download *d, uint64_t size, struct ms_err *err)
{
    uint8_t buf[32768];
    while (d->have < size) {
        ssize_t n = pread(d->fd, buf, sizeof(buf), (off_t)d->have);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return ms_fail_errno(err, MS_E_IO, "cannot read %s", d->part);
        }
        ms_sha256_add(d->sha, buf, (size_t)n);
        d->have += (uint64_t)n;
    }
    d->resumed = d->have;
    return MS_OK;
}

static int new_digest(struct download *d, struct ms_err *err)
{
    uint8_t unused[MS_SHA256_BYTES];
    if (d->sha != NULL) {
        ms_sha256_finish(d->sha, unused);
    }
    d->sha = ms_sha256_create();
    return d->sha != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "no memory for a digest");
}

/* What is there counts: reads it, and gives the download out. */
static int begin(struct download *d, uint64_t size, struct download *ret, struct ms_err *err)
{
    int rc = new_digest(d, err);
    if (rc == MS_OK) {
        rc = read_part(d, size, err);
    }
    if (rc != MS_OK) {
        download_close(d);
        return rc;
    }
    *ret = *d;
    return MS_OK;
}

static int is_there(const struct download *d)
{
    struct stat st;
    return fstatat(d->dir_fd, d->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int download_fail_exists(const struct download *d, struct ms_err *err)
{
    return ms_fail(
        err, MS_E_EXISTS,
        "%s is there already and is not what the job has: name another folder with -o, or "
        "replace it with --force",
        d->name);
}

static int fail_there(const struct download *d, struct ms_err *err)
{
    return ms_fail(err, MS_E_EXISTS,
                   "%s is there already: name another folder with -o, or replace it with --force",
                   d->name);
}

int download_open(int dir_fd, const char *name, int force, struct download *ret, struct ms_err *err)
{
    struct stat st;
    struct download d = {.dir_fd = dir_fd, .fd = -1, .force = force};
    snprintf(d.name, sizeof(d.name), "%s", name);
    snprintf(d.part, sizeof(d.part), ".%s.part", d.name);
    if (!force && is_there(&d)) {
        return fail_there(&d, err);
    }
    d.fd = openat(dir_fd, d.part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (d.fd < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot make %s", d.part);
    }
    int rc = lock_part(&d, err);
    if (rc == MS_OK) {
        rc = check_part(&d, &st, err);
    }
    if (rc != MS_OK) {
        close(d.fd); /* and no more: it is somebody else's */
        return rc;
    }
    return begin(&d, (uint64_t)st.st_size, ret, err);
}

int download_open_memory(const char *name, struct download *ret, struct ms_err *err)
{
    struct download d = {.dir_fd = -1, .fd = memfd_create(name, MFD_CLOEXEC), .is_nameless = 1};
    snprintf(d.name, sizeof(d.name), "%s", name);
    snprintf(d.part, sizeof(d.part), "%s", name); /* what errors name */
    return d.fd >= 0 ? begin(&d, 0, ret, err)
                     : ms_fail_errno(err, MS_E_IO, "cannot keep %s in memory", name);
}

int download_open_done(int dir_fd, const char *name, struct download *ret, struct ms_err *err)
{
    struct stat st;
    struct download d = {.dir_fd = dir_fd, .is_done = 1};
    snprintf(d.name, sizeof(d.name), "%s", name);
    snprintf(d.part, sizeof(d.part), "%s", name); /* what errors name */
    d.fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (d.fd < 0 && errno == ENOENT) {
        return ms_fail(err, MS_E_NOT_FOUND, "%s is not there", name);
    }
    if (d.fd < 0) {
        char why[64];
        snprintf(why, sizeof(why), "cannot be read (%s)", strerror(errno));
        return fail_uncompared(&d, errno == ELOOP ? "is a symbolic link" : why, err);
    }
    int rc = check_part(&d, &st, err);
    if (rc != MS_OK) {
        download_close(&d);
        return rc;
    }
    return begin(&d, (uint64_t)st.st_size, ret, err);
}

/* ---- what comes ---- */

int download_add(struct download *d, const void *bytes, size_t n, struct ms_err *err)
{
    const uint8_t *at = (const uint8_t *)bytes;
    size_t done = 0;
    while (done < n) {
        ssize_t put = pwrite(d->fd, at + done, n - done, (off_t)(d->have + done));
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            int full = errno == ENOSPC || errno == EDQUOT;
            return ms_fail_errno(err, full ? MS_E_FULL : MS_E_IO, "cannot write %s", d->part);
        }
        done += (size_t)put;
    }
    ms_sha256_add(d->sha, bytes, n);
    d->have += n;
    return MS_OK;
}

int download_restart(struct download *d, struct ms_err *err)
{
    if (ftruncate(d->fd, 0) != 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot empty %s", d->part);
    }
    d->have = d->resumed = 0;
    return new_digest(d, err);
}

int download_copy(const struct download *done, struct download *part, struct ms_err *err)
{
    uint8_t buf[32768];
    int rc = download_restart(part, err);
    while (rc == MS_OK && part->have < done->have) {
        ssize_t n = pread(done->fd, buf, sizeof(buf), (off_t)part->have);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        rc = n > 0 ? download_add(part, buf, (size_t)n, err)
                   : ms_fail_errno(err, MS_E_IO, "cannot read %s", done->name);
    }
    part->resumed = part->have;
    return rc;
}

int download_grow(const struct download *done, struct download *ret, struct ms_err *err)
{
    struct download part;
    int fits = 0;
    int rc = download_open(done->dir_fd, done->name, 1, &part, err);
    if (rc != MS_OK) {
        return rc;
    }
    rc = download_begins_with(&part, done, &fits, err);
    if (rc == MS_OK && !fits) { /* it is shorter, or the part of something else */
        rc = download_copy(done, &part, err);
    }
    if (rc != MS_OK) {
        download_close(&part);
        return rc;
    }
    *ret = part;
    return MS_OK;
}

int download_begins_with(const struct download *part, const struct download *done, int *ret,
                         struct ms_err *err)
{
    static char a[64 << 10];
    static char b[64 << 10];
    *ret = part->have >= done->have;
    for (uint64_t at = 0; *ret && at < done->have;) {
        ssize_t n = pread(done->fd, a, sizeof(a), (off_t)at);
        if (n <= 0 || pread(part->fd, b, (size_t)n, (off_t)at) != n) {
            return ms_fail_errno(err, MS_E_IO, "cannot read %s and its part", done->name);
        }
        *ret = memcmp(a, b, (size_t)n) == 0;
        at += (uint64_t)n;
    }
    return MS_OK;
}

/* NAME must not have come meanwhile, unless it is to be replaced. */
static int give_name(const struct download *d, struct ms_err *err)
{
    unsigned flags = d->force ? 0 : RENAME_NOREPLACE;
    int rc = renameat2(d->dir_fd, d->part, d->dir_fd, d->name, flags);
    if (rc != 0 && errno == EINVAL && !is_there(d)) { /* a file system without that flag */
        rc = renameat(d->dir_fd, d->part, d->dir_fd, d->name);
    }
    if (rc != 0 && errno == EEXIST) {
        return fail_there(d, err);
    }
    return rc == 0 ? MS_OK
                   : ms_fail_errno(err, MS_E_IO, "cannot rename %s to %s", d->part, d->name);
}

static void end_digest(struct download *d, char hex[MS_SHA256_HEX])
{
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256_finish(d->sha, digest);
    d->sha = NULL;
    ms_sha256_hex(digest, hex);
}

int download_is_same(struct download *d, const char *sha256)
{
    char hex[MS_SHA256_HEX];
    end_digest(d, hex);
    return strcmp(hex, sha256) == 0;
}

int download_finish(struct download *d, const char *sha256, struct ms_err *err)
{
    char hex[MS_SHA256_HEX];
    end_digest(d, hex);
    if (strcmp(hex, sha256) != 0) {
        return ms_fail(err, MS_E_PROTOCOL,
                       "%s came damaged: its SHA-256 is %.12s... and the node says %.12s...",
                       d->name, hex, sha256);
    }
    if (fsync(d->fd) != 0) {
        return ms_fail_errno(err, errno == ENOSPC || errno == EDQUOT ? MS_E_FULL : MS_E_IO,
                             "cannot write %s", d->part);
    }
    int rc = give_name(d, err);
    if (rc == MS_OK) {
        (void)fsync(d->dir_fd); /* not every file system can, and the content is safe */
        close(d->fd);
        d->fd = -1;
    }
    return rc;
}

void download_close(struct download *d)
{
    uint8_t unused[MS_SHA256_BYTES];
    if (d->sha != NULL) {
        ms_sha256_finish(d->sha, unused);
        d->sha = NULL;
    }
    if (d->fd >= 0) {
        struct stat st;
        if (!d->is_done && !d->is_nameless && fstat(d->fd, &st) == 0 && S_ISREG(st.st_mode) &&
            st.st_size == 0 && st.st_uid == geteuid()) {
            (void)unlinkat(d->dir_fd, d->part, 0);
        }
        close(d->fd);
        d->fd = -1;
    }
}
