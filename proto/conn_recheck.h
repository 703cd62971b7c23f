/* conn_recheck.h - an open connection's certificate, judged again by the rules of today
 *
 * A certificate is verified once, at the handshake. After a reload with a new list of revoked
 * certificates, or another CA, the connections that are open have to be asked again. */
#ifndef MS_CONN_RECHECK_H
#define MS_CONN_RECHECK_H

#include "proto/conn.h"

/* Would the peer's certificate pass a handshake with ctx? 0 also for connections without TLS, for
 * those still inside the handshake, and for those whose handshake was with this very ctx.
 * MS_E_REFUSED names certificate and cause. Thread of the event base. */
int ms_conn_recheck(const struct ms_conn *conn, SSL_CTX *ctx, struct ms_err *err);

#endif
