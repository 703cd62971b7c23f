/* test_agent_recovery.c - an agent that holds a rank of a job that recovers, and its scheduler */
#include "proto/clock.h"
#include "tests/unit/agent_case.h"

static int64_t word_ms;

/* A desk with an agent that holds rank 0 of generation 3, of a job that recovers. */
static struct agent *hold_recovering(struct desk *desk, int64_t patience_ms)
{
    struct agent_config cfg = config_for(NULL);
    desk_open(desk);
    cfg.address = desk->address;
    cfg.patience_ms = patience_ms;
    cfg.word_ms = word_ms;
    cfg.word_by = "MS_CLUSTER_RETRY_NUM";
    struct agent *agent = start_with(&cfg);
    until(desk, desk->n_registers == 1);
    atomic_store(&supersedes, AGENT_RECOVERS);
    send_assign(desk);
    struct agent_order order = next(desk);
    ck_assert_int_eq(order.kind, AGENT_ASSIGN);
    ms_wire_free(&order.assign->base);
    return agent;
}

static void cut(struct desk *desk)
{
    int n = desk->n_registers;
    ms_conn_destroy(desk->conn);
    desk->conn = NULL;
    until(desk, desk->n_registers > n);
}

static void expect_no_order(void)
{
    struct agent_order order;
    ck_assert_int_eq(take_order(&order, 0), 0);
}

/* Its lease is half a second: each Register that is not answered takes longer. */
START_TEST(a_scheduler_that_is_away_is_waited_for_without_limit)
{
    struct desk desk;
    struct agent *agent = hold_recovering(&desk, 0);
    desk.mute = 1;
    cut(&desk);
    until(&desk, desk.n_registers >= 5);
    ck_assert_int_ne(agent_is_away(agent), 0);
    expect_no_order();

    desk.mute = 0;
    int beats = desk.n_beats;
    until(&desk, desk.n_beats > beats);

    ck_assert_int_eq(agent_is_away(agent), 0);
    ck_assert_uint_eq(desk.last_generation, 3);
    expect_no_order();
    let_go(&desk, agent);
}
END_TEST

/* The machine that had it may be gone without a word, and its name be another one's. */
START_TEST(a_connection_on_which_nobody_answers_is_made_anew_and_the_rank_is_kept)
{
    struct desk desk;
    struct agent *agent = hold_recovering(&desk, 0);
    desk.silent = 1;

    until(&desk, desk.n_registers == 3);

    ck_assert_int_eq(desk.n_closed, 2);
    ck_assert_uint_eq(desk.last_job, 7);
    ck_assert_uint_eq(desk.last_generation, 3);
    expect_no_order();
    let_go(&desk, agent);
}
END_TEST

START_TEST(patience_is_of_the_rank_in_hand_and_not_of_the_one_before)
{
    struct desk desk;
    struct agent *agent = hold_recovering(&desk, 0);
    atomic_store(&supersedes, 0); /* that job does not */
    send_assign_of(&desk, 4);
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);
    desk.mute = 1;

    cut(&desk);
    order = next(&desk);

    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_ptr_nonnull(strstr(order.text, "with recovery off"));
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_refusal_is_final_for_a_rank_that_recovers_too)
{
    struct desk desk;
    struct agent *agent = hold_recovering(&desk, 0);
    desk.refuse = MS_E_EXISTS;

    cut(&desk);
    struct agent_order order = next(&desk);

    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_int_eq(order.code, MS_E_EXISTS);
    let_go(&desk, agent);
}
END_TEST

/* Or of whoever has its address now: MS_ENABLE_RECOVERY and MS_RECOVERY_PATH may have been
 * forgotten, and can be set still. */
START_TEST(a_scheduler_that_does_not_know_the_job_does_not_end_it)
{
    static const int codes[] = {MS_E_NOT_FOUND, MS_E_FOREIGN};
    struct desk desk;
    struct agent *agent = hold_recovering(&desk, 0);
    desk.refuse = codes[_i];

    cut(&desk);
    until(&desk, desk.n_registers >= 4);

    expect_no_order();
    desk.refuse = 0;
    int beats = desk.n_beats;
    until(&desk, desk.n_beats > beats);
    ck_assert_uint_eq(desk.last_generation, 3);
    let_go(&desk, agent);
}
END_TEST

static void send_report(struct agent *agent, uint64_t generation)
{
    char text[] = "rank 1 closed";
    Ms__PeerReport report = MS__PEER_REPORT__INIT;
    report.job = 7;
    report.generation = generation;
    report.peer = 1;
    report.text = text;
    ck_ms_ok(agent_send(agent, MS_MSG_PEER_REPORT, &report.base, err));
}

/* The job may be over, or its scheduler gone for good: it slept, or nobody has looked. */
START_TEST(a_rank_that_needs_a_word_waits_for_its_scheduler_so_long)
{
    struct desk desk;
    word_ms = 400;
    struct agent *agent = hold_recovering(&desk, 0);
    desk.refuse = MS_E_NOT_FOUND; /* another one, or nobody: it is not its own */
    cut(&desk);
    until(&desk, desk.n_registers >= 5); /* it trains, and takes no notice */
    expect_no_order();

    send_report(agent, 3);
    struct agent_order order = next(&desk);

    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_int_eq(order.code, MS_E_UNREACHABLE);
    ck_assert_ptr_nonnull(strstr(order.text, "rank 0 of job 7 does nothing more without its"));
    ck_assert_ptr_nonnull(strstr(order.text, "(raise MS_CLUSTER_RETRY_NUM to wait longer)"));
    let_go(&desk, agent);
    word_ms = 0;
}
END_TEST

/* Which nobody starts again: there is no rank whose job would need this node. */
START_TEST(a_node_without_a_rank_waits_for_its_scheduler_so_long)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    desk_open(&desk);
    cfg.address = desk.address;
    cfg.connect_timeout_ms = 3000;
    cfg.connect_by = "MS_TOPO_TIMEOUT";
    struct agent *agent = start_with(&cfg);
    until(&desk, desk.n_beats >= 200); /* every 20 ms: it is there, and no time runs */
    expect_no_order();
    event_del(desk.listen_event);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;

    struct agent_order order = next(&desk);

    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_int_eq(order.code, MS_E_UNREACHABLE);
    ck_assert_ptr_nonnull(strstr(order.text, "no scheduler at 127.0.0.1:"));
    ck_assert_ptr_nonnull(strstr(order.text, " s (raise MS_TOPO_TIMEOUT to wait longer): "));
    let_go(&desk, agent);
}
END_TEST

/* Which trains on, or holds, however short the time for the beginning was. */
START_TEST(a_rank_in_hand_outlasts_the_time_for_the_registration)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    desk_open(&desk);
    cfg.address = desk.address;
    cfg.connect_timeout_ms = 2000;
    cfg.lease_ms = 60000;
    struct agent *agent = start_with(&cfg);
    until(&desk, desk.n_registers == 1);
    atomic_store(&supersedes, AGENT_RECOVERS);
    send_assign(&desk);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_ASSIGN);
    ms_wire_free(&order.assign->base);

    desk.refuse = MS_E_NOT_FOUND;
    cut(&desk);
    for (int64_t begun_ms = ms_mono_ms(); ms_mono_ms() - begun_ms < 2500;) {
        int n = desk.n_registers;
        until(&desk, desk.n_registers > n);
    }

    expect_no_order();
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_scheduler_that_is_there_is_waited_for_without_limit)
{
    struct desk desk;
    word_ms = 400;
    struct agent *agent = hold_recovering(&desk, 0);
    send_report(agent, 3);

    until(&desk, desk.n_beats >= 40); /* every 20 ms */

    expect_no_order();
    let_go(&desk, agent);
    word_ms = 0;
}
END_TEST

START_TEST(report_of_a_peer_is_said_again_until_an_order_answers_it)
{
    struct desk desk;
    struct agent *agent = hold_recovering(&desk, 60000);
    send_report(agent, 3);
    until(&desk, desk.n_reports == 1);
    cut(&desk);
    until(&desk, desk.n_reports == 2);
    send_stop(&desk, 3, 1); /* after the step: there is none */
    struct agent_order order = next(&desk);
    cut(&desk);
    until(&desk, desk.n_reports == 3);

    send_assign_of(&desk, 4);
    order = next(&desk);
    ms_wire_free(&order.assign->base);
    cut(&desk);
    int beats = desk.n_beats;
    until(&desk, desk.n_beats > beats);

    ck_assert_int_eq(desk.n_reports, 3);
    let_go(&desk, agent);
}
END_TEST

START_TEST(report_that_was_not_heard_goes_out_before_the_end_that_followed)
{
    struct desk desk;
    desk_open(&desk);
    event_del(desk.listen_event); /* it is away meanwhile */
    struct agent *agent = start(desk.address, -1);
    Ms__RankDone done = MS__RANK_DONE__INIT;
    done.job = 7;
    done.generation = 3;
    send_report(agent, 3);
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_DONE, &done.base, err));

    event_add(desk.listen_event, NULL);
    until(&desk, desk.n_done == 1);

    ck_assert_int_eq(desk.n_reports, 1);
    let_go(&desk, agent);
}
END_TEST

START_TEST(end_of_a_rank_is_said_again_to_who_asks_it_to_stop)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    struct agent *agent = hold(&desk, &cfg); /* generation 3 */
    Ms__RankDone done = MS__RANK_DONE__INIT;
    done.job = 7;
    done.generation = 3;
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_DONE, &done.base, err));
    until(&desk, desk.n_done == 1);
    atomic_store(&has_ended, 1);

    send_stop(&desk, 3, 1);
    until(&desk, desk.n_done == 2);

    atomic_store(&has_ended, 0);
    let_go(&desk, agent);
}
END_TEST

/* What it said would be taken for what it will say. */
START_TEST(end_of_a_rank_that_is_to_save_after_it_is_not_said_again)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    struct agent *agent = hold(&desk, &cfg);
    Ms__RankDone done = MS__RANK_DONE__INIT;
    done.job = 7;
    done.generation = 3;
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_DONE, &done.base, err));
    until(&desk, desk.n_done == 1);

    send_stop(&desk, 3, 1);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_STOP);
    cut(&desk); /* it is back */
    int beats = desk.n_beats;
    until(&desk, desk.n_beats > beats + 1);
    ck_assert_int_eq(desk.n_done, 1);

    done.steps = 5;
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_DONE, &done.base, err));
    until(&desk, desk.n_done == 2);
    let_go(&desk, agent);
}
END_TEST

/* A restarted scheduler adopts it by that. */
START_TEST(rank_that_goes_on_claims_the_last_assign_and_the_step_that_it_stands_at)
{
    struct desk desk;
    struct agent *agent = hold_recovering(&desk, 60000);
    agent_set_phase(agent, 3, AGENT_TRAINING, 41);
    until(&desk, desk.last_step == 41);
    send_assign_of(&desk, 4);
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);
    int beats = desk.n_beats;
    until(&desk, desk.n_beats > beats + 1);
    ck_assert_uint_eq(desk.last_step, 41);

    cut(&desk);

    ck_assert_uint_eq(desk.last_generation, 4);
    ck_assert_uint_eq(desk.register_step, 41);
    ck_assert_int_eq(desk.last_running, 0); /* under that one it does not yet */
    let_go(&desk, agent);
}
END_TEST

/* Who beats every two minutes is looked at now. */
START_TEST(rank_that_holds_or_goes_on_tells_its_step_at_once)
{
    struct desk desk;
    desk_heartbeat_ms = 100000;
    struct agent *agent = hold_recovering(&desk, 60000);
    agent_set_phase(agent, 3, AGENT_TRAINING, 41);
    Ms__PeerReport report = MS__PEER_REPORT__INIT;
    report.job = 7;
    report.generation = 3;
    ck_ms_ok(agent_send(agent, MS_MSG_PEER_REPORT, &report.base, err));
    until(&desk, desk.last_step == 41);

    int beats = desk.n_beats;
    send_assign_of(&desk, 4);
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);
    until(&desk, desk.n_beats > beats);

    ck_assert_uint_eq(desk.last_step, 41);
    let_go(&desk, agent);
    desk_heartbeat_ms = 20;
}
END_TEST

/* It was given up for the new one, or had failed by itself before that came. */
static const int anew[] = {AGENT_RECOVERS | AGENT_SUPERSEDES, AGENT_RECOVERS | AGENT_ANEW};

START_TEST(rank_that_begins_anew_claims_no_step_of_the_one_before)
{
    struct desk desk;
    struct agent *agent = hold_recovering(&desk, 60000);
    agent_set_phase(agent, 3, AGENT_TRAINING, 41);
    until(&desk, desk.last_step == 41);
    atomic_store(&supersedes, anew[_i]);
    send_assign_of(&desk, 4);
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);

    until(&desk, desk.last_step == 0);
    cut(&desk);

    ck_assert_uint_eq(desk.last_generation, 4);
    ck_assert_uint_eq(desk.register_step, 0);
    let_go(&desk, agent);
}
END_TEST

START_TEST(assign_that_comes_twice_is_no_answer_and_no_order)
{
    struct desk desk;
    struct agent *agent = hold_recovering(&desk, 60000);
    send_report(agent, 3);
    until(&desk, desk.n_reports == 1);

    send_assign(&desk); /* generation 3 */
    cut(&desk);
    until(&desk, desk.n_reports == 2);

    expect_no_order();
    ck_assert_int_eq(desk.n_done, 0);
    let_go(&desk, agent);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agent_recovery");
    TCase *tc = tcase_create("agent_recovery");
    tcase_add_test(tc, a_scheduler_that_is_away_is_waited_for_without_limit);
    tcase_add_test(tc, a_connection_on_which_nobody_answers_is_made_anew_and_the_rank_is_kept);
    tcase_add_test(tc, patience_is_of_the_rank_in_hand_and_not_of_the_one_before);
    tcase_add_test(tc, a_refusal_is_final_for_a_rank_that_recovers_too);
    tcase_add_loop_test(tc, a_scheduler_that_does_not_know_the_job_does_not_end_it, 0, 2);
    tcase_add_test(tc, a_rank_that_needs_a_word_waits_for_its_scheduler_so_long);
    tcase_add_test(tc, a_node_without_a_rank_waits_for_its_scheduler_so_long);
    tcase_add_test(tc, a_rank_in_hand_outlasts_the_time_for_the_registration);
    tcase_add_test(tc, a_scheduler_that_is_there_is_waited_for_without_limit);
    tcase_add_test(tc, report_of_a_peer_is_said_again_until_an_order_answers_it);
    tcase_add_test(tc, report_that_was_not_heard_goes_out_before_the_end_that_followed);
    tcase_add_test(tc, end_of_a_rank_is_said_again_to_who_asks_it_to_stop);
    tcase_add_test(tc, end_of_a_rank_that_is_to_save_after_it_is_not_said_again);
    tcase_add_test(tc, rank_that_goes_on_claims_the_last_assign_and_the_step_that_it_stands_at);
    tcase_add_test(tc, rank_that_holds_or_goes_on_tells_its_step_at_once);
    tcase_add_loop_test(tc, rank_that_begins_anew_claims_no_step_of_the_one_before, 0,
                        (int)MS_ARRAY_SIZE(anew));
    tcase_add_test(tc, assign_that_comes_twice_is_no_answer_and_no_order);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
