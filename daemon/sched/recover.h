/* recover.h - jobs that lose ranks and go on: docs/recovery.md
 *
 *     lost.c -> recover.c   may it, what the loss counts for, the round
 *               vacant.c    who takes a rank that nobody has
 *               budget.c    what losses were in vain
 *               stop.c      ... and where the job is to stop instead
 *               recover_words.c
 *               stall.c       ... since when, over restarts */
#ifndef SCHED_RECOVER_H
#define SCHED_RECOVER_H

#include "daemon/sched/run.h"

struct node;

/* ---- recover.c ---- */

/* Does that loss of a rank not end the job? */
bool recover_may(struct sched *s, const struct job *job, uint32_t rank, enum fault fault);
/* ... and it is to go on: the rank is vacant from now on, or its peers try again to reach it. */
void recover_lose(struct sched *s, struct job *job, uint32_t rank, enum fault fault,
                  const char *text);
/* Losses do not end jobs of this kind, and this one has begun. */
bool recover_is_on(const struct sched *s, const struct job *job);
/* It is of links between ranks, and maybe of nothing that the rank computes ... */
bool recover_is_of_links(enum fault fault);
bool recover_is_own_link(enum fault fault); /* ... as its own process said */
bool recover_counts(enum fault fault);      /* against the rank: a few of them end the job */
bool recover_is_loss(enum fault fault);     /* else the rank is there, and ends its job */
/* Nobody has it any more, and that costs nothing. */
void recover_vacate(struct sched *s, struct job *job, uint32_t rank, int code, const char *text);
/* The job is to stop after its step: does it let the other ranks do so all the same? */
bool recover_stops(const struct sched *s, const struct job *job, enum fault fault);
/* ... and this one counts as over. */
void recover_lose_stopping(struct sched *s, struct job *job, uint32_t rank, enum fault fault,
                           const char *text);
/* Its job has made all its steps, and others hold what is to be saved: it goes on without, or no
 * round comes any more for this one was lost once too often (calloff.c). */
enum end_loss { END_LOSS_NONE, END_LOSS_GOES_ON, END_LOSS_CALLS_OFF };
enum end_loss recover_end_loss(struct sched *s, const struct job *job, uint32_t rank,
                               enum fault fault);
void recover_lose_at_end(struct sched *s, struct job *job, uint32_t rank, enum fault fault,
                         enum end_loss how, const char *text);
/* It stands for good without the ranks that are lost: nothing but its end is waited for. */
void recover_stand_stopping(struct sched *s, struct job *job, const char *text);
/* Its ranks do not know of one generation: another round. */
void recover_again(struct sched *s, struct run *run);
/* Rounds of jobs whose ranks are complete again. True: there was one. */
bool recover_settle(struct sched *s);
/* There is space again: those that may have waited for it have all the time from now on. */
void recover_expect(struct sched *s);
/* The disk is not full, or there is room for its round all the same. */
bool recover_has_disk(const struct sched *s, const struct run *run);
/* No process is known to hold the state, and one that did may live: no rank is for others within a
 * lease from its loss on, or half of topo_timeout_s. Which rank the last of them had;
 * MS_WORKERS_MAX: there is none. */
uint32_t recover_awaited(const struct sched *s, const struct run *run, int64_t *ret_until_ms);
/* The holder's end was not seen: what ended may be its connection alone, and its node has no other
 * one. Its rank may be another one's by now, who has nothing yet. */
bool recover_may_live(const struct sched *s, const struct mend *mend);
void recover_round_timeout(struct sched *s, struct run *run);
bool recover_wants_nodes(const struct sched *s); /* idle ones are for a job that lost ranks */
/* All ranks are ready: where it goes on, in words for its event, and facts; NULL: none was lost. */
const char *recover_end(struct sched *s, struct job *job, const char **ret_facts);

/* ---- vacant.c ---- */

uint32_t recover_n_vacant(const struct run *run);
bool vacant_fill(struct sched *s, struct job *job); /* all vacant ranks, or none */
/* This process has a rank of us that we gave up, and nobody has taken: it has it again. */
bool recover_take_back(struct sched *s, struct node *node, const struct claim *claim);
/* It is such a process, of a job that is to stop, for which it may hold what is to be saved. */
bool recover_comes_to_stop(const struct sched *s, const struct node_info *info, uint64_t job_id,
                           uint32_t rank);
/* Until when one with that rank may be on its way, of which nothing but the end of its connection
 * was seen; in the past: none. */
int64_t recover_comes_until(const struct sched *s, const struct run *run, uint32_t rank);
/* With that node there is none any more who was. True: there was one. */
bool recover_note_arrival(struct run *run, const struct node *node);
/* As many processes as may have ended before one was ready for it. */
bool recover_is_stumbled_out(const struct run *run, uint32_t rank);
/* Is there a vacant rank that a node with this id may take, or had as its job was to end? */
bool recover_has_room(const struct sched *s, const char *node_id);
/* The rank's process ended before it was ready: others first, and a pause if there are none. */
void vacant_note_stumble(struct sched *s, struct run *run, uint32_t rank);
bool vacant_has_stumbled(const struct sched *s, const struct run *run, const struct node *node);
/* It is idle, and may have a rank of the job, as far as anybody knows. */
bool vacant_can_serve(const struct run *run, const struct node *node);
uint32_t vacant_n_fit(struct sched *s, const struct run *run); /* how many: at most all its ranks */
/* An idle node may take it that did not stumble, and is reached as far as anybody knows. */
bool vacant_has_untried(struct sched *s, struct run *run, uint32_t rank);
void vacant_note_unfit(struct sched *s, struct run *run, uint64_t incarnation);
bool vacant_is_unfit(const struct run *run, uint64_t incarnation);
void recover_ask_again(struct sched *s, struct run *run); /* those who could not serve, too */

/* ---- budget.c ---- */

/* Losses of this rank with no step of the job since the one before. */
uint32_t budget_in_vain(const struct run *run, uint32_t rank);
/* NULL, or those after which another one that counts ends the job. */
const struct losses *budget_spent(const struct run *run, uint32_t rank);
void budget_count(struct run *run, uint32_t rank, enum fault fault, const char *text);
/* What is counted of the rank until now: a loss follows. */
void budget_keep(struct run *run, uint32_t rank);
void budget_take_back(struct run *run, uint32_t rank); /* ... which was none */
void budget_start(struct run *run); /* all ranks are ready, perhaps at an earlier step */
void recover_saw_step(struct sched *s, struct run *run, uint64_t step);

/* ---- stall.c: since when a job stands still, where that began before this process ---- */

struct sched_event_row;

/* While loading, in the order of their numbers. */
int stall_load(struct sched *s, const struct sched_event_row *row, struct ms_err *err);
void stalls_loaded(struct sched *s); /* all jobs are there */
void stall_is_over(struct run *run); /* it goes on, or went on all the time */
/* It stands still: since when, by our clock. was_there: what it lost we had heard of before. */
int64_t stall_since_ms(const struct sched *s, struct run *run, bool was_there);

/* ---- causes.c: why it was lost, each time ---- */

void causes_add(struct losses *losses, const char *node_id, enum fault fault, const char *text);
void causes_keep_last(struct losses *losses, uint32_t n);
/* Without where to look for more: it goes into another text, which says that itself. */
const char *causes_bare(struct sched *s, const char *text);
/* All of them, as FAULT_MESH and FAULT_OFF_MESH: its own word. */
bool causes_are_own(const struct losses *losses);
/* All of them are of links, or may be: what the rank computes is not to blame. */
bool causes_are_of_mesh(const struct losses *losses);
/* All of them and the last one, of the rank on that node, and where to look for more of that one,
 * in room bytes. */
const char *causes_words(struct sched *s, const struct losses *losses, const char *node_id,
                         enum fault fault, const char *text, size_t room);

/* ---- recover_words.c: what people read of it ---- */

/* Why the job ends all the same: NULL, or its rank was lost too often at one step. */
const char *recover_spent(struct sched *s, const struct job *job, uint32_t rank, enum fault fault,
                          const char *text);
const char *recover_words(struct sched *s, const struct job *job); /* what it waits for */
/* All are ready again. */
struct recovered {
    int64_t still_ms; /* it took so long ... */
    bool is_least;    /* ... since the scheduler is back */
    bool is_back;     /* some of what was told is trained again */
};

const char *recover_state_words(struct sched *s, const struct job *job,
                                const struct recovered *how);
const char *recover_state_facts(struct sched *s, const struct job *job,
                                const struct recovered *how);
/* A rank is lost, and nobody has it yet; who has which of those that were. */
const char *recover_loss_facts(struct sched *s, const struct job *job, uint32_t rank,
                               enum fault fault, int64_t silent_ms);
const char *recover_round_facts(struct sched *s, const struct job *job);

#endif
