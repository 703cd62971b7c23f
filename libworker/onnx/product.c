/* product.c - products that are layers: of what two layers make, with a gate, with a factor that is
 * trained, and with what is drawn at random to drop something
 *
 * Exporters take dropout apart where it is in place, and stochastic depth always: numbers from 0 to
 * 1, of which those below p become 1 and the others 0, divided by p, times a value. What the
 * numbers have a dimension of 1 for is dropped as one. */
#include "libworker/onnx/import.h"

#include <math.h>
#include <string.h>

/* ---- factors that are trained ---- */

int import_is_factor(const struct importer *m, int value)
{
    const struct value *v = import_value(m, value);
    return v->kind == VALUE_PARAM && !v->is_transposed && v->n_dims == v->tensor->n_dims &&
           (!import_is_number(m, value) || !onnx_is_made(m->file, v->tensor));
}

/* Does x keep its shape? Dimensions from the last one on, as numpy repeats them. */
static int fits(const struct value *x, const struct value *factor)
{
    const int more = x->n_dims - factor->n_dims;
    int is = more >= 0;
    for (int i = 0; i < factor->n_dims && is; i++) {
        is = factor->dim[i] == 1 || (more + i > 0 && factor->dim[i] == x->dim[more + i]);
    }
    return is;
}

int import_factor(struct importer *m, const MsOnnx__Node *node, int x, size_t i)
{
    struct value factor;
    struct value made;
    char name[MS_NAME_MAX + 1];
    int rc = import_settle(m, x);
    rc = rc < 0
             ? rc
             : import_param(m, node, i, import_value(m, import_input(m, node, i))->n_dims, &factor);
    if (rc < 0) {
        return rc;
    }
    const struct value *of = import_value(m, x);
    const int is_whole =
        view_is_whole(&of->view, VIEW_IMAGES) || view_is_whole(&of->view, VIEW_ROWS);
    if (!is_whole || !fits(of, &factor)) {
        return import_fail(m,
                           "its factor %.60s is neither of each channel (c, 1, 1), of each value "
                           "of a sample, nor one number",
                           factor.tensor->name);
    }
    const struct part part = {"gamma", "gamma", factor.tensor->name};
    json_t *shape = json_array();
    for (int d = 0; d < factor.n_dims; d++) {
        json_array_append_new(shape, json_integer((json_int_t)factor.dim[d]));
    }
    json_t *keys = json_pack("{s:o}", "shape", shape);
    rc = keys == NULL ? import_fail_memory(m) : import_name_parts(m, &part, 1, 0, keys, name);
    if (rc < 0) {
        json_decref(keys);
        return rc;
    }
    rc = import_layer(m, "scale", name, keys, x, &made);
    return rc < 0 ? rc : import_bind(m, node, 0, &made);
}

/* ---- gates ---- */

int import_is_gate(const struct value *gate, const struct value *x)
{
    struct view pixels = gate->view;
    pixels.n_dims = 2; /* two of 1 have no atoms */
    return gate->n_dims == 4 && view_is_whole(&x->view, VIEW_IMAGES) && gate->dim[2] == 1 &&
           gate->dim[3] == 1 && gate->dim[1] == x->dim[1] &&
           (view_is_whole(&gate->view, VIEW_IMAGES) || view_is_whole(&pixels, VIEW_ROWS));
}

/* ---- what is drawn at random ---- */

/* From 0 to 1, in the shape of its input. */
static int import_random(struct importer *m, const MsOnnx__Node *node)
{
    double low = 0;
    double high = 1;
    int x = import_need(m, node, 0);
    int rc = x < 0 ? x : attribute_real(m, node, "low", 0, &low);
    rc = rc < 0 ? rc : attribute_real(m, node, "high", 1, &high);
    if (rc < 0) {
        return rc;
    }
    if (low != 0 || high != 1) {
        return import_fail(m, "numbers from 0 to 1 are drawn here, to drop values by them");
    }
    struct value noise = *import_value(m, x);
    noise.kind = VALUE_NOISE;
    noise.tensor = NULL;
    noise.layer[0] = '\0';
    noise.expr = NO_VALUE;
    noise.dense = NULL;
    noise.noise = NOISE_UNIFORM;
    return import_bind(m, node, 0, &noise);
}

static int import_less(struct importer *m, const MsOnnx__Node *node)
{
    double p = 0;
    int a = import_need(m, node, 0);
    int b = a < 0 ? a : import_need(m, node, 1);
    int rc = b < 0 ? b : MS_OK;
    if (rc == MS_OK &&
        (import_value(m, a)->kind != VALUE_NOISE || import_value(m, a)->noise != NOISE_UNIFORM)) {
        rc = import_fail(m, "only numbers that are drawn at random are compared, to drop by them");
    }
    rc = rc < 0 ? rc : import_number(m, b, &p);
    if (rc == MS_OK && !(p >= 0.0001 && p <= 1)) {
        rc = import_fail(m, "%g of the values would be kept; from 0.0001 to 1 can be", p);
    }
    if (rc < 0) {
        return rc;
    }
    struct value kept = *import_value(m, a);
    kept.noise = NOISE_KEPT;
    kept.real = p;
    return import_bind(m, node, 0, &kept);
}

/* What `of` of the layer dropout is; NULL: none. */
static const char *dropped(const struct value *x, const struct value *noise)
{
    const int is_batch = noise->n_dims == x->n_dims && x->n_dims > 1 && noise->dim[0] == x->dim[0];
    const int n = x->n_dims - 1;
    int n_ones = 0;
    int n_same = 0;
    for (int i = 1; i <= n && is_batch; i++) {
        n_ones += noise->dim[i] == 1;
        n_same += noise->dim[i] == x->dim[i];
    }
    return !is_batch                                             ? NULL
           : n_same == n                                         ? "values"
           : n_ones == n                                         ? "samples"
           : n == 3 && n_ones == 2 && noise->dim[1] == x->dim[1] ? "channels"
                                                                 : NULL;
}

static int drop(struct importer *m, const MsOnnx__Node *node, int x, const struct value *noise)
{
    struct value made;
    int rc = import_settle(m, x);
    if (rc < 0) {
        return rc;
    }
    const char *of = dropped(import_value(m, x), noise);
    const struct view *view = &import_value(m, x)->view;
    const int is_moved = !view_is_whole(view, view->form) && !view_is_tokens(view);
    if (of == NULL || is_moved || view_is_pixels(view)) {
        return import_fail(m, "values, channels, or samples are dropped, and nothing else");
    }
    made = *import_value(m, x);
    json_t *keys = json_pack("{s:f, s:s}", "rate", import_real((float)(1 - noise->real)), "of", of);
    if (noise->real == 1) {
        json_decref(keys);
    } else {
        rc = import_layer(m, "dropout", "", keys, x, &made);
    }
    return rc < 0 ? rc : import_bind(m, node, 0, &made);
}

int import_noise(struct importer *m, const MsOnnx__Node *node, enum fn fn, int a, int b)
{
    const struct value noise =
        *import_value(m, import_value(m, a)->kind == VALUE_NOISE ? a : b); /* values move */
    const int other = import_value(m, a)->kind == VALUE_NOISE ? b : a;
    double p = 0;
    if (fn == FN_MUL && noise.noise == NOISE_SCALED &&
        import_value(m, other)->kind == VALUE_LAYER) {
        return drop(m, node, other, &noise);
    }
    int rc = fn == FN_DIV && other == b && noise.noise == NOISE_KEPT
                 ? import_number(m, other, &p)
                 : import_fail(m, "what is drawn at random is divided by how much is kept, and "
                                  "drops values, and nothing else");
    if (rc == MS_OK && fabs(p - noise.real) > 1e-6 * noise.real) {
        rc = import_fail(m, "what is left is divided by %g, and %g of it are kept", p, noise.real);
    }
    struct value scaled = noise;
    scaled.noise = NOISE_SCALED;
    return rc < 0 ? rc : import_bind(m, node, 0, &scaled);
}

const struct node_op product_ops[] = {
    {"RandomUniformLike", 1, import_random, 0},
    {"Less", 2, import_less, 0},
    {NULL, 0, NULL, 0},
};
