/* pool.h - threads that share the items of a piece of work
 *
 * Which thread does which item is left to chance; what it does may depend on the item alone. The
 * caller is one of the threads. */
#ifndef DATA_POOL_H
#define DATA_POOL_H

#include "proto/err.h"

#include <stdint.h>

struct pool;

/* Item `i` by thread `thread` (0: the caller). < 0 ends the work. */
typedef int pool_work(void *arg, int thread, int64_t i, struct ms_err *err);

/* threads: 1 and more. Returns owned. */
int pool_create(int threads, struct pool **ret, struct ms_err *err);
void pool_destroy(struct pool *pool); /* joins them; NULL allowed */

/* Items 0 to n - 1. Fails as the first item that fails: which that is, too, does not depend on the
 * threads. */
int pool_run(struct pool *pool, int64_t n, pool_work *work, void *arg, struct ms_err *err);

#endif
