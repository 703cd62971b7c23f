/* share.h - who takes the most of what all share: where it is too much, he loses his oldest
 *
 *     heap of shares: the largest first; of equal ones that whose oldest is older
 *
 * So what somebody has is safe from what others do as long as it is less than they have. Whoever
 * embeds a share finds it by name; shares of nothing are in no heap. */
#ifndef SCHED_SHARE_H
#define SCHED_SHARE_H

#include "daemon/sched/heap.h"

#include <stdint.h>

struct share {
    struct heap_link most;
    uint64_t n;
    uint64_t oldest; /* a number that grows with time, of what he loses first */
};

void shares_init(struct heap *heap);
/* Takes its place in the heap; n 0: leaves it, and may be freed. */
void share_set(struct heap *heap, struct share *share, uint64_t n, uint64_t oldest);
struct share *share_most(const struct heap *heap); /* NULL: nobody has anything */

#endif
