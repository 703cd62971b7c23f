/* options_words.c - words of the command line that are no settings, for no file may hold them */
#include "daemon/options_private.h"

#include "config.h"
#include "proto/macros.h"

#include <string.h>

static const struct {
    const char *flag;
    int has_value;
    const char *help;
} controls[] = {
    {"--config", 1, "FILE  settings file; default " OPTIONS_CONFIG_FILE},
    {"--run-dir", 1, "DIR  private scheduler of `msctl run`: everything below DIR"},
    {"--check-config", 0, "print every setting and where it came from, and end"},
    {"--version", 0, "print the version, and end"},
    {"--accept-loss", 0, "for one start: serve although acknowledged writes are missing"},
    {"--help", 0, "print this, and end"},
};

int options_take_words(int *argc, char **argv, struct options_words *ret, struct ms_err *err)
{
    int kept = 1;
    for (int at = 1; at < *argc; at++) {
        size_t which = 0;
        if (strcmp(argv[at], "-h") == 0) {
            ret->action = OPTIONS_HELP;
            continue;
        }
        size_t length = strcspn(argv[at], "=");
        while (which < MS_ARRAY_SIZE(controls) &&
               (strlen(controls[which].flag) != length ||
                strncmp(argv[at], controls[which].flag, length) != 0)) {
            which++;
        }
        if (which == MS_ARRAY_SIZE(controls)) {
            argv[kept++] = argv[at];
            continue;
        }
        const char *value = argv[at][length] == '=' ? argv[at] + length + 1 : NULL;
        if (controls[which].has_value && value == NULL) {
            value = ++at < *argc ? argv[at] : NULL;
        }
        if (controls[which].has_value && (value == NULL || value[0] == '\0')) {
            return ms_fail(err, MS_E_INVALID, "option %s needs a value: %s", controls[which].flag,
                           controls[which].help);
        }
        switch (which) {
        case 0:
            ret->config = value;
            break;
        case 1:
            ret->run_dir = value;
            break;
        case 2:
            ret->action = OPTIONS_CHECK;
            break;
        case 3:
            ret->action = OPTIONS_VERSION;
            break;
        case 4:
            ret->accepts_loss = 1;
            break;
        default:
            ret->action = OPTIONS_HELP;
            break;
        }
    }
    *argc = kept;
    argv[kept] = NULL;
    return 0;
}

void options_help(FILE *out)
{
    fputs("usage: msschedd [option]...\n"
          "The scheduler of a training cluster: a service (standing cluster), or with\n"
          "MS_ROLE=MS_SCHED MS_SCHED_HOST=... MS_SCHED_PORT=... MS_WORKER_NUM=... one job's\n"
          "scheduler (dynamic cluster). A flag counts more than the environment, that more than\n"
          "the file, that more than what is built in. See msschedd(8).\n\n",
          out);
    for (size_t i = 0; i < MS_ARRAY_SIZE(controls); i++) {
        fprintf(out, "  %s %s%s\n", controls[i].flag, controls[i].has_value ? "" : "  ",
                controls[i].help);
    }
    fputs("\n", out);
    ms_settings_usage(options_rows, out);
}
