/* run.h - `msctl run` in a folder of its own, and how fast its steps were */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "proto/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUN_PATH_BYTES = 512, RUN_SETS_MAX = 4 };

struct run {
    const char *msctl, *job;
    int ranks;
    const char *sets[RUN_SETS_MAX]; /* "key=value"; those that are not NULL */
    char base[32];                  /* of run_start: the folder that run_end takes away */
    char dir[RUN_PATH_BYTES];       /* ... and the run's, in it */
    pid_t pid;
};

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline int run_remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static inline void run_exec(const struct run *run)
{
    const char *args[8 + 2 * RUN_SETS_MAX] = {run->msctl, "run", "-n"};
    char ranks[16];
    int n = 3;
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    snprintf(ranks, sizeof(ranks), "%d", run->ranks);
    args[n++] = ranks;
    args[n++] = "--run-dir";
    args[n++] = run->dir;
    for (int i = 0; i < RUN_SETS_MAX; i++) {
        if (run->sets[i] != NULL) {
            args[n++] = "--set";
            args[n++] = run->sets[i];
        }
    }
    args[n] = run->job;
    execv(run->msctl, (char **)args);
    perror(run->msctl);
    _exit(127);
}

/* Starts the run that ranks, job and sets describe; -1 and a line where that fails. */
static inline int run_start(struct run *run)
{
    snprintf(run->base, sizeof(run->base), "/tmp/msched-bench-XXXXXX");
    if (mkdtemp(run->base) == NULL) {
        perror("mkdtemp");
        return -1;
    }
    snprintf(run->dir, sizeof(run->dir), "%s/run", run->base);
    run->pid = fork();
    if (run->pid == 0) {
        run_exec(run);
    }
    return run->pid > 0 ? 0 : -1;
}

/* Steps/s between the first and the last step of metrics.jsonl; 0: fewer than two. Its times have
 * milliseconds: steps that all lie in one are taken to have filled it. */
static inline double run_step_rate(const struct run *run)
{
    char path[RUN_PATH_BYTES + 32];
    char line[1024];
    double first = 0;
    double last = 0;
    long steps = 0;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", run->dir);
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
    return steps > 1 ? (double)(steps - 1) / (last > first ? last - first : 1e-3) : 0;
}

/* Waits for the end, gives the step rate and takes the folder away. Returns the wait status. */
static inline int run_end(struct run *run, double *ret_rate)
{
    int status = 0;
    while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR) {
    }
    *ret_rate = run_step_rate(run);
    nftw(run->base, run_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return status;
}

#endif
