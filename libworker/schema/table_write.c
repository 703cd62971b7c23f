/* table_write.c - a C struct as a JSON object: every key that applies */
#include "libworker/schema/field.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *list_append(json_t *list, json_t *value)
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
        list = list_append(list, json_integer(values[i]));
    }
    return list;
}

static json_t *real_list(const double *values, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        list = list_append(list, json_real(values[i]));
    }
    return list;
}

/* "" stands for none, except where a row is not optional. */
static json_t *text_or_null(const struct field *row, const char *text)
{
    return *text == '\0' && (row->flags & FIELD_OPTIONAL) != 0 ? json_null() : json_string(text);
}

static json_t *format_value(const struct field *row, const void *base)
{
    const void *src = (const char *)base + row->offset;
    switch (row->type) {
    case FIELD_NAME:
    case FIELD_PATH:
        return text_or_null(row, src);
    case FIELD_INT:
        return json_integer(*(const int *)src);
    case FIELD_INT64:
        return json_integer(*(const int64_t *)src);
    case FIELD_UINT64:
        return json_integer((json_int_t) * (const uint64_t *)src);
    case FIELD_REAL:
        return json_real(*(const double *)src);
    case FIELD_BOOL:
        return json_boolean(*(const int *)src);
    case FIELD_ENUM:
        return json_string(row->choices[*(const int *)src]);
    case FIELD_SIZE:
    case FIELD_SIZE_PAIR:
        return whole_list(src, 2);
    case FIELD_PADDING:
        return whole_list(src, 4);
    case FIELD_REALS:
        return real_list(src, *(const int *)((const char *)base + row->count_offset));
    case FIELD_OWN:
        return row->own->write(row, base);
    default:
        assert(0 && "sections are made by table_write");
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
static json_t *format_section(const struct field *row, const void *base)
{
    int is_off =
        (row->flags & FIELD_OPTIONAL) != 0 && *(const int *)((const char *)base + row->offset) == 0;
    return is_off ? json_null() : json_object();
}

static int is_default(const struct field *row, const json_t *value)
{
    return row->builtin == NULL     ? 0
           : json_is_integer(value) ? json_integer_value(value) == strtoll(row->builtin, NULL, 10)
           : json_is_string(value)  ? strcmp(json_string_value(value), row->builtin) == 0
                                    : 0;
}

/* A zero with a sign is one that somebody wrote. */
static int is_none(const struct field *row, const json_t *value)
{
    return json_is_null(value) || json_is_false(value) || is_default(row, value) ||
           (json_is_real(value) && json_real_value(value) == 0 && !signbit(json_real_value(value)));
}

json_t *table_write(const struct field_table *table, const void *base)
{
    json_t *root = json_object();
    for (size_t i = 0; root != NULL && i < table->n; i++) {
        const struct field *row = &table->rows[i];
        const char *word = NULL;
        json_t *object = object_of(root, row->key, &word);
        if (object == NULL || !field_is_key(row) || !field_applies(row, base)) {
            continue;
        }
        json_t *value =
            row->type == FIELD_SECTION ? format_section(row, base) : format_value(row, base);
        if ((row->flags & FIELD_ADDED) != 0 && is_none(row, value)) {
            json_decref(value);
            continue;
        }
        if (json_object_set_new(object, word, value) != 0) {
            json_decref(root);
            root = NULL;
        }
    }
    return root;
}
