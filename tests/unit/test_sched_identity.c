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
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
