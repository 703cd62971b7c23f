/* cli.h - what every command of msctl gets: where to print, whom to ask; and the table of commands
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/client.h"
#include "cli/finder.h"
#include "cli/option.h"
#include "proto/cluster.pb-c.h"

#include <stdio.h>

struct cli {
    FILE *out; /* results */
    FILE *err; /* errors, and progress where out carries JSON */
    int json;
    int colour;   /* of out */
    int live;     /* progress goes to a terminal that can be drawn on */
    size_t width; /* of out where it is a terminal, else 0: nothing is cut */
    struct event_base *base;
    struct client *client;       /* after cli_connect */
    struct finder_target target; /* the same */
    SSL_CTX *tls;
};

/* A command returns an exit status, or a negative ms_code with err filled in, which main prints. */
typedef int cli_command_fn(struct cli *cli, const struct cli_args *args, struct ms_err *err);

struct cli_command {
    const char *name; /* NULL ends the table */
    const char *words;
    const char *summary;
    const struct cli_option *options;
    cli_command_fn *run;
    const char *notes; /* more for its --help, or NULL */
    const char *later; /* what it waits for: refused by name */
};

extern const struct cli_command cli_commands[];
extern const struct cli_option cli_common_options[];

/* Row of the table or NULL. */
const struct cli_command *cli_command_find(const char *name);
/* The whole of main but for exit(): parses, runs, prints errors; returns the exit status. */
int cli_main(int argc, char **argv);

/* Colours, width and kinds of output from the environment and args; makes the event base. */
int cli_init(struct cli *cli, const struct cli_args *args, struct ms_err *err);
void cli_fini(struct cli *cli);

/* Finds the scheduler and connects. */
int cli_connect(struct cli *cli, const struct cli_args *args, struct ms_err *err);
/* Connects again after the connection was lost, with growing pauses, until deadline_ms (monotonic).
 * Says so on err once. */
int cli_reconnect(struct cli *cli, int64_t deadline_ms, struct ms_err *err);
/* 1 for codes after which cli_reconnect makes sense. */
int cli_is_lost(int code);

/* The folder of a user's own settings and certificate; NULL: there is no home. Returns buf. */
const char *cli_user_dir(char *buf, size_t size);
/* Columns of the terminal behind a stream, 0 where it is none. */
size_t cli_terminal_width(FILE *stream);
/* 1 where the locale shows block characters. */
int cli_is_utf8(void);
/* MS_E_IO when out cannot be written any more: nobody reads what a command goes on to print. */
int cli_check_output(FILE *out, struct ms_err *err);
/* 1 once that was because the reader has gone (`msctl logs 7 | head`): not worth a word. The exit
 * status is then that of a program that SIGPIPE ended. */
int cli_is_pipe_closed(void);
enum { CLI_PIPE_STATUS = 128 + 13 };
/* "msctl: text" on cli->err, as a line. */
void cli_say(const struct cli *cli, const char *fmt, ...) MS_PRINTF(2, 3);
/* A line "name    text" on cli->out; on a terminal in as many lines as it takes, broken at blanks.
 * Nothing for a text that is empty. */
void cli_fact(const struct cli *cli, const char *name, const char *text);
/* Runs the loop of base for ms or until something happens there. */
void cli_pause(struct cli *cli, int64_t ms);

/* "job id" of a word: 1.. */
int cli_parse_job(const char *text, uint64_t *ret, struct ms_err *err);
/* How long it runs or ran, by its start and its end or this host's clock; below 0: not known. */
double cli_job_seconds(const Ms__JobInfo *job);
/* Exit status of a job that ended: 0, 1 or 5. */
int cli_job_status(const Ms__JobInfo *job);

/* The commands. */
cli_command_fn cmd_run, cmd_submit, cmd_jobs, cmd_show, cmd_logs, cmd_watch, cmd_wait, cmd_cancel,
    cmd_fetch, cmd_events, cmd_nodes, cmd_status, cmd_certs, cmd_dataset, cmd_eval, cmd_predict,
    cmd_export, cmd_help;
extern const struct cli_option cmd_run_options[], cmd_submit_options[], cmd_jobs_options[],
    cmd_show_options[], cmd_logs_options[], cmd_fetch_options[], cmd_events_options[],
    cmd_wait_options[], cmd_cancel_options[], cmd_certs_options[], cmd_dataset_options[],
    cmd_eval_options[], cmd_predict_options[], cmd_export_options[];

#endif
