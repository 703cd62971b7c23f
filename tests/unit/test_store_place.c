/* test_store_place.c - what lies at the path of a database and beside it, before it is opened */
#include "daemon/store/place.h"

#include "daemon/store/store.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dir;
static char path[300];
static struct store *store;

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/state.db", dir);
    ck_ms_ok(store_open(path, &store, err));
    store_close(store);
    store = NULL;
}

static void teardown(void)
{
    store_close(store);
    store = NULL;
    test_dir_remove(dir);
}

static const char *beside(const char *suffix)
{
    static char name[320];
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return name;
}

static const char *const suffixes[] = {"-wal", "-journal", "-shm", ".lock"};

static char odd[320];

static void is_no_database(const char *setting, const char *words)
{
    const struct store_setup setup = {.path = odd, .setting = setting};
    ck_ms_fails(store_open_with(&setup, &store, err), MS_E_CONFIG, words);
}

START_TEST(who_has_another_word_for_the_database_reads_that_one)
{
    snprintf(odd, sizeof(odd), "%s/odd.db", dir);
    ck_assert_int_eq(mkdir(odd, 0700), 0);
    is_no_database("MS_RECOVERY_PATH", "no regular file: name another one with MS_RECOVERY_PATH");
    is_no_database(NULL, "no regular file: name another one with `database`");
    ck_assert_int_eq(rmdir(odd), 0);
    ck_assert_int_eq(mkfifo(odd, 0600), 0);
    is_no_database("MS_RECOVERY_PATH", "no regular file: name another one with MS_RECOVERY_PATH");
    ck_assert_int_eq(unlink(odd), 0);
    FILE *file = fopen(odd, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "junk");
    fclose(file);
    is_no_database("MS_RECOVERY_PATH", "is no database: name another one with MS_RECOVERY_PATH");
    ck_assert_int_eq(unlink(odd), 0);
    ck_assert_int_eq(symlink("nowhere", odd), 0);
    is_no_database("MS_RECOVERY_PATH", "name another one with MS_RECOVERY_PATH");
}
END_TEST

START_TEST(nothing_beside_a_database_is_waited_for)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(suffixes); i++) {
        unlink(beside(suffixes[i]));
        ck_assert_int_eq(mkfifo(beside(suffixes[i]), 0600), 0);

        char words[64];
        snprintf(words, sizeof(words), "state.db%s is no regular file", suffixes[i]);
        ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, words);
        ck_ms_fails(store_judge_place(path, err), MS_E_CONFIG, words);

        ck_assert_int_eq(unlink(beside(suffixes[i])), 0);
    }
    ck_ms_ok(store_open(path, &store, err));
}
END_TEST

/* Of a database that is there, and of a new one: with few descriptors more it starts. */
START_TEST(who_lacks_descriptors_says_so_and_no_folder_is_wrong)
{
    enum { FEW = 64, ENOUGH = 32 };
    struct rlimit before;
    int fds[FEW];
    int opened = 0;
    if (_i == 1) {
        ck_assert_int_eq(unlink(path), 0);
        for (size_t i = 0; i < MS_ARRAY_SIZE(suffixes); i++) {
            unlink(beside(suffixes[i]));
        }
    }
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit few = {FEW, before.rlim_max};
    for (int spare = 0; spare < ENOUGH && !opened; spare++) {
        struct ms_err why = {0, ""};
        int n = 0;
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        while (n < FEW && (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
            n++;
        }
        for (int i = 0; i < spare; i++) {
            close(fds[--n]);
        }

        const int rc = store_open(path, &store, &why);

        while (n > 0) {
            close(fds[--n]);
        }
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        opened = rc == MS_OK;
        ck_assert_msg(opened || (rc == MS_E_NOMEM && strstr(why.text, strerror(EMFILE)) != NULL &&
                                 strstr(why.text, dir) != NULL),
                      "with %d: %s: %s", spare, ms_code_name(rc), why.text);
    }
    ck_assert(opened);
}
END_TEST

/* Of the file that another user's lock is, --check-config says what a start would. */
START_TEST(what_another_user_left_beside_it_is_told_before_a_start)
{
    enum { NOBODY = 65534 };
    if (geteuid() != 0) {
        return; /* the others' files can be made by root only */
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(suffixes); i++) {
        int status = -1;
        unlink(beside(suffixes[i]));
        FILE *file = fopen(beside(suffixes[i]), "w");
        ck_assert_ptr_nonnull(file);
        fclose(file);
        ck_assert_int_eq(chmod(beside(suffixes[i]), 0600), 0);
        ck_assert_int_eq(chown(dir, NOBODY, NOBODY), 0);
        ck_assert_int_eq(chown(path, NOBODY, NOBODY), 0);
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            ck_assert_int_eq(seteuid(NOBODY), 0);
            char words[160];
            snprintf(words, sizeof(words), "state.db%s, beside the database", suffixes[i]);
            ck_ms_fails(store_judge_place(path, err), MS_E_CONFIG, words);
            snprintf(words, sizeof(words), "for nobody, sudo chown nobody %s%s", path, suffixes[i]);
            ck_ms_fails(store_judge_place(path, err), MS_E_CONFIG, words);
            ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, words); /* and a start does */
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        ck_assert_int_eq(unlink(beside(suffixes[i])), 0);
    }
}
END_TEST

START_TEST(a_database_that_can_be_read_only_is_called_that)
{
    enum { NOBODY = 65534 };
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(dir, NOBODY, NOBODY), 0);
        ck_assert_int_eq(chown(beside(".lock"), NOBODY, NOBODY), 0);
        ck_assert_int_eq(chmod(path, 0644), 0);
        ck_assert_int_eq(seteuid(NOBODY), 0);
        ck_ms_fails(store_judge_place(path, err), MS_E_CONFIG,
                    "name another one, or if it is meant");
        ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG,
                    "name another one, or if it is meant");
        ck_assert_int_eq(seteuid(0), 0);
    }
}
END_TEST

START_TEST(a_name_that_means_something_to_sqlite_is_refused)
{
    ck_ms_fails(store_open("file:x.db", &store, err), MS_E_CONFIG, "name a file: ./file:x.db");
    ck_ms_fails(store_open(":memory:", &store, err), MS_E_CONFIG, "name a file: ./:memory:");
}
END_TEST

START_TEST(what_is_no_database_is_left_as_it_was_with_nothing_beside_it)
{
    snprintf(path, sizeof(path), "%s/passwd", dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("root:x:0:0:root:/root:/bin/bash\n", file);
    fclose(file);

    ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, "is no database");
    ck_ms_fails(store_open(dir, &store, err), MS_E_CONFIG, "no regular file");

    ck_assert_int_eq(access(beside(".reserve"), F_OK), -1);
    for (size_t i = 0; i < MS_ARRAY_SIZE(suffixes); i++) {
        ck_assert_int_eq(access(beside(suffixes[i]), F_OK), -1);
    }
}
END_TEST

static void expect_nothing_beside(void)
{
    ck_assert_int_eq(access(beside(".reserve"), F_OK), -1);
    ck_assert_int_eq(access(beside(".lock"), F_OK), -1);
}

/* Nearly all databases there are have the application id 0. */
START_TEST(a_foreign_database_is_refused_before_anything_is_made_beside_it)
{
    static const char *const made[] = {
        "CREATE TABLE t(a); INSERT INTO t VALUES(1)",
        "PRAGMA journal_mode=WAL; CREATE TABLE t(a)",
        "CREATE VIEW v AS SELECT 1", /* which needs no page of its own */
        "PRAGMA user_version=3",
        "PRAGMA application_id=42",
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(made); i++) {
        sqlite3 *db = NULL;
        snprintf(path, sizeof(path), "%s/other%zu.db", dir, i);
        ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, made[i], NULL, NULL, NULL), SQLITE_OK);
        ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);

        ck_ms_fails(store_judge_place(path, err), MS_E_CONFIG, "another program");
        ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, "another program");

        expect_nothing_beside();
        ck_assert_int_eq(access(beside("-wal"), F_OK), -1);
    }
}
END_TEST

/* All of it is in its log, as of ours once; but nobody locked it as we do. */
START_TEST(a_foreign_database_that_is_in_use_is_refused_likewise)
{
    sqlite3 *db = NULL;
    snprintf(path, sizeof(path), "%s/other.db", dir);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(db, "PRAGMA journal_mode=WAL; CREATE TABLE t(a)", NULL, NULL, NULL),
        SQLITE_OK);
    ck_assert_int_eq(access(beside("-wal"), F_OK), 0);

    ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, "another program");

    expect_nothing_beside();
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

START_TEST(a_database_whose_first_transaction_is_in_its_log_is_ours)
{
    int status = -1;
    struct stat st;
    snprintf(path, sizeof(path), "%s/first.db", dir);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        ck_ms_ok(store_open(path, &store, err));
        _exit(0); /* killed before the log is folded in */
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 4096);

    ck_ms_ok(store_judge_place(path, err));
    ck_ms_ok(store_open(path, &store, err));
}
END_TEST

/* sqlite3 FILE vacuum: a file with a header and nothing in it may be anybody's, and so ours. */
START_TEST(an_empty_database_may_become_ours)
{
    sqlite3 *db = NULL;
    snprintf(path, sizeof(path), "%s/empty.db", dir);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "VACUUM", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);

    ck_ms_ok(store_open(path, &store, err));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_place");
    TCase *tcase = tcase_create("place");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, who_has_another_word_for_the_database_reads_that_one);
    tcase_add_test(tcase, nothing_beside_a_database_is_waited_for);
    tcase_add_loop_test(tcase, who_lacks_descriptors_says_so_and_no_folder_is_wrong, 0, 2);
    tcase_add_test(tcase, what_another_user_left_beside_it_is_told_before_a_start);
    tcase_add_test(tcase, a_database_that_can_be_read_only_is_called_that);
    tcase_add_test(tcase, a_name_that_means_something_to_sqlite_is_refused);
    tcase_add_test(tcase, what_is_no_database_is_left_as_it_was_with_nothing_beside_it);
    tcase_add_test(tcase, a_foreign_database_is_refused_before_anything_is_made_beside_it);
    tcase_add_test(tcase, a_foreign_database_that_is_in_use_is_refused_likewise);
    tcase_add_test(tcase, a_database_whose_first_transaction_is_in_its_log_is_ours);
    tcase_add_test(tcase, an_empty_database_may_become_ours);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
