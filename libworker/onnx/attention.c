/* attention.c - attention, however an exporter takes it apart
 *
 *     scores = MatMul(q, k turned)      of views of what layers make; a number times each, or times
 *                                       the scores: 1 / sqrt(width) in all
 *     scores = Add(scores, mask)        or Where: what is behind the diagonal is not seen
 *     p      = Dropout(Softmax(scores))
 *     y      = MatMul(p, v)             here it becomes a layer dot_product_attention
 *
 * What reads y turns the heads back into channels, which its view knows. */
#include "libworker/onnx/import.h"

#include "proto/macros.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN_LEAST 1e9 /* added to a score it leaves nothing of its exponential */

/* ---- scores ---- */

/* A value as it is multiplied by a number; the layer is the base's, the view is the same. */
static int operand(struct importer *m, int value, double *ret_factor)
{
    int base = import_value(m, value)->kind != VALUE_LAYER
                   ? import_fail(m, "its inputs are no two values that layers make")
                   : import_multiple_of(m, value, ret_factor);
    int rc = base < 0 ? base : import_make(m, base);
    return rc < 0 ? rc : base;
}

/* Images that are seen as tokens become a sequence; parts of one stay parts. */
static int see_tokens(struct importer *m, int x)
{
    int rc = import_make(m, x);
    rc =
        rc == MS_OK && import_value(m, x)->view.form == VIEW_IMAGES ? import_as_sequence(m, x) : rc;
    return rc < 0 ? rc : MS_OK;
}

static int bind_scores(struct importer *m, const MsOnnx__Node *node, int a, int b)
{
    double factor[2] = {1, 1};
    int64_t heads[2] = {0};
    int64_t width[2] = {0};
    int q = operand(m, a, &factor[0]);
    int k = q < 0 ? q : operand(m, b, &factor[1]);
    if (k < 0) {
        return k;
    }
    int rc = see_tokens(m, q);
    rc = rc < 0 ? rc : see_tokens(m, k);
    if (rc < 0) {
        return rc;
    }
    if (view_heads(&import_value(m, q)->view, 0, &heads[0], &width[0]) < 0 ||
        view_heads(&import_value(m, k)->view, 1, &heads[1], &width[1]) < 0 ||
        heads[0] != heads[1] || width[0] != width[1]) {
        return import_fail(m, "layers' values are multiplied as attention does: queries (n, heads, "
                              "tokens, width) with keys (n, heads, width, tokens), of one width");
    }
    struct value scores = {.kind = VALUE_SCORES,
                           .n_dims = import_value(m, q)->n_dims,
                           .expr = NO_VALUE,
                           .q = q,
                           .k = k,
                           .real = factor[0] * factor[1]};
    memcpy(scores.dim, import_value(m, q)->dim, sizeof(scores.dim));
    scores.dim[scores.n_dims - 1] = import_value(m, k)->dim[scores.n_dims - 1];
    return import_bind(m, node, 0, &scores);
}

/* ---- what is made of them ---- */

/* q, k and v as channels of one value one behind the other, which they mostly are. */
static int join_parts(struct importer *m, const int of[3], int64_t channels)
{
    const struct view *q = &import_value(m, of[0])->view;
    const int64_t all = size_times(3, channels);
    int is_one = q->size[AXIS_CHANNEL] == all;
    for (int i = 0; i < 3 && is_one; i++) {
        const struct value *part = import_value(m, of[i]);
        is_one = part->at == import_value(m, of[0])->at &&
                 part->view.first[AXIS_CHANNEL] == i * channels;
    }
    if (is_one) {
        return of[0];
    }
    for (int i = 0; i < 3; i++) {
        int rc = import_settle(m, of[i]);
        if (rc < 0) {
            return rc;
        }
    }
    struct value joined;
    char own[32];
    int rc = import_join(m, "concat", of, 3, &joined);
    if (rc < 0) {
        return rc;
    }
    const int64_t size[VIEW_AXES] = {joined.view.size[AXIS_SAMPLE], all,
                                     joined.view.size[AXIS_HEIGHT], 1};
    const struct view whole = view_whole(VIEW_SEQUENCE, size);
    import_set_view(&joined, &whole);
    snprintf(own, sizeof(own), "\t%zu", m->n_values); /* no name that a file can have */
    return import_keep(m, own, &joined);
}

static int bind_attention(struct importer *m, const MsOnnx__Node *node, const struct value *scores,
                          int v)
{
    const struct value s = *scores; /* values move */
    int64_t heads = 0;
    int64_t width = 0;
    int64_t of_v[2] = {0};
    struct value made;
    const int of[] = {s.q, s.k, v};
    int rc = see_tokens(m, v);
    if (rc < 0) {
        return rc;
    }
    (void)view_heads(&import_value(m, s.q)->view, 0, &heads, &width);
    if (!s.is_soft || view_heads(&import_value(m, v)->view, 0, &of_v[0], &of_v[1]) < 0 ||
        of_v[0] != heads || of_v[1] != width) {
        return import_fail(m, "the softmax of scores is multiplied with values (n, heads, tokens, "
                              "width), of as many heads and the width of queries and keys");
    }
    if (!(fabs(s.real * sqrt((double)width) - 1) < 1e-4)) {
        return import_fail(m,
                           "scores are multiplied by %g, and not by 1 / sqrt(%lld), the width "
                           "of a head",
                           s.real, (long long)width);
    }
    struct view view = import_value(m, v)->view;
    int x = join_parts(m, of, heads * width);
    if (x < 0) {
        return x;
    }
    json_t *keys = json_pack("{s:I, s:b, s:f}", "heads", (json_int_t)heads, "causal", s.is_causal,
                             "dropout", s.rate);
    rc = import_layer(m, "dot_product_attention", "", keys, x, &made);
    if (rc < 0) {
        return rc;
    }
    view.size[AXIS_CHANNEL] = heads * width;
    view.first[AXIS_CHANNEL] = 0;
    import_set_view(&made, &view);
    return import_bind(m, node, 0, &made);
}

int import_attend(struct importer *m, const MsOnnx__Node *node, int a, int b)
{
    return import_value(m, a)->kind == VALUE_SCORES ? bind_attention(m, node, import_value(m, a), b)
                                                    : bind_scores(m, node, a, b);
}

/* ---- masks ---- */

enum { MASK_TOKENS_MAX = 2048 }; /* 16 MiB of floats */

/* One number up to the diagonal, and one behind it, which is at `behind`? */
static int is_triangle(const float *of, int64_t n, int is_transposed, int64_t behind)
{
    int is = 1;
    for (int64_t i = 0; i < n && is; i++) {
        for (int64_t k = 0; k < n && is; k++) {
            is = of[is_transposed ? k * n + i : i * n + k] == (k > i ? of[behind] : of[0]);
        }
    }
    return is;
}

int import_is_mask(struct importer *m, int value)
{
    struct value *v = import_value(m, value);
    if (v->kind != VALUE_PARAM) {
        return v->kind == VALUE_MASK;
    }
    const int n_dims = v->n_dims;
    const int64_t n = n_dims >= 2 ? v->dim[n_dims - 1] : 0;
    int is_square = n >= 2 && n <= MASK_TOKENS_MAX && v->dim[n_dims - 2] == n && !v->is_repeated &&
                    v->n_dims == v->tensor->n_dims &&
                    json_object_get(m->used, v->tensor->name) == NULL;
    for (int i = 0; i < n_dims - 2 && is_square; i++) {
        is_square = v->dim[i] == 1;
    }
    if (!is_square) {
        return 0;
    }
    float *of = malloc((size_t)(n * n) * sizeof(*of));
    if (of == NULL) {
        return import_fail_memory(m);
    }
    int rc = onnx_read(m->file, v->tensor, of, (size_t)(n * n), m->err);
    const int64_t behind = v->is_transposed ? n : 1;
    const int is = rc == MS_OK && is_triangle(of, n, v->is_transposed, behind);
    if (is) {
        v->kind = VALUE_MASK;
        v->real = (double)of[0];
        v->behind = (double)of[behind];
    }
    free(of);
    return rc < 0 ? rc : is;
}

/* Does the mask leave what is up to the diagonal, and hide what is behind it? */
static int is_causal(const struct value *mask)
{
    return mask->real == 0 && mask->behind <= -HIDDEN_LEAST;
}

int import_scored(struct importer *m, const MsOnnx__Node *node, enum fn fn, int a, int b)
{
    const int is_a = import_value(m, a)->kind == VALUE_SCORES;
    struct value scores = *import_value(m, is_a ? a : b);
    const int other = is_a ? b : a;
    double number = 0;
    if (scores.is_soft) {
        return import_fail(m, "the softmax of scores is multiplied with values, and nothing else");
    }
    const int is_mask = import_is_mask(m, other);
    if (is_mask < 0) {
        return is_mask;
    }
    if (fn == FN_ADD && is_mask && is_causal(import_value(m, other))) {
        scores.is_causal = 1;
        return import_bind(m, node, 0, &scores);
    }
    int rc = fn == FN_MUL || (fn == FN_DIV && is_a)
                 ? import_number(m, other, &number)
                 : import_fail(m, "scores are multiplied by a number, or get a mask that hides "
                                  "what is behind the diagonal, and nothing else");
    if (rc == MS_OK && (!(number > 0) || scores.is_causal)) {
        rc = import_fail(m,
                         scores.is_causal ? "scores are multiplied by a number before a mask"
                                          : "scores are multiplied by %g",
                         number);
    }
    scores.real = fn == FN_MUL ? scores.real * number : scores.real / number;
    return rc < 0 ? rc : import_bind(m, node, 0, &scores);
}

static double calculated(enum fn fn, double a, double b)
{
    return fn == FN_ADD      ? a + b
           : fn == FN_SUB    ? a - b
           : fn == FN_MUL    ? (a == 0 || b == 0 ? 0 : a * b) /* -inf of none */
           : fn == FN_DIV    ? a / b
           : fn == FN_NUMBER ? (double)(a == b)
                             : NAN;
}

/* Both numbers of a value; of one number twice. */
static int mask_of(struct importer *m, int value, double ret[2])
{
    const struct value *v = import_value(m, value);
    if (v->kind == VALUE_MASK) {
        ret[0] = v->real;
        ret[1] = v->behind;
        return MS_OK;
    }
    int rc = import_number(m, value, &ret[0]);
    ret[1] = ret[0];
    return rc;
}

int import_masked(struct importer *m, const MsOnnx__Node *node, enum fn fn, int a, int b)
{
    double of[2][2] = {{0}};
    if (a < 0 || b < 0) {
        return import_fail(m, "an input is missing");
    }
    int rc = mask_of(m, a, of[0]);
    rc = rc < 0 ? rc : mask_of(m, b, of[1]);
    if (rc < 0) {
        return rc;
    }
    struct value mask = *import_value(m, import_value(m, a)->kind == VALUE_MASK ? a : b);
    mask.real = calculated(fn, of[0][0], of[1][0]);
    mask.behind = calculated(fn, of[0][1], of[1][1]);
    return import_bind(m, node, 0, &mask);
}

/* Where(mask, one, other): of numbers a mask, of scores and what hides them the scores. */
int import_chosen(struct importer *m, const MsOnnx__Node *node)
{
    double of[2][2] = {{0}};
    int in[3];
    int scores = NO_VALUE;
    int rc = MS_OK;
    for (size_t i = 0; i < 3; i++) {
        in[i] = import_need(m, node, i);
        if (in[i] < 0) {
            return in[i];
        }
    }
    if (import_value(m, in[0])->kind != VALUE_MASK) {
        return import_fail(m, "what chooses is no mask");
    }
    for (int i = 0; i < 2 && rc == MS_OK; i++) {
        const int is_scores = import_value(m, in[i + 1])->kind == VALUE_SCORES;
        scores = is_scores ? in[i + 1] : scores;
        rc = is_scores ? MS_OK : mask_of(m, in[i + 1], of[i]);
    }
    if (rc < 0) {
        return rc;
    }
    struct value mask = *import_value(m, in[0]);
    mask.real = mask.real != 0 ? of[0][0] : of[1][0];
    mask.behind = mask.behind != 0 ? of[0][1] : of[1][1];
    if (scores == NO_VALUE) {
        return import_bind(m, node, 0, &mask);
    }
    struct value hidden = *import_value(m, scores);
    if (!is_causal(&mask) || hidden.is_soft || in[1] == in[2]) {
        return import_fail(m, "scores get a mask that hides what is behind the diagonal, and no "
                              "other");
    }
    hidden.is_causal = 1;
    return import_bind(m, node, 0, &hidden);
}

/* Ones up to the diagonal of a matrix of ones. */
static int import_trilu(struct importer *m, const MsOnnx__Node *node)
{
    int64_t upper = 1;
    const struct value *k = NULL;
    int x = import_need(m, node, 0);
    int diagonal = x < 0 ? x : import_input(m, node, 1);
    int rc = import_failed(diagonal) ? diagonal : MS_OK;
    rc = rc < 0 ? rc : attribute_int(m, node, "upper", 1, &upper);
    rc = rc < 0 || diagonal == NO_VALUE ? rc : import_ints(m, diagonal, &k);
    if (rc < 0) {
        return rc;
    }
    const int64_t first = k != NULL && k->n == 1 ? k->ints[0] : 0;
    const struct value *value = import_value(m, x);
    const int is_square = value->kind == VALUE_REAL && value->n_dims >= 2 &&
                          value->dim[value->n_dims - 1] == value->dim[value->n_dims - 2];
    if (!is_square || first != (upper != 0)) {
        return import_fail(m, "a square of one number is cut at its diagonal, for a mask");
    }
    struct value mask = *value;
    mask.kind = VALUE_MASK;
    mask.tensor = NULL;
    mask.behind = upper != 0 ? mask.real : 0;
    mask.real = upper != 0 ? 0 : mask.real;
    return import_bind(m, node, 0, &mask);
}

/* ---- one op for all of it, from opset 23 on ---- */

/* Queries, keys and values (n, heads, tokens, width), in of. */
static int read_parts(struct importer *m, const MsOnnx__Node *node, int of[3], int64_t *ret_width)
{
    int64_t heads[3] = {0};
    int64_t width[3] = {0};
    for (size_t i = 0; i < 3; i++) {
        of[i] = import_need(m, node, i);
        if (of[i] < 0) {
            return of[i];
        }
        const int is_layer = import_value(m, of[i])->kind == VALUE_LAYER;
        int rc = is_layer ? see_tokens(m, of[i]) : MS_OK;
        if (rc < 0) {
            return rc;
        }
        if (!is_layer || import_value(m, of[i])->n_dims != 4 ||
            view_heads(&import_value(m, of[i])->view, 0, &heads[i], &width[i]) < 0 ||
            heads[i] != heads[0] || width[i] != width[0]) {
            return import_fail(m, "it reads queries, keys and values of layers, (n, heads, tokens, "
                                  "width) each, of as many heads and one width");
        }
    }
    *ret_width = width[0];
    return MS_OK;
}

/* What else it may do; PyTorch writes attributes that say that it does not. */
static int check_attention(struct importer *m, const MsOnnx__Node *node)
{
    double cap = 0;
    int64_t type = ONNX_FLOAT;
    int has_past = 0;
    int makes_more = 0;
    int rc = attribute_real(m, node, "softcap", 0, &cap);
    rc = rc < 0 ? rc : attribute_int(m, node, "softmax_precision", ONNX_FLOAT, &type);
    for (size_t i = 4; i < node->n_input; i++) {
        has_past |= node->input[i][0] != '\0';
    }
    for (size_t i = 1; i < node->n_output; i++) {
        makes_more |= node->output[i][0] != '\0';
    }
    if (rc < 0) {
        return rc;
    }
    if (cap != 0) {
        return import_fail(m,
                           "its softcap %g bends scores before their softmax, and no layer does: "
                           "export it without one",
                           cap);
    }
    if (type != ONNX_FLOAT && type != ONNX_DOUBLE) {
        return import_fail(m, "its softmax_precision is %s; export the model in float32",
                           onnx_type_name(type >= 0 && type <= INT32_MAX ? (int)type : -1));
    }
    return has_past     ? import_fail(m, "it reads keys and values of tokens before these, which "
                                             "a network does not keep: export it without a cache")
           : makes_more ? import_fail(m, "it makes more than its result (keys, values or scores), "
                                         "which nothing here reads: export it without them")
                        : MS_OK;
}

static int import_attention(struct importer *m, const MsOnnx__Node *node)
{
    int of[3];
    int64_t width = 1;
    int64_t causal = 0;
    double scale = 0;
    int rc = check_attention(m, node);
    rc = rc < 0 ? rc : read_parts(m, node, of, &width);
    rc = rc < 0 ? rc : attribute_int(m, node, "is_causal", 0, &causal);
    rc = rc < 0 ? rc : attribute_real(m, node, "scale", 1 / sqrt((double)width), &scale);
    int mask = rc < 0 ? rc : import_input(m, node, 3);
    int is_mask = mask < 0 ? 0 : import_is_mask(m, mask);
    if (rc < 0 || import_failed(mask) || is_mask < 0) {
        return rc < 0 ? rc : import_failed(mask) ? mask : is_mask;
    }
    if (mask >= 0 && !(is_mask && is_causal(import_value(m, mask)))) {
        return import_fail(m, "its mask hides something else than what is behind the diagonal");
    }
    const struct value scores = {.kind = VALUE_SCORES,
                                 .q = of[0],
                                 .k = of[1],
                                 .real = scale,
                                 .is_causal = causal != 0 || mask >= 0,
                                 .is_soft = 1};
    return bind_attention(m, node, &scores, of[2]);
}

const struct node_op attention_ops[] = {
    {"Attention", 3, import_attention, 0},
    {"Trilu", 1, import_trilu, 0},
    {NULL, 0, NULL, 0},
};
