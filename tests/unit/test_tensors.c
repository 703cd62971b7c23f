/* test_tensors.c - tensors of a .safetensors file as data: the records that the same NumPy arrays
 * have; their types; files of parts; what does not fit is named */
#include "libworker/data/data.h"
#include "tests/unit/array_files.h"

#include <sys/stat.h>

enum { ROWS = 70, H = 3, W = 4, VALUES = H * W };

struct tensor {
    const char *name, *dtype, *shape;
    const void *data;
    size_t size;
};

/* By the format's text, not by our writer. */
static void tensors_write(const char *dir, const char *file, const struct tensor *list, int n)
{
    char head[1024] = "{";
    struct bytes b = {NULL, 0};
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        const size_t used = strlen(head);
        snprintf(head + used, sizeof(head) - used,
                 "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                 i > 0 ? "," : "", list[i].name, list[i].dtype, list[i].shape, at,
                 at + list[i].size);
        at += list[i].size;
    }
    strncat(head, "}", sizeof(head) - strlen(head) - 1);
    bytes_number(&b, strlen(head), 8);
    bytes_add(&b, head, strlen(head));
    for (int i = 0; i < n; i++) {
        bytes_add(&b, list[i].data, list[i].size);
    }
    file_write(dir, file, b.at, b.size);
    free(b.at);
}

static uint8_t pixels[ROWS * VALUES];
static int64_t classes[ROWS];

static void setup(void)
{
    for (int i = 0; i < ROWS * VALUES; i++) {
        pixels[i] = (uint8_t)(i * 7 + i / 11);
    }
    for (int i = 0; i < ROWS; i++) {
        classes[i] = i * i % 5;
    }
}

static struct data_spec spec_of(const char *dir, const char *file)
{
    struct data_spec spec = {.kind = DATA_SAFETENSORS};
    snprintf(spec.path, sizeof(spec.path), "%s%s%s", dir, *file != '\0' ? "/" : "", file);
    return spec;
}

static struct data_source *opened(const struct data_spec *spec)
{
    struct data_source *source = NULL;
    ck_ms_ok(data_open(spec, &source, err));
    return source;
}

static void ck_fails(const struct data_spec *spec, const char *words)
{
    struct data_source *source = NULL;
    struct ms_err err = {0, ""};
    ck_assert_int_lt(data_open(spec, &source, &err), 0);
    ck_assert_msg(strstr(err.text, words) != NULL, "'%s' lacks '%s'", err.text, words);
}

START_TEST(the_same_records_are_the_same_data_as_arrays)
{
    const char *dir = test_dir_make();
    const struct tensor both[] = {{"x", "U8", "[70,3,4]", pixels, sizeof(pixels)},
                                  {"y", "I64", "[70]", classes, sizeof(classes)}};
    struct data_identity identity[2];
    struct data_record record;
    tensors_write(dir, "all.safetensors", both, 2);
    npy_write(dir, "x.npy", "|u1", "(70, 3, 4)", pixels, sizeof(pixels));
    npy_write(dir, "y.npy", "<i8", "(70,)", classes, sizeof(classes));
    struct data_spec spec = spec_of(dir, "all.safetensors");
    struct data_source *source = opened(&spec);
    const struct data_info *info = data_get_info(source);
    ck_assert_int_eq(info->rows, ROWS);
    ck_assert_int_eq(info->channels * 100 + info->height * 10 + info->width, 134);
    ck_assert_int_eq(info->classes, 5);
    ck_assert_int_eq(info->dtype, MS_U8);
    ck_ms_ok(data_read(source, 33, &record, err));
    ck_assert_mem_eq(record.values, pixels + 33 * VALUES, VALUES);
    ck_assert_int_eq(record.label, classes[33]);
    ck_ms_ok(data_identify(source, &identity[0], err));
    ck_ms_ok(data_verify(source, err));
    data_close(source);
    struct data_spec arrays = spec_of(dir, "");
    arrays.kind = DATA_NUMPY;
    source = opened(&arrays);
    ck_ms_ok(data_identify(source, &identity[1], err));
    data_close(source);
    ck_assert(data_identity_is_same(&identity[0], &identity[1]));
    test_dir_remove(dir);
}
END_TEST

/* 1, -2, 1 / 3, the least above 0, the largest. */
static const struct {
    const char *dtype;
    uint16_t bits[5];
    float values[5];
} halves[] = {
    {"F16", {0x3C00, 0xC000, 0x3555, 0x0001, 0x7BFF}, {1, -2, 0.333251953125F, 0x1p-24F, 65504}},
    {"BF16",
     {0x3F80, 0xC000, 0x3EAB, 0x0001, 0x7F7F},
     {1, -2, 0.333984375F, 0x1p-133F, 0x1.FEp127F}},
};

START_TEST(short_floats_are_the_floats_that_they_are)
{
    const char *dir = test_dir_make();
    const float targets[] = {0.5F};
    struct data_record record;
    const struct tensor both[] = {{"x", halves[_i].dtype, "[1,5]", halves[_i].bits, 10},
                                  {"y", "F32", "[1]", targets, sizeof(targets)}};
    tensors_write(dir, "t.safetensors", both, 2);
    struct data_spec spec = spec_of(dir, "t.safetensors");
    struct data_source *source = opened(&spec);
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_mem_eq(record.values, halves[_i].values, sizeof(halves[_i].values));
    ck_assert_float_eq(record.targets[0], 0.5F);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

START_TEST(an_infinite_short_float_is_named_with_its_row)
{
    const char *dir = test_dir_make();
    const uint16_t bits[] = {0x3C00, 0x7C00};
    const int32_t labels[] = {0, 1};
    struct data_record record;
    const struct tensor both[] = {{"x", "F16", "[2,1]", bits, sizeof(bits)},
                                  {"y", "I32", "[2]", labels, sizeof(labels)}};
    tensors_write(dir, "t.safetensors", both, 2);
    struct data_spec spec = spec_of(dir, "t.safetensors");
    struct data_source *source = opened(&spec);
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_ms_fails(data_read(source, 1, &record, err), MS_E_INVALID, "t.safetensors: x: row 1");
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* Names of parts in a file; files of parts in a folder; names of one's own. */
START_TEST(parts_have_their_names_or_their_files)
{
    const char *dir = test_dir_make();
    const float x[] = {1, 2, 3};
    const uint8_t y[] = {0, 1, 2};
    const struct tensor parts[] = {{"x_train", "F32", "[3,1]", x, 12},
                                   {"y_train", "U8", "[3]", y, 3},
                                   {"x_test", "F32", "[2,1]", x, 8},
                                   {"y_test", "U8", "[2]", y, 2}};
    struct data_parts found;
    tensors_write(dir, "both.safetensors", parts, 4);
    struct data_spec spec = spec_of(dir, "both.safetensors");
    ck_ms_ok(data_find_parts(&spec, &found, err));
    ck_assert_uint_eq(found.usages, 1U << DATA_TRAIN | 1U << DATA_TEST);
    spec.usage = DATA_TEST;
    spec.shape.classes = 3;
    struct data_source *source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->rows, 2);
    data_close(source);
    spec.has_split = 1;
    spec.split = (struct data_spec_split){0.5, 1};
    ck_fails(&spec, "name one of them (dataset.inputs and targets)");

    const struct tensor own[] = {{"in", "F32", "[3,1]", x, 12}, {"out", "U8", "[3]", y, 3}};
    char path[512];
    snprintf(path, sizeof(path), "%s/folder", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    tensors_write(dir, "folder/train.safetensors", own, 2);
    tensors_write(dir, "folder/test.safetensors", own, 2);
    struct data_spec folder = spec_of(dir, "folder");
    ck_ms_ok(data_find_parts(&folder, &found, err));
    ck_assert_str_eq(found.of_test, "test.safetensors");
    ck_fails(&folder, "name its arrays with inputs and targets; it has: in, out");
    snprintf(folder.inputs, sizeof(folder.inputs), "in");
    snprintf(folder.targets, sizeof(folder.targets), "out");
    source = opened(&folder);
    ck_assert_int_eq(data_get_info(source)->classes, 3);
    data_close(source);
    snprintf(folder.targets, sizeof(folder.targets), "wrong");
    ck_fails(&folder, "has no array wrong; it has: in, out");
    test_dir_remove(dir);
}
END_TEST

START_TEST(what_is_no_data_is_named)
{
    const char *dir = test_dir_make();
    const int64_t whole[6] = {0, 1, 2};
    const struct {
        struct tensor list[2];
        const char *words;
    } bad[] = {
        {{{"x", "I64", "[3,1]", whole, 24}, {"y", "I64", "[3]", whole, 24}}, "write x.float()"},
        {{{"x", "C64", "[3,1]", whole, 24}, {"y", "I64", "[3]", whole, 24}},
         "x is C64, which is not read; write x.float()"},
        {{{"x", "F32", "[6,1]", whole, 24}, {"y", "I64", "[3,2]", whole, 48}},
         "y has 3 rows for the 6"},
        {{{"x", "F32", "[3,2]", whole, 24}, {"y", "I64", "[3,2]", whole, 48}},
         "write y.argmax(dim=1), or y.float()"},
        {{{"x", "F32", "[0,2]", whole, 0}, {"y", "I64", "[0]", whole, 0}}, "x has no elements"},
        {{{"x", "F32", "[]", whole, 4}, {"y", "I64", "[1]", whole, 8}}, "x has 0 dimensions"},
        {{{"x", "F32", "[3,2]", whole, 24}, {"z", "I64", "[3]", whole, 24}},
         "has none of the pairs x_train and y_train"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(bad); i++) {
        tensors_write(dir, "t.safetensors", bad[i].list, 2);
        const struct data_spec spec = spec_of(dir, "t.safetensors");
        ck_fails(&spec, bad[i].words);
    }
    file_write(dir, "t.safetensors", "no tensors at all", 17);
    const struct data_spec spec = spec_of(dir, "t.safetensors");
    ck_fails(&spec, "no safetensors file");
    test_dir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensors");
    TCase *tc = tcase_create("tensors");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, the_same_records_are_the_same_data_as_arrays);
    tcase_add_loop_test(tc, short_floats_are_the_floats_that_they_are, 0, MS_ARRAY_SIZE(halves));
    tcase_add_test(tc, an_infinite_short_float_is_named_with_its_row);
    tcase_add_test(tc, parts_have_their_names_or_their_files);
    tcase_add_test(tc, what_is_no_data_is_named);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
