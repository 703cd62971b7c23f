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

/* n: it is none of them. */
static size_t place_of(const struct best_list *list, uint64_t step, double value)
{
    size_t place = 0;
    while (place < list->n &&
           (list->ones[place].step != step || list->ones[place].value != value)) {
        place++;
    }
    return place;
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

/* ---- what lies there ---- */

static int find_best(const struct train *train, struct best_file *ret)
{
    char path[PATH_ROOM];
    put_path(train, TRAIN_BEST_FILE, path);
    return best_file_read(path, ret) && strcmp(ret->training, training_of(train)) == 0 &&
           strcmp(ret->best.metric, job_judge_metric(&train->cfg.job->best)) == 0;
}

int best_is_here(const struct train *train, uint64_t step, double value)
{
    struct best_file there;
    return find_best(train, &there) && there.best.step == step && there.best.value == value;
}

/* Their files say how good they are. Of a job without a tag only this process knows which are its.
 */
static void look(const struct train *train, struct best_list *ret)
{
    const char *metric = job_judge_metric(&train->cfg.job->best);
    const int wants_more = job_judge_wants_more(&train->cfg.job->best);
    struct best_list list = {.is_found = 1, .seen = train->kept.seen};
    struct best_file best;
    struct saved_best *files = NULL;
    size_t n = 0;
    if (training_of(train)[0] == '\0') {
        *ret = train->kept;
        return;
    }
    if (best_files_look(train->cfg.run_dir, training_of(train), metric, &files, &n) == 0) {
        for (size_t i = 0; i < n; i++) {
            best_take(&list, MS_BEST_MAX + 1, wants_more, files[i].step, files[i].value);
        }
        free(files);
    }
    if (find_best(train, &best)) {
        best_take(&list, MS_BEST_MAX + 1, wants_more, best.best.step, best.best.value);
    }
    *ret = list;
}

/* With what was measured here just now, whatever lies there of the same step; NULL: nothing was. */
static void look_with(const struct train *train, const struct best_one *mine, struct best_list *ret)
{
    look(train, ret);
    if (mine != NULL) {
        best_take(ret, keeps(train), job_judge_wants_more(&train->cfg.job->best), mine->step,
                  mine->value);
    }
}

/* ---- a file takes its place ---- */

enum { PUT_TRIES = 8 }; /* each time another process, that woke up, writes just then */

struct put {
    const char *step; /* its name for the moment */
    const char *path; /* that it is to have */
    struct best_one one;
    size_t places;               /* ... if it is one of so many */
    const struct best_one *mine; /* as look_with */
};

/* ret is what lies there then, with it where it has a place among that; MS_E_ABORTED: it has none.
 * MS_E_NOT_FOUND: another process took it away, and does the same. */
static int put(const struct train *train, const struct put *put, struct best_list *ret,
               struct ms_err *err)
{
    char step[PATH_ROOM];
    put_path(train, put->step, step);
    best_files_clear(train->cfg.run_dir, put->step);
    look_with(train, put->mine, ret);
    const size_t place = place_of(ret, put->one.step, put->one.value);
    int rc = place < put->places
                 ? ms_file_move(step, put->path, err)
                 : ms_fail(err, MS_E_ABORTED, "better ones than of step %" PRIu64 " are kept",
                           put->one.step);
    if (rc < 0) {
        (void)unlink(step);
    }
    return rc;
}

/* Another name of the file `from`; which by now may be one of another step. */
static int put_link(const struct train *train, const char *from, struct put *what,
                    struct ms_err *err)
{
    struct best_list list;
    char name[BEST_NAME_MAX];
    char step[PATH_ROOM];
    struct best_file file;
    int rc = best_files_draw(name, err);
    if (rc < 0) {
        return rc;
    }
    put_path(train, name, step);
    what->step = name;
    rc = ms_file_link(from, step, err);
    if (rc < 0) {
        return rc;
    }
    if (!best_file_read(step, &file) || file.best.step != what->one.step) {
        (void)unlink(step);
        return ms_fail(err, MS_E_NOT_FOUND, "%s is another one now", from);
    }
    return put(train, what, &list, err);
}

/* The best one has a name without a step. Of several it is one more of the same file, which no byte
 * is written for; where the file system has no such names, a file of its own. Between the two names
 * a kill leaves that of the one before, which who comes next finds. */
static int lead_to_best(const struct train *train, const struct best_one *mine, struct ms_err *err)
{
    char own[PATH_ROOM];
    char best[PATH_ROOM];
    struct best_list list;
    int rc = MS_E_ABORTED;
    put_path(train, TRAIN_BEST_FILE, best);
    for (int i = 0; (rc == MS_E_ABORTED || rc == MS_E_NOT_FOUND) && i < PUT_TRIES; i++) {
        look_with(train, mine, &list);
        if (list.n == 0 || best_is_here(train, list.ones[0].step, list.ones[0].value)) {
            return MS_OK;
        }
        struct put what = {.path = best, .one = list.ones[0], .places = 1, .mine = mine};
        put_path_of(train, what.one.step, own);
        rc = put_link(train, own, &what, err);
    }
    return rc;
}

/* By the name that people know. */
static void name_file(const char *step, const char *path, struct ms_err *err)
{
    char text[MS_ERR_TEXT_MAX];
    const size_t n = strlen(step);
    snprintf(text, sizeof(text), "%s", ms_err_text(err));
    if (strncmp(text, step, n) == 0) {
        ms_fail(err, ms_err_code(err), "%s%s", strrchr(path, '/') + 1, text + n);
    }
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

static int save_as(struct train *train, const struct model_copy *copy, const struct best_one *mine,
                   const char *path, size_t places, struct ms_err *err)
{
    char name[BEST_NAME_MAX];
    char step[PATH_ROOM];
    int rc = MS_E_NOT_FOUND;
    for (int i = 0; rc == MS_E_NOT_FOUND && i < PUT_TRIES; i++) {
        rc = best_files_draw(name, err);
        if (rc == MS_OK) {
            const struct put what = {name, path, *mine, places, mine};
            put_path(train, name, step);
            rc = save(train, copy, step, mine->value, err);
            if (rc < 0) {
                name_file(step, path, err);
            }
            rc = rc < 0 ? rc : put(train, &what, &train->kept, err);
        }
    }
    return rc;
}

static int save_several(struct train *train, const struct model_copy *copy,
                        const struct best_one *mine, struct ms_err *err)
{
    char path[PATH_ROOM];
    put_path_of(train, mine->step, path);
    int rc = save_as(train, copy, mine, path, keeps(train), err);
    if (rc < 0) {
        return rc;
    }
    rc = lead_to_best(train, mine, err);
    if (rc == MS_E_UNSUPPORTED && place_of(&train->kept, mine->step, mine->value) > 0) {
        return MS_OK; /* it has a file of its own, which stays the best */
    }
    if (rc < 0 && rc != MS_E_UNSUPPORTED && rc != MS_E_ABORTED) {
        (void)unlink(path);
    }
    return rc;
}

static int save_mine(struct train *train, const struct best_one *mine, struct ms_err *err)
{
    char path[PATH_ROOM];
    struct model_copy *copy = NULL;
    int rc = model_copy_make(train->replica, mine->step, &copy, err);
    if (rc < 0) {
        return rc;
    }
    rc = keeps(train) > 1 ? save_several(train, copy, mine, err) : MS_E_UNSUPPORTED;
    if (rc == MS_E_UNSUPPORTED) {
        put_path(train, TRAIN_BEST_FILE, path);
        rc = save_as(train, copy, mine, path, 1, err);
    }
    model_copy_destroy(copy);
    return rc;
}

/* Not the one that another process has written there since: it is looked at where nobody else does
 * anything to it. */
static void remove_one(const struct train *train, const struct best_one *one)
{
    char name[BEST_NAME_MAX];
    char path[PATH_ROOM];
    char step[PATH_ROOM];
    struct best_file file;
    if (best_files_draw(name, NULL) < 0) {
        return;
    }
    put_path_of(train, one->step, path);
    put_path(train, name, step);
    if (rename(path, step) != 0) {
        return;
    }
    if (!best_file_read(step, &file) || file.best.value != one->value) {
        (void)ms_file_link(step, path, NULL); /* also where it could not be read just now */
    }
    (void)unlink(step);
}

/* What has no place any more. True: some went. */
static int remove_rest(struct train *train)
{
    struct best_list *kept = &train->kept;
    const size_t before = kept->n;
    while (kept->n > keeps(train)) {
        remove_one(train, &kept->ones[--kept->n]);
    }
    return kept->n < before;
}

/* It was among them with another value, of another evaluation, and is not any more. */
static void remove_former(const struct train *train, const struct best_list *before,
                          const struct best_one *mine)
{
    for (size_t i = 0; i < before->n; i++) {
        if (before->ones[i].step == mine->step) {
            remove_one(train, &before->ones[i]);
        }
    }
    (void)lead_to_best(train, mine, NULL);
}

/* ---- what lay there ---- */

/* A job that kept one file may be resumed as one that keeps several: then it is the first. */
static void name_best_by_step(const struct train *train, const struct best_file *best)
{
    char own[PATH_ROOM];
    char path[PATH_ROOM];
    struct put what = {
        .path = own, .one = {best->best.step, best->best.value}, .places = keeps(train)};
    put_path_of(train, best->best.step, own);
    put_path(train, TRAIN_BEST_FILE, path);
    if (keeps(train) > 1 && access(own, F_OK) != 0) {
        (void)put_link(train, path, &what, NULL);
    }
}

/* Processes before this one may have kept some; of which one that was killed, or had a higher
 * best.keep, left more than there are to be. */
static void find_kept(struct train *train)
{
    struct best_list *kept = &train->kept;
    struct best_file best;
    if (kept->is_found || training_of(train)[0] == '\0') {
        return;
    }
    best_files_clear(train->cfg.run_dir, NULL); /* of one that slept, or was killed */
    look(train, kept);
    const int has_best = find_best(train, &best);
    if (has_best) {
        name_best_by_step(train, &best);
    }
    if (kept->n > 0 && (!has_best || kept->ones[0].step != best.best.step)) {
        (void)lead_to_best(train, NULL, NULL);
    }
    (void)remove_rest(train);
}

/* ---- after an evaluation ---- */

/* Weights that are lost are better, for good. */
static int is_second_to_unkept(const struct train *train, const struct best_one *one)
{
    const struct best_one *unkept = &train->unkept;
    const int wants_more = job_judge_wants_more(&train->cfg.job->best);
    return unkept->step != 0 && unkept->step != one->step && unkept->value != one->value &&
           is_before(wants_more, unkept, one);
}

static void forget_unkept(struct train *train, uint64_t step)
{
    if (train->unkept.step == step) {
        train->unkept = (struct best_one){0, 0};
    }
}

int best_say_unkept(const struct train *train, char *buf, size_t size)
{
    const struct best_one *unkept = &train->unkept;
    struct best_file there = {.best = {.step = 0}};
    const int has_best = find_best(train, &there);
    const struct best_one best = {there.best.step, there.best.value};
    if (unkept->step == 0 || unkept->step == train->progress.step ||
        (has_best && !is_second_to_unkept(train, &best))) {
        return 0;
    }
    const int n =
        snprintf(buf, size, "the best weights, of step %" PRIu64 " (%s %.6g), are not kept",
                 unkept->step, job_judge_metric(&train->cfg.job->best), unkept->value);
    if (has_best && n > 0 && (size_t)n < size) {
        snprintf(buf + n, size - (size_t)n, ": %s has those of step %" PRIu64 " (%.6g)",
                 TRAIN_BEST_FILE, best.step, best.value);
    }
    return 1;
}

static void say_kept(struct train *train, const struct best_one *one)
{
    char name[BEST_NAME_MAX];
    const size_t place = place_of(&train->kept, one->step, one->value);
    const char *metric = job_judge_metric(&train->cfg.job->best);
    const int is_second = is_second_to_unkept(train, one);
    if (place == 0 && is_second) {
        rank_log_say(&train->log,
                     "%s is %.6g after step %" PRIu64 ", the best of what is kept (it was %.6g "
                     "after step %" PRIu64 ", whose weights are not): kept in %s\n",
                     metric, one->value, one->step, train->unkept.value, train->unkept.step,
                     TRAIN_BEST_FILE);
    } else if (place == 0) {
        rank_log_say(&train->log,
                     "%s is %.6g after step %" PRIu64 ", the best so far: kept in %s\n", metric,
                     one->value, one->step, TRAIN_BEST_FILE);
    } else {
        rank_log_say(
            &train->log, "%s is %.6g after step %" PRIu64 ", number %zu of %s: kept in %s\n",
            metric, one->value, one->step, place + 1,
            is_second ? "what is kept" : "the best so far", best_file_name(one->step, name));
    }
}

/* It has its place in the list already, which was as before. Where the disk is full the worst one,
 * which goes anyway, goes first: the best one never does. */
static int save_one(struct train *train, const struct best_list *before,
                    const struct best_one *mine, struct ms_err *err)
{
    const int is_second = is_second_to_unkept(train, mine);
    const int is_best = !is_second && place_of(&train->kept, mine->step, mine->value) == 0;
    char text[MS_ERR_TEXT_MAX];
    struct ms_err why = {0, ""};
    int went = 0;
    int rc = save_mine(train, mine, &why);
    if (rc < 0 && rc != MS_E_ABORTED && keeps(train) > 1 && remove_rest(train)) {
        went = 1;
        rc = save_mine(train, mine, &why);
    }
    if (rc == 0) {
        (void)remove_rest(train);
        forget_unkept(train, mine->step);
        say_kept(train, mine);
        return MS_OK;
    }
    if (rc == MS_E_ABORTED) {
        return MS_OK; /* another process keeps better ones: kept has them now */
    }
    if (went) {
        forget(&train->kept, mine->step);
    } else {
        train->kept = *before; /* the files are those still */
    }
    train->unkept = is_second ? train->unkept : *mine;
    snprintf(text, sizeof(text), "the weights of step %" PRIu64 ", %s so far, are not kept: %.250s",
             mine->step, is_best ? "the best" : "among the best", ms_err_text(&why));
    train_note(train, text);
    return ms_fail(err, rc, "%s", ms_err_text(&why));
}

int best_keep(struct train *train, double value, struct ms_err *err)
{
    const struct job *job = train->cfg.job;
    const struct best_one mine = {train->progress.step, value};
    struct best_list *kept = &train->kept;
    int rc = MS_OK;
    find_kept(train);
    if (kept->seen == mine.step || place_of(kept, mine.step, value) < kept->n) {
        kept->seen = mine.step;
        return MS_OK;
    }
    const struct best_list before = *kept;
    const size_t place =
        best_take(kept, keeps(train), job_judge_wants_more(&job->best), mine.step, value);
    if (place < keeps(train)) {
        rc = save_one(train, &before, &mine, err);
    } else if (kept->n < before.n) {
        remove_former(train, &before, &mine);
    }
    if (rc == MS_OK) {
        kept->seen = mine.step;
    }
    return rc;
}
