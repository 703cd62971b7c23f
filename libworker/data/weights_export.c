/* weights_export.c - weights in the format, and by the names, of others */
#include "libworker/data/ckpt.h"
#include "libworker/data/data.h"
#include "libworker/data/weights_file.h"
#include "libworker/data/weights_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct export
{
    const struct data_export *asked;
    struct weights_file *from;
    size_t n; /* entries, as they are called in the new file */
    struct safetensors_entry *entries;
    const struct safetensors_entry **sources; /* of the old one */
    uint64_t bytes;
};

/* ---- which tensors, and how they are called ---- */

/* What torch calls weight and bias is a norm's where the weight has one dimension. */
static int is_of_norm(const struct weights_file *file, const struct safetensors_entry *entry)
{
    char weight[SAFETENSORS_NAME_MAX + 8];
    const char *dot = strrchr(entry->name, '.');
    if (dot == NULL || (strcmp(dot, ".weight") != 0 && strcmp(dot, ".bias") != 0)) {
        return 1; /* a moving statistic, or what has no other name */
    }
    snprintf(weight, sizeof(weight), "%.*s.weight", (int)(dot - entry->name), entry->name);
    const struct safetensors_entry *of = weights_file_find(file, weight);
    return of != NULL && of->n_dims == 1;
}

static void rename_for(const struct export *export, const struct safetensors_entry *entry,
                       struct safetensors_entry *to)
{
    const struct data_export *asked = export->asked;
    const int is_known = asked->is_of_norm == NULL || asked->is_of_norm(asked->arg, entry->name);
    if (asked->names == DATA_NAMES_TORCH && is_known) {
        (void)weights_name_to_torch(entry->name, to->name, sizeof(to->name));
    } else if (asked->names == DATA_NAMES_MINDSPORE && is_of_norm(export->from, entry)) {
        (void)weights_name_from_torch(entry->name, to->name, sizeof(to->name));
    }
}

static int take(struct export *export, const struct safetensors_entry *entry, struct ms_err *err)
{
    struct safetensors_entry *to = &export->entries[export->n];
    if (weights_file_is_aside(export->from, entry)) {
        return MS_OK;
    }
    if (strcmp(entry->dtype, "F32") != 0) {
        return ms_fail(err, MS_E_UNSUPPORTED, "%.200s: tensor %.80s is %s; weights are F32",
                       export->asked->from, entry->name, entry->dtype);
    }
    *to = *entry;
    rename_for(export, entry, to);
    export->sources[export->n++] = weights_file_source(export->from, entry);
    export->bytes += entry->end - entry->begin;
    return MS_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct safetensors_entry *)a)->name,
                  ((const struct safetensors_entry *)b)->name);
}

/* Two tensors may come to have one name: fc.gamma beside fc.weight. */
static int check_names(const struct export *export, struct ms_err *err)
{
    struct safetensors_entry *sorted = calloc(export->n + 1, sizeof(*sorted));
    if (sorted == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the tensors of %.200s", export->asked->from);
    }
    memcpy(sorted, export->entries, export->n * sizeof(*sorted));
    qsort(sorted, export->n, sizeof(*sorted), by_name);
    int rc = MS_OK;
    for (size_t i = 1; rc == MS_OK && i < export->n; i++) {
        if (by_name(&sorted[i - 1], &sorted[i]) == 0) {
            rc = ms_fail(err, MS_E_INVALID,
                         "%.200s: two tensors would have the name %.80s; keep their own ones",
                         export->asked->from, sorted[i].name);
        }
    }
    free(sorted);
    return rc;
}

static int choose(struct export *export, struct ms_err *err)
{
    const char *path = export->asked->from;
    const size_t n = weights_file_count(export->from);
    export->entries = calloc(n + 1, sizeof(*export->entries));
    export->sources = calloc(n + 1, sizeof(*export->sources));
    if (export->entries == NULL || export->sources == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the tensors of %.200s", path);
    }
    for (size_t i = 0; i < n; i++) {
        int rc = take(export, weights_file_at(export->from, i), err);
        if (rc < 0) {
            return rc;
        }
    }
    return export->n > 0 ? check_names(export, err)
                         : ms_fail(err, MS_E_INVALID, "%.200s has no weights", path);
}

/* ---- writing ---- */

/* Of either format. */
struct writer {
    struct ckpt_writer *ckpt;
    struct safetensors_writer *safetensors;
};

static int begin(const struct export *export, struct writer *ret, struct ms_err *err)
{
    static const char *const metadata[] = {"format", "pt"}; /* Hugging Face's for: of torch */
    const size_t n_meta = export->asked->names == DATA_NAMES_TORCH ? 1 : 0;
    return weights_file_is_ckpt(export->asked->to)
               ? ckpt_create(export->asked->to, &ret->ckpt, err)
               : safetensors_create(export->asked->to, export->entries, export->n, metadata, n_meta,
                                    &ret->safetensors, err);
}

static int put(const struct export *export, const struct writer *writer, size_t i,
               struct ms_err *err)
{
    const struct safetensors_entry *source = export->sources[i];
    const struct safetensors_entry *entry = &export->entries[i];
    size_t count = 1; /* the readers hold it against the bytes that there are */
    for (int d = 0; d < source->n_dims; d++) {
        count *= (size_t)source->dim[d];
    }
    float *values = malloc(count > 0 ? count * sizeof(*values) : 1);
    int rc = values != NULL
                 ? weights_file_read(export->from, source, values, count, err)
                 : ms_fail(err, MS_E_NOMEM, "no memory for the tensor %.80s", source->name);
    if (rc == MS_OK) {
        rc = writer->ckpt != NULL
                 ? ckpt_put(writer->ckpt, entry, values, err)
                 : safetensors_put(writer->safetensors, entry->name, values, count, err);
    }
    free(values);
    return rc;
}

static int write_all(const struct export *export, struct ms_err *err)
{
    struct writer writer = {NULL, NULL};
    int rc = begin(export, &writer, err);
    for (size_t i = 0; rc == MS_OK && i < export->n; i++) {
        rc = put(export, &writer, i, err);
    }
    if (rc < 0) {
        ckpt_abandon(writer.ckpt);
        safetensors_abandon(writer.safetensors);
        return rc;
    }
    return writer.ckpt != NULL ? ckpt_finish(writer.ckpt, err)
                               : safetensors_finish(writer.safetensors, NULL, err);
}

int data_export_weights(const struct data_export *asked, struct data_exported *ret,
                        struct ms_err *err)
{
    struct export export = {.asked = asked};
    int rc = weights_file_open(asked->from, &export.from, err);
    rc = rc < 0 ? rc : choose(&export, err);
    rc = rc < 0 ? rc : write_all(&export, err);
    if (rc == MS_OK) {
        *ret = (struct data_exported){export.n, export.bytes};
    }
    weights_file_close(export.from);
    free(export.entries);
    free((void *)export.sources);
    return rc;
}
