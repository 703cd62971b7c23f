/* test_job_folders.c - results stay as long as they should, and no running job loses its folder */
#include "libworker/node/job_folders.h"

#include "proto/limits.h"
#include "tests/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DAY = 86400, NOW = 2000000000 };

static const char *root;
static char gone[256];
static char aside[MS_PATH_MAX + 16];

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

static void clean_at(int64_t now_s)
{
    const struct job_folders_rule rule = {30, 1000};
    gone[0] = '\0';
    job_folders_clean(root, &rule, now_s, on_gone, NULL);
}

/* By a clock that was looked at for a day. */
static void clean(int64_t days, int64_t count)
{
    const struct job_folders_rule rule = {days, count};
    job_folders_clean(root, &(struct job_folders_rule){0, 0}, NOW - DAY, NULL, NULL);
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

START_TEST(clock_that_jumps_takes_nothing_away)
{
    make("1", 1);
    make("2", 2);
    clean_at(NOW);

    clean_at(NOW + (int64_t)40 * DAY); /* until somebody sets it right */
    ck_assert(is_there("1/worker_0.log") && is_there("2/worker_0.log"));
    ck_assert_str_eq(gone, "1: older than job_keep_days if the clock is right: stays until "
                           "tomorrow. ");
    clean_at(NOW + (int64_t)40 * DAY + 5); /* another worker of the host, and again */
    clean_at(NOW + (int64_t)40 * DAY + 7200);
    ck_assert(is_there("1/worker_0.log"));
    clean_at(NOW + 7300); /* set right: backwards */
    clean_at(NOW + 7300 + DAY);
    ck_assert(is_there("1/worker_0.log"));
    ck_assert_str_eq(gone, "");
}
END_TEST

START_TEST(clock_that_went_on_for_a_day_is_believed)
{
    make("1", 31);
    clean_at(NOW);
    ck_assert(is_there("1"));
    clean_at(NOW + 3600);
    ck_assert(is_there("1"));

    clean_at(NOW + DAY);

    ck_assert(!is_there("1"));
    ck_assert_str_eq(gone, "1: older than job_keep_days. ");
}
END_TEST

START_TEST(folder_that_cannot_be_written_is_named_before_a_job_comes)
{
    ck_ms_ok(job_folders_try(root, err));
    ck_ms_ok(job_folders_try(path_of("new"), err)); /* made */
    ck_assert(is_there("new"));
    ck_ms_fails(job_folders_try(path_of("no/where"), err), MS_E_CONFIG, "install -d");
    ck_ms_fails(job_folders_try("/proc/self", err), MS_E_CONFIG, "cannot be written");
}
END_TEST

/* Nothing that waiting mends: MS_E_CONFIG is 78, and systemd does not start it again. */
START_TEST(folder_of_another_user_is_named_with_the_command_that_gives_it)
{
    char words[300];
    if (geteuid() != 0) {
        return;
    }
    ck_assert_int_eq(chmod(root, 0755) | mkdir(path_of("theirs"), 0755), 0);
    ck_assert_int_eq(seteuid(65534), 0);
    snprintf(words, sizeof(words), "if it is meant for nobody, sudo chown nobody %s",
             path_of("theirs"));
    ck_ms_fails(job_folders_try(path_of("theirs"), err), MS_E_CONFIG, words);
    ck_ms_fails(job_folders_judge(path_of("theirs"), err), MS_E_CONFIG, words);
    snprintf(words, sizeof(words), "sudo install -d -m 700 -o nobody %s;", path_of("theirs/new"));
    ck_ms_fails(job_folders_try(path_of("theirs/new"), err), MS_E_CONFIG, words);
    ck_ms_fails(job_folders_judge(path_of("theirs/new"), err), MS_E_CONFIG, words);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chown(path_of("theirs"), 1234, 1234) | chmod(path_of("theirs"), 0700), 0);
    ck_assert_int_eq(mkdir(path_of("theirs/ours"), 0700), 0); /* as below a home */
    ck_assert_int_eq(chown(path_of("theirs/ours"), 65534, 65534), 0);
    ck_assert_int_eq(seteuid(65534), 0);
    snprintf(words, sizeof(words), "may not enter it: sudo chmod o+x %s", path_of("theirs"));
    ck_ms_fails(job_folders_try(path_of("theirs/ours"), err), MS_E_CONFIG, words);
    ck_ms_fails(job_folders_judge(path_of("theirs/ours"), err), MS_E_CONFIG, words);
    ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

/* In a mount namespace of the test's own. */
START_TEST(full_disk_is_named_before_a_job_comes)
{
    char small[300];
    snprintf(small, sizeof(small), "%s", path_of("small"));
    const char *fork_mode = getenv("CK_FORK");
    ck_assert_int_eq(mkdir(small, 0700), 0);
    if ((fork_mode != NULL && strcmp(fork_mode, "no") == 0) || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", small, "tmpfs", 0, "size=8k") != 0) {
        return; /* whoever is not root */
    }
    FILE *fill = fopen(path_of("small/fill"), "w");
    ck_assert_ptr_nonnull(fill);
    for (int i = 0; i < 16384 && fputc('x', fill) != EOF; i++) {
    }
    fclose(fill);
    ck_ms_fails(job_folders_try(small, err), MS_E_FULL, "free space there");

    unlink(path_of("small/fill"));
    ck_ms_ok(job_folders_try(small, err));
    ck_assert_int_eq(umount(small), 0);
}
END_TEST

START_TEST(folder_is_judged_before_a_start_without_being_made)
{
    ck_ms_ok(job_folders_judge(root, err));
    ck_ms_ok(job_folders_judge(path_of("new"), err));
    ck_assert(!is_there("new"));
    ck_ms_fails(job_folders_judge(path_of("no/where"), err), MS_E_CONFIG, "install -d");
    ck_ms_fails(job_folders_judge("/proc/self/status", err), MS_E_CONFIG, "is no folder: name one");
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
    int held = job_folder_hold(path_of("1"), "", aside, NULL);
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
    int first = job_folder_hold(path_of("7"), "", aside, NULL);
    int second = job_folder_hold(path_of("7"), "", aside, NULL);

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

START_TEST(checkpoints_go_with_their_folder_and_what_lies_beside_them_stays)
{
    static const char *const files[] = {"1/ckpt/a/net-100.json", "1/ckpt/a/net-100.safetensors",
                                        "1/ckpt/a/.msched-new-0123456789abcdef",
                                        "2/ckpt/net-7.json", "2/ckpt/notes.txt"};
    const struct timespec times[2] = {{0, 0}, {0, 0}};
    make("1", 400);
    make("2", 400);
    ck_assert_int_eq(mkdir(path_of("1/ckpt"), 0755) | mkdir(path_of("1/ckpt/a"), 0755), 0);
    ck_assert_int_eq(mkdir(path_of("2/ckpt"), 0755), 0);
    for (size_t i = 0; i < MS_ARRAY_SIZE(files); i++) {
        int fd = open(path_of(files[i]), O_WRONLY | O_CREAT, 0600);
        ck_assert_int_ge(fd, 0);
        close(fd);
    }
    utimensat(AT_FDCWD, path_of("1/ckpt"), times, 0);
    utimensat(AT_FDCWD, path_of("1"), times, 0);
    utimensat(AT_FDCWD, path_of("2/ckpt"), times, 0);
    utimensat(AT_FDCWD, path_of("2"), times, 0);

    clean(30, 1000);

    ck_assert(!is_there("1"));
    ck_assert(is_there("2/ckpt/notes.txt") && !is_there("2/ckpt/net-7.json"));
}
END_TEST

START_TEST(link_is_no_folder_to_hold)
{
    char link[300];
    make("1", 1);
    snprintf(link, sizeof(link), "%s", path_of("2"));
    ck_assert_int_eq(symlink(path_of("1"), link), 0);

    ck_assert_int_lt(job_folder_hold(link, "", aside, NULL), 0);
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
        int fd = job_folder_hold(path, "", aside, NULL);
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

/* ---- another job of the same number -------------------------------------------------------------
 */

static const char ours[] = "00112233445566778899aabbccddeeff";
static const char theirs[] = "ffeeddccbbaa99887766554433221100";

static void write_in(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static int hold_as(const char *job, const char *tag)
{
    struct ms_err why = {0, ""};
    aside[0] = '\0';
    int fd = job_folder_hold(path_of(job), tag, aside, &why);
    ck_assert_msg(fd >= 0, "%s", why.text);
    return fd;
}

START_TEST(what_another_job_of_the_number_left_is_put_aside)
{
    close(hold_as("1", theirs));
    write_in("1/weights.safetensors", "theirs");

    close(hold_as("1", ours));

    ck_assert_str_eq(aside, path_of("1.1"));
    ck_assert(!is_there("1/weights.safetensors"));
    ck_assert(is_there("1.1/weights.safetensors"));
    write_in("1/weights.safetensors", "ours");
    close(hold_as("1", ours)); /* a second rank, or the job placed again */
    ck_assert_str_eq(aside, "");
    ck_assert(is_there("1/weights.safetensors"));
    close(hold_as("1", theirs));
    ck_assert_str_eq(aside, path_of("1.2"));
}
END_TEST

START_TEST(a_folder_of_an_older_release_is_put_aside_and_an_empty_one_taken)
{
    make("1", 1);
    ck_assert_int_eq(mkdir(path_of("2"), 0755), 0);

    close(hold_as("1", ours));
    ck_assert(is_there("1.1/worker_0.log"));
    close(hold_as("2", ours));

    ck_assert_str_eq(aside, "");
    ck_assert(!is_there("2.1"));
}
END_TEST

START_TEST(results_are_read_only_as_those_of_their_own_job)
{
    close(hold_as("1", theirs));
    make("2", 1);

    ck_assert(job_folder_is_of(path_of("1"), theirs));
    ck_assert(!job_folder_is_of(path_of("1"), ours));
    ck_assert(job_folder_is_of(path_of("1"), ""));   /* an older scheduler asks */
    ck_assert(job_folder_is_of(path_of("2"), ours)); /* an older worker wrote */
    write_in("1/.job_tag", "0011");                  /* torn */
    ck_assert(!job_folder_is_of(path_of("1"), ours));
}
END_TEST

START_TEST(a_folder_that_another_job_of_the_number_uses_is_not_taken_from_it)
{
    int held = hold_as("1", theirs);

    ck_ms_fails(job_folder_hold(path_of("1"), ours, aside, err), MS_E_EXISTS, "another cluster");

    ck_assert(is_there("1/.job_tag"));
    ck_assert(!is_there("1.1"));
    close(held);
    close(hold_as("1", ours));
}
END_TEST

START_TEST(ranks_that_come_together_share_one_folder)
{
    enum { RANKS = 8, TIMES = 20 };
    for (int round = 0; round < TIMES; round++) {
        const char *tag = round % 2 == 0 ? ours : theirs;
        pid_t ranks[RANKS];
        for (int i = 0; i < RANKS; i++) {
            ranks[i] = fork();
            ck_assert_int_ge(ranks[i], 0);
            if (ranks[i] == 0) {
                int fd = job_folder_hold(path_of("1"), tag, aside, NULL);
                _exit(fd >= 0 && job_folder_is_of(path_of("1"), tag) ? 0 : 1);
            }
        }
        for (int i = 0; i < RANKS; i++) {
            int status = -1;
            ck_assert_int_eq(waitpid(ranks[i], &status, 0), ranks[i]);
            ck_assert_int_eq(status, 0);
        }
    }
    char last[32];
    snprintf(last, sizeof(last), "1.%d", TIMES - 1);
    ck_assert(is_there(last));
    snprintf(last, sizeof(last), "1.%d", TIMES);
    ck_assert(!is_there(last)); /* one a round, however many ranks came */
}
END_TEST

START_TEST(what_was_put_aside_goes_when_it_is_old)
{
    make("1.1", 31);
    make("1.2", 29);
    make("1.02", 31);

    clean(30, 1000);

    ck_assert(!is_there("1.1"));
    ck_assert(is_there("1.2"));
    ck_assert(is_there("1.02")); /* not ours */
    ck_assert_str_eq(gone, "1: older than job_keep_days. ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_folders");
    TCase *t = tcase_create("job_folders");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, old_folders_go_and_young_ones_stay);
    tcase_add_test(t, newest_of_too_many_stay);
    tcase_add_test(t, clock_that_jumps_takes_nothing_away);
    tcase_add_test(t, clock_that_went_on_for_a_day_is_believed);
    tcase_add_test(t, full_disk_is_named_before_a_job_comes);
    tcase_add_test(t, folder_is_judged_before_a_start_without_being_made);
    tcase_add_test(t, folder_of_another_user_is_named_with_the_command_that_gives_it);
    tcase_add_test(t, folder_that_cannot_be_written_is_named_before_a_job_comes);
    tcase_add_test(t, zero_switches_a_rule_off);
    tcase_add_test(t, running_job_keeps_its_folder_whatever_its_age);
    tcase_add_test(t, two_ranks_of_a_host_hold_one_folder);
    tcase_add_test(t, a_file_that_is_written_keeps_a_folder_young);
    tcase_add_test(t, what_is_no_jobs_folder_stays);
    tcase_add_test(t, checkpoints_go_with_their_folder_and_what_lies_beside_them_stays);
    tcase_add_test(t, link_is_no_folder_to_hold);
    tcase_add_test(t, folder_that_is_held_is_there_whoever_cleans_meanwhile);
    tcase_add_test(t, what_another_job_of_the_number_left_is_put_aside);
    tcase_add_test(t, a_folder_of_an_older_release_is_put_aside_and_an_empty_one_taken);
    tcase_add_test(t, results_are_read_only_as_those_of_their_own_job);
    tcase_add_test(t, a_folder_that_another_job_of_the_number_uses_is_not_taken_from_it);
    tcase_add_test(t, ranks_that_come_together_share_one_folder);
    tcase_add_test(t, what_was_put_aside_goes_when_it_is_old);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
