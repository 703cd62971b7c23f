/* msw.c - the public library msworker.h over the rooms */
#include "libworker/msw_impl.h"

#include "config.h"
#include "libworker/node/dynamic.h"
#include "libworker/node/image_memory.h"
#include "libworker/node/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(((struct msw_error *)0)->text) == MS_ERR_TEXT_MAX, "the same texts");

int api_give_error(const struct ms_err *from, int rc, struct msw_error *to)
{
    if (to != NULL && rc < 0) {
        to->code = rc;
        snprintf(to->text, sizeof(to->text), "%s", ms_err_text(from));
    }
    return rc;
}

/* ---- jobs ---- */

int api_new_job(struct msw_job **ret, struct ms_err *err)
{
    *ret = calloc(1, sizeof(**ret));
    return *ret != NULL ? 0 : ms_fail(err, MS_E_NOMEM, "no memory for a job");
}

int msw_job_load(const char *path, const char *const *sets, size_t n, struct msw_job **ret,
                 struct msw_error *error)
{
    struct ms_err err = {0, ""};
    struct msw_job *job = NULL;
    const locale_t locale = locale_enter();
    struct job_override *overrides = calloc(n + 1, sizeof(*overrides));
    int rc = overrides != NULL ? api_new_job(&job, &err) : ms_fail(&err, MS_E_NOMEM, "no memory");
    for (size_t i = 0; rc == 0 && i < n; i++) {
        overrides[i].key_value = sets[i];
    }
    if (rc == 0) {
        rc = job_load(path, overrides, n, 0, &job->job, &err);
    }
    free(overrides);
    locale_leave(locale);
    if (rc < 0) {
        free(job);
        return api_give_error(&err, rc, error);
    }
    *ret = job;
    return 0;
}

int msw_job_parse(const char *text, const char *base_dir, struct msw_job **ret,
                  struct msw_error *error)
{
    struct ms_err err = {0, ""};
    struct msw_job *job = NULL;
    const locale_t locale = locale_enter();
    int rc = api_new_job(&job, &err);
    if (rc == 0) {
        rc = job_parse(text, strlen(text), "job", base_dir != NULL ? base_dir : ".", NULL, 0, 0,
                       &job->job, &err);
    }
    locale_leave(locale);
    if (rc < 0) {
        free(job);
        return api_give_error(&err, rc, error);
    }
    *ret = job;
    return 0;
}

void msw_job_destroy(struct msw_job *job)
{
    free(job);
}

/* ---- training ---- */

static void on_progress(void *arg, const struct train_progress *from)
{
    struct session *session = arg;
    const int is_eval = from->phase == TRAIN_EVALUATING && from->has_eval;
    if (session->on_step == NULL || (!from->has_step && !is_eval)) {
        return;
    }
    struct msw_progress to = {.step = from->step,
                              .steps_total = from->steps_total,
                              .epoch = from->epoch,
                              .epochs = from->epochs,
                              .step_in_epoch = from->step_in_epoch,
                              .steps_per_epoch = from->steps_per_epoch,
                              .loss = from->loss,
                              .samples_per_s = from->samples_per_s,
                              .step_ms = from->step_ms,
                              .comm_wait_ms = from->comm_wait_ms,
                              .has_eval = from->has_eval,
                              .eval_loss = from->eval_loss,
                              .accuracy = from->accuracy,
                              .rank = session->rank,
                              .ranks = session->ranks};
    const locale_t ours = uselocale(session->locale);
    const int is_enough = session->on_step(session->arg, &to);
    uselocale(ours);
    if (is_enough) {
        if (session->is_alone) {
            train_stop_at_step(session->train);
        } else {
            worker_leave(0);
        }
    }
}

/* What no text of a job says. */
static void on_rank(void *arg, struct train *train, struct job *job, int rank, int world)
{
    struct session *session = arg;
    session->train = train;
    session->rank = rank;
    session->ranks = world;
    job->dataset.callback = session->job->job.dataset.callback;
    job->evaluate_dataset.callback = session->job->job.evaluate_dataset.callback;
}

static void on_result(void *arg, struct train *train, const struct train_result *result)
{
    struct session *session = arg;
    if (session->want_model) {
        model_copy_destroy(session->model); /* of a rank that ended, and then saved after all */
        session->model = NULL;
        session->model_rc = model_copy_make(train_replica(train), result->steps, &session->model,
                                            &session->model_err);
    }
}

static int train_alone(struct session *session, const struct job *job, struct ms_err *err)
{
    struct train_config cfg = {.job = job,
                               .generation = 1,
                               .world = 1,
                               .peer_timeout_ms = MS_RECV_TIMEOUT_S * 1000,
                               .isa = "",
                               .image_bytes = session->image_bytes,
                               .run_dir = session->options.run_dir,
                               .log_fd = -1,
                               .on_progress = on_progress,
                               .arg = session};
    struct train_info info;
    struct train_result result;
    session->ranks = 1;
    session->train = train_create(&cfg);
    if (session->train == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to train");
    }
    int rc = train_prepare(session->train, &info, err);
    if (rc == 0) {
        rc = train_run(session->train, &result, err);
    }
    if (rc == 0 && result.unsaved < 0) { /* nobody is there who could try again */
        rc = ms_fail(err, result.unsaved, "%s", result.kept);
    }
    if (rc == 0 && result.lacks[0] != '\0') { /* ... or tell of it in another way */
        rc = ms_fail(err, MS_E_IO, "%s", result.lacks);
    }
    if (rc == 0) {
        on_result(session, session->train, &result);
    }
    train_destroy(session->train);
    return rc;
}

static int run_alone(struct session *session, struct ms_err *err)
{
    struct job alone = session->job->job;
    alone.workers = 1;
    if (session->options.threads > 0) {
        alone.threads = session->options.threads;
    }
    return train_alone(session, &alone, err);
}

static int run_as_worker(struct session *session, struct ms_err *err)
{
    const char *run_dir = session->options.run_dir;
    struct dynamic dynamic;
    struct job ours = session->job->job;
    int rc = dynamic_load(&dynamic, err);
    rc = rc == 0 ? dynamic_take_job(&dynamic, &ours, err) : rc;
    if (rc == 0) {
        struct worker_config worker = {.software = "msworker.h " MSCHED_VERSION,
                                       .port_min = MS_DATA_PORT_MIN,
                                       .port_max = MS_DATA_PORT_MAX,
                                       .peer_timeout_ms = MS_RECV_TIMEOUT_S * 1000LL,
                                       .image_bytes = session->image_bytes,
                                       .run_dir = run_dir != NULL ? run_dir : "",
                                       .log_to_file = 1,
                                       .on_rank = on_rank,
                                       .on_progress = on_progress,
                                       .on_result = on_result,
                                       .arg = session};
        dynamic_fill(&dynamic, &ours, &worker);
        rc = worker_run(&worker, err);
    }
    dynamic_fini(&dynamic);
    return rc;
}

int session_run(struct session *session, struct ms_err *err)
{
    session->locale = locale_enter();
    int rc = image_memory_of_environment(&session->image_bytes, err);
    if (rc == 0) {
        rc = session->is_alone ? run_alone(session, err) : run_as_worker(session, err);
    }
    locale_leave(session->locale);
    return rc;
}

int session_finish(struct session *session, int rc, struct msw_model **ret_model,
                   const struct ms_err *err, struct msw_error *error)
{
    if (rc < 0) {
        model_copy_destroy(session->model);
        return api_give_error(err, rc, error);
    }
    if (session->model_rc < 0) {
        return api_give_error(&session->model_err, session->model_rc, error);
    }
    if (ret_model != NULL && session->model == NULL) {
        struct ms_err none = {0, ""};
        return api_give_error(
            &none,
            ms_fail(&none, MS_E_FAILED,
                    "the job has succeeded, and this process, which was away then, has no weights "
                    "of its end: others saved them"),
            error);
    }
    if (ret_model != NULL) {
        *ret_model = (struct msw_model *)session->model;
    }
    return 0;
}

static int train(const struct msw_job *job, int is_alone, const struct msw_options *options,
                 struct msw_model **ret_model, struct msw_error *error)
{
    struct ms_err err = {0, ""};
    struct session session = {.job = job, .is_alone = is_alone, .want_model = ret_model != NULL};
    if (options != NULL) {
        session.options = *options;
        session.on_step = options->on_progress;
        session.arg = options->arg;
    }
    int rc = session_run(&session, &err);
    return session_finish(&session, rc, ret_model, &err, error);
}

int msw_train(const struct msw_job *job, const struct msw_options *options,
              struct msw_model **ret_model, struct msw_error *error)
{
    return train(job, 1, options, ret_model, error);
}

int msw_join(const struct msw_job *job, const struct msw_options *options,
             struct msw_model **ret_model, struct msw_error *error)
{
    return train(job, 0, options, ret_model, error);
}

/* ---- models ---- */

static const struct model_copy *copy_of(const struct msw_model *model)
{
    return (const struct model_copy *)model;
}

size_t msw_model_count(const struct msw_model *model)
{
    return copy_of(model)->n;
}

const char *msw_model_name(const struct msw_model *model, size_t i)
{
    return i < copy_of(model)->n ? copy_of(model)->entries[i].name : NULL;
}

const float *msw_model_values(const struct msw_model *model, const char *name, size_t *ret_count)
{
    const struct model_copy *copy = copy_of(model);
    int i = model_copy_find(copy, name);
    if (i < 0) {
        return NULL;
    }
    if (ret_count != NULL) {
        *ret_count = copy->counts[i];
    }
    return copy->values[i];
}

int msw_model_shape(const struct msw_model *model, const char *name, int64_t dims[4])
{
    const struct model_copy *copy = copy_of(model);
    int i = model_copy_find(copy, name);
    if (i < 0) {
        return -1;
    }
    memcpy(dims, copy->entries[i].dim, 4 * sizeof(*dims));
    return copy->entries[i].n_dims;
}

const char *msw_model_sha256(const struct msw_model *model)
{
    return copy_of(model)->sha256;
}

int msw_model_save(const struct msw_model *model, const char *path, struct msw_error *error)
{
    struct ms_err err = {0, ""};
    const locale_t locale = locale_enter();
    const int rc = model_copy_save(copy_of(model), path, &err);
    locale_leave(locale);
    return api_give_error(&err, rc, error);
}

void msw_model_destroy(struct msw_model *model)
{
    model_copy_destroy((struct model_copy *)model);
}

const char *msw_version(void)
{
    return MSCHED_VERSION;
}
