/* test_memory.c - large buffers and how much memory there is */
#include "libworker/train/memory.h"
#include "tests/test.h"

START_TEST(large_buffers_are_zeroed_and_aligned_to_huge_pages)
{
    void *memory = NULL;
    size_t bytes = (5U << 20) + 13;

    ck_ms_ok(memory_alloc(bytes, "a test", &memory, err));

    ck_assert_uint_eq((uintptr_t)memory % (2U << 20), 0);
    ck_assert_int_eq(((char *)memory)[0], 0);
    ck_assert_int_eq(((char *)memory)[bytes - 1], 0);
    memory_free(memory, bytes);
}
END_TEST

START_TEST(nothing_at_all_can_be_allocated_and_freed)
{
    void *memory = NULL;

    ck_ms_ok(memory_alloc(0, "nothing", &memory, err));

    ck_assert_ptr_nonnull(memory);
    memory_free(memory, 0);
    memory_free(NULL, 100);
}
END_TEST

START_TEST(too_much_is_refused_with_its_name)
{
    void *memory = NULL;

    ck_ms_fails(memory_alloc((size_t)1 << 62, "activations", &memory, err), MS_E_NOMEM,
                "activations");
    ck_assert_ptr_null(memory);
}
END_TEST

START_TEST(available_memory_is_more_than_a_page_and_less_than_an_exabyte)
{
    uint64_t bytes = memory_available();

    ck_assert_uint_gt(bytes, 1U << 20);
    ck_assert_uint_lt(bytes, UINT64_C(1) << 60);
}
END_TEST

START_TEST(sizes_print_in_decimal_units)
{
    char buf[32];

    ck_assert_str_eq(memory_format(999, buf, sizeof(buf)), "999 B");
    ck_assert_str_eq(memory_format(2610000000U, buf, sizeof(buf)), "2.61 GB");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *tc = tcase_create("memory");
    tcase_add_test(tc, large_buffers_are_zeroed_and_aligned_to_huge_pages);
    tcase_add_test(tc, nothing_at_all_can_be_allocated_and_freed);
    tcase_add_test(tc, too_much_is_refused_with_its_name);
    tcase_add_test(tc, available_memory_is_more_than_a_page_and_less_than_an_exabyte);
    tcase_add_test(tc, sizes_print_in_decimal_units);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
