/* test_cpuset.c - sets of CPUs against plain arrays, their bytes, and the binding of a thread */
#include "libworker/host/cpuset.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct cpuset random_set(uint64_t stream, uint64_t in_hundred)
{
    struct cpuset set = {{0}};
    for (int i = 0; i < MS_CPUS_MAX; i++) {
        if (ms_rng_below(stream, (uint64_t)i, 100) < in_hundred) {
            cpuset_add(&set, i);
        }
    }
    return set;
}

START_TEST(sets_agree_with_a_plain_model)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct cpuset a = random_set(2 * seed, seed % 10 * 11);
        struct cpuset b = random_set(2 * seed + 1, seed / 10 * 20);
        struct cpuset both = cpuset_and(&a, &b);
        struct cpuset either = cpuset_or(&a, &b);
        struct cpuset rest = cpuset_minus(&a, &b);
        int n = 0;
        int n_both = 0;
        int next = cpuset_next(&a, 0);
        for (int i = 0; i < MS_CPUS_MAX; i++) {
            int in_a = cpuset_has(&a, i);
            int in_b = cpuset_has(&b, i);
            ck_assert_int_eq(in_a, next == i);
            next = next == i ? cpuset_next(&a, i + 1) : next;
            n += in_a;
            n_both += in_a && in_b;
            ck_assert_int_eq(cpuset_has(&both, i), in_a && in_b);
            ck_assert_int_eq(cpuset_has(&either, i), in_a || in_b);
            ck_assert_int_eq(cpuset_has(&rest, i), in_a && !in_b);
        }
        ck_assert_int_eq(cpuset_count(&a), n);
        ck_assert_int_eq(cpuset_meets(&a, &b), n_both > 0);
        ck_assert_int_eq(cpuset_is_empty(&a), n == 0);
    }
}
END_TEST

START_TEST(a_set_survives_its_bytes)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct cpuset set = random_set(seed, seed % 3);
        size_t n = cpuset_bytes(&set);

        struct cpuset back = cpuset_of_bytes(set.bits, n);

        ck_assert_mem_eq(&back, &set, sizeof(set));
        ck_assert(n == 0 || set.bits[n - 1] != 0);
    }
}
END_TEST

START_TEST(bytes_behind_the_last_cpu_are_left_out)
{
    uint8_t bytes[MS_CPUSET_BYTES + 2];
    memset(bytes, 0xff, sizeof(bytes));

    struct cpuset set = cpuset_of_bytes(bytes, sizeof(bytes));

    ck_assert_int_eq(cpuset_count(&set), MS_CPUS_MAX);
    set = cpuset_of_bytes(NULL, 0);
    ck_assert(cpuset_is_empty(&set));
}
END_TEST

START_TEST(a_thread_is_bound_to_one_cpu_and_back)
{
    const struct cpuset whole = cpuset_of_thread();
    struct cpuset one = {{0}};
    int cpu = 0;
    while (!cpuset_has(&whole, cpu)) {
        cpu++;
    }
    cpuset_add(&one, cpu);

    ck_assert_int_eq(cpuset_bind_thread(&one), 0);
    struct cpuset seen = cpuset_of_thread();
    ck_assert_mem_eq(&seen, &one, sizeof(one));

    ck_assert_int_eq(cpuset_bind_thread(&whole), 0);
    seen = cpuset_of_thread();
    ck_assert_mem_eq(&seen, &whole, sizeof(whole));
}
END_TEST

START_TEST(a_set_without_a_cpu_that_is_there_is_refused)
{
    const struct cpuset none = {{0}};
    const struct cpuset before = cpuset_of_thread();

    ck_assert_int_eq(cpuset_bind_thread(&none), -1);

    const struct cpuset after = cpuset_of_thread();
    ck_assert_mem_eq(&after, &before, sizeof(before));
}
END_TEST

/* ---- OpenMP's variables, which are read before main ---- */

/* What this program does when it is run with an argument: says how many CPUs a team has. */
static int say_team(void)
{
    const struct cpuset team = cpuset_of_team();
    return cpuset_count(&team);
}

static int team_with(const char *variable, const char *value)
{
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        (void)setenv(variable, value, 1);
        (void)execl("/proc/self/exe", "test_cpuset", "say", (char *)NULL);
        _exit(255);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(a_team_has_all_places_that_openmp_binds_it_to)
{
    const struct cpuset whole = cpuset_of_thread();
    const int n = cpuset_count(&whole) < 255 ? cpuset_count(&whole) : 254;

    ck_assert_int_eq(team_with("OMP_PROC_BIND", "true"), n);
    ck_assert_int_eq(team_with("OMP_PROC_BIND", "false"), n);
    ck_assert_int_eq(team_with("OMP_PLACES", "cores"), n);
#ifdef _OPENMP
    char first[32];
    snprintf(first, sizeof(first), "{%d}", cpuset_next(&whole, 0));
    ck_assert_int_eq(team_with("OMP_PLACES", first), 1);
#endif
}
END_TEST

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        return say_team();
    }
    Suite *suite = suite_create("cpuset");
    TCase *tc = tcase_create("cpuset");
    tcase_add_test(tc, sets_agree_with_a_plain_model);
    tcase_add_test(tc, a_set_survives_its_bytes);
    tcase_add_test(tc, bytes_behind_the_last_cpu_are_left_out);
    tcase_add_test(tc, a_thread_is_bound_to_one_cpu_and_back);
    tcase_add_test(tc, a_set_without_a_cpu_that_is_there_is_refused);
    tcase_add_test(tc, a_team_has_all_places_that_openmp_binds_it_to);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
