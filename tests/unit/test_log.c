/* test_log.c - one event, one line */
#include "proto/log.h"
#include "tests/test.h"

static size_t read_back(FILE *file, char *buf, size_t size)
{
    rewind(file);
    size_t n = fread(buf, 1, size - 1, file);
    buf[n] = '\0';
    return n;
}

START_TEST(a_line_for_the_journal_carries_its_priority)
{
    FILE *file = tmpfile();
    char buf[256];
    ms_log_init(fileno(file), MS_LOG_INFO, 1);

    ms_log(MS_LOG_NOTICE, "job.lost job=%d", 17);
    ms_log(MS_LOG_DEBUG, "hidden");

    read_back(file, buf, sizeof(buf));
    ck_assert_str_eq(buf, "<5>job.lost job=17\n");
    fclose(file);
}
END_TEST

START_TEST(newlines_in_values_do_not_make_a_second_event)
{
    FILE *file = tmpfile();
    char buf[256];
    ms_log_init(fileno(file), MS_LOG_INFO, 1);

    ms_log(MS_LOG_ERR, "x reason=%s", "a\nb");

    read_back(file, buf, sizeof(buf));
    ck_assert_str_eq(buf, "<3>x reason=a b\n");
    fclose(file);
}
END_TEST

START_TEST(a_line_that_is_too_long_is_cut_and_ended)
{
    FILE *file = tmpfile();
    char big[5000];
    char buf[6000];
    memset(big, 'z', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    ms_log_init(fileno(file), MS_LOG_INFO, 0);

    ms_log(MS_LOG_INFO, "x %s", big);

    size_t n = read_back(file, buf, sizeof(buf));
    ck_assert_uint_le(n, 2048);
    ck_assert_int_eq(buf[n - 1], '\n');
    fclose(file);
}
END_TEST

START_TEST(quote_escapes_and_cuts)
{
    char buf[32];

    ck_assert_str_eq(ms_log_quote(buf, sizeof(buf), "a\"b\\c\n"), "\"a\\\"b\\\\c\\x0a\"");
    ck_assert_str_eq(ms_log_quote(buf, sizeof(buf), "\xc3\xa9\xff\xc2\x9b"),
                     "\"\xc3\xa9\\xff\\xc2\\x9b\"");
    ck_assert_str_eq(ms_log_quote(buf, 6, "abcdefgh"), "\"abc\"");
    ck_assert_str_eq(ms_log_quote(buf, 2, "abc"), "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *tc = tcase_create("log");
    tcase_add_test(tc, a_line_for_the_journal_carries_its_priority);
    tcase_add_test(tc, newlines_in_values_do_not_make_a_second_event);
    tcase_add_test(tc, a_line_that_is_too_long_is_cut_and_ended);
    tcase_add_test(tc, quote_escapes_and_cuts);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
