/* test_rank_log.c - loss lines once each, whatever was killed */
#include "libworker/train/rank_log.h"
#include "proto/limits.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PER_EPOCH = 4 };

static const char *dir;
static char path[128];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/worker_1.log", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
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

static void append(const char *text)
{
    FILE *file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

/* What a process prints of steps first to last, as msctl run opens its standard output. */
static void live(const char *training, uint64_t first, uint64_t last)
{
    struct rank_log log;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    rank_log_open(&log, fd, path, training, 1, 2, PER_EPOCH);
    for (uint64_t i = first; i <= last; i++) {
        (void)rank_log_step(&log, i, 0.5F, NULL);
    }
    rank_log_close(&log);
    close(fd);
}

START_TEST(each_step_is_printed_once_behind_a_line_that_names_the_training)
{
    live("0123456789ab", 1, 3);
    append("<5>rank.waits job=1\n");
    live("0123456789ab", 1, 5);
    live("0123456789ab", 4, 5);

    ck_assert_str_eq(slurp(), "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n"
                              "epoch: 1 step: 2, loss is 0.5\n"
                              "epoch: 1 step: 3, loss is 0.5\n"
                              "<5>rank.waits job=1\n"
                              "epoch: 1 step: 4, loss is 0.5\n"
                              "epoch: 2 step: 1, loss is 0.5\n");
}
END_TEST

/* ... with steps of 2 ms each. */
static void live_by(const struct rank_log_rule *rule, uint64_t first, uint64_t last)
{
    struct rank_log log;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    rank_log_open(&log, fd, path, "0123456789ab", 1, 2, PER_EPOCH);
    rank_log_set_rule(&log, rule);
    for (uint64_t i = first; i <= last; i++) {
        rank_log_took(&log, i, 2);
        (void)rank_log_step(&log, i, 0.5F, NULL);
    }
    rank_log_close(&log);
    close(fd);
}

START_TEST(each_so_many_th_step_has_a_line_once)
{
    const struct rank_log_rule rule = {.loss_every = 3};
    live_by(&rule, 1, 5);
    live_by(&rule, 2, 7); /* from a checkpoint of step 1 */

    ck_assert_str_eq(slurp(), "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 3, loss is 0.5\n"
                              "epoch: 2 step: 2, loss is 0.5\n");
}
END_TEST

START_TEST(each_epoch_has_a_line_and_its_time_once)
{
    const struct rank_log_rule rule = {.time = 1};
    live_by(&rule, 1, 6);
    live_by(&rule, 3, 8); /* comes within epoch 1, which is told, and makes half of it */

    ck_assert_str_eq(slurp(), "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 4, loss is 0.5\n"
                              "Train epoch time: 8.000 ms, per step time: 2.000 ms\n"
                              "epoch: 2 step: 4, loss is 0.5\n"
                              "Train epoch time: 8.000 ms, per step time: 2.000 ms\n");
}
END_TEST

START_TEST(nothing_is_said_of_steps_where_nobody_wants_it)
{
    const struct rank_log_rule rule = {.loss_every = 0};
    live_by(&rule, 1, 9);
    ck_assert_str_eq(slurp(), "training 0123456789ab: rank 1 of 2\n");
}
END_TEST

START_TEST(torn_last_line_is_dropped)
{
    live("0123456789ab", 1, 1);
    append("epoch: 1 step: 2, loss");
    live("0123456789ab", 1, 2);

    ck_assert_str_eq(slurp(), "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n"
                              "epoch: 1 step: 2, loss is 0.5\n");
}
END_TEST

/* Its step would be taken for told, and stand nowhere. */
START_TEST(a_torn_line_that_somebody_wrote_behind_tells_no_step)
{
    live("0123456789ab", 1, 1);
    append("epoch: 1 step: 2, loss is 0.29plan: given\n");
    live("0123456789ab", 2, 2);
    append("epoch: 1 step: 3, loss is epoch: 1 step: 3, loss\nepoch: 1 step: 3\n");
    live("0123456789ab", 3, 3);

    ck_assert_str_eq(slurp(), "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n"
                              "epoch: 1 step: 2, loss is 0.29plan: given\n"
                              "epoch: 1 step: 2, loss is 0.5\n"
                              "epoch: 1 step: 3, loss is epoch: 1 step: 3, loss\n"
                              "epoch: 1 step: 3\n"
                              "epoch: 1 step: 3, loss is 0.5\n");
}
END_TEST

/* As metrics_format_loss has them. */
START_TEST(a_loss_may_be_no_number)
{
    live("0123456789ab", 1, 1);
    append("epoch: 1 step: 2, loss is nan\nepoch: 1 step: 3, loss is -inf\n");
    live("0123456789ab", 2, 4);

    ck_assert_ptr_nonnull(strstr(slurp(), "-inf\nepoch: 1 step: 4, loss is 0.5\n"));
}
END_TEST

START_TEST(lines_of_another_training_count_for_nothing)
{
    append("epoch: 1 step: 4, loss is 0.25\n");
    live("0123456789ab", 1, 1);
    live("ba9876543210", 1, 1);
    live("0123456789ab", 1, 1);

    ck_assert_str_eq(slurp(), "epoch: 1 step: 4, loss is 0.25\n"
                              "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n"
                              "training ba9876543210: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n"
                              "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n");
}
END_TEST

/* Ranks that somebody sends to one file, and his own line that is not at its end. */
START_TEST(what_another_is_writing_stays)
{
    append("my run of today, which takes");
    live("0123456789ab", 1, 1);
    ck_assert_str_eq(slurp(), "my run of today, which takes\n"
                              "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n");

    append("training 0123456789ab: rank 0 of 2\nepoch: 1 step: 2, loss is 0.7\nepoch: 1 st");
    live("0123456789ab", 2, 2);

    ck_assert_ptr_nonnull(strstr(slurp(), "epoch: 1 step: 2, loss is 0.7\nepoch: 1 st\n"
                                          "training 0123456789ab: rank 1 of 2\n"
                                          "epoch: 1 step: 2, loss is 0.5\n"));
}
END_TEST

static int open_log(struct rank_log *log)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    rank_log_open(log, fd, path, "0123456789ab", 1, 2, PER_EPOCH);
    return fd;
}

/* It was in its step when it fell asleep, and its successor has made that and the next. */
START_TEST(a_process_that_was_only_asleep_writes_into_nothing)
{
    struct rank_log first;
    struct rank_log second;
    struct rank_log third;
    int asleep = open_log(&first);
    (void)rank_log_step(&first, 1, 0.5F, NULL);
    int awake = open_log(&second);
    (void)rank_log_step(&second, 2, 0.5F, NULL);
    (void)rank_log_step(&second, 3, 0.5F, NULL);

    (void)rank_log_step(&first, 2, 0.5F, NULL);
    int late = open_log(&third);
    (void)rank_log_step(&third, 3, 0.5F, NULL);
    (void)rank_log_step(&third, 4, 0.5F, NULL);

    ck_assert_str_eq(slurp(), "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n"
                              "epoch: 1 step: 2, loss is 0.5\n"
                              "epoch: 1 step: 3, loss is 0.5\n"
                              "epoch: 1 step: 4, loss is 0.5\n");
    close(asleep);
    close(awake);
    close(late);
}
END_TEST

/* Who finds another file at the path is not who takes it. */
START_TEST(who_was_asleep_does_not_take_the_file_back)
{
    struct rank_log log;
    int asleep = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ck_assert_int_ge(asleep, 0);
    append("training 0123456789ab: rank 1 of 2\nepoch: 1 step: 1, loss is 0.5\n");
    live("0123456789ab", 2, 2);

    rank_log_open(&log, asleep, path, "0123456789ab", 1, 2, PER_EPOCH);
    (void)rank_log_step(&log, 2, 0.25F, NULL);

    ck_assert_str_eq(slurp(), "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n"
                              "epoch: 1 step: 2, loss is 0.5\n");
    close(asleep);
}
END_TEST

/* A file that is not the rank's alone stays: an older step, said late, is none of the last. */
START_TEST(an_older_step_behind_a_later_one_hides_none)
{
    append("training 0123456789ab: rank 1 of 2\nepoch: 1 step: 3, loss is 0.5\n"
           "epoch: 1 step: 2, loss is 0.5\n");
    live("0123456789ab", 3, 4);

    ck_assert_ptr_nonnull(strstr(slurp(), "step: 2, loss is 0.5\nepoch: 1 step: 4, loss is 0.5\n"));
}
END_TEST

/* The folder takes no new file: the old one goes on. */
START_TEST(a_log_that_cannot_be_made_anew_goes_on)
{
    char nowhere[160];
    struct rank_log log;
    live("0123456789ab", 1, 1);
    append("epoch: 1 st");
    snprintf(nowhere, sizeof(nowhere), "%s.d/log", path);
    const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);

    rank_log_open(&log, fd, nowhere, "0123456789ab", 1, 2, PER_EPOCH);
    (void)rank_log_step(&log, 2, 0.5F, NULL);

    rank_log_close(&log);
    close(fd);
    ck_assert_str_eq(slurp(), "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n"
                              "epoch: 1 step: 2, loss is 0.5\n");
}
END_TEST

START_TEST(lines_longer_than_ours_hide_no_step)
{
    char big[3000];
    memset(big, 'x', sizeof(big));
    snprintf(big + sizeof(big) - 40, 40, "epoch: 1 step: 3, loss is 0.5\n");
    live("0123456789ab", 1, 1);
    append(big);
    live("0123456789ab", 1, 2);

    const char *end = strrchr(slurp(), 'x');
    ck_assert_str_eq(end, "xepoch: 1 step: 3, loss is 0.5\nepoch: 1 step: 2, loss is 0.5\n");
}
END_TEST

START_TEST(training_without_a_name_prints_all)
{
    live("", 1, 1);
    live("", 1, 1);

    ck_assert_str_eq(slurp(), "epoch: 1 step: 1, loss is 0.5\nepoch: 1 step: 1, loss is 0.5\n");
}
END_TEST

START_TEST(what_is_no_file_gets_all_loss_lines_and_no_other)
{
    struct rank_log log;
    char text[256];
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);

    rank_log_open(&log, fds[1], NULL, "0123456789ab", 1, 2, PER_EPOCH);
    (void)rank_log_step(&log, 5, 0.5F, NULL);
    (void)rank_log_step(&log, 5, 0.5F, NULL);

    ssize_t n = read(fds[0], text, sizeof(text) - 1);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    ck_assert_str_eq(text, "epoch: 2 step: 1, loss is 0.5\n");
    close(fds[0]);
    close(fds[1]);
}
END_TEST

/* ---- a full disk ---- */

/* Under a limit nothing is asserted: the results of a test go through a file, too. */
static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
        abort();
    }
}

START_TEST(what_a_full_disk_does_not_take_waits_and_no_line_is_torn)
{
    struct rank_log log;
    struct ms_err why = {0, ""};
    int fd = open_log(&log);
    (void)rank_log_step(&log, 1, 0.5F, NULL);
    limit_files((rlim_t)strlen(slurp()) + 10); /* less than a line */
    const int second = rank_log_step(&log, 2, 0.5F, &why);
    rank_log_say(&log, "goes on\n");
    const int third = rank_log_step(&log, 3, 0.5F, NULL);
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(second, MS_E_IO);
    ck_assert_int_eq(third, MS_E_IO);
    ck_assert_msg(strstr(why.text, path) != NULL, "%s", why.text);
    ck_assert_str_eq(slurp(), "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n");

    ck_ms_ok(rank_log_step(&log, 4, 0.5F, err));

    ck_assert_str_eq(slurp(), "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n"
                              "epoch: 1 step: 2, loss is 0.5\n"
                              "goes on\n"
                              "epoch: 1 step: 3, loss is 0.5\n"
                              "epoch: 1 step: 4, loss is 0.5\n");
    ck_assert_uint_eq(rank_log_lost(&log), 0);
    rank_log_close(&log);
    close(fd);
}
END_TEST

START_TEST(what_waits_at_the_end_is_written_where_there_is_room_by_then)
{
    struct rank_log log;
    limit_files(5);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    rank_log_open(&log, fd, path, "0123456789ab", 1, 2, PER_EPOCH);
    (void)rank_log_step(&log, 1, 0.5F, NULL);
    limit_files(RLIM_INFINITY);
    ck_assert_str_eq(slurp(), "");

    rank_log_close(&log);

    ck_assert_str_eq(slurp(), "training 0123456789ab: rank 1 of 2\n"
                              "epoch: 1 step: 1, loss is 0.5\n");
    close(fd);
}
END_TEST

START_TEST(lines_beyond_what_memory_holds_are_counted)
{
    struct rank_log log;
    struct ms_err why = {0, ""};
    uint64_t last = 0;
    uint64_t lines = 0;
    char line[256];
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    rank_log_open(&log, fd, NULL, "0123456789ab", 1, 2, PER_EPOCH);
    limit_files(5);
    while (rank_log_lost(&log) < 3 && last < MS_RANK_LOG_WAITING) {
        (void)rank_log_step(&log, ++last, 0.5F, &why);
    }
    limit_files(RLIM_INFINITY);
    ck_assert_uint_eq(rank_log_lost(&log), 3);
    ck_assert_str_eq(why.text, "cannot write the log of rank 1: File too large");

    rank_log_close(&log);

    FILE *file = fopen(path, "r");
    while (fgets(line, sizeof(line), file) != NULL) {
        lines += strncmp(line, "epoch: ", 7) == 0 && strstr(line, ", loss is 0.5\n") != NULL;
    }
    fclose(file);
    ck_assert_uint_eq(lines, last - 3);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rank_log");
    TCase *tc = tcase_create("rank_log");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, each_step_is_printed_once_behind_a_line_that_names_the_training);
    tcase_add_test(tc, each_so_many_th_step_has_a_line_once);
    tcase_add_test(tc, each_epoch_has_a_line_and_its_time_once);
    tcase_add_test(tc, nothing_is_said_of_steps_where_nobody_wants_it);
    tcase_add_test(tc, torn_last_line_is_dropped);
    tcase_add_test(tc, a_torn_line_that_somebody_wrote_behind_tells_no_step);
    tcase_add_test(tc, a_loss_may_be_no_number);
    tcase_add_test(tc, lines_of_another_training_count_for_nothing);
    tcase_add_test(tc, lines_longer_than_ours_hide_no_step);
    tcase_add_test(tc, what_another_is_writing_stays);
    tcase_add_test(tc, a_process_that_was_only_asleep_writes_into_nothing);
    tcase_add_test(tc, who_was_asleep_does_not_take_the_file_back);
    tcase_add_test(tc, an_older_step_behind_a_later_one_hides_none);
    tcase_add_test(tc, a_log_that_cannot_be_made_anew_goes_on);
    tcase_add_test(tc, what_a_full_disk_does_not_take_waits_and_no_line_is_torn);
    tcase_add_test(tc, what_waits_at_the_end_is_written_where_there_is_room_by_then);
    tcase_add_test(tc, lines_beyond_what_memory_holds_are_counted);
    tcase_add_test(tc, training_without_a_name_prints_all);
    tcase_add_test(tc, what_is_no_file_gets_all_loss_lines_and_no_other);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
