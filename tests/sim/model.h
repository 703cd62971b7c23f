/* model.h - what docs/states.md and docs/protocol.md promise, as a plain and slow machine
 *
 *     event  ->  model_hears  ->  sched_apply  ->  model_judges(its effects)
 *
 * The model sees what crosses the core's border and nothing else: who connected, each message, each
 * row and frame that came out of it, the time. From that it keeps its own nodes, jobs, watches and
 * open questions in unsorted arrays, and judges after every event:
 *   - what came out was allowed: to this connection, with these bytes, now;
 *   - what had to come out did: an answer, a Stop, a placement, an end.
 * Where timing is free it accepts a range. A broken promise is sim_fail. */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "tests/sim/sim.h"

struct m_hold { /* a rank that a process has, or says it has; job 0: none */
    uint64_t job, generation;
    uint32_t rank;
};

struct m_node {
    char id[MS_NAME_MAX + 1];
    char owner[MS_PRINCIPAL_MAX + 1]; /* who registered it */
    char host_name[MS_HOST_MAX + 1], host_id[MS_HOST_MAX + 1];
    uint64_t folder; /* of its jobs; 0: not known */
    bool cut_off;    /* as a round begins: its machine was not reached by that of a rank */
    char data_address[MS_ADDR_MAX + 1], data_unix[MS_ADDR_MAX + 1];
    char isa[MS_NAME_MAX + 1], cert_name[MS_NAME_MAX + 1];
    uint32_t host; /* name of its key */
    uint64_t incarnation;
    uint32_t uid, level, pid, physical;
    uint64_t conn;   /* 0: not registered */
    bool came;       /* registered since the start, or since it went away */
    bool leaving;    /* its process said so */
    bool told_end;   /* ... of a dynamic cluster: it was, since it registered */
    bool anew;       /* and as it went, that it comes back in a moment */
    int64_t stop_at; /* mono, when it was last told Stop; moved on likewise */
    int64_t heard;   /* mono; moved on while the scheduler stood still */
    int64_t spoke;   /* mono, as it was */
    bool owes_word;  /* told to stop at the step, and has said nothing since */
    int64_t probed;  /* when a newcomer asked for its id; SIM_NEVER */
    uint64_t prober; /* ... over this connection */
    struct m_hold hold;
};

struct m_name {
    char text[MS_HOST_MAX + 2];
    size_t node, host; /* that is called so: index + 1; 0: none */
    bool is_here;      /* the host: one of its nodes is registered */
};

enum { M_HOST_LOSSES = 2 * MS_HOST_LOSSES };

struct m_host {   /* that lost a node while a job got ready there; none: all is well */
    uint32_t key; /* name */
    uint32_t vain_least, vain_most; /* such losses since a job started there */
    int64_t from, until;            /* paused until: between these two */
    int64_t
        worked_until;    /* a pause that began before a job started there, until then at the most */
    int64_t paused_at;   /* the last time */
    struct m_host_loss { /* of processes with a rank of a job that recovers, the last of them */
        int64_t at;
        char node[MS_NAME_MAX + 1], owner[MS_PRINCIPAL_MAX + 1];
        uint64_t incarnation, job;
        uint32_t rank;
        bool perhaps; /* it may have been forgotten */
    } losses[M_HOST_LOSSES];
    size_t n_losses;
    bool is_stored; /* as set aside */
};

struct m_gone { /* a node that is lost or left */
    char id[MS_NAME_MAX + 1], owner[MS_PRINCIPAL_MAX + 1];
    int64_t at;
    bool alone;      /* no other one of its owner's was gone since */
    uint32_t losers; /* so many have lost nodes since, at the most */
};

enum m_pause { M_NOT_PAUSED, M_PERHAPS, M_PAUSED };

struct m_conn {
    uint64_t id;
    struct ms_peer peer;
    uint32_t who; /* person; workers all have their own */
    bool is_worker, is_admin;
    bool clogged;     /* much is unsent to it: news wait */
    bool replaced;    /* its process has registered over another one: it has to be closed */
    bool false_stamp; /* brought with Register: nobody was ever told it */
    bool registering; /* Register has had no answer */
    bool succeeds;    /* ... and another process of its node was there: it gets its place */
    uint32_t register_id;
    struct m_node asked; /* what it says that it is */
    struct m_hold claim;
    uint64_t claim_step;
    bool claim_runs;
};

struct m_rank {
    char node[MS_NAME_MAX + 1];
    char owner[MS_PRINCIPAL_MAX + 1]; /* who registered that node: nobody else takes the rank up */
    uint64_t incarnation;
    bool missing, lost, ready, started, done, stopped;
    bool refused;       /* came back and was turned away */
    bool leaving;       /* failed before the start, and its process leaves: that is why */
    bool accused;       /* another rank cannot reach it */
    bool vacant;        /* nobody has it: node and incarnation are whose it was */
    bool is_final;      /* ... and that process had ended it, or cannot serve it */
    bool is_back;       /* its process took it back since the job was asked to stop */
    bool gives_up;      /* its process did, and the job goes on ... */
    bool leaves;        /* ... because that process ends */
    bool has_plan;      /* its process was ready once */
    bool may_lack_plan; /* ... and may have begun anew since: it is told once more */
    uint64_t ready_in;  /* ... in this generation, the last time */
    bool has_state;     /* ... and trained, in this job */
    bool unknown;       /* after a restart: until it is back */
    bool was_missing;   /* until another process registered in its place */
    uint32_t unready; /* processes that ended before they were ready for it; since the last start */
    /* of them: others did not reach it, and another idle node was left, at the most and surely */
    uint32_t missed, missed_least;
    uint64_t
        settled; /* generation in which it is to stop, for it knows no newer one; 0: the job's */
    bool said_ready;
    uint64_t ready_step; /* as it said with that */
    uint8_t ready_digest[MS_STATE_DIGEST_LEN];
    bool away; /* vacant, and perhaps its process comes back: that loss is none of these yet */
    bool away_unready;            /* ... and it was none of the ready ones */
    char holder[MS_NAME_MAX + 1]; /* node of its last process that held the state; "": it ended */
    int64_t holder_lost, holder_stretch; /* mono */
    bool is_cut; /* ... and the end of its connection is all that was seen */
    uint32_t missed_before, missed_least_before; /* ... and these */
    uint32_t losses, losses_now;                 /* without a step; since the job last started */
    bool lost_in_round;                          /* it did not start since */
    uint64_t lost_at;                            /* step of the job */
    uint32_t wall_losses;          /* at the furthest step at which it was ever lost ... */
    uint64_t wall;                 /* ... this one */
    char host[MS_HOST_MAX + 1];    /* name of its node's */
    char machine[MS_HOST_MAX + 1]; /* id of that; "": not known since a restart */
    bool stored;                   /* in this event ... */
    char stored_node[MS_NAME_MAX + 1];
    uint64_t stored_incarnation;
    bool tried;     /* it made its steps, and could not save the weights, since all were asked to */
    bool saving;    /* it was asked to, after its end, and has not answered */
    bool said_well; /* it ended well before a round that is due: has_said */
    bool passed_over; /* it is not over, and nobody waits for it any more */
    bool has_said;    /* RankDone, which counts for nothing while a round is due */
    bool complains;   /* second-hand: somebody else's end is the cause */
    int32_t code;
    char text[MS_TEXT_MAX + 1];
    char plan[65], weights[65];
    uint32_t plan_told; /* in this event */
    bool came_now;      /* ... it came back */
    char log[96];       /* as it was told with RankReady */
    uint64_t steps;
    uint64_t step; /* as it last said */
    uint32_t pid;  /* of the process that has it, or had it last */
};

struct m_pair { /* two processes that do not reach each other; the same: it speaks of itself */
    uint64_t a, b, step;
    char machine_a[MS_HOST_MAX + 1], machine_b[MS_HOST_MAX + 1];
    uint32_t n;
    bool is_new; /* since the job last started */
    bool firm;   /* both trained */
};

struct m_former { /* a process whose rank another one has, and that may hold the state */
    uint32_t rank;
    char node[MS_NAME_MAX + 1], owner[MS_PRINCIPAL_MAX + 1];
    uint64_t incarnation, step;
    bool here, said, was_ready, has_state;
    bool awaited; /* a restart knows of it */
};

struct m_said { /* a RankPlan, and what it is */
    enum m_said_kind { M_NOBODY, M_CHOSEN, M_AGAIN, M_OTHER, M_REFUSED, M_FULL } from;
    uint64_t job, conn; /* conn: who has to hear alone */
};

struct m_progress { /* what a job shows of its training */
    uint64_t step;
    uint32_t epoch;
    double loss, accuracy;
};

struct m_job {
    uint64_t id;
    uint32_t who;
    char owner[MS_PRINCIPAL_MAX + 1], key[MS_NAME_MAX + 1], name[MS_NAME_MAX + 1];
    char run_dir[MS_PATH_MAX + 1];
    uint8_t *spec;
    size_t spec_bytes;
    char plan[SIM_PLAN_MAX]; /* as it is stored; "": none */
    bool plan_given;
    uint32_t workers;
    int32_t priority;
    bool recovery;
    char tag[MS_JOB_TAG_LEN + 1]; /* as its ranks are told; "": nobody was told yet */
    enum sched_job_state state;
    uint64_t generation;
    int32_t code;
    char reason[MS_TEXT_MAX + 1];
    bool cancelled; /* somebody who may asked for its end */
    bool cancel_at_step, cancel_stored;
    bool stop_told;       /* its ranks were asked to stop: the grace runs */
    bool stands_for_good; /* ... that no Start comes any more */
    bool cancel_due;      /* at once, in this event */
    bool cut_off; /* the scheduler ended while it was placed: that does not count as a try */
    int64_t cancel_at, cancel_stretch, cancel_late_ms;  /* late: after a restart nodes come first */
    int64_t missing_since, missing_stretch, missing_ms; /* how long, at least; SIM_NEVER */
    int64_t placed_at, placed_stretch;
    int64_t unready_at, unready_stretch; /* ... all this time, and nobody that it is the fault of */
    bool missing_again; /* more of its nodes went away meanwhile: it may be longer */
    char cancel_reason[MS_TEXT_MAX + 1];
    int64_t blame_at, blame_stretch; /* first complaint; SIM_NEVER ... */
    bool complaint_judged;           /* in this event, of a job that stops */
    uint32_t blamed, blamed_by; /* ... of this rank, by that one: by itself, if it is the same */
    int64_t ended_ms;
    bool has_members; /* stored, of a job that is queued */
    bool never_was;   /* its commit failed */
    bool dropped, members_dropped, ended_now, changed;
    uint64_t furthest;            /* step that anybody told of, since the start */
    uint64_t told;                /* rank 0 will not make this step again, nor those before it */
    uint32_t rounds;              /* since it was placed */
    uint64_t ran_in, ran_before;  /* generations in which it last started */
    bool round_due;               /* its ranks stand still until the next generation */
    int64_t linked_at;            /* mono: when a link of it was judged last, and a rank moved */
    bool went_on;                 /* a step was told since it started, or the scheduler did */
    bool stands, met_unfit;       /* until they train; since then one could not serve */
    uint64_t unfit[MS_UNFIT_MAX]; /* processes that could not, for a while ... */
    uint32_t n_unfit;             /* ... the last of so many */
    int64_t unfit_at;             /* mono, of the first of them */
    char stumbled[MS_UNFIT_MAX][MS_NAME_MAX + 1]; /* nodes that are asked last, likewise */
    uint32_t n_stumbled;
    int64_t not_before, not_before_stretch; /* mono: no round until then ... */
    int64_t stood_at;                       /* ... as was settled at that time */
    bool has_pause;                         /* this round begins before that */
    int64_t again_at, again_stretch;        /* mono: no round at all until then; 0: may be */
    struct m_pair pairs[MS_LINKS_MAX];
    uint32_t n_pairs;
    struct m_former *formers; /* workers and MS_FORMERS_MORE of them */
    uint32_t n_formers;
    int64_t formers_until, formers_stretch;   /* mono: so long a restart waits for them */
    int64_t not_back, not_back_stretch;       /* mono: who gave way is asked before them */
    int64_t wants_until, wants_until_stretch; /* mono: idle nodes are kept for its ranks */
    int64_t spare_at,
        spare_stretch;          /* mono: who keeps its state lets go of it, where it lacks nodes */
    int64_t let_go_at;          /* ... the last of them did */
    char kept[MS_TEXT_MAX + 1]; /* what a rank that stopped says it saved; "": nothing */
    uint64_t kept_step;         /* ... of that step */
    uint32_t saver;             /* ... which one: its weights are the job's */
    bool late_asked;            /* a rank that is over was asked to, ... */
    uint32_t late_saver;        /* ... this one */
    bool unsaved;               /* rank 0 could not save the weights of the last step */
    bool called_off;            /* RECOVERING, and no round comes */
    uint64_t last_step;         /* one that has no step behind it; 0: nobody has said so */
    bool spent_at_end;          /* in this event: a loss that others are enough for */
    int64_t round_tardy_at;     /* mono: who hangs in its round is not waited for; SIM_NEVER */
    int64_t round_tardy_stretch;
    bool round_was_idle; /* after the event before this one: no step is left to make in it */
    bool has_home;       /* its checkpoints are on one node, ... */
    char home[MS_NAME_MAX + 1], home_owner[MS_PRINCIPAL_MAX + 1];
    uint64_t home_folder, home_step; /* ... the newest that is known, on this one; step 0: none */
    bool home_guess;                 /* ... or may be */
    int64_t home_at, home_stretch;   /* mono: nothing was lost since */
    int64_t home_late_at;            /* ... at the latest: who kept the state */
    int64_t told_at; /* mono: the process that has rank 0 told of a step; SIM_NEVER: not yet */
    bool awaited_home, needs_home;       /* as the round under way began */
    int64_t without_at, without_stretch; /* mono: ... from then on, if all have ended */
    int64_t tardy_at; /* mono: who has not ended is passed over; SIM_NEVER: not so */
    int64_t tardy_stretch;
    int64_t save_again_at; /* mono: the next one is asked, or all again; SIM_NEVER: not so */
    int64_t save_again_stretch;
    bool awaits_back, has_awaited;        /* lost ones may come back; now, or before */
    bool back_is_over;                    /* they had all the time */
    int64_t back_at, back_stretch;        /* who was lost before then is not waited for */
    uint32_t asked;                       /* to save in the place of rank 0; 0: nobody */
    bool lost_silent;                     /* in this event, at the end of the grace */
    bool round_now, round_told, end_told; /* in this event: it begins, and events say so */
    uint32_t lost_told;                   /* rank + 1 that an event names */
    uint32_t assigned_now, n_ranks, tries, leaves;
    uint32_t met_least, met_most; /* nodes that were there when it was placed */
    struct m_rank *ranks;
    bool has_progress;
    struct m_progress progress, evals[MS_EVALS_MAX]; /* the last of all, and of each epoch */
    uint32_t n_evals;
    int64_t unstored_at; /* mono: one came then that no row has; SIM_NEVER: none */
};

struct m_ask { /* a question, a watch, or a log read */
    uint64_t conn;
    uint32_t id;
    uint16_t type;
    uint64_t job, offset, route; /* offset: of a log, or EventQuery.after */
    uint64_t before;
    uint32_t rank, bytes_max;   /* of a log, or events at most */
    uint32_t what, asked_rank;  /* enum ms_fetch; as it was asked: rank is who has that */
    char node[MS_NAME_MAX + 1]; /* reads the log; or whose events */
    bool watching;              /* has been told once; or waits for the next event */
    bool parked;                /* ... of which there was none when the question was looked at */
    int64_t asked_at, asked_stretch;
    enum sched_job_state told;
};

struct m_stop { /* who has to hear Stop in this event */
    uint64_t conn, job, generation;
    bool at_step, saves, stands;
    bool any_text, claim; /* claim: what it says follows from the job as it is then */
    int32_t code;
    char text[MS_TEXT_MAX + 1];
};

struct m_event { /* what the disk has to hold of what happened */
    uint64_t number, job;
    int64_t at_ms;
    char kind[MS_NAME_MAX + 1], node[MS_NAME_MAX + 1], text[MS_TEXT_MAX + 1];
    char owner[MS_PRINCIPAL_MAX + 1]; /* who provoked it */
    char *facts;                      /* owned */
    bool gone;                        /* it was too much */
};

struct m_seal { /* a stamp that somebody was told */
    uint64_t number;
    uint8_t bytes[MS_STAMP_LEN];
};

#define M_ARRAY(type)                                                                              \
    struct {                                                                                       \
        type *at;                                                                                  \
        size_t n, room;                                                                            \
    }

struct m_token {
    uint64_t seed, generation;
    uint8_t bytes[MS_TOKEN_LEN];
};

struct model {
    struct world *w;
    int64_t mono, stretch, lease_ms, lease_least_ms, lease_most_ms;
    int64_t busy_until;          /* deadlines before may be judged at this time */
    int64_t no_room_until;       /* rows that can wait may be missing */
    bool turn_is_full;           /* more leases are over than one turn judges */
    int64_t away_until;          /* a connection that closes before may be our own fault */
    uint32_t n_expected, n_came; /* nodes: that a start waits for; that came since, each once ... */
    int64_t came_at;            /* ... the last of them; moved on while the scheduler stood still */
    int64_t came_before;        /* ... before this event: what was due then is */
    int64_t came_most_at;       /* ... or one that came and was forgotten meanwhile */
    int64_t crowded_at;         /* nodes may have been turned away, likewise; SIM_NEVER */
    uint64_t generation;        /* highest that anybody may know */
    uint64_t stored;            /* ... that the disk knows */
    uint64_t last_event, ticks; /* ticks: commits, as they are counted */
    uint64_t last_job, next_job; /* the highest id; the next one that the disk knows */
    bool is_over; /* the one job of a dynamic cluster has ended, since the scheduler's start */
    bool draining, refusing, fresh;
    bool missed_events;   /* the disk was full: some things are not in the list */
    uint32_t event_reads; /* answers of this tick that the database gives */
    /* How many nodes the cluster has, as the queue may and must know: more at once, fewer after a
     * lease of doubt, which began and begins anew at the latest: */
    uint32_t believed_low, believed, counted_low, counted;
    int64_t doubt_began, doubt_renewed; /* SIM_NEVER */
    uint32_t doubt_most; /* nodes that were usable at any moment of it, at the most */
    M_ARRAY(struct m_name) names;
    uint32_t *slots; /* of names */
    size_t n_slots;
    M_ARRAY(struct m_node) nodes;
    M_ARRAY(struct m_host) hosts;
    M_ARRAY(struct m_gone) gone;
    bool gone_unknown; /* whose a lost node is */
    M_ARRAY(struct m_conn) conns;
    M_ARRAY(struct m_job) jobs;
    M_ARRAY(struct sim_plan) plans; /* that are stored */
    struct m_said plan_said;        /* in this event */
    M_ARRAY(struct m_ask) asks;
    M_ARRAY(struct m_event) events;      /* up to last_event */
    size_t n_events;                     /* ... that are not gone */
    M_ARRAY(struct m_stop) stops, heard; /* that have to be told in this event, that were */
    M_ARRAY(struct m_token) tokens;
    M_ARRAY(struct m_seal) seals;
    M_ARRAY(uint64_t) closed;        /* connections that this event ended */
    const struct sched_event *event; /* the one that is judged */
    uint64_t placing;                /* job whose Assigns come out, with */
    uint8_t token[MS_TOKEN_LEN];
};

/* model.c: the border */
struct model *model_create(struct world *w);
void model_destroy(struct model *m);
void model_starts(struct model *m, int64_t mono); /* the disk holds what it holds */
void model_ticks(struct model *m); /* the driver begins to collect effects for one commit */
void model_hears(struct model *m, const struct sched_event *event, int64_t mono);
void model_judges(struct model *m, const struct sched_effect *effects, size_t n);
void model_was_busy(struct model *m, int64_t ms); /* looks late, and does not know it */
void model_stood_still(struct model *m, int64_t ms);
void model_sets_lease(struct model *m, int64_t lease_ms);
void *model_more(void *array, size_t size); /* room for one more of size: zeroed */
#define M_MORE(array, type) ((type *)model_more(&(array), sizeof(type)))

/* ---- between the model's files -----------------------------------------------------------------
 */
struct m_conn *m_conn_find(struct model *m, uint64_t id);
struct m_node *m_node_of(struct model *m, const struct m_conn *conn); /* registered over it */
struct m_job *m_job_find(struct model *m, uint64_t id);
struct m_ask *m_ask_find(struct model *m, uint64_t conn, uint32_t id);
void m_ask_drop(struct model *m, struct m_ask *ask);
bool m_is_ended(const struct m_job *job);
bool m_is_placed(const struct m_job *job);
bool m_has_begun(const struct m_job *job); /* and is not over */

/* model_names.c */
uint32_t m_name(struct model *m, const char *text); /* its number: the same for the same text */
struct m_name *m_name_at(const struct model *m, uint32_t number);
struct m_node *m_node_find(struct model *m, const char *id);

/* model_nodes.c */
void m_on_register(struct model *m, struct m_conn *conn, const Ms__Register *msg);
void m_node_lost(struct model *m, struct m_node *node);
void m_judge_registered(struct model *m, struct m_conn *conn, const Ms__Registered *msg,
                        uint32_t id);
bool m_register_refusal_is_fair(struct model *m, const struct m_conn *conn, int32_t code);
void m_rank_refused(struct model *m, const struct m_conn *conn, int32_t code);
void m_probe_over(struct model *m, uint64_t prober);
/* Its Register has no answer yet, for another process with the id may come back. */
bool m_waits_for_first(const struct model *m, const struct m_conn *conn);
bool m_judge_close(struct model *m, uint64_t conn); /* true: replaced by another connection */
/* The node that is registered over this connection, and is not fenced off for another process. */
bool m_is_lost_by_lease(struct model *m, uint64_t id);
bool m_is_overdue(const struct model *m, const struct m_node *node);
bool m_is_silent(const struct model *m, const struct m_node *node); /* for surely too long */
void m_judge_leases(struct model *m);
bool m_is_idle(const struct m_node *node);
bool m_is_bound(struct model *m, const struct m_node *node);
/* It has one, or keeps what it holds for who has it, as far as the scheduler knows. */
bool m_has_rank_of(const struct model *m, const struct m_node *node, uint64_t job);
/* A job could be placed on it, now or when it is idle. One that was told to let go of a rank may be
 * late with it: not among the least. */
bool m_is_usable(const struct model *m, const struct m_node *node, bool at_most);
uint32_t m_count_usable(const struct model *m, bool at_most);
uint32_t m_count(const struct model *m); /* registered */

/* model_hosts.c */
uint32_t m_host_key(struct model *m, const struct m_node *node);
/* It lost two: others get ranks first. */
bool m_is_aside(const struct model *m, const struct m_node *node, bool surely);
/* A process of the host of this node is lost; the node may be another one of that name by now. */
void m_host_lost(struct model *m, const struct m_node *node, const struct m_job *job,
                 const struct m_rank *r);
/* Its process was only away: it says that it has that rank. */
void m_host_excused(struct model *m, const struct m_node *node, const struct m_hold *claim);
void m_aside_stored(struct model *m, const char *key, bool is_aside);
void m_judge_asides(struct model *m);
void m_judge_set_aside(struct model *m);
enum m_pause m_pause_of(const struct model *m, const struct m_node *node);
bool m_is_paused_now(const struct model *m, const struct m_node *node);
uint32_t m_count_idle(const struct model *m, bool at_most); /* that get ranks: at least, at most */
void m_hosts_restart(struct model *m);
void m_hosts_forget(struct model *m); /* hosts that all nodes have left */
/* A job that was placed is queued again, or has failed: why? tries: less the one that was no try.
 */
void m_host_blame(struct model *m, struct m_job *job, const struct sched_job_row *row);
void m_leaving_meet(const struct model *m, struct m_job *job);
void m_leaving_excuse(const struct model *m, struct m_job *job, const struct sched_job_row *row);
void m_hosts_work(struct model *m, const struct m_job *job); /* it started */

/* model_ranks.c: what ranks say, and what follows */
struct m_rank *m_rank_of(struct model *m, const struct m_conn *conn, uint64_t job,
                         uint64_t generation, uint32_t rank);
void m_on_ready(struct model *m, struct m_conn *conn, const Ms__RankReady *msg);
void m_on_done(struct model *m, struct m_conn *conn, const Ms__RankDone *msg);
void m_on_peer_report(struct model *m, struct m_conn *conn, const Ms__PeerReport *msg);
void m_on_progress(struct model *m, struct m_conn *conn, const Ms__Progress *msg);
void m_judge_end(struct model *m, struct m_job *job, const struct sched_job_row *row);
void m_judge_start(struct model *m, const struct m_conn *conn, const Ms__Start *msg);
void m_judge_stop(struct model *m, const struct m_conn *conn, const Ms__Stop *msg);
void m_ranks_stop(struct model *m, struct m_job *job, const struct m_stop *stop);
bool m_may_requeue(const struct model *m, const struct m_job *job);
void m_stop_expect(struct model *m, uint64_t conn, const struct m_stop *stop);
/* Its ranks are told to stop at their step; over_too: also those that have said their last word. */
void m_stop_at_step(struct model *m, struct m_job *job, bool over_too);
void m_stop_look(struct model *m, struct m_job *job); /* somebody came, or went */
/* Who is to save after its end, for nobody else has, is asked once, and again when it is back. */
void m_ask_late_saver(struct model *m, struct m_job *job);
/* Whose steps and weights are those of a job that succeeds. */
const struct m_rank *m_ender(const struct m_job *job);
/* It gave no answer to that, and its time is over. */
bool m_is_silent_to_stop(const struct model *m, const struct m_job *job, uint32_t rank);
/* It was to take a lost rank's place, and is not ready when the grace is over. */
bool m_holds_up_stop(const struct model *m, const struct m_job *job, uint32_t rank);
/* ... so it is lost: the others have a grace of their own, and hear so when all of those are. */
void m_lost_in_grace(struct model *m, struct m_job *job);
void m_judge_ranks_after(struct model *m);

bool m_is_lost(const struct model *m, const struct m_rank *r);
bool m_is_surely_lost(const struct model *m, const struct m_rank *r);
bool m_missing_is_due(const struct model *m, const struct m_job *job);
bool m_blame_is_due(const struct model *m, const struct m_job *job);
bool m_is_unfit(const struct m_job *job, const struct m_rank *r);
bool m_is_over(const struct m_rank *r);
bool m_needs_another(const struct m_job *job); /* to save: rank 0 is no help */
bool m_grace_is_over(const struct model *m, const struct m_job *job);
bool m_is_unready(const struct model *m, const struct m_job *job, uint32_t rank);
bool m_stops_at_step(const struct m_job *job);

/* No Start comes any more in the round that is out: who was told of it stands. */
bool m_no_start_comes(const struct model *m, const struct m_job *job);
bool m_ready_is_over(const struct model *m, const struct m_job *job, int64_t late_ms);

/* model_last.c: behind the last step */

bool m_is_at_end(const struct m_job *job);
bool m_all_are_done(const struct m_job *job);              /* but who is lost, or passed over */
bool m_owes_weights(const struct m_job *job);              /* and nobody has saved them */
bool m_says_alone(const struct m_job *job, uint32_t rank); /* ... its digest */
void m_forget_savers(struct m_job *job);                   /* a round begins */
void m_offer_savers(struct m_job *job);                    /* a cancel */
void m_saver_answered(struct m_job *job, uint32_t rank);
void m_saver_came_back(struct model *m, struct m_job *job, uint32_t rank);
void m_look_for_saver(struct model *m, struct m_job *job);
void m_save_time(struct model *m, struct m_job *job);
void m_expect_round(const struct model *m, struct m_job *job); /* who hangs in it has his time */
/* Some have ended, and others hang: they have their time, and are passed over then. */
void m_look_for_tardy(const struct model *m, struct m_job *job);
bool m_tardy_is_due(const struct model *m, const struct m_job *job);
void m_tardy_time(struct model *m, struct m_job *job);
/* Who is lost there is not replaced ... */
bool m_is_end_loss(const struct model *m, const struct m_job *job, uint32_t rank);
void m_lost_at_end(struct m_job *job, uint32_t rank);
/* ... or nobody comes for him, and the others end without. */
bool m_can_do_without(const struct model *m, const struct m_job *job, uint32_t rank);
bool m_round_hangs(const struct model *m, const struct m_job *job); /* and nobody ended it */
void m_round_moves(const struct model *m, struct m_job *job);       /* a rank got through it */
void m_watch_round(struct model *m, struct m_job *job);             /* at the end of an event */
void m_called_off(struct model *m, const char *log);

/* model_home.c */

void m_home_note(const struct model *m, struct m_job *job, const struct m_node *node,
                 uint64_t step);
void m_home_guess(const struct model *m, struct m_job *job); /* rank 0 did not come back to us */
bool m_is_at_home(const struct m_job *job, const struct m_node *node);
bool m_home_is_away(const struct model *m, const struct m_job *job);  /* not where rank 0 is */
bool m_state_is_held(const struct model *m, const struct m_job *job); /* or is read by a rank */
/* One rank is for who is there; perhaps: a timer may not have been heard yet. */
bool m_awaits_holder(const struct model *m, const struct m_job *job, bool perhaps);
bool m_awaits_home(const struct model *m, const struct m_job *job, bool perhaps);
/* Nobody else holds the state, and it is there (is_link: or another rank, which it may not reach):
 * it may end before it is ready as often as it likes. */
bool m_is_home_tried(const struct model *m, const struct m_job *job, const struct m_rank *r,
                     bool is_link, bool perhaps);
bool m_saves_at_home(const struct model *m, const struct m_job *job, bool perhaps);
/* Another job waits for that node (job NULL: any); perhaps: or for another one in its place. */
bool m_is_kept_for_another(const struct model *m, const struct m_job *job,
                           const struct m_node *node, bool perhaps);
uint32_t m_count_kept(const struct model *m); /* idle ones, at the most */
void m_judge_home(struct model *m, const struct m_job *job, const Ms__Assign *msg);

/* model_recover.c */
bool m_is_recoverable(const struct model *m, const struct m_job *job);
bool m_has_vacant(const struct m_job *job);
/* Perhaps: a timer may be late. */
bool m_recovery_wants_nodes(const struct model *m, bool perhaps);
void m_saw_step(struct m_job *job, uint64_t step);
enum m_fault {
    M_LOST,
    M_LEFT,
    M_MISSING,
    M_LEAVING,
    M_GAVE_UP,
    M_UNFIT,
    M_UNREADY,
    M_COMPLAINT,
    M_WORN, /* ... of itself, or a newcomer, as often as it may: others hold the state */
    M_BESIDE
};
/* One loss more of this kind ends the job. */
bool m_is_spent(const struct model *m, const struct m_job *job, const struct m_rank *r,
                enum m_fault fault);
bool m_may_be_spent(const struct model *m, const struct m_job *job, const struct m_rank *r,
                    enum m_fault fault); /* nobody knows which hosts were paused */
bool m_was_unfit(const struct model *m, const struct m_job *job, uint64_t incarnation);
bool m_is_newcomer(const struct m_job *job, const struct m_rank *r);
/* It may be lost by the complaint. */
bool m_may_be_blamed(const struct m_job *job, uint32_t rank);
/* Nobody has it any more. is_here: its process has to let go of it. */
void m_vacate(struct model *m, struct m_job *job, struct m_rank *r, bool is_here, int code);
void m_stands_still(struct model *m, struct m_job *job);
void m_rank_lost(struct model *m, const char *log); /* if it says so */
void m_story(struct model *m, const struct sched_event_row *row);
struct m_rank *m_claim_is_older(struct model *m, const struct m_conn *conn);
struct m_rank *m_claim_is_vacant(struct model *m, const struct m_conn *conn);
void m_was_away(struct m_rank *r); /* it has it again */
void m_begin_round(struct model *m, struct m_job *job, const struct sched_job_row *row);
void m_member_stored(struct model *m, const struct sched_member_row *row);
void m_judge_round(struct model *m, struct m_job *job, const Ms__Assign *msg);
void m_complaints_forget(struct m_job *job);
void m_note_way_back(struct m_job *job); /* it starts: perhaps at an earlier step */
bool m_states_differ(const struct m_job *job);
void m_goes_on(struct model *m, struct m_job *job);
void m_judge_recovery_after(struct model *m);

/* model_formers.c */
bool m_holds(const struct m_job *job, uint32_t rank); /* the state; it was ready once at least */
bool m_is_last_copy(const struct m_job *job, uint32_t rank);
bool m_is_unreached(const struct m_job *job, uint64_t process);
const char *m_machine(const struct m_node *node);
bool m_is_cut_off(const struct m_job *job, const char *machine);
/* Its host is cut off from one that keeps the state: it moves beside the one that was blamed. */
bool m_moves_along(const struct model *m, const struct m_job *job, uint32_t rank, const char *log);
/* The complaint is judged: the rank moves, or all try again. */
/* Where people start processes: it is to go, as often as it tried, and its job goes on. */
bool m_is_worn_out(const struct model *m, const struct m_job *job, uint32_t rank, const char *log);
void m_judge_link(struct model *m, struct m_job *job, uint32_t rank, bool moves);
void m_pairs_made_good(struct m_job *job);
void m_pairs_start(struct m_job *job);
struct m_former *m_former_of(const struct model *m,
                             const struct m_node *node); /* NULL: it is none */
bool m_former_forget(struct m_job *job, uint64_t incarnation);
void m_former_gone(struct model *m, const struct m_node *node);
/* True: it keeps what it holds, and hears nothing. */
bool m_former_leaves(struct model *m, struct m_job *job, uint32_t rank, bool is_here);
bool m_is_missed(const struct m_job *job, const struct m_former *former); /* nobody else has it */
/* perhaps: they may be, for timers are late. */
bool m_formers_are_awaited(const struct model *m, const struct m_job *job, bool perhaps);
void m_formers_note(struct model *m, const struct m_node *asked);
struct m_former *m_claim_is_former(struct model *m, const struct m_conn *conn);
void m_former_comes(struct model *m, const struct m_conn *conn, struct m_former *former,
                    bool was_kept);
void m_formers_stop(struct model *m, struct m_job *job, const struct m_stop *stop);
void m_former_said(struct model *m, struct m_former *former, const Ms__RankDone *msg);
void m_rank_yields(struct model *m, const char *log); /* if it says so */
void m_state_let_go(struct model *m, const char *log);
void m_may_spare_after(const struct model *m, struct m_job *job); /* a loss, or one that did */
/* A node keeps the state of a job that lacks one, and others hold that, too. */
bool m_is_worn(const struct model *m, const struct m_job *job, const struct m_former *former);
bool m_keeps_what_it_lacks(const struct model *m, const struct m_job *job);
void m_formers_step_in(struct model *m, struct m_job *job);
void m_rank_back(struct model *m, const char *log); /* if it says so */
void m_former_takes(struct m_rank *r, const struct m_former *former, const struct m_node *node);
void m_formers_reload(struct model *m, struct m_job *job, const struct sched_job_row *row);
void m_judge_formers(struct model *m, const struct m_job *job, const struct sched_job_row *row);

/* model_results.c */
void m_on_beat(struct model *m, struct m_conn *conn, const Ms__Heartbeat *msg);
void m_judge_last_shown(struct model *m, const struct sched_member_row *row);
void m_judge_rank_shown(struct model *m, const struct m_job *job, const Ms__RankInfo *info);
void m_judge_results(struct model *m, const struct m_job *job, const struct sched_job_row *row);
void m_judge_shown(struct model *m, const struct m_job *job, const Ms__JobInfo *info,
                   bool with_evals);
/* What a start finds of a job that has not ended: its evaluations. */
void m_results_reload(struct m_job *job, const struct sched_job_row *row);
/* Evaluations are stored in time, and as they were told. */
void m_judge_end_known(struct model *m, const struct m_job *job, const struct sched_job_row *row);
void m_judge_evals(struct model *m, struct m_job *job, const struct sched_job_row *row);
bool m_evals_are_late(const struct model *m, const struct m_job *job);

/* model_place.c */
void m_judge_member_told(struct model *m, const struct m_job *job, const Ms__Member *member,
                         uint32_t rank);
void m_judge_row(struct model *m, const struct sched_job_row *row);
void m_judge_assign(struct model *m, struct m_conn *conn, const Ms__Assign *msg);
void m_judge_placed(struct model *m); /* all Assigns of a placement are out */
void m_judge_queue(struct model *m);
/* For one more job of his, described by so many bytes. */
bool m_has_no_place(const struct model *m, const struct m_conn *conn, size_t bytes);
bool m_queue_before(const struct m_job *a, const struct m_job *b);

/* model_plan.c */
void m_plans_start(struct model *m);
bool m_knows_plans(const struct m_node *node);
bool m_is_for_all(const struct m_job *job); /* nodes of release 0.1 take its ranks, too */
bool m_awaits_plan(struct model *m, const struct m_job *job);
void m_judge_plan_from(struct model *m, const struct m_job *job, uint32_t told);
void m_on_rank_plan(struct model *m, const struct m_conn *conn, const Ms__RankPlan *msg);
void m_plan_put(struct model *m, const struct sched_plan_row *row);
void m_plan_drop(struct model *m, const struct sched_plan_row *row);
void m_judge_plan_row(struct model *m, struct m_job *job, const struct sched_job_row *row,
                      bool is_new);
void m_judge_plan(struct model *m, const struct m_conn *conn, const Ms__Plan *msg);
void m_judge_plans_after(struct model *m);
bool m_plan_differs(struct model *m, const struct m_job *job);

/* model_clients.c */
void m_on_question(struct model *m, struct m_conn *conn, const struct sched_event *event);
void m_judge_answer(struct model *m, struct m_conn *conn, uint16_t type, uint32_t id,
                    const ProtobufCMessage *msg);
void m_judge_log_read(struct model *m, const struct m_conn *conn, const Ms__LogRead *msg);
void m_judge_clients_after(struct model *m);
bool m_log_refusal_is_fair(struct model *m, const struct m_ask *ask, int32_t code);
bool m_is_anothers(const struct m_rank *r, const struct m_node *node);

/* model_fetch.c */
void m_ask_fetch(struct model *m, struct m_ask *ask, const Ms__Fetch *msg);
void m_judge_fetch_grant(struct model *m, const struct m_conn *conn, const Ms__FetchGrant *msg);
void m_judge_ticket(struct model *m, const struct m_ask *ask, const Ms__FetchTicket *msg);
bool m_fetch_refusal_is_fair(struct model *m, const struct m_conn *conn, const struct m_ask *ask,
                             int32_t code);

/* model_gone.c */
void m_node_gone(struct model *m, const char *log); /* if it says so */
void m_node_back(struct model *m, const char *id);
void m_judge_gone(struct model *m, const Ms__NodeList *msg); /* all nodes */

/* model_past.c */
void m_judge_drop(struct model *m, uint64_t id, bool members_only);
void m_judge_history(struct model *m);

/* model_stamps.c */
void m_judge_stamp(struct model *m, const char *who, const ProtobufCBinaryData *stamp);
bool m_stamp_is_false(const struct model *m, const ProtobufCBinaryData *stamp);

/* model_events.c */
void m_events_start(struct model *m);
void m_events_end(struct model *m);
void m_event_put(struct model *m, const struct sched_event_row *row);
void m_event_drop(struct model *m, uint64_t number);
void m_judge_events_kept(struct model *m);
void m_ask_events(struct m_ask *ask, const struct model *m, const Ms__EventQuery *msg);
bool m_events_may_wait(const struct model *m, const struct m_ask *ask);
bool m_events_refusal_is_fair(const struct model *m, const struct m_ask *ask, int32_t code);
void m_judge_no_events(struct model *m, const struct m_ask *ask, const Ms__EventList *msg);
void m_judge_events_read(struct model *m, const struct sched_effect *effect);
/* The answer that a READ has to lead to: owned (free), its texts the model's until it changes. */
Ms__EventList *m_events_page(const struct model *m, const struct sched_read *read);
void m_judge_events(struct model *m, const struct sched_read *read, const Ms__EventList *msg);

/* model_back.c: ranks that a job that is to stop lost, and that may be on their way */

void m_back_begins(const struct model *m, struct m_job *job); /* it is asked to stop */
bool m_awaits_back(const struct model *m, const struct m_job *job);
bool m_is_stood_in_for(const struct model *m, const struct m_job *job, uint32_t rank);
void m_back_judge(const struct model *m, struct m_job *job); /* are any on their way now? */
void m_back_time(struct model *m, struct m_job *job); /* their time may be over in this event */
void m_back_note_arrival(struct model *m, const char *node); /* after it has its rank, if it has */
void m_back_look(struct model *m, struct m_job *job);        /* nobody may be on his way any more */

#endif
