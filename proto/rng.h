/* rng.h - counter-based random numbers: a value is a function of (stream, index), nothing is hidden
 *
 * splitmix64's finalizer over a counter (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
 * Generators, OOPSLA 2014). Data order, augmentation and initial weights use only this, so that
 * they are functions of (seed, epoch, sample) and a restarted rank sees the same. Not for secrets.
 */
#ifndef MS_RNG_H
#define MS_RNG_H

#include <stdint.h>

static inline uint64_t ms_rng_mix(uint64_t z)
{
    z += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

/* 64 random bits for element i of a stream; stream < 2^32. */
static inline uint64_t ms_rng_u64(uint64_t stream, uint64_t i)
{
    return ms_rng_mix((stream << 32) + i);
}

/* Uniform in [0, 1) with 53 bits. */
static inline double ms_rng_unit(uint64_t stream, uint64_t i)
{
    return (double)(ms_rng_u64(stream, i) >> 11) * 0x1.0p-53;
}

/* A 32-bit stream number out of any three words, for example (seed, epoch, purpose). */
static inline uint64_t ms_rng_stream(uint64_t a, uint64_t b, uint64_t c)
{
    return ms_rng_mix(ms_rng_mix(ms_rng_mix(a) ^ b) ^ c) >> 32;
}

/* Uniform integer in [0, n), n > 0: multiply-shift, bias below n / 2^64. */
static inline uint64_t ms_rng_below(uint64_t stream, uint64_t i, uint64_t n)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)ms_rng_u64(stream, i) * n) >> 64);
}

#endif
