/* tls_denied.c - a certificate that we may not read: who keeps us out, and what gives it to us */
#include "proto/tls_denied.h"

#include "proto/denied.h"
#include "proto/folder.h"

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* That of this process, by name where it has one: for chgrp(1). */
static void name_group(char *buf, size_t size)
{
    char entry[4096];
    struct group group;
    struct group *found = NULL;
    if (getgrgid_r(getegid(), &group, entry, sizeof(entry), &found) == 0 && found != NULL) {
        snprintf(buf, size, "%s", found->gr_name);
    } else {
        snprintf(buf, size, "%u", (unsigned)getegid());
    }
}

/* Who looks at the service's as a person. */
static int deny_person(const struct ms_tls_config *cfg, const char *path, const char *at,
                       struct ms_err *err)
{
    const char *program = (cfg->roles & MS_ROLE_SCHEDULER) != 0 ? "msschedd" : "msworker";
    return ms_fail(
        err, MS_E_REFUSED,
        "cannot read %s: Permission denied: %s is the service's, not for uid %u: sudo %s "
        "--check-config judges as the service does; a daemon of your own needs files of "
        "your own: msctl certs install NAME.p12 --to DIR",
        path, strcmp(at, path) == 0 ? "it" : at, (unsigned)geteuid(), program);
}

/* The daemons' own folder is opened for their group. Of others, an authority's above all, that
 * would be wrong: a copy is put where the daemons look. */
static int deny_daemon(const struct ms_tls_config *cfg, const char *path, const char *at,
                       struct ms_err *err)
{
    char group[MS_NAME_MAX + 1];
    char folder[MS_PATH_MAX + 1];
    unsigned uid = (unsigned)geteuid();
    struct stat st;
    if (stat(at, &st) == 0 && ms_denied_is_services(at, st.st_uid, st.st_gid)) {
        return deny_person(cfg, path, at, err);
    }
    name_group(group, sizeof(group));
    if (strcmp(at, path) == 0) {
        return ms_fail(err, MS_E_REFUSED,
                       "cannot read %s: Permission denied for uid %u: put it there with sudo msctl "
                       "certs install FILE, or: sudo chgrp %s %s && sudo chmod 640 %s",
                       path, uid, group, path, path);
    }
    if (strcmp(at, ms_folder_of(cfg->p12_path, folder, sizeof(folder))) == 0) {
        return ms_fail(err, MS_E_REFUSED,
                       "cannot read %s: Permission denied: uid %u may not enter %s: sudo chgrp %s "
                       "%s && sudo chmod 750 %s",
                       path, uid, at, group, at, at);
    }
    return ms_fail(err, MS_E_REFUSED,
                   "cannot read %s: Permission denied: uid %u may not enter %s: sudo msctl certs "
                   "install NAME.p12 puts certificate and CA where the daemons look",
                   path, uid, at);
}

int ms_tls_denied(const struct ms_tls_config *cfg, const char *path, int rc, struct ms_err *err)
{
    char at[MS_PATH_MAX + 1];
    if (rc != MS_E_IO || !ms_denied_at(path, R_OK, at, sizeof(at))) {
        return rc;
    }
    if ((cfg->roles & (MS_ROLE_USER | MS_ROLE_ADMIN)) != 0) {
        return ms_fail(err, MS_E_REFUSED,
                       "cannot read %s: Permission denied: %s is not for you; msctl certs install "
                       "NAME.p12 (as yourself, no sudo) puts your own where msctl looks",
                       path, at);
    }
    return deny_daemon(cfg, path, at, err);
}
