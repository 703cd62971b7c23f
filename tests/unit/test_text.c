/* test_text.c - what is text and what is not */
#include "proto/text.h"
#include "tests/test.h"

START_TEST(every_code_point_is_taken_back_and_no_surrogate)
{
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        uint8_t bytes[4];
        size_t n = 0;
        uint32_t got = 0;
        if (code < 0x80) {
            bytes[n++] = (uint8_t)code;
        } else if (code < 0x800) {
            bytes[n++] = (uint8_t)(0xc0 | code >> 6);
            bytes[n++] = (uint8_t)(0x80 | (code & 0x3f));
        } else if (code < 0x10000) {
            bytes[n++] = (uint8_t)(0xe0 | code >> 12);
            bytes[n++] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
            bytes[n++] = (uint8_t)(0x80 | (code & 0x3f));
        } else {
            bytes[n++] = (uint8_t)(0xf0 | code >> 18);
            bytes[n++] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
            bytes[n++] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
            bytes[n++] = (uint8_t)(0x80 | (code & 0x3f));
        }
        /* plain comparisons: Check writes a message for each of its own, and these are millions */
        size_t want = code >= 0xd800 && code <= 0xdfff ? 0 : n;
        int good = ms_utf8_take(bytes, n, &got) == want && (want == 0 || got == code);
        for (size_t cut = 0; cut < n; cut++) {
            good = good && ms_utf8_take(bytes, cut, &got) == 0;
        }
        if (!good) {
            ck_abort_msg("U+%04X", code);
        }
    }
}
END_TEST

START_TEST(wrong_sequences_are_no_text)
{
    static const char *const wrong[] = {
        "\x80",             /* a continuation without a beginning */
        "\xc0\x80",         /* overlong NUL */
        "\xc1\xbf",         /* overlong DEL */
        "\xe0\x9f\xbf",     /* overlong */
        "\xf0\x8f\xbf\xbf", /* overlong */
        "\xed\xa0\x80",     /* a surrogate */
        "\xf4\x90\x80\x80", /* U+110000 */
        "\xf5\x80\x80\x80",
        "\xff",
        "\xc3(",
        "\xe2\x82",
        "\xf0\x9f\x98",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char text[16];
        uint32_t code = 0;
        snprintf(text, sizeof(text), "ok%s", wrong[i]);
        ck_assert_msg(!ms_text_is_valid(text, MS_TEXT_LINES), "case %zu", i);
        ck_assert_uint_eq(ms_text_check((uint8_t *)text, strlen(text), MS_TEXT_LINES, &code), 2);
        ck_assert_uint_eq(code, UINT32_MAX);
    }
}
END_TEST

START_TEST(controls_are_no_text)
{
    static const char *const controls[] = {
        "\x01",
        "\x1b",
        "\x7f",
        "\xc2\x80",
        "\xc2\x9b",
        "\xc2\x9f",
        /* C1 */ "\xd8\x9c", /* U+061C */
        "\xe2\x80\x8e",
        "\xe2\x80\x8f",
        "\xe2\x80\xa8",
        "\xe2\x80\xaa",
        "\xe2\x80\xae",
        "\xe2\x81\xa6",
        "\xe2\x81\xa9",
    };
    static const char *const fine[] = {"\xc2\xa0",     "\xc3\xa9",     "\xe2\x80\x8d", /* ZWJ */
                                       "\xe2\x80\xaf", "\xe4\xb8\xad", "\xf0\x9f\x9a\x80", ""};
    for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
        ck_assert_msg(!ms_text_is_valid(controls[i], MS_TEXT_LINES), "case %zu", i);
    }
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
        ck_assert_msg(ms_text_is_valid(fine[i], MS_TEXT_LINE), "case %zu", i);
    }
    ck_assert(ms_text_is_valid("one\n\ttwo", MS_TEXT_LINES));
    ck_assert(!ms_text_is_valid("one\ntwo", MS_TEXT_LINE));
    ck_assert(!ms_text_is_valid("one\rtwo", MS_TEXT_LINES));
}
END_TEST

START_TEST(mending_keeps_the_length_and_leaves_text)
{
    char text[] = "a\nb\xff"
                  "c\xe2\x80\xae"
                  "d\xc3\xa9\xc3";
    char prose[] = "a\n\x1b";
    size_t size = strlen(text);
    ms_text_mend((uint8_t *)text, size, MS_TEXT_LINE);
    ck_assert_str_eq(text, "a b?c???d\xc3\xa9?");
    ms_text_mend((uint8_t *)prose, 3, MS_TEXT_LINES);
    ck_assert_str_eq(prose, "a\n?");
}
END_TEST

START_TEST(what_is_cut_ends_with_a_whole_letter)
{
    static const char text[] = "a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x9a\x80z"; /* 1, 2, 3, 4, 1 bytes */
    static const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
    for (size_t n = 0; n < sizeof(text); n++) {
        char copy[sizeof(text)];
        memset(copy, '#', sizeof(copy));
        ms_text_copy(copy, n + 1, text);
        ck_assert_msg(strlen(copy) == whole[n] && memcmp(copy, text, whole[n]) == 0,
                      "%zu bytes: %s", n, copy);
        ck_assert_uint_eq(ms_text_whole(text, n), whole[n]);
    }
    char copy[3] = "#";
    ms_text_copy(copy, sizeof(copy), "\x80\x80\x80\x80"); /* no letter begins there */
    ck_assert_str_eq(copy, "\x80\x80");
}
END_TEST

START_TEST(what_is_shortened_says_so_and_has_whole_letters)
{
    char dst[12];
    ck_assert_str_eq(ms_text_begin(dst, sizeof(dst), "12345678901"), "12345678901");
    ck_assert_str_eq(ms_text_begin(dst, sizeof(dst), "123456789012"), "12345678...");
    ck_assert_str_eq(ms_text_begin(dst, sizeof(dst),
                                   "1234567\xc3\xbc"
                                   "9012"),
                     "1234567...");
    ck_assert_str_eq(ms_text_end(dst, sizeof(dst), "12345678901"), "12345678901");
    ck_assert_str_eq(ms_text_end(dst, sizeof(dst), "123456789012"), "...56789012");
    ck_assert_str_eq(ms_text_end(dst, sizeof(dst),
                                 "1234\xc3\xbc"
                                 "6789012"),
                     "...6789012");
}
END_TEST

START_TEST(what_is_shortened_to_words_ends_behind_one)
{
    char dst[12];
    ck_assert_str_eq(ms_text_words(dst, sizeof(dst), "/data /opt/"), "/data /opt/");
    ck_assert_str_eq(ms_text_words(dst, sizeof(dst), "/data / /opt"), "/data / ...");
    ck_assert_str_eq(ms_text_words(dst, sizeof(dst), "/data /home /opt"), "/data ...");
    ck_assert_str_eq(ms_text_words(dst, sizeof(dst), "/srv:/home:/opt"), "/srv ...");
    ck_assert_str_eq(ms_text_words(dst, sizeof(dst), "/srv : /home /opt"), "/srv ...");
    ck_assert_str_eq(ms_text_words(dst, sizeof(dst), "/a/path/of/one"), "/a/path/...");
    ck_assert_str_eq(ms_text_words(dst, sizeof(dst), "a /path/of/one"), "a ...");
}
END_TEST

START_TEST(a_list_of_names_ends_with_dots_where_it_is_full)
{
    char list[20] = "";
    ck_assert_int_eq(ms_text_list(list, sizeof(list), "one", 3, ""), 1);
    ck_assert_int_eq(ms_text_list(list, sizeof(list), "twofold", 3, "'"), 1);
    ck_assert_str_eq(list, "one, 'two'");
    ck_assert_int_eq(ms_text_list(list, sizeof(list), "three", 5, ""), 0);
    ck_assert_str_eq(list, "one, 'two', ...");
    char tight[8] = "";
    ck_assert_int_eq(ms_text_list(tight, sizeof(tight), "abc", 3, ""), 0); /* and ", ..." behind */
    ck_assert_str_eq(tight, "...");
    char last[16] = "";
    ck_assert_int_eq(ms_text_list(last, sizeof(last), "12345", 5, "'"), 1);
    ck_assert_int_eq(ms_text_list(last, sizeof(last), "67", 2, ""), 0);
    ck_assert_str_eq(last, "'12345', ...");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *tc = tcase_create("text");
    tcase_add_test(tc, every_code_point_is_taken_back_and_no_surrogate);
    tcase_add_test(tc, wrong_sequences_are_no_text);
    tcase_add_test(tc, controls_are_no_text);
    tcase_add_test(tc, mending_keeps_the_length_and_leaves_text);
    tcase_add_test(tc, what_is_cut_ends_with_a_whole_letter);
    tcase_add_test(tc, what_is_shortened_says_so_and_has_whole_letters);
    tcase_add_test(tc, what_is_shortened_to_words_ends_behind_one);
    tcase_add_test(tc, a_list_of_names_ends_with_dots_where_it_is_full);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
