/* beside.c - opens what a network is tested on: its classes are those of the training */
#include "libworker/data/image_list.h"
#include "libworker/data/path.h"
#include "libworker/data/source.h"
#include "proto/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail_nomem(struct ms_err *err)
{
    return ms_fail(err, MS_E_NOMEM, "no memory for a data set");
}

/* ---- classes that were trained ---- */

static int have_names(const struct data_spec *train)
{
    return train->class_names[0] != '\0' || train->kind == DATA_IMAGE_FOLDER;
}

static int find_classes(const struct data_spec *train, struct image_list *ret, struct ms_err *err)
{
    char path[MS_PATH_MAX + 1] = "";
    struct ms_err why = {0, ""};
    *ret = (struct image_list){.n = 0};
    int rc = MS_OK;
    if (train->class_names[0] == '\0') {
        rc = data_path_expand(train->path, path, sizeof(path), &why);
        rc = rc < 0 ? rc : data_path_check(path, &why);
    }
    rc = rc < 0 ? rc : image_list_classes(train, path, ret, &why);
    if (rc < 0) {
        data_path_hide(path, train->path, &why);
        return ms_fail(err, rc,
                       "which classes were trained is not known (%.160s): name them in "
                       "dataset.class_names, or put dataset.path back",
                       why.text);
    }
    return MS_OK;
}

/* LF between. Returns owned; NULL without memory. */
static char *join(const char *const *names, size_t n)
{
    size_t size = 1;
    for (size_t i = 0; i < n; i++) {
        size += strlen(names[i]) + 1;
    }
    char *text = malloc(size);
    size_t used = 0;
    for (size_t i = 0; text != NULL && i < n; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? "\n" : "", names[i]);
    }
    if (text != NULL) {
        text[used] = '\0';
    }
    return text;
}

/* As in data_spec; "": they are numbers. Returns owned. */
static int find_names(const struct data_spec *train, char **ret, struct ms_err *err)
{
    struct image_list classes = {.n = 0};
    const int is_listed = train->class_names[0] == '\0' && train->kind == DATA_IMAGE_FOLDER;
    int rc = is_listed ? find_classes(train, &classes, err) : MS_OK;
    char *text = rc < 0      ? NULL
                 : is_listed ? join((const char *const *)classes.classes, classes.n_classes)
                             : strdup(train->class_names);
    image_list_free(&classes);
    if (rc == MS_OK && text == NULL) {
        rc = fail_nomem(err);
    }
    *ret = text;
    return rc;
}

/* ---- names beside numbers ---- */

/* Folders 0 to 9, or 00 to 09, say themselves which is which. */
static int are_numbers(const char *names)
{
    long long number = 0;
    for (const char *at = names; *at != '\0'; number++) {
        const size_t length = strcspn(at, "\n");
        const size_t digits = strspn(at, "0123456789");
        if (digits == 0 || digits != length || strtoll(at, NULL, 10) != number) {
            return 0;
        }
        at += length + (at[length] == '\n');
    }
    return 1;
}

/* The first of them, for people. */
static void show(const char *names, char *buf, size_t size)
{
    buf[0] = '\0';
    for (int more = 1; *names != '\0' && more;) {
        const size_t length = strcspn(names, "\n");
        more = ms_text_list(buf, size, names, length, "");
        names += length + (names[length] == '\n');
    }
}

static int fail_names(const char *names, struct ms_err *err)
{
    char shown[80];
    show(names, shown, sizeof(shown));
    return ms_fail(err, MS_E_INVALID,
                   "its classes have names (%s), and those that are trained are numbers: which is "
                   "which? name them in the order of the numbers in evaluate.dataset.class_names",
                   shown);
}

static int fail_numbers(const char *trained, struct ms_err *err)
{
    char shown[80];
    show(trained, shown, sizeof(shown));
    return ms_fail(err, MS_E_INVALID,
                   "its labels are numbers, and the classes that are trained have names (%s): "
                   "which is which? where 0, 1, ... are those in that order, say so by "
                   "evaluate.dataset.class_names with all of them",
                   shown);
}

int data_check_classes(const struct data_source *source, const struct data_spec *spec,
                       const struct data_spec *train, struct ms_err *err)
{
    const struct data_info *info = data_get_info(source);
    const int has_words = info->class_names != NULL && info->class_names[0] != '\0';
    const int has_names = info->folders != NULL || has_words;
    char *names = NULL;
    if (info->classes == 0 || info->tokens > 0 || has_names == have_names(train)) {
        return MS_OK; /* names of both have found one another */
    }
    if (has_names && spec->class_names[0] != '\0') {
        return MS_OK;
    }
    int rc = MS_OK;
    if (!has_names) {
        rc = find_names(train, &names, err);
    } else {
        names = info->folders != NULL ? join(info->folders, (size_t)info->classes)
                                      : strdup(info->class_names);
        rc = names != NULL ? MS_OK : fail_nomem(err);
    }
    if (rc == MS_OK && !are_numbers(names) && strcmp(names, spec->class_names) != 0) {
        rc = has_names ? fail_names(names, err) : fail_numbers(names, err);
    }
    free(names);
    return rc;
}

/* ---- opening ---- */

/* Folders by the names of the training, or those that the spec has for its numbers. */
static int open_folders(struct data_spec *of, const struct data_spec *train,
                        struct data_source **ret, struct ms_err *err)
{
    struct image_list classes = {.n = 0};
    int rc = MS_OK;
    if (have_names(train)) {
        rc = find_classes(train, &classes, err);
    } else if (of->class_names[0] != '\0') {
        rc = image_list_classes(of, "", &classes, err);
    }
    if (rc == MS_OK && classes.n_classes > 0) {
        of->trained = (const char *const *)classes.classes;
        of->n_trained = (int64_t)classes.n_classes;
    }
    rc = rc < 0 ? rc : data_open(of, ret, err);
    image_list_free(&classes);
    return rc;
}

int data_open_asked(const struct data_spec *spec, const struct data_spec *train,
                    struct data_source **ret, struct ms_err *err)
{
    struct data_spec *of = malloc(sizeof(*of));
    if (of == NULL) {
        return fail_nomem(err);
    }
    *of = *spec;
    if (of->kind == DATA_IMAGE_FOLDER) {
        of->class_names[0] = '\0'; /* folders may be any, whatever the job calls its classes */
    }
    int rc = beside_take_columns(of, train, err);
    rc = rc < 0 ? rc : data_open(of, ret, err);
    free(of);
    return rc;
}

int data_open_beside(const struct data_spec *spec, const struct data_spec *train,
                     struct data_source **ret, struct ms_err *err)
{
    struct data_source *source = NULL;
    struct data_spec *of = malloc(sizeof(*of)); /* too large for a stack */
    if (of == NULL) {
        return fail_nomem(err);
    }
    *of = *spec;
    int rc = beside_take_columns(of, train, err);
    rc = rc < 0                            ? rc
         : spec->kind == DATA_IMAGE_FOLDER ? open_folders(of, train, &source, err)
                                           : data_open(of, &source, err);
    rc = rc < 0 ? rc : data_check_classes(source, of, train, err);
    free(of);
    if (rc < 0) {
        data_close(source);
        return rc;
    }
    *ret = source;
    return MS_OK;
}
