/* test_cli_node_words.c - what a node does, and what is wrong with it */
#include "cli/format.h"
#include "cli/json.h"
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

static void check_seen(const char *state, uint64_t last_seen_ms, const char *want)
{
    char text[CLI_FORMAT_MAX];
    Ms__NodeInfo node;
    ms__node_info__init(&node);
    node.state = (char *)state;
    node.last_seen_ms = last_seen_ms;
    ck_assert_str_eq(cli_node_seen(text, &node), want);
    json_t *json = cli_json_node(&node);
    const json_t *seen = json_object_get(json, "last_seen_ms");
    if (want[0] == '\0') {
        ck_assert(json_is_null(seen));
    } else {
        ck_assert_int_eq(json_integer_value(seen), (json_int_t)last_seen_ms);
        ck_assert(json_is_integer(seen));
    }
    json_decref(json);
}

START_TEST(one_that_the_scheduler_has_not_heard_of_was_not_seen_just_now)
{
    check_seen("NEW", 0, "");
    check_seen("LOST", 0, "");         /* nor since the restart until it was given up */
    check_seen("NEW", 1500, "1.50 s"); /* expected back: the scheduler stood still */
    check_seen("LOST", 1500, "1.50 s");
    check_seen("REGISTERED", 0, "0.00 s");
    check_seen("LEFT", 0, "0.00 s");
}
END_TEST

/* Its database has where it was, and nothing of what it is. */
START_TEST(numbers_of_a_node_that_are_not_known_are_null)
{
    static const char *const keys[] = {"cores", "physical_cores", "memory_bytes", "pid"};
    Ms__NodeInfo node;
    ms__node_info__init(&node);
    json_t *json = cli_json_node(&node);
    for (size_t i = 0; i < MS_ARRAY_SIZE(keys); i++) {
        ck_assert_msg(json_is_null(json_object_get(json, keys[i])), "%s", keys[i]);
    }
    json_decref(json);
    node.cores = node.physical = 4;
    node.memory_bytes = 1024;
    node.pid = 4711;
    json = cli_json_node(&node);
    for (size_t i = 0; i < MS_ARRAY_SIZE(keys); i++) {
        ck_assert_msg(json_is_integer(json_object_get(json, keys[i])), "%s", keys[i]);
    }
    json_decref(json);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_node_words");
    TCase *tc = tcase_create("words");
    tcase_add_test(tc, a_node_says_what_it_does);
    tcase_add_test(tc, one_that_is_gone_says_why);
    tcase_add_test(tc, one_that_is_there_says_what_is_wrong_with_it_too);
    tcase_add_test(tc, one_that_the_scheduler_has_not_heard_of_was_not_seen_just_now);
    tcase_add_test(tc, numbers_of_a_node_that_are_not_known_are_null);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
