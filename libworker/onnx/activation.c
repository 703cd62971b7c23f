/* activation.c - functions of one value, however an exporter takes them apart
 *
 * GELU comes as one node, or as x (erf(x / sqrt 2) + 1) / 2 in any order of its products; SiLU as
 * x sigmoid(x); hard swish as x clip(x + 3, 0, 6) / 6. Instead of their patterns their values are
 * compared: a function of one real value which is that of a layer at 321 places from -18 to 18, at
 * some far from there, and around each number that it is made of, is that layer. */
#include "libworker/onnx/import.h"

#include "proto/grow.h"
#include "proto/macros.h"

#include <math.h>
#include <string.h>

#define TOLERANCE 4e-6 /* constants are floats; the nearest two, both GELUs, differ by 4e-4 */

/* ---- expressions ---- */

static int add_expr(struct importer *m, const struct expr *expr)
{
    void *grown = ms_grow(m->exprs, m->n_exprs, 1, sizeof(*expr), &m->exprs_room);
    if (grown == NULL) {
        return import_fail_memory(m);
    }
    m->exprs = grown;
    m->exprs[m->n_exprs] = *expr;
    return (int)m->n_exprs++;
}

static int number(struct importer *m, double c)
{
    const struct expr expr = {.fn = FN_NUMBER,
                              .a = NO_VALUE,
                              .b = NO_VALUE,
                              .c = c,
                              .base = NO_VALUE,
                              .size = 1,
                              .of_a = NO_VALUE,
                              .of_b = NO_VALUE};
    return add_expr(m, &expr);
}

int import_base(struct importer *m, int value)
{
    const struct expr expr = {.fn = FN_X,
                              .a = NO_VALUE,
                              .b = NO_VALUE,
                              .base = value,
                              .size = 1,
                              .of_a = NO_VALUE,
                              .of_b = NO_VALUE};
    return add_expr(m, &expr);
}

/* Of a value: what it is a function of; of a number itself. */
static int expr_of(struct importer *m, int value)
{
    struct value *v = import_value(m, value);
    double c = 0;
    if (v->kind != VALUE_LAYER) {
        int rc = import_number(m, value, &c);
        return rc < 0 ? rc : number(m, c);
    }
    if (v->expr == NO_VALUE) {
        int expr = import_base(m, value);
        import_value(m, value)->expr = expr < 0 ? NO_VALUE : expr;
        return expr;
    }
    return v->expr;
}

static double evaluate(const struct importer *m, int index, double x)
{
    const struct expr *e = &m->exprs[index];
    if (e->fn == FN_X) {
        return x;
    }
    if (e->fn == FN_NUMBER) {
        return e->c;
    }
    const double a = evaluate(m, e->a, x);
    const double b = e->b != NO_VALUE ? evaluate(m, e->b, x) : 0;
    const double scaled = e->c * a + e->d;
    switch (e->fn) {
    case FN_ADD:
        return a + b;
    case FN_SUB:
        return a - b;
    case FN_MUL:
        return a * b;
    case FN_DIV:
        return a / b;
    case FN_POW:
        return pow(a, b);
    case FN_RELU:
        return a > 0 ? a : 0;
    case FN_CLIP:
        return a < e->c ? e->c : a > e->d ? e->d : a;
    case FN_LEAKY_RELU:
        return a > 0 ? a : e->c * a;
    case FN_ELU:
        return a > 0 ? a : e->c * expm1(a);
    case FN_SIGMOID:
        return 1 / (1 + exp(-a));
    case FN_TANH:
        return tanh(a);
    case FN_ERF:
        return erf(a);
    case FN_HARD_SIGMOID:
        return scaled < 0 ? 0 : scaled > 1 ? 1 : scaled;
    case FN_HARD_SWISH:
        return a * (a < -3 ? 0 : a > 3 ? 1 : (a + 3) / 6);
    case FN_GELU:
        return a * (1 + erf(a * M_SQRT1_2)) / 2;
    case FN_GELU_TANH:
        return a * (1 + tanh(sqrt(M_2_PI) * (a + 0.044715 * a * a * a))) / 2;
    case FN_NEG:
        return -a;
    case FN_EXP:
        return exp(a);
    case FN_LINEAR:
        return scaled;
    default:
        return NAN;
    }
}

/* ---- which layer it is ---- */

enum { PLACES = 321, FAR_LEAST = 20, FAR_MOST = 300 }; /* far: tenths of exponents of ten */

static double place(int i)
{
    return (double)(i - PLACES / 2) * 0.1125 + 0.003; /* -18 to 18: no kink, no zero */
}

struct known {
    const char *kind; /* of the layer; "": the value itself */
    enum fn fn;
    const char *key; /* of its number; NULL: it has none */
};

struct numbers { /* of a function that has some */
    double c, d;
};

static const struct known known[] = {
    {"", FN_X, NULL},
    {"relu", FN_RELU, NULL},
    {"relu6", FN_CLIP, NULL},
    {"sigmoid", FN_SIGMOID, NULL},
    {"tanh", FN_TANH, NULL},
    {"hard_swish", FN_HARD_SWISH, NULL},
    {"gelu", FN_GELU, NULL},
    {"gelu", FN_GELU_TANH, "approximate"},
    {"silu", FN_MUL, NULL},
    {"leaky_relu", FN_LEAKY_RELU, "slope"},
    {"elu", FN_ELU, "alpha"},
    {"hard_sigmoid", FN_HARD_SIGMOID, NULL},
    {"linear", FN_LINEAR, "factor"},
};

static double known_at(const struct known *k, struct numbers of, double x)
{
    struct expr exprs[] = {
        {.fn = FN_X},
        {.fn = k->fn, .a = 0, .b = NO_VALUE, .c = of.c, .d = of.d},
        {.fn = FN_SIGMOID, .a = 0, .b = NO_VALUE},
        {.fn = FN_MUL, .a = 0, .b = 2},
    };
    const struct importer own = {.exprs = exprs};
    return evaluate(&own, k->fn == FN_X ? 0 : k->fn == FN_MUL ? 3 : 1, x);
}

static int is_alike(const struct importer *m, int expr, const struct known *k, struct numbers c,
                    double x)
{
    const double want = known_at(k, c, x);
    return fabs(evaluate(m, expr, x) - want) <= TOLERANCE * (1 + fabs(want)); /* NaN: no */
}

/* From 100 to 1e30, and below -100: where an exponential is too large for a double, e^x / (1 + e^x)
 * is no number, and says nothing. */
static int is_alike_far(const struct importer *m, int expr, const struct known *k, struct numbers c)
{
    int is = 1;
    for (int i = FAR_LEAST; i <= FAR_MOST && is; i += 5) {
        const double x = pow(10, i * 0.1);
        is = (is_alike(m, expr, k, c, x) || !isfinite(evaluate(m, expr, x))) &&
             (is_alike(m, expr, k, c, -x) || !isfinite(evaluate(m, expr, -x)));
    }
    return is;
}

/* Around a number of the expression, where a bound may be that no other place lies beyond. */
static int is_alike_around(const struct importer *m, int expr, const struct known *k,
                           struct numbers c, double number)
{
    static const double beside[] = {-1, -0.01, 0.01, 1};
    int is = 1;
    for (size_t i = 0; i < MS_ARRAY_SIZE(beside) && is && fabs(number) < 1e30; i++) {
        is = is_alike(m, expr, k, c, number + beside[i]) &&
             is_alike(m, expr, k, c, -number + beside[i]);
    }
    return is;
}

/* ... each bound of it. part: an expression in it. */
static int is_alike_at_bounds(const struct importer *m, int expr, const struct known *k,
                              struct numbers c, int part)
{
    const struct expr *e = &m->exprs[part];
    int is = 1;
    if (e->fn == FN_NUMBER || e->fn == FN_CLIP) {
        is = is_alike_around(m, expr, k, c, e->c);
    }
    if (e->fn == FN_CLIP) {
        is = is && is_alike_around(m, expr, k, c, e->d);
    }
    is = is && (e->a == NO_VALUE || is_alike_at_bounds(m, expr, k, c, e->a));
    return is && (e->b == NO_VALUE || is_alike_at_bounds(m, expr, k, c, e->b));
}

static int is_known(const struct importer *m, int expr, const struct known *k, struct numbers c)
{
    int is = 1;
    for (int i = 0; i < PLACES && is; i++) {
        is = is_alike(m, expr, k, c, place(i));
    }
    return is && is_alike_far(m, expr, k, c) && is_alike_at_bounds(m, expr, k, c, expr);
}

static double real_of(double x)
{
    return isfinite(x) ? import_real((float)x) : 0;
}

/* The numbers of a function that has some: by its values at some places. */
static struct numbers numbers_of(const struct importer *m, int expr, enum fn fn)
{
    const double x = -1.0;
    const double y = evaluate(m, expr, x);
    const double zero = fn == FN_LINEAR ? evaluate(m, expr, 0) : 0;
    switch (fn) {
    case FN_CLIP:
        return (struct numbers){0, 6};
    case FN_HARD_SIGMOID:
        return (struct numbers){1.0 / 6, 0.5};
    case FN_LEAKY_RELU:
        return (struct numbers){real_of(y / x), 0};
    case FN_ELU:
        return (struct numbers){real_of(y / expm1(x)), 0};
    case FN_LINEAR:
        return (struct numbers){real_of(zero - y), real_of(zero)};
    default:
        return (struct numbers){0, 0};
    }
}

static const struct known *find_known(const struct importer *m, int expr, struct numbers *ret)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(known); i++) {
        *ret = numbers_of(m, expr, known[i].fn);
        if (is_known(m, expr, &known[i], *ret)) {
            return &known[i];
        }
    }
    return NULL;
}

/* ---- layers of them ---- */

/* What it is made of may have been settled since: it lies as that does. */
static void set_layer(struct value *ret, const struct value *made)
{
    memcpy(ret->layer, made->layer, sizeof(ret->layer));
    ret->at = made->at;
    ret->view = made->view;
}

static int make_known(struct importer *m, int value, int base, const struct known *k,
                      struct numbers of)
{
    int rc = import_settle(m, base);
    struct value made = *import_value(m, base);
    if (rc == MS_OK && k->kind[0] != '\0') {
        json_t *keys = k->fn == FN_GELU_TANH ? json_pack("{s:s}", k->key, "tanh")
                       : k->fn == FN_LINEAR  ? json_pack("{s:f, s:f}", k->key, of.c, "offset", of.d)
                       : k->key != NULL      ? json_pack("{s:f}", k->key, of.c)
                                             : json_object();
        rc = import_layer(m, k->kind, "", keys, base, &made);
    }
    set_layer(import_value(m, value), &made);
    return rc;
}

/* What a layer makes of two values that are layers of their own; NULL: there is none. */
static const char *joined_by(enum fn fn)
{
    return fn == FN_ADD ? "add" : fn == FN_SUB ? "sub" : fn == FN_MUL ? "mul" : NULL;
}

/* Do both lie alike? Images that are seen as tokens may have to become some. */
static int lie_alike(struct importer *m, int a, int b)
{
    int rc = MS_OK;
    if (!view_equal(&import_value(m, a)->view, &import_value(m, b)->view)) {
        rc = import_as_sequence(m, a);
        rc = rc < 0 ? rc : import_as_sequence(m, b);
    }
    return rc < 0 || view_equal(&import_value(m, a)->view, &import_value(m, b)->view)
               ? rc
               : import_fail(m, "its inputs have two shapes: their dimensions stand in two orders");
}

static int make_joined(struct importer *m, int value, const char *kind, int a, int b)
{
    int rc = import_settle(m, a);
    rc = rc < 0 ? rc : import_settle(m, b);
    const int is_gate_a = rc == MS_OK && import_is_gate(import_value(m, a), import_value(m, b));
    const int is_gated =
        rc == MS_OK && (is_gate_a || import_is_gate(import_value(m, b), import_value(m, a)));
    rc = rc < 0 || (is_gated && strcmp(kind, "mul") == 0) ? rc : lie_alike(m, a, b);
    if (rc < 0) {
        return rc;
    }
    struct value made;
    const int of[] = {a, b};
    rc = import_join(m, kind, of, 2, &made);
    if (rc == MS_OK) {
        made.view = import_value(m, is_gate_a ? b : a)->view;
        set_layer(import_value(m, value), &made);
    }
    return rc;
}

/* The expression with `base` where it has `target`; NO_VALUE: it has something else of the data. */
static int rebase(struct importer *m, int index, int target, int base)
{
    struct expr e = m->exprs[index];
    if (index == target || e.fn == FN_NUMBER) {
        return index == target ? base : index;
    }
    if (e.fn == FN_X) {
        return NO_VALUE;
    }
    e.a = rebase(m, e.a, target, base);
    const int has_b = e.b != NO_VALUE;
    e.b = has_b && e.a >= 0 ? rebase(m, e.b, target, base) : NO_VALUE;
    if (e.a < 0 || (has_b && e.b < 0)) {
        return e.a < 0 ? e.a : e.b;
    }
    e.base = m->exprs[base].base;
    return add_expr(m, &e);
}

struct single {
    const struct known *known; /* NULL: none was found */
    struct numbers numbers;
    int before;
};

/* The layer that makes `value` of `before` alone. What others have of their expressions stays. */
static int find_of(struct importer *m, int value, int before, struct single *ret)
{
    const int own = import_value(m, value)->expr;
    const int target = import_value(m, before)->expr;
    const size_t n_exprs = m->n_exprs;
    int base = import_base(m, before);
    int expr = base < 0 ? base : rebase(m, own, target, base);
    if (expr >= 0) {
        ret->known = find_known(m, expr, &ret->numbers);
        ret->before = before;
    }
    m->n_exprs = n_exprs; /* they were for this question alone */
    return import_failed(expr) ? expr : MS_OK;
}

/* Of `at` or what that is made of, the first first: a function that was taken apart is whole. */
static int find_single(struct importer *m, int value, int at, struct single *ret)
{
    const int expr = expr_of(m, at);
    if (expr < 0) {
        return expr;
    }
    const struct expr e = m->exprs[expr];
    const int of[] = {e.of_a, e.of_b};
    int rc = MS_OK;
    for (size_t i = 0; i < MS_ARRAY_SIZE(of) && rc == MS_OK && ret->known == NULL; i++) {
        rc = of[i] != NO_VALUE ? find_single(m, value, of[i], ret) : MS_OK;
    }
    return rc == MS_OK && ret->known == NULL && at != value && e.fn != FN_X
               ? find_of(m, value, at, ret)
               : rc;
}

int import_make(struct importer *m, int value)
{
    const struct value *v = import_value(m, value);
    if (v->layer[0] != '\0') {
        return MS_OK;
    }
    if (v->kind != VALUE_LAYER || v->expr == NO_VALUE) {
        return import_fail(m, "its input is nothing that is made of the data");
    }
    const struct expr e = m->exprs[v->expr];
    struct single single = {.before = e.base};
    int rc = MS_OK;
    if (e.base != NO_VALUE) {
        single.known = find_known(m, v->expr, &single.numbers);
    }
    if (single.known == NULL) {
        rc = find_single(m, value, value, &single);
        rc = rc == MS_OK && single.known != NULL ? import_make(m, single.before) : rc;
    }
    if (rc < 0) {
        return rc;
    }
    if (single.known != NULL) {
        return make_known(m, value, single.before, single.known, single.numbers);
    }
    const char *kind = e.of_a != NO_VALUE && e.of_b != NO_VALUE ? joined_by(e.fn) : NULL;
    return kind != NULL ? make_joined(m, value, kind, e.of_a, e.of_b)
                        : import_fail(m, "what it makes is none of the functions that layers "
                                         "have: docs/networks.md lists them");
}

int import_multiple_of(struct importer *m, int value, double *ret_factor)
{
    const struct value *v = import_value(m, value);
    const struct expr *e = v->expr != NO_VALUE ? &m->exprs[v->expr] : NULL;
    *ret_factor = 1;
    if (v->layer[0] != '\0' || e == NULL || e->base == NO_VALUE) {
        return value;
    }
    const struct known *linear = &known[MS_ARRAY_SIZE(known) - 1];
    const struct numbers of = numbers_of(m, v->expr, linear->fn);
    if (of.d != 0 || !is_known(m, v->expr, linear, of)) {
        return value;
    }
    *ret_factor = of.c;
    return e->base;
}

/* ---- nodes ---- */

static enum fn fn_of(const MsOnnx__Node *node)
{
    return (enum fn)import_op(node->op_type)->arg;
}

static int same_dims(const struct value *a, const struct value *b)
{
    int same = a->n_dims == b->n_dims;
    for (int i = 0; i < a->n_dims && same; i++) {
        same = a->dim[i] == b->dim[i] || a->dim[i] < 0 || b->dim[i] < 0;
    }
    return same;
}

/* Does a number leave the value its shape? One that has more elements may repeat it. */
static int check_number_dims(struct importer *m, const struct value *value,
                             const struct value *number)
{
    const int more = value->n_dims - number->n_dims;
    int fits = more >= 0;
    for (int i = 0; i < number->n_dims && fits; i++) {
        fits = number->dim[i] == 1 || number->dim[i] == value->dim[more + i];
    }
    return fits ? MS_OK
                : import_fail(m, "a number is repeated in it to a shape that is not its other "
                                 "input's; the shape of what the data make stays");
}

/* What it makes, of operand values a and b (NO_VALUE: it has one). */
static int bind_expr(struct importer *m, const MsOnnx__Node *node, struct expr e, int a, int b)
{
    const int is_a = import_value(m, a)->kind == VALUE_LAYER;
    const int is_b = b != NO_VALUE && import_value(m, b)->kind == VALUE_LAYER;
    e.a = expr_of(m, a);
    e.b = b != NO_VALUE && e.a >= 0 ? expr_of(m, b) : NO_VALUE;
    if (e.a < 0 || (b != NO_VALUE && e.b < 0)) {
        return e.a < 0 ? e.a : e.b;
    }
    e.of_a = is_a ? a : NO_VALUE;
    e.of_b = is_b ? b : NO_VALUE;
    const struct expr *ea = &m->exprs[e.a];
    const struct expr *eb = e.b != NO_VALUE ? &m->exprs[e.b] : NULL;
    e.base = is_a ? ea->base : eb->base;
    e.size = 1 + ea->size + (eb != NULL ? eb->size : 0);
    const int has_two = is_a && is_b && (ea->base != eb->base || ea->base == NO_VALUE);
    if (has_two || e.size > EXPR_SIZE_MAX) {
        e.base = NO_VALUE; /* of two values: a sum, or nothing that is known */
        e.size = 1;
    }
    int rc = b != NO_VALUE && is_a != is_b ? check_number_dims(m, import_value(m, is_a ? a : b),
                                                               import_value(m, is_a ? b : a))
                                           : MS_OK;
    if (rc < 0) {
        return rc;
    }
    const int is_gate_a = is_a && is_b && import_is_gate(import_value(m, a), import_value(m, b));
    const int is_gate_b = is_a && is_b && import_is_gate(import_value(m, b), import_value(m, a));
    const int is_gated = e.fn == FN_MUL && (is_gate_a || is_gate_b);
    if (is_a && is_b && !is_gated && !same_dims(import_value(m, a), import_value(m, b))) {
        return import_fail(m, "its inputs have two shapes%s",
                           e.fn == FN_MUL ? ", and none is a gate, (n, c, 1, 1), of the other"
                                          : "");
    }
    int expr = add_expr(m, &e);
    if (expr < 0) {
        return expr;
    }
    struct value value = *import_value(m, is_a && !(is_gated && is_gate_a) ? a : b);
    value.layer[0] = '\0';
    value.dense = NULL;
    value.expr = expr;
    rc = import_bind(m, node, 0, &value);
    if (rc < 0 || e.base != NO_VALUE) {
        return rc;
    }
    if (has_two && joined_by(e.fn) == NULL) {
        return import_fail(m, "layers can be added, subtracted, multiplied and put in a row, and "
                              "nothing else yet");
    }
    const int made = (int)m->n_values - 1;
    rc = import_make(m, made);
    import_value(m, made)->expr = NO_VALUE; /* what reads it is a function of it */
    return rc;
}

static int import_function(struct importer *m, const MsOnnx__Node *node)
{
    struct expr e = {.fn = fn_of(node)};
    int x = import_need(m, node, 0);
    int rc = x < 0 ? x : MS_OK;
    if (rc == MS_OK && e.fn == FN_LEAKY_RELU) {
        rc = attribute_real(m, node, "alpha", 0.01, &e.c);
    } else if (rc == MS_OK && e.fn == FN_ELU) {
        rc = attribute_real(m, node, "alpha", 1, &e.c);
    } else if (rc == MS_OK && e.fn == FN_HARD_SIGMOID) {
        rc = attribute_real(m, node, "alpha", 0.2, &e.c);
        rc = rc < 0 ? rc : attribute_real(m, node, "beta", 0.5, &e.d);
    } else if (rc == MS_OK && e.fn == FN_GELU) {
        const MsOnnx__Attribute *at = attribute_find(node, "approximate");
        const int is_tanh = at != NULL && at->s.len == 4 && memcmp(at->s.data, "tanh", 4) == 0;
        e.fn = is_tanh ? FN_GELU_TANH : FN_GELU;
    }
    if (rc < 0) {
        return rc;
    }
    if (import_value(m, x)->kind != VALUE_LAYER) {
        return import_fail(m, "its input is nothing that is made of the data");
    }
    return bind_expr(m, node, e, x, NO_VALUE);
}

static int import_clip(struct importer *m, const MsOnnx__Node *node)
{
    struct expr e = {.fn = FN_CLIP, .c = -INFINITY, .d = INFINITY};
    int x = import_need(m, node, 0);
    int low = x < 0 ? x : import_input(m, node, 1);
    int high = import_failed(low) ? low : import_input(m, node, 2);
    int rc = import_failed(high) ? high : MS_OK;
    rc = rc < 0 || low == NO_VALUE ? rc : import_number(m, low, &e.c);
    rc = rc < 0 || high == NO_VALUE ? rc : import_number(m, high, &e.d);
    if (rc < 0) {
        return rc;
    }
    if (import_value(m, x)->kind != VALUE_LAYER) {
        return import_fail(m, "its input is nothing that is made of the data");
    }
    if (isnan(e.c) || isnan(e.d)) {
        return import_fail(m, "a bound that is no number");
    }
    return bind_expr(m, node, e, x, NO_VALUE);
}

/* A bias of a MatMul that has none yet: nn.Linear, taken apart. 1: it was one. */
static int take_bias(struct importer *m, const MsOnnx__Node *node, int a, int b)
{
    const int x = import_value(m, a)->kind == VALUE_LAYER ? a : b;
    const size_t i = x == a ? 1 : 0;
    struct value *dense = import_value(m, x);
    const struct value *other = import_value(m, x == a ? b : a);
    if (dense->kind != VALUE_LAYER || dense->dense == NULL || other->kind != VALUE_PARAM ||
        other->n_dims != 1 || other->dim[0] != dense->dim[dense->n_dims - 1] ||
        json_integer_value(json_object_get(m->reads, node->input[1 - i])) != 1) {
        return 0;
    }
    json_t *keys = dense->dense;
    struct value made = *dense;
    struct value bias;
    int rc = import_param(m, node, i, 1, &bias);
    if (rc < 0) {
        return rc;
    }
    made.dense = NULL;
    import_value(m, x)->dense = NULL;
    rc = import_name_bias(m, keys, bias.tensor->name);
    if (rc < 0) {
        return rc;
    }
    rc = import_bind(m, node, 0, &made);
    return rc < 0 ? rc : 1;
}

/* Of two numbers, of which exporters make the scale of attention. */
static int bind_number(struct importer *m, const MsOnnx__Node *node, enum fn fn, int a, int b)
{
    double of[2] = {0};
    int rc = import_number(m, a, &of[0]);
    rc = rc < 0 ? rc : import_number(m, b, &of[1]);
    if (rc < 0) {
        return rc;
    }
    const struct expr exprs[] = {
        {.fn = FN_NUMBER, .c = of[0]}, {.fn = FN_NUMBER, .c = of[1]}, {.fn = fn, .a = 0, .b = 1}};
    const struct importer own = {.exprs = (struct expr *)exprs};
    const int more = import_value(m, a)->n_dims < import_value(m, b)->n_dims;
    struct value value = *import_value(m, more ? b : a);
    value.kind = VALUE_REAL;
    value.tensor = NULL;
    value.real = evaluate(&own, 2, 0);
    return import_bind(m, node, 0, &value);
}

static int import_binary(struct importer *m, const MsOnnx__Node *node)
{
    struct expr e = {.fn = fn_of(node)};
    int a = import_need(m, node, 0);
    int b = a < 0 ? a : import_need(m, node, 1);
    if (b < 0) {
        return b;
    }
    if (import_value(m, a)->kind == VALUE_INTS && import_value(m, b)->kind == VALUE_INTS) {
        return import_binary_ints(m, node, a, b);
    }
    const struct value *va = import_value(m, a);
    const struct value *vb = import_value(m, b);
    if (va->kind == VALUE_RANGE || vb->kind == VALUE_RANGE) {
        return import_binary_places(m, node, e.fn, a, b);
    }
    if (va->kind == VALUE_NOISE || vb->kind == VALUE_NOISE) {
        return import_noise(m, node, e.fn, a, b);
    }
    if (va->kind == VALUE_SCORES || vb->kind == VALUE_SCORES) {
        return import_scored(m, node, e.fn, a, b);
    }
    if (va->kind == VALUE_MASK || vb->kind == VALUE_MASK) {
        return import_masked(m, node, e.fn, a, b);
    }
    int took = import_take_affine(m, node, e.fn, a, b);
    if (took != 0) {
        return took < 0 ? took : MS_OK;
    }
    va = import_value(m, a);
    vb = import_value(m, b);
    if (e.fn == FN_MUL && va->kind == VALUE_LAYER && import_is_factor(m, b)) {
        return import_factor(m, node, a, 1);
    }
    if (e.fn == FN_MUL && vb->kind == VALUE_LAYER && import_is_factor(m, a)) {
        return import_factor(m, node, b, 0);
    }
    took = e.fn == FN_ADD ? take_bias(m, node, a, b) : 0;
    took = e.fn == FN_ADD && took == 0 ? import_places(m, node, a, b) : took;
    if (took != 0) {
        return took < 0 ? took : MS_OK;
    }
    if (import_is_number(m, a) && import_is_number(m, b)) {
        return bind_number(m, node, e.fn, a, b);
    }
    if (import_value(m, a)->kind != VALUE_LAYER && import_value(m, b)->kind != VALUE_LAYER) {
        return import_fail(m,
                           "neither of its inputs is made of the data: weights are taken as they "
                           "are, and computed from nothing");
    }
    return bind_expr(m, node, e, a, b);
}

const struct node_op function_ops[] = {
    {"Add", 2, import_binary, FN_ADD},
    {"Sub", 2, import_binary, FN_SUB},
    {"Mul", 2, import_binary, FN_MUL},
    {"Div", 2, import_binary, FN_DIV},
    {"Pow", 2, import_binary, FN_POW},
    {"Relu", 1, import_function, FN_RELU},
    {"Clip", 1, import_clip, FN_CLIP},
    {"LeakyRelu", 1, import_function, FN_LEAKY_RELU},
    {"Elu", 1, import_function, FN_ELU},
    {"Sigmoid", 1, import_function, FN_SIGMOID},
    {"Tanh", 1, import_function, FN_TANH},
    {"Erf", 1, import_function, FN_ERF},
    {"HardSigmoid", 1, import_function, FN_HARD_SIGMOID},
    {"HardSwish", 1, import_function, FN_HARD_SWISH},
    {"Gelu", 1, import_function, FN_GELU},
    {"Neg", 1, import_function, FN_NEG},
    {"Exp", 1, import_function, FN_EXP},
    {NULL, 0, NULL, 0},
};
