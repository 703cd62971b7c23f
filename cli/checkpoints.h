/* checkpoints.h - the checkpoints that a run leaves, and how one goes on from them */
#ifndef CLI_CHECKPOINTS_H
#define CLI_CHECKPOINTS_H

#include "cli/summary.h"
#include "libworker/train/checkpoint_folder.h"

struct cli_checkpoints {
    char folder[CHECKPOINT_PATH_MAX]; /* as the user sees it */
    char newest[CHECKPOINT_PATH_MAX]; /* the path of the manifest of the newest that is whole */
    uint64_t step;                    /* ... and its step; 0: there is none */
    uint64_t own_step;  /* of the newest that this very job wrote, and no other of its training */
    unsigned n_damaged; /* newer than the newest that is whole */
    uint64_t damaged_step; /* of the newest of them */
    const char *place;     /* what --resume finds them in: folder, or facts' */
};

/* Those of this training alone, by their manifests, and of the one that it was resumed from:
 * another one's may lie in the folder. The data of the newest, and of older ones until one is
 * whole, are read. facts are borrowed, and NULL where nothing is known of a folder. */
void cli_checkpoints_look(const struct cli_run_facts *facts, struct cli_checkpoints *ret);
/* The following with what was found, facts->saved. Which there are, why the last one could not be
 * written, if so, and, where the job can go on, the command; nothing where there is nothing of all
 * that. */
void cli_checkpoints_print(FILE *out, const struct cli_run_facts *facts, int can_go_on);
/* Two keys, null where there are none. */
void cli_checkpoints_json(json_t *object, const struct cli_run_facts *facts);

#endif
