/* checkpoint_impl.h - what checkpoint.c and checkpoint_find.c share */
#ifndef CHECKPOINT_IMPL_H
#define CHECKPOINT_IMPL_H

#include "libworker/train/train.h"

/* Where the job's own checkpoints lie on this rank's host. MS_E_INVALID, MS_E_REFUSED: nowhere. */
int checkpoint_folder_of(const struct train *train, char ret[MS_PATH_MAX + 1], struct ms_err *err);

#endif
