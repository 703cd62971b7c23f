/* nonlinear.c - samples of z = 2 x^2 + 3 y^3 + 5 + noise with the features (x^2, y^3)
 *
 * x, y uniform in [-1, 1), noise in [-0.03, 0.03), from streams 7, 8 and 9 of proto/rng.h: the
 * regression sample of the MindSpore documents, made reproducible. */
#include "libworker/data/source.h"

#include "proto/rng.h"

#include <stdlib.h>

enum { STREAM_X = 7, STREAM_Y = 8, STREAM_NOISE = 9 };
/* Rows of the test part begin where no training row can be: a stream has 2^32 elements. */
#define TEST_OFFSET (UINT64_C(1) << 31)

struct nonlinear {
    struct data_source base;
    uint64_t offset;
    float features[2], target; /* of the record that was read last */
};

static int nonlinear_read(struct data_source *source, int64_t row, struct data_record *ret,
                          struct ms_err *err)
{
    (void)err;
    struct nonlinear *set = (struct nonlinear *)source;
    uint64_t i = set->offset + (uint64_t)row;
    double x = 2 * ms_rng_unit(STREAM_X, i) - 1;
    double y = 2 * ms_rng_unit(STREAM_Y, i) - 1;
    double noise = 0.03 * (2 * ms_rng_unit(STREAM_NOISE, i) - 1);
    set->features[0] = (float)(x * x);
    set->features[1] = (float)(y * y * y);
    set->target = (float)(2 * x * x + 3 * y * y * y + 5 + noise);
    *ret = (struct data_record){.values = set->features, .targets = &set->target, .label = -1};
    return MS_OK;
}

static void nonlinear_close(struct data_source *source)
{
    free(source);
}

int nonlinear_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                   struct ms_err *err)
{
    (void)path;
    struct nonlinear *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        return ms_fail(err, MS_E_NOMEM, "data set nonlinear: no memory");
    }
    set->base = (struct data_source){
        .info = {.rows = spec->samples > 0 ? spec->samples : DATA_NONLINEAR_ROWS,
                 .channels = 2,
                 .height = 1,
                 .width = 1,
                 .dtype = MS_F32,
                 .target_width = 1},
        .read = nonlinear_read,
        .close = nonlinear_close,
    };
    set->offset = spec->usage == DATA_TEST ? TEST_OFFSET : 0;
    *ret = &set->base;
    return MS_OK;
}
