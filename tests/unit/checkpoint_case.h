/* checkpoint_case.h - small trainings that save checkpoints, and others that go on from them */
#ifndef CHECKPOINT_CASE_H
#define CHECKPOINT_CASE_H

#include "libworker/train/checkpoint.h"
#include "libworker/train/train_impl.h"
#include "tests/unit/train_case.h"

#include <inttypes.h>

#define CHECKPOINT_CASE_TAG "0123456789abcdef0123456789abcdef"

static char case_notes[4096]; /* all that was said since it was emptied */

static inline void case_on_note(void *arg, const char *text)
{
    size_t used = strlen(case_notes);
    (void)arg;
    snprintf(case_notes + used, sizeof(case_notes) - used, "%s\n", text);
}

static struct train *case_train; /* the one that runs */
static int case_is_hasty;        /* its steps do not wait for the writer */

/* Steps of microseconds are quicker than any disk: each due one is to be written. */
static inline void case_on_progress(void *arg, const struct train_progress *progress)
{
    (void)arg;
    (void)progress;
    if (case_train != NULL && !case_is_hasty) {
        checkpoint_finish(case_train);
    }
}

static inline struct train_config checkpoint_case_config(const struct job *job, const char *run_dir)
{
    struct train_config cfg = train_case_config(job, run_dir);
    cfg.job_tag = CHECKPOINT_CASE_TAG;
    cfg.on_note = case_on_note;
    cfg.on_progress = case_on_progress;
    return cfg;
}

/* Prepared, at step 0. */
static inline struct train *checkpoint_case_train(const struct job *job, const char *run_dir)
{
    struct train_config cfg = checkpoint_case_config(job, run_dir);
    struct train_info info;
    struct train *train = train_create(&cfg);
    ck_assert_ptr_nonnull(train);
    ck_ms_ok(train_prepare(train, &info, err));
    return train;
}

static inline struct train_result checkpoint_case_go(struct train *train)
{
    struct train_result result;
    case_train = train;
    ck_ms_ok(train_run(train, &result, err));
    case_train = NULL;
    return result;
}

/* To its end. */
static inline struct train_result checkpoint_case_run(const struct job *job, const char *run_dir)
{
    struct train *train = checkpoint_case_train(job, run_dir);
    const struct train_result result = checkpoint_case_go(train);
    train_destroy(train);
    return result;
}

/* As the agreement of ranks does it: state, position and flags of a checkpoint. */
static inline void checkpoint_case_stand(struct train *train, const struct checkpoint_info *info)
{
    const struct job *job = train->cfg.job;
    const int64_t per_epoch = train->info.steps_per_epoch;
    const struct loader_config cfg = {.source = train->source,
                                      .transforms = job->transforms,
                                      .n_transforms = job->n_transforms,
                                      .batch = job->batch_size,
                                      .drop_remainder = job->drop_remainder,
                                      .world = 1,
                                      .shuffle = job->dataset.shuffle,
                                      .seed = job->seed,
                                      .epochs = job->epochs,
                                      .first_epoch = (int64_t)info->step / per_epoch,
                                      .first_step = (int64_t)info->step % per_epoch,
                                      .depth = LOADER_DEPTH};
    ck_ms_ok(checkpoint_load(train, info, err));
    loader_destroy(train->loader);
    ck_ms_ok(loader_create(&cfg, &train->loader, err));
    train->progress.step = info->step;
    train->progress.epoch = info->manifest.epoch;
    train->progress.step_in_epoch = info->manifest.step_in_epoch;
    train->progress.loss = info->manifest.loss;
    train->evaluates = info->manifest.evaluates;
    ck_assert_int_eq(info->manifest.epoch, ((int64_t)info->step - 1) / per_epoch + 1);
    ck_assert_int_eq(info->manifest.step_in_epoch, ((int64_t)info->step - 1) % per_epoch + 1);
}

#endif
