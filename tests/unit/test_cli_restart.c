/* test_cli_restart.c - which children of `msctl run` that died are started again, and when */
#include "cli/restart.h"
#include "tests/test.h"

#include <signal.h>

enum { KILLED = SIGKILL, CRASHED = SIGSEGV | 0x80, NOW = 1000000 };

static int exited(int status)
{
    return status << 8;
}

static int judge(struct restart *restart, int status, uint64_t step, int64_t now_ms)
{
    const struct restart_facts facts = {.status = status, .step = step, .now_ms = now_ms};
    return restart_judge(restart, &facts);
}

START_TEST(who_was_killed_or_crashed_is_started_at_once)
{
    struct restart restart = {0};
    ck_assert_int_eq(judge(&restart, KILLED, 7, NOW), 0);
    ck_assert_int_eq(restart.due_ms, NOW);

    restart = (struct restart){0};
    ck_assert_int_eq(judge(&restart, CRASHED, 7, NOW), 0);

    restart_begin(&restart);
    ck_assert_int_eq(restart.due_ms, 0);
}
END_TEST

START_TEST(a_worker_that_exited_leaves_time_for_the_word_that_the_job_ended)
{
    struct restart restart = {0};
    const struct restart_facts exit_of_worker = {
        .status = exited(0), .is_worker = 1, .step = 7, .now_ms = NOW};
    const struct restart_facts kill_of_worker = {
        .status = KILLED, .is_worker = 1, .step = 8, .now_ms = NOW};

    ck_assert_int_eq(restart_judge(&restart, &exit_of_worker), RESTART_WORD_MS);
    ck_assert_int_eq(restart.due_ms, NOW + RESTART_WORD_MS);
    ck_assert_int_eq(restart.is_unsure, 1);
    ck_assert_int_eq(restart_judge(&restart, &kill_of_worker), 0);
    ck_assert_int_eq(restart.is_unsure, 0);
    ck_assert_int_eq(judge(&restart, exited(0), 9, NOW),
                     0); /* a scheduler that left knows of none */
    ck_assert_int_eq(restart.is_unsure, 0);
}
END_TEST

START_TEST(a_process_of_no_use_is_started_less_and_less_often_and_then_no_more)
{
    static const int pauses[] = {0, 100, 500, 2000, 5000, 5000, 5000, -1};
    struct restart restart = {0};
    for (size_t i = 0; i < MS_ARRAY_SIZE(pauses); i++) {
        ck_assert_int_eq(judge(&restart, CRASHED, 7, NOW), pauses[i]);
        if (pauses[i] >= 0) {
            restart_begin(&restart);
            restart_ready(&restart, NOW - 999); /* but not for long */
        }
    }
    ck_assert_int_eq(restart.deaths, RESTART_DEATHS_MAX);
    ck_assert_int_eq(restart.due_ms, 0);
}
END_TEST

START_TEST(a_step_in_between_makes_the_next_death_the_first_one)
{
    struct restart restart = {0};
    for (uint64_t step = 0; step < 1000; step++) {
        ck_assert_int_eq(judge(&restart, KILLED, step, NOW), 0);
        restart_begin(&restart);
    }
    ck_assert_int_eq(judge(&restart, KILLED, 999, NOW), 100);
    restart_begin(&restart);
    ck_assert_int_eq(judge(&restart, KILLED, 5, NOW), 0); /* went on from a checkpoint */
}
END_TEST

START_TEST(so_does_a_second_of_being_of_use)
{
    struct restart restart = {0};
    for (int i = 0; i < 3; i++) {
        (void)judge(&restart, KILLED, 0, NOW);
        restart_begin(&restart);
    }
    restart_ready(&restart, NOW);
    restart_ready(&restart, NOW + 900); /* it is since the first time */

    ck_assert_int_eq(judge(&restart, KILLED, 0, NOW + 1000), 0);
}
END_TEST

START_TEST(what_would_happen_again_is_not_tried_again)
{
    struct restart restart = {0};
    const struct restart_facts forming = {.status = exited(1), .is_forming = 1, .now_ms = NOW};
    const struct restart_facts killed = {.status = KILLED, .is_forming = 1, .now_ms = NOW};

    ck_assert_int_eq(judge(&restart, exited(2), 0, NOW), -1);
    ck_assert_int_eq(judge(&restart, exited(78), 0, NOW), -1);
    ck_assert_int_eq(restart_judge(&restart, &forming), -1);
    restart = (struct restart){0};
    ck_assert_int_eq(restart_judge(&restart, &killed), 0);
}
END_TEST

/* Whatever steps the others make meanwhile. */
START_TEST(who_cannot_be_started_is_tried_less_and_less_often_and_then_no_more)
{
    static const int pauses[] = {100, 500, 2000, 5000, 5000, 5000, -1};
    struct restart restart = {0};
    restart_ready(&restart, NOW - 60000);
    ck_assert_int_eq(judge(&restart, KILLED, 300, NOW), 0);
    for (size_t i = 0; i < MS_ARRAY_SIZE(pauses); i++) {
        restart_begin(&restart);
        ck_assert_int_eq(judge(&restart, RESTART_NOT_STARTED, 301 + i, NOW), pauses[i]);
        ck_assert_int_eq(restart.is_unsure, 0);
    }
    ck_assert_int_eq(restart.alike, 7);
}
END_TEST

/* Its job waits for room and not for it: for that the job is not given up. */
START_TEST(who_is_not_missed_is_tried_without_end)
{
    struct restart restart = {0};
    const struct restart_facts facts = {
        .status = RESTART_NOT_STARTED, .is_worker = 1, .is_spare = 1, .step = 300, .now_ms = NOW};
    int pause_ms = 0;
    for (int i = 0; i < 3 * RESTART_DEATHS_MAX; i++) {
        restart_begin(&restart);
        pause_ms = restart_judge(&restart, &facts);
        ck_assert_int_ge(pause_ms, 0);
    }
    ck_assert_int_eq(pause_ms, 5000);
}
END_TEST

START_TEST(what_is_told_is_how_often_it_ended_like_that)
{
    struct restart restart = {0};
    restart_ready(&restart, NOW - 60000);
    (void)judge(&restart, KILLED, 300, NOW); /* by somebody: it was well */
    ck_assert_int_eq(restart.alike, 0);
    restart_begin(&restart);
    (void)judge(&restart, KILLED, 300, NOW);
    ck_assert_int_eq(restart.alike, 1);
    restart_begin(&restart);
    (void)judge(&restart, KILLED, 300, NOW);
    ck_assert_int_eq(restart.alike, 2);
    ck_assert_int_eq(restart.deaths, 3);
    restart_begin(&restart);
    ck_assert_int_eq(judge(&restart, exited(78), 300, NOW), -1);
    ck_assert_int_eq(restart.alike, 1);

    restart = (struct restart){0}; /* one of no use counts from the first time on */
    for (int i = 1; i < 4; i++) {
        (void)judge(&restart, CRASHED, 0, NOW);
        ck_assert_int_eq(restart.alike, i);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_restart");
    TCase *tc = tcase_create("restart");
    tcase_add_test(tc, who_was_killed_or_crashed_is_started_at_once);
    tcase_add_test(tc, a_worker_that_exited_leaves_time_for_the_word_that_the_job_ended);
    tcase_add_test(tc, a_process_of_no_use_is_started_less_and_less_often_and_then_no_more);
    tcase_add_test(tc, a_step_in_between_makes_the_next_death_the_first_one);
    tcase_add_test(tc, so_does_a_second_of_being_of_use);
    tcase_add_test(tc, what_would_happen_again_is_not_tried_again);
    tcase_add_test(tc, who_cannot_be_started_is_tried_less_and_less_often_and_then_no_more);
    tcase_add_test(tc, who_is_not_missed_is_tried_without_end);
    tcase_add_test(tc, what_is_told_is_how_often_it_ended_like_that);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
