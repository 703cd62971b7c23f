/* own_loop.c - a training of a program's own, which stands still behind a step until it is told
 *
 *     own-loop [STEP FIFO]      behind that step it opens FIFO for reading, and goes on when
 *                               somebody has opened it for writing
 *     own-loop STEP end         behind that step it ends the training
 *
 * Records differ from epoch to epoch, in numbers that are exact. A line a step: the step and its
 * loss, all bits; at the end weights_sha256. */
#include "libworker/msworker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 48, FEATURES = 4 };

static int make(void *arg, struct msw_record *record)
{
    (void)arg;
    for (int i = 0; i < FEATURES; i++) {
        record->values[i] =
            (float)((record->row * 7 + record->epoch * 3 + i * 5 + (int64_t)record->seed) % 8) / 8;
        record->targets[0] += record->values[i] * (float)(i + 1);
    }
    return 0;
}

static void stand_still(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
    }
}

static int run(const struct msw_job *job, uint64_t still, const char *fifo, struct msw_error *error)
{
    struct msw_training *training = NULL;
    struct msw_progress progress;
    struct msw_model *model = NULL;
    int rc = msw_begin(job, NULL, &training, error);
    if (rc < 0) {
        return rc;
    }
    while (msw_step(training, &progress, error) > 0) {
        printf("own step %d of rank %d: %a\n", (int)progress.step, progress.rank,
               (double)progress.loss);
        fflush(stdout);
        if (progress.step == still && strcmp(fifo, "end") == 0) {
            break;
        }
        if (progress.step == still) {
            stand_still(fifo);
        }
    }
    rc = msw_end(training, &model, error);
    if (rc == 0) {
        printf("weights_sha256 %s\n", msw_model_sha256(model));
    }
    msw_model_destroy(model);
    return rc;
}

int main(int argc, char **argv)
{
    const struct msw_data data = {.rows = ROWS, .shape = {FEATURES}, .targets = 1, .read = make};
    struct msw_error error = {0, ""};
    struct msw_job *job = NULL;
    struct msw_net *net = msw_net_create();
    msw_dense(net, msw_flatten(net, MSW_INPUT, NULL), MSW_CLASSES, "name: fc");
    int rc = msw_job_make(net, &data, NULL,
                          "name: own-loop\nbatch_size: 8\nepochs: 4\n"
                          "optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}\n",
                          &job, &error);
    if (rc == 0) {
        rc = run(job, argc > 2 ? strtoull(argv[1], NULL, 10) : 0, argc > 2 ? argv[2] : "", &error);
    }
    if (rc < 0) {
        fprintf(stderr, "own-loop: %s\n", error.text);
    }
    msw_job_destroy(job);
    msw_net_destroy(net);
    return rc == 0 ? 0 : 1;
}
