/* still.h - how long a job stood still at its end: of one that has ended the scheduler counts only
 * what was over before */
#ifndef CLI_STILL_H
#define CLI_STILL_H

#include "cli/cli.h"

/* Zeroed: not known. */
struct cli_still {
    int is_known;
    int is_least; /* ... and that it was so long at least */
    uint64_t ms;  /* to its end; 0: it did not stand still then */
};

/* One event of a job that ended then, the newest first. True: older ones say nothing more. Pure. */
int cli_still_look(struct cli_still *still, const Ms__EventInfo *event, int64_t ended_ms);

/* Did it stand still when it ended? Where that is not known, by the ranks that it lacked. still:
 * NULL allowed. Pure. */
int cli_still_stood(const struct cli_still *still, const Ms__JobInfo *job);

/* Asks for the events of a job that lost ranks and has ended; not known where there are none, as in
 * a dynamic cluster without a database. */
void cli_still_ask(struct cli *cli, const Ms__JobInfo *job, struct cli_still *ret);

#endif
