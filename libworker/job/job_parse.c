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

int job_parse(const char *text, size_t size, const char *origin, const char *base_dir,
              const struct job_override *overrides, size_t n, int workers, struct job *ret,
              struct ms_err *err)
{
    struct tree_node *root = NULL;
    struct job *job = calloc(1, sizeof(*job));
    char **origins = calloc(n + 1, sizeof(*origins));
    const struct table_reader reader = {
        .table = &job_table, .prefix = "", .base_dir = base_dir, .err = err};
    int rc = MS_OK;
    if (job == NULL || origins == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "%.120s: no memory to read it", origin);
        goto out;
    }
    if (size > MS_JOB_FILE_MAX) {
        rc = tree_fail_at(origin, 0, 0, err, "%zu bytes: a job has at most %u", size,
                          MS_JOB_FILE_MAX);
        goto out;
    }
    rc = tree_parse(text, size, origin, 1, &root, err);
    if (rc == MS_OK && tree_is_null(root)) {
        rc = tree_fail(root, err, "the file is empty; examples/ has jobs to start from");
    } else if (rc == MS_OK && root->kind != TREE_MAP) {
        rc = tree_fail(root, err, "a job is a list of lines \"key: value\"; this is %s",
                       root->kind == TREE_LIST ? "a list of values" : "a single value");
    }
    if (rc == MS_OK) {
        rc = apply_overrides(root, overrides, n, origins, err);
    }
    if (rc == MS_OK) {
        rc = table_read(&reader, root, job);
    }
    if (rc == MS_OK) {
        rc = job_take_weights(job, root, base_dir, err);
    }
    if (rc == MS_OK && workers > MS_WORKERS_MAX) {
        rc = ms_fail(err, MS_E_INVALID, "-n %d: give a whole number from 1 to %d", workers,
                     MS_WORKERS_MAX);
    }
    if (rc < 0) {
        goto out;
    }
    job->workers = workers > 0 ? workers : job->workers;
    rc = job_settle_data(job, root, base_dir, err);
    if (rc < 0) {
        goto out;
    }
    derive(job, table_has(root, "loss"), table_has(root, "recovery"));
    rc = job_check(job, root, base_dir, err);
    if (rc == MS_OK) {
        memcpy(ret, job, sizeof(*ret));
    }
out:
    tree_destroy(root);
    for (size_t i = 0; origins != NULL && i < n; i++) {
        free(origins[i]);
    }
    free(origins);
    free(job);
    return rc;
}
