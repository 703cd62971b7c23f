/* job.h - a job: what the user wrote, validated, with all defaults filled in
 *
 * The schema is one table (job_schema.c) from which parsing, errors, docs and the canonical JSON
 * follow. Errors give file:line:column, the key's full name ("optimizer.learning_rate"), the value
 * and the legal range; unknown keys come with the nearest known one; a key whose capability does
 * not exist yet is refused by name. */
#ifndef JOB_H
#define JOB_H

#include "libworker/data/data.h"
#include "proto/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <stdint.h>

/* By the numbers of enum network_loss. */
enum job_loss { JOB_LOSS_SOFTMAX_CE, JOB_LOSS_MSE, JOB_LOSS_L1, JOB_LOSS_HUBER, JOB_LOSS_BCE };
enum job_optimizer_kind { JOB_SGD, JOB_MOMENTUM, JOB_ADAM, JOB_ADAMW, JOB_RMSPROP, JOB_LAMB };
enum job_schedule_kind {
    JOB_CONSTANT,
    JOB_STEP_DECAY,
    JOB_MULTI_STEP,
    JOB_EXPONENTIAL,
    JOB_COSINE,
    JOB_POLYNOMIAL,
    JOB_ONE_CYCLE
};
enum job_schedule_unit { JOB_BY_STEP, JOB_BY_EPOCH };
/* What an evaluation counts beside loss and accuracy; train/scores.h. */
enum job_metric {
    JOB_METRIC_TOP5,
    JOB_METRIC_PER_CLASS,
    JOB_METRIC_CONFUSION,
    JOB_METRIC_PERPLEXITY,
    JOB_METRIC_MAE
};
/* A number of an evaluation by which a training is judged, and which of two values is better. */
enum job_score {
    JOB_SCORE_LOSS,
    JOB_SCORE_ACCURACY,
    JOB_SCORE_TOP5,
    JOB_SCORE_PERPLEXITY,
    JOB_SCORE_MAE
};
enum job_better { JOB_BETTER_AUTO, JOB_BETTER_LESS, JOB_BETTER_MORE };
struct job_judge {
    enum job_score metric;
    enum job_better mode;
};
enum job_mode { JOB_DATA_PARALLEL, JOB_STAND_ALONE };
enum job_precision { JOB_FP32 };

/* How the learning rate changes; train/schedule.h has the formulas. */
struct job_schedule {
    enum job_schedule_kind kind;
    enum job_schedule_unit by; /* what the whole numbers count */
    int64_t warmup;            /* 0: none */
    double warmup_from;        /* share of the rate with which it begins */
    int64_t step_size;         /* step */
    int n_milestones;          /* multi_step */
    int64_t milestones[MS_MILESTONES_MAX];
    double gamma;             /* step, multi_step, exponential */
    int64_t length;           /* cosine, polynomial, one_cycle; 0: the job's */
    double min_learning_rate; /* ... with which it ends */
    double power;             /* polynomial */
    double max_learning_rate; /* one_cycle */
    double pct_start;
};

/* Which tensors of the file with which a job begins it takes (first_weights.h), by the parameters'
 * names. */
struct job_take {
    int n_exclude;
    char exclude[MS_WEIGHT_PATTERNS_MAX][MS_PATTERN_MAX + 1]; /* job_glob's: they begin by init */
    int n_rename;
    struct job_rename { /* the first whose `from` matches a tensor's name holds */
        char from[MS_PATTERN_MAX + 1], to[MS_PATTERN_MAX + 1]; /* a star in both, or in none */
    } rename[MS_WEIGHT_PATTERNS_MAX];
};

/* What parameters of these names have otherwise than the optimizer says. */
struct job_group {
    int n_match;
    char match[MS_GROUP_PATTERNS_MAX][MS_PATTERN_MAX + 1]; /* job_glob's */
    int has_weight_decay, has_learning_rate;               /* else the optimizer's */
    double weight_decay, learning_rate;
    int frozen; /* not trained */
};

struct job_optimizer {
    enum job_optimizer_kind kind;
    double learning_rate;
    double momentum; /* momentum, rmsprop */
    int nesterov;
    double beta1, beta2; /* adam, adamw, lamb: 0.9, 0.999 */
    double alpha;        /* rmsprop: 0.99 */
    int centered;
    double epsilon;               /* these four: 1e-8; lamb: 1e-6 */
    double weight_decay;          /* a part of the gradient; adamw, lamb: of the step */
    double clip_norm, clip_value; /* of gradients; 0: they are not clipped */
    int has_average;              /* of the weights, which is what comes of the training */
    double average_decay;
    int has_schedule; /* else learning_rate is that of all steps */
    struct job_schedule schedule;
};

struct job {
    char name[MS_NAME_MAX + 1]; /* default: the network's */
    int workers;                /* 1 .. MS_WORKERS_MAX */
    int priority;
    char network[MS_NAME_MAX + 1];   /* its name */
    char layers[MS_NETWORK_MAX + 1]; /* canonical JSON (network.h); "": the one of that name */
    int classes;                     /* 0: from the data */
    struct data_spec dataset;
    int n_transforms;
    struct transform transforms[MS_TRANSFORMS_MAX];
    int64_t batch_size; /* a worker */
    int64_t accumulate; /* batches of a step; 1: each is one */
    int drop_remainder;
    int64_t epochs;
    int64_t steps; /* cap over all epochs, 0: none */
    enum job_loss loss;
    double label_smoothing;
    int n_class_weights; /* as many as classes; 0: each is 1 */
    double class_weights[MS_CLASS_WEIGHTS_MAX];
    double huber_delta;
    struct job_optimizer optimizer;
    int n_groups; /* the first one that matches a parameter holds */
    struct job_group groups[MS_GROUPS_MAX];
    enum job_mode mode;
    int gradients_mean, parameter_broadcast;
    enum job_precision precision;
    uint64_t seed;
    char initial_weights[MS_PATH_MAX + 1]; /* "" none */
    struct job_take take;                  /* of them */
    int has_checkpoint;
    char checkpoint_directory[MS_PATH_MAX + 1]; /* absolute, or below the run directory */
    char checkpoint_prefix[MS_NAME_MAX + 1];    /* default: the job's name */
    int64_t checkpoint_every_steps, checkpoint_every_seconds; /* 0: not by them */
    int64_t checkpoint_every_epochs;                          /* 0: not by them */
    int checkpoint_keep_max;
    char resume[MS_PATH_MAX + 1]; /* checkpoints to go on from; "" none */
    int recovery; /* a lost rank is replaced; dynamic cluster: MS_ENABLE_RECOVERY decides */
    int has_evaluate;
    struct data_spec evaluate_dataset;
    int64_t evaluate_every_epochs;
    int64_t evaluate_batch_size; /* default: batch_size */
    unsigned evaluate_metrics;   /* 1 << enum job_metric each */
    int has_early_stop;
    struct job_judge early_stop;
    int64_t early_stop_patience; /* evaluations in a row that are no better: then it ends */
    double early_stop_min_delta; /* ... by more than this */
    int has_best;
    struct job_judge best; /* of the weights that are kept */
    int best_keep;         /* of so many evaluations */
    int has_print;
    int64_t print_loss_every;     /* of so many steps one has a loss line; 0: none */
    int print_epochs, print_time; /* ... and the last of each epoch; with how long that took */
    int threads;                  /* a rank; 0: cores of the host / its ranks */
};

struct job_override { /* --set KEY=VALUE, in order; VALUE is YAML: "--set
                         optimizer.learning_rate=0.1" */
    const char *key_value;
};

/* Reads a YAML or JSON file, applies overrides, validates, fills in defaults, makes relative input
 * paths absolute against the file's folder (${NAME} is left for the workers). workers > 0 beats the
 * file's `workers` (-n). ret is written only on success. */
int job_load(const char *path, const struct job_override *overrides, size_t n, int workers,
             struct job *ret, struct ms_err *err);
/* The same from text; origin stands for the file in errors; base_dir for relative paths (NULL: they
 * must be absolute or expand from the environment). Text that job_format made reads back equal. */
int job_parse(const char *text, size_t size, const char *origin, const char *base_dir,
              const struct job_override *overrides, size_t n, int workers, struct job *ret,
              struct ms_err *err);

/* What a program says of a job itself, in no text of it. */
struct tree_node;
struct job_part {
    const char *key;         /* dotted: "dataset.kind" */
    struct tree_node *value; /* NULL: there is none */
};
/* As job_parse, with n parts beside the text, which must not have their keys. Takes the values of
 * parts in any case. */
int job_parse_parts(const char *text, size_t size, const char *origin, const char *base_dir,
                    struct job_part *parts, size_t n, struct job *ret, struct ms_err *err);

/* A text of job_format's in a file, as it lies beside results: what it does not say itself is not
 * looked for, so that no other file is opened and no program started. MS_E_INVALID: it is another
 * text. ret may be written. */
int job_load_kept(const char *path, struct job *ret, struct ms_err *err);

/* "accuracy"; is one of two values better that is more? */
const char *job_judge_metric(const struct job_judge *judge);
int job_judge_wants_more(const struct job_judge *judge);

/* "softmax_cross_entropy" */
const char *job_loss_name(enum job_loss loss);
/* What the loss is told beside its inputs; ret borrows the job. */
/* Are targets that are numbers probabilities? */
int job_has_probabilities(const struct job *job);
struct network_input;
void job_put_loss(const struct job *job, struct network_input *ret);

/* The job's network. Returns owned; it borrows the job. */
struct network;
int job_network_create(const struct job *job, struct network **ret, struct ms_err *err);
/* The graph of its training, for what its data are by the job alone: no file is opened. network is
 * the job's; ret_layers (network_build_layers) is NULL where nobody asks. Both owned. */
struct graph;
struct network_layers;
int job_network_build(const struct job *job, const struct network *network,
                      struct network_layers **ret_layers, struct graph **ret, struct ms_err *err);

/* Canonical JSON: every key, sorted, one line. Returns owned (malloc) or NULL without
 * memory; *ret_size without the NUL.
 */
char *job_format(const struct job *job, size_t *ret_size);

/* Is the whole name what the pattern says? `*` stands for any text, `?` for one character, all else
 * for itself. */
int job_glob(const char *pattern, const char *name);
/* The group that holds the parameter of that name; NULL: none does. */
const struct job_group *job_group_of(const struct job *job, const char *parameter);

/* Optimizer steps of the whole job, with so many an epoch. */
uint64_t job_total_steps(const struct job *job, int64_t steps_per_epoch);
/* Does the length of its schedule follow from that of the job? */
int job_schedule_is_as_long(const struct job *job);

/* More than one worker in mode stand_alone: independent trainings, with a state each. */
int job_is_split(const struct job *job);
/* Such a job cannot have what needs one state of all: the key, and why, as the end of a sentence;
 * NULL: it has nothing of that. job_parse refuses it; who changes workers or recovery after it asks
 * again. */
const char *job_refuse_split(const struct job *job, const char **ret_key);

/* Are the job's inputs here: data sets with the files that they need, initial weights? Opens each
 * and closes it again, as a rank would. The text begins with the key ("dataset: ...", "evaluate:
 * ...", "initial_weights: ..."). Variables are those of this process. */
int job_check_inputs(const struct job *job, struct ms_err *err);
/* The same, seen from where the job is submitted: only that one is not on this host, as
 * MS_E_NOT_FOUND. What needs a variable that is not set here is not looked for, a program is not
 * started, and what else may be wrong the ranks find, each on its own host. */
int job_find_inputs(const struct job *job, struct ms_err *err);

/* Where the job's checkpoints are for a folder by its absolute path: is that one of those which the
 * run directory has for itself, however it is written? run_dir "": there is none. MS_E_INVALID. */
int job_check_output(const struct job *job, const char *run_dir, struct ms_err *err);

/* Replaces ${NAME} by the environment's value in dst of size bytes. */
int job_expand_path(const char *path, char *dst, size_t size, struct ms_err *err);

#endif
