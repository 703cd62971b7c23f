/* dispatch.c - small networks beside a busy process: default threads against one
 *
 *     DATA_PATH=.../mnist build/bench/dispatch [--quick] [--alone]
 *
 * Steps of microseconds, where a team that spins or waits at barriers costs more than it computes,
 * the more so where another process has a core. Runs examples/nonlinear.yaml, and
 * examples/mnist.yaml where DATA_PATH is set, with 1, 2 and 8 workers: in turn with default threads
 * and with `threads: 1`, while one other process is busy (--alone: none is). One figure a line:
 * medians of the rounds, and the time with default threads over that with one. */
#include <getopt.h>
#include <signal.h>
#include <string.h>

#include "bench/run.h"
#include "config.h"

enum { ROUNDS_MAX = 16 };

struct shape { /* how much is measured */
    int rounds, steps, steps_crowded;
};

static pid_t start_busy(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (volatile unsigned turns = 0;; turns++) {
        }
    }
    return pid;
}

/* Steps/s of one run; 0 and a line where it failed. */
static double rate_of(const char *job, int ranks, int steps, const char *threads)
{
    char cap[32];
    double rate = 0;
    struct run run = {.msctl = MSCHED_BUILD_ROOT "/cli/msctl",
                      .job = job,
                      .ranks = ranks,
                      .sets = {cap, "epochs=1000", threads}};
    snprintf(cap, sizeof(cap), "steps=%d", steps);
    if (run_start(&run) < 0 || run_end(&run, &rate) != 0 || rate <= 0) {
        fprintf(stderr, "dispatch: %s with %d workers gave no steps\n", job, ranks);
        return 0;
    }
    return rate;
}

static int measure(const char *name, const char *job, int ranks, const struct shape *shape)
{
    double team[ROUNDS_MAX];
    double one[ROUNDS_MAX];
    const int steps = ranks > 2 ? shape->steps_crowded : shape->steps;
    for (int i = 0; i < shape->rounds; i++) {
        team[i] = rate_of(job, ranks, steps, "threads=0");
        one[i] = rate_of(job, ranks, steps, "threads=1");
        if (team[i] <= 0 || one[i] <= 0) {
            return -1;
        }
    }
    qsort(team, (size_t)shape->rounds, sizeof(*team), by_value);
    qsort(one, (size_t)shape->rounds, sizeof(*one), by_value);
    const double fast = one[shape->rounds / 2];
    const double slow = team[shape->rounds / 2];
    printf("%s workers=%d default %.0f steps/s threads=1 %.0f steps/s time ratio %.2f\n", name,
           ranks, slow, fast, fast / slow);
    fflush(stdout);
    return 0;
}

static int measure_all(const char *name, const char *job, const struct shape *shape)
{
    static const int ranks[] = {1, 2, 8};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        rc = measure(name, job, ranks[i], shape);
    }
    return rc;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"quick", no_argument, NULL, 'q'}, {"alone", no_argument, NULL, 'a'}, {NULL, 0, NULL, 0}};
    const char *data = getenv("DATA_PATH");
    struct shape shape = {.rounds = 5, .steps = 2000, .steps_crowded = 300};
    int is_alone = 0;
    int opt;
    while ((opt = getopt_long(argc, argv, "qa", options, NULL)) != -1) {
        if (opt == 'q') {
            shape = (struct shape){.rounds = 1, .steps = 50, .steps_crowded = 10};
        } else if (opt == 'a') {
            is_alone = 1;
        } else {
            fprintf(stderr, "usage: dispatch [--quick] [--alone]\n");
            return 2;
        }
    }
    const pid_t busy = is_alone ? -1 : start_busy();
    int rc = measure_all("linear", MSCHED_SOURCE_ROOT "/examples/nonlinear.yaml", &shape);
    if (rc == 0 && data != NULL && data[0] != '\0') {
        rc = measure_all("mnist", MSCHED_SOURCE_ROOT "/examples/mnist.yaml", &shape);
    }
    if (busy > 0) {
        kill(busy, SIGKILL);
        (void)waitpid(busy, NULL, 0);
    }
    return rc == 0 ? 0 : 1;
}
