/* targets.c - labels that users wrote: are they classes, and how many? */
#include "libworker/data/targets.h"

#include "proto/limits.h"

#include <stdlib.h>

int data_is_ignored(const struct data_ignored *ignored, int64_t label)
{
    return ignored->is_there && label == ignored->label;
}

int targets_check_label(struct targets_range *range, int64_t row, int64_t label, struct ms_err *err)
{
    const int64_t most = range->classes > 0 ? range->classes : MS_CLASSES_MAX;
    if (data_is_ignored(&range->ignored, label)) {
        return MS_OK;
    }
    if (label < 0) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s: row %lld has label %lld; classes are 0, 1, 2 ..., and one label "
                       "that does not count is named: ignored_label: %lld",
                       range->name, (long long)row, (long long)label, (long long)label);
    }
    if (label >= most && range->classes > 0) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s: row %lld has label %lld, and the job has %lld classes, 0 to %lld: "
                       "those that it gives (dataset.classes), or that the training's labels have; "
                       "give dataset.classes: %lld if there are more",
                       range->name, (long long)row, (long long)label, (long long)most,
                       (long long)most - 1, (long long)label + 1);
    }
    if (label >= most) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s: row %lld has label %lld; at most classes are 0 to %lld",
                       range->name, (long long)row, (long long)label, (long long)most - 1);
    }
    range->largest = label > range->largest ? label : range->largest;
    return MS_OK;
}

int64_t targets_classes(const struct targets_range *range)
{
    return range->classes > 0 ? range->classes : range->largest + 1;
}

/* ---- labels of many rows ---- */

static int item_of(int64_t largest)
{
    return largest < 0 ? 4 : largest <= UINT8_MAX ? 1 : largest <= UINT16_MAX ? 2 : 4;
}

int label_list_make(struct label_list *ret, int64_t rows, int64_t classes)
{
    *ret = (struct label_list){.rows = rows, .item = item_of(classes > 0 ? classes - 1 : 0)};
    ret->bytes = malloc((size_t)label_list_bytes(ret));
    return ret->bytes != NULL ? 0 : -1;
}

void label_list_free(struct label_list *list)
{
    free(list->bytes);
    list->bytes = NULL;
}

int64_t label_list_bytes(const struct label_list *list)
{
    return list->rows * list->item;
}

int32_t label_list_get(const struct label_list *list, int64_t row)
{
    return list->item == 1   ? ((const uint8_t *)list->bytes)[row]
           : list->item == 2 ? ((const uint16_t *)list->bytes)[row]
                             : ((const int32_t *)list->bytes)[row];
}

static void put(struct label_list *list, int64_t row, int32_t label)
{
    if (list->item == 1) {
        ((uint8_t *)list->bytes)[row] = (uint8_t)label;
    } else if (list->item == 2) {
        ((uint16_t *)list->bytes)[row] = (uint16_t)label;
    } else {
        ((int32_t *)list->bytes)[row] = label;
    }
}

int label_list_put(struct label_list *list, int64_t row, int32_t label)
{
    if (item_of(label) > list->item) {
        struct label_list wider = {.rows = list->rows, .item = item_of(label)};
        wider.bytes = malloc((size_t)label_list_bytes(&wider));
        if (wider.bytes == NULL) {
            return -1;
        }
        for (int64_t i = 0; i < row; i++) {
            put(&wider, i, label_list_get(list, i));
        }
        label_list_free(list);
        *list = wider;
    }
    put(list, row, label);
    return 0;
}
