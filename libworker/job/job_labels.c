/* job_labels.c - what labels count in the loss and in evaluations: keys and what spans them */
#include "libworker/job/job_schema.h"
#include "libworker/network/network.h"

/* ---- a weight a class ---- */

/* Gradients times a weight are single precision until they are divided by the sum of weights. */
#define CLASS_WEIGHT_LEAST 1e-18

static int read_weights(const struct field_reader *r, const struct tree_node *list, void *base)
{
    double *dst = (void *)((char *)base + r->field->offset);
    if (list->kind != TREE_LIST || list->n_items == 0) {
        return tree_fail(list, r->err, "%s must be a list, a number a class, as [1, 0.5, 4]",
                         r->shown);
    }
    if (list->n_items > MS_CLASS_WEIGHTS_MAX) {
        return tree_fail(list, r->err, "%s has %zu entries; at most %d", r->shown, list->n_items,
                         MS_CLASS_WEIGHTS_MAX);
    }
    double sum = 0;
    for (size_t i = 0; i < list->n_items; i++) {
        int rc = field_read_real(r, list->items[i].value, &dst[i]);
        if (rc < 0) {
            return rc;
        }
        if (dst[i] > 0 && dst[i] < CLASS_WEIGHT_LEAST) {
            return tree_fail(list->items[i].value, r->err,
                             "%s: %g leaves nothing of a gradient; give 0, or %g and more",
                             r->shown, dst[i], CLASS_WEIGHT_LEAST);
        }
        sum += dst[i];
    }
    if (sum == 0) {
        return tree_fail(list, r->err, "%s are all 0: no sample would count; give one above 0",
                         r->shown);
    }
    *(int *)((char *)base + r->field->count_offset) = (int)list->n_items;
    return MS_OK;
}

static json_t *write_weights(const struct field *field, const void *base)
{
    const double *weights = (const void *)((const char *)base + field->offset);
    const int n = *(const int *)((const char *)base + field->count_offset);
    json_t *list = n == 0 ? json_null() : json_array();
    for (int i = 0; i < n; i++) {
        list = list_append(list, json_real(weights[i]));
    }
    return list;
}

const struct field_own job_class_weights = {
    .legal = "a list of numbers from 0 to 1000000, one a class",
    .read = read_weights,
    .write = write_weights,
};

/* ---- a label that does not count ---- */

static int read_ignored(const struct field_reader *r, const struct tree_node *node, void *base)
{
    struct data_ignored *dst = (void *)((char *)base + r->field->offset);
    int64_t label = 0;
    int rc = field_read_whole(r, node, &label);
    if (rc == MS_OK) {
        *dst = (struct data_ignored){1, (int32_t)label};
    }
    return rc;
}

static json_t *write_ignored(const struct field *field, const void *base)
{
    const struct data_ignored *ignored = (const void *)((const char *)base + field->offset);
    return ignored->is_there ? json_integer(ignored->label) : json_null();
}

const struct field_own job_ignored = {
    .legal = "a whole number from -2147483648 to 2147483647, or null for none",
    .read = read_ignored,
    .write = write_ignored,
};

/* ---- the loss ---- */

int job_has_probabilities(const struct job *job)
{
    return job->loss == JOB_LOSS_BCE || job->loss == JOB_LOSS_SOFTMAX_CE;
}

void job_put_loss(const struct job *job, struct network_input *ret)
{
    ret->label_smoothing = job->label_smoothing;
    ret->class_weights = job->n_class_weights > 0 ? job->class_weights : NULL;
    ret->n_class_weights = job->n_class_weights;
    ret->has_soft_labels =
        job->loss == JOB_LOSS_SOFTMAX_CE && data_shape_of(&job->dataset).target_width > 0;
    ret->has_ignored = job->dataset.ignored.is_there;
    ret->ignored = job->dataset.ignored.label;
    ret->huber_delta = job->huber_delta;
}

/* Of those keys that are for labels alone the first that is given; NULL: none is. */
static const char *first_key(const struct job *job)
{
    return job->label_smoothing > 0        ? "label_smoothing"
           : job->n_class_weights > 0      ? "class_weights"
           : job->dataset.ignored.is_there ? "ignored_label"
                                           : NULL;
}

/* Its loss would be 0, its accuracy 100 %, and nothing learned. */
static int fail_one_class(const struct job *job, const struct tree_node *tree, struct ms_err *err)
{
    const struct data_spec *data = &job->dataset;
    const char *name = data->class_names;
    const char *next =
        data->kind == DATA_CSV ? "is another column the target (dataset.target)?"
        : data->kind == DATA_NUMPY || data->kind == DATA_SAFETENSORS
            ? "is another array the targets (dataset.inputs and targets)? Where labels above 0 are "
              "elsewhere, dataset.classes says how many there are"
            : "give dataset.classes as many as there are";
    if (data->kind == DATA_IMAGE_FOLDER) {
        return tree_fail(job_node_at(tree, "dataset.path"), err,
                         "dataset: %.120s has one class alone%s%.64s, and a network over one class "
                         "can learn nothing; is dataset.path one level too high%s%.64s%s? Each "
                         "class is a folder in it",
                         data->path, name[0] != '\0' ? ", the folder " : "", name,
                         name[0] != '\0' ? " (the classes in " : "", name,
                         name[0] != '\0' ? "/)" : "");
    }
    return tree_fail(job_node_at(tree, "dataset"), err,
                     "dataset: %s%.64s%s is the one class of %.100s, and a network over one class "
                     "can learn nothing; %s",
                     name[0] != '\0' ? "'" : "label ", name[0] != '\0' ? name : "0",
                     name[0] != '\0' ? "'" : "", data->path[0] != '\0' ? data->path : "the data",
                     next);
}

int job_check_labels(const struct job *job, const struct tree_node *tree, int is_new,
                     struct ms_err *err)
{
    const char *key = first_key(job);
    if (job->loss != JOB_LOSS_SOFTMAX_CE) {
        return key == NULL ? MS_OK
                           : tree_fail(job_node_at(tree, key), err,
                                       "%s has no meaning with loss: %s; leave it out", key,
                                       job_loss_name(job->loss));
    }
    const struct data_shape shape = data_shape_of(&job->dataset);
    if (shape.classes == 1 && job->classes <= 1 && is_new) {
        return fail_one_class(job, tree, err);
    }
    if (shape.target_width > 0 && job->dataset.ignored.is_there) {
        return tree_fail(job_node_at(tree, "ignored_label"), err,
                         "ignored_label has no meaning with targets that are numbers: give a "
                         "sample that does not count 0 of each class");
    }
    const int64_t of_data = shape.classes > 0 ? shape.classes : shape.target_width;
    const int64_t classes = job->classes > 0 ? job->classes : of_data;
    return job->n_class_weights == 0 || job->n_class_weights == classes
               ? MS_OK
               : tree_fail(job_node_at(tree, "class_weights"), err,
                           "class_weights: %d numbers, and %s has %lld classes; give one a class, "
                           "in their order",
                           job->n_class_weights, job->classes > 0 ? "the network" : "the data set",
                           (long long)classes);
}
