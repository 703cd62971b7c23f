/* test_cli_man.c - the manual names every command and every option */
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/summary.h"
#include "tests/test.h"

#include <ctype.h>
#include <glob.h>

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
        if (json_is_object(json_array_get(value, 0))) {
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
    const struct cli_run_facts facts = {.run_dir = "/nonexistent", .seconds = 1};
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
    every_field_is_named("run", cli_summary_json(&job, "test", NULL, &facts));
    every_field_is_named("nodes", cli_json_node(&node));
    every_field_is_named("events", cli_json_event(&event));
    every_field_is_named("status", cli_json_status(&status));
}
END_TEST

/* ---- what commands print that need no scheduler ---- */

/* Cuts the page to its section JSON, and that to the items that begin so ("Cm certs crl"). */
static void cut_to(const char *begin)
{
    char *items = (char *)calloc(1, strlen(page) + 1);
    int is_in = 0;
    char *rest = strstr(page, ".Sh JSON");
    *strstr(page, ".Sh EXIT STATUS") = '\0';
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        if (strncmp(line, ".It Cm ", 7) == 0) { /* its own list is part of it */
            is_in = strstr(line, begin) != NULL;
        }
        if (is_in) {
            strcat(strcat(items, line), "\n");
        }
    }
    ck_assert_msg(items[0] != '\0', "no item %s", begin);
    free(page);
    page = items;
}

enum { WORDS_MAX = 16 };

/* What `msctl --json LINE` prints; *ret_rc: how it ends. */
static json_t *print(char *line, int *ret_rc)
{
    char *words[WORDS_MAX];
    static struct cli_args args;
    struct ms_err err = {0, ""};
    char *text = NULL;
    size_t size = 0;
    int n = 0;
    struct cli cli = {.out = open_memstream(&text, &size), .err = stderr, .json = 1};
    for (char *word = strsep(&line, " "); word != NULL; word = strsep(&line, " ")) {
        words[n++] = word;
    }
    const struct cli_command *command = cli_command_find(words[0]);
    ck_assert_ptr_nonnull(command);
    const struct cli_option *const tables[] = {command->options, cli_common_options};
    memset(&args, 0, sizeof(args));
    args.command = words[0];
    ck_assert_int_eq(cli_options_parse(tables, 2, n - 1, words + 1, 0, NULL, &args, &err), 0);
    *ret_rc = command->run(&cli, &args, &err);
    fclose(cli.out);
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_msg(json != NULL, "%s: %s %s", words[0], err.text, text);
    free(text);
    return json;
}

/* The folder of the test stands for each %. */
static const struct {
    const char *before, *line, *item;
} printed[] = {
    {NULL, "certs init %/two", "Cm certs init"},
    {NULL, "certs issue user u -d %/ca -o %/u.p12", "certs issue"},
    {"certs issue user u -d %/ca -o %/u.p12", "certs renew u -d %/ca -o %/v.p12", "certs issue"},
    {"certs issue user u -d %/ca -o %/u.p12", "certs show %/u.p12", "Cm certs show"},
    {"certs issue user u -d %/ca -o %/u.p12", "certs install %/u.p12 --to %/tls",
     "Cm certs install No (of a certificate)"},
    {"certs issue user u -d %/ca -o %/u.p12", "certs revoke u -d %/ca", "Cm certs crl"},
    {NULL, "certs crl -d %/ca", "Cm certs crl"},
    {"certs crl -d %/ca", "certs install %/ca/crl.pem --to %/ca", "Cm certs install No (of a list"},
    {NULL, "dataset shapes %/d --train 20 --test 10", "Cm dataset"},
    {NULL, "show --network %/job.yaml", "Cm show Fl -network"},
    {NULL, "help certs", "Cm help"},
    {NULL, "help", "Cm help"},
};

static char *with_folder(const char *line, const char *dir, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (; *line != '\0' && used + strlen(dir) + 2 < size; line++) {
        used += (size_t)snprintf(buf + used, size - used, "%.*s", *line == '%' ? 99 : 1,
                                 *line == '%' ? dir : line);
    }
    return buf;
}

static void write_job(const char *dir)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/job.yaml", dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1}\n",
          file);
    fclose(file);
}

START_TEST(every_field_that_a_command_prints_is_in_its_item)
{
    char line[512];
    const char *dir = test_dir_make();
    int rc = 0;
    write_job(dir);
    json_decref(print(with_folder("certs init %/ca", dir, line, sizeof(line)), &rc));
    ck_assert_int_eq(rc, 0);
    if (printed[_i].before != NULL) {
        json_decref(print(with_folder(printed[_i].before, dir, line, sizeof(line)), &rc));
        ck_assert_int_eq(rc, 0);
    }
    json_t *object = print(with_folder(printed[_i].line, dir, line, sizeof(line)), &rc);
    ck_assert_int_eq(rc, 0);
    cut_to(printed[_i].item);
    every_field_is_named(printed[_i].line, object);
    test_dir_remove(dir);
}
END_TEST

/* Each key that the scheduler writes is a literal behind the name of one of these. */
static void facts_of(const char *source, int *n)
{
    static const char *const writers[] = {"facts_number(", "facts_text(",     "facts_flag(",
                                          "facts_list(",   "facts_list_end(", "event_number("};
    for (size_t i = 0; i < MS_ARRAY_SIZE(writers); i++) {
        for (const char *at = strstr(source, writers[i]); at != NULL;
             at = strstr(at + 1, writers[i])) {
            const char *key = at + strcspn(at, "\";{");
            char word[32];
            if (*key == '"') { /* else it is declared there */
                snprintf(word, sizeof(word), "%.*s", (int)strcspn(key + 1, "\""), key + 1);
                ck_assert_msg(names(word), "fact %s", word);
                (*n)++;
            }
        }
    }
}

START_TEST(every_fact_of_an_event_is_in_the_manual)
{
    char path[1024];
    char *source = NULL;
    size_t size = 0;
    glob_t files;
    int n = 0;
    cut_to("Cm events No");
    snprintf(path, sizeof(path), "%s/daemon/sched/*.c", getenv("MSCHED_SOURCE_ROOT"));
    ck_assert_int_eq(glob(path, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *file = fopen(files.gl_pathv[i], "r");
        ck_assert_int_gt(getdelim(&source, &size, '\0', file), 0);
        fclose(file);
        facts_of(source, &n);
    }
    ck_assert_int_gt(n, 30);
    free(source);
    globfree(&files);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_man");
    TCase *tc = tcase_create("man");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_command_and_option_is_in_the_manual);
    tcase_add_test(tc, every_field_of_the_json_is_in_the_manual);
    tcase_add_loop_test(tc, every_field_that_a_command_prints_is_in_its_item, 0,
                        (int)MS_ARRAY_SIZE(printed));
    tcase_add_test(tc, every_fact_of_an_event_is_in_the_manual);
    tcase_add_test(tc, a_word_that_is_not_there_is_noticed);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
