/* image.c - pixels that move: crop, flip, resize */
#include "libworker/data/image.h"

#include "proto/limits.h"

#include <assert.h>
#include <string.h>

/* ---- crop ---- */

void image_crop(const struct image *image, int64_t y0, int64_t x0, int64_t height, int64_t width,
                void *dst)
{
    const size_t bytes = ms_dtype_bytes(image->dtype);
    const int64_t top = y0 < 0 ? -y0 : 0; /* the part of dst that lies in the image */
    const int64_t left = x0 < 0 ? -x0 : 0;
    const int64_t bottom = image->height - y0 < height ? image->height - y0 : height;
    const int64_t right = image->width - x0 < width ? image->width - x0 : width;
    if (top > 0 || left > 0 || bottom < height || right < width) {
        memset(dst, 0, (size_t)(image->channels * height * width) * bytes);
    }
    for (int64_t c = 0; c < image->channels && left < right; c++) {
        for (int64_t y = top; y < bottom; y++) {
            const int64_t from = (c * image->height + y + y0) * image->width + x0 + left;
            const int64_t to = (c * height + y) * width + left;
            memcpy((char *)dst + (size_t)to * bytes,
                   (const char *)image->values + (size_t)from * bytes,
                   (size_t)(right - left) * bytes);
        }
    }
}

/* ---- flip ---- */

/* The compiler makes one instruction of it. */
static uint64_t reverse_word(uint64_t w)
{
    w = (w >> 8 & 0x00FF00FF00FF00FFU) | (w & 0x00FF00FF00FF00FFU) << 8;
    w = (w >> 16 & 0x0000FFFF0000FFFFU) | (w & 0x0000FFFF0000FFFFU) << 16;
    return w >> 32 | w << 32;
}

/* Eight at a time: byte by byte it costs more than all else that happens to a small image. */
static void flip_bytes(const uint8_t *src, int64_t rows, int64_t width, uint8_t *dst)
{
    for (int64_t y = 0; y < rows; y++, src += width, dst += width) {
        int64_t x = 0;
        for (uint64_t word = 0; x + (int64_t)sizeof(word) <= width; x += (int64_t)sizeof(word)) {
            memcpy(&word, src + width - x - (int64_t)sizeof(word), sizeof(word));
            word = reverse_word(word);
            memcpy(dst + x, &word, sizeof(word));
        }
        for (; x < width; x++) {
            dst[x] = src[width - 1 - x];
        }
    }
}

static void flip_floats(const float *src, int64_t rows, int64_t width, float *restrict dst)
{
    for (int64_t y = 0; y < rows; y++) {
        for (int64_t x = 0; x < width; x++) {
            dst[y * width + x] = src[y * width + width - 1 - x];
        }
    }
}

void image_flip(const struct image *image, void *dst)
{
    const int64_t rows = image->channels * image->height;
    if (image->dtype == MS_U8) {
        flip_bytes(image->values, rows, image->width, dst);
    } else {
        flip_floats(image->values, rows, image->width, dst);
    }
}

/* ---- resize ---- */

static void pick_bytes(const uint8_t *src, const int32_t *from, int64_t n, uint8_t *dst)
{
    for (int64_t x = 0; x < n; x++) {
        dst[x] = src[from[x]];
    }
}

static void pick_floats(const float *src, const int32_t *from, int64_t n, float *dst)
{
    for (int64_t x = 0; x < n; x++) {
        dst[x] = src[from[x]];
    }
}

void image_resize_nearest(const struct image *image, int64_t height, int64_t width, void *dst)
{
    int32_t columns[MS_IMAGE_SIDE_MAX];
    for (int64_t x = 0; x < width; x++) {
        columns[x] = (int32_t)(x * image->width / width);
    }
    for (int64_t i = 0; i < image->channels * height; i++) {
        const int64_t y = i % height * image->height / height;
        const int64_t from = (i / height * image->height + y) * image->width;
        if (image->dtype == MS_U8) {
            pick_bytes((const uint8_t *)image->values + from, columns, width,
                       (uint8_t *)dst + i * width);
        } else {
            pick_floats((const float *)image->values + from, columns, width,
                        (float *)dst + i * width);
        }
    }
}

/* Where output i reads: index `left` and its right neighbour (the same at the border), weight of
 * the right one. */
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

void image_resize_bilinear(const struct image *image, int64_t height, int64_t width, float *across,
                           float *dst)
{
    assert(image->dtype == MS_F32);
    for (int64_t c = 0; c < image->channels; c++) {
        bilinear((const float *)image->values + c * image->height * image->width, image->height,
                 image->width, height, width, across, dst + c * height * width);
    }
}
