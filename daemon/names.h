/* names.h - accounts of uids from the system's user database, which may be a directory far away
 *
 *     names_find -> KNOWN     from the cache, or nobody has to be asked
 *                -> PENDING   a thread asks; on_answer is called when it is worth to ask again
 *                -> FAILED    no answer in time, or an error: for some seconds, then it is asked
 * anew
 *
 * The loop never waits. One thread asks, so that a directory that hangs costs one thread; it is
 * left behind at the end if it still hangs then. Loop thread only. */
#ifndef NAMES_H
#define NAMES_H

#include "proto/err.h"
#include "proto/principal.h"

#include <event2/event.h>
#include <stdint.h>

struct names;

enum names_answer { NAMES_KNOWN, NAMES_PENDING, NAMES_FAILED };

/* Whose account it is, as account_of_uid. 0, or below 0 when nobody could tell. May block. */
typedef int names_lookup_fn(unsigned uid, struct ms_account *ret);

int names_create(struct event_base *base, names_lookup_fn *lookup, void (*on_answer)(void *arg),
                 void *arg, struct names **ret, struct ms_err *err);
void names_destroy(struct names *names); /* NULL allowed */

/* *ret is filled when KNOWN. */
enum names_answer names_find(struct names *names, unsigned uid, struct ms_account *ret);
/* A reload: what is known is asked for again. */
void names_forget(struct names *names);

#endif
