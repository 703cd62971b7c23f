/* counter.c - numbers that only grow: generations, job ids, ticks, events */
#include "daemon/sched/counter.h"

#include "daemon/sched/state.h"

#include <string.h>

typedef unsigned long long ull;

enum { GENERATION, NEXT_JOB, TICKS, NEXT_EVENT };

/* The number that a key of the database is, and the first that it cannot be. */
static const struct counter {
    const char *key;
    uint64_t max;
} counters[] = {
    [GENERATION] = {"generation", MS_GENERATION_MAX},
    [NEXT_JOB] = {"next_job", MS_JOB_ID_MAX},
    [TICKS] = {"ticks", MS_TICKS_MAX},
    [NEXT_EVENT] = {"next_event", MS_EVENTS_NUMBER_MAX},
};

static void raise(uint64_t *number, uint64_t value)
{
    *number = value > *number ? value : *number;
}

int sched_load_meta(struct sched *s, const char *key, uint64_t value, struct ms_err *err)
{
    size_t which = 0;
    while (which < MS_ARRAY_SIZE(counters) && strcmp(counters[which].key, key) != 0) {
        which++;
    }
    if (which == MS_ARRAY_SIZE(counters)) {
        return 0; /* other keys are the store's own, or a newer release's */
    }
    if (value >= counters[which].max) {
        return ms_fail(err, MS_E_CONFIG, "its %s is %llu, and the limit is %llu", key, (ull)value,
                       (ull)counters[which].max - 1);
    }
    switch (which) {
    case GENERATION:
        raise(&s->generation, value);
        break;
    case NEXT_JOB:
        raise(&s->next_job, value);
        break;
    case TICKS:
        s->ticks = value;
        break;
    default:
        raise(&s->last_event, value > 0 ? value - 1 : 0);
        break;
    }
    return 0;
}

uint64_t sched_skip_of(int64_t wall_ms)
{
    static const int64_t most = 1LL << 45;      /* the year 3134 */
    const int64_t ms = wall_ms - 1577836800000; /* 2020-01-01 */
    return (uint64_t)(ms < 1 ? 1 : ms > most ? most : ms);
}

/* A number is below 2^53, so that no sum can wrap. */
static uint64_t far_above(const struct sched *s, uint64_t number, uint64_t a_ms)
{
    const uint64_t by_now = s->cfg.skip_ahead * a_ms;
    return by_now > number ? by_now : number + MS_NUMBERS_GAP;
}

int counters_skip(struct sched *s, struct ms_err *err)
{
    const uint64_t to[] = {
        [GENERATION] = far_above(s, s->generation, MS_GENERATIONS_A_MS),
        [NEXT_JOB] = far_above(s, s->next_job, MS_JOB_IDS_A_MS),
        [TICKS] = far_above(s, s->ticks, MS_TICKS_A_MS),
        [NEXT_EVENT] = far_above(s, s->last_event, MS_EVENTS_A_MS) + 1,
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(to); i++) {
        if (to[i] >= counters[i].max) {
            return ms_fail(err, MS_E_CONFIG,
                           "database %s is a copy, or lacks writes: its %s would go on at %llu, "
                           "and the limit is %llu; put the newest copy back (with its -wal), or "
                           "move it away to begin with an empty one",
                           s->database, counters[i].key, (ull)to[i], (ull)counters[i].max - 1);
        }
    }
    s->generation = to[GENERATION];
    s->next_job = to[NEXT_JOB];
    s->ticks = to[TICKS];
    s->last_event = to[NEXT_EVENT] - 1;
    return 0;
}

bool generations_left(const struct sched *s)
{
    return s->generation + 1 < MS_GENERATION_MAX;
}

bool job_ids_left(const struct sched *s)
{
    return s->next_job + 1 < MS_JOB_ID_MAX;
}
