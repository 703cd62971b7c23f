/* regular.h - files of configuration, opened at once, whatever stands in their place. Any thread.
 *
 * A daemon reads its settings, certificates and lists again while it serves. A FIFO in the place of
 * one would hold it until somebody writes there: nothing that is read at a start or a reload is
 * opened in another way. msctl, which serves nobody, may wait: it reads the pipes that it was
 * started with, too. */
#ifndef MS_REGULAR_H
#define MS_REGULAR_H

#include "proto/err.h"

#include <stdio.h>

/* Opens path for reading. what goes before the path in errors: "the settings file ", or "". Never
 * waits: MS_E_INVALID for what is no regular file; but /dev/null is one, an empty one.
 * After ms_regular_take_pipes the pipe behind /dev/stdin or /dev/fd/N is waited for and read.
 * MS_E_NOT_FOUND where nothing is there, else MS_E_IO. The file is the caller's to close. */
int ms_regular_open(const char *path, const char *what, FILE **ret, struct ms_err *err);

/* For a program that nobody waits for: `--config <(...)`, /dev/stdin. Holds for the whole process;
 * at its start, before there is a second thread. */
void ms_regular_take_pipes(void);

#endif
