/* node_norm.c - norms: of a batch, and of a sample's own values */
#include "libworker/onnx/import.h"

/* ---- batch norm ---- */

static int import_batch_norm(struct importer *m, const MsOnnx__Node *node)
{
    static const char *const theirs[] = {"weight", "bias", "running_mean", "running_var"};
    static const char *const ours[] = {"gamma", "beta", "moving_mean", "moving_variance"};
    struct part parts[4];
    struct value param;
    struct value made;
    double epsilon = 0;
    double momentum = 0;
    char name[MS_NAME_MAX + 1];
    int x = import_input(m, node, 0);
    if (x >= 0 && import_value(m, x)->kind == VALUE_LAYER && import_value(m, x)->n_dims == 2) {
        return import_fail(m, "it is of rows (BatchNorm1d), and batch_norm is of images: norm them "
                              "before they are flattened, or without statistics of the batch");
    }
    x = x < NO_VALUE ? x : import_image(m, node, 0);
    int rc = x < 0 ? x : attribute_real(m, node, "epsilon", 1e-5, &epsilon);
    rc = rc < 0 ? rc : attribute_real(m, node, "momentum", 0.9, &momentum);
    for (size_t i = 0; i < 4 && rc == MS_OK; i++) {
        rc = import_param(m, node, i + 1, 1, &param);
        parts[i] = (struct part){theirs[i], ours[i], rc < 0 ? NULL : param.tensor->name};
    }
    if (rc < 0) {
        return rc;
    }
    json_t *keys = json_pack("{s:f, s:f}", "epsilon", epsilon, "momentum", momentum);
    rc = keys == NULL ? import_fail_memory(m) : import_name_parts(m, parts, 4, 1, keys, name);
    if (rc < 0) {
        json_decref(keys);
        return rc;
    }
    rc = import_layer(m, "batch_norm", name, keys, x, &made);
    return rc < 0 ? rc : import_bind(m, node, 0, &made);
}

/* ---- norms of samples ---- */

/* A scale that is trained, or none: ones that the exporter made are none. */
static int read_scale(struct importer *m, const MsOnnx__Node *node, int n_dims,
                      struct value *ret_scale, const char **ret_name)
{
    int index = import_input(m, node, 1);
    *ret_name = NULL;
    if (index < 0) {
        return index < NO_VALUE ? index : import_fail(m, "it has no scale");
    }
    const struct value *value = import_value(m, index);
    if (value->kind == VALUE_REAL) {
        return value->real == 1 ? import_check_constant(m, value)
                                : import_fail(m, "its scale is a number, and not trained");
    }
    int rc = import_param(m, node, 1, n_dims, ret_scale);
    *ret_name = rc < 0 ? NULL : ret_scale->tensor->name;
    return rc;
}

static int check_dims(struct importer *m, const struct value *part, const struct value *x)
{
    int same = 1;
    for (int i = 0; i < part->n_dims; i++) {
        same &= part->dim[i] == x->dim[i + 1];
    }
    return same ? MS_OK
                : import_fail(m, "%.60s has not the shape of its input's samples",
                              part->tensor->name);
}

/* A shift that is trained, or none, of the shape that the scale has. */
static int read_shift(struct importer *m, const MsOnnx__Node *node, int n_dims,
                      const struct value *x, const char **ret_name)
{
    struct value shift;
    *ret_name = NULL;
    if (n_dims == 1) {
        return import_bias(m, node, 2, x->dim[1], ret_name);
    }
    int index = import_input(m, node, 2);
    if (index < 0 || import_value(m, index)->kind == VALUE_REAL) {
        return index == NO_VALUE ? MS_OK
               : index < 0       ? index
                                 : import_fail(m, "its bias is a number, and not trained");
    }
    int rc = import_param(m, node, 2, n_dims, &shift);
    rc = rc < 0 ? rc : check_dims(m, &shift, x);
    *ret_name = rc < 0 ? NULL : shift.tensor->name;
    return rc;
}

/* A layer of that kind with a scale and a shift of n_dims. */
static int bind_norm(struct importer *m, const MsOnnx__Node *node, const char *kind, int x,
                     int n_dims)
{
    struct part parts[] = {{"weight", "gamma", NULL}, {"bias", "beta", NULL}};
    struct value scale;
    struct value made;
    double epsilon = 0;
    char name[MS_NAME_MAX + 1] = "";
    int rc = attribute_real(m, node, "epsilon", 1e-5, &epsilon);
    rc = rc < 0 ? rc : read_scale(m, node, n_dims, &scale, &parts[0].name);
    const int has_scale = parts[0].name != NULL;
    rc = rc < 0 || !has_scale ? rc : check_dims(m, &scale, import_value(m, x));
    const struct value like = *import_value(m, x);
    rc = rc < 0 ? rc : read_shift(m, node, n_dims, &like, &parts[1].name);
    if (rc == MS_OK && !has_scale && parts[1].name != NULL) {
        rc = import_fail(m, "it has a bias, and no scale that is trained");
    }
    if (rc < 0) {
        return rc;
    }
    json_t *keys =
        json_pack("{s:f, s:s, s:s}", "epsilon", epsilon, "gamma", has_scale ? "ones" : "none",
                  "beta", parts[1].name != NULL ? "zeros" : "none");
    rc = keys == NULL ? import_fail_memory(m)
         : has_scale  ? import_name_parts(m, parts, 2, 1, keys, name)
                      : MS_OK;
    if (rc < 0) {
        json_decref(keys);
        return rc;
    }
    rc = import_layer(m, kind, name, keys, x, &made);
    return rc < 0 ? rc : import_bind(m, node, 0, &made);
}

/* Of all values of a sample: rows, or images over channels, height and width. */
static int import_layer_norm(struct importer *m, const MsOnnx__Node *node)
{
    int64_t axis = -1;
    int x = import_input(m, node, 0);
    const int is_rows = x >= 0 && import_value(m, x)->n_dims == 2;
    x = x < NO_VALUE ? x : is_rows ? import_rows(m, node, 0) : import_image(m, node, 0);
    int rc = x < 0 ? x : attribute_int(m, node, "axis", -1, &axis);
    if (rc < 0) {
        return rc;
    }
    const int n_dims = import_value(m, x)->n_dims;
    if (axis != 1 && axis != 1 - n_dims) {
        return import_fail(m, "axis %lld: layer norms are over all values of a sample, from axis 1",
                           (long long)axis);
    }
    return bind_norm(m, node, "layer_norm", x, n_dims - 1);
}

static int import_instance_norm(struct importer *m, const MsOnnx__Node *node)
{
    int x = import_image(m, node, 0);
    return x < 0 ? x : bind_norm(m, node, "instance_norm", x, 1);
}

const struct node_op norm_ops[] = {
    {"BatchNormalization", 5, import_batch_norm, 0},
    {"LayerNormalization", 2, import_layer_norm, 0},
    {"InstanceNormalization", 3, import_instance_norm, 0},
    {NULL, 0, NULL, 0},
};
