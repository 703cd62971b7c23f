/* listen.h - listening sockets of the daemon: opened here or passed in, accept without spinning
 *
 * When the process is out of file descriptors or memory, a listening socket stays readable for
 * ever: the listener goes off, tries again by a timer, and says so once in five minutes. */
#ifndef LISTEN_H
#define LISTEN_H

#include "proto/err.h"
#include "proto/limits.h"

#include <event2/event.h>
#include <sys/types.h>

struct listener;

/* Takes the accepted fd (CLOEXEC, non-blocking). */
typedef void on_accept_fn(struct listener *listener, int fd, void *arg);
/* A line for the log: accept fails for the reason in text; it is tried again. */
typedef void on_trouble_fn(struct listener *listener, const char *text, void *arg);

struct listener_handler {
    on_accept_fn *on_accept;
    on_trouble_fn *on_trouble;
    void *arg;
};

/* Binds address ("host:port", "unix:/path"). Unix sockets get mode, and group unless it is
 * (gid_t)-1. Returns owned, off. */
int listener_open(struct event_base *base, const char *address, unsigned mode, gid_t group,
                  const struct listener_handler *handler, struct listener **ret,
                  struct ms_err *err);
/* Takes fd, which must be a listening TCP or Unix stream socket (socket activation). */
int listener_adopt(struct event_base *base, int fd, const struct listener_handler *handler,
                   struct listener **ret, struct ms_err *err);
void listener_close(
    struct listener *listener); /* NULL allowed; removes a socket file that we made */

/* Turns accepting on or off: off leaves connections in the kernel's queue. */
void listener_set(struct listener *listener, int on);

int listener_is_unix(const struct listener *listener);
int listener_is_loopback(const struct listener *listener);     /* Unix sockets are, too */
const char *listener_address(const struct listener *listener); /* as bound: the real port */

#endif
