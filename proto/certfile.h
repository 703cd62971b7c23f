/* certfile.h - certificates and keys as files: PKCS#12 and PEM in, names and dates out
 *
 * Inside of proto: tls.c and cert.c share it. Any thread. */
#ifndef MS_CERTFILE_H
#define MS_CERTFILE_H

#include "proto/err.h"
#include "proto/whole.h"

#include <openssl/x509.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

struct ms_p12 {
    EVP_PKEY *key;
    X509 *cert;
    STACK_OF(X509) * chain; /* further certificates; may be NULL */
};

/* Reads key and certificate. Says what a file is that is no PKCS#12, or that it is cut off; refuses
 * one that others may read or change (0640 root:msched is the widest), names a wrong password, a
 * key of another certificate, and the old RC2/3DES encryption together with the command that
 * converts it. Fills ret, to be freed with ms_p12_fini. */
int ms_p12_read(const char *path, const char *password, struct ms_p12 *ret, struct ms_err *err);
/* The same of a file that was read. */
int ms_p12_of(const struct ms_whole *file, const char *password, struct ms_p12 *ret,
              struct ms_err *err);
void ms_p12_fini(struct ms_p12 *p12);

/* First certificate of a PEM file. Returns owned. */
int ms_pem_read(const char *path, X509 **ret, struct ms_err *err);
/* The same of a file that was read. */
int ms_pem_of(const struct ms_whole *file, X509 **ret, struct ms_err *err);
/* Of a PEM_read_...() that gave nothing: 1: there was nothing more; 0: there was, and it is
 * damaged. Clears OpenSSL's queue of errors. */
int ms_pem_has_ended(void);
/* MS_E_TLS: of a file of certificates of which one is damaged. */
int ms_pem_fail_torn(const char *path, struct ms_err *err);

/* All certificates of a PEM file, one at least: while a cluster changes its CA, ca.crt holds the
 * old one and the new one. Returns owned: sk_X509_pop_free(it, X509_free). */
int ms_pem_read_all(const char *path, STACK_OF(X509) * *ret, struct ms_err *err);

/* Opens a file with a private key, as ms_regular_open; MS_E_REFUSED where a mode bit of `forbidden`
 * is set, with the chmod that mends it. */
int ms_secret_open(const char *path, unsigned forbidden, FILE **ret, struct ms_err *err);

/* Subject or issuer on one line ("CN = x"), into buf of size; returns buf. */
const char *ms_x509_name(const X509_NAME *name, char *buf, size_t size);
/* Unix time of an ASN.1 time; (time_t)-1 where it is no time. */
time_t ms_x509_time(const ASN1_TIME *at);
/* First ms:// URI of subjectAltName into buf; 1 when there is one. One with anything but printable
 * ASCII is none. */
int ms_x509_uri(const X509 *cert, char *buf, size_t size);
/* Host names and addresses of subjectAltName, comma separated. Returns owned; NULL: none, or no
 * memory. */
char *ms_x509_hosts(const X509 *cert);
/* Text of the oldest error in OpenSSL's queue; empties the queue. Returns buf. */
const char *ms_ssl_error(char *buf, size_t size);

#endif
