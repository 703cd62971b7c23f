/* log.c - one event, one line, on standard error */
#include "proto/log.h"

#include "proto/line_out.h"
#include "proto/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2048 }; /* below PIPE_BUF, so that a line is written whole or not at all */

static struct ms_line_out log_out = {.fd = STDERR_FILENO};
static enum ms_log_level log_max = MS_LOG_INFO;
static int log_journal;

void ms_log_init(int fd, enum ms_log_level max_level, int journal)
{
    ms_line_out_fini(&log_out);
    ms_line_out_init(&log_out, fd, MS_LOG_WAITING);
    log_max = max_level;
    log_journal = journal;
}

static size_t put_head(char *line, size_t size, enum ms_log_level level)
{
    if (log_journal) {
        return (size_t)snprintf(line, size, "<%d>", (int)level);
    }
    static const char *const names[] = {"", "", "", "error ", "warning ", "", "", "debug "};
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    char stamp[40];
    strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &tm);
    return (size_t)snprintf(line, size, "%s.%03ld %s", stamp, now.tv_nsec / 1000000,
                            names[(unsigned)level & 7U]);
}

/* Into a pipe or the journal at once: several threads have no memory in common for what it does not
 * take. A file has, and says later how many lines it lacks. */
static void put(const char *line, size_t size)
{
    if (log_out.lock == NULL) {
        ssize_t written = write(log_out.fd, line, size);
        (void)written; /* what cannot be said must not stop the program that logs */
        return;
    }
    (void)ms_line_out_put(&log_out, "the log", line, size, NULL);
    const uint64_t lost = ms_line_out_lost(&log_out);
    if (lost > 0) {
        ms_log(MS_LOG_WARNING,
               "log.lost lines=%" PRIu64 " reason=\"there was no room for them, ignoring\"", lost);
    }
}

void ms_log(enum ms_log_level level, const char *fmt, ...)
{
    if (level > log_max) {
        return;
    }
    char line[LINE_MAX_BYTES];
    size_t head = put_head(line, sizeof(line), level);
    va_list args;
    va_start(args, fmt);
    int body = vsnprintf(line + head, sizeof(line) - head, fmt, args);
    va_end(args);
    if (body < 0) {
        return;
    }
    size_t used = head + (size_t)body;
    if (used > sizeof(line) - 1) {
        used = sizeof(line) - 1;
    }
    for (size_t i = head; i < used; i++) { /* one event stays one line, whatever was in the text */
        if (line[i] == '\n') {
            line[i] = ' ';
        }
    }
    line[used++] = '\n';
    put(line, used);
}

/* One character of text as it stands in a quoted value; *ret_used bytes of text are done. */
static size_t quote_one(const uint8_t *text, size_t left, char out[20], size_t *ret_used)
{
    uint32_t code = 0;
    size_t n = ms_utf8_take(text, left, &code);
    *ret_used = n > 0 ? n : 1;
    if (n > 0 && !ms_text_is_control(code, MS_TEXT_LINE)) {
        size_t at = 0;
        if (code == '"' || code == '\\') {
            out[at++] = '\\';
        }
        memcpy(out + at, text, n);
        return at + n;
    }
    size_t at = 0;
    for (size_t i = 0; i < *ret_used; i++) { /* byte by byte, so that it can be told back */
        at += (size_t)snprintf(out + at, 20 - at, "\\x%02x", text[i]);
    }
    return at;
}

const char *ms_log_quote(char *buf, size_t size, const char *text)
{
    size_t used = 0;
    if (size < 3) {
        if (size > 0) {
            buf[0] = '\0';
        }
        return buf;
    }
    buf[used++] = '"';
    const uint8_t *p = (const uint8_t *)text;
    for (size_t left = strlen(text); left > 0;) {
        char one[20];
        size_t taken = 0;
        size_t n = quote_one(p, left, one, &taken);
        if (used + n + 2 > size) {
            break;
        }
        memcpy(buf + used, one, n);
        used += n;
        p += taken;
        left -= taken;
    }
    buf[used++] = '"';
    buf[used] = '\0';
    return buf;
}
