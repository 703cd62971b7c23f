/* test_cli_host_label.c - which nodes stand together in a list, and under what name */
#include "cli/host_label.h"
#include "tests/test.h"

struct row {
    const char *host, *certificate, *node, *label; /* NULL: below the one before */
};

/* In the order in which they are to come out. */
static void check(const struct row *rows, size_t n)
{
    Ms__NodeInfo infos[8];
    Ms__NodeInfo *nodes[8];
    char label[CLI_HOST_LABEL_MAX];
    for (size_t i = 0; i < n; i++) {
        ms__node_info__init(&infos[i]);
        infos[i].host_name = (char *)rows[i].host;
        infos[i].cert_name = (char *)rows[i].certificate;
        infos[i].node_id = (char *)rows[i].node;
        nodes[n - 1 - i] = &infos[i];
    }

    cli_hosts_sort(nodes, n);

    for (size_t i = 0; i < n; i++) {
        const char *got = cli_host_label(nodes, n, i, label);
        ck_assert_str_eq(nodes[i]->node_id, rows[i].node);
        ck_assert_msg((got == NULL) == (rows[i].label == NULL), "row %zu", i);
        ck_assert(got == NULL || strcmp(got, rows[i].label) == 0);
    }
}

START_TEST(nodes_of_a_host_stand_below_its_name)
{
    static const struct row rows[] = {{"lion", "lion", "lion-0", "lion"},
                                      {"lion", "lion", "lion-2", NULL},
                                      {"lion", "lion", "lion-10", NULL},
                                      {"tiger", "", "w1", "tiger"},
                                      {"tiger", "", "w2", NULL}};
    check(rows, MS_ARRAY_SIZE(rows));
}
END_TEST

START_TEST(nobody_stands_below_the_host_of_another_certificate)
{
    static const struct row rows[] = {{"vm", "good", "good-0", "vm (good)"},
                                      {"vm", "good", "good-1", NULL},
                                      {"vm", "mal", "mal:0", "vm (mal)"}};
    check(rows, MS_ARRAY_SIZE(rows));
}
END_TEST

START_TEST(who_was_not_heard_of_since_a_restart_makes_nothing_ambiguous)
{
    static const struct row rows[] = {{"vm", "", "good-1", "vm"}, {"vm", "good", "good-0", NULL}};
    check(rows, MS_ARRAY_SIZE(rows));
    static const struct row more[] = {{"vm", "", "good-1", "vm"},
                                      {"vm", "good", "good-0", "vm (good)"},
                                      {"vm", "mal", "mal-0", "vm (mal)"}};
    check(more, MS_ARRAY_SIZE(more));
}
END_TEST

START_TEST(cores_are_the_hosts_where_all_its_nodes_have_them)
{
    static const struct {
        const char *host;
        uint32_t cores, physical;
        int is_even;
    } rows[] = {{"lion", 2, 0, 1},  {"puma", 4, 2, 0},  {"puma", 4, 4, 0}, {"puma", 4, 2, 0},
                {"tiger", 1, 0, 0}, {"tiger", 2, 0, 0}, {"wolf", 2, 0, 1}, {"wolf", 2, 0, 1},
                {"wren", 2, 0, 1},  {"wren", 0, 0, 1},  {"yak", 0, 0, 0},  {"yak", 2, 0, 0}};
    Ms__NodeInfo infos[MS_ARRAY_SIZE(rows)];
    Ms__NodeInfo *nodes[MS_ARRAY_SIZE(rows)];
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        ms__node_info__init(&infos[i]);
        infos[i].host_name = (char *)rows[i].host;
        infos[i].cores = rows[i].cores;
        infos[i].physical = rows[i].physical;
        nodes[i] = &infos[i];
    }

    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        ck_assert_msg(cli_host_is_even(nodes, MS_ARRAY_SIZE(rows), i) == rows[i].is_even, "row %zu",
                      i);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_host_label");
    TCase *tc = tcase_create("host_label");
    tcase_add_test(tc, nodes_of_a_host_stand_below_its_name);
    tcase_add_test(tc, nobody_stands_below_the_host_of_another_certificate);
    tcase_add_test(tc, who_was_not_heard_of_since_a_restart_makes_nothing_ambiguous);
    tcase_add_test(tc, cores_are_the_hosts_where_all_its_nodes_have_them);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
