/* links.h - ranks that do not reach each other: which of the two gives way */
#ifndef SCHED_LINKS_H
#define SCHED_LINKS_H

#include "daemon/sched/run.h"

/* Whose rank is lost by the complaint, and how: FAULT_COMPLAINT and FAULT_MESH, all try again;
 * FAULT_LINK, FAULT_OFF_MESH and FAULT_WORN, its process gives way; FAULT_MISSING, it is waited for
 * no longer.
 */
struct verdict {
    uint32_t rank;
    enum fault fault;
    const char *text;
    uint64_t keeps; /* machine whose side has nodes for all ranks; 0: it is about this one alone */
};

/* Of ranks that do not reach each other on two machines: those beside the one that gives way, for
 * one side has nodes for all ranks. The lowest that is left; job->workers: none. */
uint32_t links_gives_way_too(const struct run *run, const struct verdict *verdict);
struct verdict links_judge(struct sched *s, struct run *run, const struct complaint *complaint);
/* The process has a bad link to one that is a rank now, or was told to be. */
bool links_are_bad(const struct run *run, uint64_t process);
/* Its mesh ended for a reason of its own. */
bool links_are_bad_of_itself(const struct run *run, uint64_t process);
/* Processes of this machine did not reach those of one where a rank is. */
bool links_cut_off(const struct run *run, uint64_t machine);
void links_got_further(struct run *run); /* the job has, since some of them were told of */
void links_started(struct run *run);     /* all ranks are ready, perhaps at an earlier step */
void links_forget(struct run *run);

#endif
