/* test_nearest.c - words that are meant, and words that are others */
#include "proto/macros.h"
#include "proto/nearest.h"
#include "tests/test.h"

START_TEST(the_nearest_word_is_found_within_a_third_of_its_length)
{
    static const char *const words[] = {"batch_size", "epochs", "workers", NULL, "loss"};
    size_t n = MS_ARRAY_SIZE(words);
    ck_assert_str_eq(ms_nearest("batchsize", words, n), "batch_size");
    ck_assert_str_eq(ms_nearest("batch-size", words, n), "batch_size");
    ck_assert_str_eq(ms_nearest("epcohs", words, n), "epochs");
    ck_assert_str_eq(ms_nearest("Workers", words, n), "workers");
    ck_assert_str_eq(ms_nearest("los", words, n), "loss");
    ck_assert_str_eq(ms_nearest("lss", words, n), "loss");
    ck_assert_ptr_null(ms_nearest("bos", words, n)); /* two of four letters: another word */
    ck_assert_ptr_null(ms_nearest("banana", words, n));
    ck_assert_ptr_null(ms_nearest("", words, n));
    ck_assert_ptr_null(ms_nearest("x", words, 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nearest");
    TCase *tc = tcase_create("nearest");
    tcase_add_test(tc, the_nearest_word_is_found_within_a_third_of_its_length);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
