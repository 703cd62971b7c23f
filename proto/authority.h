/* authority.h - the directory of a certificate authority, and what is done with it
 *
 *     ca.key  ca.crt    the CA: 0600 and 0644
 *     index.txt         every certificate that it issued (proto/ca_index.h)
 *     crl.pem           the revoked ones, for nodes and clients
 *     index.lock        one process at a time: flock
 *
 * The index is written first: a certificate that is in the world is in the index, and one that the
 * index calls revoked gets into the next list, whenever the power went. A directory without an
 * index, as versions before 0.2 made it, gets one that says since when, with the serial numbers of
 * its revocation list. Not thread safe. */
#ifndef MS_AUTHORITY_H
#define MS_AUTHORITY_H

#include "proto/ca_index.h"
#include "proto/cert.h"

struct ms_authority;

/* Saves a CA into a directory where none is, with an index that knows all it will issue.
 * MS_E_EXISTS and MS_E_NOT_FOUND as ms_ca_save. */
int ms_authority_create(const char *directory, const struct ms_ca *ca, struct ms_err *err);
/* Waits for its lock, reads CA and index. MS_E_NOT_FOUND where there is no CA, or half of one:
 * nothing is made there. Returns owned. */
int ms_authority_open(const char *directory, struct ms_authority **ret, struct ms_err *err);
void ms_authority_close(struct ms_authority *authority); /* NULL allowed */

/* Borrowed until the next call. */
const struct ms_ca_index *ms_authority_index(const struct ms_authority *authority);

/* Issues a certificate into p12_path, which is replaced. ret: its row, borrowed until the next
 * call. */
int ms_authority_issue(struct ms_authority *authority, const struct ms_cert_request *req,
                       const char *p12_path, const struct ms_ca_entry **ret, struct ms_err *err);

/* How somebody names certificates: a serial number, a NAME, a ROLE:NAME, or a file. */
struct ms_authority_who {
    const char *text;
    const char *password; /* of the file; NULL: none */
};

/* Issues a new certificate like the newest that who means: same role, name and hosts. The old one
 * is valid until it ends. req: days (0: as long as the old one was made for) and password count,
 * the rest is filled in by this call; p12_path NULL: NAME.p12. MS_E_EXISTS where the file is there
 * and may_replace is 0. */
int ms_authority_renew(struct ms_authority *authority, const struct ms_authority_who *who,
                       struct ms_cert_request *req, const char *p12_path, int may_replace,
                       const struct ms_ca_entry **ret, struct ms_err *err);

/* Revokes all that who means, and a serial number that is not in the index where certificates are
 * older than it; NULL: nobody, the list is only made anew. The list is crl.pem of the
 * directory, valid for days; copy (NULL: none; a relative path begins at the directory) gets the
 * same. ret_n: how many were not revoked before. */
int ms_authority_revoke(struct ms_authority *authority, const struct ms_authority_who *who,
                        int days, const char *copy, size_t *ret_n, struct ms_err *err);

#endif
