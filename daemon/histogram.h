/* histogram.h - how long things took: counts in buckets that are at most an eighth wide
 *
 * 4 KiB, no allocation; adding is a few instructions. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_STEPS = 8, HISTOGRAM_BUCKETS = 62 * HISTOGRAM_STEPS };

struct histogram {
    uint64_t n, max;
    uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);
/* The value that per_mille of 1000 do not exceed, rounded up by an eighth at most and never above
 * max; 0 when nothing was added. */
uint64_t histogram_at(const struct histogram *histogram, unsigned per_mille);

#endif
