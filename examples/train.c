/* train.c - a program that trains in place through msworker.h
 *
 *     build/examples/train                     a regression on generated data, in this process
 *     build/examples/train JOB.yaml KEY=VALUE ...
 *     MS_ROLE=MS_WORKER ... build/examples/train JOB.yaml    as a worker of a dynamic cluster
 */
#include <msworker.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const regression =
    "network: linear\n"
    "dataset: {kind: nonlinear, shuffle: false}\n"
    "batch_size: 16\n"
    "steps: 200\n"
    "loss: mse\n"
    "optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.6}\n";

static int show(void *arg, const struct msw_progress *progress)
{
    (void)arg;
    if (progress->has_eval) {
        printf("epoch %ld: loss %.5f", (long)progress->epoch, progress->eval_loss);
        if (!isnan(progress->accuracy)) { /* of a regression */
            printf(", accuracy %.2f %%", 100 * progress->accuracy);
        }
        printf("\n");
    } else if (progress->step % 50 == 0 || progress->step == progress->steps_total) {
        printf("step %lu of %lu: loss %.5f, %.0f samples/s\n", (unsigned long)progress->step,
               (unsigned long)progress->steps_total, (double)progress->loss,
               progress->samples_per_s);
    }
    return 0; /* non-zero would stop after this step */
}

static void print_model(const struct msw_model *model)
{
    for (size_t i = 0; i < msw_model_count(model); i++) {
        const char *name = msw_model_name(model, i);
        int64_t dims[4];
        size_t count = 0;
        int n_dims = msw_model_shape(model, name, dims);
        const float *values = msw_model_values(model, name, &count);
        printf("%s (%d dimensions, %zu values): %.5f%s\n", name, n_dims, count, (double)values[0],
               count > 1 ? " ..." : "");
    }
    printf("weights_sha256 %s\n", msw_model_sha256(model));
}

int main(int argc, char **argv)
{
    struct msw_error error;
    struct msw_job *job = NULL;
    struct msw_model *model = NULL;
    struct msw_options options = {.on_progress = show};
    int rc = argc > 1 ? msw_job_load(argv[1], (const char *const *)&argv[2], (size_t)argc - 2, &job,
                                     &error)
                      : msw_job_parse(regression, NULL, &job, &error);
    if (rc == 0) {
        rc = getenv("MS_ROLE") != NULL ? msw_join(job, &options, &model, &error)
                                       : msw_train(job, &options, &model, &error);
    }
    if (rc == 0) {
        print_model(model);
    } else {
        fprintf(stderr, "train: %s\n", error.text);
    }
    msw_model_destroy(model);
    msw_job_destroy(job);
    return rc == 0 ? 0 : 1;
}
