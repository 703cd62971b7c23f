/* notify.c - sd_notify(3) and socket activation without libsystemd: one datagram, two variables */
#include "proto/notify.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { LISTEN_FDS_START = 3, LISTEN_FDS_MAX = 64 };

void ms_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un addr;
    memset(&addr, 0, sizeof(addr));
    if (path == NULL || (path[0] != '/' && path[0] != '@') || path[1] == '\0' ||
        strlen(path) >= sizeof(addr.sun_path)) {
        return;
    }
    size_t length = strlen(path);
    addr.sun_family = AF_UNIX;
    memcpy(addr.sun_path, path, length);
    if (path[0] == '@') { /* abstract: no file, the length counts */
        addr.sun_path[0] = '\0';
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    /* nobody listening is the service manager's trouble, not ours */
    ssize_t sent =
        sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&addr, size);
    (void)sent;
    close(fd);
}

/* 1 where the variable that limits another one to a process is absent (if optional) or ours. */
static int is_for_us(const char *variable, int optional)
{
    const char *text = getenv(variable);
    if (text == NULL) {
        return optional;
    }
    char *end = NULL;
    long long pid = strtoll(text, &end, 10);
    return *text != '\0' && *end == '\0' && pid == (long long)getpid();
}

uint64_t ms_notify_watchdog_us(void)
{
    const char *text = getenv("WATCHDOG_USEC");
    if (text == NULL || text[0] < '0' || text[0] > '9' || !is_for_us("WATCHDOG_PID", 1)) {
        return 0;
    }
    char *end = NULL;
    uint64_t us = strtoull(text, &end, 10);
    return *end == '\0' && us < UINT64_MAX ? us : 0;
}

int ms_notify_listen_fds(void)
{
    const char *text = getenv("LISTEN_FDS");
    if (text == NULL || !is_for_us("LISTEN_PID", 0)) {
        return 0;
    }
    char *end = NULL;
    long n = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || n <= 0 || n > LISTEN_FDS_MAX) {
        return 0;
    }
    for (int fd = LISTEN_FDS_START; fd < LISTEN_FDS_START + (int)n; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) < 0) {
            return 0; /* a variable that somebody forgot to unset */
        }
    }
    return (int)n;
}
