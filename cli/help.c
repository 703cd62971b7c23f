/* help.c - what msctl and its commands do and take */
#include "cli/help.h"

#include "config.h"

static void print_usage(FILE *out)
{
    fprintf(out, "usage: msctl [OPTION]... COMMAND [ARGUMENT]...\n\nTrains neural networks on a "
                 "cluster of CPU machines.\n\n");
    for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
        if (c->later == NULL) {
            fprintf(out, "  %-9s %s\n", c->name, c->summary);
        }
    }
    fprintf(out, "\nOptions of every command:\n");
    cli_options_print(cli_common_options, out);
    fprintf(out,
            "\nThe scheduler: --server, else MS_SCHED_HOST and MS_SCHED_PORT, else\n"
            "~/.config/msched/msctl.conf, else %s/msctl.conf, else\n%s.\n"
            "Exit status: 0 success, 1 the job failed, 2 usage or an invalid job, 3 no\n"
            "scheduler, 4 refused, 5 cancelled, 124 the time of wait ran out, 141 the reader of\n"
            "the output has gone. See msctl(1).\n",
            MSCHED_SYSCONFDIR, CLI_SOCKET_DEFAULT);
}

static void print_command(const struct cli_command *c, FILE *out)
{
    fprintf(out, "usage: msctl %s%s%s%s\n\n%s\n", c->name, c->options != NULL ? " [OPTION]..." : "",
            c->words[0] != '\0' ? " " : "", c->words, c->summary);
    if (c->notes != NULL) {
        fprintf(out, "\n%s", c->notes);
    }
    fputc('\n', out);
    cli_options_print(c->options, out);
    cli_options_print(cli_common_options, out);
}

void cli_help_print(const struct cli_command *command, FILE *out)
{
    if (command != NULL) {
        print_command(command, out);
    } else {
        print_usage(out);
    }
}

/* ---- for programs ---- */

static json_t *options_json(const struct cli_option *table)
{
    json_t *list = json_array();
    for (const struct cli_option *o = table; o != NULL && o->name != NULL; o++) {
        if (o->later == NULL && o->help != NULL) {
            char letter[2] = {o->letter, '\0'};
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:s?, s:s}", "name", o->name, "letter",
                                            letter, "value", o->value, "help", o->help));
        }
    }
    return list;
}

json_t *cli_help_json(const struct cli_command *command)
{
    if (command != NULL) {
        return json_pack("{s:s, s:s, s:s, s:s?, s:o}", "name", command->name, "words",
                         command->words, "summary", command->summary, "notes", command->notes,
                         "options", options_json(command->options));
    }
    json_t *commands = json_array();
    for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
        if (c->later == NULL) {
            json_array_append_new(commands, cli_help_json(c));
        }
    }
    return json_pack("{s:o, s:o}", "commands", commands, "options",
                     options_json(cli_common_options));
}
