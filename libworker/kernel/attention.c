/* attention.c - scaled dot-product attention in blocks of queries, around somebody's matrix
 * products
 *
 * Scores of a block are as much as stays in a core's cache, and are never written elsewhere: what a
 * step keeps is two numbers a query (Dao et al., FlashAttention, 2022, with whole rows). Causal:
 * products end with the block's last query, which is nearly half of them. */
#include "libworker/kernel/kernel.h"

#include <math.h>
#include <string.h>

enum {
    QUERIES = 64, /* of a block: 64 KiB of scores for 256 tokens */
    LINE = 16,    /* floats of a cache line */
};

struct block { /* of queries of a head of a sample */
    const struct kernel_attention *a;
    int64_t first, n; /* queries */
    int64_t width;    /* keys that any of them sees */
    int64_t ld;       /* of scratch */
    int64_t row;      /* of the first query among all of all heads: stats, dropout */
    const float *q, *k, *v, *dy;
    float *y, *dq, *dk, *dv;
    float *scores, *gradient, *dropped; /* scratch; dropped may be scores */
};

static int64_t row_floats(const struct kernel_attention *a)
{
    return (a->tokens + LINE - 1) / LINE * LINE;
}

/* Scores, their gradient, and scores of which some were dropped. */
static int64_t scratch_blocks(const struct kernel_attention *a, int is_backward)
{
    return !is_backward ? 1 : a->rate > 0 ? 3 : 2;
}

static int64_t scratch_floats(const struct kernel_attention *a, int is_backward)
{
    return scratch_blocks(a, is_backward) * QUERIES * row_floats(a);
}

size_t kernel_attention_scratch(const struct kernel_attention *a, int is_backward, int threads)
{
    return (size_t)(scratch_floats(a, is_backward) * threads) * sizeof(float);
}

/* Block i of a head of a sample; pair counts both. */
static struct block block_of(const struct kernel_attention *a, int64_t pair, int64_t i,
                             float *scratch)
{
    const int64_t sample = pair / a->heads, head = pair % a->heads;
    const int64_t c = a->heads * a->width; /* channels of a token */
    const int64_t first = i * QUERIES;
    const int64_t left = a->tokens - first;
    const int64_t at = sample * a->tokens * 3 * c + head * a->width;
    const int64_t out = (sample * a->tokens + first) * c + head * a->width;
    struct block b = {.a = a, .first = first, .n = left < QUERIES ? left : QUERIES};
    b.width = a->is_causal ? first + b.n : a->tokens;
    b.ld = row_floats(a);
    b.row = pair * a->tokens + first;
    b.q = a->qkv + at + first * 3 * c;
    b.k = a->qkv + at + c;
    b.v = a->qkv + at + 2 * c;
    if (a->dy != NULL) {
        b.dy = a->dy + out;
        b.dq = a->dqkv + at + first * 3 * c;
        b.dk = a->dqkv + at + c;
        b.dv = a->dqkv + at + 2 * c;
    } else {
        b.y = a->y + out;
    }
    b.scores = scratch;
    b.gradient = scratch + QUERIES * b.ld;
    b.dropped = a->rate > 0 ? scratch + 2 * QUERIES * b.ld : b.scores;
    return b;
}

static struct kernel_scores scores_of(const struct block *b)
{
    return (struct kernel_scores){.rows = b->n,
                                  .width = b->width,
                                  .stride = b->ld,
                                  .seen = b->a->is_causal ? b->first + 1 : b->width,
                                  .more = b->a->is_causal,
                                  .stats = b->a->stats + 2 * b->row};
}

static void drop(const struct block *b, float *y, const float *x)
{
    const struct kernel_attention *a = b->a;
    const uint64_t before = a->first_row * (uint64_t)(a->heads * a->tokens);
    const struct kernel_dropout dropout = {.layout = {b->n, 1, 1, b->ld, b->width},
                                           .draw = a->draw,
                                           .first_row = before + (uint64_t)b->row,
                                           .rate = a->rate};
    kernel_dropout(y, x, &dropout, 1);
}

/* ---- products ---- */

/* scores = scale q k' */
static int make_scores(const struct block *b)
{
    const int64_t ld = 3 * b->a->heads * b->a->width;
    const struct kernel_product p = {.is_b_turned = 1,
                                     .m = b->n,
                                     .n = b->width,
                                     .k = b->a->width,
                                     .alpha = 1.0F / sqrtf((float)b->a->width),
                                     .a = b->q,
                                     .lda = ld,
                                     .b = b->k,
                                     .ldb = ld,
                                     .c = b->scores,
                                     .ldc = b->ld};
    return b->a->product(&p);
}

/* c (queries, width of a head) = alpha x m, x of scores, m of keys or values */
static int gather(const struct block *b, const float *x, float alpha, const float *m, float *c,
                  int64_t ldc)
{
    const struct kernel_product p = {.m = b->n,
                                     .n = b->a->width,
                                     .k = b->width,
                                     .alpha = alpha,
                                     .a = x,
                                     .lda = b->ld,
                                     .b = m,
                                     .ldb = 3 * b->a->heads * b->a->width,
                                     .c = c,
                                     .ldc = ldc};
    return b->a->product(&p);
}

/* c (keys, width of a head) = alpha x' m + beta c, m of queries */
static int spread(const struct block *b, const float *x, float alpha, const float *m, int64_t ldm,
                  float beta, float *c)
{
    const struct kernel_product p = {.is_a_turned = 1,
                                     .m = b->width,
                                     .n = b->a->width,
                                     .k = b->n,
                                     .alpha = alpha,
                                     .beta = beta,
                                     .a = x,
                                     .lda = b->ld,
                                     .b = m,
                                     .ldb = ldm,
                                     .c = c,
                                     .ldc = 3 * b->a->heads * b->a->width};
    return b->a->product(&p);
}

/* gradient = dy v' */
static int make_gradient(const struct block *b)
{
    const int64_t c = b->a->heads * b->a->width;
    const struct kernel_product p = {.is_b_turned = 1,
                                     .m = b->n,
                                     .n = b->width,
                                     .k = b->a->width,
                                     .alpha = 1.0F,
                                     .a = b->dy,
                                     .lda = c,
                                     .b = b->v,
                                     .ldb = 3 * c,
                                     .c = b->gradient,
                                     .ldc = b->ld};
    return b->a->product(&p);
}

/* ---- blocks ---- */

static int forward(const struct block *b)
{
    const struct kernel_scores scores = scores_of(b);
    int rc = make_scores(b);
    if (rc < 0) {
        return rc;
    }
    kernel_scores_softmax(&scores, b->scores);
    if (b->a->rate > 0) {
        drop(b, b->scores, b->scores);
    }
    return gather(b, b->scores, 1.0F, b->v, b->y, b->a->heads * b->a->width);
}

/* The blocks of a head go from its last one, which all keys have a part in, to its first: beta is 0
 * for the last one, and 1 for those that add to it. */
static int backward(const struct block *b, float beta)
{
    const struct kernel_attention *a = b->a;
    const struct kernel_scores scores = scores_of(b);
    const int64_t c = a->heads * a->width;
    const float scale = 1.0F / sqrtf((float)a->width);
    int rc = make_scores(b);
    rc = rc < 0 ? rc : make_gradient(b);
    if (rc < 0) {
        return rc;
    }
    kernel_scores_again(&scores, b->scores);
    if (a->rate > 0) {
        drop(b, b->dropped, b->scores);
        drop(b, b->gradient, b->gradient);
    }
    rc = spread(b, b->dropped, 1.0F, b->dy, c, beta, b->dv);
    kernel_scores_backward(&scores, b->scores, b->gradient);
    rc = rc < 0 ? rc : gather(b, b->gradient, scale, b->k, b->dq, 3 * c);
    return rc < 0 ? rc : spread(b, b->gradient, scale, b->q, 3 * c, beta, b->dk);
}

static int run_pair(const struct kernel_attention *a, int64_t pair, float *scratch)
{
    const int64_t n = (a->tokens + QUERIES - 1) / QUERIES;
    int rc = 0;
    for (int64_t i = n - 1; i >= 0 && rc == 0; i--) {
        const struct block b = block_of(a, pair, i, scratch);
        rc = a->dy != NULL ? backward(&b, i == n - 1 ? 0.0F : 1.0F) : forward(&b);
    }
    return rc;
}

static int run(const struct kernel_attention *a, int is_backward, int threads)
{
    const int64_t pairs = a->n * a->heads;
    int worst = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(min : worst)
    for (int t = 0; t < threads; t++) {
        float *scratch = (float *)a->scratch + t * scratch_floats(a, is_backward);
        for (int64_t pair = pairs * t / threads; pair < pairs * (t + 1) / threads; pair++) {
            const int rc = run_pair(a, pair, scratch);
            worst = rc < worst ? rc : worst;
        }
    }
    return worst;
}

int kernel_attention_forward(const struct kernel_attention *attention, int threads)
{
    struct kernel_attention a = *attention;
    a.dy = NULL;
    return run(&a, 0, threads);
}

int kernel_attention_backward(const struct kernel_attention *attention, int threads)
{
    return run(attention, 1, threads);
}
