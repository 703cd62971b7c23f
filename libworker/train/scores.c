/* scores.c - top-5 accuracy, precision and recall, confusion, perplexity, mean absolute error
 *
 * Of a class c: precision is the share of rows predicted as c that are of c, recall the share of
 * rows of c that are predicted as c. Predicted is what accuracy goes by, the first of the largest
 * logits. Perplexity is exp(mean cross entropy), of the same bits on every host: it may judge. */
#include "libworker/train/scores.h"

#include "libworker/kernel/kernel.h"
#include "proto/exact.h"
#include "proto/limits.h"
#include "proto/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOP = 5,
    /* all in one line of metrics.jsonl, which lines_read has to be able to read again */
    PER_CLASS_MAX = 10000,
    CONFUSION_MAX = 100,
    /* people read a screen of them */
    SHOWN_CLASSES = 40,
    SHOWN_CONFUSION = 12,
    NAME_SHOWN = 24, /* bytes */
};

enum { SUM_ROWS, SUM_TOP, SUM_DISTANCE, SUMS };

struct scores {
    unsigned wanted;
    int64_t columns;
    double *sums;
    size_t n;
    double *hits, *predicted, *rows; /* a class; NULL: not wanted */
    double *confusion;               /* (class, predicted) */
};

static int wants(const struct scores *scores, enum job_metric metric)
{
    return (scores->wanted >> metric & 1U) != 0;
}

int scores_create(unsigned wanted, int64_t columns, struct scores **ret, struct ms_err *err)
{
    const int has_classes = (wanted >> JOB_METRIC_PER_CLASS & 1U) != 0;
    const int has_confusion = (wanted >> JOB_METRIC_CONFUSION & 1U) != 0;
    if (has_classes && columns > PER_CLASS_MAX) {
        return ms_fail(err, MS_E_INVALID,
                       "evaluate.metrics: per_class of %lld classes, and at most %d are shown; "
                       "leave it out",
                       (long long)columns, PER_CLASS_MAX);
    }
    if (has_confusion && columns > CONFUSION_MAX) {
        return ms_fail(err, MS_E_INVALID,
                       "evaluate.metrics: confusion of %lld classes, and at most %d are shown; "
                       "per_class says precision and recall of each",
                       (long long)columns, CONFUSION_MAX);
    }
    struct scores *scores = calloc(1, sizeof(*scores));
    const size_t k = (size_t)columns;
    const size_t n = SUMS + (has_classes ? 3 * k : 0) + (has_confusion ? k * k : 0);
    double *sums = calloc(n, sizeof(*sums));
    if (scores == NULL || sums == NULL) {
        free(scores);
        free(sums);
        return ms_fail(err, MS_E_NOMEM, "no memory for the metrics of an evaluation");
    }
    *scores = (struct scores){.wanted = wanted, .columns = columns, .sums = sums, .n = n};
    double *next = sums + SUMS;
    if (has_classes) {
        scores->hits = next;
        scores->predicted = next + k;
        scores->rows = next + 2 * k;
        next += 3 * k;
    }
    scores->confusion = has_confusion ? next : NULL;
    *ret = scores;
    return MS_OK;
}

void scores_destroy(struct scores *scores)
{
    if (scores != NULL) {
        free(scores->sums);
        free(scores);
    }
}

void scores_clear(struct scores *scores)
{
    memset(scores->sums, 0, scores->n * sizeof(*scores->sums));
}

double *scores_sums(struct scores *scores, size_t *ret_n)
{
    *ret_n = scores->n;
    return scores->sums;
}

/* ---- counting ---- */

/* Of equal ones the first are the largest, as for accuracy. What is no number is in no place. */
static int is_in_top(const float *row, int64_t k, int64_t label)
{
    int64_t before = 0;
    for (int64_t j = 0; j < k && before < TOP; j++) {
        before += row[j] > row[label] || (row[j] == row[label] && j < label);
    }
    return before < TOP && !isnan(row[label]);
}

static void add_labelled(struct scores *scores, const float *row, int64_t label)
{
    const int64_t k = scores->columns;
    scores->sums[SUM_TOP] += is_in_top(row, k, label);
    if (scores->hits == NULL && scores->confusion == NULL) {
        return;
    }
    const int64_t best = kernel_largest(row, k);
    if (scores->hits != NULL) {
        scores->hits[label] += best == label;
        scores->predicted[best]++;
        scores->rows[label]++;
    }
    if (scores->confusion != NULL) {
        scores->confusion[label * k + best]++;
    }
}

void scores_add(struct scores *scores, const struct scored *batch)
{
    const int64_t k = scores->columns;
    for (int64_t i = 0; i < batch->rows; i++) {
        const float *row = batch->predictions + i * k;
        if (batch->labels != NULL) {
            if (!data_is_ignored(&batch->ignored, batch->labels[i])) {
                add_labelled(scores, row, batch->labels[i]);
                scores->sums[SUM_ROWS]++;
            }
            continue;
        }
        if (batch->is_soft) {
            add_labelled(scores, row, kernel_largest(batch->targets + i * k, k));
        }
        for (int64_t j = 0; j < k && !batch->is_soft; j++) {
            scores->sums[SUM_DISTANCE] += fabs((double)row[j] - (double)batch->targets[i * k + j]);
        }
        scores->sums[SUM_ROWS]++;
    }
}

/* ---- what they come to ---- */

static double top_share(const struct scores *scores)
{
    return scores->sums[SUM_TOP] / scores->sums[SUM_ROWS];
}

static double mean_distance(const struct scores *scores)
{
    return scores->sums[SUM_DISTANCE] / (scores->sums[SUM_ROWS] * (double)scores->columns);
}

static double precision_of(const struct scores *scores, int64_t class)
{
    return scores->hits[class] / scores->predicted[class]; /* 0 / 0: NaN */
}

static double recall_of(const struct scores *scores, int64_t class)
{
    return scores->hits[class] / scores->rows[class];
}

/* ---- for programs ---- */

static void put_number(FILE *out, double x)
{
    if (isfinite(x)) {
        fprintf(out, "%.9g", x);
    } else {
        fputs("null", out);
    }
}

static void put_shares(FILE *out, const struct scores *scores, const char *key,
                       double (*share)(const struct scores *, int64_t))
{
    fprintf(out, ",\"%s\":[", key);
    for (int64_t c = 0; c < scores->columns; c++) {
        fputs(c > 0 ? "," : "", out);
        put_number(out, share(scores, c));
    }
    fputc(']', out);
}

static void put_confusion(FILE *out, const struct scores *scores)
{
    const int64_t k = scores->columns;
    fputs(",\"confusion\":[", out);
    for (int64_t i = 0; i < k * k; i++) {
        fprintf(out, "%s%.0f", i % k > 0 ? "," : i > 0 ? "],[" : "[", scores->confusion[i]);
    }
    fputs("]]", out);
}

static void put_json(FILE *out, const struct scores *scores, double loss, const char *names)
{
    (void)names; /* programs have them in the job */
    if (wants(scores, JOB_METRIC_TOP5)) {
        fputs(",\"top5\":", out);
        put_number(out, top_share(scores));
    }
    if (wants(scores, JOB_METRIC_PERPLEXITY)) {
        fputs(",\"perplexity\":", out);
        put_number(out, ms_exact_exp(loss));
    }
    if (wants(scores, JOB_METRIC_MAE)) {
        fputs(",\"mae\":", out);
        put_number(out, mean_distance(scores));
    }
    if (scores->hits != NULL) {
        put_shares(out, scores, "precision", precision_of);
        put_shares(out, scores, "recall", recall_of);
    }
    if (scores->confusion != NULL) {
        put_confusion(out, scores);
    }
}

/* ---- for people ---- */

struct names {
    const char *text; /* LF between */
    int letters;      /* of the longest one; 0: there are none */
};

/* Of class i, cut where it is long; "": it has none. Returns its letters. */
static int name_of(const char *text, int64_t i, char ret[NAME_SHOWN + 1])
{
    char name[MS_NAME_MAX + 1];
    int letters = 0;
    while (i > 0 && *text != '\0') {
        i -= *text++ == '\n';
    }
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "\n"), text);
    ms_text_begin(ret, NAME_SHOWN + 1, name);
    for (const char *c = ret; *c != '\0'; c++) {
        letters += ((unsigned char)*c & 0xC0) != 0x80;
    }
    return letters;
}

static struct names find_names(const char *text, int64_t n)
{
    struct names names = {text, 0};
    char name[NAME_SHOWN + 1];
    for (int64_t i = 0; i < n && *text != '\0'; i++) {
        const int letters = name_of(text, i, name);
        names.letters = letters > names.letters ? letters : names.letters;
    }
    return names;
}

static void say_class(FILE *out, const struct names *names, int64_t i)
{
    char name[NAME_SHOWN + 1];
    fprintf(out, "%5lld", (long long)i);
    if (names->letters > 0) {
        const int letters = name_of(names->text, i, name);
        fprintf(out, "  %s%*s", name, names->letters - letters, "");
    }
}

static void say_gap(FILE *out, const struct names *names)
{
    fprintf(out, "%*s", names->letters > 0 ? names->letters + 2 : 0, "");
}

static void say_share(FILE *out, double share)
{
    if (isfinite(share)) {
        fprintf(out, "  %7.2f %%", 100 * share);
    } else {
        fprintf(out, "  %9s", "-");
    }
}

struct class_recall {
    int64_t class;
    double recall;
};

/* The worst first; a class without rows has none. */
static int by_recall(const void *a, const void *b)
{
    const struct class_recall *x = a;
    const struct class_recall *y = b;
    const double left = isnan(x->recall) ? 2 : x->recall;
    const double right = isnan(y->recall) ? 2 : y->recall;
    return left != right ? (left < right ? -1 : 1) : x->class < y->class ? -1 : 1;
}

static void say_classes(FILE *out, const struct scores *scores, const char *text)
{
    const int64_t k = scores->columns;
    const int64_t n = k < SHOWN_CLASSES ? k : SHOWN_CLASSES;
    struct class_recall *order = calloc((size_t)k, sizeof(*order));
    if (order == NULL) {
        return; /* metrics.jsonl has them */
    }
    for (int64_t c = 0; c < k; c++) {
        order[c] = (struct class_recall){c, recall_of(scores, c)};
    }
    if (n < k) {
        qsort(order, (size_t)k, sizeof(*order), by_recall);
        fprintf(out, "the %lld of %lld classes with the lowest recall; metrics.jsonl has all:\n",
                (long long)n, (long long)k);
    }
    const struct names names = find_names(text, k);
    fputs("class", out);
    say_gap(out, &names);
    fputs("  precision     recall       rows\n", out);
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = order[i].class;
        say_class(out, &names, c);
        say_share(out, precision_of(scores, c));
        say_share(out, recall_of(scores, c));
        fprintf(out, "  %9.0f\n", scores->rows[c]);
    }
    free(order);
}

static void say_confusion(FILE *out, const struct scores *scores, const char *text)
{
    const int64_t k = scores->columns;
    if (k > SHOWN_CONFUSION) {
        return;
    }
    const struct names names = find_names(text, k);
    fputs("rows of a class (lines) by the predicted one (columns)\n     ", out);
    say_gap(out, &names);
    for (int64_t c = 0; c < k; c++) {
        fprintf(out, " %8lld", (long long)c);
    }
    for (int64_t i = 0; i < k * k; i++) {
        if (i % k == 0) {
            fputc('\n', out);
            say_class(out, &names, i / k);
        }
        fprintf(out, " %8.0f", scores->confusion[i]);
    }
    fputc('\n', out);
}

static void put_words(FILE *out, const struct scores *scores, double loss, const char *names)
{
    if (wants(scores, JOB_METRIC_TOP5)) {
        fprintf(out, "top-5 accuracy: %.2f %%\n", 100 * top_share(scores));
    }
    if (wants(scores, JOB_METRIC_PERPLEXITY)) {
        fprintf(out, "perplexity: %.6g\n", ms_exact_exp(loss));
    }
    if (wants(scores, JOB_METRIC_MAE)) {
        fprintf(out, "mean absolute error: %.6g\n", mean_distance(scores));
    }
    if (scores->hits != NULL) {
        say_classes(out, scores, names);
    }
    if (scores->confusion != NULL) {
        say_confusion(out, scores, names);
    }
}

static char *text_of(const struct scores *scores, double loss, const char *names,
                     void (*put)(FILE *out, const struct scores *scores, double loss,
                                 const char *names))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    put(out, scores, loss, names);
    const int is_whole = ferror(out) == 0;
    if (fclose(out) != 0 || !is_whole) {
        free(text);
        return NULL;
    }
    return text;
}

double scores_value(const struct scores *scores, enum job_metric metric, double loss)
{
    return metric == JOB_METRIC_TOP5         ? top_share(scores)
           : metric == JOB_METRIC_PERPLEXITY ? ms_exact_exp(loss)
                                             : mean_distance(scores);
}

char *scores_json(const struct scores *scores, double loss)
{
    return text_of(scores, loss, "", put_json);
}

char *scores_say(const struct scores *scores, double loss, const char *names)
{
    return text_of(scores, loss, names, put_words);
}
