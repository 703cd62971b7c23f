/* test_agent_rank.c - what an agent says of its rank, and when; orders that cross */
#include "tests/unit/agent_case.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/un.h>

START_TEST(an_assign_becomes_an_order_and_heartbeats_carry_the_step)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);

    send_assign(&desk);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_ASSIGN);
    ck_assert_uint_eq(order.assign->job, 7);
    ms_wire_free(&order.assign->base);
    agent_set_phase(agent, 3, AGENT_TRAINING, 41);

    until(&desk, desk.last_step == 41);
    ck_assert_uint_eq(desk.last_job, 7);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(what_is_late_about_a_rank_says_nothing_about_the_next_one)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    Ms__Start start = MS__START__INIT;
    struct agent *agent = hold(&desk, &cfg); /* generation 3 */
    send_assign_of(&desk, 4);
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);
    start.job = 7;
    start.generation = 3;

    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_START, 0, &start.base, err));
    order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_START);
    agent_set_phase(agent, 3, AGENT_TRAINING, 41); /* the trainer is not done with it yet */
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    int beats = desk.n_beats;
    until(&desk, desk.n_registers == 2 && desk.n_beats >= beats + 2);

    ck_assert_uint_eq(desk.last_generation, 4);
    ck_assert_int_eq(desk.last_running, 0);
    ck_assert_uint_eq(desk.last_step, 0);
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_stop_of_whatever_is_held_is_one_of_that_rank)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    struct agent *agent = hold(&desk, &cfg); /* generation 3 */

    send_stop(&desk, 0, 0);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_STOP);
    ck_assert_uint_eq(order.generation, 3);

    agent_release(agent, 3);
    send_stop(&desk, 0, 0);
    order = next(&desk);
    ck_assert_uint_eq(order.generation, 0); /* nobody's */
    let_go(&desk, agent);
}
END_TEST

START_TEST(the_end_of_a_rank_goes_out_before_the_first_word_of_the_next)
{
    struct desk desk;
    desk_open(&desk);
    event_del(desk.listen_event); /* it is away when a rank ends and the next one begins */
    struct agent *agent = start(desk.address, -1);
    Ms__RankDone done = MS__RANK_DONE__INIT;
    Ms__RankReady ready = MS__RANK_READY__INIT;
    done.job = ready.job = 7;
    done.generation = 3;
    ready.generation = 4;
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_DONE, &done.base, err));
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_READY, &ready.base, err));

    event_add(desk.listen_event, NULL);
    until(&desk, desk.n_ready == 1);

    ck_assert_int_eq(desk.n_done, 1);
    ck_assert_uint_eq(desk.done[0].generation, 3);
    let_go(&desk, agent);
}
END_TEST

START_TEST(after_a_cut_it_registers_again_with_the_rank_it_holds_and_repeats_ready)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    send_assign(&desk);
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);
    Ms__RankReady ready = MS__RANK_READY__INIT;
    ready.job = 7;
    ready.generation = 3;
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_READY, &ready.base, err));
    until(&desk, desk.n_ready == 1);

    ms_conn_destroy(desk.conn);
    desk.conn = NULL;

    until(&desk, desk.n_ready == 2);
    ck_assert_int_eq(desk.n_registers, 2);
    ck_assert_uint_eq(desk.last_generation, 3);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

static void cut(struct desk *desk)
{
    int n = desk->n_registers;
    ms_conn_destroy(desk->conn);
    desk->conn = NULL;
    until(desk, desk->n_registers == n + 1);
}

START_TEST(the_plan_that_a_rank_chose_is_said_again_until_it_is_heard_by_all)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    struct agent *agent = hold(&desk, &cfg);
    char text[] = "msched plan 1\n";
    Ms__RankPlan plan = MS__RANK_PLAN__INIT;
    plan.job = 7;
    plan.generation = 3;
    plan.plan = text;
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_PLAN, &plan.base, err));
    until(&desk, desk.n_plans == 1);
    ck_assert_str_eq(desk.plan, text);
    cut(&desk);
    until(&desk, desk.n_plans == 2);
    send_plan(&desk, 2, "another one"); /* of a generation before: it is no answer */
    cut(&desk);
    until(&desk, desk.n_plans == 3);

    send_plan(&desk, 3, text);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_PLAN);
    ck_assert_uint_eq(order.generation, 3);
    ck_assert_str_eq(order.plan->plan, text);
    ms_wire_free(&order.plan->base);
    cut(&desk);
    int beats = desk.n_beats;
    until(&desk, desk.n_beats > beats);

    ck_assert_int_eq(desk.n_plans, 3);
    let_go(&desk, agent);
}
END_TEST

START_TEST(the_end_of_a_rank_that_crosses_its_start_is_said_again_after_a_cut)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    struct agent *agent = hold(&desk, &cfg);
    Ms__RankReady ready = MS__RANK_READY__INIT;
    Ms__RankDone done = MS__RANK_DONE__INIT;
    Ms__Start begin = MS__START__INIT;
    ready.job = done.job = begin.job = 7;
    ready.generation = done.generation = begin.generation = 3;
    done.code = MS_E_NOMEM;
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_READY, &ready.base, err));
    until(&desk, desk.n_ready == 1);
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_DONE, &done.base, err));
    until(&desk, desk.n_done == 1);

    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_START, 0, &begin.base, err)); /* for RankReady */
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_START);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;

    until(&desk, desk.n_done == 2);
    ck_assert_int_eq(desk.done[1].code, MS_E_NOMEM);
    let_go(&desk, agent);
}
END_TEST

START_TEST(the_end_of_a_job_does_not_release_the_rank_of_the_next_one)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    send_assign(&desk); /* generation 3, while the trainer still cleans up after generation 2 */
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);

    agent_release(agent, 2);
    until(&desk, desk.n_beats >= 3);
    ck_assert_uint_eq(desk.last_job, 7);
    agent_release(agent, 3);

    until(&desk, desk.last_job == 0);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(an_assign_that_contradicts_itself_is_declined_before_anything_is_taken)
{
    struct desk desk;
    Ms__Assign wrong = MS__ASSIGN__INIT; /* no token, no job file, no members */
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);

    wrong.job = 7;
    wrong.generation = 3;
    wrong.world_size = 4;
    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_ASSIGN, 0, &wrong.base, err));
    until(&desk, desk.n_done == 1);

    ck_assert_int_eq(desk.done[0].code, MS_E_PROTOCOL);
    ck_assert_uint_eq(desk.done[0].generation, 3);
    ck_assert_ptr_nonnull(strstr(desk.done[0].text, "the scheduler sent a rank of job 7"));
    int beats = desk.n_beats;
    until(&desk, desk.n_beats > beats + 1);
    ck_assert_uint_eq(desk.last_job, 0); /* it holds nothing */
    send_assign_of(&desk, 4);            /* and takes the next one */
    struct agent_order order = next(&desk);
    ck_assert_uint_eq(order.generation, 4);
    ms_wire_free(&order.assign->base);
    let_go(&desk, agent);
}
END_TEST

/* Turns the desk's loop until the service manager has heard the part. */
static void until_told(struct desk *desk, int fd, const char *part)
{
    char said[2048] = "";
    for (;;) {
        ssize_t n = recv(fd, said, sizeof(said) - 1, MSG_DONTWAIT);
        said[n > 0 ? n : 0] = '\0';
        if (strstr(said, part) != NULL) {
            return;
        }
        struct timeval turn = {.tv_usec = 5000};
        event_base_loopexit(desk->base, &turn);
        event_base_loop(desk->base, EVLOOP_NO_EXIT_ON_EMPTY);
    }
}

START_TEST(the_service_manager_hears_what_the_node_does_now)
{
    struct desk desk;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    const char *dir = test_dir_make();
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(un.sun_path, sizeof(un.sun_path), "%s/notify", dir);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    setenv("NOTIFY_SOCKET", un.sun_path, 1);
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);

    until_told(&desk, fd, "STATUS=idle; registered as");
    send_assign(&desk);
    until_told(&desk, fd, "STATUS=rank 0 of job 7; registered as");
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);
    agent_release(agent, order.generation);
    until_told(&desk, fd, "STATUS=idle; registered as");
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    until_told(&desk, fd, "STATUS=waits for the scheduler at 127.0.0.1:");
    until_told(&desk, fd, "STATUS=idle; registered as"); /* and back again */

    unsetenv("NOTIFY_SOCKET");
    let_go(&desk, agent);
    close(fd);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_third_assign_is_declined_in_words)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);

    send_assign_of(&desk, 3);
    send_assign_of(&desk, 4);
    send_assign_of(&desk, 5);
    send_stop(&desk, 4, 0);
    send_assign_of(&desk, 6);
    until(&desk, desk.n_done == 2);

    ck_assert_int_eq(desk.done[0].code, MS_E_FULL);
    ck_assert_ptr_nonnull(strstr(desk.done[0].text, "declined"));
    ck_assert_ptr_null(strstr(desk.done[0].text, "told to end"));
    ck_assert_int_eq(desk.done[1].code, MS_E_FULL);
    ck_assert_ptr_nonnull(strstr(desk.done[1].text, "; it was told to end: alice cancelled it"));
    for (uint64_t generation = 3; generation <= 4; generation++) {
        struct agent_order order = next(&desk);
        ck_assert_uint_eq(order.generation, generation);
        ms_wire_free(&order.assign->base);
    }
    let_go(&desk, agent);
}
END_TEST

/* It is no failure of the job: others have the rank, and what this process holds. */
START_TEST(one_that_comes_to_a_process_that_was_asked_to_end_is_told_that)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    agent_leave(agent);
    ck_assert_int_eq(next(&desk).kind, AGENT_LEAVE);
    send_assign_of(&desk, 5);
    send_assign_of(&desk, 6);
    send_assign_of(&desk, 7);
    until(&desk, desk.n_done >= 1);

    ck_assert_int_eq(desk.done[0].code, MS_E_CANCELLED);
    ck_assert_int_eq(desk.done[0].leaving, 1);
    ck_assert_ptr_nonnull(strstr(desk.done[0].text, "its worker was asked to end"));
    for (uint64_t generation = 5; generation <= 6; generation++) {
        struct agent_order order = next(&desk);
        ms_wire_free(&order.assign->base);
    }
    let_go(&desk, agent);
}
END_TEST

/* Ready at once for whatever comes, until it is asked to leave. */
static void *fast_trainer(void *arg)
{
    struct agent *agent = arg;
    struct agent_order order;
    for (;;) {
        (void)take_order(&order, 1);
        if (order.kind == AGENT_LEAVE) {
            return NULL;
        }
        if (order.kind == AGENT_ASSIGN) {
            Ms__RankReady ready = MS__RANK_READY__INIT;
            ready.job = order.job;
            ready.generation = order.generation;
            ck_ms_ok(agent_send(agent, MS_MSG_RANK_READY, &ready.base, err));
            ms_wire_free(&order.assign->base);
        }
    }
}

START_TEST(the_first_word_of_a_rank_is_heard_however_fast_it_comes)
{
    struct desk desk;
    pthread_t thread;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, fast_trainer, agent), 0);
    for (int i = 1; i <= 500; i++) {
        send_assign_of(&desk, (uint64_t)i);
        until(&desk, desk.n_ready >= i);
    }
    agent_leave(agent);
    pthread_join(thread, NULL);
    let_go(&desk, agent);
}
END_TEST

static struct agent *crossing;

/* In the agent's thread, between two frames: the trainer is done just now. */
static void end_of_the_rank(void *arg, const Ms__FetchGrant *grant)
{
    Ms__RankDone done = MS__RANK_DONE__INIT;
    (void)arg;
    (void)grant;
    done.job = 7;
    done.generation = 3;
    ck_assert_int_eq(agent_send(crossing, MS_MSG_RANK_DONE, &done.base, NULL), 0);
}

START_TEST(the_end_of_a_rank_that_crosses_its_stop_is_heard)
{
    struct desk desk;
    Ms__FetchGrant grant = MS__FETCH_GRANT__INIT;
    desk_open(&desk);
    struct agent_config cfg = config_for(desk.address);
    cfg.on_fetch = end_of_the_rank;
    struct agent *agent = crossing = start_with(&cfg);
    until(&desk, desk.n_registers == 1);
    send_assign(&desk);
    struct agent_order order = next(&desk);
    ms_wire_free(&order.assign->base);

    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_FETCH_GRANT, 0, &grant.base, err));
    send_stop(&desk, 3, 0); /* in one piece with it */

    until(&desk, desk.n_done == 1);
    agent_release(agent, 3);
    let_go(&desk, agent);
}
END_TEST

START_TEST(what_is_said_to_an_absent_scheduler_is_bounded_and_the_end_is_kept)
{
    struct desk desk;
    desk_open(&desk);
    event_del(desk.listen_event);
    struct agent *agent = start(desk.address, -1);
    Ms__Progress progress = MS__PROGRESS__INIT;
    Ms__RankDone done = MS__RANK_DONE__INIT;
    progress.job = done.job = 7;
    for (int i = 0; i < 5000; i++) {
        ck_ms_ok(agent_send(agent, MS_MSG_PROGRESS, &progress.base, err));
    }
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_DONE, &done.base, err));

    event_add(desk.listen_event, NULL);
    until(&desk, desk.n_done == 1);

    ck_assert_int_gt(desk.n_progress, 0);
    ck_assert_int_le(desk.n_progress, 150);
    let_go(&desk, agent);
}
END_TEST

/* Half an hour without a scheduler, and an evaluation each half a minute. */
START_TEST(evaluations_of_an_absent_scheduler_are_kept_for_it)
{
    struct desk desk;
    desk_open(&desk);
    event_del(desk.listen_event);
    struct agent *agent = start(desk.address, -1);
    Ms__RankDone done = MS__RANK_DONE__INIT;
    done.job = 7;
    for (int i = 0; i < 9000; i++) {
        Ms__Progress progress = MS__PROGRESS__INIT;
        progress.job = 7;
        progress.has_eval = i % 150 == 149;
        ck_ms_ok(agent_send(agent, MS_MSG_PROGRESS, &progress.base, err));
    }
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_DONE, &done.base, err));

    event_add(desk.listen_event, NULL);
    until(&desk, desk.n_done == 1);

    ck_assert_int_eq(desk.n_evals, 60);
    ck_assert_int_gt(desk.n_progress, 60);
    ck_assert_int_le(desk.n_progress, 60 + 150);
    let_go(&desk, agent);
}
END_TEST

static void tell(struct agent *agent, uint64_t job, uint64_t generation, uint64_t step,
                 int has_eval)
{
    Ms__Progress progress = MS__PROGRESS__INIT;
    char phase[16]; /* gone when it is told again */
    snprintf(phase, sizeof(phase), "step %d", (int)step);
    progress.job = job;
    progress.generation = generation;
    progress.step = step;
    progress.phase = phase;
    progress.has_eval = has_eval;
    ck_ms_ok(agent_send(agent, MS_MSG_PROGRESS, &progress.base, err));
}

/* The evaluations that came after so many: of generation 3 of job 7, after these steps. */
static void ck_evals(const struct desk *desk, int before, const char *steps)
{
    char got[128] = "";
    for (int i = before; i < desk->n_evals; i++) {
        char phase[16];
        snprintf(phase, sizeof(phase), "step %d", (int)desk->evals[i].step);
        ck_assert_str_eq(desk->evals[i].phase, phase);
        ck_assert_uint_eq(desk->evals[i].job, 7);
        ck_assert_uint_eq(desk->evals[i].generation, 3);
        size_t used = strlen(got);
        snprintf(got + used, sizeof(got) - used, " %d", (int)desk->evals[i].step);
    }
    ck_assert_str_eq(got, steps);
}

static uint64_t last_eval(const struct desk *desk)
{
    return desk->n_evals > 0 ? desk->evals[(desk->n_evals - 1) % 256].step : 0;
}

/* A scheduler that hangs takes what its socket holds with it when it is killed. */
START_TEST(evaluations_are_told_again_after_a_cut)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    struct agent *agent = hold(&desk, &cfg);
    tell(agent, 7, 3, 10, 1);
    tell(agent, 7, 3, 15, 0);
    tell(agent, 7, 3, 20, 1);
    until(&desk, desk.n_evals == 2);

    cut(&desk);
    until(&desk, desk.n_evals == 4);
    ck_evals(&desk, 2, " 10 20");
    cut(&desk);
    tell(agent, 7, 3, 30, 1);
    until(&desk, desk.n_evals == 7);

    ck_evals(&desk, 4, " 10 20 30");
    let_go(&desk, agent);
}
END_TEST

static void tell_saved(struct agent *agent, uint64_t job, uint64_t step)
{
    Ms__Progress saved = MS__PROGRESS__INIT;
    saved.job = job;
    saved.saved = step;
    ck_ms_ok(agent_send(agent, MS_MSG_PROGRESS, &saved.base, err));
}

/* ... and a checkpoint that is told of between two steps takes none of them back. */
START_TEST(evaluations_are_told_again_after_a_cut_behind_a_checkpoint)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    struct agent *agent = hold(&desk, &cfg);
    tell(agent, 7, 3, 10, 1);
    tell(agent, 7, 3, 20, 1);
    until(&desk, desk.n_evals == 2);
    tell_saved(agent, 7, 20);
    until(&desk, desk.n_saved == 1);

    cut(&desk);
    until(&desk, desk.n_evals == 4);

    ck_evals(&desk, 2, " 10 20");
    ck_assert_uint_eq(desk.evals[3].generation, 3);
    let_go(&desk, agent);
}
END_TEST

/* Where the ranks stand still no Progress follows that says it, too. */
START_TEST(the_last_checkpoint_is_told_of_again_after_a_cut)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    struct agent *agent = hold(&desk, &cfg);
    tell_saved(agent, 7, 10);
    until(&desk, desk.n_saved == 1);
    tell_saved(agent, 7, 20);
    until(&desk, desk.n_saved == 2);

    cut(&desk);
    until(&desk, desk.n_saved == 3);

    ck_assert_uint_eq(desk.saved, 20);
    if (_i == 0) {
        tell(agent, 8, 4, 1, 1); /* of a job that is over nobody wants to know */
        until(&desk, desk.n_evals == 1);
        cut(&desk);
        until(&desk, desk.n_evals == 2);
    } else { /* nor of one whose rank went back: of another database, perhaps */
        Ms__RankReady ready = MS__RANK_READY__INIT;
        ready.job = 7;
        ready.generation = 4;
        ready.step = 19;
        ck_ms_ok(agent_send(agent, MS_MSG_RANK_READY, &ready.base, err));
        until(&desk, desk.n_ready == 1);
        cut(&desk);
        until(&desk, desk.n_ready == 2);
    }
    ck_assert_int_eq(desk.n_saved, 3);
    let_go(&desk, agent);
}
END_TEST

/* What was told while ranks stood still counted for nothing. */
START_TEST(evaluations_are_told_again_after_a_start_but_for_those_to_come)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    struct agent *agent = hold(&desk, &cfg);
    Ms__RankReady ready = MS__RANK_READY__INIT;
    Ms__Start start = MS__START__INIT;
    ready.job = start.job = 7;
    ready.generation = start.generation = 3;
    ready.step = 20; /* it went back */
    for (uint64_t step = 10; step <= 30; step += 10) {
        tell(agent, 7, 2, step, 1);
    }
    until(&desk, desk.n_evals == 3);
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_READY, &ready.base, err));
    until(&desk, desk.n_ready == 1);

    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_START, 0, &start.base, err));
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_START);
    tell(agent, 7, 3, 21, 0);
    until(&desk, desk.n_progress == 6);

    ck_evals(&desk, 3, " 10 20");
    let_go(&desk, agent);
}
END_TEST

START_TEST(evaluations_that_are_made_anew_are_told_once_and_of_one_job)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    struct agent *agent = hold(&desk, &cfg);
    tell(agent, 6, 2, 5, 1);
    for (uint64_t step = 10; step <= 30; step += 10) {
        tell(agent, 7, 3, step, 1);
    }
    tell(agent, 7, 3, 12, 0);
    tell(agent, 7, 3, 20, 1);
    until(&desk, desk.n_evals >= 2);
    int before = desk.n_evals;

    cut(&desk);
    tell(agent, 7, 3, 40, 1);
    until(&desk, last_eval(&desk) == 40);

    ck_evals(&desk, before, " 10 20 40");
    let_go(&desk, agent);
}
END_TEST

START_TEST(no_more_evaluations_are_told_again_than_the_scheduler_keeps)
{
    struct desk desk;
    struct agent_config cfg = config_for(NULL);
    struct agent *agent = hold(&desk, &cfg);
    for (uint64_t step = 1; step <= MS_EVALS_MAX + 20; step++) {
        tell(agent, 7, 3, step, 1);
    }
    until(&desk, last_eval(&desk) == MS_EVALS_MAX + 20);
    int before = desk.n_evals;

    cut(&desk);
    until(&desk, desk.n_evals == before + MS_EVALS_MAX);

    ck_assert_uint_eq(desk.evals[before % 256].step, 21);
    ck_assert_uint_eq(last_eval(&desk), MS_EVALS_MAX + 20);
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_piece_of_a_log_is_read_and_a_missing_log_is_said)
{
    struct desk desk;
    const char *dir = test_dir_make();
    snprintf(log_file, sizeof(log_file), "%s/worker_0.log", dir);
    FILE *file = fopen(log_file, "w");
    fputs("hello world", file);
    fclose(file);
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    Ms__LogRead request = MS__LOG_READ__INIT;
    request.job = 7;
    request.offset = 6;

    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_LOG_READ, 0, &request.base, err));
    until(&desk, desk.chunk[0] != '\0');
    ck_assert_str_eq(desk.chunk, "0:world");
    desk.chunk[0] = '\0';
    request.job = 8;
    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_LOG_READ, 0, &request.base, err));
    until(&desk, desk.chunk[0] != '\0');

    ck_assert_str_eq(desk.chunk, "-2:");
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
    test_dir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agent_rank");
    TCase *tc = tcase_create("rank");
    tcase_add_test(tc, an_assign_becomes_an_order_and_heartbeats_carry_the_step);
    tcase_add_test(tc, what_is_late_about_a_rank_says_nothing_about_the_next_one);
    tcase_add_test(tc, a_stop_of_whatever_is_held_is_one_of_that_rank);
    tcase_add_test(tc, the_end_of_a_rank_goes_out_before_the_first_word_of_the_next);
    tcase_add_test(tc, after_a_cut_it_registers_again_with_the_rank_it_holds_and_repeats_ready);
    tcase_add_test(tc, the_plan_that_a_rank_chose_is_said_again_until_it_is_heard_by_all);
    tcase_add_test(tc, the_end_of_a_rank_that_crosses_its_start_is_said_again_after_a_cut);
    tcase_add_test(tc, the_end_of_a_job_does_not_release_the_rank_of_the_next_one);
    tcase_add_test(tc, an_assign_that_contradicts_itself_is_declined_before_anything_is_taken);
    tcase_add_test(tc, the_service_manager_hears_what_the_node_does_now);
    tcase_add_test(tc, a_third_assign_is_declined_in_words);
    tcase_add_test(tc, one_that_comes_to_a_process_that_was_asked_to_end_is_told_that);
    tcase_add_test(tc, the_first_word_of_a_rank_is_heard_however_fast_it_comes);
    tcase_add_test(tc, the_end_of_a_rank_that_crosses_its_stop_is_heard);
    tcase_add_test(tc, what_is_said_to_an_absent_scheduler_is_bounded_and_the_end_is_kept);
    tcase_add_test(tc, evaluations_of_an_absent_scheduler_are_kept_for_it);
    tcase_add_test(tc, evaluations_are_told_again_after_a_cut);
    tcase_add_test(tc, evaluations_are_told_again_after_a_cut_behind_a_checkpoint);
    tcase_add_loop_test(tc, the_last_checkpoint_is_told_of_again_after_a_cut, 0, 2);
    tcase_add_test(tc, evaluations_are_told_again_after_a_start_but_for_those_to_come);
    tcase_add_test(tc, evaluations_that_are_made_anew_are_told_once_and_of_one_job);
    tcase_add_test(tc, no_more_evaluations_are_told_again_than_the_scheduler_keeps);
    tcase_add_test(tc, a_piece_of_a_log_is_read_and_a_missing_log_is_said);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
