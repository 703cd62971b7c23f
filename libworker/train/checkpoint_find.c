/* checkpoint_find.c - which checkpoints a training can go on from, and taking one */
#include "libworker/data/allowed.h"
#include "libworker/data/path.h"
#include "libworker/data/safetensors.h"
#include "libworker/train/checkpoint.h"
#include "libworker/train/checkpoint_impl.h"
#include "libworker/train/checkpoint_state.h"
#include "libworker/train/lent.h"
#include "libworker/train/resumed_plan.h"
#include "libworker/train/train_impl.h"
#include "proto/folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    LENT_WAIT_MS = 10000, /* who submits lends once the job has its number: a moment later */
    LENT_LOOK_MS = 20,
};

void checkpoint_list_fini(struct checkpoint_list *list)
{
    free(list->infos);
    list->infos = NULL;
    list->n = 0;
}

struct passed { /* over, in the job's own folder */
    size_t n;
    struct ms_err why; /* of the newest */
};

struct search {
    struct train *train;
    char *job; /* what decides its bits */
    const char *tag;
    int is_silent;
    struct checkpoint_list list;
    /* in its own folder */
    struct ms_err mixed_up;  /* of the first of this job's own that is of other data */
    struct passed runs;      /* other runs', that it could go on from */
    struct passed trainings; /* ... and that it could not */
    /* in the place that `resume` names */
    char place[MS_PATH_MAX + 1];
    int is_lent;                     /* it lies in another job's folder, and that one lends it */
    struct checkpoint_entries named; /* none where named_rc < 0: named_why */
    int named_rc;
    struct ms_err named_why;
    struct ms_err refusal; /* of the first of them that is another training's */
    struct ms_err too_far; /* ... that is behind this job's last step */
    struct passed damaged;
};

static void note_about(const struct search *s, const struct ms_err *why, const char *what)
{
    char text[MS_ERR_TEXT_MAX];
    if (!s->is_silent) {
        snprintf(text, sizeof(text), "%.338s; %s", ms_err_text(why), what);
        train_note(s->train, text);
    }
}

static int has_other_training(const struct train *train, const struct checkpoint_manifest *m)
{
    const char *plan = train->known.plan_sha256;
    return plan[0] != '\0' && strcmp(m->plan_sha256, plan) != 0 &&
           (train->plan_text == NULL || !resumed_plan_is_same(m->plan, train->plan_text));
}

/* By what it would be trained on, once that is known. */
static int check_plan(const struct train *train, const char *path,
                      const struct checkpoint_manifest *m, struct ms_err *err)
{
    return has_other_training(train, m)
               ? ms_fail(err, MS_E_REFUSED,
                         "%.160s was trained by plan %.12s, and this job has plan %.12s: its bits "
                         "would be others; msctl run --resume brings the plan, --plan takes it",
                         path, m->plan_sha256, train->known.plan_sha256)
               : 0;
}

/* The words of msctl run --resume. */
static int check_length(const struct train *train, const char *path,
                        const struct checkpoint_manifest *m, struct ms_err *err)
{
    const uint64_t total = train->known.steps_total;
    const int64_t steps = train->cfg.job->steps;
    return total == 0 || m->step <= total
               ? 0
               : ms_fail(err, MS_E_REFUSED,
                         "%.200s is of step %" PRIu64 ", and this job ends with step %" PRIu64
                         ": give it more %s, or name an older checkpoint",
                         path, m->step, total,
                         steps > 0 && (uint64_t)steps == total ? "steps" : "epochs");
}

/* Before they are open nobody knows. */
static int check_data(const struct train *train, const char *path,
                      const struct checkpoint_manifest *m, struct ms_err *err)
{
    return train->data.training.rows == 0
               ? 0
               : checkpoint_data_compare(m, &train->data.training, train->info.steps_per_epoch,
                                         path, err);
}

static void keep_first(struct ms_err *first, const struct ms_err *why)
{
    *first = ms_err_code(first) == 0 ? *why : *first;
}

static void pass_over(struct passed *passed, const struct ms_err *why)
{
    passed->n++;
    keep_first(&passed->why, why);
}

/* Is this training the one? rc, why: what its job and its plan say. */
static int judge_own(struct search *s, const char *path, const struct checkpoint_manifest *m,
                     int rc, struct ms_err *why)
{
    if (rc < 0) {
        pass_over(&s->trainings, why);
        return rc;
    }
    if (s->tag[0] == '\0' || strcmp(m->tag, s->tag) != 0) {
        const int is_for_us =
            check_data(s->train, path, m, NULL) == 0 && check_length(s->train, path, m, NULL) == 0;
        rc = ms_fail(why, MS_E_REFUSED, "checkpoint %.200s is of another run of the job", path);
        pass_over(is_for_us ? &s->runs : &s->trainings, why);
        return rc;
    }
    rc = check_data(s->train, path, m, why);
    if (rc < 0) {
        keep_first(&s->mixed_up, why);
        return rc;
    }
    rc = check_length(s->train, path, m, why);
    if (rc < 0) {
        pass_over(&s->trainings, why);
    }
    return rc;
}

static int judge_named(struct search *s, const char *path, const struct checkpoint_manifest *m,
                       int rc, struct ms_err *why)
{
    rc = rc < 0 ? rc : check_data(s->train, path, m, why);
    if (rc < 0) {
        keep_first(&s->refusal, why);
        return rc;
    }
    rc = check_length(s->train, path, m, why);
    if (rc < 0) {
        keep_first(&s->too_far, why);
    }
    return rc;
}

/* 0: the manifest is of this training. */
static int judge(struct search *s, const char *path, enum checkpoint_owner owner,
                 const struct checkpoint_manifest *m)
{
    struct ms_err why = {0, ""};
    const int is_named = owner == CHECKPOINT_NAMED && checkpoint_is_named(s->place, &s->named);
    int rc = checkpoint_compare(m, s->train->cfg.job, s->job, is_named, path, &why);
    rc = rc < 0 ? rc : check_plan(s->train, path, m, &why);
    return owner == CHECKPOINT_OWN ? judge_own(s, path, m, rc, &why)
                                   : judge_named(s, path, m, rc, &why);
}

static int add(struct search *s, const char *path, enum checkpoint_owner owner,
               const struct checkpoint_manifest *m, struct ms_err *err)
{
    struct checkpoint_list *list = &s->list;
    struct checkpoint_info *more = realloc(list->infos, (list->n + 1) * sizeof(*more));
    if (more == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the checkpoints that were found");
    }
    list->infos = more;
    struct checkpoint_info *info = &more[list->n++];
    memset(info, 0, sizeof(*info));
    info->step = m->step;
    info->owner = owner;
    info->is_lent = owner == CHECKPOINT_NAMED && s->is_lent;
    info->manifest = *m;
    info->manifest.job = info->manifest.plan = NULL;
    snprintf(info->path, sizeof(info->path), "%s", path);
    return 0;
}

/* What is lent is read as the job's own: the lists of data do not hold for folders of jobs. */
static enum checkpoint_owner reads_as(enum checkpoint_owner owner, int is_lent)
{
    return is_lent ? CHECKPOINT_OWN : owner;
}

static int look_at(struct search *s, const char *path, enum checkpoint_owner owner,
                   struct ms_err *err)
{
    struct checkpoint_manifest m;
    struct ms_err why = {0, ""};
    const int is_lent = owner == CHECKPOINT_NAMED && s->is_lent;
    const int read = checkpoint_read(path, reads_as(owner, is_lent), &m, &why);
    if (read == MS_E_NOMEM) { /* says nothing of it */
        return ms_fail(err, read, "%s", ms_err_text(&why));
    }
    if (read < 0) {
        note_about(s, &why, "an older one is looked for");
        if (owner == CHECKPOINT_NAMED) {
            pass_over(&s->damaged, &why);
        }
        return 0;
    }
    int rc = judge(s, path, owner, &m) == 0 ? add(s, path, owner, &m, err) : 0;
    checkpoint_manifest_fini(&m);
    return rc;
}

static int look_at_all(struct search *s, const struct checkpoint_entries *entries,
                       enum checkpoint_owner owner, struct ms_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < entries->n; i++) {
        rc = look_at(s, entries->entries[i].path, owner, err);
    }
    return rc;
}

/* ---- what the job's own folder has of others ---- */

static int is_same_folder(const char *a, const char *b)
{
    struct stat x;
    struct stat y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Does `resume` name some that lie there? */
static int names_folder(const struct search *s, const char *folder)
{
    char last[MS_PATH_MAX + 1] = "";
    char of[MS_PATH_MAX + 1];
    for (size_t i = 0; i < s->named.n; i++) {
        (void)ms_folder_of(s->named.entries[i].path, of, sizeof(of));
        if (strcmp(of, last) != 0 && is_same_folder(of, folder)) {
            return 1;
        }
        snprintf(last, sizeof(last), "%s", of);
    }
    return 0;
}

static void tell_passed(const struct search *s, const struct passed *passed, const char *more)
{
    char what[96];
    if (passed->n == 1) {
        snprintf(what, sizeof(what), "it is passed over%s", more);
    } else {
        snprintf(what, sizeof(what), "it and %zu more are passed over%s", passed->n - 1, more);
    }
    if (passed->n > 0) {
        note_about(s, &passed->why, what);
    }
}

/* Once in a rank's life. Who has named that place knows what lies there. */
static void tell_all_passed(const struct search *s, const char *folder)
{
    if (s->is_silent || s->train->has_told_passed || s->runs.n + s->trainings.n == 0 ||
        names_folder(s, folder)) {
        return;
    }
    s->train->has_told_passed = 1;
    tell_passed(s, &s->runs, ", --resume would take it");
    tell_passed(s, &s->trainings, "");
}

/* Who may not look into a folder is no worse than who lacks it: another rank has what lies there.
 * Rank 0, who has to write there, was told so already. */
static int see_nothing(const struct search *s, int rc, const struct ms_err *why, struct ms_err *err)
{
    if (rc != MS_E_REFUSED) {
        return ms_fail(err, rc, "%s", ms_err_text(why));
    }
    note_about(s, why, "another rank may");
    return 0;
}

/* Of this job's, from before all its ranks were lost. */
static int find_own(struct search *s, struct ms_err *err)
{
    struct checkpoint_entries entries;
    char folder[MS_PATH_MAX + 1];
    const struct job *job = s->train->cfg.job;
    if (!job->has_checkpoint || checkpoint_folder_of(s->train, folder, NULL) < 0) {
        return 0; /* it has none, or its writer says why there can be none */
    }
    struct ms_err why = {0, ""};
    int rc = checkpoint_list(folder, job->checkpoint_prefix, &entries, &why);
    if (rc < 0) {
        return see_nothing(s, rc, &why, err);
    }
    rc = look_at_all(s, &entries, CHECKPOINT_OWN, err);
    checkpoint_entries_fini(&entries);
    if (rc == 0) {
        tell_all_passed(s, folder);
    }
    return rc < 0 || s->mixed_up.code == 0 /* else the job is right, and this host's data are not */
               ? rc
               : ms_fail(err, s->mixed_up.code, "%s", s->mixed_up.text);
}

/* ---- those that the job names ---- */

/* As lent_look, into s->place; waits for the word of who lends, once in a rank's life. */
static int await_lent(struct search *s, struct ms_err *err)
{
    static const struct timespec pause = {0, LENT_LOOK_MS * 1000000L};
    const struct train_config *cfg = &s->train->cfg;
    const struct lent_borrower us = {cfg->run_dir != NULL ? cfg->run_dir : "", cfg->job_id, s->tag};
    int rc = us.run_dir[0] != '\0' ? lent_look(s->place, &us, s->place, err) : 0;
    for (int ms = 0; rc == MS_E_REFUSED && ms < LENT_WAIT_MS && !s->train->has_awaited_lent &&
                     train_check_abort(s->train, NULL) == 0;
         ms += LENT_LOOK_MS) {
        (void)nanosleep(&pause, NULL);
        rc = lent_look(s->place, &us, s->place, err);
    }
    s->train->has_awaited_lent = 1;
    return rc;
}

/* May this job read in the place: as everybody may, or for it was lent? */
static int check_place(struct search *s, struct ms_err *err)
{
    struct ms_err why = {0, ""};
    const int rc = data_path_check(s->place, &why);
    const int lent = rc < 0 ? await_lent(s, err) : 0;
    s->is_lent = lent > 0;
    return lent == 0 && rc < 0 ? ms_fail(err, rc, "%s", why.text) : lent < 0 ? lent : 0;
}

static void search_named(struct search *s)
{
    const char *resume = s->train->cfg.job->resume;
    if (resume[0] == '\0') {
        return;
    }
    int rc = data_path_expand(resume, s->place, sizeof(s->place), &s->named_why);
    rc = rc < 0 ? rc : check_place(s, &s->named_why);
    rc = rc < 0 ? rc : checkpoint_search(s->place, &s->named, &s->named_why);
    s->named_rc = rc;
    if (rc < 0) {
        data_path_hide(s->place, resume, &s->named_why);
    }
}

/* Where no rank has one, each says why it has none. */
static void note_found(struct search *s, int has_some)
{
    const char *resume = s->train->cfg.job->resume;
    struct ms_err found = {0, ""};
    if (s->is_silent) {
        return;
    }
    if (s->named_rc == MS_E_NOT_FOUND) {
        ms_fail(&found, MS_E_NOT_FOUND, "there is no such place here");
    } else if (s->named_rc < 0) {
        found = s->named_why;
    } else if (s->named.n == 0) {
        ms_fail(&found, MS_E_NOT_FOUND,
                "no file there is called <prefix>-<step>.json, nor in a folder there");
    } else if (!has_some && s->damaged.n > 0) {
        ms_fail(&found, MS_E_INVALID, "%zu of its %zu checkpoints %s damaged; the newest: %.200s",
                s->damaged.n, s->named.n, s->damaged.n == 1 ? "is" : "are", s->damaged.why.text);
    }
    data_path_hide(s->place, resume, &found);
    snprintf(s->train->resume_found, sizeof(s->train->resume_found), "%s", found.text);
}

/* Where the job has begun already, and saved, others may have come further meanwhile, or lie there
 * instead: what another rank's host has of that only the ranks together know. */
static void refuse_named(struct search *s, size_t n_own)
{
    const int is_short = s->too_far.code != 0;
    const int is_other = s->refusal.code != 0 && s->list.n == n_own;
    if (is_short || is_other) {
        ms_fail(&s->list.refusal, MS_E_INVALID, "resume: %.340s",
                is_short ? s->too_far.text : s->refusal.text);
    }
}

/* What lacks for a moment says nothing of the place; who may not look is no worse than who lacks
 * it. */
static int see_no_place(struct search *s, struct ms_err *err)
{
    if (s->named_rc == MS_E_NOMEM || s->named_rc == MS_E_REFUSED) {
        return see_nothing(s, s->named_rc, &s->named_why, err);
    }
    s->list.refusal = s->named_why;
    return 0;
}

/* On this host there may be nothing of them: another rank has them then. */
static int find_named(struct search *s, struct ms_err *err)
{
    const size_t n_own = s->list.n;
    s->list.has_own = n_own > 0;
    if (s->train->cfg.job->resume[0] == '\0') {
        return 0;
    }
    int rc = s->named_rc == 0 ? look_at_all(s, &s->named, CHECKPOINT_NAMED, err) : s->named_rc;
    note_found(s, s->list.n > n_own);
    if (s->named_rc == MS_E_NOT_FOUND) {
        return 0;
    }
    if (s->named_rc < 0) {
        return see_no_place(s, err);
    }
    if (rc == 0) {
        refuse_named(s, n_own);
    }
    return rc;
}

static int by_owner_and_step(const void *a, const void *b)
{
    const struct checkpoint_info *x = a;
    const struct checkpoint_info *y = b;
    return x->owner != y->owner ? (int)x->owner - (int)y->owner
           : x->step != y->step ? (x->step < y->step ? 1 : -1)
                                : 0;
}

static int is_same_file(const struct checkpoint_info *a, const struct checkpoint_info *b)
{
    struct stat st_a;
    struct stat st_b;
    return stat(a->path, &st_a) == 0 && stat(b->path, &st_b) == 0 && st_a.st_dev == st_b.st_dev &&
           st_a.st_ino == st_b.st_ino;
}

/* What `resume` names may lie among the job's own: once is enough to read it. */
static void drop_twins(struct checkpoint_list *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct checkpoint_info *info = &list->infos[i];
        size_t twin = 0;
        while (twin < n &&
               (list->infos[twin].step != info->step || !is_same_file(&list->infos[twin], info))) {
            twin++;
        }
        if (twin == n) {
            list->infos[n++] = *info;
        }
    }
    list->n = n;
}

static int find(struct train *train, int is_silent, struct checkpoint_list *ret, struct ms_err *err)
{
    struct search s = {.train = train,
                       .job = checkpoint_job_text(train->cfg.job),
                       .tag = train->cfg.job_tag != NULL ? train->cfg.job_tag : "",
                       .is_silent = is_silent};
    search_named(&s);
    int rc = s.job != NULL ? find_own(&s, err)
                           : ms_fail(err, MS_E_NOMEM, "no memory to look for checkpoints");
    rc = rc < 0 ? rc : find_named(&s, err);
    checkpoint_entries_fini(&s.named);
    free(s.job);
    if (rc < 0) {
        checkpoint_list_fini(&s.list);
        return rc;
    }
    if (s.list.n > 0) {
        qsort(s.list.infos, s.list.n, sizeof(*s.list.infos), by_owner_and_step);
    }
    drop_twins(&s.list);
    *ret = s.list;
    return 0;
}

int checkpoint_find(struct train *train, struct checkpoint_list *ret, struct ms_err *err)
{
    return find(train, 0, ret, err);
}

int checkpoint_find_manifest(struct train *train, struct checkpoint_manifest *ret)
{
    struct checkpoint_list list = {.n = 0};
    int is_found = 0;
    if (train->cfg.job->resume[0] != '\0' && find(train, 1, &list, NULL) == 0 && list.n > 0) {
        const struct checkpoint_info *first = &list.infos[0];
        is_found =
            checkpoint_read(first->path, reads_as(first->owner, first->is_lent), ret, NULL) == 0;
    }
    checkpoint_list_fini(&list);
    return is_found;
}

/* ---- loading ---- */

int checkpoint_load(struct train *train, const struct checkpoint_info *info, struct ms_err *err)
{
    struct checkpoint_state state;
    struct safetensors *file = NULL;
    char data[CHECKPOINT_PATH_MAX];
    checkpoint_data_path(info->path, &info->manifest, data);
    int rc = checkpoint_state_init(&state, train->replica, &train->cfg.job->optimizer, err);
    if (rc < 0) {
        return rc;
    }
    rc = checkpoint_state_check_size(&state, info->manifest.data_size, data, err);
    const enum checkpoint_owner owner = reads_as(info->owner, info->is_lent);
    rc = rc < 0 ? rc : checkpoint_verify(info->path, owner, &info->manifest, err);
    rc = rc < 0                    ? rc
         : owner == CHECKPOINT_OWN ? safetensors_open_own(data, &file, err)
                                   : safetensors_open(data, &file, err);
    rc = rc < 0 ? rc : checkpoint_state_load(&state, train->replica, file, data, err);
    safetensors_close(file);
    checkpoint_state_fini(&state);
    return rc;
}
