/* saved.h - what a job has saved on this host, for who may fetch it: checkpoints, the best weights
 *
 * What is opened here is sent to another machine. So a place is the folder of one job and what the
 * job's file says of its checkpoints: nothing outside of that folder is opened, no link is
 * followed, and a checkpoint is the job's only where its tag stands in the manifest. An absolute
 * checkpoint.directory is looked into only where jobs may write to one (data/path.h). Any thread.
 */
#ifndef SAVED_H
#define SAVED_H

#include "libworker/train/saved_list.h"

struct saved_place {
    const char *folder;    /* of the job */
    const char *directory; /* its checkpoint.directory; "": it keeps none */
    const char *prefix;    /* its checkpoint.prefix */
    const char *tag;       /* of the job; "": it has none, as its checkpoints then */
};

/* Which there are, none being no error. The newest MS_CHECKPOINTS_MAX. MS_E_REFUSED: the directory
 * is none that a job may have here. */
int saved_look(const struct saved_place *place, struct saved_list *ret, struct ms_err *err);

/* A file of the checkpoint of that step: its manifest, or its data. Returns a descriptor, or
 * MS_E_NOT_FOUND, or as above. */
int saved_open(const struct saved_place *place, uint64_t step, int is_manifest, struct ms_err *err);
/* The best weights; of several those of that step, 0: of the best one. */
int saved_open_best(const struct saved_place *place, uint64_t step, struct ms_err *err);

#endif
