/* weights.c - are these the weights that a job ended with */
#include "cli/weights.h"

#include "libworker/data/data.h"

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
