/* node.h - a node: one worker process with a node id, its lease, the ranks it holds, its twins */
#ifndef SCHED_NODE_H
#define SCHED_NODE_H

#include "daemon/sched/list.h"
#include "daemon/sched/sched.h"
#include "daemon/sched/states.h"
#include "daemon/sched/table.h"
#include "daemon/sched/timer.h"

#include <stdbool.h>

struct conn;
struct holder;
struct host;
struct job;
struct loser;

struct node_info {
    char node_id[MS_NAME_MAX + 1];
    uint64_t incarnation;
    char host_name[MS_HOST_MAX + 1];
    char host_id[MS_HOST_MAX + 1];
    char data_address[MS_ADDR_MAX + 1];
    char data_unix[MS_ADDR_MAX + 1];
    char isa[MS_NAME_MAX + 1];
    char onednn[MS_NAME_MAX + 1];
    char principal[MS_PRINCIPAL_MAX + 1]; /* who registered it, canonical */
    char cert_name[MS_NAME_MAX + 1];
    uint32_t uid, cores, pid;
    uint32_t level; /* which messages its release knows (proto/wire.h) */
    uint64_t memory_bytes;
    uint64_t jobs_folder; /* equal: the same one; 0: not known */
    bool has_offer;
    Ms__Offer offer; /* as it came, for other ranks of its jobs; its CPUs are these: */
    uint8_t cpuset[MS_CPUSET_BYTES];
};

/* What a Register says about the rank that the process holds; job 0: none. */
struct claim {
    uint64_t job, generation, step;
    uint32_t rank;
    bool running; /* it was started in that generation */
};

/* Who goes on under a generation in which it was not started yet stands at a step all the same. */
static inline bool claim_has_state(const struct claim *claim)
{
    return claim->running || claim->step > 0;
}

/* A rank that a node's process has, or was told to let go of and has not answered yet. */
struct hold {
    struct list by_node; /* node->holds */
    struct node *node;
    struct job *job;   /* placed, and this is members[rank].hold; NULL: told to let go ... */
    struct run *keeps; /* ... or not yet: another process has the rank (former.h); NULL: it was */
    uint64_t job_id, generation, step;
    uint64_t heard; /* the older generation that its process knows of; 0: this one */
    uint32_t rank;
    /* RankDone, which counts for nothing while a round is due: it answers no last Stop any more.
     * What it said is not kept; a Stop after the step has it said again (mailbox_done_again). */
    bool has_said;
    int64_t stopping_ms; /* when it was told to let go */
    struct timer answer; /* ... and has to, by then */
    bool overdue;        /* ... and did not */
};

/* How it was noticed that a node is gone, or its process. */
enum notice {
    NOTICE_CLOSED,   /* the end of its connection */
    NOTICE_SILENT,   /* its lease */
    NOTICE_REPLACED, /* another process has its id */
    NOTICE_RETURNED, /* it came back without its rank */
    NOTICE_MISSING,  /* it did not come back */
    NOTICE_LEFT,     /* it said so */
    NOTICES
};

struct node {
    struct table_link link;
    struct list beating;         /* in sched.beating while REGISTERED, least recently seen first */
    struct list idle;            /* in sched.idle while idle */
    struct table_link by_folder; /* in sched.folders while idle */
    uint64_t folder;             /* ... under this one; 0: it is not there */
    struct list gone;            /* in loser.nodes while LOST or LEFT */
    struct loser *loser;         /* ... NULL: it is not; gone.c */
    struct holder *holder;       /* NULL while LOST or LEFT; holder.c */
    uint64_t gone_no;            /* grows with time */
    struct timer forget;
    struct timer rest; /* armed: it gets no rank, for it was short of memory or descriptors */
    struct node_info info;
    enum node_state state;
    struct conn *conn;    /* REGISTERED only */
    const char *expected; /* NEW: after what it has to come back; a literal */
    bool came;            /* registered since the start, or since it went away */
    bool leaving;         /* its process said so: it gets no rank any more */
    bool told_end;        /* ... of a dynamic cluster: it heard the last Stop */
    uint32_t end_rank;    /* ... 1 + the rank that it had in the job that has ended; 0: none */
    bool returns;         /* LEFT: it said that it is back in a moment */
    bool is_chosen;       /* within one call of vacant.c: for another rank already */
    uint64_t kept_in;     /* the look in which a job kept it, which lost its state: home_mark */
    uint64_t kept_for;    /* ... which one */
    bool is_unreached;    /* ... where it was looked at: by ranks of the job, or its host is not */
    int64_t seen_ms;
    enum notice notice;        /* of its last end */
    int64_t before_ms;         /* ... and before the Register that is looked at; 0: none is */
    bool spoke;                /* since it was told to stop at the step, which it answers */
    struct host *host;         /* never NULL but before the first Register */
    uint64_t machine;          /* hash of its host id, or of its host name: whose links it shares */
    struct list on_host;       /* in host->nodes */
    bool counted;              /* in s->n_usable */
    struct list holds;         /* struct hold; today one at the most */
    struct newcomer *newcomer; /* another process wants this id: the first is asked, or awaited */
    char reason[MS_TEXT_MAX + 1];
};

/* A Register that waits until the process with the same id has shown whether it lives. */
struct newcomer {
    struct timer timer;
    struct node *node;
    struct conn *conn;
    uint32_t frame_id;
    struct node_info info;
    struct claim claim;
};

/* node.c: found by id, judged by lease */

struct node *node_find(const struct sched *s, const char *node_id);
struct node *node_add(struct sched *s, const char *node_id); /* NEW; must not exist */
void node_forget(struct sched *s, struct node *node);        /* frees it */
/* text: of the event that is recorded */
void node_set(struct sched *s, struct node *node, enum node_event event, const char *text);
void node_touch(struct sched *s, struct node *node); /* heard of just now */
/* It lacked memory or descriptors as a job was to begin there: it gets no rank for a while, so that
 * it does not take job after job. */
void node_rest(struct sched *s, struct node *node);
void node_rested(struct sched *s, struct node *node); /* TIMER_REST */
/* Its connection closed, perhaps because we were silent ourselves: it has a lease to come back. */
void node_away(struct sched *s, struct node *node);
bool node_may_be_away(const struct sched *s, const struct node *node);
/* Its connection is gone or no longer believed: LOST or LEFT, its rank with it, and whoever waits
 * for its id takes over. The caller closes the connection if it is still open. */
void node_gone(struct sched *s, struct node *node, enum notice notice, const char *reason);
const char *notice_name(enum notice notice); /* as programs read it */
/* For how long nobody has heard of it; -1: since the start nobody has. */
int64_t node_silent_ms(const struct sched *s, const struct node *node);
bool node_is_usable(const struct node *node); /* for jobs: now, or when it is idle */
bool node_is_idle(const struct node *node);
void node_judge_leases(struct sched *s);
int64_t node_lease_deadline(const struct sched *s);
void on_heartbeat(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_leave(struct sched *s, struct conn *conn, const struct sched_event *event);
void send_heartbeat_ack(struct sched *s, const struct conn *conn, uint32_t id);
uint64_t heartbeat_ms(const struct sched *s);

/* hold.c: which ranks a node has; a node with any is not idle */

struct hold *hold_add(struct sched *s, struct node *node, uint64_t job, uint64_t generation,
                      uint32_t rank);
void hold_bind(struct hold *hold, struct job *job); /* it is that job's rank */
void hold_unbind(struct hold *hold);                /* ... no longer; never bound: nothing */
/* It would not obey in a generation that it does not know, and no round makes it hear of that. */
void hold_settle(struct hold *hold);
void hold_let_go(struct sched *s, struct hold *hold); /* unbinds it; Stop goes out to its node */
void hold_overdue(struct sched *s, struct timer *timer);
void hold_drop(struct sched *s, struct hold *hold); /* unbinds and frees it: the node is idle */
/* NULL: the node does not hold that rank. */
struct hold *hold_find(const struct node *node, uint64_t job, uint64_t generation, uint32_t rank);
struct hold *hold_first(const struct node *node); /* NULL: none */
/* Keeps counts and lists in step with the two. */
void node_idle_update(struct sched *s, struct node *node);

/* register.c: who may, new nodes and reconnects */

void on_register(struct sched *s, struct conn *conn, const struct sched_event *event);
void register_accept(struct sched *s, struct conn *conn, uint32_t frame_id,
                     const struct node_info *info, const struct claim *claim);
void register_refuse(struct sched *s, const struct conn *conn, uint32_t frame_id, int code,
                     const char *text, const char *node_id);

/* claim.c: what its process says that it holds */

/* NULL, or why it cannot be true. */
const char *claim_refusal(struct sched *s, const Ms__Register *msg);
/* What we give next lies above it. by: the principal who says so. */
void claim_raise(struct sched *s, const struct claim *claim, const char *by);
/* The rank, if it is one that we gave to exactly this process; else NULL. */
struct hold *claim_find(const struct node *node, const struct node_info *info,
                        const struct claim *claim);
void claim_stop(struct sched *s, struct node *node, const struct claim *claim);
/* All ranks of the node but ours are lost: its process does not have them. */
void claim_lose_others(struct sched *s, struct node *node, const struct hold *ours,
                       const struct claim *claim, bool same_process);

/* twin.c: two processes with one node id */

/* Another process may have the node's id, and is asked or waited for first; else false. */
bool twin_waits(struct sched *s, struct conn *conn, const struct sched_event *event,
                struct node *node, const struct node_info *info, const struct claim *claim);
void newcomer_refuse(struct sched *s, struct node *node); /* the first process is heard */
void newcomer_accept(struct sched *s, struct node *node); /* it is not here, or gone already */
void newcomer_drop(struct sched *s, struct newcomer *newcomer); /* its connection closed */
void newcomer_timeout(struct sched *s, struct newcomer *newcomer);

#endif
