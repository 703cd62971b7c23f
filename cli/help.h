/* help.h - what msctl and its commands do and take, from the tables that parse it */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/cli.h"

#include <jansson.h>

/* Of one command, or (NULL) of msctl as a whole. */
void cli_help_print(const struct cli_command *command, FILE *out);
/* The same as an object; returns owned. */
json_t *cli_help_json(const struct cli_command *command);

#endif
