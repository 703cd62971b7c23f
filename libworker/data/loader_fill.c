/* loader_fill.c - what the loader's thread does: records, transformed and perhaps mixed, in a batch
 */
#include "libworker/data/loader_impl.h"
#include "libworker/data/mixup.h"

#include <string.h>

/* Beyond them the loss has no least value. */
static int check_probabilities(const struct loader *l, const float *targets, int64_t row,
                               struct ms_err *err)
{
    for (int64_t i = 0; i < l->data.target_width; i++) {
        if (!(targets[i] >= 0 && targets[i] <= 1)) {
            char name[MS_PATH_MAX];
            data_name_record(l->cfg.source, row, name, sizeof(name));
            return ms_fail(err, MS_E_INVALID,
                           "%.240s: target %g is no probability, and the loss wants 0 to 1; "
                           "scale the targets, or use mse",
                           name, (double)targets[i]);
        }
    }
    return MS_OK;
}

/* A record, transformed by itself, and its labels. */
static int read_sample(struct loader *l, int64_t row, int64_t epoch, int thread, void *values,
                       void *labels, struct ms_err *err)
{
    const struct data_info *data = &l->data;
    struct data_record record;
    int rc = l->readers != NULL ? data_reader_read(l->readers[thread], row, &record, err)
                                : data_read(l->cfg.source, row, &record, err);
    if (rc == MS_OK && l->cfg.has_probabilities && record.targets != NULL) {
        rc = check_probabilities(l, record.targets, row, err);
    }
    if (rc < 0) {
        return rc;
    }
    const void *label = data->tokens > 0    ? (const void *)record.labels
                        : data->classes > 0 ? (const void *)&record.label
                                            : record.targets;
    memcpy(labels, label, l->labels.bytes);
    const struct image image = {data->dtype, record.values, data->channels, data->height,
                                data->width};
    transform_apply(l->transforms, l->n_single, &image, l->cfg.seed, (uint64_t)epoch, row,
                    l->scratch + (size_t)thread * l->scratch_bytes, values);
    return MS_OK;
}

static struct mixup mixup_of(const struct loader *l, int64_t row, int64_t epoch)
{
    return mixup_draw(l->alpha, l->cfg.seed, (uint64_t)epoch, row, l->data.rows);
}

/* Of classes the batch tells both labels; numbers are mixed as values are. */
static int mix_row(struct loader *l, struct slot *slot, int64_t k, int64_t row, int64_t epoch,
                   int thread, struct ms_err *err)
{
    const struct mixup mixup = mixup_of(l, row, epoch);
    char *values = l->mixing + (size_t)thread * l->mixing_bytes;
    char *labels = values + l->images.bytes;
    int rc = read_sample(l, mixup.other, epoch, thread, values, labels, err);
    if (rc < 0) {
        return rc;
    }
    mixup_values((float *)(void *)(slot->images + (size_t)k * l->images.bytes),
                 (const float *)(const void *)values, l->images.count, mixup.share);
    if (slot->others == NULL) {
        mixup_values((float *)(void *)(slot->labels + (size_t)k * l->labels.bytes),
                     (const float *)(const void *)labels, l->labels.count, mixup.share);
    } else {
        memcpy(&slot->others[k], labels, sizeof(slot->others[k]));
        slot->shares[k] = mixup.share;
    }
    return MS_OK;
}

static int fill_row(struct loader *l, struct slot *slot, int64_t k, int64_t row, int64_t epoch,
                    int thread, struct ms_err *err)
{
    int rc = read_sample(l, row, epoch, thread, slot->images + (size_t)k * l->images.bytes,
                         slot->labels + (size_t)k * l->labels.bytes, err);
    return rc < 0 || l->alpha == 0 ? rc : mix_row(l, slot, k, row, epoch, thread, err);
}

/* Rows of a short batch beyond its last are zero: the plan computes them and weighs them by 0. */
static void clear_rest(const struct loader *l, struct slot *slot, int64_t rows)
{
    const size_t done = (size_t)rows;
    const size_t rest = (size_t)l->cfg.batch - done;
    memset(slot->images + done * l->images.bytes, 0, rest * l->images.bytes);
    memset(slot->labels + done * l->labels.bytes, 0, rest * l->labels.bytes);
}

static struct batch_tensor tensor_of(const struct row *row, const void *values, int64_t batch)
{
    return (struct batch_tensor){row->dtype, (size_t)batch * row->count, values};
}

struct filling { /* of one batch */
    struct loader *loader;
    struct slot *slot;
    int64_t epoch, index; /* of the batch within the epoch */
};

static int fill_item(void *arg, int thread, int64_t k, struct ms_err *err)
{
    const struct filling *f = arg;
    struct loader *l = f->loader;
    if (atomic_load_explicit(&l->stop, memory_order_relaxed)) {
        return ms_fail(err, MS_E_ABORTED, "the loader was stopped");
    }
    const int64_t row = data_shard_row(&l->shard, l->perm, f->index * l->cfg.batch + k);
    return fill_row(l, f->slot, k, row, f->epoch, thread, err);
}

int loader_fill(struct loader *l, struct slot *slot, int64_t epoch, int64_t index,
                struct ms_err *err)
{
    const int64_t accumulate = l->cfg.accumulate;
    const int64_t step = index / accumulate;
    const int64_t left = l->batches_per_epoch - step * accumulate; /* with this step's */
    int is_last = index == l->batches_per_epoch - 1;
    int64_t rows = is_last ? l->info.last_rows : l->cfg.batch;
    struct filling filling = {l, slot, epoch, index};
    int rc = l->pool != NULL ? pool_run(l->pool, rows, fill_item, &filling, err) : MS_OK;
    for (int64_t k = 0; rc == MS_OK && l->pool == NULL && k < rows; k++) {
        rc = fill_item(&filling, 0, k, err);
    }
    if (rc < 0) {
        return rc;
    }
    clear_rest(l, slot, rows);
    slot->batch = (struct batch){.images = tensor_of(&l->images, slot->images, l->cfg.batch),
                                 .labels = tensor_of(&l->labels, slot->labels, l->cfg.batch),
                                 .others = slot->others,
                                 .shares = slot->shares,
                                 .rows = rows,
                                 .epoch = epoch,
                                 .step = step,
                                 .part = index % accumulate,
                                 .n_parts = left < accumulate ? left : accumulate,
                                 .last_of_epoch = is_last};
    slot->batch.step_rows = slot->batch.n_parts * l->cfg.batch;
    if (left <= accumulate) {
        slot->batch.step_rows -= l->cfg.batch - l->info.last_rows;
    }
    return MS_OK;
}

int loader_expect(struct loader *l, int64_t epoch, int64_t index, int64_t *expected,
                  struct ms_err *err)
{
    int rc = MS_OK;
    const int64_t last = l->batches_per_epoch - 1;
    for (; rc == MS_OK && *expected <= index + 1 && *expected <= last; ++*expected) {
        const int64_t rows = *expected == last ? l->info.last_rows : l->cfg.batch;
        for (int64_t k = 0; rc == MS_OK && k < rows; k++) {
            const int64_t row = data_shard_row(&l->shard, l->perm, *expected * l->cfg.batch + k);
            rc = data_expect(l->cfg.source, row, (uint64_t)epoch, l->cfg.seed, err);
            if (rc == MS_OK && l->alpha > 0) {
                rc = data_expect(l->cfg.source, mixup_of(l, row, epoch).other, (uint64_t)epoch,
                                 l->cfg.seed, err);
            }
        }
    }
    return rc;
}
