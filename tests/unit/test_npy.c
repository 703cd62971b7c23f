/* test_npy.c - heads of NumPy arrays: what np.save writes is understood, everything else refused */
#include "libworker/data/npy.h"
#include "tests/unit/array_files.h"

static int parse(int version, const char *dictionary, struct npy_head *ret, struct ms_err *err)
{
    struct bytes b = npy_with(version, dictionary, "", 0);
    int64_t size = 0;
    int rc = npy_measure(b.at, "f.npy", &size, err);
    if (rc == MS_OK) {
        ck_assert_int_eq(size, (int64_t)b.size);
        rc = npy_parse(b.at, size, "f.npy", ret, err);
    }
    free(b.at);
    return rc;
}

/* np.save of NumPy 1.24: the bytes up to the elements. */
START_TEST(a_head_of_numpy_is_understood)
{
    static const char *const texts[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }            \n",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (5,), }              \n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3, 4, 5), }      \n",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (7,), }               \n",
        "{\"shape\":(3L,4L),\"descr\":\"<i2\",\"fortran_order\":False}\n",
    };
    static const struct npy_head want[] = {
        {NPY_FLOAT, 4, 2, {3, 4}, 12, 0, 0},           {NPY_SIGNED, 8, 1, {5}, 5, 0, 0},
        {NPY_UNSIGNED, 1, 4, {2, 3, 4, 5}, 120, 0, 0}, {NPY_FLOAT, 8, 1, {7}, 7, 0, 0},
        {NPY_SIGNED, 2, 2, {3, 4}, 12, 0, 0},
    };
    for (int version = 1; version <= 3; version++) {
        struct npy_head head;
        ck_ms_ok(parse(version, texts[_i], &head, err));
        ck_assert_int_eq(head.kind, want[_i].kind);
        ck_assert_int_eq(head.item, want[_i].item);
        ck_assert_int_eq(head.n_dims, want[_i].n_dims);
        ck_assert_int_eq(head.count, want[_i].count);
        ck_assert_mem_eq(head.dim, want[_i].dim, sizeof(int64_t) * (size_t)head.n_dims);
        ck_assert_int_eq(head.size, (int64_t)strlen(texts[_i]) + (version == 1 ? 10 : 12));
    }
}
END_TEST

static const struct {
    const char *text, *part;
} wrong[] = {
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }\n", "np.ascontiguousarray(f)"},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (3, 4), }\n", "f.astype('<f4')"},
    {"{'descr': '>i8', 'fortran_order': False, 'shape': (3, 4), }\n", "f.astype('<i8')"},
    {"{'descr': '<f2', 'fortran_order': False, 'shape': (3, 4), }\n", "f.astype('float32')"},
    {"{'descr': '<f16', 'fortran_order': False, 'shape': (3, 4), }\n", "f.astype('float32')"},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (3, 4), }\n", "complex numbers"},
    {"{'descr': '|b1', 'fortran_order': False, 'shape': (3, 4), }\n", "f.astype('uint8')"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }\n", "Python objects"},
    {"{'descr': '<U7', 'fortran_order': False, 'shape': (3,), }\n", "no numbers"},
    {"{'descr': '<f4x', 'fortran_order': False, 'shape': (3,), }\n", "long floats"},
    {"{'descr': '<', 'fortran_order': False, 'shape': (3,), }\n", "no numbers"},
    {"{'descr': '', 'fortran_order': False, 'shape': (3,), }\n", "no numbers"},
    {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,), }\n", "records with fields"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }\n", "dimension 1 is 0"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n",
     "larger than any file"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n",
     "cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }\n",
     "cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, -4), }\n", "cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4\n", "cannot be read"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 4), }\n", "cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, }     \n", "cannot be read"},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False}\n", "other keys"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'x': 1}\n", "other keys"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), } {}\n", "cannot be read"},
    {"hello world, this is no dictionary", "cannot be read"},
};

START_TEST(everything_else_is_refused_with_what_mends_it)
{
    struct npy_head head;
    ck_ms_fails(parse(1, wrong[_i].text, &head, err), MS_E_INVALID, wrong[_i].part);
    ck_ms_fails(parse(1, wrong[_i].text, &head, err), MS_E_INVALID, "f.npy");
}
END_TEST

START_TEST(what_is_no_array_is_refused_by_its_first_bytes)
{
    uint8_t bytes[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0x76, 0, '{', ' '};
    int64_t size = 0;
    ck_ms_ok(npy_measure(bytes, "f", &size, err));
    ck_assert_int_eq(size, 128);
    bytes[6] = 4;
    ck_ms_fails(npy_measure(bytes, "f", &size, err), MS_E_INVALID, "version 4.0");
    bytes[6] = 2;
    bytes[10] = 0xFF;
    ck_ms_fails(npy_measure(bytes, "f", &size, err), MS_E_INVALID, "length of its head");
    bytes[0] = 'P';
    ck_ms_fails(npy_measure(bytes, "f", &size, err), MS_E_INVALID, "NUMPY");
}
END_TEST

START_TEST(elements_are_read_as_they_are)
{
    static const uint8_t bytes[] = {0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    const struct npy_head kinds[] = {
        {NPY_SIGNED, 1, 1, {1}, 1, 0, 0},   {NPY_UNSIGNED, 1, 1, {1}, 1, 0, 0},
        {NPY_SIGNED, 8, 1, {1}, 1, 0, 0},   {NPY_UNSIGNED, 4, 1, {1}, 1, 0, 0},
        {NPY_UNSIGNED, 8, 1, {1}, 1, 0, 0}, {NPY_SIGNED, 2, 1, {1}, 1, 0, 0}};
    static const int64_t want[] = {-2, 254, -2, 4294967294, INT64_MAX, -2};
    for (size_t i = 0; i < MS_ARRAY_SIZE(kinds); i++) {
        ck_assert_int_eq(npy_whole(&kinds[i], bytes, 0), want[i]);
    }
    const struct npy_head whole = {NPY_UNSIGNED, 1, 1, {3}, 3, 0, 0};
    const struct npy_head wide = {NPY_FLOAT, 8, 1, {1}, 1, 0, 0};
    float floats[3];
    npy_floats(&whole, bytes, 2, floats);
    ck_assert_float_eq(floats[0], 254);
    ck_assert_float_eq(floats[1], 255);
    const double third = 1.0 / 3;
    npy_floats(&wide, (const uint8_t *)&third, 1, floats);
    ck_assert_float_eq(floats[0], (float)(1.0 / 3));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("npy");
    TCase *tc = test_case_create("npy");
    tcase_add_loop_test(tc, a_head_of_numpy_is_understood, 0, 5);
    tcase_add_loop_test(tc, everything_else_is_refused_with_what_mends_it, 0,
                        (int)MS_ARRAY_SIZE(wrong));
    tcase_add_test(tc, what_is_no_array_is_refused_by_its_first_bytes);
    tcase_add_test(tc, elements_are_read_as_they_are);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
