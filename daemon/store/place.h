/* place.h - what lies at the path of a database and beside it, before anything is opened or made */
#ifndef STORE_PLACE_H
#define STORE_PLACE_H

#include "proto/err.h"
#include "proto/limits.h"

#define STORE_SETTING "`database`" /* what names the file, where nobody says otherwise */

/* The absolute path of the file: what a symbolic link at the path leads to, else the name in its
 * real folder. SQLite keeps its log beside that one, and so belongs all else. A link that leads
 * nowhere and a folder that is not there are MS_E_CONFIG; where another file helps, setting is
 * what names it. */
int store_resolve(const char *database, const char *setting, char ret[MS_PATH_MAX + 1],
                  struct ms_err *err);

/* Looks at what lies at the path before anything is made beside it: nothing, an empty file (both:
 * *ret_absent) or a database of SQLite that is ours, or nobody's yet: without a table, or one of
 * ours whose first transaction is still in its log. All else is MS_E_CONFIG, and so is anything but
 * a regular file where its logs or its lock belong. */
int store_look(const char *database, const char *setting, int *ret_absent, struct ms_err *err);

/* Could a start use the database at the path, as far as modes and its first bytes tell? Opens,
 * locks and makes nothing. MS_E_CONFIG. */
int store_judge_place(const char *database, struct ms_err *err);

#endif
