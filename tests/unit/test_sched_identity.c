/* test_sched_identity.c - whose job, whose node id, whose priority: principals through the core */
#include "tests/unit/sched_fixture.h"

enum { EVERYTHING = MS_ROLE_WORKER | MS_ROLE_USER | MS_ROLE_ADMIN };

static uint64_t open_as(const struct ms_principal *who, const char *address)
{
    struct ms_peer peer;
    memset(&peer, 0, sizeof(peer));
    peer.who = *who;
    snprintf(peer.address, sizeof(peer.address), "%s", address);
    struct sched_event event = {.kind = SCHED_EV_OPENED, .conn = ++fix.conns, .peer = &peer};
    fix_apply(&event);
    return fix.conns;
}

static uint64_t open_socket(unsigned uid, const char *name)
{
    struct ms_principal who;
    ms_principal_from_uid(uid, name, 990, MS_ROLE_WORKER, &who);
    return open_as(&who, "unix");
}

static uint64_t open_plain(const char *address, unsigned roles)
{
    struct ms_principal who;
    ms_principal_anyone(roles, &who);
    return open_as(&who, address);
}

static uint64_t submit_on(uint64_t conn, const char *key)
{
    Ms__Submit msg = fix_job(1);
    msg.key = (char *)key;
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    const Ms__Submitted *answer = fix_heard(conn, MS_MSG_SUBMITTED);
    return answer != NULL ? answer->job : 0;
}

/* ---- jobs ---------------------------------------------------------------------------------------
 */

START_TEST(root_and_the_daemons_user_cancel_the_job_of_another_uid)
{
    static const struct {
        unsigned uid;
        const char *name, *reason;
    } admins[] = {{0, "root", "cancelled by root"}, {990, "msched", "cancelled by msched"}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(admins); i++) {
        fix_standing();
        uint64_t job = submit_on(open_socket(1000, "alice"), "");
        uint64_t admin = open_socket(admins[i].uid, admins[i].name);

        fix_cancel(admin, job, 0);

        ck_assert_ptr_nonnull(fix_heard(admin, MS_MSG_OK));
        fix_job_is(job, "CANCELLED", admins[i].reason);
    }
}
END_TEST

START_TEST(one_person_owns_a_job_by_socket_and_by_certificate)
{
    fix_standing();
    uint64_t job = submit_on(open_socket(1000, "alice"), "k");
    uint64_t remote = fix_open(MS_ROLE_USER, "alice");

    ck_assert_uint_eq(submit_on(remote, "k"), job);
    fix_cancel(remote, job, 0);

    ck_assert_ptr_nonnull(fix_heard(remote, MS_MSG_OK));
    ck_assert_str_eq(fix_show(job)->owner, "user:alice");
}
END_TEST

START_TEST(another_uid_cannot_cancel)
{
    fix_standing();
    uint64_t job = submit_on(open_socket(1000, "alice"), "");
    uint64_t bob = open_socket(1001, "");

    fix_cancel(bob, job, 0);

    fix_refused(bob, MS_E_REFUSED, "belongs to user:alice and you are uid:1001");
}
END_TEST

START_TEST(without_tls_a_job_can_be_cancelled_from_the_next_connection)
{
    fix_standing();
    uint64_t job = submit_on(open_plain("127.0.0.1:40001", MS_ROLE_USER), "");
    uint64_t next = open_plain("127.0.0.1:40002", MS_ROLE_USER);

    fix_cancel(next, job, 0);

    ck_assert_ptr_nonnull(fix_heard(next, MS_MSG_OK));
    fix_job_is(job, "CANCELLED", "cancelled by anyone");
}
END_TEST

START_TEST(without_tls_the_same_key_is_the_same_job)
{
    fix_standing();
    uint64_t job = submit_on(open_plain("127.0.0.1:40001", MS_ROLE_USER), "key");

    ck_assert_uint_eq(submit_on(open_plain("127.0.0.1:40002", MS_ROLE_USER), "key"), job);
}
END_TEST

START_TEST(anyone_may_what_the_operator_gives_and_no_more)
{
    fix_standing();
    uint64_t users = open_plain("127.0.0.1:40001", MS_ROLE_USER);
    Ms__Register msg = fix_node("w0", 1);

    ck_assert_uint_ne(submit_on(users, ""), 0);
    fix_say(users, MS_MSG_REGISTER, &msg.base);
    fix_refused(users, MS_E_REFUSED,
                "Register is not for a user to send (this connection is "
                "anyone)");

    uint64_t nobody = open_plain("127.0.0.1:40002", 0);
    ck_assert_uint_eq(submit_on(nobody, ""), 0);
    fix_refused(nobody, MS_E_REFUSED, "Submit is not for a nobody to send");
}
END_TEST

/* ---- nodes --------------------------------------------------------------------------------------
 */

START_TEST(without_tls_a_worker_comes_back_under_its_node_id)
{
    fix_standing();
    Ms__Register msg = fix_node("w0", 7);
    fix_say(open_plain("127.0.0.1:40001", EVERYTHING), MS_MSG_REGISTER, &msg.base);
    uint64_t again = open_plain("127.0.0.1:40002", EVERYTHING);

    fix_say(again, MS_MSG_REGISTER, &msg.base);

    ck_assert_ptr_nonnull(fix_heard(again, MS_MSG_REGISTERED));
}
END_TEST

/* A node of the certificate, or what it got for an answer. */
static uint64_t register_as(const char *certificate, const char *node_id, uint64_t incarnation)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, certificate);
    Ms__Register msg = fix_node(node_id, incarnation);
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

static void start_strict(uint32_t nodes_per_certificate)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.certificate_ids = 1;
    cfg.nodes_per_certificate = nodes_per_certificate;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

static void load_running_job(const char *node_id, const char *principal)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    struct sched_job_row job;
    struct sched_member_row member;
    memset(&job, 0, sizeof(job));
    memset(&member, 0, sizeof(member));
    cfg.certificate_ids = 1;
    fix_create(&cfg);
    job.id = 3;
    job.state = JOB_RUNNING;
    snprintf(job.name, sizeof(job.name), "mnist");
    snprintf(job.owner, sizeof(job.owner), "user:alice");
    job.workers = 1;
    job.generation = 13;
    job.spec = (const uint8_t *)"{}";
    job.spec_bytes = 2;
    ck_ms_ok(sched_load_job(fix.s, &job, err));
    member.job = 3;
    member.incarnation = 100;
    snprintf(member.node_id, sizeof(member.node_id), "%s", node_id);
    snprintf(member.host_name, sizeof(member.host_name), "h");
    snprintf(member.principal, sizeof(member.principal), "%s", principal);
    ck_ms_ok(sched_load_member(fix.s, &member, err));
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

START_TEST(a_node_id_is_the_name_of_its_certificate_and_a_slot_or_a_word)
{
    static const struct {
        const char *id;
        int is_taken;
    } rows[] = {
        {"node7", 1},     {"node7-0", 1},   {"node7-4095", 1}, {"node7:1", 1},   {"node7/gpu", 1},
        {"node7:a-0", 1}, {"node7:", 1},    {"node70", 0},     {"node", 0},      {"0", 0},
        {"xnode7", 0},    {"node8-0", 0},   {"node7+more", 0}, {"Node7", 0},     {"node7-", 0},
        {"node7-0-0", 0}, {"node7-gpu", 0}, {"node7.1", 0},    {"node7_gpu", 0}, {"node7@b", 0},
        {"node7-0:a", 0}, {"node7-0x", 0},  {"-0", 0},         {":0", 0},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        start_strict(0);
        uint64_t conn = register_as("node7", rows[i].id, 1);
        ck_assert_msg((fix_heard(conn, MS_MSG_REGISTERED) != NULL) == rows[i].is_taken, "%s",
                      rows[i].id);
        if (!rows[i].is_taken) {
            fix_refused(conn, MS_E_REFUSED,
                        "and this one is node7: set MS_NODE_ID to node7-0, or ");
        }
    }
    start_strict(0); /* who has no certificate has no name to begin with */
    uint64_t local = open_socket(990, "msched");
    Ms__Register msg = fix_node("0", 1);
    fix_say(local, MS_MSG_REGISTER, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(local, MS_MSG_REGISTERED));
}
END_TEST

START_TEST(no_two_certificates_may_register_the_same_node_id)
{
    static const char *const names[] = {"node7",     "node7-0", "node7-0-0", "node7.0",  "node",
                                        "node7-0.x", "7",       "node7_0",   "node7-gpu"};
    static const char *const ids[] = {"node7",     "node7-0",   "node7-0-0", "node7-0-0-0",
                                      "node7:0",   "node7-0:0", "node7/0-0", "node7.0",
                                      "node7.0-1", "node-7",    "7-7",       "node7-0.x",
                                      "node7-gpu", "node7_0",   "node7_0-0", "node7-0.x-12"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(ids); i++) {
        int n = 0;
        for (size_t k = 0; k < MS_ARRAY_SIZE(names); k++) {
            start_strict(0);
            uint64_t conn = register_as(names[k], ids[i], 1);
            n += fix_heard(conn, MS_MSG_REGISTERED) != NULL;
        }
        ck_assert_msg(n == 1, "%d certificates may register %s", n, ids[i]);
    }
}
END_TEST

START_TEST(who_holds_a_node_id_keeps_it_whatever_the_rule_was)
{
    load_running_job("old.gpu", "worker:old");
    uint64_t conn = fix_open(MS_ROLE_WORKER, "old");
    Ms__Register msg = fix_node("old.gpu", 100);
    msg.job = 3;
    msg.generation = 13;
    msg.running = 1;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
    fix_job_is(3, "RUNNING", "");
    fix_refused(register_as("old", "old.cpu", 101), MS_E_REFUSED, "is for the certificate old.cpu");
}
END_TEST

START_TEST(one_certificate_registers_only_so_many_nodes)
{
    start_strict(2);
    uint64_t first = register_as("node7", "node7-0", 1);
    register_as("node7", "node7-1", 2);

    uint64_t third = register_as("node7", "node7-2", 3);
    fix_refused(third, MS_E_FULL,
                "2 nodes of the certificate node7 are registered or expected back, which is "
                "the limit (nodes_per_certificate)");
    ck_assert_ptr_nonnull(fix_heard(register_as("node8", "node8-0", 4), MS_MSG_REGISTERED));
    /* a reconnect is none more */
    uint64_t again = register_as("node7", "node7-0", 1);
    ck_assert_ptr_nonnull(fix_heard(again, MS_MSG_REGISTERED));
    (void)first;

    fix_close(again);
    ck_assert_ptr_nonnull(fix_heard(register_as("node7", "node7-2", 3), MS_MSG_REGISTERED));
}
END_TEST

static uint64_t comes_back(const char *certificate, const char *node_id)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, certificate);
    Ms__Register msg = fix_node(node_id, 100);
    msg.job = 3;
    msg.generation = 13;
    msg.running = 1;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

static void allow_one(void)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.certificate_ids = 1;
    cfg.nodes_per_certificate = 1;
    sched_set_policy(fix.s, &cfg);
}

/* It was not there when the other one came, and had no place any more. */
START_TEST(a_node_that_is_expected_back_has_its_place)
{
    load_running_job("node7-0", "worker:node7");
    allow_one();

    fix_refused(register_as("node7", "node7-1", 7), MS_E_FULL,
                "1 nodes of the certificate node7 are registered or expected back");
    uint64_t conn = comes_back("node7", "node7-0");
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
    fix_job_is(3, "RUNNING", "");

    sched_stood_still(fix.s, FIX_LEASE_MS);
    fix_pass(FIX_LEASE_MS);
    fix_close(conn);
    fix_refused(register_as("node7", "node7-1", 7), MS_E_FULL, "registered or expected back");
    conn = comes_back("node7", "node7-0");
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
    fix_job_is(3, "RUNNING", "");
}
END_TEST

START_TEST(a_node_that_did_not_come_back_has_no_place)
{
    load_running_job("node7-0", "worker:node7");
    allow_one();

    fix_pass(FIX_LEASE_MS + MS_ADOPT_NODE_MS);

    fix_job_is(3, "FAILED", "did not come back");
    ck_assert_ptr_nonnull(fix_heard(register_as("node7", "node7-1", 7), MS_MSG_REGISTERED));
}
END_TEST

/* The limit is new: whoever has a rank keeps its place. */
START_TEST(nodes_that_are_expected_back_come_whatever_the_limit_is)
{
    load_running_job("node7-0", "worker:node7");
    ck_assert_ptr_nonnull(fix_heard(register_as("node7", "node7-1", 7), MS_MSG_REGISTERED));
    allow_one();

    ck_assert_ptr_nonnull(fix_heard(comes_back("node7", "node7-0"), MS_MSG_REGISTERED));
    fix_job_is(3, "RUNNING", "");
}
END_TEST

START_TEST(another_certificate_that_claims_a_rank_after_a_restart_ends_nothing)
{
    load_running_job("node7-0", "worker:node7");
    uint64_t thief = register_as("node8", "node7-0", 666);
    fix_refused(thief, MS_E_EXISTS,
                "node7-0 is registered already by worker:node7, and this "
                "connection is worker:node8");
    fix_job_is(3, "RUNNING", "waits for the nodes of rank 0 to come back");

    ck_assert_ptr_nonnull(fix_heard(comes_back("node7", "node7-0"), MS_MSG_REGISTERED));
    fix_job_is(3, "RUNNING", "");
}
END_TEST

START_TEST(the_row_of_a_rank_names_the_certificate_of_its_node)
{
    fix_standing();
    register_as("node7", "node7-0", 1);
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(1);

    fix_say(conn, MS_MSG_SUBMIT, &msg.base);

    const struct sched_effect *effect = fix_effect(SCHED_DO_PUT_MEMBER);
    ck_assert_ptr_nonnull(effect);
    ck_assert_str_eq(effect->member->principal, "worker:node7");
}
END_TEST

START_TEST(an_extra_worker_of_a_dynamic_cluster_is_refused_whatever_it_claims)
{
    struct sched_config cfg = fix_config(SCHED_DYNAMIC, 1);
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    for (uint64_t claimed = 0; claimed < 3; claimed++) {
        uint64_t conn = fix_open(MS_ROLE_WORKER, "c");
        Ms__Register msg = fix_node(claimed == 0 ? "w0" : "w1", 1 + claimed);
        msg.worker_num = 1;
        msg.job_json.data = (uint8_t *)"{}";
        msg.job_json.len = 2;
        msg.job = claimed; /* 1 is the one that runs, 2 was never heard of */
        msg.generation = claimed > 0;
        fix_say(conn, MS_MSG_REGISTER, &msg.base);
        if (claimed == 0) {
            ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_ASSIGN));
        } else {
            fix_refused(conn, MS_E_REFUSED, "worker w1 is extra: all 1 ranks are taken");
        }
    }
}
END_TEST

/* ---- priorities ---------------------------------------------------------------------------------
 */

START_TEST(priorities_of_users_are_the_operators)
{
    static const struct {
        int32_t priority;
        int by_user, by_admin;
    } rows[] = {
        {0, 1, 1},
        {-100, 1, 1},
        {100, 1, 1},
        {101, MS_E_REFUSED, 1},
        {-101, MS_E_REFUSED, 1},
        {1000, MS_E_REFUSED, 1},
        {1001, MS_E_INVALID, MS_E_INVALID},
        {-1001, MS_E_INVALID, MS_E_INVALID},
        {INT32_MAX, MS_E_INVALID, MS_E_INVALID},
        {INT32_MIN, MS_E_INVALID, MS_E_INVALID},
    };
    fix_standing();
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        for (int is_admin = 0; is_admin < 2; is_admin++) {
            uint64_t conn = fix_open(is_admin ? MS_ROLE_ADMIN : MS_ROLE_USER, "alice");
            int want = is_admin ? rows[i].by_admin : rows[i].by_user;
            Ms__Submit msg = fix_job(1);
            msg.priority = rows[i].priority;
            fix_say(conn, MS_MSG_SUBMIT, &msg.base);
            if (want == 1) {
                ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_SUBMITTED));
            } else {
                fix_refused(conn, want,
                            want == MS_E_REFUSED ? "users have -100 to 100 here"
                                                 : "from -1000 to 1000 are possible");
            }
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_identity");
    TCase *tc = tcase_create("sched_identity");
    tcase_add_test(tc, root_and_the_daemons_user_cancel_the_job_of_another_uid);
    tcase_add_test(tc, one_person_owns_a_job_by_socket_and_by_certificate);
    tcase_add_test(tc, another_uid_cannot_cancel);
    tcase_add_test(tc, without_tls_a_job_can_be_cancelled_from_the_next_connection);
    tcase_add_test(tc, without_tls_the_same_key_is_the_same_job);
    tcase_add_test(tc, anyone_may_what_the_operator_gives_and_no_more);
    tcase_add_test(tc, without_tls_a_worker_comes_back_under_its_node_id);
    tcase_add_test(tc, a_node_id_is_the_name_of_its_certificate_and_a_slot_or_a_word);
    tcase_add_test(tc, no_two_certificates_may_register_the_same_node_id);
    tcase_add_test(tc, who_holds_a_node_id_keeps_it_whatever_the_rule_was);
    tcase_add_test(tc, one_certificate_registers_only_so_many_nodes);
    tcase_add_test(tc, a_node_that_is_expected_back_has_its_place);
    tcase_add_test(tc, a_node_that_did_not_come_back_has_no_place);
    tcase_add_test(tc, nodes_that_are_expected_back_come_whatever_the_limit_is);
    tcase_add_test(tc, another_certificate_that_claims_a_rank_after_a_restart_ends_nothing);
    tcase_add_test(tc, the_row_of_a_rank_names_the_certificate_of_its_node);
    tcase_add_test(tc, an_extra_worker_of_a_dynamic_cluster_is_refused_whatever_it_claims);
    tcase_add_test(tc, priorities_of_users_are_the_operators);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
