/* csv_columns.c - columns by their names: those that a network is trained on are kept, and found
 * again in other tables */
#include "libworker/data/csv_columns.h"

#include "libworker/data/sum.h"
#include "proto/macros.h"
#include "proto/nearest.h"
#include "proto/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char sum_prefix[] = "xxh3-128:"; /* and the hex behind it, of names with their NULs */

enum { SHOWN = 80 }; /* of a list in an error, which may have two */

/* ---- names ---- */

static size_t find_from(const struct csv_fields *header, size_t from, const char *name)
{
    size_t i = from;
    while (i < header->n && strcmp(header->field[i].text, name) != 0) {
        i++;
    }
    return i;
}

size_t csv_columns_find(const struct csv_fields *header, const char *name)
{
    return find_from(header, 0, name);
}

const char *csv_columns_nearest(const struct csv_fields *header, const char *name)
{
    const char **names = malloc((header->n + 1) * sizeof(*names));
    for (size_t i = 0; names != NULL && i < header->n; i++) {
        names[i] = header->field[i].text;
    }
    const char *near = names != NULL ? ms_nearest(name, names, header->n) : NULL;
    free(names);
    return near;
}

const char *csv_columns_separator(const char *line)
{
    static const struct {
        const char *of, *name;
    } separators[] = {{";", "semicolon"}, {"\t", "tab"}, {",", "comma"}};
    size_t i = 0;
    while (i < MS_ARRAY_SIZE(separators) && strpbrk(line, separators[i].of) == NULL) {
        i++;
    }
    return i < MS_ARRAY_SIZE(separators) ? separators[i].name : NULL;
}

void csv_columns_say(const struct csv_fields *header, char *buf, size_t size)
{
    int more = 1;
    buf[0] = '\0';
    for (size_t i = 0; i < header->n && more; i++) {
        const char *name = header->field[i].text;
        more = ms_text_list(buf, size, name, strlen(name), "'");
    }
}

/* ---- a checksum of them ---- */

static int is_sum(const char *kept)
{
    return strncmp(kept, sum_prefix, strlen(sum_prefix)) == 0;
}

int csv_columns_are_names(const char *kept)
{
    return kept[0] != '\0' && !is_sum(kept);
}

static int sum_up(const struct csv_fields *header, const struct csv_chosen *chosen,
                  char ret[sizeof(sum_prefix) + SUM_HEX], struct ms_err *err)
{
    char hex[SUM_HEX];
    struct sum *sum = sum_create();
    if (sum == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the names of columns");
    }
    for (size_t i = 0; i < chosen->n; i++) {
        const char *name = header->field[chosen->features[i]].text;
        sum_add(sum, name, strlen(name) + 1);
    }
    sum_hex(sum, hex);
    sum_destroy(sum);
    snprintf(ret, sizeof(sum_prefix) + SUM_HEX, "%s%s", sum_prefix, hex);
    return MS_OK;
}

/* ---- kept ---- */

/* It tells one column, and may stand in a job. */
static int tells(const struct csv_fields *header, size_t column)
{
    const char *name = header->field[column].text;
    const size_t length = strlen(name);
    const size_t first = csv_columns_find(header, name);
    return length > 0 && length <= MS_NAME_MAX && ms_text_is_valid(name, MS_TEXT_LINE) &&
           !is_sum(name) && find_from(header, first + 1, name) == header->n;
}

int csv_columns_keep(const struct csv_fields *header, const struct csv_chosen *chosen,
                     char ret[DATA_COLUMN_NAMES_MAX + 1], struct ms_err *err)
{
    size_t used = 0;
    for (size_t i = 0; i <= chosen->n; i++) {
        const size_t column = i < chosen->n ? chosen->features[i] : chosen->target;
        const char *name = header->field[column].text;
        const size_t size = strlen(name) + (i > 0);
        if (size > DATA_COLUMN_NAMES_MAX - used || !tells(header, column)) {
            return sum_up(header, chosen, ret, err);
        }
        used += (size_t)snprintf(ret + used, DATA_COLUMN_NAMES_MAX + 1 - used, "%s%s",
                                 i > 0 ? "\n" : "", name);
    }
    return MS_OK;
}

/* The last one is the target's; of a checksum: "". */
static const char *target_of(const char *kept)
{
    const char *last = strrchr(kept, '\n');
    return last != NULL ? last + 1 : kept + strlen(kept);
}

void data_take_column_names(struct data_spec *data, const struct data_spec *train,
                            const char *names)
{
    const char *target = target_of(names);
    if (data->kind != DATA_CSV || train->kind != DATA_CSV || !data->has_header ||
        !train->has_header) {
        return;
    }
    memset(data->column_names, 0, sizeof(data->column_names));
    snprintf(data->column_names, sizeof(data->column_names), "%s", names);
    if (target[0] != '\0' && strcmp(data->target, train->target) == 0) {
        memset(data->target, 0, sizeof(data->target));
        snprintf(data->target, sizeof(data->target), "%s", target);
    }
}

/* ---- taken ---- */

static int fail_other(const char *path, const struct csv_fields *header, const char *kept,
                      const char *name, struct ms_err *err)
{
    char trained[SHOWN] = "";
    char here[SHOWN];
    const char *end = target_of(kept);
    for (const char *at = kept; at < end;) {
        const size_t length = strcspn(at, "\n");
        at = ms_text_list(trained, sizeof(trained), at, length, "'") ? at + length + 1 : end;
    }
    csv_columns_say(header, here, sizeof(here));
    return ms_fail(err, MS_E_INVALID,
                   "%.100s has no column '%.40s': the network is trained on %s, and the first line "
                   "here has %s; rename columns, or give another table",
                   path, name, trained, here);
}

static int fail_target(const char *path, const char *name, struct ms_err *err)
{
    return ms_fail(err, MS_E_INVALID,
                   "%.140s: column '%.60s' is the target here, and a feature in the training; name "
                   "the column of the target (evaluate.dataset.target)",
                   path, name);
}

static int take_one(const char *path, const struct csv_fields *header, const char *kept,
                    const char *name, size_t *ret, struct ms_err *err)
{
    const size_t found = csv_columns_find(header, name);
    if (found == header->n) {
        return fail_other(path, header, kept, name, err);
    }
    if (find_from(header, found + 1, name) < header->n) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s has two columns '%.60s', which the network is trained on; rename "
                       "one of them",
                       path, name);
    }
    *ret = found;
    return MS_OK;
}

static int take_names(const char *path, const struct csv_fields *header, const char *kept,
                      struct csv_chosen *chosen, struct ms_err *err)
{
    const char *end = target_of(kept);
    int rc = MS_OK;
    chosen->n = 0;
    for (const char *at = kept; rc == MS_OK && at < end;) {
        char name[MS_NAME_MAX + 1];
        const size_t length = strcspn(at, "\n");
        snprintf(name, sizeof(name), "%.*s", (int)length, at);
        rc = take_one(path, header, kept, name, &chosen->features[chosen->n], err);
        if (rc == MS_OK && chosen->features[chosen->n] == chosen->target) {
            rc = fail_target(path, name, err);
        }
        chosen->n++;
        at += length + 1;
    }
    return rc;
}

int csv_columns_take(const char *path, const struct csv_fields *header, const char *kept,
                     struct csv_chosen *chosen, struct ms_err *err)
{
    char have[sizeof(sum_prefix) + SUM_HEX];
    char here[SHOWN];
    if (!is_sum(kept)) {
        return take_names(path, header, kept, chosen, err);
    }
    const int rc = sum_up(header, chosen, have, err);
    if (rc < 0 || strcmp(have, kept) == 0) {
        return rc;
    }
    csv_columns_say(header, here, sizeof(here));
    return ms_fail(err, MS_E_INVALID,
                   "%.120s has columns with other names than those that the network is trained on, "
                   "or in another order: %s; rename or order them as in the training's table",
                   path, here);
}
