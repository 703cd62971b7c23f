/* test_split.c - parts of a data set by seed: each record is in one of them, and always in the same
 */
#include "libworker/data/data.h"
#include "tests/unit/image_files.h"

enum { ROWS = 103 };

static const char *dir;

/* Record i has the value i. */
static struct data_spec spec_of(enum data_usage usage, double test, uint64_t seed)
{
    struct data_spec spec = {
        .kind = DATA_NUMPY, .usage = usage, .has_split = 1, .split = {test, seed}};
    snprintf(spec.path, sizeof(spec.path), "%s", dir);
    return spec;
}

static void write_rows(int rows)
{
    float x[ROWS];
    int32_t y[ROWS];
    char shape[32];
    for (int i = 0; i < rows; i++) {
        x[i] = (float)i;
        y[i] = i % 5;
    }
    snprintf(shape, sizeof(shape), "(%d, 1)", rows);
    npy_write(dir, "x.npy", "<f4", shape, x, (size_t)rows * 4);
    npy_write(dir, "y.npy", "<i4", shape, y, (size_t)rows * 4);
}

/* Marks the records of a part, which rise; returns how many. */
static int mark(const struct data_spec *spec, int *marks, struct data_identity *ret)
{
    struct data_source *source = NULL;
    struct data_record record;
    float last = -1;
    ck_ms_ok(data_open(spec, &source, err));
    const int n = (int)data_get_info(source)->rows;
    for (int i = 0; i < n; i++) {
        ck_ms_ok(data_read(source, i, &record, err));
        const float value = *(const float *)record.values;
        ck_assert_float_gt(value, last);
        ck_assert_int_eq(record.label, (int)value % 5);
        char name[64];
        char where[512];
        snprintf(name, sizeof(name), "/y.npy: row %d", (int)value);
        data_name_record(source, i, where, sizeof(where));
        ck_assert_ptr_nonnull(strstr(where, name)); /* of the whole */
        marks[(int)value]++;
        last = value;
    }
    ck_assert_int_eq(data_get_info(source)->classes, 5);
    ck_ms_ok(data_identify(source, ret, err));
    ck_ms_ok(data_verify(source, err));
    data_close(source);
    return n;
}

START_TEST(each_record_is_in_one_part)
{
    static const double shares[] = {0.01, 0.2, 0.5, 0.99};
    static const int tests[] = {1, 21, 52, 102};
    int marks[ROWS] = {0};
    struct data_identity train;
    struct data_identity test;
    write_rows(ROWS);
    const struct data_spec rest = spec_of(DATA_TRAIN, shares[_i], 7);
    const struct data_spec part = spec_of(DATA_TEST, shares[_i], 7);
    ck_assert_int_eq(mark(&rest, marks, &train), ROWS - tests[_i]);
    ck_assert_int_eq(mark(&part, marks, &test), tests[_i]);
    for (int i = 0; i < ROWS; i++) {
        ck_assert_int_eq(marks[i], 1);
    }
    ck_assert(!data_identity_is_same(&train, &test));
}
END_TEST

START_TEST(which_one_follows_from_the_seed)
{
    int first[ROWS] = {0};
    int again[ROWS] = {0};
    int other[ROWS] = {0};
    struct data_identity a;
    struct data_identity b;
    struct data_identity c;
    write_rows(ROWS);
    const struct data_spec one = spec_of(DATA_TEST, 0.3, 1);
    const struct data_spec two = spec_of(DATA_TEST, 0.3, 2);
    mark(&one, first, &a);
    mark(&one, again, &b);
    mark(&two, other, &c);
    ck_assert_mem_eq(first, again, sizeof(first));
    ck_assert_mem_ne(first, other, sizeof(first));
    ck_assert(data_identity_is_same(&a, &b));
    ck_assert(!data_identity_is_same(&a, &c));
    /* fixed for ever, jobs are resumed with it: splitmix64 and Fisher-Yates by thirty lines of
     * Python, part(103, 0.3, 1) */
    static const int want[] = {0,  2,  6,  11, 13, 24, 26, 30, 31, 36, 42, 44, 46, 51, 63, 65,
                               67, 69, 70, 72, 74, 75, 76, 77, 81, 89, 90, 91, 93, 94, 97};
    for (size_t i = 0; i < MS_ARRAY_SIZE(want); i++) {
        ck_assert_int_eq(first[want[i]], 1);
    }
}
END_TEST

START_TEST(a_part_without_records_is_refused)
{
    struct data_source *source = NULL;
    write_rows(2);
    const struct data_spec spec = spec_of(DATA_TRAIN, 0.1, 1);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "leaves one of the parts empty");
}
END_TEST

START_TEST(images_are_decoded_from_their_part)
{
    struct data_spec spec = spec_of(DATA_TEST, 0.5, 3);
    char path[256];
    spec.kind = DATA_IMAGE_FOLDER;
    snprintf(path, sizeof(path), "%s/train", dir);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d.png", i);
        png_write(dir, "train/a", name, 2, 2, 10 * i);
    }
    struct data_source *source = NULL;
    struct data_reader *reader = NULL;
    ck_ms_ok(data_open(&spec, &source, err));
    ck_assert_int_eq(data_get_info(source)->rows, 5);
    ck_ms_ok(data_reader_create(source, &reader, err));
    for (int i = 0; i < 5; i++) {
        struct data_record one;
        struct data_record two;
        ck_ms_ok(data_read(source, i, &one, err));
        ck_ms_ok(data_reader_read(reader, i, &two, err));
        ck_assert_mem_eq(one.values, two.values, 12);
    }
    data_reader_destroy(reader);
    data_close(source);
}
END_TEST

START_TEST(parts_that_are_there_are_not_split)
{
    static const char *const parts[] = {"x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy"};
    struct data_spec spec = spec_of(DATA_TRAIN, 0.5, 3);
    struct data_source *source = NULL;
    const int32_t values[4] = {0, 1, 0, 1};
    for (size_t i = 0; i < MS_ARRAY_SIZE(parts); i++) {
        npy_write(dir, parts[i], parts[i][0] == 'x' ? "<f4" : "<i4",
                  parts[i][0] == 'x' ? "(4, 1)" : "(4,)", values, sizeof(values));
    }
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID,
                "has parts of its own (x_train, x_test), and dataset.split makes parts of what has "
                "none; leave the key out, or name one of them (dataset.inputs and targets)");
    snprintf(spec.inputs, sizeof(spec.inputs), "x_train");
    snprintf(spec.targets, sizeof(spec.targets), "y_train");
    ck_ms_ok(data_open(&spec, &source, err));
    data_close(source);

    spec = spec_of(DATA_TEST, 0.5, 3);
    spec.kind = DATA_CSV;
    file_write(dir, "train.csv", "1,2,0\n1,2,1\n", 12);
    ck_ms_ok(data_open(&spec, &source, err));
    data_close(source);
    file_write(dir, "test.csv", "1,2,0\n", 6);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID,
                "has parts of its own (train.csv, test.csv), and");

    spec.kind = DATA_IMAGE_FOLDER;
    for (int i = 0; i < 2; i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", dir, i == 0 ? "train" : "val");
        ck_assert_int_eq(mkdir(path, 0755), 0);
        png_write(dir, i == 0 ? "train/a" : "val/a", "0.png", 1, 1, 0);
    }
    ck_ms_fails(
        data_open(&spec, &source, err), MS_E_INVALID,
        "has parts of its own (train, val), and dataset.split makes parts of what has none; "
        "leave the key out, or name one of them (dataset.path)");
}
END_TEST

static void make_dir(void)
{
    dir = test_dir_make();
}

static void remove_dir(void)
{
    test_dir_remove(dir);
}

int main(void)
{
    Suite *suite = suite_create("split");
    TCase *tc = test_case_create("split");
    tcase_add_checked_fixture(tc, make_dir, remove_dir);
    tcase_add_loop_test(tc, each_record_is_in_one_part, 0, 4);
    tcase_add_test(tc, which_one_follows_from_the_seed);
    tcase_add_test(tc, a_part_without_records_is_refused);
    tcase_add_test(tc, images_are_decoded_from_their_part);
    tcase_add_test(tc, parts_that_are_there_are_not_split);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
