/* metrics.c - metrics.jsonl: what a job's rank 0 measured, each step once, whatever was killed */
#include "libworker/train/metrics.h"

#include "libworker/train/lines.h"
#include "proto/clock.h"
#include "proto/file_write.h"
#include "proto/limits.h"
#include "proto/line_out.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DONE_MAX = 320 }; /* bytes of the line of the end: two digests, and what is around them */

struct metrics {
    struct ms_line_out out; /* owns the file */
    char path[1100];
    char training[METRICS_TRAINING_MAX + 1];
    uint64_t last_step, last_eval; /* told */
    int is_done;                   /* told */
    uint64_t done_steps;           /* ... of so many */
    off_t done_size;               /* ... in so many bytes of `whole`; 0: it was told here */
    off_t at;                      /* bytes read until now */
    off_t passed, passed_size;     /* an end of this training that steps of it follow; 0: none */
    off_t whole;                   /* bytes of the file that was there, until the last newline */
    int is_old;                    /* the file is to be made anew of that */
};

/* ---- what is there ---- */

static int is_of(const struct metrics *metrics, const char *line)
{
    char key[METRICS_TRAINING_MAX + 32];
    snprintf(key, sizeof(key), "\"training\":\"%s\",", metrics->training);
    return metrics->training[0] != '\0' && strstr(line, key) != NULL;
}

static void note_end(struct metrics *metrics, const char *line)
{
    const char *steps = strstr(line, "\"steps\":");
    metrics->is_done = strstr(line, "\"done\":true") != NULL;
    metrics->done_steps = steps != NULL ? strtoull(steps + strlen("\"steps\":"), NULL, 10) : 0;
    metrics->done_size = (off_t)strlen(line);
}

/* Lines without a step belong to the step above them. What follows an end goes on behind it: a
 * training that was stopped, and taken up again. */
static void read_line(void *arg, const char *line)
{
    struct metrics *metrics = arg;
    const char *step = strstr(line, "\"step\":");
    if (step != NULL && is_of(metrics, line)) {
        if (metrics->is_done) {
            metrics->passed = metrics->at - metrics->done_size;
            metrics->passed_size = metrics->done_size;
        }
        metrics->last_step = strtoull(step + strlen("\"step\":"), NULL, 10);
        metrics->is_done = 0;
    } else if (step != NULL) { /* another training's */
        metrics->last_step = metrics->last_eval = 0;
        metrics->is_done = 0;
    } else if (metrics->last_step > 0) {
        metrics->last_eval =
            strstr(line, "\"eval_loss\":") != NULL ? metrics->last_step : metrics->last_eval;
        note_end(metrics, line);
    }
    metrics->at += (off_t)strlen(line);
}

static int look(struct metrics *metrics, struct ms_err *err)
{
    int fd = fcntl(metrics->out.fd, F_DUPFD_CLOEXEC, 0);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL) {
        ms_fail_errno(err, MS_E_IO, "cannot read %s", metrics->path);
        if (fd >= 0) {
            close(fd);
        }
        return MS_E_IO;
    }
    rewind(file); /* what was appended has moved it */
    metrics->at = metrics->passed = 0;
    const off_t whole = lines_read(file, read_line, metrics);
    fclose(file);
    metrics->whole = whole;
    return whole >= 0 ? 0 : ms_fail(err, MS_E_IO, "cannot read %s", metrics->path);
}

/* ---- the file ---- */

/* The old one is whose process may wake up; that writes into what nobody reads. */
static int take_file(struct metrics *metrics, int fd)
{
    if (fd > 0) {
        close(metrics->out.fd);
        ms_line_out_move(&metrics->out, fd);
    }
    return fd;
}

static int make_anew(struct metrics *metrics, struct ms_err *err)
{
    const int fd =
        take_file(metrics, lines_make_anew(metrics->out.fd, metrics->path, metrics->whole, err));
    return fd < 0 ? fd : 0;
}

/* Cuts off what follows the last newline: a line that a kill tore. */
static int mend(const struct metrics *metrics, struct ms_err *err)
{
    return ftruncate(metrics->out.fd, metrics->whole) == 0
               ? 0
               : ms_fail_errno(err, MS_E_IO, "cannot mend %s", metrics->path);
}

/* Of what stands behind the lines that there were, the end is kept: who saved in the place of this
 * process has added it. Where lines of ours come before it, it is of one that was asleep. */
static void take_end(struct metrics *metrics)
{
    char head[48];
    char line[DONE_MAX];
    const int may_be = metrics->is_old && !metrics->is_done && metrics->out.n_waiting == 0;
    const ssize_t n = may_be ? pread(metrics->out.fd, line, sizeof(line) - 1, metrics->whole) : 0;
    if (n <= 0) {
        return;
    }
    line[n] = '\0';
    snprintf(head, sizeof(head), "{\"done\":true,\"steps\":%" PRIu64 ",", metrics->last_step);
    const char *newline = strchr(line, '\n');
    if (newline != NULL && strncmp(line, head, strlen(head)) == 0) {
        metrics->whole += newline + 1 - line;
        metrics->is_done = 1;
        metrics->done_steps = metrics->last_step;
        metrics->done_size = newline + 1 - line;
    }
}

/* Until then what comes waits. */
static int renew(struct metrics *metrics, struct ms_err *err)
{
    take_end(metrics);
    int rc = metrics->is_old ? make_anew(metrics, err) : 0;
    metrics->is_old &= rc < 0;
    return rc;
}

int metrics_flush(struct metrics *metrics, struct ms_err *err)
{
    int rc = renew(metrics, err);
    return rc < 0 ? rc : ms_line_out_flush(&metrics->out, metrics->path, err);
}

int metrics_open(const char *path, const char *training, struct metrics **ret, struct ms_err *err)
{
    struct metrics *metrics = calloc(1, sizeof(*metrics));
    if (metrics == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for %s", path);
    }
    snprintf(metrics->path, sizeof(metrics->path), "%s", path);
    snprintf(metrics->training, sizeof(metrics->training), "%s", training);
    int fd = ms_file_append(path, O_RDWR, 0644, err);
    if (fd < 0) {
        free(metrics);
        return fd;
    }
    ms_line_out_init(&metrics->out, fd, MS_METRICS_PENDING);
    struct stat st;
    const int is_file = fstat(metrics->out.fd, &st) == 0 && S_ISREG(st.st_mode);
    int rc = is_file ? look(metrics, err) : 0;
    if (rc == 0 && is_file) {
        metrics->is_old = metrics->last_step > 0;
        rc = metrics->is_old ? 0 : mend(metrics, err);
        (void)renew(metrics, NULL); /* it is made anew with the next line, where the disk is full */
    }
    if (rc < 0) {
        metrics_close(metrics);
        return rc;
    }
    *ret = metrics;
    return 0;
}

uint64_t metrics_last_step(const struct metrics *metrics)
{
    return metrics->last_step;
}

void metrics_close(struct metrics *metrics)
{
    if (metrics != NULL) {
        (void)metrics_flush(metrics, NULL);
        close(metrics->out.fd);
        ms_line_out_fini(&metrics->out);
        free(metrics);
    }
}

uint64_t metrics_lost(const struct metrics *metrics)
{
    return metrics->out.lost;
}

uint64_t metrics_missing(const struct metrics *metrics)
{
    static const char key[] = "\"step\":";
    const char *waiting = metrics->out.waiting;
    const char *step = metrics->out.n_waiting > 0
                           ? memmem(waiting, metrics->out.n_waiting, key, sizeof(key) - 1)
                           : NULL;
    return step != NULL ? strtoull(step + sizeof(key) - 1, NULL, 10) : 0;
}

/* ---- lines ---- */

static int put(struct metrics *metrics, struct ms_err *err, const char *fmt, ...) MS_PRINTF(3, 4);

static int put(struct metrics *metrics, struct ms_err *err, const char *fmt, ...)
{
    char *line = NULL;
    va_list args;
    va_start(args, fmt);
    int n = vasprintf(&line, fmt, args);
    va_end(args);
    if (n < 0) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a line of %s", metrics->path);
    }
    int rc = renew(metrics, err);
    if (rc < 0) {
        ms_line_out_keep(&metrics->out, line, (size_t)n);
    } else {
        rc = ms_line_out_put(&metrics->out, metrics->path, line, (size_t)n, err);
    }
    free(line);
    return rc;
}

/* JSON has no word for what is not finite. */
static const char *number(double x, char buf[32])
{
    if (!isfinite(x)) {
        return "null";
    }
    snprintf(buf, 32, "%.9g", x);
    return buf;
}

int metrics_put_step(struct metrics *metrics, const struct metrics_step *step, struct ms_err *err)
{
    if (step->step <= metrics->last_step) {
        return 0;
    }
    char loss[32];
    char rate[32];
    char shown_rate[64] = "";
    char training[METRICS_TRAINING_MAX + 32] = "";
    if (metrics->training[0] != '\0') {
        snprintf(training, sizeof(training), "\"training\":\"%s\",", metrics->training);
    }
    if (step->has_learning_rate) {
        snprintf(shown_rate, sizeof(shown_rate), "\"learning_rate\":%s,",
                 metrics_format_loss(step->learning_rate, rate, sizeof(rate)));
    }
    metrics->last_step = step->step;
    metrics->is_done = 0;
    return put(metrics, err,
               "{\"t\":%.3f,%s\"generation\":%" PRIu64 ",\"epoch\":%" PRId64 ",\"step\":%" PRIu64
               ",\"loss\":%s,\"loss_hex\":\"%a\",%s\"samples_per_s\":%.2f,\"step_ms\":%.3f,"
               "\"comm_wait_ms\":%.3f}\n",
               (double)ms_wall_ms() * 1e-3, training, step->generation, step->epoch, step->step,
               isfinite(step->loss) ? metrics_format_loss(step->loss, loss, sizeof(loss)) : "null",
               (double)step->loss, shown_rate, step->samples_per_s, step->step_ms,
               step->comm_wait_ms);
}

char *metrics_format_eval(const struct metrics_eval *eval)
{
    char loss[32], accuracy[32];
    char *text = NULL;
    const int n = asprintf(&text, "\"eval_loss\":%s,\"accuracy\":%s%s", number(eval->loss, loss),
                           number(eval->accuracy, accuracy), eval->more != NULL ? eval->more : "");
    return n >= 0 ? text : NULL;
}

int metrics_put_eval(struct metrics *metrics, const struct metrics_eval *eval, struct ms_err *err)
{
    if (eval->step <= metrics->last_eval) {
        return 0;
    }
    char *members = metrics_format_eval(eval);
    if (members == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the line of an evaluation");
    }
    metrics->last_eval = eval->step;
    metrics->is_done = 0;
    int rc = put(metrics, err, "{\"epoch\":%" PRId64 ",%s}\n", eval->epoch, members);
    free(members);
    return rc;
}

/* The file's last line begins so. */
static int ends_with(const struct metrics *metrics, const char *line)
{
    char end[DONE_MAX];
    struct stat st;
    const int is_file = fstat(metrics->out.fd, &st) == 0 && S_ISREG(st.st_mode);
    const off_t from =
        is_file && st.st_size >= (off_t)sizeof(end) ? st.st_size - (off_t)sizeof(end) + 1 : 0;
    const ssize_t n = is_file ? pread(metrics->out.fd, end, sizeof(end) - 1, from) : 0;
    if (n <= 1) {
        return 0;
    }
    end[n - 1] = '\0';
    const char *newline = strrchr(end, '\n');
    return strncmp(newline != NULL ? newline + 1 : end, line, strlen(line)) == 0;
}

/* What the file ends with, if that is an end of this training: another process may have told it. */
static void look_for_end(const struct metrics *metrics, struct metrics *ret)
{
    struct stat st;
    *ret = *metrics;
    ret->last_step = ret->last_eval = 0;
    ret->is_done = 0;
    const int is_known = fstat(ret->out.fd, &st) == 0 && S_ISREG(st.st_mode) &&
                         look(ret, NULL) == 0 && ret->whole == st.st_size;
    ret->is_done = is_known && ret->is_done;
    ret->passed = is_known ? ret->passed : 0;
}

/* An end with weights that are no more there, for those of a later step took their place. A line
 * that comes behind it between the look and the cut goes with it: who had ended writes none. */
static void take_back(struct metrics *metrics, const struct metrics *there)
{
    struct stat st;
    if (metrics->is_old && metrics->is_done) {
        metrics->whole -= metrics->done_size;
    } else if (!metrics->is_old && there->is_done && fstat(metrics->out.fd, &st) == 0 &&
               st.st_size == there->whole &&
               ftruncate(metrics->out.fd, there->whole - there->done_size) != 0) {
        return; /* the new one is behind it, and counts */
    }
}

/* While this process slept another one told the end in its place, and its own lines came behind
 * that: they stay, and the end goes. */
static void drop_passed(struct metrics *metrics, struct metrics *there)
{
    static const char head[] = "{\"done\":true,";
    char line[sizeof(head)] = "";
    const struct lines_gap gap = {there->passed, there->passed + there->passed_size};
    const int is_ours = !metrics->is_old && metrics->out.n_waiting == 0 && there->passed > 0 &&
                        there->passed >= metrics->whole;
    if (is_ours && pread(metrics->out.fd, line, sizeof(head) - 1, gap.begin) > 0 &&
        strcmp(line, head) == 0 &&
        take_file(metrics, lines_make_anew_without(metrics->out.fd, metrics->path, there->whole,
                                                   &gap, NULL)) > 0) {
        there->whole -= there->passed_size;
    }
}

static int is_told(const struct metrics *metrics, const struct metrics *there,
                   const struct metrics_done *done, const char *line)
{
    return (metrics->is_done && metrics->done_steps >= done->steps) ||
           (!metrics->is_old &&
            ((there->is_done && there->done_steps > done->steps) || ends_with(metrics, line)));
}

int metrics_put_done(struct metrics *metrics, const struct metrics_done *done, struct ms_err *err)
{
    struct metrics there;
    char line[DONE_MAX];
    snprintf(line, sizeof(line),
             "{\"done\":true,\"steps\":%" PRIu64
             ",\"weights_sha256\":\"%s\",\"plan_sha256\":\"%s\",",
             done->steps, done->weights_sha256, done->plan_sha256);
    take_end(metrics);
    /* It may wait still. Of a file that is to be made anew nothing else stays. */
    look_for_end(metrics, &there);
    if (is_told(metrics, &there, done, line)) {
        return metrics_flush(metrics, err);
    }
    drop_passed(metrics, &there);
    take_back(metrics, &there);
    metrics->is_done = 1;
    metrics->done_steps = done->steps;
    metrics->done_size = 0;
    return put(metrics, err, "%s\"seconds\":%.3f}\n", line, done->seconds);
}

/* It stays whose it is: nothing of it is made anew. 1: and it can be read to its end; 0: it lacks a
 * newline there, has no line of the training, or is no file. */
static int look_at(struct metrics *metrics, int fd, const char *path, const char *training,
                   struct ms_err *err)
{
    struct stat st;
    *metrics = (struct metrics){.last_step = 0};
    snprintf(metrics->path, sizeof(metrics->path), "%s", path);
    snprintf(metrics->training, sizeof(metrics->training), "%s", training);
    ms_line_out_init(&metrics->out, fd, MS_METRICS_PENDING);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return 0;
    }
    int rc = look(metrics, err);
    return rc < 0 ? rc : metrics->last_step > 0 && metrics->whole == st.st_size;
}

/* What waits in the memory of its process comes behind. */
int metrics_add_done(const char *path, const char *training, const struct metrics_done *done,
                     struct ms_err *err)
{
    struct metrics metrics;
    int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return errno == ENOENT ? 0 : ms_fail_errno(err, MS_E_IO, "cannot open %s", path);
    }
    int rc = look_at(&metrics, fd, path, training, err);
    const int has_all =
        metrics.last_step >= done->steps && (!done->has_eval || metrics.last_eval >= done->steps);
    if (rc > 0) {
        rc = has_all || metrics.is_done ? metrics_put_done(&metrics, done, err) : 0;
    }
    fd = metrics.out.fd; /* it may be made anew */
    ms_line_out_fini(&metrics.out);
    close(fd);
    return rc;
}

uint64_t metrics_end_at(const char *path, const char *training)
{
    struct metrics metrics;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return 0;
    }
    const int is_whole = look_at(&metrics, fd, path, training, NULL) > 0;
    ms_line_out_fini(&metrics.out);
    close(fd);
    return is_whole && metrics.is_done ? metrics.done_steps : 0;
}

const char *metrics_format_loss(float loss, char *buf, size_t size)
{
    if (!isfinite(loss)) {
        snprintf(buf, size, "%s", isnan(loss) ? "nan" : loss > 0 ? "inf" : "-inf");
        return buf;
    }
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(buf, size, "%.*g", digits, (double)loss);
        if (strtof(buf, NULL) == loss) {
            break;
        }
    }
    double magnitude = fabs((double)loss);
    if (strchr(buf, 'e') != NULL && magnitude >= 1e-4 && magnitude < 1e16) {
        snprintf(buf, size, "%.1f", (double)loss); /* 1e+02 is 100.0 to numpy */
    } else if (strpbrk(buf, ".e") == NULL) {
        size_t n = strlen(buf);
        snprintf(buf + n, size - n, ".0");
    }
    return buf;
}
