/* start.c - from the exec of msctl to the last worker's first loss line, and the steps/s after it
 *
 *     DATA_PATH=.../mnist build/bench/start [--quick] [-n N]... [-- MSCTL JOB.yaml]
 *
 * Runs `msctl run -n N` over mutual TLS on this host in a folder of its own and looks at the logs
 * of the workers, which carry MindSpore's loss lines. One figure a line: median, minimum and
 * maximum of the rounds. Job: examples/mnist.yaml, or `linear` on generated data where DATA_PATH is
 * not set. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config.h"

enum { RANKS_MAX = 64, ROUNDS_MAX = 32, PATH_BYTES = 512, LIMIT_S = 120 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

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
        char path[PATH_BYTES + 32];
        snprintf(path, sizeof(path), "%s/worker_%d.log", dir, seen);
        if (has_loss_line(path)) {
            seen++;
            continue;
        }
        int status = 0;
        if (now_s() - begun > LIMIT_S || waitpid(pid, &status, WNOHANG) == pid) {
            snprintf(path, sizeof(path), "%s/worker_%d.log", dir, seen);
            return has_loss_line(path) ? now_s() - begun : -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return now_s() - begun;
}

/* Steps/s between the first and the last step of metrics.jsonl. */
static double step_rate(const char *dir)
{
    char path[PATH_BYTES + 32];
    char line[1024];
    double first = 0;
    double last = 0;
    long steps = 0;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", dir);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        double t = 0;
        if (sscanf(line, "{\"t\":%lf", &t) == 1) {
            first = steps == 0 ? t : first;
            last = t;
            steps++;
        }
    }
    fclose(file);
    return steps > 1 && last > first ? (double)(steps - 1) / (last - first) : 0;
}

static pid_t start_run(const char *msctl, const char *job, int ranks, const char *dir, int steps)
{
    pid_t pid = fork();
    if (pid != 0) {
        return pid;
    }
    char n[16];
    char cap[32];
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    snprintf(n, sizeof(n), "%d", ranks);
    snprintf(cap, sizeof(cap), "steps=%d", steps);
    execl(msctl, msctl, "run", "-n", n, "--run-dir", dir, "--set", cap, job, (char *)NULL);
    fprintf(stderr, "start: cannot run %s: %s\n", msctl, strerror(errno));
    _exit(127);
}

static int one_round(const char *msctl, const char *job, int ranks, int steps, double *ret_start,
                     double *ret_rate)
{
    char base[] = "/tmp/msched-start-XXXXXX";
    if (mkdtemp(base) == NULL) {
        perror("start: mkdtemp");
        return -1;
    }
    char dir[PATH_BYTES];
    snprintf(dir, sizeof(dir), "%s/run", base);
    double begun = now_s();
    pid_t pid = start_run(msctl, job, ranks, dir, steps);
    *ret_start = wait_first_losses(dir, ranks, begun, pid);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    *ret_rate = step_rate(dir);
    nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (*ret_start < 0) {
        fprintf(stderr, "start: the run with %d workers gave no loss line (status %d)\n", ranks,
                status);
        return -1;
    }
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
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
