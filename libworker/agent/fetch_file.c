/* fetch_file.c - one file on its way to a client: pieces, and the digest of the whole */
#include "libworker/agent/fetch_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int fetch_file_init(struct fetch_file *file, int fd, struct ms_err *err)
{
    struct stat st;
    memset(file, 0, sizeof(*file));
    file->fd = fd;
    if (fstat(fd, &st) != 0) {
        int rc = ms_fail_errno(err, MS_E_IO, "cannot ask for the size of a result");
        fetch_file_fini(file);
        return rc;
    }
    file->size = (uint64_t)st.st_size;
    file->sha = ms_sha256_create();
    if (file->sha == NULL) {
        fetch_file_fini(file);
        return ms_fail(err, MS_E_NOMEM, "no memory for a digest");
    }
    return MS_OK;
}

void fetch_file_fini(struct fetch_file *file)
{
    uint8_t unused[MS_SHA256_BYTES];
    if (file->sha != NULL) {
        ms_sha256_finish(file->sha, unused);
    }
    if (file->fd >= 0) {
        close(file->fd);
    }
    memset(file, 0, sizeof(*file));
    file->fd = -1;
}

/* All n bytes at offset; there must be that many. */
static int read_all(const struct fetch_file *file, uint64_t offset, uint8_t *buf, size_t n,
                    struct ms_err *err)
{
    size_t have = 0;
    while (have < n) {
        ssize_t got = pread(file->fd, buf + have, n - have, (off_t)(offset + have));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return ms_fail_errno(err, MS_E_IO, "cannot read the file on the node");
        }
        if (got == 0) {
            return ms_fail(err, MS_E_IO, "the file on the node became shorter: fetch it again");
        }
        have += (size_t)got;
    }
    return MS_OK;
}

static void hash(struct fetch_file *file, uint64_t offset, const uint8_t *bytes, size_t n)
{
    if (file->sha != NULL && offset == file->hashed) {
        ms_sha256_add(file->sha, bytes, n);
        file->hashed += n;
    }
}

/* A client that goes on with a torn file asks for its end alone. */
static int finish(struct fetch_file *file, struct ms_err *err)
{
    uint8_t buf[32768];
    uint8_t digest[MS_SHA256_BYTES];
    while (file->hashed < file->size) {
        uint64_t left = file->size - file->hashed;
        size_t n = left < sizeof(buf) ? (size_t)left : sizeof(buf);
        int rc = read_all(file, file->hashed, buf, n, err);
        if (rc != MS_OK) {
            return rc;
        }
        hash(file, file->hashed, buf, n);
    }
    ms_sha256_finish(file->sha, digest);
    file->sha = NULL;
    ms_sha256_hex(digest, file->sha256);
    return MS_OK;
}

int fetch_file_read(struct fetch_file *file, uint64_t offset, uint8_t *buf, size_t max,
                    size_t *ret_n, struct ms_err *err)
{
    if (offset > file->size) {
        return ms_fail(err, MS_E_INVALID, "the file has %llu bytes, there is nothing at %llu",
                       (unsigned long long)file->size, (unsigned long long)offset);
    }
    uint64_t left = file->size - offset;
    size_t n = left < max ? (size_t)left : max;
    int rc = read_all(file, offset, buf, n, err);
    if (rc != MS_OK) {
        return rc;
    }
    hash(file, offset, buf, n);
    if (offset + n == file->size && file->sha != NULL) {
        rc = finish(file, err);
    }
    if (rc == MS_OK) {
        *ret_n = n;
    }
    return rc;
}
