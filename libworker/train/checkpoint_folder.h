/* checkpoint_folder.h - the checkpoints of a folder: which there are, which are complete
 *
 *     <prefix>-<step>.safetensors   weights, moving statistics, optimizer slots
 *     <prefix>-<step>.json          the manifest, written last */
#ifndef CHECKPOINT_FOLDER_H
#define CHECKPOINT_FOLDER_H

#include "libworker/train/checkpoint_manifest.h"

#include <stddef.h>

enum { CHECKPOINT_PATH_MAX = MS_PATH_MAX + CHECKPOINT_NAME_MAX + 2 };

struct checkpoint_entry {
    uint64_t step;
    char path[CHECKPOINT_PATH_MAX]; /* of the manifest */
};

struct checkpoint_entries { /* the highest step first */
    struct checkpoint_entry *entries;
    size_t n;
};

void checkpoint_entries_fini(struct checkpoint_entries *entries);

/* By their names alone: nothing is opened. prefix NULL: any. A folder that is not there has none.
 * MS_E_REFUSED: we may not look into it. */
int checkpoint_list(const char *folder, const char *prefix, struct checkpoint_entries *ret,
                    struct ms_err *err);
/* For who names one by its files' name without an end ("lenet-1875"), or as MindSpore would call it
 * ("lenet-2_938", epoch and step in it; also with .ckpt): the manifest's path into ret. 0: none is
 * called so. */
int checkpoint_find_named(const char *path, char ret[CHECKPOINT_PATH_MAX]);
/* For who names a place: one manifest, also as above, a folder, or one whose folders have them (a
 * run directory). MS_E_NOT_FOUND: there is no such place. MS_E_REFUSED: as above. */
int checkpoint_search(const char *path, struct checkpoint_entries *ret, struct ms_err *err);
/* Did who named that place, where those were found, name one checkpoint, and no folder? */
int checkpoint_is_named(const char *path, const struct checkpoint_entries *found);

/* The lock of who writes those of a prefix: this, and the prefix (checkpoint_claim.h). */
#define CHECKPOINT_LOCK_PREFIX ".msched-lock-"

/* Is it a name of a checkpoint's files, of one in the making, or of a lock? */
int checkpoint_names(const char *name);

/* Whose files they are: of this program, or such as a job names (data/path.h judges those). */
enum checkpoint_owner { CHECKPOINT_OWN, CHECKPOINT_NAMED };

/* Reads the manifest, and looks whether its data are there with their size. MS_E_INVALID: damaged;
 * says how. */
int checkpoint_read(const char *path, enum checkpoint_owner owner, struct checkpoint_manifest *ret,
                    struct ms_err *err);
/* As of this program's own, where no data lie beside it. 0: they do, or it is no manifest. */
int checkpoint_read_lone(const char *path, struct checkpoint_manifest *ret);
/* Do its data have their digest? Reads them all. MS_E_INVALID: they are damaged. */
int checkpoint_verify(const char *path, enum checkpoint_owner owner,
                      const struct checkpoint_manifest *manifest, struct ms_err *err);
/* The path of its data, into ret. Returns ret. */
const char *checkpoint_data_path(const char *path, const struct checkpoint_manifest *manifest,
                                 char ret[CHECKPOINT_PATH_MAX]);
/* Takes both files away, the manifest first. */
void checkpoint_remove(const char *path);
/* Takes away data without a manifest, of a writer of this training that was killed between the two:
 * what says of itself that it is. A writer that lives, and may hang, holds its data locked until
 * the manifest is named: those stay. tag: of the job that began the training; "": nobody can tell,
 * and all stay. */
void checkpoint_remove_orphans(const char *folder, const char *prefix, const char *tag);

#endif
