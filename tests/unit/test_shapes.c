/* test_shapes.c - drawn shapes: ten classes, pure in seed and row, files in CIFAR-10's layout */
#include "libworker/data/data.h"
#include "tests/test.h"

#include <sys/stat.h>

enum { RECORD = 3073, PIXELS = 3072 };

static struct data_source *open_shapes(uint64_t seed, enum data_usage usage, int64_t samples)
{
    const struct data_spec spec = {
        .kind = DATA_SHAPES, .usage = usage, .samples = samples, .seed = seed};
    struct data_source *source = NULL;
    ck_ms_ok(data_open(&spec, &source, err));
    return source;
}

static int32_t read_row(struct data_source *source, int64_t row, float image[PIXELS])
{
    struct data_record record = {.label = -1};
    ck_ms_ok(data_read(source, row, &record, err));
    for (int p = 0; p < PIXELS; p++) {
        image[p] = (float)((const uint8_t *)record.values)[p];
    }
    return record.label;
}

START_TEST(sizes_are_those_of_cifar10)
{
    struct data_source *train = open_shapes(1, DATA_TRAIN, 0);
    struct data_source *test = open_shapes(1, DATA_TEST, 0);
    const struct data_info *info = data_get_info(train);
    ck_assert_int_eq(info->rows, 10000);
    ck_assert_int_eq(info->channels, 3);
    ck_assert_int_eq(info->height, 32);
    ck_assert_int_eq(info->width, 32);
    ck_assert_int_eq(info->classes, 10);
    ck_assert_int_eq(data_get_info(test)->rows, 2000);
    data_close(train);
    data_close(test);
}
END_TEST

START_TEST(classes_come_about_equally_often_and_in_no_pattern)
{
    struct data_source *source = open_shapes(1, DATA_TRAIN, 0);
    static float image[PIXELS];
    int count[10] = {0};
    int pairs = 0;
    int32_t last = -1;
    for (int64_t i = 0; i < 10000; i++) {
        int32_t label = read_row(source, i, image);
        ck_assert_int_ge(label, 0);
        ck_assert_int_lt(label, 10);
        count[label]++;
        pairs += label == last;
        last = label;
    }
    for (int k = 0; k < 10; k++) { /* 1000 expected, standard deviation 30 */
        ck_assert_int_gt(count[k], 850);
        ck_assert_int_lt(count[k], 1150);
    }
    ck_assert_int_gt(pairs, 850);
    ck_assert_int_lt(pairs, 1150);
    data_close(source);
}
END_TEST

START_TEST(a_row_depends_on_seed_part_and_row_only)
{
    struct data_source *a = open_shapes(1, DATA_TRAIN, 0);
    struct data_source *b = open_shapes(1, DATA_TRAIN, 50);
    struct data_source *other[2] = {open_shapes(2, DATA_TRAIN, 0), open_shapes(1, DATA_TEST, 0)};
    static float x[PIXELS];
    static float y[PIXELS];
    for (int64_t i = 0; i < 50; i++) {
        int32_t label = read_row(a, i, x);
        ck_assert_int_eq(read_row(b, i, y), label);
        ck_assert_mem_eq(x, y, sizeof(x));
        for (int k = 0; k < 2; k++) {
            read_row(other[k], i, y);
            ck_assert_mem_ne(x, y, sizeof(x));
        }
    }
    data_close(a);
    data_close(b);
    data_close(other[0]);
    data_close(other[1]);
}
END_TEST

/* If colour or place gave the class away, a mean over the class would differ from the others'. */
START_TEST(colour_says_nothing_about_the_class)
{
    struct data_source *source = open_shapes(1, DATA_TRAIN, 0);
    static float image[PIXELS];
    double sum[10][3] = {{0}};
    int count[10] = {0};
    for (int64_t i = 0; i < 10000; i++) {
        int32_t label = read_row(source, i, image);
        count[label]++;
        for (int p = 0; p < PIXELS; p++) {
            sum[label][p / 1024] += image[p] / 1024;
        }
    }
    for (int k = 0; k < 10; k++) {
        for (int c = 0; c < 3; c++) { /* of about 1000 means with standard deviation 50 */
            ck_assert_double_eq_tol(sum[k][c] / count[k], 127.5, 10);
        }
    }
    data_close(source);
}
END_TEST

static int64_t told;

static void on_progress(void *arg, int64_t done, int64_t total)
{
    ck_assert_ptr_eq(arg, &told);
    ck_assert_int_gt(done, told);
    ck_assert_int_eq(total, 1700);
    told = done;
}

START_TEST(files_hold_the_same_rows_for_the_real_reader)
{
    const char *dir = test_dir_make();
    char path[128];
    static float x[PIXELS];
    static float y[PIXELS];
    snprintf(path, sizeof(path), "%s/shapes", dir); /* is made */
    told = 0;

    ck_ms_ok(data_write_shapes(path, 1500, 200, 5, on_progress, &told, err));

    ck_assert_int_eq(told, 1700);
    for (int is_test = 0; is_test < 2; is_test++) {
        enum data_usage usage = is_test ? DATA_TEST : DATA_TRAIN;
        struct data_spec spec = {.kind = DATA_CIFAR10, .usage = usage};
        snprintf(spec.path, sizeof(spec.path), "%s", path);
        struct data_source *files = NULL;
        ck_ms_ok(data_open(&spec, &files, err));
        struct data_source *drawn = open_shapes(5, usage, 0);
        ck_assert_int_eq(data_get_info(files)->rows, is_test ? 200 : 1500);
        for (int64_t i = 0; i < data_get_info(files)->rows; i++) {
            ck_assert_int_eq(read_row(files, i, x), read_row(drawn, i, y));
            ck_assert_mem_eq(x, y, sizeof(x));
        }
        data_close(files);
        data_close(drawn);
    }
    test_dir_remove(dir);
}
END_TEST

START_TEST(files_have_ten_thousand_rows_each_and_names_beside_them)
{
    const char *dir = test_dir_make();
    char path[128];
    struct stat st;

    ck_ms_ok(data_write_shapes(dir, 10001, 1, 5, NULL, NULL, err));

    snprintf(path, sizeof(path), "%s/data_batch_1.bin", dir);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 10000 * RECORD);
    snprintf(path, sizeof(path), "%s/data_batch_2.bin", dir);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, RECORD);
    char text[256] = "";
    snprintf(path, sizeof(path), "%s/batches.meta.txt", dir);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, file), 0);
    fclose(file);
    ck_assert_str_eq(
        text, "circle\nring\nsquare\nframe\ntriangle\nstar\ncross\nstripes\nhalf\nangle\n\n");
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_folder_that_cannot_be_written_is_named)
{
    ck_ms_fails(data_write_shapes("/nowhere/at/all", 1, 1, 1, NULL, NULL, err), MS_E_IO,
                "folder /nowhere/at/all cannot be made");
    ck_ms_fails(data_write_shapes("/dev/null", 1, 1, 1, NULL, NULL, err), MS_E_IO, "/dev/null");
    ck_ms_fails(data_write_shapes("/tmp", 0, 1, 1, NULL, NULL, err), MS_E_INVALID,
                "at least one image");
}
END_TEST

START_TEST(a_full_disk_leaves_no_half_file)
{
    const char *dir = test_dir_make();
    char path[128];
    snprintf(path, sizeof(path), "%s/data_batch_1.bin.part", dir);
    ck_assert_int_eq(symlink("/dev/full", path), 0);

    ck_ms_fails(data_write_shapes(dir, 100, 1, 1, NULL, NULL, err), MS_E_IO, "No space left");

    snprintf(path, sizeof(path), "%s/data_batch_1.bin", dir);
    ck_assert_int_ne(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "%s/data_batch_1.bin.part", dir);
    ck_assert_int_ne(access(path, F_OK), 0);
    test_dir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shapes");
    TCase *tc = tcase_create("shapes");
    tcase_add_test(tc, sizes_are_those_of_cifar10);
    tcase_add_test(tc, classes_come_about_equally_often_and_in_no_pattern);
    tcase_add_test(tc, a_row_depends_on_seed_part_and_row_only);
    tcase_add_test(tc, colour_says_nothing_about_the_class);
    tcase_add_test(tc, files_hold_the_same_rows_for_the_real_reader);
    tcase_add_test(tc, files_have_ten_thousand_rows_each_and_names_beside_them);
    tcase_add_test(tc, a_folder_that_cannot_be_written_is_named);
    tcase_add_test(tc, a_full_disk_leaves_no_half_file);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
