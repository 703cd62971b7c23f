/* life_work.c - what became of the trainer's work, and the end of a rank */
#include "libworker/node/life_private.h"

/* The trainer came back from what was held: however that ended, it is to be gone on with. */
static int comes_back(struct life *life)
{
    int was_held = life_is_held(life);
    if (was_held) {
        life_adopt_next(life);
    }
    return was_held;
}

/* Whose process leaves waits for no last word. */
static void end_own(struct life *life)
{
    life->is_released |= life->leaves && life->state == LIFE_FINISHING;
}

int life_on_made(struct life *life, const struct life_input *input)
{
    int joined = life->state != LIFE_PLANNING;
    if (!joined && !life->has_plan) {
        life->is_prepared = 1;
        return LIFE_TAKEN;
    }
    if (comes_back(life) || !life_move(life, input->event)) {
        return LIFE_STALE;
    }
    life->is_ready = joined;
    return LIFE_TAKEN;
}

/* From here on it can go on, though it waits for its peers first. */
int life_on_obeyed(struct life *life, const struct life_input *input)
{
    if (life->is_ready || !life_move(life, input->event)) {
        return LIFE_STALE;
    }
    life->has_obeyed = 1;
    return LIFE_TAKEN;
}

int life_on_done(struct life *life, const struct life_input *input)
{
    if (life_duty(life) == LIFE_DO_HOLD) { /* it is not asked to end there */
        return LIFE_STALE;
    }
    if (comes_back(life) || !life_move(life, input->event)) {
        return LIFE_STALE;
    }
    life->verdict = (struct life_verdict){0, 0, ""}; /* that a peer was gone is no matter now */
    life->has_saved = input->saves;
    end_own(life);
    return LIFE_TAKEN;
}

int life_on_quiet(struct life *life, const struct life_input *input)
{
    return !life->recovers && life_move(life, input->event) ? LIFE_TAKEN : LIFE_STALE;
}

int life_on_failed(struct life *life, const struct life_input *input)
{
    if (input->anew) {
        life->anew = 1;
    }
    if (input->event == LIFE_FAILED && life_is_held(life)) {
        life->generation = life->next.generation; /* which is told what failed before it began */
        life->is_released = life->next.is_stopped && life->next.verdict.from_outside;
        life->next.generation = 0;
    }
    if (!life_move(life, input->event)) { /* an order was faster: what it interrupted says so */
        return LIFE_STALE;
    }
    life_judge(&life->verdict, input, 0);
    end_own(life);
    return LIFE_TAKEN;
}

/* While it plans nobody else is in it yet. */
int life_on_peer(struct life *life, const struct life_input *input)
{
    struct life_input as = *input;
    as.event = life->state == LIFE_PLANNING ? LIFE_FAILED : LIFE_PEER;
    return comes_back(life) ? LIFE_STALE : life_on_failed(life, &as);
}

int life_on_unfit(struct life *life, const struct life_input *input)
{
    int rc = life_on_failed(life, input);
    if (rc == LIFE_TAKEN) { /* the rank is lost with the node before its start, and placed anew */
        life->is_said = life->is_released = 1;
    }
    if (!life->leaves) {
        life->leaves = 1;
        life->leave_event = LIFE_UNFIT;
        life_judge(&life->leave, input, 0);
    }
    return rc;
}

/* ---- the end ---- */

int life_on_said(struct life *life, const struct life_input *input)
{
    (void)input;
    if (life->state != LIFE_FINISHING || life->is_said) {
        return LIFE_STALE;
    }
    life->is_said = 1;
    return LIFE_TAKEN;
}

int life_on_out(struct life *life, const struct life_input *input)
{
    (void)input;
    if (life_duty(life) != LIFE_DO_CLEAN) {
        return LIFE_STALE;
    }
    life->is_out = 1;
    life_end_rank(life);
    return LIFE_TAKEN;
}
