/* cmd_export.c - msctl export: weights in the format, and by the names, of others */
#include "cli/cli.h"
#include "cli/export_norms.h"
#include "cli/export_onnx.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/model.h"

#include "libworker/data/data.h"

#include <string.h>
#include <sys/stat.h>

const struct cli_option cmd_export_options[] = {
    {"output", 'o', "FILE", "what is written: .safetensors, .ckpt for MindSpore, or .onnx", NULL},
    {"names", 0, "WHOSE", "of norms: torch, mindspore (unless given for .ckpt) or own", NULL},
    {"job", 0, "JOB.yaml", "of .onnx: the network's job, instead of the run's", NULL},
    {"force", 0, NULL, "replace a file that is there", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

static int ends_in(const char *path, const char *ending)
{
    const size_t n = strlen(path);
    const size_t m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

/* Of an ONNX model tensors are called as in the network. */
static int read_names(const char *names, const char *to, struct data_export *ret,
                      struct ms_err *err)
{
    if (names != NULL && ends_in(to, ".onnx")) {
        return ms_fail(err, MS_E_INVALID,
                       "msctl export: --names is for .safetensors and .ckpt: in an ONNX model "
                       "parameters have the network's own names");
    }
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
    return MS_OK;
}

static int read_options(const struct cli_args *args, struct data_export *ret, struct ms_err *err)
{
    const char *to = cli_value(args, "output");
    struct stat st;
    if (to == NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "msctl export: give -o FILE.safetensors, -o FILE.ckpt or -o FILE.onnx");
    }
    if (!ends_in(to, ".safetensors") && !ends_in(to, ".ckpt") && !ends_in(to, ".onnx")) {
        return ms_fail(err, MS_E_INVALID,
                       "msctl export: '%.200s' ends neither in .safetensors nor in .ckpt or .onnx",
                       to);
    }
    if (cli_has(args, "job") && !ends_in(to, ".onnx")) {
        return ms_fail(err, MS_E_INVALID, "msctl export: --job is for -o FILE.onnx");
    }
    ret->to = to;
    int rc = read_names(cli_value(args, "names"), to, ret, err);
    return rc == MS_OK && stat(to, &st) == 0 && !cli_has(args, "force")
               ? ms_fail(err, MS_E_EXISTS,
                         "%.200s is there already: name another file, or replace it with --force",
                         to)
               : rc;
}

/* A factor of a module's own may be called gamma, too: what the run's network says goes first. */
static int export_weights(const struct data_export *asked, struct data_exported *ret,
                          struct ms_err *err)
{
    struct data_export export = *asked;
    struct export_norms *norms =
        export.names == DATA_NAMES_TORCH ? export_norms_open(export.from) : NULL;
    export.is_of_norm = norms != NULL ? export_norms_has : NULL;
    export.arg = norms;
    int rc = data_export_weights(&export, ret, err);
    export_norms_close(norms);
    return rc;
}

static int export_to(const struct cli_args *args, const struct data_export *export,
                     struct data_exported *ret, struct ms_err *err)
{
    static struct job job; /* it has 90 KiB */
    if (!ends_in(export->to, ".onnx")) {
        return export_weights(export, ret, err);
    }
    int rc = cli_model_job(args, export->from, &job, err);
    return rc < 0 ? rc : export_onnx(&job, export->from, export->to, ret, err);
}

int cmd_export(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    char from[MS_PATH_MAX + 1];
    char bytes[CLI_FORMAT_MAX];
    struct data_export export = {.from = from};
    struct data_exported done;
    int rc = cli_need_words(args, 1, 1, "WEIGHTS", err);
    rc = rc < 0 ? rc : read_options(args, &export, err);
    rc = rc < 0 ? rc : cli_model_weights(args->words[0], "export", from, err);
    rc = rc < 0 ? rc : export_to(args, &export, &done, err);
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
