/* metrics.c - what metrics.jsonl of a run says, for the summary and the plot of losses */
#include "cli/metrics.h"

#include "proto/grow.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 4096,    /* a step has 300; an evaluation that has more is not read here */
    FILE_MAX_BYTES = 1 << 30, /* three million steps; a sparse file may claim more */
    SEEN_MAX_BYTES = 1 << 20, /* of eight million steps it is known whether they have a line */
};

static int reserve(struct cli_metrics *m, size_t *max)
{
    double **const columns[] = {&m->loss, &m->step_ms};
    size_t room = *max;
    for (size_t i = 0; i < MS_ARRAY_SIZE(columns); i++) {
        room = *max;
        double *grown = (double *)ms_grow(*columns[i], m->n, 1, sizeof(double), &room);
        if (grown == NULL) {
            return 0;
        }
        *columns[i] = grown;
    }
    *max = room;
    return 1;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The first half makes room for the newest when the limit is reached. */
static void forget_half(struct cli_metrics *m)
{
    size_t half = m->n / 2;
    memmove(m->loss, m->loss + half, (m->n - half) * sizeof(double));
    memmove(m->step_ms, m->step_ms + half, (m->n - half) * sizeof(double));
    m->n -= half;
}

static void add_up(struct cli_metrics *m, double samples_per_s, double step_ms)
{
    if (isfinite(samples_per_s) && isfinite(step_ms)) {
        m->samples += samples_per_s * step_ms / 1000;
        m->seconds += step_ms / 1000;
        m->n_steps++;
    }
}

/* False: no memory. */
static int note_seen(struct cli_metrics *m, uint64_t step)
{
    const size_t byte = (size_t)(step / 8);
    if (step / 8 >= SEEN_MAX_BYTES) {
        return 1;
    }
    if (byte >= m->n_seen) {
        const size_t n = byte + 1 > 2 * m->n_seen ? byte + 1 : 2 * m->n_seen;
        uint8_t *seen = (uint8_t *)realloc(m->seen, n);
        if (seen == NULL) {
            return 0;
        }
        memset(seen + m->n_seen, 0, n - m->n_seen);
        m->seen = seen;
        m->n_seen = n;
    }
    m->seen[byte] |= (uint8_t)(1U << step % 8);
    return 1;
}

static int note_step(struct cli_metrics *m, const json_t *object)
{
    const json_t *step = json_object_get(object, "step");
    const json_int_t number = json_is_integer(step) ? json_integer_value(step) : 0;
    m->last_step = number > 0 && (uint64_t)number > m->last_step ? (uint64_t)number : m->last_step;
    return number <= 0 || note_seen(m, (uint64_t)number);
}

/* It is the last: what comes behind it takes it back. */
static void note_done(struct cli_metrics *m, const json_t *object)
{
    const json_t *steps = json_object_get(object, "steps");
    const double seconds = number(object, "seconds");
    const int is_done = json_is_true(json_object_get(object, "done")) && json_is_integer(steps) &&
                        json_integer_value(steps) > 0 && isfinite(seconds) && seconds >= 0;
    m->done_steps = is_done ? (uint64_t)json_integer_value(steps) : 0;
    m->done_seconds = is_done ? seconds : 0;
}

static void note_eval(struct cli_metrics *m, json_t *object)
{
    if (json_object_get(object, "eval_loss") != NULL) {
        json_decref(m->eval);
        m->eval = json_incref(object);
    }
}

static int add_line(struct cli_metrics *m, size_t *max, const char *text, size_t length)
{
    json_t *object = json_loadb(text, length, 0, NULL);
    int good = 1;
    if (object != NULL) {
        note_done(m, object);
        note_eval(m, object);
    }
    if (object != NULL && json_object_get(object, "loss") != NULL) {
        if (m->n == CLI_METRICS_MAX) {
            forget_half(m);
        }
        good = reserve(m, max);
        if (good) {
            m->loss[m->n] = number(object, "loss");
            m->step_ms[m->n] = number(object, "step_ms");
            add_up(m, number(object, "samples_per_s"), m->step_ms[m->n]);
            m->n++;
            good = note_step(m, object);
        }
    }
    json_decref(object);
    return good;
}

/* A FIFO must not hold us, a device not feed us, nor a link lead elsewhere. */
static FILE *open_plain(const char *path, struct ms_err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
    if (fd < 0) {
        ms_fail_errno(err, MS_E_IO, "cannot read %s", path);
        return NULL;
    }
    FILE *file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
    if (file == NULL) {
        ms_fail(err, MS_E_IO, "%s is no regular file", path);
        close(fd);
    }
    return file;
}

/* Of a line that is longer than any of ours nothing is taken. */
static void skip_line(FILE *file)
{
    int c = 0;
    while (c != '\n' && c != EOF) {
        c = getc(file);
    }
}

int cli_metrics_read(const char *path, struct cli_metrics *ret, struct ms_err *err)
{
    FILE *file = open_plain(path, err);
    if (file == NULL) {
        return MS_E_IO;
    }
    struct cli_metrics metrics;
    memset(&metrics, 0, sizeof(metrics));
    size_t max = 0;
    int good = 1;
    char text[LINE_MAX_BYTES];
    while (good && fgets(text, sizeof(text), file) != NULL && ftello(file) < FILE_MAX_BYTES) {
        size_t length = strlen(text);
        if (length > 0 && text[length - 1] != '\n') {
            skip_line(file);
        } else {
            good = add_line(&metrics, &max, text, length);
        }
    }
    fclose(file);
    if (!good) {
        cli_metrics_free(&metrics);
        return ms_fail(err, MS_E_NOMEM, "no memory for the steps of %s", path);
    }
    *ret = metrics;
    return MS_OK;
}

uint64_t cli_metrics_lacks(const struct cli_metrics *metrics, uint64_t from, uint64_t *ret)
{
    const uint64_t known = 8 * (uint64_t)metrics->n_seen;
    uint64_t n = 0;
    for (uint64_t step = from; step < metrics->last_step && step < known; step++) {
        if ((metrics->seen[step / 8] & 1U << step % 8) == 0 && n++ == 0) {
            *ret = step;
        }
    }
    return n;
}

void cli_metrics_free(struct cli_metrics *metrics)
{
    json_decref(metrics->eval);
    free(metrics->seen);
    free(metrics->loss);
    free(metrics->step_ms);
    memset(metrics, 0, sizeof(*metrics));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double cli_median(const double *values, size_t n)
{
    double *sorted = (double *)malloc(n * sizeof(double));
    if (sorted == NULL || n == 0) {
        free(sorted);
        return NAN;
    }
    memcpy(sorted, values, n * sizeof(double));
    qsort(sorted, n, sizeof(double), by_value);
    double median = n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    free(sorted);
    return median;
}
