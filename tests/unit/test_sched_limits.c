/* test_sched_limits.c - limits are refused in words; history and its ranks stay bounded */
#include "tests/unit/sched_fixture.h"

#include <time.h>

/* Without sched_check after each: it looks at everything. */
static void say_quietly(uint64_t conn, uint16_t type, const ProtobufCMessage *msg)
{
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = conn, .type = type, .id = ++fix.frame, .msg = msg};
    sched_begin_tick(fix.s);
    fix_drop_answers();
    sched_apply(fix.s, &event, fix.now);
    fix_collect();
}

static uint64_t open_quietly_as(enum ms_role role, const char *name)
{
    struct ms_peer peer;
    memset(&peer, 0, sizeof(peer));
    ck_assert(ms_principal_from_certificate(role, name, &peer.who));
    struct sched_event event = {.kind = SCHED_EV_OPENED, .conn = ++fix.conns, .peer = &peer};
    sched_begin_tick(fix.s);
    sched_apply(fix.s, &event, fix.now);
    return fix.conns;
}

static uint64_t open_quietly(enum ms_role role)
{
    return open_quietly_as(role, "x");
}

static double ms_between(const struct timespec *from, const struct timespec *to)
{
    return (double)(to->tv_sec - from->tv_sec) * 1e3 + (double)(to->tv_nsec - from->tv_nsec) / 1e6;
}

START_TEST(nodes_are_limited)
{
    uint64_t conn = 0;
    fix_standing();

    for (int i = 0; i <= MS_NODES_MAX; i++) {
        char id[16];
        snprintf(id, sizeof(id), "w%d", i);
        conn = open_quietly(MS_ROLE_WORKER);
        Ms__Register msg = fix_node(id, 1);
        say_quietly(conn, MS_MSG_REGISTER, &msg.base);
    }

    fix_refused(conn, MS_E_FULL, "node w16384: 16384 nodes are registered, which is the limit");
    ck_ms_ok(sched_check(fix.s, err));
}
END_TEST

/* Submits until it is refused; how many were taken. */
static int fill_queue(uint64_t conn)
{
    Ms__Submit msg = fix_job(1);
    int n = -1;
    do {
        say_quietly(conn, MS_MSG_SUBMIT, &msg.base);
        n++;
    } while (fix_heard(conn, MS_MSG_SUBMITTED) != NULL);
    return n;
}

START_TEST(one_user_cannot_fill_the_queue_and_all_of_them_leave_places_for_admins)
{
    fix_standing();
    uint64_t alice = open_quietly_as(MS_ROLE_USER, "alice");

    ck_assert_int_eq(fill_queue(alice), MS_JOBS_OWNER_MAX);
    fix_refused(alice, MS_E_FULL, "25000 jobs of user:alice wait or run, and 25000 are the limit");
    ck_assert_int_eq(fill_queue(open_quietly_as(MS_ROLE_USER, "bob")), MS_JOBS_OWNER_MAX);
    ck_assert_int_eq(fill_queue(open_quietly_as(MS_ROLE_USER, "carol")), MS_JOBS_OWNER_MAX);
    uint64_t dave = open_quietly_as(MS_ROLE_USER, "dave");
    ck_assert_int_eq(fill_queue(dave), MS_JOBS_OWNER_MAX - MS_JOBS_ADMIN);
    fix_refused(dave, MS_E_FULL,
                "99000 jobs are queued, which is the limit (what is left is kept "
                "for admins); 24000 that wait or run are of user:dave");
    uint64_t erin = open_quietly_as(MS_ROLE_USER, "erin");
    ck_assert_int_eq(fill_queue(erin), 0);
    fix_refused(erin, MS_E_FULL, "none is of user:erin: wait until some have ended");
    uint64_t root = open_quietly_as(MS_ROLE_ADMIN, "root");
    ck_assert_int_eq(fill_queue(root), MS_JOBS_ADMIN);
    fix_refused(root, MS_E_FULL, "100000 jobs are queued, which is the limit; 1000 ");
    ck_ms_ok(sched_check(fix.s, err));

    Ms__Cancel cancel = MS__CANCEL__INIT;
    cancel.job = 1;
    say_quietly(alice, MS_MSG_CANCEL, &cancel.base);
    ck_assert_int_eq(fill_queue(alice), 0); /* what she gave back lies in the admins' places */
    ck_assert_int_eq(fill_queue(root), 1);
    ck_ms_ok(sched_check(fix.s, err));
}
END_TEST

static void load_ended(uint64_t n, uint32_t workers, int with_members)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    struct sched_job_row row;
    struct sched_member_row member;
    memset(&row, 0, sizeof(row));
    memset(&member, 0, sizeof(member));
    row.state = JOB_SUCCEEDED;
    row.workers = workers;
    row.spec = (const uint8_t *)"{}";
    row.spec_bytes = 2;
    row.reason[0] = '.';
    member.node_id[0] = 'w';
    fix_create(&cfg);
    for (row.id = 1; row.id <= n; row.id++) {
        row.generation = row.id;
        row.ended_ms = (int64_t)row.id;
        ck_ms_ok(sched_load_job(fix.s, &row, err));
        member.job = row.id;
        for (member.rank = 0; with_members && member.rank < workers; member.rank++) {
            ck_ms_ok(sched_load_member(fix.s, &member, err));
        }
    }
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

START_TEST(oldest_ended_job_is_dropped_beyond_the_limit)
{
    load_ended(MS_JOBS_KEPT_MAX, 1, 0);
    uint64_t job = fix_submit(1, 0);

    fix_cancel(fix_open(MS_ROLE_ADMIN, "root"), job, 0);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_DROP_JOB));
    ck_assert_uint_eq(fix_effect(SCHED_DO_DROP_JOB)->job_id, 1);
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__JobQuery msg = MS__JOB_QUERY__INIT;
    msg.job = 1;
    fix_say(conn, MS_MSG_JOB_QUERY, &msg.base);
    fix_refused(conn, MS_E_NOT_FOUND, "job 1 does not exist");
    fix_job_is(2, "SUCCEEDED", ".");
}
END_TEST

START_TEST(history_stays_in_order_while_it_is_dropped)
{
    load_ended(MS_JOBS_KEPT_MAX, 1, 0);
    uint64_t conn = open_quietly(MS_ROLE_ADMIN);
    Ms__Submit submit = fix_job(1);
    submit.key = (char *)"";

    for (uint64_t i = 1; i <= 70000; i++) { /* a quarter of all: the index is packed once */
        Ms__Cancel cancel = MS__CANCEL__INIT;
        cancel.job = MS_JOBS_KEPT_MAX + i;
        say_quietly(conn, MS_MSG_SUBMIT, &submit.base);
        say_quietly(conn, MS_MSG_CANCEL, &cancel.base);
    }

    ck_ms_ok(sched_check(fix.s, err));
    fix_job_is(70001, "SUCCEEDED", ".");
    fix_job_is(MS_JOBS_KEPT_MAX + 70000, "CANCELLED", "cancelled by");
    struct sched_counts counts;
    sched_count(fix.s, &counts);
    ck_assert_uint_eq(counts.jobs_ended, MS_JOBS_KEPT_MAX);
}
END_TEST

START_TEST(ranks_of_the_oldest_jobs_are_dropped_first)
{
    load_ended(MS_MEMBERS_KEPT_MAX / 1000, 1000, 1);
    uint64_t conns[1] = {fix_register("w0", 1)};
    uint64_t job = fix_submit(1, 0);

    fix_done(conns[0], job, MS_MEMBERS_KEPT_MAX / 1000 + 1, 0, MS_E_INVALID, "no data");

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_DROP_MEMBERS));
    ck_assert_uint_eq(fix_effect(SCHED_DO_DROP_MEMBERS)->job_id, 1);
    ck_assert_ptr_null(fix_effect(SCHED_DO_DROP_JOB));
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__LogQuery msg = MS__LOG_QUERY__INIT;
    msg.job = 1;
    fix_say(conn, MS_MSG_LOG_QUERY, &msg.base);
    fix_refused(conn, MS_E_NOT_FOUND, "job 1 ended too long ago");
}
END_TEST

/* As many questions as one connection may have open, to a node that answers none. */
static uint64_t asks_for_logs(const char *user, uint32_t n)
{
    uint64_t conn = fix_open(MS_ROLE_USER, user);
    Ms__LogQuery msg = MS__LOG_QUERY__INIT;
    msg.job = 1;
    for (uint32_t i = 0; i < n; i++) {
        say_quietly(conn, MS_MSG_LOG_QUERY, &msg.base);
        ck_assert_ptr_null(fix_heard(conn, MS_MSG_ERROR));
    }
    return conn;
}

START_TEST(log_reads_under_way_are_limited)
{
    uint64_t conns[2];
    uint64_t conn = 0;
    char user[16];
    fix_running(conns);
    for (uint32_t n = 0; n < MS_LOG_ROUTES_MAX; n += MS_LOG_ROUTES_CONN) {
        snprintf(user, sizeof(user), "user%u", n / MS_LOG_ROUTES_OWNER);
        conn = asks_for_logs(user, MS_LOG_ROUTES_CONN);
    }
    Ms__LogQuery msg = MS__LOG_QUERY__INIT;
    msg.job = 1;
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");

    fix_say(bob, MS_MSG_LOG_QUERY, &msg.base);
    fix_refused(bob, MS_E_FULL, "1024 logs and results are being asked for already");

    fix_close(conn); /* its places are free */
    asks_for_logs("bob", MS_LOG_ROUTES_CONN);
}
END_TEST

START_TEST(one_principal_does_not_keep_others_from_their_logs)
{
    uint64_t conns[2];
    fix_running(conns);
    Ms__LogQuery msg = MS__LOG_QUERY__INIT;
    msg.job = 1;
    uint64_t first = asks_for_logs("mallory", MS_LOG_ROUTES_CONN);
    fix_say(first, MS_MSG_LOG_QUERY, &msg.base);
    fix_refused(first, MS_E_FULL, "this connection waits for 32 logs and results already");
    for (uint32_t n = MS_LOG_ROUTES_CONN; n < MS_LOG_ROUTES_OWNER; n += MS_LOG_ROUTES_CONN) {
        asks_for_logs("mallory", MS_LOG_ROUTES_CONN);
    }
    uint64_t more = fix_open(MS_ROLE_USER, "mallory");
    fix_say(more, MS_MSG_LOG_QUERY, &msg.base);
    fix_refused(more, MS_E_FULL, "mallory waits for 128 logs and results already");
    Ms__Fetch fetch = MS__FETCH__INIT; /* the same places */
    fetch.job = 1;
    fetch.what = MS_FETCH_LOG;
    uint64_t alice = fix_open(MS_ROLE_USER, "alice"); /* whose job it is */
    fix_say(alice, MS_MSG_FETCH, &fetch.base);
    ck_assert_ptr_null(fix_heard(alice, MS_MSG_ERROR));
    asks_for_logs("bob", MS_LOG_ROUTES_CONN);

    fix_pass(MS_LOG_READ_MS / 2);
    fix_beat(conns[0]);
    fix_beat(conns[1]);
    fix_pass(MS_LOG_READ_MS / 2); /* mallory is told that the node does not answer */
    asks_for_logs("mallory", 1);
}
END_TEST

START_TEST(waiting_cancels_are_limited)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");

    for (int i = 0; i < MS_CANCEL_WAITERS_MAX; i++) {
        fix_cancel(conn, 1, 1);
        ck_assert_ptr_null(fix_heard(conn, MS_MSG_ERROR));
    }
    fix_cancel(conn, 1, 1);
    fix_refused(conn, MS_E_FULL, "64 clients wait for the end of job 1 already");
    fix_cancel(conn, 1, 0);

    ck_assert_uint_eq(fix_count(MS_MSG_OK), MS_CANCEL_WAITERS_MAX + 1);
}
END_TEST

START_TEST(who_hangs_up_waits_for_no_cancel)
{
    uint64_t conns[2];
    fix_running(conns);
    for (int i = 0; i < MS_CANCEL_WAITERS_MAX; i++) { /* ctrl-C, and again */
        uint64_t gone = fix_open(MS_ROLE_USER, "alice");
        fix_cancel(gone, 1, 1);
        fix_close(gone);
    }

    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(conn, 1, 1);
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_ERROR));
    fix_cancel(conn, 1, 0);
    ck_assert_uint_eq(fix_count(MS_MSG_OK), 2);
}
END_TEST

START_TEST(largest_job_is_placed_in_one_tick)
{
    fix_standing();
    for (int i = 0; i < MS_WORKERS_MAX; i++) {
        char id[16];
        snprintf(id, sizeof(id), "w%d", i);
        uint64_t worker = open_quietly(MS_ROLE_WORKER);
        Ms__Register msg = fix_node(id, (uint64_t)i + 1);
        say_quietly(worker, MS_MSG_REGISTER, &msg.base);
    }
    uint64_t conn = open_quietly(MS_ROLE_USER);
    Ms__Submit msg = fix_job(MS_WORKERS_MAX);
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = conn, .type = MS_MSG_SUBMIT, .id = 1, .msg = &msg.base};

    struct timespec from;
    struct timespec to;
    sched_begin_tick(fix.s);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    sched_apply(fix.s, &event, fix.now);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);

    size_t n = 0;
    size_t assigns = 0;
    size_t own_bytes = 0;
    const uint8_t *tail = NULL;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind == SCHED_DO_SEND && effects[i].frame[5] == MS_MSG_ASSIGN) {
            ck_assert(tail == NULL || effects[i].tail == tail);
            tail = effects[i].tail;
            own_bytes += effects[i].frame_bytes;
            assigns++;
        }
    }
    ck_assert_ptr_nonnull(tail); /* packed once, whatever the number of ranks */
    ck_assert_uint_le(own_bytes, MS_WORKERS_MAX * (MS_WIRE_HEADER + 4));
    printf("%d ranks placed in %.1f ms\n", MS_WORKERS_MAX, ms_between(&from, &to));
    ck_assert_uint_eq(assigns, MS_WORKERS_MAX);
    ck_ms_ok(sched_check(fix.s, err));
}
END_TEST

/* Names, addresses and offers of the greatest length, a thousand times: more than a frame holds. */
START_TEST(job_whose_members_do_not_fit_a_frame_fails_in_words)
{
    char host[MS_HOST_MAX + 1];
    char address[MS_ADDR_MAX + 1];
    memset(host, 'h', sizeof(host));
    memset(address, 'a', sizeof(address));
    host[MS_HOST_MAX] = address[MS_ADDR_MAX] = '\0';
    char dialled[MS_HOST_MAX + 8];
    uint8_t cpus[MS_CPUSET_BYTES];
    memset(cpus, 0xff, sizeof(cpus));
    Ms__Offer offer = MS__OFFER__INIT;
    offer.cores = offer.physical = offer.numa = offer.cpu_milli = UINT32_MAX;
    offer.cpu_pool = offer.l1d_bytes = offer.l2_bytes = UINT64_MAX;
    offer.l3_bytes = offer.memory_bytes = UINT64_MAX;
    offer.cpuset.data = cpus;
    offer.cpuset.len = sizeof(cpus);
    snprintf(dialled, sizeof(dialled), "%s:8200", host);
    fix_standing();
    for (int i = 0; i < MS_WORKERS_MAX; i++) {
        char id[16];
        snprintf(id, sizeof(id), "w%d", i);
        uint64_t worker = open_quietly(MS_ROLE_WORKER);
        Ms__Register msg = fix_node(id, (uint64_t)i + 1);
        msg.host_name = msg.host_id = host;
        msg.data_unix = address;
        msg.data_address = dialled;
        msg.offer = &offer;
        say_quietly(worker, MS_MSG_REGISTER, &msg.base);
    }
    static uint8_t spec[MS_SPEC_MAX];
    memset(spec, ' ', sizeof(spec));
    uint64_t conn = open_quietly(MS_ROLE_USER);
    Ms__Submit msg = fix_job(MS_WORKERS_MAX);
    msg.job_json.data = spec;
    msg.job_json.len = sizeof(spec);
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = conn, .type = MS_MSG_SUBMIT, .id = 1, .msg = &msg.base};

    sched_begin_tick(fix.s);
    sched_apply(fix.s, &event, fix.now);

    ck_ms_ok(sched_check(fix.s, err));
    const struct sched_job_row *row = fix_stored(1);
    ck_assert_int_eq(row->state, JOB_FAILED);
    ck_assert_ptr_nonnull(strstr(row->reason, "its ranks cannot be told of it: Assign message of"));
}
END_TEST

/* ---- ten thousand nodes come back ---------------------------------------------------------------
 */

enum { BACK_JOBS = 100, BACK_RANKS = 100 };

static void load_many(void)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    fix_create(&cfg);
    for (uint64_t id = 1; id <= BACK_JOBS; id++) {
        struct sched_job_row row;
        memset(&row, 0, sizeof(row));
        row.id = id;
        row.state = JOB_RUNNING;
        row.workers = BACK_RANKS;
        row.generation = id;
        row.spec = (const uint8_t *)"{}";
        row.spec_bytes = 2;
        ck_ms_ok(sched_load_job(fix.s, &row, err));
        for (uint32_t rank = 0; rank < BACK_RANKS; rank++) {
            struct sched_member_row member;
            memset(&member, 0, sizeof(member));
            member.job = id;
            member.rank = rank;
            member.incarnation = id * BACK_RANKS + rank;
            snprintf(member.node_id, sizeof(member.node_id), "w%llu",
                     (unsigned long long)member.incarnation);
            ck_ms_ok(sched_load_member(fix.s, &member, err));
        }
    }
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

/* At 5 ms a handshake the last one is back 50 s after the first: five leases. */
START_TEST(ten_thousand_nodes_are_adopted)
{
    struct timespec from;
    struct timespec to;
    double most_ms = 0;
    load_many();

    for (uint64_t i = 0; i < BACK_JOBS * BACK_RANKS; i++) {
        char id[16];
        uint64_t conn = open_quietly(MS_ROLE_WORKER);
        snprintf(id, sizeof(id), "w%llu", (unsigned long long)(BACK_RANKS + i));
        Ms__Register msg = fix_node(id, BACK_RANKS + i);
        msg.job = 1 + i / BACK_RANKS;
        msg.generation = msg.job;
        msg.rank = (uint32_t)(i % BACK_RANKS);
        msg.running = 1;
        fix.now.mono_ms += 5;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        say_quietly(conn, MS_MSG_REGISTER, &msg.base);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        most_ms = ms_between(&from, &to) > most_ms ? ms_between(&from, &to) : most_ms;
        ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
        ck_assert_ptr_null(fix_heard(conn, MS_MSG_STOP));
    }

    printf("%d nodes adopted, the slowest in %.2f ms\n", BACK_JOBS * BACK_RANKS, most_ms);
    ck_ms_ok(sched_check(fix.s, err));
    fix_job_is(1, "RUNNING", "");
    fix_job_is(BACK_JOBS, "RUNNING", "");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sched_limits");
    TCase *t = tcase_create("limits");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, nodes_are_limited);
    tcase_add_test(t, one_user_cannot_fill_the_queue_and_all_of_them_leave_places_for_admins);
    tcase_add_test(t, oldest_ended_job_is_dropped_beyond_the_limit);
    tcase_add_test(t, history_stays_in_order_while_it_is_dropped);
    tcase_add_test(t, ranks_of_the_oldest_jobs_are_dropped_first);
    tcase_add_test(t, log_reads_under_way_are_limited);
    tcase_add_test(t, one_principal_does_not_keep_others_from_their_logs);
    tcase_add_test(t, waiting_cancels_are_limited);
    tcase_add_test(t, who_hangs_up_waits_for_no_cancel);
    tcase_add_test(t, largest_job_is_placed_in_one_tick);
    tcase_add_test(t, job_whose_members_do_not_fit_a_frame_fails_in_words);
    tcase_add_test(t, ten_thousand_nodes_are_adopted);
    suite_add_tcase(s, t);
    return test_run(s);
}
