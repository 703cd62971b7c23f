/* job_check.c - what spans the keys of a job: loss and data, transforms and images, evaluation,
 * schedule and length */
#include "libworker/job/job_schema.h"
#include "libworker/network/network.h"
#include "libworker/schema/tree.h"
#include "proto/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct tree_node *job_node_at(const struct tree_node *root, const char *path)
{
    const struct tree_node *node = root;
    while (*path != '\0') {
        size_t length = strcspn(path, ".");
        char key[64];
        if (length >= sizeof(key)) {
            break;
        }
        memcpy(key, path, length);
        key[length] = '\0';
        const struct tree_item *item = tree_find(node, key);
        if (item == NULL) {
            break;
        }
        node = item->value;
        path += length + (path[length] == '.');
    }
    return node;
}

static int check_dataset(const struct data_spec *data, const struct tree_node *tree,
                         const char *section, struct ms_err *err)
{
    const int has_all = data->kind == DATA_CIFAR10 || data->kind == DATA_CIFAR100 ||
                        data->kind == DATA_MNIST || data->kind == DATA_PROGRAM;
    if (!has_all && data->usage == DATA_ALL) {
        return tree_fail(job_node_at(tree, section), err,
                         "%s.usage: all has no meaning with kind: %s; give train or test", section,
                         job_data_kind_name(data->kind));
    }
    if ((data->height == 0) != (data->width == 0)) {
        return tree_fail(job_node_at(tree, section), err,
                         "%s.size: height and width are both above 0, or both 0", section);
    }
    if ((data->inputs[0] == '\0') != (data->targets[0] == '\0')) {
        return tree_fail(job_node_at(tree, section), err,
                         "%s: inputs and targets name two arrays that belong together; give both, "
                         "or neither",
                         section);
    }
    return MS_OK;
}

static int is_settled(const struct data_shape *shape)
{
    return shape->channels > 0 && (shape->classes > 0 || shape->target_width > 0);
}

/* They go into the job, so that what is tested on is held against them where the folders are gone;
 * where they cannot, the folders alone say them. */
static void keep_folders(const struct data_info *info, struct data_spec *data)
{
    char *names = data->class_names;
    size_t used = 0;
    for (int64_t i = 0; i < info->classes; i++) {
        const size_t length = strlen(info->folders[i]);
        if (length > MS_NAME_MAX || used + (i > 0) + length > DATA_CLASS_NAMES_MAX ||
            !ms_text_is_valid(info->folders[i], MS_TEXT_LINE)) {
            names[0] = '\0';
            return;
        }
        used += (size_t)snprintf(names + used, sizeof(data->class_names) - used, "%s%s",
                                 i > 0 ? "\n" : "", info->folders[i]);
    }
}

int job_settle_data(struct job *job, const struct tree_node *tree, const char *base_dir,
                    struct ms_err *err)
{
    struct data_shape *shape = &job->dataset.shape;
    struct data_source *source = NULL;
    struct ms_err why = {0, ""};
    if (shape->classes > 0 && shape->target_width > 0) {
        return tree_fail(job_node_at(tree, "dataset.target_width"), err,
                         "dataset.target_width: targets are classes or numbers; give classes or "
                         "target_width");
    }
    int rc = check_dataset(&job->dataset, tree, "dataset", err);
    if (rc < 0) {
        return rc;
    }
    if (data_kind_is_own(job->dataset.kind) && !is_settled(shape)) {
        if (base_dir == NULL) {
            return tree_fail(job_node_at(tree, "dataset"), err,
                             "dataset: shape and classes (or target_width) are missing; msctl "
                             "submit and msctl run fill them in from the files");
        }
        rc = data_open(&job->dataset, &source, &why);
        if (rc < 0) {
            const int is_elsewhere = rc != MS_E_INVALID || strstr(job->dataset.path, "${") != NULL;
            return tree_fail(job_node_at(tree, "dataset"), err, "dataset: %s%s", why.text,
                             is_elsewhere ? "; where they are elsewhere, give shape and classes or "
                                            "target_width"
                                          : "");
        }
        const struct data_info *info = data_get_info(source);
        *shape = (struct data_shape){info->channels, info->height, info->width, info->classes,
                                     info->target_width};
        if (job->dataset.kind == DATA_NUMPY || job->dataset.kind == DATA_SAFETENSORS ||
            job->dataset.kind == DATA_PROGRAM) {
            job->dataset.values = info->dtype == MS_U8 ? DATA_BYTES : DATA_NUMBERS;
        }
        if (info->class_names != NULL &&
            !ms_text_is_valid(info->class_names, MS_TEXT_LINES)) { /* they go into the job */
            rc = tree_fail(job_node_at(tree, "dataset"), err,
                           "dataset: names of classes in %.200s are no UTF-8 without controls",
                           job->dataset.path);
        } else if (info->class_names != NULL) {
            snprintf(job->dataset.class_names, sizeof(job->dataset.class_names), "%s",
                     info->class_names);
        } else if (info->folders != NULL) {
            keep_folders(info, &job->dataset);
        }
        snprintf(job->dataset.column_names, sizeof(job->dataset.column_names), "%s",
                 info->column_names != NULL ? info->column_names : "");
        snprintf(job->dataset.vocabulary_sum, sizeof(job->dataset.vocabulary_sum), "%s",
                 info->vocabulary_sum != NULL ? info->vocabulary_sum : "");
        data_close(source);
    }
    return rc < 0 ? rc : job_settle_evaluate(job, tree, base_dir, err);
}

/* Whole numbers are classes where nobody says that they are none. */
static const char *say_numbers(enum data_kind kind)
{
    return kind == DATA_CSV
               ? ", or give dataset.target_kind: number where its whole numbers are no classes"
           : kind == DATA_SAFETENSORS
               ? ", or write y.float() where its whole numbers are no classes"
           : kind == DATA_NUMPY
               ? ", or write y.astype('float32') where its whole numbers are no classes"
               : "";
}

/* Loss, classes and data must speak of the same thing. */
static int check_loss(const struct job *job, const struct tree_node *tree, struct ms_err *err)
{
    const struct data_shape record = data_shape_of(&job->dataset);
    const char *kind = job_data_kind_name(job->dataset.kind);
    const int has_classes = job->loss == JOB_LOSS_SOFTMAX_CE;
    if (!has_classes && record.classes > 0) {
        return tree_fail(job_node_at(tree, "loss"), err,
                         "loss: %s wants numbers as targets, and dataset kind %s has classes; use "
                         "softmax_cross_entropy%s",
                         job_loss_name(job->loss), kind, say_numbers(job->dataset.kind));
    }
    if (has_classes && record.classes == 0 && record.target_width < 2) {
        return tree_fail(
            job_node_at(tree, "loss"), err,
            "loss: softmax_cross_entropy wants classes, or what each of several counts, and "
            "dataset kind %s has a number as target; use mse%s",
            kind,
            job->dataset.kind == DATA_CSV
                ? ", or ignored_label: N where N, below 0, is a label that does not count"
                : "");
    }
    if (job->classes != 0 && job->classes < record.classes) {
        return tree_fail(
            job_node_at(tree, "classes"), err,
            "classes: %d, but dataset kind %s has labels 0 to %lld; give at least %lld, or "
            "leave it out",
            job->classes, kind, (long long)record.classes - 1, (long long)record.classes);
    }
    if (job->classes != 0 && record.classes == 0) {
        return tree_fail(job_node_at(tree, "classes"), err,
                         "classes: dataset kind %s has no classes; leave it out", kind);
    }
    return MS_OK;
}

/* transform_check names the transform; here the first bad one gets its line. */
static int check_transforms(const struct job *job, const struct tree_node *tree, struct ms_err *err)
{
    const struct data_shape record = data_shape_of(&job->dataset);
    const struct tree_node *list = job_node_at(tree, "transforms");
    if (record.height == 1 && record.width == 1 && job->n_transforms > 0 &&
        job->dataset.kind == DATA_IMAGE_FOLDER) {
        return tree_fail(job_node_at(tree, "dataset.size"), err,
                         "dataset.size: images of 1x1 pixel leave the transforms nothing to do; "
                         "give the height and width that the network is made for, as [224, 224]");
    }
    if (record.height == 1 && record.width == 1 && job->n_transforms > 0) {
        return tree_fail(list, err, "transforms: dataset kind %s has no images; leave them out",
                         job_data_kind_name(job->dataset.kind));
    }
    for (int n = 1; n <= job->n_transforms; n++) {
        int64_t channels = record.channels;
        int64_t height = record.height;
        int64_t width = record.width;
        struct ms_err why = {0, ""};
        if (transform_check(job->transforms, n, &channels, &height, &width, &why) < 0) {
            const struct tree_node *entry =
                list->kind == TREE_LIST ? list->items[n - 1].value : list;
            return tree_fail(entry, err, "%s", why.text);
        }
    }
    return MS_OK;
}

static int fail_size(const struct job *job, const struct tree_node *tree,
                     const struct data_shape *test, const struct data_shape *train,
                     struct ms_err *err)
{
    return tree_fail(job_node_at(tree, "evaluate.dataset.size"), err,
                     "evaluate.dataset.size: images of %lldx%lld are %lldx%lld behind the "
                     "transforms of an evaluation, and those of the training %lldx%lld, of "
                     "%lldx%lld (dataset.size); leave it out, or add resize: {size: [%lld, %lld]}",
                     (long long)job->evaluate_dataset.height,
                     (long long)job->evaluate_dataset.width, (long long)test->height,
                     (long long)test->width, (long long)train->height, (long long)train->width,
                     (long long)data_shape_of(&job->dataset).height,
                     (long long)data_shape_of(&job->dataset).width, (long long)train->height,
                     (long long)train->width);
}

/* Evaluation leaves the random transforms out; what is left must make images of the same size. */
static int check_evaluate_shape(const struct job *job, const struct tree_node *tree,
                                struct ms_err *err)
{
    struct data_shape train = data_shape_of(&job->dataset);
    struct data_shape test = data_shape_of(&job->evaluate_dataset);
    const int is_alike = test.height == train.height && test.width == train.width;
    struct transform fixed[MS_TRANSFORMS_MAX];
    struct ms_err why = {0, ""};
    int n = 0;
    for (int i = 0; i < job->n_transforms; i++) {
        if (!transform_is_random(&job->transforms[i])) {
            fixed[n++] = job->transforms[i];
        }
    }
    (void)transform_check(job->transforms, job->n_transforms, &train.channels, &train.height,
                          &train.width, NULL);
    int rc = transform_check(fixed, n, &test.channels, &test.height, &test.width, &why);
    if (rc < 0 && !is_alike) {
        return tree_fail(job_node_at(tree, "evaluate.dataset.size"), err,
                         "evaluate.dataset.size: %s, and dataset.size is another one; leave it out",
                         why.text);
    }
    const int fits = test.height == train.height && test.width == train.width;
    if (!fits && !is_alike) {
        return fail_size(job, tree, &test, &train, err);
    }
    if (!fits) {
        return tree_fail(job_node_at(tree, "evaluate"), err,
                         "evaluate: without random crops, which evaluation leaves out, images are "
                         "%lldx%lld, but training has %lldx%lld; add %s: {size: [%lld, %lld]}",
                         (long long)test.height, (long long)test.width, (long long)train.height,
                         (long long)train.width,
                         test.height >= train.height && test.width >= train.width ? "centre_crop"
                                                                                  : "resize",
                         (long long)train.height, (long long)train.width);
    }
    return MS_OK;
}

/* Those of classes want classes, and a distance targets of the output's kind. */
static int check_metrics(const struct job *job, const struct tree_node *tree, struct ms_err *err)
{
    const unsigned distances = 1U << JOB_METRIC_MAE;
    const int has_classes = job->loss == JOB_LOSS_SOFTMAX_CE;
    const int has_distances = !has_classes && job->loss != JOB_LOSS_BCE;
    if (!has_distances && (job->evaluate_metrics & distances) != 0) {
        return tree_fail(job_node_at(tree, "evaluate.metrics"), err,
                         "evaluate.metrics: mae is the distance to targets that are numbers, and "
                         "loss: %s has %s; leave it out",
                         job_loss_name(job->loss), has_classes ? "classes" : "logits");
    }
    if (!has_classes && (job->evaluate_metrics & ~distances) != 0) {
        return tree_fail(job_node_at(tree, "evaluate.metrics"), err,
                         "evaluate.metrics: with loss: %s targets are numbers, no classes; leave "
                         "top5, per_class, confusion and perplexity out",
                         job_loss_name(job->loss));
    }
    return MS_OK;
}

static int check_evaluate(const struct job *job, const struct tree_node *tree, struct ms_err *err)
{
    static const char section[] = "evaluate.dataset";
    const struct data_shape train = data_shape_of(&job->dataset);
    const struct data_shape test = data_shape_of(&job->evaluate_dataset);
    const int has_size =
        job->evaluate_dataset.kind == DATA_IMAGE_FOLDER && job->evaluate_dataset.height > 0;
    const int is_sized = has_size || (test.height == train.height && test.width == train.width);
    if (test.channels != train.channels || test.classes != train.classes || !is_sized ||
        test.target_width != train.target_width) {
        return tree_fail(job_node_at(tree, section), err,
                         "evaluate.dataset: kind %s does not fit training on kind %s",
                         job_data_kind_name(job->evaluate_dataset.kind),
                         job_data_kind_name(job->dataset.kind));
    }
    int rc = check_dataset(&job->evaluate_dataset, tree, section, err);
    rc = rc < 0 ? rc : check_metrics(job, tree, err);
    return rc < 0 ? rc : check_evaluate_shape(job, tree, err);
}

static int check_nesterov(const struct job *job, const struct tree_node *tree, struct ms_err *err)
{
    return job->optimizer.nesterov && job->optimizer.momentum == 0
               ? tree_fail(job_node_at(tree, "optimizer.nesterov"), err,
                           "optimizer.nesterov: true wants a momentum above 0; give "
                           "optimizer.momentum, or false")
               : MS_OK;
}

static int check_clip(const struct job *job, const struct tree_node *tree, struct ms_err *err)
{
    return job->optimizer.clip_norm > 0 && job->optimizer.clip_value > 0
               ? tree_fail(
                     job_node_at(tree, "optimizer.clip_value"), err,
                     "optimizer.clip_value has no meaning with optimizer.clip_norm: gradients "
                     "are clipped in one way; leave one of them out")
               : MS_OK;
}

/* ---- the schedule ---- */

#define SCHEDULE "optimizer.schedule"

static int counts_its_kind(const struct job_schedule *schedule)
{
    return schedule->kind == JOB_STEP_DECAY || schedule->kind == JOB_MULTI_STEP ||
           schedule->kind == JOB_EXPONENTIAL;
}

/* Some count steps, others epochs: a number that is taken for the other one trains, and badly. */
static int check_given(const struct job_schedule *schedule, const struct tree_node *tree,
                       struct ms_err *err)
{
    const struct tree_node *section = job_node_at(tree, SCHEDULE);
    const int counts = counts_its_kind(schedule) || schedule->warmup > 0 || schedule->length > 0;
    if (counts && !table_has(section, "by")) {
        return tree_fail(section, err, SCHEDULE ".by is missing (%s); give step | epoch",
                         counts_its_kind(schedule) ? "what the schedule counts"
                                                   : "what warmup and length count");
    }
    if (schedule->kind == JOB_EXPONENTIAL && !table_has(section, "gamma")) {
        return tree_fail(section, err,
                         SCHEDULE ".gamma is missing (by what each step or epoch multiplies the "
                                  "rate); give a number from 0 to 1");
    }
    return MS_OK;
}

static int check_warmup(const struct job *job, const struct tree_node *tree, struct ms_err *err)
{
    const struct job_schedule *schedule = &job->optimizer.schedule;
    const struct tree_node *node = job_node_at(tree, SCHEDULE ".warmup");
    const int by_epoch = schedule->by == JOB_BY_EPOCH;
    const long long warmup = schedule->warmup;
    const long long longest = by_epoch ? job->epochs : job->steps;
    if (longest > 0 && warmup > longest) {
        return tree_fail(node, err,
                         SCHEDULE ".warmup: %lld %s, and the job has %lld; give 0 to %lld", warmup,
                         by_epoch ? "epochs" : "steps", longest, longest);
    }
    if (schedule->length > 0 && schedule->length <= warmup) {
        return tree_fail(job_node_at(tree, SCHEDULE ".length"), err,
                         SCHEDULE ".length: %lld, and the warm-up is a part of it; give %lld or "
                                  "more, or less warmup",
                         (long long)schedule->length, warmup + 1);
    }
    if (schedule->n_milestones > 0 && schedule->milestones[0] <= warmup) {
        return tree_fail(job_node_at(tree, SCHEDULE ".milestones"), err,
                         SCHEDULE ".milestones: %lld lies within the warm-up, and they count from "
                                  "the job's beginning; give %lld or more",
                         (long long)schedule->milestones[0], warmup + 1);
    }
    return MS_OK;
}

static int check_rates(const struct job_optimizer *optimizer, const struct tree_node *tree,
                       struct ms_err *err)
{
    const struct job_schedule *schedule = &optimizer->schedule;
    const double rate = optimizer->learning_rate;
    if (schedule->min_learning_rate > rate) {
        return tree_fail(job_node_at(tree, SCHEDULE ".min_learning_rate"), err,
                         SCHEDULE ".min_learning_rate: %g is more than optimizer.learning_rate; "
                                  "give 0 to %g",
                         schedule->min_learning_rate, rate);
    }
    if (schedule->kind == JOB_ONE_CYCLE && schedule->max_learning_rate < rate) {
        return tree_fail(job_node_at(tree, SCHEDULE ".max_learning_rate"), err,
                         SCHEDULE ".max_learning_rate: %g is less than optimizer.learning_rate, "
                                  "from which it rises; give %g to 1000",
                         schedule->max_learning_rate, rate);
    }
    return MS_OK;
}

static int check_schedule(const struct job *job, const struct tree_node *tree, struct ms_err *err)
{
    int rc = job->optimizer.has_schedule ? check_given(&job->optimizer.schedule, tree, err) : MS_OK;
    rc = rc < 0 ? rc : check_warmup(job, tree, err);
    return rc < 0 ? rc : check_rates(&job->optimizer, tree, err);
}

/* ---- paths, ranks ---- */

int job_is_split(const struct job *job)
{
    return job->mode == JOB_STAND_ALONE && job->workers > 1;
}

const char *job_refuse_split(const struct job *job, const char **ret_key)
{
    const int has_start = job->has_checkpoint || job->resume[0] != '\0';
    *ret_key = job->has_checkpoint ? "checkpoint" : has_start ? "resume" : "recovery";
    if (!job_is_split(job) || (!has_start && !job->recovery)) {
        return NULL;
    }
    return has_start ? "a checkpoint holds one" : "no other one holds what a lost one had";
}

static int check_split(const struct job *job, const struct tree_node *tree, struct ms_err *err)
{
    const char *key = NULL;
    const char *why = job_refuse_split(job, &key);
    return why == NULL
               ? MS_OK
               : tree_fail(job_node_at(tree, key), err,
                           "%s: in mode stand_alone each of the %d workers has a training of its "
                           "own, and %s; use one worker, or data_parallel",
                           key, job->workers, why);
}

/* msctl run takes its database away at the end, with whatever is called like it; and the best
 * weights are called as checkpoints may be. */
static int check_prefix(const struct job *job, const struct tree_node *tree, struct ms_err *err)
{
    char name[MS_NAME_MAX + 2];
    if (job->has_checkpoint && job->has_best && job->best_keep > 1 &&
        strcmp(job->checkpoint_prefix, "best") == 0) {
        return tree_fail(job_node_at(tree, "checkpoint.prefix"), err,
                         "checkpoint.prefix: with best.keep: %d the best weights are called "
                         "best-STEP; give another prefix",
                         job->best_keep);
    }
    const int may_be_root =
        job_output_is_root(job->checkpoint_directory) || job->checkpoint_directory[0] == '/';
    if (!job->has_checkpoint || !may_be_root) {
        return MS_OK;
    }
    snprintf(name, sizeof(name), "%s-", job->checkpoint_prefix);
    return !job_output_is_database(name)
               ? MS_OK
               : tree_fail(job_node_at(tree, "checkpoint.prefix"), err,
                           "checkpoint.prefix: '%s' in a run directory itself would be taken for "
                           "the scheduler's database; give another prefix, or a relative "
                           "directory",
                           job->checkpoint_prefix);
}

_Static_assert((int)JOB_LOSS_SOFTMAX_CE == (int)NETWORK_LOSS_SOFTMAX_CE &&
                   (int)JOB_LOSS_MSE == (int)NETWORK_LOSS_MSE &&
                   (int)JOB_LOSS_L1 == (int)NETWORK_LOSS_L1 &&
                   (int)JOB_LOSS_HUBER == (int)NETWORK_LOSS_HUBER &&
                   (int)JOB_LOSS_BCE == (int)NETWORK_LOSS_BCE,
               "a job's losses are the network's");

/* What the data are when they come to the network. */
static struct network_input input_of(const struct job *job)
{
    const struct data_shape record = data_shape_of(&job->dataset);
    struct network_input input = {.batch = job->batch_size,
                                  .channels = record.channels,
                                  .height = record.height,
                                  .width = record.width,
                                  .classes = job->classes > 0     ? job->classes
                                             : record.classes > 0 ? record.classes
                                                                  : record.target_width};
    job_put_loss(job, &input);
    input.tokens = job->dataset.kind == DATA_TEXT ? record.channels : 0;
    (void)transform_check(job->transforms, job->n_transforms, &input.channels, &input.height,
                          &input.width, NULL);
    return input;
}

int job_network_build(const struct job *job, const struct network *network,
                      struct network_layers **ret_layers, struct graph **ret, struct ms_err *err)
{
    const struct network_input input = input_of(job);
    const enum network_loss loss = (enum network_loss)job->loss;
    return ret_layers == NULL ? network_build(network, &input, loss, ret, err)
                              : network_build_layers(network, &input, loss, ret_layers, ret, err);
}

/* Its shapes have to follow from the data, and groups from its parameters. */
static int check_network(const struct job *job, const struct tree_node *tree, const char *base_dir,
                         struct ms_err *err)
{
    const struct field *row = job_table.rows;
    while (strcmp(row->key, "network") != 0) {
        row++;
    }
    const struct field_reader reader = {row, row->key, base_dir, err};
    struct network *network = NULL;
    struct graph *graph = NULL;
    const struct tree_node *node = job_node_at(tree, "network");
    struct ms_err why = {0, ""};
    int rc = job_network_read(&reader, node, &network);
    if (rc == MS_OK) {
        rc = job_network_build(job, network, NULL, &graph, &why);
        const int has_place = job->layers[0] != '\0'; /* in the list */
        if (rc == MS_E_INVALID && !has_place) {
            rc = tree_fail(node, err, "%s", why.text);
        } else if (rc < 0) {
            rc = ms_fail(err, rc, "%s", why.text);
        }
    }
    rc = rc < 0 ? rc : job_check_groups(job, job_node_at(tree, "optimizer.groups"), graph, err);
    graph_destroy(graph);
    network_destroy(network);
    return rc;
}

int job_check(const struct job *job, const struct tree_node *tree, const char *base_dir,
              struct ms_err *err)
{
    int rc = check_split(job, tree, err);
    if (rc == MS_OK) {
        rc = check_prefix(job, tree, err);
    }
    if (rc == MS_OK) {
        rc = check_dataset(&job->dataset, tree, "dataset", err);
    }
    if (rc == MS_OK) {
        rc = check_loss(job, tree, err);
    }
    if (rc == MS_OK) {
        rc = job_check_labels(job, tree, base_dir != NULL, err);
    }
    if (rc == MS_OK) {
        rc = check_transforms(job, tree, err);
    }
    if (rc == MS_OK && job->has_evaluate) {
        rc = check_evaluate(job, tree, err);
    }
    if (rc == MS_OK) {
        rc = job_check_judges(job, tree, err);
    }
    if (rc == MS_OK) {
        rc = check_nesterov(job, tree, err);
    }
    if (rc == MS_OK) {
        rc = check_clip(job, tree, err);
    }
    if (rc == MS_OK) {
        rc = check_schedule(job, tree, err);
    }
    return rc < 0 ? rc : check_network(job, tree, base_dir, err);
}
