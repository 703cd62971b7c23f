/* dial.c - connects to the first address of a host that answers */
#include "proto/dial.h"

#include "proto/limits.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { ADDRESSES_MAX = 8, BACKLOG_RETRY_MS = 20 };

struct ms_dial {
    struct event_base *base;
    struct ms_sockaddr list[ADDRESSES_MAX];
    int n;
    int at; /* next to try */
    int fd;
    struct event *event;
    int timeout_ms; /* in all */
    int waited_ms;  /* for a place in the backlog of a Unix socket */
    int error;      /* errno of the last attempt; ETIMEDOUT where it stayed silent */
    int is_unix;
    char text[MS_ADDR_MAX + 1];
    ms_dial_fn *on_done;
    void *arg;
};

static void on_event(evutil_socket_t fd, short what, void *arg);

void ms_dial_destroy(struct ms_dial *dial)
{
    if (dial == NULL) {
        return;
    }
    if (dial->event != NULL) {
        event_free(dial->event);
    }
    if (dial->fd >= 0) {
        close(dial->fd);
    }
    free(dial);
}

/* Waits for fd to become writable, or (fd < 0) just for the time. */
static int wait_for(struct ms_dial *dial, int fd, int ms)
{
    struct timeval tv = {ms / 1000, (ms % 1000) * 1000};
    if (dial->event != NULL) {
        event_free(dial->event);
    }
    dial->event = event_new(dial->base, fd, fd >= 0 ? EV_WRITE : EV_TIMEOUT, on_event, dial);
    return dial->event != NULL && event_add(dial->event, &tv) == 0;
}

static void done(struct ms_dial *dial, int fd, int code, const char *text)
{
    ms_dial_fn *on_done = dial->on_done;
    void *arg = dial->arg;
    if (fd >= 0) {
        dial->fd = -1;
    }
    ms_dial_destroy(dial);
    on_done(fd, code, text, arg);
}

/* Advice that the socket itself gives: to join a group that may not use it opens nothing. */
static void who_may(const struct ms_dial *dial, char *ret, size_t size)
{
    const struct sockaddr_un *at = (const struct sockaddr_un *)(const void *)&dial->list[0].sa;
    struct stat st;
    struct group entry;
    struct group *found = NULL;
    char buf[4096];
    if (stat(at->sun_path, &st) != 0) {
        snprintf(ret, size, "a folder above it is closed to you");
    } else if ((st.st_mode & S_IWGRP) == 0) {
        snprintf(
            ret, size,
            "only its owner (uid %u) and root may, as the private one of somebody's msctl run, "
            "or with socket_group = none",
            (unsigned)st.st_uid);
    } else if (getgrgid_r(st.st_gid, &entry, buf, sizeof(buf), &found) == 0 && found != NULL) {
        snprintf(ret, size, "its group may, so: sudo usermod -aG %.64s NAME, and log in again",
                 entry.gr_name);
    } else {
        snprintf(ret, size, "its group may, which has the number %u and no name",
                 (unsigned)st.st_gid);
    }
}

static void done_failed(struct ms_dial *dial)
{
    struct ms_err err = {0, ""};
    const char *where = dial->text;
    char who[MS_TEXT_MAX / 2];
    switch (dial->error) {
    case ENOENT:
    case ECONNREFUSED:
        ms_fail(&err, MS_E_UNREACHABLE,
                "no scheduler listens at %s (%s): start msschedd there, or check "
                "--server, MS_SCHED_HOST, MS_SCHED_PORT, server in msctl.conf, msworker.conf",
                where, dial->error == ENOENT ? "no such socket" : "connection refused");
        break;
    case EACCES:
        who_may(dial, who, sizeof(who));
        ms_fail(&err, MS_E_REFUSED, "no permission to use the socket %s: %s", where, who);
        break;
    case ETIMEDOUT:
    case EAGAIN:
        ms_fail(&err, MS_E_UNREACHABLE,
                "%s does not answer within %d s: check the address, the network and the firewall",
                where, (dial->timeout_ms + 999) / 1000);
        break;
    default:
        errno = dial->error;
        ms_fail_errno(&err, MS_E_UNREACHABLE, "cannot reach %s; check the address and the network",
                      where);
        break;
    }
    done(dial, -1, err.code, err.text);
}

/* Tries addresses until one is under way or connected, or none is left. */
static void step(struct ms_dial *dial)
{
    while (dial->at < dial->n) {
        const struct ms_sockaddr *to = &dial->list[dial->at];
        const struct sockaddr *sa = (const struct sockaddr *)&to->sa;
        int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && connect(fd, sa, to->len) == 0) {
            dial->fd = fd;
            done(dial, fd, MS_OK, "");
            return;
        }
        dial->error = errno;
        if (fd >= 0 && dial->error == EINPROGRESS) {
            dial->fd = fd;
            if (wait_for(dial, fd, dial->timeout_ms / dial->n)) {
                return;
            }
            dial->error = ENOMEM;
            dial->fd = -1;
        }
        if (fd >= 0) {
            close(fd);
        }
        /* a Unix socket whose backlog is full says EAGAIN and offers no event to wait for */
        if (dial->is_unix && dial->error == EAGAIN && dial->waited_ms < dial->timeout_ms) {
            dial->waited_ms += BACKLOG_RETRY_MS;
            if (wait_for(dial, -1, BACKLOG_RETRY_MS)) {
                return;
            }
        }
        dial->at++;
    }
    done_failed(dial);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    struct ms_dial *dial = (struct ms_dial *)arg;
    if (fd < 0) {
        step(dial);
        return;
    }
    int error = ETIMEDOUT;
    socklen_t size = sizeof(error);
    if ((what & EV_WRITE) != 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
    }
    if (error == 0) {
        done(dial, fd, MS_OK, "");
        return;
    }
    dial->error = error;
    event_free(dial->event);
    dial->event = NULL;
    close(fd);
    dial->fd = -1;
    dial->at++;
    step(dial);
}

int ms_dial_start(struct event_base *base, const struct ms_addr *addr, int timeout_ms,
                  ms_dial_fn *on_done, void *arg, struct ms_dial **ret, struct ms_err *err)
{
    struct ms_dial *dial = (struct ms_dial *)calloc(1, sizeof(*dial));
    if (dial == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to connect");
    }
    dial->base = base;
    dial->fd = -1;
    dial->timeout_ms = timeout_ms;
    dial->is_unix = addr->is_unix;
    dial->on_done = on_done;
    dial->arg = arg;
    ms_addr_format(addr, dial->text);
    int n = ms_addr_resolve_all(addr, dial->list, ADDRESSES_MAX, err);
    if (n < 0) {
        ms_dial_destroy(dial);
        return n;
    }
    dial->n = n;
    if (!wait_for(dial, -1, 0)) { /* on_done never comes out of this call */
        ms_dial_destroy(dial);
        return ms_fail(err, MS_E_NOMEM, "no memory to connect");
    }
    *ret = dial;
    return MS_OK;
}
