/* agent.h - a node's line to the scheduler: registration, heartbeats, orders, in a thread of its
 * own
 *
 * The thread does nothing else, so that a busy trainer never looks like a dead node. It knocks
 * again for ever; while a rank is held whose job does not recover and the scheduler stays away
 * longer than its patience, it tells the trainer to stop. A trainer that does not stop when told to
 * ends the process.
 *
 *     line.c       connect -> Register -> heartbeats           retry.c  when to knock again
 *     handlers.c   what the scheduler says -> on_order; grace.c -> on_hang
 *     mailbox.c    agent_send (trainer) -> the line
 *     hand.c       agent_set_phase, agent_release (trainer) -> heartbeats; without a lock
 */
#ifndef AGENT_H
#define AGENT_H

#include "proto/cluster.pb-c.h"
#include "proto/err.h"
#include "proto/limits.h"

#include "proto/tls.h"
#include <stdint.h>

struct agent;

enum agent_phase { /* Heartbeat.phase */
                   AGENT_IDLE,
                   AGENT_PREPARING,
                   AGENT_TRAINING,
                   AGENT_EVALUATING,
                   AGENT_SAVING,
};

enum agent_order_kind {
    AGENT_ASSIGN, /* take a rank */
    AGENT_PLAN,   /* the plan of all ranks */
    AGENT_START,  /* all ranks are ready */
    AGENT_STOP,   /* the job is over on this node; code 0: finished */
    AGENT_LOST,   /* refused for good, or the scheduler is gone too long for a job that does not
                     recover: code and text say why */
    AGENT_LEAVE,  /* agent_leave was called (TERM) */
};

struct agent_order {
    enum agent_order_kind kind;
    uint64_t job, generation;
    Ms__Assign *assign; /* ASSIGN: owned by who takes it, freed with ms_wire_free */
    Ms__Plan *plan;     /* PLAN: likewise */
    int code;           /* enum ms_code */
    int at_step;        /* STOP: finish the step first ... */
    int saves;          /* ... and who holds saves it, for rank 0 is lost */
    int stands;         /* ... and no step follows: it stops where it stands */
    char text[MS_TEXT_MAX + 1];
};

enum {                            /* bits: what an Assign that was taken is */
       AGENT_SUPERSEDES = 1 << 0, /* the end of the rank in hand */
       AGENT_RECOVERS = 1 << 1,   /* of a job that outlives its scheduler */
       AGENT_ANEW = 1 << 2,       /* nothing of the rank in hand is left for it */
};

struct agent_config {           /* strings are copied */
    const char *address;        /* of the scheduler, "host:port" */
    SSL_CTX *tls;               /* NULL: plain; the agent takes a reference */
    const char *plain_by;       /* "no certificate in ...": why it is plain where nobody said so; a
                                 * scheduler that wants TLS is final then. NULL, "": somebody did */
    const char *software;       /* "msworker 0.1.0" */
    const Ms__Register *node;   /* who we are; copied */
    int64_t connect_timeout_ms; /* for the first registration, and without a rank in hand for the
                                 * next ones; < 0: for ever */
    const char *connect_by;     /* the variable that decided that; static; NULL, "": none */
    /* Where a rank whose job recovers does nothing more without the scheduler's word: it is waited
     * for so long; 0: without limit. */
    int64_t word_ms;
    const char *word_by; /* likewise */
    int64_t lease_ms;    /* until the scheduler says another */
    int64_t register_ms; /* a scheduler answers Register within this; 0: MS_REGISTER_MS */
    /* With a rank in hand a silent or absent scheduler is waited for so long, and for
     * MS_PATIENCE_LEASES leases at least; 0: one lease. Where its job recovers, without limit: then
     * it is for how long a connection is kept on which nobody answers. */
    int64_t patience_ms;
    int64_t grace_ms; /* for a trainer that was told to end; 0: MS_CANCEL_GRACE_MS */
    /* A service: what TLS refuses while the line is made, on either side, is tried again, for the
     * operator mends it while we wait. Else it is final. */
    int is_standing;
    /* Each order, once, on the agent's thread. Must not block. ASSIGN: bits as above, and
     * order->assign is the receiver's; or MS_E_FULL, and the scheduler is told in words that this
     * node has no place. PLAN: 0, and order->plan is the
     * receiver's; or MS_E_FULL: no rank waits for it. */
    int (*on_order)(void *arg, const struct agent_order *order);
    /* On a thread of its own: the rank was not released within grace_ms of such an order. Only the
     * end of the process helps; may not return. NULL: nothing happens. */
    void (*on_hang)(void *arg, const char *text);
    /* Path of the log that is asked for into buf; 0 or negative when this node has none. Agent
     * thread.
     */
    int (*log_path)(void *arg, const Ms__LogRead *request, char *buf, size_t size);
    /* A client was sent for a result of a job; answered with FetchReady. Agent thread, must not
     * block.
     */
    void (*on_fetch)(void *arg, const Ms__FetchGrant *grant);
    void *arg;
};

/* Starts the thread. Returns owned. */
int agent_create(const struct agent_config *cfg, struct agent **ret, struct ms_err *err);
/* Why this node leaves, in the words of its last message; returns: it is back in a moment.
 * Trainer's thread, before agent_destroy. */
void agent_farewell(struct agent *agent, const char *reason, int returns);
/* Says Leave if connected, waits until that is out (a few seconds at most), joins the thread. NULL
 * allowed. */
void agent_destroy(struct agent *agent);

/* What the heartbeats say of the rank of that generation from now on; nothing where the next Assign
 * has come already. Trainer's thread; never waits. */
void agent_set_phase(struct agent *agent, uint64_t generation, enum agent_phase phase,
                     uint64_t step);
/* The trainer does nothing more before an order comes, or works again. What he says with RankPlan,
 * RankReady, PeerReport or RankDone is known to want an answer without that. Any thread. */
void agent_await_word(struct agent *agent, int waits);
/* The work of that generation is done, and its rank waits for the scheduler's last word: it is in
 * hand still, and no order that ends it has to be obeyed in time any more. Trainer's thread. */
void agent_rest(struct agent *agent, uint64_t generation);
/* ... but that there is more to do for it. Likewise. */
void agent_stir(struct agent *agent);
/* The rank of that generation is over, or goes on under the next Assign's: idle again, unless that
 * has come already. Trainer's thread. */
void agent_release(struct agent *agent, uint64_t generation);

/* Is nobody there who could answer: the connection does not stand, or is not registered? Any
 * thread. */
int agent_is_away(struct agent *agent);

/* Queues a message for the scheduler; RankPlan, RankReady, PeerReport and RankDone are sent again
 * after a reconnect until the scheduler has answered with an order. Any thread. */
int agent_send(struct agent *agent, uint16_t type, const ProtobufCMessage *msg, struct ms_err *err);

/* Connects with tls (a reference is taken) from the next time on; at once where it waits. Not to be
 * called where TLS was off. Any thread. */
void agent_set_tls(struct agent *agent, SSL_CTX *tls);

/* The next order is AGENT_LEAVE. Async-signal-safe. */
void agent_leave(struct agent *agent);

#endif
