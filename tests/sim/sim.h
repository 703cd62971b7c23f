/* sim.h - whole clusters in one process: the real core, everything else made up from one seed
 *
 *     sim_nodes.c, sim_clients.c, sim_evil.c  ->  sim_net.c  ->  sim_sched.c  ->  sched_apply
 *                                                                (the driver)
 *                                                                 |        |
 *                                                            sim_disk.c  model.c: judges
 *
 * The clock is virtual: the world is a heap of events in order of time, then of creation.
 * Everything random comes from the seed, so a failed cluster is run again with tracing on, and says
 * why. */
#ifndef SIM_H
#define SIM_H

#include "daemon/sched/heap.h"
#include "daemon/sched/sched.h"
#include "libworker/node/life.h"
#include "proto/macros.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SIM_NODES_MAX = 1002,
    SIM_JOBS_MAX = 12,
    SIM_OPS_MAX = 100,
    SIM_EVIL_MAX = 3,
    SIM_NODES_PER_CERTIFICATE = 2,
    SIM_LINKS_MAX = 20000,
    SIM_GENERATIONS_MAX = 400,
    SIM_DISK_JOBS_MAX = 48,
    SIM_DISK_ASIDES_MAX = 64,
    SIM_PLAN_MAX = 200, /* of a plan's text */
    SIM_TRACE = 400,    /* events shown of a failed cluster */
    SIM_NEVER = -1,
    SIM_CUTS_MAX = 3,
    SIM_CHECKPOINTS_MAX = 128,
    SIM_WATCH_AGAIN_MS = 6000, /* a watch may have died silently: it is asked for again */
};
#define SIM_FOREVER INT64_MAX

struct world;

/* ---- events ---------------------------------------------------------------------------------- */

enum sim_kind {
    SIM_OPENED,     /* the scheduler accepts link */
    SIM_TO_SCHED,   /* a frame arrives there */
    SIM_TO_ACTOR,   /* ... or here */
    SIM_CLOGGED,    /* much is unsent to link ... */
    SIM_CLEARED,    /* ... it was read */
    SIM_CLOSED,     /* the scheduler learns that link is closed */
    SIM_HUNG_UP,    /* the actor learns it */
    SIM_TICK_END,   /* the driver carries out what a tick decided */
    SIM_TIMER,      /* sched_deadline */
    SIM_RESTART,    /* the scheduler starts again */
    SIM_NODE,       /* node: something is due */
    SIM_OP,         /* op: something is due */
    SIM_EVIL,       /* evil: the same */
    SIM_ADMIN,      /* the operator or the clock does something: enum sim_admin */
    SIM_DISK_FREED, /* the disk has space again */
};

enum sim_admin {
    ADMIN_RELOAD,
    ADMIN_DRAIN,
    ADMIN_STOP,
    ADMIN_WALL_JUMP,
    ADMIN_CLOCK_STUCK,
    ADMIN_CRASH,
    ADMIN_CROWD, /* strangers, rather: some cannot get in */
    ADMIN_AWAY,  /* it stands still, and a node that never gets ready has to come back after it */
    ADMIN_DARK,  /* no frame of any node arrives for some leases */
    ADMIN_BUSY,  /* ... and the scheduler looks at the clock late, when all are over */
    ADMIN_ALLOW, /* two nodes for each certificate, again */
    ADMIN_MASSACRE, /* all nodes die at once, the scheduler perhaps with them */
    ADMIN_RESCUE,   /* whoever is missing for a job that recovers is started again */
};

struct sim_event {
    struct heap_link heap;
    int64_t at;
    uint64_t order;
    enum sim_kind kind;
    uint32_t target; /* link, node or op */
    uint64_t stamp;  /* overtaken if it is not the target's current one */
    bool waited;     /* a frame: in the kernel of a process that hung */
    size_t size;     /* of the frame behind the event */
};

/* ---- links ------------------------------------------------------------------------------------
 */

struct sim_link {
    bool is_node, is_evil;
    uint32_t actor;
    uint64_t epoch;                      /* of the actor's process */
    bool open_here, open_there;          /* actor's end, scheduler's end */
    bool known;                          /* the core was told that it opened */
    int64_t seen_at;                     /* the scheduler took its last frame, or its end */
    int64_t last_up, last_down;          /* arrival of the last frame each way: links keep order */
    int64_t waits_until;                 /* frames before are read then, in their order */
    int64_t stalled_from, stalled_until; /* frames sent meanwhile arrive at the end, or never */
};

/* ---- training: of jobs that recover -------------------------------------------------------------
 */

/* What a process holds of a training; job 0: nothing, it is fresh. The digest follows from each
 * step that it is made of, in their order. */
struct sim_replica {
    uint64_t job, step, digest;
    bool is_copy; /* no step was made of it here: who holds more is followed */
};

enum sim_phase { SIM_COMPUTES, SIM_SUMS, SIM_COMMITS };

struct sim_cut { /* two workers cannot reach each other; both reach the scheduler */
    uint32_t a, b;
    int64_t from, until;
};

/* A switch fails: those on one side do not reach those on the other, and all reach the scheduler.
 * It begins when a job that recovers trains and a spare is idle. */
struct sim_split {
    bool is_due;
    bool whole_host;     /* one side is a host; else a node alone */
    uint32_t lone;       /* that node, or one of that host */
    int64_t from, until; /* until 0: it has not begun */
};

struct sim_checkpoint { /* on the disk of a host */
    char host[16];
    struct sim_replica replica;
    bool torn;
};

struct sim_training {    /* a job's, as it has to be */
    uint64_t job, start; /* digest before its first step: follows from its plan */
    uint64_t furthest;
    uint32_t workers;
};

/* ---- nodes ------------------------------------------------------------------------------------
 */

struct sim_order { /* an Assign, as far as a worker needs it */
    uint64_t job, generation;
    uint32_t rank, workers;
    enum ms_plan_from plan_from;
    char plan[SIM_PLAN_MAX]; /* as it was told; "": not yet */
    bool recovers;
};

struct sim_eval {
    uint64_t step;
    uint32_t epoch;
    double loss, accuracy;
};

struct sim_node {
    char id[16];
    char cert[16]; /* the name of its certificate */
    char host[16];
    uint32_t worker_num;
    bool other_job; /* brings another job file */
    bool twin;      /* a second process with the id of another */
    uint32_t stuck; /* so often it never gets ready, and beats */
    bool flaps;     /* comes and goes while it is idle and faults happen */
    bool slow;      /* comes back late, as one does that a full door turned away, and is patient */
    int64_t start_at, die_at, stall_at, stall_ms, hang_at; /* the script */
    uint32_t cuts_left; /* so often its link is reset while it has a rank ... */
    int64_t cut_at;     /* ... next at this time */
    int64_t die_before; /* no more deaths after this */
    uint32_t deaths_left;

    bool alive, gone_for_good, hung;
    int64_t hung_at;
    uint64_t hung_boot; /* of the scheduler; and its stand-stills: a lease may be stretched */
    uint64_t incarnation, epoch, stamp;
    uint32_t link; /* index + 1; 0 none */
    bool registered;
    int64_t heard_at, beat_at, retry_at, register_at;

    struct life life; /* as msworker has one */
    int64_t work_at;  /* the trainer gets on with his duty */
    int32_t unsaved;  /* enum ms_code: all steps are made, and what it was to save is not */
    uint32_t n_saves; /* so often it tried that */
    bool stands;      /* it ended where it stood, and did not save: it says no digest */
    bool has_hung;    /* ... and its disk stood still */
    bool is_recalled; /* asked to save, though it had said that it is done: it is free all the same
                       */
    uint64_t recall_lost; /* ... which it did not hear, once: in that generation */
    uint64_t job, generation, generation_max, step; /* what it says that it holds */
    uint32_t rank, workers;
    enum ms_plan_from plan_from; /* as it was told with its rank */
    char plan[SIM_PLAN_MAX];     /* as it was told; "": not yet */
    bool has_chosen;             /* the trainer waits for it */
    struct sim_order next;       /* kept until the rank in hand is let go, or goes on as that */
    bool recovers;               /* its job does */
    uint64_t saved_job, saved;   /* the newest checkpoint that this process has written */
    struct sim_replica replica;
    struct sim_eval evals[MS_EVALS_MAX]; /* of the rank in hand: told again after a reconnect */
    uint32_t n_evals;
    uint64_t mesh; /* generation whose mesh it is in; 0: none ... */
    uint32_t seat; /* ... as this rank */
    enum sim_phase phase;
    int64_t peer_until;       /* it waits for its peers; SIM_FOREVER: for none */
    int64_t notice_at;        /* it learns that a peer is gone: this one */
    uint32_t notice, accused; /* accused: it told of that one, and holds */
    uint32_t n_short;         /* so often this process has had too little for a mesh */
    enum ms_state_from state_from;
    uint32_t state_rank;
    int64_t wake_at; /* it hangs until then; SIM_FOREVER: it never wakes */
    int64_t woke_at; /* ... and did; 0: never */
    bool started, stopped, leaving;
    bool renews;  /* its process begins anew after this rank ... */
    bool unfit;   /* ... which it cannot serve */
    bool no_good; /* a newcomer that cannot serve this rank, nor later */
    const char *isa;
    int64_t lease_ms;                   /* as it was told */
    bool deaf;                          /* finishes no step when asked to */
    uint32_t lies_left;                 /* it comes back and is wrong about its rank */
    bool is_wrong;                      /* ... and is, until somebody tells it */
    uint64_t lied_of;                   /* the job of which it last was; 0: never */
    uint64_t last_job, last_generation; /* of the process before */
    uint32_t last_rank;
    uint8_t stamp_told[MS_STAMP_LEN]; /* the last one, to be brought back */
    size_t stamp_bytes;
    uint64_t away_job;                  /* breaks off shortly before that has to be ready */
    uint64_t owed_job, owed_generation; /* a RankDone that has had no answer, of a rank let go */
    uint32_t owed_rank;
};

/* ---- clients ----------------------------------------------------------------------------------
 */

enum sim_op_kind {
    OP_SUBMIT,
    OP_CANCEL,
    OP_WATCH,
    OP_LIST,
    OP_LOGS,
    OP_STRANGER,
    OP_NODES,
    OP_STATUS,
    OP_EVENTS,
    OP_FETCH,
    OP_KINDS
};

/* Who sits at a terminal. Two of them may share a key, never a job. */
enum { PEOPLE = 6, PEOPLE_ADMINS = 2 /* the last ones */ };

struct sim_op {
    enum sim_op_kind kind;
    uint32_t submit; /* index of the OP_SUBMIT that it is about */
    uint32_t person;
    uint32_t rank;
    uint64_t offset;
    uint64_t asked; /* job, with the last question: a key that is forgotten gets another one */
    uint64_t seen;  /* OP_EVENTS that follows: everything up to this number */
    int64_t at;
    bool at_step;
    bool done, sent;
    uint32_t link;
    uint64_t stamp, epoch;
    int64_t deadline, longer_ms; /* it waits so much longer where its connection is well */
    char last_state[16];
    char last_reason[MS_TEXT_MAX + 1];
    /* OP_SUBMIT */
    uint32_t workers;
    int32_t priority;
    uint64_t job;           /* acknowledged id, 0 none */
    uint32_t bad_rank_code; /* 0: it trains well; else what rank 0 does */
    bool digests_differ, plans_differ;
    bool two_plans; /* its rank 0 chooses a second time */
    uint32_t plan;  /* it brings this one; 0: none */
    bool last_step; /* its ranks finish whatever somebody wants of the next step */
    uint32_t spec_bytes;
    bool recovery;
    uint32_t epochs; /* its first rank shows so many at once */
    uint32_t burst;  /* asks so often at once, over one connection */
    uint32_t key;    /* its number among those of its person */
    bool cancel_acked;
    char cursor[MS_CURSOR_MAX + 1]; /* OP_NODES: the next page */
};

/* ---- evil peers: whatever bytes allow ----------------------------------------------------------
 */

struct sim_evil {
    struct ms_peer peer;
    char name[16];
    bool is_thief;
    char ids[3][24]; /* that begin with its certificate's name */
    uint32_t link, next_id, who;
    uint64_t epoch, stamp;
};

/* ---- disk -------------------------------------------------------------------------------------
 */

struct sim_told { /* an event, as far as a start needs it */
    uint64_t seq, job;
    int64_t at_ms;
    char kind[33], principal[MS_PRINCIPAL_MAX + 1];
};

struct sim_plan {
    char sha256[65], text[SIM_PLAN_MAX];
};

struct sim_disk {
    struct sim_plan plans[SIM_DISK_JOBS_MAX];
    size_t n_plans;
    struct sched_aside_row asides[SIM_DISK_ASIDES_MAX];
    size_t n_asides;
    struct sched_job_row jobs[SIM_DISK_JOBS_MAX];
    size_t n_jobs;
    struct sched_member_row *members; /* kept from cluster to cluster */
    size_t n_members, members_room;
    struct sim_told *events; /* kept likewise */
    size_t n_events, events_room;
    uint64_t generation, next_job, ticks, last_event;
    bool has_generation, has_next_job;
    bool full;
    bool spent; /* ... and the reserve with it: no end can be stored */
};

struct sim_given { /* the highest of each that anybody was given */
    uint64_t job, generation, event, tick;
};

/* ---- the world --------------------------------------------------------------------------------
 */

struct sim_generation { /* what nodes were told about it */
    uint64_t generation, job;
    char plan[SIM_PLAN_MAX]; /* "": nobody was yet */
    uint32_t workers;
    uint8_t token[MS_TOKEN_LEN];
    uint64_t *holders; /* incarnation of the process that got each rank */
    /* the mesh of its ranks, where the job recovers */
    struct sim_seat {
        uint32_t node;
        uint64_t epoch;
        bool here, gone;
    } * seats;
    bool stands;
    uint32_t source; /* rank that the others have their state from ... */
    enum ms_state_from from;
    struct sim_replica agreed; /* ... which is this */
    struct sim_sum { /* of the step in hand, and of the one that some have not committed yet */
        uint64_t step, sum, n;
    } sums[2];
};

struct world {
    uint64_t seed, rng, order;
    int64_t now;
    struct heap events;
    uint8_t *memory; /* of events: given back all at once */
    size_t memory_used, memory_size;
    uint64_t n_events;

    enum sched_mode mode;
    int64_t lease_ms, topo_ms, faults_end, end_at;
    uint32_t jobs_queued_max, jobs_owner_max, jobs_admin, specs_mib; /* 0: never reached here */
    uint32_t worker_num, jobs_kept_max, members_kept_max, lost_nodes_max, events_kept_max;
    bool goes_dark; /* all its nodes fall silent at once */
    bool large;     /* hundreds of nodes: looked at less often */
    uint32_t nodes_per_certificate;
    bool certificate_ids; /* else a certificate takes any node id */
    bool shares;          /* nodes 0 and 1 have one certificate */
    bool wall_jumps;      /* the wall clock cannot order anything */
    int64_t wall_offset, clock_stuck_at, clock_stuck_until;
    int chaos; /* 0: nothing goes wrong */

    struct sched *sched; /* NULL: down */
    bool tick_open, over;
    int exit_status;
    /* a dynamic cluster: in which boot its scheduler knows of the job's end, and since when */
    uint64_t end_boot;
    int64_t known_ended_at;
    uint64_t restarts_job; /* of which a worker was asked to end, and so long the next one may be */
    int64_t restarts_until;
    uint32_t crashes_left;
    uint64_t timer_stamp, boot, freezes;
    int64_t timer_for, timer_at; /* deadline of the timer that is armed; when it fires */
    int64_t frozen_until;
    uint32_t refusals_left;

    struct sim_disk disk;
    struct sim_disk copy; /* as it was some time ago; no ticks: none was taken */
    int64_t copy_second;  /* when one was last put back */
    struct sim_given given;
    bool real;           /* the store keeps it all, on a disk of sim_vfs.c; disk is what it owes */
    struct store *store; /* NULL: closed */
    enum { NO_BAD_LUCK, SYNC_FAILED, START_DIES } bad_luck;
    bool checkpoint_failed;                 /* the next commit must say so */
    bool in_doubt;                          /* nobody knows whether the last commit is there */
    struct sim_disk disk_after, disk_found; /* with it; what was loaded */
    struct model *model;
    size_t effects_seen;
    uint32_t n_links, links_room;
    uint8_t *frame; /* joined from its parts; kept likewise */
    size_t frame_room;
    struct sim_link *links; /* kept from cluster to cluster */
    struct sim_evil evils[SIM_EVIL_MAX];
    uint32_t n_evils;
    struct sim_node nodes[SIM_NODES_MAX];
    uint32_t n_nodes;
    struct sim_op ops[SIM_OPS_MAX];
    uint32_t n_ops;

    struct sim_generation generations[SIM_GENERATIONS_MAX];
    uint32_t n_generations;
    bool recovery;   /* dynamic: of its one job */
    int64_t peer_ms; /* so long a rank waits for its peers */
    struct sim_cut cuts[SIM_CUTS_MAX];
    uint32_t n_cuts;
    struct sim_split split;
    struct sim_training trainings[SIM_DISK_JOBS_MAX];
    uint32_t n_trainings;
    struct sim_checkpoint checkpoints[SIM_CHECKPOINTS_MAX];
    uint32_t n_checkpoints;
    uint8_t stamp_of[PEOPLE][MS_STAMP_LEN]; /* with their last Submitted */
    bool has_stamp_of[PEOPLE];
    uint64_t generation_sent;
    uint64_t generation_sent_job;

    bool failed, tracing;
    char failure[600];
    char trace[SIM_TRACE][240];
    uint64_t n_trace;
};

/* sim_world.c */
extern uint32_t world_nodes_min, world_nodes_max; /* so many in each cluster; 0: as its seed says */
void world_run(struct world *w, uint64_t seed, int mode, bool tracing); /* mode < 0: mixed */
void world_fini(struct world *w);
void world_print_trace(const struct world *w);
void sim_fail(struct world *w, const char *fmt, ...) MS_PRINTF(2, 3); /* keeps the first */
void sim_trace(struct world *w, const char *fmt, ...) MS_PRINTF(2, 3);
uint64_t sim_random(struct world *w);
uint64_t sim_below(struct world *w, uint64_t n);
bool sim_chance(struct world *w, unsigned percent);
bool world_is_tight(const struct world *w);               /* submits may find no place */
uint32_t world_who(const struct world *w, uint32_t link); /* the person at its other end */
bool world_is_evil(const struct world *w, uint32_t link);
bool world_token_is_new(const uint8_t *token, uint64_t seed); /* in no other cluster */
uint32_t person_who(uint32_t person);
void person_peer(uint32_t person, struct ms_peer *ret);
bool person_is_refused(bool is_admin, int32_t priority);
struct sim_event *sim_at(struct world *w, int64_t at, enum sim_kind kind, uint32_t target,
                         uint64_t stamp, size_t extra);
static inline uint8_t *sim_event_bytes(struct sim_event *event)
{
    return (uint8_t *)(event + 1);
}

/* sim_net.c */
/* actor: a node, an op, or SIM_IS_EVIL and an evil one. 0: refused. */
#define SIM_IS_EVIL (1U << 31)
uint32_t net_open(struct world *w, bool is_node, uint32_t actor, uint64_t epoch);
void net_up(struct world *w, uint32_t link, uint16_t type, uint32_t id,
            const ProtobufCMessage *msg);
void net_down(struct world *w, uint32_t link, const uint8_t *frame, size_t size);
void net_close_here(struct world *w, uint32_t link);  /* the actor closes, or died */
void net_close_there(struct world *w, uint32_t link); /* the scheduler does */
void net_scheduler_died(struct world *w);
bool net_is_healthy(const struct world *w, uint32_t link, int64_t since);

/* sim_disk.c */
void disk_put_job(struct world *w, struct sim_disk *disk, const struct sched_job_row *row);
void disk_put_member(struct sim_disk *disk, const struct sched_member_row *row);
void disk_put_plan(struct world *w, struct sim_disk *disk, const char *sha256, const char *text);
void disk_drop_plan(struct sim_disk *disk, const char *sha256);
void disk_put_aside(struct world *w, struct sim_disk *disk, const struct sched_aside_row *row);
void disk_drop_aside(struct sim_disk *disk, const char *key);
const char *disk_plan(const struct sim_disk *disk, const char *sha256); /* NULL: none */
void disk_put_meta(struct sim_disk *disk, const char *key, uint64_t value);
void disk_put_event(struct sim_disk *disk, const struct sched_event_row *row);
bool disk_has_event(const struct sim_disk *disk, uint64_t seq);
void disk_clear(struct sim_disk *disk);
void disk_fini(struct sim_disk *disk); /* ... and its room */
void disk_copy(struct world *w, struct sim_disk *to, const struct sim_disk *from);
const struct sched_job_row *disk_find_job(const struct sim_disk *disk, uint64_t id);
const struct sched_member_row *disk_find_member(const struct sim_disk *disk, uint64_t job,
                                                uint32_t rank);
void disk_write(struct world *w, const struct sched_effect *effects, size_t n);
int disk_load(struct world *w, struct sched *sched, struct ms_err *err);
const struct sched_job_row *disk_job(const struct world *w, uint64_t id);
const struct sched_member_row *disk_member(const struct world *w, uint64_t job, uint32_t rank);

/* sim_store.c */
void real_start(struct world *w);
void real_end(struct world *w);
int real_load(struct world *w, struct ms_err *err); /* 1: died of it */
bool real_commit(struct world *w, const struct sched_effect *effects, size_t n, bool crash);
void real_crash(struct world *w);
void real_stop(struct world *w);

/* sim_sched.c */
void driver_config(const struct world *w, struct sched_config *ret);
void driver_start(struct world *w);
void driver_on(struct world *w, struct sim_event *event); /* anything that the core hears */
void driver_tick_end(struct world *w);
void driver_arm(struct world *w);
void driver_admin(struct world *w, enum sim_admin what);
/* The bytes of a SEND, until the next call. */
const uint8_t *driver_frame(struct world *w, const struct sched_effect *effect, size_t *ret_size);
extern bool sim_blind; /* do not ask sched_check: only the world judges */

/* sim_nodes.c */
/* The text of plan n, from 1 on. Returns buf. */
const char *plan_text(uint64_t n, char buf[SIM_PLAN_MAX]);
const char *plan_bits(const char *text); /* the digest that ranks report; until the next call */
void node_wake(struct world *w, uint32_t i);
void node_breaks_off(struct world *w, uint32_t i, int64_t ms); /* comes back then */
void node_frame(struct world *w, uint32_t i, uint16_t type, uint32_t id,
                const ProtobufCMessage *msg);
void node_hung_up(struct world *w, uint32_t i);
void node_schedule(struct world *w, uint32_t i, int64_t at);
void node_kill(struct world *w, uint32_t i, bool for_good);
/* It has the job file of that job, as a dynamic cluster's workers bring it, and their number. */
void node_mend(const struct world *w, struct sim_node *node, const uint8_t *spec, size_t bytes);
void node_peer(const struct sim_node *node, struct ms_peer *ret);

void node_work_at(struct world *w, struct sim_node *node, int64_t at);
int node_tell(struct sim_node *node, enum life_event event, int code);
void node_done(struct world *w, struct sim_node *node, int32_t code, bool stopped);
void node_tell_saved(struct world *w, const struct sim_node *node); /* else the next step does */
void node_let_go(struct world *w, struct sim_node *node); /* waits for no Stop: it leaves */
void node_report(struct world *w, struct sim_node *node, uint32_t peer);
void node_ready(struct world *w, struct sim_node *node);
void node_progress(struct world *w, struct sim_node *node);

/* sim_mesh.c: ranks of one generation, and who reaches whom */
struct sim_generation *mesh_of(struct world *w, const struct sim_node *node); /* or NULL */
void mesh_join(struct world *w, struct sim_node *node);
/* All are there, and reach each other. */
bool mesh_stands(struct world *w, struct sim_generation *mesh);
/* It goes out: with its process (the others see that), or only gives the mesh up. */
void mesh_leave(struct world *w, struct sim_node *node, bool is_seen);
bool mesh_reaches(const struct world *w, const struct sim_generation *mesh, uint32_t a, uint32_t b);
void mesh_split(struct world *w, const struct sim_node *node); /* it trains: the moment for it */
struct sim_node *mesh_node(struct world *w, const struct sim_generation *mesh, uint32_t rank);

/* sim_train.c: a trainer of a job that recovers */
bool train_recovers(const struct world *w, uint64_t job);
void train_due(struct world *w, struct sim_node *node, uint32_t bad);
void train_start(struct world *w, struct sim_node *node);
void train_peer_gone(struct world *w, struct sim_node *node);
void train_give_up(struct world *w, struct sim_node *node); /* LIFE_HOLD, and no round follows */
uint64_t train_steps(const struct world *w, uint64_t job);
const char *train_digest(const struct sim_replica *replica, char ret[65]);
void train_check_end(struct world *w, const struct sched_job_row *row);
/* No step is lost while a process lives that holds it: of who is told to let go of a job that goes
 * on, and of a job that goes on after that step. */
void train_check_stop(struct world *w, uint64_t conn, uint64_t job, uint64_t generation);
void train_check_goes_on(struct world *w, uint64_t job, uint64_t step);

/* sim_clients.c */
void op_wake(struct world *w, uint32_t i);
void op_frame(struct world *w, uint32_t i, uint16_t type, uint32_t id, const ProtobufCMessage *msg);
void op_hung_up(struct world *w, uint32_t i);
/* Has its answer, or follows a job that nothing happens to. */
bool op_is_at_rest(const struct world *w, const struct sim_op *op);
void op_cancel_now(struct world *w, uint64_t job); /* who wants to at its step, sooner or later */
struct sim_op *op_of_job(struct world *w, uint64_t job); /* its OP_SUBMIT, or NULL */

/* sim_evil.c */
void evil_draw(struct world *w);
void evil_wake(struct world *w, uint32_t i);
void evil_frame(struct world *w, uint32_t i, uint16_t type, const ProtobufCMessage *msg);
void evil_hung_up(struct world *w, uint32_t i);

/* sim_loss.c */
void loss_rehearse(struct world *w, struct sched_time now);

/* sim_copy.c */
void copy_take(struct world *w); /* now and then */
void copy_rehearse(struct world *w, struct sched_time now);

/* sim_check.c */
void check_sent(struct world *w, const struct sched_effect *effect);
void check_plan(struct world *w, const struct sim_node *node, const Ms__Plan *msg);
void check_assign(struct world *w, const struct sim_node *node, const Ms__Assign *msg);
void check_heard(struct world *w, const char *why); /* the scheduler goes */
void check_end(struct world *w);

#endif
