/* model_copy.h - parameters and moving statistics outside of a replica: plain arrays in name order
 *
 * What is saved, digested and given to programs is this copy, so that file, digest and API agree.
 */
#ifndef MODEL_COPY_H
#define MODEL_COPY_H

#include "libworker/data/safetensors.h"
#include "libworker/train/replica.h"

#define MODEL_COPY_FORMAT "msched" /* what the files call themselves */

struct model_copy {
    size_t n;
    struct safetensors_entry *entries; /* sorted by name */
    size_t *counts;                    /* floats */
    float **values;
    uint64_t steps;
    char network[GRAPH_NAME_MAX];
    char sha256[MS_SHA256_HEX]; /* over all values, fp32 little endian, C order, in name order */
};

/* Copies everything out of the replica. Returns owned. */
int model_copy_make(struct replica *replica, uint64_t steps, struct model_copy **ret,
                    struct ms_err *err);
void model_copy_destroy(struct model_copy *copy); /* NULL allowed */
/* Bytes of memory that a copy of the model takes. */
uint64_t model_copy_bytes(const struct graph *graph);
/* Index of a name, -1: none. */
int model_copy_find(const struct model_copy *copy, const char *name);
/* Writes a safetensors file through a temporary name. */
int model_copy_save(const struct model_copy *copy, const char *path, struct ms_err *err);
/* ... with n_more (at most 4) more pairs of key and value in its metadata. */
int model_copy_save_with(const struct model_copy *copy, const char *path, const char *const *more,
                         size_t n_more, struct ms_err *err);
/* Likewise, all but safetensors_finish. Returns owned. */
int model_copy_begin(const struct model_copy *copy, const char *path, const char *const *more,
                     size_t n_more, struct safetensors_writer **ret, struct ms_err *err);
/* That file holds these bits. */
int model_copy_is_at(const struct model_copy *copy, const char *path);
/* ... and survives a power cut: whoever wrote it may have had its name, and no sync. Syncs it. */
int model_copy_is_kept(const struct model_copy *copy, const char *path);

#endif
