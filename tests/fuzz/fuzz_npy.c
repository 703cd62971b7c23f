/* fuzz_npy.c - the head of a NumPy array out of any bytes */
#include "libworker/data/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy_head head;
    struct ms_err err = {0, ""};
    int64_t length = 0;
    if (size < NPY_PREFIX) {
        return 0;
    }
    int rc = npy_measure(data, "f", &length, &err);
    FUZZ_CHECK(rc == MS_OK || err.text[0] != '\0');
    if (rc < 0 || length > (int64_t)size) {
        return 0;
    }
    rc = npy_parse(data, length, "f", &head, &err);
    FUZZ_CHECK(rc == MS_OK || (rc == MS_E_INVALID && err.text[0] != '\0'));
    if (rc == MS_OK) {
        int64_t count = 1;
        FUZZ_CHECK(head.n_dims >= 0 && head.n_dims <= NPY_DIMS_MAX);
        for (int i = 0; i < head.n_dims; i++) {
            FUZZ_CHECK(head.dim[i] > 0);
            count *= head.dim[i];
        }
        FUZZ_CHECK(count == head.count && head.count <= INT64_MAX / 8);
    }
    return 0;
}
