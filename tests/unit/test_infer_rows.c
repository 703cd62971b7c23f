/* test_infer_rows.c - predictions as text: each format, each kind of answer */
#include "libworker/infer/rows.h"
#include "tests/test.h"

#include <math.h>

static const char *const names[] = {"cat", "a \"b\", c", "d\\e"};

static const struct {
    const char *what;
    struct rows_format format;
    float values[3];
    const char *want;
} cases[] = {
    {"probabilities",
     {.scale = ROWS_SOFTMAX, .columns = 3},
     {0, 0, 0},
     "sample,label,predicted,p0,p1,p2\n7,1,0,0.333333333,0.333333333,0.333333333\n"},
    {"names in quotes where they need them",
     {.scale = ROWS_SOFTMAX, .columns = 3, .names = names},
     {-100, 0, -100},
     "sample,label,predicted,cat,\"a \"\"b\"\", c\",d\\e\n"
     "7,\"a \"\"b\"\", c\",\"a \"\"b\"\", c\",3.72007598e-44,1,3.72007598e-44\n"},
    {"the largest first, of equal ones the first",
     {.scale = ROWS_SOFTMAX, .columns = 3, .kind = ROWS_TOP, .top = 2},
     {0, 1, 1},
     "sample,label,class_1,p_1,class_2,p_2\n7,1,1,0.422318798,2,0.422318798\n"},
    {"as JSON",
     {.scale = ROWS_SOFTMAX,
      .columns = 3,
      .kind = ROWS_TOP,
      .top = 1,
      .is_json = 1,
      .names = names},
     {0, 0, 100},
     "{\"sample\":7,\"label\":\"a \\\"b\\\", c\",\"top\":[{\"class\":\"d\\\\e\",\"p\":1}]}\n"},
    {"all of them as JSON",
     {.scale = ROWS_SOFTMAX, .columns = 2, .is_json = 1},
     {0, 0},
     "{\"sample\":7,\"label\":1,\"predicted\":0,\"probabilities\":[0.5,0.5]}\n"},
    {"raw",
     {.scale = ROWS_SOFTMAX, .columns = 2, .kind = ROWS_RAW},
     {-1, 0.1F},
     "sample,label,v0,v1\n7,1,-1,0.100000001\n"},
    {"what is no number is none in JSON",
     {.scale = ROWS_SOFTMAX, .columns = 2, .kind = ROWS_RAW, .is_json = 1},
     {NAN, INFINITY},
     "{\"sample\":7,\"label\":1,\"raw\":[null,null]}\n"},
    {"labels of the data's own",
     {.scale = ROWS_SOFTMAX, .columns = 2, .kind = ROWS_TOP, .top = 1, .labels = names},
     {0, 1},
     "sample,label,class_1,p_1\n7,\"a \"\"b\"\", c\",1,0.731058579\n"},
    {"no labels",
     {.scale = ROWS_SOFTMAX, .columns = 2, .is_json = 1, .has_no_labels = 1},
     {0, 0},
     "{\"sample\":7,\"predicted\":0,\"probabilities\":[0.5,0.5]}\n"},
    {"files and tokens",
     {.scale = ROWS_SOFTMAX, .columns = 2, .kind = ROWS_RAW, .has_files = 1, .has_tokens = 1},
     {1, 2},
     "sample,file,token,label,v0,v1\n7,\"x,y.png\",3,1,1,2\n"},
    {"columns by themselves",
     {.scale = ROWS_SIGMOID, .columns = 2},
     {0, 100},
     "sample,p0,p1\n7,0.5,1\n"},
    {"what is no number has no sign",
     {.scale = ROWS_PLAIN, .columns = 2},
     {-NAN, -INFINITY},
     "sample,v0,v1\n7,nan,-inf\n"},
    {"numbers are their own answer",
     {.scale = ROWS_PLAIN, .columns = 2, .is_json = 1},
     {1.5F, -2},
     "{\"sample\":7,\"raw\":[1.5,-2]}\n"},
};

START_TEST(an_answer_is_a_line)
{
    const struct rows_one one = {
        .sample = 7, .token = 3, .file = "x,y.png", .label = 1, .values = cases[_i].values};
    struct rows *rows = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    ck_ms_ok(rows_open(&cases[_i].format, out, &rows, err));
    rows_put(rows, &one);

    rows_close(rows);
    fclose(out);
    ck_assert_msg(strcmp(text, cases[_i].want) == 0, "%s: %s", cases[_i].what, text);
    free(text);
}
END_TEST

START_TEST(classes_that_are_not_there_are_refused)
{
    const struct rows_format many = {
        .scale = ROWS_SOFTMAX, .columns = 3, .kind = ROWS_TOP, .top = 4};
    const struct rows_format numbers = {
        .scale = ROWS_PLAIN, .columns = 3, .kind = ROWS_TOP, .top = 1};
    struct rows *rows = NULL;
    ck_ms_fails(rows_open(&many, stderr, &rows, err), MS_E_INVALID,
                "--top 4: the network has 3 classes");
    ck_ms_fails(rows_open(&numbers, stderr, &rows, err), MS_E_INVALID,
                "--top: this job's network answers with numbers, not with classes");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer_rows");
    TCase *tc = test_case_create("infer_rows");
    tcase_add_loop_test(tc, an_answer_is_a_line, 0, MS_ARRAY_SIZE(cases));
    tcase_add_test(tc, classes_that_are_not_there_are_refused);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
