/* run.h - a placed job: its ranks, who holds them, how they get ready, end and come back */
#ifndef SCHED_RUN_H
#define SCHED_RUN_H

#include "daemon/sched/list.h"
#include "daemon/sched/sched.h"
#include "daemon/sched/states.h"
#include "daemon/sched/timer.h"

#include <stdbool.h>

struct claim;
struct conn;
struct hold;
struct job;
struct node;

struct member {
    char node_id[MS_NAME_MAX + 1];
    char weights_sha256[65];
    char plan_sha256[65];
    enum rank_state state;
    uint64_t incarnation;
    char *host_name;  /* owned; never NULL */
    char *principal;  /* owned; never NULL: who registered the node */
    char *log_path;   /* owned; never NULL */
    bool unstored;    /* log_path is newer than its row */
    bool unheard;     /* its node, since the scheduler's start: what it holds its claim will tell */
    uint64_t machine; /* of the node that has it, or had it last; 0: not known since a restart */
    struct hold *hold; /* while a node has the rank; also MISSING: the node that is expected */
    uint32_t pid;
    uint64_t step, steps;
    double seconds;
    bool has_plan;      /* its process has made the plan of the ranks */
    uint64_t ready_in;  /* ... and said so in this generation, the last one */
    bool may_lack_plan; /* ... but heard of a newer one: if it began anew it is told again */
    bool has_state;     /* ... and was started: it holds the state of the training */
    bool may_save;      /* it is over and ended well: it can still save what it holds */
    bool saving;        /* ... and was asked to, after its end, and has not answered */
    bool is_complete;   /* ... and saved what it had to */
    bool is_placeless;  /* ... and has no run directory to save in */
    bool passed_over;   /* it is not over, and nobody waits for it any more: its disk may hang */
    bool said_well;     /* it ended well before a round that is due; its hold has_said */
};

/* What befalls a rank; lost.c says what becomes of its job. */
enum fault {
    FAULT_LOST,      /* its node is gone, or holds it no more */
    FAULT_LEFT,      /* its node said that it leaves */
    FAULT_MISSING,   /* its node did not come back after the scheduler's restart */
    FAULT_FAILED,    /* it said so itself */
    FAULT_LEAVING,   /* ... and that its process leaves, or begins anew */
    FAULT_GAVE_UP,   /* ... and that its process has let go of it: others were gone for it */
    FAULT_SHORT,     /* ... and that it lacks memory or descriptors, before the job began */
    FAULT_UNFIT,     /* ... and was to take the place of a lost one: its process cannot */
    FAULT_COMPLAINT, /* another rank said so, and nobody knew better: all try again */
    FAULT_LINK,      /* ... and again: its end of the link is at fault, or as good as that */
    FAULT_BESIDE,    /* its machine is that of such a one, and the other side has nodes for all */
    FAULT_MESH,      /* it said so itself, it cannot connect to the others: all try again */
    FAULT_OFF_MESH,  /* ... and again: it gives way */
    FAULT_WORN,      /* ... as often as it may: others hold the state, and it begins anew */
    FAULT_UNTOLD,    /* what it has to know cannot be sent */
    FAULT_UNREADY,   /* its node beats, and it does not get ready */
    FAULT_DISAGREE,  /* its digest is not that of the others */
    FAULTS
};

/* Why a rank was lost: causes.c. */
struct cause {
    char node_id[MS_NAME_MAX + 1];
    char text[161];
    uint32_t times;
    enum fault fault;
};

/* Of a rank, at one step of the job. */
struct losses {
    uint32_t n;
    uint32_t n_causes; /* MS_RESTARTS_MAX at the most, the last ones */
    uint64_t step;
    struct cause *causes; /* owned; NULL: none */
};

/* What recovery knows of a rank, while its job is placed. */
struct mend {
    struct { /* as its last RankReady says */
        uint64_t step, told, bytes;
        uint32_t from, rank, ms; /* enum ms_state_from; PULLED: whose state, and what it took */
        uint32_t prepared_ms, joined_ms;
        uint8_t digest[MS_STATE_DIGEST_LEN];
        bool has_digest; /* false: it said none */
    } state;
    struct losses since, wall; /* budget.c */
    uint32_t n_lost_now;       /* of those of since, after the job last started */
    uint32_t n_unready;        /* processes that ended before they were ready for it, one by one */
    uint32_t n_missed;    /* of them: not reached, while another idle node was left; or at home */
    struct {              /* before the last loss */
        bool may_be_away; /* its process, which may not have ended */
        struct losses since, wall;
        uint32_t n_lost_now, n_unready, n_missed;
    } before;
    struct { /* the last process of the rank that was lost and held the state */
        bool may_live;
        bool is_cut; /* what was seen is the end of its connection */
        char node_id[MS_NAME_MAX + 1];
        int64_t lost_ms;
    } holder;
    bool is_over; /* by the last loss: its process does not take it back */
    bool is_back; /* it took it back since the job was asked to stop */
    char *last;   /* why the last one was lost; owned; NULL: none was */
};

/* Two processes of which one said that it does not reach the other; the same: of itself (links.c)
 */
struct link {
    uint64_t a, b;
    uint64_t machine_a, machine_b;
    uint32_t n;        /* so often ... */
    uint64_t step;     /* ... the last time at this step of the job, */
    bool is_new;       /* since it last started */
    bool have_trained; /* both, in this job, when one said so */
};

/* A process whose rank another one has: former.h. */
struct former {
    uint32_t rank;
    char node_id[MS_NAME_MAX + 1];
    char principal[MS_PRINCIPAL_MAX + 1];
    uint64_t incarnation, step;
    bool was_ready;    /* for the rank: it holds a state. Else its claim tells */
    bool has_state;    /* ... and trained, as all the others did */
    struct hold *hold; /* it is kept; NULL: it is not here */
    bool is_awaited;   /* ... and may come back after a restart */
    bool is_chosen;    /* within one round: it has its rank again */
    bool is_spared;    /* ... it is to let go of the state */
};

struct progress {
    Ms__Progress msg; /* phase points nowhere: it is the one below */
    char phase[MS_NAME_MAX + 1];
};

/* What a rank says about another one; it waits for a first-hand report. */
struct complaint {
    bool made;
    uint32_t rank; /* it is about */
    uint32_t by;   /* ... of this one; of the same: it speaks of itself */
    int32_t code;
    char text[MS_TEXT_MAX + 1];
    struct timer timer;
};

/* Whether a cancel waits for those that it has lost and that may come back. */
enum back_wait {
    BACK_NOT_YET, /* nobody was awaited: at the first one the grace begins anew, */
    BACK_AWAITED, /* ... once, for another one may be reset again and again; */
    BACK_OVER,    /* ... and at its end all had their time */
};

struct run {
    struct job *job;
    struct member *members;     /* job->workers of them */
    uint32_t n_in[RANK_STATES]; /* ranks by state: rank_set counts, nobody else */
    struct timer ready;         /* while PLACING, RECOVERING; not armed: for ever */
    struct timer adopt;         /* while ranks are MISSING */
    int64_t expect_ms;          /* how long it was armed for, all in all */
    const char *expected;       /* after what their nodes have to come back; a literal */
    struct timer grace;         /* of a cancel at the step */
    struct timer back;          /* ... and lost ones may come back, which is waited for, */
    int64_t back_ms;            /* ... but not for those whose time was over then, ... */
    enum back_wait back_wait;   /* ... of all that are lost in this cancel */
    uint32_t asked;             /* ... to save in the place of rank 0, the last one; 0: none was */
    bool cancelling;            /* Stop{at_step} is due, and no round begins any more */
    bool stop_is_out;           /* ... and was told: the grace runs */
    bool stands_for_good;       /* ... as some heard: no Start comes any more */
    char cancel_text[MS_TEXT_MAX + 1];
    char kept[MS_TEXT_MAX + 1]; /* what the ranks that stopped said that they saved; "": nothing */
    char unkept[MS_TEXT_MAX + 1]; /* why one that was to save did not; the last that said so */
    uint64_t kept_step;           /* ... of that step */
    uint32_t saver;               /* ... and whose weights are the job's */
    bool late_asked;              /* one that is over was asked to save, ... */
    uint32_t late_saver;          /* ... this one */
    bool unsaved;                 /* rank 0 made the last step, and could not save the weights: */
    bool save_waits;              /* all have tried once, in vain */
    struct timer save_again;      /* the next one is asked, or all again */
    struct timer tardy;           /* who does not end is passed over */
    struct timer hang; /* who does not get through the round is not waited for, at the end */
    bool called_off;   /* RECOVERING, and no round comes: the others end without who is lost */
    uint64_t
        last_step; /* how many the job makes, as its ranks say when they are ready; 0: not known */
    struct complaint complaint;
    bool has_progress;
    struct progress progress;
    int64_t told_ms; /* the process that has rank 0 told of a step, the last time; 0: not yet */
    uint64_t told; /* rank 0 has told of this step, or goes on behind it: what is of an earlier one
                    * it tells again */
    struct progress *evals; /* by epoch */
    size_t n_evals;
    struct timer evals_due; /* some are not stored yet */
    int64_t evals_stored_ms;
    struct mend *mends; /* job->workers of them, while placed; run_mend() */
    /* Processes that could not serve a rank: not asked again before the timer has forgotten them */
    uint64_t unfit[MS_UNFIT_MAX];
    uint32_t n_unfit; /* so many were: the last MS_UNFIT_MAX are known */
    struct timer unfit_timer;
    bool met_unfit; /* since it stands still: what they take is no new time to get ready */
    /* Nodes whose process ended before it was ready: others first. Hashes of ids; likewise */
    uint64_t stumbled[MS_UNFIT_MAX];
    uint32_t n_stumbled;
    struct link *links; /* bad ones, MS_LINKS_MAX at the most, the oldest first; NULL: none ever */
    uint32_t n_links;
    struct former *formers; /* MS_FORMERS_MORE than ranks, the first first; NULL: none ever */
    uint32_t n_formers;
    int64_t formers_until_ms;  /* some may still come back after a restart */
    int64_t not_back_ms;       /* ... and are asked again only then: who gave way will be idle */
    int64_t stumbled_until_ms; /* so long nobody is asked who ended before it was ready */
    int64_t again_ms; /* the next round: who alone holds the state has a pause, or more are lost */
    int64_t wants_until_ms; /* so long idle nodes are kept for it */
    int64_t spare_ms;       /* from then on who keeps its state may be one of them */
    int64_t lost_ms;        /* when one that had been ready was lost: the last time */
    int64_t home_ms;        /* ... whatever came back since: home.c */
    struct {                /* where its newest checkpoint is that is known; step 0: nowhere */
        char node_id[MS_NAME_MAX + 1], principal[MS_PRINCIPAL_MAX + 1];
        uint64_t folder, step;
        bool is_guess;  /* where rank 0 was, and perhaps saved: not stored */
        char *log_path; /* of rank 0 there; owned; NULL: not known since a restart, or not said */
    } home;
    struct timer round;     /* at the next of these */
    struct list recovering; /* in sched.recovering: a round is due */
    bool stands_still;      /* for ranks that are lost ... */
    int64_t still_ms;       /* ... since then */
    struct {                /* of a job that was there before this process: stall.c */
        bool is_resumed;    /* nothing was heard yet that shows it going on */
        int64_t lost_ms;    /* wall clock, of its stored losses the first; 0: none is */
        bool is_least;      /* still_ms is when the scheduler was back */
    } stall;
    uint64_t furthest; /* step that any rank has told of, since the job last went back */
    uint32_t n_recoveries, n_ranks_lost;
    uint32_t ended_by; /* the rank whose loss failed the job, from 1; 0: none did */
    uint64_t recovering_ms;
    bool recovering_least;         /* ... at least */
    uint64_t went_on_from;         /* the step that all went on from the last time */
    uint64_t again_from, again_to; /* steps trained again, for no rank held them; 0: never */
};

/* place.c, assign.c and rank.c: who gets which rank */

void place_settle(struct sched *s);
/* The rank is this node's, under the job's generation; its state is the caller's. */
void run_give(struct sched *s, struct job *job, uint32_t rank, struct node *node);
void run_take(struct run *run, uint32_t rank,
              const struct node *node); /* its hold is the caller's */
/* Assign to all ranks; their nodes are connected. False: it cannot be sent, and the job was lost.
 */
bool run_assign(struct sched *s, struct job *job);
void place_job(struct sched *s, struct job *job, struct node **nodes); /* in rank order */
void run_token(const struct sched *s, const struct job *job, uint8_t ret[MS_TOKEN_LEN]);
int natural_compare(const char *a, const char *b); /* "w2" before "w10" */
/* Chooses want of n nodes (few hosts) and puts them first, in rank order. */
void rank_choose(struct sched *s, struct node **nodes, size_t n, uint32_t want);
const char *isa_least(struct node *const *nodes, uint32_t n);

/* run.c: the object, its ranks' states, its words */

struct run *run_create(struct job *job); /* ranks are MISSING until rank_begin; NULL: no memory */
void run_free(struct run *run);
struct mend *run_mend(struct run *run, uint32_t rank);
void run_forget_mends(struct run *run);                                 /* it is over */
void rank_begin(struct run *run, uint32_t rank, enum rank_state state); /* its first state */
void rank_set(struct run *run, uint32_t rank, enum rank_event event);
bool rank_is_over(const struct member *member);
/* A process has the rank, and said in this job that it is ready, or trained: it holds the state. */
bool run_holds_state(const struct run *run, uint32_t rank);
uint32_t run_n_over(const struct run *run);
/* Who had a node's id before, and who has it now, where that is not the same one. */
bool principal_is_anothers(const char *before, const char *now);
const char *rank_state_name(enum rank_state state); /* in lower case, for people */
const char *rank_words(struct sched *s, const struct job *job, uint32_t rank);
const char *log_words(struct sched *s, const struct job *job, uint32_t rank);
/* All of it, or in room bytes whole words of it, "..." and where its log is; text_behind: of what
 * head leaves of MS_TEXT_MAX, and head in front. */
const char *text_fit(struct sched *s, const char *text, size_t room);
const char *text_behind(struct sched *s, const char *head, const char *text);
/* "<rank> <what>: <cause>; <log>", where the cause gives way if all does not fit. */
const char *rank_text(struct sched *s, const struct job *job, uint32_t rank, const char *what,
                      const char *cause);
void send_start(struct sched *s, const struct hold *hold);
void send_stop(struct sched *s, struct node *node, uint64_t job, uint64_t generation, int code,
               const char *text);
void send_stop_at_step(struct sched *s, const struct hold *hold, int code, const char *text,
                       bool saves);

/* report.c: what its ranks say */

void on_rank_ready(struct sched *s, struct conn *conn, const struct sched_event *event);
void run_look_ready(struct sched *s, struct job *job); /* all are: it starts */
void on_rank_done(struct sched *s, struct conn *conn, const struct sched_event *event);
void run_all_done(struct sched *s, struct job *job); /* the job ends, unless it has to wait */
void on_peer_report(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_progress(struct sched *s, struct conn *conn, const struct sched_event *event);
void run_came_back(struct sched *s, struct hold *hold, const struct claim *claim);

/* The rank that this connection speaks for, if its node holds that rank of a job that is placed;
 * else NULL: crossing messages of a job that has ended are normal. */
struct hold *rank_speaker(const struct conn *conn, uint64_t job, uint64_t generation,
                          uint32_t rank);

/* agree.c: by which plan the ranks run */

void on_rank_plan(struct sched *s, struct conn *conn, const struct sched_event *event);
/* Where the ranks of a placed job have their plan from. */
enum ms_plan_from run_plan_from(const struct job *job);
bool run_awaits_plan(const struct job *job); /* PLACING: rank 0 has not said it yet */
/* Plan to all ranks that have not made it yet; the job's own is in memory. False: it cannot be
 * sent, and the job was lost. */
bool run_tell_plan(struct sched *s, struct job *job);
void run_tell_plan_again(struct sched *s, const struct hold *hold); /* none yet: nothing */
/* NULL, or why the digest that all ranks have is not that of the job's plan. */
const char *run_plan_differs(struct sched *s, const struct job *job, const char *digest);
bool node_knows_plans(const struct node *node); /* its release does */
bool job_is_for_all(const struct job *job);     /* for nodes of release 0.1, too */

/* lost.c: the policy. The job ends, or is placed anew: run may be gone afterwards. */

void run_lost(struct sched *s, struct job *job, uint32_t rank, enum fault fault, int code,
              const char *text);
/* Keeps the first complaint, by that rank, and gives the rank that it is about the time to speak
 * for itself. */
void run_complain(struct sched *s, struct run *run, uint32_t rank, uint32_t by, int code,
                  const char *text);
void run_complaint_timeout(struct sched *s, struct run *run);
void complaint_forget(struct sched *s, struct run *run);

/* ready.c: how long ranks may take to get ready */

void ready_expect(struct sched *s, struct run *run); /* from now on */
bool ready_is_bounded(const struct sched *s);
int64_t ready_bound_ms(const struct sched *s); /* -1: for ever */
void ready_timeout(struct sched *s, struct run *run);

/* adopt.c: whose nodes have to come back */

void node_arrived(struct sched *s, struct node *node); /* it registered */
void nodes_stand_outside(struct sched *s);             /* some may, and cannot get in */
/* Its MISSING ranks have so long to come back; longer if that is later, or nodes keep coming. */
void run_expect(struct sched *s, struct run *run, int64_t ms, const char *after);
/* After we stood still for ms, now: who is on his way back may have given up, and tries again. */
void runs_expect_whole_lease(struct sched *s, int64_t ms);
void run_adopt_timeout(struct sched *s, struct run *run);
const char *awaited_words(struct sched *s); /* who is missing, for the status; "": nobody */

/* results.c: what a job showed, as its row keeps it */

void results_pack(struct sched *s, const struct run *run, struct sched_job_row *row);
int results_unpack(struct job *job, const struct sched_job_row *row, struct ms_err *err);
/* Of an epoch; is_again: told once more, after a reconnect or a round, and takes nothing back. */
void results_note_eval(struct sched *s, struct run *run, const struct progress *progress,
                       bool is_again);
void results_changed(struct sched *s, struct run *run);                 /* to be stored soon */
void results_store(struct sched *s, struct run *run);                   /* TIMER_EVALS */
void progress_take(struct progress *progress, const Ms__Progress *msg); /* a copy, of its own */
bool rank_state_parse(const char *name, enum rank_state *ret);

/* stop.c: a placed job is asked to end after its step. The job may end in all but the notes. */

void run_stop_at_step(struct sched *s, struct job *job, const char *text); /* RUNNING, RECOVERING */
void run_grace_timeout(struct sched *s, struct run *run);
/* A rank of a job that is to stop was lost: others may have to save, or nobody is left. */
void stop_look(struct sched *s, struct job *job);
void stop_came_back(struct sched *s, const struct hold *hold);
/* It registered: nobody else is on his way whose rank was on that node, and who has not got it. */
void stop_note_arrival(struct sched *s, const struct node *node);
void stop_back_timeout(struct sched *s, struct run *run);
/* Until when one that is lost may be on its way: the last of their ranks. */
uint32_t stop_awaited(const struct sched *s, const struct job *job, int64_t *ret_until_ms);
void stop_note_kept(struct sched *s, struct job *job, uint32_t rank, const Ms__RankDone *msg);
void stop_note_unkept(struct sched *s, struct run *run, uint32_t rank, const char *text);
/* RankDone of one that is over: what it was asked to save after its end. */
void stop_said_again(struct sched *s, struct job *job, uint32_t rank, const Ms__RankDone *msg);
/* All ranks are over, or passed over: the job ends, or one of them has to save first, or to come
 * back. */
void stop_over(struct sched *s, struct job *job);
void stop_settle(struct sched *s, struct job *job); /* stop_over, if they are */

/* home.c: the node with the checkpoints of a job of which no process holds the state */

bool home_is_named(const uint8_t *spec, size_t size); /* by the job's file: it may have one */
/* Rank 0 has a checkpoint of that step, or is about to. */
void home_note(struct sched *s, struct run *run, const struct node *at, uint64_t step);
void home_start(struct sched *s, struct run *run, uint64_t step); /* all go on from that step */
/* That rank is about to be lost: of a rank 0 that was not heard of since the scheduler restarted,
 * or stood still, nobody knows what it saved. */
void home_loses(struct sched *s, struct run *run, uint32_t rank);
/* Which rank is for nobody else; MS_WORKERS_MAX: none, for it is not waited for. */
uint32_t home_rank(const struct sched *s, const struct run *run);
bool home_is(const struct run *run, const struct node *node);
/* It is known, and another one than the node that has rank 0, or had it last. */
bool home_is_elsewhere(const struct sched *s, const struct run *run);
/* Nobody else holds the state, and who has the rank is at home (is_link: or another one, and they
 * may not reach each other): that it ends before it is ready is no more than if home stayed away.
 */
bool home_is_tried(struct sched *s, const struct run *run, uint32_t rank, bool is_link);
/* The node that is home, idle or not, then the idle ones with its folder; behind last (NULL: the
 * first); NULL: there are no more. */
struct node *home_next(const struct sched *s, const struct run *run, const struct node *last);
struct node *home_find(const struct sched *s,
                       const struct run *run); /* one that can serve; or NULL */
/* Its process was told to leave, and writes there what it holds. */
bool home_is_saving(const struct sched *s, const struct run *run);
/* Marks the idle nodes that jobs keep so; how many. */
uint32_t home_mark(struct sched *s);
/* Is it marked, for another run than this one (NULL: for any)? */
bool home_is_kept(const struct sched *s, const struct node *node, const struct run *run);
int64_t home_until_ms(const struct sched *s, const struct run *run);
const char *home_words(struct sched *s, const struct run *run); /* while it is waited for */
const char *home_place(struct sched *s, const struct run *run); /* node, and host where known */

/* last.c: which ranks have what the last step left */

/* A rank made all its steps, and holds what it ended with. */
bool last_is_made(const struct node *node, const Ms__RankDone *msg);
void last_note_ready(struct run *run, const Ms__RankReady *msg);
void last_note_done(struct run *run, const struct node *node, const Ms__RankDone *msg);
bool last_is_known(const struct run *run); /* of a job that has begun, and goes on after losses */
bool last_is_short(const struct run *run, uint64_t step); /* one more is to be made */
bool last_holds(const struct run *run, uint32_t rank);    /* in memory, in a round, too */
bool last_has_said(const struct member *member);          /* how it ended; no round since */
bool last_has_all(const struct run *run, uint32_t rank);  /* ... and it is done, for all ranks */
bool last_one_has_all(const struct run *run);             /* ... one of them is */
bool last_can_end(const struct run *run, uint32_t rank);  /* with it, if no round comes any more */
bool last_can_save(const struct run *run, uint32_t rank); /* the job's weights: those of rank 0 */

/* save.c: all steps are made, and rank 0 could not save the weights */

/* A rank of a job that recovers made all its steps, and could not save what it had to. */
bool save_failed(struct sched *s, const struct hold *hold, const Ms__RankDone *msg);
/* Whatever a rank says of its end is its answer, if it was asked to save after it. */
void save_answered(struct sched *s, struct run *run, uint32_t rank);
/* What a rank that made all its steps says of what it saved. */
void save_note(struct sched *s, struct job *job, uint32_t rank, const Ms__RankDone *msg);
void save_note_lacking(struct sched *s, struct job *job); /* rank 0 has not, and never will */
void save_first_did(struct sched *s, struct run *run); /* rank 0 ended well: nobody else has to */
bool save_first_has(const struct run *run);            /* ... and what it saved is there */
/* Some have ended, and others say nothing: rank 0 before anybody knows whether it can save, or
 * whoever was asked before a restart. They have some time from when a rank ends, or is back. */
bool save_awaits(const struct run *run);
void save_look(struct sched *s, struct run *run);
void save_tardy_timeout(struct sched *s, struct run *run); /* the job may end */
bool save_is_at_end(const struct run *run);    /* no step follows that anybody could be lost for */
bool save_all_are_done(const struct run *run); /* ... but those that are lost, or passed over */
/* Of this rank nobody needs anything any more, whatever is said of it. */
bool save_needs_no(const struct run *run, uint32_t rank);
bool save_is_owed(const struct run *run);        /* nobody has saved them: the job does not end */
void save_ask(struct sched *s, struct job *job); /* ... the next one, unless one is at it */
void save_timeout(struct sched *s, struct run *run);
void save_offer(struct run *run); /* all that made the last step may try again */
/* RankDone of one that is over. True: it is news, and all may be done now. */
bool save_said_again(struct sched *s, struct job *job, uint32_t rank, const Ms__RankDone *msg);
void save_came_back(struct sched *s, const struct hold *hold);
void save_lost(struct sched *s, struct run *run, uint32_t rank); /* it is not replaced */
void save_forget(struct sched *s, struct run *run); /* a round begins, or the job is over */
const char *save_words(struct sched *s, const struct job *job); /* what it waits for */
/* The job ends well: whose weights are its, and text with who saved them, where that was not as
 * usual. */
const char *save_end(struct sched *s, struct run *run, const char *text);

/* calloff.c: nobody comes for a rank that is lost behind the last step */

/* No step is left to make, and another rank than this one (job->workers: any) has the weights ...
 */
bool calloff_may(const struct run *run, uint32_t without);
/* ... and no round comes any more: it ends with those that have them. The job may end. */
void calloff_begin(struct sched *s, struct job *job);
void calloff_came_back(struct sched *s, const struct run *run, uint32_t rank);
/* ... or one is out, and a rank got through it: who hangs is not waited for, from then on. */
void calloff_watch_round(struct sched *s, struct run *run);
void calloff_round_timeout(struct sched *s, struct run *run);
/* This rank is lost, or about to be, and nobody takes its place. */
bool calloff_goes_on_without(const struct run *run, uint32_t rank);

/* end.c: how the ranks of a placed job are released, and how any job ends */

/* Nobody waits for this rank any more: its node, if it has one, hears Stop, and is free where it
 * had said RankDone. why: of a node that has yet to come back. */
void rank_release(struct sched *s, struct job *job, uint32_t rank, bool said_done, int code,
                  const char *text, const char *why);

void job_end(struct sched *s, struct job *job, enum job_event event, int code, const char *text);
void job_requeue(struct sched *s, struct job *job, const char *text); /* PLACING only */

#endif
