/* histogram.c - how long things took: counts in buckets that are at most an eighth wide */
#include "daemon/histogram.h"

/* 0 to 7 have a bucket each; then every power of two has HISTOGRAM_STEPS of them. */
static unsigned bucket_of(uint64_t value)
{
    if (value < HISTOGRAM_STEPS) {
        return (unsigned)value;
    }
    unsigned shift = 0;
    while (value >> shift >= 2 * HISTOGRAM_STEPS) { /* leaves the four highest bits */
        shift++;
    }
    return (shift + 1) * HISTOGRAM_STEPS + (unsigned)(value >> shift) % HISTOGRAM_STEPS;
}

static uint64_t last_of(unsigned bucket)
{
    if (bucket < HISTOGRAM_STEPS) {
        return bucket;
    }
    unsigned shift = bucket / HISTOGRAM_STEPS - 1;
    uint64_t first = (uint64_t)(HISTOGRAM_STEPS + bucket % HISTOGRAM_STEPS) << shift;
    return first + ((uint64_t)1 << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->n++;
    histogram->max = value > histogram->max ? value : histogram->max;
    histogram->counts[bucket_of(value)]++;
}

uint64_t histogram_at(const struct histogram *histogram, unsigned per_mille)
{
    uint64_t want = histogram->n - histogram->n / 1000 * (1000 - per_mille) -
                    histogram->n % 1000 * (1000 - per_mille) / 1000; /* rounded up, no overflow */
    uint64_t seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS && histogram->n > 0; i++) {
        seen += histogram->counts[i];
        if (seen >= want) {
            uint64_t last = last_of(i);
            return last < histogram->max ? last : histogram->max;
        }
    }
    return histogram->max;
}
