/* pool.h - max pooling with windows that tile the image, on layouts with channels inside
 *
 * oneDNN's backward first clears dx and then adds into it; where windows do not overlap, every
 * element of dx belongs to one window and is written once. Twice to four times as fast on the small
 * networks, where pooling was a third of the step. */
#ifndef KERNEL_POOL_H
#define KERNEL_POOL_H

#include <stdint.h>

enum { POOL_KERNEL_MAX = 4 }; /* a window's place fits a byte with room to spare */

/* x: (planes, h, w, block); y: (planes, h / kernel, w / kernel, block). What does not fill a window
 * at the right and bottom is ignored. */
struct pool_shape {
    int64_t planes, h, w, block, kernel;
};

/* places: as y, a byte each: which element of the window was the (first) maximum. */
void pool_max(const struct pool_shape *shape, const float *x, float *y, uint8_t *places,
              int threads);
/* Writes all of dx. */
void pool_max_backward(const struct pool_shape *shape, const uint8_t *places, const float *dy,
                       float *dx, int threads);

#endif
