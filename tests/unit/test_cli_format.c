/* test_cli_format.c - numbers, times, texts and tables as people read them */
#include "cli/format.h"
#include "cli/table.h"
#include "tests/test.h"

#include <math.h>

static char buf[CLI_FORMAT_MAX];

START_TEST(durations_read_as_clocks_from_a_minute_on)
{
    ck_assert_str_eq(cli_format_duration(buf, 0), "0.00 s");
    ck_assert_str_eq(cli_format_duration(buf, 0.4249), "0.42 s");
    ck_assert_str_eq(cli_format_duration(buf, 9.996), "10.0 s");
    ck_assert_str_eq(cli_format_duration(buf, 59.96), "1:00");
    ck_assert_str_eq(cli_format_duration(buf, 83), "1:23");
    ck_assert_str_eq(cli_format_duration(buf, 7384), "2:03:04");
    ck_assert_str_eq(cli_format_duration(buf, 3 * 86400 + 7384), "3d 02:03:04");
    ck_assert_str_eq(cli_format_duration(buf, -1), "-");
    ck_assert_str_eq(cli_format_duration(buf, NAN), "-");
    ck_assert_str_eq(cli_format_eta(buf, 12.4), "12 s");
    ck_assert_str_eq(cli_format_eta(buf, 59.5), "1:00");
    ck_assert_str_eq(cli_format_eta(buf, INFINITY), "-");
}
END_TEST

START_TEST(counts_and_bytes_have_groups_and_units)
{
    ck_assert_str_eq(cli_format_count(buf, 0), "0");
    ck_assert_str_eq(cli_format_count(buf, 999), "999");
    ck_assert_str_eq(cli_format_count(buf, 1000), "1,000");
    ck_assert_str_eq(cli_format_count(buf, 1234567), "1,234,567");
    ck_assert_str_eq(cli_format_count(buf, UINT64_MAX), "18,446,744,073,709,551,615");
    ck_assert_str_eq(cli_format_bytes(buf, 512), "512 B");
    ck_assert_str_eq(cli_format_bytes(buf, 1536), "1.5 KiB");
    ck_assert_str_eq(cli_format_bytes(buf, (1ULL << 30) - 1), "1.0 GiB");
    ck_assert_str_eq(cli_format_bytes(buf, UINT64_MAX), "16.0 EiB");
}
END_TEST

START_TEST(reals_keep_three_digits_and_say_when_they_are_none)
{
    ck_assert_str_eq(cli_format_real(buf, 2.3026), "2.3026");
    ck_assert_str_eq(cli_format_real(buf, 39.44), "39.4");
    ck_assert_str_eq(cli_format_real(buf, 812.4), "812");
    ck_assert_str_eq(cli_format_real(buf, 0.0000123), "1.23e-05");
    ck_assert_str_eq(cli_format_real(buf, 0), "0.0000");
    ck_assert_str_eq(cli_format_real(buf, NAN), "nan");
    ck_assert_str_eq(cli_format_real(buf, -INFINITY), "-inf");
    ck_assert_str_eq(cli_format_rate(buf, 0.13612), "0.1361");
    ck_assert_str_eq(cli_format_rate(buf, 81.44), "81.4");
    ck_assert_str_eq(cli_format_rate(buf, 99.96), "100");
    ck_assert_str_eq(cli_format_rate(buf, 1812.3), "1,812");
    ck_assert_str_eq(cli_format_rate(buf, NAN), "nan");
    ck_assert_str_eq(cli_format_ms(buf, 39.44), "39.4 ms");
    ck_assert_str_eq(cli_format_ms(buf, 9999), "9999 ms");
    ck_assert_str_eq(cli_format_ms(buf, 14694), "14.7 s");
    ck_assert_str_eq(cli_format_ms(buf, 123000), "2:03");
}
END_TEST

START_TEST(times_that_never_were_are_dashes)
{
    setenv("TZ", "UTC", 1);
    ck_assert_str_eq(cli_format_time(buf, 1795247932708), "2026-11-21 07:58:52");
    ck_assert_str_eq(cli_format_time(buf, 0), "-");
}
END_TEST

START_TEST(short_times_say_what_is_not_plain)
{
    const int64_t now = 1795247932708;
    setenv("TZ", "UTC", 1);
    ck_assert_str_eq(cli_format_time_short(buf, now - 1000, now), "07:58:51");
    ck_assert_str_eq(cli_format_time_short(buf, now - 86400000, now), "11-20 07:58");
    ck_assert_str_eq(cli_format_time_short(buf, now - 365 * 86400000LL, now), "2025-11-21");
    ck_assert_str_eq(cli_format_time_short(buf, 0, now), "-");
}
END_TEST

START_TEST(texts_break_at_blanks_and_words_stay_whole)
{
    ck_assert_uint_eq(cli_text_break("one two three", 7), 7);
    ck_assert_uint_eq(cli_text_break("one two three", 9), 7);
    ck_assert_uint_eq(cli_text_break("one two three", 13), 13);
    ck_assert_uint_eq(cli_text_break("0123456789 a", 4), 10);
    ck_assert_uint_eq(cli_text_break("日本 日本", 8), 6);
}
END_TEST

START_TEST(texts_are_cut_between_characters)
{
    char dst[32];
    ck_assert_uint_eq(cli_text_columns("Gr\xc3\xb6\xc3\x9f"
                                       "e"),
                      5);
    ck_assert_str_eq(cli_text_fit(dst, sizeof(dst),
                                  "Gr\xc3\xb6\xc3\x9f"
                                  "e",
                                  5),
                     "Gr\xc3\xb6\xc3\x9f"
                     "e");
    ck_assert_str_eq(cli_text_fit(dst, sizeof(dst), "abcdefghij", 8), "abcde...");
    ck_assert_str_eq(cli_text_fit(dst, sizeof(dst), "\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6", 3),
                     "\xc3\xb6\xc3\xb6.");
    ck_assert_str_eq(cli_text_fit(dst, sizeof(dst), "abc", 0), "");
    ck_assert_str_eq(cli_text_fit(dst, 6, "ab\xc3\xb6\xc3\xb6", 9), "ab\xc3\xb6");
    ck_assert_str_eq(cli_text_fit(dst, sizeof(dst), "a\x1b[31mb\n", 20), "a?[31mb ");
}
END_TEST

START_TEST(bars_grow_with_the_part_that_is_done)
{
    char dst[64];
    ck_assert_str_eq(cli_bar(dst, sizeof(dst), 12, 0), "[          ]");
    ck_assert_str_eq(cli_bar(dst, sizeof(dst), 12, 0.5), "[=====>    ]");
    ck_assert_str_eq(cli_bar(dst, sizeof(dst), 12, 1), "[==========]");
    ck_assert_str_eq(cli_bar(dst, sizeof(dst), 12, 7), "[==========]");
    ck_assert_str_eq(cli_bar(dst, sizeof(dst), 12, NAN), "[          ]");
    ck_assert_uint_eq(strlen(cli_bar(dst, sizeof(dst), 1, 0.5)), 4);
    ck_assert_uint_eq(strlen(cli_bar(dst, 10, 50, 0.5)), 9);
}
END_TEST

START_TEST(sparklines_fall_where_the_values_fall)
{
    char dst[256];
    const double falling[] = {8, 7, 6, 5, 4, 3, 2, 1};
    const double broken[] = {1, NAN, 2};
    const double flat[] = {3, 3, 3};
    ck_assert_str_eq(cli_sparkline(dst, sizeof(dst), falling, 8, 8, 0), "#*+=:-._");
    ck_assert_str_eq(cli_sparkline(dst, sizeof(dst), falling, 8, 4, 0), "#+-_");
    ck_assert_str_eq(cli_sparkline(dst, sizeof(dst), falling, 2, 8, 1), "█▁");
    ck_assert_str_eq(cli_sparkline(dst, sizeof(dst), broken, 3, 8, 0), "_!#");
    ck_assert_str_eq(cli_sparkline(dst, sizeof(dst), flat, 3, 8, 0), "___");
    ck_assert_str_eq(cli_sparkline(dst, sizeof(dst), flat, 0, 8, 0), "");
}
END_TEST

/* ---- tables ---- */

static const struct cli_column columns[] = {
    {"JOB", CLI_RIGHT, 0, 0}, {"STATE", CLI_STATE, 0, 0}, {"REASON", CLI_LEFT, 1, 8}};

static char *print_table(size_t width, int colour)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct cli_table *table = cli_table_create(columns, 3);
    ck_ms_ok(cli_table_add(table, (const char *const[]){"7", "RUNNING", NULL}, err));
    ck_ms_ok(cli_table_add(
        table, (const char *const[]){"12345", "FAILED", "rank 3 was lost because of a fire"}, err));
    cli_table_print(table, out, width, colour);
    cli_table_destroy(table);
    fclose(out);
    return text;
}

START_TEST(a_table_aligns_and_cuts_nothing_in_a_pipe)
{
    char *text = print_table(0, 0);

    ck_assert_str_eq(text, "  JOB  STATE    REASON\n"
                           "    7  RUNNING  \n"
                           "12345  FAILED   rank 3 was lost because of a fire\n");
    free(text);
}
END_TEST

START_TEST(a_narrow_terminal_cuts_what_gives_way_and_no_more)
{
    char *text = print_table(30, 0);

    ck_assert_str_eq(text, "  JOB  STATE    REASON\n"
                           "    7  RUNNING  \n"
                           "12345  FAILED   rank 3 was ...\n");
    free(text);
    text = print_table(5, 0);
    ck_assert_msg(strstr(text, "12345  FAILED   rank.\n") != NULL, "%s", text); /* the least */
    free(text);
}
END_TEST

/* Widest line of a table, in columns. */
static size_t widest(const char *text)
{
    size_t most = 0;
    char line[256];
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)n, text);
        most = cli_text_columns(line) > most ? cli_text_columns(line) : most;
        text += n + (text[n] == '\n');
    }
    return most;
}

START_TEST(columns_give_way_in_their_order_until_all_fits)
{
    static const struct cli_column many[] = {
        {"ID", CLI_RIGHT, 0, 0},
        {"NAME", CLI_LEFT, 2, 6},
        {"WHEN", CLI_LEFT, 1, 0},
        {"WHY", CLI_LEFT, 3, 8},
    };
    for (size_t width = 24; width <= 90; width++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        struct cli_table *table = cli_table_create(many, 4);
        ck_ms_ok(
            cli_table_add(table,
                          (const char *const[]){"17", "a-rather-long-name", "2026-11-21 07:58:52",
                                                "waits for 9 idle nodes: 3 registered"},
                          err));
        cli_table_print(table, out, width, 0);
        cli_table_destroy(table);
        fclose(out);
        ck_assert_msg(widest(text) <= width, "width %zu:\n%s", width, text);
        ck_assert_msg(strstr(text, "17") != NULL, "%s", text);
        if (width == 62) { /* without the date all the rest has its room */
            ck_assert_ptr_null(strstr(text, "WHEN"));
            ck_assert_ptr_nonnull(
                strstr(text, "a-rather-long-name  waits for 9 idle nodes: 3 reg"));
        }
        if (width == 90) {
            ck_assert_ptr_nonnull(strstr(text, "2026-11-21 07:58:52"));
        }
        free(text);
    }
}
END_TEST

/* Jobs after a restore: ids of twelve digits. */
START_TEST(dear_numbers_stay_and_texts_take_the_room_of_empty_cells)
{
    static const struct cli_column jobs[] = {
        {"JOB", CLI_RIGHT, 0, 0},   {"NAME", CLI_LEFT, 2, 12}, {"OWNER", CLI_LEFT, 4, 8},
        {"STATE", CLI_STATE, 0, 0}, {"STEP", CLI_DEAR, 9, 0},  {"LOSS", CLI_DEAR, 7, 0},
        {"WHEN", CLI_LEFT, 1, 0},   {"TIME", CLI_DEAR, 8, 0},  {"REASON", CLI_TEXT, 3, 20},
    };
    static const char *const rows[][9] = {
        {"217508656636", "mnist-training", "alice", "RUNNING", "1200/30000", "0.1234",
         "2026-11-21 07:58:52", "1:23", ""},
        {"217508656640", "mnist-training", "alice", "QUEUED", "", "", "2026-11-21 07:58:52", "",
         "waits for 9 idle nodes: 3 are registered, 2 idle"},
    };
    for (size_t width = 30; width <= 160; width++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        struct cli_table *table = cli_table_create(jobs, MS_ARRAY_SIZE(jobs));
        for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
            ck_ms_ok(cli_table_add(table, rows[i], err));
        }
        cli_table_print(table, out, width, 0);
        fclose(out);
        ck_assert_msg(width < 42 || widest(text) <= width, "width %zu:\n%s", width, text);
        if (width >= 78) {
            ck_assert_msg(strstr(text, "1200/30000  0.1234") != NULL, "%s", text);
            ck_assert_msg(strstr(text, "  1:23") != NULL, "%s", text);
            ck_assert_msg(strstr(text, "  waits for 9 idle nodes: 3 ") != NULL, "%s", text);
        }
        if (width >= cli_table_width(table)) {
            ck_assert_msg(strstr(text, "2 idle\n") != NULL, "%s", text);
        }
        cli_table_destroy(table);
        free(text);
    }
}
END_TEST

START_TEST(wide_characters_take_two_columns_and_accents_none)
{
    char dst[32];
    ck_assert_uint_eq(cli_text_columns("日本"), 4);
    ck_assert_uint_eq(cli_text_columns("e\xcc\x81"), 1);        /* e and a combining acute */
    ck_assert_uint_eq(cli_text_columns("\xf0\x9f\x9a\x80"), 2); /* a rocket */
    ck_assert_uint_eq(cli_text_columns("\xff\xfe"), 2);         /* no UTF-8: a '?' each */
    ck_assert_uint_eq(cli_text_bytes_of("日本", 3), 3);
    ck_assert_str_eq(cli_text_fit(dst, sizeof(dst), "日本語日本語", 8), "日本...");
    ck_assert_str_eq(cli_text_fit(dst, sizeof(dst), "日本語", 6), "日本語");
}
END_TEST

START_TEST(controls_of_every_kind_are_shown_and_not_obeyed)
{
    char dst[64];
    ck_assert_str_eq(cli_text_fit(dst, sizeof(dst), "a\x1b[31mb", 20), "a?[31mb");
    ck_assert_ptr_null(strstr(cli_text_fit(dst, sizeof(dst),
                                           "a\xc2\x9b"
                                           "31m",
                                           20),
                              "\xc2\x9b"));
    ck_assert_ptr_null(
        strstr(cli_text_fit(dst, sizeof(dst), "a\xe2\x80\xaegnp.exe", 20), "\xe2\x80\xae"));
}
END_TEST

START_TEST(colours_stand_around_states_and_do_not_move_columns)
{
    char *text = print_table(0, 1);

    ck_assert_ptr_nonnull(strstr(text, "\x1b[31mFAILED\x1b[0m   rank"));
    ck_assert_ptr_nonnull(strstr(text, "\x1b[36mRUNNING\x1b[0m  "));
    free(text);
    ck_assert_str_eq(cli_state_colour("something"), "");
}
END_TEST

START_TEST(a_table_grows_beyond_its_first_room)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct cli_table *table = cli_table_create(columns, 3);
    for (int i = 0; i < 100; i++) {
        ck_ms_ok(cli_table_add(table, (const char *const[]){"1", "2", "3"}, err));
    }
    cli_table_print(table, out, 0, 0);
    cli_table_destroy(table);
    fclose(out);

    size_t lines = 0;
    for (const char *p = text; *p != '\0'; p++) {
        lines += *p == '\n';
    }
    ck_assert_uint_eq(lines, 101);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_format");
    TCase *tc = tcase_create("format");
    tcase_add_test(tc, durations_read_as_clocks_from_a_minute_on);
    tcase_add_test(tc, counts_and_bytes_have_groups_and_units);
    tcase_add_test(tc, reals_keep_three_digits_and_say_when_they_are_none);
    tcase_add_test(tc, times_that_never_were_are_dashes);
    tcase_add_test(tc, short_times_say_what_is_not_plain);
    tcase_add_test(tc, texts_break_at_blanks_and_words_stay_whole);
    tcase_add_test(tc, texts_are_cut_between_characters);
    tcase_add_test(tc, bars_grow_with_the_part_that_is_done);
    tcase_add_test(tc, sparklines_fall_where_the_values_fall);
    tcase_add_test(tc, a_table_aligns_and_cuts_nothing_in_a_pipe);
    tcase_add_test(tc, a_narrow_terminal_cuts_what_gives_way_and_no_more);
    tcase_add_test(tc, columns_give_way_in_their_order_until_all_fits);
    tcase_add_test(tc, dear_numbers_stay_and_texts_take_the_room_of_empty_cells);
    tcase_add_test(tc, wide_characters_take_two_columns_and_accents_none);
    tcase_add_test(tc, controls_of_every_kind_are_shown_and_not_obeyed);
    tcase_add_test(tc, colours_stand_around_states_and_do_not_move_columns);
    tcase_add_test(tc, a_table_grows_beyond_its_first_room);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
