/* recurrent.c - LSTM, GRU and RNN, whose weights exporters put together out of the module's
 *
 *     Slice(weight_ih_l0) ...      rows of a parameter, of an RNN's all         VALUE_PIECES
 *     Concat(i, o, f, c)           the gates in ONNX's order, Unsqueeze'd to a direction each
 *     LSTM(x, W, R, B)             here it becomes a layer lstm, if the pieces are all of PyTorch's
 *     Y   (tokens, directions, n, hidden)    which its view knows
 *     Y_h (directions, n, hidden)            of which one is taken: a token of Y   VALUE_STATES
 *
 * First states are zeros. Layers of a module are nodes here, and so layers of the list. */
#include "libworker/onnx/import.h"

#include "proto/grow.h"
#include "proto/macros.h"

#include <stdio.h>
#include <string.h>

/* ---- pieces of parameters ---- */

static int keep_piece(struct importer *m, const struct piece *piece)
{
    const struct piece copy = *piece; /* it may be one of those that move */
    void *grown = ms_grow(m->pieces, m->n_pieces, 1, sizeof(copy), &m->pieces_room);
    if (grown == NULL) {
        return import_fail_memory(m);
    }
    m->pieces = grown;
    m->pieces[m->n_pieces++] = copy;
    return MS_OK;
}

int import_piece(struct importer *m, const MsOnnx__Node *node, const struct value *param,
                 int64_t first, int64_t rows)
{
    const struct piece piece = {param->tensor, first, rows};
    struct value value = {.kind = VALUE_PIECES,
                          .n_dims = param->n_dims,
                          .expr = NO_VALUE,
                          .q = (int)m->n_pieces,
                          .n = 1};
    if (param->is_transposed || param->is_repeated || param->n_dims != param->tensor->n_dims ||
        first < 0 || rows < 1 || rows > param->dim[0] - first) {
        return import_fail(m, "parts of a parameter: it is taken whole, or rows of it as the gates "
                              "of an LSTM or GRU");
    }
    memcpy(value.dim, param->dim, sizeof(value.dim));
    value.dim[0] = rows;
    int rc = keep_piece(m, &piece);
    return rc < 0 ? rc : import_bind(m, node, 0, &value);
}

/* Of pieces as they are; of a parameter that nobody turned: all of its rows. */
static int is_pieces(const struct value *value)
{
    return value->kind == VALUE_PIECES ||
           (value->kind == VALUE_PARAM && !value->is_transposed && !value->is_repeated &&
            value->n_dims > 0 && value->n_dims == value->tensor->n_dims);
}

/* Behind the last one that is kept. */
static int keep_pieces_of(struct importer *m, const struct value *value)
{
    const int first = value->q;
    const int n = value->n;
    int rc = MS_OK;
    if (value->kind == VALUE_PARAM) {
        const struct piece whole = {value->tensor, 0, value->dim[0]};
        return keep_piece(m, &whole);
    }
    for (int k = 0; k < n && rc == MS_OK; k++) {
        rc = keep_piece(m, &m->pieces[first + k]);
    }
    return rc;
}

/* Their number. */
static int count_pieces(const struct value *value)
{
    return value->kind == VALUE_PARAM ? 1 : value->n;
}

int import_join_pieces(struct importer *m, const MsOnnx__Node *node)
{
    int64_t axis = 0;
    struct value joined = {.kind = VALUE_PIECES, .expr = NO_VALUE, .q = (int)m->n_pieces};
    int rc = attribute_int(m, node, "axis", 0, &axis);
    if (rc == MS_OK && axis != 0) {
        rc = import_fail(m, "axis %lld: rows of parameters are put one behind the other, axis 0",
                         (long long)axis);
    }
    for (size_t i = 0; i < node->n_input && rc == MS_OK; i++) {
        int index = import_input(m, node, i);
        if (import_failed(index)) {
            return index;
        }
        const struct value *part = index >= 0 ? import_value(m, index) : NULL;
        if (part != NULL && i == 0) {
            joined.n_dims = part->n_dims;
            memcpy(&joined.dim[1], &part->dim[1], sizeof(part->dim[0]) * (ONNX_DIMS_MAX - 1));
        }
        const int fits =
            part != NULL && is_pieces(part) && part->n_dims == joined.n_dims &&
            memcmp(&part->dim[1], &joined.dim[1], sizeof(part->dim[0]) * (ONNX_DIMS_MAX - 1)) == 0;
        if (!fits || count_pieces(part) > PIECES_MAX - joined.n) {
            return import_fail(m,
                               "its inputs are no rows of parameters of one width, or more than "
                               "%d",
                               PIECES_MAX);
        }
        joined.dim[0] += part->dim[0];
        joined.n += count_pieces(part);
        rc = keep_pieces_of(m, part);
    }
    return rc < 0 ? rc : import_bind(m, node, 0, &joined);
}

int import_widen_pieces(struct importer *m, const MsOnnx__Node *node, int x, unsigned axes)
{
    struct value value = *import_value(m, x);
    if (axes != 1 || value.n_dims + 1 > ONNX_DIMS_MAX || !is_pieces(&value)) {
        return import_fail(m, "rows of parameters get a dimension of 1 before them, and no other");
    }
    struct value wide = {.kind = VALUE_PIECES,
                         .n_dims = value.n_dims + 1,
                         .dim = {1},
                         .expr = NO_VALUE,
                         .q = (int)m->n_pieces,
                         .n = count_pieces(&value)};
    memcpy(&wide.dim[1], &value.dim[0], sizeof(value.dim[0]) * (size_t)value.n_dims);
    int rc = keep_pieces_of(m, &value);
    return rc < 0 ? rc : import_bind(m, node, 0, &wide);
}

/* Which rows of which parameter these are; NULL: of several. */
static const struct piece *piece_at(const struct importer *m, const struct value *pieces,
                                    int64_t row, int64_t n, int64_t *ret_first)
{
    for (int i = 0; i < pieces->n; i++) {
        const struct piece *piece = &m->pieces[pieces->q + i];
        if (row < piece->rows) {
            *ret_first = piece->first + row;
            return n <= piece->rows - row ? piece : NULL;
        }
        row -= piece->rows;
    }
    return NULL;
}

/* ---- what is behind the last token ---- */

/* A value by its index, and a direction, in one number. */
static int64_t state_of(int value, int direction)
{
    return 2 * (int64_t)value + direction;
}

static int bind_states(struct importer *m, const MsOnnx__Node *node, size_t i, int y, int n)
{
    const struct value *made = import_value(m, y);
    struct value states = {.kind = VALUE_STATES, .n_dims = 3, .expr = NO_VALUE, .n = n};
    states.dim[0] = n;
    states.dim[1] = made->dim[2];
    states.dim[2] = made->dim[3];
    states.real = i > 1; /* cells */
    for (int d = 0; d < n; d++) {
        states.ints[d] = state_of(y, d);
    }
    return import_bind(m, node, i, &states);
}

int import_join_states(struct importer *m, const MsOnnx__Node *node)
{
    int64_t axis = 0;
    struct value joined = *import_value(m, import_input(m, node, 0));
    int rc = attribute_int(m, node, "axis", 0, &axis);
    joined.n = 0;
    for (size_t i = 0; i < node->n_input && rc == MS_OK; i++) {
        int index = import_input(m, node, i);
        if (import_failed(index)) {
            return index;
        }
        const struct value *part = index >= 0 ? import_value(m, index) : NULL;
        if (part == NULL || part->kind != VALUE_STATES || axis != 0 || part->real != joined.real ||
            part->n > INTS_MAX - joined.n) {
            return import_fail(m,
                               "what recurrent layers end with is put one behind the other, "
                               "axis 0, at most %d",
                               INTS_MAX);
        }
        memcpy(&joined.ints[joined.n], part->ints, sizeof(part->ints[0]) * (size_t)part->n);
        joined.n += part->n;
    }
    joined.dim[0] = joined.n;
    return rc < 0 ? rc : import_bind(m, node, 0, &joined);
}

int import_take_state(struct importer *m, const MsOnnx__Node *node, int x, int64_t place)
{
    const struct value states = *import_value(m, x);
    const int i = import_axis(place, states.n);
    if (i < 0 || states.real != 0) {
        return import_fail(m, i < 0 ? "a place that it has not"
                                    : "it reads the cells that an LSTM ends with, and a layer "
                                      "makes nothing of them");
    }
    const int direction = (int)(states.ints[i] % 2);
    struct value part = *import_value(m, (int)(states.ints[i] / 2));
    struct view view = part.view;
    const int64_t last = view_dim(&view, 0) - 1;
    if (view_dim(&view, 0) < 1 || view_take(&view, 0, direction == 0 ? last : 0) < 0 ||
        view_take(&view, 0, view_dim(&view, 0) > 1 ? direction : 0) < 0) {
        return import_fail(m, "how many tokens there are is not in the file; export it with their "
                              "number");
    }
    import_set_view(&part, &view);
    return import_bind(m, node, 0, &part);
}

/* ---- nodes ---- */

enum { W_IH, W_HH, B_IH, B_HH, PARTS };

/* PyTorch's gates are i, f, g, o and r, z, n; ONNX's i, o, f, c and z, r, h. */
static const struct cell {
    const char *op, *layer;
    int gates;
    int places[4]; /* of ONNX's gates in PyTorch's parameters */
    int is_reset_behind;
} cells[] = {
    {"LSTM", "lstm", 4, {0, 3, 1, 2}, 0},
    {"GRU", "gru", 3, {1, 0, 2}, 1},
    {"RNN", "rnn", 1, {0}, 0},
};

static const struct cell *cell_of(const char *op_type)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(cells); i++) {
        if (strcmp(cells[i].op, op_type) == 0) {
            return &cells[i];
        }
    }
    return NULL;
}

int import_is_recurrent(const char *op_type)
{
    return cell_of(op_type) != NULL;
}

struct recurrent {
    const struct cell *cell;
    int is_relu;
    int64_t gates, hidden, channels;
    int n_directions;
    int n_parts; /* of a direction: two without biases */
    const struct onnx_tensor *tensors[2][PARTS];
};

/* Of an RNN: a function, the same one in both directions. */
static int read_activations(struct importer *m, const MsOnnx__Node *node, struct recurrent *r)
{
    static const char *const known[] = {"Tanh", "Relu"};
    const MsOnnx__Attribute *at = attribute_find(node, "activations");
    const size_t n = at != NULL ? at->n_strings : 0;
    size_t same[MS_ARRAY_SIZE(known)] = {0};
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < MS_ARRAY_SIZE(known); k++) {
            same[k] += at->strings[i].len == strlen(known[k]) &&
                       memcmp(at->strings[i].data, known[k], at->strings[i].len) == 0;
        }
    }
    r->is_relu = n > 0 && same[1] == n;
    return at == NULL || (n == (size_t)r->n_directions && (same[0] == n || same[1] == n))
               ? MS_OK
               : import_fail(m,
                             "its activations are not Tanh, or Relu, in each direction: a layer is "
                             "as PyTorch's module is");
}

/* Attributes that say what PyTorch's modules do anyway. */
static int read_attributes(struct importer *m, const MsOnnx__Node *node, struct recurrent *ret)
{
    static const char *const others[] = {"activation_alpha", "activation_beta", "clip",
                                         "activations"};
    static const char both[] = "bidirectional", forward[] = "forward";
    const MsOnnx__Attribute *at = attribute_find(node, "direction");
    int64_t flags[3] = {0};
    *ret = (struct recurrent){.cell = cell_of(node->op_type)};
    int rc = attribute_int(m, node, "hidden_size", 0, &ret->hidden);
    rc = rc < 0 ? rc : attribute_int(m, node, "layout", 0, &flags[0]);
    rc = rc < 0 ? rc : attribute_int(m, node, "input_forget", 0, &flags[1]);
    rc = rc < 0 ? rc : attribute_int(m, node, "linear_before_reset", 0, &flags[2]);
    if (rc < 0) {
        return rc;
    }
    const size_t n_others = MS_ARRAY_SIZE(others) - (ret->cell->gates == 1);
    for (size_t i = 0; i < n_others; i++) {
        if (attribute_find(node, others[i]) != NULL) {
            return import_fail(m, "it has %s, and a layer is as PyTorch's module is", others[i]);
        }
    }
    const int is_both =
        at != NULL && at->s.len == sizeof(both) - 1 && memcmp(at->s.data, both, at->s.len) == 0;
    const int is_forward = at == NULL || (at->s.len == sizeof(forward) - 1 &&
                                          memcmp(at->s.data, forward, at->s.len) == 0);
    if (flags[0] != 0 || flags[1] != 0 || flags[2] != ret->cell->is_reset_behind ||
        !(is_both || is_forward)) {
        return import_fail(m,
                           "layout %lld, input_forget %lld, linear_before_reset %lld, or a "
                           "direction that is neither forward nor bidirectional: a layer is as "
                           "PyTorch's module is",
                           (long long)flags[0], (long long)flags[1], (long long)flags[2]);
    }
    ret->gates = ret->cell->gates;
    ret->n_directions = is_both ? 2 : 1;
    if (ret->hidden < 1 || ret->hidden > INT32_MAX) {
        return import_fail(m, "its hidden_size is %lld", (long long)ret->hidden);
    }
    return ret->cell->gates == 1 ? read_activations(m, node, ret) : MS_OK;
}

/* Are rows from `row` on all gates of one parameter, in ONNX's order? */
static const struct onnx_tensor *gates_at(const struct importer *m, const struct recurrent *r,
                                          const struct value *pieces, int64_t row)
{
    const struct onnx_tensor *tensor = NULL;
    for (int64_t gate = 0; gate < r->gates; gate++) {
        int64_t first = -1;
        const struct piece *piece = piece_at(m, pieces, row + gate * r->hidden, r->hidden, &first);
        if (piece == NULL || first != r->cell->places[gate] * r->hidden ||
            (tensor != NULL && piece->tensor != tensor)) {
            return NULL;
        }
        tensor = piece->tensor;
    }
    return tensor->dim[0] == r->gates * r->hidden ? tensor : NULL;
}

/* Input i: n_parts parameters a direction, from part on; rows of `width` values, of biases 1. */
static int read_parts(struct importer *m, const MsOnnx__Node *node, size_t i, int part, int n_parts,
                      int64_t width, struct recurrent *r)
{
    const int64_t rows = r->gates * r->hidden;
    const int n_dims = width > 1 || part < B_IH ? 3 : 2;
    int index = import_input(m, node, i);
    if (import_failed(index)) {
        return index;
    }
    const struct value *value = index >= 0 ? import_value(m, index) : NULL;
    if (value == NULL || value->kind != VALUE_PIECES) {
        return import_fail(m,
                           "input %zu (%.60s) is not put together of a module's parameters: "
                           "export it with optimize=False, or with dynamo=False and "
                           "do_constant_folding=False",
                           i + 1, i < node->n_input ? node->input[i] : "none");
    }
    const struct value pieces = *value;
    if (pieces.n_dims != n_dims || pieces.dim[0] != r->n_directions ||
        pieces.dim[1] != n_parts * rows || (n_dims == 3 && pieces.dim[2] != width)) {
        return import_fail(m, "input %zu has not the shape that its other inputs want", i + 1);
    }
    for (int d = 0; d < r->n_directions; d++) {
        for (int k = 0; k < n_parts; k++) {
            const int64_t row = (d * n_parts + k) * rows;
            const struct onnx_tensor *tensor = gates_at(m, r, &pieces, row);
            int rc = tensor != NULL ? import_use(m, tensor)
                                    : import_fail(m,
                                                  "input %zu is not all gates of one parameter "
                                                  "each, in the order of ONNX",
                                                  i + 1);
            if (rc < 0) {
                return rc;
            }
            r->tensors[d][part + k] = tensor;
        }
    }
    return MS_OK;
}

/* Zeros, or none; what else there may be is refused by its place, whatever it holds. */
static int check_states(struct importer *m, const MsOnnx__Node *node)
{
    for (size_t i = 4; i < node->n_input; i++) {
        if (node->input[i][0] == '\0') {
            continue;
        }
        if (i == 4 || i > 6) {
            return import_fail(m, i == 4 ? "it has sequence_lens, and samples here have one length"
                                         : "it has peepholes, and a layer has none");
        }
        int index = import_need(m, node, i);
        if (index < 0) {
            return index;
        }
        if (import_value(m, index)->kind != VALUE_REAL || import_value(m, index)->real != 0) {
            return import_fail(m, "its first state is no zeros: a layer begins with them");
        }
    }
    return MS_OK;
}

static json_t *keys_of(const struct recurrent *r)
{
    json_t *keys = json_pack("{s:I, s:b, s:s}", "hidden", (json_int_t)r->hidden, "bidirectional",
                             r->n_directions == 2, "bias", r->n_parts == PARTS ? "fan_in" : "none");
    if (r->is_relu && json_object_set_new(keys, "nonlinearity", json_string("relu")) < 0) {
        json_decref(keys);
        return NULL;
    }
    return keys;
}

static int name_layer(struct importer *m, const struct recurrent *r, json_t *keys,
                      char ret[MS_NAME_MAX + 1])
{
    static const char *const names[2][PARTS] = {
        {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"},
        {"weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse",
         "bias_hh_l0_reverse"}};
    struct part parts[2 * PARTS];
    int n = 0;
    for (int d = 0; d < r->n_directions; d++) {
        for (int k = 0; k < r->n_parts; k++) {
            parts[n++] = (struct part){names[d][k], names[d][k], r->tensors[d][k]->name};
        }
    }
    return import_name_parts(m, parts, n, 0, keys, ret);
}

/* (tokens, directions, n, hidden) of a sequence (n, tokens, directions x hidden). */
static struct view view_of(const struct view *x, const struct recurrent *r)
{
    const struct view_atom all[] = {
        {AXIS_HEIGHT, x->size[AXIS_HEIGHT], 1, 0},
        {AXIS_CHANNEL, r->n_directions, r->hidden, 1},
        {AXIS_SAMPLE, x->size[AXIS_SAMPLE], 1, 2},
        {AXIS_CHANNEL, r->hidden, 1, 3},
    };
    struct view view = {.form = VIEW_SEQUENCE, .n_dims = 4};
    memcpy(view.size, x->size, sizeof(view.size));
    view.size[AXIS_CHANNEL] = r->n_directions * r->hidden;
    for (size_t i = 0; i < MS_ARRAY_SIZE(all); i++) {
        if (all[i].size != 1) {
            view.atom[view.n_atoms++] = all[i];
        }
    }
    return view;
}

/* Tokens before samples. */
static int is_token_first(const struct view *v)
{
    const struct view_atom *tokens = NULL;
    const struct view_atom *samples = NULL;
    const int is = v->form == VIEW_SEQUENCE && v->n_dims == 3;
    return is && (view_atoms(v, 0, &tokens) == 0 || tokens->axis == AXIS_HEIGHT) &&
           (view_atoms(v, 1, &samples) == 0 || samples->axis == AXIS_SAMPLE);
}

static int bind_made(struct importer *m, const MsOnnx__Node *node, const struct recurrent *r, int x)
{
    struct value made;
    char name[MS_NAME_MAX + 1];
    char own[32];
    json_t *keys = keys_of(r);
    int rc = keys == NULL ? import_fail_memory(m) : name_layer(m, r, keys, name);
    if (rc < 0) {
        json_decref(keys);
        return rc;
    }
    const struct view view = view_of(&import_value(m, x)->view, r);
    rc = import_layer(m, r->cell->layer, name, keys, x, &made);
    if (rc < 0) {
        return rc;
    }
    import_set_view(&made, &view);
    rc = import_bind(m, node, 0, &made);
    snprintf(own, sizeof(own), "\t%zu", m->n_values); /* no name that a file can have */
    int y = rc < 0 ? rc : import_keep(m, own, &made);
    rc = y < 0 ? y : MS_OK;
    for (size_t i = 1; i < 3 && rc == MS_OK; i++) {
        rc = bind_states(m, node, i, y, r->n_directions);
    }
    return rc;
}

static int import_recurrent(struct importer *m, const MsOnnx__Node *node)
{
    struct recurrent r;
    int rc = read_attributes(m, node, &r);
    rc = rc < 0 ? rc : check_states(m, node);
    int x = rc < 0 ? rc : import_tokens(m, node, 0);
    if (x < 0) {
        return x;
    }
    const struct view *view = &import_value(m, x)->view;
    r.channels = view->size[AXIS_CHANNEL];
    if (!is_token_first(view) || r.channels < 1) {
        return import_fail(m,
                           "it reads a sequence (tokens, n, channels), and gets %d dimensions "
                           "that are none",
                           view->n_dims);
    }
    const int has_bias = node->n_input > 3 && node->input[3][0] != '\0';
    r.n_parts = has_bias ? PARTS : B_IH;
    rc = read_parts(m, node, 1, W_IH, 1, r.channels, &r);
    rc = rc < 0 ? rc : read_parts(m, node, 2, W_HH, 1, r.hidden, &r);
    rc = rc < 0 || !has_bias ? rc : read_parts(m, node, 3, B_IH, 2, 1, &r);
    return rc < 0 ? rc : bind_made(m, node, &r, x);
}

const struct node_op recurrent_ops[] = {
    {"LSTM", 3, import_recurrent, 0},
    {"GRU", 3, import_recurrent, 0},
    {"RNN", 3, import_recurrent, 0},
    {NULL, 0, NULL, 0},
};
