/* checkpoint_save.c - one checkpoint onto the disk */
#include "libworker/train/checkpoint_save.h"

#include "libworker/train/checkpoint_folder.h"
#include "libworker/train/checkpoint_keep.h"
#include "proto/file_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the folder ---- */

/* One more, whose name survives a power cut as what will lie in it does. Who may make it in a
 * folder that he may not read cannot sync that. */
static int make_one(const char *path)
{
    if (mkdir(path, 0755) == 0) {
        return ms_folder_sync(path, NULL) == 0 || errno == EACCES ? 0 : -1;
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
           error == ETIMEDOUT;
}

static int check_folder(const char *folder, struct ms_err *err)
{
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

static int write_manifest(const struct checkpoint_manifest *m, const char *path, struct ms_err *err)
{
    size_t size = 0;
    char *text = checkpoint_manifest_format(m, &size);
    int rc = text == NULL ? ms_fail(err, MS_E_NOMEM, "no memory to write %s", path)
             : size > MS_CHECKPOINT_MAX
                 ? ms_fail(err, MS_E_FULL, "%s would be too large: its plan has %zu bytes", path,
                           strlen(m->plan))
                 : ms_file_save(path, text, size, err);
    free(text);
    return rc < 0 ? rc : ms_folder_sync(path, err);
}

/* Nobody reads it soon: its pages are for the next one, which would look for others else. */
static void forget_pages(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

/* Of this step there is none that is whole, or has these bits. What is left of one goes, the
 * manifest first: it never stands beside data of another one. */
static int make_way(const char *stem, struct ms_err *err)
{
    char path[CHECKPOINT_PATH_MAX];
    snprintf(path, sizeof(path), "%s.json", stem);
    return unlink(path) == 0 ? ms_folder_sync(path, err) : 0;
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

static int holds(const struct checkpoint_save *save, void *const *buffers, const char *path,
                 const struct checkpoint_manifest *m)
{
    char data[CHECKPOINT_PATH_MAX];
    struct safetensors *file = NULL;
    if (!checkpoint_claim_owns(&save->claim, m) ||
        checkpoint_verify(path, CHECKPOINT_OWN, m, NULL) < 0 ||
        safetensors_open_own(checkpoint_data_path(path, m, data), &file, NULL) < 0) {
        return 0;
    }
    const int is = checkpoint_state_is(&save->state, save->layout, buffers, file);
    safetensors_close(file);
    return is;
}

/* Of a job that this one was resumed from, or that was resumed beside it: it came to the same bits.
 * From then on it is this job's, in one blow: there is no moment without one. 1: there is none that
 * has these bits. */
static int take_over(struct checkpoint_save *save, void *const *buffers,
                     const struct checkpoint_facts *facts, struct ms_err *err)
{
    char stem[CHECKPOINT_STEM_MAX];
    char path[CHECKPOINT_PATH_MAX];
    struct checkpoint_manifest there;
    struct checkpoint_manifest m = describe(save, facts);
    checkpoint_keep_stem(save, facts->step, stem);
    snprintf(path, sizeof(path), "%s.json", stem);
    if (checkpoint_read(path, CHECKPOINT_OWN, &there, NULL) < 0) {
        return 1;
    }
    m.data_size = there.data_size;
    memcpy(m.data_sum, there.data_sum, sizeof(m.data_sum));
    int rc = holds(save, buffers, path, &there) ? write_manifest(&m, path, err) : 1;
    checkpoint_manifest_fini(&there);
    return rc;
}

static int write_files(struct checkpoint_save *save, void *const *buffers,
                       const struct checkpoint_facts *facts, const char *stem, struct ms_err *err)
{
    char path[CHECKPOINT_PATH_MAX];
    struct safetensors_sum sum;
    struct checkpoint_manifest m = describe(save, facts);
    snprintf(path, sizeof(path), "%s.safetensors", stem);
    int rc = make_way(stem, err);
    rc = rc < 0 ? rc
                : checkpoint_state_save(&save->state, save->layout, buffers, facts->step,
                                        checkpoint_manifest_first_tag(&m), path, &sum, err);
    if (rc < 0) {
        return rc;
    }
    forget_pages(path);
    m.data_size = sum.size;
    memcpy(m.data_sum, sum.hex, sizeof(m.data_sum));
    snprintf(path, sizeof(path), "%s.json", stem);
    return write_manifest(&m, path, err);
}

/* Data without a manifest would take the next one's room on a full disk. A manifest that is there,
 * and may not outlive a power cut, keeps its data. */
static void take_back(const char *stem)
{
    char path[CHECKPOINT_PATH_MAX];
    struct stat st;
    const int why = errno;
    snprintf(path, sizeof(path), "%s.json", stem);
    if (lstat(path, &st) != 0 && errno == ENOENT) {
        snprintf(path, sizeof(path), "%s.safetensors", stem);
        (void)unlink(path);
    }
    errno = why;
}

static int write_new(struct checkpoint_save *save, void *const *buffers,
                     const struct checkpoint_facts *facts, struct ms_err *err)
{
    char stem[CHECKPOINT_STEM_MAX];
    checkpoint_keep_stem(save, facts->step, stem);
    const int rc = write_files(save, buffers, facts, stem, err);
    if (rc < 0) {
        take_back(stem);
    }
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
    int rc = take_over(save, buffers, facts, err);
    return rc == 1 ? write_new(save, buffers, facts, err) : rc;
}

int checkpoint_save_write(struct checkpoint_save *save, void *const *buffers,
                          const struct checkpoint_facts *facts, struct ms_err *err)
{
    char stem[CHECKPOINT_STEM_MAX];
    checkpoint_keep_stem(save, facts->step, stem);
    save->gave_way = 0;
    (void)make_folder(save->cfg->folder); /* somebody may have taken it away: the write says so */
    int rc = check_name(save, stem, err);
    if (rc == 0 &&
        !checkpoint_keep_has(save, facts->step, LOOK_AT_DIGEST)) { /* else it has these bits */
        rc = write_step(save, buffers, facts, err);
        while (has_no_room(rc) && checkpoint_keep_give_way(save, facts->step)) {
            rc = write_step(save, buffers, facts, err);
        }
    }
    if (rc == 0) {
        checkpoint_keep_tidy(save, facts->step, 1);
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
    int rc = check_folder(cfg->folder, err);
    rc = rc < 0 ? rc : describe_job(save, err);
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
