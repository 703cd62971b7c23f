/* job_inputs.c - are the files there that a job reads? */
#include "libworker/data/path.h"
#include "libworker/data/safetensors.h"
#include "libworker/train/job.h"

static int check_data(const struct data_spec *spec, const char *key, struct ms_err *err)
{
    struct data_source *source = NULL;
    int rc = data_open(spec, &source, err);
    if (rc < 0) {
        ms_err_prefix(err, "%s", key);
        return rc;
    }
    data_close(source);
    return 0;
}

static int check_weights(const char *path, struct ms_err *err)
{
    char expanded[MS_PATH_MAX + 1];
    struct safetensors *file = NULL;
    int rc = data_path_expand(path, expanded, sizeof(expanded), err);
    if (rc == 0) {
        rc = safetensors_open(expanded, &file, err);
    }
    if (rc < 0) {
        data_path_hide(expanded, path, err);
        ms_err_prefix(err, "initial_weights");
        return rc;
    }
    safetensors_close(file);
    return 0;
}

int job_check_inputs(const struct job *job, struct ms_err *err)
{
    int rc = check_data(&job->dataset, "dataset", err);
    if (rc == 0 && job->has_evaluate) {
        rc = check_data(&job->evaluate_dataset, "evaluate", err);
    }
    if (rc == 0 && job->initial_weights[0] != '\0') {
        rc = check_weights(job->initial_weights, err);
    }
    return rc;
}
