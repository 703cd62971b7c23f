/* test_identity.c - which data a set is: the same however its files lie, another one where a record
 * is
 */
#include "libworker/data/data.h"
#include "tests/unit/data_files.h"

#include <fcntl.h>
#include <unistd.h>

enum { PIXELS = 784, SMALL = 300, LARGE = 3000 };

/* Until the next call. */
static const char *path_in(const char *dir, const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static struct data_source *open_set(enum data_kind kind, const char *dir)
{
    struct data_source *source = NULL;
    struct data_spec spec = {.kind = kind, .usage = DATA_TRAIN};
    snprintf(spec.path, sizeof(spec.path), "%s", dir);
    ck_ms_ok(data_open(&spec, &source, err));
    return source;
}

static struct data_identity identify(enum data_kind kind, const char *dir)
{
    struct data_identity identity;
    struct data_source *source = open_set(kind, dir);
    ck_ms_ok(data_identify(source, &identity, err));
    ck_assert_int_eq(identity.rows, data_get_info(source)->rows);
    data_close(source);
    return identity;
}

/* ---- MNIST ---- */

enum change { SAME, AN_IMAGE, A_LABEL };

/* n records; of record `which`, if any, something is another one. */
static void write_mnist(const char *dir, uint32_t n, int is_packed, enum change change,
                        size_t which)
{
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
    char name[64];
    size_t size = 0;
    for (int labels = 0; labels < 2; labels++) {
        uint8_t *bytes = idx_make(labels ? 2049 : 2051, n, 28, 28, labels ? 10 : 251, &size);
        if (change == (labels ? A_LABEL : AN_IMAGE)) {
            bytes[labels ? 8 + which : 16 + which * PIXELS + PIXELS / 2] ^= 1;
        }
        unlink(path_in(dir, names[labels]));
        snprintf(name, sizeof(name), "%s.gz", names[labels]);
        unlink(path_in(dir, name));
        if (is_packed) {
            file_write_gz(dir, name, bytes, size, 0);
        } else {
            file_write(dir, names[labels], bytes, size);
        }
        free(bytes);
    }
}

static int is_mnist(const char *dir, const struct data_identity *as)
{
    const struct data_identity identity = identify(DATA_MNIST, dir);
    return data_identity_is_same(&identity, as);
}

START_TEST(packed_files_are_the_same_data_as_plain_ones)
{
    static const uint32_t sizes[] = {SMALL, LARGE};
    const char *dir = test_dir_make();
    write_mnist(dir, sizes[_i], 0, SAME, 0);
    const struct data_identity plain = identify(DATA_MNIST, dir);

    write_mnist(dir, sizes[_i], 1, SAME, 0);

    ck_assert(is_mnist(dir, &plain));
    test_dir_remove(dir);
}
END_TEST

START_TEST(one_other_record_makes_other_data)
{
    static const struct {
        uint32_t n;
        enum change change;
        size_t which;
    } cases[] = {{SMALL, AN_IMAGE, 0},
                 {SMALL, AN_IMAGE, SMALL - 1},
                 {SMALL, A_LABEL, 150},
                 {LARGE, AN_IMAGE, 42},
                 {LARGE, A_LABEL, LARGE - 1}};
    const char *dir = test_dir_make();
    write_mnist(dir, cases[_i].n, 0, SAME, 0);
    const struct data_identity before = identify(DATA_MNIST, dir);
    for (int is_packed = 0; is_packed < 2; is_packed++) {
        write_mnist(dir, cases[_i].n, is_packed, cases[_i].change, cases[_i].which);

        ck_assert(!is_mnist(dir, &before));
    }
    test_dir_remove(dir);
}
END_TEST

START_TEST(one_record_less_makes_other_data)
{
    const char *dir = test_dir_make();
    write_mnist(dir, LARGE, 0, SAME, 0);
    const struct data_identity before = identify(DATA_MNIST, dir);

    write_mnist(dir, LARGE - 1, 0, SAME, 0);

    ck_assert(!is_mnist(dir, &before));
    test_dir_remove(dir);
}
END_TEST

START_TEST(who_asks_brings_nothing_into_memory_and_reads_on_as_before)
{
    const char *dir = test_dir_make();
    struct data_identity first;
    struct data_identity second;
    struct data_record record;
    write_mnist(dir, LARGE, _i, SAME, 0);
    struct data_source *source = open_set(DATA_MNIST, dir);

    ck_ms_ok(data_identify(source, &first, err));
    ck_assert_int_eq(data_in_memory(source), 0);
    for (int64_t row = 0; row < LARGE; row += LARGE / 7) {
        ck_ms_ok(data_read(source, row, &record, err));
        ck_assert_int_eq(record.label, row % 10);
        ck_assert_uint_eq(((const uint8_t *)record.values)[5], (row * PIXELS + 5) % 251);
    }
    ck_ms_ok(data_identify(source, &second, err));
    ck_ms_ok(data_verify(source, err));

    ck_assert(data_identity_is_same(&first, &second));
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(packed_file_that_is_damaged_in_front_is_named)
{
    const char *dir = test_dir_make();
    struct data_identity identity;
    struct ms_err err = {0, ""};
    write_mnist(dir, LARGE, 1, SAME, 0);
    struct data_source *source = open_set(DATA_MNIST, dir);
    const int fd = open(path_in(dir, "train-images-idx3-ubyte.gz"), O_WRONLY);
    ck_assert_int_ge(fd, 0);
    for (off_t at = 400; at < 464; at += 8) {
        ck_assert_int_eq(pwrite(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, at), 8);
    }
    close(fd);

    ck_assert_int_eq(data_identify(source, &identity, &err), MS_E_INVALID);

    ck_assert_msg(strstr(err.text, "train-images-idx3-ubyte.gz is truncated or damaged") != NULL,
                  "it says: %s", err.text);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* ---- CIFAR-10 ---- */

static void write_cifar(const char *dir, int n, int which)
{
    uint8_t *bytes = cifar_make(n, 0);
    if (which >= 0) {
        bytes[which * 3073 + 1000] ^= 1;
    }
    file_write(dir, "data_batch_1.bin", bytes, (size_t)n * 3073);
    free(bytes);
}

START_TEST(records_of_a_large_set_are_looked_at_from_its_front_to_its_end)
{
    static const int sizes[] = {1024, 5000};
    const char *dir = test_dir_make();
    const int n = sizes[_i];
    write_cifar(dir, n, -1);
    const struct data_identity before = identify(DATA_CIFAR10, dir);
    for (int which = 0; which < n; which += n - 1) {
        write_cifar(dir, n, which);

        const struct data_identity after = identify(DATA_CIFAR10, dir);

        ck_assert(!data_identity_is_same(&before, &after));
    }
    test_dir_remove(dir);
}
END_TEST

START_TEST(records_in_one_file_are_the_same_data_as_in_two)
{
    const char *dir = test_dir_make();
    uint8_t *bytes = cifar_make(20, 0);
    file_write(dir, "data_batch_1.bin", bytes, (size_t)20 * 3073);
    const struct data_identity one = identify(DATA_CIFAR10, dir);

    file_write(dir, "data_batch_1.bin", bytes, (size_t)8 * 3073);
    file_write(dir, "data_batch_2.bin", bytes + (size_t)8 * 3073, (size_t)12 * 3073);
    const struct data_identity two = identify(DATA_CIFAR10, dir);

    ck_assert(data_identity_is_same(&one, &two));
    free(bytes);
    test_dir_remove(dir);
}
END_TEST

/* ---- what is drawn ---- */

static struct data_identity identify_drawn(const struct data_spec *spec)
{
    struct data_source *source = NULL;
    struct data_identity identity;
    ck_ms_ok(data_open(spec, &source, err));
    ck_ms_ok(data_identify(source, &identity, err));
    data_close(source);
    return identity;
}

START_TEST(drawn_data_differ_by_what_they_are_drawn_from)
{
    const struct data_spec specs[] = {{.kind = DATA_SHAPES, .usage = DATA_TRAIN, .samples = 100},
                                      {.kind = DATA_SHAPES, .usage = DATA_TRAIN, .samples = 101},
                                      {.kind = DATA_SHAPES, .usage = DATA_TEST, .samples = 100},
                                      {.kind = DATA_SHAPES, .samples = 100, .seed = 1},
                                      {.kind = DATA_NONLINEAR, .samples = 100},
                                      {.kind = DATA_NONLINEAR, .samples = 3000},
                                      {.kind = DATA_NONLINEAR, .usage = DATA_TEST, .samples = 100}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(specs); i++) {
        const struct data_identity a = identify_drawn(&specs[i]);
        for (size_t k = 0; k < MS_ARRAY_SIZE(specs); k++) {
            const struct data_identity b = identify_drawn(&specs[k]);
            ck_assert_int_eq(data_identity_is_same(&a, &b), i == k);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("identity");
    TCase *tc = tcase_create("identity");
    tcase_add_loop_test(tc, packed_files_are_the_same_data_as_plain_ones, 0, 2);
    tcase_add_loop_test(tc, one_other_record_makes_other_data, 0, 5);
    tcase_add_test(tc, one_record_less_makes_other_data);
    tcase_add_loop_test(tc, who_asks_brings_nothing_into_memory_and_reads_on_as_before, 0, 2);
    tcase_add_test(tc, packed_file_that_is_damaged_in_front_is_named);
    tcase_add_loop_test(tc, records_of_a_large_set_are_looked_at_from_its_front_to_its_end, 0, 2);
    tcase_add_test(tc, records_in_one_file_are_the_same_data_as_in_two);
    tcase_add_test(tc, drawn_data_differ_by_what_they_are_drawn_from);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
