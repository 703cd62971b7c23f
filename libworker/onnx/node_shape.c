/* node_shape.c - ops that see what a layer makes in another shape, and means */
#include "libworker/onnx/import.h"

#include <string.h>

/* ---- dimensions ---- */

/* Value x with that view, as output 0; (n, values) are rows from there on. */
static int bind_view(struct importer *m, const MsOnnx__Node *node, int x, const struct view *view)
{
    struct value value = *import_value(m, x);
    json_t *norm = value.norm;
    const struct view_atom *first = NULL;
    import_set_view(&value, view);
    value.expr = NO_VALUE;
    value.dense = NULL;
    int rc = import_bind(m, node, 0, &value);
    if (rc == MS_OK && norm != NULL) {
        import_keep_norm(m, node, norm, value.gamma);
    }
    const int n_first = view->n_dims == 2 ? view_atoms(view, 0, &first) : 2;
    const int is_one = n_first == 0 && view->size[AXIS_SAMPLE] == 1;
    const int is_rows = is_one || (n_first == 1 && first->axis == AXIS_SAMPLE &&
                                   first->size == view->size[AXIS_SAMPLE]);
    rc = rc == MS_OK && is_rows ? import_as_rows(m, (int)m->n_values - 1) : rc;
    return rc < 0 ? rc : MS_OK;
}

static int turn_value(struct importer *m, const MsOnnx__Node *node, int x,
                      const MsOnnx__Attribute *perm)
{
    static const int64_t reversed[ONNX_DIMS_MAX] = {7, 6, 5, 4, 3, 2, 1, 0};
    int rc = import_make(m, x);
    if (rc < 0) {
        return rc;
    }
    struct view view = import_value(m, x)->view;
    const int n = view.n_dims;
    const int is = perm != NULL ? view_transpose(&view, perm->ints, (int)perm->n_ints)
                                : view_transpose(&view, reversed + ONNX_DIMS_MAX - n, n);
    return is < 0 ? import_fail(m, "its perm is no order of %d dimensions", n)
                  : bind_view(m, node, x, &view);
}

static int turn_ints(struct importer *m, const MsOnnx__Node *node, const struct value *x)
{
    struct value turned = *x;
    for (int i = 0; i < x->n; i++) {
        turned.ints[i % x->dim[1] * x->dim[0] + i / x->dim[1]] = x->ints[i];
    }
    turned.dim[0] = x->dim[1];
    turned.dim[1] = x->dim[0];
    return import_bind(m, node, 0, &turned);
}

/* Of a weight, for the MatMul that reads it. */
static int import_transpose(struct importer *m, const MsOnnx__Node *node)
{
    int x = import_need(m, node, 0);
    if (x < 0) {
        return x;
    }
    struct value value = *import_value(m, x);
    const MsOnnx__Attribute *at = attribute_find(node, "perm");
    if (value.kind == VALUE_LAYER) {
        return turn_value(m, node, x, at);
    }
    if (value.kind == VALUE_INTS && value.n_dims == 2 && value.n == value.dim[0] * value.dim[1]) {
        return turn_ints(m, node, &value);
    }
    if (value.kind != VALUE_PARAM || value.n_dims != 2 || value.is_transposed ||
        (at != NULL && (at->n_ints != 2 || at->ints[0] != 1 || at->ints[1] != 0))) {
        return import_fail(m, "dimensions keep their order here, but of what the data make, and "
                              "for the weight of a MatMul");
    }
    value.is_transposed = 1;
    return import_bind(m, node, 0, &value);
}

static int import_flatten(struct importer *m, const MsOnnx__Node *node)
{
    int64_t axis = 1;
    int x = import_need(m, node, 0);
    int rc = x < 0 ? x : attribute_int(m, node, "axis", 1, &axis);
    if (rc < 0) {
        return rc;
    }
    if (import_value(m, x)->kind != VALUE_LAYER ||
        import_axis(axis, import_value(m, x)->n_dims) != 1) {
        return import_fail(m, "rows are made of each sample, behind axis 1");
    }
    rc = import_make(m, x);
    struct view view = import_value(m, x)->view;
    view_flatten(&view);
    return rc < 0 ? rc : bind_view(m, node, x, &view);
}

/* Whole numbers in rows, as an exporter turns the pads of an F.pad around. */
static int bind_rows_of_ints(struct importer *m, const MsOnnx__Node *node, const struct value *x,
                             int64_t rows, int64_t columns)
{
    struct value value = *x;
    value.n_dims = 2;
    value.dim[0] = rows;
    value.dim[1] = columns;
    return import_bind(m, node, 0, &value);
}

static int reshape_ints(struct importer *m, const MsOnnx__Node *node, const struct value *x,
                        const struct value *shape)
{
    const int64_t columns = shape->n == 2 ? shape->ints[1] : 0;
    if (shape->n == 2 && shape->ints[0] == -1 && columns > 0 && x->n > 0 && x->n % columns == 0) {
        return bind_rows_of_ints(m, node, x, x->n / columns, columns);
    }
    const int fits = shape->n == 0
                         ? x->n == 1
                         : shape->n == 1 && (shape->ints[0] == -1 || shape->ints[0] == x->n);
    return fits ? import_bind_ints(m, node, x->ints, x->n, shape->n == 0)
                : import_fail(m, "a shape in another shape");
}

static int import_reshape(struct importer *m, const MsOnnx__Node *node)
{
    const struct value *shape = NULL;
    int64_t sizes[INTS_MAX];
    int64_t has_zeros = 0;
    int x = import_need(m, node, 0);
    int rc = x < 0 ? x : attribute_int(m, node, "allowzero", 0, &has_zeros);
    rc = rc < 0 ? rc : import_ints(m, import_input(m, node, 1), &shape);
    for (int i = 0; rc == MS_OK && has_zeros != 0 && i < shape->n; i++) {
        rc = shape->ints[i] != 0 ? MS_OK : import_fail(m, "a shape of no values: it has allowzero");
    }
    if (rc < 0) {
        return rc;
    }
    if (import_value(m, x)->kind == VALUE_PARAM) {
        return import_fail(m, "weights keep their shape");
    }
    const struct value *value = import_value(m, x);
    if (value->kind == VALUE_INTS) {
        return reshape_ints(m, node, value, shape);
    }
    if (value->kind == VALUE_REAL) {
        return import_bind_filled(m, node, value, shape);
    }
    if (value->kind != VALUE_LAYER) {
        return import_fail(m, value->kind == VALUE_NOISE
                                  ? "what is drawn at random keeps its shape"
                                  : "its input is nothing that is made of the data");
    }
    const int n = shape->n;
    memcpy(sizes, shape->ints, sizeof(sizes));
    rc = import_make(m, x);
    if (rc < 0) {
        return rc;
    }
    struct view view = import_value(m, x)->view;
    return view_reshape(&view, sizes, n) < 0
               ? import_fail(m,
                             "%d dimensions in a shape of %d: sizes that are not known, or that "
                             "cut others in parts that are none",
                             view.n_dims, n)
               : bind_view(m, node, x, &view);
}

/* Axes: an input from opset 13 on, an attribute before. */
static int read_axes(struct importer *m, const MsOnnx__Node *node, int n_dims, unsigned *ret)
{
    const MsOnnx__Attribute *at = attribute_find(node, "axes");
    const struct value *axes = NULL;
    int rc = MS_OK;
    if (at == NULL) {
        int index = import_input(m, node, 1);
        rc = import_ints(m, index, &axes);
    }
    const int64_t *of = at != NULL ? at->ints : axes != NULL ? axes->ints : NULL;
    const size_t n = at != NULL ? at->n_ints : axes != NULL ? (size_t)axes->n : 0;
    *ret = 0;
    for (size_t i = 0; i < n && rc == MS_OK; i++) {
        const int axis = import_axis(of[i], n_dims);
        if (axis < 0) {
            return import_fail(m, "an axis that its input has not");
        }
        *ret |= 1U << axis;
    }
    return rc;
}

/* How many they are. */
static int count_axes(struct importer *m, const MsOnnx__Node *node, int *ret)
{
    const MsOnnx__Attribute *at = attribute_find(node, "axes");
    const struct value *axes = NULL;
    int rc = at != NULL ? MS_OK : import_ints(m, import_input(m, node, 1), &axes);
    *ret = at != NULL     ? (int)(at->n_ints < ONNX_DIMS_MAX ? at->n_ints : ONNX_DIMS_MAX)
           : axes != NULL ? axes->n
                          : 0;
    return rc;
}

/* Dimensions of 1 go. */
static int squeeze_value(struct importer *m, const MsOnnx__Node *node, int x, unsigned axes)
{
    int to[ONNX_DIMS_MAX] = {0};
    int n = 0;
    int rc = import_make(m, x);
    if (rc < 0) {
        return rc;
    }
    struct view view = import_value(m, x)->view;
    for (int i = 0; i < view.n_dims; i++) {
        const struct view_atom *atom = NULL;
        const int goes = (axes >> i & 1) != 0;
        if (goes && view_atoms(&view, i, &atom) > 0) {
            return import_fail(m, "axis %d has more than one element", i);
        }
        to[i] = n;
        n += !goes;
    }
    for (int i = 0; i < view.n_atoms; i++) {
        view.atom[i].dim = to[view.atom[i].dim];
    }
    view.n_dims = n;
    return n < 1 ? import_fail(m, "nothing is left of its shape") : bind_view(m, node, x, &view);
}

static int import_squeeze(struct importer *m, const MsOnnx__Node *node)
{
    unsigned axes = 0;
    int x = import_need(m, node, 0);
    if (x < 0) {
        return x;
    }
    if (import_value(m, x)->kind == VALUE_INTS) {
        const struct value ints = *import_value(m, x);
        return ints.n == 1 ? import_bind_ints(m, node, ints.ints, 1, 1)
                           : import_fail(m, "a shape in another shape");
    }
    int rc = read_axes(m, node, import_value(m, x)->n_dims, &axes);
    const enum value_kind kind = import_value(m, x)->kind;
    if (rc == MS_OK && kind == VALUE_STATES && axes == 1 && import_value(m, x)->n == 1) {
        return import_take_state(m, node, x, 0);
    }
    if (rc == MS_OK && kind == VALUE_REAL) {
        rc = import_fail(m, "its input is numbers of the file; PyTorch's newer exporter writes an "
                            "nn.RNN so, token by token: export it with dynamo=False");
    } else if (rc == MS_OK && kind != VALUE_LAYER) {
        rc = import_fail(m, "its input is nothing that is made of the data");
    }
    return rc < 0 ? rc : squeeze_value(m, node, x, axes);
}

/* A matrix (out, channels) that is trained, as the kernel (out, channels, 1, 1) of a Conv. */
static int bind_kernel(struct importer *m, const MsOnnx__Node *node, int x)
{
    struct value kernel = *import_value(m, x);
    kernel.n_dims = 4;
    kernel.dim[2] = 1;
    kernel.dim[3] = 1;
    return import_bind(m, node, 0, &kernel);
}

/* Numbers that are all one, with dimensions of 1 in these places. */
static int unsqueeze_number(struct importer *m, const MsOnnx__Node *node, int x, unsigned axes,
                            int n_dims)
{
    const struct value number = *import_value(m, x);
    struct value wide = number;
    int n = 0;
    for (int i = 0; i < n_dims; i++) {
        const int is_new = (axes >> i & 1) != 0 || n == number.n_dims;
        wide.dim[i] = is_new ? 1 : number.dim[n];
        n += !is_new;
    }
    wide.n_dims = n_dims;
    return n == number.n_dims ? import_bind(m, node, 0, &wide)
                              : import_fail(m, "axes that its input has not");
}

/* A parameter of each channel as (c, 1, 1), or as it is: a part of a group norm. */
static int bind_of_channels(struct importer *m, const MsOnnx__Node *node, int x, int n_dims)
{
    struct value part = *import_value(m, x);
    for (int i = 1; i < n_dims; i++) {
        part.dim[i] = 1;
    }
    part.n_dims = n_dims;
    return import_bind(m, node, 0, &part);
}

/* Dimensions of 1 come in these places. */
static int unsqueeze_value(struct importer *m, const MsOnnx__Node *node, int x, unsigned axes,
                           int n_dims)
{
    int rc = import_make(m, x);
    if (rc < 0) {
        return rc;
    }
    struct view view = import_value(m, x)->view;
    int to[ONNX_DIMS_MAX] = {0};
    int n = 0;
    for (int i = 0; i < n_dims; i++) {
        if ((axes >> i & 1) == 0 && n < view.n_dims) {
            to[n++] = i;
        }
    }
    if (n != view.n_dims) {
        return import_fail(m, "axes that its input has not");
    }
    for (int i = 0; i < view.n_atoms; i++) {
        view.atom[i].dim = to[view.atom[i].dim];
    }
    view.n_dims = n_dims;
    return bind_view(m, node, x, &view);
}

static int import_unsqueeze(struct importer *m, const MsOnnx__Node *node)
{
    unsigned axes = 0;
    int x = import_need(m, node, 0);
    if (x < 0) {
        return x;
    }
    if (import_value(m, x)->kind == VALUE_INTS && import_value(m, x)->n_dims == 0) {
        const int64_t size = import_value(m, x)->ints[0];
        return import_bind_ints(m, node, &size, 1, 0);
    }
    int n_axes = 0;
    int rc = count_axes(m, node, &n_axes);
    const int n_dims = import_value(m, x)->n_dims + n_axes;
    if (rc == MS_OK && n_dims > ONNX_DIMS_MAX) {
        rc = import_fail(m, "%d dimensions", n_dims);
    }
    rc = rc < 0 ? rc : read_axes(m, node, n_dims, &axes);
    if (rc < 0) {
        return rc;
    }
    const struct value *value = import_value(m, x);
    if (value->kind == VALUE_LAYER) {
        return unsqueeze_value(m, node, x, axes, n_dims);
    }
    if (value->kind == VALUE_REAL) {
        return unsqueeze_number(m, node, x, axes, n_dims);
    }
    const int is_param = value->kind == VALUE_PARAM && value->n_dims == value->tensor->n_dims;
    if (is_param && value->n_dims == 1 && (axes == 6 || n_axes == 0)) {
        return bind_of_channels(m, node, x, n_dims);
    }
    if (value->kind == VALUE_PIECES || (is_param && axes == 1)) {
        return import_widen_pieces(m, node, x, axes);
    }
    if (value->kind == VALUE_RANGE) {
        return import_unsqueeze_places(m, node, x, axes, n_dims);
    }
    if (value->n_dims == 2 && axes == (1U << 2 | 1U << 3) && is_param && !value->is_transposed) {
        return bind_kernel(m, node, x);
    }
    return import_fail(m, "only sizes and what the data make get a dimension more, and matrices a "
                          "height and a width of 1");
}

/* ---- means over height and width ---- */

static json_t *whole_window(const struct value *x)
{
    return json_pack("{s:[I,I], s:[i,i]}", "kernel", (json_int_t)x->dim[2], (json_int_t)x->dim[3],
                     "stride", 1, 1);
}

/* keepdims: (n, c, 1, 1), which is rows here where nothing reads it as an image. */
static int bind_mean(struct importer *m, const MsOnnx__Node *node, int x, int keepdims)
{
    struct value made;
    const int is_image = keepdims && json_object_get(m->readers, node->output[0]) != NULL;
    if (is_image && (import_value(m, x)->dim[2] < 0 || import_value(m, x)->dim[3] < 0)) {
        return import_fail(m,
                           "what reads this mean reads it as an image, and its size is not in the "
                           "file: export it with height and width");
    }
    int rc = is_image ? import_layer(m, "avg_pool", "", whole_window(import_value(m, x)), x, &made)
                      : import_layer(m, "global_avg_pool", "", json_object(), x, &made);
    if (rc < 0) {
        return rc;
    }
    const int64_t size[VIEW_AXES] = {made.view.size[AXIS_SAMPLE], made.view.size[AXIS_CHANNEL], 1,
                                     1};
    struct view view = view_whole(is_image ? VIEW_IMAGES : VIEW_ROWS, size);
    view.n_dims = keepdims ? 4 : 2;
    import_set_view(&made, &view);
    return import_bind(m, node, 0, &made);
}

static int import_global_pool(struct importer *m, const MsOnnx__Node *node)
{
    int x = import_image(m, node, 0);
    return x < 0 ? x : bind_mean(m, node, x, 1);
}

static int import_mean(struct importer *m, const MsOnnx__Node *node)
{
    unsigned axes = 0;
    int64_t keepdims = 1;
    int x = import_image(m, node, 0);
    int rc = x < 0 ? x : read_axes(m, node, 4, &axes);
    rc = rc < 0 ? rc : attribute_int(m, node, "keepdims", 1, &keepdims);
    if (rc < 0) {
        return rc;
    }
    return axes == (1U << 2 | 1U << 3) ? bind_mean(m, node, x, keepdims != 0)
                                       : import_fail(m, "means are over height and width, both");
}

const struct node_op shape_ops[] = {
    {"Transpose", 1, import_transpose, 0}, {"Flatten", 1, import_flatten, 0},
    {"Reshape", 2, import_reshape, 0},     {"Squeeze", 1, import_squeeze, 0},
    {"Unsqueeze", 1, import_unsqueeze, 0}, {"GlobalAveragePool", 1, import_global_pool, 0},
    {"ReduceMean", 1, import_mean, 0},     {NULL, 0, NULL, 0},
};
