/* standstill.c - did this process itself stand still? */
#include "daemon/standstill.h"

void standstill_init(struct standstill *still, int64_t mono_ms, int64_t boot_ms)
{
    still->due_ms = INT64_MAX;
    still->boot_ms = boot_ms - mono_ms;
}

int64_t standstill_pulse_ms(int64_t lease_ms)
{
    int64_t pulse_ms = lease_ms / 10;
    return pulse_ms < 50 ? 50 : pulse_ms > 1000 ? 1000 : pulse_ms;
}

void standstill_expect(struct standstill *still, int64_t mono_ms, int64_t wait_ms)
{
    still->due_ms = wait_ms < INT64_MAX - mono_ms ? mono_ms + wait_ms : INT64_MAX;
}

int64_t standstill_check(struct standstill *still, int64_t mono_ms, int64_t boot_ms,
                         int64_t lease_ms)
{
    int64_t stretch = 0;
    int64_t late_ms = lease_ms / 4 < STANDSTILL_MIN_MS ? lease_ms / 4 : STANDSTILL_MIN_MS;
    int64_t slept = boot_ms - mono_ms - still->boot_ms;
    if (slept > STANDSTILL_MIN_MS) {
        still->boot_ms += slept;
        /* leases count monotonic time, so they did not run: one more covers the way back */
        stretch += slept < lease_ms ? slept : lease_ms;
    }
    if (still->due_ms != INT64_MAX && mono_ms - still->due_ms > late_ms) {
        stretch += mono_ms - still->due_ms;
        still->due_ms = mono_ms;
    }
    return stretch;
}
