/* node_resample.c - images of another size: zeros around them, and larger ones
 *
 * Zeros that are as many on both sides, and that one convolution alone reads, are its padding. */
#include "libworker/onnx/import.h"

#include <string.h>

static int is_text(const MsOnnx__Attribute *at, const char *text)
{
    return at != NULL && at->s.len == strlen(text) && memcmp(at->s.data, text, at->s.len) == 0;
}

static int64_t larger(int64_t size, int64_t factor, int64_t more)
{
    return size > 0 && size <= MS_IMAGE_SIDE_MAX ? size * factor + more : SIZE_UNKNOWN;
}

static void set_sides(struct value *value, int64_t height, int64_t width)
{
    const int64_t size[VIEW_AXES] = {value->view.size[AXIS_SAMPLE], value->view.size[AXIS_CHANNEL],
                                     height, width};
    const struct view view = view_whole(VIEW_IMAGES, size);
    import_set_view(value, &view);
}

/* ---- zeros around ---- */

/* Top, left, bottom, right. */
static int read_pads(struct importer *m, const MsOnnx__Node *node, int64_t ret[4])
{
    const struct value *pads = NULL;
    double with = 0;
    const MsOnnx__Attribute *mode = attribute_find(node, "mode");
    int number = import_input(m, node, 2);
    int axes = import_input(m, node, 3);
    int rc = import_failed(number) ? number : import_failed(axes) ? axes : MS_OK;
    rc = rc < 0 || number == NO_VALUE ? rc : import_number(m, number, &with);
    rc = rc < 0 ? rc : import_ints(m, import_input(m, node, 1), &pads);
    if (rc < 0) {
        return rc;
    }
    if ((mode != NULL && !is_text(mode, "constant")) || with != 0 || axes != NO_VALUE) {
        return import_fail(m,
                           "zeros are put around images, on all of their axes, and nothing else");
    }
    int fits = pads->n == 8 && pads->ints[0] == 0 && pads->ints[1] == 0 && pads->ints[4] == 0 &&
               pads->ints[5] == 0;
    for (int i = 0; i < 4 && fits; i++) {
        ret[i] = pads->ints[2 + i % 2 + (i / 2) * 4];
        fits = ret[i] >= 0 && ret[i] <= MS_IMAGE_SIDE_MAX;
    }
    return fits ? MS_OK
                : import_fail(m,
                              "images (n, c, h, w) get at most %d zeros above, below, left and "
                              "right, and are not cut",
                              MS_IMAGE_SIDE_MAX);
}

/* Does one convolution alone read output 0? */
static int is_of_conv(const struct importer *m, const MsOnnx__Node *node)
{
    const MsOnnx__Graph *graph = m->file->model->graph;
    const char *name = node->output[0];
    int is = 0;
    for (size_t i = 0; i < graph->n_node && !is; i++) {
        const MsOnnx__Node *reader = graph->node[i];
        is = strcmp(reader->op_type, "Conv") == 0 && reader->n_input > 0 &&
             strcmp(reader->input[0], name) == 0;
    }
    return is && json_integer_value(json_object_get(m->reads, name)) == 1;
}

void import_folded_pads(const struct importer *m, const MsOnnx__Node *node, int64_t pads[4])
{
    const json_t *folded = node->n_input > 0 ? json_object_get(m->pads, node->input[0]) : NULL;
    for (size_t i = 0; i < 4; i++) {
        pads[i] += json_integer_value(json_array_get(folded, i));
    }
}

int import_zeros_around(struct importer *m, int x, const int64_t pads[4], struct value *ret)
{
    json_t *keys =
        json_pack("{s:I, s:I, s:I, s:I}", "top", (json_int_t)pads[0], "bottom", (json_int_t)pads[2],
                  "left", (json_int_t)pads[1], "right", (json_int_t)pads[3]);
    int rc = import_layer(m, "pad", "", keys, x, ret);
    if (rc == MS_OK) {
        set_sides(ret, larger(ret->dim[2], 1, pads[0] + pads[2]),
                  larger(ret->dim[3], 1, pads[1] + pads[3]));
    }
    return rc;
}

static int import_pad(struct importer *m, const MsOnnx__Node *node)
{
    int64_t pads[4] = {0};
    int x = import_image(m, node, 0);
    int rc = x < 0 ? x : read_pads(m, node, pads);
    if (rc < 0) {
        return rc;
    }
    struct value made = *import_value(m, x);
    const int is_even = pads[0] == pads[2] && pads[1] == pads[3];
    const int is_folded = is_even && is_of_conv(m, node);
    if (is_folded || (is_even && pads[0] == 0 && pads[1] == 0)) {
        json_t *folded = json_pack("[I,I,I,I]", (json_int_t)pads[0], (json_int_t)pads[1],
                                   (json_int_t)pads[2], (json_int_t)pads[3]);
        rc = json_object_set_new(m->pads, node->output[0], folded);
        return rc < 0 ? import_fail_memory(m) : import_bind(m, node, 0, &made);
    }
    rc = import_zeros_around(m, x, pads, &made);
    return rc < 0 ? rc : import_bind(m, node, 0, &made);
}

/* ---- larger ones ---- */

/* Four numbers of an input: whole ones that are known, or an initializer. */
static int read_four(struct importer *m, int index, int64_t ret[4])
{
    const struct value *value = import_value(m, index);
    double reals[4] = {0};
    int fits = 0;
    if (value->kind == VALUE_PARAM) {
        int n = import_numbers(m, m->file->model->graph->initializer[value->tensor->index], reals,
                               NULL, 4);
        if (n < 0) {
            return n;
        }
        fits = n == 4;
    } else if (value->kind == VALUE_INTS || value->kind == VALUE_REAL) {
        fits = value->n == 4;
    }
    for (int i = 0; i < 4 && fits; i++) {
        const double real = value->kind == VALUE_PARAM ? reals[i] : value->real;
        const int is_whole = real >= 0 && real <= MS_IMAGE_SIDE_MAX && real == (double)(int)real;
        fits = value->kind == VALUE_INTS || is_whole;
        ret[i] = value->kind == VALUE_INTS ? value->ints[i] : fits ? (int64_t)real : 0;
    }
    return fits ? MS_OK
                : import_fail(m, "what it becomes is not four whole numbers: images become whole "
                                 "times as large");
}

/* Height and width, by scales or by sizes. */
static int read_factors(struct importer *m, const MsOnnx__Node *node, int x, int64_t ret[2])
{
    int64_t four[4] = {0};
    int scales = import_input(m, node, 2);
    int sizes = import_input(m, node, 3);
    if (import_failed(scales) || import_failed(sizes) || (scales < 0 && sizes < 0)) {
        return import_failed(scales)  ? scales
               : import_failed(sizes) ? sizes
                                      : import_fail(m, "it has neither scales nor sizes");
    }
    int rc = read_four(m, scales >= 0 ? scales : sizes, four);
    if (rc < 0) {
        return rc;
    }
    const struct value *value = import_value(m, x);
    for (int i = 0; i < 2; i++) {
        ret[i] = scales >= 0 ? four[2 + i] : size_over(four[2 + i], value->dim[2 + i]);
        if (ret[i] < 1 || ret[i] > MS_IMAGE_SIDE_MAX) {
            return import_fail(m,
                               "images become whole times as large: of %lld pixels it makes %lld",
                               (long long)value->dim[2 + i], (long long)four[2 + i]);
        }
    }
    const int keeps = scales >= 0 ? four[0] == 1 && four[1] == 1
                                  : four[0] == value->dim[0] && four[1] == value->dim[1];
    return keeps ? MS_OK : import_fail(m, "samples and channels stay as many as they are");
}

/* The layer's keys of how it goes; by whole factors every rounding finds the same nearest pixel. */
static json_t *keys_of(const MsOnnx__Node *node, const int64_t factors[2])
{
    const MsOnnx__Attribute *mode = attribute_find(node, "mode");
    const MsOnnx__Attribute *place = attribute_find(node, "coordinate_transformation_mode");
    const MsOnnx__Attribute *round = attribute_find(node, "nearest_mode");
    const int is_linear = is_text(mode, "linear");
    const int is_corners = is_text(place, "align_corners");
    const int is_half =
        place == NULL || is_text(place, "half_pixel") || is_text(place, "pytorch_half_pixel");
    const int is_rounded = round == NULL || is_text(round, "round_prefer_floor") ||
                           is_text(round, "round_prefer_ceil");
    const int is_floor = is_text(place, "asymmetric") && is_text(round, "floor");
    const int is_nearest =
        (mode == NULL || is_text(mode, "nearest")) && (is_floor || (is_half && is_rounded));
    return is_nearest ? json_pack("{s:[I,I], s:s}", "factor", (json_int_t)factors[0],
                                  (json_int_t)factors[1], "mode", "nearest")
           : is_linear && (is_half || is_corners)
               ? json_pack("{s:[I,I], s:s, s:b}", "factor", (json_int_t)factors[0],
                           (json_int_t)factors[1], "mode", "linear", "align_corners", is_corners)
               : NULL;
}

/* A policy makes other sizes of those that are given. */
static int keeps_sizes(const MsOnnx__Node *node)
{
    const MsOnnx__Attribute *policy = attribute_find(node, "keep_aspect_ratio_policy");
    return policy == NULL || is_text(policy, "stretch");
}

static int import_resize(struct importer *m, const MsOnnx__Node *node)
{
    int64_t factors[2] = {1, 1};
    int64_t antialias = 0;
    int x = import_image(m, node, 0);
    int rc = x < 0 ? x : read_factors(m, node, x, factors);
    rc = rc < 0 ? rc : attribute_int(m, node, "antialias", 0, &antialias);
    if (rc < 0) {
        return rc;
    }
    if (attribute_find(node, "axes") != NULL || !keeps_sizes(node)) {
        return import_fail(m, "it has axes, or a keep_aspect_ratio_policy other than stretch: what "
                              "it makes is said of all four dimensions, in their order");
    }
    struct value made = *import_value(m, x);
    if (factors[0] == 1 && factors[1] == 1) {
        return import_bind(m, node, 0, &made);
    }
    json_t *keys = antialias == 0 ? keys_of(node, factors) : NULL;
    if (keys == NULL) {
        return import_fail(m, "images become larger by the nearest pixel (asymmetric, floor), or "
                              "linearly (half_pixel, align_corners), without antialias");
    }
    rc = import_layer(m, "upsample", "", keys, x, &made);
    if (rc < 0) {
        return rc;
    }
    set_sides(&made, larger(made.dim[2], factors[0], 0), larger(made.dim[3], factors[1], 0));
    return import_bind(m, node, 0, &made);
}

const struct node_op resample_ops[] = {
    {"Pad", 2, import_pad, 0},
    {"Resize", 1, import_resize, 0},
    {NULL, 0, NULL, 0},
};
