/* holder.h - how many nodes each principal has: registered, or expected back */
#ifndef SCHED_HOLDER_H
#define SCHED_HOLDER_H

#include "proto/err.h"

#include <stdint.h>

struct holder;
struct node;
struct sched;

uint32_t holder_count(const struct sched *s, const char *principal);
/* The node is its principal's from now on, if it was not before; or nobody's any more. */
void holder_add(struct sched *s, struct node *node);
void holder_remove(struct sched *s, struct node *node);
void holders_fini(struct sched *s);
/* The counts add up to the nodes that are not gone. */
int holders_check(const struct sched *s, struct ms_err *err);

#endif
