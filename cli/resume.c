/* resume.c - the checkpoint that `msctl run --resume` goes on from */
#include "cli/resume.h"

#include "libworker/data/data.h"
#include "libworker/train/checkpoint_folder.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search {
    const struct cli *cli;
    char *job;                 /* what decides its bits */
    struct data_identity data; /* what its ranks will train on; no rows: not known here */
    int64_t steps_per_epoch;   /* ... with them; 0: not known */
    struct ms_err first;       /* why the newest of them is not it */
    size_t n, n_damaged, n_others;
};

static void note(struct search *s, const struct ms_err *why)
{
    if (s->first.code == 0) {
        s->first = *why;
    }
}

/* Of a single one the refusal says it. */
static void note_damaged(struct search *s, const struct ms_err *why, int is_last)
{
    s->n_damaged++;
    note(s, why);
    if (s->n > 1) {
        cli_say(s->cli, "%s%s", why->text, is_last ? "" : "; an older one is looked for");
    }
}

/* A rank would refuse it, too, but only once the whole cluster stands. */
static int check_length(const struct job *job, const char *path,
                        const struct checkpoint_manifest *m, struct ms_err *err)
{
    const uint64_t steps = (uint64_t)job->steps;
    if (steps > 0 && m->step > steps) {
        return ms_fail(
            err, MS_E_REFUSED,
            "--resume: %.200s is of step %llu, and this job ends with step %llu: give it "
            "more steps, or name an older checkpoint",
            path, (unsigned long long)m->step, (unsigned long long)steps);
    }
    return m->epoch <= job->epochs
               ? MS_OK
               : ms_fail(err, MS_E_REFUSED,
                         "--resume: %.200s is of epoch %lld, and this job ends with epoch %lld: "
                         "give it more epochs, or name an older checkpoint",
                         path, (long long)m->epoch, (long long)job->epochs);
}

static int take(const char *path, struct checkpoint_manifest *m, struct resume_point *ret,
                struct ms_err *err)
{
    char *real = realpath(path, NULL);
    int fits = real != NULL && strlen(real) <= MS_PATH_MAX;
    if (fits) {
        snprintf(ret->path, sizeof(ret->path), "%s", real);
        ret->step = m->step;
        ret->epoch = m->epoch;
        ret->step_in_epoch = m->step_in_epoch;
        ret->seconds = m->seconds;
        ret->plan = m->plan;
        m->plan = NULL;
    }
    free(real);
    return fits ? MS_OK : ms_fail(err, MS_E_INVALID, "the path of %.200s is too long", path);
}

/* 1: it is the one. */
static int try_one(struct search *s, const struct job *job, const char *path, int is_last,
                   struct resume_point *ret, struct ms_err *err)
{
    struct checkpoint_manifest m;
    struct ms_err why = {0, ""};
    if (checkpoint_read(path, CHECKPOINT_NAMED, &m, &why) < 0) {
        note_damaged(s, &why, is_last);
        return 0;
    }
    int rc = 0;
    if (checkpoint_job_compare(m.job, s->job, path, &why) < 0 ||
        (s->data.rows > 0 &&
         checkpoint_data_compare(&m, &s->data, s->steps_per_epoch, path, &why) < 0)) {
        s->n_others++;
        note(s, &why);
    } else if (check_length(job, path, &m, &why) < 0) {
        *err = why;
        rc = MS_E_REFUSED;
    } else if (checkpoint_verify(path, CHECKPOINT_NAMED, &m, &why) < 0) {
        note_damaged(s, &why, is_last);
    } else {
        rc = take(path, &m, ret, err);
        rc = rc == MS_OK ? 1 : rc;
    }
    checkpoint_manifest_fini(&m);
    return rc;
}

static int fail_none(const struct search *s, const char *place, struct ms_err *err)
{
    return s->n == 0   ? ms_fail(err, MS_E_REFUSED,
                                 "no checkpoint in %.200s: no file called <prefix>-<step>.json, "
                                   "nor in a folder there; a job writes some where it has the key "
                                   "checkpoint",
                                 place)
           : s->n == 1 ? ms_fail(err, MS_E_REFUSED, "--resume: %.400s", s->first.text)
                       : ms_fail(err, MS_E_REFUSED,
                                 "none of the %zu checkpoints in %.80s can be resumed (%zu "
                                 "damaged, %zu of other trainings); the newest: %.200s",
                                 s->n, place, s->n_damaged, s->n_others, s->first.text);
}

/* What is wrong with them the ranks say, who need them. */
static void look_at_data(struct search *s, const struct job *job)
{
    struct data_source *source = NULL;
    struct loader_info info;
    if (data_open(&job->dataset, &source, NULL) < 0) {
        return;
    }
    const struct loader_config cfg = {.source = source,
                                      .transforms = job->transforms,
                                      .n_transforms = job->n_transforms,
                                      .batch = job->batch_size,
                                      .drop_remainder = job->drop_remainder,
                                      .world = job->mode == JOB_STAND_ALONE ? 1 : job->workers,
                                      .epochs = job->epochs};
    if (data_identify(source, &s->data, NULL) < 0) {
        s->data.rows = 0;
    } else if (loader_measure(&cfg, &info, NULL) == 0) {
        s->steps_per_epoch = info.steps_per_epoch;
    }
    data_close(source);
}

int resume_find(const struct cli *cli, const char *place, const struct job *job,
                struct resume_point *ret, struct ms_err *err)
{
    struct checkpoint_entries entries;
    struct search s = {.cli = cli, .job = checkpoint_job_text(job)};
    if (s.job == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to look for checkpoints");
    }
    int rc = checkpoint_search(place, &entries, err);
    if (rc < 0) {
        free(s.job);
        return rc == MS_E_NOT_FOUND
                   ? ms_fail(err, MS_E_REFUSED, "--resume: there is no %.200s", place)
                   : rc;
    }
    s.n = entries.n;
    if (s.n > 0) {
        look_at_data(&s, job);
    }
    for (size_t i = 0; rc == 0 && i < s.n; i++) {
        rc = try_one(&s, job, entries.entries[i].path, i + 1 == s.n, ret, err);
    }
    rc = rc == 0 ? fail_none(&s, place, err) : rc;
    checkpoint_entries_fini(&entries);
    free(s.job);
    return rc < 0 ? rc : MS_OK;
}
