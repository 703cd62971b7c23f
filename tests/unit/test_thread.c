/* test_thread.c - threads that no signal reaches */
#include "proto/thread.h"
#include "tests/test.h"

#include <unistd.h>

static sigset_t seen;

static void *look(void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, &seen);
    if (arg != NULL) {
        ck_assert_int_eq(write(*(int *)arg, "x", 1), 1);
    }
    return NULL;
}

/* What can be blocked is. */
static int all_are_blocked(void)
{
    for (int sig = 1; sig < 32; sig++) {
        if (sig != SIGKILL && sig != SIGSTOP && sigismember(&seen, sig) != 1) {
            return 0;
        }
    }
    return 1;
}

START_TEST(a_thread_has_all_signals_blocked_and_its_maker_none)
{
    pthread_t thread;
    sigset_t mine;
    sigemptyset(&seen);

    ck_assert_int_eq(ms_thread_start(&thread, look, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);

    ck_assert(all_are_blocked());
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &mine), 0);
    ck_assert_int_eq(sigismember(&mine, SIGTERM), 0);
}
END_TEST

START_TEST(a_thread_that_nobody_joins_runs_too)
{
    int pipe_fds[2];
    char byte = 0;
    sigemptyset(&seen);
    ck_assert_int_eq(pipe(pipe_fds), 0);

    ck_assert_int_eq(ms_thread_start(NULL, look, &pipe_fds[1]), 0);

    ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 1);
    ck_assert(all_are_blocked());
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("thread");
    TCase *tc = tcase_create("thread");
    tcase_add_test(tc, a_thread_has_all_signals_blocked_and_its_maker_none);
    tcase_add_test(tc, a_thread_that_nobody_joins_runs_too);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
