/* checkpoint_keep.h - whose the checkpoints of a folder are, which stay, and which go: in their
 * turn, or for want of room
 *
 * Inside of checkpoint_save: all borrow it for the call, on the thread that writes, or before there
 * is one. Nothing here fails: what cannot be read is nobody's and stays, and so does what cannot be
 * taken away. Damaged ones stay, too; none goes before one that stays is known to be whole. */
#ifndef CHECKPOINT_KEEP_H
#define CHECKPOINT_KEEP_H

#include "libworker/train/checkpoint_folder.h"
#include "libworker/train/checkpoint_save.h"

enum { CHECKPOINT_STEM_MAX = CHECKPOINT_PATH_MAX - 16 }; /* of a checkpoint's two paths */

/* How well a checkpoint is looked at. */
enum checkpoint_look { LOOK_AT_SIZE, LOOK_AT_DIGEST };

/* "<folder>/<prefix>-<step>" */
void checkpoint_keep_stem(const struct checkpoint_save *save, uint64_t step,
                          char ret[CHECKPOINT_STEM_MAX]);
/* Is there a complete one of that step that is this job's? */
int checkpoint_keep_has(const struct checkpoint_save *save, uint64_t step,
                        enum checkpoint_look look);
/* Step of the newest one of this job's, with data of the right size, that is not behind that step;
 * 0: there is none. */
uint64_t checkpoint_keep_newest(const struct checkpoint_save *save, uint64_t step);
/* Takes away what goes for the one of that step: older ones beyond keep_max, and what writers of
 * this job left that were killed. is_whole: that of this step is known to be. */
void checkpoint_keep_tidy(const struct checkpoint_save *save, uint64_t step, int is_whole);
/* Room for the one of that step: the oldest of this training goes, but not what the job would go on
 * from, nor one of its own behind that, which is damaged. False: there is none that may go. */
int checkpoint_keep_give_way(struct checkpoint_save *save, uint64_t step);

#endif
