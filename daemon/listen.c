/* listen.c - listening sockets of the daemon: opened here or passed in, accept without spinning */
#include "daemon/listen.h"

#include "proto/addr.h"
#include "proto/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    BACKLOG = 4096,        /* thousands of workers come back at once after a restart */
    ACCEPT_BATCH = 16,     /* 2 ms of beginning TLS: then others get their turn */
    RETRY_MS = 250,        /* somebody may have closed a descriptor by then */
    TROUBLE_EVERY_S = 300, /* one line in five minutes */
};

struct listener {
    int fd;
    int is_on; /* wanted */
    int is_unix;
    int is_loopback;
    struct event *readable;
    struct event *retry;
    struct listener_handler handler;
    time_t said_s; /* monotonic second of the last line, 0: none yet */
    unsigned long failures;
    char address[MS_ADDR_MAX + 1];
    char made_path[MS_PATH_MAX + 1]; /* socket file to remove; "" none */
};

/* accept(2): a connection that died in the queue, or a network error that belongs to it, concerns
 * nobody. Without descriptors or memory the next call would fail just so. */
static int is_passing(int error)
{
    switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        return 0;
    default:
        return 1;
    }
}

static void pause_accept(struct listener *listener, int error)
{
    listener->failures++;
    event_del(listener->readable);
    struct timeval wait = {.tv_usec = RETRY_MS * 1000};
    evtimer_add(listener->retry, &wait);
    time_t now = (time_t)(ms_mono_ms() / 1000);
    if (listener->said_s != 0 && now - listener->said_s < TROUBLE_EVERY_S) {
        return;
    }
    char text[MS_TEXT_MAX];
    snprintf(text, sizeof(text), "accept on %s: %s (%lu times), retrying", listener->address,
             strerror(error), listener->failures);
    listener->said_s = now;
    listener->failures = 0;
    listener->handler.on_trouble(listener, text, listener->handler.arg);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct listener *listener = arg;
    (void)what;
    for (int i = 0; i < ACCEPT_BATCH && listener->is_on; i++) {
        int accepted = accept4((int)fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (accepted >= 0) {
            listener->handler.on_accept(listener, accepted, listener->handler.arg);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (!is_passing(errno)) {
            pause_accept(listener, errno);
            return;
        }
    }
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    struct listener *listener = arg;
    (void)fd;
    (void)what;
    if (listener->is_on) {
        event_add(listener->readable, NULL);
    }
}

/* Takes fd; on failure it is closed. */
static int make(struct event_base *base, int fd, const struct listener_handler *handler,
                struct listener **ret, struct ms_err *err)
{
    struct sockaddr_storage name;
    socklen_t length = sizeof(name);
    int listening = 0;
    socklen_t size = sizeof(listening);
    struct listener *listener = NULL;
    int rc = 0;
    if (getsockname(fd, (struct sockaddr *)&name, &length) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening ||
        (name.ss_family != AF_INET && name.ss_family != AF_INET6 && name.ss_family != AF_UNIX)) {
        rc = ms_fail(err, MS_E_CONFIG,
                     "file descriptor %d is no listening TCP or Unix socket: the socket unit needs "
                     "ListenStream=",
                     fd);
        goto out;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    listener = calloc(1, sizeof(*listener));
    if (listener != NULL) {
        listener->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, listener);
        listener->retry = evtimer_new(base, on_retry, listener);
    }
    if (listener == NULL || listener->readable == NULL || listener->retry == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "no memory for a listening socket");
        goto out;
    }
    listener->fd = fd;
    listener->handler = *handler;
    listener->is_unix = name.ss_family == AF_UNIX;
    listener->is_loopback = ms_addr_is_loopback((struct sockaddr *)&name);
    ms_addr_print((struct sockaddr *)&name, length, listener->address);
    if (listener->is_unix) {
        const struct sockaddr_un *at = (const struct sockaddr_un *)(const void *)&name;
        snprintf(listener->address, sizeof(listener->address), "unix:%.*s",
                 (int)sizeof(at->sun_path), at->sun_path);
    }
    *ret = listener;
    return 0;
out:
    if (listener != NULL) {
        listener->fd = -1;
        listener_close(listener);
    }
    close(fd);
    return rc;
}

int listener_adopt(struct event_base *base, int fd, const struct listener_handler *handler,
                   struct listener **ret, struct ms_err *err)
{
    return make(base, fd, handler, ret, err);
}

/* The group before the mode: until then it is open to its owner alone. */
static int give_socket(const char *path, unsigned mode, gid_t group, struct ms_err *err)
{
    if (group != (gid_t)-1 && chown(path, (uid_t)-1, group) != 0) {
        const struct group *entry = getgrgid(group);
        return ms_fail_errno(
            err, MS_E_CONFIG,
            "socket %s: cannot give it to the group %s (%u), whose members may use "
            "it; be a member of it (systemd-sysusers), and after an upgrade tell "
            "systemd (systemctl daemon-reload), or set socket_group = none",
            path, entry != NULL ? entry->gr_name : "?", (unsigned)group);
    }
    if (chmod(path, (mode_t)mode) != 0) {
        return ms_fail_errno(err, MS_E_CONFIG, "socket %s: chmod %o", path, mode);
    }
    return 0;
}

int listener_open(struct event_base *base, const char *address, unsigned mode, gid_t group,
                  const struct listener_handler *handler, struct listener **ret, struct ms_err *err)
{
    struct ms_addr addr;
    int rc = ms_addr_parse(address, MS_SCHED_PORT, &addr, err);
    if (rc < 0) {
        return rc;
    }
    mode_t before = umask(0177); /* nobody gets in between bind and chmod */
    int fd = ms_addr_listen(&addr, BACKLOG, err);
    umask(before);
    if (fd < 0) {
        return fd;
    }
    rc = make(base, fd, handler, ret, err);
    if (rc == 0 && addr.is_unix) {
        snprintf((*ret)->made_path, sizeof((*ret)->made_path), "%s", addr.host);
        rc = give_socket(addr.host, mode, group, err);
        if (rc < 0) {
            listener_close(*ret);
            *ret = NULL;
        }
    }
    return rc;
}

void listener_close(struct listener *listener)
{
    if (listener == NULL) {
        return;
    }
    if (listener->readable != NULL) {
        event_free(listener->readable);
    }
    if (listener->retry != NULL) {
        event_free(listener->retry);
    }
    if (listener->fd >= 0) {
        close(listener->fd);
    }
    if (listener->made_path[0] != '\0') {
        unlink(listener->made_path);
    }
    free(listener);
}

void listener_set(struct listener *listener, int on)
{
    if (listener->is_on == on) {
        return;
    }
    listener->is_on = on;
    if (on) {
        event_add(listener->readable, NULL);
    } else {
        event_del(listener->readable);
        event_del(listener->retry);
    }
}

int listener_is_unix(const struct listener *listener)
{
    return listener->is_unix;
}

int listener_is_loopback(const struct listener *listener)
{
    return listener->is_loopback;
}

const char *listener_address(const struct listener *listener)
{
    return listener->address;
}
