/* test_settings_file.c - the one reader of files of settings, and a look at another program's */
#include "proto/settings_file.h"
#include "tests/test.h"

#include <sys/stat.h>

static char dir[64];
static char path[96];

static void setup(void)
{
    snprintf(dir, sizeof(dir), "%s", test_dir_make());
    snprintf(path, sizeof(path), "%s/x.conf", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static const char *const keys[] = {"tls_dir", "server"};

static int look(char **values, struct ms_err *err)
{
    return ms_settings_file_find(path, keys, values, MS_ARRAY_SIZE(keys), err);
}

static void check_value(const char *text, const char *expected)
{
    char *values[MS_ARRAY_SIZE(keys)];
    write_file(text);
    ck_ms_ok(look(values, err));
    ck_assert_ptr_nonnull(values[0]);
    ck_assert_str_eq(values[0], expected);
    ck_assert_ptr_null(values[1]);
    free(values[0]);
}

START_TEST(values_are_those_that_the_programs_see)
{
    check_value("other = 1\n  tls_dir = \"/a b\"   # there\n", "/a b");
    check_value("tls_dir=/a#b # a blank goes before a comment\r\n", "/a#b");
    check_value("# tls_dir = /no\ntls_dir = /yes", "/yes");
    check_value("tls_directory = /no\ntls_dir = \"\n", "\"");
}
END_TEST

START_TEST(a_value_of_any_length_is_whole)
{
    char *values[MS_ARRAY_SIZE(keys)];
    char text[4096];
    memset(text, '/', sizeof(text));
    memcpy(text, "tls_dir=", 8);
    text[4080] = '\0';
    check_value(text, text + 8);

    text[4080] = '/';
    text[4095] = '\0';
    write_file(text);
    ck_ms_fails(look(values, err), MS_E_CONFIG, "x.conf, line 1 is longer than");
    ck_assert_ptr_null(values[0]);
}
END_TEST

START_TEST(what_its_program_refuses_is_refused)
{
    char *values[MS_ARRAY_SIZE(keys)];
    ck_ms_fails(look(values, err), MS_E_NOT_FOUND, "x.conf");
    write_file("server = a\nserver = b\n");
    ck_ms_fails(look(values, err), MS_E_CONFIG, "line 2: server stands there a second time");
    ck_assert_ptr_null(values[1]);
    write_file("nonsense\n");
    ck_ms_fails(look(values, err), MS_E_CONFIG, "'nonsense' is no 'key = value'");
}
END_TEST

START_TEST(a_fifo_is_refused_at_once)
{
    char *values[MS_ARRAY_SIZE(keys)];
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_ms_fails(look(values, err), MS_E_CONFIG, "is no regular file");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("settings_file");
    TCase *tc = tcase_create("settings_file");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, values_are_those_that_the_programs_see);
    tcase_add_test(tc, a_value_of_any_length_is_whole);
    tcase_add_test(tc, what_its_program_refuses_is_refused);
    tcase_add_test(tc, a_fifo_is_refused_at_once);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
