/* state.h - the core's objects, and the calls between its rooms; nothing outside includes it
 *
 *     conn <- 0..1 -> node -> host            a host has many nodes
 *                      |
 *                    hold*                    a rank that the node's process has: none or one
 *                      |
 *     job -> run -> member[rank]              only while placed, kept for its logs
 *
 * A node is idle when it is REGISTERED, holds nothing and its host is not drained. A hold outlives
 * its job: the job may have ended while the node has not yet said that it let go of its rank.
 *
 * Memory: struct sched owns all. Tick memory (emit_alloc) lives until the next tick begins. What a
 * peer asks for is refused with MS_E_NOMEM where there is none; a decision takes it from the
 * reserve (memory.h). */
#ifndef SCHED_STATE_H
#define SCHED_STATE_H

#include "daemon/sched/client.h"
#include "daemon/sched/conn.h"
#include "daemon/sched/counter.h"
#include "daemon/sched/dynamic.h"
#include "daemon/sched/emit.h"
#include "daemon/sched/event.h"
#include "daemon/sched/facts.h"
#include "daemon/sched/former.h"
#include "daemon/sched/gone.h"
#include "daemon/sched/heap.h"
#include "daemon/sched/holder.h"
#include "daemon/sched/host.h"
#include "daemon/sched/job.h"
#include "daemon/sched/kept.h"
#include "daemon/sched/links.h"
#include "daemon/sched/list.h"
#include "daemon/sched/may.h"
#include "daemon/sched/memory.h"
#include "daemon/sched/mode.h"
#include "daemon/sched/node.h"
#include "daemon/sched/past.h"
#include "daemon/sched/plan.h"
#include "daemon/sched/purse.h"
#include "daemon/sched/queue.h"
#include "daemon/sched/recover.h"
#include "daemon/sched/run.h"
#include "daemon/sched/sched.h"
#include "daemon/sched/share.h"
#include "daemon/sched/spec.h"
#include "daemon/sched/stamp.h"
#include "daemon/sched/states.h"
#include "daemon/sched/table.h"
#include "daemon/sched/timer.h"
#include "proto/macros.h"

#include <stdbool.h>

/* Work that an event leaves to its end; outside of one sched_deadline makes an event of it. */
enum {
    DUE_PLACE = 1,    /* a node became idle, or the queue changed */
    DUE_REQUEUES = 2, /* loading put jobs back into the queue and could not write that yet */
    DUE_SKIP = 4,     /* loading raised ids and generations likewise */
    DUE_NEWS = 8,     /* watchers have to be told more than one tick may send */
    DUE_STARTED = 16, /* loading is over, and no event says so yet */
    DUE_EVENTS = 32,  /* more ask for events than one tick may answer */
    DUE_HISTORY = 64, /* more is kept than may be, and one tick had no room to drop it */
    DUE_ROOM = 128, /* there is space again: who waited for it has all the time, from the next on */
};

/* Who had the rank when its job ended. */
struct end_rank {
    bool is_unheard;      /* it may be there, and has not left */
    uint64_t incarnation; /* 0: not known, an earlier scheduler ended the job */
};

struct sched {
    struct sched_config cfg;
    const struct mode *mode;
    char software[MS_NAME_MAX + 1], database[MS_PATH_MAX + 1];
    struct sched_time now, started;
    uint64_t generation, next_job, next_route;
    uint64_t last_event;    /* its number */
    struct heap kept_by[2]; /* authors of events, who has the most first: of others, of jobs */
    uint64_t n_kept[2];
    uint64_t ticks; /* that wrote, the one under way included */
    bool tick_writes, loss_proved, stamp_made;
    uint64_t stamp_ticks;        /* of stamp */
    uint8_t stamp[MS_STAMP_LEN]; /* the last that was made */
    bool leases_behind; /* more are over than one tick may judge: the rest is next, at once */
    int64_t stood_still_until_ms; /* nodes may have given up on us, and come back until then */
    int64_t stood_still_ms;       /* ... after such a time */
    uint32_t n_expected;          /* nodes, by loading */
    uint32_t n_came;              /* nodes that registered and had not since the start ... */
    int64_t came_ms;              /* ... the last of them; moved on while we stood still */
    uint32_t n_paused, n_aside;   /* hosts */
    uint32_t n_stuck;             /* holds that are overdue */
    bool crowded;                 /* since the start some could not get in ... */
    int64_t crowded_ms;           /* ... as of then; moved on likewise */
    uint64_t generation_raised, jobs_raised; /* by claims of nodes, since the start */
    uint64_t seed;                           /* of hashes */

    struct table conns, nodes, hosts, holders, purses, pasts, plans, authors, keys, routes, losers;
    struct table folders; /* of jobs: struct node, those that are idle */
    uint64_t specs_bytes; /* of jobs that wait or run, with the plans that are held for them */
    struct list beating, idle;
    struct heap gone_by; /* principals of lost and left nodes, who has the most first */
    uint64_t last_gone;  /* a node's gone_no */
    uint64_t kept_in;    /* the last look for nodes that jobs keep: home_mark */
    uint32_t n_registered, n_usable, n_idle, n_gone; /* usable: node_is_usable() */
    struct heap timers;
    struct queue queue;
    struct list placed;
    struct list recovering; /* struct run: a round is due */
    uint32_t n_placed, n_ended, n_members_kept;
    struct heap past_jobs, past_ranks; /* of owners, who has the most first */
    uint64_t last_ended;               /* a job's ended_no */
    struct job_slot *jobs;
    size_t n_jobs, jobs_room, n_holes;

    struct list askers;    /* whose EventQuery is answered by event_settle */
    struct list followers; /* ... waits for the next event */
    uint32_t event_reads;  /* answered in this tick */

    struct list watches; /* of all jobs */
    struct list stirred; /* ... of which their watchers do not know the newest state yet */
    bool loading, draining;
    unsigned due;         /* DUE_*: work for the end of this event, or for the next one */
    uint64_t requeued;    /* job: those up to it that loading put back are written as such */
    struct stall *stalls; /* while loading: jobs that stood still when the database was left */
    size_t n_stalls, stalls_room;
    uint64_t stalls_start;            /* ... event of the scheduler's last start */
    struct sched_member_row *orphans; /* while loading: members whose job is not there yet */
    size_t n_orphans, orphans_room;
    char refusal[MS_TEXT_MAX + 1]; /* of new work; "" none */
    bool refuses_ends;             /* ... and of requests for an end: they could not be stored */
    struct timer news_timer;
    uint64_t news_round; /* how often it has fired */
    struct sched_driver_stats driver;

    /* SCHED_DYNAMIC */
    enum topo_state topo;
    struct timer topo_timer, ending_timer;
    int64_t let_be_ms; /* not before then: the next line of log about ranks of an earlier one */
    int64_t ending_until_ms;  /* so long it waits for them, while it ends */
    int64_t leave_ms;         /* ... which is so long */
    int64_t ended_ms;         /* since when it ends */
    int64_t unheard_until_ms; /* ... and for those that are away, to hear of it */
    struct end_rank *ends;    /* of each rank of the job that ended; owned */
    uint64_t ended_job;       /* ... which is this one; 0: none */
    uint32_t n_unheard;
    uint32_t n_leaving; /* nodes that were here when that was looked at last */
    bool said_who_stays;
    bool ending, exited;
    int exit_status, exit_code;
    char exit_text[MS_TEXT_MAX + 1];
    uint8_t *spec; /* job_json of the first worker, owned */
    size_t spec_bytes;
    char spec_digest[65], spec_node[MS_NAME_MAX + 1];

    struct sched_effect *effects;
    size_t n_effects, effects_room;
    size_t store_bytes;            /* of the disk, for what this tick decided: cost.h */
    uint64_t stored_job;           /* whose ranks are among it, the last one */
    size_t tick_bytes, news_bytes; /* taken in this tick, and what watchers were told of it */
    struct tick_block *blocks;     /* the first one is kept from tick to tick */
};

#endif
