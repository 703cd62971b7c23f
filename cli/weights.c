/* weights.c - are these the weights that a job ended with */
#include "cli/weights.h"

#include "libworker/data/data.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void add(void *arg, const void *bytes, size_t size)
{
    ms_sha256_add((struct ms_sha256 *)arg, bytes, size);
}

int cli_weights_digest(const char *path, char ret_hex[MS_SHA256_HEX], struct ms_err *err)
{
    uint8_t digest[MS_SHA256_BYTES];
    struct ms_sha256 *sha = ms_sha256_create();
    if (sha == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a digest");
    }
    int rc = data_walk_weights(path, add, sha, err);
    ms_sha256_finish(sha, digest);
    if (rc == MS_OK) {
        ms_sha256_hex(digest, ret_hex);
    }
    return rc;
}

static int add_file(int fd, const char *path, struct ms_sha256 *sha, struct ms_err *err)
{
    uint8_t buf[32768];
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return ms_fail(err, MS_E_REFUSED, "%s is no regular file", path);
    }
    for (;;) {
        ssize_t n = read(fd, buf, sizeof(buf));
        if (n == 0) {
            return MS_OK;
        }
        if (n < 0 && errno != EINTR) {
            return ms_fail_errno(err, MS_E_IO, "cannot read %s", path);
        }
        if (n > 0) {
            ms_sha256_add(sha, buf, (size_t)n);
        }
    }
}

int cli_file_sha256(const char *path, char ret_hex[MS_SHA256_HEX], struct ms_err *err)
{
    uint8_t digest[MS_SHA256_BYTES];
    struct ms_sha256 *sha = ms_sha256_create();
    if (sha == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a digest");
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO holds nobody up */
    int rc = fd >= 0 ? add_file(fd, path, sha, err)
                     : ms_fail_errno(err, MS_E_IO, "cannot open %s", path);
    ms_sha256_finish(sha, digest);
    if (fd >= 0) {
        close(fd);
    }
    if (rc == MS_OK) {
        ms_sha256_hex(digest, ret_hex);
    }
    return rc;
}
