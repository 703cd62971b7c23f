/* who.h - the operator's words on who is who and who may what: anyone, user_map, priority_users */
#ifndef WHO_H
#define WHO_H

#include "proto/err.h"
#include "proto/limits.h"

#include <stdint.h>

enum { WHO_MAP_MAX = 256 }; /* people whom no directory knows; above that a directory is due */

/* Names of uids that count more than those of NSS. */
struct who_map {
    unsigned n;
    struct {
        unsigned uid;
        char name[MS_NAME_MAX + 1];
    } of[WHO_MAP_MAX];
};

/* "worker user admin", some of them, or "none". */
int who_parse_roles(const char *text, unsigned *ret_roles, struct ms_err *err);
/* "alice=1000 bob=1001"; one name for several uids is one person with several accounts, two names
 * for one uid are refused. *ret is cleared first. */
int who_parse_map(const char *text, struct who_map *ret, struct ms_err *err);
/* "-100..100", within the priorities that a job may have. */
int who_parse_range(const char *text, int32_t *ret_min, int32_t *ret_max, struct ms_err *err);

/* NULL: the map does not know it. Returns borrowed from map. */
const char *who_map_find(const struct who_map *map, unsigned uid);
/* The number of the first entry that gives this name to a uid; -1: none does. */
int who_map_named(const struct who_map *map, const char *name);

#endif
