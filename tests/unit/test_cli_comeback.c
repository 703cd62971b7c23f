/* test_cli_comeback.c - ranks that were lost while somebody looked, and how the job went on */
#include "cli/comeback.h"
#include "cli/display.h"
#include "cli/format.h"
#include "cli/json.h"
#include "proto/state_words.h"
#include "tests/test.h"

enum { RANKS = 12 };

static Ms__JobInfo job;
static Ms__Progress progress;
static Ms__RankInfo ranks[RANKS];
static Ms__RankInfo *rank_list[RANKS];
static struct cli_comeback comeback;
static char line[CLI_LINE_MAX];

static void setup(void)
{
    memset(&comeback, 0, sizeof(comeback));
    ms__job_info__init(&job);
    ms__progress__init(&progress);
    for (uint32_t i = 0; i < RANKS; i++) {
        ms__rank_info__init(&ranks[i]);
        ranks[i].rank = i;
        ranks[i].state = (char *)MS_RANK_STATE_TRAINING;
        rank_list[i] = &ranks[i];
    }
    job.state = (char *)MS_JOB_STATE_RUNNING;
    job.workers = RANKS;
    job.ranks = rank_list;
    job.n_ranks = RANKS;
    job.progress = &progress;
    progress.step = 1200;
    progress.steps_total = 3000;
    progress.epoch = 2;
    progress.epochs = 3;
    progress.step_in_epoch = 200;
    progress.steps_per_epoch = 1000;
    progress.phase = (char *)"training";
}

static const char *look(double now_s)
{
    return cli_comeback_line(&comeback, &job, now_s, line, sizeof(line));
}

static void recover(const char *reason)
{
    job.state = (char *)MS_JOB_STATE_RECOVERING;
    job.reason = (char *)reason;
}

static void go_on(uint64_t step)
{
    job.state = (char *)MS_JOB_STATE_RUNNING;
    job.reason = (char *)"";
    for (uint32_t i = 0; i < RANKS; i++) {
        ranks[i].state = (char *)MS_RANK_STATE_TRAINING;
        ranks[i].step = step;
    }
}

START_TEST(a_loss_is_said_when_it_begins_and_when_it_is_over)
{
    ck_assert_ptr_null(look(1));
    ranks[2].state = (char *)MS_RANK_STATE_LOST;
    recover("waits for node 2 to come back");

    ck_assert_str_eq(look(2), "RECOVERING: waits for node 2 to come back");
    ck_assert_ptr_null(look(2.5));
    go_on(1234);
    ck_assert_str_eq(look(2.8), "rank 2 was lost; went on from step 1234 after 0.80 s");
    ck_assert_ptr_null(look(3));
}
END_TEST

START_TEST(a_job_that_begins_at_a_checkpoint_says_so)
{
    (void)look(1);
    recover("");
    (void)look(2);
    go_on(1100);
    progress.step = 1234; /* of before */

    ck_assert_str_eq(look(3), "went on from step 1100 after 1.00 s");
}
END_TEST

/* What they held of the steps behind went with them. */
START_TEST(what_is_trained_again_is_said)
{
    char text[160];
    (void)look(1);
    ck_assert_ptr_null(cli_comeback_again(text, sizeof(text), &job));
    recover("");
    (void)look(2);
    go_on(1100);
    job.again_from = 1101;
    job.again_to = 1234;
    ck_assert_str_eq(look(3), "went on from step 1100 after 1.00 s: steps 1101 to 1234 are trained "
                              "again");
    ck_assert_str_eq(cli_comeback_again(text, sizeof(text), &job),
                     "steps 1101 to 1234, from the checkpoint of step 1100");
    recover("");
    (void)look(4);
    go_on(1150); /* held by a rank */
    ck_assert_str_eq(look(5), "went on from step 1150 after 1.00 s");
    recover("");
    (void)look(6);
    go_on(1233);
    job.again_from = 1234;
    ck_assert_str_eq(look(7), "went on from step 1233 after 1.00 s: step 1234 is trained again");
}
END_TEST

/* Who looks again after a while sees ranks that have trained on. */
START_TEST(where_it_went_on_is_what_the_scheduler_says)
{
    (void)look(1);
    recover("");
    (void)look(2);
    go_on(1900);
    job.went_on_from = 1100;
    ck_assert_str_eq(look(3), "went on from step 1100 after 1.00 s");
}
END_TEST

START_TEST(a_job_that_begins_anew_says_so)
{
    char text[160];
    (void)look(1);
    recover("");
    (void)look(2);
    go_on(0);
    job.recoveries = 1;
    job.generation = 2;
    job.again_from = 1;
    job.again_to = 1210;
    ck_assert_uint_eq(cli_comeback_step(&job), 0);
    ck_assert_str_eq(look(3), "began anew after 1.00 s: steps 1 to 1210 are trained again");
    ck_assert_str_eq(cli_comeback_again(text, sizeof(text), &job),
                     "steps 1 to 1210, for no rank had a checkpoint that could be read");
}
END_TEST

START_TEST(the_schedulers_count_of_time_is_believed)
{
    job.recovering_ms = 5000;
    job.ranks_lost = 4;
    (void)look(1);
    recover("");
    (void)look(2);
    go_on(0);
    job.recovering_ms = 5320;

    ck_assert_str_eq(look(60), "went on from step 1200 after 0.32 s");
}
END_TEST

/* The count of a job that stands still has what it stood until now in it. */
START_TEST(who_comes_late_hears_how_long_it_stood_still)
{
    recover("");
    ranks[2].state = (char *)MS_RANK_STATE_LOST;
    job.ranks_lost = 2;
    job.recovering_ms = 8080;
    (void)look(10);
    job.recovering_ms = 8380;
    (void)look(10.3);
    go_on(401);
    job.recoveries = 1;
    job.recovering_ms = 8680;
    ck_assert_str_eq(look(10.6), "rank 2 was lost; went on from step 401 after 8.68 s");

    recover(""); /* the next one is seen whole */
    (void)look(20);
    go_on(500);
    job.recoveries = 2;
    job.recovering_ms = 8880;
    ck_assert_str_eq(look(20.2), "went on from step 500 after 0.20 s");
}
END_TEST

START_TEST(who_comes_late_hears_how_many_were_lost_and_how_long_at_least)
{
    recover("");
    job.ranks_lost = 2;
    job.recovering_ms = 8080;
    job.recovering_least = 1; /* a scheduler was gone, too */
    (void)look(10);
    go_on(401);
    job.recoveries = 1;
    job.recovering_ms = 8680;
    ck_assert_str_eq(look(10.6), "2 ranks were lost; went on from step 401 after at least 8.68 s");
}
END_TEST

START_TEST(who_comes_late_to_one_that_recovered_before_hears_at_least)
{
    job.recoveries = 1;
    job.ranks_lost = 2;
    job.recovering_ms = 10000; /* of which nothing tells how much is of now */
    recover("");
    (void)look(10);
    go_on(401);
    job.recoveries = 2;
    job.recovering_ms = 10600;
    ck_assert_str_eq(look(10.6), "went on from step 401 after at least 0.60 s");

    recover("");
    (void)look(20);
    go_on(500);
    job.recoveries = 3;
    job.recovering_ms = 10800;
    ck_assert_str_eq(look(20.2), "went on from step 500 after 0.20 s");
}
END_TEST

START_TEST(what_a_scheduler_that_was_gone_did_not_see_is_at_least_so_long)
{
    (void)look(1);
    recover("");
    (void)look(2);
    go_on(0);
    job.recoveries = 2;
    job.ranks_lost = 2;
    job.recovering_ms = 360;
    job.recovering_least = 1;
    ck_assert_ptr_nonnull(strstr(look(60), " after at least 0.36 s"));
    ck_assert_str_eq(cli_comeback_sum(line, sizeof(line), &job, NULL),
                     "2 times (2 ranks lost, at least 0.36 s)");

    recover(""); /* the next one is seen whole */
    (void)look(61);
    go_on(0);
    job.recoveries = 3;
    job.recovering_ms = 560;
    ck_assert_ptr_nonnull(strstr(look(62), " after 0.20 s"));
}
END_TEST

START_TEST(all_ranks_that_were_lost_meanwhile_are_named)
{
    (void)look(1);
    recover("");
    ranks[1].state = (char *)MS_RANK_STATE_LOST;
    ck_assert_str_eq(look(1), "RECOVERING: rank 1 was lost");
    ranks[1].state = (char *)MS_RANK_STATE_PREPARING;
    ranks[11].state = (char *)MS_RANK_STATE_LOST;
    (void)look(2);
    ranks[5].state = (char *)MS_RANK_STATE_LOST;
    (void)look(2);
    go_on(1234);
    ck_assert_str_eq(look(3), "ranks 1, 5 and 11 were lost; went on from step 1234 after 2.00 s");

    recover("");
    for (int i = 0; i < 9; i++) {
        ranks[i].state = (char *)MS_RANK_STATE_LOST;
    }
    (void)look(4);
    go_on(1300);
    ck_assert_str_eq(look(5), "9 ranks were lost; went on from step 1300 after 1.00 s");
}
END_TEST

START_TEST(what_was_too_short_to_be_seen_is_said_too)
{
    job.recoveries = 7;
    job.ranks_lost = 7;
    ck_assert_ptr_null(look(1));
    job.recoveries = 8;
    job.ranks_lost = 9;
    job.recovering_ms = 40;

    ck_assert_str_eq(look(2), "2 ranks were lost; went on from step 1200 after 0.04 s");
    ck_assert_ptr_null(look(3));
}
END_TEST

/* All processes were killed at once: one rank had its next process before anybody was told, and two
 * were lost to a scheduler that called the job RUNNING. */
START_TEST(ranks_that_were_lost_unseen_are_named)
{
    for (uint32_t i = 0; i < 4; i++) {
        ranks[i].pid = 100 + i;
        ranks[i].node_id = (char *)"0";
    }
    (void)look(1);
    ranks[0].state = (char *)MS_RANK_STATE_MISSING;
    ranks[1].state = (char *)MS_RANK_STATE_LOST;
    job.ranks_lost = 1;
    ck_assert_ptr_null(look(2));
    recover("waits for the nodes of ranks 0 2");
    ranks[0].state = (char *)MS_RANK_STATE_LOST;
    ranks[1].state = (char *)MS_RANK_STATE_PREPARING;
    (void)look(3);
    go_on(1100);
    job.ranks_lost = 4;
    job.recoveries = 1;
    ranks[2].pid = 202;
    ranks[3].node_id = (char *)"7"; /* of another host, with the same process id */
    ck_assert_str_eq(look(5), "ranks 0, 1, 2 and 3 were lost; went on from step 1100 after 2.00 s");

    job.recoveries = 2; /* too short to be seen */
    job.ranks_lost = 5;
    ranks[1].pid = 301;
    ck_assert_str_eq(look(6), "rank 1 was lost; went on from step 1100 after 0.00 s");
}
END_TEST

/* It takes each rank for one that comes back until it knows better. */
START_TEST(a_scheduler_that_was_started_again_meanwhile_ends_no_stand_still)
{
    (void)look(1);
    ranks[2].state = (char *)MS_RANK_STATE_LOST;
    recover("waits for node 2 to come back");
    (void)look(2);
    go_on(1200);
    ranks[2].state = (char *)MS_RANK_STATE_MISSING;
    job.reason = (char *)"waits for the nodes of ranks 2";
    ck_assert_ptr_null(look(3));
    ranks[2].state = (char *)MS_RANK_STATE_LOST;
    recover("waits for node 2 to come back");
    ck_assert_ptr_null(look(4));

    go_on(1234);
    ck_assert_str_eq(look(8), "rank 2 was lost; went on from step 1234 after 6.00 s");
}
END_TEST

START_TEST(a_job_that_fails_meanwhile_has_its_own_words)
{
    (void)look(1);
    recover("");
    (void)look(2);
    job.state = (char *)MS_JOB_STATE_FAILED;

    ck_assert_ptr_null(look(3));
}
END_TEST

START_TEST(the_sum_is_there_where_a_rank_was_lost)
{
    ck_assert_ptr_null(cli_comeback_sum(line, sizeof(line), &job, NULL));
    job.recoveries = 3;
    job.ranks_lost = 4;
    job.recovering_ms = 2100;
    ck_assert_str_eq(cli_comeback_sum(line, sizeof(line), &job, NULL),
                     "3 times (4 ranks lost, 2.10 s)");
    recover("waits for node 2");
    ck_assert_str_eq(cli_comeback_sum(line, sizeof(line), &job, NULL),
                     "3 times (4 ranks lost, 2.10 s; stands still now)");
}
END_TEST

START_TEST(a_job_that_has_not_come_back_was_not_recovered_0_times)
{
    recover("waits for node 2");
    job.recoveries = 0;
    job.ranks_lost = 1;
    job.recovering_ms = 0;
    ck_assert_str_eq(cli_comeback_sum(line, sizeof(line), &job, NULL), "1 rank lost, stands still");
    job.recovering_ms = 30000;
    ck_assert_str_eq(cli_comeback_sum(line, sizeof(line), &job, NULL),
                     "1 rank lost, stands still for 30.0 s");
    job.ranks_lost = 2;
    job.state = (char *)MS_JOB_STATE_CANCELLED;
    ck_assert_str_eq(cli_comeback_sum(line, sizeof(line), &job, NULL),
                     "2 ranks lost, it stood still to the end");
}
END_TEST

static const char *sum(const struct cli_still *still)
{
    return cli_comeback_sum(line, sizeof(line), &job, still);
}

/* It was 0.56 s when it went on, and 8.56 s when the scheduler spoke last; its last word is that of
 * the first. */
START_TEST(a_stand_still_to_the_end_is_counted_though_the_job_recovered_before)
{
    job.recoveries = 1;
    job.ranks_lost = 2;
    job.recovering_ms = 563;
    (void)look(1);
    recover("waits for a node");
    job.recovering_ms = 563;
    (void)look(2);
    job.recovering_ms = 8563;
    (void)look(10);
    ck_assert_str_eq(sum(&comeback.still), "1 time (2 ranks lost, 8.56 s; stands still now)");
    job.state = (char *)MS_JOB_STATE_CANCELLED;
    job.recovering_ms = 563;
    (void)look(12);

    ck_assert_str_eq(sum(&comeback.still),
                     "1 time (2 ranks lost, 10.6 s; it stood still to the end for 10.0 s)");
    (void)look(13); /* told again, over another connection */
    ck_assert_uint_eq(comeback.still.ms, 10000);
    json_t *object = cli_json_still(cli_json_job(&job), &job, &comeback.still);
    ck_assert_int_eq(json_integer_value(json_object_get(object, "recovering_ms")), 10563);
    json_decref(object);
}
END_TEST

START_TEST(one_that_never_came_back_stood_still_for_so_long)
{
    (void)look(1);
    recover("waits for a node");
    job.ranks_lost = 1;
    (void)look(2);
    job.state = (char *)MS_JOB_STATE_FAILED;
    (void)look(32);
    ck_assert_str_eq(sum(&comeback.still), "1 rank lost, it stood still to the end for 30.0 s");
}
END_TEST

START_TEST(a_restarted_schedulers_count_takes_nothing_from_what_was_seen)
{
    job.recoveries = 1;
    job.ranks_lost = 2;
    (void)look(1);
    recover("waits for a node");
    job.recovering_ms = 5000;
    (void)look(10);
    job.recovering_ms = 100; /* counted since it is back */
    job.recovering_least = 1;
    (void)look(20);
    job.state = (char *)MS_JOB_STATE_CANCELLED;
    job.recovering_ms = 0;
    (void)look(21);
    ck_assert_uint_eq(comeback.still.ms, 16000);
    ck_assert_int_eq(comeback.still.is_least, 1);
}
END_TEST

/* It ran to its end, and a rank was lost behind its last step: nobody waited for that one. */
START_TEST(one_that_ran_to_its_end_did_not_stand_still)
{
    (void)look(1);
    job.ranks_lost = 1;
    ranks[1].state = (char *)MS_RANK_STATE_LOST;
    (void)look(2);
    job.state = (char *)MS_JOB_STATE_CANCELLED;
    (void)look(3);
    ck_assert_str_eq(sum(&comeback.still), "1 rank lost");
}
END_TEST

/* Who looks when all is over, at a scheduler without events. */
START_TEST(without_a_number_a_rank_that_is_lost_says_that_it_stood_still)
{
    job.state = (char *)MS_JOB_STATE_CANCELLED;
    job.recoveries = 1;
    job.ranks_lost = 2;
    job.recovering_ms = 563;
    ck_assert_str_eq(sum(NULL), "1 time (2 ranks lost, 0.56 s)");
    ranks[3].state = (char *)MS_RANK_STATE_LOST;
    ck_assert_str_eq(sum(NULL), "1 time (2 ranks lost, 0.56 s; then it stood still to the end)");
    job.state = (char *)MS_JOB_STATE_SUCCEEDED; /* it was lost behind the last step */
    ck_assert_str_eq(sum(NULL), "1 time (2 ranks lost, 0.56 s)");
    job.recoveries = 0;
    job.ranks_lost = 1;
    ck_assert_str_eq(sum(NULL), "1 rank lost");
}
END_TEST

struct happened {
    const char *kind;
    int64_t at_ms;
    const char *facts;
};

static struct cli_still still_of(const struct happened *newest, size_t n)
{
    struct cli_still still = {0, 0, 0};
    for (size_t i = 0; i < n; i++) {
        Ms__EventInfo event = MS__EVENT_INFO__INIT;
        event.kind = (char *)newest[i].kind;
        event.at_ms = newest[i].at_ms;
        event.facts = (char *)newest[i].facts;
        if (cli_still_look(&still, &event, 100000)) {
            break;
        }
    }
    return still;
}

START_TEST(events_say_since_when_a_job_stood_still_at_its_end)
{
    static const struct happened stood[] = {
        {"job.cancelled", 100000, "{}"},
        {"job.cancel_asked", 99000, "{}"},
        {"job.recovering", 93000, "{}"},
        {"job.rank_lost", 92000, "{\"how\":\"silent\"}"},
        {"job.rank_lost", 90000, "{\"how\":\"closed\"}"},
        {"job.recovered", 50000, "{}"},
        {"job.rank_lost", 49000, "{\"how\":\"closed\"}"},
    };
    static const struct happened stopped[] = {
        {"job.cancelled", 100000, "{}"},
        {"job.rank_lost", 99500, "{\"how\":\"closed\"}"}, /* by the cancel */
        {"job.cancel_asked", 99000, "{}"},
        {"job.recovered", 50000, "{}"},
    };
    static const struct happened missing[] = {
        {"job.failed", 100000, "{}"},
        {"job.rank_lost", 95000, "{\"how\":\"missing\"}"},
        {"job.adopted", 94000, "{}"},
        {"job.started", 50000, "{}"},
    };
    struct cli_still still = still_of(stood, MS_ARRAY_SIZE(stood));
    ck_assert_int_eq(still.is_known, 1);
    ck_assert_int_eq(still.is_least, 0);
    ck_assert_uint_eq(still.ms, 10000);
    still = still_of(stopped, MS_ARRAY_SIZE(stopped));
    ck_assert_int_eq(still.is_known, 1);
    ck_assert_uint_eq(still.ms, 0);
    still = still_of(missing, MS_ARRAY_SIZE(missing));
    ck_assert_int_eq(still.is_known, 1);
    ck_assert_int_eq(still.is_least, 1);
    ck_assert_uint_eq(still.ms, 5000);
    still = still_of(stood, 3); /* what was before is not kept */
    ck_assert_int_eq(still.is_known, 0);
}
END_TEST

/* ---- on the display ---- */

static char *text;
static size_t text_size;
static FILE *out;
static struct cli_display display;

static void display_setup(int live)
{
    out = open_memstream(&text, &text_size);
    cli_display_init(&display, out, live, 120, NULL);
}

static size_t count_of(const char *what)
{
    size_t n = 0;
    fflush(out);
    for (const char *p = text; (p = strstr(p, what)) != NULL; p++) {
        n++;
    }
    return n;
}

START_TEST(the_line_of_a_job_that_has_to_wait_says_where_it_is_and_for_what)
{
    recover("waits for node 2");

    ck_assert_str_eq(cli_progress_line(line, sizeof(line), 120, &job, 5),
                     "epoch 2/3  step  200/1000  RECOVERING: waits for node 2");
    for (size_t width = 1; width < 80; width++) {
        cli_progress_line(line, sizeof(line), width, &job, 5);
        ck_assert_uint_le(cli_text_columns(line), width);
    }
}
END_TEST

START_TEST(a_log_gets_two_lines_of_a_loss_and_a_terminal_keeps_them)
{
    for (int live = 0; live <= 1; live++) {
        setup();
        display_setup(live);
        cli_display_update(&display, &job, 1000);
        ranks[2].state = (char *)MS_RANK_STATE_LOST;
        recover("waits for node 2");
        cli_display_update(&display, &job, 1001);
        cli_display_update(&display, &job, 1001.1);
        go_on(1234);
        progress.step = 1235;
        cli_display_update(&display, &job, 1001.5);
        cli_display_end(&display);

        ck_assert_uint_eq(count_of("RECOVERING: waits for node 2\n"), 1);
        ck_assert_uint_eq(count_of("rank 2 was lost; went on from step 1234 after 0.50 s\n"), 1);
        ck_assert_uint_eq(count_of("epoch 2/3  step  200/1000  RECOVERING"), live ? 2 : 0);
        fclose(out);
        free(text);
    }
}
END_TEST

START_TEST(a_terminal_never_shows_less_than_it_has_said)
{
    display_setup(1);
    job.generation = progress.generation = 1;
    cli_display_update(&display, &job, 1000);
    recover("waits for node 2");
    cli_display_update(&display, &job, 1001);
    go_on(2001); /* of which the last report knew nothing */
    job.recoveries = 1;
    job.generation = 2;
    cli_display_update(&display, &job, 1002);
    ck_assert_uint_eq(count_of("epoch 3/3  step    1/1000"), 1);
    ck_assert_uint_eq(count_of("epoch 2/3  step  200/1000"), 2);
    progress.generation = 2;
    progress.step = 2002;
    progress.epoch = 3;
    progress.step_in_epoch = 2;
    cli_display_update(&display, &job, 1003);
    ck_assert_uint_eq(count_of("epoch 3/3  step    2/1000"), 1);
    fclose(out);
    free(text);
}
END_TEST

START_TEST(a_scheduler_that_was_started_again_does_not_take_the_progress_away)
{
    display_setup(1);
    cli_display_update(&display, &job, 1000);
    job.progress = NULL;
    job.reason = (char *)"waits for the nodes of ranks 0 1";
    cli_display_update(&display, &job, 1001);
    job.reason = (char *)"";
    cli_display_update(&display, &job, 1002);

    ck_assert_uint_eq(count_of("\repoch 2/3"), 1);
    ck_assert_uint_eq(count_of("epoch 2/3  step  200/1000"), 3);
    ck_assert_uint_eq(count_of("RUNNING: waits for the nodes of ranks 0 1"), 1);
    ck_assert_uint_eq(count_of("before the first step"), 0);
    fclose(out);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_comeback");
    TCase *tc = tcase_create("comeback");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, a_loss_is_said_when_it_begins_and_when_it_is_over);
    tcase_add_test(tc, a_job_that_begins_at_a_checkpoint_says_so);
    tcase_add_test(tc, what_is_trained_again_is_said);
    tcase_add_test(tc, where_it_went_on_is_what_the_scheduler_says);
    tcase_add_test(tc, a_job_that_begins_anew_says_so);
    tcase_add_test(tc, the_schedulers_count_of_time_is_believed);
    tcase_add_test(tc, who_comes_late_hears_how_long_it_stood_still);
    tcase_add_test(tc, who_comes_late_hears_how_many_were_lost_and_how_long_at_least);
    tcase_add_test(tc, who_comes_late_to_one_that_recovered_before_hears_at_least);
    tcase_add_test(tc, what_a_scheduler_that_was_gone_did_not_see_is_at_least_so_long);
    tcase_add_test(tc, all_ranks_that_were_lost_meanwhile_are_named);
    tcase_add_test(tc, what_was_too_short_to_be_seen_is_said_too);
    tcase_add_test(tc, ranks_that_were_lost_unseen_are_named);
    tcase_add_test(tc, a_scheduler_that_was_started_again_meanwhile_ends_no_stand_still);
    tcase_add_test(tc, a_job_that_fails_meanwhile_has_its_own_words);
    tcase_add_test(tc, the_sum_is_there_where_a_rank_was_lost);
    tcase_add_test(tc, a_job_that_has_not_come_back_was_not_recovered_0_times);
    tcase_add_test(tc, a_stand_still_to_the_end_is_counted_though_the_job_recovered_before);
    tcase_add_test(tc, one_that_never_came_back_stood_still_for_so_long);
    tcase_add_test(tc, one_that_ran_to_its_end_did_not_stand_still);
    tcase_add_test(tc, a_restarted_schedulers_count_takes_nothing_from_what_was_seen);
    tcase_add_test(tc, without_a_number_a_rank_that_is_lost_says_that_it_stood_still);
    tcase_add_test(tc, events_say_since_when_a_job_stood_still_at_its_end);
    tcase_add_test(tc, the_line_of_a_job_that_has_to_wait_says_where_it_is_and_for_what);
    tcase_add_test(tc, a_log_gets_two_lines_of_a_loss_and_a_terminal_keeps_them);
    tcase_add_test(tc, a_terminal_never_shows_less_than_it_has_said);
    tcase_add_test(tc, a_scheduler_that_was_started_again_does_not_take_the_progress_away);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
