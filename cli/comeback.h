/* comeback.h - ranks that were lost while somebody looked, and how the job went on; pure */
#ifndef CLI_COMEBACK_H
#define CLI_COMEBACK_H

#include "cli/still.h"
#include "proto/cluster.pb-c.h"
#include "proto/limits.h"

#include <stddef.h>

/* What successive updates of one job show. Zeroed to begin. */
struct cli_comeback {
    int seen;                         /* the fields below are of this job */
    int is_recovering;                /* the last update said so */
    int runs;                         /* ... that it runs, and misses no rank */
    int is_late;                      /* it stood still already as somebody began to look */
    uint32_t recoveries, ranks_lost;  /* of the last update that did not */
    uint64_t recovering_ms;           /* ... */
    int recovering_least;             /* ... */
    uint64_t again_from, again_to;    /* ... */
    double since_s;                   /* when RECOVERING was seen first */
    double told_s;                    /* ... and last */
    uint64_t told_ms;                 /* recovering_ms then */
    struct cli_still still;           /* known once an update has shown its end meanwhile */
    uint8_t lost[MS_WORKERS_MAX / 8]; /* ranks that were LOST since, one bit each */
    uint32_t who[MS_WORKERS_MAX];     /* a hash of which process had each rank; 0: not known */
};

/* "RECOVERING: <what it waits for>" with the update that shows it first, "rank 2 was lost; went on
 * from step 1234 after 0.80 s" with the one that shows that it is over, also where it was too short
 * to be seen; NULL with all others, such as those of a restarted scheduler that still misses ranks.
 * now_s: a clock. */
const char *cli_comeback_line(struct cli_comeback *comeback, const Ms__JobInfo *job, double now_s,
                              char *dst, size_t size);

/* The step from which the ranks of a job that came back went on, where nothing was reported since;
 * 0: something was. */
uint64_t cli_comeback_step(const Ms__JobInfo *job);

/* "3 times (4 ranks lost, 2.10 s)", "1 rank lost, stands still for 30.0 s", "at least" where a
 * scheduler that was gone did not see it begin; NULL: no rank was ever lost. still: of one that has
 * ended, and then counted and said, "it stood still to the end"; NULL: not known. */
const char *cli_comeback_sum(char *dst, size_t size, const Ms__JobInfo *job,
                             const struct cli_still *still);

/* "steps 101 to 137, from the checkpoint of step 100": what was trained again the last time that no
 * rank held it any more; NULL: nothing was. */
const char *cli_comeback_again(char *dst, size_t size, const Ms__JobInfo *job);

#endif
