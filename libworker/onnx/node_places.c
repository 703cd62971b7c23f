/* node_places.c - ops on whole numbers that are places in what a layer makes
 *
 * PyTorch's newer exporter writes as_strided, which channels-last networks come to, as a Gather of
 * all values one behind the other by
 *
 *     Range(0, n) c + Range(0, c) turned + ...
 *
 * Such numbers are the sum of each dimension's place times its step; where the steps are those of
 * all values in some order of dimensions, nothing is gathered, and the values are seen in that
 * shape. */
#include "libworker/onnx/import.h"

#include <string.h>

/* ---- ranges ---- */

/* A whole number, or a size that only the data say; -1: none. */
static int read_bound(struct importer *m, const MsOnnx__Node *node, size_t i, int64_t *ret)
{
    double number = 0;
    int index = import_need(m, node, i);
    if (index < 0) {
        return index;
    }
    const struct value *value = import_value(m, index);
    if (value->kind == VALUE_INTS && value->n == 1) {
        *ret = value->ints[0];
        return MS_OK;
    }
    int rc = import_number(m, index, &number);
    *ret = number >= 0 && number <= INT32_MAX ? (int64_t)number : -1;
    return rc;
}

/* Dimensions behind the first one, perhaps none: where an Unsqueeze puts new ones. */
static int bind_axes(struct importer *m, const MsOnnx__Node *node, int64_t first, int64_t end)
{
    int64_t axes[ONNX_DIMS_MAX];
    for (int64_t i = first; i < end; i++) {
        axes[i - first] = i;
    }
    return import_bind_ints(m, node, axes, (int)(end - first), 0);
}

static int import_range(struct importer *m, const MsOnnx__Node *node)
{
    int64_t of[3] = {0};
    struct value range = {.kind = VALUE_RANGE, .n_dims = 1, .expr = NO_VALUE};
    int is_whole = 1;
    for (size_t i = 0; i < 3; i++) {
        int rc = read_bound(m, node, i, &of[i]);
        is_whole &= rc == MS_OK && import_value(m, import_input(m, node, i))->kind == VALUE_INTS;
        if (rc < 0) {
            return rc;
        }
    }
    if (of[0] >= 1 && of[1] >= of[0] && of[1] <= ONNX_DIMS_MAX && of[2] == 1 && is_whole) {
        return bind_axes(m, node, of[0], of[1]);
    }
    /* sizes that are multiples of the batch are negative, and have a quotient by themselves */
    const int has_end = (of[1] >= 1 && of[1] <= INT32_MAX) ||
                        (of[1] < -INT32_MAX && size_over(of[1], SIZE_BATCH) != SIZE_UNKNOWN);
    if (of[0] != 0 || !has_end || of[2] != 1) {
        return import_fail(m, "a range that is not from 0 in steps of 1, to what the file says");
    }
    range.dim[0] = of[1];
    range.ints[0] = 1;
    return import_bind(m, node, 0, &range);
}

/* ---- what is calculated with them ---- */

static int times_number(struct importer *m, const MsOnnx__Node *node, int range, int number)
{
    struct value places = *import_value(m, range);
    double factor = 0;
    int rc = import_number(m, number, &factor);
    for (int i = 0; i < places.n_dims && rc == MS_OK; i++) {
        const int64_t by = factor >= 0 && factor <= INT32_MAX ? (int64_t)factor : -1;
        places.ints[i] = size_times(places.ints[i], by);
        if (by < 0 || (double)by != factor || places.ints[i] < 0) {
            rc = import_fail(m, "places times %g", factor);
        }
    }
    return rc < 0 ? rc : import_bind(m, node, 0, &places);
}

static int plus_none(struct importer *m, const MsOnnx__Node *node, int range, int number)
{
    double more = 0;
    int rc = import_number(m, number, &more);
    if (rc == MS_OK && more != 0) {
        rc = import_fail(m, "places from %g on: all values of a layer are taken, or none", more);
    }
    return rc < 0 ? rc : import_bind(m, node, 0, import_value(m, range));
}

/* Each dimension is one's alone. */
static int plus_places(struct importer *m, const MsOnnx__Node *node, int a, int b)
{
    const struct value *x = import_value(m, a);
    const struct value *y = import_value(m, b);
    const int n = x->n_dims > y->n_dims ? x->n_dims : y->n_dims;
    struct value sum = *x;
    sum.n_dims = n;
    for (int i = 0; i < n; i++) {
        const int at_x = x->n_dims - n + i;
        const int at_y = y->n_dims - n + i;
        const int has_x = at_x >= 0 && x->dim[at_x] != 1;
        const int has_y = at_y >= 0 && y->dim[at_y] != 1;
        if (has_x && has_y) {
            return import_fail(m, "places that are added up along one dimension");
        }
        sum.dim[i] = has_x ? x->dim[at_x] : has_y ? y->dim[at_y] : 1;
        sum.ints[i] = has_x ? x->ints[at_x] : has_y ? y->ints[at_y] : 0;
    }
    return import_bind(m, node, 0, &sum);
}

int import_binary_places(struct importer *m, const MsOnnx__Node *node, enum fn fn, int a, int b)
{
    const int is_a = import_value(m, a)->kind == VALUE_RANGE;
    const int is_b = import_value(m, b)->kind == VALUE_RANGE;
    const int range = is_a ? a : b;
    const int other = is_a ? b : a;
    if (is_a && is_b && fn == FN_ADD) {
        return plus_places(m, node, a, b);
    }
    if ((is_a && is_b) || (fn != FN_ADD && fn != FN_MUL) || !import_is_number(m, other)) {
        return import_fail(
            m, "places are multiplied by a number and added up, and nothing else; is it an "
               "adaptive pooling whose output does not divide its input? a pooling "
               "with kernel and stride is read");
    }
    return fn == FN_MUL ? times_number(m, node, range, other) : plus_none(m, node, range, other);
}

int import_unsqueeze_places(struct importer *m, const MsOnnx__Node *node, int x, unsigned axes,
                            int n_dims)
{
    const struct value range = *import_value(m, x);
    struct value places = range;
    int n = 0;
    places.n_dims = n_dims;
    for (int i = 0; i < n_dims; i++) {
        const int is_new = (axes >> i & 1) != 0 || n == range.n_dims;
        places.dim[i] = is_new ? 1 : range.dim[n];
        places.ints[i] = is_new ? 0 : range.ints[n];
        n += !is_new;
    }
    return n == range.n_dims ? import_bind(m, node, 0, &places)
                             : import_fail(m, "axes that its input has not");
}

/* ---- what is seen by them ---- */

/* Dimensions from the one with the largest step on, those of 1 behind them; 0: the steps are not
 * those of `count` values. */
static int sort_dims(const struct value *places, int64_t count, int64_t ret[ONNX_DIMS_MAX])
{
    const int n = places->n_dims;
    int64_t expected = 1;
    int first = n;
    unsigned seen = 0;
    for (int i = n - 1; i >= 0; i--) {
        if (places->dim[i] == 1) {
            ret[--first] = i;
            seen |= 1U << i;
        }
    }
    for (int found = 1; found;) {
        found = 0;
        for (int i = 0; i < n && !found; i++) {
            if ((seen >> i & 1) == 0 && places->ints[i] == expected) {
                ret[--first] = i;
                seen |= 1U << i;
                expected = size_times(expected, places->dim[i]);
                found = 1;
            }
        }
    }
    return first == 0 && expected == count && count != SIZE_UNKNOWN;
}

int import_see_places(struct importer *m, const MsOnnx__Node *node, int x, int at)
{
    const struct value places = *import_value(m, at);
    int64_t order[ONNX_DIMS_MAX];
    int64_t sizes[ONNX_DIMS_MAX];
    int64_t perm[ONNX_DIMS_MAX];
    int rc = import_make(m, x);
    if (rc < 0) {
        return rc;
    }
    struct value value = *import_value(m, x);
    struct view view = value.view;
    int is = view.n_dims == 1 && sort_dims(&places, view_dim(&view, 0), order);
    for (int i = 0; i < places.n_dims && is; i++) {
        sizes[i] = places.dim[order[i]];
        perm[order[i]] = i;
    }
    is = is && view_reshape(&view, sizes, places.n_dims) == 0 &&
         view_transpose(&view, perm, places.n_dims) == 0;
    if (!is) {
        return import_fail(m, "values that are taken one by one, and are not all of a layer's, "
                              "each once, in an order of its dimensions");
    }
    import_set_view(&value, &view);
    value.expr = NO_VALUE;
    return import_bind(m, node, 0, &value);
}

const struct node_op place_ops[] = {
    {"Range", 3, import_range, 0},
    {NULL, 0, NULL, 0},
};
