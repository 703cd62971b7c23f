/* batch_norm_serial.h - the bits of batch norm, written down plainly: one lane after the other
 *
 * kernel/batch_norm*.c may split, share and vectorise as it likes, but weights of users depend on
 * these roundings: which elements make a chunk, how a chunk is summed in float, in which order
 * chunks are merged in double. Layouts and formulas: kernel/kernel.h. */
#ifndef TESTS_BATCH_NORM_SERIAL_H
#define TESTS_BATCH_NORM_SERIAL_H

#include "libworker/kernel/kernel.h"

#include <math.h>

/* A lane: every stride-th float from x on, `rows` of them. In nchw a channel has 16 of them, in
 * every other layout one a plane. */
struct serial_lane {
    int64_t at, rows, stride;
};

struct serial_moments {
    double count, mean, m2;
};

static inline int64_t serial_lanes(const struct kernel_layout *l)
{
    return l->block == 1 ? 16 : 1;
}

/* Rows of a chunk: of lanes that lie side by side, up to 256. */
static inline int64_t serial_chunk(const struct kernel_layout *l, int64_t channel)
{
    int64_t first = channel % l->block / 256 * 256;
    int64_t width = l->block == 1 ? 16 : l->block - first < 256 ? l->block - first : 256;
    int64_t rows = 2048 / width;
    return rows > 128 ? 128 : rows < 32 ? 32 : rows;
}

/* Full rows of a lane in an image, and (nchw) the lane's place in the short row at the end. */
static inline struct serial_lane serial_plane(const struct kernel_layout *l, int64_t n, int64_t c,
                                              int64_t lane, int *ret_has_short)
{
    int64_t at = (n * l->n_blocks + c / l->block) * l->spatial * l->block + c % l->block;
    *ret_has_short = l->block == 1 && lane < l->spatial % 16;
    return l->block == 1 ? (struct serial_lane){at + lane, l->spatial / 16, 16}
                         : (struct serial_lane){at, l->spatial, l->block};
}

static inline void serial_add_moments(struct serial_moments *m, const float *x,
                                      struct serial_lane lane)
{
    float sum[4] = {0}, first[2] = {0}, second[2] = {0};
    for (int64_t r = 0; r < lane.rows; r++) {
        sum[r < lane.rows / 4 * 4 ? r % 4 : 0] += x[lane.at + r * lane.stride];
    }
    float center = ((sum[0] + sum[1]) + (sum[2] + sum[3])) * (1.0F / (float)lane.rows);
    for (int64_t r = 0; r < lane.rows; r++) {
        float d = x[lane.at + r * lane.stride] - center;
        int odd = r < lane.rows / 2 * 2 ? (int)(r % 2) : 0;
        first[odd] += d;
        second[odd] += d * d;
    }
    double f = (double)(first[0] + first[1]);
    double rows = (double)lane.rows;
    double shift = f * (1.0 / rows);
    double weight = rows / (m->count + rows);
    double delta = ((double)center + shift) - m->mean;
    double own = (double)(second[0] + second[1]) - f * shift;
    m->m2 += own + delta * delta * (m->count * weight);
    m->mean += delta * weight;
    m->count += rows;
}

static inline void serial_stats(const struct kernel_layout *l, const float *x, int64_t c,
                                float *mean, float *variance)
{
    struct serial_moments parts[32] = {{0, 0, 0}}; /* 16 lanes of full rows, 16 of short ones */
    int64_t lanes = serial_lanes(l);
    for (int64_t n = 0; n < l->n; n++) {
        for (int64_t i = 0; i < lanes; i++) {
            int has_short = 0;
            struct serial_lane lane = serial_plane(l, n, c, i, &has_short);
            for (int64_t left = lane.rows; left > 0;) {
                int64_t rows = serial_chunk(l, c) < left ? serial_chunk(l, c) : left;
                serial_add_moments(&parts[i], x, (struct serial_lane){lane.at, rows, lane.stride});
                lane.at += rows * lane.stride;
                left -= rows;
            }
            if (has_short) {
                serial_add_moments(&parts[lanes + i], x, (struct serial_lane){lane.at, 1, 1});
            }
        }
    }
    struct serial_moments all = parts[0];
    for (int64_t i = 1; i < 2 * lanes; i++) {
        double total = all.count + parts[i].count;
        double delta = parts[i].mean - all.mean;
        if (parts[i].count > 0) {
            all.m2 += parts[i].m2 + delta * delta * (all.count * parts[i].count / total);
            all.mean += delta * (parts[i].count / total);
            all.count = total;
        }
    }
    double value = all.m2 / all.count;
    *mean = (float)all.mean;
    *variance = (float)(value < 0 ? 0.0 : value);
}

/* What a channel of batch norm's gradient needs. */
struct serial_back {
    const float *x, *y, *dy;
    float mean, scale, shift; /* z = (x - mean) scale + shift */
    double rstd;
    enum kernel_mask mask;
};

static inline struct serial_back serial_back_at(const struct kernel_bn_back *b, int64_t c)
{
    double rstd = 1.0 / sqrt((double)b->variance[c] + b->epsilon);
    return (struct serial_back){
        b->x,       b->y, b->dy,  b->mean[c], (float)((double)b->gamma[c] * rstd),
        b->beta[c], rstd, b->mask};
}

static inline float serial_dz(const struct serial_back *b, int64_t at)
{
    float z = b->mask == KERNEL_MASK_Y ? b->y[at] : (b->x[at] - b->mean) * b->scale + b->shift;
    return b->mask == KERNEL_MASK_NONE || z > 0.0F ? b->dy[at] : 0.0F;
}

static inline void serial_add_sums(double sums[2], const struct serial_back *b,
                                   struct serial_lane lane)
{
    float dz[2] = {0}, dzx[2] = {0};
    for (int64_t r = 0; r < lane.rows; r++) {
        int64_t at = lane.at + r * lane.stride;
        int odd = r < lane.rows / 2 * 2 ? (int)(r % 2) : 0;
        float g = serial_dz(b, at);
        dz[odd] += g;
        dzx[odd] += g * (b->x[at] - b->mean);
    }
    sums[0] += (double)(dz[0] + dz[1]);
    sums[1] += (double)(dzx[0] + dzx[1]);
}

static inline void serial_sums(const struct kernel_layout *l, const struct serial_back *b,
                               int64_t c, double ret[2])
{
    double sums[16][2] = {{0}};
    for (int64_t n = 0; n < l->n; n++) {
        for (int64_t i = 0; i < serial_lanes(l); i++) {
            int has_short = 0;
            struct serial_lane lane = serial_plane(l, n, c, i, &has_short);
            for (int64_t left = lane.rows; left > 0;) {
                int64_t rows = serial_chunk(l, c) < left ? serial_chunk(l, c) : left;
                serial_add_sums(sums[i], b, (struct serial_lane){lane.at, rows, lane.stride});
                lane.at += rows * lane.stride;
                left -= rows;
            }
            if (has_short) {
                serial_add_sums(sums[i], b, (struct serial_lane){lane.at, 1, 1});
            }
        }
    }
    ret[0] = sums[0][0];
    ret[1] = sums[0][1];
    for (int64_t i = 1; i < serial_lanes(l); i++) {
        ret[0] += sums[i][0];
        ret[1] += sums[i][1];
    }
}

/* One channel of kernel_bn_backward. */
static inline void serial_backward(const struct kernel_bn_back *bn, int64_t c)
{
    const struct kernel_layout *l = &bn->layout;
    const struct serial_back b = serial_back_at(bn, c);
    double count = (double)(l->n * l->spatial);
    double sums[2];
    serial_sums(l, &b, c, sums);
    bn->dbeta[c] = (float)sums[0];
    bn->dgamma[c] = (float)(sums[1] * b.rstd);
    float mean_dz = (float)(sums[0] / count);
    float slope = (float)(sums[1] * b.rstd * b.rstd / count);
    for (int64_t i = 0; i < l->n * l->spatial; i++) {
        int64_t plane = (i / l->spatial * l->n_blocks + c / l->block) * l->spatial;
        int64_t at = (plane + i % l->spatial) * l->block + c % l->block;
        float dz = serial_dz(&b, at);
        bn->dx[at] = b.scale * (dz - mean_dz - (b.x[at] - b.mean) * slope);
        bn->dz[at] = dz;
    }
}

#endif
