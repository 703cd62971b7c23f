/* numpy.c - data sets out of NumPy arrays, or tensors: inputs and targets, row i of both is record
 * i
 *
 * Inputs: (n, k) features, (n, h, w) or (n, c, h, w) or (n, h, w, c) images; bytes stay bytes where
 * they are images, everything else becomes floats when it is read. Targets: (n) whole numbers are
 * classes, (n) or (n, k) floats are what they say. */
#include "libworker/data/numpy_file.h"
#include "libworker/data/path.h"
#include "libworker/data/source.h"
#include "libworker/data/targets.h"
#include "proto/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct numpy {
    struct data_source base;
    struct numpy_place place;
    char *path;
    struct numpy_array inputs, targets;
    int has_no_labels; /* targets are not open */
    int is_nhwc;
    int64_t values, record;   /* of an input: elements, bytes in the file */
    uint8_t *raw;             /* what was read last, as it stands in the file */
    void *made;               /* the same as values, where that is something else; else NULL */
    struct label_list labels; /* classes */
    float *wanted;            /* float targets that were read last */
};

/* What mends an array, in the words of who wrote it. */
struct words {
    const char *floats, *classes, *largest;
};

static const struct words *words_of(const struct numpy *set)
{
    static const struct words of_numpy = {"astype('float32')", "astype('int64')", "argmax(axis=1)"};
    static const struct words of_torch = {"float()", "long()", "argmax(dim=1)"};
    return set->place.tensors != NULL ? &of_torch : &of_numpy;
}

static void numpy_close(struct data_source *source)
{
    struct numpy *set = (struct numpy *)source;
    numpy_array_close(&set->inputs);
    numpy_array_close(&set->targets);
    numpy_place_close(&set->place);
    free(set->path);
    free(set->raw);
    free(set->made);
    label_list_free(&set->labels);
    free(set->wanted);
    free(set);
}

/* ---- a record ---- */

/* (h, w, c) becomes (c, h, w). */
#define DEFINE_TURN(name, type)                                                                    \
    static void name(const struct data_info *info, const type *src, type *restrict dst)            \
    {                                                                                              \
        const int64_t plane = info->height * info->width;                                          \
        for (int64_t c = 0; c < info->channels; c++) {                                             \
            for (int64_t i = 0; i < plane; i++) {                                                  \
                dst[c * plane + i] = src[i * info->channels + c];                                  \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_TURN(turn_bytes, uint8_t)
DEFINE_TURN(turn_floats, float)

/* What stands in raw as values of the source's type, channels first. */
static const void *make_values(struct numpy *set)
{
    const struct data_info *info = &set->base.info;
    if (set->made == NULL) {
        return set->raw;
    }
    if (info->dtype == MS_U8) {
        turn_bytes(info, set->raw, set->made);
        return set->made;
    }
    float *const floats = set->made;
    float *const first = set->is_nhwc ? floats + set->values : floats;
    npy_floats(&set->inputs.head, set->raw, set->values, first);
    if (set->is_nhwc) {
        turn_floats(info, first, floats);
    }
    return floats;
}

/* One of them spoils all weights, and nobody would know from where it came. */
static int check_finite(const struct numpy_array *array, int64_t row, const float *values,
                        int64_t n, struct ms_err *err)
{
    return npy_are_finite(values, n)
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "%.200s: row %lld has a value that is no finite float (nan, or too "
                         "large); fill it in, or leave the row out",
                         array->name, (long long)row);
}

static int read_wanted(struct numpy *set, int64_t row, struct ms_err *err)
{
    const struct npy_head *head = &set->targets.head;
    const int64_t width = set->base.info.target_width;
    uint8_t *const raw = (uint8_t *)(set->wanted + width);
    int rc =
        stored_read(set->targets.bytes, raw, width * head->item, row * width * head->item, err);
    if (rc == MS_OK) {
        npy_floats(head, raw, width, set->wanted);
        rc = check_finite(&set->targets, row, set->wanted, width, err);
    }
    return rc;
}

static int32_t label_of(const struct numpy *set, int64_t row)
{
    if (set->has_no_labels) {
        return set->base.info.classes > 0 ? 0 : -1;
    }
    return set->labels.bytes != NULL ? label_list_get(&set->labels, row) : -1;
}

static int numpy_read(struct data_source *source, int64_t row, struct data_record *ret,
                      struct ms_err *err)
{
    struct numpy *set = (struct numpy *)source;
    int rc = stored_read(set->inputs.bytes, set->raw, set->record, row * set->record, err);
    if (rc == MS_OK && set->labels.bytes == NULL && !set->has_no_labels) {
        rc = read_wanted(set, row, err);
    }
    if (rc < 0) {
        return rc;
    }
    *ret = (struct data_record){
        .values = make_values(set), .targets = set->wanted, .label = label_of(set, row)};
    return set->inputs.head.kind == NPY_FLOAT
               ? check_finite(&set->inputs, row, ret->values, set->values, err)
               : MS_OK;
}

static void numpy_name(const struct data_source *source, int64_t row, char *buf, size_t size)
{
    const struct numpy *set = (const struct numpy *)source;
    snprintf(buf, size, "%.200s: row %lld",
             set->has_no_labels ? set->inputs.name : set->targets.name, (long long)row);
}

static int numpy_verify(struct data_source *source, struct ms_err *err)
{
    struct numpy *set = (struct numpy *)source;
    const int rc = stored_verify(set->inputs.bytes, err);
    return rc < 0 || set->has_no_labels ? rc : stored_verify(set->targets.bytes, err);
}

/* Float targets are read where they stand; labels are there already. */
static int has_targets_open(const struct numpy *set)
{
    return set->labels.bytes == NULL && !set->has_no_labels;
}

static int64_t numpy_in_memory(const struct data_source *source)
{
    const struct numpy *set = (const struct numpy *)source;
    return stored_in_memory(set->inputs.bytes) +
           (has_targets_open(set) ? stored_in_memory(set->targets.bytes) : 0);
}

/* ---- which data ---- */

struct walk {
    struct numpy *set;
    struct sum *sum;
    const int64_t *rows;
    float *targets; /* of all rows of the walk; NULL: classes */
};

static int take_targets(void *arg, int64_t i, const void *bytes)
{
    struct walk *walk = arg;
    const int64_t width = walk->set->base.info.target_width;
    npy_floats(&walk->set->targets.head, bytes, width, walk->targets + i * width);
    return MS_OK;
}

static int take_inputs(void *arg, int64_t i, const void *bytes)
{
    struct walk *walk = arg;
    struct numpy *set = walk->set;
    (void)bytes; /* in raw */
    const struct data_record record = {
        .values = make_values(set),
        .targets = walk->targets != NULL ? walk->targets + i * set->base.info.target_width : NULL,
        .label = label_of(set, walk->rows[i])};
    identity_add_record(&set->base.info, &record, walk->sum);
    return MS_OK;
}

/* The records that others read one by one; what is packed gives them from its front alone. */
static int numpy_identify(struct data_source *source, struct sum *sum, struct ms_err *err)
{
    struct numpy *set = (struct numpy *)source;
    int64_t rows[IDENTITY_RECORDS_MAX];
    int64_t at[IDENTITY_RECORDS_MAX];
    const int64_t n = identity_rows(&set->base.info, rows);
    const int64_t width = set->base.info.target_width;
    struct walk walk = {.set = set, .sum = sum, .rows = rows};
    int rc = MS_OK;
    if (set->labels.bytes == NULL) {
        const int64_t bytes = width * set->targets.head.item;
        walk.targets = malloc((size_t)(n * width) * sizeof(float));
        if (walk.targets == NULL) {
            return ms_fail(err, MS_E_NOMEM, "%.200s: no memory", set->targets.name);
        }
        for (int64_t i = 0; i < n; i++) {
            at[i] = rows[i] * bytes;
        }
        rc = stored_walk(set->targets.bytes, at, n, bytes, set->wanted + width, take_targets, &walk,
                         err);
    }
    for (int64_t i = 0; i < n; i++) {
        at[i] = rows[i] * set->record;
    }
    rc = rc < 0 ? rc
                : stored_walk(set->inputs.bytes, at, n, set->record, set->raw, take_inputs, &walk,
                              err);
    free(walk.targets);
    return rc;
}

/* ---- the arrays ---- */

struct pair {
    const char *inputs, *targets;
};

/* Keras', MedMNIST's, and plain ones. Those that say a part come first. */
static const struct pair pairs[2][4] = {
    [DATA_TRAIN] = {{"x_train", "y_train"},
                    {"train_images", "train_labels"},
                    {"images", "labels"},
                    {"x", "y"}},
    [DATA_TEST] = {{"x_test", "y_test"},
                   {"test_images", "test_labels"},
                   {"images", "labels"},
                   {"x", "y"}},
};

static const char *lacks_of(const struct data_spec *spec)
{
    return spec->may_lack_labels ? TARGETS_MAY_LACK : "";
}

/* What there is; of many the first ones. */
static void show_arrays(const struct numpy *set, char *buf, size_t size)
{
    char list[1024];
    numpy_place_list(&set->place, list, sizeof(list));
    ms_text_words(buf, size, list[0] != '\0' ? list : "none");
}

/* Its training alone is there: "x_train". NULL: nothing is. */
static const char *find_training(const struct numpy *set)
{
    const char *found = NULL;
    for (size_t i = 0; i < 2 && found == NULL; i++) {
        const char *name = pairs[DATA_TRAIN][i].inputs;
        found = numpy_place_has(&set->place, name, NULL) > 0 ? name : NULL;
    }
    return found;
}

static int fail_pair(const struct numpy *set, const struct data_spec *spec, struct ms_err *err)
{
    char list[100];
    const int part = spec->usage == DATA_TEST ? DATA_TEST : DATA_TRAIN;
    const struct pair *pair = pairs[part];
    const char *training = part == DATA_TEST && !spec->may_lack_labels ? find_training(set) : NULL;
    show_arrays(set, list, sizeof(list));
    if (training != NULL) {
        return ms_fail(err, MS_E_NOT_FOUND,
                       "data set %.120s has %s, and no arrays of a test (%s and %s, %s and %s): "
                       "dataset.split: {test: 0.2} makes one of it, or name arrays with inputs and "
                       "targets; it has: %s",
                       set->path, training, pair[0].inputs, pair[0].targets, pair[1].inputs,
                       pair[1].targets, list);
    }
    return ms_fail(err, MS_E_NOT_FOUND,
                   "data set %.120s has none of the pairs %s and %s, %s and %s, images and labels, "
                   "x and y; name its arrays with inputs and targets; it has: %s%s",
                   set->path, pair[0].inputs, pair[0].targets, pair[1].inputs, pair[1].targets,
                   list, lacks_of(spec));
}

static int find_pair(const struct numpy *set, const struct data_spec *spec, struct pair *ret,
                     struct ms_err *err)
{
    char list[120];
    const int part = spec->usage == DATA_TEST ? DATA_TEST : DATA_TRAIN;
    if (spec->inputs[0] != '\0') {
        *ret = (struct pair){spec->inputs, spec->targets};
        const char *missing = NULL;
        int rc = numpy_place_has(&set->place, ret->inputs, err);
        missing = rc == 0 ? ret->inputs : NULL;
        if (rc > 0 && !set->has_no_labels) {
            rc = numpy_place_has(&set->place, ret->targets, err);
            missing = rc == 0 ? ret->targets : NULL;
        }
        if (missing == NULL) {
            return rc < 0 ? rc : MS_OK;
        }
        show_arrays(set, list, sizeof(list));
        return ms_fail(err, MS_E_NOT_FOUND, "data set %.140s has no array %.40s; it has: %s%s",
                       set->path, missing, list, missing == ret->targets ? lacks_of(spec) : "");
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(pairs[0]); i++) {
        int rc = numpy_place_has(&set->place, pairs[part][i].inputs, err);
        rc = rc <= 0 || set->has_no_labels
                 ? rc
                 : numpy_place_has(&set->place, pairs[part][i].targets, err);
        if (rc != 0) {
            *ret = pairs[part][i];
            return rc < 0 ? rc : MS_OK;
        }
    }
    return fail_pair(set, spec, err);
}

static int open_place(const struct data_spec *spec, const char *path, struct numpy_place *ret,
                      struct ms_err *err)
{
    int rc = spec->kind == DATA_SAFETENSORS ? numpy_place_open_tensors(path, ret, err)
                                            : numpy_place_open(path, ret, err);
    return rc < 0 || !ret->is_array || spec->has_no_labels
               ? rc
               : ms_fail(err, MS_E_INVALID,
                         "%.140s is one array: dataset.path names the folder with it and its "
                         "targets, or a .npz; dataset.inputs and dataset.targets name the arrays%s",
                         path, lacks_of(spec));
}

/* By the names of the first two pairs; what is named is one set. */
int numpy_parts(const struct data_spec *spec, const char *path, struct data_parts *ret,
                struct ms_err *err)
{
    struct numpy_place place;
    int rc = spec->inputs[0] == '\0' ? open_place(spec, path, &place, err) : MS_OK;
    if (rc < 0 || spec->inputs[0] != '\0') {
        return rc;
    }
    for (int usage = DATA_TRAIN; usage <= DATA_TEST; usage++) {
        for (size_t i = 0; rc >= 0 && i < 2; i++) {
            rc = numpy_place_has(&place, pairs[usage][i].inputs, err);
            rc = rc <= 0 ? rc : numpy_place_has(&place, pairs[usage][i].targets, err);
            if (rc > 0) {
                data_parts_add(ret, (enum data_usage)usage, pairs[usage][i].inputs);
            }
        }
    }
    numpy_place_close(&place);
    return rc < 0 ? rc : MS_OK;
}

static int is_colours(int64_t n)
{
    return n == 1 || n == 3 || n == 4;
}

/* Which of the dimensions are the channels; the file does not say. */
static int find_layout(struct numpy *set, const struct data_spec *spec, struct ms_err *err)
{
    const int64_t *dim = set->inputs.head.dim;
    const int first = is_colours(dim[1]);
    const int last = is_colours(dim[3]);
    if (spec->layout == DATA_LAYOUT_AUTO && first == last) {
        return ms_fail(err, MS_E_INVALID,
                       "%.140s has dimensions (%lld, %lld, %lld, %lld), which does not tell where "
                       "the channels are; give dataset.layout: nchw or nhwc",
                       set->inputs.name, (long long)dim[0], (long long)dim[1], (long long)dim[2],
                       (long long)dim[3]);
    }
    set->is_nhwc = spec->layout == DATA_LAYOUT_NHWC || (spec->layout == DATA_LAYOUT_AUTO && last);
    return MS_OK;
}

static int measure_inputs(struct numpy *set, const struct data_spec *spec, struct ms_err *err)
{
    const struct npy_head *head = &set->inputs.head;
    struct data_info *info = &set->base.info;
    const int64_t *dim = head->dim;
    if (head->n_dims < 1 || head->n_dims > 4) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s has %d dimensions; inputs are (n, features), (n, height, width), or "
                       "(n, height, width and channels in either order)",
                       set->inputs.name, head->n_dims);
    }
    if (head->kind != NPY_FLOAT && (head->kind != NPY_UNSIGNED || head->item != 1)) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s: inputs are bytes or floats, not %d-byte whole numbers; write "
                       "x.%s",
                       set->inputs.name, head->item, words_of(set)->floats);
    }
    if (head->n_dims == 4) {
        const int rc = find_layout(set, spec, err);
        if (rc < 0) {
            return rc;
        }
    }
    const int is_image = head->n_dims > 2;
    const int h = head->n_dims == 4 && !set->is_nhwc ? 2 : 1;
    info->rows = dim[0];
    info->height = is_image ? dim[h] : 1;
    info->width = is_image ? dim[h + 1] : 1;
    info->channels = head->n_dims == 4 ? dim[set->is_nhwc ? 3 : 1] : head->n_dims == 2 ? dim[1] : 1;
    /* what moves pixels as bytes knows so many channels */
    const int stays =
        is_image && head->kind == NPY_UNSIGNED && info->channels <= MS_IMAGE_CHANNEL_MAX;
    info->dtype = stays ? MS_U8 : MS_F32;
    set->values = head->count / info->rows;
    set->record = set->values * head->item;
    return data_check_shape(set->inputs.name, info, err);
}

static int allocate(struct numpy *set, struct ms_err *err)
{
    const struct data_info *info = &set->base.info;
    const struct npy_head *inputs = &set->inputs.head;
    const int is_same =
        !set->is_nhwc && (info->dtype == MS_U8 || (inputs->kind == NPY_FLOAT && inputs->item == 4));
    const size_t made = ms_dtype_size(info->dtype, (size_t)set->values) * (set->is_nhwc ? 2 : 1);
    set->raw = malloc((size_t)set->record);
    set->made = is_same ? NULL : malloc(made);
    const size_t width = (size_t)info->target_width;
    if (width > 0) {
        set->wanted = calloc(width, sizeof(float) + (size_t)set->targets.head.item);
    }
    return set->raw != NULL && (is_same || set->made != NULL) && (width == 0 || set->wanted != NULL)
               ? MS_OK
               : ms_fail(err, MS_E_NOMEM, "data set %.200s: no memory for a record", set->path);
}

struct labels {
    struct numpy *set;
    struct targets_range range;
    struct ms_err *err;
};

static int fail_labels(const struct numpy *set, struct ms_err *err)
{
    return ms_fail(err, MS_E_NOMEM, "%.160s: no memory for its %lld labels", set->targets.name,
                   (long long)set->base.info.rows);
}

static int take_labels(void *arg, int64_t at, const void *bytes, int64_t size)
{
    struct labels *labels = arg;
    struct numpy *set = labels->set;
    const int64_t item = set->targets.head.item;
    int rc = MS_OK;
    for (int64_t i = 0; rc == MS_OK && i < size / item; i++) {
        const int64_t row = at / item + i;
        const int64_t label = npy_whole(&set->targets.head, bytes, i);
        rc = targets_check_label(&labels->range, row, label, labels->err);
        if (rc == MS_OK && label_list_put(&set->labels, row, (int32_t)label) < 0) {
            rc = fail_labels(set, labels->err);
        }
    }
    return rc;
}

/* Classes: all of them are looked at here, and stay. */
static int read_labels(struct numpy *set, const struct data_spec *spec, struct ms_err *err)
{
    enum { PIECE = 64 << 10 };
    uint8_t room[PIECE];
    struct data_info *info = &set->base.info;
    const int64_t classes = spec->shape.classes;
    struct labels labels = {
        .set = set,
        .range = {.name = set->targets.name, .classes = classes, .ignored = spec->ignored},
        .err = err};
    int rc =
        label_list_make(&set->labels, info->rows, classes) == 0 ? MS_OK : fail_labels(set, err);
    rc = rc < 0 ? rc : stored_pass(set->targets.bytes, PIECE, room, take_labels, &labels, err);
    info->classes = targets_classes(&labels.range);
    info->held_bytes = label_list_bytes(&set->labels);
    return rc;
}

static int measure_targets(struct numpy *set, const struct data_spec *spec, struct ms_err *err)
{
    const int64_t classes = spec->shape.classes;
    const struct npy_head *head = &set->targets.head;
    struct data_info *info = &set->base.info;
    const int64_t width = head->n_dims == 2 ? head->dim[1] : 1;
    if (head->n_dims < 1 || head->n_dims > 2) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s has %d dimensions; targets are (n) classes, or (n) or (n, k) floats",
                       set->targets.name, head->n_dims);
    }
    if (head->dim[0] != info->rows) {
        return ms_fail(err, MS_E_INVALID,
                       "%.120s has %lld rows for the %lld of %.120s: the arrays do not belong "
                       "together",
                       set->targets.name, (long long)head->dim[0], (long long)info->rows,
                       set->inputs.name);
    }
    if (head->kind == NPY_FLOAT) {
        if (classes > 0) {
            return ms_fail(err, MS_E_INVALID,
                           "%.160s has floats as targets, and the job wants classes; write "
                           "y.%s",
                           set->targets.name, words_of(set)->classes);
        }
        info->target_width = width;
        return data_check_shape(set->targets.name, info, err);
    }
    if (width > 1) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s has %lld whole numbers a row, a class is one; write "
                       "y.%s, or y.%s for targets that are numbers",
                       set->targets.name, (long long)width, words_of(set)->largest,
                       words_of(set)->floats);
    }
    return read_labels(set, spec, err);
}

static int open_targets(struct numpy *set, const struct data_spec *spec, const char *name,
                        struct ms_err *err)
{
    if (set->has_no_labels) {
        set->base.info.classes = spec->shape.classes;
        set->base.info.target_width = spec->shape.target_width;
        return MS_OK;
    }
    int rc = numpy_array_open(&set->place, name, &set->targets, err);
    return rc < 0 ? rc : measure_targets(set, spec, err);
}

static int open_arrays(struct numpy *set, const struct data_spec *spec, struct ms_err *err)
{
    struct pair pair = {NULL, NULL};
    int rc = open_place(spec, set->path, &set->place, err);
    rc = rc < 0 ? rc : find_pair(set, spec, &pair, err);
    rc = rc < 0 ? rc : numpy_array_open(&set->place, pair.inputs, &set->inputs, err);
    rc = rc < 0 ? rc : measure_inputs(set, spec, err);
    rc = rc < 0 ? rc : open_targets(set, spec, pair.targets, err);
    return rc < 0 ? rc : allocate(set, err);
}

int numpy_open(const struct data_spec *spec, const char *path, struct data_source **ret,
               struct ms_err *err)
{
    struct numpy *set = calloc(1, sizeof(*set));
    if (set == NULL || (set->path = strdup(path)) == NULL) {
        free(set);
        return ms_fail(err, MS_E_NOMEM, "data set %.200s: no memory", path);
    }
    set->base = (struct data_source){.read = numpy_read,
                                     .name = numpy_name,
                                     .verify = numpy_verify,
                                     .identify = numpy_identify,
                                     .in_memory = numpy_in_memory,
                                     .close = numpy_close};
    set->has_no_labels = spec->has_no_labels;
    set->place.archive = -1;
    set->inputs.fd = -1;
    set->targets.fd = -1;
    int rc = open_arrays(set, spec, err);
    if (rc < 0) {
        numpy_close(&set->base);
        return rc;
    }
    set->base.info.copied_bytes = stored_copied(set->inputs.bytes);
    if (has_targets_open(set)) {
        set->base.info.copied_bytes += stored_copied(set->targets.bytes);
    }
    *ret = &set->base;
    return MS_OK;
}

int tensors_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                 struct ms_err *err)
{
    char file[MS_PATH_MAX + 24];
    struct stat st;
    const int is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    snprintf(file, sizeof(file), "%s%s", path,
             !is_folder                 ? ""
             : spec->usage == DATA_TEST ? "/test" DATA_TENSORS_END
                                        : "/train" DATA_TENSORS_END);
    return numpy_open(spec, file, ret, err);
}
