/* addr.h - addresses as people write them: host:port, [v6]:port, unix:/path */
#ifndef MS_ADDR_H
#define MS_ADDR_H

#include "proto/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <sys/socket.h>

struct ms_addr {
    int is_unix;
    char host[MS_HOST_MAX + 1]; /* or the path */
    int port;
};

/* Parses host:port, [v6]:port, unix:/path or /path; default_port (0: a port is required). Next step
 * in the error text. */
int ms_addr_parse(const char *text, int default_port, struct ms_addr *ret, struct ms_err *err);
/* Formats into buf of MS_ADDR_MAX + 1 bytes and returns it. */
const char *ms_addr_format(const struct ms_addr *addr, char *buf);
/* Looks a host up (may block in DNS) and fills a socket address. MS_E_INVALID: it is the name of an
 * interface, which no DNS will ever know. */
int ms_addr_resolve(const struct ms_addr *addr, struct sockaddr_storage *ret, socklen_t *ret_len,
                    struct ms_err *err);
struct ms_sockaddr {
    struct sockaddr_storage sa;
    socklen_t len;
};
/* All addresses of a host, at most max, in the order in which to try them. Returns their number. */
int ms_addr_resolve_all(const struct ms_addr *addr, struct ms_sockaddr *ret, size_t max,
                        struct ms_err *err);
/* 127.0.0.0/8, ::1 or a Unix socket. */
int ms_addr_is_loopback(const struct sockaddr *sa);
/* By its words alone, which nobody else answers for: 127.x.y.z, ::1 or localhost. */
int ms_addr_names_loopback(const struct ms_addr *addr);
/* "1.2.3.4:56", "[::1]:56" or "unix" of a socket address, into MS_ADDR_MAX + 1 bytes. */
const char *ms_addr_print(const struct sockaddr *sa, socklen_t len, char *buf);
/* A listening TCP or Unix socket, CLOEXEC and non-blocking; a stale Unix socket file is replaced, a
 * live one refused; an occupied port is named with the command that finds its owner. Returns the fd
 * or a negative ms_code. A Unix socket file gets mode 0600: widen it with chmod where all users may
 * connect. */
int ms_addr_listen(const struct ms_addr *addr, int backlog, struct ms_err *err);

#endif
