/* write_sequence.c - ops of sequences as nodes of ONNX
 *
 * Attention is taken apart, for every runtime has its parts: queries, keys and values (3, n, heads,
 * tokens, width) of the channels, a product of two, its softmax, a product with the third. */
#include "libworker/onnx/write_impl.h"

#include <math.h>

/* ---- what makes tokens ---- */

int write_embedding(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    write_begin(w, "Gather");
    write_in_tensor(w, op->in[1]);
    write_in_tensor(w, op->in[0]);
    write_put_int(w, "axis", 0);
    write_end_op(w, op);
    return index + 1;
}

int write_places(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    write_begin(w, "Add");
    write_in_tensor(w, op->in[0]);
    write_in_tensor(w, op->in[1]);
    write_end_op(w, op);
    return index + 1;
}

/* (n, c, h w), turned. */
int write_tokens(struct write *w, int index)
{
    static const int64_t perm[3] = {0, 2, 1};
    const struct op *op = graph_op(w->graph, index);
    const struct shape *of = &graph_tensor(w->graph, op->in[0])->shape;
    const int64_t sizes[3] = {0, of->dim[1], of->dim[2] * of->dim[3]};
    char x[WRITE_NAME_MAX];
    char y[WRITE_NAME_MAX];
    write_reshape(w, op, write_name(w, op->in[0], x), "sizes", sizes, 3,
                  write_part_of(op, "pixels", y));
    write_transpose(w, y, perm, 3, write_name(w, op->out[0], x));
    return index + 1;
}

/* Once for each sample, as many as there are. */
int write_class_token(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    const int64_t one[2] = {1, graph_tensor(w->graph, op->in[0])->shape.dim[2]};
    char batch[WRITE_NAME_MAX];
    char more[WRITE_NAME_MAX];
    char sizes[WRITE_NAME_MAX];
    char token[WRITE_NAME_MAX];
    write_begin(w, "Shape");
    write_in_tensor(w, op->in[0]);
    write_put_int(w, "start", 0);
    write_put_int(w, "end", 1);
    write_end(w, write_part_of(op, "batch", batch));
    write_constant_ints(w, write_part_of(op, "more", more), one, 2);
    write_begin(w, "Concat");
    write_in(w, batch);
    write_in(w, more);
    write_put_int(w, "axis", 0);
    write_end(w, write_part_of(op, "sizes", sizes));
    write_begin(w, "Expand");
    write_in_tensor(w, op->in[1]);
    write_in(w, sizes);
    write_end(w, write_part_of(op, "token", token));
    write_begin(w, "Concat");
    write_in(w, token);
    write_in_tensor(w, op->in[0]);
    write_put_int(w, "axis", 1);
    write_end_op(w, op);
    return index + 1;
}

/* ---- products ---- */

/* A Gemm is of rows alone. */
int write_dense_of_tokens(struct write *w, int index)
{
    static const int64_t perm[2] = {1, 0};
    const struct op *op = graph_op(w->graph, index);
    char name[WRITE_NAME_MAX];
    char weight[WRITE_NAME_MAX];
    write_transpose(w, write_name(w, op->in[1], name), perm, 2,
                    write_part_of(op, "weight", weight));
    write_begin(w, "MatMul");
    write_in_tensor(w, op->in[0]);
    write_in(w, weight);
    if (op->n_in < 3) {
        write_end_op(w, op);
        return index + 1;
    }
    write_end(w, write_part_of(op, "product", name));
    write_begin(w, "Add");
    write_in(w, name);
    write_in_tensor(w, op->in[2]);
    write_end_op(w, op);
    return index + 1;
}

/* ---- attention ---- */

/* Queries, keys and values are 0, 1 and 2 of parts. */
static const char *take(struct write *w, const struct op *op, const char *parts, int64_t which,
                        char buf[WRITE_NAME_MAX])
{
    static const char *const names[] = {"queries", "keys", "values"};
    static const char *const places[] = {"of_queries", "of_keys", "of_values"};
    char place[WRITE_NAME_MAX];
    write_constant_ints(w, write_part_of(op, places[which], place), &which, -1);
    write_begin(w, "Gather");
    write_in(w, parts);
    write_in(w, place);
    write_put_int(w, "axis", 0);
    write_end(w, write_part_of(op, names[which], buf));
    return buf;
}

/* Scores behind the diagonal are none: x plus minus infinity there, into x. */
static void hide(struct write *w, const struct op *op, int64_t tokens, char x[WRITE_NAME_MAX])
{
    static const int64_t first = 1;
    const struct shape square = {2, {tokens, tokens}};
    char all[WRITE_NAME_MAX];
    char diagonal[WRITE_NAME_MAX];
    char mask[WRITE_NAME_MAX];
    write_filled(w, op, "hidden", &square, -INFINITY, all);
    write_constant_ints(w, write_part_of(op, "diagonal", diagonal), &first, -1);
    write_begin(w, "Trilu");
    write_in(w, all);
    write_in(w, diagonal);
    write_put_int(w, "upper", 1);
    write_end(w, write_part_of(op, "mask", mask));
    write_begin(w, "Add");
    write_in(w, x);
    write_in(w, mask);
    write_end(w, write_part_of(op, "seen", x));
}

/* Weights of which some are dropped in training, into x. */
static void drop(struct write *w, const struct op *op, char x[WRITE_NAME_MAX])
{
    char ratio[WRITE_NAME_MAX];
    write_constant_real(w, write_part_of(op, "ratio", ratio), op->rate);
    write_begin(w, "Dropout");
    write_in(w, x);
    write_in(w, ratio);
    write_end(w, write_part_of(op, "kept", x));
}

/* What each token takes of the others, a row each: softmax of scores; its name into x. */
static void weigh(struct write *w, const struct op *op, const char *parts, const struct shape *of,
                  char x[WRITE_NAME_MAX])
{
    static const int64_t turned[4] = {0, 1, 3, 2};
    const int64_t width = of->dim[2] / 3 / (op->groups > 0 ? op->groups : 1);
    char queries[WRITE_NAME_MAX];
    char keys[WRITE_NAME_MAX];
    char y[WRITE_NAME_MAX];
    take(w, op, parts, 0, queries);
    write_transpose(w, take(w, op, parts, 1, keys), turned, 4, write_part_of(op, "turned", y));
    write_begin(w, "MatMul");
    write_in(w, queries);
    write_in(w, y);
    write_end(w, write_part_of(op, "scores", x));
    write_constant_real(w, write_part_of(op, "scale", y), 1 / sqrt((double)width));
    write_begin(w, "Mul");
    write_in(w, x);
    write_in(w, y);
    write_end(w, write_part_of(op, "scaled", x));
    if (op->is_causal) {
        hide(w, op, of->dim[1], x);
    }
    write_begin(w, "Softmax");
    write_in(w, x);
    write_put_int(w, "axis", -1);
    write_end(w, write_part_of(op, "weights", x));
    if (op->rate > 0) {
        drop(w, op, x);
    }
}

int write_attention(struct write *w, int index)
{
    static const int64_t apart[5] = {2, 0, 3, 1, 4}; /* of (n, tokens, 3, heads, width) */
    static const int64_t back[4] = {0, 2, 1, 3};
    const struct op *op = graph_op(w->graph, index);
    const struct shape *of = &graph_tensor(w->graph, op->in[0])->shape;
    const int64_t heads = op->groups > 0 ? op->groups : 1;
    const int64_t channels = of->dim[2] / 3;
    const int64_t cut[5] = {0, of->dim[1], 3, heads, channels / heads};
    const int64_t together[3] = {0, of->dim[1], channels};
    char x[WRITE_NAME_MAX];
    char y[WRITE_NAME_MAX];
    char parts[WRITE_NAME_MAX];
    write_reshape(w, op, write_name(w, op->in[0], x), "sizes", cut, 5,
                  write_part_of(op, "apart", y));
    write_transpose(w, y, apart, 5, write_part_of(op, "parts", parts));
    weigh(w, op, parts, of, x);
    take(w, op, parts, 2, y);
    write_begin(w, "MatMul");
    write_in(w, x);
    write_in(w, y);
    write_end(w, write_part_of(op, "heads", x));
    write_transpose(w, x, back, 4, write_part_of(op, "rows", y));
    write_reshape(w, op, y, "shape", together, 3, write_name(w, op->out[0], x));
    return index + 1;
}
