/* fuzz_idx.c - an IDX file, plain or gzip, out of any bytes; the first byte chooses the dimensions
 */
#include "libworker/data/idx.h"
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

enum { INPUT_MAX = 1 << 16, RECORDS_READ_MAX = 64 };

/* A packed header may promise 4 GB in a few bytes: reading needs that much address space only. */
#define RECORD_MAX (INT64_C(1) << 20)

/* Before a record is read, and without what the header promises being there. */
static void check_front(const struct idx *idx)
{
    struct ms_err err = {0, ""};
    struct sum *sum = sum_create();
    FUZZ_CHECK(sum != NULL);
    int rc = idx_add_front(idx, sum, &err);
    FUZZ_CHECK(rc == MS_OK || err.text[0] != '\0');
    sum_destroy(sum);
}

static void check_file(struct idx *idx, int n_dims)
{
    check_front(idx);
    int64_t record = 1;
    for (int i = 0; i < n_dims; i++) {
        FUZZ_CHECK(idx_dim(idx, i) > 0);
        record *= i > 0 ? idx_dim(idx, i) : 1;
    }
    if (record > RECORD_MAX) {
        return;
    }
    uint8_t *bytes = malloc((size_t)record);
    FUZZ_CHECK(bytes != NULL);
    for (int64_t i = 0; i < idx_dim(idx, 0) && i < RECORDS_READ_MAX; i++) {
        struct ms_err err = {0, ""};
        int64_t at = i % 2 == 0 ? i : idx_dim(idx, 0) - i; /* forwards and backwards */
        int rc = idx_read(idx, at, bytes, &err);
        FUZZ_CHECK(rc == MS_OK || err.text[0] != '\0');
        if (rc < 0) {
            break;
        }
    }
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct idx *idx = NULL;
    struct ms_err err = {0, ""};
    int fd = memfd_create("idx", MFD_CLOEXEC);
    if (size < 1 || size > INPUT_MAX) {
        close(fd);
        return 0;
    }
    FUZZ_CHECK(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)(size - 1));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

    int n_dims = data[0] % 2 == 1 ? 1 : 3;
    int rc = idx_open(path, n_dims, &idx, &err);
    if (rc == MS_OK) {
        check_file(idx, n_dims);
    } else {
        FUZZ_CHECK(rc == MS_E_INVALID && err.text[0] != '\0');
    }
    idx_close(idx);
    close(fd);
    return 0;
}
