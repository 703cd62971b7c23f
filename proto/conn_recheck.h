/* conn_recheck.h - who is behind an open connection, judged again by the rules of today
 *
 * That is settled once: a certificate is verified at the handshake, a uid has its name and a plain
 * peer its rights from then on. After a reload with a new list of revoked certificates, another CA,
 * other names or fewer rights for anyone, the connections that are open have to be asked again. */
#ifndef MS_CONN_RECHECK_H
#define MS_CONN_RECHECK_H

#include "proto/conn.h"

struct ms_conn_rules {
    SSL_CTX *ctx;         /* NULL: no certificate is judged */
    unsigned plain_role;  /* what anyone may be (or-ed) */
    const char *uid_name; /* of a Unix peer's account, "" it has none; NULL: what it was called */
};

/* Would the peer be the same somebody today, with no fewer rights, and its certificate pass a
 * handshake with ctx? 0 also for those still inside the handshake, and for certificates whose
 * handshake was with this very ctx. MS_E_REFUSED names peer and cause. Server side; thread of the
 * event base. */
int ms_conn_recheck(const struct ms_conn *conn, const struct ms_conn_rules *rules,
                    struct ms_err *err);

#endif
