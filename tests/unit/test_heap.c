/* test_heap.c - the heap: least first, removal from the middle */
#include "tests/test.h"

#include "daemon/sched/heap.h"
#include "daemon/sched/list.h"
#include "proto/rng.h"

struct item {
    struct heap_link link;
    uint64_t value;
};

static int before(const struct heap_link *a, const struct heap_link *b)
{
    return list_item(a, struct item, link)->value < list_item(b, struct item, link)->value;
}

START_TEST(gives_the_least_of_what_it_holds)
{
    enum { ITEMS = 200 };
    static struct item items[ITEMS];
    struct heap heap;
    memset(items, 0, sizeof(items));
    heap_init(&heap, before);

    for (uint64_t round = 0; round < 20000; round++) {
        struct item *item = &items[ms_rng_below(2, 2 * round, ITEMS)];
        if (item->link.at != 0) {
            heap_remove(&heap, &item->link);
        } else {
            item->value = ms_rng_below(2, 2 * round + 1, 1000);
            ck_assert_int_eq(heap_add(&heap, &item->link), 0);
        }
        uint64_t least = UINT64_MAX;
        for (size_t i = 0; i < ITEMS; i++) {
            if (items[i].link.at != 0 && items[i].value < least) {
                least = items[i].value;
            }
        }
        struct heap_link *first = heap_first(&heap);
        ck_assert_uint_eq(first != NULL ? list_item(first, struct item, link)->value : UINT64_MAX,
                          least);
    }

    heap_fini(&heap);
}
END_TEST

START_TEST(removing_what_is_not_there_does_nothing)
{
    struct item item = {{0}, 1};
    struct heap heap;
    heap_init(&heap, before);

    heap_remove(&heap, &item.link);

    ck_assert_ptr_null(heap_first(&heap));
    heap_fini(&heap);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("heap");
    TCase *t = tcase_create("heap");
    tcase_add_test(t, gives_the_least_of_what_it_holds);
    tcase_add_test(t, removing_what_is_not_there_does_nothing);
    suite_add_tcase(s, t);
    return test_run(s);
}
