/* test_node.c - which folder of jobs a node has: the same after a restart, another one after its
 * loss */
#include "libworker/node/node.h"
#include "tests/test.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *dir;
static char file[160];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(file, sizeof(file), "%s/.msched-folder", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

START_TEST(a_folder_is_the_same_one_for_all_slots_of_its_host)
{
    const uint64_t folder = node_folder(dir);
    ck_assert_uint_ne(folder, 0);
    ck_assert_uint_eq(node_folder(dir), folder);
}
END_TEST

START_TEST(made_anew_it_is_another_one)
{
    const uint64_t folder = node_folder(dir);
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_uint_ne(node_folder(dir), folder);
}
END_TEST

START_TEST(its_number_is_all_that_it_is)
{
    const uint64_t folder = node_folder(dir);
    char other[160];
    snprintf(other, sizeof(other), "%s/other", dir);
    ck_assert_int_eq(mkdir(other, 0700), 0);
    snprintf(other, sizeof(other), "%s/other/.msched-folder", dir);
    ck_assert_int_eq(rename(file, other), 0);
    snprintf(other, sizeof(other), "%s/other", dir);
    ck_assert_uint_eq(node_folder(other), folder);
}
END_TEST

/* Nothing is waited for, and nothing is overwritten. */
START_TEST(what_is_no_number_is_not_known)
{
    static const char *const texts[] = {"", "0123456789abcde\n", "0123456789ABCDEF\n"};
    if (_i == 3) {
        ck_assert_int_eq(mkfifo(file, 0600), 0);
    } else if (_i == 4) {
        ck_assert_int_eq(mkdir(file, 0700), 0);
    } else {
        FILE *to = fopen(file, "w");
        ck_assert_ptr_nonnull(to);
        fputs(texts[_i], to);
        fclose(to);
    }
    ck_assert_uint_eq(node_folder(dir), 0);
    ck_assert_int_eq(access(file, F_OK), 0);
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_not_known)
{
    char none[160];
    snprintf(none, sizeof(none), "%s/none", dir);
    ck_assert_uint_eq(node_folder(none), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node");
    TCase *t = tcase_create("folder");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_folder_is_the_same_one_for_all_slots_of_its_host);
    tcase_add_test(t, made_anew_it_is_another_one);
    tcase_add_test(t, its_number_is_all_that_it_is);
    tcase_add_loop_test(t, what_is_no_number_is_not_known, 0, 5);
    tcase_add_test(t, a_folder_that_is_not_there_is_not_known);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
