/* life_case.h - a rank's life in words of a scheduler and a trainer, for the tests of test_life*.c
 */
#ifndef LIFE_CASE_H
#define LIFE_CASE_H

#include "tests/test.h"

#include "libworker/node/life.h"
#include "proto/wire.h"

static inline int order_of(struct life *life, uint64_t job, enum life_event event,
                           uint64_t generation, int code, const char *text)
{
    struct life_input input = {.event = event,
                               .job = job,
                               .generation = generation,
                               .rank = 2,
                               .code = code,
                               .text = text};
    return life_apply(life, &input);
}

static inline int order(struct life *life, enum life_event event, uint64_t generation, int code,
                        const char *text)
{
    return order_of(life, 7, event, generation, code, text);
}

/* The trainer ends the duty that he is at. */
static inline int ends(struct life *life, enum life_duty duty, enum life_event event, int code,
                       const char *text)
{
    ck_assert_int_eq(life_duty(life), duty);
    struct life_input input = {
        .event = event, .generation = life->generation, .code = code, .text = text};
    return life_apply(life, &input);
}

/* A rank of that generation in that state. */
static inline struct life in_state(enum life_state state, uint64_t generation)
{
    struct life life = {.one_job = 0};
    if (state > LIFE_IDLE) {
        ck_assert_int_eq(order(&life, LIFE_ASSIGN, generation, 0, NULL), LIFE_TAKEN);
    }
    if (state > LIFE_PLANNING) {
        ends(&life, LIFE_DO_PLAN, LIFE_MADE, 0, NULL);
    }
    if (state > LIFE_JOINING) {
        ends(&life, LIFE_DO_JOIN, LIFE_MADE, 0, NULL);
        order(&life, LIFE_START, generation, 0, NULL);
    }
    if (state == LIFE_HOLDING) {
        ends(&life, LIFE_DO_TRAIN, LIFE_PEER, MS_E_CLOSED, "rank 1 closed");
    }
    if (state == LIFE_PULLING) { /* it began as the generation before */
        life.generation--;
        ends(&life, LIFE_DO_TRAIN, LIFE_PEER, MS_E_CLOSED, "rank 1 closed");
        order(&life, LIFE_ASSIGN, generation, 0, NULL);
    }
    if (state == LIFE_FINISHING) {
        ends(&life, LIFE_DO_TRAIN, LIFE_DONE, 0, NULL);
    }
    ck_assert_int_eq(life.state, state);
    return life;
}

/* FINISHING, of which the scheduler's last word was heard. */
static inline void finishes(struct life *life)
{
    ends(life, LIFE_DO_SAY, LIFE_SAID, 0, NULL);
    ends(life, LIFE_DO_CLEAN, LIFE_OUT, 0, NULL);
}

/* The Assign of the same rank under the next generation, until it trains again. */
static inline void goes_on(struct life *life, uint64_t generation)
{
    ck_assert_int_eq(life->state, LIFE_PULLING);
    ck_assert_uint_eq(life->generation, generation);
    ends(life, LIFE_DO_PULL, LIFE_MADE, 0, NULL);
    ck_assert_int_eq(life_duty(life), LIFE_WAIT);
    ck_assert_int_eq(order(life, LIFE_START, generation, 0, NULL), LIFE_TAKEN);
    ck_assert_int_eq(life_duty(life), LIFE_DO_TRAIN);
}

static inline int plan_comes(struct life *life, uint64_t generation)
{
    return order(life, LIFE_PLAN, generation, 0, NULL);
}

#endif
