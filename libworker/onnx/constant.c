/* constant.c - what is known when the file is read: shapes, and numbers in the graph */
#include "libworker/onnx/import.h"

#include "proto/macros.h"

#include <string.h>

int import_ints(struct importer *m, int value, const struct value **ret)
{
    if (value < 0) {
        return value < NO_VALUE ? value : import_fail(m, "an input is missing");
    }
    if (import_value(m, value)->kind != VALUE_INTS) {
        return import_fail(m, "a shape or place in it is made of the data, or too long");
    }
    *ret = import_value(m, value);
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

/* Names that PyTorch's exporters make; all others are of the module, or may be. */
static int is_made_name(const char *name)
{
    static const char *const heads[] = {
        "val_", "onnx::", "lifted_tensor_", "_tensor_constant", "min_val_cast", "max_val_cast"};
    int is = name[strspn(name, "0123456789")] == '\0' || strchr(name, '/') != NULL;
    for (size_t i = 0; i < MS_ARRAY_SIZE(heads) && !is; i++) {
        is = strncmp(name, heads[i], strlen(heads[i])) == 0;
    }
    return is;
}

int import_check_constant(struct importer *m, const struct value *value)
{
    if (value->tensor == NULL) {
        return MS_OK;
    }
    /* an alias of a constant is one, too */
    const MsOnnx__Tensor *own = m->file->model->graph->initializer[value->tensor->index];
    return is_made_name(value->tensor->name) || strncmp(own->name, "lifted_tensor_", 14) == 0
               ? MS_OK
               : import_fail(m,
                             "it calculates with %.80s, which the model has as a number that is "
                             "trained: these are not read yet; if it is a constant, write it into "
                             "the model as a Python number, and export with optimize=False",
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

int import_tensor(struct importer *m, const MsOnnx__Tensor *tensor, struct value *ret)
{
    double reals[INTS_MAX];
    int64_t ints[INTS_MAX];
    const int is_real = tensor->data_type == ONNX_FLOAT || tensor->data_type == ONNX_DOUBLE;
    int n = onnx_numbers(tensor, is_real ? reals : NULL, is_real ? NULL : ints, INTS_MAX);
    int is_even = n > 0;
    for (int i = 1; i < n && is_real; i++) {
        is_even &= reals[i] == reals[0];
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
