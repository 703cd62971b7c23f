/* evaluate.c - what an evaluation of weights counts, to the bit as the training's own
 *
 * A training of several ranks evaluates a shard on each, and adds up what they counted by the tree
 * T(lo, hi) = T(lo, mid) + T(mid, hi). Here whoever is free takes the next shard, and the sums of
 * all meet in the same places. */
#include "libworker/infer/team.h"
#include "libworker/train/evaluation.h"
#include "libworker/train/metrics.h"

#include <stdlib.h>
#include <string.h>

struct counting {
    struct team team;
    int world;
    size_t n;     /* doubles of a shard: those of evaluation.h, then those of the scores */
    double *sums; /* (world, n) */
    atomic_int next;
};

/* ---- a shard ---- */

struct shard {
    const struct job *job;
    struct scores *scores; /* NULL: nothing but loss and accuracy */
    int64_t tokens;
    double sums[EVAL_SUMS];
};

static int add_batch(void *arg, const struct batch *batch, const struct plan_evaluated *made,
                     struct ms_err *err)
{
    struct shard *shard = arg;
    (void)err;
    evaluation_add(shard->job, shard->sums, shard->scores, batch, shard->tokens, made);
    return MS_OK;
}

static int count_shard(struct counting *counting, struct pass *pass, struct shard *shard, int rank,
                       struct ms_err *err)
{
    double *ret = counting->sums + (size_t)rank * counting->n;
    size_t n = 0;
    memset(shard->sums, 0, sizeof(shard->sums));
    if (shard->scores != NULL) {
        scores_clear(shard->scores);
    }
    int rc = pass_run(pass, rank, counting->world, add_batch, shard, err);
    memcpy(ret, shard->sums, sizeof(shard->sums));
    if (shard->scores != NULL) {
        const double *scores = scores_sums(shard->scores, &n);
        memcpy(ret + EVAL_SUMS, scores, n * sizeof(*scores));
    }
    return rc;
}

static int count_some(void *arg, int member, struct pass *pass, struct ms_err *err)
{
    struct counting *counting = arg;
    struct shard shard = {.job = pass->common->cfg->job, .tokens = pass->info.tokens};
    (void)member;
    int rc = evaluation_scores(shard.job, &pass->info, &shard.scores, err);
    int rank = atomic_fetch_add(&counting->next, 1);
    for (; rc == MS_OK && rank < counting->world; rank = atomic_fetch_add(&counting->next, 1)) {
        rc = count_shard(counting, pass, &shard, rank, err);
    }
    scores_destroy(shard.scores);
    return rc;
}

/* ---- all of them ---- */

/* T(lo, hi) in the place of lo; as deep as the logarithm of the ranks. */
static void sum_tree(const struct counting *counting, int lo, int hi)
{
    if (hi - lo == 1) {
        return;
    }
    const int mid = lo + (hi - lo + 1) / 2;
    double *left = counting->sums + (size_t)lo * counting->n;
    const double *right = counting->sums + (size_t)mid * counting->n;
    sum_tree(counting, lo, mid);
    sum_tree(counting, mid, hi);
    for (size_t i = 0; i < counting->n; i++) {
        left[i] += right[i];
    }
}

static int format(const struct counting *counting, struct scores *scores,
                  struct infer_evaluated *ret, struct ms_err *err)
{
    const struct pass *first = &counting->team.passes[0];
    const double loss = evaluation_loss(counting->sums);
    char *more = NULL;
    size_t n = 0;
    if (scores != NULL) {
        double *sums = scores_sums(scores, &n);
        memcpy(sums, counting->sums + EVAL_SUMS, n * sizeof(*sums));
        more = scores_json(scores, loss);
    }
    const struct metrics_eval line = {
        .loss = loss,
        .accuracy = evaluation_accuracy(first->common->cfg->job, counting->sums),
        .more = more};
    char *members = more != NULL || scores == NULL ? metrics_format_eval(&line) : NULL;
    free(more);
    if (members == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the numbers of an evaluation");
    }
    *ret = (struct infer_evaluated){.rows = first->rows,
                                    .loss = line.loss,
                                    .accuracy = line.accuracy,
                                    .members = members,
                                    .is_as_planned = net_is_as_planned(first->net)};
    return MS_OK;
}

static int count_all(struct counting *counting, struct infer_evaluated *ret, struct ms_err *err)
{
    struct pass *first = &counting->team.passes[0];
    struct scores *scores = NULL;
    int rc = evaluation_scores(first->common->cfg->job, &first->info, &scores, err);
    if (rc < 0) {
        return rc;
    }
    counting->n = 0;
    if (scores != NULL) {
        (void)scores_sums(scores, &counting->n);
    }
    counting->n += EVAL_SUMS;
    counting->sums = calloc((size_t)counting->world * counting->n, sizeof(*counting->sums));
    rc = counting->sums != NULL
             ? team_run(&counting->team, count_some, NULL, counting, err)
             : ms_fail(err, MS_E_NOMEM, "no memory for the sums of an evaluation");
    if (rc == MS_OK) {
        sum_tree(counting, 0, counting->world);
        rc = format(counting, scores, ret, err);
    }
    free(counting->sums);
    scores_destroy(scores);
    return rc;
}

int infer_evaluate(const struct infer_config *cfg, struct infer_evaluated *ret, struct ms_err *err)
{
    const int is_split = cfg->job->mode == JOB_STAND_ALONE; /* each rank evaluates on all rows */
    struct counting counting = {.world = is_split ? 1 : cfg->job->workers};
    int rc = team_open(&counting.team, cfg, 1, counting.world, err);
    if (rc < 0) {
        return rc;
    }
    rc = count_all(&counting, ret, err);
    team_close(&counting.team);
    return rc;
}
