/* job_evaluate.c - what is evaluated on, next to what is trained on: alike, and not the same
 * records where they are split */
#include "libworker/job/job_schema.h"
#include "libworker/schema/tree.h"

#include <stdio.h>
#include <string.h>

#define SECTION "evaluate.dataset"

static int says(const struct tree_node *tree, const char *key)
{
    const struct tree_node *evaluate = job_node_at(tree, "evaluate");
    const struct tree_item *item = tree_find(evaluate, "dataset");
    return item != NULL && table_has(item->value, key);
}

/* ---- keys that decide what the records are ---- */

#define TAKE(name) memcpy(&data->name, &train->name, sizeof(data->name))

static void take_images(struct data_spec *data, const struct data_spec *train,
                        const struct tree_node *tree)
{
    if (!says(tree, "size")) {
        TAKE(height);
        TAKE(width);
    }
    if (!says(tree, "colours")) {
        TAKE(colours);
    }
}

/* Of a size of their own, which transforms make that of the training. */
static void settle_size(struct data_spec *data)
{
    if (data->kind == DATA_IMAGE_FOLDER && data->height > 0) {
        data->shape.height = data->height;
        data->shape.width = data->width;
    }
}

static void take_table(struct data_spec *data, const struct data_spec *train,
                       const struct tree_node *tree)
{
    if (!says(tree, "header")) {
        TAKE(has_header);
    }
    if (!says(tree, "separator")) {
        TAKE(separator);
    }
    if (!says(tree, "target")) {
        TAKE(target);
    }
    if (!says(tree, "columns")) {
        TAKE(columns);
    }
    if (!says(tree, "target_kind")) {
        TAKE(target_kind);
    }
    data_take_column_names(data, train, train->column_names);
}

static int64_t count_names(const char *names)
{
    int64_t n = names[0] != '\0';
    for (; *names != '\0'; names++) {
        n += *names == '\n';
    }
    return n;
}

/* What it calls its classes: words of a table are those of the training; other names are given
 * where one of the two has numbers. */
static int take_names(struct data_spec *data, const struct data_spec *train,
                      const struct tree_node *tree, struct ms_err *err)
{
    const struct tree_node *node = job_node_at(tree, SECTION ".class_names");
    const int64_t n = count_names(data->class_names);
    const int64_t classes = data_shape_of(train).classes;
    if (n > 0 && classes > 0 && n != classes) {
        return tree_fail(node, err,
                         SECTION ".class_names: %lld names, and dataset has %lld classes; give one "
                                 "a class, in their order",
                         (long long)n, (long long)classes);
    }
    if (n > 0 && train->class_names[0] != '\0' &&
        strcmp(data->class_names, train->class_names) != 0) {
        return tree_fail(node, err,
                         SECTION ".class_names: others than dataset.class_names, which are "
                                 "trained, or in another order; give the same%s",
                         data->kind == DATA_CSV || data->kind == DATA_IMAGE_FOLDER
                             ? ", or leave it out"
                             : ", and labels by them");
    }
    if (data->kind == DATA_CSV && n == 0) {
        TAKE(class_names);
    }
    return MS_OK;
}

/* Which of its labels an image has: classes that were not trained cannot be counted. */
static int take_labels(struct data_spec *data, const struct data_spec *train,
                       const struct tree_node *tree, struct ms_err *err)
{
    if (!says(tree, "labels")) {
        TAKE(labels);
    }
    return data->labels == train->labels
               ? MS_OK
               : tree_fail(job_node_at(tree, SECTION ".labels"), err,
                           SECTION ".labels: other classes than those of dataset.labels, which are "
                                   "trained; leave it out");
}

static void take_program(struct data_spec *data, const struct data_spec *train,
                         const struct tree_node *tree, int is_same)
{
    if (!says(tree, "arguments") && is_same) {
        TAKE(arguments);
    }
    if (!says(tree, "timeout")) {
        TAKE(timeout);
    }
}

/* Of one place without a split the names of the training's arrays would be its records: there the
 * usual names of the part count. */
static void take_arrays(struct data_spec *data, const struct data_spec *train,
                        const struct tree_node *tree, int is_same)
{
    if (!says(tree, "inputs") && !says(tree, "targets") && (!is_same || train->has_split)) {
        TAKE(inputs);
        TAKE(targets);
    }
    if (!says(tree, "layout")) {
        TAKE(layout);
    }
}

/* The network has places for as many. */
static int take_tokens(struct data_spec *data, const struct data_spec *train,
                       const struct tree_node *tree, struct ms_err *err)
{
    TAKE(vocabulary);
    TAKE(vocabulary_sum);
    if (!says(tree, "tokens")) {
        TAKE(tokens);
    }
    return data->tokens == train->tokens
               ? MS_OK
               : tree_fail(job_node_at(tree, SECTION ".tokens"), err,
                           SECTION ".tokens: %lld, and the network is trained on windows of %lld "
                                   "(dataset.tokens); leave it out",
                           (long long)data->tokens, (long long)train->tokens);
}

/* ---- places and parts ---- */

static int is_same_split(const struct data_spec *a, const struct data_spec *b)
{
    return a->split.test == b->split.test && a->split.seed == b->split.seed;
}

static int take_split(struct data_spec *data, const struct data_spec *train,
                      const struct tree_node *tree, struct ms_err *err)
{
    const struct tree_node *node = job_node_at(tree, SECTION ".split");
    const unsigned long long seed = (unsigned long long)data->split.seed;
    if (data->has_split && !train->has_split) {
        return tree_fail(node, err,
                         SECTION ".split: dataset has the same place and no split, so that all of "
                                 "its records are trained on; give dataset.split: {test: %g, seed: "
                                 "%llu}, and leave this one out",
                         data->split.test, seed);
    }
    if (data->has_split && !is_same_split(data, train)) {
        return tree_fail(
            node, err,
            SECTION ".split: {test: %g, seed: %llu}, and dataset splits the same place "
                    "with {test: %g, seed: %llu}: parts of two splits have records in "
                    "common; leave this one out",
            data->split.test, seed, train->split.test, (unsigned long long)train->split.seed);
    }
    TAKE(has_split);
    TAKE(split);
    return MS_OK;
}

/* It is written as that of the training, so that nobody has to compare files again; a place without
 * parts has the records of the training, whatever the usage. */
static void take_place(struct data_spec *data, const struct data_spec *train, enum data_place place)
{
    struct data_parts of_data;
    struct data_parts of_train;
    int is_all = 0;
    if (!data->has_split && data_find_parts(data, &of_data, NULL) == MS_OK &&
        data_find_parts(train, &of_train, NULL) == MS_OK) {
        is_all = of_data.usages == 0 && (of_train.usages == 0 || train->usage == DATA_TRAIN);
    }
    if (is_all) {
        TAKE(usage);
    }
    if (is_all || data->has_split || place == DATA_SAME_PATH) {
        TAKE(path);
    }
}

static int has_other_arrays(const struct data_spec *a, const struct data_spec *b)
{
    return strcmp(a->inputs, b->inputs) != 0 || strcmp(a->targets, b->targets) != 0;
}

static enum data_place compare(const struct job *job, const char *base_dir)
{
    const struct data_spec *train = &job->dataset;
    const struct data_spec *data = &job->evaluate_dataset;
    const int has_arrays = data->inputs[0] != '\0' || data->targets[0] != '\0';
    if (has_arrays && has_other_arrays(data, train)) {
        return DATA_OTHER_PLACE;
    }
    if (data->arguments[0] != '\0' && strcmp(data->arguments, train->arguments) != 0) {
        return DATA_OTHER_PLACE;
    }
    if (base_dir != NULL) {
        return data_compare_places(data, train);
    }
    return strcmp(data->path, train->path) == 0 ? DATA_SAME_PATH : DATA_OTHER_PLACE;
}

/* Which arrays the usual names of the training are is not known here. */
static int check_arrays(const struct job *job, const struct tree_node *tree, const char *base_dir,
                        struct ms_err *err)
{
    const struct data_spec *train = &job->dataset;
    const struct data_spec *data = &job->evaluate_dataset;
    const int has_arrays = data->kind == DATA_NUMPY || data->kind == DATA_SAFETENSORS;
    if (base_dir == NULL || !has_arrays || !train->has_split || train->inputs[0] != '\0' ||
        data->inputs[0] == '\0' || data_compare_places(data, train) == DATA_OTHER_PLACE) {
        return MS_OK;
    }
    return tree_fail(job_node_at(tree, SECTION ".inputs"), err,
                     SECTION ".inputs: dataset splits arrays of the same place, and does not name "
                             "them; give dataset.inputs and dataset.targets, too, or leave these "
                             "out for the test of its split");
}

/* ---- columns ---- */

/* One line, and short. */
static void show_columns(const char *columns, char *buf, size_t size)
{
    size_t used = 0;
    for (const char *at = columns; *at != '\0' && used + 4 < size; at++) {
        used += (size_t)snprintf(buf + used, size - used, "%s%c", *at == '\n' ? "," : "",
                                 *at == '\n' ? ' ' : *at);
    }
    snprintf(buf + used, size - used, "%s", columns[0] == '\0' ? "all others" : "");
}

/* Where one of the files has no names, its columns have numbers. */
static int check_columns(const struct data_spec *data, const struct data_spec *train,
                         const struct tree_node *tree, struct ms_err *err)
{
    char of_data[120];
    char of_train[120];
    if (data->has_header != train->has_header || strcmp(data->columns, train->columns) == 0) {
        return MS_OK;
    }
    show_columns(data->columns, of_data, sizeof(of_data));
    show_columns(train->columns, of_train, sizeof(of_train));
    return tree_fail(job_node_at(tree, SECTION ".columns"), err,
                     SECTION ".columns: [%s], and the network is trained on [%s] "
                             "(dataset.columns), in this order; give both the same, or leave this "
                             "one out",
                     of_data, of_train);
}

int job_settle_evaluate(struct job *job, const struct tree_node *tree, const char *base_dir,
                        struct ms_err *err)
{
    struct data_spec *data = &job->evaluate_dataset;
    const struct data_spec *train = &job->dataset;
    int rc = MS_OK;
    TAKE(ignored);
    data->values = data_values_of(train);
    if (job->has_evaluate && data->kind == train->kind) {
        rc = take_labels(data, train, tree, err);
    }
    if (rc == MS_OK && job->has_evaluate) {
        rc = take_names(data, train, tree, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (!job->has_evaluate || !data_kind_is_own(data->kind)) {
        return MS_OK;
    }
    data->shape = data_shape_of(train);
    settle_size(data);
    if (data->kind != train->kind || data->kind == DATA_CALLBACK) {
        return MS_OK;
    }
    rc = check_arrays(job, tree, base_dir, err);
    const enum data_place place = compare(job, base_dir);
    if (data->kind == DATA_IMAGE_FOLDER) {
        take_images(data, train, tree);
        settle_size(data);
    } else if (data->kind == DATA_TEXT) {
        rc = take_tokens(data, train, tree, err);
    } else if (data->kind == DATA_CSV) {
        take_table(data, train, tree);
        rc = check_columns(data, train, tree, err);
    } else if (data->kind == DATA_PROGRAM) {
        take_program(data, train, tree, place != DATA_OTHER_PLACE);
    } else {
        take_arrays(data, train, tree, place != DATA_OTHER_PLACE);
    }
    if (rc == MS_OK && place != DATA_OTHER_PLACE) {
        rc = take_split(data, train, tree, err);
    }
    if (rc == MS_OK && place != DATA_OTHER_PLACE && base_dir != NULL) {
        take_place(data, train, place);
    }
    return rc;
}
