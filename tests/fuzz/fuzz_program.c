/* fuzz_program.c - what a program that delivers records writes, out of any bytes: a header that is
 * taken says what can be, and each record that is taken holds to it */
#include "libworker/data/program_stream.h"
#include "proto/limits.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

enum { RECORD_MAX = 1 << 16 };

static void check_record(const struct data_info *info, const struct data_record *record,
                         const uint8_t *bytes, size_t size)
{
    const uint8_t *values = record->values;
    const size_t n = (size_t)(info->channels * info->height * info->width);
    FUZZ_CHECK((record->targets == NULL) == (info->classes > 0));
    FUZZ_CHECK(info->classes == 0 || (record->label >= 0 && record->label < info->classes));
    FUZZ_CHECK(values > bytes && values + ms_dtype_size(info->dtype, n) == bytes + size);
    for (int64_t i = 0; i < info->target_width; i++) {
        FUZZ_CHECK(isfinite(record->targets[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(8) uint8_t bytes[RECORD_MAX];
    struct data_info info;
    struct ms_err err = {0, ""};
    if (size < PROGRAM_HEADER_BYTES) {
        return 0;
    }
    if (program_header_read(data, "fuzz", &info, &err) < 0) {
        FUZZ_CHECK(err.code == MS_E_INVALID && err.text[0] != '\0');
        return 0;
    }
    const size_t record_bytes = program_record_bytes(&info);
    FUZZ_CHECK(info.rows > 0 && info.rows <= MS_DATA_ROWS_MAX);
    FUZZ_CHECK((info.classes > 0) != (info.target_width > 0));
    FUZZ_CHECK(info.channels * info.height * info.width <= MS_FEATURES_MAX);
    for (size_t at = PROGRAM_HEADER_BYTES; record_bytes <= RECORD_MAX && record_bytes <= size - at;
         at += record_bytes) {
        struct data_record record;
        memcpy(bytes, data + at, record_bytes);
        const int rc = program_record_read(&info, bytes, "fuzz", bytes[0], &record, &err);
        if (rc == MS_OK) {
            check_record(&info, &record, bytes, record_bytes);
        } else {
            FUZZ_CHECK(rc == MS_E_INVALID && err.text[0] != '\0');
        }
    }
    return 0;
}
