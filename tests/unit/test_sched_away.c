/* test_sched_away.c - a process that was only away comes back with its rank: nothing was lost */
#include "tests/unit/sched_recover_case.h"

#include "daemon/sched/state.h"

/* ---- the job's tries ----------------------------------------------------------------------------
 */

/* The connection of a rank's process is cut; it comes back as it was. */
static void cut(uint32_t rank, uint64_t incarnation, uint64_t generation)
{
    fix_close(conns[rank]);
    conns[rank] = come_back(rank, incarnation, 1, generation, 1);
}

/* Its process dies, and the next one of its node takes the rank. */
static void die(uint32_t rank, uint64_t next_incarnation)
{
    fix_close(conns[rank]);
    conns[rank] = fix_register(rank == 0 ? "w0" : "w1", next_incarnation);
}

START_TEST(cut_connections_spend_no_try_however_many)
{
    running(2);
    progress(1, 41);
    for (uint64_t i = 0; i < 3 * MS_RESTARTS_MAX; i++) {
        cut(0, 1, 1 + i);
        all_ready_at(2 + i, 2, 41);
        fix_job_is(1, "RUNNING", "");
    }
}
END_TEST

/* Deaths at the step count as before, and their causes name no cut. */
START_TEST(a_cut_is_no_death_and_hides_none)
{
    running(2);
    progress(1, 41);
    uint64_t generation = 1;
    for (uint64_t i = 0; i < MS_RESTARTS_MAX; i++) {
        cut(0, i == 0 ? 1 : 10 + i - 1, generation);
        all_ready_at(++generation, 2, 41);
        die(0, 10 + i);
        all_ready_at(++generation, 2, 41);
        fix_job_is(1, "RUNNING", "");
    }

    fix_close(conns[0]);

    ended(JOB_FAILED, "rank 0 was lost 4 times, and the job did not get beyond step 41");
    ck_assert_ptr_nonnull(strstr(fix_stored(1)->reason, "(4 times)"));
}
END_TEST

START_TEST(who_is_cut_off_and_killed_meanwhile_was_lost)
{
    running(2);
    progress(1, 41);
    cut(0, 1, 1);
    for (uint64_t i = 0; i < MS_RESTARTS_MAX; i++) {
        all_ready_at(2 + i, 2, 41);
        die(0, 20 + i);
    }
    all_ready_at(2 + MS_RESTARTS_MAX, 2, 41);

    fix_close(conns[0]);
    ended(JOB_FAILED, "rank 0 was lost 4 times");
}
END_TEST

/* Its rank is another process's by then: that it was away has cost the job this one. */
START_TEST(who_comes_back_too_late_was_lost)
{
    running(2);
    progress(1, 41);
    for (uint64_t i = 0; i < MS_RESTARTS_MAX; i++) {
        char id[8];
        snprintf(id, sizeof(id), "s%u", (unsigned)i);
        uint64_t spare = fix_register(id, 50 + i);
        fix_close(conns[0]);
        conns[0] = spare;
        all_ready_at(2 + i, 2, 41);
        fix_job_is(1, "RUNNING", "");
        uint64_t late = i == 0 ? come_back(0, 1, 1, 1, 1) : 0;
        ck_assert(late == 0 || fix_heard(late, MS_MSG_STOP) != NULL);
    }

    fix_close(conns[0]);
    ended(JOB_FAILED, "rank 0 was lost 4 times");
}
END_TEST

/* A silent process (SIGSTOP) is given up after its lease, and may come back all the same. */
START_TEST(who_was_silent_for_a_lease_and_comes_back_was_away)
{
    running(2);
    progress(1, 41);
    for (uint64_t i = 0; i < 2 * MS_RESTARTS_MAX; i++) {
        const int64_t half_ms = fix_config(SCHED_STANDING, 0).lease_ms / 2 + 1;
        fix_pass(half_ms);
        fix_beat(conns[1]);
        fix_pass(half_ms);
        fix_job_is(1, "RECOVERING", "it was silent for");
        conns[0] = come_back(0, 1, 1, 1 + i, 1);
        all_ready_at(2 + i, 2, 41);
        fix_job_is(1, "RUNNING", "");
    }
}
END_TEST

/* What was in vain before is made good by it, and so is what was none. */
START_TEST(a_step_that_is_told_of_meanwhile_counts)
{
    running(2);
    progress(1, 41);
    for (uint64_t i = 0; i < 2; i++) {
        die(1, 20 + i);
        all_ready_at(2 + i, 2, 41);
    }
    fix_close(conns[1]);
    progress(3, 42);
    conns[1] = come_back(1, 21, 1, 3, 1);
    all_ready_at(4, 2, 42);
    for (uint64_t i = 0; i < MS_RESTARTS_MAX; i++) {
        die(1, 30 + i);
        all_ready_at(5 + i, 2, 42);
        fix_job_is(1, "RUNNING", "");
    }

    fix_close(conns[1]);
    ended(JOB_FAILED, "rank 1 was lost 4 times, and the job did not get beyond step 42");
}
END_TEST

START_TEST(a_newcomer_that_is_cut_off_has_not_stumbled)
{
    running(2);
    die(1, 20);
    for (uint64_t i = 0; i < 2 * MS_STUMBLES_MAX; i++) {
        fix_close(conns[1]);
        conns[1] = come_back(1, 20, 1, 2 + i, 0);
        assigned(1, 3 + i);
    }
}
END_TEST

/* A connection alone was reset: no idle node begins the training anew while its process may live.
 */
START_TEST(who_alone_holds_the_state_has_a_lease_to_come_back)
{
    running(1);
    progress(1, 41);
    const uint64_t spare = fix_register("w9", 9);
    fix_close(conns[0]);
    fix_job_is(1, "RECOVERING", "waits for node w0: no process holds the state any more, but");
    fix_beat(spare);
    fix_pass(FIX_LEASE_MS - 1);
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));

    conns[0] = come_back(0, 1, 1, 1, 41);

    assigned(0, 2);
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
    all_ready_at(2, 1, 41);
    fix_job_is(1, "RUNNING", "");
}
END_TEST

/* ... all of them at once, as where a firewall starts anew; the first that is back has all. */
START_TEST(the_first_that_is_back_holds_it_for_all)
{
    running(2);
    progress(1, 41);
    fix_close(conns[0]);
    fix_close(conns[1]);
    conns[0] = fix_register("w8", 8);
    fix_register("w9", 9);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);

    conns[1] = come_back(1, 2, 1, 1, 41);

    assigned(0, 2);
    assigned(1, 2);
}
END_TEST

/* Its node has another one: it has ended, and nobody is waited for. */
START_TEST(whose_node_has_its_next_process_is_not_waited_for)
{
    running(1);
    progress(1, 41);
    fix_close(conns[0]);
    conns[0] = fix_register("w0", 31);
    assigned(0, 2);
}
END_TEST

/* ... nor though its host gets no ranks: it is idle for nobody, but ends the wait all the same. */
START_TEST(whose_node_has_its_next_process_on_a_drained_host_is_not_waited_for)
{
    start(SCHED_STANDING, 0);
    conns[0] = node_on("w0", 1, "a-bad");
    submit(1);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 1, 0);
    progress(1, 41);
    host_drain(fix.s, node_find(fix.s, "w0")->host, "admin:root", "broken fan");
    const uint64_t spare = node_on("w9", 9, "b-good");
    fix_close(conns[0]);
    fix_job_is(1, "RECOVERING", "waits for node w0: no process holds the state any more");
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));

    (void)node_on("w0", 31, "a-bad");

    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
}
END_TEST

/* Rank 0's may live, though an idle node has its rank, which holds nothing yet; rank 1's has ended.
 */
START_TEST(one_whose_rank_a_newcomer_has_is_waited_for)
{
    running(2);
    progress(1, 41);
    const uint64_t spare = fix_register("w9", 9);
    fix_close(conns[0]);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    fix_close(conns[1]);
    conns[1] = fix_register("w1", 31);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(1, "RECOVERING", "waits for node w0: no process holds the state any more");

    const uint64_t first = come_back(0, 1, 1, 1, 41);

    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN)); /* it is kept, or has its rank */
    ck_assert_ptr_null(fix_heard(first, MS_MSG_STOP));
}
END_TEST

/* ... and no longer, though that newcomer is lost meanwhile and buys its job idle nodes. */
START_TEST(its_time_is_not_that_of_a_newcomer)
{
    running(2);
    progress(1, 41);
    const uint64_t spare = fix_register("w8", 8);
    fix_close(conns[0]);
    fix_close(conns[1]);
    conns[1] = fix_register("w1", 31);
    fix_beat(spare);
    fix_pass(FIX_LEASE_MS / 2);
    fix_close(spare);
    conns[0] = fix_register("w9", 9);
    fix_beat(conns[1]);
    fix_pass(FIX_LEASE_MS / 2 - 1);
    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_ASSIGN));
    fix_pass(1);
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_ASSIGN));
}
END_TEST

/* ... nor who was gone for long before the last one ended. */
START_TEST(who_is_gone_for_long_is_not_waited_for)
{
    running(2);
    progress(1, 41);
    fix_close(conns[0]);
    for (int i = 0; i < 2; i++) {
        fix_lease_passes(&conns[1], 1);
    }
    fix_close(conns[1]);
    conns[1] = fix_register("w1", 31);
    conns[0] = fix_register("w9", 9);
    assigned(0, 2);
    assigned(1, 2);
}
END_TEST

/* A vacant rank fails its job after topo_timeout_s, which may be less than a lease. */
START_TEST(nobody_is_waited_for_until_it_is_too_late)
{
    start_for(SCHED_STANDING, 0, FIX_LEASE_MS / 2);
    conns[0] = fix_register("w0", 1);
    submit(1);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 1, 0);
    progress(1, 41);
    const uint64_t spare = fix_register("w9", 9);
    fix_close(conns[0]);
    fix_pass(FIX_LEASE_MS / 4 - 1);
    ck_assert_ptr_null(fix_heard(spare, MS_MSG_ASSIGN));
    fix_pass(1);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
}
END_TEST

/* It held nothing: who was lost before it has his time, and no more. */
START_TEST(a_newcomer_that_is_lost_is_not_waited_for)
{
    running(1);
    progress(1, 41);
    uint64_t spares[] = {fix_register("w8", 8), fix_register("w9", 9)};
    fix_close(conns[0]);
    fix_lease_passes(spares, 2);
    const bool is_first = fix_heard(spares[0], MS_MSG_ASSIGN) != NULL;
    ck_assert(is_first || fix_heard(spares[1], MS_MSG_ASSIGN) != NULL);
    fix_close(spares[!is_first]);
    ck_assert_ptr_nonnull(fix_heard(spares[is_first], MS_MSG_ASSIGN));
}
END_TEST

/* It was ready once, failed in generation 2 while it was away, and began anew: it has no plan. */
START_TEST(who_may_have_begun_anew_hears_its_plan_again)
{
    running(2);
    progress(1, 7);
    cut(1, 2, 1);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
    fix_close(conns[1]);
    conns[1] = come_back(1, 2, 1, 2, 0);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_PLAN));
}
END_TEST

/* ... and so does it where nobody saw it away: it is back before its old connection has ended. */
START_TEST(who_is_back_on_another_connection_hears_its_plan_again)
{
    running(2);
    progress(1, 7);
    die(0, 20);
    const uint64_t old = conns[1];
    conns[1] = come_back(1, 2, 1, 2, 0);
    ck_assert_uint_ne(conns[1], old);

    die(0, 21);

    (void)assigned(1, 3);
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_PLAN));
}
END_TEST

/* ... and so does it where another one had the rank meanwhile. */
START_TEST(who_has_its_rank_again_hears_its_plan_again)
{
    running(1);
    fix_close(conns[0]);
    conns[0] = come_back(0, 1, 1, 1, 0);
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_ASSIGN));
    const uint64_t spare = fix_register("w9", 9);
    fix_close(conns[0]);
    fix_lease_passes(&spare, 1);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    conns[0] = come_back(0, 1, 1, 2, 0);
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_ASSIGN));
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_PLAN));
}
END_TEST

/* ... or it had it twice, and the other one was ready for it in between: that says nothing of it.
 */
START_TEST(what_another_one_was_ready_for_it_may_not_have_heard)
{
    running(2);
    fix_close(conns[0]);
    conns[0] = come_back(0, 1, 1, 1, 0);
    const uint64_t spare = fix_register("w9", 9);
    fix_close(conns[0]);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    conns[0] = spare;
    ready_at(3, 0, 0);
    const uint64_t first = come_back(0, 1, 1, 2, 0);
    fix_close(spare);
    ck_assert_ptr_nonnull(fix_heard(first, MS_MSG_ASSIGN));
    fix_close(first); /* before it read that */
    conns[0] = come_back(0, 1, 1, 2, 0);
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_ASSIGN));
    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_PLAN));
}
END_TEST

/* What peers complain of is the process's own link: that it was cut off, too, excuses nothing. */
START_TEST(who_is_given_up_for_a_complaint_is_not_excused)
{
    running(2);
    progress(1, 41);
    for (uint64_t i = 0; i < MS_RESTARTS_MAX; i++) {
        peer_report(1 + i, 1, 1);
        fix_pass(MS_BLAME_MS);
        if (i > 0) {
            fix_pass(MS_FORMER_SPARE_MS);
            ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_STOP));
            cut(1, 2, 1 + i); /* before it has let go */
        }
        all_ready_at(2 + i, 2, 41);
        fix_job_is(1, "RUNNING", "");
    }
    peer_report(1 + MS_RESTARTS_MAX, 1, 1);
    fix_pass(MS_BLAME_MS);
    ended(JOB_FAILED, "rank 1 was lost 4 times");
}
END_TEST

/* ---- its host -----------------------------------------------------------------------------------
 */

/* Ranks 0 and 1 on a-good, 2 and 3 on b-bad. */
static void two_hosts(void)
{
    start(SCHED_STANDING, 0);
    conns[0] = node_on("w0", 1, "a-good");
    conns[1] = node_on("w1", 2, "a-good");
    conns[2] = node_on("w2", 3, "b-bad");
    conns[3] = node_on("w3", 4, "b-bad");
    submit(4);
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 4, 0);
    fix_job_is(1, "RUNNING", "");
}

/* To b-bad, as it was. */
static void back(uint32_t rank, uint64_t incarnation, uint64_t generation)
{
    conns[rank] = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node(rank == 2 ? "w2" : "w3", incarnation);
    msg.host_name = msg.host_id = (char *)"b-bad";
    msg.job = 1;
    msg.generation = generation;
    msg.rank = rank;
    msg.running = 1;
    fix_say(conns[rank], MS_MSG_REGISTER, &msg.base);
}

START_TEST(a_host_whose_connections_were_cut_is_taken_back)
{
    two_hosts();
    fix_close(conns[2]);
    fix_close(conns[3]);
    ck_assert(fix_logged("host.set_aside"));

    back(2, 3, 1);

    ck_assert(fix_logged("host.taken_back"));
    ck_assert_int_eq(n_events("host.taken_back"), 1);
    ck_assert_str_eq(fix_effect(SCHED_DO_DROP_ASIDE)->aside->key, "#b-bad");
    ck_assert_str_eq(fix_show_node("w2")->reason, "");
    back(3, 4, 1);
    ck_assert_int_eq(n_events("host.taken_back"), 0);
    all_ready_at(2, 4, 5);
    fix_close(conns[2]);
    ck_assert(!fix_logged("host.set_aside")); /* it is the first that it loses */
}
END_TEST

START_TEST(of_one_that_died_and_one_that_was_away_one_was_lost)
{
    two_hosts();
    fix_close(conns[2]);
    fix_close(conns[3]);
    back(3, 4, 1);
    ck_assert(fix_logged("host.taken_back"));
    conns[2] = node_on("w2", 20, "b-bad");
    all_ready_at(2, 4, 5);
    fix_job_is(1, "RUNNING", "");

    fix_close(conns[3]);

    ck_assert(fix_logged("host.set_aside"));
}
END_TEST

/* An idle node has the rank of one that is away; all connections are reset again, its own, too. */
static uint64_t reset_twice(void)
{
    two_hosts();
    const uint64_t spare = node_on("w9", 9, "c-spare");
    fix_close(conns[2]);
    ck_assert_ptr_nonnull(fix_heard(spare, MS_MSG_ASSIGN));
    fix_close(conns[3]);
    ck_assert(fix_logged("host.set_aside"));
    fix_close(spare);
    return spare;
}

START_TEST(one_whose_rank_another_one_had_was_away_all_the_same)
{
    (void)reset_twice();
    back(3, 4, 1);
    ck_assert(fix_logged("host.taken_back"));

    back(2, 3, 1);

    assigned(2, 3);
    all_ready_at(3, 4, 5);
    fix_job_is(1, "RUNNING", "");
    fix_close(conns[2]);
    ck_assert(!fix_logged("host.set_aside")); /* it is the first that it loses */
}
END_TEST

/* It is told to let go: another one trains with its rank by then. */
START_TEST(one_that_comes_too_late_for_its_rank_was_away_all_the_same)
{
    two_hosts();
    const uint64_t spare = node_on("w9", 9, "c-spare");
    fix_close(conns[2]);
    conns[2] = spare;
    all_ready_at(2, 4, 5);
    fix_job_is(1, "RUNNING", "");
    fix_close(conns[3]);
    ck_assert(fix_logged("host.set_aside"));

    back(2, 3, 1);

    ck_assert(fix_logged("host.taken_back"));
    ck_assert_ptr_nonnull(fix_heard(conns[2], MS_MSG_STOP));
}
END_TEST

/* The newcomer, which held nothing, and comes when the first one has the rank again. */
START_TEST(a_newcomer_that_comes_too_late_was_away_all_the_same)
{
    (void)reset_twice();
    back(3, 4, 1);
    back(2, 3, 1);
    all_ready_at(3, 4, 5);
    fix_job_is(1, "RUNNING", "");
    const struct host *host = node_find(fix.s, "w9")->host;
    ck_assert_uint_eq(host->n_losses, 1);

    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w9", 9);
    msg.host_name = msg.host_id = (char *)"c-spare";
    msg.job = 1;
    msg.generation = 2;
    msg.rank = 2;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_STOP));
    ck_assert_uint_eq(host->n_losses, 0);
}
END_TEST

/* The next process of its node, under its number and without, and one that claims another rank. */
START_TEST(whoever_is_not_the_process_that_was_lost_excuses_nothing)
{
    two_hosts();
    fix_close(conns[2]);
    fix_close(conns[3]);
    ck_assert(fix_logged("host.set_aside"));
    back(2, 30, 1);
    back(3, 3, 1);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w8", 3);
    msg.host_name = msg.host_id = (char *)"b-bad";
    msg.job = 1;
    msg.generation = 1;
    msg.rank = 2;
    msg.running = 1;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
    ck_assert_uint_eq(node_find(fix.s, "w8")->host->n_losses, 2);
    ck_assert_ptr_nonnull(strstr(fix_show_node("w8")->reason, "set aside"));
}
END_TEST

/* It lost two; then one more is away, and back a second later. */
START_TEST(what_two_deaths_cost_a_host_is_not_taken_back)
{
    two_hosts();
    for (uint32_t rank = 2; rank < 4; rank++) {
        fix_close(conns[rank]);
        conns[rank] = node_on(rank == 2 ? "w2" : "w3", 20 + rank, "b-bad");
        all_ready_at(rank, 4, rank);
    }
    const int64_t until_ms = fix.now.wall_ms + MS_HOST_ASIDE_MS;
    fix_pass(1000);
    fix_close(conns[2]);
    ck_assert_int_eq(fix_effect(SCHED_DO_PUT_ASIDE)->aside->until_ms, until_ms + 1000);
    ck_assert_ptr_nonnull(strstr(fix_effect(SCHED_DO_PUT_ASIDE)->aside->why, "rank 2"));

    back(2, 22, 3);

    ck_assert(!fix_logged("host.taken_back"));
    ck_assert_int_eq(fix_effect(SCHED_DO_PUT_ASIDE)->aside->until_ms, until_ms);
    ck_assert_ptr_nonnull(strstr(fix_effect(SCHED_DO_PUT_ASIDE)->aside->why, "rank 3"));
    ck_assert_ptr_nonnull(strstr(fix_show_node("w3")->reason, "the last: rank 3"));
}
END_TEST

/* Its second loss, and a restart that puts it back, while only ends may be stored. */
START_TEST(a_host_is_set_aside_in_the_database_when_there_is_room)
{
    two_hosts();
    fix_close(conns[2]);
    conns[2] = node_on("w2", 20, "b-bad");
    all_ready_at(2, 4, 2);
    sched_refuse_writes(fix.s, "no space left", 0);
    fix_close(conns[3]);
    ck_assert(fix_logged("host.set_aside"));
    ck_assert_ptr_null(fix_effect(SCHED_DO_PUT_ASIDE));
    ck_assert_ptr_nonnull(strstr(fix_show_node("w2")->reason, "set aside"));
    const int64_t until_ms = fix.now.wall_ms + MS_HOST_ASIDE_MS;
    fix_pass(3 * MS_ROOM_LOOK_MS);
    ck_assert_ptr_null(fix_effect(SCHED_DO_PUT_ASIDE));

    sched_refuse_writes(fix.s, "", 1);
    fix_pass(MS_ROOM_LOOK_MS);

    const struct sched_effect *effect = fix_effect(SCHED_DO_PUT_ASIDE);
    ck_assert_ptr_nonnull(effect);
    ck_assert_str_eq(effect->aside->key, "#b-bad");
    ck_assert_int_eq(effect->aside->until_ms, until_ms);
    fix_pass(MS_ROOM_LOOK_MS);
    ck_assert_ptr_null(fix_effect(SCHED_DO_PUT_ASIDE)); /* once */
}
END_TEST

/* Its nodes are gone, too: nobody else remembers what the database has to forget. */
START_TEST(a_host_that_is_not_aside_any_more_is_so_in_the_database_when_there_is_room)
{
    two_hosts();
    for (uint32_t rank = 2; rank < 4; rank++) {
        fix_close(conns[rank]);
        conns[rank] = node_on(rank == 2 ? "w2" : "w3", 20 + rank, "b-bad");
        all_ready_at(rank, 4, rank);
    }
    fix_cancel(fix_open(MS_ROLE_USER, "alice"), 1, 0);
    fix_close(conns[2]);
    fix_close(conns[3]);
    sched_refuse_writes(fix.s, "no space left", 0);
    fix_pass(MS_HOST_ASIDE_MS);
    ck_assert_ptr_null(fix_effect(SCHED_DO_DROP_ASIDE));

    sched_refuse_writes(fix.s, "", 1);
    fix_pass(MS_ROOM_LOOK_MS);

    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_DROP_ASIDE));
    ck_assert_str_eq(fix_effect(SCHED_DO_DROP_ASIDE)->aside->key, "#b-bad");
}
END_TEST

/* More than are known by number at once. */
START_TEST(a_host_that_loses_many_forgets_the_oldest)
{
    two_hosts();
    for (uint64_t i = 0; i < 3 * MS_HOST_LOSSES; i++) {
        fix_close(conns[2]);
        conns[2] = node_on("w2", 20 + i, "b-bad");
        all_ready_at(2 + i, 4, 1 + i);
        fix_job_is(1, "RUNNING", "");
    }
    ck_assert_ptr_nonnull(strstr(fix_show_node("w2")->reason, "set aside"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_away");

    TCase *t = tcase_create("tries");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, cut_connections_spend_no_try_however_many);
    tcase_add_test(t, a_cut_is_no_death_and_hides_none);
    tcase_add_test(t, who_is_cut_off_and_killed_meanwhile_was_lost);
    tcase_add_test(t, who_comes_back_too_late_was_lost);
    tcase_add_test(t, who_was_silent_for_a_lease_and_comes_back_was_away);
    tcase_add_test(t, a_step_that_is_told_of_meanwhile_counts);
    tcase_add_test(t, a_newcomer_that_is_cut_off_has_not_stumbled);
    tcase_add_test(t, who_may_have_begun_anew_hears_its_plan_again);
    tcase_add_test(t, who_is_back_on_another_connection_hears_its_plan_again);
    tcase_add_test(t, who_alone_holds_the_state_has_a_lease_to_come_back);
    tcase_add_test(t, the_first_that_is_back_holds_it_for_all);
    tcase_add_test(t, whose_node_has_its_next_process_is_not_waited_for);
    tcase_add_test(t, whose_node_has_its_next_process_on_a_drained_host_is_not_waited_for);
    tcase_add_test(t, one_whose_rank_a_newcomer_has_is_waited_for);
    tcase_add_test(t, its_time_is_not_that_of_a_newcomer);
    tcase_add_test(t, who_is_gone_for_long_is_not_waited_for);
    tcase_add_test(t, nobody_is_waited_for_until_it_is_too_late);
    tcase_add_test(t, a_newcomer_that_is_lost_is_not_waited_for);
    tcase_add_test(t, who_has_its_rank_again_hears_its_plan_again);
    tcase_add_test(t, what_another_one_was_ready_for_it_may_not_have_heard);
    tcase_add_test(t, who_is_given_up_for_a_complaint_is_not_excused);
    suite_add_tcase(suite, t);

    t = tcase_create("host");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, a_host_whose_connections_were_cut_is_taken_back);
    tcase_add_test(t, of_one_that_died_and_one_that_was_away_one_was_lost);
    tcase_add_test(t, one_whose_rank_another_one_had_was_away_all_the_same);
    tcase_add_test(t, one_that_comes_too_late_for_its_rank_was_away_all_the_same);
    tcase_add_test(t, a_newcomer_that_comes_too_late_was_away_all_the_same);
    tcase_add_test(t, whoever_is_not_the_process_that_was_lost_excuses_nothing);
    tcase_add_test(t, what_two_deaths_cost_a_host_is_not_taken_back);
    tcase_add_test(t, a_host_is_set_aside_in_the_database_when_there_is_room);
    tcase_add_test(t, a_host_that_is_not_aside_any_more_is_so_in_the_database_when_there_is_room);
    tcase_add_test(t, a_host_that_loses_many_forgets_the_oldest);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
