/* commands.c - the table of commands, and how a command line becomes a call */
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/json.h"
#include "cli/self.h"

#include "config.h"
#include "proto/nearest.h"
#include "proto/text.h"

#include <stdlib.h>
#include <string.h>

const struct cli_option cli_common_options[] = {
    {"server", 's', "ADDRESS", "scheduler: host:port or unix:/path", NULL},
    {"config", 0, "FILE", "settings instead of the two msctl.conf", NULL},
    {"json", 0, NULL, "print JSON for programs", NULL},
    {"help", 'h', NULL, "print what the command does and takes", NULL},
    {"version", 0, NULL, "print the version", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

/* A job that recovers goes on with another node, or waits for one. */
#define LATER_DRAIN                                                                                \
    "taking nodes out of service is not built yet. Wait until msctl nodes shows the node idle, "   \
    "then stop its msworker (systemctl stop msworker@0): a job that runs there would have to "     \
    "recover elsewhere, and fails with recovery: false"

const struct cli_command cli_commands[] = {
    {"run", "JOB.yaml", "train on this host with a private scheduler and workers", cmd_run_options,
     cmd_run,
     "Makes ./<job name>-<date>-<time>/ with logs, metrics.jsonl, weights.safetensors\n"
     "and plan.txt. The first Ctrl-C ends the job after its step, the second at once. Exit "
     "status:\n"
     "that of the job.\n"
     "A process that dies is started again, and no step is lost, unless the job says recovery:\n"
     "false. With the key checkpoint the job saves its state now and then, and at the first "
     "Ctrl-C;\n"
     "--resume goes on from there.\n"
     "The plan of a run is what fixes its bits beside job and seed: threads, instruction set,\n"
     "kernels, layouts, the order of sums. Runs with equal plan digests give equal weights; "
     "--plan\n"
     "plan.txt trains by that of another run, whatever else the machine does meanwhile.\n",
     NULL},
    {"submit", "[JOB.yaml]", "queue a job; prints its id alone", cmd_submit_options, cmd_submit,
     "${NAME} in paths, and in arguments of data programs, becomes your environment's value where\n"
     "you have one; what you have not is left to the nodes, each of which uses its own where its\n"
     "operator allows that name.\n",
     NULL},
    {"jobs", "", "list jobs that wait or run", cmd_jobs_options, cmd_jobs, NULL, NULL},
    {"show", "JOB", "everything about one job", cmd_show_options, cmd_show,
     "--network shows of a job file, or of a job by its id, what each layer makes and costs:\n"
     "shapes, parameters, multiplications with an addition each (MACs) and bytes of values, both\n"
     "of one sample forward. It needs no data where the job says what their records are, and for\n"
     "a file no scheduler.\n",
     NULL},
    {"logs", "JOB", "print the log of a rank", cmd_logs_options, cmd_logs,
     "On a terminal escape sequences and other controls are shown as '?'; --raw passes them on.\n",
     NULL},
    {"fetch", "JOB", "bring weights, metrics, logs or checkpoints of a job here", cmd_fetch_options,
     cmd_fetch,
     "For the job's owner and admins. The files come from the nodes that have them, over TLS, and\n"
     "their SHA-256 is checked. What tears goes on where it tore when the same command is given\n"
     "again. A node keeps the folder of a job for 30 days, unless its operator says otherwise.\n"
     "The job and its plan come, too: eval, predict, export and run --resume take the folder.\n",
     NULL},
    {"watch", "JOB", "live progress until the job has ended", NULL, cmd_watch,
     "Ctrl-C only detaches: the job goes on. Exit status: that of the job.\n", NULL},
    {"wait", "JOB...", "wait for the end of jobs, silently", cmd_wait_options, cmd_wait,
     "Exit status: 0 all succeeded, 1 one failed, 5 one was cancelled, 124 the time ran out.\n",
     NULL},
    {"cancel", "JOB...", "end jobs", cmd_cancel_options, cmd_cancel, NULL, NULL},
    {"events", "[JOB]", "what happened to jobs and nodes", cmd_events_options, cmd_events,
     "100,000 are kept, across restarts of the scheduler too; who has the most loses his oldest.\n"
     "Ctrl-C ends -f.\n",
     NULL},
    {"nodes", "", "list nodes by host", NULL, cmd_nodes, NULL, NULL},
    {"status", "", "the scheduler in a few lines", NULL, cmd_status, NULL, NULL},
    {"certs",
     "init | issue ROLE NAME | install FILE | list | renew WHO | revoke WHO | crl | show FILE",
     "the cluster's certificate authority", cmd_certs_options, cmd_certs,
     "ROLE is worker, user, admin or scheduler. WHO is a name, ROLE:NAME, a serial number or a "
     "file.\n"
     "Passwords come from files, never from the command line. A new node: on the head node msctl "
     "certs\n"
     "issue worker HOST; copy HOST.p12 to it; there msctl certs install HOST.p12.\n",
     NULL},
    {"dataset", "shapes DIR", "write a data set of drawn images in CIFAR-10's layout",
     cmd_dataset_options, cmd_dataset, NULL, NULL},
    {"eval", "RUN", "loss and metrics of trained weights", cmd_eval_options, cmd_eval,
     "RUN is the folder of a run, with weights.safetensors unless --weights names others; or a "
     "job\n"
     "file with --weights; or weights (.safetensors, .ckpt, .onnx, the manifest of a checkpoint) "
     "with\n"
     "the job.json of their run beside them or above. They are evaluated here, by one process, on "
     "the\n"
     "job's evaluation data. By plan.txt of the run, on a machine like its own, numbers are those "
     "that\n"
     "the training had, to the bit. --data takes all that is not said otherwise from the job; of\n"
     "data with parts, the test: --set evaluate.dataset.usage=train.\n",
     NULL},
    {"predict", "RUN", "what a trained network says of each sample", cmd_predict_options,
     cmd_predict,
     "RUN, --weights, --data, --set and --plan are those of msctl eval. A line a sample (of texts, "
     "a\n"
     "token), in the order of the data: its number and label, the class that is predicted, and "
     "the\n"
     "probabilities of all; of --top K the K largest; of --raw, and of networks that answer with\n"
     "numbers, the numbers. Classes have their names where the data have any, images their "
     "files.\n",
     NULL},
    {"export", "WEIGHTS -o FILE", "write weights in the format of others", cmd_export_options,
     cmd_export,
     "WEIGHTS is a file (.safetensors, .ckpt), the folder of a run, or the manifest of a "
     "checkpoint,\n"
     "whose optimizer is left out. torch.nn calls the parts of norms weight, bias, running_mean "
     "and\n"
     "running_var: --names torch does so, and load_state_dict takes the file. FILE.onnx is the "
     "whole\n"
     "network, for ONNX Runtime and others; job.json of the run says which, or --job.\n",
     NULL},
    {"help", "[COMMAND]", "what a command does and takes", NULL, cmd_help, NULL, NULL},
    {"drain", "", NULL, NULL, NULL, NULL, LATER_DRAIN},
    {"resume", "", NULL, NULL, NULL, NULL,
     "a job is resumed where one is started: msctl run --resume DIR JOB.yaml, or msctl submit "
     "--resume JOB (operations.md, section 4)"},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};

const struct cli_command *cli_command_find(const char *name)
{
    for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
        if (strcmp(c->name, name) == 0) {
            return c;
        }
    }
    return NULL;
}

static int unknown_command(const char *name, struct ms_err *err)
{
    const char *names[32];
    size_t n = 0;
    for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
        if (c->later == NULL && n < MS_ARRAY_SIZE(names)) {
            names[n++] = c->name;
        }
    }
    const char *near = ms_nearest(name, names, n);
    return ms_fail(err, MS_E_INVALID, "unknown command '%.80s'%s%s%s; all of them: msctl --help",
                   name, near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?)" : "");
}

static int find_or_refuse(const char *name, const struct cli_command **ret, struct ms_err *err)
{
    const struct cli_command *command = cli_command_find(name);
    if (command == NULL) {
        return unknown_command(name, err);
    }
    if (command->later != NULL) {
        return ms_fail(err, MS_E_UNSUPPORTED, "msctl %s comes later: %s", name, command->later);
    }
    *ret = command;
    return MS_OK;
}

int cmd_help(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    const struct cli_command *command = NULL;
    int rc = cli_need_words(args, 0, CLI_WORDS_MAX, "COMMAND", err);
    if (rc == MS_OK && args->n_words > 0) { /* `help certs issue`: that of certs has it */
        rc = find_or_refuse(args->words[0], &command, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    if (cli->json) {
        cli_json_print(cli->out, cli_help_json(command));
    } else {
        cli_help_print(command, cli->out);
    }
    return 0;
}

/* ---- the command line ---- */

/* Common options may stand before the command, all of them behind it. */
static int parse(int argc, char **argv, const struct cli_command **ret_command,
                 struct cli_args *args, struct ms_err *err)
{
    const struct cli_option *const common[] = {cli_common_options};
    int next = 0;
    int rc = cli_options_parse(common, 1, argc - 1, argv + 1, 1, &next, args, err);
    if (rc != MS_OK || next >= argc - 1) {
        return rc;
    }
    rc = find_or_refuse(argv[1 + next], ret_command, err);
    if (rc != MS_OK) {
        return rc;
    }
    static char name[64];
    snprintf(name, sizeof(name), "msctl %s", (*ret_command)->name);
    args->command = name;
    const struct cli_option *const both[] = {(*ret_command)->options, cli_common_options};
    return cli_options_parse(both, MS_ARRAY_SIZE(both), argc - next - 2, argv + next + 2, 0, NULL,
                             args, err);
}

/* Texts about the command line begin with the command already. */
static void print_error(const struct ms_err *err)
{
    char text[MS_ERR_TEXT_MAX];
    int named = strncmp(err->text, "msctl:", 6) == 0 || strncmp(err->text, "msctl ", 6) == 0;
    snprintf(text, sizeof(text), "%s", err->text);
    ms_text_mend((uint8_t *)text, strlen(text), MS_TEXT_LINES); /* names of files may be anything */
    fprintf(stderr, "%s%s\n", named ? "" : "msctl: ", text);
}

static int run_command(const struct cli_command *command, const struct cli_args *args)
{
    struct cli cli;
    struct ms_err err = {0, ""};
    int rc = cli_init(&cli, args, &err);
    if (rc == MS_OK) {
        rc = command->run(&cli, args, &err);
    }
    int status = rc;
    if (rc < 0 && cli_is_pipe_closed()) {
        status = CLI_PIPE_STATUS;
    } else if (rc < 0) {
        status = rc == MS_E_CONFIG ? 2 : ms_code_exit_status(rc); /* 78 is for daemons */
        print_error(&err);
        int is_there = cli.client != NULL && client_get_state(cli.client) == CLIENT_OPEN;
        if (status == 3 && !is_there && cli.target.tried[0] != '\0') {
            fprintf(stderr, "  the scheduler was looked for, in this order:\n%s", cli.target.tried);
        }
    }
    cli_fini(&cli);
    return status;
}

/* Output that could not be written is a failure, even where the command went well. */
static int flush_all(int status)
{
    struct ms_err err = {0, ""};
    if (status != 0 || cli_check_output(stdout, &err) == MS_OK) {
        return status;
    }
    if (cli_is_pipe_closed()) {
        return CLI_PIPE_STATUS;
    }
    print_error(&err);
    return 1;
}

int cli_main(int argc, char **argv)
{
    static struct cli_args args; /* 20 KiB: not for the stack */
    const struct cli_command *command = NULL;
    struct ms_err err = {0, ""};
    memset(&args, 0, sizeof(args));
    args.command = "msctl";
    cli_self_set(argc > 0 ? argv[0] : NULL);
    int rc = parse(argc, argv, &command, &args, &err);
    if (rc != MS_OK) {
        print_error(&err);
        return ms_code_exit_status(rc);
    }
    int json = cli_has(&args, "json");
    if (cli_has(&args, "version") && json) {
        cli_json_print(stdout, json_pack("{s:s}", "version", MSCHED_VERSION));
    } else if (cli_has(&args, "version")) {
        printf("msctl %s\n", MSCHED_VERSION);
    } else if (cli_has(&args, "help") && json) {
        cli_json_print(stdout, cli_help_json(command));
    } else if (cli_has(&args, "help")) {
        cli_help_print(command, stdout);
    } else if (command == NULL) {
        cli_help_print(NULL, stderr);
        return 2;
    } else {
        return flush_all(run_command(command, &args));
    }
    return flush_all(0);
}
