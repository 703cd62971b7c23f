/* split.c - a part of a data set by seed: what is trained on, or what is left out for tests
 *
 * Which rows are of the test is a function of (rows, share, seed): the first ones of the
 * permutation that order.c draws. Rows of a part keep the order of the whole. */
#include "libworker/data/source.h"

#include <stdlib.h>
#include <string.h>

/* No job's epoch: a split has a stream of its own, whatever the seeds. */
#define SPLIT_EPOCH (UINT64_C(0x73706C6974))

struct split {
    struct data_source base;
    struct data_source *whole; /* owned */
    int64_t *rows;             /* of the whole, rising */
    struct data_spec_split spec;
    int is_test;
};

struct split_reader {
    struct data_reader base;
    struct data_reader *reader; /* of the whole; owned */
};

static int split_read(struct data_source *source, int64_t row, struct data_record *ret,
                      struct ms_err *err)
{
    struct split *split = (struct split *)source;
    return data_read(split->whole, split->rows[row], ret, err);
}

static void split_name(const struct data_source *source, int64_t row, char *buf, size_t size)
{
    const struct split *split = (const struct split *)source;
    data_name_record(split->whole, split->rows[row], buf, size);
}

static int split_expect(struct data_source *source, int64_t row, uint64_t epoch, uint64_t seed,
                        struct ms_err *err)
{
    struct split *split = (struct split *)source;
    return data_expect(split->whole, split->rows[row], epoch, seed, err);
}

static void split_forget(struct data_source *source)
{
    data_forget(((struct split *)source)->whole);
}

static void split_interrupt(struct data_source *source)
{
    data_interrupt(((struct split *)source)->whole);
}

static int split_hear(struct data_source *source, char *buf, size_t size)
{
    return data_hear(((struct split *)source)->whole, buf, size);
}

static void split_finish(struct data_source *source)
{
    data_finish(((struct split *)source)->whole);
}

static int split_verify(struct data_source *source, struct ms_err *err)
{
    return data_verify(((struct split *)source)->whole, err);
}

static int64_t split_in_memory(const struct data_source *source)
{
    return data_in_memory(((const struct split *)source)->whole);
}

static void split_keep_decoded(struct data_source *source, int64_t bytes_max)
{
    data_keep_decoded(((struct split *)source)->whole, bytes_max);
}

static int64_t split_decoded_count(const struct data_source *source)
{
    return data_decoded_count(((const struct split *)source)->whole);
}

/* Which whole, and which part of it. */
static int split_identify(struct data_source *source, struct sum *sum, struct ms_err *err)
{
    struct split *split = (struct split *)source;
    struct data_identity whole;
    const int rc = data_identify(split->whole, &whole, err);
    if (rc == MS_OK) {
        const int64_t part[] = {whole.rows, split->is_test};
        sum_add(sum, whole.sum, sizeof(whole.sum));
        sum_add(sum, part, sizeof(part));
        sum_add(sum, &split->spec.test, sizeof(split->spec.test));
        sum_add(sum, &split->spec.seed, sizeof(split->spec.seed));
    }
    return rc;
}

static int reader_read(struct data_reader *reader, int64_t row, struct data_record *ret,
                       struct ms_err *err)
{
    const struct split *split = (const struct split *)reader->source;
    return data_reader_read(((struct split_reader *)reader)->reader, split->rows[row], ret, err);
}

static void reader_destroy(struct data_reader *reader)
{
    data_reader_destroy(((struct split_reader *)reader)->reader);
    free(reader);
}

static int split_reader_create(struct data_source *source, struct data_reader **ret,
                               struct ms_err *err)
{
    struct split_reader *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a part of a data set");
    }
    r->base = (struct data_reader){source, reader_read, reader_destroy};
    const int rc = data_reader_create(((struct split *)source)->whole, &r->reader, err);
    if (rc < 0) {
        free(r);
        return rc;
    }
    *ret = &r->base;
    return MS_OK;
}

static void split_close(struct data_source *source)
{
    struct split *split = (struct split *)source;
    data_close(split->whole);
    free(split->rows);
    free(split);
}

/* perm: of the whole. The n_test first ones of it are those of the test. */
static int choose_rows(struct split *split, const int64_t *perm, int64_t rows, int64_t n_test)
{
    char *is_test = calloc((size_t)rows, 1);
    int64_t n = 0;
    for (int64_t i = 0; is_test != NULL && i < n_test; i++) {
        is_test[perm[i]] = 1;
    }
    for (int64_t row = 0; is_test != NULL && row < rows; row++) {
        if (is_test[row] == split->is_test) {
            split->rows[n++] = row;
        }
    }
    free(is_test);
    return is_test != NULL ? 0 : -1;
}

static int draw(struct split *split, const char *path, struct ms_err *err)
{
    const int64_t rows = split->whole->info.rows;
    const int64_t n_test = (int64_t)(split->spec.test * (double)rows + 0.5);
    const int64_t n = split->is_test ? n_test : rows - n_test;
    const struct data_shard all = {
        .rows = rows, .world = 1, .shuffle = 1, .seed = split->spec.seed};
    if (n_test < 1 || n_test >= rows) {
        return ms_fail(err, MS_E_INVALID,
                       "data set %.160s has %lld records: a share of %g for the test leaves one of "
                       "the parts empty (dataset.split.test)",
                       path, (long long)rows, split->spec.test);
    }
    int64_t *perm = malloc((size_t)rows * sizeof(*perm));
    split->rows = malloc((size_t)n * sizeof(*split->rows));
    if (perm != NULL && split->rows != NULL) {
        data_permute(&all, SPLIT_EPOCH, perm);
    }
    const int is_made =
        perm != NULL && split->rows != NULL && choose_rows(split, perm, rows, n_test) == 0;
    free(perm);
    split->base.info.rows = n;
    return is_made
               ? MS_OK
               : ms_fail(err, MS_E_NOMEM, "data set %.160s: no memory to split its %lld records",
                         path, (long long)rows);
}

int split_open(const struct data_spec *spec, const char *path, struct data_source *whole,
               struct data_source **ret, struct ms_err *err)
{
    struct split *split = calloc(1, sizeof(*split));
    if (split == NULL) {
        data_close(whole);
        return ms_fail(err, MS_E_NOMEM, "data set %.200s: no memory", path);
    }
    split->base = (struct data_source){.info = whole->info,
                                       .read = split_read,
                                       .name = split_name,
                                       .expect = split_expect,
                                       .forget = split_forget,
                                       .interrupt = split_interrupt,
                                       .hear = split_hear,
                                       .finish = split_finish,
                                       .verify = split_verify,
                                       .identify = split_identify,
                                       .reader_create = split_reader_create,
                                       .in_memory = split_in_memory,
                                       .keep_decoded = split_keep_decoded,
                                       .decoded_count = split_decoded_count,
                                       .close = split_close};
    split->whole = whole;
    split->spec = spec->split;
    split->is_test = spec->usage == DATA_TEST;
    const int rc = draw(split, path, err);
    if (rc < 0) {
        split_close(&split->base);
        return rc;
    }
    *ret = &split->base;
    return MS_OK;
}
