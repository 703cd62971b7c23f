/* checkpoint_job.c - is it the same training? What of a job decides the bits, key by key */
#include "libworker/data/json_text.h"
#include "libworker/plan/spec.h"
#include "libworker/train/checkpoint_manifest.h"
#include "proto/macros.h"
#include "proto/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANONICAL = JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17) };
/* A sentence with a path, a key and two values, and its next step, fits into an error and leaves
 * room for words around it. */
enum { ORIGIN_MAX = 100, KEY_MAX = 48, VALUE_MAX = 37 };

/* All others do decide, those of later releases too. */
static const char *const left_out[] = {
    "name",     "priority", "epochs",          "steps",      "resume", "checkpoint", "recovery",
    "evaluate", "threads",  "initial_weights", "early_stop", "best",   "print"};

/* Data may move, and so may its words, and columns be called otherwise; which they are shows in
 * its records, by which data is told apart, and so do types of values, which a job does not have
 * that says shape and classes itself. How long a program may be silent changes none of them. */
static const char *const left_out_of_dataset[] = {"path",    "vocabulary",   "vocabulary_sum",
                                                  "timeout", "column_names", "values"};

/* Names of folders, too, which a job did not have before the key was theirs; those of labels that
 * are words it always had. */
static int has_folders(const json_t *dataset)
{
    const char *kind = json_string_value(json_object_get(dataset, "kind"));
    return kind != NULL && strcmp(kind, "image_folder") == 0;
}

/* With a schedule that is as long as the job another end means other rates before it. */
static const char *const length_keys[] = {"epochs", "steps"};

static int is_length(const char *key)
{
    return strcmp(key, length_keys[0]) == 0 || strcmp(key, length_keys[1]) == 0;
}

char *checkpoint_job_text(const struct job *job)
{
    size_t size = 0;
    char *whole = job_format(job, &size);
    json_t *root = whole != NULL ? json_loadb(whole, size, 0, NULL) : NULL;
    json_t *dataset = json_object_get(root, "dataset");
    for (size_t i = 0; root != NULL && i < MS_ARRAY_SIZE(left_out); i++) {
        if (!is_length(left_out[i]) || !job_schedule_is_as_long(job)) {
            (void)json_object_del(root, left_out[i]);
        }
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(left_out_of_dataset); i++) {
        (void)json_object_del(dataset, left_out_of_dataset[i]);
    }
    if (has_folders(dataset)) {
        (void)json_object_del(dataset, "class_names");
    }
    (void)json_object_del(json_object_get(root, "network"), "summary");
    char *text = json_text(root, CANONICAL, NULL);
    json_decref(root);
    free(whole);
    return text;
}

/* ---- comparing ---- */

struct difference {
    char key[128]; /* "optimizer.learning_rate" */
    const json_t *there, *here;
};

static int is_first(const struct difference *d)
{
    return d->there == NULL && d->here == NULL;
}

static void note(struct difference *d, const char *key, const json_t *there, const json_t *here)
{
    snprintf(d->key, sizeof(d->key), "%s", key);
    for (char *c = d->key; *c != '\0'; c++) { /* it may be anybody's file */
        *c = *c > ' ' && *c <= '~' ? *c : '?';
    }
    d->there = there;
    d->here = here;
}

/* The first key of one object that the other one has otherwise. Sections are one level deep. */
static void find_in(const char *section, const json_t *there, const json_t *here, json_t *keys_of,
                    struct difference *d)
{
    const char *key = NULL;
    json_t *unused = NULL;
    json_object_foreach(keys_of, key, unused)
    {
        char full[128];
        json_t *a = json_object_get(there, key);
        json_t *b = json_object_get(here, key);
        snprintf(full, sizeof(full), "%s%s%s", section, section[0] != '\0' ? "." : "", key);
        if (!is_first(d) || json_equal(a, b)) {
            continue;
        }
        if (json_is_object(a) && json_is_object(b) && section[0] == '\0') {
            find_in(key, a, b, a, d);
            find_in(key, a, b, b, d);
        } else {
            note(d, full, a, b);
        }
    }
}

/* What a person would have changed is named before what follows from it. */
static void find_difference(json_t *there, json_t *here, struct difference *d)
{
    static const char *const first[] = {"network", "workers", "batch_size", "seed", "optimizer"};
    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]) && is_first(d); i++) {
        const json_t *a = json_object_get(there, first[i]);
        const json_t *b = json_object_get(here, first[i]);
        if (!json_equal(a, b)) {
            note(d, first[i], a, b);
        }
    }
    find_in("", there, here, there, d);
    find_in("", there, here, here, d);
}

static int go_into_list(struct difference *d)
{
    char key[sizeof(d->key)];
    const size_t n = json_array_size(d->there);
    size_t i = 0;
    while (i < n && i < json_array_size(d->here) &&
           json_equal(json_array_get(d->there, i), json_array_get(d->here, i))) {
        i++;
    }
    snprintf(key, sizeof(key), "%.90s[%zu]", d->key, i);
    note(d, key, json_array_get(d->there, i), json_array_get(d->here, i));
    return 1;
}

static int go_into_key(struct difference *d, const char *key)
{
    char full[sizeof(d->key)];
    const json_t *a = json_object_get(d->there, key);
    const json_t *b = json_object_get(d->here, key);
    if (json_equal(a, b) || (a == NULL && b == NULL)) {
        return 0;
    }
    snprintf(full, sizeof(full), "%.90s.%.30s", d->key, key);
    note(d, full, a, b);
    return 1;
}

/* The kind first: other keys, and their defaults, follow from it. */
static int go_into_object(struct difference *d, json_t *keys_of)
{
    const char *key = NULL;
    json_t *unused = NULL;
    if (go_into_key(d, "kind")) {
        return 1;
    }
    json_object_foreach(keys_of, key, unused)
    {
        if (go_into_key(d, key)) {
            return 1;
        }
    }
    return 0;
}

/* "transforms" says little where "transforms[1].random_crop.padding" is another one. */
static void go_deeper(struct difference *d)
{
    int goes = 1;
    while (goes) {
        goes = json_is_array(d->there) && json_is_array(d->here) ? go_into_list(d)
               : json_is_object(d->there) && json_is_object(d->here)
                   ? go_into_object(d, (json_t *)d->there) || go_into_object(d, (json_t *)d->here)
                   : 0;
    }
}

static const char *show(const json_t *value, size_t digits, char buf[VALUE_MAX])
{
    const size_t flags = JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII;
    char *text = value != NULL ? json_text(value, flags | JSON_REAL_PRECISION(digits), NULL) : NULL;
    ms_text_begin(buf, VALUE_MAX, text != NULL ? text : "none");
    free(text);
    return buf;
}

/* "network.layers...s[5].dropout.rate": where it begins, and what it is. */
static const char *cut_key(char buf[KEY_MAX], const char *key)
{
    enum { HEAD = 14, DOTS = 3, TAIL = KEY_MAX - 1 - HEAD - DOTS };
    const size_t length = strlen(key);
    if (length < KEY_MAX) {
        memcpy(buf, key, length + 1);
    } else {
        snprintf(buf, KEY_MAX, "%.*s...%s", HEAD, key, key + length - TAIL);
    }
    return buf;
}

static int fail_difference(const struct difference *d, const char *origin, struct ms_err *err)
{
    char from[ORIGIN_MAX];
    char key[KEY_MAX];
    char a[VALUE_MAX];
    char b[VALUE_MAX];
    /* As a person wrote them, 0.1, unless that makes them alike. */
    if (strcmp(show(d->there, 15, a), show(d->here, 15, b)) == 0) {
        show(d->there, 17, a);
        show(d->here, 17, b);
    }
    const char *why = is_length(d->key)
                          ? "optimizer.schedule has no length and goes by the job's, so its rates "
                            "would be others; give the job that key, or begin anew with "
                            "optimizer.schedule.length"
                          : "its training would be another one; give the job that key, or begin "
                            "anew";
    return ms_fail(err, MS_E_REFUSED, "%s is of a job with %s: %s, and this one has %s: %s",
                   ms_text_end(from, sizeof(from), origin), cut_key(key, d->key), a, b, why);
}

static void forget_length(json_t *job)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(length_keys); i++) {
        (void)json_object_del(job, length_keys[i]);
    }
}

static int compare(const char *there, const char *here, int is_over, const char *origin,
                   struct ms_err *err)
{
    struct difference d = {"", NULL, NULL};
    int rc = MS_OK;
    if (strcmp(there, here) == 0) {
        return MS_OK;
    }
    json_t *old = json_loads(there, 0, NULL);
    json_t *new = json_loads(here, 0, NULL);
    if (is_over) {
        forget_length(old);
        forget_length(new);
    }
    if (old == NULL || new == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "no memory to compare a job with that of %.120s", origin);
    } else if (!is_over || !json_equal(old, new)) {
        find_difference(old, new, &d);
        go_deeper(&d);
        rc = fail_difference(&d, origin, err);
    }
    json_decref(old);
    json_decref(new);
    return rc;
}

int checkpoint_job_compare(const char *there, const char *here, const char *origin,
                           struct ms_err *err)
{
    return compare(there, here, 0, origin, err);
}

int checkpoint_compare(const struct checkpoint_manifest *manifest, const struct job *job,
                       const char *here, int is_named, const char *origin, struct ms_err *err)
{
    const int is_over = is_named && job->steps > 0 && (uint64_t)job->steps == manifest->step;
    int rc = compare(manifest->job, here, is_over, origin, err);
    return rc < 0 ? rc : checkpoint_threads_compare(manifest, job, origin, err);
}

int checkpoint_threads_compare(const struct checkpoint_manifest *manifest, const struct job *job,
                               const char *origin, struct ms_err *err)
{
    struct plan_spec *spec = NULL;
    char from[ORIGIN_MAX];
    if (job->threads == 0 || manifest->plan == NULL ||
        plan_spec_parse(manifest->plan, strlen(manifest->plan), &spec, NULL) < 0) {
        return MS_OK; /* of a plan that is none who obeys it says so */
    }
    const int there = spec->threads;
    plan_spec_destroy(spec);
    return there == job->threads
               ? MS_OK
               : ms_fail(err, MS_E_REFUSED,
                         "%s is of a plan with threads: %d, and this job has threads: %d: its bits "
                         "would be others; give the job that key, or none, or begin anew",
                         ms_text_end(from, sizeof(from), origin), there, job->threads);
}

/* ---- its data ---- */

static int check_place(const struct checkpoint_manifest *m, int64_t steps_per_epoch,
                       const char *origin, struct ms_err *err)
{
    const int64_t last = (int64_t)m->step - 1;
    if (steps_per_epoch == 0 || (m->epoch == last / steps_per_epoch + 1 &&
                                 m->step_in_epoch == last % steps_per_epoch + 1)) {
        return MS_OK;
    }
    char from[ORIGIN_MAX];
    return ms_fail(err, MS_E_REFUSED,
                   "%s is of other data: its step %" PRIu64 " is step %" PRId64 " of epoch %" PRId64
                   ", and with the dataset of this job an epoch has %" PRId64
                   " steps; give the job its data, or begin anew",
                   ms_text_end(from, sizeof(from), origin), m->step, m->step_in_epoch, m->epoch,
                   steps_per_epoch);
}

int checkpoint_data_compare(const struct checkpoint_manifest *manifest,
                            const struct data_identity *here, int64_t steps_per_epoch,
                            const char *origin, struct ms_err *err)
{
    char sum[SUM_HEX];
    char from[ORIGIN_MAX];
    sum_bytes_hex(here->sum, sum);
    if (manifest->samples == 0 ||
        (manifest->samples == here->rows && strcmp(manifest->samples_sum, sum) == 0)) {
        return check_place(manifest, steps_per_epoch, origin, err);
    }
    return ms_fail(err, MS_E_REFUSED,
                   "%s is of a dataset with %" PRId64 " samples (digest %.8s), and that of this "
                   "job has %" PRId64 " (%.8s): its training would be another one; give the job "
                   "its data, or begin anew",
                   ms_text_end(from, sizeof(from), origin), manifest->samples,
                   manifest->samples_sum, here->rows, sum);
}
