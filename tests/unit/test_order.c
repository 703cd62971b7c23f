/* test_order.c - sharding and shuffling: every row, evenly, the same on all ranks */
#include "libworker/data/data.h"
#include "tests/test.h"

START_TEST(shards_are_even_and_the_last_wrap_round)
{
    /* 10 rows over 4: 3 each, positions 10 and 11 are rows 0 and 1 again */
    static const int64_t want[4][3] = {{0, 4, 8}, {1, 5, 9}, {2, 6, 0}, {3, 7, 1}};
    for (int rank = 0; rank < 4; rank++) {
        const struct data_shard shard = {.rows = 10, .rank = rank, .world = 4, .wrap = 1};
        ck_assert_int_eq(data_shard_rows(&shard), 3);
        for (int64_t i = 0; i < 3; i++) {
            ck_assert_int_eq(data_shard_row(&shard, NULL, i), want[rank][i]);
        }
    }
}
END_TEST

START_TEST(evaluation_sees_every_row_once)
{
    static const int64_t rows[] = {0, 1, 3, 4, 10, 13};
    for (size_t r = 0; r < MS_ARRAY_SIZE(rows); r++) {
        int seen[13] = {0};
        for (int rank = 0; rank < 4; rank++) {
            const struct data_shard shard = {.rows = rows[r], .rank = rank, .world = 4};
            for (int64_t i = 0; i < data_shard_rows(&shard); i++) {
                seen[data_shard_row(&shard, NULL, i)]++;
            }
        }
        for (int64_t i = 0; i < 13; i++) {
            ck_assert_int_eq(seen[i], i < rows[r]);
        }
    }
}
END_TEST

START_TEST(more_workers_than_rows_still_get_a_row_each)
{
    for (int rank = 0; rank < 7; rank++) {
        const struct data_shard shard = {.rows = 3, .rank = rank, .world = 7, .wrap = 1};
        ck_assert_int_eq(data_shard_rows(&shard), 1);
        ck_assert_int_eq(data_shard_row(&shard, NULL, 0), rank % 3);
    }
}
END_TEST

START_TEST(a_permutation_holds_every_row_once)
{
    enum { ROWS = 1000 };
    const struct data_shard shard = {.rows = ROWS, .world = 1, .shuffle = 1, .seed = 3};
    int64_t perm[ROWS];
    int seen[ROWS] = {0};
    int fixed = 0;

    data_permute(&shard, 5, perm);

    for (int i = 0; i < ROWS; i++) {
        ck_assert_int_ge(perm[i], 0);
        ck_assert_int_lt(perm[i], ROWS);
        ck_assert_int_eq(seen[perm[i]]++, 0);
        fixed += perm[i] == i;
    }
    ck_assert_int_lt(fixed, 10); /* one expected */
}
END_TEST

START_TEST(permutations_depend_on_seed_and_epoch_only)
{
    enum { ROWS = 100 };
    struct data_shard shard = {.rows = ROWS, .rank = 0, .world = 4, .shuffle = 1, .seed = 3};
    int64_t a[ROWS];
    int64_t b[ROWS];
    data_permute(&shard, 0, a);

    shard.rank = 3;
    data_permute(&shard, 0, b);
    ck_assert_mem_eq(a, b, sizeof(a));
    data_permute(&shard, 1, b);
    ck_assert_mem_ne(a, b, sizeof(a));
    shard.seed = 4;
    data_permute(&shard, 0, b);
    ck_assert_mem_ne(a, b, sizeof(a));
}
END_TEST

START_TEST(all_orders_of_four_rows_are_equally_likely)
{
    int count[256] = {0};
    const struct data_shard shard = {.rows = 4, .world = 1, .shuffle = 1, .seed = 9};
    for (uint64_t epoch = 0; epoch < 24000; epoch++) {
        int64_t p[4];
        data_permute(&shard, epoch, p);
        count[p[0] * 64 + p[1] * 16 + p[2] * 4 + p[3]]++;
    }
    int orders = 0;
    for (int i = 0; i < 256; i++) { /* 1000 expected, standard deviation 31 */
        orders += count[i] > 0;
        ck_assert_msg(count[i] == 0 || (count[i] > 840 && count[i] < 1160), "%d: %d", i, count[i]);
    }
    ck_assert_int_eq(orders, 24);
}
END_TEST

/* A frozen sample: an order that changes between versions would break recovery across them. */
START_TEST(the_order_of_seed_1_is_frozen)
{
    static const int64_t want[8] = {6, 5, 1, 7, 0, 2, 4, 3};
    const struct data_shard shard = {.rows = 8, .world = 1, .shuffle = 1, .seed = 1};
    int64_t perm[8];
    data_permute(&shard, 0, perm);
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(perm[i], want[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("order");
    TCase *tc = tcase_create("order");
    tcase_add_test(tc, shards_are_even_and_the_last_wrap_round);
    tcase_add_test(tc, evaluation_sees_every_row_once);
    tcase_add_test(tc, more_workers_than_rows_still_get_a_row_each);
    tcase_add_test(tc, a_permutation_holds_every_row_once);
    tcase_add_test(tc, permutations_depend_on_seed_and_epoch_only);
    tcase_add_test(tc, all_orders_of_four_rows_are_equally_likely);
    tcase_add_test(tc, the_order_of_seed_1_is_frozen);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
