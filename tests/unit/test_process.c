/* test_process.c - a program that hides leaves no core and shows nobody its memory */
#include "proto/process.h"

#include "tests/test.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

START_TEST(a_hidden_program_dumps_no_core)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit many = {RLIM_INFINITY, RLIM_INFINITY};
        (void)setrlimit(RLIMIT_CORE, &many);
        ms_process_hide();
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

/* Each of the three programs, as it is installed. */
START_TEST(every_program_hides_before_it_reads_a_key)
{
    static const char *const mains[] = {"daemon/main.c", "libworker/train/msworker.c",
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

    ck_assert_ptr_nonnull(strstr(main_at, "ms_process_hide();"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("process");
    TCase *tcase = tcase_create("process");
    tcase_add_test(tcase, a_hidden_program_dumps_no_core);
    tcase_add_loop_test(tcase, every_program_hides_before_it_reads_a_key, 0, 3);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
