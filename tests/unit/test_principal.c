/* test_principal.c - one somebody, one text, however he came in */
#include "tests/test.h"

#include "proto/macros.h"
#include "proto/principal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

START_TEST(a_certificate_names_its_bearer_by_role_and_name)
{
    static const struct {
        const char *uri, *id;
        unsigned roles;
    } rows[] = {
        {"ms://worker/node7", "worker:node7", MS_ROLE_WORKER},
        {"ms://user/alice", "user:alice", MS_ROLE_USER},
        {"ms://admin/root@lab", "admin:root@lab", MS_ROLE_ADMIN},
        {"ms://scheduler/head", "scheduler:head", MS_ROLE_SCHEDULER},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        struct ms_principal who;
        ck_assert(ms_principal_from_uri(rows[i].uri, &who));
        ck_assert_str_eq(who.id, rows[i].id);
        ck_assert_uint_eq(who.roles, rows[i].roles);
        ck_assert(ms_principal_is_canonical(who.id));
    }
}
END_TEST

START_TEST(a_certificate_with_an_unclean_name_names_nobody)
{
    static const char *const uris[] = {
        "",
        "ms://",
        "ms:/",
        "http://user/alice",
        "ms://user",
        "ms://user/",
        "ms://users/alice",
        "ms://user/alice bob",
        "ms://user/al\nice",
        "ms://user/al\x1b[31mice",
        "ms://user/a:b",
        "ms://user/a/b",
        "ms://user/\xc3\xa4",
        ("ms://user/"
         "0123456789012345678901234567890123456789012345678901234567890123x"),
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(uris); i++) {
        struct ms_principal who = {.roles = 99};
        ck_assert_msg(!ms_principal_from_uri(uris[i], &who), "%s", uris[i]);
        ck_assert_uint_eq(who.roles, 99);
    }
}
END_TEST

START_TEST(a_socket_names_a_person_by_name_else_by_number)
{
    enum { DAEMON = 990 };
    static const struct {
        unsigned uid;
        const char *name, *id;
        unsigned roles;
    } rows[] = {
        {1000, "alice", "user:alice", MS_ROLE_USER},
        {1000, "", "uid:1000", MS_ROLE_USER},
        {1000, "LAB\\alice", "uid:1000", MS_ROLE_USER},
        {1000, "al\nice", "uid:1000", MS_ROLE_USER},
        {0, "root", "admin:root", MS_ROLE_ADMIN | MS_ROLE_WORKER},
        {0, "", "admin:root", MS_ROLE_ADMIN | MS_ROLE_WORKER},
        {DAEMON, "msched", "admin:msched", MS_ROLE_ADMIN | MS_ROLE_WORKER},
        {DAEMON, "", "admin:990", MS_ROLE_ADMIN | MS_ROLE_WORKER},
        {4294967294U, "", "uid:4294967294", MS_ROLE_USER},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        struct ms_principal who;
        ms_principal_from_uid(rows[i].uid, rows[i].name, DAEMON, MS_ROLE_WORKER, &who);
        ck_assert_str_eq(who.id, rows[i].id);
        ck_assert_uint_eq(who.roles, rows[i].roles);
        ck_assert(ms_principal_is_canonical(who.id));
    }
}
END_TEST

START_TEST(a_subordinate_uid_has_its_accounts_name_and_none_of_its_rights)
{
    enum { DAEMON = 100000 };
    static const struct {
        struct ms_account account;
        const char *id;
    } rows[] = {
        {{1000, "alice"}, "user:alice"},
        {{4242, ""}, "uid:4242"},
        {{DAEMON, ""}, "uid:100000"}, /* the first of a range that is also the daemon's */
        {{0, ""}, "uid:0"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        struct ms_principal who;
        ms_principal_from_account(100007, &rows[i].account, DAEMON, MS_ROLE_WORKER, &who);
        ck_assert_str_eq(who.id, rows[i].id);
        ck_assert_uint_eq(who.roles, MS_ROLE_USER);
    }
}
END_TEST

START_TEST(one_person_is_one_owner_by_socket_and_by_certificate)
{
    struct ms_principal socket;
    struct ms_principal certificate;

    ms_principal_from_uid(1000, "alice", 0, 0, &socket);
    ck_assert(ms_principal_from_certificate(MS_ROLE_USER, "alice", &certificate));

    ck_assert_str_eq(socket.id, certificate.id);
}
END_TEST

START_TEST(anyone_is_the_same_anyone_on_every_connection)
{
    struct ms_principal who;
    ms_principal_anyone(MS_ROLE_USER, &who);
    ck_assert_str_eq(who.id, "anyone");
    ck_assert_uint_eq(who.roles, MS_ROLE_USER);
    ck_assert(ms_principal_is_canonical("anyone"));
}
END_TEST

START_TEST(only_what_is_made_here_is_canonical)
{
    static const char *const others[] = {
        "",         "alice",  "uid 1000",        "uid:",     "uid:12a",     "user:",
        "user:a b", "Anyone", "uid:12345678901", "nobody:x", "127.0.0.1:42"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(others); i++) {
        ck_assert_msg(!ms_principal_is_canonical(others[i]), "%s", others[i]);
    }
}
END_TEST

START_TEST(owners_of_0_1_0_become_todays)
{
    static const struct {
        const char *before, *after;
    } rows[] = {
        {"alice", "user:alice"},
        {"uid 0", "admin:root"},
        {"uid 4000000001", "uid:4000000001"},
        {"127.0.0.1:4242", "anyone"},
        {"[::1]:4242", "anyone"},
        {"", "anyone"},
        {"unknown uid", "anyone"},
        {"anyone", "user:anyone"}, /* a person of that name, not whoever comes */
        {"user:alice", "anyone"},  /* 0.1.0 wrote no such text: nobody can prove to be that */
        {"uid:1000", "anyone"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        char now[MS_PRINCIPAL_MAX + 1];
        ms_principal_from_0_1(rows[i].before, now);
        ck_assert_str_eq(now, rows[i].after);
    }
    char before[32];
    char now[MS_PRINCIPAL_MAX + 1];
    snprintf(before, sizeof(before), "uid %u", (unsigned)geteuid());
    ms_principal_from_0_1(before, now); /* the daemon's own user is an admin */
    ck_assert_int_eq(strncmp(now, "admin:", 6), 0);
}
END_TEST

START_TEST(tables_show_names)
{
    ck_assert_str_eq(ms_principal_show("user:alice"), "alice");
    ck_assert_str_eq(ms_principal_show("admin:root"), "root");
    ck_assert_str_eq(ms_principal_show("uid:1000"), "uid:1000");
    ck_assert_str_eq(ms_principal_show("worker:node7"), "worker:node7");
    ck_assert_str_eq(ms_principal_show("anyone"), "anyone");
    ck_assert_str_eq(ms_principal_show(""), "");
}
END_TEST

START_TEST(the_longest_name_fits)
{
    char name[MS_NAME_MAX + 1];
    struct ms_principal who;
    memset(name, 'n', MS_NAME_MAX);
    name[MS_NAME_MAX] = '\0';
    ck_assert(ms_principal_from_certificate(MS_ROLE_SCHEDULER, name, &who));
    ck_assert_uint_eq(strlen(who.id), strlen("scheduler:") + MS_NAME_MAX);
    ck_assert(!ms_principal_from_certificate(MS_ROLE_USER | MS_ROLE_ADMIN, name, &who));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("principal");
    TCase *tc = tcase_create("principal");
    tcase_add_test(tc, a_certificate_names_its_bearer_by_role_and_name);
    tcase_add_test(tc, a_certificate_with_an_unclean_name_names_nobody);
    tcase_add_test(tc, a_socket_names_a_person_by_name_else_by_number);
    tcase_add_test(tc, a_subordinate_uid_has_its_accounts_name_and_none_of_its_rights);
    tcase_add_test(tc, one_person_is_one_owner_by_socket_and_by_certificate);
    tcase_add_test(tc, anyone_is_the_same_anyone_on_every_connection);
    tcase_add_test(tc, only_what_is_made_here_is_canonical);
    tcase_add_test(tc, owners_of_0_1_0_become_todays);
    tcase_add_test(tc, tables_show_names);
    tcase_add_test(tc, the_longest_name_fits);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
