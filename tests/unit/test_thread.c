/* test_thread.c - threads that no signal reaches, in the locale of who starts them */
#include "proto/thread.h"
#include "tests/test.h"

#include <locale.h>
#include <signal.h>
#include <unistd.h>

static sigset_t seen;
static locale_t seen_locale;

static void *look(void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, &seen);
    seen_locale = uselocale((locale_t)0);
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

static locale_t locale_of_a_thread(void)
{
    pthread_t thread;
    seen_locale = (locale_t)0;
    ck_assert_int_eq(ms_thread_start(&thread, look, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    return seen_locale;
}

START_TEST(a_thread_has_the_locale_of_its_maker)
{
    const locale_t mine = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    ck_assert(locale_of_a_thread() == LC_GLOBAL_LOCALE);
    uselocale(mine);
    ck_assert(locale_of_a_thread() == mine);
    uselocale(LC_GLOBAL_LOCALE);
    ck_assert(locale_of_a_thread() == LC_GLOBAL_LOCALE);

    freelocale(mine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("thread");
    TCase *tc = tcase_create("thread");
    tcase_add_test(tc, a_thread_has_all_signals_blocked_and_its_maker_none);
    tcase_add_test(tc, a_thread_that_nobody_joins_runs_too);
    tcase_add_test(tc, a_thread_has_the_locale_of_its_maker);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
