/* test_scores.c - what an evaluation counts, beside a plain count by somebody else */
#include "libworker/train/scores.h"

#include "proto/exact.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALL_OF_CLASSES                                                                             \
    (1U << JOB_METRIC_TOP5 | 1U << JOB_METRIC_PER_CLASS | 1U << JOB_METRIC_CONFUSION |             \
     1U << JOB_METRIC_PERPLEXITY)

static struct scores *scores_of(unsigned wanted, int64_t columns)
{
    struct scores *scores = NULL;
    ck_ms_ok(scores_create(wanted, columns, &scores, err));
    return scores;
}

/* As a line of metrics.jsonl has it. */
static json_t *json_of(const struct scores *scores, double loss)
{
    char *more = scores_json(scores, loss);
    ck_assert_ptr_nonnull(more);
    char *line = malloc(strlen(more) + 16);
    ck_assert_ptr_nonnull(line);
    memcpy(line, "{\"epoch\":1", 10);
    memcpy(line + 10, more, strlen(more));
    memcpy(line + 10 + strlen(more), "}", 2);
    json_error_t why;
    json_t *object = json_loads(line, 0, &why);
    ck_assert_msg(object != NULL, "%s: %s", why.text, line);
    free(line);
    free(more);
    return object;
}

static double real_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_number(value), "%s is no number", key);
    return json_number_value(value);
}

/* The classes behind one another, the largest first; of equal ones the first. */
static int place_of(const float *row, int k, int label)
{
    int order[64];
    for (int i = 0; i < k; i++) {
        int at = i;
        for (; at > 0 && row[order[at - 1]] < row[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    int place = 0;
    while (order[place] != label) {
        place++;
    }
    return place;
}

enum { K = 9, ROWS = 400 };

/* Logits are whole numbers, so that many are equal. */
static void draw(uint64_t seed, float *logits, int32_t *labels)
{
    for (uint64_t i = 0; i < ROWS; i++) {
        labels[i] = (int32_t)ms_rng_below(seed, i, K - 1); /* the last class has no rows */
        for (uint64_t j = 0; j < K; j++) {
            logits[i * K + j] = (float)ms_rng_below(seed, ROWS + i * K + j, 7);
            logits[i * K + j] += (uint64_t)labels[i] == j ? 1.5F : 0.0F;
        }
    }
}

static void check_counts(const json_t *object, const float *logits, const int32_t *labels)
{
    int hits[K] = {0}, predicted[K] = {0}, rows[K] = {0}, pairs[K][K] = {{0}};
    int top = 0;
    for (int i = 0; i < ROWS; i++) {
        int best = 0;
        while (place_of(logits + i * K, K, best) != 0) {
            best++;
        }
        top += place_of(logits + i * K, K, labels[i]) < 5;
        hits[labels[i]] += best == labels[i];
        predicted[best]++;
        rows[labels[i]]++;
        pairs[labels[i]][best]++;
    }
    ck_assert_double_eq_tol(real_of(object, "top5"), (double)top / ROWS, 1e-8);
    ck_assert(top > ROWS / 2 && top < ROWS);
    for (int c = 0; c < K; c++) {
        const json_t *recall = json_array_get(json_object_get(object, "recall"), (size_t)c);
        const json_t *precision = json_array_get(json_object_get(object, "precision"), (size_t)c);
        ck_assert_int_eq(json_is_null(recall), rows[c] == 0);
        ck_assert_int_eq(json_is_null(precision), predicted[c] == 0);
        if (rows[c] > 0) {
            ck_assert_double_eq_tol(json_number_value(recall), (double)hits[c] / rows[c], 1e-8);
        }
        if (predicted[c] > 0) {
            ck_assert_double_eq_tol(json_number_value(precision), (double)hits[c] / predicted[c],
                                    1e-8);
        }
        const json_t *line = json_array_get(json_object_get(object, "confusion"), (size_t)c);
        ck_assert_uint_eq(json_array_size(line), K);
        for (int j = 0; j < K; j++) {
            ck_assert_int_eq(json_integer_value(json_array_get(line, (size_t)j)), pairs[c][j]);
        }
    }
    ck_assert_int_eq(rows[K - 1], 0);
}

START_TEST(counts_are_those_of_who_sorts_the_rows)
{
    static float logits[ROWS * K];
    static int32_t labels[ROWS];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct scores *scores = scores_of(ALL_OF_CLASSES, K);
        draw(seed, logits, labels);
        scores_add(scores, &(struct scored){.predictions = logits, .labels = labels, .rows = ROWS});
        json_t *object = json_of(scores, 2);
        check_counts(object, logits, labels);
        ck_assert_double_eq_tol(real_of(object, "perplexity"), exp(2), 1e-7);
        json_decref(object);
        scores_destroy(scores);
    }
}
END_TEST

/* However rows are shared out, and whatever was counted before. */
START_TEST(sums_of_ranks_are_the_counts_of_all_rows)
{
    static float logits[ROWS * K];
    static int32_t labels[ROWS];
    draw(3, logits, labels);
    struct scores *whole = scores_of(ALL_OF_CLASSES, K);
    struct scores *parts[2] = {scores_of(ALL_OF_CLASSES, K), scores_of(ALL_OF_CLASSES, K)};
    scores_add(whole, &(struct scored){.predictions = logits, .labels = labels, .rows = ROWS});
    scores_add(parts[0], &(struct scored){.predictions = logits, .labels = labels, .rows = ROWS});
    scores_clear(parts[0]);
    for (int at = 0; at < ROWS; at += 7) {
        const int rows = ROWS - at < 7 ? ROWS - at : 7;
        scores_add(
            parts[at % 2],
            &(struct scored){.predictions = logits + at * K, .labels = labels + at, .rows = rows});
    }
    size_t n = 0;
    double *sums = scores_sums(parts[0], &n);
    const double *others = scores_sums(parts[1], &n);
    for (size_t i = 0; i < n; i++) {
        sums[i] += others[i];
    }
    char *want = scores_json(whole, 1);
    char *have = scores_json(parts[0], 1);
    ck_assert_str_eq(have, want);
    free(want);
    free(have);
    scores_destroy(whole);
    scores_destroy(parts[0]);
    scores_destroy(parts[1]);
}
END_TEST

START_TEST(ignored_labels_do_not_count)
{
    static float logits[ROWS * K], kept_logits[ROWS * K];
    static int32_t labels[ROWS], kept[ROWS];
    int64_t n = 0;
    draw(3, logits, labels);
    for (int i = 0; i < ROWS; i++) {
        if (i % 3 == 0) {
            labels[i] = -100;
            continue;
        }
        memcpy(kept_logits + n * K, logits + i * K, K * sizeof(*logits));
        kept[n++] = labels[i];
    }
    struct scores *all = scores_of(ALL_OF_CLASSES, K);
    struct scores *some = scores_of(ALL_OF_CLASSES, K);
    const struct data_ignored ignored = {.is_there = 1, .label = -100};
    scores_add(all, &(struct scored){
                        .predictions = logits, .labels = labels, .rows = ROWS, .ignored = ignored});
    scores_add(some, &(struct scored){.predictions = kept_logits, .labels = kept, .rows = n});
    char *want = scores_json(some, 1);
    char *have = scores_json(all, 1);
    ck_assert_str_eq(have, want);
    free(want);
    free(have);
    scores_destroy(all);
    scores_destroy(some);
}
END_TEST

START_TEST(the_largest_share_is_the_label)
{
    static float logits[ROWS * K], soft[ROWS * K];
    static int32_t labels[ROWS];
    draw(5, logits, labels);
    for (int i = 0; i < ROWS; i++) {
        soft[i * K + (labels[i] + 1) % K] = 0.25F;
        soft[i * K + labels[i]] = 0.75F;
    }
    struct scores *of_labels = scores_of(ALL_OF_CLASSES, K);
    struct scores *of_soft = scores_of(ALL_OF_CLASSES, K);
    scores_add(of_labels, &(struct scored){.predictions = logits, .labels = labels, .rows = ROWS});
    scores_add(of_soft, &(struct scored){
                            .predictions = logits, .targets = soft, .rows = ROWS, .is_soft = 1});
    char *want = scores_json(of_labels, 1);
    char *have = scores_json(of_soft, 1);
    ck_assert_str_eq(have, want);
    free(want);
    free(have);
    scores_destroy(of_labels);
    scores_destroy(of_soft);
}
END_TEST

START_TEST(what_is_no_number_is_in_no_place)
{
    static const float rows[] = {NAN, 0, 0, 0, 0, 0, 0, /**/ 0, NAN, NAN, NAN, NAN, NAN, NAN};
    static const int32_t labels[] = {0, 0};
    struct scores *scores = scores_of(1U << JOB_METRIC_TOP5 | 1U << JOB_METRIC_PERPLEXITY, 7);
    scores_add(scores, &(struct scored){.predictions = rows, .labels = labels, .rows = 2});
    json_t *object = json_of(scores, (double)NAN);
    ck_assert_double_eq(real_of(object, "top5"), 0.5);
    ck_assert(json_is_null(json_object_get(object, "perplexity")));
    json_decref(object);
    scores_destroy(scores);
}
END_TEST

START_TEST(the_distance_to_targets_is_a_mean_over_all_values)
{
    static const float y[] = {1, 2, 3, 4, 5, 6};
    static const float targets[] = {1, 0, 3.5F, 4, 9, 6};
    struct scores *scores = scores_of(1U << JOB_METRIC_MAE, 2);
    scores_add(scores, &(struct scored){.predictions = y, .targets = targets, .rows = 3});
    json_t *object = json_of(scores, 0);
    ck_assert_double_eq_tol(real_of(object, "mae"), (2 + 0.5 + 4) / 6, 1e-8);
    ck_assert_uint_eq(json_object_size(object), 2); /* nothing that was not asked for */
    json_decref(object);
    scores_destroy(scores);
}
END_TEST

START_TEST(people_get_a_table)
{
    static const float logits[] = {3, 1, 0, 0, 2, 1, 5, 4, 0, 1, 0, 2};
    static const int32_t labels[] = {0, 1, 1, 2};
    struct scores *scores = scores_of(ALL_OF_CLASSES, 3);
    scores_add(scores, &(struct scored){.predictions = logits, .labels = labels, .rows = 4});
    char *text = scores_say(scores, 1, "");
    ck_assert_str_eq(text, "top-5 accuracy: 100.00 %\n"
                           "perplexity: 2.71828\n"
                           "class  precision     recall       rows\n"
                           "    0    50.00 %   100.00 %          1\n"
                           "    1   100.00 %    50.00 %          2\n"
                           "    2   100.00 %   100.00 %          1\n"
                           "rows of a class (lines) by the predicted one (columns)\n"
                           "             0        1        2\n"
                           "    0        1        0        0\n"
                           "    1        1        1        0\n"
                           "    2        0        0        1\n");
    free(text);
    text = scores_say(scores, 1, "cat\nd\xC3\xB6g\nthe longest name of all classes");
    ck_assert_ptr_nonnull(
        strstr(text, "class                            precision     recall       rows\n"
                     "    0  cat                         50.00 %   100.00 %          1\n"
                     "    1  d\xC3\xB6g                        100.00 %    50.00 %          2\n"
                     "    2  the longest name of a...   100.00 %   100.00 %          1\n"));
    ck_assert_ptr_nonnull(strstr(text,
                                 "                                       0        1        2\n"
                                 "    0  cat                             1        0        0\n"));
    free(text);
    scores_destroy(scores);
}
END_TEST

/* Of many classes people want those that are not learned; one without rows is none. */
START_TEST(of_many_classes_the_worst_are_shown)
{
    enum { MANY = 50 };
    static float logits[MANY * MANY];
    static int32_t labels[MANY];
    for (int i = 0; i < MANY; i++) {
        labels[i] = i == 49 ? 48 : i;
        logits[i * MANY + (i == 30 ? 31 : labels[i])] = 1;
    }
    struct scores *scores = scores_of(1U << JOB_METRIC_PER_CLASS, MANY);
    scores_add(scores, &(struct scored){.predictions = logits, .labels = labels, .rows = MANY});
    char *text = scores_say(scores, 1, "");
    const char *first = strchr(strchr(text, '\n') + 1, '\n') + 1;
    ck_assert_int_eq(strncmp(text, "the 40 of 50 classes with the lowest recall;", 44), 0);
    ck_assert_int_eq(strncmp(first, "   30          -     0.00 %          1\n", 39), 0);
    ck_assert_ptr_null(strstr(text, "\n   49 "));
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        ck_assert_int_lt(strchr(line, '\n') - line, 200);
    }
    free(text);
    scores_destroy(scores);
}
END_TEST

START_TEST(what_no_line_could_hold_is_refused_before_it_is_counted)
{
    struct scores *scores = NULL;
    ck_ms_fails(scores_create(1U << JOB_METRIC_CONFUSION, 101, &scores, err), MS_E_INVALID,
                "confusion of 101 classes, and at most 100 are shown");
    ck_ms_fails(scores_create(1U << JOB_METRIC_PER_CLASS, 10001, &scores, err), MS_E_INVALID,
                "per_class of 10001 classes, and at most 10000 are shown");
    scores_destroy(scores_of(1U << JOB_METRIC_TOP5, 100000));
}
END_TEST

/* The longest lines there are: whoever takes over the file has to be able to read them. */
START_TEST(the_longest_line_can_be_read_again)
{
    struct scores *scores = scores_of(1U << JOB_METRIC_PER_CLASS, 10000);
    size_t n = 0;
    double *sums = scores_sums(scores, &n);
    for (size_t i = 0; i < n; i++) {
        sums[i] = i < 10003 ? 1 : 3; /* 0.333333333 */
    }
    char *text = scores_json(scores, 1);
    ck_assert_uint_lt(strlen(text), (1U << 19) - 256);
    ck_assert_ptr_nonnull(strstr(text, "0.333333333"));
    free(text);
    scores_destroy(scores);
    scores = scores_of(1U << JOB_METRIC_CONFUSION, 100);
    sums = scores_sums(scores, &n);
    for (size_t i = 0; i < n; i++) {
        sums[i] = 9007199254740992.0;
    }
    text = scores_json(scores, 1);
    ck_assert_uint_lt(strlen(text), (1U << 19) - 256);
    free(text);
    scores_destroy(scores);
}
END_TEST

/* It may end a training: ranks whose C libraries differ in the last bit would not end together. */
START_TEST(perplexity_has_the_same_bits_with_every_library)
{
    struct scores *scores = scores_of(1U << JOB_METRIC_PERPLEXITY, 4);
    for (uint64_t i = 0; i < 4096; i++) {
        const double loss = (double)ms_rng_below(1, i, 1U << 30) / (double)(1U << 26);
        const double have = scores_value(scores, JOB_METRIC_PERPLEXITY, loss);
        const double want = ms_exact_exp(loss);
        ck_assert_mem_eq(&have, &want, sizeof(have));
    }
    scores_destroy(scores);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scores");
    TCase *tc = tcase_create("scores");
    suite_add_tcase(suite, tc);
    tcase_add_test(tc, counts_are_those_of_who_sorts_the_rows);
    tcase_add_test(tc, sums_of_ranks_are_the_counts_of_all_rows);
    tcase_add_test(tc, ignored_labels_do_not_count);
    tcase_add_test(tc, the_largest_share_is_the_label);
    tcase_add_test(tc, what_is_no_number_is_in_no_place);
    tcase_add_test(tc, the_distance_to_targets_is_a_mean_over_all_values);
    tcase_add_test(tc, perplexity_has_the_same_bits_with_every_library);
    tcase_add_test(tc, people_get_a_table);
    tcase_add_test(tc, of_many_classes_the_worst_are_shown);
    tcase_add_test(tc, what_no_line_could_hold_is_refused_before_it_is_counted);
    tcase_add_test(tc, the_longest_line_can_be_read_again);
    return test_run(suite);
}
