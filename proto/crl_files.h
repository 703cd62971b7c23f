/* crl_files.h - the list of revoked certificates, in the folders of the programs that heed it
 *
 * A folder of certificates holds ca.crt and, once somebody was revoked, crl.pem, which that CA
 * signed. Any thread. */
#ifndef MS_CRL_FILES_H
#define MS_CRL_FILES_H

#include "proto/err.h"

#include <stddef.h>

/* 1: it is a regular file, and begins as such a list in PEM form does. */
int ms_crl_is(const char *path);

/* Copies the list into a folder, as crl.pem (0644, whatever the umask). MS_E_NOT_FOUND: no ca.crt
 * is there. MS_E_REFUSED: another CA than that one signed it. MS_E_INVALID: it is no list, or it
 * has expired. MS_E_EXISTS: the one that is there is newer, and force is 0. */
int ms_crl_install(const char *path, const char *folder, int force, struct ms_err *err);

/* The same where the CA's certificate and the list have paths of their own, as msschedd's tls_ca
 * and tls_crl. MS_E_REFUSED means the other CA, and nothing else. */
int ms_crl_install_as(const char *path, const char *ca_path, const char *target, int force,
                      struct ms_err *err);

/* Is there a list in a folder tls* beside this one, /etc/msched/tls beside /etc/msched/tls-worker?
 * Puts its path into buf, and returns 1. What cannot be looked at has none. */
int ms_crl_beside(const char *folder, char *buf, size_t size);

#endif
