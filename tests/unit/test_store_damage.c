/* test_store_damage.c - never silent: flipped bytes, lost logs, old copies, foreign files */
#include "daemon/store/files.h"
#include "tests/unit/store_fixture.h"

#include "proto/digest.h"

#include <fcntl.h>
#include <sys/stat.h>

START_TEST(a_database_of_another_program_is_left_alone)
{
    store_close(store);
    store = NULL;
    unlink(path);
    sql("CREATE TABLE songs(title); PRAGMA application_id=42");

    ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, "another program");

    sql("SELECT title FROM songs");
}
END_TEST

START_TEST(a_newer_schema_is_refused)
{
    store_close(store);
    store = NULL;
    sql("PRAGMA user_version=99");

    ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, "newer version");
}
END_TEST

START_TEST(garbage_is_refused_with_the_command_that_restores_and_kept)
{
    store_close(store);
    store = NULL;
    char wal[160];
    snprintf(wal, sizeof(wal), "%s-wal", path);
    unlink(wal);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 1000; i++) {
        fputs("this is no database ", file);
    }
    fclose(file);

    ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, "put a copy back");

    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq((int)st.st_size, 20000);
}
END_TEST

START_TEST(a_damaged_page_is_noticed_before_the_start)
{
    for (uint64_t id = 1; id <= 200; id++) {
        struct sched_job_row job = make_job(id);
        ck_assert_int_ge(put(&job), 0);
    }
    store_close(store);
    store = NULL;
    int fd = open(path, O_RDWR);
    char junk[4096];
    memset(junk, 0xa5, sizeof(junk));
    ck_assert_int_eq((int)pwrite64(fd, junk, sizeof(junk), 5 * 4096), 4096);
    close(fd);

    ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, "damaged");
}
END_TEST

START_TEST(a_member_without_a_job_is_noticed_before_the_start)
{
    store_close(store);
    store = NULL;
    sql("PRAGMA foreign_keys=OFF;"
        "INSERT INTO member VALUES (5, 0, 'w', 1, 'h', '', '', 1, '', 0, 0, 0)");

    ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, "damaged");
}
END_TEST

static void spill(const char *suffix, const struct bytes *bytes)
{
    char name[160];
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    if (bytes->data == NULL) {
        unlink(name);
        return;
    }
    FILE *file = fopen(name, "wb");
    ck_assert_uint_eq(fwrite(bytes->data, 1, bytes->size, file), bytes->size);
    fclose(file);
}

/* A database of 120 jobs as a scheduler that was killed leaves it behind. */
struct remains {
    struct bytes db, wal, lock;
    uint64_t digest;
};

static struct remains leave_remains(int checkpointed)
{
    struct remains remains;
    struct sched_plan_row plan = {.text = "plan\n", .bytes = 5};
    struct sched_effect put_plan = {.kind = SCHED_DO_PUT_PLAN, .plan = &plan};
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256(plan.text, plan.bytes, digest);
    ms_sha256_hex(digest, plan.sha256);
    ck_ms_ok(store_commit(store, &put_plan, 1, err));
    for (uint64_t id = 1; id <= 120; id++) {
        struct sched_job_row job = make_job(id);
        ck_assert_int_eq(put(&job), 0);
        if (id % 10 == 0) {
            struct sched_member_row member = {.job = id, .incarnation = id, .node_id = "w1"};
            struct sched_effect effect = {.kind = SCHED_DO_PUT_MEMBER, .member = &member};
            ck_ms_ok(store_commit(store, &effect, 1, err));
        }
    }
    if (checkpointed) {
        ck_assert_int_eq(store_idle(store), 0);
    }
    remains.db = slurp("");
    remains.wal = slurp("-wal");
    remains.lock = slurp(".lock");
    load();
    remains.digest = loaded.digest;
    store_close(store);
    store = NULL;
    return remains;
}

struct verdicts {
    int same, refused, said, silent;
};

static void start_on(const struct remains *remains, struct verdicts *verdicts)
{
    struct ms_err why = {0, ""};
    spill("", &remains->db);
    spill("-wal", &remains->wal);
    spill(".lock", &remains->lock);
    loaded = (struct sched){.jobs_n = 0};
    int rc = store_open(path, &store, &why);
    rc = rc == 0 ? store_load(store, &loaded, &why) : rc;
    if (rc < 0) {
        ck_assert_msg(rc == MS_E_CONFIG, "%s", why.text);
        ck_assert_msg(strstr(why.text, "cp COPY") != NULL ||
                          strstr(why.text, "--accept-loss") != NULL ||
                          strstr(why.text, "put a copy back") != NULL ||
                          strstr(why.text, "name another file") != NULL ||
                          strstr(why.text, "newer version") != NULL,
                      "no command that restores: %s", why.text);
        verdicts->refused++;
    } else if (loaded.digest == remains->digest) {
        verdicts->same++;
    } else if (store_note(store, 0) != NULL && strstr(store_note(store, 0), "dropped") != NULL) {
        verdicts->said++;
    } else {
        verdicts->silent++;
    }
    store_close(store);
    store = NULL;
}

static void flip_all(struct remains *remains, struct bytes *target, size_t step, uint8_t with,
                     struct verdicts *verdicts)
{
    for (size_t at = 0; at < target->size; at += step) {
        target->data[at] ^= with;
        start_on(remains, verdicts);
        target->data[at] ^= with;
    }
}

static void free_remains(struct remains *remains)
{
    free(remains->db.data);
    free(remains->wal.data);
    free(remains->lock.data);
}

START_TEST(no_flipped_byte_of_the_database_changes_what_is_loaded)
{
    struct verdicts verdicts = {0};
    struct remains remains = leave_remains(1);

    flip_all(&remains, &remains.db, 193, (uint8_t)(_i == 0 ? 0xff : 0x01), &verdicts);

    printf("store: flips in the database: %d loaded the same, %d refused\n", verdicts.same,
           verdicts.refused);
    ck_assert_int_eq(verdicts.silent + verdicts.said, 0);
    ck_assert_int_gt(verdicts.refused, 100);
    free_remains(&remains);
}
END_TEST

START_TEST(a_damaged_log_of_writes_is_refused_where_a_witness_is_left)
{
    struct verdicts verdicts = {0};
    struct remains remains = leave_remains(0);

    flip_all(&remains, &remains.wal, 9973, 0xff, &verdicts);

    printf("store: flips in the log: %d loaded the same, %d refused\n", verdicts.same,
           verdicts.refused);
    ck_assert_int_eq(verdicts.silent, 0);
    ck_assert_int_le(verdicts.said, 2); /* the last transaction was a rank's, without a tick */
    ck_assert_int_gt(verdicts.refused, 100);
    free_remains(&remains);
}
END_TEST

START_TEST(what_a_damaged_log_of_writes_loses_is_said_and_a_copy_kept)
{
    struct verdicts verdicts = {0};
    struct remains remains = leave_remains(0);
    free(remains.lock.data);
    remains.lock.data = NULL; /* as after a power cut */

    flip_all(&remains, &remains.wal, 9973, 0xff, &verdicts);

    printf("store: flips in the log, no witness: %d loaded the same, %d refused, %d said\n",
           verdicts.same, verdicts.refused, verdicts.said);
    ck_assert_int_eq(verdicts.silent, 0);
    ck_assert_int_gt(verdicts.said, 50);
    for (int i = 1; i <= MS_STORE_LOST_MAX + 1; i++) {
        char copy[160];
        struct stat st;
        snprintf(copy, sizeof(copy), "%s.wal-lost.%d", path, i);
        ck_assert_int_eq(stat(copy, &st) == 0, i <= MS_STORE_LOST_MAX);
        if (i <= MS_STORE_LOST_MAX) {
            ck_assert_uint_eq((size_t)st.st_size, remains.wal.size);
        }
    }
    free_remains(&remains);
}
END_TEST

static struct bytes lost_copy(int which)
{
    char suffix[32];
    snprintf(suffix, sizeof(suffix), ".wal-lost.%d", which);
    return slurp(suffix);
}

static int copies(void)
{
    int n = 0;
    for (int i = 1; i <= MS_STORE_LOST_MAX + 1; i++) {
        char name[160];
        snprintf(name, sizeof(name), "%s.wal-lost.%d", path, i);
        n += access(name, F_OK) == 0;
    }
    return n;
}

START_TEST(the_copy_of_the_first_damaged_log_survives_every_repetition)
{
    struct verdicts verdicts = {0};
    struct remains remains = leave_remains(0);
    remains.wal.data[remains.wal.size / 2] ^= 0xff;

    for (int i = 0; i < 2 * MS_STORE_LOST_MAX; i++) { /* systemd, or an operator, tries again */
        start_on(&remains, &verdicts);
    }

    ck_assert_int_eq(verdicts.refused, 2 * MS_STORE_LOST_MAX);
    ck_assert_int_eq(copies(), 1); /* the same bytes once */
    struct bytes first = lost_copy(1);
    ck_assert_uint_eq(first.size, remains.wal.size);
    ck_assert_mem_eq(first.data, remains.wal.data, first.size);
    for (size_t i = 0; i < (size_t)2 * MS_STORE_LOST_MAX; i++) { /* and each time another damage */
        remains.wal.data[100 + i] ^= 0xff;
        start_on(&remains, &verdicts);
    }
    ck_assert_int_eq(copies(), MS_STORE_LOST_MAX);
    struct bytes still = lost_copy(1);
    ck_assert_uint_eq(still.size, first.size);
    ck_assert_mem_eq(still.data, first.data, first.size);
    int newest = 0;
    for (int i = 2; i <= MS_STORE_LOST_MAX; i++) {
        struct bytes copy = lost_copy(i);
        newest +=
            copy.size == remains.wal.size && memcmp(copy.data, remains.wal.data, copy.size) == 0;
        free(copy.data);
    }
    ck_assert_int_eq(newest, 1);
    free(first.data);
    free(still.data);
    free_remains(&remains);
}
END_TEST

START_TEST(a_copy_that_cannot_be_made_pushes_none_out)
{
    struct verdicts verdicts = {0};
    struct remains remains = leave_remains(0);
    char unfinished[160];
    snprintf(unfinished, sizeof(unfinished), "%s.wal-lost.new", path);
    for (size_t i = 0; i < MS_STORE_LOST_MAX; i++) {
        remains.wal.data[100 + i] ^= 0xff;
        start_on(&remains, &verdicts);
    }
    ck_assert_int_eq(copies(), MS_STORE_LOST_MAX);
    ck_assert_int_eq(mkdir(unfinished, 0700), 0); /* nothing can be written there */
    remains.wal.data[99] ^= 0xff;

    start_on(&remains, &verdicts);

    ck_assert_int_eq(copies(), MS_STORE_LOST_MAX);
    ck_assert_int_eq(rmdir(unfinished), 0);
    free_remains(&remains);
}
END_TEST

START_TEST(a_log_of_writes_that_is_cut_short_is_taken_as_far_as_it_goes)
{
    struct verdicts verdicts = {0};
    struct remains remains = leave_remains(0);
    free(remains.lock.data);
    remains.lock.data = NULL;
    remains.wal.size -= 1000; /* inside the last frame */

    start_on(&remains, &verdicts);

    ck_assert_int_eq(verdicts.refused, 0); /* legal after a power cut */
    ck_assert_uint_ge(loaded.jobs_n, 119);
    free_remains(&remains);
}
END_TEST

START_TEST(a_row_that_is_gone_is_noticed)
{
    struct remains remains = leave_remains(1);
    sql("DROP TRIGGER job_out; DELETE FROM job WHERE id = 17;"
        "CREATE TRIGGER job_out AFTER DELETE ON job BEGIN UPDATE ledger SET rows=rows-1,"
        " sum=(sum-old.sum)&4611686018427387903 WHERE name='job'; END");

    ck_ms_ok(store_open(path, &store, err));
    ck_ms_fails(store_load(store, &loaded, err), MS_E_CONFIG, "119 rows and its ledger says 120");
    free_remains(&remains);
}
END_TEST

START_TEST(a_schema_that_was_changed_is_refused)
{
    store_close(store);
    store = NULL;
    sql("DROP TRIGGER job_out");

    ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, "schema does not match");
}
END_TEST

START_TEST(an_older_copy_is_refused_until_the_loss_is_accepted)
{
    struct remains remains = leave_remains(1); /* at tick 120 */
    reopen();
    struct sched_job_row job = make_job(121);
    ck_assert_int_eq(put(&job), 0);
    ck_ms_ok(store_load(store, &loaded, err));
    store_close(store);
    store = NULL;
    unlink(path);
    spill("", &remains.db);
    ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, "--accept-loss"); /* without its log */
    spill("-wal", &(struct bytes){.data = (uint8_t *)"", .size = 0});

    ck_ms_ok(store_open(path, &store, err));
    ck_ms_fails(store_load(store, &loaded, err), MS_E_CONFIG, "--accept-loss");
    store_close(store);
    store = NULL;
    struct store_setup setup = {.path = path, .accepts_loss = 1};
    ck_ms_ok(store_open_with(&setup, &store, err));
    load();

    ck_assert_uint_eq(loaded.jobs_n, 120);
    ck_assert_ptr_nonnull(strstr(store_note(store, 0), "lacks 1 of 121"));
    ck_assert_int_eq(store_is_copy(store), 1);
    free_remains(&remains);
}
END_TEST

START_TEST(a_copy_knows_that_it_is_one_and_a_file_that_was_aside_does_not)
{
    struct sched_job_row job = make_job(1);
    ck_assert_int_eq(put(&job), 0);
    reopen();
    ck_assert_int_eq(store_is_copy(store), 0);
    store_close(store);
    store = NULL;
    struct bytes copy = slurp("");
    char aside[160];
    snprintf(aside, sizeof(aside), "%s.aside", path);
    ck_assert_int_eq(rename(path, aside), 0);
    ck_assert_int_eq(rename(aside, path), 0);
    ck_ms_ok(store_open(path, &store, err));
    ck_assert_int_eq(store_is_copy(store), 0);
    store_close(store);
    store = NULL;
    ck_assert_int_eq(rename(path, aside), 0);
    spill("", &copy);

    ck_ms_ok(store_open(path, &store, err));

    ck_assert_int_eq(store_is_copy(store), 1);
    load();
    ck_assert_int_eq(put(&job), 0); /* the commit that carries the skip makes it the original */
    reopen();
    ck_assert_int_eq(store_is_copy(store), 0);
    free(copy.data);
}
END_TEST

/* Its log may have stayed where it was, with what was acknowledged last. */
START_TEST(a_database_that_was_renamed_goes_on_far_above)
{
    struct sched_job_row job = make_job(1);
    char moved[160];
    snprintf(moved, sizeof(moved), "%s.moved", path);
    ck_assert_int_eq(put(&job), 0);
    store_close(store);
    ck_assert_int_eq(rename(path, moved), 0);

    ck_ms_ok(store_open(moved, &store, err));
    ck_assert_int_eq(store_is_copy(store), 1);
    load();
    ck_assert_int_eq(put(&job), 0); /* the commit that carries the skip says where it is now */
    store_close(store);

    ck_ms_ok(store_open(moved, &store, err));
    ck_assert_int_eq(store_is_copy(store), 0);
}
END_TEST

/* SQLite would have taken the log of a database that is only late (a mount, half of a restore). */
START_TEST(without_the_database_its_log_of_writes_is_left_alone)
{
    struct remains remains = leave_remains(0);
    const struct bytes none = {NULL, 0};
    const struct bytes empty = {(uint8_t *)"", 0};

    for (int i = 0; i < 4; i++) { /* no file and an empty one, with the witness and without */
        spill("", i % 2 == 0 ? &none : &empty);
        spill("-wal", &remains.wal);
        spill(".lock", i / 2 == 0 ? &remains.lock : &none);
        store = NULL;
        ck_ms_fails(store_open(path, &store, err), MS_E_CONFIG, "put it back (with its -wal)");
        struct bytes after = slurp("-wal");
        ck_assert_uint_eq(after.size, remains.wal.size);
        free(after.data);
        ck_assert_int_eq(access(path, F_OK), i % 2 == 0 ? -1 : 0);
    }

    spill("", &remains.db);
    spill(".lock", &remains.lock);
    ck_ms_ok(store_open(path, &store, err));
    load();
    ck_assert_uint_eq(loaded.jobs_n, 120);
    free_remains(&remains);
}
END_TEST

START_TEST(a_lost_database_may_begin_empty_and_its_log_is_kept_aside)
{
    struct remains remains = leave_remains(0);
    const struct bytes none = {NULL, 0};
    struct store_setup setup = {.path = path, .accepts_loss = 1};
    spill("", &none);
    spill("-wal", &remains.wal);
    spill(".lock", &remains.lock);

    ck_ms_ok(store_open_with(&setup, &store, err));
    load();

    ck_assert_uint_eq(loaded.jobs_n, 0);
    ck_assert_ptr_nonnull(strstr(store_note(store, 0), "of a database that is not there"));
    struct bytes kept = slurp(".wal-lost.1");
    ck_assert_uint_eq(kept.size, remains.wal.size);
    ck_assert_mem_eq(kept.data, remains.wal.data, kept.size);
    free(kept.data);
    free_remains(&remains);
}
END_TEST

/* SQLite keeps the log beside the file itself: a lock, a witness and a copy beside the link would
 * miss it. */
START_TEST(a_symbolic_link_is_followed_once_for_all_files)
{
    struct remains remains = leave_remains(0);
    char link[160];
    char side[200];
    snprintf(link, sizeof(link), "%s/link.db", dir);
    remains.wal.data[remains.wal.size - 1000] ^= 0xff; /* in the last transaction */
    spill("", &remains.db);
    spill("-wal", &remains.wal);
    const struct bytes none = {NULL, 0};
    spill(".lock", &none);
    ck_assert_int_eq(symlink(path, link), 0);

    ck_ms_ok(store_open(link, &store, err));

    ck_assert_ptr_nonnull(strstr(store_note(store, 0), "from a damaged one on"));
    struct bytes kept = slurp(".wal-lost.1");
    ck_assert_uint_eq(kept.size, remains.wal.size);
    free(kept.data);
    snprintf(side, sizeof(side), "%s.lock", link);
    ck_assert_int_eq(access(side, F_OK), -1);
    struct store *other = NULL;
    ck_ms_fails(store_open(path, &other, err), MS_E_EXISTS, "is in use");
    unlink(link);
    ck_assert_int_eq(symlink("/nonexistent/state.db", link), 0);
    ck_ms_fails(store_open(link, &other, err), MS_E_CONFIG, "leads to no file");
    free_remains(&remains);
}
END_TEST

START_TEST(a_database_that_is_refused_keeps_its_log_of_writes)
{
    struct remains remains = leave_remains(0);
    spill("", &remains.db);
    spill("-wal", &remains.wal);
    struct ms_err why = {0, ""};
    remains.wal.data[remains.wal.size / 2] ^= 0xff;
    spill(".lock", &remains.lock);
    spill("-wal", &remains.wal);

    ck_ms_ok(store_open(path, &store, err));
    ck_assert_int_eq(store_load(store, &loaded, &why), MS_E_CONFIG);
    store_close(store);
    store = NULL;

    struct bytes after = slurp("-wal");
    ck_assert_uint_eq(after.size, remains.wal.size);
    ck_assert_mem_eq(after.data, remains.wal.data, after.size);
    free(after.data);
    free_remains(&remains);
}
END_TEST

/* After a failed sync the pages of the log may be in memory only, and look written. Before anybody
 * is served they are written again, elsewhere, and synced. */
START_TEST(a_start_folds_the_log_of_writes_in_before_it_serves)
{
    struct remains remains = leave_remains(0);
    spill("", &remains.db);
    spill("-wal", &remains.wal);

    ck_ms_ok(store_open(path, &store, err));
    load();

    struct bytes wal = slurp("-wal");
    ck_assert_uint_eq(wal.size, 0);
    ck_assert_uint_eq(loaded.jobs_n, 120);
    free(wal.data);
    store_close(store);
    store = NULL;
    spill("", &remains.db);
    spill("-wal", &remains.wal);
    ck_ms_ok(store_open(path, &store, err));
    calls_left = 0; /* and a start that cannot do so does not serve */
    ck_ms_fails(store_load(store, &loaded, err), MS_E_IO, "cannot be folded in");
    calls_left = INT64_MAX;
    free_remains(&remains);
}
END_TEST

/* Whichever of its calls it is: a write, a sync, a truncation. */
START_TEST(a_start_that_fails_says_what_the_system_said)
{
    struct remains remains = leave_remains(0);
    struct ms_err why = {0, ""};
    int n = -1;
    do {
        spill("", &remains.db);
        spill("-wal", &remains.wal);
        memset(&why, 0, sizeof(why));
        ck_ms_ok(store_open(path, &store, err));
        call_failed = 0;
        calls_left = ++n;
        int rc = store_load(store, &loaded, &why);
        calls_left = INT64_MAX;
        ck_assert_msg(rc == 0 || strstr(why.text, ": Input/output error") != NULL, "call %d: %s", n,
                      why.text);
        ck_assert_msg(strstr(why.text, "not an error") == NULL, "call %d: %s", n, why.text);
        store_close(store);
        store = NULL;
    } while (call_failed && n < 1000);
    ck_assert_int_gt(n, 3);
    free_remains(&remains);
}
END_TEST

/* After a sync that failed the disk may lack pages that this system takes for written. */
START_TEST(a_start_writes_the_log_once_more_before_it_folds_it_in)
{
    struct remains remains = leave_remains(0);
    off_t rewritten = 0;
    spill("", &remains.db);
    spill("-wal", &remains.wal);
    ck_ms_ok(store_open(path, &store, err));
    keeps_undos = 1;
    calls_left = (int64_t)(remains.wal.size + 65535) / 65536; /* and the sync behind them fails */

    ck_ms_fails(store_load(store, &loaded, err), MS_E_IO,
                "cannot be folded in: disk I/O error: Input/output error");

    calls_left = INT64_MAX;
    keeps_undos = 0;
    for (const struct undo *undo = undos; undo != NULL; undo = undo->next) {
        const char *end = strrchr(undo->path, '-');
        ck_assert_msg(end != NULL && strcmp(end, "-wal") == 0, "%s was written", undo->path);
        rewritten += undo->size;
    }
    ck_assert_int_eq(rewritten, (off_t)remains.wal.size);
    forget_undos(-1);
    free_remains(&remains);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_damage");
    TCase *tcase = tcase_create("store_damage");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_database_of_another_program_is_left_alone);
    tcase_add_test(tcase, a_newer_schema_is_refused);
    tcase_add_test(tcase, garbage_is_refused_with_the_command_that_restores_and_kept);
    tcase_add_test(tcase, a_damaged_page_is_noticed_before_the_start);
    tcase_add_test(tcase, a_member_without_a_job_is_noticed_before_the_start);
    tcase_add_loop_test(tcase, no_flipped_byte_of_the_database_changes_what_is_loaded, 0, 2);
    tcase_add_test(tcase, a_damaged_log_of_writes_is_refused_where_a_witness_is_left);
    tcase_add_test(tcase, what_a_damaged_log_of_writes_loses_is_said_and_a_copy_kept);
    tcase_add_test(tcase, a_log_of_writes_that_is_cut_short_is_taken_as_far_as_it_goes);
    tcase_add_test(tcase, the_copy_of_the_first_damaged_log_survives_every_repetition);
    tcase_add_test(tcase, a_copy_that_cannot_be_made_pushes_none_out);
    tcase_add_test(tcase, a_row_that_is_gone_is_noticed);
    tcase_add_test(tcase, a_schema_that_was_changed_is_refused);
    tcase_add_test(tcase, an_older_copy_is_refused_until_the_loss_is_accepted);
    tcase_add_test(tcase, a_copy_knows_that_it_is_one_and_a_file_that_was_aside_does_not);
    tcase_add_test(tcase, a_database_that_was_renamed_goes_on_far_above);
    tcase_add_test(tcase, without_the_database_its_log_of_writes_is_left_alone);
    tcase_add_test(tcase, a_lost_database_may_begin_empty_and_its_log_is_kept_aside);
    tcase_add_test(tcase, a_symbolic_link_is_followed_once_for_all_files);
    tcase_add_test(tcase, a_database_that_is_refused_keeps_its_log_of_writes);
    tcase_add_test(tcase, a_start_folds_the_log_of_writes_in_before_it_serves);
    tcase_add_test(tcase, a_start_that_fails_says_what_the_system_said);
    tcase_add_test(tcase, a_start_writes_the_log_once_more_before_it_folds_it_in);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
