/* beside_columns.c - which columns of a table are asked about: those that were trained */
#include "libworker/data/path.h"
#include "libworker/data/source.h"

#include <string.h>

int data_find_columns(const struct data_spec *spec, char ret[DATA_COLUMN_NAMES_MAX + 1],
                      struct ms_err *err)
{
    char path[MS_PATH_MAX + 1] = "";
    ret[0] = '\0';
    if (spec->kind != DATA_CSV || !spec->has_header) {
        return MS_OK;
    }
    int rc = data_path_expand(spec->path, path, sizeof(path), err);
    rc = rc < 0 ? rc : data_path_check(path, err);
    rc = rc < 0 ? rc : csv_find_columns(spec, path, ret, err);
    if (rc < 0) {
        data_path_hide(path, spec->path, err);
    }
    return rc;
}

/* "-1" and "3" are columns by position. */
static int has_numbers(const char *names)
{
    const char *at = names;
    int has = 0;
    while (*at != '\0' && !has) {
        const size_t length = strcspn(at, "\n");
        const size_t sign = *at == '-';
        has = length == sign + strspn(at + sign, "0123456789");
        at += length + (at[length] == '\n');
    }
    return has;
}

/* Who names all of them needs no other table. */
static int says_columns(const struct data_spec *spec, const struct data_spec *train)
{
    const int has_features = train->columns[0] != '\0' && !has_numbers(train->columns) &&
                             strcmp(spec->columns, train->columns) == 0;
    const int has_target = (spec->target[0] != '\0' && !has_numbers(spec->target)) ||
                           strcmp(spec->target, train->target) != 0;
    return has_features && (has_target || spec->has_no_labels);
}

int beside_take_columns(struct data_spec *of, const struct data_spec *train, struct ms_err *err)
{
    char found[DATA_COLUMN_NAMES_MAX + 1];
    struct ms_err why = {0, ""};
    const char *names = train->column_names;
    int rc = MS_OK;
    if (of->kind != DATA_CSV || train->kind != DATA_CSV || !of->has_header || !train->has_header ||
        of->column_names[0] != '\0' || says_columns(of, train)) {
        return MS_OK;
    }
    if (names[0] == '\0') {
        rc = data_find_columns(train, found, &why);
        names = found;
    }
    if (rc < 0) {
        return ms_fail(err, rc,
                       "which columns were trained is not known (%.160s): name them in "
                       "dataset.column_names, the features in their order and then the target, or "
                       "put dataset.path back",
                       why.text);
    }
    data_take_column_names(of, train, names);
    return MS_OK;
}
