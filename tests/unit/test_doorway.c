/* test_doorway.c - half-open connections: whose place it is, and who gives way */
#include "daemon/doorway.h"
#include "tests/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static struct doorway door;
static struct guest guests[16];

static void enter(int i, const char *address, int64_t now_ms)
{
    struct sockaddr_storage name;
    memset(&name, 0, sizeof(name));
    struct sockaddr_in *in = (struct sockaddr_in *)&name;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&name;
    if (inet_pton(AF_INET, address, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
    } else {
        ck_assert_int_eq(inet_pton(AF_INET6, address, &in6->sin6_addr), 1);
        in6->sin6_family = AF_INET6;
    }
    doorway_enter(&door, &guests[i], (struct sockaddr *)&name, now_ms);
}

START_TEST(nobody_gives_way_while_there_is_room)
{
    doorway_init(&door, 2);
    enter(0, "10.0.0.1", 0);
    ck_assert_ptr_null(doorway_victim(&door, 1000000));
    ck_assert_int_eq(doorway_wait_ms(&door, 1000000), 0);
}
END_TEST

START_TEST(a_full_door_waits_for_the_grace_and_then_the_oldest_gives_way)
{
    doorway_init(&door, 2);
    enter(0, "10.0.0.1", 100);
    enter(1, "10.0.0.2", 200);
    ck_assert(doorway_is_full(&door));
    ck_assert_ptr_null(doorway_victim(&door, 100 + DOORWAY_GRACE_MS - 1));
    ck_assert_int_eq(doorway_wait_ms(&door, 100 + DOORWAY_GRACE_MS - 1), 1);
    ck_assert_ptr_eq(doorway_victim(&door, 100 + DOORWAY_GRACE_MS), &guests[0]);
    doorway_leave(&door, &guests[0]);
    doorway_leave(&door, &guests[0]); /* harmless */
    ck_assert(!doorway_is_full(&door));
}
END_TEST

START_TEST(the_network_with_the_most_places_gives_way_first)
{
    doorway_init(&door, 5);
    enter(0, "10.0.0.9", 0); /* older, but alone */
    enter(1, "2001:db8:1:2::1", 10);
    enter(2, "2001:db8:1:2:ffff::1", 20); /* the same /64 */
    enter(3, "2001:db8:1:3::1", 30);
    enter(4, "10.0.0.8", 40);
    ck_assert_ptr_eq(doorway_victim(&door, 5000), &guests[1]);
    doorway_leave(&door, &guests[1]);
    enter(5, "::ffff:10.0.0.9", 4500); /* an IPv4 address by another name */
    doorway_leave(&door, &guests[2]);
    enter(6, "10.0.0.9", 4900);
    ck_assert_ptr_eq(doorway_victim(&door, 5000), &guests[0]);
}
END_TEST

START_TEST(a_crowd_that_just_came_does_not_shield_who_stands_there_for_long)
{
    doorway_init(&door, 3);
    enter(0, "10.0.0.1", 0);
    enter(1, "10.0.0.2", 4800);
    enter(2, "10.0.0.2", 4900);
    ck_assert_ptr_eq(doorway_victim(&door, 5000), &guests[0]);
}
END_TEST

START_TEST(who_has_spoken_has_longer)
{
    doorway_init(&door, 2);
    enter(0, "10.0.0.1", 0);
    enter(1, "10.0.0.2", 500);
    doorway_touch(&door, &guests[0], 600);
    ck_assert_int_eq(doorway_wait_ms(&door, 1000), 500);
    ck_assert_ptr_eq(doorway_victim(&door, 1500), &guests[1]);
    doorway_leave(&door, &guests[1]);
    doorway_touch(&door, &guests[1], 1500); /* harmless */
    enter(2, "10.0.0.3", 1600);
    doorway_touch(&door, &guests[2], 1600);
    ck_assert_ptr_null(doorway_victim(&door, 600 + DOORWAY_SPOKEN_MS - 1));
    ck_assert_ptr_eq(doorway_victim(&door, 600 + DOORWAY_SPOKEN_MS), &guests[0]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("doorway");
    TCase *tcase = tcase_create("doorway");
    tcase_add_test(tcase, nobody_gives_way_while_there_is_room);
    tcase_add_test(tcase, a_full_door_waits_for_the_grace_and_then_the_oldest_gives_way);
    tcase_add_test(tcase, the_network_with_the_most_places_gives_way_first);
    tcase_add_test(tcase, a_crowd_that_just_came_does_not_shield_who_stands_there_for_long);
    tcase_add_test(tcase, who_has_spoken_has_longer);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
