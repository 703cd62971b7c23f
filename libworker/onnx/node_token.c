/* node_token.c - ops that make sequences of tokens: embeddings of words and of places */
#include "libworker/onnx/import.h"

#include <string.h>

/* ---- words ---- */

static int embed(struct importer *m, const MsOnnx__Node *node, int words)
{
    struct value weight;
    struct value made;
    char name[MS_NAME_MAX + 1];
    int rc = import_param(m, node, 0, 2, &weight);
    if (rc < 0) {
        return rc;
    }
    const struct part part = {"weight", "weight", weight.tensor->name};
    const struct value tokens = *import_value(m, words);
    json_t *keys = json_pack("{s:I, s:I}", "words", (json_int_t)weight.dim[0], "size",
                             (json_int_t)weight.dim[1]);
    rc = keys == NULL ? import_fail_memory(m) : import_name_parts(m, &part, 1, 0, keys, name);
    if (rc < 0) {
        json_decref(keys);
        return rc;
    }
    rc = import_layer(m, "embedding", name, keys, words, &made);
    const int64_t size[VIEW_AXES] = {tokens.dim[0], weight.dim[1], tokens.dim[1], 1};
    const struct view view = view_whole(VIEW_SEQUENCE, size);
    import_set_view(&made, &view);
    return rc < 0 ? rc : import_bind(m, node, 0, &made);
}

/* All rows of a parameter, by their places from 0 on? */
static int is_all_places(const struct value *at, int64_t rows)
{
    int is = at->kind == VALUE_RANGE ? at->n_dims == 1 && at->ints[0] == 1 && at->dim[0] == rows
                                     : at->kind == VALUE_INTS && at->n_dims == 1 && at->n == rows;
    for (int i = 0; at->kind == VALUE_INTS && i < at->n && is; i++) {
        is = at->ints[i] == i;
    }
    return is;
}

int import_rows_of(struct importer *m, const MsOnnx__Node *node, int x, int words)
{
    int64_t axis = 0;
    int rc = attribute_int(m, node, "axis", 0, &axis);
    if (rc < 0) {
        return rc;
    }
    const struct value param = *import_value(m, x);
    const struct value *at = import_value(m, words);
    if (at->kind == VALUE_TOKENS && axis == 0 && !param.is_transposed) {
        return embed(m, node, words);
    }
    const int is_all = is_all_places(at, param.dim[0]) && param.n_dims == 2 && axis == 0 &&
                       !param.is_transposed && !param.is_repeated;
    return is_all ? import_bind(m, node, 0, &param)
                  : import_fail(m, "rows of a parameter are taken by the data, which are words, or "
                                   "all of them, by places from 0 on");
}

/* ---- places ---- */

int import_places(struct importer *m, const MsOnnx__Node *node, int a, int b)
{
    const int x = import_value(m, a)->kind == VALUE_LAYER ? a : b;
    const size_t i = x == a ? 1 : 0;
    const struct value param = *import_value(m, x == a ? b : a);
    struct value weight;
    struct value made;
    char name[MS_NAME_MAX + 1];
    const int n = param.kind == VALUE_PARAM ? param.n_dims : 0;
    const int is_one = n == 3 && param.dim[0] == 1 && !param.is_repeated;
    if (import_value(m, x)->kind != VALUE_LAYER || import_value(m, x)->n_dims != 3 ||
        param.is_transposed || (n != 2 && !is_one)) {
        return 0;
    }
    int rc = import_sequence(m, node, 1 - i);
    rc = rc < 0 ? rc : import_param(m, node, i, n, &weight);
    if (rc < 0) {
        return rc;
    }
    const struct view view = import_value(m, x)->view;
    if (weight.dim[n - 2] != view.size[AXIS_HEIGHT] ||
        weight.dim[n - 1] != view.size[AXIS_CHANNEL]) {
        return import_fail(m, "%.60s has not the shape of its input's samples",
                           weight.tensor->name);
    }
    const struct part part = {"weight", "weight", weight.tensor->name};
    json_t *keys = json_pack("{s:i}", "leading", n - 2);
    rc = keys == NULL ? import_fail_memory(m) : import_name_parts(m, &part, 1, 0, keys, name);
    if (rc < 0) {
        json_decref(keys);
        return rc;
    }
    rc = import_layer(m, "positional_embedding", name, keys, x, &made);
    rc = rc < 0 ? rc : import_bind(m, node, 0, &made);
    return rc < 0 ? rc : 1;
}
