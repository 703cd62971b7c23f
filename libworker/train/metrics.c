/* metrics.c - metrics.jsonl and the loss lines of a rank's log */
#include "libworker/train/metrics.h"

#include "proto/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct metrics {
    int fd;
    char path[1100];
};

/* Cuts off what follows the last newline: a line that a kill tore. */
static int mend(int fd, const char *path, struct ms_err *err)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char tail[4096];
    while (size > 0) {
        size_t want = size > (off_t)sizeof(tail) ? sizeof(tail) : (size_t)size;
        ssize_t n = pread(fd, tail, want, size - (off_t)want);
        if (n != (ssize_t)want) {
            return ms_fail_errno(err, MS_E_IO, "cannot read %s", path);
        }
        while (want > 0 && tail[want - 1] != '\n') {
            want--;
            size--;
        }
        if (want > 0) {
            break;
        }
    }
    if (ftruncate(fd, size > 0 ? size : 0) != 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot mend %s", path);
    }
    return 0;
}

int metrics_open(const char *path, struct metrics **ret, struct ms_err *err)
{
    struct metrics *metrics = calloc(1, sizeof(*metrics));
    if (metrics == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for %s", path);
    }
    snprintf(metrics->path, sizeof(metrics->path), "%s", path);
    metrics->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (metrics->fd < 0) {
        free(metrics);
        return ms_fail_errno(err, MS_E_IO, "cannot open %s", path);
    }
    int rc = mend(metrics->fd, path, err);
    if (rc < 0) {
        metrics_close(metrics);
        return rc;
    }
    *ret = metrics;
    return 0;
}

void metrics_close(struct metrics *metrics)
{
    if (metrics != NULL) {
        close(metrics->fd);
        free(metrics);
    }
}

/* A disk that fills up takes a part of the line first, which is no error yet: the rest is. */
static int write_all(const struct metrics *metrics, const char *bytes, size_t n, struct ms_err *err)
{
    while (n > 0) {
        ssize_t put = write(metrics->fd, bytes, n);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return ms_fail_errno(err, MS_E_IO, "cannot write %s", metrics->path);
        }
        bytes += put;
        n -= (size_t)put;
    }
    return 0;
}

static int put(struct metrics *metrics, struct ms_err *err, const char *fmt, ...) MS_PRINTF(3, 4);

static int put(struct metrics *metrics, struct ms_err *err, const char *fmt, ...)
{
    char line[768];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(line)) {
        return ms_fail(err, MS_E_FULL, "a line for %s is too long", metrics->path);
    }
    return write_all(metrics, line, (size_t)n, err);
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
    char loss[32];
    return put(metrics, err,
               "{\"t\":%.3f,\"generation\":%" PRIu64 ",\"epoch\":%" PRId64 ",\"step\":%" PRIu64
               ",\"loss\":%s,\"loss_hex\":\"%a\",\"samples_per_s\":%.2f,\"step_ms\":%.3f,"
               "\"comm_wait_ms\":%.3f}\n",
               (double)ms_wall_ms() * 1e-3, step->generation, step->epoch, step->step,
               isfinite(step->loss) ? metrics_format_loss(step->loss, loss, sizeof(loss)) : "null",
               (double)step->loss, step->samples_per_s, step->step_ms, step->comm_wait_ms);
}

int metrics_put_eval(struct metrics *metrics, int64_t epoch, double loss, double accuracy,
                     struct ms_err *err)
{
    char loss_text[32], accuracy_text[32];
    return put(metrics, err, "{\"epoch\":%" PRId64 ",\"eval_loss\":%s,\"accuracy\":%s}\n", epoch,
               number(loss, loss_text), number(accuracy, accuracy_text));
}

int metrics_put_done(struct metrics *metrics, const struct metrics_done *done, struct ms_err *err)
{
    return put(metrics, err,
               "{\"done\":true,\"steps\":%" PRIu64
               ",\"weights_sha256\":\"%s\",\"plan_sha256\":\"%s\",\"seconds\":%.3f}\n",
               done->steps, done->weights_sha256, done->plan_sha256, done->seconds);
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
