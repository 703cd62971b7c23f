/* own_dir.h - a folder that nobody else can write to: what is put there stays what it was */
#ifndef CLI_OWN_DIR_H
#define CLI_OWN_DIR_H

#include "proto/err.h"

/* Opens the folder at path, which must belong to this user and be writable for him alone; flags:
 * O_NOFOLLOW where the name was chosen by a program. "the run directory x belongs to uid 7, and
 * keys will lie in it": what says which folder, danger why it matters. MS_E_REFUSED: it is somebody
 * else's, or others may write to it, or it is a link or no folder. */
int own_dir_open(const char *path, int flags, const char *what, const char *danger, int *ret_fd,
                 struct ms_err *err);

#endif
