/* settings.h - where a setting comes from: flag > environment > file > built-in
 *
 * A program describes its settings in one table; this module reads all four places, validates type
 * and range with a message that gives name, value and legal range, and prints every value with its
 * source
 * (--check-config and the start-up log). File format: `key = value` lines, # comments. */
#ifndef MS_SETTINGS_H
#define MS_SETTINGS_H

#include "proto/err.h"

#include <stdint.h>
#include <stdio.h>

enum ms_setting_type { MS_SET_STRING, MS_SET_INT, MS_SET_BOOL, MS_SET_ENUM };
enum ms_setting_source { MS_FROM_BUILTIN, MS_FROM_FILE, MS_FROM_ENV, MS_FROM_FLAG };

struct ms_setting {
    const char *key;  /* in the file: "lease_ms"; NULL ends the table */
    const char *flag; /* "--lease-ms", or NULL */
    const char *env;  /* "MS_NODE_TIMEOUT", or NULL */
    enum ms_setting_type type;
    int64_t min, max;    /* MS_SET_INT */
    const char *choices; /* MS_SET_ENUM: "a|b|c" */
    const char *builtin; /* default as text; NULL: none */
    int reloadable;      /* SIGHUP may change it */
    const char *help;    /* one line for --help and the man page */
};

struct ms_settings;

/* Reads file (NULL: none; file_required: missing is an error), environment and flags. argv after
 * the known flags and their values is left in argv[1..*argc-1], "--" ends the flags; an unknown
 * flag is an error with the nearest known one. Returns owned. */
int ms_settings_load(const struct ms_setting *table, const char *file, int file_required, int *argc,
                     char **argv, struct ms_settings **ret, struct ms_err *err);
void ms_settings_destroy(struct ms_settings *settings);

/* Values; key must be in the table. Strings: NULL when unset; borrowed until destroy; works for
 * every type (the text as given), which is how an unset number is told from 0. A number of
 * MS_SET_ENUM is the index in choices. A bad flag is MS_E_INVALID, a bad value elsewhere
 * MS_E_CONFIG. */
const char *ms_settings_string(const struct ms_settings *settings, const char *key);
int64_t ms_settings_int(const struct ms_settings *settings, const char *key);
int ms_settings_bool(const struct ms_settings *settings, const char *key);
enum ms_setting_source ms_settings_source(const struct ms_settings *settings, const char *key);

/* The value of key becomes the one of from, which has the same table. MS_E_NOMEM: unchanged. */
int ms_settings_keep(struct ms_settings *settings, const struct ms_settings *from, const char *key,
                     struct ms_err *err);

/* key = value   # from: flag, environment MS_X, file PATH, built-in. Secrets never are settings. */
void ms_settings_print(const struct ms_settings *settings, FILE *out);
/* For --help. */
void ms_settings_usage(const struct ms_setting *table, FILE *out);

#endif
