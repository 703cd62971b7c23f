/* account.h - whose account a uid is: its own, or that of the owner of a subordinate uid
 *
 * The one place that knows both the system's user database (NSS) and /etc/subuid, so that no
 * subordinate uid is anybody whom its owner's own uid would not be. What the operator's user_map
 * says of the account counts more (server_names.c). May block; any thread. */
#ifndef ACCOUNT_H
#define ACCOUNT_H

#include "proto/err.h"
#include "proto/principal.h"

/* The name that getpwuid_r gives; one that is not clean (proto/principal.h) is none, "". 0, or
 * MS_E_IO when nobody could tell. */
int account_name(unsigned uid, char name[MS_NAME_MAX + 1]);

/* The uid of the account that the system calls so. *ret_is_one 0: there is none. As account_name.
 */
int account_named(const char *name, unsigned *ret_uid, int *ret_is_one);

/* A uid with a name, or in no range of the file (subuid(5)), is its own account. Of another it is
 * that of the owner: the line's number, or what getpwnam_r says of the line's name. Ranges of root,
 * of own_uid (the daemon's) and of nobody are no account of theirs: what runs there is one of its
 * own without a name, by the first uid of the range. As account_name. */
int account_find(const char *subuid_file, unsigned uid, unsigned own_uid, struct ms_account *ret);

/* The same with the system's file and our own uid. */
int account_of_uid(unsigned uid, struct ms_account *ret);

#endif
