/* checkpoint_claim.c - the checkpoints of one prefix in a folder are one training's */
#include "libworker/train/checkpoint_claim.h"

#include "libworker/train/checkpoint_folder.h"
#include "proto/folder.h"

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
    LOCK_TRIES = 100, /* writers that end just while we come */
    WORDS_MAX = 512,
};

#define WAYS_OUT "write another checkpoint.prefix or checkpoint.directory"

/* ---- whose a checkpoint is ---- */

int checkpoint_claim_owns(const struct checkpoint_claim *claim,
                          const struct checkpoint_manifest *manifest)
{
    const struct checkpoint_manifest *who = claim->who;
    const char *theirs = checkpoint_manifest_first_tag(manifest);
    return strcmp(theirs, checkpoint_manifest_first_tag(who)) == 0 &&
           (theirs[0] != '\0' ||
            (strcmp(manifest->job, who->job) == 0 && strcmp(manifest->name, who->name) == 0));
}

static int fail_other(const struct checkpoint_claim *claim, const struct checkpoint_manifest *m,
                      struct ms_err *err)
{
    const int is_alike = strcmp(m->job, claim->who->job) == 0;
    const int is_namesake = strcmp(m->name, claim->who->name) == 0;
    return ms_fail(err, MS_E_REFUSED,
                   "checkpoint.directory %.120s: %s-%" PRIu64
                   ".json there is a checkpoint of %sjob %s; " WAYS_OUT "%s",
                   claim->folder, claim->prefix, m->step, is_namesake ? "another run of " : "",
                   m->name, is_alike ? ", or go on from it (msctl run --resume; key resume)" : "");
}

int checkpoint_claim_check(const struct checkpoint_claim *claim, const char *path,
                           struct ms_err *err)
{
    struct checkpoint_manifest m;
    struct ms_err why = {0, ""};
    int rc = checkpoint_read(path, CHECKPOINT_OWN, &m, &why);
    if (rc == MS_E_UNSUPPORTED) {
        return ms_fail(err, MS_E_REFUSED, "checkpoint.directory: %.250s; " WAYS_OUT, why.text);
    }
    if (rc < 0) {
        return rc == MS_E_INVALID ? 0 /* none, or damaged: of no use to anybody */
                                  : ms_fail(err, rc, "%s", why.text);
    }
    rc = checkpoint_claim_owns(claim, &m) ? 0 : fail_other(claim, &m, err);
    checkpoint_manifest_fini(&m);
    return rc;
}

/* What cannot be read is nobody's. */
static int check_folder(struct checkpoint_claim *claim, struct ms_err *err)
{
    struct checkpoint_entries entries;
    int rc = checkpoint_list(claim->folder, claim->prefix, &entries, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; rc != MS_E_REFUSED && i < entries.n; i++) {
        rc = checkpoint_claim_check(claim, entries.entries[i].path, err);
    }
    checkpoint_entries_fini(&entries);
    claim->is_alone = rc != MS_E_REFUSED;
    return claim->is_alone ? 0 : rc;
}

/* ---- the lock ---- */

struct holder {
    char tag[MS_JOB_TAG_LEN + 1];
    char host[MS_HOST_MAX + 1], name[MS_NAME_MAX + 1];
    long pid;
};

static const char *name_lock(const struct checkpoint_claim *claim, char ret[CHECKPOINT_PATH_MAX])
{
    snprintf(ret, CHECKPOINT_PATH_MAX, "%s/" CHECKPOINT_LOCK_PREFIX "%s", claim->folder,
             claim->prefix);
    return ret;
}

/* For whoever finds it locked. */
static void sign_lock(const struct checkpoint_claim *claim)
{
    char text[WORDS_MAX];
    char host[MS_HOST_MAX + 1] = "";
    (void)gethostname(host, sizeof(host) - 1);
    const int n = snprintf(text, sizeof(text), "%s %ld %s %s\n",
                           claim->who->tag[0] != '\0' ? claim->who->tag : "-", (long)getpid(),
                           host[0] != '\0' ? host : "-", claim->who->name);
    if (ftruncate(claim->lock_fd, 0) != 0 || pwrite(claim->lock_fd, text, (size_t)n, 0) != n) {
        return; /* a full disk: it is locked all the same */
    }
}

static int take_word(char **at, char *ret, size_t size)
{
    const size_t n = strcspn(*at, " \n");
    if (n == 0 || n >= size) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) { /* it may be anybody's file */
        ret[i] = (*at)[i] > ' ' && (*at)[i] <= '~' ? (*at)[i] : '?';
    }
    ret[n] = '\0';
    *at += n + ((*at)[n] != '\0');
    return 1;
}

/* 0: it is not known yet, or ever. */
static int read_holder(int fd, struct holder *ret)
{
    char text[WORDS_MAX];
    char pid[16];
    char *at = text;
    const ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    const int is_whole = take_word(&at, ret->tag, sizeof(ret->tag)) &&
                         take_word(&at, pid, sizeof(pid)) &&
                         take_word(&at, ret->host, sizeof(ret->host)) &&
                         take_word(&at, ret->name, sizeof(ret->name));
    ret->pid = is_whole ? strtol(pid, NULL, 10) : 0;
    return is_whole;
}

/* An older process of the same job hangs, or is not gone yet: its generation is over. */
static int judge_holder(const struct checkpoint_claim *claim, int fd, struct ms_err *err)
{
    struct holder holder;
    if (!read_holder(fd, &holder)) {
        return ms_fail(err, MS_E_REFUSED,
                       "checkpoint.directory %.200s: another process writes checkpoints %s-* "
                       "there; " WAYS_OUT,
                       claim->folder, claim->prefix);
    }
    if (claim->who->tag[0] != '\0' && strcmp(holder.tag, claim->who->tag) == 0) {
        return 0;
    }
    return ms_fail(err, MS_E_REFUSED,
                   "checkpoint.directory %.140s: process %ld on %.64s (job %s) writes checkpoints "
                   "%s-* there now; " WAYS_OUT,
                   claim->folder, holder.pid, holder.host, holder.name, claim->prefix);
}

/* A writer that ended since we opened its lock took the name away: that lock keeps nobody out. */
static int is_named(const struct checkpoint_claim *claim, int fd)
{
    char path[CHECKPOINT_PATH_MAX];
    return ms_name_leads_to(AT_FDCWD, name_lock(claim, path), AT_SYMLINK_NOFOLLOW, fd);
}

static int open_lock(const struct checkpoint_claim *claim)
{
    const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    char path[CHECKPOINT_PATH_MAX];
    int fd = open(name_lock(claim, path), O_RDWR | O_CREAT | flags, 0644);
    return fd < 0 && errno == EACCES ? open(path, O_RDONLY | flags) : fd; /* another user's */
}

/* The folder may have been taken away with it, and be somebody's by now. */
static void drop_lost_lock(struct checkpoint_claim *claim)
{
    if (claim->lock_fd >= 0 && !is_named(claim, claim->lock_fd)) {
        close(claim->lock_fd);
        claim->lock_fd = -1;
        claim->is_alone = 0;
    }
}

static int take_lock(struct checkpoint_claim *claim, struct ms_err *err)
{
    drop_lost_lock(claim);
    for (int i = 0; claim->lock_fd < 0 && i < LOCK_TRIES; i++) {
        int fd = open_lock(claim);
        if (fd < 0 && (errno == EISDIR || errno == ELOOP || errno == ENXIO)) {
            char path[CHECKPOINT_PATH_MAX];
            return ms_fail(
                err, MS_E_REFUSED,
                "%.200s is no file, and would be the lock of who writes checkpoints there: take it "
                "away, or " WAYS_OUT,
                name_lock(claim, path));
        }
        if (fd < 0) {
            return 0; /* a disk that is full, or read-only: the write says so */
        }
        const int is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (!is_locked) {
            int rc = errno == EWOULDBLOCK ? judge_holder(claim, fd, err) : 0;
            close(fd);
            return rc;
        }
        if (is_named(claim, fd)) {
            claim->lock_fd = fd;
            sign_lock(claim);
        } else {
            close(fd);
        }
    }
    return 0;
}

/* ---- its life ---- */

void checkpoint_claim_init(struct checkpoint_claim *claim, const char *folder, const char *prefix,
                           const struct checkpoint_manifest *who)
{
    *claim = (struct checkpoint_claim){folder, prefix, who, -1, 0};
}

void checkpoint_claim_fini(struct checkpoint_claim *claim)
{
    char path[CHECKPOINT_PATH_MAX];
    if (claim->who == NULL || claim->lock_fd < 0) {
        return;
    }
    if (is_named(claim, claim->lock_fd)) {
        (void)unlink(name_lock(claim, path));
    }
    close(claim->lock_fd);
    claim->lock_fd = -1;
}

/* The lock first: what lies there then is all that comes without us. */
int checkpoint_claim_take(struct checkpoint_claim *claim, struct ms_err *err)
{
    int rc = take_lock(claim, err);
    return rc < 0 || claim->is_alone ? rc : check_folder(claim, err);
}
