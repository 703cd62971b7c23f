/* checkpoint_claim.h - the checkpoints of one prefix in a folder are one training's
 *
 * Who writes holds a lock beside them, which ends with its process, and none of those that lie
 * there is another training's. A training that was resumed is that of the checkpoint from which it
 * was. */
#ifndef CHECKPOINT_CLAIM_H
#define CHECKPOINT_CLAIM_H

#include "libworker/train/checkpoint_manifest.h"

struct checkpoint_claim {
    const char *folder, *prefix;           /* borrowed for its life */
    const struct checkpoint_manifest *who; /* ...; what all checkpoints of the job have in common */
    int lock_fd;                           /* -1: not held */
    int is_alone;                          /* there was none of another training */
};

void checkpoint_claim_init(struct checkpoint_claim *claim, const char *folder, const char *prefix,
                           const struct checkpoint_manifest *who);
void checkpoint_claim_fini(struct checkpoint_claim *claim); /* lets the lock go */

/* May be called again, and tries what failed before, or was taken away with the folder. Where the
 * file system has no locks, or an older process of this job has not let go, what lies there decides
 * alone. MS_E_REFUSED: they are another training's, or another process of one writes them; says
 * whose, and what to write. */
int checkpoint_claim_take(struct checkpoint_claim *claim, struct ms_err *err);
/* After it: may the checkpoint of that manifest be written? MS_E_REFUSED: another's has the name.
 */
int checkpoint_claim_check(const struct checkpoint_claim *claim, const char *path,
                           struct ms_err *err);
/* Is it of this training? */
int checkpoint_claim_owns(const struct checkpoint_claim *claim,
                          const struct checkpoint_manifest *manifest);

#endif
