/* agent_impl.h - inside of the agent: its parts, and the two calls that they share */
#ifndef AGENT_IMPL_H
#define AGENT_IMPL_H

#include "libworker/agent/agent.h"
#include "libworker/agent/grace.h"
#include "libworker/agent/hand.h"
#include "libworker/agent/line.h"
#include "libworker/agent/mailbox.h"

#include <event2/event.h>
#include <stdatomic.h>

struct agent {
    struct agent_config cfg;
    char address[MS_ADDR_MAX + 1];
    char host[MS_HOST_MAX + 1];
    char software[MS_NAME_MAX + 1];
    char plain_by[MS_NAME_MAX + 128];
    Ms__Register *node;
    pthread_t thread;
    int thread_runs;
    struct event_base *base;
    int wake_fd;
    struct event *wake;

    /* any thread */
    struct mailbox mailbox;
    struct hand hand;                /* who may what: hand.h */
    _Atomic int64_t awaits_since_ms; /* agent_await_word; 0: works */
    atomic_int leaving, ending, hurry, harden;
    atomic_int holds;               /* the trainer does, and has just said so */
    atomic_int is_up;               /* the line is: agent_tell_status writes it */
    char farewell[MS_TEXT_MAX + 1]; /* written before ending is set, read after; likewise: */
    int returns;
    pthread_mutex_t tls_lock; /* guards cfg.tls, of which we hold a reference */

    struct grace grace; /* locks itself */

    /* the agent's thread only */
    struct line line;
    int64_t noise_log_ms; /* handlers.c: last line about a frame that we do not want */
    unsigned noise;
    int has_left; /* told to: it takes no rank any more, which is no failure of the job's */
    char ended_by[MS_TEXT_MAX + 1]; /* why the last rank was told to end; "": it was not */
    char status[2 * MS_TEXT_MAX];   /* that the service manager was told last */
};

/* ---- agent.c ---- */

void agent_arm(struct event *timer, int64_t ms);
/* Makes the agent's thread look around. Any thread, async-signal-safe. */
void agent_wake(struct agent *agent);
/* Tells the order, which starts the grace where it ends a rank; of an Assign that is known
 * afterwards. An Assign or a Plan stays the caller's. What on_order returns. */
int agent_give(struct agent *agent, struct agent_order *order);
/* The end of all: once. */
void agent_give_lost(struct agent *agent, int code, const char *text);

/* Tells the service manager what this node does, if that is another thing than before. The agent's
 * thread; after each change of the line or of the rank in hand. */
void agent_tell_status(struct agent *agent);

/* ---- handlers.c ---- */

/* For ms_conn_handler.on_frame; arg is the agent. */
void agent_on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                    void *arg);

#endif
