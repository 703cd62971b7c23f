/* fuzz_ckpt.c - a checkpoint of MindSpore's out of any bytes: refused in words, or read whole */
#include "libworker/data/ckpt.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { INPUT_MAX = 1 << 16 };

static void check_file(struct ckpt *file, size_t size)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < ckpt_count(file); i++) {
        const struct safetensors_entry *entry = ckpt_at(file, i);
        struct ms_err err = {0, ""};
        FUZZ_CHECK(entry->end <= size && ckpt_find(file, entry->name) == entry);
        FUZZ_CHECK(i == 0 || strcmp(ckpt_at(file, i - 1)->name, entry->name) < 0);
        bytes += entry->end;
        if (strcmp(entry->dtype, "F32") == 0) {
            size_t count = 1; /* as a network has them: AddressSanitizer watches the room */
            for (int d = 0; d < entry->n_dims; d++) {
                count *= (size_t)entry->dim[d];
            }
            float *values = malloc(count * sizeof(*values) + 1);
            FUZZ_CHECK(values != NULL && count <= size);
            FUZZ_CHECK(ckpt_read(file, entry, values, count, &err) == MS_OK);
            free(values);
        }
    }
    FUZZ_CHECK(bytes <= size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct ckpt *file = NULL;
    struct ms_err err = {0, ""};
    int fd = memfd_create("ckpt", MFD_CLOEXEC);
    if (size > INPUT_MAX) {
        size = INPUT_MAX;
    }
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

    int rc = ckpt_open(path, &file, &err);
    if (rc == MS_OK) {
        check_file(file, size);
    } else {
        FUZZ_CHECK((rc == MS_E_INVALID || rc == MS_E_FULL) && err.text[0] != '\0');
    }
    ckpt_close(file);
    close(fd);
    return 0;
}
