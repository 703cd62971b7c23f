/* checkpoint_keep.c - whose the checkpoints of a folder are, which stay, and which go */
#include "libworker/train/checkpoint_keep.h"

#include "libworker/data/path.h"
#include "libworker/train/checkpoint_folder.h"
#include "proto/file_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- whose they are ---- */

/* All jobs that were resumed from one another are one training, and each goes on from its own. */
enum whose { OF_TRAINING, OF_JOB };

static int is_ours(const struct checkpoint_save *save, const char *path, enum whose whose,
                   enum checkpoint_look look)
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

void checkpoint_keep_stem(const struct checkpoint_save *save, uint64_t step,
                          char ret[CHECKPOINT_STEM_MAX])
{
    snprintf(ret, CHECKPOINT_STEM_MAX, "%s/%s-%" PRIu64, save->cfg->folder,
             save->cfg->job->checkpoint_prefix, step);
}

int checkpoint_keep_has(const struct checkpoint_save *save, uint64_t step,
                        enum checkpoint_look look)
{
    char stem[CHECKPOINT_STEM_MAX];
    char path[CHECKPOINT_PATH_MAX];
    checkpoint_keep_stem(save, step, stem);
    snprintf(path, sizeof(path), "%s.json", stem);
    return is_ours(save, path, OF_JOB, look);
}

uint64_t checkpoint_keep_newest(const struct checkpoint_save *save, uint64_t step)
{
    struct checkpoint_entries entries;
    uint64_t newest = 0;
    if (checkpoint_list(save->cfg->folder, save->cfg->job->checkpoint_prefix, &entries, NULL) < 0) {
        return 0;
    }
    for (size_t i = 0; newest == 0 && i < entries.n; i++) {
        const struct checkpoint_entry *entry = &entries.entries[i];
        const int may = entry->step <= step;
        newest = may && is_ours(save, entry->path, OF_JOB, LOOK_AT_SIZE) ? entry->step : 0;
    }
    checkpoint_entries_fini(&entries);
    return newest;
}

/* ---- in their turn ---- */

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

/* Of whatever step: no data will ever come to it. A process that hung, of a release that did not
 * look, named it when its successor had taken the data for a dead writer's. */
static void remove_lone(const struct checkpoint_save *save,
                        const struct checkpoint_entries *entries)
{
    for (size_t i = 0; i < entries->n; i++) {
        struct checkpoint_manifest m;
        if (checkpoint_read_lone(entries->entries[i].path, &m)) {
            if (checkpoint_claim_owns(&save->claim, &m)) {
                (void)unlink(entries->entries[i].path);
            }
            checkpoint_manifest_fini(&m);
        }
    }
}

void checkpoint_keep_tidy(const struct checkpoint_save *save, uint64_t step, int is_whole)
{
    const struct job *job = save->cfg->job;
    struct checkpoint_entries entries;
    char stem[CHECKPOINT_STEM_MAX];
    checkpoint_keep_stem(save, step, stem);
    ms_file_clear(stem);
    if (checkpoint_list(save->cfg->folder, job->checkpoint_prefix, &entries, NULL) == 0) {
        remove_lone(save, &entries);
        remove_oldest(save, &entries, step, is_whole);
        checkpoint_entries_fini(&entries);
    }
    checkpoint_remove_orphans(save->cfg->folder, job->checkpoint_prefix,
                              checkpoint_manifest_first_tag(&save->manifest));
}

/* ---- for want of room ---- */

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

int checkpoint_keep_give_way(struct checkpoint_save *save, uint64_t step)
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
