/* log.h - one event, one line, on standard error
 *
 *     <5>job.lost job=17 node="w3" reason="lease expired" after_ms=10012
 *
 * The <N> prefix is syslog's priority as systemd reads it; it is left out on a terminal and in
 * files of `msctl run` (ms_log_init decides), where local time stands instead. The event name comes
 * first, then stable keys. Values that hold anything but [A-Za-z0-9_.:/@+-] are quoted and escaped
 * by the caller through ms_log_quote. Only mains and the files that style.md names log; libraries
 * return errors. Any thread: a line is one write(2). In a file no line is torn by a full disk: they
 * wait in memory, MS_LOG_WAITING bytes of them, for the next line that can be written
 * (line_out.h). */
#ifndef MS_LOG_H
#define MS_LOG_H

#include "proto/limits.h"
#include "proto/macros.h"

#include <stddef.h>

enum ms_log_level {
    MS_LOG_ERR = 3,     /* somebody must act */
    MS_LOG_WARNING = 4, /* we coped: says "ignoring" or "retrying" */
    MS_LOG_NOTICE = 5,  /* a state changed */
    MS_LOG_INFO = 6,    /* a request */
    MS_LOG_DEBUG = 7,
};

/* Lines above max_level are dropped. journal: write "<N>" prefixes instead of the time. fd stays
 * the caller's. Call before the first thread starts. Default: MS_LOG_INFO to standard error, with
 * time. */
void ms_log_init(int fd, enum ms_log_level max_level, int journal);

void ms_log(enum ms_log_level level, const char *fmt, ...) MS_PRINTF(2, 3);

/* Writes text as a quoted value into buf ("..." with \" \\ and \xNN) and returns buf; cut to fit.
 */
const char *ms_log_quote(char *buf, size_t size, const char *text);

/* The same as an expression, for an argument of ms_log: its room lives as long as the block. */
#define MS_QUOTE(text) ms_log_quote((char[2 *MS_TEXT_MAX]){""}, (size_t)2 * MS_TEXT_MAX, (text))

#endif
