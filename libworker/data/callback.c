/* callback.c - a function of the program that trains, which makes the records
 *
 * Which records, and in which order, is the loader's business, as of any other data: the function
 * hears the number of each, its epoch and the seed of the job. */
#include "libworker/data/source.h"

#include "libworker/data/given.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char says[] = "the program";

struct callback {
    struct data_source base;
    const struct data_callback *callback;
    enum data_usage usage;
    struct given_queue wanted;
    size_t value_bytes;
    void *values; /* of the record that was read last, and its targets */
    float *targets;
};

static const char *name_of(const struct callback *c)
{
    return c->usage == DATA_TEST ? "the program's test data" : "the program's data";
}

static int callback_expect(struct data_source *source, int64_t row, uint64_t epoch, uint64_t seed,
                           struct ms_err *err)
{
    struct callback *c = (struct callback *)source;
    const struct wanted wanted = {row, epoch, seed};
    return given_expect(&c->wanted, &wanted, name_of(c), err);
}

/* What the function leaves out is 0, not what the record before had. */
static int ask(struct callback *c, const struct wanted *wanted, struct data_record *ret,
               struct ms_err *err)
{
    const struct data_info *info = &c->base.info;
    struct data_callback_record record = {.row = wanted->row,
                                          .epoch = wanted->epoch,
                                          .seed = wanted->seed,
                                          .values = c->values,
                                          .targets = info->classes > 0 ? NULL : c->targets};
    memset(c->values, 0, c->value_bytes);
    memset(c->targets, 0, (size_t)info->target_width * sizeof(*c->targets));
    const int said = c->callback->read(c->callback->arg, &record);
    if (said != 0) {
        return ms_fail(err, MS_E_FAILED, "%s: record %lld: the function that makes it returned %d",
                       name_of(c), (long long)wanted->row, said);
    }
    *ret = (struct data_record){.values = c->values,
                                .targets = record.targets != NULL ? c->targets : NULL,
                                .label = info->classes > 0 ? record.label : -1};
    return given_check(info, ret, wanted->row, name_of(c), says, err);
}

static int callback_read(struct data_source *source, int64_t row, struct data_record *ret,
                         struct ms_err *err)
{
    struct callback *c = (struct callback *)source;
    struct wanted wanted = {.row = row};
    if (c->wanted.begun < c->wanted.n) {
        wanted = c->wanted.at[c->wanted.begun++];
    }
    assert(wanted.row == row);
    return ask(c, &wanted, ret, err);
}

static void callback_forget(struct data_source *source)
{
    given_forget(&((struct callback *)source)->wanted);
}

static void callback_name(const struct data_source *source, int64_t row, char *buf, size_t size)
{
    snprintf(buf, size, "%s: record %lld", name_of((const struct callback *)source),
             (long long)row);
}

static void callback_close(struct data_source *source)
{
    struct callback *c = (struct callback *)source;
    given_fini(&c->wanted);
    free(c->values);
    free(c->targets);
    free(c);
}

/* The shape is the job's: what is wrong with it was said there, or comes from elsewhere. */
static int check(const struct data_spec *spec, const struct data_info *info, const char *name,
                 struct ms_err *err)
{
    if (spec->callback == NULL) {
        return ms_fail(err, MS_E_NOT_FOUND,
                       "kind callback is of programs that make their job with msw_job_make "
                       "(docs/c-api.md), and this process makes no such records; kind program "
                       "starts a program that does");
    }
    if (info->rows < 1 || info->channels < 1 || info->height < 1 || info->width < 1 ||
        (info->classes > 0) == (info->target_width > 0)) {
        return ms_fail(err, MS_E_INVALID,
                       "%s: %lld records of %lldx%lldx%lld with %lld classes and %lld targets; "
                       "each is 1 and more, and one of the latter two 0",
                       name, (long long)info->rows, (long long)info->channels,
                       (long long)info->height, (long long)info->width, (long long)info->classes,
                       (long long)info->target_width);
    }
    return data_check_shape(name, info, err);
}

int callback_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                  struct ms_err *err)
{
    (void)path;
    const struct data_shape *shape = &spec->shape;
    struct callback *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return ms_fail(err, MS_E_NOMEM, "data set callback: no memory");
    }
    c->base = (struct data_source){
        .info = {.rows = spec->samples,
                 .channels = shape->channels,
                 .height = shape->height,
                 .width = shape->width,
                 .dtype = spec->callback != NULL ? spec->callback->dtype : MS_F32,
                 .classes = shape->classes,
                 .target_width = shape->target_width,
                 .ignored = spec->ignored},
        .read = callback_read,
        .expect = callback_expect,
        .forget = callback_forget,
        .name = callback_name,
        .close = callback_close,
    };
    c->callback = spec->callback;
    c->usage = spec->usage;
    const struct data_info *info = &c->base.info;
    int rc = check(spec, info, name_of(c), err);
    if (rc == MS_OK) {
        c->value_bytes =
            ms_dtype_size(info->dtype, (size_t)(info->channels * info->height * info->width));
        c->values = calloc(1, c->value_bytes);
        c->targets = calloc((size_t)info->target_width + 1, sizeof(*c->targets));
        rc = c->values != NULL && c->targets != NULL
                 ? MS_OK
                 : ms_fail(err, MS_E_NOMEM, "%s: no memory for a record", name_of(c));
    }
    if (rc < 0) {
        callback_close(&c->base);
        return rc;
    }
    *ret = &c->base;
    return MS_OK;
}
