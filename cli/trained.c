/* trained.c - what `msctl eval` and `msctl predict` are asked about: weights, their job, their plan
 */
#include "cli/trained.h"

#include "cli/model.h"
#include "libworker/train/checkpoint_folder.h"
#include "proto/text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN = 160 };

enum word_kind { WORD_RUN, WORD_JOB, WORD_WEIGHTS };

struct finding {
    const struct cli_args *args;
    const char *word;
    enum word_kind kind;
    char job[MS_PATH_MAX + 32]; /* its file */
    const char *extra[4];       /* keys that win over the file's; --set wins over them */
    char *owned[2];
    size_t n_extra, n_owned;
};

static int ends_in(const char *path, const char *ending)
{
    const size_t n = strlen(path);
    const size_t m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

/* ---- the word ---- */

static int is_manifest(const char *path)
{
    char beside[MS_PATH_MAX + 1];
    const int n = (int)strlen(path) - (int)strlen(".json");
    return ends_in(path, ".json") &&
           snprintf(beside, sizeof(beside), "%.*s.safetensors", n, path) <= MS_PATH_MAX &&
           access(beside, F_OK) == 0;
}

static int find_kind(struct finding *finding, struct ms_err *err)
{
    const char *word = finding->word;
    struct stat st;
    if (stat(word, &st) != 0) {
        return ms_fail_errno(err, MS_E_NOT_FOUND, "%.200s", word);
    }
    finding->kind = S_ISDIR(st.st_mode) ? WORD_RUN
                    : ends_in(word, ".safetensors") || ends_in(word, ".ckpt") ||
                            ends_in(word, ".onnx") || is_manifest(word)
                        ? WORD_WEIGHTS
                        : WORD_JOB;
    return MS_OK;
}

/* ---- weights ---- */

static int is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* As it is called, or below the folder of the run, or of its checkpoints. */
static int find_named(const struct finding *finding, const char *name, char ret[MS_PATH_MAX + 1],
                      struct ms_err *err)
{
    static const char *const below[] = {"", "/checkpoints"};
    char path[MS_PATH_MAX + 1];
    char named[CHECKPOINT_PATH_MAX];
    char shown[SHOWN];
    if (is_there(name)) {
        return cli_model_weights(name, "--weights", ret, err);
    }
    if (checkpoint_find_named(name, named)) {
        return cli_model_weights(named, "--weights", ret, err);
    }
    for (size_t i = 0; finding->kind == WORD_RUN && i < MS_ARRAY_SIZE(below); i++) {
        if (snprintf(path, sizeof(path), "%s%s/%s", finding->word, below[i], name) > MS_PATH_MAX) {
            continue;
        }
        if (is_there(path)) {
            return cli_model_weights(path, "--weights", ret, err);
        }
        if (checkpoint_find_named(path, named)) {
            return cli_model_weights(named, "--weights", ret, err);
        }
    }
    return ms_fail(err, MS_E_NOT_FOUND, "--weights %s: there is no such file%s%.120s",
                   ms_text_end(shown, sizeof(shown), name),
                   finding->kind == WORD_RUN ? ", neither here nor in " : "",
                   finding->kind == WORD_RUN ? finding->word : "");
}

static int check_weights(const struct finding *finding, const char *weights, struct ms_err *err)
{
    char shown[SHOWN];
    return is_there(weights) ? MS_OK
           : finding->kind == WORD_RUN
               ? ms_fail(err, MS_E_NOT_FOUND,
                         "%s is not there: a training leaves it at its end; name others with "
                         "--weights, as best.safetensors or checkpoints/NAME-STEP.json",
                         ms_text_end(shown, sizeof(shown), weights))
               : ms_fail(err, MS_E_NOT_FOUND, "%s is not there",
                         ms_text_end(shown, sizeof(shown), weights));
}

static int find_weights(const struct finding *finding, char ret[MS_PATH_MAX + 1],
                        struct ms_err *err)
{
    const char *name = cli_value(finding->args, "weights");
    if (finding->kind == WORD_JOB && name == NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "%.200s is a job: give its weights with --weights FILE, or the folder of "
                       "its run instead",
                       finding->word);
    }
    if (finding->kind == WORD_WEIGHTS && name != NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "%.100s is a file of weights, and so is --weights %.100s: give one of them",
                       finding->word, name);
    }
    int rc = name != NULL ? find_named(finding, name, ret, err)
                          : cli_model_weights(finding->word, "eval", ret, err);
    return rc < 0 ? rc : check_weights(finding, ret, err);
}

/* ---- the job ---- */

static int find_job(struct finding *finding, const char *weights, struct ms_err *err)
{
    char shown[SHOWN];
    if (finding->kind == WORD_JOB) {
        snprintf(finding->job, sizeof(finding->job), "%s", finding->word);
        return MS_OK;
    }
    if (finding->kind == WORD_RUN) {
        snprintf(finding->job, sizeof(finding->job), "%.*s/" CLI_JOB_FILE, MS_PATH_MAX,
                 finding->word);
        return is_there(finding->job)
                   ? MS_OK
                   : ms_fail(err, MS_E_NOT_FOUND,
                             "%s has no " CLI_JOB_FILE
                             ", as msctl run leaves it and msctl fetch JOB "
                             "brings it: give the job's file, and these weights with --weights",
                             ms_text_end(shown, sizeof(shown), finding->word));
    }
    return cli_model_beside(weights, CLI_JOB_FILE, finding->job, sizeof(finding->job))
               ? MS_OK
               : ms_fail(err, MS_E_NOT_FOUND,
                         "%s: no " CLI_JOB_FILE " lies beside it or above, so nothing says of what "
                         "network it is; give the job's file, and it with --weights",
                         ms_text_end(shown, sizeof(shown), weights));
}

/* Does one of --set say the key, or one below it? */
static int is_below(const char *key_value, const char *key)
{
    const size_t length = strlen(key);
    return strncmp(key_value, key, length) == 0 &&
           (key_value[length] == '.' || key_value[length] == '=');
}

static int sets(const struct cli_args *args, const char *key)
{
    const char *values[CLI_GIVEN_MAX];
    const size_t n = cli_values(args, "set", values, CLI_GIVEN_MAX);
    size_t i = 0;
    while (i < n && !is_below(values[i], key)) {
        i++;
    }
    return i < n;
}

/* One that gives the whole section, or of what kind it is. */
static int sets_kind(const struct cli_args *args)
{
    static const char *const keys[] = {"evaluate=", "evaluate.dataset=", "evaluate.dataset.kind="};
    const char *values[CLI_GIVEN_MAX];
    const size_t n = cli_values(args, "set", values, CLI_GIVEN_MAX);
    int is = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < MS_ARRAY_SIZE(keys); k++) {
            is |= strncmp(values[i], keys[k], strlen(keys[k])) == 0;
        }
    }
    return is;
}

/* What --set says of an evaluation may be of that of --data alone, which is not known yet. */
static int waits_for_data(const struct finding *finding)
{
    return cli_value(finding->args, "data") != NULL && !sets_kind(finding->args);
}

static int load(const struct finding *finding, int has_data, struct job *ret, struct ms_err *err)
{
    const char *values[CLI_GIVEN_MAX];
    struct job_override overrides[CLI_GIVEN_MAX + MS_ARRAY_SIZE(finding->extra)];
    size_t n = 0;
    for (size_t i = 0; i < finding->n_extra; i++) {
        overrides[n++].key_value = finding->extra[i];
    }
    const size_t n_set = cli_values(finding->args, "set", values, CLI_GIVEN_MAX);
    for (size_t i = 0; i < n_set; i++) {
        if (has_data || !is_below(values[i], "evaluate")) {
            overrides[n++].key_value = values[i];
        }
    }
    return n == 0 && finding->kind != WORD_JOB ? job_load_kept(finding->job, ret, err)
                                               : job_load(finding->job, overrides, n, 0, ret, err);
}

static int add_path(struct finding *finding, const char *before, const char *path,
                    const char *behind, struct ms_err *err)
{
    char *text = NULL;
    int rc = cli_model_path_key(before, path, behind, &text, err);
    if (rc == MS_OK) {
        finding->owned[finding->n_owned++] = text;
        finding->extra[finding->n_extra++] = text;
    }
    return rc;
}

/* The name of a kind as the job has it; "": it has no such data. */
static void kind_of(const struct job *job, const char *section, char *ret, size_t size)
{
    size_t n = 0;
    char *text = job_format(job, &n);
    json_t *root = text != NULL ? json_loadb(text, n, 0, NULL) : NULL;
    const json_t *at = section[0] != '\0' ? json_object_get(root, section) : root;
    const char *kind = json_string_value(json_object_get(json_object_get(at, "dataset"), "kind"));
    snprintf(ret, size, "%s", kind != NULL ? kind : "");
    json_decref(root);
    free(text);
}

/* Of an evaluation that the job has, all but its place holds for another one, which has the usual
 * parts. Another program has arguments of its own. */
static int add_place(struct finding *finding, const struct job *job, const char *kind,
                     const char *path, struct ms_err *err)
{
    const enum data_kind of = job->evaluate_dataset.kind;
    char before[128] = "evaluate.dataset.path=";
    if (!job->has_evaluate || of == DATA_PROGRAM || sets_kind(finding->args)) {
        snprintf(before, sizeof(before), "evaluate.dataset={kind: %s, path: ", kind);
        return add_path(finding, before, path, "}", err);
    }
    finding->extra[finding->n_extra++] = "evaluate.dataset.usage=test";
    if (data_kind_is_own(of)) {
        finding->extra[finding->n_extra++] = "evaluate.dataset.split=null";
    }
    return add_path(finding, before, path, "", err);
}

static int add_data(struct finding *finding, const struct job *job, struct ms_err *err)
{
    const char *path = cli_value(finding->args, "data");
    char kind[MS_NAME_MAX + 1];
    if (path == NULL) {
        return MS_OK;
    }
    kind_of(job, job->has_evaluate ? "evaluate" : "", kind, sizeof(kind));
    if ((job->has_evaluate ? &job->evaluate_dataset : &job->dataset)->path[0] == '\0') {
        return ms_fail(err, MS_E_INVALID,
                       "--data %.160s: the job's data are of kind %s, which is drawn and read from "
                       "nowhere; give --set 'evaluate={dataset: {...}}'",
                       path, kind);
    }
    const int rc = add_place(finding, job, kind, path, err);
    return rc < 0 ? ms_err_prefix(err, "--data") : rc;
}

static int refuse_program(const struct finding *finding, struct ms_err *err)
{
    char shown[SHOWN];
    return ms_fail(err, MS_E_REFUSED,
                   "%s: its data come from a program, which is not started for a job that lies "
                   "there; if you trust it, name that file, with --weights",
                   ms_text_end(shown, sizeof(shown), finding->job));
}

static int check_data(const struct finding *finding, const struct job *job, struct ms_err *err)
{
    char shown[SHOWN];
    char kind[MS_NAME_MAX + 1];
    ms_text_end(shown, sizeof(shown), finding->job);
    if (!job->has_evaluate) {
        kind_of(job, "", kind, sizeof(kind));
        return ms_fail(err, MS_E_INVALID,
                       "%s has no `evaluate`, so nothing says on what data; give --data PATH (of "
                       "kind %s), or --set 'evaluate={dataset: {...}}'",
                       shown, kind);
    }
    return job->evaluate_dataset.kind != DATA_PROGRAM || finding->kind == WORD_JOB
               ? MS_OK
               : refuse_program(finding, err);
}

/* Nobody named it: no file that it names is opened to settle it, and no program started. What is
 * set of the training's data would have them settled anew. */
static int check_kept(const struct finding *finding, struct job *scratch, struct ms_err *err)
{
    char shown[SHOWN];
    struct ms_err why = {0, ""};
    int rc = job_load_kept(finding->job, scratch, &why);
    if (rc == MS_OK && scratch->dataset.kind == DATA_PROGRAM && sets(finding->args, "dataset")) {
        return refuse_program(finding, err);
    }
    return rc == MS_OK ? MS_OK
                       : ms_fail(err, rc,
                                 "%s is no job that msctl run left: %.180s; if you trust it, name "
                                 "that file, with --weights",
                                 ms_text_end(shown, sizeof(shown), finding->job), why.text);
}

static int take_job(struct finding *finding, struct trained *ret, struct ms_err *err)
{
    int rc = find_job(finding, ret->weights, err);
    rc = rc == MS_OK && finding->kind != WORD_JOB ? check_kept(finding, &ret->job, err) : rc;
    if (rc == MS_OK && ends_in(ret->weights, ".onnx")) { /* it brings its network */
        rc = add_path(finding, "network=", ret->weights, "", err);
    }
    rc = rc < 0 ? rc : load(finding, !waits_for_data(finding), &ret->job, err);
    const size_t before = finding->n_extra;
    rc = rc < 0 ? rc : add_data(finding, &ret->job, err);
    rc = rc == MS_OK && finding->n_extra > before ? load(finding, 1, &ret->job, err) : rc;
    return rc < 0 ? rc : check_data(finding, &ret->job, err);
}

/* ---- the plan ---- */

static void find_plan(const struct finding *finding, const char *weights, struct trained *ret)
{
    static const char name[] = CLI_PLAN_FILE;
    const char *given = cli_value(finding->args, "plan");
    if (given != NULL) {
        snprintf(ret->plan, sizeof(ret->plan), "%.*s", MS_PATH_MAX, given);
        return;
    }
    snprintf(ret->plan, sizeof(ret->plan), "%.*s/%s", MS_PATH_MAX, finding->word, name);
    if (finding->kind == WORD_RUN
            ? !is_there(ret->plan)
            : !cli_model_beside(weights, name, ret->plan, sizeof(ret->plan))) {
        ret->plan[0] = '\0';
    }
}

int trained_find(const struct cli_args *args, struct trained *ret, struct ms_err *err)
{
    struct finding finding = {.args = args};
    int rc = cli_need_words(args, 1, 1, "RUN", err);
    finding.word = rc == MS_OK ? args->words[0] : "";
    rc = rc < 0 ? rc : find_kind(&finding, err);
    rc = rc < 0 ? rc : find_weights(&finding, ret->weights, err);
    rc = rc < 0 ? rc : take_job(&finding, ret, err);
    if (rc == MS_OK) {
        find_plan(&finding, ret->weights, ret);
    }
    for (size_t i = 0; i < finding.n_owned; i++) {
        free(finding.owned[i]);
    }
    return rc;
}
