/* checkpoint_save.c - one checkpoint onto the disk */
#include "libworker/train/checkpoint_save.h"

#include "libworker/train/checkpoint_folder.h"
#include "libworker/train/checkpoint_keep.h"
#include "proto/file_write.h"
#include "proto/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the folder ---- */

/* One more, whose name survives a power cut as what will lie in it does: where it may not, it goes
 * again, for who tries the next time syncs what he makes. Who may make it in a folder that he may
 * not read cannot sync that. */
static int make_one(const char *path)
{
    if (mkdir(path, 0755) == 0) {
        if (ms_folder_sync(path, NULL) == 0 || errno == EACCES) {
            return 0;
        }
        const int failed = errno;
        (void)rmdir(path);
        errno = failed;
        return -1;
    }
    const int why = errno; /* access(2) would say that it is not there, not why */
    const int is_there = why == EEXIST || access(path, F_OK) == 0;
    errno = why;
    return is_there ? 0 : -1;
}

/* mkdir -p. */
static int make_folder(const char *folder)
{
    char path[MS_PATH_MAX + 1];
    snprintf(path, sizeof(path), "%s", folder);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (make_one(path) != 0) {
            return -1;
        }
        *slash = '/';
    }
    return make_one(path);
}

/* What may pass is no reason not to train. */
static int may_pass(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EIO || error == ESTALE ||
           error == ETIMEDOUT || error == EMFILE || error == ENFILE || error == ENOMEM;
}

int checkpoint_save_make_folder(const struct checkpoint_save *save, struct ms_err *err)
{
    const char *folder = save->cfg->folder;
    struct stat st;
    if (make_folder(folder) == 0 && stat(folder, &st) == 0) {
        errno = S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
        if (errno == 0 && faccessat(AT_FDCWD, folder, R_OK | W_OK | X_OK, AT_EACCESS) == 0) {
            return 0;
        }
    }
    return may_pass(errno) ? 0
                           : ms_fail_errno(err, MS_E_IO,
                                           "checkpoints cannot be written to %.200s "
                                           "(checkpoint.directory)",
                                           folder);
}

/* ---- what is there ---- */

void checkpoint_save_tidy(const struct checkpoint_save *save, uint64_t step)
{
    checkpoint_keep_tidy(save, step, 0);
}

int checkpoint_save_has(const struct checkpoint_save *save, uint64_t step)
{
    return checkpoint_keep_has(save, step, LOOK_AT_SIZE);
}

/* ---- writing ---- */

void checkpoint_save_descend(struct checkpoint_save *save, const char *first_tag)
{
    struct checkpoint_manifest *m = &save->manifest;
    const int is_began_here = first_tag == NULL || strcmp(first_tag, m->tag) == 0;
    snprintf(m->first_tag, sizeof(m->first_tag), "%s", is_began_here ? "" : first_tag);
}

int checkpoint_save_claim(struct checkpoint_save *save, struct ms_err *err)
{
    return checkpoint_claim_take(&save->claim, err);
}

/* It may have come since. */
static int check_name(struct checkpoint_save *save, const char *stem, struct ms_err *err)
{
    char path[CHECKPOINT_PATH_MAX];
    snprintf(path, sizeof(path), "%s.json", stem);
    int rc = checkpoint_claim_take(&save->claim, err);
    return rc < 0 ? rc : checkpoint_claim_check(&save->claim, path, err);
}

/* The data of a checkpoint, held open for as long as its manifest takes. */
struct held {
    char path[CHECKPOINT_PATH_MAX];
    int fd;
};

/* Do they lie beside that manifest? Another file of their name, or one with another number, for
 * which some file systems are known, is read. */
static int has_data(const char *path, const struct checkpoint_manifest *m, const struct held *data)
{
    return ms_name_leads_to(AT_FDCWD, data->path, AT_SYMLINK_NOFOLLOW, data->fd) ||
           checkpoint_verify(path, CHECKPOINT_OWN, m, NULL) == 0;
}

/* This process hung, and whoever is rank 0 now trains on in its folder. */
static int fail_taken_over(const char *path, struct ms_err *err)
{
    return ms_fail(err, MS_E_ABORTED,
                   "%.120s is not this process's to write: another one of this job has taken over",
                   path);
}

static void let_go(const struct held *data)
{
    const int why = errno; /* for who asks of what kind the failure was */
    if (data->fd >= 0) {
        close(data->fd);
    }
    errno = why;
}

/* How a manifest gets its name: where there is none, or in the place of another one. */
enum naming { AFRESH, IN_PLACE };

/* The data may have gone while this process hung, or be another's by now: of what was named here
 * nothing stays then. Looked at when the manifest is there, for data that have one stay. */
static int name_manifest(struct ms_file_new *file, const struct checkpoint_manifest *m,
                         const struct held *data, enum naming naming, struct ms_err *err)
{
    char path[MS_PATH_MAX + 1];
    const int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
    snprintf(path, sizeof(path), "%s", file->path);
    if (fd < 0) {
        const int rc = ms_fail_errno(err, MS_E_NOMEM, "%.200s cannot be held open", path);
        ms_file_drop(file);
        return rc;
    }
    int rc = ms_file_end(file, naming == AFRESH, err);
    const int why = errno;
    if (rc == MS_E_EXISTS) {
        rc = fail_taken_over(path, err);
    } else if (rc == 0 && !has_data(path, m, data)) {
        if (ms_name_leads_to(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, fd)) {
            (void)unlink(path);
        }
        rc = fail_taken_over(path, err);
    }
    close(fd);
    errno = why;
    return rc;
}

static int write_text(const char *text, size_t size, const char *path,
                      const struct checkpoint_manifest *m, const struct held *data,
                      enum naming naming, struct ms_err *err)
{
    struct ms_file_new file;
    int rc = ms_file_begin(path, 0666, &file, err);
    if (rc < 0) {
        return rc;
    }
    rc = ms_file_put(&file, text, size, err);
    if (rc < 0) {
        ms_file_drop(&file);
        return rc;
    }
    return name_manifest(&file, m, data, naming, err);
}

/* Only a link tells whether there is one already. */
static int has_no_links(int rc)
{
    return rc == MS_E_IO &&
           (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK);
}

static int write_manifest(const struct checkpoint_manifest *m, const char *path,
                          const struct held *data, enum naming naming, struct ms_err *err)
{
    size_t size = 0;
    char *text = checkpoint_manifest_format(m, &size);
    int rc = text == NULL ? ms_fail(err, MS_E_NOMEM, "no memory to write %s", path)
             : size > MS_CHECKPOINT_MAX
                 ? ms_fail(err, MS_E_FULL, "%s would be too large: its plan has %zu bytes", path,
                           strlen(m->plan))
                 : write_text(text, size, path, m, data, naming, err);
    if (naming == AFRESH && has_no_links(rc)) {
        rc = write_text(text, size, path, m, data, IN_PLACE, err);
    }
    free(text);
    return rc < 0 ? rc : ms_folder_sync(path, err);
}

/* What lies there of a step, whatever that is worth; negative: nothing did. */
struct left {
    int manifest, data;
};

static int look_at_one(const char *stem, const char *tail, int *ret_fd, struct ms_err *err)
{
    char path[CHECKPOINT_PATH_MAX];
    snprintf(path, sizeof(path), "%s%s", stem, tail);
    *ret_fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return *ret_fd >= 0 || errno == ENOENT ? 0
                                           : ms_fail_errno(err, MS_E_IO, "cannot replace %s", path);
}

static int look_at_left(const char *stem, struct left *ret, struct ms_err *err)
{
    ret->data = -1;
    const int rc = look_at_one(stem, ".json", &ret->manifest, err);
    return rc < 0 ? rc : look_at_one(stem, ".safetensors", &ret->data, err);
}

static void forget_left(const struct left *left)
{
    const int why = errno; /* for who asks of what kind the failure was */
    if (left->manifest >= 0) {
        close(left->manifest);
    }
    if (left->data >= 0) {
        close(left->data);
    }
    errno = why;
}

/* Of this step there is none that is whole, or has these bits. What is left of one goes, the
 * manifest first: it never stands beside data of another one, and those would take the room of the
 * new ones. What came since is of who took over. */
static int make_way(const char *stem, const struct left *left, struct ms_err *err)
{
    char path[CHECKPOINT_PATH_MAX];
    int rc = 0;
    if (left->manifest >= 0) {
        snprintf(path, sizeof(path), "%s.json", stem);
        rc = ms_file_remove(path, left->manifest, err);
    }
    if (rc == MS_E_EXISTS) {
        return fail_taken_over(path, err);
    }
    if (rc == 0 && left->data >= 0) {
        snprintf(path, sizeof(path), "%s.safetensors", stem);
        (void)ms_file_remove(path, left->data, NULL); /* else they are replaced */
    }
    return rc;
}

/* Texts stay save's. */
static struct checkpoint_manifest describe(const struct checkpoint_save *save,
                                           const struct checkpoint_facts *facts)
{
    struct checkpoint_manifest m = save->manifest;
    m.step = facts->step;
    m.epoch = facts->epoch;
    m.step_in_epoch = facts->step_in_epoch;
    m.loss = facts->loss;
    m.evaluates = facts->evaluates;
    m.stopped = facts->stopped;
    m.seconds = facts->seconds;
    checkpoint_manifest_set_watch(&m, save->cfg->job, &facts->watch);
    snprintf(m.data, sizeof(m.data), "%s-%" PRIu64 ".safetensors",
             save->cfg->job->checkpoint_prefix, facts->step);
    return m;
}

/* 1: these bits; 0: others, or it is damaged. MS_E_NOMEM, which says nothing of it: it has to stay.
 */
static int holds(const struct checkpoint_save *save, void *const *buffers, const char *path,
                 const struct checkpoint_manifest *m, struct ms_err *err)
{
    char data[CHECKPOINT_PATH_MAX];
    struct safetensors *file = NULL;
    if (!checkpoint_claim_owns(&save->claim, m)) {
        return 0;
    }
    int rc = checkpoint_verify(path, CHECKPOINT_OWN, m, err);
    rc = rc < 0 ? rc : safetensors_open_own(checkpoint_data_path(path, m, data), &file, err);
    if (rc < 0) {
        return rc == MS_E_NOMEM ? rc : 0;
    }
    const int is = checkpoint_state_is(&save->state, save->layout, buffers, file);
    safetensors_close(file);
    return is < 0 ? ms_fail(err, is, "no memory to compare with %.200s", data) : is;
}

/* Of a job that this one was resumed from, or that was resumed beside it: it came to the same bits.
 * From then on it is this job's, in one blow: there is no moment without one. But one of a job with
 * another length of its schedule, of which this one made no step, would not be gone on from any
 * more, and stays that job's. 1: there is none that has these bits. MS_E_NOMEM: whether there is
 * one cannot be said. */
static int take_over(struct checkpoint_save *save, void *const *buffers,
                     const struct checkpoint_facts *facts, struct ms_err *err)
{
    char stem[CHECKPOINT_STEM_MAX];
    char path[CHECKPOINT_PATH_MAX];
    struct checkpoint_manifest there;
    struct held data;
    struct checkpoint_manifest m = describe(save, facts);
    checkpoint_keep_stem(save, facts->step, stem);
    snprintf(path, sizeof(path), "%s.json", stem);
    struct ms_err why = {0, ""};
    int rc = checkpoint_read(path, CHECKPOINT_OWN, &there, &why);
    if (rc < 0) {
        return rc == MS_E_NOMEM ? ms_fail(err, rc, "%s", why.text) : 1;
    }
    m.data_size = there.data_size;
    memcpy(m.data_sum, there.data_sum, sizeof(m.data_sum));
    checkpoint_data_path(path, &there, data.path);
    data.fd = open(data.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    rc = data.fd >= 0 ? holds(save, buffers, path, &there, &why)
                      : ms_fail_errno(&why, MS_E_IO, "cannot read %s", data.path);
    const int is_alike = strcmp(there.job, m.job) == 0;
    rc = rc > 0 && !is_alike ? ms_folder_sync(stem, err)
         : rc > 0            ? write_manifest(&m, path, &data, IN_PLACE, err)
         : rc == MS_E_NOMEM  ? ms_fail(err, rc, "%s", why.text)
                             : 1;
    let_go(&data);
    checkpoint_manifest_fini(&there);
    return rc;
}

/* Data without a manifest would take the next one's room on a full disk. A manifest that is there,
 * and may not outlive a power cut, keeps its data; so do data of another process. */
static void take_back(const char *path, const struct held *data)
{
    struct stat st;
    const int why = errno;
    if (data->fd >= 0 && lstat(path, &st) != 0 && errno == ENOENT) {
        (void)ms_file_remove(data->path, data->fd, NULL);
    }
    errno = why;
}

static int write_files(struct checkpoint_save *save, void *const *buffers,
                       const struct checkpoint_facts *facts, const char *path, struct held *data,
                       struct ms_err *err)
{
    struct safetensors_sum sum;
    struct checkpoint_manifest m = describe(save, facts);
    int rc =
        checkpoint_state_save(&save->state, save->layout, buffers, facts->step,
                              checkpoint_manifest_first_tag(&m), data->path, &sum, &data->fd, err);
    if (rc < 0) {
        return rc;
    }
    /* Nobody reads it soon: its pages are for the next one, which would look for others else. */
    (void)posix_fadvise(data->fd, 0, 0, POSIX_FADV_DONTNEED);
    m.data_size = sum.size;
    memcpy(m.data_sum, sum.hex, sizeof(m.data_sum));
    return write_manifest(&m, path, data, AFRESH, err);
}

static int write_new(struct checkpoint_save *save, void *const *buffers,
                     const struct checkpoint_facts *facts, const char *stem,
                     const struct left *left, struct ms_err *err)
{
    char path[CHECKPOINT_PATH_MAX];
    struct held data = {.fd = -1};
    snprintf(path, sizeof(path), "%s.json", stem);
    snprintf(data.path, sizeof(data.path), "%s.safetensors", stem);
    int rc = make_way(stem, left, err);
    rc = rc < 0 ? rc : write_files(save, buffers, facts, path, &data, err);
    if (rc < 0 && rc != MS_E_ABORTED) { /* else they are another process's */
        take_back(path, &data);
    }
    let_go(&data);
    return rc;
}

static int has_no_room(int rc)
{
    return rc == MS_E_IO && (errno == ENOSPC || errno == EDQUOT);
}

/* What another job of this training has there already needs no more than a manifest. */
static int write_step(struct checkpoint_save *save, void *const *buffers,
                      const struct checkpoint_facts *facts, struct ms_err *err)
{
    char stem[CHECKPOINT_STEM_MAX];
    struct left left;
    checkpoint_keep_stem(save, facts->step, stem);
    int rc = look_at_left(stem, &left, err);
    rc = rc < 0 ? rc : take_over(save, buffers, facts, err);
    rc = rc == 1 ? write_new(save, buffers, facts, stem, &left, err) : rc;
    forget_left(&left);
    return rc;
}

int checkpoint_save_write(struct checkpoint_save *save, void *const *buffers,
                          const struct checkpoint_facts *facts, struct ms_err *err)
{
    char stem[CHECKPOINT_STEM_MAX];
    checkpoint_keep_stem(save, facts->step, stem);
    save->gave_way = 0;
    (void)make_folder(save->cfg->folder); /* somebody may have taken it away: the write says so */
    int rc = check_name(save, stem, err);
    if (rc == 0 && checkpoint_keep_has(save, facts->step, LOOK_AT_DIGEST)) {
        /* it has these bits; who wrote it may have come no further, and for it older ones go */
        rc = ms_folder_sync(stem, err);
    } else if (rc == 0) {
        rc = write_step(save, buffers, facts, err);
        while (has_no_room(rc) && checkpoint_keep_give_way(save, facts->step)) {
            rc = write_step(save, buffers, facts, err);
        }
    }
    if (rc == 0) {
        checkpoint_keep_tidy(save, facts->step, 1);
    } else if (rc == MS_E_ABORTED && checkpoint_keep_has(save, facts->step, LOOK_AT_DIGEST)) {
        rc = ms_folder_sync(stem, err); /* it came meanwhile, by a rank that saves this step, too */
    }
    return rc;
}

/* ---- its life ---- */

static int describe_job(struct checkpoint_save *save, struct ms_err *err)
{
    uint8_t bytes[MS_SHA256_BYTES];
    struct checkpoint_manifest *m = &save->manifest;
    const struct checkpoint_writer_config *cfg = save->cfg;
    snprintf(m->name, sizeof(m->name), "%s", cfg->job->name);
    snprintf(m->tag, sizeof(m->tag), "%s", cfg->tag);
    checkpoint_save_descend(save, cfg->first_tag);
    snprintf(m->plan_sha256, sizeof(m->plan_sha256), "%s", cfg->plan_sha256);
    m->samples = cfg->dataset.rows;
    sum_bytes_hex(cfg->dataset.sum, m->samples_sum);
    m->job = checkpoint_job_text(cfg->job);
    m->plan = strdup(cfg->plan);
    if (m->job == NULL || m->plan == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for checkpoints");
    }
    ms_sha256(m->job, strlen(m->job), bytes);
    ms_sha256_hex(bytes, m->job_sha256);
    return 0;
}

int checkpoint_save_init(struct checkpoint_save *save, const struct checkpoint_writer_config *cfg,
                         struct ms_err *err)
{
    save->cfg = cfg;
    checkpoint_claim_init(&save->claim, cfg->folder, cfg->job->checkpoint_prefix, &save->manifest);
    int rc = describe_job(save, err);
    rc = rc < 0 ? rc : checkpoint_state_init(&save->state, cfg->replica, &cfg->job->optimizer, err);
    return rc < 0 ? rc : replica_layout(cfg->replica, &save->layout, err);
}

void checkpoint_save_fini(struct checkpoint_save *save)
{
    checkpoint_claim_fini(&save->claim);
    plan_layout_destroy(save->layout);
    checkpoint_state_fini(&save->state);
    checkpoint_manifest_fini(&save->manifest);
}
