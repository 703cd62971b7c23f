/* certs.h - the worker program's certificates: where they lie, loaded, loaded again, about to
 * expire
 *
 * Of the program, not of the library: it logs. */
#ifndef CERTS_H
#define CERTS_H

#include "proto/tls_files.h"

#include <stdint.h>

enum certs_kind { CERTS_NONE, CERTS_FOLDER, CERTS_JSON };

struct certs { /* strings are borrowed for its life */
    enum certs_kind kind;
    const char *folder, *p12;  /* FOLDER: ca.crt, crl.pem if there, and this file */
    const char *password_file; /* FOLDER; NULL: the credential, else none */
    const char *json;          /* JSON: MindSpore's, MS_TLS_CONFIG */
    int check_hours;           /* between two looks, once loaded */
    int has_list;              /* of revoked ones, once loaded: from then on one must be there */
};

/* Reads the files; a warning about them is logged. *ret is owned, NULL for NONE. Whatever is wrong
 * with our own files is MS_E_CONFIG, with the next step: no waiting mends it. So is a list that
 * revokes us, is another CA's or damaged; one that is out of date, not valid yet, or cannot be
 * read for now, is MS_E_TIMEOUT: that may pass. So may a certificate that is not valid yet. */
int certs_load(struct certs *certs, SSL_CTX **ret, struct ms_err *err);

/* Is there nothing in that folder, neither p12 nor the CA's certificate? What may not be looked at
 * is there: certs_load says so. */
int certs_are_missing(const char *folder, const char *p12);

/* Looks whether what a start would load still holds, and logs what is wrong or expires soon. */
void certs_check(struct certs *certs);
int64_t certs_check_ms(const struct certs *certs);

#endif
