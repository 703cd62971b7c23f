/* life_private.h - what the parts of a life share: life.c (the table, one rank after the other,
 * what is next), life_orders.c (what the scheduler says), life_work.c (what became of the trainer's
 * work)
 *
 * All under the caller's lock, as life_apply. */
#ifndef LIFE_PRIVATE_H
#define LIFE_PRIVATE_H

#include "libworker/node/life.h"

/* True where the table has a rule. Nothing else writes the state. */
int life_move(struct life *life, enum life_event event);
int life_is_at_work(const struct life *life);
/* The trainer works still for a generation that was given up, and comes back to the kept one. */
int life_is_held(const struct life *life);

void life_judge(struct life_verdict *verdict, const struct life_input *input, int from_outside);
/* A Stop without a reason still ends what was not over. */
void life_judge_stop(struct life_verdict *verdict, const struct life_input *input);
void life_judge_end(struct life *life, const struct life_input *input);

/* The Assign that is kept becomes the rank in hand. */
void life_take_next(struct life *life);
/* The rank in hand goes on as that of the Assign that is kept, and with the plan that it has. */
void life_adopt_next(struct life *life);
/* It was asked to stop after its step, and none follows: a peer is gone, and no round begins. What
 * the trainer does for its peers is given up; then it holds, and stops there. Who holds nothing yet
 * is over. Returns what has to happen at once. */
int life_stand(struct life *life, const struct life_verdict *why);
/* FINISHING, and something of its three ends came true. */
void life_end_rank(struct life *life);

/* One event each; what life_apply returns. */
int life_on_assign(struct life *life, const struct life_input *input);
int life_on_plan(struct life *life, const struct life_input *input);
int life_on_start(struct life *life, const struct life_input *input);
int life_on_stop(struct life *life, const struct life_input *input);
int life_on_at_step(struct life *life, const struct life_input *input);
int life_on_end(struct life *life, const struct life_input *input);
int life_on_made(struct life *life, const struct life_input *input);
int life_on_obeyed(struct life *life, const struct life_input *input);
int life_on_done(struct life *life, const struct life_input *input);
int life_on_quiet(struct life *life, const struct life_input *input);
int life_on_failed(struct life *life, const struct life_input *input);
int life_on_peer(struct life *life, const struct life_input *input);
int life_on_unfit(struct life *life, const struct life_input *input);
int life_on_said(struct life *life, const struct life_input *input);
int life_on_out(struct life *life, const struct life_input *input);

#endif
