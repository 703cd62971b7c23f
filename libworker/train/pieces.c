/* pieces.c - which parameters are updated at once, and which part of a bucket is exchanged */
#include "libworker/train/pieces.h"

#include "libworker/plan/spec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int bucket_of(const struct plan_spec *spec, size_t at)
{
    int b = 0;
    while (b < spec->n_buckets && at >= spec->buckets[b].begin + spec->buckets[b].count) {
        b++;
    }
    assert(b < spec->n_buckets);
    return b;
}

/* Is the next parameter updated in one go with the last piece? */
static int goes_on(const struct piece *last, const struct piece *next)
{
    return last->bucket == next->bucket && last->group == next->group &&
           last->begin + last->count == next->begin;
}

int pieces_create(const struct job *job, const struct plan_spec *spec, size_t stats, int is_single,
                  struct pieces *ret, struct ms_err *err)
{
    struct pieces pieces = {0, calloc((size_t)spec->n_params + 1, sizeof(*pieces.items))};
    if (pieces.items == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the groups of %d parameters",
                       spec->n_params);
    }
    size_t first = 0; /* where the first piece of the bucket begins */
    for (int i = 0; i < spec->n_params; i++) {
        const struct plan_spec_param *param = &spec->params[i];
        struct piece next = {.bucket = bucket_of(spec, stats + (size_t)param->offset),
                             .begin = (size_t)param->offset,
                             .count = (size_t)param->count,
                             .group = job_group_of(job, param->name)};
        struct piece *last = pieces.n > 0 ? &pieces.items[pieces.n - 1] : NULL;
        if (next.group != NULL && next.group->frozen) {
            continue;
        }
        first = last == NULL || last->bucket != next.bucket ? next.begin : first;
        next.in_bucket = next.begin - first;
        if (last != NULL && !is_single && goes_on(last, &next)) {
            last->count += next.count;
        } else {
            pieces.items[pieces.n++] = next;
        }
    }
    *ret = pieces;
    return 0;
}

void pieces_fini(struct pieces *pieces)
{
    free(pieces->items);
    memset(pieces, 0, sizeof(*pieces));
}

struct plan_bucket pieces_bucket(const struct pieces *pieces, int bucket, struct plan_bucket whole,
                                 size_t stats)
{
    struct plan_bucket part = {whole.begin + whole.count, 0};
    for (int i = 0; i < pieces->n; i++) {
        const struct piece *piece = &pieces->items[i];
        if (piece->bucket == bucket) {
            const size_t begin = stats + piece->begin;
            part.begin = begin < part.begin ? begin : part.begin;
            part.count = begin + piece->count - part.begin;
        }
    }
    return part;
}

int pieces_run(const struct pieces *pieces, int i, struct piece *ret)
{
    *ret = pieces->items[i++];
    while (i < pieces->n && pieces->items[i].bucket == ret->bucket &&
           pieces->items[i].begin == ret->begin + ret->count) {
        ret->count += pieces->items[i++].count;
    }
    return i;
}
