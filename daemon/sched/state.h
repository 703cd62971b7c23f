/* state.h - the core's objects, and the calls between its rooms; nothing outside includes it
 *
 *     conn  <- 0..1 ->  node  <- 0..1 ->  (job, rank)        a node holds at most one rank
 *     job   -> run -> member[rank] -> node                   only while placed, kept for its logs
 *
 * A node is idle when it is REGISTERED and held_job is 0. held_job outlives node->job: a job may
 * have ended while the node has not yet said that it let go of its rank.
 *
 * Memory: struct sched owns all. Tick memory (emit_alloc) lives until the next tick begins. Without
 * memory for a decision the core aborts: nothing was acknowledged yet, and a restart loses nothing.
 * Only what a client asked to store is refused with MS_E_NOMEM instead. */
#ifndef SCHED_STATE_H
#define SCHED_STATE_H

#include "daemon/sched/heap.h"
#include "daemon/sched/list.h"
#include "daemon/sched/sched.h"
#include "daemon/sched/states.h"
#include "daemon/sched/table.h"
#include "proto/macros.h"

#include <stdbool.h>

/* The simulator's copy of the core carries bugs that it can switch on, to show that it finds them.
 */
#ifdef SCHED_PLANTED_BUGS
extern const char *sched_planted; /* name of the bug that is switched on, or NULL */
int sched_is_planted(const char *name);
#define PLANTED(name) sched_is_planted(name)
#else
#define PLANTED(name) 0
#endif

enum timer_kind {
    TIMER_TOPOLOGY, /* dynamic cluster: workers are missing */
    TIMER_ENDING,   /* dynamic cluster: members still have to leave */
    TIMER_START,    /* what loading left to write */
    TIMER_NEWS,     /* watchers of waiting jobs */
    TIMER_FORGET,   /* struct node: lost an hour ago */
    TIMER_PROBE,    /* struct newcomer */
    TIMER_ADOPT,    /* struct run: nodes have to come back */
    TIMER_GRACE,    /* struct run: ranks have to finish their step */
    TIMER_BLAME,    /* struct run: a rank complained about another */
    TIMER_ROUTE,    /* struct route */
    TIMER_KINDS
};

struct timer {
    struct heap_link link;
    int64_t at_ms;
    enum timer_kind kind;
};

struct node_info {
    char node_id[MS_NAME_MAX + 1];
    uint64_t incarnation;
    char host_name[MS_HOST_MAX + 1];
    char host_id[MS_HOST_MAX + 1];
    char data_address[MS_ADDR_MAX + 1];
    char data_unix[MS_ADDR_MAX + 1];
    char isa[MS_NAME_MAX + 1];
    char onednn[MS_NAME_MAX + 1];
    char peer_name[MS_NAME_MAX + 1];
    char cert_name[MS_NAME_MAX + 1];
    uint32_t uid, cores, pid;
    uint64_t memory_bytes;
};

/* What a Register says about the rank that the process holds; job 0: none. */
struct claim {
    uint64_t job, generation, step;
    uint32_t rank;
    bool running;
};

struct conn {
    struct table_link link;
    uint64_t id;
    struct ms_peer peer;
    struct node *node;         /* registered over this connection */
    struct newcomer *newcomer; /* its Register waits for a probe */
    struct list watches;
    uint32_t n_watches;
};

struct node {
    struct table_link link;
    struct list beating; /* in sched.beating while REGISTERED, least recently seen first */
    struct list idle;    /* in sched.idle while idle */
    struct list gone;    /* in sched.gone while LOST or LEFT */
    struct timer forget;
    struct node_info info;
    enum node_state state;
    struct conn *conn; /* REGISTERED only */
    int64_t seen_ms;
    struct job *job; /* placed, and this node is members[held_rank] */
    uint64_t held_job, held_generation;
    uint32_t held_rank;
    uint64_t step;
    struct newcomer *newcomer; /* another process wants this id; the probe is out */
    char reason[MS_TEXT_MAX + 1];
};

/* A Register that waits until the node of the same id has shown whether it lives. */
struct newcomer {
    struct timer timer;
    struct node *node;
    struct conn *conn;
    uint32_t frame_id;
    struct node_info info;
    struct claim claim;
};

enum rank_state {
    RANK_MISSING, /* adopted job: its node is not back yet */
    RANK_PREPARING,
    RANK_READY,
    RANK_TRAINING,
    RANK_DONE,
    RANK_STOPPED,
    RANK_FAILED,
    RANK_LOST,
    RANK_STATES
};

struct member {
    char node_id[MS_NAME_MAX + 1];
    char weights_sha256[65];
    char plan_sha256[65];
    enum rank_state state;
    uint64_t incarnation;
    char *host_name;   /* owned; never NULL */
    char *log_path;    /* owned; never NULL */
    bool unstored;     /* log_path is newer than its row */
    struct node *node; /* while the rank is held; also MISSING: the node that is expected */
    uint32_t pid;
    uint64_t step, steps;
    double seconds;
};

struct progress {
    Ms__Progress msg; /* phase points nowhere: progress_text */
    char phase[24];
};

struct run {
    struct job *job;
    struct member *members; /* job->workers of them */
    uint32_t n_missing, n_ready, n_done, n_stopped;
    struct timer adopt, grace, blame;
    bool cancelling; /* Stop{at_step} is out */
    char cancel_text[MS_TEXT_MAX + 1];
    int32_t blame_code;
    char blame_text[MS_TEXT_MAX + 1];
    bool has_progress;
    struct progress progress;
    struct progress *evals;
    size_t n_evals;
};

struct job {
    struct list lane;       /* placed, ended with members, or ended without: sched.placed ... */
    struct heap_link queue; /* QUEUED */
    struct table_link by_key;
    uint64_t id;
    enum sched_job_state state;
    const char *name, *owner, *key, *run_dir; /* behind the struct */
    const uint8_t *spec;                      /* behind the struct */
    size_t spec_bytes;
    char *reason; /* owned, never NULL; of an ended job */
    uint32_t workers;
    int32_t priority, code;
    uint64_t generation;
    int64_t submitted_ms, started_ms, ended_ms;
    uint64_t steps;
    double seconds;
    char weights_sha256[65];
    char plan_sha256[65];
    struct run *run;
    struct list watches;
    struct list waiters; /* struct waiter: replies of Cancel that are due at the end */
    uint32_t n_waiters;
};

struct watch {
    struct list by_job, by_conn, all;
    struct conn *conn;
    struct job *job;
    uint32_t frame_id;
    uint64_t told; /* hash of the state and reason that were sent last */
};

struct waiter {
    struct list by_job;
    uint64_t conn;
    uint32_t frame_id;
};

struct route {
    struct table_link link;
    struct timer timer;
    uint64_t number;
    uint64_t client; /* conn */
    uint32_t frame_id;
    struct node *node;
    uint64_t job;
    uint32_t rank;
};

/* Jobs in id order. A dropped one leaves a hole until a quarter of them are holes. */
struct job_slot {
    uint64_t id;
    struct job *job; /* NULL: dropped */
    bool ended;
};

struct tick_block {
    struct tick_block *next;
    size_t size, used;
};

struct sched {
    struct sched_config cfg;
    char software[MS_NAME_MAX + 1], database[MS_PATH_MAX + 1];
    struct sched_time now, started;
    uint64_t generation, next_job, next_route;
    uint64_t seed; /* of hashes */

    struct table conns, nodes, keys, routes;
    struct list beating, idle, gone;
    uint32_t n_registered, n_idle, n_gone;
    struct heap timers, queue;
    struct list placed, ended, ended_bare;
    uint32_t n_placed, n_ended, n_members_kept;
    struct job_slot *jobs;
    size_t n_jobs, jobs_room, n_holes;

    struct list watches; /* of all jobs */
    bool loading, draining, place_due;
    struct sched_member_row *orphans; /* while loading: members whose job is not there yet */
    size_t n_orphans, orphans_room;
    char refusal[MS_TEXT_MAX + 1]; /* of durable requests; "" none */
    struct timer start_timer, news_timer;
    uint64_t tick_max_us, commit_last_us;
    uint32_t clients;

    /* SCHED_DYNAMIC */
    enum topo_state topo;
    struct timer topo_timer, ending_timer;
    bool ending, exited;
    int exit_status;
    char exit_text[MS_TEXT_MAX + 1];
    uint8_t *spec; /* job_json of the first worker, owned */
    size_t spec_bytes;
    char spec_digest[65], spec_node[MS_NAME_MAX + 1];

    struct sched_effect *effects;
    size_t n_effects, effects_room;
    struct tick_block *blocks; /* the first one is kept from tick to tick */
};

/* ---- emit.c: tick memory and effects -----------------------------------------------------
 */

void *must(void *p); /* aborts on NULL: see the top of this file */
void *emit_alloc(struct sched *s, size_t bytes);
const char *emit_text(struct sched *s, const char *fmt, ...) MS_PRINTF(2, 3); /* <= MS_TEXT_MAX */
const char *emit_quote(struct sched *s, const char *text);
void emit_log(struct sched *s, enum ms_log_level level, const char *fmt, ...) MS_PRINTF(3, 4);
void emit_send(struct sched *s, uint64_t conn, uint16_t type, uint32_t id,
               const ProtobufCMessage *msg);
void emit_error(struct sched *s, uint64_t conn, uint32_t id, int code, const char *fmt, ...)
    MS_PRINTF(5, 6);
void emit_ok(struct sched *s, uint64_t conn, uint32_t id, const char *text);
void emit_close(struct sched *s, uint64_t conn);
void emit_put_job(struct sched *s, const struct job *job, bool with_spec);
void emit_put_member(struct sched *s, struct job *job, uint32_t rank);
void emit_drop_members(struct sched *s, uint64_t job);
void emit_drop_job(struct sched *s, uint64_t job);
void emit_put_meta(struct sched *s, const char *key, uint64_t value);
void emit_exit(struct sched *s, int status, const char *text);
void emit_fini(struct sched *s);

/* ---- sched.c ------------------------------------------------------------------------------------
 */

void timer_arm(struct sched *s, struct timer *timer, enum timer_kind kind, int64_t at_ms);
void timer_stop(struct sched *s, struct timer *timer);
int64_t after_ms(const struct sched *s, int64_t delay_ms); /* now + delay, INT64_MAX at the most */
void copy_text(char *dst, size_t size, const char *src);   /* cut to fit */
char *dup_text(const char *text);                          /* aborts without memory */

/* ---- conn.c: connections and whose turn a message is --------------------------------------
 */

struct conn *conn_find(const struct sched *s, uint64_t id);
void conn_opened(struct sched *s, const struct sched_event *event);
void conn_closed(struct sched *s, struct conn *conn, const char *reason);
void conn_message(struct sched *s, struct conn *conn, const struct sched_event *event);
/* Closes from this side and forgets it; a node on it must be detached already. */
void conn_drop(struct sched *s, struct conn *conn);

/* ---- node.c: nodes, leases, losses --------------------------------------------------------
 */

struct node *node_find(const struct sched *s, const char *node_id);
struct node *node_add(struct sched *s, const char *node_id); /* NEW; must not exist */
void node_forget(struct sched *s, struct node *node);        /* frees it */
void node_set(struct sched *s, struct node *node, enum node_event event);
void node_touch(struct sched *s, struct node *node); /* heard of just now */
/* Its connection is gone or no longer believed: LOST or LEFT, its rank with it, and whoever waits
 * for its id takes over. The caller closes the connection if it is still open. */
void node_gone(struct sched *s, struct node *node, enum node_event event, const char *reason);
void node_hold(struct sched *s, struct node *node, uint64_t job, uint64_t generation,
               uint32_t rank);
void node_release(struct sched *s, struct node *node); /* idle, if REGISTERED */
bool node_is_idle(const struct node *node);
void node_judge_leases(struct sched *s);
int64_t node_lease_deadline(const struct sched *s);
void on_heartbeat(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_leave(struct sched *s, struct conn *conn, const struct sched_event *event);
void send_heartbeat_ack(struct sched *s, const struct conn *conn, uint32_t id);
uint64_t heartbeat_ms(const struct sched *s);
uint32_t nodes_expected(const struct sched *s);

/* ---- register.c ---------------------------------------------------------------------------
 */

void on_register(struct sched *s, struct conn *conn, const struct sched_event *event);
void register_accept(struct sched *s, struct conn *conn, uint32_t frame_id,
                     const struct node_info *info, const struct claim *claim);
void newcomer_refuse(struct sched *s, struct node *node); /* the old process answered */
void newcomer_accept(struct sched *s, struct node *node); /* it did not; it must be gone already */
void newcomer_drop(struct sched *s, struct newcomer *newcomer); /* its connection closed */
void newcomer_timeout(struct sched *s, struct newcomer *newcomer);

/* ---- dynamic.c: the dynamic cluster's own rules -------------------------------------------
 */

void dynamic_start(struct sched *s);
int dynamic_load(struct sched *s, struct ms_err *err); /* what the loaded jobs mean for it */
/* NULL, or why this worker is refused. */
const char *dynamic_refusal(struct sched *s, const struct node_info *info, const Ms__Register *msg,
                            int *ret_code);
void dynamic_take_spec(struct sched *s, const struct node_info *info, const Ms__Register *msg);
void dynamic_settle(struct sched *s);
void dynamic_timeout(struct sched *s);
void dynamic_job_ended(struct sched *s, const struct job *job);
/* A worker came back for a job whose end is stored: this run is the one that ended with it. */
void dynamic_found_ended(struct sched *s, const struct job *job);
void dynamic_exit(struct sched *s);
const char *dynamic_waiting_for(struct sched *s); /* "" nobody */
bool id_is_rank(const char *node_id, uint64_t *ret_rank);

/* ---- job.c: jobs, where they stand, why they wait -----------------------------------------
 */

struct job *job_find(const struct sched *s, uint64_t id);
struct job *job_find_key(const struct sched *s, const char *owner, const char *key);
size_t job_slot_after(const struct sched *s, uint64_t id); /* index of the first id above */
/* Copies the row; NULL without memory. The job is in no list yet. */
struct job *job_create(struct sched *s, const struct sched_job_row *row);
void job_free(struct job *job);
int job_index(struct sched *s, struct job *job); /* 0 or MS_E_NOMEM */
void job_enqueue(struct sched *s, struct job *job);
void job_set(struct sched *s, struct job *job, enum job_event event);
bool job_is_ended(const struct job *job);
bool job_is_placed(const struct job *job);
const char *job_reason(struct sched *s, const struct job *job); /* "" only while it runs well */
void job_set_reason(struct job *job, const char *text);
void job_keep(struct sched *s, struct job *job); /* it ended: history, and its limits */
struct run *run_create(struct job *job);
void run_free(struct run *run);
int queue_before(const struct heap_link *a, const struct heap_link *b);

/* ---- place.c and rank.c: who gets which rank ----------------------------------------
 */

void place_settle(struct sched *s);
void place_job(struct sched *s, struct job *job, struct node **nodes); /* in rank order */
void run_token(const struct sched *s, const struct job *job, uint8_t ret[MS_TOKEN_LEN]);
int natural_compare(const char *a, const char *b); /* "w2" before "w10" */
/* Chooses want of n nodes (few hosts) and puts them first, in rank order. */
void rank_choose(struct sched *s, struct node **nodes, size_t n, uint32_t want);
const char *isa_least(struct node *const *nodes, uint32_t n);

/* ---- run.c and end.c: a placed job's life and end -----------------------------------
 */

void on_rank_ready(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_rank_done(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_peer_report(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_progress(struct sched *s, struct conn *conn, const struct sched_event *event);
void run_came_back(struct sched *s, struct node *node, const struct claim *claim);
void run_rank_lost(struct sched *s, struct job *job, uint32_t rank, int code, const char *cause);
void run_adopt_timeout(struct sched *s, struct run *run);
void run_grace_timeout(struct sched *s, struct run *run);
void run_blame_timeout(struct sched *s, struct run *run);
void run_stop_at_step(struct sched *s, struct job *job, const char *text);
void send_start(struct sched *s, const struct node *node);
void send_stop(struct sched *s, const struct node *node, uint64_t job, uint64_t generation,
               int code, const char *text, bool at_step);
const char *rank_words(struct sched *s, const struct job *job, uint32_t rank);
const char *log_words(struct sched *s, const struct job *job, uint32_t rank);
void job_end(struct sched *s, struct job *job, enum job_event event, int code, const char *text);
void job_fail(struct sched *s, struct job *job, int code, const char *text);

/* ---- client.c, watch.c, logs.c, info.c ----------------------------------
 */

void on_submit(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_cancel(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_job_query(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_node_query(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_status_query(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_watch(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_log_query(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_log_chunk(struct sched *s, struct conn *conn, const struct sched_event *event);

void waiters_answer(struct sched *s, struct job *job);
void watch_stir(struct sched *s, struct job *job); /* sends it to its watchers */
void watch_news(struct sched *s);                  /* reasons of waiting jobs may have changed */
void watch_tell_news(struct sched *s);             /* TIMER_NEWS */
void watch_end(struct sched *s, struct job *job);  /* the last update */
void watch_drop(struct watch *watch);
void route_timeout(struct sched *s, struct route *route);
void routes_drop_conn(struct sched *s, uint64_t client);
void routes_drop_node(struct sched *s, const struct node *node, const char *reason);

enum info_part { INFO_ROW, INFO_WATCH, INFO_ALL };
/* In tick memory; points into the job, so pack it at once. */
Ms__JobInfo *info_job(struct sched *s, const struct job *job, enum info_part part);
Ms__NodeInfo *info_node(struct sched *s, const struct node *node);

#endif
