/* test_cgroup.c - control groups of either hierarchy, and their limits of CPU time */
#include "libworker/host/cgroup.h"
#include "tests/test.h"
#include "tests/unit/host_tree.h"

static const char *root;
static char membership[300];
static struct cgroup_files files;

static void setup(void)
{
    root = test_dir_make();
    snprintf(membership, sizeof(membership), "%s/cgroup", root);
    files = (struct cgroup_files){membership, root};
}

static void teardown(void)
{
    test_dir_remove(root);
}

static void note(void *arg, const char *folder, enum cgroup_version version)
{
    char *seen = (char *)arg;
    size_t n = strlen(seen);
    snprintf(seen + n, 1024 - n, "%d:%s ", (int)version, folder + strlen(root));
}

START_TEST(a_walk_goes_from_the_own_group_to_the_root_of_the_mount)
{
    char seen[1024] = "";
    tree_put(root, "cgroup", "3:name=cpu:/no\n2:cpuacct,cpu:/a/b\n1:cpuset:/no\n0::/u/v\n");

    cgroup_walk(&files, "cpu", note, seen);

    ck_assert_str_eq(seen, "1:/cpu/a/b 1:/cpu/a 1:/cpu 2:/u/v 2:/u 2: ");
}
END_TEST

START_TEST(a_process_without_groups_has_no_limit)
{
    ck_assert_uint_eq(cgroup_cpu_limit(&files).milli, 0); /* no such file */

    tree_put(root, "cgroup", "no group\n\n7:cpu\n0::/away\n");
    ck_assert_uint_eq(cgroup_cpu_limit(&files).milli, 0);
}
END_TEST

START_TEST(the_tightest_quota_on_the_way_up_counts)
{
    tree_put(root, "cgroup", "0::/slice/unit\n");
    tree_put(root, "slice/unit/cpu.max", "max 100000\n");
    ck_assert_uint_eq(cgroup_cpu_limit(&files).milli, 0);

    tree_put(root, "slice/unit/cpu.max", "350000 100000\n");
    ck_assert_uint_eq(cgroup_cpu_limit(&files).milli, 3500);

    tree_put(root, "slice/cpu.max", "400000 100000\n");
    ck_assert_uint_eq(cgroup_cpu_limit(&files).milli, 3500);
    tree_put(root, "slice/cpu.max", "50000 25000\n");
    ck_assert_uint_eq(cgroup_cpu_limit(&files).milli, 2000);
}
END_TEST

START_TEST(quotas_of_the_first_version_count)
{
    tree_put(root, "cgroup", "4:cpu,cpuacct:/a/b\n0::/\n");
    tree_put(root, "cpu/a/b/cpu.cfs_quota_us", "-1\n");
    tree_put(root, "cpu/a/b/cpu.cfs_period_us", "100000\n");
    ck_assert_uint_eq(cgroup_cpu_limit(&files).milli, 0);

    tree_put(root, "cpu/a/cpu.cfs_quota_us", "150000\n");
    tree_put(root, "cpu/a/cpu.cfs_period_us", "100000\n");
    ck_assert_uint_eq(cgroup_cpu_limit(&files).milli, 1500);
}
END_TEST

START_TEST(a_quota_below_a_thousandth_is_a_limit_still)
{
    tree_put(root, "cgroup", "0::/\n");
    tree_put(root, "cpu.max", "1 1000000\n");

    ck_assert_uint_eq(cgroup_cpu_limit(&files).milli, 1);
}
END_TEST

START_TEST(damaged_files_are_no_limit)
{
    static const char *const texts[] = {
        "", "\n", "5", "x 100000", "100000 0", "100000 x", "99999999999999999999999 100000"};
    tree_put(root, "cgroup", "0::/\n");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        tree_put(root, "cpu.max", texts[i]);
        ck_assert_msg(cgroup_cpu_limit(&files).milli == 0, "\"%s\"", texts[i]);
    }
}
END_TEST

START_TEST(who_shares_a_limit_sees_the_same_pool)
{
    tree_put(root, "cpu.max", "max 100000\n");
    tree_put(root, "slice/cpu.max", "400000 100000\n");
    tree_put(root, "slice/a/cpu.max", "max 100000\n");
    tree_put(root, "slice/b/cpu.max", "max 100000\n");
    tree_put(root, "slice/c/cpu.max", "200000 100000\n");

    tree_put(root, "cgroup", "0::/slice/a\n");
    struct cgroup_cpu a = cgroup_cpu_limit(&files);
    tree_put(root, "cgroup", "0::/slice/b\n");
    struct cgroup_cpu b = cgroup_cpu_limit(&files);
    tree_put(root, "cgroup", "0::/slice/c\n");
    struct cgroup_cpu c = cgroup_cpu_limit(&files);

    ck_assert_uint_eq(a.pool, b.pool);
    ck_assert_uint_ne(a.pool, c.pool);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cgroup");
    TCase *tc = tcase_create("cgroup");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_walk_goes_from_the_own_group_to_the_root_of_the_mount);
    tcase_add_test(tc, a_process_without_groups_has_no_limit);
    tcase_add_test(tc, the_tightest_quota_on_the_way_up_counts);
    tcase_add_test(tc, quotas_of_the_first_version_count);
    tcase_add_test(tc, a_quota_below_a_thousandth_is_a_limit_still);
    tcase_add_test(tc, damaged_files_are_no_limit);
    tcase_add_test(tc, who_shares_a_limit_sees_the_same_pool);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
