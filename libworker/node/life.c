/* life.c - the life of a rank on its node */
#include "libworker/node/life.h"

#include "proto/err.h"
#include "proto/macros.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const state_names[LIFE_STATES] = {"IDLE",    "PLANNING",  "JOINING", "TRAINING",
                                                     "HOLDING", "FINISHING", "LEAVING"};
static const char *const event_names[LIFE_EVENTS] = {
    "assign", "start", "stop",  "at_step", "leave", "lost", "made", "done",
    "failed", "peer",  "unfit", "quiet",   "said",  "out",  "free", "end"};

static const struct ms_rule rules[] = {
    {LIFE_IDLE, LIFE_ASSIGN, LIFE_PLANNING},
    {LIFE_IDLE, LIFE_LEAVE, LIFE_LEAVING},
    {LIFE_IDLE, LIFE_LOST, LIFE_LEAVING},
    {LIFE_IDLE, LIFE_END, LIFE_LEAVING}, /* a Stop for whoever has one job, and none yet */

    {LIFE_PLANNING, LIFE_MADE, LIFE_JOINING},
    {LIFE_PLANNING, LIFE_ASSIGN, LIFE_FINISHING},
    {LIFE_PLANNING, LIFE_STOP, LIFE_FINISHING},
    {LIFE_PLANNING, LIFE_LEAVE, LIFE_FINISHING},
    {LIFE_PLANNING, LIFE_LOST, LIFE_FINISHING},
    {LIFE_PLANNING, LIFE_FAILED, LIFE_FINISHING},
    {LIFE_PLANNING, LIFE_UNFIT, LIFE_FINISHING},

    {LIFE_JOINING, LIFE_MADE, LIFE_JOINING},
    {LIFE_JOINING, LIFE_START, LIFE_TRAINING},
    {LIFE_JOINING, LIFE_ASSIGN, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_STOP, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_LEAVE, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_LOST, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_FAILED, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_PEER, LIFE_HOLDING},

    {LIFE_TRAINING, LIFE_DONE, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_ASSIGN, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_STOP, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_LEAVE, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_LOST, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_FAILED, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_PEER, LIFE_HOLDING},

    {LIFE_HOLDING, LIFE_QUIET, LIFE_FINISHING},
    {LIFE_HOLDING, LIFE_ASSIGN, LIFE_FINISHING},
    {LIFE_HOLDING, LIFE_STOP, LIFE_FINISHING},
    {LIFE_HOLDING, LIFE_LEAVE, LIFE_FINISHING},
    {LIFE_HOLDING, LIFE_LOST, LIFE_FINISHING},

    {LIFE_FINISHING, LIFE_FREE, LIFE_IDLE},
    {LIFE_FINISHING, LIFE_END, LIFE_LEAVING},
};

const struct ms_machine life_machine = {"life",      state_names, event_names,         LIFE_STATES,
                                        LIFE_EVENTS, rules,       MS_ARRAY_SIZE(rules)};

/* True where the table has a rule. Nothing else writes the state. */
static int move(struct life *life, enum life_event event)
{
    int to = ms_machine_next(&life_machine, (int)life->state, (int)event);
    if (to >= 0) {
        life->state = (enum life_state)to;
    }
    return to >= 0;
}

static int is_at_work(const struct life *life)
{
    return life->state >= LIFE_PLANNING && life->state <= LIFE_HOLDING;
}

static void judge(struct life_verdict *verdict, const struct life_input *input, int from_outside)
{
    verdict->code = input->code;
    verdict->from_outside = from_outside;
    snprintf(verdict->text, sizeof(verdict->text), "%s", input->text != NULL ? input->text : "");
}

/* A Stop without a reason still ends what was not over. */
static void judge_stop(struct life_verdict *verdict, const struct life_input *input)
{
    judge(verdict, input, 1);
    verdict->code = input->code != 0 ? input->code : MS_E_ABORTED;
}

static void judge_end(struct life *life, const struct life_input *input)
{
    judge_stop(&life->verdict, input);
    if (input->event == LIFE_LEAVE) {
        life->verdict.code = MS_E_CANCELLED;
        snprintf(life->verdict.text, sizeof(life->verdict.text),
                 "rank %u left: its worker was asked to end", life->rank);
    }
}

/* ---- one rank after the other ---- */

static void take_next(struct life *life)
{
    life->job = life->next.job;
    life->generation = life->next.generation;
    life->rank = life->next.rank;
    life->at_step = life->next.at_step;
    life->is_said = life->is_released = life->is_out = 0;
    life->verdict = (struct life_verdict){0, 0, ""};
    life->next.generation = 0;
    move(life, LIFE_ASSIGN);
    if (life->next.is_stopped) { /* before it began: it is answered all the same */
        life->verdict = life->next.verdict;
        life->is_released = 1;
        move(life, LIFE_STOP);
    }
}

/* FINISHING, and something of its three ends came true. */
static void end_rank(struct life *life)
{
    if (!life->is_said || !life->is_released || !life->is_out) {
        return;
    }
    life->generation = 0;
    move(life, life->one_job || life->leaves || life->anew ? LIFE_END : LIFE_FREE);
    if (life->state == LIFE_IDLE && life->next.generation != 0) {
        take_next(life);
    }
}

/* ---- orders ---- */

static int on_assign(struct life *life, const struct life_input *input)
{
    int is_last = life->leaves || life->anew || (life->one_job && life->generation != 0);
    if (life->generation != 0 && input->generation <= life->generation) {
        return LIFE_STALE;
    }
    if (life->state == LIFE_LEAVING || is_last || life->next.generation != 0) {
        return LIFE_DECLINED;
    }
    life->next.job = input->job;
    life->next.generation = input->generation;
    life->next.rank = input->rank;
    life->next.at_step = life->next.is_stopped = 0;
    if (life->state == LIFE_IDLE) {
        take_next(life);
        return LIFE_TAKEN;
    }
    life->is_released = 1; /* the scheduler has done with the rank in hand */
    if (!is_at_work(life)) {
        return LIFE_TAKEN;
    }
    if (life->state != LIFE_HOLDING) { /* which knows a better reason */
        life->verdict.code = MS_E_ABORTED;
        life->verdict.from_outside = 1;
        snprintf(life->verdict.text, sizeof(life->verdict.text),
                 "the scheduler gave this node a rank of job %" PRIu64
                 " before it had let go of rank %u",
                 input->job, life->rank);
    }
    move(life, LIFE_ASSIGN);
    return LIFE_INTERRUPT;
}

static int on_start(struct life *life, const struct life_input *input)
{
    if (life->state != LIFE_JOINING || !life->is_ready || input->generation != life->generation) {
        return LIFE_STALE;
    }
    move(life, LIFE_START);
    return LIFE_TAKEN;
}

/* The scheduler's last word on a rank that has ended by itself; a failure is explained by whoever
 * failed, a success may not have been one for all. */
static void hear_last_word(struct life *life, const struct life_input *input)
{
    life->is_released = 1;
    if (life->verdict.code == 0 && input->code != 0) {
        judge_stop(&life->verdict, input);
    }
}

static int on_stop(struct life *life, const struct life_input *input)
{
    if (life->next.generation != 0 && input->generation == life->next.generation) {
        if (!life->next.is_stopped) {
            life->next.is_stopped = 1;
            judge_stop(&life->next.verdict, input);
        }
        return LIFE_TAKEN;
    }
    if (life->state == LIFE_IDLE && life->one_job) { /* the cluster did not come together */
        judge(&life->verdict, input, 1);
        move(life, LIFE_END);
        return LIFE_TAKEN;
    }
    if (life->generation == 0 || input->generation != life->generation) {
        return LIFE_STALE;
    }
    if (life->state == LIFE_FINISHING) {
        hear_last_word(life, input);
        return LIFE_TAKEN;
    }
    judge_stop(&life->verdict, input);
    life->is_released = 1;
    move(life, LIFE_STOP);
    return LIFE_INTERRUPT;
}

static int on_at_step(struct life *life, const struct life_input *input)
{
    if (life->next.generation != 0 && input->generation == life->next.generation) {
        life->next.at_step = 1;
        return LIFE_TAKEN;
    }
    if (!is_at_work(life) || input->generation != life->generation) {
        return LIFE_STALE;
    }
    life->at_step = 1;
    return LIFE_STEP;
}

/* The process is to end: LEAVE, LOST. The first word counts. */
static int on_end(struct life *life, const struct life_input *input)
{
    if (!life->leaves) {
        life->leaves = 1;
        life->leave_event = input->event;
        judge(&life->leave, input, 1);
    }
    if (is_at_work(life)) {
        judge_end(life, input);
        life->is_released = 1;
        move(life, input->event);
        return LIFE_INTERRUPT;
    }
    if (life->state == LIFE_FINISHING) { /* without a scheduler, a peer's end is only an echo */
        life->is_released = 1;
        if (life->verdict.code == 0 || input->event == LIFE_LOST) {
            judge_end(life, input);
        }
        return LIFE_TAKEN;
    }
    if (!move(life, input->event)) {
        return LIFE_STALE; /* it leaves already */
    }
    return LIFE_TAKEN;
}

/* ---- what became of the trainer's work ---- */

static int on_made(struct life *life, const struct life_input *input)
{
    int joined = life->state == LIFE_JOINING;
    if (!move(life, input->event)) {
        return LIFE_STALE;
    }
    life->is_ready = joined;
    return LIFE_TAKEN;
}

static int on_done(struct life *life, const struct life_input *input)
{
    return move(life, input->event) ? LIFE_TAKEN : LIFE_STALE;
}

static int on_failed(struct life *life, const struct life_input *input)
{
    if (input->anew) {
        life->anew = 1;
    }
    if (!move(life, input->event)) { /* an order was faster: what it interrupted says so */
        return LIFE_STALE;
    }
    judge(&life->verdict, input, 0);
    return LIFE_TAKEN;
}

/* While it plans nobody else is in it yet. */
static int on_peer(struct life *life, const struct life_input *input)
{
    struct life_input as = *input;
    as.event = life->state == LIFE_PLANNING ? LIFE_FAILED : LIFE_PEER;
    return on_failed(life, &as);
}

static int on_unfit(struct life *life, const struct life_input *input)
{
    int rc = on_failed(life, input);
    if (rc == LIFE_TAKEN) { /* the rank is lost with the node before its start, and placed anew */
        life->is_said = life->is_released = 1;
    }
    if (!life->leaves) {
        life->leaves = 1;
        life->leave_event = LIFE_UNFIT;
        judge(&life->leave, input, 0);
    }
    return rc;
}

static int on_said(struct life *life, const struct life_input *input)
{
    (void)input;
    if (life->state != LIFE_FINISHING || life->is_said) {
        return LIFE_STALE;
    }
    life->is_said = 1;
    return LIFE_TAKEN;
}

static int on_out(struct life *life, const struct life_input *input)
{
    (void)input;
    if (life_duty(life) != LIFE_DO_CLEAN) {
        return LIFE_STALE;
    }
    life->is_out = 1;
    end_rank(life);
    return LIFE_TAKEN;
}

int life_apply(struct life *life, const struct life_input *input)
{
    static int (*const handlers[LIFE_EVENTS])(struct life * life,
                                              const struct life_input *input) = {
        [LIFE_ASSIGN] = on_assign,   [LIFE_START] = on_start, [LIFE_STOP] = on_stop,
        [LIFE_AT_STEP] = on_at_step, [LIFE_LEAVE] = on_end,   [LIFE_LOST] = on_end,
        [LIFE_MADE] = on_made,       [LIFE_DONE] = on_done,   [LIFE_FAILED] = on_failed,
        [LIFE_PEER] = on_peer,       [LIFE_UNFIT] = on_unfit, [LIFE_QUIET] = on_done,
        [LIFE_SAID] = on_said,       [LIFE_OUT] = on_out};
    return handlers[input->event](life, input);
}

/* ---- what is next ---- */

enum life_duty life_duty(const struct life *life)
{
    switch (life->state) {
    case LIFE_PLANNING:
        return LIFE_DO_PLAN;
    case LIFE_JOINING:
        return life->is_ready ? LIFE_WAIT : LIFE_DO_JOIN;
    case LIFE_TRAINING:
        return LIFE_DO_TRAIN;
    case LIFE_HOLDING:
        return LIFE_DO_HOLD;
    case LIFE_FINISHING:
        return !life->is_said ? LIFE_DO_SAY : life->is_released ? LIFE_DO_CLEAN : LIFE_WAIT;
    case LIFE_LEAVING:
        return LIFE_DO_END;
    case LIFE_IDLE:
    case LIFE_STATES:
        break;
    }
    return LIFE_WAIT;
}

const char *life_waits_for(const struct life *life)
{
    switch (life->state) {
    case LIFE_IDLE:
        return "Assign";
    case LIFE_PLANNING:
        return "its data and its plan";
    case LIFE_JOINING:
        return life->is_ready ? "Start, when all ranks are ready" : "its peers";
    case LIFE_TRAINING:
        return "the end of training";
    case LIFE_HOLDING:
        return "the scheduler's word on a peer that is gone";
    case LIFE_FINISHING:
        return life->is_said && !life->is_released ? "Stop, the scheduler's last word"
                                                   : "its own end";
    case LIFE_LEAVING:
    case LIFE_STATES:
        break;
    }
    return "the end of the process";
}
