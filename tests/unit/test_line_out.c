/* test_line_out.c - lines into a file that has no room for a while: whole, in order, counted */
#include "proto/line_out.h"
#include "proto/log.h"
#include "tests/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

static const char *dir;
static char path[128];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/lines", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

/* Under a limit nothing is asserted: the results of a test go through a file, too. */
static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
        abort();
    }
}

static const char *slurp(void)
{
    static char text[8192];
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int open_lines(int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static int put(struct ms_line_out *out, const char *line)
{
    return ms_line_out_put(out, path, line, strlen(line), NULL);
}

static const int ways[] = {O_APPEND, 0}; /* as a shell opens it for >> and for > */

START_TEST(part_of_a_line_is_taken_back_and_the_line_comes_before_the_next)
{
    struct ms_line_out out;
    int fd = open_lines(ways[_i]);
    ms_line_out_init(&out, fd, 1000);
    ck_assert_int_eq(put(&out, "first\n"), 0);
    limit_files(10);
    const int second = put(&out, "second\n");
    const int third = put(&out, "third\n");
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(second, MS_E_IO);
    ck_assert_int_eq(third, MS_E_IO);
    ck_assert_str_eq(slurp(), "first\n");

    ck_assert_int_eq(put(&out, "fourth\n"), 0);

    ck_assert_str_eq(slurp(), "first\nsecond\nthird\nfourth\n");
    ck_assert_uint_eq(ms_line_out_lost(&out), 0);
    ms_line_out_fini(&out);
    close(fd);
}
END_TEST

START_TEST(of_what_waits_the_lines_that_find_room_are_written)
{
    struct ms_line_out out;
    int fd = open_lines(O_APPEND);
    ms_line_out_init(&out, fd, 1000);
    limit_files(1);
    (void)put(&out, "one\n");
    (void)put(&out, "two\n");
    (void)put(&out, "three\n");
    limit_files(10);
    const int rc = ms_line_out_flush(&out, path, NULL);
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(rc, MS_E_IO);
    ck_assert_str_eq(slurp(), "one\ntwo\n");

    ck_ms_ok(ms_line_out_flush(&out, path, err));

    ck_assert_str_eq(slurp(), "one\ntwo\nthree\n");
    ms_line_out_fini(&out);
    close(fd);
}
END_TEST

START_TEST(lines_beyond_what_may_wait_are_counted_and_told_once)
{
    struct ms_line_out out;
    int fd = open_lines(O_APPEND);
    ms_line_out_init(&out, fd, 10);
    limit_files(1);
    (void)put(&out, "one\n");
    (void)put(&out, "two\n");
    (void)put(&out, "three\n");
    (void)put(&out, "four\n");
    const uint64_t early = ms_line_out_lost(&out);
    limit_files(RLIM_INFINITY);
    ck_assert_uint_eq(early, 0); /* it is not over */

    ck_assert_int_eq(put(&out, "five\n"), 0);

    ck_assert_uint_eq(ms_line_out_lost(&out), 2);
    ck_assert_uint_eq(ms_line_out_lost(&out), 0);
    ck_assert_str_eq(slurp(), "one\ntwo\nfive\n");
    ms_line_out_fini(&out);
    close(fd);
}
END_TEST

START_TEST(the_error_is_that_of_the_disk_and_names_the_file)
{
    struct ms_line_out out;
    int fd = open_lines(O_APPEND);
    ms_line_out_init(&out, fd, 1000);
    struct ms_err why = {0, ""};
    limit_files(3);
    const int rc = ms_line_out_put(&out, "the log", "a line\n", 7, &why);
    limit_files(RLIM_INFINITY);

    ck_assert_int_eq(rc, MS_E_IO);
    ck_assert_str_eq(why.text, "cannot write the log: File too large");
    ms_line_out_fini(&out);
    close(fd);
}
END_TEST

/* It takes nothing back, and nothing twice. */
START_TEST(the_rest_of_a_line_that_a_pipe_took_comes_first)
{
    enum { LINES = 4000, LINE = 100 };
    struct ms_line_out out;
    static char text[2 * LINES * LINE];
    char line[LINE + 1];
    int fds[2];
    size_t used = 0;
    ck_assert_int_eq(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    ms_line_out_init(&out, fds[1], sizeof(text));
    for (int i = 0; i < LINES; i++) {
        snprintf(line, sizeof(line), "%099d", i);
        line[LINE - 1] = '\n';
        (void)ms_line_out_put(&out, "pipe", line, LINE, NULL);
    }
    ck_assert_uint_gt(out.n_waiting, 0);

    for (;;) {
        ssize_t n = read(fds[0], text + used, sizeof(text) - used);
        used += n > 0 ? (size_t)n : 0;
        if (n < 0 && ms_line_out_flush(&out, "pipe", NULL) == 0) {
            n = read(fds[0], text + used, sizeof(text) - used);
            used += n > 0 ? (size_t)n : 0;
            break;
        }
    }

    ck_assert_uint_eq(used, (size_t)LINES * LINE);
    for (int i = 0; i < LINES; i++) {
        ck_assert_int_eq(atoi(text + (size_t)i * LINE), i);
    }
    ms_line_out_fini(&out);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

/* ---- one file of several threads, as worker_<rank>.log of msctl run is ---- */

enum { THREADS = 3, EACH = 3000 };

static atomic_int n_running;

static void *write_some(void *arg)
{
    struct ms_line_out out;
    const int me = *(const int *)arg;
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    ms_line_out_init(&out, fd, 1U << 20);
    for (int i = 0; i < EACH; i++) {
        char line[64];
        int n = snprintf(line, sizeof(line), "thread %d line %05d ends\n", me, i);
        (void)ms_line_out_put(&out, path, line, (size_t)n, NULL);
        if (i % 7 == 0) {
            ms_log(MS_LOG_NOTICE, "log of %d at %05d ends", me, i);
            ms_line_say(fd, "said by %d at %05d ends\n", me, i);
        }
    }
    atomic_fetch_sub(&n_running, 1);
    while (ms_line_out_flush(&out, path, NULL) < 0) {
    }
    ms_line_out_fini(&out);
    close(fd);
    return NULL;
}

START_TEST(threads_that_share_a_full_file_tear_no_line_and_lose_none_that_may_wait)
{
    pthread_t threads[THREADS];
    static int ids[THREADS];
    int next[THREADS] = {0};
    char line[256];
    int torn = 0;
    int logged = 0;
    int fd = open_lines(O_APPEND);
    ms_log_init(fd, MS_LOG_INFO, 1);
    atomic_store(&n_running, THREADS);
    for (int i = 0; i < THREADS; i++) {
        ids[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_some, &ids[i]), 0);
    }
    for (rlim_t size = 1; atomic_load(&n_running) > 0; size += 13) {
        limit_files(size % 200000);
    }
    limit_files(RLIM_INFINITY);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    ms_log(MS_LOG_NOTICE, "log is over");

    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        int me = 0;
        int at = 0;
        int end = 0;
        if (sscanf(line, "thread %d line %d ends\n%n", &me, &at, &end) == 2 && end > 0) {
            ck_assert_int_eq(at, next[me]++);
        } else if (sscanf(line, "<5>log of %d at %d ends\n%n", &me, &at, &end) == 2 && end > 0) {
            logged++;
        } else if (strcmp(line, "<5>log is over\n") != 0) {
            torn += sscanf(line, "said by %d at %d ends\n%n", &me, &at, &end) != 2 || end == 0;
        }
    }
    fclose(file);
    ck_assert_int_eq(torn, 0);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(next[i], EACH);
    }
    ck_assert_int_eq(logged, THREADS * ((EACH + 6) / 7));
    ms_log_init(STDERR_FILENO, MS_LOG_INFO, 0);
    close(fd);
}
END_TEST

START_TEST(a_log_says_how_many_of_its_lines_are_lost)
{
    int fd = open_lines(O_APPEND);
    ms_log_init(fd, MS_LOG_INFO, 1);
    limit_files(1);
    for (int i = 0; i < 100; i++) {
        char big[1500];
        memset(big, 'x', sizeof(big) - 1);
        big[sizeof(big) - 1] = '\0';
        ms_log(MS_LOG_NOTICE, "event i=%d text=%s", i, big);
    }
    limit_files(RLIM_INFINITY);

    ms_log(MS_LOG_NOTICE, "room");
    ms_log(MS_LOG_NOTICE, "more");

    char line[2048];
    int events = 0;
    int lost = 0;
    int rest = 0;
    FILE *file = fopen(path, "r");
    while (fgets(line, sizeof(line), file) != NULL) {
        events += strncmp(line, "<5>event ", 9) == 0;
        rest += strcmp(line, "<5>room\n") == 0 || strcmp(line, "<5>more\n") == 0;
        if (sscanf(line, "<4>log.lost lines=%d", &lost) == 1) {
            ck_assert_int_eq(rest, 1);
        }
    }
    fclose(file);
    ck_assert_int_eq(rest, 2);
    ck_assert_int_gt(events, 10);
    ck_assert_int_eq(events + lost, 100);
    ms_log_init(STDERR_FILENO, MS_LOG_INFO, 0);
    close(fd);
}
END_TEST

/* A kill tears a write: nothing, some or more of a line than one read takes. */
static const size_t torn[] = {0, 11, 512, 1500};

START_TEST(what_a_kill_left_behind_the_last_line_goes)
{
    char end[1500];
    memset(end, 'x', sizeof(end));
    int fd = open_lines(O_APPEND);
    ms_line_say(fd, "one line\n");
    ck_assert_int_eq(write(fd, end, torn[_i]), (ssize_t)torn[_i]);

    ms_line_drop_torn(fd);
    ms_line_say(fd, "another\n");

    ck_assert_str_eq(slurp(), "one line\nanother\n");
    close(fd);
}
END_TEST

START_TEST(of_a_file_without_a_whole_line_nothing_stays)
{
    int fd = open_lines(O_APPEND);
    ck_assert_int_eq(write(fd, "one l", 5), 5);

    ms_line_drop_torn(fd);

    ck_assert_str_eq(slurp(), "");
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("line_out");
    TCase *tc = test_case_create("line_out");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, part_of_a_line_is_taken_back_and_the_line_comes_before_the_next, 0, 2);
    tcase_add_test(tc, of_what_waits_the_lines_that_find_room_are_written);
    tcase_add_test(tc, lines_beyond_what_may_wait_are_counted_and_told_once);
    tcase_add_test(tc, the_error_is_that_of_the_disk_and_names_the_file);
    tcase_add_test(tc, the_rest_of_a_line_that_a_pipe_took_comes_first);
    tcase_add_test(tc, threads_that_share_a_full_file_tear_no_line_and_lose_none_that_may_wait);
    tcase_add_test(tc, a_log_says_how_many_of_its_lines_are_lost);
    tcase_add_loop_test(tc, what_a_kill_left_behind_the_last_line_goes, 0, 4);
    tcase_add_test(tc, of_a_file_without_a_whole_line_nothing_stays);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
