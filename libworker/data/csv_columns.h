/* csv_columns.h - columns by their names: those that a network is trained on are kept, and found
 * again in other tables */
#ifndef DATA_CSV_COLUMNS_H
#define DATA_CSV_COLUMNS_H

#include "libworker/data/csv_text.h"
#include "libworker/data/data.h"

/* The first column of the name; header->n: there is none. */
size_t csv_columns_find(const struct csv_fields *header, const char *name);

/* The one that may have been meant; NULL: none is like it. */
const char *csv_columns_nearest(const struct csv_fields *header, const char *name);

/* Of a first line that came out as one field: which value of dataset.separator would part it;
 * NULL: none does. */
const char *csv_columns_separator(const char *line);

/* Names of a header as errors have them, quoted, so that blanks show: "'a', ' b', ...". */
void csv_columns_say(const struct csv_fields *header, char *buf, size_t size);

/* Else there are none, or their checksum. */
int csv_columns_are_names(const char *kept);

struct csv_chosen { /* what of a table is read */
    size_t *features;
    size_t n;
    size_t target;
};

/* What data_spec.column_names is for other tables: names, or where these are too many, or not all
 * of them tell one column, their checksum. MS_E_NOMEM. */
int csv_columns_keep(const struct csv_fields *header, const struct csv_chosen *chosen,
                     char ret[DATA_COLUMN_NAMES_MAX + 1], struct ms_err *err);

/* The features by the names that were kept, in their order: chosen->features has room for those of
 * strlen(kept). With a checksum those that were chosen are held against it. MS_E_INVALID has both
 * lists. path: for errors. */
int csv_columns_take(const char *path, const struct csv_fields *header, const char *kept,
                     struct csv_chosen *chosen, struct ms_err *err);

#endif
