/* program_child.h - one process of a program that delivers records: its pipes and its end
 *
 *     worker ── asks ──> standard input     program     standard output ── bytes ──> worker
 *                                                        standard error ──> program_words.h
 *
 * A thread starts the process, hears what it says and waits for its end: the kernel kills the
 * process with that thread, so however this process ends, it takes the other one with it. What the
 * program has started itself, in its process group, goes when it ends or is ended here. */
#ifndef DATA_PROGRAM_CHILD_H
#define DATA_PROGRAM_CHILD_H

#include "libworker/data/program_words.h"
#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

struct program_command { /* borrowed until the end of the process */
    const char *path;    /* of the file, absolute */
    const char *folder;  /* in which it runs */
    char *const *argv, *const *envp;
};

struct program_child;

/* Returns owned. MS_E_NOMEM: no process or thread is to be had. That the file cannot be executed is
 * said as the program's last words. */
int program_child_start(const struct program_command *command, struct program_words *words,
                        struct program_child **ret, struct ms_err *err);

/* Ends the process: after ms milliseconds in which it may end by itself, its input being closed.
 * Tells how it ended, "with status 1", "by signal 9 (Killed)", of what it had done before that:
 * "its output, and not itself," where it had to be killed. buf NULL allowed; child NULL: nothing
 * happens. */
void program_child_stop(struct program_child *child, int ms, char *buf, size_t size);

/* Appends text to what is written to its input while program_child_read waits. -1: no memory. */
int program_child_ask(struct program_child *child, const char *text, size_t size);

/* Reads exactly size bytes of its output. wake: a descriptor that is readable once nobody wants
 * them any more. MS_E_CLOSED: the output has ended before; MS_E_TIMEOUT: nothing came for
 * timeout_ms; MS_E_ABORTED: wake; MS_E_IO. No text is given with these. One thread. */
int program_child_read(struct program_child *child, void *dst, size_t size, int timeout_ms,
                       int wake);

#endif
