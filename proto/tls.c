/* tls.c - TLS contexts that verify both sides, and who a certificate says the peer is */
#include "proto/tls.h"

#include "proto/certfile.h"
#include "proto/crl_files.h"
#include "proto/regular.h"
#include "proto/tls_denied.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DAY_S = 86400, EXPIRE_WARNING_DAYS = 90, CRL_WARNING_DAYS = 7, CHAIN_DEPTH_MAX = 3 };

static const char suites[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/* Where nothing is queued there was no memory for that either. */
static int ssl_fail(struct ms_err *err, const char *what, const char *path)
{
    char reason[128];
    const int is_short = ERR_peek_error() == 0 ||
                         ERR_GET_REASON(ERR_peek_error()) == ERR_R_MALLOC_FAILURE ||
                         ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE;
    ms_ssl_error(reason, sizeof(reason));
    return ms_fail(err, is_short ? MS_E_NOMEM : MS_E_TLS, "%s%s%s: %s", what,
                   path != NULL ? " " : "", path != NULL ? path : "", reason);
}

/* ---- settings that need no file ---- */

static void warn(char *warning, const char *fmt, ...) MS_PRINTF(2, 3);

static void warn(char *warning, const char *fmt, ...)
{
    size_t used = warning != NULL ? strlen(warning) : MS_TEXT_MAX;
    if (used + 3 < MS_TEXT_MAX) {
        va_list args;
        const char *between = used > 0 ? "; " : "";
        used += (size_t)snprintf(warning + used, MS_TEXT_MAX - used, "%s", between);
        va_start(args, fmt);
        vsnprintf(warning + used, MS_TEXT_MAX - used, fmt, args);
        va_end(args);
    }
}

/* Keeps the TLS 1.3 names of a list; MindSpore's examples name suites of TLS 1.2, even PSK and DSS.
 */
static void filter_suites(const char *list, char *buf, size_t size, char *warning)
{
    size_t used = 0;
    int dropped = 0;
    while (*list != '\0') {
        size_t n = strcspn(list, ":");
        char name[64] = "";
        if (n > 0 && n < sizeof(name)) {
            memcpy(name, list, n);
        }
        if (name[0] != '\0' && strstr(suites, name) != NULL && strncmp(name, "TLS_", 4) == 0 &&
            used + n + 2 < size) {
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used > 0 ? ":" : "", name);
        } else if (n > 0) {
            dropped++;
        }
        list += n + (list[n] == ':');
    }
    if (used == 0) {
        snprintf(buf, size, "%s", suites);
    }
    if (dropped > 0) {
        warn(warning, "ignoring %d cipher names of cipher_list that TLS 1.3 does not know",
             dropped);
    }
}

static int set_protocol(SSL_CTX *ctx, const char *cipher_list, char *warning, struct ms_err *err)
{
    char list[256];
    filter_suites(cipher_list != NULL ? cipher_list : suites, list, sizeof(list), warning);
    /* SSL_OP_IGNORE_UNEXPECTED_EOF: a killed peer is an end of file, not a protocol error; frames
     * have lengths, so that a cut stream is noticed anyway. No tickets: connections are long, and
     * resumption would skip the checks of expiry and revocation. */
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_verify_depth(ctx, CHAIN_DEPTH_MAX);
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_num_tickets(ctx, 0) != 1 || SSL_CTX_set_ciphersuites(ctx, list) != 1 ||
        SSL_CTX_set1_groups_list(ctx, "X25519:P-256") != 1) {
        return ssl_fail(err, "cannot set up TLS 1.3", NULL);
    }
    return MS_OK;
}

/* ---- what is trusted ---- */

/* *ret NULL: there is none, and need not be. A list that exists and cannot be read is never none.
 */
static int open_crl(const struct ms_tls_config *cfg, FILE **ret, struct ms_err *err)
{
    *ret = NULL;
    int rc = ms_tls_denied(cfg, cfg->crl_path,
                           ms_regular_open(cfg->crl_path, "the revocation list ", ret, err), err);
    if (rc == MS_E_NOT_FOUND && cfg->crl_may_miss) {
        return MS_OK;
    }
    return rc == MS_E_NOT_FOUND
               ? ms_fail(err, MS_E_TLS,
                         "the revocation list %s is missing, and without it whoever was revoked "
                         "would get in: put it back; msctl certs crl makes it anew",
                         cfg->crl_path)
               : rc;
}

static int load_crl(X509_STORE *store, const struct ms_tls_config *cfg, char *warning,
                    struct ms_err *err)
{
    const char *path = cfg->crl_path;
    FILE *file = NULL;
    int rc = open_crl(cfg, &file, err);
    if (rc != MS_OK || file == NULL) {
        return rc;
    }
    int n = 0;
    X509_CRL *crl = NULL;
    while (rc == MS_OK && (crl = PEM_read_X509_CRL(file, NULL, NULL, NULL)) != NULL) {
        time_t next = ms_x509_time(X509_CRL_get0_nextUpdate(crl));
        double days = next == (time_t)-1 ? 1e9 : difftime(next, time(NULL)) / DAY_S;
        if (days < 0) {
            rc = ms_fail(err, MS_E_TLS,
                         "the revocation list %s is out of date: make it anew: msctl certs crl",
                         path);
        } else if (X509_STORE_add_crl(store, crl) != 1) {
            rc = ssl_fail(err, "cannot use the revocation list", path);
        } else if (days < CRL_WARNING_DAYS) {
            warn(warning, "the revocation list %s must be renewed within %d days", path,
                 (int)(days + 0.999));
        }
        X509_CRL_free(crl);
        n++;
    }
    const int is_torn = crl == NULL && !ms_pem_has_ended();
    fclose(file);
    ERR_clear_error();
    if (rc == MS_OK && is_torn) {
        rc = ms_crl_fail_torn(path, MS_E_TLS, err);
    } else if (rc == MS_OK && n == 0) {
        rc = ms_fail(err, MS_E_TLS, "%s holds no revocation list in PEM form", path);
    }
    if (rc == MS_OK) {
        X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    }
    return rc;
}

/* All certificates of the file, and lists of revoked ones that stand between them. */
static int load_ca(X509_STORE *store, const char *path, struct ms_err *err)
{
    FILE *file = NULL;
    int rc = ms_regular_open(path, "the certificate ", &file, err);
    if (rc != MS_OK) {
        return rc;
    }
    STACK_OF(X509_INFO) *list = PEM_X509_INFO_read(file, NULL, NULL, (void *)""); /* asks nobody */
    fclose(file);
    int n = 0;
    for (int i = 0; rc == MS_OK && i < sk_X509_INFO_num(list); i++) {
        const X509_INFO *one = sk_X509_INFO_value(list, i);
        if ((one->x509 != NULL && X509_STORE_add_cert(store, one->x509) != 1) ||
            (one->crl != NULL && X509_STORE_add_crl(store, one->crl) != 1)) {
            rc = ssl_fail(err, "cannot use the CA", path);
        }
        n += one->x509 != NULL;
    }
    const int is_torn = list == NULL && !ms_pem_has_ended();
    sk_X509_INFO_pop_free(list, X509_INFO_free);
    ERR_clear_error();
    if (rc == MS_OK && is_torn) {
        return ms_pem_fail_torn(path, err);
    }
    return rc == MS_OK && n == 0
               ? ms_fail(err, MS_E_TLS, "%s holds no certificate in PEM form", path)
               : rc;
}

static int load_trust(SSL_CTX *ctx, const struct ms_tls_config *cfg, char *warning,
                      struct ms_err *err)
{
    if (cfg->ca_path == NULL || cfg->ca_path[0] == '\0') {
        return ms_fail(err, MS_E_INVALID, "no certificate of a CA was given (ca.crt)");
    }
    int rc = ms_tls_denied(cfg, cfg->ca_path,
                           load_ca(SSL_CTX_get_cert_store(ctx), cfg->ca_path, err), err);
    if (rc != MS_OK || cfg->crl_path == NULL || cfg->crl_path[0] == '\0') {
        return rc;
    }
    return load_crl(SSL_CTX_get_cert_store(ctx), cfg, warning, err);
}

/* ---- our own certificate ---- */

static int verify_fail(const struct ms_tls_config *cfg, X509_STORE_CTX *vctx, X509 *cert,
                       struct ms_err *err)
{
    char subject[96];
    char issuer[96];
    char date[32] = "?";
    time_t end = ms_x509_time(X509_get0_notAfter(cert));
    struct tm tm;
    ms_x509_name(X509_get_subject_name(cert), subject, sizeof(subject));
    ms_x509_name(X509_get_issuer_name(cert), issuer, sizeof(issuer));
    if (gmtime_r(&end, &tm) != NULL) {
        strftime(date, sizeof(date), "%Y-%m-%d", &tm);
    }
    int code = X509_STORE_CTX_get_error(vctx);
    int is_own = X509_STORE_CTX_get_error_depth(vctx) == 0;
    switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return is_own
                   ? ms_fail(err, MS_E_TLS,
                             "the certificate %s (%s) expired on %s: where the CA is: msctl certs "
                             "renew NAME; here: msctl certs install NAME.p12",
                             cfg->p12_path, subject, date)
                   : ms_fail(err, MS_E_TLS, "the CA in %s has expired: make a new one",
                             cfg->ca_path);
    case X509_V_ERR_CERT_NOT_YET_VALID: /* passes for a daemon that starts before its clock is set
                                         */
        return ms_fail(err,
                       (cfg->roles & (MS_ROLE_WORKER | MS_ROLE_SCHEDULER)) != 0 ? MS_E_UNAVAILABLE
                                                                                : MS_E_TLS,
                       "the certificate %s (%s) is not valid yet: is this host's clock right?",
                       cfg->p12_path, subject);
    case X509_V_ERR_CERT_REVOKED:
        return ms_fail(err, MS_E_TLS,
                       "the certificate %s (%s) is revoked by %s: where the CA is: msctl certs "
                       "issue makes another one; here: msctl certs install NAME.p12",
                       cfg->p12_path, subject, cfg->crl_path);
    case X509_V_ERR_UNABLE_TO_GET_CRL: /* of another CA, by its name or by its key alone */
    case X509_V_ERR_CRL_SIGNATURE_FAILURE:
        return ms_fail(err, MS_E_TLS,
                       "%s has no list of the CA that issued %s: it is another CA's, or damaged: "
                       "where the CA is: msctl certs crl; here: msctl certs install crl.pem, or "
                       "remove the list if nobody was revoked",
                       cfg->crl_path, cfg->p12_path);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        return ms_fail(err, MS_E_TLS,
                       "the certificate %s (%s, issued by %s) was not signed by the CA in %s: take "
                       "both from the same CA",
                       cfg->p12_path, subject, issuer, cfg->ca_path);
    default:
        return ms_fail(err, MS_E_TLS, "the certificate %s (%s) does not verify: %s", cfg->p12_path,
                       subject, X509_verify_cert_error_string(code));
    }
}

static int verify_own(SSL_CTX *ctx, const struct ms_tls_config *cfg, const struct ms_p12 *p12,
                      struct ms_err *err)
{
    X509_STORE_CTX *vctx = X509_STORE_CTX_new();
    int rc = MS_OK;
    if (vctx == NULL ||
        X509_STORE_CTX_init(vctx, SSL_CTX_get_cert_store(ctx), p12->cert, p12->chain) != 1) {
        rc = ssl_fail(err, "cannot verify", cfg->p12_path);
    } else if (X509_verify_cert(vctx) != 1) {
        rc = verify_fail(cfg, vctx, p12->cert, err);
    }
    X509_STORE_CTX_free(vctx);
    ERR_clear_error();
    return rc;
}

static void warn_expiry(const struct ms_tls_config *cfg, X509 *cert, char *warning)
{
    time_t end = ms_x509_time(X509_get0_notAfter(cert));
    double left = difftime(end, time(NULL));
    double life = difftime(end, ms_x509_time(X509_get0_notBefore(cert)));
    int days = cfg->expire_warning_days != 0 ? cfg->expire_warning_days : EXPIRE_WARNING_DAYS;
    double ahead = (double)days * DAY_S;
    /* a certificate that was made for a week is no news on its first day */
    if (left <= (life < ahead ? life / 3 : ahead)) {
        warn(warning, "the certificate %s expires in %d days: renew it: msctl certs renew",
             cfg->p12_path, (int)(left / DAY_S));
    }
}

static int find_identity(const X509 *cert, struct ms_principal *ret)
{
    char uri[MS_NAME_MAX + 32];
    return ms_x509_uri(cert, uri, sizeof(uri)) && ms_principal_from_uri(uri, ret);
}

/* Each program needs a certificate of its own kind: peers would refuse it anyway, one by one. */
static int check_role(const struct ms_tls_config *cfg, const struct ms_principal *own,
                      struct ms_err *err)
{
    static const unsigned each[] = {MS_ROLE_SCHEDULER, MS_ROLE_WORKER, MS_ROLE_USER};
    if (cfg->roles == 0 || (own->roles & cfg->roles) != 0) {
        return MS_OK;
    }
    const char *want = "";
    for (size_t i = 0; i < MS_ARRAY_SIZE(each) && want[0] == '\0'; i++) {
        want = (cfg->roles & each[i]) != 0 ? ms_role_name(each[i]) : "";
    }
    return ms_fail(
        err, MS_E_REFUSED,
        "the certificate %s is no %s's but that of %s: issue one with: msctl certs issue "
        "%s NAME",
        cfg->p12_path, want, own->id, want);
}

static int use_own(SSL_CTX *ctx, const struct ms_tls_config *cfg, char *warning, struct ms_err *err)
{
    struct ms_p12 p12;
    struct ms_principal identity;
    int rc = ms_tls_denied(cfg, cfg->p12_path,
                           ms_p12_read(cfg->p12_path, cfg->p12_password, &p12, err), err);
    if (rc != MS_OK) {
        return rc;
    }
    if (SSL_CTX_use_certificate(ctx, p12.cert) != 1 || SSL_CTX_use_PrivateKey(ctx, p12.key) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1) {
        rc = ssl_fail(err, "cannot use", cfg->p12_path);
    }
    for (int i = 0; rc == MS_OK && i < sk_X509_num(p12.chain); i++) {
        if (SSL_CTX_add1_chain_cert(ctx, sk_X509_value(p12.chain, i)) != 1) {
            rc = ssl_fail(err, "cannot use the chain in", cfg->p12_path);
        }
    }
    if (rc == MS_OK) {
        rc = verify_own(ctx, cfg, &p12, err);
    }
    if (rc == MS_OK && !find_identity(p12.cert, &identity)) {
        rc = ms_fail(err, MS_E_TLS,
                     "the certificate %s has no URI ms://ROLE/NAME in subjectAltName, which says "
                     "who we are: issue one: msctl certs issue",
                     cfg->p12_path);
    }
    if (rc == MS_OK) {
        rc = check_role(cfg, &identity, err);
    }
    if (rc == MS_OK) {
        warn_expiry(cfg, p12.cert, warning);
    }
    ms_p12_fini(&p12);
    return rc;
}

int ms_tls_context(const struct ms_tls_config *cfg, SSL_CTX **ret, char *ret_warning,
                   struct ms_err *err)
{
    char warning[MS_TEXT_MAX] = "";
    if (cfg->p12_path == NULL || cfg->p12_path[0] == '\0') {
        return ms_fail(err, MS_E_INVALID, "no certificate was given (a PKCS#12 file)");
    }
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_method());
    if (ctx == NULL) {
        return ssl_fail(err, "cannot set up TLS", NULL);
    }
    int rc = set_protocol(ctx, cfg->cipher_list, warning, err);
    if (rc == MS_OK) {
        rc = load_trust(ctx, cfg, warning, err);
    }
    if (rc == MS_OK) {
        rc = use_own(ctx, cfg, warning, err);
    }
    if (rc != MS_OK) {
        SSL_CTX_free(ctx);
        return rc;
    }
    if (ret_warning != NULL) {
        memcpy(ret_warning, warning, sizeof(warning));
    }
    *ret = ctx;
    return MS_OK;
}

int ms_tls_has_list(SSL_CTX *ctx)
{
    X509_VERIFY_PARAM *param = X509_STORE_get0_param(SSL_CTX_get_cert_store(ctx));
    return (X509_VERIFY_PARAM_get_flags(param) & X509_V_FLAG_CRL_CHECK) != 0;
}

/* ---- one connection ---- */

static int expect_host(SSL *ssl, const char *host)
{
    uint8_t ip[16];
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1) {
        return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    }
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, host) == 1;
}

SSL *ms_tls_new(SSL_CTX *ctx, int server, const char *host)
{
    SSL *ssl = SSL_new(ctx);
    if (ssl == NULL) {
        return NULL;
    }
    if (server) {
        SSL_set_accept_state(ssl);
    } else {
        SSL_set_connect_state(ssl);
        if (host != NULL && host[0] != '\0' && !expect_host(ssl, host)) {
            SSL_free(ssl);
            ERR_clear_error();
            return NULL;
        }
    }
    return ssl;
}

int ms_tls_own(SSL_CTX *ctx, struct ms_principal *ret)
{
    const X509 *cert = SSL_CTX_get0_certificate(ctx);
    return cert != NULL && find_identity(cert, ret);
}

int ms_tls_peer(SSL *ssl, struct ms_peer *peer, struct ms_err *err)
{
    struct ms_principal identity;
    X509 *cert = SSL_get1_peer_certificate(ssl);
    if (cert == NULL) {
        return ms_fail(err, MS_E_REFUSED,
                       "the peer showed no certificate: issue one: msctl certs issue");
    }
    int rc = MS_OK;
    if (SSL_get_verify_result(ssl) != X509_V_OK) {
        rc = ms_fail(err, MS_E_REFUSED, "the peer's certificate does not verify: %s",
                     X509_verify_cert_error_string(SSL_get_verify_result(ssl)));
    } else if (!find_identity(cert, &identity)) {
        char subject[96];
        rc = ms_fail(err, MS_E_REFUSED,
                     "the peer's certificate (%s) has no URI ms://ROLE/NAME in subjectAltName: "
                     "issue one: msctl certs issue",
                     ms_x509_name(X509_get_subject_name(cert), subject, sizeof(subject)));
    } else {
        const char *name = strchr(identity.id, ':') + 1;
        peer->who = identity;
        memcpy(peer->cert_name, name, strlen(name) + 1);
    }
    X509_free(cert);
    return rc;
}
