/* rates.h - what a core of this host computes and moves a second */
#ifndef CLI_RATES_H
#define CLI_RATES_H

#include "libworker/graph/roofline.h"
#include "proto/err.h"

/* Measures both on the calling thread, which takes some tens of milliseconds: the fastest of
 * several runs of each, for other work on the host only ever adds. MS_E_NOMEM. */
int cli_rates_measure(struct roofline *ret, struct ms_err *err);

#endif
