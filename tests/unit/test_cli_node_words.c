/* test_cli_node_words.c - what a node does, and what is wrong with it */
#include "cli/node_words.h"
#include "tests/test.h"

static void check(const char *activity, const char *reason, const char *want)
{
    char text[CLI_NODE_WORDS_MAX];
    Ms__NodeInfo node;
    ms__node_info__init(&node);
    node.activity = (char *)activity;
    node.reason = (char *)reason;
    ck_assert_str_eq(cli_node_words(text, sizeof(text), &node), want);
}

START_TEST(a_node_says_what_it_does)
{
    check("idle", "", "idle");
    check("job 3 rank 1", "", "job 3 rank 1");
}
END_TEST

START_TEST(one_that_is_gone_says_why)
{
    check("", "lease expired", "lease expired");
}
END_TEST

START_TEST(one_that_is_there_says_what_is_wrong_with_it_too)
{
    check("idle", "set aside: two ranks were lost here", "set aside: two ranks were lost here");
    check("job 3 rank 1", "set aside: two ranks were lost here",
          "job 3 rank 1; set aside: two ranks were lost here");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_node_words");
    TCase *tc = tcase_create("words");
    tcase_add_test(tc, a_node_says_what_it_does);
    tcase_add_test(tc, one_that_is_gone_says_why);
    tcase_add_test(tc, one_that_is_there_says_what_is_wrong_with_it_too);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
