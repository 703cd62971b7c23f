/* principal.h - who somebody is: one canonical text for each, made here and nowhere else
 *
 *     user:alice      a certificate ms://user/alice, or a uid whose name is alice
 *     uid:1000        a uid that has no name
 *     worker:node7    a certificate ms://worker/node7
 *     admin:root      root, the daemon's own user, or a certificate ms://admin/root
 *     scheduler:head  a certificate ms://scheduler/head
 *     anyone          whoever comes without TLS: nobody vouches for a name
 *
 * Two connections are the same somebody when the texts are equal; the text is what the database
 * keeps as an owner. What he may do follows from his roles, never from the text. Names are clean:
 * no space, no control, no colon. Nothing here keeps state; any thread unless said otherwise. */
#ifndef MS_PRINCIPAL_H
#define MS_PRINCIPAL_H

#include "proto/limits.h"
#include "proto/wire.h"

struct ms_principal {
    unsigned roles;                /* enum ms_role, or-ed; 0: may nothing */
    char id[MS_PRINCIPAL_MAX + 1]; /* "" not known yet */
};

/* 1 to MS_NAME_MAX letters, digits and . - _ @ +, as certificates and user names have them. */
int ms_principal_is_name(const char *name);
/* Is it one of the texts above? */
int ms_principal_is_canonical(const char *id);

/* The bearer of a certificate for exactly one role. 0: no such role, or no clean name; *ret is then
 * left alone. */
int ms_principal_from_certificate(unsigned role, const char *name, struct ms_principal *ret);
/* The same from the certificate's URI, ms://ROLE/NAME. */
int ms_principal_from_uri(const char *uri, struct ms_principal *ret);

/* Whose account a process is of: its uid's own, or another one that a subordinate uid belongs to.
 */
struct ms_account {
    unsigned uid;
    char name[MS_NAME_MAX + 1]; /* "" or one that is not clean: it has none */
};

/* The process behind a Unix socket, by its account. Rights follow from its own uid alone: that of
 * root and of owner_uid (the daemon's own) is an admin, and has owner_roles beside that. */
void ms_principal_from_account(unsigned uid, const struct ms_account *account, unsigned owner_uid,
                               unsigned owner_roles, struct ms_principal *ret);
/* The same of a uid that is its own account, by name ("": it has none). */
void ms_principal_from_uid(unsigned uid, const char *name, unsigned owner_uid, unsigned owner_roles,
                           struct ms_principal *ret);
/* Whoever reached a plain port; roles: what the operator gives to anyone. */
void ms_principal_anyone(unsigned roles, struct ms_principal *ret);

/* Owners as release 0.1.0 stored them ("uid 1000", "alice", "127.0.0.1:4242") in today's form: its
 * texts are never taken for today's, or who was named "anyone" would share his jobs. Asks
 * NSS for the names of uids, which may block: only while a database is migrated. */
void ms_principal_from_0_1(const char *text, char out[MS_PRINCIPAL_MAX + 1]);

/* For people: "alice" of user:alice and "root" of admin:root, all others as they are. Returns
 * borrowed from id. */
const char *ms_principal_show(const char *id);

#endif
