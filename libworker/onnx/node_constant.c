/* node_constant.c - ops on shapes and numbers, which are done when the file is read */
#include "libworker/onnx/import.h"

#include <math.h>
#include <string.h>

int import_bind_ints(struct importer *m, const MsOnnx__Node *node, const int64_t *ints, int n,
                     int is_scalar)
{
    struct value value = {
        .kind = VALUE_INTS, .n_dims = is_scalar ? 0 : 1, .expr = NO_VALUE, .n = n};
    value.dim[0] = n;
    if (n > 0) {
        memcpy(value.ints, ints, sizeof(ints[0]) * (size_t)n);
    }
    return import_bind(m, node, 0, &value);
}

int import_axis(int64_t axis, int n_dims)
{
    axis += axis < 0 ? n_dims : 0;
    return axis >= 0 && axis < n_dims ? (int)axis : -1;
}

/* ---- constants ---- */

/* Of factors, which are whole. */
static int bind_floats(struct importer *m, const MsOnnx__Node *node, const MsOnnx__Attribute *at)
{
    int64_t ints[INTS_MAX];
    for (size_t i = 0; i < at->n_floats; i++) {
        const float f = at->floats[i];
        if (!(f >= 0 && f <= 65536) || f != (float)(int64_t)f) {
            return import_fail(m, "a constant of numbers that are not whole");
        }
        ints[i] = (int64_t)f;
    }
    return import_bind_ints(m, node, ints, (int)at->n_floats, 0);
}

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
    if (at != NULL && strcmp(at->name, "value_floats") == 0 && at->n_floats <= INTS_MAX) {
        return bind_floats(m, node, at);
    }
    if (at != NULL && strcmp(at->name, "value_int") == 0) {
        return import_bind_ints(m, node, &at->i, 1, 1);
    }
    if (at != NULL && strcmp(at->name, "value_ints") == 0 && at->n_ints <= INTS_MAX) {
        return import_bind_ints(m, node, at->ints, (int)at->n_ints, 0);
    }
    return import_fail(m, "a constant that is no number and no shape");
}

int import_bind_filled(struct importer *m, const MsOnnx__Node *node, const struct value *with,
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
    return rc < 0 ? rc : import_bind_filled(m, node, &with, shape);
}

/* A parameter for each sample: a class token. Dimensions of 1 may come before its own. */
static int repeat_param(struct importer *m, const MsOnnx__Node *node, int x,
                        const struct value *shape)
{
    struct value value = *import_value(m, x);
    const int more = shape->n - value.n_dims;
    int fits = !value.is_repeated && !value.is_transposed && more >= 0 && value.n_dims > 0 &&
               shape->n > 1 && shape->n <= ONNX_DIMS_MAX && (more > 0 || value.dim[0] == 1);
    for (int i = 1; i < shape->n && fits; i++) {
        const int64_t own = i < more ? 1 : value.dim[i - more];
        fits = shape->ints[i] == 1 || shape->ints[i] == own;
    }
    if (!fits) {
        return import_fail(m, "a parameter is repeated for each sample, and not otherwise");
    }
    for (int i = shape->n - 1; i > 0; i--) {
        value.dim[i] = i < more ? 1 : value.dim[i - more];
    }
    value.is_repeated = 1;
    value.n_dims = shape->n;
    value.dim[0] = shape->ints[0];
    return import_bind(m, node, 0, &value);
}

/* Is it one number, that the shape repeats, or leaves as often as it is there? */
static int is_repeated_by(const struct value *value, const struct value *shape)
{
    int fits = value->kind == VALUE_REAL && value->n_dims == shape->n;
    for (int i = 0; i < shape->n && fits; i++) {
        fits = value->dim[i] == 1 || value->dim[i] == shape->ints[i];
    }
    return fits || ((value->kind == VALUE_REAL || value->kind == VALUE_INTS) && value->n == 1);
}

/* Of one number to a shape: a bias of zeros, in which an exporter says that there is none. */
static int import_expand(struct importer *m, const MsOnnx__Node *node)
{
    const struct value *shape = NULL;
    int x = import_need(m, node, 0);
    int rc = x < 0 ? x : import_ints(m, import_input(m, node, 1), &shape);
    if (rc < 0) {
        return rc;
    }
    const struct value *value = import_value(m, x);
    if (value->kind == VALUE_PARAM) { /* of one channel it is a number, too */
        return repeat_param(m, node, x, shape);
    }
    if (!is_repeated_by(value, shape)) {
        return import_fail(m, "numbers are repeated, and nothing that is made of the data");
    }
    return import_bind_filled(m, node, value, shape);
}

static int import_cast(struct importer *m, const MsOnnx__Node *node)
{
    int x = import_need(m, node, 0);
    int64_t to = ONNX_FLOAT;
    if (x < 0) {
        return x;
    }
    int rc = attribute_int(m, node, "to", ONNX_FLOAT, &to);
    if (rc < 0) {
        return rc;
    }
    struct value value = *import_value(m, x);
    if (strcmp(node->op_type, "CastLike") == 0) {
        int like = import_need(m, node, 1);
        if (like < 0) {
            return like;
        }
        to = import_value(m, like)->kind == VALUE_INTS ? ONNX_INT64 : ONNX_FLOAT;
    }
    const int is_real = to == ONNX_FLOAT || to == ONNX_DOUBLE;
    if (value.kind == VALUE_INTS && is_real && value.n == 1) {
        value.kind = VALUE_REAL;
        value.real = (double)value.ints[0];
    } else if (value.kind == VALUE_REAL && !is_real) {
        if (value.n > INTS_MAX) { /* one that is even may be of any size */
            return import_fail(m, "more than %d whole numbers", INTS_MAX);
        }
        value.kind = VALUE_INTS;
        for (int i = 0; i < value.n; i++) {
            value.ints[i] = value.real >= -1e6 && value.real <= 1e6 ? (int64_t)value.real : 0;
        }
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
    int x = import_need(m, node, 0);
    int rc = x < 0 ? x : attribute_int(m, node, "start", 0, &start);
    rc = rc < 0 ? rc : attribute_int(m, node, "end", ONNX_DIMS_MAX, &end);
    if (rc < 0) {
        return rc;
    }
    const struct value *value = import_value(m, x);
    if (value->kind == VALUE_INTS && value->n_dims > 1) {
        return import_fail(m, "of whole numbers in rows, whose shape nothing here reads");
    }
    const int n = value->n_dims;
    start += start < 0 ? n : 0;
    end += end < 0 ? n : 0;
    end = end > n ? n : end;
    return start < 0 || start > end
               ? import_fail(m, "a part of a shape that it has not")
               : import_bind_ints(m, node, value->dim + start, (int)(end - start), 0);
}

/* Numbers that are all the same, and whole, as such: factors of a Resize. */
static int whole_of(const struct importer *m, int index, struct value *ret)
{
    const struct value *value = import_value(m, index);
    const int is_row = value->kind == VALUE_REAL && value->n_dims == 1 && value->dim[0] >= 1 &&
                       value->dim[0] <= INTS_MAX && value->tensor == NULL;
    if (!is_row || !(fabs(value->real) <= 65536) || value->real != trunc(value->real)) {
        return MS_E_INVALID;
    }
    *ret = (struct value){.kind = VALUE_INTS, .n_dims = 1, .expr = NO_VALUE};
    ret->n = (int)value->dim[0];
    for (int i = 0; i < ret->n; i++) {
        ret->ints[i] = (int64_t)value->real;
    }
    return MS_OK;
}

int import_concat_ints(struct importer *m, const MsOnnx__Node *node)
{
    int64_t ints[INTS_MAX];
    int n = 0;
    for (size_t i = 0; i < node->n_input; i++) {
        const struct value *part = NULL;
        int index = import_input(m, node, i);
        struct value whole;
        int rc = index >= 0 ? whole_of(m, index, &whole) : index;
        if (rc == MS_OK) {
            part = &whole;
        } else {
            rc = import_ints(m, index, &part);
        }
        if (rc == MS_OK && n + part->n > INTS_MAX) {
            rc = import_fail(m, "a shape of more than %d numbers", INTS_MAX);
        }
        if (rc < 0) {
            return rc;
        }
        memcpy(ints + n, part->ints, sizeof(ints[0]) * (size_t)part->n);
        n += part->n;
    }
    return import_bind_ints(m, node, ints, n, 0);
}

/* ---- calculations ---- */

/* Products and quotients may be of batches. */
static int calculate(enum fn fn, int64_t p, int64_t q, int64_t *ret)
{
    const int is_small = p >= -INT32_MAX && q >= -INT32_MAX && p <= INT32_MAX && q <= INT32_MAX;
    if (fn == FN_MUL && !is_small) {
        *ret = size_times(p, q);
        return *ret != SIZE_UNKNOWN;
    }
    if (fn == FN_DIV && !is_small) {
        *ret = size_over(p, q);
        return *ret != SIZE_UNKNOWN;
    }
    const int is_division = fn == FN_DIV || fn == FN_MOD;
    if (!is_small || fn == FN_POW || (is_division && (q <= 0 || p < 0))) {
        return 0;
    }
    *ret = fn == FN_ADD   ? p + q
           : fn == FN_SUB ? p - q
           : fn == FN_MUL ? p * q
           : fn == FN_DIV ? p / q
                          : p % q;
    return 1;
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
        if ((x->n != 1 && x->n != n) || (y->n != 1 && y->n != n) ||
            !calculate(fn, p, q, &ints[i])) {
            return import_fail(m,
                               "a calculation with sizes that are not known before the data are");
        }
    }
    return import_bind_ints(m, node, ints, n, x->n_dims == 0 && y->n_dims == 0);
}

static int import_mod(struct importer *m, const MsOnnx__Node *node)
{
    int a = import_input(m, node, 0);
    int b = import_input(m, node, 1);
    const struct value *x = NULL;
    int rc = import_ints(m, a, &x);
    rc = rc < 0 ? rc : import_ints(m, b, &x);
    return rc < 0 ? rc : import_binary_ints(m, node, a, b);
}

/* Sqrt and Reciprocal, of which the scale of attention is made. */
static int import_root(struct importer *m, const MsOnnx__Node *node)
{
    const int is_root = strcmp(node->op_type, "Sqrt") == 0;
    double x = 0;
    int index = import_need(m, node, 0);
    if (index < 0) {
        return index;
    }
    int rc = import_number(m, index, &x);
    struct value value = *import_value(m, index);
    value.kind = VALUE_REAL;
    value.real = is_root ? (x >= 0 ? sqrt(x) : 0) : x != 0 ? 1 / x : 0;
    value.tensor = NULL;
    return rc < 0 ? rc : import_bind(m, node, 0, &value);
}

/* Which of two shapes are equal, and one of two where a third is true: for a shape with -1 in it.
 */
static int each_int(struct importer *m, const MsOnnx__Node *node, int n_of)
{
    int64_t ints[INTS_MAX];
    const struct value *of[3] = {NULL};
    int n = 1;
    for (int i = 0; i < n_of; i++) {
        int rc = import_ints(m, import_input(m, node, (size_t)i), &of[i]);
        if (rc < 0) {
            return rc;
        }
    }
    for (int i = 0; i < n_of; i++) { /* reading one may have moved the others */
        (void)import_ints(m, import_input(m, node, (size_t)i), &of[i]);
        n = of[i]->n > n ? of[i]->n : n;
    }
    for (int k = 0; k < n; k++) {
        int64_t at[3] = {0};
        for (int i = 0; i < n_of; i++) {
            if (of[i]->n != 1 && of[i]->n != n) {
                return import_fail(m, "its inputs have two shapes");
            }
            at[i] = of[i]->ints[of[i]->n == 1 ? 0 : k];
        }
        ints[k] = n_of == 2 ? at[0] == at[1] : at[0] != 0 ? at[1] : at[2];
    }
    return import_bind_ints(m, node, ints, n, n == 1 && of[0]->n_dims == 0);
}

static int import_equal(struct importer *m, const MsOnnx__Node *node)
{
    int a = import_need(m, node, 0);
    int b = a < 0 ? a : import_need(m, node, 1);
    if (b < 0) {
        return b;
    }
    const int is_a = import_is_mask(m, a);
    const int is_b = is_a < 0 ? is_a : import_is_mask(m, b);
    return is_b < 0       ? is_b
           : is_a || is_b ? import_masked(m, node, FN_NUMBER, a, b)
                          : each_int(m, node, 2);
}

static int import_where(struct importer *m, const MsOnnx__Node *node)
{
    int a = import_need(m, node, 0);
    const int is = a < 0 ? a : import_is_mask(m, a);
    return is < 0 ? is : is ? import_chosen(m, node) : each_int(m, node, 3);
}

const struct node_op constant_ops[] = {
    {"Constant", 0, import_constant, 0}, {"ConstantOfShape", 1, import_constant_of_shape, 0},
    {"Expand", 2, import_expand, 0},     {"Cast", 1, import_cast, 0},
    {"CastLike", 2, import_cast, 0},     {"Shape", 1, import_shape, 0},
    {"Mod", 2, import_mod, FN_MOD},      {"Sqrt", 1, import_root, 0},
    {"Reciprocal", 1, import_root, 0},   {"Equal", 2, import_equal, 0},
    {"Where", 3, import_where, 0},       {NULL, 0, NULL, 0},
};
