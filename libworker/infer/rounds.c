/* rounds.c - batches of shards that are computed side by side, in the order of the data */
#include "libworker/infer/rounds.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct slot {
    float *values;
    int32_t *labels;
    int64_t rows; /* that wait; 0: none */
    int has_labels, has_ended;
};

struct rounds {
    int members;
    int64_t batch, tokens, columns;
    rounds_row_fn *on_row;
    void *arg;
    struct slot *slots;
    int64_t round; /* that is taken next */
    int has_stopped;
    pthread_mutex_t lock; /* slots and has_stopped */
    pthread_cond_t changed;
};

int rounds_create(int members, int64_t batch, int64_t tokens, int64_t columns,
                  rounds_row_fn *on_row, void *arg, struct rounds **ret, struct ms_err *err)
{
    struct rounds *rounds = calloc(1, sizeof(*rounds));
    struct slot *slots = calloc((size_t)members, sizeof(*slots));
    if (rounds == NULL || slots == NULL) {
        free(rounds);
        free(slots);
        return ms_fail(err, MS_E_NOMEM, "no memory for predictions");
    }
    *rounds = (struct rounds){.members = members,
                              .batch = batch,
                              .tokens = tokens > 0 ? tokens : 1,
                              .columns = columns,
                              .on_row = on_row,
                              .arg = arg,
                              .slots = slots};
    pthread_mutex_init(&rounds->lock, NULL);
    pthread_cond_init(&rounds->changed, NULL);
    const size_t n = (size_t)(batch * rounds->tokens);
    int is_made = 1;
    for (int i = 0; i < members; i++) {
        slots[i].values = calloc(n * (size_t)columns, sizeof(float));
        slots[i].labels = calloc(n, sizeof(int32_t));
        is_made &= slots[i].values != NULL && slots[i].labels != NULL;
    }
    if (!is_made) {
        rounds_destroy(rounds);
        return ms_fail(err, MS_E_NOMEM, "no memory for predictions of %d batches", members);
    }
    *ret = rounds;
    return MS_OK;
}

void rounds_destroy(struct rounds *rounds)
{
    if (rounds == NULL) {
        return;
    }
    for (int i = 0; i < rounds->members; i++) {
        free(rounds->slots[i].values);
        free(rounds->slots[i].labels);
    }
    free(rounds->slots);
    pthread_mutex_destroy(&rounds->lock);
    pthread_cond_destroy(&rounds->changed);
    free(rounds);
}

void rounds_stop(struct rounds *rounds)
{
    pthread_mutex_lock(&rounds->lock);
    rounds->has_stopped = 1;
    pthread_cond_broadcast(&rounds->changed);
    pthread_mutex_unlock(&rounds->lock);
}

void rounds_end(struct rounds *rounds, int member)
{
    pthread_mutex_lock(&rounds->lock);
    rounds->slots[member].has_ended = 1;
    pthread_cond_broadcast(&rounds->changed);
    pthread_mutex_unlock(&rounds->lock);
}

/* ---- member 0 ---- */

static int take_row(const struct rounds *rounds, const struct slot *slot, int64_t row,
                    int64_t sample, struct ms_err *err)
{
    const int64_t first = row * rounds->tokens;
    const struct rounds_row one = {.sample = sample,
                                   .values = slot->values + first * rounds->columns,
                                   .labels = slot->has_labels ? slot->labels + first : NULL};
    return rounds->on_row(rounds->arg, &one, err);
}

/* All is there. */
static int take_rows(const struct rounds *rounds, struct ms_err *err)
{
    int rc = MS_OK;
    for (int64_t row = 0; rc == MS_OK && row < rounds->slots[0].rows; row++) {
        for (int i = 0; rc == MS_OK && i < rounds->members; i++) {
            const int64_t place = rounds->round * rounds->batch + row;
            const struct slot *slot = &rounds->slots[i];
            rc = row < slot->rows ? take_row(rounds, slot, row, place * rounds->members + i, err)
                                  : MS_OK;
        }
    }
    return rc;
}

static int is_complete(const struct rounds *rounds)
{
    int is = 1;
    for (int i = 0; i < rounds->members; i++) {
        is &= rounds->slots[i].rows > 0 || rounds->slots[i].has_ended;
    }
    return is;
}

static int take_round(struct rounds *rounds, struct ms_err *err)
{
    pthread_mutex_lock(&rounds->lock);
    while (!is_complete(rounds) && !rounds->has_stopped) {
        pthread_cond_wait(&rounds->changed, &rounds->lock);
    }
    const int has_stopped = rounds->has_stopped;
    pthread_mutex_unlock(&rounds->lock);
    if (has_stopped) {
        return ms_fail(err, MS_E_ABORTED, "given up beside another one that failed");
    }
    int rc = take_rows(rounds, err); /* nobody writes to a slot that is full */
    pthread_mutex_lock(&rounds->lock);
    rounds->round++;
    for (int i = 0; i < rounds->members; i++) {
        rounds->slots[i].rows = 0;
    }
    pthread_cond_broadcast(&rounds->changed);
    pthread_mutex_unlock(&rounds->lock);
    return rc;
}

/* ---- each of them ---- */

static int await_empty(struct rounds *rounds, const struct slot *slot, struct ms_err *err)
{
    pthread_mutex_lock(&rounds->lock);
    while (slot->rows > 0 && !rounds->has_stopped) {
        pthread_cond_wait(&rounds->changed, &rounds->lock);
    }
    const int has_stopped = rounds->has_stopped;
    pthread_mutex_unlock(&rounds->lock);
    return has_stopped ? ms_fail(err, MS_E_ABORTED, "given up beside another one that failed")
                       : MS_OK;
}

int rounds_put(struct rounds *rounds, int member, const struct batch *batch,
               const struct plan_evaluated *made, struct ms_err *err)
{
    struct slot *slot = &rounds->slots[member];
    const size_t n = (size_t)(batch->rows * rounds->tokens);
    int rc = await_empty(rounds, slot, err);
    if (rc < 0) {
        return rc;
    }
    memcpy(slot->values, made->predictions, n * (size_t)rounds->columns * sizeof(float));
    slot->has_labels = batch->labels.dtype == MS_I32;
    if (slot->has_labels) {
        memcpy(slot->labels, batch->labels.values, n * sizeof(int32_t));
    }
    pthread_mutex_lock(&rounds->lock);
    slot->rows = batch->rows;
    pthread_cond_broadcast(&rounds->changed);
    pthread_mutex_unlock(&rounds->lock);
    return member == 0 ? take_round(rounds, err) : MS_OK;
}
