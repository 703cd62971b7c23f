/* agree.c - where all ranks of a mesh stand, and what those do who hold nothing of the training, or
 * miss its last step
 *
 * The first start, a newcomer, a survivor and a training that goes on from a checkpoint are one
 * agreement: a mesh stands, everybody says what he holds, and all come to the same step. */
#include "libworker/data/path.h"
#include "libworker/data/sum.h"
#include "libworker/train/state.h"
#include "libworker/train/train_impl.h"
#include "proto/clock.h"
#include "proto/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_TAG_ROOM = MS_JOB_TAG_LEN + 8 }; /* no holes in what is sent */

/* Where a rank is; the same on all machines of a mesh, which have one byte order. */
struct place {
    uint64_t step; /* committed */
    double seconds, eval_loss, accuracy, unsettled;
    float loss; /* of that step, mean over ranks */
    int32_t is_fresh;
    int32_t evaluates;
    int32_t has_eval;
    int32_t stopped;                     /* asked to stop with that step */
    int32_t is_copy;                     /* no step was made of it here: train_impl.h */
    uint8_t digest[MS_STATE_DIGEST_LEN]; /* zero where it is fresh */
    struct watch watch;
    struct train_data data;
    char first_tag[FIRST_TAG_ROOM]; /* of the job that began the training; "": this one */
};

int train_digest(struct train *train, struct ms_err *err)
{
    return train->has_state ? state_digest(train->replica, train->progress.step, train->digest, err)
                            : 0;
}

/* After train_digest. */
static struct place find_place(const struct train *train)
{
    const struct train_progress *progress = &train->progress;
    struct place place = {.step = progress->step,
                          .seconds = train->seconds,
                          .eval_loss = progress->eval_loss,
                          .accuracy = progress->accuracy,
                          .unsettled = progress->unsettled,
                          .loss = progress->loss,
                          .is_fresh = !train->has_state,
                          .is_copy = train->has_state && train->is_copy,
                          .evaluates = train->evaluates,
                          .has_eval = progress->has_eval,
                          .stopped = train->stopped,
                          .watch = train->watch,
                          .data = train->data};
    if (train->has_state) {
        memcpy(place.digest, train->digest, sizeof(place.digest));
        snprintf(place.first_tag, sizeof(place.first_tag), "%s", train->first_tag);
    }
    return place;
}

/* A rank that had nothing has that step's state in its buffers, and is there from now on, its
 * loader with it. Where that fails it holds nothing: what lies there is of no step of its own. */
static int stand_at(struct train *train, const struct place *place, struct ms_err *err)
{
    struct train_progress *progress = &train->progress;
    const uint64_t per_epoch = (uint64_t)progress->steps_per_epoch;
    const uint64_t last =
        place->step - 1; /* of a rank's own, whatever that is: check_step judges */
    train->is_dirty = 1;
    int rc = train_place_loader(train, place->step, err);
    if (rc < 0) {
        return rc;
    }
    progress->step = place->step;
    progress->epoch = place->step > 0 ? last / per_epoch + 1 : 1;
    progress->step_in_epoch = place->step > 0 ? last % per_epoch + 1 : 0;
    progress->loss = progress->loss_here = place->loss;
    progress->has_eval = place->has_eval;
    progress->eval_loss = place->eval_loss;
    progress->accuracy = place->accuracy;
    progress->unsettled = place->unsettled;
    train->seconds = place->seconds;
    train->evaluates = place->evaluates;
    train->stopped = place->stopped;
    train->watch = place->watch;
    train->record = (struct record){.since = place->step};
    train->has_scores = 0; /* of what was trained here before */
    train->has_state = train->is_copy = 1;
    train->is_dirty = 0;
    return 0;
}

/* Likewise; without a digest of that state nobody could be told of it. */
static int stand_digested(struct train *train, const struct place *place, struct ms_err *err)
{
    int rc = stand_at(train, place, err);
    rc = rc == 0 ? train_digest(train, err) : rc;
    if (rc < 0) {
        train->has_state = 0;
        train->is_dirty = 1;
    }
    return rc;
}

/* Of a peer's word that comes to be this rank's own place, with which batches and the end of the
 * training are found. Ranks of the same data have the same last step: after check_data. */
static int check_step(const struct train *train, int rank, const char *what, uint64_t step,
                      struct ms_err *err)
{
    const uint64_t last = train->known.steps_total;
    return step <= last
               ? 0
               : ms_fail(err, MS_E_REFUSED,
                         "rank %d says that %s step %" PRIu64 ", and this job ends with step "
                         "%" PRIu64 ": the process of that rank, or its host, is not sound; leave "
                         "its node out",
                         rank, what, step, last);
}

/* ---- their data ---- */

/* The kind of data of which two ranks have other ones; NULL: none. */
static const char *find_other_data(const struct place *a, const struct place *b)
{
    return !data_identity_is_same(&a->data.training, &b->data.training)       ? "dataset"
           : !data_identity_is_same(&a->data.evaluation, &b->data.evaluation) ? "evaluate.dataset"
                                                                              : NULL;
}

static int64_t rows_of(const struct place *place, const char *what)
{
    return strcmp(what, "dataset") == 0 ? place->data.training.rows : place->data.evaluation.rows;
}

/* The other ranks hold what they have, or end: where this one is told to. */
static int refuse_own_data(const struct train *train, const struct place *mine,
                           const struct place *truth, int rank, struct ms_err *err)
{
    const struct job *job = train->cfg.job;
    const char *what = find_other_data(mine, truth);
    const int64_t here = rows_of(mine, what);
    const int64_t there = rows_of(truth, what);
    const char *path =
        strcmp(what, "dataset") == 0 ? job->dataset.path : job->evaluate_dataset.path;
    char full[MS_PATH_MAX + 1];
    if (data_path_expand(path, full, sizeof(full), NULL) < 0) {
        snprintf(full, sizeof(full), "%s", path);
    }
    (void)(here != there
               ? ms_fail(err, MS_E_INVALID,
                         "%s %.140s: %" PRId64 " samples here, where rank %d has %" PRId64
                         ": give this node the data of the others, or leave it out",
                         what, full, here, rank, there)
               : ms_fail(err, MS_E_INVALID,
                         "%s %.140s: %" PRId64 " samples here, and as many but other ones "
                         "where rank %d is: give this node the data of the others, or "
                         "leave it out",
                         what, full, here, rank));
    data_path_hide(full, path, err);
    return MS_E_INVALID;
}

/* Another rank leaves the mesh, which ends with that, and nobody has to be told who is at fault.
 * MS_E_ABORTED: whose reason is told. */
static int await_end(struct train *train, struct ms_err *err)
{
    const int rc = mesh_barrier(train->mesh, err);
    return rc < 0 ? rc : MS_E_PROTOCOL;
}

static int await_end_of(struct train *train, const struct place *places, int rank, int truth,
                        struct ms_err *err)
{
    const char *what = find_other_data(&places[rank], &places[truth]);
    const int64_t there = rows_of(&places[rank], what);
    const int64_t right = rows_of(&places[truth], what);
    const int rc = await_end(train, err);
    if (rc == MS_E_ABORTED) {
        return rc;
    }
    return there != right
               ? ms_fail(err, rc,
                         "rank %d cannot take part: %s has %" PRId64 " samples there, and %" PRId64
                         " where rank %d is",
                         rank, what, there, right, truth)
               : ms_fail(err, rc,
                         "rank %d cannot take part: the %" PRId64 " samples of %s are other ones "
                         "there than where rank %d is",
                         rank, there, what, truth);
}

/* Whoever has other data than the rank from which all go on cannot train with it: the batches would
 * be others. */
static int check_data(struct train *train, const struct place *places, int truth,
                      struct ms_err *err)
{
    const int mine = train->data_rank;
    if (find_other_data(&places[mine], &places[truth]) != NULL) {
        return refuse_own_data(train, &places[mine], &places[truth], truth, err);
    }
    int other = 0;
    while (other < train->data_world && find_other_data(&places[other], &places[truth]) == NULL) {
        other++;
    }
    return other == train->data_world ? 0 : await_end_of(train, places, other, truth, err);
}

/* ---- the state of another rank ---- */

static void note_state(struct train *train, const struct place *place)
{
    train->known.step = place->step;
    snprintf(train->first_tag, sizeof(train->first_tag), "%.*s", (int)MS_JOB_TAG_LEN,
             place->first_tag);
    memcpy(train->known.state_digest, place->digest, sizeof(place->digest));
    train->known.has_digest = train->data_world == train->cfg.world;
}

static int move(struct train *train, int source, const struct place *place, enum state_part part,
                struct ms_err *err)
{
    const struct state_offer offer = {source, place->step, place->digest};
    const double begun = ms_mono_s();
    train->is_dirty |= part == STATE_FILL;
    int rc = state_move(train->mesh, train->replica, &offer, part, err);
    if (rc == 0 && (part == STATE_FILL || part == STATE_SWAP)) {
        train->known.state_from = MS_STATE_PULLED;
        train->known.state_rank = source;
        train->known.state_bytes = state_bytes(train->replica);
    }
    train->known.state_ms = (uint32_t)((ms_mono_s() - begun) * 1e3);
    return rc;
}

/* What the rank behind has in hand is the batch of the commit that it pulled. */
static void catch_up(struct train *train, const struct place *source)
{
    train->since_s = train->recent_s > 0 ? ms_mono_s() - train->recent_s : train->since_s;
    train_step_done(train, source->loss, source->loss, 0);
}

/* ---- some are in the training ---- */

/* The lowest rank that made the last commit of all; -1: all are fresh. */
static int find_source(const struct place *places, int world)
{
    int source = -1;
    for (int i = 0; i < world; i++) {
        if (!places[i].is_fresh && (source < 0 || places[i].step > places[source].step)) {
            source = i;
        }
    }
    return source;
}

/* A commit needs a gradient of every rank: who had none of the last one is one step behind. Who has
 * a copy that was never trained may have got it, or begun anew, while nobody that holds more was
 * there: it takes that. */
static int check_steps(const struct train *train, const struct place *places, int source,
                       struct ms_err *err)
{
    int rc = check_step(train, source, "it holds", places[source].step, err);
    for (int i = 0; rc == 0 && i < train->data_world; i++) {
        const int has_trained = !places[i].is_fresh && !places[i].is_copy;
        if (has_trained && places[source].step - places[i].step > 1) {
            rc = ms_fail(err, MS_E_REFUSED,
                         "rank %d is at step %" PRIu64 " and rank %d at step %" PRIu64
                         ": only a rank that was stopped in its last step can go on",
                         i, places[i].step, source, places[source].step);
        }
    }
    return rc;
}

static int check_pair(const struct place *places, int a, int b, struct ms_err *err)
{
    char text_a[SUM_HEX];
    char text_b[SUM_HEX];
    const int is_pair =
        !places[a].is_fresh && !places[b].is_fresh && places[a].step == places[b].step;
    if (!is_pair || memcmp(places[a].digest, places[b].digest, sizeof(places[a].digest)) == 0) {
        return 0;
    }
    sum_bytes_hex(places[a].digest, text_a);
    sum_bytes_hex(places[b].digest, text_b);
    return ms_fail(err, MS_E_FAILED,
                   "rank %d and rank %d are at step %" PRIu64
                   ", and their weights differ (digests %s and %s): a processor or the memory of "
                   "one of their hosts is not sound; test both before the job begins again",
                   a, b, places[a].step, text_a, text_b);
}

/* The first rank of its step, by which the others are judged; itself, where there is none before.
 */
static int first_at(const struct place *places, int rank)
{
    int first = 0;
    while (first < rank && (places[first].is_fresh || places[first].step != places[rank].step)) {
        first++;
    }
    return first;
}

static int check_digests(const struct place *places, int world, struct ms_err *err)
{
    int rc = 0;
    for (int i = 1; rc == 0 && i < world; i++) {
        rc = check_pair(places, first_at(places, i), i, err);
    }
    return rc;
}

static enum state_part part_of(const struct place *places, int rank, int source)
{
    const int is_behind = places[rank].step != places[source].step;
    return rank == source          ? STATE_GIVE
           : places[rank].is_fresh ? STATE_FILL
           : is_behind             ? STATE_SWAP
                                   : STATE_PASS;
}

/* Is an evaluation owed after the last step, and was that the last because somebody was asked to
 * stop? Of those who made it each may know. What one counted beyond loss and accuracy is told by
 * rank 0 alone: where that is somebody else now, who takes the step and may not have told it, it is
 * made again. */
static struct place common_place(const struct train *train, const struct place *places, int source)
{
    const int world = train->data_world;
    struct place common = places[source];
    if (common.has_eval && train->scores != NULL && source != 0) {
        common.has_eval = 0;
        common.evaluates = 1;
    }
    for (int i = 0; i < world; i++) {
        if (!places[i].is_fresh && places[i].step == common.step) {
            common.evaluates |= places[i].evaluates;
            common.stopped |= places[i].stopped;
        }
    }
    return common;
}

/* The job may end with a step for somebody's word alone: whose it is stands in the log. */
static void note_stopped(const struct train *train, const struct place *places, uint64_t step)
{
    char text[MS_TEXT_MAX];
    int who = 0;
    while (places[who].is_fresh || places[who].step != step || !places[who].stopped) {
        who++;
    }
    snprintf(text, sizeof(text),
             "rank %d says that a rank was asked to stop, and that step %" PRIu64
             " is the last one: the training ends with it here, too",
             who, step);
    train_note(train, text);
}

/* ---- what is trained again ---- */

static const char begins_anew[] = "begins anew, for no rank has a checkpoint that can be read";

/* Of what was told nobody holds anything any more: it comes once more, to the same bits. */
static void note_again(struct train *train, const char *from)
{
    const uint64_t step = train->known.step;
    const uint64_t told = train->metrics != NULL ? metrics_last_step(train->metrics) : 0;
    if (told == step + 1) {
        rank_log_say(&train->log, "%s: step %" PRIu64 " is trained again\n", from, told);
    } else if (told > step) {
        rank_log_say(&train->log, "%s: steps %" PRIu64 " to %" PRIu64 " are trained again\n", from,
                     step + 1, told);
    }
    train->known.told = told;
}

/* All lost what they held, and the round in which some took a checkpoint, or began anew, ended with
 * the next loss. A step that was told, and whose commit died with rank 0, is no such thing. The
 * words are those of the scheduler. said: by the rank's last agreement, and of which step. */
static void note_gone_back(struct train *train, uint64_t said)
{
    const uint64_t step = train->known.step;
    const uint64_t told = train->metrics != NULL ? metrics_last_step(train->metrics) : 0;
    char text[96];
    if (told <= step + 1) {
        return;
    }
    if (said == told) {
        train->known.told = told;
        return;
    }
    snprintf(text, sizeof(text), "goes on after step %" PRIu64 ", for no rank held a later one",
             step);
    note_again(train, step > 0 ? text : begins_anew);
}

static int follow(struct train *train, const struct place *places, int source, uint64_t said,
                  struct ms_err *err)
{
    const int world = train->data_world;
    const int rank = train->data_rank;
    const struct place common = common_place(train, places, source);
    const enum state_part part = part_of(places, rank, source);
    int takes_all = /* else the commit alone, of the batch that it has in hand */
        part == STATE_FILL || (part == STATE_SWAP && places[rank].is_copy);
    int is_wanted = 0;
    for (int i = 0; i < world; i++) {
        const enum state_part other = part_of(places, i, source);
        is_wanted |= other == STATE_FILL || other == STATE_SWAP;
    }
    int rc = check_data(train, places, source, err);
    rc = rc == 0 ? check_steps(train, places, source, err) : rc;
    rc = rc == 0 ? check_digests(places, world, err) : rc;
    if (rc == 0 && part == STATE_SWAP &&
        !takes_all) { /* it fails while the old state is there, or not at all */
        rc = train_take_batch(train, err);
        rc = rc < 0 ? rc : 0;
        takes_all = !train->has_batch; /* it is to stop, and does not wait for one */
    }
    rc = rc == 0 && is_wanted ? move(train, source, &common, part, err) : rc;
    if (rc == 0) { /* whose training it is, before its files are looked for */
        note_state(train, &common);
    }
    if (rc == 0 && takes_all) {
        train->has_state = 0; /* what it had is gone */
        rc = stand_at(train, &common, err);
    } else if (rc == 0 && part == STATE_SWAP) {
        catch_up(train, &common);
    }
    if (rc == 0) {
        if (common.stopped && !places[rank].stopped) {
            note_stopped(train, places, common.step);
        }
        train->evaluates = common.evaluates;
        train->stopped = common.stopped;
        train_end_early(train);
        note_gone_back(train, takes_all ? 0 : said);
    }
    if (rc == 0 && takes_all) { /* it knows by now whether that step is the last */
        train_tell_missed(train, common.is_copy);
    }
    return rc;
}

/* ---- nobody is ---- */

struct offer {           /* of a rank; no holes in what is sent */
    uint64_t step;       /* of its best checkpoint that is not known to be damaged; 0: none */
    int32_t is_own;      /* that one is the job's own */
    int32_t has_own;     /* it found some of the job's own */
    int32_t has_refusal; /* ... and in the place that `resume` names what is not for this job */
    int32_t none;        /* 0 */
};

struct choice {  /* of all ranks, the same on each */
    int holder;  /* the lowest rank with the best of their checkpoints; -1: no rank has one */
    int refuser; /* the lowest rank with a refusal that holds; -1: none */
};

/* What lies where the job began may be of later steps than those that it came to. */
static int is_better(const struct offer *a, const struct offer *b)
{
    return a->is_own != b->is_own ? a->is_own : a->step > b->step;
}

/* A job that has saved itself has begun: it goes on from that, on whichever host it lies, whatever
 * the place has now. Where all of its own are damaged, and nothing else is there, it would begin.
 */
static struct choice choose(const struct offer *offers, int world)
{
    struct choice choice = {-1, -1};
    int has_own = 0;
    for (int i = 0; i < world; i++) {
        const int holder = choice.holder;
        if (offers[i].step > 0 && (holder < 0 || is_better(&offers[i], &offers[holder]))) {
            choice.holder = i;
        }
        if (choice.refuser < 0 && offers[i].has_refusal) {
            choice.refuser = i;
        }
        has_own |= offers[i].has_own;
    }
    if (has_own && choice.holder >= 0) {
        choice.refuser = -1;
    }
    return choice;
}

static int find_holder(struct train *train, const struct train_checkpoint *best, struct choice *ret,
                       struct ms_err *err)
{
    const int world = train->data_world;
    const struct offer mine = {.step = best->step,
                               .is_own = best->is_own,
                               .has_own = train->found.has_own,
                               .has_refusal = ms_err_code(&train->found.refusal) != 0};
    struct offer *offers = calloc((size_t)world, sizeof(*offers));
    if (offers == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the steps of %d ranks", world);
    }
    int rc = mesh_all_gather(train->mesh, &mine, sizeof(mine), offers, err);
    if (rc == 0) {
        *ret = choose(offers, world);
    }
    free(offers);
    return rc;
}

/* What came halfway, from a rank that died while it sent, is none of what comes now. */
static void clear_dirt(struct train *train)
{
    if (train->is_dirty) {
        replica_clear_state(train->replica);
        train->is_dirty = 0;
    }
}

static void note_damaged(struct train *train, uint64_t step, const struct ms_err *why)
{
    char text[MS_TEXT_MAX];
    snprintf(text, sizeof(text), "the checkpoint of step %" PRIu64 " is passed over: %s", step,
             ms_err_text(why));
    train_note(train, text);
    if (train->resume_found[0] == '\0') {
        snprintf(train->resume_found, sizeof(train->resume_found), "%s", text);
    }
}

/* Where this rank is with it, *ret; its step is 0: it is damaged. What evaluation it owes follows
 * from its step: one that was made already is told once. */
static int load(struct train *train, const struct train_checkpoint *mine, struct place *ret,
                struct ms_err *err)
{
    struct place place = {
        .step = mine->step, .loss = mine->loss, .seconds = mine->seconds, .watch = mine->watch};
    struct ms_err why = {0, ""};
    clear_dirt(train);
    int rc = mine->load(train, mine, &why);
    if (rc == MS_E_NOMEM) { /* says nothing of it: an older one would be the wrong one */
        return ms_fail(err, rc, "the checkpoint of step %" PRIu64 ": %s", mine->step,
                       ms_err_text(&why));
    }
    if (rc < 0) {
        note_damaged(train, mine->step, &why);
        return 0;
    }
    rc = stand_digested(train, &place, err);
    if (rc == 0) {
        snprintf(train->first_tag, sizeof(train->first_tag), "%s", mine->first_tag);
        train->evaluates = train_evaluation_due(train);
        *ret = find_place(train);
    }
    return rc;
}

/* The holder loads, and says where that is; step 0: it is damaged. Then it is everybody's who has
 * the data of which it is. */
static int take_checkpoint(struct train *train, const struct place *places,
                           const struct train_checkpoint *mine, int holder, int *ret_is_taken,
                           struct ms_err *err)
{
    const int is_holder = train->data_rank == holder;
    struct place place = {.step = 0};
    int rc = is_holder ? load(train, mine, &place, err) : 0;
    rc = rc == 0 ? mesh_broadcast(train->mesh, &place, sizeof(place), holder, err) : rc;
    *ret_is_taken = rc == 0 && place.step > 0;
    if (!*ret_is_taken) {
        return rc;
    }
    rc = check_data(train, places, holder, err);
    rc = rc < 0 ? rc : check_step(train, holder, "its checkpoint is of", place.step, err);
    rc = rc < 0 ? rc : move(train, holder, &place, is_holder ? STATE_GIVE : STATE_FILL, err);
    rc = rc == 0 && !is_holder ? stand_at(train, &place, err) : rc;
    if (rc == 0) {
        train_end_early(train);
    }
    train->known.state_from = MS_STATE_CHECKPOINT;
    train->known.state_rank = holder;
    train->known.state_bytes = state_bytes(train->replica);
    note_state(train, &place);
    return rc;
}

static int begin_at_0(struct train *train, struct ms_err *err)
{
    const struct place at_0 = {.step = 0};
    clear_dirt(train);
    int rc = train_initial_weights(train, err);
    rc = rc == 0 ? stand_digested(train, &at_0, err) : rc;
    train->first_tag[0] = '\0';
    if (rc == 0) {
        const struct place place = find_place(train);
        note_state(train, &place);
        note_again(train, begins_anew);
    }
    return rc;
}

static void note_found(const struct train *train)
{
    char text[MS_TEXT_MAX];
    char found[221];
    snprintf(text, sizeof(text), "resume: %.140s: %s", train->cfg.job->resume,
             ms_text_words(found, sizeof(found), train->resume_found));
    train_note(train, text);
}

/* Who asked to go on from somewhere would not want to begin at the beginning. */
static int refuse_to_begin(const struct train *train, struct ms_err *err)
{
    const char *resume = train->cfg.job->resume;
    char found[141];
    note_found(train);
    return ms_fail(err, MS_E_NOT_FOUND, "resume: no rank has a complete checkpoint in %.120s: %s%s",
                   resume, ms_text_words(found, sizeof(found), train->resume_found),
                   train->data_world > 1 ? "; the ranks' logs say what each found" : "");
}

/* Each that has a refusal says it; the others, who may have found nothing at all, know of it. */
static int refuse_place(struct train *train, int refuser, struct ms_err *err)
{
    const struct ms_err *why = &train->found.refusal;
    if (ms_err_code(why) != 0) {
        return ms_fail(err, ms_err_code(why), "%s", ms_err_text(why));
    }
    const int rc = await_end(train, err);
    return rc == MS_E_ABORTED
               ? rc
               : ms_fail(err, rc, "rank %d refuses what lies in %.200s; its log says why", refuser,
                         train->cfg.job->resume);
}

static int begin_anew(struct train *train, const struct place *places, struct ms_err *err)
{
    if (train->cfg.job->resume[0] != '\0') {
        return refuse_to_begin(train, err);
    }
    int rc = check_data(train, places, 0, err);
    return rc < 0 ? rc : begin_at_0(train, err);
}

static void note_gone_on(struct train *train)
{
    const struct ms_err *refusal = &train->found.refusal;
    char text[MS_TEXT_MAX];
    snprintf(text, sizeof(text), "goes on from the checkpoint of step %" PRIu64, train->known.step);
    note_again(train, text);
    train_note_gaps(train);
    if (ms_err_code(refusal) != 0) {
        snprintf(text, sizeof(text), "%.340s; the job goes on, for it has saved itself",
                 ms_err_text(refusal));
        train_note(train, text);
    }
}

/* All ranks make the same rounds, and in each a rank gives one of its own up: there is an end. */
static int begin(struct train *train, const struct place *places, struct ms_err *err)
{
    size_t tried = 0; /* of those that this rank found: damaged, all of them */
    int rc = train_find_checkpoints(train, err);
    while (rc == 0) {
        const struct train_checkpoint mine = train_checkpoint_at(train, tried);
        struct choice choice = {-1, -1};
        int is_taken = 0;
        rc = find_holder(train, &mine, &choice, err);
        rc = rc == 0 && choice.refuser >= 0 ? refuse_place(train, choice.refuser, err) : rc;
        if (rc < 0 && mine.step == 0 && train->cfg.job->resume[0] != '\0' &&
            train->resume_found[0] != '\0') {
            note_found(train); /* a faster rank may have ended the job for it */
        }
        if (rc < 0 || choice.holder < 0) {
            return rc < 0 ? rc : begin_anew(train, places, err);
        }
        rc = take_checkpoint(train, places, &mine, choice.holder, &is_taken, err);
        if (rc == 0 && is_taken) {
            note_gone_on(train);
        }
        if (rc < 0 || is_taken) {
            return rc;
        }
        tried += choice.holder == train->data_rank;
    }
    return rc;
}

/* ---- all of them ---- */

static void forget_state(struct train_info *info)
{
    info->told = 0;
    info->state_from = MS_STATE_KEPT;
    info->state_rank = 0;
    info->state_bytes = 0;
    info->state_ms = 0;
}

int train_agree(struct train *train, struct ms_err *err)
{
    const int world = train->data_world;
    struct place *places = calloc((size_t)world, sizeof(*places));
    const struct place mine = find_place(train);
    if (places == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to agree with %d ranks", world);
    }
    const uint64_t said = train->known.told;
    forget_state(&train->known);
    int rc = mesh_all_gather(train->mesh, &mine, sizeof(mine), places, err);
    if (rc == 0) {
        int source = find_source(places, world);
        rc = source < 0 ? begin(train, places, err) : follow(train, places, source, said, err);
    }
    if (rc < 0) { /* of which nobody hears: it was said all the same */
        train->known.told = train->known.told > said ? train->known.told : said;
    }
    free(places);
    return rc;
}
