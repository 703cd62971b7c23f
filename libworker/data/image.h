/* image.h - pixels that move: crop, flip, resize
 *
 * What only moves pixels works on bytes as well as on floats and leaves each value as it is. dst
 * has room for the result, channels x height x width elements of the image's type, and is no part
 * of the image. Any thread. */
#ifndef DATA_IMAGE_H
#define DATA_IMAGE_H

#include "proto/dtype.h"

#include <stdint.h>

struct image {
    enum ms_dtype dtype; /* u8 or f32 */
    const void *values;  /* (channels, height, width), C order; borrowed */
    int64_t channels, height, width;
};

static inline size_t image_bytes(const struct image *image)
{
    return (size_t)(image->channels * image->height * image->width) * ms_dtype_bytes(image->dtype);
}

/* The height x width pixels whose first is at row y0 and column x0; zeros outside the image. */
void image_crop(const struct image *image, int64_t y0, int64_t x0, int64_t height, int64_t width,
                void *dst);

/* Left becomes right; the shape stays. */
void image_flip(const struct image *image, void *dst);

/* Each pixel is the one whose index is floor(index x in / out). */
void image_resize_nearest(const struct image *image, int64_t height, int64_t width, void *dst);

/* Floats only. Half-pixel centres: (i + 0.5) in / out - 0.5, clamped to the image. across: room for
 * image->height x width floats. */
void image_resize_bilinear(const struct image *image, int64_t height, int64_t width, float *across,
                           float *dst);

#endif
