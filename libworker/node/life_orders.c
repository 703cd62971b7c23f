/* life_orders.c - what the scheduler says of a rank: orders, and the plan of all ranks */
#include "libworker/node/life_private.h"

#include "proto/err.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>

/* Is it the rank in hand, is that not over for the scheduler, and is there something to go on from:
 * weights, or the plan that it has made, where that Assign is one that gives everybody the same.
 * (A job that is placed anew, from the queue, has its plan chosen anew.) */
static int can_go_on(const struct life *life, const struct life_input *input)
{
    int is_well = life->state == LIFE_FINISHING && life->verdict.code == 0 && !life->is_released;
    int has_same_plan = life->has_obeyed && input->recovers && input->plan_from == MS_PLAN_GIVEN;
    return life->generation != 0 && (life->has_trained || has_same_plan) &&
           (life_is_at_work(life) || is_well) && input->job == life->job &&
           input->rank == life->rank;
}

/* Not newer than what is in hand, or kept. */
static int is_old(const struct life *life, const struct life_input *input)
{
    return (life->generation != 0 && input->generation <= life->generation) ||
           (life->next.generation != 0 && input->generation <= life->next.generation);
}

/* Of one that is kept already the scheduler thinks no more, where it sends the ranks of that job
 * out again; and who has one job takes other ranks of it, until he has heard the last word. */
static int has_place(const struct life *life, const struct life_input *input)
{
    int has_kept = life->next.generation != 0;
    int replaces = has_kept && input->recovers && input->job == life->next.job;
    int is_served = life->one_job && life->generation != 0 &&
                    (input->job != life->job || (life->is_released && !has_kept));
    return life->state != LIFE_LEAVING && !life->leaves && !life->anew && !is_served &&
           (!has_kept || replaces);
}

static void keep(struct life *life, const struct life_input *input)
{
    life->next.job = input->job;
    life->next.generation = input->generation;
    life->next.rank = input->rank;
    life->next.plan_from = input->plan_from;
    life->next.recovers = input->recovers;
    life->next.has_plan = input->plan_from == MS_PLAN_OWN;
    life->next.at_step = life->next.saves = life->next.stands = life->next.is_stopped = 0;
    life->next.ends = 0;
}

static int go_on(struct life *life, const struct life_input *input)
{
    int works = life->state == LIFE_TRAINING || life->state == LIFE_PULLING ||
                (life->state == LIFE_JOINING && !life->is_ready);
    keep(life, input);
    if (life_is_held(life)) { /* he comes back to the newest */
        return LIFE_TAKEN;
    }
    if (works) { /* the trainer */
        life_move(life, LIFE_HELD);
        life->is_held = 1;
        return LIFE_HOLD;
    }
    life_adopt_next(life);
    return LIFE_TAKEN;
}

/* The rank in hand is given up for the one that is kept. */
static int give_up(struct life *life, const struct life_input *input)
{
    life->is_released = 1; /* the scheduler has done with it */
    if (!life_is_at_work(life)) {
        return LIFE_TAKEN;
    }
    if (life->state != LIFE_HOLDING || life->is_held) { /* else it knows a better reason */
        life->verdict.code = MS_E_ABORTED;
        life->verdict.from_outside = 1;
        snprintf(life->verdict.text, sizeof(life->verdict.text),
                 "the scheduler gave this node a rank of job %" PRIu64
                 " before it had let go of rank %u",
                 input->job, life->rank);
    }
    life_move(life, LIFE_ASSIGN);
    return LIFE_INTERRUPT;
}

/* It had ended by itself, and not well, and that was not known when this was sent: else its last
 * word, Stop, had come before. */
static int has_failed_unheard(const struct life *life, const struct life_input *input)
{
    const int is_back = life->is_said || !life->is_cut; /* what he says is of the one in hand */
    return life->state == LIFE_FINISHING && is_back && life->verdict.code != 0 &&
           !life->verdict.from_outside && !life->is_released && input->job == life->job &&
           input->rank == life->rank;
}

/* The generation that is there now is told what failed before it began. */
static int tell_it(struct life *life, const struct life_input *input)
{
    life->generation = input->generation;
    life->is_said = life->is_cut = 0; /* he has come back, or had not been at work */
    return LIFE_TAKEN;
}

int life_on_assign(struct life *life, const struct life_input *input)
{
    if (is_old(life, input)) {
        return LIFE_STALE;
    }
    if (!has_place(life, input)) {
        life->is_released |= life->anew && life->state == LIFE_FINISHING; /* no Stop of it comes */
        return LIFE_DECLINED;
    }
    if (has_failed_unheard(life, input)) {
        return tell_it(life, input);
    }
    if (can_go_on(life, input)) {
        return go_on(life, input);
    }
    keep(life, input);
    if (life->state == LIFE_IDLE) {
        life_take_next(life);
        return LIFE_TAKEN;
    }
    return give_up(life, input);
}

int life_on_start(struct life *life, const struct life_input *input)
{
    if (life->state != LIFE_JOINING || !life->is_ready || input->generation != life->generation) {
        return LIFE_STALE;
    }
    life->has_trained = 1;
    life_move(life, LIFE_START);
    return LIFE_TAKEN;
}

/* The scheduler's last word on a rank that has ended by itself; a failure is explained by whoever
 * failed, a success may not have been one for all. */
static void hear_last_word(struct life *life, const struct life_input *input)
{
    life->is_released = 1;
    if (life->verdict.code == 0 && input->code != 0) {
        life_judge_stop(&life->verdict, input);
    }
}

int life_on_stop(struct life *life, const struct life_input *input)
{
    if (life->next.generation != 0 && input->generation == life->next.generation) {
        if (!life->next.is_stopped || !life->next.verdict.from_outside) {
            life->next.is_stopped = 1;
            life_judge(&life->next.verdict, input, 1);
        }
        return LIFE_TAKEN;
    }
    if (life->state == LIFE_IDLE && life->one_job) { /* the cluster did not come together */
        life_judge(&life->verdict, input, 1);
        life_move(life, LIFE_END);
        return LIFE_TAKEN;
    }
    if (life->generation == 0 || input->generation != life->generation) {
        return LIFE_STALE;
    }
    if (life->state == LIFE_FINISHING) {
        hear_last_word(life, input);
        return LIFE_TAKEN;
    }
    life_judge(&life->verdict, input, 1); /* 0: its job has succeeded, whatever this one was at */
    life->is_released = 1;
    life_move(life, LIFE_STOP);
    return LIFE_INTERRUPT;
}

/* It ended, and rank 0, which was to save, is lost, or could not, or it is to try again itself:
 * what it ended with it has still, until the last word (of one that stood after it had taken the
 * state, too, though it never heard Start). It holds that like one that lost a peer,
 * saves it, and says once more that it is done; not where it has saved it already, for then the
 * scheduler may wait for no other word of it. */
static int save_after_all(struct life *life, const struct life_input *input)
{
    const int has_all = life->state == LIFE_FINISHING && life->verdict.code == 0 &&
                        !life->is_released && (life->has_trained || life->ends) && life->recovers &&
                        !life->has_saved;
    if (!input->saves || !has_all || input->generation != life->generation) {
        return LIFE_STALE;
    }
    life->at_step = life->saves = life->is_late = 1;
    life->is_said = life->is_held = 0;
    life_move(life, LIFE_HELD);
    return LIFE_TAKEN;
}

int life_on_at_step(struct life *life, const struct life_input *input)
{
    if (life->next.generation != 0 && input->generation == life->next.generation) {
        life->next.at_step = 1;
        life->next.saves |= input->saves;
        life->next.ends |= input->stands && input->code == 0;
        if (input->stands && !life->next.is_stopped) {
            life->next.stands = 1;
            life_judge_stop(&life->next.verdict, input);
        }
        return LIFE_TAKEN;
    }
    if (!life_is_at_work(life)) {
        return save_after_all(life, input);
    }
    if (input->generation != life->generation) {
        return LIFE_STALE;
    }
    if (life->is_late && life->state == LIFE_HOLDING) { /* it is at it */
        return LIFE_TAKEN;
    }
    struct life_verdict why;
    life->at_step = 1;
    life->saves |= input->saves;
    life->ends |= input->stands && input->code == 0;
    life_judge_stop(&why, input);
    return LIFE_STEP | (input->stands && life->recovers ? life_stand(life, &why) : 0);
}

static int leaves_without_a_scheduler(const struct life *life, const struct life_input *input)
{
    return input->event == LIFE_LEAVE && input->saves && life->recovers && life->has_trained &&
           life_is_at_work(life);
}

/* What is held may be all that is left of the training, and nobody is there to say who saves it: it
 * stops where it stands, as after a Stop that says so, and the process ends once that is done. */
static int stand_and_leave(struct life *life)
{
    life->at_step = 1;
    if (life_is_held(life)) {
        life->next.at_step = life->next.stands = 1;
        return LIFE_TAKEN;
    }
    return life_stand(life, &life->leave);
}

/* The process is to end: LEAVE, LOST. The first word counts. */
int life_on_end(struct life *life, const struct life_input *input)
{
    if (!life->leaves) {
        life->leaves = 1;
        life->leave_event = input->event;
        life_judge(&life->leave, input, 1);
        life->is_unheard = life->generation != 0 && !life->is_released;
    }
    if (leaves_without_a_scheduler(life, input)) {
        return stand_and_leave(life);
    }
    if (life_is_at_work(life)) {
        life_judge_end(life, input);
        life->is_released = 1;
        life_move(life, input->event);
        return LIFE_INTERRUPT;
    }
    if (life->state == LIFE_FINISHING) { /* without a scheduler, a peer's end is only an echo */
        life->is_released = 1;
        if (life->verdict.code == 0 || input->event == LIFE_LOST) {
            life_judge_end(life, input);
        }
        return LIFE_TAKEN;
    }
    if (!life_move(life, input->event)) {
        return LIFE_STALE; /* it leaves already */
    }
    return LIFE_TAKEN;
}

/* ---- the plan of all ranks ---- */

static int keep_plan(struct life *life, const struct life_input *input)
{
    if (input->code == 0 && life->next.has_plan) {
        return LIFE_STALE;
    }
    if (input->code != 0 && !life->next.is_stopped) {
        life->next.is_stopped = 1;
        life_judge(&life->next.verdict, input, 0);
    }
    life->next.has_plan = 1;
    return LIFE_TAKEN;
}

/* Which plan a rank obeys was settled, and is not any more. */
static int fail_plan(struct life *life, const struct life_input *input)
{
    struct life_input failure = *input;
    failure.event = LIFE_FAILED;
    if (life_on_failed(life, &failure) != LIFE_TAKEN) {
        return LIFE_STALE;
    }
    life->is_cut = 1;
    return LIFE_INTERRUPT;
}

int life_on_plan(struct life *life, const struct life_input *input)
{
    if (life->next.generation != 0 && input->generation == life->next.generation) {
        return keep_plan(life, input);
    }
    if (life->generation == 0 || input->generation != life->generation) {
        return LIFE_STALE;
    }
    if (input->code != 0) {
        return fail_plan(life, input);
    }
    if (life->state != LIFE_PLANNING || life->has_plan) {
        return LIFE_STALE;
    }
    life->has_plan = 1;
    if (life->is_prepared) {
        life_move(life, LIFE_PLAN);
    }
    return LIFE_TAKEN;
}
