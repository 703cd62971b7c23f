/* picture_cover.c - a picture resized until it covers a size, and cut in its middle
 *
 * Pillow 10, src/libImaging/Resample.c: precompute_coeffs, normalize_coeffs_8bpc and the passes
 * over rows, then columns, with the filter "bilinear" (a triangle of 1, times the scale where it
 * shrinks). Only what is left after the cut is computed. */
#include "libworker/data/picture.h"

#include <stdlib.h>
#include <string.h>

enum { PRECISION_BITS = 32 - 8 - 2 };

/* Which inputs one side's outputs are made of. */
struct taps {
    int64_t first, n; /* outputs: from the one that is kept first on */
    int64_t most;     /* weights of one */
    int64_t *from;    /* n: its first input */
    int64_t *count;   /* n: how many */
    int32_t *weight;  /* n x most */
};

struct side { /* of the picture, resized, cut */
    int64_t in, out, keep, first;
};

/* Python's round: halves go to the even one. */
static int64_t half_to_even(int64_t n)
{
    const int64_t half = n / 2;
    return n % 2 == 0 || half % 2 == 0 ? half : half + 1;
}

static struct side side_of(int64_t in, int64_t out, int64_t keep)
{
    return (struct side){in, out, keep, half_to_even(out - keep)};
}

static double triangle(double x)
{
    x = x < 0 ? -x : x;
    return x < 1 ? 1 - x : 0;
}

/* Inputs within the support of output i. */
static void find_range(const struct side *side, double scale, double support, int64_t i,
                       int64_t *ret_from, int64_t *ret_count)
{
    const double centre = ((double)i + 0.5) * scale;
    int64_t from = (int64_t)(centre - support + 0.5);
    int64_t to = (int64_t)(centre + support + 0.5);
    from = from < 0 ? 0 : from;
    to = to > side->in ? side->in : to;
    *ret_from = from;
    *ret_count = to - from;
}

static void weigh(const struct side *side, struct taps *taps, double scale, double support)
{
    const double narrow = scale < 1 ? 1 : 1 / scale;
    for (int64_t k = 0; k < side->keep; k++) {
        const int64_t i = side->first + k;
        const double centre = ((double)i + 0.5) * scale;
        int32_t *weight = taps->weight + k * taps->most;
        double sum = 0;
        find_range(side, scale, support, i, &taps->from[k], &taps->count[k]);
        for (int64_t x = 0; x < taps->count[k]; x++) {
            sum += triangle(((double)(x + taps->from[k]) - centre + 0.5) * narrow);
        }
        for (int64_t x = 0; x < taps->count[k]; x++) {
            double w = triangle(((double)(x + taps->from[k]) - centre + 0.5) * narrow);
            w = sum != 0 ? w / sum : w;
            weight[x] = (int32_t)(0.5 + w * (1 << PRECISION_BITS));
        }
    }
}

static size_t taps_bytes(const struct side *side, struct taps *ret)
{
    const double scale = (double)side->in / (double)side->out;
    const double support = scale < 1 ? 1 : scale;
    ret->most = 2 * ((int64_t)support + 1) + 1;
    return (size_t)side->keep * (2 * sizeof(int64_t) + (size_t)ret->most * sizeof(int32_t));
}

/* In room of taps_bytes. */
static void taps_make(const struct side *side, struct taps *taps, void *room)
{
    const double scale = (double)side->in / (double)side->out;
    taps->from = room;
    taps->count = taps->from + side->keep;
    taps->weight = (int32_t *)(taps->count + side->keep);
    weigh(side, taps, scale, scale < 1 ? 1 : scale);
}

static uint8_t clip(int32_t sum)
{
    const int32_t value = sum >> PRECISION_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* One row of the picture, (width, channels), to the columns that are kept. */
static void resize_row(const uint8_t *src, int channels, const struct taps *taps, int64_t n,
                       uint8_t *dst)
{
    for (int64_t x = 0; x < n; x++, dst += channels) {
        const int32_t *weight = taps->weight + x * taps->most;
        const uint8_t *from = src + taps->from[x] * channels;
        for (int c = 0; c < channels; c++) {
            int32_t sum = 1 << (PRECISION_BITS - 1);
            for (int64_t i = 0; i < taps->count[x]; i++) {
                sum += weight[i] * from[i * channels + c];
            }
            dst[c] = clip(sum);
        }
    }
}

/* Rows of `width` bytes each; output row k. */
static void blend_rows(const uint8_t *rows, int64_t first, int64_t width, const struct taps *taps,
                       int64_t k, int32_t *sums, uint8_t *dst)
{
    const int32_t *weight = taps->weight + k * taps->most;
    for (int64_t x = 0; x < width; x++) {
        sums[x] = 1 << (PRECISION_BITS - 1);
    }
    for (int64_t i = 0; i < taps->count[k]; i++) {
        const uint8_t *row = rows + (taps->from[k] - first + i) * width;
        for (int64_t x = 0; x < width; x++) {
            sums[x] += weight[i] * row[x];
        }
    }
    for (int64_t x = 0; x < width; x++) {
        dst[x] = clip(sums[x]);
    }
}

/* (n pixels, channels) of row y into the planes of (channels, height, n). */
static void spread(const uint8_t *src, int64_t y, int64_t height, int64_t n, int channels,
                   uint8_t *dst)
{
    for (int c = 0; c < channels; c++) {
        uint8_t *to = dst + (c * height + y) * n;
        for (int64_t x = 0; x < n; x++) {
            to[x] = src[x * channels + c];
        }
    }
}

static int reserve(struct picture_work *work, size_t need, const char *name, struct ms_err *err)
{
    if (need > work->room) {
        free(work->bytes);
        work->bytes = malloc(need);
        work->room = work->bytes != NULL ? need : 0;
    }
    return work->bytes != NULL || need == 0
               ? MS_OK
               : ms_fail(err, MS_E_NOMEM, "%.160s: no memory for %zu bytes to resize it", name,
                         need);
}

static size_t aligned(size_t size)
{
    return (size + 63) / 64 * 64;
}

/* The inputs that outputs which are kept are made of: from *ret_first up to the one returned. */
static int64_t find_inputs(const struct side *side, int64_t *ret_first)
{
    const double scale = (double)side->in / (double)side->out;
    const double support = scale < 1 ? 1 : scale;
    int64_t from = 0;
    int64_t count = 0;
    find_range(side, scale, support, side->first, ret_first, &count);
    find_range(side, scale, support, side->first + side->keep - 1, &from, &count);
    return from + count;
}

static int resize(const struct picture *picture, const char *name, const struct side *y,
                  const struct side *x, struct picture_work *work, uint8_t *dst, struct ms_err *err)
{
    struct taps across;
    struct taps down;
    const int channels = picture->channels;
    const int64_t width = x->keep * channels;
    const size_t across_bytes = aligned(taps_bytes(x, &across));
    const size_t down_bytes = aligned(taps_bytes(y, &down));
    const size_t sums_bytes = aligned((size_t)width * sizeof(int32_t));
    const size_t row_bytes = aligned((size_t)width);
    const size_t fixed = across_bytes + down_bytes + sums_bytes + row_bytes;
    int64_t first = 0;
    const int64_t last = find_inputs(y, &first);
    int rc = reserve(work, fixed + (size_t)(last - first) * (size_t)width, name, err);
    if (rc < 0) {
        return rc;
    }
    uint8_t *at = work->bytes;
    taps_make(x, &across, at);
    taps_make(y, &down, at + across_bytes);
    int32_t *sums = (int32_t *)(void *)(at + across_bytes + down_bytes);
    uint8_t *row = at + across_bytes + down_bytes + sums_bytes;
    uint8_t *rows = at + fixed;
    for (int64_t i = first; i < last; i++) {
        const uint8_t *src = picture->bytes + i * picture->width * channels;
        uint8_t *to = rows + (i - first) * width;
        if (x->in == x->out) { /* Pillow leaves the pass out */
            memcpy(to, src + x->first * channels, (size_t)width);
        } else {
            resize_row(src, channels, &across, x->keep, to);
        }
    }
    for (int64_t k = 0; k < y->keep; k++) {
        const uint8_t *made = row;
        if (y->in == y->out) {
            made = rows + (y->first + k - first) * width;
        } else {
            blend_rows(rows, first, width, &down, k, sums, row);
        }
        spread(made, k, y->keep, x->keep, channels, dst);
    }
    return MS_OK;
}

int picture_cover(const struct picture *picture, const char *name, int64_t height, int64_t width,
                  struct picture_work *work, uint8_t *dst, struct ms_err *err)
{
    const int64_t h = picture->height;
    const int64_t w = picture->width;
    if (h == height && w == width) {
        for (int64_t y = 0; y < h; y++) {
            spread(picture->bytes + y * w * picture->channels, y, h, w, picture->channels, dst);
        }
        return MS_OK;
    }
    /* torchvision: the side that would be too short decides, the other one is rounded down */
    const int by_width = w * height <= h * width;
    const struct side y = side_of(h, by_width ? width * h / w : height, height);
    const struct side x = side_of(w, by_width ? width : height * w / h, width);
    return resize(picture, name, &y, &x, work, dst, err);
}
