/* job.h - a job: what was asked for, where it stands, why it waits */
#ifndef SCHED_JOB_H
#define SCHED_JOB_H

#include "daemon/sched/heap.h"
#include "daemon/sched/list.h"
#include "daemon/sched/sched.h"
#include "daemon/sched/states.h"
#include "daemon/sched/table.h"

#include <stdbool.h>

struct plan;
struct run;

struct job {
    struct list lane;       /* placed, or ended: sched.placed, or its owner's past (past.h) */
    struct heap_link queue; /* QUEUED */
    bool aside;             /* ... in queue.aside */
    struct table_link by_key;
    uint64_t id;
    enum sched_job_state state;
    const char *name, *owner, *key, *run_dir; /* behind the struct */
    uint8_t *spec;                            /* owned; NULL: in the database only (spec.h) */
    size_t spec_bytes;
    char spec_sha256[65];
    bool has_home;     /* its checkpoints are on the node that has rank 0: home.c */
    struct plan *plan; /* NULL: none yet (plan.h) */
    bool plan_given;   /* ... it came with the job */
    bool plan_held;    /* ... its text is in memory for this job, and in its owner's purse */
    char *reason;      /* owned, never NULL; of an ended job, or why it was placed in vain */
    uint32_t workers;
    uint32_t n_tries;  /* placed and never started */
    uint32_t n_leaves; /* ... because a process had to begin anew, since it last started */
    uint32_t n_met;    /* nodes that were there when it was placed, at the most, since then */
    int32_t priority, code;
    bool recovery; /* as its file says; nothing acts on it yet, and workers refuse such a job */
    uint64_t generation;
    int64_t submitted_ms, started_ms, ended_ms;
    uint64_t ended_no; /* ended: they ended in this order */
    uint64_t steps;
    double seconds;
    char weights_sha256[65];
    char plan_sha256[65];
    struct run *run;
    struct list watches;
    uint64_t news, news_round; /* hash of state and reason, and when it was made; 0 never */
    struct list waiters;       /* struct waiter: replies of Cancel that are due at the end */
    uint32_t n_waiters;
};

/* Jobs in id order. A dropped one leaves a hole until a quarter of them are holes. */
struct job_slot {
    uint64_t id;
    struct job *job; /* NULL: dropped */
    bool ended;
};

/* load.c: what loading decided and could not write */
void load_settle(struct sched *s);
void load_requeue(struct sched *s, struct job *job); /* one of those, before it is touched */
void load_skip(struct sched *s);
void load_started(struct sched *s);

struct job *job_find(const struct sched *s, uint64_t id);
struct job *job_find_key(const struct sched *s, const char *owner, const char *key);
size_t job_slot_after(const struct sched *s, uint64_t id); /* index of the first id above */
/* Copies the row; NULL without memory. The job is in no list yet. */
struct job *job_create(struct sched *s, const struct sched_job_row *row);
void job_free(struct job *job);
int job_index(struct sched *s, struct job *job); /* 0 or MS_E_NOMEM */
/* text: of the event that is recorded */
/* text, facts: of the event that is recorded */
void job_set(struct sched *s, struct job *job, enum job_event event, const char *text,
             const char *facts);
bool job_is_ended(const struct job *job);
bool job_is_placed(const struct job *job);
bool job_has_begun(const struct job *job); /* its ranks were started, and it is not over */
const char *job_reason(struct sched *s, const struct job *job); /* "" only while it runs well */
void job_set_reason(struct job *job, const char *text);
void job_slot_ended(struct sched *s, const struct job *job);
void job_drop(struct sched *s, struct job *job); /* an ended one: out of the indexes, and freed */

#endif
