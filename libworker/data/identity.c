/* identity.c - tells a data set from another one, by a few milliseconds' worth of it */
#include "libworker/data/source.h"
#include "proto/macros.h"

#include <string.h>

_Static_assert((int)DATA_SUM_BYTES == (int)SUM_BYTES, "an identity holds a sum");

/* Neighbours lie in one page or in what was read ahead: a cold disk seeks 64 times, not 1,024. */
enum { PLACES = 64, NEIGHBOURS = 16, RECORDS = PLACES * NEIGHBOURS };

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

static int add_record(struct data_source *source, int64_t row, struct sum *sum, struct ms_err *err)
{
    const struct data_info *info = &source->info;
    const size_t values = (size_t)(info->channels * info->height * info->width);
    struct data_record record;
    int rc = data_read(source, row, &record, err);
    if (rc == MS_OK) {
        add_number(sum, record.label);
        sum_add(sum, record.values, ms_dtype_size(info->dtype, values));
        if (record.targets != NULL) {
            sum_add(sum, record.targets, (size_t)info->target_width * sizeof(*record.targets));
        }
    }
    return rc;
}

/* The last place ends with the last record. */
static int add_records(struct data_source *source, struct sum *sum, struct ms_err *err)
{
    const int64_t rows = source->info.rows;
    const int is_small = rows <= RECORDS;
    const int64_t n = is_small ? rows : RECORDS;
    int rc = MS_OK;
    for (int64_t i = 0; rc == MS_OK && i < n; i++) {
        const int64_t place = i / NEIGHBOURS * (rows - NEIGHBOURS) / (PLACES - 1);
        rc = add_record(source, is_small ? i : place + i % NEIGHBOURS, sum, err);
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
