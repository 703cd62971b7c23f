/* test_node_offer.c - what a host offers survives its message, and nonsense is no offer */
#include "libworker/node/node_offer.h"
#include "tests/test.h"

static struct host_offer some_offer(void)
{
    struct host_offer offer;
    memset(&offer, 0, sizeof(offer)); /* it is compared as bytes */
    for (int i = 4; i < 12; i++) {
        cpuset_add(&offer.cpus, i);
    }
    offer.cores = 8;
    offer.physical = 4;
    offer.numa = 2;
    offer.cpu_milli = 3500;
    offer.cpu_pool = 77;
    offer.cache_bytes[0] = 49152;
    offer.cache_bytes[1] = 2U << 20;
    offer.cache_bytes[2] = 32U << 20;
    offer.memory_bytes = UINT64_C(1) << 36;
    return offer;
}

START_TEST(an_offer_survives_its_message)
{
    const struct host_offer offer = some_offer();
    Ms__Offer msg;
    uint8_t bytes[512];

    node_offer_write(&offer, &msg);
    ck_assert_uint_le(ms__offer__get_packed_size(&msg), sizeof(bytes));
    Ms__Offer *came = ms__offer__unpack(NULL, ms__offer__pack(&msg, bytes), bytes);
    ck_assert_ptr_nonnull(came);
    const struct host_offer back = node_offer_read(came);

    ck_assert_mem_eq(&back.cpus, &offer.cpus, sizeof(offer.cpus));
    ck_assert_int_eq(back.cores, 8);
    ck_assert_int_eq(back.physical, 4);
    ck_assert_int_eq(back.numa, 2);
    ck_assert_uint_eq(back.cpu_milli, 3500);
    ck_assert_uint_eq(back.cpu_pool, 77);
    ck_assert_mem_eq(back.cache_bytes, offer.cache_bytes, sizeof(offer.cache_bytes));
    ck_assert_uint_eq(back.memory_bytes, offer.memory_bytes);
    ms__offer__free_unpacked(came, NULL);
}
END_TEST

START_TEST(what_cannot_be_is_no_offer)
{
    const struct host_offer offer = some_offer();
    Ms__Offer msg;
    ck_assert_int_eq(node_offer_read(NULL).cores, 0);

    node_offer_write(&offer, &msg);
    msg.physical = 0;
    ck_assert_int_eq(node_offer_read(&msg).cores, 0);
    msg.physical = 9;
    ck_assert_int_eq(node_offer_read(&msg).cores, 0);

    node_offer_write(&offer, &msg);
    msg.numa = UINT32_MAX;
    ck_assert_int_eq(node_offer_read(&msg).cores, 0);

    node_offer_write(&offer, &msg);
    msg.cpuset.len = 0;
    ck_assert_int_eq(node_offer_read(&msg).cores, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_offer");
    TCase *tc = tcase_create("node_offer");
    tcase_add_test(tc, an_offer_survives_its_message);
    tcase_add_test(tc, what_cannot_be_is_no_offer);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
