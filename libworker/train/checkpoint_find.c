/* checkpoint_find.c - which checkpoints a training can go on from, and taking one */
#include "libworker/data/path.h"
#include "libworker/data/safetensors.h"
#include "libworker/train/checkpoint.h"
#include "libworker/train/checkpoint_impl.h"
#include "libworker/train/checkpoint_state.h"
#include "libworker/train/resumed_plan.h"
#include "libworker/train/train_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void checkpoint_list_fini(struct checkpoint_list *list)
{
    free(list->infos);
    list->infos = NULL;
    list->n = 0;
}

struct search {
    struct train *train;
    char *job; /* what decides its bits */
    const char *tag;
    int is_silent;
    struct checkpoint_list list;
    struct ms_err mixed_up; /* of the first of this job's own that is of other data */
    struct ms_err refusal;  /* of the first that `resume` names and that is another training's */
};

static void note_about(const struct search *s, const struct ms_err *why, const char *what)
{
    char text[MS_ERR_TEXT_MAX];
    if (!s->is_silent) {
        snprintf(text, sizeof(text), "%.300s; %s", ms_err_text(why), what);
        checkpoint_note(s->train, text);
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
    const char *plan = train->known.plan_sha256;
    const uint64_t total = train->known.steps_total;
    if (has_other_training(train, m)) {
        return ms_fail(err, MS_E_REFUSED,
                       "%.160s was trained by plan %.12s, and this job has plan %.12s: its bits "
                       "would be others; msctl run --resume brings the plan, --plan takes it",
                       path, m->plan_sha256, plan);
    }
    return total == 0 || m->step <= total
               ? 0
               : ms_fail(err, MS_E_REFUSED,
                         "%.200s is of step %" PRIu64 ", and this job ends with step %" PRIu64
                         ": give it more epochs, or steps",
                         path, m->step, total);
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

/* 0: the manifest is of this training. */
static int judge(struct search *s, const char *path, enum checkpoint_owner owner,
                 const struct checkpoint_manifest *m)
{
    struct ms_err why = {0, ""};
    int rc = checkpoint_job_compare(m->job, s->job, path, &why);
    rc = rc < 0 ? rc : check_plan(s->train, path, m, &why);
    if (rc == 0 && owner == CHECKPOINT_OWN && (s->tag[0] == '\0' || strcmp(m->tag, s->tag) != 0)) {
        rc = ms_fail(&why, MS_E_REFUSED, "checkpoint %.200s is of another run of the job", path);
    }
    const int is_ours = rc == 0;
    rc = is_ours ? check_data(s->train, path, m, &why) : rc;
    if (rc < 0 && is_ours && owner == CHECKPOINT_OWN) {
        s->mixed_up = s->mixed_up.code == 0 ? why : s->mixed_up;
    } else if (rc < 0 && owner == CHECKPOINT_OWN) {
        note_about(s, &why, "it is passed over, --resume would take it");
    } else if (rc < 0 && s->refusal.code == 0) {
        s->refusal = why;
    }
    return rc;
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
    info->manifest = *m;
    info->manifest.job = info->manifest.plan = NULL;
    snprintf(info->path, sizeof(info->path), "%s", path);
    return 0;
}

static int look_at(struct search *s, const char *path, enum checkpoint_owner owner,
                   struct ms_err *err)
{
    struct checkpoint_manifest m;
    struct ms_err why = {0, ""};
    if (checkpoint_read(path, owner, &m, &why) < 0) {
        note_about(s, &why, "an older one is looked for");
        return 0;
    }
    int rc = judge(s, path, owner, &m) == 0 ? add(s, path, owner, &m, err) : 0;
    checkpoint_manifest_fini(&m);
    return rc;
}

static int look_at_all(struct search *s, struct checkpoint_entries *entries,
                       enum checkpoint_owner owner, struct ms_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < entries->n; i++) {
        rc = look_at(s, entries->entries[i].path, owner, err);
    }
    checkpoint_entries_fini(entries);
    return rc;
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
    return rc < 0 || s->mixed_up.code == 0 /* else the job is right, and this host's data are not */
               ? rc
               : ms_fail(err, s->mixed_up.code, "%s", s->mixed_up.text);
}

/* On this host there may be nothing of them: another rank has them then. */
static int find_named(struct search *s, struct ms_err *err)
{
    struct checkpoint_entries entries;
    char path[MS_PATH_MAX + 1];
    const char *resume = s->train->cfg.job->resume;
    if (resume[0] == '\0') {
        return 0;
    }
    int rc = data_path_expand(resume, path, sizeof(path), err);
    rc = rc < 0 ? rc : data_path_check(path, err);
    if (rc < 0) {
        data_path_hide(path, resume, err);
        return rc == MS_E_NOT_FOUND ? 0 : rc;
    }
    struct ms_err why = {0, ""};
    rc = checkpoint_search(path, &entries, &why);
    if (rc < 0) {
        data_path_hide(path, resume, &why);
        return rc == MS_E_NOT_FOUND ? 0 : see_nothing(s, rc, &why, err);
    }
    const size_t before = s->list.n;
    rc = look_at_all(s, &entries, CHECKPOINT_NAMED, err);
    return rc < 0 || s->list.n > before || s->refusal.code == 0
               ? rc
               : ms_fail(err, MS_E_INVALID, "resume: %.340s", s->refusal.text);
}

static int by_step(const void *a, const void *b)
{
    const struct checkpoint_info *x = a;
    const struct checkpoint_info *y = b;
    return x->step != y->step ? (x->step < y->step ? 1 : -1) : (int)x->owner - (int)y->owner;
}

static int find(struct train *train, int is_silent, struct checkpoint_list *ret, struct ms_err *err)
{
    struct search s = {.train = train,
                       .job = checkpoint_job_text(train->cfg.job),
                       .tag = train->cfg.job_tag != NULL ? train->cfg.job_tag : "",
                       .is_silent = is_silent};
    int rc = s.job != NULL ? find_own(&s, err)
                           : ms_fail(err, MS_E_NOMEM, "no memory to look for checkpoints");
    rc = rc < 0 ? rc : find_named(&s, err);
    free(s.job);
    if (rc < 0) {
        checkpoint_list_fini(&s.list);
        return rc;
    }
    if (s.list.n > 0) {
        qsort(s.list.infos, s.list.n, sizeof(*s.list.infos), by_step);
    }
    *ret = s.list;
    return 0;
}

int checkpoint_find(struct train *train, struct checkpoint_list *ret, struct ms_err *err)
{
    return find(train, 0, ret, err);
}

int checkpoint_find_manifest(struct train *train, struct checkpoint_manifest *ret)
{
    struct checkpoint_list list = {NULL, 0};
    int is_found = 0;
    if (train->cfg.job->resume[0] != '\0' && find(train, 1, &list, NULL) == 0 && list.n > 0) {
        is_found = checkpoint_read(list.infos[0].path, list.infos[0].owner, ret, NULL) == 0;
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
    int rc = checkpoint_verify(info->path, info->owner, &info->manifest, err);
    rc = rc < 0 ? rc
                : checkpoint_state_init(&state, train->replica, &train->cfg.job->optimizer, err);
    if (rc < 0) {
        return rc;
    }
    rc = info->owner == CHECKPOINT_OWN ? safetensors_open_own(data, &file, err)
                                       : safetensors_open(data, &file, err);
    rc = rc < 0 ? rc : checkpoint_state_load(&state, train->replica, file, data, err);
    safetensors_close(file);
    checkpoint_state_fini(&state);
    return rc;
}
