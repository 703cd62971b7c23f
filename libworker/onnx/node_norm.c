/* node_norm.c - norms: of a batch, and of a sample's own values */
#include "libworker/onnx/import.h"

#include <string.h>

/* ---- batch norm ---- */

enum { NORM_GAMMA = 1, NORM_MEAN = 3, NORM_VARIANCE = 4 }; /* inputs */

/* Has the norm called the other one's module again? Then both have one statistic i: by its name, as
 * what the other one makes of it, or, of PyTorch's newer exporter, by an Identity of it that is
 * named as no module's is. The older one gives modules whose numbers are alike the same
 * initializer, and each its own name for it by such an Identity. */
static int is_again(const struct importer *m, const MsOnnx__Node *node, const MsOnnx__Node *other,
                    size_t i)
{
    const char *name = node->input[i];
    const struct onnx_tensor *of = onnx_find(m->file, name);
    const int is_made = other->n_output > i - 2 && strcmp(other->output[i - 2], name) == 0;
    const int is_same = of != NULL && strcmp(name, other->input[i]) == 0;
    const int is_copy =
        of != NULL && !is_same &&
        strcmp(m->file->model->graph->initializer[of->index]->name, other->input[i]) == 0;
    return (is_made && name[0] != '\0') || is_same ||
           (is_copy && (strncmp(name, "getitem", 7) == 0 ||
                        strcmp(node->input[NORM_GAMMA], other->input[NORM_GAMMA]) == 0));
}

/* One that is called twice has one pair of statistics, which both calls move. */
static int refuse_called_again(struct importer *m, const MsOnnx__Node *node)
{
    const MsOnnx__Graph *graph = m->file->model->graph;
    for (size_t k = 0; k < graph->n_node && graph->node[k] != node; k++) {
        const MsOnnx__Node *other = graph->node[k];
        if (strcmp(other->op_type, node->op_type) != 0 || other->n_input <= NORM_VARIANCE) {
            continue;
        }
        for (size_t i = NORM_MEAN; i <= NORM_VARIANCE; i++) {
            if (is_again(m, node, other, i)) {
                return import_fail(
                    m,
                    "it is called twice, for node %.60s moves the statistic %.60s, too; "
                    "give each call a module of its own",
                    other->name[0] != '\0' ? other->name : other->output[0], other->input[i]);
            }
        }
    }
    return MS_OK;
}

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
    int x = import_need(m, node, 0);
    if (x >= 0 && import_value(m, x)->kind == VALUE_LAYER && import_value(m, x)->n_dims == 2) {
        return import_fail(m, "it is of rows (BatchNorm1d), and batch_norm is of images: norm them "
                              "before they are flattened, or without statistics of the batch");
    }
    x = x < 0 ? x : import_image(m, node, 0);
    int rc = x < 0 ? x : refuse_called_again(m, node);
    rc = rc < 0 ? rc : attribute_real(m, node, "epsilon", 1e-5, &epsilon);
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
        return index == NO_VALUE ? import_fail(m, "it has no scale") : index;
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

/* first: the dimension of x that the first one of the part goes along. */
static int check_dims(struct importer *m, const struct value *part, const struct value *x,
                      int first)
{
    int same = 1;
    for (int i = 0; i < part->n_dims; i++) {
        same &= part->dim[i] == x->dim[first + i];
    }
    return same ? MS_OK
                : import_fail(m, "%.60s has not the shape of its input's samples",
                              part->tensor->name);
}

/* A shift that is trained, or none, of the shape that the scale has. */
static int read_shift(struct importer *m, const MsOnnx__Node *node, int n_dims,
                      const struct value *x, int first, const char **ret_name)
{
    struct value shift;
    *ret_name = NULL;
    if (n_dims == 1) {
        return import_bias(m, node, 2, x->dim[first], ret_name);
    }
    int index = import_input(m, node, 2);
    if (index < 0 || import_value(m, index)->kind == VALUE_REAL) {
        return index == NO_VALUE ? MS_OK
               : index < 0       ? index
                                 : import_fail(m, "its bias is a number, and not trained");
    }
    int rc = import_param(m, node, 2, n_dims, &shift);
    rc = rc < 0 ? rc : check_dims(m, &shift, x, first);
    *ret_name = rc < 0 ? NULL : shift.tensor->name;
    return rc;
}

/* A layer of that kind with a scale and a shift of n_dims, from dimension `first` of x on; groups
 * 0: it has none. */
static int bind_norm(struct importer *m, const MsOnnx__Node *node, const char *kind, int x,
                     int first, int n_dims, int64_t groups)
{
    struct part parts[] = {{"weight", "gamma", NULL}, {"bias", "beta", NULL}};
    struct value scale;
    struct value made;
    double epsilon = 0;
    char name[MS_NAME_MAX + 1] = "";
    int rc = attribute_real(m, node, "epsilon", 1e-5, &epsilon);
    rc = rc < 0 ? rc : read_scale(m, node, n_dims, &scale, &parts[0].name);
    const int has_scale = parts[0].name != NULL;
    rc = rc < 0 || !has_scale ? rc : check_dims(m, &scale, import_value(m, x), first);
    const struct value like = *import_value(m, x);
    rc = rc < 0 ? rc : read_shift(m, node, n_dims, &like, first, &parts[1].name);
    const int is_over_channels = first == like.n_dims - 1 && like.view.form != VIEW_ROWS;
    if (rc == MS_OK && !has_scale && parts[1].name != NULL) {
        rc = import_fail(m, "it has a bias, and no scale that is trained");
    }
    if (rc < 0) {
        return rc;
    }
    json_t *keys =
        json_pack("{s:f, s:s, s:s}", "epsilon", epsilon, "gamma", has_scale ? "ones" : "none",
                  "beta", parts[1].name != NULL ? "zeros" : "none");
    const int is_told =
        keys != NULL &&
        (!is_over_channels || json_object_set_new(keys, "over", json_string("channels")) == 0) &&
        (groups == 0 || json_object_set_new(keys, "groups", json_integer(groups)) == 0);
    rc = !is_told    ? import_fail_memory(m)
         : has_scale ? import_name_parts(m, parts, 2, 1, keys, name)
                     : MS_OK;
    if (rc < 0) {
        json_decref(keys);
        return rc;
    }
    rc = import_layer(m, kind, name, keys, x, &made);
    return rc < 0 ? rc : import_bind(m, node, 0, &made);
}

/* Of all values of a sample: rows, images over channels, height and width, or tokens and channels;
 * of what has its channels last, over those of each pixel or token. */
static int import_layer_norm(struct importer *m, const MsOnnx__Node *node)
{
    int64_t axis = -1;
    int x = import_need(m, node, 0);
    const int n = x >= 0 ? import_value(m, x)->n_dims : 0;
    int rc = x < 0 ? x : attribute_int(m, node, "axis", -1, &axis);
    if (rc < 0) {
        return rc;
    }
    const int is_rows = n == 2 && import_value(m, x)->view.form == VIEW_ROWS;
    const int is_last = n > 1 && !is_rows && import_axis(axis, n) == n - 1 &&
                        !view_is_whole(&import_value(m, x)->view, VIEW_IMAGES);
    x = is_rows   ? import_rows(m, node, 0)
        : is_last ? import_tokens(m, node, 0)
        : n == 3  ? import_sequence(m, node, 0)
                  : import_image(m, node, 0);
    if (x < 0) {
        return x;
    }
    const int n_dims = import_value(m, x)->n_dims;
    const int first = is_last ? n_dims - 1 : 1;
    if (axis != first && axis != first - n_dims) {
        return import_fail(m,
                           "axis %lld: layer norms are over all values of a sample, from axis 1, "
                           "or over channels that are last",
                           (long long)axis);
    }
    return bind_norm(m, node, "layer_norm", x, first, n_dims - first, 0);
}

/* ---- groups, as exporters have them below opset 21 ----
 *
 * An InstanceNormalization of (n, groups, -1), seen in its input's shape again, times a parameter
 * (c, 1, 1), plus another one. Each of the last two follows alone on what it is a part of. */

void import_keep_norm(struct importer *m, const MsOnnx__Node *node, json_t *norm, const char *gamma)
{
    struct value *value = import_value(m, (int)m->n_values - 1);
    const json_int_t n = json_integer_value(json_object_get(m->reads, node->output[0]));
    value->norm = n == 1 ? norm : NULL;
    value->gamma = gamma;
}

/* Is it (n, groups, everything else) of images or rows? Their number; 0: it is not. */
static int64_t groups_of(const struct value *x)
{
    const int64_t sizes[] = {0, x->dim[1], -1};
    struct view grouped = view_whole(x->view.form, x->view.size);
    const int is = x->n_dims == 3 && x->dim[1] > 0 && x->view.form != VIEW_SEQUENCE &&
                   view_reshape(&grouped, sizes, 3) == 0 && view_equal(&grouped, &x->view);
    return is ? x->dim[1] : 0;
}

static int is_all(const struct importer *m, int value, double number)
{
    return value >= 0 && import_value(m, value)->kind == VALUE_REAL &&
           import_value(m, value)->real == number;
}

static int bind_groups(struct importer *m, const MsOnnx__Node *node, int x, int64_t groups)
{
    struct value made;
    double epsilon = 0;
    int rc = attribute_real(m, node, "epsilon", 1e-5, &epsilon);
    if (rc < 0) {
        return rc;
    }
    json_t *keys = json_pack("{s:I, s:f, s:s, s:s}", "groups", (json_int_t)groups, "epsilon",
                             epsilon, "gamma", "none", "beta", "none");
    json_t *mine = json_incref(keys);
    rc = import_layer(m, "group_norm", "", keys, x, &made);
    json_decref(mine); /* the list has it */
    rc = rc < 0 ? rc : import_bind(m, node, 0, &made);
    if (rc == MS_OK) {
        import_keep_norm(m, node, mine, NULL);
    }
    return rc;
}

/* The parameter is of each channel, as the next part of the norm. */
static int is_affine(const struct importer *m, const struct value *norm, const struct value *part,
                     enum fn fn)
{
    int is_of_channels = !part->is_repeated && !part->is_transposed;
    for (int i = 1; i < part->n_dims; i++) {
        is_of_channels &= part->dim[i] == 1;
    }
    return is_of_channels && norm->norm != NULL && norm->at == json_array_size(m->layers) &&
           fn == (norm->gamma == NULL ? FN_MUL : FN_ADD) && part->kind == VALUE_PARAM &&
           part->n_dims == norm->n_dims - 1 && part->tensor->n_dims == 1 &&
           part->dim[0] == norm->view.size[AXIS_CHANNEL] &&
           view_is_whole(&norm->view, norm->view.form);
}

int import_take_affine(struct importer *m, const MsOnnx__Node *node, enum fn fn, int a, int b)
{
    const int x = import_value(m, a)->norm != NULL ? a : b;
    struct value norm = *import_value(m, x);
    struct value part;
    char name[MS_NAME_MAX + 1];
    if (!is_affine(m, &norm, import_value(m, x == a ? b : a), fn)) {
        return 0;
    }
    int rc = import_of_channels(m, node, x == a ? 1 : 0, norm.n_dims - 1, &part);
    if (rc < 0) {
        return rc;
    }
    const int is_scale = norm.gamma == NULL;
    json_t *keys = norm.norm;
    const char *gamma = is_scale ? part.tensor->name : norm.gamma;
    const struct part parts[] = {{"weight", "gamma", gamma},
                                 {"bias", "beta", is_scale ? NULL : part.tensor->name}};
    rc = import_name_parts(m, parts, 2, 1, keys, name);
    if (rc == MS_OK && is_scale && name[0] != '\0') {
        rc = import_rename(m, "group_norm", name, keys, &norm);
    }
    if (rc == MS_OK && json_object_set_new(keys, is_scale ? "gamma" : "beta",
                                           json_string(is_scale ? "ones" : "zeros")) < 0) {
        rc = import_fail_memory(m);
    }
    rc = rc < 0 ? rc : import_bind(m, node, 0, &norm);
    if (rc == MS_OK && is_scale) {
        import_keep_norm(m, node, keys, gamma);
    }
    return rc < 0 ? rc : 1;
}

static int import_instance_norm(struct importer *m, const MsOnnx__Node *node)
{
    int x = import_input(m, node, 0);
    const int scale = import_input(m, node, 1);
    const int shift = import_input(m, node, 2);
    if (x >= 0 && import_value(m, x)->kind == VALUE_LAYER && import_value(m, x)->n_dims == 3 &&
        is_all(m, scale, 1) && is_all(m, shift, 0)) {
        int rc = import_settle(m, x);
        const int64_t groups = rc < 0 ? 0 : groups_of(import_value(m, x));
        if (rc < 0 || groups > 0) {
            return rc < 0 ? rc : bind_groups(m, node, x, groups);
        }
    }
    x = import_image(m, node, 0);
    return x < 0 ? x : bind_norm(m, node, "instance_norm", x, 1, 1, 0);
}

/* Up to opset 20 scale and shift are of groups, and no layer has those. */
static int import_group_norm(struct importer *m, const MsOnnx__Node *node)
{
    int64_t groups = 0;
    int x = import_image(m, node, 0);
    int rc = x < 0 ? x : attribute_int(m, node, "num_groups", 0, &groups);
    if (rc == MS_OK && (groups < 1 || m->file->opset < 21)) {
        rc = import_fail(m, groups < 1 ? "its num_groups is no number of groups"
                                       : "its scale is of groups: export with opset 21");
    }
    return rc < 0 ? rc : bind_norm(m, node, "group_norm", x, 1, 1, groups);
}

const struct node_op norm_ops[] = {
    {"BatchNormalization", 5, import_batch_norm, 0},
    {"LayerNormalization", 2, import_layer_norm, 0},
    {"InstanceNormalization", 3, import_instance_norm, 0},
    {"GroupNormalization", 3, import_group_norm, 0},
    {NULL, 0, NULL, 0},
};
