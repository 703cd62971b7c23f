/* cert.h - the in-house certificate authority: make a CA, issue, revoke
 *
 * EC P-256 keys, SHA-256. Keys and PKCS#12 files are written 0600, certificates and revocation
 * lists (public) 0644, through a temporary name. Not thread safe. */
#ifndef MS_CERT_H
#define MS_CERT_H

#include "proto/err.h"
#include "proto/wire.h"

#include <stdint.h>
#include <time.h>

enum { MS_CRL_DAYS_MAX = 3650, MS_CERT_HOSTS_MAX = 64 };
/* In the place of a number of days: from 1970 on, and for a hundred years from now. For keys that
 * live as long as a run, so that a clock which is corrected meanwhile does not end it. */
enum { MS_CERT_ANY_TIME = 0x7fffffff };

struct ms_ca; /* key and certificate of a CA in memory */

/* Makes a new CA that lives days (1 to 36500, or MS_CERT_ANY_TIME; negative: expired that long ago,
 * for tests). Returns owned. */
int ms_ca_create(const char *common_name, int days, struct ms_ca **ret, struct ms_err *err);
/* Reads ca.key and ca.crt of a directory. */
int ms_ca_load(const char *directory, struct ms_ca **ret, struct ms_err *err);
/* Writes ca.key (0600) and ca.crt into a directory (made 0700 if missing); refuses to overwrite. */
int ms_ca_save(const struct ms_ca *ca, const char *directory, struct ms_err *err);
/* Writes ca.crt alone, for the nodes. */
int ms_ca_export(const struct ms_ca *ca, const char *path, struct ms_err *err);
void ms_ca_destroy(struct ms_ca *ca);

struct ms_cert_request {
    enum ms_role role;        /* WORKER, USER, ADMIN or SCHEDULER */
    const char *name;         /* goes into CN and ms://role/name */
    const char *const *hosts; /* DNS names and IP literals for SAN; NULL-terminated, or NULL */
    int days;
    const char *password; /* of the PKCS#12; "" allowed */
};

/* MS_E_INVALID where a certificate may not hold the name: 1 to 64 letters, digits and . - _ @ +, a
 * letter or a digit first (names of nodes and of files begin with it). */
int ms_cert_name_check(const char *name, struct ms_err *err);

/* Issues key + certificate and writes them as PKCS#12 (0600), the CA's certificate in it.
 * ret_serial: hex, 41 bytes, NULL ok. No index is kept: proto/authority.h does that. */
int ms_ca_issue(const struct ms_ca *ca, const struct ms_cert_request *req, const char *p12_path,
                char *ret_serial, struct ms_err *err);

/* Adds the certificate of a PKCS#12 or PEM file to the CRL at crl_path (made if missing), valid for
 * days. cert_path NULL: only renews the list. */
int ms_ca_revoke(const struct ms_ca *ca, const char *cert_path, const char *password,
                 const char *crl_path, int days, struct ms_err *err);

struct ms_cert_info {
    char subject[128];
    char uri[128];
    char issuer[128];
    char serial[64];
    char hosts[256]; /* comma separated */
    time_t not_before;
    time_t not_after;
};

/* What is in a PKCS#12 or PEM file, for `msctl certs show`. */
int ms_cert_inspect(const char *path, const char *password, struct ms_cert_info *ret,
                    struct ms_err *err);

#endif
