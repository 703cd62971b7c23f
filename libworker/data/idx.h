/* idx.h - one IDX file of unsigned bytes (MNIST's format), plain or gzip, read from the front
 *
 * Bytes 0-1 zero, 2 the type (8: unsigned byte), 3 the number of dimensions, then each dimension as
 * u32 big endian, then the data: http://yann.lecun.com/exdb/mnist, "IDX file format".
 *
 * Ranks of a host share one copy of the data in memory (host_copy.h), which a thread makes from the
 * first read on. Until a plain file's record is in it, or where there is none, the file is read
 * where it is asked for. A gzip file without one is inflated as far as somebody asked for. Either
 * way the first batch of 47 MB does not wait for the last. One thread. */
#ifndef DATA_IDX_H
#define DATA_IDX_H

#include "libworker/data/sum.h"
#include "proto/err.h"

#include <stdint.h>

enum { IDX_DIMS_MAX = 3, IDX_FRONT = 1 << 20 };

struct idx;

/* Opens, checks magic (0x0801 for n_dims 1, 0x0803 for 3), dimensions and the size. Returns owned.
 */
int idx_open(const char *path, int n_dims, struct idx **ret, struct ms_err *err);
void idx_close(struct idx *idx); /* NULL allowed */
int64_t idx_dim(const struct idx *idx, int i);
const char *idx_path(const struct idx *idx); /* borrowed */
int64_t idx_copied(const struct idx *idx);   /* bytes of the copy that reading makes; 0: none */
/* Of those, what this host's copy has in memory now. Any thread. */
int64_t idx_in_memory(const struct idx *idx);
/* Record i of the first dimension: the product of the others, in bytes, into dst. */
int idx_read(struct idx *idx, int64_t i, uint8_t *dst, struct ms_err *err);
/* Adds its first bytes, IDX_FRONT at the most, which are the same packed and plain. Makes no copy,
 * and leaves what idx_read does next as it was. */
int idx_add_front(const struct idx *idx, struct sum *sum, struct ms_err *err);
/* What was read of a packed file so far may be damaged until its checksum, at its end, has been
 * seen: reads on to there. Nothing where no record was read, or the file is plain. */
int idx_verify(struct idx *idx, struct ms_err *err);

#endif
