/* test_onnx_view.c - dimensions of values that exporters cut and turn, as atoms of what layers make
 */
#include "libworker/onnx/view.h"
#include "tests/test.h"

static struct view images(int64_t n, int64_t c, int64_t h, int64_t w)
{
    const int64_t size[VIEW_AXES] = {n, c, h, w};
    return view_whole(VIEW_IMAGES, size);
}

static struct view sequence(int64_t n, int64_t t, int64_t c)
{
    const int64_t size[VIEW_AXES] = {n, c, t, 1};
    return view_whole(VIEW_SEQUENCE, size);
}

#define RESHAPE(v, ...)                                                                            \
    view_reshape((v), (const int64_t[]){__VA_ARGS__},                                              \
                 (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define TURN(v, ...)                                                                               \
    view_transpose((v), (const int64_t[]){__VA_ARGS__},                                            \
                   (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

START_TEST(sizes_may_be_of_batches)
{
    const int64_t twelve = size_times(SIZE_BATCH, 12);
    ck_assert_int_eq(size_over(twelve, SIZE_BATCH), 12);
    ck_assert_int_eq(size_over(twelve, 4), size_times(3, SIZE_BATCH));
    ck_assert(size_over(twelve, 5) == SIZE_UNKNOWN);
    ck_assert(size_over(12, SIZE_BATCH) == SIZE_UNKNOWN);
    ck_assert(size_over(12, 0) == SIZE_UNKNOWN);
    ck_assert(size_times(SIZE_BATCH, SIZE_BATCH) == SIZE_UNKNOWN);
    ck_assert(size_times(INT64_MAX, 2) == SIZE_UNKNOWN);
    ck_assert(size_times(SIZE_UNKNOWN, 1) == SIZE_UNKNOWN);
    ck_assert(size_times(SIZE_BATCH, SIZE_BATCHES_MAX + 1) == SIZE_UNKNOWN);
}
END_TEST

START_TEST(groups_that_were_turned_are_a_shuffle)
{
    struct view v = images(SIZE_BATCH, 12, 5, 4);
    int64_t count = 0, groups = 0;
    ck_assert_int_eq(RESHAPE(&v, SIZE_BATCH, 3, 4, 5, 4), 0);
    ck_assert_int_eq(TURN(&v, 0, 2, 1, 3, 4), 0);
    ck_assert_int_eq(view_channels(&v, &count, &groups), -1); /* they stand apart */
    ck_assert_int_eq(RESHAPE(&v, -1, 12, 5, 4), 0);
    ck_assert_int_eq(view_channels(&v, &count, &groups), 0);
    ck_assert_int_eq(count, 12);
    ck_assert_int_eq(groups, 3);
    ck_assert(!view_is_whole(&v, VIEW_IMAGES));
    view_keep_channels(&v);
    ck_assert(view_is_whole(&v, VIEW_IMAGES));
}
END_TEST

START_TEST(a_shape_and_back_is_whole_again)
{
    struct view v = images(2, 12, 5, 4);
    ck_assert_int_eq(RESHAPE(&v, 2, 2, 2, 3, 20), 0);
    ck_assert_int_eq(v.n_dims, 5);
    ck_assert_int_eq(RESHAPE(&v, 0, 12, -1, 4), 0);
    ck_assert(view_is_whole(&v, VIEW_IMAGES));
    ck_assert_int_eq(TURN(&v, 0, 2, 3, 1), 0);
    ck_assert(view_is_pixels(&v));
    ck_assert(view_is_tokens(&v));
    ck_assert_int_eq(RESHAPE(&v, 2, 20, 12), 0);
    ck_assert_int_eq(view_make_tokens(&v), 0);
    ck_assert(view_is_whole(&v, VIEW_SEQUENCE));
}
END_TEST

START_TEST(what_cannot_be_seen_so_stays_as_it_is)
{
    struct view v = images(SIZE_BATCH, 12, 5, 4);
    const struct view before = v;
    ck_assert_int_eq(RESHAPE(&v, SIZE_BATCH, 5, 48), -1);  /* 5 of 12 channels */
    ck_assert_int_eq(RESHAPE(&v, SIZE_BATCH, 12, 21), -1); /* too many */
    ck_assert_int_eq(RESHAPE(&v, SIZE_BATCH, 12, 5), -1);  /* too few */
    ck_assert_int_eq(RESHAPE(&v, -1, -1, 5, 4), -1);
    ck_assert_int_eq(RESHAPE(&v, SIZE_UNKNOWN, 12, 5, 4), -1);
    ck_assert_int_eq(RESHAPE(&v, INT64_MAX, INT64_MAX), -1);
    ck_assert_int_eq(TURN(&v, 0, 0, 2, 3), -1);
    ck_assert_int_eq(TURN(&v, 0, 1, 2, INT64_MIN), -1);
    ck_assert_int_eq(TURN(&v, 0, 1, 2), -1);
    ck_assert_int_eq(view_cut(&v, 0, 0, 1), -1); /* of the batch */
    ck_assert_int_eq(view_cut(&v, 1, 11, 2), -1);
    ck_assert_int_eq(view_cut(&v, 1, INT64_MAX, 1), -1);
    ck_assert_int_eq(view_take(&v, 1, -1), -1);
    ck_assert(view_equal(&v, &before));
}
END_TEST

/* nn.MultiheadAttention: (tokens, n, 3 c), cut in three, its heads beside the batch. */
START_TEST(heads_are_found_where_an_exporter_puts_them)
{
    int64_t heads = 0, width = 0;
    struct view v = sequence(SIZE_BATCH, 65, 144);
    ck_assert_int_eq(TURN(&v, 1, 0, 2), 0);
    ck_assert(view_is_tokens(&v));
    ck_assert_int_eq(RESHAPE(&v, 65, -1, 3, 48), 0);
    ck_assert_int_eq(TURN(&v, 2, 0, 1, 3), 0);
    ck_assert_int_eq(view_take(&v, 0, 2), 0);
    ck_assert_int_eq(v.first[AXIS_CHANNEL], 96);
    ck_assert_int_eq(RESHAPE(&v, 65, size_times(SIZE_BATCH, 4), 12), 0);
    ck_assert_int_eq(TURN(&v, 1, 0, 2), 0);
    ck_assert_int_eq(view_heads(&v, 0, &heads, &width), 0);
    ck_assert_int_eq(heads, 4);
    ck_assert_int_eq(width, 12);
    ck_assert_int_eq(TURN(&v, 0, 2, 1), 0);
    ck_assert_int_eq(view_heads(&v, 0, &heads, &width), -1);
    ck_assert_int_eq(view_heads(&v, 1, &heads, &width), 0);
    ck_assert_int_eq(view_dim(&v, 0), size_times(SIZE_BATCH, 4));
}
END_TEST

/* A batch of one has no place of its own. */
START_TEST(a_batch_of_one_may_be_anywhere)
{
    int64_t heads = 0, width = 0;
    struct view v = sequence(1, 65, 144);
    ck_assert_int_eq(TURN(&v, 1, 0, 2), 0);
    ck_assert_int_eq(RESHAPE(&v, 65, 1, 3, 48), 0);
    ck_assert_int_eq(TURN(&v, 2, 0, 1, 3), 0);
    ck_assert_int_eq(view_take(&v, 0, 1), 0);
    ck_assert_int_eq(RESHAPE(&v, 65, 4, 12), 0);
    ck_assert_int_eq(TURN(&v, 1, 0, 2), 0);
    ck_assert_int_eq(RESHAPE(&v, 1, 4, 65, 12), 0);
    ck_assert_int_eq(view_heads(&v, 0, &heads, &width), 0);
    ck_assert_int_eq(heads, 4);
    v = sequence(1, 65, 48);
    ck_assert_int_eq(RESHAPE(&v, 65, 48), 0);
    ck_assert(view_is_tokens(&v));
    ck_assert_int_eq(RESHAPE(&v, 1, 65, 48), 0);
    ck_assert(view_is_whole(&v, VIEW_SEQUENCE));
}
END_TEST

/* What is not known is all that is left, and nothing else. */
START_TEST(sizes_that_the_data_say_make_rows)
{
    struct view v = images(SIZE_BATCH, 12, SIZE_UNKNOWN, SIZE_UNKNOWN);
    ck_assert_int_eq(RESHAPE(&v, SIZE_BATCH, 240), -1);
    ck_assert_int_eq(RESHAPE(&v, SIZE_BATCH, 12, -1), 0);
    ck_assert_int_eq(v.n_atoms, 4);
    v = images(1, 1, 1, 1);
    ck_assert_int_eq(RESHAPE(&v, 1, 1), 0);
    ck_assert_int_eq(v.n_atoms, 0);
    v = images(1, 12, 5, 4);
    ck_assert_int_eq(RESHAPE(&v, 240), 0);
    ck_assert_int_eq(view_dim(&v, 0), 240);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx_view");
    TCase *t = tcase_create("views");
    tcase_add_test(t, sizes_may_be_of_batches);
    tcase_add_test(t, groups_that_were_turned_are_a_shuffle);
    tcase_add_test(t, a_shape_and_back_is_whole_again);
    tcase_add_test(t, what_cannot_be_seen_so_stays_as_it_is);
    tcase_add_test(t, heads_are_found_where_an_exporter_puts_them);
    tcase_add_test(t, a_batch_of_one_may_be_anywhere);
    tcase_add_test(t, sizes_that_the_data_say_make_rows);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
