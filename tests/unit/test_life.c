/* test_life.c - the life of a rank: what each order leads to, in words of a scheduler and a
 * trainer; fuzz_life.c has any order at any time */
#include "tests/unit/life_case.h"

START_TEST(rank_is_planned_joined_trained_and_let_go)
{
    struct life life = {.one_job = 0};
    ck_assert_int_eq(life_duty(&life), LIFE_WAIT);

    order(&life, LIFE_ASSIGN, 3, 0, NULL);
    ends(&life, LIFE_DO_PLAN, LIFE_MADE, 0, NULL);
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    ck_assert_int_eq(life_duty(&life), LIFE_WAIT);
    ck_assert_str_eq(life_waits_for(&life), "Start, when all ranks are ready");
    order(&life, LIFE_START, 3, 0, NULL);
    ends(&life, LIFE_DO_TRAIN, LIFE_DONE, 0, NULL);
    ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
    ck_assert_int_eq(life_duty(&life), LIFE_WAIT);
    ck_assert_str_eq(life_waits_for(&life), "Stop, the scheduler's last word");
    ck_assert_int_eq(order(&life, LIFE_STOP, 3, 0, ""), LIFE_TAKEN);
    ends(&life, LIFE_DO_CLEAN, LIFE_OUT, 0, NULL);

    ck_assert_int_eq(life.state, LIFE_IDLE);
    ck_assert_int_eq(life.verdict.code, 0);
}
END_TEST

START_TEST(start_before_the_mesh_stands_is_nobodys)
{
    struct life life = in_state(LIFE_PLANNING, 3);
    ck_assert_int_eq(order(&life, LIFE_START, 3, 0, NULL), LIFE_STALE);
    ends(&life, LIFE_DO_PLAN, LIFE_MADE, 0, NULL);
    ck_assert_int_eq(order(&life, LIFE_START, 3, 0, NULL), LIFE_STALE);
    ck_assert_int_eq(life.state, LIFE_JOINING);
}
END_TEST

START_TEST(stop_interrupts_whatever_is_done_and_is_acknowledged_in_its_words)
{
    for (int state = LIFE_PLANNING; state <= LIFE_PULLING; state++) {
        struct life life = in_state((enum life_state)state, 3);
        ck_assert_int_eq(order(&life, LIFE_STOP, 3, MS_E_CANCELLED, "cancelled by alice"),
                         LIFE_INTERRUPT);
        struct life_input late = {.event = LIFE_FAILED,
                                  .generation = 3,
                                  .code = MS_E_ABORTED,
                                  .text = "it was interrupted"};
        ck_assert_int_eq(life_apply(&life, &late), LIFE_STALE);

        ck_assert_int_eq(life.verdict.code, MS_E_CANCELLED);
        ck_assert_str_eq(life.verdict.text, "cancelled by alice");
        ck_assert_int_eq(life.verdict.from_outside, 1);
        finishes(&life);
        ck_assert_int_eq(life.state, LIFE_IDLE);
    }
}
END_TEST

START_TEST(stop_of_a_rank_that_is_kept_is_its_end_before_it_began)
{
    struct life life = in_state(LIFE_FINISHING, 3);
    ck_assert_int_eq(order_of(&life, 8, LIFE_ASSIGN, 4, 0, NULL),
                     LIFE_TAKEN); /* 3 is released by it */
    ck_assert_int_eq(order(&life, LIFE_STOP, 4, MS_E_FAILED, "rank 1 died"), LIFE_TAKEN);
    ck_assert_int_eq(order(&life, LIFE_STOP, 4, MS_E_ABORTED, "again"), LIFE_TAKEN);

    finishes(&life);

    ck_assert_uint_eq(life.generation, 4);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_SAY); /* nothing is planned for it */
    ck_assert_str_eq(life.verdict.text, "rank 1 died");
    finishes(&life);
    ck_assert_int_eq(life.state, LIFE_IDLE);
}
END_TEST

START_TEST(assign_in_the_place_of_a_stop_ends_the_rank_in_hand)
{
    struct life life = in_state(LIFE_TRAINING, 3);
    ck_assert_int_eq(order_of(&life, 8, LIFE_ASSIGN, 4, 0, NULL), LIFE_INTERRUPT);
    ck_assert_int_eq(order_of(&life, 8, LIFE_ASSIGN, 5, 0, NULL), LIFE_DECLINED);
    ck_assert_int_eq(order(&life, LIFE_ASSIGN, 3, 0, NULL), LIFE_STALE);

    ck_assert_int_eq(life.verdict.code, MS_E_ABORTED);
    ck_assert_ptr_nonnull(strstr(life.verdict.text, "let go of rank 2"));
    finishes(&life);
    ck_assert_uint_eq(life.generation, 4);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_PLAN);
}
END_TEST

START_TEST(who_lost_a_peer_lets_the_scheduler_speak_first)
{
    struct life life = in_state(LIFE_HOLDING, 3);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_HOLD);
    order(&life, LIFE_STOP, 3, MS_E_FAILED, "rank 1 on n2 was killed");
    ck_assert_str_eq(life.verdict.text, "rank 1 on n2 was killed");

    life = in_state(LIFE_HOLDING, 3);
    ends(&life, LIFE_DO_HOLD, LIFE_QUIET, 0, NULL);
    ck_assert_str_eq(life.verdict.text, "rank 1 closed");
    ck_assert_int_eq(life.verdict.from_outside, 0);

    life = in_state(LIFE_HOLDING, 3); /* the next rank says nothing about why */
    order_of(&life, 8, LIFE_ASSIGN, 4, 0, NULL);
    ck_assert_str_eq(life.verdict.text, "rank 1 closed");
}
END_TEST

/* Its last word and the Assign of a round cross: nobody would listen to what it said of the
 * generation before, and it would begin anew with nothing. */
START_TEST(a_failure_that_was_not_heard_is_told_to_the_generation_that_came)
{
    struct life life = in_state(LIFE_TRAINING, 3);
    ends(&life, LIFE_DO_TRAIN, LIFE_FAILED, MS_E_IO, "cannot read the data");
    ck_assert_int_eq(order(&life, LIFE_ASSIGN, 4, 0, NULL), LIFE_TAKEN); /* not said yet */
    ck_assert_uint_eq(life.generation, 4);
    ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
    ck_assert_int_eq(order(&life, LIFE_ASSIGN, 5, 0, NULL), LIFE_TAKEN); /* said */
    ck_assert_int_eq(life_duty(&life), LIFE_DO_SAY);
    ck_assert_int_eq(life.state, LIFE_FINISHING);
    ck_assert_uint_eq(life.generation, 5);
    ck_assert_uint_eq(life.next.generation, 0);
    ck_assert_int_eq(life.verdict.code, MS_E_IO);
    ck_assert_str_eq(life.verdict.text, "cannot read the data");
    ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
    order(&life, LIFE_STOP, 5, MS_E_FAILED, "rank 1 failed");

    ck_assert_int_eq(order(&life, LIFE_ASSIGN, 6, 0, NULL), LIFE_TAKEN); /* it was heard */
    ends(&life, LIFE_DO_CLEAN, LIFE_OUT, 0, NULL);
    ck_assert_int_eq(life.state, LIFE_PLANNING);
    ck_assert_uint_eq(life.generation, 6);
}
END_TEST

/* Two plans end a rank while the trainer is at work: what he says then is of that generation. */
START_TEST(a_failure_that_the_trainer_was_not_back_from_is_told_when_he_is)
{
    struct life life = in_state(LIFE_PLANNING, 3);
    ck_assert_int_eq(order(&life, LIFE_PLAN, 3, MS_E_PROTOCOL, "two plans"), LIFE_INTERRUPT);
    struct life cut = life;
    ck_assert_int_eq(order(&cut, LIFE_ASSIGN, 4, 0, NULL), LIFE_TAKEN);
    ck_assert_uint_eq(cut.generation, 3);
    ck_assert_uint_eq(cut.next.generation, 4);

    ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
    for (uint64_t generation = 4; generation <= 5; generation++) { /* two in a row */
        ck_assert_int_eq(order(&life, LIFE_ASSIGN, generation, 0, NULL), LIFE_TAKEN);
        ck_assert_uint_eq(life.generation, generation);
        ck_assert_int_eq(life_duty(&life), LIFE_DO_SAY);
    }
}
END_TEST

/* What was ended from outside is known there, and another rank is no answer to a failure. */
START_TEST(only_a_failure_of_its_own_is_told_again)
{
    struct life life = in_state(LIFE_TRAINING, 3);
    order_of(&life, 8, LIFE_ASSIGN, 4, 0, NULL); /* superseded */
    order_of(&life, 8, LIFE_ASSIGN, 5, 0, NULL);
    ck_assert_uint_eq(life.generation, 3);

    life = in_state(LIFE_TRAINING, 3);
    ends(&life, LIFE_DO_TRAIN, LIFE_FAILED, MS_E_IO, "cannot read the data");
    ck_assert_int_eq(order_of(&life, 8, LIFE_ASSIGN, 4, 0, NULL), LIFE_TAKEN);
    ck_assert_uint_eq(life.generation, 3);
    ck_assert_uint_eq(life.next.generation, 4);
}
END_TEST

START_TEST(the_last_word_explains_a_success_that_was_none_and_no_failure)
{
    struct life life = in_state(LIFE_FINISHING, 3);
    order(&life, LIFE_STOP, 3, MS_E_FAILED, "the ranks' weights differ");
    ck_assert_str_eq(life.verdict.text, "the ranks' weights differ");

    life = in_state(LIFE_TRAINING, 3);
    ends(&life, LIFE_DO_TRAIN, LIFE_FAILED, MS_E_FAILED, "loss is NAN");
    order(&life, LIFE_STOP, 3, MS_E_FAILED, "rank 2 failed: loss is NAN");
    ck_assert_str_eq(life.verdict.text, "loss is NAN");
}
END_TEST

START_TEST(asked_to_leave_the_process_ends_after_its_last_word)
{
    for (int state = LIFE_IDLE; state < LIFE_LEAVING; state++) {
        struct life life = in_state((enum life_state)state, 3);
        order(&life, LIFE_LEAVE, 0, 0, NULL);
        order(&life, LIFE_LOST, 0, MS_E_UNREACHABLE, "gone"); /* the first word counts */
        ck_assert_int_eq(order(&life, LIFE_ASSIGN, 9, 0, NULL), LIFE_DECLINED);
        if (state != LIFE_IDLE) {
            finishes(&life);
        }
        ck_assert_int_eq(life_duty(&life), LIFE_DO_END);
        ck_assert_int_eq(life.leave_event, LIFE_LEAVE);
        if (state != LIFE_IDLE) { /* what became of the rank is the scheduler's end all the same */
            ck_assert_int_eq(life.verdict.code, MS_E_UNREACHABLE);
        }
    }
}
END_TEST

START_TEST(nothing_is_said_about_a_rank_that_the_node_cannot_serve)
{
    struct life life = in_state(LIFE_PLANNING, 3);
    ends(&life, LIFE_DO_PLAN, LIFE_UNFIT, MS_E_IO, "no folder");
    ends(&life, LIFE_DO_CLEAN, LIFE_OUT, 0, NULL);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_END);
    ck_assert_int_eq(life.leave_event, LIFE_UNFIT);
    ck_assert_str_eq(life.leave.text, "no folder");
}
END_TEST

START_TEST(one_job_is_the_life_of_its_process)
{
    struct life life = in_state(LIFE_TRAINING, 3);
    life.one_job = 1;
    ck_assert_int_eq(order_of(&life, 8, LIFE_ASSIGN, 4, 0, NULL), LIFE_DECLINED);
    order(&life, LIFE_STOP, 3, MS_E_CANCELLED, "cancelled");
    finishes(&life);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_END);

    struct life none = {.one_job = 1};
    order(&none, LIFE_STOP, 0, MS_E_TIMEOUT, "the cluster did not come together");
    ck_assert_int_eq(life_duty(&none), LIFE_DO_END);
    ck_assert_int_eq(none.verdict.code, MS_E_TIMEOUT);
}
END_TEST

START_TEST(stop_after_the_step_is_remembered_until_there_is_a_step)
{
    struct life life = in_state(LIFE_PLANNING, 3);
    ck_assert_int_eq(order(&life, LIFE_AT_STEP, 3, 0, NULL), LIFE_STEP);
    ck_assert_int_eq(life.at_step, 1);
    ck_assert_int_eq(life.state, LIFE_PLANNING);

    life = in_state(LIFE_FINISHING, 3);
    order_of(&life, 8, LIFE_ASSIGN, 4, 0, NULL);
    ck_assert_int_eq(order(&life, LIFE_AT_STEP, 4, 0, NULL), LIFE_TAKEN);
    finishes(&life);
    ck_assert_int_eq(life.at_step, 1);
}
END_TEST

START_TEST(rank_that_trains_goes_on_under_the_next_generation)
{
    struct life life = in_state(LIFE_TRAINING, 3);
    ck_assert_int_eq(order(&life, LIFE_ASSIGN, 4, 0, NULL), LIFE_HOLD);
    ck_assert_int_eq(life.state, LIFE_HOLDING);
    struct life_input back = {.event = LIFE_PEER, .generation = 3, .code = MS_E_ABORTED};
    life_apply(&life, &back); /* from the step that was given up */
    goes_on(&life, 4);

    order(&life, LIFE_ASSIGN, 5, 0, NULL); /* and is done before it hears of it */
    back = (struct life_input){.event = LIFE_DONE, .generation = 4};
    life_apply(&life, &back);
    goes_on(&life, 5);
}
END_TEST

START_TEST(rank_that_lost_a_peer_or_is_done_waits_to_go_on)
{
    struct life life = in_state(LIFE_HOLDING, 3);
    ck_assert_int_eq(order(&life, LIFE_ASSIGN, 4, 0, NULL), LIFE_TAKEN);
    ck_assert_int_eq(life.verdict.code, 0);
    struct life_input late = {.event = LIFE_QUIET, .generation = 3};
    ck_assert_int_eq(life_apply(&life, &late), LIFE_STALE);
    goes_on(&life, 4);

    life = in_state(LIFE_FINISHING, 3);
    order(&life, LIFE_ASSIGN, 4, 0, NULL);
    late.event = LIFE_SAID; /* of the generation before */
    ck_assert_int_eq(life_apply(&life, &late), LIFE_STALE);
    goes_on(&life, 4);
}
END_TEST

START_TEST(what_fails_while_it_is_held_is_said_to_the_next_generation)
{
    struct life life = in_state(LIFE_TRAINING, 3);
    order(&life, LIFE_ASSIGN, 4, 0, NULL);
    struct life_input back = {
        .event = LIFE_FAILED, .generation = 3, .code = MS_E_FAILED, .text = "loss is NAN"};
    life_apply(&life, &back);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_SAY);
    ck_assert_uint_eq(life.generation, 4);
    ck_assert_str_eq(life.verdict.text, "loss is NAN");
    ck_assert_int_eq(life.verdict.from_outside, 0);
    order(&life, LIFE_STOP, 4, 0, NULL);
    finishes(&life);
    ck_assert_int_eq(life.state, LIFE_IDLE);

    life = in_state(LIFE_TRAINING, 3); /* and the scheduler's last word may have come before */
    order(&life, LIFE_ASSIGN, 4, 0, NULL);
    order(&life, LIFE_STOP, 4, MS_E_FAILED, "rank 1 failed");
    life_apply(&life, &back);
    finishes(&life);
    ck_assert_int_eq(life.state, LIFE_IDLE);
}
END_TEST

START_TEST(assign_of_another_rank_is_not_to_go_on)
{
    struct life life = in_state(LIFE_TRAINING, 3);
    struct life_input other = {.event = LIFE_ASSIGN, .job = 7, .generation = 4, .rank = 1};
    ck_assert_int_eq(life_apply(&life, &other), LIFE_INTERRUPT);
    ck_assert_int_eq(life.verdict.from_outside, 1);
    ck_assert_int_eq(life.state, LIFE_FINISHING);
}
END_TEST

/* Takes a rank whose plan comes from the scheduler. */
static int assign_planned(struct life *life, uint64_t generation, uint32_t rank, uint32_t plan_from)
{
    struct life_input input = {.event = LIFE_ASSIGN,
                               .job = 7,
                               .generation = generation,
                               .rank = rank,
                               .plan_from = plan_from};
    return life_apply(life, &input);
}

/* Of that generation, with nothing left to do but to wait for the plan. */
static struct life prepared(uint64_t generation)
{
    struct life life = {.one_job = 0};
    ck_assert_int_eq(assign_planned(&life, generation, 2, MS_PLAN_RANK_0), LIFE_TAKEN);
    ck_assert_int_eq(ends(&life, LIFE_DO_PLAN, LIFE_MADE, 0, NULL), LIFE_TAKEN);
    ck_assert_int_eq(life.state, LIFE_PLANNING);
    ck_assert_int_eq(life_duty(&life), LIFE_WAIT);
    return life;
}

START_TEST(ranks_meet_when_they_are_prepared_and_have_the_plan)
{
    struct life life = prepared(3);
    ck_assert_int_eq(plan_comes(&life, 2), LIFE_STALE);
    ck_assert_int_eq(plan_comes(&life, 4), LIFE_STALE);
    ck_assert_int_eq(order(&life, LIFE_START, 3, 0, NULL), LIFE_STALE);
    ck_assert_int_eq(plan_comes(&life, 3), LIFE_TAKEN);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_JOIN);
    ck_assert_int_eq(plan_comes(&life, 3), LIFE_STALE);

    life = (struct life){.one_job = 0};
    assign_planned(&life, 3, 0, MS_PLAN_GIVEN);
    ck_assert_int_eq(plan_comes(&life, 3), LIFE_TAKEN); /* before it has looked at anything */
    ck_assert_int_eq(plan_comes(&life, 3), LIFE_STALE);
    ends(&life, LIFE_DO_PLAN, LIFE_MADE, 0, NULL);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_JOIN);

    life = in_state(LIFE_FINISHING, 3); /* after a rank that was ready once */
    assign_planned(&life, 4, 1, MS_PLAN_RANK_0);
    finishes(&life);
    ends(&life, LIFE_DO_PLAN, LIFE_MADE, 0, NULL);
    plan_comes(&life, 4);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_JOIN);

    life = in_state(LIFE_PLANNING, 3); /* which chooses for itself */
    ck_assert_int_eq(plan_comes(&life, 3), LIFE_STALE);
}
END_TEST

START_TEST(who_waits_for_the_plan_says_whose_it_is)
{
    static const struct {
        uint32_t rank, plan_from;
        const char *says;
    } rows[] = {
        {0, MS_PLAN_RANK_0, "the plan"},
        {1, MS_PLAN_RANK_0, "the plan, which rank 0 chooses"},
        {0, MS_PLAN_GIVEN, "the plan"},
        {1, MS_PLAN_GIVEN, "the plan"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        struct life life = {.one_job = 0};
        assign_planned(&life, 3, rows[i].rank, rows[i].plan_from);
        ck_assert_str_eq(life_waits_for(&life), "its data and its plan");
        ends(&life, LIFE_DO_PLAN, LIFE_MADE, 0, NULL);
        ck_assert_str_eq(life_waits_for(&life), rows[i].says);
    }
}
END_TEST

START_TEST(whoever_waits_for_the_plan_hears_all_other_orders)
{
    struct life life = prepared(3);
    ck_assert_int_eq(order(&life, LIFE_STOP, 3, MS_E_CANCELLED, "cancelled"), LIFE_INTERRUPT);
    ck_assert_int_eq(plan_comes(&life, 3), LIFE_STALE);
    ck_assert_str_eq(life.verdict.text, "cancelled");
    finishes(&life);
    ck_assert_int_eq(life.state, LIFE_IDLE);

    life = prepared(3);
    ck_assert_int_eq(order(&life, LIFE_LEAVE, 0, 0, NULL), LIFE_INTERRUPT);
    finishes(&life);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_END);

    life = prepared(3);
    ck_assert_int_eq(order(&life, LIFE_LOST, 0, MS_E_UNREACHABLE, "gone"), LIFE_INTERRUPT);
    finishes(&life);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_END);

    life = prepared(3);
    ck_assert_int_eq(order(&life, LIFE_AT_STEP, 3, 0, NULL), LIFE_STEP);
    ck_assert_int_eq(life.at_step, 1);
}
END_TEST

/* A job that was placed anew, before the node has let go of its first rank. */
START_TEST(plan_of_a_rank_that_is_kept_is_there_when_it_begins)
{
    struct life life = prepared(3);
    ck_assert_int_eq(assign_planned(&life, 4, 2, MS_PLAN_GIVEN), LIFE_INTERRUPT);
    ck_assert_int_eq(plan_comes(&life, 4), LIFE_TAKEN);
    ck_assert_int_eq(plan_comes(&life, 4), LIFE_STALE);
    ck_assert_int_eq(plan_comes(&life, 3), LIFE_STALE);
    finishes(&life);

    ck_assert_uint_eq(life.generation, 4);
    ends(&life, LIFE_DO_PLAN, LIFE_MADE, 0, NULL);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_JOIN);
}
END_TEST

START_TEST(rank_that_is_given_two_plans_fails_wherever_it_is)
{
    for (int state = LIFE_PLANNING; state <= LIFE_PULLING; state++) {
        struct life life = in_state((enum life_state)state, 3);
        ck_assert_int_eq(order(&life, LIFE_PLAN, 3, MS_E_PROTOCOL, "two plans"), LIFE_INTERRUPT);
        ck_assert_int_eq(life_duty(&life), LIFE_DO_SAY);
        ck_assert_str_eq(life.verdict.text, "two plans");
        ck_assert_int_eq(life.verdict.from_outside, 0);
    }
    struct life life = in_state(LIFE_FINISHING, 3); /* it is done, and that stands */
    ck_assert_int_eq(order(&life, LIFE_PLAN, 3, MS_E_PROTOCOL, "two plans"), LIFE_STALE);
    ck_assert_int_eq(life.verdict.code, 0);

    assign_planned(&life, 4, 1, MS_PLAN_GIVEN);
    plan_comes(&life, 4);
    ck_assert_int_eq(order(&life, LIFE_PLAN, 4, MS_E_PROTOCOL, "two plans"), LIFE_TAKEN);
    finishes(&life);
    ck_assert_uint_eq(life.generation, 4);
    ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
    ck_assert_int_eq(life_duty(&life), LIFE_WAIT); /* it failed by itself: the last word comes */
    order(&life, LIFE_STOP, 4, MS_E_FAILED, "rank 1 failed: two plans");
    ck_assert_str_eq(life.verdict.text, "two plans");
    ends(&life, LIFE_DO_CLEAN, LIFE_OUT, 0, NULL);
    ck_assert_int_eq(life.state, LIFE_IDLE);
}
END_TEST

START_TEST(stop_of_a_rank_with_two_plans_that_never_began_is_the_last_word)
{
    struct life life = in_state(LIFE_FINISHING, 3);
    assign_planned(&life, 4, 1, MS_PLAN_GIVEN);
    order(&life, LIFE_PLAN, 4, MS_E_PROTOCOL, "two plans");
    order(&life, LIFE_STOP, 4, MS_E_CANCELLED, "cancelled");
    finishes(&life);
    ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_CLEAN);
}
END_TEST

START_TEST(rank_that_goes_on_keeps_its_plan)
{
    struct life life = prepared(3);
    plan_comes(&life, 3);
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    order(&life, LIFE_START, 3, 0, NULL);
    ck_assert_int_eq(assign_planned(&life, 4, 2, MS_PLAN_RANK_0), LIFE_HOLD);
    ck_assert_int_eq(plan_comes(&life, 4), LIFE_TAKEN); /* the same, once more: or never */
    struct life_input back = {.event = LIFE_PEER, .generation = 3, .code = MS_E_ABORTED};
    life_apply(&life, &back);
    goes_on(&life, 4);

    assign_planned(&life, 5, 2, MS_PLAN_RANK_0);
    back.generation = 4;
    life_apply(&life, &back);
    ck_assert_int_eq(plan_comes(&life, 5), LIFE_STALE);
    goes_on(&life, 5);
}
END_TEST

/* No state without an exit: from each one some rule leads elsewhere, and LEAVING is the end. */
START_TEST(each_state_has_an_exit_and_can_be_reached)
{
    for (int state = 0; state < LIFE_STATES; state++) {
        int exits = 0;
        int entries = state == LIFE_IDLE;
        for (size_t i = 0; i < life_machine.n_rules; i++) {
            const struct ms_rule *rule = &life_machine.rules[i];
            exits += rule->from == state && rule->to != state;
            entries += rule->to == state && rule->from != state;
        }
        ck_assert_msg((exits > 0) == (state != LIFE_LEAVING), "%s", life_machine.states[state]);
        ck_assert_msg(entries > 0, "%s", life_machine.states[state]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("life");
    TCase *tc = tcase_create("life");
    tcase_add_test(tc, rank_is_planned_joined_trained_and_let_go);
    tcase_add_test(tc, start_before_the_mesh_stands_is_nobodys);
    tcase_add_test(tc, stop_interrupts_whatever_is_done_and_is_acknowledged_in_its_words);
    tcase_add_test(tc, stop_of_a_rank_that_is_kept_is_its_end_before_it_began);
    tcase_add_test(tc, assign_in_the_place_of_a_stop_ends_the_rank_in_hand);
    tcase_add_test(tc, who_lost_a_peer_lets_the_scheduler_speak_first);
    tcase_add_test(tc, a_failure_that_was_not_heard_is_told_to_the_generation_that_came);
    tcase_add_test(tc, a_failure_that_the_trainer_was_not_back_from_is_told_when_he_is);
    tcase_add_test(tc, only_a_failure_of_its_own_is_told_again);
    tcase_add_test(tc, the_last_word_explains_a_success_that_was_none_and_no_failure);
    tcase_add_test(tc, asked_to_leave_the_process_ends_after_its_last_word);
    tcase_add_test(tc, nothing_is_said_about_a_rank_that_the_node_cannot_serve);
    tcase_add_test(tc, one_job_is_the_life_of_its_process);
    tcase_add_test(tc, stop_after_the_step_is_remembered_until_there_is_a_step);
    tcase_add_test(tc, rank_that_trains_goes_on_under_the_next_generation);
    tcase_add_test(tc, rank_that_lost_a_peer_or_is_done_waits_to_go_on);
    tcase_add_test(tc, what_fails_while_it_is_held_is_said_to_the_next_generation);
    tcase_add_test(tc, assign_of_another_rank_is_not_to_go_on);
    tcase_add_test(tc, ranks_meet_when_they_are_prepared_and_have_the_plan);
    tcase_add_test(tc, who_waits_for_the_plan_says_whose_it_is);
    tcase_add_test(tc, whoever_waits_for_the_plan_hears_all_other_orders);
    tcase_add_test(tc, plan_of_a_rank_that_is_kept_is_there_when_it_begins);
    tcase_add_test(tc, rank_that_is_given_two_plans_fails_wherever_it_is);
    tcase_add_test(tc, stop_of_a_rank_with_two_plans_that_never_began_is_the_last_word);
    tcase_add_test(tc, rank_that_goes_on_keeps_its_plan);
    tcase_add_test(tc, each_state_has_an_exit_and_can_be_reached);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
