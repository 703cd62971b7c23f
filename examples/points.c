/* points.c - a program that trains a network of its own on data of its own: points of three spirals
 *
 *     cc points.c $(pkg-config --cflags --libs msworker) -lm -o points && ./points
 *     MS_ROLE=MS_WORKER MS_SCHED_HOST=... ./points       as a worker of a dynamic cluster
 */
#include <msworker.h>

#include <math.h>
#include <stdio.h>

enum { ARMS = 3, TRAIN_ROWS = 1500, TEST_ROWS = 300 };

/* A number from 0 to 1 that depends on i alone: a record has to be the same in each process. */
static float noise(uint64_t i)
{
    i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9U;
    i = (i ^ (i >> 27)) * 0x94d049bb133111ebU;
    return (float)((i ^ (i >> 31)) >> 40) / 16777216.0F;
}

static int make_point(void *arg, struct msw_record *record)
{
    const uint64_t i = 4 * (*(const uint64_t *)arg + (uint64_t)record->row) + 1;
    const float radius = noise(i);
    record->label = (int32_t)(record->row % ARMS);
    const float angle = 5 * radius + 2.0944F * (float)record->label + 0.3F * noise(i + 1);
    record->values[0] = radius * sinf(angle);
    record->values[1] = radius * cosf(angle);
    return 0;
}

static int make_job(struct msw_job **ret, struct msw_error *error)
{
    static uint64_t begin[] = {0, 1000000}; /* of the rows of both sets */
    const struct msw_data train = {
        .rows = TRAIN_ROWS, .shape = {2}, .classes = ARMS, .read = make_point, .arg = &begin[0]};
    const struct msw_data test = {
        .rows = TEST_ROWS, .shape = {2}, .classes = ARMS, .read = make_point, .arg = &begin[1]};
    struct msw_net *net = msw_net_create();
    int x = msw_flatten(net, MSW_INPUT, NULL); /* (n, 2, 1, 1) to (n, 2) */
    x = msw_relu(net, msw_dense(net, x, 64, "weight: he_normal"), NULL);
    x = msw_relu(net, msw_dense(net, x, 64, "weight: he_normal"), NULL);
    msw_dense(net, x, MSW_CLASSES, "name: fc");
    int rc = msw_job_make(net, &train, &test,
                          "name: points\nbatch_size: 25\nepochs: 10\n"
                          "optimizer: {kind: adam, learning_rate: 0.01}\n",
                          ret, error);
    msw_net_destroy(net);
    return rc;
}

static int train(const struct msw_job *job, struct msw_model **model, struct msw_error *error)
{
    struct msw_training *training = NULL;
    struct msw_progress progress = {.rank = 0};
    if (msw_begin(job, NULL, &training, error) < 0) {
        return error->code;
    }
    while (msw_step(training, &progress, error) > 0) {
        if (progress.has_eval && progress.rank == 0) {
            printf("epoch %d: loss %.4f, accuracy %.1f %%\n", (int)progress.epoch,
                   (double)progress.loss, 100 * progress.accuracy);
        }
    }
    return msw_end(training, model, error); /* says also what a step said that failed */
}

int main(void)
{
    struct msw_error error = {0, ""};
    struct msw_job *job = NULL;
    struct msw_model *model = NULL;
    int ok = make_job(&job, &error) == 0 && train(job, &model, &error) == 0 &&
             msw_model_save(model, "points.safetensors", &error) == 0;
    printf("%s %s\n", ok ? "weights_sha256" : "failed:", ok ? msw_model_sha256(model) : error.text);
    msw_model_destroy(model);
    msw_job_destroy(job);
    return ok ? 0 : 1;
}
