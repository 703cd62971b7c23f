/* options.h - what msschedd was asked to be: flags, environment and file, judged and in one struct
 *
 *   standing   default; settings from flag > environment > /etc/msched/msschedd.conf > built-in
 *   dynamic    MS_ROLE=MS_SCHED: everything from the MS_* environment (proto/ms_env.h)
 *   private    --run-dir DIR: the scheduler of `msctl run`, everything below DIR
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "daemon/sched/sched.h"
#include "daemon/who.h"
#include "proto/log.h"
#include "proto/ms_env.h"
#include "proto/settings.h"
#include "proto/tls_files.h"

#include <stdio.h>

enum options_action { OPTIONS_RUN, OPTIONS_CHECK, OPTIONS_HELP, OPTIONS_VERSION };

enum options_tls {
    OPTIONS_TLS_AUTO, /* where certificates are named or found; plain on loopback without them */
    OPTIONS_TLS_ON,
    OPTIONS_TLS_OFF, /* the operator said so in so many words */
};

struct options {
    enum options_action action;
    struct sched_config sched; /* software and database point into this struct and to constants */
    char listen[MS_ADDR_MAX + 1]; /* "" none */
    char socket[MS_PATH_MAX + 1]; /* path of the Unix socket; "" none */
    unsigned socket_mode;
    unsigned anyone_roles;          /* of peers on a plain port: enum ms_role, or-ed */
    struct who_map user_map;        /* names of uids, before NSS */
    gid_t socket_gid;               /* of the socket's file; SOCKET_GROUP_NONE: as it was made */
    char database[MS_PATH_MAX + 1]; /* "" none: dynamic cluster that keeps nothing */
    enum options_tls tls;
    struct ms_tls_files files; /* p12_path "": no certificate is named or found */
    enum ms_log_level log_level;
    struct ms_settings *settings; /* owned; what --check-config prints */
    struct ms_env *env;           /* owned; dynamic cluster only */
    int accepts_loss;   /* --accept-loss: start although acknowledged writes are missing */
    void *private_rows; /* owned; the settings' table in private mode */
};

/* Reads everything. argv is not changed and may be used again for a reload. MS_E_INVALID: usage;
 * MS_E_CONFIG: a value. Both are exit 78. Returns owned. */
int options_load(int argc, char *const *argv, struct options **ret, struct ms_err *err);
void options_destroy(struct options *options); /* wipes the password; NULL allowed */

/* Is TLS used on a TCP listener? 1 yes; 0 plain, which is allowed there; MS_E_CONFIG: plain is not
 * allowed at this address: the text names both ways out. */
int options_use_tls(const struct options *options, const char *address, int is_loopback,
                    struct ms_err *err);

/* What somebody can do whose certificate is missing: a service has settings, a dynamic cluster an
 * environment. */
const char *options_tls_advice(const struct options *options);

/* Seconds between two looks at how long the certificates last: cert_check_interval_in_hour of the
 * TLS JSON, else a day. */
int options_check_s(const struct options *options);

/* "standing", "dynamic", "run": Welcome's word for the mode. */
const char *options_mode_name(enum sched_mode mode);

void options_help(FILE *out);
/* Every value and its source. */
void options_print(const struct options *options, FILE *out);
/* Effective values as `key=value` pairs on one line, for the log. Returns buf. */
const char *options_format(const struct options *options, char *buf, size_t size);

/* For a reload: what only a restart changes stays in fresh as it is in running, so that fresh says
 * what runs from now on. buf: the names of settings that would be others after a restart, space
 * separated; "" when the reload does it all. After a failure fresh is to be destroyed. */
int options_keep_fixed(const struct options *running, struct options *fresh, char *buf, size_t size,
                       struct ms_err *err);

#endif
