/* lent.h - a job goes on from what another job has saved in its own folder
 *
 *     JOBS_DIR/3/.lent-7      job 7 may read there: job 3's owner, or an admin, has said so
 *
 * Folders of jobs hold everybody's, so no job reads in another's. Whoever may have the results of
 * job 3 lends them (its node writes the file, worker_fetch.c) once job 7 has its number; a rank of
 * job 7 that is faster waits for that. The first one that finds the file writes its job's tag into
 * it: a job that gets the number again, with another database, may not. Any thread. */
#ifndef LENT_H
#define LENT_H

#include "proto/err.h"
#include "proto/limits.h"

#include <stdint.h>

/* folder: of the job that lends. Durable. MS_E_INVALID: job is 0. */
int lent_give(const char *folder, uint64_t job, struct ms_err *err);

struct lent_borrower {
    const char *run_dir; /* its folder, beside that of the other job */
    uint64_t job;
    const char *tag;
};

/* 1: path leads into the folder of a job beside the borrower's, and that was lent to it: no link
 * leads out of there. ret_real (path, too) is that place without links, and what is read: a moment
 * later one may lead elsewhere. 0: it leads elsewhere. MS_E_REFUSED: it was not lent, or not yet.
 */
int lent_look(const char *path, const struct lent_borrower *borrower,
              char ret_real[MS_PATH_MAX + 1], struct ms_err *err);

#endif
