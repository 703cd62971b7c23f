/* conn_recheck.c - an open connection's certificate, judged again by the rules of today */
#include "proto/conn_recheck.h"

#include "proto/conn_private.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

int ms_conn_recheck(const struct ms_conn *conn, SSL_CTX *ctx, struct ms_err *err)
{
    X509 *cert = conn->ssl != NULL && SSL_is_init_finished(conn->ssl)
                     ? SSL_get0_peer_certificate(conn->ssl)
                     : NULL;
    if (cert == NULL || SSL_get_SSL_CTX(conn->ssl) == ctx) {
        return MS_OK;
    }
    int rc = MS_OK;
    X509_STORE_CTX *verify = X509_STORE_CTX_new();
    if (verify == NULL || X509_STORE_CTX_init(verify, SSL_CTX_get_cert_store(ctx), cert,
                                              SSL_get_peer_cert_chain(conn->ssl)) != 1) {
        rc = ms_fail(err, MS_E_NOMEM, "no memory to judge the certificate of %s", conn->who);
    } else {
        /* as the handshake has it: purpose, then what the context says about depth and flags */
        X509_STORE_CTX_set_default(verify, conn->is_server ? "ssl_client" : "ssl_server");
        X509_VERIFY_PARAM_set1(X509_STORE_CTX_get0_param(verify), SSL_CTX_get0_param(ctx));
        if (X509_verify_cert(verify) != 1) {
            rc =
                ms_fail(err, MS_E_REFUSED,
                        "the certificate of %s is not valid any more (%s); issue a new one: msctl "
                        "certs issue",
                        conn->who, X509_verify_cert_error_string(X509_STORE_CTX_get_error(verify)));
        }
    }
    X509_STORE_CTX_free(verify);
    ERR_clear_error();
    return rc;
}
