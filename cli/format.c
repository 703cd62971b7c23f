/* format.c - numbers, times and texts as people read them */
#include "cli/format.h"

#include "proto/macros.h"
#include "proto/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *clock_format(char *buf, double seconds)
{
    int64_t s = (int64_t)seconds;
    int64_t days = s / 86400;
    int h = (int)(s / 3600 % 24);
    int m = (int)(s / 60 % 60);
    if (days > 0) {
        snprintf(buf, CLI_FORMAT_MAX, "%lldd %02d:%02d:%02d", (long long)days, h, m, (int)(s % 60));
    } else if (h > 0) {
        snprintf(buf, CLI_FORMAT_MAX, "%d:%02d:%02d", h, m, (int)(s % 60));
    } else {
        snprintf(buf, CLI_FORMAT_MAX, "%d:%02d", m, (int)(s % 60));
    }
    return buf;
}

static int no_time(double seconds)
{
    return !(seconds >= 0 && seconds < 1e12);
}

const char *cli_format_duration(char *buf, double seconds)
{
    if (no_time(seconds)) {
        snprintf(buf, CLI_FORMAT_MAX, "-");
    } else if (seconds < 9.995) {
        snprintf(buf, CLI_FORMAT_MAX, "%.2f s", seconds);
    } else if (seconds < 59.95) {
        snprintf(buf, CLI_FORMAT_MAX, "%.1f s", seconds);
    } else {
        clock_format(buf, floor(seconds + 0.5));
    }
    return buf;
}

const char *cli_format_eta(char *buf, double seconds)
{
    if (no_time(seconds)) {
        snprintf(buf, CLI_FORMAT_MAX, "-");
    } else if (seconds < 59.5) {
        snprintf(buf, CLI_FORMAT_MAX, "%.0f s", seconds);
    } else {
        clock_format(buf, floor(seconds + 0.5));
    }
    return buf;
}

const char *cli_format_count(char *buf, uint64_t n)
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    size_t used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            buf[used++] = ',';
        }
        buf[used++] = digits[i];
    }
    buf[used] = '\0';
    return buf;
}

const char *cli_format_bytes(char *buf, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double x = (double)bytes;
    size_t unit = 0;
    while (x >= 1023.95 && unit + 1 < MS_ARRAY_SIZE(units)) {
        x /= 1024;
        unit++;
    }
    snprintf(buf, CLI_FORMAT_MAX, unit == 0 ? "%.0f %s" : "%.1f %s", x, units[unit]);
    return buf;
}

const char *cli_format_real(char *buf, double x)
{
    double a = fabs(x);
    if (!isfinite(x)) {
        snprintf(buf, CLI_FORMAT_MAX, "%s", isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
    } else if (a != 0 && (a < 1e-4 || a >= 1e9)) {
        snprintf(buf, CLI_FORMAT_MAX, "%.3g", x);
    } else if (a >= 99.95) {
        snprintf(buf, CLI_FORMAT_MAX, "%.0f", x);
    } else if (a >= 9.995) {
        snprintf(buf, CLI_FORMAT_MAX, "%.1f", x);
    } else {
        snprintf(buf, CLI_FORMAT_MAX, "%.4f", x);
    }
    return buf;
}

const char *cli_format_rate(char *buf, double per_second)
{
    int is_count = per_second >= 99.95 && per_second < 1e15;
    return is_count ? cli_format_count(buf, (uint64_t)(per_second + 0.5))
                    : cli_format_real(buf, per_second);
}

const char *cli_format_ms(char *buf, double ms)
{
    if (ms >= 9999.5) {
        return cli_format_duration(buf, ms / 1000);
    }
    cli_format_real(buf, ms);
    size_t n = strlen(buf);
    snprintf(buf + n, CLI_FORMAT_MAX - n, " ms");
    return buf;
}

const char *cli_format_time(char *buf, int64_t unix_ms)
{
    time_t t = (time_t)(unix_ms / 1000);
    struct tm tm;
    if (unix_ms <= 0 || localtime_r(&t, &tm) == NULL ||
        strftime(buf, CLI_FORMAT_MAX, "%Y-%m-%d %H:%M:%S", &tm) == 0) {
        snprintf(buf, CLI_FORMAT_MAX, "-");
    }
    return buf;
}

const char *cli_format_time_short(char *buf, int64_t unix_ms, int64_t now_ms)
{
    time_t t = (time_t)(unix_ms / 1000);
    time_t now = (time_t)(now_ms / 1000);
    struct tm tm;
    struct tm today;
    if (unix_ms <= 0 || localtime_r(&t, &tm) == NULL || localtime_r(&now, &today) == NULL) {
        snprintf(buf, CLI_FORMAT_MAX, "-");
        return buf;
    }
    size_t n = tm.tm_year != today.tm_year   ? strftime(buf, CLI_FORMAT_MAX, "%Y-%m-%d", &tm)
               : tm.tm_yday != today.tm_yday ? strftime(buf, CLI_FORMAT_MAX, "%m-%d %H:%M", &tm)
                                             : strftime(buf, CLI_FORMAT_MAX, "%H:%M:%S", &tm);
    buf[n] = '\0';
    return buf;
}

size_t cli_text_break(const char *text, size_t columns)
{
    size_t n = cli_text_bytes_of(text, columns);
    if (text[n] == '\0' || text[n] == ' ') {
        return n;
    }
    for (size_t at = n; at > 0; at--) {
        if (text[at - 1] == ' ') {
            return at - 1 > 0 ? at - 1 : n;
        }
    }
    return strcspn(text, " ");
}

static int is_continuation(char c)
{
    return ((unsigned char)c & 0xC0U) == 0x80U;
}

const char *cli_text_fit(char *dst, size_t size, const char *text, size_t columns)
{
    int cut = cli_text_columns(text) > columns;
    size_t dots = !cut ? 0 : columns >= 6 ? 3 : columns > 0 ? 1 : 0;
    size_t bytes = cut ? cli_text_bytes_of(text, columns - dots) : strlen(text);
    if (size == 0) {
        return dst;
    }
    if (bytes + dots > size - 1) { /* a whole character less rather than half of one */
        bytes = size - 1 - dots;
        while (bytes > 0 && is_continuation(text[bytes])) {
            bytes--;
        }
    }
    memcpy(dst, text, bytes);
    ms_text_mend((uint8_t *)dst, bytes, MS_TEXT_LINE);
    memset(dst + bytes, '.', dots);
    dst[bytes + dots] = '\0';
    return dst;
}

const char *cli_bar(char *dst, size_t size, size_t width, double part)
{
    if (size < 5) {
        dst[0] = '\0';
        return dst;
    }
    width = width < 4 ? 4 : width;
    width = width > size - 1 ? size - 1 : width;
    part = part > 0 ? (part < 1 ? part : 1) : 0;
    size_t inner = width - 2;
    size_t full = (size_t)((double)inner * part);
    dst[0] = '[';
    memset(dst + 1, ' ', inner);
    memset(dst + 1, '=', full);
    if (full < inner && part > 0) {
        dst[1 + full] = '>';
    }
    dst[width - 1] = ']';
    dst[width] = '\0';
    return dst;
}

/* Mean of the values that fall into column c of width. */
static double column_mean(const double *values, size_t n, size_t width, size_t c)
{
    size_t begin = c * n / width;
    size_t end = (c + 1) * n / width;
    double sum = 0;
    for (size_t i = begin; i < end; i++) {
        sum += values[i];
    }
    return sum / (double)(end - begin);
}

const char *cli_sparkline(char *dst, size_t size, const double *values, size_t n, size_t width,
                          int utf8)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {"_", ".", "-", ":", "=", "+", "*", "#"};
    const char *const *marks = utf8 ? blocks : plain;
    const size_t levels = MS_ARRAY_SIZE(blocks);
    size_t columns = n < width ? n : width;
    double low = INFINITY;
    double high = -INFINITY;
    for (size_t c = 0; c < columns; c++) {
        double x = column_mean(values, n, columns, c);
        if (isfinite(x)) {
            low = fmin(low, x);
            high = fmax(high, x);
        }
    }
    size_t used = 0;
    dst[0] = '\0';
    for (size_t c = 0; c < columns && used + 4 < size; c++) {
        double x = column_mean(values, n, columns, c);
        const char *mark = "!";
        if (isfinite(x)) {
            double part = high > low ? (x - low) / (high - low) : 0;
            size_t level = (size_t)(part * (double)levels);
            mark = marks[level < levels ? level : levels - 1];
        }
        used += (size_t)snprintf(dst + used, size - used, "%s", mark);
    }
    return dst;
}
