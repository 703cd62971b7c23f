/* test_crowd.c - who comes together: by what an address tells, whose turn it is, who is too many */
#include "daemon/crowd.h"
#include "tests/test.h"
#include "tests/unit/crowd_from.h"

#include <arpa/inet.h>
#include <netinet/in.h>

enum { MEMBERS = 64 };

static struct crowds crowds;
static struct member members[MEMBERS];

static struct crowd *get(const struct crowd_who *who)
{
    struct crowd *crowd = crowds_get(&crowds, who);
    ck_assert_ptr_nonnull(crowd);
    return crowd;
}

static void come(int i, const char *address, enum crowd_state state)
{
    struct crowd_who who = from(address);
    crowd_add(get(&who), &members[i], state);
}

static void go(struct member *member)
{
    struct crowd *crowd = member->crowd;
    crowd_remove(member);
    crowd_drop(&crowds, crowd);
}

static int next(void)
{
    struct member *member = crowds_next(&crowds);
    if (member == NULL) {
        return -1;
    }
    go(member);
    return (int)(member - members);
}

static int surplus(enum crowd_state state, size_t above)
{
    struct member *member = crowds_surplus(&crowds, state, above);
    return member == NULL ? -1 : (int)(member - members);
}

static void setup(void)
{
    crowds_init(&crowds);
}

static void teardown(void)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (members[i].crowd != NULL) {
            go(&members[i]);
        }
    }
    for (size_t i = 0; i < CROWD_SLOTS; i++) {
        ck_assert_ptr_null(crowds.slots[i]); /* nothing is kept of who has gone */
    }
    crowds_fini(&crowds);
}

START_TEST(an_address_belongs_to_its_networks)
{
    static const char *const names[][4] = {
        {"10.1.2.3", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3"},
        {"::ffff:10.1.2.3", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3"},
        {"0.1.2.3", "0.1.0.0/16", "0.1.2.0/24", "0.1.2.3"},
        {"127.9.8.7", "this host", "an unknown uid", "127.9.8.7 of an unknown uid"},
        {"::1", "this host", "an unknown uid", "::1 of an unknown uid"},
        {"2001:db8:1:2:3::4", "2001:db8::/32", "2001:db8:1::/48", "2001:db8:1:2::/64"},
    };
    char name[CROWD_NAME_MAX];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct crowd_who who = from(names[i][0]);
        struct crowd *crowd = get(&who);
        for (unsigned level = 1; level <= CROWD_LEVELS; level++) {
            ck_assert_str_eq(crowd_name(crowd_at(crowd, level), name), names[i][level]);
        }
        ck_assert_str_eq(crowd_name(crowd_at(crowd, 0), name), "?");
        crowd_drop(&crowds, crowd);
    }
    struct crowd_who uid = crowd_who_uid(1000, 0);
    struct crowd_who nobody = crowd_who_net(NULL);
    ck_assert_str_eq(crowd_name(crowd_at(get(&uid), 1), name), "uid 1000");
    ck_assert_str_eq(crowd_name(get(&nobody), name), "?");
    crowd_drop(&crowds, get(&uid));
    crowd_drop(&crowds, get(&nobody));
}
END_TEST

/* A uid is one, whatever addresses of its own host it comes from. */
START_TEST(who_is_on_this_host_is_known_by_his_uid)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f050607)}};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    char name[CROWD_NAME_MAX];
    struct crowd_who who = crowd_who_here((struct sockaddr *)&at, 1000);
    crowd_add(get(&who), &members[0], CROWD_READY);
    ck_assert_str_eq(crowd_name(members[0].crowd, name), "127.5.6.7 of uid 1000");
    ck_assert_str_eq(crowd_name(crowd_at(members[0].crowd, 2), name), "uid 1000");
    who = crowd_who_here((struct sockaddr *)&six, 1000);
    crowd_add(get(&who), &members[1], CROWD_READY);
    ck_assert_str_eq(crowd_name(members[1].crowd, name), "::1 of uid 1000");
    ck_assert_uint_eq(crowd_parting(members[0].crowd, members[1].crowd), 3);
    at.sin_addr.s_addr = htonl(0x0a000001); /* its address in a network */
    who = crowd_who_here((struct sockaddr *)&at, 1001);
    crowd_add(get(&who), &members[2], CROWD_READY);
    ck_assert_uint_eq(crowd_parting(members[0].crowd, members[2].crowd), 2);
    ck_assert_int_eq(next(), 0);
    ck_assert_int_eq(next(), 2);
    ck_assert_int_eq(next(), 1);
}
END_TEST

START_TEST(two_crowds_part_where_their_networks_do)
{
    static const struct {
        const char *one, *two;
        unsigned level;
    } cases[] = {{"10.1.2.3", "10.1.2.3", CROWD_LEVELS + 1},
                 {"10.1.2.3", "10.1.2.4", 3},
                 {"10.1.2.3", "10.1.3.3", 2},
                 {"10.1.2.3", "10.2.2.3", 1},
                 {"127.1.2.3", "127.2.2.3", 3},
                 {"127.0.0.1", "::1", 3},
                 {"10.1.2.3", "2001:db8::1", 1},
                 {"0.0.0.1", "::1", 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        come(0, cases[i].one, CROWD_SILENT);
        come(1, cases[i].two, CROWD_SILENT);
        ck_assert_uint_eq(crowd_parting(members[0].crowd, members[1].crowd), cases[i].level);
        go(&members[0]);
        go(&members[1]);
    }
}
END_TEST

START_TEST(networks_take_turns_and_in_them_their_parts)
{
    for (int i = 0; i < 4; i++) { /* many addresses of one network */
        char address[16];
        snprintf(address, sizeof(address), "10.1.%d.1", i);
        come(i, address, CROWD_READY);
    }
    come(4, "10.1.0.1", CROWD_READY);
    come(5, "10.2.0.1", CROWD_READY);
    come(6, "10.2.0.1", CROWD_READY);
    come(7, "10.2.0.2", CROWD_READY);
    come(8, "10.3.0.1", CROWD_SILENT); /* has no turn */

    static const int order[] = {0, 5, 1, 7, 2, 6, 3, 4, -1};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        ck_assert_int_eq(next(), order[i]);
    }
}
END_TEST

START_TEST(a_member_that_goes_takes_the_turn_of_nobody_else)
{
    come(0, "10.1.0.1", CROWD_READY);
    come(1, "10.1.0.1", CROWD_READY);
    come(2, "10.2.0.1", CROWD_READY);
    go(&members[1]); /* it was not the next */
    ck_assert_int_eq(next(), 0);
    ck_assert_int_eq(next(), 2);
}
END_TEST

START_TEST(who_goes_is_of_the_largest_network_and_its_largest_part)
{
    come(0, "10.1.1.1", CROWD_SILENT); /* older than all others */
    come(1, "10.1.1.1", CROWD_SILENT);
    come(2, "10.1.1.1", CROWD_SILENT);
    for (int i = 3; i < 9; i++) {
        char address[16];
        snprintf(address, sizeof(address), "10.2.%d.1", i / 5);
        come(i, address, CROWD_SILENT);
    }
    ck_assert_int_eq(surplus(CROWD_SILENT, 1), 5); /* the longest silent of 10.2.1.1 */
    ck_assert_int_eq(surplus(CROWD_READY, 1), -1);
    come(9, "10.3.0.1", CROWD_READY);
    come(10, "10.3.0.1", CROWD_READY);
    ck_assert_int_eq(surplus(CROWD_READY, 1), 10); /* the newest */
}
END_TEST

/* Two nodes of one host, or a few, are no crowd among many single ones. */
START_TEST(crowds_that_are_not_large_are_judged_together)
{
    come(0, "127.5.5.5", CROWD_SILENT);
    come(1, "127.0.0.1", CROWD_SILENT);
    come(2, "127.0.0.1", CROWD_SILENT);
    come(3, "127.6.6.6", CROWD_SILENT);
    ck_assert_int_eq(surplus(CROWD_SILENT, 2), 0);
    come(4, "127.0.0.1", CROWD_SILENT);
    ck_assert_int_eq(surplus(CROWD_SILENT, 2), 1);
}
END_TEST

START_TEST(who_is_let_in_anyway_comes_first_and_goes_last)
{
    struct crowd_who root = crowd_who_uid(0, 1);
    struct crowd_who other = crowd_who_uid(1000, 0);
    crowd_add(get(&other), &members[0], CROWD_READY);
    for (int i = 1; i < 4; i++) {
        crowd_add(get(&root), &members[i], CROWD_READY);
    }
    ck_assert_int_eq(surplus(CROWD_READY, 1), 0);
    ck_assert_int_eq(next(), 1);
    go(&members[0]);
    ck_assert_int_eq(surplus(CROWD_READY, 1), 3);
}
END_TEST

START_TEST(a_crowd_that_is_held_has_no_turn_until_it_is_released)
{
    come(0, "10.1.1.1", CROWD_READY);
    come(1, "10.1.1.2", CROWD_READY);
    crowd_hold(members[0].crowd);
    come(2, "10.1.1.1", CROWD_READY);
    ck_assert_int_eq(next(), 1);
    ck_assert_int_eq(next(), -1);
    crowds_release(&crowds);
    ck_assert_int_eq(next(), 0);
    ck_assert_int_eq(next(), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crowd");
    TCase *tcase = tcase_create("crowd");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, an_address_belongs_to_its_networks);
    tcase_add_test(tcase, who_is_on_this_host_is_known_by_his_uid);
    tcase_add_test(tcase, two_crowds_part_where_their_networks_do);
    tcase_add_test(tcase, networks_take_turns_and_in_them_their_parts);
    tcase_add_test(tcase, a_member_that_goes_takes_the_turn_of_nobody_else);
    tcase_add_test(tcase, who_goes_is_of_the_largest_network_and_its_largest_part);
    tcase_add_test(tcase, crowds_that_are_not_large_are_judged_together);
    tcase_add_test(tcase, who_is_let_in_anyway_comes_first_and_goes_last);
    tcase_add_test(tcase, a_crowd_that_is_held_has_no_turn_until_it_is_released);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
