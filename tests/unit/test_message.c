/* test_message.c - protobuf messages, byte by byte (protobuf.dev/programming-guides/encoding) */
#include "proto/message.h"
#include "tests/test.h"

#include <string.h>

static struct ms_message message;

static void setup(void)
{
    message = (struct ms_message){.bytes = NULL};
}

static void teardown(void)
{
    ms_message_fini(&message);
}

static void ck_bytes(const char *want, size_t n)
{
    ck_assert(!ms_message_failed(&message));
    ck_assert_uint_eq(message.n, n);
    ck_assert_mem_eq(message.bytes, want, n);
}

START_TEST(numbers_are_varints)
{
    ms_message_put_int(&message, 1, 150); /* the guide's example */
    ms_message_put_int(&message, 1, 0);
    ms_message_put_int(&message, 16, 127); /* from 16 on a key has two bytes */
    ck_bytes("\x08\x96\x01\x08\x00\x80\x01\x7F", 8);
}
END_TEST

START_TEST(negative_ones_have_ten_bytes)
{
    ms_message_put_int(&message, 2, -1);
    ck_bytes("\x10\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11);
}
END_TEST

START_TEST(floats_are_little_endian)
{
    ms_message_put_float(&message, 2, 1.5F);
    ck_bytes("\x15\x00\x00\xC0\x3F", 5);
}
END_TEST

START_TEST(texts_have_their_length)
{
    ms_message_put_text(&message, 2, "testing"); /* the guide's example */
    ms_message_put_text(&message, 1, "");
    ck_bytes("\x12\x07testing\x0A\x00", 11);
}
END_TEST

START_TEST(a_message_lies_in_another)
{
    struct ms_message inner = {.bytes = NULL};
    ms_message_put_int(&inner, 1, 150);
    ms_message_put(&message, 3, &inner); /* the guide's example */
    ck_bytes("\x1A\x03\x08\x96\x01", 5);
    ms_message_clear(&message);
    ms_message_put_begin(&message, 3, &inner, 300);
    ck_bytes("\x1A\xAF\x02\x08\x96\x01", 6);
    ms_message_fini(&inner);
}
END_TEST

START_TEST(one_that_has_failed_fails_what_it_is_put_into)
{
    struct ms_message inner = {.failed = 1};
    ms_message_put(&message, 1, &inner);
    ck_assert(ms_message_failed(&message));
    ms_message_clear(&message);
    ck_assert(!ms_message_failed(&message));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("message");
    TCase *t = test_case_create("bytes");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, numbers_are_varints);
    tcase_add_test(t, negative_ones_have_ten_bytes);
    tcase_add_test(t, floats_are_little_endian);
    tcase_add_test(t, texts_have_their_length);
    tcase_add_test(t, a_message_lies_in_another);
    tcase_add_test(t, one_that_has_failed_fails_what_it_is_put_into);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
