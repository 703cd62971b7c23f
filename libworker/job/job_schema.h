/* job_schema.h - the rows of a job's schema, and the types that a job alone has */
#ifndef JOB_SCHEMA_H
#define JOB_SCHEMA_H

#include "libworker/job/job.h"
#include "libworker/schema/field.h"

/* A job's keys. */
extern const struct field_table job_table;

/* The kinds of an entry of `transforms`, with the keys inside; offsets into struct transform. */
struct job_transform_kind {
    const char *name;
    enum transform_kind kind;
    struct field_table table;
};
extern const struct job_transform_kind job_transform_kinds[];
extern const size_t job_n_transform_kinds;

/* job_own.c: types of rows */
extern const struct field_own job_network; /* job->network and job->layers */
extern const struct field_own
    job_output; /* char[MS_PATH_MAX + 1]: a folder, absolute or below the run directory */
extern const struct field_own
    job_transforms; /* struct transform[MS_TRANSFORMS_MAX], count in the int at count_offset */
extern const struct field_own job_metrics; /* unsigned: bits 1 << the index in choices */
extern const struct field_own
    job_shape; /* struct data_shape's sides: [features] or [channels, height, width] */
extern const struct field_own job_word; /* char[MS_NAME_MAX + 1]: one line of text */
extern const struct field_own
    job_words; /* the same several times in char[max + 1], LF between; "": none */
extern const struct field_own
    job_tested_words; /* likewise; those of a table are not written that are the training's */
extern const struct field_own job_arguments; /* likewise, and each as long as all may be */
extern const struct field_own
    job_milestones; /* int64_t[MS_MILESTONES_MAX], min .. max, rising; likewise */

/* job_labels.c */
extern const struct field_own job_class_weights; /* double[MS_CLASS_WEIGHTS_MAX], min .. max,
                                                    count in the int at count_offset */
extern const struct field_own job_ignored;       /* struct data_ignored, min .. max */

extern const struct field_own
    job_first_weights; /* job_take.c: job->initial_weights and job->take */

/* job_group.c: struct job_group[MS_GROUPS_MAX], likewise */
extern const struct field_own job_groups;

/* What stands under the key `network`: a name, layers, or a file. Returns owned; it may borrow
 * node. */
struct network;
int job_network_read(const struct field_reader *reader, const struct tree_node *node,
                     struct network **ret);
/* The weights of a network that is an ONNX model begin as the model has them, where the job does
 * not say initial_weights. tree, base_dir: as in job_check. */
int job_take_weights(struct job *job, const struct tree_node *tree, const char *base_dir,
                     struct ms_err *err);
/* A text of at most MS_JOB_FILE_MAX bytes and one more; what: "job file". Returns owned. */
int job_read_text(const char *what, const char *path, char **ret, size_t *ret_size,
                  struct ms_err *err);

/* Names of data kinds, for texts. */
const char *job_data_kind_name(enum data_kind kind);

/* Why a job may not write to the folder of this path, as the end of "'x' ..."; NULL: it may. */
const char *job_output_refuse(const char *path);
/* The run directory itself. */
int job_output_is_root(const char *path);
/* Would a file of this name be taken for one of the scheduler's database? */
int job_output_is_database(const char *name);

/* The groups against the parameters of the job's network, and the optimizer's rate. list: the node
 * of the key. MS_E_INVALID: a pattern matches none, all are frozen, ... */
struct graph;
int job_check_groups(const struct job *job, const struct tree_node *list, const struct graph *graph,
                     struct ms_err *err);
/* Of data whose files say what a record is, what the job leaves open: opens the training set. Where
 * that is not to be had, the keys have to be given. base_dir NULL: opens nothing. */
int job_settle_data(struct job *job, const struct tree_node *tree, const char *base_dir,
                    struct ms_err *err);

/* What is evaluated on: the keys that decide what its records are are those of the training's data
 * where it does not say them, and of one place a part that was not trained on. base_dir NULL: the
 * job was settled where it comes from, and no file is looked at. MS_E_INVALID: parts that overlap,
 * other columns. */
int job_settle_evaluate(struct job *job, const struct tree_node *tree, const char *base_dir,
                        struct ms_err *err);

/* early_stop and best need an evaluation that has their metric. */
int job_check_judges(const struct job *job, const struct tree_node *tree, struct ms_err *err);

/* How labels count: keys that have no meaning with the loss, weights that are not the classes', and
 * of a job that is_new (nobody has sent or kept it) one class alone. */
int job_check_labels(const struct job *job, const struct tree_node *tree, int is_new,
                     struct ms_err *err);

/* The node of a dotted path, or the nearest one around it that was written. */
const struct tree_node *job_node_at(const struct tree_node *root, const char *path);

/* What spans keys: loss against data, transforms against images, evaluation against training.
 * network against all of them. job_parse.c calls it last. tree is the document, for positions;
 * base_dir as in job_parse. */
int job_check(const struct job *job, const struct tree_node *tree, const char *base_dir,
              struct ms_err *err);

#endif
