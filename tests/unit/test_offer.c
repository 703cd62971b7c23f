/* test_offer.c - what hosts of many shapes offer, and this one */
#include "libworker/host/offer.h"
#include "tests/test.h"
#include "tests/unit/host_tree.h"

/* Two NUMA nodes, four cores each, two threads each: siblings are i and i + 8, as Linux numbers
 * them. */
#define TWO_NODES                                                                                  \
    "numa:2 l3:1(size=33554432) l2:4(size=1048576) l1d:1(size=49152) core:1 "                      \
    "pu:2(indexes=0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15)"

static struct host_sources sources(const char *synthetic, int from, int to)
{
    struct host_sources from_it = {.synthetic = synthetic,
                                   .cgroups = {"/nonexistent/cgroup", "/nonexistent"}};
    for (int i = from; i < to; i++) {
        cpuset_add(&from_it.cpus, i);
    }
    return from_it;
}

START_TEST(siblings_of_a_core_count_once)
{
    static struct host host;
    struct host_sources from = sources(TWO_NODES, 0, 16);

    host_load(&from, &host);

    ck_assert_int_eq(host.is_mapped, 1);
    ck_assert_int_eq(host.offer.cores, 16);
    ck_assert_int_eq(host.offer.physical, 8);
    ck_assert_int_eq(host.offer.numa, 2);
    ck_assert_uint_eq(host.map.core[3], 3);
    ck_assert_uint_eq(host.map.core[11], 3);
    ck_assert_uint_eq(host.map.node[3], host.map.node[11]);
    ck_assert_uint_ne(host.map.node[3], host.map.node[4]);
}
END_TEST

START_TEST(what_the_process_may_not_use_is_not_offered_and_still_mapped)
{
    static struct host host;
    struct host_sources from = sources(TWO_NODES, 2, 6);

    host_load(&from, &host);

    ck_assert_int_eq(host.offer.cores, 4);
    ck_assert_int_eq(host.offer.physical, 4);
    ck_assert_int_eq(host.offer.numa, 2);
    ck_assert_uint_eq(host.map.core[15], 7);

    from = sources(TWO_NODES, 0, 0);
    cpuset_add(&from.cpus, 1);
    cpuset_add(&from.cpus, 9);
    host_load(&from, &host);
    ck_assert_int_eq(host.offer.cores, 2);
    ck_assert_int_eq(host.offer.physical, 1);
    ck_assert_int_eq(host.offer.numa, 1);
}
END_TEST

START_TEST(caches_have_their_sizes)
{
    static struct host host;
    struct host_sources from = sources(TWO_NODES, 4, 6);

    host_load(&from, &host);

    ck_assert_uint_eq(host.offer.cache_bytes[0], 48U << 10);
    ck_assert_uint_eq(host.offer.cache_bytes[1], 1U << 20);
    ck_assert_uint_eq(host.offer.cache_bytes[2], 32U << 20);
}
END_TEST

START_TEST(without_a_topology_each_cpu_is_a_core)
{
    static struct host host;
    struct host_sources from = sources("no topology", 4, 10);

    host_load(&from, &host);

    ck_assert_int_eq(host.is_mapped, 0);
    ck_assert_int_eq(host.offer.cores, 6);
    ck_assert_int_eq(host.offer.physical, 6);
    ck_assert_int_eq(host.offer.numa, 1);
    ck_assert_uint_eq(host.map.core[9], 9);
    ck_assert_uint_eq(host.offer.cache_bytes[2], 0);
}
END_TEST

START_TEST(a_process_whose_cpus_are_not_known_has_one)
{
    static struct host host;
    struct host_sources from = sources(TWO_NODES, 0, 0);

    host_load(&from, &host);

    ck_assert_int_eq(host.offer.cores, 1);
    ck_assert_int_eq(host.offer.physical, 1);
}
END_TEST

START_TEST(limits_of_cpu_time_are_part_of_the_offer)
{
    static struct host host;
    const char *root = test_dir_make();
    char membership[300];
    snprintf(membership, sizeof(membership), "%s/cgroup", root);
    tree_put(root, "cgroup", "0::/slice/unit\n");
    tree_put(root, "slice/cpu.max", "250000 100000\n");
    struct host_sources from = sources(TWO_NODES, 0, 16);
    host_load(&from, &host);
    ck_assert_uint_eq(host.offer.cpu_milli, 0);

    from.cgroups = (struct cgroup_files){membership, root};
    host_load(&from, &host);

    ck_assert_uint_eq(host.offer.cpu_milli, 2500);
    ck_assert_uint_ne(host.offer.cpu_pool, 0);
    test_dir_remove(root);
}
END_TEST

START_TEST(this_host_offers_what_its_affinity_says)
{
    const struct cpuset cpus = cpuset_of_thread();

    const struct host *host = host_get();

    ck_assert_mem_eq(&host->offer.cpus, &cpus, sizeof(cpus));
    ck_assert_int_eq(host->offer.cores, cpuset_count(&cpus));
    ck_assert_int_ge(host->offer.physical, 1);
    ck_assert_int_le(host->offer.physical, host->offer.cores);
    ck_assert_int_ge(host->offer.numa, 1);
    ck_assert_ptr_eq(host_get(), host);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("offer");
    TCase *tc = tcase_create("offer");
    tcase_add_test(tc, siblings_of_a_core_count_once);
    tcase_add_test(tc, what_the_process_may_not_use_is_not_offered_and_still_mapped);
    tcase_add_test(tc, caches_have_their_sizes);
    tcase_add_test(tc, without_a_topology_each_cpu_is_a_core);
    tcase_add_test(tc, a_process_whose_cpus_are_not_known_has_one);
    tcase_add_test(tc, limits_of_cpu_time_are_part_of_the_offer);
    tcase_add_test(tc, this_host_offers_what_its_affinity_says);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
