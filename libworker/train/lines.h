/* lines.h - a file of lines that grows, and is one process's at a time: metrics.jsonl, a rank's log
 *
 * A kill tears the last line; and a process that was only asleep writes into the file that it has
 * open, behind the lines of who took its place. So who takes over keeps the whole lines, and makes
 * the file anew of them under the same name. How lines get into it, proto/line_out.h. Any thread,
 * one at a time for one file. */
#ifndef TRAIN_LINES_H
#define TRAIN_LINES_H

#include "proto/err.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Calls on_line for each whole line of less than LINES_LINE_MAX bytes, with its newline: longer
 * ones are none of ours. From where file is. Returns the bytes of the file until its last newline;
 * MS_E_IO, MS_E_NOMEM. */
enum { LINES_LINE_MAX = 1 << 19 };
off_t lines_read(FILE *file, void (*on_line)(void *arg, const char *line), void *arg);

/* A file of the first whole bytes of fd, which can be read, takes path, once it is on the disk, to
 * be read and appended to. Returns its descriptor; fd stays open. 0: another process has made path
 * anew since, and fd is what nobody reads. MS_E_IO, where nothing has changed: no room among
 * others, and that before anything is copied.
 *
 * Until then it has a name for the moment, path.new- and a lot, and takes away such names of all
 * others: of two that do this at once, however long one of them sleeps, the later one stays; who
 * wakes when the place is taken takes nobody's name away. */
int lines_make_anew(int fd, const char *path, off_t whole, struct ms_err *err);

/* ... but for those bytes of them: lines, begin <= end <= whole. */
struct lines_gap {
    off_t begin, end;
};
int lines_make_anew_without(int fd, const char *path, off_t whole, const struct lines_gap *gap,
                            struct ms_err *err);

#endif
