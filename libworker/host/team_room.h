/* team_room.h - may this process have the threads that a team of OpenMP wants?
 *
 * OpenMP ends the whole process where it cannot make a thread. So somebody else tries first. */
#ifndef TEAM_ROOM_H
#define TEAM_ROOM_H

#include "proto/err.h"

#include <stddef.h>

/* How many of n threads this process can have beside those that it has: made, and ended again.
 * stack_bytes 0: as programs here get them. Fewer than n: errno says why, and why (NULL allowed)
 * which limit, with the next step. Any thread. */
enum { TEAM_ROOM_WHY_MAX = 160 };
int team_room_count(int n, size_t stack_bytes, char why[TEAM_ROOM_WHY_MAX]);

/* Makes the calling thread's team, of so many threads, where they can be made; nothing to do where
 * it has that team. OpenMP's settings of the thread allow it. MS_E_UNSUPPORTED names the limit. */
int team_room_take(int threads, struct ms_err *err);

#endif
