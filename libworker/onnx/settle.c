/* settle.c - layers for what a view does to another: channels that are cut or shuffled, tokens, one
 * of them, rows */
#include "libworker/onnx/import.h"

#include <string.h>

static int fail_moved(struct importer *m, const struct value *value)
{
    return import_fail(m,
                       "it reads %d dimensions of which some were cut or turned as no layer does: "
                       "channels may be taken from one to another, or shuffled, and one token of a "
                       "sequence",
                       value->n_dims);
}

/* Value x becomes what a new layer makes of it, with that view; what functions have of it stays. */
static int settle_by(struct importer *m, int x, const char *kind, json_t *keys,
                     const struct view *view)
{
    struct value made;
    int rc = import_layer(m, kind, "", keys, x, &made);
    if (rc == MS_OK) {
        import_set_view(&made, view);
        made.expr = import_value(m, x)->expr;
        *import_value(m, x) = made;
    }
    return rc;
}

static int settle_channels(struct importer *m, int x)
{
    struct view view = import_value(m, x)->view;
    int64_t count = 0;
    int64_t groups = 1;
    if (view_channels(&view, &count, &groups) < 0) {
        return fail_moved(m, import_value(m, x));
    }
    const int64_t first = view.first[AXIS_CHANNEL];
    int rc = MS_OK;
    if (count != view.size[AXIS_CHANNEL] || first != 0) {
        view.size[AXIS_CHANNEL] = count; /* in whichever order they are */
        view.first[AXIS_CHANNEL] = 0;
        rc = count < 1 ? fail_moved(m, import_value(m, x))
                       : settle_by(m, x, "slice",
                                   json_pack("{s:I, s:I}", "first", (json_int_t)first, "size",
                                             (json_int_t)count),
                                   &view);
    }
    if (rc == MS_OK && groups > 1) {
        /* what stood together comes apart: (c / groups, groups) of (groups, c / groups) */
        view_keep_channels(&view);
        rc = settle_by(m, x, "channel_shuffle", json_pack("{s:I}", "groups", (json_int_t)groups),
                       &view);
    }
    return rc;
}

/* Is something taken of height, width or tokens? */
static int is_cut(const struct view *view)
{
    int64_t seen[VIEW_AXES] = {1, 1, 1, 1};
    int is = 0;
    for (int i = 0; i < view->n_atoms; i++) {
        const struct view_atom *a = &view->atom[i];
        seen[a->axis] = size_times(seen[a->axis], a->size);
    }
    for (int i = AXIS_HEIGHT; i <= AXIS_WIDTH; i++) {
        is |= seen[i] != view->size[i] || view->first[i] != 0;
    }
    return is;
}

static int settle_token(struct importer *m, int x)
{
    const struct view view = import_value(m, x)->view;
    const int64_t tokens = size_times(view.size[AXIS_HEIGHT], view.size[AXIS_WIDTH]);
    struct view rows = view;
    for (int i = 0; i < view.n_atoms; i++) {
        if (view.atom[i].axis == AXIS_HEIGHT || view.atom[i].axis == AXIS_WIDTH) {
            return fail_moved(m, import_value(m, x));
        }
    }
    if (view.form == VIEW_ROWS || tokens < 1) {
        return fail_moved(m, import_value(m, x));
    }
    const int64_t at = view.first[AXIS_HEIGHT] * view.size[AXIS_WIDTH] + view.first[AXIS_WIDTH];
    int rc = view.form == VIEW_IMAGES ? settle_by(m, x, "tokens", json_object(), &view) : MS_OK;
    rows.form = VIEW_ROWS;
    rows.size[AXIS_HEIGHT] = rows.size[AXIS_WIDTH] = 1;
    rows.first[AXIS_HEIGHT] = rows.first[AXIS_WIDTH] = 0;
    return rc < 0 ? rc : settle_by(m, x, "token", json_pack("{s:I}", "at", (json_int_t)at), &rows);
}

int import_settle(struct importer *m, int x)
{
    int rc = import_make(m, x);
    if (rc == MS_OK && is_cut(&import_value(m, x)->view)) {
        rc = settle_token(m, x);
    }
    return rc < 0 ? rc : settle_channels(m, x);
}

int import_as_sequence(struct importer *m, int x)
{
    int rc = import_settle(m, x);
    if (rc < 0) {
        return rc;
    }
    struct view view = import_value(m, x)->view;
    if (view.form != VIEW_IMAGES || view_is_whole(&view, VIEW_IMAGES) || view_is_pixels(&view) ||
        view_make_tokens(&view) < 0) {
        return x;
    }
    rc = settle_by(m, x, "tokens", json_object(), &view);
    return rc < 0 ? rc : x;
}

/* (n, everything else), in the order in which the form has it. */
int import_as_rows(struct importer *m, int x)
{
    int rc = import_settle(m, x);
    if (rc < 0) {
        return rc;
    }
    const struct view view = import_value(m, x)->view;
    struct view flat = view_whole(view.form, view.size);
    int64_t size[VIEW_AXES] = {view.size[AXIS_SAMPLE], 1, 1, 1};
    if (view_is_whole(&view, VIEW_ROWS)) {
        return x;
    }
    view_flatten(&flat);
    if (!view_equal(&view, &flat)) {
        return import_fail(m, "channels of images are first when rows are made of them, and those "
                              "of a token are last");
    }
    for (int i = AXIS_CHANNEL; i < VIEW_AXES; i++) {
        size[AXIS_CHANNEL] = size_times(size[AXIS_CHANNEL], view.size[i]);
    }
    const struct view rows = view_whole(VIEW_ROWS, size);
    rc = settle_by(m, x, "flatten", json_object(), &rows);
    return rc < 0 ? rc : x;
}
