/* test_cli_man.c - the manual names every command and every option */
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/summary.h"
#include "tests/test.h"

#include <ctype.h>

static char *page; /* msctl.1 with its macros' spacing undone: "Fl -run-dir" is "--run-dir" */

static void setup(void)
{
    char path[1024];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    ck_assert_ptr_nonnull(root);
    snprintf(path, sizeof(path), "%s/docs/man/msctl.1", root);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    size_t size = 0;
    ck_assert_int_gt(getdelim(&page, &size, '\0', file), 0);
    fclose(file);
}

static void teardown(void)
{
    free(page);
}

/* word as a word of its own, not as a part of a longer one. */
static int names(const char *word)
{
    size_t n = strlen(word);
    for (const char *p = page; (p = strstr(p, word)) != NULL; p++) {
        int before = p == page || !(isalnum((unsigned char)p[-1]) || strchr("_.", p[-1]) != NULL);
        int after = !(isalnum((unsigned char)p[n]) || strchr("_-", p[n]) != NULL);
        if (before && after) {
            return 1;
        }
    }
    return 0;
}

START_TEST(every_command_and_option_is_in_the_manual)
{
    for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
        ck_assert_msg(names(c->name), "command %s", c->name);
        for (const struct cli_option *o = c->options; o != NULL && o->name != NULL; o++) {
            char flag[64];
            snprintf(flag, sizeof(flag), "-%s", o->name);
            ck_assert_msg(names(flag), "msctl %s --%s", c->name, o->name);
        }
    }
}
END_TEST

START_TEST(a_word_that_is_not_there_is_noticed)
{
    ck_assert(!names("frobnicate"));
    ck_assert(!names("run-di"));
}
END_TEST

static void every_field_is_named(const char *what, json_t *object)
{
    const char *key;
    json_t *value;
    ck_assert_uint_gt(json_object_size(object), 0);
    json_object_foreach(object, key, value)
    {
        ck_assert_msg(names(key), "%s: field %s", what, key);
        if (json_is_array(value) && json_array_size(value) > 0) {
            every_field_is_named(key, json_incref(json_array_get(value, 0)));
        } else if (json_is_object(value) && json_object_size(value) > 0) {
            every_field_is_named(key, json_incref(value));
        }
    }
    json_decref(object);
}

START_TEST(every_field_of_the_json_is_in_the_manual)
{
    Ms__Progress progress = MS__PROGRESS__INIT, *evals[] = {&progress};
    Ms__RankInfo rank = MS__RANK_INFO__INIT, *ranks[] = {&rank};
    Ms__JobInfo job = MS__JOB_INFO__INIT;
    Ms__NodeInfo node = MS__NODE_INFO__INIT;
    Ms__EventInfo event = MS__EVENT_INFO__INIT;
    Ms__StatusInfo status = MS__STATUS_INFO__INIT;
    const struct cli_run_facts facts = {"/nonexistent", 1};
    job.progress = &progress;
    job.evals = evals;
    job.ranks = ranks;
    job.n_evals = job.n_ranks = 1;
    job.job_json = (ProtobufCBinaryData){2, (uint8_t *)"{}"};

    char *end = strstr(page, ".Sh EXIT STATUS");
    char *section = strstr(page, ".Sh JSON");
    ck_assert(end != NULL && section != NULL && section < end);
    *end = '\0';
    memmove(page, section, strlen(section) + 1);
    every_field_is_named("run", cli_summary_json(&job, "test", &facts));
    every_field_is_named("nodes", cli_json_node(&node));
    every_field_is_named("events", cli_json_event(&event));
    every_field_is_named("status", cli_json_status(&status));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_man");
    TCase *tc = tcase_create("man");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_command_and_option_is_in_the_manual);
    tcase_add_test(tc, every_field_of_the_json_is_in_the_manual);
    tcase_add_test(tc, a_word_that_is_not_there_is_noticed);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
