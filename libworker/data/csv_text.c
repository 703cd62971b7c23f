/* csv_text.c - comma-separated text as RFC 4180 has it: records and their fields */
#include "libworker/data/csv_text.h"

#include "proto/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

struct csv_scan {
    int fd;
    const char *path;
    char separator;
    char *buffer; /* room bytes, of which `size` are there; records begin at `used` */
    size_t room, size, used;
    int64_t at;   /* of the file: the buffer's first byte */
    int64_t line; /* of the next record */
    int is_ended;
};

int csv_scan_create(int fd, const char *path, char separator, struct csv_scan **ret,
                    struct ms_err *err)
{
    struct csv_scan *s = calloc(1, sizeof(*s));
    if (s == NULL || (s->buffer = malloc(PIECE)) == NULL) {
        free(s);
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to read it", path);
    }
    s->fd = fd;
    s->path = path;
    s->separator = separator;
    s->room = PIECE;
    s->line = 1;
    uint8_t mark[3] = {0};
    if (pread(fd, mark, sizeof(mark), 0) == 3 && memcmp(mark, "\xEF\xBB\xBF", 3) == 0) {
        s->at = 3;
    }
    *ret = s;
    return MS_OK;
}

void csv_scan_destroy(struct csv_scan *scan)
{
    if (scan != NULL) {
        free(scan->buffer);
        free(scan);
    }
}

/* More bytes behind those from `used` on, which move to the front. */
static int fill(struct csv_scan *s, struct ms_err *err)
{
    memmove(s->buffer, s->buffer + s->used, s->size - s->used);
    s->at += (int64_t)s->used;
    s->size -= s->used;
    s->used = 0;
    if (s->size == s->room) {
        if (s->room > CSV_RECORD_MAX) {
            return ms_fail(err, MS_E_INVALID,
                           "%.160s:%lld: a record of more than %d bytes: is a quote not closed?",
                           s->path, (long long)s->line, CSV_RECORD_MAX);
        }
        char *larger = realloc(s->buffer, 2 * s->room);
        if (larger == NULL) {
            return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to read it", s->path);
        }
        s->buffer = larger;
        s->room *= 2;
    }
    ssize_t got = 0;
    do {
        got = pread(s->fd, s->buffer + s->size, s->room - s->size, s->at + (int64_t)s->size);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return ms_fail_errno(err, MS_E_IO, "%.200s cannot be read", s->path);
    }
    s->size += (size_t)got;
    s->is_ended = got == 0;
    return MS_OK;
}

/* Where the record ends that begins at `used`, at its LF or the file's end. Quotes in pairs: what
 * stands between them is text. */
static int find_end(struct csv_scan *s, size_t *ret_size, int64_t *ret_lines, struct ms_err *err)
{
    int in_quotes = 0;
    int64_t lines = 0;
    for (size_t i = 0;; i++) {
        if (s->used + i == s->size) {
            const int rc = s->is_ended ? MS_OK : fill(s, err);
            if (rc < 0) {
                return rc;
            }
            if (s->is_ended) {
                *ret_size = i;
                *ret_lines = lines;
                return !in_quotes ? MS_OK
                                  : ms_fail(err, MS_E_INVALID,
                                            "%.160s:%lld: a quote (\") in this record is not "
                                            "closed",
                                            s->path, (long long)s->line);
            }
        }
        const char c = s->buffer[s->used + i];
        in_quotes ^= c == '"';
        lines += c == '\n';
        if (c == '\n' && !in_quotes) {
            *ret_size = i;
            *ret_lines = lines;
            return MS_OK;
        }
    }
}

static int is_blank(const char *text, size_t size, char separator)
{
    size_t i = 0;
    while (i < size && text[i] != separator &&
           (text[i] == ' ' || text[i] == '\t' || text[i] == '\r')) {
        i++;
    }
    return i == size;
}

int csv_scan_next(struct csv_scan *scan, struct csv_record *ret, struct ms_err *err)
{
    for (;;) {
        size_t size = 0;
        int64_t lines = 0;
        const int rc = find_end(scan, &size, &lines, err);
        if (rc < 0) {
            return rc;
        }
        const int is_last = scan->used + size == scan->size;
        if (is_last && size == 0) {
            return 0;
        }
        const char *text = scan->buffer + scan->used;
        const size_t whole = size > 0 && text[size - 1] == '\r' ? size - 1 : size;
        *ret = (struct csv_record){text, whole, scan->at + (int64_t)scan->used, scan->line};
        const int is_none = is_blank(text, whole, scan->separator);
        scan->used += size + !is_last;
        scan->line += lines;
        if (!is_none) {
            return 1;
        }
    }
}

/* ---- fields ---- */

void csv_fields_free(struct csv_fields *fields)
{
    free(fields->text);
    free(fields->field);
    *fields = (struct csv_fields){.n = 0};
}

static int fail_at(size_t column, const char *why, size_t *ret_column, const char **ret_why)
{
    *ret_column = column;
    *ret_why = why;
    return MS_E_INVALID;
}

int csv_split(const char *text, size_t size, char separator, struct csv_fields *fields,
              size_t *ret_column, const char **ret_why)
{
    if (size + 1 > fields->room) { /* what is not quoted is as long as it was */
        free(fields->text);
        fields->text = malloc(size + 1);
        fields->room = fields->text != NULL ? size + 1 : 0;
    }
    char *dst = fields->text;
    const char *nul = memchr(text, '\0', size); /* fields end with one of ours */
    fields->n = 0;
    if (nul != NULL) {
        return fail_at((size_t)(nul - text) + 1,
                       "a NUL byte, as UTF-16 has and no text in UTF-8: write it as UTF-8",
                       ret_column, ret_why);
    }
    for (size_t i = 0;;) {
        struct csv_field *grown =
            dst == NULL ? NULL
                        : ms_grow(fields->field, fields->n, 1, sizeof(*grown), &fields->n_room);
        if (grown == NULL) {
            *ret_why = "no memory";
            return MS_E_NOMEM;
        }
        fields->field = grown;
        if (fields->n == CSV_FIELDS_MAX) {
            return fail_at(i + 1, "more than 65536 fields", ret_column, ret_why);
        }
        grown[fields->n++] = (struct csv_field){dst, i + 1};
        const int is_quoted = i < size && text[i] == '"';
        if (is_quoted) {
            for (i++; i < size && (text[i] != '"' || (i + 1 < size && text[i + 1] == '"')); i++) {
                *dst++ = text[i];
                i += text[i] == '"';
            }
            if (i == size) {
                return fail_at(i, "a quote that is not closed", ret_column, ret_why);
            }
            i++;
            if (i < size && text[i] != separator) {
                return fail_at(i + 1, "text behind a quoted field", ret_column, ret_why);
            }
        }
        for (; !is_quoted && i < size && text[i] != separator; i++) {
            if (text[i] == '"') {
                return fail_at(i + 1, "a quote within a field that does not begin with one",
                               ret_column, ret_why);
            }
            *dst++ = text[i];
        }
        *dst++ = '\0';
        if (i == size) {
            return MS_OK;
        }
        i++;
    }
}
