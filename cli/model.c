/* model.c - a trained network that the user names */
#include "cli/model.h"

#include "cli/submit.h"
#include "libworker/train/checkpoint_folder.h"
#include "proto/file_write.h"
#include "proto/folder.h"
#include "proto/macros.h"
#include "proto/text.h"

#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int ends_in(const char *path, const char *ending)
{
    const size_t n = strlen(path);
    const size_t m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

/* As run --resume reads it, and in its words: numbers of damaged bytes would be wrong ones. */
static int check_checkpoint(const char *manifest, struct ms_err *err)
{
    struct checkpoint_manifest m;
    struct ms_err why = {0, ""};
    int rc = checkpoint_read(manifest, CHECKPOINT_NAMED, &m, &why);
    if (rc == MS_OK) {
        rc = checkpoint_verify(manifest, CHECKPOINT_NAMED, &m, &why);
        checkpoint_manifest_fini(&m);
    }
    return rc == MS_OK        ? MS_OK
           : rc == MS_E_NOMEM ? ms_fail(err, rc, "%s", why.text)
                              : ms_fail(err, MS_E_REFUSED, "%.338s; name another one", why.text);
}

/* Of data that are called as a checkpoint's: the manifest beside them, if there is one. */
static int find_manifest(const char *weights, char *ret, size_t size)
{
    const int stem = (int)strlen(weights) - (int)strlen(".safetensors");
    return ends_in(weights, ".safetensors") && checkpoint_names(ms_name_of(weights)) &&
           (size_t)snprintf(ret, size, "%.*s.json", stem, weights) < size && access(ret, F_OK) == 0;
}

int cli_model_weights(const char *word, const char *verb, char ret[MS_PATH_MAX + 1],
                      struct ms_err *err)
{
    char manifest[MS_PATH_MAX + 1];
    struct stat st;
    const int is_folder = stat(word, &st) == 0 && S_ISDIR(st.st_mode);
    const int is_manifest = !is_folder && ends_in(word, ".json");
    const size_t n = strlen(word) - (is_manifest ? strlen(".json") : 0);
    const char *more = is_folder ? "/weights.safetensors" : is_manifest ? ".safetensors" : "";
    if (snprintf(ret, MS_PATH_MAX + 1, "%.*s%s", (int)n, word, more) > MS_PATH_MAX) {
        return ms_fail(err, MS_E_INVALID, "msctl %s: '%.80s...' is too long a path", verb, word);
    }
    return is_manifest                                      ? check_checkpoint(word, err)
           : find_manifest(ret, manifest, sizeof(manifest)) ? check_checkpoint(manifest, err)
                                                            : MS_OK;
}

/* Beside the weights of a run; above the folder of its checkpoints. */
int cli_model_beside(const char *weights, const char *name, char *ret, size_t size)
{
    static const char *const up[] = {"", "../"};
    const char *slash = strrchr(weights, '/');
    const int n = slash != NULL ? (int)(slash - weights) + 1 : 0;
    for (size_t i = 0; i < MS_ARRAY_SIZE(up); i++) {
        const int length = snprintf(ret, size, "%.*s%s%s", n, weights, up[i], name);
        if (length > 0 && (size_t)length < size && access(ret, R_OK) == 0) {
            return 1;
        }
    }
    return 0;
}

static int fail_none(const char *weights, struct ms_err *err)
{
    char shown[160];
    return ms_fail(err, MS_E_NOT_FOUND,
                   "%s: no " CLI_JOB_FILE " lies beside it or above, so nothing says of what "
                   "network it is; give the job's file with --job",
                   ms_text_end(shown, sizeof(shown), weights));
}

/* Nobody named it: no file that it names is opened for it, and no program started. */
static int check_found(const char *path, struct job *scratch, struct ms_err *err)
{
    char shown[160];
    struct ms_err why = {0, ""};
    int rc = job_load_kept(path, scratch, &why);
    return rc == MS_OK ? MS_OK
                       : ms_fail(err, rc,
                                 "%s lies there, and is no job that msctl run left: %.200s; name "
                                 "the job's file with --job, if you trust it",
                                 ms_text_end(shown, sizeof(shown), path), why.text);
}

int cli_model_path_key(const char *before, const char *path, const char *behind, char **ret,
                       struct ms_err *err)
{
    char absolute[PATH_MAX];
    if (realpath(path, absolute) == NULL) {
        return ms_fail_errno(err, MS_E_NOT_FOUND, "%.200s", path);
    }
    json_t *word = json_string(absolute);
    char *quoted = word != NULL ? json_dumps(word, JSON_ENCODE_ANY) : NULL;
    json_decref(word);
    if (quoted == NULL) {
        return ms_fail(err, MS_E_INVALID, "%.200s: its name is no UTF-8", path);
    }
    int rc = asprintf(ret, "%s%s%s", before, quoted, behind);
    free(quoted);
    return rc >= 0 ? MS_OK : ms_fail(err, MS_E_NOMEM, "no memory for a path");
}

int cli_model_job(const struct cli_args *args, const char *weights, struct job *ret,
                  struct ms_err *err)
{
    char found[MS_PATH_MAX + 32];
    char *network = NULL;
    const char *path = cli_value(args, "job");
    if (path == NULL && !cli_model_beside(weights, CLI_JOB_FILE, found, sizeof(found))) {
        return fail_none(weights, err);
    }
    int rc = path == NULL ? check_found(found, ret, err) : MS_OK;
    rc = rc == MS_OK && ends_in(weights, ".onnx")
             ? cli_model_path_key("network=", weights, "", &network, err)
             : rc;
    rc = rc < 0 ? rc : cli_load_job_with(args, path != NULL ? path : found, network, ret, err);
    free(network);
    return rc;
}

int cli_model_keep_job(const char *folder, const struct job *job, struct ms_err *err)
{
    char path[MS_PATH_MAX + 32];
    size_t size = 0;
    char *text = job_format(job, &size);
    snprintf(path, sizeof(path), "%s/" CLI_JOB_FILE, folder);
    int rc = text != NULL ? ms_file_save(path, text, size, err)
                          : ms_fail(err, MS_E_NOMEM, "no memory for the job's text");
    free(text);
    return rc;
}
