/* program_stream.c - what a program of kind `program` writes: a header, then records */
#include "libworker/data/program_stream.h"

#include "libworker/data/given.h"
#include "libworker/data/source.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "values are read as they lie there, little-endian"
#endif

static const uint8_t magic[8] = {'M', 'S', 'D', 'A', 'T', 'A', '\r', '\n'};

enum { /* offsets of the header */
       AT_VERSION = 8,
       AT_DTYPE = 12,
       AT_ROWS = 16,
       AT_CHANNELS = 24,
       AT_HEIGHT = 28,
       AT_WIDTH = 32,
       AT_CLASSES = 36,
       AT_TARGETS = 40,
       AT_ZEROS = 44
};
enum { STREAM_U8, STREAM_F32 }; /* of AT_DTYPE */

enum { ROW_BYTES = 8, LABEL_BYTES = 4 };

static uint32_t take_u32(const uint8_t *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof(word));
    return le32toh(word);
}

static uint64_t take_u64(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return le64toh(word);
}

static int check_start(const uint8_t *bytes, const char *name, struct ms_err *err)
{
    if (memcmp(bytes, magic, sizeof(magic)) != 0) {
        return ms_fail(err, MS_E_INVALID,
                       "program %.100s: its output does not begin with a header (MSDATA, CR, LF): "
                       "what is for people belongs on standard error; docs/program-data.md has the "
                       "bytes",
                       name);
    }
    if (take_u32(bytes + AT_VERSION) != PROGRAM_STREAM_VERSION) {
        return ms_fail(err, MS_E_INVALID,
                       "program %.100s: version %u of the format, and version %d is read", name,
                       take_u32(bytes + AT_VERSION), PROGRAM_STREAM_VERSION);
    }
    for (int i = AT_ZEROS; i < PROGRAM_HEADER_BYTES; i++) {
        if (bytes[i] != 0) {
            return ms_fail(err, MS_E_INVALID,
                           "program %.100s: byte %d of its header is %u, and bytes from %d on are "
                           "0 in version %d",
                           name, i, bytes[i], AT_ZEROS, PROGRAM_STREAM_VERSION);
        }
    }
    return MS_OK;
}

/* Of 32 bits each, so that products below have room. */
static int check_counts(const struct data_info *info, uint64_t rows, uint32_t dtype,
                        const char *name, struct ms_err *err)
{
    if (dtype != STREAM_U8 && dtype != STREAM_F32) {
        return ms_fail(err, MS_E_INVALID,
                       "program %.100s: values of type %u; 0 is bytes, 1 is float32", name, dtype);
    }
    if (rows == 0 || rows > MS_DATA_ROWS_MAX) {
        return ms_fail(err, MS_E_INVALID, "program %.100s: %llu records; from 1 to %d are read",
                       name, (unsigned long long)rows, MS_DATA_ROWS_MAX);
    }
    if (info->channels == 0 || info->height == 0 || info->width == 0) {
        return ms_fail(err, MS_E_INVALID,
                       "program %.100s: records of %lldx%lldx%lld; each is 1 and more (features: "
                       "their number, 1, 1)",
                       name, (long long)info->channels, (long long)info->height,
                       (long long)info->width);
    }
    if ((info->classes > 0) == (info->target_width > 0) || info->classes > MS_CLASSES_MAX) {
        return ms_fail(err, MS_E_INVALID,
                       "program %.100s: %lld classes and %lld targets; one of them is 0, classes "
                       "are at most %d",
                       name, (long long)info->classes, (long long)info->target_width,
                       MS_CLASSES_MAX);
    }
    return MS_OK;
}

int program_header_read(const uint8_t bytes[PROGRAM_HEADER_BYTES], const char *name,
                        struct data_info *ret, struct ms_err *err)
{
    const uint32_t dtype = take_u32(bytes + AT_DTYPE);
    const uint64_t rows = take_u64(bytes + AT_ROWS);
    const struct data_info info = {.rows = (int64_t)rows,
                                   .channels = take_u32(bytes + AT_CHANNELS),
                                   .height = take_u32(bytes + AT_HEIGHT),
                                   .width = take_u32(bytes + AT_WIDTH),
                                   .dtype = dtype == STREAM_U8 ? MS_U8 : MS_F32,
                                   .classes = take_u32(bytes + AT_CLASSES),
                                   .target_width = take_u32(bytes + AT_TARGETS)};
    char shown[160];
    snprintf(shown, sizeof(shown), "program %.100s", name);
    int rc = check_start(bytes, name, err);
    rc = rc < 0 ? rc : check_counts(&info, rows, dtype, name, err);
    rc = rc < 0 ? rc : data_check_shape(shown, &info, err);
    if (rc == MS_OK) {
        *ret = info;
    }
    return rc;
}

static size_t count_values(const struct data_info *info)
{
    return (size_t)(info->channels * info->height * info->width);
}

static size_t target_bytes(const struct data_info *info)
{
    return info->classes > 0 ? LABEL_BYTES : (size_t)info->target_width * sizeof(float);
}

size_t program_record_bytes(const struct data_info *info)
{
    return ROW_BYTES + target_bytes(info) + ms_dtype_size(info->dtype, count_values(info));
}

int program_record_read(const struct data_info *info, const uint8_t *bytes, const char *name,
                        int64_t row, struct data_record *ret, struct ms_err *err)
{
    const uint8_t *targets = bytes + ROW_BYTES;
    const uint8_t *values = targets + target_bytes(info);
    const uint64_t has = take_u64(bytes);
    char shown[160];
    if (has != (uint64_t)row) {
        return ms_fail(err, MS_E_INVALID,
                       "program %.100s: record %lld was asked for, and record %llu came: it writes "
                       "them in the order in which they are asked for, each %zu bytes long",
                       name, (long long)row, (unsigned long long)has, program_record_bytes(info));
    }
    struct data_record record = {.values = values, .label = -1};
    if (info->classes > 0) {
        record.label = (int32_t)take_u32(targets);
    } else {
        record.targets = (const void *)targets;
    }
    snprintf(shown, sizeof(shown), "program %.100s", name);
    const int rc = given_check(info, &record, row, shown, "its header", err);
    if (rc == MS_OK) {
        *ret = record;
    }
    return rc;
}
