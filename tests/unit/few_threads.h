/* few_threads.h - a child process that may have only so many threads */
#ifndef FEW_THREADS_H
#define FEW_THREADS_H

#include "tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the user. No limit holds for root, so the child is a user who has nothing else here; for
 * another one all that he runs counts, so only a limit of 1 is sure to be below what a team wants.
 */
static inline void few_by_user(int threads)
{
    const rlim_t most = geteuid() == 0 ? (rlim_t)threads : 1;
    const struct rlimit limit = {most, most};
    if (setrlimit(RLIMIT_NPROC, &limit) != 0 ||
        (geteuid() == 0 && setuid((uid_t)(1500000000 + getpid())) != 0)) {
        _exit(9);
    }
}

/* What fn returns in a child: 0 to 8; 9: it could not be limited; -1: it was killed. */
static inline int few_threads_once(void (*limit)(int threads), int threads, int (*fn)(void))
{
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        limit(threads);
        _exit(fn());
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The first 0 or 9 of several: the kernel counts a thread, and what it had, for a moment after it
 * was joined, on a busy machine until the next ones want their place. */
static inline int few_threads_run(void (*limit)(int threads), int threads, int (*fn)(void))
{
    enum { TRIES = 10 };
    int rc = few_threads_once(limit, threads, fn);
    for (int i = 1; i < TRIES && rc != 0 && rc != 9; i++) {
        rc = few_threads_once(limit, threads, fn);
    }
    return rc;
}

#endif
