/* former.h - processes whose rank another one has, and that may still hold the state
 *
 *     a rank is moved, or lost with its node       its process is one, where it held the state
 *     ... and its node is there, or comes back     it is kept: no Stop, and no other rank
 *     its rank is vacant, and others do reach it,
 *     or nobody else holds the state               it has its rank again, as a survivor
 *     the job runs, or ends                        there are none: those that are kept hear Stop
 *
 * So no step is lost while one of them lives. A restart knows them from the job's row. */
#ifndef SCHED_FORMER_H
#define SCHED_FORMER_H

#include "daemon/sched/run.h"

/* Its process may hold the state: the rank is vacant from now on. True: it is kept, and nobody has
 * to let it go. */
bool former_leaves(struct sched *s, struct run *run, uint32_t rank);
/* Register of one of them, which holds the state: it is kept. */
bool former_comes(struct sched *s, struct node *node, const struct claim *claim);
/* It has said that it is done, or that it lets go. */
void former_said(struct sched *s, struct hold *hold, const Ms__RankDone *msg);
void former_gone(struct sched *s, struct hold *hold); /* it is not kept any more */

uint32_t formers_here(const struct run *run);
/* A process of another rank holds the state (MS_WORKERS_MAX: of any), or one is kept that does. */
bool run_is_held_beside(const struct run *run, uint32_t rank);
/* The rank's process holds the state, and no other one does: of no rank, and none that is kept. */
bool run_is_last_copy(const struct run *run, uint32_t rank);
/* Before the ranks are filled: who of them has his again. One that none of the state is with gives
 * way to him. */
void formers_choose(struct sched *s, struct job *job);
bool former_is_chosen(const struct run *run, uint64_t process);
struct former *former_chosen(const struct run *run, uint32_t rank); /* NULL: nobody */
/* Nobody else takes it: one that is not reached is asked again, but for one that lacks something of
 * its own, where others hold the state. NULL: there is none. */
struct former *former_choose_again(const struct sched *s, struct run *run, uint32_t rank);
void formers_unchoose(struct run *run); /* not all ranks can be filled */
void former_give(struct sched *s, struct run *run, struct former *former); /* its rank, again */
/* The node's process has a rank again, or another one. True: it was ready when it lost its own. */
bool former_forget(struct run *run, const struct node *node);
/* The job lacks nodes, and no process that ended came back within MS_FORMER_SPARE_MS: as many of
 * those who keep its state let go of it as make it run, and take a rank anew; but none that may
 * have its own rank again, nor where it ends with that. Two others hold what it does; one, where it
 * lacks something of its own, or nodes have not come within a lease. */
void formers_spare(struct sched *s, struct run *run);
/* In a dynamic cluster a process is turned away, and the place that it should have is one's whose
 * rank another one has: that one lets go, and ends. True: one does. */
bool formers_yield(struct sched *s);
/* A restart knows of some that are not there yet, and nobody else holds the state. */
bool formers_are_awaited(const struct sched *s, const struct run *run);
void formers_expect(struct run *run, int64_t until_ms); /* after it */
void formers_stretch(struct sched *s, int64_t ms);      /* we stood still for so long */
/* It registers: this one, or another process of the node that one had, which has ended. */
void formers_note(struct sched *s, const struct node *node);
/* The job is to stop: where nobody else is left who could save, they have their ranks again. */
void formers_step_in(struct sched *s, struct job *job);
void formers_release(struct sched *s, struct run *run, int code, const char *text);
bool former_is(const struct run *run, const struct hold *hold);
/* That process had the rank, and may hold the state, wherever it is. */
bool former_was(const struct run *run, uint32_t rank, const struct node_info *info);
void formers_pack(struct sched *s, const struct run *run, Ms__JobResults *msg);
void formers_unpack(struct run *run, const Ms__JobResults *msg);
const char *formers_words(struct sched *s, const struct run *run); /* "": none is here */

#endif
