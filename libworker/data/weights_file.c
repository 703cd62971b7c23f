/* weights_file.c - one door to files of weights */
#include "libworker/data/weights_file.h"

#include "libworker/data/ckpt.h"
#include "libworker/data/weights_names.h"

#include <stdlib.h>
#include <string.h>

struct weights_file { /* one of the two */
    struct safetensors *safetensors;
    struct ckpt *ckpt;
};

int weights_file_is_ckpt(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL && strcmp(dot, ".ckpt") == 0;
}

int weights_file_open(const char *path, struct weights_file **ret, struct ms_err *err)
{
    struct weights_file *file = calloc(1, sizeof(*file));
    if (file == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to open it", path);
    }
    int rc = weights_file_is_ckpt(path) ? ckpt_open(path, &file->ckpt, err)
                                        : safetensors_open(path, &file->safetensors, err);
    if (rc < 0) {
        free(file);
        return rc;
    }
    *ret = file;
    return MS_OK;
}

void weights_file_close(struct weights_file *file)
{
    if (file != NULL) {
        safetensors_close(file->safetensors);
        ckpt_close(file->ckpt);
        free(file);
    }
}

size_t weights_file_count(const struct weights_file *file)
{
    return file->ckpt != NULL ? ckpt_count(file->ckpt) : safetensors_count(file->safetensors);
}

const struct safetensors_entry *weights_file_at(const struct weights_file *file, size_t i)
{
    return file->ckpt != NULL ? ckpt_at(file->ckpt, i) : safetensors_at(file->safetensors, i);
}

const struct safetensors_entry *weights_file_find(const struct weights_file *file, const char *name)
{
    return file->ckpt != NULL ? ckpt_find(file->ckpt, name)
                              : safetensors_find(file->safetensors, name);
}

/* docs/checkpoint.md: the format's own word in the metadata. */
static int is_checkpoint(const struct weights_file *file)
{
    const char *format =
        file->safetensors != NULL ? safetensors_meta(file->safetensors, "format") : NULL;
    return format != NULL && strcmp(format, "msched checkpoint") == 0;
}

int weights_file_is_aside(const struct weights_file *file, const struct safetensors_entry *entry)
{
    const int is_number = entry->n_dims == 0 || (entry->n_dims == 1 && entry->dim[0] == 1);
    const char *of = file->ckpt != NULL    ? weights_name_of_their_slot(entry->name)
                     : is_checkpoint(file) ? weights_name_of_slot(entry->name)
                                           : NULL;
    return weights_name_is_count(entry->name) ||
           (of != NULL && weights_file_find(file, of) != NULL) ||
           (file->ckpt != NULL && is_number && strchr(entry->name, '.') == NULL);
}

const struct safetensors_entry *weights_file_source(const struct weights_file *file,
                                                    const struct safetensors_entry *entry)
{
    char name[SAFETENSORS_NAME_MAX];
    const struct safetensors_entry *average =
        is_checkpoint(file)
            ? weights_file_find(file, weights_name_of_average(entry->name, name, sizeof(name)))
            : NULL;
    const int is_alike = average != NULL && average->n_dims == entry->n_dims &&
                         memcmp(average->dim, entry->dim, sizeof(entry->dim)) == 0 &&
                         strcmp(average->dtype, entry->dtype) == 0;
    return is_alike ? average : entry;
}

int weights_file_read(struct weights_file *file, const struct safetensors_entry *entry, float *dst,
                      size_t count, struct ms_err *err)
{
    return file->ckpt != NULL ? ckpt_read(file->ckpt, entry, dst, count, err)
                              : safetensors_read(file->safetensors, entry, dst, count, err);
}
