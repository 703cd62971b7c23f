/* settings_file.c - the one reader of files of settings */
#include "proto/settings_file.h"

#include "proto/denied.h"
#include "proto/regular.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 4096 };

static char *trim(char *text)
{
    while (isspace((unsigned char)*text)) {
        text++;
    }
    size_t n = strlen(text);
    while (n > 0 && isspace((unsigned char)text[n - 1])) {
        text[--n] = '\0';
    }
    return text;
}

/* Ends the line before a comment: a # at its start or behind a blank. */
static void cut_comment(char *line)
{
    for (char *p = line; *p != '\0'; p++) {
        if (*p == '#' && (p == line || isspace((unsigned char)p[-1]))) {
            *p = '\0';
            return;
        }
    }
}

static char *strip_quotes(char *value)
{
    size_t n = strlen(value);
    if (n >= 2 && value[0] == '"' && value[n - 1] == '"') {
        value[n - 1] = '\0';
        value++;
    }
    return value;
}

struct reader {
    const char *path;
    ms_settings_line_fn *fn;
    void *arg;
};

static int read_line(const struct reader *reader, char *text, int line, struct ms_err *err)
{
    cut_comment(text);
    char *key = trim(text);
    if (*key == '\0') {
        return MS_OK;
    }
    char *equals = strchr(key, '=');
    if (equals == NULL) {
        return ms_fail(err, MS_E_CONFIG, "%s, line %d: '%.80s' is no 'key = value'", reader->path,
                       line, key);
    }
    *equals = '\0';
    const char *value = strip_quotes(trim(equals + 1));
    return reader->fn(reader->arg, trim(key), value, line, err);
}

static int read_lines(const struct reader *reader, FILE *file, struct ms_err *err)
{
    char text[LINE_BYTES_MAX];
    int rc = MS_OK;
    for (int line = 1; rc == MS_OK && fgets(text, sizeof(text), file) != NULL; line++) {
        size_t n = strlen(text);
        if (n == sizeof(text) - 1 && text[n - 1] != '\n') {
            rc = ms_fail(err, MS_E_CONFIG, "%s, line %d is longer than %d bytes", reader->path,
                         line, LINE_BYTES_MAX - 2);
        } else if (n == 0) {
            rc = ms_fail(err, MS_E_CONFIG, "%s, line %d holds a NUL byte: it is no text file",
                         reader->path, line);
        } else {
            rc = read_line(reader, text, line, err);
        }
    }
    if (rc == MS_OK && ferror(file)) {
        rc = ms_fail_errno(err, MS_E_CONFIG, "cannot read the settings file %s", reader->path);
    }
    return rc;
}

int ms_settings_file_read(const char *path, ms_settings_line_fn *fn, void *arg, struct ms_err *err)
{
    const struct reader reader = {path, fn, arg};
    FILE *file = NULL;
    int rc = ms_regular_open(path, "the settings file ", &file, err);
    if (rc != MS_OK) {
        return rc == MS_E_NOT_FOUND ? rc
                                    : ms_denied(path, R_OK, ms_err_recode(err, MS_E_CONFIG), err);
    }
    rc = read_lines(&reader, file, err);
    fclose(file);
    return rc;
}

/* ---- a look at some of them ---- */

struct look {
    const char *path;
    const char *const *keys;
    char **values;
    size_t n;
};

static int take_line(void *arg, const char *key, const char *value, int line, struct ms_err *err)
{
    const struct look *look = (const struct look *)arg;
    size_t i = 0;
    while (i < look->n && strcmp(look->keys[i], key) != 0) {
        i++;
    }
    if (i == look->n) {
        return MS_OK;
    }
    if (look->values[i] != NULL) {
        return ms_fail(err, MS_E_CONFIG, "%s, line %d: %s stands there a second time", look->path,
                       line, key);
    }
    look->values[i] = strdup(value);
    return look->values[i] != NULL ? MS_OK
                                   : ms_fail(err, MS_E_NOMEM, "no memory for the setting %s", key);
}

int ms_settings_file_find(const char *path, const char *const *keys, char **values, size_t n,
                          struct ms_err *err)
{
    struct look look = {path, keys, values, n};
    memset((void *)values, 0, n * sizeof(*values));
    int rc = ms_settings_file_read(path, take_line, &look, err);
    for (size_t i = 0; rc != MS_OK && i < n; i++) {
        free(values[i]);
        values[i] = NULL;
    }
    return rc;
}
