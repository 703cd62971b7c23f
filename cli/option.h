/* option.h - options of a command: one table says what parses, what --help prints and what is near
 *
 * Long options are --name VALUE or --name=VALUE, letters -n VALUE or -nVALUE; "--" ends them.
 * Options and words may mix. */
#ifndef CLI_OPTION_H
#define CLI_OPTION_H

#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cli_option {
    const char *name;  /* without the dashes; NULL ends a table */
    char letter;       /* or 0 */
    const char *value; /* placeholder of its value ("N"); NULL: a switch */
    const char *help;  /* one line; NULL: not shown */
    const char *later; /* what it waits for: refused by name; NULL: it works */
};

enum {
    CLI_GIVEN_MAX = 256, /* --set is the one that repeats: a job has some 60 keys */
    CLI_WORDS_MAX = 1024,
    CLI_TABLES_MAX = 2, /* those of the command and those of all commands */
};

struct cli_given {
    const struct cli_option *option;
    const char *value; /* NULL for a switch */
};

/* Borrows argv. */
struct cli_args {
    const char *command; /* for messages: "msctl run" */
    size_t n_given;
    struct cli_given given[CLI_GIVEN_MAX];
    size_t n_words;
    const char *words[CLI_WORDS_MAX];
};

/* Adds argv[0..argc-1] to args (cleared by the caller). tables: at most CLI_TABLES_MAX, NULL
 * entries are skipped. stop_at_word: stops before the first word, whose index is *ret_next (else
 * argc). MS_E_INVALID: unknown option (with the nearest), missing or superfluous value;
 * MS_E_UNSUPPORTED: one that comes later. */
int cli_options_parse(const struct cli_option *const *tables, size_t n_tables, int argc,
                      char *const *argv, int stop_at_word, int *ret_next, struct cli_args *args,
                      struct ms_err *err);

/* Value of the last one given, or NULL. */
const char *cli_value(const struct cli_args *args, const char *name);
int cli_has(const struct cli_args *args, const char *name);
/* Collects the values of an option that repeats, in order; returns their number. */
size_t cli_values(const struct cli_args *args, const char *name, const char **ret, size_t max);

/* Whole number of an option within min..max; fallback where it is not given. */
int cli_number(const struct cli_args *args, const char *name, int64_t min, int64_t max,
               int64_t fallback, int64_t *ret, struct ms_err *err);
/* "30", "1.5", "30s", "5m", "2h", "1d" as milliseconds, at most a year. -1 where not given. */
int cli_duration_ms(const struct cli_args *args, const char *name, int64_t *ret,
                    struct ms_err *err);
/* The same for any text; what names it in the message. */
int cli_parse_duration_ms(const char *what, const char *text, int64_t *ret, struct ms_err *err);
/* A decimal whole number without blanks or tail; what names it. */
int cli_parse_number(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret,
                     struct ms_err *err);

/* Words: exactly or at least what a command takes; names is e.g. "JOB.yaml". */
int cli_need_words(const struct cli_args *args, size_t min, size_t max, const char *names,
                   struct ms_err *err);

/* Aligned lines for --help. */
void cli_options_print(const struct cli_option *table, FILE *out);

#endif
