/* test_train_cpus.c - threads and CPUs of a rank: by the job, by what all offer, or as before */
#include "libworker/host/offer.h"
#include "libworker/kernel/kernel.h"
#include "libworker/train/cpus.h"
#include "tests/test.h"
#include "tests/unit/train_case.h"

#include <stdatomic.h>

static struct job job;
static struct mesh_member members[3];
static struct host_offer offers[3];

/* Three ranks, two on host "a" and one on "b", each offered CPUs 0 to n - 1. */
static struct train_config config(int n)
{
    train_case_job(&job, NULL, 0);
    for (int i = 0; i < 3; i++) {
        members[i].host_id = i < 2 ? "a" : "b";
        memset(&offers[i], 0, sizeof(offers[i]));
        for (int cpu = 0; cpu < n; cpu++) {
            cpuset_add(&offers[i].cpus, cpu);
        }
        offers[i].cores = offers[i].physical = n;
        offers[i].numa = 1;
    }
    struct train_config cfg = train_case_config(&job, "");
    cfg.world = 3;
    cfg.cores = 0;
    cfg.members = members;
    cfg.offers = offers;
    return cfg;
}

START_TEST(all_ranks_have_the_threads_of_the_fullest_host)
{
    struct train_config cfg = config(4);
    for (cfg.rank = 0; cfg.rank < 3; cfg.rank++) {
        struct train_cpus cpus;
        ck_ms_ok(train_cpus_find(&cfg, &cpus, err));
        ck_assert_int_eq(cpus.threads, 2);
        ck_assert_int_eq(train_local_ranks(&cfg), cfg.rank < 2 ? 2 : 1);
    }
}
END_TEST

START_TEST(ranks_of_a_host_have_shares_apart)
{
    struct train_config cfg = config(8);
    struct train_cpus first;
    struct train_cpus second;
    ck_ms_ok(train_cpus_find(&cfg, &first, err));
    cfg.rank = 1;
    ck_ms_ok(train_cpus_find(&cfg, &second, err));

    ck_assert_int_eq(first.has_share, 1);
    ck_assert_int_eq(first.fits, 1);
    ck_assert_int_eq(second.has_share, 1);
    ck_assert(!cpuset_meets(&first.share, &second.share));

    offers[0].physical = 1; /* nobody's cores: more ranks than there are of these */
    offers[0].cpus = offers[1].cpus = cpuset_of_bytes((const uint8_t *)"\1", 1);
    ck_ms_ok(train_cpus_find(&cfg, &second, err));
    ck_assert_int_eq(second.threads, 1);
    ck_assert_int_eq(second.has_share, 0);
    ck_assert_int_eq(second.fits, 0);
}
END_TEST

START_TEST(the_job_says_otherwise)
{
    struct train_config cfg = config(8);
    struct train_cpus cpus;
    job.threads = 3;
    ck_ms_ok(train_cpus_find(&cfg, &cpus, err));
    ck_assert_int_eq(cpus.threads, 3);
    ck_assert_int_eq(cpus.has_share, 1);

    job.threads = 5; /* more than half of eight */
    ck_ms_ok(train_cpus_find(&cfg, &cpus, err));
    ck_assert_int_eq(cpus.threads, 5);
    ck_assert_int_eq(cpus.has_share, 0);
}
END_TEST

START_TEST(with_an_older_worker_all_do_as_it_does)
{
    struct train_config cfg = config(8);
    struct train_cpus cpus;
    const int cores = host_get()->offer.cores;
    offers[2].cores = 0;
    ck_ms_ok(train_cpus_find(&cfg, &cpus, err));
    ck_assert_int_eq(cpus.threads, cores >= 2 ? cores / 2 : 1);
    ck_assert_int_eq(cpus.has_share, 0);

    cfg.cores = 6;
    ck_ms_ok(train_cpus_find(&cfg, &cpus, err));
    ck_assert_int_eq(cpus.threads, 3);
    ck_assert_int_eq(cpus.fits, 1);
    cfg.cores = 1;
    ck_ms_ok(train_cpus_find(&cfg, &cpus, err));
    ck_assert_int_eq(cpus.threads, 1);
    ck_assert_int_eq(cpus.fits, 0);
}
END_TEST

START_TEST(one_rank_alone_has_what_its_host_offers)
{
    train_case_job(&job, NULL, 0);
    struct train_config cfg = train_case_config(&job, "");
    struct train_cpus cpus;
    cfg.cores = 0;

    ck_ms_ok(train_cpus_find(&cfg, &cpus, err));

    ck_assert_int_ge(cpus.threads, 1);
    ck_assert_int_le(cpus.threads, host_get()->offer.physical);
    ck_assert_int_eq(cpus.has_share, 1);
    ck_assert_mem_eq(&cpus.share, &host_get()->offer.cpus, sizeof(cpus.share));
}
END_TEST

/* ---- binding ---- */

static atomic_int n_elsewhere; /* threads of the team that have another affinity than they should */

static void look(const void *arg)
{
    const struct cpuset here = cpuset_of_thread();
    n_elsewhere += memcmp(&here, arg, sizeof(here)) != 0;
}

static int team_is_on(const struct cpuset *want, int threads)
{
    n_elsewhere = 0;
    kernel_team_each(threads, look, want);
    return n_elsewhere == 0;
}

/* A share of one CPU, three threads, and no variable that says otherwise. */
static struct train_cpus small_share(void)
{
    (void)unsetenv("OMP_PROC_BIND");
    (void)unsetenv("OMP_PLACES");
    (void)unsetenv("GOMP_CPU_AFFINITY");
    const struct cpuset whole = cpuset_of_thread();
    struct train_cpus cpus = {.threads = 3, .has_share = 1};
    int cpu = 0;
    while (!cpuset_has(&whole, cpu)) {
        cpu++;
    }
    cpuset_add(&cpus.share, cpu);
    return cpus;
}

START_TEST(the_team_is_bound_to_the_share_and_let_go)
{
    const struct cpuset whole = cpuset_of_thread();
    struct train_cpus cpus = small_share();
    if (cpuset_count(&whole) == 1) {
        return; /* nothing to take away */
    }

    train_cpus_bind(&cpus);
    ck_assert_int_eq(cpus.is_bound, 1);
    ck_assert(team_is_on(&cpus.share, 3));
    ck_assert(team_is_on(&cpus.share, 6)); /* who joins is bound, too */

    train_cpus_unbind(&cpus);
    ck_assert_int_eq(cpus.is_bound, 0);
    ck_assert(team_is_on(&whole, 3));
}
END_TEST

START_TEST(threads_that_are_made_aside_are_on_all_cpus)
{
    const struct cpuset whole = cpuset_of_thread();
    struct train_cpus cpus = small_share();
    struct cpuset here;
    if (cpuset_count(&whole) == 1) {
        return;
    }
    train_cpus_bind(&cpus);

    train_cpus_step_out(&cpus, &here);
    const struct cpuset aside = cpuset_of_thread();
    train_cpus_step_back(&here);

    ck_assert_mem_eq(&aside, &whole, sizeof(whole));
    ck_assert(team_is_on(&cpus.share, 3));
    train_cpus_unbind(&cpus);
    train_cpus_step_out(&cpus, &here);
    train_cpus_step_back(&here);
    ck_assert(team_is_on(&whole, 3));
}
END_TEST

START_TEST(without_a_share_or_with_words_of_the_user_nobody_is_bound)
{
    const struct cpuset whole = cpuset_of_thread();
    struct train_cpus cpus = small_share();
    cpus.has_share = 0;
    train_cpus_bind(&cpus);
    ck_assert(team_is_on(&whole, 3));

    cpus.has_share = 1;
    ck_assert_int_eq(setenv("OMP_PLACES", "cores", 1), 0);
    train_cpus_bind(&cpus);
    ck_assert_int_eq(cpus.is_bound, 0);
    ck_assert(team_is_on(&whole, 3));
    ck_assert_int_eq(unsetenv("OMP_PLACES"), 0);

    cpus.share = whole;
    train_cpus_bind(&cpus);
    ck_assert_int_eq(cpus.is_bound, 0);
    train_cpus_unbind(&cpus); /* nothing to do */
    ck_assert(team_is_on(&whole, 3));
}
END_TEST

START_TEST(a_rank_that_is_to_stay_unbound_is_not_bound)
{
    const struct cpuset whole = cpuset_of_thread();
    struct train_config cfg = config(2);
    struct train_cpus cpus;
    (void)small_share(); /* no variable says otherwise */
    if (cpuset_count(&whole) == 1) {
        return;
    }
    cfg.stays_unbound = 1;
    ck_ms_ok(train_cpus_find(&cfg, &cpus, err));
    ck_assert_int_eq(cpus.has_share, 1);

    cpus.share = small_share().share; /* less than we have, whichever CPUs these are */
    train_cpus_bind(&cpus);

    ck_assert_int_eq(cpus.is_bound, 0);
    ck_assert(team_is_on(&whole, 3));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_cpus");
    TCase *tc = tcase_create("train_cpus");
    tcase_add_test(tc, all_ranks_have_the_threads_of_the_fullest_host);
    tcase_add_test(tc, ranks_of_a_host_have_shares_apart);
    tcase_add_test(tc, the_job_says_otherwise);
    tcase_add_test(tc, with_an_older_worker_all_do_as_it_does);
    tcase_add_test(tc, one_rank_alone_has_what_its_host_offers);
    tcase_add_test(tc, the_team_is_bound_to_the_share_and_let_go);
    tcase_add_test(tc, threads_that_are_made_aside_are_on_all_cpus);
    tcase_add_test(tc, without_a_share_or_with_words_of_the_user_nobody_is_bound);
    tcase_add_test(tc, a_rank_that_is_to_stay_unbound_is_not_bound);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
