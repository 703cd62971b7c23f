/* test_store_full.c - a full disk: the reserve, room that is made, and what is said of it */
#include "daemon/store/files.h"
#include "tests/unit/store_fixture.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(a_full_disk_is_announced_while_the_reserve_still_takes_the_commit)
{
    static const int whys[] = {ENOSPC, EDQUOT};
    full_errno = whys[_i];
    uint64_t id = 0;
    uint64_t announced = 0;
    int rc = 0;
    disk_left = 256 << 10;
    while (rc >= 0) {
        struct sched_job_row job = make_job(++id);
        rc = put(&job);
        announced = rc == 1 && announced == 0 ? id : announced;
        ck_assert_uint_lt(id, 100000);
    }

    ck_assert_int_eq(rc, MS_E_FULL);
    ck_assert_uint_gt(announced, 1);
    /* what the reserve promises: a thousand rows between the announcement and the end */
    ck_assert_uint_gt(id - announced, 1000);
    reopen();
    ck_assert_uint_eq(loaded.jobs_n, id - 1); /* all but the one that was refused */
}
END_TEST

/* Commits of which each finds the disk full, as long as an end that is asked for would be taken.
 * Returns the number of the last one. */
static uint64_t use_up_the_reserve(void)
{
    uint64_t id = 0;
    disk_left = 100;
    while (store_has_room(store)) {
        const uint64_t held = store_reserve_held(path);
        struct sched_job_row job = make_job(++id);
        ck_assert_int_ge(put(&job), id == 1 ? 1 : 0);
        ck_assert_uint_ge(store_reserve_held(path), held - MS_STORE_PIECE);
        disk_left = 100; /* and somebody takes what it left */
        ck_assert_uint_lt(id, 10000);
    }
    return id;
}

START_TEST(who_fills_the_disk_gets_no_more_of_the_reserve_than_a_write_needed)
{
    struct sched_job_row job = make_job(1);
    disk_left = 100;
    ck_assert_int_eq(put(&job), 1);
    ck_assert_uint_eq(store_reserve_held(path), MS_STORE_RESERVE - MS_STORE_PIECE);

    const uint64_t jobs = use_up_the_reserve();

    disk_left = INT64_MAX;
    ck_assert_int_eq(store_idle(store), 0);
    ck_assert_uint_ge(store_reserve_held(path), MS_STORE_RESERVE);
    reopen();
    ck_assert_uint_eq(loaded.jobs_n, jobs);
}
END_TEST

/* The file system itself shows free space: that of the machine that runs this. */
START_TEST(what_no_file_can_have_is_no_room_for_a_cancel)
{
    static const struct {
        int errno_of_room;
        const char *words;
    } cases[] = {{EDQUOT, "a quota on the disk of the database is reached (new work needs "},
                 {ENOSPC, "the disk of the database is full, though it shows free space"}};
    struct ms_err why = {0, ""};
    full_errno = cases[_i].errno_of_room;
    use_up_the_reserve();

    ck_assert_int_eq(store_has_room(store), 0);

    const uint64_t held = store_reserve_held(path);
    char left[64];
    snprintf(left, sizeof(left), ": %llu KiB are left for the last",
             (unsigned long long)held / 1024);
    ck_assert_uint_eq(held, MS_STORE_LAST - MS_STORE_PIECE);
    ck_assert_int_eq(store_refusal(store, &why), MS_E_FULL);
    ck_assert_msg(strstr(why.text, cases[_i].words) != NULL, "%s", why.text);
    ck_assert_msg(strstr(why.text, left) != NULL, "%s", why.text);
    ck_assert_msg(strstr(why.text, "KiB free") == NULL, "%s", why.text);
    disk_left = MS_STORE_LAST; /* freed a moment ago */
    ck_assert_int_eq(store_has_room(store), 1);
    ck_assert_uint_eq(store_reserve_held(path), MS_STORE_LAST);
}
END_TEST

START_TEST(the_end_of_the_reserve_is_told_of_what_was_full)
{
    static const struct {
        int errno_of_room;
        const char *words;
    } cases[] = {{EDQUOT, "quota"}, {ENOSPC, "disk of the database is full"}};
    struct ms_err why = {0, ""};
    struct sched_job_row job = make_job(1);
    const struct sched_effect effect = {.kind = SCHED_DO_PUT_JOB, .job = &job};
    full_errno = cases[_i].errno_of_room;
    disk_left = 100;
    int rc = 0;
    while (rc >= 0) {
        job.id++;
        rc = store_commit(store, &effect, 1, &why);
        disk_left = 100;
        ck_assert_uint_lt(job.id, 10000);
    }

    ck_assert_int_eq(rc, MS_E_FULL);
    ck_assert_msg(strstr(why.text, cases[_i].words) != NULL, "%s", why.text);
    ck_assert_msg(strstr(why.text, "KiB free") == NULL, "%s", why.text);
}
END_TEST

/* The row again, as the report of a rank changes it. */
static int put_change(struct sched_job_row *job)
{
    job->steps++;
    return put(job);
}

START_TEST(rows_that_fit_where_they_were_take_nothing_of_the_reserve)
{
    struct sched_job_row job = make_job(1);
    ck_assert_int_eq(put_change(&job), 0);
    ck_assert_int_eq(store_idle(store), 0);
    disk_left = 64 << 10;

    for (int i = 0; i < 2000; i++) { /* a log of 30 MiB */
        ck_assert_int_eq(put_change(&job), 0);
    }

    ck_assert_uint_eq(store_reserve_held(path), MS_STORE_RESERVE);
    reopen();
    ck_assert_uint_eq(loaded.jobs[0].steps, job.steps);
}
END_TEST

static off_t size_of_log(void)
{
    char log[160];
    struct stat st;
    snprintf(log, sizeof(log), "%s-wal", path);
    return stat(log, &st) == 0 ? st.st_size : 0;
}

/* What is cut off the log is gone: somebody takes it. */
START_TEST(a_look_at_a_full_disk_leaves_the_log_its_room)
{
    struct sched_job_row job = make_job(1);
    ck_assert_int_eq(put_change(&job), 0);
    ck_assert_int_eq(store_idle(store), 0);
    disk_left = 100;
    ck_assert_int_eq(put_change(&job), 1);
    ck_assert_uint_eq(store_reserve_held(path), MS_STORE_RESERVE - MS_STORE_PIECE);

    for (int i = 0; i < 100; i++) {
        disk_left = 100;
        ck_assert_int_eq(store_idle(store), 1);
        ck_assert_int_eq(put_change(&job), 1);
    }

    ck_assert_uint_eq(store_reserve_held(path), MS_STORE_RESERVE - MS_STORE_PIECE);
    disk_left = INT64_MAX;
    ck_assert_int_eq(store_idle(store), 0);
    ck_assert_uint_eq(size_of_log(), 0);
}
END_TEST

/* Three changes of a row, then a kill -9; whatever was given back meanwhile is somebody's. */
static void live_on_a_full_disk(struct sched_job_row *job)
{
    pid_t child = fork();
    int status = -1;
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        disk_left = 100;
        ck_ms_ok(store_open(path, &store, err));
        load();
        for (int i = 0; i < 3; i++) {
            disk_left = 100;
            ck_assert_int_eq(put_change(job), 1);
        }
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

START_TEST(a_start_on_a_full_disk_takes_one_piece_of_the_reserve)
{
    struct sched_job_row job = make_job(1);
    ck_assert_int_eq(put_change(&job), 0);
    ck_assert_int_eq(store_idle(store), 0);
    store_close(store);
    store = NULL;

    for (int i = 0; i < 6; i++) {
        const uint64_t held = store_reserve_held(path);
        live_on_a_full_disk(&job);
        ck_assert_uint_ge(store_reserve_held(path), held - MS_STORE_PIECE);
    }
}
END_TEST

START_TEST(a_large_log_goes_where_the_disk_is_full_of_it)
{
    struct sched_job_row job = make_job(1);
    disk_left = 1 << 20;
    for (int i = 0; i < 2000 && store_reserve_held(path) >= MS_STORE_RESERVE; i++) {
        job.id++; /* the database wants to grow, and cannot */
        ck_assert_int_ge(put(&job), 0);
    }
    ck_assert_uint_lt(store_reserve_held(path), MS_STORE_RESERVE);
    ck_assert_uint_gt(size_of_log(), MS_STORE_PIECE);

    ck_assert_int_eq(store_idle(store), 1);

    ck_assert_uint_eq(size_of_log(), 0);
}
END_TEST

/* As when idle: what the disk holds is unknown, and a second try would believe it. */
START_TEST(a_sync_that_fails_in_making_room_ends_the_commits)
{
    struct sched_job_row job = make_job(1);
    int complete = 0;
    int failed = 0;
    for (int64_t nth = 0; !complete; nth++) {
        disk_left = INT64_MAX;
        ck_assert_int_eq(put_change(&job), 0);
        ck_assert_int_eq(store_idle(store), 0);
        ck_assert_int_eq(put_change(&job), 0); /* something to fold in, and its room */
        disk_left = 100;
        calls_left = nth;
        call_failed = 0;
        const int rc = put_change(&job);
        complete = !call_failed;
        failed += call_failed;
        calls_left = INT64_MAX;
        ck_assert_int_eq(rc, complete ? 0 : MS_E_IO);
        disk_left = INT64_MAX;
        reopen();
        ck_assert_uint_eq(loaded.jobs_n, 1);
    }
    ck_assert_int_gt(failed, 5);
    ck_assert_uint_eq(store_reserve_held(path), MS_STORE_RESERVE);
}
END_TEST

/* The same on a full disk, where a commit folds the log in and begins it anew over the old one. */
START_TEST(a_power_cut_while_room_is_made_loses_nothing_that_was_acknowledged)
{
    enum { PUTS = 12, LOG_ROOM = 64 << 10 };
    struct sched_job_row job = make_job(1);
    int complete = 0;
    for (int64_t nth = 0; !complete; nth++) {
        int rc = 0;
        uint64_t acknowledged = job.steps;
        disk_left = INT64_MAX;
        ck_assert_int_eq(put_change(&job), 0);
        acknowledged++;
        ck_assert_int_eq(store_idle(store), 0);
        disk_left = LOG_ROOM;
        keeps_undos = 1;
        calls_left = nth;
        call_failed = 0;
        for (int i = 0; i < PUTS && rc == 0; i++) {
            rc = put_change(&job);
            acknowledged += rc == 0;
        }
        complete = !call_failed;
        ck_assert_int_eq(rc, complete ? 0 : MS_E_IO);
        store_close(store);
        store = NULL;
        disk_left = calls_left = INT64_MAX;
        keeps_undos = 0;
        cut_power((unsigned)(nth * 1000 + _i), _i == 0 ? 100 : 50);

        ck_ms_ok(store_open(path, &store, err));
        load();

        ck_assert_uint_ge(loaded.jobs[0].steps, acknowledged);
        ck_assert_uint_le(loaded.jobs[0].steps, job.steps);
        ck_assert_uint_eq(loaded.jobs_n, 1);
        job.steps = loaded.jobs[0].steps;
    }
}
END_TEST

START_TEST(a_mark_of_an_attempt_that_was_rolled_back_does_not_count)
{
    struct sched_job_row job = make_job(1);
    struct ms_err err = {0, ""};
    char mark[2][160];
    ck_assert_int_eq(put(&job), 0);
    reopen();
    for (int i = 0; i < 2; i++) {
        snprintf(mark[i], sizeof(mark[i]), "%s.mark.%d", path, i + 1);
    }
    const int old = access(mark[0], F_OK) == 0 ? 0 : 1;
    ck_assert_int_ne(access(mark[!old], F_OK), 0);
    memcpy(swapped, mark[!old], sizeof(swapped));
    disk_left = 100; /* for the mark, not for the log of writes */

    job = make_job(2);
    ck_assert_int_eq(put(&job), 1); /* the second attempt, which has the reserve's room, no mark */

    ck_assert_int_eq(access(mark[old], F_OK), 0);
    ck_assert_int_eq(store_take_warning(store, &err), 1);
    ck_assert_msg(strstr(err.text, mark[!old]) != NULL, "%s", err.text);
    disk_left = INT64_MAX;
    swapped[0] = '\0';
    reopen();
    ck_assert_int_eq(store_is_copy(store), 0);
    ck_assert_uint_eq(loaded.jobs_n, 2);
}
END_TEST

START_TEST(a_file_above_the_limit_of_its_process_is_called_that)
{
    struct ms_err err = {0, ""};
    struct sched_job_row job = make_job(1);
    const struct sched_effect effect = {.kind = SCHED_DO_PUT_JOB, .job = &job};
    full_errno = EFBIG;
    disk_left = 0;

    ck_assert_int_eq(store_commit(store, &effect, 1, &err), MS_E_IO);

    ck_assert_msg(strstr(err.text, "File too large") != NULL, "%s", err.text);
}
END_TEST

START_TEST(the_reserve_is_given_up_once_and_made_again_when_idle)
{
    char reserve[160];
    snprintf(reserve, sizeof(reserve), "%s.reserve", path);
    struct stat st;
    ck_assert_int_eq(stat(reserve, &st), 0);
    ck_assert_int_ge(st.st_blocks * 512, MS_STORE_RESERVE);
    store_close(store);
    store = NULL;
    unlink(reserve);
    disk_left = MS_STORE_RESERVE - 1;

    ck_ms_ok(store_open(path, &store, err)); /* opens without a reserve */

    ck_assert_int_eq(access(reserve, F_OK), -1);
    ck_assert_int_eq(store_idle(store), 1);
    struct sched_job_row job = make_job(1);
    ck_assert_int_eq(put(&job), 1); /* durable, and the caller must refuse new work */
    disk_left = INT64_MAX;
    ck_assert_int_eq(store_idle(store), 0);
    ck_assert_int_eq(access(reserve, F_OK), 0);
    ck_assert_int_eq(put(&job), 0);
}
END_TEST

/* Opens without a reserve, because of what the caller did; what it says then. */
static const char *refusal_without_reserve(int want, const char *words)
{
    static struct ms_err why;
    ck_ms_ok(store_open(path, &store, err));
    ck_assert_int_eq(store_refusal(store, &why), want);
    ck_assert_msg(strstr(why.text, words) != NULL, "%s", why.text);
    ck_assert_ptr_nonnull(strstr(why.text, "state.db.reserve: "));
    ck_assert_int_eq(store_idle(store), 1);
    ck_assert_int_eq(store_refusal(store, &why), want);
    return why.text;
}

START_TEST(only_a_full_disk_is_called_one)
{
    static const struct {
        int errno_of_room, want;
        const char *words;
    } cases[] = {{ENOSPC, MS_E_FULL, "No space left"},
                 {EDQUOT, MS_E_FULL, "a quota on the disk"},
                 {EFBIG, MS_E_IO, "LimitFSIZE="},
                 {EIO, MS_E_IO, "Input/output error"}};
    char reserve[160];
    snprintf(reserve, sizeof(reserve), "%s.reserve", path);
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        ck_assert_int_eq(store_refusal(store, NULL), 0);
        store_close(store);
        store = NULL;
        unlink(reserve);
        disk_left = MS_STORE_RESERVE - 1;
        full_errno = cases[i].errno_of_room;

        const char *text = refusal_without_reserve(cases[i].want, cases[i].words);

        ck_assert_msg(strstr(text, cases[i].words) != NULL, "%s", text);
        ck_assert_int_eq(strstr(text, "is full") != NULL, cases[i].errno_of_room == ENOSPC);
        disk_left = INT64_MAX;
        ck_assert_int_eq(store_idle(store), 0);
    }
}
END_TEST

START_TEST(a_link_in_the_reserves_place_is_not_followed)
{
    struct stat st;
    char reserve[160];
    char other[160];
    snprintf(reserve, sizeof(reserve), "%s.reserve", path);
    snprintf(other, sizeof(other), "%s/other", dir);
    store_close(store);
    store = NULL;
    unlink(reserve);
    FILE *file = fopen(other, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("mine", file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(symlink(other, reserve), 0);

    refusal_without_reserve(MS_E_IO, "symbolic link");

    ck_assert_int_eq(stat(other, &st), 0);
    ck_assert_int_eq(st.st_size, 4);
}
END_TEST

START_TEST(a_folder_in_the_reserves_place_is_named_until_it_is_gone)
{
    char reserve[160];
    snprintf(reserve, sizeof(reserve), "%s.reserve", path);
    store_close(store);
    store = NULL;
    unlink(reserve);
    ck_assert_int_eq(mkdir(reserve, 0700), 0);

    const char *text = refusal_without_reserve(MS_E_IO, "Is a directory");

    ck_assert_int_eq(store_has_room(store), 1); /* the disk has */
    ck_assert_ptr_null(strstr(text, "is full"));
    ck_assert_int_eq(rmdir(reserve), 0);
    ck_assert_int_eq(store_idle(store), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_full");
    TCase *tcase = tcase_create("store_full");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_mark_of_an_attempt_that_was_rolled_back_does_not_count);
    tcase_add_test(tcase, a_link_in_the_reserves_place_is_not_followed);
    tcase_add_test(tcase, a_file_above_the_limit_of_its_process_is_called_that);
    tcase_add_test(tcase, only_a_full_disk_is_called_one);
    tcase_add_test(tcase, a_folder_in_the_reserves_place_is_named_until_it_is_gone);
    tcase_add_test(tcase, the_reserve_is_given_up_once_and_made_again_when_idle);
    tcase_add_loop_test(tcase, a_full_disk_is_announced_while_the_reserve_still_takes_the_commit, 0,
                        2);
    tcase_add_test(tcase, who_fills_the_disk_gets_no_more_of_the_reserve_than_a_write_needed);
    tcase_add_loop_test(tcase, what_no_file_can_have_is_no_room_for_a_cancel, 0, 2);
    tcase_add_loop_test(tcase, the_end_of_the_reserve_is_told_of_what_was_full, 0, 2);
    tcase_add_test(tcase, rows_that_fit_where_they_were_take_nothing_of_the_reserve);
    tcase_add_test(tcase, a_look_at_a_full_disk_leaves_the_log_its_room);
    tcase_add_test(tcase, a_start_on_a_full_disk_takes_one_piece_of_the_reserve);
    tcase_add_test(tcase, a_large_log_goes_where_the_disk_is_full_of_it);
    tcase_add_loop_test(tcase, a_power_cut_while_room_is_made_loses_nothing_that_was_acknowledged,
                        0, 8);
    tcase_add_test(tcase, a_sync_that_fails_in_making_room_ends_the_commits);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
