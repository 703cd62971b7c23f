/* test_team_room.c - a team that cannot be had is refused, by the limit; the process lives */
#include "libworker/host/team_room.h"
#include "proto/err.h"
#include "tests/unit/few_threads.h"

#include <dirent.h>
#include <sched.h>
#include <string.h>

static const char *wanted; /* in the words of the refusal */

static int count_threads(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    while (dir != NULL && readdir(dir) != NULL) {
        n++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return n - 2;
}

static int is_refused(int threads)
{
    struct ms_err err = {0, ""};
    const int rc = team_room_take(threads, &err);
    if (rc == MS_E_UNSUPPORTED && strstr(err.text, wanted) != NULL &&
        strstr(err.text, "or lower `threads`") != NULL) {
        return 1;
    }
    fprintf(stderr, "%d threads: %d: %s\n", threads, rc, err.text);
    return 0;
}

static int take_too_many(void)
{
    const int before = count_threads();
    return is_refused(100) && is_refused(100) && count_threads() == before ? 0 : 1;
}

#ifdef _OPENMP
/* All but one of those that it may have are the team's. */
static int take_all(void)
{
    if (take_too_many() != 0 || team_room_take(20, NULL) != 0 || !is_refused(21) ||
        team_room_take(3, NULL) != 0) {
        return 1;
    }
    while (count_threads() > 3) { /* OpenMP waits for none of those that end */
        sched_yield();
    }
    return team_room_take(20, NULL) == 0 ? 0 : 2;
}

#else
static int take_all(void)
{
    return take_too_many();
}
#endif

START_TEST(a_team_is_refused_by_the_limit_of_the_user)
{
    char words[64];
    snprintf(words, sizeof(words), "has RLIMIT_NPROC %d: raise `ulimit -u`",
             geteuid() == 0 ? 20 : 1);
    wanted = words;
    ck_assert_int_eq(few_threads_run(few_by_user, 20, geteuid() == 0 ? take_all : take_too_many),
                     0);
}
END_TEST

static int take_or_be_refused(void)
{
    const int rc = team_room_take(25, NULL);
    return rc == 0 || rc == MS_E_UNSUPPORTED ? 0 : 1;
}

/* There is room for one of their teams at a time. */
static int begin_together(void)
{
    enum { ROUNDS = 40, RANKS = 4 };
    int failed = 0;
    for (int i = 0; i < ROUNDS && !failed; i++) {
        pid_t pids[RANKS];
        int status = 0;
        for (int k = 0; k < RANKS; k++) {
            pids[k] = fork();
            if (pids[k] == 0) {
                _exit(take_or_be_refused());
            }
        }
        for (int k = 0; k < RANKS; k++) { /* without room for a process there is none to wait for */
            failed |= pids[k] > 0 && (waitpid(pids[k], &status, 0) != pids[k] || status != 0);
        }
    }
    return failed;
}

START_TEST(ranks_that_begin_together_do_not_take_what_another_one_has_proven)
{
    ck_assert_int_eq(few_threads_run(few_by_user, 40, begin_together), 0);
}
END_TEST

static char group[160];

static int put(const char *file, int value)
{
    char path[200];
    char text[16];
    snprintf(path, sizeof(path), "%s/%s", group, file);
    int n = snprintf(text, sizeof(text), "%d\n", value);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int ok = fd >= 0 && write(fd, text, (size_t)n) == n;
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

/* Below the root of the controller: who may, makes one there. */
static void few_by_group(int threads)
{
    if (!put("pids.max", threads) || !put("cgroup.procs", (int)getpid())) {
        _exit(9);
    }
}

START_TEST(a_team_is_refused_by_the_limit_of_the_control_group)
{
    const char *const mounts[] = {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"};
    struct stat st;
    snprintf(group, sizeof(group), "%s/msched-test-%d", mounts[stat(mounts[0], &st) != 0],
             (int)getpid());
    if (mkdir(group, 0755) != 0) {
        printf("# no control group can be made here\n");
        return;
    }
    wanted = "has pids.max 20: raise TasksMax=";
    int rc = few_threads_run(few_by_group, 20, take_too_many);
    ck_assert_int_eq(rmdir(group), 0);
    if (rc == 9) {
        printf("# no control group with a limit of tasks can be made here\n");
        return;
    }
    ck_assert_int_eq(rc, 0);
}
END_TEST

static void few_by_addresses(int threads)
{
    const struct rlimit limit = {(rlim_t)threads << 20, (rlim_t)threads << 20};
    if (setrlimit(RLIMIT_AS, &limit) != 0) {
        _exit(9);
    }
}

START_TEST(a_team_is_refused_for_want_of_stacks)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they map terabytes */
    wanted = "RLIMIT_AS is 500 MiB, too little for their stacks: raise `ulimit -v`";
    ck_assert_int_eq(few_threads_run(few_by_addresses, 500, take_too_many), 0);
#else
    ck_assert_ptr_nonnull((void *)(uintptr_t)few_by_addresses);
#endif
}
END_TEST

START_TEST(who_tries_leaves_no_thread_behind)
{
    char why[TEAM_ROOM_WHY_MAX] = "nothing";
    const int before = count_threads();

    ck_assert_int_eq(team_room_count(200, 1 << 20, why), 200);

    ck_assert_int_eq(count_threads(), before);
    ck_assert_str_eq(why, "nothing");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("team_room");
    TCase *tc = tcase_create("team_room");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_team_is_refused_by_the_limit_of_the_user);
    tcase_add_test(tc, ranks_that_begin_together_do_not_take_what_another_one_has_proven);
    tcase_add_test(tc, a_team_is_refused_by_the_limit_of_the_control_group);
    tcase_add_test(tc, a_team_is_refused_for_want_of_stacks);
    tcase_add_test(tc, who_tries_leaves_no_thread_behind);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
