/* test_account.c - whose account a uid is
 *
 * Of the system's users root and daemon are counted on, and daemon's number is looked up. */
#include "daemon/account.h"
#include "tests/test.h"

#include <pwd.h>

static const char *dir;
static char path[300];

static void write_ranges(const char *lines)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(lines, file);
    fclose(file);
}

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/subuid", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

START_TEST(a_uid_with_a_name_is_its_own_account)
{
    struct ms_account account;
    write_ranges("root:1:4294967294\n");
    ck_assert_int_eq(account_find(path, 0, 1, &account), 0);
    ck_assert_uint_eq(account.uid, 0);
    ck_assert_str_eq(account.name, "root");
}
END_TEST

START_TEST(a_uid_of_no_range_is_its_own_account_without_a_name)
{
    struct ms_account account;
    write_ranges("daemon:4000000000:1\n");
    ck_assert_int_eq(account_find(path, 4000000001U, 0, &account), 0);
    ck_assert_uint_eq(account.uid, 4000000001U);
    ck_assert_str_eq(account.name, "");
}
END_TEST

START_TEST(a_subordinate_uid_is_its_owners_account)
{
    const struct passwd *daemon = getpwnam("daemon");
    struct ms_account account;
    char lines[200];
    if (daemon == NULL) {
        printf("skip: there is no user daemon\n");
        return;
    }
    unsigned uid = daemon->pw_uid;
    snprintf(lines, sizeof(lines), "daemon:4000000000:10\n%u:4000000010:10\n4242:4000000020:10\n",
             uid);
    write_ranges(lines);
    const struct {
        unsigned uid, account;
        const char *name;
    } cases[] = {
        {4000000000U, uid, "daemon"}, /* by name */
        {4000000019U, uid, "daemon"}, /* by number */
        {4000000020U, 4242, ""},      /* an owner without a name has one number for all */
        {4000000029U, 4242, ""},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        ck_assert_int_eq(account_find(path, cases[i].uid, 0, &account), 0);
        ck_assert_uint_eq(account.uid, cases[i].account);
        ck_assert_str_eq(account.name, cases[i].name);
    }
}
END_TEST

/* Root of an unprivileged container is neither root, nor another person than the container. */
START_TEST(ranges_of_root_of_the_daemon_and_of_nobody_are_one_stranger_each)
{
    enum { DAEMON = 990 };
    static const unsigned firsts[] = {4000000000U, 4000000010U, 4000000020U, 4000000030U,
                                      4000000040U};
    struct ms_account account;
    write_ranges("root:4000000000:10\n0:4000000010:10\n990:4000000020:10\n"
                 "nosuchuserhere:4000000030:10\n99999999999999999999:4000000040:10\n");
    for (size_t i = 0; i < MS_ARRAY_SIZE(firsts); i++) {
        for (unsigned n = 0; n < 10; n += 9) {
            ck_assert_int_eq(account_find(path, firsts[i] + n, DAEMON, &account), 0);
            ck_assert_uint_eq(account.uid, firsts[i]);
            ck_assert_str_eq(account.name, "");
        }
    }
}
END_TEST

START_TEST(a_name_is_looked_up_as_the_system_has_it)
{
    unsigned uid = 1;
    int is_one = 0;
    ck_assert_int_eq(account_named("root", &uid, &is_one), 0);
    ck_assert(is_one);
    ck_assert_uint_eq(uid, 0);
    ck_assert_int_eq(account_named("nosuchuserhere", &uid, &is_one), 0);
    ck_assert(!is_one);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("account");
    TCase *tc = tcase_create("account");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_uid_with_a_name_is_its_own_account);
    tcase_add_test(tc, a_uid_of_no_range_is_its_own_account_without_a_name);
    tcase_add_test(tc, a_subordinate_uid_is_its_owners_account);
    tcase_add_test(tc, ranges_of_root_of_the_daemon_and_of_nobody_are_one_stranger_each);
    tcase_add_test(tc, a_name_is_looked_up_as_the_system_has_it);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
