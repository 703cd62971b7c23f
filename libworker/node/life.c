/* life.c - the life of a rank on its node */
#include "libworker/node/life_private.h"

#include "proto/err.h"
#include "proto/macros.h"
#include "proto/wire.h"

#include <stdio.h>

static const char *const state_names[LIFE_STATES] = {"IDLE",    "PLANNING", "JOINING",   "TRAINING",
                                                     "HOLDING", "PULLING",  "FINISHING", "LEAVING"};
static const char *const event_names[LIFE_EVENTS] = {
    "assign", "plan", "start", "stop",  "at_step", "leave", "lost", "made", "obeyed", "done",
    "failed", "peer", "unfit", "quiet", "said",    "out",   "free", "end",  "go_on",  "held"};

static const struct ms_rule rules[] = {
    {LIFE_IDLE, LIFE_ASSIGN, LIFE_PLANNING},
    {LIFE_IDLE, LIFE_LEAVE, LIFE_LEAVING},
    {LIFE_IDLE, LIFE_LOST, LIFE_LEAVING},
    {LIFE_IDLE, LIFE_END, LIFE_LEAVING}, /* a Stop for whoever has one job, and none yet */

    {LIFE_PLANNING, LIFE_MADE, LIFE_JOINING}, /* whichever of the two ... */
    {LIFE_PLANNING, LIFE_PLAN, LIFE_JOINING}, /* ... comes last */
    {LIFE_PLANNING, LIFE_ASSIGN, LIFE_FINISHING},
    {LIFE_PLANNING, LIFE_STOP, LIFE_FINISHING},
    {LIFE_PLANNING, LIFE_LEAVE, LIFE_FINISHING},
    {LIFE_PLANNING, LIFE_LOST, LIFE_FINISHING},
    {LIFE_PLANNING, LIFE_FAILED, LIFE_FINISHING},
    {LIFE_PLANNING, LIFE_UNFIT, LIFE_FINISHING},

    {LIFE_JOINING, LIFE_OBEYED, LIFE_JOINING},
    {LIFE_JOINING, LIFE_MADE, LIFE_JOINING},
    {LIFE_JOINING, LIFE_START, LIFE_TRAINING},
    {LIFE_JOINING, LIFE_ASSIGN, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_STOP, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_LEAVE, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_LOST, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_FAILED, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_PEER, LIFE_HOLDING},
    {LIFE_JOINING, LIFE_GO_ON, LIFE_PULLING}, /* it waits for Start */
    {LIFE_JOINING, LIFE_HELD, LIFE_HOLDING},  /* it waits for its peers */

    {LIFE_TRAINING, LIFE_DONE, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_ASSIGN, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_STOP, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_LEAVE, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_LOST, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_FAILED, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_PEER, LIFE_HOLDING},
    {LIFE_TRAINING, LIFE_HELD, LIFE_HOLDING},

    {LIFE_HOLDING, LIFE_GO_ON, LIFE_PULLING},
    {LIFE_HOLDING, LIFE_QUIET, LIFE_FINISHING},
    {LIFE_HOLDING, LIFE_DONE, LIFE_FINISHING}, /* stopped, at the boundary where it holds */
    {LIFE_HOLDING, LIFE_FAILED, LIFE_FINISHING},
    {LIFE_HOLDING, LIFE_ASSIGN, LIFE_FINISHING},
    {LIFE_HOLDING, LIFE_STOP, LIFE_FINISHING},
    {LIFE_HOLDING, LIFE_LEAVE, LIFE_FINISHING},
    {LIFE_HOLDING, LIFE_LOST, LIFE_FINISHING},

    {LIFE_PULLING, LIFE_MADE, LIFE_JOINING},
    {LIFE_PULLING, LIFE_ASSIGN, LIFE_FINISHING},
    {LIFE_PULLING, LIFE_STOP, LIFE_FINISHING},
    {LIFE_PULLING, LIFE_LEAVE, LIFE_FINISHING},
    {LIFE_PULLING, LIFE_LOST, LIFE_FINISHING},
    {LIFE_PULLING, LIFE_FAILED, LIFE_FINISHING},
    {LIFE_PULLING, LIFE_PEER, LIFE_HOLDING},
    {LIFE_PULLING, LIFE_HELD, LIFE_HOLDING},

    {LIFE_FINISHING, LIFE_FREE, LIFE_IDLE},
    {LIFE_FINISHING, LIFE_GO_ON, LIFE_PULLING}, /* it is done, and others are not */
    {LIFE_FINISHING, LIFE_HELD, LIFE_HOLDING},  /* ... and it has to save what it ended with */
    {LIFE_FINISHING, LIFE_END, LIFE_LEAVING},
};

const struct ms_machine life_machine = {"life",      state_names, event_names,         LIFE_STATES,
                                        LIFE_EVENTS, rules,       MS_ARRAY_SIZE(rules)};

int life_move(struct life *life, enum life_event event)
{
    int to = ms_machine_next(&life_machine, (int)life->state, (int)event);
    if (to >= 0) {
        life->state = (enum life_state)to;
    }
    return to >= 0;
}

int life_is_at_work(const struct life *life)
{
    return life->state >= LIFE_PLANNING && life->state <= LIFE_PULLING;
}

void life_judge(struct life_verdict *verdict, const struct life_input *input, int from_outside)
{
    verdict->code = input->code;
    verdict->from_outside = from_outside;
    snprintf(verdict->text, sizeof(verdict->text), "%s", input->text != NULL ? input->text : "");
}

void life_judge_stop(struct life_verdict *verdict, const struct life_input *input)
{
    life_judge(verdict, input, 1);
    verdict->code = input->code != 0 ? input->code : MS_E_ABORTED;
}

void life_judge_end(struct life *life, const struct life_input *input)
{
    life_judge_stop(&life->verdict, input);
    if (input->event == LIFE_LEAVE) {
        const int is_by = input->text != NULL && input->text[0] != '\0';
        life->verdict.code = MS_E_CANCELLED;
        snprintf(life->verdict.text, sizeof(life->verdict.text),
                 "its worker was asked to end%s%.100s", is_by ? " by " : "",
                 is_by ? input->text : "");
    }
}

/* ---- one rank after the other ---- */

static void begin_next(struct life *life, enum life_event event)
{
    life->is_held = life->is_said = life->is_released = life->is_out = 0;
    life->is_prepared = life->is_ready = life->is_cut = 0;
    life->verdict = (struct life_verdict){0, 0, ""};
    life->next.generation = 0;
    life_move(life, event);
    if (life->next.is_stopped) { /* before it began: it is answered all the same */
        life->verdict = life->next.verdict;
        life->is_released = life->verdict.from_outside;
        life_move(life, LIFE_STOP);
    }
}

int life_stand(struct life *life, const struct life_verdict *why)
{
    const int has_joined = life->has_trained || life->is_ready;
    if (life->state == LIFE_HOLDING || life->state == LIFE_FINISHING) {
        return 0;
    }
    if (!has_joined) {
        life->verdict = *why;
        life->is_released = 1;
        life_move(life, LIFE_STOP);
        return LIFE_INTERRUPT;
    }
    if (life->is_ready && life->state == LIFE_JOINING) {
        life_move(life, LIFE_HELD);
        return 0;
    }
    return LIFE_HOLD;
}

void life_take_next(struct life *life)
{
    life->job = life->next.job;
    life->generation = life->next.generation;
    life->rank = life->next.rank;
    life->plan_from = life->next.plan_from;
    life->recovers = life->next.recovers;
    life->has_plan = life->next.has_plan;
    life->at_step = life->next.at_step;
    life->saves = life->next.saves;
    life->ends = life->next.ends;
    life->has_obeyed = life->has_trained = life->has_saved = life->is_late = 0;
    begin_next(life, LIFE_ASSIGN);
    if (life->next.stands && life->state == LIFE_PLANNING) {
        (void)life_stand(life, &life->next.verdict);
    }
}

void life_adopt_next(struct life *life)
{
    life->generation = life->next.generation;
    life->recovers = life->next.recovers;
    life->at_step = life->next.at_step | (life->at_step && !life->is_late);
    life->saves = life->next.saves | (life->saves && !life->is_late);
    life->ends = life->next.ends;
    life->has_saved = life->is_late = 0;
    begin_next(life, LIFE_GO_ON);
    if (life->next.stands && life->state == LIFE_PULLING) { /* nothing of it has begun */
        life_move(life, LIFE_HELD);
    }
}

void life_end_rank(struct life *life)
{
    if (!life->is_said || !life->is_released || !life->is_out) {
        return;
    }
    int is_last = life->leaves || life->anew || (life->one_job && life->next.generation == 0);
    life->generation = 0;
    life_move(life, is_last ? LIFE_END : LIFE_FREE);
    if (life->state == LIFE_IDLE && life->next.generation != 0) {
        life_take_next(life);
    }
}

int life_is_held(const struct life *life)
{
    return life->state == LIFE_HOLDING && life->is_held;
}

int life_apply(struct life *life, const struct life_input *input)
{
    static int (*const handlers[LIFE_EVENTS])(struct life * life,
                                              const struct life_input *input) = {
        [LIFE_ASSIGN] = life_on_assign,   [LIFE_PLAN] = life_on_plan,
        [LIFE_START] = life_on_start,     [LIFE_STOP] = life_on_stop,
        [LIFE_AT_STEP] = life_on_at_step, [LIFE_LEAVE] = life_on_end,
        [LIFE_LOST] = life_on_end,        [LIFE_MADE] = life_on_made,
        [LIFE_OBEYED] = life_on_obeyed,   [LIFE_DONE] = life_on_done,
        [LIFE_FAILED] = life_on_failed,   [LIFE_PEER] = life_on_peer,
        [LIFE_UNFIT] = life_on_unfit,     [LIFE_QUIET] = life_on_quiet,
        [LIFE_SAID] = life_on_said,       [LIFE_OUT] = life_on_out};
    int is_trainers = input->event >= LIFE_MADE && input->event <= LIFE_OUT;
    if (is_trainers && input->generation != life->generation) {
        return LIFE_STALE; /* it has gone on since */
    }
    return handlers[input->event](life, input);
}

/* ---- what is next ---- */

enum life_duty life_duty(const struct life *life)
{
    switch (life->state) {
    case LIFE_PLANNING:
        return life->is_prepared ? LIFE_WAIT : LIFE_DO_PLAN;
    case LIFE_JOINING:
        return life->is_ready ? LIFE_WAIT : LIFE_DO_JOIN;
    case LIFE_TRAINING:
        return LIFE_DO_TRAIN;
    case LIFE_HOLDING: /* who had not begun yet comes back at once */
        return life_is_held(life)                ? LIFE_DO_TRAIN
               : life->at_step && life->recovers ? LIFE_DO_STOP
                                                 : LIFE_DO_HOLD;
    case LIFE_PULLING:
        return LIFE_DO_PULL;
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
        return !life->is_prepared ? "its data and its plan"
               : life->plan_from == MS_PLAN_RANK_0 && life->rank != 0
                   ? "the plan, which rank 0 chooses"
                   : "the plan";
    case LIFE_JOINING:
        return life->is_ready ? "Start, when all ranks are ready" : "its peers";
    case LIFE_TRAINING:
        return "the end of training";
    case LIFE_HOLDING:
        return life_is_held(life) ? "the end of what was given up"
                                  : "the scheduler's word on a peer that is gone";
    case LIFE_PULLING:
        return "its peers, and the state of the furthest";
    case LIFE_FINISHING:
        return life->is_said && !life->is_released ? "Stop, the scheduler's last word"
                                                   : "its own end";
    case LIFE_LEAVING:
    case LIFE_STATES:
        break;
    }
    return "the end of the process";
}
