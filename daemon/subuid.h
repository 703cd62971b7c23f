/* subuid.h - who owns a subordinate uid: subuid(5)
 *
 * Each account may have a range of them, 65,536 as a rule, and its processes be any of these in a
 * user namespace. To the kernel each is somebody else; here they are all that account. */
#ifndef SUBUID_H
#define SUBUID_H

#include "proto/limits.h"

#define SUBUID_FILE "/etc/subuid"
enum { SUBUID_LEAST = 65536 }; /* no range begins below */

/* 1 where uid lies in a range of the file: *ret_first is the first uid of that range, owner its
 * account as the file says it, a name or a number; ranges that overlap: the first. Reads the file,
 * which is short. Any thread. */
int subuid_find(const char *file, unsigned uid, unsigned *ret_first, char owner[MS_NAME_MAX + 1]);

#endif
