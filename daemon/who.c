/* who.c - the operator's words on who is who and who may what: anyone, user_map, priority_users */
#include "daemon/who.h"

#include "proto/macros.h"
#include "proto/principal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char separators[] = " \t,";

/* The next word of *at, cut to size; 0: none is left; -1: it is longer than that. */
static int next_word(const char **at, char *word, size_t size)
{
    *at += strspn(*at, separators);
    size_t n = strcspn(*at, separators);
    if (n == 0) {
        return 0;
    }
    snprintf(word, size, "%.*s", (int)n, *at);
    *at += n;
    return n < size ? 1 : -1;
}

int who_parse_roles(const char *text, unsigned *ret_roles, struct ms_err *err)
{
    static const unsigned each[] = {MS_ROLE_WORKER, MS_ROLE_USER, MS_ROLE_ADMIN};
    char word[16];
    unsigned roles = 0;
    int n = 0;
    int is_none = 0;
    const char *at = text;
    for (int more; (more = next_word(&at, word, sizeof(word))) != 0; n++) {
        unsigned role = 0;
        for (size_t i = 0; i < MS_ARRAY_SIZE(each); i++) {
            role |= strcmp(word, ms_role_name(each[i])) == 0 ? each[i] : 0;
        }
        is_none |= strcmp(word, "none") == 0;
        if (more < 0 || (role == 0 && strcmp(word, "none") != 0)) {
            return ms_fail(err, MS_E_CONFIG,
                           "anyone = %.80s: it must be none, or some of worker, user, admin", text);
        }
        roles |= role;
    }
    if (n == 0 || (is_none && n > 1)) {
        return ms_fail(err, MS_E_CONFIG,
                       "anyone = %.80s: it must be none alone, or some of worker, user, admin",
                       text);
    }
    *ret_roles = roles;
    return 0;
}

/* "alice=1000" */
static int parse_entry(char *word, struct who_map *map, struct ms_err *err)
{
    char *number = strchr(word, '=');
    char *end = NULL;
    if (number == NULL) {
        return ms_fail(err, MS_E_CONFIG, "user_map has '%.80s': write NAME=UID", word);
    }
    *number++ = '\0';
    unsigned long uid = strtoul(number, &end, 10);
    if (number[0] < '0' || number[0] > '9' || *end != '\0' || uid >= UINT32_MAX) {
        return ms_fail(err, MS_E_CONFIG, "user_map gives %.80s the uid '%.40s', which is no number",
                       word, number);
    }
    if (!ms_principal_is_name(word)) {
        return ms_fail(err, MS_E_CONFIG,
                       "user_map has the name '%.80s': it must be 1 to %d letters, digits and . - "
                       "_ @ +",
                       word, MS_NAME_MAX);
    }
    const char *before = who_map_find(map, (unsigned)uid);
    if (before != NULL) {
        return ms_fail(err, MS_E_CONFIG, "user_map gives the uid %lu to %s and to %s", uid, before,
                       word);
    }
    if (map->n == WHO_MAP_MAX) {
        return ms_fail(err, MS_E_CONFIG,
                       "user_map names more than %d people: name them in the system's user "
                       "database (NSS), which is asked for all others",
                       WHO_MAP_MAX);
    }
    map->of[map->n].uid = (unsigned)uid;
    memcpy(map->of[map->n].name, word, strlen(word) + 1);
    map->n++;
    return 0;
}

int who_parse_map(const char *text, struct who_map *ret, struct ms_err *err)
{
    char word[MS_NAME_MAX + 16];
    const char *at = text;
    int rc = 0;
    ret->n = 0;
    for (int more; rc == 0 && (more = next_word(&at, word, sizeof(word))) != 0;) {
        rc = more > 0
                 ? parse_entry(word, ret, err)
                 : ms_fail(err, MS_E_CONFIG, "user_map has '%.80s...', which is too long", word);
    }
    return rc;
}

const char *who_map_find(const struct who_map *map, unsigned uid)
{
    for (unsigned i = 0; i < map->n; i++) {
        if (map->of[i].uid == uid) {
            return map->of[i].name;
        }
    }
    return NULL;
}

int who_map_named(const struct who_map *map, const char *name)
{
    for (unsigned i = 0; i < map->n; i++) {
        if (strcmp(map->of[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

int who_parse_range(const char *text, int32_t *ret_min, int32_t *ret_max, struct ms_err *err)
{
    char *end = NULL;
    long min = strtol(text, &end, 10);
    int ok = end != text && strncmp(end, "..", 2) == 0;
    const char *second = ok ? end + 2 : text;
    long max = strtol(second, &end, 10);
    ok = ok && end != second && *end == '\0';
    if (!ok || min > max || min < -MS_PRIORITY_MAX || max > MS_PRIORITY_MAX) {
        return ms_fail(err, MS_E_CONFIG,
                       "priority_users = %.80s: it must be LOW..HIGH within %d..%d", text,
                       -MS_PRIORITY_MAX, MS_PRIORITY_MAX);
    }
    *ret_min = (int32_t)min;
    *ret_max = (int32_t)max;
    return 0;
}
