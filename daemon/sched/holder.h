/* holder.h - how many nodes each principal has registered just now */
#ifndef SCHED_HOLDER_H
#define SCHED_HOLDER_H

#include "proto/err.h"

#include <stdint.h>

struct sched;

uint32_t holder_count(const struct sched *s, const char *principal);
/* A node of the principal became REGISTERED, or is it no longer. */
void holder_add(struct sched *s, const char *principal);
void holder_remove(struct sched *s, const char *principal);
void holders_fini(struct sched *s);
/* The counts add up to the registered nodes. */
int holders_check(const struct sched *s, struct ms_err *err);

#endif
