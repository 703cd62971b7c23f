/* standstill.h - did this process itself stand still?
 *
 * Lateness can only be measured against an appointment: before the loop waits it says how long at
 * most, afterwards it is asked how much later than that it is. A stopped process (SIGSTOP, a paused
 * virtual machine, a swapped-out page, a slow commit) read no heartbeats in that time, so nobody
 * may be judged by it. A suspended machine shows as a jump of CLOCK_BOOTTIME against
 * CLOCK_MONOTONIC, which stands still meanwhile; peers that went on sending are granted one lease
 * then. */
#ifndef STANDSTILL_H
#define STANDSTILL_H

#include <stdint.h>

enum {
    STANDSTILL_MIN_MS = 1000
}; /* an ordinary busy machine is late by less; lease / 4 if that is
      less: a short lease must not end by a short standstill */

struct standstill {
    int64_t due_ms;  /* INT64_MAX: no appointment */
    int64_t boot_ms; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC when last seen */
};

void standstill_init(struct standstill *still, int64_t mono_ms, int64_t boot_ms);
/* How long the loop may wait at most while leases run: what was granted before the standstill began
 * and not used up is lost with it, so that must be a small part of a lease. */
int64_t standstill_pulse_ms(int64_t lease_ms);
/* The loop will be back within wait_ms; INT64_MAX: it may wait for ever. */
void standstill_expect(struct standstill *still, int64_t mono_ms, int64_t wait_ms);
/* Milliseconds by which leases are to be stretched, mostly 0. Each standstill is told once. */
int64_t standstill_check(struct standstill *still, int64_t mono_ms, int64_t boot_ms,
                         int64_t lease_ms);

#endif
