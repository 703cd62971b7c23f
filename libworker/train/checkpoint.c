/* checkpoint.c - a training's checkpoints: when one is due, and what the ends of a training save */
#include "libworker/train/checkpoint.h"

#include "libworker/data/allowed.h"
#include "libworker/train/checkpoint_impl.h"
#include "libworker/train/checkpoint_writer.h"
#include "libworker/train/state.h"
#include "libworker/train/train_impl.h"
#include "proto/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct checkpoint {
    char folder[MS_PATH_MAX + 1];
    struct checkpoint_writer *writer;
    int is_settled; /* what its predecessor left in the folder was looked at */
    int is_due;     /* and the writer was busy */
    double since_s; /* when the last one was taken, or the training began */
    uint64_t taken; /* the step of the last one; 0: none */
    uint64_t found; /* ... of the newest that lay there when this process came; 0: none */
};

int checkpoint_folder_of(const struct train *train, char ret[MS_PATH_MAX + 1], struct ms_err *err)
{
    const char *directory = train->cfg.job->checkpoint_directory;
    const char *run_dir = train->cfg.run_dir != NULL ? train->cfg.run_dir : "";
    const int is_absolute = directory[0] == '/';
    if (is_absolute && !allowed_is_open()) {
        return ms_fail(err, MS_E_REFUSED,
                       "checkpoint.directory %.160s: this worker writes for others, and only below "
                       "a job's own folder; give a relative directory",
                       directory);
    }
    if (!is_absolute && run_dir[0] == '\0') {
        return ms_fail(err, MS_E_INVALID,
                       "checkpoint.directory %.160s is relative, and this training has no run "
                       "directory; give an absolute path",
                       directory);
    }
    const int n = is_absolute ? snprintf(ret, MS_PATH_MAX + 1, "%s", directory)
                              : snprintf(ret, MS_PATH_MAX + 1, "%s/%s", run_dir, directory);
    return n > 0 && n <= MS_PATH_MAX - CHECKPOINT_NAME_MAX
               ? job_check_output(train->cfg.job, run_dir, err)
               : ms_fail(err, MS_E_INVALID, "checkpoint.directory: the path %.80s... is too long",
                         ret);
}

static int writes(const struct train *train)
{
    return (train->cfg.rank == 0 || train->saves) && train->cfg.job->has_checkpoint;
}

uint64_t checkpoint_spare_bytes(const struct train *train)
{
    return writes(train) ? state_bytes(train->replica) : 0;
}

int checkpoint_open(struct train *train, struct ms_err *err)
{
    if (!writes(train) || train->checkpoint != NULL) {
        return 0;
    }
    struct checkpoint *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for checkpoints");
    }
    const struct checkpoint_writer_config cfg = {
        .replica = train->replica,
        .job = train->cfg.job,
        .folder = c->folder,
        .tag = train->cfg.job_tag != NULL ? train->cfg.job_tag : "",
        .first_tag = train->first_tag,
        .plan = train->plan_text,
        .plan_sha256 = train->known.plan_sha256,
        .dataset = train->data.training,
        .has_spare = train->has_spare,
        .on_saved = train->cfg.on_saved,
        .arg = train->cfg.arg};
    struct cpuset here;
    int rc = checkpoint_folder_of(train, c->folder, err);
    train_cpus_step_out(&train->cpus, &here); /* its thread is none of the team */
    rc = rc < 0 ? rc : checkpoint_writer_create(&cfg, &c->writer, err);
    train_cpus_step_back(&here);
    if (rc < 0) {
        checkpoint_close(c);
        return rc;
    }
    c->since_s = ms_mono_s();
    train->checkpoint = c;
    return 0;
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    if (checkpoint != NULL) {
        checkpoint_writer_destroy(checkpoint->writer);
        free(checkpoint);
    }
}

/* ---- saving ---- */

static void tell(const struct train *train)
{
    char words[MS_ERR_TEXT_MAX];
    if (checkpoint_writer_words(train->checkpoint->writer, words, sizeof(words))) {
        train_note(train, words);
    }
}

static int is_due_step(const struct train *train)
{
    const struct job *job = train->cfg.job;
    const struct train_progress *progress = &train->progress;
    const int64_t steps = job->checkpoint_every_steps;
    const int64_t epochs = job->checkpoint_every_epochs;
    return (steps > 0 && progress->step % (uint64_t)steps == 0) ||
           (epochs > 0 && progress->step_in_epoch == progress->steps_per_epoch &&
            progress->epoch % epochs == 0);
}

static int is_due(const struct train *train, double now_s)
{
    const struct checkpoint *c = train->checkpoint;
    const int64_t seconds = train->cfg.job->checkpoint_every_seconds;
    return c->is_due || is_due_step(train) ||
           (seconds > 0 && now_s - c->since_s >= (double)seconds);
}

static void take(struct train *train, double seconds)
{
    struct checkpoint *c = train->checkpoint;
    const struct train_progress *progress = &train->progress;
    const struct checkpoint_facts facts = {.step = progress->step,
                                           .epoch = progress->epoch,
                                           .step_in_epoch = progress->step_in_epoch,
                                           .loss = progress->loss,
                                           .evaluates = train->evaluates,
                                           .stopped = train->stopped,
                                           .seconds = seconds,
                                           .watch = train->watch};
    c->is_due = !checkpoint_writer_take(c->writer, &facts);
    if (!c->is_due) {
        c->taken = progress->step;
        c->since_s = ms_mono_s();
    }
}

static double seconds_at(const struct train *train, double now_s)
{
    return train->seconds + now_s - train->run_begun_s;
}

void checkpoint_offer(struct train *train)
{
    if (train->checkpoint == NULL) {
        return;
    }
    const double now_s = ms_mono_s();
    tell(train);
    if (is_due(train, now_s)) {
        take(train, seconds_at(train, now_s));
    }
}

/* Who made the commit may have died before the copy, or before the manifest: nobody offers that
 * step again. One that is there may be what was passed over as damaged, where all went on from
 * another one: the writer reads it, beside the training, and lets it be if it is whole. And who
 * took the state from others, on a host that has none yet, may lose all of them before the next one
 * is due: what is on the host of the rank 0 before it is not here. */
static int is_owed(const struct train *train)
{
    const struct checkpoint *c = train->checkpoint;
    const uint64_t step = train->progress.step;
    if (step == 0 || c->taken == step) {
        return 0;
    }
    return is_due_step(train) ? train->known.state_from == MS_STATE_CHECKPOINT ||
                                    !checkpoint_writer_has(c->writer, step)
                              : train->known.state_from == MS_STATE_PULLED &&
                                    checkpoint_writer_newest(c->writer, step) == 0;
}

/* Negative: the folder is of no use to this training, whenever it tries. Of what may pass nothing
 * is said, and nothing is known of what lies there. */
static int look(const struct checkpoint *c, int *ret_is_known, struct ms_err *err)
{
    int rc = checkpoint_writer_make_folder(c->writer, err);
    if (rc == 0) {
        rc = checkpoint_writer_claim(c->writer, err);
        *ret_is_known = rc == 0;
        rc = rc == MS_E_REFUSED ? rc : 0;
    }
    return rc;
}

/* Did nobody hold the state when the ranks agreed? Then nothing is lost by an end before the first
 * step. */
static int begins(const struct train *train)
{
    const int is_kept = train->known.state_from == MS_STATE_KEPT;
    return train->known.state_from == MS_STATE_CHECKPOINT || (is_kept && train->progress.step == 0);
}

/* Where others hold the state they train on, and each write says why there is none. */
static int settle_first(struct train *train, struct ms_err *err)
{
    struct checkpoint *c = train->checkpoint;
    struct ms_err why = {0, ""};
    int is_known = 0;
    checkpoint_writer_descend(c->writer, train->first_tag); /* it is known since all agreed */
    int rc = look(c, &is_known, &why);
    if (rc < 0 && begins(train)) {
        *err = why;
        return rc;
    }
    if (is_known) {
        checkpoint_writer_tidy(c->writer, train->progress.step);
        c->found = checkpoint_writer_newest(c->writer, train->progress.step);
    }
    if (c->found > 0 && train->cfg.on_saved != NULL) {
        train->cfg.on_saved(train->cfg.arg, c->found);
    }
    c->is_settled = 1;
    return 0;
}

int checkpoint_settle(struct train *train, struct ms_err *err)
{
    struct checkpoint *c = train->checkpoint;
    int rc = c == NULL || c->is_settled ? 0 : settle_first(train, err);
    if (rc == 0 && c != NULL && is_owed(train)) {
        take(train, train->seconds);
    }
    return rc;
}

void checkpoint_finish(struct train *train)
{
    struct checkpoint *c = train->checkpoint;
    if (c == NULL) {
        return;
    }
    checkpoint_writer_wait(c->writer);
    /* that of the last step may have had no room when it was due; who ended early may be given more
     * patience */
    if ((train->stopped || train->is_early || c->is_due || is_due_step(train)) &&
        train->progress.step > 0 && checkpoint_writer_saved(c->writer) != train->progress.step) {
        take(train, seconds_at(train, ms_mono_s()));
        checkpoint_writer_wait(c->writer);
    }
    tell(train);
}

void checkpoint_leave(struct train *train)
{
    char words[MS_ERR_TEXT_MAX];
    if (train->checkpoint == NULL || !train->checkpoint->is_settled || train->progress.step == 0) {
        return;
    }
    train->checkpoint->is_due = 1;
    checkpoint_finish(train);
    if (checkpoint_kept(train, words, sizeof(words)) > 0) {
        train_note(train, words);
    }
}

int checkpoint_look(const struct train *train, struct ms_err *err)
{
    int is_known = 0;
    return train->checkpoint != NULL ? look(train->checkpoint, &is_known, err) : 0;
}

int checkpoint_kept(const struct train *train, char *ret, size_t size)
{
    const struct checkpoint *c = train->checkpoint;
    const uint64_t step = train->progress.step;
    const char *prefix = train->cfg.job->checkpoint_prefix;
    if (!train->cfg.job->has_checkpoint) {
        return 0;
    }
    if (c != NULL && step > 0 && checkpoint_writer_saved(c->writer) == step) {
        snprintf(ret, size, "step %" PRIu64 " is saved: %.200s/%s-%" PRIu64 ".json", step,
                 c->folder, prefix, step);
        return 1;
    }
    snprintf(ret, size, "step %" PRIu64 " is not saved: the log of rank %d says why", step,
             train->cfg.rank);
    return MS_E_IO;
}

uint64_t checkpoint_saved(const struct train *train)
{
    const struct checkpoint *c = train->checkpoint;
    const uint64_t saved = c != NULL ? checkpoint_writer_saved(c->writer) : 0;
    return saved > 0 || c == NULL ? saved : c->found;
}
