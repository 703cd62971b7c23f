/* test_cli_clean.c - what others wrote does not command the terminal, nor forge lines of ours */
#include "cli/clean.h"

#include "proto/cluster.pb-c.h"
#include "tests/test.h"

static char *filtered(const char *const *pieces, const size_t *sizes, size_t n)
{
    struct cli_filter filter = {{0}, 0};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = sizes != NULL ? sizes[i] : strlen(pieces[i]);
        cli_filter_write(&filter, out, pieces[i], bytes, i + 1 == n);
    }
    fclose(out);
    return text;
}

static void ck_filtered(const char *bytes, const char *want)
{
    char *text = filtered(&bytes, NULL, 1);
    ck_assert_str_eq(text, want);
    free(text);
}

START_TEST(plain_lines_pass_as_they_are)
{
    ck_filtered("epoch: 1 step: 2, loss is 0.5\n\tGröße 日本\n",
                "epoch: 1 step: 2, loss is 0.5\n\tGröße 日本\n");
}
END_TEST

START_TEST(escape_sequences_and_controls_are_shown)
{
    ck_filtered("a\x1b[2Jb\r\x07\x7f", "a?[2Jb???");
    ck_filtered("c1 \xc2\x9b"
                "2J",
                "c1 ?2J");
    ck_filtered("\xe2\x80\xae"
                "evil",
                "?evil");
    ck_filtered("\xff\xc0\x80\xed\xa0\x80", "??????");
}
END_TEST

START_TEST(character_that_is_torn_between_two_pieces_is_whole)
{
    static const char text[] = "x日\xf0\x9f\x9a\x80ö";
    size_t n = strlen(text);
    for (size_t cut = 1; cut < n; cut++) {
        for (size_t next = cut; next < n; next++) {
            const char *const pieces[] = {text, text + cut, text + next};
            const size_t sizes[] = {cut, next - cut, n - next};
            char *got = filtered(pieces, sizes, 3);
            ck_assert_str_eq(got, text);
            free(got);
        }
    }
}
END_TEST

START_TEST(torn_character_that_is_never_finished_is_none)
{
    const char *const pieces[] = {"a\xe6\x97", "b"};
    char *got = filtered(pieces, NULL, 2);
    ck_assert_str_eq(got, "a??b");
    free(got);
    ck_filtered("a\xe6\x97", "a??");
}
END_TEST

START_TEST(escape_that_is_torn_is_shown_too)
{
    const char *const pieces[] = {"a\xc2", "\x9b", "2J"};
    char *got = filtered(pieces, NULL, 3);
    ck_assert_str_eq(got, "a?2J");
    free(got);
}
END_TEST

START_TEST(every_string_of_a_message_becomes_a_line)
{
    Ms__JobUpdate update = MS__JOB_UPDATE__INIT;
    Ms__JobInfo job = MS__JOB_INFO__INIT;
    Ms__RankInfo rank = MS__RANK_INFO__INIT;
    Ms__RankInfo *ranks[] = {&rank};
    char reason[] = "cancelled by bob: x\njob 8 SUCCEEDED";
    char path[] = "/run/\x1b]0;title\x07.log";
    job.reason = reason;
    rank.log_path = path;
    job.ranks = ranks;
    job.n_ranks = 1;
    update.job = &job;

    cli_clean_message(&update.base);

    ck_assert_str_eq(job.reason, "cancelled by bob: x job 8 SUCCEEDED");
    ck_assert_str_eq(rank.log_path, "/run/?]0;title?.log");
    ck_assert_str_eq(job.name, "");
}
END_TEST

START_TEST(text_of_a_plan_keeps_its_lines)
{
    Ms__JobInfo job = MS__JOB_INFO__INIT;
    char plan[] = "msched plan 1\nsection bits\nnetwork \x1b[2J\n";
    job.plan = plan;

    cli_clean_message(&job.base);

    ck_assert_str_eq(job.plan, "msched plan 1\nsection bits\nnetwork ?[2J\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_clean");
    TCase *tc = tcase_create("clean");
    tcase_add_test(tc, plain_lines_pass_as_they_are);
    tcase_add_test(tc, escape_sequences_and_controls_are_shown);
    tcase_add_test(tc, character_that_is_torn_between_two_pieces_is_whole);
    tcase_add_test(tc, torn_character_that_is_never_finished_is_none);
    tcase_add_test(tc, escape_that_is_torn_is_shown_too);
    tcase_add_test(tc, every_string_of_a_message_becomes_a_line);
    tcase_add_test(tc, text_of_a_plan_keeps_its_lines);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
