/* test_image_folder.c - folders of images as data: classes and order, parts, sizes, threads; what
 * is wrong is named */
#include "libworker/data/data.h"
#include "libworker/data/path.h"
#include "tests/unit/image_files.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

/* Entries that are listed before the disk fails; below 0: it does not. */
static int entries_left = -1;

struct dirent *__real_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir);

struct dirent *__wrap_readdir64(DIR *dir)
{
    if (entries_left == 0) {
        errno = EIO;
        return NULL;
    }
    entries_left -= entries_left > 0;
    return __real_readdir64(dir);
}

static struct data_spec spec_of(const char *dir)
{
    struct data_spec spec = {.kind = DATA_IMAGE_FOLDER};
    snprintf(spec.path, sizeof(spec.path), "%s", dir);
    return spec;
}

static struct data_source *opened(const struct data_spec *spec)
{
    struct data_source *source = NULL;
    ck_ms_ok(data_open(spec, &source, err));
    return source;
}

static void make(const char *dir, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    ck_assert_int_eq(mkdir(path, 0755), 0);
}

START_TEST(classes_and_images_are_in_the_order_of_their_names)
{
    const char *dir = test_dir_make();
    static const struct {
        const char *folder, *name;
        int value, label;
    } images[] = {{"cat", "10.png", 1, 0},
                  {"cat", "9.PNG", 2, 0},
                  {"cat", "more/a.png", 3, 0},
                  {"dog", "b.png", 4, 1},
                  {"zebra", "a.png", 5, 2}};
    make(dir, "cat");
    make(dir, "cat/more");
    for (size_t i = MS_ARRAY_SIZE(images); i-- > 0;) {
        png_write(dir, images[i].folder, images[i].name, 2, 3, images[i].value);
    }
    file_write(dir, "cat/notes.txt", "x", 1);
    file_write(dir, ".hidden", "x", 1);
    file_write(dir, "cat/.DS_Store.png", "x", 1);
    const struct data_spec spec = spec_of(dir);

    struct data_source *source = opened(&spec);

    const struct data_info *info = data_get_info(source);
    ck_assert_int_eq(info->rows, MS_ARRAY_SIZE(images));
    ck_assert_int_eq(info->classes, 3);
    ck_assert_int_eq(info->channels, 3);
    ck_assert_int_eq(info->height, 2);
    ck_assert_int_eq(info->width, 3);
    char name[512];
    char want[512];
    for (size_t i = 0; i < MS_ARRAY_SIZE(images); i++) {
        struct data_record record;
        ck_ms_ok(data_read(source, (int64_t)i, &record, err));
        ck_assert_int_eq(record.label, images[i].label);
        ck_assert_str_eq(info->folders[record.label], images[i].folder);
        data_name_record(source, (int64_t)i, name, sizeof(name));
        snprintf(want, sizeof(want), "%s/%s/%s", dir, images[i].folder, images[i].name);
        ck_assert_str_eq(name, want);
        const uint8_t *pixels = record.values;
        for (int p = 0; p < 6; p++) {
            ck_assert_uint_eq(pixels[p], images[i].value + 3 * p);
            ck_assert_uint_eq(pixels[6 + p], images[i].value + 3 * p + 1);
        }
    }
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(parts_are_folders_and_training_says_the_classes)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    struct data_spec spec = spec_of(dir);
    make(dir, "train");
    png_write(dir, "train/a", "1.png", 2, 2, 1);
    png_write(dir, "train/b", "1.png", 2, 2, 2);
    png_write(dir, "train/c", "1.png", 2, 2, 3);
    source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->rows, 3);
    data_close(source);
    spec.usage = DATA_TEST;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND,
                "no folder test or val with classes beside it; dataset.split: {test: 0.2} makes a "
                "test of it");

    make(dir, "val"); /* without an image of a: b stays class 1 */
    png_write(dir, "val/b", "1.png", 2, 2, 9);
    source = opened(&spec);
    struct data_record record;
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_int_eq(record.label, 1);
    ck_assert_int_eq(data_get_info(source)->classes, 3);
    data_close(source);

    png_write(dir, "val/d", "1.png", 2, 2, 9);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "class d is not among the 3");
    test_dir_remove(dir);
}
END_TEST

/* What has images in it is no part, whatever its name. */
START_TEST(classes_may_be_called_as_parts_are)
{
    static const char *const classes[] = {"train", "car", "test"};
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    struct data_spec spec = spec_of(dir);
    for (int i = 0; i < 2; i++) {
        png_write(dir, classes[i], "1.png", 2, 2, i);
    }
    for (int usage = 0; usage < 2; usage++) {
        struct data_record record;
        spec.usage = usage ? DATA_TEST : DATA_TRAIN;
        source = opened(&spec);
        ck_assert_int_eq(data_get_info(source)->classes, 2);
        ck_ms_ok(data_read(source, 1, &record, err));
        ck_assert_int_eq(record.label, 1); /* of train, behind car */
        ck_assert_uint_eq(*(const uint8_t *)record.values, 0);
        data_close(source);
    }
    spec.usage = DATA_TRAIN;
    png_write(dir, classes[2], "1.png", 2, 2, 2); /* train and test without classes are a mistake */
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "have no folders: each class is one");
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_part_with_an_image_beside_its_classes_is_named)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    const struct data_spec spec = spec_of(dir);
    make(dir, "train");
    png_write(dir, "train/a", "1.png", 2, 2, 1);
    png_write(dir, "train", "1.png", 2, 2, 1);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "/train has folders, as a part");
    test_dir_remove(dir);
}
END_TEST

/* It would be of no class, and nobody would hear that it is not read. */
START_TEST(an_image_beside_the_classes_is_named)
{
    char path[256];
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    struct data_spec spec = spec_of(dir);
    make(dir, "new");
    png_write(dir, "cat", "1.png", 2, 2, 1);
    png_write(dir, "dog", "1.png", 2, 2, 1);
    png_write(dir, ".", "b.PNG", 2, 2, 1);
    png_write(dir, ".", "c.jpg", 2, 2, 1);
    file_write(dir, "README.md", "pets", 4);
    png_write(dir, "new", "1.png", 2, 2, 1);
    for (int i = 0; i < 2; i++) { /* whose classes are folders, or named */
        ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID,
                    ": the image b.PNG lies beside the folders of the classes, and belongs to "
                    "none; put it into one of them, or elsewhere");
        snprintf(spec.class_names, sizeof(spec.class_names), "cat\ndog\nnew");
    }
    spec.class_names[0] = '\0';
    snprintf(spec.path, sizeof(spec.path), "%s/new/", dir);
    snprintf(path, sizeof(path),
             "where these are of one class, or not sorted, name the folder above: %s", dir);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, path);
    snprintf(path, sizeof(path), "%s/b.PNG", dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/c.jpg", dir);
    unlink(path);
    snprintf(spec.path, sizeof(spec.path), "%s", dir);
    data_close(opened(&spec));
    test_dir_remove(dir);
}
END_TEST

/* Of a set that could not be listed to its end nothing is trained. */
START_TEST(a_listing_that_breaks_off_is_an_error)
{
    enum { TRIES_MAX = 100 };
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    struct data_spec spec = spec_of(dir);
    make(dir, "train");
    make(dir, "val");
    png_write(dir, "train/a", "1.png", 2, 2, 1);
    png_write(dir, "train/b", "1.png", 2, 2, 1);
    png_write(dir, "val/a", "1.png", 2, 2, 1);
    spec.usage = _i ? DATA_TEST : DATA_TRAIN;
    int n = 0;
    for (; n < TRIES_MAX && source == NULL; n++) {
        struct ms_err err = {0, ""};
        entries_left = n;
        if (data_open(&spec, &source, &err) < 0) {
            ck_assert_int_eq(err.code, MS_E_IO);
            ck_assert_ptr_nonnull(strstr(err.text, "cannot be listed"));
        }
    }
    entries_left = -1;
    ck_assert_int_gt(n, 8);
    ck_assert_int_lt(n, TRIES_MAX);
    ck_assert_int_eq(data_get_info(source)->rows, _i ? 1 : 2);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* ---- beside a training ---- */

static const char *dir_of_training(struct data_spec *train)
{
    const char *dir = test_dir_make();
    char path[256];
    make(dir, "photos");
    make(dir, "other");
    png_write(dir, "photos/ant", "1.png", 2, 2, 1);
    png_write(dir, "photos/bee", "1.png", 2, 2, 2);
    png_write(dir, "photos/cat", "1.png", 2, 2, 3);
    snprintf(path, sizeof(path), "%s/photos", dir);
    *train = spec_of(path);
    return dir;
}

static struct data_spec spec_of_other(const char *dir)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/other", dir);
    struct data_spec spec = spec_of(path);
    spec.usage = DATA_TEST;
    spec.shape = (struct data_shape){3, 2, 2, 3, 0}; /* the training's */
    return spec;
}

/* Of a place of its own, too: by position an image of cat would have been counted as one of bee. */
START_TEST(what_is_tested_on_has_the_classes_of_the_training_by_name)
{
    struct data_spec train;
    const char *dir = dir_of_training(&train);
    const struct data_spec spec = spec_of_other(dir);
    struct data_source *source = NULL;
    struct data_record record;
    png_write(dir, "other/ant", "1.png", 2, 2, 7);
    png_write(dir, "other/cat", "1.png", 2, 2, 8);

    ck_ms_ok(data_open_beside(&spec, &train, &source, err));
    ck_assert_int_eq(data_get_info(source)->classes, 3);
    ck_assert_int_eq(data_get_info(source)->rows, 2);
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_int_eq(record.label, 0);
    ck_ms_ok(data_read(source, 1, &record, err));
    ck_assert_int_eq(record.label, 2);
    data_close(source);

    png_write(dir, "other/dog", "1.png", 2, 2, 9);
    ck_ms_fails(data_open_beside(&spec, &train, &source, err), MS_E_INVALID,
                "/other: class dog is not among the 3 that are trained (ant, bee, cat)");
    test_dir_remove(dir);
}
END_TEST

/* Names that the job has count more than what lies there: train/ of a test set is not trained. */
START_TEST(a_test_set_s_own_training_part_says_no_classes)
{
    struct data_spec train;
    const char *dir = dir_of_training(&train);
    const struct data_spec spec = spec_of_other(dir);
    struct data_source *source = NULL;
    struct data_record record;
    make(dir, "other/train");
    make(dir, "other/val");
    png_write(dir, "other/train/bee", "1.png", 2, 2, 7);
    png_write(dir, "other/train/dog", "1.png", 2, 2, 7);
    png_write(dir, "other/val/bee", "1.png", 2, 2, 8);
    ck_ms_ok(data_open_beside(&spec, &train, &source, err));
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_int_eq(record.label, 1);
    ck_assert_uint_eq(*(const uint8_t *)record.values, 8);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_test_set_may_have_no_image_of_a_class)
{
    struct data_spec train;
    const char *dir = dir_of_training(&train);
    struct data_spec spec = spec_of_other(dir);
    struct data_source *source = NULL;
    make(dir, "other/bee");
    png_write(dir, "other/ant", "1.png", 2, 2, 7);
    ck_ms_ok(data_open_beside(&spec, &train, &source, err));
    ck_assert_int_eq(data_get_info(source)->rows, 1);
    data_close(source);

    spec.shape.classes = 0; /* by itself its folders are its classes, and each has some */
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "folder bee has no JPEG or PNG");
    test_dir_remove(dir);
}
END_TEST

START_TEST(classes_are_known_by_name_where_the_training_is_gone)
{
    struct data_spec train;
    const char *dir = dir_of_training(&train);
    const struct data_spec spec = spec_of_other(dir);
    struct data_source *source = NULL;
    struct data_record record;
    png_write(dir, "other/bee", "1.png", 2, 2, 7);
    snprintf(train.path, sizeof(train.path), "%s/gone", dir);
    ck_ms_fails(data_open_beside(&spec, &train, &source, err), MS_E_NOT_FOUND,
                "which classes were trained is not known");
    ck_ms_fails(data_open_beside(&spec, &train, &source, err), MS_E_NOT_FOUND,
                "name them in dataset.class_names");

    snprintf(train.class_names, sizeof(train.class_names), "ant\ncat\nbee");
    ck_ms_ok(data_open_beside(&spec, &train, &source, err));
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_int_eq(record.label, 2);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* A job that was settled elsewhere finds the same folders, or does not train. */
START_TEST(what_is_trained_on_has_the_classes_that_are_named)
{
    static const struct {
        const char *names, *text;
    } bad[] = {
        {"ant\nbee", "class cat is not among the 2 that are trained (ant, bee)"},
        {"ant\nbee\ncat\ndog", "has no folder dog"},
        {"ant\nbee\ncat\nbee", "dataset.class_names has the class bee twice"},
        {"ant\nbee\n../photos/cat", "'../photos/cat' of dataset.class_names is no name"},
        {"ant\nbee\n..", "'..' of dataset.class_names is no name"},
    };
    struct data_spec train;
    const char *dir = dir_of_training(&train);
    struct data_source *source = NULL;
    struct data_record record;
    snprintf(train.class_names, sizeof(train.class_names), "cat\nant\nbee");
    source = opened(&train);
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_uint_eq(*(const uint8_t *)record.values, 3);
    ck_assert_int_eq(record.label, 0);
    data_close(source);
    for (size_t i = 0; i < MS_ARRAY_SIZE(bad); i++) {
        struct ms_err err = {0, ""};
        snprintf(train.class_names, sizeof(train.class_names), "%s", bad[i].names);
        ck_assert_int_lt(data_open(&train, &source, &err), 0);
        ck_assert_msg(strstr(err.text, bad[i].text) != NULL, "%s", err.text);
    }
    test_dir_remove(dir);
}
END_TEST

START_TEST(images_of_other_sizes_want_one_to_be_made)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    struct data_record record;
    struct data_spec spec = spec_of(dir);
    png_write(dir, "a", "1.png", 4, 4, 1);
    png_write(dir, "a", "2.png", 6, 9, 1);
    source = opened(&spec);
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_ms_fails(data_read(source, 1, &record, err), MS_E_INVALID, "a/2.png has 6 x 9 pixels");
    ck_ms_fails(data_read(source, 1, &record, err), MS_E_INVALID, "size: [4, 4]");
    data_close(source);

    spec.height = 5;
    spec.width = 3;
    source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->height, 5);
    ck_assert_int_eq(data_get_info(source)->width, 3);
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_ms_ok(data_read(source, 1, &record, err));
    data_close(source);
    spec.height = 0; /* as the job says, without a look at the first one */
    spec.width = 0;
    spec.shape = (struct data_shape){3, 6, 9, 1, 0};
    source = opened(&spec);
    ck_ms_ok(data_read(source, 1, &record, err));
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* Of 200 each third or so: another one of those is other data; the rest costs no decoding. */
START_TEST(few_images_tell_a_set_from_another)
{
    enum { N = 200 };
    const char *dir = test_dir_make();
    const struct data_spec spec = spec_of(dir);
    struct data_identity ids[3];
    char name[16];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "%03d.png", i);
        png_write(dir, "a", name, 2, 2, i);
    }
    for (int i = 0; i < 3; i++) {
        if (i == 1) {
            file_write(dir, "a/001.png", "none", 4);
        } else if (i == 2) {
            png_write(dir, "a", "199.png", 2, 2, 0);
        }
        struct data_source *source = opened(&spec);
        ck_ms_ok(data_identify(source, &ids[i], err));
        data_close(source);
    }
    ck_assert(data_identity_is_same(&ids[0], &ids[1]));
    ck_assert(!data_identity_is_same(&ids[0], &ids[2]));
    test_dir_remove(dir);
}
END_TEST

START_TEST(grey_is_one_channel)
{
    const char *dir = test_dir_make();
    struct data_record record;
    struct data_spec spec = spec_of(dir);
    png_write(dir, "a", "1.png", 1, 1, 100); /* 100, 101, 102 */
    spec.colours = DATA_GREY;
    struct data_source *source = opened(&spec);
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_int_eq(data_get_info(source)->channels, 1);
    ck_assert_uint_eq(*(const uint8_t *)record.values, 101);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* ---- threads ---- */

enum { IMAGES = 61, BATCH = 8 };

static void write_many(const char *dir)
{
    for (int i = 0; i < IMAGES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%03d.png", i);
        png_write(dir, i % 3 == 0 ? "a" : "b", name, 16, 16, i);
    }
}

static uint32_t crc_of_source(struct data_source *source, int threads)
{
    static const struct transform list[] = {
        {.kind = TRANSFORM_RANDOM_CROP, .height = 12, .width = 12},
        {.kind = TRANSFORM_RANDOM_HORIZONTAL_FLIP, .probability = 0.5}};
    const struct loader_config cfg = {.source = source,
                                      .transforms = list,
                                      .n_transforms = 2,
                                      .batch = BATCH,
                                      .world = 1,
                                      .shuffle = 1,
                                      .seed = 7,
                                      .epochs = 2,
                                      .threads = threads};
    struct loader *loader = NULL;
    struct batch batch;
    uint32_t crc = 0;
    ck_ms_ok(loader_create(&cfg, &loader, err));
    while (loader_next(loader, &batch, NULL) == 1) {
        crc = (uint32_t)crc32_z(crc, batch.images.values, batch.images.count * sizeof(float));
        crc = (uint32_t)crc32_z(crc, batch.labels.values, batch.labels.count * sizeof(int32_t));
        loader_release(loader);
    }
    loader_destroy(loader);
    return crc;
}

static uint32_t crc_of_epoch(const struct data_spec *spec, int threads)
{
    struct data_source *source = opened(spec);
    const uint32_t crc = crc_of_source(source, threads);
    data_close(source);
    return crc;
}

START_TEST(no_bit_depends_on_the_threads)
{
    const char *dir = test_dir_make();
    write_many(dir);
    const struct data_spec spec = spec_of(dir);
    const uint32_t one = crc_of_epoch(&spec, 1);
    for (int threads = 2; threads <= 7; threads++) {
        ck_assert_uint_eq(crc_of_epoch(&spec, threads), one);
    }
    test_dir_remove(dir);
}
END_TEST

/* Twenty folders, and more ways through them than there is time for. */
START_TEST(links_that_fan_out_have_an_end)
{
    enum { LEVELS = 15, LINKS = 8 };
    const char *dir = test_dir_make();
    char path[300];
    char target[300];
    png_write(dir, "a", "0.png", 2, 2, 1);
    png_write(dir, "b", "0.png", 2, 2, 2);
    for (int level = 0; level < LEVELS; level++) {
        snprintf(path, sizeof(path), "%s/.l%d", dir, level);
        ck_assert_int_eq(mkdir(path, 0755), 0);
        for (int i = 0; i < LINKS && level < LEVELS - 1; i++) {
            snprintf(path, sizeof(path), "%s/.l%d/to%d", dir, level, i);
            snprintf(target, sizeof(target), "%s/.l%d", dir, level + 1);
            ck_assert_int_eq(symlink(target, path), 0);
        }
    }
    snprintf(path, sizeof(path), "%s/a/more", dir);
    snprintf(target, sizeof(target), "%s/.l0", dir);
    ck_assert_int_eq(symlink(target, path), 0);
    const struct data_spec spec = spec_of(dir);
    struct data_source *source = NULL;

    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID,
                "class a has more than 100000 folders behind links; do they lead to each other?");

    test_dir_remove(dir);
}
END_TEST

static int first_pixel(struct data_source *source, int64_t row)
{
    struct data_record record;
    ck_ms_ok(data_read(source, row, &record, err));
    return ((const uint8_t *)record.values)[0];
}

/* Of all or of some: until files are no more than a moment old they are not kept. */
START_TEST(what_is_kept_decoded_changes_no_bit)
{
    const char *dir = test_dir_make();
    write_many(dir);
    const struct data_spec spec = spec_of(dir);
    const uint32_t without = crc_of_epoch(&spec, 1);
    for (int64_t room = 1 << 20; room >= 1 << 15; room >>= 5) {
        struct data_source *first = opened(&spec);
        struct data_source *second = opened(&spec);
        data_keep_decoded(first, room);
        data_keep_decoded(second, room);
        const int64_t most = room == 1 << 20 ? IMAGES : 1;
        do {
            ck_assert_uint_eq(crc_of_source(first, 3), without);
            ck_assert_uint_eq(crc_of_source(second, 1), without);
        } while (data_decoded_count(first) < most);
        ck_assert_int_eq(data_decoded_count(first), data_decoded_count(second));
        ck_assert(most > 1 || data_decoded_count(first) < IMAGES);
        data_close(first);
        data_close(second);
    }
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_file_that_changes_is_decoded_anew)
{
    const char *dir = test_dir_make();
    char path[512];
    struct ms_err said = {0, ""};
    struct data_record record;
    write_many(dir);
    struct data_spec spec = spec_of(dir);
    spec.has_split = 1; /* a part of it, too, finds its own */
    spec.split = (struct data_spec_split){.test = 0.25, .seed = 3};
    struct data_source *source = opened(&spec);
    data_keep_decoded(source, 1 << 20);
    data_name_record(source, 5, path, sizeof(path));
    const int before = first_pixel(source, 5);
    while (data_decoded_count(source) == 0) {
        ck_assert_int_eq(first_pixel(source, 5), before);
    }
    ck_assert_int_eq(first_pixel(source, 5), before);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_lt(data_read(source, 5, &record, &said), 0);
    ck_assert_ptr_nonnull(strstr(said.text, path));
    const char folder[] = {path[strlen(dir) + 1], '\0'};
    png_write(dir, folder, strrchr(path, '/') + 1, 16, 16, before + 1);
    ck_assert_int_eq(first_pixel(source, 5), before + 1);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_damaged_image_ends_the_loader_by_name)
{
    const char *dir = test_dir_make();
    struct loader *loader = NULL;
    struct batch batch;
    struct ms_err said = {0, ""};
    write_many(dir);
    file_write(dir, "b/040.png", "\x89PNG\r\n\x1A\nhello", 13);
    file_write(dir, "b/041.png", "nothing", 7);
    const struct data_spec spec = spec_of(dir);
    struct data_source *source = opened(&spec);
    const struct loader_config cfg = {
        .source = source, .batch = IMAGES, .world = 1, .epochs = 1, .threads = 4};
    ck_ms_ok(loader_create(&cfg, &loader, err));
    ck_assert_int_eq(loader_next(loader, &batch, &said), MS_E_INVALID);
    ck_assert_ptr_nonnull(strstr(said.text, "b/040.png is truncated or damaged"));
    loader_destroy(loader);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* ---- what is no such folder ---- */

START_TEST(what_is_wrong_with_a_folder_is_named)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    struct data_spec spec = spec_of(dir);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "each class is one");
    make(dir, "a");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "folder a has no JPEG or PNG");
    file_write(dir, "a/x.bmp", "BM", 2);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "a/x.bmp: JPEG and PNG");
    char path[256];
    snprintf(path, sizeof(path), "%s/a/x.bmp", dir);
    unlink(path);
    file_write(dir, "a/x.png", "hello", 5);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "a/x.png is neither");
    make(dir, "test");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "no folder train");
    test_dir_remove(dir);
}
END_TEST

/* A link to a folder, or to an image, outside of the roots. */
START_TEST(links_out_of_the_roots_are_refused)
{
    const char *dir = test_dir_make();
    char inside[256];
    char path[280];
    struct data_source *source = NULL;
    struct data_record record;
    make(dir, "in");
    make(dir, "out");
    png_write(dir, "out", "1.png", 2, 2, 1);
    snprintf(inside, sizeof(inside), "%s/in", dir);
    png_write(inside, "a", "0.png", 2, 2, 1);
    snprintf(path, sizeof(path), "%s/a/1.png", inside);
    ck_assert_int_eq(symlink("../../out/1.png", path), 0);
    ck_ms_ok(data_path_restrict("DATA", inside, "any", err));
    const struct data_spec spec = spec_of(inside);

    source = opened(&spec);

    ck_ms_ok(data_read(source, 0, &record, err));
    ck_ms_fails(data_read(source, 1, &record, err), MS_E_REFUSED, "data_roots");
    data_close(source);
    snprintf(path, sizeof(path), "%s/b", inside);
    ck_assert_int_eq(symlink("../out", path), 0);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_REFUSED, "data_roots");
    test_dir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image_folder");
    TCase *tc = test_case_create("image_folder");
    tcase_add_test(tc, classes_and_images_are_in_the_order_of_their_names);
    tcase_add_test(tc, parts_are_folders_and_training_says_the_classes);
    tcase_add_test(tc, classes_may_be_called_as_parts_are);
    tcase_add_test(tc, a_part_with_an_image_beside_its_classes_is_named);
    tcase_add_test(tc, an_image_beside_the_classes_is_named);
    tcase_add_loop_test(tc, a_listing_that_breaks_off_is_an_error, 0, 2);
    tcase_add_test(tc, what_is_tested_on_has_the_classes_of_the_training_by_name);
    tcase_add_test(tc, a_test_set_s_own_training_part_says_no_classes);
    tcase_add_test(tc, a_test_set_may_have_no_image_of_a_class);
    tcase_add_test(tc, classes_are_known_by_name_where_the_training_is_gone);
    tcase_add_test(tc, what_is_trained_on_has_the_classes_that_are_named);
    tcase_add_test(tc, images_of_other_sizes_want_one_to_be_made);
    tcase_add_test(tc, few_images_tell_a_set_from_another);
    tcase_add_test(tc, grey_is_one_channel);
    tcase_add_test(tc, no_bit_depends_on_the_threads);
    tcase_add_test(tc, links_that_fan_out_have_an_end);
    tcase_add_test(tc, what_is_kept_decoded_changes_no_bit);
    tcase_add_test(tc, a_file_that_changes_is_decoded_anew);
    tcase_add_test(tc, a_damaged_image_ends_the_loader_by_name);
    tcase_add_test(tc, what_is_wrong_with_a_folder_is_named);
    tcase_add_test(tc, links_out_of_the_roots_are_refused);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
