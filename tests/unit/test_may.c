/* test_may.c - the table of who may do what: against the wire's senders, the docs, and by example
 */
#include "tests/test.h"

#include "daemon/sched/may.h"
#include "proto/macros.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_CLIENTS = MS_ROLE_WORKER | MS_ROLE_USER | MS_ROLE_ADMIN };

static struct ms_principal person(const char *uri)
{
    struct ms_principal who;
    ck_assert_msg(ms_principal_from_uri(uri, &who), "%s", uri);
    return who;
}

static struct ms_principal anyone(unsigned roles)
{
    struct ms_principal who;
    ms_principal_anyone(roles, &who);
    return who;
}

static struct ms_principal by_socket(unsigned uid, const char *name)
{
    struct ms_principal who;
    ms_principal_from_uid(uid, name, 990, MS_ROLE_WORKER, &who);
    return who;
}

START_TEST(the_wire_and_the_table_say_the_same_of_every_message_and_principal)
{
    const struct ms_principal all[] = {
        person("ms://worker/node7"),
        person("ms://user/alice"),
        person("ms://admin/boss"),
        person("ms://scheduler/head"),
        by_socket(0, "root"),
        by_socket(990, "msched"),
        by_socket(1000, "alice"),
        by_socket(1001, ""),
        anyone(0),
        anyone(MS_ROLE_WORKER),
        anyone(MS_ROLE_USER),
        anyone(MS_ROLE_WORKER | MS_ROLE_USER),
        anyone(ALL_CLIENTS),
    };
    for (size_t i = 0; ms_wire_at(i) != NULL; i++) {
        const struct ms_wire_type *type = ms_wire_at(i);
        enum may_action action = may_action_of(type->type);
        for (size_t k = 0; k < MS_ARRAY_SIZE(all); k++) {
            /* the connection takes the scheduler's role from whoever dialled it */
            int by_wire = (type->senders & all[k].roles & ~(unsigned)MS_ROLE_SCHEDULER) != 0;
            int by_table = may(&all[k], action, NULL);
            if (action == MAY_ANSWER) { /* nobody's; a node's chunk goes to a client, not to us */
                ck_assert_msg(!by_table, "%s by %s", type->name, all[k].id);
            } else {
                ck_assert_msg(by_wire == by_table, "%s by %s: wire %d, table %d", type->name,
                              all[k].id, by_wire, by_table);
            }
        }
        ck_assert_msg(action == MAY_ANSWER || (type->senders & ~(unsigned)MS_ROLE_SCHEDULER) != 0,
                      "%s: an action that the wire gives to nobody", type->name);
        ck_assert_msg(action != MAY_ANSWER || (type->senders & MS_ROLE_SCHEDULER) != 0,
                      "%s: a request without an action", type->name);
    }
}
END_TEST

START_TEST(a_job_is_its_owners_and_the_admins_to_cancel)
{
    static const struct {
        const char *owner;
        int alice, alices_socket, bob, boss, root, daemon, worker, anyone;
    } rows[] = {
        {"user:alice", 1, 1, 0, 1, 1, 1, 0, 0},
        {"user:bob", 0, 0, 1, 1, 1, 1, 0, 0},
        {"uid:1000", 0, 0, 0, 1, 1, 1, 0, 0},
        {"admin:root", 0, 0, 0, 1, 1, 1, 0, 0},
        {"worker:node7", 0, 0, 0, 1, 1, 1, 0, 0},
        {"anyone", 0, 0, 0, 1, 1, 1, 0, 1},
        {"", 0, 0, 0, 1, 1, 1, 0, 0},
    };
    struct ms_principal alice = person("ms://user/alice");
    struct ms_principal alices_socket = by_socket(1000, "alice");
    struct ms_principal bob = person("ms://user/bob");
    struct ms_principal boss = person("ms://admin/boss");
    struct ms_principal root = by_socket(0, "root");
    struct ms_principal daemon = by_socket(990, "msched");
    struct ms_principal worker = person("ms://worker/node7");
    struct ms_principal users = anyone(MS_ROLE_USER);
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        static const enum may_action actions[] = {MAY_CANCEL, MAY_FETCH};
        for (size_t k = 0; k < MS_ARRAY_SIZE(actions); k++) {
            const char *owner = rows[i].owner;
            ck_assert_int_eq(may(&alice, actions[k], owner), rows[i].alice);
            ck_assert_int_eq(may(&alices_socket, actions[k], owner), rows[i].alices_socket);
            ck_assert_int_eq(may(&bob, actions[k], owner), rows[i].bob);
            ck_assert_int_eq(may(&boss, actions[k], owner), rows[i].boss);
            ck_assert_int_eq(may(&root, actions[k], owner), rows[i].root);
            ck_assert_int_eq(may(&daemon, actions[k], owner), rows[i].daemon);
            ck_assert_int_eq(may(&worker, actions[k], owner), rows[i].worker);
            ck_assert_int_eq(may(&users, actions[k], owner), rows[i].anyone);
        }
    }
}
END_TEST

START_TEST(a_node_id_is_for_a_worker_and_its_holder)
{
    struct ms_principal node7 = person("ms://worker/node7");
    struct ms_principal alice = person("ms://user/alice");
    struct ms_principal root = by_socket(0, "root");

    ck_assert(may(&node7, MAY_REGISTER, ""));
    ck_assert(may(&node7, MAY_REGISTER, "worker:node7"));
    ck_assert(!may(&node7, MAY_REGISTER, "worker:node8"));
    ck_assert(!may(&node7, MAY_REGISTER, "admin:root"));
    ck_assert(may(&root, MAY_REGISTER, "admin:root"));
    ck_assert(!may(&root, MAY_REGISTER, "worker:node7"));
    ck_assert(!may(&alice, MAY_REGISTER, ""));
    ck_assert(!may(&node7, MAY_REPORT, ""));
    ck_assert(may(&node7, MAY_REPORT, "worker:node7"));
}
END_TEST

START_TEST(only_admins_leave_the_range_of_priorities)
{
    struct ms_principal alice = person("ms://user/alice");
    struct ms_principal boss = person("ms://admin/boss");
    struct ms_principal all = anyone(ALL_CLIENTS);
    struct ms_principal users = anyone(MS_ROLE_USER);
    ck_assert(!may(&alice, MAY_PRIORITY, ""));
    ck_assert(may(&boss, MAY_PRIORITY, ""));
    ck_assert(may(&all, MAY_PRIORITY, ""));
    ck_assert(!may(&users, MAY_PRIORITY, ""));
}
END_TEST

/* ---- docs/security.md ---------------------------------------------------------------------------
 */

static const char *cell(enum may_action action, unsigned role)
{
    for (size_t i = 0; may_at(i) != NULL; i++) {
        if (may_at(i)->action == action && (may_at(i)->role & role) != 0) {
            return may_at(i)->of == MAY_OF_ALL   ? "yes"
                   : may_at(i)->of == MAY_OF_OWN ? "own"
                                                 : "own or free";
        }
    }
    return "-";
}

START_TEST(the_table_in_the_docs_is_this_table)
{
    static char docs[64 << 10];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    char path[1024];
    snprintf(path, sizeof(path), "%s/docs/security.md", root != NULL ? root : ".");
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s", path);
    docs[fread(docs, 1, sizeof(docs) - 1, file)] = '\0';
    fclose(file);
    size_t rows = 0;
    for (int action = 0; action < MAY_ACTIONS; action++) {
        char line[256];
        const char *meaning = NULL;
        const char *name = may_action_name((enum may_action)action, &meaning);
        snprintf(line, sizeof(line), "| %s | %s | %s | %s | %s |\n", name, meaning,
                 cell((enum may_action)action, MS_ROLE_WORKER),
                 cell((enum may_action)action, MS_ROLE_USER),
                 cell((enum may_action)action, MS_ROLE_ADMIN));
        ck_assert_msg(strstr(docs, line) != NULL, "docs/security.md lacks: %s", line);
        rows++;
    }
    const char *table = strstr(docs, "| action | what | worker | user | admin |\n");
    ck_assert_ptr_nonnull(table);
    const char *end = strstr(table, "\n\n");
    ck_assert_ptr_nonnull(end);
    size_t lines = 0;
    for (; table < end; table++) {
        lines += *table == '\n';
    }
    ck_assert_uint_eq(lines, rows + 1); /* the head's and the rule's, without the last one's */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("may");
    TCase *tc = tcase_create("may");
    tcase_add_test(tc, the_wire_and_the_table_say_the_same_of_every_message_and_principal);
    tcase_add_test(tc, a_job_is_its_owners_and_the_admins_to_cancel);
    tcase_add_test(tc, a_node_id_is_for_a_worker_and_its_holder);
    tcase_add_test(tc, only_admins_leave_the_range_of_priorities);
    tcase_add_test(tc, the_table_in_the_docs_is_this_table);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
