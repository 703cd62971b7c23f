/* plan_given.h - the plan that a worker of a dynamic cluster brings (--plan FILE) */
#ifndef PLAN_GIVEN_H
#define PLAN_GIVEN_H

#include "proto/err.h"

/* The text of the file, malloc'ed. MS_E_INVALID, naming file and line: it is no plan. Whether it is
 * one of the job its ranks say. */
int plan_given_read(const char *path, char **ret, struct ms_err *err);

#endif
