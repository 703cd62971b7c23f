/* constant.c - what is known when the file is read: shapes, and numbers in the graph */
#include "libworker/onnx/import.h"

#include "proto/macros.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int import_ints(struct importer *m, int value, const struct value **ret)
{
    if (value < 0) {
        return value == NO_VALUE ? import_fail(m, "an input is missing") : value;
    }
    const struct value *of = import_value(m, value);
    if (of->kind != VALUE_INTS || of->n_dims > 1) {
        return import_fail(m, "a shape or place in it is made of the data, or too long");
    }
    *ret = of;
    return MS_OK;
}

/* An initializer of one element is a number, too. */
static int is_small(const struct value *value)
{
    int is = value->kind == VALUE_PARAM && (strcmp(value->tensor->type, "FLOAT") == 0 ||
                                            strcmp(value->tensor->type, "DOUBLE") == 0);
    for (int i = 0; is && i < value->tensor->n_dims; i++) {
        is = value->tensor->dim[i] == 1;
    }
    return is;
}

int import_is_number(const struct importer *m, int value)
{
    const struct value *v = import_value(m, value);
    return v->kind == VALUE_REAL ||
           (v->kind == VALUE_INTS && v->n == 1 && v->ints[0] >= -1000000) || is_small(v);
}

int import_check_constant(struct importer *m, const struct value *value)
{
    if (value->tensor == NULL) {
        return MS_OK;
    }
    return onnx_is_made(m->file, value->tensor)
               ? MS_OK
               : import_fail(m,
                             "it calculates with %.80s, which the model has as a number that is "
                             "trained, and no shape: give it one, torch.ones(1), and multiply by "
                             "it; if it is a constant, write it into the model as a Python number, "
                             "and export with optimize=False",
                             value->tensor->name);
}

int import_number(struct importer *m, int value, double *ret)
{
    const struct value *v = import_value(m, value);
    if (!import_is_number(m, value)) {
        return import_fail(m,
                           "it calculates with a tensor (%.60s) that is no number: weights are "
                           "those of convolutions, dense layers and batch norms",
                           v->kind == VALUE_PARAM ? v->tensor->name : "made in the graph");
    }
    int rc = import_check_constant(m, v);
    if (rc < 0) {
        return rc;
    }
    if (v->kind != VALUE_PARAM) {
        *ret = v->kind == VALUE_REAL ? v->real : (double)v->ints[0];
        return MS_OK;
    }
    double number = 0;
    rc = import_numbers(m, m->file->model->graph->initializer[v->tensor->index], &number, NULL, 1);
    *ret = rc < 0 ? *ret : import_real((float)number);
    return rc < 0 ? rc : MS_OK;
}

int import_numbers(struct importer *m, const MsOnnx__Tensor *tensor, double *reals, int64_t *ints,
                   int n)
{
    struct ms_err why = {0, ""};
    int rc = onnx_numbers(m->file, tensor, reals, ints, n, &why);
    return rc < 0 ? import_fail(m, "%s", why.text) : rc;
}

enum { RANGE_MAX = 65536, REAL_WHOLE_MAX = 1 << 20 };

/* Real numbers that are whole, and not all the same. */
static int set_whole(struct value *ret, const double *reals, int n)
{
    *ret = (struct value){.kind = VALUE_INTS, .n_dims = 1, .expr = NO_VALUE, .n = n};
    ret->dim[0] = n;
    for (int i = 0; i < n; i++) {
        ret->ints[i] = (int64_t)reals[i];
    }
    return MS_OK;
}

/* One real number in the tensor's shape. */
static int set_even(const MsOnnx__Tensor *tensor, double real, struct value *ret)
{
    int64_t count = 1;
    *ret = (struct value){.kind = VALUE_REAL,
                          .n_dims = (int)tensor->n_dims,
                          .expr = NO_VALUE,
                          .real = import_real((float)real)};
    for (size_t i = 0; i < tensor->n_dims; i++) {
        ret->dim[i] = tensor->dims[i];
        count = count > INTS_MAX             ? count
                : tensor->dims[i] > INTS_MAX ? INTS_MAX + 1
                                             : count * tensor->dims[i];
    }
    ret->n = (int)count; /* or more than INTS_MAX */
    return MS_OK;
}

/* Whole numbers from 0 on, which are places; more than a shape has. */
static int is_range(const struct importer *m, const MsOnnx__Tensor *tensor)
{
    const int is_vector = tensor->n_dims == 1 && tensor->dims[0] > INTS_MAX &&
                          tensor->dims[0] <= RANGE_MAX && tensor->data_type == ONNX_INT64;
    const int n = is_vector ? (int)tensor->dims[0] : 0;
    int64_t *ints = n > 0 ? malloc((size_t)n * sizeof(*ints)) : NULL;
    int is = ints != NULL && onnx_numbers(m->file, tensor, NULL, ints, n, NULL) == n;
    for (int i = 0; i < n && is; i++) {
        is = ints[i] == i;
    }
    free(ints);
    return is;
}

int import_tensor(struct importer *m, const MsOnnx__Tensor *tensor, struct value *ret)
{
    double reals[INTS_MAX];
    int64_t ints[INTS_MAX];
    const int is_real = tensor->data_type == ONNX_FLOAT || tensor->data_type == ONNX_DOUBLE;
    if (is_range(m, tensor)) {
        *ret = (struct value){.kind = VALUE_RANGE, .n_dims = 1, .expr = NO_VALUE};
        ret->dim[0] = tensor->dims[0];
        ret->ints[0] = 1;
        return MS_OK;
    }
    if (onnx_is_even(tensor, &reals[0]) && tensor->n_dims <= ONNX_DIMS_MAX) {
        return set_even(tensor, reals[0], ret);
    }
    int n = import_numbers(m, tensor, is_real ? reals : NULL, is_real ? NULL : ints, INTS_MAX);
    if (n < 0) {
        return n;
    }
    int is_even = n > 0;
    int is_whole = n > 0 && tensor->n_dims == 1;
    for (int i = 0; i < n && is_real; i++) {
        is_even &= i == 0 || reals[i] == reals[0]; /* one may be no number */
        is_whole &= fabs(reals[i]) <= REAL_WHOLE_MAX && reals[i] == trunc(reals[i]);
    }
    if (is_real && !is_even && is_whole) { /* factors of a Resize */
        return set_whole(ret, reals, n);
    }
    if (tensor->n_dims > (is_real ? ONNX_DIMS_MAX : 1) || (is_real && !is_even)) {
        return import_fail(m,
                           "constant %.60s is %s with %zu dimensions, and no number and no shape",
                           tensor->name[0] != '\0' ? tensor->name : "of a node",
                           onnx_type_name(tensor->data_type), tensor->n_dims);
    }
    if (is_real) {
        return set_even(tensor, reals[0], ret);
    }
    *ret =
        (struct value){.kind = VALUE_INTS, .n_dims = (int)tensor->n_dims, .expr = NO_VALUE, .n = n};
    ret->dim[0] = n;
    memcpy(ret->ints, ints, sizeof(ints[0]) * (size_t)n);
    return MS_OK;
}
