/* denied.c - who keeps us from a file, by modes, and what lets us in */
#include "proto/denied.h"

#include "config.h"
#include "proto/folder.h"
#include "proto/limits.h"
#include "proto/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_DIR "/var/lib/msched" /* systemd/msched.tmpfiles.conf.in */

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

static int is_below(const char *path, const char *folder)
{
    const size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

int ms_denied_is_services(const char *path, uid_t owner, gid_t group)
{
    char entry[4096];
    struct passwd user;
    struct passwd *service = NULL;
    const uid_t uid = geteuid();
    if (getpwnam_r(MS_SERVICE_USER, &user, entry, sizeof(entry), &service) != 0) {
        service = NULL;
    }
    if (uid == 0 || uid == owner || (service != NULL && uid == service->pw_uid)) {
        return 0;
    }
    return (service != NULL && (owner == service->pw_uid || group == service->pw_gid)) ||
           (owner == 0 && (is_below(path, MSCHED_SYSCONFDIR) || is_below(path, STATE_DIR)));
}

/* A folder that is only on the way; the one that a file is to be written in is more than that.
 * With X_OK it is no file, but a folder itself. */
static int is_on_the_way(const char *at, const char *path, int mode)
{
    const size_t n = strlen(at);
    return strncmp(at, path, n) == 0 && path[n] == '/' && is_closed(at, X_OK) &&
           ((mode & W_OK) == 0 || (mode & X_OK) != 0 || strchr(path + n + 1, '/') != NULL);
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
    } else if ((mode & W_OK) != 0) {
        snprintf(as, sizeof(as), "name another one, or ");
    }
    if (st->st_uid == uid) {
        snprintf(buf, size, "%s is of mode %04o: chmod u+%s %s", at, bits, needed, at);
    } else if ((mode & W_OK) != 0 && ms_denied_is_services(at, st->st_uid, st->st_gid)) {
        snprintf(buf, size,
                 "%s is the service's (%s's, of mode %04o), and this runs as %s: give the command "
                 "with sudo, or name another one",
                 at, owner, bits, us);
    } else if (is_on_the_way(at, path, mode)) {
        snprintf(buf, size, "%s is %s's, of mode %04o, and %s may not enter it: sudo chmod o+x %s",
                 at, owner, bits, us, at);
    } else if ((mode & W_OK) == 0) {
        snprintf(buf, size, "it is %s's, of mode %04o, and this runs as %s: %ssudo chmod a+r %s",
                 owner, bits, us, as, at);
    } else {
        snprintf(buf, size,
                 "%s is %s's, of mode %04o, and this runs as %s: %sif it is meant for %s, sudo "
                 "chown %s %s",
                 at, owner, bits, us, as, us, us, at);
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
