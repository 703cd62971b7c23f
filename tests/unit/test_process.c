/* test_process.c - a program leaves no core, shows nobody its memory, and is ended by no write */
#include "proto/process.h"

#include "tests/test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

START_TEST(a_program_dumps_no_core)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit many = {RLIM_INFINITY, RLIM_INFINITY};
        (void)setrlimit(RLIMIT_CORE, &many);
        ms_process_begin();
        struct rlimit got;
        int bad = getrlimit(RLIMIT_CORE, &got) != 0 || got.rlim_cur != 0 || got.rlim_max != 0;
#ifndef __SANITIZE_ADDRESS__
        bad |= prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0;
#endif
        if (bad) {
            _exit(1);
        }
        abort();
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);

    ck_assert(WIFSIGNALED(status));
    ck_assert(!WCOREDUMP(status));
}
END_TEST

START_TEST(a_write_that_fails_ends_no_program)
{
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit small = {4, 4};
        char path[] = "/tmp/msched-test-XXXXXX";
        int fd = mkstemp(path);
        int pipes[2];
        unlink(path);
        ms_process_begin();
        int bad = fd < 0 || setrlimit(RLIMIT_FSIZE, &small) != 0 || write(fd, "12345", 5) != 4 ||
                  write(fd, "5", 1) != -1 || errno != EFBIG;
        bad |= pipe(pipes) != 0 || close(pipes[0]) != 0 || write(pipes[1], "1", 1) != -1 ||
               errno != EPIPE;
        _exit(bad);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);

    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(a_program_has_the_name_of_its_command)
{
    pid_t child = fork();
    if (child == 0) {
        char name[16] = "";
        prctl(PR_SET_NAME, "exe", 0, 0, 0);
        ms_process_begin();
        prctl(PR_GET_NAME, name, 0, 0, 0);
        _exit(strcmp(name, "test_process") != 0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);

    ck_assert_int_eq(status, 0);
}
END_TEST

/* Each of the three programs, as it is installed. */
START_TEST(every_program_begins_so_before_it_reads_a_key)
{
    static const char *const mains[] = {"daemon/main.c", "libworker/program/msworker.c",
                                        "cli/main.c"};
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    char path[512];
    static char text[1 << 16];
    snprintf(path, sizeof(path), "%s/%s", root != NULL ? root : ".", mains[_i]);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    const char *main_at = strstr(text, "\nint main(");
    ck_assert_ptr_nonnull(main_at);

    ck_assert_ptr_nonnull(strstr(main_at, "ms_process_begin();"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("process");
    TCase *tcase = tcase_create("process");
    tcase_add_test(tcase, a_program_dumps_no_core);
    tcase_add_test(tcase, a_write_that_fails_ends_no_program);
    tcase_add_test(tcase, a_program_has_the_name_of_its_command);
    tcase_add_loop_test(tcase, every_program_begins_so_before_it_reads_a_key, 0, 3);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
