/* test_sched_host.c - hosts: made of their nodes, drained and resumed */
#include "tests/unit/sched_fixture.h"

#include "daemon/sched/state.h"

static uint64_t on_host(const char *node_id, uint64_t incarnation, const char *host_id,
                        const char *host_name)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "c");
    Ms__Register msg = fix_node(node_id, incarnation);
    msg.host_id = (char *)host_id;
    msg.host_name = (char *)host_name;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

START_TEST(nodes_of_one_host_id_share_a_host)
{
    fix_standing();

    on_host("w0", 1, "boot-1", "tiger");
    on_host("w1", 2, "boot-1", "tiger.example.com");
    on_host("w2", 3, "boot-2", "tiger");

    struct host *host = host_find(fix.s, "boot-1", "");
    ck_assert_ptr_nonnull(host);
    ck_assert_str_eq(host->name, "tiger");
    ck_assert_ptr_eq(node_find(fix.s, "w0")->host, host);
    ck_assert_ptr_eq(node_find(fix.s, "w1")->host, host);
    ck_assert_ptr_ne(node_find(fix.s, "w2")->host, host);
    ck_assert_uint_eq(host_cores(host), 4);
}
END_TEST

START_TEST(node_that_comes_back_from_another_host_moves)
{
    fix_standing();
    fix_close(on_host("w0", 1, "boot-1", "tiger"));

    on_host("w0", 2, "boot-2", "lion");

    ck_assert_ptr_null(host_find(fix.s, "boot-1", ""));
    ck_assert_str_eq(node_find(fix.s, "w0")->host->name, "lion");
}
END_TEST

START_TEST(host_is_forgotten_with_its_last_node)
{
    fix_standing();
    fix_close(on_host("w0", 1, "boot-1", "tiger"));
    ck_assert_ptr_nonnull(host_find(fix.s, "boot-1", ""));

    fix_pass(MS_LOST_KEEP_MS);

    ck_assert_ptr_null(host_find(fix.s, "boot-1", ""));
}
END_TEST

START_TEST(drained_host_keeps_its_ranks_and_gets_no_new_ones)
{
    uint64_t conns[2];
    fix_running(conns);
    struct host *host = node_find(fix.s, "w0")->host;

    host_drain(fix.s, host, "admin:root", "new memory");
    uint64_t next = fix_submit(1, 0);
    fix_job_is(1, "RUNNING", "");
    fix_done(conns[0], 1, 1, 0, 0, "");
    fix_done(conns[1], 1, 1, 1, 0, "");

    fix_job_is(1, "SUCCEEDED", "finished");
    fix_job_is(next, "QUEUED", "0 idle");
    ck_assert_str_eq(fix_show_node("w1")->activity, "drained by admin:root: new memory");

    host_resume(fix.s, host);
    fix_time();
    fix_job_is(next, "PLACING", "to load data");
}
END_TEST

START_TEST(drained_host_stays_known_without_nodes)
{
    fix_standing();
    uint64_t conn = on_host("w0", 1, "boot-1", "tiger");
    host_drain(fix.s, host_find(fix.s, "boot-1", ""), "admin:root", "broken fan");
    fix_close(conn);
    fix_pass(MS_LOST_KEEP_MS);

    on_host("w1", 2, "boot-1", "tiger");

    ck_assert_str_eq(fix_show_node("w1")->activity, "drained by admin:root: broken fan");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sched_host");
    TCase *t = tcase_create("host");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, nodes_of_one_host_id_share_a_host);
    tcase_add_test(t, node_that_comes_back_from_another_host_moves);
    tcase_add_test(t, host_is_forgotten_with_its_last_node);
    tcase_add_test(t, drained_host_keeps_its_ranks_and_gets_no_new_ones);
    tcase_add_test(t, drained_host_stays_known_without_nodes);
    suite_add_tcase(s, t);
    return test_run(s);
}
