/* test_doorway.c - half-open connections: whose place it is, and who gives way */
#include "daemon/doorway.h"
#include "tests/test.h"
#include "tests/unit/crowd_from.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static struct doorway door;
static struct guest guests[16];

static void open_door(size_t max, size_t waiting_max)
{
    doorway_fini(&door);
    doorway_init(&door, max, waiting_max);
}

static void enter(int i, const char *address, int64_t now_ms)
{
    struct crowd_who who = from(address);
    ck_assert_int_eq(doorway_enter(&door, &guests[i], &who, now_ms), 0);
}

static void come_silent(int i, const char *address, int64_t now_ms)
{
    struct crowd_who who = from(address);
    ck_assert_int_eq(doorway_wait(&door, &guests[i], &who, now_ms), 0);
}

/* ... and has said something. */
static void come(int i, const char *address)
{
    come_silent(i, address, 0);
    doorway_touch(&door, &guests[i], 0);
}

static void come_as(int i, const struct crowd_who *who)
{
    ck_assert_int_eq(doorway_wait(&door, &guests[i], who, 0), 0);
    doorway_touch(&door, &guests[i], 0);
}

/* Whose turn it is, and takes it away. */
static int next(void)
{
    struct guest *guest = doorway_next(&door);
    if (guest == NULL) {
        return -1;
    }
    doorway_leave(&door, guest);
    return (int)(guest - guests);
}

START_TEST(nobody_gives_way_while_there_is_room)
{
    open_door(2, 16);
    enter(0, "10.0.0.1", 0);
    ck_assert_ptr_null(doorway_victim(&door, 1000000));
    ck_assert_int_eq(doorway_wait_ms(&door, 1000000), 0);
}
END_TEST

START_TEST(a_full_door_waits_for_the_grace_and_then_the_oldest_gives_way)
{
    open_door(2, 16);
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
    open_door(5, 16);
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
    open_door(3, 16);
    enter(0, "10.0.0.1", 0);
    enter(1, "10.0.0.2", 4800);
    enter(2, "10.0.0.2", 4900);
    ck_assert_ptr_eq(doorway_victim(&door, 5000), &guests[0]);
}
END_TEST

START_TEST(who_has_spoken_has_longer)
{
    open_door(2, 16);
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

/* 4,000 connections of one address stood in the kernel's queue before everybody else. */
START_TEST(who_waits_has_his_turn_however_many_of_another_crowd_came_before)
{
    open_door(2, 16);
    for (int i = 0; i < 5; i++) {
        come(i, "10.0.0.1");
    }
    come(5, "10.0.0.2");
    come(6, "2001:db8::1");

    ck_assert_int_eq(next(), 0);
    ck_assert_int_eq(next(), 6);
    ck_assert_int_eq(next(), 5);
    ck_assert_int_eq(next(), 1); /* within a crowd in the order of coming */
    ck_assert_int_eq(next(), 2);
    come(7, "10.0.0.2");
    ck_assert_int_eq(next(), 3);
    ck_assert_int_eq(next(), 7);
    ck_assert_int_eq(next(), 4);
    ck_assert_int_eq(next(), -1);
}
END_TEST

START_TEST(the_newest_of_the_largest_crowd_is_turned_away)
{
    open_door(2, 3);
    come(0, "10.0.0.1");
    come(1, "10.0.0.1");
    come(2, "10.0.0.1");
    ck_assert_ptr_null(doorway_surplus(&door));

    come(3, "10.0.0.2");
    ck_assert_ptr_eq(doorway_surplus(&door), &guests[2]);
    doorway_leave(&door, &guests[2]);
    ck_assert_ptr_null(doorway_surplus(&door));
    ck_assert_int_eq(next(), 0); /* and keeps its turn */
    ck_assert_uint_eq(doorway_waiting_n(&door), 2);
}
END_TEST

START_TEST(who_is_silent_gets_in_while_the_door_is_half_empty)
{
    open_door(4, 16);
    come_silent(0, "10.0.0.1", 0);
    come_silent(1, "10.0.0.2", 0);
    come_silent(2, "10.0.0.3", 0);
    ck_assert_ptr_eq(doorway_next(&door), &guests[0]);
    enter(3, "10.0.0.4", 0);
    enter(4, "10.0.0.4", 0);
    ck_assert_ptr_null(doorway_next(&door));

    doorway_touch(&door, &guests[2], 1);
    doorway_touch(&door, &guests[2], 2); /* the next bytes change nothing */
    ck_assert_ptr_eq(doorway_next(&door), &guests[2]);
    doorway_leave(&door, &guests[4]);
    ck_assert_int_eq(next(), 2);
    ck_assert_int_eq(next(), 0);
    ck_assert_int_eq(next(), 1);
}
END_TEST

/* 3,500 silent connections, each of another address, kept everybody else out. */
START_TEST(silent_ones_give_their_places_to_who_speaks_and_keep_a_part)
{
    open_door(2, 8);
    enter(15, "10.0.0.1", 0); /* half of it */
    for (int i = 0; i < 8; i++) {
        char address[16];
        snprintf(address, sizeof(address), "127.1.%d.1", i);
        come_silent(i, address, i);
    }
    for (int i = 8; i < 14; i++) {
        come(i, "127.0.0.1");
        ck_assert_ptr_eq(doorway_surplus(&door), &guests[i - 8]); /* who is silent for longest */
        doorway_leave(&door, &guests[i - 8]);
    }
    come(14, "127.0.0.1");
    ck_assert_ptr_eq(doorway_surplus(&door), &guests[14]); /* their bytes may be on the way */
    doorway_leave(&door, &guests[14]);
    ck_assert_int_eq(next(), 8);
}
END_TEST

START_TEST(who_is_silent_in_front_of_the_door_for_long_goes)
{
    open_door(2, 8);
    come_silent(0, "10.0.0.1", 100);
    come_silent(1, "10.0.0.2", 200);
    ck_assert_ptr_null(doorway_mute(&door, 100 + DOORWAY_MUTE_MS - 1));
    ck_assert_ptr_eq(doorway_mute(&door, 100 + DOORWAY_MUTE_MS), &guests[0]);
    doorway_touch(&door, &guests[0], 300);
    ck_assert_ptr_null(doorway_mute(&door, 100 + DOORWAY_MUTE_MS));
    ck_assert_ptr_eq(doorway_mute(&door, 1000000), &guests[1]);
    ck_assert_ptr_nonnull(doorway_waiting(&door));
}
END_TEST

START_TEST(a_network_of_many_addresses_in_the_door_gives_way_like_one)
{
    open_door(4, 16);
    for (int i = 0; i < 4; i++) {
        char address[16];
        snprintf(address, sizeof(address), "10.1.1.%d", i);
        enter(i, address, i);
    }
    come(4, "10.1.1.9"); /* one of it: the others hold one place each */
    ck_assert_ptr_null(doorway_yields(&door, &guests[4]));
    come(5, "10.2.1.1");
    ck_assert_ptr_eq(doorway_yields(&door, &guests[5]), &guests[0]);

    doorway_leave(&door, &guests[3]);
    enter(6, "10.2.1.1", -1000); /* older, and of a small network */
    ck_assert_ptr_eq(doorway_victim(&door, 1000000), &guests[0]);
}
END_TEST

START_TEST(a_crowd_in_the_door_gives_way_at_once_to_who_holds_little)
{
    open_door(4, 16);
    for (int i = 0; i < 4; i++) {
        enter(i, "10.0.0.1", i);
    }
    doorway_touch(&door, &guests[0], 4);
    come(4, "10.0.0.1");
    ck_assert_ptr_null(doorway_yields(&door, &guests[4])); /* one of its own waits for the grace */
    come(5, "10.0.0.2");
    ck_assert_ptr_eq(doorway_yields(&door, &guests[5]), &guests[1]); /* silent ones first */

    doorway_leave(&door, &guests[1]);
    ck_assert_ptr_null(doorway_yields(&door, &guests[5])); /* there is room */
    enter(6, "10.0.0.3", 5);
    doorway_leave(&door, &guests[2]);
    enter(7, "10.0.0.4", 5);
    ck_assert_ptr_null(doorway_yields(&door, &guests[5])); /* half of it is no crowd */
}
END_TEST

START_TEST(some_are_let_in_whatever_the_others_do)
{
    struct crowd_who root = crowd_who_uid(0, 1);
    open_door(2, 1);
    struct crowd_who other = crowd_who_uid(1000, 0);
    ck_assert_int_eq(doorway_enter(&door, &guests[0], &other, 0), 0);
    other = crowd_who_uid(1001, 0);
    ck_assert_int_eq(doorway_enter(&door, &guests[1], &other, 1), 0);
    come_as(2, &other);
    come_as(3, &root);

    ck_assert_ptr_eq(doorway_surplus(&door), &guests[2]);
    ck_assert_ptr_eq(doorway_next(&door), &guests[3]); /* before who came earlier */
    ck_assert_ptr_null(doorway_yields(&door, &guests[2]));
    ck_assert_ptr_eq(doorway_yields(&door, &guests[3]), &guests[0]);

    doorway_leave(&door, &guests[0]);
    doorway_leave(&door, &guests[3]);
    ck_assert_int_eq(doorway_enter(&door, &guests[3], &root, 2), 0);
    come_as(4, &root);
    ck_assert_ptr_eq(doorway_yields(&door, &guests[4]), &guests[1]); /* never one of them */
}
END_TEST

START_TEST(a_crowd_whose_name_is_asked_for_keeps_nobody_waiting)
{
    open_door(2, 16);
    come(0, "10.0.0.1");
    come(1, "10.0.0.2");
    ck_assert_ptr_eq(doorway_next(&door), &guests[0]);
    doorway_hold(&door, &guests[0]);
    come(2, "10.0.0.1");
    ck_assert_int_eq(next(), 1);
    ck_assert_int_eq(next(), -1);
    ck_assert_ptr_nonnull(doorway_waiting(&door));
    doorway_release(&door);
    ck_assert_int_eq(next(), 0);
    ck_assert_int_eq(next(), 2);
    ck_assert_ptr_null(doorway_waiting(&door));
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
    tcase_add_test(tcase, who_waits_has_his_turn_however_many_of_another_crowd_came_before);
    tcase_add_test(tcase, the_newest_of_the_largest_crowd_is_turned_away);
    tcase_add_test(tcase, who_is_silent_gets_in_while_the_door_is_half_empty);
    tcase_add_test(tcase, silent_ones_give_their_places_to_who_speaks_and_keep_a_part);
    tcase_add_test(tcase, who_is_silent_in_front_of_the_door_for_long_goes);
    tcase_add_test(tcase, a_network_of_many_addresses_in_the_door_gives_way_like_one);
    tcase_add_test(tcase, a_crowd_in_the_door_gives_way_at_once_to_who_holds_little);
    tcase_add_test(tcase, some_are_let_in_whatever_the_others_do);
    tcase_add_test(tcase, a_crowd_whose_name_is_asked_for_keeps_nobody_waiting);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
