/* test_who.c - the operator's words on who is who and who may what */
#include "daemon/who.h"
#include "proto/macros.h"
#include "proto/wire.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

START_TEST(roles_of_anyone_are_words)
{
    static const struct {
        const char *text;
        int want; /* -1: refused */
    } rows[] = {
        {"worker user admin", MS_ROLE_WORKER | MS_ROLE_USER | MS_ROLE_ADMIN},
        {"user", MS_ROLE_USER},
        {"worker,user", MS_ROLE_WORKER | MS_ROLE_USER},
        {" none ", 0},
        {"", -1},
        {"none user", -1},
        {"scheduler", -1},
        {"Worker", -1},
        {"worker user and more", -1},
        {"workerworkerworkerworker", -1},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        unsigned roles = 99;
        if (rows[i].want >= 0) {
            ck_ms_ok(who_parse_roles(rows[i].text, &roles, err));
            ck_assert_uint_eq(roles, (unsigned)rows[i].want);
        } else {
            ck_ms_fails(who_parse_roles(rows[i].text, &roles, err), MS_E_CONFIG, "anyone = ");
            ck_assert_uint_eq(roles, 99);
        }
    }
}
END_TEST

START_TEST(a_map_gives_names_to_uids)
{
    struct who_map map;
    ck_ms_ok(who_parse_map("alice=1000, bob=1001 alice=2000", &map, err));
    ck_assert_str_eq(who_map_find(&map, 1000), "alice");
    ck_assert_str_eq(who_map_find(&map, 2000), "alice");
    ck_assert_str_eq(who_map_find(&map, 1001), "bob");
    ck_assert_ptr_null(who_map_find(&map, 0));
    ck_ms_ok(who_parse_map("", &map, err));
    ck_assert_uint_eq(map.n, 0);
}
END_TEST

START_TEST(a_map_that_is_no_map_is_refused)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"alice", "write NAME=UID"},
        {"=1000", "the name ''"},
        {"al:ice=1000", "the name 'al:ice'"},
        {"alice=", "no number"},
        {"alice=x", "no number"},
        {"alice=-1", "no number"},
        {"alice=4294967295", "no number"},
        {"alice=1000 bob=1000", "to alice and to bob"},
        {"0123456789012345678901234567890123456789012345678901234567890123456789012345678901=1",
         "too long"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        struct who_map map;
        ck_ms_fails(who_parse_map(rows[i].text, &map, err), MS_E_CONFIG, rows[i].part);
    }
    static char many[WHO_MAP_MAX * 16];
    size_t used = 0;
    for (int i = 0; i <= WHO_MAP_MAX; i++) {
        used += (size_t)snprintf(many + used, sizeof(many) - used, "u%d=%d ", i, i);
    }
    struct who_map map;
    ck_ms_fails(who_parse_map(many, &map, err), MS_E_CONFIG, "more than 256 people");
}
END_TEST

START_TEST(a_range_of_priorities_lies_within_the_files)
{
    static const char *const wrong[] = {"",        "5",    "5..",   "..5",   "5..4",  "-1001..0",
                                        "0..1001", "a..b", "0..1 ", "0...1", "1e3..2"};
    int32_t min = 7;
    int32_t max = 7;
    for (size_t i = 0; i < MS_ARRAY_SIZE(wrong); i++) {
        ck_ms_fails(who_parse_range(wrong[i], &min, &max, err), MS_E_CONFIG,
                    "LOW..HIGH within -1000..1000");
    }
    ck_assert_int_eq(min, 7);
    ck_ms_ok(who_parse_range("-1000..1000", &min, &max, err));
    ck_assert_int_eq(min, -1000);
    ck_assert_int_eq(max, 1000);
    ck_ms_ok(who_parse_range("0..0", &min, &max, err));
    ck_assert_int_eq(max, 0);
}
END_TEST
int main(void)
{
    Suite *suite = suite_create("who");
    TCase *tc = tcase_create("who");
    tcase_add_test(tc, roles_of_anyone_are_words);
    tcase_add_test(tc, a_map_gives_names_to_uids);
    tcase_add_test(tc, a_map_that_is_no_map_is_refused);
    tcase_add_test(tc, a_range_of_priorities_lies_within_the_files);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
