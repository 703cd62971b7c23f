/* peer_uid.h - whose the other end of a TCP connection is, where it is on this host
 *
 * An address says nothing about who is behind it on one's own host: loopback has 16 million, free
 * for every account. The kernel knows, by the socket that it finds at the other end (sock_diag(7)).
 * Never waits. Loop thread. */
#ifndef PEER_UID_H
#define PEER_UID_H

#include "proto/err.h"

/* A descriptor to ask with, which the caller closes; below 0: this kernel, or the unit, has none.
 */
int peer_uid_open(void);
/* 0 and *ret_uid for the accepted fd; below 0: the other end is on another host, has gone, or asker
 * is none. */
int peer_uid_find(int asker, int fd, unsigned *ret_uid);

#endif
