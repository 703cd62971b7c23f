/* test_store.c - the database: what was committed is there, and frozen ones still load */
#include "tests/store_ask.h"
#include "tests/unit/store_fixture.h"

#include "proto/clock.h"
#include "proto/digest.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

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
                                      "w1", "user:alice",  "plan ä",      ""};
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
    for (uint64_t id = 1; id <= 2; id++) { /* the second is not there */
        struct ms_wire_header header;
        ProtobufCMessage *msg = NULL;
        size_t size = 0;

        uint8_t *frame = store_ask(store, SCHED_READ_SPEC, 5, id, &size);

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

    ck_ms_fails(store_load(store, &loaded, err), MS_E_CONFIG,
                "state.db is damaged: job 3 is not to my taste. Keep it and put a copy back: ");
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

    int64_t before = ms_mono_ms();
    ck_ms_ok(store_open(path, &store, err));
    int64_t opened = ms_mono_ms();
    load();
    int64_t after = ms_mono_ms();

    ck_assert_uint_eq(loaded.jobs_n, JOBS);
    printf("store: 100000 jobs: open %lld ms, load %lld ms\n", (long long)(opened - before),
           (long long)(after - opened));
    /* the bound is 1 s on a quiet machine; this one may stand still */
    ck_assert_int_lt(after - before, 20000);
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

START_TEST(the_frozen_database_of_version_3_still_loads)
{
    take_golden("store-v3.db");

    check_golden();
    ck_assert_str_eq(loaded.jobs[2].cancel_text, "cancelled by alice");
    ck_assert_str_eq(loaded.jobs[0].plan, loaded.plan_sha256);
    ck_assert(loaded.jobs[0].plan_given && !loaded.jobs[2].plan_given);
    ck_assert_str_eq(loaded.jobs[3].plan, "");
    ck_assert_uint_eq(loaded.plans_n, 1);
    ck_assert_str_eq(loaded.plan, "msched plan 1\nsection memory\nend\n");
}
END_TEST

START_TEST(the_frozen_database_of_version_4_still_loads)
{
    take_golden("store-v4.db");

    check_golden();
    ck_assert_uint_eq(loaded.plans_n, 1);
    ck_assert_uint_eq(loaded.asides_n, 1);
    ck_assert_str_eq(loaded.aside.key, "=worker:b");
    ck_assert_str_eq(loaded.aside.name, "b");
    ck_assert_int_eq(loaded.aside.until_ms, 1700003600000);
    ck_assert_str_eq(loaded.aside.why, "rank 1 was lost");
}
END_TEST

/* Event 9, as who asks is told it. */
static void check_event(const char *facts)
{
    struct sched_read read = {
        .kind = SCHED_READ_EVENTS, .after = 8, .last = 9, .node_id = "", .limit = 10};
    size_t size = 0;
    uint8_t *frame = store_answer(store, &read, &size);
    ProtobufCMessage *msg = NULL;
    ck_assert_ptr_nonnull(frame);
    ck_ms_ok(ms_wire_unpack(MS_MSG_EVENT_LIST, frame + MS_WIRE_HEADER, size - MS_WIRE_HEADER, &msg,
                            err));
    const Ms__EventList *list = (const Ms__EventList *)msg;
    ck_assert_uint_eq(list->n_events, 1);
    ck_assert_str_eq(list->events[0]->text, "with plan aa");
    ck_assert_str_eq(list->events[0]->facts, facts);
    ms_wire_free(msg);
    free(frame);
}

START_TEST(the_frozen_database_of_version_5_still_loads)
{
    take_golden("store-v5.db");

    check_golden();
    ck_assert_uint_eq(loaded.asides_n, 1);
    check_event("{\"generation\":12}");
}
END_TEST

/* What an older one did not know. */
START_TEST(events_of_an_older_database_have_no_facts)
{
    take_golden("store-v4.db");

    check_event("");
}
END_TEST

START_TEST(a_host_is_set_aside_once_and_no_more_when_it_is_over)
{
    struct sched_aside_row row = {.key = "#b", .name = "b", .until_ms = 5, .why = "once"};
    struct sched_effect put_it = {.kind = SCHED_DO_PUT_ASIDE, .aside = &row};
    struct sched_effect drop_it = {.kind = SCHED_DO_DROP_ASIDE, .aside = &row};
    ck_assert_int_eq(store_commit(store, &put_it, 1, NULL), 0);
    row.until_ms = 9;
    snprintf(row.why, sizeof(row.why), "once more");
    ck_assert_int_eq(store_commit(store, &put_it, 1, NULL), 0);
    reopen();
    ck_assert_uint_eq(loaded.asides_n, 1);
    ck_assert_int_eq(loaded.aside.until_ms, 9);
    ck_assert_str_eq(loaded.aside.why, "once more");

    ck_assert_int_eq(store_commit(store, &drop_it, 1, NULL), 0);
    reopen();
    ck_assert_uint_eq(loaded.asides_n, 0);
}
END_TEST

/* New sums go over what the old ones held for, and over nothing else. */
START_TEST(an_older_database_that_is_damaged_is_not_made_whole)
{
    static const struct {
        const char *damage, *words;
    } cases[] = {
        {"UPDATE job SET workers = 3 WHERE id = 4", "row 4 of its table job does not match"},
        {"UPDATE ledger SET rows = rows + 1 WHERE name = 'job'", "and its ledger says 8"},
        {"CREATE TABLE more(x)", "its schema does not match"}};
    struct ms_err why = {0, ""};
    place_golden("store-v2.db");
    sql(cases[_i].damage);

    int rc = store_open(path, &store, &why);
    rc = rc == 0 ? store_load(store, &loaded, &why) : rc;

    ck_assert_int_eq(rc, MS_E_CONFIG);
    ck_assert_msg(strstr(why.text, cases[_i].words) != NULL, "%s", why.text);
}
END_TEST

/* test_store --freeze FILE writes the database that tests/golden keeps. */
static int freeze(const char *target)
{
    snprintf(path, sizeof(path), "%s", target);
    if (store_open(path, &store, NULL) != 0) {
        return 1;
    }
    struct sched_plan_row plan = {.text = "msched plan 1\nsection memory\nend\n"};
    struct sched_effect put_plan = {.kind = SCHED_DO_PUT_PLAN, .plan = &plan};
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256(plan.text, strlen(plan.text), digest);
    ms_sha256_hex(digest, plan.sha256);
    if (store_commit(store, &put_plan, 1, NULL) != 0) {
        return 1;
    }
    for (uint64_t id = 1; id <= JOB_STATES; id++) {
        struct sched_job_row job = make_job(id);
        snprintf(job.plan, sizeof(job.plan), "%s", id <= 3 ? plan.sha256 : "");
        job.plan_given = id == 1;
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
    struct sched_event_row event = {9,    1700000000000, "job.started",  3,
                                    "w1", "user:alice",  "with plan aa", "{\"generation\":12}"};
    struct sched_aside_row aside = {
        .key = "=worker:b", .name = "b", .until_ms = 1700003600000, .why = "rank 1 was lost"};
    struct sched_effect effects[] = {
        {.kind = SCHED_DO_PUT_MEMBER, .member = &members[0]},
        {.kind = SCHED_DO_PUT_MEMBER, .member = &members[1]},
        {.kind = SCHED_DO_PUT_EVENT, .event = &event},
        {.kind = SCHED_DO_PUT_ASIDE, .aside = &aside},
        {.kind = SCHED_DO_PUT_META, .meta_key = "generation", .meta_value = 12}};
    int rc = store_commit(store, effects, 5, NULL);
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
    tcase_add_test(tcase, a_missing_folder_says_who_must_own_it);
    tcase_add_test(tcase, a_row_that_the_core_refuses_names_the_database);
    tcase_add_test(tcase, what_was_committed_survives_a_kill);
    tcase_add_test(tcase, a_commit_without_memory_changes_nothing_and_can_be_repeated);
    tcase_add_test(tcase, any_write_that_fails_loses_nothing_that_was_acknowledged);
    tcase_add_loop_test(tcase, a_power_cut_at_any_call_loses_nothing_that_was_acknowledged, 0, 20);
    tcase_add_test(tcase, a_commit_is_synced_before_it_returns);
    tcase_add_test(tcase, the_log_of_writes_stays_bounded);
    tcase_add_test(tcase, a_hundred_thousand_jobs_load_in_a_second);
    tcase_add_test(tcase, after_a_checkpoint_that_failed_nothing_is_acknowledged_any_more);
    tcase_add_test(tcase, an_idle_scheduler_leaves_an_empty_log_of_writes);
    tcase_add_test(tcase, the_frozen_database_of_version_1_still_loads);
    tcase_add_test(tcase, an_older_database_that_is_refused_stays_as_it_was);
    tcase_add_test(tcase, the_frozen_database_of_version_2_still_loads);
    tcase_add_test(tcase, the_frozen_database_of_version_3_still_loads);
    tcase_add_test(tcase, the_frozen_database_of_version_4_still_loads);
    tcase_add_test(tcase, the_frozen_database_of_version_5_still_loads);
    tcase_add_test(tcase, events_of_an_older_database_have_no_facts);
    tcase_add_test(tcase, a_host_is_set_aside_once_and_no_more_when_it_is_over);
    tcase_add_loop_test(tcase, an_older_database_that_is_damaged_is_not_made_whole, 0, 3);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
