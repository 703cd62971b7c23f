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

/* The host that a node with these would be on. */
static struct host *find_host(const char *host_id)
{
    struct node node = {.state = NODE_NEW};
    snprintf(node.info.host_id, sizeof(node.info.host_id), "%s", host_id);
    return host_find(fix.s, &node);
}

START_TEST(nodes_of_one_host_id_share_a_host)
{
    fix_standing();

    on_host("w0", 1, "boot-1", "tiger");
    on_host("w1", 2, "boot-1", "tiger.example.com");
    on_host("w2", 3, "boot-2", "tiger");

    struct host *host = node_find(fix.s, "w0")->host;
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

    ck_assert_ptr_null(find_host("boot-1"));
    ck_assert_str_eq(node_find(fix.s, "w0")->host->name, "lion");
}
END_TEST

START_TEST(host_is_forgotten_with_its_last_node)
{
    fix_standing();
    fix_close(on_host("w0", 1, "boot-1", "tiger"));
    ck_assert_ptr_nonnull(find_host("boot-1"));

    fix_pass(MS_LOST_KEEP_MS);

    ck_assert_ptr_null(find_host("boot-1"));
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
    fix_job_is(next, "PLACING", "to choose the plan");
}
END_TEST

START_TEST(drained_host_stays_known_without_nodes)
{
    fix_standing();
    uint64_t conn = on_host("w0", 1, "boot-1", "tiger");
    host_drain(fix.s, find_host("boot-1"), "admin:root", "broken fan");
    fix_close(conn);
    fix_pass(MS_LOST_KEEP_MS);

    on_host("w1", 2, "boot-1", "tiger");

    ck_assert_str_eq(fix_show_node("w1")->activity, "drained by admin:root: broken fan");
}
END_TEST

/* ---- pauses -------------------------------------------------------------------------------------
 */

/* Time passes, and these two beat. */
static void pass(int64_t ms, uint64_t a, uint64_t b)
{
    while (ms > 0) {
        int64_t step = ms < FIX_LEASE_MS / 2 ? ms : FIX_LEASE_MS / 2;
        fix_pass(step);
        fix_beat(a);
        fix_beat(b);
        ms -= step;
    }
}

static void finish(uint64_t conn, uint64_t job, uint64_t generation)
{
    fix_ready(conn, job, generation, 0);
    fix_done(conn, job, generation, 0, 0, "");
}

START_TEST(nodes_of_a_dying_host_cost_a_job_one_try)
{
    uint64_t dying[4];
    char id[8];
    fix_standing();
    fix_submit(1, 0);
    for (uint64_t i = 0; i < MS_ARRAY_SIZE(dying); i++) {
        snprintf(id, sizeof(id), "d%d", (int)i);
        dying[i] = on_host(id, i + 1, "boot-1", "tiger");
    }
    for (uint64_t i = 0; i < 8; i++) { /* the larger host: best fit would take the other one */
        snprintf(id, sizeof(id), "g%d", (int)i);
        on_host(id, i + 10, "boot-2", "lion");
    }

    for (size_t i = 0; i < MS_ARRAY_SIZE(dying); i++) {
        fix_close(dying[i]);
    }

    fix_job_is(1, "PLACING", "waits for rank 0");
    ck_assert_str_eq(node_find(fix.s, "g0")->host->name, "lion");
    ck_assert_str_eq(fix_show(1)->ranks[0]->host_name, "lion");
    ck_assert_uint_eq(job_find(fix.s, 1)->n_tries, 2);
}
END_TEST

START_TEST(jobs_that_are_lost_together_pause_their_host_once)
{
    uint64_t conns[3];
    char id[8];
    fix_standing();
    for (uint64_t i = 0; i < MS_ARRAY_SIZE(conns); i++) {
        snprintf(id, sizeof(id), "w%d", (int)i);
        conns[i] = on_host(id, i + 1, "boot-1", "tiger");
        fix_submit(1, 0);
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(conns); i++) {
        fix_close(conns[i]);
    }
    for (uint64_t i = 0; i < MS_ARRAY_SIZE(conns); i++) {
        snprintf(id, sizeof(id), "w%d", (int)i);
        on_host(id, i + 10, "boot-1", "tiger");
    }

    fix_pass(MS_HOST_PAUSE_MS);

    for (uint64_t job = 1; job <= MS_ARRAY_SIZE(conns); job++) {
        fix_job_is(job, "PLACING", "waits for rank 0");
    }
}
END_TEST

START_TEST(job_waits_for_a_host_that_works_and_is_not_failed_by_a_broken_one)
{
    fix_standing();
    uint64_t good = on_host("good", 1, "boot-1", "lion");
    fix_submit(1, 0);
    fix_ready(good, 1, 1, 0);
    fix_job_is(1, "RUNNING", "");
    uint64_t waits = fix_submit(1, 0);
    for (uint64_t i = 0; i < 6; i++) { /* it cannot open the folder of any job, and is restarted */
        uint64_t bad = on_host("bad", 10 + i, "boot-2", "tiger");
        pass(MS_HOST_PAUSE_MAX_MS, good, bad);
        fix_job_is(waits, "PLACING", "waits for rank 0");
        fix_close(bad);
        fix_job_is(waits, "QUEUED", "rank 0 (node bad on host tiger) was lost");
    }

    fix_done(good, 1, 1, 0, 0, "");

    fix_job_is(waits, "PLACING", "waits for rank 0");
    ck_assert_str_eq(fix_show(waits)->ranks[0]->host_name, "lion");
}
END_TEST

START_TEST(job_that_needs_the_broken_host_fails_and_lets_the_next_one_go)
{
    fix_standing();
    uint64_t good = on_host("good", 1, "boot-1", "lion");
    fix_submit(2, 0);
    fix_submit(1, 0);
    for (uint64_t i = 0; i < MS_PLACE_TRIES_MAX; i++) {
        uint64_t bad = on_host("bad", 10 + i, "boot-2", "tiger");
        pass(MS_HOST_PAUSE_MAX_MS, good, bad);
        fix_job_is(1, "PLACING", "to choose the plan");
        fix_close(bad);
        fix_stopped(good, 1, i + 1, 0);
    }

    fix_job_is(1, "FAILED", "it was placed 3 times and never started");
    fix_job_is(2, "PLACING", "waits for rank 0");
}
END_TEST

/* A certificate proves who registers a node, and nothing what it says of its host. */
START_TEST(nobody_gets_the_host_of_another_certificate_paused)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.certificate_ids = true;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    for (int i = 0; i < 4; i++) {
        char id[16];
        uint64_t conn = fix_open(MS_ROLE_WORKER, i < 3 ? "evil" : "good");
        snprintf(id, sizeof(id), i < 3 ? "evil-%d" : "good-%d", i);
        Ms__Register msg = fix_node(id, (uint64_t)i + 1); /* all say that they are on host h */
        fix_say(conn, MS_MSG_REGISTER, &msg.base);
        ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_REGISTERED));
    }
    ck_assert_ptr_eq(node_find(fix.s, "evil-0")->host, node_find(fix.s, "evil-1")->host);
    ck_assert_ptr_ne(node_find(fix.s, "evil-0")->host, node_find(fix.s, "good-3")->host);
    fix_submit(1, 0);
    ck_assert_str_eq(fix_show(1)->ranks[0]->node_id, "evil-0");

    fix_close(node_find(fix.s, "evil-0")->conn->id);

    ck_assert_int_eq(fix_logged("host.paused host=\"h\" principal=\"worker:evil\" ms="), 1);
    ck_assert_str_eq(fix_show(1)->ranks[0]->node_id, "good-3");
    ck_assert(node_find(fix.s, "evil-1")->host->paused);
    ck_assert_str_eq(fix_show_node("evil-1")->activity,
                     "paused: its host, that of worker:evil, lost a node while a job got ready; "
                     "goes on by itself");
}
END_TEST

START_TEST(job_that_kills_every_host_fails_and_so_does_one_on_the_only_host)
{
    for (int n_hosts = 1; n_hosts <= 3; n_hosts += 2) {
        fix_standing();
        fix_submit(1, 0);
        for (int i = 0; i < MS_PLACE_TRIES_MAX; i++) {
            char host[8];
            fix_job_is(1, "QUEUED", "waits for 1 idle node");
            snprintf(host, sizeof(host), "h%d", i % n_hosts);
            uint64_t conn = on_host(host, (uint64_t)i + 1, host, host);
            pass(MS_HOST_PAUSE_MS << i, conn, conn);
            fix_job_is(1, "PLACING", "waits for rank 0");
            fix_close(conn);
        }
        fix_job_is(1, "FAILED", "it was placed 3 times and never started");
    }
}
END_TEST

START_TEST(pause_doubles_up_to_its_bound_and_begins_anew_where_a_job_started)
{
    int64_t pause = MS_HOST_PAUSE_MS;
    fix_standing();
    for (uint64_t i = 0; i < 8; i++) {
        uint64_t job = fix_submit(1, 0);
        uint64_t conn = on_host("w", i + 1, "boot-1", "tiger");
        if (i > 0) {
            ck_assert_str_eq(
                fix_show_node("w")->activity,
                "paused: its host lost a node while a job got ready; goes on by itself");
            pass(pause - 1, conn, conn);
            fix_job_is(job, "QUEUED", ", 1 host paused after a loss");
            pass(1, conn, conn);
            pause = 2 * pause > MS_HOST_PAUSE_MAX_MS ? MS_HOST_PAUSE_MAX_MS : 2 * pause;
        }
        fix_job_is(job, "PLACING", "waits for rank 0");
        fix_close(conn);
        fix_cancel(fix_open(MS_ROLE_USER, "alice"), job, 0);
    }

    uint64_t conn = on_host("w", 100, "boot-1", "tiger");
    pass(MS_HOST_PAUSE_MAX_MS, conn, conn);
    uint64_t job = fix_submit(1, 0);
    finish(conn, job, 9);
    fix_job_is(job, "SUCCEEDED", "finished");
    job = fix_submit(1, 0);
    fix_close(conn);
    fix_job_is(job, "QUEUED", "was lost");
    conn = on_host("w", 101, "boot-1", "tiger");
    pass(MS_HOST_PAUSE_MS, conn, conn);
    fix_job_is(job, "PLACING", "waits for rank 0");
}
END_TEST

START_TEST(ranks_of_a_host_with_two_names_are_side_by_side)
{
    fix_standing();
    on_host("w0", 1, "boot-1", "ape");
    on_host("w1", 2, "boot-2", "lion");
    on_host("w2", 3, "boot-1", "zebra");

    uint64_t job = fix_submit(3, 0);

    const Ms__JobInfo *info = fix_show(job);
    const char *nodes[3];
    for (size_t i = 0; i < MS_ARRAY_SIZE(nodes); i++) {
        nodes[i] = info->ranks[i]->node_id;
    }
    ck_assert_str_ne(nodes[1], "w1");
}
END_TEST

START_TEST(job_that_needs_a_paused_host_steps_aside_and_comes_back_to_it)
{
    fix_standing();
    uint64_t good = on_host("good", 1, "boot-1", "lion");
    uint64_t bad = 0;
    for (uint64_t i = 0; i < 6; i++) { /* until the pause is longest */
        uint64_t job = fix_submit(2, 0);
        bad = on_host("bad", 10 + i, "boot-2", "tiger");
        pass(MS_HOST_PAUSE_MAX_MS, good, bad);
        fix_job_is(job, "PLACING", "to choose the plan");
        fix_close(bad);
        fix_stopped(good, job, i + 1, 0);
        fix_cancel(fix_open(MS_ROLE_USER, "alice"), job, 0);
    }
    bad = on_host("bad", 100, "boot-2", "tiger");
    uint64_t large = fix_submit(2, 0);
    uint64_t small = fix_submit(1, 0);
    fix_job_is(small, "QUEUED", "waits behind job 7");

    pass(FIX_LEASE_MS, good, bad);

    fix_job_is(small, "PLACING", "waits for rank 0");
    fix_job_is(large, "QUEUED",
               "needs 2 nodes, the cluster has 1, 1 host paused after a loss (msctl nodes): waits");
    pass(MS_HOST_PAUSE_MAX_MS - FIX_LEASE_MS, good, bad);
    uint64_t later = fix_submit(1, 0);
    fix_job_is(later, "QUEUED", "waits behind job 7, which waits for 2 idle nodes");
    fix_ready(good, small, 7, 0);
    fix_done(good, small, 7, 0, 0, "");
    fix_job_is(large, "PLACING", "to choose the plan");
}
END_TEST

START_TEST(hosts_that_are_drained_are_no_way_out)
{
    fix_standing();
    on_host("idle", 1, "boot-1", "lion");
    host_drain(fix.s, find_host("boot-1"), "admin:root", "broken fan");
    fix_submit(1, 0);
    for (uint64_t i = 0; i < MS_PLACE_TRIES_MAX; i++) {
        uint64_t bad = on_host("bad", 10 + i, "boot-2", "tiger");
        pass(MS_HOST_PAUSE_MAX_MS, node_find(fix.s, "idle")->conn->id, bad);
        fix_job_is(1, "PLACING", "waits for rank 0");
        fix_close(bad);
    }

    fix_job_is(1, "FAILED", "it was placed 3 times and never started");
}
END_TEST

START_TEST(host_that_is_forgotten_is_paused_no_longer)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.lost_nodes_max = 1;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    uint64_t bad = on_host("bad", 1, "boot-1", "tiger");
    uint64_t job = fix_submit(1, 0);
    fix_close(bad);
    fix_job_is(job, "QUEUED", "1 host paused after a loss");
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), job, 0);

    fix_close(on_host("other", 2, "boot-2", "lion"));

    ck_assert_ptr_null(find_host("boot-1"));
    ck_assert_uint_eq(fix.s->n_paused, 0);
    ck_ms_ok(sched_check(fix.s, err));
}
END_TEST

START_TEST(silence_on_a_crowded_host_is_said_to_be_that)
{
    enum { MOST = 4 * MS_HOST_CROWD }; /* each node of these says that it has 4 cores */
    char id[8];
    fix_standing();
    for (uint64_t i = 0; i < MOST; i++) {
        snprintf(id, sizeof(id), "a%d", (int)i);
        on_host(id, i + 1, "boot-1", "tiger");
    }
    for (uint64_t i = 0; i < MOST + 1; i++) {
        snprintf(id, sizeof(id), "b%d", (int)i);
        on_host(id, i + 1, "boot-2", "lion");
    }

    fix_pass(FIX_LEASE_MS + 70);

    ck_assert_str_eq(fix_show_node("a0")->reason,
                     "it was silent for 10070 ms, the lease is 10000 ms (is its host down, cut "
                     "off, or too busy?)");
    ck_assert_str_eq(fix_show_node("b0")->reason,
                     "it was silent for 10070 ms, the lease is 10000 ms; its host has 4 cores for "
                     "more than 32 nodes: run fewer");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sched_host");
    TCase *t = tcase_create("host");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, nodes_of_one_host_id_share_a_host);
    tcase_add_test(t, ranks_of_a_host_with_two_names_are_side_by_side);
    tcase_add_test(t, job_that_needs_a_paused_host_steps_aside_and_comes_back_to_it);
    tcase_add_test(t, hosts_that_are_drained_are_no_way_out);
    tcase_add_test(t, host_that_is_forgotten_is_paused_no_longer);
    tcase_add_test(t, silence_on_a_crowded_host_is_said_to_be_that);
    tcase_add_test(t, node_that_comes_back_from_another_host_moves);
    tcase_add_test(t, host_is_forgotten_with_its_last_node);
    tcase_add_test(t, drained_host_keeps_its_ranks_and_gets_no_new_ones);
    tcase_add_test(t, drained_host_stays_known_without_nodes);
    tcase_add_test(t, nodes_of_a_dying_host_cost_a_job_one_try);
    tcase_add_test(t, jobs_that_are_lost_together_pause_their_host_once);
    tcase_add_test(t, job_waits_for_a_host_that_works_and_is_not_failed_by_a_broken_one);
    tcase_add_test(t, job_that_needs_the_broken_host_fails_and_lets_the_next_one_go);
    tcase_add_test(t, nobody_gets_the_host_of_another_certificate_paused);
    tcase_add_test(t, job_that_kills_every_host_fails_and_so_does_one_on_the_only_host);
    tcase_add_test(t, pause_doubles_up_to_its_bound_and_begins_anew_where_a_job_started);
    suite_add_tcase(s, t);
    return test_run(s);
}
