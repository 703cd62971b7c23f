/* fuzz_safetensors.c - a file of tensors out of any bytes: refused in words, or covered exactly */
#include "libworker/data/safetensors.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { INPUT_MAX = 1 << 16 };

static void check_file(struct safetensors *file, size_t size)
{
    static float values[INPUT_MAX / sizeof(float)];
    uint64_t bytes = 0;
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensors_entry *entry = safetensors_at(file, i);
        struct ms_err err = {0, ""};
        FUZZ_CHECK(entry->begin <= entry->end && entry->end <= size);
        FUZZ_CHECK(safetensors_find(file, entry->name) == entry);
        FUZZ_CHECK(i == 0 || strcmp(safetensors_at(file, i - 1)->name, entry->name) < 0);
        bytes += entry->end - entry->begin;
        if (strcmp(entry->dtype, "F32") == 0) {
            size_t count = (entry->end - entry->begin) / sizeof(float);
            FUZZ_CHECK(safetensors_read(file, entry, values, count, &err) == MS_OK);
        }
    }
    FUZZ_CHECK(bytes <= size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct safetensors *file = NULL;
    struct ms_err err = {0, ""};
    int fd = memfd_create("tensors", MFD_CLOEXEC);
    if (size > INPUT_MAX) {
        size = INPUT_MAX;
    }
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

    int rc = safetensors_open(path, &file, &err);
    if (rc == MS_OK) {
        check_file(file, size);
    } else {
        FUZZ_CHECK(rc == MS_E_INVALID && err.text[0] != '\0');
    }
    safetensors_close(file);
    close(fd);
    return 0;
}
