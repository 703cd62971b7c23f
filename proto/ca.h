/* ca.h - inside of the certificate authority, shared by cert.c and revoke.c */
#ifndef MS_CA_H
#define MS_CA_H

#include "proto/cert.h"

#include <openssl/x509.h>

struct ms_ca {
    EVP_PKEY *key;
    X509 *cert;
};

enum { MS_SERIAL_HEX = 41 }; /* 20 bytes is what RFC 5280 allows, and a NUL */

/* Serial number in upper-case hex, as openssl prints it. */
void ms_serial_hex(const X509 *cert, char *buf, size_t size);
/* Reads the certificate of a PKCS#12 or PEM file. Returns owned. */
int ms_cert_read(const char *path, const char *password, X509 **ret, struct ms_err *err);

#endif
