/* op_sequence.c - what makes sequences of tokens, and what their tokens see of each other */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

/* ---- embedding ---- */

static int infer_embedding(const struct graph *graph, const struct op *op, struct shape *ret,
                           struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    const struct shape *w = &graph->tensors[op->in[1]]->shape;
    const int is_row = x->n_dims == 2 || (x->n_dims == 4 && x->dim[2] == 1 && x->dim[3] == 1);
    if (!is_row) {
        return graph_fail_op(graph, op, err, "the data must be rows of tokens (n, tokens)");
    }
    if (w->n_dims != 2) {
        return graph_fail_op(graph, op, err, "the weight must be (words, channels)");
    }
    *ret = (struct shape){3, {x->dim[0], x->dim[1], w->dim[1]}};
    return MS_OK;
}

static int gradient_embedding(struct tape *tape, int index, const struct op *op, int dy)
{
    const int in[] = {op->in[0], dy};
    return tape_simple(tape, OP_EMBEDDING_BWD, index, in, 1);
}

/* ---- pixels ---- */

static int infer_tokens(const struct graph *graph, const struct op *op, struct shape *ret,
                        struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    if (x->n_dims != 4) {
        return graph_fail_op(graph, op, err, "the input must be images (n, c, h, w)");
    }
    *ret = (struct shape){3, {x->dim[0], x->dim[2] * x->dim[3], x->dim[1]}};
    return MS_OK;
}

static int gradient_tokens(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)op;
    return tape_simple(tape, OP_TOKENS_BWD, index, &dy, 0);
}

/* ---- attention ---- */

static int infer_attention(const struct graph *graph, const struct op *op, struct shape *ret,
                           struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    const int64_t heads = op->groups > 0 ? op->groups : 1;
    if (!shape_is_sequence(x) || x->dim[2] % 3 != 0) {
        return graph_fail_op(graph, op, err,
                             "the input must be queries, keys and values (n, tokens, 3 c)");
    }
    if (x->dim[2] / 3 % heads != 0) {
        return graph_fail_op(graph, op, err, "%lld channels are no multiple of %lld heads",
                             (long long)(x->dim[2] / 3), (long long)heads);
    }
    if (!(op->rate >= 0 && op->rate < 1)) {
        return graph_fail_op(graph, op, err, "the rate %g is not from 0 to less than 1", op->rate);
    }
    *ret = (struct shape){3, {x->dim[0], x->dim[1], x->dim[2] / 3}};
    return MS_OK;
}

static int gradient_attention(struct tape *tape, int index, const struct op *op, int dy)
{
    const int in[] = {op->in[0], dy};
    return tape_simple(tape, OP_ATTENTION_BWD, index, in, 0);
}

/* Of a matrix product of all queries with their keys, over all heads; causal: half of it. */
static double pairs(const struct shape *x, const struct op *op)
{
    const double tokens = (double)x->dim[1];
    const double seen = op->is_causal ? (tokens + 1) / 2 : tokens;
    return (double)x->dim[0] * tokens * seen * (double)(x->dim[2] / 3);
}

/* Scores, and what is made of values. */
static double products_of_attention(const struct graph *graph, const struct op *op)
{
    return 2 * pairs(&graph->tensors[op->in[0]]->shape, op);
}

/* Scores once more, and two of each. */
static double products_of_attention_bwd(const struct graph *graph, const struct op *op)
{
    return 5 * pairs(&graph->tensors[op->in[0]]->shape, op);
}

static const struct op_row rows[] = {
    {.kind = OP_EMBEDDING,
     .name = "embedding",
     .n_in = 2,
     .n_out = 1,
     .wants = "dp",
     .differentiable = 2,
     .infer = infer_embedding,
     .gradient = gradient_embedding,
     .products = graph_no_products,
     .page = "Each token becomes its row of a weight."},
    {.kind = OP_EMBEDDING_BWD,
     .name = "embedding_bwd",
     .n_in = 2,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_TOKENS,
     .name = "tokens",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .infer = infer_tokens,
     .gradient = gradient_tokens,
     .products = graph_no_products,
     .page = "Each pixel of an image becomes a token."},
    {.kind = OP_TOKENS_BWD,
     .name = "tokens_bwd",
     .n_in = 1,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_ATTENTION,
     .name = "attention",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .infer = infer_attention,
     .gradient = gradient_attention,
     .products = products_of_attention,
     .page = "Scaled dot-product attention of queries, keys and values, in heads."},
    {.kind = OP_ATTENTION_BWD,
     .name = "attention_bwd",
     .n_in = 2,
     .n_out = 1,
     .products = products_of_attention_bwd,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_sequence = {rows, MS_ARRAY_SIZE(rows)};
