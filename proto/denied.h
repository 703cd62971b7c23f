/* denied.h - who keeps us from a file, by modes, and what lets us in
 *
 * For the words of errors only: it looks again, when opening has failed, and asks NSS for names.
 * Any thread. */
#ifndef MS_DENIED_H
#define MS_DENIED_H

#include "proto/err.h"

#include <stddef.h>
#include <sys/types.h>

/* mode: R_OK, W_OK and X_OK, or-ed. Puts the first folder on the way that lets us not in, else path
 * itself, else (it is to be written and not there) the folder that it would lie in, into ret_at.
 * 0: no mode keeps us out. */
int ms_denied_at(const char *path, int mode, char *ret_at, size_t size);

/* rc and err are of what somebody tried with path. Where modes keep us from it, err also says whose
 * it is, who we are, and the command that mends it. Returns rc. */
int ms_denied(const char *path, int mode, int rc, struct ms_err *err);

/* 1: what lies at path is the service's, by its owner, its group or its folder (/etc/msched,
 * /var/lib/msched), and we are neither root nor the service's user. Who would give it to us takes
 * it from the daemons, or gives a key away: such a person needs sudo, or files of his own. */
int ms_denied_is_services(const char *path, uid_t owner, gid_t group);

/* The user's name where there is one, else the number, as chown(1) takes both. Returns buf. */
const char *ms_denied_name(uid_t uid, char *buf, size_t size);

#endif
