/* conn_recheck.c - who is behind an open connection, judged again by the rules of today */
#include "proto/conn_recheck.h"

#include "proto/conn_private.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>

/* One that a certificate names is judged by that; false: somebody else now, or with fewer rights.
 */
static int is_the_same(const struct ms_conn *conn, const struct ms_conn_rules *rules,
                       struct ms_principal *ret)
{
    const struct ms_principal *was = &conn->peer.who;
    if (conn->is_unix && conn->peer.uid != (unsigned)-1) {
        struct ms_account account = conn->account;
        if (rules->uid_name != NULL) {
            snprintf(account.name, sizeof(account.name), "%s", rules->uid_name);
        }
        ms_principal_from_account(conn->peer.uid, &account, conn->owner_uid,
                                  rules->plain_role & MS_ROLE_WORKER, ret);
    } else if (!conn->is_unix && conn->peer.cert_name[0] == '\0') {
        ms_principal_anyone(rules->plain_role, ret);
    } else {
        *ret = *was;
    }
    /* "": still inside the handshake */
    return was->id[0] == '\0' || (strcmp(ret->id, was->id) == 0 && (was->roles & ~ret->roles) == 0);
}

static int judge_certificate(const struct ms_conn *conn, SSL_CTX *ctx, struct ms_err *err)
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

int ms_conn_recheck(const struct ms_conn *conn, const struct ms_conn_rules *rules,
                    struct ms_err *err)
{
    struct ms_principal now;
    if (!is_the_same(conn, rules, &now)) {
        return ms_fail(err, MS_E_REFUSED,
                       "the scheduler read its settings again: who came as %s is %s now%s; connect "
                       "again",
                       conn->peer.who.id, now.id,
                       (conn->peer.who.roles & ~now.roles) != 0 ? " and may do less" : "");
    }
    return rules->ctx != NULL ? judge_certificate(conn, rules->ctx, err) : MS_OK;
}
