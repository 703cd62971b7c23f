/* tls.h - TLS 1.3 with certificates on both sides, and who the peer is
 *
 * Identity is the certificate's URI in subjectAltName: ms://worker/NAME, ms://user/NAME,
 * ms://admin/NAME, ms://scheduler/NAME. PKCS#12 in, as MindSpore has it; the CA's certificate and
 * an optional CRL as PEM. Contexts are immutable after creation and may be shared by threads. */
#ifndef MS_TLS_H
#define MS_TLS_H

#include "proto/err.h"
#include "proto/limits.h"
#include "proto/principal.h"
#include "proto/wire.h"

#include <openssl/ssl.h>

struct ms_tls_config {
    const char *p12_path;     /* certificate and key */
    const char *p12_password; /* "" where there is none; never logged */
    const char *ca_path;      /* PEM */
    const char *crl_path;     /* PEM; NULL or "": no revocation check */
    int crl_may_miss;         /* crl_path is a place to look at: no file there, no check */
    unsigned roles;           /* enum ms_role, or-ed: what our certificate must be for; 0: any */
    const char *cipher_list; /* NULL: ours. TLS 1.2 names are accepted and dropped with a warning */
    int expire_warning_days; /* 0: 90; where it lives shorter, its last third */
};

/* Who a connection's other end is. */
struct ms_peer {
    struct ms_principal who;         /* no roles until Welcome */
    char address[MS_ADDR_MAX + 1];   /* for people */
    char cert_name[MS_NAME_MAX + 1]; /* NAME of the URI; "" without TLS */
    unsigned uid;                    /* Unix sockets: SO_PEERCRED; else (unsigned)-1 */
};

/* Both sides verify. Checks at once that the key matches, the chain verifies, nothing is expired; a
 * key file that others can read is refused, and a certificate for another role; old RC2/3DES
 * PKCS#12 is answered with the conversion command, a file that we may not read (MS_E_REFUSED) with
 * what gives it to us. ret_warning (NULL allowed, MS_TEXT_MAX) gets
 * e.g. the expiry in days, or "". Returns owned; free with SSL_CTX_free. */
int ms_tls_context(const struct ms_tls_config *cfg, SSL_CTX **ret, char *ret_warning,
                   struct ms_err *err);

/* Does it know a list of revoked certificates? Whoever puts another in its place asks first: with
 * crl_may_miss a list that is just being replaced would be none, and the revoked get in again. */
int ms_tls_has_list(SSL_CTX *ctx);

/* A server-side or client-side SSL on the context. host (clients; NULL: skip) is checked against
 * the server's SAN dns/ip entries. Returns owned or NULL. */
SSL *ms_tls_new(SSL_CTX *ctx, int server, const char *host);

/* Who our own certificate says we are. 0: it says nothing of ours. */
int ms_tls_own(SSL_CTX *ctx, struct ms_principal *ret);

/* After the handshake: fills who and cert_name of peer. MS_E_REFUSED without a certificate
 * or with one whose URI is not ours. */
int ms_tls_peer(SSL *ssl, struct ms_peer *peer, struct ms_err *err);

/* Drains OpenSSL's error queue into words for a failed handshake or read ("the peer refused our
 * certificate (unknown ca): it was issued by another CA than the peer's; ..."). */
void ms_tls_reason(SSL *ssl, char *buf, size_t size);

/* The same for an error that was taken from the queue already (libevent does), with who the other
 * end is ("the scheduler at h:1"). ssl may be NULL. Returns MS_E_REFUSED where a certificate was
 * refused, by either side, else MS_E_TLS. */
int ms_tls_describe(SSL *ssl, unsigned long error, const char *who, char *buf, size_t size);

#endif
