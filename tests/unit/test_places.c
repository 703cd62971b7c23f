/* test_places.c - no user keeps others out, no user keeps nodes out, nobody keeps an admin out */
#include "daemon/places.h"
#include "tests/test.h"

static struct places places;
static struct place held[20000];
static size_t n_held;
static char said[MS_ERR_TEXT_MAX];

static int take(unsigned roles, const char *id, const char *cert)
{
    struct ms_peer peer;
    struct ms_err err = {0, ""};
    memset(&peer, 0, sizeof(peer));
    peer.who.roles = roles;
    peer.uid = (unsigned)-1;
    snprintf(peer.who.id, sizeof(peer.who.id), "%s", id);
    snprintf(peer.cert_name, sizeof(peer.cert_name), "%s", cert);
    int rc = places_take(&places, &peer, &held[n_held], &err);
    n_held += rc == 0;
    ck_assert(rc == 0 || err.text[0] != '\0');
    snprintf(said, sizeof(said), "%s", err.text);
    return rc;
}

static void setup(void)
{
    n_held = 0;
    places_init(&places, 1000);
}

static void teardown(void)
{
    for (size_t i = 0; i < n_held; i++) {
        places_give(&places, &held[i]);
        places_give(&places, &held[i]); /* harmless */
    }
    ck_assert_uint_eq(places_used(&places), 0);
    places_fini(&places);
}

/* One uid held all 19,680 connections, and root was refused. */
START_TEST(one_user_has_a_share_and_another_gets_in)
{
    while (take(MS_ROLE_USER, "user:mallory", "mallory") == 0) {
    }
    ck_assert_uint_eq(n_held, places.user_max);
    ck_assert_int_eq(take(MS_ROLE_USER, "user:alice", "alice"), 0);
    ck_assert_int_eq(take(MS_ROLE_USER, "user:mallory", "mallory"), MS_E_FULL);
}
END_TEST

START_TEST(users_together_leave_room_for_nodes_and_admins)
{
    char id[32];
    int rc = 0;
    for (int i = 0; rc == 0; i++) {
        snprintf(id, sizeof(id), "user:u%d", i);
        rc = take(MS_ROLE_USER, id, id);
    }
    ck_assert_int_eq(rc, MS_E_FULL);
    ck_assert_uint_eq(n_held, places.users_max);
    while (take(MS_ROLE_WORKER, "worker:w", "w") == 0) {
    }
    ck_assert_uint_eq(n_held, places.others_max); /* what users leave is theirs */
    ck_assert_int_eq(take(MS_ROLE_ADMIN, "admin:root", "root"), 0);
}
END_TEST

/* One user's half frames held all the room there was for as long as he liked. */
START_TEST(room_for_large_frames_is_shared_too)
{
    char id[32];
    char text[256];
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(take(MS_ROLE_USER, "user:mallory", "mallory"), 0);
        ck_assert_int_eq(places_grow(&places, &held[i]), i < MS_BIG_FRAMES_USER);
    }
    places_say_large(&places, &held[0], text, sizeof(text));
    ck_assert_str_eq(text, "8 of 64 places for requests above 64 KiB are taken, 8 by user:mallory "
                           "(8 are the limit of one)");
    for (int i = 0; i < MS_BIG_FRAMES; i++) {
        snprintf(id, sizeof(id), "user:u%d", i);
        ck_assert_int_eq(take(MS_ROLE_USER, id, id), 0);
        const int fits = i < MS_BIG_FRAMES - MS_BIG_FRAMES_ADMIN - MS_BIG_FRAMES_USER;
        ck_assert_int_eq(places_grow(&places, &held[n_held - 1]), fits);
    }
    for (int i = 0; i <= MS_BIG_FRAMES_ADMIN; i++) {
        ck_assert_int_eq(take(MS_ROLE_ADMIN, "admin:root", "root"), 0);
        ck_assert_int_eq(places_grow(&places, &held[n_held - 1]), i < MS_BIG_FRAMES_ADMIN);
    }
    ck_assert_int_eq(take(MS_ROLE_WORKER, "worker:node7", "node7"), 0);
    ck_assert_int_eq(places_grow(&places, &held[n_held - 1]), 1); /* not counted */
    ck_assert_uint_eq(places_free_large(&places), 0);

    places_shrink(&places, &held[0]);
    ck_assert_int_eq(places_may_grow(&places, &held[8]), 0); /* it is an admin's now */
    places_give(&places, &held[1]);                          /* gives both */
    for (size_t i = 40; i < 40 + MS_BIG_FRAMES_ADMIN; i++) {
        places_shrink(&places, &held[i]);
    }
    ck_assert_int_eq(places_grow(&places, &held[8]), 1);
}
END_TEST

START_TEST(an_admin_that_nobody_vouches_for_has_no_floor)
{
    unsigned all = MS_ROLE_ADMIN | MS_ROLE_USER | MS_ROLE_WORKER;
    while (take(all, "anyone", "") == 0) {
    }
    ck_assert_uint_eq(n_held, places.nodes_max);
    ck_assert_int_eq(take(MS_ROLE_ADMIN, "admin:root", "root"), 0);
}
END_TEST

/* One worker's certificate held all 307 connections: nodes and users were shut out. */
START_TEST(one_certificate_has_a_share_and_other_nodes_and_users_get_in)
{
    enum { NODES = 10 };
    places_set_nodes(&places, NODES);
    while (take(MS_ROLE_WORKER, "worker:node7", "node7") == 0) {
    }
    ck_assert_uint_ge(n_held, 2 * NODES); /* all come again while the old ones seem to stand */
    ck_assert_uint_lt(n_held, 3 * NODES);
    ck_assert_int_eq(take(MS_ROLE_WORKER, "worker:node8", "node8"), 0);
    ck_assert_int_eq(take(MS_ROLE_USER, "user:alice", "alice"), 0);
    ck_assert_int_eq(take(MS_ROLE_WORKER, "worker:node7", "node7"), MS_E_FULL);
    ck_assert_ptr_nonnull(strstr(said, "worker:node7 holds 28 connections"));
    ck_assert_ptr_nonnull(strstr(said, "nodes_per_certificate"));
}
END_TEST

START_TEST(nodes_together_leave_room_for_users_and_are_named)
{
    places_set_nodes(&places, 0); /* no share, as in a dynamic cluster */
    ck_assert_int_eq(take(MS_ROLE_WORKER, "worker:node8", "node8"), 0);
    while (take(MS_ROLE_WORKER, "worker:node7", "node7") == 0) {
    }
    ck_assert_ptr_nonnull(strstr(said, "of them worker:node7"));
    for (size_t i = 0; i < places.user_max; i++) {
        ck_assert_int_eq(take(MS_ROLE_USER, "user:alice", "alice"), 0);
    }
    ck_assert_int_eq(take(MS_ROLE_ADMIN, "admin:root", "root"), 0);
}
END_TEST

START_TEST(a_small_limit_still_lets_each_class_in)
{
    places_fini(&places);
    places_init(&places, 3);
    ck_assert_int_eq(take(MS_ROLE_USER, "user:a", "a"), 0);
    ck_assert_int_eq(take(MS_ROLE_WORKER, "worker:w", "w"), 0);
    ck_assert_int_eq(take(MS_ROLE_ADMIN, "admin:root", "root"), 0);
    ck_assert_int_eq(take(MS_ROLE_ADMIN, "admin:root", "root"), MS_E_FULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("places");
    TCase *tcase = tcase_create("places");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, one_user_has_a_share_and_another_gets_in);
    tcase_add_test(tcase, users_together_leave_room_for_nodes_and_admins);
    tcase_add_test(tcase, room_for_large_frames_is_shared_too);
    tcase_add_test(tcase, an_admin_that_nobody_vouches_for_has_no_floor);
    tcase_add_test(tcase, one_certificate_has_a_share_and_other_nodes_and_users_get_in);
    tcase_add_test(tcase, nodes_together_leave_room_for_users_and_are_named);
    tcase_add_test(tcase, a_small_limit_still_lets_each_class_in);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
