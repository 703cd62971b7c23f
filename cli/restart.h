/* restart.h - whether a child of `msctl run` that died is started again, and when; pure
 *
 * What the loss of a rank means for the job, and when it is enough, the scheduler decides: it
 * counts losses without a step between them. Here only those are counted that it cannot see, of
 * processes that die before they are of any use. */
#ifndef CLI_RESTART_H
#define CLI_RESTART_H

#include <stdint.h>

enum {
    RESTART_DEATHS_MAX = 8, /* in a row: 18 s of pauses are between the first and the last */
    RESTART_OF_USE_MS = 1000,
    RESTART_WORD_MS = 500, /* for the word that the job ended, where that is why a worker exits */
};

enum { RESTART_NOT_STARTED = -1 }; /* in the place of a status */

struct restart {      /* of one child; zeroed to begin */
    int deaths;       /* in a row: no step was made, and it was of no use, in between */
    int alike;        /* the last of them that ended in one way, and were of no use themselves */
    int status;       /* ... which is this */
    int64_t ready_ms; /* since when it trains, or as a scheduler answers; 0: not yet */
    uint64_t step;    /* of the job when it died last */
    int64_t due_ms;   /* monotonic, when it is started again; 0: it is not to be */
    int is_unsure;    /* ... unless the job turns out to have ended: nobody is told before */
};

struct restart_facts {
    int status;   /* of waitpid, or RESTART_NOT_STARTED: not even that */
    int is_spare; /* nobody needs it now: its job has made all steps, and waits for room */
    int is_worker;
    int is_forming; /* the job was never RUNNING, and no child of it died before */
    uint64_t step;  /* the job's last one that is known */
    int64_t now_ms;
};

/* It died: in how many ms it is started again, and sets due_ms; -1: no more. Who was killed or
 * crashed is started at once. A worker that exited has left in order, perhaps because the job
 * ended, which the scheduler may be about to say. A process that exits while the cluster forms, or
 * with 2 or 78 (its words or its settings are wrong), would do it again. */
int restart_judge(struct restart *restart, const struct restart_facts *facts);

/* It is started, or cannot be: what was known of the process before is nothing to go by any more.
 */
void restart_begin(struct restart *restart);
/* It is seen to be of use. */
void restart_ready(struct restart *restart, int64_t now_ms);

#endif
