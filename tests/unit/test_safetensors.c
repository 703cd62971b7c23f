/* test_safetensors.c - the format's rules one by one, and files that are whole or not there */
#include "libworker/data/safetensors.h"
#include "tests/test.h"
#include "tests/unit/data_files.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

static char path[128];
static const char *dir;

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/w.safetensors", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

/* Writes length, header and data_size bytes 0, 1, 2 ... */
static void write_raw(uint64_t length, const char *header, size_t header_size, size_t data_size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(&length, 1, 8, file), 8);
    ck_assert_uint_eq(fwrite(header, 1, header_size, file), header_size);
    for (size_t i = 0; i < data_size; i++) {
        fputc((int)(i % 256), file);
    }
    ck_assert_int_eq(fclose(file), 0);
}

static void write_header(const char *header, size_t data_size)
{
    write_raw(strlen(header), header, strlen(header), data_size);
}

/* ---- writing and reading back ---- */

static const struct safetensors_entry entries[] = {
    {.name = "layer1.a.bn1.gamma", .n_dims = 1, .dim = {3}},
    {.name = "fc.weight", .n_dims = 2, .dim = {2, 4}},
    {.name = "scalar", .n_dims = 0},
    {.name = "empty", .n_dims = 2, .dim = {0, 5}},
};
static const float gamma_values[3] = {1, -2, 3.5F};
static const float weight_values[8] = {0, 1, 2, 3, 4, 5, 6, 1e-30F};
static const float one = 42;

static void write_all(struct safetensors_writer *writer)
{
    ck_ms_ok(safetensors_put(writer, "fc.weight", weight_values, 8, err));
    ck_ms_ok(safetensors_put(writer, "empty", NULL, 0, err));
    ck_ms_ok(safetensors_put(writer, "scalar", &one, 1, err));
    ck_ms_ok(safetensors_put(writer, "layer1.a.bn1.gamma", gamma_values, 3, err));
}

START_TEST(what_was_written_reads_back_equal)
{
    static const char *const names[] = {"empty", "fc.weight", "layer1.a.bn1.gamma", "scalar"};
    const char *const metadata[] = {"format", "pt", "step", "7"};
    struct safetensors_writer *writer = NULL;
    struct safetensors *file = NULL;
    float values[8] = {0};
    ck_ms_ok(safetensors_create(path, entries, 4, metadata, 2, &writer, err));
    write_all(writer);
    ck_ms_ok(safetensors_finish(writer, NULL, err));

    ck_ms_ok(safetensors_open(path, &file, err));

    ck_assert_uint_eq(safetensors_count(file), 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(safetensors_at(file, i)->name, names[i]);
        ck_assert_ptr_eq(safetensors_find(file, names[i]), safetensors_at(file, i));
        ck_assert_str_eq(safetensors_at(file, i)->dtype, "F32");
    }
    ck_assert_ptr_null(safetensors_at(file, 4));
    ck_assert_ptr_null(safetensors_find(file, "fc"));
    const struct safetensors_entry *weight = safetensors_find(file, "fc.weight");
    ck_assert_int_eq(weight->n_dims, 2);
    ck_assert_int_eq(weight->dim[1], 4);
    ck_ms_ok(safetensors_read(file, weight, values, 8, err));
    ck_assert_mem_eq(values, weight_values, sizeof(weight_values));
    ck_ms_ok(safetensors_read(file, safetensors_find(file, "scalar"), values, 1, err));
    ck_assert_float_eq(values[0], 42);
    ck_ms_ok(safetensors_read(file, safetensors_find(file, "empty"), values, 0, err));
    ck_ms_fails(safetensors_read(file, weight, values, 7, err), MS_E_INVALID,
                "tensor fc.weight has 8 elements where 7 are wanted");
    safetensors_close(file);
}
END_TEST

/* Byte for byte: what the Python library wrote and read when this was frozen. */
START_TEST(the_bytes_are_those_of_the_format)
{
    static const char want[] =
        "\x40\0\0\0\0\0\0\0{\"bc\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}"
        "       \0\0\x80\x3f\0\0\0\x40"; /* 57 bytes of JSON and 7 spaces */
    const struct safetensors_entry entry = {.name = "bc", .n_dims = 2, .dim = {1, 2}};
    const float values[2] = {1, 2};
    struct safetensors_writer *writer = NULL;
    char bytes[256] = "";
    ck_ms_ok(safetensors_create(path, &entry, 1, NULL, 0, &writer, err));
    ck_ms_ok(safetensors_put(writer, "bc", values, 2, err));
    ck_ms_ok(safetensors_finish(writer, NULL, err));
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);

    ck_assert_uint_eq(size, sizeof(want) - 1);
    ck_assert_mem_eq(bytes, want, size);
}
END_TEST

static size_t read_file(const char *name, char **ret)
{
    char file_path[128];
    snprintf(file_path, sizeof(file_path), "%s/%s", dir, name);
    FILE *file = fopen(file_path, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    const size_t size = (size_t)ftell(file);
    rewind(file);
    *ret = malloc(size);
    ck_assert_ptr_nonnull(*ret);
    ck_assert_uint_eq(fread(*ret, 1, size, file), size);
    fclose(file);
    return size;
}

static void write_in_order(const struct safetensors_entry *all, size_t n, const float *values,
                           struct safetensors_sum *ret)
{
    struct safetensors_writer *writer = NULL;
    ck_ms_ok(safetensors_create(path, all, n, NULL, 0, &writer, err));
    for (size_t i = 0; i < n; i++) {
        float *room = NULL;
        const size_t count = (size_t)all[i].dim[0];
        ck_ms_ok(safetensors_next(writer, count, &room, err));
        memcpy(room, values, count * sizeof(*values));
        ck_ms_ok(safetensors_put_next(writer, err));
    }
    float *more = NULL;
    ck_ms_fails(safetensors_next(writer, 1, &more, err), MS_E_INVALID, "does not have 1 elements");
    ck_ms_ok(safetensors_finish(writer, ret, err));
}

/* What a full disk took of a piece does not end with a block, nor may the next try begin there. */
START_TEST(a_disk_that_is_full_in_the_middle_of_a_block_is_named_and_leaves_nothing)
{
    const struct safetensors_entry all = {.name = "a", .n_dims = 1, .dim = {3000000}};
    struct safetensors_writer *writer = NULL;
    struct rlimit limit;
    float *room = NULL;
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = (5 << 20) + 100;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_ms_ok(safetensors_create(path, &all, 1, NULL, 0, &writer, err));
    ck_ms_ok(safetensors_next(writer, 3000000, &room, err));
    memset(room, 0, 3000000 * sizeof(*room));
    ck_ms_fails(safetensors_put_next(writer, err), MS_E_IO, "cannot be written: File too large");
    safetensors_abandon(writer);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(rmdir(dir), 0); /* empty */
    ck_assert_int_eq(mkdir(dir, 0700), 0);
}
END_TEST

static void write_by_name(const struct safetensors_entry *all, size_t n, const float *values)
{
    struct safetensors_writer *writer = NULL;
    char other[128];
    snprintf(other, sizeof(other), "%s/other", dir);
    ck_ms_ok(safetensors_create(other, all, n, NULL, 0, &writer, err));
    for (size_t i = n; i-- > 0;) {
        ck_ms_ok(safetensors_put(writer, all[i].name, values, (size_t)all[i].dim[0], err));
    }
    ck_ms_ok(safetensors_finish(writer, NULL, err));
}

/* Around blocks of a disk, and the pieces that are written at once: 4 MiB. */
START_TEST(tensors_in_their_order_give_the_same_file_and_its_digest)
{
    static const int64_t sizes[][3] = {{0, 1, 2},       {1024, 1024, 1024},    {1000, 23, 1048576},
                                       {1048000, 1, 7}, {3000000, 5, 2097152}, {960, 64, 0}};
    enum { MOST = 3000000 };
    float *values = malloc(MOST * sizeof(*values));
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < MOST; i++) {
        values[i] = (float)i;
    }
    for (size_t k = 0; k < MS_ARRAY_SIZE(sizes); k++) {
        const struct safetensors_entry all[] = {
            {.name = "a", .n_dims = 1, .dim = {sizes[k][0]}},
            {.name = "b", .n_dims = 1, .dim = {sizes[k][1]}},
            {.name = "c", .n_dims = 1, .dim = {sizes[k][2]}},
        };
        struct safetensors_sum sum;
        char *a = NULL;
        char *b = NULL;
        char hex[SUM_HEX];
        write_in_order(all, 3, values, &sum);
        write_by_name(all, 3, values);
        const size_t size = read_file("w.safetensors", &a);
        ck_assert_uint_eq(size, read_file("other", &b));
        ck_assert_mem_eq(a, b, size);
        struct sum *want = sum_create();
        sum_add(want, a, size);
        sum_hex(want, hex);
        sum_destroy(want);
        ck_assert_uint_eq(sum.size, size);
        ck_assert_str_eq(sum.hex, hex);
        free(a);
        free(b);
    }
    free(values);
}
END_TEST

START_TEST(the_writer_guards_its_contract)
{
    struct safetensors_writer *writer = NULL;
    ck_ms_ok(safetensors_create(path, entries, 4, NULL, 0, &writer, err));
    ck_ms_fails(safetensors_put(writer, "nobody", &one, 1, err), MS_E_INVALID, "was not announced");
    ck_ms_fails(safetensors_put(writer, "scalar", &one, 2, err), MS_E_INVALID,
                "has 1 elements, not 2");
    ck_ms_ok(safetensors_put(writer, "scalar", &one, 1, err));
    ck_ms_fails(safetensors_put(writer, "scalar", &one, 1, err), MS_E_INVALID, "written already");
    ck_ms_fails(safetensors_finish(writer, NULL, err), MS_E_INVALID,
                "3 of 4 tensors were not written");
    ck_assert_int_ne(access(path, F_OK), 0);

    struct safetensors_entry twice[2] = {{.name = "a"}, {.name = "a"}};
    ck_ms_fails(safetensors_create(path, twice, 2, NULL, 0, &writer, err), MS_E_INVALID,
                "tensor 'a': a name must be there, be unique");
    struct safetensors_entry huge = {.name = "h", .n_dims = 2, .dim = {INT64_MAX, 4}};
    ck_ms_fails(safetensors_create(path, &huge, 1, NULL, 0, &writer, err), MS_E_INVALID,
                "its shape cannot be written");
}
END_TEST

START_TEST(an_abandoned_file_leaves_the_old_one_as_it_was)
{
    struct safetensors_writer *writer = NULL;
    struct safetensors *file = NULL;
    ck_ms_ok(safetensors_create(path, entries, 4, NULL, 0, &writer, err));
    write_all(writer);
    ck_ms_ok(safetensors_finish(writer, NULL, err));

    ck_ms_ok(safetensors_create(path, entries, 2, NULL, 0, &writer, err));
    safetensors_abandon(writer);
    safetensors_abandon(NULL);

    ck_ms_ok(safetensors_open(path, &file, err));
    ck_assert_uint_eq(safetensors_count(file), 4);
    safetensors_close(file);
}
END_TEST

START_TEST(a_full_disk_is_an_error_and_leaves_nothing)
{
    struct safetensors_writer *writer = NULL;
    struct rlimit limit;
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = 100;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_ms_ok(safetensors_create(path, entries, 4, NULL, 0, &writer, err));
    ck_ms_fails(safetensors_put(writer, "scalar", &one, 1, err), MS_E_IO, "cannot be written");
    safetensors_abandon(writer);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(rmdir(dir), 0); /* empty */
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_ms_fails(safetensors_create("/nowhere/w", entries, 4, NULL, 0, &writer, err), MS_E_IO,
                "cannot write /nowhere/w");
}
END_TEST

/* ---- hostile files ---- */

#define F32_2 "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

static const struct {
    const char *header;
    size_t data;
    const char *part; /* NULL: valid */
} headers[] = {
    {"{}", 0, NULL},
    {"{}      ", 0, NULL},
    {"{\"a\":" F32_2 "}", 8, NULL},
    {"{\"__metadata__\":{\"k\":\"v\"},\"a\":" F32_2 "}", 8, NULL},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, NULL},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},\"b\":" F32_2 "}", 8, NULL},
    {"{\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[8,12]},\"a\":" F32_2 "}", 12,
     NULL},
    {"{\"a\":" F32_2 "}", 7, "its data lie behind the end of the file"},
    {"{\"a\":" F32_2 "}", 9, "1 bytes behind the last tensor belong to nobody"},
    {"{}", 4, "4 bytes behind the last tensor"},
    {"[]", 0, "its header is no JSON object"},
    {" {}", 0, "its header is no JSON object"},
    {"{\"a\":", 0, "its header is no JSON"},
    {"{}x", 0, "its header is no JSON"},
    {"{\"a\":\"\xff\"}", 0, "its header is no JSON"},
    {"{\"a\":" F32_2 ",\"a\":" F32_2 "}", 8, "its header is no JSON (duplicate object key"},
    {"{\"a\":3}", 0, "other keys than dtype, shape and data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "other keys than"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"offsets\":[0,8]}}", 8, "are no pair"},
    {"{\"a\":{\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "its dtype is none"},
    {"{\"a\":{\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "its dtype is none"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8,
     "something else than sizes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8,
     "something else than sizes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8, "no list of at most 8"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 8,
     "no list of at most 8"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4611686018427387904],\"data_"
     "offsets\":[0,8]}}",
     8, "larger than any memory"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0,
     "larger than any memory"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
     "its shape and its data_offsets disagree"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2,
     "do not fill whole bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8,
     "are no pair [begin, end]"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8, "are no pair"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, "are no pair"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9223372036854775807]}}", 8,
     "behind the end"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
     "a hole before its data"},
    {"{\"a\":" F32_2 ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
     "overlap another tensor's"},
    {"{\"a\":" F32_2 ",\"b\":" F32_2 "}", 8, "overlap another tensor's"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "__metadata__ holds something else than texts"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ holds something else than texts"},
    {"{\"a\\u0007\":" F32_2 "}", 8, "control characters"},
    {"{\"a\\u0000\":" F32_2 "}", 8, "its header is no JSON"},
};

START_TEST(every_rule_of_the_format_is_checked)
{
    struct safetensors *file = NULL;
    write_header(headers[_i].header, headers[_i].data);
    if (headers[_i].part == NULL) {
        ck_ms_ok(safetensors_open(path, &file, err));
        safetensors_close(file);
        return;
    }
    ck_ms_fails(safetensors_open(path, &file, err), MS_E_INVALID, headers[_i].part);
    ck_ms_fails(safetensors_open(path, &file, err), MS_E_INVALID, "w.safetensors");
}
END_TEST

static const struct {
    uint64_t length;
    const char *part;
} lengths[] = {{0, "no size of a header within a file of 10 bytes"},
               {3, "no size of a header"},
               {1, "no size of a header"},
               {UINT64_MAX, "no size of a header"},
               {100000000, "no size of a header"}};

START_TEST(a_header_longer_than_the_file_is_refused)
{
    struct safetensors *file = NULL;
    write_raw(lengths[_i].length, "{}", 2, 0);
    ck_ms_fails(safetensors_open(path, &file, err), MS_E_INVALID, lengths[_i].part);
}
END_TEST

START_TEST(what_is_no_file_of_tensors_is_named)
{
    struct safetensors *file = NULL;
    ck_ms_fails(safetensors_open(path, &file, err), MS_E_NOT_FOUND,
                "w.safetensors cannot be opened");
    ck_ms_fails(safetensors_open(dir, &file, err), MS_E_INVALID, "is no regular file");
    write_raw(0, "", 0, 0);
    ck_ms_fails(safetensors_open(path, &file, err), MS_E_INVALID, "has 8 bytes");
    safetensors_close(NULL);
}
END_TEST

/* As torch.save writes it, today and in its first years. */
START_TEST(a_file_of_torch_is_named_with_the_line_that_mends_it)
{
    static const struct {
        char bytes[17];
        const char *part;
    } files[] = {{"PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0", "w.safetensors is a zip archive, as"},
                 {"\x80\2\x8A\nl\xFC\x9C\x46\xF9 j\xA8P\x19.\x80", "is a Python pickle, as"}};
    struct safetensors *file = NULL;
    for (size_t i = 0; i < MS_ARRAY_SIZE(files); i++) {
        file_write(dir, "w.safetensors", files[i].bytes, 16);
        ck_ms_fails(safetensors_open(path, &file, err), MS_E_INVALID, files[i].part);
        ck_ms_fails(safetensors_open(path, &file, err), MS_E_INVALID,
                    "as PyTorch writes its files (.pt), and no safetensors file; write one in "
                    "Python: safetensors.torch.save_file(module.state_dict(), "
                    "\"net.safetensors\")");
    }
}
END_TEST

START_TEST(a_name_of_256_bytes_is_too_long)
{
    struct safetensors *file = NULL;
    char header[512];
    char name[257];
    memset(name, 'n', sizeof(name) - 1);
    name[256] = '\0';
    snprintf(header, sizeof(header), "{\"%s\":" F32_2 "}", name);
    write_header(header, 8);
    ck_ms_fails(safetensors_open(path, &file, err), MS_E_INVALID, "longer than 255 bytes");
    snprintf(header, sizeof(header), "{\"%s\":" F32_2 "}", name + 1);
    write_header(header, 8);
    ck_ms_ok(safetensors_open(path, &file, err));
    safetensors_close(file);
}
END_TEST

START_TEST(another_dtype_is_known_but_not_read)
{
    struct safetensors *file = NULL;
    float value = 0;
    write_header("{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4);
    ck_ms_ok(safetensors_open(path, &file, err));
    ck_ms_fails(safetensors_read(file, safetensors_at(file, 0), &value, 1, err), MS_E_UNSUPPORTED,
                "tensor a is BF16; convert the file to F32");
    safetensors_close(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("safetensors");
    TCase *tc = tcase_create("safetensors");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_was_written_reads_back_equal);
    tcase_add_test(tc, the_bytes_are_those_of_the_format);
    tcase_add_test(tc, tensors_in_their_order_give_the_same_file_and_its_digest);
    tcase_add_test(tc, a_disk_that_is_full_in_the_middle_of_a_block_is_named_and_leaves_nothing);
    tcase_add_test(tc, the_writer_guards_its_contract);
    tcase_add_test(tc, an_abandoned_file_leaves_the_old_one_as_it_was);
    tcase_add_test(tc, a_full_disk_is_an_error_and_leaves_nothing);
    tcase_add_loop_test(tc, every_rule_of_the_format_is_checked, 0, (int)MS_ARRAY_SIZE(headers));
    tcase_add_loop_test(tc, a_header_longer_than_the_file_is_refused, 0,
                        (int)MS_ARRAY_SIZE(lengths));
    tcase_add_test(tc, what_is_no_file_of_tensors_is_named);
    tcase_add_test(tc, a_file_of_torch_is_named_with_the_line_that_mends_it);
    tcase_add_test(tc, a_name_of_256_bytes_is_too_long);
    tcase_add_test(tc, another_dtype_is_known_but_not_read);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
