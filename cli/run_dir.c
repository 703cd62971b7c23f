/* run_dir.c - the directory of one `msctl run`: logs and results stay, sockets and keys do not */
#include "cli/run_dir.h"

#include "cli/finder.h"
#include "proto/addr.h"
#include "proto/cert.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SAME_SECOND_MAX = 100, /* runs of one job that begin in the same second */
    LIFE_DAYS = 400,       /* of the certificates: longer than any run */
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

/* 1 where it holds nothing. */
static int is_empty(const char *path, struct ms_err *err)
{
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return ms_fail_errno(err, MS_E_IO, "cannot read the run directory %.200s", path);
    }
    int n = 0;
    while (n < 3 && readdir(dir) != NULL) { /* . and .. */
        n++;
    }
    closedir(dir);
    return n < 3;
}

/* mkdir -p of everything above path. */
static int make_parents(const char *path, struct ms_err *err)
{
    char part[MS_PATH_MAX + 1];
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0777) != 0 && access(part, F_OK) != 0) {
            return ms_fail_errno(err, MS_E_IO, "cannot make the directory %.200s", part);
        }
        *slash = '/';
    }
    return MS_OK;
}

static int use_wanted(const char *wanted, struct ms_err *err)
{
    if (wanted[0] == '\0' || strlen(wanted) > MS_PATH_MAX - 64) {
        return ms_fail(err, MS_E_INVALID, "the run directory's path must have 1 to %d bytes",
                       MS_PATH_MAX - 64);
    }
    int rc = make_parents(wanted, err);
    if (rc != MS_OK) {
        return rc;
    }
    if (mkdir(wanted, 0777) == 0) {
        return MS_OK;
    }
    if (errno != EEXIST) {
        return ms_fail_errno(err, MS_E_IO, "cannot make the run directory %.200s", wanted);
    }
    int empty = is_empty(wanted, err);
    if (empty < 0) {
        return empty;
    }
    return empty ? MS_OK
                 : ms_fail(err, MS_E_EXISTS,
                           "the run directory %.200s is not empty: name another one with --run-dir "
                           "or move its files away",
                           wanted);
}

static int make_named(const char *job_name, char *ret, size_t size, struct ms_err *err)
{
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    for (int suffix = 1; suffix <= SAME_SECOND_MAX; suffix++) {
        run_dir_name(ret, size, job_name, &tm, suffix);
        if (mkdir(ret, 0777) == 0) {
            return MS_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return ms_fail_errno(err, MS_E_IO,
                         "cannot make the run directory %.200s (name one with --run-dir)", ret);
}

int run_dir_make(const char *wanted, const char *job_name, struct run_dir *ret, struct ms_err *err)
{
    char real[PATH_MAX];
    memset(ret, 0, sizeof(*ret));
    ret->tcp_fd = ret->unix_fd = -1;
    int rc = wanted != NULL ? use_wanted(wanted, err)
                            : make_named(job_name, ret->shown, sizeof(ret->shown), err);
    if (rc != MS_OK) {
        return rc;
    }
    if (wanted != NULL) {
        snprintf(ret->shown, sizeof(ret->shown), "%s", wanted);
    }
    if (realpath(ret->shown, real) == NULL) {
        return ms_fail_errno(err, MS_E_IO, "cannot find the run directory %.200s", ret->shown);
    }
    if (strlen(real) > MS_PATH_MAX - 64) {
        return ms_fail(err, MS_E_INVALID, "the run directory's path has %zu bytes; at most %d work",
                       strlen(real), MS_PATH_MAX - 64);
    }
    snprintf(ret->path, sizeof(ret->path), "%s", real);
    snprintf(ret->tls, sizeof(ret->tls), "%s/tls", real);
    return MS_OK;
}

/* ---- keys ---- */

static int issue(const struct ms_ca *ca, const struct run_dir *dir, enum ms_role role,
                 const char *name, struct ms_err *err)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", NULL};
    char path[MS_PATH_MAX + 64];
    struct ms_cert_request request = {role, name, hosts, LIFE_DAYS, ""};
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
    int rc = ms_ca_create("msctl run", LIFE_DAYS, &ca, err);
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
    static const char *const files[] = {
        "tls/ca.crt",        "tls/scheduler.p12",    "tls/worker.p12",   "tls",
        "scheduler.sock",    "scheduler.db",         "scheduler.db-wal", "scheduler.db-shm",
        "scheduler.db.lock", "scheduler.db.reserve",
    };
    int *const fds[] = {&dir->tcp_fd, &dir->unix_fd};
    for (size_t i = 0; i < MS_ARRAY_SIZE(fds); i++) {
        if (*fds[i] >= 0) {
            close(*fds[i]);
            *fds[i] = -1;
        }
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(files); i++) {
        char path[MS_PATH_MAX + 64];
        snprintf(path, sizeof(path), "%s/%s", dir->path, files[i]);
        (void)remove(path); /* some of them were never made */
    }
}
