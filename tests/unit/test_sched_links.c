/* test_sched_links.c - ranks that do not reach each other, and whoever keeps the state meanwhile:
 * no step is lost as long as one process that holds it lives */
#include "tests/unit/sched_recover_case.h"

#include "daemon/sched/state.h"

static const char *const hosts[] = {"a", "b", "c", "d"};

/* Job 1 of so many ranks on n0, n1, ..., each on a host of its own, at step 100. */
static void training(uint32_t ranks)
{
    start(SCHED_STANDING, 0);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        char id[8];
        snprintf(id, sizeof(id), "n%u", rank);
        conns[rank] = node_on(id, 1 + rank, hosts[rank]);
    }
    submit(ranks);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, ranks, 0);
    progress(1, 100);
}

/* Who has the rank now complains of another one, and is judged. */
static void complains(uint64_t generation, uint32_t rank, uint32_t of)
{
    peer_report(generation, rank, of);
    fix_pass(MS_BLAME_MS);
}

static bool hears_stop(uint64_t conn)
{
    return fix_heard(conn, MS_MSG_STOP) != NULL;
}

static uint64_t comes_back(const char *id, uint64_t incarnation, uint64_t generation, uint32_t rank)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(id, incarnation);
    msg.job = 1;
    msg.generation = generation;
    msg.rank = rank;
    msg.running = 1;
    msg.step = 100;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

/* ---- which end ----------------------------------------------------------------------------------
 */

/* n0 alone is cut off from n1 and the spare, which are on one host; all reach the scheduler. */
START_TEST(a_link_that_is_cut_for_good_costs_no_step)
{
    training(2);
    uint64_t spare = node_on("s", 9, "b");
    complains(1, 0, 1);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2); /* the same two try again */
    uint64_t cut_off = conns[0];

    complains(2, 0, 1);

    const Ms__Assign *msg = fix_heard(spare, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 0);
    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0); /* n0 holds step 100, and n1 has it, too */
    conns[0] = spare;
    fix_job_is(1, "RECOVERING", "node n0 keeps the state of rank 0 until then");
    ck_assert_str_eq(fix_show_node("n0")->activity,
                     "job 1: keeps the state of rank 0 until another node has it");
    all_ready_at(3, 2, 100);
    ck_assert_uint_eq(fix_count(MS_MSG_START), 2);
    ck_assert(hears_stop(cut_off));
    fix_stopped(cut_off, 1, 2, 0);
    ck_assert_str_eq(fix_show_node("n0")->activity, "idle");
    fix_job_is(1, "RUNNING", "");
}
END_TEST

/* Of three ranks two are on one host, and all have made step 100. */
static void two_and_one(void)
{
    start(SCHED_STANDING, 0);
    conns[0] = node_on("n0", 1, "a");
    conns[1] = node_on("n1", 2, "a");
    conns[2] = node_on("n2", 3, "b");
    submit(3);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 3, 0);
    progress(1, 100);
}

/* Two ranks on one host and one on another, and the spares are there: that side can have all. */
START_TEST(all_ranks_of_a_side_move_where_the_other_one_has_nodes_for_them)
{
    two_and_one();
    uint64_t spares[] = {node_on("s", 9, "b"), node_on("t", 10, "b")};
    complains(1, 0, 2);

    complains(2, 1, 2);

    ck_assert_uint_eq(fix_count(MS_MSG_STOP), 0);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 3);
    for (size_t i = 0; i < MS_ARRAY_SIZE(spares); i++) {
        ck_assert_ptr_nonnull(fix_heard(spares[i], MS_MSG_ASSIGN));
    }
    const Ms__Assign *msg = fix_heard(conns[2], MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 2);
    ck_assert_uint_eq(fix_show(1)->ranks_lost, 3); /* all tried once more before */
}
END_TEST

/* Rank 1's host is cut off, and the spare of rank 0's host that takes its rank is slow: which of
 * the two says so (0: rank 0, 1: the spare) tells nothing of rank 0, which trained. Where it does
 * not reach the next spare of its host either, it is at fault itself (2). */
START_TEST(who_trained_does_not_give_way_to_a_slow_newcomer_beside_it_for_a_cut)
{
    training(2);
    uint64_t slow = node_on("s", 9, "a");
    uint64_t next = node_on("t", 10, "a");
    complains(1, 0, 1);
    complains(2, 0, 1);
    ck_assert_ptr_nonnull(fix_heard(slow, MS_MSG_ASSIGN));
    conns[1] = slow;

    complains(3, _i == 1, _i != 1);

    ck_assert(hears_stop(slow) && !hears_stop(conns[0]));
    const Ms__Assign *msg = fix_heard(next, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 1);
    if (_i == 2) {
        conns[1] = next;
        complains(4, 0, 1);
        fix_job_is(1, "RECOVERING", "rank 0 (node n0 on host a) was given up: 2 processes and it");
    }
}
END_TEST

/* ... nor where it had taken the state, and was ready, before it was held up. */
START_TEST(who_trained_does_not_give_way_to_a_slow_rank_beside_it_for_a_cut)
{
    training(2);
    uint64_t slow = node_on("s", 9, "a");
    uint64_t next = node_on("t", 10, "a");
    complains(1, 0, 1);
    complains(2, 0, 1);
    conns[1] = slow;
    all_ready_at(3, 2, 100);

    complains(3, 0, 1);

    ck_assert(!hears_stop(conns[0]));
    const Ms__Assign *msg = fix_heard(next, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 1);
}
END_TEST

/* That a rank of another host does not reach it counts while that one has its rank. */
START_TEST(who_reaches_neither_the_rank_beside_it_nor_another_host_moves)
{
    two_and_one();
    uint64_t spare = node_on("s", 9, "c");
    complains(1, 2, 0);

    complains(2, 0, 1);

    ck_assert(!hears_stop(conns[1]) && !hears_stop(conns[2]));
    const Ms__Assign *msg = fix_heard(spare, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 0);
}
END_TEST

/* Each on a host of its own, which says nothing of the next one: no try is spent while one is left.
 */
START_TEST(spares_that_nobody_reaches_cost_no_try_while_another_one_is_left)
{
    training(2);
    uint64_t spares[MS_STUMBLES_MAX + 2];
    for (uint32_t i = 0; i < MS_ARRAY_SIZE(spares); i++) {
        char id[8];
        char host[8];
        snprintf(id, sizeof(id), "u%u", i);
        snprintf(host, sizeof(host), "w%u", i);
        spares[i] = node_on(id, 100 + i, host);
    }
    fix_close(conns[1]);
    const uint32_t last = MS_ARRAY_SIZE(spares) - 1;
    for (uint32_t i = 0; i < last; i++) {
        ck_assert_ptr_nonnull(fix_heard(spares[i], MS_MSG_ASSIGN));
        fix_beat(conns[0]);
        complains(2 + i, 0, 1);
    }
    ck_assert_ptr_nonnull(fix_heard(spares[last], MS_MSG_ASSIGN));
    conns[1] = spares[last];
    all_ready_at(2 + last, 2, 100);
    fix_job_is(1, "RUNNING", "");
}
END_TEST

/* It is told apart by pairs, and so many are known: where there are as many, tries are spent though
 * more nodes are left, or a thousand would be tried. */
START_TEST(spares_that_nobody_reaches_cost_tries_once_all_known_pairs_are_theirs)
{
    enum { TRIES = MS_LINKS_MAX - 1 + MS_STUMBLES_MAX };
    training(2);
    uint64_t spares[TRIES + 2];
    for (uint32_t i = 0; i < MS_ARRAY_SIZE(spares); i++) {
        char id[8];
        char host[8];
        snprintf(id, sizeof(id), "u%u", i);
        snprintf(host, sizeof(host), "w%u", i);
        spares[i] = node_on(id, 100 + i, host);
    }
    fix_close(conns[1]);
    for (uint32_t i = 0; i <= TRIES; i++) {
        ck_assert_ptr_nonnull(fix_heard(spares[i], MS_MSG_ASSIGN));
        fix_beat(conns[0]);
        for (uint32_t k = i; k < MS_ARRAY_SIZE(spares); k++) {
            fix_beat(spares[k]);
        }
        complains(2 + i, 0, 1);
    }

    ended(JOB_FAILED, "no process got ready for rank 1, 72 were tried");
}
END_TEST

/* What a rank's own host does not reach is asked last. */
START_TEST(a_node_beside_one_that_was_not_reached_is_asked_last)
{
    training(2);
    uint64_t beside = node_on("s", 9, "d");
    node_on("t", 10, "d");
    fix_close(conns[1]);
    const Ms__Assign *msg = fix_heard(beside, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    conns[1] = beside;
    uint64_t far = node_on("u", 11, "e");

    complains(2, 0, 1); /* it has nothing, and moves at once */

    ck_assert(hears_stop(beside));
    ck_assert_ptr_nonnull(fix_heard(far, MS_MSG_ASSIGN));
}
END_TEST

/* Rank 0's process hangs for good, and beats; the others, on these hosts, are well, and so are the
 * spares. */
static const struct {
    const char *ranks, *spares;
    uint32_t by[3]; /* who complains, in turn */
} hung[] = {
    {"aabb", "b", {2, 2, 2}},   {"aabb", "b", {2, 3, 1}},   {"aabb", "b", {1, 2, 3}},
    {"aabb", "a", {2, 2, 2}},   {"aaabb", "cc", {3, 3, 3}}, {"abcd", "e", {2, 2, 2}},
    {"aabb", "bbb", {2, 2, 2}},
};

static uint64_t nodes_on(const char *hosts_of, char kind, uint64_t first, uint64_t *ret)
{
    for (uint32_t i = 0; hosts_of[i] != '\0'; i++) {
        const char host[2] = {hosts_of[i], '\0'};
        char id[8];
        snprintf(id, sizeof(id), "%c%u", kind, i);
        const uint64_t conn = node_on(id, first + i, host);
        if (ret != NULL) {
            ret[i] = conn;
        }
    }
    return strlen(hosts_of);
}

/* Whoever hears Assign has that rank. */
static uint64_t look_who_has_which(void)
{
    uint64_t generation = 0;
    for (uint64_t conn = 1; conn <= fix.conns; conn++) {
        const Ms__Assign *msg = (const Ms__Assign *)fix_heard(conn, MS_MSG_ASSIGN);
        if (msg != NULL) {
            conns[msg->rank] = conn;
            generation = msg->generation;
        }
    }
    return generation;
}

START_TEST(a_process_that_hangs_moves_whatever_hosts_there_are)
{
    start(SCHED_STANDING, 0);
    const uint32_t n = (uint32_t)nodes_on(hung[_i].ranks, 'n', 1, conns);
    submit(n);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, n, 0);
    progress(1, 100);
    for (uint32_t rank = 1; rank < n; rank++) {
        Ms__Heartbeat beat = MS__HEARTBEAT__INIT;
        beat.job = 1;
        beat.generation = 1;
        beat.step = 100;
        fix_say(conns[rank], MS_MSG_HEARTBEAT, &beat.base);
    }
    nodes_on(hung[_i].spares, 's', 100, NULL);
    const uint64_t bad = conns[0];
    uint64_t generation = 1;

    for (int i = 0; i < 4 && conns[0] == bad; i++) {
        complains(generation, hung[_i].by[i % 3], 0);
        generation = look_who_has_which();
        ck_assert_uint_ne(generation, 0);
    }

    ck_assert_uint_ne(conns[0], bad);
    all_ready_at(generation, n, 100);
    fix_job_is(1, "RUNNING", "");
}
END_TEST

static void says_it_is_far_ahead(uint64_t conn, uint64_t generation, uint32_t rank)
{
    Ms__RankReady msg = ready_message(generation, rank, UINT64_C(1) << 40);
    fix_say(conn, MS_MSG_RANK_READY, &msg.base);
}

/* It was given the rank with nothing, and says what it likes. */
START_TEST(who_trained_is_believed_before_a_newcomer)
{
    training(2);
    uint64_t liar = node_on("s", 9, "c");
    fix_close(conns[1]);
    ck_assert_ptr_nonnull(fix_heard(liar, MS_MSG_ASSIGN));
    uint64_t honest = node_on("t", 10, "d");
    conns[1] = liar;
    says_it_is_far_ahead(liar, 2, 1);

    complains(2, 1, 0);

    ck_assert(!hears_stop(conns[0]));
    const Ms__Assign *msg = fix_heard(honest, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 1);
}
END_TEST

/* The spare is the first to say it. */
START_TEST(who_takes_a_rank_and_does_not_reach_the_same_one_blames_it)
{
    training(2);
    uint64_t spare = node_on("s", 9, "c");
    complains(1, 0, 1);
    complains(2, 0, 1);
    uint64_t first = conns[1];
    conns[1] = spare;

    complains(3, 1, 0);

    ck_assert(hears_stop(spare));
    ck_assert(!hears_stop(conns[0]) && !hears_stop(first));
    fix_job_is(1, "RECOVERING", "waits for a node to take ranks 0 1");
    fix_stopped(spare, 1, 3, 1);
    ck_assert_ptr_nonnull(fix_heard(first, MS_MSG_ASSIGN));
}
END_TEST

/* Ranks 1 and 2 reach each other and all spares, and nobody reaches rank 0. */
START_TEST(a_broken_end_costs_no_other_rank_its_tries)
{
    training(3);
    for (uint64_t i = 0; i < 3; i++) {
        static const char *const ids[] = {"s0", "s1", "s2"};
        node_on(ids[i], 10 + i, "d");
    }
    complains(1, 0, 1);
    complains(2, 0, 1);
    uint64_t first = conns[1];
    for (uint64_t conn = 1; conn <= fix.conns; conn++) {
        const Ms__Assign *msg = fix_heard(conn, MS_MSG_ASSIGN);
        conns[1] = msg != NULL && msg->rank == 1 ? conn : conns[1];
    }
    ck_assert_uint_ne(conns[1], first);
    uint64_t newcomer = conns[1];

    complains(3, 1, 0); /* the second node that does not reach it */

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 3);
    const Ms__Assign *msg = fix_heard(first, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 1);
    ck_assert_str_ne(msg->members[0]->node_id, "n0");
    ck_assert(hears_stop(newcomer) && !hears_stop(conns[0]));
    fix_job_is(1, "RECOVERING", "generation 4");
}
END_TEST

START_TEST(of_two_ranks_that_complain_of_one_the_second_moves_it)
{
    training(3);
    uint64_t spare = node_on("s", 9, "d");
    complains(1, 1, 0);

    complains(2, 2, 0);

    const Ms__Assign *msg = fix_heard(spare, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 0);
    ck_assert(!hears_stop(conns[0]));
}
END_TEST

START_TEST(who_does_not_reach_two_ranks_moves_itself)
{
    training(3);
    uint64_t spare = node_on("s", 9, "d");
    complains(1, 1, 0);

    complains(2, 1, 2);

    const Ms__Assign *msg = fix_heard(spare, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 1);
    ck_assert_int_eq(fix_logged("its host does not reach that of rank 2"), 1);
}
END_TEST

START_TEST(who_is_a_step_behind_moves)
{
    training(2);
    uint64_t spare = node_on("s", 9, "d");
    complains(1, 0, 1);
    Ms__Heartbeat beat = MS__HEARTBEAT__INIT;
    beat.job = 1;
    beat.generation = 2;
    beat.step = 101; /* rank 1 had committed it when the link broke */
    fix_say(conns[1], MS_MSG_HEARTBEAT, &beat.base);

    complains(2, 0, 1);

    const Ms__Assign *msg = fix_heard(spare, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 0);
}
END_TEST

/* ---- who keeps the state ------------------------------------------------------------------------
 */

/* n1 has lost its rank to the spare, which has nothing yet; n0 holds the state. */
static uint64_t moved(void)
{
    training(2);
    uint64_t spare = node_on("s", 9, "c");
    complains(1, 0, 1);
    complains(2, 0, 1);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    uint64_t former = conns[1];
    conns[1] = spare;
    return former;
}

START_TEST(who_keeps_the_state_is_not_idle)
{
    moved();
    Ms__Submit msg = fix_job(1);

    fix_say(fix_open(MS_ROLE_USER, "alice"), MS_MSG_SUBMIT, &msg.base);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(2, "QUEUED", "waits for 1 idle node");
}
END_TEST

/* Nobody but n1 has the state then: it has its rank again, and the spare the other one. */
START_TEST(where_all_others_that_hold_the_state_die_it_has_its_rank_again)
{
    uint64_t former = moved();

    fix_close(conns[0]);

    ck_assert(hears_stop(conns[1]));
    fix_stopped(conns[1], 1, 3, 1);
    const Ms__Assign *msg = fix_heard(former, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 1);
    ck_assert_str_eq(msg->members[0]->node_id, "s");
    conns[0] = conns[1];
    conns[1] = former;
    all_ready_at(4, 2, 100);
    ck_assert_uint_eq(fix_count(MS_MSG_START), 2);
}
END_TEST

/* _i: rank 0, the other one that holds it, dies before it is back, or after that. */
START_TEST(who_keeps_the_state_and_comes_back_to_a_cancel_may_be_the_one_that_saves)
{
    uint64_t former = moved();
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    fix_close(former);
    if (_i == 1) {
        fix_close(conns[0]);
    }
    former = comes_back("n1", 2, 2, 1);
    ck_assert_int_eq(fix_logged("job.state_kept job=1 rank=1"), 1);
    ck_assert_ptr_null(fix_heard(former, MS_MSG_STOP)); /* rank 0 has it, or may be back */
    if (_i == 0) {
        fix_close(conns[0]);
        ck_assert_ptr_null(fix_heard(former, MS_MSG_STOP));
    }
    node_on("n0", 77, "a"); /* another process: that one is dead */
    const Ms__Stop *stop = fix_heard(former, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->at_step, 1);
    ck_assert_int_eq(stop->code, MS_E_CANCELLED);
}
END_TEST

/* Its claim is not the rank that was taken from it. */
START_TEST(who_gave_way_without_hearing_of_it_does_not_take_the_rank_back)
{
    moved();
    fix_close(conns[0]);
    ck_assert(hears_stop(conns[1])); /* and that word is lost with its connection */

    uint64_t spare = comes_back("s", 9, 3, 1);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    ck_assert(hears_stop(spare));
    fix_job_is(1, "RECOVERING", "waits for a node to take ranks 0 1");
}
END_TEST

/* Its own end may be broken; it is all that is left. */
START_TEST(who_lost_its_mesh_twice_has_its_rank_again_where_nobody_else_has_the_state)
{
    training(2);
    uint64_t spare = node_on("s", 9, "c");
    complains(1, 1, 1);
    complains(2, 1, 1);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));

    fix_close(conns[0]);

    ck_assert(hears_stop(spare));
    fix_stopped(spare, 1, 3, 1);
    const Ms__Assign *msg = fix_heard(conns[1], MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 1);
}
END_TEST

/* n1 is about to have its rank again, and may be gone before it has. */
START_TEST(who_lost_its_mesh_twice_does_not_let_go_for_one_that_has_no_rank_yet)
{
    training(3);
    uint64_t spares[] = {node_on("s", 9, "d"), node_on("t", 10, "e")};
    complains(1, 0, 1);
    complains(2, 0, 1);
    complains(3, 2, 2);
    complains(4, 2, 2);
    ck_assert_int_eq(n_events("job.recovering"), 1);
    fix_close(conns[0]);
    fix_close(spares[0]);
    fix_close(spares[1]);
    bool has_rank = false;
    for (int i = 0; i < 20; i++) {
        ck_assert(!hears_stop(conns[1]) && !hears_stop(conns[2]));
        has_rank |= fix_heard(conns[2], MS_MSG_ASSIGN) != NULL;
        fix_beat(conns[1]);
        fix_beat(conns[2]);
        fix_pass(FIX_LEASE_MS / 4);
        if (i == 10) {
            (void)node_on("u", 11, "d");
        }
    }
    ck_assert(has_rank);
}
END_TEST

/* Both began anew, for nobody who holds more was there; neither has made a step. */
START_TEST(who_comes_back_with_more_has_the_rank_of_one_that_began_anew)
{
    training(2);
    uint64_t spares[] = {node_on("s", 9, "c"), node_on("t", 10, "d")};
    fix_close(conns[0]);
    fix_close(conns[1]);
    fix_lease_passes(spares, 2);
    const Ms__Assign *msg = fix_heard(spares[1], MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    const uint64_t first = spares[msg->rank == 0];
    conns[1] = spares[msg->rank == 1];
    ready_at(msg->generation, 1, 0);

    uint64_t former = comes_back("n1", 2, 1, 1);

    ck_assert(hears_stop(conns[1]) && !hears_stop(first) && !hears_stop(former));
    msg = fix_heard(former, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 1);
    ck_assert_ptr_nonnull(fix_heard(first, MS_MSG_ASSIGN));
}
END_TEST

/* Of so many: n1 gave way to s, and keeps the state. */
static uint64_t keeps_it(uint32_t ranks)
{
    training(ranks);
    uint64_t spare = node_on("s", 9, "e");
    complains(1, 0, 1);
    complains(2, 0, 1);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    uint64_t former = conns[1];
    conns[1] = spare;
    return former;
}

/* n0 and n3 hold the state, n2 is gone for good, and there is no other node. */
START_TEST(who_keeps_the_state_lets_go_where_its_job_lacks_a_node)
{
    uint64_t former = keeps_it(4);
    fix_close(conns[2]);
    ck_assert(!hears_stop(former)); /* it may be back in a moment */
    fix_pass(MS_FORMER_SPARE_MS - 1);
    ck_assert(!hears_stop(former));

    fix_pass(1);

    ck_assert(hears_stop(former));
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_stopped(former, 1, 2, 1);
    const Ms__Assign *msg = fix_heard(former, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 2);
}
END_TEST

/* Those that closed their connections meanwhile are not read yet. */
START_TEST(who_keeps_the_state_does_not_let_go_of_it_behind_a_standstill)
{
    uint64_t former = keeps_it(4);
    fix_close(conns[2]);
    sched_stood_still(fix.s, MS_FORMER_SPARE_MS);
    fix_pass(MS_FORMER_SPARE_MS);
    ck_assert(!hears_stop(former));
    fix_beat(former);
    fix_beat(conns[0]);
    fix_beat(conns[3]);
    fix_pass(MS_FORMER_SPARE_MS - 1);
    ck_assert(!hears_stop(former));

    fix_pass(1);

    ck_assert(hears_stop(former));
}
END_TEST

static void dynamic_training(void)
{
    start(SCHED_DYNAMIC, 3);
    for (uint32_t rank = 0; rank < 3; rank++) {
        const char id[] = {(char)('0' + rank), '\0'};
        conns[rank] = dynamic_worker(id, 1 + rank, hosts[rank], 3);
    }
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 3, 0);
    progress(1, 100);
}

/* ... while nothing but beats comes; true: a round began. */
static bool begins_within(int64_t ms)
{
    bool has = false;
    for (int64_t i = 0; i < ms && !has; i += 500) {
        for (size_t rank = 0; rank < 3; rank++) {
            fix_beat(conns[rank]);
        }
        fix_pass(500);
        has = fix_heard(conns[0], MS_MSG_ASSIGN) != NULL;
    }
    return has;
}

/* There Stop ends the process, and nobody starts it again. It is short of something for a moment,
 * and tries as often as the job bears it; then others that hold the state go on without it. */
START_TEST(in_a_dynamic_cluster_it_tries_again_and_ends_before_its_job_would)
{
    dynamic_training();
    complains(1, 1, 1);
    ck_assert(begins_within(1000));
    complains(2, 1, 1);
    ck_assert(!begins_within(1500));
    ck_assert(begins_within(1000));
    complains(3, 1, 1);
    ck_assert(!begins_within(4500));
    ck_assert(begins_within(1000));
    ck_assert(!hears_stop(conns[1]));

    complains(4, 1, 1);

    ck_assert(hears_stop(conns[1]));
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1: start its worker again");
    fix_stopped(conns[1], 1, 4, 1);
    fix_close(conns[1]);
    conns[1] = dynamic_worker("1", 22, hosts[1], 3);
    all_ready_at(5, 3, 100);
    fix_job_is(1, "RUNNING", "");
}
END_TEST

/* ... and who is reached again meanwhile has its rank. */
START_TEST(in_a_dynamic_cluster_a_newcomer_that_is_not_reached_tries_again)
{
    dynamic_training();
    fix_close(conns[1]);
    conns[1] = dynamic_worker("1", 22, hosts[1], 3);
    for (uint64_t generation = 2; generation < 2 + MS_STUMBLES_MAX; generation++) {
        complains(generation, 0, 1);
        ck_assert(begins_within(40000));
        ck_assert(!hears_stop(conns[1]));
    }

    complains(2 + MS_STUMBLES_MAX, 0, 1);

    ck_assert(hears_stop(conns[1]));
    fix_job_is(1, "RECOVERING", "waits for a node to take rank 1: start its worker again");
    fix_stopped(conns[1], 1, 2 + MS_STUMBLES_MAX, 1);
    fix_close(conns[1]);
    conns[1] = dynamic_worker("1", 23, hosts[1], 3); /* has tries of its own */
    for (uint64_t generation = 3 + MS_STUMBLES_MAX; generation < 5 + MS_STUMBLES_MAX;
         generation++) {
        ck_assert(fix_heard(conns[0], MS_MSG_ASSIGN) != NULL || begins_within(6000));
        complains(generation, 1, 1);
        ck_assert(!hears_stop(conns[1]));
    }
    ck_assert_str_eq(fix_show(1)->state, "RECOVERING");
}
END_TEST

/* n2 and n3 are gone, and it can be one of both: it keeps what it holds. */
START_TEST(who_keeps_the_state_does_not_let_go_of_it_where_that_is_not_enough)
{
    uint64_t former = keeps_it(4);
    fix_close(conns[2]);
    fix_close(conns[3]);
    for (int64_t ms = 0; ms < FIX_LEASE_MS + MS_FORMER_SPARE_MS; ms += 1000) {
        for (size_t i = 0; i < 2; i++) {
            fix_beat(conns[i]);
        }
        fix_beat(former);
        fix_pass(1000);
        ck_assert(!hears_stop(former));
    }

    node_on("n3", 24, "d");

    ck_assert(hears_stop(former));
}
END_TEST

/* n0 alone holds it, too: it may be the next. */
START_TEST(of_two_that_hold_the_state_one_lets_go_where_no_node_came_for_a_lease)
{
    uint64_t former = keeps_it(3);
    fix_close(conns[2]);
    fix_pass(FIX_LEASE_MS / 2);
    for (size_t i = 0; i < 2; i++) {
        fix_beat(conns[i]);
    }
    fix_beat(former);
    fix_pass(FIX_LEASE_MS / 2 - 1);
    ck_assert(!hears_stop(former));

    fix_pass(1);

    ck_assert(hears_stop(former));
}
END_TEST

/* n1 is the one process that lives and holds step 100; the others are restarted. */
START_TEST(two_deaths_beside_who_keeps_the_state_lose_no_step)
{
    uint64_t former = keeps_it(3);
    fix_close(conns[2]);
    fix_pass(50);
    fix_close(conns[0]);
    ck_assert(!hears_stop(former));

    node_on("n0", 21, "a");
    node_on("n2", 23, "c");

    const Ms__Assign *msg = fix_heard(former, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->rank, 1);
}
END_TEST

START_TEST(who_alone_keeps_the_state_does_not_let_go_of_it_for_a_node)
{
    uint64_t former = moved();

    fix_close(conns[0]);
    fix_stopped(conns[1], 1, 3, 1);
    fix_close(conns[1]); /* and both ranks want a node */

    ck_assert(!hears_stop(former));
    fix_job_is(1, "RECOVERING", "rank");
}
END_TEST

/* Until it is started it makes no step, and beats say 0. */
START_TEST(what_a_newcomer_took_is_not_forgotten_with_a_beat)
{
    training(2);
    uint64_t spare = node_on("s", 9, "d");
    progress(1, 101);
    complains(1, 0, 1);
    complains(2, 0, 1);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    conns[1] = spare;
    ready_at(3, 1, 101);
    fix_close(conns[0]);
    Ms__Heartbeat beat = MS__HEARTBEAT__INIT;
    beat.job = 1;
    beat.generation = 3;
    for (int i = 0; i < 3; i++) {
        fix_say(spare, MS_MSG_HEARTBEAT, &beat.base);
        ck_assert(!hears_stop(spare));
        fix_pass(1000);
        ck_assert(!hears_stop(spare));
    }
}
END_TEST

/* A number is in every Assign, and anybody may use it. */
START_TEST(another_node_with_its_number_does_not_take_its_place)
{
    training(3);
    uint64_t spare = node_on("s", 9, "d");
    complains(1, 2, 1);
    complains(2, 2, 1);
    uint64_t former = conns[1];
    conns[1] = spare;
    node_on("evil", 2, "e");

    fix_close(conns[0]);

    ck_assert(!hears_stop(former));
    ck_assert_str_eq(fix_show_node("n1")->activity,
                     "job 1: keeps the state of rank 1 until another node has it");
}
END_TEST

START_TEST(who_keeps_the_state_may_die_like_anybody)
{
    uint64_t former = moved();

    fix_close(former);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN) + fix_count(MS_MSG_STOP), 0);
    fix_job_is(1, "RECOVERING", "generation 3");
    all_ready_at(3, 2, 100);
    fix_job_is(1, "RUNNING", "");
}
END_TEST

START_TEST(who_keeps_the_state_and_reconnects_keeps_it_still)
{
    uint64_t former = moved();
    for (int i = 0; i < 2; i++) { /* while the old connection is open, and after it */
        uint64_t again = comes_back("n1", 2, 2, 1);
        ck_assert_uint_eq(fix_count(MS_MSG_STOP) + fix_count(MS_MSG_ASSIGN), 0);
        former = again;
        if (i == 0) {
            fix_close(again);
        }
    }
    all_ready_at(3, 2, 100);
    ck_assert(hears_stop(former));
    ck_assert_uint_eq(((const Ms__Stop *)fix_heard(former, MS_MSG_STOP))->generation, 2);
}
END_TEST

START_TEST(another_process_does_not_keep_it)
{
    fix_close(moved());

    uint64_t other = comes_back("n1", 77, 2, 1); /* of that node */
    ck_assert(hears_stop(other));
    fix_close(other);
    ck_assert(hears_stop(comes_back("n3", 2, 2, 1))); /* of another one */
    ck_assert(hears_stop(comes_back("n1", 2, 2, 0))); /* with another rank */
}
END_TEST

static void says(uint64_t conn, uint64_t generation, uint32_t rank, int code)
{
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    msg.job = 1;
    msg.generation = generation;
    msg.rank = rank;
    msg.code = code;
    fix_say(conn, MS_MSG_RANK_DONE, &msg.base);
}

START_TEST(who_keeps_the_state_may_let_go_of_it_by_itself)
{
    uint64_t former = moved();

    says(former, 2, 1, MS_E_CANCELLED); /* TERM */

    ck_assert(hears_stop(former)); /* the last word that it waits for */
    ck_assert_str_eq(fix_show_node("n1")->activity, "idle");
}
END_TEST

START_TEST(who_had_made_the_last_step_keeps_it_like_the_others)
{
    uint64_t former = moved();

    says(former, 2, 1, MS_OK);

    ck_assert(!hears_stop(former));
    all_ready_at(3, 2, 100);
    ck_assert(hears_stop(former));
    ck_assert_str_eq(fix_show_node("n1")->activity, "idle"); /* and says nothing more */
}
END_TEST

START_TEST(the_end_of_the_job_is_told_to_who_keeps_its_state)
{
    uint64_t former = moved();

    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 0);

    const Ms__Stop *stop = fix_heard(former, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert_int_eq(stop->code, MS_E_CANCELLED);
    ck_assert_uint_eq(stop->generation, 2);
}
END_TEST

START_TEST(a_cancel_does_not_need_it_where_another_rank_holds_the_state)
{
    uint64_t former = moved();

    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);

    ck_assert(hears_stop(conns[0]) && hears_stop(conns[1]) && !hears_stop(former));
    fix_stopped(conns[0], 1, 3, 0);
    fix_stopped(conns[1], 1, 3, 1);
    ck_assert_int_eq(fix_stored(1)->state, JOB_CANCELLED);
    ck_assert(hears_stop(former));
}
END_TEST

START_TEST(a_cancel_asks_it_where_nobody_else_holds_the_state)
{
    uint64_t former = moved();
    sched_refuse_writes(fix.s, "state.db cannot grow", 0); /* no round begins */
    fix_close(conns[0]);
    sched_refuse_writes(fix.s, "", 1);

    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);

    ck_assert_int_eq(fix_effects(SCHED_DO_PUT_MEMBER), 1); /* a restart waits for its word */
    node_on("n0", 77, "a");                                /* another process: that one is dead */
    const Ms__Stop *stop = fix_heard(former, MS_MSG_STOP);
    ck_assert_ptr_nonnull(stop);
    ck_assert(stop->at_step && stop->saves);
    ck_assert_uint_eq(stop->generation, 2);
    Ms__RankDone done = MS__RANK_DONE__INIT;
    done.job = 1;
    done.generation = 2;
    done.rank = 1;
    done.stopped = 1;
    done.steps = 100;
    done.text = (char *)"saved step 100";
    fix_say(former, MS_MSG_RANK_DONE, &done.base);
    ended(JOB_CANCELLED, "rank 1 (node n1) says: saved step 100");
}
END_TEST

/* ---- a restart ----------------------------------------------------------------------------------
 */

static struct {
    struct sched_job_row job;
    struct sched_member_row members[2];
    uint8_t results[4096];
} disk;

/* What the last tick stored. */
static void keep_rows(void)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind == SCHED_DO_PUT_MEMBER) {
            disk.members[effects[i].member->rank] = *effects[i].member;
        }
    }
    const struct sched_job_row *row = fix_stored(1);
    ck_assert_ptr_nonnull(row);
    ck_assert_uint_le(row->results_bytes, sizeof(disk.results));
    disk.job = *row;
    memcpy(disk.results, row->results, row->results_bytes);
    disk.job.results = disk.results;
}

/* In the round in which the spare took the rank of n1. */
static void restarted(void)
{
    training(2);
    uint64_t spare = node_on("s", 9, "c");
    complains(1, 0, 1);
    complains(2, 0, 1);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    keep_rows();
    disk.members[0] = member_row(1, 0);
    snprintf(disk.members[0].node_id, sizeof(disk.members[0].node_id), "n0");
    disk.members[0].incarnation = 1;
    snprintf(disk.members[0].principal, sizeof(disk.members[0].principal), "%s",
             disk.members[1].principal);
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    fix_create(&cfg);
    struct sched_plan_row plan = {.text = FIX_PLAN, .bytes = strlen(FIX_PLAN)};
    snprintf(plan.sha256, sizeof(plan.sha256), "%s", fix_digest(FIX_PLAN));
    ck_ms_ok(sched_load_plan(fix.s, &plan, err));
    disk.job.spec = (const uint8_t *)"{}";
    disk.job.spec_bytes = 2;
    disk.job.plan_text = FIX_PLAN;
    ck_ms_ok(sched_load_job(fix.s, &disk.job, err));
    for (uint32_t rank = 0; rank < 2; rank++) {
        ck_ms_ok(sched_load_member(fix.s, &disk.members[rank], err));
    }
    loaded();
}

static uint64_t newcomer_is_back(void)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("s", 9);
    msg.job = 1;
    msg.generation = 3;
    msg.rank = 1;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

START_TEST(a_restart_knows_who_keeps_the_state)
{
    restarted();
    uint64_t former = comes_back("n1", 2, 2, 1);
    ck_assert(!hears_stop(former));
    newcomer_is_back();

    conns[0] = comes_back("n0", 1, 3, 0);

    /* whom it does not reach is not known any more: who holds the state comes first */
    const Ms__Assign *msg = fix_heard(former, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(msg);
    ck_assert_uint_eq(msg->generation, 4);
}
END_TEST

START_TEST(a_restart_waits_for_who_keeps_the_state_where_nobody_else_does)
{
    restarted();
    conns[1] = newcomer_is_back();
    conns[0] = fix_register("n0", 55); /* another process: the state is gone with the first */
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(1, "RECOVERING", "waits");

    uint64_t former = comes_back("n1", 2, 2, 1);

    ck_assert_ptr_nonnull(fix_heard(former, MS_MSG_ASSIGN));
    ck_assert(hears_stop(conns[1]));
}
END_TEST

START_TEST(a_restart_waits_no_longer_than_for_others)
{
    restarted();
    conns[1] = newcomer_is_back();
    conns[0] = fix_register("n0", 55);
    for (int i = 0; i < 3; i++) {
        fix_beat(conns[0]);
        fix_beat(conns[1]);
        ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
        fix_pass(FIX_LEASE_MS / 3 + 10);
    }

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
    uint64_t former = comes_back("n1", 2, 2, 1); /* at last: before anybody began anew */
    ck_assert_ptr_nonnull(fix_heard(former, MS_MSG_ASSIGN));
}
END_TEST

START_TEST(a_restart_does_not_wait_for_who_has_ended)
{
    restarted();
    conns[1] = newcomer_is_back();
    conns[0] = fix_register("n0", 55);

    fix_register("n1", 56);

    ck_assert_uint_ge(fix_count(MS_MSG_ASSIGN), 2);
}
END_TEST

/* ---- a copy, which its Register does not name --------------------------------------------------
 */

static uint64_t copy_is_back(uint32_t rank, uint64_t generation)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("s", 9);
    msg.host_name = msg.host_id = (char *)"c";
    msg.job = 1;
    msg.generation = generation;
    msg.rank = rank;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    return conn;
}

/* s took the state of n0; its connection breaks, and is back; n0 dies, and the next n0 does not
 * reach s. */
START_TEST(a_copy_that_was_away_is_the_last_one_all_the_same)
{
    training(2);
    uint64_t spare = node_on("s", 9, "c");
    fix_close(conns[1]);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    conns[1] = spare;
    ready_at(2, 1, 100);
    if (_i == 1) {
        fix_close(spare);
        conns[1] = spare = copy_is_back(1, 2);
    }
    fix_close(conns[0]);
    conns[0] = node_on("n0", 21, "a");
    const Ms__Assign *assign = fix_heard(conns[0], MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(assign);
    uint64_t generation = assign->generation;
    node_on("t", 30, "d");
    for (int i = 0; i < 2; i++) {
        complains(generation, 0, 1);
        ck_assert(!hears_stop(spare));
        assign = fix_heard(spare, MS_MSG_ASSIGN);
        generation = assign != NULL ? assign->generation : generation;
    }
}
END_TEST

/* The next n1 takes long to load its data: that one is late, and not who waits with the state. */
START_TEST(a_copy_that_was_away_is_not_late)
{
    start_for(SCHED_STANDING, 0, 8000);
    conns[0] = node_on("n0", 1, "a");
    conns[1] = node_on("n1", 2, "b");
    submit(2);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 2, 0);
    progress(1, 100);
    conns[2] = node_on("s", 9, "c");
    fix_close(conns[0]);
    ck_assert_ptr_nonnull(fix_heard(conns[2], MS_MSG_ASSIGN));
    conns[0] = conns[2];
    ready_at(2, 0, 100);
    fix_close(conns[0]);
    conns[0] = copy_is_back(0, 2);
    fix_close(conns[1]);
    conns[1] = node_on("n1", 31, "b");
    bool is_over = false;
    for (int i = 0; !is_over && i < 20; i++) {
        fix_pass(500);
        ck_assert(!hears_stop(conns[0]));
        is_over = hears_stop(conns[1]);
        fix_beat(conns[0]);
        fix_beat(conns[1]);
    }
    ck_assert(is_over);
}
END_TEST

/* Rank 1's next process holds a copy, too (1), and it, or rank 0 (2), complains: others hold the
 * state, and the job waits for the process after it. */
START_TEST(a_copy_in_a_dynamic_cluster_that_is_not_reached_ends_before_its_job)
{
    const uint32_t by = _i == 2;
    dynamic_training();
    fix_close(conns[1]);
    conns[1] = dynamic_worker("1", 22, hosts[1], 3);
    const Ms__Assign *assign = fix_heard(conns[0], MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(assign);
    uint64_t generation = assign->generation;
    if (_i > 0) {
        ready_at(generation, 1, 100);
    }
    bool ends = false;
    for (int i = 0; !ends && i < 4 * MS_STUMBLES_MAX; i++) {
        complains(generation, by, 1 - by);
        ends = hears_stop(conns[1]);
        ck_assert(!hears_stop(conns[0]));
        bool begins = fix_heard(conns[0], MS_MSG_ASSIGN) != NULL;
        for (int k = 0; !ends && !begins && k < 60; k++) {
            begins = begins_within(500);
        }
        assign = fix_heard(conns[0], MS_MSG_ASSIGN);
        generation = assign != NULL ? assign->generation : generation;
    }
    ck_assert(ends);
    ck_assert_str_eq(fix_show(1)->state, "RECOVERING");
}
END_TEST

/* What it says is the first answer to the cancel: who holds more has its rank in the same turn. */
START_TEST(who_keeps_the_state_steps_in_while_its_rank_says_that_it_stopped)
{
    two_and_one();
    const uint64_t spare = node_on("s", 9, "e");
    complains(1, 0, 2);
    complains(2, 0, 2);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    const uint64_t former = conns[2];
    conns[2] = spare;
    const uint64_t next = node_on("z", 10, "a");
    fix_close(conns[0]);
    const Ms__Assign *assign = fix_heard(next, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(assign);
    conns[0] = next;
    ready_at(assign->generation, 0, 100);
    fix_close(conns[1]);
    node_on("y", 12, "f");
    const uint64_t generation = look_who_has_which();
    ck_assert_uint_ne(generation, 0);
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 1);
    Ms__Heartbeat beat = MS__HEARTBEAT__INIT;
    beat.job = 1;
    beat.generation = 2;
    beat.step = 102;
    fix_say(former, MS_MSG_HEARTBEAT, &beat.base);
    Ms__RankDone done = MS__RANK_DONE__INIT;
    done.job = 1;
    done.generation = generation;
    done.rank = 2;
    done.stopped = 1;
    done.text = (char *)"";

    fix_say(spare, MS_MSG_RANK_DONE, &done.base);

    ck_assert(hears_stop(former));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_links");
    TCase *t = tcase_create("ends");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, a_link_that_is_cut_for_good_costs_no_step);
    tcase_add_test(t, all_ranks_of_a_side_move_where_the_other_one_has_nodes_for_them);
    tcase_add_loop_test(t, who_trained_does_not_give_way_to_a_slow_newcomer_beside_it_for_a_cut, 0,
                        3);
    tcase_add_test(t, who_trained_does_not_give_way_to_a_slow_rank_beside_it_for_a_cut);
    tcase_add_test(t, who_reaches_neither_the_rank_beside_it_nor_another_host_moves);
    tcase_add_test(t, spares_that_nobody_reaches_cost_no_try_while_another_one_is_left);
    tcase_add_test(t, spares_that_nobody_reaches_cost_tries_once_all_known_pairs_are_theirs);
    tcase_add_test(t, a_node_beside_one_that_was_not_reached_is_asked_last);
    tcase_add_test(t, who_trained_is_believed_before_a_newcomer);
    tcase_add_loop_test(t, a_process_that_hangs_moves_whatever_hosts_there_are, 0,
                        (int)MS_ARRAY_SIZE(hung));
    tcase_add_test(t, who_takes_a_rank_and_does_not_reach_the_same_one_blames_it);
    tcase_add_test(t, a_broken_end_costs_no_other_rank_its_tries);
    tcase_add_test(t, of_two_ranks_that_complain_of_one_the_second_moves_it);
    tcase_add_test(t, who_does_not_reach_two_ranks_moves_itself);
    tcase_add_test(t, who_is_a_step_behind_moves);
    suite_add_tcase(suite, t);

    t = tcase_create("keepers");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, who_keeps_the_state_is_not_idle);
    tcase_add_test(t, where_all_others_that_hold_the_state_die_it_has_its_rank_again);
    tcase_add_loop_test(t, who_keeps_the_state_and_comes_back_to_a_cancel_may_be_the_one_that_saves,
                        0, 2);
    tcase_add_test(t, who_gave_way_without_hearing_of_it_does_not_take_the_rank_back);
    tcase_add_test(t, who_lost_its_mesh_twice_has_its_rank_again_where_nobody_else_has_the_state);
    tcase_add_test(t, who_lost_its_mesh_twice_does_not_let_go_for_one_that_has_no_rank_yet);
    tcase_add_test(t, who_comes_back_with_more_has_the_rank_of_one_that_began_anew);
    tcase_add_test(t, who_keeps_the_state_lets_go_where_its_job_lacks_a_node);
    tcase_add_test(t, who_keeps_the_state_does_not_let_go_of_it_behind_a_standstill);
    tcase_add_test(t, in_a_dynamic_cluster_it_tries_again_and_ends_before_its_job_would);
    tcase_add_test(t, in_a_dynamic_cluster_a_newcomer_that_is_not_reached_tries_again);
    tcase_add_test(t, who_keeps_the_state_does_not_let_go_of_it_where_that_is_not_enough);
    tcase_add_test(t, of_two_that_hold_the_state_one_lets_go_where_no_node_came_for_a_lease);
    tcase_add_test(t, two_deaths_beside_who_keeps_the_state_lose_no_step);
    tcase_add_test(t, who_alone_keeps_the_state_does_not_let_go_of_it_for_a_node);
    tcase_add_test(t, what_a_newcomer_took_is_not_forgotten_with_a_beat);
    tcase_add_test(t, another_node_with_its_number_does_not_take_its_place);
    tcase_add_test(t, who_keeps_the_state_may_die_like_anybody);
    tcase_add_test(t, who_keeps_the_state_and_reconnects_keeps_it_still);
    tcase_add_test(t, another_process_does_not_keep_it);
    tcase_add_test(t, who_keeps_the_state_may_let_go_of_it_by_itself);
    tcase_add_test(t, who_had_made_the_last_step_keeps_it_like_the_others);
    tcase_add_test(t, the_end_of_the_job_is_told_to_who_keeps_its_state);
    tcase_add_test(t, a_cancel_does_not_need_it_where_another_rank_holds_the_state);
    tcase_add_test(t, a_cancel_asks_it_where_nobody_else_holds_the_state);
    suite_add_tcase(suite, t);

    t = tcase_create("restarts");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, a_restart_knows_who_keeps_the_state);
    tcase_add_test(t, a_restart_waits_for_who_keeps_the_state_where_nobody_else_does);
    tcase_add_test(t, a_restart_waits_no_longer_than_for_others);
    tcase_add_test(t, a_restart_does_not_wait_for_who_has_ended);
    tcase_add_loop_test(t, a_copy_that_was_away_is_the_last_one_all_the_same, 0, 2);
    tcase_add_test(t, a_copy_that_was_away_is_not_late);
    tcase_add_loop_test(t, a_copy_in_a_dynamic_cluster_that_is_not_reached_ends_before_its_job, 0,
                        3);
    tcase_add_test(t, who_keeps_the_state_steps_in_while_its_rank_says_that_it_stopped);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
