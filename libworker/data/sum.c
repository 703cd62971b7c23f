/* sum.c - XXH3-128 of many bytes, as hex: tells damage, at the speed of memory; no seal */
#include "libworker/data/sum.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { PIECE = 1 << 20 }; /* stays in a core's own cache */

struct sum {
    XXH3_state_t *state;
};

struct sum *sum_create(void)
{
    struct sum *s = calloc(1, sizeof(*s));
    if (s != NULL && (s->state = XXH3_createState()) == NULL) {
        free(s);
        return NULL;
    }
    if (s != NULL) {
        XXH3_128bits_reset(s->state);
    }
    return s;
}

void sum_destroy(struct sum *s)
{
    if (s != NULL) {
        XXH3_freeState(s->state);
        free(s);
    }
}

void sum_add(struct sum *s, const void *bytes, size_t size)
{
    XXH3_128bits_update(s->state, bytes, size);
}

void sum_bytes(const struct sum *s, uint8_t ret[SUM_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(s->state));
    memcpy(ret, canonical.digest, SUM_BYTES);
}

void sum_bytes_hex(const uint8_t bytes[SUM_BYTES], char ret[SUM_HEX])
{
    for (size_t i = 0; i < SUM_BYTES; i++) {
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    }
}

void sum_hex(const struct sum *s, char ret[SUM_HEX])
{
    uint8_t bytes[SUM_BYTES];
    sum_bytes(s, bytes);
    sum_bytes_hex(bytes, ret);
}

static int add_file(struct sum *s, int fd, char *piece, uint64_t *ret_size)
{
    uint64_t size = 0;
    for (;;) {
        ssize_t n = pread(fd, piece, PIECE, (off_t)size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            *ret_size = size;
            return (int)n;
        }
        sum_add(s, piece, (size_t)n);
        size += (uint64_t)n;
    }
}

int sum_file(int fd, const char *path, uint64_t *ret_size, char ret[SUM_HEX], struct ms_err *err)
{
    struct sum *s = sum_create();
    char *piece = malloc(PIECE);
    uint64_t size = 0;
    int rc = s == NULL || piece == NULL
                 ? ms_fail(err, MS_E_NOMEM, "no memory for the digest of %s", path)
             : add_file(s, fd, piece, &size) < 0
                 ? ms_fail_errno(err, MS_E_IO, "cannot read %s", path)
                 : MS_OK;
    if (rc == MS_OK) {
        sum_hex(s, ret);
        *ret_size = size;
    }
    free(piece);
    sum_destroy(s);
    return rc;
}
