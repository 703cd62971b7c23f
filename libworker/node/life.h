/* life.h - the life of a rank on its node: what each order and each end of work leads to, and what
 * the trainer has to do next
 *
 *     agent's thread   orders      --.                       .--> interrupts of the work in hand
 *                                     >--> life_apply -------<
 *     trainer          what became  --'                       '--> life_duty: his next work
 *                      of his work
 *
 * Each order is heard once, here. Pure: no thread, no clock, no I/O; worker.c holds a lock around
 * it, and the workers of tests/sim run the same table. docs/states.md is the prose; a test compares
 * the two.
 *
 * One rank is in hand. The Assign of the next one may come while that is not over yet: it is kept,
 * one of them, and says that the scheduler waits for nothing more of the rank in hand; or it is of
 * the same rank, which then goes on under the new generation. Where the job recovers, a newer one
 * takes the place of the one that is kept. Orders are for one generation: that in hand, or that
 * kept; others are stale and change nothing. */
#ifndef LIFE_H
#define LIFE_H

#include "proto/limits.h"
#include "proto/machine.h"

#include <stdint.h>

enum life_state {
    LIFE_IDLE,
    LIFE_PLANNING, /* data, and its choice of a plan; then the plan of all ranks */
    LIFE_JOINING,  /* makes the plan, the mesh, the weights; then all ranks' Start */
    LIFE_TRAINING, /* to the end, weights saved */
    LIFE_HOLDING,  /* a peer is gone: the scheduler, who knows why, speaks first */
    LIFE_PULLING, /* the job goes on: the mesh of its next generation, and the state of its ranks */
    LIFE_FINISHING, /* its last word, the scheduler's, and all is let go */
    LIFE_LEAVING,   /* the process ends */
    LIFE_STATES
};

enum life_event {
    /* orders */
    LIFE_ASSIGN,
    LIFE_PLAN, /* of all ranks; with a code: another one than it has */
    LIFE_START,
    LIFE_STOP,    /* at once; of a rank that has said its last word: the scheduler's */
    LIFE_AT_STEP, /* stop after the step */
    LIFE_LEAVE,   /* the process is asked to end */
    LIFE_LOST,    /* the scheduler is, or refuses us for good: the process ends */
    /* what became of the trainer's work */
    LIFE_MADE,   /* PLANNING: all that it can alone; JOINING, PULLING: the mesh */
    LIFE_OBEYED, /* JOINING: the plan is made, and it can go on from there */
    LIFE_DONE,   /* trained to its end */
    LIFE_FAILED, /* by itself */
    LIFE_PEER,   /* of what a peer did or suffered */
    LIFE_UNFIT,  /* the node cannot serve this rank, nor any: nothing is said about it */
    LIFE_QUIET,  /* HOLDING: nobody said why in time; never where the job recovers */
    LIFE_SAID,   /* FINISHING: RankDone is out */
    LIFE_OUT,    /* FINISHING: nothing of the rank is left */
    /* what follows from the others, never applied: FINISHING is over when the last word of both
     * sides is said and nothing is left */
    LIFE_FREE,  /* the node goes on */
    LIFE_END,   /* the process does not */
    LIFE_GO_ON, /* that Assign is of the same rank, which has begun already, under a new generation
                 */
    LIFE_HELD,  /* likewise, and the trainer is at work: he gives it up first */
    LIFE_EVENTS
};

struct life_input {
    enum life_event event;
    uint64_t job, generation; /* LEAVE and LOST have none; the trainer's: for which he worked */
    uint32_t rank;            /* ASSIGN */
    uint32_t plan_from;       /* ASSIGN: enum ms_plan_from */
    int recovers;             /* ASSIGN: its job replaces ranks that are lost */
    int saves;  /* AT_STEP: it saves what it holds, for rank 0 is lost; DONE: it has saved that;
                   LEAVE: rank 0 saves first what it holds, for there is no scheduler to decide */
    int stands; /* ... no Start and no step follow: it stops where it stands; with code 0 all steps
                   are made */
    int code;   /* enum ms_code; not 0 of FAILED, PEER, UNFIT and LOST; LEAVE needs none */
    int anew;   /* FAILED: the next process could serve it */
    const char *text; /* borrowed for the call; NULL: "" */
};

struct life_verdict { /* what becomes of a rank, or why the process ends */
    int code;         /* 0: it is, or was, well */
    int from_outside; /* an order's, so that its end is an acknowledgement */
    char text[MS_TEXT_MAX + 1];
};

struct life {
    int one_job; /* the process ends with its first rank; set before the first input */
    enum life_state state;
    uint64_t job, generation; /* of the rank in hand; generation 0: none */
    uint32_t rank;
    struct life_verdict verdict; /* of it, or of the last one */
    uint32_t plan_from;
    int recovers;    /* its job does: a peer that is gone is waited for, without limit */
    int has_plan;    /* the plan is heard, or none comes: each rank chooses for itself */
    int is_prepared; /* PLANNING: nothing is left to do but to wait for the plan */
    int is_ready;    /* JOINING: the mesh stands */
    int has_obeyed;  /* the plan is made: there is something to go on from ... */
    int has_trained; /* ... and more than that */
    int is_held;     /* HOLDING: the trainer has not come back yet from what LIFE_HOLD gave up */
    int at_step;     /* asked to stop after the step ... */
    int saves;       /* ... and, if it holds, to save in the place of rank 0 ... */
    int ends;        /* ... which was the last one: no evaluation behind it is waited for */
    int has_saved;   /* ... which it has, with its end */
    int is_late;     /* ... asked after its end: a generation that follows knows nothing of it */
    int is_said, is_released, is_out; /* FINISHING: our last word, the scheduler's, our traces */
    int is_cut; /* ... by a plan that is not the plan, while the trainer was at work */
    struct {
        uint64_t job, generation; /* of the Assign that is kept; 0: none */
        uint32_t rank;
        uint32_t plan_from;
        int recovers, has_plan, at_step, saves, stands, ends;
        int is_stopped;              /* or given two plans */
        struct life_verdict verdict; /* of that */
    } next;
    int leaves; /* the process ends after the rank in hand: LEAVE, LOST or UNFIT came ... */
    enum life_event leave_event; /* ... this one first */
    struct life_verdict leave;   /* with these words */
    int is_unheard; /* ... and no last word on the rank in hand: what that owes, nobody asks for */
    int anew;       /* it ends to begin again */
};

/* What an input was to the life, and what has to happen at once, on whichever thread applied it. */
enum life_answer {
    LIFE_TAKEN = 0,
    LIFE_STALE = 1 << 0,     /* of no rank that is in hand or kept, or an Assign that is no newer:
                                nothing changed */
    LIFE_DECLINED = 1 << 1,  /* an Assign for which there is no place, now or ever */
    LIFE_INTERRUPT = 1 << 2, /* give up what the trainer does for the rank in hand */
    LIFE_STEP = 1 << 3,      /* stop it after its step */
    LIFE_HOLD = 1 << 4, /* give up the step, or the wait for peers, and keep what it stands on */
};

/* The trainer's next work. */
enum life_duty {
    LIFE_WAIT,     /* for an order: life_waits_for */
    LIFE_DO_PLAN,  /* of the Assign in hand -> MADE, FAILED, UNFIT */
    LIFE_DO_JOIN,  /* of the plan that was heard or chosen -> OBEYED; then -> MADE, then say
                      RankReady; FAILED, PEER */
    LIFE_DO_TRAIN, /* -> DONE, FAILED, PEER */
    LIFE_DO_HOLD,  /* report the peer, wait a moment for a verdict -> QUIET; where the job recovers
                      wait until the state is another one */
    LIFE_DO_STOP,  /* asked to stop after the step, and a peer is gone: the step that it holds is
                      the last; save it where that is its part -> DONE, FAILED */
    LIFE_DO_PULL,  /* -> MADE, then say RankReady; FAILED, PEER */
    LIFE_DO_SAY,   /* RankDone with the verdict -> SAID */
    LIFE_DO_CLEAN, /* let go of all -> OUT */
    LIFE_DO_END,   /* of the process */
};

extern const struct ms_machine life_machine;

/* Returns enum life_answer bits. Any thread, one at a time. */
int life_apply(struct life *life, const struct life_input *input);
enum life_duty life_duty(const struct life *life);
/* For logs: "its peers, then Start"; never empty. */
const char *life_waits_for(const struct life *life);

#endif
