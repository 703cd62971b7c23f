/* straight.h - a file written from its first byte to its last, past the page cache where it can be
 *
 * Who fills the room that is lent pays no copy of it, and no pages that push out others. The digest
 * is made while the bytes are in the processor's cache. */
#ifndef STRAIGHT_H
#define STRAIGHT_H

#include "libworker/data/sum.h"
#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

struct straight;

/* Into a fresh file, whose path errors name; both borrowed for the life. largest, total: bytes of a
 * piece, and of all of them. */
int straight_create(int fd, const char *path, size_t largest, uint64_t total, struct straight **ret,
                    struct ms_err *err);
void straight_destroy(struct straight *straight); /* NULL allowed */

/* Where the next piece is to be put, of largest bytes, aligned as the bytes before it leave it.
 * Borrowed until straight_add. */
void *straight_room(struct straight *straight);
/* size bytes are there. */
int straight_add(struct straight *straight, size_t size, struct ms_err *err);
/* What is left. Then all is written, and nothing synced. */
int straight_end(struct straight *straight, struct ms_err *err);
/* Of all that was added. */
uint64_t straight_size(const struct straight *straight);
void straight_sum(const struct straight *straight, char ret[SUM_HEX]);

#endif
