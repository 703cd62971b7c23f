/* place.c - where a data set lies: is it the same place as another's, and which parts are there */
#include "libworker/data/path.h"
#include "libworker/data/source.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void data_parts_add(struct data_parts *parts, enum data_usage usage, const char *name)
{
    const size_t used = strlen(parts->names);
    parts->usages |= 1U << usage;
    snprintf(parts->names + used, sizeof(parts->names) - used, "%s%s", used > 0 ? ", " : "", name);
}

/* train and test with that ending. */
static void find_files(const char *path, const char *ending, struct data_parts *ret)
{
    static const char *const stems[] = {[DATA_TRAIN] = "train", [DATA_TEST] = "test"};
    for (int usage = DATA_TRAIN; usage <= DATA_TEST; usage++) {
        char name[24];
        char file[MS_PATH_MAX + 32];
        struct stat st;
        snprintf(name, sizeof(name), "%s%s", stems[usage], ending);
        snprintf(file, sizeof(file), "%s/%s", path, name);
        if (stat(file, &st) == 0) {
            data_parts_add(ret, (enum data_usage)usage, name);
            snprintf(usage == DATA_TEST ? ret->of_test : ret->of_train, sizeof(ret->of_test), "%s",
                     name);
        }
    }
}

int data_parts_at(const struct data_spec *spec, const char *path, struct data_parts *ret,
                  struct ms_err *err)
{
    struct stat st;
    *ret = (struct data_parts){.usages = 0};
    switch (spec->kind) {
    case DATA_NUMPY:
        return numpy_parts(spec, path, ret, err);
    case DATA_SAFETENSORS:
        if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
            return numpy_parts(spec, path, ret, err);
        }
        find_files(path, DATA_TENSORS_END, ret);
        return MS_OK;
    case DATA_IMAGE_FOLDER:
        return image_folder_parts(spec, path, ret, err);
    case DATA_CSV:
        find_files(path, ".csv", ret);
        return MS_OK;
    case DATA_TEXT:
        find_files(path, ".txt", ret);
        return MS_OK;
    case DATA_PROGRAM: /* it is told the usage, where it has to know */
        if (!spec->has_split) {
            data_parts_add(ret, DATA_TRAIN, "train");
            data_parts_add(ret, DATA_TEST, "test");
        }
        return MS_OK;
    default:
        return MS_OK;
    }
}

int data_find_parts(const struct data_spec *spec, struct data_parts *ret, struct ms_err *err)
{
    char path[MS_PATH_MAX + 1];
    struct stat st;
    int rc = data_path_expand(spec->path, path, sizeof(path), err);
    rc = rc < 0 ? rc : data_path_check(path, err);
    if (rc == MS_OK && stat(path, &st) != 0) {
        rc = data_open_fail(path, err);
    }
    rc = rc < 0 ? rc : data_parts_at(spec, path, ret, err);
    if (rc < 0) {
        data_path_hide(path, spec->path, err);
    }
    return rc;
}

/* ---- the same place ---- */

/* Without what is twice or leads back, as far as the text tells. */
static void tidy(char *path)
{
    char *end = path;
    for (const char *at = path; *at != '\0';) {
        const size_t slashes = strspn(at, "/");
        const size_t length = strcspn(at + slashes, "/");
        const char *word = at + slashes;
        at = word + length;
        if (length == 2 && memcmp(word, "..", 2) == 0) {
            while (end > path && *--end != '/') {
            }
        } else if (length > 0 && (length != 1 || *word != '.')) {
            if (slashes > 0) {
                *end++ = '/';
            }
            memmove(end, word, length);
            end += length;
        }
    }
    *end = '\0';
}

static int is_same(const char *a, const char *b)
{
    struct stat one;
    struct stat two;
    char texts[2][MS_PATH_MAX + 2 + MS_NAME_MAX];
    const int has_a = stat(a, &one) == 0;
    const int has_b = stat(b, &two) == 0;
    if (has_a || has_b) {
        return has_a && has_b && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
    }
    snprintf(texts[0], sizeof(texts[0]), "%s", a);
    snprintf(texts[1], sizeof(texts[1]), "%s", b);
    tidy(texts[0]);
    tidy(texts[1]);
    return strcmp(texts[0], texts[1]) == 0;
}

struct place {
    char path[MS_PATH_MAX + 1];
    char part[MS_PATH_MAX + 2 + MS_NAME_MAX]; /* what is read of it */
};

static void find_place(const struct data_spec *spec, struct place *ret)
{
    struct data_parts parts;
    struct ms_err why = {0, ""};
    if (data_path_expand(spec->path, ret->path, sizeof(ret->path), &why) < 0) {
        snprintf(ret->path, sizeof(ret->path), "%s", spec->path);
    }
    const int is_known = data_parts_at(spec, ret->path, &parts, &why) == MS_OK;
    const int is_test = spec->usage == DATA_TEST && !spec->has_split && parts.of_test[0] != '\0';
    const char *part = !is_known ? "" : is_test ? parts.of_test : parts.of_train;
    snprintf(ret->part, sizeof(ret->part), "%s%s%s", ret->path, part[0] != '\0' ? "/" : "", part);
}

enum data_place data_compare_places(const struct data_spec *a, const struct data_spec *b)
{
    struct place one;
    struct place two;
    if (a->kind != b->kind || a->path[0] == '\0' || b->path[0] == '\0') {
        return DATA_OTHER_PLACE;
    }
    find_place(a, &one);
    find_place(b, &two);
    return is_same(one.path, two.path)   ? DATA_SAME_PATH
           : is_same(one.part, two.part) ? DATA_SAME_PART
                                         : DATA_OTHER_PLACE;
}
