/* clock.h - milliseconds: the monotonic clock for deadlines and ages, the other one for people */
#ifndef MS_CLOCK_H
#define MS_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Any thread. */
static inline int64_t ms_mono_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Unix time. Any thread. */
static inline int64_t ms_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
