/* tls_pin.h - TLS for a client that has no certificate of its own and no CA, but was told by
 * somebody it trusts which certificate the server has: its SHA-256, the pin */
#ifndef MS_TLS_PIN_H
#define MS_TLS_PIN_H

#include "proto/err.h"

#include <openssl/ssl.h>

enum { MS_PIN_HEX = 64 };

/* Digest of the certificate in the context, hex with a NUL, for those who will pin it.
 * MS_E_NOT_FOUND where it has none. Any thread. */
int ms_tls_pin_of(SSL_CTX *ctx, char ret_hex[MS_PIN_HEX + 1], struct ms_err *err);

/* A client's context that accepts exactly the certificate with this digest: chain and names play no
 * part, for the pin says more. The handshake fails with any other, before a byte is sent in it.
 * Returns owned; free with SSL_CTX_free. One thread makes them. */
int ms_tls_pin_context(const char *pin_hex, SSL_CTX **ret, struct ms_err *err);

#endif
