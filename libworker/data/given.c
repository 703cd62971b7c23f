/* given.c - records that somebody makes when they are asked for: which ones, and are they legal? */
#include "libworker/data/given.h"

#include "proto/grow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int given_expect(struct given_queue *queue, const struct wanted *wanted, const char *name,
                 struct ms_err *err)
{
    if (queue->begun == queue->n) {
        given_forget(queue);
    } else if (queue->begun > queue->n / 2) { /* room for the next ones, each moved once at most */
        memmove(queue->at, queue->at + queue->begun,
                (queue->n - queue->begun) * sizeof(*queue->at));
        queue->asked -= queue->begun;
        queue->n -= queue->begun;
        queue->begun = 0;
    }
    struct wanted *grown = ms_grow(queue->at, queue->n, 1, sizeof(*queue->at), &queue->room);
    if (grown == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.120s: no memory for what is wanted", name);
    }
    queue->at = grown;
    queue->at[queue->n++] = *wanted;
    return MS_OK;
}

void given_forget(struct given_queue *queue)
{
    queue->begun = queue->asked = queue->n = 0;
}

void given_fini(struct given_queue *queue)
{
    free(queue->at);
    *queue = (struct given_queue){.at = NULL};
}

static int check_finite(const float *values, size_t n, const char *what, const char *name,
                        int64_t row, struct ms_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) {
            return ms_fail(err, MS_E_INVALID,
                           "%.120s: record %lld: %s %zu is %g, which is no finite number", name,
                           (long long)row, what, i, (double)values[i]);
        }
    }
    return MS_OK;
}

int given_check(const struct data_info *info, const struct data_record *record, int64_t row,
                const char *name, const char *says, struct ms_err *err)
{
    const size_t n = (size_t)(info->channels * info->height * info->width);
    int rc = MS_OK;
    if (info->classes > 0 && !data_is_ignored(&info->ignored, record->label) &&
        (record->label < 0 || record->label >= info->classes)) {
        return ms_fail(err, MS_E_INVALID,
                       "%.120s: record %lld has label %lld; %s says %lld classes, 0 to %lld", name,
                       (long long)row, (long long)record->label, says, (long long)info->classes,
                       (long long)info->classes - 1);
    }
    if (info->classes == 0) {
        rc = check_finite(record->targets, (size_t)info->target_width, "target", name, row, err);
    }
    return rc < 0 || info->dtype == MS_U8
               ? rc
               : check_finite(record->values, n, "value", name, row, err);
}
