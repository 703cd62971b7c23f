/* rank_log.c - the loss lines of a rank's log, each once, whatever was killed */
#include "libworker/train/rank_log.h"

#include "libworker/train/lines.h"
#include "proto/limits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is there ---- */

/* The log, to be read: whoever started this process may have opened it, for writing only. NULL: it
 * is no regular file, or may not be read. */
static FILE *open_to_read(int fd)
{
    struct stat st;
    char path[40];
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return NULL;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return fopen(path, "re");
}

struct found {
    const char *training;
    int64_t steps_per_epoch;
    int is_ours;   /* the last training that is named is this one */
    uint64_t last; /* its highest step: a process that was asleep may have said an older one */
};

/* A whole loss line. One that a kill tore, and that somebody has written behind, is none: its step
 * is told again. */
static int read_loss(const char *line, int64_t *epoch, int64_t *step)
{
    int at = 0;
    char *end = NULL;
    if (sscanf(line, "epoch: %" SCNd64 " step: %" SCNd64 ", loss is %n", epoch, step, &at) != 2 ||
        at == 0) {
        return 0;
    }
    (void)strtof(line + at, &end);
    return end != line + at && strcmp(end, "\n") == 0;
}

static void read_line(void *arg, const char *line)
{
    struct found *found = arg;
    static const char head[] = "training ";
    int64_t epoch = 0;
    int64_t step = 0;
    if (strncmp(line, head, sizeof(head) - 1) == 0) {
        const char *name = line + sizeof(head) - 1;
        const size_t n = strlen(found->training);
        found->is_ours = strncmp(name, found->training, n) == 0 && strcmp(name + n, "\n") == 0;
        found->last = 0;
    } else if (found->is_ours && read_loss(line, &epoch, &step) && epoch > 0 && step > 0 &&
               step <= found->steps_per_epoch) {
        const uint64_t at = (uint64_t)((epoch - 1) * found->steps_per_epoch + step);
        found->last = at > found->last ? at : found->last;
    }
}

static int is_torn(int fd, off_t whole)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_size > whole;
}

static void drop_torn(int fd, off_t whole)
{
    if (is_torn(fd, whole) && ftruncate(fd, whole) == 0) {
        (void)lseek(fd, 0, SEEK_END); /* one that was not opened to append */
    }
}

/* ---- the file is this process's ---- */

/* Where it cannot be made the old one stays: that is no reason not to train. */
static int make_anew(FILE *file, int fd, const char *path, off_t whole)
{
    const int new_fd = lines_make_anew(fileno(file), path, whole, NULL);
    const int is_made = new_fd > 0 && dup3(new_fd, fd, O_CLOEXEC) >= 0;
    if (new_fd > 0) {
        close(new_fd);
    }
    return is_made;
}

void rank_log_open(struct rank_log *log, int fd, const char *path, const char *training, int rank,
                   int world, int64_t steps_per_epoch)
{
    *log = (struct rank_log){
        .path = path, .rank = rank, .steps_per_epoch = steps_per_epoch, .rule = {.loss_every = 1}};
    ms_line_out_init(&log->out, fd, MS_RANK_LOG_WAITING);
    char whose[128];
    snprintf(whose, sizeof(whose), "%s: rank %d of %d", training, rank, world);
    FILE *file = fd >= 0 && training[0] != '\0' ? open_to_read(fd) : NULL;
    if (file == NULL) {
        return;
    }
    struct found found = {.training = whose, .steps_per_epoch = steps_per_epoch};
    const off_t whole = lines_read(file, read_line, &found);
    found.is_ours &= whole >= 0;
    const int is_anew = found.is_ours && path != NULL && make_anew(file, fd, path, whole);
    ms_line_out_move(&log->out, fd);
    fclose(file);
    if (found.is_ours) { /* else what is torn, or still being written, is another's */
        log->last = found.last;
    }
    if (found.is_ours && !is_anew) {
        drop_torn(fd, whole);
    } else if (!found.is_ours) {
        rank_log_say(log, "%straining %s\n", is_torn(fd, whole) ? "\n" : "", whose);
    }
}

/* ---- what comes ---- */

static const char *name_of(const struct rank_log *log, char buf[40])
{
    snprintf(buf, 40, "the log of rank %d", log->rank);
    return log->path != NULL ? log->path : buf;
}

static int put(struct rank_log *log, const char *line, size_t n, struct ms_err *err)
{
    char buf[40];
    return ms_line_out_put(&log->out, name_of(log, buf), line, n, err);
}

void rank_log_say(struct rank_log *log, const char *fmt, ...)
{
    char line[RANK_LOG_LINE_MAX + 1];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (n >= (int)sizeof(line)) {
        n = sizeof(line) - 1;
        line[n - 1] = '\n';
    }
    (void)put(log, line, (size_t)n, NULL);
}

void rank_log_set_rule(struct rank_log *log, const struct rank_log_rule *rule)
{
    log->rule = *rule;
}

int rank_log_is_full(const struct rank_log *log)
{
    return log->rule.loss_every == 1;
}

static int ends_epoch(const struct rank_log *log, uint64_t step)
{
    return step % (uint64_t)log->steps_per_epoch == 0;
}

void rank_log_took(struct rank_log *log, uint64_t step, double ms)
{
    if (step <= log->timed) {
        return; /* it is made again */
    }
    if (log->timed == 0 || ends_epoch(log, log->timed)) {
        log->epoch_ms = 0;
        log->n_timed = 0;
    }
    log->timed = step;
    log->epoch_ms += ms;
    log->n_timed++;
}

static int has_line(const struct rank_log *log, uint64_t step)
{
    const struct rank_log_rule *rule = &log->rule;
    return (rule->loss_every > 0 && step % (uint64_t)rule->loss_every == 0) ||
           ((rule->epochs || rule->time) && ends_epoch(log, step));
}

/* Of a process that came within the epoch it is of as many steps as it made, times the rest. */
static int format_time(const struct rank_log *log, char *buf, size_t size)
{
    const double each = log->n_timed > 0 ? log->epoch_ms / (double)log->n_timed : 0;
    return snprintf(buf, size, "Train epoch time: %5.3f ms, per step time: %5.3f ms\n",
                    each * (double)log->steps_per_epoch, each);
}

int rank_log_step(struct rank_log *log, uint64_t step, float loss, struct ms_err *err)
{
    if (step <= log->last) {
        return MS_OK;
    }
    char number[32];
    char line[256];
    const int64_t at = (int64_t)step - 1;
    log->last = step;
    if (!has_line(log, step)) {
        return MS_OK;
    }
    int n = snprintf(line, sizeof(line), "epoch: %" PRId64 " step: %" PRId64 ", loss is %s\n",
                     at / log->steps_per_epoch + 1, at % log->steps_per_epoch + 1,
                     metrics_format_loss(loss, number, sizeof(number)));
    if (log->rule.time && ends_epoch(log, step)) {
        n += format_time(log, line + n, sizeof(line) - (size_t)n);
    }
    return put(log, line, (size_t)n, err);
}

int rank_log_flush(struct rank_log *log, struct ms_err *err)
{
    char buf[40];
    return ms_line_out_flush(&log->out, name_of(log, buf), err);
}

uint64_t rank_log_lost(const struct rank_log *log)
{
    return log->out.lost;
}

void rank_log_close(struct rank_log *log)
{
    (void)rank_log_flush(log, NULL);
    ms_line_out_fini(&log->out);
}
