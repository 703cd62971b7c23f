/* memory.h - large buffers, and how much memory a job may take */
#ifndef MEMORY_H
#define MEMORY_H

#include "libworker/host/cgroup.h"
#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

/* Zeroed, 2 MiB aligned where it is that large, huge pages asked for. Returns owned: memory_free
 * with the same size. what names the buffer in the error. */
int memory_alloc(size_t bytes, const char *what, void **ret, struct ms_err *err);
void memory_free(void *memory, size_t bytes); /* NULL allowed */

/* Neither measured nor limited: more than any job needs. Nothing left is 0, which is less. */
#define MEMORY_UNKNOWN UINT64_MAX

/* Bytes that this host can still give: MemAvailable, or what is left below the limits of its
 * cgroups (of either hierarchy, and of those above) where that is less. Page cache is left, here as
 * there, for the kernel gives it back. MEMORY_UNKNOWN where neither can be read. */
uint64_t memory_available(void);

/* For that, and its test: best, or what the limits of the cgroups in files leave where that is
 * less.
 */
uint64_t memory_left(const struct cgroup_files *files, uint64_t best);

/* "2.61 GB" into buf; returns buf. Decimal units. */
const char *memory_format(uint64_t bytes, char *buf, size_t size);

#endif
