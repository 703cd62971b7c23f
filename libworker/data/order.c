/* order.c - which record comes when: one permutation an epoch, dealt to the shards in turn */
#include "libworker/data/data.h"

#include "proto/rng.h"

#include <assert.h>

/* The third word of the permutation's stream; those of transforms are record numbers. */
#define ORDER_STREAM UINT64_MAX

int64_t data_shard_rows(const struct data_shard *shard)
{
    assert(shard->world > 0 && shard->rank >= 0 && shard->rank < shard->world);
    if (shard->wrap) {
        return (shard->rows + shard->world - 1) / shard->world;
    }
    int64_t rest = shard->rows - shard->rank;
    return rest > 0 ? (rest + shard->world - 1) / shard->world : 0;
}

/* Fisher and Yates, from the end, in Durstenfeld's form (CACM 7(7), 1964, algorithm 235). */
void data_permute(const struct data_shard *shard, uint64_t epoch, int64_t *perm)
{
    for (int64_t i = 0; i < shard->rows; i++) {
        perm[i] = i;
    }
    uint64_t stream = ms_rng_stream(shard->seed, epoch, ORDER_STREAM);
    for (int64_t i = shard->rows - 1; i > 0; i--) {
        int64_t j = (int64_t)ms_rng_below(stream, (uint64_t)i, (uint64_t)i + 1);
        int64_t swap = perm[i];
        perm[i] = perm[j];
        perm[j] = swap;
    }
}

int64_t data_shard_row(const struct data_shard *shard, const int64_t *perm, int64_t i)
{
    int64_t position = (i * shard->world + shard->rank) % shard->rows;
    return shard->shuffle && perm != NULL ? perm[position] : position;
}
