/* node.c - ops that are layers: convolutions, dense layers, pools, dropout */
#include "libworker/onnx/import.h"

#include <stdio.h>
#include <string.h>

/* ---- names of parameters ---- */

static int is_name(const char *text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t n = strlen(text);
    return n > 0 && n <= MS_NAME_MAX && strchr(".-", text[0]) == NULL && strspn(text, allowed) == n;
}

/* "layer1.0.conv1" of layer1.0.conv1.weight; "": the parameter is not called so. */
static void stem_of(const char *name, const char *part, char ret[MS_NAME_MAX + 1])
{
    const size_t n = strlen(name);
    const size_t tail = strlen(part) + 1;
    ret[0] = '\0';
    if (n > tail && n - tail <= MS_NAME_MAX && name[n - tail] == '.' &&
        strcmp(name + n - tail + 1, part) == 0) {
        snprintf(ret, MS_NAME_MAX + 1, "%.*s", (int)(n - tail), name);
    }
}

int import_name_parts(struct importer *m, const struct part *parts, int n, int is_norm,
                      json_t *keys, char ret[MS_NAME_MAX + 1])
{
    char stem[MS_NAME_MAX + 1];
    int rc = 0;
    json_t *names = json_object();
    stem_of(parts[0].name, parts[0].theirs, ret);
    /* a file that was written here: elsewhere gamma is no word of a norm's */
    const int is_ours = ret[0] == '\0' && strcmp(m->file->model->producer_name, ONNX_PRODUCER) == 0;
    if (is_ours) {
        stem_of(parts[0].name, parts[0].ours, ret);
    }
    int follow = strcmp(ret, "input") != 0;
    for (int i = 0; i < n; i++) {
        if (parts[i].name == NULL) {
            continue;
        }
        if (!is_name(parts[i].name)) {
            json_decref(names);
            return import_fail(m,
                               "a parameter is called %.80s: names have letters, digits, dots, "
                               "dashes and underscores, at most %d",
                               parts[i].name, MS_NAME_MAX);
        }
        stem_of(parts[i].name, is_ours ? parts[i].ours : parts[i].theirs, stem);
        follow &= stem[0] != '\0' && strcmp(stem, ret) == 0 && !import_is_shared(m, parts[i].name);
        rc |= json_object_set_new(names, parts[i].ours, json_string(parts[i].name));
    }
    if (rc < 0) {
        json_decref(names);
        return import_fail_memory(m);
    }
    if (follow) {
        json_decref(names);
        names = is_norm && !is_ours ? json_string("torch") : NULL;
    } else {
        ret[0] = '\0';
    }
    const int has_word = !follow || (is_norm && !is_ours);
    return !has_word || json_object_set_new(keys, "parameters", names) == 0 ? MS_OK
                                                                            : import_fail_memory(m);
}

/* ---- windows ---- */

struct frame {
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    int is_same, is_ceil; /* more is padded at the end, as these say */
};

static json_t *pair(const int64_t of[2])
{
    return json_pack("[I,I]", (json_int_t)of[0], (json_int_t)of[1]);
}

/* floor((size + 2 padding - reach) / stride) + 1, with ceil one more where a rest is left; same:
 * ceil(size / stride). */
static int64_t window_size(const struct frame *f, int i, int64_t size, int64_t *ret_rest)
{
    if (f->is_same) {
        *ret_rest = 0;
        return (size + f->stride[i] - 1) / f->stride[i]; /* of a size that is known */
    }
    const int64_t reach = (f->kernel[i] - 1) * f->dilation[i] + 1;
    const int64_t free = size < 0 ? -1 : size + 2 * f->padding[i] - reach;
    *ret_rest = size < 0 || free < 0 ? 0 : free % f->stride[i];
    return size < 0 || free < 0 ? SIZE_UNKNOWN : free / f->stride[i] + 1;
}

/* same: of SAME_UPPER, as a layer has it, the odd pixel behind the image; of a ConvTranspose it
 * says something else. */
static int check_auto_pad(struct importer *m, const MsOnnx__Node *node, int64_t pads[4],
                          int *ret_same)
{
    const MsOnnx__Attribute *at = attribute_find(node, "auto_pad");
    const int is_valid = at != NULL && at->s.len == 5 && memcmp(at->s.data, "VALID", 5) == 0;
    *ret_same = at != NULL && at->s.len == 10 && memcmp(at->s.data, "SAME_UPPER", 10) == 0 &&
                strcmp(node->op_type, "Conv") == 0;
    if (is_valid || *ret_same) {
        memset(pads, 0, 4 * sizeof(pads[0]));
    }
    return at == NULL || is_valid || *ret_same ||
                   (at->s.len == 6 && memcmp(at->s.data, "NOTSET", 6) == 0)
               ? MS_OK
               : import_fail(m, "auto_pad is neither NOTSET nor VALID, nor SAME_UPPER of a Conv; "
                                "export it with the numbers of its padding");
}

/* What makes images of images. */
static void set_images(struct value *value, int64_t channels, int64_t height, int64_t width)
{
    const int64_t size[VIEW_AXES] = {value->view.size[AXIS_SAMPLE], channels,
                                     height > 0 ? height : SIZE_UNKNOWN,
                                     width > 0 ? width : SIZE_UNKNOWN};
    const struct view view = view_whole(VIEW_IMAGES, size);
    import_set_view(value, &view);
}

static json_t *padding_of(const struct frame *f)
{
    return f->is_same ? json_string("same") : pair(f->padding);
}

/* What is padded of axis i, before and behind the images, where padding is `same`; and what more
 * behind them for a pool's window over what is left. */
static void usual_pads(const struct frame *f, int i, int64_t size, int64_t ret_same[2],
                       int64_t *ret_ceil)
{
    int64_t rest = 0;
    const int64_t n = window_size(f, i, size, &rest);
    const int64_t reach = (f->kernel[i] - 1) * f->dilation[i] + 1;
    const int64_t steps = (size + f->stride[i] - 1) / f->stride[i] - 1;
    const int64_t total = steps * f->stride[i] + reach - size;
    ret_same[0] = total > 0 ? total / 2 : 0;
    ret_same[1] = total > 0 ? total - total / 2 : 0;
    *ret_ceil = rest > 0 && n * f->stride[i] < size + f->padding[i] ? f->stride[i] - rest : 0;
}

/* Pads that are not alike on both sides: those that a layer has for a word. */
static int read_uneven(struct importer *m, const MsOnnx__Node *node, const struct value *x,
                       const int64_t pads[4], struct frame *ret)
{
    int is_same = strcmp(node->op_type, "ConvTranspose") != 0;
    int is_ceil = strstr(node->op_type, "Pool") != NULL;
    for (int i = 0; i < 2; i++) {
        const int64_t size = x->dim[2 + i];
        int64_t same[2];
        int64_t more = 0;
        if (size < 1 || size > MS_IMAGE_SIDE_MAX) {
            is_same = is_ceil = 0;
            break;
        }
        usual_pads(ret, i, size, same, &more);
        is_same &= pads[i] == same[0] && pads[i + 2] == same[1];
        is_ceil &= pads[i + 2] == pads[i] + more;
    }
    ret->is_same = is_same;
    ret->is_ceil = is_ceil && !is_same;
    return is_same || is_ceil
               ? MS_OK
               : import_fail(m, "pads [%lld, %lld, %lld, %lld]: padding is as much on both sides",
                             (long long)pads[0], (long long)pads[1], (long long)pads[2],
                             (long long)pads[3]);
}

/* Of a node that reads x, but for its kernel. */
static int read_frame(struct importer *m, const MsOnnx__Node *node, int x, struct frame *ret)
{
    int64_t pads[4];
    int is_same = 0;
    int rc = attribute_ints(m, node, "strides", 2, 1, ret->stride);
    rc = rc < 0 ? rc : attribute_ints(m, node, "dilations", 2, 1, ret->dilation);
    rc = rc < 0 ? rc : attribute_ints(m, node, "pads", 4, 0, pads);
    rc = rc < 0 ? rc : check_auto_pad(m, node, pads, &is_same);
    if (rc < 0) {
        return rc;
    }
    import_folded_pads(m, node, pads);
    for (int i = 0; i < 2; i++) {
        const int is_size = ret->kernel[i] >= 1 && ret->kernel[i] <= MS_IMAGE_SIDE_MAX &&
                            ret->stride[i] >= 1 && ret->stride[i] <= MS_IMAGE_SIDE_MAX &&
                            ret->dilation[i] >= 1 && ret->dilation[i] <= MS_IMAGE_SIDE_MAX &&
                            pads[i] >= 0 && pads[i] <= MS_IMAGE_SIDE_MAX;
        if (!is_size) {
            return import_fail(m, "a window with a size that is none");
        }
        ret->padding[i] = pads[i];
    }
    ret->is_same = is_same;
    ret->is_ceil = 0;
    if (is_same && (pads[0] != 0 || pads[1] != 0)) {
        return import_fail(m, "auto_pad SAME_UPPER, with zeros put around its images before: "
                              "export it with the numbers of its padding");
    }
    return pads[0] == pads[2] && pads[1] == pads[3]
               ? MS_OK
               : read_uneven(m, node, import_value(m, x), pads, ret);
}

/* ---- convolutions and dense layers ---- */

int import_bias(struct importer *m, const MsOnnx__Node *node, size_t i, int64_t size,
                const char **ret_name)
{
    struct value bias;
    int index = import_input(m, node, i);
    *ret_name = NULL;
    if (index < 0) {
        return index == NO_VALUE ? MS_OK : index;
    }
    const struct value *value = import_value(m, index);
    if (value->kind == VALUE_REAL) {
        return value->real == 0 ? import_check_constant(m, value)
                                : import_fail(m, "its bias is a number, and not trained");
    }
    int rc = import_param(m, node, i, 1, &bias);
    if (rc == MS_OK && bias.dim[0] != size) {
        rc = import_fail(m, "its bias %.60s has %lld values, and %lld are wanted",
                         bias.tensor->name, (long long)bias.dim[0], (long long)size);
    }
    *ret_name = rc < 0 ? NULL : bias.tensor->name;
    return rc;
}

static json_t *conv_keys(const struct frame *f, int64_t out, int64_t groups, int has_bias)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:I, s:s}", "out", (json_int_t)out, "kernel",
                     pair(f->kernel), "stride", pair(f->stride), "padding", padding_of(f),
                     "dilation", pair(f->dilation), "groups", (json_int_t)groups, "bias",
                     has_bias ? "fan_in" : "none");
}

/* Of rows, or of each pixel of images. may_have_bias: a following Add may be it. */
static int bind_dense(struct importer *m, const MsOnnx__Node *node, int x,
                      const struct value *weight, const char *bias, int may_have_bias)
{
    struct value made;
    char name[MS_NAME_MAX + 1];
    const struct part parts[] = {{"weight", "weight", weight->tensor->name},
                                 {"bias", "bias", bias}};
    json_t *keys = json_pack("{s:I, s:s}", "out", (json_int_t)weight->dim[0], "bias",
                             bias != NULL ? "fan_in" : "none");
    if (import_value(m, x)->view.form == VIEW_IMAGES &&
        json_object_set_new(keys, "over", json_string("channels"))) {
        json_decref(keys);
        keys = NULL;
    }
    int rc = keys == NULL ? import_fail_memory(m) : import_name_parts(m, parts, 2, 0, keys, name);
    if (rc < 0) {
        json_decref(keys);
        return rc;
    }
    json_t *mine = json_incref(keys);
    rc = import_layer(m, "dense", name, keys, x, &made);
    json_decref(mine); /* the list has it */
    if (rc < 0) {
        return rc;
    }
    struct view view = made.view;
    view_set_channels(&view, weight->dim[0]);
    import_set_view(&made, &view);
    rc = import_bind(m, node, 0, &made);
    if (rc == MS_OK && may_have_bias) {
        import_value(m, (int)m->n_values - 1)->dense = mine;
    }
    return rc;
}

/* What the node says of its kernel is what the weight has. */
static int check_kernel(struct importer *m, const MsOnnx__Node *node, const struct frame *f)
{
    int64_t told[2] = {f->kernel[0], f->kernel[1]};
    const int is_told = attribute_find(node, "kernel_shape") != NULL;
    int rc = is_told ? attribute_ints(m, node, "kernel_shape", 2, 0, told) : MS_OK;
    return rc < 0 || (told[0] == f->kernel[0] && told[1] == f->kernel[1])
               ? rc
               : import_fail(m,
                             "its kernel_shape is [%lld, %lld], and its weight has [%lld, %lld]; "
                             "the file is damaged",
                             (long long)told[0], (long long)told[1], (long long)f->kernel[0],
                             (long long)f->kernel[1]);
}

/* A convolution of pixels alone whose weight is a matrix: what a dense layer over channels is. */
static int import_conv_of_matrix(struct importer *m, const MsOnnx__Node *node, int x)
{
    struct value weight;
    struct frame frame = {.kernel = {1, 1}};
    int64_t groups = 1;
    const char *bias = NULL;
    int rc = attribute_int(m, node, "group", 1, &groups);
    rc = rc < 0 ? rc : check_kernel(m, node, &frame);
    rc = rc < 0 ? rc : read_frame(m, node, x, &frame);
    if (rc < 0) {
        return rc;
    }
    if (groups != 1 || frame.stride[0] != 1 || frame.stride[1] != 1 || frame.padding[0] != 0 ||
        frame.padding[1] != 0) {
        return import_fail(m, "its weight is a matrix, of each pixel, and it has groups, strides "
                              "or padding");
    }
    rc = import_kernel_of_matrix(m, node, 1, &weight);
    rc = rc < 0 ? rc : import_bias(m, node, 2, weight.dim[0], &bias);
    return rc < 0 ? rc : bind_dense(m, node, x, &weight, bias, 0);
}

static int import_conv(struct importer *m, const MsOnnx__Node *node)
{
    struct value weight;
    struct value made;
    struct frame frame;
    int64_t groups = 1;
    int64_t rest = 0;
    char name[MS_NAME_MAX + 1];
    int x = import_image(m, node, 0);
    if (x >= 0 && import_is_kernel_of_matrix(m, import_input(m, node, 1))) {
        return import_conv_of_matrix(m, node, x);
    }
    int rc = x < 0 ? x : import_param(m, node, 1, 4, &weight);
    rc = rc < 0 ? rc : attribute_int(m, node, "group", 1, &groups);
    if (rc < 0) {
        return rc;
    }
    memcpy(frame.kernel, &weight.dim[2], sizeof(frame.kernel));
    rc = check_kernel(m, node, &frame);
    rc = rc < 0 ? rc : read_frame(m, node, x, &frame);
    struct part parts[] = {{"weight", "weight", weight.tensor->name}, {"bias", "bias", NULL}};
    rc = rc < 0 ? rc : import_bias(m, node, 2, weight.dim[0], &parts[1].name);
    if (rc < 0) {
        return rc;
    }
    json_t *keys = conv_keys(&frame, weight.dim[0], groups, parts[1].name != NULL);
    if (keys == NULL) {
        return import_fail_memory(m);
    }
    rc = import_name_parts(m, parts, 2, 0, keys, name);
    if (rc < 0) {
        json_decref(keys);
        return rc;
    }
    rc = import_layer(m, "conv2d", name, keys, x, &made);
    if (rc < 0) {
        return rc;
    }
    set_images(&made, weight.dim[0], window_size(&frame, 0, made.dim[2], &rest),
               window_size(&frame, 1, made.dim[3], &rest));
    return import_bind(m, node, 0, &made);
}

/* (size - 1) stride + reach - 2 padding + more. */
static int64_t widened_size(const struct frame *f, int i, int64_t size, int64_t more)
{
    const int64_t reach = (f->kernel[i] - 1) * f->dilation[i] + 1;
    const int64_t least = reach - 2 * f->padding[i] + more;
    return size <= 0 || size > MS_IMAGE_SIDE_MAX ? SIZE_UNKNOWN : (size - 1) * f->stride[i] + least;
}

/* The weight is (in, out / groups, h, w). */
static int import_conv_transpose(struct importer *m, const MsOnnx__Node *node)
{
    struct value weight;
    struct value made;
    struct frame frame;
    int64_t groups = 1;
    int64_t more[2];
    int64_t out = 0;
    char name[MS_NAME_MAX + 1];
    int x = import_image(m, node, 0);
    int rc = x < 0 ? x : import_param(m, node, 1, 4, &weight);
    rc = rc < 0 ? rc : attribute_int(m, node, "group", 1, &groups);
    rc = rc < 0 ? rc : attribute_ints(m, node, "output_padding", 2, 0, more);
    if (rc == MS_OK && attribute_find(node, "output_shape") != NULL) {
        rc = import_fail(m, "it has an output_shape; export it with the numbers of its padding");
    }
    if (rc == MS_OK && (groups < 1 || __builtin_mul_overflow(weight.dim[1], groups, &out))) {
        rc = import_fail(m, "it has %lld groups", (long long)groups);
    }
    if (rc < 0) {
        return rc;
    }
    memcpy(frame.kernel, &weight.dim[2], sizeof(frame.kernel));
    rc = check_kernel(m, node, &frame);
    rc = rc < 0 ? rc : read_frame(m, node, x, &frame);
    struct part parts[] = {{"weight", "weight", weight.tensor->name}, {"bias", "bias", NULL}};
    rc = rc < 0 ? rc : import_bias(m, node, 2, out, &parts[1].name);
    if (rc < 0) {
        return rc;
    }
    json_t *keys = conv_keys(&frame, out, groups, parts[1].name != NULL);
    rc = keys != NULL && json_object_set_new(keys, "output_padding", pair(more)) == 0
             ? import_name_parts(m, parts, 2, 0, keys, name)
             : import_fail_memory(m);
    if (rc < 0) {
        json_decref(keys);
        return rc;
    }
    rc = import_layer(m, "conv_transpose2d", name, keys, x, &made);
    if (rc < 0) {
        return rc;
    }
    set_images(&made, out, widened_size(&frame, 0, made.dim[2], more[0]),
               widened_size(&frame, 1, made.dim[3], more[1]));
    return import_bind(m, node, 0, &made);
}

int import_name_bias(struct importer *m, json_t *keys, const char *bias)
{
    char stem[MS_NAME_MAX + 1];
    json_t *names = json_object_get(keys, "parameters");
    const char *name = json_string_value(json_object_get(keys, "name"));
    stem_of(bias, "bias", stem);
    if (!is_name(bias)) {
        return import_fail(m,
                           "a parameter is called %.80s: names have letters, digits, dots, dashes "
                           "and underscores, at most %d",
                           bias, MS_NAME_MAX);
    }
    int rc = json_object_set_new(keys, "bias", json_string("fan_in"));
    if (rc == 0 && (name == NULL || strcmp(stem, name) != 0)) {
        rc = names != NULL
                 ? json_object_set_new(names, "bias", json_string(bias))
                 : json_object_set_new(keys, "parameters", json_pack("{s:s}", "bias", bias));
    }
    return rc == 0 ? MS_OK : import_fail_memory(m);
}

static int import_gemm(struct importer *m, const MsOnnx__Node *node)
{
    struct value weight;
    const char *bias = NULL;
    int64_t flip[2] = {0, 0};
    double scale[2] = {1, 1};
    int x = import_tokens(m, node, 0);
    int rc = x < 0 ? x : attribute_int(m, node, "transA", 0, &flip[0]);
    rc = rc < 0 ? rc : attribute_int(m, node, "transB", 0, &flip[1]);
    rc = rc < 0 ? rc : attribute_real(m, node, "alpha", 1, &scale[0]);
    rc = rc < 0 ? rc : attribute_real(m, node, "beta", 1, &scale[1]);
    rc = rc < 0 ? rc : import_param(m, node, 1, 2, &weight);
    if (rc < 0) {
        return rc;
    }
    if (flip[0] != 0 || scale[0] != 1 || scale[1] != 1) {
        return import_fail(m, "transA %lld, alpha %g, beta %g: a dense layer has neither",
                           (long long)flip[0], scale[0], scale[1]);
    }
    if ((flip[1] != 0) == weight.is_transposed) {
        return import_fail(m, "its weight %.60s is (in, out), and a dense layer has (out, in)%s",
                           weight.tensor->name,
                           strncmp(weight.tensor->name, "onnx::", 6) == 0
                               ? ": export it with do_constant_folding=False"
                               : "");
    }
    rc = import_bias(m, node, 2, weight.dim[0], &bias);
    return rc < 0 ? rc : bind_dense(m, node, x, &weight, bias, 0);
}

static int import_matmul(struct importer *m, const MsOnnx__Node *node)
{
    struct value weight;
    int x = import_need(m, node, 0);
    int by = x < 0 ? x : import_need(m, node, 1);
    if (by < 0) {
        return by;
    }
    if (import_value(m, by)->kind == VALUE_LAYER) {
        return import_attend(m, node, x, by);
    }
    x = import_tokens(m, node, 0);
    int rc = x < 0 ? x : import_param(m, node, 1, 2, &weight);
    if (rc < 0) {
        return rc;
    }
    if (!weight.is_transposed) {
        return import_fail(m,
                           "its weight %.60s is (in, out), and a dense layer has (out, in): "
                           "export it with do_constant_folding=False, or use nn.Linear",
                           weight.tensor->name);
    }
    return bind_dense(m, node, x, &weight, NULL, 1);
}

/* ---- pools ---- */

/* With a window more for what is left, but for one that would begin behind the image. */
static int64_t pool_size(const struct frame *f, int i, int64_t size, int64_t is_ceil)
{
    int64_t rest = 0;
    const int64_t n = window_size(f, i, size, &rest);
    return n + (n > 0 && is_ceil != 0 && rest > 0 && n * f->stride[i] < size + f->padding[i]);
}

/* Padding that counts in means is zeros around the images, whose window has none; what makes them,
 * as a value. One more window, for what is left, may begin in the zeros before an image, and not in
 * those behind it. */
static int pad_for_means(struct importer *m, int x, struct frame *f, int64_t is_ceil)
{
    const int64_t pads[4] = {f->padding[0], f->padding[1], f->padding[0], f->padding[1]};
    const struct frame with = *f;
    const struct value of = *import_value(m, x);
    struct value padded;
    char own[32];
    if (f->is_same || f->is_ceil) {
        return import_fail(m, "padding counts in its means, and is not as much on both sides; "
                              "export it with count_include_pad=False");
    }
    f->padding[0] = f->padding[1] = 0;
    for (int i = 0; i < 2 && is_ceil != 0; i++) {
        const int64_t size = of.dim[2 + i];
        if (size < 0 ||
            pool_size(&with, i, size, 1) != pool_size(f, i, size + 2 * with.padding[i], 1)) {
            return import_fail(m,
                               "padding counts in its means, and with ceil_mode a window %s begin "
                               "in the zeros behind the image; export it with ceil_mode=False or "
                               "count_include_pad=False",
                               size < 0 ? "may" : "would");
        }
    }
    int rc = import_zeros_around(m, x, pads, &padded);
    snprintf(own, sizeof(own), "\t%zu", m->n_values); /* no name that a file can have */
    return rc < 0 ? rc : import_keep(m, own, &padded);
}

static int import_pool(struct importer *m, const MsOnnx__Node *node)
{
    const int is_max = strcmp(node->op_type, "MaxPool") == 0;
    struct frame frame;
    struct value made;
    int64_t padding_counts = 0;
    int64_t is_ceil = 0;
    int x = import_image(m, node, 0);
    int rc = x < 0 ? x : attribute_ints(m, node, "kernel_shape", 2, 0, frame.kernel);
    rc = rc < 0 ? rc : read_frame(m, node, x, &frame);
    rc = rc < 0 ? rc : attribute_int(m, node, "ceil_mode", 0, &is_ceil);
    rc = rc < 0 ? rc : attribute_int(m, node, "count_include_pad", 0, &padding_counts);
    if (rc < 0) {
        return rc;
    }
    is_ceil |= frame.is_ceil; /* as numbers: so padded, floor and ceil are one */
    if (frame.dilation[0] != 1 || frame.dilation[1] != 1) {
        return import_fail(m, "pools have no dilation");
    }
    const int is_padded =
        frame.padding[0] != 0 || frame.padding[1] != 0 || frame.is_same || frame.is_ceil;
    if (!is_max && padding_counts != 0 && is_padded) {
        x = pad_for_means(m, x, &frame, is_ceil);
        if (x < 0) {
            return x;
        }
    }
    const int is_nothing = frame.kernel[0] == 1 && frame.kernel[1] == 1 && frame.stride[0] == 1 &&
                           frame.stride[1] == 1 && frame.padding[0] == 0 && frame.padding[1] == 0;
    if (is_nothing) { /* an adaptive one, of images that have its size */
        const struct value same = *import_value(m, x);
        return import_bind(m, node, 0, &same);
    }
    json_t *keys = json_pack("{s:o, s:o, s:o}", "kernel", pair(frame.kernel), "stride",
                             pair(frame.stride), "padding", padding_of(&frame));
    if (keys != NULL && is_ceil != 0 && json_object_set_new(keys, "ceil", json_true()) < 0) {
        json_decref(keys);
        keys = NULL;
    }
    rc = import_layer(m, is_max ? "max_pool" : "avg_pool", "", keys, x, &made);
    if (rc < 0) {
        return rc;
    }
    set_images(&made, made.dim[1], pool_size(&frame, 0, made.dim[2], is_ceil),
               pool_size(&frame, 1, made.dim[3], is_ceil));
    return import_bind(m, node, 0, &made);
}

/* ---- the rest ---- */

/* Of attention's weights. */
static int drop_scores(struct importer *m, const MsOnnx__Node *node, int x, double rate)
{
    struct value scores = *import_value(m, x);
    if (!scores.is_soft || scores.rate != 0) {
        return import_fail(m, "weights of attention are dropped behind their softmax, once");
    }
    scores.rate = rate;
    return import_bind(m, node, 0, &scores);
}

/* What is dropped in training: of a model that was exported for evaluation, too. */
static int import_dropout(struct importer *m, const MsOnnx__Node *node)
{
    double rate = 0.5;
    struct value made;
    int x = import_need(m, node, 0);
    int ratio = x < 0 ? x : import_input(m, node, 1);
    int rc = import_failed(ratio) ? ratio : MS_OK;
    rc = rc < 0 ? rc : attribute_real(m, node, "ratio", 0.5, &rate);
    rc = rc < 0 || ratio == NO_VALUE ? rc : import_number(m, ratio, &rate);
    const int is_scores = x >= 0 && import_value(m, x)->kind == VALUE_SCORES;
    if (rc == MS_OK && import_value(m, x)->kind != VALUE_LAYER && !is_scores) {
        rc = import_fail(m, "its input is nothing that is made of the data");
    }
    if (rc == MS_OK && !(rate >= 0 && rate <= 0.9999)) {
        rc = import_fail(m, "its ratio %g is not from 0 to 0.9999", rate);
    }
    if (rc == MS_OK && is_scores) {
        return drop_scores(m, node, x, rate);
    }
    rc = rc < 0 ? rc : import_settle(m, x);
    if (rc < 0) {
        return rc;
    }
    made = *import_value(m, x);
    rc = rate == 0 ? MS_OK
                   : import_layer(m, "dropout", "", json_pack("{s:f}", "rate", rate), x, &made);
    return rc < 0 ? rc : import_bind(m, node, 0, &made);
}

/* From opset 13 on it is over that axis, the last one where nothing is said. Before, it is over all
 * values from the axis on, 1 where nothing is said: the same where only dimensions of 1 follow. */
static int read_softmax_axis(struct importer *m, const MsOnnx__Node *node, const struct value *x,
                             int64_t *ret)
{
    const int is_whole = m->file->opset < 13;
    int rc = attribute_int(m, node, "axis", is_whole ? 1 : -1, ret);
    const int axis = rc < 0 ? -1 : import_axis(*ret, x->n_dims);
    int is_one = 1;
    for (int i = axis + 1; axis >= 0 && i < x->n_dims; i++) {
        is_one &= x->dim[i] == 1;
    }
    return rc < 0 || !is_whole || is_one
               ? rc
               : import_fail(
                     m,
                     "axis %lld: before opset 13 softmax is over all values from there on, "
                     "of %d dimensions, and over one here: export it with opset 13 or later",
                     (long long)*ret, x->n_dims - axis);
}

static int soften_scores(struct importer *m, const MsOnnx__Node *node, int x)
{
    int64_t axis = -1;
    struct value scores = *import_value(m, x);
    int rc = read_softmax_axis(m, node, &scores, &axis);
    if (rc == MS_OK && (scores.is_soft || import_axis(axis, scores.n_dims) != scores.n_dims - 1)) {
        rc = import_fail(m, "axis %lld: attention's softmax is over keys, the last one",
                         (long long)axis);
    }
    scores.is_soft = 1;
    return rc < 0 ? rc : import_bind(m, node, 0, &scores);
}

/* Over the values of a row, or the channels of a pixel or a token. */
static int import_softmax(struct importer *m, const MsOnnx__Node *node)
{
    int64_t axis = -1;
    struct value made;
    const MsOnnx__Graph *graph = m->file->model->graph;
    if (graph->n_output > 0 && strcmp(node->output[0], graph->output[0]->name) == 0) {
        return import_fail(m, "the loss has it: let the model end in what goes into it");
    }
    int x = import_need(m, node, 0);
    if (x >= 0 && import_value(m, x)->kind == VALUE_SCORES) {
        return soften_scores(m, node, x);
    }
    const int n = x >= 0 ? import_value(m, x)->n_dims : 0;
    x = x < 0    ? x
        : n == 2 ? import_rows(m, node, 0)
        : n == 3 ? import_sequence(m, node, 0)
                 : import_image(m, node, 0);
    int rc = x < 0 ? x : read_softmax_axis(m, node, import_value(m, x), &axis);
    if (rc == MS_OK && import_axis(axis, n) != (n == 3 ? 2 : 1)) {
        rc = import_fail(m, "axis %lld: softmax is over the values of a row, or over channels",
                         (long long)axis);
    }
    rc = rc < 0 ? rc : import_layer(m, "softmax", "", json_object(), x, &made);
    return rc < 0 ? rc : import_bind(m, node, 0, &made);
}

/* Of an initializer: a parameter of its own (file.c). */
static int import_identity(struct importer *m, const MsOnnx__Node *node)
{
    if (onnx_find(m->file, node->output[0]) != NULL) {
        return MS_OK;
    }
    int x = import_need(m, node, 0);
    if (x < 0) {
        return x;
    }
    const struct value same = *import_value(m, x);
    if (same.kind != VALUE_LAYER) {
        return import_bind(m, node, 0, &same);
    }
    int rc = import_make(m, x);
    const struct value made = *import_value(m, x);
    return rc < 0 ? rc : import_bind(m, node, 0, &made);
}

const struct node_op layer_ops[] = {
    {"Conv", 2, import_conv, 0},         {"ConvTranspose", 2, import_conv_transpose, 0},
    {"Gemm", 2, import_gemm, 0},         {"MatMul", 2, import_matmul, 0},
    {"MaxPool", 1, import_pool, 0},      {"AveragePool", 1, import_pool, 0},

    {"Dropout", 1, import_dropout, 0},   {"Softmax", 1, import_softmax, 0},
    {"Identity", 1, import_identity, 0}, {NULL, 0, NULL, 0},
};
