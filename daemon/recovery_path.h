/* recovery_path.h - MS_RECOVERY_PATH: the folder in which a dynamic cluster's scheduler keeps its
 * database */
#ifndef RECOVERY_PATH_H
#define RECOVERY_PATH_H

#include "proto/err.h"

/* Makes what is missing of the folder, for this user alone, and judges it. MS_E_CONFIG, naming the
 * variable, the folder and the next step: nobody could keep a database there. */
int recovery_path_make(const char *path, struct ms_err *err);

/* The same, and makes nothing: could it be made? */
int recovery_path_judge(const char *path, struct ms_err *err);

#endif
