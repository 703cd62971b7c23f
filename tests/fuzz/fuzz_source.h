/* fuzz_source.h - a file of foreign bytes opened as data: what is told of it is so, and records can
 * be read or say why not; for fuzz_csv, fuzz_numpy, fuzz_tensors and fuzz_text */
#ifndef TESTS_FUZZ_SOURCE_H
#define TESTS_FUZZ_SOURCE_H

#include "libworker/data/data.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FUZZ_INPUT_MAX = 1 << 16, FUZZ_RECORDS_READ_MAX = 16 };

/* Of a record. */
static inline int64_t fuzz_n_labels(const struct data_info *info)
{
    return info->tokens > 0 ? info->tokens : 1;
}

static inline void fuzz_check_source(struct data_source *source)
{
    const struct data_info *info = data_get_info(source);
    struct ms_err err = {0, ""};
    struct data_identity identity;
    FUZZ_CHECK(info->rows > 0 && info->channels > 0 && info->height > 0 && info->width > 0);
    FUZZ_CHECK((info->classes > 0) != (info->target_width > 0));
    int rc = data_identify(source, &identity, &err);
    FUZZ_CHECK(rc == MS_OK || err.text[0] != '\0');
    for (int64_t i = 0; i < info->rows && i < FUZZ_RECORDS_READ_MAX; i++) {
        struct data_record record;
        rc = data_read(source, i % 2 == 0 ? i : info->rows - i, &record, &err);
        FUZZ_CHECK(rc == MS_OK || err.text[0] != '\0');
        for (int64_t k = 0; rc == MS_OK && info->classes > 0 && k < fuzz_n_labels(info); k++) {
            const int32_t label = info->tokens > 0 ? record.labels[k] : record.label;
            FUZZ_CHECK(label >= 0 && label < info->classes);
        }
        if (rc < 0) {
            break;
        }
    }
    rc = data_verify(source, &err);
    FUZZ_CHECK(rc == MS_OK || err.text[0] != '\0');
}

/* Opens the bytes as what spec says; its path is set here. More than FUZZ_INPUT_MAX are left out.
 */
static inline void fuzz_source(struct data_spec *spec, const uint8_t *data, size_t size)
{
    struct data_source *source = NULL;
    struct ms_err err = {0, ""};
    if (size > FUZZ_INPUT_MAX) {
        return;
    }
    int fd = memfd_create("source", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(spec->path, sizeof(spec->path), "/proc/self/fd/%d", fd);
    int rc = data_open(spec, &source, &err);
    if (rc == MS_OK) {
        fuzz_check_source(source);
    } else {
        FUZZ_CHECK((rc == MS_E_INVALID || rc == MS_E_NOT_FOUND) && err.text[0] != '\0');
    }
    data_close(source);
    close(fd);
}

#endif
