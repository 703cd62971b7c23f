/* spec_text.h - lines of a plan's text that are always the same, for who writes and who reads it */
#ifndef PLAN_SPEC_TEXT_H
#define PLAN_SPEC_TEXT_H

#include "proto/dtype.h"

#define SPEC_VERSION   "msched plan 1"
#define SPEC_BITS      "section bits"
#define SPEC_DENORMALS "denormals zero"
/* Over ranks, as kernel_sum_tree and every transport evaluate it. */
#define SPEC_SUM_TREE "sum_tree T(lo,hi)=T(lo,mid)+T(mid,hi) mid=lo+(hi-lo+1)/2"
#define SPEC_MEMORY   "section memory"
#define SPEC_END      "end"

/* "fp32"; NULL: it is no precision. */
const char *spec_precision_name(enum ms_dtype dtype);

#endif
