/* test_mnist.c - MNIST's IDX files: plain and gzip, read from the front, every damage named */
#include "libworker/data/data.h"
#include "libworker/data/host_copy.h"
#include "tests/unit/data_files.h"

#include <fcntl.h>

enum { PIXELS = 784 };

static int open_at(const char *path, enum data_usage usage, struct data_source **ret,
                   struct ms_err *err)
{
    struct data_spec spec = {.kind = DATA_MNIST, .usage = usage};
    snprintf(spec.path, sizeof(spec.path), "%s", path);
    return data_open(&spec, ret, err);
}

/* A pair of files with n images; gz: packed. Pixel p of image i is (784 i + p) % 251. */
static void write_pair(const char *dir, const char *prefix, uint32_t n, int gz)
{
    char name[64];
    size_t size = 0;
    for (int labels = 0; labels < 2; labels++) {
        uint8_t *bytes = idx_make(labels ? 2049 : 2051, n, 28, 28, labels ? 10 : 251, &size);
        snprintf(name, sizeof(name), "%s-%s-idx%d-ubyte%s", prefix, labels ? "labels" : "images",
                 labels ? 1 : 3, gz ? ".gz" : "");
        if (gz) {
            file_write_gz(dir, name, bytes, size, 0);
        } else {
            file_write(dir, name, bytes, size);
        }
        free(bytes);
    }
}

static void check_row(struct data_source *source, int64_t row, int64_t i)
{
    struct data_record record;
    ck_ms_ok(data_read(source, row, &record, err));
    ck_assert_int_eq(record.label, i % 10);
    for (int64_t p = 0; p < PIXELS; p++) {
        ck_assert_uint_eq(((const uint8_t *)record.values)[p], (i * PIXELS + p) % 251);
    }
}

START_TEST(plain_and_packed_files_read_the_same)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    write_pair(dir, "train", 300, _i);

    ck_ms_ok(open_at(dir, DATA_TRAIN, &source, err));

    const struct data_info *info = data_get_info(source);
    ck_assert_int_eq(info->rows, 300);
    ck_assert_int_eq(info->channels, 1);
    ck_assert_int_eq(info->height, 28);
    ck_assert_int_eq(info->width, 28);
    ck_assert_int_eq(info->classes, 10);
    static const int64_t order[] = {5, 299, 0, 150, 298, 299}; /* forwards, backwards, again */
    for (size_t i = 0; i < MS_ARRAY_SIZE(order); i++) {
        check_row(source, order[i], order[i]);
    }
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

enum { LARGE = 2000 }; /* images that are worth a copy in memory: 1.5 MB */

START_TEST(large_files_read_the_same_through_the_copy_of_the_host)
{
    const char *dir = test_dir_make();
    struct data_source *source[2] = {NULL, NULL};
    write_pair(dir, "train", LARGE, _i);
    for (int i = 0; i < 2; i++) {
        ck_ms_ok(open_at(dir, DATA_TRAIN, &source[i], err));
        ck_assert_int_eq(data_get_info(source[i])->copied_bytes, LARGE * PIXELS);
    }
    for (int64_t row = 0; row < LARGE; row++) { /* 7 and the rows have no common divisor */
        check_row(source[0], row, row);
        check_row(source[1], row * 7 % LARGE, row * 7 % LARGE);
    }
    data_close(source[0]);
    check_row(source[1], LARGE - 1, LARGE - 1);
    data_close(source[1]);
    test_dir_remove(dir);
}
END_TEST

/* Nothing where none is read yet, and all of it for whoever else has the files open. */
START_TEST(what_one_reads_is_in_memory_for_all)
{
    const char *dir = test_dir_make();
    struct data_source *source[2] = {NULL, NULL};
    write_pair(dir, "train", LARGE, 1);
    for (int i = 0; i < 2; i++) {
        ck_ms_ok(open_at(dir, DATA_TRAIN, &source[i], err));
        ck_assert_int_eq(data_in_memory(source[i]), 0);
    }
    check_row(source[0], LARGE - 1, LARGE - 1);

    ck_assert_int_eq(data_in_memory(source[0]), LARGE * PIXELS);
    ck_assert_int_eq(data_in_memory(source[1]), LARGE * PIXELS);

    data_close(source[0]);
    ck_assert_int_eq(data_in_memory(source[1]), 0);
    data_close(source[1]);
    test_dir_remove(dir);
}
END_TEST

START_TEST(usage_all_has_the_test_part_first_as_names_sort)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    write_pair(dir, "train", 30, 0);
    write_pair(dir, "t10k", 7, 1);

    ck_ms_ok(open_at(dir, DATA_ALL, &source, err));
    ck_assert_int_eq(data_get_info(source)->rows, 37);
    check_row(source, 6, 6);
    check_row(source, 7, 0);
    check_row(source, 36, 29);
    data_close(source);
    ck_ms_ok(open_at(dir, DATA_TEST, &source, err));
    ck_assert_int_eq(data_get_info(source)->rows, 7);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(parts_in_folders_of_their_own_are_found)
{
    char dir[64];
    char part[96];
    struct data_source *source = NULL;
    snprintf(dir, sizeof(dir), "%s", test_dir_make());
    static const char *const folders[] = {"test", "train"};
    static const char *const prefixes[] = {"t10k", "train"};
    for (int i = 0; i < 2; i++) { /* as MindSpore's MNIST_Data.zip has them */
        snprintf(part, sizeof(part), "%s/%s", dir, folders[i]);
        ck_assert_int_eq(mkdir(part, 0755), 0);
        write_pair(part, prefixes[i], 10 + (uint32_t)i, 0);
    }

    static const struct {
        const char *below;
        enum data_usage usage;
        int rows;
    } ways[] = {{"/train", DATA_TRAIN, 11},
                {"/train/", DATA_TEST, 10},
                {"", DATA_ALL, 21},
                {"/train", DATA_ALL, 21},
                {"", DATA_TEST, 10}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(ways); i++) {
        snprintf(part, sizeof(part), "%s%s", dir, ways[i].below);
        ck_ms_ok(open_at(part, ways[i].usage, &source, err));
        ck_assert_int_eq(data_get_info(source)->rows, ways[i].rows);
        data_close(source);
    }
    test_dir_remove(dir);
}
END_TEST

START_TEST(all_of_a_folder_with_one_part_is_that_part)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    write_pair(dir, "train", 30, 0);

    ck_ms_ok(open_at(dir, DATA_ALL, &source, err));

    ck_assert_int_eq(data_get_info(source)->rows, 30);
    data_close(source);
    ck_ms_fails(open_at(dir, DATA_TEST, &source, err), MS_E_NOT_FOUND, "t10k-images");
    test_dir_remove(dir);
}
END_TEST

/* Until the copy of a plain file with images is whole. */
static void wait_for_copy(const char *path)
{
    const struct host_copy_file file = {
        .fd = open(path, O_RDONLY | O_CLOEXEC), .skip = 16, .bytes = LARGE * PIXELS};
    ck_assert_int_ge(file.fd, 0);
    struct host_copy *copy = host_copy_open(&file);
    ck_assert_ptr_nonnull(copy);
    ck_assert_ptr_nonnull(host_copy_get(copy, file.bytes - 1, 1, 1));
    host_copy_close(copy);
    close(file.fd);
}

START_TEST(a_missing_file_is_named)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    char path[128];
    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_NOT_FOUND,
                "has no train-images-idx3-ubyte, neither plain nor .gz");
    write_pair(dir, "train", 3, 0);
    snprintf(path, sizeof(path), "%s/train-labels-idx1-ubyte", dir);
    unlink(path);
    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_NOT_FOUND, "train-labels-idx1-ubyte");
    test_dir_remove(dir);
}
END_TEST

static const struct {
    const char *bytes;
    size_t size;
    const char *part;
} wrong[] = {
    {"<!DOCTYPE html><html></html>", 28, "(a web page)"},
    {"\x89PNG\r\n\x1a\n0123456789", 18, "(a PNG image)"},
    {"PK\x03\x04zip0123456789", 17, "(a zip archive)"},
    {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 18, "(zero bytes, an interrupted download)"},
    {"\0\0\x08\x01\0\0\0\x03\0\0\0\0\0\0\0\0", 16,
     "should be 2051 and are not (an IDX file of labels)"},
    {"\0\0\x0d\x03\0\0\0\x03\0\0\0\0\0\0\0\0", 16, "(an IDX file of floats)"},
    {"hello, what is this?", 20, "(something else)"},
    {"\0\0\x08\x03\0\0", 6, "has 6 bytes, less than an IDX header"},
    {"", 0, "has 0 bytes"},
    {"\0\0\x08\x03\0\0\0\0\0\0\0\x1c\0\0\0\x1c", 16, "dimension 0 is 0 in its header"},
    {"\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16,
     "in its header: the file is damaged"},
    {"\0\0\x08\x03\0\0\0\x01\0\0\0\x02\0\0\0\x02\x01\x02\x03", 19,
     "has 19 bytes where its header promises 20: it is truncated"},
    {"\0\0\x08\x03\0\0\0\x01\0\0\0\x02\0\0\0\x02\x01\x02\x03\x04\x05", 21,
     "it is longer than it should be"},
    {"\0\0\x08\x03\0\0\0\x01\0\0\0\x02\0\0\0\x02\x01\x02\x03\x04", 20,
     "has images of 2x2; MNIST has 28x28"},
};

START_TEST(what_is_no_idx_file_is_told_what_it_looks_like)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    write_pair(dir, "train", 3, 0);
    file_write(dir, "train-images-idx3-ubyte", wrong[_i].bytes, wrong[_i].size);

    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_INVALID, wrong[_i].part);
    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_INVALID, "train-images-idx3-ubyte");

    /* the same inside gzip; sizes then show in other words */
    file_write_gz(dir, "train-images-idx3-ubyte", wrong[_i].bytes, wrong[_i].size, 0);
    struct ms_err err = {0, ""};
    ck_assert_int_lt(open_at(dir, DATA_TRAIN, &source, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "train-images-idx3-ubyte"));
    test_dir_remove(dir);
}
END_TEST

START_TEST(labels_must_be_as_many_as_images)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    size_t size = 0;
    write_pair(dir, "train", 5, 0);
    uint8_t *bytes = idx_make(2049, 4, 0, 0, 10, &size);
    file_write(dir, "train-labels-idx1-ubyte", bytes, size);
    free(bytes);
    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_INVALID,
                "has 4 labels for the 5 images");
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_label_out_of_range_is_refused_at_once)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    size_t size = 0;
    write_pair(dir, "train", 11, 0);
    uint8_t *bytes = idx_make(2049, 11, 0, 0, 11, &size);
    file_write(dir, "train-labels-idx1-ubyte", bytes, size);
    free(bytes);
    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_INVALID, "record 10 has label 10");
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_truncated_gz_is_named_when_it_is_opened)
{
    static const long cuts[] = {1, 5, 8, 9, 100};
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    size_t size = 0;
    write_pair(dir, "train", 300, 1);
    uint8_t *bytes = idx_make(2051, 300, 28, 28, 251, &size);
    file_write_gz(dir, "train-images-idx3-ubyte.gz", bytes, size, cuts[_i]);
    free(bytes);

    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_INVALID, "is truncated or damaged");
    ck_ms_fails(open_at(dir, DATA_TRAIN, &source, err), MS_E_INVALID, "train-images-idx3-ubyte.gz");
    test_dir_remove(dir);
}
END_TEST

static void break_crc(const char *dir)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/train-images-idx3-ubyte.gz", dir);
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    fseek(file, -8, SEEK_END);
    fputs("????", file);
    fclose(file);
}

/* Damage in the middle leaves the size at the end as it was. */
START_TEST(a_damaged_gz_is_named_when_it_is_read)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    struct data_record record;
    const int64_t n = _i == 0 ? 300 : LARGE; /* without a copy in memory and with one */
    write_pair(dir, "train", (uint32_t)n, 1);
    break_crc(dir);
    ck_ms_ok(open_at(dir, DATA_TRAIN, &source, err));

    ck_ms_fails(data_read(source, n - 1, &record, err), MS_E_INVALID,
                "is truncated or damaged: unpacking stops near byte");
    struct ms_err why = {0, ""};
    ck_assert_int_eq(data_read(source, n - 1, &record, &why), MS_E_INVALID);
    ck_assert_msg(strstr(why.text, "<fd") == NULL, "zlib's name of a descriptor: %s", why.text);
    /* who read ahead of what was used is not asked for the record again */
    ck_ms_fails(data_verify(source, err), MS_E_INVALID, "is truncated or damaged");
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* One stored block behind the other, empty ones first: as many as it takes for the checksum to
 * begin where a piece of the file ends that zlib reads at once. It sees the last pixel there, and
 * not yet that they are damaged. */
static void write_checksum_apart(const char *dir, uint32_t n)
{
    enum { PIECE = 8192, HEADER = 10, BLOCK = 5, BLOCK_MAX = 60000, EMPTY_MAX = PIECE };
    size_t size = 0;
    uint8_t *bytes = idx_make(2051, n, 28, 28, 251, &size);
    uint8_t *packed = calloc(1, HEADER + size + BLOCK * (EMPTY_MAX + size / BLOCK_MAX + 1) + 8);
    ck_assert_ptr_nonnull(packed);
    static const uint8_t header[HEADER] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3};
    memcpy(packed, header, HEADER);
    const size_t n_blocks = (size + BLOCK_MAX - 1) / BLOCK_MAX;
    size_t at = HEADER;
    while ((at + n_blocks * BLOCK + size) % PIECE != 0) {
        memcpy(packed + at, (const uint8_t[]){0, 0, 0, 0xFF, 0xFF}, BLOCK);
        at += BLOCK;
    }
    for (size_t done = 0; done < size;) {
        const size_t take = size - done < BLOCK_MAX ? size - done : BLOCK_MAX;
        const uint8_t low = (uint8_t)take, high = (uint8_t)(take >> 8);
        const uint8_t block[BLOCK] = {done + take == size, low, high, (uint8_t)~low,
                                      (uint8_t)~high};
        memcpy(packed + at, block, BLOCK);
        memcpy(packed + at + BLOCK, bytes + done, take);
        at += BLOCK + take;
        done += take;
    }
    ck_assert_uint_eq(at % PIECE, 0);
    const uint8_t tail[8] = {'?',
                             '?',
                             '?',
                             '?',
                             (uint8_t)size,
                             (uint8_t)(size >> 8),
                             (uint8_t)(size >> 16),
                             (uint8_t)(size >> 24)};
    memcpy(packed + at, tail, sizeof(tail));
    file_write(dir, "train-images-idx3-ubyte.gz", packed, at + sizeof(tail));
    free(packed);
    free(bytes);
}

/* Whoever trains on the first records alone does not come to the checksum. */
START_TEST(a_damaged_gz_is_named_though_its_end_is_not_read)
{
    const char *dir = test_dir_make();
    const int64_t n = _i % 2 == 0 ? 300 : LARGE; /* without a copy in memory and with one */
    const int is_damaged = _i >= 2;
    struct data_source *source = NULL;
    write_pair(dir, "train", (uint32_t)n, 1);
    if (_i == 4) {
        write_checksum_apart(dir, (uint32_t)n);
    } else if (is_damaged) {
        break_crc(dir);
    }
    ck_ms_ok(open_at(dir, DATA_TRAIN, &source, err));
    ck_ms_ok(data_verify(source, err)); /* nothing was read */
    check_row(source, 0, 0);

    for (int i = 0; i < 2; i++) {
        if (is_damaged) {
            ck_ms_fails(data_verify(source, err), MS_E_INVALID,
                        "train-images-idx3-ubyte.gz is truncated or damaged");
        } else {
            ck_ms_ok(data_verify(source, err));
        }
    }
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* Before it is in memory, or afterwards, when nobody reads it any more. */
START_TEST(a_plain_file_that_shrinks_is_named_or_is_there)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    struct data_source *whole = NULL;
    struct data_record record;
    char path[128];
    write_pair(dir, "train", LARGE, 0);
    snprintf(path, sizeof(path), "%s/train-images-idx3-ubyte", dir);
    ck_ms_ok(open_at(dir, DATA_TRAIN, &source, err));
    if (_i == 1) {
        ck_ms_ok(open_at(dir, DATA_TRAIN, &whole, err));
        check_row(whole, 0, 0); /* begins the copy, and a look at the file does not wait for it */
        wait_for_copy(path);
    }

    ck_assert_int_eq(truncate(path, 16 + 1000 * PIXELS), 0);

    check_row(source, 999, 999);
    ck_ms_fails(data_read(source, 1000, &record, err), MS_E_IO, "became shorter");
    if (_i == 1) {
        check_row(whole, LARGE - 1, LARGE - 1);
    }
    data_close(whole);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_plain_file_named_gz_is_read_all_the_same)
{
    const char *dir = test_dir_make();
    struct data_source *source = NULL;
    size_t size = 0;
    write_pair(dir, "train", 5, 1);
    uint8_t *bytes = idx_make(2051, 5, 28, 28, 251, &size);
    file_write(dir, "train-images-idx3-ubyte.gz", bytes, size);
    free(bytes);

    ck_ms_ok(open_at(dir, DATA_TRAIN, &source, err));
    check_row(source, 4, 4);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(the_real_data_have_their_published_figures)
{
    static const int want[10] = {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949};
    char path[512];
    struct data_source *source = NULL;
    int count[10] = {0};
    double sum = 0;
    double squares = 0;
    if (test_shared() == NULL) {
        test_skip_note("the_real_data_have_their_published_figures");
        return;
    }
    snprintf(path, sizeof(path), "%s/data/mnist", test_shared());
    ck_ms_ok(open_at(path, DATA_TRAIN, &source, err));
    ck_assert_int_eq(data_get_info(source)->rows, 60000);
    for (int64_t i = 0; i < 60000; i++) {
        struct data_record record;
        ck_ms_ok(data_read(source, i, &record, err));
        const uint8_t *image = record.values;
        count[record.label]++;
        for (int p = 0; p < PIXELS; p++) {
            sum += image[p];
            squares += image[p] * image[p];
        }
    }
    double mean = sum / (60000.0 * PIXELS);
    ck_assert_double_eq_tol(mean / 255, 0.1307, 1e-4);
    ck_assert_double_eq_tol((squares / (60000.0 * PIXELS) - mean * mean) / (255.0 * 255.0),
                            0.3081 * 0.3081, 1e-4);
    for (int k = 0; k < 10; k++) {
        ck_assert_int_eq(count[k], want[k]);
    }
    data_close(source);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mnist");
    TCase *tc = tcase_create("mnist");
    tcase_add_loop_test(tc, plain_and_packed_files_read_the_same, 0, 2);
    tcase_add_loop_test(tc, large_files_read_the_same_through_the_copy_of_the_host, 0, 2);
    tcase_add_test(tc, what_one_reads_is_in_memory_for_all);
    tcase_add_test(tc, usage_all_has_the_test_part_first_as_names_sort);
    tcase_add_test(tc, parts_in_folders_of_their_own_are_found);
    tcase_add_test(tc, all_of_a_folder_with_one_part_is_that_part);
    tcase_add_test(tc, a_missing_file_is_named);
    tcase_add_loop_test(tc, what_is_no_idx_file_is_told_what_it_looks_like, 0,
                        (int)MS_ARRAY_SIZE(wrong));
    tcase_add_test(tc, labels_must_be_as_many_as_images);
    tcase_add_test(tc, a_label_out_of_range_is_refused_at_once);
    tcase_add_loop_test(tc, a_truncated_gz_is_named_when_it_is_opened, 0, 5);
    tcase_add_loop_test(tc, a_damaged_gz_is_named_when_it_is_read, 0, 2);
    tcase_add_loop_test(tc, a_damaged_gz_is_named_though_its_end_is_not_read, 0, 5);
    tcase_add_loop_test(tc, a_plain_file_that_shrinks_is_named_or_is_there, 0, 2);
    tcase_add_test(tc, a_plain_file_named_gz_is_read_all_the_same);
    tcase_add_test(tc, the_real_data_have_their_published_figures);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
