/* saved_list.c - what a job has saved on a node, as that tells it to who may fetch it */
#include "libworker/train/saved_list.h"

#include "libworker/data/json_text.h"
#include "proto/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void saved_list_fini(struct saved_list *list)
{
    free(list->entries);
    free(list->bests);
    list->entries = NULL;
    list->bests = NULL;
    list->n = list->n_bests = 0;
}

/* ---- writing ---- */

static json_t *entry_json(const struct saved_entry *entry)
{
    return json_pack("{s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:s}", "step", (json_int_t)entry->step,
                     "epoch", (json_int_t)entry->epoch, "step_in_epoch",
                     (json_int_t)entry->step_in_epoch, "loss", (double)entry->loss, "bytes",
                     (json_int_t)entry->bytes, "manifest_bytes", (json_int_t)entry->manifest_bytes,
                     "age_s", (json_int_t)entry->age_s, "xxh3_128", entry->sum);
}

static json_t *best_json(const struct saved_best *best)
{
    return json_pack("{s:I, s:s, s:f, s:I, s:I}", "step", (json_int_t)best->step, "metric",
                     best->metric, "value", best->value, "bytes", (json_int_t)best->bytes, "age_s",
                     (json_int_t)best->age_s);
}

static json_t *bests_json(const struct saved_list *list)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->n_bests; i++) {
        if (json_array_append_new(array, best_json(&list->bests[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

char *saved_list_format(const struct saved_list *list, size_t *ret_size)
{
    json_t *entries = json_array();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < list->n; i++) {
        rc = json_array_append_new(entries, entry_json(&list->entries[i]));
    }
    json_t *root = json_pack("{s:s, s:I, s:o}", "folder", list->folder, "damaged",
                             (json_int_t)list->n_damaged, "checkpoints", entries);
    if (root != NULL && rc == 0 && list->best.step > 0) {
        rc = json_object_set_new(root, "best", best_json(&list->best));
    }
    if (root != NULL && rc == 0 && list->n_bests > 0) {
        rc = json_object_set_new(root, "bests", bests_json(list));
    }
    char *text = rc == 0 ? json_text(root, JSON_COMPACT | JSON_REAL_PRECISION(17), ret_size) : NULL;
    json_decref(root);
    return text;
}

/* ---- reading ---- */

struct reader {
    const char *origin;
    struct ms_err *err;
};

static int fail(const struct reader *r, const char *key)
{
    return ms_fail(r->err, MS_E_INVALID,
                   "%.120s says what the job has saved in a way that is none: %s is missing or "
                   "wrong; update msworker there, or msctl here",
                   r->origin, key);
}

static int read_whole(const struct reader *r, const json_t *object, const char *key, int64_t min,
                      int64_t *ret)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < min) {
        return fail(r, key);
    }
    *ret = json_integer_value(value);
    return MS_OK;
}

static int read_count(const struct reader *r, const json_t *object, const char *key, int64_t min,
                      uint64_t *ret)
{
    int64_t value = 0;
    int rc = read_whole(r, object, key, min, &value);
    *ret = (uint64_t)value;
    return rc;
}

static int read_real(const struct reader *r, const json_t *object, const char *key, double *ret)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value) || !isfinite(json_number_value(value))) {
        return fail(r, key);
    }
    *ret = json_number_value(value);
    return MS_OK;
}

/* It is printed. */
static int read_line(const struct reader *r, const json_t *object, const char *key, char *ret,
                     size_t size)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (text == NULL || strlen(text) >= size || !ms_text_is_valid(text, MS_TEXT_LINE)) {
        return fail(r, key);
    }
    memcpy(ret, text, strlen(text) + 1);
    return MS_OK;
}

static int read_entry(const struct reader *r, const json_t *object, struct saved_entry *ret)
{
    double loss = 0;
    int rc = read_count(r, object, "step", 1, &ret->step);
    rc = rc < 0 ? rc : read_whole(r, object, "epoch", 1, &ret->epoch);
    rc = rc < 0 ? rc : read_whole(r, object, "step_in_epoch", 1, &ret->step_in_epoch);
    rc = rc < 0 ? rc : read_real(r, object, "loss", &loss);
    rc = rc < 0 ? rc : read_count(r, object, "bytes", 1, &ret->bytes);
    rc = rc < 0 ? rc : read_count(r, object, "manifest_bytes", 1, &ret->manifest_bytes);
    rc = rc < 0 ? rc : read_whole(r, object, "age_s", 0, &ret->age_s);
    rc = rc < 0 ? rc : read_line(r, object, "xxh3_128", ret->sum, sizeof(ret->sum));
    ret->loss = (float)loss;
    return rc < 0 || ret->manifest_bytes <= MS_CHECKPOINT_MAX ? rc : fail(r, "manifest_bytes");
}

static int read_entries(const struct reader *r, const json_t *array, struct saved_list *ret)
{
    const size_t n = json_array_size(array);
    if (!json_is_array(array) || n > MS_CHECKPOINTS_MAX) {
        return fail(r, "checkpoints");
    }
    ret->entries = calloc(n + 1, sizeof(*ret->entries));
    if (ret->entries == NULL) {
        return ms_fail(r->err, MS_E_NOMEM, "no memory for %zu checkpoints of %.120s", n, r->origin);
    }
    int rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < n; i++) {
        rc = read_entry(r, json_array_get(array, i), &ret->entries[i]);
    }
    ret->n = n;
    return rc;
}

static int read_best(const struct reader *r, const json_t *object, struct saved_best *ret)
{
    if (object == NULL) {
        return MS_OK;
    }
    int rc = read_count(r, object, "step", 1, &ret->step);
    rc = rc < 0 ? rc : read_line(r, object, "metric", ret->metric, sizeof(ret->metric));
    rc = rc < 0 ? rc : read_real(r, object, "value", &ret->value);
    rc = rc < 0 ? rc : read_count(r, object, "bytes", 1, &ret->bytes);
    return rc < 0 ? rc : read_whole(r, object, "age_s", 0, &ret->age_s);
}

/* Several, each with a step. */
static int read_bests(const struct reader *r, const json_t *array, struct saved_list *ret)
{
    const size_t n = json_array_size(array);
    if (array == NULL) {
        return MS_OK;
    }
    if (!json_is_array(array) || n > MS_BEST_MAX || ret->best.step == 0) {
        return fail(r, "bests");
    }
    ret->bests = calloc(n + 1, sizeof(*ret->bests));
    if (ret->bests == NULL) {
        return ms_fail(r->err, MS_E_NOMEM, "no memory for the best weights of %.120s", r->origin);
    }
    int rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < n; i++) {
        const json_t *object = json_array_get(array, i);
        rc = json_is_object(object) ? read_best(r, object, &ret->bests[i]) : fail(r, "bests");
    }
    ret->n_bests = n;
    return rc;
}

int saved_list_parse(const char *text, size_t size, const char *origin, struct saved_list *ret,
                     struct ms_err *err)
{
    struct saved_list list = {.entries = NULL};
    json_t *root =
        size <= MS_SAVED_LIST_MAX ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const struct reader r = {origin, err};
    uint64_t n_damaged = 0;
    int rc = read_line(&r, root, "folder", list.folder, sizeof(list.folder));
    rc = rc < 0 ? rc : read_count(&r, root, "damaged", 0, &n_damaged);
    rc = rc < 0 ? rc : read_entries(&r, json_object_get(root, "checkpoints"), &list);
    rc = rc < 0 ? rc : read_best(&r, json_object_get(root, "best"), &list.best);
    rc = rc < 0 ? rc : read_bests(&r, json_object_get(root, "bests"), &list);
    json_decref(root);
    if (rc < 0) {
        saved_list_fini(&list);
        return rc;
    }
    list.n_damaged = (size_t)n_damaged;
    *ret = list;
    return MS_OK;
}
