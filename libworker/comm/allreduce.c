/* allreduce.c - sums of the exchange buffer: which algorithm, and the small ones over doubles */
#include "libworker/comm/group.h"

#include <assert.h>
#include <string.h>

enum {
    DOUBLES_MAX = 1024,
    PAGE_FLOATS = 1024,
    LINE_FLOATS = 16,
    BLOCK_FLOATS = 4 << 20, /* 16 MiB at a time: bounds the memory for what remote ranks send */
};

struct slice slice_of(size_t begin, size_t count, int rank, int world)
{
    /* Pages, so that a rank maps little of its peers' memory; lines, so that no two ranks write the
     * same. Counted from the buffer's begin, which lies on both. */
    size_t unit = count / (size_t)world >= 16 * (size_t)PAGE_FLOATS ? PAGE_FLOATS : LINE_FLOATS;
    size_t first = begin / unit;
    size_t units = (begin + count + unit - 1) / unit - first;
    size_t end = begin + count;
    size_t lo = (first + units * (size_t)rank / (size_t)world) * unit;
    size_t hi = (first + units * ((size_t)rank + 1) / (size_t)world) * unit;
    lo = lo < begin ? begin : lo;
    hi = hi > end ? end : hi;
    return (struct slice){.begin = lo, .count = hi > lo ? hi - lo : 0};
}

size_t sum_blocks(const struct sum *sum)
{
    return (sum->count + BLOCK_FLOATS - 1) / BLOCK_FLOATS;
}

struct slice sum_slice(const struct sum *sum, const struct group *group, size_t block, int rank)
{
    struct slice slice = slice_of(sum->begin, sum->count, rank, group->n_ranks);
    return slice_of(slice.begin, slice.count, (int)block, (int)sum_blocks(sum));
}

void copy_to_locals(const struct group *group, const float *data, size_t at, size_t count)
{
    for (int i = 0; i < group->n_locals; i++) {
        if (i != group->self) {
            memcpy(group->exchanges[i] + at, data, count * sizeof(*data));
        }
    }
}

/* ---- the choice: the first row that fits
 * ---------------------------------------------------------- */

static int is_alone(const struct group *group, size_t bytes)
{
    return group->n_ranks == 1 || bytes == 0;
}

static int allreduce_none(struct group *group, const struct sum *sum, struct ms_err *err)
{
    (void)group;
    (void)sum;
    (void)err;
    return 0;
}

/* All read all: world * bytes a rank, one sync. Slices: 2 * bytes a rank, two syncs. */
static int is_flat(const struct group *group, size_t bytes)
{
    return bytes <= MESH_SMALL_MAX && (group->n_remotes == 0 || !allreduce_tree_is_better(group)) &&
           bytes * (size_t)group->n_ranks <= ALLREDUCE_FLAT_MAX;
}

static int is_tree(const struct group *group, size_t bytes)
{
    return group->n_remotes > 0 && bytes <= MESH_SMALL_MAX && allreduce_tree_is_better(group);
}

static int is_slice(const struct group *group, size_t bytes)
{
    (void)bytes;
    return group->n_remotes == 0;
}

static int is_host(const struct group *group, size_t bytes)
{
    (void)bytes;
    return group->sums_by_host;
}

static int is_any(const struct group *group, size_t bytes)
{
    (void)group;
    (void)bytes;
    return 1;
}

static const struct algorithm {
    const char *name;
    int (*fits)(const struct group *group, size_t bytes);
    int (*run)(struct group *group, const struct sum *sum, struct ms_err *err);
    int has_halves; /* can leave out adding or spreading */
} algorithms[] = {
    {"none", is_alone, allreduce_none, 1},       /* one rank, or nothing to sum */
    {"flat", is_flat, allreduce_flat, 0},        /* latency: one sync, or one message each way */
    {"tree", is_tree, allreduce_tree_floats, 0}, /* latency in large worlds: log2(world) messages */
    {"slice", is_slice, allreduce_slice, 1},     /* throughput on one host: one pass over memory */
    {"host", is_host, allreduce_host, 1},        /* throughput: once from and to each host */
    {"direct", is_any, allreduce_direct, 1},     /* one rank a host: as few bytes as a ring */
};

static const struct algorithm *choose(const struct group *group, size_t bytes, int halves)
{
    const struct algorithm *algorithm = algorithms;
    while (!algorithm->fits(group, bytes) || (halves && !algorithm->has_halves)) {
        algorithm++;
    }
    return algorithm;
}

const char *allreduce_name(const struct group *group, size_t bytes)
{
    return choose(group, bytes, 0)->name;
}

static int run(struct group *group, enum mesh_kind kind, const struct sum *sum, struct ms_err *err)
{
    struct ms_err own;
    err = err != NULL ? err : &own;
    if (sum->begin > group->exchange_count || sum->count > group->exchange_count - sum->begin) {
        return ms_fail(err, MS_E_INVALID,
                       "%s of %zu elements from %zu: the exchange buffer has %zu",
                       mesh_kind_name(kind), sum->count, sum->begin, group->exchange_count);
    }
    int rc = group_enter(group, kind, sum->begin, sum->count, err);
    if (rc == 0) {
        int halves = !sum->adds || !sum->spreads;
        rc = choose(group, sum->count * sizeof(float), halves)->run(group, sum, err);
    }
    return group_leave(group, rc, err);
}

int group_all_reduce_sum(struct group *group, size_t begin, size_t count, const void **ret_result,
                         struct ms_err *err)
{
    struct sum sum = {.begin = begin, .count = count, .adds = 1, .spreads = 1};
    int rc = run(group, MESH_ALL_REDUCE, &sum, err);
    if (rc == 0) {
        *ret_result = group_floats(group) + begin;
    }
    return rc;
}

int group_reduce_scatter_sum(struct group *group, size_t begin, size_t count, struct ms_err *err)
{
    struct sum sum = {.begin = begin, .count = count, .adds = 1};
    return run(group, MESH_REDUCE_SCATTER, &sum, err);
}

int group_all_gather_slices(struct group *group, size_t begin, size_t count, struct ms_err *err)
{
    struct sum sum = {.begin = begin, .count = count, .spreads = 1};
    return run(group, MESH_ALL_GATHER_SLICES, &sum, err);
}

/* ---- doubles
 * -------------------------------------------------------------------------------------- */

static void add(void *a, const void *b, size_t count)
{
    double *x = a;
    const double *y = b;
    for (size_t i = 0; i < count; i++) {
        x[i] += y[i];
    }
}

/* A NaN anywhere stays one: it would be hidden by the comparison alone. */
static void larger(void *a, const void *b, size_t count)
{
    double *x = a;
    const double *y = b;
    for (size_t i = 0; i < count; i++) {
        if (y[i] > x[i] || y[i] != y[i]) {
            x[i] = y[i];
        }
    }
}

/* T(lo, hi) of element i of all, as kernel_sum_tree brackets it. */
static double tree_sum(const void *const *all, int lo, int hi, size_t i)
{
    if (hi - lo == 1) {
        return ((const double *)all[lo])[i];
    }
    int mid = lo + (hi - lo + 1) / 2;
    return tree_sum(all, lo, mid, i) + tree_sum(all, mid, hi, i);
}

static void combine_all(const struct group *group, enum mesh_kind kind, const void *const *all,
                        double *values, size_t count)
{
    double result[DOUBLES_MAX]; /* values is one of all */
    if (kind == MESH_ALL_REDUCE_F64) {
        for (size_t i = 0; i < count; i++) {
            result[i] = tree_sum(all, 0, group->n_ranks, i);
        }
    } else {
        memcpy(result, all[0], count * sizeof(*result));
        for (int r = 1; r < group->n_ranks; r++) {
            larger(result, all[r], count);
        }
    }
    memcpy(values, result, count * sizeof(*result));
}

static int reduce_f64(struct group *group, enum mesh_kind kind, tree_combine_fn *combine,
                      double *values, size_t count, struct ms_err *err)
{
    const void *all[MS_WORKERS_MAX];
    struct ms_err own;
    err = err != NULL ? err : &own;
    if (count > DOUBLES_MAX) {
        return ms_fail(err, MS_E_INVALID, "a reduction of %zu doubles: at most %d", count,
                       DOUBLES_MAX);
    }
    int rc = group_enter(group, kind, 0, count, err);
    if (rc == 0 && group->n_ranks > 1 && count > 0) {
        if (group->n_remotes > 0 && allreduce_tree_is_better(group)) {
            rc = allreduce_tree(group, values, count, sizeof(*values), combine, err);
        } else {
            rc = gather_small(group, values, count * sizeof(*values), all, err);
            if (rc == 0) {
                combine_all(group, kind, all, values, count);
            }
        }
    }
    return group_leave(group, rc, err);
}

int group_all_reduce_max(struct group *group, double *values, size_t count, struct ms_err *err)
{
    return reduce_f64(group, MESH_ALL_REDUCE_MAX, larger, values, count, err);
}

/* In pieces, each a reduction of its own: no sum is of two of them. */
int group_all_reduce_sum_f64(struct group *group, double *values, size_t count, struct ms_err *err)
{
    size_t at = 0;
    int rc = 0;
    do {
        const size_t piece = count - at < DOUBLES_MAX ? count - at : DOUBLES_MAX;
        rc = reduce_f64(group, MESH_ALL_REDUCE_F64, add, values + at, piece, err);
        at += piece;
    } while (rc == 0 && at < count);
    return rc;
}
