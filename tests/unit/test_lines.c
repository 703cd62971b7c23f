/* test_lines.c - a file of lines that is made anew: what a power cut at any moment leaves of it,
 * and what a process that sleeps at any moment of it. The linker hands us opens, syncs and renames.
 */
#include "libworker/train/lines.h"
#include "proto/macros.h"
#include "tests/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[128];
static int fd;
static char deeds[128]; /* in their order */
static int fails;       /* that sync, from 1 on; 0: none */
static int n_syncs;
static const char
    *sleeps_at; /* before that the process sleeps, until another has taken its place */
static void (*meanwhile)(void); /* before that sync, instead */
static char left[160];          /* by one that was killed */
static int left_with_new;       /* it was there when a new file was made */

int __real_open64(const char *name, int flags, ...);
int __wrap_open64(const char *name, int flags, ...);
int __real_fsync(int of);
int __wrap_fsync(int of);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

static void sleep_at(const char *deed);

static void note(const char *deed)
{
    const size_t used = strlen(deeds);
    snprintf(deeds + used, sizeof(deeds) - used, "%s ", deed);
    sleep_at(deed);
}

/* Who comes next makes the file anew, and has a line of its own. */
static void sleep_at(const char *deed)
{
    if (sleeps_at == NULL || strcmp(sleeps_at, deed) != 0) {
        return;
    }
    sleeps_at = NULL;
    const int next = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    const int anew = lines_make_anew(next, path, 8, NULL);
    ck_assert_int_gt(anew, 0);
    ck_assert_int_eq(write(anew, "next\n", 5), 5);
    close(anew);
    close(next);
}

int __wrap_open64(const char *name, int flags, ...)
{
    if (strstr(name, ".new") != NULL) {
        left_with_new |= left[0] != '\0' && access(left, F_OK) == 0;
        sleep_at("open");
    }
    return __real_open64(name, flags, 0644);
}

int __wrap_fsync(int of)
{
    struct stat st;
    ck_assert_int_eq(fstat(of, &st), 0);
    note(S_ISDIR(st.st_mode) ? "folder" : "file");
    if (meanwhile != NULL && !S_ISDIR(st.st_mode)) {
        void (*const do_it)(void) = meanwhile;
        meanwhile = NULL;
        do_it();
    }
    if (++n_syncs == fails) {
        errno = EIO;
        return -1;
    }
    return __real_fsync(of);
}

int __wrap_rename(const char *from, const char *to)
{
    note("rename");
    return __real_rename(from, to);
}

static void setup(void)
{
    static const char lines[] = "one\ntwo\nthr";
    snprintf(path, sizeof(path), "%s/metrics.jsonl", test_dir_make());
    fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, lines, strlen(lines)), (ssize_t)strlen(lines));
    deeds[0] = '\0';
    fails = n_syncs = 0;
    sleeps_at = NULL;
    meanwhile = NULL;
    left[0] = '\0';
    left_with_new = 0;
}

static void teardown(void)
{
    close(fd);
    *strrchr(path, '/') = '\0';
    test_dir_remove(path);
}

static void holds(const char *want)
{
    char have[64] = "";
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    ck_assert_int_ge(read(file, have, sizeof(have) - 1), 0);
    close(file);
    ck_assert_str_eq(have, want);
}

static int n_files(void)
{
    char folder[128];
    int n = 0;
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        n += entry->d_name[0] != '.';
    }
    closedir(dir);
    return n;
}

/* Else the name may lead to a file without its bytes, and the old one is gone. */
START_TEST(its_lines_are_on_the_disk_before_its_name_leads_there)
{
    struct ms_err why = {0, ""};
    const int anew = lines_make_anew(fd, path, 8, &why);

    ck_assert_msg(anew > 0, "%s", why.text);
    close(anew);
    ck_assert_str_eq(deeds, "file rename folder ");
    holds("one\ntwo\n");
}
END_TEST

START_TEST(what_cannot_be_synced_replaces_nothing)
{
    fails = 1;

    ck_ms_fails(lines_make_anew(fd, path, 8, err), MS_E_IO, "cannot write ");

    ck_assert_str_eq(deeds, "file ");
    holds("one\ntwo\nthr");
    ck_assert_int_eq(n_files(), 1);
}
END_TEST

/* The old name, with all lines, comes back at worst. */
START_TEST(a_folder_that_cannot_be_synced_is_no_reason_to_go_without)
{
    struct ms_err why = {0, ""};
    fails = 2;

    const int anew = lines_make_anew(fd, path, 8, &why);

    ck_assert_msg(anew > 0, "%s", why.text);
    close(anew);
    holds("one\ntwo\n");
}
END_TEST

/* It looked before, and the names for the moment are by lot: it finds its own gone. */
START_TEST(who_slept_in_the_middle_takes_nothing_from_who_came_next)
{
    static const char *const moments[] = {"open", "file", "rename"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(moments); i++) {
        struct ms_err why = {0, ""};
        sleeps_at = moments[i];

        const int anew = lines_make_anew(fd, path, 8, &why);

        ck_assert_msg(anew == 0, "%s: %d %s", moments[i], anew, why.text);
        holds("one\ntwo\nnext\n");
        ck_assert_int_eq(n_files(), 1);
        teardown();
        setup();
    }
}
END_TEST

START_TEST(what_a_killed_one_left_goes)
{
    snprintf(left, sizeof(left), "%s.new-0123456789abcdef", path);
    close(open(left, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ck_assert_int_eq(n_files(), 2);

    const int anew = lines_make_anew(fd, path, 8, NULL);

    ck_assert_int_gt(anew, 0);
    close(anew);
    ck_assert_int_eq(n_files(), 1);
    ck_assert(!left_with_new); /* it may have the room for the new one */
}
END_TEST

/* Processes: one sleeps, the second takes its place and is killed, the third takes that one's. */
static pid_t sleeper;

static void sleep_now(void)
{
    (void)raise(SIGSTOP);
}

static void wake_it(void)
{
    int status = 0;
    ck_assert_int_eq(kill(sleeper, SIGCONT), 0);
    ck_assert_int_eq(waitpid(sleeper, &status, 0), sleeper);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0); /* it knows that it was too late */
}

START_TEST(who_wakes_as_a_third_one_takes_the_place_takes_nothing_from_it)
{
    int status = 0;
    sleeper = fork();
    ck_assert_int_ge(sleeper, 0);
    if (sleeper == 0) {
        meanwhile = sleep_now;
        _exit(lines_make_anew(fd, path, 8, NULL) != 0);
    }
    ck_assert_int_eq(waitpid(sleeper, &status, WUNTRACED), sleeper);
    ck_assert(WIFSTOPPED(status));
    const int second = lines_make_anew(fd, path, 8, NULL);
    ck_assert_int_gt(second, 0);
    ck_assert_int_eq(write(second, "three\nfou", 9), 9);

    meanwhile = wake_it;
    const int third = lines_make_anew(second, path, 14, NULL);

    ck_assert_int_gt(third, 0);
    ck_assert_int_eq(write(third, "four\n", 5), 5);
    ck_assert_int_eq(write(second, "rteen\n", 6), 6); /* it had only slept */
    holds("one\ntwo\nthree\nfour\n");
    ck_assert_int_eq(n_files(), 1);
    close(second);
    close(third);
}
END_TEST

static void take_its_name(void)
{
    char name[160] = "";
    *strrchr(path, '/') = '\0';
    DIR *dir = opendir(path);
    path[strlen(path)] = '/';
    for (const struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        if (strstr(at->d_name, ".new-") != NULL) {
            snprintf(name, sizeof(name), "%.*s/%s", (int)(strrchr(path, '/') - path), path,
                     at->d_name);
        }
    }
    closedir(dir);
    ck_assert_int_eq(unlink(name), 0);
}

/* As one does that is killed before it has the place itself. */
START_TEST(whose_name_another_one_took_makes_it_once_more)
{
    meanwhile = take_its_name;

    const int anew = lines_make_anew(fd, path, 8, NULL);

    ck_assert_int_gt(anew, 0);
    close(anew);
    holds("one\ntwo\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lines");
    TCase *tc = tcase_create("lines");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, its_lines_are_on_the_disk_before_its_name_leads_there);
    tcase_add_test(tc, what_cannot_be_synced_replaces_nothing);
    tcase_add_test(tc, a_folder_that_cannot_be_synced_is_no_reason_to_go_without);
    tcase_add_test(tc, who_slept_in_the_middle_takes_nothing_from_who_came_next);
    tcase_add_test(tc, what_a_killed_one_left_goes);
    tcase_add_test(tc, who_wakes_as_a_third_one_takes_the_place_takes_nothing_from_it);
    tcase_add_test(tc, whose_name_another_one_took_makes_it_once_more);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
