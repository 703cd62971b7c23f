/* identity.c - tells a data set from another one, by a few milliseconds' worth of it */
#include "libworker/data/source.h"
#include "proto/macros.h"

#include <string.h>

_Static_assert((int)DATA_SUM_BYTES == (int)SUM_BYTES, "an identity holds a sum");

/* Neighbours lie in one page or in what was read ahead: a cold disk seeks 64 times, not 1,024. Of
 * large records there are fewer, and of those that are decoded one a place: what their files take
 * is not what they have when they are read. */
enum { PLACES = 64, NEIGHBOURS_MAX = 16, BYTES = 16 << 20 };
_Static_assert((int)IDENTITY_RECORDS_MAX == PLACES * NEIGHBOURS_MAX, "all of them have room");

static void add_number(struct sum *sum, int64_t number)
{
    sum_add(sum, &number, sizeof(number));
}

static void add_shape(const struct data_info *info, struct sum *sum)
{
    const int64_t numbers[] = {info->rows,
                               info->channels,
                               info->height,
                               info->width,
                               (int64_t)ms_dtype_bytes(info->dtype),
                               info->classes,
                               info->target_width};
    for (size_t i = 0; i < MS_ARRAY_SIZE(numbers); i++) {
        add_number(sum, numbers[i]);
    }
}

void identity_add_record(const struct data_info *info, const struct data_record *record,
                         struct sum *sum)
{
    const size_t values = (size_t)(info->channels * info->height * info->width);
    add_number(sum, record->label);
    sum_add(sum, record->values, ms_dtype_size(info->dtype, values));
    if (record->labels != NULL) {
        sum_add(sum, record->labels, (size_t)info->tokens * sizeof(*record->labels));
    }
    if (record->targets != NULL) {
        sum_add(sum, record->targets, (size_t)info->target_width * sizeof(*record->targets));
    }
}

/* The last place ends with the last record. */
int64_t identity_rows(const struct data_info *info, int64_t *ret)
{
    const int64_t rows = info->rows;
    const int64_t bytes =
        info->channels * info->height * info->width * (int64_t)ms_dtype_bytes(info->dtype);
    const int64_t fit = BYTES / PLACES / bytes;
    const int64_t near = info->is_decoded || fit < 1 ? 1
                         : fit < NEIGHBOURS_MAX      ? fit
                                                     : NEIGHBOURS_MAX;
    const int64_t most = PLACES * near;
    const int64_t n = rows <= most ? rows : most;
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = i / near * (rows - near) / (PLACES - 1);
        ret[i] = rows <= most ? i : place + i % near;
    }
    return n;
}

static int add_records(struct data_source *source, struct sum *sum, struct ms_err *err)
{
    int64_t rows[IDENTITY_RECORDS_MAX];
    const int64_t n = identity_rows(&source->info, rows);
    int rc = MS_OK;
    for (int64_t i = 0; rc == MS_OK && i < n; i++) {
        struct data_record record;
        rc = data_read(source, rows[i], &record, err);
        if (rc == MS_OK) {
            identity_add_record(&source->info, &record, sum);
        }
    }
    return rc;
}

int data_identify(struct data_source *source, struct data_identity *ret, struct ms_err *err)
{
    struct sum *sum = sum_create();
    if (sum == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the digest of a data set");
    }
    add_shape(&source->info, sum);
    int rc = source->identify != NULL ? source->identify(source, sum, err)
                                      : add_records(source, sum, err);
    if (rc == MS_OK) {
        ret->rows = source->info.rows;
        sum_bytes(sum, ret->sum);
    }
    sum_destroy(sum);
    return rc;
}

int data_identity_is_same(const struct data_identity *a, const struct data_identity *b)
{
    return a->rows == b->rows && memcmp(a->sum, b->sum, sizeof(a->sum)) == 0;
}
