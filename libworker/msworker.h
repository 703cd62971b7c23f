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
 * A network and data of the program's own, and a loop of its own (docs/c-api.md, points.c):
 *
 *     struct msw_net *net = msw_net_create();
 *     int x = msw_flatten(net, MSW_INPUT, NULL);
 *     x = msw_relu(net, msw_dense(net, x, 32, NULL), NULL);
 *     msw_dense(net, x, MSW_CLASSES, "name: fc");
 *     struct msw_data data = {.rows = 1000, .shape = {2}, .classes = 3, .read = fill_record};
 *     msw_job_make(net, &data, NULL, "optimizer: {kind: sgd, learning_rate: 0.1}", &job, &error);
 *     msw_begin(job, NULL, &training, &error);
 *     while ((rc = msw_step(training, &progress, &error)) > 0) { ... }
 *     msw_end(training, &model, &error);
 *
 * Functions return 0, or a negative enum msw_code with a text in error (NULL allowed). Nothing
 * exits, and nothing prints but a worker of a cluster, as msworker does: events to standard error
 * and, where it has no run_dir, its rank's loss lines to standard output. A job or a model may be
 * used by one thread at a time; different ones by different threads, but one process trains one job
 * at a time. Numbers in jobs, tables and files have a point whatever locale the program set, and so
 * do they in texts of errors; the program's own functions are called in its locale, which stays as
 * it is. On a busy host set GOMP_SPINCOUNT=5000 in the environment of the program: libgomp
 * reads it before main(), so a library cannot. */
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

/* ---- networks of functions ---- */

struct msw_net;

enum {
    MSW_INPUT = 0,    /* the records of the batch: images (n, c, h, w), of features (n, c, 1, 1) */
    MSW_CLASSES = -1, /* an `out` that is as many as the data have classes, or targets */
    MSW_INPUTS_MAX = 8,
};

/* A list of layers, which functions make, one behind the other: docs/networks.md says what each
 * kind is, and which keys it has. x is what a layer reads: MSW_INPUT, or what the function of
 * another layer returned. keys are the keys of that layer as in a job file, "name: fc, bias: none";
 * NULL: none. What is an argument is no key, unless the argument is 0. The last layer makes what
 * the loss reads.
 *
 * Each returns the number of its layer, above 0. A call that fails returns a negative enum
 * msw_code, as do all later ones: its text is what msw_job_make says, so that nobody has to look at
 * each. Names, keys and shapes are looked at by msw_job_make, whose errors begin with the layer's
 * name. A network may be used by one thread at a time. NULL without memory. */
MSW_API struct msw_net *msw_net_create(void);
MSW_API void msw_net_destroy(struct msw_net *net); /* NULL allowed; jobs do not need it */

MSW_API int msw_conv2d(struct msw_net *net, int x, int64_t out, int64_t kernel, const char *keys);
MSW_API int msw_conv_transpose2d(struct msw_net *net, int x, int64_t out, int64_t kernel,
                                 const char *keys);
MSW_API int msw_dense(struct msw_net *net, int x, int64_t out, const char *keys);
MSW_API int msw_embedding(struct msw_net *net, int x, int64_t words, int64_t size,
                          const char *keys);
MSW_API int msw_positional_embedding(struct msw_net *net, int x, const char *keys);
MSW_API int msw_class_token(struct msw_net *net, int x, const char *keys);
MSW_API int msw_attention(struct msw_net *net, int x, int64_t heads, const char *keys);
MSW_API int msw_lstm(struct msw_net *net, int x, int64_t hidden, const char *keys);
MSW_API int msw_gru(struct msw_net *net, int x, int64_t hidden, const char *keys);
MSW_API int msw_rnn(struct msw_net *net, int x, int64_t hidden, const char *keys);
MSW_API int msw_batch_norm(struct msw_net *net, int x, const char *keys);
MSW_API int msw_layer_norm(struct msw_net *net, int x, const char *keys);
MSW_API int msw_group_norm(struct msw_net *net, int x, int64_t groups, const char *keys);
MSW_API int msw_instance_norm(struct msw_net *net, int x, const char *keys);
MSW_API int msw_scale(struct msw_net *net, int x, const char *keys);
MSW_API int msw_relu(struct msw_net *net, int x, const char *keys);
MSW_API int msw_relu6(struct msw_net *net, int x, const char *keys);
MSW_API int msw_leaky_relu(struct msw_net *net, int x, const char *keys);
MSW_API int msw_elu(struct msw_net *net, int x, const char *keys);
MSW_API int msw_gelu(struct msw_net *net, int x, const char *keys);
MSW_API int msw_silu(struct msw_net *net, int x, const char *keys);
MSW_API int msw_hard_swish(struct msw_net *net, int x, const char *keys);
MSW_API int msw_hard_sigmoid(struct msw_net *net, int x, const char *keys);
MSW_API int msw_sigmoid(struct msw_net *net, int x, const char *keys);
MSW_API int msw_tanh(struct msw_net *net, int x, const char *keys);
MSW_API int msw_softmax(struct msw_net *net, int x, const char *keys);
MSW_API int msw_linear(struct msw_net *net, int x, const char *keys);
MSW_API int msw_dropout(struct msw_net *net, int x, const char *keys);
MSW_API int msw_max_pool(struct msw_net *net, int x, int64_t kernel, const char *keys);
MSW_API int msw_avg_pool(struct msw_net *net, int x, int64_t kernel, const char *keys);
MSW_API int msw_global_avg_pool(struct msw_net *net, int x, const char *keys);
MSW_API int msw_flatten(struct msw_net *net, int x, const char *keys);
MSW_API int msw_pad(struct msw_net *net, int x, const char *keys);
MSW_API int msw_upsample(struct msw_net *net, int x, int64_t factor, const char *keys);
MSW_API int msw_slice(struct msw_net *net, int x, int64_t first, int64_t size, const char *keys);
MSW_API int msw_channel_shuffle(struct msw_net *net, int x, int64_t groups, const char *keys);
MSW_API int msw_dot_product_attention(struct msw_net *net, int x, int64_t heads, const char *keys);
MSW_API int msw_token(struct msw_net *net, int x, const char *keys);
MSW_API int msw_tokens(struct msw_net *net, int x, const char *keys);

/* Of n layers, two to MSW_INPUTS_MAX. */
MSW_API int msw_add(struct msw_net *net, const int *inputs, int n, const char *keys);
MSW_API int msw_sub(struct msw_net *net, const int *inputs, int n, const char *keys);
MSW_API int msw_mul(struct msw_net *net, const int *inputs, int n, const char *keys);
MSW_API int msw_concat(struct msw_net *net, const int *inputs, int n, const char *keys);

/* One of a kind that is named, of 1 to MSW_INPUTS_MAX; also a list of others: "residual" with keys
 * "body: [{dense: {out: 8}}, relu]". */
MSW_API int msw_layer(struct msw_net *net, const char *kind, const int *inputs, int n,
                      const char *keys);

/* ---- data that the program makes ---- */

struct msw_record {
    int64_t row;   /* which one is wanted: 0 to rows - 1 */
    int64_t epoch; /* from 0; in an evaluation, and where data are compared, 0 */
    uint64_t seed; /* of the job; where data are compared, 0 */
    /* to be filled; all of it is 0 before */
    float *values;  /* shape[0] x shape[1] x shape[2], C order; NULL where is_bytes */
    uint8_t *bytes; /* likewise, 0 to 255, where is_bytes; else NULL */
    float *targets; /* `targets` of them; NULL where there are classes */
    int32_t label;  /* 0 to classes - 1, where there are */
};

struct msw_data {
    int64_t rows;     /* records of an epoch */
    int64_t shape[3]; /* channels, height, width of a record; features: their number alone */
    int64_t classes;  /* a record has one of so many classes; 0: it has ... */
    int64_t targets;  /* ... so many numbers as its target */
    int is_bytes;     /* values are pixels: bytes, which the job's transforms make numbers of */
    /* Fills a record: 0, or what is no record, which ends the training, and on which the text of
     * its error ends. What it fills is a function of row, epoch and seed, the same in each process
     * of a cluster: then it does not matter who was lost, and when. Called on a thread of the
     * library's, one call at a time for each data set, also ahead of the step that needs the record
     * and while the program does something else, in the locale of the process (setlocale). It
     * returns soon: a training that is to end waits for it. */
    int (*read)(void *arg, struct msw_record *record);
    void *arg;
};

/* A job of a network and of data of the program's own. test: what is evaluated on behind each epoch
 * (key evaluate.every_epochs), NULL: nothing. keys: all others of a job, as in a file
 * (msched-job(5)): optimizer, which every job has, batch_size, epochs, loss (by default
 * softmax_cross_entropy, or mse where targets are numbers), seed, transforms, checkpoint, ...;
 * NULL: none. Relative paths are relative to this folder. net is not needed any more after it; data
 * are copied, and what arg points to is needed as long as the job. Returns owned in *ret;
 * msw_job_destroy. MSW_INVALID: the text begins with the layer's name, the key's line in keys, or
 * "train" and "test". */
MSW_API int msw_job_make(const struct msw_net *net, const struct msw_data *train,
                         const struct msw_data *test, const char *keys, struct msw_job **ret,
                         struct msw_error *error);

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
    int rank, ranks;               /* of this process; alone 0 of 1 */
};

struct msw_options {
    const char *run_dir; /* metrics.jsonl and weights.safetensors go there, of a cluster also
                            plan.txt; NULL: nowhere */
    int threads;         /* 0: one for each core that this process may use */
    /* After each step and each evaluation, on the calling thread and in its locale. Non-zero: stop
     * after this step. */
    int (*on_progress)(void *arg, const struct msw_progress *progress);
    void *arg;
};

struct msw_model; /* the trained parameters, by name */

/* Trains the job alone in this process (its `workers` is ignored). Blocks. options NULL: defaults.
 * *ret_model (NULL: not wanted) is owned. Decoded images of a folder are kept in memory that the
 * ranks of this host share: MSCHED_IMAGE_MEMORY, msworker(8). */
MSW_API int msw_train(const struct msw_job *job, const struct msw_options *options,
                      struct msw_model **ret_model, struct msw_error *error);

/* Joins the dynamic cluster that the environment names (MS_ROLE=MS_WORKER, MS_SCHED_HOST,
 * MS_SCHED_PORT, MS_WORKER_NUM, ...), trains as the rank it is given, returns when the job has
 * ended everywhere. TLS as msworker(8) says, MS_TLS_CONFIG or MS_ENABLE_SSL=0. No rank can train
 * without the others: non-zero from on_progress ends the job everywhere, and here with
 * MSW_CANCELLED. Where the job succeeds while this process is away, and others make its end, there
 * are no weights here: 0, and MSW_FAILED where ret_model wants them. */
MSW_API int msw_join(const struct msw_job *job, const struct msw_options *options,
                     struct msw_model **ret_model, struct msw_error *error);

/* ---- step by step ---- */

struct msw_training;

/* The same for a loop of the program's own: alone in this process, or, where the environment has
 * MS_ROLE, as msw_join does. Nothing is looked at before the first msw_step. Job and what options
 * point to are borrowed until msw_end; on_progress is not called. One thread at a time, any. */
MSW_API int msw_begin(const struct msw_job *job, const struct msw_options *options,
                      struct msw_training **ret, struct msw_error *error);
/* Makes the next step, or the evaluation that is due behind one (has_eval). The first call prepares
 * the training, and in a cluster waits for the others. 1: it is made, and *progress (NULL allowed)
 * is about it; 0: all are, and weights and checkpoints of the job are saved; negative: the training
 * has failed. After that it returns the same again. Between two calls nothing is computed, and in a
 * cluster the others wait, for as long as MS_RECEIVE_MSG_TIMEOUT (600 s). After a loss the step
 * that was given up is made again: progress counts on, unless all ranks were lost, when it goes on
 * from a checkpoint. */
MSW_API int msw_step(struct msw_training *training, struct msw_progress *progress,
                     struct msw_error *error);
/* Parameters as they are behind the step that was made. Between two calls of msw_step that
 * return 1. *ret_model is owned. */
MSW_API int msw_copy(struct msw_training *training, struct msw_model **ret_model,
                     struct msw_error *error);
/* Ends it and frees it. With steps left it stops as with a non-zero on_progress: alone after one
 * more step, as a worker with the job, everywhere, and MSW_CANCELLED. *ret_model (NULL: not wanted)
 * is owned, and set where it succeeds. Returns what the last msw_step did, if that was negative.
 * training NULL: nothing happens. */
MSW_API int msw_end(struct msw_training *training, struct msw_model **ret_model,
                    struct msw_error *error);

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
