/* test_job_folders.c - results stay as long as they should, and no running job loses its folder */
#include "libworker/train/job_folders.h"

#include "tests/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DAY = 86400, NOW = 2000000000 };

static const char *root;
static char gone[256];

static const char *path_of(const char *name)
{
    static char paths[2][300]; /* two may be in one call */
    static int turn;
    char *path = paths[turn ^= 1];
    snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
    return path;
}

/* A folder with a file in it, both written days ago. */
static void make(const char *job, int days)
{
    const struct timespec times[2] = {{NOW - (time_t)days * DAY, 0}, {NOW - (time_t)days * DAY, 0}};
    char file[64];
    snprintf(file, sizeof(file), "%s/worker_0.log", job);
    ck_assert_int_eq(mkdir(path_of(job), 0755), 0);
    int fd = open(path_of(file), O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(futimens(fd, times), 0);
    close(fd);
    ck_assert_int_eq(utimensat(AT_FDCWD, path_of(job), times, 0), 0);
}

static int is_there(const char *name)
{
    struct stat st;
    return lstat(path_of(name), &st) == 0;
}

static void on_gone(void *arg, uint64_t job, const char *text)
{
    size_t used = strlen(gone);
    (void)arg;
    snprintf(gone + used, sizeof(gone) - used, "%llu: %s. ", (unsigned long long)job, text);
}

static void clean(int64_t days, int64_t count)
{
    const struct job_folders_rule rule = {days, count};
    gone[0] = '\0';
    job_folders_clean(root, &rule, NOW, on_gone, NULL);
}

static void begin(void)
{
    root = test_dir_make();
}

static void end(void)
{
    test_dir_remove(root);
}

START_TEST(old_folders_go_and_young_ones_stay)
{
    make("1", 31);
    make("2", 29);

    clean(30, 1000);

    ck_assert(!is_there("1"));
    ck_assert(is_there("2/worker_0.log"));
    ck_assert_str_eq(gone, "1: older than job_keep_days. ");
}
END_TEST

START_TEST(newest_of_too_many_stay)
{
    make("1", 3);
    make("2", 1);
    make("3", 2);

    clean(30, 2);

    ck_assert(!is_there("1"));
    ck_assert(is_there("2") && is_there("3"));
    ck_assert_str_eq(gone, "1: more than job_keep_count. ");
}
END_TEST

START_TEST(zero_switches_a_rule_off)
{
    make("1", 4000);
    make("2", 4001);

    clean(0, 0);

    ck_assert(is_there("1") && is_there("2"));
}
END_TEST

START_TEST(running_job_keeps_its_folder_whatever_its_age)
{
    make("1", 400);
    int held = job_folder_hold(path_of("1"), NULL);
    ck_assert_int_ge(held, 0);

    clean(30, 1000);
    ck_assert(is_there("1/worker_0.log"));
    close(held);
    clean(30, 1000);

    ck_assert(!is_there("1"));
}
END_TEST

START_TEST(two_ranks_of_a_host_hold_one_folder)
{
    int first = job_folder_hold(path_of("7"), NULL);
    int second = job_folder_hold(path_of("7"), NULL);

    ck_assert_int_ge(first, 0);
    ck_assert_int_ge(second, 0);
    close(first);
    clean(30, 1000);
    ck_assert(is_there("7"));
    close(second);
}
END_TEST

START_TEST(a_file_that_is_written_keeps_a_folder_young)
{
    make("1", 400);
    int fd = open(path_of("1/worker_0.log"), O_WRONLY);
    const struct timespec times[2] = {{NOW, 0}, {NOW, 0}};
    ck_assert_int_eq(futimens(fd, times), 0);
    close(fd);

    clean(30, 1000);

    ck_assert(is_there("1"));
}
END_TEST

START_TEST(what_is_no_jobs_folder_stays)
{
    make("x1", 400);
    make("017", 400);
    make("9", 400);
    make("8", 400);
    ck_assert_int_eq(mkdir(path_of("9/mine"), 0755), 0);
    ck_assert_int_eq(symlink(path_of("x1"), path_of("5")), 0);
    ck_assert_int_eq(symlink(path_of("x1/worker_0.log"), path_of("8/link")), 0);
    const struct timespec times[2] = {{0, 0}, {0, 0}};
    utimensat(AT_FDCWD, path_of("9/mine"), times, 0);
    utimensat(AT_FDCWD, path_of("9"), times, 0);
    utimensat(AT_FDCWD, path_of("8/link"), times, AT_SYMLINK_NOFOLLOW);
    utimensat(AT_FDCWD, path_of("8"), times, 0);

    clean(30, 1000);

    ck_assert(is_there("x1/worker_0.log"));
    ck_assert(is_there("017/worker_0.log"));
    ck_assert(is_there("5"));
    ck_assert(is_there("9/mine"));
    ck_assert(!is_there("8"));
    ck_assert_msg(strstr(gone, "9: something in it cannot be taken away") != NULL, "%s", gone);
}
END_TEST

START_TEST(link_is_no_folder_to_hold)
{
    char link[300];
    make("1", 1);
    snprintf(link, sizeof(link), "%s", path_of("2"));
    ck_assert_int_eq(symlink(path_of("1"), link), 0);

    ck_assert_int_lt(job_folder_hold(link, NULL), 0);
}
END_TEST

static atomic_int over;

static void *clean_all_the_time(void *arg)
{
    const struct job_folders_rule rule = {30, 0};
    (void)arg;
    while (!atomic_load(&over)) {
        job_folders_clean(root, &rule, (int64_t)time(NULL) + 31 * DAY, NULL, NULL);
    }
    return NULL;
}

START_TEST(folder_that_is_held_is_there_whoever_cleans_meanwhile)
{
    enum { TIMES = 20000 };
    pthread_t cleaner;
    char path[300];
    int lost = 0;
    int refused = 0;
    snprintf(path, sizeof(path), "%s", path_of("7"));
    atomic_store(&over, 0);
    ck_assert_int_eq(pthread_create(&cleaner, NULL, clean_all_the_time, NULL), 0);

    for (int i = 0; i < TIMES; i++) {
        struct stat held;
        struct stat named;
        int fd = job_folder_hold(path, NULL);
        refused += fd < 0;
        lost += fd >= 0 &&
                (fstat(fd, &held) != 0 || stat(path, &named) != 0 || held.st_ino != named.st_ino);
        if (fd >= 0) {
            close(fd);
        }
    }

    atomic_store(&over, 1);
    pthread_join(cleaner, NULL);
    ck_assert_int_eq(lost, 0);
    ck_assert_int_eq(refused, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_folders");
    TCase *t = tcase_create("job_folders");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, old_folders_go_and_young_ones_stay);
    tcase_add_test(t, newest_of_too_many_stay);
    tcase_add_test(t, zero_switches_a_rule_off);
    tcase_add_test(t, running_job_keeps_its_folder_whatever_its_age);
    tcase_add_test(t, two_ranks_of_a_host_hold_one_folder);
    tcase_add_test(t, a_file_that_is_written_keeps_a_folder_young);
    tcase_add_test(t, what_is_no_jobs_folder_stays);
    tcase_add_test(t, link_is_no_folder_to_hold);
    tcase_add_test(t, folder_that_is_held_is_there_whoever_cleans_meanwhile);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
