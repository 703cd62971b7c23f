/* test_store.c - the database: what was committed is there, damaged and foreign files */
#include "daemon/store/files.h"
#include "tests/unit/store_fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* ---- cases --------------------------------------------------------------------------------------
 */

START_TEST(every_column_comes_back_as_it_was_put)
{
    struct sched_job_row job = make_job(7);
    job.code = -14;
    job.generation = 41;
    job.started_ms = 1700000000001;
    job.ended_ms = 1700000000002;
    job.steps = 1875;
    job.seconds = 2.5;
    job.recovery = true;
    job.cancel_at_step = true;
    job.results = (const uint8_t *)"results";
    job.results_bytes = 7;
    job.n_tries = 2;
    snprintf(job.cancel_text, sizeof(job.cancel_text), "cancelled by alice");
    snprintf(job.run_dir, sizeof(job.run_dir), "/tmp/run");
    memset(job.weights_sha256, 'a', 64);
    memset(job.plan_sha256, 'b', 64);
    struct sched_member_row member = {.job = 7,
                                      .rank = 1,
                                      .incarnation = UINT64_MAX - 5,
                                      .generation = 41,
                                      .step = 1875,
                                      .pid = UINT32_MAX};
    snprintf(member.principal, sizeof(member.principal), "worker:host");
    snprintf(member.state, sizeof(member.state), "training");
    snprintf(member.node_id, sizeof(member.node_id), "w1");
    snprintf(member.host_name, sizeof(member.host_name), "host");
    snprintf(member.log_path, sizeof(member.log_path), "/tmp/worker_1.log");
    struct sched_effect effects[] = {
        {.kind = SCHED_DO_PUT_MEMBER, .member = &member}, /* before its job: checked at commit */
        {.kind = SCHED_DO_PUT_JOB, .job = &job},
        {.kind = SCHED_DO_PUT_META, .meta_key = "generation", .meta_value = 41},
    };

    ck_ms_ok(store_commit(store, effects, 3, err));
    reopen();

    ck_assert_uint_eq(loaded.jobs_n, 1);
    const struct sched_job_row *got = &loaded.jobs[0];
    ck_assert_uint_eq(got->id, 7);
    ck_assert_int_eq(got->state, JOB_QUEUED);
    ck_assert_str_eq(got->name, job.name);
    ck_assert_str_eq(got->owner, job.owner);
    ck_assert_str_eq(got->reason, job.reason);
    ck_assert_str_eq(got->key, job.key);
    ck_assert_str_eq(got->run_dir, job.run_dir);
    ck_assert_uint_eq(got->workers, 2);
    ck_assert_int_eq(got->priority, -3);
    ck_assert_int_eq(got->code, -14);
    ck_assert_uint_eq(got->generation, 41);
    ck_assert_int_eq(got->submitted_ms, job.submitted_ms);
    ck_assert_int_eq(got->started_ms, job.started_ms);
    ck_assert_int_eq(got->ended_ms, job.ended_ms);
    ck_assert_uint_eq(got->steps, 1875);
    ck_assert(got->seconds == 2.5);
    ck_assert_str_eq(got->weights_sha256, job.weights_sha256);
    ck_assert_str_eq(got->plan_sha256, job.plan_sha256);
    ck_assert_str_eq(loaded.spec, "{\"workers\":2}");
    ck_assert(got->recovery && got->cancel_at_step);
    ck_assert_str_eq(got->cancel_text, "cancelled by alice");
    ck_assert_str_eq(loaded.results, "results");
    ck_assert_uint_eq(got->n_tries, 2);
    ck_assert_uint_eq(loaded.members_n, 1);
    ck_assert_str_eq(loaded.members[0].principal, "worker:host");
    ck_assert_uint_eq(loaded.members[0].generation, 41);
    ck_assert_str_eq(loaded.members[0].state, "training");
    ck_assert_uint_eq(loaded.members[0].step, 1875);
    ck_assert_uint_eq(loaded.members[0].pid, UINT32_MAX);
    ck_assert_uint_eq(loaded.members[0].incarnation, UINT64_MAX - 5);
    ck_assert_str_eq(loaded.members[0].node_id, "w1");
    ck_assert_str_eq(loaded.members[0].host_name, "host");
    ck_assert_str_eq(loaded.members[0].log_path, "/tmp/worker_1.log");
    ck_assert_uint_eq(loaded.generation, 41);
}
END_TEST

START_TEST(an_update_without_a_spec_keeps_the_spec)
{
    struct sched_job_row job = make_job(1);
    ck_assert_int_eq(put(&job), 0);
    job.spec = NULL;
    job.spec_bytes = 0;
    job.state = JOB_RUNNING;

    ck_assert_int_eq(put(&job), 0);
    reopen();

    ck_assert_int_eq(loaded.jobs[0].state, JOB_RUNNING);
    ck_assert_str_eq(loaded.spec, "{\"workers\":2}");
}
END_TEST

static int put_events(uint64_t first, uint64_t last)
{
    int rc = 0;
    for (uint64_t seq = first; seq <= last && rc == 0; seq++) {
        struct sched_event_row row = {seq,  1700000000000, "job.started", seq % 3,
                                      "w1", "user:alice",  "plan ä"};
        struct sched_effect effect = {.kind = SCHED_DO_PUT_EVENT, .event = &row};
        rc = store_commit(store, &effect, 1, NULL);
    }
    return rc;
}

static int64_t ask(const char *text)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, text, -1, &statement, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

START_TEST(events_survive_a_restart_and_their_numbers_go_on)
{
    ck_assert_int_eq(put_events(1, 5), 0);

    reopen();

    ck_assert_uint_eq(loaded.next_event, 6);
    ck_assert_uint_eq(loaded.event_job, 2);
    ck_assert_str_eq(loaded.event_principal, "user:alice");
    ck_assert_int_eq(put_events(5, 5), MS_E_IO); /* none takes the place of another */
    store_close(store);
    store = NULL;
    ck_assert_int_eq(ask("SELECT count(*) FROM event WHERE text = 'plan ä' AND node = 'w1'"), 5);
}
END_TEST

START_TEST(the_description_of_a_job_is_read_back_as_an_answer)
{
    struct sched_job_row job = make_job(1);
    ck_assert_int_eq(put(&job), 0);
    Ms__JobInfo info = MS__JOB_INFO__INIT;
    Ms__JobInfo *infos[] = {&info};
    Ms__JobList list = MS__JOB_LIST__INIT;
    struct sched_read read = {.frame_id = 5, .job = 1, .list = &list};
    info.id = 1;
    list.jobs = infos;
    list.n_jobs = 1;
    for (uint64_t id = 1; id <= 2; id++) { /* the second is not there */
        struct ms_wire_header header;
        ProtobufCMessage *msg = NULL;
        size_t size = 0;
        read.job = id;

        uint8_t *frame = store_answer(store, &read, &size);

        ck_assert_ptr_nonnull(frame);
        ck_ms_ok(ms_wire_parse_header(frame, &header, err));
        ck_ms_ok(ms_wire_unpack(header.type, frame + MS_WIRE_HEADER, header.length, &msg, err));
        ck_assert_uint_eq(header.id, 5);
        if (id == 1) {
            const Ms__JobInfo *got = ((const Ms__JobList *)msg)->jobs[0];
            ck_assert_uint_eq(got->job_json.len, job.spec_bytes);
            ck_assert_mem_eq(got->job_json.data, job.spec, job.spec_bytes);
        } else {
            const Ms__Error *got = (const Ms__Error *)msg;
            ck_assert_int_eq(got->code, MS_E_NOT_FOUND); /* let go by the tick that asked */
            ck_assert_ptr_nonnull(strstr(got->text, "job 2 does not exist any more"));
        }
        ms_wire_free(msg);
        free(frame);
    }
}
END_TEST

START_TEST(an_update_of_a_job_that_is_not_there_is_an_error)
{
    struct sched_job_row job = make_job(9);
    job.spec = NULL;

    ck_assert_int_eq(put(&job), MS_E_IO);

    load();
    ck_assert_uint_eq(loaded.jobs_n, 0);
    ck_assert_uint_eq(loaded.metas_n, 0); /* the whole transaction is gone */
}
END_TEST

START_TEST(dropping_a_job_drops_its_members)
{
    struct sched_job_row job = make_job(1);
    struct sched_member_row member = {.job = 1, .rank = 0};
    struct sched_effect effects[] = {{.kind = SCHED_DO_PUT_JOB, .job = &job},
                                     {.kind = SCHED_DO_PUT_MEMBER, .member = &member}};
    struct sched_effect end = {.kind = SCHED_DO_DROP_JOB, .job_id = 1};
    ck_ms_ok(store_commit(store, effects, 2, err));

    ck_ms_ok(store_commit(store, &end, 1, err));
    reopen();

    ck_assert_uint_eq(loaded.jobs_n + loaded.members_n, 0);
}
END_TEST

START_TEST(members_of_one_job_are_dropped_and_of_another_kept)
{
    struct sched_job_row jobs[] = {make_job(1), make_job(2)};
    struct sched_member_row members[] = {{.job = 1, .rank = 0}, {.job = 2, .rank = 3}};
    struct sched_effect effects[] = {{.kind = SCHED_DO_PUT_JOB, .job = &jobs[0]},
                                     {.kind = SCHED_DO_PUT_JOB, .job = &jobs[1]},
                                     {.kind = SCHED_DO_PUT_MEMBER, .member = &members[0]},
                                     {.kind = SCHED_DO_PUT_MEMBER, .member = &members[1]},
                                     {.kind = SCHED_DO_DROP_MEMBERS, .job_id = 1}};

    ck_ms_ok(store_commit(store, effects, 5, err));
    load();

    ck_assert_uint_eq(loaded.members_n, 1);
    ck_assert_uint_eq(loaded.members[0].job, 2);
}
END_TEST

START_TEST(numbers_of_a_peer_that_sqlite_cannot_hold_do_not_stop_it)
{
    struct sched_job_row job = make_job(1);
    job.steps = UINT64_MAX;
    job.seconds = 0.0 / 0.0 * -1.0;
    job.started_ms = -5;

    ck_assert_int_eq(put(&job), 0);
    load();

    ck_assert_uint_eq(loaded.jobs[0].steps, INT64_MAX);
    ck_assert(loaded.jobs[0].seconds == 0);
}
END_TEST

START_TEST(a_second_daemon_is_refused_with_the_pid_of_the_first)
{
    struct store *second = NULL;
    char want[32];
    snprintf(want, sizeof(want), "pid %ld", (long)getpid());

    ck_ms_fails(store_open(path, &second, err), MS_E_EXISTS, want);
}
END_TEST

START_TEST(another_program_inside_the_database_is_refused)
{
    store_close(store);
    store = NULL;
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE", NULL, NULL, NULL),
        SQLITE_OK);

    ck_ms_fails(store_open(path, &store, err), MS_E_EXISTS, "in use by another process");

    sqlite3_close(db);
}
END_TEST

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

START_TEST(a_missing_folder_says_who_must_own_it)
{
    struct store *other = NULL;

    ck_ms_fails(store_open("/nonexistent/state.db", &other, err), MS_E_CONFIG, "/nonexistent");
}
END_TEST

START_TEST(a_row_that_the_core_refuses_names_the_database)
{
    struct sched_job_row job = make_job(3);
    job.workers = 77;
    ck_assert_int_eq(put(&job), 0);

    ck_ms_fails(store_load(store, &loaded, err), MS_E_CONFIG, "state.db: job 3 is not to my taste");
}
END_TEST

START_TEST(what_was_committed_survives_a_kill)
{
    store_close(store);
    store = NULL;
    int pipes[2];
    ck_assert_int_eq(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        if (store_open(path, &store, NULL) != 0) {
            _exit(1);
        }
        for (uint64_t id = 1; id <= 1000; id++) {
            struct sched_job_row job = make_job(id);
            if (put(&job) < 0 || write(pipes[1], &id, sizeof(id)) != sizeof(id)) {
                _exit(1);
            }
        }
        pause();
    }
    uint64_t acknowledged = 0;
    while (acknowledged < 300 && read(pipes[0], &acknowledged, sizeof(acknowledged)) > 0) {
    }
    kill(child, SIGKILL);
    close(pipes[1]);
    while (read(pipes[0], &acknowledged, sizeof(acknowledged)) > 0) {
    }
    close(pipes[0]);
    waitpid(child, NULL, 0);

    ck_ms_ok(store_open(path, &store, err));
    load();

    ck_assert_uint_ge(acknowledged, 300);
    ck_assert_uint_ge(loaded.jobs_n, acknowledged);
    ck_assert_uint_le(loaded.jobs_n, acknowledged + 1);
    ck_assert_uint_eq(loaded.sum, loaded.jobs_n * (loaded.jobs_n + 1) / 2);
}
END_TEST

START_TEST(a_commit_without_memory_changes_nothing_and_can_be_repeated)
{
    enum { ROOM_MAX = 256 << 10, STEP = 512 };
    uint64_t id = 0;
    int refused = 0;
    for (int64_t room = 0; room < ROOM_MAX; room += STEP) {
        struct sched_job_row job = make_job(++id);
        (void)sqlite3_release_memory(INT32_MAX);
        (void)sqlite3_hard_heap_limit64(sqlite3_memory_used() + room + 1);
        int rc = put(&job);
        (void)sqlite3_hard_heap_limit64(0);
        if (rc < 0) {
            ck_assert_int_eq(rc, MS_E_NOMEM);
            refused++;
            ck_assert_int_eq(put(&job), 0);
        }
    }

    ck_assert_int_gt(refused, 0);
    reopen();
    ck_assert_uint_eq(loaded.jobs_n, id);
}
END_TEST

START_TEST(any_write_that_fails_loses_nothing_that_was_acknowledged)
{
    int complete = 0;
    for (int64_t nth = 0; !complete; nth++) {
        reopen();
        size_t before = loaded.jobs_n;
        calls_left = nth;
        call_failed = 0;
        struct sched_job_row job = make_job(before + 1);
        int rc = put(&job);
        complete = !call_failed;
        calls_left = INT64_MAX;
        ck_assert(rc == 0 || rc == MS_E_IO);
        ck_assert(complete ? rc == 0 : 1);

        reopen();

        ck_assert_uint_ge(loaded.jobs_n, rc == 0 ? before + 1 : before);
        ck_assert_uint_le(loaded.jobs_n, before + 1);
    }
    ck_assert_int_gt(calls_seen, 3);
}
END_TEST

/* The promise itself: the power fails at the n-th call, for every n, and of what was not synced
 * some part is lost: all of it (round 0) or a random half. The database opens, and whatever was
 * acknowledged is in it. */
START_TEST(a_power_cut_at_any_call_loses_nothing_that_was_acknowledged)
{
    enum { PUTS = 3 };
    int complete = 0;
    int cuts = 0;
    for (int64_t nth = 0; !complete; nth++) {
        reopen();
        size_t before = loaded.jobs_n;
        size_t acknowledged = 0;
        keeps_undos = 1;
        calls_left = nth;
        call_failed = 0;
        for (size_t i = 1; i <= PUTS; i++) {
            struct sched_job_row job = make_job(before + i);
            acknowledged += put(&job) == 0;
        }
        store_close(store); /* folds the log in: its calls fail, too */
        store = NULL;
        complete = !call_failed;
        calls_left = INT64_MAX;
        keeps_undos = 0;
        cuts += undos != NULL;
        cut_power((unsigned)(nth * 1000 + _i), _i == 0 ? 100 : 50);

        ck_ms_ok(store_open(path, &store, err));
        load();

        ck_assert_uint_ge(loaded.jobs_n, before + acknowledged);
        ck_assert_uint_le(loaded.jobs_n, before + PUTS);
        ck_assert(!complete || acknowledged == PUTS);
    }
    ck_assert_int_gt(cuts, 3); /* there was something to lose */
}
END_TEST

START_TEST(a_commit_is_synced_before_it_returns)
{
    struct sched_job_row job = make_job(1);
    ck_assert_int_eq(put(&job), 0);
    struct sched_job_row next = make_job(2);
    calls_seen = 0;

    ck_assert_int_eq(put(&next), 0);

    /* frames of the WAL, and the fdatasync behind them */
    int before = calls_seen;
    ck_assert_int_ge(before, 2);
    struct sched_effect nothing = {.kind = SCHED_DO_LOG};
    ck_ms_ok(store_commit(store, &nothing, 1, err));
    ck_assert_int_eq(calls_seen, before); /* nothing to write costs nothing */
}
END_TEST

START_TEST(the_log_of_writes_stays_bounded)
{
    char wal[160];
    snprintf(wal, sizeof(wal), "%s-wal", path);
    static uint8_t spec[MS_SPEC_MAX];
    memset(spec, 'x', sizeof(spec));
    struct sched_job_row job = make_job(1);
    job.spec = spec;
    job.spec_bytes = sizeof(spec);
    for (int i = 0; i < 400; i++) { /* 100 MiB of writes to one row */
        struct sched_effect effect = {.kind = SCHED_DO_PUT_JOB, .job = &job};
        ck_ms_ok(store_commit(store, &effect, 1, err));
    }

    struct stat st;
    ck_assert_int_eq(stat(wal, &st), 0);
    ck_assert_int_lt(st.st_size, 80 << 20);
    ck_assert_int_eq(store_idle(store), 0);
    store_close(store); /* a clean end leaves no log */
    store = NULL;
    ck_assert(stat(wal, &st) != 0 || st.st_size == 0);
    ck_ms_ok(store_open(path, &store, err));
}
END_TEST

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

START_TEST(a_hundred_thousand_jobs_load_in_a_second)
{
    enum { JOBS = 100000, BATCH = 1000 };
    static struct sched_job_row jobs[BATCH];
    static struct sched_effect effects[BATCH];
    static uint8_t
        spec[1500]; /* the samples, with all defaults filled in, have 900 to 1500 bytes */
    memset(spec, ' ', sizeof(spec));
    for (uint64_t at = 0; at < JOBS; at += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++) {
            jobs[i] = make_job(at + i + 1);
            jobs[i].spec = spec;
            jobs[i].spec_bytes = sizeof(spec);
            effects[i] = (struct sched_effect){.kind = SCHED_DO_PUT_JOB, .job = &jobs[i]};
        }
        ck_ms_ok(store_commit(store, effects, BATCH, err));
    }
    store_close(store);
    store = NULL;

    int64_t before = now_ms();
    ck_ms_ok(store_open(path, &store, err));
    int64_t opened = now_ms();
    load();
    int64_t after = now_ms();

    ck_assert_uint_eq(loaded.jobs_n, JOBS);
    printf("store: 100000 jobs: open %lld ms, load %lld ms\n", (long long)(opened - before),
           (long long)(after - opened));
    /* the bound is 1 s on a quiet machine; this one may stand still */
    ck_assert_int_lt(after - before, 20000);
}
END_TEST

/* ---- damage: never silent -----------------------------------------------------------------------
 */

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

    ck_ms_fails(store_load(store, &loaded, err), MS_E_IO, "cannot be folded in");

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

START_TEST(after_a_checkpoint_that_failed_nothing_is_acknowledged_any_more)
{
    struct sched_job_row job = make_job(1);
    struct sched_effect effect = {.kind = SCHED_DO_PUT_JOB, .job = &job};
    ck_assert_int_eq(put(&job), 0); /* folded in at once, for it says where the database lies */
    job = make_job(2);
    ck_assert_int_eq(put(&job), 0);
    calls_left = 0;

    store_idle(store);

    calls_left = INT64_MAX;
    ck_assert_int_eq(call_failed, 1);
    ck_ms_fails(store_commit(store, &effect, 1, err), MS_E_IO, "what the disk holds is unknown");
}
END_TEST

START_TEST(an_idle_scheduler_leaves_an_empty_log_of_writes)
{
    struct sched_job_row job = make_job(1);
    ck_assert_int_eq(put(&job), 0);

    ck_assert_int_eq(store_idle(store), 0);

    struct bytes wal = slurp("-wal");
    ck_assert_uint_eq(wal.size, 0);
    free(wal.data);
}
END_TEST

/* In the place of ours, which is closed. */
static void place_golden(const char *name)
{
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    char golden[512];
    snprintf(golden, sizeof(golden), "%s/tests/golden/%s", root != NULL ? root : ".", name);
    FILE *from = fopen(golden, "rb");
    ck_assert_msg(from != NULL, "%s is missing", golden);
    store_close(store);
    store = NULL;
    unlink(path);
    FILE *to = fopen(path, "wb");
    int c;
    while ((c = getc(from)) != EOF) {
        putc(c, to);
    }
    fclose(from);
    fclose(to);
}

static void take_golden(const char *name)
{
    place_golden(name);
    ck_ms_ok(store_open(path, &store, err));
    load();
}

static void check_golden(void)
{
    ck_assert_uint_eq(loaded.jobs_n, 7); /* one in each state */
    for (size_t i = 0; i < 7; i++) {
        ck_assert_uint_eq(loaded.jobs[i].id, i + 1);
        ck_assert_int_eq(loaded.jobs[i].state, (int)i);
    }
    ck_assert_str_eq(loaded.jobs[2].name, "job-3");
    ck_assert_str_eq(loaded.spec, "{\"workers\":2}");
    ck_assert_uint_eq(loaded.members_n, 2);
    ck_assert_uint_eq(loaded.members[1].incarnation, UINT64_MAX - 1);
    ck_assert_uint_eq(loaded.generation, 12);
}

START_TEST(the_frozen_database_of_version_1_still_loads)
{
    take_golden("store-v1.db");

    check_golden();
    char owner[32];
    snprintf(owner, sizeof(owner), "%s", loaded.jobs[2].owner); /* it was "uid 1000" */
    ck_assert(strncmp(owner, "uid:1000", 8) == 0 || strncmp(owner, "user:", 5) == 0);
    ck_assert_str_eq(loaded.jobs[2].cancel_text, ""); /* what 0.1 did not know */
    ck_assert_uint_eq(loaded.jobs[2].results_bytes, 0);
    ck_assert_uint_eq(loaded.jobs[2].n_tries, 0);
    ck_assert_str_eq(loaded.members[1].principal, "");
    ck_assert_uint_eq(loaded.members[1].generation, loaded.jobs[2].generation);
}
END_TEST

/* Its own release must be able to open it again. */
START_TEST(an_older_database_that_is_refused_stays_as_it_was)
{
    place_golden("store-v1.db");
    sql("UPDATE job SET workers = 77 WHERE id = 4");
    struct bytes before = slurp("");
    struct ms_err why = {0, ""};

    ck_ms_ok(store_open(path, &store, err));
    ck_assert_int_eq(store_load(store, &loaded, &why), MS_E_CONFIG);
    ck_assert_ptr_nonnull(strstr(why.text, "not to my taste"));
    store_close(store);
    store = NULL;

    struct bytes after = slurp("");
    ck_assert_uint_eq(after.size, before.size);
    ck_assert_mem_eq(after.data, before.data, after.size);
    ck_assert_int_eq(ask("PRAGMA user_version"), 1);
    free(before.data);
    free(after.data);
}
END_TEST

START_TEST(the_frozen_database_of_version_2_still_loads)
{
    take_golden("store-v2.db");

    check_golden();
    ck_assert_int_eq(store_is_copy(store), 1);
    ck_assert_str_eq(loaded.jobs[2].owner, "user:alice");
    ck_assert_str_eq(loaded.jobs[2].cancel_text, "cancelled by alice");
    ck_assert_str_eq(loaded.results, "results");
    ck_assert_uint_eq(loaded.jobs[2].n_tries, 2);
    ck_assert_str_eq(loaded.members[1].principal, "worker:b");
    ck_assert_str_eq(loaded.members[1].state, "training");
    ck_assert_uint_eq(loaded.next_event, 10);
    ck_assert_str_eq(loaded.event_principal, "user:alice");
    ck_assert_uint_eq(store_secret(store)[0], 0x88); /* as it was drawn that day */
}
END_TEST

/* test_store --freeze FILE writes the database that tests/golden keeps. */
static int freeze(const char *target)
{
    snprintf(path, sizeof(path), "%s", target);
    if (store_open(path, &store, NULL) != 0) {
        return 1;
    }
    for (uint64_t id = 1; id <= JOB_STATES; id++) {
        struct sched_job_row job = make_job(id);
        job.state = (enum sched_job_state)(id - 1);
        snprintf(job.owner, sizeof(job.owner), "user:alice");
        snprintf(job.cancel_text, sizeof(job.cancel_text), "cancelled by alice");
        job.results = (const uint8_t *)"results";
        job.results_bytes = 7;
        job.n_tries = 2;
        if (put(&job) != 0) {
            return 1;
        }
    }
    struct sched_member_row members[] = {{.job = 3,
                                          .rank = 0,
                                          .node_id = "w0",
                                          .incarnation = 1,
                                          .host_name = "a",
                                          .principal = "worker:a",
                                          .state = "training"},
                                         {.job = 3,
                                          .rank = 1,
                                          .node_id = "w1",
                                          .incarnation = UINT64_MAX - 1,
                                          .host_name = "b",
                                          .principal = "worker:b",
                                          .state = "training",
                                          .generation = 12,
                                          .step = 5,
                                          .pid = 77}};
    struct sched_event_row event = {9,    1700000000000, "job.started", 3,
                                    "w1", "user:alice",  "with plan aa"};
    struct sched_effect effects[] = {
        {.kind = SCHED_DO_PUT_MEMBER, .member = &members[0]},
        {.kind = SCHED_DO_PUT_MEMBER, .member = &members[1]},
        {.kind = SCHED_DO_PUT_EVENT, .event = &event},
        {.kind = SCHED_DO_PUT_META, .meta_key = "generation", .meta_value = 12}};
    int rc = store_commit(store, effects, 4, NULL);
    store_close(store);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--freeze") == 0) {
        return freeze(argv[2]);
    }
    Suite *suite = suite_create("store");
    TCase *tcase = tcase_create("store");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, every_column_comes_back_as_it_was_put);
    tcase_add_test(tcase, an_update_without_a_spec_keeps_the_spec);
    tcase_add_test(tcase, events_survive_a_restart_and_their_numbers_go_on);
    tcase_add_test(tcase, the_description_of_a_job_is_read_back_as_an_answer);
    tcase_add_test(tcase, an_update_of_a_job_that_is_not_there_is_an_error);
    tcase_add_test(tcase, dropping_a_job_drops_its_members);
    tcase_add_test(tcase, members_of_one_job_are_dropped_and_of_another_kept);
    tcase_add_test(tcase, numbers_of_a_peer_that_sqlite_cannot_hold_do_not_stop_it);
    tcase_add_test(tcase, a_second_daemon_is_refused_with_the_pid_of_the_first);
    tcase_add_test(tcase, another_program_inside_the_database_is_refused);
    tcase_add_test(tcase, a_database_of_another_program_is_left_alone);
    tcase_add_test(tcase, a_newer_schema_is_refused);
    tcase_add_test(tcase, garbage_is_refused_with_the_command_that_restores_and_kept);
    tcase_add_test(tcase, a_damaged_page_is_noticed_before_the_start);
    tcase_add_test(tcase, a_member_without_a_job_is_noticed_before_the_start);
    tcase_add_test(tcase, a_missing_folder_says_who_must_own_it);
    tcase_add_test(tcase, a_row_that_the_core_refuses_names_the_database);
    tcase_add_test(tcase, what_was_committed_survives_a_kill);
    tcase_add_test(tcase, a_commit_without_memory_changes_nothing_and_can_be_repeated);
    tcase_add_test(tcase, any_write_that_fails_loses_nothing_that_was_acknowledged);
    tcase_add_loop_test(tcase, a_power_cut_at_any_call_loses_nothing_that_was_acknowledged, 0, 20);
    tcase_add_test(tcase, a_commit_is_synced_before_it_returns);
    tcase_add_test(tcase, the_log_of_writes_stays_bounded);
    tcase_add_test(tcase, a_hundred_thousand_jobs_load_in_a_second);
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
    tcase_add_test(tcase, a_start_writes_the_log_once_more_before_it_folds_it_in);
    tcase_add_test(tcase, after_a_checkpoint_that_failed_nothing_is_acknowledged_any_more);
    tcase_add_test(tcase, an_idle_scheduler_leaves_an_empty_log_of_writes);
    tcase_add_test(tcase, the_frozen_database_of_version_1_still_loads);
    tcase_add_test(tcase, an_older_database_that_is_refused_stays_as_it_was);
    tcase_add_test(tcase, the_frozen_database_of_version_2_still_loads);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
