/* test_text_windows.c - text as windows of tokens: which bytes a record and its labels are, files
 * and parts, splits and batches; errors with the file
 */
#include "libworker/data/data.h"
#include "libworker/data/vocabulary.h"
#include "proto/rng.h"
#include "tests/unit/data_files.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *dir;

static struct data_spec spec_of(const char *name, int64_t tokens)
{
    struct data_spec spec = {.kind = DATA_TEXT, .tokens = tokens};
    snprintf(spec.path, sizeof(spec.path), "%s/%s", dir, name);
    return spec;
}

static struct data_source *opened(const struct data_spec *spec)
{
    struct data_source *source = NULL;
    ck_ms_ok(data_open(spec, &source, err));
    return source;
}

/* A record is these bytes, and its labels are `behind`. */
static void ck_window(struct data_source *source, int64_t row, const char *bytes,
                      const char *behind)
{
    const size_t n = strlen(bytes);
    struct data_record record;
    ck_ms_ok(data_read(source, row, &record, err));
    ck_assert_mem_eq(record.values, bytes, n);
    ck_assert_int_eq(record.label, -1);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(record.labels[i], (uint8_t)behind[i]);
    }
}

START_TEST(a_window_has_the_tokens_behind_its_own_as_labels)
{
    file_write(dir, "t.txt", "abcdefgh\xE4", 9);
    struct data_spec spec = spec_of("t.txt", 4);
    struct data_source *source = opened(&spec);
    const struct data_info *info = data_get_info(source);
    ck_assert_int_eq(info->rows, 2);
    ck_assert_int_eq(info->channels, 4);
    ck_assert_int_eq(info->height * info->width, 1);
    ck_assert_int_eq(info->tokens, 4);
    ck_assert_int_eq(info->classes, 256);
    ck_assert_int_eq(info->dtype, MS_U8);
    ck_window(source, 1, "efgh", "fgh\xE4");
    ck_window(source, 0, "abcd", "bcde");
    char name[256];
    data_name_record(source, 1, name, sizeof(name));
    ck_assert_ptr_nonnull(strstr(name, "t.txt: the 4 bytes from byte 4 on"));
    data_close(source);
    spec.tokens = 8; /* the ninth byte is a label alone */
    source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->rows, 1);
    data_close(source);
}
END_TEST

/* In the order of their names; a window ends with its file. */
START_TEST(texts_of_a_folder_stand_one_behind_the_other)
{
    file_write(dir, "b.txt", "0123456", 7);
    file_write(dir, "a.txt", "uvwxyz", 6);
    file_write(dir, "c.txt", "klmnop", 6);
    file_write(dir, ".hidden.txt", "------", 6);
    file_write(dir, "notes.md", "------", 6);
    struct data_spec spec = spec_of("", 3);
    struct data_source *source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->rows, 4);
    ck_window(source, 0, "uvw", "vwx");
    ck_window(source, 1, "012", "123");
    ck_window(source, 2, "345", "456");
    ck_window(source, 3, "klm", "lmn");
    data_close(source);
}
END_TEST

START_TEST(parts_are_the_files_of_their_names)
{
    file_write(dir, "train.txt", "abcdefg", 7);
    file_write(dir, "test.txt", "ABCD", 4);
    struct data_spec spec = spec_of("", 3);
    struct data_source *source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->rows, 2);
    data_close(source);
    spec.usage = DATA_TEST;
    source = opened(&spec);
    ck_window(source, 0, "ABC", "BCD");
    data_close(source);
    spec.has_split = 1;
    spec.split = (struct data_spec_split){0.5, 1};
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID,
                "has parts of its own (train.txt, test.txt), and");
}
END_TEST

START_TEST(a_split_has_each_window_once)
{
    char text[401];
    int n_seen[100] = {0};
    for (int i = 0; i < 401; i++) {
        text[i] = (char)(i / 4);
    }
    file_write(dir, "t.txt", text, sizeof(text));
    for (int usage = DATA_TRAIN; usage <= DATA_TEST; usage++) {
        struct data_spec spec = spec_of("t.txt", 4);
        spec.usage = (enum data_usage)usage;
        spec.has_split = 1;
        spec.split = (struct data_spec_split){0.2, 7};
        struct data_source *source = opened(&spec);
        ck_assert_int_eq(data_get_info(source)->rows, usage == DATA_TEST ? 20 : 80);
        ck_assert_int_eq(data_get_info(source)->tokens, 4);
        for (int64_t row = 0; row < data_get_info(source)->rows; row++) {
            struct data_record record;
            ck_ms_ok(data_read(source, row, &record, err));
            n_seen[*(const uint8_t *)record.values]++;
            ck_assert_int_eq(record.labels[2], *(const uint8_t *)record.values);
        }
        data_close(source);
    }
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(n_seen[i], 1);
    }
}
END_TEST

/* Windows are wider than images have channels. */
START_TEST(batches_have_a_label_a_token)
{
    enum { TOKENS = 40, SIZE = 3 * TOKENS + 1 };
    uint8_t text[SIZE];
    for (int i = 0; i < SIZE; i++) {
        text[i] = (uint8_t)(7 * i);
    }
    file_write(dir, "t.txt", text, SIZE);
    struct data_spec spec = spec_of("t.txt", TOKENS);
    struct data_source *source = opened(&spec);
    const struct loader_config cfg = {
        .source = source, .batch = 2, .world = 1, .evaluation = 1, .seed = 1};
    struct loader *loader = NULL;
    struct loader_info info;
    struct batch batch;
    ck_ms_ok(loader_create(&cfg, &loader, err));
    loader_get_info(loader, &info);
    ck_assert_int_eq(info.tokens, TOKENS);
    ck_assert_int_eq(loader_next(loader, &batch, NULL), 1);
    ck_assert_uint_eq(batch.images.count, 2 * TOKENS);
    ck_assert_uint_eq(batch.labels.count, 2 * TOKENS);
    ck_assert_int_eq(batch.labels.dtype, MS_I32);
    for (int i = 0; i < 2 * TOKENS; i++) {
        ck_assert_float_eq(((const float *)batch.images.values)[i], (float)text[i]);
        ck_assert_int_eq(((const int32_t *)batch.labels.values)[i], text[i + 1]);
    }
    loader_release(loader);
    ck_assert_int_eq(loader_next(loader, &batch, NULL), 1);
    ck_assert_int_eq(batch.rows, 1);
    ck_assert_int_eq(((const int32_t *)batch.labels.values)[TOKENS - 1], text[SIZE - 1]);
    ck_assert_int_eq(((const int32_t *)batch.labels.values)[TOKENS], 0);
    loader_release(loader);
    loader_destroy(loader);
    data_close(source);
}
END_TEST

/* Two texts that differ in a label alone are not the same data. */
START_TEST(the_last_label_tells_texts_apart)
{
    struct data_identity ids[2];
    for (int i = 0; i < 2; i++) {
        file_write(dir, "t.txt", i == 0 ? "abcdX" : "abcdY", 5);
        struct data_spec spec = spec_of("t.txt", 4);
        struct data_source *source = opened(&spec);
        ck_ms_ok(data_identify(source, &ids[i], err));
        data_close(source);
    }
    ck_assert(!data_identity_is_same(&ids[0], &ids[1]));
}
END_TEST

/* ---- words ---- */

static struct data_spec spec_of_words(const char *words, const char *text, int64_t tokens)
{
    file_write(dir, "v", words, strlen(words));
    file_write(dir, "t.txt", text, strlen(text));
    struct data_spec spec = spec_of("t.txt", tokens);
    snprintf(spec.vocabulary, sizeof(spec.vocabulary), "%s/v", dir);
    return spec;
}

/* Tokens are numbers of lines, and of several words the longest is taken. */
START_TEST(words_of_a_vocabulary_are_found_by_the_longest)
{
    struct data_spec spec =
        spec_of_words("a\n\\n\nab\nabcd\n \n\\x41\n\\\\\nb\n", "aababababcd \nA\\b", 3);
    struct data_source *source = opened(&spec);
    static const int32_t want[] = {0, 2, 2, 2, 3, 4, 1, 5, 6, 7};
    const struct data_info *info = data_get_info(source);
    ck_assert_int_eq(info->classes, 8);
    ck_assert_int_eq(info->dtype, MS_F32);
    ck_assert_int_eq(info->rows, 3);
    ck_assert_int_eq(info->held_bytes, 10);
    for (int64_t row = 0; row < 3; row++) {
        struct data_record record;
        ck_ms_ok(data_read(source, row, &record, err));
        for (int i = 0; i < 3; i++) {
            ck_assert_float_eq(((const float *)record.values)[i], (float)want[3 * row + i]);
            ck_assert_int_eq(record.labels[i], want[3 * row + i + 1]);
        }
    }
    char name[256];
    data_name_record(source, 2, name, sizeof(name));
    ck_assert_ptr_nonnull(strstr(name, "t.txt: the 3 words from word 6 on"));
    data_close(source);
}
END_TEST

static const struct {
    const char *words, *text, *why;
} no_words[] = {
    {"a\nb\n", "abab\nab",
     "t.txt:1:5: no word of dataset.vocabulary fits what begins with the "
     "byte 0x0A; give it one"},
    {"a\nb\n\\n\n", "ab\nabc", "t.txt:2:3: no word of dataset.vocabulary fits"},
    {"a\nb\na\n", "ab", "v:3: the word of line 1 again"},
    {"a\n\nb\n", "ab", "v:2: a line without a word"},
    {"a\n\\q\n", "ab", "v:2: of what begins with \\ only \\n, \\t, \\r, \\\\ and \\xHH are known"},
    {"\\x4", "ab", "v:1: of what begins with \\ only"},
    {"a\\", "ab", "v:1: of what begins with \\ only"},
    {"a\r\nb\r\n", "ab", "v:1: a carriage return ends the line; end lines with LF alone"},
    {"", "ab", "v has no words"},
    {"0123456789012345678901234567890123456789012345678901234567890123X", "ab",
     "v:1: a word has at most 64 bytes"},
    {"a\nb", "ab", "t.txt has 2 words; a window of 4 tokens wants one more"},
};

START_TEST(what_cannot_be_looked_up_is_refused_with_its_place)
{
    struct data_source *source = NULL;
    struct data_spec spec = spec_of_words(no_words[_i].words, no_words[_i].text, 4);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, no_words[_i].why);
    ck_assert_ptr_null(source);
}
END_TEST

/* Any words, each text cut by looking at all of them. */
START_TEST(the_longest_word_is_that_of_a_search_of_all)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        char file[512];
        char words[40][5];
        size_t n = 0;
        size_t used = 0;
        for (uint64_t k = 0; k < 40; k++) {
            const size_t length = 1 + (size_t)ms_rng_below(seed, 10 * k, 4);
            int is_new = 1;
            for (size_t i = 0; i < length; i++) {
                words[n][i] = (char)('a' + ms_rng_below(seed, 10 * k + 1 + i, 3));
            }
            words[n][length] = '\0';
            for (size_t i = 0; i < n; i++) {
                is_new &= strcmp(words[i], words[n]) != 0;
            }
            if (is_new) {
                used += (size_t)snprintf(file + used, sizeof(file) - used, "%s\n", words[n++]);
            }
        }
        struct vocabulary *v = NULL;
        ck_ms_ok(vocabulary_parse(file, used, "v", &v, err));
        ck_assert_int_eq(vocabulary_words(v), (int32_t)n);
        uint8_t text[64];
        for (uint64_t i = 0; i < sizeof(text); i++) {
            text[i] = (uint8_t)('a' + ms_rng_below(seed + 1000, i, 4)); /* d is in no word */
        }
        for (size_t at = 0; at < sizeof(text); at++) {
            int32_t want = -1;
            size_t best = 0;
            for (size_t i = 0; i < n; i++) {
                const size_t length = strlen(words[i]);
                if (length > best && length <= sizeof(text) - at &&
                    memcmp(words[i], text + at, length) == 0) {
                    want = (int32_t)i;
                    best = length;
                }
            }
            size_t length = 0;
            ck_assert_int_eq(vocabulary_match(v, text + at, sizeof(text) - at, &length), want);
            ck_assert_uint_eq(length, best);
        }
        vocabulary_destroy(v);
    }
}
END_TEST

START_TEST(what_is_no_text_is_refused_with_its_name)
{
    struct data_source *source = NULL;
    struct data_spec spec = spec_of("t.txt", 4);
    file_write(dir, "t.txt", "abcd", 4);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID,
                "t.txt has 4 bytes; a window of 4 tokens wants one more (dataset.tokens)");
    file_write(dir, "t.txt", "", 0);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "t.txt has 0 bytes");
    file_write(dir, "t.txt", "\x1F\x8B\x08 packed", 10);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "t.txt is packed; unpack it");
    file_write(dir, "t.txt", "\xFF\xFEt\0e\0", 6);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "is UTF-16; write it as UTF-8");
    spec.tokens = 0;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "0 tokens a window; from 1 to 65536");
    spec = spec_of("", 4);
    char path[256];
    snprintf(path, sizeof(path), "%s/t.txt", dir);
    ck_assert_int_eq(unlink(path), 0);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "has no text; put files there");
    spec = spec_of("none.txt", 4);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "none.txt");
    ck_assert_ptr_null(source);
}
END_TEST

START_TEST(a_text_that_became_shorter_is_named)
{
    struct data_source *source = NULL;
    struct data_record record;
    char path[256];
    file_write(dir, "t.txt", "abcdefgh\n", 9);
    struct data_spec spec = spec_of("t.txt", 4);
    source = opened(&spec);
    snprintf(path, sizeof(path), "%s/t.txt", dir);
    ck_assert_int_eq(truncate(path, 6), 0);
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_ms_fails(data_read(source, 1, &record, err), MS_E_IO, "t.txt ends before byte 9");
    data_close(source);
}
END_TEST

static void make_dir(void)
{
    dir = test_dir_make();
}

static void remove_dir(void)
{
    test_dir_remove(dir);
}

int main(void)
{
    Suite *suite = suite_create("text_windows");
    TCase *tc = tcase_create("text");
    tcase_add_checked_fixture(tc, make_dir, remove_dir);
    tcase_add_test(tc, a_window_has_the_tokens_behind_its_own_as_labels);
    tcase_add_test(tc, texts_of_a_folder_stand_one_behind_the_other);
    tcase_add_test(tc, parts_are_the_files_of_their_names);
    tcase_add_test(tc, a_split_has_each_window_once);
    tcase_add_test(tc, batches_have_a_label_a_token);
    tcase_add_test(tc, the_last_label_tells_texts_apart);
    tcase_add_test(tc, words_of_a_vocabulary_are_found_by_the_longest);
    tcase_add_loop_test(tc, what_cannot_be_looked_up_is_refused_with_its_place, 0,
                        (int)MS_ARRAY_SIZE(no_words));
    tcase_add_test(tc, the_longest_word_is_that_of_a_search_of_all);
    tcase_add_test(tc, what_is_no_text_is_refused_with_its_name);
    tcase_add_test(tc, a_text_that_became_shorter_is_named);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
