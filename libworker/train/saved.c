/* saved.c - what a job has saved on this host, for who may fetch it: checkpoints, the best weights
 */
#include "libworker/train/saved.h"

#include "libworker/data/allowed.h"
#include "libworker/job/job_schema.h"
#include "libworker/train/best_files.h"
#include "libworker/train/checkpoint_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    OPEN_FOLDER = O_RDONLY | O_DIRECTORY | O_CLOEXEC, /* of a place: who made it knows what it is */
    OPEN_PART = OPEN_FOLDER | O_NOFOLLOW,             /* below it, where jobs write */
};

/* ---- the folder ---- */

static int judge_directory(const struct saved_place *place, struct ms_err *err)
{
    const char *why = job_output_refuse(place->directory);
    if (why != NULL) {
        return ms_fail(err, MS_E_REFUSED, "checkpoint.directory %.160s %s", place->directory, why);
    }
    return place->directory[0] != '/' || allowed_is_open()
               ? MS_OK
               : ms_fail(err, MS_E_REFUSED,
                         "checkpoint.directory %.160s: this worker writes for others, and only "
                         "below a job's own folder: nothing of a job lies there",
                         place->directory);
}

/* One part of the path after the other, so that none of them is a link. */
static int open_below(const char *folder, const char *directory)
{
    char part[NAME_MAX + 1];
    int fd = open(folder, OPEN_FOLDER);
    const char *at = directory + strspn(directory, "/");
    while (fd >= 0 && *at != '\0') {
        const size_t n = strcspn(at, "/");
        int next = -1;
        if (n < sizeof(part)) {
            memcpy(part, at, n);
            part[n] = '\0';
            next = openat(fd, part, OPEN_PART);
        } else {
            errno = ENAMETOOLONG;
        }
        const int why = errno;
        close(fd);
        errno = why;
        fd = next;
        at += n + strspn(at + n, "/");
    }
    return fd;
}

/* A descriptor; MS_E_NOT_FOUND: there is no such folder. */
static int open_directory(const struct saved_place *place, struct ms_err *err)
{
    int rc = judge_directory(place, err);
    if (rc < 0) {
        return rc;
    }
    const int is_absolute = place->directory[0] == '/';
    const int fd = is_absolute ? open(place->directory, OPEN_FOLDER)
                               : open_below(place->folder, place->directory);
    return fd >= 0 ? fd
                   : ms_fail_errno(err, errno == ENOENT ? MS_E_NOT_FOUND : MS_E_IO,
                                   "cannot look for checkpoints in %.160s of %.160s",
                                   place->directory, place->folder);
}

static void name_folder(const struct saved_place *place, char ret[MS_PATH_MAX + 1])
{
    const int n = place->directory[0] == '/'
                      ? snprintf(ret, MS_PATH_MAX + 1, "%s", place->directory)
                      : snprintf(ret, MS_PATH_MAX + 1, "%s/%s", place->folder, place->directory);
    if (n < 0 || n > MS_PATH_MAX) {
        snprintf(ret, MS_PATH_MAX + 1, "%s", place->folder);
    }
}

/* ---- which there are ---- */

static int64_t age_of(const struct stat *st)
{
    const int64_t age = (int64_t)time(NULL) - (int64_t)st->st_mtime;
    return age > 0 ? age : 0;
}

/* The manifest at path, where it is this job's. MS_E_NOT_FOUND: it is another's. */
static int read_own(const struct saved_place *place, const char *path,
                    struct checkpoint_manifest *ret, struct ms_err *err)
{
    int rc = checkpoint_read(path, CHECKPOINT_OWN, ret, err);
    if (rc == MS_OK && strcmp(ret->tag, place->tag) != 0) {
        checkpoint_manifest_fini(ret);
        rc = ms_fail(err, MS_E_NOT_FOUND, "checkpoint %.200s is of another job", path);
    }
    return rc;
}

static int add(const struct saved_place *place, const char *path, struct saved_list *list)
{
    struct checkpoint_manifest m;
    struct stat st;
    int rc = read_own(place, path, &m, NULL);
    if (rc < 0) {
        list->n_damaged += rc == MS_E_INVALID;
        return rc == MS_E_NOMEM ? rc : MS_OK;
    }
    if (stat(path, &st) == 0 && st.st_size > 0) { /* else it went meanwhile */
        struct saved_entry *entry = &list->entries[list->n++];
        *entry = (struct saved_entry){.step = m.step,
                                      .epoch = m.epoch,
                                      .step_in_epoch = m.step_in_epoch,
                                      .loss = m.loss,
                                      .bytes = m.data_size,
                                      .manifest_bytes = (uint64_t)st.st_size,
                                      .age_s = age_of(&st)};
        memcpy(entry->sum, m.data_sum, sizeof(entry->sum));
    }
    checkpoint_manifest_fini(&m);
    return MS_OK;
}

static int look_at_all(const struct saved_place *place, int fd, struct saved_list *list,
                       struct ms_err *err)
{
    struct checkpoint_entries entries = {NULL, 0};
    char there[40];
    snprintf(there, sizeof(there), "/proc/self/fd/%d", fd);
    int rc = checkpoint_list(there, place->prefix, &entries, err);
    const size_t n = entries.n < MS_CHECKPOINTS_MAX ? entries.n : MS_CHECKPOINTS_MAX;
    list->entries = rc == MS_OK ? calloc(n + 1, sizeof(*list->entries)) : NULL;
    if (rc == MS_OK && list->entries == NULL) {
        rc = MS_E_NOMEM;
    }
    for (size_t i = 0; rc == MS_OK && i < entries.n && list->n < n; i++) {
        rc = add(place, entries.entries[i].path, list);
    }
    checkpoint_entries_fini(&entries);
    return rc != MS_E_NOMEM ? rc : ms_fail(err, rc, "no memory on the node for its checkpoints");
}

/* The best of them has no less than any other: where one has less, more is better. */
static int order_bests(const void *a, const void *b, int wants_more)
{
    const struct saved_best *x = a;
    const struct saved_best *y = b;
    return x->value != y->value ? ((x->value > y->value) == (wants_more != 0) ? -1 : 1)
                                : (x->step > y->step) - (x->step < y->step);
}

static int most_first(const void *a, const void *b)
{
    return order_bests(a, b, 1);
}

static int least_first(const void *a, const void *b)
{
    return order_bests(a, b, 0);
}

/* The job keeps none, or has none yet, or one, or several of the same training. */
static int look_at_best(const struct saved_place *place, struct saved_list *list,
                        struct ms_err *err)
{
    char path[CHECKPOINT_PATH_MAX];
    struct best_file best;
    int wants_more = 0;
    snprintf(path, sizeof(path), "%s/" TRAIN_BEST_FILE, place->folder);
    if (!best_file_read(path, &best)) {
        return MS_OK;
    }
    list->best = best.best;
    if (best_files_look(place->folder, best.training, best.best.metric, &list->bests,
                        &list->n_bests) < 0) {
        return ms_fail(err, MS_E_NOMEM, "no memory on the node for its best weights");
    }
    for (size_t i = 0; i < list->n_bests; i++) {
        wants_more |= list->bests[i].value < list->best.value;
    }
    qsort(list->bests, list->n_bests, sizeof(*list->bests), wants_more ? most_first : least_first);
    return MS_OK;
}

int saved_look(const struct saved_place *place, struct saved_list *ret, struct ms_err *err)
{
    struct saved_list list = {.entries = NULL};
    int rc = MS_OK;
    name_folder(place, list.folder);
    if (place->directory[0] != '\0') {
        const int fd = open_directory(place, err);
        rc = fd >= 0 ? look_at_all(place, fd, &list, err) : fd;
        if (fd >= 0) {
            close(fd);
        }
    }
    if (rc < 0 && rc != MS_E_NOT_FOUND) {
        saved_list_fini(&list);
        return rc;
    }
    rc = look_at_best(place, &list, err);
    if (rc < 0) {
        saved_list_fini(&list);
        return rc;
    }
    *ret = list;
    return MS_OK;
}

/* ---- one of them ---- */

static int open_regular(int folder_fd, const char *name, struct ms_err *err)
{
    struct stat st;
    const int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return ms_fail_errno(err, errno == ENOENT ? MS_E_NOT_FOUND : MS_E_IO,
                             "cannot open %.160s on the node", name);
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return ms_fail(err, MS_E_REFUSED, "%.160s on the node is no regular file", name);
    }
    return fd;
}

static int open_of(const struct saved_place *place, int folder_fd, uint64_t step, int is_manifest,
                   struct ms_err *err)
{
    char name[CHECKPOINT_NAME_MAX];
    char path[CHECKPOINT_PATH_MAX];
    struct checkpoint_manifest m;
    snprintf(name, sizeof(name), "%s-%" PRIu64 ".json", place->prefix, step);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", folder_fd, name);
    int rc = read_own(place, path, &m, err);
    if (rc < 0) {
        return rc;
    }
    const int fd = open_regular(folder_fd, is_manifest ? name : m.data, err);
    checkpoint_manifest_fini(&m);
    return fd;
}

int saved_open(const struct saved_place *place, uint64_t step, int is_manifest, struct ms_err *err)
{
    struct ms_err why = {0, ""};
    if (place->directory[0] == '\0' || place->prefix[0] == '\0' ||
        strchr(place->prefix, '/') != NULL || step == 0) {
        return ms_fail(err, MS_E_INVALID, "a checkpoint is asked for without its name");
    }
    const int folder_fd = open_directory(place, err);
    if (folder_fd < 0) {
        return folder_fd;
    }
    const int fd = open_of(place, folder_fd, step, is_manifest, &why);
    close(folder_fd);
    return fd >= 0 ? fd
                   : ms_fail(err, fd == MS_E_INVALID ? MS_E_NOT_FOUND : fd,
                             "the checkpoint of step %" PRIu64 " is not there any more: %.200s",
                             step, why.text);
}

int saved_open_best(const struct saved_place *place, uint64_t step, struct ms_err *err)
{
    char name[BEST_NAME_MAX];
    const int folder_fd = open(place->folder, OPEN_FOLDER);
    if (folder_fd < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot look into %.200s", place->folder);
    }
    const int fd =
        open_regular(folder_fd, step > 0 ? best_file_name(step, name) : TRAIN_BEST_FILE, err);
    close(folder_fd);
    return fd;
}
