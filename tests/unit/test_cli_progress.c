/* test_cli_progress.c - the lines that a running job shows, on a terminal and in a log */
#include "cli/display.h"
#include "cli/format.h"
#include "cli/progress.h"
#include "proto/state_words.h"
#include "tests/test.h"

#include <math.h>

/* A job of four workers in the middle of its second epoch of three. */
static Ms__Progress progress;
static Ms__RankInfo ranks[4];
static Ms__RankInfo *rank_list[4];
static Ms__Progress evals[3];
static Ms__Progress *eval_list[3];
static Ms__JobInfo job;

static void setup(void)
{
    ms__job_info__init(&job);
    ms__progress__init(&progress);
    progress.step = 150;
    progress.steps_total = 300;
    progress.epoch = 2;
    progress.epochs = 3;
    progress.step_in_epoch = 50;
    progress.steps_per_epoch = 100;
    progress.loss = 1.2345;
    progress.samples_per_s = 1812.3;
    progress.step_ms = 39.44;
    progress.phase = (char *)"training";
    for (size_t i = 0; i < 4; i++) {
        ms__rank_info__init(&ranks[i]);
        ranks[i].rank = (uint32_t)i;
        ranks[i].state = (char *)(i == 2 ? "preparing" : "training");
        rank_list[i] = &ranks[i];
    }
    for (size_t i = 0; i < 3; i++) {
        ms__progress__init(&evals[i]);
        evals[i].epoch = (uint32_t)i + 1;
        evals[i].accuracy = 0.888;
        evals[i].eval_loss = 0.41;
        eval_list[i] = &evals[i];
    }
    job.id = 1;
    job.state = (char *)"RUNNING";
    job.workers = 4;
    job.progress = &progress;
    job.ranks = rank_list;
    job.n_ranks = 4;
    job.evals = eval_list;
}

START_TEST(a_line_says_epoch_step_loss_rate_and_eta)
{
    char line[CLI_LINE_MAX];

    cli_progress_line(line, sizeof(line), 200, &job, 83);

    ck_assert_str_eq(line, "epoch 2/3  step  50/100  [==============>             ]  loss 1.2345  "
                           "1,812 samples/s  39.4 ms/step  ETA 1:23");
}
END_TEST

START_TEST(where_state_and_reason_are_said_already_its_place_alone_is_left)
{
    char line[CLI_LINE_MAX];
    job.state = (char *)"RECOVERING";
    job.reason = (char *)"waits for a node to take rank 2: its worker was killed";

    ck_assert_str_eq(cli_progress_show(line, sizeof(line), &job), "epoch 2/3  step  50/100");

    job.state = (char *)"RUNNING"; /* after a restart of the scheduler */
    ck_assert_str_eq(cli_progress_show(line, sizeof(line), &job), "epoch 2/3  step  50/100");
    job.reason = (char *)"";
    ck_assert_str_eq(cli_progress_show(line, sizeof(line), &job),
                     "epoch 2/3  step  50/100  loss 1.2345  1,812 samples/s  39.4 ms/step");
}
END_TEST

START_TEST(the_line_of_a_job_that_ended_has_no_eta_and_does_nothing)
{
    char line[CLI_LINE_MAX];
    progress.phase = (char *)"evaluating";
    job.state = (char *)"CANCELLED";
    job.reason = (char *)"by alice";

    ck_assert_str_eq(cli_progress_plain(line, sizeof(line), &job, 42),
                     "epoch 2/3  step  50/100  loss 1.2345  1,812 samples/s  39.4 ms/step");
}
END_TEST

START_TEST(a_speed_that_is_not_known_yet_is_left_out)
{
    char line[CLI_LINE_MAX];
    progress.samples_per_s = 0; /* of a resumed run before its first step */
    progress.step_ms = 0;

    ck_assert_str_eq(cli_progress_plain(line, sizeof(line), &job, -1),
                     "epoch 2/3  step  50/100  loss 1.2345");
}
END_TEST

START_TEST(a_line_never_exceeds_the_terminal)
{
    for (size_t width = 1; width < 160; width++) {
        char line[CLI_LINE_MAX];
        cli_progress_line(line, sizeof(line), width, &job, 83);
        ck_assert_uint_le(cli_text_columns(line), width);
        cli_progress_workers(line, sizeof(line), width, &job);
        ck_assert_uint_le(cli_text_columns(line), width);
    }
}
END_TEST

START_TEST(where_it_is_narrow_words_get_shorter_then_the_bar_goes)
{
    char line[CLI_LINE_MAX];

    ck_assert_str_eq(
        cli_progress_line(line, sizeof(line), 79, &job, 83),
        "epoch 2/3  step  50/100  [=====>     ]  loss 1.2345  1,812/s  39.4 ms  ETA 1:23");
    ck_assert_str_eq(cli_progress_line(line, sizeof(line), 70, &job, 83),
                     "epoch 2/3  step  50/100  loss 1.2345  1,812/s  39.4 ms  ETA 1:23");
}
END_TEST

START_TEST(a_waiting_job_says_what_it_waits_for)
{
    char line[CLI_LINE_MAX];
    job.progress = NULL;
    job.state = (char *)"QUEUED";
    job.reason = (char *)"waits for 3 of 8 workers";

    ck_assert_str_eq(cli_progress_line(line, sizeof(line), 80, &job, -1),
                     "QUEUED: waits for 3 of 8 workers");
    job.state = (char *)"RUNNING";
    job.reason = (char *)"";
    ck_assert_str_eq(cli_progress_line(line, sizeof(line), 80, &job, -1),
                     "RUNNING: before the first step");
}
END_TEST

START_TEST(workers_are_counted_by_state)
{
    char line[CLI_LINE_MAX];

    ck_assert_str_eq(cli_progress_workers(line, sizeof(line), 80, &job),
                     "workers 4: 3 training, 1 preparing");
    job.n_ranks = 0;
    ck_assert_str_eq(cli_progress_workers(line, sizeof(line), 80, &job), "workers 4");
}
END_TEST

START_TEST(an_evaluation_without_accuracy_shows_its_loss)
{
    char line[CLI_LINE_MAX];

    ck_assert_str_eq(cli_progress_eval(line, sizeof(line), &evals[0], "the test set of mnist"),
                     "epoch 1: accuracy 88.8 % on the test set of mnist, loss 0.4100");
    evals[0].unsettled = 0.731;
    ck_assert_str_eq(cli_progress_eval(line, sizeof(line), &evals[0], "all of shapes"),
                     "epoch 1: accuracy 88.8 % on all of shapes, loss 0.4100; 73 % of the moving "
                     "statistics are what they were at first: the net may look less trained than "
                     "it is");
    evals[0].unsettled = 1e300; /* what no rank of ours says */
    ck_assert_ptr_null(cli_progress_unsettled(line, sizeof(line), &evals[0]));
    evals[0].unsettled = 0;
    evals[0].accuracy = NAN;
    ck_assert_str_eq(cli_progress_eval(line, sizeof(line), &evals[0], NULL),
                     "epoch 1: loss 0.4100 on the evaluation data");
    evals[0].accuracy = -1;
    ck_assert_str_eq(cli_progress_eval(line, sizeof(line), &evals[0], "all of nonlinear"),
                     "epoch 1: loss 0.4100 on all of nonlinear");
}
END_TEST

START_TEST(the_eta_comes_from_what_was_seen)
{
    struct cli_eta eta = {0};

    cli_eta_update(&eta, &progress, 1000);
    ck_assert_double_eq_tol(eta.seconds, 150 * 0.03944, 1e-9); /* the worker's own step time */
    progress.step = 200;
    cli_eta_update(&eta, &progress, 1025); /* 50 steps in 25 s, 100 left */
    ck_assert_double_eq_tol(eta.seconds, 50, 1e-9);
    progress.step = 100;
    cli_eta_update(&eta, &progress, 1030); /* another run of it: begins again */
    ck_assert_double_eq_tol(eta.seconds, 200 * 0.03944, 1e-9);
    progress.step = progress.steps_total;
    cli_eta_update(&eta, &progress, 1031);
    ck_assert_double_eq_tol(eta.seconds, 0, 1e-9);
    progress.steps_total = 0;
    cli_eta_update(&eta, &progress, 1032);
    ck_assert_double_lt(eta.seconds, 0);
}
END_TEST

/* ---- display ---- */

static char *text;
static size_t text_size;
static FILE *out;
static struct cli_display display;

static void display_setup(int live)
{
    out = open_memstream(&text, &text_size);
    cli_display_init(&display, out, live, 120, "the test set of mnist");
}

static void display_teardown(void)
{
    fclose(out);
    free(text);
}

static size_t lines_of(const char *what)
{
    size_t n = 0;
    fflush(out);
    for (const char *p = text; (p = strstr(p, what)) != NULL; p++) {
        n++;
    }
    return n;
}

START_TEST(a_log_gets_a_line_every_five_seconds_and_no_escapes)
{
    display_setup(0);

    for (int i = 0; i < 100; i++) { /* ten seconds, ten updates each */
        progress.step = 101 + (uint64_t)(i / 2);
        progress.step_in_epoch = (uint32_t)progress.step - 100;
        cli_display_update(&display, &job, 1000 + i * 0.1);
    }
    cli_display_end(&display);

    ck_assert_uint_eq(lines_of("epoch 2/3"), 2);
    ck_assert_ptr_null(strpbrk(text, "\r\x1b"));
    display_teardown();
}
END_TEST

START_TEST(a_log_gets_each_epochs_end_once)
{
    display_setup(0);

    for (uint32_t epoch = 1; epoch <= 3; epoch++) {
        progress.epoch = epoch;
        progress.step = epoch * 100;
        progress.step_in_epoch = 100;
        cli_display_update(&display, &job, 1000 + epoch);
        cli_display_update(&display, &job, 1000.1 + epoch);
    }

    ck_assert_uint_eq(lines_of("step 100/100"), 3);
    display_teardown();
}
END_TEST

START_TEST(short_epochs_do_not_flood_a_log)
{
    display_setup(0);

    for (uint32_t epoch = 1; epoch <= 1000; epoch++) { /* a millisecond each */
        progress.epoch = epoch;
        progress.step = epoch * 100;
        progress.step_in_epoch = 100;
        cli_display_update(&display, &job, 1000 + epoch * 0.001);
    }

    ck_assert_uint_le(lines_of("\n"), 2);
    display_teardown();
}
END_TEST

START_TEST(a_log_gets_each_reason_to_wait_once)
{
    display_setup(0);
    job.progress = NULL;
    job.state = (char *)"QUEUED";
    job.reason = (char *)"waits for 2 of 4 workers";

    cli_display_update(&display, &job, 1000);
    cli_display_update(&display, &job, 1001);
    job.reason = (char *)"waits for 1 of 4 workers";
    cli_display_update(&display, &job, 1002);
    job.state = (char *)"RUNNING";
    job.reason = (char *)"";
    cli_display_update(&display, &job, 1003);

    ck_assert_uint_eq(lines_of("waits for"), 2);
    ck_assert_uint_eq(lines_of("\n"), 2);
    display_teardown();
}
END_TEST

/* The line that moves has 80 columns, and somebody has to do something. */
START_TEST(a_terminal_gets_all_of_why_the_weights_are_not_saved_once)
{
    display_setup(1);
    job.reason = (char *)MS_REASON_UNSAVED
        "no rank can save the weights (tried again every 5 s: make room or mend it, or cancel the "
        "job): rank 0 (node 0) says: weights.safetensors: No space left on device";

    for (int i = 0; i < 20; i++) {
        cli_display_update(&display, &job, 1000 + i);
    }

    ck_assert_uint_eq(lines_of("or cancel the job): rank 0 (node 0) says: weights"), 1);
    display_teardown();
}
END_TEST

START_TEST(evaluations_stay_and_are_printed_once)
{
    display_setup(1);
    job.n_evals = 1;

    cli_display_update(&display, &job, 1000);
    cli_display_update(&display, &job, 1001);
    job.n_evals = 3;
    cli_display_update(&display, &job, 1002);
    cli_display_end(&display);

    ck_assert_uint_eq(lines_of("epoch 1: accuracy 88.8 % on the test set of mnist, loss 0.4100\n"),
                      1);
    ck_assert_uint_eq(lines_of("epoch 3: accuracy 88.8 % on the test set of mnist, loss 0.4100\n"),
                      1);
    display_teardown();
}
END_TEST

START_TEST(a_terminal_gets_two_lines_that_are_drawn_again)
{
    display_setup(1);

    cli_display_update(&display, &job, 1000);
    cli_display_update(&display, &job, 1000.2);
    fflush(out);
    size_t drawn = text_size;
    cli_display_end(&display);
    fflush(out);

    ck_assert_uint_eq(lines_of("workers 4: 3 training, 1 preparing\x1b[K"), 2);
    ck_assert_uint_eq(lines_of("\r\x1b[1A"), 2); /* the second drawing, and the end */
    ck_assert_str_eq(text + drawn, "\r\x1b[1A\x1b[J");
    display_teardown();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_progress");
    TCase *tc = tcase_create("progress");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, a_line_says_epoch_step_loss_rate_and_eta);
    tcase_add_test(tc, the_line_of_a_job_that_ended_has_no_eta_and_does_nothing);
    tcase_add_test(tc, where_state_and_reason_are_said_already_its_place_alone_is_left);
    tcase_add_test(tc, a_speed_that_is_not_known_yet_is_left_out);
    tcase_add_test(tc, a_line_never_exceeds_the_terminal);
    tcase_add_test(tc, where_it_is_narrow_words_get_shorter_then_the_bar_goes);
    tcase_add_test(tc, a_waiting_job_says_what_it_waits_for);
    tcase_add_test(tc, workers_are_counted_by_state);
    tcase_add_test(tc, an_evaluation_without_accuracy_shows_its_loss);
    tcase_add_test(tc, the_eta_comes_from_what_was_seen);
    tcase_add_test(tc, a_log_gets_a_line_every_five_seconds_and_no_escapes);
    tcase_add_test(tc, a_log_gets_each_epochs_end_once);
    tcase_add_test(tc, short_epochs_do_not_flood_a_log);
    tcase_add_test(tc, a_log_gets_each_reason_to_wait_once);
    tcase_add_test(tc, a_terminal_gets_all_of_why_the_weights_are_not_saved_once);
    tcase_add_test(tc, evaluations_stay_and_are_printed_once);
    tcase_add_test(tc, a_terminal_gets_two_lines_that_are_drawn_again);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
