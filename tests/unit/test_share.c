/* test_share.c - ranks share hosts: what holds for any topology, and some that are known */
#include "libworker/host/share.h"
#include "proto/rng.h"
#include "tests/test.h"

enum { RANKS_MAX = 12 };

/* ---- hosts ---- */

/* cores cores with smt threads each on n_nodes nodes, siblings numbered as Linux does. */
static void map_fill(struct host_map *map, int n_nodes, int cores, int smt)
{
    memset(map, 0, sizeof(*map));
    for (int cpu = 0; cpu < cores * smt; cpu++) {
        map->core[cpu] = (uint16_t)(cpu % cores);
        map->node[cpu] = (uint16_t)(cpu % cores * n_nodes / cores);
    }
}

static struct cpuset range(int from, int to)
{
    struct cpuset set = {{0}};
    for (int i = from; i < to; i++) {
        cpuset_add(&set, i);
    }
    return set;
}

static int count_cores(const struct host_map *map, const struct cpuset *cpus)
{
    struct cpuset cores = {{0}};
    for (int i = 0; i < MS_CPUS_MAX; i++) {
        if (cpuset_has(cpus, i)) {
            cpuset_add(&cores, map->core[i]);
        }
    }
    return cpuset_count(&cores);
}

static int count_nodes(const struct host_map *map, const struct cpuset *cpus)
{
    struct cpuset nodes = {{0}};
    for (int i = 0; i < MS_CPUS_MAX; i++) {
        if (cpuset_has(cpus, i)) {
            cpuset_add(&nodes, map->node[i]);
        }
    }
    return cpuset_count(&nodes);
}

static struct host_offer offer_of(const struct host_map *map, struct cpuset cpus)
{
    return (struct host_offer){
        .cpus = cpus, .cores = cpuset_count(&cpus), .physical = count_cores(map, &cpus), .numa = 1};
}

/* ---- properties ---- */

struct world {
    struct host_map map;
    struct cpuset sets[RANKS_MAX], shares[RANKS_MAX];
    struct host_offer offers[RANKS_MAX];
    struct share_rank ranks[RANKS_MAX];
    int n, cpus;
};

enum sets_kind { SETS_EQUAL, SETS_APART, SETS_NESTED, SETS_ANY, N_KINDS };

static struct cpuset make_set(const struct world *w, enum sets_kind kind, int rank, uint64_t seed)
{
    struct cpuset set = {{0}};
    const int each = w->cpus / w->n;
    switch (kind) {
    case SETS_EQUAL:
        return range(0, w->cpus);
    case SETS_APART:
        return each > 0 ? range(rank * each, (rank + 1) * each) : range(0, 1);
    case SETS_NESTED:
        return range(0, 1 + (int)ms_rng_below(seed, (uint64_t)rank, (uint64_t)w->cpus));
    default:
        for (int i = 0; i < w->cpus; i++) {
            if (ms_rng_below(seed + (uint64_t)rank, (uint64_t)i, 3) == 0) {
                cpuset_add(&set, i);
            }
        }
        cpuset_add(&set, (int)ms_rng_below(seed, 1000 + (uint64_t)rank, (uint64_t)w->cpus));
        return set;
    }
}

static void make_world(struct world *w, enum sets_kind kind, uint64_t seed)
{
    const int nodes = 1 + (int)ms_rng_below(seed, 1, 4);
    const int cores = nodes * (1 + (int)ms_rng_below(seed, 2, 9));
    const int smt = 1 + (int)ms_rng_below(seed, 3, 2);
    map_fill(&w->map, nodes, cores, smt);
    w->cpus = cores * smt;
    w->n = 1 + (int)ms_rng_below(seed, 4, RANKS_MAX);
    for (int i = 0; i < w->n; i++) {
        w->sets[i] = make_set(w, kind, i, seed);
        w->offers[i] = offer_of(&w->map, w->sets[i]);
        w->ranks[i] = (struct share_rank){"host", &w->offers[i]};
    }
}

static void check_shares(const struct world *w, int threads)
{
    struct cpuset all = {{0}};
    struct cpuset given = {{0}};
    for (int i = 0; i < w->n; i++) {
        const struct cpuset outside = cpuset_minus(&w->shares[i], &w->sets[i]);
        ck_assert(cpuset_is_empty(&outside));
        ck_assert(!cpuset_meets(&given, &w->shares[i]));
        ck_assert_int_ge(count_cores(&w->map, &w->shares[i]), threads);
        for (int cpu = 0; cpu < w->cpus; cpu++) { /* siblings stay together */
            if (cpuset_has(&w->sets[i], cpu) && cpuset_has(&w->shares[i], w->map.core[cpu])) {
                ck_assert(cpuset_has(&w->shares[i], cpu));
            }
        }
        given = cpuset_or(&given, &w->shares[i]);
        all = cpuset_or(&all, &w->sets[i]);
    }
    ck_assert_int_eq(count_cores(&w->map, &given), count_cores(&w->map, &all));
}

START_TEST(shares_are_parts_apart_and_leave_no_core)
{
    static struct world w;
    int n_shared[N_KINDS] = {0};
    for (uint64_t seed = 0; seed < 400; seed++) {
        for (enum sets_kind kind = SETS_EQUAL; kind < N_KINDS; kind++) {
            make_world(&w, kind, seed);
            if (share_cpus(&w.map, w.sets, w.n, 1, w.shares)) {
                check_shares(&w, 1);
                n_shared[kind]++;
            }
        }
    }
    for (int kind = 0; kind < N_KINDS; kind++) {
        ck_assert_int_gt(n_shared[kind], 50);
    }
}
END_TEST

START_TEST(equal_sets_are_shared_where_each_rank_gets_a_core)
{
    static struct world w;
    for (uint64_t seed = 0; seed < 400; seed++) {
        make_world(&w, SETS_EQUAL, seed);
        const int cores = count_cores(&w.map, &w.sets[0]);
        const int threads = share_threads(w.ranks, w.n);

        ck_assert_int_eq(threads, cores >= w.n ? cores / w.n : 1);
        const int is_shared = share_cpus(&w.map, w.sets, w.n, threads, w.shares);

        ck_assert_int_eq(is_shared, cores >= w.n);
        if (is_shared) {
            check_shares(&w, threads);
        }
    }
}
END_TEST

START_TEST(the_threads_of_an_even_part_have_their_cores)
{
    static struct world w;
    int n_shared[N_KINDS] = {0};
    for (uint64_t seed = 0; seed < 400; seed++) {
        for (enum sets_kind kind = SETS_EQUAL; kind < N_KINDS; kind++) {
            make_world(&w, kind, seed);
            const int threads = share_threads(w.ranks, w.n);
            if (threads > 1) { /* one may be less than one core a rank */
                ck_assert_int_eq(share_cpus(&w.map, w.sets, w.n, threads, w.shares), 1);
                check_shares(&w, threads);
                n_shared[kind]++;
            }
        }
    }
    for (int kind = 0; kind < N_KINDS; kind++) {
        ck_assert_int_gt(n_shared[kind], 20);
    }
}
END_TEST

START_TEST(sets_apart_stay_what_they_are)
{
    static struct world w;
    for (uint64_t seed = 0; seed < 400; seed++) {
        make_world(&w, SETS_APART, seed);
        if (w.cpus < w.n) {
            continue;
        }
        const int threads = share_threads(w.ranks, w.n);

        ck_assert_int_eq(share_cpus(&w.map, w.sets, w.n, threads, w.shares), 1);

        ck_assert_mem_eq(w.shares, w.sets, (size_t)w.n * sizeof(w.sets[0]));
    }
}
END_TEST

START_TEST(the_answer_is_the_same_each_time)
{
    static struct world w;
    static struct cpuset again[RANKS_MAX];
    for (uint64_t seed = 0; seed < 200; seed++) {
        make_world(&w, SETS_ANY, seed);
        memset(again, (int)seed, sizeof(again));
        const int first = share_cpus(&w.map, w.sets, w.n, 1, w.shares);
        const int second = share_cpus(&w.map, w.sets, w.n, 1, again);
        ck_assert_int_eq(first, second);
        if (first) {
            ck_assert_mem_eq(again, w.shares, (size_t)w.n * sizeof(again[0]));
        }
    }
}
END_TEST

/* ---- known ones ---- */

static struct host_map map;

static void assert_cpus(const struct cpuset *set, const char *want)
{
    char seen[512] = "";
    size_t n = 0;
    for (int i = 0; i < MS_CPUS_MAX && n < sizeof(seen); i++) {
        if (cpuset_has(set, i)) {
            n += (size_t)snprintf(seen + n, sizeof(seen) - n, "%s%d", n > 0 ? " " : "", i);
        }
    }
    ck_assert_str_eq(seen, want);
}

START_TEST(two_ranks_on_two_nodes_take_one_each_with_siblings)
{
    map_fill(&map, 2, 4, 2);
    struct cpuset sets[2] = {range(0, 8), range(0, 8)};
    struct cpuset shares[2];

    ck_assert_int_eq(share_cpus(&map, sets, 2, 2, shares), 1);

    assert_cpus(&shares[0], "0 1 4 5");
    assert_cpus(&shares[1], "2 3 6 7");
}
END_TEST

START_TEST(no_rank_straddles_nodes_that_have_room)
{
    map_fill(&map, 3, 12, 1);
    struct cpuset sets[6];
    struct cpuset shares[6];
    for (int i = 0; i < 6; i++) {
        sets[i] = range(0, 12);
    }

    ck_assert_int_eq(share_cpus(&map, sets, 6, 2, shares), 1);

    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(count_nodes(&map, &shares[i]), 1);
    }
}
END_TEST

START_TEST(pinned_slots_leave_the_rest_to_one_that_is_not_pinned)
{
    map_fill(&map, 1, 8, 1);
    struct cpuset sets[3] = {range(0, 8), range(0, 4), range(4, 8)};
    struct cpuset shares[3];

    ck_assert_int_eq(share_cpus(&map, sets, 3, 2, shares), 1);

    assert_cpus(&shares[1], "0 1");
    assert_cpus(&shares[2], "4 5");
    assert_cpus(&shares[0], "2 3 6 7");
}
END_TEST

START_TEST(more_ranks_than_cores_have_no_shares)
{
    map_fill(&map, 1, 2, 2);
    struct cpuset sets[3] = {range(0, 4), range(0, 4), range(0, 4)};
    struct cpuset shares[3];

    ck_assert_int_eq(share_cpus(&map, sets, 3, 1, shares), 0);
    ck_assert_int_eq(share_cpus(&map, sets, 2, 2, shares), 0); /* one core each, two wanted */
    ck_assert_int_eq(share_cpus(&map, sets, 2, 1, shares), 1);
}
END_TEST

/* ---- threads ---- */

START_TEST(pinned_slots_keep_their_cores)
{
    map_fill(&map, 1, 8, 1);
    struct host_offer a = offer_of(&map, range(0, 4));
    struct host_offer b = offer_of(&map, range(4, 8));
    struct share_rank ranks[2] = {{"h", &a}, {"h", &b}};

    ck_assert_int_eq(share_threads(ranks, 2), 4);
}
END_TEST

START_TEST(slots_on_siblings_of_the_same_cores_each_have_them)
{
    map_fill(&map, 1, 4, 2);
    struct host_offer a = offer_of(&map, range(0, 4));
    struct host_offer b = offer_of(&map, range(4, 8));
    struct share_rank ranks[2] = {{"h", &a}, {"h", &b}};
    const struct cpuset sets[2] = {a.cpus, b.cpus};
    struct cpuset shares[2];

    ck_assert_int_eq(share_threads(ranks, 2), 4); /* as every other host concludes */
    ck_assert_int_eq(share_cpus(&map, sets, 2, 4, shares), 1);
    ck_assert_mem_eq(shares, sets, sizeof(sets)); /* nobody leaves the CPUs that he was pinned to */
}
END_TEST

START_TEST(the_fullest_host_decides_for_all)
{
    map_fill(&map, 1, 8, 2);
    struct host_offer big = offer_of(&map, range(0, 16));
    struct host_offer small = offer_of(&map, range(0, 3));
    struct share_rank ranks[4] = {{"h", &big}, {"h", &big}, {"i", &big}, {"k", &small}};

    ck_assert_int_eq(share_threads(ranks, 1), 8);
    ck_assert_int_eq(share_threads(ranks, 2), 4);
    ck_assert_int_eq(share_threads(ranks, 3), 4);
    ck_assert_int_eq(share_threads(ranks + 2, 1), 8);
    ck_assert_int_eq(share_threads(ranks, 4), 3);
}
END_TEST

START_TEST(a_quota_is_divided_by_those_who_have_the_same)
{
    map_fill(&map, 1, 8, 1);
    struct host_offer a = offer_of(&map, range(0, 4));
    struct host_offer b = offer_of(&map, range(4, 8));
    struct share_rank ranks[2] = {{"h", &a}, {"h", &b}};
    a.cpu_milli = b.cpu_milli = 2900;
    a.cpu_pool = 1;
    b.cpu_pool = 2;
    ck_assert_int_eq(share_threads(ranks, 2), 2);

    b.cpu_pool = 1;
    ck_assert_int_eq(share_threads(ranks, 2), 1);
    ranks[1].host = "i"; /* another host counts its pools itself */
    ck_assert_int_eq(share_threads(ranks, 2), 2);

    a.cpu_milli = b.cpu_milli = 300;
    ck_assert_int_eq(share_threads(ranks, 2), 1);
}
END_TEST

START_TEST(a_rank_that_offers_nothing_leaves_the_answer_open)
{
    map_fill(&map, 1, 8, 1);
    struct host_offer a = offer_of(&map, range(0, 4));
    struct share_rank ranks[2] = {{"h", &a}, {"h", NULL}};

    ck_assert_int_eq(share_threads(ranks, 2), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("share");
    TCase *tc = tcase_create("any topology");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, shares_are_parts_apart_and_leave_no_core);
    tcase_add_test(tc, equal_sets_are_shared_where_each_rank_gets_a_core);
    tcase_add_test(tc, the_threads_of_an_even_part_have_their_cores);
    tcase_add_test(tc, sets_apart_stay_what_they_are);
    tcase_add_test(tc, the_answer_is_the_same_each_time);
    suite_add_tcase(suite, tc);
    tc = tcase_create("known ones");
    tcase_add_test(tc, two_ranks_on_two_nodes_take_one_each_with_siblings);
    tcase_add_test(tc, no_rank_straddles_nodes_that_have_room);
    tcase_add_test(tc, pinned_slots_leave_the_rest_to_one_that_is_not_pinned);
    tcase_add_test(tc, more_ranks_than_cores_have_no_shares);
    suite_add_tcase(suite, tc);
    tc = tcase_create("threads");
    tcase_add_test(tc, pinned_slots_keep_their_cores);
    tcase_add_test(tc, slots_on_siblings_of_the_same_cores_each_have_them);
    tcase_add_test(tc, the_fullest_host_decides_for_all);
    tcase_add_test(tc, a_quota_is_divided_by_those_who_have_the_same);
    tcase_add_test(tc, a_rank_that_offers_nothing_leaves_the_answer_open);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
