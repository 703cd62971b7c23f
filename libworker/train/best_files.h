/* best_files.h - files of the best weights of a training, in its run directory: which there are
 *
 *     best.safetensors          of the best evaluation so far
 *     best-<step>.safetensors   of each of the best, where the job keeps several (best.keep); that
 *                               of the best one is another name of the same file
 *
 * How good they are stands in their metadata: steps, metric, value, training. */
#ifndef TRAIN_BEST_FILES_H
#define TRAIN_BEST_FILES_H

#include "libworker/train/saved_list.h"
#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

#define TRAIN_BEST_FILE "best.safetensors"
enum { BEST_NAME_MAX = 48, BEST_TRAINING_MAX = MS_JOB_TAG_LEN };

struct best_file {
    struct saved_best best;
    char training[BEST_TRAINING_MAX + 1];
};

/* "best-1200.safetensors". Returns buf. */
const char *best_file_name(uint64_t step, char buf[BEST_NAME_MAX]);
/* Of which step a file with such a name is; 0: it has none. */
uint64_t best_file_step(const char *name);

/* A name for the moment of a file that is to become one of these, drawn by lot: best.h. MS_E_IO:
 * the host gives no random bytes. */
int best_files_draw(char ret[BEST_NAME_MAX], struct ms_err *err);
/* Takes away all with such names, but own (NULL: none is). */
void best_files_clear(const char *folder, const char *own);

/* What the file says of itself. False: there is none, or it is none of these. */
int best_file_read(const char *path, struct best_file *ret);

/* Of that training and metric, all with a step in their names, the latest step first; at most
 * MS_BEST_MAX of the latest. Names that lie: are none. Fails with MS_E_NOMEM only; owned. */
int best_files_look(const char *folder, const char *training, const char *metric,
                    struct saved_best **ret, size_t *ret_n);

#endif
