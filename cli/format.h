/* format.h - numbers, times and texts as people read them; pure, any thread */
#ifndef CLI_FORMAT_H
#define CLI_FORMAT_H

#include "cli/width.h"

#include <stddef.h>
#include <stdint.h>

enum { CLI_FORMAT_MAX = 48 }; /* enough for every function that takes a buf */

/* "0.42 s", "59.9 s", "1:23", "2:03:04", "3d 02:03:04"; "-" for what is negative or no number. */
const char *cli_format_duration(char *buf, double seconds);
/* Without fractions, for what counts down: "12 s", "1:23". */
const char *cli_format_eta(char *buf, double seconds);
/* "1,234,567" */
const char *cli_format_count(char *buf, uint64_t n);
/* "512 B", "31.3 GiB" */
const char *cli_format_bytes(char *buf, uint64_t bytes);
/* Three significant digits at least, never an exponent where it can be helped: "0.0123", "812". */
const char *cli_format_real(char *buf, double x);
/* Of samples a second: "0.1361", "3.42", "81.4", "1,812" */
const char *cli_format_rate(char *buf, double per_second);
/* Of milliseconds: "39.4 ms", "14.7 s", "2:03" */
const char *cli_format_ms(char *buf, double ms);
/* Local time "2026-11-21 07:34:09" of Unix milliseconds; "-" for 0. */
const char *cli_format_time(char *buf, int64_t unix_ms);

/* As short as it tells: "07:34:09" of the day of now_ms, "11-20 07:34" of its year, else
 * "2025-11-21". */
const char *cli_format_time_short(char *buf, int64_t unix_ms, int64_t now_ms);

/* Bytes of text that make its first line where a line has so many columns: up to a blank; a word
 * that is longer stays whole. */
size_t cli_text_break(const char *text, size_t columns);

/* Copies text as one line (what is none is shown as '?'), cut to columns of the terminal with "..."
 * at the end where it had to be cut (plain "." where there is no room). Returns dst. */
const char *cli_text_fit(char *dst, size_t size, const char *text, size_t columns);

/* "[=====>    ]" of width columns in all (at least 4) into dst; part is clamped to 0..1. */
const char *cli_bar(char *dst, size_t size, size_t width, double part);
/* n values squeezed into at most width columns of block characters (utf8) or ASCII; values that are
 * no numbers show as '!'. */
const char *cli_sparkline(char *dst, size_t size, const double *values, size_t n, size_t width,
                          int utf8);

#endif
