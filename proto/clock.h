/* clock.h - the monotonic clock for deadlines, ages and measurements, the other one for people */
#ifndef MS_CLOCK_H
#define MS_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Any thread. */
static inline int64_t ms_mono_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Seconds, for what is measured. Any thread. */
static inline double ms_mono_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Unix time. Any thread. */
static inline int64_t ms_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A condition whose waits end by the monotonic clock, and that time in so many milliseconds, >= 0.
 * Any thread. */
static inline void ms_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

static inline struct timespec ms_mono_after(int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    return until;
}

#endif
