/* sum.h - XXH3-128 of many bytes, as hex: tells damage, at the speed of memory; no seal */
#ifndef SUM_H
#define SUM_H

#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

enum { SUM_BYTES = 16, SUM_HEX = 2 * SUM_BYTES + 1 };

struct sum; /* one in the making; not shared between threads */

struct sum *sum_create(void);    /* owned; NULL without memory */
void sum_destroy(struct sum *s); /* NULL allowed */
void sum_add(struct sum *s, const void *bytes, size_t size);
/* Of what was added until now, as `xxhsum -H2` prints it. */
void sum_hex(const struct sum *s, char ret[SUM_HEX]);
void sum_bytes(const struct sum *s, uint8_t ret[SUM_BYTES]); /* the same, not as text */
void sum_bytes_hex(const uint8_t bytes[SUM_BYTES], char ret[SUM_HEX]);

/* Of an open file, from its first byte to its last; its size. path names it in errors. */
int sum_file(int fd, const char *path, uint64_t *ret_size, char ret[SUM_HEX], struct ms_err *err);

#endif
