/* node_part.c - ops that take parts: of shapes, of what layers make, of parameters */
#include "libworker/onnx/import.h"

#include <string.h>

/* ---- of shapes ---- */

static int gather_ints(struct importer *m, const MsOnnx__Node *node)
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
        const int from = import_axis(at->ints[i], of->n);
        if (from < 0 || import_axis(axis, 1) < 0) {
            return import_fail(m, "a place in a shape that it has not");
        }
        ints[i] = of->ints[from];
    }
    return rc < 0 ? rc : import_bind_ints(m, node, ints, at->n, at->n_dims == 0);
}

static int slice_ints(struct importer *m, const MsOnnx__Node *node)
{
    const struct value *part[5] = {NULL};
    int64_t ints[INTS_MAX];
    int n = 0;
    int in[5];
    int rc = MS_OK;
    for (size_t i = 0; i < 5 && rc == MS_OK; i++) {
        in[i] = import_input(m, node, i);
        rc = import_failed(in[i]) ? in[i] : MS_OK;
    }
    for (int i = 0; i < 5 && rc == MS_OK; i++) {
        rc = in[i] == NO_VALUE ? MS_OK : import_ints(m, in[i], &part[i]);
    }
    if (rc < 0) {
        return rc;
    }
    if (part[0] == NULL || part[1] == NULL || part[2] == NULL || part[1]->n != 1 ||
        part[2]->n != 1 ||
        (part[3] != NULL && (part[3]->n != 1 || import_axis(part[3]->ints[0], 1))) ||
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
    return import_bind_ints(m, node, ints, n, 0);
}

/* ---- of what layers make ---- */

/* Value x as a layer, with shuffled channels in their places, that a part of it may be seen. */
static int read_whole(struct importer *m, int x, int64_t axis, int *ret_dim)
{
    int64_t count = 0;
    int64_t groups = 1;
    int rc = import_make(m, x);
    const struct view *view = &import_value(m, x)->view;
    if (rc == MS_OK && view_channels(view, &count, &groups) == 0 && groups > 1) {
        rc = import_settle(m, x);
    }
    *ret_dim = import_axis(axis, import_value(m, x)->n_dims);
    return rc < 0 || *ret_dim >= 0 ? rc : import_fail(m, "an axis that its input has not");
}

/* Places from `begin` on of a dimension, as output i. */
static int bind_part(struct importer *m, const MsOnnx__Node *node, size_t i, int x, int dim,
                     int64_t begin, int64_t count)
{
    struct value part = *import_value(m, x);
    struct view view = part.view;
    if (view_cut(&view, dim, begin, count) < 0) {
        return import_fail(m,
                           "places %lld to %lld of dimension %d: parts are taken of channels, "
                           "and one token of a sequence",
                           (long long)begin, (long long)(begin + count - 1), dim);
    }
    import_set_view(&part, &view);
    part.expr = NO_VALUE;
    return import_bind(m, node, i, &part);
}

int import_take_part(struct importer *m, const MsOnnx__Node *node, int x)
{
    const struct value *at = NULL;
    int64_t axis = 0;
    int dim = 0;
    int rc = import_ints(m, import_input(m, node, 1), &at);
    rc = rc < 0 ? rc : attribute_int(m, node, "axis", 0, &axis);
    if (rc == MS_OK && at->n != 1) {
        rc = import_fail(m, "%d places: one is taken, or all from one to another by Slice", at->n);
    }
    if (rc < 0) {
        return rc;
    }
    int64_t place = at->ints[0];
    const int is_scalar = at->n_dims == 0;
    rc = read_whole(m, x, axis, &dim);
    if (rc < 0) {
        return rc;
    }
    const int64_t size = import_value(m, x)->dim[dim];
    place += place < 0 && size > 0 ? size : 0;
    if (!is_scalar) {
        return bind_part(m, node, 0, x, dim, place, 1);
    }
    struct value part = *import_value(m, x);
    struct view view = part.view;
    if (view_take(&view, dim, place) < 0) {
        return import_fail(m,
                           "place %lld of dimension %d: queries, keys or values are taken, and "
                           "one token of a sequence",
                           (long long)place, dim);
    }
    import_set_view(&part, &view);
    part.expr = NO_VALUE;
    return import_bind(m, node, 0, &part);
}

/* A number of input i, or of an attribute as opsets before 10 have it; none: NULL stays. */
static int read_ints(struct importer *m, const MsOnnx__Node *node, size_t i, const char *attribute,
                     const int64_t **ret, int *ret_n)
{
    const MsOnnx__Attribute *at = attribute_find(node, attribute);
    const struct value *ints = NULL;
    int index = at != NULL ? NO_VALUE : import_input(m, node, i);
    int rc = index < 0 ? MS_OK : import_ints(m, index, &ints);
    if (import_failed(index) || rc < 0) {
        return rc < 0 ? rc : index;
    }
    *ret = at != NULL ? at->ints : ints != NULL ? ints->ints : NULL;
    *ret_n = at != NULL     ? (int)(at->n_ints < INTS_MAX ? at->n_ints : INTS_MAX)
             : ints != NULL ? ints->n
                            : 0;
    return MS_OK;
}

struct cut { /* numbers of a Slice, copied: values move */
    int n;
    int64_t start[ONNX_DIMS_MAX], end[ONNX_DIMS_MAX], axis[ONNX_DIMS_MAX];
};

static int read_cut(struct importer *m, const MsOnnx__Node *node, struct cut *ret)
{
    static const char *const names[] = {"starts", "ends", "axes", "steps"};
    int64_t *const to[] = {ret->start, ret->end, ret->axis, NULL};
    for (int i = 0; i < ONNX_DIMS_MAX; i++) {
        ret->axis[i] = i;
    }
    for (size_t i = 0; i < 4; i++) {
        const int64_t *ints = NULL;
        int n = 0;
        int rc = read_ints(m, node, i + 1, names[i], &ints, &n);
        if (rc < 0) {
            return rc;
        }
        ret->n = i == 0 ? n : ret->n;
        if (n > ONNX_DIMS_MAX || (n != ret->n && (ints != NULL || i < 2)) || ret->n < 1) {
            return import_fail(m, "its starts, ends and axes are not as many");
        }
        for (int k = 0; k < n; k++) {
            if (to[i] == NULL && ints[k] != 1) {
                return import_fail(m, "parts are taken without gaps");
            }
            if (to[i] != NULL) {
                to[i][k] = ints[k];
            }
        }
    }
    return MS_OK;
}

static int64_t clamped(int64_t at, int64_t size)
{
    at = at < -size ? 0 : at < 0 ? at + size : at;
    return at > size ? size : at;
}

int import_cut(struct importer *m, const MsOnnx__Node *node, int x)
{
    struct cut cut = {.n = 0};
    int dim = 0;
    int rc = read_cut(m, node, &cut);
    rc = rc < 0 ? rc : read_whole(m, x, 0, &dim);
    if (rc < 0) {
        return rc;
    }
    struct value part = *import_value(m, x);
    struct view view = part.view;
    for (int i = 0; i < cut.n; i++) {
        dim = import_axis(cut.axis[i], part.n_dims);
        const int64_t size = dim < 0 ? -1 : view_dim(&view, dim);
        const int is_all = cut.start[i] == 0 && cut.end[i] >= INT32_MAX;
        const int64_t begin = size < 0 ? 0 : clamped(cut.start[i], size);
        const int64_t count = size < 0 ? 0 : clamped(cut.end[i], size) - begin;
        if (dim < 0 || (!is_all && view_cut(&view, dim, begin, count) < 0)) {
            return import_fail(m,
                               "places %lld to %lld of dimension %d: parts are taken of "
                               "channels, and one token of a sequence",
                               (long long)cut.start[i], (long long)cut.end[i], dim);
        }
    }
    import_set_view(&part, &view);
    part.expr = NO_VALUE;
    return import_bind(m, node, 0, &part);
}

/* A parameter of which all is taken, or rows of it. */
static int cut_param(struct importer *m, const MsOnnx__Node *node, int x)
{
    struct cut cut = {.n = 0};
    int rc = read_cut(m, node, &cut);
    const struct value param = *import_value(m, x);
    const int is_rows = rc == MS_OK && cut.n == 1 && import_axis(cut.axis[0], param.n_dims) == 0;
    if (is_rows && (cut.start[0] != 0 || cut.end[0] < param.dim[0])) {
        const int64_t first = clamped(cut.start[0], param.dim[0]);
        return import_piece(m, node, &param, first, clamped(cut.end[0], param.dim[0]) - first);
    }
    for (int i = 0; i < cut.n && rc == MS_OK; i++) {
        const int dim = import_axis(cut.axis[i], param.n_dims);
        if (dim < 0 || cut.start[i] != 0 || cut.end[i] < param.dim[dim] || param.is_repeated) {
            return import_fail(m, "parts of a parameter: it is taken whole");
        }
    }
    return rc < 0 ? rc : import_bind(m, node, 0, &param);
}

/* Of one number in a shape less of it. */
static int cut_filled(struct importer *m, const MsOnnx__Node *node, int x)
{
    struct cut cut = {.n = 0};
    int rc = read_cut(m, node, &cut);
    struct value value = *import_value(m, x);
    for (int i = 0; i < cut.n && rc == MS_OK; i++) {
        const int dim = import_axis(cut.axis[i], value.n_dims);
        const int64_t size = dim >= 0 ? value.dim[dim] : -1;
        if (size < 0) {
            return import_fail(m, "a part of a shape that is not known");
        }
        const int64_t first = clamped(cut.start[i], size);
        const int64_t end = clamped(cut.end[i], size);
        value.dim[dim] = end > first ? end - first : 0;
    }
    return rc < 0 ? rc : import_bind(m, node, 0, &value);
}

/* Sizes of parts, or so many that are as large as can be. */
static int import_split(struct importer *m, const MsOnnx__Node *node)
{
    int64_t axis = 0;
    int64_t sizes[INTS_MAX];
    const int64_t *given = NULL;
    int n = 0;
    int dim = 0;
    int x = import_need(m, node, 0);
    int rc = x < 0 ? x : attribute_int(m, node, "axis", 0, &axis);
    if (rc == MS_OK && import_value(m, x)->kind != VALUE_LAYER) {
        rc = import_fail(m, "its input is nothing that is made of the data");
    }
    rc = rc < 0 ? rc : read_ints(m, node, 1, "split", &given, &n);
    const int n_out = node->n_output < INTS_MAX ? (int)node->n_output : INTS_MAX;
    if (rc == MS_OK && given != NULL && n != n_out) {
        rc = import_fail(m, "it has %d outputs, and %d sizes", n_out, n);
    }
    for (int i = 0; i < n && rc == MS_OK; i++) {
        sizes[i] = given[i];
    }
    rc = rc < 0 ? rc : read_whole(m, x, axis, &dim);
    if (rc < 0) {
        return rc;
    }
    const int64_t whole = import_value(m, x)->dim[dim];
    int64_t begin = 0;
    for (int i = 0; i < n_out && rc == MS_OK; i++) {
        const int64_t even = whole > 0 ? whole / n_out + (whole % n_out != 0) : 0;
        const int64_t size = given != NULL ? sizes[i] : even > whole - begin ? whole - begin : even;
        rc = bind_part(m, node, (size_t)i, x, dim, begin, size);
        begin += rc == MS_OK ? size : 0;
    }
    return rc;
}

/* ---- of sequences of parts, as PyTorch's newer exporter writes a split ---- */

static int import_split_to_sequence(struct importer *m, const MsOnnx__Node *node)
{
    int64_t axis = 0;
    int64_t keepdims = 1;
    int dim = 0;
    const struct value *size = NULL;
    struct value parts = {.kind = VALUE_PARTS, .expr = NO_VALUE};
    int x = import_need(m, node, 0);
    int rc = x < 0 ? x : attribute_int(m, node, "axis", 0, &axis);
    rc = rc < 0 ? rc : attribute_int(m, node, "keepdims", 1, &keepdims);
    rc = rc < 0 ? rc : import_ints(m, import_input(m, node, 1), &size);
    if (rc == MS_OK && (import_value(m, x)->kind != VALUE_LAYER || keepdims == 0)) {
        rc = import_fail(m, "its input is nothing that is made of the data");
    }
    if (rc < 0) {
        return rc;
    }
    const int is_even = size->n_dims == 0; /* all parts but the last have that size */
    parts.n = size->n;
    memcpy(parts.ints, size->ints, sizeof(parts.ints));
    rc = read_whole(m, x, axis, &dim);
    if (rc < 0) {
        return rc;
    }
    const int64_t whole = import_value(m, x)->dim[dim];
    if (is_even) {
        const int64_t even = parts.ints[0];
        const int64_t n = even < 1 || whole < 1 ? 0 : whole / even + (whole % even != 0);
        if (n < 1 || n > INTS_MAX) {
            return import_fail(m, "parts of %lld of %lld", (long long)even, (long long)whole);
        }
        parts.n = (int)n;
        for (int i = 0; i < parts.n; i++) {
            parts.ints[i] = whole - i * even < even ? whole - i * even : even;
        }
    }
    parts.q = x;
    parts.k = dim;
    return import_bind(m, node, 0, &parts);
}

static int import_sequence_at(struct importer *m, const MsOnnx__Node *node)
{
    const struct value *at = NULL;
    int x = import_need(m, node, 0);
    int rc = x < 0 ? x : import_ints(m, import_input(m, node, 1), &at);
    if (rc < 0) {
        return rc;
    }
    if (import_value(m, x)->kind != VALUE_PARTS || at->n != 1 ||
        import_axis(at->ints[0], import_value(m, x)->n) < 0) {
        return import_fail(m, "it takes one part of those that a SplitToSequence made");
    }
    const struct value *parts = import_value(m, x);
    const int i = import_axis(at->ints[0], parts->n);
    int64_t begin = 0;
    for (int k = 0; k < i; k++) {
        begin += parts->ints[k] > 0 && begin < INT32_MAX ? parts->ints[k] : 0;
    }
    return bind_part(m, node, 0, parts->q, parts->k, begin, parts->ints[i]);
}

/* ---- nodes ---- */

/* One of what recurrent layers end with. */
static int gather_state(struct importer *m, const MsOnnx__Node *node, int x, int at)
{
    const struct value *place = NULL;
    int64_t axis = 0;
    int rc = import_ints(m, at, &place);
    rc = rc < 0 ? rc : attribute_int(m, node, "axis", 0, &axis);
    if (rc == MS_OK && (axis != 0 || place->n_dims != 0)) {
        rc = import_fail(m, "one of what a recurrent layer ends with is taken, of axis 0");
    }
    return rc < 0 ? rc : import_take_state(m, node, x, place->ints[0]);
}

static int import_gather(struct importer *m, const MsOnnx__Node *node)
{
    int x = import_need(m, node, 0);
    int at = x < 0 ? x : import_need(m, node, 1);
    if (at < 0) {
        return at;
    }
    const enum value_kind of = import_value(m, x)->kind;
    const int is_seen = of == VALUE_LAYER && import_value(m, at)->kind == VALUE_RANGE;
    return is_seen              ? import_see_places(m, node, x, at)
           : of == VALUE_LAYER  ? import_take_part(m, node, x)
           : of == VALUE_PARAM  ? import_rows_of(m, node, x, at)
           : of == VALUE_STATES ? gather_state(m, node, x, at)
                                : gather_ints(m, node);
}

/* All rows of a matrix of whole numbers from the last one on: x[::-1]. */
static int reverse_rows(struct importer *m, const MsOnnx__Node *node, int x)
{
    static const int64_t most[4] = {-1, -INTS_MAX, 0, -1}; /* start, end at most, axis, step */
    const struct value rows = *import_value(m, x);
    struct value turned = rows;
    for (size_t i = 0; i < 4; i++) {
        const struct value *of = NULL;
        int rc = import_ints(m, import_input(m, node, i + 1), &of);
        if (rc < 0) {
            return rc;
        }
        if (of->n != 1 || (i == 1 ? of->ints[0] > most[1] : of->ints[0] != most[i])) {
            return import_fail(m, "rows of whole numbers are turned around, all of them");
        }
    }
    for (int64_t i = 0; i < rows.n; i++) {
        const int64_t row = rows.dim[0] - 1 - i / rows.dim[1];
        turned.ints[row * rows.dim[1] + i % rows.dim[1]] = rows.ints[i];
    }
    return import_bind(m, node, 0, &turned);
}

static int import_slice(struct importer *m, const MsOnnx__Node *node)
{
    int x = import_need(m, node, 0);
    if (x >= 0 && import_value(m, x)->kind == VALUE_INTS && import_value(m, x)->n_dims == 2) {
        return reverse_rows(m, node, x);
    }
    const enum value_kind kind = x >= 0 ? import_value(m, x)->kind : VALUE_INTS;
    return x < 0                 ? x
           : kind == VALUE_LAYER ? import_cut(m, node, x)
           : kind == VALUE_PARAM ? cut_param(m, node, x)
           : kind == VALUE_REAL  ? cut_filled(m, node, x)
                                 : slice_ints(m, node);
}

const struct node_op part_ops[] = {
    {"Gather", 2, import_gather, 0},
    {"Slice", 1, import_slice, 0},
    {"Split", 1, import_split, 0},
    {"SplitToSequence", 2, import_split_to_sequence, 0},
    {"SequenceAt", 2, import_sequence_at, 0},
    {NULL, 0, NULL, 0},
};
