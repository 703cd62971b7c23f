/* job_folders.c - the folders of a standing node's jobs: held, and taken away in time */
#include "libworker/train/job_folders.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DAY_S = 86400,
    HOLD_TRIES = 100,
    OPEN = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
};

struct folder {
    uint64_t job;
    int64_t written_s; /* the newest of it */
};

/* Is it still the folder of that name? A lock on one that was taken away holds nothing. */
static int is_named(int fd, const char *path)
{
    struct stat held;
    struct stat named;
    return fstat(fd, &held) == 0 && lstat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

/* One try; *ret_gone: somebody cleaned it away between two of our steps. */
static int hold(const char *path, int *ret_gone, struct ms_err *err)
{
    *ret_gone = 0;
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return ms_fail_errno(err, MS_E_IO, "cannot make the run directory %s", path);
    }
    int fd = open(path, OPEN);
    if (fd < 0) {
        *ret_gone = errno == ENOENT;
        return ms_fail_errno(err, MS_E_IO, "cannot open the run directory %s", path);
    }
    while (flock(fd, LOCK_SH) != 0 && errno == EINTR) { /* who cleans is through in a moment */
    }                                                   /* a file system without locks: as before */
    if (!is_named(fd, path)) {
        close(fd);
        *ret_gone = 1;
        return ms_fail(err, MS_E_IO, "the run directory %s is taken away again and again", path);
    }
    return fd;
}

int job_folder_hold(const char *path, struct ms_err *err)
{
    int rc = MS_E_IO;
    int gone = 1;
    for (int i = 0; gone && i < HOLD_TRIES; i++) { /* a new one is young, and stays */
        rc = hold(path, &gone, err);
    }
    return rc;
}

/* ---- what is there ---- */

/* 1 for "17", not for "017" or "17.bak". */
static int parse_name(const char *name, uint64_t *ret)
{
    char *end = NULL;
    if (!isdigit((unsigned char)name[0]) || name[0] == '0') {
        return 0;
    }
    errno = 0;
    *ret = strtoull(name, &end, 10);
    return errno == 0 && *end == '\0';
}

/* Calls visit for each entry but . and .. of an open folder. */
static void each(int dir_fd, void (*visit)(int dir_fd, const char *name, void *arg), void *arg)
{
    int fd = openat(dir_fd, ".", OPEN); /* a position of its own */
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    const struct dirent *entry = NULL;
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            visit(dir_fd, entry->d_name, arg);
        }
    }
    closedir(dir);
}

static void look_at_file(int dir_fd, const char *name, void *arg)
{
    struct folder *folder = (struct folder *)arg;
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtime > folder->written_s) {
        folder->written_s = st.st_mtime;
    }
}

struct found {
    struct folder *folders;
    size_t n, room;
};

static void look_at_folder(int dir_fd, const char *name, void *arg)
{
    struct found *found = (struct found *)arg;
    struct folder folder = {0, 0};
    struct stat st;
    if (!parse_name(name, &folder.job) || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(st.st_mode)) {
        return;
    }
    if (found->n == found->room) {
        size_t room = found->room == 0 ? 64 : found->room * 2;
        struct folder *grown = (struct folder *)realloc(found->folders, room * sizeof(*grown));
        if (grown == NULL) {
            return; /* the next time */
        }
        found->folders = grown;
        found->room = room;
    }
    folder.written_s = st.st_mtime;
    int fd = openat(dir_fd, name, OPEN);
    if (fd >= 0) {
        each(fd, look_at_file, &folder);
        close(fd);
    }
    found->folders[found->n++] = folder;
}

static int newest_first(const void *a, const void *b)
{
    const struct folder *x = (const struct folder *)a;
    const struct folder *y = (const struct folder *)b;
    int order = (y->written_s > x->written_s) - (y->written_s < x->written_s);
    return order != 0 ? order : (y->job > x->job) - (y->job < x->job);
}

/* ---- what goes ---- */

static void remove_file(int dir_fd, const char *name, void *arg)
{
    (void)arg;
    (void)unlinkat(dir_fd, name, 0); /* a folder in it stays, and with it the whole */
}

/* 1 gone, 0 in use, below 0 something in it stays. */
static int remove_folder(int jobs_fd, uint64_t job)
{
    char name[24];
    snprintf(name, sizeof(name), "%" PRIu64, job);
    int fd = openat(jobs_fd, name, OPEN);
    if (fd < 0) {
        return errno == ENOENT ? 0 : -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return 0;
    }
    each(fd, remove_file, NULL);
    int rc = unlinkat(jobs_fd, name, AT_REMOVEDIR);
    int gone = rc == 0 || errno == ENOENT;
    close(fd);
    return gone ? 1 : -1;
}

void job_folders_clean(const char *jobs_dir, const struct job_folders_rule *rule, int64_t now_s,
                       void (*on_gone)(void *arg, uint64_t job, const char *text), void *arg)
{
    struct found found = {NULL, 0, 0};
    int fd = open(jobs_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return; /* there is none yet */
    }
    each(fd, look_at_folder, &found);
    if (found.n > 0) {
        qsort(found.folders, found.n, sizeof(*found.folders), newest_first);
    }
    for (size_t i = 0; i < found.n; i++) {
        const struct folder *folder = &found.folders[i];
        int old = rule->days > 0 && now_s - folder->written_s > rule->days * DAY_S;
        int many = rule->count > 0 && i >= (size_t)rule->count;
        int gone = old || many ? remove_folder(fd, folder->job) : 0;
        if (gone != 0 && on_gone != NULL) {
            on_gone(arg, folder->job,
                    gone < 0 ? "something in it cannot be taken away"
                    : old    ? "older than job_keep_days"
                             : "more than job_keep_count");
        }
    }
    free(found.folders);
    close(fd);
}
