/* pass.c - a network and the data that it answers for, a shard at a time */
#include "libworker/infer/pass.h"

#include "libworker/train/cpus.h"
#include "libworker/train/evaluation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void note(void *arg, const char *text)
{
    struct pass_common *common = arg;
    if (common->cfg->on_note != NULL) {
        pthread_mutex_lock(&common->lock);
        common->cfg->on_note(common->cfg->arg, text);
        pthread_mutex_unlock(&common->lock);
    }
}

/* ---- data ---- */

static struct loader_config config_of(const struct pass *pass, int rank, int world,
                                      struct transform fixed[MS_TRANSFORMS_MAX])
{
    const struct evaluation_pass of = {.job = pass->common->cfg->job,
                                       .source = pass->source,
                                       .batch = pass->batch,
                                       .rank = rank,
                                       .world = world,
                                       .threads = pass->threads};
    return evaluation_loader(&of, fixed);
}

/* What the network was trained on, by the job alone; channels 0: it does not say. */
static int trained_shape(const struct job *job, struct data_shape *ret, struct ms_err *err)
{
    *ret = data_shape_of(&job->dataset);
    return ret->channels == 0 ? MS_OK
                              : transform_check(job->transforms, job->n_transforms, &ret->channels,
                                                &ret->height, &ret->width, err);
}

static int check_shape(const struct loader_info *have, const struct data_shape *want,
                       struct ms_err *err)
{
    const int is_known = want->channels > 0;
    const int is_like = have->channels == want->channels && have->height == want->height &&
                        have->width == want->width && have->target_width == want->target_width;
    return !is_known || is_like
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "its samples are %" PRId64 "x%" PRId64 "x%" PRId64 ", and the network was "
                         "trained on %" PRId64 "x%" PRId64 "x%" PRId64
                         "; name data like those of the job's dataset",
                         have->channels, have->height, have->width, want->channels, want->height,
                         want->width);
}

static int check_classes(const struct job *job, const struct loader_info *have, int64_t classes,
                         struct ms_err *err)
{
    const int wants_classes = job->loss == JOB_LOSS_SOFTMAX_CE;
    const int is_soft = wants_classes && have->target_width > 1;
    if (!is_soft && wants_classes != (have->classes > 0)) {
        return ms_fail(err, MS_E_INVALID, "its labels are %s, and those of the training %s",
                       have->classes > 0 ? "classes" : "numbers",
                       wants_classes ? "classes" : "numbers");
    }
    return have->classes <= classes
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "it has %" PRId64 " classes, and the network was trained on %" PRId64,
                         have->classes, classes);
}

static int fit_data(struct pass *pass, struct ms_err *err)
{
    const struct job *job = pass->common->cfg->job;
    struct data_shape trained;
    int rc = trained_shape(job, &trained, err);
    rc = rc < 0 ? rc : check_shape(&pass->info, &trained, err);
    if (rc < 0) {
        return rc;
    }
    const int64_t classes = job->classes > 0      ? job->classes
                            : trained.classes > 0 ? trained.classes
                                                  : pass->info.classes;
    rc = check_classes(job, &pass->info, classes, err);
    pass->info.classes = pass->info.classes > 0 ? classes : 0;
    return rc;
}

/* Predictions are of images in any folders. */
static int open_spec(struct pass *pass, const struct data_spec *spec, struct ms_err *err)
{
    const struct data_spec *trained = &pass->common->cfg->job->dataset;
    return pass->common->is_judged ? data_open_beside(spec, trained, &pass->source, err)
                                   : data_open_asked(spec, trained, &pass->source, err);
}

/* The training looks at its data, which need not be here. A program has one type for both. */
static int check_values(const struct pass *pass, struct ms_err *err)
{
    const struct job *job = pass->common->cfg->job;
    const struct data_spec *spec = &job->evaluate_dataset;
    const enum data_values trained = data_find_values(&job->dataset);
    const int has_one =
        job->dataset.kind == spec->kind && (spec->kind == DATA_PROGRAM || spec->kind == DATA_TEXT);
    if (pass->is_first && trained == DATA_VALUES_AUTO && !has_one) {
        const int has_bytes = data_get_info(pass->source)->dtype == MS_U8;
        char text[MS_TEXT_MAX];
        snprintf(text, sizeof(text),
                 "the job does not say whether bytes or floats were trained on "
                 "(dataset.values), and its data are not here to tell it: these are %s, and are "
                 "taken as they are",
                 has_bytes ? "bytes" : "floats");
        note(pass->common, text);
    }
    return data_check_values(spec->path, data_get_info(pass->source), trained, err);
}

static int open_source(struct pass *pass, struct ms_err *err)
{
    const struct data_spec *given = &pass->common->cfg->job->evaluate_dataset;
    struct data_spec *spec = malloc(sizeof(*spec)); /* too large for a stack */
    if (spec == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a data set");
    }
    *spec = *given;
    if (!pass->common->is_judged && spec->kind == DATA_IMAGE_FOLDER) {
        spec->shape.classes = 0;
    }
    spec->has_no_labels = pass->common->cfg->has_no_labels;
    const int may_lack =
        spec->kind == DATA_CSV || spec->kind == DATA_NUMPY || spec->kind == DATA_SAFETENSORS;
    spec->may_lack_labels = !pass->common->is_judged && may_lack && !spec->has_no_labels;
    int rc = !spec->has_no_labels || may_lack
                 ? open_spec(pass, spec, err)
                 : ms_fail(err, MS_E_INVALID,
                           "--no-labels is for data of kind csv, numpy and safetensors; images may "
                           "lie in one "
                           "folder, whatever its name");
    free(spec);
    return rc;
}

static int open_data(struct pass *pass, struct ms_err *err)
{
    struct transform fixed[MS_TRANSFORMS_MAX];
    int rc = open_source(pass, err);
    if (rc == MS_OK) {
        const struct loader_config cfg = config_of(pass, 0, 1, fixed);
        rc = loader_measure(&cfg, &pass->info, err);
    }
    rc = rc < 0 ? rc : fit_data(pass, err);
    rc = rc < 0 ? rc : check_values(pass, err);
    if (rc < 0) {
        return ms_err_prefix(err, "evaluate.dataset");
    }
    pass->rows = data_get_info(pass->source)->rows;
    return MS_OK;
}

/* ---- all of it ---- */

static int find_threads(struct pass *pass, struct ms_err *err)
{
    const struct train_config alone = {.job = pass->common->cfg->job, .world = 1};
    struct train_cpus cpus = {0};
    int rc = train_cpus_find(&alone, &cpus, err);
    pass->threads = cpus.threads;
    return rc;
}

static int open_net(struct pass *pass, struct ms_err *err)
{
    const struct infer_config *cfg = pass->common->cfg;
    const struct net_config of = {.job = cfg->job,
                                  .data = &pass->info,
                                  .batch = pass->batch,
                                  .weights = cfg->weights,
                                  .plan = cfg->plan,
                                  .threads = pass->threads,
                                  .on_note = pass->is_first ? note : NULL,
                                  .arg = pass->common};
    int rc = net_open(&of, &pass->net, err);
    if (rc == MS_OK) {
        pass->threads = net_threads(pass->net);
    }
    return rc;
}

int pass_open(struct pass *pass, struct pass_common *common, int is_first, struct ms_err *err)
{
    *pass = (struct pass){
        .common = common, .is_first = is_first, .batch = evaluation_batch(common->cfg->job)};
    int rc = find_threads(pass, err);
    rc = rc < 0 ? rc : open_data(pass, err);
    rc = rc < 0 ? rc : open_net(pass, err);
    if (rc < 0) {
        pass_close(pass);
    }
    return rc;
}

void pass_close(struct pass *pass)
{
    net_close(pass->net);
    data_close(pass->source);
    memset(pass, 0, sizeof(*pass));
}

/* ---- a shard ---- */

static void hear(const struct pass *pass)
{
    char line[MS_TEXT_MAX];
    while (data_hear(pass->source, line, sizeof(line))) {
        note(pass->common, line);
    }
}

int pass_verify(struct pass *pass, struct ms_err *err)
{
    int rc = pass->is_first ? data_verify(pass->source, err) : MS_OK; /* all have the same files */
    data_finish(pass->source);
    hear(pass);
    return rc;
}

static void add_progress(const struct pass *pass, int64_t rows)
{
    struct pass_common *common = pass->common;
    pthread_mutex_lock(&common->lock);
    common->done += rows;
    if (common->cfg->on_progress != NULL) {
        common->cfg->on_progress(common->cfg->arg, common->done, pass->rows);
    }
    pthread_mutex_unlock(&common->lock);
}

static int run_batches(struct pass *pass, struct loader *loader, pass_batch_fn *on_batch, void *arg,
                       struct ms_err *err)
{
    struct batch batch;
    struct plan_evaluated made;
    int rc = 1;
    while (rc == 1 && (rc = loader_next(loader, &batch, err)) == 1) {
        hear(pass);
        if (atomic_load(&pass->common->stop)) {
            loader_release(loader);
            return ms_fail(err, MS_E_ABORTED, "given up beside another one that failed");
        }
        int done = net_run(pass->net, &batch, &made, err);
        done = done < 0 ? done : on_batch(arg, &batch, &made, err);
        add_progress(pass, batch.rows);
        loader_release(loader);
        rc = done < 0 ? done : 1;
    }
    hear(pass);
    return rc;
}

int pass_run(struct pass *pass, int rank, int world, pass_batch_fn *on_batch, void *arg,
             struct ms_err *err)
{
    struct transform fixed[MS_TRANSFORMS_MAX];
    const struct loader_config cfg = config_of(pass, rank, world, fixed);
    struct loader *loader = NULL;
    int rc = loader_create(&cfg, &loader, err);
    rc = rc < 0 ? rc : run_batches(pass, loader, on_batch, arg, err);
    loader_destroy(loader);
    return rc;
}
