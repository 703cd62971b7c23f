/* listener.h - inside of a worker's data-plane listener, for the handshake of a mesh */
#ifndef LISTENER_H
#define LISTENER_H

#include "libworker/comm/comm.h"

#include <stdatomic.h>

enum { LISTENER_UNIX_MAX = 64 };

struct comm_listener {
    int tcp_fd, unix_fd;
    int wake_fd; /* eventfd: readable while aborted */
    int port;
    char unix_name[LISTENER_UNIX_MAX];
    SSL_CTX *tls;
    atomic_int busy;    /* a mesh is being made on it */
    atomic_int refused; /* hellos answered with REFUSED so far */
};

#endif
