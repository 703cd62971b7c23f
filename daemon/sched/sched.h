/* sched.h - the scheduler's decisions: a state machine without I/O
 *
 *     event (message, closed connection, passed deadline) + now  ->  state' + effects
 *
 * The core owns nodes, topologies and jobs. It never reads a clock, a socket, a file or a random
 * number: time comes with each event, secrets with the configuration. Whoever drives it (server.c,
 * or the simulator under tests/sim) carries out the effects in this order:
 *   1. all PERSIST effects of a tick in one transaction,
 *   2. after the commit, everything else in the order in which it was emitted.
 * So nothing is acknowledged that a power cut can undo. If the commit fails the driver must exit;
 * the store keeps a reserve of disk space so that a full disk is announced before that (store.h),
 * and sched_refuse_writes then keeps new work out.
 *
 * One thread; not re-entrant. */
#ifndef SCHED_H
#define SCHED_H

#include "proto/cluster.pb-c.h"
#include "proto/err.h"
#include "proto/limits.h"
#include "proto/log.h"
#include "proto/tls.h"
#include "proto/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sched;

enum sched_mode {
    SCHED_STANDING, /* a service: idle nodes, a queue of jobs */
    SCHED_DYNAMIC,  /* MindSpore's dynamic cluster: exactly one job, brought by its workers */
    SCHED_RUN,      /* private to `msctl run`: standing, until its owner ends it */
};

struct sched_config {
    enum sched_mode mode;
    int64_t lease_ms;                    /* a node that is silent longer is lost */
    int64_t topo_timeout_ms;             /* < 0: for ever */
    uint32_t worker_num;                 /* SCHED_DYNAMIC */
    int recovery;                        /* SCHED_DYNAMIC: MS_ENABLE_RECOVERY */
    int disable_heartbeat;               /* MS_DISABLE_HEARTBEAT: no lease ever ends */
    int certificate_ids;                 /* a node id is of one certificate */
    uint32_t nodes_per_certificate;      /* 0: no limit but MS_NODES_MAX */
    uint32_t specs_mib, specs_owner_mib; /* 0: MS_SPECS_MIB, MS_SPECS_OWNER_MIB */
    /* 0: MS_JOBS_QUEUED_MAX, MS_JOBS_OWNER_MAX, MS_JOBS_ADMIN */
    uint32_t jobs_queued_max, jobs_owner_max, jobs_admin;
    int32_t priority_users_min, priority_users_max; /* what a submit without MAY_PRIORITY takes */
    /* What is kept of the past; 0: MS_JOBS_KEPT_MAX, MS_MEMBERS_KEPT_MAX, MS_LOST_NODES_MAX,
     * MS_EVENTS_KEPT. */
    uint32_t jobs_kept_max, members_kept_max, lost_nodes_max, events_kept_max;
    uint8_t secret[MS_TOKEN_LEN]; /* group tokens are SHA-256(secret, job, generation) */
    int has_database;             /* PERSIST effects are durable: stamps are told and judged */
    uint64_t skip_ahead;          /* writes may be missing: ids and generations go on far above,
                                   * never twice at the same: sched_skip_of(now), 0: none miss */
    uint8_t stamp_secret[MS_TOKEN_LEN]; /* of the database, drawn when it was made */
    const char *software;               /* for StatusInfo */
    const char *database;               /* for StatusInfo */
};

/* Monotonic time decides; wall time is only stored for people. */
struct sched_time {
    int64_t mono_ms;
    int64_t wall_ms; /* Unix milliseconds */
};

/* ---- durable rows: what store.c keeps and gives back --------------------------------------------
 */

enum sched_job_state {
    JOB_QUEUED,
    JOB_PLACING,
    JOB_RUNNING,
    JOB_RECOVERING,
    JOB_SUCCEEDED,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_STATES
};

struct sched_job_row {
    uint64_t id;
    enum sched_job_state state;
    char name[MS_NAME_MAX + 1];
    char owner[MS_PRINCIPAL_MAX + 1]; /* principal.h */
    char reason[MS_TEXT_MAX + 1];
    char key[MS_NAME_MAX + 1]; /* idempotence key of the submit; "" none */
    char run_dir[MS_PATH_MAX + 1];
    uint32_t workers;
    int32_t priority;
    int32_t code;
    uint64_t generation;
    int64_t submitted_ms, started_ms, ended_ms; /* wall clock */
    uint64_t steps;
    double seconds;
    char weights_sha256[65];
    char plan_sha256[65];
    bool recovery;                     /* its file asks that a lost rank be replaced */
    bool cancel_at_step;               /* with cancel_text: ranks finish their step first */
    char cancel_text[MS_TEXT_MAX + 1]; /* somebody asked for its end, in these words; "" nobody */
    const uint8_t
        *results; /* ended: a JobResults of cluster.proto, what it last showed; borrowed */
    size_t results_bytes;
    uint32_t n_tries; /* how often it was placed since it last started */
    char spec_sha256[65];
    const uint8_t *spec;   /* job_json; borrowed; NULL in an update that leaves it as it is */
    size_t spec_bytes;     /* ... in an update, too */
    char plan[65];         /* which sched_plan_row it has; "" none */
    bool plan_given;       /* ... that came with it: rank 0 does not choose */
    const char *plan_text; /* loading, of jobs that may have to tell it: that row's; borrowed */
};

/* The text of a plan (docs/plan.md), once for all jobs that have it. */
struct sched_plan_row {
    char sha256[65];  /* of the text */
    const char *text; /* borrowed; NULL in a drop */
    size_t bytes;
};

/* A rank of a placed job: what a restarted scheduler needs to adopt it; of an ended job: what it
 * last showed. */
struct sched_member_row {
    uint64_t job;
    uint32_t rank;
    char node_id[MS_NAME_MAX + 1];
    uint64_t incarnation;
    char host_name[MS_HOST_MAX + 1];
    char log_path[MS_PATH_MAX + 1];
    char principal[MS_PRINCIPAL_MAX +
                   1];   /* who registered the node: nobody else takes the rank up */
    uint64_t generation; /* in which it was given this rank */
    char state[16];      /* as people see it; "" in rows of 0.1 */
    uint64_t step;
    uint32_t pid;
};

/* A host that is set aside: host.h. */
struct sched_aside_row {
    char key[MS_HOST_KEY_MAX + 1];
    char name[MS_HOST_MAX + 1];
    int64_t until_ms; /* wall clock */
    char why[MS_TEXT_MAX + 1];
};

/* What happened, for people: `msctl events`. Numbers only grow; texts are borrowed like effects. */
struct sched_event_row {
    uint64_t seq;
    int64_t at_ms;         /* wall clock */
    const char *kind;      /* "job.started" */
    uint64_t job;          /* 0: none */
    const char *node;      /* "": none */
    const char *principal; /* who provoked it, and loses it: kept.h; "": the scheduler */
    const char *text;
    const char *facts; /* ... for programs: a JSON object (facts.h), or "" */
};

/* ---- events -------------------------------------------------------------------------------------
 */

enum sched_event_kind {
    SCHED_EV_OPENED, /* Hello/Welcome are over */
    SCHED_EV_MESSAGE,
    SCHED_EV_CLOSED,
    SCHED_EV_CLOGGED, /* much is unsent to conn: no news of jobs for it ... */
    SCHED_EV_CLEARED, /* ... it has read them: the newest state follows */
    SCHED_EV_TIME,    /* sched_deadline has passed */
    SCHED_EV_CROWDED, /* newcomers stand before the door, or were turned away: nodes among them? */
    SCHED_EV_DRAIN,   /* SIGTERM: refuse submits, keep jobs; the driver exits when it likes */
};

struct sched_event {
    enum sched_event_kind kind;
    uint64_t conn;               /* chosen by the driver, never used twice */
    const struct ms_peer *peer;  /* OPENED; borrowed */
    uint16_t type;               /* MESSAGE: enum ms_msg */
    uint32_t id;                 /* MESSAGE: frame id, repeated in the answer */
    const ProtobufCMessage *msg; /* MESSAGE; borrowed, validated by ms_wire_unpack */
    const char *reason;          /* CLOSED: in words; borrowed */
};

/* ---- effects ------------------------------------------------------------------------------------
 */

enum sched_effect_kind {
    SCHED_DO_SEND,  /* frame to conn */
    SCHED_DO_CLOSE, /* flush, then close conn */
    SCHED_DO_LOG,
    SCHED_DO_PUT_JOB,      /* insert or update by id */
    SCHED_DO_PUT_MEMBER,   /* insert or update by (job, rank) */
    SCHED_DO_DROP_MEMBERS, /* of a job */
    SCHED_DO_DROP_JOB,     /* history beyond MS_JOBS_KEPT_MAX */
    SCHED_DO_PUT_PLAN,     /* insert by digest; the same one again: nothing changes */
    SCHED_DO_DROP_PLAN,    /* no job has it any more */
    SCHED_DO_PUT_ASIDE,    /* insert or update by key */
    SCHED_DO_DROP_ASIDE,   /* its time is over */
    SCHED_DO_PUT_EVENT,    /* append */
    SCHED_DO_DROP_EVENT,   /* beyond MS_EVENTS_KEPT */
    SCHED_DO_PUT_META,     /* named number: "generation", "next_job" */
    SCHED_DO_READ,         /* answer with what only the database has: in its turn, like SEND */
    SCHED_DO_EXIT,         /* dynamic cluster: the job is over, all acknowledged */
};

enum sched_read_kind { SCHED_READ_SPEC, SCHED_READ_PLAN, SCHED_READ_EVENTS };

/* An answer that the driver completes from the database (store_answer) and sends to conn. */
struct sched_read {
    enum sched_read_kind kind;
    uint32_t frame_id;
    /* SPEC: its spec belongs into list->jobs[0]->job_json; PLAN: its plan into ->plan; EVENTS: 0 of
     * all */
    uint64_t job;
    Ms__JobList *list; /* SPEC, PLAN */
    /* EVENTS: numbers above after and up to last, or if before is not 0 below that, backwards */
    uint64_t after, before, last;
    const char *node_id; /* "": of all */
    uint32_t limit;
};

struct sched_effect {
    enum sched_effect_kind kind;
    uint64_t conn;
    const uint8_t *frame; /* SEND: header and message; borrowed until the next sched_apply */
    size_t frame_bytes;
    const uint8_t *tail; /* SEND: the rest of the frame, the same bytes for many, or NULL */
    size_t tail_bytes;
    enum ms_log_level level;
    const char *text;                /* LOG: event name and keys; EXIT: reason; borrowed likewise */
    int status;                      /* EXIT: exit status; CLOSE: unused */
    const struct sched_job_row *job; /* PUT_JOB; borrowed likewise */
    const struct sched_member_row *member;
    const struct sched_plan_row *plan;   /* PUT_PLAN, DROP_PLAN; borrowed likewise */
    const struct sched_aside_row *aside; /* PUT_ASIDE, DROP_ASIDE; borrowed likewise */
    const struct sched_event_row *event; /* PUT_EVENT; borrowed likewise */
    const struct sched_read *read;       /* READ; borrowed likewise */
    uint64_t job_id;                     /* DROP_JOB, DROP_MEMBERS */
    uint32_t workers;                    /* DROP_MEMBERS: of the job, so many at the most */
    uint64_t event_seq;                  /* DROP_EVENT */
    const char *meta_key;                /* PUT_META */
    uint64_t meta_value;
};

/* A SEND's whole frame: frame_bytes + tail_bytes of them. */
void sched_effect_join(const struct sched_effect *effect, uint8_t *ret);

/* True for effects that must be durable before any other effect of the same tick is carried out. */
int sched_effect_is_durable(enum sched_effect_kind kind);
/* ... and count as a tick: events, and what is set aside, tell nobody that something was
 * acknowledged. A start that writes one must not hide that the database lacks a tick. */
int sched_effect_acknowledges(enum sched_effect_kind kind);

/* ---- life ---------------------------------------------------------------------------------------
 */

/* For skip_ahead: milliseconds since 2020, at least 1. */
uint64_t sched_skip_of(int64_t wall_ms);

/* Returns owned; NULL without memory. cfg is copied. */
struct sched *sched_create(const struct sched_config *cfg, struct sched_time now);
void sched_destroy(struct sched *sched); /* NULL allowed */

/* Loading, before the first event, in any order (plans before the jobs that have them): what
 * store_load found. Jobs that were placed wait one full lease for their nodes to come back and are
 * adopted or failed. Rows are copied. */
int sched_load_meta(struct sched *sched, const char *key, uint64_t value, struct ms_err *err);
int sched_load_plan(struct sched *sched, const struct sched_plan_row *row, struct ms_err *err);
int sched_load_aside(struct sched *sched, const struct sched_aside_row *row, struct ms_err *err);
int sched_load_job(struct sched *sched, const struct sched_job_row *row, struct ms_err *err);
int sched_load_member(struct sched *sched, const struct sched_member_row *row, struct ms_err *err);
/* In the order of their numbers; of seq, at_ms, kind, job and principal alone. */
int sched_load_event(struct sched *sched, const struct sched_event_row *row, struct ms_err *err);
/* Ends loading: checks what belongs together, arms deadlines. */
int sched_load_done(struct sched *sched, struct sched_time now, struct ms_err *err);

/* The transition. Appends effects; *ret_effects is borrowed until the next call. Several events may
 * be applied before the effects are carried out (a tick): then call sched_begin_tick first, which
 * frees what earlier ticks emitted, and read sched_effects at the end. */
void sched_begin_tick(struct sched *sched);
void sched_apply(struct sched *sched, const struct sched_event *event, struct sched_time now);
const struct sched_effect *sched_effects(const struct sched *sched, size_t *ret_n);

/* Monotonic ms of the next deadline, INT64_MAX: none. */
int64_t sched_deadline(const struct sched *sched);

/* The monotonic ms that it heard last: by them its deadlines were armed. */
int64_t sched_clock_ms(const struct sched *sched);

/* Bytes of tick memory that were taken since sched_begin_tick: what answers cost. */
size_t sched_tick_bytes(const struct sched *sched);
/* Bytes of the disk that what was decided since then takes (cost.h). */
size_t sched_tick_stored(const struct sched *sched);
/* What was decided since then takes MS_TURN_STORE of the disk: nothing more belongs into this tick,
 * or the reserve of the database would have no room for it. Commit, then go on. */
int sched_tick_is_full(const struct sched *sched);
/* The reserve of memory for decisions was spent (memory.h) and is not full again: apply no requests
 * of clients until a sched_begin_tick has mended that. */
int sched_is_starved(const struct sched *sched);

/* Of a dynamic cluster: its job is over, and it waits for its workers to leave. Returns whether;
 * *ret_status is what its program ends with then. */
int sched_is_ending(const struct sched *sched, int *ret_status);

/* What a connection is good for. IDLE: it has not registered, watches nothing and waits for nothing
 * that the core knows of. Unknown ones are IDLE. */
enum sched_conn_kind { SCHED_CONN_IDLE, SCHED_CONN_BUSY, SCHED_CONN_NODE };
enum sched_conn_kind sched_conn_kind(const struct sched *sched, uint64_t conn);

/* The database cannot grow (SQLITE_FULL): from now on new work is refused with text (cut to
 * MS_TEXT_MAX), everything else goes on. "" ends it. What ends work is written with what was kept
 * for that; has_room 0: that is used up too, and who asks for an end (a cancel) is refused. */
void sched_refuse_writes(struct sched *sched, const char *text, int has_room);

/* The driver itself stood still for ms (suspend, a stopped VM): stretches every lease by it. */
void sched_stood_still(struct sched *sched, int64_t ms);

/* A reload changed the lease. Nodes hear of it with their next HeartbeatAck; until then nobody is
 * judged earlier than by the old one. */
void sched_set_lease(struct sched *sched, int64_t lease_ms);

/* A reload changed what priorities and node ids are allowed; takes those fields of cfg only. What
 * is queued or registered stays. */
void sched_set_policy(struct sched *sched, const struct sched_config *cfg);

/* Numbers of the driver that StatusInfo shows. */
struct sched_times {
    uint64_t n, p50_us, p99_us, p999_us, max_us;
};
struct sched_driver_stats {
    struct sched_times ticks, ticks_cpu, commits; /* ticks_cpu: computed, not waited */
    uint64_t commit_last_us;
    uint32_t clients;
};
void sched_set_driver_stats(struct sched *sched, const struct sched_driver_stats *stats);

/* ---- looking in (status line, simulator) --------------------------------------------------------
 */

struct sched_counts {
    uint32_t nodes_registered, nodes_idle, nodes_lost;
    uint32_t jobs_queued, jobs_placed; /* PLACING, RUNNING, RECOVERING */
    uint64_t jobs_ended, generation;
};
void sched_count(const struct sched *sched, struct sched_counts *ret);

/* Checks every invariant of the state (docs/states.md, "what the simulator checks"); 0, or
 * MS_E_FAILED with the first one that does not hold. O(state): for tests. */
int sched_check(const struct sched *sched, struct ms_err *err);

/* Names, for people. */
const char *sched_job_state_name(enum sched_job_state state);

#endif
