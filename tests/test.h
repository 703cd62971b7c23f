/* test.h - what every unit test shares: one runner, a temporary directory, ms_code checks */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include "proto/err.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Check writes the line of each assertion that holds to a pipe, to say behind which one a case
 * crashed: of a loop over millions of values that takes nearly all of its time. So it does of the
 * first ones of a case alone. */
enum { TEST_MARKS_MAX = 10000 };

static inline void test_mark(const char *file, int line)
{
    static int n_marks; /* of the process, which is the case's own */
    if (n_marks < TEST_MARKS_MAX) {
        n_marks++;
        _mark_point(file, line);
    }
}

#define _mark_point(file, line) test_mark(file, line) /* in Check's macros */

/* Fails the case with the error's own text. */
#define ck_ms_ok(call)                                                                             \
    do {                                                                                           \
        struct ms_err ck_err_ = {0, ""};                                                           \
        struct ms_err *err = &ck_err_;                                                             \
        int ck_rc_ = (call);                                                                       \
        ck_assert_msg(ck_rc_ >= 0, "%s: %s: %s", #call, ms_code_name(ck_rc_), ck_err_.text);       \
    } while (0)

/* The call (which may use `err`) must fail with code and a text that contains part. */
#define ck_ms_fails(call, want, part)                                                              \
    do {                                                                                           \
        struct ms_err ck_err_ = {0, ""};                                                           \
        struct ms_err *err = &ck_err_;                                                             \
        int ck_rc_ = (call);                                                                       \
        ck_assert_msg(ck_rc_ == (want), "%s: got %s, want %s: %s", #call, ms_code_name(ck_rc_),    \
                      ms_code_name(want), ck_err_.text);                                           \
        ck_assert_msg(strstr(ck_err_.text, (part)) != NULL, "%s: text '%s' lacks '%s'", #call,     \
                      ck_err_.text, (part));                                                       \
    } while (0)

static inline int test_remove_one(const char *path, const struct stat *st, int flag,
                                  struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

/* Makes a directory; returns its path in a static buffer. */
static inline const char *test_dir_make(void)
{
    static char path[64];
    snprintf(path, sizeof(path), "%s", "/tmp/msched-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(path));
    return path;
}

static inline void test_dir_remove(const char *path)
{
    nftw(path, test_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Folder with the shared data sets and references, or NULL: cases that want it return early after
 * test_skip_note, which prints "skip" so that a log shows it. */
static inline const char *test_shared(void)
{
    const char *path = getenv("MSCHED_TEST_SHARED");
    return path != NULL && access(path, R_OK) == 0 ? path : NULL;
}

static inline void test_skip_note(const char *what)
{
    printf("skip: %s: MSCHED_TEST_SHARED does not name a folder\n", what);
}

/* Check's own 4 s are no limit for machines that stand still now and then; meson gives the same by
 * the environment, which counts more. */
static inline TCase *test_case_create(const char *name)
{
    TCase *t = tcase_create(name);
    if (getenv("CK_DEFAULT_TIMEOUT") == NULL) {
        tcase_set_timeout(t, 300);
    }
    return t;
}
#define tcase_create(name) test_case_create(name) /* so that no case can forget it */

/* Runs a suite and destroys it; for `return test_run(suite);` at the end of main. */
static inline int test_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

#endif
