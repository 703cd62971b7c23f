/* test_subuid.c - whose a subordinate uid is */
#include "daemon/subuid.h"
#include "tests/test.h"

static const char *dir;
static char path[300];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/subuid", dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("# no range\n:1:2\nalice:100000:65536\n1001:165536:65536\nnonsense:x:y\n"
          "bob:231072:10\nlow:1000:65536\n"
          "far:700000:99999999999999999999\nover:700000:4294267296\nback:-1:700001\n"
          "more:700000:10:1\nlast:4294967290:5\n",
          file);
    fclose(file);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

START_TEST(each_uid_of_a_range_is_its_owners)
{
    static const struct {
        unsigned uid, first;
        const char *owner; /* NULL: nobody's */
    } cases[] = {
        {100000, 100000, "alice"},
        {165535, 100000, "alice"},
        {165536, 165536, "1001"},
        {231071, 165536, "1001"},
        {231072, 231072, "bob"},
        {231081, 231072, "bob"},
        {231082, 0, NULL},
        {99999, 0, NULL},
        {4294967289U, 0, NULL},
        {700000, 0, NULL}, /* beyond the uids that there are, and other nonsense */
        {4294967294U, 4294967290U, "last"},
        {4294967295U, 0, NULL},
        {66535, 65536, "low"},
        {1000, 0, NULL}, /* an account's own, whatever the file says */
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        char owner[MS_NAME_MAX + 1] = "";
        unsigned first = 0;
        int found = subuid_find(path, cases[i].uid, &first, owner);
        ck_assert_int_eq(found, cases[i].owner != NULL);
        if (found) {
            ck_assert_str_eq(owner, cases[i].owner);
            ck_assert_uint_eq(first, cases[i].first);
        }
    }
}
END_TEST

START_TEST(without_a_file_nobody_has_any)
{
    char owner[MS_NAME_MAX + 1];
    unsigned first = 0;
    ck_assert_int_eq(subuid_find("/nonexistent/subuid", 100000, &first, owner), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("subuid");
    TCase *tc = tcase_create("subuid");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, each_uid_of_a_range_is_its_owners);
    tcase_add_test(tc, without_a_file_nobody_has_any);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
