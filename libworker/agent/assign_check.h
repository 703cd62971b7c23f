/* assign_check.h - is an Assign one that can be carried out? */
#ifndef ASSIGN_CHECK_H
#define ASSIGN_CHECK_H

#include "proto/cluster.pb-c.h"
#include "proto/err.h"

/* Judges all fields of an Assign against each other and against limits.h, before anything of it is
 * taken: who goes on with one that has passed may index members by rank, copy MS_TOKEN_LEN bytes of
 * token, and dial the addresses of the other ranks. 0, or MS_E_PROTOCOL with what is wrong. What
 * the job says is not looked at: job_parse judges that. Any thread. */
int assign_check(const Ms__Assign *assign, struct ms_err *err);

#endif
