/* test_store_home.c - a database that was copied, moved, renamed or put back
 *
 * A scheduler that is killed is a child that ends without closing its store. */
#include "daemon/store/store.h"
#include "tests/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dir;
static char path[300], moved[300];
static struct store *store;
static struct sched *sched;

static void shut(void)
{
    store_close(store);
    store = NULL;
    sched_destroy(sched);
    sched = NULL;
}

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/state.db", dir);
    snprintf(moved, sizeof(moved), "%s/moved.db", dir);
}

static void teardown(void)
{
    shut();
    test_dir_remove(dir);
}

static int start(const char *database, int accepts_loss, struct ms_err *err)
{
    struct sched_config config = {.mode = SCHED_STANDING};
    struct store_setup how = {.path = database, .accepts_loss = accepts_loss};
    sched = sched_create(&config, (struct sched_time){.mono_ms = 1});
    int rc = store_open_with(&how, &store, err);
    rc = rc == 0 ? store_load(store, sched, err) : rc;
    if (rc < 0) {
        shut();
    }
    return rc;
}

/* One transaction that was acknowledged. */
static void put(uint64_t tick)
{
    struct sched_effect effects[] = {
        {.kind = SCHED_DO_PUT_META, .meta_key = "next_job", .meta_value = tick + 1},
        {.kind = SCHED_DO_PUT_META, .meta_key = "ticks", .meta_value = tick},
    };
    ck_assert_int_eq(store_commit(store, effects, 2, NULL), 0);
}

/* A scheduler's life in order. */
static void live(const char *database, uint64_t from, uint64_t to)
{
    ck_ms_ok(start(database, 0, err));
    for (uint64_t tick = from; tick <= to; tick++) {
        put(tick);
    }
    shut();
}

/* ... or with a kill -9 at its end. */
static void live_until_killed(const char *database, uint64_t from, uint64_t to)
{
    int status = -1;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        ck_ms_ok(start(database, 0, err));
        for (uint64_t tick = from; tick <= to; tick++) {
            put(tick);
        }
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static const char *beside(const char *database, const char *suffix)
{
    static char name[2][320];
    static int which;
    which = !which;
    snprintf(name[which], sizeof(name[0]), "%s%s", database, suffix);
    return name[which];
}

static off_t size_of(const char *name)
{
    struct stat st;
    return stat(name, &st) == 0 ? st.st_size : -1;
}

/* cp onto a file that is there: it keeps its inode and its time of birth. */
static void copy(const char *from, const char *to)
{
    static char bytes[1 << 20];
    int in = open(from, O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert(in >= 0 && out >= 0);
    ssize_t n;
    while ((n = read(in, bytes, sizeof(bytes))) > 0) {
        ck_assert_int_eq(write(out, bytes, (size_t)n), n);
    }
    close(in);
    close(out);
}

/* Every file of the database but its reserve, from one folder into another. */
static void copy_all(const char *from, const char *to)
{
    DIR *stream = opendir(from);
    ck_assert_ptr_nonnull(stream);
    const struct dirent *entry;
    while ((entry = readdir(stream)) != NULL) {
        char a[600];
        char b[600];
        snprintf(a, sizeof(a), "%s/%s", from, entry->d_name);
        snprintf(b, sizeof(b), "%s/%s", to, entry->d_name);
        if (strncmp(entry->d_name, "state.db", 8) == 0 && strstr(entry->d_name, "res") == NULL) {
            copy(a, b);
        }
    }
    closedir(stream);
}

START_TEST(a_restart_and_a_kill_make_no_copy)
{
    live(path, 1, 3);
    live_until_killed(path, 4, 6);

    ck_ms_ok(start(path, 0, err));

    ck_assert_int_eq(store_is_copy(store), 0);
    ck_assert_ptr_null(store_note(store, 0));
    shut(); /* nothing was written */
    ck_ms_ok(start(path, 0, err));
    ck_assert_int_eq(store_is_copy(store), 0);
}
END_TEST

/* By hand, with sudo: the service's user comes after it. */
START_TEST(a_start_by_root_leaves_all_beside_it_to_the_owner_of_the_database)
{
    enum { NOBODY = 65534 };
    static const char *const suffixes[] = {".lock", ".reserve", ".mark.1", ".mark.2"};
    int status = -1;
    int seen = 0;
    if (geteuid() != 0) {
        return;
    }
    live(path, 1, 1);
    ck_assert_int_eq(chown(dir, NOBODY, NOBODY), 0);
    ck_assert_int_eq(chown(path, NOBODY, NOBODY), 0);
    ck_assert_int_eq(unlink(beside(path, ".lock")), 0);
    ck_assert_int_eq(unlink(beside(path, ".reserve")), 0);
    ck_ms_ok(start(path, 1, err));
    put(2);
    shut();
    for (size_t i = 0; i < MS_ARRAY_SIZE(suffixes); i++) {
        struct stat st;
        if (stat(beside(path, suffixes[i]), &st) == 0) {
            ck_assert_msg(st.st_uid == NOBODY, "%s is of %u", suffixes[i], st.st_uid);
            seen++;
        }
    }
    ck_assert_int_eq(seen, 3); /* one of the marks */
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        ck_assert_int_eq(seteuid(NOBODY), 0);
        ck_ms_ok(start(path, 0, err));
        ck_assert_int_eq(store_is_copy(store), 0);
        put(3);
        shut();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(a_folder_that_is_copied_back_over_itself_is_a_copy)
{
    char backup[310];
    struct stat before;
    struct stat after;
    snprintf(backup, sizeof(backup), "%s/backup", dir);
    ck_assert_int_eq(mkdir(backup, 0700), 0);
    live(path, 1, 1);
    copy_all(dir, backup);
    live(path, 2, 3);
    ck_assert_int_eq(stat(path, &before), 0);

    copy_all(backup, dir); /* the witness comes back, too */

    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    ck_ms_ok(start(path, 0, err));
    ck_assert_int_eq(store_is_copy(store), 1);
    ck_assert_ptr_nonnull(strstr(store_note(store, 0), "was copied, moved or put back"));
    put(1000);
    shut();
    ck_ms_ok(start(path, 0, err)); /* and from then on it is where it is */
    ck_assert_int_eq(store_is_copy(store), 0);
}
END_TEST

START_TEST(a_folder_that_moved_as_a_whole_is_a_copy)
{
    char from[320];
    char to[320];
    snprintf(from, sizeof(from), "%s/here", dir);
    snprintf(to, sizeof(to), "%s/there", dir);
    ck_assert_int_eq(mkdir(from, 0700), 0);
    snprintf(path, sizeof(path), "%s/state.db", from);
    snprintf(moved, sizeof(moved), "%s/state.db", to);
    live(path, 1, 1);

    ck_assert_int_eq(rename(from, to), 0); /* inodes, births and the mark's time stay */

    ck_ms_ok(start(moved, 0, err));
    ck_assert_int_eq(store_is_copy(store), 1);
}
END_TEST

START_TEST(a_database_alone_that_is_put_back_is_a_copy)
{
    live(path, 1, 1);
    copy(path, moved);
    live(path, 2, 2);
    ck_assert_int_eq(unlink(beside(path, ".lock")), 0); /* no witness speaks */
    copy(moved, path);

    ck_ms_ok(start(path, 0, err));

    ck_assert_int_eq(store_is_copy(store), 1);
}
END_TEST

START_TEST(a_copy_of_the_same_start_that_is_written_over_the_file_is_a_copy)
{
    live(path, 1, 1);
    ck_ms_ok(start(path, 0, err));
    put(2);
    copy(path, moved); /* while it is served: all but the mark, which no copy has */
    copy(beside(path, "-wal"), beside(moved, "-wal"));
    copy(beside(path, ".lock"), beside(moved, ".lock"));
    put(3);
    shut(); /* an end in order draws a mark, too */
    copy(moved, path);
    copy(beside(moved, "-wal"), beside(path, "-wal"));
    copy(beside(moved, ".lock"), beside(path, ".lock"));

    ck_ms_ok(start(path, 0, err));

    ck_assert_int_eq(store_is_copy(store), 1);
}
END_TEST

START_TEST(a_copy_whose_witness_was_taken_away_is_a_copy)
{
    ck_ms_ok(start(path, 0, err));
    put(1);
    shut();
    live_until_killed(path, 2, 2);
    copy(path, moved);
    copy(beside(path, "-wal"), beside(moved, "-wal"));
    copy(moved, path);
    copy(beside(moved, "-wal"), beside(path, "-wal"));
    ck_assert_int_eq(unlink(beside(path, ".lock")), 0); /* "a stale lock" */

    ck_ms_ok(start(path, 0, err));

    ck_assert_int_eq(store_is_copy(store), 1);
    shut();
    live_until_killed(path, 3, 3);
    ck_assert_int_eq(unlink(beside(path, ".lock")), 0);
    ck_assert_int_eq(unlink(beside(path, "-wal")), 0); /* nor is it believed without its log */
    ck_ms_fails(start(path, 0, err), MS_E_CONFIG, "without its log of writes");
}
END_TEST

START_TEST(a_database_that_is_renamed_without_its_log_of_writes_is_refused)
{
    live_until_killed(path, 1, 3);
    ck_assert_int_gt(size_of(beside(path, "-wal")), 0);
    ck_assert_int_eq(rename(path, moved), 0);

    for (int again = 0; again < 3; again++) { /* what a refused start leaves changes nothing */
        char odd[320];
        snprintf(odd, sizeof(odd), "%s%s", again == 2 ? "/" : "", moved); /* "//tmp/...", too */
        ck_ms_fails(start(odd, 0, err), MS_E_CONFIG, "without its log of writes");
        ck_assert_int_eq(size_of(beside(moved, "-wal")), -1);
    }

    ck_assert_int_eq(rename(beside(path, "-wal"), beside(moved, "-wal")), 0);
    ck_ms_ok(start(moved, 0, err));
    ck_assert_int_eq(store_is_copy(store), 1); /* whole, and not where it was */
    put(4);
    shut();
    ck_assert_int_eq(rename(moved, path), 0); /* after an end in order it has no log */
    ck_assert_int_eq(unlink(beside(path, ".lock")), 0);
    ck_ms_ok(start(path, 0, err));
    ck_assert_int_eq(store_is_copy(store), 1);
}
END_TEST

/* As the start script of a folder says it: "state.db", "run/state.db". */
START_TEST(a_relative_path_is_judged_as_the_whole_one)
{
    static const char *const names[] = {"carried.db", "./carried.db", "x/../carried.db"};
    char here[300];
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    live_until_killed(path, 1, 3);
    snprintf(moved, sizeof(moved), "%s/carried.db", dir);
    copy(path, moved);
    ck_assert_int_eq(chdir(dir), 0);
    ck_assert_int_eq(mkdir("x", 0700), 0);

    for (size_t i = 0; i < MS_ARRAY_SIZE(names); i++) {
        ck_ms_fails(start(names[i], 0, err), MS_E_CONFIG, "without its log of writes");
        ck_assert_int_eq(size_of(beside(moved, "-wal")), -1);
    }

    live("state.db", 4, 4); /* and the same file is no copy by either name */
    ck_ms_ok(start(path, 0, err));
    ck_assert_int_eq(store_is_copy(store), 0);
    ck_assert_int_eq(chdir(here), 0);
}
END_TEST

START_TEST(the_loss_of_a_log_of_writes_can_be_accepted)
{
    live_until_killed(path, 1, 3);
    ck_assert_int_eq(rename(path, moved), 0);

    ck_ms_ok(start(moved, 1, err));

    ck_assert_int_eq(store_is_copy(store), 1);
}
END_TEST

/* Numbers of a copy go on by the clock: one that is wrong would give them again. */
START_TEST(a_clock_that_is_behind_gives_a_copy_no_numbers)
{
    enum { HOUR_MS = 3600000 };
    const int64_t at_ms = 1700000000000; /* 2023-11-14 */
    struct sched_event_row row = {.seq = 1,
                                  .at_ms = at_ms,
                                  .kind = "scheduler.started",
                                  .node = "",
                                  .principal = "",
                                  .text = "test",
                                  .facts = ""};
    struct sched_effect effect = {.kind = SCHED_DO_PUT_EVENT, .event = &row};
    ck_ms_ok(start(path, 0, err));
    ck_assert_int_eq(store_commit(store, &effect, 1, NULL), 0);
    shut();
    ck_assert_int_eq(rename(path, moved), 0);

    for (int accepts_loss = 0; accepts_loss < 2; accepts_loss++) {
        ck_ms_ok(start(moved, accepts_loss, err));
        ck_ms_fails(store_judge_clock(store, 72000, err), MS_E_UNAVAILABLE,
                    "says 1970-01-01 00:01:12 UTC");
        ck_ms_fails(store_judge_clock(store, 1577836799999, err), MS_E_UNAVAILABLE, "timedatectl");
        ck_ms_ok(store_judge_clock(store, at_ms - HOUR_MS, err));
        ck_ms_ok(store_judge_clock(store, at_ms, err));
        if (accepts_loss) { /* the operator's word: that one was wrong */
            ck_ms_ok(store_judge_clock(store, 1577836800000, err));
        } else {
            ck_ms_fails(store_judge_clock(store, 1577836800000, err), MS_E_UNAVAILABLE,
                        "holds what happened on 2023-11-14 22:13:20 UTC");
            ck_ms_fails(store_judge_clock(store, at_ms - (int64_t)25 * HOUR_MS, err),
                        MS_E_UNAVAILABLE, "start once with --accept-loss");
        }
        shut();
    }
}
END_TEST

START_TEST(a_start_that_ends_between_its_mark_and_its_commit_makes_no_copy)
{
    live(path, 1, 1);
    live(path, 2, 2);
    const char *here = access(beside(path, ".mark.1"), F_OK) == 0 ? ".mark.1" : ".mark.2";
    const char *next = strcmp(here, ".mark.1") == 0 ? ".mark.2" : ".mark.1";
    ck_assert_int_eq(access(beside(path, next), F_OK), -1);
    copy(beside(path, here), beside(path, next));

    ck_ms_ok(start(path, 0, err));
    ck_assert_int_eq(store_is_copy(store), 0);
    put(3);
    shut();

    ck_ms_ok(start(path, 0, err));
    ck_assert_int_eq(store_is_copy(store), 0);
}
END_TEST

/* Which mark is not there: the one that is made next. */
static const char *next_mark(const char *database)
{
    return access(beside(database, ".mark.1"), F_OK) == 0 ? ".mark.2" : ".mark.1";
}

START_TEST(a_mark_that_cannot_be_made_is_said_once_until_it_can)
{
    struct ms_err what = {0, ""};
    char mark[320];
    live(path, 1, 1);
    snprintf(mark, sizeof(mark), "%s", beside(path, next_mark(path)));
    ck_assert_int_eq(mkdir(mark, 0700), 0);
    ck_ms_ok(start(path, 0, err));
    ck_assert_int_eq(store_take_warning(store, &what), 0);

    put(2);

    ck_assert_int_eq(store_take_warning(store, &what), 1);
    ck_assert_msg(strstr(what.text, mark) != NULL && strstr(what.text, "File exists") != NULL, "%s",
                  what.text);
    put(3);
    ck_assert_int_eq(store_take_warning(store, &what), 0);
    ck_assert_int_eq(rmdir(mark), 0);
    put(4);
    ck_assert_int_eq(access(mark, F_OK), 0); /* by itself */
    ck_assert_int_eq(store_take_warning(store, &what), 0);
    shut();
    ck_ms_ok(start(path, 0, err));
    ck_assert_int_eq(store_is_copy(store), 0);
}
END_TEST

START_TEST(without_a_new_mark_the_file_says_all_the_same_that_it_is_open)
{
    char mark[320];
    live(path, 1, 1);
    snprintf(mark, sizeof(mark), "%s", beside(path, next_mark(path)));
    ck_assert_int_eq(mkdir(mark, 0700), 0);
    live_until_killed(path, 2, 3);

    copy(path, moved); /* carried off alone */

    ck_ms_fails(start(moved, 0, err), MS_E_CONFIG, "without its log of writes");
    live(path, 4, 4); /* and an end in order says that it is not */
    copy(path, moved);
    ck_ms_ok(start(moved, 0, err));
    ck_assert_int_eq(rmdir(mark), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_home");
    TCase *tcase = tcase_create("store_home");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_restart_and_a_kill_make_no_copy);
    tcase_add_test(tcase, a_start_by_root_leaves_all_beside_it_to_the_owner_of_the_database);
    tcase_add_test(tcase, a_folder_that_is_copied_back_over_itself_is_a_copy);
    tcase_add_test(tcase, a_folder_that_moved_as_a_whole_is_a_copy);
    tcase_add_test(tcase, a_database_alone_that_is_put_back_is_a_copy);
    tcase_add_test(tcase, a_copy_of_the_same_start_that_is_written_over_the_file_is_a_copy);
    tcase_add_test(tcase, a_copy_whose_witness_was_taken_away_is_a_copy);
    tcase_add_test(tcase, a_database_that_is_renamed_without_its_log_of_writes_is_refused);
    tcase_add_test(tcase, a_relative_path_is_judged_as_the_whole_one);
    tcase_add_test(tcase, the_loss_of_a_log_of_writes_can_be_accepted);
    tcase_add_test(tcase, a_clock_that_is_behind_gives_a_copy_no_numbers);
    tcase_add_test(tcase, a_start_that_ends_between_its_mark_and_its_commit_makes_no_copy);
    tcase_add_test(tcase, a_mark_that_cannot_be_made_is_said_once_until_it_can);
    tcase_add_test(tcase, without_a_new_mark_the_file_says_all_the_same_that_it_is_open);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
