/* settings_file.h - the one reader of files of settings: `key = value` lines, # comments
 *
 * A comment is a # at the start of a line or behind a blank; a value may stand in "quotes". Never
 * waits: what is no regular file is refused. Any thread. */
#ifndef MS_SETTINGS_FILE_H
#define MS_SETTINGS_FILE_H

#include "proto/err.h"

#include <stddef.h>

/* What to do with a setting; key and value are borrowed for the call. Not 0: the reading ends with
 * that. */
typedef int ms_settings_line_fn(void *arg, const char *key, const char *value, int line,
                                struct ms_err *err);

/* Calls fn for each setting. MS_E_NOT_FOUND: no file is there; MS_E_CONFIG: it cannot be read, is
 * no regular file, or a line is no setting; else what fn returned. */
int ms_settings_file_read(const char *path, ms_settings_line_fn *fn, void *arg, struct ms_err *err);

/* A look at n settings of another program's file, whose other keys are not judged. Fills values[i]
 * with an owned text for keys[i], NULL where the file does not say it, and all NULL on failure.
 * Errors as above; a key that stands there twice is MS_E_CONFIG, as for its program. */
int ms_settings_file_find(const char *path, const char *const *keys, char **values, size_t n,
                          struct ms_err *err);

#endif
