/* test_life_recovery.c - the life of a rank whose job recovers: rounds, and waits without limit */
#include "tests/unit/life_case.h"

/* Of a round: everybody is given the plan that the job has. */
static int assign_again(struct life *life, uint64_t generation, uint32_t rank)
{
    struct life_input input = {.event = LIFE_ASSIGN,
                               .job = 7,
                               .generation = generation,
                               .rank = rank,
                               .recovers = 1,
                               .plan_from = MS_PLAN_GIVEN};
    return life_apply(life, &input);
}

/* Rank 2, which waits for its peers: its plan is made. */
static struct life obeyed(uint64_t generation)
{
    struct life life = {.one_job = 1};
    ck_assert_int_eq(assign_again(&life, generation, 2), LIFE_TAKEN);
    plan_comes(&life, generation);
    ends(&life, LIFE_DO_PLAN, LIFE_MADE, 0, NULL);
    ck_assert_int_eq(ends(&life, LIFE_DO_JOIN, LIFE_OBEYED, 0, NULL), LIFE_TAKEN);
    ck_assert_int_eq(life.state, LIFE_JOINING);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_JOIN); /* and on with that */
    return life;
}

static int comes_back_with(struct life *life, enum life_event event, uint64_t generation, int code)
{
    struct life_input back = {
        .event = event, .generation = generation, .code = code, .text = "it was given up"};
    return life_apply(life, &back);
}

START_TEST(rank_that_has_made_its_plan_goes_on_though_it_never_trained)
{
    static const enum life_event backs[] = {LIFE_PEER, LIFE_MADE};
    for (size_t i = 0; i < MS_ARRAY_SIZE(backs); i++) {
        struct life life = obeyed(3);
        ck_assert_int_eq(assign_again(&life, 4, 2), LIFE_HOLD);
        ck_assert_int_eq(life.state, LIFE_HOLDING);
        comes_back_with(&life, backs[i], 3, i == 0 ? MS_E_ABORTED : 0);
        goes_on(&life, 4);
    }
    struct life life = obeyed(3); /* it waits for Start */
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    ck_assert_int_eq(assign_again(&life, 4, 2), LIFE_TAKEN);
    goes_on(&life, 4);

    life = obeyed(3); /* its peer never came */
    ends(&life, LIFE_DO_JOIN, LIFE_PEER, MS_E_TIMEOUT, "rank 1 does not come");
    ck_assert_int_eq(life_duty(&life), LIFE_DO_HOLD);
    ck_assert_int_eq(assign_again(&life, 4, 2), LIFE_TAKEN);
    goes_on(&life, 4);

    life = obeyed(3); /* what fails meanwhile is said to the next generation */
    assign_again(&life, 4, 2);
    comes_back_with(&life, LIFE_FAILED, 3, MS_E_NOMEM);
    ck_assert_uint_eq(life.generation, 4);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_SAY);
}
END_TEST

/* It waits for the last word on its rank, and the scheduler has given that another generation. */
START_TEST(process_that_begins_anew_declines_the_next_round_and_waits_no_more)
{
    struct life life = obeyed(3);
    struct life_input unfit = {
        .event = LIFE_FAILED, .generation = 3, .code = MS_E_REFUSED, .anew = 1};
    ck_assert_int_eq(life_apply(&life, &unfit), LIFE_TAKEN);
    ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
    ck_assert_int_eq(life_duty(&life), LIFE_WAIT);

    ck_assert_int_eq(assign_again(&life, 4, 2), LIFE_DECLINED);

    ends(&life, LIFE_DO_CLEAN, LIFE_OUT, 0, NULL);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_END);
}
END_TEST

/* Else its plan may be another one than that of the others. */
START_TEST(rank_that_never_trained_goes_on_only_where_all_are_given_one_plan)
{
    for (int i = 0; i < 3; i++) {
        struct life life = obeyed(3);
        struct life_input again = {.event = LIFE_ASSIGN,
                                   .job = 7,
                                   .generation = 4,
                                   .rank = i == 2 ? 1 : 2,
                                   .recovers = i != 1,
                                   .plan_from = i == 0 ? MS_PLAN_RANK_0 : MS_PLAN_GIVEN};
        ck_assert_int_eq(life_apply(&life, &again), LIFE_INTERRUPT);
        ck_assert_int_eq(comes_back_with(&life, LIFE_FAILED, 3, MS_E_ABORTED), LIFE_STALE);
        finishes(&life);
        ck_assert_uint_eq(life.generation, 4);
        ck_assert_int_eq(life_duty(&life), LIFE_DO_PLAN);
        ck_assert_int_eq(life.has_obeyed, 0);
    }
}
END_TEST

START_TEST(plan_that_is_made_too_late_is_nothing_to_go_on_from)
{
    struct life life = {.one_job = 1};
    assign_again(&life, 3, 2);
    plan_comes(&life, 3);
    ends(&life, LIFE_DO_PLAN, LIFE_MADE, 0, NULL);
    ck_assert_int_eq(assign_again(&life, 4, 2), LIFE_INTERRUPT);
    ck_assert_int_eq(comes_back_with(&life, LIFE_OBEYED, 3, 0), LIFE_STALE);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_SAY);
}
END_TEST

START_TEST(one_job_begins_anew_with_each_newer_rank_of_that_job)
{
    static const struct {
        enum life_state state;
        uint32_t rank;
    } rows[] = {{LIFE_PLANNING, 2}, {LIFE_PLANNING, 1}, {LIFE_JOINING, 2}, {LIFE_JOINING, 1},
                {LIFE_TRAINING, 1}, {LIFE_HOLDING, 1},  {LIFE_PULLING, 1}, {LIFE_FINISHING, 1}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        struct life life = in_state(rows[i].state, 3);
        life.one_job = 1;
        int answer = assign_again(&life, 4, rows[i].rank);
        ck_assert_int_eq(answer, rows[i].state == LIFE_FINISHING ? LIFE_TAKEN : LIFE_INTERRUPT);
        ck_assert_int_eq(order_of(&life, 8, LIFE_ASSIGN, 9, 0, NULL), LIFE_DECLINED);
        finishes(&life);
        ck_assert_int_eq(life_duty(&life), LIFE_DO_PLAN);
        ck_assert_uint_eq(life.generation, 4);
        ck_assert_uint_eq(life.rank, rows[i].rank);
        ck_assert_int_eq(life.verdict.code, 0);

        order(&life, LIFE_STOP, 4, 0, NULL); /* the last word is that on the last rank */
        ck_assert_int_eq(assign_again(&life, 5, 2), LIFE_DECLINED);
        finishes(&life);
        ck_assert_int_eq(life_duty(&life), LIFE_DO_END);
    }
}
END_TEST

/* After a reconnect it may come once more, or one that was overtaken. */
START_TEST(assign_that_is_no_newer_changes_nothing)
{
    for (int state = LIFE_PLANNING; state <= LIFE_FINISHING; state++) {
        struct life life = in_state((enum life_state)state, 3);
        const struct life before = life;
        ck_assert_int_eq(assign_again(&life, 3, 2), LIFE_STALE);
        ck_assert_int_eq(assign_again(&life, 2, 1), LIFE_STALE);
        ck_assert_int_eq(memcmp(&life, &before, sizeof(life)), 0);
    }
    struct life held = obeyed(3); /* and that of one that is kept */
    assign_again(&held, 5, 2);
    const struct life before = held;
    ck_assert_int_eq(assign_again(&held, 5, 2), LIFE_STALE);
    ck_assert_int_eq(assign_again(&held, 4, 2), LIFE_STALE);
    ck_assert_int_eq(memcmp(&held, &before, sizeof(held)), 0);
}
END_TEST

/* Rounds may follow each other faster than a trainer comes back. */
START_TEST(newer_round_takes_the_place_of_the_one_that_is_kept)
{
    struct life life = obeyed(3);
    ck_assert_int_eq(assign_again(&life, 4, 2), LIFE_HOLD);
    ck_assert_int_eq(assign_again(&life, 5, 2), LIFE_TAKEN);
    comes_back_with(&life, LIFE_PEER, 3, MS_E_ABORTED);
    goes_on(&life, 5);

    life = obeyed(3); /* another rank: it cannot go on after all */
    assign_again(&life, 4, 2);
    ck_assert_int_eq(assign_again(&life, 5, 0), LIFE_INTERRUPT);
    ck_assert_int_eq(comes_back_with(&life, LIFE_PEER, 3, MS_E_ABORTED), LIFE_STALE);
    ck_assert_int_eq(life.verdict.code, MS_E_ABORTED);
    finishes(&life);
    ck_assert_uint_eq(life.generation, 5);
    ck_assert_uint_eq(life.rank, 0);

    life = in_state(LIFE_PLANNING, 3);
    ck_assert_int_eq(assign_again(&life, 4, 2), LIFE_INTERRUPT);
    order(&life, LIFE_STOP, 4, MS_E_ABORTED, "somebody else has it"); /* but not the next one */
    ck_assert_int_eq(assign_again(&life, 5, 2), LIFE_TAKEN);
    finishes(&life);
    ck_assert_uint_eq(life.generation, 5);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_PLAN);
}
END_TEST

START_TEST(job_that_recovers_is_waited_for_without_limit)
{
    struct life life = obeyed(3);
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    order(&life, LIFE_START, 3, 0, NULL);
    ends(&life, LIFE_DO_TRAIN, LIFE_PEER, MS_E_CLOSED, "rank 1 closed");
    ck_assert_int_eq(ends(&life, LIFE_DO_HOLD, LIFE_QUIET, 0, NULL), LIFE_STALE);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_HOLD);
    ck_assert_str_eq(life_waits_for(&life), "the scheduler's word on a peer that is gone");
    assign_again(&life, 4, 2);
    goes_on(&life, 4);

    ends(&life, LIFE_DO_TRAIN, LIFE_PEER, MS_E_CLOSED, "rank 1 closed");
    order(&life, LIFE_LEAVE, 0, 0, NULL); /* whoever wants it to end, ends it */
    finishes(&life);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_END);
}
END_TEST

static const struct life_input leaves_alone = {.event = LIFE_LEAVE, .saves = 1};

static struct life trains(uint64_t generation)
{
    struct life life = obeyed(generation);
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    order(&life, LIFE_START, generation, 0, NULL);
    return life;
}

/* There is no scheduler whose last word could be waited for. */
static void saves_and_ends(struct life *life)
{
    ck_assert_int_eq(ends(life, LIFE_DO_STOP, LIFE_DONE, 0, NULL), LIFE_TAKEN);
    ck_assert_int_eq(life->verdict.code, 0);
    finishes(life);
    ck_assert_int_eq(life_duty(life), LIFE_DO_END);
}

START_TEST(who_leaves_while_there_is_no_scheduler_saves_first)
{
    struct life life = trains(3);
    ck_assert_int_eq(life_apply(&life, &leaves_alone), LIFE_HOLD);
    ends(&life, LIFE_DO_TRAIN, LIFE_PEER, MS_E_ABORTED, "given up");
    ck_assert_int_eq(life_apply(&life, &leaves_alone), LIFE_TAKEN); /* once more */
    saves_and_ends(&life);

    life = trains(3); /* it holds already */
    ends(&life, LIFE_DO_TRAIN, LIFE_PEER, MS_E_CLOSED, "rank 1 closed");
    ck_assert_int_eq(life_apply(&life, &leaves_alone), LIFE_TAKEN);
    saves_and_ends(&life);

    life = trains(3); /* its trainer has not come back to the next round yet */
    ck_assert_int_eq(assign_again(&life, 4, 2), LIFE_HOLD);
    ck_assert_int_eq(life_apply(&life, &leaves_alone), LIFE_TAKEN);
    comes_back_with(&life, LIFE_PEER, 3, MS_E_ABORTED);
    ck_assert_uint_eq(life.generation, 4);
    saves_and_ends(&life);

    life = trains(3); /* or pulls */
    ends(&life, LIFE_DO_TRAIN, LIFE_PEER, MS_E_CLOSED, "rank 1 closed");
    assign_again(&life, 4, 2);
    ck_assert_int_eq(life_apply(&life, &leaves_alone), LIFE_HOLD);
    ends(&life, LIFE_DO_PULL, LIFE_PEER, MS_E_ABORTED, "given up");
    saves_and_ends(&life);
}
END_TEST

START_TEST(who_leaves_alone_and_cannot_save_ends_all_the_same)
{
    struct life life = trains(3);
    life_apply(&life, &leaves_alone);
    ends(&life, LIFE_DO_TRAIN, LIFE_PEER, MS_E_ABORTED, "given up");
    ends(&life, LIFE_DO_STOP, LIFE_FAILED, MS_E_IO, "no space left");
    ck_assert_int_eq(life.verdict.code, MS_E_IO);
    finishes(&life);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_END);

    life = trains(3); /* the last step was made before it heard */
    life_apply(&life, &leaves_alone);
    ends(&life, LIFE_DO_TRAIN, LIFE_DONE, 0, NULL);
    finishes(&life);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_END);

    life = obeyed(3); /* it holds nothing yet */
    ck_assert_int_eq(life_apply(&life, &leaves_alone), LIFE_INTERRUPT);
    finishes(&life);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_END);
}
END_TEST

/* All steps are made, and perhaps nobody has saved them: whoever could still ask is not heard. */
START_TEST(who_leaves_before_the_last_word_is_unheard)
{
    static const enum life_event ends_of_it[] = {LIFE_LEAVE, LIFE_LOST};
    static const struct life_input save = {.event = LIFE_AT_STEP, .generation = 3, .saves = 1};
    for (size_t i = 0; i < MS_ARRAY_SIZE(ends_of_it); i++) {
        for (int is_heard = 0; is_heard < 2; is_heard++) {
            struct life life = trains(3);
            ends(&life, LIFE_DO_TRAIN, LIFE_DONE, 0, NULL);
            ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
            if (is_heard) {
                order(&life, LIFE_STOP, 3, 0, NULL);
            }
            ck_assert_int_eq(life.is_unheard, 0);
            order(&life, ends_of_it[i], 0, MS_E_UNREACHABLE, "it is away");
            ck_assert_int_eq(life.is_unheard, !is_heard);
            order(&life, LIFE_LOST, 0, MS_E_UNREACHABLE, "it is away"); /* the first one counts */
            ck_assert_int_eq(life.is_unheard, !is_heard);
            ends(&life, LIFE_DO_CLEAN, LIFE_OUT, 0, NULL);
            ck_assert_int_eq(life_duty(&life), LIFE_DO_END);
        }
        struct life life = trains(3); /* while it tries */
        ends(&life, LIFE_DO_TRAIN, LIFE_DONE, 0, NULL);
        ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
        ck_assert_int_eq(life_apply(&life, &save), LIFE_TAKEN);
        order(&life, ends_of_it[i], 0, MS_E_UNREACHABLE, "it is away");
        ck_assert_int_eq(life.is_unheard, 1);
        finishes(&life);
        ck_assert_int_eq(life_duty(&life), LIFE_DO_END);
    }
    struct life idle = {.one_job = 0};
    order(&idle, LIFE_LEAVE, 0, 0, NULL);
    ck_assert_int_eq(idle.is_unheard, 0);
}
END_TEST

/* It is at its step's boundary: that is what it was asked to stop at. */
START_TEST(who_holds_and_is_asked_to_stop_after_its_step_stops_there)
{
    for (int before = 0; before < 2; before++) {
        struct life life = obeyed(3);
        struct life_input stop = {.event = LIFE_AT_STEP, .generation = 3, .saves = 1};
        ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
        order(&life, LIFE_START, 3, 0, NULL);
        if (before) {
            life_apply(&life, &stop);
        }
        ends(&life, LIFE_DO_TRAIN, LIFE_PEER, MS_E_CLOSED, "rank 1 closed");
        if (!before) {
            ck_assert_int_eq(comes_back_with(&life, LIFE_DONE, 3, 0), LIFE_STALE);
            ck_assert_int_eq(life_apply(&life, &stop), LIFE_STEP);
        }
        ck_assert_int_eq(life.saves, 1);
        ck_assert_int_eq(ends(&life, LIFE_DO_STOP, LIFE_DONE, 0, NULL), LIFE_TAKEN);
        ck_assert_int_eq(life.state, LIFE_FINISHING);
        ck_assert_int_eq(life.verdict.code, 0);
        ck_assert_str_eq(life.verdict.text, "");
        ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
        order(&life, LIFE_STOP, 3, MS_E_CANCELLED, "cancelled by alice");
        ck_assert_int_eq(life.verdict.code, MS_E_CANCELLED);
    }
}
END_TEST

/* Rank 0, which was to save, is lost: that is known only when the others have ended. */
START_TEST(who_has_stopped_saves_after_its_end_if_it_is_asked_to)
{
    static const struct life_input save = {.event = LIFE_AT_STEP, .generation = 3, .saves = 1};
    for (int is_said = 0; is_said < 2; is_said++) {
        struct life life = obeyed(3);
        ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
        order(&life, LIFE_START, 3, 0, NULL);
        order(&life, LIFE_AT_STEP, 3, 0, NULL);
        ends(&life, LIFE_DO_TRAIN, LIFE_DONE, 0, NULL);
        ck_assert_int_eq(order(&life, LIFE_AT_STEP, 3, 0, NULL), LIFE_STALE);
        if (is_said) {
            ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
        }

        ck_assert_int_eq(life_apply(&life, &save), LIFE_TAKEN);
        ck_assert_int_eq(life.saves, 1);
        ck_assert_int_eq(ends(&life, LIFE_DO_STOP, LIFE_DONE, 0, NULL), LIFE_TAKEN);
        ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
        order(&life, LIFE_STOP, 3, MS_E_CANCELLED, "cancelled by alice");
        ck_assert_int_eq(life_apply(&life, &save), LIFE_STALE); /* all is being let go of */
    }
}
END_TEST

/* Rank 0 is back meanwhile, and all have made the last step: that is its end, too. */
START_TEST(who_is_to_save_as_its_job_succeeds_has_succeeded)
{
    static const struct life_input save = {.event = LIFE_AT_STEP, .generation = 3, .saves = 1};
    struct life life = trains(3);
    ends(&life, LIFE_DO_TRAIN, LIFE_DONE, 0, NULL);
    ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
    ck_assert_int_eq(life_apply(&life, &save), LIFE_TAKEN);

    ck_assert_int_eq(order(&life, LIFE_STOP, 3, 0, "all 2 ranks finished 10 steps"),
                     LIFE_INTERRUPT);

    ck_assert_int_eq(life.verdict.code, 0);
}
END_TEST

/* It took a lost rank's place behind the last step, hung, and is not needed any more. */
START_TEST(who_gets_ready_as_its_job_succeeds_has_succeeded)
{
    struct life life = obeyed(3);
    ck_assert_int_eq(order(&life, LIFE_STOP, 3, 0, "all 2 ranks finished 10 steps"),
                     LIFE_INTERRUPT);
    ck_assert_int_eq(life.verdict.code, 0);

    life = trains(3); /* its trainer has not come back to the next round yet */
    assign_again(&life, 4, life.rank);
    order(&life, LIFE_STOP, 4, 0, "all 2 ranks finished 10 steps");
    ends(&life, LIFE_DO_TRAIN, LIFE_PEER, MS_E_ABORTED, "given up");
    ck_assert_int_eq(life.verdict.code, 0);
}
END_TEST

/* Where it could not: as often as it is asked. */
START_TEST(who_could_not_save_after_its_end_tries_again)
{
    static const struct life_input save = {.event = LIFE_AT_STEP, .generation = 3, .saves = 1};
    struct life life = obeyed(3);
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    order(&life, LIFE_START, 3, 0, NULL);
    ends(&life, LIFE_DO_TRAIN, LIFE_DONE, 0, NULL);
    for (int n = 0; n < 3; n++) {
        ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
        ck_assert_int_eq(life_apply(&life, &save), LIFE_TAKEN);
        ck_assert_int_eq(life_apply(&life, &save), LIFE_TAKEN); /* it is at it, and in no step */
        ck_assert_int_eq(ends(&life, LIFE_DO_STOP, LIFE_DONE, 0, NULL), LIFE_TAKEN);
    }
}
END_TEST

/* Another rank was lost meanwhile: what was asked of an end is none of the round's business. */
START_TEST(who_saves_after_its_end_goes_on_in_a_round_and_does_not_stop_there)
{
    static const struct life_input save = {.event = LIFE_AT_STEP, .generation = 3, .saves = 1};
    for (int has_tried = 0; has_tried < 2; has_tried++) {
        struct life life = obeyed(3);
        ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
        order(&life, LIFE_START, 3, 0, NULL);
        ends(&life, LIFE_DO_TRAIN, LIFE_DONE, 0, NULL);
        ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
        ck_assert_int_eq(life_apply(&life, &save), LIFE_TAKEN);
        if (has_tried) {
            ends(&life, LIFE_DO_STOP, LIFE_DONE, 0, NULL);
        }
        ck_assert_int_eq(assign_again(&life, 4, life.rank), LIFE_TAKEN);

        ck_assert_int_eq(life_duty(&life), LIFE_DO_PULL);
        ck_assert_int_eq(life.at_step, 0);
        ck_assert_int_eq(life.saves, 0);
    }
}
END_TEST

/* An order that crossed its word: the scheduler may wait for no other one. */
START_TEST(who_has_saved_does_not_once_more)
{
    static const struct life_input save = {.event = LIFE_AT_STEP, .generation = 3, .saves = 1};
    static const struct life_input done = {.event = LIFE_DONE, .generation = 3};
    static const struct life_input saved = {.event = LIFE_DONE, .generation = 3, .saves = 1};
    struct life life = obeyed(3);
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    order(&life, LIFE_START, 3, 0, NULL);
    order(&life, LIFE_AT_STEP, 3, 0, NULL);
    ck_assert_int_eq(life_apply(&life, &done), LIFE_TAKEN);
    ck_assert_int_eq(life_apply(&life, &save), LIFE_TAKEN);
    ck_assert_int_eq(life_apply(&life, &saved), LIFE_TAKEN);
    ck_assert_int_eq(life_apply(&life, &save), LIFE_STALE);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_SAY);
}
END_TEST

START_TEST(who_has_failed_saves_nothing_after_its_end)
{
    static const struct life_input save = {.event = LIFE_AT_STEP, .generation = 3, .saves = 1};
    struct life life = obeyed(3);
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    order(&life, LIFE_START, 3, 0, NULL);
    ends(&life, LIFE_DO_TRAIN, LIFE_FAILED, MS_E_FAILED, "loss is NAN");
    ck_assert_int_eq(life_apply(&life, &save), LIFE_STALE);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_SAY);
}
END_TEST

static const struct life_input stands = {.event = LIFE_AT_STEP,
                                         .generation = 3,
                                         .stands = 1,
                                         .code = MS_E_CANCELLED,
                                         .text = "cancelled by alice"};

/* A rank is gone, and no round begins: whoever waits for it would do so for good. */
START_TEST(who_is_told_that_no_step_follows_stops_at_once)
{
    struct life life = obeyed(3); /* it waits for Start */
    struct life_input stop = {.event = LIFE_AT_STEP, .generation = 3};
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    ck_assert_int_eq(life_apply(&life, &stop), LIFE_STEP); /* which comes */
    ck_assert_int_eq(life_duty(&life), LIFE_WAIT);
    ck_assert_int_eq(life_apply(&life, &stands), LIFE_STEP);
    ck_assert_int_eq(ends(&life, LIFE_DO_STOP, LIFE_DONE, 0, NULL), LIFE_TAKEN);
    ck_assert_int_eq(life.verdict.code, 0);

    life = obeyed(3); /* it waits for a peer in its step */
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    order(&life, LIFE_START, 3, 0, NULL);
    ck_assert_int_eq(life_apply(&life, &stands), LIFE_STEP | LIFE_HOLD);
    ends(&life, LIFE_DO_TRAIN, LIFE_PEER, MS_E_ABORTED, "given up");
    ck_assert_int_eq(life_apply(&life, &stands), LIFE_STEP); /* once more */
    ck_assert_int_eq(life_duty(&life), LIFE_DO_STOP);

    life = obeyed(3); /* ... or in a mesh that will not be, and holds nothing yet */
    ck_assert_int_eq(life_apply(&life, &stands), LIFE_STEP | LIFE_INTERRUPT);
    ck_assert_int_eq(life.state, LIFE_FINISHING);
    ck_assert_int_eq(life.verdict.code, MS_E_CANCELLED);
    ck_assert_int_eq(life.verdict.from_outside, 1);
}
END_TEST

/* Code 0: no step is left, and an evaluation that is due is not made any more. */
START_TEST(where_all_steps_are_made_who_stands_is_at_its_end)
{
    struct life life = obeyed(3);
    struct life_input end = stands;
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    order(&life, LIFE_START, 3, 0, NULL);
    ck_assert_int_eq(life_apply(&life, &stands), LIFE_STEP | LIFE_HOLD);
    ck_assert_int_eq(life.ends, 0);
    end.code = MS_OK;
    (void)life_apply(&life, &end);
    ck_assert_int_eq(life.ends, 1);

    life = obeyed(3); /* and of the round that it is on its way to */
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    order(&life, LIFE_START, 3, 0, NULL);
    ck_assert_int_eq(assign_again(&life, 4, 2), LIFE_HOLD);
    end.generation = 4;
    ck_assert_int_eq(life_apply(&life, &end), LIFE_TAKEN);
    comes_back_with(&life, LIFE_PEER, 3, MS_E_ABORTED);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_STOP);
    ck_assert_int_eq(life.ends, 1);

    life = obeyed(3); /* one that was never started has what it took, and saves that when asked */
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    end.generation = 3;
    (void)life_apply(&life, &end);
    ends(&life, LIFE_DO_STOP, LIFE_DONE, 0, NULL);
    ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
    end.saves = 1;
    ck_assert_int_eq(life_apply(&life, &end), LIFE_TAKEN);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_STOP);
}
END_TEST

START_TEST(who_was_to_go_on_in_a_round_that_is_cut_off_stops_as_its_rank)
{
    struct life life = obeyed(3);
    struct life_input stop = stands;
    stop.generation = 4;
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    order(&life, LIFE_START, 3, 0, NULL);
    ck_assert_int_eq(assign_again(&life, 4, 2), LIFE_HOLD);
    ck_assert_int_eq(life_apply(&life, &stop), LIFE_TAKEN);
    comes_back_with(&life, LIFE_PEER, 3, MS_E_ABORTED);
    ck_assert_uint_eq(life.generation, 4);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_STOP);
}
END_TEST

/* What gave its step up is to go on, and stops after the first one then. */
START_TEST(who_is_held_for_a_round_goes_on_before_it_stops)
{
    struct life life = obeyed(3);
    order(&life, LIFE_AT_STEP, 3, 0, NULL);
    assign_again(&life, 4, 2);
    ck_assert_int_eq(life.state, LIFE_HOLDING);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_TRAIN);
    comes_back_with(&life, LIFE_PEER, 3, MS_E_ABORTED);
    goes_on(&life, 4);
    ck_assert_int_eq(life.at_step, 1);
}
END_TEST

/* Its state is what others may need, until it is known that all have theirs. */
START_TEST(who_is_done_keeps_all_until_the_last_word)
{
    struct life life = obeyed(3);
    ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
    order(&life, LIFE_START, 3, 0, NULL);
    ends(&life, LIFE_DO_TRAIN, LIFE_DONE, 0, NULL);
    ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
    ck_assert_int_eq(life_duty(&life), LIFE_WAIT);
    assign_again(&life, 4, 2);
    goes_on(&life, 4);
    ends(&life, LIFE_DO_TRAIN, LIFE_DONE, 0, NULL);
    ends(&life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
    ck_assert_int_eq(life_duty(&life), LIFE_WAIT);
    order(&life, LIFE_STOP, 4, 0, NULL);
    ends(&life, LIFE_DO_CLEAN, LIFE_OUT, 0, NULL);
    ck_assert_int_eq(life_duty(&life), LIFE_DO_END);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("life_recovery");
    TCase *tc = tcase_create("life_recovery");
    tcase_add_test(tc, rank_that_has_made_its_plan_goes_on_though_it_never_trained);
    tcase_add_test(tc, rank_that_never_trained_goes_on_only_where_all_are_given_one_plan);
    tcase_add_test(tc, plan_that_is_made_too_late_is_nothing_to_go_on_from);
    tcase_add_test(tc, one_job_begins_anew_with_each_newer_rank_of_that_job);
    tcase_add_test(tc, process_that_begins_anew_declines_the_next_round_and_waits_no_more);
    tcase_add_test(tc, assign_that_is_no_newer_changes_nothing);
    tcase_add_test(tc, newer_round_takes_the_place_of_the_one_that_is_kept);
    tcase_add_test(tc, job_that_recovers_is_waited_for_without_limit);
    tcase_add_test(tc, who_is_done_keeps_all_until_the_last_word);
    tcase_add_test(tc, who_leaves_while_there_is_no_scheduler_saves_first);
    tcase_add_test(tc, who_leaves_alone_and_cannot_save_ends_all_the_same);
    tcase_add_test(tc, who_leaves_before_the_last_word_is_unheard);
    tcase_add_test(tc, who_holds_and_is_asked_to_stop_after_its_step_stops_there);
    tcase_add_test(tc, who_has_stopped_saves_after_its_end_if_it_is_asked_to);
    tcase_add_test(tc, who_is_to_save_as_its_job_succeeds_has_succeeded);
    tcase_add_test(tc, who_gets_ready_as_its_job_succeeds_has_succeeded);
    tcase_add_test(tc, who_could_not_save_after_its_end_tries_again);
    tcase_add_test(tc, who_saves_after_its_end_goes_on_in_a_round_and_does_not_stop_there);
    tcase_add_test(tc, who_has_saved_does_not_once_more);
    tcase_add_test(tc, who_has_failed_saves_nothing_after_its_end);
    tcase_add_test(tc, who_is_told_that_no_step_follows_stops_at_once);
    tcase_add_test(tc, where_all_steps_are_made_who_stands_is_at_its_end);
    tcase_add_test(tc, who_was_to_go_on_in_a_round_that_is_cut_off_stops_as_its_rank);
    tcase_add_test(tc, who_is_held_for_a_round_goes_on_before_it_stops);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
