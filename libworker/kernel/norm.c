/* norm.c - layer and group normalisation: who sums up what, and where it is put
 *
 * A sample is cut into slices of neighbouring channels, by its layout. Where each channel has its
 * gamma and beta, a slice leaves two sums a channel, of which the group's are made; the gradients
 * of gamma and beta are sums of them over the samples. Where each value has its own, or a channel
 * is one value, those are summed up value by value in a second pass, in ranges of values, each
 * over all samples, one after the other, or over as many as fill a part.
 *
 * A thread takes whole samples, whose second pass then finds them in a cache; those that are left
 * over are shared, slice by slice. Slices, ranges and parts follow from the shape alone. */
#include "libworker/kernel/kernel.h"
#include "libworker/kernel/norm_rows.h"

#include <math.h>
#include <stddef.h>

enum {
    ALIGN = 64,
    STATS = 2,           /* of a group: mean, rstd; in backward: constant, slope */
    PART_VALUES = 16384, /* values whose sums are worth a part of the samples */
    PART_SAMPLES = 16,   /* ... which has so many at least */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- what follows from the shape ---- */

static int64_t padded(const struct kernel_norm *m)
{
    return m->layout.n_blocks * m->layout.block;
}

static int64_t sample_size(const struct kernel_norm *m)
{
    return padded(m) * m->layout.spatial;
}

static int is_rows(const struct kernel_norm *m)
{
    return m->layout.spatial == 1;
}

/* Does each value have a gamma of its own? */
static int by_value(const struct kernel_norm *m)
{
    return m->is_per_value || is_rows(m);
}

/* gamma and beta have to be brought into the layout. */
static int is_turned(const struct kernel_norm *m)
{
    return m->is_per_value && !is_rows(m) && m->layout.block > 1;
}

/* Values of a sample that have a gamma, as they lie in memory; those of padding are some. */
static int64_t n_values(const struct kernel_norm *m)
{
    return is_rows(m) ? m->layout.channels : sample_size(m);
}

static int64_t n_parts(const struct kernel_norm *m)
{
    const int64_t most = (m->layout.n + PART_SAMPLES - 1) / PART_SAMPLES;
    return least(most, (PART_VALUES + n_values(m) - 1) / n_values(m));
}

/* Values of a group as they lie in memory, and the ranges that they are cut into. */
static int64_t group_values(const struct kernel_norm *m)
{
    return n_values(m) / m->groups;
}

static int64_t group_ranges(const struct kernel_norm *m)
{
    return (group_values(m) + NORM_RANGE - 1) / NORM_RANGE;
}

struct slice {
    int64_t channel, n_channels; /* n_channels: padding is none */
    int64_t offset, width;       /* width 1: a line of nchw */
};

static int64_t slices_a_block(const struct kernel_norm *m)
{
    return (m->layout.block + NORM_WIDTH_MAX - 1) / NORM_WIDTH_MAX;
}

static int64_t n_slices(const struct kernel_norm *m)
{
    return m->layout.n_blocks * slices_a_block(m);
}

static struct slice slice_at(const struct kernel_norm *m, int64_t index)
{
    const struct kernel_layout *l = &m->layout;
    const int64_t block = index / slices_a_block(m);
    const int64_t first = index % slices_a_block(m) * NORM_WIDTH_MAX;
    struct slice s = {.channel = block * l->block + first,
                      .offset = block * l->spatial * l->block + first,
                      .width = least(l->block - first, NORM_WIDTH_MAX)};
    s.n_channels = least(s.width, l->channels - s.channel);
    return s;
}

/* Where the first value of a group lies in its sample. */
static int64_t group_offset(const struct kernel_norm *m, int64_t group)
{
    const struct kernel_layout *l = &m->layout;
    const int64_t channel = group * (l->channels / m->groups);
    return channel / l->block * l->spatial * l->block + channel % l->block;
}

static float *group_pair(const struct kernel_norm *m, float *pairs, int64_t n, int64_t group)
{
    return pairs + (n * m->groups + group) * STATS;
}

/* ---- scratch ---- */

struct room {
    double *sums;        /* of channels: two rows a sample, or a thread */
    double *partials;    /* of gamma and beta: two rows a part */
    float *coefs;        /* backward: constant and slope of each group */
    float *gamma, *beta; /* in the layout */
    size_t used;
};

static void *take(struct room *room, const struct kernel_norm *m, int64_t count, size_t size)
{
    char *at = m->scratch == NULL ? NULL : (char *)m->scratch + room->used;
    room->used += ((size_t)count * size + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

static struct room room_of(const struct kernel_norm *m, int is_backward, int threads)
{
    struct room room = {.used = 0};
    const int64_t n = m->layout.n;
    const int64_t rows = is_backward && !by_value(m) && n > threads ? n : threads;
    const int64_t n_turned = is_turned(m) ? sample_size(m) : 0;
    const int64_t parts = is_backward && by_value(m) && n_parts(m) > 1 ? n_parts(m) : 0;
    room.sums = take(&room, m, is_rows(m) ? 0 : 2 * rows * padded(m), sizeof(double));
    room.partials = take(&room, m, 2 * parts * n_values(m), sizeof(double));
    room.coefs = take(&room, m, is_backward ? n * m->groups * STATS : 0, sizeof(float));
    room.gamma = take(&room, m, n_turned, sizeof(float));
    room.beta = take(&room, m, is_backward ? 0 : n_turned, sizeof(float));
    return room;
}

size_t kernel_norm_scratch(const struct kernel_norm *norm, int is_backward, int threads)
{
    struct kernel_norm sizes = *norm;
    sizes.scratch = NULL;
    return room_of(&sizes, is_backward, threads).used;
}

struct work { /* a call */
    struct kernel_norm m;
    struct room room;
    const float *gamma, *beta; /* of the values as they lie, or of the channels */
};

/* gamma or beta of (channel, position) becomes that of the layout, with zeros for padding. */
static void turn(const struct kernel_norm *m, const float *from, float *to, int64_t row)
{
    const struct kernel_layout *l = &m->layout;
    const int64_t channel = row / l->spatial * l->block;
    const int64_t position = row % l->spatial;
    for (int64_t i = 0; i < l->block; i++) {
        const int64_t c = channel + i;
        to[row * l->block + i] = c < l->channels ? from[c * l->spatial + position] : 0.0F;
    }
}

static struct work begin(const struct kernel_norm *m, int is_backward, int threads)
{
    struct work w = {*m, room_of(m, is_backward, threads), m->gamma, m->beta};
    if (is_turned(m)) {
        const int64_t n = m->layout.n_blocks * m->layout.spatial;
        w.gamma = m->gamma != NULL ? w.room.gamma : NULL;
        w.beta = m->beta != NULL && !is_backward ? w.room.beta : NULL;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
        for (int64_t row = 0; row < n; row++) {
            if (w.gamma != NULL) {
                turn(m, m->gamma, w.room.gamma, row);
            }
            if (w.beta != NULL) {
                turn(m, m->beta, w.room.beta, row);
            }
        }
    }
    return w;
}

/* ---- sums of a sample ---- */

/* The group of a channel whose neighbour before it, or itself, is in `group`. */
static int64_t next_group(const struct kernel_norm *m, int64_t channel, int64_t group)
{
    const int64_t end = (group + 1) * (m->layout.channels / m->groups);
    return channel == end && group + 1 < m->groups ? group + 1 : group;
}

static void set_centers(const struct work *w, const struct slice *s, int64_t n, float *center)
{
    const struct kernel_norm *m = &w->m;
    const float *x = m->x + n * sample_size(m);
    int64_t group = s->channel / (m->layout.channels / m->groups);
    for (int64_t i = 0; i < s->width; i++) {
        group = i < s->n_channels ? next_group(m, s->channel + i, group) : group;
        center[i] = i >= s->n_channels ? 0.0F
                    : m->dy == NULL    ? x[group_offset(m, group)]
                                       : group_pair(m, m->stats, n, group)[0];
    }
}

static void sum_slice(const struct work *w, int64_t n, int64_t index, double *sums)
{
    const struct kernel_norm *m = &w->m;
    const struct slice s = slice_at(m, index);
    const int64_t at = n * sample_size(m) + s.offset;
    const struct norm_read read = {m->x + at, m->dy != NULL ? m->dy + at : NULL,
                                   m->is_per_value && w->gamma != NULL ? w->gamma + s.offset
                                                                       : NULL};
    float center[NORM_WIDTH_MAX];
    double *a = sums + s.channel;
    double *b = sums + padded(m) + s.channel;
    set_centers(w, &s, n, center);
    if (m->layout.block == 1) {
        double both[2];
        norm_line_sums(&read, m->layout.spatial, center[0], both);
        *a = both[0];
        *b = both[1];
    } else {
        norm_lanes_sums(&read, m->layout.spatial, s.width, m->layout.block, center, a, b);
    }
}

/* Of a group; sums: of the sample's channels, NULL where a channel is one value. */
static void sum_group(const struct work *w, int64_t n, int64_t group, const double *sums,
                      float center, double ret[2])
{
    const struct kernel_norm *m = &w->m;
    const int64_t channels = m->layout.channels / m->groups;
    const int64_t first = group * channels;
    if (sums != NULL) {
        const float *gamma = m->dy != NULL && !m->is_per_value ? w->gamma : NULL;
        norm_fold(sums + first, sums + padded(m) + first, gamma != NULL ? gamma + first : NULL,
                  channels, ret);
        return;
    }
    const int64_t at = n * padded(m) + first;
    const struct norm_read read = {m->x + at, m->dy != NULL ? m->dy + at : NULL,
                                   w->gamma != NULL ? w->gamma + first : NULL};
    norm_line_sums(&read, channels, center, ret);
}

/* Forward: mean and rstd of each group. Sums of distances from its first value are exact enough
 * however far from zero the group lies. */
static void set_stats(const struct work *w, int64_t n, const double *sums)
{
    const struct kernel_norm *m = &w->m;
    const double count = (double)(m->layout.channels / m->groups * m->layout.spatial);
    for (int64_t g = 0; g < m->groups; g++) {
        const float center = m->x[n * sample_size(m) + group_offset(m, g)];
        double both[2];
        sum_group(w, n, g, sums, center, both);
        const double off = both[0] / count;
        const double variance = both[1] / count - off * off;
        float *stats = group_pair(m, m->stats, n, g);
        stats[0] = (float)((double)center + off);
        stats[1] = (float)(1.0 / sqrt((variance < 0 ? 0 : variance) + m->epsilon));
    }
}

/* Backward: with S = sum dz, T = sum dz (x - mean): dx = rstd gamma dy - rstd S / M - (x - mean)
 * rstd^3 T / M. */
static void set_coefs(const struct work *w, int64_t n, const double *sums)
{
    const struct kernel_norm *m = &w->m;
    const double count = (double)(m->layout.channels / m->groups * m->layout.spatial);
    for (int64_t g = 0; g < m->groups; g++) {
        const float *stats = group_pair(m, m->stats, n, g);
        const double rstd = (double)stats[1];
        float *coefs = group_pair(m, w->room.coefs, n, g);
        double both[2];
        sum_group(w, n, g, sums, stats[0], both);
        coefs[0] = (float)(rstd * both[0] / count);
        coefs[1] = (float)(rstd * rstd * rstd * both[1] / count);
    }
}

/* ---- the second pass over a sample ---- */

static void set_lanes(const struct work *w, const struct slice *s, int64_t n, struct norm_lanes *l)
{
    const struct kernel_norm *m = &w->m;
    int64_t group = s->channel / (m->layout.channels / m->groups);
    for (int64_t i = 0; i < s->width; i++) {
        const int64_t c = s->channel + i;
        if (i >= s->n_channels) { /* padding is zero, and stays it */
            l->mean[i] = l->scale[i] = l->shift[i] = l->constant[i] = l->slope[i] = 0.0F;
            continue;
        }
        group = next_group(m, c, group);
        const float *stats = group_pair(m, m->stats, n, group);
        l->mean[i] = stats[0];
        l->scale[i] = w->gamma != NULL ? w->gamma[c] * stats[1] : stats[1];
        l->shift[i] = m->dy == NULL && w->beta != NULL ? w->beta[c] : 0.0F;
        if (m->dy != NULL) {
            const float *coefs = group_pair(m, w->room.coefs, n, group);
            l->constant[i] = coefs[0];
            l->slope[i] = coefs[1];
        }
    }
}

static void write_lanes(const struct work *w, const struct slice *s, int64_t n)
{
    const struct kernel_norm *m = &w->m;
    const int64_t at = n * sample_size(m) + s->offset;
    const int64_t rows = m->layout.spatial;
    const int64_t stride = m->layout.block;
    struct norm_lanes l;
    set_lanes(w, s, n, &l);
    if (m->dy == NULL && stride == 1) {
        norm_line_apply(m->y + at, m->x + at, rows, &l);
    } else if (m->dy == NULL) {
        norm_lanes_apply(m->y + at, m->x + at, rows, s->width, stride, &l);
    } else if (stride == 1) {
        norm_line_dx(m->dx + at, m->x + at, m->dy + at, rows, &l);
    } else {
        norm_lanes_dx(m->dx + at, m->x + at, m->dy + at, rows, s->width, stride, &l);
    }
}

/* Forward, part `index` of as many as there are slices of all values that have a gamma each. */
static void write_values(const struct work *w, int64_t n, int64_t index, int64_t parts)
{
    const struct kernel_norm *m = &w->m;
    const int64_t size = group_values(m);
    for (int64_t g = 0; g < m->groups; g++) {
        const float *stats = group_pair(m, m->stats, n, g);
        const int64_t from = g * size + size * index / parts;
        const int64_t to = g * size + size * (index + 1) / parts;
        const int64_t at = n * sample_size(m) + from;
        norm_values_apply(m->y + at, m->x + at, to - from, stats[0], stats[1],
                          w->gamma != NULL ? w->gamma + from : NULL,
                          w->beta != NULL ? w->beta + from : NULL);
    }
}

static void write_slice(const struct work *w, int64_t n, int64_t index)
{
    const struct slice s = slice_at(&w->m, index);
    if (!by_value(&w->m)) {
        write_lanes(w, &s, n);
    } else if (w->m.dy == NULL) {
        write_values(w, n, index, n_slices(&w->m));
    } /* backward: in ranges, when all samples have their sums */
}

/* ---- samples, and who has them ---- */

static void finish_sums(const struct work *w, int64_t n, const double *sums)
{
    if (w->m.dy == NULL) {
        set_stats(w, n, sums);
    } else {
        set_coefs(w, n, sums);
    }
}

/* slot: of the thread. */
static double *sums_of(const struct work *w, int64_t n, int64_t slot)
{
    const int64_t row = w->m.dy != NULL && !by_value(&w->m) ? n : slot;
    return is_rows(&w->m) ? NULL : w->room.sums + 2 * row * padded(&w->m);
}

static void run_sample(const struct work *w, int64_t n, int64_t slot)
{
    double *sums = sums_of(w, n, slot);
    for (int64_t i = 0; sums != NULL && i < n_slices(&w->m); i++) {
        sum_slice(w, n, i, sums);
    }
    finish_sums(w, n, sums);
    for (int64_t i = 0; i < n_slices(&w->m); i++) {
        write_slice(w, n, i);
    }
}

static void run_samples(const struct work *w, int threads)
{
    const int64_t slices = n_slices(&w->m);
    const int64_t rest = is_rows(&w->m) || slices == 1 ? 0 : w->m.layout.n % threads;
    const int64_t whole = w->m.layout.n - rest;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (int64_t slot = 0; slot < threads; slot++) {
            for (int64_t n = whole * slot / threads; n < whole * (slot + 1) / threads; n++) {
                run_sample(w, n, slot);
            }
        }
        if (rest > 0) {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < rest * slices; i++) {
                sum_slice(w, whole + i / slices, i % slices,
                          sums_of(w, whole + i / slices, i / slices));
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < rest; i++) {
                finish_sums(w, whole + i, sums_of(w, whole + i, i));
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < rest * slices; i++) {
                write_slice(w, whole + i / slices, i % slices);
            }
        }
    }
}

/* What the second pass over values has made of padding. */
static void clear_padding(const struct kernel_norm *m, float *y, int threads)
{
    if (by_value(m) && padded(m) != m->layout.channels) {
        kernel_clear_padding(&m->layout, y, threads);
    }
}

void kernel_norm_forward(const struct kernel_norm *norm, int threads)
{
    struct kernel_norm m = *norm;
    m.dy = NULL;
    const struct work w = begin(&m, 0, threads);
    run_samples(&w, threads);
    clear_padding(&m, m.y, threads);
}

/* ---- gradients of gamma and beta ---- */

/* Of channels [from, to): the sums of their samples, one after the other. */
static void reduce_channels(const struct work *w, int64_t from, int64_t to)
{
    const struct kernel_norm *m = &w->m;
    double dgamma[NORM_WIDTH_MAX] = {0};
    double dbeta[NORM_WIDTH_MAX] = {0};
    for (int64_t n = 0; n < m->layout.n; n++) {
        const double *sums = sums_of(w, n, 0);
        int64_t group = from / (m->layout.channels / m->groups);
        for (int64_t c = from; c < to; c++) {
            group = next_group(m, c, group);
            dbeta[c - from] += sums[c];
            dgamma[c - from] += sums[padded(m) + c] * (double)group_pair(m, m->stats, n, group)[1];
        }
    }
    for (int64_t c = from; c < to; c++) {
        if (m->dgamma != NULL) {
            m->dgamma[c] = (float)dgamma[c - from];
        }
        if (m->dbeta != NULL) {
            m->dbeta[c] = (float)dbeta[c - from];
        }
    }
}

/* Values [from, from + n) as they lie have these sums. */
static void put_sums(const struct work *w, int64_t from, int64_t n, const double *dgamma,
                     const double *dbeta)
{
    const struct kernel_layout *l = &w->m.layout;
    const int64_t block = is_turned(&w->m) ? l->block : 1;
    const int64_t spatial = is_turned(&w->m) ? l->spatial : 1;
    int64_t lane = from % block;
    int64_t position = from / block % spatial;
    int64_t first = from / (block * spatial) * block; /* channel of lane 0 */
    for (int64_t i = 0; i < n; i++) {
        const int64_t to = (first + lane) * spatial + position;
        if (!is_turned(&w->m) || first + lane < l->channels) {
            if (w->m.dgamma != NULL) {
                w->m.dgamma[to] = (float)dgamma[i];
            }
            if (w->m.dbeta != NULL) {
                w->m.dbeta[to] = (float)dbeta[i];
            }
        }
        if (++lane == block) {
            lane = 0;
            if (++position == spatial) {
                position = 0;
                first += block;
            }
        }
    }
}

/* Range `index` of all groups' ranges, over the samples of a part. */
static void run_range(const struct work *w, int64_t index, int64_t part)
{
    const struct kernel_norm *m = &w->m;
    const int64_t group = index / group_ranges(m);
    const int64_t into = index % group_ranges(m) * NORM_RANGE;
    const int64_t from = group * group_values(m) + into;
    const int64_t size = least(group_values(m) - into, NORM_RANGE);
    const int64_t parts = n_parts(m);
    const float *gamma = w->gamma != NULL ? w->gamma + from : NULL;
    double own[2 * NORM_RANGE];
    double *sums = parts > 1 ? w->room.partials + 2 * part * n_values(m) : own;
    double *dgamma = parts > 1 ? sums + from : own;
    double *dbeta = parts > 1 ? sums + n_values(m) + from : own + NORM_RANGE;
    for (int64_t i = 0; i < size; i++) {
        dgamma[i] = dbeta[i] = 0;
    }
    for (int64_t n = m->layout.n * part / parts; n < m->layout.n * (part + 1) / parts; n++) {
        const float *stats = group_pair(m, m->stats, n, group);
        const float *coefs = group_pair(m, w->room.coefs, n, group);
        const int64_t at = n * sample_size(m) + from;
        norm_values_dx(m->dx + at, m->x + at, m->dy + at, size, stats[0], stats[1], coefs[0],
                       coefs[1], gamma, dgamma, dbeta);
    }
    if (parts == 1) {
        put_sums(w, from, size, dgamma, dbeta);
    }
}

/* Adds up the parts of values [from, to). */
static void add_parts(const struct work *w, int64_t from, int64_t to)
{
    const int64_t n = n_values(&w->m);
    double *sums = w->room.partials;
    for (int64_t part = 1; part < n_parts(&w->m); part++) {
        for (int64_t i = from; i < to; i++) {
            sums[i] += sums[2 * part * n + i];
            sums[n + i] += sums[(2 * part + 1) * n + i];
        }
    }
    put_sums(w, from, to - from, sums + from, sums + n + from);
}

static void run_ranges(const struct work *w, int threads)
{
    (void)threads; /* where OpenMP is left out */
    const struct kernel_norm *m = &w->m;
    const int64_t parts = n_parts(m);
    const int64_t ranges = m->groups * group_ranges(m);
    const int64_t pieces = (n_values(m) + NORM_RANGE - 1) / NORM_RANGE;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < ranges * parts; i++) {
            run_range(w, i / parts, i % parts);
        }
        if (parts > 1) {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < pieces; i++) {
                add_parts(w, i * NORM_RANGE, least((i + 1) * NORM_RANGE, n_values(m)));
            }
        }
    }
}

static void reduce_all_channels(const struct work *w, int threads)
{
    (void)threads; /* where OpenMP is left out */
    const int64_t channels = w->m.layout.channels;
    const int64_t pieces = (channels + NORM_WIDTH_MAX - 1) / NORM_WIDTH_MAX;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < pieces; i++) {
        reduce_channels(w, i * NORM_WIDTH_MAX, least((i + 1) * NORM_WIDTH_MAX, channels));
    }
}

void kernel_norm_backward(const struct kernel_norm *norm, int threads)
{
    const struct work w = begin(norm, 1, threads);
    run_samples(&w, threads);
    if (by_value(norm)) {
        run_ranges(&w, threads);
        clear_padding(norm, norm->dx, threads);
    } else if (norm->dgamma != NULL || norm->dbeta != NULL) {
        reduce_all_channels(&w, threads);
    }
}
