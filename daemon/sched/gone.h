/* gone.h - which lost or left nodes are still named: so many, and whose go first
 *
 *     principal -> his nodes that are gone, the oldest first
 *
 * Where there are too many, the principal who has the most loses his oldest: whoever registers and
 * leaves again and again takes no node of others out of the list. */
#ifndef SCHED_GONE_H
#define SCHED_GONE_H

#include "proto/err.h"

struct sched;
struct node;

/* A node became LOST or LEFT: of the principal who had registered it. May forget another. */
void gone_add(struct sched *s, struct node *node);
void gone_remove(struct sched *s, struct node *node); /* not there: nothing */
void gone_fini(struct sched *s);
/* What principals have adds up to what is kept. */
int gone_check(const struct sched *s, struct ms_err *err);

#endif
