/* test_memory.c - large buffers and how much memory there is */
#include "libworker/host/memory.h"
#include "tests/test.h"
#include "tests/unit/host_tree.h"

START_TEST(large_buffers_are_zeroed_and_aligned_to_huge_pages)
{
    void *memory = NULL;
    size_t bytes = (5U << 20) + 13;

    ck_ms_ok(memory_alloc(bytes, "a test", &memory, err));

    ck_assert_uint_eq((uintptr_t)memory % (2U << 20), 0);
    ck_assert_int_eq(((char *)memory)[0], 0);
    ck_assert_int_eq(((char *)memory)[bytes - 1], 0);
    memory_free(memory, bytes);
}
END_TEST

START_TEST(nothing_at_all_can_be_allocated_and_freed)
{
    void *memory = NULL;

    ck_ms_ok(memory_alloc(0, "nothing", &memory, err));

    ck_assert_ptr_nonnull(memory);
    memory_free(memory, 0);
    memory_free(NULL, 100);
}
END_TEST

START_TEST(too_much_is_refused_with_its_name)
{
    void *memory = NULL;

    ck_ms_fails(memory_alloc((size_t)1 << 62, "activations", &memory, err), MS_E_NOMEM,
                "activations");
    ck_assert_ptr_null(memory);
}
END_TEST

START_TEST(available_memory_is_more_than_a_page_and_less_than_an_exabyte)
{
    uint64_t bytes = memory_available();

    ck_assert_uint_gt(bytes, 1U << 20);
    ck_assert_uint_lt(bytes, UINT64_C(1) << 60);
}
END_TEST

static uint64_t left(const char *root, uint64_t best)
{
    char cgroup[300];
    snprintf(cgroup, sizeof(cgroup), "%s/cgroup", root);
    return memory_left(&(struct cgroup_files){cgroup, root}, best);
}

START_TEST(limits_of_either_hierarchy_and_of_those_above_count)
{
    const char *root = test_dir_make();
    tree_put(root, "cgroup", "9:name=systemd:/\n4:memory:/a/b\n1:cpu:/\n");
    ck_assert_uint_eq(left(root, 5000), 5000);
    tree_put(root, "memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    tree_put(root, "memory/a/b/memory.usage_in_bytes", "100\n");
    ck_assert_uint_eq(left(root, 5000), 5000);
    tree_put(root, "memory/a/memory.limit_in_bytes", "1000\n");
    tree_put(root, "memory/a/memory.usage_in_bytes", "400\n");
    ck_assert_uint_eq(left(root, 5000), 600);
    ck_assert_uint_eq(left(root, MEMORY_UNKNOWN), 600);

    tree_put(root, "cgroup", "0::/u/v\n");
    tree_put(root, "u/v/memory.max", "max\n");
    tree_put(root, "u/v/memory.current", "10\n");
    ck_assert_uint_eq(left(root, 5000), 5000);
    tree_put(root, "u/memory.max", "300\n");
    tree_put(root, "u/memory.current", "400\n");
    ck_assert_uint_eq(left(root, 5000), 0);
    test_dir_remove(root);
}
END_TEST

START_TEST(a_full_cgroup_below_a_larger_one_leaves_nothing)
{
    const char *root = test_dir_make();
    tree_put(root, "cgroup", "0::/slice/svc\n");
    tree_put(root, "slice/memory.max", "8000000000\n");
    tree_put(root, "slice/memory.current", "1000000000\n");
    tree_put(root, "slice/svc/memory.max", "100000000\n");
    tree_put(root, "slice/svc/memory.current", "100000000\n");

    ck_assert_uint_eq(left(root, 16000000000), 0);
    ck_assert_uint_eq(left(root, MEMORY_UNKNOWN), 0);
    test_dir_remove(root);
}
END_TEST

START_TEST(page_cache_is_left)
{
    const char *root = test_dir_make();
    tree_put(root, "cgroup", "0::/\n");
    tree_put(root, "memory.max", "400000000\n");
    tree_put(root, "memory.current", "400000000\n");
    tree_put(root, "memory.stat",
             "anon 30000000\nfile 350000000\ninactive_anon 5\ninactive_file 200000000\n"
             "active_file 150000000\nslab_reclaimable 10000000\n");
    ck_assert_uint_eq(left(root, MEMORY_UNKNOWN), 360000000);

    tree_put(root, "cgroup", "4:memory:/\n"); /* whose own numbers leave out the folders below */
    tree_put(root, "memory/memory.limit_in_bytes", "1000\n");
    tree_put(root, "memory/memory.usage_in_bytes", "1000\n");
    tree_put(root, "memory/memory.stat",
             "inactive_file 1\nactive_file 2\nhierarchical_memory_limit 1000\n"
             "total_inactive_file 600\ntotal_active_file 300\n");
    ck_assert_uint_eq(left(root, MEMORY_UNKNOWN), 900);

    tree_put(root, "memory/memory.stat", "total_inactive_file 5000\n"); /* counted late */
    ck_assert_uint_eq(left(root, MEMORY_UNKNOWN), 1000);
    test_dir_remove(root);
}
END_TEST

START_TEST(sizes_print_in_decimal_units)
{
    char buf[32];

    ck_assert_str_eq(memory_format(999, buf, sizeof(buf)), "999 B");
    ck_assert_str_eq(memory_format(2610000000U, buf, sizeof(buf)), "2.61 GB");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *tc = tcase_create("memory");
    tcase_add_test(tc, large_buffers_are_zeroed_and_aligned_to_huge_pages);
    tcase_add_test(tc, nothing_at_all_can_be_allocated_and_freed);
    tcase_add_test(tc, too_much_is_refused_with_its_name);
    tcase_add_test(tc, available_memory_is_more_than_a_page_and_less_than_an_exabyte);
    tcase_add_test(tc, limits_of_either_hierarchy_and_of_those_above_count);
    tcase_add_test(tc, a_full_cgroup_below_a_larger_one_leaves_nothing);
    tcase_add_test(tc, page_cache_is_left);
    tcase_add_test(tc, sizes_print_in_decimal_units);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
