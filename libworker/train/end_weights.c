/* end_weights.c - weights.safetensors in a run directory: of a job's steps the latest stays */
#include "libworker/train/end_weights.h"

#include "libworker/train/metrics.h"
#include "proto/file_write.h"
#include "proto/folder.h"
#include "proto/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum {
    BESIDE_MAX = MS_PATH_MAX + 64, /* bytes of the path of a file beside them */
    LOCK_WAIT_MS = 10000,          /* a third of the time that who saves has in a cancel */
    LOCK_LOOK_MS = 20
};

/* ---- whose, and of which step ---- */

/* What all steps left says not whose it is: the line of the end beside it does. */
static int is_end_of_ours(const struct end_weights *place, uint64_t steps)
{
    char folder[MS_PATH_MAX + 1];
    char path[BESIDE_MAX];
    snprintf(path, sizeof(path), "%s/" METRICS_FILE,
             ms_folder_of(place->path, folder, sizeof(folder)));
    return steps > 0 && metrics_end_at(path, place->training) == steps;
}

static uint64_t step_of(const struct end_weights *place, const struct safetensors *file)
{
    const char *format = safetensors_meta(file, "format");
    const char *of = safetensors_meta(file, "job_tag");
    const char *text = safetensors_meta(file, "steps");
    if (format == NULL || strcmp(format, MODEL_COPY_FORMAT) != 0 || text == NULL) {
        return 0;
    }
    const uint64_t steps = strtoull(text, NULL, 10);
    const int is_ours = of != NULL ? strcmp(of, place->job_tag) == 0 : is_end_of_ours(place, steps);
    return is_ours ? steps : 0;
}

/* 0: none lies there that is of this job and of a later step. */
static uint64_t find_later(const struct end_weights *place, uint64_t step)
{
    struct safetensors *file = NULL;
    if (place->job_tag[0] == '\0' || safetensors_open_own(place->path, &file, NULL) < 0) {
        return 0;
    }
    const uint64_t there = step_of(place, file);
    safetensors_close(file);
    return there > step && there <= INT64_MAX ? there : 0;
}

/* ---- the lock ---- */

/* Beside them: they are replaced, and workers hold their folder. */
static const char *name_lock(const struct end_weights *place, char ret[BESIDE_MAX])
{
    char folder[MS_PATH_MAX + 1];
    snprintf(ret, BESIDE_MAX, "%s/.%s.lock", ms_folder_of(place->path, folder, sizeof(folder)),
             ms_name_of(place->path));
    return ret;
}

/* 1: held; 0: another process has it, or took its name away when it let go; -1: there are none. */
static int try_lock(struct end_weights *place)
{
    char path[BESIDE_MAX];
    const int fd = open(name_lock(place, path),
                        O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
    if (fd < 0) {
        return -1;
    }
    const int is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    const int is_held = !is_locked && errno == EWOULDBLOCK;
    if (is_locked && ms_name_leads_to(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, fd)) {
        place->lock_fd = fd;
        return 1;
    }
    close(fd);
    return is_locked || is_held ? 0 : -1;
}

/* It is held for a rename and two syncs. Who is frozen with it must not keep the weights from being
 * saved. */
static void take_lock(struct end_weights *place)
{
    static const struct timespec pause = {0, LOCK_LOOK_MS * 1000000L};
    int rc = place->job_tag[0] != '\0' ? try_lock(place) : -1;
    for (int ms = 0; rc == 0 && ms < LOCK_WAIT_MS; ms += LOCK_LOOK_MS) {
        (void)nanosleep(&pause, NULL);
        rc = try_lock(place);
    }
}

void end_weights_init(struct end_weights *place, const char *path, const char *job_tag,
                      const char *training, int is_plain)
{
    *place = (struct end_weights){path, job_tag, training, is_plain, -1};
}

void end_weights_fini(struct end_weights *place)
{
    char path[BESIDE_MAX];
    if (place->lock_fd >= 0) {
        (void)unlink(name_lock(place, path));
        close(place->lock_fd);
        place->lock_fd = -1;
    }
}

/* ---- saving ---- */

/* All but the name, which may take long, before the lock. */
static int write_all(const struct end_weights *place, const struct model_copy *copy,
                     struct safetensors_writer **ret, struct ms_err *err)
{
    const char *const more[] = {"job_tag", place->job_tag};
    const size_t n_more = place->job_tag[0] != '\0' && !place->is_plain ? 1 : 0;
    int rc = model_copy_begin(copy, place->path, more, n_more, ret, err);
    rc = rc < 0 ? rc : safetensors_sync(*ret, err);
    if (rc < 0) {
        safetensors_abandon(*ret);
        *ret = NULL;
    }
    return rc;
}

int end_weights_save(struct end_weights *place, const struct model_copy *copy, uint64_t *ret_later,
                     struct ms_err *err)
{
    struct safetensors_writer *writer = NULL;
    uint64_t later = find_later(place, copy->steps);
    int rc = later == 0 ? write_all(place, copy, &writer, err) : MS_OK;
    if (rc < 0) {
        return rc;
    }
    take_lock(place);
    later = find_later(place, copy->steps);
    if (later == 0 && writer == NULL) { /* they were taken away meanwhile */
        rc = write_all(place, copy, &writer, err);
    }
    if (later == 0) {
        rc = rc < 0 ? rc : safetensors_finish(writer, NULL, err);
    } else {
        safetensors_abandon(writer);
        rc = ms_file_sync(place->path, err);
    }
    *ret_later = rc == MS_OK ? later : 0;
    return rc;
}
