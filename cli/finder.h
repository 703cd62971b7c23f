/* finder.h - which scheduler msctl talks to, and as whom
 *
 *     --server > MS_SCHED_HOST/MS_SCHED_PORT > ~/.config/msched/msctl.conf >
 *     /etc/msched/msctl.conf > the Unix socket /run/msched/msschedd.sock
 *
 * The first of them that says something decides: a cluster that does not answer is never replaced
 * by another one behind the user's back. What was looked at is kept as text for exit status 3. */
#ifndef CLI_FINDER_H
#define CLI_FINDER_H

#include "proto/err.h"
#include "proto/limits.h"
#include "proto/tls_files.h"

#include "proto/tls.h"

#define CLI_SOCKET_DEFAULT "/run/msched/msschedd.sock"

/* Where to look: the places, as main fills them in and tests replace them. NULL: absent. */
struct finder_places {
    const char *flag;        /* --server */
    const char *config;      /* --config: read instead of the two files */
    const char *env_host;    /* MS_SCHED_HOST */
    const char *env_port;    /* MS_SCHED_PORT */
    const char *env_tls;     /* MS_TLS_CONFIG: the seed's JSON */
    const char *env_ssl;     /* MS_ENABLE_SSL: 0 or 1 */
    const char *user_dir;    /* ~/.config/msched */
    const char *system_dir;  /* /etc/msched */
    const char *socket_path; /* CLI_SOCKET_DEFAULT */
};

enum { FINDER_TRIED_MAX = 2048 };

struct finder_target {
    char address[MS_PATH_MAX + 8];  /* host:port or unix:/path (which may be over 107 bytes) */
    char tls_host[MS_HOST_MAX + 1]; /* to verify */
    int is_unix;
    int use_tls;
    char
        plain_by[MS_PATH_MAX + 32]; /* the setting that switched TLS off, and where it stands; "" */
    struct ms_tls_files files;      /* where use_tls */
    char tried[FINDER_TRIED_MAX];   /* lines of what was looked at; also filled in on failure */
};

/* Reads the places and decides. MS_E_CONFIG, MS_E_INVALID: something in them is wrong; MS_E_TLS: a
 * certificate is needed and there is none. Destroy with finder_target_wipe. */
int finder_find(const struct finder_places *places, struct finder_target *ret, struct ms_err *err);
void finder_target_wipe(struct finder_target *target);

/* Context for the target; *ret is NULL where it uses no TLS. Returns owned. */
int finder_tls(const struct finder_target *target, SSL_CTX **ret, char *ret_warning,
               struct ms_err *err);

/* Opens the directory of a Unix socket whose path is too long for an address and writes a short one
 * into dst ("unix:/proc/self/fd/7/scheduler.sock"); copies address where that is not needed.
 * *ret_fd: the directory, to be closed once connected or bound; or -1. */
int finder_short_path(const char *address, char *dst, size_t size, int *ret_fd, struct ms_err *err);

#endif
