/* socket_group.c - the group whose members may use the scheduler's Unix socket */
#include "daemon/socket_group.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* chown(2) lets a process give its files to its own groups alone; root may do it with any. */
static int may_give(gid_t gid)
{
    if (geteuid() == 0 || getegid() == gid) {
        return 1;
    }
    int n = getgroups(0, NULL);
    gid_t *mine = n > 0 ? calloc((size_t)n, sizeof(*mine)) : NULL;
    int found = 0;
    n = mine != NULL ? getgroups(n, mine) : 0;
    for (int i = 0; i < n; i++) {
        found |= mine[i] == gid;
    }
    free(mine);
    return found;
}

int socket_group_find(const char *name, gid_t *ret, struct ms_err *err)
{
    if (name == NULL || name[0] == '\0' || strcmp(name, "none") == 0) {
        *ret = SOCKET_GROUP_NONE;
        return 0;
    }
    errno = 0;
    const struct group *entry = getgrnam(name);
    if (entry == NULL) {
        return ms_fail(err, MS_E_CONFIG,
                       "socket_group: there is no group '%.64s'%s%s; systemd-sysusers makes "
                       "msched-users, none keeps the socket to root and the daemon's user",
                       name, errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
    }
    if (!may_give(entry->gr_gid)) {
        return ms_fail(err, MS_E_CONFIG,
                       "socket_group: the daemon's user is no member of '%.64s', so it cannot give "
                       "the socket to it: usermod -aG %.64s msched, and restart",
                       name, name);
    }
    *ret = entry->gr_gid;
    return 0;
}
