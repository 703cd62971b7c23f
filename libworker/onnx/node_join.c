/* node_join.c - values in a row: channels, and a parameter before tokens */
#include "libworker/onnx/import.h"

#include "proto/grow.h"

#include <stdio.h>
#include <string.h>

/* ---- channels ---- */

enum { JOIN_MAX = 8 };

/* The longest row before that this one begins with: of DenseNet's, all but the last. */
static const struct row_before *begins_with(const struct importer *m, const int *of, int n)
{
    const struct row_before *best = NULL;
    for (size_t i = 0; i < m->n_rows; i++) {
        const struct row_before *row = &m->rows[i];
        if (row->n <= n && (best == NULL || row->n > best->n) &&
            memcmp(row->of, of, sizeof(of[0]) * (size_t)row->n) == 0) {
            best = row;
        }
    }
    return best;
}

static int keep_row(struct importer *m, const int *of, int n, int value)
{
    void *grown = ms_grow(m->rows, m->n_rows, 1, sizeof(*m->rows), &m->rows_room);
    if (grown == NULL) {
        return import_fail_memory(m);
    }
    m->rows = grown;
    struct row_before *row = &m->rows[m->n_rows++];
    *row = (struct row_before){.value = value, .n = n};
    memcpy(row->of, of, sizeof(of[0]) * (size_t)n);
    return MS_OK;
}

static int64_t channels_of(const struct importer *m, const int *of, int n)
{
    int64_t channels = 0;
    for (int i = 0; i < n; i++) {
        const int64_t more = import_value(m, of[i])->view.size[AXIS_CHANNEL];
        channels = more < 0 || channels < 0 ? SIZE_UNKNOWN : channels + more;
    }
    return channels;
}

/* Eight at a time; the first of the next eight is what they made. */
static int join_all(struct importer *m, const int *of, int n, struct value *ret)
{
    int parts[INTS_MAX];
    const struct row_before *row = begins_with(m, of, n);
    int n_parts = 0;
    int taken = 0;
    if (row != NULL) {
        parts[n_parts++] = row->value;
        taken = row->n;
    }
    memcpy(parts + n_parts, of + taken, sizeof(of[0]) * (size_t)(n - taken));
    n_parts += n - taken;
    *ret = *import_value(m, parts[0]);
    while (n_parts > 1) {
        const int now = n_parts < JOIN_MAX ? n_parts : JOIN_MAX;
        const int64_t channels = channels_of(m, parts, now);
        int rc = import_join(m, "concat", parts, now, ret);
        if (rc < 0) {
            return rc;
        }
        struct view view = ret->view;
        view_set_channels(&view, channels);
        import_set_view(ret, &view);
        if (n_parts > now) {
            char own[32];
            snprintf(own, sizeof(own), "\t%zu", m->n_values); /* no name that a file can have */
            rc = import_keep(m, own, ret);
            if (rc < 0) {
                return rc;
            }
            parts[now - 1] = rc;
        }
        memmove(parts, parts + now - 1, sizeof(parts[0]) * (size_t)(n_parts - now + 1));
        n_parts -= now - 1;
    }
    return MS_OK;
}

/* ---- tokens ---- */

/* A parameter for each sample before them. */
static int join_token(struct importer *m, const MsOnnx__Node *node, int64_t axis)
{
    struct value made;
    struct value token;
    char name[MS_NAME_MAX + 1];
    int x = import_sequence(m, node, 1);
    int rc = x < 0 ? x : import_repeated(m, node, 0, 3, &token);
    if (rc < 0) {
        return rc;
    }
    struct view view = import_value(m, x)->view;
    const int64_t channels = view.size[AXIS_CHANNEL];
    const int64_t tokens = view.size[AXIS_HEIGHT];
    if (node->n_input != 2 || (axis != 1 && axis != -2) || token.dim[1] != 1 ||
        token.dim[2] != channels || tokens < 1 || tokens > INT32_MAX) {
        return import_fail(m, "a parameter stands before the tokens of each sample, as one more, "
                              "and nowhere else");
    }
    const struct part part = {"class_token", "weight", token.tensor->name};
    json_t *keys = json_pack("{s:i}", "leading", token.tensor->n_dims - 1);
    rc = keys == NULL ? import_fail_memory(m) : import_name_parts(m, &part, 1, 0, keys, name);
    if (rc < 0) {
        json_decref(keys);
        return rc;
    }
    rc = import_layer(m, "class_token", name, keys, x, &made);
    const int64_t size[VIEW_AXES] = {view.size[AXIS_SAMPLE], channels, tokens + 1, 1};
    view = view_whole(VIEW_SEQUENCE, size);
    import_set_view(&made, &view);
    return rc < 0 ? rc : import_bind(m, node, 0, &made);
}

/* ---- both ---- */

/* The dimension that channels are, where values stand in a row; 0: they are no such. */
static int channels_axis(const struct view *view)
{
    return view_is_whole(view, VIEW_IMAGES) || view_is_whole(view, VIEW_ROWS) ? 1
           : view_is_whole(view, VIEW_SEQUENCE)                               ? 2
                                                                              : 0;
}

static int import_concat(struct importer *m, const MsOnnx__Node *node)
{
    int of[INTS_MAX];
    int64_t axis = 0;
    struct value made;
    const int n = (int)node->n_input;
    int first = import_input(m, node, 0);
    int rc = import_failed(first) ? first : attribute_int(m, node, "axis", 0, &axis);
    if (rc == MS_OK && first >= 0 &&
        (import_value(m, first)->kind == VALUE_INTS ||
         import_value(m, first)->kind == VALUE_REAL)) {
        return import_concat_ints(m, node);
    }
    if (rc == MS_OK && first >= 0 && import_value(m, first)->kind == VALUE_STATES) {
        return import_join_states(m, node);
    }
    if (rc == MS_OK && first >= 0 && import_value(m, first)->is_repeated) {
        return join_token(m, node, axis);
    }
    if (rc == MS_OK && first >= 0 &&
        (import_value(m, first)->kind == VALUE_PIECES ||
         import_value(m, first)->kind == VALUE_PARAM)) {
        return import_join_pieces(m, node);
    }
    if (rc == MS_OK && n > INTS_MAX) {
        rc = import_fail(m, "%d inputs; at most %d are put in a row", n, INTS_MAX);
    }
    for (int i = 0; i < n && rc == MS_OK; i++) {
        of[i] = import_input(m, node, (size_t)i);
        if (of[i] == NO_VALUE || (of[i] >= 0 && import_value(m, of[i])->kind != VALUE_LAYER)) {
            return import_fail(m, "input %d is nothing that is made of the data", i + 1);
        }
        rc = of[i] < 0 ? of[i] : import_settle(m, of[i]);
        if (rc == MS_OK && (channels_axis(&import_value(m, of[i])->view) == 0 ||
                            import_value(m, of[i])->n_dims != import_value(m, of[0])->n_dims)) {
            rc = import_fail(m, "its inputs have different dimensions");
        }
    }
    if (rc < 0) {
        return rc;
    }
    const int wanted = channels_axis(&import_value(m, of[0])->view);
    if (axis != wanted && axis + import_value(m, of[0])->n_dims != wanted) {
        return import_fail(m, "axis %lld: channels, or the values of rows, are put in a row",
                           (long long)axis);
    }
    rc = join_all(m, of, n, &made);
    rc = rc < 0 ? rc : import_bind(m, node, 0, &made);
    return rc < 0 || n > INTS_MAX ? rc : keep_row(m, of, n, (int)m->n_values - 1);
}

const struct node_op join_ops[] = {
    {"Concat", 1, import_concat, 0},
    {NULL, 0, NULL, 0},
};
