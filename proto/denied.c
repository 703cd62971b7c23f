/* denied.c - who keeps us from a file, by modes, and what lets us in */
#include "proto/denied.h"

#include "proto/folder.h"
#include "proto/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_closed(const char *path, int mode)
{
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS) != 0 && errno == EACCES;
}

int ms_denied_at(const char *path, int mode, char *ret_at, size_t size)
{
    if (!is_closed(path, mode)) {
        return errno == ENOENT && (mode & W_OK) != 0 &&
               is_closed(ms_folder_of(path, ret_at, size), W_OK | X_OK);
    }
    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        int n = snprintf(ret_at, size, "%.*s", (int)(slash - path), path);
        if (n > 0 && (size_t)n < size && is_closed(ret_at, X_OK)) {
            return 1;
        }
    }
    snprintf(ret_at, size, "%s", path);
    return 1;
}

const char *ms_denied_name(uid_t uid, char *buf, size_t size)
{
    char entry[4096];
    struct passwd user;
    struct passwd *found = NULL;
    if (getpwuid_r(uid, &user, entry, sizeof(entry), &found) == 0 && found != NULL) {
        snprintf(buf, size, "%s", found->pw_name);
    } else {
        snprintf(buf, size, "%u", (unsigned)uid);
    }
    return buf;
}

/* A folder that is only on the way; the one that a file is to be written in is more than that. */
static int is_on_the_way(const char *at, const char *path, int mode)
{
    const size_t n = strlen(at);
    return strncmp(at, path, n) == 0 && path[n] == '/' && is_closed(at, X_OK) &&
           ((mode & W_OK) == 0 || strchr(path + n + 1, '/') != NULL);
}

/* To be another's may be meant: of /var/lib, or of the service's database. */
static void advise(const char *at, const struct stat *st, int mode, const char *path, char *buf,
                   size_t size)
{
    char owner[MS_NAME_MAX + 1];
    char us[MS_NAME_MAX + 1];
    char as[2 * MS_NAME_MAX + 32] = "";
    const uid_t uid = geteuid();
    const unsigned bits = (unsigned)st->st_mode & 07777;
    const char *needed = S_ISDIR(st->st_mode) ? "rwx" : (mode & W_OK) != 0 ? "rw" : "r";
    ms_denied_name(st->st_uid, owner, sizeof(owner));
    ms_denied_name(uid, us, sizeof(us));
    if (st->st_uid != 0) {
        snprintf(as, sizeof(as), "run it as %s (sudo -u %s%s), or ", owner,
                 owner[0] >= '0' && owner[0] <= '9' ? "\\#" : "", owner);
    }
    if (st->st_uid == uid) {
        snprintf(buf, size, "%s is of mode %04o: chmod u+%s %s", at, bits, needed, at);
    } else if (is_on_the_way(at, path, mode)) {
        snprintf(buf, size, "%s is %s's, of mode %04o, and %s may not enter it: sudo chmod o+x %s",
                 at, owner, bits, us, at);
    } else if ((mode & W_OK) == 0) {
        snprintf(buf, size, "it is %s's, of mode %04o, and this runs as %s: %ssudo chmod a+r %s",
                 owner, bits, us, as, at);
    } else {
        snprintf(buf, size,
                 "%s is %s's, of mode %04o, and this runs as %s: %ssudo chown %s %s, if it is "
                 "meant for %s",
                 at, owner, bits, us, as, us, at, us);
    }
}

int ms_denied(const char *path, int mode, int rc, struct ms_err *err)
{
    char at[MS_PATH_MAX + 33];
    char words[MS_ERR_TEXT_MAX];
    char said[MS_ERR_TEXT_MAX];
    struct stat st;
    if (err == NULL || !ms_denied_at(path, mode, at, sizeof(at)) || stat(at, &st) != 0) {
        return rc;
    }
    advise(at, &st, mode, path, words, sizeof(words));
    snprintf(said, sizeof(said), "%s", ms_err_text(err));
    if (strlen(said) + strlen(words) + 2 >= MS_ERR_TEXT_MAX) { /* half a command is none */
        return rc;
    }
    return ms_fail(err, rc, "%s; %s", said, words);
}
