/* checkpoint_save.c - one checkpoint onto the disk, and what goes for it */
#include "libworker/train/checkpoint_save.h"

#include "libworker/data/path.h"
#include "libworker/train/checkpoint_folder.h"
#include "proto/file_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEM_MAX = CHECKPOINT_PATH_MAX - 16 }; /* of a checkpoint's two paths */

/* ---- the folder ---- */

/* One more, whose name survives a power cut as what will lie in it does. Who may make it in a
 * folder that he may not read cannot sync that. */
static int make_one(const char *path)
{
    if (mkdir(path, 0755) == 0) {
        return ms_folder_sync(path, NULL) == 0 || errno == EACCES ? 0 : -1;
    }
    return errno == EEXIST || access(path, F_OK) == 0 ? 0 : -1;
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

/* ---- what goes ---- */

/* How well a checkpoint is looked at. */
enum look { LOOK_AT_SIZE, LOOK_AT_DIGEST };
/* All jobs that were resumed from one another are one training, and each goes on from its own. */
enum whose { OF_TRAINING, OF_JOB };

static int is_ours(const struct checkpoint_save *save, const char *path, enum whose whose,
                   enum look look)
{
    struct checkpoint_manifest m;
    if (checkpoint_read(path, CHECKPOINT_OWN, &m, NULL) < 0) {
        return 0;
    }
    const int is = checkpoint_claim_owns(&save->claim, &m) &&
                   (whose == OF_TRAINING || strcmp(m.tag, save->manifest.tag) == 0) &&
                   (look == LOOK_AT_SIZE || checkpoint_verify(path, CHECKPOINT_OWN, &m, NULL) == 0);
    checkpoint_manifest_fini(&m);
    return is;
}

/* Is there one among the newest that this job would go on from, were all ranks lost? */
static int has_whole(const struct checkpoint_save *save, const struct checkpoint_entries *entries,
                     uint64_t step)
{
    int n = 0;
    for (size_t i = 0; i < entries->n && n < save->cfg->job->checkpoint_keep_max; i++) {
        const char *path = entries->entries[i].path;
        if (entries->entries[i].step <= step && is_ours(save, path, OF_TRAINING, LOOK_AT_SIZE)) {
            if (is_ours(save, path, OF_JOB, LOOK_AT_DIGEST)) {
                return 1;
            }
            n++;
        }
    }
    return 0;
}

/* Those of this training beyond the newest ones up to where the training is: what has a higher step
 * was found damaged, or this training would have begun there. Damaged ones, and those of others,
 * stay. None goes before one that stays is known to be whole, and this job's: of the others it has
 * what it was resumed from at most. */
static void remove_oldest(const struct checkpoint_save *save,
                          const struct checkpoint_entries *entries, uint64_t step, int is_whole)
{
    int n = 0;
    for (size_t i = 0; i < entries->n; i++) {
        const char *path = entries->entries[i].path;
        if (entries->entries[i].step > step || !is_ours(save, path, OF_TRAINING, LOOK_AT_SIZE) ||
            ++n <= save->cfg->job->checkpoint_keep_max) {
            continue;
        }
        is_whole = is_whole || has_whole(save, entries, step);
        if (!is_whole) {
            return;
        }
        checkpoint_remove(path);
    }
}

static void make_stem(const struct checkpoint_save *save, uint64_t step, char ret[STEM_MAX])
{
    snprintf(ret, STEM_MAX, "%s/%s-%" PRIu64, save->cfg->folder, save->cfg->job->checkpoint_prefix,
             step);
}

/* is_whole: that of this step is known to be. */
static void tidy(const struct checkpoint_save *save, uint64_t step, int is_whole)
{
    const struct job *job = save->cfg->job;
    struct checkpoint_entries entries;
    char stem[STEM_MAX];
    make_stem(save, step, stem);
    ms_file_clear(stem);
    if (checkpoint_list(save->cfg->folder, job->checkpoint_prefix, &entries, NULL) == 0) {
        remove_oldest(save, &entries, step, is_whole);
        checkpoint_entries_fini(&entries);
    }
    checkpoint_remove_orphans(save->cfg->folder, job->checkpoint_prefix,
                              checkpoint_manifest_first_tag(&save->manifest));
}

void checkpoint_save_tidy(const struct checkpoint_save *save, uint64_t step)
{
    tidy(save, step, 0);
}

static int has(const struct checkpoint_save *save, uint64_t step, enum look look)
{
    char stem[STEM_MAX];
    char path[CHECKPOINT_PATH_MAX];
    make_stem(save, step, stem);
    snprintf(path, sizeof(path), "%s.json", stem);
    return is_ours(save, path, OF_JOB, look);
}

int checkpoint_save_has(const struct checkpoint_save *save, uint64_t step)
{
    return has(save, step, LOOK_AT_SIZE);
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
                 : ms_file_write(path, text, size, 0644, 0, err);
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
    char stem[STEM_MAX];
    char path[CHECKPOINT_PATH_MAX];
    struct checkpoint_manifest there;
    struct checkpoint_manifest m = describe(save, facts);
    make_stem(save, facts->step, stem);
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

static int write_new(struct checkpoint_save *save, void *const *buffers,
                     const struct checkpoint_facts *facts, struct ms_err *err)
{
    char stem[STEM_MAX];
    char path[CHECKPOINT_PATH_MAX];
    struct safetensors_sum sum;
    struct checkpoint_manifest m = describe(save, facts);
    make_stem(save, facts->step, stem);
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

static int has_no_room(int rc)
{
    return rc == MS_E_IO && (errno == ENOSPC || errno == EDQUOT);
}

/* Is it what the job names to go on from? */
static int is_named(const struct checkpoint_save *save, const char *path)
{
    char named[MS_PATH_MAX + 1];
    struct stat a;
    struct stat b;
    const char *resume = save->cfg->job->resume;
    return resume[0] != '\0' && data_path_expand(resume, named, sizeof(named), NULL) == 0 &&
           stat(named, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* The first that holds, NULL: none. */
static const char *find_below(const struct checkpoint_save *save,
                              const struct checkpoint_entries *entries, uint64_t step,
                              int (*is)(const struct checkpoint_save *save, const char *path))
{
    for (size_t i = 0; i < entries->n; i++) {
        const struct checkpoint_entry *entry = &entries->entries[i];
        if (entry->step < step && is(save, entry->path)) {
            return entry->path;
        }
    }
    return NULL;
}

static int is_whole_of_job(const struct checkpoint_save *save, const char *path)
{
    return is_ours(save, path, OF_JOB, LOOK_AT_DIGEST);
}

static int is_whole(const struct checkpoint_save *save, const char *path)
{
    return is_ours(save, path, OF_TRAINING, LOOK_AT_DIGEST);
}

/* From which of those there the job would go on, were all ranks lost: the newest whole one of its
 * own, else what it was resumed from. */
static const char *find_refuge(const struct checkpoint_save *save,
                               const struct checkpoint_entries *entries, uint64_t step)
{
    const char *refuge = find_below(save, entries, step, is_whole_of_job);
    refuge = refuge != NULL ? refuge : find_below(save, entries, step, is_named);
    return refuge != NULL ? refuge : find_below(save, entries, step, is_whole);
}

/* Room for the one of that step: the oldest of this training goes, but not what the job would go on
 * from, nor one of its own behind that, which is damaged. False: there is none that may go. */
static int give_way(struct checkpoint_save *save, uint64_t step)
{
    struct checkpoint_entries entries;
    const char *oldest = NULL;
    if (checkpoint_list(save->cfg->folder, save->cfg->job->checkpoint_prefix, &entries, NULL) < 0) {
        return 0;
    }
    const char *refuge = find_refuge(save, &entries, step);
    int is_older = 0;
    for (size_t i = 0; refuge != NULL && i < entries.n; i++) {
        const char *path = entries.entries[i].path;
        if (path == refuge) {
            is_older = 1;
        } else if (entries.entries[i].step < step &&
                   is_ours(save, path, OF_TRAINING, LOOK_AT_SIZE) &&
                   (is_older || !is_ours(save, path, OF_JOB, LOOK_AT_SIZE))) {
            oldest = path;
        }
    }
    const int gives = oldest != NULL;
    if (gives) {
        checkpoint_remove(oldest);
        save->gave_way = 1;
    }
    checkpoint_entries_fini(&entries);
    return gives;
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
    char stem[STEM_MAX];
    make_stem(save, facts->step, stem);
    (void)make_folder(save->cfg->folder); /* somebody may have taken it away: the write says so */
    int rc = check_name(save, stem, err);
    if (rc == 0 && !has(save, facts->step, LOOK_AT_DIGEST)) { /* else it has these bits */
        rc = write_step(save, buffers, facts, err);
        while (has_no_room(rc) && give_way(save, facts->step)) {
            rc = write_step(save, buffers, facts, err);
        }
    }
    if (rc == 0) {
        tidy(save, facts->step, 1);
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
