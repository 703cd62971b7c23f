/* test_numpy.c - NumPy arrays as data: in folders and archives, packed and not, each with the same
 * records; what does not fit is named */
#include "libworker/data/data.h"
#include "tests/unit/array_files.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 500, C = 3, H = 5, W = 6, VALUES = C * H * W };

static struct data_spec spec_of(const char *dir, const char *file)
{
    struct data_spec spec = {.kind = DATA_NUMPY};
    snprintf(spec.path, sizeof(spec.path), "%s%s%s", dir, *file != '\0' ? "/" : "", file);
    return spec;
}

static uint8_t pixel(int64_t row, int64_t c, int64_t y, int64_t x)
{
    return (uint8_t)(row * 31 + c * 7 + y * 3 + x);
}

/* The images of ROWS records; last: channels last. Returns owned. */
static struct bytes images(int last, const char *descr)
{
    struct bytes b = {malloc((size_t)ROWS * VALUES * 8), 0};
    char shape[64];
    for (int64_t i = 0; i < (int64_t)ROWS * VALUES; i++) {
        const int64_t row = i / VALUES;
        const int64_t k = i % VALUES;
        const uint8_t value = last ? pixel(row, k % C, k / C / W, k / C % W)
                                   : pixel(row, k / (H * W), k / W % H, k % W);
        const float f = value;
        const double d = value;
        const size_t item = (size_t)(descr[2] - '0');
        memcpy(b.at + b.size,
               item == 1   ? (const void *)&value
               : item == 4 ? (const void *)&f
                           : &d,
               item);
        b.size += item;
    }
    snprintf(shape, sizeof(shape), last ? "(%d, %d, %d, %d)" : "(%d, %d, %d, %d)", ROWS,
             last ? H : C, last ? W : H, last ? C : W);
    struct bytes file = npy_make(descr, shape, b.at, b.size);
    free(b.at);
    return file;
}

static struct bytes labels(void)
{
    int64_t values[ROWS];
    char shape[32];
    for (int64_t i = 0; i < ROWS; i++) {
        values[i] = i % 11;
    }
    snprintf(shape, sizeof(shape), "(%d,)", ROWS);
    return npy_make("<i8", shape, values, sizeof(values));
}

static void write_taken(const char *dir, const char *name, struct bytes b)
{
    file_write(dir, name, b.at, b.size);
    free(b.at);
}

static void write_archive(const char *dir, const char *name, const char *x, const char *y,
                          int is_deflated, int last)
{
    struct archive a = {.with_zip64 = is_deflated};
    archive_add(&a, x, images(last, "|u1"), is_deflated);
    archive_add(&a, y, labels(), is_deflated);
    write_taken(dir, name, archive_end(&a));
}

static struct data_source *opened(const struct data_spec *spec)
{
    struct data_source *source = NULL;
    ck_ms_ok(data_open(spec, &source, err));
    return source;
}

static struct data_identity identity_of(struct data_source *source)
{
    struct data_identity identity;
    ck_ms_ok(data_identify(source, &identity, err));
    return identity;
}

/* Forwards, backwards, again. */
static void check_images(struct data_source *source)
{
    static const int64_t order[] = {0, 1, ROWS - 1, 5, 340, ROWS - 2, 0};
    const struct data_info *info = data_get_info(source);
    ck_assert_int_eq(info->rows, ROWS);
    ck_assert_int_eq(info->channels, C);
    ck_assert_int_eq(info->height, H);
    ck_assert_int_eq(info->width, W);
    ck_assert_int_eq(info->classes, 11);
    for (size_t n = 0; n < MS_ARRAY_SIZE(order); n++) {
        struct data_record record;
        ck_ms_ok(data_read(source, order[n], &record, err));
        ck_assert_int_eq(record.label, order[n] % 11);
        for (int64_t k = 0; k < VALUES; k++) {
            const uint8_t want = pixel(order[n], k / (H * W), k / W % H, k % W);
            const float have = info->dtype == MS_U8 ? ((const uint8_t *)record.values)[k]
                                                    : ((const float *)record.values)[k];
            ck_assert_float_eq(have, want);
        }
    }
    ck_ms_ok(data_verify(source, err));
}

START_TEST(the_same_records_are_the_same_data_however_they_lie)
{
    const char *dir = test_dir_make();
    write_taken(dir, "x_train.npy", images(0, "|u1"));
    write_taken(dir, "y_train.npy", labels());
    write_archive(dir, "stored.npz", "x_train.npy", "y_train.npy", 0, 0);
    write_archive(dir, "packed.npz", "train_images.npy", "train_labels.npy", 1, 1);
    static const char *const files[] = {"", "stored.npz", "packed.npz"};
    struct data_identity first = {0, {0}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(files); i++) {
        const struct data_spec spec = spec_of(dir, files[i]);
        struct data_source *source = opened(&spec);
        ck_assert_int_eq(data_get_info(source)->dtype, MS_U8);
        const struct data_identity identity = identity_of(source);
        check_images(source);
        first = i == 0 ? identity : first;
        ck_assert(data_identity_is_same(&identity, &first));
        data_close(source);
    }
    test_dir_remove(dir);
}
END_TEST

/* 1.6 MB: what is smaller is not worth a copy of the host. */
START_TEST(what_is_packed_is_unpacked_once_a_host)
{
    enum { N = 4000 };
    const char *dir = test_dir_make();
    uint8_t *bytes = malloc((size_t)N * 400);
    uint8_t y[N];
    ck_assert_ptr_nonnull(bytes);
    for (int i = 0; i < N * 400; i++) {
        bytes[i] = (uint8_t)(i / 400 + i % 400);
    }
    for (int i = 0; i < N; i++) {
        y[i] = (uint8_t)(i % 3);
    }
    struct archive a = {.n = 0};
    archive_add(&a, "x.npy", npy_make("|u1", "(4000, 20, 20)", bytes, (size_t)N * 400), 1);
    archive_add(&a, "y.npy", npy_make("|u1", "(4000, 1)", y, N), 1);
    write_taken(dir, "a.npz", archive_end(&a));
    free(bytes);
    const struct data_spec spec = spec_of(dir, "a.npz");
    struct data_source *one = opened(&spec);
    struct data_source *two = opened(&spec);
    struct data_record record;
    ck_assert_int_eq(data_get_info(one)->copied_bytes, N * 400);
    (void)identity_of(one);
    ck_assert_int_eq(data_in_memory(one), 0); /* that needs no copy */

    ck_ms_ok(data_read(one, N - 1, &record, err));

    ck_assert_uint_eq(((const uint8_t *)record.values)[7], (uint8_t)(N - 1 + 7));
    ck_assert_int_eq(data_in_memory(two), N * 400);
    ck_ms_ok(data_read(two, 17, &record, err));
    ck_assert_uint_eq(((const uint8_t *)record.values)[399], (uint8_t)(17 + 399));
    ck_assert_int_eq(record.label, 17 % 3);
    data_close(two);
    data_close(one);
    test_dir_remove(dir);
}
END_TEST

START_TEST(floats_and_doubles_are_floats)
{
    const char *dir = test_dir_make();
    write_taken(dir, "x.npy", images(_i / 2, _i % 2 ? "<f8" : "<f4"));
    write_taken(dir, "y.npy", labels());
    const struct data_spec spec = spec_of(dir, "");
    struct data_source *source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->dtype, MS_F32);
    check_images(source);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(features_with_numbers_as_targets)
{
    const char *dir = test_dir_make();
    const float x[6] = {1, 2, 3, 4, 5, 6};
    const double y[4] = {0.5, 0.25, -1, 7};
    npy_write(dir, "x.npy", "<f4", "(2, 3)", x, sizeof(x));
    npy_write(dir, "y.npy", "<f8", "(2, 2)", y, sizeof(y));
    const struct data_spec spec = spec_of(dir, "");
    struct data_source *source = opened(&spec);
    const struct data_info *info = data_get_info(source);
    struct data_record record;

    ck_ms_ok(data_read(source, 1, &record, err));

    ck_assert_int_eq(info->channels, 3);
    ck_assert_int_eq(info->height * info->width, 1);
    ck_assert_int_eq(info->classes, 0);
    ck_assert_int_eq(info->target_width, 2);
    ck_assert_mem_eq(record.values, x + 3, 12);
    ck_assert_float_eq(record.targets[0], -1);
    ck_assert_float_eq(record.targets[1], 7);
    const struct data_identity before = identity_of(source);
    data_close(source);
    const double z[4] = {0.5, 0.25, -1, 8};
    npy_write(dir, "y.npy", "<f8", "(2, 2)", z, sizeof(z));
    source = opened(&spec);
    const struct data_identity after = identity_of(source);
    ck_assert(!data_identity_is_same(&before, &after));
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(arrays_are_found_by_part_or_name)
{
    const char *dir = test_dir_make();
    const float x[2] = {1, 2};
    const int32_t y[2] = {1, 4};
    struct data_spec spec = spec_of(dir, "");
    struct data_source *source = NULL;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "it has: none");
    npy_write(dir, "x_train.npy", "<f4", "(2, 1)", x, sizeof(x));
    npy_write(dir, "y_train.npy", "<i4", "(2,)", y, sizeof(y));
    source = opened(&spec);
    data_close(source);
    spec.usage = DATA_TEST;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "x_test and y_test");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "_train, ");
    snprintf(spec.inputs, sizeof(spec.inputs), "x_train");
    snprintf(spec.targets, sizeof(spec.targets), "labels");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "no array labels");
    snprintf(spec.targets, sizeof(spec.targets), "y_train");
    source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->classes, 5);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* Of what is predicted. */
START_TEST(arrays_may_have_no_labels)
{
    const char *dir = test_dir_make();
    const float x[2] = {1, 2};
    struct data_spec spec = spec_of(dir, "");
    struct data_record record;
    npy_write(dir, "x_test.npy", "<f4", "(2, 1)", x, sizeof(x));
    spec.usage = DATA_TEST;
    spec.has_no_labels = 1;
    spec.shape = (struct data_shape){1, 1, 1, 5, 0};
    struct data_source *source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->classes, 5);
    ck_ms_ok(data_read(source, 1, &record, err));
    ck_assert_float_eq(((const float *)record.values)[0], 2);
    ck_assert_int_eq(record.label, 0);
    ck_ms_ok(data_verify(source, err));
    data_close(source);
    spec.shape = (struct data_shape){1, 1, 1, 0, 3};
    source = opened(&spec);
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_float_eq(record.targets[2], 0);
    ck_assert_int_eq(record.label, -1);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* One array is enough then, whatever it is called. */
START_TEST(one_array_may_be_all_that_is_predicted)
{
    static const char hint[] = "; data without labels are predicted with --no-labels";
    const char *dir = test_dir_make();
    const float x[2] = {1, 2};
    struct data_spec spec = spec_of(dir, "/new.npy");
    struct data_source *source = NULL;
    struct data_record record;
    char name[512];
    npy_write(dir, "new.npy", "<f4", "(2, 1)", x, sizeof(x));
    spec.may_lack_labels = 1;
    spec.shape = (struct data_shape){1, 1, 1, 5, 0};
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "is one array");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, hint);
    spec.has_no_labels = 1;
    for (int i = 0; i < 2; i++) { /* also where the training named its arrays */
        source = opened(&spec);
        ck_ms_ok(data_read(source, 1, &record, err));
        ck_assert_float_eq(((const float *)record.values)[0], 2);
        data_name_record(source, 1, name, sizeof(name));
        ck_assert_ptr_nonnull(strstr(name, "/new.npy: row 1"));
        data_close(source);
        snprintf(spec.inputs, sizeof(spec.inputs), "x");
        snprintf(spec.targets, sizeof(spec.targets), "y");
    }
    test_dir_remove(dir);
}
END_TEST

START_TEST(arrays_that_are_missing_say_what_helps)
{
    const char *dir = test_dir_make();
    const float x[2] = {1, 2};
    const int32_t y[2] = {0, 1};
    struct data_spec spec = spec_of(dir, "");
    struct data_source *source = NULL;
    npy_write(dir, "x_train.npy", "<f4", "(2, 1)", x, sizeof(x));
    npy_write(dir, "y_train.npy", "<i4", "(2,)", y, sizeof(y));
    spec.usage = DATA_TEST;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND,
                " has x_train, and no arrays of a test (x_test and y_test, test_images and "
                "test_labels): dataset.split: {test: 0.2} makes one of it, or name arrays with "
                "inputs and targets; it has: ");
    spec.may_lack_labels = 1;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND,
                "has none of the pairs x_test and y_test");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "predicted with --no-labels");
    snprintf(spec.inputs, sizeof(spec.inputs), "x_train");
    snprintf(spec.targets, sizeof(spec.targets), "labels");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "predicted with --no-labels");
    test_dir_remove(dir);
}
END_TEST

/* ---- what does not fit ---- */

static const struct {
    const char *x_type, *x_shape;
    size_t x_size;
    const char *y_type, *y_shape;
    size_t y_size;
    enum data_layout layout;
    struct data_shape shape;
    const char *part;
} misfits[] = {
    {"<i8", "(2, 2)", 32, "<i8", "(2,)", 16, 0, {0}, "x.astype('float32')"},
    {"<f4",
     "(2, 2)",
     16,
     "|b1",
     "(2,)",
     2,
     0,
     {0},
     "y.npy: its elements are truth values ('|b1'); write y.astype('uint8')"},
    {"<f2",
     "(2, 2)",
     8,
     "<i8",
     "(2,)",
     16,
     0,
     {0},
     "half floats ('<f2'); write x.astype('float32')"},
    {"<f4", "(2, 2)", 16, "<i8", "(3,)", 24, 0, {0}, "do not belong together"},
    {"<f4", "(2, 2)", 16, "<i8", "(2, 5)", 80, 0, {0}, "y.argmax(axis=1)"},
    {"<f4", "(2, 2)", 16, "<i8", "(2, 1, 1)", 16, 0, {0}, "has 3 dimensions"},
    {"<f4", "(1, 1, 1, 1, 4)", 16, "<i8", "(1,)", 8, 0, {0}, "has 5 dimensions"},
    {"<f4", "(1, 8, 8, 8)", 2048, "<i8", "(1,)", 8, 0, {0}, "dataset.layout"},
    {"<f4", "(1, 3, 8, 3)", 288, "<i8", "(1,)", 8, 0, {0}, "dataset.layout"},
    {"<f4", "(1, 5000, 1)", 20000, "<i8", "(1,)", 8, 0, {0}, "sides are from 1 to 4096"},
    {"<f4", "(2, 2)", 12, "<i8", "(2,)", 16, 0, {0}, "it is truncated"},
    {"<f4", "(2, 2)", 20, "<i8", "(2,)", 16, 0, {0}, "longer than it should be"},
    {"<f4", "(2, 2)", 16, "<f4", "(2,)", 8, 0, {2, 1, 1, 5, 0}, "y.astype('int64')"},
    {"<f4", "(2, 2)", 16, "<i8", "(2,)", 16, 0, {3, 1, 1, 0, 0}, "the job says 3x1x1"},
    {"<f4", "(2, 2)", 16, "<f4", "(2,)", 8, 0, {2, 1, 1, 0, 3}, "dataset.target_width"},
    {"<f4", "(2, 2)", 16, "<i8", "(2,)", 16, 0, {2, 1, 1, 0, 1}, "dataset.target_width"},
};

START_TEST(what_does_not_fit_is_named)
{
    const char *dir = test_dir_make();
    static const uint8_t zeros[20000];
    struct data_spec spec = spec_of(dir, "");
    struct data_source *source = NULL;
    spec.layout = misfits[_i].layout;
    spec.shape = misfits[_i].shape;
    npy_write(dir, "x.npy", misfits[_i].x_type, misfits[_i].x_shape, zeros, misfits[_i].x_size);
    npy_write(dir, "y.npy", misfits[_i].y_type, misfits[_i].y_shape, zeros, misfits[_i].y_size);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, misfits[_i].part);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, dir);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_layout_that_is_given_is_obeyed)
{
    const char *dir = test_dir_make();
    float x[2 * 4 * 3 * 3];
    const uint8_t y[2] = {0, 1};
    for (size_t i = 0; i < MS_ARRAY_SIZE(x); i++) {
        x[i] = (float)i;
    }
    npy_write(dir, "x.npy", "<f4", "(2, 3, 4, 3)", x, sizeof(x));
    npy_write(dir, "y.npy", "|u1", "(2,)", y, sizeof(y));
    for (int last = 0; last < 2; last++) {
        struct data_spec spec = spec_of(dir, "");
        spec.layout = last ? DATA_LAYOUT_NHWC : DATA_LAYOUT_NCHW;
        struct data_source *source = opened(&spec);
        struct data_record record;
        ck_ms_ok(data_read(source, 1, &record, err));
        ck_assert_int_eq(data_get_info(source)->height, last ? 3 : 4);
        ck_assert_float_eq(((const float *)record.values)[1], last ? 36 + 3 : 36 + 1);
        data_close(source);
    }
    test_dir_remove(dir);
}
END_TEST

START_TEST(arrays_are_listed_as_keys_want_them)
{
    const char *dir = test_dir_make();
    const struct data_spec spec = spec_of(dir, "a.npz");
    struct data_source *source = NULL;
    write_archive(dir, "a.npz", "pixels.npy", "kinds.npy", 0, 0);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "it has: pixels, kinds");
    test_dir_remove(dir);
}
END_TEST

static const struct {
    const char *x_type, *y_type;
    double x[3], y[3];
    const char *words; /* NULL: all are finite */
} spoiled[] = {
    {"<f4", "<f4", {1, 2, 3}, {1, 2, NAN}, "y.npy: row 2 has a value that is no finite float"},
    {"<f8", "<f8", {1, 2, 3}, {1, 2, -INFINITY}, "y.npy: row 2 has a value"},
    {"<f4", "<f4", {1, 2, NAN}, {1, 2, 3}, "x.npy: row 2 has a value that is no finite float"},
    {"<f8", "<f4", {1, 2, 1e300}, {1, 2, 3}, "x.npy: row 2 has a value"},
    {"<f8", "<f8", {1, 2, 3e38}, {1, 2, -3e38}, NULL},
};

START_TEST(what_is_not_finite_is_named_with_its_row)
{
    const char *dir = test_dir_make();
    const struct data_spec spec = spec_of(dir, "");
    struct data_record record;
    for (int i = 0; i < 2; i++) {
        const double *wide = i == 0 ? spoiled[_i].x : spoiled[_i].y;
        const char *type = i == 0 ? spoiled[_i].x_type : spoiled[_i].y_type;
        const float narrow[3] = {(float)wide[0], (float)wide[1], (float)wide[2]};
        const int is_wide = strcmp(type, "<f8") == 0;
        npy_write(dir, i == 0 ? "x.npy" : "y.npy", type, i == 0 ? "(3, 1)" : "(3,)",
                  is_wide ? (const void *)wide : narrow, is_wide ? 24 : 12);
    }
    struct data_source *source = opened(&spec);
    ck_ms_ok(data_read(source, 1, &record, err));
    if (spoiled[_i].words == NULL) {
        ck_ms_ok(data_read(source, 2, &record, err));
    } else {
        ck_ms_fails(data_read(source, 2, &record, err), MS_E_INVALID, spoiled[_i].words);
    }
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_label_out_of_range_is_named_with_its_row)
{
    const char *dir = test_dir_make();
    const float x[3] = {0};
    int64_t y[3] = {0, 1, -1};
    struct data_spec spec = spec_of(dir, "");
    struct data_source *source = NULL;
    npy_write(dir, "x.npy", "<f4", "(3, 1)", x, sizeof(x));
    npy_write(dir, "y.npy", "<i8", "(3,)", y, sizeof(y));
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID,
                "y.npy: row 2 has label -1; classes are 0, 1, 2 ..., and one label that does not "
                "count is named: ignored_label: -1");
    y[2] = 2;
    npy_write(dir, "y.npy", "<i8", "(3,)", y, sizeof(y));
    spec.shape.classes = 2;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID,
                "y.npy: row 2 has label 2, and the job has 2 classes, 0 to 1: those that it gives "
                "(dataset.classes), or that the training's labels have; give dataset.classes: 3 if "
                "there are more");
    spec.shape.classes = 7;
    source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->classes, 7);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(an_ignored_label_is_none_of_the_classes)
{
    const char *dir = test_dir_make();
    const float x[4] = {0};
    const int64_t y[4] = {0, -100, 2, 1};
    const uint8_t bytes[4] = {0, 255, 2, 1};
    struct data_record record;
    npy_write(dir, "x.npy", "<f4", "(4, 1)", x, sizeof(x));
    for (int is_byte = 0; is_byte < 2; is_byte++) {
        npy_write(dir, "y.npy", is_byte ? "|u1" : "<i8", "(4,)",
                  is_byte ? (const void *)bytes : (const void *)y,
                  is_byte ? sizeof(bytes) : sizeof(y));
        struct data_spec spec = spec_of(dir, "");
        spec.ignored = (struct data_ignored){.is_there = 1, .label = is_byte ? 255 : -100};
        struct data_source *source = opened(&spec);
        ck_assert_int_eq(data_get_info(source)->classes, 3);
        ck_ms_ok(data_read(source, 1, &record, err));
        ck_assert_int_eq(record.label, spec.ignored.label);
        ck_ms_ok(data_read(source, 2, &record, err));
        ck_assert_int_eq(record.label, 2);
        data_close(source);
    }
    test_dir_remove(dir);
}
END_TEST

/* A bit of the packed pixels is another one: whoever reads to the end hears of it. */
/* Of as few bytes as the largest needs, which comes late; more of them than are read at once. */
START_TEST(labels_of_any_size_are_kept)
{
    enum { N = 20000 };
    static const int64_t largest[] = {255, 256, 65535, 65536, 99999};
    static const int64_t items[] = {1, 2, 2, 4, 4};
    const char *dir = test_dir_make();
    const struct data_spec spec = spec_of(dir, "");
    int64_t *y = malloc(N * sizeof(*y));
    uint8_t *x = calloc(1, N);
    ck_assert(x != NULL && y != NULL);
    for (int64_t i = 0; i < N; i++) {
        y[i] = i % 251;
    }
    y[N - 2] = largest[_i];
    npy_write(dir, "x.npy", "|u1", "(20000, 1)", x, N);
    npy_write(dir, "y.npy", "<i8", "(20000,)", y, N * sizeof(*y));

    struct data_source *source = opened(&spec);

    ck_assert_int_eq(data_get_info(source)->classes, largest[_i] + 1);
    ck_assert_int_eq(data_get_info(source)->held_bytes, N * items[_i]);
    for (int64_t i = 0; i < N; i++) {
        struct data_record record;
        ck_ms_ok(data_read(source, i, &record, err));
        ck_assert_int_eq(record.label, y[i]);
    }
    data_close(source);
    free(x);
    free(y);
    test_dir_remove(dir);
}
END_TEST

static void write_sparse(const char *dir, const char *name, const char *descr, const char *shape,
                         int64_t size)
{
    char path[256];
    npy_write(dir, name, descr, shape, "", 0);
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(truncate(path, st.st_size + size), 0);
}

/* A file of nothing but a head can promise any number of them. */
START_TEST(labels_take_a_byte_each)
{
    enum { N = 20000000, KIB_MAX = 2 * N / 1024 };
    const char *dir = test_dir_make();
    const struct data_spec spec = spec_of(dir, "");
    write_sparse(dir, "x.npy", "|u1", "(20000000, 1)", N);
    write_sparse(dir, "y.npy", "<i8", "(20000000,)", (int64_t)N * 8);
    const long before = peak_kib();

    struct data_source *source = opened(&spec);

    ck_assert_int_lt(peak_kib() - before, KIB_MAX);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_damaged_archive_is_named)
{
    const char *dir = test_dir_make();
    struct archive a = {.n = 0};
    archive_add(&a, "x.npy", images(0, "|u1"), 1);
    archive_add(&a, "y.npy", labels(), 0);
    struct bytes b = archive_end(&a);
    struct data_source *source = NULL;
    const struct data_spec spec = spec_of(dir, "a.npz");
    uint32_t packed = 0; /* of x, by its own header */
    memcpy(&packed, b.at + 18, sizeof(packed));
    b.at[35 + packed * 3 / 4] ^= 0x10;
    file_write(dir, "a.npz", b.at, b.size);
    free(b.at);
    int rc = data_open(&spec, &source, NULL);
    struct ms_err err = {0, ""};
    struct data_record record;
    for (int64_t i = 0; rc == MS_OK && i < ROWS; i++) {
        rc = data_read(source, i, &record, &err);
    }
    ck_assert_int_eq(rc, MS_E_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "a.npz: x is truncated or damaged"));
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* Nothing unpacks it: only its checksum tells, of inputs, and of labels, which nobody reads again.
 */
START_TEST(a_damaged_archive_that_is_not_packed_is_named)
{
    static const char *const names[] = {"a.npz: x is damaged", "a.npz: y is damaged"};
    const char *dir = test_dir_make();
    const struct data_spec spec = spec_of(dir, "a.npz");
    struct archive a = {.n = 0};
    archive_add(&a, "x.npy", images(0, "|u1"), 0);
    const size_t end = a.file.size;
    archive_add(&a, "y.npy", labels(), 0);
    const size_t ends[] = {end, a.file.size};
    struct bytes b = archive_end(&a);
    struct data_record record;
    b.at[ends[_i] - 8] ^= 1; /* of a label: its lowest byte */
    file_write(dir, "a.npz", b.at, b.size);
    free(b.at);

    struct data_source *source = opened(&spec);
    ck_ms_ok(data_read(source, 0, &record, err));

    ck_ms_fails(data_verify(source, err), MS_E_INVALID, names[_i]);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_file_that_is_no_archive_is_refused)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    struct data_spec spec = spec_of(dir, "x.npy");
    const float x[2] = {0};
    npy_write(dir, "x.npy", "<f4", "(2, 1)", x, sizeof(x));
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "is one array");
    file_write(dir, "x.npy", "hello", 5);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "np.savez");
    spec = spec_of(dir, "none.npz");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "none.npz");
    test_dir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("numpy");
    TCase *tc = test_case_create("numpy");
    tcase_add_test(tc, the_same_records_are_the_same_data_however_they_lie);
    tcase_add_test(tc, what_is_packed_is_unpacked_once_a_host);
    tcase_add_loop_test(tc, floats_and_doubles_are_floats, 0, 4);
    tcase_add_test(tc, features_with_numbers_as_targets);
    tcase_add_test(tc, arrays_are_found_by_part_or_name);
    tcase_add_test(tc, arrays_may_have_no_labels);
    tcase_add_loop_test(tc, what_does_not_fit_is_named, 0, (int)MS_ARRAY_SIZE(misfits));
    tcase_add_test(tc, a_layout_that_is_given_is_obeyed);
    tcase_add_test(tc, arrays_are_listed_as_keys_want_them);
    tcase_add_loop_test(tc, what_is_not_finite_is_named_with_its_row, 0,
                        (int)MS_ARRAY_SIZE(spoiled));
    tcase_add_test(tc, a_label_out_of_range_is_named_with_its_row);
    tcase_add_test(tc, an_ignored_label_is_none_of_the_classes);
    tcase_add_loop_test(tc, labels_of_any_size_are_kept, 0, 5);
    tcase_add_test(tc, labels_take_a_byte_each);
    tcase_add_test(tc, a_damaged_archive_is_named);
    tcase_add_loop_test(tc, a_damaged_archive_that_is_not_packed_is_named, 0, 2);
    tcase_add_test(tc, a_file_that_is_no_archive_is_refused);
    tcase_add_test(tc, one_array_may_be_all_that_is_predicted);
    tcase_add_test(tc, arrays_that_are_missing_say_what_helps);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
