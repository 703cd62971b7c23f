/* test_grow.c - arrays that grow, against plain counting */
#include "proto/grow.h"
#include "proto/rng.h"
#include "tests/test.h"

START_TEST(what_was_in_an_array_stays_however_it_grows)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        uint32_t *array = NULL;
        size_t n = 0;
        size_t room = 0;
        int moves = 0;
        for (uint64_t turn = 0; turn < 200; turn++) {
            const size_t more = (size_t)ms_rng_below(seed, turn, 8);
            const size_t before = room;
            uint32_t *grown = ms_grow(array, n, more, sizeof(*array), &room);
            ck_assert_ptr_nonnull(grown);
            ck_assert_uint_ge(room, n + more);
            ck_assert(room == before || (room >= 2 * before && (n + more > before || before == 0)));
            moves += room != before;
            array = grown;
            for (size_t i = 0; i < more; i++, n++) {
                array[n] = (uint32_t)n;
            }
        }
        for (size_t i = 0; i < n; i++) {
            ck_assert_uint_eq(array[i], i);
        }
        ck_assert_int_le(moves, 8); /* 16, 32, ... 2,048: of 1,400 elements at the most */
        free(array);
    }
}
END_TEST

START_TEST(an_array_of_nothing_is_one)
{
    size_t room = 0;
    void *array = ms_grow(NULL, 0, 0, 8, &room);
    ck_assert_ptr_nonnull(array); /* NULL would say that there is no memory */
    ck_assert_uint_gt(room, 0);
    free(array);
}
END_TEST

START_TEST(what_no_memory_can_hold_is_refused_and_changes_nothing)
{
    static uint64_t one[1];
    const size_t limit = PTRDIFF_MAX;
    size_t room = 1;

    ck_assert_ptr_null(ms_grow(one, 1, limit, sizeof(*one), &room));
    ck_assert_ptr_null(ms_grow(one, 1, SIZE_MAX, sizeof(*one), &room));
    ck_assert_ptr_null(ms_grow(one, 1, limit / sizeof(*one), sizeof(*one), &room));
    ck_assert_uint_eq(room, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("grow");
    TCase *tc = tcase_create("grow");
    tcase_add_test(tc, what_was_in_an_array_stays_however_it_grows);
    tcase_add_test(tc, an_array_of_nothing_is_one);
    tcase_add_test(tc, what_no_memory_can_hold_is_refused_and_changes_nothing);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
