/* targets.c - labels that users wrote: are they classes, and how many? */
#include "libworker/data/targets.h"

#include "proto/limits.h"

int targets_check_label(struct targets_range *range, int64_t row, int64_t label, struct ms_err *err)
{
    const int64_t most = range->classes > 0 ? range->classes : MS_CLASSES_MAX;
    if (label < 0 || label >= most) {
        return ms_fail(
            err, MS_E_INVALID, "%.160s: row %lld has label %lld; %s classes are 0 to %lld",
            range->name, (long long)row, (long long)label,
            range->classes > 0 ? "the job's (dataset.classes)" : "at most", (long long)most - 1);
    }
    range->largest = label > range->largest ? label : range->largest;
    return MS_OK;
}

int64_t targets_classes(const struct targets_range *range)
{
    return range->classes > 0 ? range->classes : range->largest + 1;
}
