/* test_dtype.c - sizes of elements against C's types, names that differ */
#include "proto/dtype.h"
#include "tests/test.h"

#include <stdint.h>
#include <string.h>

START_TEST(sizes_are_those_of_the_types_of_c)
{
    ck_assert_uint_eq(ms_dtype_bytes(MS_F32), sizeof(float));
    ck_assert_uint_eq(ms_dtype_bytes(MS_BF16), sizeof(uint16_t));
    ck_assert_uint_eq(ms_dtype_bytes(MS_I32), sizeof(int32_t));
    ck_assert_uint_eq(ms_dtype_bytes(MS_U8), sizeof(uint8_t));
}
END_TEST

START_TEST(every_dtype_has_a_name_of_its_own)
{
    for (int i = 0; i < MS_DTYPES; i++) {
        ck_assert_ptr_nonnull(ms_dtype_name((enum ms_dtype)i));
        ck_assert_uint_gt(ms_dtype_bytes((enum ms_dtype)i), 0);
        for (int j = 0; j < i; j++) {
            ck_assert_str_ne(ms_dtype_name((enum ms_dtype)i), ms_dtype_name((enum ms_dtype)j));
        }
    }
    ck_assert_str_eq(ms_dtype_name(MS_F32), "f32");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dtype");
    TCase *tc = tcase_create("dtype");
    tcase_add_test(tc, sizes_are_those_of_the_types_of_c);
    tcase_add_test(tc, every_dtype_has_a_name_of_its_own);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
