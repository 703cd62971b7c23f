/* job_inputs.c - are the files there that a job reads? */
#include "libworker/data/path.h"
#include "libworker/data/weights_file.h"
#include "libworker/job/first_weights.h"
#include "libworker/job/job.h"
#include "libworker/network/network.h"
#include "libworker/onnx/onnx.h"

#include <stddef.h>
#include <unistd.h>

enum how { AS_A_RANK, FROM_AFAR };

/* Nobody but a rank starts what a job names. */
static int find_program(const struct data_spec *spec, struct ms_err *err)
{
    char path[MS_PATH_MAX + 1];
    int rc = data_path_expand(spec->path, path, sizeof(path), err);
    return rc < 0 || access(path, F_OK) == 0
               ? rc
               : ms_fail(err, MS_E_NOT_FOUND, "program %.200s: there is none", spec->path);
}

static int check_data(const struct data_spec *spec, const struct data_spec *train, enum how how,
                      struct ms_err *err)
{
    struct data_source *source = NULL;
    if (how == FROM_AFAR && spec->kind == DATA_PROGRAM) {
        return find_program(spec, err);
    }
    int rc =
        train != NULL ? data_open_beside(spec, train, &source, err) : data_open(spec, &source, err);
    if (rc == 0) {
        data_close(source);
    }
    return rc;
}

static int check_dataset(const struct job *job, enum how how, struct ms_err *err)
{
    return check_data(&job->dataset, NULL, how, err);
}

static int check_evaluate(const struct job *job, enum how how, struct ms_err *err)
{
    return job->has_evaluate ? check_data(&job->evaluate_dataset, &job->dataset, how, err) : 0;
}

/* With the names and shapes that the network wants; where those are not known yet, for the data are
 * elsewhere, that it can be read. */
static int check_file(const struct job *job, const char *path, struct ms_err *err)
{
    struct network *network = NULL;
    struct graph *graph = NULL;
    struct first_weights *weights = NULL;
    struct weights_file *file = NULL;
    struct onnx_file *model = NULL;
    int rc = job_network_create(job, &network, NULL);
    rc = rc < 0 ? rc : job_network_build(job, network, NULL, &graph, NULL);
    if (rc == MS_OK) {
        rc = first_weights_open(path, &job->take, graph, &weights, err);
    } else {
        rc =
            onnx_is_path(path) ? onnx_open(path, &model, err) : weights_file_open(path, &file, err);
    }
    first_weights_close(weights);
    weights_file_close(file);
    onnx_close(model);
    graph_destroy(graph);
    network_destroy(network);
    return rc;
}

static int check_weights(const struct job *job, enum how how, struct ms_err *err)
{
    (void)how;
    char expanded[MS_PATH_MAX + 1];
    if (job->initial_weights[0] == '\0') {
        return 0;
    }
    int rc = data_path_expand(job->initial_weights, expanded, sizeof(expanded), err);
    if (rc == 0) {
        rc = check_file(job, expanded, err);
    }
    if (rc < 0) {
        data_path_hide(expanded, job->initial_weights, err);
    }
    return rc;
}

static const struct {
    const char *key;
    int (*check)(const struct job *job, enum how how, struct ms_err *err);
} inputs[] = {
    {"dataset", check_dataset},
    {"evaluate", check_evaluate},
    {"initial_weights", check_weights},
};

/* The first thing that is wrong, or is wrong in the one way that counts. */
static int check(const struct job *job, enum how how, int only_code, struct ms_err *err)
{
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        int rc = inputs[i].check(job, how, err);
        if (rc < 0 && (only_code == 0 || rc == only_code)) {
            ms_err_prefix(err, "%s", inputs[i].key);
            return rc;
        }
    }
    return 0;
}

int job_check_inputs(const struct job *job, struct ms_err *err)
{
    return check(job, AS_A_RANK, 0, err);
}

int job_find_inputs(const struct job *job, struct ms_err *err)
{
    return check(job, FROM_AFAR, MS_E_NOT_FOUND, err);
}
