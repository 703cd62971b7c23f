/* names.h - names of uids from the system's user database, which may be a directory far away
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
#include "proto/limits.h"

#include <event2/event.h>
#include <stdint.h>

struct names;

enum names_answer { NAMES_KNOWN, NAMES_PENDING, NAMES_FAILED };

/* Fills name, "" for a uid without one. 0, or below 0 when nobody could tell. May block. */
typedef int names_lookup_fn(unsigned uid, char name[MS_NAME_MAX + 1]);

/* The names that getpwuid_r gives; one that is not clean (proto/principal.h) is none. A subordinate
 * uid has its owner's: an account of 65,536 of them would be as many people. */
int names_from_nss(unsigned uid, char name[MS_NAME_MAX + 1]);

int names_create(struct event_base *base, names_lookup_fn *lookup, void (*on_answer)(void *arg),
                 void *arg, struct names **ret, struct ms_err *err);
void names_destroy(struct names *names); /* NULL allowed */

/* name is filled when KNOWN. */
enum names_answer names_find(struct names *names, unsigned uid, char name[MS_NAME_MAX + 1]);
/* A reload: what is known is asked for again. */
void names_forget(struct names *names);

#endif
