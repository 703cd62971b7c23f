/* test_recovery_path.c - MS_RECOVERY_PATH: made for one user alone, or refused by name */
#include "daemon/recovery_path.h"

#include "tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *dir;
static char path[256];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/a/b/c", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static unsigned mode_of(const char *name)
{
    struct stat st;
    ck_assert_int_eq(stat(name, &st), 0);
    return st.st_mode & 0777;
}

START_TEST(what_is_missing_of_it_is_made_for_this_user_alone)
{
    char above[256];
    umask(0);
    ck_ms_ok(recovery_path_make(path, err));
    ck_ms_ok(recovery_path_make(path, err)); /* the scheduler's next start */

    ck_assert_uint_eq(mode_of(path), 0700);
    snprintf(above, sizeof(above), "%s/a", dir);
    ck_assert_uint_eq(mode_of(above), 0700);
}
END_TEST

START_TEST(a_slash_too_many_changes_nothing)
{
    char odd[256];
    snprintf(odd, sizeof(odd), "%s//a/", dir);
    ck_ms_ok(recovery_path_make(odd, err));
    ck_ms_ok(recovery_path_judge(odd, err));
}
END_TEST

START_TEST(to_judge_it_makes_nothing)
{
    ck_ms_ok(recovery_path_judge(path, err));

    ck_assert_int_ne(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "%s/a", dir);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_file_on_the_way_is_named_with_the_variable)
{
    char file[256];
    snprintf(file, sizeof(file), "%s/a", dir);
    close(open(file, O_CREAT | O_WRONLY, 0600));

    ck_ms_fails(recovery_path_make(path, err), MS_E_CONFIG, "MS_RECOVERY_PATH=/");
    ck_ms_fails(recovery_path_make(path, err), MS_E_CONFIG, "/a/b/c");
    ck_ms_fails(recovery_path_judge(path, err), MS_E_CONFIG, "/a/b/c");
    ck_ms_fails(recovery_path_make(file, err), MS_E_CONFIG, "Not a directory");
    struct ms_err why = {0, ""};
    (void)recovery_path_make(file, &why);
    ck_assert_msg(strstr(why.text, "chmod") == NULL, "%s", why.text); /* no mode makes it one */
}
END_TEST

/* As /var/tmp, and not to be looked into. */
START_TEST(a_folder_below_one_that_cannot_be_read_is_made)
{
    enum { NOBODY = 65534 };
    const int is_root = getuid() == 0;
    struct ms_err why = {0, ""};
    snprintf(path, sizeof(path), "%s/a", dir);
    ck_assert_int_eq(chmod(dir, is_root ? 01733 : 0300), 0);
    ck_assert(!is_root || seteuid(NOBODY) == 0);
    const int rc = recovery_path_make(path, &why);
    ck_assert(!is_root || seteuid(0) == 0);
    ck_assert_int_eq(chmod(dir, 0700), 0);
    ck_assert_msg(rc == 0, "%s", why.text);
}
END_TEST

START_TEST(a_folder_of_everybody_is_refused)
{
    ck_ms_ok(recovery_path_make(path, err));
    ck_assert_int_eq(chmod(path, 01777), 0);

    ck_ms_fails(recovery_path_make(path, err), MS_E_CONFIG, "everybody may write");
    ck_ms_fails(recovery_path_judge(path, err), MS_E_CONFIG, "everybody may write");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recovery_path");
    TCase *tcase = tcase_create("recovery_path");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_is_missing_of_it_is_made_for_this_user_alone);
    tcase_add_test(tcase, a_slash_too_many_changes_nothing);
    tcase_add_test(tcase, to_judge_it_makes_nothing);
    tcase_add_test(tcase, a_file_on_the_way_is_named_with_the_variable);
    tcase_add_test(tcase, a_folder_below_one_that_cannot_be_read_is_made);
    tcase_add_test(tcase, a_folder_of_everybody_is_refused);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
