/* account.c - whose account a uid is: its own, or that of the owner of a subordinate uid */
#include "daemon/account.h"

#include "daemon/subuid.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENTRY_BYTES = 64 << 10 }; /* glibc's advice is 1 KiB */

/* getpwuid_r(3): these say "there is none" on one system or another. */
static int code_of(int rc)
{
    return rc == 0 || rc == ENOENT || rc == ESRCH || rc == EBADF || rc == EPERM ? 0 : MS_E_IO;
}

/* *ret_is_one: there is such an account, if with a name that nobody can bear here. */
static int look(unsigned uid, char name[MS_NAME_MAX + 1], int *ret_is_one)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char *buf = malloc(ENTRY_BYTES);
    int rc = buf != NULL ? getpwuid_r((uid_t)uid, &entry, buf, ENTRY_BYTES, &found) : ENOMEM;
    name[0] = '\0';
    *ret_is_one = rc == 0 && found != NULL;
    if (*ret_is_one && ms_principal_is_name(found->pw_name)) {
        memcpy(name, found->pw_name, strlen(found->pw_name) + 1);
    }
    free(buf);
    return code_of(rc);
}

int account_name(unsigned uid, char name[MS_NAME_MAX + 1])
{
    int is_one = 0;
    return look(uid, name, &is_one);
}

int account_named(const char *name, unsigned *ret_uid, int *ret_is_one)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char *buf = malloc(ENTRY_BYTES);
    int rc = buf != NULL ? getpwnam_r(name, &entry, buf, ENTRY_BYTES, &found) : ENOMEM;
    *ret_is_one = rc == 0 && found != NULL;
    if (*ret_is_one) {
        *ret_uid = (unsigned)found->pw_uid;
    }
    free(buf);
    return code_of(rc);
}

int account_find(const char *subuid_file, unsigned uid, unsigned own_uid, struct ms_account *ret)
{
    char owner[MS_NAME_MAX + 1];
    unsigned first = 0;
    unsigned owner_uid = 0;
    int is_one = 0;
    ret->uid = uid;
    int rc = look(uid, ret->name, &is_one);
    if (rc != 0 || is_one || !subuid_find(subuid_file, uid, &first, owner)) {
        return rc;
    }
    if (owner[strspn(owner, "0123456789")] == '\0') {
        is_one = subuid_number(owner, &owner_uid);
    } else {
        rc = account_named(owner, &owner_uid, &is_one);
    }
    if (rc == 0 && is_one && owner_uid != 0 && owner_uid != own_uid) {
        ret->uid = owner_uid;
        return account_name(owner_uid, ret->name);
    }
    ret->uid = first;
    return rc;
}

int account_of_uid(unsigned uid, struct ms_account *ret)
{
    return account_find(SUBUID_FILE, uid, (unsigned)geteuid(), ret);
}
