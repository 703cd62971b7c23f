/* test_sched_dynamic.c - the dynamic cluster: MindSpore's rules, with names and reasons */
#include "tests/unit/sched_fixture.h"

static const char *const job_text = "{\"network\":\"mnist\"}";

static Ms__Register worker(const char *id, uint64_t incarnation, uint32_t worker_num)
{
    Ms__Register msg = fix_node(id, incarnation);
    msg.worker_num = worker_num;
    msg.job_json.data = (uint8_t *)job_text;
    msg.job_json.len = strlen(job_text);
    return msg;
}

static uint64_t join(const char *id, uint64_t incarnation, uint32_t worker_num)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = worker(id, incarnation, worker_num);
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

START_TEST(job_begins_when_all_workers_are_here)
{
    fix_start(SCHED_DYNAMIC, 2);

    uint64_t first = join("b", 1, 2);
    const Ms__Registered *answer = fix_heard(first, MS_MSG_REGISTERED);
    ck_assert_uint_eq(answer->present, 1);
    ck_assert_uint_eq(answer->expected, 2);
    uint64_t second = join("a", 2, 2);

    const Ms__Assign *assign = fix_heard(first, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(assign);
    ck_assert_uint_eq(assign->job, 1);
    ck_assert_uint_eq(assign->rank, 1);
    ck_assert_uint_eq(assign->job_json.len, strlen(job_text));
    ck_assert_mem_eq(assign->job_json.data, job_text, strlen(job_text));
    ck_assert_ptr_nonnull(fix_heard(second, MS_MSG_ASSIGN));
    ck_assert_uint_eq(fix_stored(1)->workers, 2);
}
END_TEST

START_TEST(heartbeats_carry_present_and_expected)
{
    fix_start(SCHED_DYNAMIC, 3);
    uint64_t conn = join("a", 1, 3);

    fix_beat(conn);

    const Ms__HeartbeatAck *ack = fix_heard(conn, MS_MSG_HEARTBEAT_ACK);
    ck_assert_uint_eq(ack->present, 1);
    ck_assert_uint_eq(ack->expected, 3);
}
END_TEST

START_TEST(another_worker_num_is_refused_with_both_values)
{
    fix_start(SCHED_DYNAMIC, 8);

    uint64_t conn = join("w1", 1, 4);

    fix_refused(conn, MS_E_REFUSED, "MS_WORKER_NUM is 4 on worker w1");
    fix_refused(conn, MS_E_REFUSED, "and 8 on the scheduler");
}
END_TEST

static uint64_t join_with(const char *id, uint64_t incarnation, const char *text)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = worker(id, incarnation, 2);
    msg.job_json.data = (uint8_t *)text;
    msg.job_json.len = strlen(text);
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

static void start_recovering(int recovery)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 2);
    cfg.recovery = recovery;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

START_TEST(another_word_on_recovery_is_refused_with_both_values)
{
    static const char *const jobs[] = {"{\"network\":\"mnist\",\"recovery\":false,\"seed\":1}",
                                       "{\"network\":\"mnist\",\"recovery\":true,\"seed\":1}"};
    char says[96];
    start_recovering(_i);

    uint64_t odd = join_with("a", 1, jobs[!_i]);

    snprintf(says, sizeof(says), "MS_ENABLE_RECOVERY is %d on worker a", !_i);
    fix_refused(odd, MS_E_REFUSED, says);
    ck_assert_ptr_nonnull(fix_heard(join_with("a", 1, jobs[_i]), MS_MSG_REGISTERED));
    odd = join_with("b", 2, jobs[!_i]);
    snprintf(says, sizeof(says), "and %d on the scheduler", _i);
    fix_refused(odd, MS_E_REFUSED, says);
}
END_TEST

START_TEST(job_has_the_name_that_its_workers_brought)
{
    static const char *const jobs[][2] = {
        {"{\"name\":\"mnist-2\",\"network\":\"mnist\",\"recovery\":false}", "mnist-2"},
        {"{\"network\":\"mnist\"}", "dynamic"},
        {"{\"name\":\"a b\"}", "dynamic"},
        {"{\"name\":\"", "dynamic"},
        {"{\"name\":\"endless", "dynamic"}};
    start_recovering(0);

    join_with("a", 1, jobs[_i][0]);
    join_with("b", 2, jobs[_i][0]);

    ck_assert_str_eq(fix_show(1)->name, jobs[_i][1]);
}
END_TEST

START_TEST(worker_that_cannot_recover_is_refused_where_the_job_is_to)
{
    start_recovering(1);
    fix_level = 0;

    uint64_t conn = join("a", 1, 2);

    fix_level = MS_WIRE_LEVEL;
    fix_refused(conn, MS_E_REFUSED,
                "MS_ENABLE_RECOVERY is 1, and worker a (host h, pid 1001) is of a release (0.1)");
}
END_TEST

static void claim_of(Ms__Register *msg, const char *text)
{
    msg->job_json.data = (uint8_t *)text;
    msg->job_json.len = strlen(text);
    msg->job = 1;
    msg->generation = 3;
    msg->running = 1;
}

/* Whatever this one was started with. */
START_TEST(workers_of_an_earlier_scheduler_are_let_be_where_their_job_recovers)
{
    uint64_t conn;
    start_recovering(_i);
    conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = worker("0", 1, 5);
    claim_of(&msg, "{\"network\":\"mnist\",\"recovery\":true}");

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    fix_refused(conn, MS_E_NOT_FOUND,
                "worker 0 (host h, pid 1001) has rank 0 of job 1, which this");
    fix_refused(conn, MS_E_NOT_FOUND, "with MS_ENABLE_RECOVERY=1 and the MS_RECOVERY_PATH that it");
    fix_refused(conn, MS_E_NOT_FOUND, "if it had none nobody knows the job any more");
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_STOP));
    ck_assert(fix_logged("topology.let_be"));
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    ck_assert(!fix_logged("topology.let_be")); /* it knocks on */
    const char *ours = _i ? "{\"recovery\":true}" : "{\"recovery\":false}";
    ck_assert_ptr_nonnull(fix_heard(join_with("0", 2, ours), MS_MSG_REGISTERED)); /* a new one */
}
END_TEST

/* As workers say it that have outlived a scheduler with another MS_RECOVERY_PATH. */
START_TEST(workers_of_another_database_are_let_be_likewise)
{
    static uint8_t theirs[MS_STAMP_LEN] = {1};
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 2);
    cfg.recovery = 1;
    cfg.has_database = true;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = worker("0", 1, 2);
    claim_of(&msg, "{\"network\":\"mnist\",\"recovery\":true}");
    msg.stamp.data = theirs;
    msg.stamp.len = sizeof(theirs);

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    fix_refused(conn, MS_E_FOREIGN, "with MS_ENABLE_RECOVERY=1 and the MS_RECOVERY_PATH that it");
    ck_assert(fix_logged("topology.let_be"));
    ck_assert(!fix_logged("conn.foreign_stamp"));
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    ck_assert(!fix_logged("topology.let_be")); /* once a minute */
    ck_assert(!fix_logged("conn.foreign_stamp"));
}
END_TEST

START_TEST(a_worker_whose_job_does_not_recover_is_told_to_end_it)
{
    start_recovering(0);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = worker("0", 1, 2);
    claim_of(&msg, "{\"network\":\"mnist\",\"recovery\":false}");

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    const Ms__Stop *stop = fix_heard(conn, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_ptr_nonnull(strstr(stop->text, "job 1 is not known to this scheduler"));
}
END_TEST

/* A name may hold anything. */
START_TEST(words_within_a_string_are_no_word_on_recovery)
{
    start_recovering(0);

    uint64_t conn = join_with("a", 1, "{\"name\":\"\\\"recovery\\\":true\",\"recovery\":false}");

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
}
END_TEST

START_TEST(another_job_is_refused_with_both_digests)
{
    fix_start(SCHED_DYNAMIC, 2);
    join("w0", 1, 2);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "c");
    Ms__Register msg = worker("w1", 2, 2);
    msg.job_json.data = (uint8_t *)"{}";
    msg.job_json.len = 2;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    /* printf '{}' | sha256sum; printf '{"network":"mnist"}' | sha256sum */
    fix_refused(conn, MS_E_REFUSED, "the job of worker w1 (digest 44136fa355b3)");
    fix_refused(conn, MS_E_REFUSED, "that of worker w0, which came first (digest ");
}
END_TEST

START_TEST(worker_without_a_job_is_refused)
{
    fix_start(SCHED_DYNAMIC, 2);

    uint64_t conn = fix_open(MS_ROLE_WORKER, "c");
    Ms__Register msg = worker("w1", 2, 2);
    msg.job_json.len = 0;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    fix_refused(conn, MS_E_REFUSED, "worker w1 brought no job");
}
END_TEST

START_TEST(first_worker_that_leaves_takes_its_job_along)
{
    fix_start(SCHED_DYNAMIC, 2);
    fix_close(join("w0", 1, 2));
    uint64_t conn = fix_open(MS_ROLE_WORKER, "c");
    Ms__Register msg = worker("w1", 2, 2);
    msg.job_json.data = (uint8_t *)"{}";
    msg.job_json.len = 2;

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
}
END_TEST

START_TEST(numeric_id_that_is_no_rank_is_refused)
{
    fix_start(SCHED_DYNAMIC, 2);

    uint64_t conn = join("2", 1, 2);

    fix_refused(conn, MS_E_REFUSED, "MS_NODE_ID is 2, and numeric ids are ranks from 0 to 1");
}
END_TEST

START_TEST(numeric_ids_are_the_ranks)
{
    fix_start(SCHED_DYNAMIC, 2);
    uint64_t one = join("1", 1, 2);

    uint64_t zero = join("0", 2, 2);

    ck_assert_uint_eq(((const Ms__Assign *)fix_heard(one, MS_MSG_ASSIGN))->rank, 1);
    ck_assert_uint_eq(((const Ms__Assign *)fix_heard(zero, MS_MSG_ASSIGN))->rank, 0);
}
END_TEST

START_TEST(mixed_ids_are_sorted_by_address_then_naturally)
{
    fix_start(SCHED_DYNAMIC, 3);
    uint64_t conns[3];
    static const struct {
        const char *id, *host, *address;
    } rows[] = {{"w10", "a", "10.0.0.9:1"}, {"0", "b", "10.0.0.10:1"}, {"w9", "a", "10.0.0.9:2"}};
    for (uint64_t i = 0; i < 3; i++) {
        conns[i] = fix_open(MS_ROLE_WORKER, "c");
        Ms__Register msg = worker(rows[i].id, i + 1, 3);
        msg.host_id = (char *)rows[i].host;
        msg.data_address = (char *)rows[i].address;
        fix_say(conns[i], MS_MSG_REGISTER, &msg.base);
    }

    ck_assert_uint_eq(((const Ms__Assign *)fix_heard(conns[2], MS_MSG_ASSIGN))->rank, 0);
    ck_assert_uint_eq(((const Ms__Assign *)fix_heard(conns[0], MS_MSG_ASSIGN))->rank, 1);
    ck_assert_uint_eq(((const Ms__Assign *)fix_heard(conns[1], MS_MSG_ASSIGN))->rank, 2);
}
END_TEST

START_TEST(extra_worker_is_refused)
{
    fix_start(SCHED_DYNAMIC, 1);
    uint64_t first = join("w0", 1, 1);
    ck_assert_ptr_nonnull(fix_heard(first, MS_MSG_ASSIGN));

    uint64_t conn = join("w1", 2, 1);

    fix_refused(conn, MS_E_REFUSED, "worker w1 is extra: all 1 ranks are taken");
}
END_TEST

START_TEST(full_disk_keeps_the_job_from_beginning)
{
    fix_start(SCHED_DYNAMIC, 1);
    sched_refuse_writes(fix.s, "no space left", 1);

    uint64_t first = join("w0", 1, 1);
    ck_assert_ptr_null(fix_heard(first, MS_MSG_ASSIGN));
    uint64_t conn = join("w1", 2, 1);
    fix_refused(conn, MS_E_REFUSED, "worker w1 is extra: all 1 ranks are taken");
    sched_refuse_writes(fix.s, "", 1);
    fix_time();

    ck_assert_ptr_nonnull(fix_heard(first, MS_MSG_ASSIGN));
}
END_TEST

START_TEST(submit_is_refused)
{
    fix_start(SCHED_DYNAMIC, 1);
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(1);

    fix_say(conn, MS_MSG_SUBMIT, &msg.base);

    fix_refused(conn, MS_E_REFUSED, "this is a dynamic cluster");
}
END_TEST

static const Ms__StatusInfo *status(void)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__StatusQuery msg = MS__STATUS_QUERY__INIT;
    fix_say(conn, MS_MSG_STATUS_QUERY, &msg.base);
    return fix_heard(conn, MS_MSG_STATUS_INFO);
}

START_TEST(status_names_who_is_missing)
{
    fix_start(SCHED_DYNAMIC, 4);
    join("3", 1, 4);
    join("1", 2, 4);
    ck_assert_str_eq(status()->waiting_for,
                     "2 of 4 workers; present ranks: 1 3; missing ranks: 0 2");

    join("x", 3, 4);

    ck_assert_str_eq(status()->waiting_for, "1 of 4 workers; present: 1 3 x; missing: 1");
}
END_TEST

static void leave(uint64_t conn)
{
    Ms__Leave leave = MS__LEAVE__INIT;
    fix_say(conn, MS_MSG_LEAVE, &leave.base);
}

static void pass_with_beats(int64_t ms, const uint64_t *conns, size_t n)
{
    for (int64_t at = 0; at < ms; at += FIX_LEASE_MS / 2) {
        fix_pass(FIX_LEASE_MS / 2);
        if (fix_effect(SCHED_DO_EXIT) != NULL || fix_heard(conns[0], MS_MSG_STOP) != NULL) {
            return;
        }
        for (size_t i = 0; i < n; i++) {
            fix_beat(conns[i]);
        }
    }
}

START_TEST(status_names_what_else_it_waits_for)
{
    fix_start(SCHED_DYNAMIC, 2);
    ck_assert_str_eq(status()->waiting_for, "2 of 2 workers; present: none; missing: 2");
    sched_refuse_writes(fix.s, "no space left", 1);
    ck_assert_str_eq(status()->waiting_for, "disk space: no space left");
    sched_refuse_writes(fix.s, "", 1);
    uint64_t a = join("a", 1, 2);
    uint64_t b = join("b", 2, 2);
    ck_assert_str_eq(status()->waiting_for, "");

    fix_close(a);

    ck_assert(!fix_logged("topology.waits_for_end"));
    fix_pass(MS_LEAVE_SAY_MS); /* it does not */
    ck_assert(fix_logged("topology.waits_for_end for_s=8 for=\"1 worker to leave (b on host h, pid "
                         "1002)\": end that process to wait no longer"));
    ck_assert_str_eq(status()->waiting_for,
                     "1 worker to leave (b on host h, pid 1002), for 8 s at most");
    leave(b);
    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
}
END_TEST

START_TEST(long_lists_of_workers_are_cut)
{
    fix_start(SCHED_DYNAMIC, 200);
    for (uint64_t i = 0; i < 100; i++) {
        char id[8];
        snprintf(id, sizeof(id), "%u", (unsigned)i);
        join(id, i + 1, 200);
    }

    ck_assert_ptr_nonnull(strstr(status()->waiting_for, "present ranks: 0 1 2 3 4"));
    ck_assert_ptr_nonnull(strstr(status()->waiting_for, " ...; missing ranks: 100 101"));
}
END_TEST

START_TEST(missing_workers_end_the_cluster_after_the_topology_timeout)
{
    fix_start(SCHED_DYNAMIC, 8);
    uint64_t conns[3] = {join("0", 1, 8), join("1", 2, 8), join("3", 3, 8)};

    pass_with_beats(1900000, conns, 3);

    const Ms__Stop *stop = fix_heard(conns[2], MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->code, MS_E_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(stop->text,
                                 "3 of 8 workers registered after 1800 s; present ranks: 0 1 "
                                 "3; missing ranks: 2 4 5 6 7"));
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    for (int i = 0; i < 3; i++) {
        fix_close(conns[i]);
    }
    const struct sched_effect *end = fix_effect(SCHED_DO_EXIT);
    ck_assert_ptr_nonnull(end);
    ck_assert_int_eq(end->status, 1);
    ck_assert_ptr_nonnull(strstr(end->text, "missing ranks: 2 4 5 6 7"));
}
END_TEST

/* A lease is ten minutes in MindSpore's defaults: too long for a start that failed. */
START_TEST(hung_worker_of_a_cluster_that_did_not_form_is_not_waited_for)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 8);
    cfg.lease_ms = 600000;
    cfg.topo_timeout_ms = 3000;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    join("0", 1, 8);

    fix_pass(3000);
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    fix_pass(MS_TOPO_LEAVE_MS);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
    ck_assert_int_eq(fix_effect(SCHED_DO_EXIT)->status, 1);
    ck_assert_int_eq(fix_logged("topology.left_behind nodes=1"), 1);
}
END_TEST

/* MS_TOPO_TIMEOUT=3 is for workers that are started together; planning may take longer. */
START_TEST(short_topology_timeout_is_none_for_getting_ready)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 1);
    cfg.topo_timeout_ms = 3000;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    uint64_t conn = join("w0", 1, 1);

    for (int64_t ms = 0; ms < MS_TOPO_TIMEOUT_S * 1000 - FIX_LEASE_MS; ms += FIX_LEASE_MS / 2) {
        fix_pass(FIX_LEASE_MS / 2);
        fix_beat(conn);
    }
    fix_job_is(1, "PLACING", "waits for rank 0");
    fix_pass(FIX_LEASE_MS / 2);
    fix_beat(conn);
    fix_pass(FIX_LEASE_MS / 2);

    fix_job_is(1, "FAILED", "rank 0 (node w0 on host h) did not choose the plan within 1800 s");
    ck_assert_ptr_nonnull(strstr(fix_show(1)->reason, "raise MS_TOPO_TIMEOUT"));
}
END_TEST

START_TEST(negative_topology_timeout_waits_for_ever)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 2);
    cfg.topo_timeout_ms = -1;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));

    ck_assert_int_eq(sched_deadline(fix.s), INT64_MAX);
}
END_TEST

static uint64_t run_alone(void)
{
    fix_start(SCHED_DYNAMIC, 1);
    uint64_t conn = join("w0", 1, 1);
    fix_ready(conn, 1, 1, 0);
    return conn;
}

START_TEST(success_ends_the_scheduler_when_the_workers_have_left)
{
    uint64_t conn = run_alone();

    fix_done(conn, 1, 1, 0, 0, "");
    ck_assert_int_eq(((const Ms__Stop *)fix_heard(conn, MS_MSG_STOP))->code, 0);
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    leave(conn);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
    ck_assert_int_eq(fix_effect(SCHED_DO_EXIT)->status, 0);
}
END_TEST

START_TEST(failure_ends_the_scheduler_with_status_1)
{
    fix_start(SCHED_DYNAMIC, 2);
    uint64_t a = join("a", 1, 2);
    uint64_t b = join("b", 2, 2);

    fix_close(a);
    const Ms__Stop *stop = fix_heard(b, MS_MSG_STOP);
    ck_assert_ptr_nonnull(strstr(stop->text, "rank 0 (node a on host h) was lost"));
    leave(b);

    ck_assert_int_eq(fix_effect(SCHED_DO_EXIT)->status, 1);
    ck_assert_ptr_nonnull(strstr(fix_effect(SCHED_DO_EXIT)->text, "rank 0"));
}
END_TEST

START_TEST(workers_that_do_not_leave_are_waited_for_one_lease_only)
{
    uint64_t conn = run_alone();
    fix_done(conn, 1, 1, 0, 0, "");
    fix_pass(FIX_LEASE_MS / 2);
    fix_beat(conn);

    fix_pass(FIX_LEASE_MS / 2);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
    ck_assert_int_eq(fix_logged("topology.left_behind nodes=1"), 1);
}
END_TEST

/* Of two ranks whose job has ended well; the first one's connection was over as it was told. */
static uint64_t end_of_two(void)
{
    fix_start(SCHED_DYNAMIC, 2);
    const uint64_t a = join("0", 1, 2), b = join("1", 2, 2);
    fix_ready(a, 1, 1, 0);
    fix_ready(b, 1, 1, 1);
    fix_done(a, 1, 1, 0, 0, "");
    fix_done(b, 1, 1, 1, 0, "");
    fix_job_is(1, "SUCCEEDED", "all 2 ranks");
    fix_close(a);
    return b;
}

static uint64_t come_back_to_hear(const char *id, uint64_t incarnation, uint32_t rank)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = worker(id, incarnation, 2);
    msg.job = 1;
    msg.generation = 1;
    msg.rank = rank;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

START_TEST(who_was_away_as_the_job_ended_hears_of_it_first)
{
    leave(end_of_two());
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    fix_pass(MS_LEAVE_SAY_MS);
    ck_assert(fix_logged("topology.waits_for_end for_s=10 for=\"1 that is away to hear of the "
                         "end\": end that process to wait no longer"));

    const uint64_t back = come_back_to_hear("0", 1, 0);

    const Ms__Stop *stop = fix_heard(back, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->code, 0);
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    leave(back);
    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
    ck_assert_int_eq(fix_effect(SCHED_DO_EXIT)->status, 0);
}
END_TEST

/* The lease of those that were there is over by then. */
START_TEST(who_comes_late_to_hear_of_the_end_has_a_lease_to_leave)
{
    leave(end_of_two());
    fix_pass(FIX_LEASE_MS + 1);
    const uint64_t back = come_back_to_hear("0", 1, 0);
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));

    fix_pass(FIX_LEASE_MS - 1);
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    leave(back);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
}
END_TEST

START_TEST(who_does_not_come_to_hear_of_the_end_is_waited_for_some_seconds_only)
{
    leave(end_of_two());
    fix_pass(MS_UNHEARD_MS - 1);
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));

    fix_pass(1);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
    ck_assert_int_eq(fix_effect(SCHED_DO_EXIT)->status, 0);
    ck_assert_int_eq(fix_logged("topology.unheard workers=1: "), 1);
}
END_TEST

/* It died before the end: of a job that failed for it nobody comes back. */
START_TEST(who_was_lost_before_is_not_waited_for)
{
    fix_start(SCHED_DYNAMIC, 2);
    const uint64_t a = join("0", 1, 2), b = join("1", 2, 2);
    fix_ready(a, 1, 1, 0);
    fix_ready(b, 1, 1, 1);

    fix_close(a);
    fix_job_is(1, "FAILED", "rank 0");
    leave(b);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
}
END_TEST

static void start_two_that_recover(uint64_t *ret_a, uint64_t *ret_b)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 2);
    cfg.recovery = 1;
    fix_create(&cfg);
    *ret_a = join("0", 1, 2);
    *ret_b = join("1", 2, 2);
    fix_ready(*ret_a, 1, 1, 0);
    fix_ready(*ret_b, 1, 1, 1);
}

/* _i: it is cancelled when rank 1 is away already, or rank 1 goes with the word on its way, that it
 * has stopped behind it or not. */
START_TEST(who_is_away_as_its_job_is_cancelled_hears_of_it_first)
{
    uint64_t a = 0, b = 0;
    start_two_that_recover(&a, &b);
    if (_i == 0) {
        fix_close(b);
    }
    fix_cancel(fix_open(MS_ROLE_ADMIN, "alice"), 1, _i == 2);
    if (_i == 2) {
        fix_stopped(b, 1, 1, 1);
        fix_stopped(a, 1, 1, 0);
    }
    fix_job_is(1, "CANCELLED", "cancelled by");
    if (_i > 0) {
        fix_close(b);
    }
    leave(a);
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));

    const uint64_t back = come_back_to_hear("1", 2, 1);

    const Ms__Stop *stop = fix_heard(back, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->code, MS_E_CANCELLED);
    leave(back);
    ck_assert_int_eq(fix_effect(SCHED_DO_EXIT)->status, 1);
}
END_TEST

/* _i: with all that it held; or it died, and another process is there with its id. */
START_TEST(who_comes_back_while_its_job_is_cancelled_is_not_extra)
{
    uint64_t a = 0, b = 0;
    start_two_that_recover(&a, &b);
    fix_cancel(fix_open(MS_ROLE_ADMIN, "alice"), 1, 1);
    fix_close(b);
    b = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = worker("1", _i == 0 ? 2 : 7, 2);
    if (_i == 0) {
        msg.job = msg.generation = msg.rank = 1;
        msg.step = 5;
    }
    fix_say(b, MS_MSG_REGISTER, &msg.base);

    ck_assert_ptr_nonnull(fix_heard(b, MS_MSG_REGISTERED));
    if (_i == 0) {
        ck_assert_int_eq(((const Ms__Stop *)fix_heard(b, MS_MSG_STOP))->at_step, 1);
        fix_stopped(b, 1, 1, 1);
    }
    fix_stopped(a, 1, 1, 0);
    const Ms__Stop *stop = fix_heard(b, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->code, MS_E_CANCELLED);
    leave(a);
    leave(b);
    if (_i == 1) { /* the one before it may be there */
        fix_pass(MS_UNHEARD_MS);
    }
    ck_assert_int_eq(fix_effect(SCHED_DO_EXIT)->status, 1);
}
END_TEST

/* One that came for a rank meanwhile waits there, and with it there are three of three. */
START_TEST(nor_is_it_beside_one_that_came_for_a_rank)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 3);
    cfg.recovery = 1;
    fix_create(&cfg);
    uint64_t conns[3];
    for (uint32_t rank = 0; rank < 3; rank++) {
        conns[rank] = join(rank == 0 ? "0" : rank == 1 ? "1" : "2", 1 + rank, 3);
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        fix_ready(conns[rank], 1, 1, rank);
    }
    fix_close(conns[1]);
    fix_close(conns[2]);
    join("x", 9, 3);
    fix_cancel(fix_open(MS_ROLE_ADMIN, "alice"), 1, 1);
    for (uint32_t rank = 1; rank < 3; rank++) {
        Ms__Register msg = worker(rank == 1 ? "1" : "2", 1 + rank, 3);
        msg.job = msg.generation = 1;
        msg.rank = rank;
        msg.step = 5;
        conns[rank] = fix_open(MS_ROLE_WORKER, "host-certificate");
        fix_say(conns[rank], MS_MSG_REGISTER, &msg.base);
    }
    for (uint32_t rank = 1; rank < 3; rank++) {
        const Ms__Stop *stop = fix_heard(conns[rank], MS_MSG_STOP);
        ck_assert_ptr_nonnull(stop);
        ck_assert_int_eq(stop->at_step, 1);
    }
}
END_TEST

/* It was away when the last round was told. */
START_TEST(who_never_heard_of_the_last_round_hears_of_the_end)
{
    uint64_t a = 0, b = 0;
    start_two_that_recover(&a, &b);
    fix_close(b);
    b = join("1", 3, 2);
    fix_pass(1000);
    ck_assert_uint_eq(fix_show(1)->generation, 2);
    fix_close(a); /* before it has heard of that */
    fix_cancel(fix_open(MS_ROLE_ADMIN, "alice"), 1, 0);
    fix_job_is(1, "CANCELLED", "cancelled by");
    leave(b);
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));

    const uint64_t back = come_back_to_hear("0", 1, 0);
    leave(back);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
}
END_TEST

/* It died, so often that the job has failed. */
START_TEST(whose_loss_was_too_many_is_not_waited_for)
{
    uint64_t a = 0, b = 0;
    start_two_that_recover(&a, &b);
    for (uint64_t n = 0; strcmp(fix_show(1)->state, "FAILED") != 0; n++) {
        ck_assert_uint_lt(n, 10);
        fix_close(b);
        if (strcmp(fix_show(1)->state, "FAILED") != 0) {
            b = join("1", 3 + n, 2);
            fix_pass(1000);
            const uint64_t generation = fix_show(1)->generation;
            fix_ready(a, 1, generation, 0);
            fix_ready(b, 1, generation, 1);
        }
    }

    leave(a);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
}
END_TEST

/* It said so, and nobody took its rank before the job was cancelled. */
START_TEST(who_has_left_is_not_waited_for)
{
    uint64_t a = 0, b = 0;
    start_two_that_recover(&a, &b);
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = msg.generation = 1;
    msg.rank = 1;
    msg.code = MS_E_CANCELLED;
    msg.text = (char *)"its worker was asked to end";
    msg.leaving = 1;
    fix_say(b, MS_MSG_RANK_DONE, &msg.base);
    leave(b);
    fix_job_is(1, "RECOVERING", "left: its worker was asked to end");
    fix_cancel(fix_open(MS_ROLE_ADMIN, "alice"), 1, 0);
    fix_job_is(1, "CANCELLED", "cancelled by");

    leave(a);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));
}
END_TEST

/* The event of its registration comes with that of the end. */
START_TEST(who_comes_as_the_scheduler_goes_is_told)
{
    leave(end_of_two());
    fix_pass(MS_UNHEARD_MS);
    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_EXIT));

    const uint64_t back = come_back_to_hear("0", 1, 0);

    ck_assert_ptr_nonnull(fix_heard(back, MS_MSG_STOP));
}
END_TEST

/* Another process has its rank, and all are there still: with it there are three of two. */
START_TEST(whose_rank_was_taken_comes_to_hear_of_the_end_too)
{
    uint64_t a = 0, b = 0;
    start_two_that_recover(&a, &b);
    fix_close(b);
    const uint64_t x = join("x", 3, 2);
    fix_pass(1000);
    ck_assert_uint_eq(fix_show(1)->generation, 2);
    fix_ready(a, 1, 2, 0);
    fix_ready(x, 1, 2, 1);
    fix_done(a, 1, 2, 0, 0, "");
    fix_done(x, 1, 2, 1, 0, "");
    fix_job_is(1, "SUCCEEDED", "all 2 ranks");

    const uint64_t back = come_back_to_hear("1", 2, 1);

    ck_assert_ptr_nonnull(fix_heard(back, MS_MSG_STOP));
    leave(back);
    leave(x);
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    leave(a);
    ck_assert_int_eq(fix_effect(SCHED_DO_EXIT)->status, 0);
}
END_TEST

START_TEST(who_is_away_as_its_job_fails_hears_of_it_first)
{
    uint64_t a = 0, b = 0;
    start_two_that_recover(&a, &b);
    fix_close(b);
    fix_done(a, 1, 1, 0, MS_E_INVALID, "loss is not finite");
    fix_job_is(1, "FAILED", "loss is not finite");
    leave(a);
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));

    const uint64_t back = come_back_to_hear("1", 2, 1);

    ck_assert_ptr_nonnull(fix_heard(back, MS_MSG_STOP));
    leave(back);
    ck_assert_int_eq(fix_effect(SCHED_DO_EXIT)->status, 1);
}
END_TEST

START_TEST(who_is_away_as_the_scheduler_stands_still_has_the_time_behind_it)
{
    leave(end_of_two());
    fix.now.mono_ms += MS_UNHEARD_MS + 3000;
    sched_stood_still(fix.s, MS_UNHEARD_MS + 3000);
    fix_time();
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    fix_pass(MS_UNHEARD_MS - 1); /* it met nobody then, and pauses */
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));

    const uint64_t back = come_back_to_hear("0", 1, 0);
    fix_pass(MS_LEAVE_SAY_MS);
    ck_assert_ptr_null(fix_effect(SCHED_DO_EXIT));
    leave(back);

    ck_assert_int_eq(fix_effect(SCHED_DO_EXIT)->status, 0);
}
END_TEST

START_TEST(late_worker_hears_that_the_cluster_has_ended)
{
    uint64_t conn = run_alone();
    fix_done(conn, 1, 1, 0, 0, "");

    uint64_t late = join("w9", 9, 1);

    fix_refused(late, MS_E_REFUSED, "comes too late: the cluster has ended: the rank finished");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("sched_dynamic");
    TCase *t = tcase_create("dynamic cluster");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, job_begins_when_all_workers_are_here);
    tcase_add_test(t, heartbeats_carry_present_and_expected);
    tcase_add_test(t, another_worker_num_is_refused_with_both_values);
    tcase_add_loop_test(t, another_word_on_recovery_is_refused_with_both_values, 0, 2);
    tcase_add_loop_test(t, job_has_the_name_that_its_workers_brought, 0, 5);
    tcase_add_loop_test(t, workers_of_an_earlier_scheduler_are_let_be_where_their_job_recovers, 0,
                        2);
    tcase_add_test(t, workers_of_another_database_are_let_be_likewise);
    tcase_add_test(t, a_worker_whose_job_does_not_recover_is_told_to_end_it);
    tcase_add_test(t, worker_that_cannot_recover_is_refused_where_the_job_is_to);
    tcase_add_test(t, words_within_a_string_are_no_word_on_recovery);
    tcase_add_test(t, another_job_is_refused_with_both_digests);
    tcase_add_test(t, worker_without_a_job_is_refused);
    tcase_add_test(t, first_worker_that_leaves_takes_its_job_along);
    tcase_add_test(t, numeric_id_that_is_no_rank_is_refused);
    tcase_add_test(t, numeric_ids_are_the_ranks);
    tcase_add_test(t, mixed_ids_are_sorted_by_address_then_naturally);
    tcase_add_test(t, extra_worker_is_refused);
    tcase_add_test(t, full_disk_keeps_the_job_from_beginning);
    tcase_add_test(t, submit_is_refused);
    tcase_add_test(t, status_names_who_is_missing);
    tcase_add_test(t, status_names_what_else_it_waits_for);
    tcase_add_test(t, long_lists_of_workers_are_cut);
    tcase_add_test(t, missing_workers_end_the_cluster_after_the_topology_timeout);
    tcase_add_test(t, hung_worker_of_a_cluster_that_did_not_form_is_not_waited_for);
    tcase_add_test(t, short_topology_timeout_is_none_for_getting_ready);
    tcase_add_test(t, negative_topology_timeout_waits_for_ever);
    tcase_add_test(t, success_ends_the_scheduler_when_the_workers_have_left);
    tcase_add_test(t, failure_ends_the_scheduler_with_status_1);
    tcase_add_test(t, workers_that_do_not_leave_are_waited_for_one_lease_only);
    tcase_add_test(t, who_was_away_as_the_job_ended_hears_of_it_first);
    tcase_add_test(t, who_comes_late_to_hear_of_the_end_has_a_lease_to_leave);
    tcase_add_test(t, who_does_not_come_to_hear_of_the_end_is_waited_for_some_seconds_only);
    tcase_add_test(t, who_was_lost_before_is_not_waited_for);
    tcase_add_loop_test(t, who_is_away_as_its_job_is_cancelled_hears_of_it_first, 0, 3);
    tcase_add_test(t, who_never_heard_of_the_last_round_hears_of_the_end);
    tcase_add_loop_test(t, who_comes_back_while_its_job_is_cancelled_is_not_extra, 0, 2);
    tcase_add_test(t, nor_is_it_beside_one_that_came_for_a_rank);
    tcase_add_test(t, whose_loss_was_too_many_is_not_waited_for);
    tcase_add_test(t, who_has_left_is_not_waited_for);
    tcase_add_test(t, who_comes_as_the_scheduler_goes_is_told);
    tcase_add_test(t, whose_rank_was_taken_comes_to_hear_of_the_end_too);
    tcase_add_test(t, who_is_away_as_its_job_fails_hears_of_it_first);
    tcase_add_test(t, who_is_away_as_the_scheduler_stands_still_has_the_time_behind_it);
    tcase_add_test(t, late_worker_hears_that_the_cluster_has_ended);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return test_run(suite());
}
