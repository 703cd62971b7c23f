/* best_files.c - files of the best weights of a training, in its run directory: which there are */
#include "libworker/train/best_files.h"

#include "libworker/data/safetensors.h"
#include "proto/file_write.h"
#include "proto/grow.h"
#include "proto/text.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char head[] = "best-";
static const char end[] = ".safetensors";
static const char step_head[] = MS_STEP_PREFIX "best-";

const char *best_file_name(uint64_t step, char buf[BEST_NAME_MAX])
{
    snprintf(buf, BEST_NAME_MAX, "%s%" PRIu64 "%s", head, step, end);
    return buf;
}

/* As it is written: without zeros in front. */
uint64_t best_file_step(const char *name)
{
    char own[BEST_NAME_MAX];
    if (strncmp(name, head, sizeof(head) - 1) != 0) {
        return 0;
    }
    const uint64_t step = strtoull(name + sizeof(head) - 1, NULL, 10);
    return strcmp(best_file_name(step, own), name) == 0 ? step : 0;
}

/* ---- the names for a moment ---- */

int best_files_draw(char ret[BEST_NAME_MAX], struct ms_err *err)
{
    uint64_t lot = 0;
    if (getrandom(&lot, sizeof(lot), 0) != (ssize_t)sizeof(lot)) {
        return ms_fail_errno(err, MS_E_IO, "cannot draw a name for a file");
    }
    snprintf(ret, BEST_NAME_MAX, "%s%016" PRIx64, step_head, lot);
    return MS_OK;
}

void best_files_clear(const char *folder, const char *own)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strncmp(entry->d_name, step_head, sizeof(step_head) - 1) == 0 &&
            (own == NULL || strcmp(entry->d_name, own) != 0)) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    closedir(dir);
}

/* ---- what they say ---- */

static int copy_word(const char *text, char *ret, size_t size)
{
    const int fits = text != NULL && strlen(text) < size && ms_text_is_valid(text, MS_TEXT_LINE);
    if (fits) {
        memcpy(ret, text, strlen(text) + 1);
    }
    return fits;
}

static int read_meta(const struct safetensors *file, struct best_file *ret)
{
    const char *steps = safetensors_meta(file, "steps");
    const char *value = safetensors_meta(file, "value");
    const char *training = safetensors_meta(file, "training");
    if (steps == NULL || value == NULL || !isfinite(strtod(value, NULL))) {
        return 0;
    }
    ret->best.step = strtoull(steps, NULL, 10);
    ret->best.value = strtod(value, NULL);
    return ret->best.step > 0 && ret->best.step <= INT64_MAX &&
           copy_word(safetensors_meta(file, "metric"), ret->best.metric,
                     sizeof(ret->best.metric)) &&
           (training == NULL || copy_word(training, ret->training, sizeof(ret->training)));
}

int best_file_read(const char *path, struct best_file *ret)
{
    struct best_file read = {.best = {.step = 0}};
    struct safetensors *file = NULL;
    struct stat st;
    if (safetensors_open_own(path, &file, NULL) < 0) {
        return 0;
    }
    const int is = read_meta(file, &read) && stat(path, &st) == 0;
    safetensors_close(file);
    if (is) {
        const int64_t age = (int64_t)time(NULL) - (int64_t)st.st_mtime;
        read.best.bytes = (uint64_t)st.st_size;
        read.best.age_s = age > 0 ? age : 0;
        *ret = read;
    }
    return is;
}

static int latest_first(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* By their names alone. */
static int list_steps(const char *folder, uint64_t **ret, size_t *ret_n)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry = NULL;
    uint64_t *steps = NULL;
    size_t n = 0;
    size_t room = 0;
    int rc = MS_OK;
    while (rc == MS_OK && dir != NULL && (entry = readdir(dir)) != NULL) {
        const uint64_t step = best_file_step(entry->d_name);
        uint64_t *grown = step > 0 ? ms_grow(steps, n, 1, sizeof(*steps), &room) : steps;
        rc = step > 0 && grown == NULL ? MS_E_NOMEM : MS_OK;
        if (step > 0 && rc == MS_OK && n < MS_CHECKPOINT_FILES) {
            steps = grown;
            steps[n++] = step;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    if (rc < 0) {
        free(steps);
        return rc;
    }
    if (n > 0) {
        qsort(steps, n, sizeof(*steps), latest_first);
    }
    *ret = steps;
    *ret_n = n;
    return MS_OK;
}

int best_files_look(const char *folder, const char *training, const char *metric,
                    struct saved_best **ret, size_t *ret_n)
{
    char path[MS_PATH_MAX + BEST_NAME_MAX + 2];
    char name[BEST_NAME_MAX];
    uint64_t *steps = NULL;
    size_t n_steps = 0;
    size_t n = 0;
    int rc = list_steps(folder, &steps, &n_steps);
    struct saved_best *found = rc == MS_OK ? calloc(MS_BEST_MAX, sizeof(*found)) : NULL;
    for (size_t i = 0; found != NULL && i < n_steps && n < MS_BEST_MAX; i++) {
        struct best_file file;
        snprintf(path, sizeof(path), "%s/%s", folder, best_file_name(steps[i], name));
        if (best_file_read(path, &file) && file.best.step == steps[i] &&
            strcmp(file.training, training) == 0 && strcmp(file.best.metric, metric) == 0) {
            found[n++] = file.best;
        }
    }
    free(steps);
    if (found == NULL) {
        return MS_E_NOMEM;
    }
    *ret = found;
    *ret_n = n;
    return MS_OK;
}
