/* test_denied.c - who keeps us from a file, and the command that lets us in */
#include "proto/denied.h"

#include "config.h"
#include "proto/settings_file.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static const char *dir;
static char path[128];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/in", dir);
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    snprintf(path, sizeof(path), "%s/in/file", dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0600), 0);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

/* What is said to somebody else; root may open everything. NULL: only root can give files away. */
static const char *said_to(uid_t who, const char *of, int mode)
{
    static struct ms_err err;
    uid_t us = geteuid();
    if (us != 0) {
        printf("skip: only root can give its files away\n");
        return NULL;
    }
    ck_assert_int_eq(seteuid(who), 0);
    ms_fail(&err, MS_E_CONFIG, "cannot open it: Permission denied");
    ck_assert_int_eq(ms_denied(of, mode, MS_E_CONFIG, &err), MS_E_CONFIG);
    ck_assert_int_eq(seteuid(us), 0);
    return err.text;
}

#define ck_says(who, of, mode, ...)                                                                \
    do {                                                                                           \
        char want[400];                                                                            \
        const char *said = said_to(who, of, mode);                                                 \
        snprintf(want, sizeof(want), "cannot open it: Permission denied" __VA_ARGS__);             \
        if (said != NULL) {                                                                        \
            ck_assert_str_eq(said, want);                                                          \
        }                                                                                          \
    } while (0)

START_TEST(whose_it_is_who_we_are_and_what_helps)
{
    ck_says(NOBODY, path, R_OK,
            "; it is root's, of mode 0600, and this runs as nobody: sudo chmod a+r %s", path);
    ck_says(NOBODY, path, R_OK | W_OK,
            "; %s is root's, of mode 0600, and this runs as nobody: name another one, or if it is "
            "meant for nobody, sudo chown nobody %s",
            path, path);
    ck_says(4000000, path, R_OK | W_OK,
            "; %s is root's, of mode 0600, and this runs as 4000000: name another one, or if it is "
            "meant for 4000000, sudo chown 4000000 %s",
            path, path);
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(path, 1, 1), 0);
        ck_says(NOBODY, path, R_OK | W_OK,
                "; %s is daemon's, of mode 0600, and this runs as nobody: run it as daemon (sudo "
                "-u daemon), or if it is meant for nobody, sudo chown nobody %s",
                path, path);
        ck_assert_int_eq(chown(path, 4000000, 1), 0);
        ck_says(NOBODY, path, R_OK,
                "; it is 4000000's, of mode 0600, and this runs as nobody: run it as 4000000 "
                "(sudo -u \\#4000000), or sudo chmod a+r %s",
                path);
        ck_assert_int_eq(chown(path, NOBODY, 0) | chmod(path, 0400), 0);
        ck_says(NOBODY, path, R_OK | W_OK, "; %s is of mode 0400: chmod u+rw %s", path, path);
    }
}
END_TEST

START_TEST(a_folder_that_keeps_us_out_is_named)
{
    char in[128];
    char absent[160];
    snprintf(in, sizeof(in), "%s/in", dir);
    snprintf(absent, sizeof(absent), "%s/in/new", dir);
    ck_says(NOBODY, absent, R_OK | W_OK,
            "; %s is root's, of mode 0755, and this runs as nobody: name another one, or if it is "
            "meant for nobody, sudo chown nobody %s",
            in, in);
    ck_says(NOBODY, absent, R_OK, "");
    ck_assert_int_eq(chmod(in, 0700), 0);
    ck_says(NOBODY, path, R_OK,
            "; %s is root's, of mode 0700, and nobody may not enter it: sudo chmod o+x %s", in, in);
    ck_says(NOBODY, absent, R_OK | W_OK,
            "; %s is root's, of mode 0700, and this runs as nobody: name another one, or if it is "
            "meant for nobody, sudo chown nobody %s",
            in, in);
    ck_assert_int_eq(chmod(dir, 0700), 0);
    ck_says(NOBODY, absent, R_OK | W_OK,
            "; %s is root's, of mode 0700, and nobody may not enter it: sudo chmod o+x %s", dir,
            dir);
}
END_TEST

/* Whether they are there or not: the path and the owner tell. */
START_TEST(what_is_the_services_is_not_given_to_a_person)
{
    if (geteuid() == 0) {
        ck_assert_int_eq(ms_denied_is_services("/var/lib/msched/state.db", 0, 0), 0);
        ck_assert_int_eq(seteuid(NOBODY), 0);
        int is_state = ms_denied_is_services("/var/lib/msched/state.db", 0, 0);
        int is_key = ms_denied_is_services(MSCHED_SYSCONFDIR "/tls/node.p12", 0, 0);
        int is_folder = ms_denied_is_services(MSCHED_SYSCONFDIR, 0, 0);
        int is_like = ms_denied_is_services(MSCHED_SYSCONFDIR "2/tls/node.p12", 0, 0);
        int is_roots = ms_denied_is_services(path, 0, 0);
        int is_ours = ms_denied_is_services("/var/lib/msched/state.db", NOBODY, 0);
        ck_assert_int_eq(seteuid(0), 0);
        ck_assert(is_state && is_key && is_folder);
        ck_assert(!is_like && !is_roots && !is_ours);
    }
}
END_TEST

START_TEST(a_command_is_said_whole_or_not_at_all)
{
    char deep[400];
    size_t n = (size_t)snprintf(deep, sizeof(deep), "%s/in/", dir);
    memset(deep + n, 'x', 200);
    deep[n + 200] = '\0';
    FILE *file = fopen(deep, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_int_eq(chmod(deep, 0600), 0);
    ck_says(NOBODY, deep, R_OK | W_OK, "");
}
END_TEST

START_TEST(what_no_mode_keeps_from_us_is_not_blamed_on_one)
{
    ck_says(0, path, R_OK | W_OK, "");
    ck_says(0, "/nonexistent/x", R_OK | W_OK, "");
    ck_assert_int_eq(ms_denied(path, R_OK, MS_E_IO, NULL), MS_E_IO);
}
END_TEST

static int heed(void *arg, const char *key, const char *value, int line, struct ms_err *err)
{
    (void)arg, (void)key, (void)value, (void)line, (void)err;
    return 0;
}

START_TEST(a_file_of_settings_says_it)
{
    if (geteuid() == 0) {
        ck_assert_int_eq(seteuid(NOBODY), 0);
        ck_ms_fails(ms_settings_file_read(path, heed, NULL, err), MS_E_CONFIG,
                    "file: Permission denied; it is root's, of mode 0600, and this runs as nobody");
        ck_assert_int_eq(seteuid(0), 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("denied");
    TCase *tcase = test_case_create("denied");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, whose_it_is_who_we_are_and_what_helps);
    tcase_add_test(tcase, a_folder_that_keeps_us_out_is_named);
    tcase_add_test(tcase, what_is_the_services_is_not_given_to_a_person);
    tcase_add_test(tcase, a_command_is_said_whole_or_not_at_all);
    tcase_add_test(tcase, what_no_mode_keeps_from_us_is_not_blamed_on_one);
    tcase_add_test(tcase, a_file_of_settings_says_it);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
