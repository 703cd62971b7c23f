/* test_lines.c - a file of lines that is made anew: what a power cut at any moment leaves of it
 *
 * The linker hands us syncs and renames. */
#include "libworker/train/lines.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[128];
static int fd;
static char deeds[128]; /* in their order */
static int fails;       /* that sync, from 1 on; 0: none */
static int n_syncs;

int __real_fsync(int of);
int __wrap_fsync(int of);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

static void note(const char *deed)
{
    const size_t used = strlen(deeds);
    snprintf(deeds + used, sizeof(deeds) - used, "%s ", deed);
}

int __wrap_fsync(int of)
{
    struct stat st;
    ck_assert_int_eq(fstat(of, &st), 0);
    note(S_ISDIR(st.st_mode) ? "folder" : "file");
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
    char anew[160];
    fails = 1;

    ck_ms_fails(lines_make_anew(fd, path, 8, err), MS_E_IO, "cannot write ");

    ck_assert_str_eq(deeds, "file ");
    holds("one\ntwo\nthr");
    snprintf(anew, sizeof(anew), "%s.new", path);
    ck_assert_int_ne(access(anew, F_OK), 0);
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

int main(void)
{
    Suite *suite = suite_create("lines");
    TCase *tc = tcase_create("lines");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, its_lines_are_on_the_disk_before_its_name_leads_there);
    tcase_add_test(tc, what_cannot_be_synced_replaces_nothing);
    tcase_add_test(tc, a_folder_that_cannot_be_synced_is_no_reason_to_go_without);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
