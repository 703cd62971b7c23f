/* start.c - from the exec of msctl to the last worker's first loss line, and the steps/s after it
 *
 *     DATA_PATH=.../mnist build/bench/start [--quick] [-n N]... [-- MSCTL JOB.yaml]
 *
 * Runs `msctl run -n N` over mutual TLS on this host in a folder of its own and looks at the logs
 * of the workers, which carry MindSpore's loss lines. One figure a line: median, minimum and
 * maximum of the rounds. Job: examples/mnist.yaml, or `linear` on generated data where DATA_PATH is
 * not set. */
#include <getopt.h>
#include <string.h>

#include "bench/run.h"
#include "config.h"
#include "proto/clock.h"

enum { RANKS_MAX = 64, ROUNDS_MAX = 32, LIMIT_S = 120 };

static int has_loss_line(const char *path)
{
    static char text[1 << 16];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return strstr(text, "epoch: 1 step: 1, loss is ") != NULL;
}

/* Seconds until every rank's log has its first loss; < 0: the run ended or took too long. */
static double wait_first_losses(const char *dir, int ranks, double begun, pid_t pid)
{
    int seen = 0;
    while (seen < ranks) {
        char path[RUN_PATH_BYTES + 32];
        snprintf(path, sizeof(path), "%s/worker_%d.log", dir, seen);
        if (has_loss_line(path)) {
            seen++;
            continue;
        }
        int status = 0;
        if (ms_mono_s() - begun > LIMIT_S || waitpid(pid, &status, WNOHANG) == pid) {
            snprintf(path, sizeof(path), "%s/worker_%d.log", dir, seen);
            return has_loss_line(path) ? ms_mono_s() - begun : -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return ms_mono_s() - begun;
}

static int one_round(const char *msctl, const char *job, int ranks, int steps, double *ret_start,
                     double *ret_rate)
{
    char cap[32];
    struct run run = {.msctl = msctl, .job = job, .ranks = ranks, .sets = {cap}};
    snprintf(cap, sizeof(cap), "steps=%d", steps);
    double begun = ms_mono_s();
    if (run_start(&run) < 0) {
        return -1;
    }
    *ret_start = wait_first_losses(run.dir, ranks, begun, run.pid);
    int status = run_end(&run, ret_rate);
    if (*ret_start < 0) {
        fprintf(stderr, "start: the run with %d workers gave no loss line (status %d)\n", ranks,
                status);
        return -1;
    }
    return 0;
}

static void print(const char *what, int ranks, double *values, int n, const char *unit)
{
    qsort(values, (size_t)n, sizeof(*values), by_value);
    printf("%s workers=%d median %.3f min %.3f max %.3f %s\n", what, ranks, values[n / 2],
           values[0], values[n - 1], unit);
    fflush(stdout);
}

static int measure(const char *msctl, const char *job, int ranks, int rounds, int steps)
{
    double starts[ROUNDS_MAX];
    double rates[ROUNDS_MAX];
    for (int i = 0; i < rounds; i++) {
        if (one_round(msctl, job, ranks, steps, &starts[i], &rates[i]) < 0) {
            return -1;
        }
    }
    print("first_loss", ranks, starts, rounds, "s");
    print("step_rate", ranks, rates, rounds, "steps/s");
    return 0;
}

int main(int argc, char **argv)
{
    const char *msctl = MSCHED_BUILD_ROOT "/cli/msctl";
    const char *data = getenv("DATA_PATH");
    const char *job = data != NULL && data[0] != '\0' ? MSCHED_SOURCE_ROOT "/examples/mnist.yaml"
                                                      : MSCHED_SOURCE_ROOT
                          "/examples/nonlinear.yaml";
    int ranks[8] = {2, 8};
    int n = 0;
    int quick = 0;
    int opt;
    static const struct option options[] = {{"quick", no_argument, NULL, 'q'}, {NULL, 0, NULL, 0}};
    while ((opt = getopt_long(argc, argv, "n:q", options, NULL)) != -1) {
        if (opt == 'n' && n < 8) {
            ranks[n++] = (int)strtol(optarg, NULL, 10);
        } else if (opt == 'q') {
            quick = 1;
        } else {
            fprintf(stderr, "usage: start [--quick] [-n N]... [-- MSCTL JOB.yaml]\n");
            return 2;
        }
    }
    if (optind < argc) {
        msctl = argv[optind++];
    }
    if (optind < argc) {
        job = argv[optind];
    }
    n = n > 0 ? n : quick ? 1 : 2;
    for (int i = 0; i < n; i++) {
        if (ranks[i] < 1 || ranks[i] > RANKS_MAX) {
            fprintf(stderr, "start: 1 to %d workers, not %d\n", RANKS_MAX, ranks[i]);
            return 2;
        }
        if (measure(msctl, job, ranks[i], quick ? 1 : 5, quick ? 20 : 200) < 0) {
            return 1;
        }
    }
    return 0;
}
