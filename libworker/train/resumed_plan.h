/* resumed_plan.h - the plan of a training that goes on: its checkpoint's, however it is evaluated
 */
#ifndef RESUMED_PLAN_H
#define RESUMED_PLAN_H

#include "libworker/train/train_impl.h"

/* The plan of the newest checkpoint from which a job with the key `resume` goes on, with an
 * evaluation chosen for this job: malloc'ed. NULL, and no error: this host has none. The replica
 * has its graphs. MS_E_INVALID, MS_E_UNSUPPORTED: this machine cannot obey it. */
int resumed_plan(struct train *train, char **ret_text, struct ms_err *err);
/* Do both texts have the same training? */
int resumed_plan_is_same(const char *a, const char *b);

#endif
