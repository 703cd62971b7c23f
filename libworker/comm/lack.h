/* lack.h - what this process or its system has too little of, by errno */
#ifndef LACK_H
#define LACK_H

#include "proto/err.h"

/* MS_E_NOMEM with "<what>: <errno>", and what helps; 0 where error is none of these, and err and
 * errno are as they were. */
int lack_found(struct ms_err *err, int error, const char *what);
/* Is it one of these? */
int lack_is(int error);
/* " (raise ..)", or "". */
const char *lack_help(int error);

#endif
