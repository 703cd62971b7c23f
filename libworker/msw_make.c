/* msw_make.c - a job of a program's network and data */
#include "libworker/msw_impl.h"

#include "libworker/schema/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 16 };

static const char *const data_names[] = {[MSW_TRAIN_DATA] = "train", [MSW_TEST_DATA] = "test"};

/* ---- data ---- */

static int64_t side(int64_t size)
{
    return size == 0 ? 1 : size;
}

static int check_data(const struct msw_data *data, const char *name, struct ms_err *err)
{
    if (data == NULL || data->read == NULL) {
        return ms_fail(err, MS_E_INVALID, "%s: no function makes its records; set read", name);
    }
    if (data->rows < 1 || data->rows > MS_DATA_ROWS_MAX) {
        return ms_fail(err, MS_E_INVALID, "%s: rows is %lld; from 1 to %d are read", name,
                       (long long)data->rows, MS_DATA_ROWS_MAX);
    }
    if (data->shape[0] < 1) {
        return ms_fail(err, MS_E_INVALID,
                       "%s: shape[0] is %lld; set it to the features, or to the channels of images "
                       "with shape[1] and shape[2] as height and width",
                       name, (long long)data->shape[0]);
    }
    if (data->classes < 0 || data->targets < 0 || (data->classes > 0) == (data->targets > 0)) {
        return ms_fail(err, MS_E_INVALID,
                       "%s: %lld classes and %lld targets; a record has a class, below classes, or "
                       "so many numbers as its target: set one of them",
                       name, (long long)data->classes, (long long)data->targets);
    }
    return MS_OK;
}

/* What is learned of the one is asked of the other. */
static int check_both(const struct msw_data *train, const struct msw_data *test, struct ms_err *err)
{
    int rc = check_data(train, data_names[MSW_TRAIN_DATA], err);
    if (rc < 0 || test == NULL) {
        return rc;
    }
    rc = check_data(test, data_names[MSW_TEST_DATA], err);
    if (rc < 0) {
        return rc;
    }
    int is_alike = train->classes == test->classes && train->targets == test->targets;
    for (int i = 0; i < 3; i++) {
        is_alike &= side(train->shape[i]) == side(test->shape[i]);
    }
    return is_alike ? MS_OK
                    : ms_fail(err, MS_E_INVALID,
                              "test: its records are others than those of train; give both the "
                              "same shape, and the same classes or targets");
}

/* ---- what the program says, as keys of a job ---- */

struct parts {
    struct job_part at[PARTS_MAX];
    size_t n;
    int rc;
    struct ms_err *err;
};

static void put(struct parts *parts, const char *key, const char *fmt, ...) MS_PRINTF(3, 4);
static void put(struct parts *parts, const char *key, const char *fmt, ...)
{
    char text[96];
    va_list args;
    if (parts->rc < 0 || parts->n == PARTS_MAX) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    struct job_part *part = &parts->at[parts->n++];
    part->key = key;
    parts->rc = tree_parse(text, strlen(text), key, 0, &part->value, parts->err);
}

static void put_all(struct parts *parts, const struct msw_net *net, const struct msw_data *train,
                    const struct msw_data *test)
{
    parts->at[parts->n].key = "network";
    parts->rc = net_layers(net, &parts->at[parts->n++].value, parts->err);
    put(parts, "dataset.kind", "callback");
    put(parts, "dataset.samples", "%lld", (long long)train->rows);
    put(parts, "dataset.shape", "[%lld, %lld, %lld]", (long long)train->shape[0],
        (long long)side(train->shape[1]), (long long)side(train->shape[2]));
    if (train->classes > 0) {
        put(parts, "dataset.classes", "%lld", (long long)train->classes);
    } else {
        put(parts, "dataset.target_width", "%lld", (long long)train->targets);
    }
    if (test != NULL) {
        put(parts, "evaluate.dataset.kind", "callback");
        put(parts, "evaluate.dataset.samples", "%lld", (long long)test->rows);
    }
}

/* ---- the job ---- */

static int read_record(void *arg, struct data_callback_record *wanted)
{
    const struct msw_data *data = arg;
    struct msw_record record = {.row = wanted->row,
                                .epoch = (int64_t)wanted->epoch,
                                .seed = wanted->seed,
                                .values = data->is_bytes ? NULL : wanted->values,
                                .bytes = data->is_bytes ? wanted->values : NULL,
                                .targets = wanted->targets};
    const locale_t ours = uselocale(LC_GLOBAL_LOCALE); /* whichever thread of ours this is */
    const int rc = data->read(data->arg, &record);
    uselocale(ours);
    wanted->label = record.label;
    return rc;
}

static const struct data_callback *link_data(struct msw_job *job, int which,
                                             const struct msw_data *data)
{
    job->data[which] = *data;
    job->callbacks[which] = (struct data_callback){
        .read = read_record, .arg = &job->data[which], .dtype = data->is_bytes ? MS_U8 : MS_F32};
    return &job->callbacks[which];
}

static int make(const struct msw_net *net, const struct msw_data *train,
                const struct msw_data *test, const char *keys, struct msw_job *job,
                struct ms_err *err)
{
    struct parts parts = {.err = err};
    if (net == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a network");
    }
    int rc = check_both(train, test, err);
    if (rc < 0) {
        return rc;
    }
    if (keys == NULL || keys[strspn(keys, " \t\n\r")] == '\0') {
        keys = "{}"; /* of a job that says nothing: what it lacks is named */
    }
    put_all(&parts, net, train, test);
    rc = parts.rc;
    if (rc == MS_OK) {
        rc = job_parse_parts(keys, strlen(keys), "job", ".", parts.at, parts.n, &job->job, err);
    } else {
        for (size_t i = 0; i < parts.n; i++) {
            tree_destroy(parts.at[i].value);
        }
    }
    if (rc == MS_OK && test == NULL && job->job.has_evaluate) { /* of data that nobody makes */
        rc = ms_fail(err, MS_E_INVALID,
                     "test: none is given, and the keys have evaluate.dataset; give msw_job_make "
                     "the data to evaluate on, and leave that key out");
    }
    if (rc == MS_OK) {
        job->job.dataset.callback = link_data(job, MSW_TRAIN_DATA, train);
    }
    if (rc == MS_OK && test != NULL) {
        job->job.evaluate_dataset.callback = link_data(job, MSW_TEST_DATA, test);
    }
    return rc;
}

int msw_job_make(const struct msw_net *net, const struct msw_data *train,
                 const struct msw_data *test, const char *keys, struct msw_job **ret,
                 struct msw_error *error)
{
    struct ms_err err = {0, ""};
    struct msw_job *job = NULL;
    const locale_t locale = locale_enter();
    int rc = api_new_job(&job, &err);
    rc = rc < 0 ? rc : make(net, train, test, keys, job, &err);
    locale_leave(locale);
    if (rc < 0) {
        free(job);
        return api_give_error(&err, rc, error);
    }
    *ret = job;
    return 0;
}
