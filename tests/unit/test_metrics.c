/* test_metrics.c - metrics.jsonl and how losses are printed */
#include "libworker/train/metrics.h"
#include "proto/limits.h"
#include "tests/test.h"

#include <sys/stat.h>

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

static const char *dir;
static char path[128];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/metrics.jsonl", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static const char *slurp(void)
{
    static char text[8192];
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static int put_eval(struct metrics *metrics, int64_t epoch, uint64_t step, double loss,
                    double accuracy, const char *more, struct ms_err *err)
{
    const struct metrics_eval eval = {
        .epoch = epoch, .step = step, .loss = loss, .accuracy = accuracy, .more = more};
    return metrics_put_eval(metrics, &eval, err);
}

START_TEST(losses_print_as_numpy_prints_float32)
{
    static const struct {
        float loss;
        const char *text;
    } cases[] = {{2.4686084F, "2.4686084"},
                 {1.0F, "1.0"},
                 {100.0F, "100.0"},
                 {0.1F, "0.1"},
                 {1e-5F, "1e-05"},
                 {35.527402925F, "35.527405"},
                 {0.0F, "0.0"},
                 {120000.0F, "120000.0"},
                 {-0.5F, "-0.5"}};
    char buf[32];

    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        metrics_format_loss(cases[i].loss, buf, sizeof(buf));
        ck_assert_msg(strtof(buf, NULL) == cases[i].loss, "%s does not read back", buf);
        if (i != 5) { /* the decimal of the reference is no float32 */
            ck_assert_str_eq(buf, cases[i].text);
        }
    }
    ck_assert_str_eq(metrics_format_loss((float)NAN, buf, sizeof(buf)), "nan");
    ck_assert_str_eq(metrics_format_loss(-(float)INFINITY, buf, sizeof(buf)), "-inf");
}
END_TEST

START_TEST(a_step_an_evaluation_and_the_end_are_one_line_each)
{
    struct metrics *metrics = NULL;
    struct metrics_step step = {.generation = 3,
                                .epoch = 1,
                                .step = 7,
                                .loss = 0.5F,
                                .samples_per_s = 10,
                                .step_ms = 2,
                                .comm_wait_ms = 0.25};
    struct metrics_done done = {
        .steps = 7, .weights_sha256 = "aa", .plan_sha256 = "bb", .seconds = 1.5};

    ck_ms_ok(metrics_open(path, "", &metrics, err));
    ck_ms_ok(metrics_put_step(metrics, &step, err));
    ck_ms_ok(put_eval(metrics, 1, 7, 0.25, 0.875, NULL, err));
    ck_ms_ok(metrics_put_done(metrics, &done, err));
    metrics_close(metrics);

    const char *text = slurp();
    ck_assert_ptr_nonnull(strstr(text, "\"generation\":3,\"epoch\":1,\"step\":7,\"loss\":0.5,"
                                       "\"loss_hex\":\"0x1p-1\",\"samples_per_s\":10.00,"
                                       "\"step_ms\":2.000,\"comm_wait_ms\":0.250}\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n{\"epoch\":1,\"eval_loss\":0.25,\"accuracy\":0.875}\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n{\"done\":true,\"steps\":7,\"weights_sha256\":\"aa\","
                                       "\"plan_sha256\":\"bb\",\"seconds\":1.500}\n"));
}
END_TEST

START_TEST(a_rate_stands_where_there_is_a_schedule)
{
    struct metrics *metrics = NULL;
    struct metrics_step step = {.epoch = 1, .step = 1, .has_learning_rate = 1};

    ck_ms_ok(metrics_open(path, "", &metrics, err));
    step.learning_rate = 0.1F;
    ck_ms_ok(metrics_put_step(metrics, &step, err));
    step.step = 2;
    step.learning_rate = 0;
    ck_ms_ok(metrics_put_step(metrics, &step, err));
    step.step = 3;
    step.has_learning_rate = 0;
    ck_ms_ok(metrics_put_step(metrics, &step, err));
    metrics_close(metrics);

    const char *text = slurp();
    ck_assert_ptr_nonnull(
        strstr(text, "\"loss_hex\":\"0x0p+0\",\"learning_rate\":0.1,\"samples_per_s\":"));
    ck_assert_ptr_nonnull(strstr(text, ",\"learning_rate\":0.0,"));
    ck_assert_ptr_null(strstr(strstr(text, "\"step\":3"), "learning_rate"));
}
END_TEST

START_TEST(what_is_not_finite_is_null_for_json_has_no_word_for_it)
{
    struct metrics *metrics = NULL;
    struct metrics_step step = {.generation = 1, .epoch = 1, .step = 1, .loss = (float)NAN};

    ck_ms_ok(metrics_open(path, "", &metrics, err));
    ck_ms_ok(metrics_put_step(metrics, &step, err));
    ck_ms_ok(put_eval(metrics, 1, 1, (double)INFINITY, (double)NAN, NULL, err));
    metrics_close(metrics);

    const char *text = slurp();
    ck_assert_ptr_nonnull(strstr(text, "\"loss\":null,\"loss_hex\":\"nan\","));
    ck_assert_ptr_nonnull(strstr(text, "\n{\"epoch\":1,\"eval_loss\":null,\"accuracy\":null}\n"));
}
END_TEST

START_TEST(a_torn_last_line_is_cut_off)
{
    struct metrics *metrics = NULL;
    write_file("{\"step\":1}\n{\"step\":2}\n{\"ste");

    ck_ms_ok(metrics_open(path, "", &metrics, err));
    metrics_close(metrics);

    ck_assert_str_eq(slurp(), "{\"step\":1}\n{\"step\":2}\n");
}
END_TEST

START_TEST(a_file_that_is_one_torn_line_becomes_empty)
{
    struct metrics *metrics = NULL;
    char big[6000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    write_file(big);

    ck_ms_ok(metrics_open(path, "", &metrics, err));
    metrics_close(metrics);

    ck_assert_str_eq(slurp(), "");
}
END_TEST

/* ---- another life of the same training ---- */

static void put_steps(struct metrics *metrics, uint64_t first, uint64_t last)
{
    for (uint64_t i = first; i <= last; i++) {
        const struct metrics_step step = {.generation = 1, .epoch = 1, .step = i, .loss = 0.5F};
        ck_ms_ok(metrics_put_step(metrics, &step, err));
    }
}

static int count(const char *part)
{
    int n = 0;
    for (const char *at = strstr(slurp(), part); at != NULL; at = strstr(at + 1, part)) {
        n++;
    }
    return n;
}

static struct metrics *open_again(const char *training)
{
    struct metrics *metrics = NULL;
    ck_ms_ok(metrics_open(path, training, &metrics, err));
    return metrics;
}

START_TEST(what_was_told_in_an_earlier_life_is_not_told_again)
{
    struct metrics_done done = {.steps = 5, .weights_sha256 = "aa", .plan_sha256 = "bb"};
    struct metrics *metrics = open_again("0123456789ab");
    put_steps(metrics, 1, 3);
    ck_ms_ok(put_eval(metrics, 1, 3, 0.25, 0.5, NULL, err));
    metrics_close(metrics);
    FILE *file = fopen(path, "a");
    fputs("{\"t\":1.0,\"training\":\"0123456789ab\",\"generation\":1,\"epoch\":1,\"step\":4,\"lo",
          file);
    fclose(file);

    for (int i = 0; i < 2; i++) {
        metrics = open_again("0123456789ab");
        ck_assert_uint_eq(metrics_last_step(metrics), i == 0 ? 3 : 5);
        put_steps(metrics, 1, 5);
        ck_ms_ok(put_eval(metrics, 1, 3, 0.25, 0.5, NULL, err));
        ck_ms_ok(put_eval(metrics, 1, 5, 0.25, 0.5, NULL, err));
        ck_ms_ok(metrics_put_done(metrics, &done, err));
        metrics_close(metrics);
    }

    ck_assert_int_eq(count("\"step\":"), 5);
    ck_assert_int_eq(count("\"training\":\"0123456789ab\","), 5);
    ck_assert_int_eq(count("\"step\":4,\"loss\":0.5,"), 1);
    ck_assert_int_eq(count("eval_loss"), 2);
    ck_assert_int_eq(count("\"done\""), 1);
}
END_TEST

/* As that of an evaluation with a confusion matrix. */
START_TEST(a_long_line_is_known_again)
{
    static char more[300000] = ",\"confusion\":[[0";
    struct metrics *metrics = open_again("0123456789ab");
    for (size_t n = strlen(more); n < sizeof(more) - 3; n += 2) {
        memcpy(more + n, ",1", 3);
    }
    memcpy(more + strlen(more) - 2, "]]", 3);
    put_steps(metrics, 1, 3);
    ck_ms_ok(put_eval(metrics, 1, 3, 0.25, 0.5, more, err));
    metrics_close(metrics);
    struct stat before, after;
    ck_assert_int_eq(stat(path, &before), 0);
    ck_assert_int_gt(before.st_size, 300000);

    metrics = open_again("0123456789ab");
    ck_assert_uint_eq(metrics_last_step(metrics), 3);
    ck_ms_ok(put_eval(metrics, 1, 3, 0.25, 0.5, more, err));
    metrics_close(metrics);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_int_eq(after.st_size, before.st_size);
}
END_TEST

/* It stopped between a step and its evaluation, and was taken up again, twice. */
START_TEST(an_end_that_another_life_goes_on_from_is_not_the_last_word)
{
    struct metrics_done done = {.steps = 3, .weights_sha256 = "aa", .plan_sha256 = "bb"};
    for (int life = 0; life < 3; life++) {
        struct metrics *metrics = open_again("0123456789ab");
        if (life == 1) {
            ck_ms_ok(put_eval(metrics, 1, 3, 0.25, 0.5, NULL, err));
        } else {
            put_steps(metrics, 1, life == 0 ? 3 : 5);
        }
        done.steps = life == 2 ? 5 : 3;
        ck_ms_ok(metrics_put_done(metrics, &done, err));
        ck_ms_ok(metrics_put_done(metrics, &done, err)); /* said again */
        metrics_close(metrics);
        ck_assert_int_eq(count("\"done\""), life + 1);
    }
    ck_assert_int_eq(count("{\"done\":true,\"steps\":5,"), 1);
}
END_TEST

/* Rank 0 may be there still, and comes to write it, too. */
START_TEST(who_ends_in_the_place_of_rank_0_adds_the_end_once)
{
    static const char training[] = "0123456789ab";
    const struct metrics_done done = {.steps = 5, .weights_sha256 = "aa", .plan_sha256 = "bb"};
    ck_ms_ok(metrics_add_done(path, training, &done, err));
    ck_assert_int_ne(access(path, F_OK), 0);
    struct metrics *metrics = open_again(training);
    put_steps(metrics, 1, 4);
    ck_ms_ok(metrics_add_done(path, training, &done, err)); /* the last step waits, or is lost */
    put_steps(metrics, 5, 5);
    ck_ms_ok(metrics_add_done(path, "another", &done, err));
    ck_assert_int_eq(count("\"done\""), 0);

    ck_ms_ok(metrics_add_done(path, training, &done, err));
    ck_ms_ok(metrics_add_done(path, training, &done, err));
    ck_ms_ok(metrics_put_done(metrics, &done, err));

    ck_assert_int_eq(
        count("{\"done\":true,\"steps\":5,\"weights_sha256\":\"aa\",\"plan_sha256\":\"bb\","), 1);
    ck_assert_int_eq(count("\"done\""), 1);
    ck_assert_int_eq(count("\"step\":"), 5);
    metrics_close(metrics);
}
END_TEST

/* It was frozen, and wakes when its job has ended without it. */
START_TEST(end_that_lines_of_a_sleeper_follow_goes)
{
    static const char training[] = "0123456789ab";
    const struct metrics_done early = {.steps = 4, .weights_sha256 = "aa", .plan_sha256 = "bb"};
    const struct metrics_done late = {.steps = 5, .weights_sha256 = "cc", .plan_sha256 = "bb"};
    struct metrics *metrics = open_again(training);
    put_steps(metrics, 1, 4);
    ck_ms_ok(metrics_add_done(path, training, &early, err));
    put_steps(metrics, 5, 5);

    ck_ms_ok(metrics_put_done(metrics, &late, err));

    ck_assert_int_eq(count("\"step\":"), 5);
    ck_assert_int_eq(count("\"step\":5,"), 1);
    ck_assert_int_eq(count("\"done\""), 1);
    ck_assert_int_eq(count("{\"done\":true,\"steps\":5,\"weights_sha256\":\"cc\","), 1);
    ck_assert_uint_eq(metrics_end_at(path, training), 5);
    ck_assert_uint_eq(metrics_end_at(path, "another"), 0);
    metrics_close(metrics);
}
END_TEST

/* The weights that it names are no more there. */
START_TEST(end_of_a_later_step_takes_the_place_of_an_earlier_one)
{
    static const char training[] = "0123456789ab";
    const struct metrics_done early = {.steps = 4, .weights_sha256 = "aa", .plan_sha256 = "bb"};
    const struct metrics_done late = {.steps = 5, .weights_sha256 = "cc", .plan_sha256 = "bb"};
    struct metrics *metrics = open_again(training);
    put_steps(metrics, 1, _i == 0 ? 4 : 5);
    if (_i == 0) { /* rank 0 ended, and another rank had made a step more */
        ck_ms_ok(metrics_put_done(metrics, &early, err));
        ck_ms_ok(metrics_add_done(path, training, &late, err));
        ck_ms_ok(metrics_add_done(path, training, &early, err));
    } else { /* another rank ended a step before rank 0 */
        ck_ms_ok(metrics_add_done(path, training, &early, err));
        if (_i == 2) { /* whose process came after that */
            metrics_close(metrics);
            metrics = open_again(training);
        }
        ck_ms_ok(metrics_put_done(metrics, &late, err));
    }
    ck_ms_ok(metrics_put_done(metrics, &early, err));
    metrics_close(metrics);

    ck_assert_int_eq(count("\"done\""), 1);
    ck_assert_int_eq(count("{\"done\":true,\"steps\":5,\"weights_sha256\":\"cc\","), 1);
    ck_assert_int_eq(count("\"step\":"), _i == 0 ? 4 : 5);
}
END_TEST

START_TEST(end_of_another_training_stays)
{
    const struct metrics_done theirs = {.steps = 5, .weights_sha256 = "aa", .plan_sha256 = "bb"};
    const struct metrics_done ours = {.steps = 3, .weights_sha256 = "cc", .plan_sha256 = "bb"};
    struct metrics *metrics = open_again("0123456789ab");
    put_steps(metrics, 1, 5);
    ck_ms_ok(metrics_put_done(metrics, &theirs, err));
    metrics_close(metrics);

    metrics = open_again("another");
    ck_ms_ok(metrics_put_done(metrics, &ours, err)); /* it made no step */
    metrics_close(metrics);

    ck_assert_int_eq(count("{\"done\":true,\"steps\":5,"), 1);
    ck_assert_int_eq(count("{\"done\":true,\"steps\":3,"), 1);
}
END_TEST

START_TEST(a_process_that_was_only_asleep_writes_into_nothing)
{
    struct metrics *asleep = open_again("0123456789ab");
    put_steps(asleep, 1, 3);
    struct metrics *awake = open_again("0123456789ab");

    put_steps(asleep, 4, 5);
    put_steps(awake, 4, 4);

    ck_assert_int_eq(count("\"step\":"), 4);
    metrics_close(asleep);
    metrics_close(awake);
}
END_TEST

START_TEST(lines_of_another_training_stay_and_count_for_nothing)
{
    struct metrics *metrics = open_again("0123456789ab");
    put_steps(metrics, 1, 3);
    metrics_close(metrics);

    metrics = open_again("ba9876543210");
    ck_assert_uint_eq(metrics_last_step(metrics), 0);
    put_steps(metrics, 1, 2);
    metrics_close(metrics);
    metrics = open_again("0123456789ab");
    ck_assert_uint_eq(metrics_last_step(metrics), 0);
    metrics_close(metrics);
    metrics = open_again("");
    put_steps(metrics, 1, 1);
    metrics_close(metrics);

    ck_assert_int_eq(count("\"step\":"), 6);
}
END_TEST

START_TEST(a_disk_that_fills_up_within_a_line_is_named_and_not_an_older_error)
{
    struct metrics *metrics = NULL;
    struct metrics_step step = {.generation = 1, .epoch = 1, .step = 1, .loss = 1};
    struct ms_err why = {0, ""};
    const struct rlimit small = {50, RLIM_INFINITY}; /* less than a line, as a last free block is */
    ck_ms_ok(metrics_open(path, "", &metrics, err));
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    errno = EAGAIN;

    int rc = metrics_put_step(metrics, &step, &why);

    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &all), 0);
    ck_assert_int_eq(rc, MS_E_IO);
    ck_assert_msg(strstr(why.text, "File too large") != NULL, "%s", why.text);
    metrics_close(metrics);
}
END_TEST

/* Under a limit nothing is asserted: the results of a test go through a file, too. */
static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
        abort();
    }
}

static int put_one(struct metrics *metrics, uint64_t step)
{
    const struct metrics_step line = {.generation = 1, .epoch = 1, .step = step, .loss = 0.5F};
    return metrics_put_step(metrics, &line, NULL);
}

START_TEST(what_a_full_disk_does_not_take_waits_and_goes_before_the_next_line)
{
    struct metrics *metrics = open_again("0123456789ab");
    put_steps(metrics, 1, 2);
    const size_t had = strlen(slurp());
    limit_files((rlim_t)had + 50); /* less than a line */
    const int third = put_one(metrics, 3);
    const int fourth = put_one(metrics, 4);
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(third, MS_E_IO);
    ck_assert_int_eq(fourth, MS_E_IO);
    ck_assert_uint_eq(strlen(slurp()), had); /* no line is torn */

    put_steps(metrics, 5, 5);

    ck_assert_int_eq(count("\"step\":"), 5);
    ck_assert_uint_lt((size_t)(strstr(slurp(), "\"step\":4,") - slurp()),
                      (size_t)(strstr(slurp(), "\"step\":5,") - slurp()));
    ck_assert_uint_eq(metrics_lost(metrics), 0);
    metrics_close(metrics);
}
END_TEST

START_TEST(another_life_begins_on_a_full_disk_and_makes_the_file_anew_once_there_is_room)
{
    struct metrics *asleep = open_again("0123456789ab");
    struct metrics *metrics = NULL;
    put_steps(asleep, 1, 3);
    limit_files(50);
    const int opened = metrics_open(path, "0123456789ab", &metrics, NULL);
    const int fourth = opened == 0 ? put_one(metrics, 4) : 0;
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(opened, 0);
    ck_assert_int_eq(fourth, MS_E_IO);
    ck_assert_uint_eq(metrics_last_step(metrics), 4);
    ck_assert_int_eq(count("\"step\":"), 3);

    put_steps(metrics, 5, 5);
    put_steps(asleep, 4, 4); /* into nothing */

    ck_assert_int_eq(count("\"step\":"), 5);
    metrics_close(metrics);
    metrics_close(asleep);
}
END_TEST

/* Of a long file, and none of them is torn. */
static uint64_t whole_lines(void)
{
    char line[1024];
    uint64_t lines = 0;
    uint64_t torn = 0;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    for (; fgets(line, sizeof(line), file) != NULL; lines++) {
        torn += line[0] != '{' || strstr(line, "}\n") == NULL;
    }
    fclose(file);
    ck_assert_uint_eq(torn, 0);
    return lines;
}

/* It slept before it had taken the file, and somebody else has it now. */
START_TEST(who_wakes_before_it_had_made_the_file_anew_takes_nothing_from_its_successor)
{
    struct metrics *first = open_again("0123456789ab");
    struct metrics *asleep = NULL;
    put_steps(first, 1, 3);
    limit_files(50);
    ck_assert_int_eq(metrics_open(path, "0123456789ab", &asleep, NULL), 0);
    limit_files(RLIM_INFINITY);
    struct metrics *successor = open_again("0123456789ab");
    put_steps(successor, 4, 8);
    put_steps(asleep, 4, 4);
    metrics_close(asleep);
    put_steps(successor, 9, 10);
    ck_assert_int_eq(count("\"step\":"), 10);
    metrics_close(successor);
    metrics_close(first);
}
END_TEST

static const struct metrics_done end_at_3 = {
    .steps = 3, .weights_sha256 = "aa", .plan_sha256 = "bb"};

/* The file has step 3, and who takes it over has no room to make it anew. */
static struct metrics *take_over_on_a_full_disk(struct metrics *before)
{
    struct metrics *metrics = NULL;
    put_steps(before, 1, 3);
    limit_files(50);
    const int opened = metrics_open(path, "0123456789ab", &metrics, NULL);
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(opened, 0);
    return metrics;
}

static void ck_ends_once(void)
{
    const char *text = slurp();
    const char *last = strstr(text, "{\"done\":true,\"steps\":3,");
    ck_assert_int_eq(count("\"done\""), 1);
    ck_assert_msg(last != NULL && strchr(last, '\n') == text + strlen(text) - 1, "%s", text);
}

/* Room came, and another rank saved. Rank 0 hears of the end, or goes without a word of it; or
 * hears of it where there is no room again. */
START_TEST(end_that_was_added_to_a_file_that_is_to_be_made_anew_stays)
{
    struct metrics *before = open_again("0123456789ab");
    struct metrics *metrics = take_over_on_a_full_disk(before);
    ck_ms_ok(metrics_add_done(path, "0123456789ab", &end_at_3, err));
    ck_ends_once();

    if (_i == 1) {
        ck_ms_ok(metrics_put_done(metrics, &end_at_3, err));
        ck_ends_once();
    } else if (_i == 2) {
        limit_files(50);
        (void)metrics_put_done(metrics, &end_at_3, NULL);
        limit_files(RLIM_INFINITY);
    }
    metrics_close(metrics);

    ck_ends_once();
    ck_assert_int_eq(count("\"step\":"), 3);
    metrics_close(before);
}
END_TEST

/* Of who slept, and woke before that file was made anew: its step is not the one that counts. */
START_TEST(end_behind_lines_of_who_was_asleep_is_told_anew)
{
    struct metrics *asleep = open_again("0123456789ab");
    struct metrics *metrics = take_over_on_a_full_disk(asleep);
    struct metrics_done done = end_at_3;
    ck_ms_ok(metrics_put_done(asleep, &done, err));
    if (_i == 1) {
        put_steps(metrics, 4, 4);
        ck_assert_int_eq(count("\"done\""), 0); /* the training goes on */
    } else {
        put_steps(asleep, 4, 4);
        limit_files(50);
        (void)put_one(metrics, 4);
        limit_files(RLIM_INFINITY);
    }
    done.steps = 4;
    ck_ms_ok(metrics_add_done(path, "0123456789ab", &done, err));

    ck_ms_ok(metrics_put_done(metrics, &done, err));

    ck_assert_int_eq(count("\"done\""), 1);
    ck_assert_int_eq(count("\"step\":4,"), 1);
    ck_assert_int_eq(count("{\"done\":true,\"steps\":4,"), 1);
    metrics_close(metrics);
    metrics_close(asleep);
}
END_TEST

/* It waits for room: the end is rank 0's to tell then, as where the last step does. */
START_TEST(end_is_not_added_before_the_evaluation_of_the_last_step)
{
    struct metrics_done done = end_at_3;
    struct metrics *metrics = open_again("0123456789ab");
    put_steps(metrics, 1, 3);
    done.has_eval = 1;
    limit_files(10);
    const int waits = put_eval(metrics, 1, 3, 0.25, 0.5, NULL, NULL);
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(waits, MS_E_IO);
    ck_ms_ok(metrics_add_done(path, "0123456789ab", &done, err));
    ck_assert_int_eq(count("\"done\""), 0);

    if (_i == 0) {
        ck_ms_ok(metrics_put_done(metrics, &done, err));
    } else {
        ck_ms_ok(metrics_flush(metrics, err));
        ck_ms_ok(metrics_add_done(path, "0123456789ab", &done, err));
        ck_ms_ok(metrics_put_done(metrics, &done, err));
    }

    ck_ends_once();
    ck_assert_int_eq(count("eval_loss"), 1);
    metrics_close(metrics);
}
END_TEST

START_TEST(lost_lines_are_those_of_one_full_disk)
{
    struct metrics *metrics = open_again("0123456789ab");
    uint64_t last = 0;
    limit_files(50);
    while (metrics_lost(metrics) < 3) {
        (void)put_one(metrics, ++last);
    }
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(put_one(metrics, ++last), 0); /* there is room again: it stays */
    ck_assert_uint_eq(metrics_lost(metrics), 3);
    limit_files(50);
    (void)put_one(metrics, ++last);
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(put_one(metrics, ++last), 0);
    ck_assert_uint_eq(metrics_lost(metrics), 0);
    metrics_close(metrics);
    ck_assert_uint_eq(whole_lines(), last - 3);
}
END_TEST

START_TEST(lines_beyond_what_memory_holds_are_counted_and_none_is_torn)
{
    struct metrics *metrics = open_again("0123456789ab");
    uint64_t last = 0;
    limit_files(50);
    while (metrics_lost(metrics) < 3 && last < MS_METRICS_PENDING) {
        (void)put_one(metrics, ++last);
    }
    limit_files(RLIM_INFINITY);
    ck_assert_uint_eq(metrics_lost(metrics), 3);

    metrics_close(metrics); /* what waits has room now */

    ck_assert_uint_eq(whole_lines(), last - 3);
}
END_TEST

START_TEST(what_is_no_file_is_named_or_takes_the_lines)
{
    struct metrics *metrics = NULL;
    char fifo[256];
    snprintf(fifo, sizeof(fifo), "%s/pipe", dir);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);

    ck_ms_fails(metrics_open(fifo, "t", &metrics, err), MS_E_INVALID, "is no file: move it away");
    ck_ms_ok(metrics_open("/dev/null", "t", &metrics, err));

    metrics_close(metrics);
}
END_TEST

START_TEST(a_folder_that_is_missing_is_named)
{
    struct metrics *metrics = NULL;

    ck_ms_fails(metrics_open("/nonexistent/metrics.jsonl", "", &metrics, err), MS_E_IO,
                "/nonexistent/metrics.jsonl");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics");
    TCase *tc = tcase_create("metrics");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, losses_print_as_numpy_prints_float32);
    tcase_add_test(tc, a_step_an_evaluation_and_the_end_are_one_line_each);
    tcase_add_test(tc, a_rate_stands_where_there_is_a_schedule);
    tcase_add_test(tc, what_is_not_finite_is_null_for_json_has_no_word_for_it);
    tcase_add_test(tc, a_torn_last_line_is_cut_off);
    tcase_add_test(tc, a_file_that_is_one_torn_line_becomes_empty);
    tcase_add_test(tc, what_was_told_in_an_earlier_life_is_not_told_again);
    tcase_add_test(tc, a_long_line_is_known_again);
    tcase_add_test(tc, an_end_that_another_life_goes_on_from_is_not_the_last_word);
    tcase_add_test(tc, who_ends_in_the_place_of_rank_0_adds_the_end_once);
    tcase_add_test(tc, end_that_lines_of_a_sleeper_follow_goes);
    tcase_add_loop_test(tc, end_of_a_later_step_takes_the_place_of_an_earlier_one, 0, 3);
    tcase_add_test(tc, end_of_another_training_stays);
    tcase_add_test(tc, a_process_that_was_only_asleep_writes_into_nothing);
    tcase_add_test(tc, lines_of_another_training_stay_and_count_for_nothing);
    tcase_add_test(tc, a_disk_that_fills_up_within_a_line_is_named_and_not_an_older_error);
    tcase_add_test(tc, what_a_full_disk_does_not_take_waits_and_goes_before_the_next_line);
    tcase_add_test(tc, who_wakes_before_it_had_made_the_file_anew_takes_nothing_from_its_successor);
    tcase_add_loop_test(tc, end_that_was_added_to_a_file_that_is_to_be_made_anew_stays, 0, 3);
    tcase_add_loop_test(tc, end_behind_lines_of_who_was_asleep_is_told_anew, 0, 2);
    tcase_add_loop_test(tc, end_is_not_added_before_the_evaluation_of_the_last_step, 0, 2);
    tcase_add_test(tc, lost_lines_are_those_of_one_full_disk);
    tcase_add_test(tc,
                   another_life_begins_on_a_full_disk_and_makes_the_file_anew_once_there_is_room);
    tcase_add_test(tc, lines_beyond_what_memory_holds_are_counted_and_none_is_torn);
    tcase_add_test(tc, what_is_no_file_is_named_or_takes_the_lines);
    tcase_add_test(tc, a_folder_that_is_missing_is_named);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
