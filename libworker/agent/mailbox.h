/* mailbox.h - what the trainer leaves for the scheduler
 *
 *     trainer: mailbox_put --+-> [evaluations of the job, MS_EVALS_MAX] --> again after a reconnect
 *                            |                                              and after Start
 *                            +-> [the last word of a checkpoint] --> again after a reconnect
 *                            +-> [ordinary, MAILBOX_MAX] --> gone once they are written
 *                            +-> [sticky: RankPlan, RankReady, PeerReport or RankDone]
 *                                            --> again after a reconnect, until an order answers it
 *     agent:   mailbox_flush: in this order
 *
 * What is written to a socket may never be read: a scheduler that hangs is killed with all that it
 * was told. The next Progress makes up for an ordinary one, but nothing for an evaluation, nor for
 * a word of a checkpoint (a Progress of step 0) where the ranks stand still and none follows.
 *
 * Bounded: a scheduler that is away for hours costs a few kilobytes. All functions: any thread. */
#ifndef MAILBOX_H
#define MAILBOX_H

#include "libworker/agent/agent.h"
#include "proto/conn.h"

#include <pthread.h>

/* Rank 0 reports five times a second: half a minute. Older Progress gives way, for the next one
 * tells more. */
enum { MAILBOX_MAX = 150 };

struct parcel;
struct evaluation;

struct mailbox {
    pthread_mutex_t lock;
    struct parcel *first;
    unsigned count, dropped;  /* dropped: since the last flush */
    struct evaluation *evals; /* by step, the first first, at most MS_EVALS_MAX ... */
    unsigned n_evals;
    uint64_t job, generation; /* ... of that job, whose rank last spoke in that generation */
    struct parcel *saved;     /* the word of a checkpoint ... */
    uint64_t saved_job;       /* ... of that job ... */
    uint64_t saved_step;      /* ... and step */
    int saved_sent;           /* ... on this connection */
    struct parcel *sticky;
    uint64_t sticky_number; /* how many there were */
    int sticky_sent;        /* on this connection */
    int64_t waits_since_ms; /* there is a sticky one; 0: there is none */
};

void mailbox_init(struct mailbox *box);
void mailbox_fini(struct mailbox *box);

/* Packs and keeps a message; an evaluation as it is. One of another job lets go of the evaluations
 * and of the word of a checkpoint, and one of an earlier step of those that come later: they are
 * made again. MS_E_NOMEM. */
int mailbox_put(struct mailbox *box, uint16_t type, const ProtobufCMessage *msg,
                struct ms_err *err);
/* Hands everything that waits to conn; returns how many messages had been dropped before. */
unsigned mailbox_flush(struct mailbox *box, struct ms_conn *conn);
/* A new connection: the evaluations, the word of a checkpoint and the sticky one go out again. */
void mailbox_reconnected(struct mailbox *box);
/* Assign or Stop: has answered the sticky one, whatever it says, if that was out already. */
void mailbox_answered(struct mailbox *box);
/* Stop after the step has come: who has said RankDone says it again. What was said of a generation
 * before the scheduler's last counted for nothing until now, and so did what it heard before it was
 * started again. It keeps that it was said (has_said in daemon/sched/node.h), for a last Stop, and
 * not what: step, digest and what was saved, which the end of a stop needs, are here alone. */
void mailbox_done_again(struct mailbox *box);
/* Of the last one that is said until it is answered: they are counted. */
uint64_t mailbox_number(struct mailbox *box);
/* ... its rank has more to do, and will say RankDone anew: that of this number is out of date. */
void mailbox_done_no_more(struct mailbox *box, uint64_t number);
/* Plan has come: whoever has it need not say RankPlan any more, heard or not. */
void mailbox_planned(struct mailbox *box);
/* Since when something waits for the scheduler's word, without which the rank does nothing more; 0:
 * nothing does. */
int64_t mailbox_waits_since(struct mailbox *box);
/* Start has come: the answer to RankReady alone. The evaluations go out again, for before it, while
 * ranks stood still, they counted for nothing. */
void mailbox_started(struct mailbox *box);

#endif
