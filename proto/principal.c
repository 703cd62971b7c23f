/* principal.c - who somebody is: one canonical text for each, made here and nowhere else */
#include "proto/principal.h"

#include "proto/macros.h"

#include <assert.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char uri_scheme[] = "ms://";
static const char anyone[] = "anyone";

static const struct {
    unsigned role;
    int is_person; /* shown by the name alone */
} kinds[] = {
    {MS_ROLE_WORKER, 0},
    {MS_ROLE_USER, 1},
    {MS_ROLE_ADMIN, 1},
    {MS_ROLE_SCHEDULER, 0},
};

static void set(struct ms_principal *ret, unsigned roles, const char *kind, const char *name)
{
    memset(ret, 0, sizeof(*ret));
    ret->roles = roles;
    int n = snprintf(ret->id, sizeof(ret->id), "%s:%s", kind, name);
    assert(n > 0 && (size_t)n < sizeof(ret->id)); /* names are judged before */
}

int ms_principal_is_name(const char *name)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789.-_@+";
    size_t n = strlen(name);
    return n > 0 && n <= MS_NAME_MAX && strspn(name, legal) == n;
}

static int is_number(const char *text)
{
    size_t n = strspn(text, "0123456789");
    return n > 0 && n <= 10 && text[n] == '\0';
}

/* The kind of "user:alice", with *ret_name behind the colon; NULL: not of a certificate's form. */
static const char *split(const char *id, const char **ret_name, int *ret_is_person)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(kinds); i++) {
        const char *word = ms_role_name(kinds[i].role);
        size_t n = strlen(word);
        if (strncmp(id, word, n) == 0 && id[n] == ':') {
            *ret_name = id + n + 1;
            *ret_is_person = kinds[i].is_person;
            return word;
        }
    }
    return NULL;
}

int ms_principal_is_canonical(const char *id)
{
    const char *name = NULL;
    int is_person = 0;
    if (strncmp(id, "uid:", 4) == 0) {
        return is_number(id + 4);
    }
    return strcmp(id, anyone) == 0 ||
           (split(id, &name, &is_person) != NULL && ms_principal_is_name(name));
}

int ms_principal_from_certificate(unsigned role, const char *name, struct ms_principal *ret)
{
    const char *kind = ms_role_name(role);
    if (kind == NULL || !ms_principal_is_name(name)) {
        return 0;
    }
    set(ret, role, kind, name);
    return 1;
}

int ms_principal_from_uri(const char *uri, struct ms_principal *ret)
{
    size_t scheme = sizeof(uri_scheme) - 1;
    if (strncmp(uri, uri_scheme, scheme) != 0) {
        return 0;
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(kinds); i++) {
        const char *word = ms_role_name(kinds[i].role);
        size_t n = strlen(word);
        if (strncmp(uri + scheme, word, n) == 0 && uri[scheme + n] == '/') {
            return ms_principal_from_certificate(kinds[i].role, uri + scheme + n + 1, ret);
        }
    }
    return 0;
}

void ms_principal_from_account(unsigned uid, const struct ms_account *account, unsigned owner_uid,
                               unsigned owner_roles, struct ms_principal *ret)
{
    char number[16];
    const char *name = account->name;
    int is_admin = uid == 0 || uid == owner_uid;
    int has_name = ms_principal_is_name(name);
    if (uid == 0 && !has_name) { /* the one uid whose name needs no directory */
        name = "root";
        has_name = 1;
    }
    if (!has_name) {
        snprintf(number, sizeof(number), "%u", account->uid);
        name = number;
    }
    set(ret, is_admin ? MS_ROLE_ADMIN | owner_roles : MS_ROLE_USER,
        is_admin   ? "admin"
        : has_name ? "user"
                   : "uid",
        name);
}

void ms_principal_from_uid(unsigned uid, const char *name, unsigned owner_uid, unsigned owner_roles,
                           struct ms_principal *ret)
{
    struct ms_account account = {.uid = uid};
    if (ms_principal_is_name(name)) {
        memcpy(account.name, name, strlen(name) + 1);
    }
    ms_principal_from_account(uid, &account, owner_uid, owner_roles, ret);
}

void ms_principal_anyone(unsigned roles, struct ms_principal *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->roles = roles;
    memcpy(ret->id, anyone, sizeof(anyone));
}

/* ---- what 0.1.0 stored --------------------------------------------------------------------------
 */

/* The user's name, "" without one. */
static void name_of_uid(unsigned uid, char name[MS_NAME_MAX + 1])
{
    struct passwd entry;
    struct passwd *found = NULL;
    size_t size = 64 << 10; /* one long GECOS field and home; glibc's advice is 1 KiB */
    char *buf = malloc(size);
    name[0] = '\0';
    if (buf != NULL && getpwuid_r((uid_t)uid, &entry, buf, size, &found) == 0 && found != NULL &&
        ms_principal_is_name(found->pw_name)) {
        memcpy(name, found->pw_name, strlen(found->pw_name) + 1);
    }
    free(buf);
}

void ms_principal_from_0_1(const char *text, char out[MS_PRINCIPAL_MAX + 1])
{
    char name[MS_NAME_MAX + 1];
    struct ms_principal who;
    if (strncmp(text, "uid ", 4) == 0 && is_number(text + 4)) {
        unsigned uid = (unsigned)strtoul(text + 4, NULL, 10);
        name_of_uid(uid, name);
        ms_principal_from_uid(uid, name, (unsigned)geteuid(), 0, &who);
    } else if (!ms_principal_from_certificate(MS_ROLE_USER, text, &who)) {
        ms_principal_anyone(0, &who); /* an address with a port: nobody can prove to be that */
    }
    memcpy(out, who.id, sizeof(who.id));
}

const char *ms_principal_show(const char *id)
{
    const char *name = id;
    int is_person = 0;
    return split(id, &name, &is_person) != NULL && is_person ? name : id;
}
