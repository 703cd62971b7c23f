/* transform.c - what happens to one image: crop, flip, resize, rescale, normalize
 *
 * Geometry is MindSpore's (docs/design.md, "data"), with two differences on purpose: random numbers
 * are a function of (seed, epoch, record), and a resize does not round to bytes in between. */
#include "libworker/data/data.h"

#include "proto/rng.h"

#include <string.h>

/* ---- shapes ---- */

static int check_crop(const struct transform *t, int64_t *height, int64_t *width,
                      struct ms_err *err)
{
    /* MindSpore's own limit, which catches swapped arguments */
    if (t->pad_left > 3 * *width || t->pad_right > 3 * *width || t->pad_top > 3 * *height ||
        t->pad_bottom > 3 * *height) {
        return ms_fail(
            err, MS_E_INVALID,
            "random_crop: padding [%lld, %lld, %lld, %lld] (left, top, right, bottom) is "
            "more than three times the image of %lldx%lld",
            (long long)t->pad_left, (long long)t->pad_top, (long long)t->pad_right,
            (long long)t->pad_bottom, (long long)*height, (long long)*width);
    }
    int64_t padded_h = *height + t->pad_top + t->pad_bottom;
    int64_t padded_w = *width + t->pad_left + t->pad_right;
    if (t->height > padded_h || t->width > padded_w) {
        return ms_fail(err, MS_E_INVALID,
                       "random_crop: size [%lld, %lld] is larger than the padded image, %lldx%lld; "
                       "make it smaller or the padding larger",
                       (long long)t->height, (long long)t->width, (long long)padded_h,
                       (long long)padded_w);
    }
    *height = t->height;
    *width = t->width;
    return MS_OK;
}

static int check_one(const struct transform *t, int64_t channels, int64_t *height, int64_t *width,
                     struct ms_err *err)
{
    switch (t->kind) {
    case TRANSFORM_RANDOM_CROP:
        return check_crop(t, height, width, err);
    case TRANSFORM_RESIZE:
        *height = t->height;
        *width = t->width;
        return MS_OK;
    case TRANSFORM_NORMALIZE:
        if (t->n_channels != channels) {
            return ms_fail(
                err, MS_E_INVALID,
                "normalize: mean and std have %d numbers, the images have %lld channels; "
                "give one a channel",
                t->n_channels, (long long)channels);
        }
        return MS_OK;
    default:
        return MS_OK;
    }
}

int transform_check(const struct transform *list, int n, int64_t channels, int64_t *height,
                    int64_t *width, struct ms_err *err)
{
    int64_t h = *height;
    int64_t w = *width;
    for (int i = 0; i < n; i++) {
        int rc = check_one(&list[i], channels, &h, &w, err);
        if (rc < 0) {
            return rc;
        }
        if (h < 1 || w < 1 || h > MS_IMAGE_SIDE_MAX || w > MS_IMAGE_SIDE_MAX) {
            return ms_fail(err, MS_E_INVALID,
                           "transform %d makes an image of %lldx%lld; sides are from 1 to %d", i,
                           (long long)h, (long long)w, MS_IMAGE_SIDE_MAX);
        }
    }
    *height = h;
    *width = w;
    return MS_OK;
}

/* ---- crop and flip: index arithmetic ---- */

/* dst (c, t->height, t->width) from src shifted by (y0, x0), which may lie outside: zeros there. */
static void crop(const struct transform *t, const float *src, int64_t channels, int64_t height,
                 int64_t width, int64_t y0, int64_t x0, float *dst)
{
    int64_t first = x0 < 0 ? -x0 : 0; /* columns of dst inside the image */
    int64_t end = width - x0 < t->width ? width - x0 : t->width;
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t y = 0; y < t->height; y++) {
            float *row = dst + (c * t->height + y) * t->width;
            int64_t from = y + y0;
            if (from < 0 || from >= height || first >= end) {
                memset(row, 0, (size_t)t->width * sizeof(*row));
                continue;
            }
            memset(row, 0, (size_t)first * sizeof(*row));
            memcpy(row + first, src + (c * height + from) * width + x0 + first,
                   (size_t)(end - first) * sizeof(*row));
            memset(row + end, 0, (size_t)(t->width - end) * sizeof(*row));
        }
    }
}

static void flip(const float *src, int64_t rows, int64_t width, float *dst)
{
    for (int64_t y = 0; y < rows; y++) {
        for (int64_t x = 0; x < width; x++) {
            dst[y * width + x] = src[y * width + width - 1 - x];
        }
    }
}

/* ---- resize ---- */

/* Where output i reads: index `left` and its right neighbour (the same at the border), weight of
 * the right one. Half-pixel centres: (i + 0.5) in / out - 0.5, clamped to the image. */
static void taps(int64_t in, int64_t out, int32_t *left, int32_t *right, float *weight)
{
    double ratio = (double)in / (double)out;
    for (int64_t i = 0; i < out; i++) {
        double at = ((double)i + 0.5) * ratio - 0.5;
        at = at < 0 ? 0 : at;
        int32_t index = (int32_t)at;
        left[i] = index;
        right[i] = index + 1 < in ? index + 1 : index;
        weight[i] = (float)(at - index);
    }
}

/* One channel: rows become wide first (across: in_h x out_w), then are blended downwards. */
static void bilinear(const float *src, int64_t in_h, int64_t in_w, int64_t out_h, int64_t out_w,
                     float *across, float *restrict dst)
{
    int32_t left[MS_IMAGE_SIDE_MAX];
    int32_t right[MS_IMAGE_SIDE_MAX];
    float weight[MS_IMAGE_SIDE_MAX];
    taps(in_w, out_w, left, right, weight);
    for (int64_t y = 0; y < in_h; y++) {
        const float *row = src + y * in_w;
        float *wide = across + y * out_w;
        for (int64_t x = 0; x < out_w; x++) {
            wide[x] = row[left[x]] + weight[x] * (row[right[x]] - row[left[x]]);
        }
    }
    taps(in_h, out_h, left, right, weight);
    for (int64_t y = 0; y < out_h; y++) {
        const float *restrict upper = across + left[y] * out_w;
        const float *restrict lower = across + right[y] * out_w;
        float *restrict row = dst + y * out_w;
        float w = weight[y];
        for (int64_t x = 0; x < out_w; x++) {
            row[x] = upper[x] + w * (lower[x] - upper[x]);
        }
    }
}

static void nearest(const float *src, int64_t in_h, int64_t in_w, int64_t out_h, int64_t out_w,
                    float *dst)
{
    int32_t from[MS_IMAGE_SIDE_MAX];
    for (int64_t x = 0; x < out_w; x++) {
        from[x] = (int32_t)(x * in_w / out_w);
    }
    for (int64_t y = 0; y < out_h; y++) {
        const float *row = src + y * in_h / out_h * in_w;
        for (int64_t x = 0; x < out_w; x++) {
            dst[y * out_w + x] = row[from[x]];
        }
    }
}

static void resize(const struct transform *t, const float *src, int64_t channels, int64_t height,
                   int64_t width, float *across, float *dst)
{
    for (int64_t c = 0; c < channels; c++) {
        const float *from = src + c * height * width;
        float *to = dst + c * t->height * t->width;
        if (t->interpolation == INTERPOLATION_NEAREST) {
            nearest(from, height, width, t->height, t->width, to);
        } else {
            bilinear(from, height, width, t->height, t->width, across, to);
        }
    }
}

/* ---- rescale and normalize: one multiply and add a channel ---- */

struct affine {
    int used;
    double a[MS_IMAGE_CHANNEL_MAX], b[MS_IMAGE_CHANNEL_MAX];
};

static int is_affine(const struct transform *t)
{
    return t->kind == TRANSFORM_RESCALE || t->kind == TRANSFORM_NORMALIZE;
}

/* Adds the run of affine transforms that begins at list[i]; returns how many there are. */
static int affine_collect(const struct transform *list, int n, int i, int64_t channels,
                          struct affine *affine)
{
    int first = i;
    for (int64_t c = 0; !affine->used && c < channels; c++) {
        affine->a[c] = 1;
        affine->b[c] = 0;
    }
    for (; i < n && is_affine(&list[i]); i++) {
        const struct transform *t = &list[i];
        affine->used = 1;
        for (int64_t c = 0; c < channels; c++) {
            if (t->kind == TRANSFORM_RESCALE) {
                affine->a[c] *= t->scale;
                affine->b[c] = affine->b[c] * t->scale + t->shift;
            } else {
                affine->a[c] /= t->std[c];
                affine->b[c] = (affine->b[c] - t->mean[c]) / t->std[c];
            }
        }
    }
    return i - first;
}

static void affine_apply(const struct affine *affine, float *image, int64_t channels, int64_t plane)
{
    for (int64_t c = 0; affine->used && c < channels; c++) {
        float a = (float)affine->a[c];
        float b = (float)affine->b[c];
        float *at = image + c * plane;
        for (int64_t i = 0; i < plane; i++) {
            at[i] = at[i] * a + b;
        }
    }
}

/* ---- the list ---- */

struct image {
    float *data;
    int64_t channels, height, width;
};

struct draws { /* random numbers of one record */
    uint64_t stream, next;
};

static int64_t draw_below(struct draws *draws, int64_t n)
{
    return (int64_t)ms_rng_below(draws->stream, draws->next++, (uint64_t)n);
}

/* Applies a transform that moves pixels: from -> to, which gets the new shape. */
static void move_pixels(const struct transform *t, const struct image *from, struct draws *draws,
                        float *across, struct image *to)
{
    to->channels = from->channels;
    to->height = t->kind == TRANSFORM_RANDOM_HORIZONTAL_FLIP ? from->height : t->height;
    to->width = t->kind == TRANSFORM_RANDOM_HORIZONTAL_FLIP ? from->width : t->width;
    int64_t rows = from->channels * from->height;
    if (t->kind == TRANSFORM_RANDOM_CROP) { /* x before y, as MindSpore draws them */
        int64_t spare_w = from->width + t->pad_left + t->pad_right - t->width;
        int64_t spare_h = from->height + t->pad_top + t->pad_bottom - t->height;
        int64_t x0 = draw_below(draws, spare_w + 1) - t->pad_left;
        int64_t y0 = draw_below(draws, spare_h + 1) - t->pad_top;
        crop(t, from->data, from->channels, from->height, from->width, y0, x0, to->data);
    } else if (t->kind == TRANSFORM_RESIZE) {
        resize(t, from->data, from->channels, from->height, from->width, across, to->data);
    } else if (ms_rng_unit(draws->stream, draws->next++) < t->probability) {
        flip(from->data, rows, from->width, to->data);
    } else {
        memcpy(to->data, from->data, (size_t)(rows * from->width) * sizeof(float));
    }
}

/* Largest image between transforms, and what bilinear needs beside it. */
size_t transform_scratch(const struct transform *list, int n, int64_t channels, int64_t height,
                         int64_t width)
{
    int64_t image = channels * height * width;
    int64_t across = 0;
    for (int i = 0; i < n; i++) {
        int64_t before = height;
        (void)check_one(&list[i], channels, &height, &width, NULL);
        image = channels * height * width > image ? channels * height * width : image;
        across = before * width > across ? before * width : across;
    }
    return (size_t)(2 * image + across);
}

void transform_apply(const struct transform *list, int n, const float *src, int64_t channels,
                     int64_t height, int64_t width, uint64_t seed, uint64_t epoch, int64_t row,
                     float *scratch, float *dst)
{
    struct draws draws = {ms_rng_stream(seed, epoch, (uint64_t)row), 0};
    size_t half = transform_scratch(list, n, channels, height, width);
    int last_move = -1;
    int64_t across_size = 0;
    int64_t h = height;
    int64_t w = width;
    for (int i = 0; i < n; i++) {
        int64_t before = h;
        (void)check_one(&list[i], channels, &h, &w, NULL);
        across_size = before * w > across_size ? before * w : across_size;
        last_move = is_affine(&list[i]) ? last_move : i;
    }
    half = (half - (size_t)across_size) / 2;
    float *buffer[2] = {scratch, scratch + half};
    float *across = scratch + 2 * half;

    /* the first buffer is a copy, because src must stay and affine works in place */
    struct image now = {last_move < 0 ? dst : buffer[0], channels, height, width};
    memcpy(now.data, src, (size_t)(channels * height * width) * sizeof(*src));
    int turn = 1;
    for (int i = 0; i < n; i++) {
        struct affine affine = {.used = 0};
        if (is_affine(&list[i])) {
            i += affine_collect(list, n, i, channels, &affine) - 1;
            affine_apply(&affine, now.data, channels, now.height * now.width);
            continue;
        }
        struct image next = {.data = i == last_move ? dst : buffer[turn]};
        int grows = list[i].kind == TRANSFORM_RESIZE &&
                    list[i].height * list[i].width > now.height * now.width;
        int absorbed = 0;
        if (grows) {
            /* Weights of a resize sum to 1, so what follows per pixel may go before: 3 x 32 x 32
             * instead of 3 x 224 x 224 values, and no second pass over the large image. */
            absorbed = affine_collect(list, n, i + 1, channels, &affine);
            affine_apply(&affine, now.data, channels, now.height * now.width);
        }
        move_pixels(&list[i], &now, &draws, across, &next);
        now = next;
        turn = 1 - turn;
        i += absorbed;
    }
}
