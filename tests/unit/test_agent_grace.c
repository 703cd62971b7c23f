/* test_agent_grace.c - a trainer that was told to end, and does or does not */
#include "libworker/agent/hand.h"
#include "proto/clock.h"
#include "tests/unit/agent_case.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

START_TEST(a_trainer_that_hangs_after_stop_is_reported_once)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);

    send_stop(&desk, 3, 0);
    until(&desk, atomic_load(&hangs) == 1);

    ck_assert_ptr_nonnull(strstr(hang_text, "rank 0 of job 7 hangs"));
    ck_assert_ptr_nonnull(strstr(hang_text, "alice cancelled it"));
    let_go(&desk, agent);
    ck_assert_int_eq(atomic_load(&hangs), 1);
}
END_TEST

static pthread_mutex_t trainers_lock = PTHREAD_MUTEX_INITIALIZER;

static int on_order_that_waits(void *arg, const struct agent_order *order)
{
    pthread_mutex_lock(&trainers_lock);
    pthread_mutex_unlock(&trainers_lock);
    return on_order(arg, order);
}

START_TEST(a_trainer_that_hangs_with_a_lock_in_its_hands_is_reported_too)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    cfg.on_order = on_order_that_waits;
    struct agent *agent = hold(&desk, &cfg);
    pthread_mutex_lock(&trainers_lock); /* the agent's thread hangs with it */

    send_stop(&desk, 3, 0);
    until(&desk, atomic_load(&hangs) == 1);

    pthread_mutex_unlock(&trainers_lock);
    let_go(&desk, agent);
}
END_TEST

static struct {
    struct agent *agent;
    atomic_int is_held, ends;
} trainer;

static void hold_here(int sig)
{
    (void)sig;
    int before = errno;
    atomic_store(&trainer.is_held, 1);
    while (atomic_load(&trainer.is_held)) {
        (void)poll(NULL, 0, 1);
    }
    errno = before;
}

static void *train_fast(void *arg)
{
    (void)arg;
    for (uint64_t step = 1; !atomic_load(&trainer.ends); step++) {
        agent_set_phase(trainer.agent, 3, AGENT_TRAINING, step);
    }
    return NULL;
}

START_TEST(a_trainer_that_is_stopped_in_any_line_of_its_report_keeps_nobody_from_his_work)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct sigaction held = {.sa_handler = hold_here};
    sigaction(SIGUSR1, &held, NULL);
    trainer.agent = hold(&desk, &cfg);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, train_fast, NULL), 0);

    until(&desk, desk.last_step > 0);
    enum { TIMES = 100 }; /* where a lock was taken, three were enough */
    uint64_t last_step = 0;
    for (int i = 0; i < TIMES; i++) {
        pthread_kill(thread, SIGUSR1);
        until(&desk, atomic_load(&trainer.is_held));
        int beats = desk.n_beats;
        until(&desk, desk.n_beats >= beats + 2);
        ck_assert_uint_eq(desk.last_job, 7);
        ck_assert_uint_ge(desk.last_step, last_step);
        last_step = desk.last_step;
        if (i < TIMES - 1) {
            atomic_store(&trainer.is_held, 0);
        }
    }
    send_stop(&desk, 3, 0);
    until(&desk, atomic_load(&hangs) == 1);

    atomic_store(&trainer.ends, 1);
    atomic_store(&trainer.is_held, 0);
    pthread_join(thread, NULL);
    let_go(&desk, trainer.agent);
}
END_TEST

START_TEST(a_stop_after_the_step_becomes_a_hard_one_and_then_the_end)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);

    send_stop(&desk, 3, 1);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.at_step, 1);
    order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_STOP);
    ck_assert_int_eq(order.at_step, 0);
    ck_assert_ptr_nonnull(strstr(order.text, "did not end within"));
    ck_assert_int_eq(atomic_load(&hangs), 0);

    until(&desk, atomic_load(&hangs) == 1);
    let_go(&desk, agent);
}
END_TEST

/* The scheduler gives the ranks that are left a time of their own. */
START_TEST(a_stop_after_the_step_that_is_said_again_begins_its_time_anew)
{
    enum { GRACE_MS = 2000, SOFT_MS = 3 * GRACE_MS };
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = GRACE_MS;
    struct agent *agent = hold(&desk, &cfg);

    int64_t first_ms = ms_mono_ms();
    send_stop(&desk, 3, 1);
    ck_assert_int_eq(next(&desk).at_step, 1);
    until(&desk, ms_mono_ms() - first_ms >= SOFT_MS / 2);
    int64_t again_ms = ms_mono_ms();
    send_stop(&desk, 3, 1);
    ck_assert_int_eq(next(&desk).at_step, 1);
    ck_assert_int_eq(next(&desk).at_step, 0);

    ck_assert_int_ge(ms_mono_ms() - again_ms, SOFT_MS - SOFT_MS / 10);
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_rank_that_is_released_in_time_ends_nobody)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);

    send_stop(&desk, 3, 0);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_STOP);
    agent_release(agent, 3);
    int beats = desk.n_beats;
    until(&desk, desk.n_beats >= beats + 30); /* twice the grace */

    ck_assert_int_eq(atomic_load(&hangs), 0);
    send_stop(&desk, 2, 0); /* of another generation: concerns nobody */
    send_assign_of(&desk, 4);
    order = next(&desk);
    while (order.kind != AGENT_ASSIGN) {
        order = next(&desk);
    }
    ms_wire_free(&order.assign->base);
    beats = desk.n_beats;
    until(&desk, desk.n_beats >= beats + 30);
    ck_assert_int_eq(atomic_load(&hangs), 0);
    let_go(&desk, agent);
}
END_TEST

static void give_next(struct desk *desk, uint64_t generation)
{
    send_assign_of(desk, generation);
    struct agent_order order = next(desk);
    while (order.kind != AGENT_ASSIGN) {
        order = next(desk);
    }
    ms_wire_free(&order.assign->base);
}

START_TEST(the_next_assign_does_not_end_the_grace_of_a_trainer_that_hangs)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);

    send_stop(&desk, 3, 0);
    give_next(&desk, 4); /* our RankDone was out: what hangs is the end of its memory, say */
    until(&desk, atomic_load(&hangs) == 1);

    ck_assert_ptr_nonnull(strstr(hang_text, "alice cancelled it"));
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_trainer_whom_an_assign_interrupts_has_the_same_grace)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);

    atomic_store(&supersedes, AGENT_SUPERSEDES);
    give_next(&desk, 4);
    until(&desk, atomic_load(&hangs) == 1);

    ck_assert_ptr_nonnull(strstr(hang_text, "gave this node another rank"));
    let_go(&desk, agent);
}
END_TEST

/* The trainer may let go while the agent's thread changes what is held: once, where it is asked. */
static struct agent *_Atomic releases_then;

void __real_hand_take(struct hand *hand, uint64_t job, uint64_t generation, uint32_t rank);
void __wrap_hand_take(struct hand *hand, uint64_t job, uint64_t generation, uint32_t rank);

void __wrap_hand_take(struct hand *hand, uint64_t job, uint64_t generation, uint32_t rank)
{
    struct agent *agent = atomic_exchange(&releases_then, NULL);
    if (agent != NULL) {
        agent_release(agent, 3);
    }
    __real_hand_take(hand, job, generation, rank);
}

START_TEST(a_rank_that_is_released_as_the_next_one_comes_ends_nobody)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);

    send_stop(&desk, 3, 0);
    struct agent_order order = next(&desk);
    ck_assert_int_eq(order.kind, AGENT_STOP);
    atomic_store(&releases_then, agent);
    give_next(&desk, 4);
    int beats = desk.n_beats;
    until(&desk, desk.n_beats >= beats + 30); /* more than its time */

    ck_assert_int_eq(atomic_load(&hangs), 0);
    let_go(&desk, agent);
}
END_TEST

START_TEST(a_database_that_counts_anew_gives_a_rank_its_grace)
{
    struct desk desk;
    struct agent_config cfg = config_for("");
    cfg.grace_ms = 300;
    struct agent *agent = hold(&desk, &cfg);
    send_stop(&desk, 3, 0);
    agent_release(agent, 3);

    give_next(&desk, 1); /* at once: the time of generation 3 may run still */
    int beats = desk.n_beats;
    until(&desk, desk.n_beats >= beats + 30);
    ck_assert_int_eq(atomic_load(&hangs), 0);
    send_stop(&desk, 1, 0);
    until(&desk, atomic_load(&hangs) == 1);

    let_go(&desk, agent);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agent_grace");
    TCase *tc = tcase_create("grace");
    tcase_add_test(tc, a_trainer_that_hangs_after_stop_is_reported_once);
    tcase_add_test(tc, a_trainer_that_hangs_with_a_lock_in_its_hands_is_reported_too);
    tcase_add_test(tc,
                   a_trainer_that_is_stopped_in_any_line_of_its_report_keeps_nobody_from_his_work);
    tcase_add_test(tc, a_stop_after_the_step_becomes_a_hard_one_and_then_the_end);
    tcase_add_test(tc, a_stop_after_the_step_that_is_said_again_begins_its_time_anew);
    tcase_add_test(tc, a_rank_that_is_released_in_time_ends_nobody);
    tcase_add_test(tc, the_next_assign_does_not_end_the_grace_of_a_trainer_that_hangs);
    tcase_add_test(tc, a_trainer_whom_an_assign_interrupts_has_the_same_grace);
    tcase_add_test(tc, a_rank_that_is_released_as_the_next_one_comes_ends_nobody);
    tcase_add_test(tc, a_database_that_counts_anew_gives_a_rank_its_grace);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
