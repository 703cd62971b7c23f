/* listener.c - where the peers of a worker process connect: a TCP port and an abstract Unix socket
 *
 * It only listens. Nobody accepts between two meshes: the kernel's backlog keeps the peers that are
 * early, mesh_create takes them. */
#include "libworker/comm/listener.h"

#include "proto/addr.h"
#include "proto/discard.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* All peers of the largest job may be early; the kernel cuts it to net.core.somaxconn. */
enum { BACKLOG = MS_WORKERS_MAX };

static int listen_at(const char *ip, int port, int *ret_fd, struct ms_err *err)
{
    struct ms_addr addr = {0};
    struct sockaddr_storage sa = {0};
    socklen_t len = 0;
    snprintf(addr.host, sizeof(addr.host), "%s", ip);
    addr.port = port;
    int rc = ms_addr_resolve(&addr, &sa, &len, err);
    if (rc < 0) {
        return rc;
    }
    int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot make a socket for the data plane");
    }
    int on = 1;
    int off = 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* accepted ones inherit it */
    if (sa.ss_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if (bind(fd, (struct sockaddr *)&sa, len) < 0 || listen(fd, BACKLOG) < 0) {
        rc = ms_fail_errno(err, errno == EADDRINUSE ? MS_E_EXISTS : MS_E_IO,
                           "cannot listen on %s port %d for the data plane", ip, port);
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

int comm_listener_check_ports(int port_min, int port_max, struct ms_err *err)
{
    return port_min >= 0 && port_max <= 65535 && port_min <= port_max
               ? 0
               : ms_fail(err, MS_E_INVALID,
                         "data_port_min %d and data_port_max %d are no range of ports within "
                         "0-65535: the first must not be above the last",
                         port_min, port_max);
}

int comm_listener_check_ip(const char *ip, struct ms_err *err)
{
    struct ms_addr addr = {0};
    struct sockaddr_storage sa = {0};
    socklen_t len = 0;
    snprintf(addr.host, sizeof(addr.host), "%s", ip);
    int rc = ms_addr_resolve(&addr, &sa, &len, err);
    if (rc < 0) { /* a name, perhaps: it may be known when it is needed */
        return rc == MS_E_INVALID ? rc : 0;
    }
    int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int is_foreign = fd >= 0 && bind(fd, (struct sockaddr *)&sa, len) < 0 && errno == EADDRNOTAVAIL;
    if (fd >= 0) {
        close(fd);
    }
    return is_foreign ? ms_fail(err, MS_E_CONFIG,
                                "no interface of this host has the address %s; list them: "
                                "ip -br addr",
                                ip)
                      : 0;
}

static int open_tcp(struct comm_listener *listener, const struct comm_listener_config *cfg,
                    struct ms_err *err)
{
    int rc = comm_listener_check_ports(cfg->port_min, cfg->port_max, err);
    if (rc < 0) {
        return rc;
    }
    for (int port = cfg->port_min; port <= cfg->port_max; port++) {
        rc = listen_at(cfg->bind_ip, port, &listener->tcp_fd, err);
        if (rc != MS_E_EXISTS) {
            break;
        }
    }
    if (rc == MS_E_EXISTS) {
        return ms_fail(err, MS_E_EXISTS,
                       "every data port from %d to %d of %s is taken; find who holds them with: ss "
                       "-ltnp, or widen data_port_min to data_port_max",
                       cfg->port_min, cfg->port_max, cfg->bind_ip);
    }
    if (rc < 0) {
        return rc;
    }
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof(sa);
    if (getsockname(listener->tcp_fd, (struct sockaddr *)&sa, &len) < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot read the port of the data plane");
    }
    listener->port = ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
                                                    : ((struct sockaddr_in *)&sa)->sin_port);
    return 0;
}

/* Anybody in the network namespace can connect to an abstract socket: the name is random so that
 * nobody can take it first, and who connects is judged by uid and token. */
static int open_unix(struct comm_listener *listener, struct ms_err *err)
{
    uint64_t random[2];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return ms_fail_errno(err, MS_E_IO, "cannot get random bytes for the data plane's socket");
    }
    snprintf(listener->unix_name, sizeof(listener->unix_name), "msched-%016llx%016llx",
             (unsigned long long)random[0], (unsigned long long)random[1]);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t name_len = strlen(listener->unix_name);
    memcpy(sa.sun_path + 1, listener->unix_name, name_len);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name_len);
    listener->unix_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->unix_fd < 0 || bind(listener->unix_fd, (struct sockaddr *)&sa, len) < 0 ||
        listen(listener->unix_fd, BACKLOG) < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot listen on the abstract socket @%s",
                             listener->unix_name);
    }
    return 0;
}

int comm_listener_create(const struct comm_listener_config *cfg, struct comm_listener **ret,
                         struct ms_err *err)
{
    struct comm_listener *listener = calloc(1, sizeof(*listener));
    if (listener == NULL) {
        return ms_fail(err, MS_E_NOMEM, "out of memory for the data plane's listener");
    }
    listener->tcp_fd = -1;
    listener->unix_fd = -1;
    comm_listener_set_tls(listener, cfg->tls);
    listener->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int rc = 0;
    if (listener->wake_fd < 0) {
        rc = ms_fail_errno(err, MS_E_IO, "cannot make an eventfd for the data plane");
    }
    if (rc == 0) {
        rc = open_tcp(listener, cfg, err);
    }
    if (rc == 0) {
        rc = open_unix(listener, err);
    }
    if (rc < 0) {
        comm_listener_destroy(listener);
        return rc;
    }
    *ret = listener;
    return 0;
}

void comm_listener_destroy(struct comm_listener *listener)
{
    if (listener == NULL) {
        return;
    }
    int fds[] = {listener->tcp_fd, listener->wake_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    if (listener->unix_fd >= 0) { /* strangers may wait in its backlog */
        ms_discard_fds(&listener->unix_fd, 1);
    }
    SSL_CTX_free(listener->tls);
    free(listener);
}

void comm_listener_set_tls(struct comm_listener *listener, SSL_CTX *tls)
{
    if (tls != NULL) {
        SSL_CTX_up_ref(tls);
    }
    SSL_CTX_free(listener->tls);
    listener->tls = tls;
}

int comm_listener_port(const struct comm_listener *listener)
{
    return listener->port;
}

const char *comm_listener_unix(const struct comm_listener *listener)
{
    return listener->unix_name;
}

void comm_listener_abort(struct comm_listener *listener)
{
    uint64_t one = 1;
    (void)!write(listener->wake_fd, &one, sizeof(one)); /* full: it is readable already */
}

void comm_listener_resume(struct comm_listener *listener)
{
    uint64_t count = 0;
    (void)!read(listener->wake_fd, &count, sizeof(count)); /* empty: it was not aborted */
}

int comm_host_id(char *ret, size_t size, struct ms_err *err)
{
    char boot[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file == NULL || fgets(boot, sizeof(boot), file) == NULL) {
        if (file != NULL) {
            fclose(file);
        }
        return ms_fail_errno(err, MS_E_IO, "cannot read /proc/sys/kernel/random/boot_id");
    }
    fclose(file);
    boot[strcspn(boot, "\n")] = '\0';
    struct stat st;
    if (stat("/proc/self/ns/net", &st) < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot look at /proc/self/ns/net");
    }
    snprintf(ret, size, "%s/%llu", boot, (unsigned long long)st.st_ino);
    return 0;
}
