/* rows.c - predictions as text: CSV (RFC 4180) or JSON, a line a sample */
#include "libworker/infer/rows.h"

#include "libworker/kernel/kernel.h"
#include "proto/exact.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rows {
    struct rows_format format;
    FILE *out;
    double *shares;
    char *taken; /* columns that stand in the row already */
};

/* ---- texts ---- */

/* In quotes, the way of the format. */
static void put_quoted(const struct rows *rows, const char *text)
{
    fputc('"', rows->out);
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"') {
            fputs(rows->format.is_json ? "\\\"" : "\"\"", rows->out);
        } else if (rows->format.is_json && c == '\\') {
            fputs("\\\\", rows->out);
        } else if (rows->format.is_json && c < 0x20) {
            fprintf(rows->out, "\\u%04x", c);
        } else {
            fputc(c, rows->out);
        }
    }
    fputc('"', rows->out);
}

static void put_text(const struct rows *rows, const char *text)
{
    if (rows->format.is_json || text[0] == '\0' || text[strcspn(text, ",\"\r\n")] != '\0') {
        put_quoted(rows, text);
    } else {
        fputs(text, rows->out);
    }
}

static void put_class(const struct rows *rows, const char *before, int64_t class)
{
    if (rows->format.names == NULL || class < 0 || class >= rows->format.columns) {
        fprintf(rows->out, "%s%" PRId64, before, class);
    } else {
        put_text(rows, rows->format.names[class]);
    }
}

static void put_label(const struct rows *rows, int32_t label)
{
    if (rows->format.labels != NULL && label >= 0) {
        put_text(rows, rows->format.labels[label]);
    } else {
        put_class(rows, "", label);
    }
}

/* ---- head ---- */

static void put_head(const struct rows *rows)
{
    const struct rows_format *format = &rows->format;
    FILE *out = rows->out;
    const int is_of_class = format->scale == ROWS_SOFTMAX;
    const int has_label = is_of_class && !format->has_no_labels;
    const int is_top = format->kind == ROWS_TOP;
    fprintf(out, "sample%s%s%s%s", format->has_files ? ",file" : "",
            format->has_tokens ? ",token" : "", has_label ? ",label" : "",
            is_of_class && format->kind == ROWS_PROBABILITIES ? ",predicted" : "");
    for (int64_t i = 1; is_top && i <= format->top; i++) {
        fprintf(out, ",class_%" PRId64 ",p_%" PRId64, i, i);
    }
    for (int64_t i = 0; !is_top && i < format->columns; i++) {
        fputc(',', out);
        if (format->kind == ROWS_PROBABILITIES) {
            put_class(rows, "p", i);
        } else {
            fprintf(out, "v%" PRId64, i);
        }
    }
    fputc('\n', out);
}

/* ---- a row ---- */

static void put_number(const struct rows *rows, double x)
{
    if (!isfinite(x) && rows->format.is_json) {
        fputs("null", rows->out);
    } else if (isnan(x)) { /* whose sign printf shows, and which is the CPU's */
        fputs("nan", rows->out);
    } else {
        fprintf(rows->out, "%.9g", x);
    }
}

static void put_separated(const struct rows *rows, int64_t i, double x)
{
    fputs(i > 0 || !rows->format.is_json ? "," : "", rows->out);
    put_number(rows, x);
}

/* In double, by our own exp: the same on every host. */
static void softmax(const float *values, int64_t n, double *ret)
{
    const double largest = values[kernel_largest(values, n)];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        ret[i] = ms_exact_exp((double)values[i] - largest);
        sum += ret[i];
    }
    for (int64_t i = 0; i < n; i++) {
        ret[i] /= sum;
    }
}

static void sigmoid(const float *values, int64_t n, double *ret)
{
    for (int64_t i = 0; i < n; i++) {
        ret[i] = 1 / (1 + ms_exact_exp(-(double)values[i]));
    }
}

static int64_t next_best(const struct rows *rows, const float *values)
{
    int64_t best = -1;
    for (int64_t i = 0; i < rows->format.columns; i++) {
        if (!rows->taken[i] && (best < 0 || values[i] > values[best])) {
            best = i;
        }
    }
    return best;
}

static void put_top(const struct rows *rows, const float *values)
{
    const int is_json = rows->format.is_json;
    memset(rows->taken, 0, (size_t)rows->format.columns);
    fputs(is_json ? ",\"top\":[" : "", rows->out);
    for (int64_t i = 0; i < rows->format.top; i++) {
        const int64_t best = next_best(rows, values);
        rows->taken[best] = 1;
        fputs(!is_json ? "," : i > 0 ? ",{\"class\":" : "{\"class\":", rows->out);
        put_class(rows, "", best);
        fputs(is_json ? ",\"p\":" : ",", rows->out);
        put_number(rows, rows->shares[best]);
        fputs(is_json ? "}" : "", rows->out);
    }
    fputs(is_json ? "]" : "", rows->out);
}

static void put_probabilities(const struct rows *rows, const float *values)
{
    const int is_json = rows->format.is_json;
    if (rows->format.scale == ROWS_SOFTMAX) {
        fputs(is_json ? ",\"predicted\":" : ",", rows->out);
        put_class(rows, "", kernel_largest(values, rows->format.columns));
    }
    fputs(is_json ? ",\"probabilities\":[" : "", rows->out);
    for (int64_t i = 0; i < rows->format.columns; i++) {
        put_separated(rows, i, rows->shares[i]);
    }
    fputs(is_json ? "]" : "", rows->out);
}

static void put_raw(const struct rows *rows, const float *values)
{
    fputs(rows->format.is_json ? ",\"raw\":[" : "", rows->out);
    for (int64_t i = 0; i < rows->format.columns; i++) {
        put_separated(rows, i, (double)values[i]);
    }
    fputs(rows->format.is_json ? "]" : "", rows->out);
}

static void put_place(const struct rows *rows, const struct rows_one *one)
{
    const int is_json = rows->format.is_json;
    fprintf(rows->out, "%s%" PRId64, is_json ? "{\"sample\":" : "", one->sample);
    if (rows->format.has_files) {
        fputs(is_json ? ",\"file\":" : ",", rows->out);
        put_text(rows, one->file);
    }
    if (rows->format.has_tokens) {
        fprintf(rows->out, "%s%" PRId64, is_json ? ",\"token\":" : ",", one->token);
    }
    if (rows->format.scale == ROWS_SOFTMAX && !rows->format.has_no_labels) {
        fputs(is_json ? ",\"label\":" : ",", rows->out);
        put_label(rows, one->label);
    }
}

void rows_put(struct rows *rows, const struct rows_one *one)
{
    const struct rows_format *format = &rows->format;
    put_place(rows, one);
    if (format->kind == ROWS_RAW) {
        put_raw(rows, one->values);
    } else {
        (format->scale == ROWS_SOFTMAX ? softmax : sigmoid)(one->values, format->columns,
                                                            rows->shares);
        (format->kind == ROWS_TOP ? put_top : put_probabilities)(rows, one->values);
    }
    fputs(format->is_json ? "}\n" : "\n", rows->out);
}

/* ---- a stream ---- */

/* Numbers are no shares of anything. */
static int settle(struct rows_format *format, struct ms_err *err)
{
    if (format->scale == ROWS_PLAIN && format->kind == ROWS_TOP) {
        return ms_fail(err, MS_E_INVALID,
                       "--top: this job's network answers with numbers, not with classes; leave it "
                       "out");
    }
    if (format->kind == ROWS_TOP && format->top > format->columns) {
        return ms_fail(err, MS_E_INVALID, "--top %" PRId64 ": the network has %" PRId64 " classes",
                       format->top, format->columns);
    }
    format->kind = format->scale == ROWS_PLAIN ? ROWS_RAW : format->kind;
    return MS_OK;
}

int rows_open(const struct rows_format *format, FILE *out, struct rows **ret, struct ms_err *err)
{
    struct rows_format settled = *format;
    int rc = settle(&settled, err);
    struct rows *rows = rc == MS_OK ? calloc(1, sizeof(*rows)) : NULL;
    if (rows == NULL) {
        return rc < 0 ? rc : ms_fail(err, MS_E_NOMEM, "no memory for predictions");
    }
    rows->format = settled;
    rows->out = out;
    rows->shares = calloc((size_t)format->columns, sizeof(*rows->shares));
    rows->taken = calloc((size_t)format->columns, 1);
    if (rows->shares == NULL || rows->taken == NULL) {
        rows_close(rows);
        return ms_fail(err, MS_E_NOMEM, "no memory for predictions");
    }
    if (!settled.is_json) {
        put_head(rows);
    }
    *ret = rows;
    return MS_OK;
}

void rows_close(struct rows *rows)
{
    if (rows != NULL) {
        free(rows->shares);
        free(rows->taken);
        free(rows);
    }
}
