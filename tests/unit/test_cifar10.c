/* test_cifar10.c - CIFAR-10's files: which ones, in which order, and what a bad one is told */
#include "libworker/data/data.h"
#include "tests/unit/data_files.h"

#include <sys/stat.h>

static int open_at(const char *path, enum data_usage usage, struct data_source **ret,
                   struct ms_err *err)
{
    struct data_spec spec = {.kind = DATA_CIFAR10, .usage = usage};
    snprintf(spec.path, sizeof(spec.path), "%s", path);
    return data_open(&spec, ret, err);
}

static int32_t label_of(struct data_source *source, int64_t row)
{
    struct data_record record = {.label = -1};
    ck_ms_ok(data_read(source, row, &record, err));
    return record.label;
}

START_TEST(files_are_chosen_by_usage_and_sorted_by_name)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    cifar_write(dir, "data_batch_2.bin", 2, 3);
    cifar_write(dir, "data_batch_1.bin", 3, 0);
    cifar_write(dir, "test_batch.bin", 1, 9);
    cifar_write(dir, ".data_batch_0.bin", 1, 7);
    file_write(dir, "batches.meta.txt", "cat\n", 4);

    ck_ms_ok(open_at(dir, DATA_TRAIN, &source, err));
    ck_assert_int_eq(data_get_info(source)->rows, 5);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(label_of(source, i), i);
    }
    data_close(source);
    ck_ms_ok(open_at(dir, DATA_TEST, &source, err));
    ck_assert_int_eq(data_get_info(source)->rows, 1);
    ck_assert_int_eq(label_of(source, 0), 9);
    data_close(source);
    ck_ms_ok(open_at(dir, DATA_ALL, &source, err));
    ck_assert_int_eq(data_get_info(source)->rows, 6);
    ck_assert_int_eq(label_of(source, 5), 9);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(pixels_are_the_bytes_as_floats_plane_by_plane)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    struct data_record record;
    cifar_write(dir, "data_batch_1.bin", 2, 4);
    ck_ms_ok(open_at(dir, DATA_TRAIN, &source, err));
    const struct data_info *info = data_get_info(source);
    ck_assert_int_eq(info->channels, 3);
    ck_assert_int_eq(info->height, 32);
    ck_assert_int_eq(info->width, 32);
    ck_assert_int_eq(info->classes, 10);
    ck_assert_int_eq(info->target_width, 0);

    ck_assert_int_eq(info->dtype, MS_U8);

    ck_ms_ok(data_read(source, 1, &record, err));

    ck_assert_int_eq(record.label, 5);
    ck_assert_ptr_null(record.targets);
    for (int p = 0; p < 3072; p++) {
        ck_assert_uint_eq(((const uint8_t *)record.values)[p], (1 + p) % 256);
    }
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(the_path_may_name_the_environment)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    cifar_write(dir, "data_batch_1.bin", 1, 0);
    setenv("MSCHED_TEST_CIFAR", dir, 1);

    ck_ms_ok(open_at("${MSCHED_TEST_CIFAR}", DATA_TRAIN, &source, err));
    data_close(source);
    unsetenv("MSCHED_TEST_CIFAR");
    ck_ms_fails(open_at("${MSCHED_TEST_CIFAR}", DATA_TRAIN, &source, err), MS_E_INVALID,
                "the environment has no MSCHED_TEST_CIFAR");
    test_dir_remove(dir);
}
END_TEST

static const struct {
    long size;
    const char *part;
} bad_sizes[] = {
    {0, "has 0 bytes"}, {3072, "has 3072 bytes"}, {3074, "no whole number of records of 3073"}};

START_TEST(a_truncated_file_is_named_with_its_size)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    uint8_t *bytes = cifar_make(2, 0);
    cifar_write(dir, "data_batch_1.bin", 2, 0);
    file_write(dir, "data_batch_2.bin", bytes, (size_t)bad_sizes[_i].size);
    free(bytes);

    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_INVALID, bad_sizes[_i].part);
    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_INVALID, "data_batch_2.bin");
    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_INVALID, "get cifar-10-binary.tar.gz");
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_label_out_of_range_is_named_with_file_and_record)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    struct data_record record;
    uint8_t *bytes = cifar_make(3, 0);
    cifar_write(dir, "data_batch_1.bin", 5, 0);
    bytes[2 * 3073] = 10;
    file_write(dir, "data_batch_2.bin", bytes, 3 * 3073);
    free(bytes);
    ck_ms_ok(open_at(dir, DATA_TRAIN, &source, err));

    ck_ms_ok(data_read(source, 6, &record, err));
    ck_ms_fails(data_read(source, 7, &record, err), MS_E_INVALID,
                "data_batch_2.bin: record 2 has label 10");
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_file_that_shrinks_while_open_is_named)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    struct data_record record;
    char path[128];
    cifar_write(dir, "data_batch_1.bin", 3, 0);
    ck_ms_ok(open_at(dir, DATA_TRAIN, &source, err));
    snprintf(path, sizeof(path), "%s/data_batch_1.bin", dir);
    ck_assert_int_eq(truncate(path, 3073 + 100), 0);

    ck_ms_ok(data_read(source, 0, &record, err));
    ck_ms_fails(data_read(source, 1, &record, err), MS_E_IO, "became shorter");
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_folder_without_the_files_gets_the_way_out)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    char path[128];
    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_NOT_FOUND, "has no *data_batch*.bin");
    cifar_write(dir, "data_batch_1", 1, 0);
    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_NOT_FOUND, "Python version");
    snprintf(path, sizeof(path), "%s/cifar-10-batches-bin", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_ms_fails(open_at(dir, DATA_TEST, &source, err), MS_E_NOT_FOUND,
                "a folder cifar-10-batches-bin inside");
    snprintf(path, sizeof(path), "%s/data_batch_1", dir);
    ck_ms_fails(open_at(path, DATA_TRAIN, &source, err), MS_E_INVALID, "is no folder");
    ck_ms_fails(open_at("/nowhere/at/all", DATA_TRAIN, &source, err), MS_E_NOT_FOUND,
                "/nowhere/at/all cannot be opened");
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_folder_named_like_a_batch_is_refused)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    char path[128];
    snprintf(path, sizeof(path), "%s/data_batch_1.bin", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_INVALID, "is no regular file");
    test_dir_remove(dir);
}
END_TEST

START_TEST(the_real_data_have_their_published_labels)
{
    static const int want[10] = {1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981};
    char path[512];
    struct data_source *source = NULL;
    int count[10] = {0};
    if (test_shared() == NULL) {
        test_skip_note("the_real_data_have_their_published_labels");
        return;
    }
    snprintf(path, sizeof(path), "%s/data/cifar-10-batches-bin", test_shared());
    ck_ms_ok(open_at(path, DATA_ALL, &source, err));
    ck_assert_int_eq(data_get_info(source)->rows, 60000);
    for (int64_t i = 0; i < 10000; i++) {
        count[label_of(source, i)]++;
    }
    for (int k = 0; k < 10; k++) {
        ck_assert_int_eq(count[k], want[k]);
    }
    data_close(source);
}
END_TEST

/* ---- CIFAR-100 ---- */

static int open_100(const char *path, enum data_usage usage, struct data_source **ret,
                    struct ms_err *err)
{
    struct data_spec spec = {.kind = DATA_CIFAR100, .usage = usage};
    snprintf(spec.path, sizeof(spec.path), "%s", path);
    return data_open(&spec, ret, err);
}

/* A record: the coarse label, the fine one, 3,072 pixels. */
START_TEST(cifar100_has_fine_and_coarse_labels)
{
    enum { RECORD = 3074 };
    const char *dir = test_dir_make();
    static uint8_t bytes[3 * RECORD];
    struct data_source *source = NULL;
    struct data_record record;
    for (int i = 0; i < 3; i++) {
        memset(bytes + (size_t)i * RECORD, 10 + i, RECORD);
        bytes[i * RECORD] = 19;
        bytes[i * RECORD + 1] = (uint8_t)(97 + i);
    }
    ck_ms_fails(open_100(dir, DATA_TRAIN, &source, err), MS_E_NOT_FOUND, "cifar-100-binary.tar.gz");
    file_write(dir, "train.bin", bytes, sizeof(bytes));
    file_write(dir, "test.bin", bytes, RECORD);

    ck_ms_ok(open_100(dir, DATA_TRAIN, &source, err));

    ck_assert_int_eq(data_get_info(source)->rows, 3);
    ck_assert_int_eq(data_get_info(source)->classes, 100);
    ck_ms_ok(data_read(source, 2, &record, err));
    ck_assert_int_eq(record.label, 99);
    ck_assert_uint_eq(((const uint8_t *)record.values)[0], 12);
    ck_assert_uint_eq(((const uint8_t *)record.values)[3071], 12);
    data_close(source);
    ck_ms_ok(open_100(dir, DATA_ALL, &source, err));
    ck_assert_int_eq(data_get_info(source)->rows, 4);
    data_close(source);
    bytes[1] = 100;
    file_write(dir, "test.bin", bytes, RECORD);
    ck_ms_ok(open_100(dir, DATA_TEST, &source, err));
    ck_ms_fails(data_read(source, 0, &record, err), MS_E_INVALID,
                "label 100, CIFAR-100 has 0 to 99");
    data_close(source);
    bytes[0] = 20;
    bytes[RECORD] = 7;
    file_write(dir, "test.bin", bytes, sizeof(bytes));
    struct data_spec coarse = {.kind = DATA_CIFAR100, .usage = DATA_TEST, .labels = DATA_COARSE};
    snprintf(coarse.path, sizeof(coarse.path), "%s", dir);
    ck_ms_ok(data_open(&coarse, &source, err));
    ck_assert_int_eq(data_get_info(source)->classes, 20);
    ck_assert_int_eq(data_shape_of(&coarse).classes, 20);
    ck_ms_fails(data_read(source, 0, &record, err), MS_E_INVALID,
                "label 20, CIFAR-100 has 0 to 19");
    ck_ms_ok(data_read(source, 1, &record, err));
    ck_assert_int_eq(record.label, 7);
    ck_assert_uint_eq(((const uint8_t *)record.values)[0], 11);
    data_close(source);
    file_write(dir, "test.bin", bytes, RECORD - 1);
    ck_ms_fails(open_100(dir, DATA_TEST, &source, err), MS_E_INVALID, "records of 3074");
    test_dir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cifar10");
    TCase *tc = tcase_create("cifar10");
    tcase_add_test(tc, files_are_chosen_by_usage_and_sorted_by_name);
    tcase_add_test(tc, pixels_are_the_bytes_as_floats_plane_by_plane);
    tcase_add_test(tc, the_path_may_name_the_environment);
    tcase_add_loop_test(tc, a_truncated_file_is_named_with_its_size, 0,
                        (int)MS_ARRAY_SIZE(bad_sizes));
    tcase_add_test(tc, a_label_out_of_range_is_named_with_file_and_record);
    tcase_add_test(tc, a_file_that_shrinks_while_open_is_named);
    tcase_add_test(tc, a_folder_without_the_files_gets_the_way_out);
    tcase_add_test(tc, a_folder_named_like_a_batch_is_refused);
    tcase_add_test(tc, cifar100_has_fine_and_coarse_labels);
    tcase_add_test(tc, the_real_data_have_their_published_labels);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
