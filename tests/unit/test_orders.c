/* test_orders.c - the queue between the agent's thread and the trainer */
#include "libworker/agent/orders.h"
#include "proto/wire.h"
#include "tests/test.h"

static struct agent_order order_of(enum agent_order_kind kind, uint64_t job)
{
    return (struct agent_order){.kind = kind, .job = job};
}

START_TEST(orders_come_out_in_the_order_in_which_they_went_in)
{
    struct orders orders;
    struct agent_order out;
    orders_init(&orders);
    for (uint64_t i = 1; i <= 3; i++) {
        struct agent_order in = order_of(AGENT_START, i);
        orders_push(&orders, &in);
    }

    for (uint64_t i = 1; i <= 3; i++) {
        ck_assert_int_eq(orders_take(&orders, &out, -1), 1);
        ck_assert_uint_eq(out.job, i);
    }
    ck_assert_int_eq(orders_take(&orders, &out, 1), 0);
    orders_fini(&orders);
}
END_TEST

static struct agent_order assign_of(uint64_t generation)
{
    uint8_t nothing = 0;
    ProtobufCMessage *msg = NULL;
    ck_ms_ok(ms_wire_unpack(MS_MSG_ASSIGN, &nothing, 0, &msg, err));
    return (struct agent_order){
        .kind = AGENT_ASSIGN, .job = 100, .generation = generation, .assign = (Ms__Assign *)msg};
}

START_TEST(a_full_queue_drops_the_oldest_order_without_an_assign)
{
    struct orders orders;
    struct agent_order out;
    orders_init(&orders);
    struct agent_order assign = assign_of(1);
    ck_assert_int_eq(orders_push(&orders, &assign), 0);

    for (uint64_t i = 1; i <= ORDERS_MAX + 2; i++) {
        struct agent_order in = order_of(AGENT_STOP, i);
        ck_assert_int_eq(orders_push(&orders, &in), 0);
    }

    ck_assert_int_eq(orders_take(&orders, &out, 0), 1);
    ck_assert_uint_eq(out.job, 100);
    ms_wire_free(&out.assign->base);
    ck_assert_int_eq(orders_take(&orders, &out, 0), 1);
    ck_assert_uint_eq(out.job, 4); /* 1, 2 and 3 made room */
    orders_fini(&orders);
}
END_TEST

START_TEST(an_assign_is_refused_and_never_dropped)
{
    struct orders orders;
    struct agent_order out;
    orders_init(&orders);
    for (uint64_t i = 1; i <= ORDERS_ASSIGNS_MAX; i++) {
        struct agent_order assign = assign_of(i);
        ck_assert_int_eq(orders_push(&orders, &assign), 0);
    }
    struct agent_order more = assign_of(9);

    ck_assert_int_eq(orders_push(&orders, &more), MS_E_FULL);
    ms_wire_free(&more.assign->base); /* it stayed ours */
    for (uint64_t i = 1; i <= 10 * ORDERS_MAX; i++) {
        struct agent_order in = order_of(AGENT_STOP, i);
        ck_assert_int_eq(orders_push(&orders, &in), 0);
    }

    for (uint64_t i = 1; i <= ORDERS_ASSIGNS_MAX; i++) {
        ck_assert_int_eq(orders_take(&orders, &out, 0), 1);
        ck_assert_int_eq(out.kind, AGENT_ASSIGN);
        ck_assert_uint_eq(out.generation, i);
        ms_wire_free(&out.assign->base);
    }
    orders_fini(&orders);
}
END_TEST

START_TEST(what_is_said_twice_is_kept_once)
{
    struct orders orders;
    struct agent_order out;
    orders_init(&orders);
    for (int i = 0; i < 1000; i++) {
        struct agent_order in = order_of(AGENT_STOP, 5);
        snprintf(in.text, sizeof(in.text), "time %d", i);
        ck_assert_int_eq(orders_push(&orders, &in), 0);
    }

    ck_assert_int_eq(orders_take(&orders, &out, 0), 1);
    ck_assert_str_eq(out.text, "time 999");
    ck_assert_int_eq(orders_take(&orders, &out, 0), 0);
    orders_fini(&orders);
}
END_TEST

START_TEST(an_order_that_is_put_back_is_the_next_one_even_in_a_full_queue)
{
    struct orders orders;
    struct agent_order out;
    orders_init(&orders);
    struct agent_order assign = assign_of(1);
    ck_assert_int_eq(orders_push(&orders, &assign), 0);
    ck_assert_int_eq(orders_take(&orders, &out, 0), 1);
    for (uint64_t i = 1; i <= ORDERS_MAX; i++) {
        struct agent_order in = order_of(AGENT_STOP, i);
        ck_assert_int_eq(orders_push(&orders, &in), 0);
    }

    orders_unget(&orders, &out);
    struct agent_order last = order_of(AGENT_STOP, 99);
    ck_assert_int_eq(orders_push(&orders, &last), 0);

    ck_assert_int_eq(orders_take(&orders, &out, 0), 1);
    ck_assert_int_eq(out.kind, AGENT_ASSIGN);
    ms_wire_free(&out.assign->base);
    uint64_t n = 0;
    while (orders_take(&orders, &out, 0)) {
        n++;
    }
    ck_assert_uint_le(n, ORDERS_MAX);
    ck_assert_uint_eq(out.job, 99);
    orders_fini(&orders);
}
END_TEST

static void *push_later(void *arg)
{
    struct agent_order in = order_of(AGENT_LEAVE, 9);
    orders_push(arg, &in);
    return NULL;
}

START_TEST(a_waiter_wakes_when_an_order_comes)
{
    struct orders orders;
    struct agent_order out;
    pthread_t thread;
    orders_init(&orders);
    ck_assert_int_eq(pthread_create(&thread, NULL, push_later, &orders), 0);

    ck_assert_int_eq(orders_take(&orders, &out, -1), 1);

    ck_assert_int_eq(out.kind, AGENT_LEAVE);
    pthread_join(thread, NULL);
    orders_fini(&orders);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("orders");
    TCase *tc = tcase_create("orders");
    tcase_add_test(tc, orders_come_out_in_the_order_in_which_they_went_in);
    tcase_add_test(tc, a_full_queue_drops_the_oldest_order_without_an_assign);
    tcase_add_test(tc, an_assign_is_refused_and_never_dropped);
    tcase_add_test(tc, what_is_said_twice_is_kept_once);
    tcase_add_test(tc, an_order_that_is_put_back_is_the_next_one_even_in_a_full_queue);
    tcase_add_test(tc, a_waiter_wakes_when_an_order_comes);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
