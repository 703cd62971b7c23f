/* answer.c - msworker --evaluate and --predict: this process answers by trained weights, and ends
 */
#include "libworker/program/answer.h"

#include "libworker/infer/infer.h"
#include "libworker/program/plan_given.h"
#include "proto/clock.h"
#include "proto/limits.h"
#include "proto/text.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROGRESS_MS = 100, NUMBER_MAX = 1000000 };

struct answer { /* what was asked */
    int predicts;
    const char *weights, *plan_path;
    int has_no_labels;
    struct rows_format rows;
    int64_t to;       /* a descriptor */
    const char *name; /* of it; NULL: it has none */
    struct job job;
    char *plan; /* NULL: none; owned */
    int64_t told_ms;
};

/* ---- words ---- */

int answer_is_asked(int argc, char *const *argv)
{
    return argc > 1 && (strcmp(argv[1], "--evaluate") == 0 || strcmp(argv[1], "--predict") == 0);
}

static int take_number(const char *word, const char *text, int64_t *ret, struct ms_err *err)
{
    char *end = NULL;
    const long long n = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || n < 1 || n > NUMBER_MAX) {
        return ms_fail(err, MS_E_INVALID, "%s %.40s: give a number from 1 to %d", word, text,
                       NUMBER_MAX);
    }
    *ret = n;
    return MS_OK;
}

static int take_format(const char *text, struct answer *answer, struct ms_err *err)
{
    answer->rows.is_json = strcmp(text, "json") == 0;
    return answer->rows.is_json || strcmp(text, "csv") == 0
               ? MS_OK
               : ms_fail(err, MS_E_INVALID, "--format %.40s: give csv or json", text);
}

static int take_value(const char *word, const char *value, struct answer *answer,
                      struct ms_err *err)
{
    if (strcmp(word, "--weights") == 0) {
        answer->weights = value;
    } else if (strcmp(word, "--plan") == 0) {
        answer->plan_path = value;
    } else if (strcmp(word, "--format") == 0) {
        return take_format(value, answer, err);
    } else if (strcmp(word, "--name") == 0) {
        answer->name = value;
    } else if (strcmp(word, "--to") == 0) {
        return take_number(word, value, &answer->to, err);
    } else if (strcmp(word, "--top") == 0) {
        answer->rows.kind = ROWS_TOP;
        return take_number(word, value, &answer->rows.top, err);
    } else {
        return ms_fail(err, MS_E_INVALID, "unknown option %.80s; msworker(8) has all", word);
    }
    return MS_OK;
}

static int take_words(int argc, char *const *argv, struct answer *answer, struct ms_err *err)
{
    answer->predicts = strcmp(argv[1], "--predict") == 0;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--raw") == 0) {
            answer->rows.kind = ROWS_RAW;
            continue;
        }
        if (answer->predicts && strcmp(argv[i], "--no-labels") == 0) {
            answer->has_no_labels = 1;
            continue;
        }
        if (i + 1 == argc) {
            return ms_fail(err, MS_E_INVALID, "%.80s: no value behind it", argv[i]);
        }
        int rc = take_value(argv[i], argv[i + 1], answer, err);
        if (rc < 0) {
            return rc;
        }
        i++;
    }
    return answer->weights == NULL || (answer->predicts && answer->to == 0)
               ? ms_fail(err, MS_E_INVALID, "give --weights FILE%s",
                         answer->predicts ? " and --to DESCRIPTOR" : "")
               : MS_OK;
}

/* ---- what is told ---- */

/* Takes the object. Whoever listened and has gone is no reason to go on. */
static void tell(json_t *object)
{
    if (object == NULL || json_dumpf(object, stdout, JSON_COMPACT) != 0 || putchar('\n') == EOF ||
        fflush(stdout) != 0) {
        _exit(1);
    }
    json_decref(object);
}

static void on_progress(void *arg, int64_t rows, int64_t of)
{
    struct answer *answer = arg;
    const int64_t now = ms_mono_ms();
    if (now - answer->told_ms >= PROGRESS_MS) {
        answer->told_ms = now;
        tell(json_pack("{s:I,s:I}", "rows", (json_int_t)rows, "of", (json_int_t)of));
    }
}

/* JSON is UTF-8; names of files may be anything. */
static const char *clean(char *text)
{
    ms_text_mend((uint8_t *)text, strlen(text), MS_TEXT_LINE);
    return text;
}

static void on_note(void *arg, const char *text)
{
    char line[MS_TEXT_MAX];
    (void)arg;
    ms_text_copy(line, sizeof(line), text);
    tell(json_pack("{s:s}", "note", clean(line)));
}

/* ---- what is done ---- */

static int read_job(struct answer *answer, struct ms_err *err)
{
    char *text = malloc(MS_JOB_FILE_MAX + 1);
    if (text == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the job");
    }
    const size_t size = fread(text, 1, MS_JOB_FILE_MAX + 1, stdin);
    int rc = ferror(stdin) ? ms_fail_errno(err, MS_E_IO, "cannot read the job")
                           : job_parse(text, size, "job", NULL, NULL, 0, 0, &answer->job, err);
    free(text);
    return rc < 0 || answer->job.has_evaluate
               ? rc
               : ms_fail(err, MS_E_INVALID, "the job has no `evaluate`: no data are named");
}

static int evaluate(const struct infer_config *cfg, json_t **ret, struct ms_err *err)
{
    struct infer_evaluated evaluated;
    char *text = NULL;
    int rc = infer_evaluate(cfg, &evaluated, err);
    if (rc < 0) {
        return rc;
    }
    if (asprintf(&text, "{%s,\"rows\":%lld,\"as_planned\":%s}", evaluated.members,
                 (long long)evaluated.rows, evaluated.is_as_planned ? "true" : "false") >= 0) {
        *ret = json_loads(text, 0, NULL);
        free(text);
    }
    free(evaluated.members);
    return *ret != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "no memory for the result");
}

static int predict(const struct answer *answer, const struct infer_config *cfg, json_t **ret,
                   struct ms_err *err)
{
    int64_t rows = 0;
    FILE *out = fdopen((int)answer->to, "w");
    if (out == NULL) {
        return ms_fail_errno(err, MS_E_IO, "cannot write to descriptor %d", (int)answer->to);
    }
    int rc = infer_predict(cfg, &answer->rows, out, &rows, err);
    if (fclose(out) != 0 && rc == MS_OK) {
        rc = infer_fail_out(cfg, err);
    }
    if (rc == MS_OK) {
        *ret = json_pack("{s:I}", "rows", (json_int_t)rows);
    }
    return rc;
}

static int run(struct answer *answer, json_t **ret, struct ms_err *err)
{
    int rc = read_job(answer, err);
    rc = rc == MS_OK && answer->plan_path != NULL
             ? plan_given_read(answer->plan_path, &answer->plan, err)
             : rc;
    const struct infer_config cfg = {.job = &answer->job,
                                     .weights = answer->weights,
                                     .plan = answer->plan,
                                     .has_no_labels = answer->has_no_labels,
                                     .out_name = answer->name,
                                     .on_progress = on_progress,
                                     .on_note = on_note,
                                     .arg = answer};
    if (rc == MS_OK) {
        rc = answer->predicts ? predict(answer, &cfg, ret, err) : evaluate(&cfg, ret, err);
    }
    free(answer->plan);
    return rc;
}

int answer_main(int argc, char *const *argv)
{
    static struct answer answer; /* a job has 90 KiB */
    struct ms_err err = {0, ""};
    json_t *result = NULL;
    int rc = take_words(argc, argv, &answer, &err);
    rc = rc < 0 ? rc : run(&answer, &result, &err);
    if (rc < 0) {
        tell(json_pack("{s:s,s:i}", "error", clean(err.text), "code", rc));
        return ms_code_exit_status(rc);
    }
    tell(json_pack("{s:o}", "result", result));
    return 0;
}
