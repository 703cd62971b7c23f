/* image_list.c - the images below a folder of classes: which files, in which order, of which class
 */
#include "libworker/data/image_list.h"

#include "libworker/data/path.h"
#include "libworker/data/source.h"
#include "proto/grow.h"
#include "proto/macros.h"
#include "proto/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 16, RELATIVE_MAX = 768, LINKS_MAX = 100000 };

void image_list_free(struct image_list *list)
{
    for (size_t i = 0; i < list->n_classes; i++) {
        free(list->classes[i]);
    }
    free(list->classes);
    free(list->entries);
    free(list->names);
    *list = (struct image_list){.n = 0};
}

void image_list_path(const struct image_list *list, size_t i, char *buf, size_t size)
{
    snprintf(buf, size, "%s/%s", list->root, list->names + list->entries[i].path);
}

static int fail_nomem(const struct image_list *list, struct ms_err *err)
{
    return ms_fail(err, MS_E_NOMEM, "data set %.200s: no memory for its list of files", list->root);
}

/* ---- names ---- */

enum what { NOTHING, IMAGE, FOREIGN };

/* By the end of its name; what it is, the first bytes say when it is read. */
static enum what what_is(const char *name)
{
    static const char *const ours[] = {"jpg", "jpeg", "png"};
    static const char *const foreign[] = {"bmp", "gif", "webp", "tif",  "tiff",
                                          "ppm", "pgm", "jp2",  "heic", "avif"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot != NULL && i < MS_ARRAY_SIZE(ours); i++) {
        if (strcasecmp(dot + 1, ours[i]) == 0) {
            return IMAGE;
        }
    }
    for (size_t i = 0; dot != NULL && i < MS_ARRAY_SIZE(foreign); i++) {
        if (strcasecmp(dot + 1, foreign[i]) == 0) {
            return FOREIGN;
        }
    }
    return NOTHING;
}

/* Links are followed: what they lead to is judged where it is opened. */
static int is_folder(const DIR *dir, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK) {
        return entry->d_type == DT_DIR;
    }
    return fstatat(dirfd((DIR *)dir), entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

/* errno is readdir's, which was 0 before: of a folder that breaks off there may be more. */
static int end_folder(DIR *dir, const char *path, int rc, struct ms_err *err)
{
    if (rc == MS_OK && errno != 0) {
        rc = ms_fail_errno(err, MS_E_IO, "the files of %.200s cannot be listed", path);
    }
    closedir(dir);
    return rc;
}

static int add_image(struct image_list *list, const char *path, int32_t label, struct ms_err *err)
{
    const size_t size = strlen(path) + 1;
    char *names = ms_grow(list->names, list->names_size, size, 1, &list->names_room);
    list->names = names != NULL ? names : list->names;
    struct image_list_entry *entries =
        ms_grow(list->entries, list->n, 1, sizeof(*entries), &list->room);
    list->entries = entries != NULL ? entries : list->entries;
    if (names == NULL || entries == NULL) {
        return fail_nomem(list, err);
    }
    memcpy(list->names + list->names_size, path, size);
    list->entries[list->n++] = (struct image_list_entry){list->names_size, label};
    list->names_size += size;
    return MS_OK;
}

struct walk {
    struct image_list *list;
    int32_t label;
    int depth;
    int n_links; /* to folders, that were followed: of links to links there is no end */
    char path[RELATIVE_MAX + 1]; /* below root: the folder in work */
};

static int walk_folder(struct walk *walk, struct ms_err *err);

static int walk_entry(struct walk *walk, const DIR *dir, const struct dirent *entry,
                      struct ms_err *err)
{
    const size_t before = strlen(walk->path);
    const size_t length = before + 1 + strlen(entry->d_name);
    const enum what what = what_is(entry->d_name);
    const int is_dir = is_folder(dir, entry);
    if (entry->d_name[0] == '.' || (!is_dir && what == NOTHING)) {
        return MS_OK;
    }
    if (length > RELATIVE_MAX || (is_dir && walk->depth == DEPTH_MAX)) {
        return ms_fail(
            err, MS_E_INVALID,
            "data set %.140s: below %.100s are paths of more than %d bytes or %d folders",
            walk->list->root, walk->path, RELATIVE_MAX, DEPTH_MAX);
    }
    walk->n_links += is_dir && entry->d_type == DT_LNK;
    if (walk->n_links > LINKS_MAX) {
        return ms_fail(
            err, MS_E_INVALID,
            "data set %.140s: class %.60s has more than %d folders behind links; do they "
            "lead to each other? put the images themselves there",
            walk->list->root, walk->list->classes[walk->label], LINKS_MAX);
    }
    if (!is_dir && what == FOREIGN) {
        return ms_fail(err, MS_E_INVALID,
                       "%.140s/%.100s/%.60s: JPEG and PNG images are read; convert it (mogrify "
                       "-format png), or leave it out",
                       walk->list->root, walk->path, entry->d_name);
    }
    snprintf(walk->path + before, sizeof(walk->path) - before, "/%s", entry->d_name);
    walk->depth++;
    int rc = is_dir ? walk_folder(walk, err) : add_image(walk->list, walk->path, walk->label, err);
    walk->depth--;
    walk->path[before] = '\0';
    return rc;
}

static int walk_folder(struct walk *walk, struct ms_err *err)
{
    char path[sizeof(walk->list->root) + RELATIVE_MAX + 2];
    DIR *dir = NULL;
    snprintf(path, sizeof(path), "%s/%s", walk->list->root, walk->path);
    int rc = data_folder_open(path, &dir, err);
    if (rc < 0) {
        return rc;
    }
    for (const struct dirent *entry; rc == MS_OK && (errno = 0, entry = readdir(dir)) != NULL;) {
        rc = walk_entry(walk, dir, entry, err);
    }
    return end_folder(dir, path, rc, err);
}

/* ---- classes ---- */

static int add_class(struct image_list *list, const char *name, struct ms_err *err)
{
    char **classes =
        ms_grow(list->classes, list->n_classes, 1, sizeof(char *), &list->classes_room);
    list->classes = classes != NULL ? classes : list->classes;
    if (classes == NULL || (classes[list->n_classes] = strdup(name)) == NULL) {
        return fail_nomem(list, err);
    }
    list->n_classes++;
    return MS_OK;
}

static int compare_classes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* An image that lies beside the folders of classes has none: nobody would miss it. */
struct loose {
    char name[NAME_MAX + 1]; /* the first in the order of names; "": there is none */
};

static void look_for_loose(struct loose *loose, const DIR *dir, const struct dirent *entry)
{
    const char *name = entry->d_name;
    if (name[0] != '.' && what_is(name) != NOTHING && !is_folder(dir, entry) &&
        (loose->name[0] == '\0' || strcmp(name, loose->name) < 0)) {
        snprintf(loose->name, sizeof(loose->name), "%s", name);
    }
}

static int check_loose(const struct loose *loose, const char *path, struct ms_err *err)
{
    return loose->name[0] == '\0'
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "data set %.160s: the image %.60s lies beside the folders of the classes, "
                         "and belongs to none; put it into one of them, or elsewhere",
                         path, loose->name);
}

/* Without a slash at its end. */
static size_t length_of(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    return n;
}

/* Most often one class, or images that nobody has sorted: whose folder is wanted is above. */
static int fail_no_folders(const struct loose *loose, const char *path, struct ms_err *err)
{
    size_t n = length_of(path);
    while (n > 0 && path[n - 1] != '/') {
        n--;
    }
    const int above = n > 1 ? (int)n - 1 : (int)n;
    return loose->name[0] == '\0'
               ? ms_fail(err, MS_E_NOT_FOUND,
                         "data set %.160s has no folders: each class is one, with its JPEG or PNG "
                         "images",
                         path)
               : ms_fail(err, MS_E_NOT_FOUND,
                         "data set %.120s has images and no folders: each class is one, with its "
                         "images; where these are of one class, or not sorted, name the folder "
                         "above%s%.*s",
                         path, above > 0 ? ": " : "", above > 120 ? 0 : above, path);
}

/* The folders of a folder, sorted. */
static int read_classes(struct image_list *list, const char *path, struct ms_err *err)
{
    DIR *dir = NULL;
    struct loose loose = {""};
    int rc = data_folder_open(path, &dir, err);
    if (rc < 0) {
        return rc;
    }
    for (const struct dirent *entry; rc == MS_OK && (errno = 0, entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.' && is_folder(dir, entry)) {
            rc = add_class(list, entry->d_name, err);
        }
        look_for_loose(&loose, dir, entry);
    }
    rc = end_folder(dir, path, rc, err);
    if (rc == MS_OK && list->n_classes > MS_CLASSES_MAX) {
        rc = ms_fail(err, MS_E_INVALID, "data set %.200s has %zu folders; at most %d classes", path,
                     list->n_classes, MS_CLASSES_MAX);
    }
    if (rc == MS_OK && list->n_classes == 0) {
        rc = fail_no_folders(&loose, path, err);
    }
    rc = rc < 0 ? rc : check_loose(&loose, path, err);
    if (rc == MS_OK) {
        qsort(list->classes, list->n_classes, sizeof(char *), compare_classes);
    }
    return rc;
}

/* A hidden folder is none, and what is below one is a part of it. */
static int check_name(const struct image_list *list, const char *name, struct ms_err *err)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "data set %.160s: '%.60s' of dataset.class_names is no name of a folder",
                         list->root, name);
}

/* Those that the spec names, in its order; none: it names none. */
static int take_classes(struct image_list *list, const struct data_spec *spec, struct ms_err *err)
{
    int rc = MS_OK;
    for (int64_t i = 0; rc == MS_OK && i < spec->n_trained; i++) {
        rc = add_class(list, spec->trained[i], err);
    }
    const char *at = spec->n_trained > 0 ? "" : spec->class_names;
    while (rc == MS_OK && *at != '\0') {
        char name[MS_NAME_MAX + 1];
        const size_t length = strcspn(at, "\n");
        snprintf(name, sizeof(name), "%.*s", (int)length, at);
        rc = check_name(list, name, err);
        rc = rc < 0 ? rc : add_class(list, name, err);
        at += length + (at[length] == '\n');
    }
    return rc;
}

/* The first of them, for people. */
static void show_classes(const struct image_list *list, char *buf, size_t size)
{
    int more = 1;
    buf[0] = '\0';
    for (size_t i = 0; i < list->n_classes && more; i++) {
        more = ms_text_list(buf, size, list->classes[i], strlen(list->classes[i]), "");
    }
}

static int fail_class(const struct image_list *list, const char *name, struct ms_err *err)
{
    char known[80];
    show_classes(list, known, sizeof(known));
    return ms_fail(err, MS_E_INVALID,
                   "data set %.140s: class %.60s is not among the %zu that are trained (%s)",
                   list->root, name, list->n_classes, known);
}

static int check_folders(const struct image_list *list, char *const *sorted, struct ms_err *err)
{
    struct loose loose = {""};
    DIR *dir = NULL;
    int rc = data_folder_open(list->root, &dir, err);
    if (rc < 0) {
        return rc;
    }
    for (const struct dirent *entry; rc == MS_OK && (errno = 0, entry = readdir(dir)) != NULL;) {
        const char *name = entry->d_name;
        if (name[0] != '.' && is_folder(dir, entry) &&
            bsearch(&name, sorted, list->n_classes, sizeof(char *), compare_classes) == NULL) {
            rc = fail_class(list, name, err);
        }
        look_for_loose(&loose, dir, entry);
    }
    rc = end_folder(dir, list->root, rc, err);
    return rc < 0 ? rc : check_loose(&loose, list->root, err);
}

/* A test's classes are those of the training: one that has none there, or is unknown. */
static int check_part(const struct image_list *list, struct ms_err *err)
{
    char **sorted = malloc(list->n_classes * sizeof(*sorted));
    int rc = MS_OK;
    if (sorted == NULL) {
        return fail_nomem(list, err);
    }
    memcpy(sorted, list->classes, list->n_classes * sizeof(*sorted));
    qsort(sorted, list->n_classes, sizeof(*sorted), compare_classes);
    for (size_t i = 1; rc == MS_OK && i < list->n_classes; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0) {
            rc = ms_fail(err, MS_E_INVALID,
                         "data set %.160s: dataset.class_names has the class %.60s twice",
                         list->root, sorted[i]);
        }
    }
    rc = rc < 0 ? rc : check_folders(list, sorted, err);
    free(sorted);
    return rc;
}

static int has_folder(const char *path, const char *name)
{
    char below[MS_PATH_MAX + 16];
    struct stat st;
    snprintf(below, sizeof(below), "%s/%s", path, name);
    return stat(below, &st) == 0 && S_ISDIR(st.st_mode);
}

enum { ABSENT, PART, CLASS };

/* What a folder is that has the name of a part: one whose classes are folders, or a class that is
 * called so, with images. Below 0: it may be both, or cannot be read. */
static int part_or_class(const char *path, const char *name, struct ms_err *err)
{
    char below[MS_PATH_MAX + 16];
    DIR *dir = NULL;
    int has_folders = 0;
    int has_images = 0;
    if (!has_folder(path, name)) {
        return ABSENT;
    }
    snprintf(below, sizeof(below), "%s/%s", path, name);
    int rc = data_folder_open(below, &dir, err);
    if (rc < 0) {
        return rc;
    }
    for (const struct dirent *entry;
         !(has_folders && has_images) && (errno = 0, entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.') {
            const int is_dir = is_folder(dir, entry);
            has_folders |= is_dir;
            has_images |= !is_dir && what_is(entry->d_name) != NOTHING;
        }
    }
    errno = has_folders && has_images ? 0 : errno;
    rc = end_folder(dir, below, MS_OK, err);
    if (rc == MS_OK && has_folders && has_images) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s has folders, as a part with its classes, and images, as a class: "
                       "put the images into folders, or give the folder another name",
                       below);
    }
    return rc < 0 ? rc : has_images ? CLASS : PART;
}

static const char *const tests[] = {"test", "val", "validation"};

int image_folder_parts(const struct data_spec *spec, const char *path, struct data_parts *ret,
                       struct ms_err *err)
{
    (void)spec;
    int rc = part_or_class(path, "train", err);
    if (rc == PART) {
        data_parts_add(ret, DATA_TRAIN, "train");
        snprintf(ret->of_train, sizeof(ret->of_train), "train");
    }
    for (size_t i = MS_ARRAY_SIZE(tests); rc >= 0 && i-- > 0;) {
        rc = part_or_class(path, tests[i], err);
        if (rc == PART) {
            data_parts_add(ret, DATA_TEST, tests[i]);
            snprintf(ret->of_test, sizeof(ret->of_test), "%s", tests[i]);
        }
    }
    return rc < 0 ? rc : MS_OK;
}

/* Which part, and who says the classes. */
static int find_root(const char *path, enum data_usage usage, struct image_list *list,
                     char *ret_classes, size_t size, struct ms_err *err)
{
    const int train = part_or_class(path, "train", err);
    if (train < 0) {
        return train;
    }
    const int has_train = train == PART;
    const char *part = has_train ? "train" : NULL;
    int has_test = 0;
    int is_flat = 0;
    for (size_t i = MS_ARRAY_SIZE(tests); (usage == DATA_TEST || !has_train) && i-- > 0;) {
        const int test = part_or_class(path, tests[i], err);
        if (test < 0) {
            return test;
        }
        is_flat |= train == CLASS && test == CLASS;
        has_test |= test == PART;
        part = test == PART && usage == DATA_TEST ? tests[i] : part;
    }
    if (is_flat && !has_test) {
        return ms_fail(err, MS_E_INVALID,
                       "data set %.160s: train and what is tested on have no folders: each class "
                       "is one, with its images, in both",
                       path);
    }
    if ((usage == DATA_TEST && has_train && !has_test) ||
        (usage != DATA_TEST && part == NULL && has_test)) {
        return ms_fail(err, MS_E_NOT_FOUND,
                       "data set %.160s has %s, and no folder %s with classes beside it%s", path,
                       has_train ? "train" : "test or val", has_train ? "test or val" : "train",
                       has_train ? "; dataset.split: {test: 0.2} makes a test of it" : "");
    }
    snprintf(list->root, sizeof(list->root), "%s%s%s", path, part != NULL ? "/" : "",
             part != NULL ? part : "");
    snprintf(ret_classes, size, "%s%s", has_train ? path : list->root, has_train ? "/train" : "");
    return MS_OK;
}

/* ---- all of it ---- */

static int compare_entries(const void *a, const void *b, void *names)
{
    const struct image_list_entry *one = a;
    const struct image_list_entry *two = b;
    return strcmp((const char *)names + one->path, (const char *)names + two->path);
}

/* may_lack: it is tested on, and may have no image of a class. */
static int read_class(struct image_list *list, size_t label, int may_lack, struct ms_err *err)
{
    struct walk walk = {.list = list, .label = (int32_t)label};
    const size_t first = list->n;
    if (strlen(list->classes[label]) > RELATIVE_MAX ||
        !has_folder(list->root, list->classes[label])) {
        return may_lack
                   ? MS_OK
                   : ms_fail(err, MS_E_NOT_FOUND, "data set %.160s has no folder %.60s, a class",
                             list->root, list->classes[label]);
    }
    snprintf(walk.path, sizeof(walk.path), "%s", list->classes[label]);
    int rc = walk_folder(&walk, err);
    if (rc == MS_OK && list->n == first && !may_lack) {
        rc = ms_fail(err, MS_E_INVALID,
                     "data set %.160s: folder %.60s has no JPEG or PNG image; each folder is a "
                     "class",
                     list->root, list->classes[label]);
    }
    if (rc == MS_OK) {
        qsort_r(list->entries + first, list->n - first, sizeof(*list->entries), compare_entries,
                list->names);
    }
    return rc;
}

int image_list_classes(const struct data_spec *spec, const char *path, struct image_list *ret,
                       struct ms_err *err)
{
    char classes[MS_PATH_MAX + 16];
    *ret = (struct image_list){.n = 0};
    snprintf(ret->root, sizeof(ret->root), "%s", path);
    int rc = take_classes(ret, spec, err);
    if (rc < 0 || ret->n_classes > 0) {
        return rc;
    }
    rc = find_root(path, spec->has_split ? DATA_TRAIN : spec->usage, ret, classes, sizeof(classes),
                   err);
    return rc < 0 ? rc : read_classes(ret, classes, err);
}

int image_list_make(const struct data_spec *spec, const char *path, struct image_list *ret,
                    struct ms_err *err)
{
    char classes[MS_PATH_MAX + 16];
    *ret = (struct image_list){.n = 0};
    int rc = find_root(path, spec->usage, ret, classes, sizeof(classes), err);
    const int is_beside = rc == MS_OK && strcmp(classes, ret->root) != 0;
    rc = rc < 0 ? rc : take_classes(ret, spec, err);
    const int is_given = ret->n_classes > 0;
    if (rc == MS_OK && !is_given) {
        rc = read_classes(ret, classes, err);
    }
    if (rc == MS_OK && (is_given || is_beside)) {
        rc = check_part(ret, err);
    }
    for (size_t i = 0; rc == MS_OK && i < ret->n_classes; i++) {
        rc = read_class(ret, i, is_beside || spec->trained != NULL, err);
    }
    if (rc == MS_OK && ret->n == 0) {
        rc = ms_fail(err, MS_E_NOT_FOUND,
                     "data set %.160s has no images in the folders of its "
                     "classes",
                     ret->root);
    }
    return rc;
}
