/* test_job_tag.c - a folder says whose it is from its first moment on, whenever the power goes
 *
 * The linker redirects fsync and renameat (--wrap): after so many of them the power is gone, and of
 * a file that was not synced nothing is left. */
#include "libworker/node/job_folders.h"
#include "libworker/node/job_tag.h"

#include "proto/limits.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char ours[] = "00112233445566778899aabbccddeeff";
static const char theirs[] = "ffeeddccbbaa99887766554433221100";

static const char *root;
static char path[300];
static char calls[256]; /* in their order */
static int left;        /* until the power is gone */
static struct rlimit enough;
static int is_synced_before; /* what gets its name had been synced */

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);

static int power_is_gone(const char *call)
{
    size_t used = strlen(calls);
    if (left-- <= 0) {
        errno = EIO;
        return 1;
    }
    snprintf(calls + used, sizeof(calls) - used, "%s ", call);
    return 0;
}

int __wrap_fsync(int fd)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    if (power_is_gone(S_ISDIR(st.st_mode) ? "sync-folder" : "sync-file")) {
        return -1;
    }
    is_synced_before |= S_ISREG(st.st_mode) && st.st_size == MS_JOB_TAG_LEN;
    return __real_fsync(fd);
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    ck_assert_str_eq(to, ".job_tag");
    return power_is_gone("name") ? -1 : __real_renameat(from_fd, from, to_fd, to);
}

static void begin(void)
{
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &enough), 0);
    root = test_dir_make();
    snprintf(path, sizeof(path), "%s/1", root);
    left = 100;
    calls[0] = '\0';
    is_synced_before = 0;
}

static void end(void)
{
    (void)setrlimit(RLIMIT_NOFILE, &enough); /* who takes away the folder, or looks for leaks */
    test_dir_remove(root);
}

static int hold(const char *tag, struct ms_err *why)
{
    char aside[MS_PATH_MAX + 16] = "";
    int fd = job_folder_hold(path, tag, aside, why);
    ck_assert_str_eq(aside, "");
    if (fd >= 0) {
        close(fd);
    }
    return fd < 0 ? fd : 0;
}

START_TEST(a_tag_is_on_the_disk_before_it_has_its_name)
{
    struct ms_err why = {0, ""};

    ck_assert_int_eq(hold(ours, &why), 0);

    ck_assert_str_eq(calls, "sync-file name sync-folder ");
    ck_assert(is_synced_before);
    ck_assert(job_folder_is_of(path, ours));
    ck_assert(!job_folder_is_of(path, theirs));
    ck_assert_int_eq(hold(ours, &why), 0);
    ck_assert_str_eq(calls, "sync-file name sync-folder "); /* once a folder */
}
END_TEST

/* What lies there then: nothing, a file without its name and perhaps without its bytes, or all. */
START_TEST(a_power_cut_on_the_way_makes_it_nobody_elses)
{
    char file[320];
    struct stat st;
    struct ms_err why = {0, ""};
    left = _i;

    ck_assert_int_eq(hold(ours, &why), MS_E_IO);
    snprintf(file, sizeof(file), "%s/.job_tag.new", path);
    if (lstat(file, &st) == 0) {
        ck_assert_int_eq(truncate(file, 0), 0); /* nobody had synced it, or its name */
    }
    snprintf(file, sizeof(file), "%s/.job_tag", path);
    ck_assert_int_eq(lstat(file, &st) == 0, _i == 2);
    left = 100;

    ck_assert_int_eq(hold(ours, &why), 0); /* and nothing was put aside */
    ck_assert(job_folder_is_of(path, ours));
    ck_assert(!job_folder_is_of(path, theirs));
    snprintf(file, sizeof(file), "%s/.job_tag.new", path);
    ck_assert_int_ne(lstat(file, &st), 0);
}
END_TEST

/* All but so many descriptors are in use. */
static void leave_descriptors(int n)
{
    const struct rlimit few = {64, enough.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    int last = -1;
    for (int fd = 0; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) {
        last = fd;
    }
    ck_assert_int_eq(errno, EMFILE);
    for (int i = 0; i < n; i++) {
        close(last - i);
    }
}

/* Its own, and one that is empty: the job is placed again, and the worker can open nothing. */
START_TEST(a_worker_without_descriptors_takes_no_folder_for_another_jobs)
{
    struct ms_err why = {0, ""};
    char aside[320];
    struct stat st;
    snprintf(aside, sizeof(aside), "%s.1", path);
    if (_i % 2 == 0) {
        ck_assert_int_eq(hold(ours, &why), 0);
    } else {
        ck_assert_int_eq(mkdir(path, 0755), 0);
    }
    leave_descriptors(_i / 2); /* of the parent, the folder, and what is in it */

    ck_assert_int_eq(hold(ours, &why), MS_E_NOMEM);

    ck_assert_msg(strstr(why.text, strerror(EMFILE)) != NULL, "%s", why.text);
    ck_assert_msg(strstr(why.text, path) != NULL, "%s", why.text);
    ck_assert_int_ne(lstat(aside, &st), 0);
    ck_assert_int_eq(lstat(path, &st), 0);
}
END_TEST

START_TEST(what_is_no_tag_of_ours_makes_it_anothers)
{
    struct ms_err why = {0, ""};
    char file[320];
    char aside[MS_PATH_MAX + 16] = "";
    ck_assert_int_eq(mkdir(path, 0755), 0);
    snprintf(file, sizeof(file), "%s/.job_tag", path);
    ck_assert_int_eq(_i == 0 ? symlink("/nowhere", file) : mkdir(file, 0755), 0);

    int fd = job_folder_hold(path, ours, aside, &why);

    ck_assert_msg(fd >= 0, "%s", why.text);
    ck_assert_str_ne(aside, "");
    close(fd);
    ck_assert(job_folder_is_of(path, ours));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_tag");
    TCase *t = tcase_create("job_tag");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, a_tag_is_on_the_disk_before_it_has_its_name);
    tcase_add_loop_test(t, a_power_cut_on_the_way_makes_it_nobody_elses, 0, 3);
    tcase_add_loop_test(t, a_worker_without_descriptors_takes_no_folder_for_another_jobs, 0, 6);
    tcase_add_loop_test(t, what_is_no_tag_of_ours_makes_it_anothers, 0, 2);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
