/* test_clients.c - connection numbers: never twice, found at once, closed in order */
#include "daemon/clients.h"
#include "tests/test.h"

static struct clients clients;
static char fake[CLIENTS_MAX]; /* addresses that stand for connections; never followed */

static void setup(void)
{
    clients_init(&clients);
}

static void teardown(void)
{
    for (size_t i = 0; i < clients.size; i++) {
        if (clients.slots[i] != NULL) {
            clients_remove(&clients, clients.slots[i]);
        }
    }
    clients_fini(&clients);
}

static struct client *add(void)
{
    struct client *client = clients_add(&clients, &clients);
    ck_assert_ptr_nonnull(client);
    client->conn = (struct ms_conn *)(void *)&fake[clients.used - 1];
    return client;
}

START_TEST(a_number_is_never_used_twice)
{
    uint64_t last = 0;
    for (int i = 0; i < 1000; i++) {
        struct client *client = add();
        uint64_t id = client->id;
        ck_assert_uint_gt(id, last);
        ck_assert_ptr_eq(clients_find(&clients, id), client);
        clients_remove(&clients, client);
        ck_assert_ptr_null(clients_find(&clients, id));
        last = id;
    }
    ck_assert_uint_eq(clients.used, 0);
}
END_TEST

START_TEST(an_old_number_does_not_find_the_slots_new_owner)
{
    struct client *old = add();
    uint64_t id = old->id;
    clients_remove(&clients, old);
    struct client *fresh = add();

    ck_assert_uint_eq(id & 0xffff, fresh->id & 0xffff);
    ck_assert_ptr_null(clients_find(&clients, id));
    ck_assert_ptr_null(clients_find(&clients, 0));
    ck_assert_ptr_null(clients_find(&clients, UINT64_MAX));
}
END_TEST

START_TEST(the_closed_come_in_order_and_are_not_found)
{
    struct client *a = add();
    struct client *b = add();
    struct client *c = add();
    clients_put_closed(&clients, b, "first");
    clients_put_closed(&clients, a, "second");

    ck_assert_ptr_null(clients_find(&clients, a->id));
    ck_assert_ptr_eq(clients_find(&clients, c->id), c);
    ck_assert_ptr_eq(clients_take_closed(&clients), b);
    ck_assert_str_eq(b->reason, "first");
    clients_put_closed(&clients, c, "third");
    ck_assert_ptr_eq(clients_take_closed(&clients), a);
    ck_assert_ptr_eq(clients_take_closed(&clients), c);
    ck_assert_ptr_null(clients_take_closed(&clients));
    clients_put_closed(&clients, a, "again");
    ck_assert_ptr_eq(clients_take_closed(&clients), a);
}
END_TEST

START_TEST(the_table_has_a_limit_and_fills_its_gaps)
{
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        add();
    }
    ck_assert_ptr_null(clients_add(&clients, NULL));
    clients_remove(&clients, clients.slots[77]);
    clients_remove(&clients, clients.slots[20000]);
    ck_assert_uint_eq(add()->id & 0xffff, 77);
    ck_assert_uint_eq(add()->id & 0xffff, 20000);
    ck_assert_ptr_null(clients_add(&clients, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("clients");
    TCase *tcase = tcase_create("clients");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_number_is_never_used_twice);
    tcase_add_test(tcase, an_old_number_does_not_find_the_slots_new_owner);
    tcase_add_test(tcase, the_closed_come_in_order_and_are_not_found);
    tcase_add_test(tcase, the_table_has_a_limit_and_fills_its_gaps);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
