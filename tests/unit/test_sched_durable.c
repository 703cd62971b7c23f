/* test_sched_durable.c - what the core tells others about the database, and what outlives a restart
 *
 * Rows that a tick puts are kept here and loaded into a second core, as the store would. */
#include "tests/unit/sched_fixture.h"

enum { ROWS_MAX = 16, AT_MS = 1000000 };

static struct on_disk {
    struct sched_job_row jobs[ROWS_MAX];
    uint8_t results[ROWS_MAX][4096];
    uint8_t specs[ROWS_MAX][64];
    struct sched_member_row members[ROWS_MAX];
    size_t n_jobs, n_members;
    uint64_t ticks, generation, next_job, next_event;
} disk;

static void keep_job(const struct sched_job_row *row)
{
    size_t at = 0;
    while (at < disk.n_jobs && disk.jobs[at].id != row->id) {
        at++;
    }
    ck_assert_uint_lt(at, ROWS_MAX);
    size_t spec_bytes = at < disk.n_jobs ? disk.jobs[at].spec_bytes : 0;
    disk.jobs[at] = *row;
    memcpy(disk.results[at], row->results != NULL ? row->results : (const uint8_t *)"",
           row->results_bytes);
    disk.jobs[at].results = disk.results[at];
    if (row->spec != NULL) {
        memcpy(disk.specs[at], row->spec, row->spec_bytes);
        spec_bytes = row->spec_bytes;
    }
    disk.jobs[at].spec = disk.specs[at];
    disk.jobs[at].spec_bytes = spec_bytes;
    disk.jobs[at].plan_text = FIX_PLAN; /* where it has one */
    disk.n_jobs += at == disk.n_jobs;
}

static void keep_member(const struct sched_member_row *row)
{
    size_t at = 0;
    while (at < disk.n_members &&
           (disk.members[at].job != row->job || disk.members[at].rank != row->rank)) {
        at++;
    }
    ck_assert_uint_lt(at, ROWS_MAX);
    disk.members[at] = *row;
    disk.n_members += at == disk.n_members;
}

static void keep(void)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind == SCHED_DO_PUT_JOB) {
            keep_job(effects[i].job);
        } else if (effects[i].kind == SCHED_DO_PUT_MEMBER) {
            keep_member(effects[i].member);
        } else if (effects[i].kind == SCHED_DO_PUT_META) {
            uint64_t *to = strcmp(effects[i].meta_key, "ticks") == 0        ? &disk.ticks
                           : strcmp(effects[i].meta_key, "generation") == 0 ? &disk.generation
                           : strcmp(effects[i].meta_key, "next_event") == 0 ? &disk.next_event
                                                                            : &disk.next_job;
            *to = effects[i].meta_value;
        }
    }
}

static struct sched_config durable(void)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    memset(cfg.stamp_secret, 9, sizeof(cfg.stamp_secret));
    return cfg;
}

static void begin(void)
{
    memset(&disk, 0, sizeof(disk));
    struct sched_config cfg = durable();
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

/* All jobs here have the same one. */
static void load_plan(void)
{
    for (size_t i = 0; i < disk.n_jobs; i++) {
        if (disk.jobs[i].plan[0] != '\0') {
            struct sched_plan_row row = {.text = FIX_PLAN, .bytes = strlen(FIX_PLAN)};
            memcpy(row.sha256, disk.jobs[i].plan, sizeof(row.sha256));
            ck_ms_ok(sched_load_plan(fix.s, &row, err));
            return;
        }
    }
}

static void restart_with(const struct sched_config *cfg)
{
    fix_create(cfg);
    load_plan();
    for (size_t i = 0; i < disk.n_jobs; i++) {
        ck_ms_ok(sched_load_job(fix.s, &disk.jobs[i], err));
    }
    for (size_t i = 0; i < disk.n_members; i++) {
        ck_ms_ok(sched_load_member(fix.s, &disk.members[i], err));
    }
    ck_ms_ok(sched_load_meta(fix.s, "ticks", disk.ticks, err));
    ck_ms_ok(sched_load_meta(fix.s, "generation", disk.generation, err));
    ck_ms_ok(sched_load_meta(fix.s, "next_job", disk.next_job, err));
    ck_ms_ok(sched_load_meta(fix.s, "next_event", disk.next_event, err));
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    ck_ms_ok(sched_check(fix.s, err));
}

static void restart(void)
{
    struct sched_config cfg = durable();
    restart_with(&cfg);
}

/* ---- stamps -------------------------------------------------------------------------------------
 */

static uint8_t stamp[MS_STAMP_LEN];

static void take_stamp(const ProtobufCBinaryData *from)
{
    ck_assert_uint_eq(from->len, MS_STAMP_LEN);
    memcpy(stamp, from->data, MS_STAMP_LEN);
}

/* Submits, and takes what the answer tells. */
static uint64_t submit(void)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(2);
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    keep();
    const Ms__Submitted *answer = fix_heard(conn, MS_MSG_SUBMITTED);
    ck_assert_ptr_nonnull(answer);
    take_stamp(&answer->stamp);
    return answer->job;
}

static uint64_t register_with(const char *id, const uint8_t *bytes)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, 7);
    msg.stamp = (ProtobufCBinaryData){bytes != NULL ? MS_STAMP_LEN : 0, (uint8_t *)bytes};
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

START_TEST(each_tick_that_writes_has_the_next_number)
{
    begin();
    submit();
    ck_assert_uint_eq(disk.ticks, 1);
    submit();
    ck_assert_uint_eq(disk.ticks, 2);
    register_with("w9", NULL); /* writes nothing */
    ck_assert_ptr_null(fix_effect(SCHED_DO_PUT_META));
}
END_TEST

START_TEST(a_stamp_of_what_is_there_is_let_pass)
{
    begin();
    submit();
    restart();

    uint64_t conn = register_with("w9", stamp);

    const Ms__Registered *answer = fix_heard(conn, MS_MSG_REGISTERED);
    ck_assert_ptr_nonnull(answer);
    ck_assert_mem_eq(answer->stamp.data, stamp, MS_STAMP_LEN); /* the same number, told again */
}
END_TEST

START_TEST(a_node_that_knows_more_than_the_database_stops_the_scheduler)
{
    begin();
    submit();
    uint64_t before = disk.ticks;
    submit();
    disk.ticks = before; /* the second one was rolled back */
    disk.n_jobs = 1;
    restart();

    uint64_t conn = register_with("w9", stamp);

    fix_refused(conn, MS_E_CLOSED, "--accept-loss");
    const struct sched_effect *end = fix_effect(SCHED_DO_EXIT);
    ck_assert_ptr_nonnull(end);
    ck_assert_int_eq(end->status, 78);
    ck_assert_ptr_nonnull(strstr(end->text, "lacks writes that were acknowledged"));
    uint64_t client = fix_open(MS_ROLE_USER, "alice"); /* and nothing new is taken meanwhile */
    Ms__Submit msg = fix_job(1);
    fix_say(client, MS_MSG_SUBMIT, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(client, MS_MSG_ERROR));
}
END_TEST

START_TEST(a_client_that_knows_more_stops_it_too)
{
    begin();
    submit();
    disk.ticks = 0;
    disk.n_jobs = 0;
    restart();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(1);
    msg.stamp = (ProtobufCBinaryData){MS_STAMP_LEN, stamp};

    fix_say(conn, MS_MSG_SUBMIT, &msg.base);

    fix_refused(conn, MS_E_CLOSED, "alice was told 1");
    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
}
END_TEST

START_TEST(a_made_up_stamp_is_refused_and_stops_nothing)
{
    begin();
    submit();
    for (size_t at = 0; at < MS_STAMP_LEN; at++) {
        uint8_t forged[MS_STAMP_LEN];
        memcpy(forged, stamp, sizeof(forged));
        forged[at] ^= 0x40; /* a number far ahead, or another seal */

        uint64_t conn = register_with("w9", forged);

        fix_refused(conn, MS_E_FOREIGN, "not sealed by its database");
        ck_assert_int_eq(fix_logged("conn.foreign_stamp"), 1);
        ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
        fix_close(conn);
    }
    ck_assert_uint_eq(submit(), 2);
}
END_TEST

START_TEST(without_a_database_nothing_is_told_or_judged)
{
    fix_standing();
    uint8_t any[MS_STAMP_LEN] = {1};

    uint64_t conn = register_with("w9", any);

    const Ms__Registered *answer = fix_heard(conn, MS_MSG_REGISTERED);
    ck_assert_ptr_nonnull(answer);
    ck_assert_uint_eq(answer->stamp.len, 0);
}
END_TEST

START_TEST(a_copy_gives_no_id_and_no_generation_a_second_time)
{
    begin();
    uint8_t old[MS_STAMP_LEN];
    uint64_t first = submit();
    memcpy(old, stamp, sizeof(old));
    disk.generation = 5;
    disk.ticks--; /* older than what was told, and the operator has accepted that */
    struct sched_config cfg = durable();
    cfg.skip_ahead = AT_MS;
    restart_with(&cfg);

    fix_time();
    keep();

    ck_assert_uint_eq(disk.next_job, AT_MS * MS_JOB_IDS_A_MS); /* stored by the very first tick */
    ck_assert_uint_eq(disk.generation, AT_MS * MS_GENERATIONS_A_MS);
    ck_assert_uint_gt(disk.ticks, AT_MS * MS_TICKS_A_MS);
    ck_assert_uint_gt(disk.next_event, AT_MS * MS_EVENTS_A_MS);
    ck_assert_ptr_nonnull(fix_heard(register_with("w9", old), MS_MSG_REGISTERED));
    ck_assert_uint_eq(first, 1);
    ck_assert_uint_eq(submit(), AT_MS * MS_JOB_IDS_A_MS);
    restart(); /* the next start goes on from there */
    ck_assert_uint_eq(submit(), AT_MS * MS_JOB_IDS_A_MS + 1);
}
END_TEST

START_TEST(a_copy_that_is_put_back_a_second_time_gives_no_number_of_the_first)
{
    uint8_t told[MS_STAMP_LEN];
    begin();
    struct sched_config cfg = durable();
    const struct on_disk copy = disk;
    cfg.skip_ahead = sched_skip_of(1700000000000);
    restart_with(&cfg);
    fix_time();
    keep();
    const uint64_t first = submit();
    const struct on_disk after = disk;
    memcpy(told, stamp, sizeof(told));

    disk = copy;
    cfg.skip_ahead = sched_skip_of(1700000000002);
    restart_with(&cfg);
    fix_time();
    keep();

    ck_assert_ptr_nonnull(fix_heard(register_with("w9", told), MS_MSG_REGISTERED)); /* no loss */
    ck_assert_uint_gt(submit(), first);
    ck_assert_uint_gt(disk.ticks, after.ticks);
    ck_assert_uint_gt(disk.generation, after.generation);
    ck_assert_uint_gt(disk.next_event, after.next_event);
}
END_TEST

START_TEST(what_a_job_says_of_recovery_is_stored_and_stays)
{
    for (int recovery = 0; recovery < 2; recovery++) {
        begin();
        uint64_t conn = fix_open(MS_ROLE_USER, "alice");
        Ms__Submit msg = fix_job(1);
        msg.recovery = recovery;
        fix_say(conn, MS_MSG_SUBMIT, &msg.base);
        keep();
        ck_assert_int_eq(disk.jobs[0].recovery, recovery);

        restart();
        (void)register_with("w0", NULL);
        keep(); /* it is placed, and its row written anew */

        ck_assert_int_eq(disk.jobs[0].state, JOB_PLACING);
        ck_assert_int_eq(disk.jobs[0].recovery, recovery);
    }
}
END_TEST

/* ---- what an ended job shows --------------------------------------------------------------------
 */

static void progress(uint64_t conn, uint64_t step, uint32_t epoch, double accuracy)
{
    Ms__Progress msg = MS__PROGRESS__INIT;
    msg.job = 1;
    msg.generation = 1;
    msg.step = step;
    msg.steps_total = 120;
    msg.epoch = epoch;
    msg.epochs = 3;
    msg.loss = 0.1 + 1.0 / (double)step;
    msg.samples_per_s = 1234.5;
    msg.phase = (char *)"evaluating";
    msg.has_eval = 1;
    msg.eval_loss = 0.3;
    msg.accuracy = accuracy;
    fix_say(conn, MS_MSG_PROGRESS, &msg.base);
    keep();
}

/* What `msctl show` gets, but for the spec, which the driver adds. */
static const Ms__JobInfo *shown(void)
{
    Ms__JobQuery msg = MS__JOB_QUERY__INIT;
    msg.job = 1;
    fix_say(fix_open(MS_ROLE_USER, "bob"), MS_MSG_JOB_QUERY, &msg.base);
    const struct sched_effect *effect = fix_effect(SCHED_DO_READ);
    ck_assert_ptr_nonnull(effect);
    ck_assert_uint_eq(effect->read->job, 1);
    return effect->read->list->jobs[0];
}

static size_t pack_shown(uint8_t *bytes, size_t size)
{
    const Ms__JobInfo *info = shown();
    size_t n = ms__job_info__get_packed_size(info);
    ck_assert_uint_le(n, size);
    return ms__job_info__pack(info, bytes);
}

/* The answer is packed after the tick; what it shows must not lie in what the tick let go. */
START_TEST(a_job_that_is_forgotten_in_the_same_tick_is_still_shown)
{
    struct sched_config cfg = durable();
    cfg.jobs_kept_max = 1;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    uint64_t node = fix_register("w0", 1);
    ck_assert_uint_eq(fix_submit(1, 0), 1);
    fix_ready(node, 1, 1, 0);
    fix_done(node, 1, 1, 0, MS_OK, "");
    ck_assert_uint_eq(fix_submit(1, 0), 2);
    fix_ready(node, 2, 2, 0);
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");

    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    query.job = 1;
    fix_say(bob, MS_MSG_JOB_QUERY, &query.base);
    const Ms__JobInfo *info = fix_effect(SCHED_DO_READ)->read->list->jobs[0];
    Ms__RankDone done = MS__RANK_DONE__INIT;
    done.job = 2;
    done.generation = 2;
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = node, .type = MS_MSG_RANK_DONE, .msg = &done.base};
    sched_apply(fix.s, &event, fix.now); /* in the same tick */

    ck_assert_str_eq(info->ranks[0]->node_id, "w0");
    ck_assert_str_eq(info->state, "SUCCEEDED");
    ck_assert_ptr_nonnull(strstr(info->reason, "finished"));
}
END_TEST

/* As they were stored while a phase could be cut in the middle of a letter. */
START_TEST(results_with_half_a_letter_are_shown_all_the_same)
{
    Ms__Progress last = MS__PROGRESS__INIT;
    Ms__JobResults results = MS__JOB_RESULTS__INIT;
    uint8_t bytes[64];
    last.phase = (char *)"evaluating \xc3";
    results.progress = &last;
    struct sched_job_row row = {.id = 1, .state = JOB_SUCCEEDED, .workers = 1, .generation = 1};
    row.results_bytes = ms__job_results__pack(&results, bytes);
    row.results = bytes;
    snprintf(row.reason, sizeof(row.reason), "the rank finished 120 steps");
    struct sched_member_row member = {.job = 1, .generation = 1, .state = "done"};
    snprintf(member.node_id, sizeof(member.node_id), "w0");
    struct sched_config cfg = durable();
    fix_create(&cfg);
    ck_ms_ok(sched_load_job(fix.s, &row, err));
    ck_ms_ok(sched_load_member(fix.s, &member, err));
    ck_ms_ok(sched_load_meta(fix.s, "generation", 1, err));
    ck_ms_ok(sched_load_meta(fix.s, "next_job", 2, err));
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    query.all = 1;

    fix_say(bob, MS_MSG_JOB_QUERY, &query.base);

    const Ms__JobList *list = fix_heard(bob, MS_MSG_JOB_LIST);
    ck_assert_ptr_nonnull(list);
    ck_assert_str_eq(list->jobs[0]->progress->phase, "evaluating ?");
}
END_TEST

/* For ever: a database of today is read tomorrow. Written again it has the same bytes. */
static Ms__JobResults *golden_results(const char *name)
{
    uint8_t golden[1024];
    uint8_t again[1024];
    char path[512];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    snprintf(path, sizeof(path), "%s/tests/golden/results/%s", root != NULL ? root : ".", name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    const size_t size = fread(golden, 1, sizeof(golden), file);
    fclose(file);
    Ms__JobResults *msg = ms__job_results__unpack(NULL, size, golden);
    ck_assert_ptr_nonnull(msg);
    ck_assert_ptr_null(msg->base.unknown_fields);
    ck_assert_uint_eq(ms__job_results__get_packed_size(msg), size);
    ms__job_results__pack(msg, again);
    ck_assert_mem_eq(again, golden, size);
    return msg;
}

START_TEST(results_are_written_as_the_golden_file_holds_them)
{
    Ms__JobResults *msg = golden_results("JobResults.1.bin");
    ck_assert_uint_eq(msg->progress->step, 120);
    ck_assert_uint_eq(msg->evals[0]->step, 60);
    ck_assert_str_eq(msg->formers[0]->principal, "host:h2");
    ck_assert_uint_eq(msg->last_step, 120);
    ms__job_results__free_unpacked(msg, NULL);
}
END_TEST

/* Ends job 1 in one of the ways that there are. */
static void end_it(uint64_t conns[2], int how)
{
    uint64_t alice = 0;
    switch (how) {
    case 0: /* well */
        fix_done(conns[0], 1, 1, 0, MS_OK, "");
        keep();
        fix_done(conns[1], 1, 1, 1, MS_OK, "");
        break;
    case 1: /* a rank fails */
        fix_done(conns[1], 1, 1, 1, MS_E_IO, "no space");
        break;
    case 2: /* a node is lost */
        fix_close(conns[0]);
        break;
    default:
        alice = fix_open(MS_ROLE_USER, "alice");
        fix_cancel(alice, 1, 0);
        break;
    }
    keep();
}

START_TEST(what_an_ended_job_shows_it_shows_after_a_restart)
{
    static uint8_t before[16384];
    static uint8_t after[16384];
    uint64_t conns[2];
    begin();
    conns[0] = fix_register("w0", 1);
    conns[1] = fix_register("w1", 2);
    submit();
    fix_ready(conns[0], 1, 1, 0);
    keep();
    fix_ready(conns[1], 1, 1, 1);
    keep();
    progress(conns[0], 40, 1, 0.5);
    progress(conns[0], 80, 2, 0.75);
    end_it(conns, _i);
    size_t n = pack_shown(before, sizeof(before));
    ck_assert_uint_eq(shown()->n_evals, 2);
    ck_assert_uint_eq(shown()->n_ranks, 2);

    restart();

    ck_assert_uint_eq(pack_shown(after, sizeof(after)), n);
    ck_assert_mem_eq(before, after, n);
    ck_assert(shown()->progress->accuracy == 0.75);
}
END_TEST

START_TEST(an_evaluation_takes_no_room_that_ends_may_need)
{
    begin();
    const uint64_t conns[2] = {fix_register("w0", 1), fix_register("w1", 2)};
    submit();
    fix_ready(conns[0], 1, 1, 0);
    fix_ready(conns[1], 1, 1, 1);
    sched_refuse_writes(fix.s, "no space left", 0);
    progress(conns[0], 40, 1, 0.5);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(fix_stored(1));
        fix_pass(MS_ROOM_LOOK_MS);
    }

    sched_refuse_writes(fix.s, "", 1);
    fix_pass(MS_ROOM_LOOK_MS);

    ck_assert_ptr_nonnull(fix_stored(1));
    ck_assert_uint_eq(fix_show(1)->n_evals, 1);
}
END_TEST

/* The first at once, those that follow it together. */
START_TEST(what_a_job_that_runs_has_evaluated_it_shows_after_a_restart)
{
    uint64_t conns[2];
    begin();
    conns[0] = fix_register("w0", 1);
    conns[1] = fix_register("w1", 2);
    submit();
    fix_ready(conns[0], 1, 1, 0);
    keep();
    fix_ready(conns[1], 1, 1, 1);
    keep();
    progress(conns[0], 40, 1, 0.5);
    fix_time();
    ck_assert_ptr_nonnull(fix_stored(1));
    keep();
    for (uint32_t epoch = 2; epoch < 6; epoch++) {
        progress(conns[0], 40 * epoch, epoch, 0.75);
        fix_time();
        ck_assert_ptr_null(fix_stored(1));
    }
    fix_pass(MS_EVALS_STORE_MS);
    ck_assert_ptr_nonnull(fix_stored(1));
    keep();

    restart();

    const Ms__JobInfo *info = fix_show(1);
    ck_assert_uint_eq(info->n_evals, 5);
    ck_assert(info->evals[0]->accuracy == 0.5);
    ck_assert_uint_eq(info->evals[4]->epoch, 5);
    ck_assert_ptr_null(info->progress); /* its ranks tell it again */
}
END_TEST

START_TEST(a_job_that_ended_in_the_queue_shows_no_ranks_before_and_after)
{
    static uint8_t before[4096];
    static uint8_t after[4096];
    begin();
    submit();
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 0);
    keep();
    size_t n = pack_shown(before, sizeof(before));

    restart();

    ck_assert_uint_eq(pack_shown(after, sizeof(after)), n);
    ck_assert_mem_eq(before, after, n);
}
END_TEST

/* ---- descriptions -------------------------------------------------------------------------------
 */

static uint8_t large_spec[MS_SPEC_MAX];

/* The connection submits n jobs of 256 KiB; returns how many were taken. */
static size_t submit_large(uint64_t conn, size_t n)
{
    size_t taken = 0;
    memset(large_spec, ' ', sizeof(large_spec));
    for (size_t i = 0; i < n; i++) {
        Ms__Submit msg = fix_job(2);
        msg.job_json = (ProtobufCBinaryData){sizeof(large_spec), large_spec};
        sched_begin_tick(fix.s);
        fix_drop_answers();
        struct sched_event event = {.kind = SCHED_EV_MESSAGE,
                                    .conn = conn,
                                    .type = MS_MSG_SUBMIT,
                                    .id = ++fix.frame,
                                    .msg = &msg.base};
        sched_apply(fix.s, &event, fix.now);
        fix_collect();
        taken += fix_heard(conn, MS_MSG_SUBMITTED) != NULL;
    }
    return taken;
}

enum { A_MIB = (1 << 20) / MS_SPEC_MAX }; /* jobs */

START_TEST(descriptions_of_one_owner_have_a_budget_and_of_all_another)
{
    begin();
    static const char *const owners[] = {"alice", "bob", "carol", "dave", "erin"};
    size_t taken = 0;
    for (size_t owner = 0; owner < MS_ARRAY_SIZE(owners); owner++) {
        uint64_t conn = fix_open(MS_ROLE_USER, owners[owner]);
        taken += submit_large(conn, MS_SPECS_OWNER_MIB * A_MIB + 1);
        fix_refused(conn, MS_E_FULL,
                    owner < 4 ? "65536 KiB are the limit of one" : "262144 KiB are the limit");
    }
    ck_assert_uint_eq(taken, MS_SPECS_MIB * A_MIB);

    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(alice, 1, 0); /* what has ended makes room */
    Ms__Submit msg = fix_job(2);
    msg.job_json = (ProtobufCBinaryData){sizeof(large_spec), large_spec};
    fix_say(alice, MS_MSG_SUBMIT, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_SUBMITTED));

    uint64_t root = fix_open(MS_ROLE_ADMIN, "root");
    ck_assert_uint_eq(submit_large(root, MS_SPECS_OWNER_MIB * A_MIB), MS_SPECS_ADMIN_MIB * A_MIB);
    fix_refused(root, MS_E_FULL, "32 that wait or run are of admin:root");
}
END_TEST

START_TEST(the_budget_of_descriptions_is_the_operators)
{
    struct sched_config cfg = {.specs_mib = 5, .specs_owner_mib = 3};
    begin();
    sched_set_policy(fix.s, &cfg);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");

    ck_assert_uint_eq(submit_large(alice, 5 * A_MIB), 3 * A_MIB);
    fix_refused(alice, MS_E_FULL, "3072 KiB are the limit of one (specs_owner_mib");
    ck_assert_uint_eq(submit_large(bob, 3 * A_MIB), 2 * A_MIB);
    fix_refused(bob, MS_E_FULL, "5120 KiB are the limit (specs_mib");

    cfg.specs_mib = cfg.specs_owner_mib = 6; /* a reload: what was taken stays */
    sched_set_policy(fix.s, &cfg);
    ck_assert_uint_eq(submit_large(alice, 2 * A_MIB), A_MIB);
    cfg.specs_mib = 1;
    sched_set_policy(fix.s, &cfg);
    ck_assert_uint_eq(submit_large(bob, 1), 0);
}
END_TEST

START_TEST(a_key_of_an_ended_job_is_still_compared_with_its_description)
{
    begin();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(2);
    msg.key = (char *)"k";
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    keep();
    fix_cancel(conn, 1, 0);
    keep();
    for (int round = 0; round < 2; round++) { /* and after a restart, which loads no description */
        fix_say(conn, MS_MSG_SUBMIT, &msg.base);
        const Ms__Submitted *again = fix_heard(conn, MS_MSG_SUBMITTED);
        ck_assert_ptr_nonnull(again);
        ck_assert_uint_eq(again->job, 1);
        Ms__Submit other = msg;
        other.job_json = (ProtobufCBinaryData){2, (uint8_t *)"[]"};
        fix_say(conn, MS_MSG_SUBMIT, &other.base);
        fix_refused(conn, MS_E_EXISTS, "another job");
        restart();
        conn = fix_open(MS_ROLE_USER, "alice");
    }
}
END_TEST

START_TEST(results_that_cannot_be_read_are_refused)
{
    struct sched_config cfg = durable();
    fix_create(&cfg);
    struct sched_job_row row = {.id = 1,
                                .state = JOB_FAILED,
                                .workers = 1,
                                .results = (const uint8_t *)"\xff\xff\xff",
                                .results_bytes = 3};

    ck_ms_fails(sched_load_job(fix.s, &row, err), MS_E_CONFIG, "results of job 1");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sched_durable");
    TCase *t = tcase_create("durable");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, what_a_job_says_of_recovery_is_stored_and_stays);
    tcase_add_test(t, each_tick_that_writes_has_the_next_number);
    tcase_add_test(t, a_stamp_of_what_is_there_is_let_pass);
    tcase_add_test(t, a_node_that_knows_more_than_the_database_stops_the_scheduler);
    tcase_add_test(t, a_client_that_knows_more_stops_it_too);
    tcase_add_test(t, a_made_up_stamp_is_refused_and_stops_nothing);
    tcase_add_test(t, without_a_database_nothing_is_told_or_judged);
    tcase_add_test(t, a_copy_gives_no_id_and_no_generation_a_second_time);
    tcase_add_test(t, a_copy_that_is_put_back_a_second_time_gives_no_number_of_the_first);
    tcase_add_loop_test(t, what_an_ended_job_shows_it_shows_after_a_restart, 0, 4);
    tcase_add_test(t, a_job_that_ended_in_the_queue_shows_no_ranks_before_and_after);
    tcase_add_test(t, a_job_that_is_forgotten_in_the_same_tick_is_still_shown);
    tcase_add_test(t, results_with_half_a_letter_are_shown_all_the_same);
    tcase_add_test(t, results_are_written_as_the_golden_file_holds_them);
    tcase_add_test(t, what_a_job_that_runs_has_evaluated_it_shows_after_a_restart);
    tcase_add_test(t, an_evaluation_takes_no_room_that_ends_may_need);
    tcase_add_test(t, descriptions_of_one_owner_have_a_budget_and_of_all_another);
    tcase_add_test(t, the_budget_of_descriptions_is_the_operators);
    tcase_add_test(t, a_key_of_an_ended_job_is_still_compared_with_its_description);
    tcase_add_test(t, results_that_cannot_be_read_are_refused);
    suite_add_tcase(s, t);
    return test_run(s);
}
