/* msworker.h - training as a library: what msworker is made of, for programs of your own
 *
 *     #include <msworker.h>        cc train.c $(pkg-config --cflags --libs msworker)
 *
 *     struct msw_error error;
 *     struct msw_job *job = NULL;
 *     if (msw_job_load("mnist.yaml", NULL, 0, &job, &error) < 0) { puts(error.text); ... }
 *     struct msw_model *model = NULL;
 *     msw_train(job, NULL, &model, &error);
 *     const float *weights = msw_model_values(model, "fc.weight", NULL);
 *
 * Functions return 0, or a negative enum msw_code with a text in error (NULL allowed). Nothing
 * prints and nothing exits. A job or a model may be used by one thread at a time; different ones by
 * different threads, but one process trains one job at a time. On a busy host set
 * GOMP_SPINCOUNT=5000 in the environment of the program: libgomp reads it before main(), so a
 * library cannot. */
#ifndef MSWORKER_H
#define MSWORKER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MSW_API __attribute__((visibility("default")))

enum msw_code {
    MSW_OK = 0,
    MSW_INVALID = -1,     /* a job, a value or a name that can never work */
    MSW_REFUSED = -4,     /* by the scheduler: certificate, mismatch */
    MSW_UNREACHABLE = -5, /* no scheduler */
    MSW_FULL = -11,       /* the job does not fit into memory */
    MSW_FAILED = -14,     /* training failed */
    MSW_CANCELLED = -17,
    /* other negative numbers: see text */
};

struct msw_error {
    int code;
    char text[384]; /* object, cause, next step */
};

/* ---- jobs ---- */

struct msw_job;

/* Reads a YAML or JSON job file (its keys: msched-job(5)); sets: n texts "key=value" that win
 * over the file. Returns owned in *ret; msw_job_destroy. */
MSW_API int msw_job_load(const char *path, const char *const *sets, size_t n, struct msw_job **ret,
                         struct msw_error *error);
/* The same from text. base_dir: relative paths are relative to it; NULL: this folder. */
MSW_API int msw_job_parse(const char *text, const char *base_dir, struct msw_job **ret,
                          struct msw_error *error);
MSW_API void msw_job_destroy(struct msw_job *job); /* NULL allowed */

/* ---- training ---- */

struct msw_progress {
    uint64_t step, steps_total; /* committed steps over all epochs */
    int64_t epoch, epochs;      /* from 1 */
    int64_t step_in_epoch, steps_per_epoch;
    float loss;                    /* mean over ranks */
    double samples_per_s, step_ms; /* of about the last twenty steps; samples of all ranks */
    double comm_wait_ms;           /* of the last step */
    int has_eval;                  /* an evaluation ended: the next two are set */
    double eval_loss, accuracy;    /* accuracy: 0 to 1; NaN: the loss has none */
};

struct msw_options {
    const char *run_dir; /* metrics.jsonl and weights.safetensors go there, of a cluster also
                            plan.txt; NULL: nowhere */
    int threads;         /* 0: one for each core that this process may use */
    /* After each step and each evaluation, on the calling thread. Non-zero: stop after this step.
     */
    int (*on_progress)(void *arg, const struct msw_progress *progress);
    void *arg;
};

struct msw_model; /* the trained parameters, by name */

/* Trains the job alone in this process (its `workers` is ignored). Blocks. options NULL: defaults.
 * *ret_model (NULL: not wanted) is owned. */
MSW_API int msw_train(const struct msw_job *job, const struct msw_options *options,
                      struct msw_model **ret_model, struct msw_error *error);

/* Joins the dynamic cluster that the environment names (MS_ROLE=MS_WORKER, MS_SCHED_HOST,
 * MS_SCHED_PORT, MS_WORKER_NUM, ...), trains as the rank it is given, returns when the job has
 * ended everywhere. TLS as msworker(8) says, MS_TLS_CONFIG or MS_ENABLE_SSL=0. No rank can train
 * without the others: non-zero from on_progress ends the job everywhere, and here with
 * MSW_CANCELLED. */
MSW_API int msw_join(const struct msw_job *job, const struct msw_options *options,
                     struct msw_model **ret_model, struct msw_error *error);

/* ---- models ---- */

MSW_API size_t msw_model_count(const struct msw_model *model);
/* Name of tensor i in name order; NULL past the end. Borrowed until destroy. */
MSW_API const char *msw_model_name(const struct msw_model *model, size_t i);
/* Values in C order, and their number; NULL when there is no such tensor. Borrowed until destroy.
 */
MSW_API const float *msw_model_values(const struct msw_model *model, const char *name,
                                      size_t *ret_count);
/* Dimensions of a tensor into dims (4 entries); returns their number, -1 when there is none. */
MSW_API int msw_model_shape(const struct msw_model *model, const char *name, int64_t dims[4]);
/* Hex SHA-256 over all values in name order: the weights_sha256 that msctl prints. */
MSW_API const char *msw_model_sha256(const struct msw_model *model);
/* Writes a safetensors file. */
MSW_API int msw_model_save(const struct msw_model *model, const char *path,
                           struct msw_error *error);
MSW_API void msw_model_destroy(struct msw_model *model); /* NULL allowed */

MSW_API const char *msw_version(void);

#ifdef __cplusplus
}
#endif

#endif
