/* test_cli_man.c - the manual names every command and every option */
#include "cli/cli.h"
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

int main(void)
{
    Suite *suite = suite_create("cli_man");
    TCase *tc = tcase_create("man");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_command_and_option_is_in_the_manual);
    tcase_add_test(tc, a_word_that_is_not_there_is_noticed);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
