/* home.h - is this the file that the rows were written to, with all that lay beside it?
 *
 * What a copy of the database takes along cannot prove that it is none. So each start, and each end
 * in order, leaves a mark beside it, a small file that is made anew, and the database notes which:
 * by what stands in it and by its inode and time of change, which no copy has and nobody can set.
 * Whatever was put in the place of the database, or of both, or carried one away from the other,
 * does not match. */
#ifndef STORE_HOME_H
#define STORE_HOME_H

#include "proto/err.h"
#include "proto/limits.h"

#include <stdint.h>

enum home_part {
    HOME_INO,      /* of the database */
    HOME_BORN,     /* its time of birth, ns; 0: the file system does not tell */
    HOME_LOCK_INO, /* of the lock file, which holds the witness */
    HOME_LOCK_BORN,
    HOME_PLACE,    /* the first bytes of a digest of its whole path */
    HOME_MARK,     /* what the mark says: random */
    HOME_MARK_INO, /* its inode */
    HOME_MARK_AT,  /* its time of change, ns */
    HOME_PARTS
};

/* The names by which the database keeps them. */
extern const char *const home_keys[HOME_PARTS];

struct home {
    uint64_t parts[HOME_PARTS];
    unsigned known; /* bit 1 << part: it is there */
    int slot;       /* which of the two marks it is; 0 none */
};

/* Where a database lies now, its mark left out. It is locked. 0, or MS_E_IO. */
int home_look(const char *database, struct home *ret);

/* Does what the database noted match what is there? Parts that are not known are not judged. Fills
 * stored->slot. */
int home_matches(const char *database, struct home *stored, const struct home *here);

/* Makes a new mark beside that of `stored` (of which only the slot counts), durably, and fills
 * those parts. The old one stays valid until home_drop_mark: a commit lies between. 0, or with the
 * mark's name MS_E_IO, MS_E_FULL; ret is as it was then. */
int home_make_mark(const char *database, const struct home *stored, struct home *ret,
                   struct ms_err *err);
void home_drop_mark(const char *database, int slot);

#endif
