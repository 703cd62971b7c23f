/* test_msw_locale.c - the public library in a program whose locale has commas where numbers have
 * their points */
#include "libworker/msworker.h"

#include "tests/test.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

static const char *dir; /* holds the locale, and what the cases write */
static int has_comma;   /* there is such a locale */

/* ---- a locale that no machine has to have ---- */

/* Borrowed for three calls more. */
static const char *path_of(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

/* Likewise. */
static const char *make_folder(const char *name)
{
    const char *path = path_of(name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    return path;
}

static void put_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* All else of it is that of "C", which localedef calls a warning, and an exit status of 1. */
static int make_comma(void)
{
    put_file("ascii", "<code_set_name> ANSI_X3.4-1968\nCHARMAP\n<U0000>..<U007F> \\x00\n"
                      "END CHARMAP\n");
    put_file("source", "LC_NUMERIC\ndecimal_point \"<U002C>\"\nthousands_sep \"<U002E>\"\n"
                       "grouping 3;3\nEND LC_NUMERIC\n");
    const char *const argv[] = {
        "localedef",      "--quiet",        "-c", "-i", path_of("source"), "-f",
        path_of("ascii"), path_of("comma"), NULL};
    pid_t pid = 0;
    int status = 0;
    posix_spawn_file_actions_t no_words;
    posix_spawn_file_actions_init(&no_words);
    posix_spawn_file_actions_addopen(&no_words, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int rc = posix_spawnp(&pid, "localedef", &no_words, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&no_words);
    if (rc == ENOENT) {
        return 0;
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    setenv("LOCPATH", dir, 1);
    return 1;
}

static void setup(void)
{
    dir = test_dir_make();
    has_comma = make_comma();
    if (!has_comma) {
        printf("skip: there is no localedef to make a locale\n");
    }
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static const char *printed(double number)
{
    static char text[32];
    snprintf(text, sizeof(text), "%.1f", number);
    return text;
}

/* As programs do with "", which takes what the user has. */
static void become_comma(void)
{
    ck_assert_ptr_nonnull(setlocale(LC_ALL, "comma"));
    ck_assert_str_eq(printed(0.5), "0,5");
}

/* ---- jobs ---- */

static const char rest[] = "batch_size: 4\nepochs: 3\nthreads: 1\nbest: {}\n"
                           "checkpoint: {every_epochs: 1, prefix: c}\n"
                           "optimizer: {kind: momentum, learning_rate: 1e-2, momentum: 0.75}\n";

static struct msw_job *parse_table(void)
{
    char text[1024];
    struct msw_job *job = NULL;
    struct msw_error error;
    put_file("table.csv", "a,b,y\n0.5,1.25,1.5\n-0.5,2e-1,.5\n1.5,3.25,2.5\n0.25,1,0.1\n"
                          "0.75,-1.25,-1.5\n1.5,2.5,3.5\n-2.25,0.5,-0.5\n0.125,0.25,0.375\n");
    snprintf(
        text, sizeof(text),
        "network: [flatten, {dense: {out: 6}}, {leaky_relu: {slope: 0.125}}, {dense: {out: 1}}]\n"
        "loss: mse\ndataset: {kind: csv, path: table.csv, header: true, target: y, "
        "target_kind: number, split: {test: 0.25, seed: 1}}\n"
        "evaluate: {dataset: {kind: csv, path: table.csv}}\n%s",
        rest);
    ck_assert_msg(msw_job_parse(text, dir, &job, &error) == MSW_OK, "%s", error.text);
    return job;
}

struct seen {
    char in_read[8], in_progress[8]; /* how 0.5 is printed there */
    int reads, steps;
};

static int read_point(void *arg, struct msw_record *record)
{
    struct seen *seen = arg;
    seen->reads++;
    snprintf(seen->in_read, sizeof(seen->in_read), "%s", printed(0.5));
    record->values[0] = (float)(record->row % 5) / 5;
    record->values[1] = (float)(record->row % 3) / 3;
    record->label = (int32_t)(record->row % 2);
    return 0;
}

static int note_progress(void *arg, const struct msw_progress *progress)
{
    struct seen *seen = arg;
    seen->steps += !progress->has_eval;
    snprintf(seen->in_progress, sizeof(seen->in_progress), "%s", printed(0.5));
    return 0;
}

static struct msw_job *make_points(struct seen *seen)
{
    const struct msw_data data = {
        .rows = 16, .shape = {2}, .classes = 2, .read = read_point, .arg = seen};
    struct msw_net *net = msw_net_create();
    struct msw_job *job = NULL;
    struct msw_error error;
    int x = msw_dense(net, msw_flatten(net, MSW_INPUT, NULL), 4, "weight: {normal: 0.25}");
    msw_dense(net, msw_dropout(net, x, "rate: 0.125"), MSW_CLASSES, "name: fc");
    ck_assert_msg(msw_job_make(net, &data, &data, rest, &job, &error) == MSW_OK, "%s", error.text);
    msw_net_destroy(net);
    return job;
}

/* Takes the job; its files go into a folder of that name. */
static void train(struct msw_job *job, const char *name, struct seen *seen, char digest[65])
{
    struct msw_options options = {.on_progress = note_progress, .arg = seen};
    struct msw_model *model = NULL;
    struct msw_error error;
    options.run_dir = make_folder(name);
    ck_assert_msg(msw_train(job, &options, &model, &error) == MSW_OK, "%s", error.text);
    snprintf(digest, 65, "%s", msw_model_sha256(model));
    msw_model_destroy(model);
    msw_job_destroy(job);
}

/* Likewise. */
static void step_through(struct msw_job *job, const char *name, char digest[65])
{
    struct msw_options options = {.threads = 1};
    struct msw_training *training = NULL;
    struct msw_model *model = NULL;
    struct msw_error error;
    options.run_dir = make_folder(name);
    int rc = msw_begin(job, &options, &training, &error);
    ck_assert_int_eq(rc, MSW_OK);
    while ((rc = msw_step(training, NULL, &error)) > 0) {
    }
    ck_assert_msg(rc == 0, "%s", error.text);
    ck_assert_int_eq(msw_end(training, &model, &error), MSW_OK);
    snprintf(digest, 65, "%s", msw_model_sha256(model));
    ck_assert_int_eq(msw_model_save(model, path_of("model.safetensors"), &error), MSW_OK);
    msw_model_destroy(model);
    msw_job_destroy(job);
}

/* Lists are of keys and whole numbers, and have a space behind each comma or a line of their own.
 */
static void check_numbers(const char *name, const char *key)
{
    static char text[65536];
    FILE *file = fopen(path_of(name), "r");
    ck_assert_msg(file != NULL, "%s", name);
    const size_t n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = '\0';
    ck_assert_msg(strstr(text, key) != NULL, "%s lacks %s", name, key);
    for (size_t i = 1; i + 1 < n; i++) {
        ck_assert_msg(text[i] != ',' || !isdigit((unsigned char)text[i - 1]) ||
                          !isdigit((unsigned char)text[i + 1]),
                      "%s: %.60s", name, text + (i > 20 ? i - 20 : 0));
    }
}

/* ---- cases ---- */

START_TEST(a_job_with_fractions_trains_to_the_same_bits)
{
    char want[65];
    char got[65];
    struct seen seen = {.reads = 0};
    if (!has_comma) {
        return;
    }
    train(parse_table(), "point", &seen, want);
    become_comma();

    train(parse_table(), "run", &seen, got);

    ck_assert_str_eq(got, want);
    check_numbers("run/metrics.jsonl", "\"loss\":");
    check_numbers("run/checkpoints/c-6.json", "0.75");
    ck_assert_str_eq(printed(0.5), "0,5");
}
END_TEST

/* Its threads are others. */
START_TEST(step_by_step_it_does_too)
{
    char want[65];
    char got[65];
    if (!has_comma) {
        return;
    }
    step_through(parse_table(), "point", want);
    become_comma();

    step_through(parse_table(), "run", got);

    ck_assert_str_eq(got, want);
    check_numbers("run/metrics.jsonl", "\"loss\":");
    check_numbers("run/checkpoints/c-6.json", "0.75");
    ck_assert_str_eq(printed(0.5), "0,5");
}
END_TEST

START_TEST(functions_of_the_program_have_its_locale)
{
    char want[65];
    char got[65];
    struct seen seen = {.reads = 0};
    if (!has_comma) {
        return;
    }
    train(make_points(&seen), "point", &seen, want);
    ck_assert_str_eq(seen.in_read, "0.5");
    ck_assert_str_eq(seen.in_progress, "0.5");
    become_comma();
    seen = (struct seen){.reads = 0};

    train(make_points(&seen), "run", &seen, got);

    ck_assert_str_eq(got, want);
    ck_assert_int_ge(seen.reads, 48);
    ck_assert_int_eq(seen.steps, 12);
    ck_assert_str_eq(seen.in_read, "0,5");
    ck_assert_str_eq(seen.in_progress, "0,5");
    ck_assert_str_eq(printed(0.5), "0,5");

    seen = (struct seen){.reads = 0};
    step_through(make_points(&seen), "steps", got);

    ck_assert_str_eq(got, want);
    ck_assert_str_eq(seen.in_read, "0,5");
}
END_TEST

/* What uselocale gave it, and it alone: the library's threads call with the locale of the process.
 */
START_TEST(a_thread_keeps_a_locale_of_its_own)
{
    char digest[65];
    struct seen seen = {.reads = 0};
    struct msw_job *none = NULL;
    if (!has_comma) {
        return;
    }
    become_comma();
    const locale_t comma =
        duplocale(LC_GLOBAL_LOCALE); /* newlocale leaks what it makes of LOCPATH */
    ck_assert(comma != (locale_t)0);
    setlocale(LC_ALL, "C");
    uselocale(comma);

    train(make_points(&seen), "run", &seen, digest);
    ck_assert(uselocale((locale_t)0) == comma);
    step_through(make_points(&seen), "steps", digest);
    ck_assert(uselocale((locale_t)0) == comma);
    ck_assert_int_eq(msw_job_parse("epochs: 0.5", NULL, &none, NULL), MSW_INVALID);
    ck_assert_int_lt(msw_job_load(path_of("nothing"), NULL, 0, &none, NULL), 0);
    ck_assert(uselocale((locale_t)0) == comma);

    ck_assert_str_eq(seen.in_progress, "0,5");
    ck_assert_str_eq(seen.in_read, "0.5");
    uselocale(LC_GLOBAL_LOCALE);
    freelocale(comma);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("msw_locale");
    TCase *tc = tcase_create("msw_locale");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_job_with_fractions_trains_to_the_same_bits);
    tcase_add_test(tc, step_by_step_it_does_too);
    tcase_add_test(tc, functions_of_the_program_have_its_locale);
    tcase_add_test(tc, a_thread_keeps_a_locale_of_its_own);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
