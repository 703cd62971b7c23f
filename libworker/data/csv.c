/* csv.c - tables of numbers as text: a record a row, features and a target by column
 *
 * Opening goes over the file once: where each row begins, that all have as many fields, and, where
 * the job does not say it yet, what the targets are. Numbers are read when a row is: a large file
 * takes 8 bytes a row of memory, and ranks of a host share the page cache. */
#include "libworker/data/csv_columns.h"
#include "libworker/data/csv_text.h"
#include "libworker/data/path.h"
#include "libworker/data/source.h"
#include "libworker/data/targets.h"
#include "proto/grow.h"
#include "proto/macros.h"
#include "proto/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct csv {
    struct data_source base;
    char path[MS_PATH_MAX + 16];
    int fd;
    char separator;
    int64_t *at; /* where row i begins; one more: where the last one ends */
    size_t n_at, at_room;
    struct csv_fields header; /* names; n 0: none */
    int64_t header_line;
    size_t n_columns;
    size_t *features; /* columns; base.info.channels of them */
    size_t target;
    int has_no_labels; /* the target's column may be missing, and is not read */
    const char *lacks; /* behind an error of labels: that predictions need none, or "" */
    int has_names;     /* classes by name */
    char **names;      /* sorted, or as the job has them; owned */
    size_t n_names, names_room;
    char *text; /* of one row */
    size_t text_room;
    struct csv_fields fields;
    float *values; /* features, then the target, of the row that was read last */
    char class_names[DATA_CLASS_NAMES_MAX + 1];
    char column_names[DATA_COLUMN_NAMES_MAX + 1];
};

static void csv_close(struct data_source *source)
{
    struct csv *set = (struct csv *)source;
    for (size_t i = 0; i < set->n_names; i++) {
        free(set->names[i]);
    }
    if (set->fd >= 0) {
        close(set->fd);
    }
    csv_fields_free(&set->header);
    csv_fields_free(&set->fields);
    free(set->names);
    free(set->features);
    free(set->at);
    free(set->text);
    free(set->values);
    free(set);
}

/* ---- a field ---- */

struct place {
    const struct csv *set;
    int64_t line; /* 0: of the record at byte `at`, and only counted where it is wanted */
    int64_t at;
};

/* Errors are rare, lines of rows are not kept. */
static int64_t line_of(const struct place *place)
{
    struct csv_scan *scan = NULL;
    struct csv_record record;
    int64_t line = place->line;
    if (line == 0 && csv_scan_create(place->set->fd, place->set->path, place->set->separator, &scan,
                                     NULL) == MS_OK) {
        while (csv_scan_next(scan, &record, NULL) == 1 && record.at <= place->at) {
            line = record.line;
        }
    }
    csv_scan_destroy(scan);
    return line;
}

static int fail_field(const struct place *place, const struct csv_fields *fields, size_t column,
                      const char *why, struct ms_err *err)
{
    const struct csv *set = place->set;
    const int is_there = column < fields->n;
    return ms_fail(err, MS_E_INVALID, "%.140s:%lld:%zu: %s%.40s%s'%.40s' %s", set->path,
                   (long long)line_of(place), is_there ? fields->field[column].column : (size_t)1,
                   set->header.n > 0 ? "column " : "",
                   set->header.n > 0 ? set->header.field[column].text : "",
                   set->header.n > 0 ? ": " : "", is_there ? fields->field[column].text : "", why);
}

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t') {
        at++;
    }
    return at;
}

/* Decimal, nothing else in the field but blanks around it. 0: it is none. */
static int is_number(const char *text, float *ret)
{
    const char *at = skip_blanks(text);
    char *end = NULL;
    if (strcspn(at, "xXnNiI") != strlen(at) || *at == '\0') { /* hexadecimal, nan, inf */
        return 0;
    }
    *ret = strtof(at, &end);
    return end != at && *skip_blanks(end) == '\0' && isfinite(*ret);
}

static int is_whole(const char *text, int64_t *ret)
{
    const char *at = skip_blanks(text);
    char *end = NULL;
    errno = 0;
    *ret = strtoll(at, &end, 10);
    return end != at && *skip_blanks(end) == '\0' && errno == 0;
}

/* What most are in tables of people, and what to do. */
static const char *why_no_number(const char *text, int is_feature)
{
    const char *at = skip_blanks(text);
    char *end = NULL;
    if (*at == '\0') {
        return "is empty: fill it in, or leave the row out";
    }
    const double number = strtod(at, &end);
    if (end != at && *skip_blanks(end) == '\0' && !isfinite(number)) {
        return "is no finite number: fill it in, or leave the row out";
    }
    if (end != at && *end == ',' && strspn(end + 1, "0123456789") > 0) {
        return "is no finite number: fractions are written with a point";
    }
    return end == at && is_feature
               ? "is no finite number: where its column has words, name the others in "
                 "dataset.columns"
               : "is no finite number";
}

static int read_number(const struct place *place, const struct csv_fields *fields, size_t column,
                       float *ret, struct ms_err *err)
{
    const char *text = fields->field[column].text;
    if (is_number(text, ret)) {
        return MS_OK;
    }
    return fail_field(place, fields, column, why_no_number(text, column != place->set->target),
                      err);
}

/* ---- classes ---- */

static int fail_name(const struct place *place, const struct csv_fields *fields, struct ms_err *err)
{
    const struct csv *set = place->set;
    char known[80];
    char why[200];
    int more = 1;
    known[0] = '\0';
    for (size_t i = 0; i < set->n_names && more; i++) {
        more = ms_text_list(known, sizeof(known), set->names[i], strlen(set->names[i]), "'");
    }
    snprintf(why, sizeof(why), "is none of dataset.class_names (%s)%s", known, set->lacks);
    return fail_field(place, fields, set->target, why, err);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Its number, where they are sorted; -1. */
static int64_t find_sorted(const struct csv *set, const char *name)
{
    char *const *found =
        set->n_names == 0 ? NULL
                          : bsearch(&name, set->names, set->n_names, sizeof(char *), compare_names);
    return found != NULL ? found - set->names : -1;
}

static int64_t find_name(const struct csv *set, const char *name)
{
    for (size_t i = 0; i < set->n_names; i++) {
        if (strcmp(set->names[i], name) == 0) {
            return (int64_t)i;
        }
    }
    return -1;
}

static int add_name(struct csv *set, const char *name, size_t length, struct ms_err *err)
{
    char **names = ms_grow(set->names, set->n_names, 1, sizeof(char *), &set->names_room);
    set->names = names != NULL ? names : set->names;
    char *copy = names != NULL ? strndup(name, length) : NULL;
    if (copy == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory for its classes", set->path);
    }
    set->names[set->n_names++] = copy;
    return MS_OK;
}

/* It becomes a part of the job. */
static int is_word(const char *name)
{
    const size_t length = strlen(name);
    size_t i = 0;
    while (i < length && (unsigned char)name[i] >= 0x20 && name[i] != 0x7F) {
        i++;
    }
    return length > 0 && i == length && length <= MS_NAME_MAX;
}

/* A new one, in its place; few are new. */
static int learn_name(const struct place *place, struct csv *set, const char *name,
                      struct ms_err *err)
{
    const size_t length = strlen(name);
    size_t used = length + 1;
    if (find_sorted(set, name) >= 0) {
        return MS_OK;
    }
    if (!is_word(name)) {
        return fail_field(place, &set->fields, set->target,
                          "is no name of a class: 1 to 64 bytes in one line", err);
    }
    for (size_t i = 0; i < set->n_names; i++) {
        used += strlen(set->names[i]) + 1;
    }
    if (used > DATA_CLASS_NAMES_MAX) {
        return ms_fail(
            err, MS_E_INVALID,
            "%.140s: the names of its classes have more than %d bytes: is another column "
            "the target (dataset.target), or is it a number for each class?",
            set->path, DATA_CLASS_NAMES_MAX);
    }
    const int rc = add_name(set, name, length, err);
    if (rc == MS_OK) {
        qsort(set->names, set->n_names, sizeof(char *), compare_names);
    }
    return rc;
}

static int take_given_names(struct csv *set, const char *names, struct ms_err *err)
{
    int rc = MS_OK;
    for (const char *at = names; rc == MS_OK && *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        rc = add_name(set, at, length, err);
        at += length + (at[length] == '\n');
    }
    set->has_names = set->n_names > 0;
    return rc;
}

static int fail_label(const struct place *place, const struct csv_fields *fields,
                      struct ms_err *err)
{
    const struct csv *set = place->set;
    const long long classes = set->base.info.classes;
    int64_t label = 0;
    char why[160];
    if (!is_whole(fields->field[set->target].text, &label)) {
        snprintf(why, sizeof(why),
                 "is no class (dataset.classes): where labels are words, name them in "
                 "dataset.class_names");
    } else if (label < 0) {
        snprintf(why, sizeof(why),
                 "is no class (dataset.classes): they are 0, 1, 2 ..., and one label that does "
                 "not count is named: ignored_label: %lld",
                 (long long)label);
    } else {
        snprintf(why, sizeof(why),
                 "is no class (dataset.classes): the job has %lld, 0 to %lld; give "
                 "dataset.classes: %lld if there are more",
                 classes, classes - 1, (long long)label + 1);
    }
    return fail_field(place, fields, set->target, why, err);
}

static int read_label(const struct place *place, const struct csv_fields *fields, int32_t *ret,
                      struct ms_err *err)
{
    const struct csv *set = place->set;
    const char *text = fields->field[set->target].text;
    int64_t label = -1;
    if (set->has_names) {
        label = find_name(set, text);
        if (label < 0) {
            return fail_name(place, fields, err);
        }
    } else if (!is_whole(text, &label) || ((label < 0 || label >= set->base.info.classes) &&
                                           !data_is_ignored(&set->base.info.ignored, label))) {
        return fail_label(place, fields, err);
    }
    *ret = (int32_t)label;
    return MS_OK;
}

/* ---- a row ---- */

static int split(const struct place *place, const char *text, size_t size,
                 struct csv_fields *fields, struct ms_err *err)
{
    const struct csv *set = place->set;
    const char *why = NULL;
    size_t column = 1;
    const int rc = csv_split(text, size, set->separator, fields, &column, &why);
    if (rc < 0) {
        return ms_fail(err, rc, "%.200s:%lld:%zu: %s", set->path, (long long)line_of(place), column,
                       why);
    }
    if (set->n_columns > 0 && fields->n != set->n_columns) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s:%lld: %zu fields, and %zu in the first line: is the separator right "
                       "(dataset.separator), or a field with one in it not quoted?",
                       set->path, (long long)line_of(place), fields->n, set->n_columns);
    }
    return MS_OK;
}

/* Without its end of line, and blank lines behind it. */
static size_t record_size(const char *text, size_t size)
{
    int in_quotes = 0;
    size_t i = 0;
    for (; i < size && (text[i] != '\n' || in_quotes); i++) {
        in_quotes ^= text[i] == '"';
    }
    return i > 0 && text[i - 1] == '\r' ? i - 1 : i;
}

static int csv_read(struct data_source *source, int64_t row, struct data_record *ret,
                    struct ms_err *err)
{
    struct csv *set = (struct csv *)source;
    const struct data_info *info = &source->info;
    const struct place place = {set, 0, set->at[row]};
    const size_t whole = (size_t)(set->at[row + 1] - set->at[row]);
    size_t size = whole < set->text_room ? whole : set->text_room; /* blank lines behind it */
    int rc = source_pread(set->fd, set->text, size, set->at[row], set->path, err);
    size = rc < 0 ? 0 : record_size(set->text, size);
    rc = rc < 0 ? rc : split(&place, set->text, size, &set->fields, err);
    for (int64_t i = 0; rc == MS_OK && i < info->channels; i++) {
        rc = read_number(&place, &set->fields, set->features[i], &set->values[i], err);
    }
    *ret = (struct data_record){.values = set->values, .label = -1};
    if (rc == MS_OK && set->has_no_labels) {
        ret->label = info->classes > 0 ? 0 : -1;
        set->values[info->channels] = 0;
        ret->targets = info->classes > 0 ? NULL : set->values + info->channels;
    } else if (rc == MS_OK && info->classes > 0) {
        rc = read_label(&place, &set->fields, &ret->label, err);
    } else if (rc == MS_OK) {
        ret->targets = set->values + info->channels;
        rc = read_number(&place, &set->fields, set->target, set->values + info->channels, err);
    }
    return rc;
}

static void csv_name(const struct data_source *source, int64_t row, char *buf, size_t size)
{
    const struct csv *set = (const struct csv *)source;
    const struct place place = {set, 0, set->at[row]};
    snprintf(buf, size, "%.200s:%lld", set->path, (long long)line_of(&place));
}

/* ---- columns ---- */

/* By which its first line would have more fields than the one that it has; NULL: it has several. */
static const char *separator_of(const struct csv *set)
{
    return set->n_columns == 1 ? csv_columns_separator(set->header.field[0].text) : NULL;
}

static int fail_column(const struct csv *set, const char *name, const char *key, struct ms_err *err)
{
    char here[160];
    const char *separator = separator_of(set);
    if (separator != NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "%.140s has no column '%.60s' (dataset.%s): its first line is one field, "
                       "'%.60s'; is it separated otherwise? Give dataset.separator: %s",
                       set->path, name, key, set->header.field[0].text, separator);
    }
    if (set->header.n == 0) {
        return ms_fail(err, MS_E_INVALID,
                       "%.140s has no column '%.60s' (dataset.%s); it has %zu columns, and no "
                       "header: give a number from 0 on",
                       set->path, name, key, set->n_columns);
    }
    const char *near = csv_columns_nearest(&set->header, name);
    csv_columns_say(&set->header, here, sizeof(here));
    return ms_fail(err, MS_E_INVALID,
                   "%.120s has no column '%.60s' (dataset.%s)%s%.60s%s; it has %s%s", set->path,
                   name, key, near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "", here, strcmp(key, "target") == 0 ? set->lacks : "");
}

/* By its name, or its number from 0 on, or from the end: -1 is the last one. */
static int find_column(const struct csv *set, const char *name, const char *key, size_t *ret,
                       struct ms_err *err)
{
    int64_t number = 0;
    for (size_t i = 0; i < set->header.n; i++) {
        if (strcmp(set->header.field[i].text, name) == 0) {
            *ret = i;
            return MS_OK;
        }
    }
    const int64_t n = (int64_t)set->n_columns;
    if (is_whole(name, &number) && number < n && number >= -n) {
        *ret = (size_t)(number < 0 ? number + n : number);
        return MS_OK;
    }
    return fail_column(set, name, key, err);
}

static int choose_columns(struct csv *set, const char *columns, struct csv_chosen *chosen,
                          struct ms_err *err)
{
    int rc = MS_OK;
    for (size_t i = 0; columns[0] == '\0' && i < set->n_columns; i++) {
        if (i != set->target) {
            chosen->features[chosen->n++] = i;
        }
    }
    for (const char *at = columns; rc == MS_OK && *at != '\0';) {
        char name[MS_NAME_MAX + 1];
        const size_t length = strcspn(at, "\n");
        snprintf(name, sizeof(name), "%.*s", (int)length, at);
        rc = find_column(set, name, "columns", &chosen->features[chosen->n], err);
        if (rc == MS_OK && chosen->features[chosen->n] == set->target) {
            rc = ms_fail(err, MS_E_INVALID,
                         "%.160s: column '%.60s' is the target (dataset.target), and cannot be a "
                         "feature",
                         set->path, name);
        }
        chosen->n++;
        at += length + (at[length] == '\n');
    }
    return rc;
}

static int fail_one_column(const struct csv *set, struct ms_err *err)
{
    const char *separator = separator_of(set);
    return ms_fail(err, MS_E_INVALID,
                   "%.160s has one column, and needs a target and features: %s%s", set->path,
                   separator != NULL ? "is it separated otherwise? Give dataset.separator: "
                                     : "is the separator right (dataset.separator)?",
                   separator != NULL ? separator : "");
}

/* A table without a header has them by position, whatever was trained on. */
static int choose_features(struct csv *set, const struct data_spec *spec, struct ms_err *err)
{
    const char *kept = set->header.n > 0 ? spec->column_names : "";
    const size_t room = set->n_columns + strlen(spec->columns) + strlen(kept) + 1;
    set->features = malloc(room * sizeof(*set->features));
    if (set->features == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory for its columns", set->path);
    }
    struct csv_chosen chosen = {.features = set->features, .target = set->target};
    int rc = csv_columns_are_names(kept) ? MS_OK : choose_columns(set, spec->columns, &chosen, err);
    if (rc == MS_OK && kept[0] != '\0') {
        rc = csv_columns_take(set->path, &set->header, kept, &chosen, err);
    }
    if (rc == MS_OK && chosen.n == 0) {
        rc = fail_one_column(set, err);
    }
    const int lacks_one = (int64_t)chosen.n + 1 == spec->shape.channels;
    if (rc == MS_OK && set->header.n == 0 && set->lacks[0] != '\0' && lacks_one) {
        rc = ms_fail(err, MS_E_INVALID,
                     "%.160s has %zu columns, and %lld features and a target are wanted%s",
                     set->path, set->n_columns, (long long)spec->shape.channels, set->lacks);
    }
    set->base.info.channels = (int64_t)chosen.n;
    if (rc == MS_OK && set->header.n > 0 && !set->has_no_labels) {
        rc = csv_columns_keep(&set->header, &chosen, set->column_names, err);
        set->base.info.column_names = set->column_names;
    }
    return rc;
}

/* Without labels it may be there all the same, and is no feature then: by its name; by its number
 * where there is a column more than features. */
static int find_target(struct csv *set, const struct data_spec *spec, struct ms_err *err)
{
    const char *name = spec->target[0] != '\0' ? spec->target : "-1";
    if (!set->has_no_labels) {
        return find_column(set, name, "target", &set->target, err);
    }
    const int has_more = spec->columns[0] == '\0' && (int64_t)set->n_columns > spec->shape.channels;
    const int is_there = csv_columns_find(&set->header, name) < set->header.n;
    set->target = SIZE_MAX;
    if (is_there || (has_more && spec->column_names[0] == '\0')) {
        (void)find_column(set, name, "target", &set->target, NULL);
    }
    return MS_OK;
}

/* The first line tells how many columns there are. 1: it is a row, too. */
static int take_first(struct csv *set, const struct data_spec *spec,
                      const struct csv_record *record, struct ms_err *err)
{
    const struct place place = {set, record->line, record->at};
    float number = 0;
    int rc = split(&place, record->text, record->size, &set->header, err);
    if (rc < 0) {
        return rc;
    }
    size_t n_numbers = 0;
    for (size_t i = 0; i < set->header.n; i++) {
        n_numbers += (size_t)is_number(set->header.field[i].text, &number);
    }
    if (spec->has_header && n_numbers == set->header.n) {
        return ms_fail(
            err, MS_E_INVALID,
            "%.160s:%lld: the first line should have the names of columns, and has numbers "
            "alone; give dataset.header: false",
            set->path, (long long)record->line);
    }
    set->n_columns = set->header.n;
    set->header_line = record->line;
    set->header.n = spec->has_header ? set->header.n : 0;
    rc = find_target(set, spec, err);
    rc = rc < 0 ? rc : choose_features(set, spec, err);
    return rc < 0 ? rc : !spec->has_header;
}

/* ---- all rows ---- */

struct finding { /* what the targets are; the job may say it */
    int is_open;
    int has_fraction;
    int64_t n_whole, n_text; /* rows */
    int64_t largest;
    struct { /* the first text */
        int64_t line;
        size_t column;
        char text[41];
    } word;
};

static int add_row(struct csv *set, int64_t at, struct ms_err *err)
{
    int64_t *grown = ms_grow(set->at, set->n_at, 1, sizeof(*grown), &set->at_room);
    if (grown == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory for the places of %zu rows", set->path,
                       set->n_at);
    }
    set->at = grown;
    set->at[set->n_at++] = at;
    return MS_OK;
}

/* Names are learned as long as it is not known that they are numbers. */
static int look_at_target(struct csv *set, const struct csv_record *record, struct finding *finding,
                          struct ms_err *err)
{
    const char *text = set->fields.field[set->target].text;
    const struct place place = {set, record->line, record->at};
    int64_t whole = 0;
    float number = 0;
    if (*skip_blanks(text) == '\0') {
        return read_number(&place, &set->fields, set->target, &number, err);
    }
    if (is_whole(text, &whole) && data_is_ignored(&set->base.info.ignored, whole)) {
        finding->n_whole++;
    } else if (is_whole(text, &whole) && whole >= 0) {
        finding->largest = whole > finding->largest ? whole : finding->largest;
        finding->n_whole++;
    } else if (is_number(text, &number)) {
        finding->has_fraction = 1;
    } else {
        if (finding->n_text == 0) {
            finding->word.line = record->line;
            finding->word.column = set->fields.field[set->target].column;
            snprintf(finding->word.text, sizeof(finding->word.text), "%s", text);
        }
        finding->n_text++;
    }
    if (finding->n_text == 0) {
        return MS_OK;
    }
    return finding->has_fraction ? fail_field(&place, &set->fields, set->target,
                                              "is no number, as the target of other rows is", err)
                                 : MS_OK;
}

static int fail_empty(const struct csv *set, int has_carriage_returns, struct ms_err *err)
{
    return !has_carriage_returns
               ? ms_fail(err, MS_E_INVALID, "%.200s has no rows", set->path)
               : ms_fail(err, MS_E_INVALID,
                         "%.120s has one line, with carriage returns in it: lines end with LF or "
                         "CR LF; put LF in their place, as with tr '\\r' '\\n'",
                         set->path);
}

static int read_rows(struct csv *set, const struct data_spec *spec, struct finding *finding,
                     struct ms_err *err)
{
    struct csv_scan *scan = NULL;
    struct csv_record record;
    int rc = csv_scan_create(set->fd, set->path, set->separator, &scan, err);
    int64_t end = 0;
    size_t longest = 0;
    int has_carriage_returns = 0; /* in the first line */
    for (int more = 1; rc == MS_OK && more;) {
        rc = csv_scan_next(scan, &record, err);
        more = rc > 0;
        int is_row = more;
        if (more && set->n_columns == 0) {
            has_carriage_returns = memchr(record.text, '\r', record.size) != NULL;
            rc = take_first(set, spec, &record, err);
            is_row = rc > 0;
        }
        rc = rc < 0 ? rc : MS_OK;
        if (rc < 0 || !is_row) {
            continue;
        }
        const struct place place = {set, record.line, record.at};
        rc = split(&place, record.text, record.size, &set->fields, err);
        rc = rc < 0 ? rc : add_row(set, record.at, err);
        if (rc == MS_OK && finding->is_open) {
            rc = look_at_target(set, &record, finding, err);
        }
        end = record.at + (int64_t)record.size;
        longest = record.size > longest ? record.size : longest;
    }
    csv_scan_destroy(scan);
    rc = rc < 0 ? rc : add_row(set, end, err);
    if (rc == MS_OK && set->n_at == 1) {
        rc = fail_empty(set, has_carriage_returns, err);
    }
    set->base.info.rows = (int64_t)set->n_at - 1;
    set->base.info.held_bytes = (int64_t)(set->at_room * sizeof(*set->at));
    set->text_room = longest + 2; /* and its end of line */
    return rc;
}

/* Their names, over the rows once more: where there are names, whole numbers are some, too. */
static int learn_names(struct csv *set, struct ms_err *err)
{
    struct csv_scan *scan = NULL;
    struct csv_record record;
    int is_first = set->header.n > 0;
    int rc = csv_scan_create(set->fd, set->path, set->separator, &scan, err);
    while (rc >= 0 && (rc = csv_scan_next(scan, &record, err)) > 0) {
        const struct place place = {set, record.line, record.at};
        if (!is_first) {
            rc = split(&place, record.text, record.size, &set->fields, err);
            rc = rc < 0 ? rc : learn_name(&place, set, set->fields.field[set->target].text, err);
        }
        is_first = 0;
    }
    csv_scan_destroy(scan);
    set->has_names = 1;
    return rc;
}

/* Its features are. */
static int are_numbers(const struct csv *set)
{
    int are = 1;
    for (int64_t i = 0; i < set->base.info.channels; i++) {
        float number = 0;
        are &= is_number(set->header.field[set->features[i]].text, &number);
    }
    return are;
}

/* A record that was taken for the names of columns would be left out without a word: its features
 * are numbers, as wavelengths and years are, too, and its target a class that others have. */
static int check_header(const struct csv *set, struct ms_err *err)
{
    if (set->header.n == 0 || !set->has_names || set->has_no_labels || !are_numbers(set)) {
        return MS_OK;
    }
    const char *label = set->header.field[set->target].text;
    return find_name(set, label) < 0
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "%.160s:%lld: the first line should have the names of columns, and has "
                         "numbers for all features, and '%.40s', which is a label of other "
                         "records; give dataset.header: false, or, where these are names, another "
                         "one to the column of labels",
                         set->path, (long long)set->header_line, label);
}

static int settle_targets(struct csv *set, const struct data_spec *spec,
                          const struct finding *finding, struct ms_err *err)
{
    struct data_info *info = &set->base.info;
    const int64_t classes = spec->shape.classes;
    const int wants_number =
        spec->shape.target_width > 0 || spec->target_kind == DATA_TARGET_NUMBER;
    if (finding->is_open && finding->n_text > 0 && wants_number) {
        return ms_fail(err, MS_E_INVALID, "%.160s: targets are names, and dataset.%s", set->path,
                       spec->target_kind == DATA_TARGET_NUMBER ? "target_kind is number"
                                                               : "target_width wants numbers");
    }
    if (finding->is_open && finding->n_text == 0 && classes > 0 &&
        (finding->has_fraction || finding->largest >= classes)) {
        return ms_fail(
            err, MS_E_INVALID,
            "%.160s: targets %s %lld, and the job says %lld (dataset.classes); leave the key "
            "out, or give the right data",
            set->path,
            finding->has_fraction ? "have fractions or are below 0, and go up to"
                                  : "are classes up to",
            (long long)finding->largest, (long long)classes);
    }
    if (finding->is_open && finding->n_text > 0 && finding->n_whole > finding->n_text) {
        return ms_fail(err, MS_E_INVALID,
                       "%.140s:%lld:%zu: the target '%s' is a word, and %lld of %lld rows have "
                       "whole numbers: mend the row or leave it out, or name all classes in "
                       "dataset.class_names",
                       set->path, (long long)finding->word.line, finding->word.column,
                       finding->word.text, (long long)finding->n_whole, (long long)info->rows);
    }
    if (finding->is_open && finding->n_text > 0) {
        const int rc = learn_names(set, err);
        if (rc < 0) {
            return rc;
        }
    }
    const int is_number = spec->shape.target_width > 0 ||
                          (finding->is_open && spec->target_kind == DATA_TARGET_NUMBER) ||
                          (finding->is_open && finding->has_fraction);
    if (is_number && spec->target_kind == DATA_TARGET_CLASS) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s: targets are numbers that are no classes (0, 1, 2 ...), and "
                       "dataset.target_kind is class",
                       set->path);
    }
    if (is_number) {
        info->target_width = 1;
        return MS_OK;
    }
    if (finding->is_open && !set->has_names && finding->largest >= MS_CLASSES_MAX) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s: targets go up to %lld, too many for classes; give "
                       "dataset.target_kind: number",
                       set->path, (long long)finding->largest);
    }
    info->classes = set->has_names            ? (int64_t)set->n_names
                    : spec->shape.classes > 0 ? spec->shape.classes
                                              : finding->largest + 1;
    size_t used = 0;
    for (size_t i = 0; i < set->n_names; i++) {
        used += (size_t)snprintf(set->class_names + used, sizeof(set->class_names) - used, "%s%s",
                                 i > 0 ? "\n" : "", set->names[i]);
    }
    info->class_names = set->class_names;
    return MS_OK;
}

/* ---- the file ---- */

/* A folder has a file a part. */
static int open_file(struct csv *set, const struct data_spec *spec, const char *path,
                     struct ms_err *err)
{
    struct stat st;
    const int is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    snprintf(set->path, sizeof(set->path), "%s%s", path,
             !is_folder                 ? ""
             : spec->usage == DATA_TEST ? "/test.csv"
                                        : "/train.csv");
    const int rc = data_file_open(set->path, &set->fd, err);
    return rc < 0 ? rc : data_check_plain(set->fd, set->path, err);
}

static int make(struct csv *set, const struct data_spec *spec, const char *path, struct ms_err *err)
{
    const int is_said = spec->shape.classes > 0 || spec->shape.target_width > 0;
    /* what is said is held against the rows where the job becomes ready, and is known then */
    struct finding finding = {.is_open = !spec->has_no_labels && spec->class_names[0] == '\0' &&
                                         (!is_said || spec->shape.channels == 0)};
    int rc = open_file(set, spec, path, err);
    rc = rc < 0 ? rc : take_given_names(set, spec->class_names, err);
    rc = rc < 0 ? rc : read_rows(set, spec, &finding, err);
    rc = rc < 0 ? rc : settle_targets(set, spec, &finding, err);
    rc = rc < 0 ? rc : check_header(set, err);
    rc = rc < 0 ? rc : data_check_shape(set->path, &set->base.info, err);
    if (rc < 0) {
        return rc;
    }
    set->text = malloc(set->text_room);
    set->values = malloc((size_t)(set->base.info.channels + 1) * sizeof(float));
    return set->text != NULL && set->values != NULL
               ? MS_OK
               : ms_fail(err, MS_E_NOMEM, "%.200s: no memory for a row", set->path);
}

static int create(const struct data_spec *spec, const char *path, struct csv **ret,
                  struct ms_err *err)
{
    static const char separators[] = {
        [DATA_COMMA] = ',', [DATA_SEMICOLON] = ';', [DATA_TAB] = '\t'};
    struct csv *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        return ms_fail(err, MS_E_NOMEM, "data set %.200s: no memory", path);
    }
    set->fd = -1;
    set->separator = separators[spec->separator];
    set->has_no_labels = spec->has_no_labels;
    set->lacks = spec->may_lack_labels ? TARGETS_MAY_LACK : "";
    set->base = (struct data_source){
        .info = {.height = 1, .width = 1, .dtype = MS_F32, .ignored = spec->ignored},
        .read = csv_read,
        .name = csv_name,
        .close = csv_close};
    *ret = set;
    return MS_OK;
}

int csv_open(const struct data_spec *spec, const char *path, struct data_source **ret,
             struct ms_err *err)
{
    struct csv *set = NULL;
    int rc = create(spec, path, &set, err);
    if (rc < 0) {
        return rc;
    }
    rc = make(set, spec, path, err);
    if (rc < 0) {
        csv_close(&set->base);
        return rc;
    }
    *ret = &set->base;
    return MS_OK;
}

static int find_columns(struct csv *set, const struct data_spec *spec, const char *path,
                        struct ms_err *err)
{
    struct csv_scan *scan = NULL;
    struct csv_record record;
    int rc = open_file(set, spec, path, err);
    rc = rc < 0 ? rc : csv_scan_create(set->fd, set->path, set->separator, &scan, err);
    rc = rc < 0 ? rc : csv_scan_next(scan, &record, err);
    if (rc == 0) {
        rc = fail_empty(set, 0, err);
    }
    rc = rc < 0 ? rc : take_first(set, spec, &record, err);
    csv_scan_destroy(scan);
    if (rc >= 0 && spec->shape.channels > 0 && spec->shape.channels != set->base.info.channels) {
        rc = ms_fail(err, MS_E_INVALID,
                     "%.160s has %lld features, and the job says %lld (dataset.shape)", set->path,
                     (long long)set->base.info.channels, (long long)spec->shape.channels);
    }
    return rc < 0 ? rc : MS_OK;
}

int csv_find_columns(const struct data_spec *spec, const char *path,
                     char ret[DATA_COLUMN_NAMES_MAX + 1], struct ms_err *err)
{
    struct csv *set = NULL;
    int rc = create(spec, path, &set, err);
    if (rc < 0) {
        return rc;
    }
    rc = find_columns(set, spec, path, err);
    if (rc == MS_OK) {
        memcpy(ret, set->column_names, sizeof(set->column_names));
    }
    csv_close(&set->base);
    return rc;
}
