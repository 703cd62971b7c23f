/* resume.c - the checkpoint that a job goes on from */
#include "cli/resume.h"

#include "libworker/data/data.h"
#include "libworker/train/checkpoint_folder.h"
#include "proto/folder.h"
#include "proto/text.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search {
    const struct cli *cli;
    char *job;                 /* what decides its bits */
    struct data_identity data; /* what its ranks will train on; no rows: not known here */
    int64_t steps_per_epoch;   /* ... with them; 0: not known */
    struct ms_err only;        /* why the single one is not it: of more than one it is said */
    size_t n, n_damaged, n_others;
    int is_named; /* itself, and not a folder with some */
};

enum { PLACE_MAX = 180 }; /* of a path in an error, which has more to say */

static void note_damaged(struct search *s, const struct ms_err *why, int is_last)
{
    s->n_damaged++;
    s->only = *why;
    if (s->n > 1) {
        cli_say(s->cli, "%s%s", why->text, is_last ? "" : "; an older one is looked for");
    }
}

/* Where descriptors or memory were short it may be whole: an older one would be the wrong one. */
static int pass_over(struct search *s, int rc, const struct ms_err *why, int is_last,
                     struct ms_err *err)
{
    if (rc == MS_E_NOMEM) {
        *err = *why;
        return rc;
    }
    note_damaged(s, why, is_last);
    return 0;
}

/* Of many, those of a whole training say the same. */
static void note_other(struct search *s, const struct ms_err *why)
{
    s->only = *why;
    if (s->n > 1 && s->n_others++ == 0) {
        cli_say(s->cli, "%s", why->text);
    }
}

/* A rank would refuse it, too, but only once the whole cluster stands. */
static int check_length(const struct job *job, const char *path,
                        const struct checkpoint_manifest *m, struct ms_err *err)
{
    char shown[PLACE_MAX];
    const uint64_t steps = (uint64_t)job->steps;
    ms_text_end(shown, sizeof(shown), path);
    if (steps > 0 && m->step > steps) {
        return ms_fail(err, MS_E_REFUSED,
                       "--resume: %s is of step %llu, and this job ends with step %llu: give it "
                       "more steps, or name an older checkpoint",
                       shown, (unsigned long long)m->step, (unsigned long long)steps);
    }
    return m->epoch <= job->epochs
               ? MS_OK
               : ms_fail(err, MS_E_REFUSED,
                         "--resume: %s is of epoch %lld, and this job ends with epoch %lld: "
                         "give it more epochs, or name an older checkpoint",
                         shown, (long long)m->epoch, (long long)job->epochs);
}

int resume_check(const struct job *job, const struct checkpoint_manifest *manifest,
                 const char *path, struct ms_err *err)
{
    char *text = checkpoint_job_text(job);
    int rc = text != NULL ? checkpoint_compare(manifest, job, text, 1, path, err)
                          : ms_fail(err, MS_E_NOMEM, "no memory to look at a checkpoint");
    free(text);
    return rc < 0 ? rc : check_length(job, path, manifest, err);
}

/* The folder is resolved, and not the manifest: where that is a link, its own name says its step,
 * and beside it lie its data. */
static int take(const char *path, struct checkpoint_manifest *m, struct resume_point *ret,
                struct ms_err *err)
{
    char folder[MS_PATH_MAX + 1];
    char *real = realpath(ms_folder_of(path, folder, sizeof(folder)), NULL);
    const char *above = real == NULL || strcmp(real, "/") == 0 ? "" : real;
    int fits = real != NULL && strlen(above) + 1 + strlen(ms_name_of(path)) <= MS_PATH_MAX;
    if (fits) {
        snprintf(ret->path, sizeof(ret->path), "%s/%s", above, ms_name_of(path));
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
    int rc = checkpoint_read(path, CHECKPOINT_NAMED, &m, &why);
    if (rc < 0) {
        return pass_over(s, rc, &why, is_last, err);
    }
    if (checkpoint_compare(&m, job, s->job, s->is_named, path, &why) < 0 ||
        (s->data.rows > 0 &&
         checkpoint_data_compare(&m, &s->data, s->steps_per_epoch, path, &why) < 0)) {
        note_other(s, &why);
    } else if (check_length(job, path, &m, &why) < 0) {
        *err = why;
        rc = MS_E_REFUSED;
    } else if ((rc = checkpoint_verify(path, CHECKPOINT_NAMED, &m, &why)) < 0) {
        rc = pass_over(s, rc, &why, is_last, err);
    } else {
        rc = take(path, &m, ret, err);
        rc = rc == MS_OK ? 1 : rc;
    }
    checkpoint_manifest_fini(&m);
    return rc;
}

/* Where the runs of this job have theirs, wherever each of them runs: "" where nothing is there. */
static const char *find_elsewhere(const struct job *job)
{
    struct checkpoint_entries entries = {NULL, 0};
    const char *directory = job->has_checkpoint ? job->checkpoint_directory : "";
    const int is_there = directory[0] == '/' &&
                         checkpoint_list(directory, NULL, &entries, NULL) == 0 && entries.n > 0;
    checkpoint_entries_fini(&entries);
    return is_there ? directory : "";
}

/* A path that does not fit is named by its key: half of one helps nobody. */
static int fail_empty(const struct job *job, const char *place, struct ms_err *err)
{
    char shown[PLACE_MAX];
    const char *elsewhere = find_elsewhere(job);
    if (elsewhere[0] != '\0') {
        const int fits = strlen(elsewhere) < PLACE_MAX;
        return ms_fail(err, MS_E_REFUSED,
                       "no checkpoint in %s: this job writes its own elsewhere (key "
                       "checkpoint.directory), and some are there: --resume %s",
                       ms_text_end(shown, PLACE_MAX / 2, place),
                       fits ? elsewhere : "with the path that it has");
    }
    return ms_fail(err, MS_E_REFUSED,
                   "no checkpoint in %s: no file called <prefix>-<step>.json, nor in a folder "
                   "there; a job writes some where it has the key checkpoint",
                   ms_text_end(shown, sizeof(shown), place));
}

static int fail_none(const struct search *s, const struct job *job, const char *place,
                     struct ms_err *err)
{
    char shown[PLACE_MAX];
    if (s->n == 0) {
        return fail_empty(job, place, err);
    }
    if (s->n == 1) {
        return ms_fail(err, MS_E_REFUSED, "--resume: %.338s%s", s->only.text,
                       s->n_damaged > 0 ? "; name another one, or begin anew" : "");
    }
    return ms_fail(err, MS_E_REFUSED,
                   "none of the %zu checkpoints in %s can be resumed (%zu damaged, %zu of other "
                   "trainings: see above); %s",
                   s->n, ms_text_end(shown, sizeof(shown), place), s->n_damaged, s->n_others,
                   s->n_others > 0 ? "give the job what those have, or begin anew"
                                   : "name another place, or begin anew");
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
                                      .accumulate = job->accumulate,
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

/* In a run directory a job may have its folder further below than a search looks. */
static int search_folder(const struct job *job, const char *place, struct checkpoint_entries *ret,
                         struct ms_err *err)
{
    char below[CHECKPOINT_PATH_MAX];
    int rc = checkpoint_search(place, ret, err);
    if (rc < 0 || ret->n > 0 || !job->has_checkpoint || job->checkpoint_directory[0] == '/') {
        return rc;
    }
    const int n = snprintf(below, sizeof(below), "%s/%s", place, job->checkpoint_directory);
    return n > 0 && (size_t)n < sizeof(below) ? checkpoint_list(below, NULL, ret, err) : 0;
}

/* "RUN/shapes-740", also with its end, of RUN/checkpoints: its manifest into named. */
static int is_among(const struct checkpoint_entries *there, const char *name,
                    char named[CHECKPOINT_PATH_MAX])
{
    char folder[CHECKPOINT_PATH_MAX];
    char last[CHECKPOINT_PATH_MAX] = "";
    for (size_t i = 0; i < there->n; i++) {
        const char *path = there->entries[i].path;
        char wanted[CHECKPOINT_PATH_MAX];
        if (strcmp(ms_name_of(path), name) == 0) {
            memcpy(named, path, CHECKPOINT_PATH_MAX);
            return 1;
        }
        ms_folder_of(path, folder, sizeof(folder));
        const int n = snprintf(wanted, sizeof(wanted), "%s/%s", folder, name);
        if (strcmp(folder, last) != 0 && n > 0 && (size_t)n < sizeof(wanted) &&
            checkpoint_find_named(wanted, named)) {
            return 1;
        }
        memcpy(last, folder, sizeof(last));
    }
    return 0;
}

/* Wherever below it lies: the path that can be named. */
static const char *show_newest(const struct checkpoint_entries *there, char *buf, size_t size)
{
    const char *path = there->entries[0].path;
    path += strncmp(path, "./", 2) == 0 ? 2 : 0;
    return ms_text_end(buf, size, strlen(path) < size ? path : ms_name_of(path));
}

static int fail_missing(const char *place, const struct checkpoint_entries *there,
                        struct ms_err *err)
{
    enum { SHOWN = 90, OLDEST_SHOWN = 40, NEWEST_SHOWN = 140 };
    char shown[PLACE_MAX];
    char oldest[OLDEST_SHOWN];
    char newest[NEWEST_SHOWN];
    if (there->n == 0) {
        ms_text_end(shown, sizeof(shown), place);
        return ms_fail(err, MS_E_REFUSED, "--resume: there is no %s", shown);
    }
    ms_text_end(shown, SHOWN, place);
    ms_text_end(oldest, sizeof(oldest), ms_name_of(there->entries[there->n - 1].path));
    show_newest(there, newest, sizeof(newest));
    return there->n == 1
               ? ms_fail(err, MS_E_REFUSED,
                         "--resume: there is no %s; in that folder, or below it, there is %s",
                         shown, newest)
               : ms_fail(err, MS_E_REFUSED,
                         "--resume: there is no %s; in that folder, or below it, there are %zu "
                         "checkpoints, from %s to %s",
                         shown, there->n, oldest, newest);
}

/* Of who names one of a run as if it lay in the run directory, or one that is not there. */
static int search_beside(const struct job *job, const char *place, struct checkpoint_entries *ret,
                         struct ms_err *err)
{
    struct checkpoint_entries there = {NULL, 0};
    char folder[MS_PATH_MAX + 1];
    char named[CHECKPOINT_PATH_MAX];
    (void)search_folder(job, ms_folder_of(place, folder, sizeof(folder)), &there, NULL);
    int rc = is_among(&there, ms_name_of(place), named) ? checkpoint_search(named, ret, err)
                                                        : fail_missing(place, &there, err);
    checkpoint_entries_fini(&there);
    return rc;
}

static int search_place(const struct job *job, const char *place, struct checkpoint_entries *ret,
                        struct ms_err *err)
{
    int rc = search_folder(job, place, ret, err);
    return rc == MS_E_NOT_FOUND ? search_beside(job, place, ret, err) : rc;
}

int resume_find(const struct cli *cli, const char *place, const struct job *job,
                struct resume_point *ret, struct ms_err *err)
{
    struct checkpoint_entries entries;
    struct search s = {.cli = cli, .job = checkpoint_job_text(job)};
    if (s.job == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to look for checkpoints");
    }
    int rc = search_place(job, place, &entries, err);
    if (rc < 0) {
        free(s.job);
        return rc;
    }
    s.n = entries.n;
    s.is_named = checkpoint_is_named(place, &entries);
    if (s.n > 0) {
        look_at_data(&s, job);
    }
    for (size_t i = 0; rc == 0 && i < s.n; i++) {
        rc = try_one(&s, job, entries.entries[i].path, i + 1 == s.n, ret, err);
    }
    rc = rc == 0 ? fail_none(&s, job, place, err) : rc;
    checkpoint_entries_fini(&entries);
    free(s.job);
    return rc < 0 ? rc : MS_OK;
}

int resume_is_key(const char *key_value)
{
    static const char key[] = "resume=";
    return strncmp(key_value, key, sizeof(key) - 1) == 0;
}

int resume_takes_place(const struct cli *cli, const struct cli_args *args, struct job *job,
                       struct ms_err *err)
{
    enum { BOTH_MAX = 120 }; /* of each place where there are two */
    char given[BOTH_MAX];
    char shown[PLACE_MAX];
    const char *values[CLI_GIVEN_MAX];
    const size_t n = cli_values(args, "set", values, CLI_GIVEN_MAX);
    if (job->resume[0] == '\0') {
        return MS_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (resume_is_key(values[i])) {
            return ms_fail(err, MS_E_INVALID,
                           "--resume %s: the job has the key resume, too, by --set resume=%s; "
                           "leave one of them out",
                           ms_text_end(given, sizeof(given), cli_value(args, "resume")),
                           ms_text_end(shown, BOTH_MAX, job->resume));
        }
    }
    cli_say(cli, "--resume takes the place of the key resume in the job's file, which is %s",
            ms_text_end(shown, sizeof(shown), job->resume));
    job->resume[0] = '\0';
    return MS_OK;
}

const char *resume_of(char *dst, size_t size, const Ms__JobInfo *job)
{
    json_t *spec = json_loadb((const char *)job->job_json.data, job->job_json.len, 0, NULL);
    const char *place = json_string_value(json_object_get(spec, "resume"));
    const int is_given = place != NULL && place[0] != '\0';
    if (is_given) {
        ms_text_copy(dst, size, place);
        ms_text_mend((uint8_t *)dst, strlen(dst), MS_TEXT_LINE);
    }
    json_decref(spec);
    return is_given ? dst : NULL;
}
