/* test_table.c - the intrusive hash table against a plain array */
#include "tests/test.h"

#include "daemon/sched/list.h"
#include "daemon/sched/table.h"
#include "proto/rng.h"

struct item {
    struct table_link link;
    uint64_t key;
    int in;
};

static struct item *find(const struct table *table, uint64_t key, uint64_t hash)
{
    struct table_link *link = table_first(table, hash);
    while (link != NULL && list_item(link, struct item, link)->key != key) {
        link = table_next(link);
    }
    return link != NULL ? list_item(link, struct item, link) : NULL;
}

START_TEST(finds_what_was_added_and_not_what_was_removed)
{
    enum { ITEMS = 500 };
    static struct item items[ITEMS];
    struct table table;
    ck_assert_int_eq(table_init(&table, 4), 0);
    size_t n = 0;
    for (uint64_t i = 0; i < ITEMS; i++) {
        items[i].key = i;
        items[i].in = 0;
    }

    for (uint64_t round = 0; round < 20000; round++) {
        struct item *item = &items[ms_rng_below(1, round, ITEMS)];
        uint64_t hash = table_hash_u64(item->key) & 0xff; /* many collide */
        ck_assert_ptr_eq(find(&table, item->key, hash), item->in ? item : NULL);
        if (item->in) {
            table_remove(&table, &item->link);
            n--;
        } else {
            table_add(&table, &item->link, hash);
            n++;
        }
        item->in = !item->in;
        ck_assert_uint_eq(table.n, n);
    }

    table_fini(&table);
}
END_TEST

START_TEST(walk_meets_every_link_once)
{
    static struct item items[100];
    struct table table;
    ck_assert_int_eq(table_init(&table, 4), 0);
    for (uint64_t i = 0; i < 100; i++) {
        items[i].in = 0;
        table_add(&table, &items[i].link, table_hash_u64(i));
    }

    size_t slot = 0;
    struct table_link *link = table_walk(&table, &slot, NULL);
    for (; link != NULL; link = table_walk(&table, &slot, link)) {
        list_item(link, struct item, link)->in++;
    }

    for (size_t i = 0; i < 100; i++) {
        ck_assert_int_eq(items[i].in, 1);
    }
    table_fini(&table);
}
END_TEST

START_TEST(hashes_of_texts_depend_on_every_byte_and_the_seed)
{
    ck_assert_uint_ne(table_hash_text(1, "worker-0001"), table_hash_text(1, "worker-0002"));
    ck_assert_uint_ne(table_hash_text(1, "aorker-0001"), table_hash_text(1, "worker-0001"));
    ck_assert_uint_ne(table_hash_text(1, "w"), table_hash_text(2, "w"));
    ck_assert_uint_ne(table_hash_text(1, ""), table_hash_text(1, "w"));
    ck_assert_uint_eq(table_hash_text(1, "worker-0001"), table_hash_text(1, "worker-0001"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("table");
    TCase *t = tcase_create("table");
    tcase_add_test(t, finds_what_was_added_and_not_what_was_removed);
    tcase_add_test(t, walk_meets_every_link_once);
    tcase_add_test(t, hashes_of_texts_depend_on_every_byte_and_the_seed);
    suite_add_tcase(s, t);
    return test_run(s);
}
