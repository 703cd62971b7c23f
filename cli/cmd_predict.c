/* cmd_predict.c - msctl predict: what a trained network says of each sample */
#include "cli/answer.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/trained.h"
#include "proto/file_write.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct cli_option cmd_predict_options[] = {
    TRAINED_OPTIONS,
    {"output", 'o', "FILE", "where predictions go, instead of standard output", NULL},
    {"format", 0, "FORMAT", "csv, or json: an object a line; of FILE.jsonl that, else csv", NULL},
    {"top", 'k', "K", "the K most probable classes, instead of all probabilities", NULL},
    {"no-labels", 0, NULL, "the data have none: a table without its target, arrays without theirs",
     NULL},
    {"raw", 0, NULL, "what the network gives, before softmax or sigmoid", NULL},
    {"force", 0, NULL, "replace a file that is there", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

struct wish {
    const char *output; /* NULL: standard output */
    const char *words[ANSWER_WORDS_MAX + 1];
};

static int ends_in(const char *path, const char *ending)
{
    const size_t n = strlen(path);
    const size_t m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

static int choose_format(const struct cli *cli, const struct cli_args *args, const char *output,
                         const char **ret, struct ms_err *err)
{
    const char *format = cli_value(args, "format");
    const int is_json = output != NULL ? ends_in(output, ".jsonl") : cli->json;
    if (format != NULL && strcmp(format, "csv") != 0 && strcmp(format, "json") != 0) {
        return ms_fail(err, MS_E_INVALID, "msctl predict: --format %.80s: csv and json are known",
                       format);
    }
    *ret = format != NULL ? format : is_json ? "json" : "csv";
    return MS_OK;
}

static int read_wish(const struct cli *cli, const struct cli_args *args, struct wish *ret,
                     struct ms_err *err)
{
    int64_t top = 0;
    size_t n = 0;
    const char *format = NULL;
    ret->output = cli_value(args, "output");
    int rc = choose_format(cli, args, ret->output, &format, err);
    rc = rc < 0 ? rc : cli_number(args, "top", 1, 1000000, 0, &top, err);
    if (rc == MS_OK && top > 0 && cli_has(args, "raw")) {
        rc = ms_fail(err, MS_E_INVALID, "msctl predict: give --top or --raw, not both");
    }
    ret->words[n++] = "--to";
    ret->words[n++] = "3"; /* answer.h puts it there */
    ret->words[n++] = "--name";
    ret->words[n++] = ret->output != NULL ? ret->output : "standard output";
    ret->words[n++] = "--format";
    ret->words[n++] = format;
    if (top > 0) {
        ret->words[n++] = "--top";
        ret->words[n++] = cli_value(args, "top");
    } else if (cli_has(args, "raw")) {
        ret->words[n++] = "--raw";
    }
    if (cli_has(args, "no-labels")) {
        ret->words[n++] = "--no-labels";
    }
    ret->words[n] = NULL;
    return rc;
}

/* ---- where they go ---- */

static int check_output(const struct cli_args *args, const char *output, struct ms_err *err)
{
    struct stat st;
    return output == NULL || stat(output, &st) != 0 || cli_has(args, "force")
               ? MS_OK
               : ms_fail(err, MS_E_EXISTS,
                         "%.200s is there already: name another file, or replace it with --force",
                         output);
}

/* Whole, or not at all. */
static int predict_to(struct cli *cli, struct answer_ask *ask, const char *output, json_t **ret,
                      struct ms_err *err)
{
    struct ms_file_new file;
    int rc = ms_file_begin(output, 0666, &file, err);
    if (rc < 0) {
        return rc;
    }
    ask->to = file.fd;
    rc = answer_run(cli, ask, ret, err);
    if (rc < 0) {
        ms_file_drop(&file);
        return rc;
    }
    return ms_file_end(&file, 0, err);
}

static void print_done(struct cli *cli, const char *output, const json_t *result)
{
    char rows[CLI_FORMAT_MAX];
    const json_int_t n = json_integer_value(json_object_get(result, "rows"));
    if (cli->json) {
        cli_json_print(cli->out, json_pack("{s:s,s:I}", "to", output, "rows", n));
    } else {
        fprintf(cli->out, "%s: %s samples\n", output, cli_format_count(rows, (uint64_t)n));
    }
}

/* `msctl predict RUN | head` */
static int has_reader_gone(void)
{
    struct pollfd pipe = {STDOUT_FILENO, POLLOUT, 0};
    return poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR) != 0;
}

int cmd_predict(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    static struct trained trained; /* a job has 90 KiB */
    struct wish wish;
    json_t *result = NULL;
    int rc = read_wish(cli, args, &wish, err);
    rc = rc < 0 ? rc : trained_find(args, &trained, err);
    rc = rc < 0 ? rc : check_output(args, wish.output, err);
    if (rc < 0) {
        return rc;
    }
    const int to_terminal = wish.output == NULL && isatty(STDOUT_FILENO); /* lines show it */
    struct answer_ask ask = {.job = &trained.job,
                             .weights = trained.weights,
                             .plan = trained.plan[0] != '\0' ? trained.plan : NULL,
                             .what = to_terminal ? NULL : "predicted",
                             .mode = "--predict",
                             .more = wish.words,
                             .to = STDOUT_FILENO};
    rc = wish.output != NULL ? predict_to(cli, &ask, wish.output, &result, err)
                             : answer_run(cli, &ask, &result, err);
    if (rc < 0) {
        return wish.output == NULL && has_reader_gone() ? CLI_PIPE_STATUS : rc;
    }
    if (wish.output != NULL) {
        print_done(cli, wish.output, result);
    }
    json_decref(result);
    return MS_OK;
}
