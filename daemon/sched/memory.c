/* memory.c - memory for decisions: a reserve that is spent when the system has none left */
#include "daemon/sched/memory.h"

#include "proto/limits.h"

#include <stdlib.h>

static void *reserve;
static int is_wanted; /* a scheduler lives: an empty reserve was spent */

int memory_reserve(void)
{
    is_wanted = 1;
    if (reserve == NULL) {
        reserve = malloc(MS_MEMORY_RESERVE); /* never touched: it costs address space, no memory */
    }
    return reserve != NULL;
}

void memory_release(void)
{
    free(reserve);
    reserve = NULL;
    is_wanted = 0;
}

int memory_is_spent(void)
{
    return is_wanted && reserve == NULL;
}

int memory_spend(void)
{
    int had = reserve != NULL;
    free(reserve);
    reserve = NULL;
    return had;
}

void *memory_take(size_t bytes)
{
    void *p = calloc(1, bytes);
    if (p == NULL && memory_spend()) {
        p = calloc(1, bytes);
    }
    if (p == NULL) {
        abort();
    }
    return p;
}

void *memory_resize(void *p, size_t bytes)
{
    void *larger = realloc(p, bytes);
    if (larger == NULL && memory_spend()) {
        larger = realloc(p, bytes);
    }
    if (larger == NULL) {
        abort();
    }
    return larger;
}
