/* line_out.h - lines into a file that may have no room for them for a while
 *
 * A disk that fills up takes a part of a line, and refuses the rest. That part is taken back, so
 * that no line is torn, nor another one written behind half of it; the line waits in memory, up to
 * a limit, and goes before the next one. What is no file (a pipe, a terminal) takes nothing back:
 * there the rest waits, and comes first.
 *
 * Each is one thread's. Those of one file may be of several threads of a process, of which each
 * waits for the others' write; that of another process behind half a line of ours is never cut. */
#ifndef MS_LINE_OUT_H
#define MS_LINE_OUT_H

#include "proto/err.h"
#include "proto/macros.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct ms_line_out {
    int fd;                /* borrowed; -1: none, and nothing is written */
    pthread_mutex_t *lock; /* of the file, in this process; NULL: it is no file */
    size_t max;            /* bytes that may wait */
    size_t n_waiting;
    char *waiting; /* max bytes, made when they are needed first */
    uint64_t lost; /* lines that found no room there, since the time when none waited */
};

void ms_line_out_init(struct ms_line_out *out, int fd, size_t max);
/* The same lines into another file. */
void ms_line_out_move(struct ms_line_out *out, int fd);
/* Frees what waits; a flush comes before. fd stays open. */
void ms_line_out_fini(struct ms_line_out *out);

/* Writes what waits, and then the line (with its newline). name: of the file, for the error.
 * MS_E_IO: it waits, or is lost. */
int ms_line_out_put(struct ms_line_out *out, const char *name, const char *line, size_t n,
                    struct ms_err *err);
/* Only lets it wait: the file is not there yet. */
void ms_line_out_keep(struct ms_line_out *out, const char *line, size_t n);
/* MS_E_IO: some wait still. */
int ms_line_out_flush(struct ms_line_out *out, const char *name, struct ms_err *err);

/* Lines that are lost, once, when all that waited is written; else 0. */
uint64_t ms_line_out_lost(struct ms_line_out *out);

/* Behind the last newline of a regular file nothing stays: a kill left it there, and the next line
 * would stand behind it. For who takes over the file of a process that has ended, before anything
 * else is written. A file that may not be read stays as it is. */
void ms_line_drop_torn(int fd);
/* One line, with its newline, whole or not at all: for who has nothing that could keep it. */
void ms_line_say(int fd, const char *fmt, ...) MS_PRINTF(2, 3);

#endif
