/* step.c - a training step beside the sum of its oneDNN primitives, one figure a line
 *
 * Both run on the same buffers in the same layouts, in turn, round by round; medians. The ratio is
 * what fusion gains (below 1) and what dispatch, the loss and made-again batch norms cost (above).
 *
 *     step [--network NAME] [--batch N] [--side PIXELS] [--threads N] [--rounds N]
 *          [--recompute] [--mirrors] [--isa NAME] [--quick]
 *
 * With --mirrors, the weights' mirrors, which the commit writes, count as a part of the step;
 * without them the step reorders weights.
 *
 * Without --network: resnet50 (batch 8, 64x64), cifar_small and lenet5 (batch 32, 32x32). */
#include "bench/yardstick.h"
#include "libworker/network/network.h"
#include "libworker/plan/spec.h"
#include "proto/clock.h"
#include "proto/rng.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS_MAX = 1001, GROUPS_MAX = 24, ALIGN = 64 };

struct settings {
    const char *network;
    int64_t batch, channels, side;
    int threads, rounds, recompute, mirrors;
    const char *isa;
};

struct work { /* one network, ready to run */
    struct graph *graph;
    struct plan *plan;
    struct yardstick *yardstick;
    float *data;
    int32_t *labels;
    struct plan_buffers buffers;
    size_t arena_bytes, n_weights;
};

static void *room(size_t bytes)
{
    size_t rounded = (bytes / ALIGN + 1) * ALIGN;
    void *p = aligned_alloc(ALIGN, rounded);
    if (p == NULL) {
        fprintf(stderr, "step: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    memset(p, 0, rounded);
    return p;
}

/* The arena as a worker has it: fresh pages, large ones where the kernel gives them. */
static void *arena_room(size_t bytes)
{
    void *p = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "step: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    (void)madvise(p, bytes + 1, MADV_HUGEPAGE);
    return p;
}

static int set_values(struct work *w, struct ms_err *err)
{
    int rc = 0;
    for (int i = 0; i < graph_n_params(w->graph) && rc == 0; i++) {
        int tensor = graph_param_at(w->graph, i);
        const struct tensor *t = graph_tensor(w->graph, tensor);
        float *values = room((size_t)shape_count(&t->shape) * sizeof(float));
        graph_init_values(t, 1, values);
        rc = plan_set_logical(w->plan, tensor, MS_F32, values, err);
        free(values);
    }
    return rc;
}

static void fill_batch(struct work *w)
{
    const struct shape *x = &graph_tensor(w->graph, graph_data_index(w->graph))->shape;
    w->data = room((size_t)shape_count(x) * sizeof(float));
    w->labels = room((size_t)x->dim[0] * sizeof(int32_t));
    for (int64_t i = 0; i < shape_count(x); i++) {
        w->data[i] = (float)(2.0 * ms_rng_unit(1, (uint64_t)i) - 1.0);
    }
    for (int64_t i = 0; i < x->dim[0]; i++) {
        w->labels[i] = (int32_t)ms_rng_below(2, (uint64_t)i, 10);
    }
}

static int work_init(struct work *w, const struct settings *set, struct ms_err *err)
{
    struct network_input input = {.batch = set->batch,
                                  .channels = set->channels,
                                  .height = set->side,
                                  .width = set->side,
                                  .classes = 10};
    struct plan_request request = {.world = 1,
                                   .threads = set->threads,
                                   .isa = set->isa,
                                   .mirrors = set->mirrors,
                                   .recompute =
                                       set->recompute ? PLAN_RECOMPUTE_ON : PLAN_RECOMPUTE_OFF};
    struct plan_spec *spec = NULL;
    memset(w, 0, sizeof(*w));
    int rc = network_build_known(set->network, &input, NETWORK_LOSS_SOFTMAX_CE, &w->graph, err);
    rc = rc < 0 ? rc : graph_differentiate(w->graph, err);
    request.graphs[PLAN_TRAIN] = w->graph;
    double begin = ms_mono_s();
    rc = rc < 0 ? rc : plan_choose(&request, &spec, err);
    double chosen = ms_mono_s();
    rc = rc < 0 ? rc : plan_create(w->graph, spec, PLAN_TRAIN, NULL, &w->plan, err);
    plan_spec_destroy(spec);
    if (rc < 0) {
        return rc;
    }
    printf("%s choose %.2f ms\n", set->network, 1e3 * (chosen - begin));
    printf("%s plan %.2f ms\n", set->network, 1e3 * (ms_mono_s() - begin));
    struct plan_sizes sizes;
    plan_get_sizes(w->plan, &sizes);
    printf("%s arena %.1f MB\n", set->network, (double)sizes.arena_bytes * 1e-6);
    printf("%s reorders %llu\n", set->network, (unsigned long long)sizes.reorders);
    w->arena_bytes = sizes.arena_bytes;
    printf("%s mirrors %.1f MB\n", set->network,
           (double)ms_dtype_size(sizes.weights_dtype, sizes.mirrors) * 1e-6);
    w->n_weights = sizes.weights;
    w->buffers =
        (struct plan_buffers){.weights = room(ms_dtype_size(sizes.weights_dtype, sizes.weights)),
                              .mirrors = room(ms_dtype_size(sizes.weights_dtype, sizes.mirrors)),
                              .moving = room(ms_dtype_size(sizes.stats_dtype, sizes.stats)),
                              .exchange = room(ms_dtype_size(sizes.exchange_dtype, sizes.exchange)),
                              .arena = arena_room(sizes.arena_bytes)};
    rc = plan_bind(w->plan, &w->buffers, err);
    fill_batch(w);
    rc = rc < 0 ? rc : set_values(w, err);
    return rc < 0 ? rc : yardstick_create(w->plan, w->graph, &w->yardstick, err);
}

static void work_fini(struct work *w)
{
    yardstick_destroy(w->yardstick);
    plan_destroy(w->plan);
    graph_destroy(w->graph);
    free(w->data);
    free(w->labels);
    free(w->buffers.weights);
    free(w->buffers.mirrors);
    free(w->buffers.moving);
    free(w->buffers.exchange);
    if (w->buffers.arena != NULL) {
        (void)munmap(w->buffers.arena, w->arena_bytes + 1);
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), ascending);
    return values[n / 2];
}

/* With what the commit before it does for it alone. */
static int step_once(struct work *w, struct ms_err *err)
{
    float loss = 0;
    int rc = plan_write_mirrors(w->plan, 0, w->n_weights, err);
    return rc < 0 ? rc : plan_train_step(w->plan, w->data, w->labels, NULL, NULL, &loss, err);
}

static int compare(struct work *w, const struct settings *set, struct ms_err *err)
{
    static double ours[ROUNDS_MAX], peers[ROUNDS_MAX], ratios[ROUNDS_MAX];
    int rc = step_once(w, err); /* touches every page and every piece of code once */
    rc = rc < 0 ? rc : yardstick_run_peers(w->yardstick, NULL, err);
    for (int i = 0; i < set->rounds && rc == 0; i++) {
        double begin = ms_mono_s();
        rc = step_once(w, err);
        double middle = ms_mono_s();
        rc = rc < 0 ? rc : yardstick_run_peers(w->yardstick, NULL, err);
        peers[i] = ms_mono_s() - middle;
        ours[i] = middle - begin;
        ratios[i] = ours[i] / peers[i];
    }
    if (rc == 0) {
        double step = median(ours, set->rounds);
        printf("%s step %.3f ms\n", set->network, 1e3 * step);
        printf("%s primitives %.3f ms\n", set->network, 1e3 * median(peers, set->rounds));
        printf("%s ratio %.3f\n", set->network, median(ratios, set->rounds));
        printf("%s images/s %.2f\n", set->network, (double)set->batch / step);
    }
    return rc;
}

struct group {
    const char *name;
    double ours, peers;
};

static int add_group(struct group *groups, int n, const char *name, double ours, double peers)
{
    int i = 0;
    while (i < n && strcmp(groups[i].name, name) != 0) {
        i++;
    }
    if (i == n && n < GROUPS_MAX) {
        groups[n++] = (struct group){name, 0, 0};
    }
    if (i < n) {
        groups[i].ours += ours;
        groups[i].peers += peers;
    }
    return n;
}

static void keep_least(double *least, double *seconds, int n, int is_first)
{
    for (int i = 0; i < n; i++) {
        least[i] = is_first || seconds[i] < least[i] ? seconds[i] : least[i];
        seconds[i] = 0;
    }
}

/* Where the time goes: share of the step, milliseconds, and those of the peers. Of each step of the
 * plan its least of all rounds: other work on the machine only ever adds. */
static int shares(struct work *w, const struct settings *set, struct ms_err *err)
{
    int n_steps = yardstick_n_steps(w->yardstick);
    size_t bytes = (size_t)n_steps * sizeof(double);
    double *round = room(bytes);
    double *ours = room(bytes);
    double *peers = room(bytes);
    int rc = 0;
    for (int i = 0; i < set->rounds && rc == 0; i++) {
        rc = yardstick_run_plan(w->yardstick, w->data, w->labels, round, err);
        keep_least(ours, round, n_steps, i == 0);
        rc = rc < 0 ? rc : yardstick_run_peers(w->yardstick, round, err);
        keep_least(peers, round, n_steps, i == 0);
    }
    struct group groups[GROUPS_MAX];
    int n = 0;
    double total = 0;
    for (int s = 0; s < n_steps; s++) {
        n = add_group(groups, n, yardstick_group(w->yardstick, s), ours[s], peers[s]);
        total += ours[s];
    }
    for (int i = 0; i < n && rc == 0; i++) {
        printf("%s share %-28s %5.1f %% %9.3f ms, peers %9.3f ms\n", set->network, groups[i].name,
               100 * groups[i].ours / total, 1e3 * groups[i].ours, 1e3 * groups[i].peers);
    }
    free(round);
    free(ours);
    free(peers);
    return rc;
}

static int bench(const struct settings *set)
{
    struct ms_err err = {0, ""};
    struct work w;
    int rc = work_init(&w, set, &err);
    rc = rc < 0 ? rc : compare(&w, set, &err);
    rc = rc < 0 ? rc : shares(&w, set, &err);
    if (rc < 0) {
        fprintf(stderr, "step: %s: %s\n", set->network, err.text);
    }
    work_fini(&w);
    return rc < 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: step [--network NAME] [--batch N] [--side PIXELS] [--threads N]\n"
                    "            [--rounds N] [--recompute] [--mirrors] [--isa NAME] [--quick]\n");
    return 2;
}

static int parse(int argc, char **argv, struct settings *set, int *quick)
{
    static const struct option options[] = {
        {"network", required_argument, NULL, 'n'}, {"batch", required_argument, NULL, 'b'},
        {"side", required_argument, NULL, 's'},    {"threads", required_argument, NULL, 't'},
        {"rounds", required_argument, NULL, 'r'},  {"recompute", no_argument, NULL, 'c'},
        {"mirrors", no_argument, NULL, 'm'},       {"isa", required_argument, NULL, 'i'},
        {"quick", no_argument, NULL, 'q'},         {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        long value = optarg != NULL ? strtol(optarg, NULL, 10) : 0;
        switch (c) {
        case 'n':
            set->network = optarg;
            break;
        case 'b':
            set->batch = value;
            break;
        case 's':
            set->side = value;
            break;
        case 't':
            set->threads = (int)value;
            break;
        case 'r':
            set->rounds = (int)value;
            break;
        case 'c':
            set->recompute = 1;
            break;
        case 'm':
            set->mirrors = 1;
            break;
        case 'i':
            set->isa = optarg;
            break;
        case 'q':
            *quick = 1;
            break;
        default:
            return -1;
        }
    }
    return optind == argc && set->rounds >= 0 && set->rounds <= ROUNDS_MAX ? 0 : -1;
}

int main(int argc, char **argv)
{
    static const struct settings defaults[] = {
        {"resnet50", 8, 3, 64, 1, 5, 0, 0, NULL},
        {"cifar_small", 32, 3, 32, 1, 51, 0, 0, NULL},
        {"lenet5", 32, 1, 32, 1, 201, 0, 0, NULL},
        {"mnist", 32, 1, 28, 1, 1001, 0, 0, NULL},
    };
    struct settings given = {0};
    int quick = 0;
    if (parse(argc, argv, &given, &quick) < 0) {
        return usage();
    }
    int failed = 0;
    int found = 0;
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]) && !failed; i++) {
        struct settings set = defaults[i];
        if (given.network != NULL && strcmp(given.network, set.network) != 0) {
            continue;
        }
        found = 1;
        set.batch = given.batch > 0 ? given.batch : quick ? 2 : set.batch;
        set.side = given.side > 0 ? given.side : set.side;
        set.threads = given.threads > 0 ? given.threads : set.threads;
        set.rounds = given.rounds > 0 ? given.rounds : quick ? 1 : set.rounds;
        set.recompute = given.recompute;
        set.mirrors = given.mirrors;
        set.isa = given.isa;
        failed = bench(&set);
    }
    return !found ? usage() : failed;
}
