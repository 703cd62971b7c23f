/* cmd_export.c - msctl export: weights in the format, and by the names, of others */
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/json.h"

#include "libworker/data/data.h"

#include <string.h>
#include <sys/stat.h>

const struct cli_option cmd_export_options[] = {
    {"output", 'o', "FILE", "what is written: .safetensors, or .ckpt for MindSpore", NULL},
    {"names", 0, "WHOSE", "of norms: torch, mindspore (unless given for .ckpt) or own", NULL},
    {"force", 0, NULL, "replace a file that is there", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

static int ends_in(const char *path, const char *ending)
{
    const size_t n = strlen(path);
    const size_t m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

/* Of a run its weights, of a checkpoint the file beside its manifest. */
static int find_source(const char *word, char *buf, size_t size, struct ms_err *err)
{
    struct stat st;
    const int is_folder = stat(word, &st) == 0 && S_ISDIR(st.st_mode);
    const int is_manifest = !is_folder && ends_in(word, ".json");
    const size_t n = strlen(word) - (is_manifest ? strlen(".json") : 0);
    const char *more = is_folder ? "/weights.safetensors" : is_manifest ? ".safetensors" : "";
    return (size_t)snprintf(buf, size, "%.*s%s", (int)n, word, more) < size
               ? MS_OK
               : ms_fail(err, MS_E_INVALID, "msctl export: '%.80s...' is too long a path", word);
}

static int read_options(const struct cli_args *args, struct data_export *ret, struct ms_err *err)
{
    const char *names = cli_value(args, "names");
    const char *to = cli_value(args, "output");
    struct stat st;
    if (to == NULL) {
        return ms_fail(err, MS_E_INVALID, "msctl export: give -o FILE.safetensors or -o FILE.ckpt");
    }
    if (!ends_in(to, ".safetensors") && !ends_in(to, ".ckpt")) {
        return ms_fail(err, MS_E_INVALID,
                       "msctl export: '%.200s' ends neither in .safetensors nor in .ckpt", to);
    }
    ret->to = to;
    if (names == NULL) {
        names = ends_in(to, ".ckpt") ? "mindspore" : "own";
    }
    if (strcmp(names, "torch") == 0) {
        ret->names = DATA_NAMES_TORCH;
    } else if (strcmp(names, "mindspore") == 0) {
        ret->names = DATA_NAMES_MINDSPORE;
    } else if (strcmp(names, "own") == 0) {
        ret->names = DATA_NAMES_OWN;
    } else {
        return ms_fail(err, MS_E_INVALID,
                       "msctl export: --names %.80s: mindspore, torch and own are known", names);
    }
    return stat(to, &st) == 0 && !cli_has(args, "force")
               ? ms_fail(err, MS_E_EXISTS,
                         "%.200s is there already: name another file, or replace it with --force",
                         to)
               : MS_OK;
}

int cmd_export(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    char from[MS_PATH_MAX + 1];
    char bytes[CLI_FORMAT_MAX];
    struct data_export export = {.from = from};
    struct data_exported done;
    int rc = cli_need_words(args, 1, 1, "WEIGHTS", err);
    rc = rc < 0 ? rc : read_options(args, &export, err);
    rc = rc < 0 ? rc : find_source(args->words[0], from, sizeof(from), err);
    rc = rc < 0 ? rc : data_export_weights(&export, &done, err);
    if (rc < 0) {
        return rc;
    }
    if (cli->json) {
        cli_json_print(cli->out,
                       json_pack("{s:s,s:s,s:I,s:I}", "from", from, "to", export.to, "tensors",
                                 (json_int_t)done.tensors, "bytes", (json_int_t)done.bytes));
    } else {
        fprintf(cli->out, "%s: %zu tensors, %s\n", export.to, done.tensors,
                cli_format_bytes(bytes, done.bytes));
    }
    return MS_OK;
}
