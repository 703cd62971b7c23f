/* job_format.c - a job as canonical JSON: every key that applies, sorted, one line */
#include "libworker/data/json_text.h"
#include "libworker/job/job_schema.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Takes both; NULL once anything failed. */
static json_t *append(json_t *list, json_t *value)
{
    if (json_array_append_new(list, value) == 0) {
        return list;
    }
    json_decref(list);
    return NULL;
}

static json_t *whole_list(const int64_t *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        list = append(list, json_integer(values[i]));
    }
    return list;
}

static json_t *real_list(const double *values, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        list = append(list, json_real(values[i]));
    }
    return list;
}

/* "" stands for none, except where a row is not optional. */
static json_t *text_or_null(const struct job_field *row, const char *text)
{
    return *text == '\0' && (row->flags & JOB_OPTIONAL) != 0 ? json_null() : json_string(text);
}

static json_t *format_table(const struct job_table *table, const void *base);

static json_t *format_transforms(const struct job *job)
{
    json_t *list = json_array();
    for (int i = 0; i < job->n_transforms; i++) {
        for (size_t k = 0; k < job_n_transform_kinds; k++) {
            const struct job_transform_kind *kind = &job_transform_kinds[k];
            if (kind->kind == job->transforms[i].kind) {
                list = append(list, json_pack("{s:o}", kind->name,
                                              format_table(&kind->table, &job->transforms[i])));
            }
        }
    }
    return list;
}

static json_t *format_value(const struct job_field *row, const void *base)
{
    const void *src = (const char *)base + row->offset;
    switch (row->type) {
    case JOB_NAME:
    case JOB_PATH:
    case JOB_OUTPUT:
    case JOB_NETWORK:
        return text_or_null(row, src);
    case JOB_INT:
        return json_integer(*(const int *)src);
    case JOB_INT64:
        return json_integer(*(const int64_t *)src);
    case JOB_UINT64:
        return json_integer((json_int_t) * (const uint64_t *)src);
    case JOB_REAL:
        return json_real(*(const double *)src);
    case JOB_BOOL:
        return json_boolean(*(const int *)src);
    case JOB_ENUM:
        return json_string(row->choices[*(const int *)src]);
    case JOB_SIZE:
    case JOB_SIZE_PAIR:
        return whole_list(src, 2);
    case JOB_PADDING:
        return whole_list(src, 4);
    case JOB_REALS:
        return real_list(src, *(const int *)((const char *)base + row->count_offset));
    case JOB_TRANSFORMS:
        return format_transforms(base);
    default:
        assert(0 && "sections are made by format_table");
        return NULL;
    }
}

/* The object that holds a dotted key, made on the way; NULL below a section that is null. */
static json_t *object_of(json_t *root, const char *key, const char **ret_word)
{
    json_t *object = root;
    for (const char *dot = strchr(key, '.'); dot != NULL; dot = strchr(key, '.')) {
        char word[64];
        size_t length = (size_t)(dot - key);
        assert(length < sizeof(word));
        memcpy(word, key, length);
        word[length] = '\0';
        object = json_object_get(object, word);
        if (!json_is_object(object)) {
            return NULL;
        }
        key = dot + 1;
    }
    *ret_word = key;
    return object;
}

/* An object for its keys, or null where it is off. */
static json_t *format_section(const struct job_field *row, const void *base)
{
    int is_off =
        (row->flags & JOB_OPTIONAL) != 0 && *(const int *)((const char *)base + row->offset) == 0;
    return is_off ? json_null() : json_object();
}

/* NULL without memory: half a job must not look like a whole one. */
static json_t *format_table(const struct job_table *table, const void *base)
{
    json_t *root = json_object();
    for (size_t i = 0; root != NULL && i < table->n; i++) {
        const struct job_field *row = &table->rows[i];
        const char *word = NULL;
        json_t *object = object_of(root, row->key, &word);
        if (object == NULL || row->type == JOB_LATER || !job_field_applies(row, base)) {
            continue;
        }
        json_t *value =
            row->type == JOB_SECTION ? format_section(row, base) : format_value(row, base);
        if (json_is_null(value) && (row->flags & JOB_ADDED) != 0) {
            continue;
        }
        if (json_object_set_new(object, word, value) != 0) {
            json_decref(root);
            root = NULL;
        }
    }
    return root;
}

char *job_format(const struct job *job, size_t *ret_size)
{
    json_t *root = format_table(&job_table, job);
    char *text = json_text(root, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17), ret_size);
    json_decref(root);
    return text;
}
