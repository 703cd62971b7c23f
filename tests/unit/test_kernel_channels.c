/* test_kernel_channels.c - channels that are taken, moved and put behind others, between layouts */
#include "libworker/kernel/kernel.h"
#include "tests/test.h"

enum { N = 3, SPATIAL = 5, FLOATS_MAX = N * SPATIAL * 160 };

/* blocks: 1 nchw, 0 channels last. */
static struct kernel_layout layout_of(int64_t channels, int64_t block)
{
    struct kernel_layout layout = {N, 1, SPATIAL, channels, channels};
    if (block > 0) {
        layout.block = block;
        layout.n_blocks = (channels + block - 1) / block;
    }
    return layout;
}

static size_t place(const struct kernel_layout *l, int64_t n, int64_t c, int64_t s)
{
    return (size_t)(((n * l->n_blocks + c / l->block) * l->spatial + s) * l->block + c % l->block);
}

static float value(int64_t n, int64_t c, int64_t s)
{
    return (float)(1 + c * 1000 + n * 100 + s);
}

static const struct {
    int64_t x, y, first, groups;
    int has_fill;
} cases[] = {
    {7, 7, 0, 1, 0},    /* all */
    {40, 9, 17, 1, 0},  /* some */
    {9, 40, -17, 1, 0}, /* some among zeros */
    {20, 23, -3, 1, 1}, /* behind others */
    {12, 12, 0, 3, 0},  /* shuffled */
    {130, 130, 0, 10, 0},
};
static const int64_t blocks[] = {1, 8, 16, 0};
enum { N_CASES = 6, N_BLOCKS = 4 };

/* By the definition. */
static float wanted(int i, int64_t n, int64_t c, int64_t s)
{
    const int64_t wide = cases[i].x / cases[i].groups;
    const int64_t moved = c % cases[i].groups * wide + c / cases[i].groups;
    const int64_t of = cases[i].groups > 1 ? moved : c + cases[i].first;
    return of >= 0 && of < cases[i].x ? value(n, of, s) : cases[i].has_fill ? (float)(-c - 1) : 0;
}

START_TEST(each_channel_is_where_it_belongs)
{
    const int i = _i / (N_BLOCKS * N_BLOCKS);
    static float x[FLOATS_MAX], y[FLOATS_MAX], fill[160];
    struct kernel_channels k = {.x = layout_of(cases[i].x, blocks[_i % N_BLOCKS]),
                                .y = layout_of(cases[i].y, blocks[_i / N_BLOCKS % N_BLOCKS]),
                                .first = cases[i].first,
                                .groups = cases[i].groups};
    for (int64_t c = 0; c < cases[i].x; c++) {
        for (int64_t at = 0; at < N * SPATIAL; at++) {
            x[place(&k.x, at / SPATIAL, c, at % SPATIAL)] = value(at / SPATIAL, c, at % SPATIAL);
        }
    }
    for (int64_t c = 0; c < cases[i].y; c++) {
        fill[c] = (float)(-c - 1);
    }
    k.fill = cases[i].has_fill ? fill : NULL;

    for (int threads = 1; threads <= 3; threads++) {
        memset(y, 0xff, sizeof(y)); /* all is written */
        kernel_channels(y, x, &k, threads);

        for (int64_t c = 0; c < k.y.n_blocks * k.y.block; c++) {
            for (int64_t at = 0; at < N * SPATIAL; at++) {
                const float want =
                    c < cases[i].y ? wanted(i, at / SPATIAL, c, at % SPATIAL) : 0; /* padding */
                ck_assert_float_eq(y[place(&k.y, at / SPATIAL, c, at % SPATIAL)], want);
            }
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_channels");
    TCase *tcase = tcase_create("channels");
    tcase_add_loop_test(tcase, each_channel_is_where_it_belongs, 0, N_CASES * N_BLOCKS * N_BLOCKS);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
