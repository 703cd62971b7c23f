/* settings.c - where a setting comes from: flag > environment > file > built-in */
#include "proto/settings.h"

#include "proto/nearest.h"
#include "proto/settings_file.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_MAX = 128, ORIGIN_MAX = 160 };

struct value {
    char *text; /* owned; NULL: unset */
    int64_t number;
    enum ms_setting_source source;
    int line; /* in the file */
};

struct ms_settings {
    const struct ms_setting *table;
    size_t n;
    char *file; /* owned; NULL: none was read */
    struct value *values;
};

static size_t table_size(const struct ms_setting *table)
{
    size_t n = 0;
    while (table[n].key != NULL) {
        n++;
    }
    assert(n <= TABLE_MAX);
    return n;
}

/* ---- one value ---- */

/* "flag --lease-ms", "environment MS_X", "file /etc/x.conf, line 3": for messages and for print. */
static const char *origin(const struct ms_settings *s, size_t i, const struct value *value,
                          char buf[ORIGIN_MAX])
{
    switch (value->source) {
    case MS_FROM_FLAG:
        snprintf(buf, ORIGIN_MAX, "flag %s", s->table[i].flag);
        break;
    case MS_FROM_ENV:
        snprintf(buf, ORIGIN_MAX, "environment %s", s->table[i].env);
        break;
    case MS_FROM_FILE:
        snprintf(buf, ORIGIN_MAX, "file %s, line %d", s->file, value->line);
        break;
    default:
        snprintf(buf, ORIGIN_MAX, "built-in");
        break;
    }
    return buf;
}

static int fail_code(enum ms_setting_source source)
{
    return source == MS_FROM_FLAG ? MS_E_INVALID : MS_E_CONFIG;
}

static int parse_bool(const char *text, int64_t *ret)
{
    static const struct {
        const char *word;
        int value;
    } words[] = {{"true", 1},  {"yes", 1}, {"on", 1},  {"1", 1},
                 {"false", 0}, {"no", 0},  {"off", 0}, {"0", 0}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(words); i++) {
        if (strcmp(text, words[i].word) == 0) {
            *ret = words[i].value;
            return 1;
        }
    }
    return 0;
}

/* Index of text in "a|b|c", or -1. */
static int64_t find_choice(const char *choices, const char *text)
{
    size_t length = strlen(text);
    int64_t index = 0;
    for (const char *at = choices;; at++, index++) {
        size_t n = strcspn(at, "|");
        if (n == length && memcmp(at, text, n) == 0) {
            return index;
        }
        at += n;
        if (*at == '\0') {
            return -1;
        }
    }
}

static int parse_value(const struct ms_settings *s, size_t i, struct value *value,
                       struct ms_err *err)
{
    const struct ms_setting *row = &s->table[i];
    const char *text = value->text;
    char from[ORIGIN_MAX];
    char *end = NULL;
    origin(s, i, value, from);
    int code = fail_code(value->source);
    switch (row->type) {
    case MS_SET_INT:
        errno = 0;
        value->number = strtoll(text, &end, 10);
        if (end == text || *end != '\0' || errno != 0 || isspace((unsigned char)text[0]) ||
            value->number < row->min || value->number > row->max) {
            return ms_fail(err, code,
                           "%s = %.80s (from %s): must be a whole number of %lld to %lld", row->key,
                           text, from, (long long)row->min, (long long)row->max);
        }
        return MS_OK;
    case MS_SET_BOOL:
        if (!parse_bool(text, &value->number)) {
            return ms_fail(err, code, "%s = %.80s (from %s): must be true or false", row->key, text,
                           from);
        }
        return MS_OK;
    case MS_SET_ENUM:
        value->number = find_choice(row->choices, text);
        if (value->number < 0) {
            return ms_fail(err, code, "%s = %.80s (from %s): must be one of %s", row->key, text,
                           from, row->choices);
        }
        return MS_OK;
    default:
        return MS_OK;
    }
}

/* Judges text and makes it the value of row i. Sources are read from the one that counts least to
 * the one that counts most, so that a wrong value is reported even where another one hides it. */
static int set_value(struct ms_settings *s, size_t i, const char *text,
                     enum ms_setting_source source, int line, struct ms_err *err)
{
    struct value value = {strdup(text), 0, source, line};
    if (value.text == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the setting %s", s->table[i].key);
    }
    int rc = parse_value(s, i, &value, err);
    if (rc != MS_OK) {
        free(value.text);
        return rc;
    }
    free(s->values[i].text);
    s->values[i] = value;
    return MS_OK;
}

/* ---- the file ---- */

static int unknown_key(const struct ms_settings *s, const char *key, int line, struct ms_err *err)
{
    const char *keys[TABLE_MAX];
    for (size_t i = 0; i < s->n; i++) {
        keys[i] = s->table[i].key;
    }
    const char *near = ms_nearest(key, keys, s->n);
    return ms_fail(err, MS_E_CONFIG, "%s, line %d: unknown setting '%.80s'%s%s%s", s->file, line,
                   key, near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
}

static int take_line(void *arg, const char *key, const char *value, int line, struct ms_err *err)
{
    struct ms_settings *s = (struct ms_settings *)arg;
    size_t i = 0;
    while (i < s->n && strcmp(s->table[i].key, key) != 0) {
        i++;
    }
    if (i == s->n) {
        return unknown_key(s, key, line, err);
    }
    if (s->values[i].source == MS_FROM_FILE) {
        return ms_fail(err, MS_E_CONFIG, "%s, line %d: %s stands on line %d already", s->file, line,
                       key, s->values[i].line);
    }
    return set_value(s, i, value, MS_FROM_FILE, line, err);
}

static int read_file(struct ms_settings *s, const char *path, int required, struct ms_err *err)
{
    s->file = strdup(path);
    if (s->file == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the settings of %s", path);
    }
    int rc = ms_settings_file_read(path, take_line, s, err);
    if (rc == MS_E_NOT_FOUND) {
        free(s->file);
        s->file = NULL;
        rc = required ? ms_err_recode(err, MS_E_CONFIG) : MS_OK;
    }
    return rc;
}

/* ---- the environment and the command line ---- */

static int read_environment(struct ms_settings *s, struct ms_err *err)
{
    for (size_t i = 0; i < s->n; i++) {
        const char *text = s->table[i].env != NULL ? getenv(s->table[i].env) : NULL;
        if (text != NULL && *text != '\0') { /* set to nothing is how scripts unset */
            int rc = set_value(s, i, text, MS_FROM_ENV, 0, err);
            if (rc != MS_OK) {
                return rc;
            }
        }
    }
    return MS_OK;
}

static int unknown_flag(const struct ms_settings *s, const char *arg, size_t length,
                        struct ms_err *err)
{
    const char *flags[TABLE_MAX];
    char word[MS_NEAREST_MAX + 1] = "";
    for (size_t i = 0; i < s->n; i++) {
        flags[i] = s->table[i].flag;
    }
    if (length <= MS_NEAREST_MAX) {
        memcpy(word, arg, length);
    }
    const char *near = ms_nearest(word, flags, s->n);
    return ms_fail(err, MS_E_INVALID, "unknown option '%.80s'%s%s%s; see --help", arg,
                   near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
}

/* Handles argv[*at], a flag; moves *at over a value that stands in the next word. */
static int read_flag(struct ms_settings *s, int argc, char **argv, int *at, struct ms_err *err)
{
    const char *arg = argv[*at];
    size_t length = strcspn(arg, "=");
    size_t i = 0;
    while (i < s->n && (s->table[i].flag == NULL || strlen(s->table[i].flag) != length ||
                        memcmp(s->table[i].flag, arg, length) != 0)) {
        i++;
    }
    if (i == s->n) {
        return unknown_flag(s, arg, length, err);
    }
    const char *value = NULL;
    if (arg[length] == '=') {
        value = arg + length + 1;
    } else if (s->table[i].type == MS_SET_BOOL) {
        value = "true";
    } else if (*at + 1 < argc) {
        value = argv[++*at];
    } else {
        return ms_fail(err, MS_E_INVALID, "option %s needs a value: %s", s->table[i].flag,
                       s->table[i].help);
    }
    return set_value(s, i, value, MS_FROM_FLAG, 0, err);
}

static int read_flags(struct ms_settings *s, int *argc, char **argv, struct ms_err *err)
{
    int kept = 1;
    int open = 1;
    for (int at = 1; at < *argc; at++) {
        if (open && strcmp(argv[at], "--") == 0) {
            open = 0;
        } else if (open && argv[at][0] == '-' && argv[at][1] != '\0') {
            int rc = read_flag(s, *argc, argv, &at, err);
            if (rc != MS_OK) {
                return rc;
            }
        } else {
            argv[kept++] = argv[at];
        }
    }
    *argc = kept;
    argv[kept] = NULL;
    return MS_OK;
}

int ms_settings_load(const struct ms_setting *table, const char *file, int file_required, int *argc,
                     char **argv, struct ms_settings **ret, struct ms_err *err)
{
    struct ms_settings *s = (struct ms_settings *)calloc(1, sizeof(*s));
    if (s == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the settings");
    }
    s->table = table;
    s->n = table_size(table);
    s->values = (struct value *)calloc(s->n + 1, sizeof(*s->values));
    int rc = s->values != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "no memory for the settings");
    for (size_t i = 0; rc == MS_OK && i < s->n; i++) {
        if (table[i].builtin != NULL) {
            rc = set_value(s, i, table[i].builtin, MS_FROM_BUILTIN, 0, err);
        }
    }
    if (rc == MS_OK && file != NULL) {
        rc = read_file(s, file, file_required, err);
    }
    if (rc == MS_OK) {
        rc = read_environment(s, err);
    }
    if (rc == MS_OK) {
        rc = read_flags(s, argc, argv, err);
    }
    if (rc != MS_OK) {
        ms_settings_destroy(s);
        return rc;
    }
    *ret = s;
    return MS_OK;
}

void ms_settings_destroy(struct ms_settings *settings)
{
    if (settings == NULL) {
        return;
    }
    for (size_t i = 0; settings->values != NULL && i < settings->n; i++) {
        free(settings->values[i].text);
    }
    free(settings->values);
    free(settings->file);
    free(settings);
}

/* ---- reading and printing ---- */

static const struct value *get_value(const struct ms_settings *settings, const char *key)
{
    size_t i = 0;
    while (i < settings->n && strcmp(settings->table[i].key, key) != 0) {
        i++;
    }
    assert(i < settings->n);
    return &settings->values[i];
}

const char *ms_settings_string(const struct ms_settings *settings, const char *key)
{
    return get_value(settings, key)->text;
}

int64_t ms_settings_int(const struct ms_settings *settings, const char *key)
{
    return get_value(settings, key)->number;
}

int ms_settings_bool(const struct ms_settings *settings, const char *key)
{
    return get_value(settings, key)->number != 0;
}

enum ms_setting_source ms_settings_source(const struct ms_settings *settings, const char *key)
{
    return get_value(settings, key)->source;
}

int ms_settings_keep(struct ms_settings *settings, const struct ms_settings *from, const char *key,
                     struct ms_err *err)
{
    const struct value *kept = get_value(from, key);
    struct value *value = &settings->values[kept - from->values];
    char *text = kept->text != NULL ? strdup(kept->text) : NULL;
    if (kept->text != NULL && text == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the setting %s", key);
    }
    free(value->text);
    *value = *kept;
    value->text = text;
    return MS_OK;
}

void ms_settings_print(const struct ms_settings *settings, FILE *out)
{
    for (size_t i = 0; i < settings->n; i++) {
        const struct value *value = &settings->values[i];
        char from[ORIGIN_MAX];
        if (value->text == NULL) {
            fprintf(out, "# %s is not set\n", settings->table[i].key);
        } else {
            fprintf(out, "%s = %s   # from: %s\n", settings->table[i].key, value->text,
                    origin(settings, i, value, from));
        }
    }
}

static void usage_value(const struct ms_setting *row, FILE *out)
{
    if (row->type == MS_SET_INT) {
        fprintf(out, " (%lld to %lld)", (long long)row->min, (long long)row->max);
    } else if (row->type == MS_SET_ENUM) {
        fprintf(out, " (%s)", row->choices);
    }
    if (row->builtin != NULL && row->type != MS_SET_BOOL) {
        fprintf(out, " [%s]", row->builtin);
    }
    if (row->env != NULL && row->flag != NULL) {
        fprintf(out, " $%s", row->env);
    }
}

void ms_settings_usage(const struct ms_setting *table, FILE *out)
{
    static const char *const kinds[] = {" TEXT", " N", "", " WORD"};
    for (size_t i = 0; table[i].key != NULL; i++) {
        char head[64];
        if (table[i].flag != NULL) {
            snprintf(head, sizeof(head), "%s%s", table[i].flag, kinds[table[i].type]);
        } else {
            snprintf(head, sizeof(head), "%s", table[i].env != NULL ? table[i].env : table[i].key);
        }
        fprintf(out, "  %-26s %s", head, table[i].help);
        usage_value(&table[i], out);
        fputc('\n', out);
    }
}
