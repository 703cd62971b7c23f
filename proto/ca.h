/* ca.h - inside of the certificate authority, shared by cert.c and revoke.c */
#ifndef MS_CA_H
#define MS_CA_H

#include "proto/ca_index.h"
#include "proto/cert.h"
#include "proto/certfile.h"

#include <openssl/x509.h>

struct ms_ca {
    EVP_PKEY *key;
    X509 *cert;
};

/* A serial number in upper-case hex, as openssl prints it. */
void ms_serial_text(const ASN1_INTEGER *serial, char *buf, size_t size);
/* That of a certificate. */
void ms_serial_hex(const X509 *cert, char *buf, size_t size);
/* Reads a certificate that this CA has issued; MS_E_REFUSED for another's. Returns owned. */
int ms_ca_read_own(const struct ms_ca *ca, const char *path, const char *password, X509 **ret,
                   struct ms_err *err);
/* Reads the certificate of a PKCS#12 or PEM file. Returns owned. */
int ms_cert_read(const char *path, const char *password, X509 **ret, struct ms_err *err);

/* Makes key and certificate of a request in memory, nothing is written. Fills ret, to be freed with
 * ms_p12_fini. */
int ms_ca_sign(const struct ms_ca *ca, const struct ms_cert_request *req, struct ms_p12 *ret,
               struct ms_err *err);
/* Writes them as PKCS#12 (0600), with the CA's certificate in it. */
int ms_ca_deliver(const struct ms_ca *ca, const struct ms_cert_request *req,
                  const struct ms_p12 *p12, const char *path, struct ms_err *err);
/* Row of the index for a certificate of ours. ret->hosts is owned by the caller. */
void ms_ca_describe(const X509 *cert, struct ms_ca_entry *ret);
/* Was the certificate signed by this CA? */
int ms_ca_owns(const struct ms_ca *ca, X509 *cert);

struct ms_crl_plan {
    const char *sources[2]; /* lists whose entries and number count on; NULL or missing: none */
    const struct ms_ca_index *index; /* those with a time of revocation are in it; or NULL */
    const X509 *victim;              /* is in it from now on; or NULL */
    const char *path;
    int days;
};

/* Makes a revocation list of what is revoked anywhere, numbered on, and replaces path. */
int ms_crl_make(const struct ms_ca *ca, const struct ms_crl_plan *plan, struct ms_err *err);
/* Adds the serial numbers of a list to the index, as rows that know nothing else. A list that is
 * not there is empty. */
int ms_crl_import(const struct ms_ca *ca, const char *path, struct ms_ca_index *index,
                  struct ms_err *err);

#endif
