/* tls_pin.c - TLS for a client that knows the one certificate which its server has */
#include "proto/tls_pin.h"

#include "proto/digest.h"

#include <ctype.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

static int digest_of(const X509 *cert, char ret_hex[MS_SHA256_HEX])
{
    uint8_t digest[MS_SHA256_BYTES];
    unsigned size = sizeof(digest);
    if (cert == NULL || X509_digest(cert, EVP_sha256(), digest, &size) != 1) {
        ERR_clear_error();
        return 0;
    }
    ms_sha256_hex(digest, ret_hex);
    return 1;
}

int ms_tls_pin_of(SSL_CTX *ctx, char ret_hex[MS_PIN_HEX + 1], struct ms_err *err)
{
    return digest_of(SSL_CTX_get0_certificate(ctx), ret_hex)
               ? MS_OK
               : ms_fail(err, MS_E_NOT_FOUND, "this TLS context has no certificate");
}

static int pin_index = -1; /* where a context keeps its pin */

/* Stands in for the verification of the chain. */
static int judge(X509_STORE_CTX *store, void *arg)
{
    char hex[MS_SHA256_HEX];
    SSL *ssl = (SSL *)X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    const char *pin = (const char *)SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), pin_index);
    int good = digest_of(X509_STORE_CTX_get0_cert(store), hex) && strcmp(hex, pin) == 0;
    (void)arg;
    X509_STORE_CTX_set_error(store, good ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
    return good;
}

static void free_pin(void *parent, void *pin, CRYPTO_EX_DATA *data, int index, long argl,
                     void *argp)
{
    (void)parent;
    (void)data;
    (void)index;
    (void)argl;
    (void)argp;
    free(pin);
}

/* The pin dies with its context, which outlives the call that made it by its connections. */
static int keep_pin(SSL_CTX *ctx, const char *pin_hex)
{
    if (pin_index < 0) {
        pin_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_pin);
    }
    char *pin = strdup(pin_hex);
    if (pin_index < 0 || pin == NULL || SSL_CTX_set_ex_data(ctx, pin_index, pin) != 1) {
        free(pin);
        return 0;
    }
    return 1;
}

static int is_pin(const char *hex)
{
    size_t n = strlen(hex);
    for (size_t i = 0; i < n; i++) {
        if (!isxdigit((unsigned char)hex[i]) || isupper((unsigned char)hex[i])) {
            return 0;
        }
    }
    return n == MS_PIN_HEX;
}

int ms_tls_pin_context(const char *pin_hex, SSL_CTX **ret, struct ms_err *err)
{
    if (!is_pin(pin_hex)) {
        return ms_fail(err, MS_E_PROTOCOL, "'%.80s' is no digest of a certificate", pin_hex);
    }
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
        !keep_pin(ctx, pin_hex)) {
        SSL_CTX_free(ctx);
        ERR_clear_error();
        return ms_fail(err, MS_E_TLS, "cannot set up TLS 1.3");
    }
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, judge, NULL);
    *ret = ctx;
    return MS_OK;
}
