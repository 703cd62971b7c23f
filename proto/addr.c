/* addr.c - addresses as people write them: host:port, [v6]:port, unix:/path */
#include "proto/addr.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { PORT_MAX = 65535, UNIX_PATH_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 1 };

static int parse_unix(const char *text, const char *path, struct ms_addr *ret, struct ms_err *err)
{
    if (path[0] != '/') {
        return ms_fail(err, MS_E_INVALID, "address '%s': the path of a Unix socket begins with /",
                       text);
    }
    if (strlen(path) > UNIX_PATH_MAX) {
        return ms_fail(err, MS_E_INVALID,
                       "address 'unix:%.40s...': the path of a Unix socket has at most %d bytes: "
                       "use a shorter directory",
                       path, UNIX_PATH_MAX);
    }
    memset(ret, 0, sizeof(*ret));
    ret->is_unix = 1;
    memcpy(ret->host, path, strlen(path));
    return MS_OK;
}

static int parse_port(const char *text, const char *digits, int *ret, struct ms_err *err)
{
    char *end = NULL;
    long port = digits[0] >= '0' && digits[0] <= '9' ? strtol(digits, &end, 10) : -1;
    if (end == NULL || *end != '\0' || port < 0 || port > PORT_MAX) {
        return ms_fail(err, MS_E_INVALID, "address '%s': the port '%s' is no number of 0 to %d",
                       text, digits, PORT_MAX);
    }
    *ret = (int)port;
    return MS_OK;
}

static int check_host(const char *text, const char *host, size_t length, struct ms_err *err)
{
    if (length == 0) {
        return ms_fail(err, MS_E_INVALID,
                       "address '%s': the host is missing; write host:port ([::]:port for all "
                       "addresses of this host)",
                       text);
    }
    if (length > MS_HOST_MAX) {
        return ms_fail(err, MS_E_INVALID, "address: the host has %zu bytes, the limit is %d",
                       length, MS_HOST_MAX);
    }
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789.-_:%";
    for (size_t i = 0; i < length; i++) {
        if (strchr(legal, host[i]) == NULL) {
            return ms_fail(
                err, MS_E_INVALID,
                "address '%s': the character 0x%02x is not allowed in a host name; write "
                "host:port, [v6]:port or unix:/path",
                text, (unsigned char)host[i]);
        }
    }
    if (strspn(host, "0123456789") >= length) { /* the system would take it for an IPv4 address */
        return ms_fail(
            err, MS_E_INVALID,
            "address '%s': a number alone is no host; write host:port ([::]:%.*s for all "
            "addresses of this host)",
            text, (int)length, host);
    }
    return MS_OK;
}

int ms_addr_parse(const char *text, int default_port, struct ms_addr *ret, struct ms_err *err)
{
    if (strncmp(text, "unix:", 5) == 0) {
        return parse_unix(text, text + 5, ret, err);
    }
    if (text[0] == '/') {
        return parse_unix(text, text, ret, err);
    }
    const char *host = text;
    const char *host_end = NULL;
    const char *port_text = NULL;
    const char *colon = strchr(text, ':');
    if (text[0] == '[') {
        host = text + 1;
        host_end = strchr(text, ']');
        if (host_end == NULL || (host_end[1] != '\0' && host_end[1] != ':')) {
            return ms_fail(err, MS_E_INVALID, "address '%s': write [v6 address]:port", text);
        }
        port_text = host_end[1] == ':' ? host_end + 2 : NULL;
    } else if (colon != NULL && strchr(colon + 1, ':') != NULL) {
        struct in6_addr v6;
        if (inet_pton(AF_INET6, text, &v6) != 1 || default_port == 0) {
            return ms_fail(err, MS_E_INVALID,
                           "address '%s': an IPv6 address with a port is written [address]:port",
                           text);
        }
        host_end = text + strlen(text);
    } else {
        host_end = colon != NULL ? colon : text + strlen(text);
        port_text = colon != NULL ? colon + 1 : NULL;
    }
    size_t length = (size_t)(host_end - host);
    int port = default_port;
    int rc = check_host(text, host, length, err);
    if (rc == MS_OK && port_text != NULL) {
        rc = parse_port(text, port_text, &port, err);
    } else if (rc == MS_OK && default_port == 0) {
        rc = ms_fail(err, MS_E_INVALID, "address '%s': the port is missing; write host:port", text);
    }
    if (rc == MS_OK) {
        memset(ret, 0, sizeof(*ret));
        memcpy(ret->host, host, length);
        ret->port = port;
    }
    return rc;
}

const char *ms_addr_format(const struct ms_addr *addr, char *buf)
{
    if (addr->is_unix) {
        snprintf(buf, MS_ADDR_MAX + 1, "unix:%s", addr->host);
    } else if (strchr(addr->host, ':') != NULL) {
        snprintf(buf, MS_ADDR_MAX + 1, "[%s]:%d", addr->host, addr->port);
    } else {
        snprintf(buf, MS_ADDR_MAX + 1, "%s:%d", addr->host, addr->port);
    }
    return buf;
}

static socklen_t unix_address(const char *path, struct sockaddr_storage *ret)
{
    struct sockaddr_un un;
    memset(&un, 0, sizeof(un));
    un.sun_family = AF_UNIX;
    assert(strlen(path) <= UNIX_PATH_MAX);
    memcpy(un.sun_path, path, strlen(path));
    memcpy(ret, &un, sizeof(un));
    return (socklen_t)sizeof(un);
}

static int resolve_fail(const struct ms_addr *addr, int gai, struct ms_err *err)
{
    const char *why = gai == EAI_SYSTEM ? strerror(errno) : gai_strerror(gai);
    if (if_nametoindex(addr->host) != 0) {
        return ms_fail(err, MS_E_INVALID,
                       "'%s' is the name of an interface: write an address or a host name (its own "
                       "are listed by: ip -br addr show %s)",
                       addr->host, addr->host);
    }
    return ms_fail(err, gai == EAI_NONAME ? MS_E_NOT_FOUND : MS_E_UNREACHABLE,
                   "the host name '%s' cannot be looked up: %s; check its spelling, /etc/hosts "
                   "and DNS",
                   addr->host, why);
}

int ms_addr_resolve_all(const struct ms_addr *addr, struct ms_sockaddr *ret, size_t max,
                        struct ms_err *err)
{
    memset(ret, 0, max * sizeof(*ret));
    if (addr->is_unix) {
        ret[0].len = unix_address(addr->host, &ret[0].sa);
        return 1;
    }
    char port[16];
    snprintf(port, sizeof(port), "%d", addr->port);
    struct addrinfo hints;
    memset(&hints, 0, sizeof(hints));
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    struct addrinfo *list = NULL;
    int gai = getaddrinfo(addr->host, port, &hints, &list);
    if (gai != 0) {
        return resolve_fail(addr, gai, err);
    }
    int n = 0;
    for (struct addrinfo *ai = list; ai != NULL && (size_t)n < max; ai = ai->ai_next) {
        if (ai->ai_addrlen <= sizeof(ret[n].sa)) {
            memcpy(&ret[n].sa, ai->ai_addr, ai->ai_addrlen);
            ret[n].len = ai->ai_addrlen;
            n++;
        }
    }
    freeaddrinfo(list);
    return n;
}

int ms_addr_resolve(const struct ms_addr *addr, struct sockaddr_storage *ret, socklen_t *ret_len,
                    struct ms_err *err)
{
    struct ms_sockaddr one;
    int n = ms_addr_resolve_all(addr, &one, 1, err);
    if (n < 0) {
        return n;
    }
    *ret = one.sa;
    *ret_len = one.len;
    return MS_OK;
}

/* The IPv4 address inside a mapped ::ffff:a.b.c.d, or NULL. */
static const uint8_t *mapped_v4(const struct sockaddr_in6 *in6)
{
    return IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) ? in6->sin6_addr.s6_addr + 12 : NULL;
}

int ms_addr_names_loopback(const struct ms_addr *addr)
{
    struct in_addr v4;
    const char *host = addr->host;
    return !addr->is_unix &&
           (strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0 ||
            (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127));
}

int ms_addr_is_loopback(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_UNIX) {
        return 1;
    }
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, sa, sizeof(in));
        return ntohl(in.sin_addr.s_addr) >> 24 == 127;
    }
    if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, sa, sizeof(in6));
        const uint8_t *v4 = mapped_v4(&in6);
        return v4 != NULL ? v4[0] == 127 : IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
    }
    return 0;
}

const char *ms_addr_print(const struct sockaddr *sa, socklen_t len, char *buf)
{
    char host[INET6_ADDRSTRLEN + 1] = "?";
    if (sa->sa_family == AF_INET && len >= (socklen_t)sizeof(struct sockaddr_in)) {
        struct sockaddr_in in;
        memcpy(&in, sa, sizeof(in));
        inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
        snprintf(buf, MS_ADDR_MAX + 1, "%s:%u", host, (unsigned)ntohs(in.sin_port));
    } else if (sa->sa_family == AF_INET6 && len >= (socklen_t)sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 in6;
        memcpy(&in6, sa, sizeof(in6));
        const uint8_t *v4 = mapped_v4(&in6);
        inet_ntop(v4 != NULL ? AF_INET : AF_INET6, v4 != NULL ? (const void *)v4 : &in6.sin6_addr,
                  host, sizeof(host));
        snprintf(buf, MS_ADDR_MAX + 1, v4 != NULL ? "%s:%u" : "[%s]:%u", host,
                 (unsigned)ntohs(in6.sin6_port));
    } else {
        snprintf(buf, MS_ADDR_MAX + 1, "%s", sa->sa_family == AF_UNIX ? "unix" : "?");
    }
    return buf;
}

/* A socket file that nobody listens on is left over from a killed process: away with it. */
static int clear_stale_socket(const char *path, const struct sockaddr_storage *sa, socklen_t len,
                              struct ms_err *err)
{
    struct stat st;
    if (lstat(path, &st) != 0) {
        return MS_OK; /* bind will say what else is wrong */
    }
    if (!S_ISSOCK(st.st_mode)) {
        return ms_fail(err, MS_E_EXISTS, "%s exists and is no socket: move it away", path);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot make a Unix socket");
    }
    int rc = connect(fd, (const struct sockaddr *)sa, len);
    int refused = rc != 0 && errno == ECONNREFUSED;
    close(fd);
    if (!refused) { /* connected, or its queue is full (EAGAIN): somebody is there */
        return ms_fail(err, MS_E_EXISTS,
                       "another process listens on %s already; see which: ss -xlp src %s", path,
                       path);
    }
    if (unlink(path) != 0 && errno != ENOENT) {
        return ms_fail_errno(err, MS_E_IO, "cannot remove the stale socket %s", path);
    }
    return MS_OK;
}

static int bind_fail(const struct ms_addr *addr, struct ms_err *err)
{
    char text[MS_ADDR_MAX + 1];
    ms_addr_format(addr, text);
    switch (errno) {
    case EADDRINUSE:
        return ms_fail(err, MS_E_EXISTS,
                       "port %d is in use already; see who has it: ss -ltnp 'sport = :%d'",
                       addr->port, addr->port);
    case EADDRNOTAVAIL:
        return ms_fail(err, MS_E_INVALID,
                       "no interface of this host has the address of %s; list them: ip -br addr",
                       text);
    case EACCES:
        if (!addr->is_unix) {
            return ms_fail(err, MS_E_REFUSED,
                           "no permission to listen on %s: ports below 1024 need a privilege; "
                           "choose a higher one",
                           text);
        }
        break;
    case ENOENT:
        if (addr->is_unix) {
            return ms_fail(
                err, MS_E_NOT_FOUND,
                "cannot listen on %s: its directory does not exist; make it first, or let "
                "the service manager (systemctl start msschedd makes /run/msched)",
                text);
        }
        break;
    default:
        break;
    }
    return ms_fail_errno(err, MS_E_IO, "cannot listen on %s", text);
}

static int open_and_bind(const struct ms_addr *addr, const struct ms_sockaddr *at,
                         struct ms_err *err)
{
    const struct sockaddr *sa = (const struct sockaddr *)&at->sa;
    int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) { /* no descriptor and no memory are no property of this machine: they may pass */
        return ms_fail_errno(err, errno == EAFNOSUPPORT ? MS_E_UNSUPPORTED : MS_E_IO,
                             "cannot make a socket for %s", addr->host);
    }
    int on = 1;
    int off = 0;
    if (!addr->is_unix) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    }
    if (sa->sa_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if (bind(fd, sa, at->len) != 0) {
        int rc = bind_fail(addr, err);
        close(fd);
        return rc;
    }
    return fd;
}

int ms_addr_listen(const struct ms_addr *addr, int backlog, struct ms_err *err)
{
    struct ms_sockaddr at;
    int rc = ms_addr_resolve_all(addr, &at, 1, err);
    if (rc < 0) {
        return rc;
    }
    if (addr->is_unix && (rc = clear_stale_socket(addr->host, &at.sa, at.len, err)) != MS_OK) {
        return rc;
    }
    int fd = open_and_bind(addr, &at, err);
    if (fd == MS_E_UNSUPPORTED && strcmp(addr->host, "::") == 0) {
        /* a kernel without IPv6: all addresses are then the IPv4 ones */
        struct ms_addr v4 = *addr;
        memcpy(v4.host, "0.0.0.0", sizeof("0.0.0.0"));
        return ms_addr_listen(&v4, backlog, err);
    }
    if (fd < 0) {
        return fd;
    }
    /* before listen nobody can connect, so the mode is never too wide */
    if (addr->is_unix && chmod(addr->host, 0600) != 0) {
        rc = ms_fail_errno(err, MS_E_IO, "cannot set the mode of %s", addr->host);
        goto fail;
    }
    if (listen(fd, backlog) != 0) {
        rc = bind_fail(addr, err);
        goto fail;
    }
    return fd;
fail:
    close(fd);
    if (addr->is_unix) {
        unlink(addr->host);
    }
    return rc;
}
