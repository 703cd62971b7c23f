/* option.c - options of a command: one table says what parses, what --help prints and what is near
 */
#include "cli/option.h"

#include "proto/nearest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 64, HELP_COLUMN = 24 };

static const struct cli_option *find_name(const struct cli_option *const *tables, size_t n_tables,
                                          const char *name, size_t length)
{
    for (size_t t = 0; t < n_tables; t++) {
        for (const struct cli_option *o = tables[t]; o != NULL && o->name != NULL; o++) {
            if (strlen(o->name) == length && memcmp(o->name, name, length) == 0) {
                return o;
            }
        }
    }
    return NULL;
}

static const struct cli_option *find_letter(const struct cli_option *const *tables, size_t n_tables,
                                            char letter)
{
    for (size_t t = 0; t < n_tables; t++) {
        for (const struct cli_option *o = tables[t]; o != NULL && o->name != NULL; o++) {
            if (o->letter == letter) {
                return o;
            }
        }
    }
    return NULL;
}

static int unknown(const struct cli_option *const *tables, size_t n_tables, const char *arg,
                   size_t length, const struct cli_args *args, struct ms_err *err)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    char word[NAMES_MAX] = "";
    for (size_t t = 0; t < n_tables; t++) {
        for (const struct cli_option *o = tables[t]; o != NULL && o->name != NULL; o++) {
            if (n < NAMES_MAX) {
                names[n++] = o->name;
            }
        }
    }
    if (arg[0] == '-' && arg[1] == '-' && length - 2 < sizeof(word)) {
        memcpy(word, arg + 2, length - 2);
    }
    const char *near = ms_nearest(word, names, n);
    return ms_fail(err, MS_E_INVALID, "%s: unknown option %.*s%s%s%s; all of them: %s --help",
                   args->command, (int)(length < 80 ? length : 80), arg,
                   near != NULL ? " (did you mean --" : "", near != NULL ? near : "",
                   near != NULL ? "?)" : "", args->command);
}

static int add(const struct cli_option *option, const char *value, struct cli_args *args,
               struct ms_err *err)
{
    if (option->later != NULL) {
        return ms_fail(err, MS_E_UNSUPPORTED, "%s: --%s comes later: %s", args->command,
                       option->name, option->later);
    }
    if (args->n_given == CLI_GIVEN_MAX) {
        return ms_fail(err, MS_E_INVALID, "%s: more than %d options; put them into the file",
                       args->command, CLI_GIVEN_MAX);
    }
    args->given[args->n_given++] = (struct cli_given){option, value};
    return MS_OK;
}

/* One option at argv[*at]; moves *at over a value in the next word. */
static int parse_one(const struct cli_option *const *tables, size_t n_tables, int argc,
                     char *const *argv, int *at, struct cli_args *args, struct ms_err *err)
{
    const char *arg = argv[*at];
    const char *value = NULL;
    const struct cli_option *option = NULL;
    size_t length = strlen(arg);
    if (arg[1] == '-') {
        length = strcspn(arg, "=");
        option = find_name(tables, n_tables, arg + 2, length - 2);
        value = arg[length] == '=' ? arg + length + 1 : NULL;
    } else {
        option = find_letter(tables, n_tables, arg[1]);
        value = arg[2] != '\0' ? arg + 2 : NULL;
    }
    if (option == NULL) {
        return unknown(tables, n_tables, arg, length, args, err);
    }
    if (option->value == NULL && value != NULL) {
        return ms_fail(err, MS_E_INVALID, "%s: --%s takes no value, but '%.80s' was given",
                       args->command, option->name, value);
    }
    if (option->value != NULL && value == NULL) {
        if (*at + 1 >= argc) {
            return ms_fail(err, MS_E_INVALID, "%s: --%s needs a value: --%s %s", args->command,
                           option->name, option->name, option->value);
        }
        value = argv[++*at];
    }
    return add(option, value, args, err);
}

int cli_options_parse(const struct cli_option *const *tables, size_t n_tables, int argc,
                      char *const *argv, int stop_at_word, int *ret_next, struct cli_args *args,
                      struct ms_err *err)
{
    int open = 1; /* before "--" */
    int at = 0;
    for (; at < argc; at++) {
        if (open && strcmp(argv[at], "--") == 0) {
            open = 0;
            continue;
        }
        if (open && argv[at][0] == '-' && argv[at][1] != '\0') {
            int rc = parse_one(tables, n_tables, argc, argv, &at, args, err);
            if (rc != MS_OK) {
                return rc;
            }
            continue;
        }
        if (stop_at_word) {
            break;
        }
        if (args->n_words == CLI_WORDS_MAX) {
            return ms_fail(err, MS_E_INVALID, "%s: more than %d words on the command line",
                           args->command, CLI_WORDS_MAX);
        }
        args->words[args->n_words++] = argv[at];
    }
    if (ret_next != NULL) {
        *ret_next = at;
    }
    return MS_OK;
}

const char *cli_value(const struct cli_args *args, const char *name)
{
    for (size_t i = args->n_given; i > 0; i--) {
        if (strcmp(args->given[i - 1].option->name, name) == 0) {
            return args->given[i - 1].value;
        }
    }
    return NULL;
}

int cli_has(const struct cli_args *args, const char *name)
{
    for (size_t i = 0; i < args->n_given; i++) {
        if (strcmp(args->given[i].option->name, name) == 0) {
            return 1;
        }
    }
    return 0;
}

size_t cli_values(const struct cli_args *args, const char *name, const char **ret, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < args->n_given && n < max; i++) {
        if (strcmp(args->given[i].option->name, name) == 0) {
            ret[n++] = args->given[i].value;
        }
    }
    return n;
}

int cli_parse_number(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret,
                     struct ms_err *err)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    int good = digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0';
    errno = 0;
    long long value = good ? strtoll(text, NULL, 10) : 0;
    if (!good || errno != 0 || value < min || value > max) {
        return ms_fail(err, MS_E_INVALID, "%s '%.80s' is no whole number of %lld to %lld", what,
                       text, (long long)min, (long long)max);
    }
    *ret = value;
    return MS_OK;
}

int cli_number(const struct cli_args *args, const char *name, int64_t min, int64_t max,
               int64_t fallback, int64_t *ret, struct ms_err *err)
{
    const char *text = cli_value(args, name);
    if (text == NULL) {
        *ret = fallback;
        return MS_OK;
    }
    char what[96];
    snprintf(what, sizeof(what), "%s: --%s", args->command, name);
    return cli_parse_number(what, text, min, max, ret, err);
}

int cli_parse_duration_ms(const char *what, const char *text, int64_t *ret, struct ms_err *err)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1e3}, {"s", 1e3}, {"ms", 1}, {"m", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}};
    const double year_ms = 365 * 8.64e7;
    char digits[32] = "";
    char *end = NULL;
    /* strtod alone would also take "inf", "0x10" and "1e9", which nobody means here */
    size_t n = strspn(text, "0123456789.");
    if (n > 0 && n < sizeof(digits)) {
        memcpy(digits, text, n);
    }
    double number = strtod(digits, &end);
    int good = end != digits && *end == '\0';
    for (size_t i = 0; good && i < MS_ARRAY_SIZE(units); i++) {
        double ms = number * units[i].ms;
        if (strcmp(text + n, units[i].unit) == 0 && ms <= year_ms) {
            *ret = (int64_t)llround(ms);
            return MS_OK;
        }
    }
    return ms_fail(err, MS_E_INVALID,
                   "%s '%.80s' is no time: write seconds (30), or 500ms, 5m, 2h, 1d; at most a "
                   "year",
                   what, text);
}

int cli_duration_ms(const struct cli_args *args, const char *name, int64_t *ret, struct ms_err *err)
{
    const char *text = cli_value(args, name);
    if (text == NULL) {
        *ret = -1;
        return MS_OK;
    }
    char what[96];
    snprintf(what, sizeof(what), "%s: --%s", args->command, name);
    return cli_parse_duration_ms(what, text, ret, err);
}

int cli_need_words(const struct cli_args *args, size_t min, size_t max, const char *names,
                   struct ms_err *err)
{
    if (args->n_words < min) {
        return ms_fail(err, MS_E_INVALID, "%s: %s is missing; see: %s --help", args->command, names,
                       args->command);
    }
    if (args->n_words > max) {
        return ms_fail(err, MS_E_INVALID, "%s: '%.80s' is one word too many; see: %s --help",
                       args->command, args->words[max], args->command);
    }
    return MS_OK;
}

void cli_options_print(const struct cli_option *table, FILE *out)
{
    for (const struct cli_option *o = table; o != NULL && o->name != NULL; o++) {
        char head[96];
        if (o->help == NULL || o->later != NULL) {
            continue;
        }
        int used = o->letter != 0 ? snprintf(head, sizeof(head), "-%c, ", o->letter)
                                  : snprintf(head, sizeof(head), "    ");
        snprintf(head + used, sizeof(head) - (size_t)used, "--%s%s%s", o->name,
                 o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
        fprintf(out, "  %-*s %s\n", HELP_COLUMN, head, o->help);
    }
}
