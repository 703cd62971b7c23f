/* csv_text.h - comma-separated text as RFC 4180 has it: records and their fields
 *
 * A field is quoted as a whole or not at all; within quotes a quote stands twice, and separators
 * and ends of lines are text. Lines end with LF or CRLF. Lines of blanks alone are no records;
 * a separator is no blank. */
#ifndef DATA_CSV_TEXT_H
#define DATA_CSV_TEXT_H

#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

enum { CSV_RECORD_MAX = 16 << 20, CSV_FIELDS_MAX = 1 << 16 }; /* bytes, fields of one */

/* ---- records, from the front of a file ---- */

struct csv_scan;

/* fd and path (for errors) are borrowed. Passes over a byte order mark. Returns owned. */
int csv_scan_create(int fd, const char *path, char separator, struct csv_scan **ret,
                    struct ms_err *err);
void csv_scan_destroy(struct csv_scan *scan); /* NULL allowed */

struct csv_record {
    const char *text; /* without its end of line; borrowed until the next record */
    size_t size;
    int64_t at;   /* of the file: its first byte */
    int64_t line; /* counts from 1 */
};
/* 1: the next record; 0: there is none. MS_E_INVALID: a quote that is not closed, a record that is
 * too long. */
int csv_scan_next(struct csv_scan *scan, struct csv_record *ret, struct ms_err *err);

/* ---- fields ---- */

struct csv_fields {
    char *text; /* of all fields, a NUL behind each; owned, as is `field` */
    size_t room;
    struct csv_field {
        const char *text; /* borrowed until the next split */
        size_t column;    /* of the record: its first byte, from 1 */
    } * field;
    size_t n, n_room;
};

/* Fields of one record. MS_E_INVALID: quotes where none may be, a NUL byte; *ret_column says where.
 * why: the cause, a text of ours. */
int csv_split(const char *text, size_t size, char separator, struct csv_fields *fields,
              size_t *ret_column, const char **ret_why);
void csv_fields_free(struct csv_fields *fields);

#endif
