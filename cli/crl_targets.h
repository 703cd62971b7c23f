/* crl_targets.h - where the programs of this host look for their list of revoked certificates
 *
 * Found as the programs find it: the settings of msschedd and msworker, and the folders tls* beside
 * them. One that was forgotten goes on trusting whom the others do not, so whatever cannot be
 * looked at is said, and a program that is told of no list is found, too. */
#ifndef CLI_CRL_TARGETS_H
#define CLI_CRL_TARGETS_H

#include "cli/cli.h"
#include "proto/limits.h"

struct crl_target {
    char list[MS_PATH_MAX + 1]; /* crl.pem, or what tls_crl calls it */
    char ca[MS_PATH_MAX + 1];   /* the CA whose list is looked for there */
};

struct crl_targets {
    struct crl_target *rows; /* owned */
    size_t n, room;
    /* of msschedd's TLS JSON, where that names no list: its path as list, and its CA; else "" */
    struct crl_target unnamed;
};

/* Finds them below dir (/etc/msched), each list once: a program's settings count before what lies
 * beside it. Says on cli->err what it leaves out. MS_E_NOMEM. Free with crl_targets_fini, after a
 * failure too. */
int crl_targets_find(const struct cli *cli, const char *dir, struct crl_targets *ret,
                     struct ms_err *err);
/* One folder, whatever is there. MS_E_INVALID: its path is too long. */
int crl_targets_folder(const char *folder, struct crl_targets *ret, struct ms_err *err);
void crl_targets_fini(struct crl_targets *targets);

#endif
