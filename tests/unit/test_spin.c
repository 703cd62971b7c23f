/* test_spin.c - OpenMP threads of a worker spin briefly, whatever started it */
#include "libworker/host/cpuset.h"
#include "libworker/program/spin.h"
#include "tests/test.h"

#include <stdlib.h>
#include <unistd.h>

START_TEST(who_chose_nothing_runs_again_with_a_short_spin)
{
    const char *first = getenv("TEST_SPIN_FIRST");

    ck_assert_ptr_nonnull(first); /* main ran twice, in one process */
    ck_assert_int_eq(strtol(first, NULL, 10), (long)getppid());
    ck_assert_str_eq(getenv("GOMP_SPINCOUNT"), "5000");
}
END_TEST

START_TEST(whom_openmp_bound_has_all_places_again)
{
    const struct cpuset team = cpuset_of_team();

    ck_assert_int_eq(strtol(getenv("TEST_SPIN_CPUS"), NULL, 10), cpuset_count(&team));
}
END_TEST

START_TEST(a_choice_stands)
{
    setenv("GOMP_SPINCOUNT", "7", 1);
    spin_settle(NULL);
    ck_assert_str_eq(getenv("GOMP_SPINCOUNT"), "7");
    unsetenv("GOMP_SPINCOUNT");
    setenv("OMP_WAIT_POLICY", "active", 1);
    spin_settle(NULL);
    ck_assert_ptr_null(getenv("GOMP_SPINCOUNT"));
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    if (getenv("TEST_SPIN_CPUS") == NULL) { /* OpenMP reads its variables before main */
        char cpus[24];
        const struct cpuset given = cpuset_of_thread();
        snprintf(cpus, sizeof(cpus), "%d", cpuset_count(&given));
        setenv("TEST_SPIN_CPUS", cpus, 1);
        setenv("OMP_PROC_BIND", "true", 1);
        (void)execv("/proc/self/exe", argv);
        return 1;
    }
    if (getenv("TEST_SPIN_FIRST") == NULL) {
        char pid[24];
        snprintf(pid, sizeof(pid), "%ld", (long)getpid());
        setenv("TEST_SPIN_FIRST", pid, 1);
        unsetenv("GOMP_SPINCOUNT");
        unsetenv("OMP_WAIT_POLICY");
        spin_settle(argv);
        return 1; /* it came back */
    }
    Suite *suite = suite_create("spin");
    TCase *tc = tcase_create("spin");
    tcase_add_test(tc, who_chose_nothing_runs_again_with_a_short_spin);
    tcase_add_test(tc, whom_openmp_bound_has_all_places_again);
    tcase_add_test(tc, a_choice_stands);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
