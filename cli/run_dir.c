/* run_dir.c - the directory of one `msctl run`: logs and results stay, sockets and keys do not */
#include "cli/run_dir.h"

#include "cli/finder.h"
#include "cli/own_dir.h"
#include "libworker/train/checkpoint_folder.h"
#include "proto/addr.h"
#include "proto/cert.h"
#include "proto/folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SAME_SECOND_MAX = 100, /* runs of one job that begin in the same second */
};

void run_dir_name(char *ret, size_t size, const char *job_name, const struct tm *tm, int suffix)
{
    char stamp[32];
    char name[MS_NAME_MAX + 1];
    size_t n = strlen(job_name) < sizeof(name) ? strlen(job_name) : sizeof(name) - 1;
    for (size_t i = 0; i < n; i++) {
        char c = job_name[i];
        name[i] = isalnum((unsigned char)c) || strchr("._-", c) != NULL ? c : '-';
    }
    name[n] = '\0';
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", tm);
    if (suffix > 1) {
        snprintf(ret, size, "./%s-%s-%d", name, stamp, suffix);
    } else {
        snprintf(ret, size, "./%s-%s", name, stamp);
    }
}

/* What a run makes beside its results, with what is in it: all of it goes. */
static const char *const litter[] = {
    "tls",
    "scheduler.sock",
};
/* The database, and whatever the store makes beside it now or some day. */
static const char database_name[] = "scheduler.db";
static const char lock_name[] = "run.lock";

enum {
    OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
    LOCK_TRIES = 100, /* runs that end just while we come */
};

/* ---- what lies there ---- */

static int is_of_database(const char *name)
{
    size_t n = strlen(database_name);
    return strncmp(name, database_name, n) == 0 &&
           (name[n] == '\0' || name[n] == '.' || name[n] == '-');
}

static int is_litter(const char *name)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(litter); i++) {
        if (strcmp(name, litter[i]) == 0) {
            return 1;
        }
    }
    return is_of_database(name);
}

struct contents {
    int has_lock;
    unsigned n_litter, n_other;
};

static int look(const struct run_dir *dir, struct contents *ret, struct ms_err *err)
{
    int fd = openat(dir->fd, ".", OPEN_DIR);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (stream == NULL) {
        int rc = ms_fail_errno(err, MS_E_IO, "cannot read the run directory %.200s", dir->shown);
        if (fd >= 0) {
            close(fd);
        }
        return rc;
    }
    memset(ret, 0, sizeof(*ret));
    const struct dirent *entry = NULL;
    while ((entry = readdir(stream)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, lock_name) == 0) {
            ret->has_lock = 1;
        } else if (is_litter(name)) {
            ret->n_litter++;
        } else if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            ret->n_other++;
        }
    }
    closedir(stream);
    return MS_OK;
}

static int is_any(const char *name)
{
    (void)name;
    return 1;
}

/* Its files of which goes() says so. */
static void empty_folder(int dir_fd, const char *name, int (*goes)(const char *name))
{
    int fd = openat(dir_fd, name, OPEN_DIR);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry = NULL;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        if (goes(entry->d_name)) {
            (void)unlinkat(fd, entry->d_name, 0); /* . and .. stay by themselves */
        }
    }
    if (stream != NULL) {
        closedir(stream);
    } else if (fd >= 0) {
        close(fd);
    }
}

static void remove_litter(const struct run_dir *dir)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(litter); i++) {
        if (unlinkat(dir->fd, litter[i], 0) != 0 && errno == EISDIR) {
            /* tls/ holds what was written, and perhaps what was being written */
            empty_folder(dir->fd, litter[i], is_any);
            (void)unlinkat(dir->fd, litter[i], AT_REMOVEDIR);
        }
    }
    empty_folder(dir->fd, ".", is_of_database);
}

/* ---- whose it is ---- */

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

static int open_dir(struct run_dir *dir, struct ms_err *err)
{
    char self[64];
    int rc = own_dir_open(dir->shown, O_NOFOLLOW, "the run directory", "keys will lie in it",
                          &dir->fd, err);
    if (rc != MS_OK) {
        return rc;
    }
    snprintf(self, sizeof(self), "/proc/self/fd/%d", dir->fd);
    ssize_t n = readlink(self, dir->path, sizeof(dir->path) - 1);
    if (n < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot find the run directory %.200s", dir->shown);
    }
    dir->path[n] = '\0';
    if (n > MS_PATH_MAX - 64) {
        return ms_fail(err, MS_E_INVALID, "the run directory's path has %zd bytes; at most %d work",
                       n, MS_PATH_MAX - 64);
    }
    snprintf(dir->tls, sizeof(dir->tls), "%s/tls", dir->path);
    return MS_OK;
}

/* ---- one run at a time ---- */

static int fail_lock(struct run_dir *dir, struct ms_err *err)
{
    int rc =
        errno == EWOULDBLOCK
            ? ms_fail(err, MS_E_EXISTS,
                      "a run is under way in %.200s (msctl -s unix:%.100s/scheduler.sock jobs): "
                      "name another directory with --run-dir",
                      dir->shown, dir->path)
            : ms_fail_errno(err, MS_E_IO, "cannot lock %.200s/%s", dir->shown, lock_name);
    close_fd(&dir->lock_fd);
    return rc;
}

/* A run that ended since we opened its lock took the name away: that lock keeps nobody out. */
static int lock_is_named(const struct run_dir *dir)
{
    return ms_name_leads_to(dir->fd, lock_name, AT_SYMLINK_NOFOLLOW, dir->lock_fd);
}

static int take_lock(struct run_dir *dir, struct ms_err *err)
{
    const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    for (int i = 0; i < LOCK_TRIES; i++) {
        dir->lock_fd = openat(dir->fd, lock_name, flags, 0600);
        if (dir->lock_fd < 0) {
            return ms_fail_errno(err, MS_E_IO, "cannot make %.200s/%s", dir->shown, lock_name);
        }
        if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) != 0) {
            return fail_lock(dir, err);
        }
        if (lock_is_named(dir)) {
            return MS_OK;
        }
        close_fd(&dir->lock_fd);
    }
    errno = EWOULDBLOCK;
    return fail_lock(dir, err);
}

static void drop_lock(struct run_dir *dir)
{
    if (dir->lock_fd >= 0) {
        (void)unlinkat(dir->fd, lock_name, 0);
        close_fd(&dir->lock_fd);
    }
}

/* What its reader wants first, where there is something to go on from. */
static int fail_used(const struct run_dir *dir, const char *what, struct ms_err *err)
{
    struct checkpoint_entries saved = {NULL, 0};
    char again[MS_PATH_MAX + 64] = "";
    if (checkpoint_search(dir->shown, &saved, NULL) == MS_OK && saved.n > 0) {
        snprintf(again, sizeof(again), "go on from its checkpoints with --resume %.100s, and ",
                 dir->shown);
    }
    checkpoint_entries_fini(&saved);
    return ms_fail(err, MS_E_EXISTS,
                   "the run directory %.100s %s: %sname another one with --run-dir or move its "
                   "files away",
                   dir->shown, what, again);
}

static int fail_not_empty(const struct run_dir *dir, struct ms_err *err)
{
    return fail_used(dir, "is not empty", err);
}

/* Ours from here on, and empty but for what may stay. Looked at twice: what is not ours gets no
 * mark, and only what is seen under the lock holds. */
static int claim(struct run_dir *dir, struct ms_err *err)
{
    struct contents before;
    struct contents found;
    int rc = look(dir, &before, err);
    if (rc == MS_OK && !before.has_lock && before.n_other + before.n_litter > 0) {
        rc = fail_not_empty(dir, err);
    }
    rc = rc == MS_OK ? take_lock(dir, err) : rc;
    if (rc != MS_OK) {
        return rc;
    }
    rc = look(dir, &found, err);
    if (rc == MS_OK && before.has_lock) {
        remove_litter(dir);
    } else if (rc == MS_OK && found.n_other + found.n_litter > 0) { /* it came since we looked */
        rc = fail_not_empty(dir, err);
    }
    if (rc == MS_OK && found.n_other > 0) {
        rc = fail_used(dir,
                       "is that of a run that was killed (its keys, socket and database were taken "
                       "away now, its logs and results stay)",
                       err);
    }
    if (rc != MS_OK) {
        drop_lock(dir);
    }
    return rc;
}

/* ---- making it ---- */

/* Where it is there already all is well, whatever mkdir(2) said. -1: errno is that of mkdir(2). */
static int make_parent(const char *path)
{
    int rc = mkdir(path, 0777);
    const int why = errno;
    rc = rc == 0 || access(path, F_OK) == 0 ? 0 : -1;
    errno = why;
    return rc;
}

/* mkdir -p of everything above path. */
static int make_parents(const char *path, struct ms_err *err)
{
    char part[MS_PATH_MAX + 1];
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (make_parent(part) != 0) {
            return ms_fail_errno(err, MS_E_IO, "cannot make the directory %.200s", part);
        }
        *slash = '/';
    }
    return MS_OK;
}

/* 0755 whatever the umask leaves: of a folder that the group may write to we would have to say no.
 */
static int make_dir(const char *path)
{
    return mkdir(path, 0755);
}

static int make_wanted(const char *wanted, struct ms_err *err)
{
    if (wanted[0] == '\0' || strlen(wanted) > MS_PATH_MAX - 64) {
        return ms_fail(err, MS_E_INVALID, "the run directory's path must have 1 to %d bytes",
                       MS_PATH_MAX - 64);
    }
    int rc = make_parents(wanted, err);
    if (rc == MS_OK && make_dir(wanted) != 0 && errno != EEXIST) {
        rc = ms_fail_errno(err, MS_E_IO, "cannot make the run directory %.200s", wanted);
    }
    return rc;
}

static int make_named(const char *job_name, char *ret, size_t size, struct ms_err *err)
{
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    for (int suffix = 1; suffix <= SAME_SECOND_MAX; suffix++) {
        run_dir_name(ret, size, job_name, &tm, suffix);
        if (make_dir(ret) == 0) {
            return MS_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return ms_fail_errno(err, MS_E_IO,
                         "cannot make the run directory %.200s (name one with --run-dir)", ret);
}

static void begin(struct run_dir *dir, const char *wanted)
{
    memset(dir, 0, sizeof(*dir));
    dir->fd = dir->lock_fd = dir->tcp_fd = dir->unix_fd = -1;
    if (wanted != NULL) {
        snprintf(dir->shown, sizeof(dir->shown), "%s", wanted);
        size_t n = strlen(dir->shown);
        while (n > 1 && dir->shown[n - 1] == '/') { /* "link/" would be followed */
            dir->shown[--n] = '\0';
        }
    }
}

/* What holds files of others will be refused under the lock, too, and in the same words. */
int run_dir_look(const char *wanted, struct ms_err *err)
{
    struct run_dir dir;
    struct contents found;
    begin(&dir, wanted);
    if (wanted == NULL || access(dir.shown, F_OK) != 0) {
        return MS_OK;
    }
    int rc = open_dir(&dir, err);
    rc = rc == MS_OK ? look(&dir, &found, err) : rc;
    if (rc == MS_OK && found.n_other > 0 && (rc = claim(&dir, err)) == MS_OK) {
        drop_lock(&dir); /* they went meanwhile */
    }
    close_fd(&dir.fd);
    return rc;
}

int run_dir_make(const char *wanted, const char *job_name, struct run_dir *ret, struct ms_err *err)
{
    begin(ret, wanted);
    int rc = wanted != NULL ? make_wanted(wanted, err)
                            : make_named(job_name, ret->shown, sizeof(ret->shown), err);
    if (rc != MS_OK) {
        return rc;
    }
    rc = open_dir(ret, err);
    if (rc == MS_OK) {
        rc = claim(ret, err);
    }
    if (rc != MS_OK) {
        close_fd(&ret->fd);
    }
    return rc;
}

/* ---- keys ---- */

static int issue(const struct ms_ca *ca, const struct run_dir *dir, enum ms_role role,
                 const char *name, struct ms_err *err)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", NULL};
    char path[MS_PATH_MAX + 64];
    struct ms_cert_request request = {role, name, hosts, MS_CERT_ANY_TIME, ""};
    snprintf(path, sizeof(path), "%s/%s.p12", dir->tls, name);
    return ms_ca_issue(ca, &request, path, NULL, err);
}

int run_dir_make_tls(struct run_dir *dir, struct ms_err *err)
{
    struct ms_ca *ca = NULL;
    char path[MS_PATH_MAX + 64];
    if (mkdir(dir->tls, 0700) != 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot make %.200s", dir->tls);
    }
    snprintf(path, sizeof(path), "%s/ca.crt", dir->tls);
    int rc = ms_ca_create("msctl run", MS_CERT_ANY_TIME, &ca, err);
    if (rc == MS_OK) {
        rc = ms_ca_export(ca, path, err);
    }
    if (rc == MS_OK) {
        rc = issue(ca, dir, MS_ROLE_SCHEDULER, "scheduler", err);
    }
    if (rc == MS_OK) {
        rc = issue(ca, dir, MS_ROLE_WORKER, "worker", err);
    }
    ms_ca_destroy(ca);
    return rc;
}

/* ---- sockets ---- */

static int listen_unix(struct run_dir *dir, struct ms_err *err)
{
    char address[MS_PATH_MAX + 64];
    char text[MS_PATH_MAX + 64];
    struct ms_addr addr;
    int dir_fd = -1;
    snprintf(text, sizeof(text), "unix:%s/scheduler.sock", dir->path);
    /* a path that is too long for an address is bound through /proc/self/fd: the file is the same
     */
    int rc = finder_short_path(text, address, sizeof(address), &dir_fd, err);
    if (rc == MS_OK) {
        rc = ms_addr_parse(address, 0, &addr, err);
    }
    if (rc == MS_OK) {
        rc = ms_addr_listen(&addr, 64, err);
    }
    if (dir_fd >= 0) {
        close(dir_fd);
    }
    if (rc >= 0) {
        dir->unix_fd = rc;
        rc = MS_OK;
    }
    return rc;
}

int run_dir_listen(struct run_dir *dir, struct ms_err *err)
{
    struct ms_addr addr;
    struct sockaddr_in in;
    socklen_t size = sizeof(in);
    memset(&addr, 0, sizeof(addr));
    snprintf(addr.host, sizeof(addr.host), "127.0.0.1"); /* port 0: the kernel chooses */
    int fd = ms_addr_listen(&addr, MS_HALF_OPEN_MAX, err);
    if (fd < 0) {
        return fd;
    }
    dir->tcp_fd = fd;
    if (getsockname(fd, (struct sockaddr *)&in, &size) != 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot ask for the port of a socket");
    }
    dir->port = ntohs(in.sin_port);
    return listen_unix(dir, err);
}

void run_dir_clean(struct run_dir *dir)
{
    close_fd(&dir->tcp_fd);
    close_fd(&dir->unix_fd);
    if (dir->fd >= 0) {
        remove_litter(dir);
        drop_lock(dir);
        close_fd(&dir->fd);
    }
}
