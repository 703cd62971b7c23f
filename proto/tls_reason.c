/* tls_reason.c - what OpenSSL says, in words with a next step */
#include "proto/certfile.h"
#include "proto/tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct words {
    long code;
    const char *cause;
    const char *next;
};

/* Alerts that the peer sent (RFC 8446, section 6.2): its verdict on our certificate. */
static const struct words alerts[] = {
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, "unknown ca",
     "it was issued by another CA than the peer's; issue one there: msctl certs issue"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, "expired", "renew it: msctl certs renew"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, "revoked", "issue a new one: msctl certs issue"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "bad certificate",
     "look at it: msctl certs show; compare the clocks of both hosts"},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, "unsupported certificate",
     "it must allow client and server authentication; issue one: msctl certs issue"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, "certificate unknown",
     "look at it: msctl certs show; the peer's log says more"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "none was shown",
     "give one, a PKCS#12 file: msctl certs issue makes it"},
    {SSL_R_TLSV1_ALERT_ACCESS_DENIED, "access denied", "the peer's log says why"},
    {SSL_R_TLSV1_ALERT_DECRYPT_ERROR, "decrypt error",
     "two CAs of the same name? take ca.crt from the head node again"},
};

/* Our own verdict on the peer's certificate (X509_STORE_CTX_get_error(3)). */
static const struct words verdicts[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, "it has expired", "renew it there: msctl certs renew"},
    {X509_V_ERR_CERT_NOT_YET_VALID, "it is not valid yet", "compare the clocks of both hosts"},
    {X509_V_ERR_CERT_REVOKED, "it is revoked", "issue a new one there: msctl certs issue"},
    {X509_V_ERR_CRL_HAS_EXPIRED, "our revocation list is out of date",
     "make it anew: msctl certs crl"},
    {X509_V_ERR_UNABLE_TO_GET_CRL, "our revocation list is not of its CA",
     "take crl.pem and ca.crt from one CA"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, "it was issued by a CA that we do not know",
     "both ends need certificates of one CA"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, "it was issued by a CA that we do not know",
     "both ends need certificates of one CA"},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, "it was issued by a CA that we do not know",
     "both ends need certificates of one CA"},
    {X509_V_ERR_CERT_SIGNATURE_FAILURE, "its signature is not that of our CA",
     "two CAs of the same name? take ca.crt from the head node again"},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, "it signed itself",
     "both ends need certificates of one CA"},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, "it was issued by a CA that we do not know",
     "both ends need certificates of one CA"},
    {X509_V_ERR_INVALID_PURPOSE, "it is not made for this use",
     "it must allow client and server authentication: msctl certs issue"},
};

/* Other ends of a handshake. */
static const struct words others[] = {
    {SSL_R_WRONG_VERSION_NUMBER, "does not speak TLS",
     "is it the right port? TLS must be on, or off, on both ends"},
    {SSL_R_HTTP_REQUEST, "sent an HTTP request", "this is no web server"},
    {SSL_R_HTTPS_PROXY_REQUEST, "sent a proxy request", "this is no proxy"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "does not speak TLS 1.3", "update it"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "does not speak TLS 1.3", "update it"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, "found no cipher or key in common",
     "remove cipher_list on both ends"},
    {SSL_R_NO_SHARED_CIPHER, "has no cipher in common with us", "remove cipher_list on both ends"},
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "showed no certificate",
     "issue one for it: msctl certs issue"},
    {SSL_R_UNEXPECTED_EOF_WHILE_READING, "closed the connection in the TLS handshake",
     "its log may say why"},
    {SSL_R_TLSV1_ALERT_USER_CANCELLED, "broke the TLS handshake off", "its log may say why"},
};

static const struct words *find(const struct words *table, size_t n, long code)
{
    for (size_t i = 0; i < n; i++) {
        if (table[i].code == code) {
            return &table[i];
        }
    }
    return NULL;
}

/* Most mismatches are a host written another way, and who connects has not got the certificate. */
static void host_mismatch(SSL *ssl, const char *who, char *buf, size_t size)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    char *ip = X509_VERIFY_PARAM_get1_ip_asc(param);
    const char *host = ip != NULL ? ip : X509_VERIFY_PARAM_get0_host(param, 0);
    const STACK_OF(X509) *chain = SSL_get_peer_cert_chain(ssl);
    char *names = sk_X509_num(chain) > 0 ? ms_x509_hosts(sk_X509_value(chain, 0)) : NULL;
    snprintf(buf, size,
             "the certificate of %s is not made for '%s' but for %.120s: connect by a name that it "
             "holds, or issue it again with that host",
             who, host != NULL ? host : "?", names != NULL ? names : "others");
    free(names);
    OPENSSL_free(ip);
}

static void verify_words(SSL *ssl, const char *who, char *buf, size_t size)
{
    long verdict = ssl != NULL ? SSL_get_verify_result(ssl) : X509_V_ERR_UNSPECIFIED;
    if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH) {
        host_mismatch(ssl, who, buf, size);
        return;
    }
    const struct words *row = find(verdicts, MS_ARRAY_SIZE(verdicts), verdict);
    snprintf(buf, size, "we refused the certificate of %s: %s; %s", who,
             row != NULL ? row->cause : X509_verify_cert_error_string(verdict),
             row != NULL ? row->next : "look at it there: msctl certs show");
}

int ms_tls_describe(SSL *ssl, unsigned long error, const char *who, char *buf, size_t size)
{
    int reason = ERR_GET_REASON(error);
    if (ERR_GET_LIB(error) != ERR_LIB_SSL) {
        const char *text = error != 0 ? ERR_reason_error_string(error) : NULL;
        snprintf(buf, size, "TLS with %s failed: %s", who, text != NULL ? text : "no reason given");
        return MS_E_TLS;
    }
    const struct words *row = find(alerts, MS_ARRAY_SIZE(alerts), reason);
    if (row != NULL) {
        snprintf(buf, size, "%s refused our certificate (%s): %s", who, row->cause, row->next);
        return MS_E_REFUSED;
    }
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        verify_words(ssl, who, buf, size);
        return MS_E_REFUSED;
    }
    row = find(others, MS_ARRAY_SIZE(others), reason);
    if (row != NULL) {
        snprintf(buf, size, "%s %s: %s", who, row->cause, row->next);
        /* nothing was refused: a peer that ended or had no room may take the next attempt */
        return reason == SSL_R_UNEXPECTED_EOF_WHILE_READING ? MS_E_CLOSED : MS_E_TLS;
    }
    const char *text = ERR_reason_error_string(error);
    snprintf(buf, size, "TLS with %s failed: %s", who, text != NULL ? text : "no reason given");
    return MS_E_TLS;
}

void ms_tls_reason(SSL *ssl, char *buf, size_t size)
{
    ms_tls_describe(ssl, ERR_get_error(), "the peer", buf, size);
    ERR_clear_error();
}
