/* node_shape.c - ops on shapes and constants, which are done when the file is read, and those that
 * make rows of images */
#include "libworker/onnx/import.h"

#include <string.h>

static int bind_ints(struct importer *m, const MsOnnx__Node *node, const int64_t *ints, int n,
                     int is_scalar)
{
    struct value value = {
        .kind = VALUE_INTS, .n_dims = is_scalar ? 0 : 1, .expr = NO_VALUE, .n = n};
    value.dim[0] = n;
    memcpy(value.ints, ints, sizeof(ints[0]) * (size_t)n);
    return import_bind(m, node, 0, &value);
}

/* Axis of n_dims, counted from the end where it is negative; -1: there is none. */
static int axis_of(int64_t axis, int n_dims)
{
    axis += axis < 0 ? n_dims : 0;
    return axis >= 0 && axis < n_dims ? (int)axis : -1;
}

/* ---- constants ---- */

static int import_constant(struct importer *m, const MsOnnx__Node *node)
{
    const MsOnnx__Attribute *at = node->n_attribute == 1 ? node->attribute[0] : NULL;
    struct value value = {.kind = VALUE_REAL, .expr = NO_VALUE, .n = 1};
    if (at != NULL && strcmp(at->name, "value") == 0 && at->t != NULL) {
        int rc = import_tensor(m, at->t, &value);
        return rc < 0 ? rc : import_bind(m, node, 0, &value);
    }
    if (at != NULL && strcmp(at->name, "value_float") == 0) {
        value.real = import_real(at->f);
        return import_bind(m, node, 0, &value);
    }
    if (at != NULL && strcmp(at->name, "value_floats") == 0 && at->n_floats == 1) {
        value.n_dims = 1;
        value.dim[0] = 1;
        value.real = import_real(at->floats[0]);
        return import_bind(m, node, 0, &value);
    }
    if (at != NULL && strcmp(at->name, "value_int") == 0) {
        return bind_ints(m, node, &at->i, 1, 1);
    }
    if (at != NULL && strcmp(at->name, "value_ints") == 0 && at->n_ints <= INTS_MAX) {
        return bind_ints(m, node, at->ints, (int)at->n_ints, 0);
    }
    return import_fail(m, "a constant that is no number and no shape");
}

/* All elements of one value, in a shape. */
static int bind_filled(struct importer *m, const MsOnnx__Node *node, const struct value *with,
                       const struct value *shape)
{
    struct value value = *with;
    int64_t count = 1;
    if (shape->n > ONNX_DIMS_MAX) {
        return import_fail(m, "a shape of %d dimensions", shape->n);
    }
    value.n_dims = shape->n;
    for (int i = 0; i < shape->n; i++) {
        value.dim[i] = shape->ints[i];
        count = shape->ints[i] < 0 || shape->ints[i] > INTS_MAX ? INTS_MAX + 1
                : count <= INTS_MAX                             ? count * shape->ints[i]
                                                                : count;
    }
    if (value.kind == VALUE_INTS && (count > INTS_MAX || shape->n > 1)) {
        return import_fail(m, "a constant of whole numbers that is no shape");
    }
    for (int i = 1; value.kind == VALUE_INTS && i < (int)count; i++) {
        value.ints[i] = value.ints[0];
    }
    value.n = value.kind == VALUE_INTS ? (int)count : 1;
    return import_bind(m, node, 0, &value);
}

static int import_constant_of_shape(struct importer *m, const MsOnnx__Node *node)
{
    const struct value *shape = NULL;
    struct value with = {.kind = VALUE_REAL, .expr = NO_VALUE, .n = 1};
    const MsOnnx__Attribute *at = attribute_find(node, "value");
    int rc = import_ints(m, import_input(m, node, 0), &shape);
    rc = rc < 0 || at == NULL || at->t == NULL ? rc : import_tensor(m, at->t, &with);
    return rc < 0 ? rc : bind_filled(m, node, &with, shape);
}

/* Of one number to a shape: a bias of zeros, in which an exporter says that there is none. */
static int import_expand(struct importer *m, const MsOnnx__Node *node)
{
    const struct value *shape = NULL;
    int x = import_input(m, node, 0);
    int rc = x < 0 ? x : import_ints(m, import_input(m, node, 1), &shape);
    if (rc < 0) {
        return rc < NO_VALUE ? rc : import_fail(m, "an input is missing");
    }
    const struct value *value = import_value(m, x);
    if ((value->kind != VALUE_REAL && value->kind != VALUE_INTS) || value->n != 1) {
        return import_fail(m, "numbers are repeated, and nothing that is made of the data");
    }
    return bind_filled(m, node, value, shape);
}

static int import_cast(struct importer *m, const MsOnnx__Node *node)
{
    int x = import_input(m, node, 0);
    int64_t to = ONNX_FLOAT;
    int rc = x < NO_VALUE ? x : attribute_int(m, node, "to", ONNX_FLOAT, &to);
    if (rc < 0) {
        return rc;
    }
    struct value value = x >= 0 ? *import_value(m, x) : (struct value){.kind = VALUE_LAYER};
    if (strcmp(node->op_type, "CastLike") == 0) {
        int like = import_input(m, node, 1);
        if (like < 0) {
            return like < NO_VALUE ? like : import_fail(m, "an input is missing");
        }
        to = import_value(m, like)->kind == VALUE_INTS ? ONNX_INT64 : ONNX_FLOAT;
    }
    const int is_real = to == ONNX_FLOAT || to == ONNX_DOUBLE;
    if (value.kind == VALUE_INTS && is_real && value.n == 1) {
        value.kind = VALUE_REAL;
        value.real = (double)value.ints[0];
    } else if (value.kind == VALUE_REAL && !is_real) {
        value.kind = VALUE_INTS;
        value.ints[0] = value.real >= -1e6 && value.real <= 1e6 ? (int64_t)value.real : 0;
    } else if ((value.kind == VALUE_LAYER || value.kind == VALUE_PARAM) && to != ONNX_FLOAT) {
        return import_fail(m, "values are FLOAT here, not %s", onnx_type_name((int)(to & 0x1F)));
    }
    return import_bind(m, node, 0, &value);
}

/* ---- shapes ---- */

static int import_shape(struct importer *m, const MsOnnx__Node *node)
{
    int64_t start = 0;
    int64_t end = ONNX_DIMS_MAX;
    int x = import_input(m, node, 0);
    int rc = x < NO_VALUE ? x : attribute_int(m, node, "start", 0, &start);
    rc = rc < 0 ? rc : attribute_int(m, node, "end", ONNX_DIMS_MAX, &end);
    if (rc < 0) {
        return rc;
    }
    const struct value *value = x >= 0 ? import_value(m, x) : NULL;
    if (value == NULL || (value->kind == VALUE_INTS && value->n_dims > 1)) {
        return import_fail(m, "it has no input");
    }
    const int n = value->n_dims;
    start += start < 0 ? n : 0;
    end += end < 0 ? n : 0;
    end = end > n ? n : end;
    return start < 0 || start > end ? import_fail(m, "a part of a shape that it has not")
                                    : bind_ints(m, node, value->dim + start, (int)(end - start), 0);
}

static int import_gather(struct importer *m, const MsOnnx__Node *node)
{
    const struct value *of = NULL;
    const struct value *at = NULL;
    int64_t axis = 0;
    int64_t ints[INTS_MAX];
    int rc = import_ints(m, import_input(m, node, 0), &of);
    int index = rc < 0 ? rc : import_input(m, node, 1);
    rc = rc < 0 ? rc : import_ints(m, index, &at);
    rc = rc < 0 ? rc : import_ints(m, import_input(m, node, 0), &of); /* it may have moved */
    rc = rc < 0 ? rc : attribute_int(m, node, "axis", 0, &axis);
    for (int i = 0; rc == MS_OK && i < at->n; i++) {
        const int from = axis_of(at->ints[i], of->n);
        if (from < 0 || axis_of(axis, 1) < 0) {
            return import_fail(m, "a place in a shape that it has not");
        }
        ints[i] = of->ints[from];
    }
    return rc < 0 ? rc : bind_ints(m, node, ints, at->n, at->n_dims == 0);
}

static int import_slice(struct importer *m, const MsOnnx__Node *node)
{
    const struct value *part[5] = {NULL};
    int64_t ints[INTS_MAX];
    int n = 0;
    int in[5];
    int rc = MS_OK;
    for (size_t i = 0; i < 5 && rc == MS_OK; i++) {
        in[i] = import_input(m, node, i);
        rc = in[i] < NO_VALUE ? in[i] : MS_OK;
    }
    for (int i = 0; i < 5 && rc == MS_OK; i++) {
        rc = in[i] == NO_VALUE ? MS_OK : import_ints(m, in[i], &part[i]);
    }
    if (rc < 0) {
        return rc;
    }
    if (part[0] == NULL || part[1] == NULL || part[2] == NULL || part[1]->n != 1 ||
        part[2]->n != 1 || (part[3] != NULL && (part[3]->n != 1 || axis_of(part[3]->ints[0], 1))) ||
        (part[4] != NULL && (part[4]->n != 1 || part[4]->ints[0] != 1))) {
        return import_fail(m, "shapes are cut into parts, and only without gaps");
    }
    const int size = part[0]->n;
    int64_t start = part[1]->ints[0];
    int64_t end = part[2]->ints[0];
    start = start < -size ? 0 : start < 0 ? start + size : start;
    end = end < -size ? 0 : end < 0 ? end + size : end > size ? size : end;
    for (int64_t i = start; i < end; i++) {
        ints[n++] = part[0]->ints[i];
    }
    return bind_ints(m, node, ints, n, 0);
}

int import_concat_ints(struct importer *m, const MsOnnx__Node *node)
{
    int64_t ints[INTS_MAX];
    int n = 0;
    for (size_t i = 0; i < node->n_input; i++) {
        const struct value *part = NULL;
        int rc = import_ints(m, import_input(m, node, i), &part);
        if (rc == MS_OK && n + part->n > INTS_MAX) {
            rc = import_fail(m, "a shape of more than %d numbers", INTS_MAX);
        }
        if (rc < 0) {
            return rc;
        }
        memcpy(ints + n, part->ints, sizeof(ints[0]) * (size_t)part->n);
        n += part->n;
    }
    return bind_ints(m, node, ints, n, 0);
}

int import_binary_ints(struct importer *m, const MsOnnx__Node *node, int a, int b)
{
    const struct value *x = import_value(m, a);
    const struct value *y = import_value(m, b);
    const enum fn fn = (enum fn)import_op(node->op_type)->arg;
    int64_t ints[INTS_MAX];
    const int n = x->n > y->n ? x->n : y->n;
    for (int i = 0; i < n; i++) {
        const int64_t p = x->ints[x->n == 1 ? 0 : i];
        const int64_t q = y->ints[y->n == 1 ? 0 : i];
        const int is_small = p >= 0 && q >= 0 && p <= INT32_MAX && q <= INT32_MAX;
        if ((x->n != 1 && x->n != n) || (y->n != 1 && y->n != n) || !is_small ||
            (fn == FN_DIV && q == 0) || fn == FN_POW) {
            return import_fail(m,
                               "a calculation with sizes that are not known before the data are");
        }
        ints[i] = fn == FN_ADD ? p + q : fn == FN_SUB ? p - q : fn == FN_MUL ? p * q : p / q;
    }
    return bind_ints(m, node, ints, n, x->n_dims == 0 && y->n_dims == 0);
}

/* ---- rows of images ---- */

static int64_t features_of(const struct value *value)
{
    int64_t n = 1;
    for (int i = 1; i < value->n_dims; i++) {
        if (value->dim[i] < 0 || __builtin_mul_overflow(n, value->dim[i], &n)) {
            return SIZE_UNKNOWN;
        }
    }
    return n;
}

/* (n, c h w) of value x, whatever it is. */
static int bind_rows(struct importer *m, const MsOnnx__Node *node, int x)
{
    struct value rows = *import_value(m, x);
    int rc = import_make(m, x);
    const int64_t features = features_of(import_value(m, x));
    if (rc == MS_OK && rows.n_dims != 2 && !rows.is_rows) {
        rc = import_layer(m, "flatten", "", json_object(), x, &rows);
    } else {
        rows = *import_value(m, x);
    }
    rows.n_dims = 2;
    rows.dim[1] = features;
    rows.is_rows = 0;
    return rc < 0 ? rc : import_bind(m, node, 0, &rows);
}

static int import_flatten(struct importer *m, const MsOnnx__Node *node)
{
    int64_t axis = 1;
    int x = import_input(m, node, 0);
    int rc = x < NO_VALUE ? x : attribute_int(m, node, "axis", 1, &axis);
    if (rc < 0) {
        return rc;
    }
    if (x == NO_VALUE || import_value(m, x)->kind != VALUE_LAYER ||
        axis_of(axis, import_value(m, x)->n_dims) != 1) {
        return import_fail(m, "rows are made of each sample, behind axis 1");
    }
    return bind_rows(m, node, x);
}

/* Is that the size of the batch? A file that was exported with one says its number. */
static int is_batch(const struct value *x, int64_t size)
{
    return size == SIZE_BATCH || size == 0 || size == x->dim[0];
}

static int is_same_shape(const struct value *x, const struct value *shape)
{
    int same = x->n_dims == shape->n && is_batch(x, shape->ints[0]);
    for (int i = 1; i < shape->n && same; i++) {
        same = shape->ints[i] == x->dim[i] && x->dim[i] > 0;
    }
    return same;
}

static int reshape_ints(struct importer *m, const MsOnnx__Node *node, const struct value *x,
                        const struct value *shape)
{
    const int fits = shape->n == 0
                         ? x->n == 1
                         : shape->n == 1 && (shape->ints[0] == -1 || shape->ints[0] == x->n);
    return fits ? bind_ints(m, node, x->ints, x->n, shape->n == 0)
                : import_fail(m, "a shape in another shape");
}

static int import_reshape(struct importer *m, const MsOnnx__Node *node)
{
    const struct value *shape = NULL;
    int x = import_input(m, node, 0);
    int rc = x < NO_VALUE ? x : import_ints(m, import_input(m, node, 1), &shape);
    if (rc < 0) {
        return rc;
    }
    if (x == NO_VALUE || import_value(m, x)->kind == VALUE_PARAM) {
        return import_fail(m, "weights keep their shape");
    }
    const struct value *value = import_value(m, x);
    if (value->kind == VALUE_INTS) {
        return reshape_ints(m, node, value, shape);
    }
    if (value->kind == VALUE_REAL) {
        return bind_filled(m, node, value, shape);
    }
    const int64_t features = features_of(value);
    const int is_rows = shape->n == 2 &&
                        ((is_batch(value, shape->ints[0]) &&
                          (shape->ints[1] == -1 || (features > 0 && shape->ints[1] == features))) ||
                         (shape->ints[0] == -1 && features > 0 && shape->ints[1] == features));
    if (is_rows) {
        return bind_rows(m, node, x);
    }
    if (!is_same_shape(value, shape)) {
        return import_fail(m, "images can be made rows, (n, values), and nothing else: parts of "
                              "channels cannot be moved yet");
    }
    const struct value same = *value;
    return import_bind(m, node, 0, &same);
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
        const int axis = axis_of(of[i], n_dims);
        if (axis < 0) {
            return import_fail(m, "an axis that its input has not");
        }
        *ret |= 1U << axis;
    }
    return rc;
}

static int import_squeeze(struct importer *m, const MsOnnx__Node *node)
{
    unsigned axes = 0;
    int x = import_input(m, node, 0);
    if (x < 0) {
        return x < NO_VALUE ? x : import_fail(m, "it has no input");
    }
    if (import_value(m, x)->kind == VALUE_INTS) {
        const struct value ints = *import_value(m, x);
        return ints.n == 1 ? bind_ints(m, node, ints.ints, 1, 1)
                           : import_fail(m, "a shape in another shape");
    }
    int rc = read_axes(m, node, import_value(m, x)->n_dims, &axes);
    if (rc < 0) {
        return rc;
    }
    struct value value = *import_value(m, x);
    if (value.kind != VALUE_LAYER || !value.is_rows) {
        return import_fail(m, "only what was pooled to one pixel can lose its height and width");
    }
    int n = 0;
    for (int i = 0; i < value.n_dims; i++) {
        if ((axes >> i & 1) != 0 && value.dim[i] != 1) {
            return import_fail(m, "axis %d has more than one element", i);
        }
        value.dim[n] = value.dim[i];
        n += (axes >> i & 1) == 0;
    }
    value.n_dims = n;
    value.is_rows = n > 2;
    return import_bind(m, node, 0, &value);
}

static int import_unsqueeze(struct importer *m, const MsOnnx__Node *node)
{
    int x = import_input(m, node, 0);
    const struct value *value = x >= 0 ? import_value(m, x) : NULL;
    if (x < NO_VALUE) {
        return x;
    }
    if (value == NULL || value->kind != VALUE_INTS || value->n_dims != 0) {
        return import_fail(m, "only sizes get a dimension more");
    }
    const int64_t size = value->ints[0];
    return bind_ints(m, node, &size, 1, 0);
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
    made.n_dims = keepdims ? 4 : 2;
    made.dim[2] = 1;
    made.dim[3] = 1;
    made.is_rows = keepdims && !is_image;
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
    {"Constant", 0, import_constant, 0},
    {"ConstantOfShape", 1, import_constant_of_shape, 0},
    {"Expand", 2, import_expand, 0},
    {"Cast", 1, import_cast, 0},
    {"CastLike", 2, import_cast, 0},
    {"Shape", 1, import_shape, 0},
    {"Gather", 2, import_gather, 0},
    {"Slice", 1, import_slice, 0},
    {"Flatten", 1, import_flatten, 0},
    {"Reshape", 2, import_reshape, 0},
    {"Squeeze", 1, import_squeeze, 0},
    {"Unsqueeze", 1, import_unsqueeze, 0},
    {"GlobalAveragePool", 1, import_global_pool, 0},
    {"ReduceMean", 1, import_mean, 0},
    {NULL, 0, NULL, 0},
};
