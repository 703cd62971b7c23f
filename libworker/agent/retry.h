/* retry.h - when to knock at the scheduler again
 *
 * One that is not there yet (refused, no route) costs nothing to ask: every second at first, so
 * that a late scheduler is not kept waiting, later every five. One that is there and does not get
 * on (a timeout, an end within the handshake) is not helped by more of the same: full jitter under
 * a bound that doubles up to half a minute. */
#ifndef RETRY_H
#define RETRY_H

#include <stdint.h>

enum retry_cause { RETRY_ABSENT, RETRY_CROWDED };

struct retry {
    unsigned attempts; /* since the last success */
    unsigned crowded;  /* ... that met a crowd */
};

/* code: with which a connection ended, or did not begin. */
enum retry_cause retry_cause_of(int code);

/* What bounds a wait. With a rank (lease_ms is that of its scheduler): a restarted scheduler waits
 * for its ranks one lease, and that of a dynamic cluster, which goes when its job is over,
 * MS_UNHEARD_MS. Without one: 0. */
int64_t retry_most_ms(int has_rank, int is_dynamic, int64_t lease_ms);

/* How long to wait; counts the attempt. down_ms: since when nobody was reached. most_ms bounds the
 * wait (0: no bound). random: any 64 bits, new ones each time. Pure. */
int64_t retry_wait_ms(struct retry *retry, enum retry_cause cause, int64_t down_ms, int64_t most_ms,
                      uint64_t random);

#endif
