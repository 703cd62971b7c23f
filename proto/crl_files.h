/* crl_files.h - the list of revoked certificates, in the folders of the programs that heed it
 *
 * A folder of certificates holds ca.crt and, once somebody was revoked, crl.pem, which that CA
 * signed. Any thread. */
#ifndef MS_CRL_FILES_H
#define MS_CRL_FILES_H

#include "proto/err.h"
#include "proto/tls_files.h"
#include "proto/whole.h"

#include <openssl/x509.h>
#include <stddef.h>

/* 1: it is such a list in PEM form, with text before it or not. */
int ms_crl_is(const struct ms_whole *file);

/* Where the list of a place lies: there, or where a symbolic link in it leads, for who made one has
 * the list looked for in two places. Puts that path, of up to MS_PATH_MAX bytes, into buf.
 * MS_E_EXISTS for a link that leads to nothing, to what is no list, or that is neither ours nor
 * root's. */
int ms_crl_place(const char *target, char *buf, size_t size, struct ms_err *err);

/* Writes the list to the place target (0644, whatever the umask). ca_path may hold several CAs, as
 * while a cluster changes its own. MS_E_NOT_FOUND: it is not there. MS_E_REFUSED: none of them
 * signed the list, and nothing else. MS_E_INVALID: it is no list, or it has expired. MS_E_EXISTS:
 * the one that is there is newer, or of another of these CAs, and force is 0; or as ms_crl_place.
 */
int ms_crl_install(const struct ms_whole *file, const char *ca_path, const char *target, int force,
                   struct ms_err *err);

/* 1: a list lies at path, and none of the CAs in ca_path signed it: no program starts beside it. */
int ms_crl_is_foreign(const char *path, const char *ca_path);

/* 1: one of the CAs in ca_path signed it; 0: none did. MS_E_NOT_FOUND and the like: they cannot be
 * read, or it is no list. */
int ms_crl_is_of(const struct ms_whole *file, const char *ca_path, struct ms_err *err);

/* 1: a list of ca in this file revokes the certificate. A file that is none or cannot be read
 * revokes nobody; MS_E_INVALID: a list in it is torn, and nobody knows whom it revokes. */
int ms_crl_revokes(const char *path, X509 *cert, X509 *ca, struct ms_err *err);

/* `code`: of a file of lists of which one is damaged. */
int ms_crl_fail_torn(const char *path, int code, struct ms_err *err);

/* 1: a list of one of the CAs in ca_path, in this file, is out of date, or not valid yet: its next
 * one mends that, or the clock. */
int ms_crl_is_untimely(const char *path, const char *ca_path);

/* Is there a list in this folder of certificates, or in a folder tls* beside it, /etc/msched/tls
 * beside /etc/msched/tls-worker? Puts its path into buf, and returns 1. What cannot be looked at
 * has none. */
int ms_crl_beside(const char *folder, char *buf, size_t size);

/* Is a program with these files, that knows no list, one that was forgotten? Puts the list that it
 * could know into buf, and returns 1. 0: there is none, or somebody said that it is to know none.
 */
int ms_crl_is_forgotten(const struct ms_tls_files *files, char *buf, size_t size);

#endif
