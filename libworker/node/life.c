/* life.c - the life of a rank on its node */
#include "libworker/node/life.h"

#include "proto/err.h"
#include "proto/macros.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const state_names[LIFE_STATES] = {"IDLE",    "PLANNING", "JOINING",   "TRAINING",
                                                     "HOLDING", "PULLING",  "FINISHING", "LEAVING"};
static const char *const event_names[LIFE_EVENTS] = {
    "assign", "plan", "start", "stop",  "at_step", "leave", "lost", "made", "done",
    "failed", "peer", "unfit", "quiet", "said",    "out",   "free", "end",  "go_on"};

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

    {LIFE_JOINING, LIFE_MADE, LIFE_JOINING},
    {LIFE_JOINING, LIFE_START, LIFE_TRAINING},
    {LIFE_JOINING, LIFE_ASSIGN, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_STOP, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_LEAVE, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_LOST, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_FAILED, LIFE_FINISHING},
    {LIFE_JOINING, LIFE_PEER, LIFE_HOLDING},
    {LIFE_JOINING, LIFE_GO_ON, LIFE_PULLING}, /* again, before all were ready */

    {LIFE_TRAINING, LIFE_DONE, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_ASSIGN, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_STOP, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_LEAVE, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_LOST, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_FAILED, LIFE_FINISHING},
    {LIFE_TRAINING, LIFE_PEER, LIFE_HOLDING},
    {LIFE_TRAINING, LIFE_GO_ON, LIFE_HOLDING},

    {LIFE_HOLDING, LIFE_GO_ON, LIFE_PULLING},
    {LIFE_HOLDING, LIFE_QUIET, LIFE_FINISHING},
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
    {LIFE_PULLING, LIFE_GO_ON, LIFE_HOLDING},

    {LIFE_FINISHING, LIFE_FREE, LIFE_IDLE},
    {LIFE_FINISHING, LIFE_GO_ON, LIFE_PULLING}, /* it is done, and others are not */
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
    return life->state >= LIFE_PLANNING && life->state <= LIFE_PULLING;
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

static void begin_next(struct life *life, enum life_event event)
{
    life->is_held = life->is_said = life->is_released = life->is_out = 0;
    life->is_prepared = life->is_ready = 0;
    life->verdict = (struct life_verdict){0, 0, ""};
    life->next.generation = 0;
    move(life, event);
    if (life->next.is_stopped) { /* before it began: it is answered all the same */
        life->verdict = life->next.verdict;
        life->is_released = life->verdict.from_outside;
        move(life, LIFE_STOP);
    }
}

static void take_next(struct life *life)
{
    life->job = life->next.job;
    life->generation = life->next.generation;
    life->rank = life->next.rank;
    life->plan_from = life->next.plan_from;
    life->has_plan = life->next.has_plan;
    life->at_step = life->next.at_step;
    life->has_trained = 0;
    begin_next(life, LIFE_ASSIGN);
}

/* The rank in hand goes on as that of the Assign that is kept, and with the plan that it has. */
static void adopt_next(struct life *life)
{
    life->generation = life->next.generation;
    life->at_step |= life->next.at_step;
    begin_next(life, LIFE_GO_ON);
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

/* Has the rank in hand begun to train, and is it not over for the scheduler? */
static int can_go_on(const struct life *life, const struct life_input *input)
{
    int is_well = life->state == LIFE_FINISHING && life->verdict.code == 0 && !life->is_released;
    return life->generation != 0 && life->has_trained && (is_at_work(life) || is_well) &&
           input->job == life->job && input->rank == life->rank;
}

static void keep(struct life *life, const struct life_input *input)
{
    life->next.job = input->job;
    life->next.generation = input->generation;
    life->next.rank = input->rank;
    life->next.plan_from = input->plan_from;
    life->next.has_plan = input->plan_from == MS_PLAN_OWN;
    life->next.at_step = life->next.is_stopped = 0;
}

static int go_on(struct life *life, const struct life_input *input)
{
    keep(life, input);
    if (life->state != LIFE_TRAINING && life->state != LIFE_PULLING) { /* the trainer waits */
        adopt_next(life);
        return LIFE_TAKEN;
    }
    move(life, LIFE_GO_ON);
    life->is_held = 1;
    return LIFE_HOLD;
}

static int on_assign(struct life *life, const struct life_input *input)
{
    int is_last = life->leaves || life->anew ||
                  (life->one_job && life->generation != 0 && !can_go_on(life, input));
    if (life->generation != 0 && input->generation <= life->generation) {
        return LIFE_STALE;
    }
    if (life->state == LIFE_LEAVING || is_last || life->next.generation != 0) {
        return LIFE_DECLINED;
    }
    if (can_go_on(life, input)) {
        return go_on(life, input);
    }
    keep(life, input);
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
    life->has_trained = 1;
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
        if (!life->next.is_stopped || !life->next.verdict.from_outside) {
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

/* The trainer came back from what was held: however that ended, it is to be gone on with. */
static int comes_back(struct life *life)
{
    int was_held = life->state == LIFE_HOLDING && life->is_held;
    if (was_held) {
        adopt_next(life);
    }
    return was_held;
}

static int on_made(struct life *life, const struct life_input *input)
{
    int joined = life->state != LIFE_PLANNING;
    if (!joined && !life->has_plan) {
        life->is_prepared = 1;
        return LIFE_TAKEN;
    }
    if (comes_back(life) || !move(life, input->event)) {
        return LIFE_STALE;
    }
    life->is_ready = joined;
    return LIFE_TAKEN;
}

static int on_done(struct life *life, const struct life_input *input)
{
    return !comes_back(life) && move(life, input->event) ? LIFE_TAKEN : LIFE_STALE;
}

static int on_quiet(struct life *life, const struct life_input *input)
{
    return move(life, input->event) ? LIFE_TAKEN : LIFE_STALE;
}

static int on_failed(struct life *life, const struct life_input *input)
{
    if (input->anew) {
        life->anew = 1;
    }
    if (input->event == LIFE_FAILED && life->state == LIFE_HOLDING && life->is_held) {
        life->generation = life->next.generation; /* which is told what failed before it began */
        life->is_released = life->next.is_stopped && life->next.verdict.from_outside;
        life->next.generation = 0;
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
    return comes_back(life) ? LIFE_STALE : on_failed(life, &as);
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

/* ---- the plan of all ranks ---- */

static int keep_plan(struct life *life, const struct life_input *input)
{
    if (input->code == 0 && life->next.has_plan) {
        return LIFE_STALE;
    }
    if (input->code != 0 && !life->next.is_stopped) {
        life->next.is_stopped = 1;
        judge(&life->next.verdict, input, 0);
    }
    life->next.has_plan = 1;
    return LIFE_TAKEN;
}

/* Which plan a rank obeys was settled, and is not any more. */
static int fail_plan(struct life *life, const struct life_input *input)
{
    struct life_input failure = *input;
    failure.event = LIFE_FAILED;
    return on_failed(life, &failure) == LIFE_TAKEN ? LIFE_INTERRUPT : LIFE_STALE;
}

static int on_plan(struct life *life, const struct life_input *input)
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
        move(life, LIFE_PLAN);
    }
    return LIFE_TAKEN;
}

/* ---- the end ---- */

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
        [LIFE_ASSIGN] = on_assign, [LIFE_PLAN] = on_plan,       [LIFE_START] = on_start,
        [LIFE_STOP] = on_stop,     [LIFE_AT_STEP] = on_at_step, [LIFE_LEAVE] = on_end,
        [LIFE_LOST] = on_end,      [LIFE_MADE] = on_made,       [LIFE_DONE] = on_done,
        [LIFE_FAILED] = on_failed, [LIFE_PEER] = on_peer,       [LIFE_UNFIT] = on_unfit,
        [LIFE_QUIET] = on_quiet,   [LIFE_SAID] = on_said,       [LIFE_OUT] = on_out};
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
        return life->is_held ? LIFE_DO_TRAIN : LIFE_DO_HOLD;
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
        return life->is_held ? "the end of a step that was given up"
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
