/* retry.c - when to knock at the scheduler again */
#include "libworker/agent/retry.h"

#include "proto/err.h"
#include "proto/limits.h"

enum retry_cause retry_cause_of(int code)
{
    return code == MS_E_UNREACHABLE ? RETRY_ABSENT : RETRY_CROWDED;
}

/* Uniform in [low, high]. */
static int64_t between(int64_t low, int64_t high, uint64_t random)
{
    return low + (int64_t)(random % (uint64_t)(high - low + 1));
}

static int64_t doubled(int64_t ms, unsigned times, int64_t most)
{
    while (times-- > 0 && ms < most) {
        ms *= 2;
    }
    return ms < most ? ms : most;
}

int64_t retry_most_ms(int has_rank, int is_dynamic, int64_t lease_ms)
{
    const int64_t beat_ms = lease_ms / MS_HEARTBEATS_PER_LEASE;
    return !has_rank                                      ? 0
           : is_dynamic && beat_ms > MS_RECONNECT_HEAR_MS ? MS_RECONNECT_HEAR_MS
                                                          : beat_ms;
}

int64_t retry_wait_ms(struct retry *retry, enum retry_cause cause, int64_t down_ms, int64_t most_ms,
                      uint64_t random)
{
    int64_t most = most_ms > 0 && most_ms < MS_RECONNECT_MAX_MS ? most_ms : MS_RECONNECT_MAX_MS;
    int64_t low;
    int64_t high;
    if (cause == RETRY_CROWDED) {
        high = doubled(MS_RECONNECT_SOON_MS, retry->crowded++, most);
        low = MS_RECONNECT_MIN_MS < high ? MS_RECONNECT_MIN_MS : high;
    } else {
        int64_t steady =
            down_ms < MS_RECONNECT_EAGER_MS ? MS_RECONNECT_SOON_MS : MS_RECONNECT_LATER_MS;
        high = doubled(MS_RECONNECT_MIN_MS, retry->attempts, steady < most ? steady : most);
        low = high / 2;
    }
    retry->attempts++;
    return between(low, high, random);
}
