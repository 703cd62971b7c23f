/* test_team_stack.c - stacks of OpenMP's threads, whatever made them small */
#include "libworker/host/team_stack.h"
#include "tests/test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* In MiB, of a program that is run with the variable, for OpenMP reads it before main. */
static int stack_with(const char *variable, const char *value)
{
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        (void)unsetenv("OMP_STACKSIZE");
        (void)setenv(variable, value, 1);
        (void)execl("/proc/self/exe", "test_team_stack", "say", (char *)NULL);
        _exit(255);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(the_stack_is_the_one_that_openmp_gives)
{
#ifdef _OPENMP
    ck_assert_int_eq(stack_with("OMP_STACKSIZE", "16k"), 0);
    ck_assert_int_eq(stack_with("OMP_STACKSIZE", " 3 M "), 3);
    ck_assert_int_eq(stack_with("OMP_STACKSIZE", "5120"), 5); /* KiB */
    ck_assert_int_eq(stack_with("GOMP_STACKSIZE", "2m"), 2);
    ck_assert_int_eq(stack_with("OMP_THREAD_LIMIT", "1"), 99); /* there is no thread but ours */
#else
    ck_assert_int_eq(stack_with("OMP_STACKSIZE", "16k"), 99);
#endif
}
END_TEST

#ifdef _OPENMP
START_TEST(variables_that_make_teams_small_do_not_hide_it)
{
    ck_assert_int_eq(setenv("OMP_DYNAMIC", "true", 1), 0);
    ck_assert_int_eq(setenv("OMP_MAX_ACTIVE_LEVELS", "0", 1), 0);
    ck_assert_int_eq(stack_with("OMP_STACKSIZE", "3M"), 3);
}
END_TEST
#endif

int main(int argc, char **argv)
{
    (void)argv;
    if (argc == 2) {
        const size_t bytes = team_stack_bytes();
        return bytes == 0 ? 99 : (int)(bytes >> 20);
    }
    Suite *suite = suite_create("team_stack");
    TCase *tc = tcase_create("team_stack");
    tcase_add_test(tc, the_stack_is_the_one_that_openmp_gives);
#ifdef _OPENMP
    tcase_add_test(tc, variables_that_make_teams_small_do_not_hide_it);
#endif
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
