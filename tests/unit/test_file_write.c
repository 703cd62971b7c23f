/* test_file_write.c - a file is written whole or not at all, and no other one is touched */
#include "proto/file_write.h"

#include "tests/test.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dir;
static char path[128];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/file", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static const char *in(const char *name)
{
    static char buf[192];
    snprintf(buf, sizeof(buf), "%s/%s", dir, name);
    return buf;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(in(name), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void holds(const char *name, const char *want)
{
    char got[64] = "";
    FILE *file = fopen(in(name), "r");
    ck_assert_msg(file != NULL, "%s", name);
    got[fread(got, 1, sizeof(got) - 1, file)] = '\0';
    fclose(file);
    ck_assert_str_eq(got, want);
}

static int write_it(const char *text, int exclusive, struct ms_err *err)
{
    return ms_file_write(path, text, strlen(text), 0640, exclusive, err);
}

START_TEST(a_file_is_made_and_replaced_with_its_mode)
{
    struct stat st;
    ck_ms_ok(write_it("one", 1, err));
    ck_ms_ok(write_it("two", 0, err));
    holds("file", "two");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
    ck_ms_fails(write_it("three", 1, err), MS_E_EXISTS, "exists already");
    holds("file", "two");
    ck_ms_ok(ms_folder_sync(path, err));
    ck_ms_ok(ms_file_sync(path, err));
    ck_ms_fails(ms_file_sync(in("nothing"), err), MS_E_IO, "cannot sync ");
}
END_TEST

START_TEST(what_lies_beside_it_stays)
{
    static const char *const names[] = {"file.new",
                                        "file.tmp",
                                        "file.000000",
                                        ".file.new",
                                        MS_STEP_PREFIX,
                                        MS_STEP_PREFIX "0123456789abcdef0",
                                        MS_STEP_PREFIX "0123456789abcdeX",
                                        MS_STEP_PREFIX "0123456789abcdef-",
                                        MS_STEP_PREFIX "0123456789abcdef-file",
                                        MS_STEP_PREFIX "0123456789abcdef-0123456789abcdef-"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(names); i++) {
        put(names[i], "precious");
    }
    ck_ms_ok(write_it("one", 0, err));
    ck_ms_ok(write_it("two", 0, err));
    for (size_t i = 0; i < MS_ARRAY_SIZE(names); i++) {
        holds(names[i], "precious");
    }
}
END_TEST

START_TEST(what_a_kill_left_goes_with_the_next_writer_and_what_is_being_written_stays)
{
    static const char left[] = MS_STEP_PREFIX "0123456789abcdef";
    static const char busy[] = MS_STEP_PREFIX "fedcba9876543210";
    static const char fifo[] = MS_STEP_PREFIX "0000000000000000";
    put(left, "a key");
    put(busy, "another");
    ck_assert_int_eq(mkfifo(in(fifo), 0600), 0);
    int fd = open(in(busy), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);

    ck_ms_ok(write_it("one", 0, err));

    ck_assert_int_ne(access(in(left), F_OK), 0);
    ck_assert_int_eq(access(in(fifo), F_OK), 0);
    holds(busy, "another");
    close(fd);
}
END_TEST

START_TEST(many_at_once_leave_one_whole_file_and_nothing_beside_it)
{
    enum { WRITERS = 8, TIMES = 50 };
    for (int i = 0; i < WRITERS; i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            char text[16];
            int rc = 0;
            snprintf(text, sizeof(text), "writer %d", i);
            for (int n = 0; n < TIMES && rc == 0; n++) {
                rc = ms_file_write(path, text, strlen(text), 0600, 0, NULL);
            }
            _exit(rc != 0);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = 0;
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
    }
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 8);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0); /* empty */
    ck_assert_int_eq(mkdir(dir, 0700), 0);
}
END_TEST

START_TEST(a_file_for_people_is_read_by_whom_the_umask_lets)
{
    static const mode_t masks[] = {022, 077, 002, 027};
    struct stat st;
    for (size_t i = 0; i < MS_ARRAY_SIZE(masks); i++) { /* each replaces the one before */
        const mode_t before = umask(masks[i]);
        ck_ms_ok(ms_file_save(path, "text", 4, err));
        (void)umask(before);
        holds("file", "text");
        ck_assert_int_eq(stat(path, &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, 0666 & ~masks[i]);
    }
    ck_ms_fails(ms_file_save("/nowhere/file", "text", 4, err), MS_E_IO, "/nowhere/file");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0); /* empty */
    ck_assert_int_eq(mkdir(dir, 0700), 0);
}
END_TEST

START_TEST(a_file_in_pieces_is_there_at_its_end_or_not_at_all)
{
    struct ms_file_new file;
    put("file", "old");
    ck_ms_ok(ms_file_begin(path, 0666, &file, err));
    ck_assert_int_eq(pwrite(file.fd, "cd", 2, 2), 2);
    ck_assert_int_eq(pwrite(file.fd, "ab", 2, 0), 2);
    holds("file", "old");
    ms_file_drop(&file);
    holds("file", "old");
    ck_ms_ok(ms_file_begin(path, 0666, &file, err));
    ck_assert_int_eq(pwrite(file.fd, "abcd", 4, 0), 4);
    ck_ms_ok(ms_file_end(&file, 0, err));
    holds("file", "abcd");
    ck_ms_ok(ms_file_begin(path, 0666, &file, err));
    ck_ms_fails(ms_file_end(&file, 1, err), MS_E_EXISTS, "exists already");
    holds("file", "abcd");
    ck_ms_fails(ms_file_begin("/nowhere/file", 0666, &file, err), MS_E_IO, "/nowhere/file");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0); /* empty */
    ck_assert_int_eq(mkdir(dir, 0700), 0);
}
END_TEST

/* Whoever may write in the folder could have another file in its place by then. */
START_TEST(owner_group_and_mode_are_there_with_the_name)
{
    enum { OWNER = 4241, GROUP = 4242 };
    struct stat st;
    if (geteuid() != 0) {
        return; /* only root gives files to others */
    }
    ck_ms_ok(ms_file_write_for(in("key"), "k", 1, 0640, OWNER, GROUP, 0, err));
    ck_assert_int_eq(lstat(in("key"), &st), 0);
    ck_assert_uint_eq(st.st_uid, OWNER);
    ck_assert_uint_eq(st.st_gid, GROUP);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
    ck_ms_ok(ms_file_write(in("key"), "k", 1, 0600, 0, err));
    ck_assert_int_eq(lstat(in("key"), &st), 0);
    ck_assert_uint_eq(st.st_gid, getegid());
}
END_TEST

/* Whoever opened a FIFO to append to it would wait for a reader. */
START_TEST(what_is_no_file_is_not_appended_to)
{
    ck_assert_int_eq(mkfifo(in("fifo"), 0600), 0);
    int reader = open(in("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(reader, 0);
    for (int i = 0; i < 2; i++) {
        ck_ms_fails(ms_file_append(in("fifo"), O_WRONLY, 0600, err), MS_E_INVALID,
                    "fifo is no file: move it away");
        close(i == 0 ? reader : -1);
    }
    ck_ms_fails(ms_file_append(dir, O_WRONLY, 0600, err), MS_E_IO, "Is a directory");
    for (int i = 0; i < 2; i++) {
        int fd = ms_file_append(in("log"), O_WRONLY, 0600, NULL);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(fcntl(fd, F_GETFL) & (O_NONBLOCK | O_APPEND), O_APPEND);
        ck_assert_int_eq(write(fd, "line\n", 5), 5);
        close(fd);
    }
    struct stat st;
    ck_assert_int_eq(stat(in("log"), &st), 0);
    ck_assert_int_eq(st.st_size, 10);
    int null_fd = ms_file_append("/dev/null", O_WRONLY, 0600, NULL);
    ck_assert_int_ge(null_fd, 0);
    close(null_fd);
}
END_TEST

START_TEST(what_is_no_file_is_not_replaced)
{
    struct stat st;
    struct ms_file_new file;
    ck_assert_int_eq(mkfifo(in("fifo"), 0600), 0);
    char *link_path = strdup(in("link"));
    ck_assert_int_eq(symlink("/dev/null", link_path), 0);
    ck_ms_fails(ms_file_begin(in("fifo"), 0600, &file, err), MS_E_INVALID,
                "fifo is a device, a pipe or a socket");
    ck_ms_fails(ms_file_save(link_path, "text", 4, err), MS_E_INVALID, "name a file");
    ck_assert_int_eq(stat(in("fifo"), &st), 0);
    ck_assert(S_ISFIFO(st.st_mode));
    ck_assert_int_eq(stat(link_path, &st), 0);
    ck_assert(S_ISCHR(st.st_mode));
    free(link_path);
}
END_TEST

START_TEST(another_name_takes_the_place_of_a_file)
{
    struct stat a;
    struct stat b;
    char old[192];
    char step[192];
    put("file", "first");
    put("other", "second");
    snprintf(old, sizeof(old), "%s", in("other"));
    snprintf(step, sizeof(step), "%s", in("step"));

    for (int i = 0; i < 2; i++) { /* the second time it is that file already */
        ck_ms_ok(ms_file_link(old, step, err));
        ck_ms_ok(ms_file_move(step, path, err));
        ck_assert_int_eq(stat(path, &a), 0);
        ck_assert_int_eq(stat(old, &b), 0);
        ck_assert_uint_eq(a.st_ino, b.st_ino);
        ck_assert_uint_eq(a.st_nlink, 2);
        ck_assert_int_ne(access(step, F_OK), 0);
    }
    holds("file", "second");
    ck_ms_fails(ms_file_link(in("none"), step, err), MS_E_NOT_FOUND, "none");
    ck_ms_fails(ms_file_link(old, path, err), MS_E_IO, "File exists");
    ck_ms_fails(ms_file_move(step, path, err), MS_E_NOT_FOUND, path);
    holds("file", "second");
}
END_TEST

static ino_t inode_of(const char *name)
{
    struct stat st;
    return lstat(in(name), &st) == 0 ? st.st_ino : 0;
}

/* A file as a process left it that was killed while it took the name `file` from that number. */
static void leave_away(const char *text, ino_t number, char name[96])
{
    snprintf(name, 96, MS_STEP_PREFIX "0123456789abcdef-%016llx-file", (unsigned long long)number);
    put("file", text);
    ck_assert_int_eq(rename(path, in(name)), 0);
}

/* What comes back takes nobody's place. */
START_TEST(what_was_to_go_goes_with_who_clears_and_what_came_instead_comes_back)
{
    char name[96];
    put("file", "meant");
    leave_away("meant", inode_of("file"), name);
    ms_file_clear(path);
    ck_assert(inode_of(name) == 0 && inode_of("file") == 0);

    leave_away("came instead", 1, name);
    ms_file_clear(path);
    ck_assert(inode_of(name) == 0);
    holds("file", "came instead");

    leave_away("came instead", 1, name);
    put("file", "newer");
    ms_file_clear(path);
    ck_assert(inode_of(name) == 0);
    holds("file", "newer");
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* By what it leads to; a folder is none that goes. */
START_TEST(a_name_is_taken_from_the_file_that_was_looked_at_alone)
{
    put("file", "one");
    const int one = open(path, O_PATH | O_CLOEXEC);
    put("other", "two");
    ck_assert_int_eq(rename(in("other"), path), 0);
    const ino_t two = inode_of("file");
    ck_ms_fails(ms_file_remove(path, one, err), MS_E_EXISTS, "is another process's by now");
    ck_assert(inode_of("file") == two);
    close(one);

    const int again = open(path, O_PATH | O_CLOEXEC);
    ck_ms_ok(ms_file_remove(path, again, err));
    ck_assert(inode_of("file") == 0);
    ck_ms_ok(ms_file_remove(path, again, err)); /* there is none */
    close(again);

    ck_assert_int_eq(mkdir(path, 0700), 0);
    const int folder = open(path, O_PATH | O_CLOEXEC);
    ck_ms_fails(ms_file_remove(path, folder, err), MS_E_IO, "cannot take away ");
    ck_assert(inode_of("file") != 0);
    close(folder);
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_write");
    TCase *tcase = test_case_create("file_write");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_file_is_made_and_replaced_with_its_mode);
    tcase_add_test(tcase, what_lies_beside_it_stays);
    tcase_add_test(tcase,
                   what_a_kill_left_goes_with_the_next_writer_and_what_is_being_written_stays);
    tcase_add_test(tcase, many_at_once_leave_one_whole_file_and_nothing_beside_it);
    tcase_add_test(tcase, a_file_for_people_is_read_by_whom_the_umask_lets);
    tcase_add_test(tcase, a_file_in_pieces_is_there_at_its_end_or_not_at_all);
    tcase_add_test(tcase, owner_group_and_mode_are_there_with_the_name);
    tcase_add_test(tcase, what_is_no_file_is_not_appended_to);
    tcase_add_test(tcase, what_is_no_file_is_not_replaced);
    tcase_add_test(tcase, another_name_takes_the_place_of_a_file);
    tcase_add_test(tcase, what_was_to_go_goes_with_who_clears_and_what_came_instead_comes_back);
    tcase_add_test(tcase, a_name_is_taken_from_the_file_that_was_looked_at_alone);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
