/* test_cli_eval_table.c - what an evaluation counted, as lines of the summary */
#include "cli/eval_table.h"
#include "tests/test.h"

#include <math.h>

static char *text_with(const char *json, const char *names)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    json_t *line = json != NULL ? json_loads(json, 0, NULL) : NULL;
    ck_assert(json == NULL || line != NULL);
    eval_table_print(out, line, names);
    json_decref(line);
    fclose(out);
    return text;
}

static char *text_of(const char *json)
{
    return text_with(json, "");
}

static const struct {
    const char *json, *want;
} rows[] = {
    {NULL, ""},
    {"{\"epoch\":1,\"eval_loss\":0.5,\"accuracy\":0.25}", ""},
    {"{\"top5\":0.875,\"perplexity\":9.5,\"mae\":0.125}",
     "  top-5       87.50 %\n  perplexity  9.5\n  mae         0.125\n"},
    {"{\"precision\":[0.5,null],\"recall\":[1,0.25]}",
     "  classes              precision       recall\n"
     "                  0      50.00 %     100.00 %\n"
     "                  1            -      25.00 %\n"
     "               mean      50.00 %      62.50 %\n"},
    {"{\"confusion\":[[3,1],[0,12]]}",
     "  confusion   rows of a class (lines) by the predicted one (columns)\n"
     "                          0       1\n"
     "                  0       3       1\n"
     "                  1       0      12\n"},
    /* what nobody of ours wrote */
    {"{\"top5\":\"x\",\"precision\":[1],\"recall\":[1,1],\"confusion\":7}", ""},
    {"[1]", ""},
};

START_TEST(what_was_counted_is_a_table)
{
    char *text = text_of(rows[_i].json);
    ck_assert_str_eq(text, rows[_i].want);
    free(text);
}
END_TEST

static const struct {
    const char *names, *json, *want;
} named[] = {
    {"cat\nd\xC3\xB6g",
     "{\"precision\":[0.5,null],\"recall\":[1,0.25],\"confusion\":[[3,1],[0,12]]}",
     "  classes                   precision       recall\n"
     "                  0  cat      50.00 %     100.00 %\n"
     "                  1  d\xC3\xB6g            -      25.00 %\n"
     "               mean           50.00 %      62.50 %\n"
     "  confusion   rows of a class (lines) by the predicted one (columns)\n"
     "                               0       1\n"
     "                  0  cat       3       1\n"
     "                  1  d\xC3\xB6g       0      12\n"},
    /* a network may have more classes than the data; and names are as long as their owners like */
    {"a rather long name of a class", "{\"precision\":[0.5,1],\"recall\":[1,0.25]}",
     "  classes                                    precision       recall\n"
     "                  0  a rather long nam...      50.00 %     100.00 %\n"
     "                  1                           100.00 %      25.00 %\n"
     "               mean                            75.00 %      62.50 %\n"},
};

START_TEST(classes_have_their_names)
{
    char *text = text_with(named[_i].json, named[_i].names);
    ck_assert_str_eq(text, named[_i].want);
    free(text);
}
END_TEST

/* Of few classes a confusion has no more columns than a screen, however long names are. */
START_TEST(names_leave_the_table_whole)
{
    for (size_t n = 2; n <= 6; n++) {
        char json[1024] = "{\"confusion\":[";
        for (size_t i = 0; i < n; i++) {
            size_t used = strlen(json);
            used += (size_t)snprintf(json + used, sizeof(json) - used, "%s[0", i > 0 ? "," : "");
            for (size_t k = 1; k < n; k++) {
                used += (size_t)snprintf(json + used, sizeof(json) - used, ",7");
            }
            snprintf(json + used, sizeof(json) - used, "]%s", i + 1 == n ? "]}" : "");
        }
        char *text = text_with(json, "a rather long name of a class\nanother one that is long");
        for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
            ck_assert_int_le(strchr(line, '\n') - line, 80);
        }
        ck_assert_ptr_nonnull(strstr(text, "...       0       7"));
        free(text);
    }
}
END_TEST

START_TEST(what_has_no_accuracy_says_none)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    eval_table_print_loss(out, 0.5, 0.25, "the test set of x");
    eval_table_print_loss(out, 0.5, (double)NAN, "the test set of x");
    fclose(out);
    ck_assert_str_eq(text, "  accuracy    25.00 % on the test set of x, loss 0.5000\n"
                           "  evaluation  loss 0.5000 on the test set of x\n");
    free(text);
}
END_TEST

START_TEST(of_many_classes_the_means_are_left)
{
    char json[1024] = "{\"precision\":[";
    for (int list = 0; list < 2; list++) {
        for (int i = 0; i < 21; i++) {
            snprintf(json + strlen(json), sizeof(json) - strlen(json), "%s0.%d", i > 0 ? "," : "",
                     i % 2 == list ? 5 : 4);
        }
        snprintf(json + strlen(json), sizeof(json) - strlen(json), "%s",
                 list == 0 ? "],\"recall\":[" : "]}");
    }
    char *text = text_of(json);
    ck_assert_str_eq(text, "  classes              precision       recall\n"
                           "               mean      45.24 %      44.76 %\n"
                           "              of 21 classes: metrics.jsonl has each\n");
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_eval_table");
    TCase *tc = tcase_create("cli_eval_table");
    tcase_add_loop_test(tc, what_was_counted_is_a_table, 0, (int)MS_ARRAY_SIZE(rows));
    tcase_add_loop_test(tc, classes_have_their_names, 0, (int)MS_ARRAY_SIZE(named));
    tcase_add_test(tc, names_leave_the_table_whole);
    tcase_add_test(tc, what_has_no_accuracy_says_none);
    tcase_add_test(tc, of_many_classes_the_means_are_left);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
