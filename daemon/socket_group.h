/* socket_group.h - the group whose members may use the scheduler's Unix socket
 *
 * It is not the daemon's own group: that one owns keys. Any thread; looks into the group database.
 */
#ifndef SOCKET_GROUP_H
#define SOCKET_GROUP_H

#include "proto/err.h"

#include <sys/types.h>

#define SOCKET_GROUP_NONE ((gid_t)-1)

/* The gid of a group ("none" and "": SOCKET_GROUP_NONE) that this process may give to a file: as
 * root, or as its member. MS_E_CONFIG says what is missing and which command mends it. */
int socket_group_find(const char *name, gid_t *ret, struct ms_err *err);

#endif
