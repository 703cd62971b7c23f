/* predict.c - a row a sample: what a network says of it */
#include "libworker/infer/names.h"
#include "libworker/infer/rounds.h"
#include "libworker/infer/team.h"

/* Members beyond this many would wait for who writes. */
enum { MEMBERS_MAX = 64 };

struct predicting {
    struct team team;
    struct rounds *rounds;
    struct rows *rows;
    struct rows_format format;
    FILE *out;
    int64_t tokens; /* of a sample, 1: it is one */
    int64_t written;
};

/* ---- a member ---- */

struct part {
    struct rounds *rounds;
    int member;
};

static int put_batch(void *arg, const struct batch *batch, const struct plan_evaluated *made,
                     struct ms_err *err)
{
    const struct part *part = arg;
    return rounds_put(part->rounds, part->member, batch, made, err);
}

static int predict_some(void *arg, int member, struct pass *pass, struct ms_err *err)
{
    struct predicting *predicting = arg;
    struct part part = {predicting->rounds, member};
    int rc = pass_run(pass, member, predicting->team.n, put_batch, &part, err);
    rounds_end(predicting->rounds, member);
    return rc;
}

static void stop(void *arg)
{
    rounds_stop(((struct predicting *)arg)->rounds);
}

/* ---- who writes ---- */

int infer_fail_out(const struct infer_config *cfg, struct ms_err *err)
{
    return cfg->out_name == NULL
               ? ms_fail_errno(err, MS_E_IO, "cannot write the predictions")
               : ms_fail_errno(err, MS_E_IO, "cannot write predictions to %.200s", cfg->out_name);
}

static int check_out(const struct predicting *predicting, struct ms_err *err)
{
    return ferror(predicting->out) == 0 ? MS_OK : infer_fail_out(predicting->team.common.cfg, err);
}

static int put_sample(void *arg, const struct rounds_row *row, struct ms_err *err)
{
    struct predicting *predicting = arg;
    char file[NAMES_FILE_MAX] = "";
    if (predicting->format.has_files) {
        names_of_file(predicting->team.passes[0].source, row->sample, file);
    }
    for (int64_t t = 0; t < predicting->tokens; t++) {
        const struct rows_one one = {.sample = row->sample,
                                     .token = t,
                                     .file = file,
                                     .label = row->labels != NULL ? row->labels[t] : -1,
                                     .values = row->values + t * predicting->format.columns};
        rows_put(predicting->rows, &one);
    }
    predicting->written++;
    return check_out(predicting, err);
}

/* ---- all of it ---- */

static enum rows_scale scale_of(const struct job *job)
{
    return job->loss == JOB_LOSS_SOFTMAX_CE ? ROWS_SOFTMAX
           : job->loss == JOB_LOSS_BCE      ? ROWS_SIGMOID
                                            : ROWS_PLAIN;
}

/* What follows from the network and the data. */
static void settle(struct predicting *predicting, const struct job *job)
{
    const struct pass *first = &predicting->team.passes[0];
    struct rows_format *format = &predicting->format;
    const int64_t classes = job->classes > 0 ? job->classes : first->info.classes;
    format->scale = scale_of(job);
    format->columns = first->info.target_width > 0 ? first->info.target_width : classes;
    format->has_files = data_get_info(first->source)->folders != NULL;
    format->has_tokens = first->info.tokens > 0;
    format->has_no_labels = first->common->cfg->has_no_labels ||
                            (format->scale == ROWS_SOFTMAX && first->info.target_width > 0);
    predicting->tokens = format->has_tokens ? first->info.tokens : 1;
}

static void note_gone(const struct infer_config *cfg)
{
    char text[MS_TEXT_MAX];
    if (cfg->on_note != NULL) {
        snprintf(
            text, sizeof(text),
            "the folders that were trained on are not here (%.160s), and the job does not have "
            "the names of its classes: they are numbers",
            cfg->job->dataset.path);
        cfg->on_note(cfg->arg, text);
    }
}

/* A label is shown by the name of its class: numbers that may be other classes are not. Folders are
 * their own names. */
static int check_labels(const struct predicting *predicting, const struct job *job,
                        struct ms_err *err)
{
    const struct rows_format *format = &predicting->format;
    const struct data_source *source = predicting->team.passes[0].source;
    const int are_shown = format->scale == ROWS_SOFTMAX && !format->has_no_labels;
    if (!are_shown || format->names == NULL || format->labels != NULL ||
        data_check_classes(source, &job->evaluate_dataset, &job->dataset, err) == MS_OK) {
        return MS_OK;
    }
    return ms_err_prefix(err, "evaluate.dataset (--no-labels predicts without them)");
}

static int predict(struct predicting *predicting, const struct job *job, struct ms_err *err)
{
    const struct pass *first = &predicting->team.passes[0];
    struct names names = {0};
    struct names labels = {0};
    settle(predicting, job);
    const int64_t columns = predicting->format.columns;
    int rc = names_find(job, first->source, columns, &names, err);
    rc = rc < 0 ? rc : names_of_data(first->source, &labels, err);
    predicting->format.names = names.list;
    predicting->format.labels = labels.list;
    rc = rc < 0 ? rc : check_labels(predicting, job, err);
    if (rc == MS_OK && names.are_gone) {
        note_gone(first->common->cfg);
    }
    rc = rc < 0 ? rc : rows_open(&predicting->format, predicting->out, &predicting->rows, err);
    rc = rc < 0 ? rc
                : rounds_create(predicting->team.n, first->batch, predicting->tokens, columns,
                                put_sample, predicting, &predicting->rounds, err);
    rc = rc < 0 ? rc : team_run(&predicting->team, predict_some, stop, predicting, err);
    rounds_destroy(predicting->rounds);
    rows_close(predicting->rows);
    names_free(&labels);
    names_free(&names);
    return rc == MS_OK && fflush(predicting->out) != 0 ? check_out(predicting, err) : rc;
}

int infer_predict(const struct infer_config *cfg, const struct rows_format *wish, FILE *out,
                  int64_t *ret_rows, struct ms_err *err)
{
    struct predicting predicting = {.format = *wish, .out = out};
    int rc = team_open(&predicting.team, cfg, 0, MEMBERS_MAX, err);
    if (rc < 0) {
        return rc;
    }
    rc = predict(&predicting, cfg->job, err);
    team_close(&predicting.team);
    if (rc == MS_OK) {
        *ret_rows = predicting.written;
    }
    return rc;
}
