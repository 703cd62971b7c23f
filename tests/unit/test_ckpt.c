/* test_ckpt.c - MindSpore's checkpoints: files of its own, ours read back, and what is damaged
 *
 * tests/golden/ckpt is what MindSpore 2.10 wrote; make_ckpt.py has the lines. */
#include "libworker/data/ckpt.h"
#include "tests/test.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *dir;
static char path[160];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/x.ckpt", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static const char *golden(const char *name)
{
    static char buf[512];
    snprintf(buf, sizeof(buf), "%s/tests/golden/ckpt/%s", getenv("MSCHED_SOURCE_ROOT"), name);
    return buf;
}

static void put_file(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static size_t get_file(const char *from, uint8_t *bytes, size_t room)
{
    FILE *file = fopen(from, "rb");
    ck_assert_msg(file != NULL, "%s", from);
    const size_t n = fread(bytes, 1, room, file);
    fclose(file);
    ck_assert_uint_lt(n, room);
    return n;
}

/* Of the network that made the golden files: value i of parameter p is i / 8 - p. */
static const struct {
    const char *name;
    int n_dims;
    int64_t dim[4];
    int p;
} parameters[] = {
    {"bn1.beta", 1, {3}, 4},
    {"bn1.gamma", 1, {3}, 3},
    {"bn1.moving_mean", 1, {3}, 1},
    {"bn1.moving_variance", 1, {3}, 2},
    {"conv1.weight", 4, {3, 2, 3, 3}, 0},
    {"fc.bias", 1, {4}, 6},
    {"fc.weight", 2, {4, 12}, 5},
};

static void check_parameters(struct ckpt *file)
{
    float values[64];
    for (size_t i = 0; i < MS_ARRAY_SIZE(parameters); i++) {
        const struct safetensors_entry *entry = ckpt_find(file, parameters[i].name);
        ck_assert_msg(entry != NULL, "%s is not there", parameters[i].name);
        ck_assert_str_eq(entry->dtype, "F32");
        ck_assert_int_eq(entry->n_dims, parameters[i].n_dims);
        size_t count = 1;
        for (int d = 0; d < entry->n_dims; d++) {
            ck_assert_int_eq(entry->dim[d], parameters[i].dim[d]);
            count *= (size_t)entry->dim[d];
        }
        ck_ms_ok(ckpt_read(file, entry, values, count, err));
        for (size_t v = 0; v < count; v++) {
            ck_assert_float_eq(values[v], (float)v / 8 - (float)parameters[i].p);
        }
    }
}

START_TEST(a_network_of_mindspore_is_read)
{
    struct ckpt *file = NULL;
    ck_ms_ok(ckpt_open(golden("crc.ckpt"), &file, err));
    ck_assert_uint_eq(ckpt_count(file), MS_ARRAY_SIZE(parameters));
    for (size_t i = 0; i < MS_ARRAY_SIZE(parameters); i++) {
        ck_assert_str_eq(ckpt_at(file, i)->name, parameters[i].name);
    }
    ck_assert_ptr_null(ckpt_at(file, MS_ARRAY_SIZE(parameters)));
    ck_assert_ptr_null(ckpt_find(file, "fc"));
    check_parameters(file);
    ckpt_close(file);
}
END_TEST

START_TEST(its_optimizer_and_counters_are_tensors_too)
{
    struct ckpt *file = NULL;
    float one[3];
    ck_ms_ok(ckpt_open(golden("train.ckpt"), &file, err));
    check_parameters(file);
    const struct safetensors_entry *rate = ckpt_find(file, "learning_rate");
    const struct safetensors_entry *steps = ckpt_find(file, "global_step");
    const struct safetensors_entry *slot = ckpt_find(file, "moments.bn1.gamma");
    ck_assert(rate != NULL && steps != NULL && slot != NULL);
    ck_assert_int_eq(rate->n_dims, 0);
    ck_ms_ok(ckpt_read(file, rate, one, 1, err));
    ck_assert_float_eq(one[0], 0.1F);
    ck_assert_str_eq(steps->dtype, "I32");
    ck_ms_fails(ckpt_read(file, steps, one, 1, err), MS_E_UNSUPPORTED,
                "tensor global_step is I32; convert it to Float32");
    ck_ms_fails(ckpt_read(file, slot, one, 2, err), MS_E_INVALID,
                "tensor moments.bn1.gamma has 3 elements where 2 are wanted");
    ckpt_close(file);
}
END_TEST

START_TEST(pieces_of_a_tensor_are_one)
{
    static float values[600];
    struct ckpt *file = NULL;
    ck_ms_ok(ckpt_open(golden("sliced.ckpt"), &file, err));
    ck_assert_uint_eq(ckpt_count(file), 1);
    ck_ms_ok(ckpt_read(file, ckpt_at(file, 0), values, 600, err));
    for (int i = 0; i < 600; i++) {
        ck_assert_float_eq(values[i], (float)i / 8);
    }
    ckpt_close(file);
}
END_TEST

/* ---- ours ---- */

static void write_parameters(void)
{
    struct ckpt_writer *writer = NULL;
    ck_ms_ok(ckpt_create(path, &writer, err));
    for (size_t i = 0; i < MS_ARRAY_SIZE(parameters); i++) {
        static float values[64];
        struct safetensors_entry entry = {.n_dims = parameters[i].n_dims};
        snprintf(entry.name, sizeof(entry.name), "%s", parameters[i].name);
        memcpy(entry.dim, parameters[i].dim, sizeof(parameters[i].dim));
        for (int v = 0; v < 64; v++) {
            values[v] = (float)v / 8 - (float)parameters[i].p;
        }
        ck_ms_ok(ckpt_put(writer, &entry, values, err));
    }
    ck_ms_ok(ckpt_finish(writer, err));
}

static int by_size(const void *a, const void *b)
{
    return *(const uint8_t *)a - *(const uint8_t *)b;
}

/* MindSpore writes the same values in another order: the bytes are the same ones. */
START_TEST(what_is_written_is_what_mindspore_writes)
{
    static uint8_t ours[4096], theirs[4096];
    struct ckpt *file = NULL;
    write_parameters();
    ck_ms_ok(ckpt_open(path, &file, err));
    ck_assert_uint_eq(ckpt_count(file), MS_ARRAY_SIZE(parameters));
    check_parameters(file);
    ckpt_close(file);
    const size_t n = get_file(path, ours, sizeof(ours));
    ck_assert_uint_eq(get_file(golden("crc.ckpt"), theirs, sizeof(theirs)), n + 17);
    qsort(ours, n, 1, by_size);
    qsort(theirs, n, 1, by_size);
    ck_assert_mem_eq(ours, theirs, n);
}
END_TEST

START_TEST(scalars_and_nothing_at_all_read_back)
{
    struct ckpt_writer *writer = NULL;
    struct ckpt *file = NULL;
    const float one = 42;
    float back = 0;
    const struct safetensors_entry scalar = {.name = "scalar"};
    const struct safetensors_entry empty = {.name = "empty", .n_dims = 2, .dim = {0, 5}};
    ck_ms_ok(ckpt_create(path, &writer, err));
    ck_ms_ok(ckpt_put(writer, &scalar, &one, err));
    ck_ms_ok(ckpt_put(writer, &empty, NULL, err));
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_ms_ok(ckpt_finish(writer, err));
    ck_ms_ok(ckpt_open(path, &file, err));
    ck_assert_int_eq(ckpt_find(file, "scalar")->n_dims, 0);
    ck_ms_ok(ckpt_read(file, ckpt_find(file, "scalar"), &back, 1, err));
    ck_assert_float_eq(back, 42);
    ck_assert_int_eq(ckpt_find(file, "empty")->n_dims, 2);
    ck_ms_ok(ckpt_read(file, ckpt_find(file, "empty"), NULL, 0, err));
    ckpt_close(file);
    ck_ms_ok(ckpt_create(path, &writer, err));
    ckpt_abandon(writer);
    ck_ms_ok(ckpt_open(path, &file, err)); /* the file before it is still there */
    ckpt_close(file);
}
END_TEST

/* ---- damage ---- */

START_TEST(every_truncation_and_no_other_file_is_refused)
{
    static uint8_t bytes[4096];
    struct ckpt *file = NULL;
    const size_t n = get_file(golden("train.ckpt"), bytes, sizeof(bytes));
    int whole = 0;
    for (size_t size = 0; size < n; size++) {
        put_file(bytes, size);
        struct ms_err why = {0, ""};
        int rc = ckpt_open(path, &file, &why);
        ck_assert_msg(rc == MS_OK || (rc == MS_E_INVALID && strstr(why.text, path) != NULL),
                      "%zu: %s", size, why.text);
        if (rc == MS_OK) { /* between two tensors */
            whole++;
            ckpt_close(file);
        }
    }
    ck_assert_int_lt(whole, 17);
    static const char text[] = "{\"this\": \"is JSON\"}";
    put_file(text, strlen(text));
    ck_ms_fails(ckpt_open(path, &file, err), MS_E_INVALID,
                "the file is damaged or no checkpoint of MindSpore's");
    ck_ms_fails(ckpt_open("/nowhere/x.ckpt", &file, err), MS_E_NOT_FOUND, "/nowhere/x.ckpt");
}
END_TEST

START_TEST(a_checksum_that_does_not_fit_is_told)
{
    static uint8_t bytes[4096];
    struct ckpt *file = NULL;
    const size_t n = get_file(golden("crc.ckpt"), bytes, sizeof(bytes));
    bytes[100] ^= 1;
    put_file(bytes, n);
    ck_ms_fails(ckpt_open(path, &file, err), MS_E_INVALID, "its checksum is another one");
    put_file(bytes, n - 17);
    ck_ms_ok(ckpt_open(path, &file, err)); /* without one nobody can know */
    ckpt_close(file);
}
END_TEST

#define VALUE(n, rest) "\x0a" n "\x0a\x01w\x12" rest
static const struct {
    const char *bytes;
    size_t size;
    const char *words;
} bad[] = {
#define CASE(text, words)                                                                          \
    {                                                                                              \
        text, sizeof(text) - 1, words                                                              \
    }
    CASE("\x0a\x02\x0a\x00", "a tensor lacks its name, type or values"),
    CASE("\x0a\x7f\x0a\x01w", "at byte 0 a field is longer than what it is in"),
    CASE("\x12\x00", "at byte 0 stands something else than a tensor"),
    CASE("\x0b\x00", "at byte 0 a field is of no type that there is"),
    CASE("\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", "a number has more than 64 bits"),
    CASE("\x0a\x80", "a number has no end"),
    CASE("\x0a\x05\x0a\x01\x07\x12\x00", "a name has control characters"),
    /* two floats where the shape says one, and one where it says 2^62 squared */
    CASE(VALUE("\x1a", "\x15\x08\x01\x12\x07"
                       "Float32\x1a\x08\0\0\0\0\0\0\0\0"),
         "tensor w: its values are more or fewer than its shape says"),
    CASE(VALUE("\x28",
               "\x23\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40\x08\x80\x80\x80\x80\x80\x80\x80\x80"
               "\x40\x12\x07"
               "Float32\x1a\x04\0\0\0\0"),
         "tensor w: its shape is larger than any memory"),
    /* sizes below 0 */
    CASE(VALUE("\x1f", "\x1a\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x07"
                       "Float32\x1a\x04\0\0\0\0"),
         "a shape is not of at most 8 sizes"),
    CASE("\x0a\x05\x0a\x01w\x1a\x00", "tensor w: it is a map of keys and values"),
    /* 2,000 values, of which two are there; a type that is safetensors' */
    CASE(VALUE("\x17", "\x12\x08\xd0\x0f\x12\x03"
                       "F32\x1a\x08\0\0\0\0\0\0\0\0"),
         "tensor w: its type is none of MindSpore's"),
    /* one piece of another type */
    CASE(VALUE("\x16", "\x11\x08\x01\x12\x07"
                       "Float32\x1a\x04\0\0\0\0") VALUE("\x14", "\x0f\x08\x01\x12\x05"
                                                                "Int32\x1a\x04\0\0\0\0"),
         "tensor w: its pieces are of different shapes or types"),
    /* w, v, w */
    CASE(VALUE("\x16", "\x11\x08\x01\x12\x07"
                       "Float32\x1a\x04\0\0\0\0") "\x0a\x16\x0a\x01v\x12\x11\x08\x01\x12\x07"
                                                  "Float32\x1a\x04\0\0\0\0" VALUE(
                                                      "\x16", "\x11\x08\x01\x12\x07"
                                                              "Float32\x1a\x04\0\0\0\0"),
         "tensor w: it stands there twice"),
};

START_TEST(what_contradicts_itself_is_refused)
{
    struct ckpt *file = NULL;
    put_file(bad[_i].bytes, bad[_i].size);
    ck_ms_fails(ckpt_open(path, &file, err), MS_E_INVALID, bad[_i].words);
}
END_TEST

START_TEST(fields_of_tomorrow_and_texts_are_passed_over)
{
    static const char bytes[] = /* fields 9 of each type, packed dims, then a text */
        "\x0a\x2b\x48\x05\x49\0\0\0\0\0\0\0\0\x4d\0\0\0\0\x0a\x01w\x12\x16\x4a\x02zz\x0a\x01\x01"
        "\x12\x07"
        "Float32\x1a\x04\0\0\x80\x3f"
        "\x0a\x15\x0a\x01t\x12\x10\x08\x00\x12\x03str\x1a\x07 a text";
    struct ckpt *file = NULL;
    float value = 0;
    put_file(bytes, sizeof(bytes) - 1);
    ck_ms_ok(ckpt_open(path, &file, err));
    ck_assert_uint_eq(ckpt_count(file), 2);
    ck_ms_ok(ckpt_read(file, ckpt_find(file, "w"), &value, 1, err));
    ck_assert_float_eq(value, 1);
    ck_assert_str_eq(ckpt_find(file, "t")->dtype, "str");
    ck_ms_fails(ckpt_read(file, ckpt_find(file, "t"), &value, 1, err), MS_E_UNSUPPORTED,
                "tensor t is str");
    ckpt_close(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ckpt");
    TCase *tc = tcase_create("ckpt");
    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_network_of_mindspore_is_read);
    tcase_add_test(tc, its_optimizer_and_counters_are_tensors_too);
    tcase_add_test(tc, pieces_of_a_tensor_are_one);
    tcase_add_test(tc, what_is_written_is_what_mindspore_writes);
    tcase_add_test(tc, scalars_and_nothing_at_all_read_back);
    tcase_add_test(tc, every_truncation_and_no_other_file_is_refused);
    tcase_add_test(tc, a_checksum_that_does_not_fit_is_told);
    tcase_add_loop_test(tc, what_contradicts_itself_is_refused, 0, (int)MS_ARRAY_SIZE(bad));
    tcase_add_test(tc, fields_of_tomorrow_and_texts_are_passed_over);
    return test_run(suite);
}
