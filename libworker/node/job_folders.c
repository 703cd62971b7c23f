/* job_folders.c - the folders of a standing node's jobs: held, and taken away in time */
#include "libworker/node/job_folders.h"

#include "libworker/node/job_tag.h"
#include "libworker/train/checkpoint_folder.h"
#include "proto/denied.h"
#include "proto/folder.h"
#include "proto/grow.h"
#include "proto/limits.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DAY_S = 86400,
    HOLD_TRIES = 100,
    ASIDE_MAX = 100,       /* databases that gave the same number */
    ROW_GAP_S = 2 * DAY_S, /* looks are a day apart; more: we were away, or the clock has jumped */
    ROW_MIN_S = 20 * 3600, /* of looks in a row, until the clock is believed */
    OPEN = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
};

struct folder {
    uint64_t job;
    unsigned aside;    /* 0: the folder of the number, n: "NUMBER.n" */
    int64_t written_s; /* the newest of it */
};

static int fail_writing(const char *jobs_dir, struct ms_err *err)
{
    if (errno == ENOTDIR) {
        return ms_fail_errno(err, MS_E_CONFIG,
                             "jobs_dir %.160s is no folder: name one, or move away what lies there",
                             jobs_dir);
    }
    int rc = ms_fail_errno(err, MS_E_CONFIG,
                           errno == EROFS
                               ? "jobs_dir %.160s cannot be written; a service may write where its "
                                 "unit says: systemctl edit msworker@.service, [Service] "
                                 "ReadWritePaths=DIR"
                               : "jobs_dir %.160s cannot be written",
                           jobs_dir);
    return ms_denied(jobs_dir, W_OK | X_OK, rc, err);
}

static int fail_making(const char *jobs_dir, struct ms_err *err)
{
    struct stat st;
    if (errno == ENOTDIR || (errno == EACCES && stat(jobs_dir, &st) != 0 && errno == EACCES)) {
        return fail_writing(jobs_dir, err); /* it may be there, and we are kept from it */
    }
    char us[MS_NAME_MAX + 1];
    const char *dir = strlen(jobs_dir) <= 100 ? jobs_dir : "DIR"; /* half a command is none */
    int why = errno;
    ms_denied_name(geteuid(), us, sizeof(us));
    errno = why;
    return ms_fail_errno(err, MS_E_CONFIG,
                         "jobs_dir %.160s cannot be made (by hand: sudo install -d -m 700 -o %s "
                         "%s; in a service also ReadWritePaths=DIR)",
                         jobs_dir, us, dir);
}

/* A full disk takes folders while it takes no byte. */
static int write_probe(int dir, const char *probe)
{
    static const char bytes[4096] = "may we write here?";
    int fd = openat(dir, probe, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) { /* the descriptor is enough: a kill while the disk is slow leaves no name */
        (void)unlinkat(dir, probe, 0);
    }
    int rc = fd >= 0 && write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes) && fsync(fd) == 0
                 ? 0
                 : -1;
    int saved = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = saved;
    return rc;
}

static int fail_full(const char *jobs_dir, struct ms_err *err)
{
    return ms_fail_errno(err, MS_E_FULL,
                         "no job could write below jobs_dir %s: free space there, then this worker "
                         "can start",
                         jobs_dir);
}

/* Why, by errno: what may pass, and what the operator has to mend. */
static int fail_trying(const char *jobs_dir, int (*otherwise)(const char *, struct ms_err *),
                       struct ms_err *err)
{
    if (errno == ENOSPC || errno == EDQUOT) {
        return fail_full(jobs_dir, err);
    }
    return errno == EIO || errno == ESTALE || errno == ETIMEDOUT
               ? ms_fail_errno(err, MS_E_IO, "jobs_dir %.160s", jobs_dir)
               : otherwise(jobs_dir, err);
}

int job_folders_try(const char *jobs_dir, struct ms_err *err)
{
    char probe[48];
    uint64_t lot = 0; /* in containers many have one pid */
    if (getrandom(&lot, sizeof(lot), 0) != (ssize_t)sizeof(lot)) {
        lot = (uint64_t)getpid();
    }
    snprintf(probe, sizeof(probe), ".try-%016" PRIx64, lot);
    if (mkdir(jobs_dir, 0700) != 0 && errno != EEXIST) {
        return fail_trying(jobs_dir, fail_making, err);
    }
    int fd = open(jobs_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int can_make = fd >= 0 && mkdirat(fd, probe, 0700) == 0;
    if (can_make) {
        (void)unlinkat(fd, probe, AT_REMOVEDIR);
    }
    int can_write = can_make && write_probe(fd, probe) == 0;
    int saved = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = saved;
    return can_write ? MS_OK : fail_trying(jobs_dir, fail_writing, err);
}

int job_folders_judge(const char *jobs_dir, struct ms_err *err)
{
    char above[MS_PATH_MAX + 1];
    if (ms_folder_try(jobs_dir) == 0) {
        return MS_OK;
    }
    if (errno != ENOENT) {
        return fail_writing(jobs_dir, err);
    }
    return ms_folder_try(ms_folder_of(jobs_dir, above, sizeof(above))) == 0
               ? MS_OK
               : fail_making(jobs_dir, err);
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

/* ---- whose it is --------------------------------------------------------------------------------
 */

/* Alone, for a rank in it would go on writing there. */
static int put_aside(int folder_fd, const char *path, char *aside, struct ms_err *err)
{
    char name[MS_PATH_MAX + 16];
    struct stat st;
    if (flock(folder_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return ms_fail(err, MS_E_EXISTS,
                       "a rank of another job of this number is in the run directory %s: does a "
                       "worker of another cluster share this folder of jobs?",
                       path);
    }
    for (int i = 1; i <= ASIDE_MAX; i++) {
        snprintf(name, sizeof(name), "%s.%d", path, i);
        if (lstat(name, &st) == 0) {
            continue;
        }
        if (rename(path, name) != 0) {
            return ms_fail_errno(err, MS_E_IO, "cannot put the run directory %s aside", path);
        }
        snprintf(aside, sizeof(name), "%s", name);
        return 0;
    }
    return ms_fail(err, MS_E_EXISTS, "%s.1 to .%d are there already: take them away", path,
                   ASIDE_MAX);
}

/* *ret_gone: it was another's, and is aside now. */
static int claim(int folder_fd, const char *path, const char *tag, char *aside, int *ret_gone,
                 struct ms_err *err)
{
    enum job_tag_owner owner = JOB_TAG_OURS;
    int rc = tag[0] != '\0' ? job_tag_whose(folder_fd, path, tag, &owner, err) : 0;
    if (rc == 0 && owner == JOB_TAG_ANOTHERS) {
        rc = put_aside(folder_fd, path, aside, err);
        *ret_gone = rc == 0;
    } else if (rc == 0 && owner == JOB_TAG_NOBODYS) {
        rc = job_tag_write(folder_fd, path, tag, err);
    }
    return rc;
}

int job_folder_is_of(const char *path, const char *tag)
{
    int fd = tag[0] != '\0' ? open(path, OPEN) : -1;
    int is_anothers = fd >= 0 && job_tag_is_anothers(fd, tag);
    if (fd >= 0) {
        close(fd);
    }
    return !is_anothers;
}

/* ---- holding ------------------------------------------------------------------------------------
 */

/* Of several workers of a host only one at a time looks whose a folder is. A file system without
 * locks: as before. */
static int lock_parent(const char *path)
{
    int fd = ms_folder_open(path);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR) {
    }
    return fd;
}

/* One try; *ret_gone: somebody cleaned it away between two of our steps, or it is aside. */
static int hold(const char *path, const char *tag, char *aside, int *ret_gone, struct ms_err *err)
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
    if (!ms_name_leads_to(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, fd)) {
        close(fd);
        *ret_gone = 1;
        return ms_fail(err, MS_E_IO, "the run directory %s is taken away again and again", path);
    }
    int rc = claim(fd, path, tag, aside, ret_gone, err);
    if (rc < 0 || *ret_gone) {
        close(fd);
        return rc;
    }
    return fd;
}

int job_folder_hold(const char *path, const char *tag, char *aside, struct ms_err *err)
{
    int rc = MS_E_IO;
    int gone = 1;
    int parent = tag[0] != '\0' ? lock_parent(path) : -1;
    for (int i = 0; gone && i < HOLD_TRIES; i++) { /* a new one is young, and stays */
        rc = hold(path, tag, aside, &gone, err);
    }
    if (parent >= 0) {
        close(parent);
    }
    return gone && rc >= 0
               ? ms_fail(err, MS_E_IO, "the run directory %s changes again and again", path)
               : rc;
}

/* ---- what is there ---- */

/* A number as we write it: no sign, no zero in front. */
static int parse_number(const char *text, char **ret_end, uint64_t *ret)
{
    if (!isdigit((unsigned char)text[0]) || text[0] == '0') {
        return 0;
    }
    errno = 0;
    *ret = strtoull(text, ret_end, 10);
    return errno == 0;
}

/* 1 for "17" and "17.1", not for "017" or "17.bak". */
static int parse_name(const char *name, struct folder *ret)
{
    char *end = NULL;
    uint64_t aside = 0;
    if (!parse_number(name, &end, &ret->job)) {
        return 0;
    }
    if (*end == '.' && (!parse_number(end + 1, &end, &aside) || aside > ASIDE_MAX)) {
        return 0;
    }
    ret->aside = (unsigned)aside;
    return *end == '\0';
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
    struct folder folder = {0, 0, 0};
    struct stat st;
    if (!parse_name(name, &folder) || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(st.st_mode)) {
        return;
    }
    struct folder *grown =
        (struct folder *)ms_grow(found->folders, found->n, 1, sizeof(*grown), &found->room);
    if (grown == NULL) {
        return; /* the next time */
    }
    found->folders = grown;
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

struct sweep { /* of checkpoints, out of a folder in a job's */
    int deep;  /* folders that may be below */
    int n;     /* that went */
};

/* A folder that held nothing else goes with them. */
static void remove_checkpoint(int dir_fd, const char *name, void *arg)
{
    struct sweep *above = (struct sweep *)arg;
    struct sweep sweep = {above->deep - 1, 0};
    if (checkpoint_names(name)) {
        above->n += unlinkat(dir_fd, name, 0) == 0;
        return;
    }
    int fd = above->deep > 0 ? openat(dir_fd, name, OPEN) : -1;
    if (fd >= 0) {
        each(fd, remove_checkpoint, &sweep);
        close(fd);
        above->n += sweep.n > 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) == 0;
    }
}

static void remove_file(int dir_fd, const char *name, void *arg)
{
    enum { FOLDERS_DEEP = 16 };
    struct sweep sweep = {FOLDERS_DEEP, 0};
    (void)arg;
    if (unlinkat(dir_fd, name, 0) != 0 && errno == EISDIR) {
        remove_checkpoint(dir_fd, name, &sweep); /* any other folder stays, and with it the whole */
    }
}

/* 1 gone, 0 in use, below 0 something in it stays. */
static int remove_folder(int jobs_fd, const struct folder *folder)
{
    char name[48];
    int n = snprintf(name, sizeof(name), "%" PRIu64, folder->job);
    if (folder->aside > 0) {
        snprintf(name + n, sizeof(name) - (size_t)n, ".%u", folder->aside);
    }
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

/* A host's clock may be wrong by years until something sets it, and one look would take all results
 * away. So nothing goes by its age unless the looks of a day, which .looked remembers for all
 * workers of the folder, were of one clock that did not jump. */
static int is_clock_trusted(int jobs_fd, int64_t now_s)
{
    char text[64] = "";
    int64_t begin_s = 0;
    int64_t last_s = 0;
    int fd = openat(jobs_fd, ".looked", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    ssize_t have = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
    int in_row = have > 0 && sscanf(text, "%" SCNd64 " %" SCNd64, &begin_s, &last_s) == 2 &&
                 begin_s <= last_s && last_s <= now_s && now_s - last_s <= ROW_GAP_S;
    begin_s = in_row ? begin_s : now_s;
    int n = snprintf(text, sizeof(text), "%020" PRId64 " %020" PRId64 "\n", begin_s, now_s);
    int noted = have >= 0 && pwrite(fd, text, (size_t)n, 0) == n; /* of one length: never torn */
    if (fd >= 0) {
        close(fd);
    }
    return noted && now_s - begin_s >= ROW_MIN_S;
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
    int trusted = is_clock_trusted(fd, now_s);
    int told = 0;
    for (size_t i = 0; i < found.n; i++) {
        const struct folder *folder = &found.folders[i];
        int old = rule->days > 0 && now_s - folder->written_s > rule->days * DAY_S;
        if (old && !trusted && !told && on_gone != NULL) {
            on_gone(arg, folder->job,
                    "older than job_keep_days if the clock is right: stays until tomorrow");
            told = 1;
        }
        old = old && trusted;
        int many = rule->count > 0 && i >= (size_t)rule->count;
        int gone = old || many ? remove_folder(fd, folder) : 0;
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
