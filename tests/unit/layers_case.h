/* layers_case.h - lists of layers on small images: what they make, and how they are refused */
#ifndef TESTS_LAYERS_CASE_H
#define TESTS_LAYERS_CASE_H

#include "libworker/network/layer.h"
#include "tests/test.h"

static const struct network_input images = {
    .batch = 8, .channels = 3, .height = 12, .width = 10, .classes = 5};

static inline int build(const char *text, struct graph **ret, struct ms_err *err)
{
    struct network *network = NULL;
    int rc = network_parse(text, strlen(text), "net.yaml", "net", &network, err);
    rc = rc < 0 ? rc : network_build(network, &images, NETWORK_LOSS_SOFTMAX_CE, ret, err);
    network_destroy(network);
    return rc;
}

/* What that text makes of such images; the caller destroys it. */
static inline struct graph *built(const char *text)
{
    struct graph *graph = NULL;
    ck_ms_ok(build(text, &graph, err));
    return graph;
}

/* Reading or building it is refused, in such words. */
static inline void refused(const char *text, const char *words)
{
    struct graph *graph = NULL;
    ck_ms_fails(build(text, &graph, err), MS_E_INVALID, words);
    ck_assert_ptr_null(graph);
}

static inline const struct tensor *named(const struct graph *graph, const char *name)
{
    int index = graph_find(graph, name);
    ck_assert_msg(index >= 0, "no %s", name);
    return graph_tensor(graph, index);
}

static inline void ck_shape(const struct graph *graph, const char *name, const char *shape)
{
    char buf[96];
    ck_assert_str_eq(shape_format(&named(graph, name)->shape, buf, sizeof(buf)), shape);
}

static const char end[] = "- global_avg_pool\n- dense: {out: classes}\n";

static inline const char *with_end(const char *text)
{
    static char whole[4096];
    snprintf(whole, sizeof(whole), "%s%s", text, end);
    return whole;
}

/* All defaults are in it, and it makes the same graph. */
static inline void check_again(const struct network *network, const struct network_input *input)
{
    struct network *again = NULL;
    struct graph *a = NULL;
    struct graph *b = NULL;
    size_t size = 0;
    char *text = network_format(network, &size);
    ck_assert_ptr_nonnull(text);
    ck_ms_ok(network_parse(text, size, "canonical", "net", &again, err));
    char *twice = network_format(again, NULL);
    ck_assert_str_eq(text, twice);
    ck_ms_ok(network_build(network, input, NETWORK_LOSS_SOFTMAX_CE, &a, err));
    ck_ms_ok(network_build(again, input, NETWORK_LOSS_SOFTMAX_CE, &b, err));
    char *as = graph_describe(a);
    char *bs = graph_describe(b);
    ck_assert_str_eq(strchr(as, '\n'), strchr(bs, '\n')); /* behind the name */
    ck_assert_int_eq(graph_n_stored(a), graph_n_stored(b));
    for (int i = 0; i < graph_n_stored(a); i++) {
        const struct tensor *x = graph_tensor(a, graph_stored_at(a, i));
        const struct tensor *y = graph_tensor(b, graph_stored_at(b, i));
        ck_assert_str_eq(x->name, y->name);
        ck_assert_int_eq(x->init.kind, y->init.kind);
        ck_assert(x->init.a == y->init.a && x->momentum == y->momentum);
    }
    free(as);
    free(bs);
    graph_destroy(a);
    graph_destroy(b);
    free(twice);
    free(text);
    network_destroy(again);
}

#endif
