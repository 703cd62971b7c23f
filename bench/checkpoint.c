/* checkpoint.c - what a checkpoint costs the training that it is written beside, one figure a line
 *
 * One training of one rank on this host. Its steps go in blocks: one that begins with a checkpoint,
 * one without, in turn. A checkpoint's cost is what its block took beyond the mean of the two that
 * are beside it; median over the blocks, of the clock and of this process's CPU time. The share is
 * that of a hundred steps.
 *
 *     checkpoint [--network NAME] [--batch N] [--optimizer KIND] [--block STEPS] [--rounds N]
 *                [--threads N] [--dir FOLDER] [--quick]
 *
 * Without options: resnet50, batch 32, 32x32, momentum. The folder decides which disk it is. */
#include "bench/run.h"
#include "libworker/job/job.h"
#include "libworker/train/train.h"

#include <getopt.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { BLOCKS_MAX = 2002, EVERY = 100 };

struct settings {
    const char *network, *optimizer, *dir;
    long batch, block, rounds, threads;
};

struct moment {
    double wall_s, cpu_s;
};

static struct {
    long block;
    int n;
    struct moment at[BLOCKS_MAX]; /* the ends of blocks; the first of them warms up */
} marks;

static struct moment now(void)
{
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (struct moment){ms_mono_s(), (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec};
}

/* Before the checkpoint of the step is taken: a block begins with it. */
static void on_progress(void *arg, const struct train_progress *progress)
{
    (void)arg;
    const long step = (long)progress->step;
    if (progress->phase == TRAIN_TRAINING && step > 0 && step % marks.block == 0 &&
        marks.n < BLOCKS_MAX) {
        marks.at[marks.n++] = now();
    }
}

static void on_note(void *arg, const char *text)
{
    (void)arg;
    fprintf(stderr, "checkpoint: %s\n", text);
}

/* ---- the training ---- */

static int make_job(const struct settings *set, struct job *ret, struct ms_err *err)
{
    char text[1024];
    const long steps = set->block * (2 * set->rounds + 2);
    int n =
        snprintf(text, sizeof(text),
                 "network: %s\nworkers: 1\nbatch_size: %ld\nepochs: 1000000\nsteps: %ld\n"
                 "dataset: {kind: shapes, samples: %ld}\nloss: softmax_cross_entropy\n"
                 "transforms: [{rescale: {scale: 0.0039, shift: 0}}]\n"
                 "optimizer: {kind: %s, learning_rate: 0.0001}\n"
                 "checkpoint: {directory: ckpt, prefix: bench, every_steps: %ld, keep_max: 2}\n",
                 set->network, set->batch, steps, 8 * set->batch, set->optimizer, 2 * set->block);
    if (set->threads > 0) {
        n += snprintf(text + n, sizeof(text) - (size_t)n, "threads: %ld\n", set->threads);
    }
    return job_parse(text, (size_t)n, "the bench's job", "/", NULL, 0, 0, ret, err);
}

static int train_through(const struct settings *set, const char *dir, struct train_info *ret,
                         struct ms_err *err)
{
    static struct job job; /* 20 KiB */
    struct train_result result;
    int rc = make_job(set, &job, err);
    if (rc < 0) {
        return rc;
    }
    const struct train_config cfg = {.job = &job,
                                     .generation = 1,
                                     .job_tag = "0123456789abcdef0123456789abcdef",
                                     .world = 1,
                                     .peer_timeout_ms = 60000,
                                     .isa = "",
                                     .run_dir = dir,
                                     .log_fd = -1,
                                     .on_progress = on_progress,
                                     .on_note = on_note};
    struct train *train = train_create(&cfg);
    if (train == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a training");
    }
    marks.block = set->block;
    rc = train_prepare(train, ret, err);
    rc = rc < 0 ? rc : train_run(train, &result, err);
    train_destroy(train);
    return rc;
}

/* ---- figures ---- */

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), by_value);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static double took(int block, int is_cpu) /* the block that ends with that mark */
{
    const struct moment *end = &marks.at[block];
    const struct moment *begin = &marks.at[block - 1];
    return is_cpu ? end->cpu_s - begin->cpu_s : end->wall_s - begin->wall_s;
}

/* Marks count from 0; every other block, from the one that ends with mark 2 on, has one. */
static void print(const struct settings *set, const char *what, int is_cpu)
{
    static double costs[BLOCKS_MAX], plain[BLOCKS_MAX];
    int n = 0;
    for (int i = 2; i + 1 < marks.n; i += 2) {
        plain[n] = (took(i - 1, is_cpu) + took(i + 1, is_cpu)) / 2;
        costs[n] = took(i, is_cpu) - plain[n];
        n++;
    }
    const double cost = median(costs, n);
    const double step = median(plain, n) / (double)set->block;
    printf("%s step %s %.2f ms\n", set->network, what, 1e3 * step);
    printf("%s checkpoint %s %.1f ms\n", set->network, what, 1e3 * cost);
    printf("%s every %d steps %s %.2f %%\n", set->network, EVERY, what,
           100 * cost / (EVERY * step));
}

static double file_mb(const struct settings *set, const char *dir)
{
    char path[RUN_PATH_BYTES + 96];
    struct stat st;
    const long last = set->block * (2 * set->rounds + 2);
    snprintf(path, sizeof(path), "%s/ckpt/bench-%ld.safetensors", dir, last);
    return stat(path, &st) == 0 ? (double)st.st_size * 1e-6 : 0;
}

static int bench(const struct settings *set)
{
    struct ms_err err = {0, ""};
    struct train_info info;
    char dir[RUN_PATH_BYTES];
    snprintf(dir, sizeof(dir), "%s/msched-bench-XXXXXX", set->dir);
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    int rc = train_through(set, dir, &info, &err);
    if (rc == 0) {
        printf("%s threads %d\n", set->network, info.threads);
        printf("%s checkpoint %.1f MB\n", set->network, file_mb(set, dir));
        print(set, "wall", 0);
        print(set, "cpu", 1);
    } else {
        fprintf(stderr, "checkpoint: %s: %s\n", set->network, err.text);
    }
    nftw(dir, run_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc < 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: checkpoint [--network NAME] [--batch N] [--optimizer KIND]\n"
                    "                  [--block STEPS] [--rounds N] [--threads N] [--dir FOLDER]\n"
                    "                  [--quick]\n");
    return 2;
}

static int parse(int argc, char **argv, struct settings *set)
{
    static const struct option options[] = {
        {"network", required_argument, NULL, 'n'},
        {"batch", required_argument, NULL, 'b'},
        {"optimizer", required_argument, NULL, 'o'},
        {"block", required_argument, NULL, 'l'},
        {"rounds", required_argument, NULL, 'r'},
        {"threads", required_argument, NULL, 't'},
        {"dir", required_argument, NULL, 'd'},
        {"quick", no_argument, NULL, 'q'},
        {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        const long value = optarg != NULL ? strtol(optarg, NULL, 10) : 0;
        switch (c) {
        case 'n':
            set->network = optarg;
            break;
        case 'b':
            set->batch = value;
            break;
        case 'o':
            set->optimizer = optarg;
            break;
        case 'l':
            set->block = value;
            break;
        case 'r':
            set->rounds = value;
            break;
        case 't':
            set->threads = value;
            break;
        case 'd':
            set->dir = optarg;
            break;
        case 'q':
            set->network = "lenet5";
            set->batch = 2;
            set->rounds = 2;
            break;
        default:
            return -1;
        }
    }
    return optind == argc && set->block > 0 && set->rounds > 0 && set->batch > 0 &&
                   2 * set->rounds + 2 <= BLOCKS_MAX
               ? 0
               : -1;
}

int main(int argc, char **argv)
{
    struct settings set = {.network = "resnet50",
                           .optimizer = "momentum",
                           .dir = "/tmp",
                           .batch = 32,
                           .block = 10,
                           .rounds = 15};
    return parse(argc, argv, &set) < 0 ? usage() : bench(&set);
}
