/* test_err.c - status codes and their text */
#include "proto/err.h"
#include "tests/test.h"

#include <errno.h>

START_TEST(fail_fills_text_and_returns_the_code)
{
    struct ms_err err;

    int rc = ms_fail(&err, MS_E_EXISTS, "node %s is registered", "w1");

    ck_assert_int_eq(rc, MS_E_EXISTS);
    ck_assert_int_eq(err.code, MS_E_EXISTS);
    ck_assert_str_eq(err.text, "node w1 is registered");
}
END_TEST

START_TEST(fail_allows_null_and_its_own_text_as_argument)
{
    struct ms_err err;
    ck_assert_int_eq(ms_fail(NULL, MS_E_IO, "x"), MS_E_IO);
    ms_fail(&err, MS_E_IO, "disk");

    ms_fail(&err, MS_E_FAILED, "%s is gone", err.text);

    ck_assert_str_eq(err.text, "disk is gone");
}
END_TEST

START_TEST(fail_errno_appends_the_system_text_and_keeps_errno)
{
    struct ms_err err;
    errno = ENOENT;

    ms_fail_errno(&err, MS_E_IO, "open %s", "/x");

    ck_assert_int_eq(errno, ENOENT);
    ck_assert_str_eq(err.text, "open /x: No such file or directory");
}
END_TEST

START_TEST(a_shortage_is_no_wrong_setting)
{
    static const int shortages[] = {EMFILE, ENFILE, ENOMEM};
    for (size_t i = 0; i < MS_ARRAY_SIZE(shortages); i++) {
        struct ms_err err = {0, ""};
        errno = shortages[i];
        ck_assert_int_eq(ms_fail_errno(&err, MS_E_TLS, "cannot read ca.crt"), MS_E_NOMEM);
        ck_assert_int_eq(err.code, MS_E_NOMEM);
        ck_assert_int_eq(ms_err_recode(&err, MS_E_CONFIG), MS_E_NOMEM);
        ck_assert_int_eq(err.code, MS_E_NOMEM);
    }
    struct ms_err err = {0, ""};
    errno = EACCES;
    ck_assert_int_eq(ms_fail_errno(&err, MS_E_TLS, "cannot read ca.crt"), MS_E_TLS);
    ck_assert_int_eq(ms_err_recode(&err, MS_E_CONFIG), MS_E_CONFIG);
}
END_TEST

START_TEST(long_text_is_cut_not_overrun)
{
    struct ms_err err;
    char big[2 * MS_ERR_TEXT_MAX];
    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';

    ms_fail(&err, MS_E_IO, "%s", big);
    ms_err_prefix(&err, "%s", "context");

    ck_assert_uint_eq(strlen(err.text), MS_ERR_TEXT_MAX - 1);
    ck_assert_int_eq(strncmp(err.text, "context: aaa", 12), 0);
    memcpy(big + MS_ERR_TEXT_MAX - 2, "\xc3\xa9", 2);
    ms_fail(&err, MS_E_IO, "%s", big);
    ck_assert_uint_eq(strlen(err.text), MS_ERR_TEXT_MAX - 2); /* half a letter is no text */
    memcpy(big + MS_ERR_TEXT_MAX - 3, "\xc3\xa9", 3);
    ms_fail(&err, MS_E_IO, "%s", big);
    ck_assert_str_eq(err.text + MS_ERR_TEXT_MAX - 3, "\xc3\xa9");
}
END_TEST

START_TEST(what_was_said_can_be_read_where_nobody_asked)
{
    struct ms_err err;
    ms_fail(&err, MS_E_IO, "disk");

    ck_assert_str_eq(ms_err_text(&err), "disk");
    ck_assert_int_eq(ms_err_recode(&err, MS_E_CONFIG), MS_E_CONFIG);
    ck_assert_int_eq(ms_err_code(&err), MS_E_CONFIG);
    ck_assert_str_eq(ms_err_text(NULL), "");
    ck_assert_int_eq(ms_err_code(NULL), MS_E_FAILED);
    ck_assert_int_eq(ms_err_recode(NULL, MS_E_CONFIG), MS_E_CONFIG);
}
END_TEST

START_TEST(every_code_has_a_name_and_an_exit_status)
{
    for (int code = 0; code >= MS_E_FOREIGN; code--) {
        ck_assert_str_ne(ms_code_name(code), "unknown");
    }
    ck_assert_int_eq(ms_code_exit_status(MS_OK), 0);
    ck_assert_int_eq(ms_code_exit_status(MS_E_FAILED), 1);
    ck_assert_int_eq(ms_code_exit_status(MS_E_INVALID), 2);
    ck_assert_int_eq(ms_code_exit_status(MS_E_UNREACHABLE), 3);
    ck_assert_int_eq(ms_code_exit_status(MS_E_REFUSED), 4);
    ck_assert_int_eq(ms_code_exit_status(MS_E_CANCELLED), 5);
    ck_assert_int_eq(ms_code_exit_status(MS_E_TIMEOUT), 124);
    ck_assert_int_eq(ms_code_exit_status(MS_E_CONFIG), 78);
    ck_assert_str_eq(ms_code_name(-99), "unknown");
    ck_assert_int_eq(ms_code_exit_status(-99), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("err");
    TCase *tc = tcase_create("err");
    tcase_add_test(tc, fail_fills_text_and_returns_the_code);
    tcase_add_test(tc, fail_allows_null_and_its_own_text_as_argument);
    tcase_add_test(tc, fail_errno_appends_the_system_text_and_keeps_errno);
    tcase_add_test(tc, a_shortage_is_no_wrong_setting);
    tcase_add_test(tc, long_text_is_cut_not_overrun);
    tcase_add_test(tc, what_was_said_can_be_read_where_nobody_asked);
    tcase_add_test(tc, every_code_has_a_name_and_an_exit_status);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
