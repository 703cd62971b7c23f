/* job_parse.c - from YAML to a job: overrides, the table, what follows from other keys */
#include "libworker/job/job_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Defaults that follow from other keys. */
static void derive(struct job *job, int loss_is_given, int recovery_is_given)
{
    if (job->name[0] == '\0') {
        memcpy(job->name, job->network, sizeof(job->name));
    }
    if (!loss_is_given) {
        const struct data_shape shape = data_shape_of(&job->dataset);
        job->loss = shape.target_width > 0 ? JOB_LOSS_MSE : JOB_LOSS_SOFTMAX_CE;
    }
    if (job->has_checkpoint && job->checkpoint_prefix[0] == '\0') {
        memcpy(job->checkpoint_prefix, job->name, sizeof(job->checkpoint_prefix));
    }
    if (job->has_evaluate && job->evaluate_batch_size == 0) {
        job->evaluate_batch_size = job->batch_size;
    }
    if (!recovery_is_given && job_is_split(job)) {
        job->recovery = 0;
    }
}

static int apply_overrides(struct tree_node *root, const struct job_override *overrides, size_t n,
                           char **origins, struct ms_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = overrides[i].key_value;
        const char *equals = strchr(text, '=');
        if (equals == NULL || equals == text) {
            return ms_fail(err, MS_E_INVALID, "--set %.60s: write --set KEY=VALUE", text);
        }
        size_t length = (size_t)(equals - text);
        size_t size = length + sizeof("--set ");
        origins[i] = malloc(size);
        if (origins[i] == NULL) {
            return ms_fail(err, MS_E_NOMEM, "--set: no memory");
        }
        snprintf(origins[i], size, "--set %.*s", (int)length, text);
        if (equals[1] == '\0') {
            return ms_fail(err, MS_E_INVALID, "%.100s: no value after the =", origins[i]);
        }
        struct tree_node *value = NULL;
        int rc = tree_parse(equals + 1, strlen(equals + 1), origins[i], 0, &value, err);
        if (rc == MS_OK) {
            rc = tree_set(root, origins[i] + strlen("--set "), value, err);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return MS_OK;
}

/* The whole key, not the way to it. */
static const struct tree_node *find(const struct tree_node *root, const char *key)
{
    const struct tree_node *node = job_node_at(root, key);
    const char *dot = strrchr(key, '.');
    char above[64];
    snprintf(above, sizeof(above), "%.*s", dot != NULL ? (int)(dot - key) : 0, key);
    return node != job_node_at(root, above) ? node : NULL;
}

static int add_parts(struct tree_node *root, struct job_part *parts, size_t n, struct ms_err *err)
{
    int rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < n; i++) {
        struct tree_node *value = parts[i].value;
        const struct tree_node *there = find(root, parts[i].key);
        if (there != NULL) {
            rc = tree_fail(there, err, "%s: the program says it by a function; leave the key out",
                           parts[i].key);
        } else if (value != NULL) {
            parts[i].value = NULL;
            rc = tree_set(root, parts[i].key, value, err);
        }
    }
    return rc;
}

static int parse_map(const char *text, size_t size, const char *origin, struct tree_node **ret,
                     struct ms_err *err)
{
    if (size > MS_JOB_FILE_MAX) {
        return tree_fail_at(origin, 0, 0, err, "%zu bytes: a job has at most %u", size,
                            MS_JOB_FILE_MAX);
    }
    int rc = tree_parse(text, size, origin, 1, ret, err);
    if (rc < 0) {
        return rc;
    }
    if (tree_is_null(*ret)) {
        return tree_fail(*ret, err, "the file is empty; examples/ has jobs to start from");
    }
    return (*ret)->kind == TREE_MAP
               ? MS_OK
               : tree_fail(*ret, err, "a job is a list of lines \"key: value\"; this is %s",
                           (*ret)->kind == TREE_LIST ? "a list of values" : "a single value");
}

static int read_map(const struct tree_node *root, const char *base_dir, int workers,
                    struct job *job, struct ms_err *err)
{
    const struct table_reader reader = {
        .table = &job_table, .prefix = "", .base_dir = base_dir, .err = err};
    int rc = table_read(&reader, root, job);
    if (rc == MS_OK) {
        rc = job_take_weights(job, root, base_dir, err);
    }
    if (rc == MS_OK && workers > MS_WORKERS_MAX) {
        rc = ms_fail(err, MS_E_INVALID, "-n %d: give a whole number from 1 to %d", workers,
                     MS_WORKERS_MAX);
    }
    if (rc < 0) {
        return rc;
    }
    job->workers = workers > 0 ? workers : job->workers;
    rc = job_settle_data(job, root, base_dir, err);
    if (rc < 0) {
        return rc;
    }
    derive(job, table_has(root, "loss"), table_has(root, "recovery"));
    return job_check(job, root, base_dir, err);
}

/* ret is written only on success. */
static int read_job(const struct tree_node *root, const char *base_dir, int workers,
                    struct job *ret, struct ms_err *err)
{
    struct job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.120s: no memory to read it", root->origin);
    }
    int rc = read_map(root, base_dir, workers, job, err);
    if (rc == MS_OK) {
        memcpy(ret, job, sizeof(*ret));
    }
    free(job);
    return rc;
}

int job_parse(const char *text, size_t size, const char *origin, const char *base_dir,
              const struct job_override *overrides, size_t n, int workers, struct job *ret,
              struct ms_err *err)
{
    struct tree_node *root = NULL;
    char **origins = calloc(n + 1, sizeof(*origins));
    if (origins == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.120s: no memory to read it", origin);
    }
    int rc = parse_map(text, size, origin, &root, err);
    if (rc == MS_OK) {
        rc = apply_overrides(root, overrides, n, origins, err);
    }
    if (rc == MS_OK) {
        rc = read_job(root, base_dir, workers, ret, err);
    }
    tree_destroy(root);
    for (size_t i = 0; i < n; i++) {
        free(origins[i]);
    }
    free(origins);
    return rc;
}

int job_parse_parts(const char *text, size_t size, const char *origin, const char *base_dir,
                    struct job_part *parts, size_t n, struct job *ret, struct ms_err *err)
{
    struct tree_node *root = NULL;
    int rc = parse_map(text, size, origin, &root, err);
    if (rc == MS_OK) {
        rc = add_parts(root, parts, n, err);
    }
    if (rc == MS_OK) {
        rc = read_job(root, base_dir, 0, ret, err);
    }
    tree_destroy(root);
    for (size_t i = 0; i < n; i++) {
        tree_destroy(parts[i].value);
        parts[i].value = NULL;
    }
    return rc;
}
