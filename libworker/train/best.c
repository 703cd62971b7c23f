/* best.c - the weights of the best evaluations of a training are kept */
#include "libworker/train/best.h"

#include "libworker/train/best_files.h"
#include "libworker/train/model_copy.h"
#include "libworker/train/train_impl.h"
#include "proto/file_write.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- which ---- */

static void forget(struct best_list *list, uint64_t step)
{
    for (size_t i = list->n; i-- > 0;) {
        if (list->ones[i].step == step) {
            list->n--;
            memmove(&list->ones[i], &list->ones[i + 1], (list->n - i) * sizeof(list->ones[0]));
        }
    }
}

static int is_before(int wants_more, const struct best_one *a, const struct best_one *b)
{
    return a->value != b->value ? (a->value > b->value) == (wants_more != 0) : a->step < b->step;
}

size_t best_take(struct best_list *list, size_t keep, int wants_more, uint64_t step, double value)
{
    const struct best_one one = {step, value};
    size_t place = 0;
    forget(list, step);
    while (place < list->n && is_before(wants_more, &list->ones[place], &one)) {
        place++;
    }
    if (place < keep) {
        assert(list->n < MS_ARRAY_SIZE(list->ones));
        memmove(&list->ones[place + 1], &list->ones[place],
                (list->n - place) * sizeof(list->ones[0]));
        list->ones[place] = one;
        list->n++;
    }
    return place;
}

static int has(const struct best_list *list, uint64_t step, double value)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->ones[i].step == step && list->ones[i].value == value) {
            return 1;
        }
    }
    return 0;
}

/* ---- the files ---- */

enum { PATH_ROOM = MS_PATH_MAX + BEST_NAME_MAX + 2 };

static void put_path(const struct train *train, const char *name, char ret[PATH_ROOM])
{
    snprintf(ret, PATH_ROOM, "%s/%s", train->cfg.run_dir, name);
}

static void put_path_of(const struct train *train, uint64_t step, char ret[PATH_ROOM])
{
    char name[BEST_NAME_MAX];
    put_path(train, best_file_name(step, name), ret);
}

/* Of the training, whichever of its jobs writes. */
static const char *training_of(const struct train *train)
{
    return train->first_tag[0] != '\0' ? train->first_tag : train->job_tag;
}

static size_t keeps(const struct train *train)
{
    return (size_t)train->cfg.job->best_keep;
}

/* The best one has a name without a step. Of several it is one more of the same file, which no byte
 * is written for; where the file system has no such names, a file of its own. Between the two names
 * a kill leaves that of the one before, which who comes next finds. */
static int lead_to_best(const struct train *train, struct ms_err *err)
{
    char own[PATH_ROOM];
    char best[PATH_ROOM];
    put_path_of(train, train->kept.ones[0].step, own);
    put_path(train, TRAIN_BEST_FILE, best);
    return ms_file_link(own, best, err);
}

static int save(const struct train *train, const struct model_copy *copy, const char *path,
                double value_kept, struct ms_err *err)
{
    char value[32];
    snprintf(value, sizeof(value), "%.17g", value_kept);
    const char *const more[] = {"metric",   job_judge_metric(&train->cfg.job->best),
                                "value",    value,
                                "training", training_of(train)};
    return model_copy_save_with(copy, path, more, 3, err);
}

static int save_several(const struct train *train, const struct model_copy *copy, size_t place,
                        struct ms_err *err)
{
    char path[PATH_ROOM];
    const struct best_one *one = &train->kept.ones[place];
    put_path_of(train, one->step, path);
    int rc = save(train, copy, path, one->value, err);
    if (rc < 0) {
        return rc;
    }
    rc = lead_to_best(train, err);
    if (rc == MS_E_UNSUPPORTED && place > 0) {
        return MS_OK; /* it has a file of its own, which stays the best */
    }
    if (rc < 0 && rc != MS_E_UNSUPPORTED) {
        (void)unlink(path);
    }
    return rc;
}

/* kept has it at that place already. */
static int save_at(const struct train *train, size_t place, struct ms_err *err)
{
    char path[PATH_ROOM];
    struct model_copy *copy = NULL;
    const struct best_one *one = &train->kept.ones[place];
    int rc = model_copy_make(train->replica, one->step, &copy, err);
    if (rc < 0) {
        return rc;
    }
    rc = keeps(train) > 1 ? save_several(train, copy, place, err) : MS_E_UNSUPPORTED;
    if (rc == MS_E_UNSUPPORTED) {
        put_path(train, TRAIN_BEST_FILE, path);
        rc = save(train, copy, path, one->value, err);
    }
    model_copy_destroy(copy);
    return rc;
}

/* What has no place any more. True: some went. */
static int remove_rest(struct train *train)
{
    struct best_list *kept = &train->kept;
    char path[PATH_ROOM];
    const size_t before = kept->n;
    while (kept->n > keeps(train)) {
        put_path_of(train, kept->ones[--kept->n].step, path);
        (void)unlink(path);
    }
    return kept->n < before;
}

/* It was among them with another value, of another evaluation, and is not any more. */
static void remove_one(const struct train *train, uint64_t step)
{
    char path[PATH_ROOM];
    put_path_of(train, step, path);
    (void)unlink(path);
    (void)lead_to_best(train, NULL);
}

/* ---- what lay there ---- */

static int find_best(const struct train *train, struct best_file *ret)
{
    char path[PATH_ROOM];
    put_path(train, TRAIN_BEST_FILE, path);
    return best_file_read(path, ret) && strcmp(ret->training, training_of(train)) == 0 &&
           strcmp(ret->best.metric, job_judge_metric(&train->cfg.job->best)) == 0;
}

/* A job that kept one file may be resumed as one that keeps several: then it is the first. */
static void name_best_by_step(const struct train *train, uint64_t step)
{
    char own[PATH_ROOM];
    char best[PATH_ROOM];
    put_path_of(train, step, own);
    put_path(train, TRAIN_BEST_FILE, best);
    if (keeps(train) > 1 && access(own, F_OK) != 0) {
        (void)ms_file_link(best, own, NULL);
    }
}

/* Processes before this one may have kept some: their files say how good they are. */
static void find_kept(struct train *train)
{
    const struct job_judge *judge = &train->cfg.job->best;
    const int wants_more = job_judge_wants_more(judge);
    struct best_list *kept = &train->kept;
    struct best_file best;
    struct saved_best *files = NULL;
    size_t n = 0;
    if (kept->is_found || training_of(train)[0] == '\0') {
        return;
    }
    kept->is_found = 1;
    const int has_best = find_best(train, &best);
    if (best_files_look(train->cfg.run_dir, training_of(train), job_judge_metric(judge), &files,
                        &n) == 0) {
        for (size_t i = 0; i < n; i++) {
            best_take(kept, MS_BEST_MAX + 1, wants_more, files[i].step, files[i].value);
        }
        free(files);
    }
    if (has_best) {
        best_take(kept, MS_BEST_MAX + 1, wants_more, best.best.step, best.best.value);
        name_best_by_step(train, best.best.step);
    }
    if (kept->n > 0 && keeps(train) > 1 && (!has_best || kept->ones[0].step != best.best.step)) {
        (void)lead_to_best(train, NULL);
    }
}

/* ---- after an evaluation ---- */

static void say_kept(struct train *train, size_t place)
{
    char name[BEST_NAME_MAX];
    const struct best_one *one = &train->kept.ones[place];
    const char *metric = job_judge_metric(&train->cfg.job->best);
    if (place == 0) {
        rank_log_say(&train->log,
                     "%s is %.6g after step %" PRIu64 ", the best so far: kept in %s\n", metric,
                     one->value, one->step, TRAIN_BEST_FILE);
    } else {
        rank_log_say(&train->log,
                     "%s is %.6g after step %" PRIu64 ", number %zu of the best so far: kept in "
                     "%s\n",
                     metric, one->value, one->step, place + 1, best_file_name(one->step, name));
    }
}

/* It has its place in the list already, which was as before. Where the disk is full the worst one,
 * which goes anyway, goes first: the best one never does. */
static void save_one(struct train *train, const struct best_list *before, size_t place)
{
    const uint64_t step = train->progress.step;
    char text[MS_TEXT_MAX];
    struct ms_err err = {0, ""};
    int went = 0;
    int rc = save_at(train, place, &err);
    if (rc < 0 && keeps(train) > 1 && remove_rest(train)) {
        went = 1;
        rc = save_at(train, place, &err);
    }
    if (rc == 0) {
        (void)remove_rest(train);
        say_kept(train, place);
        return;
    }
    if (went) {
        forget(&train->kept, step);
    } else {
        train->kept = *before; /* the files are those still */
        train->kept.seen = step;
    }
    snprintf(text, sizeof(text), "the weights of step %" PRIu64 ", %s so far, are not kept: %.250s",
             step, place == 0 ? "the best" : "among the best", ms_err_text(&err));
    train_note(train, text);
}

void best_keep(struct train *train, double value)
{
    const struct job *job = train->cfg.job;
    const uint64_t step = train->progress.step;
    struct best_list *kept = &train->kept;
    find_kept(train);
    if (kept->seen == step || !isfinite(value) || has(kept, step, value)) {
        kept->seen = step;
        return;
    }
    const struct best_list before = *kept;
    const size_t place =
        best_take(kept, keeps(train), job_judge_wants_more(&job->best), step, value);
    kept->seen = step;
    if (place < keeps(train)) {
        save_one(train, &before, place);
    } else if (kept->n < before.n) {
        remove_one(train, step);
    }
}
