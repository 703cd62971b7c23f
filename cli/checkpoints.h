/* checkpoints.h - the checkpoints that a run leaves, and how one goes on from them */
#ifndef CLI_CHECKPOINTS_H
#define CLI_CHECKPOINTS_H

#include "cli/summary.h"
#include "libworker/train/checkpoint_folder.h"

struct cli_checkpoints {
    char folder[CHECKPOINT_PATH_MAX]; /* as the user sees it */
    char newest[CHECKPOINT_PATH_MAX]; /* the path of its manifest */
    uint64_t step;                    /* of the newest; 0: there is none */
    uint64_t own_step; /* ... that this very job wrote, and no other of its training */
    const char *place; /* what --resume finds them in: folder, or facts' */
};

/* Those of this training alone, by their manifests, and of the one that it was resumed from:
 * another one's may lie in the folder. facts are borrowed, and NULL where nothing is known of a
 * folder. */
void cli_checkpoints_look(const struct cli_run_facts *facts, struct cli_checkpoints *ret);
/* Which there are, why the last one could not be written, if so, and, where the job can go on, the
 * command; nothing where there is nothing of all that. */
void cli_checkpoints_print(FILE *out, const struct cli_run_facts *facts, int can_go_on);
/* Two keys, null where there are none. */
void cli_checkpoints_json(json_t *object, const struct cli_run_facts *facts);

#endif
