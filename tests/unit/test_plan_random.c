/* test_plan_random.c - networks that nobody wrote: any list of layers has a plan, and the gradients
 * of the oracle
 *
 * Lists are drawn from all kinds of layers, with odd sizes, groups that fill no block, gaps, one
 * pixel, branches of images and of rows, sequences of tokens, and weights that layers share. Train,
 * tail and evaluation plan are chosen together, go through their text, and are made of it: what is
 * chosen must be what can be obeyed. */
#include "tests/unit/plan_case.h"

#include <stdarg.h>

enum {
    SEEDS = 120,
    WEBS = 1 << 20 /* their first seed */,
    SEQUENCES = 1 << 21,
    SHARERS = 1 << 22,
    CLASSES = 5,
    TEXT_MAX = 8192
};

struct maker { /* of one list */
    uint64_t stream, n_drawn;
    char text[TEXT_MAX];
    size_t size;
};

struct made { /* what a list makes so far */
    int64_t c, h, w;
    int is_rows;
};

static int64_t draw(struct maker *m, uint64_t n)
{
    return (int64_t)ms_rng_below(m->stream, m->n_drawn++, n);
}

static void put(struct maker *m, const char *fmt, ...) MS_PRINTF(2, 3);

static void put(struct maker *m, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    m->size += (size_t)vsnprintf(m->text + m->size, TEXT_MAX - m->size, fmt, args);
    va_end(args);
    ck_assert_uint_lt(m->size, TEXT_MAX);
}

static const char *bias(struct maker *m)
{
    return draw(m, 2) == 0 ? "none" : "fan_in";
}

/* `same` keeps what a stride leaves; so any window fits. out 0: any number. */
static void put_conv(struct maker *m, struct made *made, int64_t out, int64_t most_stride)
{
    const int64_t stride = 1 + draw(m, (uint64_t)most_stride);
    int64_t groups = out == 0 ? 1 + draw(m, 8) : 1;
    groups = out == 0 && draw(m, 4) == 0 ? made->c : groups;
    while (made->c % groups != 0) {
        groups--;
    }
    const int64_t width = out > 0 ? out : groups * (1 + draw(m, groups > 8 ? 2 : 9));
    put(m,
        "{conv2d: {out: %lld, kernel: [%lld, %lld], stride: %lld, dilation: [%lld, %lld], groups: "
        "%lld, padding: same, bias: %s}}",
        (long long)width, 1LL + draw(m, 3), 1LL + draw(m, 3), (long long)stride, 1LL + draw(m, 3),
        1LL + draw(m, 3), (long long)groups, bias(m));
    made->c = width;
    made->h = (made->h + stride - 1) / stride;
    made->w = (made->w + stride - 1) / stride;
}

static void put_transposed(struct maker *m, struct made *made)
{
    const int64_t stride = 1 + draw(m, 2), kernel = 1 + draw(m, 3), gap = draw(m, 2);
    const int64_t reach = (kernel - 1) * (gap + 1) + 1;
    const int64_t more = draw(m, (uint64_t)stride);
    int64_t padding = draw(m, (uint64_t)(reach < 3 ? reach : 3));
    int64_t groups = 1 + draw(m, 4);
    while (made->c % groups != 0) {
        groups--;
    }
    while (2 * padding >= reach || (made->h - 1) * stride + reach - 2 * padding + more > 12 ||
           (made->w - 1) * stride + reach - 2 * padding + more > 12) {
        if (padding == 0) {
            return; /* large enough */
        }
        padding--;
    }
    const int64_t width = groups * (1 + draw(m, 7));
    put(m,
        "{conv_transpose2d: {out: %lld, kernel: %lld, stride: %lld, dilation: %lld, groups: %lld, "
        "padding: %lld, output_padding: %lld, bias: %s}}, ",
        (long long)width, (long long)kernel, (long long)stride, (long long)gap + 1,
        (long long)groups, (long long)padding, (long long)more, bias(m));
    made->c = width;
    made->h = (made->h - 1) * stride + reach - 2 * padding + more;
    made->w = (made->w - 1) * stride + reach - 2 * padding + more;
}

static void put_resampled(struct maker *m, struct made *made)
{
    static const char *const modes[] = {"nearest", "linear", "linear, align_corners: true"};
    const int64_t factor = made->h * made->w > 64 ? 1 : 2;
    const int64_t left = draw(m, 3);
    put(m, "{upsample: {factor: [1, %lld], mode: %s}}, {pad: {top: 1, left: %lld}}",
        (long long)factor, modes[draw(m, 3)], (long long)left);
    made->h += 1;
    made->w = made->w * factor + left;
}

static void put_dense(struct maker *m, struct made *made, int64_t out)
{
    made->c = out > 0 ? out : 1 + draw(m, 24);
    put(m, "{dense: {out: %lld, bias: %s}}", (long long)made->c, bias(m));
}

static const char *affine(struct maker *m)
{
    static const char *const kinds[] = {"gamma: {normal: 0.8}, beta: {normal: 0.5}",
                                        "gamma: {normal: 0.8}, beta: none",
                                        "gamma: none, beta: none"};
    return kinds[draw(m, MS_ARRAY_SIZE(kinds))];
}

/* 0: the groups would be of a few values. Norms have a large epsilon: without, nothing would be
 * left of the gradient of what scales their input, as a convolution of one tap does. */
static int put_sample_norm(struct maker *m, const struct made *made)
{
    const int64_t spatial = made->is_rows ? 1 : made->h * made->w;
    const int kind = (int)draw(m, 4);
    int64_t groups = kind == 1 ? 1 + draw(m, 6) : kind == 2 ? made->c : 1;
    while (made->c % groups != 0) {
        groups--;
    }
    const int64_t values = kind == 3 ? made->c : made->c / groups * spatial;
    if (values < 9 || (made->is_rows && kind > 1)) {
        return 0;
    }
    if (kind == 1) {
        put(m, "{group_norm: {groups: %lld, epsilon: 0.1, %s}}", (long long)groups, affine(m));
    } else if (kind == 2) {
        put(m, "{instance_norm: {epsilon: 0.1, %s}}", affine(m));
    } else {
        put(m, "{layer_norm: {over: %s, epsilon: 0.1, %s}}", kind == 3 ? "channels" : "sample",
            affine(m));
    }
    return 1;
}

static void put_pointwise(struct maker *m, const struct made *made)
{
    static const char *const layers[] = {"relu",
                                         "relu6",
                                         "{leaky_relu: {slope: 0.1}}",
                                         "{elu: {alpha: 0.7}}",
                                         "gelu",
                                         "{gelu: {approximate: tanh}}",
                                         "silu",
                                         "hard_swish",
                                         "sigmoid",
                                         "tanh",
                                         "dropout",
                                         "{dropout: {of: samples}}",
                                         "{linear: {factor: -0.7, offset: 0.3}}",
                                         "hard_sigmoid",
                                         "{scale: {gamma: {normal: 1}}}",
                                         "{scale: {gamma: {constant: 0.4}, shape: [1]}}",
                                         "{batch_norm: {epsilon: 0.1}}"};
    if (draw(m, 4) == 0 && put_sample_norm(m, made)) {
        return;
    }
    if (made->c > 1 && draw(m, 12) == 0) {
        put(m, "softmax");
        return;
    }
    if (draw(m, 8) == 0) {
        int64_t groups = 1 + draw(m, (uint64_t)made->c);
        while (made->c % groups != 0) {
            groups--;
        }
        put(m, "{channel_shuffle: {groups: %lld}}", (long long)groups);
        return;
    }
    /* statistics of a few values amplify rounding until nothing can be compared */
    const int has_many = !made->is_rows && made->h * made->w >= 9;
    put(m, "%s", layers[draw(m, MS_ARRAY_SIZE(layers) - (has_many ? 0 : 1))]);
}

static void put_mixing(struct maker *m, struct made *made, int64_t out)
{
    if (out == 0 && draw(m, 5) == 0) {
        const int64_t first = draw(m, (uint64_t)made->c);
        made->c = 1 + draw(m, (uint64_t)(made->c - first));
        put(m, "{slice: {first: %lld, size: %lld}}", (long long)first, (long long)made->c);
        return;
    }
    if (made->is_rows) {
        put_dense(m, made, out);
    } else {
        put_conv(m, made, out, 1);
    }
}

/* A list that keeps the image's size, and with out > 0 makes so many channels. */
static void put_branch(struct maker *m, struct made *made, int64_t out)
{
    put(m, "[");
    for (int64_t n = draw(m, 3); n > 0; n--) {
        if (draw(m, 2) == 0) {
            put_mixing(m, made, 0);
        } else {
            put_pointwise(m, made);
        }
        put(m, ", ");
    }
    if (out > 0) {
        put_mixing(m, made, out);
    }
    put(m, "]");
}

static void put_concat(struct maker *m, struct made *made)
{
    int64_t channels = 0;
    put(m, "{concat: {branches: [");
    for (int64_t n = 2 + draw(m, 3); n > 0; n--) {
        struct made branch = *made;
        put_branch(m, &branch, 0);
        put(m, n > 1 ? ", " : "]}}");
        channels += branch.c;
    }
    made->c = channels;
}

static void put_residual(struct maker *m, struct made *made)
{
    struct made body = *made;
    put(m, "{residual: {body: ");
    put_branch(m, &body, made->c);
    put(m, "}}");
}

/* Squeeze and excitation, with a gate that is rows or an image; or dense layers of channels, and
 * factors of values. */
static void put_product(struct maker *m, struct made *made)
{
    const unsigned n = (unsigned)m->n_drawn;
    if (made->is_rows) {
        put(m, "{linear: {name: g%u}}, {scale: {name: s%u, gamma: {normal: 1}}}, ", n, n);
        put(m, "{mul: {from: [g%u, s%u]}}", n, n);
        return;
    }
    switch (draw(m, 4)) {
    case 0:
        put(m, "{linear: {name: g%u}}, global_avg_pool, ", n);
        put(m, "{dense: {out: %lld}}, {sigmoid: {name: s%u}}, ", (long long)made->c, n);
        put(m, "{mul: {from: [s%u, g%u]}}", n, n);
        break;
    case 1:
        put(m, "{linear: {name: g%u}}, {avg_pool: {kernel: [%lld, %lld]}}, ", n, (long long)made->h,
            (long long)made->w);
        put(m, "{conv2d: {out: %lld, kernel: 1}}, {hard_sigmoid: {name: s%u}}, ",
            (long long)made->c, n);
        put(m, "{mul: {from: [g%u, s%u]}}", n, n);
        break;
    case 2:
        made->c = 1 + draw(m, 20);
        put(m, "{dense: {out: %lld, over: channels, bias: %s}}", (long long)made->c, bias(m));
        break;
    default:
        put(m, "{scale: {gamma: {normal: 1}, shape: [%lld, %lld, %lld]}}", (long long)made->c,
            (long long)made->h, (long long)made->w);
        break;
    }
}

static void put_layer(struct maker *m, struct made *made)
{
    switch (draw(m, 11)) {
    case 0:
    case 1:
        put_concat(m, made);
        break;
    case 2:
        put_residual(m, made);
        break;
    case 3:
    case 4:
    case 5:
        if (made->is_rows) {
            put_dense(m, made, 0);
        } else {
            put_conv(m, made, 0, 2);
        }
        break;
    case 7:
        put_product(m, made);
        break;
    case 6:
        if (!made->is_rows && made->h > 1 && made->w > 1) {
            const int is_ceil = draw(m, 2) == 0;
            put(m, "{%s: {kernel: 2, ceil: %s}}", draw(m, 2) == 0 ? "max_pool" : "avg_pool",
                is_ceil ? "true" : "false");
            made->h = (made->h + is_ceil) / 2;
            made->w = (made->w + is_ceil) / 2;
            break;
        }
        /* fall through */
    default:
        put_pointwise(m, made);
        break;
    }
}

static void put_network(struct maker *m, struct made made)
{
    put(m, "[");
    for (int64_t n = 2 + draw(m, 6); n > 0; n--) {
        if (!made.is_rows && draw(m, 4) == 0) {
            put_transposed(m, &made);
        }
        if (!made.is_rows && draw(m, 6) == 0) {
            put_resampled(m, &made);
            put(m, ", ");
        }
        put_layer(m, &made);
        put(m, ", ");
        if (!made.is_rows && draw(m, 8) == 0) {
            const int is_flat = draw(m, 2) == 0;
            put(m, "%s, ", is_flat ? "flatten" : "global_avg_pool");
            made = (struct made){is_flat ? made.c * made.h * made.w : made.c, 1, 1, 1};
        }
    }
    put(m, "%s{dense: {out: classes}}]", made.is_rows ? "" : "flatten, ");
}

/* ---- layers that say by name what they read ---- */

enum { NODES_MAX = 14 };

struct web { /* of images of one size; node 0 is the network's input */
    int64_t c[2 * NODES_MAX];
    int is_read[2 * NODES_MAX];
    int n;
};

static const char *node_name(int i)
{
    static char names[4][24]; /* of one call of put */
    static int next;
    char *buf = names[next++ % 4];
    snprintf(buf, sizeof(names[0]), i == 0 ? "input" : "n%d", i);
    return buf;
}

static int any_node(struct maker *m, const struct web *web)
{
    return (int)draw(m, (uint64_t)web->n);
}

static void add_node(struct web *web, int64_t channels)
{
    web->c[web->n++] = channels;
}

/* One of as many channels, perhaps the same one. */
static void put_sum(struct maker *m, struct web *web, int a)
{
    int b = any_node(m, web);
    while (web->c[b] != web->c[a]) {
        b = (b + 1) % web->n;
    }
    web->is_read[b] = 1;
    static const char *const kinds[] = {"add", "add", "sub", "mul"};
    put(m, "{%s: {name: n%d, from: [%s, %s]}}, ", kinds[draw(m, MS_ARRAY_SIZE(kinds))], web->n,
        node_name(a), node_name(b));
    add_node(web, web->c[a]);
}

static void put_row(struct maker *m, struct web *web, const int *of, int n)
{
    int64_t channels = 0;
    put(m, "{concat: {name: n%d, from: [", web->n);
    for (int i = 0; i < n; i++) {
        put(m, "%s%s", node_name(of[i]), i + 1 < n ? ", " : "]}}, ");
        web->is_read[of[i]] = 1;
        channels += web->c[of[i]];
    }
    add_node(web, channels);
}

static void put_web_conv(struct maker *m, struct web *web, int a)
{
    const int64_t out = 2 + draw(m, 5);
    put(m, "{conv2d: {name: n%d, from: %s, out: %lld, kernel: 3, padding: same, bias: %s}}, ",
        web->n, node_name(a), (long long)out, bias(m));
    add_node(web, out);
}

static void put_node(struct maker *m, struct web *web)
{
    const int a = any_node(m, web);
    const int of[] = {a, any_node(m, web), any_node(m, web)};
    web->is_read[a] = 1;
    switch (draw(m, 5)) {
    case 0:
        put_sum(m, web, a);
        break;
    case 1:
        put_row(m, web, of, 2 + (int)draw(m, 2));
        break;
    case 2:
        put(m, "{%s: {name: n%d, from: %s}}, ", draw(m, 2) == 0 ? "relu" : "silu", web->n,
            node_name(a));
        add_node(web, web->c[a]);
        break;
    default:
        put_web_conv(m, web, a);
        break;
    }
}

/* Those that nobody reads stand in a row at the end. */
static void put_web(struct maker *m, int64_t channels)
{
    struct web web = {.c = {channels}, .n = 1};
    int of[GRAPH_OP_TENSORS_MAX];
    put(m, "[");
    for (int64_t n = 3 + draw(m, NODES_MAX - 5); n > 0; n--) {
        put_node(m, &web);
    }
    for (;;) {
        int n = 0;
        for (int i = 1; i < web.n && n < GRAPH_OP_TENSORS_MAX; i++) {
            of[n] = i;
            n += !web.is_read[i];
        }
        if (n <= 1) {
            put(m, "{flatten: {from: %s}}, {dense: {out: classes}}]", node_name(of[0]));
            return;
        }
        put_row(m, &web, of, n);
    }
}

/* ---- sequences ---- */

static const char *token_norm(struct maker *m)
{
    return draw(m, 2) == 0 ? "channels" : "sample";
}

/* A layer that keeps the number of channels, at least 9. */
static void put_token_layer(struct maker *m, int64_t c)
{
    static const char *const layers[] = {"relu",
                                         "gelu",
                                         "tanh",
                                         "silu",
                                         "dropout",
                                         "softmax",
                                         "{dropout: {of: samples}}",
                                         "{linear: {factor: 0.7, offset: 0.1}}"};
    static const char *const recurrent[] = {"lstm: {", "gru: {", "rnn: {",
                                            "rnn: {nonlinearity: relu, "};
    int64_t heads = 1 + draw(m, 4);
    while (c % heads != 0) {
        heads--;
    }
    switch (draw(m, 6)) {
    case 0:
        put(m, "{attention: {heads: %lld, causal: %s, dropout: %s, bias: %s}}", (long long)heads,
            draw(m, 2) == 0 ? "true" : "false", draw(m, 2) == 0 ? "0" : "0.3", bias(m));
        break;
    case 1:
        put(m, "{dense: {out: %lld, bias: %s}}", (long long)c, bias(m));
        break;
    case 2:
        put(m, "{layer_norm: {over: %s, epsilon: 0.1, %s}}", token_norm(m), affine(m));
        break;
    case 3:
        put(m, "{positional_embedding: {weight: {normal: 0.5}}}");
        break;
    case 4: /* of an even number of channels perhaps in both directions */
        put(m, "{%shidden: %lld, bidirectional: %s, layers: %lld, bias: %s}}",
            recurrent[draw(m, MS_ARRAY_SIZE(recurrent))], (long long)(c % 2 == 0 ? c / 2 : c),
            c % 2 == 0 ? "true" : "false", (long long)(1 + draw(m, 2)), bias(m));
        break;
    default:
        put(m, "%s", layers[draw(m, MS_ARRAY_SIZE(layers))]);
    }
}

/* Of tokens that each have a label, or of samples that have one. */
static void put_sequence(struct maker *m, int is_of_tokens)
{
    int64_t c = 9 + draw(m, 24);
    put(m, "[{embedding: {words: 9, size: %lld}}, ", (long long)c);
    for (int64_t n = 1 + draw(m, 6); n > 0; n--) {
        if (draw(m, 3) == 0) {
            put(m, "{residual: {body: [");
            put_token_layer(m, c);
            put(m, ", ");
            put_token_layer(m, c);
            put(m, "]}}, ");
        } else if (draw(m, 4) == 0) {
            c = 9 + draw(m, 24);
            put(m, "{dense: {out: %lld}}, ", (long long)c);
        } else {
            put_token_layer(m, c);
            put(m, ", ");
        }
    }
    put(m, "%s{dense: {out: classes}}]", is_of_tokens ? "" : "flatten, ");
}

/* ---- weights that layers share ---- */

/* A matrix of n rows and columns: of rows, of what was an image, of pixels, of tokens, of a state.
 */
static void put_sharer_of_matrix(struct maker *m, int64_t n)
{
    const int64_t sides[] = {4, 2};
    const int64_t side = sides[draw(m, 2)];
    switch (draw(m, 5)) {
    case 0:
        put(m,
            "{conv2d: {from: s, out: %lld, kernel: %lld, stride: %lld}}, flatten, "
            "{dense: {out: %lld, parameters: {weight: w}}}",
            (long long)(n / (side * side)), (long long)(4 / side), (long long)(4 / side),
            (long long)n);
        break;
    case 1:
        put(m,
            "{conv2d: {from: s, out: %lld, kernel: 1}}, global_avg_pool, "
            "{dense: {out: %lld, parameters: {weight: w}}}",
            (long long)n, (long long)n);
        break;
    case 2:
        put(m,
            "{conv2d: {from: s, out: %lld, kernel: 1}}, {dense: {out: %lld, over: channels, "
            "parameters: {weight: w}}}, global_avg_pool",
            (long long)n, (long long)n);
        break;
    case 3:
        put(m,
            "{conv2d: {from: s, out: %lld, kernel: 1}}, tokens, "
            "{dense: {out: %lld, parameters: {weight: w}}}, flatten",
            (long long)n, (long long)n);
        break;
    default:
        put(m,
            "{conv2d: {from: s, out: %lld, kernel: 1}}, tokens, "
            "{rnn: {hidden: %lld, parameters: {%s: w}, output: last}}",
            (long long)n, (long long)n,
            draw(m, 2) == 0 ? "weight_hh_l0" : "weight_hh_l0: w, weight_ih_l0");
    }
}

/* A kernel (8, 4, 3, 3): of all channels, or of groups of them; forth and back. */
static void put_sharer_of_kernel(struct maker *m)
{
    const int64_t groups = 1 << draw(m, 3);
    const int is_back = draw(m, 2) == 0;
    put(m,
        "{conv2d: {from: s, out: %lld, kernel: 1}}, {%s: {out: %lld, kernel: 3, padding: 1, "
        "groups: %lld, parameters: {weight: w}}}, global_avg_pool",
        (long long)(is_back ? 8 : 4 * groups), is_back ? "conv_transpose2d" : "conv2d",
        (long long)(is_back ? 4 * groups : 8), (long long)groups);
}

/* Branches that have one weight, each after its own kind. */
static void put_sharers(struct maker *m)
{
    const int is_matrix = draw(m, 2) == 0;
    const int64_t size = 16 * (1 + draw(m, 4));
    const int64_t n = 2 + draw(m, 3);
    put(m, "[{conv2d: {out: %lld, kernel: 1, name: s}}, ", (long long)(1 + draw(m, 20)));
    for (int64_t i = 0; i < n; i++) {
        if (is_matrix) {
            put_sharer_of_matrix(m, size);
        } else {
            put_sharer_of_kernel(m);
        }
        put(m, ", {tanh: {name: b%lld}}, ", (long long)i);
    }
    put(m, "{concat: {from: [");
    for (int64_t i = 0; i < n; i++) {
        put(m, "%sb%lld", i == 0 ? "" : ", ", (long long)i);
    }
    put(m, "]}}, {dense: {out: classes}}]");
}

/* ---- what must hold -----------------------------------------------------------------------------
 */

struct drawn {
    struct maker maker;
    struct network_input input;
    struct graph *graphs[PLAN_USES];
};

/* The graphs of what the maker has put. */
static void build_all(struct drawn *d)
{
    struct network *network = NULL;
    struct maker *m = &d->maker;
    ck_ms_ok(network_parse(m->text, m->size, "drawn", "drawn", &network, err));
    for (int use = 0; use < PLAN_USES; use++) {
        struct network_input input = d->input;
        input.batch += use == PLAN_TAIL ? -1 : use == PLAN_EVALUATE ? 1 : 0;
        ck_ms_ok(network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &d->graphs[use], err));
        if (use != PLAN_EVALUATE) {
            ck_ms_ok(graph_differentiate(d->graphs[use], err));
        }
    }
    network_destroy(network);
}

static void drawn_init(struct drawn *d, uint64_t seed)
{
    d->maker = (struct maker){.stream = ms_rng_stream(seed, 3, 1)};
    struct maker *m = &d->maker;
    d->input = (struct network_input){.batch = 2 + draw(m, 3),
                                      .channels = 1 + draw(m, 4),
                                      .height = 1 + draw(m, 9),
                                      .width = 1 + draw(m, 9),
                                      .classes = CLASSES};
    if (seed >= SHARERS) {
        d->input.height = d->input.width = 4;
        put_sharers(m);
    } else if (seed >= SEQUENCES) {
        d->input.channels = 1 + draw(m, 80);
        d->input.height = d->input.width = 1;
        d->input.tokens = draw(m, 2) == 0 ? d->input.channels : 0;
        put_sequence(m, d->input.tokens > 0);
    } else if (seed >= WEBS) {
        put_web(m, d->input.channels);
    } else {
        put_network(m, (struct made){d->input.channels, d->input.height, d->input.width, 0});
    }
    build_all(d);
}

/* The plans of the text that was chosen. */
static struct plan_spec *chosen(const struct drawn *d, uint64_t seed, const char *isa)
{
    struct plan_request request = {.world = 2,
                                   .threads = 1,
                                   .isa = isa,
                                   .mirrors = (int)(seed % 2),
                                   .recompute =
                                       seed % 3 == 0 ? PLAN_RECOMPUTE_ON : PLAN_RECOMPUTE_OFF};
    struct plan_spec *spec = NULL;
    struct plan_spec *read = NULL;
    char *text = NULL;
    size_t size = 0;
    memcpy(request.graphs, d->graphs, sizeof(request.graphs));
    struct ms_err why = {0, ""};
    ck_assert_msg(plan_choose(&request, &spec, &why) == 0, "%s: %s", d->maker.text, why.text);
    ck_ms_ok(plan_spec_format(spec, &text, &size, err));
    ck_ms_ok(plan_spec_parse(text, size, &read, err));
    free(text);
    plan_spec_destroy(spec);
    return read;
}

static void check_training(const struct drawn *d, struct plan_case *c)
{
    const char *which = NULL;
    case_reference(c, 7);
    case_reference_batch(c);
    case_poison(c);
    const double loss = (double)case_step(c);
    ref_graph_run(c->ref);
    const double want = ref_graph_loss(c->ref);
    ck_assert_msg(fabs(loss - want) <= 1e-4 * (1 + fabs(want)), "loss %g, want %g: %s", loss, want,
                  d->maker.text);
    ck_assert_msg(case_exchange_is_finite(c), "something was not written: %s", d->maker.text);
    const double worst = case_worst_gradient(c, &which);
    ck_assert_msg(worst <= 2e-2, "gradient of %s is %.3g off: %s", which, worst, d->maker.text);
}

/* Takes the graphs. */
static void check_all(struct drawn *d, uint64_t seed, const char *isa)
{
    struct plan_spec *spec = chosen(d, seed, isa);
    for (int use = 0; use < PLAN_USES; use++) {
        struct plan_case c = {.graph = d->graphs[use]};
        struct ms_err why = {0, ""};
        ck_assert_msg(plan_create(c.graph, spec, (enum plan_use)use, NULL, &c.plan, &why) == 0,
                      "use %d: %s: %s", use, d->maker.text, why.text);
        case_buffers(&c);
        if (use != PLAN_EVALUATE) {
            check_training(d, &c);
        }
        case_fini(&c);
    }
    plan_spec_destroy(spec);
}

static void check_drawn(uint64_t seed, const char *isa)
{
    static struct drawn d;
    drawn_init(&d, seed);
    check_all(&d, seed, isa);
}

/* What once got no plan, or one that could not be obeyed. */
static const struct {
    const char *text;
    int64_t side;
} refused_once[] = {
    {"[conv2d: {out: 8, kernel: 3}, relu, conv2d: {out: 8, kernel: 3, stride: 2, dilation: 2, "
     "padding: same}, global_avg_pool, dense: {out: classes}]",
     32},
    {"[conv2d: {out: 12, kernel: 3, padding: same}, conv2d: {out: 8, kernel: 3, dilation: 8, "
     "padding: same}, flatten, dense: {out: classes}]",
     8},
    {"[conv2d: {out: 24, kernel: 16, stride: 16}, conv2d: {out: 24, kernel: 3, stride: 2, padding: "
     "same, groups: 24}, batch_norm, relu6, global_avg_pool, dense: {out: classes}]",
     32},
    {"[conv2d: {out: 20, kernel: 16, stride: 16}, conv2d: {out: 20, kernel: 3, stride: 2, padding: "
     "same, groups: 20}, silu, global_avg_pool, dense: {out: classes}]",
     32},
    {"[conv2d: {out: 16, kernel: 32}, conv2d: {out: 16, kernel: [2, 3], dilation: 3, padding: "
     "same}, flatten, dense: {out: classes}]",
     32},
};

START_TEST(what_was_refused_once_has_a_plan)
{
    static struct drawn d;
    d.maker = (struct maker){.size = 0};
    d.input = (struct network_input){.batch = 4,
                                     .channels = 3,
                                     .height = refused_once[_i].side,
                                     .width = refused_once[_i].side,
                                     .classes = CLASSES};
    put(&d.maker, "%s", refused_once[_i].text);
    build_all(&d);
    check_all(&d, 1, NULL);
}
END_TEST

/* oneDNN's reference code takes fifty times as long as a matrix product. */
START_TEST(groups_of_few_channels_have_fast_code)
{
    static struct drawn d;
    d.maker = (struct maker){.size = 0};
    d.input = (struct network_input){
        .batch = 4, .channels = 3, .height = 16, .width = 16, .classes = CLASSES};
    put(&d.maker, "[conv2d: {out: 64, kernel: 1}, conv2d: {out: 64, kernel: 3, padding: same, "
                  "groups: 16}, global_avg_pool, dense: {out: classes}]");
    build_all(&d);
    struct plan_spec *spec = chosen(&d, 1, NULL);
    for (int i = 0; i < spec->uses[PLAN_TRAIN].n_ops; i++) {
        const struct plan_spec_op *op = &spec->uses[PLAN_TRAIN].ops[i];
        ck_assert_msg(strstr(op->impl, "ref") == NULL, "%s %s: %s", op->kind, op->name, op->impl);
    }
    plan_spec_destroy(spec);
    for (int use = 0; use < PLAN_USES; use++) {
        graph_destroy(d.graphs[use]);
    }
}
END_TEST

START_TEST(any_list_has_a_plan_and_the_gradients_of_the_oracle)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        check_drawn(seed * 16 + (uint64_t)_i, NULL);
    }
}
END_TEST

START_TEST(layers_that_read_any_before_them_have_a_plan_and_the_gradients_of_the_oracle)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        check_drawn(WEBS + seed * 16 + (uint64_t)_i, NULL);
    }
}
END_TEST

START_TEST(sequences_have_a_plan_and_the_gradients_of_the_oracle)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        check_drawn(SEQUENCES + seed * 16 + (uint64_t)_i, NULL);
    }
}
END_TEST

START_TEST(weights_that_any_layers_share_have_a_plan_and_the_gradients_of_the_oracle)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        check_drawn(SHARERS + seed * 16 + (uint64_t)_i, NULL);
    }
}
END_TEST

/* A process has one cap: Check forks for every case, unless a debugger's user forbids it. */
START_TEST(on_older_machines_too)
{
    static const char *const isas[] = {"sse41", "avx2"};
    const char *fork_mode = getenv("CK_FORK");
    struct ms_err refused = {0, ""};
    if ((fork_mode != NULL && strcmp(fork_mode, "no") == 0) ||
        plan_set_isa(isas[_i], &refused) < 0) {
        printf("skip: %s\n", refused.text);
        return;
    }
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        check_drawn(seed * 16 + 8, isas[_i]);
        check_drawn(SHARERS + seed * 16 + 8, isas[_i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_random");
    TCase *tc = tcase_create("drawn");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, any_list_has_a_plan_and_the_gradients_of_the_oracle, 0, 4);
    tcase_add_loop_test(
        tc, layers_that_read_any_before_them_have_a_plan_and_the_gradients_of_the_oracle, 0, 2);
    tcase_add_loop_test(tc, sequences_have_a_plan_and_the_gradients_of_the_oracle, 0, 2);
    tcase_add_loop_test(
        tc, weights_that_any_layers_share_have_a_plan_and_the_gradients_of_the_oracle, 0, 2);
    tcase_add_loop_test(tc, on_older_machines_too, 0, 2);
    tcase_add_loop_test(tc, what_was_refused_once_has_a_plan, 0, (int)MS_ARRAY_SIZE(refused_once));
    tcase_add_test(tc, groups_of_few_channels_have_fast_code);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
