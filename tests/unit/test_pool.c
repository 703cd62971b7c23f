/* test_pool.c - items are each done once, by whatever thread, and the first that fails is told */
#include "libworker/data/pool.h"
#include "tests/test.h"

#include <stdatomic.h>

enum { N = 2000 };

struct items {
    atomic_int done[N];
    atomic_int largest_thread;
    int64_t bad[2];
};

static int work(void *arg, int thread, int64_t i, struct ms_err *err)
{
    struct items *items = arg;
    atomic_fetch_add(&items->done[i], 1);
    int largest = atomic_load(&items->largest_thread);
    while (thread > largest &&
           !atomic_compare_exchange_weak(&items->largest_thread, &largest, thread)) {
    }
    return i == items->bad[0] || i == items->bad[1] ? ms_fail(err, MS_E_INVALID, "item %d", (int)i)
                                                    : MS_OK;
}

START_TEST(each_item_is_done_once)
{
    static struct items items;
    struct pool *pool = NULL;
    ck_ms_ok(pool_create(_i, &pool, err));
    memset(&items, 0, sizeof(items));
    items.bad[0] = items.bad[1] = -1;
    for (int round = 1; round <= 50; round++) { /* the last ones empty, or of one item */
        const int64_t n = round <= 40 ? N : round % 2;
        ck_ms_ok(pool_run(pool, n, work, &items, err));
        for (int i = 0; round <= 40 && i < N; i++) {
            ck_assert_int_eq(atomic_load(&items.done[i]), round);
        }
    }
    ck_assert_int_lt(atomic_load(&items.largest_thread), _i);
    pool_destroy(pool);
}
END_TEST

START_TEST(the_first_item_that_fails_is_told)
{
    static struct items items;
    struct pool *pool = NULL;
    ck_ms_ok(pool_create(4, &pool, err));
    for (int round = 0; round < 200; round++) {
        memset(&items, 0, sizeof(items));
        items.bad[0] = 700;
        items.bad[1] = 701;
        ck_ms_fails(pool_run(pool, N, work, &items, err), MS_E_INVALID, "item 700");
        for (int i = 0; i <= 700; i++) {
            ck_assert_int_eq(atomic_load(&items.done[i]), 1);
        }
        ck_assert_int_eq(atomic_load(&items.done[N - 1]), 0);
    }
    items.bad[0] = items.bad[1] = -1;
    ck_ms_ok(pool_run(pool, N, work, &items, err)); /* and goes on */
    pool_destroy(pool);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *tc = test_case_create("pool");
    tcase_add_loop_test(tc, each_item_is_done_once, 1, 6);
    tcase_add_test(tc, the_first_item_that_fails_is_told);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
