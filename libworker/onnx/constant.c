/* constant.c - what is known when the file is read: shapes, and numbers in the graph */
#include "libworker/onnx/import.h"

#include "proto/macros.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int import_ints(struct importer *m, int value, const struct value **ret)
{
    if (value < 0) {
        return value < NO_VALUE ? value : import_fail(m, "an input is missing");
    }
    const struct value *of = import_value(m, value);
    if (of->kind != VALUE_INTS || of->n_dims > 1) {
        return import_fail(m, "a shape or place in it is made of the data, or too long");
    }
    *ret = of;
    return MS_OK;
}

/* An initializer of one element is a number, too. */
static int small_number(const struct importer *m, const struct value *value, double *ret)
{
    return value->kind == VALUE_PARAM &&
           onnx_numbers(m->file->model->graph->initializer[value->tensor->index], ret, NULL, 1) ==
               1;
}

int import_is_number(const struct importer *m, int value)
{
    const struct value *v = import_value(m, value);
    double number = 0;
    return v->kind == VALUE_REAL ||
           (v->kind == VALUE_INTS && v->n == 1 && v->ints[0] >= -1000000) ||
           small_number(m, v, &number);
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
    if (v->kind == VALUE_PARAM) {
        (void)small_number(m, v, ret);
        *ret = import_real((float)*ret);
    } else {
        *ret = v->kind == VALUE_REAL ? v->real : (double)v->ints[0];
    }
    return MS_OK;
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

/* Whole numbers from 0 on, which are places; more than a shape has. */
static int is_range(const MsOnnx__Tensor *tensor)
{
    const int is_vector = tensor->n_dims == 1 && tensor->dims[0] > INTS_MAX &&
                          tensor->dims[0] <= RANGE_MAX && tensor->data_type == ONNX_INT64;
    const int n = is_vector ? (int)tensor->dims[0] : 0;
    int64_t *ints = n > 0 ? malloc((size_t)n * sizeof(*ints)) : NULL;
    int is = ints != NULL && onnx_numbers(tensor, NULL, ints, n) == n;
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
    if (is_range(tensor)) {
        *ret = (struct value){.kind = VALUE_RANGE, .n_dims = 1, .expr = NO_VALUE};
        ret->dim[0] = tensor->dims[0];
        ret->ints[0] = 1;
        return MS_OK;
    }
    int n = onnx_numbers(tensor, is_real ? reals : NULL, is_real ? NULL : ints, INTS_MAX);
    int is_even = n > 0;
    int is_whole = n > 0 && tensor->n_dims == 1;
    for (int i = 0; i < n && is_real; i++) {
        is_even &= i == 0 || reals[i] == reals[0]; /* one may be no number */
        is_whole &= fabs(reals[i]) <= REAL_WHOLE_MAX && reals[i] == trunc(reals[i]);
    }
    if (is_real && !is_even && is_whole) { /* factors of a Resize */
        return set_whole(ret, reals, n);
    }
    if (n < 0 || tensor->n_dims > (is_real ? ONNX_DIMS_MAX : 1) || (is_real && !is_even)) {
        return import_fail(m, "a constant of type %s that is no number and no shape",
                           onnx_type_name(tensor->data_type));
    }
    *ret = (struct value){.kind = is_real ? VALUE_REAL : VALUE_INTS,
                          .n_dims = (int)tensor->n_dims,
                          .expr = NO_VALUE,
                          .n = n,
                          .real = is_real ? import_real((float)reals[0]) : 0};
    for (size_t i = 0; i < tensor->n_dims; i++) {
        ret->dim[i] = tensor->dims[i];
    }
    if (!is_real) {
        memcpy(ret->ints, ints, sizeof(ints[0]) * (size_t)n);
    }
    return MS_OK;
}
