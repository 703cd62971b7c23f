/* subuid.h - who owns a subordinate uid: subuid(5)
 *
 * Each account may have a range of them, 65,536 as a rule, and its processes be any of these in a
 * user namespace. To the kernel each is somebody else; here they are all that account. */
#ifndef SUBUID_H
#define SUBUID_H

#include "proto/limits.h"

#define SUBUID_FILE "/etc/subuid"
enum { SUBUID_LEAST = 65536 }; /* below are accounts, whatever the file says */

/* 1 where uid lies in a range of the file: *ret_first is the first subordinate uid of that range,
 * owner its account as the file says it, a name or a number; ranges that overlap: the first. A
 * range beyond the uids that there are is none. Reads the file, which is short. Any thread. */
int subuid_find(const char *file, unsigned uid, unsigned *ret_first, char owner[MS_NAME_MAX + 1]);

/* A uid in digits, and nothing else: 1, and *ret is it. */
int subuid_number(const char *text, unsigned *ret);

#endif
