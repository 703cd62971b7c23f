/* checkpoint_save.h - one checkpoint onto the disk, and what goes for it
 *
 *     data: synced, named -> manifest: synced, named -> the folder: synced -> the oldest go
 *
 * One of the same training and step that another of its jobs wrote becomes this job's: it gets this
 * job's manifest, and keeps its data.
 *
 * A kill or a full disk at any byte leaves the checkpoints that were complete as they were, but
 * that the oldest go where there is no room for the new one: never what the job would go on from
 * were all its ranks lost. */
#ifndef CHECKPOINT_SAVE_H
#define CHECKPOINT_SAVE_H

#include "libworker/train/checkpoint_claim.h"
#include "libworker/train/checkpoint_manifest.h"
#include "libworker/train/checkpoint_state.h"
#include "libworker/train/checkpoint_writer.h"

struct checkpoint_save {
    const struct checkpoint_writer_config *cfg;
    struct checkpoint_state state;
    struct plan_layout *layout;
    struct checkpoint_manifest manifest; /* what all checkpoints of the job have in common */
    struct checkpoint_claim claim;
    int gave_way; /* older ones went before their turn, for there was no room for the new one */
};

/* cfg is borrowed. Needs checkpoint_save_fini also where it fails. */
int checkpoint_save_init(struct checkpoint_save *save, const struct checkpoint_writer_config *cfg,
                         struct ms_err *err);
void checkpoint_save_fini(struct checkpoint_save *save);
/* Before the first write: whose training it is (checkpoint_writer.h). */
void checkpoint_save_descend(struct checkpoint_save *save, const char *first_tag);
/* MS_E_IO: nothing can be written there, ever. What may pass is said by the write. */
int checkpoint_save_make_folder(const struct checkpoint_save *save, struct ms_err *err);
/* May this training write there? MS_E_REFUSED: what lies there is another's; says whose. */
int checkpoint_save_claim(struct checkpoint_save *save, struct ms_err *err);
/* Is there a complete one of that step that is this job's, by its manifest? */
int checkpoint_save_has(const struct checkpoint_save *save, uint64_t step);
/* Takes away what goes for the one of that step, or would: older ones beyond keep_max, and what
 * writers of this job left that were killed. */
void checkpoint_save_tidy(const struct checkpoint_save *save, uint64_t step);
/* One thread at a time. buffers: as replica_state's. */
int checkpoint_save_write(struct checkpoint_save *save, void *const *buffers,
                          const struct checkpoint_facts *facts, struct ms_err *err);

#endif
